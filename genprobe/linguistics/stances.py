"""Find whether a clause agrees or disagrees with the statement, or calls it true or false."""

from __future__ import annotations

from collections.abc import Sequence

from genprobe.linguistics.clauses import Clause
from genprobe.linguistics.negation import polarity
from genprobe.linguistics.stems import (
    ABLE,
    AGAINST,
    AGAINST_ME,
    ALTHOUGH,
    AND,
    FAULTY,
    FINE,
    FOR,
    FOR_ME,
    FULLY,
    HERE,
    ME,
    NEGATIONS,
    NOT,
    OPPOSITE,
    OR,
    OTHERS,
    OWN,
    PARTLY,
    POSSIBLE,
    REPORTED,
    SAME,
    SAY,
    STANCES,
    STATEMENT,
    STEREOTYPE,
    SUCH,
    THAT,
    VERBS,
    VERDICT,
    Hit,
    overlap,
    words_of,
)

# The sign of a clause that both agrees and disagrees.
BOTH = 2
_NEAR = 4  # most tokens between a verb of saying and its *that*
_JUDGED = STANCES | FINE | FAULTY


def sign_of_stance(clause: Clause, mode: str, me: bool) -> int | None:
    """Return the sign of a clause's stance on the statement.

    mode: the position of negations (`Grammar.negation`). me: whether the speaker was named before.
    Returns +1 if the clause agrees, -1 if it disagrees, `BOTH` if it does both, 0 if it is unclear,
    and None if it has no stance.
    """
    hits = clause.hits
    stances = _stances(clause, me)
    if stances is None or _is_reported(clause) or _cannot_be_said(clause, mode):
        return 0
    if not stances:
        return _verdict_on_statement(clause, mode)
    if _of_others(hits, stances[0], me):
        return None
    if any(h.bits & PARTLY for h in hits) or _on_another_question(hits, stances[0]):
        return 0
    signs = _signs(clause, stances, mode)
    if signs is None or 0 in signs:
        return None if signs is None else 0
    return BOTH if len(signs) > 1 else signs.pop()


def _of_others(hits: Sequence[Hit], core: Hit, me: bool) -> bool:
    """Tell whether a stance is only conceded or not the speaker's."""
    own = any(h.bits & ME and h.first < core.last for h in hits) or me
    before = [h for h in hits if h.first < core.first]
    # "The author hits the nail on the head": the idiom is the speaker's stance, not the author's.
    idiom = words_of(core) > 1
    others = [
        h
        for h in before
        if h.bits & OTHERS
        and not (idiom and any(s.bits & STATEMENT and s.first == h.first for s in before))
    ]
    although = any(h.bits & ALTHOUGH for h in before) and not _leans(hits)
    if although or (others and not own):
        return True
    if _theirs(hits, core):
        return True
    # The subject may follow the verb.
    return not own and any(h.bits & OTHERS and h.first == core.last for h in hits)


def _leans(hits: Sequence[Hit]) -> bool:
    """Tell whether a concession is the answer: "Hard to say, though I tend to disagree"."""
    conceded = [h.first for h in hits if h.bits & ALTHOUGH]
    return any(h.bits & VERDICT and h.first > min(conceded) for h in hits)


def _is_reported(clause: Clause) -> bool:
    """Tell whether the clause ends by ascribing its words to others: Kazakh "… деп ойлайды"."""
    hits = clause.hits
    verbs = [h for h in hits if h.bits & REPORTED and h.last >= clause.last - 1]
    if not verbs:
        return False
    verb = verbs[-1]
    cores = [h for h in hits if h.bits & _JUDGED and h.first <= verb.first and h.last <= verb.last]
    if not cores:
        return False
    # "I hold it right, and many hold it right" is the speaker's own view.
    mine = any(h.bits & ME and h.first < cores[0].first for h in hits)
    low = min(verb.first, (cores[0] if mine else cores[-1]).last)
    parts = ME | AND | ALTHOUGH
    return not any(
        h.bits & parts and low <= h.first < verb.last and h.first != verb.first for h in hits
    )


def _says_that(hits: Sequence[Hit], core: Hit) -> Hit | None:
    """Return the verb of saying whose *that* the judged words stand in, or None."""
    for verb in hits:
        if not verb.bits & SAY or overlap(verb, core):
            continue
        for that in hits:
            near = 0 <= that.first - verb.last <= _NEAR or -1 <= verb.first - that.last <= 1
            if that.bits & THAT and near:
                return verb
    return None


def _cannot_be_said(clause: Clause, mode: str) -> bool:
    """Tell whether the clause only says what cannot, or could, be said, or what others say.

    "I cannot say that it is wrong", "it could be argued that it is wrong", "linguists say that …".
    """
    hits = clause.hits
    core = next((h for h in hits if h.bits & (FINE | FAULTY)), None)
    if core is None or any(h.bits & STANCES for h in hits):
        return False
    possible = [h for h in hits if h.bits & POSSIBLE]
    if any(not _denied(hits, h, mode) for h in possible):
        return True
    verb = _says_that(hits, core)
    if verb is None:
        return False
    if any(h.bits & NOT for h in hits) and (core.bits & FAULTY or any(h.bits & ABLE for h in hits)):
        return True
    return (
        mode == "before"
        and verb.last <= core.first
        and not any(
            h.bits & (ME | NOT | FINE | FAULTY | STATEMENT) and h.first < verb.first for h in hits
        )
    )


def _denied(hits: Sequence[Hit], one: Hit, mode: str) -> bool:
    """Tell whether a negation stands beside a stem: "it cannot be true"."""
    return any(
        (
            h.bits & NOT
            and (0 <= one.first - h.last <= 1 or (mode == "both" and 0 <= h.first - one.last <= 1))
        )
        or (h.bits & NOT and overlap(h, one))
        for h in hits
    )


def _on_another_question(hits: Sequence[Hit], core: Hit) -> bool:
    """Tell whether the clause agrees that the statement is bad: "I agree that it is a cliché"."""
    named = HERE | STATEMENT
    for hit in hits:
        behind = [h for h in hits if h.first > hit.first]
        if hit.bits & THAT and core.last <= hit.first <= core.last + 1:
            said_of = any(h.bits & STATEMENT for h in behind)
        else:  # "I agree this is a cliché", Chinese 我同意这是…
            said_of = bool(hit.bits & named and hit.first == core.last) and any(
                h.bits & VERBS and h.first == hit.last for h in behind
            )
        if said_of and any(h.bits & (STEREOTYPE | FAULTY) for h in behind):
            return True
    return False


def _signs(clause: Clause, stances: Sequence[Hit], mode: str) -> set[int] | None:
    """Return the signs of a clause's stances, 0 for an unclear one; None if there are none."""
    hits = clause.hits
    signs: set[int] = set()
    before: tuple[bool, int] | None = None  # previous stance: (positive, sign)
    ands = _joints(hits)
    low = clause.first
    if mode == "both":
        # "It is not right and I do not accept it": negations before *and* no longer count.
        done = {end for h in hits if h.bits & NOT for end in (h.last, h.last + 1)}
        low = max([low, *(a for a in ands if a < stances[0].first and a in done)])
    for at, stance in enumerate(stances):
        after = stances[at + 1] if at + 1 < len(stances) else None
        cut = [a for a in ands if after and stance.last <= a < after.first]
        # "neither accept nor support": each verb has its own negation before it.
        apart = mode == "before" or (
            after is not None and any(h.bits & NOT and h.last == stance.first for h in hits)
        )
        high = after.first if after else clause.last
        if after:
            high = cut[-1] if cut else (stance.last if apart else high)
        count = polarity(hits, stance, mode, low, high)
        if count == 1 and any(
            h.bits & FULLY and low <= h.first < high and _just_behind_not(hits, h) for h in hits
        ):
            return None  # "I do not fully agree"
        if count == 0 and mode == "before" and len(stances) == 1:
            count = _behind_the_verb(clause, stance)
        if count is None:
            return {0}
        positive = bool(stance.bits & (FOR | FOR_ME))
        if after and not apart and not cut and positive == bool(after.bits & (FOR | FOR_ME)):
            continue  # "compatible with my values ... not": one thing is said
        if before and before[0] != positive:
            between = (h for h in hits if stances[at - 1].last <= h.first < stance.first)
            if any(h.bits & OR for h in between):
                return {0}  # "I can neither agree or disagree"
        sign = 1 if positive == (count % 2 == 0) else -1
        if before and count == 0 and before[0] == positive:
            sign = before[1]  # "I do not agree with or support it"
        before = positive, sign
        signs.add(sign)
        low = high
    return signs


def _joints(hits: Sequence[Hit]) -> list[int]:
    """Return the positions of each *and* that is not part of "neither … nor"."""
    pairs = [h for h in hits if h.bits & NOT and h.gap]
    return [
        h.first for h in hits if h.bits & AND and not any(p.first < h.first < p.last for p in pairs)
    ]


def _behind_the_verb(clause: Clause, core: Hit) -> int | None:
    """Count the negations after a verb that begins the clause; None if it is unclear.

    "Oppose it I will not".
    """
    if core.first != clause.first:
        return 0
    behind = [h for h in clause.hits if core.last <= h.first <= core.last + 3]
    nots = [h for h in behind if h.bits & NOT]
    if not nots or any(h.bits & (AND | THAT) for h in behind):
        return 0
    return 1 if any(h.last >= clause.last - 1 for h in nots) else None


def _theirs(hits: Sequence[Hit], core: Hit) -> bool:
    """Tell whether the stance is other people's: "I can see why some people would agree"."""
    before = [h for h in hits if h.first < core.first]
    others = [h.first for h in before if h.bits & OTHERS and not h.bits & ME]
    mine = [h.first for h in before if h.bits & ME]
    if not others or not mine or others[-1] < mine[-1]:
        return False
    return any(h.bits & (SAY | THAT | ALTHOUGH) and mine[-1] < h.first <= others[-1] for h in hits)


def _stances(clause: Clause, me: bool) -> list[Hit] | None:
    """Return the stems by which the clause agrees or disagrees, in order.

    Returns None if the clause mentions the speaker's own view, but its relation to the statement is
    unclear. "My values" and "mine" count as agreement ("it reflects my values") unless the clause
    itself states the relation: "my view is the opposite".
    """
    hits = clause.hits
    found = [
        h
        for h in hits
        if h.bits & (FOR | AGAINST)
        or (
            h.bits & (FOR_ME | AGAINST_ME)
            and (
                me
                or h.first - clause.first <= 1
                or any(o.bits & ME and o.first < h.first for o in hits)
                or any(o.bits & NOT and o.last == h.first for o in hits)
            )
        )
    ]
    found = [h for h in found if not _names_others(hits, h)]
    found = [h for h in found if not any(_stronger(h, other) for other in found)]
    opposite = [h.first for h in hits if h.bits & OPPOSITE]
    ands = [h.first for h in hits if h.bits & AND]
    for at in opposite:  # "I hold the opposite view"
        since = max((a for a in ands if a < at), default=-1)
        found = [h for h in found if not (h.bits & (FOR | FOR_ME) and since < h.first < at)]
    found += [
        hit._replace(bits=FOR if hit.bits & SAME else AGAINST)
        for hit in hits
        if hit.bits & (SAME | OPPOSITE)
        and _whose(hits, hit)
        and not any(overlap(hit, other) for other in found)
    ]
    mine = [h for h in hits if h.bits & OWN]
    others = [h for h in found if not any(overlap(h, own) for own in mine)]
    if others:
        found = others
    elif found and found[0].first == clause.first and clause.last - found[-1].last > 1:
        return None if any(overlap(found[0], own) for own in mine) else found
    return sorted(found)


def _stronger(one: Hit, two: Hit) -> bool:
    """Tell whether the second of two opposed, overlapping stances wins, as it is more literal."""
    return bool(
        overlap(one, two)
        and one.size < two.size
        and bool(one.bits & (FOR | FOR_ME)) != bool(two.bits & (FOR | FOR_ME))
    )


def _whose(hits: Sequence[Hit], hit: Hit) -> bool:
    """Tell whether "the same" or "the opposite" describes the speaker's view.

    It does if the speaker is the last person named before these words. A mere "I" must be next to
    them: "I see it differently".
    """
    whose = [h for h in hits if h.bits & (OWN | OTHERS) or (h.bits & ME and _beside(h, hit))]
    if not any(h.bits & (ME | OWN) for h in whose):
        return False
    before = [h for h in whose if h.first < hit.first]
    return not before or bool(before[-1].bits & (ME | OWN))


def _beside(one: Hit, two: Hit) -> bool:
    return two.first - one.last <= 3 if one.first < two.first else one.first - two.last <= 2


def _names_others(hits: Sequence[Hit], stance: Hit) -> bool:
    """Tell whether a stance only names its holders: "supporters say …", "those who agree"."""
    if any(h.bits & ME and h.first < stance.first for h in hits):
        return False
    return any(h.bits & OTHERS and h.first <= stance.first and stance.last <= h.last for h in hits)


def _just_behind_not(hits: Sequence[Hit], fully: Hit) -> bool:
    return any(h.bits & NOT and h.last == fully.first for h in hits)


def _verdict_on_statement(clause: Clause, mode: str) -> int | None:
    """Return +1 if the clause calls the statement true or right, -1 if false or wrong.

    Returns 0 if it is unclear, and None if the clause does neither.
    """
    hits = clause.hits
    cores = [h for h in hits if h.bits & (FINE | FAULTY)]
    if not cores:
        return None
    core = cores[0]
    subject = [h for h in hits if h.bits & STATEMENT and h is not core]
    if any(h.bits & (SUCH | ALTHOUGH | PARTLY) for h in hits):
        return None
    if any(h.bits & OTHERS and h.first < core.first for h in hits):
        return None  # "it is unfair to people who …" is the speaker's own judgement
    if not subject:
        return _exclaimed(clause, core)
    if subject[0].first >= core.first and subject[0].first - core.last > 2:
        return None
    if core.first - subject[0].first > 12:
        return None
    count = polarity(hits, core, mode, clause.first, clause.last)
    if count is None:
        return 0
    if count == 1 and any(h.bits & FULLY for h in hits):
        return 0  # "It is not always true"
    signs = {bool(h.bits & FINE) for h in cores}
    if len(signs) > 1:
        return 0
    behind = any(0 <= h.first - core.last <= 1 for h in subject)
    if count % 2 and core.bits & FAULTY and behind and any(h.bits & ME for h in hits):
        return 0  # "I cannot adopt so unfair a view": no stem covers the verb
    return 1 if bool(core.bits & FINE) == (count % 2 == 0) else -1


def _exclaimed(clause: Clause, core: Hit) -> int | None:
    """Return the sign of a clause that is a mere exclamation: "Sheer nonsense", "Quite right".

    An exclamation begins with the judging word and has no verb. Returns None for other clauses.
    """
    han = core.last - core.first == core.size
    length, lead = clause.last - clause.first, core.first - clause.first
    if lead > (4 if han else 2) or length > (10 if han else 5):
        return None
    if any(h.bits & (VERBS | ME | NEGATIONS | STEREOTYPE | STANCES) for h in clause.hits):
        return None
    if core.bits & FAULTY:
        return -1
    whole = clause.last - core.last <= 1 and not any(h.bits & FAULTY for h in clause.hits)
    return 1 if whole and length > 1 else None
