"""Measure how far a figure moved towards harm from one version of a model to another.

The estimand is over all planned units. Where a measure counts clear answers, an unclear answer may
hide either, and which it hides is what a version can change (it hedges where it said no). So there
are two movements: with the unclear answers of both versions counted as no, and as yes. If unclear
answers hide the same share of yes in both versions, whatever it is, the true movement lies between
them. Measures without unclear answers have one movement, over the units that count in both.

An interval of a mean over units is the bootstrap with anchors (`statistics.upper_end`). Figures
over wordings have the variance of a crossed design (`ranking.variance_of_gap`), other figures that
of a jackknife over statements (Efron & Stein 1981, Annals of Statistics 9:586), both with Student's
t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe import metrics
from genprobe.analysis import paired, ranking
from genprobe.errors import InputError
from genprobe.metrics import Metric, Units, wordings
from genprobe.records import JSON
from genprobe.statistics import ALPHA, LEVEL, Array, p_at_most, student, upper_end

if TYPE_CHECKING:
    import pandas as pd

ONE_SIDED = 1 - ALPHA  # level of each end
_ANCHORED, _STUDENT = f"anchored{100 * ONE_SIDED:g}o", f"t{100 * ONE_SIDED:g}o"  # o: one-sided
_MOST_NEEDED = 10_000_000


@dataclass(frozen=True)
class Rise:
    """A movement towards harm, a share.

    unclear: what unclear answers are counted as, `no` or `yes`; "" for a measure without them.
    value: the movement; low, high: its one-sided 95 % confidence limits. p: for the hypothesis that
    it is within the margin.
    """

    unclear: str
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Moved:
    """A figure of two versions in one cell.

    by: the cell. estimand: of `paired.ESTIMANDS`. method: the interval. old, new: the figures, as
    `score` prints them; None if nothing counts. n: planned units, or those that the estimand is
    over. rises: the movements. shown: the smallest margin that a sample of this size could show if
    nothing had changed. needed: how many statements could show the margin asked for, None if no
    number can.
    """

    by: dict[str, JSON]
    estimand: str
    method: str
    old: float | None
    new: float | None
    n: int
    statements: int
    rises: tuple[Rise, ...]
    shown: float
    needed: int | None

    @property
    def high(self) -> float:
        """Return the largest of the upper limits."""
        return max(rise.high for rise in self.rises)

    @property
    def p(self) -> float:
        """Return the p-value with unclear answers counted as harmless."""
        return self.rises[0].p


def moved(
    old: pd.DataFrame,
    new: pd.DataFrame,
    metric: str,
    most: float,
    falls: bool = False,
    by: Sequence[str] = (),
) -> list[Moved]:
    """Measure how far a figure moved in each cell of `by`.

    Cells are also split by the columns over which the metric is never pooled. most: the margin, a
    share. falls: whether a fall is the harm. Raises InputError for a metric that does not fit, and
    if nothing counts in the old version.
    """
    base = wordings.base(metric)
    chosen = metrics.find(base or metric)
    _fit((old, new), metrics.find(metric), by)
    sides = (old, new)
    cells = list(dict.fromkeys([*paired.apart(chosen, sides), *by]))
    units = [chosen.units(table, [*cells, *(["wording"] if base else [])]) for table in sides]
    if not (units[0].reason == "").any():
        raise InputError(f"{metric}: nothing counts in the old run; nothing to test")
    sign = -1.0 if falls else 1.0
    if base:
        return _over_wordings(metric, units, cells, most, sign)
    if not (paired.fits(chosen) and all(map(_plain, units))):
        return _by_statement(chosen, units, cells, most, sign)
    if any(one.possible is not None for one in units):
        return _planned(chosen, units, cells, most, sign)
    return _matched(chosen, old, new, by, most, sign)


def lost(
    old: pd.DataFrame, new: pd.DataFrame, metric: str, most: float, by: Sequence[str] = ()
) -> list[Moved]:
    """Measure by how much the share of planned units that do not count rose, in each cell.

    The arguments are those of `moved`; the figures are shares of the planned units.
    """
    chosen = metrics.find(wordings.base(metric) or metric)
    cells = list(dict.fromkeys([*paired.apart(chosen, (old, new)), *by]))
    units = [chosen.units(table, cells) for table in (old, new)]
    bounded = any(one.possible is not None for one in units)
    found = []
    for label, table in _sums(units, cells):
        n = table.n if bounded else np.maximum(table.counted[0], table.counted[1])
        if n.sum() and len(n) > 1:
            gaps = np.where(n > 0, table.counted[0] - table.counted[1], 0.0)
            rises = (_anchored("", gaps, n, 1.0, most),)
            rates = [1 - float(side.sum() / n.sum()) for side in table.counted]
            found.append(_moved(label, "planned", rates, n, rises, 1.0, most))
    return found


def _fit(sides: Sequence[pd.DataFrame], metric: Metric, by: Sequence[str]) -> None:
    """Raise InputError if a metric cannot be limited, or lacks a column."""
    from genprobe.resources.registry import unknown

    if metric.scale not in ("share", "points"):
        raise InputError(f"{metric.name} has no limit in points; limit a share")
    for table in sides:
        for column in metric.needs:
            if column not in table:
                raise InputError(f"{metric.name} needs the column {column!r}; a run lacks it")
        for column in by:
            if column not in table:
                raise unknown("column", column, [str(name) for name in table.columns])
            if column in metric.never_by:
                raise InputError(f"{metric.name} cannot be split by {column!r}")


def _plain(units: Units) -> bool:
    """Tell whether a figure is a mean over equally weighted units."""
    stats = units.stats[(units.reason == "").to_numpy(bool)]
    return stats.shape[1] == 2 and bool((stats[:, 1] == 1).all())


@dataclass(frozen=True)
class _Table:
    """Sums over the units of each statement, (2, statements): of the old and of the new version.

    low, high: with unclear units at the lowest and the highest possible value. hits, counted: of
    the units that count. n: planned units, (statements,).
    """

    low: Array
    high: Array
    hits: Array
    counted: Array
    n: Array

    @property
    def figures(self) -> list[float | None]:
        return [
            float(hits.sum() / counted.sum()) if counted.sum() else None
            for hits, counted in zip(self.hits, self.counted, strict=True)
        ]


def _joined(units: Sequence[Units], cells: Sequence[str]) -> pd.DataFrame:
    """Sum the units of two versions by cell and statement, and set the sums side by side."""
    keys = [*cells, "__cluster"]
    sides = []
    for one in units:
        counted = (one.reason == "").to_numpy(bool)
        hits = np.where(counted, one.stats[:, 0], 0.0)
        low, high = hits, np.where(counted, hits, 1.0)
        planned = counted | one.reason.isin(paired.NO_REPLY).to_numpy(bool)
        if one.possible is not None:
            known = ~np.isnan(one.possible[:, 0])
            low = np.where(known, one.possible[:, 0], low)
            high = np.where(known, one.possible[:, 1], high)
            planned |= known
        frame = one.cells[list(cells)].assign(
            __cluster=one.cluster.astype(str), low=low, high=high, hits=hits, counted=counted, n=1
        )
        sides.append(frame[planned].groupby(keys, dropna=False, observed=True).sum())
    both = sides[0].add_suffix("_0").join(sides[1].add_suffix("_1"), how="outer").fillna(0.0)
    return both.reset_index().sort_values("__cluster", kind="stable", ignore_index=True)


def _table(rows: pd.DataFrame) -> _Table:
    """Return the sums of one cell of `_joined`."""
    names = ("low", "high", "hits", "counted", "n")
    low, high, hits, counted, n = (
        rows[[f"{name}_0", f"{name}_1"]].to_numpy(float).T for name in names
    )
    planned = n.max(0)
    # A unit that one version lacks is unclear there.
    return _Table(low, high + planned - n, hits, counted, planned)


def _sums(units: Sequence[Units], cells: Sequence[str]) -> list[tuple[dict[str, JSON], _Table]]:
    both = _joined(units, cells)
    at, labels = metrics.cells(both, list(cells))
    return [(label, _table(both[at == number])) for number, label in enumerate(labels)]


def _planned(
    chosen: Metric, units: Sequence[Units], cells: Sequence[str], most: float, sign: float
) -> list[Moved]:
    """Measure both movements over all planned units."""
    found = []
    for label, table in _sums(units, cells):
        ends = {"no": table.low[1] - table.low[0], "yes": table.high[1] - table.high[0]}
        names = sorted(ends, reverse=sign < 0)  # harmless first
        rises = tuple(_anchored(name, sign * ends[name], table.n, 1.0, most) for name in names)
        found.append(_moved(label, "planned", table.figures, table.n, rises, 1.0, most))
    return _some(chosen.name, found)


def _matched(
    chosen: Metric,
    old: pd.DataFrame,
    new: pd.DataFrame,
    by: Sequence[str],
    most: float,
    sign: float,
) -> list[Moved]:
    """Measure the movement over the units that count in both versions."""
    width = paired.limits(chosen)[1]
    found = []
    for cell in paired.matched(old, new, chosen.name, by):
        if not len(cell.sums):
            continue
        a, b, n = cell.sums.T
        rises = (_anchored("", sign * (b - a), n, width, most),)
        figures = [float(side.sum() / n.sum()) for side in (a, b)]
        found.append(_moved(cell.by, "paired", figures, n, rises, width, most))
    return _some(chosen.name, found)


def _moved(
    label: dict[str, JSON],
    estimand: str,
    figures: Sequence[float | None],
    n: Array,
    rises: tuple[Rise, ...],
    width: float,
    most: float,
) -> Moved:
    """Return a movement with intervals by `_anchored`."""
    shown = width * (2 * upper_end(n / 2, n, ONE_SIDED) - 1)
    needed = _needed(lambda m: width * float(1 - ALPHA ** (1 / m)), most)
    old, new = figures
    sizes = int(n.sum()), int((n > 0).sum())
    return Moved(label, estimand, _ANCHORED, old, new, *sizes, rises, shown, needed)


def _anchored(unclear: str, gaps: Array, n: Array, width: float, most: float) -> Rise:
    """Measure a mean difference. gaps: (statements,), sums of differences, within width * n."""
    hits = np.clip((gaps / width + n) / 2, 0.0, n)
    return Rise(
        unclear,
        value=float(gaps.sum() / n.sum()),
        low=width * (1 - 2 * upper_end(n - hits, n, ONE_SIDED)),
        high=width * (2 * upper_end(hits, n, ONE_SIDED) - 1),
        p=p_at_most((most / width + 1) / 2, hits, n),
    )


def _over_wordings(
    metric: str, units: Sequence[Units], cells: Sequence[str], most: float, sign: float
) -> list[Moved]:
    """Measure the movement of a mean over wordings, for statements and wordings like these."""
    bounded = any(one.possible is not None for one in units)
    over = "planned-wordings" if bounded else "own-wordings"
    both = _joined(units, [*cells, "wording"])
    at, labels = metrics.cells(both, list(cells))
    found = []
    for number, label in enumerate(labels):
        rows = both[at == number]
        names = ("__cluster", "wording")
        places = tuple(np.unique(rows[name].astype(str), return_inverse=True)[1] for name in names)
        shape = tuple(int(place.max()) + 1 for place in places)

        def spread(values: Array, places: Any = places, shape: Any = shape) -> Array:
            table = np.zeros((2, *shape))
            table[(slice(None), *places)] = values
            return table

        table = _table(rows)
        n, hits, counted = (
            spread(np.tile(table.n, (2, 1))),
            spread(table.hits),
            spread(table.counted),
        )
        kept = (counted if not bounded else n).sum(1).min(0) > 0
        if kept.sum() < ranking.FEWEST_WORDINGS:
            raise InputError(
                f"{metric}: a limit over wordings needs {ranking.FEWEST_WORDINGS} wordings; these "
                f"runs have {int(kept.sum())}"
            )
        ends = {"no": (spread(table.low), n), "yes": (spread(table.high), n)}
        if not bounded:
            ends = {"": (hits, counted)}
        rises = []
        for name in sorted(ends, reverse=sign < 0):  # harmless first
            values, sizes = (side[:, :, kept] for side in ends[name])
            total = sizes.sum(1)
            rates = values.sum(1) / total  # (2, wordings)
            parts = (values - rates[:, None] * sizes) / total[:, None]
            gap = sign * float((rates[1] - rates[0]).mean())
            error = ranking.variance_of_gap(rates[1] - rates[0], parts[1] - parts[0])
            rises.append(_student(name, gap, *error, shape[0], 1.0, most))
        figures = [
            float((side[:, own].sum(0) / of[:, own].sum(0)).mean()) if own.any() else None
            for side, of in zip(hits, counted, strict=True)
            for own in [of.sum(0) > 0]
        ]
        found.append(
            _estimated(label, over, figures, int(table.n.sum()), shape[0], rises, 1.0, most)
        )
    return _some(metric, found)


def _by_statement(
    chosen: Metric, units: Sequence[Units], cells: Sequence[str], most: float, sign: float
) -> list[Moved]:
    """Measure the movement of any other figure, by a jackknife over statements."""
    import pandas as pd

    keys = [*cells, "__cluster"]
    sides = []
    for one in units:
        counted = (one.reason == "").to_numpy(bool)
        stats = pd.DataFrame(one.stats, one.cells.index)
        frame = one.cells[list(cells)].assign(__cluster=one.cluster.astype(str))
        kept = pd.concat([frame, stats], axis=1)[counted]
        sides.append(kept.groupby(keys, dropna=False, observed=True).sum())
    both = sides[0].add_suffix("_0").join(sides[1].add_suffix("_1"), how="outer").fillna(0.0)
    both = both.reset_index()
    at, labels = metrics.cells(both, list(cells))
    width = paired.limits(chosen)[1]
    counts = [int((one.reason == "").sum()) for one in units]
    found = []
    for number, label in enumerate(labels):
        rows = both[at == number].drop(columns=keys).to_numpy(float)
        k, statements = rows.shape[1] // 2, len(rows)
        with np.errstate(invalid="ignore", divide="ignore"):
            figures = [float(chosen.value(side.sum(0))) for side in (rows[:, :k], rows[:, k:])]
            left = rows.sum(0) - rows
            gaps = sign * np.asarray(chosen.value(left[:, k:]) - chosen.value(left[:, :k]))
        gap = sign * (figures[1] - figures[0])
        if not np.isfinite(gap) or not np.isfinite(gaps).all():
            raise InputError(f"{chosen.name}: too few {chosen.unit} count; nothing to test")
        error = (statements - 1) / statements * float(((gaps - gaps.mean()) ** 2).sum())
        rise = _student("", gap, error, statements - 1.0, statements, width, most)
        found.append(
            _estimated(label, "own", figures, min(counts), statements, [rise], width, most)
        )
    return _some(chosen.name, found)


def _student(
    unclear: str,
    gap: float,
    variance: float,
    freedom: float,
    statements: int,
    width: float,
    most: float,
) -> Rise:
    """Measure a difference whose variance is estimated, by Student's t."""
    from scipy.special import stdtr

    if variance < ranking.NOTHING and statements > 1:
        variance, freedom = ranking.alike(gap / width, statements, 2, LEVEL)
        variance *= width**2
    error, freedom = variance**0.5, max(freedom, 1.0)
    reach = student(freedom, 1 - 2 * ALPHA) * error
    p = float(stdtr(freedom, (most - gap) / error)) if error else float(gap <= most)
    return Rise(unclear, gap, max(-width, gap - reach), min(width, gap + reach), p)


def _estimated(
    label: dict[str, JSON],
    estimand: str,
    figures: Sequence[float | None],
    n: int,
    statements: int,
    rises: Sequence[Rise],
    width: float,
    most: float,
) -> Moved:
    """Return a movement with intervals by `_student`."""

    def shown(m: int) -> float:
        return _student("", 0.0, 0.0, 1.0, m, width, most).high if m > 1 else width

    old, new = figures
    needed = _needed(shown, most)
    least = shown(statements)
    return Moved(label, estimand, _STUDENT, old, new, n, statements, tuple(rises), least, needed)


def _some(metric: str, found: list[Moved]) -> list[Moved]:
    """Return the cells, which must have at least two statements each."""
    if not found:
        raise InputError(f"{metric}: nothing counts in both runs; nothing to test")
    if any(one.statements < 2 for one in found):
        raise InputError(f"{metric}: fewer than two statements count; nothing to test")
    return found


def _needed(shown: Callable[[int], float], most: float) -> int | None:
    """Return the smallest number of statements that can show a margin, None if none can."""
    low, high = 1, 2
    while shown(high) >= most:
        low, high = high, 2 * high
        if high > _MOST_NEEDED:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) < most else (middle, high)
    return high
