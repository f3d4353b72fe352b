"""Find an answer word that is announced as the answer: "So my verdict: yes", "«yes», I say".

It overrides everything said before it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from operator import attrgetter

from genprobe.judges.reading import options
from genprobe.judges.reading.answer_words import is_divided
from genprobe.judges.reading.lexicon import POLARITY
from genprobe.judges.reading.punctuation import COMMA, ENDS, HAN, SENTENCE_ENDS, ends_of_answer
from genprobe.judges.reading.reply import Event, Found, Reply
from genprobe.judges.reading.said import Reading
from genprobe.linguistics import stems
from genprobe.linguistics.stems import Hit, bits_of

# A bold sentence of its own: not a heading, an item of a list, or a word in a sentence.
_BOLD = re.compile(
    r"\*\*(?=\w)([^*\n]{2,200}[.!。！।]\*\*|[^*\n]{2,200}\*\*[.!。！।]?(?=\s*(?:\n|\Z)))"
)
_REACH, _REACH_HAN = 8, 14  # tokens before the answer word in which it is announced


def find(reply: Reply) -> Found | None:
    """Return the last announced answer.

    If announced answers differ, and there is a question between the first and the last, return the
    first one.
    """
    found: list[int] = []
    skip = -1
    for k, event in enumerate(reply.events):
        if event.group not in POLARITY or k <= skip:
            continue
        if options.are_options(reply, k):
            skip = options.following(reply, k)
        elif _is_announced(reply, k) and not is_divided(reply, k):
            found.append(k)
    if not found:
        return None
    k = found[-1]
    if len({POLARITY[reply.events[one].group] for one in found}) > 1:
        end = reply.events[found[0]].end
        if re.search("[?؟]", reply.norm[end : reply.events[k].start]):
            k = found[0]
    event = reply.events[k]
    return Found(POLARITY[event.group], "verdict", event.start, event.end, k)


def bold(reading: Reading) -> Found | None:
    """Return the answer of the first bold sentence that begins with an answer word, or None.

    "You are right, I was evasive. **No, it should not be banned.**" A heading or an item ("**Yes:**
    …", "**Yes**, say some") is none.
    """
    for mark in _BOLD.finditer(reading.norm):
        k = bisect_left(reading.events, mark.start(1), key=attrgetter("start"))
        if k == len(reading.events) or reading.events[k].start != mark.start(1):
            continue
        if not _begins_a_sentence(reading.norm, mark.start()):
            continue
        event = reading.events[k]
        if event.group in POLARITY and reading.stands(k) and not is_divided(reading, k):
            return Found(POLARITY[event.group], "bold-word", event.start, event.end, k)
    return None


def _begins_a_sentence(text: str, at: int) -> bool:
    """Tell whether what begins at a position follows the end of a sentence, line or colon."""
    end = at
    while end and text[end - 1].isspace():
        end -= 1
    between = text[end:at]
    before = text[end - 1 : end]
    return (
        not before
        or "\n" in between
        or before in ".!?。！？।؟"
        or bool(between and before in ":：")
    )


def _is_announced(reply: Reply, k: int) -> bool:
    """Return whether words that announce a verdict come before event k in its sentence.

    They may also follow it: "«yes», I say".
    """
    event = reply.events[k]
    if _said_behind(reply, event):
        return True
    if not event.first or not _ends_sentence(reply, event):
        return False
    first = _announcement_begins(reply, event)
    if first == event.first:
        return False
    for _, hits in reply.stems(first, event.first):
        words = [h for h in hits if h.bits & stems.VERDICT]
        if not words and ":" in reply.gaps[event.first]:  # "I say: yes"
            words = [h for h in hits if h.bits & stems.ME]
        if not words:
            continue
        if bits_of(hits) & stems.OTHERS and not bits_of(hits) & stems.ME:
            return False
        if any(h.bits & stems.NOT and 0 <= words[-1].first - h.last <= 1 for h in hits):
            return False  # "I do not answer yes"
        if _leads_up(reply, first, event, words[-1], hits):
            return True
    return False


def _ends_sentence(reply: Reply, event: Event) -> bool:
    """Return whether an answer word ends its sentence, and the sentence is not a question."""
    last = event.last
    if not ends_of_answer(reply.norm, event.start).match(reply.norm, event.end):
        # "My answer no is": where the verb comes last, the copula may follow the answer.
        if reply.lexicon.grammar.negation != "both":
            return False
        if last == len(reply.tokens) or not ENDS.match(reply.norm, reply.spans[last][1]):
            return False
        last += 1
    return not reply.asks(last)


def _announcement_begins(reply: Reply, event: Event) -> int:
    """Return the first token of the words that may announce an answer, with a heading above it."""
    first = event.first
    low = first - (_REACH_HAN if HAN.match(reply.norm, event.start) else _REACH)
    gap = reply.gaps[first]
    if "\n" in gap and not re.search(r"[.!?。！？।]", gap):
        first -= 1  # a heading, and the answer under it
    return reply.sentence_begins(first, low)


def _leads_up(reply: Reply, first: int, event: Event, word: Hit, hits: list[Hit]) -> bool:
    """Return whether no word between a word for a verdict and the answer changes the meaning."""
    if _negates_verb(reply, event, word):
        return False
    wrong = stems.NOT | stems.OTHERS | stems.STANCES
    if any(h.first >= word.last and h.bits & wrong for h in hits):
        return False
    tokens, words = reply.tokens, reply.lexicon
    return words.conditions.isdisjoint(tokens[first : event.first]) and words.ors.isdisjoint(
        tokens[word.last : event.first]
    )


def _negates_verb(reply: Reply, event: Event, word: Hit) -> bool:
    """Return whether a "no" after a verb only negates that verb and is not an answer.

    Bengali "I could come to no decision" ends in the word for no.
    """
    gram = reply.lexicon.grammar
    denies = gram.look(reply.tokens[event.first]).bits & stems.NOT
    if gram.negation != "both" or not denies or event.first - word.last < 2:
        return False
    return reply.gaps[event.first] == " "


def _said_behind(reply: Reply, event: Event) -> bool:
    """Return whether a verb of answering follows an answer word: Kazakh "«yes», I say"."""
    tokens, gaps, gram = reply.tokens, reply.gaps, reply.lexicon.grammar
    if gram.negation != "both" or event.last >= len(tokens):
        return False
    if COMMA.search(gaps[event.last]):
        return False  # "Yes, gladly, I say: …"
    if event.first and gaps[event.first] == " ":
        before = gram.hits(tokens, max(0, event.first - 3), event.first)
        leads = stems.THEREFORE | stems.ME
        if not any(h.bits & leads and h.last == event.first for h in before):
            return False
    last = event.last + 1
    while last < len(tokens) and last - event.last < 5 and gaps[last] == " ":
        last += 1
    if last < len(tokens) and not SENTENCE_ENDS.search(gaps[last]):
        return False
    hits = gram.hits(tokens, event.last, last)
    said = any(h.bits & stems.VERDICT and h.last == last for h in hits)
    wrong = stems.NEGATIONS | stems.OTHERS | stems.POLITE | stems.SERVICE
    return said and not bits_of(hits) & wrong
