"""Read the words of the report in the reader's language, and its glossary: prompts/page/*.toml.

Every language has the keys of English, with the same slots; `read` refuses a file that has not.
Only a phrase may be missing: the page then has it in English, and says that it is English.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from genprobe.errors import InputError
from genprobe.resources import packs, registry

FAMILY = "page"
ENGLISH = "en"
_PARTS = ("page", "notes", "finding", "measures", "methods", "phrases", "browser")
# What each figure is, by the name of its metric; in English, the metric says it itself.
METRICS = "metrics."
# Keys of texts that stand in the page in English and are translated there: of the page, and of the
# script that shows its replies.
BROWSER = "browser."
_PHRASES = ("phrases.", BROWSER)


@dataclass(frozen=True)
class Term:
    """A word that the page explains. forms: how it is written in English sentences (patterns)."""

    key: str
    name: str
    text: str
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Words:
    """The words of the page in a language.

    review: who has read them. texts: `part.key` -> text with slots. terms: the glossary.
    """

    code: str
    review: str
    texts: Mapping[str, str]
    terms: tuple[Term, ...]

    def __call__(self, key: str, **slots: object) -> str:
        """Return a text with its slots filled: own words as `measure`, names and numbers as others.

        Names are isolated, since they are in another language, and often in another direction.
        """
        if self.translated:
            slots = {k: v if k == "measure" else self.isolated(v) for k, v in slots.items()}
        return self.texts[key].format(**slots)

    def isolated(self, value: object) -> str:
        """Put a name, and from right to left a number, between the signs that isolate it."""
        text = str(value)
        apart = self.direction == "rtl" or re.search("[A-Za-z]", text)
        return f"\u2068{text}\u2069" if apart and "\u2068" not in text else text

    def phrase(self, text: str) -> str | None:
        """Translate an English text of the page; None where the language has no words for it.

        What stands in a slot is translated, too, where there are words for it; else it is a name.
        """
        if not self.translated:
            return text
        exact, patterns = _phrases()
        text = " ".join(text.split())
        if found := self.texts.get(exact.get(text.casefold(), "")):
            return found
        for key, pattern in patterns:
            if key in self.texts and (parts := pattern.fullmatch(text)):
                slots = parts.groupdict()
                told = {name: self.phrase(value) for name, value in slots.items()}
                if slots.keys() >= {"name", "measure"}:
                    told["measure"] = self.measure(slots["name"])
                if told.get("title", "") is not None:  # a title is a phrase itself
                    put = {name: new or self.isolated(slots[name]) for name, new in told.items()}
                    return self.texts[key].format(**put)
        return _tongues(text)

    def measure(self, name: str) -> str | None:
        """Say what a metric is; None where the language has no words for it.

        The mean over wordings of a metric is put together of its own words and the metric's.
        """
        if found := self.texts.get(METRICS + name):
            return found
        for key, text in self.texts.items():
            ending = key.removeprefix(METRICS)
            if key != ending and "{" in text and name.endswith(f"-{ending}"):
                of = self.measure(name.removesuffix(f"-{ending}"))
                return of and self(key, measure=of)
        return None

    def browser(self) -> dict[str, str]:
        """Return the words of the script that shows replies: English text -> text."""
        english = load(ENGLISH).texts
        return {english[k]: text for k, text in self.texts.items() if k.startswith(BROWSER)}

    @property
    def direction(self) -> str:
        return packs.load_language(self.code).direction

    @property
    def mark(self) -> str:
        """Return the attributes of what stays English, so that a screen reader speaks it right."""
        if not self.translated:
            return ""
        return ' lang="en" dir="ltr"' if self.direction == "rtl" else ' lang="en"'

    @property
    def translated(self) -> bool:
        return self.code != ENGLISH

    @property
    def unread(self) -> bool:
        return self.review.startswith("awaiting")


def _tongues(text: str) -> str | None:
    """Name languages in themselves that are named in English; None if they are something else."""
    parts = re.split(", | and ", text)
    known = _natives()
    return ", ".join(known[part] for part in parts) if set(parts) <= known.keys() else None


@functools.cache
def _natives() -> dict[str, str]:
    every = map(packs.load_language, registry.names("languages"))
    return {language.name: language.native for language in every}


@functools.cache
def _phrases() -> tuple[dict[str, str], list[tuple[str, re.Pattern[str]]]]:
    """Return the English phrases: text -> key, and (key, pattern) of those that have slots.

    The longest come first, and no slot holds more than a sentence, so that none takes another's.
    """
    every = {k: v for k, v in load(ENGLISH).texts.items() if k.startswith(_PHRASES)}
    exact = {text.casefold(): key for key, text in every.items() if "{" not in text}
    slotted = [k for k, v in every.items() if "{" in v and not k.startswith(BROWSER)]
    slotted.sort(key=lambda key: -len(every[key]))
    slot = r"(?P<\1>(?:(?!\\. |: ).){1,300})"
    patterns = [
        (key, re.compile(re.sub(r"\\\{(\w+)\\\}", slot, re.escape(every[key])))) for key in slotted
    ]
    return exact, patterns


@functools.cache
def load(code: str) -> Words:
    """Load the words of a language. Raises InputError if there are none, or they are malformed."""
    registry.check(FAMILY, code)
    return read(registry.path(FAMILY, f"{code}.toml"))


def read(path: Path) -> Words:
    """Read and check one file. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    packs.no_more(row, {"review", "terms", "metrics", *_PARTS}, path)
    texts = {
        f"{part}.{key}": packs.string(found, key, path)
        for part in (*_PARTS, *(["metrics"] if "metrics" in row else []))
        for found in [packs.table(row, part, path)]
        for key in found
    }
    terms = []
    for key, of in packs.table(row, "terms", path).items():
        if not isinstance(of, dict):
            raise InputError(f"{path}: [terms.{key}] must be a table")
        packs.no_more(of, {"name", "text", "forms"}, path, f"terms.{key}.")
        name, text = (packs.string(of, part, path) for part in ("name", "text"))
        terms.append(Term(key, name, text, packs.strings(of, "forms", path)))
    made = Words(path.stem, packs.string(row, "review", path), texts, tuple(terms))
    if path.stem != ENGLISH:
        for fault in _faults(made, read(registry.beside(path, ENGLISH))):
            raise InputError(f"{path}: {fault}")
    return made


def _faults(words: Words, english: Words) -> Iterator[str]:
    """Say in which keys and slots a language differs from English."""
    ours, theirs = (
        {**one.texts, **{f"terms.{t.key}": t.text for t in one.terms}} for one in (words, english)
    )
    for key in sorted(ours.keys() ^ theirs.keys()):
        if not key.startswith(METRICS if key in ours else _PHRASES):
            yield f"{key!r} is {'unknown' if key in ours else 'missing'}"
    for key in sorted(ours.keys() & theirs.keys()):
        if _slots(ours[key]) != _slots(theirs[key]):
            told = " ".join(sorted(_slots(theirs[key]))) or "no slot"
            yield f"{key!r} must have {told}, each once"


def _slots(text: str) -> list[str]:
    return sorted(re.findall(r"\{[^{}]*\}|[{}]", text))
