"""Find an answer by its position: at the beginning, in a conclusion, at the end, or alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from genprobe.judges.choosing.mentions import Mention
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.spelling import HAN
from genprobe.judges.choosing.taking import Found, answer, take

_CLOSED = re.compile(r"[)\]）】:：*_]")  # behind an option that is set off
_LEAD = 6  # words that may come before the first clause of an answer
_PLAIN = str.maketrans("；؛：", ";;:")
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
        if end.kind == "option" and end.last == first.stop:
            return None  # "A slept, B had no key, that was C"
    return answer(reading, first, "first")


def opens(reading: Reading, begun: Found | None) -> Found | None:
    """Return the answer of a reply that opens with an option by its mark or whole text.

    It must stand alone in its sentence, apart from a reason, or be closed off ("(B)", "**B**",
    "B:"). What follows only explains it. The first of several parts ("A: …", "B: …") is none.
    """
    held = reading.answers(reading.sentences[0]) if reading.sentences else []
    if not held or held[0].kind != "option" or not reading.is_explicit(held[0]):
        return None
    first = held[0]
    if any(m.kind == "torn" and m.first < first.first for m in reading.mentions):
        return None  # "I waver, but my answer is A" is announced
    parts = any(
        m.option == first.option + 1
        and reading.is_explicit(m)
        and "\n" in reading.reply.gap(m.first)
        for m in reading.mentions
    )
    if parts or reading.repeats() or not reading.is_only(range(first.last)):
        return None
    if not (begun and begun.at == first and is_plain(reading, begun)):
        behind = reading.within(range(first.last, reading.sentences[0].stop))
        behind = [m for m in behind if m.kind not in ("so", "but")]
        denied = behind and behind[0].kind in ("not", "wrong", "instead")
        near = denied and not reading.reply.without_small(range(first.last, behind[0].first))
        if near or not _CLOSED.match(reading.reply.gap(first.last)):
            return None
    return Found(frozenset((first.option,)), "opens", first)


def doubted(reading: Reading, found: Found) -> Found:
    """Mark an answer of a first sentence that goes on with another option, or takes it back.

    "The nurse slept while the pilot read"; "the nurse was away, so she cannot have done it".
    """
    if len(found.taken) != 1 or found.at.kind != "option" or reading.options.unknown in found.taken:
        return found
    sentence = reading.sentence(found.at.first)
    down = take(reading, sentence)[1]
    taken_back = any(
        m.kind == "so"
        and m.first > found.at.first
        and reading.reply.holds(range(m.first, sentence.stop), reading.lexicon.deny)
        for m in reading.within(sentence)
    )
    if taken_back or _others(reading, next(iter(found.taken)), down, [sentence]):
        return found._replace(rule="first-among")
    return found


def is_plain(reading: Reading, found: Found) -> bool:
    """Tell whether an answer's clause is only an option, apart from a reason."""
    sentence = reading.sentence(found.at.first)
    clause = reading.clause(sentence, found.at.first)
    if len(found.taken) != 1:
        return False
    taken, _ = take(reading, sentence)
    if len({m.option for m in taken if m.kind == "option"}) > 1:
        return False
    behind = range(found.at.last, clause.stop)
    reasons = [m.first for m in reading.within(behind) if m.kind == "because"]
    later = reading.within(range(clause.stop, sentence.stop))
    if reasons and any(m.kind == "option" and m.option not in found.taken for m in later):
        return False  # "A when asleep, then B did it", in languages with "when" behind the noun
    return reading.is_only(range(clause.start, min([clause.stop, *reasons])), [found.at])


def concludes(reading: Reading) -> Found | None:
    """Find the last sentence that draws a conclusion and names an option."""
    for mention in reversed([m for m in reading.mentions if m.kind == "so"]):
        rest = range(mention.last, reading.sentence(mention.first).stop)
        found = answer(reading, rest, "conclusion")
        if found is not None:
            return found
    return None


def contrasts(reading: Reading) -> Found | None:
    """Find the option after the last "but" of a sentence that is little more than that option.

    "Many would say the nurse, but in fact it was the pilot"; not if more is said of it ("but the
    pilot was busy, too"), nor if the sentence begins with an option alone.
    """
    for sentence in reversed(reading.sentences):
        held = reading.within(sentence)
        buts = [m for m in held if m.kind == "but"]
        if not buts:
            continue
        rest = range(buts[-1].last, sentence.stop)
        named = [m for m in reading.within(rest) if m.kind != "not"]
        before = {m.option for m in held if m.kind == "option" and m.last <= buts[-1].first}
        if len(named) != 1 or named[0].kind != "option" or len(before) != 1:
            return None
        if named[0].option in before or reading.is_only(reading.clauses(sentence)[0]):
            return None
        spoken = range(named[0].first, named[0].last)
        more = [i for i in reading.reply.without_small(rest) if i not in spoken]
        more = [i for i in more if not any(m.first <= i < m.last for m in held)]
        return Found(frozenset((named[0].option,)), "contrast", named[0]) if not more else None
    return None


def leaves_open(reading: Reading) -> Found | None:
    """Find the sentence that says that it is not told whether it was one option or another.

    "Whether it was the nurse or the pilot, nobody says": all options that it names are joined by
    words for "or" or follow one for "whether", and it denies that something is told.
    """
    lexicon, reply, options = reading.lexicon, reading.reply, reading.options
    for at, sentence in enumerate(reading.sentences):
        if reading.asks(sentence) and at + 1 < len(reading.sentences):
            sentence = range(sentence.start, reading.sentences[at + 1].stop)
        cut = next((i for i in sentence if i > sentence.start and ";" in _plain(reply.gap(i))), 0)
        part = range(sentence.start, cut or sentence.stop)
        held = reading.within(part)
        named = [m for m in held if m.kind == "option" and m.option != options.unknown]
        if len({m.option for m in named}) < 2 or len(take(reading, part)[1]) > options.count - 2:
            continue
        inside = range(named[0].last, named[-1].first)
        if any(m.kind in ("although", "but", "not", "instead") for m in reading.within(inside)):
            continue
        between = {reply.words[i] for i in inside}
        words = [reply.words[i] for i in part]
        asked = any(w in "".join(words) if HAN.match(w) else w in words for w in lexicon.whether)
        if not (asked or between & lexicon.ors):
            continue
        denied = reply.holds(part, (*lexicon.tell, *lexicon.source)) and (
            reply.holds(part, lexicon.deny)
        )
        said = next((m for m in held if m.kind == "unknown"), None)
        if said is None and not denied:
            continue
        said = said or Mention("unknown", part.start, part.stop)
        if options.unknown is None:
            return Found(frozenset(), "hedge", said)
        return Found(frozenset((options.unknown,)), "open", said)
    return None


def _plain(gap: str) -> str:
    return gap.translate(_PLAIN)


def last(reading: Reading) -> Found | None:
    """Read a last sentence that is an option and little more."""
    if len(reading.sentences) < 2:
        return None
    sentence = reading.sentences[-1]
    held = reading.answers(sentence)
    if not held or reading.repeats():
        return None
    found = answer(reading, sentence, "last")
    if found is None:
        return None
    named = found.at.kind == "option" and reading.is_text(found.at)
    if named and not reading.is_explicit(found.at):
        found = found._replace(rule="last-part")
    if reading.is_only(sentence, held):
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
        rule = "sole-among" if _others(reading, number, down) else found.rule
        return found._replace(taken=frozenset((number,)), rule=rule)
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


def _others(reading: Reading, number: int, down: set[int], sentences: Sequence[range] = ()) -> bool:
    """Tell whether another option is named that is neither rejected, nor expected, nor a reason."""
    for sentence in sentences or reading.sentences:
        for clause in reading.clauses(sentence):
            held = reading.within(clause)
            if clause.start and ":" in _plain(reading.reply.gap(clause.start)):
                break  # "It was the nurse: the pilot was out" gives a reason
            if any(m.kind in ("although", "because", "instead") for m in held):
                continue
            if any(m.kind == "option" and m.option not in (number, *down) for m in held):
                return True
    return False


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
