"""Estimate variance components: how much each facet, and each interaction, moves an outcome.

Generalizability theory (Brennan 2001, *Generalizability Theory*; Searle, Casella & McCulloch 1992,
*Variance Components*): an outcome is a mean plus a random effect of each facet (statement, wording,
direction, order, model, …), of each combination of facets, and a residual. The component of an
effect is its variance, in squares of the outcome's unit: of shares, squared shares.

The estimator is that of symmetric differences (Koch 1968, Technometrics 10:551): half the mean
squared difference of all pairs of outcomes that share exactly these facets. It is unbiased for any
pattern of missing cells, needs no distribution, and equals the estimate of the analysis of variance
in a complete table. It takes one pass over the outcomes for each set of facets, so a million
outcomes take seconds. A facet that is nested in others (a wording that exists in only one language)
is recognised by its levels, and is an effect within them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genprobe.errors import InputError
from genprobe.metrics import Measure, declare
from genprobe.records import FACETS, JSON, Score
from genprobe.statistics import LEVEL, Array

if TYPE_CHECKING:
    import pandas as pd

Effect = tuple[str, ...]
RESIDUAL: Effect = ()
METHOD = "symmetric+mls95"
# Columns on which an outcome may depend, used if they have several values.
CROSSED = ("statement", *FACETS, "probe", "model")
MOST_FACETS = 7


@dataclass(frozen=True)
class Component:
    """The variance of one effect.

    effect: its facets; empty for the residual, which includes the interaction of all facets if no
    cell was asked twice. value: the estimate; it can be negative, which means no effect. low, high:
    95 % interval, not below 0; None if a facet has too few levels. levels: number of levels of the
    effect. freedom: its degrees of freedom.
    """

    effect: Effect
    value: float
    low: float | None
    high: float | None
    levels: int
    freedom: int

    @property
    def name(self) -> str:
        """Return the facets of the effect, joined by ×, or `residual`."""
        return " × ".join(self.effect) or "residual"


@dataclass(frozen=True)
class Components:
    """Variance components of outcomes.

    n: number of outcomes. alone: facets with one level, which have no component. unknown: effects
    that cannot be separated because of empty cells.
    """

    n: int
    parts: tuple[Component, ...]
    alone: tuple[str, ...]
    unknown: tuple[Effect, ...]

    def __getitem__(self, effect: Sequence[str]) -> Component:
        """Return the component of a set of facets, in any order; KeyError if there is none."""
        for part in self.parts:
            if set(part.effect) == set(effect):
                return part
        raise KeyError(tuple(effect))

    @property
    def total(self) -> float:
        """Return the variance of one outcome: the sum of the components, negative ones as 0."""
        return sum(max(0.0, part.value) for part in self.parts)


class _Groups(NamedTuple):
    """The outcomes grouped by the levels of a set of facets: numbers of groups and of pairs."""

    groups: int
    within: float  # sum over groups of squared differences of all pairs in the group
    pairs: float


def components(values: Array, facets: Mapping[str, Sequence[Any] | Array]) -> Components:
    """Estimate the variance components of outcomes over facets.

    values: (n,) outcomes, such as 0 and 1, or differences of them; none missing. facets: name ->
    (n,) levels. Cells may be empty, and may hold several outcomes. The intervals are computed by
    the modified large-sample method (Ting et al. 1990, J. Statistical Computation and Simulation
    35:135; Burdick & Graybill 1992, ch. 3) from the mean squares that the components
    imply; the method is meant for complete tables and is approximate for others. Raises InputError
    for fewer than two outcomes, more than `MOST_FACETS` facets, or no facet with two levels.
    """
    values = np.asarray(values, float)
    if len(facets) > MOST_FACETS:
        raise InputError(f"{len(facets)} facets; at most {MOST_FACETS} can be crossed")
    codes, alone = _coded(facets)
    if len(values) < 2 or not codes:
        raise InputError("components need at least two outcomes, and a facet with two levels")
    names = tuple(codes)
    groups = _grouped(values, codes)
    closed = _closed(names, groups)
    order = sorted(closed, key=lambda s: (len(s), [names.index(f) for f in sorted(s)]))
    whole = frozenset(names)
    repeated = groups[whole].pairs > 0
    effects = [s for s in order if s and (s != whole or repeated)]
    exact = _exact(groups)
    seen = [s for s in order if exact[s][1] > 0]
    # Half the mean squared difference of pairs that share exactly s includes the residual and every
    # effect except those that they share.
    design = np.array([[*(float(not e <= s) for e in effects), 1.0] for s in seen])
    halves = np.array([exact[s][0] / exact[s][1] / 2 for s in seen])
    found, *_ = np.linalg.lstsq(design, halves, rcond=None)
    unknown = _untold(design)
    n = len(values)
    freedom = _freedom(order, groups, n, repeated, whole)
    sizes = [n / groups[e].groups for e in effects] + [1.0]
    keys: list[frozenset[str]] = [*effects, whole | {""}]
    degrees = np.array([*(freedom[e] for e in effects), freedom[None]])
    bounds = _bounds(found, keys, sizes, degrees)
    parts = [
        Component(
            effect=tuple(f for f in names if f in key) if i < len(effects) else RESIDUAL,
            value=float(found[i]),
            low=bounds[i][0],
            high=bounds[i][1],
            levels=groups[key].groups if i < len(effects) else n,
            freedom=freedom[key] if i < len(effects) else freedom[None],
        )
        for i, key in enumerate(keys)
        if i not in unknown
    ]
    return Components(
        n=n,
        parts=tuple(parts),
        alone=alone,
        unknown=tuple(tuple(f for f in names if f in keys[i]) for i in sorted(unknown)),
    )


def _coded(
    facets: Mapping[str, Sequence[Any] | Array],
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return levels as numbers from 0, and the facets with only one level."""
    import pandas as pd

    codes, alone = {}, []
    for name, labels in facets.items():
        at, known = pd.factorize(np.asarray(labels))
        if (at < 0).any():
            raise InputError(f"{(at < 0).sum()} outcomes have no {name!r}")
        if len(known) > 1:
            codes[name] = at.astype(np.int64)
        else:
            alone.append(name)
    return codes, tuple(alone)


def _grouped(values: Array, codes: Mapping[str, Array]) -> dict[frozenset[str], _Groups]:
    """Sum the outcomes by the groups of each set of facets; the empty set has one group."""
    import pandas as pd

    values = values - values.mean()  # centred: differences stay the same, and lose no digits
    squares = values**2
    found, keys = {}, {frozenset[str](): np.zeros(len(values), np.int64)}
    for size in range(len(codes) + 1):
        for names in itertools.combinations(codes, size):
            key = frozenset(names)
            if names:
                above = keys[frozenset(names[:-1])]
                mixed = above * (int(codes[names[-1]].max()) + 1) + codes[names[-1]]
                keys[key] = pd.factorize(mixed)[0].astype(np.int64)
            at = keys[key]
            count = np.bincount(at).astype(float)
            total, square = np.bincount(at, values), np.bincount(at, squares)
            within = float((count * square - total**2).sum())
            found[key] = _Groups(len(count), within, float((count * (count - 1)).sum()) / 2)
    return found


def _closed(names: Sequence[str], groups: Mapping[frozenset[str], _Groups]) -> list[frozenset[str]]:
    """Return the sets of facets that are distinct effects.

    A set that fixes the level of a further facet (a wording that only one language has fixes the
    language) is the same effect as the set with that facet.
    """
    return [
        s
        for s in groups
        if not any(groups[s | {f}].groups == groups[s].groups for f in names if f not in s)
    ]


def _exact(groups: Mapping[frozenset[str], _Groups]) -> dict[frozenset[str], tuple[float, float]]:
    """Sum the squared differences of pairs that share exactly these facets, for each set of facets.

    Returns sums and numbers of pairs, by Moebius inversion over the sets that contain each set.
    """
    found: dict[frozenset[str], tuple[float, float]] = {}
    for s in sorted(groups, key=len, reverse=True):
        above = [t for t in found if s < t]
        within = groups[s].within - sum(found[t][0] for t in above)
        found[s] = within, groups[s].pairs - sum(found[t][1] for t in above)
    return found


def _untold(design: Array) -> set[int]:
    """Return the unknowns that a set of linear equations does not determine."""
    _, singular, rows = np.linalg.svd(design)
    rank = int((singular > 1e-9 * singular.max()).sum())
    return {int(i) for i in np.flatnonzero((np.abs(rows[rank:]) > 1e-9).any(0))}


def _freedom(
    order: Sequence[frozenset[str]],
    groups: Mapping[frozenset[str], _Groups],
    n: int,
    repeated: bool,
    whole: frozenset[str],
) -> dict[frozenset[str] | None, int]:
    """Return the degrees of freedom of each effect; the key None is the residual."""
    freedom: dict[frozenset[str] | None, int] = {}
    for s in order:
        below = sum(freedom[t] for t in order if t < s and t in freedom)
        freedom[s] = max(groups[s].groups - below, 0)
    cells = groups[whole].groups
    freedom[None] = n - cells if repeated else freedom[whole]
    return freedom


def _bounds(
    found: Array,
    keys: Sequence[frozenset[str]],
    sizes: Sequence[float],
    freedom: Array,
) -> list[tuple[float | None, float | None]]:
    """Compute intervals of each component and the residual (last): modified large-sample method.

    sizes: outcomes per level of each effect. The mean square of an effect includes every effect
    that contains it, so a component is a sum of mean squares with signs.
    """
    above = np.array([[float(a <= b) for b in keys] for a in keys])
    expected = above * np.asarray(sizes)[None, :]
    squares = np.maximum(expected @ found, 0.0)
    weights = np.linalg.inv(expected)
    out: list[tuple[float | None, float | None]] = []
    for i in range(len(keys)):
        used = np.flatnonzero(np.abs(weights[i]) > 1e-12)
        if any(freedom[j] < 1 for j in used):
            out.append((None, None))
            continue
        terms = weights[i][used] * squares[used]
        below, over = _mls(terms, freedom[used])
        out.append((max(0.0, found[i] - below), max(0.0, found[i] + over)))
    return out


def _mls(terms: Array, freedom: Array) -> tuple[float, float]:
    """Return how far the interval of a sum of signed mean squares reaches below and above it."""
    from scipy import stats

    tail = (1 - LEVEL) / 2
    upper, lower = (stats.chi2.ppf(q, freedom) / freedom for q in (1 - tail, tail))
    g, h = 1 - 1 / upper, 1 / np.maximum(lower, 1e-12) - 1
    plus, minus = terms > 0, terms < 0
    down = float(
        (g[plus] ** 2 * terms[plus] ** 2).sum() + (h[minus] ** 2 * terms[minus] ** 2).sum()
    )
    up = float((h[plus] ** 2 * terms[plus] ** 2).sum() + (g[minus] ** 2 * terms[minus] ** 2).sum())
    for q in np.flatnonzero(plus):
        for r in np.flatnonzero(minus):
            product = terms[q] * -terms[r]
            f = stats.f.ppf(1 - tail, freedom[q], freedom[r])
            down += ((f - 1) ** 2 - g[q] ** 2 * f**2 - h[r] ** 2) / f * product
            f = stats.f.ppf(tail, freedom[q], freedom[r])
            up += ((1 - f) ** 2 - h[q] ** 2 * f**2 - g[r] ** 2) / f * product
    return max(down, 0.0) ** 0.5, max(up, 0.0) ** 0.5


def of_outcomes(
    outcomes: pd.DataFrame,
    metric: str,
    by: Sequence[str],
    facets: Sequence[str],
    signature: Callable[[str], str],
) -> list[Score]:
    """Estimate the variance components of a metric in each cell of `by`: `variance-share`.

    outcomes: of one run or several. metric: a mean over equally weighted units. facets: columns
    that are crossed, `CROSSED` if empty; those with one value are left out. The value is the
    component divided by the sum of all that are not negative; it is negative if the component is.
    Raises InputError if nothing varies, or a column does not fit.
    """
    from genprobe.analysis import significance

    chosen = _chosen(outcomes, facets)
    columns = [name for name in chosen if name != "statement" and name not in by]
    kept, left = significance.values(outcomes, metric, by, columns)
    if not len(kept):
        raise InputError(f"{metric}: no value is left to compare; {significance.reasons(left)}")
    return _shares(kept, {"of": metric}, by, chosen, left.of, _signed(metric, signature))


def of_differences(
    one: pd.DataFrame,
    other: pd.DataFrame,
    names: tuple[str, str],
    metric: str,
    by: Sequence[str],
    facets: Sequence[str],
    signature: Callable[[str], str],
) -> list[Score]:
    """Estimate the variance components of the difference of two models: `variance-share`.

    one, other: outcomes of runs that asked the same. names: of the two. The values are those of the
    other minus those of the first, question by question and sample by sample: a component of the
    wording shows how much the difference itself changes with the wording. The other arguments are
    those of `of_outcomes`; questions that count for only one model are left out. Raises InputError
    if no question counts for both.
    """
    import pandas as pd

    from genprobe.analysis import significance
    from genprobe.metrics import find

    chosen = [name for name in _chosen(one, facets) if name != "model"]
    never = find(metric).never_by
    item = "statement" if "statement" in one else "item"
    unit = [c for c in (*_UNIT, *chosen, *by) if c in one and c in other and c not in never]
    unit = [*dict.fromkeys(c for c in unit if c != "statement"), "unit_"]
    sides, asked = [], []
    for table in (one, other):
        table = table.assign(unit_=table[item])
        own = [name for name in chosen if name in unit and name not in by]
        kept, out = significance.values(table, metric, unit, own)
        sides.append(kept)
        asked.append(pd.concat([kept[unit], out.rows[unit]]).astype(object))
    both = sides[0].merge(sides[1].drop(columns="statement"), on=unit, suffixes=("", "_other"))
    every = pd.concat(asked).drop_duplicates()

    def left(label: Mapping[str, JSON]) -> dict[str, int]:
        """Count the questions of a cell that do not count for both models."""
        in_cell = significance.in_cell
        alone = len(in_cell(every, label)) - len(in_cell(both, label))
        return {"not counted for both": alone} if alone else {}

    if not len(both):
        raise InputError(f"{metric}: no question counts for both {' and '.join(names)}")
    both["value"] = both["value_other"] - both["value"]
    about = {"of": metric, "a": names[0], "b": names[1]}
    return _shares(both, about, by, chosen, left, _signed(metric, signature))


# Columns, besides the item, by which questions to two models are matched.
_UNIT = ("decode", "lang", "probe", *FACETS, "sample")


def _chosen(outcomes: pd.DataFrame, facets: Sequence[str]) -> list[str]:
    """Return the requested facets, or those of `CROSSED` that the outcomes have."""
    # The statement is derived from the rows, because choices have no such column.
    found = list(facets) or [n for n in CROSSED if n in outcomes or n == "statement"]
    if not facets and "order" in found and not _crossed_orders(outcomes):
        found.remove("order")
    return found


def _signed(metric: str, signature: Callable[[str], str]) -> str:
    from genprobe.metrics import find

    return signature(f"{metric}/{find(metric).version}-{METHOD}")


def _shares(
    kept: pd.DataFrame,
    about: Mapping[str, str],
    by: Sequence[str],
    facets: Sequence[str],
    left: Callable[[Mapping[str, JSON]], dict[str, int]],
    sign: str,
) -> list[Score]:
    """Return the components of the column `value`, as shares of their sum, in each cell of `by`.

    left: what was left out of a cell. A share has no interval if it is the only effect, and no
    value if nothing varies. Raises InputError if nothing varies in any cell.
    """
    from genprobe.metrics import cells

    at, labels = cells(kept, list(by))
    scores = []
    for number, label in enumerate(labels):
        part = kept[at == number]
        crossed = [n for n in facets if n not in by and part[n].nunique() > 1]
        found = components(part["value"].to_numpy(float), {n: part[n] for n in crossed})
        total = found.total
        for one in found.parts:
            ends: tuple[float, float] | None = None
            if (
                total
                and one.low is not None
                and one.high is not None
                and one.high - one.low > 1e-9 * total
            ):
                ends = min(1.0, one.low / total), min(1.0, one.high / total)
            scores.append(
                Score(
                    metric="variance-share",
                    by={**about, **label, "effect": one.name},
                    value=one.value / total if total else None,
                    low=ends and ends[0],
                    high=ends and ends[1],
                    n=found.n,
                    excluded=left(label),
                    bounds=None,
                    signature=sign,
                )
            )
    if all(score.value is None for score in scores):
        raise InputError(f"{about['of']}: all {len(kept)} values are alike, and nothing varies")
    return scores


def _crossed_orders(outcomes: pd.DataFrame) -> bool:
    """Tell whether most questions were asked in both orders of the answers.

    If each was asked in one order, there are few cells to estimate interactions of the order.
    """
    if "statement" not in outcomes:  # choices, whose options have orders
        return True
    cells = [c for c in ("model", "lang", "statement", "probe", "wording") if c in outcomes]
    return bool((outcomes.groupby(cells, observed=True)["order"].nunique() > 1).mean() > 0.5)


declare(
    Measure(
        "variance-share",
        "share of the variance of one answer that is due to an effect",
        unit="answers",
        note="variance-share: below 0, the effect is smaller than expected by chance; the "
        "interval of a facet with two values is hardly informative.",
    )
)
