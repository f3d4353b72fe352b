"""Read what the clauses of a reply answer: "I do not agree with it", "it is a cliché".

A sentence is cut into clauses, and each is read by its stems (`linguistics.clauses`). Questions,
quotations, repetitions of the statement, conditions ("if I agreed"), reasons ("because not all are
alike") and words that are only mentioned are left out.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genprobe.judges.reading import probes
from genprobe.judges.reading.lexicon import OPPOSITE, POLARITY, Lexicon
from genprobe.judges.reading.probes import Way
from genprobe.judges.reading.punctuation import COMMA
from genprobe.judges.reading.reply import LONGEST_RUN, READ, Found, Reply
from genprobe.linguistics import clauses, stems
from genprobe.linguistics.clauses import Clause
from genprobe.linguistics.stems import Grammar, bits_of

LONGEST = 400  # tokens of a sentence that is read
_SHORT = 24  # the readings of sentences of at most this many tokens are kept in memory
_KEPT = 20_000  # the number of readings kept for each language

_RULED_OUT = 4  # most tokens of a clause that says "is out of the question"
_TAIL = 3  # tokens at the end of a sentence that may negate its beginning
_FEW = 2  # most tokens of "perhaps" as a clause of its own
_TAG = 4  # most tokens of a question tag
_THAT = frozenset(["that"])  # "I would not say that I disagree" is no condition
# Stems that add nothing to "on the contrary", and to "and it is not".
_BESIDE_CONTRARY = stems.OPPOSITE | stems.AND | stems.EXTENT | stems.STATEMENT | stems.AGAINST
_BESIDE_NOT = stems.AND | stems.STATEMENT | stems.HERE | stems.VERBS | stems.NOT


class Said(NamedTuple):
    """The answer of a clause to the probe; None if it is unclear."""

    answer: str | None  # yes, no, both
    start: int  # in the normalised reply
    end: int
    therefore: bool  # whether it draws a conclusion
    shown: tuple[int, int]  # the words that it is based on
    mine: bool = False  # whether the speaker says it of themselves: "I agree"

    def moved(self, by: int) -> Said:
        """Return a copy with all positions moved by a number of characters."""
        answer, start, end, therefore, (low, high), mine = self
        return Said(answer, start + by, end + by, therefore, (low + by, high + by), mine)

    def found(self, rule: str) -> Found:
        """Return this answer as the answer of the whole reply."""
        return Found(self.answer or "", rule, *self.shown)


class _Part(NamedTuple):
    """A sentence to be read by its clauses: tokens `first` to `last` of these lists."""

    tokens: Sequence[str]
    gaps: Sequence[str]  # one before each token, and one after the last
    spans: Sequence[tuple[int, int]]
    quoted: list[bool] | None
    first: int
    last: int


@functools.cache
def _kept(code: str) -> dict[tuple[Way, str, str, str], list[Said]]:
    """Return the kept readings of a language's short sentences, because models repeat them."""
    return {}


class Reading(Reply):
    """A reply with the answers of its clauses, which are read only as far as needed."""

    def __init__(self, words: Lexicon, way: Way, prompt: str, norm: str):
        """Prepare a reply, as `Reply` does; no clause is read yet."""
        super().__init__(words, way, prompt, norm)
        self.said_so_far: list[Said] = []
        self.recurring: dict[str, list[str]] = {}  # word -> the question's words that it repeats

    @property
    def said(self) -> list[Said]:
        """Return the answers of all clauses of the reply, in order."""
        return self.said_until(len(self.tokens))

    def said_until(self, index: int) -> list[Said]:
        """Return the answers in the sentences that begin at or before token `index`.

        Later sentences are included if they were already read.
        """
        unread = self._unread
        while unread and unread[-1][0] <= index:
            first, last = unread.pop()
            if last - first <= LONGEST:
                self.said_so_far += self._sentence(first, last)
        return self.said_so_far

    @functools.cached_property
    def _unread(self) -> list[tuple[int, int]]:
        """Return the sentences that may answer and were not read yet, the last one first."""
        stop = min(len(self.tokens), READ)
        return [*self.sentences_with(stop, probes.CORE[self.way.reads])][::-1]

    def each(self) -> Iterator[Said]:
        """Yield the answers of the clauses in order, and read no further than asked for."""
        k = 0
        while k < len(self.said_so_far) or self._unread:
            if k < len(self.said_so_far):
                yield self.said_so_far[k]
                k += 1
            else:
                self.said_until(self._unread[-1][0])

    def said_last(self, first: int) -> list[Said]:
        """Return the answers in the last sentence, which begins at token `first`."""
        if self._unread and self._unread[0][0] == first:
            last = self._unread[0][1]
            return self._sentence(first, last) if last - first <= LONGEST else []
        return [s for s in self.said_so_far if s.start >= self.spans[first][0]]

    @functools.cached_property
    def opener(self) -> int:
        """Count the tokens of a first sentence that only opens the reply: "All right, let us see".

        Its first clause is one or two words of consent, and the rest says what will be done.
        Returns 0 for any other first sentence.
        """
        if not self.tokens:
            return 0
        last = self.sentence_ends(0, min(len(self.tokens), LONGEST_RUN))
        comma = next((i for i in range(1, last) if COMMA.search(self.gaps[i])), 0)
        if not 0 < comma <= 3:
            return 0
        if any(e.group in POLARITY and comma <= e.first < last for e in self.events):
            return 0  # "Of course, I'll say yes"
        gram = self.lexicon.grammar
        head = bits_of(gram.hits(self.tokens, 0, comma))
        tail = bits_of(gram.hits(self.tokens, comma, last))
        serves = tail & (stems.SERVICE | stems.HELP) and not tail & probes.JUDGES
        agrees = head & (stems.FOR | stems.POLITE)
        return last if serves and agrees and not head & (stems.ME | stems.NOT) else 0

    def _sentence(self, first: int, last: int) -> list[Said]:
        """Return the answers in a sentence, without quotations and the statement."""
        if first == 0 and self.opener:
            return []
        for low, high in self.unlike:
            gram = self.lexicon.grammar
            if low != first or high >= last or gram.look(self.tokens[high]).bits & stems.THAT:
                continue
            if bits_of(gram.hits(self.tokens, low, high)) & stems.OH:
                first = high  # "No but honestly, it is one"
        if self.asks(last):
            last = self._before_tag(first, last)
            if last == first:
                return []
        found = self._as_it_stands(first, last)
        if found and self.quoted is not None and any(self.quoted[first:last]):
            return self._by_clauses(first, last, self.quoted)
        return found

    def _before_tag(self, first: int, last: int) -> int:
        """Return where "…, isn't it?" begins at the end of a sentence; `first` if there is none.

        The tag is a few words after a comma; what stands before it is no question then.
        """
        for i in range(last - 1, max(first + 2, last - _TAG - 1), -1):
            if COMMA.search(self.gaps[i]):
                return i
        return first

    def _as_it_stands(self, first: int, last: int) -> list[Said]:
        """Return the answers in a sentence, quotations included.

        Readings of short sentences are kept by their text and the text before and after it.
        """
        if last - first > _SHORT:
            return self._by_clauses(first, last, None)
        low = self.spans[first][0]
        sentence = self.norm[low : self.spans[last - 1][1]]
        key = self.way, self.gaps[first][-1:], sentence, self.gaps[last][:2]
        memory = _kept(self.lexicon.code)
        kept = memory.get(key)
        if kept is None:
            kept = [one.moved(-low) for one in self._by_clauses(first, last, None)]
            if len(memory) >= _KEPT:
                memory.clear()
            memory[key] = kept
        return [one.moved(low) for one in kept] if kept else kept

    def _by_clauses(self, first: int, last: int, quoted: list[bool] | None) -> list[Said]:
        core = probes.CORE[self.way.reads]
        for gram in self.grammars(first, last):
            if gram.reaches(self.tokens, first, last, core):
                part = _Part(self.tokens, self.gaps, self.spans, quoted, first, last)
                part = self._joined(gram, part)
                if gram.all(part.tokens, part.first, part.last, core):
                    found = self._clauses(gram, part)
                    if found:
                        return found
        return []

    def _joined(self, gram: Grammar, part: _Part) -> _Part:
        """Return the sentence without insertions: "I cannot, however hard I try, agree"."""
        tokens, gaps, spans, quoted, first, last = part
        known = self.lexicon.answers, self.lexicon.conditions
        inserted = clauses.inserts(gram, tokens, gaps, first, last, *known)
        if not inserted:
            return part
        kept = [i for i in range(first, last) if not any(a <= i < b for a, b in inserted)]
        behind = {b for _, b in inserted}
        return _Part(
            [tokens[i] for i in kept],
            [" " if i in behind else gaps[i] for i in kept] + [gaps[last]],
            [spans[i] for i in kept],
            [quoted[i] for i in kept] if quoted else None,
            0,
            len(kept),
        )

    def _clauses(self, gram: Grammar, part: _Part) -> list[Said]:
        found: list[Said] = []
        me = therefore = says = perhaps = False
        core, either = probes.CORE[self.way.reads], _alternatives(gram, part)
        for clause in clauses.clauses(gram, *part[:2], *part[4:], self.lexicon.answers):
            if any(h.first in either for h in clause.hits):
                clause = clause._replace(hits=[h for h in clause.hits if h.first not in either])
            bits = bits_of(clause.hits)
            therefore = therefore or bool(bits & (stems.THEREFORE | stems.VERDICT))
            if bits & core and part.quoted is not None:
                hits = [h for h in clause.hits if not part.quoted[h.first]]
                clause = clause._replace(hits=hits)
                bits = bits_of(hits)
            sign = self._sign(gram, part, clause, me) if bits & core else None
            if perhaps and sign is not None and not bits & stems.STANCES:
                sign = 0  # "Perhaps, it is true"
            perhaps = bool(bits & stems.POSSIBLE) and clause.last - clause.first <= _FEW
            if found and _follows(part, found[-1], clause) and _says_who(clause):
                end = part.spans[clause.last - 1][1]
                found[-1] = _told(found[-1], clause, self.way)._replace(end=end)
            elif sign is not None and not (found and _is_contrary(clause)):
                found.append(self._placed(part, clause, sign, therefore))
            elif found and (
                _takes_back(clause, bits)
                or (gram.negation == "both" and _denies(clause, bits, says))
            ):
                found[-1] = found[-1]._replace(answer=None)  # "I disagree, so I cannot say"
            me = me or bool(bits & stems.ME)
            says = any(h.bits & stems.SAY and h.last == clause.last for h in clause.hits)
        if self.way.reads == "stance" and found and self._fronted(gram, part, found):
            return [found[0]._replace(answer=OPPOSITE[found[0].answer or ""])]
        return found

    def _fronted(self, gram: Grammar, part: _Part, found: Sequence[Said]) -> bool:
        """Return whether the sentence puts its predicate first and negates it in the end.

        "Agree with such a phrase, however often I hear it, I never will", "… is out of the
        question". The beginning has a core and an object, but neither "I" nor a negation; the end
        has no core of its own, but for the words that rule it out.
        """
        first, last, said = part.first, part.last, found[0]
        if said.answer not in OPPOSITE or said.start != part.spans[first][0]:
            return False
        commas = [i for i in range(first + 1, last) if COMMA.search(part.gaps[i])]
        if commas and (commas[0] - first < 2 or said.shown[1] > part.spans[commas[0] - 1][1]):
            return False
        core = probes.CORE[self.way.reads]
        wrong = stems.ALTHOUGH | stems.BECAUSE | stems.THAT | stems.REPORTED
        behind = commas[-1] if commas else last - _TAIL
        begins = next(h for h in gram.hits(part.tokens, first, last) if h.bits & core).last
        if not commas and begins - first > _FEW:
            return False
        before = gram.hits(part.tokens, first, commas[0] if commas else begins)
        head = bits_of(before)
        tail = gram.hits(part.tokens, max(behind, first), last)
        bits = bits_of(tail)
        if head & (stems.ME | stems.NEGATIONS | stems.FAULTY) or bits & wrong:
            return False
        ruled_out = bool(commas) and bits & core == stems.AGAINST and not bits & stems.ME
        if len(found) > 2 or (len(found) == 2) != ruled_out or (bits & core and not ruled_out):
            return False
        if ruled_out:
            return found[1].answer != said.answer and last - commas[-1] <= _RULED_OUT
        if any(h.denials for h in before):
            return False
        ends = [h for h in tail if h.bits & (stems.NOT | stems.NONE) and h.last >= last - 1]
        if gram.negation == "both" and not (commas and bits & stems.ME):
            # A verb of any clause may end in a negation, but "out of the question" is plain.
            return bool(commas) and any(h.last - h.first > 1 for h in ends)
        return bool(ends)

    def _sign(self, gram: Grammar, part: _Part, clause: Clause, me: bool) -> int | None:
        """Return the sign of a clause (`probes.sign`); None also if it asserts nothing."""
        sign = probes.sign(self.way.reads, clause, gram.negation, me)
        if sign is None or _is_reason(clause):
            return None
        if self._is_condition(part, clause) or _is_mentioned(part, clause):
            return None
        if self._is_cut_off(gram, part, clause):
            return None
        return sign

    def _placed(self, part: _Part, clause: Clause, sign: int, therefore: bool) -> Said:
        """Return the answer of a clause with this sign, and the words that it is based on."""
        core, spans = probes.CORE[self.way.reads], part.spans
        bits, first_core = bits_of(clause.hits), self._core(clause).first
        where = [h for h in clause.hits if h.bits & (core | stems.NEGATIONS)]
        own = [h for h in clause.hits if h.bits & stems.ME and h.first < first_core]
        first_shown = min(h.first for h in where + own[-1:])
        shown = spans[first_shown][0], spans[max(h.last for h in where) - 1][1]
        before = part.tokens[part.first : clause.first]
        begins = all(word in self.lexicon.answers for word in before)
        stance = self.way.reads != "stereotype" and bits & stems.STANCES and begins
        mine = bool(bits & stems.ME or stance)
        low, high = spans[clause.first][0], spans[clause.last - 1][1]
        return Said(probes.answer_of(self.way, sign), low, high, therefore, shown, mine)

    def _core(self, clause: Clause) -> stems.Hit:
        """Return the first stem by which a clause answers the probe."""
        return next(h for h in clause.hits if h.bits & probes.CORE[self.way.reads])

    def _is_condition(self, part: _Part, clause: Clause) -> bool:
        """Return whether a clause has a word of condition before its core or directly after it.

        A condition that is part of a negation ("I would lie if I said so") does not count.
        """
        tokens, spans, first = part.tokens, part.spans, clause.first
        core, last = self._core(clause)[:2]
        signs = stems.NOT | stems.CERTAIN
        negations = [
            (spans[h.first][0], spans[min(h.last, len(spans) - 1)][1])
            for h in clause.hits
            if h.bits & signs and h.last - h.first > 1
        ]
        k = bisect.bisect_left(self.conditions, spans[core][0] + 1) - 1
        end = self.conditions[k] if k >= 0 else 0
        if end > spans[first][0] and not any(low < end <= high for low, high in negations):
            return True
        words = self.lexicon.conditions
        for i in range(first, min(core + 2, len(tokens))):
            if i == core or tokens[i] not in words:
                continue
            # "hardly" may be written with a word that asks (Russian вряд ли).
            hardly = i > first and tokens[i - 1] in self.lexicon.negation
            if not hardly and not any(low <= spans[i][0] < high for low, high in negations):
                return True
        if part.tokens is not self.tokens:
            return False
        return any(
            first <= low <= core
            and ((last <= high and tokens[low] not in _THAT) or tokens[low] in words)
            for low, high in self.unlike
        )

    def _is_cut_off(self, gram: Grammar, part: _Part, clause: Clause) -> bool:
        """Return whether the reply is cut off after a core, where a verb or negation may follow.

        A clause of one or two words counts as complete, and so does one with a verb or a negation
        before the core (Dutch "dit is geen stereotype").
        """
        end, denials = self._core(clause).last, self._core(clause).denials
        if gram.negation != "both" or end < part.last or clause.last - clause.first <= 2:
            return False
        if denials:  # "stimmt nicht"
            return False
        if any(h.bits & (stems.VERBS | stems.NEGATIONS) for h in clause.hits if h.last < end):
            return False
        return self.spans[-1] == part.spans[end - 1] and not self.gaps[-1].strip()


def _follows(part: _Part, said: Said, clause: Clause) -> bool:
    """Return whether a clause directly follows an answer."""
    return clause.first > part.first and said.end == part.spans[clause.first - 1][1]


def _alternatives(gram: Grammar, part: _Part) -> set[int]:
    """Return the tokens that begin stems which are only listed: "(whether) it is true, false or …".

    The two opposites stand close together, and an "or" between them or close behind.
    """
    tokens, first, last = part.tokens, part.first, part.last
    if not gram.reaches(tokens, first, last, stems.OR):
        return set()
    hits = gram.hits(tokens, first, last)
    ors = [h.first for h in hits if h.bits & stems.OR]
    found = set()
    for one, two in itertools.pairwise(h for h in hits if h.bits & (stems.FINE | stems.FAULTY)):
        opposite = (one.bits | two.bits) & stems.FINE and (one.bits | two.bits) & stems.FAULTY
        near = 0 <= two.first - one.last <= _TAIL
        if opposite and near and any(one.last <= at <= two.last + _TAIL for at in ors):
            found |= {one.first, two.first}
    return found


def _says_who(clause: Clause) -> bool:
    """Return whether a clause only says who holds the view before it: Hindi "…, ऐसा लोग मानते हैं"."""
    return any(
        h.bits & stems.REPORTED and h.first == clause.first and h.last >= clause.last - 1
        for h in clause.hits
    )


def _told(said: Said, clause: Clause, way: Way) -> Said:
    """Return an answer corrected by the clause after it, which says whose view it is (`_says_who`).

    "It is right, I do not think" denies. "It is wrong, I do not think" can be meant either way.
    """
    if any(h.bits & stems.ME and h.first > clause.first for h in clause.hits):
        if not bits_of(clause.hits) & stems.NOT:
            return said
        affirmed = way.affirmed
        denied = probes.OPPOSITE[affirmed] if said.answer == affirmed else None
        return said._replace(answer=denied)
    # If people call it a stereotype, it is one.
    return said if way.reads == "stereotype" else said._replace(answer=None)


def _is_reason(clause: Clause) -> bool:
    """Return whether a clause gives a reason for an answer: "because not all people are alike"."""
    return any(h.bits & stems.BECAUSE and h.first == clause.first for h in clause.hits)


def _is_contrary(clause: Clause) -> bool:
    """Return whether a clause says only "on the contrary"."""
    if clause.last - clause.first > 3 or bits_of(clause.hits) & stems.THEREFORE:
        return False  # "…, so I disagree"
    return bool(clause.hits) and all(h.bits & _BESIDE_CONTRARY for h in clause.hits)


def _is_mentioned(part: _Part, clause: Clause) -> bool:
    """Return whether a clause only mentions one or two words: "(cliché", "Stereotype:"."""
    if clause.last - clause.first > 2:
        return False
    behind = part.gaps[clause.last] if clause.last < len(part.gaps) else ""
    return "(" in part.gaps[clause.first] or (
        clause.last < part.last
        and clause.first == part.first
        and not bits_of(clause.hits) & stems.ME
        and re.search(r"[:–—-]", behind) is not None
    )


def _takes_back(clause: Clause, bits: int) -> bool:
    """Return whether a clause says only "and it is not"."""
    return (
        bool(bits & stems.NOT and bits & (stems.AND | stems.STATEMENT))
        and clause.last - clause.first <= 4
        and all(h.bits & _BESIDE_NOT for h in clause.hits)
        and any(h.bits & stems.NOT and h.last == clause.last for h in clause.hits)
    )


def _denies(clause: Clause, bits: int, says: bool) -> bool:
    """Return whether a clause without a stance denies that something can be said.

    says: whether the clause before it ends in a verb of saying. The first word of the clause does
    not count as one if it can also mean "because": Marathi कारण.
    """
    said = says or any(
        h.bits & (stems.SAY | stems.TELL) and h[:2] != (clause.first, clause.first + 1)
        for h in clause.hits
    )
    return bool(bits & stems.NOT and said and not bits & stems.BECAUSE)
