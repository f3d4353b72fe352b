"""Make text safe to show, and short enough, in a terminal, a table or a file name.

Names come from files and models that nobody has checked. None of them may move a cursor or hide
text.
"""

from __future__ import annotations

import re
import unicodedata

from genprobe.text import nfc

LONGEST = 80  # most letters of a name that are shown
_LONGEST = 40  # most columns of a terminal that a name may fill

# Complete escape sequences (CSI; OSC and similar ones to their end); then characters that move a
# cursor, hide or reorder text: controls, bidi marks, zero-width space and no-break space, tags,
# halves of surrogate pairs. Joiners are kept: Persian and the Indic scripts need them.
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
    """Make a text from a model or a file safe to print, on one line."""
    return _UNSEEN.sub("", _SPACES.sub(" ", _SEQUENCE.sub("", text)))


def alike(text: str) -> str:
    """Normalise a name so that names that look the same are equal: NFC, no invisible characters.

    Otherwise one column, model or group could appear as two rows that nobody can tell apart.
    """
    if text.isascii() and text.isprintable():
        return text.strip()
    return nfc(re.sub("[\u00a0\u202f]", " ", clean(text))).strip()


def wide(text: str) -> int:
    """Count the terminal columns of a text: two for a wide East Asian letter, none for a mark."""
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
    """Cut a text to at most `width` columns, and end it with an ellipsis if it was longer."""
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
    """Write a value of a `by` column as a label."""
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def short_name(path: str, depth: int = 1) -> str:
    """Return the last `depth` parts of a path or of a hub id, safe to print."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    name = clean("/".join(parts[-depth:])) or "(no name)"
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
