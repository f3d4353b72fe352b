"""Rates corrected for the errors of the judge, from a sample that people have reviewed.

A judge read N replies and called K of them positive. Of these replies n were reviewed, and the
review is the truth. What share of all replies like these is truly positive?

**Prediction-powered** (Angelopoulos et al. 2023, Science 382:669; with the power tuning of PPI++,
arXiv:2311.01453): the judge's rate plus what the review shows it to be wrong by. For labels of 0
and 1 the tuned estimate is exactly the maximum-likelihood estimate of double sampling (Tenenbein
1970, JASA 65:1350): share positive × precision + share negative × miss rate.

**Misclassification correction** (Rogan & Gladen 1978, Am. J. Epidemiology 107:71): the judge's
rate over the unreviewed replies, solved for the truth by the sensitivity and specificity that the
review shows. It takes nothing else from the review, so it is the wider of the two. Where replies
had unequal chances to be reviewed, sensitivity and specificity have to be those of the run; and
the judge's rate solved by these is the prediction-powered rate, by Bayes' rule.

**The judge's accuracy** on replies like these: the prediction-powered share of what is read right.

Both intervals hold the rates that a test does not reject. Its statistic compares the counts with
the most likely ones of that rate, the judge's own rates being free (the power divergence of
Cressie & Read 1984, J. Royal Statistical Society B 46:440, between the likelihood ratio, which
is too bold where errors are few, and Pearson's, which is too careful). Its cut-off is not the
normal one, which fails where a sample of 30 may hold no error at all, but the 95 % point of the
statistic in samples simulated from that fit (DiCiccio & Romano 1990, Int. Statistical Review
58:59; Lloyd 2008, Australian & NZ J. Statistics 50:329).

The rate is that of replies like these, not of these alone; as everywhere in genprobe. `Counts`
may be arrays of many reviews, so that a simulation is one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pandas as pd

from genprobe.errors import InputError
from genprobe.metrics import cells, cluster, no_reply, rank
from genprobe.metrics.corrected import pooled
from genprobe.metrics.negrate import FEWEST, TEMPLATE, not_told
from genprobe.metrics.regard import REGARD, UNCLEAR
from genprobe.records import JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import LEVEL, Array, clustered_wilson, student, wilson

VERSION = "7"
NEGRATES = {"sentiment": "negrate", "regard": "negrate-regard"}  # question -> rate of templates
BY_PEOPLE = "by-people"
IN_PART = "reviewed in part"  # templates of which not all stories have a verdict
ROUNDING = 1e-9  # by which a judge must be better than chance, whose rates are sums
DRAWS = 1000  # simulated samples for a cut-off
SEED = 1
_TINY = 0.01  # trials given to every table in a fit, so that none is without
_POWER = 2 / 3  # of Cressie & Read
_STEPS = 12  # of the search for the end of an interval
_FIT_STEPS = 20  # of the search for a constrained fit
_ROUGH_STEPS = 13  # of the same for a simulated sample
_FAR = 1e3  # twice the log-likelihood lost by what cannot be
_SAME = 1e-3  # statistics that differ by no more are the same table, fitted in other steps
_BLOCK = 400_000  # simulated samples held at a time


@dataclass(frozen=True)
class Corrected:
    """A rate as measured and corrected, with intervals; shares of 0 to 1.

    measured, low, high: the judge's, with an interval that takes the judge for right. ppi, rg:
    corrected, prediction-powered and by misclassification. n: replies measured, of which
    n_reviewed are reviewed. accuracy (with an interval), sensitivity, specificity: the judge's, as
    the review shows them, its replies weighted so that the judge's labels are as frequent as among
    the n. None where there is nothing to tell it from: all of them where no reply of one of the
    judge's labels is reviewed, rg where all replies are reviewed, and its value (not its interval)
    where the judge is no better than chance.
    """

    measured: float | None
    low: float | None
    high: float | None
    n: int
    n_reviewed: int
    accuracy: float | None
    sensitivity: float | None
    specificity: float | None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    ppi: float | None = None
    ppi_low: float | None = None
    ppi_high: float | None = None
    rg: float | None = None
    rg_low: float | None = None
    rg_high: float | None = None


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
    """Compute the prediction-powered rate.

    Where the review holds only one of the judge's labels, it is the rate of the review: power
    tuning then gives the judge no weight.
    """
    share = counts.positive / counts.total
    both = (counts.n_p > 0) & (counts.n_n > 0)
    tuned = share * _over(counts.hits_p, counts.n_p)
    tuned = tuned + (1 - share) * _over(counts.hits_n, counts.n_n)
    return np.where(both, tuned, _over(counts.hits_p + counts.hits_n, counts.n_p + counts.n_n))


def rogan_gladen(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """Solve the judge's rate for the true one by sensitivity and specificity.

    (rate + specificity - 1) / (sensitivity + specificity - 1), kept within [0, 1]; NaN where the
    judge is no better than chance.
    """
    better = sensitivity + specificity - 1
    better = np.where(better > ROUNDING, better, 0)
    found = _over(rate + specificity - 1, better)
    return np.where(better > 0, np.clip(found, 0, 1), np.nan)


def rg(counts: Counts) -> Array:
    """Compute the rate by Rogan and Gladen's correction.

    NaN where the review shows a judge no better than chance, or holds nothing that is truly
    positive, or nothing that is truly negative.
    """
    (k, total), (tp, positives), (fp, negatives) = _by_truth(counts)
    found = rogan_gladen(_over(k, total), _over(tp, positives), 1 - _over(fp, negatives))
    return np.where((positives > 0) & (negatives > 0), found, np.nan)


def ppi_interval(counts: Counts, level: float = LEVEL) -> tuple[Array, Array]:
    """Interval of the prediction-powered rate: (low, high), arrays like the counts."""
    return _unless_few(counts, _interval(_by_label(counts), _fit_ppi, ppi(counts), level))


def _few(counts: Counts) -> Array:
    """Tell where fewer than two reviewed replies are left after the design effect.

    So few, as from a handful of replies to three statements, exclude no rate; and the samples of
    one that the test would draw are all alike.
    """
    return counts.n_p + counts.n_n < 2


def _unless_few(counts: Counts, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    few = _few(counts)
    return np.where(few, 0.0, ends[0]), np.where(few, 1.0, ends[1])


def rg_interval(counts: Counts, level: float = LEVEL) -> tuple[Array, Array]:
    """Interval of the misclassification correction: (low, high), arrays like the counts.

    Its tables are what the judge says of unreviewed replies, of truly positive reviewed ones and
    of truly negative ones: three independent samples. The review must be a simple random sample.
    """
    tables = _by_truth(counts)
    start = np.where(np.isnan(rg(counts)), ppi(counts), rg(counts))
    return _unless_few(counts, _interval(tables, _fit_rg, start, level))


def ppi_accepts(counts: Counts, rate: float, level: float = LEVEL) -> Array:
    """Tell whether a rate lies within `ppi_interval`, by one test: faster than finding its ends."""
    at = np.full(np.shape(counts.total), rate)
    return _few(counts) | (_beyond(_by_label(counts), _fit_ppi, at, level) <= 0)


def rg_accepts(counts: Counts, rate: float, level: float = LEVEL) -> Array:
    """Tell whether a rate lies within `rg_interval`, by one test: faster than finding its ends."""
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
    """Return the same counts by the truth: unreviewed, truly positive, truly negative."""
    false_p, true_n = c.n_p - c.hits_p, c.n_n - c.hits_n
    unreviewed = np.maximum(c.total - c.n_p - c.n_n, 0)
    positive = np.clip(c.positive - c.n_p, 0, unreviewed)
    return (positive, unreviewed), (c.hits_p, c.hits_p + c.hits_n), (false_p, false_p + true_n)


def _over(above: Array, below: Array) -> Array:
    """above / below, 0 where there is nothing below."""
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
    """Find the most likely shares of three tables of which the first is the mixture of the others.

    first = rate × second + (1 - rate) × third. There is one Lagrange multiplier and the equation
    is monotone in it, so there is one root.
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

    The rate is first × second + (1 - first) × third. The likelihood, written by sensitivity and
    specificity, is that of `_fit_rg` times the one of the review's own rate, in which they do not
    occur: by Bayes' rule the same fit serves.
    """
    counts = Counts(*tables[0], *tables[1], *tables[2])
    q, s, _ = _fit_rg(rate, _by_truth(counts), steps)
    precision = np.clip(_over(rate * s, q), 0, 1)
    missed = np.clip(_over(rate * (1 - s), 1 - q), 0, 1)
    return q, precision, missed


def _root(f: Callable[[Array], Array], low: Array, high: Array, steps: int) -> Array:
    """Find where f changes its sign between low and high, elementwise.

    Method: Chandrupatla 1997, Advances in Engineering Software 28:145. Returns the high end where
    both ends have one sign.
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
            # Inverse quadratic interpolation where the three points allow it, else half.
            xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            back = f_a / (f_b - f_a) * f_c / (f_b - f_c)
            t = back + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
            t = np.clip(np.where(smooth & np.isfinite(t), t, 0.5), 1e-3, 1 - 1e-3)
            t = np.where(f_a == 0, 0, t)
    best = np.where(np.abs(f_a) < np.abs(f_b), a, b)
    return np.where(same, high, best)


def _divergence(seen: Array, expected: Array) -> Array:
    """Return the part of one cell in Cressie and Read's statistic, 0 where nothing was seen."""
    ratio = _over(seen, np.maximum(expected, 1e-12))
    return seen * (ratio**_POWER - 1) * (2 / (_POWER * (_POWER + 1)))


def _statistic(tables: Tables, shares: Shares) -> Array:
    """How far the tables are from the constrained shares: the root of the power divergence."""
    total: Array = np.zeros(np.shape(tables[0][0]))
    for (x, n), p in zip(tables, shares, strict=True):
        total = total + _divergence(x, n * p) + _divergence(n - x, n * (1 - p))
    return np.sqrt(np.clip(total, 0, _FAR))


def _interval(tables: Tables, fit: Fit, start: Array, level: float) -> tuple[Array, Array]:
    """Both ends, each the rate at which the test turns from accepting to rejecting."""

    def twice(x: Array) -> Array:
        return np.concatenate([x, x])

    a, b, c = ((twice(x), twice(n)) for x, n in tables)
    limit = np.repeat([0.0, 1.0], len(start))
    ends = _root(lambda rate: _beyond((a, b, c), fit, rate, level), twice(start), limit, _STEPS)
    low, high = np.split(ends, 2)
    return np.minimum(low, start), np.maximum(high, start)


def _beyond(tables: Tables, fit: Fit, rate: Array, level: float) -> Array:
    """Return by how much the statistic exceeds its cut-off if the rate were `rate`.

    The test rejects the rate where this is positive.
    """
    shares = fit(rate, tables, _FIT_STEPS)
    cut = _cut(tables, fit, rate, shares, level)
    return _statistic(tables, shares) - cut - _SAME


def _cut(tables: Tables, fit: Fit, rate: Array, shares: Shares, level: float) -> Array:
    """Return the `level` point of the statistic if rate and judge were as given, by simulation.

    The same counts get the same random numbers, at whatever rate.
    """
    cuts = []
    each = max(1, _BLOCK // DRAWS)
    for at in range(0, len(rate), each):
        part = slice(at, at + each)
        here = tuple((x[part], n[part]) for x, n in tables)
        a, b, c = _samples((here[0], here[1], here[2]), fit, [p[part] for p in shares])
        values = _statistic((a, b, c), fit(np.repeat(rate[part], DRAWS), (a, b, c), _ROUGH_STEPS))
        # The (draws + 1) × level-th smallest: what was seen counts as a draw, too.
        cuts.append(np.quantile(values.reshape(-1, DRAWS), level, axis=1, method="weibull"))
    return np.concatenate(cuts)


def _samples(tables: Tables, fit: Fit, shares: Sequence[Array]) -> Tables:
    """`DRAWS` samples of tables of these sizes and shares, one after another, for every element.

    How the reviewed replies fall into the second and third table is drawn, too."""
    rng = np.random.default_rng([SEED, *(int(x[0]) for x, _ in tables)])
    total, one, other = (np.rint(n).astype(int) for _, n in tables)
    reviewed = one + other
    margin = _over(one, reviewed)
    size = (DRAWS, len(total))
    if fit is _fit_ppi:
        # The reviewed replies are some of those measured, and their labels move with these.
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


# --- from rows to counts


def corrected(
    measured: Array,
    truth: Array,
    weights: Array | None = None,
    clusters: Array | None = None,
    level: float = LEVEL,
) -> Corrected:
    """Correct a rate that a judge measured, for the judge's errors as a review shows them.

    measured: (N,), whether the judge calls each reply positive.
    truth: (N,), what the review says of it (0 or 1), NaN where nobody reviewed it.
    weights: (N,), for reviewed replies the inverse of their probability to be drawn, up to a
        factor; None for a simple random sample.
    clusters: (N,), labels; replies of one cluster are not independent.

    Raises InputError where these do not fit.

    Unequal weights: within each label of the judge the share is weighted and has Kish's effective
    number (n = sum(w)^2 / sum(w^2)), so that a review stratified by the label loses nothing; the
    misclassification correction then is the prediction-powered rate, with its interval.

    Clusters, and what the weights cost besides: all numbers are divided by the design effect of the
    prediction-powered rate, its linearised variance between clusters over that of independent
    replies, with a t quantile for few clusters, and at least 1 (as `statistics.clustered_wilson`).
    Where the review shows no variance to estimate from, because all is alike, clusters are counted
    instead of replies.

    Nothing is corrected by a review of only one of several clusters, nor by one that lacks a label
    which the judge gave: how often the judge is right about that label is not known then. The same
    holds for the accuracy, which is the rate of replies that the judge reads right.
    """
    f, y, w, cluster = _checked(measured, truth, weights, clusters)
    seen = ~np.isnan(y)
    hits, sizes = np.bincount(cluster, f), np.bincount(cluster)
    plain = clustered_wilson(hits[sizes > 0], sizes[sizes > 0], level) or (None, None)
    run = _as_run(f, w, seen)
    right = (f == y).astype(float)
    if seen.any() and any(label.any() and not (seen & label).any() for label in (f, ~f)):
        # How often the judge is right about that label nobody has looked at.
        share = float(f.mean())
        return Corrected(share, plain[0], plain[1], len(f), int(seen.sum()), None, None, None)
    found = Corrected(
        measured=float(f.mean()) if len(f) else None,
        low=plain[0],
        high=plain[1],
        n=len(f),
        n_reviewed=int(seen.sum()),
        accuracy=_share(right, run, seen),
        sensitivity=_share(f, run, seen & (y == 1)),
        specificity=_share(~f, run, seen & (y == 0)),
    )
    return _from_review(found, f, y, w, cluster, level) if seen.any() else found


def _checked(
    measured: Array, truth: Array, weights: Array | None, clusters: Array | None
) -> tuple[Array, Array, Array, Array]:
    """Check what `corrected` is given; clusters come back as numbers from 0."""
    f, y = np.asarray(measured, bool), np.asarray(truth, float)
    w = np.ones(len(f)) if weights is None else np.asarray(weights, float)
    cluster = np.arange(len(f)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    if not len(f) == len(y) == len(w) == len(cluster):
        raise InputError("measured, truth, weights and clusters must be of one length")
    seen = ~np.isnan(y)
    if not np.isin(y[seen], (0, 1)).all():
        raise InputError("a reviewed reply is positive (1) or not (0)")
    if not (np.isfinite(w[seen]) & (w[seen] > 0)).all():
        raise InputError("the weight of a reviewed reply must be a number above 0")
    return f, y, w, cluster


def _from_review(
    found: Corrected, f: Array, y: Array, w: Array, cluster: Array, level: float
) -> Corrected:
    """Add what a review with both labels says: accuracy's interval, and the corrected rates."""
    seen = ~np.isnan(y)
    right = (f == y).astype(float)
    low, high = ppi_interval(_counts(f, right, w, seen, cluster, level), level)
    found = replace(found, accuracy_low=float(low[0]), accuracy_high=float(high[0]))
    # From one cluster nothing can be learned of the others.
    if len(np.unique(cluster[seen])) == 1 < len(np.unique(cluster)):
        return found
    counts = _counts(f, y, w, seen, cluster, level)
    low, high = ppi_interval(counts, level)
    point = float(ppi(counts)[0])
    found = replace(found, ppi=point, ppi_low=float(low[0]), ppi_high=float(high[0]))
    if seen.all():
        return found
    if np.ptp(w[seen]) > 0:
        # Solved by the sensitivity and specificity of the run it is this rate again.
        better = (found.sensitivity or 0) + (found.specificity or 0) > 1
        point = point if better else np.nan
    else:
        low, high = rg_interval(counts, level)
        point = float(rg(counts)[0])
    return replace(
        found,
        rg=None if np.isnan(point) else point,
        rg_low=float(low[0]),
        rg_high=float(high[0]),
    )


def _as_run(f: Array, w: Array, seen: Array) -> Array:
    """Scale the weights so that the judge's labels are as frequent in the review as in all replies.

    They stay as they are where the review holds only one of the labels.
    """
    labels = [f, ~f]
    if not all((seen & label).any() for label in labels):
        return w
    scale = [label.sum() / w[seen & label].sum() for label in labels]
    return w * np.where(f, *scale)


def _share(hit: Array, w: Array, of: Array) -> float | None:
    return float((w * hit)[of].sum() / w[of].sum()) if of.any() else None


def _counts(f: Array, y: Array, w: Array, seen: Array, cluster: Array, level: float) -> Counts:
    """Return the counts of an unweighted review of independent replies that is as informative."""
    labels = [seen & f, seen & ~f]
    size = np.array([w[g].sum() ** 2 / max((w[g] ** 2).sum(), 1e-300) for g in labels])
    share = np.array([_share(y == 1, w, g) or 0.0 for g in labels])
    if len(np.unique(cluster)) < len(f) or np.ptp(w[seen]) > 0:
        deff = _design_effect(f, y, w, seen, cluster, level)
    else:
        deff = 1.0
    n = size / deff
    found = (f.sum() / deff, len(f) / deff, share[0] * n[0], n[0], share[1] * n[1], n[1])
    return Counts(*(np.array([number], float) for number in found))


def _design_effect(
    f: Array, y: Array, w: Array, seen: Array, cluster: Array, level: float
) -> float:
    """Compute the design effect of the prediction-powered rate.

    Its variance between clusters over that of independent replies with equal weights within a
    label (times Kish's factor, which `_counts` has already).
    """
    q = float(f.mean())
    parts = [(seen & f, q), (seen & ~f, 1 - q)]
    if not all(g.any() for g, _ in parts):
        parts = [(seen, 1.0)]
    share = [_share(y == 1, w, g) or 0.0 for g, _ in parts]
    slope = share[0] - share[-1]
    z = slope * (f - q) / len(f)
    alone = slope**2 * q * (1 - q) / len(f)
    for (g, part), s in zip(parts, share, strict=True):
        z[g] += part * w[g] * (y[g] - s) / w[g].sum()
        alone += part**2 * s * (1 - s) * float((w[g] ** 2).sum() / w[g].sum() ** 2)
    clusters, reviewed = len(np.unique(cluster)), len(np.unique(cluster[seen]))
    if reviewed == 1 or alone == 0:
        return float(seen.sum()) / reviewed
    between = clusters / (clusters - 1) * float((np.bincount(cluster, z) ** 2).sum())
    wider = student(reviewed - 1, level) / NormalDist().inv_cdf((1 + level) / 2)
    return max(1.0, between / alone * wider**2)


# --- from outcomes and a review to rates


@dataclass(frozen=True)
class Rate:
    """One cell of a corrected rate: its columns and values, and what the rate is.

    The judge's column (`negrate`: of templates), what counts as positive in it, what was left out
    by reason, and how many reviewed replies have no verdict because their reviewers are split (of
    templates: because not all their stories have one). These are measured, and count as not
    reviewed.
    """

    by: dict[str, JSON]
    column: str
    positive: str
    excluded: dict[str, int]
    split: int
    rate: Corrected


def rates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    column: str,
    positive: str,
    by: Sequence[str] = (),
    level: float = LEVEL,
) -> list[Rate]:
    """Compute the share of replies whose `column` is `positive`, measured and corrected, by cell.

    outcomes: the table of a run. column: `answer`, `sentiment`, `reply_language`, …
    reviewed: rows with `request` (and `run` or `model` where the outcomes have it), `reviewer`,
        `question`, `answer`, and `weight` where replies had unequal chances to be reviewed. Rows
        count whose question is the column and whose answer is not empty.

    A column of several labels is reduced to positive against the rest. Of several reviewers the
    majority is the truth; where they are split, the reply counts as not reviewed. Intervals are
    clustered (`metrics.cluster`).

    column `says`: what the answer says of the statement. positive is then `endorsed` or
    `recognised`, the question to the reviewers is `answer`, and the rate is a share of all replies
    to the probes that measure it; an unclear reply is not positive.

    Raises InputError for a missing column, a reviewed reply that is not here, or no review at all.
    """
    if column == "says":
        _needs(outcomes, ("measures", "when", "answer"), "the outcomes")
    _needs(outcomes, ("status", "statement", "request", column), "the outcomes")
    judged = "answer" if column == "says" else column
    yes = outcomes["when"] if column == "says" else pd.Series(positive, outcomes.index)
    verdicts = _verdicts(outcomes, reviewed, judged.removeprefix("llm_"), yes)
    reason = _left_out(outcomes, judged)
    measured = outcomes[judged].astype(object) == yes.astype(object)
    rows = outcomes.assign(
        __measured=measured.to_numpy(bool), __reason=reason.to_numpy(object), **verdicts
    )
    if column == "says":
        rows = rows[rows["measures"] == positive]
    return _rates(rows, column, positive, by, level)


def template_rates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    column: str = "sentiment",
    by: Sequence[str] = (),
    level: float = LEVEL,
) -> list[Rate]:
    """NegRate, measured and corrected: the label of a template, most of its stories negative.

    A majority is not linear in its stories, so no rate of errors per story corrects it. A template
    is reviewed where *all* its stories that count are; its true label is their majority, and its
    weight that of any of them: templates must have been drawn whole, as `review.export` draws them.
    column: `sentiment`, or a chat model's `llm_sentiment` or `llm_regard`, of which people were
    asked the same; all else as in `rates`.
    """
    _needs(outcomes, ("status", "statement", "request", column), "the outcomes")
    counts = (_left_out(outcomes, column) == "").to_numpy(bool)
    negative = counts & (outcomes[column] == "negative").to_numpy(bool, na_value=False)
    question = column.removeprefix("llm_")
    rows = _templates(outcomes, reviewed, question, counts, negative, by)
    return _rates(rows, column.replace(question, NEGRATES[question]), "", by, level)


def _templates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    question: str,
    counts: Array,
    negative: Array,
    by: Sequence[str],
) -> pd.DataFrame:
    """Label the templates by a judge and by what people said, one row each, as `_rates` takes them.

    counts, negative: (stories,), which of them count, and which of these the judge calls negative.
    """
    verdicts = _verdicts(outcomes, reviewed, question, pd.Series("negative", outcomes.index))
    seen = counts & ~np.isnan(verdicts["__truth"])
    keys = list(dict.fromkeys([*(c for c in TEMPLATE if c in outcomes), *by]))
    stories = outcomes[keys].assign(
        __valid=counts.astype(int),
        __negative=negative,
        __seen=seen.astype(int),
        __true=seen & (verdicts["__truth"] == 1),
        __part=seen | (counts & verdicts["__split"]),
        __weight=np.where(seen, verdicts["__weight"], np.nan),
        __cluster=cluster(outcomes),
    )
    groups = stories.groupby(keys, sort=True, dropna=False, observed=True)
    found = groups[["__valid", "__negative", "__seen", "__true", "__part"]].sum()
    found = found.join(groups[["__weight", "__cluster"]].first()).reset_index()
    valid = found["__valid"]
    whole = (valid >= FEWEST) & (found["__seen"] == valid)
    return found.assign(
        __measured=found["__negative"] * 2 > valid,
        __truth=(found["__true"] * 2 > valid).astype(float).where(whole),
        __split=(found["__part"] > 0) & ~whole,
        __reason=pd.Series("", found.index, dtype=object).mask(valid < FEWEST, "few-stories"),
    )


def by_people(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str] = (), level: float = LEVEL
) -> list[Score]:
    """NegRate by what people say, without any judge, and how often their two answers differ.

    Cells `rate`: `negrate` by the sentiment and `negrate-regard` by the regard that people gave,
    over the templates all of whose stories that count they read; `felt-or-shown`, the share of
    stories that they call negative by one of the two alone, over stories with both answers. The
    review's weights make them rates of the run. n: what was reviewed. A story counts that passed
    the story checks, whatever a classifier says. Arguments as in `rates`; signatures are empty.
    """
    told = not_told(outcomes.assign(sentiment="read"))
    counts = (told == "").to_numpy(bool)
    nobody = np.zeros(len(outcomes), bool)
    asked = [q for q in NEGRATES if _answered(reviewed, q)]
    found: list[Rate] = []
    for question in asked:
        rows = _templates(outcomes, reviewed, question, counts, nobody, by)
        found += _rates(rows, NEGRATES[question], "", by, level)
    if len(asked) == len(NEGRATES):
        negative = pd.Series("negative", outcomes.index)
        felt, shown = (_verdicts(outcomes, reviewed, question, negative) for question in asked)
        truth = np.abs(felt["__truth"] - shown["__truth"])
        rows = outcomes.assign(
            __measured=nobody,
            __truth=np.where(counts, truth, np.nan),
            __split=felt["__split"] | shown["__split"],
            __weight=felt["__weight"],
            __reason=told.to_numpy(object),
        )
        found += _rates(rows, "felt-or-shown", "", by, level)
    scores = []
    for one in found:
        accuracy = _as_scores(one)[-1]
        rate = one.rate
        ends = (rate.ppi_low, rate.ppi_high)
        scores.append(
            replace(accuracy, metric=BY_PEOPLE, value=rate.ppi, low=ends[0], high=ends[1])
        )
    return [score for score in scores if score.n]


def _answered(reviewed: pd.DataFrame, question: str) -> bool:
    """Tell whether anybody has answered a question of the review."""
    answers = reviewed["answer"].astype(object)
    return bool(((reviewed["question"] == question) & answers.notna() & (answers != "")).any())


def _left_out(outcomes: pd.DataFrame, column: str) -> pd.Series:
    """Why a reply is no part of the rates of a judge's column, "" where it is."""
    if column.removeprefix("llm_") in NEGRATES:
        said = outcomes[column].astype(object)
        # As `negrate-regard` has it, what the model calls unclear is not judged.
        said = said.where(said != UNCLEAR) if column == REGARD else said
        return not_told(outcomes.assign(sentiment=said))
    return no_reply(outcomes, column)


# Question of a review -> the rates that it is about: column, and what counts in it.
_ASKED = {
    "answer": (
        *(("says", "recognised"), ("says", "endorsed")),
        *(("answer", "yes"), ("answer", "no"), ("answer", "ambiguous")),
    ),
    "sentiment": (("sentiment", "negative"),),
    "regard": (("regard", "negative"),),
    "stance": (("stance", "for"), ("stance", "against"), ("stance", "both")),
}


def scores(outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str] = ()) -> list[Score]:
    """Compute the rates that the questions of a review are about, as measured and as corrected.

    Arguments as in `rates`. Each rate is a cell `rate` with the metrics `measured` (of n replies),
    `ppi`, `rg` and `judge-accuracy` (on the same replies; its n are those reviewed). For stories
    NegRate is one of them (`template_rates`), where templates have labels, and stands beside what
    people say without a judge (`by_people`). The errors of each judge follow: cells `judge` and
    `reviewed` (the label that people gave, to n replies), with the share that the judge calls each
    label (`confusion`). Signatures are empty.

    Raises InputError for a review without a question that is a rate of these outcomes.
    """
    given = [str(q) for q in reviewed["question"].unique() if q in _ASKED]
    asked = [q for q in given if {q, f"llm_{q}"} & {*outcomes}]
    people = []
    if "usable" in outcomes and {*NEGRATES} & {*given}:
        people = by_people(outcomes, reviewed, by)
    if not asked and not people:
        raise InputError("the review has no question whose answers are a rate of this run")
    found: list[Rate] = []
    for question in asked:
        for column, positive in _ASKED[question]:
            if column == "says" and not (outcomes["measures"] == positive).any():
                continue
            if column in outcomes:
                found += rates(outcomes, reviewed, column, positive, by)
            if f"llm_{column}" in outcomes:
                found += rates(outcomes, reviewed, f"llm_{column}", positive, by)
    for column in ("sentiment", "llm_sentiment", "llm_regard"):
        if column in outcomes and column.removeprefix("llm_") in asked:
            labelled = template_rates(outcomes, reviewed, column, by)
            found += [rate for rate in labelled if rate.rate.n]
    more = people
    if "sentiment" in asked and {"sentiment", "classifier", "lang"} <= {*outcomes}:
        for score in pooled(outcomes, story_errors(outcomes, reviewed), by):
            more.append(replace(score, by={"rate": "negrate", **score.by}))
    judges = [c for q in asked for c in (q, f"llm_{q}") if c in outcomes]
    errors = [score for column in judges for score in confusion(outcomes, reviewed, column, by)]
    return [*(score for rate in found for score in _as_scores(rate)), *more, *errors]


def story_errors(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame
) -> dict[tuple[str, str], tuple[float, float, float, float]]:
    """Count a classifier's errors among the reviewed stories, by classifier and language.

    Called negative and stories, of the truly negative ones and of the others, as
    `corrected.known_errors` has them. Stories count by the review's weights, whose mean is 1.
    """
    negative = pd.Series("negative", outcomes.index)
    verdicts = _verdicts(outcomes, reviewed, "sentiment", negative)
    seen = (_left_out(outcomes, "sentiment") == "") & ~np.isnan(verdicts["__truth"])
    rows = outcomes[["classifier", "lang"]].astype(str)
    rows = rows.assign(
        called=(outcomes["sentiment"] == "negative").to_numpy(bool, na_value=False),
        true=verdicts["__truth"],
        weight=verdicts["__weight"],
    )[seen.to_numpy(bool)]
    found = {}
    for (classifier, lang), part in rows.groupby(["classifier", "lang"], sort=True):
        weight = part["weight"] / part["weight"].mean()
        a, b, c, d = (
            float(count)
            for truth in (1, 0)
            for count in (
                weight[(part["true"] == truth) & part["called"]].sum(),
                weight[part["true"] == truth].sum(),
            )
        )
        found[str(classifier), str(lang)] = (a, b, c, d)
    return found


def confusion(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, column: str, by: Sequence[str] = ()
) -> list[Score]:
    """Of the replies that people gave a label, the share that the judge of `column` calls each.

    A reply's label is that of most of its reviewers; one that is split is left out, as is one
    that the judge has not read, and a story that does not count. Wilson intervals; the review's
    weights play no part, since a row is of one label alone. Arguments as in `rates`.
    """
    question = column.removeprefix("llm_")
    votes = _reviews(outcomes, reviewed, question).groupby("__row")["answer"]
    label = votes.agg(lambda said: most[0] if len(most := said.mode()) == 1 else None)
    seen = outcomes.iloc[label.index].assign(__truth=label.to_numpy(object))
    seen = seen[seen["__truth"].notna() & seen[column].notna()]
    if question in NEGRATES:
        seen = seen[_left_out(seen, column) == ""]
    found = []
    for cell, part in zip(*_parts(seen, [*by, "__truth"]), strict=True):
        truth = cell.pop("__truth")
        for label in sorted({*seen["__truth"], *seen[column]}):
            hits = (part[column] == label).to_numpy(float)
            interval = wilson(int(hits.sum()), len(hits))
            low, high = interval or (None, None)
            by_cell: dict[str, JSON] = {"judge": column, "reviewed": truth, **cell}
            share = float(hits.mean())
            # Not the bare label: a measure may be called like it.
            said = f"says {label}"
            found.append(Score(said, by_cell, share, low, high, len(hits), {}, None, ""))
    return found


def _parts(frame: pd.DataFrame, by: list[str]) -> tuple[list[dict[str, JSON]], list[pd.DataFrame]]:
    cell, labels = cells(frame, by)
    return labels, [frame[cell == at] for at in range(len(labels))]


def _as_scores(one: Rate) -> list[Score]:
    rate = one.rate
    name = f"{one.column} {one.positive}".removeprefix("says ").strip()
    cell: dict[str, JSON] = {"rate": name, **one.by}
    why = "split" if one.positive else IN_PART
    unread = {why: one.split, "not reviewed": rate.n - rate.n_reviewed - one.split}
    left = one.excluded | {why: count for why, count in unread.items() if count}
    accuracy = (rate.accuracy, rate.accuracy_low, rate.accuracy_high)
    rows = (
        ("measured", rate.measured, rate.low, rate.high, rate.n, one.excluded),
        ("ppi", rate.ppi, rate.ppi_low, rate.ppi_high, rate.n, one.excluded),
        ("rg", rate.rg, rate.rg_low, rate.rg_high, rate.n, one.excluded),
        ("judge-accuracy", *accuracy, rate.n_reviewed, left),
    )
    return [
        Score(metric, cell, value, low, high, n, excluded, None, "")
        for metric, value, low, high, n, excluded in rows
    ]


def _needs(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in frame:
            raise InputError(f"{what} lack the column {column!r}, which corrected rates need")


def _verdicts(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, question: str, yes: pd.Series
) -> dict[str, Array]:
    """Columns for the outcomes: `__truth` (1, 0 or NaN), `__split`, `__weight`.

    yes: the answer to the question that is positive, for every row of the outcomes."""
    rows = _reviews(outcomes, reviewed, question)
    hit = rows["answer"].to_numpy(object) == yes.to_numpy(object)[rows["__row"]]
    weight = pd.to_numeric(rows["weight"], errors="coerce") if "weight" in rows else 1.0
    rows = rows.assign(__hit=hit.astype(float), __weight=weight)
    votes = rows.groupby("__row")
    every = range(len(outcomes))
    share = votes["__hit"].mean().reindex(every).to_numpy(float)
    split = share == 0.5
    return {
        "__truth": np.where(np.isnan(share) | split, np.nan, (share > 0.5).astype(float)),
        "__split": split,
        "__weight": votes["__weight"].first().reindex(every).to_numpy(float),
    }


def _reviews(outcomes: pd.DataFrame, reviewed: pd.DataFrame, question: str) -> pd.DataFrame:
    """Return the answers that people gave to a question, each with the row of its outcome."""
    _needs(reviewed, ("request", "reviewer", "question", "answer"), "the reviewed rows")
    keys = [c for c in ("run", "model", "request") if c in outcomes and c in reviewed]
    here = outcomes[keys].assign(__row=np.arange(len(outcomes)))
    if here.duplicated(keys).any():
        raise InputError("two runs share requests; the reviewed rows need the column 'run'")
    answers = reviewed["answer"].astype(object)
    given = (reviewed["question"] == question) & answers.notna() & (answers != "")
    if not given.any():
        raise InputError(f"nobody has answered the question {question!r} in the reviewed rows")
    # Repeats planted to test a reviewer are one opinion: the first.
    rows = reviewed[given].drop_duplicates([*keys, "reviewer"]).merge(here, "left", keys)
    strange = rows[rows["__row"].isna()].drop_duplicates(keys)
    if len(strange):
        raise InputError(
            f"{len(strange)} of the reviewed replies are not in these outcomes, such as "
            f"{strange['request'].iloc[0]}; give the run that the review was exported from"
        )
    return rows.assign(__row=rows["__row"].astype(int))


def _rates(
    rows: pd.DataFrame, column: str, positive: str, by: Sequence[str], level: float
) -> list[Rate]:
    for name in by:
        if name not in rows:
            raise unknown("column", name, [str(c) for c in rows.columns if c[:2] != "__"])
    cell, labels = cells(rows, list(by))
    found = []
    for at, label in enumerate(labels):
        part = rows[cell == at]
        kept = part[part["__reason"] == ""]
        left_out = Counter(str(reason) for reason in part["__reason"] if reason != "")
        rate = corrected(
            kept["__measured"].to_numpy(bool),
            kept["__truth"].to_numpy(float),
            kept["__weight"].to_numpy(float),
            (kept["__cluster"] if "__cluster" in kept else cluster(kept)).to_numpy(object),
            level,
        )
        excluded = dict(sorted(left_out.items(), key=rank))
        split = int(kept["__split"].sum())
        found.append(Rate(label, column, positive, excluded, split, rate))
    return found
