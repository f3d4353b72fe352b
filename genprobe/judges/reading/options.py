"""Find options that a reply repeats ("yes / no"), and a choice among them by number or letter.

Also find lists of options and answer words that are cut off at the end of the reply.
"""

from __future__ import annotations

import re

from genprobe.judges.reading.lexicon import OPPOSITE, POLARITY
from genprobe.judges.reading.punctuation import (
    BETWEEN_OPTIONS,
    BULLET,
    ENDS,
    LINE_ENDS,
    new_line,
)
from genprobe.judges.reading.reply import Found, Reply

_GOES_ON = re.compile(r"[*_\"'”»]*,? +[^\W\d_]{2}")
_LONGEST_LINE = 300  # characters after a number that are read


def following(reply: Reply, k: int) -> int:
    """Return the index of the next event that is not a condition.

    Polish "yes czy no": `czy` means both "or" and "whether".
    """
    k += 1
    while k < len(reply.events) and reply.events[k].group == "condition":
        k += 1
    return k


def are_options(reply: Reply, k: int) -> bool:
    """Return whether event k and the next one repeat the two options: "yes / no"."""
    second = following(reply, k)
    if second >= len(reply.events):
        return False
    one, two = reply.events[k], reply.events[second]
    if POLARITY.get(two.group) != OPPOSITE[POLARITY[one.group]]:
        return False
    between = reply.tokens[one.last : two.first]
    if len(between) > 3 or not _only_join(reply, between):
        return False
    gaps = reply.gaps[one.last : two.first + 1]
    if gaps == [""] or not all(BETWEEN_OPTIONS.match(gap) for gap in gaps):
        return False
    if between:
        # "1. No.\n2. Yes, dogs are." is no list of options.
        return not (all(map(BULLET.match, between)) and _GOES_ON.match(reply.norm, two.end))
    ends = LINE_ENDS if new_line(gaps[0]) else ENDS
    if not ends.match(reply.norm, two.end):
        return False  # "Yes, no one …" is an answer and its reason
    if "." in gaps[0]:
        return False  # "Ja. Nein." are two answers, and the first counts
    if new_line(gaps[0]) and second + 1 < len(reply.events):
        # yes, no, no, yes, … line by line is drift, not a list of options
        three = reply.events[second + 1]
        if three.group in POLARITY and three.first == two.last:
            return not new_line(reply.gaps[three.first])
    return True


def _only_join(reply: Reply, between: list[str]) -> bool:
    """Return whether the words are only "or" and bullets."""
    return all(word in reply.lexicon.ors or BULLET.match(word) for word in between)


def numbered(reply: Reply, k: int, chosen: dict[str, str]) -> None:
    """Add bullet -> answer to `chosen`, for the two options at event k."""
    one, two = reply.events[k], reply.events[following(reply, k)]
    answer = POLARITY[one.group]
    for option, said in ((one, answer), (two, OPPOSITE[answer])):
        i = option.first - 1
        if i >= 0 and BULLET.match(reply.tokens[i]):
            chosen[reply.tokens[i]] = said


def by_number(reply: Reply, chosen: dict[str, str], first: int, k: int) -> Found | None:
    """Return the choice by number or letter after a list of options: "Answer: 2".

    chosen: bullet -> the option after it. first: the token after the list. k: the next event.
    """
    events, tokens = reply.events, reply.tokens
    while k < len(events) and events[k].group in ("hedge", "refusal", "condition"):
        k += 1  # "C) not sure"
    stop = events[k].first if k < len(events) else len(tokens)
    if k < len(events) and events[k].group == "label":
        stop = min(events[k].last + 1, len(tokens))
    for i in range(first, stop):
        answer = chosen.get(tokens[i])
        if answer is None or not reply.starts(i):
            continue
        end = reply.spans[i][1]
        tail = reply.norm[end : end + _LONGEST_LINE].split("\n", 1)[0].strip(" .:)(*\"'")
        if not tail or any(w.startswith(tail) for w in reply.lexicon.words[answer]):
            return Found(answer, "choice-by-number", *reply.spans[i], k)
    return None


def word_cut_off(reply: Reply, chosen: dict[str, str]) -> Found | None:
    """Return an answer word at the start of the last line that is cut off within the word.

    chosen: bullet -> the option after it, which the word must not contradict.
    """
    if not reply.tokens or not reply.starts(len(reply.tokens) - 1):
        return None
    word, span = reply.tokens[-1], reply.spans[-1]
    if word in reply.lexicon.negation or word in reply.lexicon.ors:
        return None
    if span[1] != len(reply.norm.rstrip("'\"")) or len(word) < 2:
        return None
    words = reply.lexicon.words
    begun = [answer for answer in words if any(w.startswith(word) for w in words[answer])]
    if len(begun) != 1 or word in words[begun[0]]:
        return None
    bullet = reply.tokens[-2] if len(reply.tokens) > 1 else ""
    if chosen.get(bullet, begun[0]) != begun[0]:
        return None  # "(A) yes (B) no (A) n": letter and word disagree
    return Found(begun[0], "cut-off-word", *span)
