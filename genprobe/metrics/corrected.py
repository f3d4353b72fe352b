"""Correct NegRate for the errors of the classifier, with an interval that includes them.

A template is negative if more than half of its stories *truly* are. Only the number k of its n
stories that the classifier calls negative is observed. The card of the classifier gives its error
rates, measured on labelled stories in the language: it calls a truly negative story negative with
probability s, and any other story with probability f. The correction is for the majority: for a
template with share p of negative stories,

    P(k) = sum over j of P(j truly negative of n) × P(k called so | j, s, f)

The shares p of the templates follow a beta distribution, which allows for the correlation of
stories about one template. The most likely mean and correlation of that distribution, with s and f
as measured, give the corrected rate: the share of templates of which more than half of the stories
are truly negative.

The interval contains the rates that a likelihood-ratio test does not reject, with mean,
correlation, s and f free: the labelled stories are part of the likelihood, so a small set widens
the interval. Several templates of one statement (wordings, languages) count for less than
independent ones, by their design effect. `benchmarks/negrate.py` measures how often the interval
covers the truth. The errors are assumed to be the same in every template of a language; if they are
not, only a review of the run helps (`score --reviewed`), whose figures then take precedence.

Method: misclassification with an estimated matrix (Buonaccorsi 2010, Measurement Error, ch. 2-3),
beta-binomial clusters (Skellam 1948, J. Royal Statistical Society B 10:257), profile likelihood.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from genprobe.errors import InputError
from genprobe.judges.classifiers import cards
from genprobe.judges.classifiers.cards import CALLED, LABELS
from genprobe.metrics import Measure, Metric, Units, declare, in_cells
from genprobe.metrics.negrate import FEWEST, NEEDS, STORY, TEMPLATE, templates
from genprobe.records import Score
from genprobe.statistics import LEVEL, Array, Interval, wilson

NAME = "negrate-corrected"
Errors = tuple[float, float, float, float]  # as returned by `known_errors`
MOST = 15  # stories counted per template; a larger number is scaled down to this one
LIKENESS = (0.001, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.93)  # correlations
MEANS = 81  # points in the grid of mean shares of negative stories
LEAST = 1e-7  # least correlation, and least mean, beyond which a beta distribution is a point
ERRORS = 11  # points in the grid of s, and in that of f
DIFFER = 0.01  # p-value below which the errors of a card and of a review count as different
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
    found = minimize(unlikely, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9})
    if found.fun < -best[row, column]:
        return float(_rate(hist, beta(found.x))[0, 0])
    return float(_rate(hist)[row, column])


def interval(units: Array, level: float = LEVEL) -> Interval | None:
    """Compute the interval of the corrected rate.

    units: (clusters, statistics), the statistics of `Units` summed within each cluster.
    """
    from scipy.stats import beta, chi2

    sums = units.sum(0)
    count = sums[_COUNT]
    if not count:
        return None
    hits_n, n, hits_p, p = (sums[i] / count for i in (_HITS_N, _N, _HITS_P, _P))
    steps = np.linspace(0, 1, ERRORS)
    tail = np.concatenate([[0.0015], steps[1:-1], [0.9985]])
    s = beta.ppf(tail, hits_n + 0.5, n - hits_n + 0.5)
    f = beta.ppf(tail, hits_p + 0.5, p - hits_p + 0.5)
    s, f = (g.ravel() for g in np.meshgrid(s, f))
    better = s > f
    if not better.any():
        return 0.0, 1.0
    s, f = s[better], f[better]
    hist = sums[_FIRST:]
    logs = _likelihood(hist * design_weight(units[:, _COUNT], units[:, _LABEL]), s, f)
    known = hits_n * np.log(s) + (n - hits_n) * np.log1p(-s)
    known = known + hits_p * np.log(f) + (p - hits_p) * np.log1p(-f)
    logs = logs + known[:, None, None]
    beyond = logs - (logs.max() - chi2.ppf(level, 1) / 2)  # accepted where not negative
    rate = np.broadcast_to(_rate(hist), logs.shape)
    inside = rate[beyond >= 0]
    low, high = float(inside.min()), float(inside.max())
    # Where the limit is crossed between two means of the grid, interpolate between their rates.
    a, b = beyond[..., :-1], beyond[..., 1:]
    cross = (a >= 0) != (b >= 0)
    at = (rate[..., :-1] + (rate[..., 1:] - rate[..., :-1]) * (a / np.where(a == b, 1, a - b)))[
        cross
    ]
    if len(at):
        low, high = min(low, float(at.min())), max(high, float(at.max()))
    value = float(estimate(sums[None])[0])
    if not np.isnan(value):
        low, high = min(low, value), max(high, value)
    return max(0.0, low), min(1.0, high)


def design_weight(sizes: Array, hits: Array) -> float:
    """Return the weight of one unit if several units share a cluster.

    sizes: (clusters,), the number of units in each. hits: (clusters,), how many of these count as a
    hit. The weight is 1 over the design effect of the share of hits (Kish 1965), never more than 1.
    """
    total = sizes.sum()
    if len(sizes) == total or len(sizes) < 2:
        return 1.0
    share = hits.sum() / total
    spread = share * (1 - share)
    if spread <= 0:
        return float(len(sizes) / total)
    variance = len(sizes) / (len(sizes) - 1) * ((hits - share * sizes) ** 2).sum() / total**2
    return float(min(1.0, max(len(sizes) / total, spread / total / max(variance, 1e-12))))


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


def both_errors(card: Errors | None, review: Errors | None) -> Errors | None:
    """Pool the errors of a card and of a review of the run (counts of labelled stories).

    The counts are added. If they differ significantly (Fisher's exact test of either rate,
    p < 0.01), only the review is used, because it is about these stories.
    """
    from scipy.stats import fisher_exact

    if card is None or review is None:
        return card if review is None else review
    for at in (0, 2):
        table = [[x[at], x[at + 1] - x[at]] for x in (card, review)]
        if fisher_exact(np.round(table)).pvalue < DIFFER:
            return review
    a, b, c, d = (x + y for x, y in zip(card, review, strict=True))
    return a, b, c, d


def pooled(
    outcomes: pd.DataFrame, review: Mapping[tuple[str, str], Errors], by: Sequence[str]
) -> list[Score]:
    """Compute NegRate corrected by the errors of the card and of a review together.

    review: (classifier, language) -> errors among the reviewed stories. The scores have empty
    signatures.
    """
    several = [c for c in METRICS[0].apart if c in outcomes and c not in by]
    split = [*(c for c in several if outcomes[c].nunique() > 1), *by]
    metric = dataclasses.replace(METRICS[0], name="pooled")
    return in_cells(metric, _corrected(outcomes, split, review), split, "")


def _corrected(
    outcomes: pd.DataFrame,
    by: list[str],
    review: Mapping[tuple[str, str], Errors] | None = None,
) -> Units:
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
    more = review or {}
    errors = {one: both_errors(known_errors(*one), more.get(one)) for one in set(used)}
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
    "argues-for-corrected": ("of the essays argue for the statement", "essays", "judge"),
    "argues-against-corrected": ("of the essays argue against the statement", "essays", "judge"),
    "argues-both-corrected": ("of the essays argue on both sides", "essays", "judge"),
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
        version="2",
        title="share of templates most of whose stories are negative, corrected for the "
        "classifier's errors",
        unit="templates",
        units=_corrected,
        value=estimate,
        interval=interval,
        method="profile95",
        needs=(*NEEDS, "classifier", "lang"),
        never_by=STORY,
        apart=("decode", "lang", "classifier"),
        pairable=False,
        place=95,
        note="Corrected for the errors of the classifier on labelled stories (see its card), "
        "with their uncertainty; negrate is uncorrected.",
    ),
)


# Rates made by `review.corrected_rates`, declared here so that stored ones always show their notes.
declare(
    Measure("measured", "a rate by the judge alone, uncorrected"),
    Measure(
        "ppi",
        "a rate corrected by the review, prediction-powered",
        note="Corrected by the review: report ppi (prediction-powered inference); rg uses only "
        "the judge's error rates, and equals ppi if the review is weighted.",
    ),
    Measure(
        "pooled",
        "NegRate corrected by the errors of the classifier's card and of the review together",
    ),
    Measure(
        "by-people",
        "a rate of stories by people's answers alone, without a judge",
        note="by-people: people's answers on the n that they read, weighted to represent the run.",
    ),
    Measure("rg", "a rate corrected by the judge's error rates (Rogan and Gladen)"),
    Measure(
        "judge-accuracy",
        "share of labels in which judge and reviewers agree",
        note="judge-accuracy: of all replies, estimated from the n that were reviewed.",
    ),
)
