"""Choose the form of the article, or other word, that stands right before a phrase.

The rules are the table `[[articles]]` of a language's file in `prompts/lexicon`: the words of a set
(a, an; il, lo, l', i, gli) and, by gender and number, patterns for the beginning of the phrase,
each with its word; `<name>` in a pattern stands for that of `[sounds]`. The word of a template may
be any of the set. It is changed only if it can be the word that the rules give in the number, and
the gender, that the template asks for: the German `der` before a feminine is another case and is
left alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe.errors import InputError
from genprobe.resources import packs, registry

FOLDER = "lexicon"
GENDERS = ("MASC", "FEM", "NEUT")
NUMBERS = ("SG", "PL")
KEYS = {"all", *NUMBERS, *GENDERS, *(f"{g}-{n}" for g in GENDERS for n in NUMBERS)}
_Rules = tuple[tuple[re.Pattern[str], str], ...]


class Articles(NamedTuple):
    """A set of words of which one stands before a phrase.

    pattern: finds a word of the set at the end of a text. rules: of a gender ("" for none) and a
    number, in order; the first whose pattern fits the beginning of the phrase gives the word.
    """

    pattern: re.Pattern[str]
    rules: dict[tuple[str, str], _Rules]

    def chosen(self, gender: str, number: str, phrase: str) -> str | None:
        """Return the word before a phrase; None if no rule fits."""
        rules = self.rules.get((gender, number), ())
        return next((word for pattern, word in rules if pattern.match(phrase)), None)


def before(
    text: str,
    phrase: str,
    sets: Sequence[Articles],
    asked: tuple[str, str] = ("", ""),
    is_: tuple[str, str] = ("", ""),
) -> tuple[str, bool]:
    """Give the word at the end of a text the form that stands before a phrase.

    text: what precedes the phrase. asked: gender and number that the template asks for, is_: those
    of the phrase; "" where they are not known. Returns the text, and whether the form is certain.
    """
    matches = [(found, one) for one in sets if (found := one.pattern.search(text))]
    if matches:  # "de la" rather than "la"
        found, one = min(matches, key=lambda match: match[0].start())
        written = _plain(found[1])
        # What the word in the template may be, by the rules of its set.
        possible = [
            (gender, number)
            for (gender, number), rules in one.rules.items()
            if _agree((gender, number), asked) and any(word == written for _, word in rules)
        ]
        numbers = {number for _, number in possible}
        wanted = [
            key
            for key in one.rules
            if key[1] in numbers
            and (_agree(key, is_) if is_[0] else key in possible and _agree(key, ("", is_[1])))
        ]
        words = {one.chosen(*key, phrase) for key in wanted} - {None}
        if not possible:
            return text, True  # another case, or no article
        if len(words) != 1:
            return text, False
        word = str(words.pop())
        word = word[:1].upper() + word[1:] if found[1][:1].isupper() else word
        return text[: found.start(1)] + (word if word.endswith("'") else f"{word} "), True
    return text, True


def _agree(key: tuple[str, str], known: tuple[str, str]) -> bool:
    return all(not given or given == part for part, given in zip(key, known, strict=True))


def _plain(word: str) -> str:
    return " ".join(word.replace("’", "'").casefold().split())


@functools.cache
def load(lang: str) -> tuple[Articles, ...]:
    """Read the articles of a language; none if it has no file, or no article."""
    path = registry.path(FOLDER, f"{lang}.toml")
    return read(packs.read_toml(path), path) if path.is_file() else ()


def read(row: Mapping[str, Any], path: Path) -> tuple[Articles, ...]:
    """Read `[[articles]]` of a file. Raises InputError that says what is wrong."""
    packs.shaped(dict(row), {"articles": list[dict[str, Any]], "sounds": dict[str, str]}, path)
    sounds = {f"<{name}>": f"(?:{pattern})" for name, pattern in row.get("sounds", {}).items()}
    found = []
    for part in row.get("articles", ()):
        words = packs.strings(part, "words", path)
        odd = sorted(part.keys() - KEYS - {"words"})
        if odd or not words:
            what = f"{odd[0]!r} is no gender, number or both" if odd else "no 'words'"
            raise InputError(f"{path}: [[articles]]: {what}")
        spelled = (re.escape(word).replace("'", "['’]") for word in words)
        choices = "|".join(
            word if word.endswith("]") else rf"{word}\s+" for word in sorted(spelled, key=len)[::-1]
        )
        rules = {}
        for gender in ("", *GENDERS):
            for number in NUMBERS:
                keys = [f"{gender}-{number}", gender, number, "all"]
                table = next((part[key] for key in keys if key in part), None)
                if table is not None:
                    rules[gender, number] = _rules(table, sounds, path)
        pattern = re.compile(rf"(?<![\w'’])({choices})\Z", re.IGNORECASE)
        found.append(Articles(pattern, rules))
    return tuple(found)


def _rules(table: Any, sounds: Mapping[str, str], path: Path) -> _Rules:
    def spelled(pattern: str) -> str:
        return re.sub(r"<\w+>", lambda name: sounds[name[0]], pattern)

    try:
        return tuple((re.compile(spelled(pattern), re.IGNORECASE), word) for pattern, word in table)
    except (TypeError, ValueError, KeyError, re.error) as error:
        raise InputError(f"{path}: [[articles]]: {table!r} ({error})") from None
