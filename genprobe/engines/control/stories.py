"""The stories of the control model and their planted rates.

A story has one sentence from each bank of its kind, so that five samples are hardly ever the same.
Its opening alone decides the kind. As openings are few, the probability of a kind is an exact sum
over them (`genprobe.engines.control.exact.exact_stories`).
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from pathlib import Path
from typing import Any, NamedTuple

from genprobe.engines.control import vary
from genprobe.errors import InputError
from genprobe.resources.packs import read_toml

STORIES = Path(__file__).parent / "stories"
# Kinds of stories: five Kazakh sentences, negative or positive; only four; in Russian; refused.
LABELS = ("negative", "positive", "short", "russian", "refusal")


class Kind(NamedTuple):
    """Stories of one kind. A text is one sentence of each bank, in order, with spaces between."""

    label: str  # of LABELS
    sentiment: str  # negative, positive, or empty for a refusal
    banks: tuple[tuple[str, ...], ...]

    def draw(self, rng: random.Random) -> list[str]:
        """Draw the sentences of a story, each evenly from its bank."""
        return [rng.choice(bank) for bank in self.banks]


@functools.cache
def kinds(lang: str) -> tuple[Kind, ...]:
    """List the kinds of stories in a language; no two share an opening (`banks[0]`).

    Raises InputError if the control model tells no stories in the language.
    """
    path = STORIES / f"{lang}.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in STORIES.glob("*.toml")))
        raise InputError(
            f"the control model tells no stories in {lang!r}, only in {known}; "
            "name a model with --model"
        )
    rows = read_toml(path)
    found = []
    for sentiment in ("negative", "positive"):
        long = _banks(rows[sentiment])
        # Without the second sentence, so that the next one never depends on earlier ones.
        short = (tuple(rows["short"][sentiment]), *long[2:])
        found += [
            Kind(sentiment, sentiment, long),
            Kind("short", sentiment, short),
            Kind("russian", sentiment, _banks(rows["russian"][sentiment])),
        ]
    return (*found, Kind("refusal", "", (tuple(rows["refusal"]["texts"]),)))


def _banks(row: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row[k]) for k in ("openings", "second", "third", "fourth", "fifth"))


def planted(domain: str = "") -> dict[str, float]:
    """Compute the planted share of each of LABELS for a domain's templates; they add up to 1.

    domain: "" for a template that is not built in.
    """
    faults = {
        "short": 0.06 + 0.03 * vary("story", "short", domain),
        "russian": 0.07 + 0.04 * vary("story", "russian", domain),
        "refusal": 0.03 + 0.01 * vary("story", "refusal", domain),
    }
    level = -0.4 + (1.6 * vary("story", "negative", domain) if domain else 0.0)
    negative = 1 / (1 + math.exp(-level))
    told = 1 - sum(faults.values())
    return {"negative": told * negative, "positive": told * (1 - negative), **faults}


def mixture(lang: str, domain: str = "") -> list[float]:
    """Compute the planted probability of each of `kinds(lang)`, in order; they add up to 1.

    Short and Russian stories are negative as often as positive.
    """
    shares = planted(domain)
    many = [sum(k.label == kind.label for k in kinds(lang)) for kind in kinds(lang)]
    return [shares[k.label] / n for k, n in zip(kinds(lang), many, strict=True)]


def kind_of(text: str, lang: str) -> Kind | None:
    """Find the kind of a planted story; None for any other text, even a garbled story."""
    for kind in kinds(lang):
        if _is_of(text, kind.banks):
            return kind
    return None


def _is_of(text: str, banks: tuple[tuple[str, ...], ...]) -> bool:
    rest = [text]
    for at, bank in enumerate(banks):
        space = " " if at else ""
        rest = [
            left.removeprefix(space + sentence)
            for left, sentence in itertools.product(rest, bank)
            if left.startswith(space + sentence)
        ]
    return "" in rest
