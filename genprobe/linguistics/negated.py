"""Tell whether a sentence negates, by the words of `prompts/negation`, one file per language.

The files are separate from `prompts/languages`, whose negations are those of replies ("I would go
too far") and belong to the reading of answers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genprobe import text
from genprobe.errors import InputError
from genprobe.resources import packs, registry

FOLDER = "negation"
LEAST = 3  # letters that a word without its affix has at least, and two forms of a word share
_PHRASES = ("negation", "scarce", "unless")
_LISTS = (*_PHRASES, "prefixes", "suffixes", "opposite")
_GAP = r"(?: [^ ]+){0,3}?"  # what a `*` that stands alone leaves open
_HAN = re.compile(f"[{text.HAN}]")


class Words(NamedTuple):
    """The words of a language that negate, and the phrases with them that do not ("not only").

    listed: the phrases as they are written, by the name of their list. Those of `scarce` say that
    something is missing or rare: they negate what stands beside them, not their clause.
    prefixes, suffixes: those that make a word its opposite (un-, -less). opposite: what stands in
    their place in the opposite (care-less, care-ful), beside nothing.
    """

    listed: Mapping[str, Sequence[str]]
    negation: re.Pattern[str]
    unless: re.Pattern[str]
    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    opposite: tuple[str, ...]
    hash: str

    def negates(self, sentence: str) -> bool:
        """Tell whether a sentence has a negation, however many."""
        return self.negation.search(self._free(sentence)) is not None

    def plain(self, sentence: str) -> list[str]:
        """List the words of a sentence that are no part of a negation."""
        return self.negation.sub(" ", self._free(sentence)).split()

    def denied(self, word: str) -> Iterator[str]:
        """Yield the words that a word with a negating affix may deny (reliable: unreliable)."""
        for prefix in self.prefixes:
            if word.startswith(prefix):
                stem = word[len(prefix) :]
                yield from (other + stem for other in ("", *self.opposite))
        for suffix in self.suffixes:
            if word.endswith(suffix):
                stem = word[: -len(suffix)]
                yield from (stem + other for other in ("", *self.opposite))

    def _free(self, sentence: str) -> str:
        """Return the words of a sentence, without the phrases that only look like negations."""
        return self.unless.sub(" ", f" {' '.join(text.tokens(text.normalise(sentence)))} ")


def alike(word: str, other: str) -> bool:
    """Tell whether two words can be forms of one: they differ in their last two letters at most."""
    shared = next(
        (n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b),
        min(len(word), len(other)),
    )
    return shared >= max(LEAST, len(word) - 2, len(other) - 2)


@functools.cache
def load(lang: str) -> Words | None:
    """Read the negations of a language, or of a mixture (`kk-x-ru`: both); None if it has none."""
    found = [registry.path(FOLDER, f"{code}.toml") for code in lang.split("-x-")]
    return _read(found) if all(path.is_file() for path in found) else None


def read(path: Path) -> Words:
    """Read and check one file of `prompts/negation`. Raises InputError that says what is wrong."""
    return _read([path])


def _read(paths: Sequence[Path]) -> Words:
    lists: dict[str, list[str]] = {key: [] for key in _LISTS}
    for path in paths:
        row = packs.read_toml(path)
        packs.no_more(row, {"review", *_LISTS}, path)
        packs.string(row, "review", path)
        for key in _LISTS:
            lists[key] += packs.strings(row, key, path)
        if not row.get("negation"):
            raise InputError(f"{path}: 'negation' has no word")
        for phrase in (phrase for key in _PHRASES for phrase in lists[key]):
            if not text.well_formed(phrase):
                raise InputError(f"{path}: {phrase!r}: a bracket without its other half")
    prefixes, suffixes, opposite = (tuple(map(text.normalise, lists[k])) for k in _LISTS[3:])
    negation = _compiled([*lists["negation"], *lists["scarce"]])
    unless = _compiled(lists["unless"])
    return Words(lists, negation, unless, prefixes, suffixes, opposite, packs.file_hash(*paths))


def _compiled(phrases: Sequence[str]) -> re.Pattern[str]:
    """Compile phrases into one pattern for a text of words with a space around each."""
    every = [one for phrase in phrases for one in _spaced(text.normalise(phrase))]
    longest = sorted(map(_pattern, every), key=len, reverse=True)
    return re.compile(f" (?:{'|'.join(longest)})(?= )" if longest else r"(?!)")


def _spaced(phrase: str) -> Iterator[str]:
    """Put spaces between the words of a phrase as `text.tokens` finds them.

    In Chinese, where each character is a word, the choices of a phrase are written out first.
    """
    choices = text.expand(phrase) if _HAN.search(phrase) else [phrase]
    for one in choices:
        parts = (part if set("*()|?") & set(part) else text.tokens(part) for part in one.split(" "))
        yield " ".join(part if isinstance(part, str) else " ".join(part) for part in parts)


def _pattern(phrase: str) -> str:
    """Write a phrase as a pattern.

    `(a|b)` is a choice, `(a)?` may be missing, `*` at an end of a word stands for any letters (at
    least one at its beginning), and alone for up to three words.
    """
    made = re.sub(r"[^\w\s()|?*]", lambda sign: re.escape(sign[0]), phrase).replace("(", "(?:")
    made = re.sub(r" \*(?= )", lambda _: _GAP, made)
    return re.sub(r"(?:(?<= )|^)\*", "[^ ]+", made).replace("*", "[^ ]*")
