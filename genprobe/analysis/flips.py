"""Compare two versions of a model item by item: how many answers changed, and in which direction.

The share of items that change shows what averages hide: equally many may change in both directions
(quantised models change up to a fifth of their answers and keep their rates). If replies are
sampled, some answers change by chance; that share is estimated from several samples of one item,
and subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.errors import InputError
from genprobe.records import FACETS
from genprobe.statistics import SEED, Array, Interval, bootstrap, share_interval

if TYPE_CHECKING:
    import pandas as pd

# Columns by which items of the two versions are matched.
ITEM = ("decode", "lang", "probe", "statement", *FACETS)
DEALS = 1999


@dataclass(frozen=True)
class Flips:
    """The changes of answers between two versions, for a measure such as `endorsed`.

    n: items and samples to which both give a clear answer. up, down: how many changed to a hit, and
    away from it. share: of answers that changed; low, high: its interval over statements.
    by_itself: share of pairs of answers of one version to one item that differ: of the old version
    asked again, or of the samples of both versions (their mean); None if nothing was asked twice,
    also at temperature 0, where engines and servers still vary. beyond: interval of share minus
    by_itself. p: for the hypothesis that share is at most by_itself, from samples only, else None.
    left: pairs that do not count, by reason. same_text: share of identical replies.
    """

    n: int
    statements: int
    up: int
    down: int
    share: float
    low: float
    high: float
    by_itself: float | None
    beyond: Interval | None
    p: float | None
    left: dict[str, int]
    same_text: float

    @property
    def nothing_changed(self) -> bool:
        """Return whether all replies are identical: the new version may not have been used."""
        return self.same_text == 1.0

    def told(self) -> str:
        """Say in one line how many answers changed, and how many beyond chance."""
        said = (
            f"{self.up + self.down} of {self.n} answers changed ({100 * self.share:.1f} % "
            f"[{100 * self.low:.1f}, {100 * self.high:.1f}]), {self.up} up and {self.down} down"
        )
        if self.beyond is None or self.by_itself is None:
            return f"{said}; how many change by chance is unknown"
        low, high = (100 * end for end in self.beyond)
        return (
            f"{said}; {100 * self.by_itself:.1f} % change by chance, beyond that "
            f"{100 * (self.share - self.by_itself):+.1f} points [{low:+.1f}, {high:+.1f}]"
        )


def flips(
    old: pd.DataFrame, new: pd.DataFrame, measure: str, again: pd.DataFrame | None = None
) -> Flips:
    """Compare the outcomes of two versions, item by item and sample by sample.

    old, new: outcomes of runs that asked the same. measure: `endorsed` or `recognised`. again: of
    another run of the old version, from which the changes by chance are measured; if None, from the
    samples of both. Raises InputError if no item has a clear answer from both.
    """
    sides = [_sides(table, measure) for table in (old, new)]
    keys = [*(c for c in ITEM if c in sides[0] and c in sides[1]), "sample"]
    both = sides[0].merge(sides[1], "outer", keys, suffixes=("_old", "_new"))
    clear = both["says_old"].notna() & both["says_new"].notna()
    there = both["status_old"].notna() & both["status_new"].notna()
    unclear = {
        "unclear in the old": there & both["says_old"].isna() & both["says_new"].notna(),
        "unclear in the new": there & both["says_old"].notna() & both["says_new"].isna(),
        "unclear in both": there & both["says_old"].isna() & both["says_new"].isna(),
        "asked of one only": ~there,
    }
    kept = both[clear]
    if not len(kept):
        raise InputError(f"no item has a clear answer of both versions for {measure}")
    was, now = (kept[f"says_{side}"].to_numpy(bool) for side in ("old", "new"))
    cluster = kept["cluster_old"].to_numpy()
    names, at = np.unique(cluster.astype(str), return_inverse=True)
    changed = np.bincount(at, was != now)
    sizes = np.bincount(at).astype(float)
    interval = share_interval(changed, sizes) or (0.0, 1.0)
    same = both["response_old"].eq(both["response_new"])[there]
    if again is None:
        itself = _by_itself(sides, keys[:-1], names)
    else:
        itself = _asked_again(sides[0], _sides(again, measure), keys, names)
    share = float(changed.sum() / sizes.sum())
    beyond = p = None
    rate: float | None = None
    if itself is not None:
        rate, own, p = itself
        beyond = bootstrap(np.column_stack([changed, sizes, own]), _gap, limits=(-1.0, 1.0))
    return Flips(
        n=len(kept),
        statements=len(names),
        up=int((~was & now).sum()),
        down=int((was & ~now).sum()),
        share=share,
        low=interval[0],
        high=interval[1],
        by_itself=rate,
        beyond=beyond,
        p=p,
        left={why: int(rows.sum()) for why, rows in unclear.items() if rows.any()},
        same_text=float(same.mean()) if len(same) else math.nan,
    )


def _sides(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    from genprobe.metrics import cluster

    rows = table[table["measures"] == measure]
    columns = [c for c in (*ITEM, "sample", "says", "status", "response") if c in rows]
    return rows[columns].assign(cluster=cluster(rows))


def _asked_again(
    old: pd.DataFrame, again: pd.DataFrame, keys: Sequence[str], names: Array
) -> tuple[float, Array, float | None] | None:
    """Measure how many answers changed when the old version was asked again; see `_by_itself`."""
    both = old.merge(again, "inner", list(keys), suffixes=("_old", "_again"))
    both = both[both["says_old"].notna() & both["says_again"].notna()]
    both = both[np.isin(both["cluster_old"].astype(str), names)]
    if not len(both):
        return None
    place = np.searchsorted(names, both["cluster_old"].astype(str))
    apart = both["says_old"].to_numpy(bool) != both["says_again"].to_numpy(bool)
    own = [np.bincount(place, part, len(names)) for part in (apart, np.ones(len(apart)))]
    return float(apart.mean()), np.column_stack([*own, *own]), None


def _by_itself(
    sides: Sequence[pd.DataFrame], keys: Sequence[str], names: Array
) -> tuple[float, Array, float | None] | None:
    """Measure how often samples of one item differ within a version.

    Returns the share of pairs of samples that differ, as the mean of both versions; the sums it is
    computed from, by statement of `names`, (statements, 4); and the p-value for the hypothesis that
    versions differ no more than that.
    """
    counts = []
    for side in sides:
        clear = side[side["says"].notna()]
        grouped = clear.assign(says=clear["says"].astype(float)).groupby([*keys, "cluster"])["says"]
        counts.append(grouped.agg(n="size", k="sum"))
    both = counts[0].merge(counts[1], left_index=True, right_index=True, suffixes=("_old", "_new"))
    both = both[(both["n_old"] > 1) & (both["n_new"] > 1)]
    at = both.index.get_level_values("cluster").astype(str)
    both = both[np.isin(at, names)]
    if not len(both):
        return None
    place = np.searchsorted(names, both.index.get_level_values("cluster").astype(str))
    n = both[["n_old", "n_new"]].to_numpy(int)
    k = both[["k_old", "k_new"]].to_numpy(int)
    differ, of = k * (n - k), n * (n - 1) / 2
    own = [np.bincount(place, x[:, i], len(names)) for i in (0, 1) for x in (differ, of)]
    rates = differ.sum(0) / of.sum(0)
    return float(rates.mean()), np.column_stack(own), _dealt(k, n)


def _dealt(k: Array, n: Array) -> float:
    """Compute the one-sided p-value that two versions answer every item with the same probability.

    The samples of an item are permuted between the versions (Good 2005, Permutation, Parametric and
    Bootstrap Tests, 3.6), which needs no further assumption. k, n: (items, 2), hits and samples of
    each version.
    """
    rng = np.random.default_rng(SEED)
    total, size = k.sum(1), n.sum(1)

    def apart(old: Array) -> Array:
        new = total - old
        cross = old * (n[:, 1] - new) + (n[:, 0] - old) * new
        own = old * (n[:, 0] - old) / (n[:, 0] - 1) * n[:, 1]
        own = own + new * (n[:, 1] - new) / (n[:, 1] - 1) * n[:, 0]
        return np.asarray(((cross - own) / n.prod(1)).sum(-1))

    seen = float(apart(k[:, 0]))
    dealt = apart(rng.hypergeometric(total, size - total, n[:, 0], (DEALS, len(n))))
    more, same = (dealt > seen + 1e-9).sum(), (np.abs(dealt - seen) <= 1e-9).sum()
    return float((more + (same + 1) / 2) / (DEALS + 1))


def _gap(sums: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        itself = sums[..., 2] / sums[..., 3] + sums[..., 4] / sums[..., 5]
        return np.asarray(sums[..., 0] / sums[..., 1] - itself / 2)


def changed(old: pd.DataFrame, new: pd.DataFrame, measure: str) -> list[dict[str, Any]]:
    """List the items whose clear answer changed, in the order of the old run.

    Each has the columns of `ITEM`, `sample`, the replies `old` and `new`, and their labels,
    `says_old` and `says_new`.
    """
    sides = [_sides(table, measure) for table in (old, new)]
    keys = [*(c for c in ITEM if c in sides[0] and c in sides[1]), "sample"]
    both = sides[0].merge(sides[1], "inner", keys, suffixes=("_old", "_new"))
    both = both[both["says_old"].notna() & both["says_new"].notna()]
    rows = both[both["says_old"].astype(bool) != both["says_new"].astype(bool)]
    names = {"response_old": "old", "response_new": "new"}
    kept = [*keys, "says_old", "says_new", *names]
    return [dict(row) for row in rows[kept].rename(columns=names).to_dict("records")]
