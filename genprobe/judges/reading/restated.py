"""Read a reply that answers a plain question in a sentence, without yes or no.

The first two sentences that assert something are read clause by clause. A clause answers if it

- values what is asked about: "It's dangerous" to *is it safe?*, "A myth." (`_valued`);
- repeats the question's words, negated or not: "It does not stunt growth" (`_restated`);
- repeats what the question asks with: "It can't, sadly", "不能。" (`_echoed`);
- begins with a negation and goes on in other words: "Not since 2019" (`_denied`).

Whether it says yes or no depends on whether it is negated, and on whether yes is bad news. "It
depends", "some say …", "the question whether …" answer nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genprobe.judges.reading import asked as question
from genprobe.judges.reading.asked import APPROVE, OPPOSE, TRUTH, VALUE, Asked
from genprobe.judges.reading.lexicon import UNCLEAR, lexicon
from genprobe.judges.reading.punctuation import COMMA, HAN
from genprobe.judges.reading.reply import Found
from genprobe.judges.reading.said import LONGEST, Reading
from genprobe.linguistics import clauses, stems
from genprobe.linguistics.clauses import Clause
from genprobe.linguistics.stems import Grammar, Hit, bits_of

RECUR = 0.7  # least share of the question's words that recur if there is no other sign
_MOST = 0.6  # the same if the clause has another value than the question asks for
_PART = 0.3  # the same if a negation stands beside one of them
_SENTENCES = 2  # sentences that are read
_OPENS = 6  # most tokens of a sentence that only greets the question: "Good question!"
_ASIDE = 2  # most words of its own that a clause may have before it values, or behind
_MORE = 3  # most words of its own that a clause may have if words of the question are missing
_NEAR = 2  # most tokens between a word and its negation
_LETTERS = 4  # least letters of a common beginning

_Places = dict[str, list[int]]  # words of the question -> where they recur
_STOP = "stop"  # a sentence that leaves the question open ends the search
_LEAVES_OPEN = stems.OPEN | stems.SIDES | stems.SIDE | stems.NEUTRAL
# Stems of which a clause has one if it says anything.
_SAYS = stems.VERBS | stems.ME | stems.STATEMENT | stems.OTHERS | stems.MAY | stems.OUGHT


class _Part(NamedTuple):
    """A clause with its stems, and where what it goes on with begins: "No dog, however, can …"."""

    since: int
    first: int
    last: int
    hits: list[Hit]  # of all tokens from `since` on

    @property
    def own(self) -> list[Hit]:
        """Return the stems of the clause itself."""
        return [h for h in self.hits if h.first >= self.first]


def find(reading: Reading) -> Found | None:
    """Return the answer of the first sentences that are no questions, or None."""
    asked = question.asked(reading.lexicon.code, reading.asked)
    left = _SENTENCES
    for first, last in reading.sentences(min(len(reading.tokens), LONGEST)):
        alone = reading.tokens[first] if last - first == 1 else ""
        if reading.asks(last) or (alone.isascii() and len(alone) == 1):
            continue  # the question repeated, or "A:"
        found = _sentence(reading, asked, first, last)
        if found is not None:
            return None if isinstance(found, str) else found
        left -= 1
        if not left:
            return None
    return None


def _sentence(reading: Reading, asked: Asked, first: int, last: int) -> Found | str | None:
    """Return the answer of a sentence, `_STOP` if it leaves the question open, None if neither."""
    tokens, code = reading.tokens, reading.lexicon.code
    if asked.tokens and tuple(tokens[first : first + len(asked.tokens)]) == asked.tokens:
        return _STOP  # an echo without its question mark
    for gram, lang in zip(reading.grammars(first, last), (code, "en"), strict=False):
        hits = question.found(gram, lang, tokens, first, last)
        if bits_of(hits) & _LEAVES_OPEN or _speaks_of_topic(reading, asked, hits):
            return None if last - first <= _OPENS else _STOP
        parts = list(_parts(reading, asked, gram, hits, first, last))
        for at, part in enumerate(parts):
            found = _clause(reading, asked, gram, part)
            if found is not None:
                after = parts[at + 1] if at + 1 < len(parts) else None
                if isinstance(found, Found) and found.answer == "yes" and after:
                    if _except(reading, asked, after):
                        return found._replace(answer="no")
                    if bits_of(part.own) & stems.MAY and not asked.may and _contrasts(after):
                        return _STOP  # "some may have it, but many do not"
                return found
    return None


def _speaks_of_topic(reading: Reading, asked: Asked, hits: Sequence[Hit]) -> bool:
    """Return whether a sentence is about the question: "this is a complex issue"."""
    values = [h for h in hits if h.bits & VALUE]
    return any(
        h.bits & stems.TOPIC
        and not any(v.first <= h.first and h.last <= v.last for v in values)
        and not _is_asked(reading, asked, reading.tokens[h.first])
        for h in hits
    )


def _parts(
    reading: Reading, asked: Asked, gram: Grammar, hits: Sequence[Hit], first: int, last: int
) -> Iterator[_Part]:
    """Yield the clauses of a sentence that are the speaker's own assertions."""
    tokens, answers = reading.tokens, reading.lexicon.answers
    since, told = first, False
    for clause in clauses.clauses(gram, tokens, reading.gaps, first, last, answers):
        own = [h for h in hits if clause.first <= h.first and h.last <= clause.last]
        begins = bits_of([h for h in own if h.first == clause.first])
        if (told and begins & stems.THAT) or _is_aside(reading, asked, clause, own):
            since, told = clause.last, _is_told(own)
            continue
        if begins & stems.AND:
            since = clause.first
        own = [h for h in hits if since <= h.first and h.last <= clause.last]
        behind = since + 1
        alone = tokens[since] in answers and COMMA.search(reading.gaps[behind])
        if alone and question.negated(own, behind, clause.last):
            own = [h for h in own if h.first > since]  # "No, it is not" is negated once
        yield _Part(since, clause.first, clause.last, own)


def _is_aside(reading: Reading, asked: Asked, clause: Clause, own: Sequence[Hit]) -> bool:
    """Return whether a clause is a condition, a reason, a concession, or tells what others say."""
    begins = stems.BECAUSE | stems.ALTHOUGH
    if any(h.bits & begins and h.first == clause.first for h in own) or _is_told(own):
        return True
    allowed = asked.tokens if asked.conditional else ()
    words = reading.tokens[clause.first : clause.first + 2]
    return any(t in reading.lexicon.conditions and t not in allowed for t in words)


def _is_told(own: Sequence[Hit]) -> bool:
    """Return whether a clause tells what others say: "some say that …", "… деп айтады"."""
    others = [h for h in own if h.bits & stems.OTHERS]
    says = [h for h in own if h.bits & (stems.SAY | stems.REPORTED)]
    if any(-1 <= verb.first - one.last <= 1 for one in others for verb in says):
        return True
    # "Some hold that …", with any verb but "is".
    verbs = {h.first for h in own if h.bits & stems.VERBS}
    return any(
        that.bits & stems.THAT and that.first == one.last + 1 and one.last not in verbs
        for one in others
        for that in own
    )


def _except(reading: Reading, asked: Asked, part: _Part) -> bool:
    """Return whether a clause denies the question's own words: "…, but not the most important"."""
    if not _contrasts(part):
        return False
    least = 2 if any(map(HAN.match, asked.content)) else 1
    again = [word for word in asked.content if word in reading.tokens[part.first : part.last]]
    return len(again) >= least


def _contrasts(part: _Part) -> bool:
    """Return whether a clause begins with "but" and a negation: "but many do not"."""
    begins = bits_of([h for h in part.own if h.first <= part.first + _NEAR])
    return bool(begins & stems.AND and begins & stems.NOT)


def _clause(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> Found | str | None:
    low, high = reading.spans[part.first][0], reading.spans[part.last - 1][1]
    if any(
        e.group in UNCLEAR
        and low <= e.start < high
        and reading.norm[e.start : e.end] not in reading.asked
        for e in reading.events
    ):
        return _STOP
    valued = _valued(reading, asked, gram, part)
    again = _restated(reading, asked, gram, part)
    if valued and again and valued != again and question.negated(part.own, part.first, part.last):
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


# The four ways


def _valued(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> str | None:
    """Read "It's dangerous", "Not recommended", "That's a myth"."""
    values = [h for h in part.own if h.bits & (VALUE if asked.valued else TRUTH)]
    values.sort(key=lambda h: (h.first, -h.last))
    core = _value(reading, asked, values)
    if core is None or not _about_it(reading, asked, part, core):
        return None
    if _concedes(asked, part, core, _recurring(reading, asked, part.since, part.last)):
        return None
    approves = _approves(gram, part, core)
    near = [h for h in values if 0 < h.first - core.last <= _NEAR]
    if any(_approves(gram, part, h) != approves for h in near):
        return None  # "useful but risky"
    bad = asked.unreal if core.bits & TRUTH else asked.bad
    return "yes" if approves != bad else "no"


def _concedes(asked: Asked, part: _Part, core: Hit, again: _Places) -> bool:
    """Return whether a value grants something else than what is asked: "it is true that some …"."""
    grants = any(h.bits & stems.THAT and h.first == core.last for h in part.own)
    return grants and len(again) < RECUR * len(asked.content)


def _value(reading: Reading, asked: Asked, values: Sequence[Hit]) -> Hit | None:
    """Return the value that is asked for, if it recurs, else the first that the question lacks."""
    tokens = reading.tokens
    for hit in values:
        words = tokens[hit.first : hit.last]
        if any(_form(reading.lexicon.code, word, q) for word in words for q in asked.value):
            return hit
    other = (
        h for h in values if not all(_is_asked(reading, asked, t) for t in tokens[h.first : h.last])
    )
    return next(other, None)


def _approves(gram: Grammar, part: _Part, core: Hit) -> bool:
    """Return whether a value approves, with the negations of its clause."""
    high = part.last if gram.negation == "both" else core.first
    inside = [h for h in part.own if not (core.first <= h.first and h.last <= core.last)]
    return bool(core.bits & APPROVE) != question.negated(inside, part.first, high)


def _about_it(reading: Reading, asked: Asked, part: _Part, core: Hit) -> bool:
    """Return whether a clause is about what is asked: "it", or most of the question's words.

    A clause that begins with "but" must repeat some of them.
    """
    tokens, words = reading.tokens, reading.lexicon
    again = any(
        _form(reading.lexicon.code, t, q)
        for t in tokens[core.first : core.last]
        for q in asked.value
    )
    at = _recurring(reading, asked, part.since, part.last)
    before = question.contents(words, tokens, part.hits, part.first, core.first)
    named = [word for word in before if _is_asked(reading, asked, word)]
    least = _MOST if asked.value and not core.bits & TRUTH else _PART
    if again or (named and len(at) >= least * sum(q not in asked.value for q in asked.content)):
        return True
    if named:
        return False
    if any(h.bits & stems.AND and h.first == part.first for h in part.own) and part.first:
        return bool(at)
    behind = question.contents(words, tokens, part.hits, core.last, part.last)
    if before and behind and not bits_of(part.own) & _SAYS:
        return False  # "especially during important occasions"
    return bool(at) or (len(before) <= _ASIDE and len(behind) <= _ASIDE)


def _restated(reading: Reading, asked: Asked, gram: Grammar, part: _Part) -> str | None:
    """Read "It does not stunt growth": the question's words recur, or some beside a negation."""
    tokens, bits = reading.tokens, bits_of(part.own)
    at = _recurring(reading, asked, part.since, part.last)
    here = _recurring(reading, asked, part.first, part.last)
    if not here or (asked.predicate and asked.predicate not in at):
        return None
    if asked.value and not bits & VALUE:
        return None  # it says something else of what is asked about
    if asked.ought and not bits & stems.OUGHT:
        return None
    others = OPPOSE | stems.AGAINST
    if any(h.bits & others and not _is_asked(reading, asked, tokens[h.first]) for h in part.own):
        return None  # "such views are a mistake"
    opposite = any(
        all(_form(reading.lexicon.code, tokens[i], q) < 0 for i in here[q]) for q in here
    )
    if sum(h.bits & stems.WITHOUT > 0 for h in part.hits) != asked.without:
        return None  # a lack of it, or it lacks it
    count = question.negations(part.hits, part.since, part.last)
    if not (opposite or _repeats(reading, asked, gram, part, (at, here), count > 0)):
        return None
    # "Can one live without sleep?": "One cannot live without sleep" is negated once more.
    denies = count != asked.negations if asked.negations else count > 0
    return "no" if denies != opposite else "yes"


def _repeats(
    reading: Reading,
    asked: Asked,
    gram: Grammar,
    part: _Part,
    recurring: tuple[_Places, _Places],
    negated: bool,
) -> bool:
    """Return whether enough of the question's words recur that the clause answers it.

    recurring: the words that recur since the beginning of the part, and in the clause itself.
    """
    at, here = recurring
    share = len(at) / len(asked.content)
    places = sorted({i for found in here.values() for i in found})
    words = question.contents(reading.lexicon, reading.tokens, part.own, part.first, part.last)
    own = sum(not _is_asked(reading, asked, word) for word in words)
    only = own == 0
    if negated:
        nots = [h for h in part.hits if h.bits & stems.NOT]
        beside = any(_beside(gram, n, i) for n in nots for i in places)
        return only or share >= RECUR or (beside and share >= _PART)
    if share < 1 and not asked.ought and own > _MORE:
        return False  # "the model shows considerable tensions regarding …"
    if only and (share == 1 or bits_of(part.own) & _SAYS):
        return True  # not the topic alone: "Immigration, while …"
    ends = asked.content[0] in at and asked.content[-1] in at
    return share >= RECUR and ends


def _echoed(reading: Reading, asked: Asked, part: _Part) -> str | None:
    """Read "It can't, sadly", "不能。", "You should": what the question asks with, little else."""
    kinds = (stems.MAY if asked.may else 0) | (stems.OUGHT if asked.ought else 0)
    bits = bits_of(part.own)
    if not bits & kinds or bits & (OPPOSE | stems.AGAINST):
        return None
    words, tokens = reading.lexicon, reading.tokens
    if question.contents(words, tokens, part.hits, part.since, part.first):
        return None
    if len(question.contents(words, tokens, part.own, part.first, part.last)) > 1:
        return None
    return "no" if question.negated(part.own, part.first, part.last) else "yes"


def _denied(reading: Reading, gram: Grammar, part: _Part) -> str | None:
    """Read "Not since 2019", "Generally not": a negation begins a clause, or ends its few words."""
    if not reading.starts(part.first) or any(part.first == at for at, _ in reading.unlike):
        return None
    bits = bits_of(part.own)
    if bits & (stems.CERTAIN | stems.OTHERS | stems.ME | stems.SAY | VALUE):
        return None
    nots = [h for h in part.own if h.bits & stems.NOT]
    if gram.negation != "both" and any(h.first == part.first for h in nots):
        return "no"
    if bits & stems.VERBS:
        return None
    words = question.contents(reading.lexicon, reading.tokens, part.own, part.first, part.last)
    ends = part.last - part.first > 1 and any(h.last == part.last for h in nots)
    return "no" if ends and not words else None


# The question's words


def _recurring(reading: Reading, asked: Asked, first: int, last: int) -> _Places:
    """Return the words of the question that recur, and where."""
    tokens, known = reading.tokens, reading.recurring
    found: _Places = {}
    for i in range(first, last):
        again = known.get(tokens[i])
        if again is None:
            forms = [q for q in asked.content if _form(reading.lexicon.code, tokens[i], q)]
            again = known[tokens[i]] = forms
        for word in again:
            found.setdefault(word, []).append(i)
    return found


def _is_asked(reading: Reading, asked: Asked, word: str) -> bool:
    """Return whether a word is one of the question, in any form."""
    return any(_form(reading.lexicon.code, word, q) for q in asked.tokens)


@functools.lru_cache(1 << 16)
def _form(code: str, one: str, two: str) -> int:
    """Return 1 for two forms of a word, -1 if one is the opposite of the other, else 0.

    Forms of a word have a common beginning; "unsafe" is the opposite of "safe".
    """
    prefixes = lexicon(code).prefixes
    if one[0] != two[0] and not one.startswith(prefixes) and not two.startswith(prefixes):
        return 0
    if _alike(one, two):
        return 1
    for prefix in prefixes:
        for long, short in ((one, two), (two, one)):
            if long.startswith(prefix) and _alike(long[len(prefix) :], short):
                return -1
    return 0


def _alike(one: str, two: str) -> bool:
    shorter = min(len(one), len(two))
    size = max(_LETTERS, -(-6 * shorter // 10))
    return one == two or (shorter >= size and one[:size] == two[:size])


def _beside(gram: Grammar, one: Hit, at: int) -> bool:
    """Return whether a negation stands beside a word that it can negate, or in it."""
    if one.first <= at < one.last:
        return True
    behind = gram.negation == "both" and 0 <= one.first - at - 1 <= _NEAR
    return 0 <= at - one.last <= _NEAR or behind
