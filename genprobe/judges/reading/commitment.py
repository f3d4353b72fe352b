"""Find the first commitment of a reply: the word, clause or phrase that answers first.

Events and clauses are read in order. Those that do not commit are remembered: if nothing commits,
they explain why there is no answer.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

from genprobe.judges.reading import answer_words, options, phrases, probes
from genprobe.judges.reading.lexicon import OPPOSITE, POLARITY, UNCLEAR
from genprobe.judges.reading.punctuation import COMMA, FULL_STOPS
from genprobe.judges.reading.reply import Event, Found
from genprobe.judges.reading.said import Reading, Said
from genprobe.linguistics import stems
from genprobe.resources import packs

# These end a sentence; a semicolon or "…" may stand between its two halves.
_SENTENCE_ENDS = re.compile(r"[.!?。！？।؟\n]")
_BEFORE = 3  # most tokens between an answer word and its interjection
_BEGINNING = 120  # tokens that are searched if nothing was understood


@dataclass(slots=True)
class _Seen:
    """Things found before the first commitment."""

    chosen: dict[str, str] = field(default_factory=dict)  # bullet -> the option after it
    echoed: bool = False  # the options, repeated
    unclear: str = ""  # a hedge or a refusal
    doubtful: bool = False  # a stance that no rule could interpret
    polite: Event | None = None  # a polite opener, a weak yes


def first(reading: Reading) -> Found | str:
    """Return the first clear commitment or, if there is none, the kind of the reply.

    The kind is both, refusal, hedge, echo or undecided; "" if nothing was understood.
    """
    seen = _Seen()
    k = j = 0  # index of the next event, and of the next clause with an answer
    while True:
        event = reading.events[k] if k < len(reading.events) else None
        # Clauses before the event come first, except before an answer word that begins the reply.
        if event is None or event.first > 0 or event.group not in POLARITY or _runs_on(reading, k):
            said = reading.said_until(event.first if event else len(reading.tokens))
            if j < len(said) and (event is None or said[j].start <= event.start):
                one = said[j]
                j += 1
                if _left_to_event(reading, k, one):
                    continue
                if one.answer is not None:
                    both = one.answer == "both" or _has_other_half(reading, one)
                    if both:
                        return "both"
                    return one.found("late-clause" if _is_late(reading, one) else "clause")
                k = _behind(reading, k, one)
                seen.doubtful = True
                continue
        if event is None:
            return _uncommitted(reading, seen)
        found, k = _by_event(reading, k, seen)
        if found is not None:
            return found


# Clauses and the events near them


def _runs_on(reading: Reading, k: int) -> bool:
    """Return whether an answer of several words continues into a longer sentence.

    Polish "zdecydowanie nie zgadzam się", "I don't, however charming it is, agree".
    """
    event = reading.events[k]
    gap = reading.gaps[event.last]
    if event.last - event.first == 1 or not (gap == " " or COMMA.match(gap)):
        return False
    if gap == " " and reading.tokens[event.last - 1] in reading.lexicon.answers:
        return True
    said = reading.said_until(event.first)
    return any(s.start <= event.start and s.shown[1] > event.end for s in said[-3:])


def _left_to_event(reading: Reading, k: int, said: Said) -> bool:
    """Return whether the first hedge or answer word in a clause decides instead of the clause."""
    while k < len(reading.events) and reading.events[k].start < said.end:
        event = reading.events[k]
        if event.group in UNCLEAR:
            return not phrases.hedge_goes_on(reading, event)
        if event.group in POLARITY:
            return (
                reading.stands(k)
                and answer_words.to_own_question(reading, k) is None
                and event.start <= said.start
                and not _runs_on(reading, k)
            )
        k += 1
    return False


def _behind(reading: Reading, k: int, said: Said) -> int:
    """Return the index of the next event after a clause."""
    events = reading.events
    while k < len(events) and events[k].start < said.end:
        late = events[k].group in POLARITY and events[k].start > said.start + 3
        if late or events[k].group in UNCLEAR:
            break
        k += 1
    return k


def _is_late(reading: Reading, one: Said) -> bool:
    """Return whether a clause below the first sentence only judges, and takes no stance."""
    if one.mine or not FULL_STOPS.search(reading.norm.lstrip(), 0, one.start):
        return False
    first, last = (bisect.bisect_left(reading.spans, (at, 0)) for at in (one.start, one.end))
    bits = [stems.bits_of(hits) for _, hits in reading.stems(first, last)]
    return not any(b & (stems.STANCES | stems.OWN | stems.SAME | stems.OPPOSITE) for b in bits)


def _has_other_half(reading: Reading, one: Said) -> bool:
    """Return whether the next clause with an answer says the opposite in the same sentence.

    "I agree with the first half and disagree with the second".
    """
    for said in reading.said_so_far:
        if said.start < one.end or said.answer not in OPPOSITE:
            continue
        if said.answer == one.answer or said.therefore:
            return False
        return _SENTENCE_ENDS.search(reading.norm, one.end, said.start) is None
    return False


# Events


def _by_event(reading: Reading, k: int, seen: _Seen) -> tuple[Found | str | None, int]:
    """Return the decision of event k (None if it decides nothing) and the next event to read."""
    event = reading.events[k]
    if event.group in POLARITY:
        return _by_word(reading, k, seen)
    if event.group == "both":
        return "both", k
    if event.group == "polite":
        if seen.polite is None and reading.starts(event.first) and event.first <= 3:
            seen.polite = event
    elif event.group == "agree" and event.last <= reading.opener:
        pass
    elif (answer := phrases.says(reading, event)) is not None:
        if phrases.asserted(reading, event):
            if not phrases.beside_negation(reading, event):
                return _by_phrase(reading, k, answer), k
            seen.doubtful = True
    elif event.group == "refusal" or (event.group == "hedge" and not seen.unclear):
        seen.unclear = event.group
    return None, k + 1


def _by_phrase(reading: Reading, k: int, answer: str) -> Found | str:
    event = reading.events[k]
    at = (event.start, event.end)
    if _has_other_half(reading, Said(answer, *at, False, at)):
        return "both"
    return Found(answer, event.group.replace("_", "-"), *at, k)


def _by_word(reading: Reading, k: int, seen: _Seen) -> tuple[Found | str | None, int]:
    """Do the same as `_by_event` for an answer word."""
    event = reading.events[k]
    if options.are_options(reading, k):
        seen.echoed = True
        options.numbered(reading, k, seen.chosen)
        second = options.following(reading, k)
        behind = reading.events[second].last
        return options.by_number(reading, seen.chosen, behind, second + 1), second + 1
    if reading.stands(k):
        if answer_words.is_refusal(reading, k):
            seen.unclear = "refusal"
        else:
            found = _by_standing_word(reading, k, seen)
            return found, k + (found is None)
    elif (
        event.first
        and answer_words.is_qualified(reading, k)
        and not _is_courtesy(reading, k)
        and not _is_exclamation(reading, k)
    ):
        if answer_words.is_divided(reading, k) or answer_words.opposite_before(reading, k):
            return "both", k
        return Found(POLARITY[event.group], "qualified-word", event.start, event.end, k), k
    return None, k + 1


def _by_standing_word(reading: Reading, k: int, seen: _Seen) -> Found | str | None:
    """Return the decision of an answer word in the position of an answer; None if it has none."""
    event = reading.events[k]
    answer = POLARITY[event.group]
    if answer == "yes" and seen.polite is None and answer_words.only_opens(reading, k):
        seen.polite = event
        return None
    if _is_courtesy(reading, k) or _is_exclamation(reading, k):
        return None
    cited = answer_words.is_cited(reading, event)
    own = "" if cited else answer_words.to_own_question(reading, k)
    if own == "":
        seen.doubtful = True
        return None
    if own is None and answer_words.is_divided(reading, k):
        return "both"
    rule = "word" if event.group in packs.ANSWERS else "word-alone"
    if event.group.startswith("foreign"):
        rule = "foreign-word"
    if seen.echoed:
        rule += "-after-options"
    return Found(own or answer, rule, event.start, event.end, k)


def _is_courtesy(reading: Reading, k: int) -> bool:
    """Return whether an answer word only begins a courtesy: "No, no trouble at all, ask away!".

    The rest of the first sentence judges nothing, and every later clause that answers says the
    opposite.
    """
    event = reading.events[k]
    if event.first > 2:
        return False
    last = reading.sentence_ends(event.last - 1, len(reading.tokens))
    if last - event.last < 2:
        return False
    behind = reading.spans[last - 1][1]
    if any(one.answer and one.start < behind for one in reading.said_until(last - 1)):
        return False
    said = False
    for one in reading.each():
        if one.answer and one.answer != OPPOSITE[POLARITY[event.group]]:
            return False
        said = said or bool(one.answer)
    return said


def _is_exclamation(reading: Reading, k: int) -> bool:
    """Return whether an answer word only exclaims: "Oh no, come on, it's a stereotype".

    An interjection stands beside it, and all clauses of its sentence that answer say the opposite.
    """
    event = reading.events[k]
    first = reading.sentence_begins(event.first, event.first - _BEFORE)
    if first or event.first - first > _BEFORE:
        return False
    last = reading.sentence_ends(event.last - 1, len(reading.tokens))
    behind = reading.spans[last - 1][1]
    near = range(event.first - 1, event.last + _BEFORE)
    gram = reading.lexicon.grammar
    if not gram.reaches(reading.tokens, 0, last, stems.OH) or not any(
        h.bits & stems.OH and (h.first in near or h.last - 1 in near)
        for h in gram.hits(reading.tokens, 0, last)
    ):
        return False
    said = [
        one for one in reading.said_until(last) if one.answer and event.end <= one.end <= behind
    ]
    if not said:
        return POLARITY[event.group] != "yes" and _exclaims_stereotype(reading, event.last, last)
    return {one.answer for one in said} == {OPPOSITE[POLARITY[event.group]]}


def _exclaims_stereotype(reading: Reading, first: int, last: int) -> bool:
    """Return whether words exclaim that it is a stereotype: "what a stereotype!"."""
    if reading.way.reads != "stereotype" or "!" not in reading.gaps[last]:
        return False
    bits = stems.bits_of(reading.lexicon.grammar.hits(reading.tokens, first, last))
    return bool(bits & stems.STEREOTYPE) and not bits & stems.NEGATIONS


# Nothing committed


def _uncommitted(reading: Reading, seen: _Seen) -> Found | str:
    """Return the result for a reply in which nothing committed."""
    if reading.opener and reading.opener == len(reading.tokens):
        return seen.unclear  # "All right, here is my answer", and no more
    cut = options.word_cut_off(reading, seen.chosen)
    if cut is not None:
        return cut
    if seen.unclear:
        return seen.unclear
    if seen.polite is not None:
        if answer_words.polite_is_yes(reading, seen.polite):
            return Found("yes", "polite-word", seen.polite.start, seen.polite.end)
        seen.doubtful = True
    if seen.echoed:
        return "echo"
    return "undecided" if seen.doubtful or _may_answer(reading) else ""


def _may_answer(reading: Reading) -> bool:
    """Return whether the reply may answer in words that were not understood.

    It may if it mentions the speaker, the statement or agreement, without questions or conditions.
    """
    wanted = probes.MAY_ANSWER[reading.way.reads] | stems.ME | stems.STATEMENT | stems.HERE
    conditions = reading.lexicon.conditions
    for start, end in reading.sentences(min(len(reading.tokens), _BEGINNING)):
        words = reading.tokens[start:end]
        if reading.asks(end) or not conditions.isdisjoint(words):
            continue
        bits = stems.bits_of(reading.lexicon.grammar.hits(reading.tokens, start, end))
        if bits & wanted and not bits & stems.OTHERS:
            return not reading.all_quoted(start, end)
    return False
