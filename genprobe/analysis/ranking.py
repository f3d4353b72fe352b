"""Rank models, if possible: simultaneous intervals, groups of ties, probabilities of ranks.

Models are compared on the same statements in the same wordings. Both are treated as samples: would
the order also hold for other statements and wordings? The difference of two models varies between
wordings (Brennan 2001, ch. 4: the variance of a difference in a crossed design), between
statements, and by noise that is in both. Differences of all pairs get simultaneous intervals:
Tukey's studentized range with each pair's own variance and Satterthwaite's degrees of freedom
(Games & Howell 1976, J. Educational Statistics 1:113). If two models differ by the same amount in
every statement, the interval comes from the number of statements (`_alike`).

Models are put in order by their figure. The order is cut between two neighbours if every model
above the cut differs from every model below it. Models that no cut separates are tied; without any
cut no ranking is supported. This rule is defined by genprobe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.statistics import LEVEL, SEED, Array
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 4_000
METHOD = "games-howell95.2"
POWER = 0.9
_NOTHING = 1e-18  # a smaller variance is a rounding error


@dataclass(frozen=True)
class Pair:
    """The difference of two models.

    difference: a's figure minus b's. low, high: an interval simultaneous with all other pairs.
    shown: the smallest difference that such data show in nine of ten studies.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    shown: float

    @property
    def differ(self) -> bool:
        """Return whether the interval excludes 0."""
        return bool(self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class Ranking:
    """Models in order, and whether the order is supported.

    models: by their figure, highest first. values: the figures, means over wordings. groups: groups
    of ties in that order; None if no ranking is supported. chances: model -> probability of each
    rank, the highest figure first. wordings, statements: how many all models share. unshared:
    statements to which at least one model has no reply that counts; they are left out.
    """

    models: tuple[str, ...]
    values: tuple[float, ...]
    groups: tuple[tuple[str, ...], ...] | None
    pairs: tuple[Pair, ...]
    chances: dict[str, tuple[float, ...]]
    wordings: int
    statements: int
    unshared: int = 0

    @property
    def over(self) -> str:
        """Describe the population for which the ranking holds."""
        if self.wordings < 2:
            return "new statements in this wording only; another wording may reverse it"
        return "new statements and new wordings"

    def told(self) -> str:
        """Describe the ranking in one line."""
        if self.groups is None:
            told = f"no ranking of {', '.join(self.models)} is supported, for {self.over}"
        else:
            groups = " > ".join(" = ".join(group) for group in self.groups)
            told = f"{groups} (ties joined by =), for {self.over}"
        if self.unshared:
            told += (
                f"; based on {many(self.statements, 'statement')}; {self.unshared} more count "
                "for none, as one of the models has no clear reply to them"
            )
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
            "rank_chances": {model: list(chances) for model, chances in self.chances.items()},
            "pairs": [{**vars(pair), "differ": pair.differ} for pair in self.pairs],
        }


def ranking(
    models: Sequence[str], hits: Array, sizes: Array, level: float = LEVEL
) -> Ranking | None:
    """Rank models, or say that they cannot be ranked.

    models: names, at least two. hits, sizes: (models, statements, wordings), the number of replies
    that count as a hit, and of all replies; a cell may be empty. Statements or wordings without a
    reply from every model are left out. level: of all differences together. Returns None if fewer
    than two statements are left.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    asked = hits.shape[1]
    shared = (sizes.sum(2) > 0).all(0)
    hits, sizes = hits[:, shared], sizes[:, shared]
    shared = (sizes.sum(1) > 0).all(0)
    hits, sizes = hits[:, :, shared], sizes[:, :, shared]
    _, statements, wordings = sizes.shape
    if statements < 2 or not wordings:
        return None
    rates = hits.sum(1) / sizes.sum(1)  # (models, wordings)
    parts = (hits - rates[:, None] * sizes) / sizes.sum(1)[:, None]
    values = rates.mean(1)
    order = np.argsort(-values, kind="stable")
    names = [models[i] for i in order]
    pairs, freedoms, unseen = [], [], np.zeros(len(names))
    for i, j in combinations(order, 2):
        gap = float(values[i] - values[j])
        one = _difference(rates[i] - rates[j], parts[i] - parts[j])
        if one[0] < _NOTHING:
            one = _alike(gap, statements, len(names), level)
            unseen[[i, j]] = np.maximum(unseen[[i, j]], one[0] / 2)
        freedoms.append(one[1])
        pairs.append(_pair(models[i], models[j], gap, *one, len(names), level))
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
        chances=_chances(
            names, values[order], rates[order], parts[order], unseen[order], min(freedoms)
        ),
        wordings=wordings,
        statements=statements,
        unshared=asked - statements,
    )


def _difference(rates: Array, parts: Array) -> tuple[float, float]:
    """Compute the variance of a mean difference over wordings, and its degrees of freedom.

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


def _alike(gap: float, statements: int, models: int, level: float) -> tuple[float, float]:
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
    return Pair(a, b, *map(float, ends))


def _chances(
    names: Sequence[str],
    values: Array,
    rates: Array,
    parts: Array,
    unseen: Array,
    freedom: float,
) -> dict[str, tuple[float, ...]]:
    """Compute the probability of each rank if the figures follow a multivariate t distribution.

    unseen: (models,), variance that the statements of a model cannot show (`_alike`).
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

    metric: a mean over equally weighted units, such as `endorsed`. Returns for each cell the
    ranking and what was left out, by reason. Raises InputError for a metric or column that does not
    fit.
    """
    from genprobe.analysis import significance
    from genprobe.metrics import cells

    facets = ["model", *(["wording"] if "wording" in outcomes else [])]
    kept, left = significance.values(outcomes, metric, [*facets, *by])
    at, labels = cells(kept, list(by))
    found = []
    for number, label in enumerate(labels):
        names, hits, sizes = tables(kept[at == number])
        if len(names) > 1 and (one := ranking(names, hits, sizes)):
            found.append((label, one, left.of(label)))
    return found


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
