"""Read workbooks (.xlsx) as lines of cells; they need the extra `xlsx` (openpyxl)."""

from __future__ import annotations

import datetime
import io
import zipfile
from pathlib import Path
from typing import Any

from genprobe.errors import GenprobeError, InputError
from genprobe.files import door
from genprobe.limits import exceeded, limit

MAGIC = b"PK\x03\x04"  # the first bytes of a zip, which a workbook is


def openpyxl_of(path: Path) -> Any:
    """Import openpyxl. Raises InputError, which names the file and the cure, if it is missing."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{path}: a workbook needs openpyxl; install genprobe[xlsx], or save it as CSV (UTF-8)"
        ) from None
    return openpyxl


def lines(path: Path) -> list[list[Any]]:
    """Read the first sheet of a workbook as lines of cells, without the empty ones at their ends.

    A cell is a text, a number or a truth value; "" if it is empty, and a date in ISO 8601. Raises
    InputError for a file that is no workbook, or beyond a limit.
    """
    openpyxl = openpyxl_of(path)
    try:
        data = door.content(path)
        _need_small(path, data)
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheet = book.worksheets[0] if book.worksheets else None
        found = [] if sheet is None else _cells(path, sheet)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except GenprobeError:
        raise
    except Exception as error:  # openpyxl: zip, XML and value errors of a dozen kinds
        raise InputError(f"{path}: not a workbook ({type(error).__name__})") from None
    return [[_value(cell) for cell in line] for line in found]


def _value(cell: Any) -> Any:
    if cell is None:
        return ""
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return cell


def _need_small(path: Path, data: bytes) -> None:
    """Raise InputError if the parts of a workbook are too many or too large, unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
    if len(parts) > limit("members"):
        raise exceeded(path, "members")
    # What a zip says of its sizes may be false; then unpacking ends with an error.
    if sum(part.file_size for part in parts) > limit("unpacked"):
        raise exceeded(path, "unpacked")


def _cells(path: Path, sheet: Any) -> list[tuple[Any, ...]]:
    """Read the rows of a sheet, without the empty ones after its end and cells beyond its width.

    A cell far to the right or far below makes millions of empty ones; rows end with their last
    cell, and no more cells are read than the limit says.
    """
    sheet.reset_dimensions()  # what the file says of its size may be false
    lines: list[tuple[Any, ...]] = []
    cells = 0
    for line in sheet.iter_rows(values_only=True):
        cells += max(1, len(line))
        if cells > limit("cells"):
            raise exceeded(path, "cells")
        end = next((at for at in range(len(line), 0, -1) if line[at - 1] is not None), 0)
        lines.append(line[:end])
    return lines
