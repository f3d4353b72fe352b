"""Intervals: Wilson's for rates, a bootstrap for everything else, both clustered.

Also sums over clusters with random signs, which randomisation tests need.

Replies to the same statement (several samples, or probes and languages pooled) are not independent,
so both intervals count statements, not replies. An interval is `(low, high)`, or None if the data
cannot give one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]
Array = NDArray[Any]

LEVEL = 0.95  # of confidence
ALPHA = 0.05  # of a test
RESAMPLES = 2000
SEED = 1
TURNS = 9_999  # draws of random signs, for a p-value
# Names of the intervals in signatures.
WILSON = f"wilson{100 * LEVEL:g}"
BOOTSTRAP = f"bootstrap{100 * LEVEL:g}x{RESAMPLES}s{SEED}"
LEAST = 2  # statements that a test needs; one shows no variation
SAME = 1e-5  # smaller differences of distances and shares are rounding errors
_BLOCK = 2_000_000  # numbers that the bootstrap holds in memory at a time


def resampled(test: str, draws: int = TURNS) -> str:
    """Return the part of a signature that says how a p-value was resampled.

    draws: the maximum number of resamples.
    """
    return f"{test}{draws}s{SEED}"


def wilson(k: float, n: float, level: float = LEVEL) -> Interval | None:
    """Compute the score interval of the share k / n (Wilson 1927).

    n: may be an effective size, with decimals. Returns None for n = 0. The interval never leaves
    [0, 1]; its lower end is exactly 0 if k is 0, its upper end exactly 1 if k is n.
    """
    if n <= 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, z2 = k / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * (p * (1 - p) / n + z2 / (4 * n * n)) ** 0.5
    low = 0.0 if k <= 0 else max(0.0, middle - half)
    high = 1.0 if k >= n else min(1.0, middle + half)
    return low, high


def clustered_wilson(hits: Array, sizes: Array, level: float = LEVEL) -> Interval | None:
    """Compute the Wilson interval of sum(hits) / sum(sizes) on the effective number of replies.

    hits, sizes: (clusters,), the number of hits and the number of replies of each statement.

    With one reply a statement it is `wilson` exactly. Otherwise n becomes n / deff, where deff is
    the design effect: the linearised variance of the ratio between clusters over that of
    independent replies, with a t instead of a normal quantile for few clusters (Korn & Graubard
    1998, Survey Methodology 24:193; Franco, Little, Louis & Slud 2019, J. Survey Statistics and
    Methodology 7:334). The effective size is kept between its value for identical replies within
    each statement (Kish: n^2 / sum(sizes^2)) and n, so clusters never make an interval narrower. If
    the share is 0 or 1, no variance can be estimated, and n is the number of clusters.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    clusters, k, n = len(sizes), float(hits.sum()), float(sizes.sum())
    if clusters == n or n == 0:
        return wilson(k, n, level)
    p = k / n
    if k <= 0 or k >= n:
        return wilson(p * clusters, clusters, level)
    smallest = n * n / float((sizes**2).sum())
    effective = smallest
    if clusters > 1:
        variance = clusters / (clusters - 1) * float(((hits - p * sizes) ** 2).sum()) / (n * n)
        if variance > 0:
            shrink = NormalDist().inv_cdf((1 + level) / 2) / student(clusters - 1, level)
            effective = p * (1 - p) / variance * shrink**2
        else:
            effective = n
    effective = min(max(effective, smallest), n)
    return wilson(p * effective, effective, level)


def ratio(sums: Array) -> Array:
    """Divide the first statistic by the second: a share or a mean. sums: (..., 2) -> (...)."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def bootstrap(
    units: Array,
    value: Callable[[Array], Array] = ratio,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    limits: Interval | None = None,
) -> Interval | None:
    """Compute the percentile interval of `value(sum of units)` over resampled clusters.

    units: (clusters, k) additive statistics. value: (..., k) sums -> (...) values. limits: the
    lowest and the highest possible value. Deterministic, given the seed.

    The percentiles are expanded for the number of clusters, without which the bootstrap is too
    narrow in small samples (Hesterberg 2015, The American Statistician 69:371, "expanded
    percentile"). If every resample gives the same value, the bootstrap would claim certainty. With
    `limits`, the interval then says how far the value could move if the share of clusters unlike
    the observed ones were the upper Wilson bound of 0 out of all clusters; without limits it is
    None.
    """
    units = np.asarray(units, float)
    clusters = len(units)
    if clusters == 0:
        return None
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // units.size)
    values = np.concatenate(
        [
            value(units[rng.integers(0, clusters, (min(block, resamples - at), clusters))].sum(1))
            for at in range(0, resamples, block)
        ]
    )
    return _expanded(values, clusters, level, limits)


def reweighted(
    cluster: Array,
    value: Callable[[Array], Array],
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    limits: Interval | None = None,
) -> Interval | None:
    """Bootstrap a value that is no function of sums, such as a rank correlation; see `bootstrap`.

    cluster: (n,), the number of each unit's cluster, from 0. value: (..., n), how often each unit
    was drawn -> (...) values.
    """
    cluster = np.asarray(cluster)
    if not len(cluster):
        return None
    clusters = int(cluster.max()) + 1
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(cluster))
    values = []
    for at in range(0, resamples, block):
        drawn = rng.integers(0, clusters, (min(block, resamples - at), clusters))
        rows = np.arange(len(drawn))[:, None] * clusters
        times = np.bincount((drawn + rows).ravel(), minlength=drawn.size).reshape(drawn.shape)
        values.append(value(times[:, cluster].astype(float)))
    return _expanded(np.concatenate(values), clusters, level, limits)


def turned(parts: Array, times: int = TURNS, seed: int = SEED) -> Array:
    """Sum over clusters with random signs, the same every time.

    parts: (clusters, k) -> (times, k). Swapping two models within a statement reverses the sign of
    its difference, so these are the sums that swaps would give.
    """
    parts = np.asarray(parts, float)
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(parts))
    sums = []
    for at in range(0, times, block):
        signs = rng.integers(0, 2, (min(block, times - at), len(parts)), dtype=np.int8)
        sums.append((2.0 * signs - 1.0) @ parts)
    return np.concatenate(sums)


def _expanded(
    values: Array, clusters: int, level: float, limits: Interval | None
) -> Interval | None:
    """Return the expanded percentile interval of resampled values; see `bootstrap`."""
    if np.ptp(values) < 1e-12:
        if limits is None:
            return None
        here, unlike = float(values[0]), (wilson(0, clusters, level) or (0.0, 1.0))[1]
        return here - unlike * (here - limits[0]), here + unlike * (limits[1] - here)
    tail = NormalDist().cdf(-((clusters / (clusters - 1)) ** 0.5) * student(clusters - 1, level))
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def student(freedom: int, level: float) -> float:
    """Return the two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def adjusted(p: Sequence[float], method: str) -> Array:
    """Correct several p-values by a method of statsmodels' `multipletests`.

    method: "holm", "bonferroni", … Returns as many p-values, in the same order.
    """
    from statsmodels.stats.multitest import multipletests

    # statsmodels collects garbage at each call: a third of a second unless objects are frozen.
    gc.freeze()
    try:
        return np.asarray(multipletests(p, method=method)[1], float)
    finally:
        gc.unfreeze()
