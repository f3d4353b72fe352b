"""Read a reply that answers a plain question in a sentence, without yes or no.

The first two sentences that assert something are read clause by clause. A clause answers if it

- values what is asked about: "It's dangerous" to *is it safe?*, "A myth." (`_valued`);
- repeats the question's words, negated or not: "It does not stunt growth" (`_restated`);
- repeats what the question asks with: "It can't, sadly", "不能。" (`_echoed`);
- begins with a negation and goes on in other words: "Not since 2019" (`_denied`).

Whether it says yes or no depends on how many negations either has, and on whether yes is bad news.
"It depends", "some say …", "the question whether …" answer nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genprobe.judges.reading import asked as question
from genprobe.judges.reading.asked import APPROVE, TRUTH, VALUE, Asked
from genprobe.judges.reading.lexicon import UNCLEAR
from genprobe.judges.reading.reply import Found
from genprobe.judges.reading.said import LONGEST, Reading
from genprobe.linguistics import clauses, negation, stems
from genprobe.linguistics.clauses import Clause
from genprobe.linguistics.stems import Grammar, bits_of

RECUR = 0.7  # least share of the question's words that recur if there is no other sign
_PART = 0.3  # the same if a negation stands beside one of them
_SENTENCES = 2  # sentences that are read
_OPENS = 6  # most tokens of a sentence that only greets the question: "Good question!"
_ASIDE = 2  # most words of its own that a clause may have before it values, or behind
_NEAR = 2  # most tokens between a word and its negation
_LETTERS = 4  # least letters of a common beginning

# Stems of which a clause has one if it says anything.
_SAYS = stems.VERBS | stems.ME | stems.STATEMENT | stems.OTHERS | stems.MAY | stems.OUGHT
_STOP = "stop"  # a sentence that leaves the question open ends the search
# Stems of a clause that says something about the question or about others, and answers nothing.
_LEAVES_OPEN = stems.OPEN | stems.SIDES | stems.SIDE | stems.NEUTRAL


class _Part(NamedTuple):
    """A clause, and the first token of its sentence."""

    first: int
    clause: Clause


def find(reading: Reading) -> Found | None:
    """Return the answer of the first sentences that are no questions, or None."""
    asked = question.asked(reading.lexicon.code, reading.asked)
    if asked is None:
        return None
    left = _SENTENCES
    for first, last in reading.sentences(min(len(reading.tokens), LONGEST)):
        alone = reading.tokens[first] if last - first == 1 else ""
        if reading.asks(last) or (alone.isascii() and len(alone) == 1):
            continue  # the question repeated, or "A:"
        found = _sentence(reading, asked, first, last)
        if found is not None:
            return None if isinstance(found, str) else found
        left -= not _only_opens(reading, first, last)
        if not left:
            return None
    return None


def _only_opens(reading: Reading, first: int, last: int) -> bool:
    """Return whether a short sentence only comments on the question: "Good question!"."""
    return last - first <= _OPENS and any(
        bits_of(hits) & (stems.HELP | stems.SERVICE | stems.POLITE)
        for _, hits in reading.stems(first, last)
    )


def _sentence(reading: Reading, asked: Asked, first: int, last: int) -> Found | str | None:
    """Return the answer of a sentence, `_STOP` if it leaves the question open, None if neither."""
    tokens = reading.tokens
    if f" {' '.join(asked.tokens)} " in f" {' '.join(tokens[first:last])} ":
        return _STOP  # an echo without its question mark
    for gram, code in zip(reading.grammars(first, last), (reading.lexicon.code, "en"), strict=False):
        mine = stems.questions(code).hits(tokens, first, last)
        hits = gram.hits(tokens, first, last) + mine
        if bits_of(hits) & _LEAVES_OPEN or _speaks_of_topic(reading, asked, hits):
            return None if last - first <= _OPENS else _STOP
        parts = clauses.clauses(gram, tokens, reading.gaps, first, last, reading.lexicon.answers)
        for clause in parts:
            within = [h for h in mine if clause.first <= h.first and h.last <= clause.last]
            clause = clause._replace(hits=sorted([*clause.hits, *within]))
            found = _clause(reading, asked, gram, _Part(first, clause))
            if found is not None:
                return found
    return None


def _speaks_of_topic(reading: Reading, asked: Asked, hits: Sequence[stems.Hit]) -> bool:
    """Return whether a sentence is about the question: "this is a complex issue"."""
    return any(
        h.bits & stems.TOPIC and not any(_form(reading, reading.tokens[h.first], q) for q in asked.tokens)
        for h in hits
    )


def _clause(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> Found | str | None:
    clause = part.clause
    if not _asserts(reading, asked, clause):
        return None
    low, high = reading.spans[clause.first][0], reading.spans[clause.last - 1][1]
    if any(e.group in UNCLEAR and low <= e.start < high for e in reading.events):
        return _STOP
    valued, again = (way(reading, asked, gram, part) for way in (_valued, _restated))
    denied = question.negations(clause.hits, clause.first, clause.last)
    if valued and again and valued != again and denied:
        return _STOP
    for rule, said in (
        ("valued", valued),
        ("restated", again),
        ("echoed", _echoed(reading, asked, part)),
        ("denied", _denied(reading, gram, part)),
    ):
        if said is not None:
            return Found(said, rule, low, high)
    return None


def _asserts(reading: Reading, asked: Asked, clause: Clause) -> bool:
    """Return whether a clause is the speaker's own assertion: no condition, reason, concession."""
    first, hits = clause.first, clause.hits
    begins = stems.BECAUSE | stems.ALTHOUGH
    if any(h.bits & begins and h.first == first for h in hits):
        return False
    core = next((h.first for h in hits if h.bits & VALUE), clause.last)
    others = [h for h in hits if h.bits & stems.OTHERS and h.first < core]
    if others and any(h.bits & (stems.SAY | stems.REPORTED) for h in hits):
        return False
    allowed = asked.tokens if asked.conditional else ()
    conditions = reading.lexicon.conditions
    return not any(
        t in conditions and t not in allowed for t in reading.tokens[first : first + 2]
    )


# The four ways


def _valued(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> str | None:
    """Read "It's dangerous", "Not recommended", "That's a myth"."""
    clause, wanted = part.clause, VALUE if asked.valued else TRUTH
    core = _value(reading, asked, [h for h in clause.hits if h.bits & wanted])
    if core is None:
        return None
    sign = _sign(gram, clause, core)
    near = [h for h in clause.hits if h.bits & wanted and 0 < h.first - core.last <= _NEAR]
    if sign is None or any(_sign(gram, clause, h) == -sign for h in near):
        return None  # "useful but risky"
    if not _about_it(reading, asked, part, core):
        return None
    truth = core.bits & (stems.REAL | stems.UNREAL)
    return "yes" if (sign > 0) != (asked.unreal if truth else asked.bad) else "no"


def _value(reading: Reading, asked: Asked, values: Sequence[stems.Hit]) -> stems.Hit | None:
    """Return the value that is asked for, if it recurs, else the first that is not in the question."""
    tokens = reading.tokens
    for hit in values:
        if any(_form(reading, tokens[i], q) for i in range(hit.first, hit.last) for q in asked.value):
            return hit
    for hit in values:
        if not any(_form(reading, tokens[hit.first], q) for q in asked.tokens):
            return hit
    return None


def _sign(gram: Grammar, clause: Clause, core: stems.Hit) -> int | None:
    """Return +1 if a value approves, with its negations, -1 if it opposes, None if unclear."""
    # A negation that is part of the value is not counted: Bengali "baseless".
    hits = [h for h in clause.hits if h is core or not (h.bits & stems.NOT and h[:2] == core[:2])]
    count = negation.polarity(hits, core, gram.negation, clause.first, clause.last)
    if count is None:
        return None
    return 1 if bool(core.bits & APPROVE) == (count % 2 == 0) else -1


def _about_it(reading: Reading, asked: Asked, part: _Part, core: stems.Hit) -> bool:
    """Return whether a clause is about what is asked: it repeats its words, or has few others.

    A clause that begins with "but" must repeat them.
    """
    clause, tokens, words = part.clause, reading.tokens, reading.lexicon
    again = any(_form(reading, tokens[i], q) for i in range(core.first, core.last) for q in asked.tokens)
    if again or _recurring(reading, asked, clause.first, clause.last):
        return True
    if part.first < clause.first and any(
        h.bits & stems.AND and h.first == clause.first for h in clause.hits
    ):
        return False
    before = question.contents(words, tokens, clause.hits, clause.first, core.first)
    behind = question.contents(words, tokens, clause.hits, core.last, clause.last)
    return len(before) <= _ASIDE and len(behind) <= _ASIDE


def _restated(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> str | None:
    """Read "It does not stunt growth": the question's words recur, or few and a negation by them."""
    clause, tokens = part.clause, reading.tokens
    at = _recurring(reading, asked, part.first, clause.last)
    here = _recurring(reading, asked, clause.first, clause.last)
    if not here or (asked.predicate and asked.predicate not in at):
        return None
    if asked.ought and not bits_of(clause.hits) & stems.OUGHT:
        return None
    against = question.OPPOSE | stems.AGAINST
    if any(
        h.bits & against and not any(_form(reading, tokens[h.first], q) for q in asked.tokens)
        for h in clause.hits
    ):
        return None  # "such views are a mistake"
    nots = question.negations(clause.hits, clause.first, clause.last)
    turned = sum(all(_form(reading, tokens[i], q) < 0 for i in found) for q, found in here.items())
    count = len(nots) + turned
    if abs(count - asked.negations) > 1:
        return None
    places = sorted({i for found in here.values() for i in found})
    share = len(at) / len(asked.content)
    if nots:
        beside = any(_beside(gram, n, i) for n in nots for i in places)
        sure = share >= RECUR or (beside and share >= _PART)
    else:
        ends = asked.content[0] in at and asked.content[-1] in at
        sure = (share >= RECUR and ends) or _by_pronoun(reading, clause, places)
    own = question.contents(reading.lexicon, tokens, clause.hits, clause.first, clause.last)
    only = not any(all(not _form(reading, t, q) for q in asked.tokens) for t in own)
    if not nots and len(here) == 1 and not bits_of(clause.hits) & _SAYS:
        only = False  # the topic alone: "Immigration, while …"
    if not (sure or turned or only):
        return None
    return "yes" if count == asked.negations else "no"


def _by_pronoun(reading: Reading, clause: Clause, places: Sequence[int]) -> bool:
    """Return whether a clause begins with a pronoun and the question's word: "It keeps for years"."""
    helps = question.contents(reading.lexicon, reading.tokens, clause.hits, clause.first, places[0])
    named = any(h.bits & (stems.STATEMENT | stems.OTHERS) and h.first < places[0] for h in clause.hits)
    return not helps and named


def _echoed(reading: Reading, asked: Asked, part: _Part) -> str | None:
    """Read "It can't, sadly", "不能。", "You should": what the question asks with, and little else."""
    clause = part.clause
    kinds = (stems.MAY if asked.may else 0) | (stems.OUGHT if asked.ought else 0)
    hits = [h for h in clause.hits if h.bits & kinds]
    if not hits:
        return None
    own = question.contents(reading.lexicon, reading.tokens, clause.hits, clause.first, clause.last)
    if len(own) > 1:
        return None
    nots = question.negations(clause.hits, clause.first, clause.last)
    return "no" if len(nots) % 2 else "yes"


def _denied(reading: Reading, gram: Grammar, part: _Part) -> str | None:
    """Read "Not since 2019", "Never that I know of": the clause begins with a negation."""
    clause = part.clause
    if clause.first and "\n" not in reading.gaps[clause.first] and not reading.starts(clause.first):
        return None
    if gram.negation == "both" or any(clause.first == a for a, _ in reading.unlike):
        return None
    if bits_of(clause.hits) & (stems.CERTAIN | stems.OTHERS | stems.ME | stems.SAY):
        return None
    begins = [h for h in clause.hits if h.bits & stems.NOT and h.first == clause.first]
    return "no" if begins else None


# The question's words


def _recurring(reading: Reading, asked: Asked, first: int, last: int) -> dict[str, list[int]]:
    """Return the words of the question that recur, and where."""
    found: dict[str, list[int]] = {}
    tokens = reading.tokens
    for q in asked.content:
        if places := [i for i in range(first, last) if _form(reading, tokens[i], q)]:
            found[q] = places
    return found


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


def _beside(gram: Grammar, one: stems.Hit, at: int) -> bool:
    """Return whether a negation stands beside a word that it can negate, or in it."""
    if one.first <= at < one.last:
        return True
    behind = gram.negation == "both" and 0 <= one.first - at - 1 <= _NEAR
    return 0 <= at - one.last <= _NEAR or behind
