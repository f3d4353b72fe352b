"""Read workbooks (.xlsx) as lines of cells; they need the extra `xlsx` (openpyxl)."""

from __future__ import annotations

import contextlib
import datetime
import io
import sys
import zipfile
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
        found = _cells(path, sheets[0]) if sheets else []
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
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
