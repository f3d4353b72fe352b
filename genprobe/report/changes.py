"""The answers that changed between two runs, with both replies side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from genprobe.analysis import flips
from genprobe.errors import InputError
from genprobe.records import FACETS
from genprobe.report.sources import Source
from genprobe.text.display import clean, label

MOST = 20  # changed answers that are shown for each measure


@dataclass(frozen=True)
class Side:
    """One of the two replies. says: what it was read as."""

    run: str
    says: str
    reply: str


@dataclass(frozen=True)
class Change:
    """A question to which two runs gave different clear answers.

    about: the probe, the wording and other properties of the request, in words.
    """

    statement: str
    lang: str
    about: str
    sides: tuple[Side, Side]


@dataclass(frozen=True)
class Changes:
    """The changed answers of two runs for one measure. more: how many of them are not shown."""

    title: str
    rows: list[Change]
    more: int


def _changes(one: Source, other: Source, measure: str) -> Changes | None:
    """Collect the answers of two runs that differ, in the order of the first run.

    measure: `endorsed` or `recognised`. Returns None if no answer differs.
    """
    found = flips.changed(one.with_texts("response"), other.with_texts("response"), measure)
    if not found:
        return None
    texts = one.texts()
    rows = []
    for row in found[:MOST]:
        facts = [row[name] for name in ("probe", *FACETS) if row.get(name) not in (None, "")]
        if row["sample"]:
            facts.append(f"sample {row['sample']}")
        sides = [
            Side(label(source.name), _said(row[f"says_{side}"], measure), _lines(row[side]))
            for side, source in (("old", one), ("new", other))
        ]
        rows.append(
            Change(
                statement=clean(str(texts.get((row["lang"], row["statement"]), row["statement"]))),
                lang=str(row["lang"]),
                about=", ".join(map(label, map(str, facts))),
                sides=(sides[0], sides[1]),
            )
        )
    up = sum(bool(row["says_new"]) for row in found)
    title = (
        f"{measure.capitalize()}, from {one.name} to {other.name}: {up} answers up, "
        f"{len(found) - up} down"
    )
    return Changes(clean(title), rows, max(0, len(found) - MOST))


def _lines(reply: object) -> str:
    return "\n".join(map(clean, str(reply).splitlines()))


def _said(says: object, measure: str) -> str:
    return measure if says else f"not {measure}"


def of_runs(one: Source, other: Source) -> Iterator[Changes]:
    """Return the changes for each of the two measures that was asked about and changed."""
    for measure in ("endorsed", "recognised"):
        with contextlib.suppress(InputError, KeyError):
            if found := _changes(one, other, measure):
                yield found
