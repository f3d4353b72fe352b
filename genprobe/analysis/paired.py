"""Compare two models on the same items by paired tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe import metrics
from genprobe.analysis.gaps import Gap, OfIntervals, OfPanel, OfStatements, OfSums, means
from genprobe.errors import InputError
from genprobe.metrics import OWN, UNASKED, Measure, Metric, Units, cells, declare, wordings
from genprobe.metrics.corrected import VARIED
from genprobe.records import FACETS, JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import ALPHA, COLUMNS, LEVEL, SEED, TURNS, Array, Interval, ratio, turned

if TYPE_CHECKING:
    import pandas as pd

SWAP = "swap"  # name of the test in signatures: `statistics.resampled`
# Columns by which units of two models are matched, if the metric can be split by them.
SAME = (
    *("decode", "lang", "probe", "statement", *FACETS, "sample"),
    *("scorer", "item", "contrast"),  # of tables of preferences
)
WHO = ("model", "revision")  # what the two differ in


@dataclass(frozen=True)
class Paired:
    """A metric of two models, a and b, over the units that count for each.

    n: planned units that count for at least one; n_a, n_b: for each. a, b: the figures, as `score`
    prints them. difference, low, high: b minus a; for a figure over wordings the interval is for
    wordings like these. bounds_a, bounds_b: the figures if every unclear unit counted as no, and as
    yes. bounds: of the difference, if they counted as yes for one model and as no for the other;
    None if no unit is unclear. only_a, only_b: units that are a hit for only one model; exact,
    mid_p: their two-sided McNemar p-values. These four are None if the metric is not a share of
    hits, and the p-values also if a statement has several units, or if a unit counts for only one
    model. swap_p: of the swap test (`swapped_rates`); gap_p: of any other figure (`analysis.gaps`).
    alone, neither: units that count for only one model, and for neither. lacking: the wordings in
    which nothing counts for a, and for b; then there is no interval.
    """

    metric: str
    by: dict[str, JSON]
    n: int
    alone: int
    neither: int
    n_a: int
    n_b: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    bounds_a: Interval | None = None
    bounds_b: Interval | None = None
    bounds: Interval | None = None
    only_a: int | None = None
    only_b: int | None = None
    exact: float | None = None
    mid_p: float | None = None
    swap_p: float | None = None
    gap_p: float | None = None
    lacking: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def test(self) -> tuple[str, float | None]:
        """Return the p-value to report, after its name: McNemar's if valid, else the swap's."""
        if wordings.base(self.metric):
            return "wordings-p", self.gap_p
        if self.gap_p is not None:
            return "interval-p", self.gap_p
        return ("mcnemar-p", self.mid_p) if self.mid_p is not None else ("swap-p", self.swap_p)

    def told(self) -> Iterator[str]:
        """Yield what to know of the difference, one line each."""
        for side, names in zip("ab", self.lacking, strict=True):
            if names and self.difference is not None:
                yield f"nothing counts for {side} in {', '.join(names)}, so there is no interval"
        name, p = self.test
        if p is None or self.low is None or self.high is None:
            return
        if (p < ALPHA) != (self.low > 0 or self.high < 0):
            shown = "leaves out" if p >= ALPHA else "holds"
            yield (
                f"the interval of the difference {shown} 0, and {name} is {p:.2g}: too few "
                "statements to tell"
            )


def mcnemar(only_a: int, only_b: int) -> tuple[float, float]:
    """Test whether hits of a alone are as likely as hits of b alone: exact and mid-p, two-sided.

    Exact: binomial, given only_a + only_b (McNemar 1947, Psychometrika 12:153). Mid-p: half the
    probability of the observed table is left out; it is less conservative than the exact test, and
    hardly ever above its level (Fagerland, Lydersen & Laake 2013, BMC Medical Research Methodology
    13:91).
    """
    from scipy.stats import binom

    n, least = only_a + only_b, min(only_a, only_b)
    if not n:
        return 1.0, 1.0
    exact = min(1.0, 2 * float(binom.cdf(least, n, 0.5)))
    seen = float(binom.pmf(least, n, 0.5))
    # A tie lies in both tails; half its probability is left out only once.
    return exact, exact - seen / 2 if only_a == only_b else exact - seen


def swapped(differences: Array, resamples: int = TURNS, seed: int = SEED) -> float:
    """Test whether two models differ, by swapping their replies statement by statement.

    Fisher's randomisation test (Good 2005, Permutation, Parametric and Bootstrap Tests, 3.6): if
    the models are alike, a swap only reverses the sign of a statement's difference. Returns the
    two-sided mid-p value of the sum of differences. With one 0/1 unit per statement this is
    McNemar's test, with random draws. differences: (statements,).
    """
    sums = np.abs(turned(np.asarray(differences, float)[:, None], resamples, seed)[:, 0])
    seen = abs(float(np.sum(differences)))
    near = 1e-9 * max(1.0, float(np.abs(differences).sum()))
    more, same = int((sums > seen + near).sum()), int((np.abs(sums - seen) <= near).sum())
    return (more + (same + 1) / 2) / (resamples + 1) if seen > near else 1.0


def swapped_rates(own: Array, resamples: int = TURNS, seed: int = SEED) -> float:
    """Test as `swapped` whether two shares differ that count different units.

    own: (statements, 4), hits and units of a, and of b. A swap exchanges both.
    """
    own = np.asarray(own, float)
    if (own[:, 1] == own[:, 3]).all():
        return swapped(own[:, 2] - own[:, 0], resamples, seed)
    apart, total = own[:, 2:] - own[:, :2], own[:, :2].sum(0) + own[:, 2:].sum(0)
    drawn = turned(apart, resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        b, a = ((total + side * drawn) / 2 for side in (1, -1))
        gaps = np.abs(b[:, 0] / b[:, 1] - a[:, 0] / a[:, 1])
        b, a = ((total + side * apart.sum(0)) / 2 for side in (1, -1))
        seen = abs(float(b[0] / b[1] - a[0] / a[1]))
    # A swap that leaves one model without units is as extreme as can be.
    gaps = np.nan_to_num(gaps, nan=np.inf)
    more, same = int((gaps > seen + 1e-9).sum()), int((np.abs(gaps - seen) <= 1e-9).sum())
    return (more + (same + 1) / 2) / (resamples + 1) if seen > 1e-9 else 1.0


def limits(metric: Metric) -> Interval:
    """Return the lowest and highest possible difference of two values of a metric."""
    width = metric.limits[1] - metric.limits[0]
    return -width, width


def fits(metric: Metric, by: Sequence[str] = ()) -> bool:
    """Tell whether two models can be paired by a metric whose units are split by these columns.

    A metric that compares readings of one model has no units for a single reading.
    """
    if "decode" in metric.never_by:
        return False
    if over := wordings.base(metric.name):
        return "wording" not in by and fits(metrics.find(over), by)
    mean = metric.pairable and metric.scale in ("share", "points")
    return mean and not set(by) & set(metric.never_by)


def apart(name: str, tables: Sequence[pd.DataFrame], but: Sequence[str] = ()) -> list[str]:
    """Return the columns over which a metric is never pooled and which have several values.

    They are its `apart` (such as the scorer) and `adds` (such as the condition of a choice).
    tables: outcomes. but: columns that are left out, besides those in which models differ.
    """
    metric = metrics.find(name)
    return [
        column
        for column in dict.fromkeys([*metric.apart, *metric.adds])
        if column not in (*WHO, *but, *metric.never_by) and all(column in t for t in tables)
        if len({value for table in tables for value in table[column]}) > 1
    ]


@dataclass(frozen=True)
class Matched:
    """One cell of two models, matched unit by unit.

    pairs: (n, 2), the values of units that count for both. own: (statements, wordings, 4), sum and
    number of the units that count for a, and for b; one wording unless the figure is over wordings.
    least, most: the same of all planned units, if every unclear one had the lowest, or the highest,
    value; None if the scale has no ends. wordings: their names. alone, neither: units that count
    for only one model, and for neither.
    """

    by: dict[str, JSON]
    pairs: Array
    own: Array
    least: Array | None
    most: Array | None
    wordings: tuple[str, ...]
    alone: int
    neither: int

    @property
    def counted(self) -> Array:
        """Return the units of each statement that count for a, and for b: (2, statements)."""
        return self.own[..., [1, 3]].sum(1).T

    @property
    def planned(self) -> Array:
        """Return the planned units of each statement; (statements,)."""
        return self.counted.max(0) if self.least is None else self.least[..., 1].sum(1)

    @property
    def unclear(self) -> bool:
        """Return whether a planned unit does not count, for one of the two."""
        if self.least is None or self.most is None:
            return False
        return not np.allclose(self.least, self.most)

    @property
    def both(self) -> int:
        """Return the number of units that count for both."""
        return len(self.pairs)

    def figures(self, _: Metric) -> tuple[float | None, float | None]:
        """Return the two figures, as `score` prints them; None if there is none."""
        return means(self.own)

    def lacking(self, side: int) -> tuple[str, ...]:
        """Name the wordings in which a model (0 for a, 1 for b) has no unit that counts."""
        none = self.own[..., 2 * side + 1].sum(0) == 0
        return tuple(name for name, empty in zip(self.wordings, none, strict=True) if empty)


def method(metric: Metric) -> str:
    """Return the name of the interval of a difference, for signatures."""
    kind: type[Gap] = OfIntervals
    if wordings.base(metric.name):
        kind = OfPanel
    elif metric.value is ratio:
        kind = OfStatements
    elif metric.extremes:
        kind = OfSums
    return f"{kind.method}{100 * LEVEL:g}"


def gap_of(metric: Metric, own: Array) -> Gap:
    """Return the difference of two means. own: as in `Matched`."""
    if wordings.base(metric.name):
        return OfPanel(own[own[..., [1, 3]].sum((1, 2)) > 0])
    own = own.sum(1)
    return OfStatements(own[own[:, [1, 3]].sum(1) > 0], limits(metric)[1])


def paired(
    a: pd.DataFrame, b: pd.DataFrame, metric: str, by: Sequence[str] = (), between: str = "model"
) -> list[Paired]:
    """Compare two models' outcomes by a metric, cell by cell of `by`: see `cells_of`."""
    return [tested(metric, cell) for cell in cells_of(a, b, metric, by, between)]


def cells_of(
    a: pd.DataFrame, b: pd.DataFrame, metric: str, by: Sequence[str] = (), between: str = "model"
) -> Sequence[Matched | Summed]:
    """Set two tables side by side, cell by cell of `by`, cells sorted.

    Units are matched by the columns `SAME` except `between`, in which the tables differ; those of a
    figure that is not their mean are summed by statement. Columns over which a metric is never
    pooled (`apart`) also split the cells if they have several values. Raises InputError for a
    metric that is no share or difference of shares, or a column that one of the tables lacks.
    """
    over = wordings.base(metric)
    chosen = metrics.find(over or metric)
    if chosen.scale not in ("share", "points"):
        raise InputError(
            f"{metric} is not a share and cannot be paired; --test ks compares its values"
        )
    for column in chosen.needs:
        if column not in a or column not in b:
            raise InputError(f"{metric} needs the column {column!r}; one of the two lacks it")
    never = metrics.find(metric).never_by
    for column in [*by, *(["wording"] if over else [])]:
        if column not in a and column not in b:
            raise unknown("column", column, [str(name) for name in a.columns])
        if column not in a or column not in b or (column in never and column in by):
            raise InputError(f"{metric} cannot be split by {column!r} in both")
    by = list(dict.fromkeys([*apart(chosen.name, (a, b), (*by, between)), *by]))
    return matched(a, b, metric, by, between) if fits(chosen) else summed(a, b, chosen, by, between)


def matched(
    a: pd.DataFrame, b: pd.DataFrame, metric: str, by: Sequence[str], between: str = "model"
) -> list[Matched]:
    """Match the units of two tables; the arguments are those of `cells_of`, checked."""
    over = wordings.base(metric)
    chosen = metrics.find(over or metric)
    known = [c for c in SAME if c in a and c in b and c not in (*chosen.never_by, between)]
    split = [*by, *(["wording"] if over else [])]
    keys = list(dict.fromkeys([*known, *split]))
    whole = len(chosen.units(a, split).left_out)
    if len(chosen.units(a, keys).left_out) != whole:  # a unit would be cut, and weigh otherwise
        keys = [
            k for k in keys if k in split or len(chosen.units(a, [*split, k]).left_out) == whole
        ]
    sides = [_side(chosen, outcomes, keys, metric) for outcomes in (a, b)]
    both = sides[0].merge(sides[1], "outer", keys, suffixes=("_a", "_b"))
    both["__cluster"] = both.pop("__cluster_a").fillna(both.pop("__cluster_b"))
    cell, labels = cells(both, list(by))
    return [_cell(both[cell == at], label, bool(over), chosen) for at, label in enumerate(labels)]


def _side(chosen: Metric, outcomes: pd.DataFrame, keys: list[str], metric: str) -> pd.DataFrame:
    """Return one row for each unit of a table.

    `__value` is missing if the unit does not count, `__low` and `__high` if it was not planned, or
    the scale has no ends.
    """
    import pandas as pd

    units = chosen.units(outcomes, keys)
    counted = (units.left_out == "").to_numpy(bool)
    values = units.stats[counted]
    if len(values) and not (values[:, 1] == 1).all():
        raise InputError(f"{metric} weighs its {chosen.unit}, so two models cannot be paired")
    value = np.full(len(counted), np.nan)
    value[counted] = values[:, 0]
    ends = chosen.ends(units)
    low, high = (np.nan, np.nan) if ends is None else ends.T
    side = units.cells[keys].assign(
        __cluster=units.cluster.to_numpy(), __value=value, __low=low, __high=high
    )
    if side[counted].duplicated(keys).any():
        raise InputError(f"the same {chosen.unit} occur twice; compare one run with one")
    # Rows that count come first, so that they are kept where a unit has several rows.
    return pd.concat([side[counted], side[~counted]]).drop_duplicates(keys)


def _cell(rows: pd.DataFrame, label: dict[str, JSON], over: bool, chosen: Metric) -> Matched:
    """Sum the matched units of one cell."""
    pairs = rows[["__value_a", "__value_b"]].to_numpy(float)
    counts = ~np.isnan(pairs)
    cluster = np.unique(rows["__cluster"].astype(str), return_inverse=True)[1]
    names, wording = np.array([""]), np.zeros(len(rows), int)
    if over:
        names, wording = np.unique(rows["wording"].astype(str), return_inverse=True)
    shape = (int(cluster.max()) + 1, len(names))

    def summed_up(values: Array, kept: Array) -> Array:
        found = np.zeros((*shape, 4))
        for side in (0, 1):
            own = kept[:, side]
            place = cluster[own], wording[own]
            np.add.at(found[..., 2 * side], place, values[own, side])
            np.add.at(found[..., 2 * side + 1], place, 1.0)
        return found

    ends = rows[["__low_a", "__low_b", "__high_a", "__high_b"]].to_numpy(float)
    planned = ~np.isnan(ends).all(axis=1)
    # A unit that one of the two lacks is unclear there.
    ends = np.where(np.isnan(ends), np.repeat(chosen.limits, 2), ends)
    both = np.column_stack([planned, planned])
    least, most = (
        summed_up(side, both) if planned.any() else None for side in np.split(ends, 2, 1)
    )
    here = counts.all(axis=1)
    left = int((counts.sum(1) == 1).sum()), int((~counts).all(axis=1).sum())
    return Matched(label, pairs[here], summed_up(pairs, counts), least, most, tuple(names), *left)


@dataclass(frozen=True)
class Summed:
    """One cell of two models, whose figures are functions of sums.

    sums: (2, statements, statistics), of a and b. counted: (2, statements), the units that count.
    asked: the same with the unclear ones. either, planned: (statements,), the units that count for
    one of the two at least, and all. ends: the sums if every unclear unit made the figure as low,
    and as high, as it can; None if that is not known.
    """

    by: dict[str, JSON]
    sums: Array
    counted: Array
    asked: Array
    either: Array
    planned: Array
    ends: tuple[Array, Array] | None

    @property
    def unclear(self) -> bool:
        """Return whether a planned unit does not count, for one of the two."""
        return bool((self.counted < self.asked).any())

    @property
    def both(self) -> int:
        """Return the number of statements that count for both."""
        return int(self.counted.all(axis=0).sum())

    def figures(self, metric: Metric) -> tuple[float | None, float | None]:
        """Return the two figures, as `score` prints them; None if there is none."""
        found = []
        for sums, counted in zip(self.sums, self.counted, strict=True):
            value = float(metric.value(sums.sum(0))) if counted.any() else np.nan
            found.append(None if np.isnan(value) else value)
        return found[0], found[1]

    def _with_unclear(self, metric: Metric, side: int, end: int, figure: float) -> float:
        """Return a figure that a reader's errors correct, with the unclear units at an end.

        It is a mean over units, too; of another figure, the end of the scale.
        """
        limit = metric.limits[end]
        clear = self.counted[side].sum() / self.asked[side].sum()
        return float(clear * figure + (1 - clear) * limit) if _of_units(metric) else limit

    def bounds(self, metric: Metric, figures: Sequence[float]) -> dict[str, Any]:
        """Name the bounds of two figures and of their difference; empty if no unit is unclear."""
        if not self.unclear:
            return {}
        lowest, highest = (
            np.array([self._with_unclear(metric, side, end, figures[side]) for side in (0, 1)])
            if self.ends is None
            else np.asarray(metric.value(self.ends[end].sum(1)))
            for end in (0, 1)
        )
        same = np.allclose(lowest, highest) or not np.isfinite([lowest, highest]).all()
        return {} if same else _between(lowest, highest)

    def twice(self, side: int) -> Summed:
        """Return one of the two beside itself."""
        both = [side, side]
        ends = self.ends and (self.ends[0][both], self.ends[1][both])
        own: dict[str, Any] = {n: getattr(self, n)[both] for n in ("sums", "counted", "asked")}
        return dataclasses.replace(self, **own, ends=ends)

    def gap(self, metric: Metric, end: int | None = None) -> Gap:
        """Return the difference of the two figures, which both must have.

        end: 0 and 1, of all planned units, the unclear ones with the lowest, and the highest,
        value. Raises InputError if that is not known, and if there is no interval.
        """
        if end is not None and self.ends is not None:
            whole = dataclasses.replace(self, sums=self.ends[end], counted=self.asked)
            return whole.gap(metric)
        if (end is not None and not _of_units(metric)) or not np.isfinite(metric.limits).all():
            raise InputError(
                f"{metric.name}: how far the {metric.unit} that do not count could move it is "
                "unknown, so a limit cannot be tested"
            )
        if metric.value is ratio:  # with weights
            own = np.concatenate(list(self.sums), axis=1)
            return OfStatements(own[own[:, [1, 3]].sum(1) > 0], limits(metric)[1])
        if metric.extremes:
            return OfSums(metric, self.sums, self.counted)
        sides = []
        figures = self.figures(metric)
        for side, (sums, counted, value) in enumerate(
            zip(self.sums, self.counted, figures, strict=True)
        ):
            interval = metric.interval(sums[counted > 0])
            if interval is None or value is None:
                raise InputError(f"{metric.name} has no interval here, so nothing can be compared")
            found = value, min(interval[0], value), max(interval[1], value)
            if end is not None:
                a, b, c = (self._with_unclear(metric, side, end, one) for one in found)
                found = a, b, c
            sides.append(found)
        return OfIntervals(sides[0], sides[1], limits(metric)[1])


def _of_units(metric: Metric) -> bool:
    """Tell whether a figure that is corrected by its reader's errors is a share of units."""
    return metric.method.startswith(VARIED)


def summed(
    a: pd.DataFrame, b: pd.DataFrame, chosen: Metric, by: Sequence[str], between: str = "model"
) -> list[Summed]:
    """Sum the units of two tables by cell of `by` and statement; see `cells_of`."""
    import pandas as pd

    apart = [c for c in SAME if c in a and c in b and c not in (*by, between)]
    sides, sizes, known = [], [], True
    for outcomes in (a, b):
        # Units that are rows keep their numbers; others are only known by their statement.
        rows = outcomes.set_axis(range(-len(outcomes), 0))
        units = chosen.units(rows, list(by))
        counted = (units.left_out == "").to_numpy(bool)
        parts = {"sum": units.stats * counted[:, None]}
        ends = _ends(chosen, units, counted)
        known = known and ends is not None
        parts |= dict(zip(("least", "most"), ends or (), strict=ends is not None))
        frame = units.cells[list(by)].assign(
            __cluster=units.cluster.astype(str), __size=counted.astype(float), __planned=1.0
        )
        frame["__asked"] = (counted | ~units.left_out.isin(UNASKED).to_numpy(bool)).astype(float)
        index, keys = units.cells.index, [*by, "__cluster"]
        single = rows[apart].reindex(index) if index.isin(rows.index).all() else rows[[]][:0]
        unit = pd.concat([frame, single], axis=1)
        unit = unit.groupby([*keys, *single.columns], dropna=False, observed=True)
        sizes.append(unit[["__size", "__planned"]].sum())
        columns = [pd.DataFrame(part, index).add_prefix(f"{name}_") for name, part in parts.items()]
        rows = pd.concat([frame, *columns], axis=1)
        sides.append(rows.groupby(keys, dropna=False, observed=True).sum())
    if sizes[0].index.names != sizes[1].index.names:
        sizes = [one.groupby(keys, dropna=False, observed=True).sum() for one in sizes]
    either = sizes[0].add_suffix("_a").join(sizes[1].add_suffix("_b"), how="outer").fillna(0.0)
    for name in ("__size", "__planned"):
        either[name] = either[[f"{name}_a", f"{name}_b"]].max(axis=1)
    either = either.groupby(keys, dropna=False, observed=True)[["__size", "__planned"]].sum()
    index = either.index
    sides = [side.reindex(index, fill_value=0.0) for side in sides]
    at, labels = cells(either.reset_index(), list(by))
    found = []
    for number, label in enumerate(labels):
        here = at == number

        def both(prefix: str, here: Array = here) -> Array:
            parts = [side.loc[here].filter(regex=f"^{prefix}").to_numpy(float) for side in sides]
            most = max(part.shape[1] for part in parts)  # one side may have fewer wordings
            return np.stack([np.pad(p, ((0, 0), (0, most - p.shape[1]))) for p in parts])

        size, planned = either.loc[here].to_numpy(float).T
        sums = both("sum_")
        counted, asked, own = (both(name)[..., 0] for name in ("__size", "__asked", "__planned"))
        ends = (both("least_"), both("most_")) if known else None
        for side, lacking in enumerate(planned - own):
            if ends and lacking.any():  # what one of the two was not asked is unclear there
                n, weight = lacking[:, None], None
                if _weighted(chosen, counted[side]):
                    weight = n * sums[side, :, 1].sum() / counted[side].sum()
                more = _hidden(chosen, n, ends[0].max(0) - ends[0][side], weight)
                for end, of in zip(ends, more or (), strict=more is not None):
                    end[side] += of
                ends = more and ends
        asked = asked + planned - own
        found.append(Summed(label, sums, counted, asked, size, planned, ends))
    return found


def _ends(chosen: Metric, units: Units, counted: Array) -> tuple[Array, Array] | None:
    """Return the statistics of units whose figure is as low, and as high, as it can be.

    A unit that counts has its own, one that is unclear those of `_hidden`; None if these are not
    known.
    """
    unclear = ~counted & ~units.left_out.isin(UNASKED).to_numpy(bool)
    low, high = (units.stats * counted[:, None] for _ in range(2))
    if unclear.any():
        stats = units.stats[unclear]
        weight = units.stats[counted][:, 1].mean() if _weighted(chosen, counted) else None
        more = _hidden(chosen, np.ones((len(stats), 1)), stats, weight)
        if more is None:
            return None
        low[unclear], high[unclear] = more
    return low, high


def _weighted(chosen: Metric, counted: Array) -> bool:
    """Tell whether a figure is a mean on a scale with ends, of units of which some count."""
    return chosen.value is ratio and bool(np.isfinite(chosen.limits).all() and counted.any())


def _hidden(
    chosen: Metric, n: Array, stats: Array, weight: Array | None
) -> tuple[Array, Array] | None:
    """Return what unclear units add to sums, if the figure is as low, and as high, as it can be.

    They have the statistics of `Metric.extremes`; as hits and sizes, each share of which raises the
    figure, none or all of the size; as weighted values, the ends of the scale. n: (rows, 1), their
    number. stats: (rows, k), with their sizes. weight: of the n units, that which the others have
    on average; None for other figures. None if nothing of this is known.
    """
    if chosen.extremes:
        least, most = (n * np.array(end) for end in chosen.extremes)
    elif chosen.estimand != OWN or (chosen.value is not ratio and stats.shape[-1] == 2):
        most = np.repeat(stats[:, 1::2], 2, axis=1)
        least = most * (np.arange(most.shape[1]) % 2)
    elif weight is not None:
        least, most = (weight * np.array([limit, 1.0]) for limit in chosen.limits)
    else:
        return None
    return least, most


def tested(metric: str, cell: Matched | Summed, resamples: int = TURNS) -> Paired:
    """Compare the two models in one cell. resamples: for `swap_p`."""
    chosen = metrics.find(metric)
    if isinstance(cell, Summed):
        return _of_sums(chosen, cell)
    own, sizes = cell.own, cell.counted.sum(1).astype(int)
    some: dict[str, Any] = {
        "metric": metric, "by": cell.by, "n": len(cell.pairs) + cell.alone, "alone": cell.alone,
        "neither": cell.neither, "n_a": int(sizes[0]), "n_b": int(sizes[1]),
        "lacking": (cell.lacking(0), cell.lacking(1)),
    }  # fmt: skip
    if (over := wordings.base(metric)) and len(cell.wordings) < COLUMNS:
        raise InputError(
            f"{metric}: a difference over wordings needs {COLUMNS} wordings; these have "
            f"{len(cell.wordings)}; compare {over}"
        )
    a, b = cell.figures(chosen)
    some |= {"a": a, "b": b, **_bounds(cell)}
    if a is None or b is None:
        return Paired(**some)
    gap = gap_of(chosen, own)
    low, high = gap.interval() or (None, None)
    some |= {"difference": b - a, "low": low, "high": high}
    if over:
        return Paired(**some, gap_p=gap.two_sided() if low is not None else None)
    if np.isin(cell.pairs, (0, 1)).all():
        hits_a, hits_b = cell.pairs.T == 1
        one, other = int((hits_a & ~hits_b).sum()), int((hits_b & ~hits_a).sum())
        some |= {"only_a": one, "only_b": other}
        if (cell.counted == 1).all() and not cell.alone:
            some |= dict(zip(("exact", "mid_p"), mcnemar(one, other), strict=True))
    return Paired(**some, swap_p=swapped_rates(own.sum(1), resamples))


def _of_sums(chosen: Metric, cell: Summed) -> Paired:
    """Compare two figures that are functions of sums."""
    a, b = cell.figures(chosen)
    n_a, n_b = (int(n) for n in cell.counted.sum(1))
    n, planned = int(cell.either.sum()), int(cell.planned.sum())
    found = Paired(chosen.name, cell.by, n, 2 * n - n_a - n_b, planned - n, n_a, n_b, a, b)
    if a is None or b is None:
        return found
    found = dataclasses.replace(found, **cell.bounds(chosen, (a, b)))
    gap = cell.gap(chosen)
    low, high = gap.interval() or (None, None)
    return dataclasses.replace(found, difference=b - a, low=low, high=high, gap_p=gap.two_sided())


def _bounds(cell: Matched) -> dict[str, Any]:
    """Return the bounds of the two figures and of their difference, by name."""
    if cell.least is None or cell.most is None or not cell.unclear:
        return {}
    lowest, highest = (np.array(means(side), float) for side in (cell.least, cell.most))
    return _between(lowest, highest)


def _between(lowest: Array, highest: Array) -> dict[str, Any]:
    """Name the bounds. lowest, highest: (2,), the ends of the figures of a and b."""
    (low_a, low_b), (high_a, high_b) = lowest.tolist(), highest.tolist()
    return {
        "bounds_a": (low_a, high_a),
        "bounds_b": (low_b, high_b),
        "bounds": (low_b - high_a, high_b - low_a),
    }


def scores(found: Sequence[Paired], a: str, b: str, signature: str) -> list[Score]:
    """Turn comparisons into scores, to be printed or written like any others.

    a, b: names of the two. Each cell has `a` and `b`, the shares or means; `difference`, b minus a
    with its interval and bounds; and its p-value (`Paired.test`; the n of `mcnemar-p` counts the
    units that are a hit for only one of the two). A cell in which one of the two has no unit that
    counts has no p-value.
    """
    rows = []
    for one in found:
        by: dict[str, JSON] = {"of": one.metric, "a": a, "b": b, **one.by}
        planned = one.n + one.neither
        sides = (("a", one.a, one.n_a, one.bounds_a), ("b", one.b, one.n_b, one.bounds_b))
        for name, value, n, bounds in sides:
            left = {"not counted": planned - n} if planned > n else {}
            rows.append(_score(name, by, value, n, left, bounds, signature))
        left = {"on neither side": one.neither} if one.neither else {}
        score = _score("difference", by, one.difference, one.n, left, one.bounds, signature)
        rows.append(dataclasses.replace(score, low=one.low, high=one.high))
        name, p = one.test
        if one.difference is None or p is None:
            continue
        discordant = (one.only_a or 0) + (one.only_b or 0)
        n = discordant if name == "mcnemar-p" else one.n
        rows.append(_score(name, by, p, n, {}, None, signature))
    return rows


def _score(
    name: str,
    by: dict[str, JSON],
    value: float | None,
    n: int,
    left: dict[str, int],
    bounds: Interval | None,
    signature: str,
) -> Score:
    ends = None if bounds is None else list(bounds)
    return Score(name, by, value, None, None, n, left, ends, signature)


declare(
    Measure(
        "difference",
        "the second figure minus the first",
        "points",
        note="difference: of the units that count for each model. Its bounds: if the unclear ones "
        "counted as yes for one and as no for the other; if they hold 0, unclear replies may "
        "account for it.",
    ),
    Measure(
        "mcnemar-p",
        "p-value of McNemar's test, mid-p",
        "p",
        note="McNemar: its n counts the items that are a hit for only one of the two.",
    ),
    Measure(
        "swap-p",
        "p-value from swapping the two, statement by statement",
        "p",
        note="swap-p: from swapping the two models' replies, statement by statement, in these "
        "wordings.",
    ),
    Measure(
        "wordings-p",
        "p-value of a difference over wordings",
        "p",
        note="wordings-p: for statements and wordings like these.",
    ),
    Measure("interval-p", "p-value of a difference from its interval", "p"),
)
