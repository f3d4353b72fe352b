r"""Find answers that models mark by a format: JSON, `\boxed{}`, tags, ticked boxes.

This module only finds the marked values; `judges/reading/marked.py` interprets them, because that
depends on the language. It works on normalised text (`text.normalise`), in time linear in its
length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

VERSION = 1


class Marked(NamedTuple):
    """A marked value: `how` it is marked, its `key` (may be empty), its text and position."""

    how: str  # `json`, `boxed`, `tag`, `ticked`, `bold`
    key: str
    value: str
    start: int
    end: int


_PAIR = re.compile(
    r"[\"'“”]?(?P<key>[^\"'“”{}\[\]:,\n]{1,60})[\"'“”]?\s{0,8}:\s{0,8}"
    r"(?:[\"“](?P<text>(?:[^\"”\\\n]|\\.){0,300})[\"”]?|(?P<plain>true|false|null|[^\W\d]{1,12}\b))"
)
_BOXED = re.compile(r"\\f?box(?:ed)?\s{0,4}\{(?P<text>(?:[^{}]|\{[^{}]{0,80}\}){0,120})\}")
_COMMAND = re.compile(r"\\[a-z]{1,14}\s?|[{}$\\]")
_TAG = re.compile(
    r"<(?P<tag>answer|final_answer|final|verdict|response|output|result|solution|label|choice)>"
    r"(?P<text>[^<]{0,300})"
)
_TICK = re.compile(
    r"(?P<on>\[\s?[x✓✔]\s?\]|\(\s?[x✓✔•]\s?\)|[☑✅✔✓🗹◉●🔘])"
    r"|(?P<off>\[\s?\]|\(\s?\)|[☐○◯□❌✗✘✖⬜❎])|(?P<cross>☒)"
)
_BOLD = re.compile(
    r"(?P<b1>\*\*|__)?(?P<one>[^\W\d_]{1,12})(?:\*\*|__)?\s{0,3}[/|]\s{0,3}"
    r"(?P<b2>\*\*|__)?(?P<two>[^\W\d_]{1,12})(?:\*\*|__)?"
)
# A text that does not match this pattern has no marked value.
ANY = re.compile(
    r"[{<☑☒✅✔✓🗹◉●🔘]|\[\s?[x✓✔]?\s?\]|\(\s?[x✓✔•]\s?\)|(?:\*\*|__).{0,30}[/|]|[/|].{0,30}(?:\*\*|__)"
)
_STRUCK = re.compile(r"~~[^~\n]{1,80}~~")


def unstruck(norm: str) -> str:
    """Replace text that is struck through (`~~yes~~ no`) by spaces; the length is kept."""
    if "~~" not in norm:
        return norm
    return _STRUCK.sub(lambda m: " " * len(m.group()), norm)


def marked(norm: str) -> list[Marked]:
    """Return every value marked by JSON, a box or a tag, in this order."""
    found: list[Marked] = []
    if "{" in norm:
        low = norm.index("{")
        if '"' in norm or "'" in norm or "“" in norm:
            for m in _PAIR.finditer(norm, low + 1):
                group = "text" if m["text"] is not None else "plain"
                found.append(Marked("json", m["key"].strip(), m[group], *m.span(group)))
        if "box" in norm:
            for m in _BOXED.finditer(norm):
                value = _COMMAND.sub(" ", m["text"])
                found.append(Marked("boxed", "", value, *m.span("text")))
    if "<" in norm:
        for m in _TAG.finditer(norm):
            found.append(Marked("tag", m["tag"], m["text"], *m.span("text")))
    return found


def ticked(norm: str, means: Callable[[str], str | None]) -> Marked | None:
    """Return the ticked option in a list of boxes; None if the choice is missing or unclear.

    means: a function that returns the answer for which a short text stands, or None.
    """
    marks = list(_TICK.finditer(norm)) if _TICK.search(norm) else []
    if not marks:
        return None
    crossed = any(m["off"] for m in marks) and not any(m["on"] for m in marks)
    options: list[tuple[bool, str, int, int]] = []
    for at, m in enumerate(marks):
        stop = marks[at + 1].start() if at + 1 < len(marks) else len(norm)
        line = norm[m.end() : min(stop, m.end() + 60)].split("\n", 1)[0]
        answer = means(line) or means(re.split(r"[,.:;(–—-]", line, maxsplit=1)[0])
        if answer is None:
            before = norm[max(0, m.start() - 20) : m.start()].rsplit("\n", 1)[-1]
            before = before[marks[at - 1].end() - m.start() :] if at else before
            answer = means(before)
        if answer is not None:
            on = bool(m["on"]) or (crossed and bool(m["cross"]))
            options.append((on, answer, m.start(), min(stop, m.end() + len(line))))
    chosen_ = {answer for is_on, answer, _, _ in options if is_on}
    left = {answer for is_on, answer, _, _ in options if not is_on}
    drawn = any(m.group()[0] in "[(☑🗹◉🔘" for m in marks if m["on"])
    if len(chosen_) == 1 and (left or drawn) and not chosen_ & left:
        chosen = next(o for o in options if o[0])
        return Marked("ticked", "", chosen[1], chosen[2], chosen[3])
    return None


def bold(norm: str, means: Callable[[str], str | None]) -> Marked | None:
    """Return the bold option if just one of two is bold: "yes / **no**". means: as in `ticked`."""
    if ("**" not in norm and "__" not in norm) or ("/" not in norm and "|" not in norm):
        return None
    for m in _BOLD.finditer(norm):
        one, two = means(m["one"]), means(m["two"])
        if one and two and one != two and bool(m["b1"]) != bool(m["b2"]):
            group = "one" if m["b1"] else "two"
            return Marked("bold", "", one if m["b1"] else two, *m.span(group))
    return None
