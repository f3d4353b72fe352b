"""Compare two models on the same items by paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.metrics import Measure, Metric, cells, declare
from genprobe.records import FACETS, JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import SEED, TURNS, Array, Interval, bootstrap, turned

if TYPE_CHECKING:
    import pandas as pd

SWAP = "swap"  # name of the test in signatures: `statistics.resampled`
# Columns by which units of two models are matched, if the metric can be split by them.
SAME = (
    *("decode", "lang", "probe", "statement", *FACETS, "sample"),
    *("scorer", "item", "contrast"),  # of tables of preferences
)
WHO = ("model", "revision")  # what the two differ in
_LIMITS = (-1.0, 1.0)


@dataclass(frozen=True)
class Paired:
    """A metric of two models, a and b, over the units that count for both.

    n: number of these units. difference, low, high: b minus a, bootstrap over statements. only_a,
    only_b: units that are a hit for only one model; exact, mid_p: their two-sided McNemar p-values.
    All four are None if the metric is not a share of hits, and the p-values also if a statement has
    several units. swap_p: of the swap test (`swapped`), which is valid in all these cases. alone,
    neither: units that count for only one model, and for neither.
    """

    metric: str
    by: dict[str, JSON]
    n: int
    alone: int
    neither: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    only_a: int | None
    only_b: int | None
    exact: float | None
    mid_p: float | None
    swap_p: float | None

    @property
    def test(self) -> tuple[str, float | None]:
        """Return the p-value to report, after its name: McNemar's if valid, else the swap's."""
        return ("mcnemar-p", self.mid_p) if self.mid_p is not None else ("swap-p", self.swap_p)


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


def difference(sums: Array) -> Array:
    """Subtract a's share from b's. sums: (..., 3), of a, of b, units -> (...)."""
    return np.asarray((sums[..., 1] - sums[..., 0]) / sums[..., 2])


def fits(metric: Metric, by: Sequence[str] = ()) -> bool:
    """Tell whether two models can be paired by a metric whose units are split by these columns.

    A metric that compares readings of one model has no units for a single reading.
    """
    if "decode" in metric.never_by:
        return False
    mean = metric.pairable and metric.scale in ("share", "points")
    return mean and not set(by) & set(metric.never_by)


@dataclass(frozen=True)
class Matched:
    """One cell of two models, matched unit by unit.

    pairs: (n, 2), the values of units that count for both. sums: (statements, 3), sums of a, of b,
    and of units. alone, neither: the number of units that count for only one model, and for
    neither.
    """

    by: dict[str, JSON]
    pairs: Array
    sums: Array
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

    Units are matched by the columns `SAME` except `between`, in which the tables differ; a unit
    that does not count for both is left out. Columns over which a metric is never pooled
    (`Metric.apart`, such as the scorer) also split the cells if they have several values. Raises
    InputError for a metric whose value is not a mean over units, or a column that one of the tables
    lacks.
    """
    import pandas as pd

    chosen = metrics.find(metric)
    if chosen.pairable and chosen.scale == "number":
        raise InputError(
            f"{metric} is not a share and cannot be paired; --test ks compares its values"
        )
    if not fits(chosen):
        raise InputError(
            f"{metric} is not a mean over {chosen.unit}, so two models cannot be paired"
        )
    for column in chosen.needs:
        if column not in a or column not in b:
            raise InputError(f"{metric} needs the column {column!r}; one of the two lacks it")
    for column in by:
        if column not in a and column not in b:
            raise unknown("column", column, [str(name) for name in a.columns])
        if column not in a or column not in b or column in chosen.never_by:
            raise InputError(f"{metric} cannot be split by {column!r} in both")
    never = chosen.never_by
    several = [
        column
        for column in chosen.apart
        if column not in (*WHO, between, *by, *never) and column in a and column in b
        if len({*a[column], *b[column]}) > 1
    ]
    by = [*several, *by]
    keys = [c for c in SAME if c in a and c in b and c not in (*never, between)]
    keys = list(dict.fromkeys([*keys, *by]))
    sides = []
    for outcomes in (a, b):
        units = chosen.units(outcomes, keys)
        counted = (units.reason == "").to_numpy(bool)
        values = units.stats[counted]
        if len(values) and not (values[:, 1] == 1).all():
            raise InputError(f"{metric} weighs its {chosen.unit}, so two models cannot be paired")
        side = units.cells[keys].assign(__cluster=units.cluster.to_numpy(), __value=np.nan)
        side.loc[counted, "__value"] = values[:, 0]
        if side[counted].duplicated(keys).any():
            raise InputError(f"the same {chosen.unit} occur twice; compare one run with one")
        # Rows that count come first, so that they are kept where a unit has several rows.
        sides.append(pd.concat([side[counted], side[~counted]]).drop_duplicates(keys))
    both = sides[0].merge(sides[1].drop(columns="__cluster"), "outer", keys, suffixes=("_a", "_b"))
    cell, labels = cells(both, list(by))
    pairs = both[["__value_a", "__value_b"]].to_numpy(float)
    counted = ~np.isnan(pairs).any(axis=1)
    found = []
    for at, label in enumerate(labels):
        here, missing = (cell == at) & counted, np.isnan(pairs).sum(axis=1)[cell == at]
        units_of = pd.DataFrame(np.column_stack([pairs[here], np.ones(here.sum())]))
        sums = units_of.groupby(both["__cluster"].to_numpy()[here], sort=True).sum().to_numpy(float)
        left = int((missing == 1).sum()), int((missing == 2).sum())
        found.append(Matched(label, pairs[here], sums, *left))
    return found


def tested(metric: str, cell: Matched, resamples: int = TURNS) -> Paired:
    """Compare the two models in one cell. resamples: for `swap_p`."""
    by, pairs, sums, left = cell.by, cell.pairs, cell.sums, (cell.alone, cell.neither)
    n = len(pairs)
    if not n:
        return Paired(metric, by, 0, *left, *[None] * 10)
    interval: Interval | None = bootstrap(sums, difference, limits=_LIMITS)
    low, high = interval or (None, None)
    mean_a, mean_b = (float(v) for v in pairs.mean(0))
    only: tuple[int | None, int | None] = (None, None)
    p: tuple[float | None, float | None] = (None, None)
    if np.isin(pairs, (0, 1)).all():
        hits_a, hits_b = pairs.T == 1
        one, other = int((hits_a & ~hits_b).sum()), int((hits_b & ~hits_a).sum())
        only = (one, other)
        if len(sums) == n:
            p = mcnemar(one, other)
    swap = swapped(sums[:, 1] - sums[:, 0], resamples)
    return Paired(metric, by, n, *left, mean_a, mean_b, mean_b - mean_a, low, high, *only, *p, swap)


def scores(found: Sequence[Paired], a: str, b: str, signature: str) -> list[Score]:
    """Turn comparisons into scores, to be printed or written like any others.

    a, b: names of the two. Each cell has `a` and `b`, the shares or means; `difference`, b minus a
    with its interval; and `mcnemar-p`, the mid-p value, if it is valid (its n counts the units that
    are a hit for only one of the two), else `swap-p`. A cell without matched units has no p-value.
    """
    rows = []
    for one in found:
        by: dict[str, JSON] = {"of": one.metric, "a": a, "b": b, **one.by}
        left = {"on one side only": one.alone, "on neither side": one.neither}
        left = {why: number for why, number in left.items() if number}
        told: dict[str, Any] = {"bounds": None, "signature": signature}
        for name, value in (("a", one.a), ("b", one.b)):
            rows.append(Score(name, by, value, None, None, one.n, {}, **told))
        rows.append(Score("difference", by, one.difference, one.low, one.high, one.n, left, **told))
        if not one.n:
            continue
        name, p = one.test
        apart = one.only_a + one.only_b if one.only_a is not None and one.only_b is not None else 0
        n = apart if name == "mcnemar-p" else one.n
        rows.append(Score(name, by, p, None, None, n, {}, **told))
    return rows


declare(
    Measure("difference", "the second figure minus the first", "points"),
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
        note="swap-p: from swapping the two models' replies, statement by statement.",
    ),
)
