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
from genprobe.linguistics.stems import Hit, bits_of

_SENTENCE = re.compile(r"[^\n.!?。！？।؟]+[?？؟]")
_LINE = re.compile(r"[^\n.!?。！？।؟]+")
_EITHER = re.compile(rf"([{text.HAN}])[不没]\1")  # Chinese 能不能, "can or cannot"
_LETTERS = 3  # least letters of a word with a content of its own
# Stems that say yes or no of what a question asks about: approving ones, and their opposites.
APPROVE, OPPOSE = stems.GOOD | stems.REAL | stems.FINE, stems.BAD | stems.UNREAL | stems.FAULTY
VALUE = APPROVE | OPPOSE
# The same for a question that asks for no value: only whether it is so.
TRUTH = stems.REAL | stems.UNREAL | stems.FINE | stems.FAULTY
# Stems of words that only help to make a sentence.
_HELPS = (
    stems.ME | stems.STATEMENT | stems.HERE | stems.VERBS | stems.AND | stems.NEGATIONS
    | stems.EXTENT | stems.FULLY | stems.POLITE | stems.THAT | stems.OUGHT | stems.MAY
    | stems.THINK | stems.CERTAIN | stems.ONLY | stems.SMALL | stems.BECAUSE
)  # fmt: skip


class Asked(NamedTuple):
    """A question.

    content: its words with a content of their own. negations: how many it has. value: the words for
    the value that it asks for. bad: whether its yes is bad news ("is it harmful?"). unreal: whether
    it asks "is it a myth?". valued: whether it asks for a value, or for what should or may be done. ought, may: whether it asks what should be done, what may or can be.
    conditional: whether it has a condition of its own, before a comma. predicate: the word behind
    "do you find", which must recur; may be empty. agrees: the answer that agreement gives, if it
    asks for a stance ("do you agree that …?"); else "".
    """

    tokens: tuple[str, ...]
    content: tuple[str, ...]
    negations: int
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
def asked(code: str, prompt: str) -> Asked | None:
    """Return the last question of a prompt that asks for more than "yes or no?", or None.

    prompt: in the form in which it is compared. Without a question mark, the last line counts.
    """
    words = lexicon(code)
    known = words.answers | words.ors
    for found in reversed(_SENTENCE.findall(prompt) or _LINE.findall(prompt)):
        tokens = text.tokens(_EITHER.sub(r"\1", found))
        if not all(token in known for token in tokens):
            return _asked(words, tokens, COMMA.search(found) is not None)
    return None


def _asked(words: Lexicon, tokens: list[str], comma: bool) -> Asked:
    hits = words.grammar.hits(tokens, 0, len(tokens)) + stems.questions(words.code).hits(
        tokens, 0, len(tokens)
    )
    bits = bits_of(hits)
    value = _value(words, tokens, hits)
    bad = value is not None and bool(value.bits & OPPOSE)
    content = contents(words, tokens, hits, 0, len(tokens))
    behind = (tokens[h.last] for h in hits if h.bits & stems.THINK and h.last < len(tokens))
    return Asked(
        tuple(tokens),
        tuple(dict.fromkeys(content)),
        len(negations(hits, 0, len(tokens))),
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

    It is the first one if only small words and a verb stand before it ("is it a good idea to study
    before an important exam?"), else the last ("is studying before an important exam good?").
    """
    values = sorted(h for h in hits if h.bits & VALUE)
    if not values:
        return None
    first = values[0].first
    leads = stems.VERBS | stems.STATEMENT | stems.HERE | stems.NOT | stems.ME | stems.THINK
    led = first == 0 or any(h.bits & leads and h.first < first for h in hits)
    return values[0] if led and not contents(words, tokens, hits, 0, first) else values[-1]


def _agrees(hits: Sequence[Hit]) -> str:
    """Return the answer that agreement gives to a question for a stance; "" for another one."""
    stances = [h for h in hits if h.bits & stems.STANCES]
    if len(stances) != 1:
        return ""
    return "yes" if stances[0].bits & (stems.FOR | stems.FOR_ME) else "no"


def contents(
    words: Lexicon, tokens: Sequence[str], hits: Sequence[Hit], first: int, last: int
) -> list[str]:
    """Return the words from token `first` to `last` that have a content of their own."""
    helps = {i for h in hits if h.bits & _HELPS and not h.gap for i in range(h.first, h.last)}
    return [
        t
        for i, t in enumerate(tokens[first:last], first)
        if i not in helps and t not in words.frequent and (len(t) >= _LETTERS or HAN.match(t))
    ]


def negations(hits: Sequence[Hit], first: int, last: int) -> list[Hit]:
    """Return the negations that begin from token `first` to `last`, without overlapping ones."""
    found: list[Hit] = []
    for hit in hits:
        apart = not found or hit.first >= found[-1].last
        if apart and hit.bits & (stems.NOT | stems.NONE) and first <= hit.first < last:
            found.append(hit)
    return found
