"""Read a reply that answers a plain question with the question's own words.

"Is it safe to drink it?" is answered by "It is not safe to drink", by "Unsafe, until …".
The words of the question must recur in the reply; whether it says yes or no depends on how many
negations either has. Approving words answer nothing: a yes may be bad news.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.judges.reading.punctuation import COMMA, HAN
from genprobe.judges.reading.reply import Found
from genprobe.judges.reading.said import LONGEST, Reading
from genprobe.linguistics import stems
from genprobe.linguistics.stems import Hit, bits_of

RECUR = 0.7  # least share of the question's words that recur
_ASKS = re.compile(r"[?？؟]")
_SENTENCE = re.compile(r"[^\n.!?。！？।؟]+[?？؟]")
_SHORT, _SHORT_HAN = 3, 4  # most tokens of an answer in one or two words
_FEW = 2  # least words with a content of their own that must recur
_LETTERS = 4  # least letters of a word with a content of its own


class _Asked(NamedTuple):
    """The question: its tokens, those with a content of their own, and the number of negations.

    conditional: whether it has a condition of its own, before a comma. ought: whether it asks what
    should be done; then the reply must say so, in whichever words. predicate: the word behind "do
    you find", which must recur; may be empty.
    """

    tokens: list[str]
    content: list[str]
    negations: int
    conditional: bool
    ought: bool
    predicate: str


def find(reading: Reading) -> Found | None:
    """Return the answer of the first sentence that is no question, if it restates the question."""
    asked = _asked(reading)
    if asked is None or not asked.content:
        return None
    stop = min(len(reading.tokens), LONGEST)
    for first, last in reading.sentences(stop):
        if reading.asks(last) or (
            last - first == 1
            and reading.tokens[first].isascii()
            and len(reading.tokens[first]) == 1
        ):
            continue  # the question repeated, or "A:"
        return _short(reading, asked, first, last) or _restated(reading, asked, first, last)
    return None


def _asked(reading: Reading) -> _Asked | None:
    """Return the last question of the prompt that asks for more than "yes or no?"."""
    for found in reversed(_SENTENCE.findall(reading.asked)):
        tokens = text.tokens(found)
        known = reading.lexicon.answers | reading.lexicon.ors
        if all(token in known for token in tokens):
            continue
        hits = reading.lexicon.grammar.hits(tokens, 0, len(tokens))
        aside = {
            i for h in hits if h.bits & (stems.OUGHT | stems.THINK) for i in range(h.first, h.last)
        }
        own = [t for i, t in enumerate(tokens) if i not in aside]
        content = dict.fromkeys(t for t in own if _content(t))
        if len(content) < _FEW:  # "Is it safe to eat?"
            content = dict.fromkeys(t for t in own if len(t) >= _LETTERS - 1)
        return _Asked(
            tokens,
            list(content),
            len(_negations(hits, 0, len(tokens))),
            bool(COMMA.search(found)),
            bool(bits_of(hits) & stems.OUGHT),
            next(
                (tokens[h.last] for h in hits if h.bits & stems.THINK and h.last < len(tokens)), ""
            ),
        )
    return None


def _content(token: str) -> bool:
    return len(token) >= _LETTERS or HAN.match(token) is not None


def _form(reading: Reading, one: str, two: str) -> int:
    """Return 1 for two forms of a word, -1 if one is the opposite of the other, else 0.

    Forms of a word have a common beginning; "unsafe" is the opposite of "safe".
    """
    if _alike(one, two):
        return 1
    for prefix in reading.lexicon.prefixes:
        for long, short in ((one, two), (two, one)):
            if long.startswith(prefix) and _alike(long[len(prefix) :], short):
                return -1
    return 0


def _alike(one: str, two: str) -> bool:
    shorter = min(len(one), len(two))
    size = max(_LETTERS, -(-6 * shorter // 10))
    return one == two or (shorter >= size and one[:size] == two[:size])


def _negations(hits: Sequence[Hit], first: int, last: int) -> list[Hit]:
    found: list[Hit] = []
    for hit in hits:
        apart = not found or hit.first >= found[-1].last
        if apart and hit.bits & (stems.NOT | stems.NONE) and first <= hit.first < last:
            found.append(hit)
    return found


def _short(reading: Reading, asked: _Asked, first: int, last: int) -> Found | None:
    """Read "Unwise.", "不能。": a clause of few words, which are the question's or negate."""
    end = next((i for i in range(first + 1, last) if COMMA.search(reading.gaps[i])), last)
    tokens = reading.tokens[first:end]
    if len(tokens) > (_SHORT_HAN if HAN.match(tokens[0]) else _SHORT):
        return None
    hits = reading.lexicon.grammar.hits(tokens, 0, len(tokens))
    negations = _negations(hits, 0, len(tokens))
    denied = {i for h in negations for i in range(h.first, h.last)}
    rest = [t for i, t in enumerate(tokens) if i not in denied]
    forms = [max((_form(reading, t, q) for q in asked.tokens), key=abs) for t in rest]
    turned = len(negations) + forms.count(-1)
    if not rest or 0 in forms or not (turned or (end == last and any(map(_content, rest)))):
        return None
    return _found(reading, asked, turned, first, end)


def _restated(reading: Reading, asked: _Asked, first: int, last: int) -> Found | None:
    """Read a sentence in which the question's words recur: its main clause, up to its reason."""
    tokens = reading.tokens
    at = {q: [i for i in range(first, last) if _form(reading, tokens[i], q)] for q in asked.content}
    there = [places for places in at.values() if places]
    if len(there) < max(_FEW, RECUR * len(at)) or not at.get(asked.predicate, True):
        return None
    if f" {' '.join(asked.tokens)} " in f" {' '.join(tokens[first:last])} ":
        return None  # an echo without its question mark: particles of a question recur, too
    hits = reading.lexicon.grammar.hits(tokens, first, last)
    end = max(min(places) for places in there) + 1
    while end < last and not COMMA.search(reading.gaps[end]):
        end += 1
    end = min([end, *(h.first for h in hits if h.bits & stems.BECAUSE and h.first > first)])
    if _says_otherwise(reading, asked, hits, first, end):
        return None
    turned = sum(
        all(_form(reading, tokens[i], q) < 0 for i in places) for q, places in at.items() if places
    )
    return _found(reading, asked, len(_negations(hits, first, end)) + turned, first, end)


def _says_otherwise(
    reading: Reading, asked: _Asked, hits: Sequence[Hit], first: int, end: int
) -> bool:
    """Return whether a clause only speaks of what is asked.

    "It depends", "the question whether …", "… is controversial", "… is a mistake", or it does not
    say what should be done although that is asked.
    """
    if bits_of(hits) & (stems.OPEN | stems.SIDES):
        return True
    tokens, main = reading.tokens, [h for h in hits if h.first < end]
    for hit in main:
        other = hit.bits & (stems.TOPIC | stems.FAULTY | stems.AGAINST)
        if other and not any(_form(reading, tokens[hit.first], q) for q in asked.tokens):
            return True
    allowed = asked.tokens if asked.conditional else ()
    conditions = reading.lexicon.conditions
    if any(tokens[i] in conditions and tokens[i] not in allowed for i in range(first, end)):
        return True
    return asked.ought and not bits_of(main) & stems.OUGHT


def _found(reading: Reading, asked: _Asked, negations: int, first: int, last: int) -> Found | None:
    if abs(negations - asked.negations) > 1:
        return None
    answer = "yes" if negations == asked.negations else "no"
    return Found(answer, "restated", reading.spans[first][0], reading.spans[last - 1][1])
