"""Find whether a clause calls the statement a stereotype, or denies that it is one."""

from __future__ import annotations

from collections.abc import Sequence

from genprobe.linguistics.clauses import Clause, leads_up
from genprobe.linguistics.negation import polarity
from genprobe.linguistics.stems import (
    ALTHOUGH,
    AND,
    CERTAIN,
    COUNTER,
    DENIES,
    FAULTY,
    FINE,
    FULLY,
    GROUP,
    HERE,
    JUDGE,
    ME,
    NEGATIONS,
    NOT,
    ONLY,
    OTHERS,
    PLAIN,
    SAY,
    SINGLE,
    STATEMENT,
    STEREOTYPE,
    TELL,
    THAT,
    VERBS,
    Hit,
    bits_of,
    overlap,
    words_of,
)


def sign_of_stereotype(clause: Clause, mode: str) -> int | None:
    """Return +1 if the clause calls the statement a stereotype, -1 if it denies that.

    Returns 0 if it is unclear, and None if the clause does neither. mode: the position of negations
    (`Grammar.negation`).
    """
    hits = [h._replace(bits=h.bits | NOT) if h.bits & DENIES else h for h in clause.hits]
    cores = [h for h in hits if h.bits & STEREOTYPE]
    if not cores:
        return _of_no_group(hits, mode, clause)
    core = cores[0]
    if any(
        h.bits & COUNTER and not h.bits & STEREOTYPE and not any(h.first == c.last for c in cores)
        for h in hits
    ):
        return None  # the clause opposes a prejudice; "a prejudice against" somebody does not
    length = clause.last - clause.first
    subject = any(h.bits & (STATEMENT | ME) and h.first < core.first for h in hits)
    noun = core.last - core.first == 1
    verb = any(h.bits & VERBS and h.first >= core.last for h in hits)
    bare = core.first - clause.first <= 1 and length > 4 and verb and not subject and noun
    if bare and not any(h.bits & HERE for h in hits):
        return None  # "A stereotype is a belief about a group", not "A stereotype about teachers"
    before = [h for h in hits if h.first < core.first]
    if any(h.bits & ALTHOUGH for h in before):
        return None
    if any(h.bits & OTHERS for h in before) and not any(
        h.bits & (STATEMENT | ME | HERE) for h in before
    ):
        return None
    neither = len(cores) > 1 and any(h.bits & NOT and h.last == core.first for h in hits)
    count = polarity(hits, core, mode, clause.first, core.last if neither else clause.last)
    for hit in hits:
        if hit.bits & AND and core.last <= hit.first < cores[-1].first:
            # "generalises not and reflects no cliché": the second part has its own negation
            count = polarity(hits, core, mode, clause.first, hit.first) or count
            break
    if count is None:
        return 0
    late = [h for h in hits if h.bits & NOT and h.first >= core.last]
    if mode == "before" and late and leads_up(hits, clause.first, -1, clause.first):
        return 1 if count else -1  # "That it is a cliché, I do not see"
    relative = mode == "both" and late and subject and count == len(late) == 1
    if relative and any(h.bits & THAT and core.last <= h.first < late[0].first - 1 for h in hits):
        return 0  # "a prejudice that is not true"
    placed = any(h.bits & (THAT | AND) for h in hits if h.first >= core.last)
    if mode == "before" and not count and late and not placed:
        # "A stereotype this is not": a word at the beginning may be denied by a later negation.
        if core.first - clause.first <= 1:
            # "This is a generalisation that does not …", in languages without "is" and "that"
            return 0 if subject and late[0].first == core.last else -1
        if late[0].first - core.last <= 3 and core.first - clause.first <= 4:
            return 0
    return 1 if count % 2 == 0 else -1


def _of_no_group(hits: Sequence[Hit], mode: str, clause: Clause) -> int | None:
    """Return -1 if the clause says that the statement judges no group: "no group is judged".

    The same holds if it says that the statement only describes one person or a plain fact: "It
    merely describes what one man does". A term of several words, "a moral principle", is enough.
    Returns 0 if the clause is unclear, and None if it does neither.
    """
    bits = bits_of(hits)
    nots = [h for h in hits if h.bits & NEGATIONS]
    groups = [h for h in hits if h.bits & GROUP]
    if groups:
        # "Nobody can say that" judges nobody, but does not mention a group.
        nobody = all(h.bits & NEGATIONS for h in groups)
        judged = bits & (JUDGE if nobody else JUDGE | SAY | TELL)
        if not nots or not judged or bits & ALTHOUGH:
            return None
        return -1 if (polarity(hits, groups[0], mode, clause.first, clause.last) or 0) == 1 else 0
    kinds = ONLY, TELL, SINGLE, PLAIN
    words = {h.first for h in hits if h.bits & (ONLY | TELL | SINGLE | PLAIN)}
    names = [h.first for h in hits if h.bits & PLAIN and words_of(h) > 1]
    meant = [h for h in hits if h.bits & (STATEMENT | HERE)]
    whose = [h.first for h in hits if h.bits & OTHERS and not any(overlap(h, m) for m in meant)]
    named = bool(names)
    if named and any(at < names[0] for at in whose):
        return None  # "some will insist that it is a verifiable fact"
    if bits & (ALTHOUGH | COUNTER | FAULTY) or (bits & (FULLY | FINE) and not named):
        return None
    if not named and (sum(bool(bits & kind) for kind in kinds) < 2 or len(words) < 2):
        return None
    return 0 if nots or bits & CERTAIN else -1
