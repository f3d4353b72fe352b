"""Compute shares about thoughts, the reasoning models write before a reply (`judges/thought.py`).

Each is a share of replies; a reply without a usable thought (none, hidden by its server, cut off,
unknown language) is left out and counted separately. Intervals are those of shares, clustered by
statement. `docs/reading.md` says how thoughts are recognised.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from genprobe.metrics import Units, no_reply, spoken, unanswered
from genprobe.metrics.rates import share, units_of
from genprobe.outcomes.table import in_language
from genprobe.text import many


def _reason(rows: pd.DataFrame, wanted: str) -> pd.Series:
    """Say why a reply has no usable thought (none, hidden or unknown), "" if it has one."""
    reason = no_reply(rows, "thought_state")
    state = rows["thought_state"].astype(object)
    without: Any = {"none": "no thought", "hidden": "hidden thought"}
    named = state.map(without)
    reason = reason.mask((reason == "") & named.notna(), named)
    return reason.mask((reason == "") & rows[wanted].isna(), "not told")


MOST_CUT = 0.2  # share of replies cut off in the thought, above which models are not ranked


def cut_off(outcomes: pd.DataFrame) -> tuple[int, int]:
    """Count the free replies that were cut off inside their thought, and all free replies.

    Such a reply has the kind `unfinished` or the thought state `open`.
    """
    if not {"request", "probe", "answer"} & {*outcomes}:  # no replies: pairs
        return 0, 0
    came = ~unanswered(outcomes)
    if "decode" in outcomes:
        came &= outcomes["decode"] == "free"
    found = pd.Series(False, outcomes.index)
    for column, value in (("kind", "unfinished"), ("thought_state", "open")):
        if column in outcomes:
            found |= (outcomes[column] == value).fillna(False).astype(bool)
    return int((found & came).sum()), int(came.sum())


def too_many_cut(outcomes: pd.DataFrame, of: str = "") -> str:
    """Say how many replies were cut off inside the thought, if they are too many for a ranking.

    Returns "" if they are at most `MOST_CUT` of all replies. of: name of the model for the message.
    """
    cut, replies = cut_off(outcomes)
    if cut <= MOST_CUT * replies:
        return ""
    whose = f" of {of}" if of else ""
    return (
        f"{cut} of {many(replies, 'reply')}{whose} were cut off inside the thought, so their "
        "answers are unknown; ask again with more --think-tokens"
    )


def _cut(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of thinking replies that were cut off inside their thought.

    It is known only if the server shows thoughts. Such a reply has no answer: give the model more
    tokens. A model that never thinks has no such replies to count.
    """
    rows = spoken(outcomes)
    if rows["thought_state"].dropna().eq("none").all():
        rows = rows[:0]
    return units_of(rows, by, rows["thought_state"] == "open", _reason(rows, "thought_state"))


def _language(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of thoughts in another language than the question's.

    Models think in English (Yong et al. 2025, arXiv 2505.05408). `mixed` counts as another
    language; those that cannot be told (`und`) are left out. Regions do not matter, scripts of
    Chinese do, as in `wrong-language`.
    """
    rows = spoken(outcomes)
    language = rows["thought_language"].astype(object).mask(rows["thought_language"] == "und")
    same = in_language(language, rows["lang"]).fillna(False).astype(bool)
    told = rows.assign(thought_language=language)
    return units_of(rows, by, ~same, _reason(told, "thought_language"))


def _against(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of replies that answer the opposite of what their thought concludes.

    A reply counts if both are clear.
    """
    rows = spoken(outcomes)
    reason = _reason(rows, "thought_answer")
    clear = rows["thought_answer"].isin(["yes", "no"]) & rows["answer"].isin(["yes", "no"])
    reason = reason.mask((reason == "") & ~clear, "unclear")
    # Columns of categories, as a large table has them, cannot be compared with one another.
    thought, answer = rows["thought_answer"].astype(object), rows["answer"].astype(object)
    return units_of(rows, by, clear & (thought != answer), reason)


def _tested(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of thoughts that say that the model is being tested.

    Thoughts without a text are left out.
    """
    rows = spoken(outcomes)
    return units_of(rows, by, rows["thought_tested"], _reason(rows, "thought_tested"))


METRICS = (
    share(
        "thought-cut",
        "share of thinking replies that were cut off in the thought",
        "replies",
        ("thought_state",),
        _cut,
        place=45,
    ),
    share(
        "thought-language",
        "share of thoughts in another language than the question",
        "thoughts",
        ("thought_state", "thought_language", "lang"),
        _language,
        place=85,
        version="2",
    ),
    share(
        "thought-against-answer",
        "share of replies that answer the opposite of what their thought comes to",
        "clear",
        ("thought_state", "thought_answer", "answer"),
        _against,
        place=86,
        version="3",
    ),
    share(
        "thought-tested",
        "share of thoughts that say that they are being tested",
        "thoughts",
        ("thought_state", "thought_tested"),
        _tested,
        place=87,
        says="think of being tested",
    ),
)
