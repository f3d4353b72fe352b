"""Find in a sentence the stems of words that agree, disagree, negate or name the statement.

A language lists stems instead of thousands of phrases (`[clause]` in prompts/languages/). Each
group of stems is one bit; a `Hit` records which groups were found at which words.

The time is linear in the length of the text.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from genprobe import text
from genprobe.linguistics import negated
from genprobe.resources import packs

_GROUPS = (*packs.CLAUSE_GROUPS, *packs.QUESTION_GROUPS)
_BITS = {group: 1 << at for at, group in enumerate(_GROUPS) if group != "clitics"}
OR = 1 << len(_GROUPS)  # the words of [answer] or
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
HERE, HELP, SAY, TESTED = (_BITS[g] for g in ("here", "help", "say", "tested"))
BECAUSE = _BITS["because"]
OWN, SAME, OPPOSITE = (_BITS[g] for g in ("own", "same", "opposite"))
ONLY, TELL, SINGLE, PLAIN = (_BITS[g] for g in ("only", "tell", "single", "plain"))
GROUP, JUDGE, OPEN, VERBS = (_BITS[g] for g in ("group", "judge", "open", "verbs"))
REPORTED, SIDES = _BITS["reported"], _BITS["sides"]
SIDE, NEUTRAL = _BITS["side"], _BITS["neutral"]
OUGHT, MAY, THINK, TOPIC = (_BITS[g] for g in ("ought", "may", "think", "topic"))
PRO, CONTRA = _BITS["pro"], _BITS["contra"]
GOOD, BAD, REAL, UNREAL = (_BITS[g] for g in ("good", "bad", "real", "unreal"))
UNTIL, SMALL, ABLE = _BITS["until"], _BITS["small"], _BITS["able"]
POSSIBLE, RETRACT, OH = _BITS["possible"], _BITS["retract"], _BITS["oh"]
STANCES = FOR | AGAINST | FOR_ME | AGAINST_ME
NEGATIONS = NOT | NONE | WITHOUT
# Stems that value what a question asks about, or say whether it is so.
VALUES = GOOD | BAD | REAL | UNREAL
# Groups of which a longer match hides the shorter ones inside it.
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
    | VALUES
    | RETRACT
)
# Stems by which a clause may take a stance, and those by which it may call it a stereotype.
STANCE_CORE = STANCES | FINE | FAULTY | OWN | SAME | OPPOSITE
STEREOTYPE_CORE = STEREOTYPE | ONLY | TELL | SINGLE | PLAIN | GROUP

_GAP = ".."
_REACH = 10  # most tokens of a gap
_MORE = 64  # least tokens that are looked up at once
_IDEOGRAPH = re.compile(f"[{text.HAN}]")


class Hit(NamedTuple):
    """Stems found at tokens `first` to `last` (exclusive), as bits.

    `size`: how much of the stem is literal. `gap`: whether it has a gap. `denials`: how many words
    of the stem itself negate ("there is nothing to object"). `open`: whether its last word may have
    any ending, and so possibly one that negates.
    """

    first: int
    last: int
    bits: int
    size: int
    gap: bool
    denials: int = 0
    open: bool = False


class _Begun(NamedTuple):
    """Phrases of a pattern with the same first elements.

    elements: one if the phrase has no more, else the first two, and one behind a gap. written: the
    phrases' beginning. places: the alternatives at each place behind it.
    """

    elements: tuple[str, ...]
    written: str
    places: list[list[str]]
    bit: int


class _Pattern(NamedTuple):
    rest: tuple[str, ...]  # the elements after the first
    bit: int
    size: int
    denials: int
    open: bool


_Placed = tuple[int, _Pattern]  # a pattern with its place among those of the word


class _Later(dict[str, list[_Placed]]):
    """Patterns that go on with the same element; they are written out once a text has it.

    The token behind that element -> those of them that may fit.
    """

    __slots__ = ("_every", "_plain", "_some", "_write", "begun", "bits")

    def __init__(self, write: Callable[[_Begun], Iterator[_Pattern]]) -> None:
        self._write = write
        self.begun: list[tuple[int, _Begun]] = []
        self.bits = 0
        self._every: list[tuple[str, _Placed]] = []  # with the plain word that must follow, or ""

    def __missing__(self, token: str) -> list[_Placed]:
        if not self._every:
            places: dict[_Pattern, int] = {}  # each of them once
            for place, begun in self.begun:
                for pattern in self._write(begun):
                    places.setdefault(pattern, place)
            self._every = [(_plain(one), (place, one)) for one, place in places.items()]
            self._plain = {word for word, _ in self._every}
            self._some = [placed for word, placed in self._every if not word]
        if token not in self._plain or not token:
            return self._some
        self[token] = [placed for word, placed in self._every if not word or word == token]
        return self[token]


def _plain(pattern: _Pattern) -> str:
    """Return the plain word that follows the second element of a pattern, or the one behind a gap.

    It is empty if there is none, or any of several words.
    """
    at = 2 if pattern.rest[0] == _GAP else 1
    element = pattern.rest[at] if at < len(pattern.rest) else ""
    return "" if "*" in element or element == _GAP else element


class _Tokens:
    """A text's tokens, and what was found among them so far.

    read: how many were looked up. at: the places of those that a grammar knows and at which a stem
    may begin. known: the features of each of these. reach: its bits and those of the patterns that
    may begin with it. begins: the stems that begin at each, None if not yet looked for.
    """

    __slots__ = ("at", "begins", "found", "known", "reach", "reached", "read", "tokens")

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.read = 0
        self.at: list[int] = []
        self.known: list[_Known] = []
        self.reach: list[int] = []
        self.begins: list[list[Hit] | None] = []
        self.reached: dict[tuple[int, int], int] = {}
        self.found: dict[tuple[int, int], list[Hit]] = {}

    def look_up(self, look: Callable[[str], _Known], last: int) -> None:
        """Look up the tokens before `last`, and some more."""
        first, self.read = self.read, max(last, self.read + _MORE)
        tokens = self.tokens[first : self.read]
        behind = itertools.chain(self.tokens[first + 1 : self.read + 1], ("",))
        for i, known, token in zip(itertools.count(first), map(look, tokens), behind, strict=False):
            if known is not _NOTHING:
                reach = known.bits
                if known.goes_on and token:
                    reach |= known.often
                    if token in known.plain:
                        reach |= known.plain[token].bits
                    if token[0] in known.begun:
                        for head, later in known.begun[token[0]].items():
                            if token.startswith(head):
                                reach |= later.bits
                if reach:
                    self.at.append(i)
                    self.known.append(known)
                    self.reach.append(reach)
        self.begins += [None] * (len(self.at) - len(self.begins))


@dataclass(slots=True)
class _Known:
    """The features of a word.

    These are the bits that the word has by itself, their literal size, and the patterns that begin
    with it (`goes_on`: whether there are any): in `plain` by a second word; in `begun` by the first
    letter of a second word with an open end, with its beginning; in `apart` by the word behind a
    gap that follows; in `other` and `behind` the rest, with the element that a second word or one
    behind a gap must fit. often: the bits of the patterns that may go on with any word.
    """

    bits: int
    size: int
    goes_on: bool
    often: int = 0
    plain: dict[str, _Later] = field(default_factory=dict)
    begun: dict[str, dict[str, _Later]] = field(default_factory=dict)
    apart: dict[str, _Later] = field(default_factory=dict)
    other: dict[str, _Later] = field(default_factory=dict)
    behind: dict[str, _Later] = field(default_factory=dict)

    def going_on(self, tokens: Sequence[str], at: int) -> list[tuple[int, int, bool, _Pattern]]:
        """Return the patterns without a plain second word that fit: place, end, gap, pattern."""
        fit = []
        token = tokens[at]
        begun = self.begun.get(token[0], _NONE)
        found = [later for head, later in begun.items() if token.startswith(head)]
        found += [later for element, later in self.other.items() if _fits(element, token)]
        for later in found:
            for place, pattern in later[_at(tokens, at + 1)]:
                end, gap = _follow(pattern.rest, 1, tokens, at + 1)
                if end:
                    fit.append((place, end, gap, pattern))
        if self.apart or self.behind:
            seen = set()
            for i in range(at, min(len(tokens), at + _REACH)):
                token = tokens[i]
                found = [self.apart[token]] if token in self.apart and token not in seen else []
                seen.add(token)  # the first place of the word behind the gap counts
                for element, later in self.behind.items():
                    if element not in seen and _fits(element, token):
                        seen.add(element)
                        found.append(later)
                for later in found:
                    for place, pattern in later[_at(tokens, i + 1)]:
                        end, _ = _follow(pattern.rest, 2, tokens, i + 1)
                        if end:
                            fit.append((place, end, True, pattern))
        if len(fit) > 1:
            fit.sort(key=_PLACE)
        return fit


def _at(tokens: Sequence[str], index: int) -> str:
    return tokens[index] if index < len(tokens) else ""


_NONE: dict[str, _Later] = {}
_PLACE = operator.itemgetter(0)
_NOTHING = _Known(0, 0, False)


def _fits(element: str, token: str) -> bool:
    if element[-1] == "*":
        if element[0] == "*":
            return element[1:-1] in token
        return token.startswith(element[:-1])
    if element[0] == "*":
        return len(token) > len(element) and token.endswith(element[1:])
    return token == element


class Grammar:
    """The stems of one language, compiled for looking up; the features of words are cached."""

    def __init__(
        self,
        languages: Sequence[packs.Language],
        fold: dict[str, str],
        stems: Iterable[tuple[str, int]],
    ) -> None:
        """Prepare the stems, as (pattern, bits), of a language and of those it is mixed with."""
        self.negation = languages[0].negation
        # First element of a pattern -> its phrases, as far as they are written.
        self._phrases: dict[str, list[tuple[str, list[list[str]], int]]] = {}
        self._begun: dict[str, list[_Begun]] = {}
        self._inside: list[str] = []  # first elements that may be the inside of a word
        self._denials: dict[str, bool] = {}
        # Returns the features of a word.
        self.look: Callable[[str], _Known] = text.Memo(self._compute).__getitem__
        self._last = self._other = _Tokens(())
        self._clitics: tuple[str, ...] = ()
        clitics: list[str] = []
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
        for pattern, bit in stems:
            self._add(pattern, bit, fold)
        self._clitics = tuple(dict.fromkeys(clitics))
        self._heads = {s[:-1] for s in self._phrases if s[-1] == "*" and s[0] != "*"}
        self._ends = {s[1:] for s in self._phrases if s[0] == "*" and s[-1] != "*"}
        self._longest = max(map(len, self._heads), default=0)
        self._longest_end = max(map(len, self._ends), default=0)

    def _add(self, pattern: str, bit: int, fold: dict[str, str]) -> None:
        # A hyphen separates words, as in texts.
        plain = text.replace(text.normalise(pattern), fold).replace("-", " ").replace("/", " ")
        begun: Iterable[tuple[Sequence[str], str, list[list[str]]]]
        if "(" in plain:
            begun = _go_on("", list(text.parts(plain)), 1)
        else:
            begun = [(elements, plain, [])] if (elements := _elements(plain)) else []
        for (first, *_), written, places in begun:
            known = first in self._phrases
            self._phrases.setdefault(first, []).append((written, places, bit))
            if first[0] == first[-1] == "*" and not known:
                self._inside.append(first)

    def _of(self, first: str) -> list[_Begun]:
        """Return the phrases with a first element."""
        if first not in self._phrases:
            return []
        if first not in self._begun:
            self._begun[first] = [
                _Begun(elements, written, places, bit)
                for beginning, left, bit in self._phrases[first]
                for elements, written, places in _go_on(beginning, left, 2)
            ]
        return self._begun[first]

    def _write(self, begun: _Begun) -> Iterator[_Pattern]:
        """Yield the patterns of some phrases."""
        bit = begun.bit
        for choices in itertools.product(*begun.places):
            elements = _elements(begun.written + "".join(choices))
            letters = "".join(elements)
            size = len(letters) - letters.count("*") - len(_GAP) * elements.count(_GAP)
            denials = 0 if bit & NEGATIONS else sum(map(self._denies, elements))
            yield _Pattern(tuple(elements[1:]), bit, size, denials, elements[-1][-1] == "*")

    def _denies(self, element: str) -> bool:
        """Tell whether an element of a pattern negates; nothing is known of an open ending."""
        known = self._denials.get(element)
        if known is None:
            ends = element[-1] != "*" and element.endswith(self._not_ends)
            known = self._denials[element] = element in self._nots or ends
        return known

    def _compute(self, token: str) -> _Known:
        forms = [token]
        for clitic in self._clitics:
            if token.startswith(clitic) and len(token) > len(clitic):
                forms += [token[len(clitic) :], clitic]
        bits, best, longer = 0, 0, []
        stances: dict[int, int] = {}
        values: dict[int, int] = {}
        for begun in (one for form in forms for one in self._beginning(form)):
            if len(begun.elements) > 1:
                longer.append(begun)
                continue
            [element], bit = begun.elements, begun.bit
            size = len(element) - element.count("*")
            if bit & STANCES:
                stances[bit] = max(stances.get(bit, 0), size)
            elif bit & VALUES:
                values[bit] = max(values.get(bit, 0), size)
            else:
                bits |= bit
            best = max(best, size)
        if stances:
            bits |= max(stances, key=lambda bit: stances[bit])
        if values:  # "harmless" is not harmful
            bits |= max(values, key=lambda bit: (values[bit], bit & (REAL | UNREAL) != 0))
        if bits & (FAULTY | CERTAIN):
            bits &= ~NOT  # Bengali ভিত্তিহীন, "baseless", does not mean "not baseless"
        if bits & CERTAIN:
            bits &= ~WITHOUT
        if not bits and not longer:
            return _NOTHING
        known = _Known(bits, best, bool(longer))
        for place, begun in enumerate(longer):
            second = begun.elements[1]
            if second == _GAP:
                second = begun.elements[2]
                elements = known.behind if "*" in second else known.apart
            elif second[0] == "*":
                elements = known.other
            elif second[-1] == "*":
                elements, second = known.begun.setdefault(second[0], {}), second[:-1]
            else:
                elements = known.plain
            later = elements.setdefault(second, _Later(self._write))
            later.begun.append((place, begun))
            later.bits |= begun.bit
            if elements is known.apart or elements is known.other or elements is known.behind:
                known.often |= begun.bit
        return known

    def _beginning(self, form: str) -> list[_Begun]:
        found = list(self._of(form))
        for size in range(1, min(len(form), self._longest) + 1):
            if form[:size] in self._heads:
                found += self._of(f"{form[:size]}*")
        for size in range(1, min(len(form) - 2, self._longest_end) + 1):
            if form[-size:] in self._ends:
                found += self._of(f"*{form[-size:]}")
        for element in self._inside:
            if _fits(element, form):
                found += self._of(element)
        return found

    def reaches(self, tokens: Sequence[str], first: int, last: int, wanted: int) -> bool:
        """Tell whether `hits` could find one of the wanted bits: a quick test, usually false."""
        looked = self._looked_at(tokens, last)
        bits = looked.reached.get((first, last))
        if bits is None:
            bits = 0
            low = bisect.bisect_left(looked.at, first)
            for reach in looked.reach[low : bisect.bisect_left(looked.at, last, low)]:
                bits |= reach
            looked.reached[first, last] = bits
        return bits & wanted != 0

    def reaching(self, tokens: Sequence[str], last: int, wanted: int) -> list[int]:
        """Return the tokens before `last` with which a stem of the wanted bits could begin."""
        looked = self._looked_at(tokens, last)
        found = zip(looked.at, looked.reach, strict=True)
        return [at for at, reach in found if reach & wanted and at < last]

    def hits(self, tokens: Sequence[str], first: int, last: int) -> list[Hit]:
        """Return the stems among `tokens[first:last]`, without shorter ones inside longer ones.

        What is found is kept until other tokens come, because the parts of a text are looked
        through again and again; neither `tokens` nor the list returned may be changed.
        """
        looked = self._looked_at(tokens, last)
        found = looked.found.get((first, last))
        if found is not None:
            return found
        found = []
        long = False
        low = bisect.bisect_left(looked.at, first)
        for k in range(low, bisect.bisect_left(looked.at, last, low)):
            for hit in looked.begins[k] or self._begin(looked, k):
                if hit[1] <= last:
                    found.append(hit)
                    long = long or hit[1] - hit[0] > 1
        if long:
            found = _outer(found)
        looked.found[first, last] = found
        return found

    def _looked_at(self, tokens: Sequence[str], last: int) -> _Tokens:
        """Return what was found among tokens; of the last two texts, a whole and a part of it."""
        if self._last.tokens is not tokens:
            self._last, self._other = self._other, self._last
            if self._last.tokens is not tokens:
                self._last = _Tokens(tokens)
        if self._last.read < last:
            self._last.look_up(self.look, last)
        return self._last

    def all(self, tokens: Sequence[str], first: int, last: int, wanted: int) -> list[Hit]:
        """Return the stems with one of the wanted bits, also those that `hits` drops."""
        looked = self._looked_at(tokens, last)
        low = bisect.bisect_left(looked.at, first)
        return [
            hit
            for k in range(low, bisect.bisect_left(looked.at, last, low))
            if looked.reach[k] & wanted
            for hit in looked.begins[k] or self._begin(looked, k)
            if hit.bits & wanted and hit.last <= last
        ]

    def _begin(self, looked: _Tokens, k: int) -> list[Hit]:
        """Look for the stems that begin at the k-th known token, and keep them."""
        if looked.begins[k] is not None:
            return []
        tokens, i = looked.tokens, looked.at[k]
        known = looked.known[k]
        found = looked.begins[k] = []
        if known.bits:
            found.append(Hit(i, i + 1, known.bits, known.size, False))
        if known.goes_on and i + 1 < len(tokens):
            later = known.plain.get(tokens[i + 1])
            for _, pattern in later[_at(tokens, i + 2)] if later is not None else ():
                end, gap = _follow(pattern.rest, 1, tokens, i + 2)
                if end:
                    found.append(Hit(i, end, pattern.bit, pattern.size, gap, *pattern[3:]))
            if known.begun or known.apart or known.other or known.behind:
                for _, end, gap, pattern in known.going_on(tokens, i + 1):
                    found.append(Hit(i, end, pattern.bit, pattern.size, gap, *pattern[3:]))
        return found


def _go_on(
    beginning: str, places: list[list[str]], least: int
) -> Iterator[tuple[tuple[str, ...], str, list[list[str]]]]:
    """Yield (elements, beginning, choices left) of the phrases whose first elements are complete.

    least: how many there are, unless a phrase has fewer. If the last is a gap, one behind it, too.
    """
    if places:
        whole = beginning
        while whole and not (whole[-1].isspace() or _IDEOGRAPH.match(whole[-1])):
            whole = whole[:-1]  # the last word may go on
        elements = _elements(whole)
        if len(elements) < least + (_GAP in elements[1:least]):
            for choice in places[0]:
                yield from _go_on(beginning + choice, places[1:], least)
            return
    else:
        elements = _elements(beginning)
    if elements:
        yield tuple(elements[: least + (_GAP in elements[1:least])]), beginning, places


def _elements(phrase: str) -> list[str]:
    """Return the elements of a pattern: words, single ideographs, and `..` for a gap."""
    if not _IDEOGRAPH.search(phrase):
        return phrase.split()
    found: list[str] = []
    for part in phrase.split():
        if _IDEOGRAPH.search(part):
            found += part.replace("?", "")
        else:
            found.append(part)
    return found


def _follow(rest: tuple[str, ...], k: int, tokens: Sequence[str], at: int) -> tuple[int, bool]:
    """Return where the rest of a pattern ends (0 if it does not fit), and whether it has a gap.

    k: the element from which on it is compared, with the tokens from `at` on.
    """
    gap, last = False, len(tokens)
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
    """Drop core stems inside a longer stem without a gap."""
    spans = [h for h in found if h.last - h.first > 1 and not h.gap and h.bits & _WHOLE]
    if not spans:
        return found
    # A negation inside a stance ("nothing to add") is not also counted with the words before it
    # ("is nothing").
    used = [s for s in spans if s.bits & STANCES and any(_negates_in(h, s) for h in found)]
    kept = []
    for hit in found:
        if hit.bits & NOT and any(overlap(hit, s) and not _inside(hit, s) for s in used):
            continue
        bits = hit.bits | (DENIES if hit in used else 0)
        for span in spans if hit.bits & _WHOLE else ():
            if span.first >= hit.last:
                break
            within = _inside(hit, span) and hit.last - hit.first < span.last - span.first
            if within or (span.bits & CERTAIN and _shorter(hit, span) and hit is not span):
                # A stance says nothing on whether the statement is a stereotype, so a stereotype
                # stem inside it still counts.
                shown = 0 if span.bits & _WHOLE & ~(STANCES | VALUES) else STEREOTYPE
                # A word matched by "objec*" may end in a negation, in languages that attach it.
                ends = span.open and hit.last == span.last and hit.last - hit.first == 1
                if ends and not span.bits & (NEGATIONS | CERTAIN):
                    shown |= NOT
                bits &= ~(_WHOLE | DENIES) | shown
        kept.append(hit._replace(bits=bits))
    return [hit for hit in kept if hit.bits]


def _inside(hit: Hit, span: Hit) -> bool:
    return span.first <= hit.first and hit.last <= span.last


def _negates_in(hit: Hit, span: Hit) -> bool:
    """Tell whether a hit is a negation inside a longer hit."""
    shorter = hit.last - hit.first < span.last - span.first
    return bool(hit.bits & NOT) and shorter and _inside(hit, span)


def _shorter(hit: Hit, span: Hit) -> bool:
    """Tell whether a hit overlaps another one, and is shorter or has a gap."""
    apart = hit.last <= span.first or span.last <= hit.first
    size = span.last - span.first + bool(hit.bits & NOT)  # "is not" beside "not only"
    return not apart and (hit.gap or hit.last - hit.first < size)


@functools.cache
def grammar(code: str) -> Grammar:
    """Return the stems by which clauses are read, of a language and of those it is mixed with."""
    return _compiled(code, _of_clauses)


@functools.cache
def questions(code: str) -> Grammar:
    """Return the stems by which answers to a plain question are read.

    They value what is asked about, and its negations are those of any sentence (`negated`), not the
    many of replies to a statement. `*` alone stands there for up to three words.
    """
    return _compiled(code, _of_questions)


def _compiled(code: str, stems: Callable[[packs.Language], Iterator[tuple[str, int]]]) -> Grammar:
    own = packs.load_language(code)
    languages = [own, *(packs.load_language(c) for c in own.also)]
    return Grammar(languages, own.fold, itertools.chain.from_iterable(map(stems, languages)))


def _of_clauses(language: packs.Language) -> Iterator[tuple[str, int]]:
    for group in packs.CLAUSE_GROUPS:
        for pattern in language.clause[group] if group in _BITS else ():
            yield pattern, _BITS[group]
    for pattern in language.words["or"]:
        yield pattern, OR


def _of_questions(language: packs.Language) -> Iterator[tuple[str, int]]:
    for group in packs.QUESTION_GROUPS:
        for pattern in language.clause[group]:
            yield pattern, _BITS[group]
    for group, bit in (("fine", GOOD), ("faulty", BAD)):
        for pattern in language.clause[group]:
            yield pattern, bit
    negations = negated.load(language.code)
    if negations:
        for name, bit in (("negation", NOT), ("scarce", WITHOUT), ("unless", CERTAIN)):
            for phrase in negations.listed[name]:
                yield phrase.replace(" * ", " (* )?(* )?(* )?"), bit


def bits_of(hits: Sequence[Hit]) -> int:
    """Return the groups of all stems found, as bits."""
    bits = 0
    for hit in hits:
        bits |= hit.bits
    return bits


def overlap(one: Hit, two: Hit) -> bool:
    """Tell whether two stems have a word in common."""
    return one.first < two.last and two.first < one.last


def words_of(hit: Hit) -> int:
    """Count the words of a stem; two ideographs are one."""
    tokens = hit.last - hit.first
    return tokens // 2 if tokens == hit.size else tokens
