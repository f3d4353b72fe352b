"""Check answers to yes/no questions against the exact rates.

- intervals: the number of 95 % intervals that cover the true share of their cell (language, probe
  and bias type; yes, no and ambiguous) is as expected. About 99 % do, because the intervals allow
  for correlated answers to original and contrast, and the control model answers each independently;
- rates: for every language, probe and answer, the number of replies differs from the expected one
  by no more than chance allows; this finds a language that is misread;
- sharpness: likely answers come as often as they should; this finds a wrong temperature;
- labels: every planted reply is read correctly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.engines import control
from genprobe.selftest import truth

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.statistics import Array, Interval

LEAST_COVERAGE = 0.90
MOST_Z_COVERAGE = 4.0
_CELL = ["lang", "probe", "bias_type"]
_Drawn = tuple[tuple[int, int, int], ...]  # for each cluster, its counts of yes, no, ambiguous


@dataclass(frozen=True)
class Line:
    """The results for one language. rate_z: the z-value of its worst rate, which `rate` names."""

    lang: str
    intervals: int
    covered: int
    expected: float
    rate_z: float
    rate: str
    misread: int


@dataclass(frozen=True)
class Answers:
    """The results for yes/no questions. expected: number of intervals that should cover."""

    lines: tuple[Line, ...]
    replies: int
    intervals: int
    covered: int
    expected: float
    coverage_z: float
    sharpness_z: float
    faults: tuple[str, ...]

    def text(self) -> list[str]:
        """Write a table by language, then the totals, as lines."""
        rows = [("yes/no", "intervals", "cover", "expected", "largest z of a rate", "misread")]
        for line in self.lines:
            rows.append(
                (
                    line.lang,
                    str(line.intervals),
                    f"{100 * line.covered / line.intervals:.1f} %",
                    f"{100 * line.expected / line.intervals:.1f} %",
                    f"{line.rate_z:+.1f} {line.rate}",
                    str(line.misread),
                )
            )
        return [
            *truth.aligned(rows),
            f"{self.covered} of {self.intervals} intervals at 95 % cover the true share "
            f"({100 * self.covered / self.intervals:.1f} %; expected "
            f"{100 * self.expected / self.intervals:.1f} %, z {self.coverage_z:+.1f}); "
            f"frequency of likely answers: z {self.sharpness_z:+.1f}; {self.replies} replies",
        ]


def compare(outcomes: pd.DataFrame) -> Answers:
    """Compare outcomes with the exact rates that `truth.beside` added."""
    outcomes = outcomes.assign(misread=truth.misread_replies(outcomes))
    lines, faults, squares = [], [], 0.0
    for lang, part in outcomes.groupby("lang", sort=True):
        covered, expected, variance, intervals = _coverage(part)
        squares += variance
        rate_z, rate = max(_rates(part), key=lambda found: abs(found[0]))
        misread = part[part["misread"]]
        lines.append(Line(str(lang), intervals, covered, expected, rate_z, rate, len(misread)))
        if abs(rate_z) > truth.MOST_Z:
            faults.append(
                f"{lang}: replies read as {rate} differ from the true rate by more than chance "
                f"(z {rate_z:+.1f}); check prompts/languages and the judge yesno"
            )
        if len(misread):
            row = misread.iloc[0]
            faults.append(
                f"{lang}: {len(misread)} replies are misread, such as {row['response']!r} to "
                f"{row['probe']} as {row['answer']}; check prompts/languages and the judge yesno"
            )
    intervals, covered = sum(x.intervals for x in lines), sum(x.covered for x in lines)
    expected = sum(line.expected for line in lines)
    z = (covered - expected) / squares**0.5 if squares else 0.0
    if abs(z) > MOST_Z_COVERAGE or covered < LEAST_COVERAGE * intervals:
        got, due = (f"{100 * count / intervals:.1f} %" for count in (covered, expected))
        faults.insert(
            0,
            f"{got} of the 95 % intervals cover the true share, expected {due} (z {z:+.1f}); check "
            "genprobe/metrics",
        )
    sharpness = _sharpness(outcomes)
    if abs(sharpness) > truth.MOST_Z:
        more = "more" if sharpness > 0 else "less"
        faults.append(
            f"likely answers come {more} often than they should (z {sharpness:+.1f}); check "
            "temperature, top_p and seed in the engine"
        )
    return Answers(
        lines=tuple(lines),
        replies=len(outcomes),
        intervals=intervals,
        covered=covered,
        expected=expected,
        coverage_z=z,
        sharpness_z=sharpness,
        faults=tuple(faults),
    )


def _coverage(outcomes: pd.DataFrame) -> tuple[int, float, float, int]:
    """Count the intervals that cover the true share.

    Returns this count, its expectation, its variance, and the number of all intervals.
    """
    import numpy as np

    cells = {
        key: rows[rows["sample"] == 0]
        for key, rows in outcomes.groupby(_CELL, sort=True, observed=True)
    }
    rounds = outcomes["sample"].nunique()

    @functools.cache  # many cells have the same counts
    def interval(answer: str, *hits: tuple[int, int]) -> Interval:
        return metrics.find(answer).interval(np.array(hits, float)) or (math.inf, -math.inf)

    covered = 0
    for score in metrics.score(outcomes, control.ANSWERS, [*_CELL, "sample"], lambda name: ""):
        least, most = _true(cells[tuple(score.by[column] for column in _CELL)], score.metric)
        if score.low is not None and score.high is not None:
            covered += int(score.low <= most.mean() and least.mean() <= score.high)
    expected = variance = 0.0
    for rows in cells.values():
        true = [_true(rows, answer) for answer in control.ANSWERS]
        mean = square = 0.0
        for drawn, chance in _drawn(rows).items():
            count = 0
            for at, (least, most) in enumerate(true):
                hits = sorted((said[at], sum(said)) for said in drawn)
                low, high = interval(control.ANSWERS[at], *hits)
                count += low <= most.mean() and least.mean() <= high
            mean += chance * count
            square += chance * count**2
        expected += rounds * mean
        variance += rounds * (square - mean**2)
    return covered, expected, variance, 3 * rounds * len(cells)


def _true(rows: pd.DataFrame, answer: str) -> tuple[Array, Array]:
    """Return the lowest and highest probability of an answer, (replies,) each.

    They differ by the probability of texts that were not planted, which may be any answer.
    """
    least = rows[f"true_{answer}"].to_numpy()
    return least, least + rows["true_other"].to_numpy()


def _drawn(rows: pd.DataFrame) -> dict[_Drawn, float]:
    """Return every possible outcome of a cell, with its probability.

    Clusters are sorted, as their order does not matter to an interval.
    """
    found: dict[_Drawn, float] = {(): 1.0}
    for _, part in rows.groupby(metrics.cluster(rows)):
        n, joint = len(part), _joint(part["true_yes"].to_numpy(), part["true_no"].to_numpy())
        said = [(k, m, n - k - m) for k in range(n + 1) for m in range(n + 1 - k)]
        after: dict[_Drawn, float] = {}
        for drawn, chance in found.items():
            for one in said:
                more = tuple(sorted((*drawn, one)))
                after[more] = after.get(more, 0.0) + chance * float(joint[one[:2]])
        found = after
    return found


def _joint(yes: Array, no: Array) -> Array:
    """Compute the probabilities of k times yes and m times no in n replies, (n + 1, n + 1).

    yes, no: the probabilities of each reply, (n,) each.
    """
    import numpy as np

    chance = np.zeros((len(yes) + 1, len(yes) + 1))
    chance[0, 0] = 1.0
    for p, q in zip(yes, no, strict=True):
        after = (1 - p - q) * chance
        after[1:] += p * chance[:-1]
        after[:, 1:] += q * chance[:, :-1]
        chance = after
    return chance


def _rates(outcomes: pd.DataFrame) -> Iterable[tuple[float, str]]:
    """Yield, for each probe and answer, the z-value of the number of replies, and a description."""
    for probe, rows in outcomes.groupby("probe", sort=True):
        for answer in control.ANSWERS:
            least, most = _true(rows, answer)
            k = int((rows["answer"] == answer).sum())
            yield truth.z_of(k, least, most), f"{answer} to {probe}"


def _sharpness(outcomes: pd.DataFrame) -> float:
    """Return the z-value of the answers' summed log-probability, given the exact rates."""
    import numpy as np

    chance = outcomes[[f"true_{answer}" for answer in control.ANSWERS]].to_numpy()
    chance = chance / chance.sum(1, keepdims=True)
    logs = np.log(np.maximum(chance, 1e-12))
    mean = (chance * logs).sum(1)
    variance = (chance * logs**2).sum(1) - mean**2
    at = [control.ANSWERS.index(answer) for answer in outcomes["answer"]]
    excess = logs[np.arange(len(logs)), at] - mean
    return float(excess.sum() / variance.sum() ** 0.5)
