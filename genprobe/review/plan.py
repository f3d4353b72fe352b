"""Plan a review: how many replies people must read for an interval of a given width.

What a run's judge says of every reply is known, and so is how `export` draws a sample. Unknown is
how often the judge is right. For several answers to that, reviewers' labels are simulated: each
agrees with the judge's with this probability, and is else one of the other labels, which are drawn
as often as the judge gives them. The interval of the rate is then that of `score --reviewed`
(`correction`). The width of an interval is an outcome of chance as well; the mean of a few
simulated reviews stands for it.

However many replies are read, the interval is no narrower than the statements of the run allow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from genprobe import tasks
from genprobe.errors import InputError
from genprobe.metrics import Measure, declare, spoken
from genprobe.outcomes import table
from genprobe.records import JSON, Score
from genprobe.render.scores import Scores
from genprobe.review.corrected_rates import by_question, half_widths
from genprobe.review.correction import METHOD, VERSION
from genprobe.review.sample import sampler
from genprobe.runs.run import Run
from genprobe.statistics import SEED

RIGHT = (0.98, 0.95, 0.9)  # how often the judge may be right
REVIEWS = 2  # simulated of each size
FEWEST = 20  # replies
NEAR = 1.08  # sizes are sought up to this factor


def plan(source: str | Path, points: float) -> Scores:
    """Find the numbers of replies to review for intervals of ± `points` (a share).

    Returns for each rate that a review of the run corrects, and each of `RIGHT`: `to-review`, None
    if no number is enough; and `all-reviewed`, half the width of the interval if people read all.
    Raises InputError for a run whose replies no review can correct.
    """
    run = Run.open(source)
    outcomes = by_question(spoken(table.outcomes(run)))
    outcomes = outcomes.drop(columns="wording", errors="ignore")  # of `ppi` only, to save time
    questions = [q for q in tasks.of(run.spec).questions if q in outcomes]
    questions = [q for q in questions if outcomes[q].notna().any()]
    if not questions:
        raise InputError(f"{run.folder}: a judge has read no reply of this run that people could")
    if not 0 < points < 0.5:
        raise InputError("the points must lie between 0 and 50")
    draw, sign = sampler(run), run.signer()
    most = len(draw(len(outcomes), SEED))
    found = []
    for right in RIGHT:
        widths = _widths(outcomes, questions, draw, right)
        for rate, (half, n) in widths(most).items():
            by: dict[str, JSON] = {"rate": rate, "points": 100 * points, "right": 100 * right}
            size = _fewest(partial(_half, widths, rate), points, most)
            told = sign(f"to-review/1-own-{METHOD}+plan{VERSION}x{REVIEWS}s{SEED}")
            found += [
                Score("to-review", by, size, None, None, n, {}, None, told),
                Score("all-reviewed", by, half, None, None, n, {}, None, told),
            ]
    return Scores(sorted(found, key=lambda score: str(score.by["rate"])))


def _half(widths: Callable[[int], dict[str, tuple[float, int]]], rate: str, size: int) -> float:
    return widths(size)[rate][0]


def _fewest(half: Callable[[int], float], points: float, most: int) -> int | None:
    """Find the smallest size with half a width of at most `points`; None if `most` is too few."""
    if half(most) > points:
        return None
    low, high = min(FEWEST, most), most
    if half(low) <= points:
        return low
    while high > NEAR * low:
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if half(middle) <= points else (middle, high)
    return high


def _widths(
    outcomes: pd.DataFrame,
    questions: list[str],
    draw: Callable[[int, int], dict[str, float]],
    right: float,
) -> Callable[[int], dict[str, tuple[float, int]]]:
    """Return a function from a size to rate -> half the mean width, and the replies it is of."""
    known: dict[int, dict[str, tuple[float, int]]] = {}

    def widths(size: int) -> dict[str, tuple[float, int]]:
        if size not in known:
            found = [
                half_widths(
                    outcomes, _simulated(outcomes, questions, draw(size, seed), right, seed)
                )
                for seed in range(REVIEWS)
            ]
            known[size] = {
                rate: (float(np.mean([one[rate][0] for one in found])), n)
                for rate, (_, n) in found[0].items()
            }
        return known[size]

    return widths


def _simulated(
    outcomes: pd.DataFrame, questions: list[str], drawn: dict[str, float], right: float, seed: int
) -> pd.DataFrame:
    """Simulate what one reviewer says of a sample, as rows of a review."""
    rng = np.random.default_rng(SEED + seed)
    parts = []
    for question in questions:
        label = outcomes[question].dropna().astype(str)
        rows = label[outcomes.loc[label.index, "request"].isin(drawn)]
        names, counts = np.unique(label, return_counts=True)
        answer = rows.to_numpy(object)
        for name in names if len(names) > 1 else ():
            wrong = (answer == name) & (rng.random(len(rows)) >= right) & (rows == name).to_numpy()
            odds = np.where(names == name, 0, counts)
            answer = np.where(wrong, rng.choice(names, len(rows), p=odds / odds.sum()), answer)
        request = outcomes.loc[rows.index, "request"]
        parts.append(
            pd.DataFrame(
                {
                    "request": request,
                    "reviewer": "simulated",
                    "question": question,
                    "answer": answer,
                    "weight": request.map(drawn),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


declare(
    Measure(
        "to-review",
        "replies to review for an interval of so many points to either side",
        "count",
        note="to-review: if the judge is right about so many (right, in %) of the replies with "
        "each label; – where no number is enough, as all-reviewed is wider: ask about more "
        "statements.",
    ),
    Measure("all-reviewed", "half the width of the interval if people read every reply"),
)
