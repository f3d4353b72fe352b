"""Compare two versions of a model item by item: how many answers changed, and in which direction.

The share of items that change shows what averages hide: equally many may change in both directions
(quantised models change up to a fifth of their answers and keep their rates). An answer that is no
longer clear has changed, too: a version that hedges where it said no says something else. If
replies are sampled, some answers change by chance; that share is estimated from several samples of
one item, and subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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

    n: items and samples to which at least one of the two gives a clear answer. up, down: how many
    changed to a hit, and away from it. lost, found: how many are no longer clear, and newly clear.
    share: of all these changes; low, high: its interval over statements. by_itself: share of pairs
    of answers of one version to one item that differ so: of the old version asked again, or of the
    samples of both versions (their mean); None if nothing was asked twice, also at temperature 0,
    where engines and servers still vary. beyond: interval of share minus by_itself. p: for the
    hypothesis that share is at most by_itself, from samples only, else None. left: pairs that do
    not count, by reason. same_text: share of identical replies;
    NaN if the tables are without texts.
    """

    n: int
    statements: int
    up: int
    down: int
    lost: int
    found: int
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
        ways = [f"{self.up} up and {self.down} down"]
        ways += [f"{self.lost} no longer clear"] if self.lost else []
        ways += [f"{self.found} newly clear"] if self.found else []
        said = (
            f"{self.up + self.down + self.lost + self.found} of {self.n} answers changed "
            f"({100 * self.share:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]), "
            f"{', '.join(ways)}"
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
    samples of both. Raises InputError if no item has a clear answer.
    """
    sides = [_sides(table, measure) for table in (old, new)]
    keys = [*(c for c in ITEM if c in sides[0] and c in sides[1]), "sample"]
    both = _joined(sides[0], sides[1], "outer", keys)
    there = both["left_out_old"].notna() & both["left_out_new"].notna()
    left = {
        "unclear in both": there & (both[["says_old", "says_new"]].isna().all(axis=1)),
        "asked of one only": ~there,
    }
    kept = _compared(both, "old", "new")
    if not len(kept):
        raise InputError(f"no item has a clear answer of either version for {measure}")
    was, now = (_answers(kept[f"says_{side}"]) for side in ("old", "new"))
    names, at = np.unique(kept["cluster_old"].to_numpy().astype(str), return_inverse=True)
    changed = np.bincount(at, was != now)
    sizes = np.bincount(at).astype(float)
    interval = share_interval(changed, sizes) or (0.0, 1.0)
    texts = [
        both[f"response_{side}"][there] for side in ("old", "new") if f"response_{side}" in both
    ]
    same = texts[0].eq(texts[1]) if len(texts) == 2 else there[:0]
    itself = None
    if again is None and not any(side.duplicated(keys).any() for side in sides):
        itself = _by_itself(sides, keys[:-1], names)
    elif again is not None:
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
        up=int(((was == _NO) & (now == _YES)).sum()),
        down=int(((was == _YES) & (now == _NO)).sum()),
        lost=int((now == _UNCLEAR).sum()),
        found=int((was == _UNCLEAR).sum()),
        share=share,
        low=interval[0],
        high=interval[1],
        by_itself=rate,
        beyond=beyond,
        p=p,
        left={why: int(rows.sum()) for why, rows in left.items() if rows.any()},
        same_text=float(same.mean()) if len(same) else math.nan,
    )


_NO, _YES, _UNCLEAR = range(3)


def _answers(says: pd.Series) -> Array:
    """Return each answer as a number: no, yes or unclear."""
    answers = np.where(says.fillna(False).astype(bool), _YES, _NO)
    return np.where(says.isna(), _UNCLEAR, answers)


def _sides(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    from genprobe.metrics import cluster

    rows = table[table["measures"] == measure]
    columns = [c for c in (*ITEM, "sample", "says", "left_out", "response", "request") if c in rows]
    return rows[columns].assign(cluster=cluster(rows))


def _joined(
    old: pd.DataFrame,
    new: pd.DataFrame,
    how: Literal["inner", "outer"],
    keys: list[str],
    suffix: str = "_new",
) -> pd.DataFrame:
    """Set the answers of two versions side by side, each beside that to the same question.

    A log may ask a question twice in one language and wording, such as by two system prompts: what
    tells those apart is the request. Raises InputError if that does not, either.
    """
    asked = (old, new)
    if any(side.duplicated(keys).any() for side in asked):
        keys = [*keys, *(["request"] if all("request" in side for side in asked) else [])]
        for side in asked:
            if (again := side.duplicated(keys)).any():
                which = ", ".join(str(side.loc[again, name].iloc[0]) for name in keys)
                raise InputError(
                    f"one sample of a question has several answers ({which}); number them in a "
                    "column 'sample'"
                )
    return old.merge(new, how, keys, suffixes=("_old", suffix))


def _compared(both: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Keep the pairs of answers that were both asked for, of which at least one is clear."""
    there = both[f"left_out_{one}"].notna() & both[f"left_out_{other}"].notna()
    return both[there & both[[f"says_{one}", f"says_{other}"]].notna().any(axis=1)]


def _asked_again(
    old: pd.DataFrame, again: pd.DataFrame, keys: Sequence[str], names: Array
) -> tuple[float, Array, float | None] | None:
    """Measure how many answers changed when the old version was asked again; see `_by_itself`."""
    both = _joined(old, again, "inner", list(keys), "_again")
    both = _compared(both, "old", "again")
    both = both[np.isin(both["cluster_old"].astype(str), names)]
    if not len(both):
        return None
    place = np.searchsorted(names, both["cluster_old"].astype(str))
    apart = _answers(both["says_old"]) != _answers(both["says_again"])
    own = [np.bincount(place, part, len(names)) for part in (apart, np.ones(len(apart)))]
    return float(apart.mean()), np.column_stack([*own, *own]), None


def _by_itself(
    sides: Sequence[pd.DataFrame], keys: Sequence[str], names: Array
) -> tuple[float, Array, float | None] | None:
    """Measure how often samples of one item differ within a version.

    Returns the share of pairs of samples that differ, of those that are not both unclear, as the
    mean of both versions; the sums it is computed from, by statement of `names`, (statements, 4);
    and the p-value for the hypothesis that versions differ no more than that.
    """
    counts = []
    for side in sides:
        answers = _answers(side["says"])
        columns = {f"answer_{one}": answers == one for one in range(3)}
        grouped = side.assign(**columns).groupby([*keys, "cluster"], dropna=False)
        counts.append(grouped[list(columns)].sum())
    both = counts[0].merge(counts[1], left_index=True, right_index=True, suffixes=("_old", "_new"))
    k = both.to_numpy(int).reshape(len(both), 2, 3)  # by version and answer
    at = both.index.get_level_values("cluster").astype(str)
    kept = (k.sum(2) > 1).all(1) & np.isin(at, names)
    k, at = k[kept], at[kept]
    pairs = _pairs(k.sum(2)) - _pairs(k[..., _UNCLEAR])
    if not pairs.any(axis=0).all():
        return None
    differ = _pairs(k.sum(2)) - _pairs(k).sum(2)
    place = np.searchsorted(names, at)
    own = [np.bincount(place, x[:, i], len(names)) for i in (0, 1) for x in (differ, pairs)]
    rates = differ.sum(0) / pairs.sum(0)
    return float(rates.mean()), np.column_stack(own), _dealt(k)


def _pairs(n: Array) -> Array:
    """Return the number of pairs of n things."""
    return n * (n - 1) / 2


def _dealt(k: Array) -> float:
    """Compute the one-sided p-value that two versions answer every item with the same probability.

    The samples of an item are permuted between the versions (Good 2005, Permutation, Parametric and
    Bootstrap Tests, 3.6), which needs no further assumption. k: (items, 2, 3), samples of each
    version by answer.
    """
    rng = np.random.default_rng(SEED)
    total, n = k.sum(1), k.sum(2)  # (items, 3), (items, 2)

    def apart(old: Array) -> Array:
        """Return how much more often answers differ between than within; old: (…, items, 3)."""
        both = (old, total - old)
        cross = n.prod(1) - (both[0] * both[1]).sum(-1)
        own = [
            (_pairs(n[:, i]) - _pairs(side).sum(-1)) / (n[:, i] - 1) * n[:, 1 - i]
            for i, side in enumerate(both)
        ]
        return np.asarray(((cross - own[0] - own[1]) / n.prod(1)).sum(-1))

    seen = float(apart(k[:, 0]))
    first = rng.hypergeometric(total[:, 0], total[:, 1:].sum(1), n[:, 0], (DEALS, len(n)))
    second = rng.hypergeometric(total[:, 1], total[:, 2], n[:, 0] - first)
    dealt = apart(np.stack([first, second, n[:, 0] - first - second], axis=-1))
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
    both = _joined(sides[0], sides[1], "inner", keys)
    both = both[both["says_old"].notna() & both["says_new"].notna()]
    rows = both[both["says_old"].astype(bool) != both["says_new"].astype(bool)]
    names = {"response_old": "old", "response_new": "new"}
    kept = [*keys, "says_old", "says_new", *names]
    return [dict(row) for row in rows[kept].rename(columns=names).to_dict("records")]
