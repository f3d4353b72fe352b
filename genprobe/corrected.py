"""Rates corrected for the errors of the judge, from a sample that people have reviewed.

A judge read N replies and called K of them positive. Of these replies n were reviewed, and the
review is the truth. What share of all replies like these is truly positive?

**Prediction-powered** (Angelopoulos et al. 2023, Science 382:669; with the power tuning of PPI++,
arXiv:2311.01453): the judge's rate plus what the review shows it to be wrong by. For labels of 0
and 1 the tuned estimate is exactly the maximum-likelihood estimate of double sampling (Tenenbein
1970, JASA 65:1350): share positive × precision + share negative × miss rate.

**Misclassification correction** (Rogan & Gladen 1978, Am. J. Epidemiology 107:71): the judge's
rate over the unreviewed replies, solved for the truth by the sensitivity and specificity that the
review shows. It takes nothing else from the review, so it is the wider of the two.

Both intervals invert the likelihood-ratio test of the rate, the judge's own rates being free.
The cut-off of the test is not the normal one, which fails where a sample of 30 may hold no error
at all, but the 95 % point of the statistic simulated at the ends of the interval (a parametric
bootstrap under the constrained fit: DiCiccio & Romano 1990, Int. Statistical Review 58:59; Lloyd
2008, Australian & NZ J. Statistics 50:329).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from genprobe.errors import InputError
from genprobe.stats import LEVEL, Array, Interval, clustered_wilson, wilson

DRAWS = 1000  # simulated samples at each end of an interval
SEED = 1
_TINY = 1e-9  # a binomial without trials
_FAR = 1e3  # twice the log-likelihood lost by what cannot be
_BLOCK = 400_000  # simulated samples held at a time


@dataclass(frozen=True)
class Corrected:
    """A rate as measured and corrected, with intervals; shares of 0 to 1.

    measured, low, high: the judge's, with an interval that takes the judge for right. ppi, rg:
    corrected. None where there is nothing to tell it from. n: replies measured, of which
    n_reviewed are reviewed. accuracy, sensitivity, specificity: the judge's, in the review,
    weighted as the sample is.
    """

    measured: float | None
    low: float | None
    high: float | None
    ppi: float | None
    ppi_low: float | None
    ppi_high: float | None
    rg: float | None
    rg_low: float | None
    rg_high: float | None
    n: int
    n_reviewed: int
    accuracy: float | None
    sensitivity: float | None
    specificity: float | None


@dataclass(frozen=True)
class Counts:
    """What the intervals rest on, arrays of one shape; effective sizes may be fractions.

    positive of total: measured. hits_p of n_p: truly positive among reviewed replies that the
    judge calls positive; hits_n of n_n: among those that it calls negative.
    """

    positive: Array
    total: Array
    hits_p: Array
    n_p: Array
    hits_n: Array
    n_n: Array


def ppi(counts: Counts) -> Array:
    """The prediction-powered rate. Where the review has only one of the judge's labels, power
    tuning leaves the judge out, and it is the rate of the review."""
    share = counts.positive / counts.total
    both = (counts.n_p > 0) & (counts.n_n > 0)
    tuned = share * _over(counts.hits_p, counts.n_p)
    tuned = tuned + (1 - share) * _over(counts.hits_n, counts.n_n)
    return np.where(both, tuned, _over(counts.hits_p + counts.hits_n, counts.n_p + counts.n_n))


def rogan_gladen(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """(rate + specificity - 1) / (sensitivity + specificity - 1), kept within [0, 1]; NaN where
    the judge is no better than chance."""
    better = sensitivity + specificity - 1
    found = _over(rate + specificity - 1, np.where(better > 0, better, 0))
    return np.where(better > 0, np.clip(found, 0, 1), np.nan)


def ppi_interval(counts: Counts, level: float = LEVEL, draws: int = DRAWS) -> tuple[Array, Array]:
    """Interval of the prediction-powered rate: (low, high), arrays like the counts."""

    def tables(c: Counts) -> tuple[Table, Table, Table]:
        return (c.positive, c.total), (c.hits_p, c.n_p), (c.hits_n, c.n_n)

    return _interval(tables(counts), _fit_ppi, ppi(counts), level, draws)


def rg_interval(counts: Counts, level: float = LEVEL, draws: int = DRAWS) -> tuple[Array, Array]:
    """Interval of the misclassification correction: (low, high), arrays like the counts.

    Of the tables: what the judge says of unreviewed replies, of truly positive reviewed ones and
    of truly negative ones, three independent samples. Valid for a review that is a simple random
    sample, or weighted so that it stands for one (`_review`)."""
    tables = _by_truth(counts)
    (k, total), (tp, positives), (fp, negatives) = tables
    start = rogan_gladen(_over(k, total), _over(tp, positives), 1 - _over(fp, negatives))
    reviewed = _over(counts.hits_p + counts.hits_n, counts.n_p + counts.n_n)
    start = np.where(np.isnan(start), reviewed, start)
    return _interval(tables, _fit_rg, start, level, draws)


# --- three binomials that share one parameter

Table = tuple[Array, Array]  # successes, trials
Fit = Callable[[Array, tuple[Table, Table, Table]], tuple[Array, Array, Array]]


def _by_truth(c: Counts) -> tuple[Table, Table, Table]:
    """The same counts seen from the truth: unreviewed, truly positive, truly negative."""
    false_p, true_n = c.n_p - c.hits_p, c.n_n - c.hits_n
    unreviewed = np.maximum(c.total - c.n_p - c.n_n, 0)
    positive = np.clip(c.positive - c.n_p, 0, unreviewed)
    return (positive, unreviewed), (c.hits_p, c.hits_p + c.hits_n), (false_p, false_p + true_n)


def _over(above: Array, below: Array) -> Array:
    """above / below, 0 where there is nothing below."""
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=np.asarray(below) > 0)


def _tilted(x: Array, n: Array, slope: Array) -> Array:
    """The p that maximises x log p + (n - x) log(1 - p) - slope × p. Root of a quadratic, in the
    form without cancellation."""
    a = n + slope
    root = np.sqrt(np.maximum(a * a - 4 * slope * x, 0))
    above = np.where(a > 0, 2 * x, a - root)
    below = np.where(a > 0, a + root, 2 * slope)
    return np.clip(above / np.where(below == 0, 1, below), 0, 1)


def _fit_rg(rate: Array, tables: tuple[Table, Table, Table]) -> tuple[Array, Array, Array]:
    """Most likely shares of the three tables where the first is the mixture of the others,
    first = rate × second + (1 - rate) × third. One Lagrange multiplier, monotone, so one root."""
    (k, total), (tp, positives), (fp, negatives) = (
        (x + _TINY / 2, n + _TINY) for x, n in tables
    )
    scale = total + positives + negatives

    def shares(u: Array) -> tuple[Array, Array, Array]:
        slope = scale * u / (1 - np.abs(u))
        s = _tilted(tp, positives, slope * rate)
        return _tilted(k, total, -slope), s, _tilted(fp, negatives, slope * (1 - rate))

    def excess(u: Array) -> Array:
        r, s, t = shares(u)
        return rate * s + (1 - rate) * t - r

    edge = np.full(np.shape(scale), 1 - 1e-12)
    _, s, t = shares(_root(excess, -edge, edge, 30))
    return rate * s + (1 - rate) * t, s, t


def _fit_ppi(rate: Array, tables: tuple[Table, Table, Table]) -> tuple[Array, Array, Array]:
    """Most likely shares of (measured, reviewed positive, reviewed negative) where the rate is
    first × second + (1 - first) × third.

    The likelihood, written by sensitivity and specificity, is that of `_fit_rg` times the one of
    the review's own rate, in which they do not occur: so the same fit serves, by Bayes' rule.
    """
    counts = Counts(*tables[0], *tables[1], *tables[2])
    q, s, _ = _fit_rg(rate, _by_truth(counts))
    precision = np.clip(_over(rate * s, q), 0, 1)
    missed = np.clip(_over(rate * (1 - s), 1 - q), 0, 1)
    return q, precision, missed


def _root(f: Callable[[Array], Array], low: Array, high: Array, steps: int) -> Array:
    """Where f changes its sign between low and high, elementwise (Illinois false position, every
    third step a bisection). Where both ends have one sign, the high end."""
    f_low, f_high = f(low), f(high)
    same = np.sign(f_low) == np.sign(f_high)
    end = high
    for step in range(steps):
        gap = f_high - f_low
        weight = np.divide(f_high, gap, out=np.full(np.shape(gap), 0.5), where=gap != 0)
        weight = np.full(np.shape(gap), 0.5) if step % 3 == 2 else np.clip(weight, 0, 1)
        middle = high - weight * (high - low)
        value = f(middle)
        left = np.sign(value) == np.sign(f_low)
        # Illinois: an end that stays gets half its weight.
        f_high = np.where(left, f_high / 2, value)
        f_low = np.where(left, value, f_low / 2)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return np.where(same, end, (low + high) / 2)


def _log(x: Array, n: Array, p: Array) -> Array:
    """Binomial log-likelihood, 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(x > 0, x * np.log(p), 0)
        return hit + np.where(n - x > 0, (n - x) * np.log1p(-p), 0)


def _statistic(tables: tuple[Table, Table, Table], shares: tuple[Array, Array, Array]) -> Array:
    """The root of twice the log-likelihood that is lost by the constraint."""
    lost: Array = np.zeros(np.shape(tables[0][0]))
    for (x, n), p in zip(tables, shares, strict=True):
        lost = lost + _log(x, n, _over(x, n)) - _log(x, n, p)
    return np.sqrt(np.clip(2 * lost, 0, _FAR))


def _interval(
    tables: tuple[Table, Table, Table], fit: Fit, start: Array, level: float, draws: int
) -> tuple[Array, Array]:
    from statistics import NormalDist

    cut = np.full(np.shape(start), NormalDist().inv_cdf((1 + level) / 2))
    ends = []
    for limit in (0.0, 1.0):
        end = _end(tables, fit, start, np.full(np.shape(start), limit), cut)
        for _ in range(3 if draws else 0):
            found = _cut(tables, fit, end, level, draws)
            end = _end(tables, fit, start, np.full(np.shape(start), limit), found)
        ends.append(end)
    return np.minimum(ends[0], start), np.maximum(ends[1], start)


def _end(
    tables: tuple[Table, Table, Table], fit: Fit, start: Array, limit: Array, cut: Array
) -> Array:
    def beyond(rate: Array) -> Array:
        return _statistic(tables, fit(rate, tables)) - cut

    return _root(beyond, start, limit, 14)


def _cut(
    tables: tuple[Table, Table, Table], fit: Fit, rate: Array, level: float, draws: int
) -> Array:
    """The `level` point of the statistic if the rate were `rate` and the judge the most likely
    one that fits it."""
    shares = fit(rate, tables)
    rng = np.random.default_rng(SEED)
    cuts = []
    each = max(1, _BLOCK // draws)
    for at in range(0, len(rate), each):
        part = slice(at, at + each)
        drawn = []
        for (_, n), p in zip(tables, shares, strict=True):
            trials = np.maximum(np.rint(n[part]), 0).astype(int)
            x = rng.binomial(trials, p[part], (draws, len(trials))).T
            n_drawn = np.repeat(n[part], draws)
            drawn.append((x.ravel() * _over(n_drawn, np.repeat(trials, draws)), n_drawn))
        one, two, three = drawn
        sample = (one, two, three)
        values = _statistic(sample, fit(np.repeat(rate[part], draws), sample))
        cuts.append(np.quantile(values.reshape(-1, draws), level, axis=1))
    return np.concatenate(cuts)
