"""Decide by its context whether an answer word is really the answer.

"Yes" may answer a question that the reply asked itself, be quoted, only be polite ("Yes, gladly"),
or come with its opposite ("yes for some, no for others").
"""

from __future__ import annotations

import re

from genprobe import text
from genprobe.judges.reading import probes
from genprobe.judges.reading.lexicon import AROUND, OPPOSITE, POLARITY
from genprobe.judges.reading.punctuation import (
    BREAKS,
    COMMA,
    ENDS,
    FULL_STOPS,
    HAN,
    QUOTE,
    SENTENCE_ENDS,
    ends_of_answer,
)
from genprobe.judges.reading.reply import Event, Reply
from genprobe.linguistics import clauses, stances, stems
from genprobe.linguistics.stems import bits_of

_LONGEST_QUESTION = 60  # tokens of a question that the reply asks itself
_FEW = 4  # most words before the answer word that ends a first sentence
_LONGEST_OFFER = 16  # tokens of a sentence that only offers help
_CLAUSE_ENDS = re.compile(r"[\n.!?。！？।؟;；؛…|:]")
_STOP = re.compile(r"[\"'”’»」』*_]*[.。।!！\n]")


def is_refusal(reply: Reply, k: int) -> bool:
    """Return whether a "no" begins a refusal: "No, I cannot answer that"."""
    if k + 1 >= len(reply.events) or POLARITY[reply.events[k].group] != "no":
        return False
    one, two = reply.events[k], reply.events[k + 1]
    return (
        two.group == "refusal"
        and two.first - one.last <= 3
        and BREAKS.search(reply.norm, one.end, two.start) is None
    )


def only_opens(reply: Reply, k: int) -> bool:
    """Return whether a "yes" only opens a comment on the question or an offer of help.

    "Yes, that is a difficult question", "Yes, of course, I'd be happy to answer!".
    """
    event, gaps = reply.events[k], reply.gaps
    if event.first > 1 or event.last >= len(reply.tokens) or SENTENCE_ENDS.search(gaps[event.last]):
        return False
    stop = min(len(reply.tokens), event.last + _LONGEST_OFFER)
    last = reply.sentence_ends(event.last, stop)
    bits = 0
    for _, hits in reply.stems(event.last, last):
        bits |= bits_of(hits)
    if bits & probes.JUDGES:
        return False
    polite = bits & stems.POLITE and (bits & stems.SERVICE or "!" in gaps[last])
    comma = any(COMMA.search(gap) for gap in gaps[event.last : min(event.last + 2, last)])
    return bool((bits & stems.HELP and comma) or polite)


def polite_is_yes(reply: Reply, event: Event) -> bool:
    """Return whether a polite word ("of course", "sure") is the answer.

    It is if nothing stronger follows and no help is offered.
    """
    behind = reply.norm[event.end :]
    if not behind.strip(AROUND):
        return True
    next_sign = behind.lstrip()[:1]
    if not ENDS.match(reply.norm, event.end) or next_sign in "!！":
        return False
    last = min(len(reply.tokens), event.last + 60)
    for _, hits in reply.stems(event.last, last):
        if bits_of(hits) & stems.SERVICE:
            return False
    return next_sign in ",،，."


def is_cited(reply: Reply, event: Event) -> bool:
    """Return whether an answer word begins somebody else's quoted words, and more sentences follow.

    "A cynic would reply: 'Yes, it costs time!' But …".
    """
    if not event.first or not reply.quoted or not reply.quoted[event.first]:
        return False
    if not QUOTE.search(reply.gaps[event.first]) or reply.events[0].group == "label":
        return False
    first = reply.sentence_begins(event.first)
    for _, hits in reply.stems(first, event.first):
        if bits_of(hits) & (stems.ME | stems.VERDICT):
            return False
    closing = re.search(r"[\"”»」“]", reply.norm[event.start :])
    rest = reply.norm[event.start + closing.end() :] if closing else ""
    return len(text.tokens(rest)) > 3


def to_own_question(reply: Reply, k: int) -> str | None:
    """Return what answer word k means if it answers the reply's own question.

    "Do I agree? No." also answers our question: returns yes or no. "Is it common? Yes." does not:
    returns "". Returns None if the word answers our question directly.
    """
    event = reply.events[k]
    if event.first == 0:
        return None
    if not reply.asks(event.first):
        return None
    first = reply.sentence_begins(event.first - 1, event.first - _LONGEST_QUESTION)
    if _is_our_question(reply, first, event.first):
        return None
    for gram, hits in reply.stems(first, event.first):
        bits = bits_of(hits)
        if not bits & (stems.STANCES | stems.STEREOTYPE):
            continue  # "Is it fair? No." is about the statement
        if bits & stems.OTHERS and not bits & stems.ME:
            continue
        clause = clauses.Clause(first, event.first, hits)
        sign = probes.sign(reply.way.reads, clause, gram.negation, True)
        if sign and sign != stances.BOTH:
            return probes.answer_to_point(reply.way, sign, POLARITY[event.group])
    return ""


def _is_our_question(reply: Reply, first: int, last: int) -> bool:
    """Return whether tokens `first` to `last` repeat our question, or ask "Yes or no?"."""
    asked = reply.norm[reply.spans[first][0] : reply.spans[last - 1][1]].strip()
    if len(asked) > 3 and asked in reply.asked:
        return True
    known = reply.lexicon.answers | reply.lexicon.ors
    return all(word in known for word in reply.tokens[first:last])


def is_qualified(reply: Reply, k: int) -> bool:
    """Return whether only words such as "to some extent," come before event k in its sentence."""
    event = reply.events[k]
    ends = ends_of_answer(reply.norm, event.start)
    if not ends.match(reply.norm, event.end) or reply.asks(event.last):
        return False
    reach = 16 if HAN.match(reply.norm, event.start) else 9
    first = reply.sentence_begins(event.first - 1, event.first - reach - 1, _CLAUSE_ENDS)
    if event.first - first > reach or (first > 0 and reply.asks(first)):
        return False  # of "Do people say so? Now and then, yes." it answers that question
    gap = reply.gaps[event.first]
    comma = COMMA.search(gap) is not None or "–" in gap or "—" in gap
    alone = 0
    for gram, hits in reply.stems(first, event.first):
        alone |= bits_of(hits)
        if bits_of(hits) & (stems.NEGATIONS | stems.OTHERS | stems.STANCES):
            return False
        own = gram.hits(reply.tokens, event.first, event.last)
        if any(h.bits & stems.EXTENT and h.first == event.first for h in own):
            return True  # Russian "but скорее да"
        qualifying = [h for h in hits if h.bits & (stems.EXTENT | stems.POLITE)]
        if qualifying and (comma or any(h.last == event.first for h in qualifying)):
            return True
    if comma and first == 0 and event.first <= 2:
        return True
    # "Strictly speaking yes.": all of the first sentence, which has no subject of its own.
    kinds = stems.ME | stems.STATEMENT | (0 if comma else stems.VERBS | probes.JUDGES)
    whole = first == 0 and _STOP.match(reply.norm, event.end)
    return bool(whole) and event.first <= _FEW and not alone & kinds


def is_divided(reply: Reply, k: int) -> bool:
    """Return whether the opposite of answer word k follows it: "yes for some, no for others"."""
    tokens, one = reply.tokens, reply.events[k]
    other = OPPOSITE[POLARITY[one.group]]
    for two in reply.events[k + 1 : k + 6]:
        if FULL_STOPS.search(reply.norm, one.end, two.start):
            return False
        if POLARITY.get(two.group) != other or two.first == one.last:
            continue
        behind = tokens[two.last : two.last + 1], tokens[one.last : one.last + 1]
        before = tokens[two.first - 1], tokens[one.first - 1] if one.first else ""
        same = (behind[0] == behind[1] != []) or (before[0] == before[1] != "")
        comma = COMMA.search(reply.gaps[two.first]) or ";" in reply.gaps[two.first]
        if same and (comma or before[0] in reply.lexicon.ors or before[1]):
            return True
        if _is_other_side(reply, two):
            return True
    return False


def _is_other_side(reply: Reply, event: Event) -> bool:
    """Return whether an answer word ends a short clause that follows another clause.

    "yes for some, for others no", "yes, and also no".
    """
    gram = reply.lexicon.grammar
    if gram.negation == "both" or not ENDS.match(reply.norm, event.end):
        return False
    first = event.first
    while first > 0 and reply.gaps[first] == " ":
        first -= 1
    if not 0 < event.first - first <= 4:
        return False
    bits = bits_of(gram.hits(reply.tokens, first, event.first))
    return bool(bits & (stems.AND | stems.OTHERS)) and not bits & (probes.JUDGES | stems.NOT)


def opposite_before(reply: Reply, k: int) -> bool:
    """Return whether the opposite of answer word k comes before it in its sentence.

    "In part yes and in part no".
    """
    two = reply.events[k]
    other = OPPOSITE[POLARITY[two.group]]
    return any(
        POLARITY.get(one.group) == other
        and not SENTENCE_ENDS.search(reply.norm, one.end, two.start)
        for one in reply.events[max(0, k - 3) : k]
    )
