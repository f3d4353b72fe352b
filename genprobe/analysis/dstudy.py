"""Plan the size of a study: the interval that numbers of wordings, statements and samples give.

A decision study (Brennan 2001, *Generalizability Theory*, ch. 4): the variances of wordings,
statements and replies in one study predict the width of the interval of another. The variances are
those of logits (`metrics.wordings`), and are taken to be normal; the interval is that of the mean
over wordings like these (`statistics.two_way_interval`).
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from genprobe.metrics.wordings import spread
from genprobe.records import Request
from genprobe.statistics import COLUMNS, LEVEL, Array
from genprobe.text import many

_WORDINGS, _LOOKS = 800, 32  # wordings simulated in a forecast, in so many studies at least
_DRAWS = 2000  # weights in each study
MOST_STATEMENTS = 100_000


@dataclass(frozen=True)
class Parts:
    """Variances of the parts of a reply's logit, in squared logits.

    centre: the mean logit of wordings (not a variance). wording: between wordings. statement:
    between statements, the same in all wordings. interaction: of statement and wording. reply: of
    one sampled reply. told: whether the last two could be separated; else both are in the
    interaction, and more samples do not help. wordings: how many were asked, from which `wording`
    is estimated; 0 if it is assumed. noise: the part of the variance between their logits that is
    not due to wordings.
    """

    centre: float
    wording: float
    statement: float
    interaction: float
    reply: float
    told: bool
    wordings: int = 0
    noise: float = 0.0


# For a plan without an earlier study: roughly the variances of the published replies of SHADES and
# of the built-in statements (docs/wordings.md). A rate of one half gives the widest interval.
USUAL = Parts(0.0, 1.0, 1.0, 1.0, 4.0, True)


@dataclass(frozen=True)
class Plan:
    """The size of a study.

    wordings: number of wordings in the panel, all of which are used. each: wordings in which each
    statement is asked. width: the expected width of the 95 % interval. requests: for one question.
    """

    statements: int
    wordings: int
    each: int
    samples: int
    width: float

    @property
    def requests(self) -> int:
        """Return the number of requests that one question takes."""
        return self.statements * self.each * self.samples


def parts(hits: Array, sizes: Array) -> Parts | None:
    """Estimate the variances from a study.

    hits, sizes: (statements, wordings), the number of replies that count as a hit, and of all
    replies. Returns None for fewer than two wordings or statements.
    """
    found = spread(hits, sizes)
    if found is None:
        return None
    hits, sizes = np.asarray(hits, float), np.asarray(sizes, float)
    cells = int((sizes > 0).sum())
    both = found.noise * cells
    several = sizes > 1
    reply, per_cell = 0.0, 1.0
    told = bool(several.sum() * 2 >= cells)
    if told:
        rates = hits.sum(0) / np.maximum(sizes.sum(0), 1)
        weight = np.maximum(rates * (1 - rates), 1e-3)
        within = np.where(several, hits * (sizes - hits) / np.maximum(sizes * (sizes - 1), 1), 0)
        reply = float((within / weight**2).sum() / several.sum())
        per_cell = cells / float((1 / sizes[sizes > 0]).sum())  # harmonic mean
        reply = min(reply, both * per_cell)
    return Parts(
        centre=found.centre,
        wording=found.spread**2,
        statement=max(0.0, (found.statements - found.noise) * found.statements_n),
        interaction=max(0.0, both - reply / per_cell),
        reply=reply,
        told=told,
        wordings=found.wordings,
        noise=found.wordings * found.noise,
    )


@functools.lru_cache(maxsize=4096)
def forecast(
    given: Parts, statements: int, wordings: int, each: int, samples: int, level: float = LEVEL
) -> float:
    """Forecast the mean width, in shares, of the interval of a study of this size.

    statements, wordings: at least 2. each: wordings in which a statement is asked. The mean is over
    simulated studies of this size.
    """
    from scipy.special import expit

    asked = statements * each / wordings  # statements asked in one wording
    # Variance that the wordings share, because they are asked about the same statements, and other.
    shared = given.statement * (each - 1) / (wordings - 1) / asked
    own = (given.statement + given.interaction + given.reply / samples) / asked - shared
    looks = max(_LOOKS, _WORDINGS // wordings)
    rng = np.random.default_rng(1)
    normal = rng.standard_normal
    studies = given.centre + shared**0.5 * normal((looks, 1, 1))
    studies = studies + (given.wording + own) ** 0.5 * normal((looks, 1, wordings))
    several = _DRAWS if shared + own > 0 else 1
    drawn = shared**0.5 * normal((several, 1)) + own**0.5 * normal((several, wordings))
    weights = rng.standard_exponential((_DRAWS, wordings))
    above, below = rng.standard_gamma(0.5, (2, _DRAWS))
    total = weights.sum(1) + above + below
    means = ((weights * expit(studies + drawn)).sum(2) + above) / total  # (studies, draws)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return float((high - low).mean())


def cheapest(
    given: Parts,
    points: float,
    wordings: int,
    samples: Sequence[int] = (1, 3),
    most: int = MOST_STATEMENTS,
) -> list[Plan]:
    """List the studies whose interval is at most `points` (a share) to either side, cheapest first.

    wordings: number in the panel. most: number of available statements. Returns the smallest study
    for each number of wordings per statement and of samples; empty if no number of statements
    suffices, because there are too few wordings (see `wordings_for`).
    """
    plans = []
    each = sorted({1, 2, max(1, wordings // 2), wordings})
    for k, r in itertools.product(each, samples if given.told else (1,)):
        if forecast(given, most, wordings, k, r) > 2 * points:
            continue
        low, high = 1, most  # too few, enough
        while high - low > max(1, high // 50):
            middle = max(low + 1, min(high - 1, round((low * high) ** 0.5)))
            if forecast(given, middle, wordings, k, r) > 2 * points:
                low = middle
            else:
                high = middle
        plans.append(Plan(high, wordings, k, r, forecast(given, high, wordings, k, r)))
    return sorted(plans, key=lambda p: (p.requests, p.each, p.samples))


def wordings_for(given: Parts, points: float, most: int = 200) -> int | None:
    """Find the smallest number of wordings that can give an interval of `points` to either side.

    points: a share. With that many wordings, some number of statements suffices. Returns None if it
    would be more than `most`.
    """
    known = dataclasses.replace(given, statement=0.0, interaction=0.0, reply=0.0)

    def enough(count: int) -> bool:
        return forecast(known, MOST_STATEMENTS, count, count, 1) <= 2 * points

    if not enough(most):
        return None
    return COLUMNS + bisect.bisect_left(range(COLUMNS, most), True, key=enough)


def wordings_between(given: Parts, points: float) -> tuple[int | None, int | None]:
    """Compute the 95 % interval of `wordings_for`: how little so few wordings say of their spread.

    Of w wordings, (w - 1) times the variance between their logits over the true one follows
    chi-squared with w - 1 degrees of freedom, if they vary normally. None: more than can be sought.
    """
    from scipy.special import gammaincinv

    seen, freedom = given.wording + given.noise, given.wordings - 1
    ends = [seen * freedom / (2 * gammaincinv(freedom / 2, (1 + e * LEVEL) / 2)) for e in (1, -1)]
    low, high = (
        wordings_for(dataclasses.replace(given, wording=max(0.0, end - given.noise)), points)
        for end in ends
    )
    return low, high


def told(given: Parts, points: float, wordings: int, tokens: float | None = None) -> list[str]:
    """Describe the wordings needed for an interval of ± `points`, and the cheapest plans.

    points: a share. tokens: of a request and its reply, on average; None if unknown. Returns one
    line each.
    """
    need, ends = wordings_for(given, points), wordings_between(given, points)
    low, high = (str(end) if end else "more than 200" for end in ends)
    lines = [
        f"±{100 * points:g} points over wordings like these take {need or 'more than 200'} "
        f"wordings (95 % interval: {low} to {high}), if their logits vary normally; no number of "
        "statements makes up for fewer"
    ]
    for plan in cheapest(given, points, wordings):
        cost = f", about {plan.requests * tokens:,.0f} tokens" if tokens else ""
        each = "all" if plan.each == wordings else str(plan.each)
        lines.append(
            f"±{100 * plan.width / 2:.1f} points over wordings: "
            f"{many(plan.statements, 'statement')} × {each} of {wordings} wordings × "
            f"{many(plan.samples, 'sample')} = {many(plan.requests, 'request')} a question{cost}"
        )
    return lines


def of_plan(requests: Iterable[Request]) -> list[str]:
    """Describe the expected width of a plan's intervals over wordings, in lines.

    requests: chat requests of the plan. Without an earlier study the variances are `USUAL`.
    """
    requests = list(requests)
    lines = []
    questions = dict.fromkeys((r.lang, r.probe, r.decode) for r in requests)
    for lang in dict.fromkeys(lang for lang, _, _ in questions):
        lang_, probe, decode = next(key for key in questions if key[0] == lang)
        mine = [r for r in requests if (r.lang, r.probe, r.decode) == (lang_, probe, decode)]
        statements = len({r.statement for r in mine})
        wordings = len({r.facets.get("wording", "") for r in mine})
        samples = len({r.sample for r in mine})
        each = max(1, round(len(mine) / statements / samples))
        about = f"{lang}: {many(statements, 'statement')} × {each} × {many(samples, 'sample')}"
        if wordings < COLUMNS or statements < 2:
            lines.append(
                f"{about} a question; fewer than {COLUMNS} wordings show nothing about others, see "
                "--wordings"
            )
            continue
        half = forecast(USUAL, statements, wordings, min(each, wordings), samples) / 2
        lines.append(
            f"{about} a question, {wordings} wordings: an interval over wordings of "
            f"±{100 * half:.0f} points at a share of one half, if wordings differ by 1 in logits"
        )
        # At most the statements of the plan, because there may be no others.
        best = cheapest(USUAL, half, wordings, (1, samples), most=statements)
        if best and best[0].requests < 0.9 * len(mine):
            plan = best[0]
            lines.append(
                f"{lang}: as much for {many(plan.requests, 'request')} a question: "
                f"{many(plan.statements, 'statement')}, --wordings {plan.each}, "
                f"--samples {plan.samples}"
            )
    return lines
