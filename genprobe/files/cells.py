"""Read cells that people wrote, and report oddities and faults with their rows."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError, RowErrors
from genprobe.files import json_of, text_of
from genprobe.records import JSON
from genprobe.text import natural, nfc

if TYPE_CHECKING:
    pass

# Controls, soft hyphen, zero-width space, bidi controls, BOM, replacement character; but not the
# joiners, which the spelling of Persian, Hindi and Bengali needs.
_UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffd]"
)


class Notes:
    """The oddities of a file, each kind once with its rows, in order of first appearance."""

    def __init__(self) -> None:
        self._rows: dict[str, list[object]] = {}

    def add(self, what: str, row: object = None) -> None:
        """Note an oddity. row: its number, or a language and the number; None if it has no row."""
        self._rows.setdefault(what, []).append(row)

    def lines(self, shown: int = 5) -> list[str]:
        """Write each oddity as `what: n (rows 3, 7, 9 and 2 more)`, or only `what` without rows."""
        lines = []
        for what, given in self._rows.items():
            rows = [row for row in given if row is not None]
            if not rows:
                lines.append(what)
                continue
            more = f" and {len(rows) - shown} more" if len(rows) > shown else ""
            word = "row" if len(rows) == 1 else "rows"
            first = ", ".join(map(str, rows[:shown]))
            lines.append(f"{what}: {len(rows)} ({word} {first}{more})")
        return lines


class Problems:
    """The unusable rows of a file, up to `MOST`, reported together."""

    MOST = 20

    def __init__(self, path: object = "") -> None:
        self._where = f"{path}, " if str(path) else ""
        self._lines: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, row: int | str | None, what: str) -> None:
        """Note a problem.

        row: its number, or its file and number (`FILE, row 3`); None if `what` names it.
        """
        row = f"row {row}" if isinstance(row, int) else row
        self._lines[f"{row}: {what}" if row is not None else what] = None

    @contextlib.contextmanager
    def at(self, row: int | str | None = None) -> Iterator[None]:
        """Note an InputError of the block as a problem of a row, instead of raising it."""
        try:
            yield
        except InputError as error:
            self.add(row, str(error))

    def each(self, cells: Iterable[tuple[Any, Any]], read: Callable[[Any, Any], Any]) -> list[Any]:
        """Return `read(value, row)` for each (row, value); None where it raises an InputError."""
        found: list[Any] = []
        for row, value in cells:
            found.append(None)
            with self.at():
                found[-1] = read(value, row)
        return found

    def tell(self) -> None:
        """Raise one InputError for all problems, if there are any."""
        lines = sorted((line.removeprefix(self._where) for line in self._lines), key=natural)
        if len(lines) == 1:
            raise InputError(f"{self._where}{lines[0]}")
        if lines:
            more = len(lines) - self.MOST
            shown = [*lines[: self.MOST], *([f"and {more} more"] if more > 0 else [])]
            where = self._where.removesuffix(", ")
            head = f"{where}: {len(lines)} problems" if where else f"{len(lines)} problems"
            raise RowErrors("\n".join([head, *shown]))


def cell_text(value: object) -> str:
    """Return the text of a cell, trimmed; "" for null and NaN, JSON for other types.

    A whole number is written as one: a table turns 5 into 5.0 where another cell is empty.
    """
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        value = int(value)
    return text_of(value, "a cell")


EXACT = 1 << 53  # up to which every whole number is a float, too


def cell_json(value: object) -> JSON:
    """Convert a cell to a JSON value: NaN becomes null, a date text; a text is unchanged."""
    return value if isinstance(value, str) else json.loads(json_of(value, "a cell"))


def cell_sentence(value: object, notes: Notes, row: object) -> str:
    """Return a sentence under test, in NFC and trimmed; note invisible characters in it."""
    text = cell_text(value)
    normal = nfc(text)
    if normal != text:
        notes.add("text brought to the Unicode form NFC", row)
    if _UNSEEN.search(normal):
        notes.add("line breaks, control or invisible characters in the text, kept", row)
    return normal


def cell_list(value: object, separators: str = ",;") -> list[str]:
    """Read a cell that is a list, or a list written as text: `['en', 'fr']`, `en, fr`.

    Brackets, quotes around the items and empty items are dropped.
    """
    parts: Iterable[object]
    if isinstance(value, str):
        inner = value.strip()
        if inner.startswith("[") and inner.endswith("]"):
            inner, separators = inner[1:-1], ","
        parts = re.split(f"[{re.escape(separators)}]", inner)
    elif isinstance(value, list | tuple):
        parts = value
    else:
        parts = [value]
    items = [cell_text(part).strip("'\" ") for part in parts]
    return [item for item in items if item]
