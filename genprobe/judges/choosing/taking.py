"""Find the options that a sentence or a clause takes as its answer, and those that it rejects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from genprobe.judges.choosing.mentions import WHOLE, Mention
from genprobe.judges.choosing.reading import Reading

_NEAR = 4  # words between "not" and the option that it rejects


class Found(NamedTuple):
    """An answer: the options taken (none, one or several), the rule, and the words it is based on.

    If none is taken, the rule gives the reason: `hedge` (it cannot be known, and no option says
    so), `neither` or `several` ("both").
    """

    taken: frozenset[int]
    rule: str
    at: Mention


def one(option: int, rule: str, first: int, last: int) -> Found:
    """Make the answer that takes one option by the words first <= i < last."""
    return Found(frozenset((option,)), rule, Mention("option", first, last, option))


def answer(reading: Reading, words: range, rule: str) -> Found | None:
    """Return the answer that these words give; None if they give none.

    "Unknown" and "neither" take the option with that meaning; then `-unknown` or `-neither` is
    added to the rule.
    """
    options = reading.options
    taken, _ = take(reading, words)
    if not taken:
        return None
    strong = [m for m in taken if not m.weak] or taken
    first = strong[0]
    later = [m for m in reading.within(words) if m.kind == "unknown" and m.first >= first.last]
    if first.kind == "both" and later:
        first = later[0]  # "both are possible, so one cannot tell"
    both = options.meant.get("both", -1)
    numbers = frozenset(m.option for m in strong if m.kind == "option")
    if len(numbers) > 1 and any(m.option == both for m in taken if m.kind == "option"):
        return Found(frozenset((both,)), rule, first)  # "A and B, both of them"
    if first.kind in ("both", "none"):
        return Found(frozenset(), "several" if first.kind == "both" else "neither", first)
    if first.kind in ("unknown", "neither"):
        if options.unknown is None:
            return Found(frozenset(), "hedge" if first.kind == "unknown" else "neither", first)
        return Found(frozenset((options.unknown,)), f"{rule}-{first.kind}", first)
    late = next((m for m in strong[1:] if m.kind in ("unknown", "neither")), None)
    if late is not None and len(numbers) > 1:  # "A or B: unknown"
        if options.unknown is None:
            return Found(frozenset(), "hedge", late)
        return Found(frozenset((options.unknown,)), f"{rule}-unknown", late)
    if any(m.kind == "both" for m in strong):
        return Found(frozenset(), "several", first)
    return Found(numbers, rule, first)


# --- clause by clause


def take(reading: Reading, words: range) -> tuple[list[Mention], set[int]]:
    """Return the mentions that answer in these words, and the options that are rejected.

    One clause decides; clauses that are only an option add theirs.
    """
    down: set[int] = set()
    taken: list[Mention] = []
    before = words
    reason = False  # whether a reason is being given; its options are no answer
    for clause in reading.clauses(words):
        if taken and not reading.within(clause):
            continue
        gap = reading.reply.gap(clause.start) if clause.start else ""
        if taken and "(" in gap:
            reason = False
        # "It was A: B was out" gives a reason.
        reason = reason or bool(taken and re.search("[:：]", gap))
        _turn_down_list(reading, clause, down)
        if taken and _dismisses(reading, clause):
            down.add(taken[-1].option)  # "B had an exam, so she is out"
            taken = [m for m in taken if m.option not in down or m.kind != "option"]
            continue
        own, reason = _take_clause(reading, clause, down, reason)
        if clause.start == words.start and _begins_with_reason(reading, clause):
            reason = False  # "because A was out, it was B"
        if not taken:
            taken, before = own, clause
        elif not own or reason:
            continue
        elif _narrows(taken, own):
            taken, before = own, clause
        elif _goes_on(reading, clause, own, before) or _leaves_open(
            reading, clause, taken, own, before
        ):
            taken += own
    return taken, down


def _take_clause(
    reading: Reading, clause: range, down: set[int], reason: bool
) -> tuple[list[Mention], bool]:
    """Return the mentions that one clause takes, and whether it ends within a reason.

    down: the options rejected so far; those that this clause rejects are added.
    reason: whether the clause begins within a reason.
    """
    words, ors = reading.reply.words, reading.lexicon.ors
    held = reading.within(clause)
    if reason and [m.kind for m in held[:2]] == ["option", "wrong"]:
        reason = False  # "A was out because he slept, B does not fit, either"
    own: list[Mention] = []
    aside = False  # after "although", "one would expect"
    denied = -99  # where the last "not" ends
    for k, mention in enumerate(held):
        before = own[-1] if own else None
        if mention.kind == "because":
            reason = not _means_or(reading, held, k)
        elif mention.kind in ("so", "but"):
            reason = aside = False
            denied = -99
        elif mention.kind == "although":
            aside = True
            if mention.last == clause.stop and before is not None and before.kind == "option":
                own.clear()  # "the nurse comes to mind", in languages with the verb at the end
        elif mention.kind in ("not", "instead"):
            denied = mention.last
            ends = mention.last == clause.stop or _other_follows(held, k)
            near = before is not None and (
                mention.first - before.last <= 1
                or not reading.reply.without_small(range(before.last, mention.first))
            )
            if mention.kind == "not" and before is not None and near and ends:
                down.add(before.option)  # "A no", "A is not"
                own.pop()
        elif mention.kind == "wrong":
            if before is not None and before.kind == "option":
                down.add(before.option)
                own.pop()
            else:
                denied = mention.last  # "it was not" may also come before
        elif reason or aside:
            continue
        elif (
            mention.kind == "option"
            and mention.first - denied <= _NEAR
            and not reading.reply.without_small(range(denied, mention.first))
        ):
            down.add(mention.option)
            behind = words[mention.last : mention.last + 1]
            denied = mention.last if set(behind) & ors else -99  # "not A or B"
        elif mention.kind in ("option", *WHOLE):
            own.append(mention)
            if mention.kind in ("unknown", "neither", "none"):
                break  # "neither A nor B", "unknown whether A or B"
    return [m for m in own if m.option not in down or m.kind != "option"], reason


def _means_or(reading: Reading, held: Sequence[Mention], k: int) -> bool:
    """Tell whether a word for "whether" means "or": it is between two options (Dutch "of")."""
    if not 0 < k < len(held) - 1:
        return False
    one, word, other = held[k - 1 : k + 2]
    said = reading.reply.words
    between = said[word.last : other.first]
    marks = reading.is_mark(one) and reading.is_mark(other)
    return (
        one.kind == other.kind == "option"
        and (marks or said[word.first] in reading.lexicon.ors)
        and one.last == word.first
        and set(between) <= (reading.lexicon.small if marks else set())
    )


def _other_follows(held: Sequence[Mention], k: int) -> bool:
    """Tell whether another option or "but" directly follows mention k: "A no B yes"."""
    return (
        k + 1 < len(held)
        and held[k + 1].kind in ("option", "but")
        and held[k + 1].first - held[k].last <= 1
    )


# --- a clause compared with the one before it


def _turn_down_list(reading: Reading, clause: range, down: set[int]) -> None:
    """Reject the marks that continue a list of rejected ones: "without A, B and D"."""
    marks = [m for m in reading.within(clause) if m.kind == "option"]
    end = reading.before(clause.start)
    if end is None or len(marks) < 2 or marks[0].first != clause.start:
        return
    if end.last != clause.start or end.option not in down:
        return
    between = range(marks[0].last, marks[1].first)
    if all(reading.is_mark(m) for m in (end, *marks[:2])) and len(between) == 1:
        down.update((marks[0].option, marks[1].option))


def _dismisses(reading: Reading, clause: range) -> bool:
    """Tell whether a clause only rejects the option named before it."""
    kinds = {m.kind for m in reading.within(clause)}
    return "wrong" in kinds and kinds <= {"wrong", "so"} and reading.is_only(clause)


def _begins_with_reason(reading: Reading, clause: range) -> bool:
    """Tell whether a clause begins with a word like "because" or "who"."""
    held = reading.within(clause)
    return bool(held) and held[0].kind == "because" and held[0].first == clause.start


def _narrows(taken: list[Mention], own: list[Mention]) -> bool:
    """Tell whether a clause takes one of several options before it: "of A and B, only B had …"."""
    several = {m.option for m in taken if m.kind == "option"}
    one = {m.option for m in own if m.kind == "option"}
    return len(several) > 1 and len(one) == 1 and one < several


def _goes_on(reading: Reading, clause: range, own: list[Mention], before: range) -> bool:
    """Tell whether a clause only adds an option, alone or worded like the clause before.

    "The nurse, the pilot"; "it could be A, it could be B".
    """
    words = reading.reply.words
    held = {i for m in own for i in range(m.first, m.last)}
    said = {words[i] for i in before} | reading.lexicon.small | reading.lexicon.ors
    rest = {words[i] for i in clause if i not in held}
    return reading.is_only(clause, own) or (bool(rest) and rest <= said)


def _leaves_open(
    reading: Reading, clause: range, taken: list[Mention], own: list[Mention], before: range
) -> bool:
    """Tell whether a clause about another option leaves open which of them is meant.

    "The nurse washed up, but the pilot …"; not if the clause before is only an option.
    """
    if {m.option for m in own} <= {m.option for m in taken}:
        return False
    if any(m.weak or m.kind != "option" for m in (*taken, *own)):
        return False
    if reading.is_only(before, taken):  # "A, B and D have an alibi"
        return reading.is_mark(taken[-1]) and reading.is_mark(own[0])
    return any(m.kind == "but" for m in reading.within(range(before.stop, clause.stop)))
