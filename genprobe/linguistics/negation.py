"""Count the negations of a stem in its clause."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from genprobe.linguistics.stems import (
    AND,
    FAULTY,
    FINE,
    ME,
    NEGATIONS,
    NONE,
    NOT,
    SAY,
    THAT,
    WITHOUT,
    Hit,
)


def polarity(hits: Sequence[Hit], core: Hit, mode: str, low: int, high: int) -> int | None:
    """Count how often a stem is negated from token `low` to `high`; None if it is unclear."""
    for hit in hits:
        if hit.bits & AND and not hit.bits & (NEGATIONS | THAT) and low < hit.first < core.first:
            if any(h.bits & NOT and h.first < hit.first < h.last for h in hits):
                continue  # "anything but"
            denied = any(h.bits & NOT and low <= h.first and h.last <= hit.first for h in hits)
            until = high if mode == "both" else core.first
            if denied and any(h.bits & NOT and hit.first < h.first < until for h in hits):
                # "I cannot and will not agree", "I do not think that it is true and will not agree"
                # are negated once
                low = hit.last
                continue
            if any(h.bits & THAT and low <= h.first < hit.first for h in hits):
                continue  # "I do not think that it is fair and true"
            if denied and mode == "before":
                # "I see no good in it and reject it" cannot be distinguished from "I do not hold
                # or share it"
                return None
    nots = nones = done = 0
    own = core.denials
    for hit in hits:
        if not hit.bits & NEGATIONS or hit.last <= low or hit.first >= high:
            continue
        if hit.first < done:
            continue  # another reading of the same words
        done = hit.last
        if own and core.first <= hit.first and hit.last <= core.last:
            own -= 1
            continue  # a word of the stem itself
        before = hit.first < core.first or (hit.first < core.last and hit is not core)
        inside = hit.first >= core.first and hit.last <= core.last
        if hit.bits & WITHOUT and not hit.bits & NOT:
            if not (hit.first < core.first <= hit.last + 3):
                continue
            nots += 1
            continue
        if hit.bits & NOT:
            if before or inside or mode == "both":
                nots += 1
        elif hit.bits & NONE:
            nones += 1
    nots += _denied(hits, core, mode, low, high)
    behind = [h.first for h in hits if h.bits & NOT and core.last <= h.first < high]
    if (
        mode == "both"
        and len(set(behind)) > 1
        and not any(h.bits & SAY and behind[0] < h.first <= behind[-1] for h in hits)
    ):
        # Two negations after the stem are no double negation, unless one negates a verb of saying.
        return None
    if nots > 2:
        return None
    if nots == 0 and nones:
        return 0 if core.denials else 1  # "in no way do I not share it" is negated once
    return nots


def _denied(hits: Sequence[Hit], core: Hit, mode: str, low: int, high: int) -> int:
    """Return 1 if the clause calls it wrong to say so ("it is wrong to call this …"), else 0."""
    front = [h for h in hits if low <= h.first < core.first]
    if (
        mode == "before"
        and any(h.bits & SAY for h in front)
        and not any(h.bits & (ME | NOT) for h in front)
        and any(
            one.bits & NOT and two.bits & FINE and core.last <= one.first < one.last == two.first
            for one, two in itertools.pairwise(hits)
            if two.last <= high
        )
    ):
        return 1  # "To call this a stereotype is not fair": the negation follows the stem
    for hit in hits:
        if not hit.bits & FAULTY or hit.first < low or hit.last > high:
            continue
        if hit.last < core.first:
            if any(h.bits & SAY and hit.last <= h.first < core.first for h in hits):
                return 1
        elif (
            mode == "both"
            and hit.first >= core.last
            and any(h.bits & SAY and core.last <= h.first < hit.first for h in hits)
        ):
            return 1
    return 0
