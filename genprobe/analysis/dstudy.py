"""Plan the size of a study: the interval that numbers of wordings, statements and samples give.

A decision study (Brennan 2001, *Generalizability Theory*, ch. 4): the variances of wordings,
statements and replies in one study predict the width of the interval of another. It is the interval
of `metrics.wordings`, so everything here is in logits.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from genprobe.metrics.wordings import Spread, spread
from genprobe.records import Request
from genprobe.statistics import LEVEL, Array
from genprobe.text import many

_LOOKS = 48  # simulated studies of each size in a forecast
MOST_STATEMENTS = 100_000


@dataclass(frozen=True)
class Parts:
    """Variances of the parts of a reply's logit, in squared logits.

    centre: the mean logit of wordings (not a variance). wording: between wordings. statement:
    between statements, the same in all wordings. interaction: of statement and wording. reply: of
    one sampled reply. told: whether the last two could be separated; else both are in the
    interaction, and more samples do not help.
    """

    centre: float
    wording: float
    statement: float
    interaction: float
    reply: float
    told: bool


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
    )


@functools.lru_cache(maxsize=4096)
def forecast(
    given: Parts, statements: int, wordings: int, each: int, samples: int, level: float = LEVEL
) -> float:
    """Forecast the mean width, in shares, of the interval of a study of this size.

    statements, wordings: at least 2. each: wordings in which a statement is asked. The mean is over
    studies of this size, whose variance estimates follow chi-squared distributions.
    """
    from scipy import special

    noise = (given.interaction + given.reply / samples) / (statements * each)
    between = given.wording / wordings + noise
    drawn = given.statement / statements + noise
    alone = given.statement + given.interaction + given.reply
    rng = np.random.default_rng(1)
    even = (np.arange(_LOOKS) + 0.5) / _LOOKS
    looks = [
        2 * special.gammaincinv(freedom / 2, rng.permutation(even)) / freedom
        for freedom in (wordings - 1, statements - 1)
    ]
    off = special.ndtri(rng.permutation(even)) * max(between + drawn - noise, 0.0) ** 0.5
    widths = []
    for more, less, away in zip(*looks, off, strict=True):
        one = Spread(
            centre=given.centre + float(away),
            between=between * float(more),
            statements=drawn * float(less),
            least=alone / (statements * each * samples),
            noise=noise,
            wordings=wordings,
            statements_n=statements,
        )
        low, high = one.interval(level)
        widths.append(high - low)
    return float(np.mean(widths))


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
    plans = list(_smallest(given, points, wordings, samples, most))
    return sorted(plans, key=lambda p: (p.requests, p.each, p.samples))


def _smallest(
    given: Parts, points: float, wordings: int, samples: Sequence[int], most: int
) -> Iterator[Plan]:
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
        yield Plan(high, wordings, k, r, forecast(given, high, wordings, k, r))


def wordings_for(given: Parts, points: float, most: int = 200) -> int | None:
    """Find the smallest number of wordings that can give an interval of `points` to either side.

    points: a share. With that many wordings, some number of statements suffices. Returns None if it
    would be more than `most`.
    """
    known = dataclasses.replace(given, statement=0.0, interaction=0.0, reply=0.0)
    for count in range(2, most + 1):
        if forecast(known, MOST_STATEMENTS, count, count, 1) <= 2 * points:
            return count
    return None


def told(given: Parts, points: float, wordings: int, tokens: float | None = None) -> list[str]:
    """Describe the cheapest plans for an interval of ± `points` (a share), one per line.

    tokens: of a request and its reply, on average; None if unknown.
    """
    plans = cheapest(given, points, wordings)
    if not plans:
        need = wordings_for(given, points)
        more = f"{need} wordings like these" if need else "more wordings than anyone can write"
        return [
            f"no number of statements gives ±{100 * points:g} points over {wordings} wordings; "
            f"this needs {more}"
        ]
    lines = []
    for plan in plans:
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
        if wordings < 2 or statements < 2:
            lines.append(
                f"{about} a question; one wording shows nothing about others, see --wordings"
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
