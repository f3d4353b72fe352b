"""Check answers to yes/no questions against the exact rates.

- rates: for every language, probe and answer, the number of replies differs from the expected one
  by no more than chance allows; this finds a language that is misread;
- sharpness: likely answers come as often as they should; this finds a wrong temperature;
- labels: every planted reply is read correctly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genprobe.engines import control
from genprobe.selftest import truth

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.statistics import Array


@dataclass(frozen=True)
class Line:
    """The results for one language. rate_z: the z-value of its worst rate, which `rate` names."""

    lang: str
    replies: int
    rate_z: float
    rate: str
    misread: int


@dataclass(frozen=True)
class Answers:
    """The results for yes/no questions."""

    lines: tuple[Line, ...]
    replies: int
    sharpness_z: float
    faults: tuple[str, ...]

    def text(self) -> list[str]:
        """Write a table by language, then the totals, as lines."""
        rows = [("yes/no", "replies", "largest z of a rate", "misread")]
        for line in self.lines:
            worst = f"{line.rate_z:+.1f} {line.rate}"
            rows.append((line.lang, str(line.replies), worst, str(line.misread)))
        return [
            *truth.aligned(rows),
            f"frequency of likely answers: z {self.sharpness_z:+.1f}; {self.replies} replies",
        ]


def compare(outcomes: pd.DataFrame) -> Answers:
    """Compare outcomes with the exact rates that `truth.beside` added."""
    outcomes = outcomes.assign(misread=truth.misread_replies(outcomes))
    lines, faults = [], []
    for lang, part in outcomes.groupby("lang", sort=True):
        rate_z, rate = max(_rates(part), key=lambda found: abs(found[0]))
        misread = part[part["misread"]]
        lines.append(Line(str(lang), len(part), rate_z, rate, len(misread)))
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
    sharpness = _sharpness(outcomes)
    if abs(sharpness) > truth.MOST_Z:
        more = "more" if sharpness > 0 else "less"
        faults.append(
            f"likely answers come {more} often than they should (z {sharpness:+.1f}); check "
            "temperature, top_p and seed in the engine"
        )
    return Answers(tuple(lines), len(outcomes), sharpness, tuple(faults))


def _true(rows: pd.DataFrame, answer: str) -> tuple[Array, Array]:
    """Return the lowest and highest probability of an answer, (replies,) each.

    They differ by the probability of texts that were not planted, which may be any answer.
    """
    least = rows[f"true_{answer}"].to_numpy()
    return least, least + rows["true_other"].to_numpy()


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
