"""Read the answer from probabilities: which answer word is likelier to begin the reply?

P(yes) and P(no) are the probabilities that the reply begins with one of the forms of the answer
(`Pack.options`); `outside` is the probability of all other replies. A form that begins with another
form of the same answer is counted once, as part of the shorter one. A form that begins with a form
of the other answer (Chinese 不是, which begins with 不) counts only for its own answer. The
probability of the first token is not enough: "yes" has several spellings, and many of them are
several tokens (Wang et al. 2024, "My Answer is C", ACL Findings, on how far first-token
probabilities are from what models say).

A form at the beginning of a longer word ("no" in "nobody", if a tokenizer cuts the word there)
counts for the form: nothing was generated that could tell the two apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from genprobe.errors import InputError
from genprobe.judges import LABEL, NUMBER, VERBATIM, Column, Item, Verdict, field_of
from genprobe.resources.packs import ANSWERS

VERSION = 1

PLACE, READS = 40, "probabilities of the answer words"
COLUMNS = (
    Column("answer", "the likelier answer", LABEL),
    Column("kind", "kind of reply", field_of("kind")),
    Column("rule", "name of the rule that decided", lambda j: j.rule),
    Column("evidence", "the words that decided", lambda j: j.evidence, VERBATIM),
    Column("p_yes", "probability of the words for yes", field_of("p_yes"), NUMBER),
    Column("p_no", "probability of the words for no", field_of("p_no"), NUMBER),
    Column("outside", "probability of all other replies", field_of("outside"), NUMBER),
)


def make() -> ProbabilityJudge:
    return ProbabilityJudge()


class ProbabilityJudge:
    """The judge `probability`: see the module's docstring.

    label: the likelier answer; `ambiguous` if both are equally likely. score: P(yes) / (P(yes) +
    P(no)). fields: p_yes, p_no, outside.
    """

    name = "probability"
    column = "answer"
    reads = frozenset(("logprob",))
    needs = ("lang", "probe")
    signature = f"probability@{VERSION}"

    def __call__(self, item: Item) -> Verdict:
        yes, no = masses(item.continuations, ANSWERS).values()
        label = "yes" if yes > no else "no" if no > yes else "ambiguous"
        best = max(item.continuations, key=_total, default={"text": ""})
        return Verdict(
            label,
            "likelier",
            str(best["text"]),
            yes / (yes + no) if yes + no else None,
            {
                "kind": "answer" if yes != no else "both",
                "p_yes": yes,
                "p_no": no,
                "outside": max(0.0, 1.0 - yes - no),
            },
        )


def masses(continuations: Sequence[Mapping[str, Any]], answers: Sequence[str]) -> dict[str, float]:
    """Return answer -> probability that the reply begins with one of its forms.

    continuations: one row per form, with its tokens, its answer and its log-probabilities.
    """
    rows = {tuple(c["tokens"]): c for c in continuations}
    sizes = sorted({len(tokens) for tokens in rows}, reverse=True)
    found = dict.fromkeys(answers, 0.0)
    if other := {str(row["answer"]) for row in rows.values()} - found.keys():
        raise InputError(f"a probability is of {min(other)[:40]!r}, which is no answer")
    for tokens, row in rows.items():
        shorter = (tokens[:size] for size in sizes if 0 < size < len(tokens))
        # The longest of the other forms with which this one begins.
        above = next((begin for begin in shorter if begin in rows), None)
        if above is not None and rows[above]["answer"] == row["answer"]:
            continue
        mass = math.exp(_total(row))
        found[str(row["answer"])] += mass
        if above is not None:
            found[str(rows[above]["answer"])] -= mass
    # The difference of nearly equal probabilities can be negative by rounding.
    return {answer: max(0.0, mass) for answer, mass in found.items()}


def _total(row: Mapping[str, Any]) -> float:
    return math.fsum(row["logprobs"])
