"""Decide the answer of a reply: from marked answers, its first commitment and its end."""

from __future__ import annotations

from genprobe import text
from genprobe.judges.reading import (
    announced,
    asked,
    closing,
    commitment,
    declining,
    marked,
    probes,
    restated,
)
from genprobe.judges.reading.lexicon import OPPOSITE
from genprobe.judges.reading.punctuation import SENTENCE_ENDS
from genprobe.judges.reading.reply import CLAUSES, WORD_RULES, Found, Reply
from genprobe.judges.reading.said import Reading


def read(reading: Reading) -> Found | str:
    """Return the answer of a reply, or why there is none.

    The reason is a kind of reply: both, refusal, hedge, echo, undecided; "" if nothing was
    understood.
    """
    plain = marked.find(reading)
    if plain is not None:
        return plain
    plain, found = announced.find(reading), commitment.first(reading)
    back = closing.taken_back(reading, found)
    if back != found:
        return back
    if plain is not None:
        if isinstance(found, str) or not _is_only_line(reading, found, plain):
            return plain
        return found  # what is announced later answers another question
    if (isinstance(found, str) or found.rule not in WORD_RULES) and (
        said := announced.bold(reading)
    ):
        return said
    if declining.governs(reading, found):
        return "refusal"
    if reading.way.reads == "question" and (isinstance(found, str) or found.start > 0):
        again = _stance(reading) or restated.find(reading)
        if again is not None and (isinstance(found, str) or _before(reading, again, found)):
            return again
    if not isinstance(found, str):
        found = closing.own_stance(reading, closing.own_behind_colon(reading, found))
    found = closing.left_open(reading, closing.last_sentence(reading, found))
    last = closing.last_line(reading)
    if isinstance(found, str):
        return last if last is not None and found in ("both", "hedge", "undecided") else found
    if last is None and found.rule in CLAUSES:
        last = closing.last_word(reading)  # "... Yes."
    if last is not None and found.answer != last.answer:
        if _is_first_line(reading, found):
            return found  # a bare answer first, then the model drifts
        # One word begins the reply and its opposite ends it: the answer cannot be determined.
        return last if found.start > 0 or found.rule not in WORD_RULES else "undecided"
    return closing.conclusion(reading, found) or found


def _stance(reading: Reading) -> Found | None:
    """Return the speaker's stance, if the question asks for one: "Do you agree that …?"."""
    question = asked.asked(reading.lexicon.code, reading.asked)
    if not question.agrees:
        return None
    way = probes.Way("stance", question.agrees)
    stance = Reading(reading.lexicon, way, reading.prompt, reading.norm)
    found = commitment.first(stance)
    if isinstance(found, str) or found.rule in WORD_RULES:
        return None
    mine = found.rule in ("agree", "disagree") or any(
        s.mine and s.shown == (found.start, found.end) for s in stance.said_so_far
    )
    return found if mine else None


def _before(reply: Reply, one: Found, two: Found) -> bool:
    """Return whether an answer stands in an earlier sentence than another one."""
    return SENTENCE_ENDS.search(reply.norm, one.end, max(one.end, two.start)) is not None


def _is_first_line(reply: Reply, found: Found) -> bool:
    """Return whether an answer is the whole first line of the reply."""
    if found.rule not in WORD_RULES or reply.events[found.event].first > 0:
        return False
    line = reply.norm.strip().split("\n", 1)[0]
    return reply.means(line) is not None


def _is_only_line(reply: Reply, found: Found, later: Found) -> bool:
    """Return whether an answer is the first line, and no line before a later one answers again."""
    lines = reply.norm[: later.start].strip().split("\n")[1:]
    return _is_first_line(reply, found) and not any(map(reply.means, lines))


def comes_to(reading: Reading) -> str:
    """Return the answer of a thought: its last commitment (in a reply, the first one counts)."""
    plain = marked.find(reading) or announced.find(reading)
    if plain is not None:
        return plain.answer
    said = [one.answer for one in reading.said if one.answer]
    if said:
        return said[-1] if said[-1] in OPPOSITE else "ambiguous"
    found = commitment.first(reading)
    return "ambiguous" if isinstance(found, str) else found.answer


def why_not(reply: Reply, had_echo: bool, found: str) -> str:
    """Return the kind of a reply without an answer.

    This is what `read` found, else `empty`, `echo`, `undecided` or `offtopic`.
    """
    if found and found != "undecided":
        return found
    if not reply.tokens:
        return "echo" if had_echo else "empty"
    # The beginning of the reply repeats the statement or the question.
    head = " ".join(reply.tokens[:5])
    asked = " ".join(text.tokens(reply.asked))
    if f" {head}" in f" {asked}":
        return "echo"
    return found or "offtopic"
