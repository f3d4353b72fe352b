"""Workbooks (.xlsx): read as lines of cells, and written; they need the extra `xlsx` (openpyxl).

Equal tables give equal bytes, and a text is never a formula.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from genprobe.errors import GenprobeError, InputError
from genprobe.files import door
from genprobe.limits import exceeded, limit

MAGIC = b"PK\x03\x04"  # the first bytes of a zip, which a workbook is
_ENTRY = b"PK\x01\x02"  # what each entry of the list of a zip's files begins with
_PIECE = 1 << 16  # bytes that are looked over at a time
_ELEMENT = 80  # bytes that an element of a part counts for, at least
_EPOCH = (1980, 1, 1, 0, 0, 0)  # date of every part of a workbook
_NO_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# What a workbook means by `_x000D_` in a text: a character by its number (ECMA-376, ST_Xstring).
_NUMBERED = re.compile("_x([0-9A-Fa-f]{4})_")
LONGEST = 32_767  # most characters of a cell
_NARROW, _OWN, _WIDE, _PAGE = 12, 32, 80, 110  # characters that a column shows in a line
_LINE, _HIGHEST = 15, 409  # points of a line, and of the highest row of Excel
_OPEN, _HEAD = "FFF7D6", "E4E4E4"  # colours of cells to fill in, and of heads


def openpyxl_of(path: Path) -> Any:
    """Import openpyxl. Raises InputError, which names the file and the cure, if it is missing."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{path}: a workbook needs openpyxl; install genprobe[xlsx], or save it as CSV (UTF-8)"
        ) from None
    return openpyxl


def lines(path: Path, heads: Collection[str] = ()) -> list[list[Any]]:
    """Read the first sheet of a workbook as lines of cells, without the empty ones at their ends.

    heads: read the sheet whose first line has most of these instead. A cell is a text, a number or
    a truth value; "" if it is empty, and a date in ISO 8601. Raises InputError for a file that is
    no workbook, or beyond a limit.
    """
    openpyxl_of(path)
    from openpyxl.reader.excel import ExcelReader

    try:
        data = door.content(path)
        if data.count(_ENTRY) > limit("members"):
            raise exceeded(path, "members")
        # As `openpyxl.load_workbook` does, but of the parts that were looked over.
        reader = ExcelReader(io.BytesIO(data), read_only=True, data_only=True)
        reader.archive = _Looked(path, io.BytesIO(data))
        reader.read()
        sheets = reader.wb.worksheets
        if heads and len(sheets) > 1:
            sheets = [max(sheets, key=lambda sheet: _has(sheet, set(heads)))]
        found = _cells(path, sheets[0]) if sheets else []
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except GenprobeError:
        raise
    except Exception as error:  # openpyxl: zip, XML and value errors of a dozen kinds
        raise InputError(f"{path}: not a workbook ({type(error).__name__})") from None
    return [[_value(cell) for cell in line] for line in found]


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the rows of the first sheet, which begins with the names of the columns.

    Each comes with its number in the sheet; an empty cell is "", and empty rows are skipped.
    """
    found = lines(path)
    heads = [str(head).strip() for head in found[0]] if found else []
    while heads and not heads[-1]:
        heads.pop()
    for head, count in Counter(heads).items():
        if count > 1:
            raise InputError(f"{path}: two columns are called {head!r}")
    for number, line in enumerate(found[1:], 2):
        if any(cell != "" for cell in line[len(heads) :]):
            raise InputError(f"{path}, row {number}: more cells than the first row")
        if any(cell != "" for cell in line):
            cells = line + [""] * (len(heads) - len(line))
            yield number, dict(zip(heads, cells, strict=False))


def _value(cell: Any) -> Any:
    if cell is None:
        return ""
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return _NUMBERED.sub(_character, cell) if isinstance(cell, str) else cell


def _character(found: re.Match[str]) -> str:
    one = chr(int(found[1], 16))
    return found[0] if "\ud800" <= one <= "\udfff" else one


class _Looked(zipfile.ZipFile):
    """The parts of a workbook that a parser without a tree of elements found to be within limits.

    openpyxl makes a kilobyte of objects from an element of five bytes, which packs to a thousandth.
    So it reads sheets and texts, which are many, only in pieces, and all other parts are small.
    """

    def __init__(self, path: Path, data: IO[bytes]) -> None:
        super().__init__(data)
        parts = [part for part in self.infolist() if not part.is_dir()]
        # What a zip says of its sizes may be false; then unpacking ends with an error.
        if sum(part.file_size for part in parts) > limit("unpacked"):
            raise exceeded(path, "unpacked")
        self.cells: dict[str, bool] = {}
        room = limit("part")  # of all parts together
        for name in self.namelist():
            if self.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                continue
            with contextlib.suppress(expat.ExpatError), super().open(name) as file:
                found = _Part(path, file)
                self.cells[name] = found.root in ("worksheet", "sst")
                room -= _ELEMENT * found.elements
            if room < 0:
                raise exceeded(path, "part")

    def open(self, name: Any, *args: Any, **kwargs: Any) -> IO[bytes]:
        """Open a part. Raises KeyError for one that is no XML, such as a picture."""
        cells = self.cells[getattr(name, "filename", name)]
        file = super().open(name, *args, **kwargs)
        return _Pieces(file) if cells else file  # type: ignore[return-value]


class _Pieces:
    """A part of which only pieces of a known size are read, never the whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.close = file, file.close

    def read(self, size: int) -> bytes:
        return self.file.read(size if size > 0 else 0)

    def __enter__(self) -> _Pieces:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Part:
    """What a part of a workbook holds: its root, and its elements beside rows and shared texts.

    Raises InputError if it is beyond a limit, and ExpatError if it is no XML.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.root, self.elements = path, "", 0
        self.inside = ""  # the row or shared text that the parser is in
        self.begun = self.outside = 0  # the byte where it begins; bytes beside all of them
        self.within = self.cells = self.rows = self.text = self.texts = 0
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._said
        parser.StartDoctypeDeclHandler = self._doctype
        fed = 0
        while piece := file.read(_PIECE):
            parser.Parse(piece)
            fed += len(piece)
            self._need_short(fed - max(self.begun, parser.CurrentByteIndex))  # an endless tag
        parser.Parse(b"", True)
        self._need_short(self.outside + fed - self.begun)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        at = self.parser.CurrentByteIndex
        self.root = self.root or name
        if self.inside:
            self.within += 1
            if _ELEMENT * self.within > limit("part"):
                raise exceeded(self.path, "part")
        elif name in ("row", "si"):
            self.inside, self.within, self.text = name, 0, 0
            self.outside += at - self.begun
            self.begun = at
            self.rows += 1
        else:
            self.elements += 1
            self._need_short(max(_ELEMENT * self.elements, self.outside + at - self.begun))
        if name == "c":
            self.text = 0
            self.cells += 1
        if max(self.cells, self.rows) > limit("cells"):
            raise exceeded(self.path, "cells")

    def _end(self, name: str) -> None:
        at = self.parser.CurrentByteIndex
        if self.inside and name.rpartition(":")[2] == self.inside:
            self._need_short(at - self.begun)
            self.inside, self.begun = "", at

    def _said(self, text: str) -> None:
        if self.inside:
            self.text += len(text)
            self.texts += sys.getsizeof(text)
            if self.text > limit("cell"):
                raise exceeded(self.path, "cell")
            if self.texts > limit("unpacked"):
                raise exceeded(self.path, "unpacked")

    def _doctype(self, *_: object) -> None:
        raise InputError(f"{self.path}: not a workbook (it defines entities)")

    def _need_short(self, size: int) -> None:
        if size > limit("part"):
            raise exceeded(self.path, "part")


def _has(sheet: Any, heads: set[str]) -> int:
    """Count the heads that the first line of a sheet has."""
    sheet.reset_dimensions()
    first = next(sheet.iter_rows(max_row=1, values_only=True), ())
    return len(heads & {str(cell).strip() for cell in first})


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


# --- writing


@dataclass(frozen=True)
class Form:
    """A sheet that a person fills in, and the page of instructions before it.

    lines: the heads, and the cells of each row; all but the columns `open` are locked. choices:
    index of an open column -> the answers that its cells offer, and take no others. names: of the
    two sheets; they open with the page. refused: what is said to who writes another answer.
    """

    lines: Sequence[Sequence[str]]
    open: Collection[int]
    choices: Mapping[int, Sequence[str]]
    page: str
    names: tuple[str, str]
    refused: str
    right_to_left: bool = False


def form_bytes(path: Path, form: Form) -> bytes:
    """Write a form as a workbook. Raises InputError if openpyxl is missing."""
    book = openpyxl_of(path).Workbook()
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side
    from openpyxl.utils import get_column_letter as letter
    from openpyxl.worksheet.datavalidation import DataValidation

    page, sheet, lists = book.active, book.create_sheet(), book.create_sheet("lists")
    page.title, sheet.title = form.names
    lists.sheet_state = "hidden"
    for one in (page, sheet):
        one.sheet_view.rightToLeft = form.right_to_left
        one.page_setup.orientation, one.page_setup.fitToHeight = "landscape", 0
        one.sheet_properties.pageSetUpPr.fitToPage = True
        one.protection.sheet = True  # without a password: it keeps from slips, not from intent
        one.protection.formatColumns = one.protection.formatRows = False  # allowed
    wrapped = Alignment(wrap_text=True, vertical="top")  # each text in its own direction
    told = wrapped
    if form.right_to_left:
        told = Alignment("right", wrap_text=True, vertical="top", readingOrder=2)
    border = Border(bottom=Side("thin", color=_HEAD))
    open_, head = (PatternFill("solid", fgColor=colour) for colour in (_OPEN, _HEAD))
    page.column_dimensions["A"].width = _PAGE
    below = [*form.page.split("\n")[1:], ""]
    lines = zip(form.page.split("\n"), below, strict=True)
    for number, (line, under) in enumerate(((a, b) for a, b in lines if not _ruled(a)), 1):
        cell = _put(page, number, 1, line)
        cell.alignment, cell.font = told, Font(bold=_ruled(under))
        page.row_dimensions[number].height = _height([line], [_PAGE])
    widths = []
    for at, column in enumerate(zip(*form.lines, strict=True)):
        longest = max(len(line) for cell in column for line in cell.split("\n"))
        widths.append(_OWN if at in form.open else min(max(longest, _NARROW), _WIDE))
        sheet.column_dimensions[letter(at + 1)].width = widths[at]
    for number, cells in enumerate(form.lines, 1):
        sheet.row_dimensions[number].height = _height(cells, widths)
        for at, text in enumerate(cells):
            cell = _put(sheet, number, at + 1, text)
            cell.alignment, cell.border = wrapped, border
            if number == 1:
                cell.font, cell.fill, cell.alignment = Font(bold=True), head, told
            elif at in form.open:
                cell.fill, cell.protection = open_, Protection(locked=False)
                cell.number_format = "@"  # 1-2 is no date
    sheet.freeze_panes = "B2"
    for place, (at, words) in enumerate(form.choices.items(), 1):
        for number, word in enumerate(words, 1):
            _put(lists, number, place, word)
        cells = f"lists!${letter(place)}$1:${letter(place)}${len(words)}"
        rule = DataValidation("list", formula1=cells, allow_blank=True, error=form.refused[:225])
        rule.showErrorMessage = True
        rule.add(f"{letter(at + 1)}2:{letter(at + 1)}{max(len(form.lines), 2)}")
        sheet.add_data_validation(rule)
    return saved(book)


def _ruled(line: str) -> bool:
    """Tell whether a line of text only underlines the one before it."""
    return bool(line) and set(line) <= {"=", "-"}


def _height(cells: Sequence[str], widths: Sequence[int]) -> int:
    """Return the height of a row in points, which LibreOffice does not find out by itself."""
    lines = max(
        sum(1 + len(line) // width for line in cell.split("\n"))
        for cell, width in zip(cells, widths, strict=True)
    )
    return min(_LINE * lines, _HIGHEST)


def _put(sheet: Any, row: int, column: int, text: str) -> Any:
    cell = sheet.cell(row, column)
    return as_text(cell, text) if text else cell


def as_text(cell: Any, text: str) -> Any:
    """Set the text of a cell, which may begin with `=`, and return the cell."""
    cell.value = _NUMBERED.sub("_x005F\\g<0>", _NO_XML.sub("\ufffd", text))
    cell.data_type = "s"  # so that a text that begins with = is no formula
    return cell


def saved(book: Any) -> bytes:
    """Return a workbook's bytes, with all dates set to 1980."""
    made, out = io.BytesIO(), io.BytesIO()
    book.save(made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(out, "w") as new:
        for part in sorted(old.infolist(), key=lambda part: part.filename):
            data = old.read(part)
            if part.filename == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"1980-01-01T00:00:00Z", data)
            info = zipfile.ZipInfo(part.filename, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)
    return out.getvalue()
