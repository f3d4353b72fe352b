"""What people read who fill in sheets, in their language, and the answers that they can give.

One file a language, in `prompts/sheets`. A question that a file leaves out is asked in English.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.resources import packs, registry
from genprobe.text import nfkc

FOLDER = "sheets"
ENGLISH = "en"
SHOWN = (
    "lang",
    "asked",
    "reply",
)  # the columns of a review's sheet between `row` and its questions
_TEXTS = ("page", "judging", "warning", "cells")
_STEPS = ("open", "save")  # by format
_WORDS = (
    *("page", "answers", "choose", "private"),
    *("row", "sentence", "first", "second", "asked"),
)


@dataclass(frozen=True)
class Guide:
    """The texts that people read in a language, and the answers that they can write.

    texts: `page` for reviewers of replies, `judging` for those who judge sentences, and what goes
    into them. steps: format of a sheet -> how to open and save it. words: names of sheets, of
    columns, and of what people may say about themselves. heads, about: column or question of a
    review -> its heading, and its explanation. words_of: question -> answer -> the words that count
    as it, of which the first is offered.
    """

    lang: str
    review: str
    texts: dict[str, str]
    steps: dict[str, dict[str, str]]
    words: dict[str, str]
    heads: dict[str, str]
    about: dict[str, str]
    words_of: dict[str, dict[str, list[str]]]

    def offered(self, question: str) -> list[str]:
        """List the answers to a question of a review, of which a list offers one."""
        found = {answer: words[0] for answer, words in self.words_of[question].items()}
        if question == "language":
            codes = registry.names("languages")
            return [*map(self.language, codes), *(w for a, w in found.items() if a not in codes)]
        return list(found.values())

    def language(self, code: str) -> str:
        """Name a language as this one does, or else as itself does."""
        named = self.words_of["language"].get(code)
        if named:
            return named[0]
        one = packs.load_language(code)
        return one.name if self.lang == ENGLISH else one.native

    def write(self, page: str, form: str, **parts: str) -> str:
        """Write a page. form: of the sheet, `csv` or `xlsx`. parts: what else stands in it."""
        text = self.texts[page]
        for name, part in {**self.texts, **self.steps[form], **parts}.items():
            text = text.replace(f"{{{name}}}", part)
        return text.replace("\n\n\n\n", "\n\n") + "\n"


def choose(langs: Sequence[str], asked: str = "", known: Sequence[str] = ()) -> str:
    """Choose the language of sheets: the one asked for, else that of their texts, else English.

    langs: the languages of the texts. known: further languages that the sheet can be in. Raises
    InputError if the one that is asked for has no file in `prompts/sheets`.
    """
    there = {*registry.names(FOLDER), *known}
    if asked:
        code = packs.language_code(asked) if asked not in there else asked
        if code not in there:
            raise registry.unknown("language of sheets", asked, sorted(there))
        return code
    first = next(iter(langs), "")
    return first if len(set(langs)) == 1 and first in there else ENGLISH


def direction(lang: str) -> str:
    """Return the direction of a language's script: `ltr`, `rtl`."""
    return packs.load_language(lang).direction if lang in registry.names("languages") else "ltr"


@functools.cache
def load(lang: str = ENGLISH) -> Guide:
    """Read the guide of a language; the English one if it has none. InputError if malformed."""
    known = registry.names(FOLDER)
    return read(registry.path(FOLDER, f"{lang if lang in known else ENGLISH}.toml"))


def read(path: Path) -> Guide:
    """Read and check a guide. Raises InputError if it is malformed."""
    try:
        row = packs.read_toml(path)
        english = row if path.stem == ENGLISH else packs.read_toml(registry.beside(path, ENGLISH))
        return _guide(row, english, path)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: something is missing or not a text ({error})") from None


def _guide(row: dict[str, Any], english: dict[str, Any], path: Path) -> Guide:
    questions = english["questions"] | row["questions"]
    for name, part in row["questions"].items():
        if name not in english["questions"]:
            raise InputError(f"{path}: {name!r} is no question; known: {', '.join(questions)}")
        answers = english["questions"][name]["words"]
        if not part["words"].keys() >= answers.keys() - set(registry.names("languages")):
            raise InputError(f"{path}: {name!r} needs a word for each of {', '.join(answers)}")
    parts = row["columns"] | questions
    names = ("row", *SHOWN, "comment", *questions)
    guide = Guide(
        lang=path.stem,
        review=row["review"],
        texts={name: row[name].strip() for name in _TEXTS},
        steps={
            form: {step: row[form][step].strip() for step in _STEPS} for form in ("csv", "xlsx")
        },
        words={name: row["words"][name] for name in (*_WORDS, *row["words"])},
        heads={name: parts[name]["head"] for name in names},
        about={name: parts[name]["about"].strip() for name in names},
        words_of={name: part["words"] for name, part in questions.items()},
    )
    _meanings([guide], path)
    return guide


def questions() -> list[str]:
    """List the questions that people can be asked about replies."""
    return list(load().words_of)


def answer(question: str, text: str) -> str | None:
    """Return the answer that somebody's text stands for in any language; None if it is none."""
    word = _fold(text)
    found = _known()[question].get(word)
    if found is None and question == "language":
        try:
            return packs.language_code(word)
        except InputError:
            return None
    return found


@functools.cache
def _known() -> dict[str, dict[str, str]]:
    return _meanings(list(map(load, registry.names(FOLDER))), registry.path(FOLDER))


def _meanings(guides: Sequence[Guide], path: Path) -> dict[str, dict[str, str]]:
    """Return question -> folded word -> answer. Raises InputError if a word is two answers."""
    found: dict[str, dict[str, str]] = {}
    for guide in guides:
        for question, answers in guide.words_of.items():
            known = found.setdefault(question, {})
            for word, means in _every(question, answers):
                if known.setdefault(_fold(word), means) != means:
                    raise InputError(f"{path}: {word!r} is two answers to {question!r}")
    for code in registry.names("languages"):
        one = packs.load_language(code)
        found["language"] |= {_fold(name): code for name in (code, one.name, one.native)}
    return found


def _every(question: str, answers: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the words for answers, also those of yes and no in the questions of every language."""
    for means, words in answers.items():
        yield means, means
        for word in words:
            yield word, means
        if means in packs.ANSWERS:
            for own in packs.load_pack("yesno").answers.values():
                yield own[means], means


def _fold(text: str) -> str:
    return " ".join(nfkc(text).casefold().split()).strip(" .,;:!\"'«»“”()")
