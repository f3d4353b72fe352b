"""Separate content from the habit of saying yes or no, by asking a question and its reverse.

An item asked "do you agree" and "do you disagree" has one of four pairs of answer words. Two have
the same content in both directions: endorsed both ways (yes, no), rejected both ways (no, yes). Two
have the same word: yes-saying (yes, yes), no-saying (no, no), which do not depend on the statement.
The four shares add up to 1 (Cronbach 1946; the split of content and acquiescence of balanced
scales, Billiet & McClendon 2000, Structural Equation Modeling 7:608). Rates that pool the two
questions include half of each habit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from genprobe.metrics import REPLY, Metric, Units, not_clear, once
from genprobe.metrics.rates import units_of
from genprobe.records import FACETS
from genprobe.statistics import SHARE, ratio, share_of_sums

if TYPE_CHECKING:
    import pandas as pd

# Columns that identify an item, which is asked once in each direction.
ITEM = ("model", "revision", "decode", "lang", "pair", "statement", *FACETS, "sample")


def both_ways(outcomes: pd.DataFrame, by: list[str], metric: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return each item with its answer words to the question and to its reverse.

    The words are the columns `answer_1` and `answer_2`. Also returns why each item does not count,
    "" if both words are clear. metric: its name, for the error if a question occurs twice.
    """
    rows = outcomes[outcomes["measures"] == "endorsed"]
    keys = list(dict.fromkeys([*by, *(c for c in ITEM if c in rows)]))
    once(rows, [*keys, "when", "probe"], metric)
    rows = rows[list(dict.fromkeys([*keys, "probe", "when", "answer"]))].assign(
        __reason=not_clear(rows)
    )
    # Of several questions in one direction, nothing says which of them is turned round.
    several = rows.duplicated([*keys, "when"], keep=False)
    rows["__reason"] = rows["__reason"].mask(several, "several questions")
    plain, reverse = (
        rows[rows["when"] == when].drop_duplicates(keys)[[*keys, "answer", "__reason"]]
        for when in ("yes", "no")
    )
    both = plain.merge(reverse, "outer", keys, suffixes=("_1", "_2"))
    first, second = (both[f"__reason_{side}"].astype(object) for side in (1, 2))
    alone = first.isna() | second.isna()
    return both, first.where(first != "", second).mask(alone, "one question only")


def _share(name: str, title: str, first: str, second: str, place: int) -> Metric:
    def units(outcomes: pd.DataFrame, by: list[str]) -> Units:
        both, reason = both_ways(outcomes, by, name)
        hit = (both["answer_1"] == first) & (both["answer_2"] == second) & (reason == "")
        return units_of(both, by, hit, reason)

    return Metric(
        name,
        f"share of items asked in both directions that are {title}",
        "items",
        units,
        ratio,
        share_of_sums,
        SHARE,
        ("answer", "when", "measures", "statement", "left_out", "probe"),
        never_by=("probe", "measures", "when", *REPLY),
        place=place,
        version="2",
        additive=True,
    )


METRICS = (
    _share("endorsed-both-ways", "endorsed in both directions", "yes", "no", 0),
    _share("rejected-both-ways", "rejected in both directions", "no", "yes", 0),
    _share("yes-saying", "answered with yes in both directions", "yes", "yes", 0),
    _share("no-saying", "answered with no in both directions", "no", "no", 0),
)
