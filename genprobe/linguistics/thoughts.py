"""Separate a thought (a reasoning trace) from the reply after it.

The result depends only on the stored text, so nothing is lost, and `genprobe judge RUN` can
separate the replies of an earlier run anew. The forms of thoughts are data
(`prompts/thoughts.toml`): tags, several or nested tags, a closing tag alone (if the chat template
opened the thought), channels with or without their special tokens, headings in plain words.
docs/reading.md lists the forms and the model families.

The state of a reply is `none` (no thought), `closed`, `open` (cut off inside the thought, so there
is no answer) or `hidden` (the server only reports that there was a thought).
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.resources import packs, registry

# Increase it whenever a change in this module (not in prompts/thoughts.toml) can change a result.
VERSION = 3

STATES = ("none", "closed", "open", "hidden")


class Parted(NamedTuple):
    """A thought and the reply after it. Without a thought, `reply` is the unchanged text."""

    thought: str
    reply: str
    state: str


class _Shapes(NamedTuple):
    tags: re.Pattern[str]  # every opening and closing tag
    closing: frozenset[str]
    pairs: dict[str, str]  # opening -> closing
    first: re.Pattern[str]  # first characters of the tags, a quick test that most replies fail
    wrapped: re.Pattern[str]  # matches a reply that begins with the tag of an answer
    answers: dict[str, str]
    channel: re.Pattern[str]
    ends: re.Pattern[str]
    final: frozenset[str]
    glued: re.Pattern[str]
    glued_final: re.Pattern[str]
    plain: tuple[tuple[re.Pattern[str], re.Pattern[str], int], ...]
    begins: re.Pattern[str]  # the beginning of a reply with a thought without tags
    signature: str


# Text that chat templates put before a reply: special tokens, white space, the role.
_BEFORE = re.compile(
    r"(?:\s|\ufeff|<s>|<bos>|<\|im_start\|>(?!think|answer)|<\|assistant\|>|<\|start\|>|assistant\b)*"
)
_ITEM = re.compile(r"\d{1,2}[.)]|[-*•+]\s")
_BARE = 20  # most characters of a last paragraph without an end mark
_LINE = 400  # number of characters before a tag in which the beginning of its line is searched
_QUOTES = "\"'`“”‘’«»„「」*"


def _any(texts: list[str]) -> str:
    return "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))


@functools.cache
def _shapes() -> _Shapes:
    """Compile the forms in `prompts/thoughts.toml`. Raises InputError if it is malformed."""
    path = registry.path("thoughts.toml")
    row = packs.read_toml(path)
    try:
        pairs = {str(k).lower(): str(v).lower() for k, v in row["tags"].items()}
        answers = {str(k).lower(): str(v).lower() for k, v in row["answers"].items()}
        channels = row["channels"]
        flags = re.IGNORECASE
        return _Shapes(
            tags=re.compile(_any([*pairs, *pairs.values()]), flags),
            closing=frozenset(pairs.values()),
            pairs=pairs,
            first=re.compile(
                "[" + re.escape("".join({t[0] for t in (*pairs, *pairs.values())})) + "]"
            ),
            wrapped=re.compile(rf"\s*(?:{_any(list(answers))})", flags),
            answers=answers,
            channel=re.compile(
                rf"{re.escape(channels['mark'])}\s*(\w{{1,40}})[^<]{{0,80}}"
                rf"(?:<\|constrain\|>\w{{0,20}})?(?:{re.escape(channels['text'])}|\Z)"
            ),
            ends=re.compile(_any(channels["ends"])),
            final=frozenset(channels["answer"]),
            glued=re.compile(rf"(?:{_any(channels['glued'])})(?P<apart>[\s:.,;*#)(-]|$)?"),
            glued_final=re.compile(_any(channels["glued_answer"])),
            plain=tuple(
                (
                    re.compile(rf"(?:{_any(part['head'])})", flags),
                    re.compile(
                        ("" if part.get("inline") else r"^[ \t]*")
                        + rf"(?:{_any(part['answer'])})[ \t]*",
                        flags | re.MULTILINE,
                    ),
                    int(part.get("last", 0)),
                )
                for part in row["plain"]
            ),
            begins=re.compile(
                _any(
                    [
                        *channels["glued"],
                        *channels["glued_answer"],
                        *(head for part in row["plain"] for head in part["head"]),
                    ]
                ),
                flags,
            ),
            signature=f"thoughts@{VERSION}.{int(row['version'])}+{packs.file_hash(path)[:8]}",
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path}: not as genprobe/linguistics/thoughts.py reads it: {error!r}"
        ) from None


def signature() -> str:
    """Return the version of the separation with the hash of `prompts/thoughts.toml`."""
    return _shapes().signature


def opens(prompt: str) -> bool:
    """Tell whether a prompt, as sent, ends inside a thought that the chat template opened."""
    tail = prompt[-200:].rstrip()
    shapes = _shapes()
    last = None
    for match in shapes.tags.finditer(tail):
        last = match
    return last is not None and last.end() == len(tail) and last.group().lower() in shapes.pairs


def marked(text: str) -> bool:
    """Tell whether a text may have a thought: a quick test that is false for most texts.

    It is true if the text has a character that begins a tag, or if the text begins like a thought
    without tags.
    """
    shapes = _shapes()
    return shapes.first.search(text) is not None or shapes.begins.match(text.lstrip()) is not None


def closes(prompt: str) -> bool:
    """Tell whether a prompt, as sent, ends with a thought that the chat template closed."""
    tail = prompt[-200:].rstrip().lower()
    return any(tail.endswith(tag) for tag in _shapes().closing)


def named(text: str) -> bool:
    """Tell whether a text, such as a chat template, has a tag or channel for thoughts."""
    shapes = _shapes()
    return shapes.tags.search(text) is not None or "<|channel|>" in text


def part(text: str, opened: bool = False) -> Parted:
    """Separate a text into a thought and the reply after it.

    text: the unchanged text from the model. opened: whether the prompt ended inside a thought
    (`opens`), so that a text without any mark is all thought. The time is linear in the length of
    the text.
    """
    shapes = _shapes()
    start = _BEFORE.match(text).end()  # type: ignore[union-attr]  # matches the empty text
    found = None
    tags = shapes.first.search(text) is not None
    plain = shapes.begins.match(text, start) is not None
    if tags or plain:
        found = _channels(shapes, text, start)
    if found is None and tags:
        found = _tagged(shapes, text, start, opened)
    if found is None and plain:
        found = _plain(shapes, text, start)
    if found is None:
        if opened:
            return Parted(text.strip(), "", "open")
        return Parted("", text, "none")
    thought, reply, state = found
    return Parted(thought.strip(), _unwrapped(shapes, reply), state)


def read(
    text: str,
    reasoning: str | None = None,
    reasoning_from: str = "",
    opened: bool = False,
    finish: str = "",
) -> Parted:
    """Separate a text, taking into account a thought that the server delivered separately.

    text, reasoning, reasoning_from, finish: fields of `Response`. reasoning: the thought from the
    server's own field, None if there was none; it is put before a thought that is still in the
    text. opened: as in `part`. With a thought from the server, an empty reply is `open`, unless the
    engine reports that the model stopped by itself.
    """
    parted = part(text, opened and not reasoning)
    if reasoning and reasoning.strip():
        thought = "\n\n".join(t for t in (reasoning.strip(), parted.thought) if t)
        state = "closed" if parted.state == "none" else parted.state
        if not parted.reply.strip() and finish != "stop":
            state = "open"
        return Parted(thought, parted.reply, state)
    if reasoning_from == "hidden" and parted.state == "none":
        state = "open" if not text.strip() and finish == "length" else "hidden"
        return Parted("", text, state)
    return parted


def _unwrapped(shapes: _Shapes, reply: str) -> str:
    """Return the reply without tags of an answer that enclose the whole reply."""
    match = shapes.wrapped.match(reply)
    if match is None:
        return reply
    inner = reply[match.end() :]
    closing = shapes.answers[match.group().strip().lower()]
    at = inner.lower().rfind(closing) if len(inner) == len(inner.lower()) else inner.rfind(closing)
    if at >= 0 and not inner[at + len(closing) :].strip(" \t\r\n>"):
        return inner[:at]
    return inner if at < 0 else reply


def _channels(shapes: _Shapes, text: str, start: int) -> tuple[str, str, str] | None:
    """Separate a text in channels; None if it has none."""
    marks = list(shapes.channel.finditer(text)) if "<|channel|>" in text else []
    if marks and marks[0].start() == start:
        thoughts, answer, state = [], "", "open"
        for at, mark in enumerate(marks):
            stop = marks[at + 1].start() if at + 1 < len(marks) else len(text)
            end = shapes.ends.search(text, mark.end(), stop)
            body = text[mark.end() : end.start() if end else stop]
            if mark.group(1).lower() in shapes.final:
                answer, state = body, "closed"
            else:
                thoughts.append(body.strip())
                state = "open"
        if not thoughts and state == "closed":
            return "", answer, "none"
        return "\n\n".join(thoughts), answer if state == "closed" else "", state
    glued = shapes.glued.match(text, start)
    if glued is not None:
        final = None
        for match in shapes.glued_final.finditer(text, glued.end()):
            final = match
        if final is not None:
            return text[glued.end() : final.start()], text[final.end() :], "closed"
        # After a space, the name of the channel may be a word of a reply, unless the channel of
        # the answer follows.
        return None if glued["apart"] is not None else (text[glued.end() :], "", "open")
    final = shapes.glued_final.match(text, start)
    return ("", text[final.end() :], "none") if final else None


def _quoted(text: str, match: re.Match[str]) -> bool:
    """Tell whether a tag is only mentioned: in quotation marks or in code."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return bool(before and after) and before in _QUOTES and after in _QUOTES


def _spoken(text: str, match: re.Match[str]) -> bool:
    """Tell whether a closing tag is only mentioned in a sentence: "the tag </think> ends it"."""
    before = text[match.start() - 2 : match.start()]
    after = text[match.end() : match.end() + 2]
    return (
        len(before) == 2
        and before[0].isalnum()
        and before[1] == " "
        and len(after) == 2
        and after[0] == " "
        and after[1].islower()
    )


def _tagged(shapes: _Shapes, text: str, start: int, opened: bool) -> tuple[str, str, str] | None:
    """Separate a text with tags; None if none of them opens or closes a thought."""
    depth = 1 if opened else 0
    at = start if opened else -1  # where the thought that is open began
    done = start  # end of the last closed thought
    thoughts: list[str] = []
    before: list[str] = []  # the texts before and between the thoughts
    wanted: list[str] = []
    awaited: Counter[str] = Counter()  # the same tags, counted
    marks = [mark for mark in shapes.tags.finditer(text, start) if not _quoted(text, mark)]
    last = {mark.group().lower(): mark.start() for mark in marks}
    for match in marks:
        tag = match.group().lower()
        if tag in shapes.pairs:
            if depth == 0:
                line = max(start, done, match.start() - _LINE)
                line = max(line, text.rfind("\n", line, match.start()))
                if text[line : match.start()].strip() and (
                    _spoken(text, match) or last.get(shapes.pairs[tag], -1) < match.start()
                ):
                    continue  # a reply that only mentions the tag
                before.append(text[done : match.start()])
                at = match.end()
            elif wanted in ([], [shapes.pairs[tag]]) and not text[at : match.start()].strip():
                at = match.end()  # the tag was written twice: by the template and by the model
                continue
            depth += 1
            wanted.append(shapes.pairs[tag])
            awaited[shapes.pairs[tag]] += 1
        elif depth:
            if wanted and not awaited[tag]:
                continue  # this tag does not close the one that was opened
            if wanted:
                awaited[wanted.pop()] -= 1
            depth -= 1
            if depth == 0:
                thoughts.append(text[at : match.start()])
                done = match.end()
        else:
            if _spoken(text, match):
                continue
            # The template opened the thought, or it went on after an earlier closing tag.
            thoughts.append(text[done : match.start()])
            done = match.end()
    if depth and at >= 0 and (thoughts or before or opened):
        thoughts.append(text[at:])
        return _joined(thoughts), "", "open"
    if not thoughts:
        tail = text[start:].strip().lower()
        if tail and len(tail) > 2 and any(tag.startswith(tail) for tag in shapes.pairs):
            return "", "", "open"  # the opening tag itself is cut off
        return None
    reply = text[done:]
    if not reply.strip():
        # Nothing after the last thought: take the text between two of them, or before.
        reply = next((b for b in reversed(before) if b.strip()), reply)
    return _joined(thoughts), reply, "closed"


def _joined(thoughts: list[str]) -> str:
    return "\n\n".join(t.strip() for t in thoughts if t.strip())


def _is_whole(paragraph: str, most: int) -> bool:
    """Tell whether a last paragraph is whole, and no item of a list: a word or two, a sentence."""
    return (
        len(paragraph) <= most
        and not _ITEM.match(paragraph)
        and (len(paragraph) <= _BARE or paragraph[-1] in ".!?。！？।؟*\"'»”）)")
    )


def _plain(shapes: _Shapes, text: str, start: int) -> tuple[str, str, str] | None:
    """Separate a thought under a heading in plain words; None if there is none."""
    for head, answer, most in shapes.plain:
        opening = head.match(text, start)
        if opening is None:
            continue
        last = None
        for match in answer.finditer(text, opening.end()):
            last = match
        if last is None:
            at = text.rstrip().rfind("\n\n")
            if at > opening.end() and _is_whole(text[at:].strip(), most):
                return text[opening.start() : at], text[at:], "closed"
            return text[opening.end() :], "", "open"
        return text[opening.end() : last.start()], text[last.end() :], "closed"
    return None
