"""Compute intervals of a rate measured by a judge and partly reviewed by people, from counts.

Each interval contains the rates that a test does not reject. The test statistic compares the
counts with those expected under the most likely fit for that rate, with the judge's own rates as
free parameters. It is the power divergence of Cressie & Read (1984, J. Royal Statistical Society B
46:440), between the likelihood ratio (too liberal if errors are few) and Pearson's statistic (too
conservative). The cut-off is the 95 % point of the statistic in samples simulated from that fit
(DiCiccio & Romano 1990, Int. Statistical Review 58:59; Lloyd 2008, Australian & NZ J. Statistics
50:329); the normal cut-off fails since a sample of 30 may contain no error at all.

`Counts` may hold arrays of many reviews, so that a simulation needs one call only. The two
estimators are described in `correction`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from genprobe.statistics import LEVEL, Array

ROUNDING = 1e-9  # margin (for rounding) by which a judge must be better than chance
DRAWS = 1000  # simulated samples for a cut-off
SEED = 1
_TINY = 0.01  # trials added to every table in a fit, so that none is empty
_POWER = 2 / 3  # exponent of the power divergence recommended by Cressie & Read
_STEPS = 12  # steps of the search for the end of an interval
_FIT_STEPS = 20  # steps of the search for a constrained fit
_ROUGH_STEPS = 13  # steps of the same search for a simulated sample
_FAR = 1e3  # upper limit of the divergence, for fits that exclude an observed count
_SAME = 1e-3  # tolerance within which two statistics count as equal (rounding of the fit)
_BLOCK = 400_000  # simulated samples held at a time


@dataclass(frozen=True)
class Counts:
    """The counts behind the intervals: arrays of one shape; effective sizes may be fractions.

    positive of total: replies that the judge calls positive, among all measured. hits_p of n_p:
    truly positive replies, among reviewed ones that the judge calls positive. hits_n of n_n: the
    same among reviewed ones that it calls negative.
    """

    positive: Array
    total: Array
    hits_p: Array
    n_p: Array
    hits_n: Array
    n_n: Array


def ppi(counts: Counts) -> Array:
    """Compute the prediction-powered rate.

    If the review contains only one of the judge's labels, this is the rate of the review: power
    tuning then gives the judge no weight.
    """
    share = counts.positive / counts.total
    both = (counts.n_p > 0) & (counts.n_n > 0)
    tuned = share * _over(counts.hits_p, counts.n_p)
    tuned = tuned + (1 - share) * _over(counts.hits_n, counts.n_n)
    return np.where(both, tuned, _over(counts.hits_p + counts.hits_n, counts.n_p + counts.n_n))


def rogan_gladen(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """Correct the judge's rate for its sensitivity and specificity (Rogan & Gladen 1978).

    (rate + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]; NaN if the
    judge is no better than chance.
    """
    better = sensitivity + specificity - 1
    better = np.where(better > ROUNDING, better, 0)
    found = _over(rate + specificity - 1, better)
    return np.where(better > 0, np.clip(found, 0, 1), np.nan)


def rg(counts: Counts) -> Array:
    """Compute the rate by Rogan and Gladen's correction.

    NaN if the review shows a judge no better than chance, or contains no truly positive or no
    truly negative reply.
    """
    (k, total), (tp, positives), (fp, negatives) = _by_truth(counts)
    found = rogan_gladen(_over(k, total), _over(tp, positives), 1 - _over(fp, negatives))
    return np.where((positives > 0) & (negatives > 0), found, np.nan)


def ppi_interval(counts: Counts, level: float = LEVEL) -> tuple[Array, Array]:
    """Compute the interval of the prediction-powered rate: (low, high), arrays like the counts."""
    return _unless_few(counts, _interval(_by_label(counts), _fit_ppi, ppi(counts), level))


def _few(counts: Counts) -> Array:
    """Tell where fewer than two effective reviewed replies remain after the design effect.

    So few (such as a handful of replies to three statements) exclude no rate, and the samples of
    size one that the test would draw are all alike.
    """
    return counts.n_p + counts.n_n < 2


def _unless_few(counts: Counts, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    few = _few(counts)
    return np.where(few, 0.0, ends[0]), np.where(few, 1.0, ends[1])


def rg_interval(counts: Counts, level: float = LEVEL) -> tuple[Array, Array]:
    """Compute the interval of the misclassification correction: (low, high), like the counts.

    It uses the judge's labels in three independent samples: unreviewed replies, truly positive
    reviewed ones and truly negative reviewed ones. The review must be a simple random sample.
    """
    tables = _by_truth(counts)
    start = np.where(np.isnan(rg(counts)), ppi(counts), rg(counts))
    return _unless_few(counts, _interval(tables, _fit_rg, start, level))


def ppi_accepts(counts: Counts, rate: float, level: float = LEVEL) -> Array:
    """Tell whether a rate lies within `ppi_interval`, by one test (faster than the interval)."""
    at = np.full(np.shape(counts.total), rate)
    return _few(counts) | (_beyond(_by_label(counts), _fit_ppi, at, level) <= 0)


def rg_accepts(counts: Counts, rate: float, level: float = LEVEL) -> Array:
    """Tell whether a rate lies within `rg_interval`, by one test (faster than the interval)."""
    at = np.full(np.shape(counts.total), rate)
    return _few(counts) | (_beyond(_by_truth(counts), _fit_rg, at, level) <= 0)


# --- three binomials that share one parameter

Table = tuple[Array, Array]  # successes, trials
Tables = tuple[Table, Table, Table]
Shares = tuple[Array, Array, Array]
Fit = Callable[[Array, Tables, int], Shares]


def _by_label(c: Counts) -> Tables:
    """Return the three tables: measured, reviewed of positive label, reviewed of negative label."""
    return (c.positive, c.total), (c.hits_p, c.n_p), (c.hits_n, c.n_n)


def _by_truth(c: Counts) -> Tables:
    """Return the counts by true label: unreviewed, truly positive, truly negative."""
    false_p, true_n = c.n_p - c.hits_p, c.n_n - c.hits_n
    unreviewed = np.maximum(c.total - c.n_p - c.n_n, 0)
    positive = np.clip(c.positive - c.n_p, 0, unreviewed)
    return (positive, unreviewed), (c.hits_p, c.hits_p + c.hits_n), (false_p, false_p + true_n)


def _over(above: Array, below: Array) -> Array:
    """Return above / below, 0 where `below` is 0."""
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=np.asarray(below) > 0)


def _tilted(x: Array, n: Array, slope: Array) -> Array:
    """Return the p that maximises x log p + (n - x) log(1 - p) - slope × p.

    It is the root of a quadratic, in the form that avoids cancellation.
    """
    a = n + slope
    root = np.sqrt(np.maximum(a * a - 4 * slope * x, 0))
    above = np.where(a > 0, 2 * x, a - root)
    below = np.where(a > 0, a + root, 2 * slope)
    return np.clip(above / np.where(below == 0, 1, below), 0, 1)


def _fit_rg(rate: Array, tables: Tables, steps: int = _FIT_STEPS) -> Shares:
    """Find the most likely shares of three tables, where the first is a mixture of the others.

    first = rate × second + (1 - rate) × third. There is one Lagrange multiplier, and the equation
    is monotone in it, so the root is unique.
    """
    (k, total), (tp, positives), (fp, negatives) = ((x + _TINY / 2, n + _TINY) for x, n in tables)
    scale = positives + negatives + 1

    def shares(u: Array) -> Shares:
        slope = scale * u / (1 - np.abs(u))
        s = _tilted(tp, positives, slope * rate)
        return _tilted(k, total, -slope), s, _tilted(fp, negatives, slope * (1 - rate))

    def excess(u: Array) -> Array:
        r, s, t = shares(u)
        return rate * s + (1 - rate) * t - r

    edge = np.full(np.shape(scale), 1 - 1e-12)
    _, s, t = shares(_root(excess, -edge, edge, steps))
    return rate * s + (1 - rate) * t, s, t


def _fit_ppi(rate: Array, tables: Tables, steps: int = _FIT_STEPS) -> Shares:
    """Find the most likely shares of (measured, reviewed positive, reviewed negative) for a rate.

    The rate is first × second + (1 - first) × third. In terms of sensitivity and specificity the
    likelihood is that of `_fit_rg` times that of the review's own rate, which does not depend on
    them. By Bayes' rule the same fit can therefore be used.
    """
    counts = Counts(*tables[0], *tables[1], *tables[2])
    q, s, _ = _fit_rg(rate, _by_truth(counts), steps)
    precision = np.clip(_over(rate * s, q), 0, 1)
    missed = np.clip(_over(rate * (1 - s), 1 - q), 0, 1)
    return q, precision, missed


def _root(f: Callable[[Array], Array], low: Array, high: Array, steps: int) -> Array:
    """Find where f changes its sign between low and high, elementwise.

    Method: Chandrupatla 1997, Advances in Engineering Software 28:145. Returns `high` where both
    ends have the same sign.
    """
    a, b = low, high
    f_a, f_b = f(a), f(b)
    same = np.sign(f_a) == np.sign(f_b)
    c, f_c = a, f_a  # the point before b
    t = np.full(np.shape(a), 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(steps):
            x = a + t * (b - a)
            f_x = f(x)
            stays = np.sign(f_x) == np.sign(f_a)
            c, f_c = np.where(stays, a, b), np.where(stays, f_a, f_b)
            b, f_b = np.where(stays, b, a), np.where(stays, f_b, f_a)
            a, f_a = x, f_x
            # Inverse quadratic interpolation where the three points allow it, else bisection.
            xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            back = f_a / (f_b - f_a) * f_c / (f_b - f_c)
            t = back + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
            t = np.clip(np.where(smooth & np.isfinite(t), t, 0.5), 1e-3, 1 - 1e-3)
            t = np.where(f_a == 0, 0, t)
    best = np.where(np.abs(f_a) < np.abs(f_b), a, b)
    return np.where(same, high, best)


def _divergence(seen: Array, expected: Array) -> Array:
    """Return one cell's term of Cressie and Read's statistic, 0 where the count is 0."""
    ratio = _over(seen, np.maximum(expected, 1e-12))
    return seen * (ratio**_POWER - 1) * (2 / (_POWER * (_POWER + 1)))


def _statistic(tables: Tables, shares: Shares) -> Array:
    """Return the root of the power divergence between the tables and the constrained shares."""
    total: Array = np.zeros(np.shape(tables[0][0]))
    for (x, n), p in zip(tables, shares, strict=True):
        total = total + _divergence(x, n * p) + _divergence(n - x, n * (1 - p))
    return np.sqrt(np.clip(total, 0, _FAR))


def _interval(tables: Tables, fit: Fit, start: Array, level: float) -> tuple[Array, Array]:
    """Find both ends: the rates at which the test turns from accepting to rejecting."""

    def twice(x: Array) -> Array:
        return np.concatenate([x, x])

    a, b, c = ((twice(x), twice(n)) for x, n in tables)
    limit = np.repeat([0.0, 1.0], len(start))
    ends = _root(lambda rate: _beyond((a, b, c), fit, rate, level), twice(start), limit, _STEPS)
    low, high = np.split(ends, 2)
    return np.minimum(low, start), np.maximum(high, start)


def _beyond(tables: Tables, fit: Fit, rate: Array, level: float) -> Array:
    """Return the statistic minus its cut-off for a rate; positive where the test rejects it."""
    shares = fit(rate, tables, _FIT_STEPS)
    cut = _cut(tables, fit, rate, shares, level)
    return _statistic(tables, shares) - cut - _SAME


def _cut(tables: Tables, fit: Fit, rate: Array, shares: Shares, level: float) -> Array:
    """Simulate the `level` quantile of the statistic for the given rate and judge.

    The same counts use the same random numbers for every rate.
    """
    cuts = []
    each = max(1, _BLOCK // DRAWS)
    for at in range(0, len(rate), each):
        part = slice(at, at + each)
        here = tuple((x[part], n[part]) for x, n in tables)
        a, b, c = _samples((here[0], here[1], here[2]), fit, [p[part] for p in shares])
        values = _statistic((a, b, c), fit(np.repeat(rate[part], DRAWS), (a, b, c), _ROUGH_STEPS))
        # The (draws + 1) × level-th smallest value: the observed sample counts as a draw, too.
        cuts.append(np.quantile(values.reshape(-1, DRAWS), level, axis=1, method="weibull"))
    return np.concatenate(cuts)


def _samples(tables: Tables, fit: Fit, shares: Sequence[Array]) -> Tables:
    """Draw `DRAWS` samples of tables of these sizes and shares for each element, one after another.

    The split of the reviewed replies into the second and third table is also drawn."""
    rng = np.random.default_rng([SEED, *(int(x[0]) for x, _ in tables)])
    total, one, other = (np.rint(n).astype(int) for _, n in tables)
    reviewed = one + other
    margin = _over(one, reviewed)
    size = (DRAWS, len(total))
    if fit is _fit_ppi:
        # The reviewed replies are a part of those measured, so their labels vary together.
        margin = np.clip(margin + shares[0] - _over(*tables[0]), 0, 1)
        second = rng.binomial(reviewed, margin, size)
        rest = np.maximum(total - reviewed, 0)
        share = np.clip(_over(shares[0] * total - margin * reviewed, rest), 0, 1)
        first = np.minimum(second + rng.binomial(rest, share, size), total)
    else:
        second = rng.binomial(reviewed, margin, size)
        first = rng.binomial(total, shares[0], size)
    third = reviewed - second
    drawn = [
        (first, np.broadcast_to(total, size)),
        (rng.binomial(second, shares[1]), second),
        (rng.binomial(third, shares[2]), third),
    ]
    a, b, c = ((x.T.ravel().astype(float), n.T.ravel().astype(float)) for x, n in drawn)
    return a, b, c
