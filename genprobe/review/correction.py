"""Correct a rate for the errors of the judge, from a sample that people have reviewed.

A judge read N replies and called K of them positive. Of the N replies, n were reviewed, and the
review is taken as the truth. What share of all replies like these is truly positive?

**Prediction-powered** (Angelopoulos et al. 2023, Science 382:669; with the power tuning of PPI++,
arXiv:2311.01453): the judge's rate plus its error as estimated from the review. For labels of 0 and
1 the tuned estimate is exactly the maximum-likelihood estimate of double sampling (Tenenbein 1970,
JASA 65:1350): share positive × precision + share negative × miss rate.

**Misclassification correction** (Rogan & Gladen 1978, Am. J. Epidemiology 107:71): the judge's
rate over the unreviewed replies, corrected by the sensitivity and specificity that the review
shows. It uses nothing else of the review, so its interval is wider. If replies had unequal
probabilities of being reviewed, sensitivity and specificity must be those in the whole run; the
rate corrected by these is the prediction-powered rate, by Bayes' rule.

**The judge's accuracy** on replies like these: the prediction-powered share of correct labels.

As everywhere in genprobe, the rate is about all replies like these, not only about these. Estimates
and intervals from counts are in `intervals`, the rates of a run in `corrected_rates`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from genprobe.errors import InputError
from genprobe.review.intervals import Counts, ppi, ppi_interval, rg, rg_interval
from genprobe.statistics import LEVEL, Array, share_interval, student

VERSION = "7"


@dataclass(frozen=True)
class Corrected:
    """A rate as measured and corrected, with intervals; shares of 0 to 1.

    measured, low, high: the judge's rate, with an interval that assumes that the judge is right.
    ppi, rg: the corrected rates, prediction-powered and by the misclassification correction, each
    with an interval. n: replies measured, of which n_reviewed are reviewed. accuracy (with an
    interval), sensitivity, specificity: those of the judge, estimated from the reviewed replies,
    which are weighted so that the judge's labels are as frequent as among the n.

    A field is None if it cannot be estimated. This holds for all estimates from the review if no
    reply with one of the judge's labels is reviewed; for rg if all replies are reviewed; and for
    the value of rg (not its interval) if the judge is no better than chance.
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


def corrected(
    measured: Array,
    truth: Array,
    weights: Array | None = None,
    clusters: Array | None = None,
    level: float = LEVEL,
) -> Corrected:
    """Correct a rate that a judge measured for the judge's errors, as a review shows them.

    measured: (N,), whether the judge calls each reply positive.
    truth: (N,), the label of the review (0 or 1); NaN for a reply that nobody reviewed.
    weights: (N,), for reviewed replies the inverse of their probability of being drawn, up to a
        factor; None for a simple random sample.
    clusters: (N,), labels; replies of one cluster are not independent.

    Raises InputError if the arrays differ in length or contain other values.

    Unequal weights: within each label of the judge, the share is weighted and has Kish's effective
    number (n = sum(w)^2 / sum(w^2)), so that a review stratified by the label loses nothing. The
    misclassification correction then equals the prediction-powered rate, with the same interval.

    Clusters, and the remaining effect of the weights: all numbers are divided by the design effect
    of the prediction-powered rate, but at least by 1. It is the ratio of the linearised variance
    between clusters to the variance of independent replies, with a t quantile for few clusters (as
    in `statistics.share_interval`). If the reviewed replies are all alike, so that no variance
    can be estimated, the number of clusters replaces the number of replies.

    Nothing is corrected if only one of several clusters was reviewed, or if no reply with one of
    the judge's labels was reviewed, because it is then unknown how often the judge is right about
    that label. The same holds for the accuracy, which is the rate of replies that the judge reads
    right.
    """
    f, y, w, cluster = _checked(measured, truth, weights, clusters)
    seen = ~np.isnan(y)
    hits, sizes = np.bincount(cluster, f), np.bincount(cluster)
    plain = share_interval(hits[sizes > 0], sizes[sizes > 0], level) or (None, None)
    run = _as_run(f, w, seen)
    right = (f == y).astype(float)
    if seen.any() and any(label.any() and not (seen & label).any() for label in (f, ~f)):
        # The accuracy of the judge on that label is unknown.
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
    """Check the arguments of `corrected`; the clusters are returned as numbers from 0."""
    f, y = np.asarray(measured, bool), np.asarray(truth, float)
    w = np.ones(len(f)) if weights is None else np.asarray(weights, float)
    cluster = np.arange(len(f)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    if not len(f) == len(y) == len(w) == len(cluster):
        raise InputError("measured, truth, weights and clusters must have the same length")
    seen = ~np.isnan(y)
    if not np.isin(y[seen], (0, 1)).all():
        raise InputError("a reviewed reply must be positive (1) or not (0)")
    if not (np.isfinite(w[seen]) & (w[seen] > 0)).all():
        raise InputError("the weight of a reviewed reply must be a number above 0")
    return f, y, w, cluster


def _from_review(
    found: Corrected, f: Array, y: Array, w: Array, cluster: Array, level: float
) -> Corrected:
    """Add the estimates from a review: the interval of the accuracy, and the corrected rates."""
    seen = ~np.isnan(y)
    right = (f == y).astype(float)
    low, high = ppi_interval(_counts(f, right, w, seen, cluster, level), level)
    found = replace(found, accuracy_low=float(low[0]), accuracy_high=float(high[0]))
    # A review of one cluster says nothing about the others.
    if len(np.unique(cluster[seen])) == 1 < len(np.unique(cluster)):
        return found
    counts = _counts(f, y, w, seen, cluster, level)
    low, high = ppi_interval(counts, level)
    point = float(ppi(counts)[0])
    found = replace(found, ppi=point, ppi_low=float(low[0]), ppi_high=float(high[0]))
    if seen.all():
        return found
    if np.ptp(w[seen]) > 0:
        # By the sensitivity and specificity of the run, this is the prediction-powered rate.
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

    They are unchanged if the review contains only one of the labels.
    """
    labels = [f, ~f]
    if not all((seen & label).any() for label in labels):
        return w
    scale = [label.sum() / w[seen & label].sum() for label in labels]
    return w * np.where(f, *scale)


def _share(hit: Array, w: Array, of: Array) -> float | None:
    return float((w * hit)[of].sum() / w[of].sum()) if of.any() else None


def _counts(f: Array, y: Array, w: Array, seen: Array, cluster: Array, level: float) -> Counts:
    """Return the counts of an equally informative, unweighted review of independent replies."""
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

    This is the variance between clusters over the variance of independent replies. The latter
    includes Kish's factor for unequal weights within a label, which `_counts` already allows for.
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
