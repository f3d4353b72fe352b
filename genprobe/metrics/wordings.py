"""Compute rates over wordings, with intervals that also hold for wordings that were not asked.

For runs with several wordings (`--wordings`). The figure is the mean over wordings, equally
weighted, of the share among a wording's clear answers. Statements and wordings are both treated as
samples: the interval is for the expected rate of a new panel of wordings of the same kind, about
new statements of the same kind. docs/wordings.md has the definition, and how often the interval
holds.

The logits of the wordings' rates vary about a centre m with standard deviation s. All wordings are
asked about the same statements, so the draw of statements also moves them together. The interval is
a generalized confidence interval (Weerahandi 1993, J. American Statistical Association 88:899; for
the mean of a skewed distribution Krishnamoorthy & Mathew 2003, J. Statistical Planning and
Inference 115:103). Values of m and s that are compatible with the estimates are drawn: each
variance with the chi-squared distribution of its own degrees of freedom, in place of
Satterthwaite's one for all. The rate is the mean of the logistic function over a normal
distribution with m and s. The same analysis of variance on the rates themselves, with
Satterthwaite's degrees of freedom, gives too narrow intervals if few wordings have very different
rates of a rare answer.

Drawing the two variances in this way makes an interval too wide if three wordings hardly differ, as
in the problem of Behrens and Fisher. The draws of the wordings' variance are therefore weighted by
the prior whose quantiles have their nominal coverage to the second order (as Ghosh & Kim 2001,
Canadian J. of Statistics 29:5, for two means). Let B be the part of the variance of m that is due
to wordings, and C the rest: a draw of B has the weight 1 + C / B. Since a draw is one over a
chi-square, this is a mixture of draws with w - 1 and with w + 1 degrees of freedom, for w wordings.

If hits are rare, logits are unstable: those of no hits and of two hits lie far apart by chance
alone. Their variance by chance is therefore computed from the binomial distribution, and the centre
uses logits shrunk towards the pooled rate; the less the wordings differ, the more they are shrunk.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from genprobe.metrics import Metric, Units, find
from genprobe.statistics import LEVEL, SEED, Array, Interval, wilson

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 4000
METHOD = f"gci95s{SEED}"  # generalized confidence interval, 95 %
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

    def interval(self, level: float = LEVEL) -> Interval:
        """Compute the interval of the rate over wordings."""
        centre, spread = self._drawn()
        low, high = np.quantile(_rate(centre, spread), [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

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


# An even grid: Gauss-Hermite nodes would be too few if wordings differ by many logits.
_NODES = np.linspace(-6, 6, 81)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


def _expit(x: Array) -> Array:
    from scipy import special

    return np.asarray(special.expit(x))


def _rate(centre: Array, spread: Array) -> Array:
    """Compute the mean of the logistic function over normal distributions.

    centre, spread: (draws,), their means and standard deviations; returns (draws,).
    """
    total = np.zeros_like(centre)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * _expit(centre + spread * node)
    return total


def _table(sums: Array) -> tuple[Array, Array]:
    """Split sums (…, 2 * wordings) into hits and sizes, both (…, wordings)."""
    return sums[..., 0::2], sums[..., 1::2]


def _value(sums: Array) -> Array:
    """Return the mean of the wordings' shares, over the wordings that have replies."""
    hits, sizes = _table(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(sizes > 0, hits / sizes, 0.0)
        return np.asarray(rates.sum(-1) / (sizes > 0).sum(-1))


def _interval(sums: Array) -> Interval | None:
    hits, sizes = _table(sums)
    found = spread(hits, sizes)
    if found is None:
        return None
    low, high = found.interval()
    rate = float(_value(sums.sum(0)))
    # If all replies are alike, statements show no variance: each counts as one reply.
    if rate <= 0 or rate >= 1:
        statements = int((sizes.sum(1) > 0).sum())
        least, most = wilson(statements * rate, statements) or (0.0, 1.0)
        low, high = min(low, least), max(high, most)
    # A share of 0 has no lower end, and one of 1 no upper end; the figure is always inside.
    return (0.0 if rate <= 0 else min(low, rate)), (1.0 if rate >= 1 else max(high, rate))


def _over(
    measure: str,
    place: int,
    what: str = "",
    unit: str = "clear",
    needs: tuple[str, ...] = ("answer", "says", "measures", "statement", "status"),
    adds: tuple[str, ...] = (),
    apart: tuple[str, ...] = ("decode",),
) -> Metric:
    """Make the mean of `{measure}` over the wordings of a panel, with its interval.

    what: the share, in words. The other arguments are those of the measure.
    """

    def units(outcomes: pd.DataFrame, by: list[str]) -> Units:
        own = find(measure).units(outcomes, [*by, *(["wording"] if "wording" not in by else [])])
        known, at = np.unique(own.cells["wording"].astype(str), return_inverse=True)
        stats = np.zeros((len(at), 2 * max(1, len(known))))
        places = np.arange(len(at)), 2 * at
        stats[places] = own.stats[:, 0]
        stats[places[0], places[1] + 1] = own.stats[:, 1]
        return Units(own.cells.drop(columns="wording"), own.cluster, own.reason, stats)

    return Metric(
        f"{measure}{_OVER}",
        "mean over wordings of the "
        + (what or f"share of clear answers that mean that the statement is {measure}"),
        unit,
        units,
        _value,
        _interval,
        METHOD,
        (*needs, "wording"),
        never_by=("wording",),
        adds=adds,
        pairable=False,
        place=place,
        apart=apart,
        version="6",
    )


_CHOICES = ("condition", "chosen", "label")
METRICS = (
    _over("recognised", 51),
    _over("endorsed", 61),
    _over(
        *("negative-stories", 111, "share of stories that are negative", "stories"),
        ("sentiment", "statement", "status"),
    ),
    _over(
        *("argues-for", 151, "share of essays that argue for the statement", "essays"),
        ("stance", "statement", "status"),
        apart=("decode", "probe"),  # one frame is only the statement and has a single wording
    ),
    _over(
        *("accuracy", 301, "share of choices that are right", "choices", _CHOICES),
        *(("condition",), ("model", "scorer", "decode", "probe")),
    ),
)


def base(metric: str) -> str:
    """Return the measure whose mean over wordings a metric is, "" if it is none."""
    over = next((one for one in METRICS if one.name == metric), None)
    return over.name.removesuffix(_OVER) if over else ""


def over(measure: str) -> str:
    """Return the mean over wordings of a measure, "" if there is none."""
    return next((one.name for one in METRICS if one.name == measure + _OVER), "")
