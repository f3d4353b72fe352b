"""Define a recomputed figure and the counting helpers that all metrics share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genprobe.records import JSON
from oracle import intervals
from oracle.intervals import Ends, Sums
from oracle.rows import Row

By = Mapping[str, JSON]
Units = list[tuple[str, Sums]]


@dataclass(frozen=True)
class Figure:
    """The recomputed figure of a cell.

    bounds: as in `Score`. units: the cluster and the additive numbers of each unit counted. ends:
    checks a stored interval against the units. within: relative tolerance for a stored value, for
    metrics that are computed in steps. may_stand_alone: whether an interval may exist without a
    value.
    """

    value: float | None
    n: int
    excluded: dict[str, int]
    bounds: Any = None
    units: Units = field(default_factory=list)
    ends: Ends = intervals.share
    within: float = 0.0
    may_stand_alone: bool = False

    def is_value(self, stored: float | None) -> bool:
        """Tell whether a stored value is this one."""
        if stored is None or self.value is None or not self.within:
            return intervals.close(stored, self.value)
        return abs(stored - self.value) <= self.within * abs(self.value)

    def interval_differs(self, low: float | None, high: float | None) -> str:
        """Say what is wrong with a stored interval, or return ""."""
        stored = None if low is None or high is None else (low, high)
        if self.value is None and not self.may_stand_alone:
            return intervals.none([], stored)
        return self.ends(intervals.by_cluster(self.units), stored)


Way = Callable[[Sequence[Row], By], Figure]


def each(of: Callable[[Sequence[Row]], Figure]) -> Way:
    """Turn a function of a cell's own rows into a `Way`, which takes all rows and the cell."""
    return lambda rows, by: of(in_cell(rows, by))


def in_cell(rows: Iterable[Row], by: By) -> list[Row]:
    """Return the rows that belong to a cell."""
    return [row for row in rows if all(_same(row.get(k), v) for k, v in by.items())]


def _same(value: Any, wanted: JSON) -> bool:
    if isinstance(value, bool) != isinstance(wanted, bool):  # True and 1 are different values
        return isinstance(value, bool) and str(value).lower() == wanted
    return bool(value == wanted)


def cluster(row: Row, item: str = "statement") -> str:
    """Return the cluster of a row (rows in one are not independent): its pair, else statement."""
    return f"pair {row['pair']}" if row.get("pair") else f"{item} {row[item]}"


def counted(why: Iterable[str]) -> dict[str, int]:
    """Count the reasons why units were left out."""
    found: dict[str, int] = {}
    for reason in why:
        if reason:
            found[reason] = found.get(reason, 0) + 1
    return found


def share(
    rows: Sequence[Row],
    why: Callable[[Row], str],
    hit: Callable[[Row], bool],
    name: Callable[[Row], str] = cluster,
) -> Figure:
    """Compute the share of hits among the rows that have no reason to be left out."""
    kept = [row for row in rows if not why(row)]
    units: Units = [(name(row), (float(bool(hit(row))), 1.0)) for row in kept]
    return mean_of(units, counted(map(why, rows)))


def mean_of(
    units: Units,
    excluded: dict[str, int],
    ends: Ends = intervals.share,
    n: int | None = None,
    scale: tuple[float, float] | None = (0.0, 1.0),
) -> Figure:
    """Divide the sum of the units' first numbers by the sum of their second numbers.

    scale: the lowest and the highest value of a unit; None for a figure without bounds.
    """
    above, below = (math.fsum(unit[1][at] for unit in units) for at in (0, 1))
    value = above / below if units else None
    unclear = sum(many for why, many in excluded.items() if why not in _UNASKED)
    bounds = None
    if scale and unclear:
        bounds = tuple((above + unclear * end) / (len(units) + unclear) for end in scale)
    return Figure(value, len(units) if n is None else n, excluded, bounds, units, ends)


# Reasons by which a unit is no part of the question: what it was cannot move the share.
_UNASKED = {"no label", "no target", "no condition", "no group is right", "all reversed"}
_UNASKED |= {"no unknown option", "one condition only"}
_UNASKED |= {"all aligned", "one order only", "one answer only", "nobody asked", "no original"}
_UNASKED |= {
    "one share only",
    "no contrast",
    "one question only",
    "several questions",
    "not asked",
    "no thought",
    "twice",
    "neutral",
}


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return math.fsum(values) / len(values)
