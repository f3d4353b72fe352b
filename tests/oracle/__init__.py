"""Recompute every stored figure independently, in a slow and obvious way.

No code is shared with the table of outcomes or with `metrics` (except the versions of its
definitions): the records of a run are read one by one, a figure is a loop over them, and an
interval follows its definition. Wherever the two computations disagree, one of them is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from genprobe import metrics
from genprobe.analysis import second
from genprobe.errors import InputError
from genprobe.files import door
from genprobe.judges import yesno
from genprobe.records import Score, digest
from genprobe.runs.run import Run
from oracle import answers, judged, preferences, reviewed, rows, stories
from oracle.figures import By, Figure
from oracle.intervals import close
from oracle.rows import Row

_WAYS = answers.WAYS | judged.WAYS | stories.WAYS | preferences.WAYS
_DEFINED = re.compile(r"metric:([^/|]+/\d+-[\w-]+)")
_SUBSET = re.compile(r"\+regions:([^|]*)")


@dataclass(frozen=True)
class Recomputed:
    """The result of recomputing the figures of a run.

    differences: one line for each difference found. figures: how many figures were recomputed.
    left: metric -> why its figures could not be recomputed.
    """

    differences: list[str]
    figures: int
    left: dict[str, str]


def recompute(run: Run, review: Path | None = None, people: Path | None = None) -> Recomputed:
    """Compare the scores of a run (`scores.json`) with scores recomputed from its records.

    The value, n, exclusions, bounds, interval and readings are compared.

    review: the table of `review import` used for the corrected rates. people: the table of
    people's answers. A figure that needs a table which is not given is not recomputed.

    Raises RunError if the run has no scores, InputError if a table is not the one that the
    figures were computed with.
    """
    of = _Source(run, run.scores(), review, people)
    differences, count, left = [], 0, dict[str, str]()
    for score in of.stored:
        found = of.figure(score)
        if isinstance(found, str):
            left[score.metric] = found
            continue
        count += 1
        cell = ", ".join(f"{name} {value}" for name, value in score.by.items()) or "all"
        wrong = [*_differ(score, found), *of.readings_differ(score)]
        differences += [f"{score.metric} ({cell}): {why}" for why in wrong]
    return Recomputed(differences, count, left)


def figure(metric: str, plain: Sequence[Row], by: By) -> Figure | None:
    """Compute the figure of a metric in a cell; None for a metric that is not known here."""
    way = _WAYS.get(metric)
    return way(plain, by) if way else None


class _Source:
    """The records of a run as rows, as each of its scores counts them."""

    def __init__(
        self, run: Run, stored: Sequence[Score], review: Path | None, people: Path | None
    ) -> None:
        self.stored, self._run, self._people = stored, run, people
        scorers = {str(s.by["scorer"]) for s in stored if "scorer" in s.by}
        self._rows = rows.of_run(run, sorted(scorers))
        if people is not None:
            self._rows = reviewed.with_people(self._rows, people)
        self._review = reviewed.Review(run, self._rows, review) if review is not None else None
        _check_table(stored, "review", review)
        _check_table(stored, "people", people)
        self._again: dict[str, list[Row]] = {}

    def figure(self, score: Score) -> Figure | str:
        """Return the figure of a stored score, or why there is none."""
        if older := _older(score):
            return older
        if "+review-" in score.signature:
            if self._review is None:
                return "it needs the table of the review; give it with --reviewed FILE"
            return self._review.figure(score, self._chosen(score, self._review.rows))
        if "+people-" in score.signature and self._people is None:
            return "it needs the table of people's answers; give it with --people FILE"
        there = self._chosen(score, self._rows)
        unknown = [name for name in score.by if name not in _MADE and not _has(there, name)]
        if unknown:
            return f"the records have no column {', '.join(unknown)}"
        return figure(score.metric, there, score.by) or "--recompute does not know this figure"

    def _chosen(self, score: Score, plain: list[Row]) -> list[Row]:
        """Return the rows that a score covers, restricted to its declarations and regions."""
        if "+declared" in score.signature:
            plain = _declared(plain)
        found = _SUBSET.search(score.signature)
        return rows.beside(plain, score.by, found[1].split(",") if found else ())

    def readings_differ(self, score: Score) -> Iterable[str]:
        """Read the replies again with each reader and describe every reading that differs."""
        rate, by = score.metric, dict(score.by)
        if rate == "measured":
            rate = str(by.pop("rate")).removeprefix("answer ")
        by.pop("decode", None)
        for name, value in (score.readings or {}).items():
            if name in second.ENDS:
                continue  # they follow from the licence
            there = self._chosen(score, self._read_by(name))
            own = name in (second.RULES, second.SECOND, second.AGAIN)
            found = figure(rate, there, dict(score.by) if own else by)
            assert found is not None
            mine = found.value
            if score.metric == "measured" and found.bounds:
                mine = found.bounds[0]
            if not close(value, mine):
                yield f"the stored reading {name} is {value}, and the replies give {mine}"

    def _read_by(self, name: str) -> list[Row]:
        if name not in self._again:
            if name in (second.SECOND, second.AGAIN):
                found = rows.of_run(second.views(self._run).of[name])
            elif name == second.RULES:
                found = self._rows
            elif name in ("choice", "logprob"):
                found = [row for row in self._rows if row["decode"] == name]
            else:
                found = [row for row in self._rows if row["decode"] == "free"]
                if name != "given":
                    judge = yesno.make("" if name == "ours" else name)
                    found = rows.read_again(found, judge)
            self._again[name] = found
        return self._again[name]


def _older(score: Score) -> str:
    """Say that a metric's definition has changed since the score was stored, or return ""."""
    defined = _DEFINED.match(score.signature)
    if defined is None or score.metric not in metrics.catalogue():
        return ""
    now = metrics.find(score.metric)
    own = now.id.partition("+")[0]
    if defined[1].partition("/")[0] != now.name or defined[1] == own:
        return ""
    return f"it was stored as {defined[1]}, and the definition is {own} now; score the run again"


# Columns of cells that a metric adds itself, so no record has them.
_MADE = {"readings", "free", "choice", "logprob", "bin", "region", "inside"}


def _has(there: Iterable[Row], name: str) -> bool:
    return any(name in row for row in there)


def _check_table(stored: Iterable[Score], what: str, table: Path | None) -> None:
    """Raise InputError unless some signature names this table (by its digest)."""
    if table is None:
        return
    own = f"+{what}-{digest(door.content(table).hex(), 8)}"
    if not any(own in score.signature for score in stored):
        raise InputError(
            f"{table}: no figure of this run was computed with this table; give the one that the "
            "run was scored with"
        )


def _declared(plain: Sequence[Row]) -> list[Row]:
    """Keep the originals of type `declaration` whose stereotype is marked valid."""
    kept = []
    for row in plain:
        forms = (row.get("type") or "").casefold().replace(",", "+").split("+")
        declared = "declaration" in [form.strip() for form in forms]
        if row.get("role") == "original" and declared and row.get("valid"):
            kept.append(row)
    return kept


def _differ(score: Score, found: Figure) -> Iterable[str]:
    if not found.is_value(score.value):
        yield f"the stored value is {score.value}, and the records give {found.value}"
    if score.n != found.n:
        yield f"the stored n is {score.n}, and the records give {found.n}"
    if dict(score.excluded) != found.excluded:
        stored = dict(score.excluded)
        yield f"the stored exclusions are {stored}, and the records give {found.excluded}"
    pairs = zip(score.bounds or (None, None), found.bounds or (None, None), strict=True)
    if not all(close(*pair) for pair in pairs):
        yield f"the stored bounds are {score.bounds}, and the records give {found.bounds}"
    if found.is_value(score.value) and score.n == found.n:
        why = found.interval_differs(score.low, score.high)
        if why:
            yield why
