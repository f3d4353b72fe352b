"""Rank models, if possible: simultaneous intervals, groups of ties, probabilities of ranks.

Models are compared on the same statements, and perhaps in the same wordings; both are treated as
samples: would the order also hold for others? The differences of all pairs, in all cells of a
table, have simultaneous intervals: those of `analysis.gaps` at Bonferroni's level.

A figure is over the units that count for its own model, as in `score`. If unclear units counted as
yes for one model and as no for the other, their difference might be 0 or have the other sign; then
they do not differ here, whatever its interval.

Models are put in order by their figure. The order is cut between two neighbours if every model
above the cut differs from every model below it. Models that no cut separates are tied; without any
cut no ranking is supported. This rule is defined by genprobe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.analysis.gaps import OfPanel, OfStatements
from genprobe.errors import InputError
from genprobe.metrics import wordings as panel
from genprobe.statistics import (
    ALPHA,
    COLUMNS,
    LEVEL,
    SEED,
    Array,
    Interval,
    hides,
    spread_weights,
)
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.metrics import Metric, Units
    from genprobe.review.corrected_rates import Difference

DRAWS = 4_000
METHOD = f"simultaneous{100 * LEVEL:g}"
POWER = 0.9


@dataclass(frozen=True)
class Pair:
    """The difference of two models.

    difference: a's figure minus b's. low, high: an interval simultaneous with all other pairs; None
    if one of the two has no reply in some wording. shown: about the smallest difference that such
    data show in nine of ten studies. bounds: of the difference, if unclear units counted as yes for
    one and as no for the other; None if no unit is unclear. p: the corrected p-value that decides
    in place of the interval, which then is of this pair alone; None if the interval decides.
    """

    a: str
    b: str
    difference: float
    low: float | None
    high: float | None
    shown: float | None
    bounds: Interval | None = None
    p: float | None = None

    @property
    def _excludes(self) -> bool:
        if self.p is not None:
            return self.p < ALPHA
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def open(self) -> bool:
        """Return whether a difference is shown, but the bounds hold 0."""
        return self._excludes and hides(self.bounds)

    @property
    def differ(self) -> bool:
        """Return whether a difference is shown, and the bounds exclude 0, too."""
        return self._excludes and not hides(self.bounds)


@dataclass(frozen=True)
class Ranking:
    """Models in order, and whether the order is supported.

    models: by their figure, highest first. values: the figures. groups: groups of ties in that
    order; None if no ranking is supported. chances: model -> probability of each rank, the highest
    figure first; empty if the bounds of a pair leave its order open, or a pair has no interval.
    wordings: their number, 1 if the figure is not over wordings. statements: to which some model
    has a reply that counts. unshared: of these, to which another has none. lacking: model -> number
    of wordings in which it has none. without: models that have no figure and are not ranked.
    """

    models: tuple[str, ...]
    values: tuple[float, ...]
    groups: tuple[tuple[str, ...], ...] | None
    pairs: tuple[Pair, ...]
    chances: dict[str, tuple[float, ...]]
    wordings: int
    statements: int
    unshared: int
    lacking: dict[str, int]
    without: tuple[str, ...] = ()

    @property
    def over(self) -> str:
        """Describe the population for which the ranking holds."""
        if self.wordings < 2:
            return "new statements in the wordings asked; another wording may reverse it"
        return "new statements and new wordings"

    def told(self) -> str:
        """Describe the ranking in one line."""
        if self.groups is None:
            told = f"no ranking of {', '.join(self.models)} is supported, for {self.over}"
        else:
            groups = " > ".join(" = ".join(group) for group in self.groups)
            told = f"{groups} (ties joined by =), for {self.over}"
        if several := [pair for pair in self.pairs if pair.open]:
            pairs = ", ".join(f"{pair.a} and {pair.b}" for pair in several)
            told += (
                f"; of the units that count for each, {pairs} differ, but unclear replies may "
                "account for it"
            )
        for model, none in self.lacking.items():
            told += f"; in {none} of {self.wordings} wordings nothing counts for {model}"
        if self.unshared:
            told += (
                f"; based on {many(self.statements, 'statement')}; to {self.unshared} of them one "
                "of the models has no clear reply"
            )
        if self.without:
            told += f"; not ranked, as they have no figure: {', '.join(self.without)}"
        return told

    def json(self) -> dict[str, Any]:
        """Return the ranking as `compare -f json` prints it."""
        return {
            "ranking": None if self.groups is None else [list(group) for group in self.groups],
            "ranking_over": self.over,
            "wordings": self.wordings,
            "wordings_lacking": self.lacking,
            "statements": self.statements,
            "statements_not_shared": self.unshared,
            "values": dict(zip(self.models, self.values, strict=True)),
            "rank_chances": {model: list(chances) for model, chances in self.chances.items()}
            or None,
            "pairs": [
                {**vars(pair), "differ": pair.differ, "unclear_may_account": pair.open}
                for pair in self.pairs
            ],
            "not_ranked": list(self.without),
        }


def ranking(
    models: Sequence[str],
    hits: Array,
    sizes: Array,
    level: float = LEVEL,
    ends: Array | None = None,
    limits: Interval = (0.0, 1.0),
    cells: int = 1,
) -> Ranking | None:
    """Rank models, or say that they cannot be ranked.

    models: names, at least two. hits, sizes: (models, statements, wordings), the sum of the replies
    that count and their number; one may be empty. level: of all differences together, and in all
    `cells` of a table. ends: (models, 2), the figures if every unclear unit had the lowest, and the
    highest, value. limits: of a figure; if it has none, the lowest and highest of a statement are
    taken. Returns None if there are fewer than two statements to which all models reply.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    some = (sizes.sum(2) > 0).any(0)
    hits, sizes = hits[:, some], sizes[:, some]
    both = int((sizes.sum(2) > 0).all(0).sum())
    _, statements, wordings = sizes.shape
    if both < 2:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.nanmean(hits.sum(1) / sizes.sum(1), axis=1)
        seen = hits / sizes
    if not np.isfinite(limits).all():
        limits = float(np.nanmin(seen)), float(np.nanmax(seen)) + 1e-9
    order = np.argsort(-values, kind="stable")
    names = [models[i] for i in order]
    together = 1 - (1 - level) / (len(names) * (len(names) - 1) / 2 * cells)
    pairs = []
    for i, j in combinations(order, 2):
        own = np.stack([hits[j], sizes[j], hits[i], sizes[i]], axis=-1)
        own = own[own[..., [1, 3]].sum((1, 2)) > 0]
        width = limits[1] - limits[0]
        gap = OfPanel(own) if wordings > 1 else OfStatements(own[:, 0], width)
        low, high = gap.interval(together) or (None, None)
        shown = None if low is None or high is None else (high - low) / 2 * _more(together)
        pair = Pair(models[i], models[j], gap.value, low, high, shown)
        if ends is not None:
            bounds = float(ends[i, 0] - ends[j, 1]), float(ends[i, 1] - ends[j, 0])
            pair = replace(pair, bounds=bounds)
        pairs.append(pair)
    unsure = any(pair.open or pair.low is None for pair in pairs)
    none = (sizes.sum(1) == 0).sum(1)
    return Ranking(
        models=tuple(names),
        values=tuple(float(values[i]) for i in order),
        groups=grouped(names, pairs),
        pairs=tuple(pairs),
        chances={} if unsure else _chances(names, hits[order], sizes[order], limits),
        wordings=wordings,
        statements=statements,
        unshared=statements - both,
        lacking={models[i]: int(none[i]) for i in order if none[i]},
    )


def grouped(names: Sequence[str], pairs: Sequence[Pair]) -> tuple[tuple[str, ...], ...] | None:
    """Cut an order where all above differ from all below; None if no ranking is supported.

    names: from the highest figure to the lowest. pairs: of every two, `a` above `b`.
    """
    differ = {(pair.a, pair.b) for pair in pairs if pair.differ}
    groups: list[list[str]] = [list(names[:1])]
    for at in range(1, len(names)):
        if all((a, b) in differ for a in names[:at] for b in names[at:]):
            groups.append([])
        groups[-1].append(names[at])
    return tuple(map(tuple, groups)) if len(groups) > 1 else None


def _more(level: float) -> float:
    """Return by what an interval's half width is multiplied, for a power of `POWER`."""
    normal = NormalDist().inv_cdf
    return 1 + normal(POWER) / normal((1 + level) / 2)


def _chances(
    names: Sequence[str], hits: Array, sizes: Array, limits: Interval
) -> dict[str, tuple[float, ...]]:
    """Compute the probability of each rank, by draws of the weighted figures of `statistics`.

    hits, sizes: as in `ranking`. Every model has invented statements (or wordings) of its own, of
    random weight 1/2 at each end of the scale.
    """
    models, statements, wordings = sizes.shape
    table = np.concatenate([hits, sizes])  # (hits and sizes of the models, statements, wordings)
    flat = np.moveaxis(table, 1, 0).reshape(statements, -1)
    rows, times = np.unique(flat, axis=0, return_counts=True)
    drawn = spread_weights([*times, *[0.5] * 2 * models, *[1.0] * wordings], DRAWS)
    weights, anchors, columns = np.split(drawn, [len(rows), len(rows) + 2 * models], axis=1)
    found = (weights @ rows).reshape(DRAWS, 2, models, wordings)
    sums, totals = found[:, 0], found[:, 1]
    if wordings > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(totals > 0, sums / totals, 0.0)
        sums, totals = ((columns[:, None] * part) for part in (shares, totals > 0))
        usual = np.ones(models)
    else:
        usual = (sizes**2).sum((1, 2)) / sizes.sum((1, 2))
    low, high = usual * anchors[:, :models], usual * anchors[:, models:]
    values = sums.sum(2) + limits[0] * low + limits[1] * high
    values = values / (totals.sum(2) + low + high)
    # Equal figures get their ranks at random.
    random = np.random.default_rng(SEED).random(values.shape)
    ranks = np.argsort(np.argsort(-values + 1e-12 * random))
    times = (ranks[..., None] == np.arange(models)).sum(0)
    chances = (times + 1 / models) / (DRAWS + 1)  # what never happened in the draws is not 0
    return {name: tuple(map(float, row)) for name, row in zip(names, chances, strict=True)}


def of_outcomes(
    outcomes: pd.DataFrame, metric: str, by: Sequence[str] = ()
) -> list[tuple[dict[str, Any], Ranking, dict[str, int]]]:
    """Rank the models in a table of outcomes, in each cell of `by`.

    metric: a mean over equally weighted units, such as `endorsed`, or its mean over wordings.
    Returns for each cell the ranking and what was left out, by reason. Raises InputError for a
    metric or column that does not fit.
    """
    from genprobe import metrics
    from genprobe.analysis import significance

    base = panel.base(metric)
    chosen = metrics.find(base or metric)
    facets = ["model", *(["wording"] if base else [])]
    kept, left = significance.values(outcomes, base or metric, by, facets)
    at, labels = metrics.cells(kept, list(by))
    planned = chosen.units(outcomes, [*facets, *by])
    found = []
    for number, label in enumerate(labels):
        names, hits, sizes = tables(kept[at == number])
        if base and 1 < sizes.shape[2] < COLUMNS:
            raise InputError(
                f"{metric}: a ranking over wordings needs {COLUMNS} wordings; these runs have "
                f"{sizes.shape[2]}; rank by {base}"
            )
        if len(names) < 2:
            continue
        cells = significance.in_cell(planned.cells, label)
        ends = _ends(chosen, planned, cells, names)
        one = ranking(names, hits, sizes, LEVEL, ends, chosen.limits, len(labels))
        if one:
            silent = sorted({str(m) for m in cells["model"]} - set(names))
            found.append((label, replace(one, without=tuple(silent)), left.of(label)))
    return found


def _ends(
    chosen: Metric, planned: Units, cells: pd.DataFrame, names: Sequence[str]
) -> Array | None:
    """Return the models' figures with unclear units at the lowest and the highest value.

    cells: the rows of a cell of the units. Returns (models, 2), or None if no unit is unclear.
    """
    possible = chosen.ends(planned)
    if possible is None:
        return None
    given = possible[planned.cells.index.get_indexer(cells.index)]
    rows = cells.assign(__low=given[:, 0], __high=given[:, 1]).dropna(subset=["__low"])
    groups = ["model", *(["wording"] if "wording" in rows else [])]
    means = rows.groupby(groups, observed=True)[["__low", "__high"]].mean().reset_index()
    means = means.assign(model=means["model"].astype(str)).groupby("model")
    ends = means[["__low", "__high"]].mean().reindex(list(names)).to_numpy(float)
    return None if np.allclose(ends[:, 0], ends[:, 1]) else ends


def of_corrected(found: Sequence[tuple[Difference, float | None]], names: Sequence[str]) -> Ranking:
    """Rank models by a rate that a review corrects, from the differences of every two in a cell.

    found: each difference with its corrected p-value, which decides. names: of all models; one
    whose rate is not corrected is not ranked.
    """
    values: dict[str, float] = {}
    for one, _ in found:
        values |= zip((str(one.by["a"]), str(one.by["b"])), (r[0] for r in one.rates), strict=True)
    order = sorted(values, key=lambda name: -values[name])
    pairs = []
    for one, p in found:
        a, b = sorted((str(one.by["a"]), str(one.by["b"])), key=order.index)
        side = -1 if a == one.by["a"] else 1  # the differences here are of a less b
        low, high = one.low, one.high
        bounds = one.bounds
        if side < 0:
            low, high = (None if end is None else -end for end in (high, low))
            bounds = bounds and (-bounds[1], -bounds[0])
        pairs.append(Pair(a, b, side * one.value, low, high, None, bounds, p))
    return Ranking(
        models=tuple(order),
        values=tuple(values[name] for name in order),
        groups=grouped(order, pairs),
        pairs=tuple(pairs),
        chances={},
        wordings=max(one.wordings for one, _ in found),
        statements=max(one.statements for one, _ in found),
        unshared=0,
        lacking={},
        without=tuple(name for name in names if name not in values),
    )


def tables(kept: pd.DataFrame) -> tuple[list[str], Array, Array]:
    """Arrange rows of `model`, `statement`, `value` and perhaps `wording` as arrays.

    Returns the names of the models, and (models, statements, wordings) hits and replies.
    """
    import pandas as pd

    model, models = pd.factorize(kept["model"], sort=True)
    statement, statements = pd.factorize(kept["statement"], sort=True)
    wording = np.zeros(len(kept), int)
    if "wording" in kept:
        wording = pd.factorize(kept["wording"], sort=True)[0]
    shape = (len(models), len(statements), int(wording.max(initial=0)) + 1)
    flat = np.ravel_multi_index((model, statement, wording), shape)
    size = int(np.prod(shape))
    hits = np.bincount(flat, kept["value"].to_numpy(float), size).reshape(shape)
    return [str(m) for m in models], hits, np.bincount(flat, minlength=size).reshape(shape)
