"""Text that is safe and fits where people read it: a terminal, a table, a file name.

Names come from files and from strangers. None of them may move a cursor or hide text.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 80  # letters of a name that is shown
_LONGEST = 40  # columns of a terminal that a name may fill

# An escape sequence as a whole (CSI; OSC and its like to their end), then what moves a cursor,
# hides or reorders text: controls, bidi marks, zero-width space and no-break space, tags, halves
# of surrogate pairs. Joiners stay: Persian and the Indic scripts are written with them.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])[^\x07\x1b\x9c]*"
    r"(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?"
)
_SPACES = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """Text from a model or a file that is safe to print, on one line."""
    return _UNSEEN.sub("", _SPACES.sub(" ", _SEQUENCE.sub("", text)))


def alike(text: str) -> str:
    """Return a text such that two that look alike are alike: one normal form, nothing unseen.

    Two names of one column, model or group must not stand as two rows that nobody can tell apart.
    """
    if text.isascii() and text.isprintable():
        return text.strip()
    return unicodedata.normalize("NFC", re.sub("[\u00a0\u202f]", " ", clean(text))).strip()


def wide(text: str) -> int:
    """Columns that a text takes in a terminal: two for East Asian wide ones, none for marks."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - wide(text))
    return space + text if right else text + space


def shorten(text: str, width: int = _LONGEST) -> str:
    """Cut a text to at most `width` columns, its end replaced by an ellipsis."""
    if wide(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += _columns(char)
        if used > width:
            break
        kept += char
    return kept + "…"


def label(value: object) -> str:
    """Write a value of a `by` column in words."""
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def short_name(path: str, depth: int = 1) -> str:
    """Give the last part of a path or of a hub id, or the last few, fit to be shown."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    name = clean("/".join(parts[-depth:])) or "(no name)"
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
