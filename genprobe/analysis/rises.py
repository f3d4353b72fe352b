"""Measure how far a figure moved towards harm from one version of a model to another.

The estimand is over all planned units. A unit that does not count may hide any value, and which it
hides is what a version can change (it hedges where it said no). So there are two movements: with
the unclear units of both versions at the lowest value, and at the highest. If they hide the same
share of yes in both versions, whatever it is, the true movement lies between them. Of a figure that
is a function of sums, such units make it as low, and as high, as they can.

`analysis.gaps` has the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from genprobe import metrics
from genprobe.analysis import paired
from genprobe.analysis.gaps import ONE_SIDED, Gap, OfStatements, fewest
from genprobe.analysis.paired import Matched, Summed
from genprobe.errors import InputError
from genprobe.metrics import PLANNED, Metric, wordings
from genprobe.outcomes.sides import untold
from genprobe.records import JSON
from genprobe.statistics import COLUMNS, Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rise:
    """A movement towards harm, a share.

    unclear: what unclear units are counted as, such as `no` or `yes`; "" if there are none. value:
    the movement; low, high: its one-sided 95 % confidence limits.
    """

    unclear: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Moved:
    """A figure of two versions in one cell.

    by: the cell. estimand: of `metrics.ESTIMANDS`. old, new: the figures, as `score` prints them;
    None if nothing counts. n: planned units, or those that the estimand is over. statements,
    wordings: their numbers; one wording unless the figure is over wordings. gaps: the movements, by
    what unclear units count as; that in which they do no harm is the first. none: the movement if
    nothing had changed.
    """

    by: dict[str, JSON]
    estimand: str
    old: float | None
    new: float | None
    n: int
    statements: int
    wordings: int
    gaps: tuple[tuple[str, Gap], ...]
    none: Gap

    @property
    def method(self) -> str:
        """Return the name of the interval, for signatures."""
        return f"{self.none.method}{100 * ONE_SIDED:g}o"  # o: one-sided

    @cached_property
    def rises(self) -> tuple[Rise, ...]:
        """Return the movements with their limits."""
        return tuple(
            Rise(unclear, gap.value, gap.lower(), gap.upper()) for unclear, gap in self.gaps
        )

    @property
    def high(self) -> float:
        """Return the largest of the upper limits."""
        return max(rise.high for rise in self.rises)

    @cached_property
    def shown(self) -> float:
        """Return the smallest margin that such a sample could show if nothing had changed."""
        return self.none.upper()

    def p(self, most: float) -> float:
        """Return the p-value that the movement is within a margin, with unclear as harmless."""
        return self.gaps[0][1].p(most)

    def needed(self, most: float) -> int | None:
        """Return how many statements, and how many wordings, can show a margin; None if unknown."""
        share = most / self.none.width
        return None if self.none.method == "intervals" or not 0 < share < 1 else fewest(share)


def moved(
    old: pd.DataFrame,
    new: pd.DataFrame,
    metric: str,
    falls: bool = False,
    by: Sequence[str] = (),
) -> list[Moved]:
    """Measure how far a figure moved in each cell of `by`.

    Cells are also split by the columns over which the metric is never pooled. falls: whether a fall
    is the harm. Raises InputError for a metric that does not fit, and if nothing counts in the old
    version.
    """
    chosen = metrics.find(metric)
    if chosen.scale not in ("share", "points"):
        raise InputError(f"{metric} has no limit in points; limit a share")
    cells = paired.cells_of(old, new, metric, by)
    _counts(metric, cells, old)
    found = []
    for cell in cells:
        figures = cell.figures(chosen)
        if isinstance(cell, Matched):
            estimand, sides = _sides(chosen, cell)
            n = next(iter(sides.values()))[..., [1, 3]].sum(1).T
            gaps: dict[str, Gap] = {key: paired.gap_of(chosen, own) for key, own in sides.items()}
            none = paired.gap_of(chosen, next(iter(sides.values()))[..., [0, 1, 0, 1]])
        elif None in figures:
            raise InputError(f"{metric}: nothing counts in a run; nothing to test")
        else:
            estimand, n = chosen.estimand, cell.counted
            ends: dict[str, int | None] = {"": None}
            if cell.unclear:
                estimand, n = PLANNED[estimand], cell.asked
                ends = dict(zip(_hidden(chosen), (0, 1), strict=True))
            gaps = {name: cell.gap(chosen, end) for name, end in ends.items()}
            none = cell.twice(0).gap(chosen, 0 if cell.unclear else None)
        if falls:
            gaps = {key: gap.reverse() for key, gap in reversed(gaps.items())}
        panel = len(cell.wordings) if isinstance(cell, Matched) else 1
        size = int(n.sum(1).max()), int((n.sum(0) > 0).sum()), panel
        found.append(Moved(cell.by, estimand, *figures, *size, tuple(gaps.items()), none))
    # A cell of `by` with one statement shows nothing; the cells of a limit must all show it.
    several = [one.statements > 1 for one in found]
    if not (any(several) if by else found and all(several)):
        raise InputError(f"{metric}: fewer than two statements count; nothing to test")
    return found


def _counts(metric: str, cells: Sequence[Matched | Summed], old: pd.DataFrame) -> None:
    """Raise InputError if nothing counts in the old run: then a new one cannot be worse."""
    if not any(cell.counted[0].any() for cell in cells):
        why = "; ".join(untold(old)) or "nothing to test"
        raise InputError(f"{metric}: nothing counts in the old run; {why}")


def _sides(chosen: Metric, cell: Matched) -> tuple[str, dict[str, Array]]:
    """Return the estimand, and the sums of all planned units by what unclear ones count as."""
    if wordings.base(chosen.name) and len(cell.wordings) < COLUMNS:
        raise InputError(
            f"{chosen.name}: a limit over wordings needs {COLUMNS} wordings; these runs have "
            f"{len(cell.wordings)}"
        )
    if cell.least is None or cell.most is None:
        return chosen.estimand, {"": cell.own}
    if not cell.unclear:
        return PLANNED[chosen.estimand], {"": cell.least}
    lowest, highest = _hidden(chosen)
    return PLANNED[chosen.estimand], {lowest: cell.least, highest: cell.most}


def _hidden(chosen: Metric) -> tuple[str, str]:
    """Name what unclear units count as: the lowest value, and the highest."""
    return ("no", "yes") if chosen.limits == (0.0, 1.0) else ("lowest", "highest")


def lost(old: pd.DataFrame, new: pd.DataFrame, metric: str, by: Sequence[str] = ()) -> list[Moved]:
    """Measure by how much the share of planned units that do not count rose, in each cell.

    The arguments and the errors are those of `moved`; the figures are shares of the planned units.
    """
    cells = paired.cells_of(old, new, metric, by)
    _counts(metric, cells, old)
    found = []
    for cell in cells:
        n, unclear = cell.planned, cell.planned - cell.counted
        own = np.column_stack([unclear[0], n, unclear[1], n])[n > 0]
        if len(own) > (0 if by else 1):
            before, after = (float(side.sum() / n.sum()) for side in unclear)
            gap, none = OfStatements(own, 1.0), OfStatements(own[:, [0, 1, 0, 1]], 1.0)
            size = int(n.sum()), len(own), 1
            found.append(Moved(cell.by, "planned", before, after, *size, (("", gap),), none))
    return found
