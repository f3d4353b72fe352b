"""The instructions and questions for reviewers, and the answers that they can give."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.resources import packs, registry
from genprobe.text import nfkc

SHOWN = ("lang", "asked", "reply")  # the columns of a sheet between `row` and the questions


@dataclass(frozen=True)
class Guide:
    """The texts that reviewers read, and the answers that they can write."""

    page: str  # the instructions
    heads: dict[str, str]  # column or question -> its heading in the sheet
    about: dict[str, str]  # column or question -> its explanation in the instructions
    words: dict[str, dict[str, str]]  # question -> normalised word -> answer

    def answer(self, question: str, text: str) -> str | None:
        """Return the answer that a reviewer's text stands for; None if it is not an answer."""
        word = _fold(text)
        found = self.words[question].get(word)
        if found is None and question == "language":
            try:
                found = packs.language_code(word)
            except InputError:
                return None
        return found


@functools.cache
def load() -> Guide:
    """Read the guide of `prompts/review.toml`. Raises InputError if it is malformed."""
    return read(registry.PROMPTS / "review.toml")


def read(path: Path) -> Guide:
    """Read and check a guide. Raises InputError if it is malformed."""
    try:
        return _guide(packs.read_toml(path), path)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: something is missing or not a text ({error})") from None


def _guide(row: dict[str, Any], path: Path) -> Guide:
    parts = row["columns"] | row["questions"]
    names = ("row", *SHOWN, "comment", *row["questions"])
    words: dict[str, dict[str, str]] = {}
    for question, part in row["questions"].items():
        known = words.setdefault(question, {})
        for answer, others in part["words"].items():
            for word in (answer, *others, *_translated(question, answer)):
                if known.setdefault(_fold(word), answer) != answer:
                    raise InputError(f"{path}: {word!r} is two answers to {question!r}")
        if question == "language":
            for code in registry.names("languages"):
                one = packs.load_language(code)
                known |= {_fold(name): code for name in (code, one.name, one.native)}
    return Guide(
        page=row["page"].strip(),
        heads={name: parts[name]["head"] for name in names},
        about={name: parts[name]["about"].strip() for name in names},
        words=words,
    )


def _translated(question: str, answer: str) -> Iterator[str]:
    """Return the words for yes and no that the pack's questions ask for, in every language."""
    if answer in packs.ANSWERS:
        yield from (words[answer] for words in packs.load_pack("yesno").answers.values())


def _fold(text: str) -> str:
    return " ".join(nfkc(text).casefold().split()).strip(" .,;:!\"'«»“”()")
