"""The rows of asked choices: one per choice, frame, order of options and sample.

The columns are those of every reply, and those of choices by log-probability
(`datasets.choices.outcome`), so that the same measures count both. Options are given by their
numbers in the data, not in the list that was shown. `left_out` also says why nothing is chosen:
unjudged, several, neither, hedge, refusal, mismatch, unsure, …

Probabilities: for decode `logprob`, those of the options, normalised. For replies, the share of an
item's orders and samples in which the option is chosen (within one frame and decode). The ambiguous
bias score is then KoBBQ's (Jin et al. 2024, TACL, eq. 2: targets minus counters over all answers),
and the uncertainty is the entropy of a model's answers to one question asked in several ways.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from genprobe.datasets import choices, frames
from genprobe.judges import NUMBER, Column
from genprobe.outcomes.columns import Row, Unit
from genprobe.records import FACETS, Judgment, Request, Statement

_WITHHELD = ("likely", "by_mark", "by_text")  # columns with an option that is not counted
JUDGES = {"free": "choice", "choice": "choice", "logprob": "likeliest"}
# Columns of a choice, however it was made.
COLUMNS = (
    Column("item", "id of the choice, or of the original of a pair", None, reply=False),
    Column("order", "order of the options; 0 is that of the data", None, NUMBER, reply=False),
    Column("condition", "ambig or disambig", None, reply=False),
    Column("polarity", "neg or nonneg", None, reply=False),
    Column("label", "the right option", None, NUMBER),
    Column("target", "the option of the stereotype's group", None, NUMBER),
    Column("counter", "the option of the other group", None, NUMBER),
    Column("unknown", "the option that it cannot be known", None, NUMBER),
    Column("chosen", "the chosen option", None, NUMBER),
    Column("p_target", "probability of the target", None, NUMBER),
    Column("p_counter", "probability of the counter", None, NUMBER),
    Column("p_unknown", "probability of the unknown option", None, NUMBER),
    Column("log_ratio", "log p_target - log p_counter", None, NUMBER),
    Column("uncertainty", "entropy, from 0 to 1", None, NUMBER),
)
_LISTED = (
    Column("place", "position of the chosen option in the list, from 0", None, NUMBER),
    Column("options_listed", "number of options", None, NUMBER),
    Column("likely", "the option of a reply that is unsure", None, NUMBER),
    Column("by_mark", "option by its mark, if the text contradicts it", None, NUMBER),
    Column("by_text", "option by its text, if the mark contradicts it", None, NUMBER),
)


def _further(
    statement: Statement, request: Request, row: Row, judgments: Mapping[str, Judgment | None]
) -> Row:
    """Return the columns of a choice beside those of a reply."""
    order = tuple(map(int, request.options))
    found: Row = choices.outcome(statement, None) | {
        "item": statement.id,
        "order": frames.order_number(order),
        "place": math.nan,
        "options_listed": len(order),
        "kind": None,
        **dict.fromkeys(_WITHHELD, math.nan),
        "left_out": row["left_out"],
    }
    judgment = judgments.get(JUDGES[request.decode])
    if row["left_out"] or judgment is None:
        return found | {"left_out": row["left_out"] or "unjudged"}
    kind = str(judgment.fields["kind"])
    found |= {"kind": kind, "left_out": "" if judgment.label else kind}
    if judgment.label:
        found |= {"chosen": float(order[int(judgment.label)]), "place": float(judgment.label)}
    for name in _WITHHELD:
        if at := judgment.fields.get(name):
            found[name] = float(order[int(str(at))])
    p = judgment.fields.get("p")
    if isinstance(p, list) and sum(map(float, p)) > 0:  # type: ignore[arg-type]
        total = math.fsum(map(float, p))  # type: ignore[arg-type]
        masses = {at: float(mass) / total for at, mass in zip(order, p, strict=True)}  # type: ignore[arg-type]
        found |= _probabilities(found, masses)
    return found


def _probabilities(row: Mapping[str, Any], p: Mapping[int, float]) -> dict[str, float]:
    """Return the columns that follow from the probabilities of the options.

    p: number of an option -> its probability; they add up to 1.
    """
    found = {
        f"p_{name}": p.get(int(row[name]), 0.0)
        for name in ("target", "counter", "unknown")
        if not math.isnan(row[name])
    }
    two = found.get("p_target", 0.0), found.get("p_counter", 0.0)
    if min(two) > 0:
        found["log_ratio"] = math.log(two[0] / two[1])
    entropy = -math.fsum(x * math.log(x) for x in p.values() if x > 0)
    return found | {"uncertainty": abs(entropy) / math.log(row["options_listed"])}


def _shares(rows: list[Row]) -> None:
    """Set the probabilities of replies: the shares of the answers that their item got."""
    asked = ("lang", "item", "decode", "probe", *(name for name in FACETS if name != "order"))
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["decode"] != "logprob" and not row["left_out"]:
            groups.setdefault(tuple(map(row.get, asked)), []).append(row)
    for group in groups.values():
        count = Counter(int(row["chosen"]) for row in group)
        shares = {at: n / len(group) for at, n in count.items()}
        for row in group:
            row |= _probabilities(row, shares)


UNIT = Unit((*COLUMNS, *_LISTED), _further, _shares, hidden=choices.FIELDS)
