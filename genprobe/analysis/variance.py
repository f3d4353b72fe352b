"""Run an analysis of variance of values that share statements.

The values of a statement are not independent. `Effect.p_independent` assumes that they are, as
published analyses do; `Effect.p`, the one to report, resamples the residuals of whole statements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from genprobe.errors import InputError
from genprobe.statistics import ALPHA, LEAST, SEED, TURNS, Array, bootstrap, turned

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("bias_type", "lang", "model")
ANOVA = "anova2-wild"  # type II; name in signatures: `statistics.resampled`
# Statements needed in total, per level of a factor: with fewer, a wild bootstrap is wrong in less
# than 4 % or more than 6 % of studies (benchmarks/inference.py).
_PER_LEVEL = 2
_SHAPIRO = 5000  # values up to which scipy's Shapiro-Wilk is exact enough


@dataclass(frozen=True)
class Effect:
    """A factor, or an interaction of two, in an analysis of variance.

    p: wild bootstrap over statements; None if there are too few statements. p_independent: of F, as
    if all values were independent.
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
    """An assumption of p_independent, and the evidence against it.

    holds: True if there is no evidence against it; None if it could not be tested. value, low,
    high: the estimate, and its interval if it has one.
    """

    name: str
    found: str
    value: float | None
    low: float | None
    high: float | None
    holds: bool | None


@dataclass(frozen=True)
class Anova:
    """An analysis of variance.

    dropped: factors with one level. values: the values that were analysed. left_out: values of
    levels with one statement, by reason.
    """

    effects: tuple[Effect, ...]
    assumptions: tuple[Assumption, ...]
    df_residual: int
    n: int
    statements: int
    dropped: tuple[str, ...]
    left_out: dict[str, int]
    values: pd.DataFrame


class Design:
    """The spaces of a factorial design with all interactions of two, and its clusters.

    codes: (factors, n), the level of every value, from 0. cluster: (n,), any labels. order: of
    interactions, 1 for none. A design does not depend on the values, so it can test many sets of
    them.

    Sums of squares are of type II: each effect given all others that do not contain it. Type III
    tests a main effect over equally weighted levels even if there is an interaction, and depends on
    how levels are coded; type I depends on the order in which effects are named (Langsrud 2003,
    Statistics and Computing 13:163). Spaces are built by rank, so an empty cell (a bias type
    without statements in a language) costs exactly the degrees of freedom that it must; without
    empty cells, statsmodels' `anova_lm` gives the same table.
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
        weight = np.sqrt(counts)[:, None]  # equal rows become one row with this weight
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
        """Return the factor that corrects the bootstrap for residuals that are too small.

        Residuals have lost the part that was fitted to them. In the sum of squares that a wild
        bootstrap makes of them, every cluster contributes its own block of the residual projection.
        With equal variances, the trace of these blocks is what is left of `df`. Returns `df` over
        that trace, NaN if less than half of `df` is left. basis: (n, df) of the effect.
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
        """Compute df, sum of squares and p of every effect; also return the residuals, by cluster.

        value: (n,). p: cluster wild bootstrap of the sum of squares with the effect taken out
        (Cameron, Gelbach & Miller 2008, Review of Economics and Statistics 90:414; of the
        unstudentised statistic for many degrees of freedom: Friedrich & Pauly 2018, J. Multivariate
        Analysis 165:166): all residuals of a statement keep or reverse their sign together, so the
        dependence within a statement is kept, whatever its form.
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
        """Return each cluster's part of `basis.T @ value`, (clusters, df)."""
        bounds = itertools.pairwise([*self.starts, len(value)])
        return np.array([value[start:end] @ basis[start:end] for start, end in bounds])


def _dummies(codes: Array) -> Array:
    """Return the indicators of all combinations of levels, (n, number of combinations).

    codes: (factors, n), levels from 0.
    """
    found = np.ones((codes.shape[1], 1))
    for code in codes:
        one = np.eye(code.max() + 1)[code]
        found = (found[:, :, None] * one[:, None, :]).reshape(len(found), -1)
    return found


def _orthonormal(columns: Array, scale: Array | None = None) -> Array:
    """Return an orthonormal basis of the space of the columns.

    What is small compared with `scale`, or else with the columns themselves, counts as rounding.
    """
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    largest = float(np.abs(columns if scale is None else scale).max(initial=0.0))
    return left[:, sizes > 1e-7 * max(largest, 1.0)]


def anova(values: pd.DataFrame, factors: Sequence[str] = FACTORS, resamples: int = TURNS) -> Anova:
    """Analyse the variance of values by factors and their interactions of two.

    values: columns `value`, `statement` and the factors. The published analysis is that of SHADES
    G.1 (there called MANOVA; it has one dependent variable). Raises InputError if no factor has two
    levels, or the values do not vary.
    """
    from scipy.stats import f as fisher

    kept, left = _shared_levels(values, factors)
    dropped = tuple(name for name in factors if kept[name].nunique() < 2)
    names = [name for name in factors if name not in dropped]
    if not names:
        raise InputError(f"{', '.join(factors)}: no factor has two levels with two statements each")
    codes = np.array([kept[name].astype("category").cat.codes for name in names], dtype=int)
    y = kept["value"].to_numpy(float)
    design = Design(codes, kept["statement"].to_numpy())
    if design.df_residual < 1 or np.ptp(y) == 0:
        raise InputError(f"{len(y)} values leave nothing to compare the effects with")
    tested, residual = design.test(y - y.mean(), resamples)
    rest = float(residual @ residual)
    if rest <= 1e-12 * float(np.square(y - y.mean()).sum()):
        raise InputError(f"the factors explain all {len(y)} values, so F has no denominator")
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
        _independent(residual, np.diff([*design.starts, len(residual)])),
    )
    size = (design.df_residual, len(y), design.clusters)
    return Anova(tuple(effects), assumptions, *size, dropped, left, kept)


def _shared_levels(
    values: pd.DataFrame, factors: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the values of levels with at least two statements, and how many were left out."""
    kept, left = values, dict[str, int]()
    while True:
        before = len(kept)
        for name in factors:
            many = kept.groupby(name, observed=True)["statement"].transform("nunique") >= LEAST
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
    return Assumption("normal residuals", found, p, None, None, p > ALPHA)


def _equal_variances(y: Array, group: Array) -> Assumption:
    """Test equal variances of the cells, by Levene's test about the medians.

    Source: Brown & Forsythe 1974 (JASA 69:364).
    """
    from scipy.stats import levene

    parts = [part for at in range(group.max() + 1) if len(part := y[group == at]) > 1]
    spread = [float(part.std(ddof=1)) for part in parts]
    name = "equal variances"
    if len(parts) < 2 or max(spread) == 0:
        return Assumption(name, "too few values in a cell", None, None, None, None)
    p = float(levene(*parts, center="median").pvalue)
    low, middle, high = np.quantile(spread, [0.05, 0.5, 0.95])
    found = f"deviation {middle:.2g}, {low:.2g} to {high:.2g} in nine cells of ten "
    return Assumption(name, f"{found}(Brown-Forsythe {_p(p)})", p, None, None, p > ALPHA)


def _independent(residual: Array, sizes: Array) -> Assumption:
    """Compute the intraclass correlation of residuals of one statement, with its interval.

    residual: (n,), statement by statement. sizes: (statements,), how many each has.

    Analysis-of-variance estimator (Donner 1986, Int. Statistical Review 54:67); the interval is
    over statements.
    """
    count, cluster = sizes.astype(float), np.repeat(np.arange(len(sizes)), sizes)
    total, squares = np.bincount(cluster, residual), np.bincount(cluster, residual**2)
    ones = np.ones_like(count)
    units = np.column_stack([ones, count, count**2, total**2 / count, squares, total])
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
