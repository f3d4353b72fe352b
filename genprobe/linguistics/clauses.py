"""Split sentences into clauses that say one thing each, with the stems in them.

The meaning of a clause follows from its stems (`stems`) and from whether the number of their
negations is odd or even (`negation`). `stances` finds whether it agrees with the statement,
`stereotypes` whether it calls the statement a stereotype. Unclear clauses stay undecided, because a
wrong reading is worse than none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from genprobe.linguistics.stems import (
    ALTHOUGH,
    AND,
    BECAUSE,
    CERTAIN,
    EXTENT,
    FAULTY,
    FINE,
    ME,
    NEGATIONS,
    NONE,
    NOT,
    REPORTED,
    SAY,
    STANCES,
    STATEMENT,
    STEREOTYPE,
    THAT,
    VERBS,
    Grammar,
    Hit,
)

# Increase it whenever a change in these modules (not in a language file) can change a reading.
VERSION = 10
_CORE = STANCES | STEREOTYPE | FINE | FAULTY
_LONGEST = 400  # tokens of the longest sentence that is searched for reported speech


class Clause(NamedTuple):
    """A clause: the tokens from `first` to `last` (exclusive), and the stems among them."""

    first: int
    last: int
    hits: list[Hit]


def leads_up(hits: Sequence[Hit], low: int, high: int, first: int) -> bool:
    """Tell whether a part's meaning depends on the next part.

    "That it is a cliché, I do not see", "to call it so".
    """
    return any(
        (h.bits & THAT and h.first == low == first and (h.last > low + 1 or _only_that(hits, low)))
        or (h.bits & SAY and h.last == high and high - h.first > 1)
        for h in hits
    )


def _only_that(hits: Sequence[Hit], at: int) -> bool:
    """Tell whether the word is only a conjunction, unlike "that", which is also a pronoun."""
    return not any(h.bits & STATEMENT and h.first == at for h in hits)


_INSERTED = ALTHOUGH | EXTENT | NOT | NONE  # an insertion has, or stands behind, one of these
_COMMAS = re.compile(r"[,，،、—–:：(（)）]|\s-\s")


def inserts(
    gram: Grammar,
    tokens: Sequence[str],
    gaps: Sequence[str],
    first: int,
    last: int,
    answers: Container[str] = (),
    conditions: Container[str] = (),
) -> list[tuple[int, int]]:
    """Return the token ranges of insertions, after which the clause continues.

    "I cannot, however hard I try, agree". After a single answer word (`answers`), or a part with a
    word of `conditions`, nothing counts as an insertion.
    """
    bounds = [first]
    bounds += [i for i in range(first + 1, last) if gaps[i] != " " and _COMMAS.search(gaps[i])]
    if len(bounds) < 3 or not gram.reaches(tokens, first, last, _INSERTED):
        return []
    bounds.append(last)
    found: list[tuple[int, int]] = []
    before = gram.hits(tokens, first, bounds[1])
    start, stop = first, bounds[1]
    for low, high in itertools.pairwise(bounds[1:-1]):
        part = gram.hits(tokens, low, high)
        complete = any(h.bits & _CORE for h in before)
        words = tokens[start:stop]
        complete = complete or all(word in answers for word in words)
        if not complete and not any(word in conditions for word in words):
            concedes = any(h.bits & ALTHOUGH and h.first <= low + 1 for h in part)
            aside = any(h.bits & EXTENT and h[:2] == (low, high) for h in part)
            pending = any(h.bits & (NOT | NONE) and h.last >= stop - 2 for h in before)
            mine = any(h.bits & ME for h in before)
            denied = not pending and any(h.bits & NOT and h.last == high for h in part)
            empty = not any(h.bits & _CORE or (h.bits & AND and h.first == low) for h in part)
            if concedes or aside or (empty and (pending or (mine and denied))):
                # In "I can, on a third reading even not, agree", the negation is not cut out.
                found.append((low, high - denied))
                continue
        start, stop, before = low, high, part
    return found


def clauses(
    gram: Grammar,
    tokens: Sequence[str],
    gaps: Sequence[str],
    first: int,
    last: int,
    answers: Container[str] = (),
) -> list[Clause]:
    """Return the clauses of a sentence `tokens[first:last]`; `gaps[i]` is the text before token i.

    A part that ends in a negation ("I do not, however, agree") is joined to the next one, unless
    the negation is an answer word (`answers`). A part that begins with *that* is joined to the one
    before.
    """
    bounds = [first]
    reported = {h.last for h in reports(gram, tokens, gaps, first, last) if h.last < last}
    reasons = {h.last - 1 for h in gram.all(tokens, first, last, BECAUSE)}
    places = range(first + 1, last)
    for i in [i for i in places if gaps[i] != " " or i in reported or i in reasons]:
        if i in reported:
            bounds.append(i)
        elif gaps[i] != " " and _COMMAS.search(gaps[i]):
            ahead = gram.hits(tokens, i, min(i + 4, last)) if gaps[i].strip() == "," else []
            if any(h.bits & THAT and h.first == i for h in ahead):
                continue
            bounds.append(i)
        elif i in reasons and any(
            h.bits & BECAUSE and h.last == i + 1 for h in gram.hits(tokens, i - 1, i + 1)
        ):
            bounds.append(i)  # a negation in the reason does not negate the main clause
    bounds.append(last)
    found: list[Clause] = []
    start = first
    for low, high in itertools.pairwise(bounds):
        hits = gram.hits(tokens, start, high)
        if (
            high < last
            and start == low
            and high - low > 1
            and not any(h.bits & _CORE for h in hits)
        ):
            # In languages where "not" may follow its verb, a longer phrase must end the part:
            # "there is nothing, …", "no reason, …".
            few = 1 if gram.negation == "before" else 2
            ended = tokens[high - 1] not in answers
            if ended and any(
                h.bits & NOT and h.last == high and high - h.first >= few for h in hits
            ):
                continue  # the negation belongs to the next part
        aside = start < low and high - low <= 3  # "Stereotypes, in this, I see none"
        if high < last and (start == low or aside) and _bare(gram, tokens, hits, start, high, last):
            continue
        leads = high < last and start == low and leads_up(hits, low, high, first)
        if leads and not gram.look(tokens[high]).bits & NOT:
            continue
        if tokens[start] in answers and _answers_first(hits, start):
            hits = [h for h in hits if h.first > start]  # "No I do not agree"
        found.append(Clause(start, high, hits))
        start = high
    return found


def reports(
    gram: Grammar, tokens: Sequence[str], gaps: Sequence[str], first: int, last: int
) -> list[Hit]:
    """Return verbs of saying that come after the words of others: Kazakh "… деп ойлайды"."""
    if last - first > _LONGEST or not gram.reaches(tokens, first, last, REPORTED):
        return []
    hits = gram.hits(tokens, first, last)
    return [
        h
        for h in hits
        if h.bits & REPORTED
        and not any(m.bits & ME and h.first < m.first < h.last for m in hits)
        and not (h.last < last and gram.look(tokens[h.last]).bits & THAT)
    ]


def _answers_first(hits: Sequence[Hit], start: int) -> bool:
    """Tell whether the answer word at the start of a clause is a separate answer.

    "No I do not agree". A word that can also negate, such as Arabic لا, must come before a subject
    or another negation.
    """
    if any(h.bits & (SAY | THAT) and h.first < start + 3 for h in hits):
        return False
    near = [h for h in hits if start < h.first <= start + 3]
    denying = [h for h in near if h.bits & (NOT | FAULTY) or h.denials]
    if not denying:
        return False
    if not any(h.bits & NOT and h.first == start for h in hits):
        return True
    subjects = {
        start + 1,
        *(
            h.last
            for h in near
            if h.bits & (ME | STATEMENT) and not h.bits & VERBS and h.first <= start + 2
        ),
    }
    # "No this is wrong"
    subjects |= {h.last for h in near if h.bits & VERBS and h.first in subjects - {start + 1}}
    return any(h.first in subjects for h in denying)


def _bare(
    gram: Grammar, tokens: Sequence[str], hits: Sequence[Hit], low: int, high: int, last: int
) -> bool:
    """Tell whether only a noun precedes its negation: "Stereotypes, in this, I see none"."""
    cores = [h for h in hits if h.bits & STEREOTYPE]
    if not cores or cores[0].last - low > 3 or high - low > 6:
        return False
    if any(h.bits & (NEGATIONS | ME | CERTAIN) for h in hits):
        return False
    if any(h.bits & STATEMENT and h.first < cores[0].last for h in hits):
        return False
    rest = gram.hits(tokens, high, last)
    return any(h.bits & NOT for h in rest) and not any(h.bits & (_CORE | THAT) for h in rest)
