"""Compare the distributions of every two groups by the Kolmogorov-Smirnov test.

The p-value to report comes from swapping the groups of whole statements.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from genprobe.statistics import ALPHA, SAME, SEED, TURNS, Array, adjusted

if TYPE_CHECKING:
    import pandas as pd

KS = "ks-swap"
_FURTHER = 100  # swaps with a larger distance, after which p is known well enough


def pairwise_ks(
    values: pd.DataFrame,
    group: str,
    value: str = "value",
    cluster: str | None = "statement",
    resamples: int | None = None,
    seed: int = SEED,
) -> pd.DataFrame:
    """Test whether the values of every two groups have the same distribution (Kolmogorov-Smirnov).

    Columns: a, b; n_a, n_b, mean_a, mean_b; statements (clusters of the two together); statistic,
    the largest distance of the two distribution functions; p and, corrected over all pairs,
    p_bonferroni and p_holm; p_independent, from scipy's `ks_2samp`, as published (SHADES G.1). Each
    group's own values are compared, not a join of the two tables, which would repeat every value of
    one for every value of the other.

    p resamples clusters. If a cluster has values in both groups (a statement under two models, in
    two languages), all of them keep or swap groups together. Clusters that are in only one group
    (statements of two bias types) are dealt out anew, with as many to each group as before. p is a
    mid-p value: resamples with the same distance as the data count half, as in McNemar's test.
    Without a cluster p is p_independent. resamples: the largest number; if None, enough for the
    product of p and the number of pairs to fall below 5 %. Drawing stops once 100 distances are
    larger (Besag & Clifford 1991, Biometrika 78:301). Groups are sorted by name; a single group
    gives no rows.
    """
    import pandas as pd
    from scipy.stats import ks_2samp

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
        table[column] = adjusted(table["p"], method) if len(rows) > 1 else table["p"]
    return table


def enough(comparisons: int) -> int:
    """Return how many resamples allow the smallest corrected p to be at most half the level."""
    return max(TURNS, math.ceil(2 * comparisons / ALPHA) - 1)


def _ks_p(pooled: Array, first: int, cluster: Array, resamples: int, seed: int) -> float:
    """Compute p for the distance of pooled[:first] and the rest. cluster: (n,), numbered from 0."""
    order = np.argsort(pooled, kind="stable")
    ranked = pooled[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # equal values form one step
    label, unit = (order < first), cluster[order]
    clusters = int(cluster.max()) + 1
    in_a = np.bincount(unit, label, clusters) > 0
    in_b = np.bincount(unit, ~label, clusters) > 0
    both, alone = in_a & in_b, np.flatnonzero(in_a ^ in_b)

    n = len(pooled)
    steps = (ends + 1).astype(np.float32)

    def distance(labels: Array) -> Array:
        """Compute the largest |F_a - F_b|: k N / (n_a n_b) - i / n_b with k of the first i in a."""
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
        counts = further + np.cumsum((apart > SAME) + 0.5 * (np.abs(apart) <= SAME))
        if counts[-1] >= _FURTHER:
            at = int(np.argmax(counts >= _FURTHER))
            return float(counts[at] / (drawn + at + 1))
        further = float(counts[-1])
        drawn += block
    return (further + 0.5) / (resamples + 1)
