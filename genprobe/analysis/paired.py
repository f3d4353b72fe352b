"""Compare two models on the same items by paired tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe import metrics
from genprobe.analysis import ranking
from genprobe.errors import InputError
from genprobe.metrics import Measure, Metric, cells, declare, wordings
from genprobe.records import FACETS, JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import LEVEL, SEED, TURNS, Array, Interval, bootstrap, student, turned

if TYPE_CHECKING:
    import pandas as pd

SWAP = "swap"  # name of the test in signatures: `statistics.resampled`
OWN, OVER = "own", "own-wordings"  # estimands in signatures: `ESTIMANDS`
NO_REPLY = ("failed", "missing", "unjudged")
# Estimands: over which replies and wordings. The gate's are over all planned replies.
ESTIMANDS = {
    OWN: "units that count in each, these wordings",
    OVER: "units that count in each, wordings like these",
    "planned": "all planned replies, these wordings",
    "planned-wordings": "all planned replies, wordings like these",
    "paired": "units that count in both, these wordings",
}
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
    yes. bounds: of the difference, if the unclear units of both counted as no, as yes, or are left
    out, as in the figures; None if no unit is unclear. only_a, only_b: units that are a hit for
    only one model; exact, mid_p: their two-sided McNemar p-values. These four are None if the
    metric is not a share of hits, and the p-values also if a statement has several units, or if a
    unit counts for only one model. swap_p: of the swap test (`swapped_rates`); t_p: of a figure
    over wordings. alone, neither: units that count for only one model, and for neither.
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
    t_p: float | None = None

    @property
    def test(self) -> tuple[str, float | None]:
        """Return the p-value to report, after its name: McNemar's if valid, else the swap's."""
        if self.t_p is not None:
            return "wordings-p", self.t_p
        return ("mcnemar-p", self.mid_p) if self.mid_p is not None else ("swap-p", self.swap_p)

    @property
    def open(self) -> bool:
        """Return whether unclear replies may turn the sign of the difference, or make it 0."""
        return ranking.hides(self.bounds)


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


def difference(sums: Array) -> Array:
    """Subtract a's share from b's. sums: (..., 3), of a, of b, units -> (...)."""
    return np.asarray((sums[..., 1] - sums[..., 0]) / sums[..., 2])


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


def apart(metric: Metric, tables: Sequence[pd.DataFrame], but: Sequence[str] = ()) -> list[str]:
    """Return the columns over which a metric is never pooled and which have several values.

    They are its `apart` (such as the scorer) and `adds` (such as the condition of a choice).
    tables: of the two models. but: columns that are left out, besides those in which models differ.
    """
    return [
        column
        for column in dict.fromkeys([*metric.apart, *metric.adds])
        if column not in (*WHO, *but, *metric.never_by) and all(column in t for t in tables)
        if len({value for table in tables for value in table[column]}) > 1
    ]


@dataclass(frozen=True)
class Matched:
    """One cell of two models, matched unit by unit.

    pairs: (n, 2), the values of units that count for both. sums: (statements, 3), sums of a, of b,
    and of units, of these units. own: (statements, wordings, 4), hits and units of a, and of b, of
    those that count for each; one wording unless the figure is over wordings. least, most: (2,
    wordings), the shares of a and b if every unclear unit counted as no, and as yes; None if the
    metric has no unclear units. alone, neither: units that count for only one model, and for
    neither.
    """

    by: dict[str, JSON]
    pairs: Array
    sums: Array
    own: Array
    least: Array | None
    most: Array | None
    alone: int
    neither: int


def paired(
    a: pd.DataFrame, b: pd.DataFrame, metric: str, by: Sequence[str] = (), between: str = "model"
) -> list[Paired]:
    """Compare two models' outcomes by a metric, cell by cell of `by`: see `matched`."""
    return [tested(metric, cell) for cell in matched(a, b, metric, by, between)]


def matched(
    a: pd.DataFrame, b: pd.DataFrame, metric: str, by: Sequence[str] = (), between: str = "model"
) -> list[Matched]:
    """Match the units of two tables, cell by cell of `by`, cells sorted.

    Units are matched by the columns `SAME` except `between`, in which the tables differ. Columns
    over which a metric is never pooled (`apart`) also split the cells if they have several values.
    Raises InputError for a metric whose value is not a mean over units, or a column that one of the
    tables lacks.
    """
    over = wordings.base(metric)
    chosen = metrics.find(over or metric)
    _can_be_paired(metrics.find(metric), chosen)
    for column in chosen.needs:
        if column not in a or column not in b:
            raise InputError(f"{metric} needs the column {column!r}; one of the two lacks it")
    never = metrics.find(metric).never_by
    for column in [*by, *(["wording"] if over else [])]:
        if column not in a and column not in b:
            raise unknown("column", column, [str(name) for name in a.columns])
        if column not in a or column not in b or (column in never and column in by):
            raise InputError(f"{metric} cannot be split by {column!r} in both")
    by = list(dict.fromkeys([*apart(chosen, (a, b), (*by, between)), *by]))
    keys = [c for c in SAME if c in a and c in b and c not in (*chosen.never_by, between)]
    keys = list(dict.fromkeys([*keys, *by]))
    sides, bounded = [], False
    for outcomes in (a, b):
        side, known = _side(chosen, outcomes, keys, metric)
        sides.append(side)
        bounded |= known
    both = sides[0].merge(sides[1], "outer", keys, suffixes=("_a", "_b"))
    both["__cluster"] = both.pop("__cluster_a").fillna(both.pop("__cluster_b"))
    cell, labels = cells(both, list(by))
    return [_cell(both[cell == at], label, bool(over), bounded) for at, label in enumerate(labels)]


def _can_be_paired(metric: Metric, chosen: Metric) -> None:
    """Raise InputError unless two models can be paired by a metric. chosen: what it counts."""
    if chosen.pairable and chosen.scale == "number":
        raise InputError(
            f"{metric.name} is not a share and cannot be paired; --test ks compares its values"
        )
    if not fits(chosen):
        raise InputError(
            f"{metric.name} is not a mean over {chosen.unit}, so two models cannot be paired"
        )


def _side(
    chosen: Metric, outcomes: pd.DataFrame, keys: list[str], metric: str
) -> tuple[pd.DataFrame, bool]:
    """Return one row for each unit of a table, and whether the metric has unclear units.

    `__value` is missing if the unit does not count, `__low` and `__high` if it was not planned.
    """
    import pandas as pd

    units = chosen.units(outcomes, keys)
    counted = (units.reason == "").to_numpy(bool)
    values = units.stats[counted]
    if len(values) and not (values[:, 1] == 1).all():
        raise InputError(f"{metric} weighs its {chosen.unit}, so two models cannot be paired")
    value = np.full(len(counted), np.nan)
    value[counted] = values[:, 0]
    known = units.reason.isin(NO_REPLY).to_numpy(bool)
    low, high = (np.where(known, end, value) for end in chosen.limits)
    if units.possible is not None:
        given = ~np.isnan(units.possible[:, 0])
        low, high = (
            np.where(given, ends, end)
            for ends, end in zip(units.possible.T, (low, high), strict=True)
        )
    side = units.cells[keys].assign(
        __cluster=units.cluster.to_numpy(), __value=value, __low=low, __high=high
    )
    if side[counted].duplicated(keys).any():
        raise InputError(f"the same {chosen.unit} occur twice; compare one run with one")
    # Rows that count come first, so that they are kept where a unit has several rows.
    side = pd.concat([side[counted], side[~counted]]).drop_duplicates(keys)
    return side, units.possible is not None


def _cell(rows: pd.DataFrame, label: dict[str, JSON], over: bool, bounded: bool) -> Matched:
    """Sum the matched units of one cell."""
    pairs = rows[["__value_a", "__value_b"]].to_numpy(float)
    counts = ~np.isnan(pairs)
    cluster = np.unique(rows["__cluster"].astype(str), return_inverse=True)[1]
    wording = np.zeros(len(rows), int)
    if over:
        wording = np.unique(rows["wording"].astype(str), return_inverse=True)[1]
    shape = (int(cluster.max()) + 1, int(wording.max()) + 1)
    own = np.zeros((*shape, 4))
    for side in (0, 1):
        kept = counts[:, side]
        place = cluster[kept], wording[kept]
        np.add.at(own[..., 2 * side], place, pairs[kept, side])
        np.add.at(own[..., 2 * side + 1], place, 1.0)
    least = most = None
    if bounded:
        ends = rows[["__low_a", "__low_b", "__high_a", "__high_b"]].to_numpy(float)
        planned = ~np.isnan(ends).all(axis=1)
        # A unit that one of the two lacks is unclear there.
        ends = np.where(np.isnan(ends), [0.0, 0.0, 1.0, 1.0], ends)[planned]
        size = np.bincount(wording[planned], minlength=shape[1])
        with np.errstate(invalid="ignore"):
            found = [np.bincount(wording[planned], end, shape[1]) / size for end in ends.T]
        least, most = np.stack(found[:2]), np.stack(found[2:])
    here = counts.all(axis=1)
    sums = np.zeros((shape[0], 3))
    np.add.at(sums, cluster[here], np.column_stack([pairs[here], np.ones(here.sum())]))
    left = int((counts.sum(1) == 1).sum()), int((~counts).all(axis=1).sum())
    return Matched(label, pairs[here], sums[sums[:, 2] > 0], own, least, most, *left)


def tested(metric: str, cell: Matched, resamples: int = TURNS) -> Paired:
    """Compare the two models in one cell. resamples: for `swap_p`."""
    over = bool(wordings.base(metric))
    own, kept = cell.own, (cell.own[..., [1, 3]].sum(0) > 0).all(1)  # (wordings,)
    sizes = own[..., [1, 3]].sum((0, 1)).astype(int)
    some: dict[str, Any] = {
        "metric": metric, "by": cell.by, "n": len(cell.pairs) + cell.alone, "alone": cell.alone,
        "neither": cell.neither, "n_a": int(sizes[0]), "n_b": int(sizes[1]),
    }  # fmt: skip
    if over and sizes.all() and kept.sum() < ranking.FEWEST_WORDINGS:
        raise InputError(
            f"{metric}: a difference over wordings needs {ranking.FEWEST_WORDINGS} wordings that "
            f"count for both; these have {int(kept.sum())}; compare {wordings.base(metric)}"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = own[..., [0, 2]].sum(0) / own[..., [1, 3]].sum(0)  # (wordings, 2)
    shared = kept if sizes.all() else np.ones(len(kept), bool)
    figures: list[float | None] = [
        float(np.nanmean(rates[shared, side])) if sizes[side] else None for side in (0, 1)
    ]
    a, b = figures
    gap = None if a is None or b is None else b - a
    some |= {"a": a, "b": b, "difference": gap, **_ends(cell, shared, gap)}
    if gap is None:
        return Paired(**some)
    if over:
        return Paired(
            **some, **_over_wordings(own[:, kept], rates[kept], limits(metrics.find(metric)))
        )
    table = own[:, 0][own[:, 0, [1, 3]].sum(1) > 0]

    def apart(sums: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = sums[..., 2] / sums[..., 3] - sums[..., 0] / sums[..., 1]
        return np.where(np.isfinite(found), found, gap)

    interval: Interval | None = bootstrap(table, apart, limits=limits(metrics.find(metric)))
    some |= dict(zip(("low", "high"), interval or (None, None), strict=True))
    if np.isin(cell.pairs, (0, 1)).all():
        hits_a, hits_b = cell.pairs.T == 1
        one, other = int((hits_a & ~hits_b).sum()), int((hits_b & ~hits_a).sum())
        some |= {"only_a": one, "only_b": other}
        if len(cell.sums) == len(cell.pairs) and not cell.alone:
            some |= dict(zip(("exact", "mid_p"), mcnemar(one, other), strict=True))
    return Paired(**some, swap_p=swapped_rates(table, resamples))


def _ends(cell: Matched, kept: Array, gap: float | None) -> dict[str, Any]:
    """Return the bounds of the two figures and of their difference, by name."""
    if cell.least is None or cell.most is None:
        return {}
    least, most = (np.nanmean(side[:, kept], axis=1) for side in (cell.least, cell.most))
    if np.allclose(least, most):
        return {}
    gaps = [float(end[1] - end[0]) for end in (least, most)] + ([] if gap is None else [gap])
    return {
        "bounds_a": (float(least[0]), float(most[0])),
        "bounds_b": (float(least[1]), float(most[1])),
        "bounds": (min(gaps), max(gaps)),
    }


def _over_wordings(own: Array, rates: Array, ends: Interval) -> dict[str, Any]:
    """Compute interval and p-value of a difference, statements and wordings being samples.

    own: (statements, wordings, 4), as in `Matched`. rates: (wordings, 2).
    """
    from scipy.special import stdtr

    own = own[own[..., [1, 3]].sum((1, 2)) > 0]
    parts = (own[..., [0, 2]] - rates * own[..., [1, 3]]) / own[..., [1, 3]].sum(0)
    gap = float((rates[:, 1] - rates[:, 0]).mean())
    variance, freedom = ranking.variance_of_gap(
        rates[:, 1] - rates[:, 0], parts[..., 1] - parts[..., 0]
    )
    if variance < ranking.NOTHING:
        variance, freedom = ranking.alike(gap, len(own), 2, LEVEL)
    error, freedom = variance**0.5, max(freedom, 1.0)
    reach = student(freedom, LEVEL) * error
    p = 2 * float(stdtr(freedom, -abs(gap) / error))
    return {"low": max(ends[0], gap - reach), "high": min(ends[1], gap + reach), "t_p": p}


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
        if one.difference is None:
            continue
        name, p = one.test
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
        "of both counted as no, as yes, or are left out; if they hold 0, unclear replies may "
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
)
