"""Compare many languages in a league table, with shares that are partly pooled: `score --league`.

Of many languages with few statements each, the highest share is high by chance, too. So each share
is shrunk towards that of all, by as much as the languages are alike (Efron & Morris 1975, JASA
70:311; Gelman & Hill 2007, Data Analysis Using Regression and Multilevel/Hierarchical Models, 12).
The true shares come from 0.9 Beta(m k, (1 - m) k) + 0.1 Beta(1, 1): nine languages in ten vary
round a common share m, and one in ten may be anywhere, so that a language unlike the others is not
pulled to them. m and k are unknown: flat over the logit of m, from 3 below to 3 above that of all
replies, and over 1 / sqrt(1 + k), the standard deviation of the shares up to a factor. Hits are
binomial, of replies divided by one design effect for all languages, as replies to a statement are
alike. That languages share their statements is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe import metrics
from genprobe.analysis import significance
from genprobe.errors import InputError
from genprobe.metrics import Measure, declare
from genprobe.records import Score
from genprobe.statistics import LEVEL, SEED, Array

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5  # languages from which it can be told how alike they are
NAMED = 0.95  # probability from which one is named
DRAWS = 8_000
ANYWHERE = 0.1  # share of languages that may be anywhere
METHOD = f"pooled{100 * LEVEL:g}s{SEED}"
_FAR, _STEPS = 3.0, 60  # of the grid: logits on either side, and points


def design_effect(hits: Sequence[Array], sizes: Sequence[Array]) -> float:
    """Estimate by how much the shares vary more than those of independent replies; at least 1.

    hits, sizes: of each language, (statements,). One figure for all languages, by the variances of
    their shares: over statements, and if replies were independent.
    """
    seen = alone = 0.0
    for k, n in zip(hits, sizes, strict=True):
        share, several = k.sum() / n.sum(), len(n) / max(len(n) - 1, 1)
        seen += several * float(np.square(k - share * n).sum())
        alone += float(share * (1 - share) * n.sum())
    return max(1.0, seen / alone) if alone else 1.0


def draw(hits: Array, sizes: Array, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Draw the true shares of languages from their posterior distribution; see the module.

    hits, sizes: (languages,), of independent replies; they need not be whole numbers. Returns
    (draws, languages).
    """
    from scipy.special import betaln, expit, logit

    rng = np.random.default_rng(seed)
    k, rest = np.asarray(hits, float), np.asarray(sizes, float) - hits
    middle = logit((k.sum() + 0.5) / (k.sum() + rest.sum() + 1))
    spread = (np.arange(_STEPS) + 0.5) / _STEPS
    mean, spread = (
        part.ravel()
        for part in np.meshgrid(expit(middle + np.linspace(-_FAR, _FAR, 2 * _STEPS + 1)), spread)
    )
    known = 1 / spread**2 - 1
    a, b = mean * known, (1 - mean) * known
    alike = betaln(a[:, None] + k, b[:, None] + rest) - betaln(a, b)[:, None]  # (grid, languages)
    parts = np.stack(
        [np.log1p(-ANYWHERE) + alike, np.log(ANYWHERE) + 0 * alike + betaln(1 + k, 1 + rest)]
    )
    each = np.logaddexp(*parts)
    total = each.sum(1)
    chance = np.exp(total - total.max())
    at = rng.choice(len(chance), draws, p=chance / chance.sum())
    anywhere = rng.random((draws, len(k))) < np.exp(parts[1] - each)[at]
    ends = [np.where(anywhere, 1.0, side[at, None]) for side in (a, b)]
    return rng.beta(ends[0] + k, ends[1] + rest)


def league(
    outcomes: pd.DataFrame,
    metric: str,
    column: str,
    by: Sequence[str],
    sign: Callable[[str], str],
) -> Iterator[tuple[list[Score], str]]:
    """Yield the league table of each cell of `by`, and a line on which is the highest.

    metric: a share, the mean over units of equal weight. column: of the languages. Its values have
    the cells `of` and `column`, and four figures: `share`, as `score` prints it; `pooled-share`;
    `chance-highest`, that no other has a higher share; the highest pooled share comes first. Raises
    InputError for another metric, and for fewer than five languages.
    """
    chosen = metrics.find(metric)
    if chosen.limits != (0.0, 1.0):
        raise InputError(f"{metric} is not a share; --league needs one")
    raw = metrics.score(outcomes, [metric], [*by, column], str)
    by = [name for name in (raw[0].by if raw else ()) if name != column]
    kept, _ = significance.values(outcomes, metric, by, [column])
    signed = sign(f"{metric}/{chosen.version}-{chosen.estimand}-{METHOD}")
    # A row without a language has no place in their order.
    some = [one for one in raw if one.value is not None and one.by[column] not in (None, "")]
    cells = [tuple(one.by[name] for name in by) for one in some]
    told = 0
    for cell in dict.fromkeys(cells):
        own = [one for one, where in zip(some, cells, strict=True) if where == cell]
        if len(own) < FEWEST:
            continue
        told += 1
        parts = [significance.in_cell(kept, one.by).groupby("statement")["value"] for one in own]
        hits, sizes = ([part.agg(what).to_numpy(float) for part in parts] for what in _SUMS)
        effect = design_effect(hits, sizes)
        k, n = (np.array([x.sum() for x in side]) / effect for side in (hits, sizes))
        drawn = draw(k, n)
        chances = np.bincount(drawn.argmax(1), minlength=len(own)) / len(drawn)
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        scores = []
        for i in np.argsort(-drawn.mean(0), kind="stable"):
            one = replace(own[i], by={"of": metric, **own[i].by}, signature=signed)
            ends: dict[str, Any] = {"low": float(low[i]), "high": float(high[i]), "bounds": None}
            chance: dict[str, Any] = {"low": None, "high": None, "bounds": None}
            scores += [
                replace(one, metric="share"),
                replace(one, metric="pooled-share", value=float(drawn[:, i].mean()), **ends),
                replace(one, metric="chance-highest", value=float(chances[i]), **chance),
            ]
        where = "".join(f"{name} {value}: " for name, value in zip(by, cell, strict=True))
        yield scores, f"{where}{metric} by {column}: {_highest(own, chances, column)}"
    if not told:
        raise InputError(f"--league {column}: {metric} has fewer than {FEWEST} values of {column}")


_SUMS = ("sum", "count")


def _highest(own: Sequence[Score], chances: Array, column: str) -> str:
    """Say which is the highest, or that none is shown to be.

    None is where unclear replies may account for it.
    """
    best = int(chances.argmax())
    said = f"{own[best].by[column]}, with a chance of {chances[best]:.2f}"
    if chances[best] <= NAMED:
        return f"none of {len(own)} is shown to be the highest (most likely {said})"
    known: list[Any] = [one.bounds or (one.value, one.value) for one in own]
    ends = np.array(known, float)
    if ends[best, 0] <= np.delete(ends[:, 1], best).max():
        return f"of clear answers, {said}, is the highest, but unclear ones may account for it"
    return f"the highest is {said}"


declare(
    Measure("share", "share as it was measured"),
    Measure(
        "pooled-share",
        "share, partly pooled with those of the other languages",
        note="pooled-share: the share shrunk towards those of all others, by as much as these are "
        "alike; the highest of many measured shares is high by chance, too.",
    ),
    Measure(
        "chance-highest",
        "probability that no other share is higher",
        note="chance-highest: that no other has a higher true share; none is named at 95 or less.",
    ),
)
