"""Apply the steps in order: the first one that finds an answer decides."""

from __future__ import annotations

from typing import NamedTuple

from genprobe.judges.choosing import formats, guessing, saying, sentences
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.taking import Found

# Steps that are right in less than 95 % (docs/choices.md).
_UNSURE = ("first-among", "sole-among", "untold-among", "last-part")


_DESPITE = ("marked", "said", "conclusion")  # steps by which a reply that wavers decides after all


class Decision(NamedTuple):
    """The decision on a reply.

    option: the number of the chosen option, or None. kind: `answer`, or the reason why there is
    none. rule: the step that decided. evidence: the words that it is based on. likely: the option
    of a step that is not right often enough (`unsure`). by_mark, by_text: the two options of a
    `mismatch`.
    """

    option: int | None
    kind: str
    rule: str
    evidence: str
    likely: int | None = None
    by_mark: int | None = None
    by_text: int | None = None


def decide(reading: Reading) -> Decision:
    """Decide which option a reply chooses."""
    found = formats.marked(reading) or _in_words(reading)
    torn = next((m for m in reading.mentions if m.kind == "torn"), None)
    if torn and (found is None or not found.rule.startswith(_DESPITE)):
        return Decision(None, "unsure", "torn", reading.quote(torn))
    if found is None:
        named = [m for m in reading.mentions if m.kind == "option"]
        if not named:
            return Decision(None, "offtopic", "no-option", "")
        kind = "echo" if reading.repeats() else "undecided"
        return Decision(None, kind, f"{kind}-options", reading.quote(named[0]))
    evidence = reading.quote(found.at)
    if len(found.taken) == 1:
        option = next(iter(found.taken))
        if found.at.mark >= 0 and found.at.option == option:
            return Decision(
                None, "mismatch", found.rule, evidence, by_mark=found.at.mark, by_text=option
            )
        return Decision(option, "answer", found.rule, evidence)
    if found.taken:
        return Decision(None, "several", "several-options", evidence)
    return Decision(None, found.rule, f"{found.rule}-phrase", evidence)


def withheld(decision: Decision) -> Decision:
    """Return a decision as unsure, its option as the likely one, if its step errs too often."""
    if decision.kind == "answer" and decision.rule.startswith(_UNSURE):
        return decision._replace(option=None, kind="unsure", likely=decision.option)
    return decision


def _in_words(reading: Reading) -> Found | None:
    """Find an answer that no format marks."""
    begins = sentences.begins(reading)
    opens = sentences.opens(reading, begins)
    if opens:
        return opens
    said = saying.said(reading)
    leaves = sentences.leaves_open(reading)
    if leaves and said and not sentences.is_plain(reading, said):
        said = None if said.at.first < reading.sentence(leaves.at.first).stop else said
    if said is not None:
        return said
    if begins is not None and sentences.is_plain(reading, begins):
        return begins
    return (
        sentences.concludes(reading)
        or leaves
        or sentences.contrasts(reading)
        or formats.bold(reading)
        or sentences.last(reading)
        or (begins and sentences.doubted(reading, begins))
        or sentences.sole(reading)
        or guessing.misspelt(reading)
        or guessing.described(reading)
        or guessing.untold(reading)
    )
