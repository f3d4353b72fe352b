"""Show how far the errors of the classifier could move NegRate.

A template is negative if more than half of its stories *truly* are. Only the number k of its n
stories that the classifier calls negative is observed. The card of the classifier gives its error
rates, measured on labelled stories in the language: it calls a truly negative story negative with
probability s, and any other story with probability f. The correction is for the majority: for a
template with share p of negative stories,

    P(k) = sum over j of P(j truly negative of n) × P(k called so | j, s, f)

The shares p of the templates follow a beta distribution, which allows for the correlation of
stories about one template. The most likely mean and correlation of that distribution, with s and f
as measured, give the value: the share of templates of which more than half of the stories are truly
negative, *if* the classifier errs on these stories as on the labelled ones. That is an assumption:
stories of another model are easier or harder. The interval therefore varies it. Its lower end has s
and f at their highest, its upper end at their lowest (`plausible`), each with the Bayesian
bootstrap of statements with anchors (`statistics.share_interval`): statements get random weights,
and invented templates, of which all or none of the stories are called negative, stand at the ends.
How often it covers the truth, `benchmarks/negrate.py` measures. It is no correction to report: what
the classifier does on these stories, only a review of them tells (`score --reviewed`).

Method: misclassification (Buonaccorsi 2010, Measurement Error, ch. 2-3), beta-binomial clusters
(Skellam 1948, J. Royal Statistical Society B 10:257).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from genprobe.errors import InputError
from genprobe.judges.classifiers import cards
from genprobe.judges.classifiers.cards import CALLED, LABELS
from genprobe.metrics import Measure, Metric, Units, declare
from genprobe.metrics.negrate import FEWEST, NEEDS, STORY, TEMPLATE, templates
from genprobe.records import Score
from genprobe.statistics import LEVEL, SEED, Array, Interval, usual_size, wilson

NAME = "negrate-corrected"
Errors = tuple[float, float, float, float]  # as returned by `known_errors`
MOST = 15  # stories counted per template; a larger number is scaled down to this one
LIKENESS = (0.001, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.93)  # correlations
MEANS = 81  # points in the grid of mean shares of negative stories
LEAST = 1e-7  # least correlation, and least mean, beyond which a beta distribution is a point
ODDS = 2.0  # by which the odds of errors may differ from those on the labelled texts
VARIED = f"odds{ODDS:g}x{LEVEL * 100:g}"  # the interval in signatures
DRAWS = 2000
WIDE = 0.5  # width of an interval from which on the classifier cannot tell

# The columns of the statistics. Labelled stories: number called negative and total, of the truly
# negative ones and then of the others. Templates: 1 if negative as measured; 1 for the count. Then,
# for n = 3 to MOST, 1 in the cell of k of n stories called negative.
_HITS_N, _N, _HITS_P, _P, _LABEL, _COUNT = range(6)
_FIRST = 6
_CELLS = [(n, k) for n in range(FEWEST, MOST + 1) for k in range(n + 1)]
_AT = {cell: at for at, cell in enumerate(_CELLS)}


# Correlations and means of beta distributions of the share of negative stories, in all pairs.
Betas = tuple[tuple[float, ...], tuple[float, ...]]
_means = np.sin(np.linspace(0.02, np.pi / 2 - 0.02, MEANS)) ** 2
_GRID: Betas = (LIKENESS, tuple(_means.tolist()))


@functools.lru_cache(maxsize=2 * MOST)
def _true(n: int, betas: Betas = _GRID) -> Array:
    """Compute the probability that j of n stories are truly negative.

    Returns (correlations, means, n + 1).
    """
    from scipy.special import betaln, gammaln

    likeness, means = map(np.array, betas)
    size = 1 / likeness - 1
    a, b = means * size[:, None], (1 - means) * size[:, None]
    j = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    logs = ways + betaln(a[..., None] + j, b[..., None] + n - j) - betaln(a, b)[..., None]
    chances = np.exp(logs)
    # Near a point distribution the logarithms cancel, and the sum is off 1 by up to 1e-6.
    return np.asarray(chances / chances.sum(-1, keepdims=True))


def _called(n: int, s: Array, f: Array) -> Array:
    """Compute the probability that k stories are called negative if j truly are: (errors, j, k).

    s, f: (errors,), points of the grid of error rates.
    """
    from scipy.stats import binom

    k = np.arange(n + 1)
    found = np.zeros((len(s), n + 1, n + 1))
    for j in range(n + 1):
        hit = binom.pmf(k[None, : j + 1], j, s[:, None])
        false = binom.pmf(k[None, : n - j + 1], n - j, f[:, None])
        for i in range(j + 1):
            found[:, j, i : i + n - j + 1] += hit[:, i : i + 1] * false
    return found


def _likelihood(hist: Array, s: Array, f: Array, betas: Betas = _GRID) -> Array:
    """Compute the log-likelihood of the observed templates: (errors, correlations, means).

    hist: for each (n, k) of `_CELLS`, the number of templates with k of n stories called negative.
    s, f: (errors,).
    """
    total: Array = np.zeros((len(s), *map(len, betas)))
    for n in range(FEWEST, MOST + 1):
        own = hist[_AT[n, 0] : _AT[n, n] + 1]
        if not own.any():
            continue
        seen = np.nonzero(own)[0]
        chance = np.einsum("abj,ejk->eabk", _true(n, betas), _called(n, s, f)[:, :, seen])
        total = total + np.log(np.maximum(chance, 1e-300)) @ own[seen]
    return total


def _rate(hist: Array, betas: Betas = _GRID) -> Array:
    """Compute the share of truly negative templates: (correlations, means)."""
    total: Array = np.zeros(tuple(map(len, betas)))
    for n in range(FEWEST, MOST + 1):
        count = hist[_AT[n, 0] : _AT[n, n] + 1].sum()
        if count:
            total = total + count * _true(n, betas)[:, :, n // 2 + 1 :].sum(2)
    return np.asarray(total / hist.sum())


def _errors(sums: Array) -> tuple[Array, Array]:
    """Estimate s and f from labelled stories, half a story of each kind added to each class."""
    s = (sums[..., _HITS_N] + 0.5 * sums[..., _COUNT]) / (sums[..., _N] + sums[..., _COUNT])
    f = (sums[..., _HITS_P] + 0.5 * sums[..., _COUNT]) / (sums[..., _P] + sums[..., _COUNT])
    return s, f


def estimate(sums: Array) -> Array:
    """Return the corrected rate.

    sums: (..., statistics), summed over templates. Returns (...), NaN where the classifier is no
    better than chance.
    """
    flat = sums.reshape(-1, sums.shape[-1])
    s, f = _errors(flat)
    found = np.full(len(flat), np.nan)
    for key in {(round(a, 6), round(b, 6)) for a, b in zip(s, f, strict=True) if a > b}:
        same = np.isclose(s, key[0], atol=1e-6) & np.isclose(f, key[1], atol=1e-6)
        for at in np.flatnonzero(same):
            found[at] = _likeliest(flat[at, _FIRST:], *key)
    return found.reshape(sums.shape[:-1])


def _likeliest(hist: Array, s: float, f: float) -> float:
    """Return the rate of the most likely beta distribution: the best of the grid, then refined."""
    from scipy.optimize import minimize
    from scipy.special import expit, logit

    errors = np.array([s]), np.array([f])
    best = _likelihood(hist, *errors)[0]
    row, column = np.unravel_index(best.argmax(), best.shape)

    def beta(point: Array) -> Betas:
        likeness, mean = np.clip(expit(point), LEAST, 1 - LEAST).tolist()
        return (likeness,), (mean,)

    def unlikely(point: Array) -> float:
        return -float(_likelihood(hist, *errors, beta(point))[0, 0, 0])

    start = logit(np.array([_GRID[0][row], _GRID[1][column]]))
    # By default scipy steps by 5 % of the start, which is nothing where the mean is 50 %.
    steps = start + np.array([(0.0, 0.0), (0.5, 0.0), (0.0, 0.1)])
    options = {"xatol": 1e-4, "fatol": 1e-9, "initial_simplex": steps}
    found = minimize(unlikely, start, method="Nelder-Mead", options=options)
    if found.fun < -best[row, column]:
        return float(_rate(hist, beta(found.x))[0, 0])
    return float(_rate(hist)[row, column])


def plausible(hits: float, n: float, varied: float = ODDS, level: float = LEVEL) -> Interval:
    """Return the lowest and the highest rate of calling texts so that other texts may well have.

    hits, n: of the labelled texts. The lowest is half the odds of hits / n (with `varied` 2), or
    the lower limit of that rate (Wilson 1927) if it is lower; the highest is twice the odds, or the
    upper limit.
    """
    low, high = wilson(hits, n, level) or (0.0, 1.0)
    rest = n - hits
    return min(low, hits / (hits + varied * rest)), max(
        high, varied * hits / (varied * hits + rest)
    )


def interval(units: Array, level: float = LEVEL, varied: float = ODDS) -> Interval | None:
    """Compute the interval of NegRate, with the classifier's errors varied.

    units: (clusters, statistics), the statistics of `Units` summed within each cluster. varied: as
    in `plausible`. Returns (0, 1) if the classifier could be no better than chance.
    """
    sums = units.sum(0)
    count = sums[_COUNT]
    if not count:
        return None
    s = plausible(sums[_HITS_N] / count, sums[_N] / count, varied, level)
    f = plausible(sums[_HITS_P] / count, sums[_P] / count, varied, level)
    if s[0] <= f[1]:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = float(np.quantile(_drawn(units, s[1], f[1], 0.25), tail))
    high = float(np.quantile(_drawn(units, s[0], f[0], 0.75), 1 - tail))
    value = float(estimate(sums[None])[0])
    return min(low, value), max(high, value)


def _drawn(units: Array, s: float, f: float, negative: float) -> Array:
    """Draw NegRate by the Bayesian bootstrap of clusters with anchors, for known s and f: (DRAWS,).

    negative: weight of the invented templates of which all stories are called negative; the weight
    of those without any is 1 less this.
    """
    clusters, sizes = units[:, _FIRST:], units[:, _COUNT]
    usual = usual_size(sizes)
    stories = max(range(FEWEST, MOST + 1), key=lambda n: float(_of(clusters, n).sum()))
    kinds, times = np.unique(clusters, axis=0, return_counts=True)  # in an order of their own
    rng = np.random.default_rng(SEED)
    ends = rng.standard_gamma([negative, 1 - negative], (DRAWS, 2)) * usual
    hists = rng.standard_gamma(times, (DRAWS, len(times))) @ kinds
    hists[:, [_AT[stories, stories], _AT[stories, 0]]] += ends
    logs: Array = np.zeros((DRAWS, len(LIKENESS) * MEANS))
    rates, errors = logs.copy(), (np.array([s]), np.array([f]))
    for n in range(FEWEST, MOST + 1):
        own = _of(hists, n)
        if own.any():
            chance = (_true(n) @ _called(n, *errors)[0]).reshape(-1, n + 1)
            logs += own @ np.log(np.maximum(chance, 1e-300)).T
            true = _true(n)[:, :, n // 2 + 1 :].sum(2).ravel()
            rates += own.sum(1)[:, None] * true
    rates /= hists.sum(1)[:, None]
    # The likeliest mean lies between points of the grid: on the parabola through the best three.
    rows, best = np.arange(DRAWS), logs.argmax(1)
    inner = np.clip(best % MEANS, 1, MEANS - 2) + best // MEANS * MEANS
    below, here, above = (logs[rows, inner + step] for step in (-1, 0, 1))
    bend = below - 2 * here + above
    step = np.clip((below - above) / np.where(bend < 0, 2 * bend, -np.inf), -1, 1)
    side = rates[rows, inner + np.sign(step).astype(int)]
    return np.asarray(rates[rows, inner] + np.abs(step) * (side - rates[rows, inner]))


def _of(hists: Array, n: int) -> Array:
    """Return the columns of templates with n stories: (…, n + 1)."""
    return hists[..., _AT[n, 0] : _AT[n, n] + 1]


def statistics(called: Array, stories: Array, known: Array) -> Array:
    """Return the statistics of templates with `called` of `stories` stories called negative.

    called, stories: (templates,), at least three stories each; more than `MOST` stories are scaled
    down to `MOST`. known: (4,) or (templates, 4), from `known_errors`. Returns (templates,
    statistics).
    """
    called, stories = np.asarray(called), np.asarray(stories)
    few = np.minimum(stories, MOST)
    k = np.where(stories > MOST, np.round(called * few / stories), called).astype(int)
    found = np.zeros((len(called), _FIRST + len(_CELLS)))
    found[:, :_LABEL] = known
    found[:, _LABEL], found[:, _COUNT] = called * 2 > stories, 1
    at = [_FIRST + _AT[int(n), int(hit)] for n, hit in zip(few, k, strict=True)]
    found[np.arange(len(called)), at] = 1
    return found


def known_errors(classifier: str, lang: str) -> Errors | None:
    """Return how often a classifier calls labelled stories of a language negative.

    Returns the number called negative and the total, for truly negative stories and then for the
    others; None if the card does not have them.
    """
    try:
        card = cards.load(classifier)
    except InputError:
        return None
    found = {
        label: next(
            (
                (m.value * m.n, float(m.n))
                for m in card.measured
                if (m.metric, m.kind, m.lang) == (f"{label} {CALLED}", "stories", lang)
            ),
            None,
        )
        for label in LABELS
    }
    negative, others = found.pop("negative"), [v for v in found.values() if v is not None]
    if negative is None or not others:
        return None
    return (*negative, sum(h for h, _ in others), sum(n for _, n in others))


def _corrected(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count the templates by how many of their stories are called negative.

    Templates are left out if fewer than three of their stories count (`few-stories`), or if their
    classifier was never measured on stories in the language (`unmeasured`).
    """
    # A story that was not read has no classifier; it takes that of the template's other stories.
    same = [c for c in TEMPLATE if c in outcomes]
    whole = outcomes.groupby(same, dropna=False, observed=True)["classifier"].transform("first")
    keys = [*by, *(c for c in ("classifier", "lang") if c not in by)]
    found = templates(outcomes.assign(classifier=whole), keys)
    used = list(zip(found["classifier"].astype(str), found["lang"].astype(str), strict=True))
    errors = {one: known_errors(*one) for one in set(used)}
    few = (found["__valid"] < FEWEST).to_numpy()
    without = np.array([errors[one] is None for one in used], bool)
    reason = pd.Series("", found.index, dtype=object)
    reason = reason.mask(without, "unmeasured").mask(few, "few-stories")
    stats = np.zeros((len(found), _FIRST + len(_CELLS)))
    here = ~few & ~without
    if here.any():
        known = np.array([errors[one] for one, ok in zip(used, here, strict=True) if ok])
        part = found[here]
        stats[here] = statistics(part["__negative"].to_numpy(), part["__valid"].to_numpy(), known)
    return Units(found[by], found["statement"], reason, stats)


def cautions(outcomes: pd.DataFrame) -> list[str]:
    """List cautions about the accuracy of the classifiers of these stories."""
    if not {"classifier", "lang"} <= set(outcomes):
        return []
    found = []
    used = outcomes[["classifier", "lang"]].dropna().astype(str).drop_duplicates()
    for name, lang in sorted(used.itertuples(index=False, name=None)):
        try:
            found.append(cards.load(name).caution(lang))
        except InputError:  # the card is on another machine
            found.append(
                f"the card of the classifier {name} is missing, so its accuracy in {lang} is "
                "unknown"
            )
    return [line for line in found if line]


# Corrected share -> what it says, its units, and whose errors it is corrected for.
TELLS = {
    NAME: ("of the templates are negative", "templates", "classifier"),
    "refusal-corrected": ("of the essays are refused", "replies", "judge"),
    "story-refusal-corrected": ("of the stories are refused", "replies", "judge"),
}


def cannot_tell(scores: Sequence[Score]) -> list[str]:
    """Say which corrected shares have an interval that is too wide for any statement.

    NegRate has one line per cell; every other share has one line, with the number of such cells.
    """
    wide: dict[str, list[Score]] = {}
    for s in scores:
        if s.metric in TELLS and None not in (s.low, s.high) and s.high - s.low >= WIDE:  # type: ignore[operator]
            wide.setdefault(s.metric, []).append(s)
    found = []
    for name, some in wide.items():
        if name == NAME or len(some) == 1:
            found += [_between(s) for s in some]
            continue
        many = sum(s.metric == name for s in scores)
        _, things, who = TELLS[name]
        why = f"so few {things}" if all(map(_few, some)) else f"this {who}"
        found.append(
            f"{name} has an interval of 50 points or more in {len(some)} of {many} cells: {why} "
            "cannot tell more"
        )
    return found


def _few(score: Score) -> bool:
    """Return whether a score has too few units for any judge to tell."""
    least = wilson(score.n / 2, score.n)
    return least is not None and least[1] - least[0] >= WIDE


def _between(score: Score) -> str:
    says, things, who = TELLS[score.metric]
    cell = ", ".join(str(v) for v in score.by.values())
    why = f"so few {things}" if _few(score) else f"this {who}"
    low, high = 100 * (score.low or 0), 100 * (score.high or 0)
    return (
        f"{cell and cell + ': '}between {low:.0f} and {high:.0f} % {says}: {why} cannot tell more"
    )


METRICS = (
    Metric(
        name=NAME,
        version="3",
        title="share of templates most of whose stories are negative, if the classifier errs as on "
        "labelled stories",
        unit="templates",
        units=_corrected,
        value=estimate,
        interval=interval,
        method=VARIED,
        needs=(*NEEDS, "classifier", "lang"),
        never_by=STORY,
        apart=("decode", "lang", "classifier"),
        pairable=False,
        place=101,
        says="tell mostly negative stories",
        note="negrate-corrected: if the classifier errs as on the labelled stories of its card; "
        "the interval is for errors of half to twice those odds, or as far as these stories leave "
        "open. Whether that is so, a review of "
        "these stories tells (score --reviewed).",
    ),
)


# Rates made by `review.corrected_rates`, declared here so that stored ones always show their notes.
declare(
    Measure("measured", "a rate by the judge alone, uncorrected"),
    Measure(
        "ppi",
        "a rate corrected by the review, prediction-powered",
        note="Corrected by the review: report ppi. Its interval joins statements, the judge's "
        "errors and how far reviewers differ; for these wordings.",
    ),
    Measure(
        "ppi-over-wordings",
        "a rate corrected by the review, the mean over wordings like these",
        note="ppi-over-wordings: the same over wordings like these, if any of them could have been "
        "any other.",
    ),
    *(
        Measure(f"{rate}-{side}", f"a rate of the {which} model, corrected by the review")
        for rate in ("ppi", "ppi-over-wordings")
        for side, which in (("a", "first"), ("b", "second"))
    ),
    *(
        Measure(
            f"{rate}-difference",
            "the second corrected rate minus the first",
            "points",
            note=f"{rate}-difference: its interval joins statements, the judge's errors in both "
            "models and how far reviewers differ; 95 % for each line by itself.",
        )
        for rate in ("ppi", "ppi-over-wordings")
    ),
    *(
        Measure(
            f"{rate}-p",
            f"p-value of {rate}-difference",
            "p",
            note=f"{rate}-p: of {rate}-difference, from the draws of its interval; below 0.05 "
            "where that leaves out 0.",
        )
        for rate in ("ppi", "ppi-over-wordings")
    ),
    Measure(
        "by-people",
        "a rate of stories by people's answers alone, without a judge",
        note="by-people: people's answers on the n that they read, weighted to represent the run.",
    ),
    Measure(
        "judge-accuracy",
        "share of labels in which judge and reviewers agree",
        note="judge-accuracy: of all replies, estimated from the n that were reviewed.",
    ),
)
