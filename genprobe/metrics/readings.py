"""Compare readings of the same question: as a free reply, as a forced choice, by probability.

Their agreement is known to depend on model and prompt: first-token probabilities and the text that
the model then writes differ in up to half of the items (Wang et al. 2024, "My Answer is C:
First-Token Probabilities Do Not Match Text Answers in Instruction-Tuned Language Models", Findings
of ACL, arXiv:2402.14499). The measures below are defined by genprobe.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from genprobe.metrics import REPLY, Metric, Units, cluster, no_reply
from genprobe.records import DECODES, FACETS
from genprobe.statistics import (
    BOOTSTRAP,
    SHARE,
    Array,
    Interval,
    bootstrap,
    ratio,
    share_of_sums,
)

_ITEM = ("model", "revision", "lang", "probe", "pair", "statement", *FACETS)


def _bootstrap(sums: Array) -> Interval | None:
    return bootstrap(sums, ratio, limits=(0.0, 1.0))


def _p_yes(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the mean of P(yes) / (P(yes) + P(no)), over items asked for probabilities."""
    rows = outcomes[outcomes["decode"] == "logprob"]
    reason = no_reply(rows, "answer")
    both = rows["p_yes"] + rows["p_no"]
    reason = reason.mask((reason == "") & ~(both > 0), "no mass")
    share = (rows["p_yes"] / both).fillna(0.0).to_numpy(float)
    stats = np.column_stack([share, np.ones(len(rows))])
    return Units(rows[by], cluster(rows), reason, stats)


def _outside(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the mean probability that the reply begins with none of the answer words.

    If it is large, P(yes) and P(no) describe replies that the model would hardly give.
    """
    rows = outcomes[outcomes["decode"] == "logprob"]
    stats = np.column_stack([rows["outside"].fillna(0.0).to_numpy(float), np.ones(len(rows))])
    return Units(rows[by], cluster(rows), no_reply(rows, "answer"), stats)


def _items(outcomes: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for each item, a question about a statement and one sample, and the decodes.

    Each decode has two columns: the answer (`<decode>`), and why there is none (`<decode>?`), "" if
    there is one. An item has a single probability, which is repeated for every sample.
    """
    present = [d for d in DECODES if (outcomes["decode"] == d).any()]
    keys = list(dict.fromkeys([*by, *(c for c in _ITEM if c in outcomes)]))
    items: pd.DataFrame | None = None
    for decode in present if len(present) > 1 else ():
        rows = outcomes[outcomes["decode"] == decode]
        rows = rows.assign(**{decode: rows["answer"], f"{decode}?": no_reply(rows, "answer")})
        on = keys if decode == "logprob" else [*keys, "sample"]
        twice = rows.duplicated(on, keep=False)
        rows = rows.assign(**{f"{decode}?": rows[f"{decode}?"].mask(twice, "twice")})
        rows = rows[[*on, decode, f"{decode}?"]].drop_duplicates(on)
        items = rows if items is None else items.merge(rows, "outer", [c for c in on if c in items])
    if items is None:
        return outcomes.iloc[:0][keys], []
    for decode in present:
        items[f"{decode}?"] = items[f"{decode}?"].fillna("not asked")
    return items, present


def _disagreement(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of items to which two readings give different answers.

    An item counts if both readings give a clear answer; the column `readings` names the two.
    """
    items, present = _items(outcomes, by)
    parts = []
    for one, other in itertools.combinations(present, 2):
        reason = items[f"{one}?"].where(items[f"{one}?"] != "", items[f"{other}?"])
        clear = items[[one, other]].isin(["yes", "no"]).all(axis=1)
        parts.append(
            items.assign(
                readings=f"{one}, {other}",
                __reason=reason.mask((reason == "") & ~clear, "unclear"),
                __hit=(items[one] != items[other]).fillna(False).astype(float),
            )
        )
    found = pd.concat(parts, ignore_index=True) if parts else _none(items)
    stats = np.column_stack([found["__hit"].to_numpy(float), np.ones(len(found))])
    pairs = [f"{one}, {other}" for one, other in itertools.combinations(DECODES, 2)]
    found["readings"] = pd.Categorical(found["readings"], pairs)
    return Units(found[[*by, "readings"]], cluster(found), found["__reason"], stats)


def _combinations(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of items with each combination of answers.

    An item counts if every reading has an answer.
    """
    items, present = _items(outcomes, by)
    if not present:
        found = _none(items)
        stats = np.column_stack([found["__hit"].to_numpy(float), np.ones(len(found))])
        return Units(found[by], cluster(found), found["__reason"], stats)
    reason = items[f"{present[0]}?"]
    for decode in present[1:]:
        reason = reason.where(reason != "", items[f"{decode}?"])
    items = items.assign(__reason=reason)
    seen = items.loc[reason == "", [*by, *present]].drop_duplicates()
    own = items.drop(columns=present).assign(__at=range(len(items)))
    # Every item is a unit of every combination in its cell, and a hit only of its own.
    found = own.merge(seen, "inner", by) if by else own.merge(seen, "cross")
    mine = items[present].to_numpy(object)[found["__at"].to_numpy()]
    hit = (found[present].to_numpy(object) == mine).all(axis=1)
    stats = np.column_stack([hit.astype(float), np.ones(len(found))])
    return Units(found[[*by, *present]], cluster(found), found["__reason"], stats)


def _none(items: pd.DataFrame) -> pd.DataFrame:
    return items.iloc[:0].assign(readings="", __reason="", __hit=0.0)


_NEEDS = ("answer", "decode", "statement", "left_out")
_NEVER = ("decode", "sample", *REPLY)

METRICS = (
    Metric(
        "p-yes",
        "mean of P(yes) / (P(yes) + P(no))",
        "items",
        _p_yes,
        ratio,
        _bootstrap,
        BOOTSTRAP,
        (*_NEEDS, "p_yes", "p_no"),
        version="2",
        place=190,
    ),
    Metric(
        "outside",
        "mean probability of replies that begin with no answer word",
        "items",
        _outside,
        ratio,
        _bootstrap,
        BOOTSTRAP,
        (*_NEEDS, "outside"),
        version="2",
        place=200,
    ),
    Metric(
        "disagreement",
        "share of items to which two readings give different clear answers",
        "items",
        _disagreement,
        ratio,
        share_of_sums,
        SHARE,
        (*_NEEDS, "sample"),
        never_by=_NEVER,
        adds=("readings",),
        version="2",
        place=210,
    ),
    Metric(
        "readings",
        "share of items with a combination of answers from free, choice and logprob",
        "items",
        _combinations,
        ratio,
        share_of_sums,
        SHARE,
        (*_NEEDS, "sample"),
        never_by=_NEVER,
        adds=DECODES,
        whole=True,
        version="2",
        place=220,
    ),
)
