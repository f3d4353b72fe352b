"""Tables that are passed between steps: JSONL, CSV, Parquet or XLSX, by suffix.

Every row has an `id` and a `history`: a list with one line per step, oldest first. A line has the
step, its version and settings, and the rows from which the row was made. The same input gives the
same bytes, even in a workbook.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import files
from genprobe.errors import InputError
from genprobe.files import Row, people, workbooks
from genprobe.files.cells import cell_text
from genprobe.files.disk import replace_bytes
from genprobe.files.rows import Rows, rows_of
from genprobe.limits import parsed
from genprobe.records import digest
from genprobe.resources import packs
from genprobe.text import nfc

HISTORY = "history"
LEFT = "left:"  # at the end of a line of it: how many other rows the step left out
_ROWS = 1_048_576  # most rows of a sheet


class Finding(NamedTuple):
    """A fault of a template, or something that a person should check.

    level: `error` (the template is refused) or `warning`. where: the template.
    """

    level: str
    where: str
    message: str


def read(path: str | os.PathLike[str] | Rows) -> list[tuple[int, Row]]:
    """Read a table.

    path: .jsonl, .csv, .tsv, .parquet, or .xlsx (its first sheet; needs the extra `xlsx`), or rows
    in memory.
    Returns (number, row) for each row, numbered as by `files.numbered_rows`; `history` is a list.
    Raises InputError for another file.
    """
    path = rows_of(path)
    rows = list(files.numbered_rows(path))
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
    replace_bytes(path, [workbooks.saved(book)], private)


def _cell(openpyxl: Any, sheet: Any, value: Any, path: Path, number: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    if len(value) > workbooks.LONGEST:
        raise InputError(
            f"{path}, row {number}: a text of {len(value)} characters, and a cell of a workbook "
            f"holds {workbooks.LONGEST}; write .csv or .jsonl"
        )
    return workbooks.as_text(openpyxl.cell.WriteOnlyCell(sheet), value)
