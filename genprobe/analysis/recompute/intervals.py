"""Recompute intervals from their definitions, one cluster and one resample at a time.

No code is shared with `genprobe.statistics`: quantiles are scipy's, the ends of Wilson's interval
are roots of its defining equation, and each resample is drawn and evaluated alone. The documented
seed is used, so resampled ends agree exactly, not only approximately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy import stats

Sums = tuple[float, ...]
Interval = tuple[float, float]
# Says what is wrong with a stored interval, or "". Arguments: the sums of each cluster, in the
# order of cluster names, and the interval.
Ends = Callable[[Sequence[Sums], Interval | None], str]

CLOSE = 1e-9  # tolerance for two ways of adding up the same numbers
Z = float(stats.norm.ppf(0.975))
RESAMPLES, SEED = 2000, 1


def close(one: float | None, other: float | None, apart: float = CLOSE) -> bool:
    """Tell whether two figures are equal up to rounding."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=apart, abs_tol=apart)


def by_cluster(units: Iterable[tuple[str, Sums]]) -> list[Sums]:
    """Add up the units of each cluster; clusters are sorted by name."""
    found: dict[str, list[Sums]] = {}
    for cluster, sums in units:
        found.setdefault(cluster, []).append(sums)
    return [tuple(map(math.fsum, zip(*found[name], strict=True))) for name in sorted(found)]


def exactly(compute: Callable[[Sequence[Sums]], Interval | None], apart: float = CLOSE) -> Ends:
    """Make the check that a stored interval equals the one `compute` returns."""

    def differs(clusters: Sequence[Sums], stored: Interval | None) -> str:
        found = compute(clusters)
        pairs = zip(stored or (None, None), found or (None, None), strict=True)
        if all(close(one, other, apart) for one, other in pairs):
            return ""
        return f"the stored interval is {stored}, and the records give {found}"

    return differs


def none(clusters: Sequence[Sums], stored: Interval | None) -> str:
    """Check that no interval is stored."""
    return f"the stored interval is {stored}, and this figure should have none" if stored else ""


# --- Wilson's


def score_interval(k: float, n: float) -> Interval:
    """Solve (p - k/n)^2 = z^2 p (1 - p) / n for p (Wilson 1927)."""
    a, b, c = 1 + Z * Z / n, -(2 * k / n + Z * Z / n), (k / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    return (0.0 if k <= 0 else max(0.0, low)), (1.0 if k >= n else min(1.0, high))


def clustered(clusters: Sequence[Sums]) -> Interval | None:
    """Compute Wilson's interval with the effective number of replies.

    clusters: hits and replies of each. For sources see `statistics.clustered_wilson`.
    """
    many, hits = len(clusters), math.fsum(k for k, _ in clusters)
    n = math.fsum(size for _, size in clusters)
    if n == 0:
        return None
    if many == n:
        return score_interval(hits, n)
    share = hits / n
    if hits <= 0 or hits >= n:
        return score_interval(share * many, many)
    least = n**2 / math.fsum(size**2 for _, size in clusters)  # Kish
    effective = least
    if many > 1:
        squares = math.fsum((k - share * size) ** 2 for k, size in clusters)
        between = many / (many - 1) * squares / n**2
        effective = n
        if between > 0:
            deff = between / (share * (1 - share) / n)
            effective = n / deff * (Z / float(stats.t.ppf(0.975, many - 1))) ** 2
    effective = min(n, max(least, effective))
    return score_interval(share * effective, effective)


wilson = exactly(clustered)


# --- resampled


def resamples(clusters: Sequence[Sums]) -> Iterable[np.ndarray]:
    """Return the sums of `RESAMPLES` bootstrap samples of the clusters (with replacement)."""
    table, rng = np.array(clusters, float), np.random.default_rng(SEED)
    for _ in range(RESAMPLES):
        yield table[rng.integers(0, len(table), len(table))].sum(axis=0)


def tail(clusters: int) -> float:
    """Return the share of resamples below the lower end of the interval.

    It is smaller than 2.5 % if there are few clusters (Hesterberg 2015).
    """
    t = float(stats.t.ppf(0.975, clusters - 1))
    return float(stats.norm.cdf(-math.sqrt(clusters / (clusters - 1)) * t))


def bootstrap(value: Callable[[np.ndarray], float], limits: Interval | None) -> Ends:
    """Make the check of a percentile interval.

    value: the sums of a resample -> its figure. limits: the lowest and the highest possible
    figure, None if unbounded.
    """

    def compute(clusters: Sequence[Sums]) -> Interval | None:
        if not clusters:
            return None
        values = sorted(value(sums) for sums in resamples(clusters))
        many = len(clusters)
        if values[-1] - values[0] < 1e-12:
            if limits is None:
                return None
            unlike = score_interval(0, many)[1]
            here = values[0]
            return here - unlike * (here - limits[0]), here + unlike * (limits[1] - here)
        share = tail(many)
        return _quantile(values, share), _quantile(values, 1 - share)

    return exactly(compute)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, with linear interpolation."""
    place = share * (len(values) - 1)
    below = min(int(place), len(values) - 2)
    return values[below] + (place - below) * (values[below + 1] - values[below])


def ratio(sums: np.ndarray) -> float:
    """Divide the first sum by the second."""
    return float(sums[0] / sums[1])


def shares(low: float = 0.0, high: float = 1.0) -> Ends:
    """Make the check of a bootstrap interval of a mean bounded by `low` and `high`."""
    return bootstrap(ratio, (low, high))


numbers = bootstrap(ratio, None)
