"""Reads sentences by their clauses: what is said of a statement, and how often it is negated.

Instead of phrases by the thousand, a language gives stems (`[clause]` in prompts/languages/):
words that agree or disagree, that call something a stereotype, that negate. A clause is read by
its stems and by the parity of the negations that govern them. What cannot be placed is left
undecided: a sentence turned round is worse than one that was not read.

Everything is linear in the length of the text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.resources import packs

# Raised whenever a reading can change without a change of a language file.
VERSION = 5

_BITS = {group: 1 << at for at, group in enumerate(packs.CLAUSE_GROUPS) if group != "clitics"}
OR = 1 << len(packs.CLAUSE_GROUPS)  # the words of [answer] or
DENIES = OR << 1  # a stance whose own words negate: "no evidence of", "nothing to add"
FOR, AGAINST = _BITS["for"], _BITS["against"]
FOR_ME, AGAINST_ME = _BITS["for_if_me"], _BITS["against_if_me"]
ME, OTHERS, NOT, NONE, WITHOUT = (_BITS[g] for g in ("me", "others", "not", "none", "without"))
CERTAIN, AND, FULLY, PARTLY = (_BITS[g] for g in ("certain", "and", "fully", "partly"))
STEREOTYPE, COUNTER, FINE, FAULTY = (_BITS[g] for g in ("stereotype", "counter", "fine", "faulty"))
STATEMENT, SUCH, THAT, ALTHOUGH = (_BITS[g] for g in ("statement", "such", "that", "although"))
THEREFORE, VERDICT, EXTENT, POLITE, SERVICE = (
    _BITS[g] for g in ("therefore", "verdict", "extent", "polite", "service")
)
HERE, HELP, SAY, SHARE, TESTED = (_BITS[g] for g in ("here", "help", "say", "share", "tested"))
BECAUSE = _BITS["because"]
OWN, SAME, OPPOSITE = (_BITS[g] for g in ("own", "same", "opposite"))
ONLY, TELL, SINGLE, PLAIN = (_BITS[g] for g in ("only", "tell", "single", "plain"))
GROUP, JUDGE, OPEN, VERBS = (_BITS[g] for g in ("group", "judge", "open", "verbs"))
STANCES = FOR | AGAINST | FOR_ME | AGAINST_ME
NEGATIONS = NOT | NONE | WITHOUT
# A longer match of these hides the shorter ones inside it.
_WHOLE = (
    STANCES
    | NEGATIONS
    | CERTAIN
    | STEREOTYPE
    | COUNTER
    | FINE
    | FAULTY
    | OTHERS
    | FULLY
    | EXTENT
    | OWN
    | SAME
    | OPPOSITE
    | ONLY
)
# What a clause says that says both.
BOTH = 2
_CORE = STANCES | STEREOTYPE | FINE | FAULTY
# What a clause may agree or disagree by, and what it may call the statement by.
STANCE_CORE = STANCES | FINE | FAULTY | OWN | SAME | OPPOSITE
STEREOTYPE_CORE = STEREOTYPE | ONLY | TELL | SINGLE | PLAIN | GROUP

_GAP = ".."
_REACH = 10  # tokens that a gap may hold
_MEMO = 50_000  # words whose features are kept


class Hit(NamedTuple):
    """Stems found at tokens `first` to `last` (exclusive), as bits; how much of them is literal.

    `denials`: how many words of the stem itself negate ("there is nothing to object"). `open`:
    whether its last word may end in anything, so also in a negation.
    """

    first: int
    last: int
    bits: int
    size: int
    gap: bool
    denials: int = 0
    open: bool = False


class _Pattern(NamedTuple):
    rest: tuple[str, ...]  # the elements behind the first
    bit: int
    size: int
    denials: int
    open: bool


class _Known(NamedTuple):
    """What is known of a word.

    Its bits on its own, their literal size, and the patterns that it begins, those whose second
    element is a plain word by that word.
    """

    bits: int
    size: int
    plain: dict[str, tuple[_Pattern, ...]]
    other: tuple[_Pattern, ...]
    reach: int  # the bits of the word and of all patterns that it begins


_NOTHING = _Known(0, 0, {}, (), 0)


def _fits(element: str, token: str) -> bool:
    if element[-1] == "*":
        if element[0] == "*":
            return element[1:-1] in token
        return token.startswith(element[:-1])
    if element[0] == "*":
        return len(token) > len(element) and token.endswith(element[1:])
    return token == element


class Grammar:
    """The stems of one language, ready to be looked up; `features` of a word are kept."""

    def __init__(self, languages: Sequence[packs.Language], fold: dict[str, str]) -> None:
        self.negation = languages[0].negation
        self._exact: dict[str, list[_Pattern]] = {}
        self._starts: dict[str, list[_Pattern]] = {}
        self._ends: list[tuple[str, _Pattern]] = []
        self._inside: list[tuple[str, _Pattern]] = []
        self._memo: dict[str, _Known] = {}
        self._clitics: tuple[str, ...] = ()
        clitics: list[str] = []
        self._known: set[tuple[tuple[str, ...], int]] = set()
        nots = {
            element
            for language in languages
            for group in ("not", "none")
            for pattern in language.clause[group]
            for phrase in text.expand(text.replace(text.normalise(pattern), fold))
            for element in _elements(phrase)
            if len(_elements(phrase)) == 1
        }
        self._nots = frozenset(nots)
        self._not_ends = tuple(e[1:] for e in nots if e[0] == "*" and e[-1] != "*")
        for language in languages:
            clitics += [text.replace(text.normalise(c), fold) for c in language.clause["clitics"]]
            for group, bit in _BITS.items():
                for pattern in language.clause[group]:
                    self._add(pattern, bit, fold)
            for pattern in language.words["or"]:
                self._add(pattern, OR, fold)
        self._clitics = tuple(dict.fromkeys(clitics))
        self._longest = max((len(s) for s in self._starts), default=0)

    def _add(self, pattern: str, bit: int, fold: dict[str, str]) -> None:
        plain = text.replace(text.normalise(pattern), fold)
        for phrase in text.expand(plain):
            elements = _elements(phrase)
            if not elements or (tuple(elements), bit) in self._known:
                continue
            self._known.add((tuple(elements), bit))
            size = sum(len(e.strip("*")) for e in elements if e != _GAP)
            denials = 0 if bit & NEGATIONS else sum(map(self._denies, elements))
            found = _Pattern(tuple(elements[1:]), bit, size, denials, elements[-1][-1] == "*")
            first = elements[0]
            if first[0] == "*" and first[-1] == "*":
                self._inside.append((first[1:-1], found))
            elif first[0] == "*":
                self._ends.append((first[1:], found))
            elif first[-1] == "*":
                self._starts.setdefault(first[:-1], []).append(found)
            else:
                self._exact.setdefault(first, []).append(found)

    def _denies(self, element: str) -> bool:
        """Whether an element of a pattern negates; one of which the end is open may not."""
        return element in self._nots or (element[-1] != "*" and element.endswith(self._not_ends))

    def look(self, token: str) -> _Known:
        """Return what is known of a word; it is kept, as words come again and again."""
        known = self._memo.get(token)
        if known is None:
            known = self._compute(token)
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[token] = known
        return known

    def _compute(self, token: str) -> _Known:
        forms = [token]
        for clitic in self._clitics:
            if token.startswith(clitic) and len(token) > len(clitic):
                forms += [token[len(clitic) :], clitic]
        bits, best, longer = 0, 0, []
        stances: dict[int, int] = {}
        for form in forms:
            for pattern in self._beginning(form):
                if pattern.rest:
                    longer.append(pattern)
                    continue
                if pattern.bit & STANCES:
                    stances[pattern.bit] = max(stances.get(pattern.bit, 0), pattern.size)
                else:
                    bits |= pattern.bit
                best = max(best, pattern.size)
        if stances:
            bits |= max(stances, key=lambda bit: stances[bit])
        if not bits and not longer:
            return _NOTHING
        plain: dict[str, tuple[_Pattern, ...]] = {}
        other = []
        for pattern in longer:
            second = pattern.rest[0]
            if second == _GAP or "*" in second:
                other.append(pattern)
            else:
                plain[second] = (*plain.get(second, ()), pattern)
        reach = bits
        for pattern in longer:
            reach |= pattern.bit
        return _Known(bits, best, plain, tuple(other), reach)

    def _beginning(self, form: str) -> list[_Pattern]:
        found = list(self._exact.get(form, ()))
        for size in range(1, min(len(form), self._longest) + 1):
            found += self._starts.get(form[:size], ())
        found += [p for end, p in self._ends if form.endswith(end) and len(form) > len(end) + 1]
        found += [p for part, p in self._inside if part in form]
        return found

    def reaches(self, tokens: Sequence[str], first: int, last: int, wanted: int) -> bool:
        """Whether `hits` could find one of the wanted bits: cheap, and mostly not."""
        known = self._memo.get
        return any(
            (known(tokens[i]) or self.look(tokens[i])).reach & wanted for i in range(first, last)
        )

    def hits(self, tokens: Sequence[str], first: int, last: int) -> list[Hit]:
        """Return the stems among `tokens[first:last]`, shorter ones inside longer ones left out."""
        found: list[Hit] = []
        look = self._memo.get
        long = False
        for i in range(first, last):
            known = look(tokens[i]) or self.look(tokens[i])
            if known is _NOTHING:
                continue
            bits, size, plain, other, _ = known
            if bits:
                found.append(Hit(i, i + 1, bits, size, False))
            if plain and i + 1 < last:
                for pattern in plain.get(tokens[i + 1], ()):
                    end, gap = _follow(pattern.rest, tokens, i + 1, last)
                    if end:
                        long = True
                        found.append(Hit(i, end, pattern.bit, pattern.size, gap, *pattern[3:]))
            for pattern in other:
                end, gap = _follow(pattern.rest, tokens, i + 1, last)
                if end:
                    long = True
                    found.append(Hit(i, end, pattern.bit, pattern.size, gap, *pattern[3:]))
        return _outer(found) if long else found


def _elements(phrase: str) -> list[str]:
    """Return the elements of a pattern: words, each ideograph of its own, `..` for a gap."""
    found: list[str] = []
    for part in phrase.split():
        if part == _GAP:
            found.append(part)
        elif any("\u3400" <= c <= "\u9fff" for c in part):
            for c in part:
                if c == "?":
                    continue
                found.append(c)
        else:
            found.append(part)
    return found


def _follow(rest: tuple[str, ...], tokens: Sequence[str], at: int, last: int) -> tuple[int, bool]:
    """Where the rest of a pattern ends, 0 if it does not fit; whether it went over a gap."""
    gap = False
    k = 0
    while k < len(rest):
        element = rest[k]
        if element == _GAP:
            gap = True
            wanted = rest[k + 1]
            stop = min(last, at + _REACH)
            while at < stop and not _fits(wanted, tokens[at]):
                at += 1
            if at >= stop:
                return 0, gap
            at += 1
            k += 2
            continue
        if at >= last or not _fits(element, tokens[at]):
            return 0, gap
        at += 1
        k += 1
    return at, gap


def _outer(found: list[Hit]) -> list[Hit]:
    """Drop the core stems inside a longer unbroken one."""
    spans = [h for h in found if h.last - h.first > 1 and not h.gap and h.bits & _WHOLE]
    if not spans:
        return found
    # The negation in a stance ("nothing to add") is none of the words around it ("is nothing").
    used = [s for s in spans if s.bits & STANCES and any(_negates_in(h, s) for h in found)]
    kept = []
    for hit in found:
        if hit.bits & NOT and any(_overlap(hit, s) and not _inside(hit, s) for s in used):
            continue
        bits = hit.bits | (DENIES if hit in used else 0)
        for span in spans if hit.bits & _WHOLE else ():
            if span.first >= hit.last:
                break
            within = _inside(hit, span) and hit.last - hit.first < span.last - span.first
            if within or (span.bits & CERTAIN and _shorter(hit, span) and hit is not span):
                # To recognition a stance says nothing: what it hides counts there.
                shown = 0 if span.bits & _WHOLE & ~STANCES else STEREOTYPE
                # "objec*" may end in a negation, where that is a part of the word.
                ends = span.open and hit.last == span.last and hit.last - hit.first == 1
                if ends and not span.bits & (NEGATIONS | CERTAIN):
                    shown |= NOT
                bits &= ~(_WHOLE | DENIES) | shown
        kept.append(hit._replace(bits=bits))
    return [hit for hit in kept if hit.bits]


def _inside(hit: Hit, span: Hit) -> bool:
    return span.first <= hit.first and hit.last <= span.last


def _negates_in(hit: Hit, span: Hit) -> bool:
    """Whether a hit is a negation that is a part of a longer one."""
    shorter = hit.last - hit.first < span.last - span.first
    return bool(hit.bits & NOT) and shorter and _inside(hit, span)


def _shorter(hit: Hit, span: Hit) -> bool:
    """Whether a hit runs into or out of a longer one."""
    apart = hit.last <= span.first or span.last <= hit.first
    size = span.last - span.first + bool(hit.bits & NOT)  # "is not" beside "not only"
    return not apart and (hit.gap or hit.last - hit.first < size)


@functools.cache
def grammar(code: str) -> Grammar:
    """Return the stems of a language and of those that it is mixed with."""
    own = packs.load_language(code)
    return Grammar([own, *(packs.load_language(c) for c in own.also)], own.fold)


def bits_of(hits: Sequence[Hit]) -> int:
    """Return the groups of all stems found, as bits."""
    bits = 0
    for hit in hits:
        bits |= hit.bits
    return bits


class Clause(NamedTuple):
    """A clause with its stems.

    `sign`: +1 in favour (or: a stereotype), -1 against, 0 undecided, None where it says nothing of
    the kind.
    """

    first: int
    last: int
    hits: list[Hit]


def polarity(hits: Sequence[Hit], core: Hit, mode: str, low: int, high: int) -> int | None:
    """How often a stem is negated within tokens `low` to `high`; None where it cannot be told."""
    for hit in hits:
        if hit.bits & AND and not hit.bits & (NEGATIONS | THAT) and low < hit.first < core.first:
            if any(h.bits & NOT and h.first < hit.first < h.last for h in hits):
                continue  # "anything but"
            denied = any(h.bits & NOT and low <= h.first and h.last <= hit.first for h in hits)
            until = high if mode == "both" else core.first
            if denied and any(h.bits & NOT and hit.first < h.first < until for h in hits):
                # "I cannot and will not agree", "I do not think that it is true and will not agree"
                # are negated once
                low = hit.last
                continue
            if any(h.bits & THAT and low <= h.first < hit.first for h in hits):
                continue  # "I do not think that it is fair and true"
            if denied and mode == "before":
                # "I see no good in it and reject it" cannot be told from "I do not hold or
                # share it"
                return None
    nots = nones = done = 0
    own = core.denials
    for hit in hits:
        if not hit.bits & NEGATIONS or hit.last <= low or hit.first >= high:
            continue
        if hit.first < done:
            continue  # another reading of the same words
        done = hit.last
        if own and core.first <= hit.first and hit.last <= core.last:
            own -= 1
            continue  # a word of the stem itself
        before = hit.first < core.first or (hit.first < core.last and hit is not core)
        inside = hit.first >= core.first and hit.last <= core.last
        if hit.bits & WITHOUT and not hit.bits & NOT:
            if not (hit.first < core.first <= hit.last + 3):
                continue
            nots += 1
            continue
        if hit.bits & NOT:
            if before or inside or mode == "both":
                nots += 1
        elif hit.bits & NONE:
            nones += 1
    nots += _denied(hits, core, mode, low, high)
    behind = [h.first for h in hits if h.bits & NOT and core.last <= h.first < high]
    if (
        mode == "both"
        and len(set(behind)) > 1
        and not any(h.bits & SAY and behind[0] < h.first <= behind[-1] for h in hits)
    ):
        return None  # two behind are no double negation, unless one is of saying the other
    if nots > 2:
        return None
    if nots == 0 and nones:
        return 0 if core.denials else 1  # "in no way do I not share it" is negated once
    return nots


def _denied(hits: Sequence[Hit], core: Hit, mode: str, low: int, high: int) -> int:
    """1 where to say so is called wrong ("it would be wrong to call this a stereotype")."""
    front = [h for h in hits if low <= h.first < core.first]
    if (
        mode == "before"
        and any(h.bits & SAY for h in front)
        and not any(h.bits & (ME | NOT) for h in front)
        and any(
            one.bits & NOT and two.bits & FINE and core.last <= one.first < one.last == two.first
            for one, two in itertools.pairwise(hits)
            if two.last <= high
        )
    ):
        return 1  # "To call this a stereotype is not fair": there the negation stands behind
    for hit in hits:
        if not hit.bits & FAULTY or hit.first < low or hit.last > high:
            continue
        if hit.last < core.first:
            if any(h.bits & SAY and hit.last <= h.first < core.first for h in hits):
                return 1
        elif (
            mode == "both"
            and hit.first >= core.last
            and any(h.bits & SAY and core.last <= h.first < hit.first for h in hits)
        ):
            return 1
    return 0


def sign_of_stance(clause: Clause, mode: str, me: bool) -> int | None:
    """+1 where the clause agrees, -1 where it disagrees, BOTH, 0 undecided, None: nothing.

    mode: where a negation stands (`Grammar.negation`). me: the speaker was named before.
    """
    hits = clause.hits
    stances = _stances(clause, me)
    if stances is None:
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
    """Whether a stance is conceded or not the speaker's."""
    own = any(h.bits & ME and h.first < core.last for h in hits) or me
    before = [h for h in hits if h.first < core.first]
    # "The author hits the nail on the head": by an idiom an author agrees with nothing.
    idiom = _words(core) > 1
    others = [
        h
        for h in before
        if h.bits & OTHERS
        and not (idiom and any(s.bits & STATEMENT and s.first == h.first for s in before))
    ]
    if any(h.bits & ALTHOUGH for h in before) or (others and not own):
        return True
    if _theirs(hits, core):
        return True
    # The subject may stand behind the verb.
    return not own and any(h.bits & OTHERS and h.first == core.last for h in hits)


def _on_another_question(hits: Sequence[Hit], core: Hit) -> bool:
    """Whether the clause agrees that the statement is something: "I agree that it is a cliché"."""
    for hit in hits:
        if hit.bits & THAT and core.last <= hit.first <= core.last + 1:
            behind = [h for h in hits if h.first > hit.first]
            called = any(h.bits & (STEREOTYPE | FAULTY) for h in behind)
            if called and any(h.bits & STATEMENT for h in behind):
                return True
    return False


def _signs(clause: Clause, stances: Sequence[Hit], mode: str) -> set[int] | None:
    """Return the signs of a clause's stances, 0 where one cannot be placed, None for nothing."""
    hits = clause.hits
    signs: set[int] = set()
    before: tuple[bool, int] | None = None  # of the stance before: its stem, its sign
    ands = _joints(hits)
    low = clause.first
    if mode == "both":
        # "It is not right and I do not accept it": what was negated before the *and* is done.
        done = {end for h in hits if h.bits & NOT for end in (h.last, h.last + 1)}
        low = max([low, *(a for a in ands if a < stances[0].first and a in done)])
    for at, stance in enumerate(stances):
        after = stances[at + 1] if at + 1 < len(stances) else None
        cut = [a for a in ands if after and stance.last <= a < after.first]
        # "neither accept nor support": each has its own negation in front.
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
    """Where an *and* stands that is no part of "neither … nor"."""
    pairs = [h for h in hits if h.bits & NOT and h.gap]
    return [
        h.first for h in hits if h.bits & AND and not any(p.first < h.first < p.last for p in pairs)
    ]


def _behind_the_verb(clause: Clause, core: Hit) -> int | None:
    """Count how often a verb in front is negated behind it, None where that is not clear.

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
    """Whether the stance is that of others: "I can see why some people would agree"."""
    before = [h for h in hits if h.first < core.first]
    others = [h.first for h in before if h.bits & OTHERS and not h.bits & ME]
    mine = [h.first for h in before if h.bits & ME]
    if not others or not mine or others[-1] < mine[-1]:
        return False
    return any(h.bits & (SAY | THAT | ALTHOUGH) and mine[-1] < h.first <= others[-1] for h in hits)


def _stances(clause: Clause, me: bool) -> list[Hit] | None:
    """Return the stems by which the clause agrees or disagrees, in order.

    None where it speaks of the speaker's own view, and what it says of that is not known. "My
    values", "mine" agree ("it reflects my values") unless something else in the clause says how the
    statement and the speaker's view stand to each other: "my view is the opposite".
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
    found = [h for h in found if not _offered(hits, h)]
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
        and not any(_overlap(hit, other) for other in found)
    ]
    mine = [h for h in hits if h.bits & OWN]
    if not found and _not_mine(hits, mine):
        return [mine[0]._replace(bits=FOR)]
    others = [h for h in found if not any(_overlap(h, own) for own in mine)]
    if others:
        found = others
    elif found and found[0].first == clause.first and clause.last - found[-1].last > 1:
        return None if any(_overlap(found[0], own) for own in mine) else found
    return sorted(found)


def _stronger(one: Hit, two: Hit) -> bool:
    """Whether the words of one stance are better read as the other: more of them are literal."""
    return bool(
        _overlap(one, two)
        and one.size < two.size
        and bool(one.bits & (FOR | FOR_ME)) != bool(two.bits & (FOR | FOR_ME))
    )


def _not_mine(hits: Sequence[Hit], mine: Sequence[Hit]) -> bool:
    """Whether the clause says whose view the statement is not: "That is not my opinion"."""
    if not mine or not any(h.bits & NOT for h in hits):
        return False
    if any(h.bits & (SAY | SHARE | TELL | JUDGE) and not _overlap(h, mine[0]) for h in hits):
        return False
    if any(h.bits & ME and not any(_overlap(h, own) for own in mine) for h in hits):
        return False  # "I do not give my opinion"
    return any(h.bits & STATEMENT and h.first < mine[0].first for h in hits)


def _overlap(one: Hit, two: Hit) -> bool:
    return one.first < two.last and two.first < one.last


def _whose(hits: Sequence[Hit], hit: Hit) -> bool:
    """Tell whether "the same", "the opposite" is of the speaker's view.

    It is where of those named before it the speaker is the last. A mere "I" must stand beside it:
    "I see it differently".
    """
    whose = [h for h in hits if h.bits & (OWN | OTHERS) or (h.bits & ME and _beside(h, hit))]
    if not any(h.bits & (ME | OWN) for h in whose):
        return False
    before = [h for h in whose if h.first < hit.first]
    return not before or bool(before[-1].bits & (ME | OWN))


def _beside(one: Hit, two: Hit) -> bool:
    return two.first - one.last <= 3 if one.first < two.first else one.first - two.last <= 2


def _offered(hits: Sequence[Hit], stance: Hit) -> bool:
    """Whether a view is shared with the reader: "I'd be happy to share my thoughts"."""
    if not any(h.bits & SHARE and h.first < stance.last and stance.first < h.last for h in hits):
        return False
    whose = ME | EXTENT  # "personally" is of the speaker, and nothing that is shared
    return any(h.bits & whose == ME and stance.last <= h.first <= stance.last + 4 for h in hits)


def _just_behind_not(hits: Sequence[Hit], fully: Hit) -> bool:
    return any(h.bits & NOT and h.last == fully.first for h in hits)


def _verdict_on_statement(clause: Clause, mode: str) -> int | None:
    """+1 where the clause calls the statement true or right, -1 false or wrong."""
    hits = clause.hits
    cores = [h for h in hits if h.bits & (FINE | FAULTY)]
    if not cores:
        return None
    core = cores[0]
    subject = [h for h in hits if h.bits & STATEMENT and h is not core]
    if any(h.bits & (SUCH | ALTHOUGH | PARTLY) for h in hits):
        return None
    if any(h.bits & OTHERS and h.first < core.first for h in hits):
        return None  # "it is unfair to people who …" is the speaker's
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
        return 0  # "I cannot adopt so unfair a view": by a verb that no stem covers
    return 1 if bool(core.bits & FINE) == (count % 2 == 0) else -1


def _exclaimed(clause: Clause, core: Hit) -> int | None:
    """Return the sign of a clause that is a mere exclamation: "Sheer nonsense", "Quite right".

    None for anything else. It begins with what it calls the statement, and has no verb.
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


def sign_of_stereotype(clause: Clause, mode: str) -> int | None:
    """+1 where the clause calls the statement a stereotype, -1 where it denies that."""
    hits = [h._replace(bits=h.bits | NOT) if h.bits & DENIES else h for h in clause.hits]
    cores = [h for h in hits if h.bits & STEREOTYPE]
    if not cores:
        return _of_no_group(hits, mode, clause)
    core = cores[0]
    if any(
        h.bits & COUNTER and not h.bits & STEREOTYPE and not any(h.first == c.last for c in cores)
        for h in hits
    ):
        return None  # it fights a prejudice; "a prejudice against" somebody does not
    length = clause.last - clause.first
    subject = any(h.bits & (STATEMENT | ME) and h.first < core.first for h in hits)
    noun = core.last - core.first == 1
    verb = any(h.bits & VERBS and h.first >= core.last for h in hits)
    bare = core.first - clause.first <= 1 and length > 4 and verb and not subject and noun
    if bare and not any(h.bits & HERE for h in hits):
        return None  # "A stereotype is a belief about a group", no "A stereotype about teachers"
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
    if late and clause.last - late[0].last <= 1 and _and_right_before(hits, late[0]):
        return 0  # "It is a stereotype, and it is not"
    if mode == "before" and late and _leads_up(hits, clause.first, -1, clause.first):
        return 1 if count else -1  # "That it is a cliché, I do not see"
    relative = mode == "both" and late and subject and count == len(late) == 1
    if relative and any(h.bits & THAT and core.last <= h.first < late[0].first - 1 for h in hits):
        return 0  # "a prejudice that is not true"
    placed = any(h.bits & (THAT | AND) for h in hits if h.first >= core.last)
    if mode == "before" and not count and late and not placed:
        # "A stereotype this is not": what stands in front may be denied behind it.
        if core.first - clause.first <= 1:
            # "This is a generalisation that does not …", in languages without "is" and "that"
            return 0 if subject and late[0].first == core.last else -1
        if late[0].first - core.last <= 3 and core.first - clause.first <= 4:
            return 0
    return 1 if count % 2 == 0 else -1


def _and_right_before(hits: Sequence[Hit], one: Hit) -> bool:
    return any(h.bits & AND and 0 <= one.first - h.last <= 1 for h in hits)


def _of_no_group(hits: Sequence[Hit], mode: str, clause: Clause) -> int | None:
    """Return -1 where the clause says that the statement judges no group.

    Or that it only tells of one person or of a plain fact: "It merely describes what one man does",
    "no group is judged". A name of several words is enough: "a moral principle".
    """
    bits = bits_of(hits)
    nots = [h for h in hits if h.bits & NEGATIONS]
    groups = [h for h in hits if h.bits & GROUP]
    if groups:
        # "Nobody can say that" judges nobody, and says nothing of a group.
        nobody = all(h.bits & NEGATIONS for h in groups)
        judged = bits & (JUDGE if nobody else JUDGE | SAY | TELL)
        if not nots or not judged or bits & ALTHOUGH:
            return None
        return -1 if (polarity(hits, groups[0], mode, clause.first, clause.last) or 0) == 1 else 0
    kinds = ONLY, TELL, SINGLE, PLAIN
    words = {h.first for h in hits if h.bits & (ONLY | TELL | SINGLE | PLAIN)}
    names = [h.first for h in hits if h.bits & PLAIN and _words(h) > 1]
    meant = [h for h in hits if h.bits & (STATEMENT | HERE)]
    whose = [h.first for h in hits if h.bits & OTHERS and not any(_overlap(h, m) for m in meant)]
    named = bool(names)
    if named and any(at < names[0] for at in whose):
        return None  # "some will insist that it is a verifiable fact"
    if bits & (ALTHOUGH | COUNTER | FAULTY) or (bits & (FULLY | FINE) and not named):
        return None
    if not named and (sum(bool(bits & kind) for kind in kinds) < 2 or len(words) < 2):
        return None
    return 0 if nots or bits & CERTAIN else -1


def _words(hit: Hit) -> int:
    """Count the words of a stem; two ideographs are one."""
    tokens = hit.last - hit.first
    return tokens // 2 if tokens == hit.size else tokens


def _leads_up(hits: Sequence[Hit], low: int, high: int, first: int) -> bool:
    """Whether what follows decides: "That it is a cliché, I do not see", "to call it so, …"."""
    return any(
        (h.bits & THAT and h.first == low == first and (h.last > low + 1 or _only_that(hits, low)))
        or (h.bits & SAY and h.last == high and high - h.first > 1)
        for h in hits
    )


def _only_that(hits: Sequence[Hit], at: int) -> bool:
    """Whether the word is no pronoun too, as English "that" is."""
    return not any(h.bits & STATEMENT and h.first == at for h in hits)


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
    """Return token ranges put into a clause that goes on behind them.

    "I cannot, however hard I try, agree". Nothing is put into an answer word alone, or into a
    condition.
    """
    bounds = [first]
    bounds += [i for i in range(first + 1, last) if gaps[i] != " " and _COMMAS.search(gaps[i])]
    if len(bounds) < 3:
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
                # "I can, on a third reading even not, agree" keeps its negation.
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
    """Return the clauses of a sentence `tokens[first:last]`; `gaps[i]` stands before token i.

    A clause that ends in a negation ("I do not, however, agree") goes on in the next one, unless
    that is an answer word (`answers`); one that begins with *that* belongs to the one before.
    """
    bounds = [first]
    for i in range(first + 1, last):
        if gaps[i] != " " and _COMMAS.search(gaps[i]):
            ahead = gram.hits(tokens, i, min(i + 4, last)) if gaps[i].strip() == "," else []
            if any(h.bits & THAT and h.first == i for h in ahead):
                continue
            bounds.append(i)
        elif gram.reaches(tokens, i - 1, i + 1, BECAUSE) and any(
            h.bits & BECAUSE and h.last == i + 1 for h in gram.hits(tokens, i - 1, i + 1)
        ):
            bounds.append(i)  # a negation in the reason is none of what it is the reason for
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
            # Where a lone "not" may stand behind its verb, a longer phrase is needed: "there is
            # nothing, …", "no reason, …".
            few = 1 if gram.negation == "before" else 2
            ended = tokens[high - 1] not in answers
            if ended and any(
                h.bits & NOT and h.last == high and high - h.first >= few for h in hits
            ):
                continue  # the negation is of what follows
        aside = start < low and high - low <= 3  # "Stereotypes, in this, I see none"
        if high < last and (start == low or aside) and _bare(gram, tokens, hits, start, high, last):
            continue
        leads = high < last and start == low and _leads_up(hits, low, high, first)
        if leads and not gram.look(tokens[high]).bits & NOT:
            continue
        if tokens[start] in answers and _answers_first(hits, start):
            hits = [h for h in hits if h.first > start]  # "No I do not agree"
        found.append(Clause(start, high, hits))
        start = high
    return found


def _answers_first(hits: Sequence[Hit], start: int) -> bool:
    """Tell whether the answer word that a clause begins with is no part of it.

    "No I do not agree". A word that also negates must stand before a subject or another negation:
    Arabic لا.
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
        *(h.last for h in near if h.bits & (ME | STATEMENT) and h.first <= start + 2),
    }
    return any(h.first in subjects for h in denying)


def _bare(
    gram: Grammar, tokens: Sequence[str], hits: Sequence[Hit], low: int, high: int, last: int
) -> bool:
    """Whether a noun alone stands before a negation of it: "Stereotypes, in this, I see none"."""
    cores = [h for h in hits if h.bits & STEREOTYPE]
    if not cores or cores[0].last - low > 3 or high - low > 6:
        return False
    if any(h.bits & (NEGATIONS | ME | CERTAIN) for h in hits):
        return False
    if any(h.bits & STATEMENT and h.first < cores[0].last for h in hits):
        return False
    rest = gram.hits(tokens, high, last)
    return any(h.bits & NOT for h in rest) and not any(h.bits & (_CORE | THAT) for h in rest)
