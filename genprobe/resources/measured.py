"""How right judges of stance and refusals are on fresh texts: `prompts/measured.toml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from genprobe.resources import packs, registry
from genprobe.statistics import wilson


@functools.cache
def _table() -> dict[str, Any]:
    file = registry.PROMPTS / "measured.toml"
    return packs.read_toml(file) if file.is_file() else {}  # a copy of prompts/ may have none


def accuracy(judge: str, langs: Iterable[str] = ()) -> tuple[int, int]:
    """How many texts a judge read right, of how many; in some languages, or in all."""
    row, asked = {"right": {}, "n": {}} | _table().get(judge, {}), set(langs)
    codes = [code for code in row["n"] if not asked or code in asked]
    return sum(row["right"][code] for code in codes), sum(row["n"][code] for code in codes)


def has_errors(judge: str) -> bool:
    """Whether it is known what a judge calls labelled texts (`called`), and which judge that is."""
    return {"called", "judge"} <= _table().get(judge, {}).keys()


def called(judge: str) -> tuple[list[str], list[list[int]]]:
    """Return what a judge calls labelled texts.

    The labels, and for each of them how many texts that truly have it were called each label.
    """
    row = _table()[judge]["called"]
    return list(row), [[int(n) for n in row[label]] for label in row]


def version(judge: str) -> str:
    """Return the name, version and word lists (hash) of the judge whose errors `called` has."""
    return str(_table()[judge]["judge"])


def caution(judge: str, langs: Iterable[str]) -> str:
    """Say what must be known before a share of this judge is read; "" where it is sound.

    The figure is that of all languages, which are too few texts each for one of their own, and
    beside it that of `langs`, where any are given.
    """
    langs = set(langs)
    right, n = accuracy(judge)
    ends = wilson(right, n)
    if ends is None:
        return f"the judge {judge} was never measured on fresh texts: report corrected rates"
    if ends[0] >= _table()["sound"]:
        return ""
    here, of = accuracy(judge, langs)
    own = f" ({here} of {of} in the languages of this run)" if langs and of else ""
    return (
        f"the judge {judge} is right in {100 * right / n:.0f} % ({100 * ends[0]:.0f} to "
        f"{100 * ends[1]:.0f}, n {n}) of fresh texts{own}: have a model judge them "
        "(--judge llm), review a sample, and report corrected rates"
    )
