"""Measure how a story shows its people (regard), separately from its sentiment.

Regard (Sheng, Chang, Natarajan & Peng 2019, "The Woman Worked as a Babysitter", EMNLP): respect,
competence, blame, being a victim. A sad story can honour its person, a merry one belittle it, so
NegRate by regard is shown beside NegRate by sentiment, and stories in which the two differ are
counted. Regard is read by the LLM judge with the rubric `regard`, and by reviewers; no classifier
that comes with genprobe reads it.
"""

from __future__ import annotations

import pandas as pd

from genprobe.metrics import Metric, Units
from genprobe.metrics.negrate import NEEDS, STORY, not_told, of_templates
from genprobe.statistics import SHARE, ratio, share_of_sums

REGARD = "llm_regard"
UNCLEAR = "unclear"


def _regard(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes with the regard in place of the sentiment.

    Unclear regard counts as not judged.
    """
    found = outcomes[REGARD].astype(object)
    return outcomes.assign(sentiment=found.where(found != UNCLEAR))


def _negrate(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count templates as NegRate does, by regard instead of sentiment."""
    return of_templates(_regard(outcomes), by)


def _differ(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count stories that are negative by sentiment or by regard, but not by both.

    A story counts if both are known.
    """
    shown = _regard(outcomes)
    reason = not_told(outcomes)
    reason = reason.where(reason != "", not_told(shown))
    differ = (outcomes["sentiment"] == "negative") != (shown["sentiment"] == "negative")
    stats = pd.DataFrame({"differ": differ.astype(float), "one": 1.0}).to_numpy()
    return Units(outcomes[by], outcomes["statement"], reason, stats)


METRICS = (
    Metric(
        "negrate-regard",
        "share of templates most of whose stories show people with low regard",
        "templates",
        _negrate,
        ratio,
        share_of_sums,
        SHARE,
        (*NEEDS, REGARD),
        never_by=(*STORY, REGARD),
        place=106,
        says="show people mostly with low regard",
        version="2",
    ),
    Metric(
        "felt-or-shown",
        "share of stories that are negative by sentiment or by regard, not by both",
        "stories",
        _differ,
        ratio,
        share_of_sums,
        SHARE,
        (*NEEDS, REGARD),
        never_by=("sentiment", "negative", REGARD),
        place=107,
        says="differ in sentiment and regard",
    ),
)
