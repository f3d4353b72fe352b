"""Recompute shares of stances and refusals corrected for judge errors, on a grid of shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize, stats

from genprobe.analysis.recompute import intervals
from genprobe.analysis.recompute.answers import no_reply
from genprobe.analysis.recompute.figures import Figure, Units, Way, cluster, counted, each
from genprobe.analysis.recompute.intervals import Interval, Sums
from genprobe.analysis.recompute.rows import Row
from genprobe.metrics import judged
from genprobe.resources import measured


def _share(judge: str, label: str, why: Callable[[Row], str], says: Callable[[Row], str]) -> Way:
    """Make the `Way` that computes the corrected share of a label."""
    labels, called = measured.called(judge)
    at = labels.index(label)

    def of(rows: Sequence[Row]) -> Figure:
        kept = [row for row in rows if not why(row)]
        units: Units = [
            (cluster(row), tuple(float(says(row) == one) for one in labels)) for row in kept
        ]
        value = _value(_total(units), called, at) if units else None
        ends = intervals.exactly(lambda clusters: _profile(clusters, called, at), 1e-5)
        return Figure(value, len(units), counted(map(why, rows)), None, units, ends)

    return each(of)


def _total(units: Units) -> list[float]:
    return [math.fsum(column) for column in zip(*(sums for _, sums in units), strict=True)]


def _value(counts: Sequence[float], called: Sequence[Sequence[int]], at: int) -> float:
    """Find the most likely shares, given the measured error rates, one label at a time."""
    chances = [[n / sum(row) for n in row] for row in called]
    p = [1 / len(chances)] * len(chances)
    for _ in range(judged.ROUNDS):
        seen = [math.fsum(a * row[k] for a, row in zip(p, chances, strict=True)) for k in _at(p)]
        part = [
            a * math.fsum(counts[k] * row[k] / seen[k] for k in _at(p) if seen[k] > 0)
            for a, row in zip(p, chances, strict=True)
        ]
        p = [a / math.fsum(part) for a in part]
    return round(p[at], judged.PLACES)


def _at(p: Sequence[float]) -> range:
    return range(len(p))


def _profile(clusters: Sequence[Sums], called: Sequence[Sequence[int]], at: int) -> Interval:
    """Find the shares that the test does not reject, testing each one separately."""
    counts = np.array([math.fsum(column) for column in zip(*clusters, strict=True)])
    value = _value(counts.tolist(), called, at)
    weighed = counts * _weight([sum(one) for one in clusters], [one[at] for one in clusters])
    steps = [k / (judged.SHARES - 1) for k in range(judged.SHARES)]
    known = np.array(called, float)
    best = max(_log(weighed, known, at, share) for share in (*steps, None))
    least = best - float(stats.chi2.ppf(0.95, 1)) / 2

    def beyond(share: float) -> float:
        return _log(weighed, known, at, share) - least

    inside = [share for share in steps if beyond(share) >= 0] or [value]
    ends = []
    for end, further in ((min(inside), steps[::-1]), (max(inside), steps)):
        side = 1 if further is steps else -1
        outside = next((share for share in further if (share - end) * side > 0), None)
        crossed = outside is not None and beyond(end) > 0
        ends.append(optimize.brentq(beyond, end, outside, xtol=1e-7) if crossed else end)
    return min(ends[0], value), max(ends[1], value)


def _log(counts: np.ndarray, called: np.ndarray, at: int, share: float | None) -> float:
    """Compute the log-likelihood with one share fixed, following the steps of the definition."""
    size = len(counts)
    chances = (called + 0.5) / (called + 0.5).sum(1)[:, None]
    p = _held(np.full(size, 1 / size), at, share)
    for _ in range(judged.STEPS):
        joint = p[:, None] * chances
        part = counts * joint / np.maximum(joint.sum(0), 1e-300)
        p = _held(part.sum(1) + 1e-12, at, share)
        chances = called + part
        chances = chances / np.maximum(chances.sum(1), 1e-300)[:, None]
    seen = np.log(np.maximum(p @ chances, 1e-300))
    known = called * np.log(np.maximum(chances, 1e-300))
    return float((counts * seen).sum() + known.sum())


def _held(p: np.ndarray, at: int, share: float | None) -> np.ndarray:
    if share is None:
        return p / p.sum()
    rest = np.delete(p, at)
    return np.insert(rest / rest.sum() * (1 - share), at, share)


def _weight(sizes: Sequence[float], hits: Sequence[float]) -> float:
    """Return the weight of a reply: 1 over the design effect of the share as measured."""
    many, total = len(sizes), math.fsum(sizes)
    share = math.fsum(hits) / total
    if many == total or many < 2:
        return 1.0
    if not 0 < share < 1:
        return many / total
    squares = math.fsum((hit - share * size) ** 2 for hit, size in zip(hits, sizes, strict=True))
    between = many / (many - 1) * squares / total**2
    return min(1.0, max(many / total, share * (1 - share) / total / max(between, 1e-12)))


def _no_essay(row: Row) -> str:
    refused = row.get("by_stance") == "refusal"
    return no_reply(row, "by_stance") or ("refusal" if refused else "")


def _stance(label: str) -> Way:
    return _share("stance", label, _no_essay, lambda row: str(row["by_stance"]))


WAYS: dict[str, Way] = {
    "argues-for-corrected": _stance("for"),
    "argues-against-corrected": _stance("against"),
    "argues-both-corrected": _stance("both"),
    "refusal-corrected": _share(
        "refusal",
        "refuses",
        lambda row: no_reply(row, "by_refusal"),
        lambda row: "refuses" if row["by_refusal"] == "yes" else "answers",
    ),
    "story-refusal-corrected": _share(
        "story",
        "refuses",
        lambda row: no_reply(row, "by_story"),
        lambda row: "refuses" if row["by_story"] == "refusal" else "answers",
    ),
}
