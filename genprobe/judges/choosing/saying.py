"""Find an answer announced as such: "the answer is B", "I choose the second", "B is correct"."""

from __future__ import annotations

from genprobe.judges.choosing.mentions import Mention
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.taking import Found, answer

_FAR = 8  # words from "the answer is" to the answer if a clause ends between them


def said(reading: Reading) -> Found | None:
    """Find the last announced answer; those are preferred that name one option, and in full."""
    results = []
    for mention in reading.mentions:
        if mention.kind == "label":
            found = _before(reading, mention) if _closes(reading, mention) else None
            found = found or _behind(reading, mention)
        elif mention.kind == "after":
            found = _before(reading, mention)
        else:
            continue
        if found is not None:
            results.append(found)
    single = [found for found in results if len(found.taken) == 1]
    # What explains an answer by its mark or its text may name others by a word of theirs.
    explicit = [f for f in single if f.at.kind == "option" and reading.is_explicit(f.at)]
    if explicit and single[-1].at.kind == "option":
        return explicit[-1]
    return (single or results)[-1] if results else None


def _closes(reading: Reading, label: Mention) -> bool:
    """Tell whether a label ends its sentence and announces nothing: "2 is right"."""
    return reading.reply.ends_sentence(label.last) and ":" not in reading.reply.gap(label.last)


def _behind(reading: Reading, label: Mention) -> Found | None:
    """Find the answer that a label announces: in its sentence, else in the next one."""
    at = reading.place(label.first)
    sentence = reading.sentences[at]
    rest = range(label.last, sentence.stop)
    if len(rest) == 0 and at + 1 < len(reading.sentences):
        following = reading.sentences[at + 1]
        return answer(reading, following, "said")
    before = reading.within(range(sentence.start, label.first))
    if before and before[-1].kind == "not" and before[-1].last == label.first:
        return None  # "I do not choose A"
    close = reading.answers(rest)
    if not close or (close[0].first - label.last > _FAR and len(reading.clauses(rest)) > 1):
        return None
    return answer(reading, rest, "said")


def _before(reading: Reading, label: Mention) -> Found | None:
    """Find the option before "is the right answer", in its clause."""
    clause = reading.clause(reading.sentence(label.first), label.first)
    held = reading.within(clause)
    before = [m for m in held if m.last <= label.first]
    if any(m.kind in ("not", "although", "because") for m in before):
        return None
    behind = [m for m in held if m.first >= label.last]
    if behind and behind[0].kind in ("not", "wrong") and behind[0].first == label.last:
        return None
    options = [m for m in before if m.kind == "option"]
    if not options:
        return None
    last = options[-1]
    named = [m for m in behind if m.kind == "option" and reading.is_text(m)]
    if named and reading.is_bare_place(last):
        return Found(frozenset((named[0].option,)), "said", named[0])
    beside = [m for m in options if m.option != last.option and last.first - m.last <= 1]
    if beside or (any(m.kind == "both" for m in before) and len({*options}) > 1):
        return Found(frozenset(m.option for m in options), "said", last)
    return Found(frozenset((last.option,)), "said", last)
