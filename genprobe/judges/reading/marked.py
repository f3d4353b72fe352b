r"""Read answers that a format marks: JSON, `\boxed{}`, tags, ticked boxes, a bold option.

`linguistics.verdicts` finds the marked values; this module decides which of them is the answer.
"""

from __future__ import annotations

import re

from genprobe import text
from genprobe.judges.reading import probes
from genprobe.judges.reading.reply import Found, Reply
from genprobe.linguistics import clauses, stances, stems, verdicts


def find(reply: Reply) -> Found | None:
    """Return the last answer that a format marks."""
    norm, means = reply.norm, reply.means
    if not verdicts.ANY.search(norm):
        return None
    chosen = verdicts.ticked(norm, means) or verdicts.bold(norm, means)
    if chosen is not None:
        return as_found(reply, chosen.value, chosen)
    values = verdicts.marked(norm)
    boxed = [m for m in values if m.how == "boxed"] or [m for m in values if m.how == "tag"]
    for mark in reversed(boxed):
        answer = means(mark.value)
        if answer is not None:
            return as_found(reply, answer, mark)
    return _in_json(reply, [m for m in values if m.how == "json"])


def as_found(reply: Reply, answer: str, mark: verdicts.Marked) -> Found:
    """Return a marked answer as `Found`, with the first event inside the mark."""
    k = next((k for k, e in enumerate(reply.events) if e.start >= mark.start), -1)
    if k >= 0 and reply.events[k].end > mark.end:
        k = -1
    return Found(answer, mark.how, mark.start, mark.end, k)


def _in_json(reply: Reply, pairs: list[verdicts.Marked]) -> Found | None:
    """Return the answer of a JSON object.

    It is read from the keys named "answer" or the like, else from keys that name the probe. If
    several keys of one kind are present, they must all give the same answer.
    """
    named, stated, other = [], [], []
    for mark in pairs:
        bits, sign = _key(reply, mark.key)
        answer = {"true": "yes", "false": "no"}.get(mark.value.strip())
        answer = answer or reply.means(mark.value)
        if bits & stems.VERDICT:
            if answer is not None:
                named.append((answer, mark))
        elif answer is not None and sign:
            stated.append((probes.answer_to_point(reply.way, sign, answer), mark))
        elif answer is not None:
            other.append((answer, mark))
    for some in (named, stated, other):
        if len({answer for answer, _ in some}) == 1:
            return as_found(reply, *some[-1])
        if some:
            return None
    return None


def _key(reply: Reply, key: str) -> tuple[int, int | None]:
    """Return the stems in a key such as `reflects_stereotype`, and its sign for the probe."""
    words = text.tokens(re.sub(r"[^\w]|_", " ", key))
    bits, sign = 0, None
    for gram in (reply.lexicon.grammar, stems.grammar("en")):
        hits = gram.hits(words, 0, len(words))
        bits |= stems.bits_of(hits)
        if sign is None and words:
            clause = clauses.Clause(0, len(words), hits)
            sign = probes.sign(reply.way.reads, clause, gram.negation, True)
            sign = None if sign == stances.BOTH else sign
    return bits, sign
