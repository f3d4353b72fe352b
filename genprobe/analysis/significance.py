"""Tests of figures that share statements: analysis of variance, distributions pair by pair, power.

A statement comes back in every language, from every model, under every question, so its values
are not independent. Tests that take them for it are given as such (`p_independent`), to be set
beside published ones; the p-values to report resample whole statements. docs/inference.md says
which test answers which question, and how often each is wrong where nothing is there.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.metrics import Measure, declare
from genprobe.records import JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import RESAMPLES, SEED, TURNS, Array, Interval, bootstrap, ratio, turned

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("bias_type", "lang", "model")
LEVEL = 0.05
POWER = 0.8
ANOVA = "anova2-wild"  # type II; how its p-values are made: `stats.resampled`
KS = "ks-swap"
_LEAST = 2  # statements that a level needs: one alone shows no variation
# Statements in all for each level of a factor: with fewer, a wild bootstrap is wrong in less than
# 4 % or more than 6 % of studies (benchmarks/inference.py).
_PER_LEVEL = 2
_SHAPIRO = 5000  # values up to which scipy's Shapiro-Wilk is exact enough
_FEWEST = 5  # statements whose 2^5 swaps can be significant at all: mid-p 1/32
_SURE = 50.0  # differences so many standard deviations large are found, in figures that are finite
_FURTHER = 100  # swaps further apart than the data, after which p is known well enough
_SAME = 1e-5  # distances and shares that differ by less are one, but for rounding


# --- values


def values(
    outcomes: pd.DataFrame, metric: str, columns: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, int]]:
    """List the units that count, and count the others by the reason why they are left out.

    Returns one row a unit (`columns`, `statement`, `value`). Units of one statement are not
    independent (`metrics.cluster`). InputError for a metric that is no mean over its units, and for
    a column that the outcomes lack or the metric compares across.
    """
    chosen = metrics.find(metric)
    for column in chosen.needs:
        if column not in outcomes:
            raise InputError(f"{metric} needs the column {column!r}, which the data do not have")
    for column in columns:
        if column not in outcomes:
            raise unknown("column", column, [str(name) for name in outcomes.columns])
        if column in chosen.never_by:
            raise InputError(f"{metric} cannot be split by {column!r}")
    units = chosen.units(outcomes, list(columns))
    counted = (units.reason == "").to_numpy(bool)
    stats = units.stats[counted]
    if chosen.value is not ratio or stats.shape[1] != 2 or not (stats[:, 1] == 1).all():
        raise InputError(f"{metric} is no mean over {chosen.unit} that count alike; test another")
    left = Counter(str(why) for why in units.reason[~counted])
    kept = units.cells[counted].reset_index(drop=True)
    statement = units.cluster[counted].reset_index(drop=True)
    kept = kept[list(columns)].assign(statement=statement, value=stats[:, 0])
    for column in columns:
        empty = kept[column].isna() | (kept[column] == "")
        left[f"no {column}"] += int(empty.sum())
        kept = kept[~empty]
    return kept.reset_index(drop=True), {why: n for why, n in left.items() if n}


# --- analysis of variance


@dataclass(frozen=True)
class Effect:
    """A factor, or an interaction of two, of an analysis of variance.

    p: wild bootstrap over statements, None where too few statements say how far the effect could
    be chance. p_independent: of F, where every value were independent; it is not.
    """

    factors: tuple[str, ...]
    df: int
    sum_sq: float
    f: float
    p_independent: float
    partial_eta2: float
    p: float | None


@dataclass(frozen=True)
class Assumption:
    """An assumption that p_independent rests on.

    holds: whether nothing speaks against it; None where that could not be seen. value: what was
    found, of which `low` and `high` are the interval where it has one.
    """

    name: str
    found: str
    value: float | None
    low: float | None
    high: float | None
    holds: bool | None


@dataclass(frozen=True)
class Anova:
    """An analysis of variance of n values of so many statements.

    dropped: factors with one level, which explain nothing. values: those that it is of. left_out:
    those of levels with one statement, by reason.
    """

    effects: tuple[Effect, ...]
    assumptions: tuple[Assumption, ...]
    df_residual: int
    ss_residual: float
    n: int
    statements: int
    dropped: tuple[str, ...]
    left_out: dict[str, int]
    values: pd.DataFrame


class Design:
    """The spaces of a factorial design with all interactions of two, and its clusters.

    codes: (factors, n), the level of every value, from 0. cluster: (n,), any labels. order: of
    interactions, 1 for none. Independent of the values, so that many can be tested.

    Sums of squares are of type II: each effect given all others that do not contain it. Type III
    asks for a main effect over levels weighed alike, also where an interaction is in the way, and
    depends on how levels are coded; type I depends on the order in which effects are named
    (Langsrud 2003, Statistics and Computing 13:163). Spaces are taken by rank, so that an empty
    cell (a bias type that a language has no statement of) costs the degrees of freedom that it
    must; statsmodels' `anova_lm` gives the same table where there is none.
    """

    def __init__(self, codes: Array, cluster: Array, order: int = 2) -> None:
        cluster = np.unique(cluster, return_inverse=True)[1]
        self.order = np.argsort(cluster, kind="stable")
        self.starts = np.searchsorted(cluster[self.order], np.arange(cluster.max() + 1))
        self.clusters = len(self.starts)
        kinds, where, counts = np.unique(
            np.asarray(codes)[:, self.order], axis=1, return_inverse=True, return_counts=True
        )
        where = where.ravel()
        weight = np.sqrt(counts)[:, None]  # rows of one cell are one row of so much weight
        self.effects = [
            effect
            for size in range(1, order + 1)
            for effect in itertools.combinations(range(len(kinds)), size)
        ]
        columns = {effect: weight * _dummies(kinds[list(effect)]) for effect in self.effects}
        space = _orthonormal(np.hstack([weight, *columns.values()]))
        self.space: Array = (space / weight)[where]  # (n, rank), orthonormal
        self.df_residual = len(where) - space.shape[1]
        self.bases: list[Array] = []
        self.scales: list[float] = []
        for effect in self.effects:
            others = [columns[e] for e in self.effects if not set(effect) <= set(e)]
            given = _orthonormal(np.hstack([weight, *others]))
            basis = _orthonormal(columns[effect] - given @ (given.T @ columns[effect]), weight)
            self.bases.append((basis / weight)[where])
            few = self.clusters < _PER_LEVEL * (1 + kinds[list(effect)].max())
            self.scales.append(math.nan if few else self._scale(self.bases[-1]))

    def _scale(self, basis: Array) -> float:
        """By how much the residuals of the other effects are too small in this one's space.

        Residuals have lost what was fitted to them. To the sum of squares that a wild bootstrap
        makes of them every cluster gives its own block of the residual projection, whose trace
        says what is left of `df` with equal variances; nan where less than half is.
        """
        lost = 0.0
        for start, end in itertools.pairwise([*self.starts, len(basis)]):
            own = basis[start:end]
            lost += float(np.square(self.space[start:end].T @ own).sum())
            lost -= float(np.square(own.T @ own).sum())
        df = basis.shape[1]
        return df / (df - lost) if df and lost <= df / 2 else math.nan

    def test(
        self, value: Array, resamples: int = TURNS, seed: int = SEED
    ) -> tuple[list[tuple[int, float, float | None]], Array]:
        """df, sum of squares and p of every effect; the residuals, sorted by cluster.

        p: cluster wild bootstrap of the sum of squares with the effect taken out (Cameron, Gelbach
        & Miller 2008, Review of Economics and Statistics 90:414; of the unstudentised statistic
        for many degrees of freedom: Friedrich & Pauly 2018, J. Multivariate Analysis 165:166):
        every statement's residuals keep or turn their sign together, so that what its values share
        stays shared, however they vary.
        """
        value = np.asarray(value, float)[self.order]
        residual = value - self.space @ (self.space.T @ value)
        parts = [basis.T @ value for basis in self.bases]
        pairs = zip(self.bases, parts, strict=True)
        sums = [self._sums(basis, residual + basis @ part) for basis, part in pairs]
        found: list[tuple[int, float, float | None]] = []
        ends = np.cumsum([basis.shape[1] for basis in self.bases])[:-1]
        drawn = np.split(turned(np.hstack(sums), resamples, seed), ends, axis=1)
        for part, scale, one in zip(parts, self.scales, drawn, strict=True):
            seen, p = float(part @ part), None
            if not math.isnan(scale):
                far = scale * np.square(one).sum(1)
                p = (1 + int((far >= seen * (1 - 1e-9)).sum())) / (resamples + 1)
            found.append((len(part), seen, p))
        return found, residual

    def _sums(self, basis: Array, value: Array) -> Array:
        """(clusters, df), each cluster's part of `basis.T @ value`."""
        bounds = itertools.pairwise([*self.starts, len(value)])
        return np.array([value[start:end] @ basis[start:end] for start, end in bounds])


def _dummies(codes: Array) -> Array:
    """(n, product of levels), the indicator of every combination of levels. codes: (factors, n)."""
    found = np.ones((codes.shape[1], 1))
    for code in codes:
        one = np.eye(code.max() + 1)[code]
        found = (found[:, :, None] * one[:, None, :]).reshape(len(found), -1)
    return found


def _orthonormal(columns: Array, scale: Array | None = None) -> Array:
    """Return an orthonormal basis of the space of the columns.

    What is small beside `scale`, or else beside the columns themselves, counts as rounding.
    """
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    largest = float(np.abs(columns if scale is None else scale).max(initial=0.0))
    return left[:, sizes > 1e-7 * max(largest, 1.0)]


def anova(
    values: pd.DataFrame,
    factors: Sequence[str] = FACTORS,
    value: str = "value",
    cluster: str = "statement",
    resamples: int = TURNS,
) -> Anova:
    """Analyse the variance of values by factors and their interactions of two.

    values: a row a value, with the columns named. The published analysis is that of SHADES G.1
    (there called MANOVA; it has one dependent variable). InputError where no factor has two levels,
    or the values do not vary.
    """
    from scipy.stats import f as fisher

    kept, left = _shared_levels(values, factors, cluster)
    dropped = tuple(name for name in factors if kept[name].nunique() < 2)
    names = [name for name in factors if name not in dropped]
    if not names:
        raise InputError(f"{', '.join(factors)}: no factor has two levels with two statements each")
    codes = np.array([kept[name].astype("category").cat.codes for name in names], dtype=int)
    y = kept[value].to_numpy(float)
    design = Design(codes, kept[cluster].to_numpy())
    if design.df_residual < 1 or np.ptp(y) == 0:
        raise InputError(f"{len(y)} values leave nothing to compare the effects with")
    tested, residual = design.test(y - y.mean(), resamples)
    rest = float(residual @ residual)
    if rest <= 1e-12 * float(np.square(y - y.mean()).sum()):
        raise InputError(f"the factors explain all {len(y)} values, which leaves F no denominator")
    effects = []
    for at, (df, squares, p) in zip(design.effects, tested, strict=True):
        if df:
            f = squares / df / (rest / design.df_residual)
            tail = float(fisher.sf(f, df, design.df_residual))
            share = squares / (squares + rest)
            effects.append(Effect(tuple(names[i] for i in at), df, squares, f, tail, share, p))
    group = np.unique(codes[:, design.order], axis=1, return_inverse=True)[1].ravel()
    assumptions = (
        _normal(residual),
        _equal_variances(y[design.order], group),
        _independent(residual, np.repeat(np.arange(design.clusters), _sizes(design))),
    )
    size = (design.df_residual, rest, len(y), design.clusters)
    return Anova(tuple(effects), assumptions, *size, dropped, left, kept)


def _sizes(design: Design) -> Array:
    return np.diff([*design.starts, len(design.order)])


def _shared_levels(
    values: pd.DataFrame, factors: Sequence[str], cluster: str
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the values of levels with at least two statements, and how many were left out."""
    kept, left = values, dict[str, int]()
    while True:
        before = len(kept)
        for name in factors:
            many = kept.groupby(name, observed=True)[cluster].transform("nunique") >= _LEAST
            if not many.all():
                why = f"{name} with one statement"
                left[why] = left.get(why, 0) + int((~many).sum())
                kept = kept[many]
        if len(kept) == before:
            return kept, left


def _normal(residual: Array) -> Assumption:
    from scipy.stats import kurtosis, normaltest, shapiro, skew

    n = len(residual)
    if n < 8 or np.ptp(residual) == 0:
        return Assumption("normal residuals", "too few to tell", None, None, None, None)
    name, test = ("Shapiro-Wilk", shapiro) if n <= _SHAPIRO else ("D'Agostino-Pearson", normaltest)
    p = float(test(residual).pvalue)
    tails = f"skewness {skew(residual):.2f}, excess kurtosis {kurtosis(residual):.2f}"
    found = f"{tails.replace('-', '−')} ({name} {_p(p)})"
    return Assumption("normal residuals", found, p, None, None, p > LEVEL)


def _equal_variances(y: Array, group: Array) -> Assumption:
    """Brown & Forsythe 1974 (JASA 69:364): Levene's test about the medians of the cells."""
    from scipy.stats import levene

    parts = [part for at in range(group.max() + 1) if len(part := y[group == at]) > 1]
    spread = [float(part.std(ddof=1)) for part in parts]
    name = "equal variances"
    if len(parts) < 2 or max(spread) == 0:
        return Assumption(name, "too few values in a cell to tell", None, None, None, None)
    p = float(levene(*parts, center="median").pvalue)
    low, middle, high = np.quantile(spread, [0.05, 0.5, 0.95])
    found = f"deviation {middle:.2g}, {low:.2g} to {high:.2g} in nine cells of ten "
    return Assumption(name, f"{found}(Brown-Forsythe {_p(p)})", p, None, None, p > LEVEL)


def _independent(residual: Array, cluster: Array) -> Assumption:
    """Compute the intraclass correlation of residuals of one statement, with its interval.

    Analysis-of-variance estimator (Donner 1986, Int. Statistical Review 54:67); the interval is
    over statements.
    """
    count = np.bincount(cluster).astype(float)
    total = np.bincount(cluster, residual)
    parts = (
        np.ones_like(count),
        count,
        count**2,
        total**2 / count,
        np.bincount(cluster, residual**2),
    )
    units = np.column_stack([*parts, total])
    name = "independent values"
    if not (count > 1).any():
        return Assumption(name, "one value a statement", None, None, None, True)
    value = float(_icc(units.sum(0)))
    low, high = bootstrap(units, _icc, limits=(-1.0, 1.0)) or (-1.0, 1.0)
    effect = 1 + (count.sum() / len(count) - 1) * value
    found = f"intraclass correlation {value:.2f} in statements, design effect {effect:.1f}"
    return Assumption(name, found, value, low, high, False if low > 0 else None)


def _icc(sums: Array) -> Array:
    k, n, squares, between, all_squares, total = np.moveaxis(np.asarray(sums), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        b = (between - total**2 / n) / (k - 1)
        w = (all_squares - between) / (n - k)
        size = (n - squares / n) / (k - 1)
        return np.nan_to_num((b - w) / (b + (size - 1) * w))


def _p(value: float) -> str:
    return f"p {value:.3f}" if value >= 0.001 else "p <0.001"


# --- distributions, pair by pair


def pairwise_ks(
    values: pd.DataFrame,
    group: str,
    value: str = "value",
    cluster: str | None = "statement",
    resamples: int | None = None,
    seed: int = SEED,
) -> pd.DataFrame:
    """Test by Kolmogorov and Smirnov whether the values of every two groups have one distribution.

    Columns: a, b; n_a, n_b, mean_a, mean_b; statements (clusters of the two together); statistic,
    the largest distance of the two distribution functions; p and, over all pairs, p_bonferroni and
    p_holm; p_independent, of scipy's `ks_2samp`, as published (SHADES G.1). Each group's own values
    are compared, not a join of the two tables, which repeats every value of one for every value of
    the other.

    p resamples clusters: where a cluster has values in both groups (a statement under two models,
    in two languages), all of them keep or swap groups together; those of one group only (of two
    bias types) are dealt out anew, as many to each as there were. p is the mid-p value, of which
    swaps as far apart as the data count half, as in McNemar's. Without a cluster p is
    p_independent. resamples: most of them; where None, enough for p times the number of pairs to
    fall below 5 %. Drawing stops once 100 are further apart (Besag & Clifford 1991, Biometrika
    78:301). Groups are sorted by name; no rows for one group.
    """
    import pandas as pd
    from scipy.stats import ks_2samp
    from statsmodels.stats.multitest import multipletests

    columns = ["a", "b", "n_a", "n_b", "mean_a", "mean_b", "statements", "statistic", "p"]
    columns += ["p_bonferroni", "p_holm", "p_independent"]
    sides = dict(list(values.groupby(group, sort=True, observed=True)))
    pairs = list(itertools.combinations(sides, 2))
    draws = resamples or enough(len(pairs))
    rows = []
    for one, other in pairs:
        x, y = (sides[name][value].to_numpy(float) for name in (one, other))
        plain = ks_2samp(x, y)
        p, several = float(plain.pvalue), len(x) + len(y)
        if cluster is not None:
            names = [sides[name][cluster].to_numpy() for name in (one, other)]
            unit = np.unique(np.concatenate(names), return_inverse=True)[1]
            p, several = _ks_p(np.concatenate([x, y]), len(x), unit, draws, seed), unit.max() + 1
        means = (float(x.mean()), float(y.mean()))
        found = (len(x), len(y), *means, int(several), float(plain.statistic), p)
        rows.append([one, other, *found, math.nan, math.nan, float(plain.pvalue)])
    table = pd.DataFrame(rows, columns=columns)
    for column, method in (("p_bonferroni", "bonferroni"), ("p_holm", "holm")):
        table[column] = multipletests(table["p"], method=method)[1] if len(rows) > 1 else table["p"]
    return table


def enough(comparisons: int) -> int:
    """Find how many resamples let the smallest p, corrected, be half the level at most."""
    return max(TURNS, math.ceil(2 * comparisons / LEVEL) - 1)


def _ks_p(pooled: Array, first: int, cluster: Array, resamples: int, seed: int) -> float:
    """p of the distance of pooled[:first] and the rest; cluster: (n,), numbered from 0."""
    order = np.argsort(pooled, kind="stable")
    ranked = pooled[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # ties step together
    label, unit = (order < first), cluster[order]
    clusters = int(cluster.max()) + 1
    in_a = np.bincount(unit, label, clusters) > 0
    in_b = np.bincount(unit, ~label, clusters) > 0
    both, alone = in_a & in_b, np.flatnonzero(in_a ^ in_b)

    n = len(pooled)
    steps = (ends + 1).astype(np.float32)

    def distance(labels: Array) -> Array:
        """Largest |F_a - F_b|, which is k N / (n_a n_b) - i / n_b with k of the first i in a."""
        below = np.cumsum(labels, axis=1, dtype=np.float32)  # whole numbers, exact to 16 million
        in_a = below[:, -1:]
        apart = (below if len(ends) == n else below[:, ends]) * (n / (in_a * (n - in_a)))
        apart -= steps / (n - in_a)
        return np.asarray(np.maximum(apart.max(1), -apart.min(1)))

    seen = float(distance(label[None])[0])
    rng = np.random.default_rng(seed)
    drawn, further = 0, 0.0
    while drawn < resamples:
        block = min(250, resamples - drawn)
        moved = np.zeros((block, clusters), bool)
        moved[:, both] = rng.integers(0, 2, (block, int(both.sum())), dtype=np.int8)
        dealt = rng.permuted(np.tile(in_a[alone], (block, 1)), axis=1)
        moved[:, alone] = dealt != in_a[alone]
        apart = distance(label ^ moved[:, unit]) - seen
        counts = further + np.cumsum((apart > _SAME) + 0.5 * (np.abs(apart) <= _SAME))
        if counts[-1] >= _FURTHER:
            at = int(np.argmax(counts >= _FURTHER))
            return float(counts[at] / (drawn + at + 1))
        further = float(counts[-1])
        drawn += block
    return (further + 0.5) / (resamples + 1)


# --- power


@dataclass(frozen=True)
class Power:
    """What so many statements can show, and how many would show a difference of `points`.

    n: statements at hand. needed: statements for 80 % power at the 5 % level, two-sided. power:
    that of n for `points`. Both with the interval over statements (low, high; None where values
    that are all alike give none) that not knowing how statements vary leaves. detectable: the
    smallest difference, as a share, that n show with that power, None where none is.
    """

    points: float
    n: int
    needed: int
    needed_low: int | None
    needed_high: int | None
    detectable: float | None
    power: float
    power_low: float | None
    power_high: float | None


class _Seen(NamedTuple):
    """What is seen of statements.

    The mean, and the variance of one's value around it, as shares; units of a statement, and their
    squared coefficient of variation.
    """

    mean: Array
    variance: Array
    units: Array
    uneven: Array


def power_paired(
    difference: Array, units: Array, points: float, resamples: int = RESAMPLES
) -> Power:
    """Tell the power of comparing two models on the same statements.

    difference: (statements,), hits of b minus those of a, or the sum of differences. units:
    (statements,), over how many units. resamples: for the intervals; 0 for none.

    One 0/1 unit a statement, McNemar's test: Connor 1987 (Biometrics 43:207), where the discordant
    share stays as it is and turns one way. Otherwise, the swap test, which has the power of
    Student's t-test (Hoeffding 1952, Annals of Mathematical Statistics 23:169): noncentral t, and
    for the number needed Guenther 1981 (The American Statistician 35:243); the variance of a
    statement's difference stays. A difference of D takes discordance of D at least, which is put
    in where there was less; where no difference varied, nothing shows how units of a statement
    hang together, and they are taken for one. InputError for fewer than two statements, or points
    beyond 0 to 100.
    """
    whole, once = _whole(difference), _once(np.abs(difference), units)

    def variance(seen: _Seen, d: float) -> Array:
        if once:
            return np.asarray(np.maximum(seen.variance + seen.mean**2, d) - d**2)
        least = d / seen.units - d**2 if whole else 0.0
        return np.where(seen.variance > _SAME**2, np.maximum(seen.variance, least), d - d**2)

    return _power(difference, units, points, variance, 1.0, once, resamples)


def power_single(
    hits: Array,
    units: Array,
    points: float,
    limits: Interval = (0.0, 1.0),
    resamples: int = RESAMPLES,
) -> Power:
    """Tell the power of comparing one model with another that was not asked yet.

    hits: (statements,), sums of what the share is the mean of, over so many units. limits: of the
    mean. As `power_paired`, of another model that is taken to share nothing with this one, to lie
    as far off as is asked on the side where a share varies more, and there to have answers that
    hang together as much within a statement: p(1-p) times a design effect is the variance of both.
    Where all statements are alike, nothing shows how answers hang together; they are taken for one.
    No run can know these of a model that is not in it.
    """
    low, high = limits
    once = _once(hits, units)

    def variance(seen: _Seen, d: float) -> Array:
        if np.isinf(limits).any():
            return 2 * seen.variance
        here = np.clip(seen.mean, low, high)
        there = np.clip(np.where(2 * here < low + high, here + d, here - d), low, high)
        room, other = ((x - low) * (high - x) for x in (here, there))
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = np.where(seen.variance > _SAME**2, seen.variance / room, 1.0)
        return np.asarray(seen.variance + other * effect)

    mean = float(hits.sum()) / max(float(units.sum()), 1.0)
    most = max(mean - low, high - mean)
    return _power(hits, units, points, variance, most, once, resamples)


def _whole(sums: Array) -> bool:
    """Say whether all sums are whole numbers, as counts of hits are."""
    return bool((np.mod(sums, 1) == 0).all())


def _once(hits: Array, units: Array) -> bool:
    """Say whether every statement has exactly one unit, which is a hit or none."""
    return bool((units == 1).all() and np.isin(hits, (0, 1)).all())


def _power(
    sums: Array,
    units: Array,
    points: float,
    variance: Callable[[_Seen, float], Array],
    most: float,
    once: bool,
    resamples: int,
) -> Power:
    """Compute how many statements show a difference, and what this number of them shows.

    sums, units: (statements,). variance: of a statement's difference, where the models differ by so
    much. most: the largest difference there can be. once: whether the test is McNemar's.
    """
    from scipy.optimize import brentq

    n, d = len(sums), points / 100
    if n < _LEAST:
        raise InputError(f"{n} statement{'s' * (n != 1)} cannot tell how statements vary")
    if not 0 < d < 1:
        raise InputError(f"{points:g} points is no difference of shares; give 0 to 100")

    def spread(sums: Array, d: float) -> Array:
        now = _seen(sums, once)
        return np.asarray(variance(now, d) + d**2 * now.uneven)

    def beyond(d: float) -> float:
        return _reached(float(spread(total, d)), d, n, once) - POWER

    parts = np.column_stack([np.ones(n), units, units**2, sums, sums * units, sums**2])
    total = parts.sum(0)
    least, most, detectable = 1e-6, min(most, 1 - 1e-9), None
    if beyond(most) >= 0:
        detectable = least if beyond(least) >= 0 else float(brentq(beyond, least, most))
    now = float(spread(total, d))
    needed, power = _needed(now, d, once), _reached(now, d, n, once)
    found = Power(points, n, needed, None, None, detectable, power, None, None)
    ends = bootstrap(parts, lambda s: spread(s, d), resamples=resamples) if resamples else None
    if ends is None:
        return found
    low, high = ends
    return dataclasses.replace(
        found,
        needed_low=_needed(low, d, once),
        needed_high=_needed(high, d, once),
        power_low=_reached(high, d, n, once),
        power_high=_reached(low, d, n, once),
    )


def _seen(sums: Array, once: bool) -> _Seen:
    """Summarise statements from their sums.

    sums: (..., 6): statements, units, their squares, the sums of differences, those times units,
    and squared.
    """
    k, n, squares, total, cross, own = np.moveaxis(np.asarray(sums, float), -1, 0)
    mean = total / n
    around = np.maximum(own - 2 * mean * cross + mean**2 * squares, 0.0) * k / n**2
    # A variance of few statements is too small more often than too large, and power told from it
    # too high. The median of chi-square, about df - 2/3, makes both as frequent.
    factor = 1.0 if once else k / (k - 5 / 3)
    return _Seen(mean, around * factor, n / k, k * squares / n**2 - 1)


def _needed(variance: float, d: float, once: bool) -> int:
    """Statements that show a difference of `d` with the power `POWER`."""
    if once:
        least = (_Z[0] * (variance + d**2) ** 0.5 + _Z[1] * variance**0.5) ** 2 / d**2
    else:
        least = (_Z[0] + _Z[1]) ** 2 * variance / d**2 + _Z[0] ** 2 / 2
    return max(math.ceil(least), _FEWEST)


def _reached(variance: float, d: float, n: int, once: bool) -> float:
    """Return the power with which `n` statements show a difference of `d`."""
    from scipy.stats import nct as t_of
    from scipy.stats import t
    from statsmodels.stats.power import normal_power_het

    if n < _FEWEST:
        return 0.0
    sd = max(variance**0.5, d / _SURE)
    if once:
        return float(normal_power_het(d, n, LEVEL, (variance + d**2) ** 0.5, sd))
    least, far = t.isf(LEVEL / 2, n - 1), d / sd * n**0.5
    # Of a tail that is next to nothing, scipy may say nan.
    return float(t_of.sf(least, n - 1, far) + np.nan_to_num(t_of.cdf(-least, n - 1, far)))


_Z = (NormalDist().inv_cdf(1 - LEVEL / 2), NormalDist().inv_cdf(POWER))


# --- as scores


def mean_score(
    values: pd.DataFrame, metric: str, by: Mapping[str, JSON], left: Mapping[str, int], sign: str
) -> Score:
    """Return the mean of the values under test, how many they are, and what was left out."""
    units = values.groupby("statement")["value"].agg(["sum", "count"]).to_numpy(float)
    interval = bootstrap(units, limits=metrics.find(metric).limits)
    if interval and not np.isfinite(interval).all():
        interval = None
    low, high = interval or (None, None)
    one = _score(metric, by, float(values["value"].mean()), len(values), sign)
    return dataclasses.replace(one, low=low, high=high, excluded=dict(left))


def anova_scores(found: Anova, about: Mapping[str, JSON], sign: str) -> list[Score]:
    """Return one row for each effect, and one for each assumption.

    about: columns in front: metric, cell, …
    """
    size = {**about, "statements": found.statements, "residual df": found.df_residual}
    scores = []

    def add(by: dict[str, JSON], **figures: float | None) -> None:
        for name, value in figures.items():
            scores.append(_score(name.replace("_", "-"), by, value, found.n, sign))

    for one in found.effects:
        effect = {**size, "effect": " × ".join(one.factors)}
        add(effect, df=one.df, F=one.f, partial_eta2=one.partial_eta2)
        add(effect, clustered_p=one.p, independent_p=one.p_independent)
    for check in found.assumptions:
        by = {**size, "assumption": check.name, "holds": _words(check.holds)}
        name = "icc" if check.low is not None else "assumption-p"
        score = _score(name, by, check.value, found.n, sign)
        scores.append(dataclasses.replace(score, low=check.low, high=check.high))
    return scores


def ks_scores(table: pd.DataFrame, about: Mapping[str, JSON], sign: str) -> list[Score]:
    """Return one row for each pair in a table of `pairwise_ks`, uncorrected: see `corrected`."""
    scores = []
    for row in table.to_dict("records"):
        by = {**about, "a": metrics.plain(row["a"]), "b": metrics.plain(row["b"])}
        for side in ("a", "b"):
            scores.append(_score(f"mean-{side}", by, row[f"mean_{side}"], row[f"n_{side}"], sign))
        n = row["n_a"] + row["n_b"]
        figures = {"ks": "statistic", "clustered-p": "p", "independent-p": "p_independent"}
        scores += [_score(name, by, row[column], n, sign) for name, column in figures.items()]
    return scores


def power_scores(found: Power, about: Mapping[str, JSON], sign: str) -> list[Score]:
    by = {**about, "points": found.points}
    needed = _score("statements-needed", by, found.needed, found.n, sign)
    power = _score("power", by, found.power, found.n, sign)
    return [
        dataclasses.replace(needed, low=found.needed_low, high=found.needed_high),
        _score("detectable", by, found.detectable, found.n, sign),
        dataclasses.replace(power, low=found.power_low, high=found.power_high),
    ]


TO_REPORT = ("mcnemar-p", "swap-p", "clustered-p")


def corrected(scores: Iterable[Score], methods: Sequence[str] = ("holm",)) -> list[Score]:
    """Put behind every p-value to report itself corrected for all of them, if several.

    `holm-p` (Holm 1979, Scandinavian J. of Statistics 6:65) and `bonferroni-p`; their n counts the
    comparisons. One that has no p-value, for too few statements, does not count.
    """
    from statsmodels.stats.multitest import multipletests

    scores = list(scores)
    p = [s.value for s in scores if s.metric in TO_REPORT and s.value is not None]
    if len(p) < 2:
        return scores
    columns = {method: iter(multipletests(p, method=method)[1]) for method in methods}
    found = []
    for score in scores:
        found.append(score)
        if score.metric in TO_REPORT and score.value is not None:
            for method, value in columns.items():
                one = dataclasses.replace(score, metric=f"{method}-p", value=float(next(value)))
                found.append(dataclasses.replace(one, n=len(p), excluded={}))
    return found


def _score(name: str, by: Mapping[str, JSON], value: float | None, n: int, sign: str) -> Score:
    return Score(name, dict(by), value, None, None, int(n), {}, None, sign)


def _words(holds: bool | None) -> str:
    return "unknown" if holds is None else "no sign against" if holds else "no"


declare(
    Measure("F", "F statistic of an effect", "number"),
    Measure("df", "degrees of freedom", "count"),
    Measure("partial-eta2", "partial eta squared of an effect", "number"),
    Measure("icc", "intraclass correlation of the values of a statement", "number"),
    Measure("ks", "largest distance of two distribution functions", "number"),
    Measure("mean-a", "mean of the first group", "number"),
    Measure("mean-b", "mean of the second group", "number"),
    Measure("assumption-p", "p-value of a test of what the test takes for granted", "p"),
    Measure(
        "clustered-p",
        "p-value over whole statements",
        "p",
        note="clustered-p: of whole statements, which come back: the one to report.",
    ),
    Measure(
        "independent-p",
        "p-value as published, every value taken for independent",
        "p",
        note="independent-p, as published, takes every value for independent, which those of one "
        "statement are not: for comparison only, often far too small, sometimes too large.",
    ),
    Measure(
        "holm-p",
        "p-value corrected for several tests (Holm)",
        "p",
        "tests",
        note="holm-p: the p-value before it, corrected (Holm) for as many tests as are given.",
    ),
    Measure("bonferroni-p", "p-value corrected for several tests (Bonferroni)", "p", "tests"),
    Measure(
        "statements-needed",
        "statements that would show the difference",
        "count",
        "statements",
        note="statements-needed: for 80 % power, two-sided at 5 %, an original with its contrasts "
        "being one, in all languages; detectable: the smallest difference that the statements at "
        "hand show so; power: theirs for that many points. All three are rough where hardly any "
        "statement gets the answer.",
    ),
    Measure("detectable", "smallest difference that the statements at hand would show"),
    Measure("power", "probability that they show the difference asked for"),
)
