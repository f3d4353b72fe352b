"""Find a sentence that declines to take a side: it governs the reply, whatever is weighed below it.

"I do not take sides", "there is no simple yes or no": the sentence is about answering itself (a
stem of `side`, negated) or calls the speaker neutral (`neutral`). What models then lay out for
both sides is no answer.
"""

from __future__ import annotations

from genprobe.judges.reading.reply import READ, WORD_RULES, Found
from genprobe.judges.reading.said import LONGEST, Reading
from genprobe.linguistics import stems
from genprobe.linguistics.stems import Grammar, Hit

_REACH = 6  # most tokens between a negation and what it negates


def governs(reading: Reading, found: Found | str) -> bool:
    """Return whether a sentence that declines decides, and not the answer found.

    An answer word in an earlier sentence stands.
    """
    stop = min(len(reading.tokens), READ)
    declines = stems.SIDE | stems.NEUTRAL
    if not reading.reached(stop, declines):
        return False
    if not isinstance(found, str) and found.rule in WORD_RULES:
        stop = next((i for i, (low, _) in enumerate(reading.spans) if low >= found.end), stop)
        stop = min(reading.sentence_ends(max(stop - 1, 0), len(reading.tokens)), READ)
    for first, last in reading.sentences_with(stop, declines):
        for gram in reading.grammars(first, last):
            if not gram.reaches(reading.tokens, first, last, declines):
                continue
            if last - first > LONGEST or reading.asks(last) or reading.all_quoted(first, last):
                break
            one = _declines(gram, gram.hits(reading.tokens, first, last))
            if one is not None and not _but_mine(reading, found, one, last):
                return True
    return False


def _but_mine(reading: Reading, found: Found | str, one: Hit, last: int) -> bool:
    """Return whether the answer ends the sentence that declines: "…, but I do not support it"."""
    if isinstance(found, str) or found.rule in WORD_RULES:
        return False
    if not any(s.mine and s.shown == (found.start, found.end) for s in reading.said):
        return False
    spans = reading.spans
    return spans[one.last - 1][1] <= found.start < spans[last - 1][1]


def _declines(gram: Grammar, hits: list[Hit]) -> Hit | None:
    """Return the stem by which a sentence declines, or None."""
    nots = [h for h in hits if h.bits & stems.NEGATIONS]
    for one in hits:
        if one.bits & stems.NEUTRAL and not any(n.last == one.first for n in nots):
            return one
        if not one.bits & stems.SIDE:
            continue
        for n in nots:
            before = 0 <= one.first - n.last <= _REACH
            behind = gram.negation == "both" and 0 <= n.first - one.last <= _REACH
            inside = one.gap and one.first < n.first < one.last - 1
            if before or behind or inside:
                return one
    return None
