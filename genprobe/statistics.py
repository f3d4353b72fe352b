"""Intervals: a bootstrap with anchors for shares, a plain one for everything else, both clustered.

Also sums over clusters with random signs, which randomisation tests need.

Replies to the same statement (several samples, or probes and languages pooled) are not independent,
so both intervals count statements, not replies. An interval is `(low, high)`, or None if the data
cannot give one.
"""

from __future__ import annotations

import functools
import gc
import itertools
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
FEW = 7  # clusters of which all resamples are evaluated: 1,716
SEED = 1
TURNS = 9_999  # draws of random signs, for a p-value
COLUMNS = 3  # wordings from which others like them can be told
# Names of the intervals in signatures.
SHARE = f"anchored{100 * LEVEL:g}"
TWO_WAY = f"twoway{100 * LEVEL:g}s{SEED}"
BOOTSTRAP = f"bootstrap{100 * LEVEL:g}x{RESAMPLES}s{SEED}o"  # o: in any order of the clusters
LEAST = 2  # statements that a test needs; one shows no variation
SAME = 1e-5  # smaller differences of distances and shares are rounding errors
# Where Imhof's integral is summed: exp of equal steps; rows of one block of the sum.
_STEP = 0.08
_U = np.exp(np.arange(-24, 28, _STEP))
_ROWS = 1024
_FAR = 12  # standard deviations beyond which a weighted sum has one sign
_BLOCK = 2_000_000  # numbers that the bootstrap holds in memory at a time
# Random weights of the two-way bootstrap: as many draws as these numbers allow, within limits.
_WEIGHTS = 2_000_000
_DRAWS = (2_000, 8_000)


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


def share_interval(hits: Array, sizes: Array, level: float = LEVEL) -> Interval | None:
    """Compute the interval of the share sum(hits) / sum(sizes) of replies in clusters.

    hits, sizes: (clusters,), the number of hits and the number of replies of each statement.

    With one reply a statement it is `wilson` exactly. Otherwise it is the Bayesian bootstrap (Rubin
    1981, Annals of Statistics 9:130) with anchors: each cluster gets an exponential random weight,
    and an invented cluster of the usual size stands at each end of the scale, with a weight from
    Gamma(3/4) at the end that is sought and Gamma(1/4) at the other. (With 1 and 0 it would be
    Gaffke's bound, 2005, Dortmund preprint 05-08; for single replies that is Clopper and
    Pearson's.) The ends are quantiles of the weighted share, computed without random numbers
    (`_chance_below`). A cluster unlike those seen is allowed for, and an end never falls when a hit
    is added. In 336 simulated settings (3 to 100 statements, 1 to 60 replies each, rare and common
    answers, alike in all degrees) it held the share in 95 to 100 %: `benchmarks/intervals.py`.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    k, n = float(hits.sum()), float(sizes.sum())
    if (sizes == 1).all() and np.isin(hits, (0, 1)).all():  # also if there are none
        return wilson(k, n, level)
    usual = usual_size(sizes)
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    least = z2 / (n / usual + z2)  # Wilson's end for no hit in as many clusters of the usual size
    table = _counted(hits, sizes)
    tail = (1 - level) / 2
    low = _quantile(tail, *table, usual, 0.25, 0.75) if k > 0 else 0.0
    high = _quantile(1 - tail, *table, usual, 0.75, 0.25) if k < n else 1.0
    return min(low, 1 - least, k / n), max(high, least, k / n)


def share_of_sums(sums: Array) -> Interval | None:
    """Compute `share_interval`. sums: (clusters, 2), the hits and the replies of each statement."""
    return share_interval(sums[:, 0], sums[:, 1])


def upper_end(sums: Array, sizes: Array, level: float = LEVEL, usual: float | None = None) -> float:
    """Compute the one-sided upper confidence limit of the mean sum(sums) / sum(sizes).

    sums, sizes: (clusters,); each sum lies between 0 and its size, and need not be a count. usual:
    the size of an anchor; None for that of the usual cluster.

    It is the bootstrap of `share_interval` with the weights 1 and 0: Gaffke's bound (2005, Dortmund
    preprint 05-08; Learned-Miller & Thomas 2019, arXiv 1905.06208), which is conjectured to hold
    for every distribution. With clusters of one size and no hit it is 1 - (1 - level)^(1 / n).
    """
    sums, sizes = np.asarray(sums, float), np.asarray(sizes, float)
    k, n = float(sums.sum()), float(sizes.sum())
    if n <= 0 or k >= n:
        return 1.0
    usual = usual or usual_size(sizes)
    return max(_quantile(level, *_counted(sums, sizes), usual, 1.0, 0.0), k / n)


def mean_interval(
    sums: Array, sizes: Array, level: float = LEVEL, usual: float | None = None
) -> Interval:
    """Compute the interval of the mean sum(sums) / sum(sizes), which is a difference on its scale.

    sums, sizes, usual: as in `upper_end`; a difference of -1 is a 0, no difference a half. It is
    the bootstrap of `share_interval`, without what holds for counts of hits alone.
    `benchmarks/simulate.py` says how often the interval holds the difference.
    """
    sums, sizes = np.asarray(sums, float), np.asarray(sizes, float)
    usual, tail = usual or usual_size(sizes), (1 - level) / 2
    table = _counted(sums, sizes)
    low = _quantile(tail, *table, usual, 0.25, 0.75)
    return low, _quantile(1 - tail, *table, usual, 0.75, 0.25)


def p_at_most(share: float, sums: Array, sizes: Array, usual: float | None = None) -> float:
    """Compute a one-sided p-value for the hypothesis that the mean is at most `share`.

    sums, sizes, usual: as in `upper_end`. The anchors of the bootstrap weigh 1/2 each
    (`share_interval`).
    """
    sums, sizes = np.asarray(sums, float), np.asarray(sizes, float)
    usual = usual or usual_size(sizes)
    return min(1.0, max(0.0, _chance_below(share, *_counted(sums, sizes), usual, 0.5, 0.5)))


def hides(bounds: Interval | None) -> bool:
    """Tell whether the bounds of a difference hold 0, so that no direction can be given."""
    return bounds is not None and bounds[0] <= 1e-12 and bounds[1] >= -1e-12


def usual_size(sizes: Array) -> float:
    """Return the size of the cluster that a unit is in on average, that of an anchor."""
    scale = np.ldexp(1.0, int(np.frexp(np.max(sizes))[1]) - 1)  # squares could be too large
    return float(scale * np.square(sizes / scale).sum() / np.sum(sizes / scale))


def _counted(hits: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """List the different clusters: their hits, their sizes, and how many there are of each."""
    kinds, times = np.unique(np.column_stack([hits, sizes]), axis=0, return_counts=True)
    return kinds[:, 0], kinds[:, 1], times


def _quantile(
    chance: float, hits: Array, sizes: Array, times: Array, usual: float, yes: float, no: float
) -> float:
    """Return the quantile of the weighted share of `_chance_below`."""
    from scipy.optimize import brentq

    def beyond(share: float) -> float:
        return _chance_below(share, hits, sizes, times, usual, yes, no) - chance

    if beyond(0.0) >= 0 or beyond(1.0) <= 0:  # it lies beyond the scale
        return float(beyond(0.0) < 0)
    return float(brentq(beyond, 0.0, 1.0, xtol=1e-12))


def _chance_below(
    share: float, hits: Array, sizes: Array, times: Array, usual: float, yes: float, no: float
) -> float:
    """Compute the probability that the weighted share of hits is at most `share`.

    The weighted share is (sum of G h + Y u) / (sum of G s + (Y + N) u): G exponential, one for each
    cluster with h hits among s replies; Y and N from Gamma(yes) and Gamma(no); u the size of an
    anchor. It is at most `share` if a weighted sum of gamma variables is at most 0, whose
    probability Imhof's integral gives (1961, Biometrika 48:419), here over the logarithm.
    times: how many clusters have the same hits and size.
    """
    parts = np.concatenate([hits - share * sizes, [usual * (1 - share), -usual * share]])
    shapes = np.concatenate([times, [yes, no]])
    parts = parts / np.abs(parts).max()  # only their proportions matter
    mean, apart = float(shapes @ parts), float(shapes @ parts**2) ** 0.5
    if abs(mean) > _FAR * apart:  # certain, and the sum below would be too coarse for so many waves
        return float(mean < 0)
    angle, logs = np.zeros(len(_U)), np.zeros(len(_U))
    for at in range(0, len(parts), _ROWS):  # in blocks, so that memory stays small
        x = parts[at : at + _ROWS, None] * _U
        angle += shapes[at : at + _ROWS] @ np.arctan(x)
        logs += shapes[at : at + _ROWS] @ np.log1p(x * x)
    return float(0.5 - (np.sin(angle) * np.exp(-logs / 2)).sum() * _STEP / np.pi)


Table = tuple[Array, Array]  # hits and sizes, both (clusters, columns)


def two_way(table: Table, less: Table | None = None, yes: float = 0.5, no: float = 0.5) -> Array:
    """Draw the mean over columns of a share, where clusters and columns are both samples.

    table: hits and sizes, both (clusters, columns), such as statements by wordings; a cell may be
    empty. less: the table of a second model about the same clusters and columns, whose share is
    subtracted under the same weights. yes, no: the weights of the anchors, 1/2 and 1/2 for both
    ends of an interval, 1 and 0 for a one-sided upper limit. Returns (draws,) shares between 0 and
    1, or differences between -1 and 1.

    It is the pigeonhole bootstrap (Owen & Eckles 2012, Annals of Applied Statistics 6:895) with
    exponential weights and with anchors as in `share_interval`. A draw has a weight D for each
    cluster and a weight E for each column. The share of column w is p_w = sum D x / sum D n, and
    the draw is (sum E p_w + Y) / (sum E + Y + N), with Y and N from Gamma(yes) and Gamma(no); for a
    difference d_w of shares it is (sum E d_w + Y - N) / (sum E + Y + N). Columns without replies
    (in either table) are left out.

    The draws are the same every time, whatever the names and the order of clusters and columns:
    equal clusters share one weight from a gamma distribution, and within a draw the weights E are
    given to the columns from the smallest share to the largest.
    """
    tables = [np.asarray(part, float) for one in (table, less or ()) for part in one]
    cells = np.stack(tables, -1)[:, _asked(table, less)]  # (clusters, columns, hits and sizes)
    cells = cells[:, _column_order(cells)]
    weights = _Weights(len(cells))
    # Columns and anchors first: their weights must not move with the number of unlike clusters.
    columns = weights.drawn([1.0] * cells.shape[1])
    above, below = weights.drawn([yes, no]).T
    sums = np.moveaxis(weights.summed(cells), -1, 0)  # (kinds, draws, columns)
    shares = sums[0] / sums[1] - (sums[2] / sums[3] if less else 0.0)
    ends = above - below if less else above
    total = columns.sum(1) + above + below
    return np.asarray(((columns * np.sort(shares, axis=1)).sum(1) + ends) / total)


def share_draws(tables: Array, anchors: Array, yes: float, seed: int = SEED) -> Array:
    """Draw the shares of several tables of the same clusters, under the same random weights.

    tables: (tables, clusters, 2), the hits and the sizes of each cluster. anchors: (tables,), the
    sizes of the invented clusters at both ends. yes: the weight of that at 1; the other has 1 less
    this. Returns (tables, draws). See `share_interval`; the draws do not depend on the order of the
    clusters, and are nearly the same for tables that are nearly the same.
    """
    cells = np.moveaxis(np.asarray(tables, float), 0, 1)  # (clusters, tables, 2)
    weights = _Weights(len(cells), seed)
    above, below = (
        weights.drawn([shape] * len(anchors)) * anchors for shape in (yes, 1 - yes)
    )  # (draws, tables)
    sums = weights.summed(cells)
    return np.asarray((sums[..., 0] + above) / (sums[..., 1] + above + below)).T


class _Weights:
    """Random weights of clusters and anchors, the same every time.

    Each is spread evenly over its distribution, so that quantiles hardly depend on chance.
    """

    def __init__(self, clusters: int, seed: int = SEED) -> None:
        self._rng = np.random.default_rng(seed)
        self._draws = int(np.clip(_WEIGHTS // max(clusters, 1), *_DRAWS))

    def drawn(self, shapes: Sequence[float]) -> Array:
        """Draw gamma variables of these shapes: (draws, shapes)."""
        return np.array([self._rng.permutation(_gammas(k, self._draws)) for k in shapes]).T

    def summed(self, cells: Array) -> Array:
        """Sum numbers over clusters with exponential weights: (clusters, …) -> (draws, …).

        Equal clusters share one weight from a gamma distribution.
        """
        flat = cells.reshape(len(cells), -1)
        rows, times = np.unique(flat, axis=0, return_counts=True)
        sums = np.zeros((self._draws, flat.shape[1]))
        block = max(1, _BLOCK // self._draws)
        for at in range(0, len(rows), block):
            sums += self.drawn(times[at : at + block].tolist()) @ rows[at : at + block]
        return sums.reshape(-1, *cells.shape[1:])


@functools.lru_cache(maxsize=64)
def _gammas(shape: float, draws: int) -> Array:
    """Return evenly spaced quantiles of Gamma(shape); zeros for the shape 0."""
    from scipy.special import gammaincinv

    even = (np.arange(draws) + 0.5) / draws
    return np.asarray(gammaincinv(shape, even)) if shape else np.zeros(draws)


def spread_weights(times: Sequence[float], draws: int, seed: int = SEED) -> Array:
    """Draw a random weight for each cluster, each spread evenly over its gamma distribution.

    times: how many equal clusters share a weight. Returns (draws, clusters), the same every time.
    """
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(_gammas(float(shape), draws)) for shape in times]).T


def _column_order(cells: Array) -> Array:
    """Return an order of the columns that does not depend on the given order of rows and columns.

    cells: (rows, columns, numbers). Rows and columns are told apart by what stands in them, then by
    what stands in the rows and columns that these cross, and so on, until no more are told apart
    (colour refinement: Weisfeiler & Leman 1968).
    """
    codes = np.unique(cells.reshape(-1, cells.shape[-1]), axis=0, return_inverse=True)[1]
    codes = codes.reshape(cells.shape[:2])
    kinds, found = codes.max() + 1, 0
    columns = np.zeros(cells.shape[1], int)
    while columns.max() + 1 > found and found < len(columns):
        found = columns.max() + 1
        rows = _ranks(np.sort(codes + kinds * columns, axis=1))
        columns = _ranks(np.sort(codes + kinds * rows[:, None], axis=0).T)
    return np.argsort(columns, kind="stable")


def _ranks(rows: Array) -> Array:
    """Return a number for each row, the same for equal ones. rows: (n, k) -> (n,)."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _across(table: Table, less: Table | None) -> tuple[Array, Array]:
    """Sum over the columns at hand, each weighing alike: the hits and the sizes of each cluster.

    Their share is the mean over columns, or with `less` (1 + difference) / 2.
    """
    asked = _asked(table, less)

    def scaled(one: Table) -> Array:
        parts = np.asarray(one, float)[:, :, asked]
        return np.asarray((parts / parts[1].sum(0)).sum(2))

    hits, sizes = scaled(table)
    if less is not None:
        fewer, others = scaled(less)
        sizes = (sizes + others) / 2
        hits = (sizes + hits - fewer) / 2
    return hits, sizes


def _asked(table: Table, less: Table | None) -> Array:
    """Tell which columns have replies, in both tables if there are two: (columns,)."""
    return np.all([np.sum(one[1], 0) > 0 for one in (table, less) if one], axis=0)


def two_way_interval(
    table: Table, less: Table | None = None, level: float = LEVEL
) -> Interval | None:
    """Compute the interval of the mean over columns like these, about clusters like these.

    table, less: as in `two_way`. Returns None for fewer than `COLUMNS` columns.

    It is at least as wide as that for these columns (`share_interval`): a draw of `two_way` has no
    invented cluster, and would be too sure of few clusters in many columns. How often it holds is
    simulated in `benchmarks/simulate.py`.
    """
    if _asked(table, less).sum() < COLUMNS:
        return None
    hits, sizes = table
    chance = (1 + level) / 2
    high = float(np.quantile(two_way(table, less), chance))
    low, high_here = share_interval(*_across(table, less), level) or (0.0, 1.0)
    if less is None:
        turned_over = np.quantile(two_way((np.subtract(sizes, hits), sizes)), chance)
        return min(low, 1 - float(turned_over)), max(high, high_here)
    turned_over = np.quantile(two_way(less, table), chance)
    return min(2 * low - 1, -float(turned_over)), max(high, 2 * high_here - 1)


def two_way_end(table: Table, less: Table | None = None, level: float = LEVEL) -> float | None:
    """Compute the one-sided upper limit of the mean over columns like these; see `upper_end`.

    table, less: as in `two_way`. Returns None for fewer than `COLUMNS` columns.
    """
    if _asked(table, less).sum() < COLUMNS:
        return None
    here = upper_end(*_across(table, less), level)
    drawn = float(np.quantile(two_way(table, less, 1.0, 0.0), level))
    return max(here if less is None else 2 * here - 1, drawn)


def two_way_p(most: float, table: Table, less: Table | None = None) -> float | None:
    """Compute a one-sided p-value for the hypothesis that the mean is at most `most`.

    table, less: as in `two_way`. Returns None for fewer than `COLUMNS` columns. The p-value is at
    least that for these columns (`p_at_most`).
    """
    if _asked(table, less).sum() < COLUMNS:
        return None
    here = p_at_most(most if less is None else (1 + most) / 2, *_across(table, less))
    drawn = two_way(table, less)
    return max(here, float((drawn <= most).mean()), 1 / len(drawn))


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
    percentile"). Of up to `FEW` clusters all resamples are evaluated, with their probabilities: an
    extreme percentile of a few drawn ones would depend on the draw. If every resample gives the
    same value, the bootstrap would claim certainty. With `limits`, the interval then says how far
    the value could move if the share of clusters unlike the observed ones were the upper Wilson
    bound of 0 out of all clusters; without limits it is None.
    """
    units = np.asarray(units, float)
    clusters = len(units)
    if clusters == 0:
        return None
    units = units[np.lexsort(units.T)]  # the names of the clusters must not change a resample
    if clusters <= FEW:
        times, chances = _multisets(clusters)
        return _expanded(value(times @ units), clusters, level, limits, chances)
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // units.size)
    values = np.concatenate(
        [
            value(_drawn(units, rng.integers(0, clusters, (min(block, resamples - at), clusters))))
            for at in range(0, resamples, block)
        ]
    )
    return _expanded(values, clusters, level, limits)


def _drawn(units: Array, drawn: Array) -> Array:
    """Return the sums of drawn clusters. drawn: (resamples, clusters). -> (resamples, k)."""
    if units.shape[1] == 1 or len(units) < 100:
        return np.asarray(units[drawn].sum(1))
    # One statistic of one resample at a time, five times as fast for many clusters. They are added
    # in the same order, one after the other, so that the sums are the same to the last bit.
    found = np.empty((len(drawn), units.shape[1]))
    for at, column in enumerate(np.ascontiguousarray(units.T)):
        found[:, at] = [np.add.accumulate(column.take(row))[-1] for row in drawn]
    return found


@functools.cache
def _multisets(clusters: int) -> tuple[Array, Array]:
    """List all resamples of a few clusters, and their probabilities.

    Returns how often each cluster is drawn, (resamples, clusters), and (resamples,).
    """
    from scipy.special import gammaln

    chosen = itertools.combinations_with_replacement(range(clusters), clusters)
    times = np.array([np.bincount(drawn, minlength=clusters) for drawn in chosen], float)
    logs = gammaln(clusters + 1) - gammaln(times + 1).sum(1) - clusters * np.log(clusters)
    return times, np.exp(logs)


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
    if clusters <= FEW:
        times, chances = _multisets(clusters)
        return _expanded(value(times[:, cluster]), clusters, level, limits, chances)
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
    values: Array,
    clusters: int,
    level: float,
    limits: Interval | None,
    chances: Array | None = None,
) -> Interval | None:
    """Return the expanded percentile interval of resampled values; see `bootstrap`.

    chances: the probabilities of the values; None if all are alike.
    """
    if np.ptp(values) < 1e-12:
        if limits is None:
            return None
        here, unlike = float(values[0]), (wilson(0, clusters, level) or (0.0, 1.0))[1]
        return here - unlike * (here - limits[0]), here + unlike * (limits[1] - here)
    tail = NormalDist().cdf(-((clusters / (clusters - 1)) ** 0.5) * student(clusters - 1, level))
    if chances is None:
        low, high = np.quantile(values, [tail, 1 - tail])
        return float(low), float(high)
    order = np.argsort(values)
    below = np.cumsum(chances[order])
    # The least value with at least the tail at or below it, and the greatest with it at or above.
    low = values[order][np.searchsorted(below, tail)]
    high = values[order][np.searchsorted(below, 1 - tail)]
    return float(low), float(high)


def student(freedom: float, level: float) -> float:
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
