"""Rank models, if possible: simultaneous intervals, groups of ties, probabilities of ranks.

Models are compared on the same statements in the same wordings. Both are treated as samples: would
the order also hold for other statements and wordings? The difference of two models varies between
wordings (Brennan 2001, ch. 4: the variance of a difference in a crossed design), between
statements, and by noise that is in both. Differences of all pairs get simultaneous intervals:
Tukey's studentized range with each pair's own variance and Satterthwaite's degrees of freedom
(Games & Howell 1976, J. Educational Statistics 1:113). If two models differ by the same amount in
every statement, the interval comes from the number of statements (`alike`).

A figure is over the units that count for its own model, as in `score`. If unclear units were all
counted as no, or all as yes, the difference of two models might be 0 or have the other sign; then
they do not differ here, whatever its interval.

Models are put in order by their figure. The order is cut between two neighbours if every model
above the cut differs from every model below it. Models that no cut separates are tied; without any
cut no ranking is supported. This rule is defined by genprobe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.errors import InputError
from genprobe.metrics import wordings as panel
from genprobe.statistics import LEVEL, SEED, Array, Interval
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.metrics import Units

DRAWS = 4_000
METHOD = "games-howell95.3"
POWER = 0.9
FEWEST_WORDINGS = 3  # of a difference over wordings
NOTHING = 1e-18  # a smaller variance is a rounding error


def hides(bounds: Interval | None) -> bool:
    """Tell whether the bounds of a difference hold 0, so that no direction can be given."""
    return bounds is not None and bounds[0] <= 1e-12 and bounds[1] >= -1e-12


@dataclass(frozen=True)
class Pair:
    """The difference of two models.

    difference: a's figure minus b's. low, high: an interval simultaneous with all other pairs.
    shown: the smallest difference that such data show in nine of ten studies. bounds: of the
    difference, if the unclear units of both counted as no, as yes, or are left out; None if no unit
    is unclear.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    shown: float
    bounds: Interval | None = None

    @property
    def open(self) -> bool:
        """Return whether the interval excludes 0, and the bounds do not."""
        return bool(self.low > 0 or self.high < 0) and hides(self.bounds)

    @property
    def differ(self) -> bool:
        """Return whether the interval excludes 0, and the bounds, too."""
        return bool(self.low > 0 or self.high < 0) and not hides(self.bounds)


@dataclass(frozen=True)
class Ranking:
    """Models in order, and whether the order is supported.

    models: by their figure, highest first. values: the figures, means over wordings. groups: groups
    of ties in that order; None if no ranking is supported. chances: model -> probability of each
    rank, the highest figure first; empty if the bounds of a pair leave its order open. wordings:
    how many all models share, 1 if the figure is not over wordings. statements: to which some model
    has a reply that counts. unshared: of these, to which another has none. without: models that
    have no reply that counts and are not ranked.
    """

    models: tuple[str, ...]
    values: tuple[float, ...]
    groups: tuple[tuple[str, ...], ...] | None
    pairs: tuple[Pair, ...]
    chances: dict[str, tuple[float, ...]]
    wordings: int
    statements: int
    unshared: int = 0
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
        if self.unshared:
            told += (
                f"; based on {many(self.statements, 'statement')}; to {self.unshared} of them one "
                "of the models has no clear reply"
            )
        if self.without:
            told += f"; not ranked, as nothing counts: {', '.join(self.without)}"
        return told

    def json(self) -> dict[str, Any]:
        """Return the ranking as `compare -f json` prints it."""
        return {
            "ranking": None if self.groups is None else [list(group) for group in self.groups],
            "ranking_over": self.over,
            "wordings": self.wordings,
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
) -> Ranking | None:
    """Rank models, or say that they cannot be ranked.

    models: names, at least two. hits, sizes: (models, statements, wordings), the number of replies
    that count as a hit, and of all replies; a cell may be empty. Wordings without a reply from
    every model are left out. level: of all differences together. ends: (models, 2), the figures if
    every unclear unit counted as no, and as yes; NaN if none is unclear. Returns None if fewer than
    two statements are left, or to fewer than two do all models reply.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    shared = (sizes.sum(1) > 0).all(0)
    hits, sizes = hits[:, :, shared], sizes[:, :, shared]
    some = (sizes.sum(2) > 0).any(0)
    hits, sizes = hits[:, some], sizes[:, some]
    both = int((sizes.sum(2) > 0).all(0).sum())
    _, statements, wordings = sizes.shape
    if both < 2 or not wordings:
        return None
    rates = hits.sum(1) / sizes.sum(1)  # (models, wordings)
    parts = (hits - rates[:, None] * sizes) / sizes.sum(1)[:, None]
    values = rates.mean(1)
    order = np.argsort(-values, kind="stable")
    names = [models[i] for i in order]
    pairs, freedoms, unseen = [], [], np.zeros(len(names))
    for i, j in combinations(order, 2):
        gap = float(values[i] - values[j])
        one = variance_of_gap(rates[i] - rates[j], parts[i] - parts[j])
        if one[0] < NOTHING:
            one = alike(gap, statements, len(names), level)
            unseen[[i, j]] = np.maximum(unseen[[i, j]], one[0] / 2)
        freedoms.append(one[1])
        pair = _pair(models[i], models[j], gap, *one, len(names), level)
        if ends is not None and not np.isnan(ends[[i, j]]).any():
            gaps = [*map(float, ends[i] - ends[j]), gap]
            pair = replace(pair, bounds=(min(gaps), max(gaps)))
        pairs.append(pair)
    differ = {(pair.a, pair.b) for pair in pairs if pair.differ}
    groups: list[list[str]] = [names[:1]]
    for at in range(1, len(names)):
        if all((a, b) in differ for a in names[:at] for b in names[at:]):
            groups.append([])
        groups[-1].append(names[at])
    return Ranking(
        models=tuple(names),
        values=tuple(float(values[i]) for i in order),
        groups=tuple(map(tuple, groups)) if len(groups) > 1 else None,
        pairs=tuple(pairs),
        chances={}
        if any(pair.open for pair in pairs)
        else _chances(
            names, values[order], rates[order], parts[order], unseen[order], min(freedoms)
        ),
        wordings=wordings,
        statements=statements,
        unshared=statements - both,
    )


def variance_of_gap(rates: Array, parts: Array) -> tuple[float, float]:
    """Compute the variance of a mean difference over wordings, and its degrees of freedom.

    Statements and wordings are both samples; with one wording, statements alone.

    rates: (wordings,) differences. parts: (statements, wordings), what each statement contributes
    to their errors.
    """
    statements, wordings = parts.shape
    grow = statements / (statements - 1)
    drawn = grow * float((parts.sum(1) ** 2).sum()) / wordings**2
    if wordings < 2:
        return drawn, statements - 1.0
    own = grow * float((parts**2).sum()) / wordings**2
    noise = max(0.0, own - (drawn - own) / (wordings - 1))
    between = float(rates.var(ddof=1)) / wordings
    variance = max(between - noise, 0.0) + drawn
    terms = between**2 / (wordings - 1) + drawn**2 / (statements - 1)
    terms += noise**2 / ((wordings - 1) * (statements - 1))
    return variance, variance**2 / terms if terms else statements - 1.0


def alike(gap: float, statements: int, models: int, level: float) -> tuple[float, float]:
    """Return variance and degrees of freedom if two models differ equally in every statement.

    The observed variance is then 0, which proves little if there are few statements. As in
    `statistics.bootstrap`, the share of statements unlike these is taken to be the upper Wilson
    bound of 0 in n, here with the studentized range instead of the normal quantile.
    """
    freedom = statements - 1.0
    reach = _reach(level, models, freedom)
    unlike = reach**2 / (statements + reach**2)
    return (unlike * (1 + abs(gap)) / reach) ** 2, freedom


def _reach(level: float, models: int, freedom: float) -> float:
    """Return half the width of a simultaneous interval of all differences, in standard errors."""
    from statsmodels.stats.libqsturng import qsturng

    return float(qsturng(level, models, freedom)) / 2**0.5  # SciPy's takes 300 times as long


def _pair(
    a: str, b: str, gap: float, variance: float, freedom: float, models: int, level: float
) -> Pair:
    from scipy import stats

    error = variance**0.5
    freedom = max(freedom, 1.0)
    reach = _reach(level, models, freedom)
    more = float(stats.t.ppf(POWER, freedom))
    ends = gap, gap - reach * error, gap + reach * error, (reach + more) * error
    gap, low, high, shown = map(float, ends)
    return Pair(a, b, gap, low, high, shown)


def _chances(
    names: Sequence[str],
    values: Array,
    rates: Array,
    parts: Array,
    unseen: Array,
    freedom: float,
) -> dict[str, tuple[float, ...]]:
    """Compute the probability of each rank if the figures follow a multivariate t distribution.

    unseen: (models,), variance that the statements of a model cannot show (`alike`).
    """
    models, statements, wordings = parts.shape
    grow = statements / (statements - 1)
    sums = parts.sum(2) / wordings
    covariance = grow * sums @ sums.T
    if wordings > 1:
        flat = parts.reshape(models, -1) / wordings
        own = grow * flat @ flat.T
        noise = own - (covariance - own) / (wordings - 1)
        covariance = covariance + np.cov(rates) / wordings - noise
    covariance = covariance + np.diag(unseen)
    lengths, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    rng = np.random.default_rng(SEED)
    freedom = max(freedom, 1.0)
    drawn = rng.standard_normal((DRAWS, models)) * np.sqrt(np.maximum(lengths, 0.0))
    drawn = drawn @ axes.T * np.sqrt(freedom / rng.chisquare(freedom, (DRAWS, 1)))
    # Equal figures get their ranks at random.
    ranks = np.argsort(np.argsort(-(values + drawn) + 1e-12 * rng.random(drawn.shape)))
    return {
        name: tuple(float((ranks[:, i] == rank).mean()) for rank in range(models))
        for i, name in enumerate(names)
    }


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
    facets = ["model", *(["wording"] if base else [])]
    kept, left = significance.values(outcomes, base or metric, [*facets, *by])
    at, labels = metrics.cells(kept, list(by))
    planned = metrics.find(base or metric).units(outcomes, [*facets, *by])
    found = []
    for number, label in enumerate(labels):
        names, hits, sizes = tables(kept[at == number])
        if base and 1 < sizes.shape[2] < FEWEST_WORDINGS:
            raise InputError(
                f"{metric}: a ranking over wordings needs {FEWEST_WORDINGS} wordings; these runs "
                f"have {sizes.shape[2]}; rank by {base}"
            )
        cells = significance.in_cell(planned.cells, label)
        if len(names) > 1 and (
            one := ranking(names, hits, sizes, ends=_ends(planned, cells, names))
        ):
            silent = sorted({str(m) for m in cells["model"]} - set(names))
            found.append((label, replace(one, without=tuple(silent)), left.of(label)))
    return found


def _ends(planned: Units, cells: pd.DataFrame, names: Sequence[str]) -> Array | None:
    """Return the figures of models with every unclear unit as no, and as yes: (models, 2).

    cells: the rows of a cell of the units. NaN for a model without unclear units; None for a metric
    that has none.
    """
    if planned.possible is None:
        return None
    given = planned.possible[planned.cells.index.get_indexer(cells.index)]
    rows = cells.assign(__low=given[:, 0], __high=given[:, 1]).dropna(subset=["__low"])
    if "wording" in rows:
        rows = rows.groupby(["model", "wording"], observed=True)[["__low", "__high"]].mean()
        rows = rows.reset_index()
    means = (
        rows.assign(model=rows["model"].astype(str)).groupby("model")[["__low", "__high"]].mean()
    )
    ends = means.reindex(list(names)).to_numpy(float)
    return None if np.allclose(ends[:, 0], ends[:, 1]) else ends


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
