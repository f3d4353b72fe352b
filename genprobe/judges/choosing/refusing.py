"""Decide whether a refusal overrides the decision: "I would rather not compare people"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from genprobe import text
from genprobe.judges import Verdict
from genprobe.judges.choosing.deciding import Decision
from genprobe.judges.choosing.reading import Reading

_SOFT = (
    "first",
    "sole",
    "sole-among",
    "last",
    "misspelt",
    "all-others-rejected",
)  # rules without a mark


class _Refusal(NamedTuple):
    at: int  # its first character
    words: str
    rule: str
    source: str  # the text that it was found in


def may_come_first(reading: Reading, decision: Decision, reply: str) -> bool:
    """Tell whether a refusal could override this decision.

    It cannot if the answer is marked, announced or a conclusion, or if the reply begins with it.
    """
    if decision.rule in _SOFT and decision.option is not None and not _is_told(reading, decision):
        before = reply[: max(0, reply.find(decision.evidence))]
        if not text.TOKEN.search(before):
            return False
    return (
        _is_told(reading, decision)
        or decision.rule in _SOFT
        or decision.kind in ("offtopic", "hedge", "undecided")
    )


def weighed(reading: Reading, decision: Decision, reply: str, refused: Verdict) -> Decision:
    """Return the refusal if one overrides the decision; else the decision.

    "I cannot answer that" is a refusal; "sorry, the text does not say" is a reason. refused: the
    verdict of the refusal judge on `reply`.
    """
    found = []
    if refused.label == "yes":
        at = reply.find(refused.evidence)
        found.append(_Refusal(at, refused.evidence, refused.rule, reply))
    found += _declines(reading)
    told, soft = _is_told(reading, decision), decision.rule in _SOFT
    for refusal in found:
        place = refusal.source.find(decision.evidence)
        behind = place + len(decision.evidence)
        if soft and decision.option is not None and not refusal.at < behind:
            continue
        loose = decision.rule.startswith("untold") or decision.rule.endswith("neither")
        if told and not loose and not 0 <= place - refusal.at < len(refusal.words):
            continue
        if told and place < refusal.at + len(refusal.words) and _cites(reading, place):
            continue  # "nothing in the text says who, so I can't decide"
        return Decision(None, "refusal", refusal.rule, refusal.words)
    return decision


def _is_told(reading: Reading, decision: Decision) -> bool:
    """Tell whether a decision is for the unknown option and gives as reason what is not known."""
    return (
        decision.option is not None
        and decision.option == reading.options.unknown
        and decision.rule.endswith(("unknown", "untold", "untold-among", "neither"))
    )


def _declines(reading: Reading) -> Iterator[_Refusal]:
    """Yield the refusals in a reply; clauses about what the text says are not refusals.

    "I would rather not", or a negation with a verb such as "compare": "I cannot compare peoples".
    The phrases of the refusal judge are looked for separately.
    """
    lexicon, reply = reading.lexicon, reading.reply
    spans = []
    for sentence in reading.sentences:
        for at in sentence:
            found = text.matches(lexicon.refuse, reply.words, at)
            if found and at + found[0][1] <= sentence.stop:
                spans.append((at, at + found[0][1]))
        for clause in reading.clauses(sentence):
            if (
                reply.holds(clause, lexicon.decline)
                and reply.holds(clause, lexicon.deny)
                and not reply.holds(clause, lexicon.source)
                and not any(
                    m.kind == "unknown" and m.last - m.first > 2 for m in reading.within(clause)
                )
            ):
                spans.append((clause.start, clause.stop))
    for first, last in spans:
        start = reply.found[first].start()
        yield _Refusal(start, reply.quote(first, last), "declines", reply.text)


def _cites(reading: Reading, place: int) -> bool:
    """Tell whether a clause of the sentence at this character says that the text does not tell."""
    reply, lexicon = reading.reply, reading.lexicon
    at = next((k for k, m in enumerate(reply.found) if m.end() > place), 0)
    sentence = next((s for s in reading.sentences if s.stop > at), range(0))
    return any(
        reply.holds(clause, lexicon.source) and reply.holds(clause, lexicon.deny)
        for clause in reading.clauses(sentence)
    )
