"""Compare the distributions of every two groups by the Kolmogorov-Smirnov test.

The p-value to report comes from swapping the groups of whole statements.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from genprobe.statistics import ALPHA, SAME, SEED, TURNS, Array

if TYPE_CHECKING:
    import pandas as pd

KS = "ks-swap"
_FURTHER = 100  # swaps with a larger distance, after which p is known well enough


def pairwise_ks(
    values: pd.DataFrame, group: str, resamples: int | None = None, seed: int = SEED
) -> pd.DataFrame:
    """Test whether the values of every two groups have the same distribution (Kolmogorov-Smirnov).

    values: columns `value`, `statement` and the named group. Returned columns: a, b; n_a, n_b,
    mean_a, mean_b; statements (of the two together); statistic, the largest distance of the two
    distribution functions; p; p_independent, from scipy's `ks_2samp`, as published (SHADES G.1).
    Each group's own values are compared, not a join of the two tables, which would repeat every
    value of one for every value of the other.

    p resamples statements. If one has values in both groups (under two models, in two languages),
    all of them keep or swap groups together. Those that are in only one group (of two bias types)
    are dealt out anew, with as many to each group as before. p is a mid-p value: resamples with the
    same distance as the data count half, as in McNemar's test. resamples: the largest number; if
    None, enough for the product of p and the number of pairs to fall below 5 %. Drawing stops once
    100 distances are larger (Besag & Clifford 1991, Biometrika 78:301). Groups are sorted by name;
    a single group gives no rows.
    """
    import pandas as pd
    from scipy.stats import ks_2samp

    columns = ["a", "b", "n_a", "n_b", "mean_a", "mean_b", "statements", "statistic", "p"]
    columns += ["p_independent"]
    sides = dict(list(values.groupby(group, sort=True, observed=True)))
    pairs = list(itertools.combinations(sides, 2))
    draws = resamples or enough(len(pairs))
    rows = []
    for one, other in pairs:
        x, y = (sides[name]["value"].to_numpy(float) for name in (one, other))
        plain = ks_2samp(x, y)
        names = [sides[name]["statement"].to_numpy() for name in (one, other)]
        unit = np.unique(np.concatenate(names), return_inverse=True)[1]
        p = _ks_p(np.concatenate([x, y]), len(x), unit, draws, seed)
        found = (len(x), len(y), float(x.mean()), float(y.mean()), int(unit.max()) + 1)
        rows.append([one, other, *found, float(plain.statistic), p, float(plain.pvalue)])
    return pd.DataFrame(rows, columns=columns)


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
