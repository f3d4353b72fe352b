"""Say what a plain yes/no question asks: its own words, and what would answer it.

"Is it bad to sleep late?" is answered by words that value it, and "good" answers it with no. "Do
bats see?" is not: whether bats are good does not matter, but "that is a myth" answers it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.judges.reading.lexicon import Lexicon, lexicon
from genprobe.judges.reading.punctuation import COMMA, HAN
from genprobe.linguistics import stems
from genprobe.linguistics.stems import Grammar, Hit, bits_of

_SENTENCE = re.compile(r"[^\n.!?。！？।؟]+[?？؟]")
_LINE = re.compile(r"[^\n.!?。！？।؟]+")
_EITHER = re.compile(rf"([{text.HAN}])[不没]\1")  # Chinese 能不能, "can or cannot"
_LETTERS = 3  # least letters of a word with a content of its own
# Stems that say yes or no of what a question asks about: approving ones, and their opposites.
APPROVE, OPPOSE = stems.GOOD | stems.REAL, stems.BAD | stems.UNREAL
VALUE = APPROVE | OPPOSE
# Stems of the grammar of clauses that are read anew: the negations of replies to a statement.
_OF_REPLIES = stems.NEGATIONS | stems.CERTAIN
# The same for a question that asks for no value: only whether it is so.
TRUTH = stems.REAL | stems.UNREAL
# Stems of words that only help to make a sentence.
_HELPS = (
    stems.ME | stems.STATEMENT | stems.HERE | stems.VERBS | stems.AND | stems.NEGATIONS
    | stems.EXTENT | stems.FULLY | stems.POLITE | stems.THAT | stems.OUGHT | stems.MAY
    | stems.THINK | stems.CERTAIN | stems.ONLY | stems.SMALL | stems.BECAUSE
)  # fmt: skip


class Asked(NamedTuple):
    """A question.

    content: its words with a content of their own. negations: how many it has. without: how many
    words say that something is missing or rare. value: the words for the value that it asks for.
    bad: whether its yes is bad news ("is it harmful?"). unreal: whether it asks "is it a myth?".
    valued: whether it asks for a value, or for what should or may be done. ought, may: whether it
    asks what should be done, what may or can be.
    conditional: whether it has a condition of its own, before a comma. predicate: the word behind
    "do you find", which must recur; may be empty. agrees: the answer that agreement gives, if it
    asks for a stance ("do you agree that …?"); else "".
    """

    tokens: tuple[str, ...]
    content: tuple[str, ...]
    negations: int
    without: int
    value: tuple[str, ...]
    bad: bool
    unreal: bool
    valued: bool
    ought: bool
    may: bool
    conditional: bool
    predicate: str
    agrees: str


@functools.lru_cache(4096)
def asked(code: str, prompt: str) -> Asked:
    """Return the last question of a prompt that asks for more than "yes or no?".

    prompt: in the form in which it is compared. Without a question mark, the last line counts. If
    there is none, the question has no words: only whether it is so can be answered.
    """
    words = lexicon(code)
    known = words.answers | words.ors
    for sentence in reversed(_SENTENCE.findall(prompt) or _LINE.findall(prompt)):
        tokens = text.tokens(_EITHER.sub(r"\1", sentence))
        if not all(token in known for token in tokens):
            return _asked(words, tokens, COMMA.search(sentence) is not None)
    return _asked(words, [], False)


def affirms(code: str, prompt: str, value: str) -> bool:
    """Return whether a short text that calls something false affirms what is asked.

    "Wrong." answers *is it wrong?* with yes.
    """
    question, words = asked(code, prompt), value.split()
    return question.bad and any(word in words for word in question.value)


def _asked(words: Lexicon, tokens: list[str], comma: bool) -> Asked:
    hits = found(words.grammar, words.code, tokens, 0, len(tokens))
    bits = bits_of(hits)
    value = _value(words, tokens, hits)
    bad = value is not None and bool(value.bits & OPPOSE)
    content = contents(words, tokens, hits, 0, len(tokens))
    behind = (tokens[h.last] for h in hits if h.bits & stems.THINK and h.last < len(tokens))
    return Asked(
        tuple(tokens),
        tuple(dict.fromkeys(content)),
        negations(hits, 0, len(tokens)),
        sum(h.bits & stems.WITHOUT > 0 for h in hits),
        tuple(tokens[value.first : value.last]) if value else (),
        bad,
        bad and value is not None and bool(value.bits & stems.UNREAL),
        bool(value or bits & (stems.OUGHT | stems.MAY)),
        bool(bits & stems.OUGHT),
        bool(bits & stems.MAY),
        comma,
        next((word for word in behind if word in content), ""),
        _agrees(hits),
    )


def _value(words: Lexicon, tokens: Sequence[str], hits: Sequence[Hit]) -> Hit | None:
    """Return the stem for the value that a question asks for, and not one within its subject.

    A verb or pronoun leads up to it ("is it good to study before an important exam?"), or it stands
    last, but for a noun ("is studying before an important exam a good idea?"), or it is the only
    one and the question begins with its verb ("is homework good for children?").
    """
    leads = stems.VERBS | stems.STATEMENT | stems.HERE | stems.NOT | stems.ME | stems.THINK
    values = [h for h in hits if h.bits & VALUE]
    if values and not values[0].first:
        return values[0]
    for value in values:
        before = [h.last for h in hits if h.bits & leads and h.last <= value.first]
        if before and not contents(words, tokens, hits, max(before), value.first):
            return value
    if values and len(contents(words, tokens, hits, values[-1].last, len(tokens))) <= 1:
        return values[-1]
    if len(values) == 1 and any(h.bits & stems.VERBS and h.first == 0 for h in hits):
        return values[0]
    return next((value for value in values if value.first <= 1), None)


def _agrees(hits: Sequence[Hit]) -> str:
    """Return the answer that agreement gives to a question for a stance; "" for another one."""
    longest = max(
        (h for h in hits if h.bits & (stems.PRO | stems.CONTRA)), key=_length, default=None
    )
    if longest is None:
        return ""
    return "yes" if longest.bits & stems.PRO else "no"


def _length(hit: Hit) -> int:
    return hit.last - hit.first


def contents(
    words: Lexicon, tokens: Sequence[str], hits: Sequence[Hit], first: int, last: int
) -> list[str]:
    """Return the words from token `first` to `last` that have a content of their own."""
    helps = {i for h in hits if h.bits & _HELPS and not h.gap for i in range(h.first, h.last)}
    known = words.frequent | words.conditions
    return [
        t
        for i, t in enumerate(tokens[first:last], first)
        if i not in helps and t not in known and (len(t) >= _LETTERS or HAN.match(t))
    ]


def found(gram: Grammar, code: str, tokens: Sequence[str], first: int, last: int) -> list[Hit]:
    """Return the stems from token `first` to `last`, with the negations of plain sentences."""
    own = [
        h._replace(bits=h.bits & ~_OF_REPLIES) if h.bits & _OF_REPLIES else h
        for h in gram.hits(tokens, first, last)
    ]
    asked = stems.questions(code).hits(tokens, first, last)
    return sorted([*(h for h in own if h.bits), *asked])


def negations(hits: Sequence[Hit], first: int, last: int) -> int:
    """Count the negations that begin from token `first` to `last`.

    That of "until it has not been checked" does not count.
    """
    spans = [h for h in hits if h.bits & stems.UNTIL]
    count = done = 0
    for h in hits:
        inside = any(s.first <= h.first and h.last <= s.last for s in spans)
        if h.bits & stems.NOT and max(first, done) <= h.first < last and not inside:
            count, done = count + 1, h.last
    return count


def negated(hits: Sequence[Hit], first: int, last: int) -> bool:
    """Return whether there is a negation; several count as one: "ne … rien", "no … ningún"."""
    return negations(hits, first, last) > 0
