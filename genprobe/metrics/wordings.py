"""Compute rates over wordings: for those that were asked, and for others like them.

For runs with several wordings (`--wordings`). Each wording has a share of hits among its own clear
answers, and weighs like every other. Statements are a sample in all figures, wordings in some:

- `…-these-wordings`: the mean over the wordings that were asked, as if there were no others.
- `…-over-wordings`: the mean over wordings like these. They may be distributed in any way, but must
  be exchangeable: any could have been any other (`statistics.two_way_interval`).
- `…-next-wording`: the share in one further wording, if the logits of the wordings' shares vary
  normally (`Spread.next`).
- `…-without-highest`, `…-without-lowest`: the mean over the wordings that were asked but for the
  one of the highest (lowest) share. They describe, and have no interval.

docs/wordings.md has the definitions, and how often the intervals hold.

A further wording: the logits of the wordings' rates vary about a centre m with standard deviation
s. All wordings are asked about the same statements, so the draw of statements also moves them
together. The interval is a generalized prediction interval (Weerahandi 1993, J. American
Statistical Association 88:899; Krishnamoorthy & Mathew 2003, J. Statistical Planning and Inference
115:103). Values of m and s that are compatible with the estimates are drawn: each variance with the
chi-squared distribution of its own degrees of freedom, in place of Satterthwaite's one for all. The
rate is the logistic function of a draw from a normal distribution with m and s.

Drawing the two variances in this way makes an interval of m too wide if few wordings hardly differ,
as in the problem of Behrens and Fisher. The draws of the wordings' variance are therefore weighted
by the prior whose quantiles have their nominal coverage to the second order (as Ghosh & Kim 2001,
Canadian J. of Statistics 29:5, for two means). Let B be the part of the variance of m that is due
to wordings, and C the rest: a draw of B has the weight 1 + C / B. Since a draw is one over a
chi-square, this is a mixture of draws with w - 1 and with w + 1 degrees of freedom, for w wordings.

If hits are rare, logits are unstable: those of no hits and of two hits lie far apart by chance
alone. Their variance by chance is therefore computed from the binomial distribution, and the centre
uses logits shrunk towards the pooled rate; the less the wordings differ, the more they are shrunk.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genprobe.metrics import ALIKE, NEXT, OVER, Metric, Units, find
from genprobe.statistics import (
    COLUMNS,
    LEVEL,
    SEED,
    SHARE,
    TWO_WAY,
    Array,
    Interval,
    share_interval,
    two_way_interval,
)

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 4000
METHOD = f"gpi95s{SEED}"  # generalized prediction interval, 95 %
FEWEST = 5  # wordings from which one more can be foretold
_NOTES = {
    "over-wordings": "over-wordings: for wordings like these, if any of them could have been any "
    "other; these-wordings: as if there were no others.",
    "next-wording": "next-wording: one further wording like these, if the logits of their shares "
    "vary normally.",
    "without-highest": "without-highest, without-lowest: how far the mean rests on one wording; no "
    "intervals.",
}
# Replies added to every wording at the pooled rate p, in units of 1 / (p (1 - p)), so that the
# logit of a wording without a hit is a number. With fewer, rare answers look more spread out than
# they are; with more, less.
_PRIOR = 0.35
# Lower limit of the variance of wordings used in shrinking the centre to the pooled rate.
_APART = 0.4
# Wordings may agree more closely than expected by chance. They then narrow the interval that
# statements alone give, but to no less than this part of its variance.
_LEAST = 0.2
_OVER = "-over-wordings"


@dataclass(frozen=True)
class Spread:
    """Estimates, from a table of statements by wordings, of the logits of the wordings' rates.

    centre: the mean of the logits. between: the variance of that mean as estimated from the
    differences between wordings, noise included. statements: its variance due to the draw of
    statements, with the wordings fixed. least: the least that `statements` can be, if every reply
    is independent. noise: the part that `between` and `statements` share. wordings, statements_n:
    the numbers of wordings and of statements.
    """

    centre: float
    between: float
    statements: float
    least: float
    noise: float
    wordings: int
    statements_n: int

    @property
    def spread(self) -> float:
        """Return the standard deviation of wordings, less noise, in logits; at least 0."""
        return max(0.0, self.wordings * (self.between - self.noise)) ** 0.5

    def next(self, level: float = LEVEL) -> Interval:
        """Compute an interval for the rate of one further wording (a prediction interval)."""
        centre, spread = self._drawn()
        one = _expit(centre + spread * _draws(self.wordings, self.statements_n)[-1])
        low, high = np.quantile(one, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def _drawn(self) -> tuple[Array, Array]:
        """Draw centres and spreads that are compatible with the estimates, both (DRAWS,)."""
        normal, few, more, which, statements, _ = _draws(self.wordings, self.statements_n)
        rest = max(0.0, self.statements - self.noise)
        # Share of the draws with w + 1 degrees of freedom: mean(C / B) / (1 + mean(C / B)).
        share = rest / (rest + self.between) if rest else 0.0
        between = self.between / np.where(which < share, more, few)
        drawn = np.maximum(self.statements / statements, self.least)
        variance = np.maximum(between - self.noise + drawn, _LEAST * drawn)
        spread = np.sqrt(np.maximum(0.0, self.wordings * (between - self.noise)))
        return self.centre - normal * np.sqrt(variance), spread


class _Logits(NamedTuple):
    """The logits of the wordings' rates, after some replies were added, and their variances.

    values: (wordings,). own: the sum over wordings of each logit's variance by statements. both:
    the variance by statements of the sum of the logits. least: `own` if every reply were
    independent.
    """

    values: Array
    own: float
    both: float
    least: float


def _logits(hits: Array, sizes: Array, pooled: float, prior: float) -> _Logits:
    """Return the logits of a table, `prior` replies at the rate `pooled` added to each wording.

    hits, sizes: (statements, wordings), the numbers of hits and of replies.
    """
    k, n = hits.sum(0), sizes.sum(0)
    rates = (k + prior * pooled) / (n + prior)
    weight = n * rates * (1 - rates)
    parts = (hits - k / n * sizes) / weight  # linearised
    grow = len(hits) / (len(hits) - 1)
    return _Logits(
        np.log(rates / (1 - rates)),
        grow * float((parts**2).sum()),
        grow * float((parts.sum(1) ** 2).sum()),
        float((1 / weight).sum()),
    )


def _rare(sizes: Array, pooled: float, prior: float) -> float:
    """Return by what factor the linearised variance of logits of few hits is too small, at least 1.

    Both variances are those of the binomial distribution of hits among `sizes` replies at the
    pooled rate. sizes: (wordings,).
    """
    from scipy import stats

    true = linearised = 0.0
    for n, times in zip(*np.unique(np.rint(sizes), return_counts=True), strict=True):
        k = np.arange(n + 1)
        chance = stats.binom.pmf(k, n, pooled)
        rates = (k + prior * pooled) / (n + prior)
        logits = np.log(rates / (1 - rates)) * (n + prior) / n
        true += times * ((chance * logits**2).sum() - (chance * logits).sum() ** 2)
        linearised += times * (chance * k * (1 - k / n) / (n * rates * (1 - rates)) ** 2).sum()
    return max(1.0, true / linearised)


def spread(hits: Array, sizes: Array) -> Spread | None:
    """Estimate from a table how much the wordings differ, and how much the statements matter.

    hits, sizes: (statements, wordings), the number of replies that count as a hit, and of all
    replies; a cell may be empty. Returns None if fewer than two statements or two wordings have
    replies.
    """
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    rows, columns = sizes.sum(1) > 0, sizes.sum(0) > 0
    hits, sizes = hits[rows][:, columns], sizes[rows][:, columns]
    statements, wordings = sizes.shape
    if statements < 2 or wordings < 2:
        return None
    pooled = (hits.sum() + 0.5) / (sizes.sum() + 1)
    unit, n = 1 / (pooled * (1 - pooled)), sizes.sum(0)
    prior = _PRIOR * unit
    found = _logits(hits, sizes, pooled, prior)
    between = noise = 0.0
    if 0 < hits.sum() < sizes.sum():  # otherwise all wordings are equal
        # Scaled back to how far apart they were before replies were added.
        apart = (found.values - found.values.mean()) * (n + prior) / n
        between = float((apart**2).sum()) / (wordings - 1) / wordings
        noise = (found.own - (found.both - found.own) / (wordings - 1)) / wordings**2
        noise = max(noise, 0.0) * _rare(n, pooled, prior)
        known = max(_APART, wordings * (between - noise))
        found = _logits(hits, sizes, pooled, max(_PRIOR, 1 / known) * unit)
    return Spread(
        centre=float(found.values.mean()),
        between=between,
        statements=max(found.both / wordings**2, noise),
        least=found.least / wordings**2,
        noise=noise,
        wordings=wordings,
        statements_n=statements,
    )


@functools.lru_cache(maxsize=256)
def _draws(wordings: int, statements: int) -> tuple[Array, ...]:
    """Draw all random numbers that the intervals need, six arrays of (DRAWS,).

    Normals; chi-squares with w - 1 and with w + 1 degrees of freedom for w wordings, both over w -
    1; numbers from 0 to 1, to choose between these two; chi-squares of statements over their
    degrees of freedom; normals again. They are the same every time, each spread evenly over its
    distribution.
    """
    from scipy import special

    rng = np.random.default_rng(SEED)
    even = (np.arange(DRAWS) + 0.5) / DRAWS
    first, second, at, other, which = (rng.permutation(even) for _ in range(5))
    few, more = (2 * special.gammaincinv((wordings + d) / 2, at) / (wordings - 1) for d in (-1, 1))
    of_statements = 2 * special.gammaincinv((statements - 1) / 2, other) / (statements - 1)
    return special.ndtri(first), few, more, which, of_statements, special.ndtri(second)


def _expit(x: Array) -> Array:
    from scipy import special

    return np.asarray(special.expit(x))


def _table(sums: Array) -> tuple[Array, Array]:
    """Split sums (…, 2 * wordings) into hits and sizes, both (…, wordings)."""
    return sums[..., 0::2], sums[..., 1::2]


def _rates(sums: Array) -> Array:
    """Return the wordings' shares, NaN for wordings without replies: (…, wordings)."""
    hits, sizes = _table(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sizes > 0, hits / sizes, np.nan))


def _mean(sums: Array) -> Array:
    """Return the mean of the wordings' shares, over the wordings that have replies."""
    rates = _rates(sums)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(rates, -1) / (~np.isnan(rates)).sum(-1))


def _without(sums: Array, highest: bool) -> Array:
    """Return the mean of the wordings' shares without the highest (or the lowest) of them."""
    rates = _rates(sums)
    off = np.where(np.isnan(rates), -np.inf if highest else np.inf, rates)
    out = off.max(-1) if highest else off.min(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.nansum(rates, -1) - out) / ((~np.isnan(rates)).sum(-1) - 1))


def _these(sums: Array) -> Interval | None:
    """Compute the interval of the mean over the wordings that were asked, by statement."""
    hits, sizes = _table(sums)
    n = sizes.sum(0)
    hits, sizes, n = hits[:, n > 0], sizes[:, n > 0], n[n > 0]
    return share_interval((hits / n).sum(1), (sizes / n).sum(1))


def _over(sums: Array) -> Interval | None:
    """Compute the interval of the mean over wordings like these."""
    return two_way_interval(_table(sums))


def _next(sums: Array) -> Interval | None:
    """Compute the interval of the share in one further wording; at least that of the mean."""
    found, mean = spread(*_table(sums)), _over(sums)
    if found is None or mean is None or found.wordings < FEWEST:
        return None
    low, high = found.next()
    return min(low, mean[0]), max(high, mean[1])


def _none(_: Array) -> None:
    """Return no interval, for a figure that only describes."""


# Suffix of the name -> estimand, title, fewest wordings, value, interval, its name, version.
_FIGURES: dict[str, tuple[str, str, int, Any, Any, str, str]] = {
    "these-wordings": (
        *(ALIKE, "mean, over these wordings, of the {}", 1, _mean, _these, SHARE, "1"),
    ),
    "over-wordings": (
        *(OVER, "mean, over wordings like these, of the {}", 1, _mean, _over, TWO_WAY, "7"),
    ),
    "next-wording": (
        NEXT,
        "{} in one further wording, if the logits of wordings vary normally",
        *(FEWEST, _mean, _next, METHOD, "1"),
    ),
    "without-highest": (
        ALIKE,
        "mean, over these wordings without the one of the highest share, of the {}",
        *(COLUMNS, functools.partial(_without, highest=True), _none, "none", "1"),
    ),
    "without-lowest": (
        ALIKE,
        "mean, over these wordings without the one of the lowest share, of the {}",
        *(COLUMNS, functools.partial(_without, highest=False), _none, "none", "1"),
    ),
}


def _family(
    measure: str,
    place: int,
    what: str = "",
    unit: str = "clear",
    needs: tuple[str, ...] = ("answer", "says", "measures", "statement", "left_out"),
    adds: tuple[str, ...] = (),
    apart: tuple[str, ...] = ("decode",),
) -> Iterator[Metric]:
    """Make the figures over a panel's wordings of `{measure}`.

    what: the share, in words. The other arguments are those of the measure.
    """

    share = what or f"share of clear answers that mean that the statement is {measure}"
    for at, (suffix, figure) in enumerate(_FIGURES.items()):
        estimand, title, fewest, value, interval, method, version = figure
        yield Metric(
            name=f"{measure}-{suffix}",
            title=title.format(share),
            unit=unit,
            units=functools.partial(_units, measure=measure),
            short=functools.partial(_short, fewest=fewest),
            value=value,
            interval=interval,
            method=method,
            needs=(*needs, "wording"),
            never_by=("wording",),
            adds=adds,
            pairable=False,
            place=place + at,
            note=_NOTES.get(suffix, ""),
            apart=apart,
            estimand=estimand,
            additive=True,
            version=version,
        )


def _units(outcomes: pd.DataFrame, by: list[str], measure: str) -> Units:
    """Count hits and replies of each unit of a measure, in the columns of its wording."""
    own = find(measure).units(outcomes, [*by, *(["wording"] if "wording" not in by else [])])
    # Replies whose wording has no name were asked in one that has none.
    named = own.cells["wording"].astype(object).fillna("").astype(str)
    known, at = np.unique(named, return_inverse=True)
    stats = np.zeros((len(at), 2 * max(1, len(known))))
    places = np.arange(len(at)), 2 * at
    stats[places] = own.stats[:, 0]
    # A unit that is unclear would have the size of any other.
    stats[places[0], places[1] + 1] = np.where(own.left_out == "", own.stats[:, 1], 1.0)
    return Units(own.cells.drop(columns="wording"), own.cluster, own.left_out, stats, of=known)


def _short(sums: Array, fewest: int) -> str:
    """Say why a cell with these sums (2 * wordings,) has no figure: too few wordings have replies.

    "" if there are enough.
    """
    return "few-wordings" if (_table(sums)[1] > 0).sum() < fewest else ""


_CHOICES = ("condition", "chosen", "label")
METRICS = (
    *_family("recognised", 51),
    *_family("endorsed", 61),
    *_family(
        *("negative-stories", 111, "share of stories that are negative", "stories"),
        ("sentiment", "statement", "left_out"),
    ),
    *_family(
        *("argues-for", 151, "share of essays that argue for the statement", "essays"),
        ("refused", "side", "statement", "left_out"),
        apart=("decode", "probe"),  # one frame is only the statement and has a single wording
    ),
    *_family(
        *("accuracy", 301, "share of choices that are right", "choices", _CHOICES),
        *(("condition",), ("model", "revision", "scorer", "decode", "probe")),
    ),
)


def base(metric: str) -> str:
    """Return the measure whose mean over wordings like these a metric is, "" if it is none."""
    there = metric.endswith(_OVER) and any(one.name == metric for one in METRICS)
    return metric.removesuffix(_OVER) if there else ""


def over(measure: str) -> str:
    """Return the mean over wordings like these of a measure, "" if there is none."""
    return next((one.name for one in METRICS if one.name == measure + _OVER), "")
