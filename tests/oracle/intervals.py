"""Recompute intervals from their definitions, one cluster and one resample at a time.

No code is shared with `genprobe.statistics`: quantiles are scipy's, the ends of Wilson's interval
are roots of its defining equation, the ends of clustered shares are put into their integral, and
each resample is drawn and evaluated alone. The documented seed is used, so resampled ends agree
exactly, not only approximately.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy import integrate, stats

Sums = tuple[float, ...]
Interval = tuple[float, float]
# Says what is wrong with a stored interval, or "". Arguments: the sums of each cluster, in the
# order of cluster names, and the interval.
Ends = Callable[[Sequence[Sums], Interval | None], str]

CLOSE = 1e-9  # tolerance for two ways of adding up the same numbers
Z = float(stats.norm.ppf(0.975))
RESAMPLES, SEED, FEW = 2000, 1, 7
_BLOCKS, _DRAWN = 20, 2000  # weights drawn for the mean over wordings
_OFF = 0.008  # error of a chance among them, and of the stored end among its own 8,000 draws


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


def share(clusters: Sequence[Sums], stored: Interval | None) -> str:
    """Check the interval of a share: each end is a quantile of the weighted share, or its limit.

    clusters: hits and replies of each. For the definition see `statistics.share_interval`. The
    stored end is put into Gil-Pelaez's integral, which is solved by quadrature.
    """
    clusters = [cluster for cluster in clusters if cluster[1]]
    if not clusters:
        return none(clusters, stored)
    if stored is None:
        return "no interval is stored, and the records give one"
    return wrong(stored, [end == 0 for end in share_ends(clusters, stored)])


def share_ends(clusters: Sequence[Sequence[float]], stored: Interval) -> tuple[int, int]:
    """Tell of each stored end whether it is right: 0; -1 is too far in, 1 too far out."""
    hits, n = math.fsum(k for k, _ in clusters), math.fsum(size for _, size in clusters)
    if all(size == 1 and k in (0, 1) for k, size in clusters):
        ends = score_interval(hits, n)
        off = ends[0] - stored[0], stored[1] - ends[1]
        low, high = (0 if abs(one) < CLOSE else 1 if one > 0 else -1 for one in off)
        return low, high
    usual = math.fsum(size**2 for _, size in clusters) / n
    least = Z * Z / (n / usual + Z * Z)
    turned = [(size - k, size) for k, size in clusters]
    found = []
    # The lower end is the upper end of what is no hit.
    for end, table, k in ((1 - stored[0], turned, n - hits), (stored[1], clusters, hits)):
        if close(k, n):
            found.append(0 if close(end, 1.0) else -1)
            continue
        chance = _below(end, table, usual, 0.75)
        right = close(chance, 0.975, 1e-6) or (chance > 0.975 and close(end, max(least, k / n)))
        found.append(0 if right else 1 if chance > 0.975 and end > max(least, k / n) else -1)
    return found[0], found[1]


def wrong(stored: Interval, right: Sequence[bool]) -> str:
    """Name the stored ends that are not right, or return ""."""
    ends = [end for end, ok in zip(("lower", "upper"), right, strict=True) if not ok]
    line = f"the {' and '.join(ends)} end of the stored interval {stored} is not the one of the"
    return f"{line} records" * bool(ends)


def two_way(clusters: Sequence[Sums], stored: Interval | None) -> str:
    """Check the interval of the mean over wordings like these; see `statistics.two_way_interval`.

    clusters: hits and replies in each wording, in turn.
    """
    wordings = np.array(clusters, float)[:, 1::2].sum(0) > 0 if clusters else np.zeros(0)
    if wordings.sum() < 3:
        return none(clusters, stored)
    if stored is None:
        return "no interval is stored, and the records give one"
    return wrong(stored, [end == 0 for end in two_way_ends(clusters, stored)])


def two_way_ends(clusters: Sequence[Sums], stored: Interval) -> tuple[int, int]:
    """Tell of each end whether it is right: 0; -1 is too far in, 1 too far out.

    The weights are drawn plainly, in the order of the records. An end must have the chance 97.5 %
    among these draws up to the error of both, or be that of these wordings, if it is farther out.
    """
    table = np.array(clusters, float)
    hits, sizes = table[:, 0::2], table[:, 1::2]
    hits, sizes = hits[:, sizes.sum(0) > 0], sizes[:, sizes.sum(0) > 0]
    n = sizes.sum(0)
    here = share_ends(np.column_stack([(hits / n).sum(1), (sizes / n).sum(1)]).tolist(), stored)
    rng, found = np.random.default_rng(7), []
    for end, x, place in ((1 - stored[0], sizes - hits, here[0]), (stored[1], hits, here[1])):
        below = 0
        for _ in range(_BLOCKS):
            drawn = rng.exponential(size=(_DRAWN, len(x)))
            weight = rng.exponential(size=(_DRAWN, x.shape[1]))
            top, bottom = rng.gamma(0.5, size=(2, _DRAWN))
            above = (weight * (drawn @ x) / (drawn @ sizes)).sum(1) + top
            below += int((above <= end * (weight.sum(1) + top + bottom)).sum())
        off = below / _BLOCKS / _DRAWN - 0.975
        right = (abs(off) < _OFF and place >= 0) or (off > -_OFF and place == 0)
        found.append(0 if right else -1 if min(off, place) < 0 else 1)
    return found[0], found[1]


def _below(end: float, clusters: Sequence[Sequence[float]], usual: float, yes: float) -> float:
    """Compute the chance that the weighted share lies below `end` (Gil-Pelaez 1951)."""
    parts = [(k - end * size, 1.0) for k, size in clusters]
    parts += [(usual * (1 - end), yes), (-usual * end, 1 - yes)]

    def wave(u: float) -> float:
        log = sum(-shape * cmath.log(1 - 1j * part * u / usual) for part, shape in parts)
        return cmath.exp(log).imag / u

    pieces = [0.0, *(10.0**power for power in range(-4, 9))]
    whole = math.fsum(
        integrate.quad(wave, a, b, limit=400)[0] for a, b in itertools.pairwise(pieces)
    )
    return 0.5 - whole / math.pi


# --- resampled


def resamples(clusters: Sequence[Sums]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the bootstrap samples of the clusters, and their probabilities.

    Up to `FEW` clusters give all samples; more give `RESAMPLES` drawn ones, with replacement.
    """
    table = np.array(sorted(clusters, key=lambda sums: sums[::-1]), float)
    many = len(table)
    if many <= FEW:
        drawn = _samples(many)
        chances = np.array(list(drawn.values())) / many**many
        return np.array([table[list(sample)].sum(axis=0) for sample in drawn]), chances
    rng = np.random.default_rng(SEED)
    sums = [table[rng.integers(0, many, many)].sum(axis=0) for _ in range(RESAMPLES)]
    return np.array(sums), np.full(RESAMPLES, 1 / RESAMPLES)


@functools.cache
def _samples(many: int) -> Counter[tuple[int, ...]]:
    """Count in how many ways each sample of so many clusters can be drawn, in any order."""
    return Counter(tuple(sorted(one)) for one in itertools.product(range(many), repeat=many))


def tail(clusters: int) -> float:
    """Return the share of resamples below the lower end of the interval.

    It is smaller than 2.5 % if there are few clusters (Hesterberg 2015).
    """
    t = float(stats.t.ppf(0.975, clusters - 1))
    return float(stats.norm.cdf(-math.sqrt(clusters / (clusters - 1)) * t))


def percentiles(values: Sequence[float], chances: np.ndarray, clusters: int) -> Interval:
    """Return the ends of the interval: the percentiles of resampled values."""
    share = tail(clusters)
    pairs = sorted(zip(values, chances.tolist(), strict=True))
    if clusters > FEW:
        sorted_ = [value for value, _ in pairs]
        return _quantile(sorted_, share), _quantile(sorted_, 1 - share)
    below = list(itertools.accumulate(chance for _, chance in pairs))
    low = next(value for (value, _), sum_ in zip(pairs, below, strict=True) if sum_ >= share)
    high = next(value for (value, _), sum_ in zip(pairs, below, strict=True) if sum_ >= 1 - share)
    return low, high


def bootstrap(value: Callable[[np.ndarray], float], limits: Interval | None) -> Ends:
    """Make the check of a percentile interval.

    value: the sums of a resample -> its figure. limits: the lowest and the highest possible
    figure, None if unbounded.
    """

    def compute(clusters: Sequence[Sums]) -> Interval | None:
        if not clusters:
            return None
        sums, chances = resamples(clusters)
        values = [value(one) for one in sums]
        many = len(clusters)
        if max(values) - min(values) < 1e-12:
            if limits is None:
                return None
            unlike = score_interval(0, many)[1]
            here = values[0]
            return here - unlike * (here - limits[0]), here + unlike * (limits[1] - here)
        return percentiles(values, chances, many)

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
