"""Find an answer by its position: at the beginning, in a conclusion, at the end, or alone."""

from __future__ import annotations

from genprobe.judges.choosing.mentions import Mention
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.taking import Found, answer, take

_LEAD = 6  # words that may come before the first clause of an answer
_FEW = 6  # words of a last sentence that is little more than an option


def begins(reading: Reading) -> Found | None:
    """Read a first sentence that is an answer from its start."""
    if not reading.sentences or reading.repeats():
        return None
    first = reading.sentences[0]
    held = reading.answers(first)
    if reading.asks(first) or not held:
        return None
    if any(m.kind == "although" and m.last <= held[0].first for m in reading.mentions):
        return None
    if held[0].kind == "option" and not reading.is_only(first, held):
        clause = reading.clause(first, held[0].first)
        spoken = {i for m in reading.mentions if m.kind != "not" for i in range(m.first, m.last)}
        lead = reading.reply.without_small(range(clause.start, held[0].first))
        if len([i for i in lead if i not in spoken]) > 1 or clause.start - first.start > _LEAD:
            return None
        end = max(reading.within(first), key=lambda m: m.last)
        if end.kind == "option" and end.last == first.stop and not _closes(reading, end, held[0]):
            return None  # "A slept, B had no key, that was C"
    return answer(reading, first, "first")


def _closes(reading: Reading, end: Mention, begin: Mention) -> bool:
    """Tell whether the option at the end of a sentence is the same as at its start, or rejected."""
    _, down = take(reading, reading.sentence(begin.first))
    return end.option == begin.option or end.option in down


def is_plain(reading: Reading, found: Found) -> bool:
    """Tell whether an answer's clause is only an option, apart from a reason."""
    sentence = reading.sentence(found.at.first)
    clause = reading.clause(sentence, found.at.first)
    if len(found.taken) != 1:
        return False
    taken, _ = take(reading, sentence)
    if len({m.option for m in taken if m.kind == "option"}) > 1:
        return False
    reasons = [m.first for m in reading.within(clause) if m.kind == "because"]
    return reading.is_only(range(clause.start, min([clause.stop, *reasons])), [found.at])


def concludes(reading: Reading) -> Found | None:
    """Find the last sentence that draws a conclusion and names an option."""
    for mention in reversed([m for m in reading.mentions if m.kind == "so"]):
        rest = range(mention.last, reading.sentence(mention.first).stop)
        found = answer(reading, rest, "conclusion")
        if found is not None:
            return found
    return None


def last(reading: Reading) -> Found | None:
    """Read a last sentence that is an option and little more."""
    sentence = reading.sentences[-1]
    held = reading.answers(sentence)
    if len(reading.sentences) < 2 or not held or reading.repeats():
        return None
    found = answer(reading, sentence, "last")
    if found is None or reading.is_only(sentence, held):
        return found
    few = len(reading.reply.without_small(sentence)) <= _FEW
    return found if few and len(found.taken) == 1 else None


def sole(reading: Reading) -> Found | None:
    """Find the one option that is taken in any sentence and rejected in none.

    If no sentence takes one: an answer without an option ("neither"), or the option that is left
    when the others are rejected.
    """
    unknown = reading.options.unknown
    taken: dict[int, Found] = {}
    other: list[Found] = []
    down: set[int] = set()
    for sentence in reading.sentences:
        if reading.asks(sentence):
            continue
        down |= take(reading, sentence)[1]
        found = answer(reading, sentence, "sole")
        if found is None:
            continue
        if found.taken:
            taken.update(dict.fromkeys(found.taken, found))
        else:
            other.append(found)
    left = {number: found for number, found in taken.items() if number not in down}
    if len(left) == 1:
        number, found = next(iter(left.items()))
        return found._replace(taken=frozenset((number,)))
    if unknown in left and left[unknown].at.kind == "unknown":
        return left[unknown]._replace(taken=frozenset((unknown,)))
    if left:
        return None
    if other:
        return other[-1]
    rest = set(range(reading.options.count)) - down
    if down and len(rest) == 1:
        mention = next(m for m in reading.mentions if m.option in down)
        return Found(frozenset(rest), "all-others-rejected", mention)
    return _in_reason(reading, down) if len(down) == 1 else None


def _in_reason(reading: Reading, down: set[int]) -> Found | None:
    """Find the one option that is named in the reason for rejecting another."""
    found: dict[int, Mention] = {}
    for sentence in reading.sentences:
        held = reading.within(sentence)
        cut = next((k for k, m in enumerate(held) if m.kind == "because"), len(held))
        if not any(m.option in down for m in held[:cut]) or reading.asks(sentence):
            continue
        if any(m.kind in ("not", "wrong", "although", "both", "neither") for m in held[cut:]):
            return None
        found |= {m.option: m for m in held[cut:] if m.kind == "option" and not m.weak}
    left = [mention for number, mention in found.items() if number not in down]
    return Found(frozenset((left[0].option,)), "reason", left[0]) if len(left) == 1 else None
