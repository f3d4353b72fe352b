"""Files that people edit in a spreadsheet: CSV or workbooks, read back with every text unchanged.

By its first characters, a spreadsheet takes a cell for a formula, a number, a date or a truth
value. A cell that is safe when the file is written may not be so any more after someone edits the
file, saves it with another separator and opens it elsewhere. So `show` begins each line of a text
with `> `, as in a quoted e-mail (an apostrophe would be lost at the first edit). Characters that a
cell cannot hold (controls, lone surrogates), and signs that would begin a formula if the file were
split at another separator (`;=`), are written as `\\u{3d}`. `unshow` undoes both.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from genprobe.errors import InputError
from genprobe.files import allow_fields, csv_error, door, need_short_fields, workbooks
from genprobe.records import digest
from genprobe.text import nfc, nfkc

# The most that a cell holds, in UTF-16 units and in lines. Excel takes 32,767 units and 253 line
# breaks; LibreOffice breaks a line of a multi-line cell after 16,367 units. These limits leave room
# for the line that says that a text was cut.
LONGEST, MOST_LINES = 16_000, 250

# Controls except the line feed, other line ends, surrogates and noncharacters (XML, and so a
# spreadsheet file, cannot hold them), a backslash that could be taken for an escape, and `_x000D_`,
# which a workbook takes for one.
_UNFIT = (
    "[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + r"]|\\(?=u\{)|_(?=x[0-9A-Fa-f]{4}_)"
)
# The first sign of a formula, also full-width, after a character that may separate fields.
_HIDDEN = r'(?<=[,;|])"*[=+\-@＝＋－＠]'
_ESCAPE = re.compile(f"{_HIDDEN}|{_UNFIT}")
_ESCAPED = re.compile(r"\\u\{([0-9a-f]{1,6})\}")
_TORN = re.compile(r"\\(?:u(?:\{[0-9a-f]*)?)?\Z")
_CUT = re.compile(r"\n\[cut: \d+ more characters\]\Z")


def show(text: str) -> str:
    """Write a text as a cell.

    A text that is too long is cut, and ends in a line `[cut: 1234 more characters]`.
    """
    safe = _ESCAPE.sub(lambda m: "".join(f"\\u{{{ord(c):x}}}" for c in m[0]), text)
    lines = safe.split("\n")
    cell = "\n".join(f"> {line}" for line in lines[:MOST_LINES])
    if len(lines) <= MOST_LINES and _units(cell) <= LONGEST:
        return cell
    kept = cell.encode("utf-16-le")[: 2 * LONGEST].decode("utf-16-le", "ignore")
    kept = _TORN.sub("", kept)
    return f"{kept}\n[cut: {len(text) - len(unshow(kept))} more characters]"


def unshow(cell: str) -> str:
    """Return the text that `show` wrote as this cell; a text that was cut stays cut."""
    lines = _CUT.sub("", _line_feeds(cell)).split("\n")
    safe = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines)
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), safe)


def fingerprint(cell: str) -> str:
    """Hash the visible content of a cell: line ends, spaces before them and NFC do not count."""
    lines = _line_feeds(nfc(cell)).rstrip().split("\n")
    return digest([line.rstrip() for line in lines], 12)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write(path: Path, form: workbooks.Form) -> None:
    """Write a new file for spreadsheets: a workbook (.xlsx), else CSV without the instructions.

    CSV is UTF-8 with a BOM, commas, CRLF, every cell in quotes. Raises InputError if the file
    exists already (it may hold somebody's work) or cannot be written.
    """
    if path.suffix.lower() == ".xlsx":
        write_new(path, workbooks.form_bytes(path, form))
        return
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(form.lines)
    write_new(path, text.getvalue().encode("utf-8-sig"))


def write_new(path: Path, content: bytes, private: bool = False) -> None:
    """Make a file, which must not be there, completely or not at all.

    private: others on the machine cannot read it, and git leaves it out.
    """
    try:
        file = door.creating(path, private)
    except FileExistsError:
        raise InputError(f"{path}: already exists; choose another name") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    try:
        with file:
            file.write(content)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


@dataclass(frozen=True)
class Sheet:
    """A file that somebody edited and returned.

    heads: the names of its columns. rows: its rows, each with the number that a spreadsheet shows.
    Cells that a row lacks are empty; rows without any text are left out.
    """

    heads: list[str]
    rows: list[tuple[int, list[str]]]


def read(path: Path, heads: Iterable[str]) -> Sheet:
    """Read a file that any spreadsheet may have saved: CSV, or a workbook.

    CSV may be in UTF-8 or UTF-16, with or without a BOM, and separated by commas, semicolons or
    tabs. heads: names of columns that it should have, by which the separator is recognised, and the
    sheet of a workbook (else its first). Raises InputError if it is neither.
    """
    heads = list(heads)
    if _is_zip(path):
        return _sheet([[_text(cell) for cell in line] for line in workbooks.lines(path, heads)])
    allow_fields()
    text = _decoded(path)
    wanted = {head_key(head) for head in heads}

    def known(separator: str) -> int:
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
        return len(wanted & {head_key(cell) for cell in first})

    try:
        separator = max(",;\t", key=known)
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise csv_error(str(path), error) from None
    for cells in records:
        need_short_fields(str(path), cells)
    return _sheet(records)


def _sheet(records: list[list[str]]) -> Sheet:
    head, *body = records or [[]]
    rows = [
        (number, cells + [""] * (len(head) - len(cells)))
        for number, cells in enumerate(body, 2)
        if any(cell.strip() for cell in cells)
    ]
    return Sheet(head, rows)


def _text(cell: object) -> str:
    """Return a cell of a workbook as CSV would have it: 1 and not 1.0, true and not True."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _is_zip(path: Path) -> bool:
    try:
        with door.reading(path) as file:
            return file.read(len(workbooks.MAGIC)) == workbooks.MAGIC
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def head_key(head: str) -> str:
    """Normalise the name of a column: case, width and spaces."""
    return " ".join(nfkc(head).casefold().split())


def _decoded(path: Path) -> str:
    try:
        raw = door.content(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        name = "utf-16"
    elif b"\0" in raw[:2]:  # the first column name is ASCII
        name = "utf-16-be" if raw[:1] == b"\0" else "utf-16-le"
    else:
        name = "utf-8-sig"
    try:
        return raw.decode(name)
    except UnicodeDecodeError:
        raise InputError(f"{path}: not Unicode; save it as CSV, in UTF-8") from None
