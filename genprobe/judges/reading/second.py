"""Apply the learned reader: it proposes an answer if the rules find none, and can doubt a clause.

It reads whole sentences (`linguistics.learned`), except questions, quotations and the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.judges.reading.reply import READ, Found, Reply
from genprobe.linguistics import clauses, learned, stems
from genprobe.resources import packs

_SENTENCES = 12  # sentences of a reply that the learned reader sees
_DOUBT = 0.05  # a clause's answer is undecided if its probability is lower in every sentence

# Reading of a sentence -> probabilities of yes and no, for each probe.
_YES_NO: dict[str, Callable[[learned.Reading], tuple[float, float]]] = {
    "recognition": lambda r: (r.stereotype, r.no_stereotype),
    "agreement": lambda r: (r.agrees, r.disagrees),
    "disagreement": lambda r: (r.disagrees, r.agrees),
}


class Sentence(NamedTuple):
    """A sentence of the speaker's own, and its position in the normalised reply."""

    text: str
    start: int
    end: int


def own_sentences(reply: Reply) -> list[Sentence]:
    """Return the first sentences of the reply that are the speaker's own.

    Questions, quotations, the statement and sentences that end in "people say" are left out.
    """
    found: list[Sentence] = []
    gram = reply.lexicon.grammar
    for first, last in reply.sentences(min(len(reply.tokens), READ)):
        told = clauses.reports(gram, reply.tokens, reply.gaps, first, last)
        others = reply.all_quoted(first, last) or any(h.last >= last - 1 for h in told)
        if not reply.asks(last) and not others:
            low, high = reply.spans[first][0], reply.spans[last - 1][1]
            found.append(Sentence(reply.norm[low:high], low, high))
            if len(found) == _SENTENCES:
                break
    return found


def second_reading(
    probe: str, code: str, sentences: Sequence[Sentence]
) -> tuple[str, Sentence] | None:
    """Return the answer that the learned reader finds in a reply if the rules find none.

    It does not read single words ("Exactly."), nor sentences about such statements in general
    ("Such remarks are unfair") without the speaker. For `recognition` it does not read sentences
    that mention stereotypes either: the rules read those better.

    probe: one of `probes.PROBES`. code: the language of the question. sentences: as returned by
    `own_sentences`. Returns `yes` or `no` and the first sentence that says so; None if no answer
    reaches the model's threshold, or if both do.
    """
    model = learned.model()
    if code not in model.languages:
        return None
    known = [sentence for sentence in sentences if _is_for_it(probe, code, sentence)]
    found = []
    for sentence, one in zip(known, model.read(code, [s.text for s in known]), strict=True):
        for answer, p in zip(packs.ANSWERS, _YES_NO[probe](one), strict=True):
            if p >= model.firm:
                found.append((answer, sentence))
    return found[0] if len({answer for answer, _ in found}) == 1 else None


def _is_for_it(probe: str, code: str, sentence: Sentence) -> bool:
    """Return whether the learned reader may read a sentence: see `second_reading`."""
    bits = learned.groups(code, sentence.text)
    if probe == "recognition" and bits & stems.STEREOTYPE:
        return False
    if len(text.tokens(sentence.text)) < 2:
        return False
    return bool(bits & stems.ME or not bits & stems.SUCH)


def proposed(reply: Reply, kind: str) -> Found | None:
    """Return the learned reader's answer for a reply of kind `undecided`; None for other kinds."""
    if kind != "undecided":
        return None
    second = second_reading(reply.probe, reply.lexicon.code, own_sentences(reply))
    if second is None:
        return None
    answer, sentence = second
    hits = reply.lexicon.grammar.hits(words := text.tokens(sentence.text), 0, len(words))
    bits = stems.bits_of(hits)
    if bits & stems.SIDES or (bits & stems.REPORTED and bits & stems.NOT):
        return None  # "half of it is right and half wrong", "it is wrong, I do not think"
    return Found(answer, "learned", sentence.start, sentence.end)


def doubted(reply: Reply, found: Found) -> bool:
    """Return whether the learned reader finds the rules' answer very unlikely in every sentence."""
    if found.rule != "clause":
        return False
    model, code = learned.model(), reply.lexicon.code
    if code not in model.languages:
        return False
    own = [sentence.text for sentence in own_sentences(reply)]
    at = packs.ANSWERS.index(found.answer)
    return bool(own) and max(_YES_NO[reply.probe](r)[at] for r in model.read(code, own)) < _DOUBT
