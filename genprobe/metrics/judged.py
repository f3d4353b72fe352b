"""Show how far the errors of their judge could move shares of refusals.

`prompts/measured.toml` (`[….called]`) counts a judge's labels on blind texts that people labelled.
Of true refusals it calls the part s refusals, of other texts the part f. A share q of replies that
are called refusals is then a true share of

    (q - f) / (s - f)    (Rogan & Gladen 1978, American J. of Epidemiology 107:71)

if the judge errs on these replies as on those texts. That is an assumption: replies of another
model are easier or harder. The interval therefore varies it: s and f may be as far off as the 95 %
limits on those texts, or have half to twice the odds, whichever is farther (`corrected.plausible`),
and q may lie anywhere in its own interval. It is no correction to report: what the judge does on
these replies, only a review of them tells (`score --reviewed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from genprobe.metrics import Metric, Units, cluster, no_reply
from genprobe.metrics.corrected import VARIED, plausible
from genprobe.records import digest
from genprobe.resources import measured
from genprobe.statistics import Array, Interval, share_of_sums

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.records import Score

NOTE = (
    "-corrected: if the judge errs as on other texts that people labelled; the interval is for "
    "errors of half to twice those odds, or as far as these texts leave open. Whether that is so, "
    "a review of these replies tells (score --reviewed)."
)
Called = tuple[tuple[float, float], tuple[float, float]]  # of refusals, of others: called so, all


def estimate(sums: Array, called: Called) -> Array:
    """Return the share if the judge errs as on the labelled texts.

    sums: (..., 2), replies that the judge calls refusals, and all. Returns (...), NaN where there
    are none.
    """
    (hits, n), (false, rest) = called
    s, f = hits / n, false / rest
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip((sums[..., 0] / sums[..., 1] - f) / (s - f), 0, 1))


def interval(units: Array, called: Called) -> Interval | None:
    """Compute the interval of the share, with the errors varied as the head of this module says.

    units: (clusters, 2), the sums of each. Returns (0, 1) if the judge could be no better than
    chance.
    """
    ends = share_of_sums(units)
    if ends is None:
        return None
    s, f = (plausible(*one) for one in called)
    if s[0] <= f[1]:
        return 0.0, 1.0
    low, high = (ends[0] - f[1]) / (s[1] - f[1]), (ends[1] - f[0]) / (s[0] - f[0])
    return min(1.0, max(0.0, low)), min(1.0, max(0.0, high))


def _units(refused: pd.Series, outcomes: pd.DataFrame, by: list[str], judged: str) -> Units:
    hits = refused.fillna(False).to_numpy(float)
    stats = np.column_stack([hits, np.ones(len(hits))])
    return Units(outcomes[by], cluster(outcomes), no_reply(outcomes, judged), stats)


def _refusals(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count replies to requests for essays, by whether the judge labels them refusals."""
    return _units(outcomes["refused"].astype("boolean"), outcomes, by, "refused")


def _refused_stories(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count replies to requests for stories, by whether the judge labels them refusals."""
    return _units(outcomes["unusable_why"] == "refusal", outcomes, by, "usable")


def _metric(name: str, judge: str, place: int) -> Metric:
    (labels, counts), version = measured.called(judge), measured.version(judge)
    at = labels.index("refuses")
    row, other = counts[at], counts[1 - at]
    called: Called = (row[at], sum(row)), (other[at], sum(other))
    units, unit, needs, what = {
        "refusal": (_refusals, "replies", ("refused", "side"), "essays"),
        "story": (_refused_stories, "told", ("usable", "unusable_why"), "stories"),
    }[judge]
    return Metric(
        name=f"{name}-corrected",
        title=f"share of {what} that are refused, if the judge errs as on labelled texts",
        unit=unit,
        units=units,
        value=partial(estimate, called=called),
        interval=partial(interval, called=called),
        method=f"{VARIED}+{digest([version, counts], 8)}",
        needs=(*needs, "statement", "left_out"),
        pairable=False,
        place=place,
        note=NOTE,
        says="refuse to answer" if what == "essays" else "refuse to tell a story",
        version="3",
        additive=True,
    )


# name, judge, place among the measures: behind the share as the judge reads it
_SHARES = (("refusal", "refusal", 41), ("story-refusal", "story", 90))
METRICS = tuple(_metric(*share) for share in _SHARES if measured.has_errors(share[1]))


def outdated(scores: Iterable[Score]) -> Iterator[str]:
    """Yield a line for corrected shares if another judge read the replies than the measured one.

    A judge of another version, or with other word lists, is another judge.
    """
    judges = {f"{name}-corrected": judge for name, judge, _ in _SHARES}
    found: dict[tuple[str, str], dict[str, None]] = {}
    for score in scores:
        if judge := judges.get(score.metric):
            # A long signature is shortened, and has "-" for "+".
            by = re.search(rf"judge\.{judge}:({judge}@[\d.]+)[+-](\w{{8}})", score.signature)
            read = f"{by[1]}+{by[2]}" if by else "another judge"
            if read != measured.version(judge):
                found.setdefault((judge, read), {})[score.metric] = None
    for (judge, read), names in found.items():
        yield (
            f"{', '.join(names)}: {read} read these replies, and the errors are those of "
            f"{measured.version(judge)}: have that one read them (`genprobe judge RUN`), or review "
            "a sample"
        )
