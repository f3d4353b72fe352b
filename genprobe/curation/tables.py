"""Tables that are passed between steps: JSONL, CSV, Parquet or XLSX, by suffix.

Every row has an `id` and a `history`: a list with one line per step, oldest first. A line has the
step, its version and settings, and the rows from which the row was made. The same input gives the
same bytes, even in a workbook.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import files
from genprobe.errors import InputError, NoRows
from genprobe.files import Row, people, workbooks
from genprobe.files.cells import cell_text
from genprobe.files.disk import replace_bytes
from genprobe.limits import parsed
from genprobe.records import digest
from genprobe.resources import packs
from genprobe.text import nfc

HISTORY = "history"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # date of every part of a workbook
_LONGEST = 32_767  # most characters of a cell in a workbook
_ROWS = 1_048_576  # most rows of a sheet
_NO_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Finding(NamedTuple):
    """A fault of a template, or something that a person should check.

    level: `error` (the template is refused) or `warning`. where: the template.
    """

    level: str
    where: str
    message: str


def read(path: str | os.PathLike[str]) -> list[tuple[int, Row]]:
    """Read a table.

    path: .jsonl, .csv, .tsv, .parquet, or .xlsx (its first sheet; needs the extra `xlsx`).
    Returns (number, row) for each row; the number is that of `files.numbered_rows`, or of the row
    in the sheet; `history` is a list. Raises InputError for another file.
    """
    path = Path(path)
    rows = list(_workbook(path) if path.suffix.lower() == ".xlsx" else files.numbered_rows(path))
    for number, row in rows:
        if HISTORY in row:
            row[HISTORY] = _history(row[HISTORY], f"{path}, row {number}")
    return rows


def write(
    path: str | os.PathLike[str] | None,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    dashes: Sequence[str] = (),
) -> int:
    """Write a table, completely or not at all, and return the number of its rows.

    path: its suffix decides the format; None writes JSONL to standard output. columns: all columns
    that a row may have, in order. dashes: columns of a CSV file in which a dash before plain words
    is not escaped (see `files.write_rows`). A table that names people can be read by its owner
    alone, and git leaves it out. Raises InputError if the table cannot be written.
    """
    private = any(map(people.names_somebody, rows))
    if path is not None and Path(path).suffix.lower() == ".xlsx":
        _write_workbook(Path(path), rows, columns, private)
        return len(rows)
    return files.write_rows(path, rows, columns, dashes=dashes, private=private)


def column(there: Iterable[str], names: Sequence[str]) -> str | None:
    """Find the column that has one of several names.

    there: the columns of a table. names: possible names, in order of preference, in small letters
    with `_` between words. Returns the name as spelled in the table, or None.
    """
    plain = {_plain(name): name for name in reversed(list(there))}
    return next((plain[name] for name in names if name in plain), None)


def need(path: object, there: Iterable[str], names: Sequence[str], what: str) -> str:
    """Find a required column, as `column` does. Raises InputError if it is missing."""
    there = list(there)
    found = column(there, names)
    if found is None:
        shown = ", ".join(there[:12]) + (", …" if len(there) > 12 else "")
        raise InputError(f"{path}: no column {names[0]!r} ({what}); there is: {shown}")
    return found


def language(name: str) -> str:
    """Return the code of a language: one of genprobe's languages, or any other BCP 47 code.

    Other codes are accepted because a data set may be made before its language is added. Raises
    InputError for a name that is neither.
    """
    try:
        return packs.language_code(name, True)
    except InputError:
        if re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", name.strip()):
            return name.strip()
        raise


def row_language(row: Row, default: str, where: str) -> str:
    """Return the language of a row: of its column `lang`, else `default`. InputError if neither."""
    name = cell_text(row.get("lang")) or default
    if not name:
        raise InputError(f"{where}: no language; give a column 'lang', or --lang")
    return language(name)


def row_text(row: Row, column: str, where: str) -> str:
    """Return the template of a row, in NFC. Raises InputError if it is empty."""
    text = nfc(cell_text(row.get(column)))
    if not text:
        raise InputError(f"{where}: the template is empty")
    return text


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def name_rows(rows: Sequence[tuple[int, Row]], keys: Sequence[str], path: object) -> list[str]:
    """Give every row an id: its own, or a hash of some of its cells.

    rows: as `read` returns them. keys: the columns whose cells are hashed. Returns the ids, which
    are unique: a number is added to the id of a row whose hash is the same as an earlier one's.
    Raises InputError if two rows of a file have the same id.
    """
    names: list[str] = []
    seen: dict[str, int] = {}
    copies: Counter[str] = Counter()
    for number, row in rows:
        name = cell_text(row.get("id"))
        if name and name in seen:
            raise InputError(
                f"{path}, row {number}: the id {name!r} is already in row {seen[name]}"
            )
        if not name:
            stem = digest([cell_text(row.get(key)) for key in keys], 12)
            name = stem
            while name in seen:
                copies[stem] += 1
                name = f"{stem}-{copies[stem] + 1}"
        seen[name] = number
        names.append(name)
    return names


def history(parents: Sequence[Mapping[str, Any]], step: str, *names: str) -> list[str]:
    """Write the history of a new row: the lines of the rows it is made from, and this step.

    parents: those rows. step: the step, with its version and settings (`extract/1|rules:en@1a2b`).
    names: the ids of the parents, if the new row has another id.
    """
    before = [line for row in parents for line in row.get(HISTORY) or ()]
    source = f"|from:{'+'.join(names)}" if names else ""
    return list(dict.fromkeys([*before, f"{step}{source}"]))


def columns(rows: Iterable[Mapping[str, Any]], last: Sequence[str] = ()) -> list[str]:
    """List all columns of some rows: `id`, then those in order of appearance, `last`, history."""
    found = dict.fromkeys(name for row in rows for name in row)
    tail = [*(name for name in last if name in found and name != HISTORY), HISTORY]
    return ["id", *(name for name in found if name != "id" and name not in tail), *tail]


def _history(value: object, where: str) -> list[str]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = parsed(value)
        except ValueError:
            raise InputError(f"{where}: 'history' is not a list of texts") from None
    if isinstance(value, list | tuple) and all(isinstance(line, str) for line in value):
        return list(value)
    text = cell_text(value)
    return [text] if text else []


# --- workbooks


def _workbook(path: Path) -> list[tuple[int, Row]]:
    """Read the rows of the first sheet; its first row has the names of the columns."""
    lines = workbooks.lines(path)
    if not lines:
        raise NoRows(f"{path}: the file holds no rows")
    heads = [cell_text(head) for head in lines[0]]
    while heads and not heads[-1]:
        heads.pop()
    for head, count in Counter(heads).items():
        if count > 1:
            raise InputError(f"{path}: two columns are called {head!r}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        cells: list[Any] = list(line)
        if any(cell != "" for cell in cells[len(heads) :]):
            raise InputError(f"{path}, row {number}: more cells than the first row")
        if any(cell != "" for cell in cells):
            cells += [""] * (len(heads) - len(cells))
            rows.append((number, dict(zip(heads, cells, strict=False))))
    if not rows:
        raise NoRows(f"{path}: the file holds no rows")
    return rows


def _write_workbook(
    path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str], private: bool
) -> None:
    if len(rows) >= _ROWS:
        raise InputError(f"{path}: a sheet holds {_ROWS - 1} rows and not {len(rows)}; write .csv")
    _write_book(path, {"rows": (rows, names)}, private)


def write_sheets(path: str | os.PathLike[str], found: Mapping[str, Sequence[Row]]) -> None:
    """Write a workbook of several sheets.

    found: name of a sheet -> its rows; their columns are those of its first row.
    """
    sheets = {name: (rows, list(rows[0])) for name, rows in found.items()}
    _write_book(Path(path), sheets)


def _write_book(
    path: Path,
    sheets: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[str]]],
    private: bool = False,
) -> None:
    openpyxl = workbooks.openpyxl_of(path)
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"{path}: the name of a workbook must end in .xlsx")
    book = openpyxl.Workbook(write_only=True)
    for name, (rows, names) in sheets.items():
        sheet = book.create_sheet(name)
        sheet.append([_cell(openpyxl, sheet, head, path, 1) for head in names])
        for number, row in enumerate(rows, 2):
            sheet.append([_cell(openpyxl, sheet, row.get(head), path, number) for head in names])
    made = io.BytesIO()
    book.save(made)
    replace_bytes(path, [_dated(made.getvalue())], private)


def _cell(openpyxl: Any, sheet: Any, value: Any, path: Path, number: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    text = _NO_XML.sub("\ufffd", value)
    if len(text) > _LONGEST:
        raise InputError(
            f"{path}, row {number}: a text of {len(text)} characters, and a cell of a workbook "
            f"holds {_LONGEST}; write .csv or .jsonl"
        )
    cell = openpyxl.cell.WriteOnlyCell(sheet, text)
    cell.data_type = "s"  # so that a text that begins with = is no formula
    return cell


def _dated(book: bytes) -> bytes:
    """Set the dates of a workbook and its parts to 1980, so that equal tables give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(out, "w") as new:
        for part in sorted(old.infolist(), key=lambda part: part.filename):
            data = old.read(part)
            if part.filename == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"1980-01-01T00:00:00Z", data)
            info = zipfile.ZipInfo(part.filename, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)
    return out.getvalue()
