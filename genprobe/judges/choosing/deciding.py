"""Apply the steps in order: the first one that finds an answer decides."""

from __future__ import annotations

from typing import NamedTuple

from genprobe.judges.choosing import formats, guessing, saying, sentences
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.taking import Found


class Decision(NamedTuple):
    """The decision on a reply.

    option: the number of the chosen option, or None. kind: `answer`, or the reason why there is
    none. rule: the step that decided. evidence: the words that it is based on.
    """

    option: int | None
    kind: str
    rule: str
    evidence: str


def decide(reading: Reading) -> Decision:
    """Decide which option a reply chooses."""
    found = formats.marked(reading) or _in_words(reading)
    if found is None:
        named = [m for m in reading.mentions if m.kind == "option"]
        if not named:
            return Decision(None, "offtopic", "no-option", "")
        kind = "echo" if reading.repeats() else "undecided"
        return Decision(None, kind, f"{kind}-options", reading.quote(named[0]))
    evidence = reading.quote(found.at)
    if len(found.taken) == 1:
        return Decision(next(iter(found.taken)), "answer", found.rule, evidence)
    if found.taken:
        return Decision(None, "several", "several-options", evidence)
    return Decision(None, found.rule, f"{found.rule}-phrase", evidence)


def _in_words(reading: Reading) -> Found | None:
    """Find an answer that no format marks."""
    begins, said = sentences.begins(reading), saying.said(reading)
    if begins is not None and said is not None and begins.taken != said.taken:
        return begins if _is_of_another_question(reading, begins, said) else said
    if said is not None:
        return said
    if begins is not None and sentences.is_plain(reading, begins):
        return begins
    return (
        sentences.concludes(reading)
        or formats.bold(reading)
        or sentences.last(reading)
        or begins
        or sentences.sole(reading)
        or guessing.misspelt(reading)
        or guessing.untold(reading)
    )


def _is_of_another_question(reading: Reading, begins: Found, said: Found) -> bool:
    """Tell whether a later answer belongs to another question that the model asks itself."""
    behind = [m for m in reading.mentions if m.first >= begins.at.last]
    asked = next((m.first for m in behind if m.kind == "question"), None)
    return asked is not None and asked < said.at.first
