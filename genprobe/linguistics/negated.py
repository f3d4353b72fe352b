"""Tell whether a sentence negates, by the words of `prompts/negation`, one file per language.

The files are separate from `prompts/languages`, whose negations are those of replies ("I would go
too far") and belong to the reading of answers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from genprobe import text
from genprobe.errors import InputError
from genprobe.resources import packs, registry

FOLDER = "negation"

_Phrase = tuple[str, ...]  # words; `*` at an end of one stands for any letters, alone for any word


class Words(NamedTuple):
    """The words of a language that negate, and the phrases with them that do not ("not only")."""

    negation: tuple[_Phrase, ...]
    unless: tuple[_Phrase, ...]
    hash: str

    def negates(self, sentence: str) -> bool:
        """Tell whether a sentence has a negation, however many."""
        words = text.tokens(text.normalise(sentence))
        free = [True] * len(words)
        for at in range(len(words)):
            for phrase in self.unless:
                if _begins(words, at, phrase):
                    free[at : at + len(phrase)] = [False] * len(phrase)
        return any(
            free[at] and _begins(words, at, phrase)
            for at in range(len(words))
            for phrase in self.negation
        )


@functools.cache
def load(lang: str) -> Words | None:
    """Read the negations of a language, or of a mixture (`kk-x-ru`: both); None if it has none."""
    mixture = lang.split("-x-")
    found = [registry.PROMPTS / FOLDER / f"{code}.toml" for code in mixture]
    if not all(path.is_file() for path in found):
        return None
    all_words = [read(path) for path in found]
    return Words(
        tuple(phrase for one in all_words for phrase in one.negation),
        tuple(phrase for one in all_words for phrase in one.unless),
        packs.file_hash(*found),
    )


def read(path: Path) -> Words:
    """Read and check one file of `prompts/negation`. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    packs.no_more(row, {"review", "negation", "unless"}, path)
    packs.string(row, "review", path)
    lists = {key: packs.strings(row, key, path) for key in ("negation", "unless")}
    if not lists["negation"]:
        raise InputError(f"{path}: 'negation' has no word")
    for phrase in (*lists["negation"], *lists["unless"]):
        if not text.well_formed(phrase):
            raise InputError(f"{path}: {phrase!r}: a bracket without its other half")
    return Words(_phrases(lists["negation"]), _phrases(lists["unless"]), packs.file_hash(path))


def _phrases(patterns: Sequence[str]) -> tuple[_Phrase, ...]:
    """Split each phrase of the patterns into words, as a text is split."""
    made = []
    for pattern in patterns:
        for phrase in text.expand(text.normalise(pattern)):
            # Only Chinese parts have several words, and these have no `*`.
            split = [[part] if "*" in part else text.tokens(part) for part in phrase.split()]
            made.append(tuple(word for words in split for word in words))
    return tuple(dict.fromkeys(made))


def _begins(words: Sequence[str], at: int, phrase: _Phrase) -> bool:
    return at + len(phrase) <= len(words) and all(
        _fits(pattern, words[at + n]) for n, pattern in enumerate(phrase)
    )


def _fits(pattern: str, word: str) -> bool:
    bare = pattern.strip("*")
    if pattern.startswith("*") and pattern.endswith("*"):
        return bare in word and (not bare or word != bare)
    if pattern.startswith("*"):
        return word.endswith(bare) and word != bare
    return word.startswith(bare) if pattern.endswith("*") else word == bare
