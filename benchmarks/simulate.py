"""Simulate how often each kind of interval holds what it is about, and what breaks it.

    python benchmarks/simulate.py [REPS] [--all] [--only WORDS] [--at WORDS]
    make simulate REPS=300

A row of the table is a kind of interval and a model of the data. Each row has several settings
(statements, replies, shares, …), which are simulated REPS times (default 20); it has the mean over
settings and the lowest of the 95 % intervals that hold the truth, in %, with its setting, and the
mean width in points. `--all` prints each setting; `--only` and `--at` choose rows and settings. Two
standard errors of one setting are 10 points at 20 simulations near 95 %, and 1.4 at 1,000: the
lowest of many lies lower by chance.

Statements are a sample in all rows, wordings where it says so. Wordings have effects on the logit
with standard deviation 1 from six distributions: normal; t with three degrees of freedom; skewed
(exponential, lognormal); two points; and an outlier, one wording in ten that is three standard
deviations higher. Rows marked * are outside of what the interval is for; they show what breaks it.

The last rows are tests where nothing differs, in % of the studies that call something different;
the last of all compares two unlike models by every measure of the registry, after their names were
shuffled statement by statement, and is printed measure by measure below the table.

Grids as in the finer benchmarks: `intervals.py` (shares), `gate.py` (verdicts), `corrected.py`
(reviews), `negrate.py`, `inference.py` (analysis of variance, distributions, power).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom, t

from genprobe import metrics
from genprobe.analysis import league, paired
from genprobe.analysis.distributions import pairwise_ks
from genprobe.analysis.gaps import OfPanel, OfStatements
from genprobe.analysis.paired import swapped_rates
from genprobe.analysis.ranking import ranking
from genprobe.analysis.significance import values
from genprobe.metrics import judged, wordings
from genprobe.metrics.wordings import FEWEST, spread
from genprobe.review.correction import Read, correct, p_value
from genprobe.review.correction import interval as review_interval
from genprobe.statistics import ALPHA, Array, Interval, share_interval, two_way_interval

sys.path.append(str(Path(__file__).parents[1]))
from tests import random_tables

Rng = np.random.Generator
Found = tuple[bool, float]  # whether the truth is held, and the width
Setting = tuple[str, Callable[[Rng], Found | None]]
LARGE = 400_000  # statements (or wordings) of the population whose mean is the truth

WORDINGS: dict[str, Callable[[Rng, int], Array]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t, 3 df": lambda rng, n: rng.standard_t(3, n) / 3**0.5,
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: (rng.lognormal(size=n) - np.exp(0.5)) / (np.e**2 - np.e) ** 0.5,
    "two points": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "outlier": lambda rng, n: ((rng.random(n) < 0.1) - 0.1) / 0.3,
}


def held(interval: Interval | None, truth: float) -> Found | None:
    """Tell whether an interval holds the truth; None if there is no interval."""
    if interval is None:
        return None
    return interval[0] <= truth <= interval[1], interval[1] - interval[0]


# --- shares of replies in clusters


def chances(rng: Rng, alike: float, share: float, n: int) -> Array:
    """Draw the statements' chances of a hit. alike: correlation of their replies; 2: two kinds."""
    if alike == 2:  # three statements in five get the same reply each time
        return np.where(rng.random(n) < 0.6, (rng.random(n) < share).astype(float), share)
    k = 1 / alike - 1
    return rng.beta(share * k, (1 - share) * k, n)


def shares() -> Iterator[Setting]:
    """A share; replies to a statement are alike."""
    sizes = ((5, 10, 10), (20, 30, 30), (24, 16, 16), (100, 1, 9))
    for (n, low, high), alike, share in itertools.product(sizes, (0.3, 0.9, 2), (0.01, 0.05, 0.3)):

        def one(rng, n=n, low=low, high=high, alike=alike, share=share):
            size = rng.integers(low, high + 1, n)
            hits = rng.binomial(size, chances(rng, alike, share, n))
            return held(share_interval(hits, size), share)

        kind = "two kinds" if alike == 2 else f"alike {alike}"
        yield f"{n} × {low}–{high}, {kind}, share {share}", one


# --- wordings


@functools.cache
def centre(kind: str, share: float) -> float:
    """Find the mean logit with which the mean share over wordings and statements is `share`."""
    rng = np.random.default_rng(1)
    noise = WORDINGS[kind](rng, LARGE) + 1.25**0.5 * rng.standard_normal(LARGE)
    low, high = -20.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(middle + noise).mean() < share else (low, middle)
    return (low + high) / 2


def panel(rng: Rng, kind: str, share: float, n: int, w: int) -> tuple[Array, Array]:
    """Draw one reply to each statement in each wording: hits and sizes, (statements, wordings)."""
    effects = centre(kind, share) + WORDINGS[kind](rng, w)
    logits = effects + rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, w))
    return rng.binomial(1, expit(logits)).astype(float), np.ones((n, w))


def over_wordings(kinds: tuple[str, ...]) -> Iterator[Setting]:
    """The mean over wordings like these."""
    for kind, w, share in itertools.product(kinds, (3, 8), (0.1, 0.35)):

        def one(rng, kind=kind, w=w, share=share):
            return held(two_way_interval(panel(rng, kind, share, 100, w)), share)

        yield f"{kind}, {w} wordings, share {share}", one


def these_only(kinds: tuple[str, ...]) -> Iterator[Setting]:
    """The interval for these wordings, taken for one of wordings like these."""
    for kind, w in itertools.product(kinds, (3, 8, 15)):

        def one(rng, kind=kind, w=w):
            hits, sizes = panel(rng, kind, 0.35, 100, w)
            return held(share_interval(hits.sum(1), sizes.sum(1)), 0.35)

        yield f"{kind}, {w} wordings", one


def next_wording(kinds: tuple[str, ...], several: tuple[int, ...]) -> Iterator[Setting]:
    """The share in one further wording."""
    for kind, w, share in itertools.product(kinds, several, (0.1, 0.35)):

        def one(rng, kind=kind, w=w, share=share):
            hits, sizes = panel(rng, kind, share, 100, w)
            found, mean = spread(hits, sizes), two_way_interval((hits, sizes))
            effect = centre(kind, share) + WORDINGS[kind](rng, 1)
            others = np.random.default_rng(2).standard_normal(20_000) * 1.25**0.5
            low, high = found.next()
            low, high = min(low, mean[0]), max(high, mean[1])
            return held((low, high), float(expit(effect + others).mean()))

        yield f"{kind}, {w} wordings, share {share}", one


# --- differences of two models


def pair(rng: Rng, n: int, share: float, gap: float) -> tuple[Array, Array]:
    """Draw the statements' chances for two models that agree on much; gap: of the logits."""
    common, a, b = rng.standard_normal((3, n)) * np.array([[1.5], [0.5], [0.5]])
    return expit(1.4 * logit(share) + common + a), expit(1.4 * logit(share) + gap + common + b)


@functools.cache
def gap_of(share: float, gap: float, lost: float) -> float:
    """Compute the true difference; lost: the part of b's noes that are unclear."""
    a, b = pair(np.random.default_rng(0), LARGE, share, gap)
    return float(b.sum() / (b + (1 - b) * (1 - lost)).sum() - a.mean())


def differences(lost: tuple[float, ...], sided: bool = False) -> Iterator[Setting]:
    """The difference of two models. sided: its upper limit, for two sizes of the same units."""
    grid = ((24, 1), (24, 8), (100, 1), (100, 8), (300, 1))
    for (n, size), share, gap, part in itertools.product(grid, (0.03, 0.3), (0.0, 1.0), lost):

        def one(rng, n=n, size=size, share=share, gap=gap, part=part):
            a, b = (rng.binomial(size, chance) for chance in pair(rng, n, share, gap))
            clear = size - rng.binomial(size - b, part)
            if not clear.any():
                return None
            own = np.column_stack([a, np.full(n, size), b, clear]).astype(float)
            found, truth = OfStatements(own, 1.0), gap_of(share, gap, part)
            return held((-1.0, found.upper()) if sided else found.interval(), truth)

        yield f"{n} × {size}, share {share}, gap {gap}, unclear noes {part}", one


def panels(kinds: tuple[str, ...]) -> Iterator[Setting]:
    """The difference of two models over wordings like these; equal, with their own reactions."""
    for kind, w, share in itertools.product(kinds, (3, 8), (0.1, 0.35)):

        def one(rng, kind=kind, w=w, share=share):
            (a, n), (b, m) = (panel(rng, kind, share, 60, w) for _ in range(2))
            return held(OfPanel(np.stack([a, n, b, m], -1)).interval(), 0.0)

        yield f"{kind}, {w} wordings, share {share}", one


# --- rates corrected by a review, or by errors on other texts


def reviewed(rng: Rng, truth: Array, right: float, false: float, of_panel: bool) -> Read:
    """Have a judge read replies, and people 100 of them, drawn as `review export` draws.

    truth: (statements, replies). right, false: how often the judge calls a positive reply, and
    another one, positive. of_panel: whether the replies are in so many wordings.
    """
    n, each = truth.shape
    label = (rng.random(truth.shape) < np.where(truth, right, false)).ravel()
    seen, weight = np.full(truth.size, np.nan), np.ones(truth.size)
    parts = [part for one in (True, False) if len(part := np.flatnonzero(label == one))]
    roots = np.sqrt([len(part) for part in parts])
    for part, root in zip(parts, roots, strict=True):
        take = min(len(part), max(1, round(100 * root / roots.sum())))
        chosen = rng.choice(part, take, replace=False)
        seen[chosen], weight[chosen] = truth.ravel()[chosen], len(part) / take
    wordings = np.tile(np.arange(each), n) if of_panel else None
    return Read(label, seen, weight, np.repeat(np.arange(n), each), wordings)


def reviews(judges: tuple[tuple[float, float], ...], w: int = 1) -> Iterator[Setting]:
    """A rate corrected by a review of 100 replies; w: wordings, of which the mean is taken."""
    for (right, false), n, share in itertools.product(judges, (24, 100), (0.05, 0.3)):

        def one(rng, right=right, false=false, n=n, share=share):
            if w > 1:
                truth = panel(rng, "normal", share, n, w)[0] > 0
            else:
                truth = rng.random((n, 8)) < chances(rng, 0.5, share, n)[:, None]
            found = correct(reviewed(rng, truth, right, false, w > 1))
            ends = (found.over_low, found.over_high) if w > 1 else (found.ppi_low, found.ppi_high)
            return None if None in ends else held(ends, share)  # type: ignore[arg-type]

        yield f"judge {right} / {false}, {n} statements, share {share}", one


def corrected_gaps(judges: tuple[tuple[float, float], ...]) -> Iterator[Setting]:
    """The difference of two models; the judge reads the second as it reads, the first rightly."""
    for (right, false), n, share in itertools.product(judges, (24, 100), (0.05, 0.3)):

        def one(rng, right=right, false=false, n=n, share=share):
            a, b = (rng.random((n, 8)) < p[:, None] for p in pair(rng, n, share, 0.5))
            reads = [reviewed(rng, b, right, false, False), reviewed(rng, a, 0.99, 0.01, False)]
            return held(review_interval(reads), gap_of(share, 0.5, 0.0))

        yield f"judge {right} / {false}, {n} statements, share {share}", one


def refusals(errors: tuple[tuple[float, float], ...]) -> Iterator[Setting]:
    """A share of refusals, its judge's errors known from other texts (86 of 108, 1 of 116)."""
    called = (86.0, 108.0), (1.0, 116.0)
    for (right, false), share in itertools.product(errors, (0.02, 0.1, 0.3)):

        def one(rng, right=right, false=false, share=share):
            truth = rng.random((100, 5)) < chances(rng, 0.4, share, 100)[:, None]
            label = rng.random(truth.shape) < np.where(truth, right, false)
            units = np.column_stack([label.sum(1), np.full(100, 5)]).astype(float)
            return held(judged.interval(units, called), share)

        yield f"finds {right} / false {false}, share {share}", one


# --- nothing differs: the first value is whether something is said to


def rankings() -> Iterator[Setting]:
    """Equal models; each reacts in its own way to statements and wordings."""
    for models, w in ((2, 1), (2, 3), (2, 8), (4, 3), (4, 8), (8, 3)):

        def one(rng, models=models, w=w):
            shape = (models, 60, w)
            logits = -0.8 + rng.standard_normal((1, 60, 1)) + rng.standard_normal((1, 1, w))
            logits = logits + 0.5 * rng.standard_normal((models, 60, 1))
            logits = logits + (0.5 * rng.standard_normal((models, 1, w)) if w > 1 else 0.0)
            hits = rng.binomial(1, expit(np.broadcast_to(logits, shape))).astype(float)
            found = ranking([str(at) for at in range(models)], hits, np.ones(shape))
            return any(one.differ for one in found.pairs), 0.0

        yield f"{models} models, {w} wordings", one


def swaps() -> Iterator[Setting]:
    """Two equal models, in the wordings asked: `swap-p` below 5 %."""
    for n, size, share in itertools.product((10, 30, 100), (1, 9), (0.05, 0.3)):

        def one(rng, n=n, size=size, share=share):
            a, b = (rng.binomial(size, chance) for chance in pair(rng, n, share, 0.0))
            sizes = np.full(n, size)
            return swapped_rates(np.column_stack([a, sizes, b, sizes]), 499) < 0.05, 0.0

        yield f"{n} × {size}, share {share}", one


def over_p() -> Iterator[Setting]:
    """Two equal models over wordings: `wordings-p` below 5 %."""
    for kind, w in itertools.product(("normal", "outlier"), (3, 8)):

        def one(rng, kind=kind, w=w):
            (a, n), (b, m) = (panel(rng, kind, 0.35, 60, w) for _ in range(2))
            return OfPanel(np.stack([a, n, b, m], -1)).two_sided() < 0.05, 0.0

        yield f"{kind}, {w} wordings", one


def t_over(alike: bool) -> Iterator[Setting]:
    """Two models, equal over wordings: Student's t of the wordings' differences is below 5 %.

    alike: whether both react to wordings, or only the second.
    """
    for kind, w, share in itertools.product(WORDINGS, (5, 8, 15), (0.1, 0.35)):

        def one(rng, kind=kind, w=w, share=share):
            b = panel(rng, kind, share, 100, w)[0]
            if alike:
                a = panel(rng, kind, share, 100, w)[0]
            else:
                noise = rng.standard_normal((100, 1)) + 0.5 * rng.standard_normal((100, w))
                a = rng.binomial(1, expit(centre_alone(share) + noise))
            gaps = b - a
            over, of = gaps.var(0, ddof=1), (gaps.mean(0), gaps.mean(1))
            error = max(np.var(of[0], ddof=1) / w, np.var(of[1], ddof=1) / 100, 1e-9)
            error = max(
                error,
                np.var(of[0], ddof=1) / w + np.var(of[1], ddof=1) / 100 - (over.mean() / 100 / w),
            )
            return abs(gaps.mean()) > t.ppf(0.975, w - 1) * error**0.5, 0.0

        yield f"{kind}, {w} wordings, share {share}", one


@functools.cache
def centre_alone(share: float) -> float:
    """Find the mean logit with which the mean share over statements is `share`."""
    noise = 1.25**0.5 * np.random.default_rng(1).standard_normal(LARGE)
    return float(brentq(lambda at: expit(at + noise).mean() - share, -20, 20))


def reviewed_p(judges: tuple[tuple[float, float], ...], w: int = 1) -> Iterator[Setting]:
    """Two equal models, one of them read worse: `ppi-p` below 5 %. w: wordings, as in `reviews`."""
    for (right, false), n, share in itertools.product(judges, (24, 100), (0.05, 0.3)):

        def one(rng, right=right, false=false, n=n, share=share):
            if w > 1:
                sides = [panel(rng, "normal", share, n, w)[0] > 0 for _ in range(2)]
            else:
                sides = [rng.random((n, 8)) < p[:, None] for p in pair(rng, n, share, 0.0)]
            errs = (right, false), (0.99, 0.01)
            reads = [reviewed(rng, t, *e, w > 1) for t, e in zip(sides, errs, strict=True)]
            return p_value(reads, w > 1) < 0.05, 0.0

        yield f"judge {right} / {false}, {n} statements, share {share}", one


def languages(rng: Rng, sd: float, share: float, apart: float = 0.0) -> tuple[Array, Array]:
    """Draw 18 languages' true shares, and 60 statements × 2 replies to each (correlation 0.5).

    sd: of the languages' logits. apart: logits by which one of them is higher. Returns the true
    shares, and draws of the pooled ones.
    """
    logits = logit(share) + sd * rng.standard_normal(18)
    logits[0] += apart
    truth = expit(logits)
    hits = rng.binomial(2, [chances(rng, 0.5, one, 60) for one in truth]).astype(float)
    sizes = np.full(hits.shape, 2.0)
    effect = league.design_effect(list(hits), list(sizes))
    return truth, league.draw(hits.sum(1) / effect, sizes.sum(1) / effect, 4_000)


def pooled(apart: float, top: bool = False) -> Iterator[Setting]:
    """The partly pooled share of the first language, or of the one on top of the table."""
    for sd, share in itertools.product((0.1,) if apart else (0.0, 0.3, 0.7), (0.05, 0.2, 0.4)):

        def one(rng, sd=sd, share=share):
            truth, drawn = languages(rng, sd, share, apart)
            at = int(drawn.mean(0).argmax()) if top else 0
            low, high = np.quantile(drawn[:, at], [0.025, 0.975])
            return held((float(low), float(high)), truth[at])

        yield f"sd {sd}, share {share}", one


def named() -> Iterator[Setting]:
    """Languages of which the one that is named is not the highest, or all are equal."""
    for sd, share in itertools.product((0.0, 0.3, 0.7), (0.05, 0.2, 0.4)):

        def one(rng, sd=sd, share=share):
            truth, drawn = languages(rng, sd, share)
            times = np.bincount(drawn.argmax(1), minlength=18) / len(drawn)
            best = int(times.argmax())
            wrong = sd == 0 or best != int(truth.argmax())
            return bool(times[best] > league.NAMED and wrong), 0.0

        yield f"sd {sd}, share {share}", one


# Measures of which nothing can be said to differ.
NO_TEST = ("kl-people", "seeds")  # a distance, which is never 0, and a number of samples
# Columns that say what was asked; all others are what a model did.
ASKED = (
    *("statement", "pair", "role", "probe", "measures", "when", "sample", "wording", "decode"),
    *("lang", "classifier", "item", "condition", "label", "order", "target", "counter", "unknown"),
    *("options_listed", "people", "people_of", "domain", "subdomain", "task_type", "scorer"),
    *("stereo_antistereo", "russian", "model"),
)


def shuffled(rng: Rng, kind: str, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two unlike models of 24 statements, and shuffle their names, statement by statement.

    The second has a favourite reply in two of five cases. The replies to half of the statements are
    all the same.
    """
    make = random_tables.KINDS[kind]
    more = {"samples": 4} if kind == "replies" else {}
    a, b = (make(rng, 24, **more) for _ in range(2))
    did = [column for column in a if column not in ASKED]
    b[[column for column in a if column in ASKED]] = a[[c for c in a if c in ASKED]]
    strata = a["probe"] if "probe" in a else a["condition"] if "condition" in a else a["model"]
    for rows in a.groupby(strata).groups.values():
        liked = rng.choice(rows, int(0.4 * len(rows)), replace=False)
        b.loc[liked, did] = b.loc[[rng.choice(rows)] * len(liked), did].to_numpy(object)
    at = a["pair" if "pair" in a else "item"]
    if kind in ("replies", "stories"):
        same = at.isin(rng.choice(at.unique(), at.nunique() // 2, replace=False))
        for table in (a, b):
            first = table.groupby([at, strata, *(["role"] if "role" in table else [])])["model"]
            where = first.transform(lambda group: group.index[0])
            table.loc[same, did] = table.loc[where[same], did].to_numpy(object)
    if wordings.base(name):
        a["wording"] = b["wording"] = "w" + a["sample" if "sample" in a else "order"].astype(str)
    if "scorer" in a and kind == "pairs":
        masked = name == "rubia" or name.startswith("crows-pairs")
        a["scorer"] = b["scorer"] = (
            "bias" if name == "bias-score" else "mpll" if masked else "loglik"
        )
    if name == "affirmed":
        a["measures"] = b["measures"] = name
    turn = at.isin([one for one in at.unique() if rng.random() < 0.5])
    one, other = a.copy(), b.copy()
    one.loc[turn, did], other.loc[turn, did] = b.loc[turn, did], a.loc[turn, did]
    types = a.dtypes.to_dict()
    return one.astype(types), other.astype(types)


def is_shown(name: str, a: pd.DataFrame, b: pd.DataFrame) -> bool | None:
    """Tell whether a measure is said to differ; None where nothing is said."""
    metric = metrics.find(name)
    if metric.scale in ("share", "points"):
        found = [paired.tested(name, cell, 499) for cell in paired.cells_of(a, b, name)]
        p = next((one.test[1] for one in found if one.difference is not None), None)
    elif metric.pairable:
        both = pd.concat([a.assign(model="a"), b.assign(model="b")], ignore_index=True)
        p = pairwise_ks(values(both, name, (), ["model"])[0], "model", resamples=499)["p"][0]
    else:  # a test, or an association, within one model
        [one] = metrics.score(a, [name], [], str)
        if name.startswith("bpr-"):
            p = one.value
        else:
            return None if one.low is None else one.low > 0 or one.high < 0
    return None if p is None else bool(p < ALPHA)


def controls() -> Iterator[Setting]:
    """Every measure of the registry between two models whose names are shuffled."""
    for name, kind in random_tables.fitting():
        needs = "decode" in metrics.find(name).needs
        if name in NO_TEST or (kind in ("replies", "decoded") and needs != (kind == "decoded")):
            continue

        def one(rng, name=name, kind=kind):
            if kind == "pairs" and name.startswith("bpr-"):
                table = shuffled(rng, kind, name)[0]
                turn = rng.random(len(table)) < 0.5
                table.loc[turn, ["pro", "anti"]] = table.loc[turn, ["anti", "pro"]].to_numpy()
                found = is_shown(name, table, table)
            else:
                found = is_shown(name, *shuffled(rng, kind, name))
            return None if found is None else (found, 0.0)

        yield name, one


CONTROLS = "every measure, names of the models shuffled: it is said to differ"
EVERY = tuple(WORDINGS)
JUDGES = ((0.99, 0.01), (0.95, 0.05), (0.85, 0.05))
# What is simulated -> its settings, and whether something should be held (else: said to differ).
ROWS: dict[str, tuple[Callable[[], Iterator[Setting]], bool]] = {
    "share, replies in clusters": (shares, True),
    "mean over wordings like these": (lambda: over_wordings(EVERY), True),
    "one further wording, 5 or more": (lambda: next_wording(EVERY, (FEWEST, 8)), True),
    "one further wording, 3 (not printed)": (lambda: next_wording(EVERY, (3,)), True),
    "* these wordings, taken for others": (lambda: these_only(EVERY), True),
    "difference, all clear": (lambda: differences((0.0,)), True),
    "difference, half or more of the noes unclear": (lambda: differences((0.5, 0.8)), True),
    "upper limit of a rise (gate)": (lambda: differences((0.0,), sided=True), True),
    "difference over wordings like these": (lambda: panels(EVERY), True),
    "corrected by a review (ppi)": (lambda: reviews(JUDGES), True),
    "the same over 8 wordings": (lambda: reviews(JUDGES[1:], 8), True),
    "difference of two, each corrected by a review": (lambda: corrected_gaps(JUDGES), True),
    "refusals, odds of errors to twice as far": (
        lambda: refusals(((0.8, 0.009), (0.88, 0.005), (0.67, 0.017))),
        True,
    ),
    "* refusals, errors farther off": (lambda: refusals(((0.97, 0.03), (0.5, 0.05))), True),
    "one of 18 languages, partly pooled": (lambda: pooled(0.0), True),
    "the highest of them, partly pooled": (lambda: pooled(0.0, top=True), True),
    "* a lone outlier among 18 languages, partly pooled": (lambda: pooled(1.5), True),
    "18 languages: the wrong one is named highest": (named, False),
    "equal models: a pair differs": (rankings, False),
    "equal models: swap-p below 5 %": (swaps, False),
    "equal models over wordings: wordings-p below 5 %": (over_p, False),
    "* Student's t over wordings, both models react alike": (lambda: t_over(True), False),
    "* Student's t over wordings, only one model reacts": (lambda: t_over(False), False),
    "equal models, reviewed: ppi-p below 5 %": (lambda: reviewed_p(JUDGES), False),
    "the same over 8 wordings: ppi-over-wordings-p": (lambda: reviewed_p(JUDGES[1:], 8), False),
    CONTROLS: (controls, False),
}


def simulated(
    settings: Iterator[Setting], reps: int, every: bool, where: str
) -> list[tuple[str, float, float]]:
    """Simulate each setting whose name has `where`.

    Returns its name, in how many % the first value is true, the mean width.
    """
    found = []
    for at, (name, one) in enumerate(settings):
        rng = np.random.default_rng(at)
        if where not in name:
            continue
        if (first := one(rng)) is None:
            continue  # it says nothing here
        runs = [first, *(run for _ in range(1, reps) if (run := one(rng)) is not None)]
        share, width = (100 * float(np.mean([run[i] for run in runs])) for i in (0, 1))
        found.append((name, share, width))
        if every:
            print(f"    {name}: {share:.1f}, {width:.0f} points", flush=True)
    return found


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("reps", nargs="?", type=int, default=20)
    parser.add_argument("--all", action="store_true", help="print each setting")
    parser.add_argument("--only", default="", help="only rows whose name has these words")
    parser.add_argument("--at", default="", help="only settings whose name has these words")
    given = parser.parse_args()
    start, listed = time.monotonic(), []
    print("| interval | settings | mean | lowest (of tests: highest) | width | at |")
    print("|---|---|---|---|---|---|")
    for name, (settings, holds) in ROWS.items():
        if given.only not in name:
            continue
        found = simulated(settings(), given.reps, given.all, given.at)
        if not found:
            continue
        worst = (min if holds else max)(found, key=lambda one: one[1])
        mean, width = (np.mean([one[at] for one in found]) for at in (1, 2))
        told = f"{width:.0f}" if holds and "limit" not in name else "–"
        row = (name, len(found), f"{mean:.1f}", f"{worst[1]:.1f}", told, worst[0])
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        if name == CONTROLS:
            listed = found
    if listed:
        print("\n| measure, shuffled | said to differ |\n|---|---|")
        print("\n".join(f"| {name} | {share:.1f} |" for name, share, _ in listed))
        # How many of so many studies would be beyond chance, in any of the measures.
        most = 100 * binom.isf(ALPHA / len(listed), given.reps, ALPHA) / given.reps
        beyond = [name for name, share, _ in listed if share > most]
        print(f"\nbeyond the level of 5 % (more than {most:.1f}): {', '.join(beyond) or 'none'}")
    print(f"\n{given.reps} simulations of each setting, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
