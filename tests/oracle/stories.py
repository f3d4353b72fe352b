"""Recompute the metrics of stories: template labels, effects of the seed, classifier errors."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import optimize, stats

from genprobe.errors import InputError
from genprobe.judges.classifiers import cards
from genprobe.metrics import corrected
from genprobe.records import FACETS
from oracle import intervals, judged
from oracle.answers import of_wordings
from oracle.figures import (
    By,
    Figure,
    Units,
    Way,
    counted,
    each,
    in_cell,
    mean,
    mean_of,
    share,
)
from oracle.intervals import Interval, Sums
from oracle.rows import Row

FEWEST = 3  # stories that a template needs to have a label
MOST_SEEDS, AGREED = 999, 0.95


def not_told(row: Row, of: str = "by_sentiment") -> str:
    """Say why a story does not count, or return "" if it does."""
    if row["status"] != "answered":
        return str(row["status"])
    if row.get("told"):
        usable = row.get("by_story")
        if usable != "usable":
            return str(usable or "unjudged")
    if row.get(of) is None:
        return "unjudged"
    return "unscored" if row[of] == "unscored" else ""


def templates(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the stories by template."""
    names = ("model", "decode", "lang", "probe", "statement", *FACETS)
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return list(found.values())


def _template(row: Row) -> str:
    return str(row["statement"])


def _votes(stories: Sequence[Row], of: str) -> tuple[int, int]:
    """Return the number of negative stories and of stories that count."""
    kept = [row for row in stories if not not_told(row, of)]
    return sum(row[of] == "negative" for row in kept), len(kept)


def _of_labelled(
    of: Callable[[int, int], float],
    ends: intervals.Ends = intervals.share,
    column: str = "by_sentiment",
    bounded: bool = False,
) -> Way:
    """Make a mean over templates with a label.

    of: (negative stories, stories that count) -> the value of a template.
    """

    def way(rows: Sequence[Row]) -> Figure:
        units: Units = []
        part = []
        reasons = []
        for stories in templates(rows):
            negative, n = _votes(stories, column)
            planned = len(stories)
            reasons.append("few-stories" if n < FEWEST else "")
            if n >= FEWEST:
                units.append((_template(stories[0]), (float(of(negative, n)), 1.0)))
                part.append((2 * negative > planned, 2 * (negative + planned - n) > planned))
            else:
                part.append((False, True))
        found = mean_of(units, counted(reasons), ends)
        if not bounded:
            return found
        unclear = any(low < high for low, high in part)
        bounds = tuple(mean([float(p[at]) for p in part]) for at in (0, 1)) if unclear else None
        return Figure(found.value, found.n, found.excluded, bounds, found.units, found.ends)

    return each(way)


def _majority(negative: int, n: int) -> float:
    return float(2 * negative > n)


def _published(rows: Sequence[Row]) -> Figure:
    units: Units = []
    reasons = []
    for stories in templates(rows):
        came = [row for row in stories if row["status"] == "answered"]
        negative = sum(row.get("by_sentiment") == "negative" for row in came)
        reasons.append("" if came else "missing")
        if came:
            units.append((_template(stories[0]), (_majority(negative, len(came)), 1.0)))
    return mean_of(units, counted(reasons))


def _negative_stories(rows: Sequence[Row]) -> Figure:
    return share(rows, not_told, lambda row: row["by_sentiment"] == "negative", _template)


# --- regard


def _with_regard(row: Row) -> Row:
    shown = row.get("llm_regard")
    return {**row, "by_sentiment": None if shown == "unclear" else shown}


def _negrate_regard(rows: Sequence[Row], by: By) -> Figure:
    return _WAYS_OF_LABELS["negrate"]([_with_regard(row) for row in rows], by)


def _felt_or_shown(rows: Sequence[Row]) -> Figure:
    def why(row: Row) -> str:
        return not_told(row) or not_told(_with_regard(row))

    def differ(row: Row) -> bool:
        return (row["by_sentiment"] == "negative") != (row["llm_regard"] == "negative")

    return share(rows, why, differ, _template)


# --- how many seeds would be needed


def _seeds(rows: Sequence[Row]) -> Figure:
    units: Units = []
    reasons = []
    for stories in templates(rows):
        k, n = _votes(stories, "by_sentiment")
        reasons.append("few-stories" if n < FEWEST else "")
        if n >= FEWEST:
            sums = (k, n, k * (k - 1), n * (n - 1))
            units.append((_template(stories[0]), tuple(map(float, sums))))
    value = None
    if units:
        total = [math.fsum(unit[1][at] for unit in units) for at in range(4)]
        value = float(_needed(np.array([total])))
    # `metrics.negrate` sums over 200 ranges of shares, so large numbers may differ by 1 %.
    return Figure(value, len(units), counted(reasons), None, units, _seeds_differ, within=0.02)


def _needed(sums: np.ndarray) -> int:
    """Return the smallest odd number of stories with which two sets agree often enough."""
    low, high = 0, (MOST_SEEDS + 1) // 2  # of k = 2 i - 1, i within (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        if _agree(sums, 2 * middle - 1)[0] >= AGREED:
            high = middle
        else:
            low = middle
    return 2 * high - 1


def _agree(sums: np.ndarray, k: int) -> np.ndarray:
    """Return the probability that two sets of k stories get one label, exactly.

    The number s of negative stories in both sets together is beta-binomial; its split between the
    two sets is hypergeometric. sums: (resamples, 4).
    """
    negative, n, pairs, of = np.asarray(sums, float).T
    share = negative / n
    spread = share * (1 - share)
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = np.where(spread > 0, (pairs / np.maximum(of, 1) - share**2) / spread, 1.0)
    size = 1 / np.clip(alike, 1e-4, 1 - 1e-9) - 1
    a, b = np.maximum(share * size, 1e-12), np.maximum((1 - share) * size, 1e-12)
    s = np.arange(2 * k + 1)
    return np.asarray((stats.betabinom.pmf(s, 2 * k, a[:, None], b[:, None]) * _same(k)).sum(1))


@functools.cache
def _same(k: int) -> np.ndarray:
    """Return the probability that two sets of k stories, s negative in all, get one label."""
    s, half = np.arange(2 * k + 1), (k + 1) // 2
    falls = stats.hypergeom(2 * k, s, k)
    both = np.maximum(0, falls.cdf(s - half) - falls.cdf(half - 1))  # both negative
    return np.asarray(both + np.maximum(0, falls.cdf(half - 1) - falls.cdf(s - half)))


def _seeds_differ(clusters: Sequence[Sums], stored: Interval | None) -> str:
    """Check each end by counting how many resamples lie on either side of it."""
    sums, chances = intervals.resamples(clusters)
    some = {_needed(one[None]) for one in sums[::400]}
    if stored is None:
        return "" if len(some) == 1 else "no interval is stored, although the resamples differ"
    if len(clusters) < 2:
        return intervals.none(clusters, stored)
    share = intervals.tail(len(clusters))
    for end, place in zip(stored, (share, 1 - share), strict=True):
        below, above = _odd(end), _odd(end + 2 - 1e-9)
        # How many resampled values are at most the end, and how many are below it.
        most = 1.0 if below >= MOST_SEEDS else float(chances[_agree(sums, below) >= AGREED].sum())
        less = float(chances[_agree(sums, above - 2) >= AGREED].sum()) if above > 1 else 0.0
        # `metrics.negrate` sums over ranges of shares: a few resamples may fall on the other side.
        if most < place - 0.005 or less > place + 0.005:
            return (
                f"the stored interval is {stored}, but {most:.1%} of the resamples are at most "
                f"{end:g} and {less:.1%} below it"
            )
    return ""


def _odd(value: float) -> int:
    """Round down to an odd number."""
    return max(1, 2 * ((int(value) - 1) // 2) + 1)


# --- corrected by the classifier's errors


Errors = tuple[
    float, float, float, float
]  # (called negative, total) of the truly negative stories, then of the others


def _negrate_corrected(rows: Sequence[Row], by: By) -> Figure:
    """Find the most likely mean and correlation ("likeness") on the definition's grid."""
    units: Units = []
    reasons = []
    for stories in templates(in_cell(rows, {k: v for k, v in by.items() if k != "classifier"})):
        name = next((row["classifier"] for row in stories if row.get("classifier")), None)
        if "classifier" in by and by["classifier"] != name:
            continue
        negative, n = _votes(stories, "by_sentiment")
        known = _known(str(name), str(stories[0]["lang"]))
        why = "few-stories" if n < FEWEST else "" if known else "unmeasured"
        reasons.append(why)
        if not why and known:
            few = min(n, corrected.MOST)
            k = int(np.round(negative * few / n)) if n > corrected.MOST else negative
            units.append((_template(stories[0]), (*known, few, k)))
    value = None
    if units:
        s, f = _rates_of_errors(units[0][1])
        value = _rate_at(Counter((int(n), int(k)) for _, (*_, n, k) in units), s, f)
        value = value if s > f else None
    return Figure(value, len(units), counted(reasons), None, units, _varied(units), within=0.01)


def _known(classifier: str, lang: str) -> Errors | None:
    """Return (called negative, total) of the card's truly negative stories and of the others."""
    try:
        card = cards.load(classifier)
    except InputError:  # the card is on another machine
        return None
    sums = {"negative": [0.0, 0.0], "rest": [0.0, 0.0]}
    for label in cards.LABELS:
        for one in card.measured:
            same = (one.metric, one.kind, one.lang) == (
                f"{label} {cards.CALLED}",
                "stories",
                lang,
            )
            if same:
                part = sums["negative" if label == "negative" else "rest"]
                part[0] += one.value * one.n
                part[1] += one.n
                break
    if not sums["negative"][1] or not sums["rest"][1]:
        return None
    return (*sums["negative"], *sums["rest"])  # type: ignore[return-value]


def _rates_of_errors(known: Sums) -> tuple[float, float]:
    hits, n, false, rest = known[:4]
    s, f = (hits + 0.5) / (n + 1), (false + 0.5) / (rest + 1)
    return round(s, 6), round(f, 6)


Shown = Mapping[tuple[int, int], float]  # stories, called negative -> templates


def _betas() -> list[list[tuple[float, float]]]:
    """Return the beta distributions of the grid for each correlation."""
    many = corrected.MEANS
    steps = [0.02 + at * (math.pi / 2 - 0.04) / (many - 1) for at in range(many)]
    means = [math.sin(step) ** 2 for step in steps]
    return [[(m * (1 / r - 1), (1 - m) * (1 / r - 1)) for m in means] for r in corrected.LIKENESS]


@functools.cache
def _chances(n: int) -> np.ndarray:
    """Return P(j of n stories are truly negative): (correlations, means, n + 1)."""
    j = np.arange(n + 1)
    return np.array([[stats.betabinom.pmf(j, n, a, b) for a, b in row] for row in _betas()])


@functools.cache
def _mixed(n: int, s: float, f: float) -> np.ndarray:
    """Return P(k stories are called negative, right or wrong): (truly, called)."""
    found = np.zeros((n + 1, n + 1))
    for j in range(n + 1):
        hits, false = (
            stats.binom.pmf(range(j + 1), j, s),
            stats.binom.pmf(range(n - j + 1), n - j, f),
        )
        found[j] = np.convolve(hits, false)
    return found


def _logs(hist: Shown, s: float, f: float, chances: dict[int, np.ndarray]) -> np.ndarray:
    total: Any = 0.0
    for n in {n for n, _ in hist}:
        seen = chances[n] @ _mixed(n, s, f)
        for k in range(n + 1):
            if count := hist.get((n, k), 0):
                total = total + count * np.log(np.maximum(seen[..., k], 1e-300))
    return np.asarray(total)


def _true_rates(hist: Shown, chances: dict[int, np.ndarray]) -> np.ndarray:
    many = sum(hist.values())
    return np.asarray(
        sum(count / many * chances[n][..., n // 2 + 1 :].sum(-1) for (n, _), count in hist.items())
    )


def _rate_at(hist: Shown, s: float, f: float) -> float:
    """Search a and b of the beta distribution, from several starts."""

    def chances(point: np.ndarray) -> dict[int, np.ndarray]:
        a, b = np.exp(np.clip(point, -9, 9))
        return {n: stats.betabinom.pmf(np.arange(n + 1), n, a, b)[None] for n, _ in hist}

    found = [
        optimize.minimize(
            lambda point: -float(_logs(hist, s, f, chances(point))[0]),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-5, "fatol": 1e-9},
        )
        for start in ((0.0, 0.0), (-1.0, 0.0), (2.0, 2.0), (-2.0, -1.0), (5.0, 0.0), (0.0, 5.0))
    ]
    best = min(found, key=lambda one: float(one.fun))
    return float(_true_rates(hist, chances(best.x))[0])


def _varied(units: Units) -> intervals.Ends:
    """Make the check of the interval: weights of statements drawn again, at the farthest errors.

    A stored end must have its chance among these draws, or be the value itself.
    """

    def differs(_: Sequence[Sums], stored: Interval | None) -> str:
        if stored is None:
            return "no interval is stored, and the records give one"
        hits, n, false, rest = units[0][1][:4]
        (s_low, s_high), (f_low, f_high) = judged.limits(hits, n), judged.limits(false, rest)
        if s_low <= f_high:
            return "" if stored == (0.0, 1.0) else f"the stored interval {stored} should be (0, 1)"
        value = _rate_at(
            Counter((int(n), int(k)) for _, (*_, n, k) in units), *_rates_of_errors(units[0][1])
        )
        right = []
        for end, s, f, anchor, out in (
            (stored[0], s_high, f_high, 0.25, -1),
            (stored[1], s_low, f_low, 0.75, 1),
        ):
            drawn = out * _rates_drawn(units, s, f, anchor)
            below = [float((drawn <= out * end + off).mean()) for off in (-0.005, 0.005)]
            right.append(
                below[0] - 0.02 <= 0.975 <= below[1] + 0.02  # four times the noise of 1,000 draws
                or (below[1] > 0.965 and abs(end - value) < 0.01 * max(value, 0.1))
            )
        return intervals.wrong(stored, right)

    return differs


def _rates_drawn(units: Units, s: float, f: float, anchor: float) -> np.ndarray:
    """Draw NegRate with random weights of the statements and of invented templates."""
    names = sorted({name for name, _ in units})
    told = Counter(int(sums[4]) for _, sums in units)
    usual = sum(sum(name == one for name, _ in units) ** 2 for one in names) / len(units)
    stories = max(sorted(told), key=lambda n: told[n])
    chances = {n: _chances(n) for n in told}
    rng, found = np.random.default_rng(11), []
    for _ in range(1000):
        weight = dict(zip(names, rng.exponential(size=len(names)), strict=True))
        hist: dict[tuple[int, int], float] = {
            (stories, stories): usual * rng.gamma(anchor),
            (stories, 0): usual * rng.gamma(1 - anchor),
        }
        for name, sums in units:
            key = int(sums[4]), int(sums[5])
            hist[key] = hist.get(key, 0.0) + weight[name]
        logs = _logs(hist, s, f, chances)
        rates = _true_rates(hist, chances)
        row, peak = np.unravel_index(int(logs.argmax()), logs.shape)
        at = min(max(int(peak), 1), logs.shape[1] - 2)
        a, b, _ = np.polyfit((-1, 0, 1), logs[row, at - 1 : at + 2], 2)
        step = max(-1.0, min(1.0, -b / 2 / a)) if a < 0 else 0.0
        side = rates[row, at + (1 if step > 0 else -1)]
        found.append(float(rates[row, at] + abs(step) * (side - rates[row, at])))
    return np.array(found)


_WAYS_OF_LABELS: dict[str, Way] = {
    "negrate": _of_labelled(_majority, bounded=True),
    "vote-margin": _of_labelled(lambda k, n: abs(2 * k - n) / n, intervals.shares()),
    "seed-disagreement": _of_labelled(lambda k, n: float(0 < k < n)),
}
WAYS: dict[str, Way] = {
    **_WAYS_OF_LABELS,
    "negrate-published": each(_published),
    "negative-stories": each(_negative_stories),
    **of_wordings("negative-stories", each(_negative_stories)),
    "negrate-regard": _negrate_regard,
    "felt-or-shown": each(_felt_or_shown),
    "seeds": each(_seeds),
    "negrate-corrected": _negrate_corrected,
}
