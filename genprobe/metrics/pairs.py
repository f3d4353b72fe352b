"""Compare replies: to a question and its reverse, or about two groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from genprobe.metrics import REPLY, Metric, Units, cluster
from genprobe.metrics.rates import units_of
from genprobe.metrics.turned import both_ways
from genprobe.statistics import (
    BOOTSTRAP,
    SHARE,
    Array,
    Interval,
    bootstrap,
    ratio,
    share_of_sums,
)

LIMITS = (-1.0, 1.0)
SIDES = ["original", "contrast"]


def _bootstrap(sums: Array) -> Interval | None:
    return bootstrap(sums, ratio, limits=LIMITS)


def _acquiescence(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of items with the same answer word to a question and to its reverse.

    The questions are "do you agree" and "do you disagree". An item is one sample of one statement
    in one language from one model; it counts if both answers are clear.

    "Yes" to both is acquiescence, the habit of saying yes that survey research knows (Cronbach
    1946; Krosnick 1999, Annual Review of Psychology 50:537); "no" to both is the opposite habit.
    Either way the word did not depend on the statement. Defined by genprobe.
    """
    both, reason = both_ways(outcomes, by, "acquiescence")
    same = (both["answer_1"] == both["answer_2"]) & (reason == "")
    return units_of(both, by, same, reason)


def _contrast_gap(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the endorsement of originals minus that of their contrasts, as a mean over pairs.

    A contrast says the same of another group. Defined by genprobe.

    Within a pair the two sides are compared question by question: the rate of a statement is the
    mean over its clear answers, a side is the mean over its statements, the gap of a pair is the
    mean over the questions in which both sides have a clear answer. A pair belongs to one model and
    language and, within `by`, to the cell of its original. The bootstrap resamples pair names: the
    same pair in two languages is one cluster.
    """
    rows = outcomes[outcomes["measures"] == "endorsed"]
    pair = rows["pair"].astype(object)
    # A statement without a pair forms a unit alone and is counted as an exclusion.
    pair = pair.where(pair.notna() & (pair != ""), "\0" + rows["statement"].astype(str))
    rows = rows.assign(__pair=pair, __other=rows["role"] != "original")
    rows = rows.sort_values(["__other", "statement"], kind="stable")
    keys = [c for c in ("model", "revision", "decode", "lang") if c in rows]
    keys += [c for c in by if c in ("probe", "sample")]
    keys += [c for c in by if c not in keys and _varies(rows, c, [*keys, "__pair", "statement"])]
    grouped = rows.groupby([*keys, "__pair"], sort=True, dropna=False, observed=True)
    rows = rows.assign(__unit=grouped.ngroup())
    # A pair belongs to the cell of its first row (of the original, if it has one).
    units = rows.drop_duplicates("__unit").set_index("__unit").sort_index()
    planned = rows.groupby(["__unit", "role"], observed=True).size().unstack(fill_value=0)
    planned = planned.reindex(index=units.index, columns=SIDES, fill_value=0)

    clear = rows[rows["says"].notna()]
    side = ["__unit", "probe", "role"]
    rates = (
        clear["says"].astype(float).groupby([clear[c] for c in [*side, "statement"]], observed=True)
    )
    sides = rates.mean().groupby(side, observed=True).mean().unstack("role").reindex(columns=SIDES)
    gaps = (sides["original"] - sides["contrast"]).dropna().groupby("__unit").mean()
    gaps = gaps.reindex(units.index)

    reason = pd.Series("", units.index, dtype=object)
    reason = reason.mask(gaps.isna(), "no clear answer")
    reason = reason.mask(planned["contrast"] == 0, "no contrast")
    reason = reason.mask(planned["original"] == 0, "no original")
    stats = np.column_stack([gaps.fillna(0.0), np.ones(len(gaps))])
    return Units(units[by], cluster(units), reason, stats)


def _varies(rows: pd.DataFrame, column: str, keys: list[str]) -> bool:
    """Tell whether replies to one statement differ in a column, such as the wording."""
    values = rows[[*keys, column]].drop_duplicates()
    return bool(values.duplicated(keys).any())


METRICS = (
    Metric(
        "acquiescence",
        "share of items with the same answer word to a question and to its reverse",
        "items",
        _acquiescence,
        ratio,
        share_of_sums,
        SHARE,
        ("answer", "statement", "left_out", "measures", "when", "probe"),
        never_by=("probe", "measures", "when", *REPLY),
        version="4",
        additive=True,
    ),
    Metric(
        "contrast-gap",
        "endorsement of originals minus that of their contrasts, in points",
        "pairs",
        _contrast_gap,
        ratio,
        _bootstrap,
        BOOTSTRAP,
        ("says", "statement", "measures", "probe", "role", "pair"),
        never_by=("role", *REPLY),
        limits=LIMITS,
        scale="points",
        version="2",
        additive=True,
    ),
)
