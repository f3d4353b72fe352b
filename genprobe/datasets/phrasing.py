"""The words by which replies name options (`prompts/options`), and the meaning of options.

`lexicon` compiles the words of a language together with the English ones. `unknown` finds the
option that says that it cannot be known, and `meant` those that say "both" or "neither".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from genprobe import text
from genprobe.datasets import choices
from genprobe.errors import InputError
from genprobe.resources import packs, registry

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
PLACES = (*ORDINALS, "last", "former", "latter", "middle")
GROUPS = (
    *(
        "back",
        "label",
        "noun",
        "after",
        "wrong",
        "not",
        "instead",
        "because",
        "although",
        "so",
        "but",
    ),
    *("both", "together", "neither", "none", "unknown", "torn", "question", "other", *PLACES),
)


# What sets people apart, as pairs of opposites: the words by which a reply may describe an option.
PEOPLE = (("young", "old"), ("woman", "man"))


_HAN = re.compile(rf"[{text.HAN}]")


@dataclass(frozen=True)
class Words:
    """The content of one file of `prompts/options`."""

    letters: tuple[tuple[str, ...], ...]  # series of letters that number options in the script
    ending: int  # letters that inflection adds to a word or changes at its end
    prefixes: tuple[str, ...]  # words that are written together with the next word
    small: tuple[str, ...]  # articles and similar words, by which no option is recognised
    fold: dict[str, str]  # spellings that count as the same, in addition to those of the language
    tell: tuple[str, ...]  # beginnings of words of knowing and telling
    deny: tuple[str, ...]  # beginnings of words that deny
    source: tuple[str, ...]  # beginnings of words for the given text
    decline: tuple[str, ...]  # beginnings of words for what a refusal declines to do
    refuse: tuple[str, ...]  # phrases that decline
    whether: tuple[str, ...]  # words of indirect questions
    groups: dict[str, tuple[str, ...]]
    people: dict[str, tuple[str, ...]]  # name in `PEOPLE` -> beginnings of words, or phrases


class Lexicon(NamedTuple):
    """The words of a language and of English, compiled for matching."""

    phrases: text.Phrases
    fold: dict[str, str]
    letters: dict[str, tuple[int, ...]]  # letter -> its numbers, in the order of the series
    ending: int
    prefixes: tuple[str, ...]
    own: frozenset[str]  # small words of the language itself
    small: frozenset[str]  # small words of the language and of English
    latin: bool  # whether the language is written in Latin letters
    ors: frozenset[str]
    nouns: tuple[str, ...]
    tell: tuple[str, ...]
    deny: tuple[str, ...]
    source: tuple[str, ...]
    decline: tuple[str, ...]
    refuse: text.Phrases
    whether: tuple[str, ...]

    def denies(self, word: str) -> bool:
        """Tell whether a word denies."""
        return f"{word} ".startswith(self.deny)


def tokens(option: str, fold: dict[str, str]) -> list[str]:
    """Split an option into words, normalised and folded in the same way as a reply."""
    return text.tokens(text.replace(text.normalise(option), fold))


def simplified(words: list[str]) -> list[str]:
    """Write words of Chinese in simplified characters."""
    return [word.translate(_forms()) if _HAN.match(word) else word for word in words]


@functools.cache
def _forms() -> dict[int, int]:
    path = registry.path("han.toml")
    row = packs.read_toml(path)
    one, other = (packs.string(row, name, path) for name in ("traditional", "simplified"))
    return str.maketrans(one, other)


@functools.cache
def words(code: str) -> Words:
    """Read `prompts/options/<code>.toml`. Raises InputError if it is malformed."""
    return read_words(registry.path("options", f"{code}.toml"))


def read_words(path: Path) -> Words:
    """Read and check one file of words. Raises InputError if it is malformed."""
    row = packs.read_toml(path)
    lists = {
        "letters",
        "prefixes",
        "small",
        "tell",
        "deny",
        "source",
        "decline",
        "refuse",
        "whether",
    }
    packs.no_more(row, {"review", "ending", "fold", "words", "people", *lists}, path)
    packs.string(row, "review", path)
    part = packs.table(row, "words", path)
    packs.no_more(part, set(GROUPS), path, "words.")
    people = packs.table(row, "people", path)
    packs.no_more(people, {name for pair in PEOPLE for name in pair}, path, "people.")
    ending = row.get("ending", 0)
    if not isinstance(ending, int):
        raise InputError(f"{path}: 'ending' must be a number of letters")
    return Words(
        letters=tuple(tuple(s.split()) for s in packs.strings(row, "letters", path)),
        ending=ending,
        prefixes=packs.strings(row, "prefixes", path),
        small=packs.strings(row, "small", path),
        fold={str(old): str(new) for old, new in row.get("fold", {}).items()},
        tell=packs.strings(row, "tell", path),
        deny=packs.strings(row, "deny", path),
        source=packs.strings(row, "source", path),
        decline=packs.strings(row, "decline", path),
        refuse=packs.strings(row, "refuse", path),
        whether=packs.strings(row, "whether", path),
        groups={group: packs.strings(part, group, path) for group in GROUPS},
        people={name: packs.strings(people, name, path) for pair in PEOPLE for name in pair},
    )


def _groups(code: str) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield (group, phrases) of a language; option words last, since other groups have them too."""
    own = words(code)
    known = choices.wording(code).unknown
    yield "unknown", (*own.groups["unknown"], *known)
    yield from ((group, own.groups[group]) for group in GROUPS if group != "unknown")


@functools.cache
def lexicon(code: str) -> Lexicon:
    """Compile the words of a language and of English; only of English if it has no file."""
    code = code if code in registry.names("options") else "en"
    language, own, english = packs.load_language(code), words(code), words("en")
    fold = language.fold | own.fold

    def folded(*lists: Iterable[str]) -> list[str]:
        return [text.replace(text.normalise(w), fold) for ws in lists for w in ws]

    groups = [*_groups(code), *(_groups("en") if code != "en" else ())]
    letters: dict[str, tuple[int, ...]] = {}
    for series in own.letters:
        for number, letter in enumerate(series):
            known = letters.get(text.normalise(letter), ())
            letters[text.normalise(letter)] = (*known, number)
    return Lexicon(
        text.compile_phrases(groups, fold),
        fold,
        letters,
        own.ending,
        tuple(folded(own.prefixes)),
        frozenset(folded(own.small)),
        frozenset(folded(own.small, english.small)),
        any(word.isascii() for word in own.small),
        frozenset(folded(language.words["or"], packs.load_language("en").words["or"])),
        _long(own.groups["noun"], fold),
        tuple(folded(own.tell, english.tell)),
        tuple(folded(own.deny, english.deny)),
        tuple(folded(own.source, english.source)),
        tuple(folded(own.decline, english.decline)),
        text.compile_phrases([("refuse", (*own.refuse, *english.refuse))], fold),
        tuple(folded(own.whether, english.whether)),
    )


def _long(patterns: Iterable[str], fold: dict[str, str]) -> tuple[str, ...]:
    """Return those phrases of patterns that are a single word of four letters or more."""
    found = [split for pattern in patterns for _, split in text.plain_phrases(pattern)]
    folded = [text.replace(split[0], fold) for split in found if len(split) == 1]
    return tuple(word for word in folded if len(word) > 3)


@functools.cache
def people(lang: str = "") -> dict[str, tuple[str, str]]:
    """Return the words of `PEOPLE`: beginning of a word -> (name, its opposite).

    lang: the words of this language and of English; "": those of all languages.
    """
    known = registry.names("options")
    found = {}
    for code in dict.fromkeys(c for c in ("en", lang) if c in known) if lang else known:
        own = words(code)
        for pair in PEOPLE:
            for name, other in (pair, pair[::-1]):
                for word in own.people[name]:
                    for prefix in ("", *own.prefixes):
                        found[text.normalise(prefix + word)] = (name, other)
    return found


def described(said: str, known: Mapping[str, tuple[str, str]]) -> set[tuple[str, str]]:
    """Find what a text says of people: (name in `PEOPLE`, its opposite).

    A beginning of four letters or more may be inflected; of those that a word has, the longest
    counts. known: as `people` returns it.
    """
    found = set()
    split = text.tokens(text.normalise(said))
    for word in split:
        begun = (word[:n] for n in range(len(word), max(3, len(word) - 5), -1))
        best = next((known[b] for b in (word, *begun) if b in known), None)
        if best:
            found.add(best)
    lines = {True: "".join(split), False: " ".join(split)}
    for phrase, sides in known.items():
        han = bool(_HAN.match(phrase))
        if (han or " " in phrase) and phrase in lines[han]:
            found.add(sides)
    return found


@functools.cache
def unknown(lang: str, options: tuple[str, ...]) -> int | None:
    """Return the option that says that it cannot be known; None if there is not just one.

    The ways to find it are tried in this order: the words of `choices`; a phrase that is most of
    the option; a word of knowing or telling together with a denial; "neither".
    """
    known_words = lexicon(lang)
    known = {
        choices.bare(word)
        for word in (*choices.wording(lang).unknown, *choices.wording("en").unknown)
    }
    found = [at for at, option in enumerate(options) if choices.bare(option) in known]
    if not found:
        found = [at for at, option in enumerate(options) if _says(known_words, option, "unknown")]
    if not found:
        found = [at for at, option in enumerate(options) if _untells(known_words, option)]
    if not found:
        found = [at for at, option in enumerate(options) if _says(known_words, option, "neither")]
    return found[0] if len(found) == 1 else None


def _untells(lexicon: Lexicon, option: str) -> bool:
    """Tell whether an option denies knowing or telling something, in words that no phrase lists."""
    said = tokens(option, lexicon.fold)
    return (
        len(said) > 1
        and any(f"{word} ".startswith(lexicon.tell) for word in said)
        and any(map(lexicon.denies, said))
    )


def meant(lang: str, options: tuple[str, ...], unknown: int | None) -> dict[str, int]:
    """Return the options that say "both" (or "all") and "neither": name of the group -> option."""
    found = {}
    for group in ("both", "neither"):
        said = [at for at, option in enumerate(options) if _says(lexicon(lang), option, group, 1)]
        if len(said) == 1 and said[0] != unknown:
            found[group] = said[0]
    return found


def _says(lexicon: Lexicon, option: str, group: str, least: int = 0) -> bool:
    """Tell whether a phrase of this group covers more than half of an option's words.

    least: 1 if exactly half of the words is enough, else 0.
    """
    said = tokens(option, lexicon.fold)
    if group == "unknown":  # in "the text is unclear", "the text" does not count
        said = [t for t in said if not t.startswith(lexicon.source)] or said
    at = held = 0
    while at < len(said):
        found = [size for kind, size in text.matches(lexicon.phrases, said, at) if kind == group]
        held += found[0] if found else 0
        at += found[0] if found else 1
    return held * 2 >= 1 - least + len([t for t in said if t not in lexicon.small]) and held > 0
