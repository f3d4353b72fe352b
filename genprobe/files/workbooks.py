"""Read the first sheet of a workbook (.xlsx, ECMA-376 part 1), row by row.

Only the parts that the cells need are read, as streams of XML. Programs that open a whole workbook
make objects of its styles, names and fonts as well: 300 kB of them, packed, can take 4 GB.
"""

from __future__ import annotations

import datetime
import posixpath
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.limits import exceeded, limit

_PART = 1 << 16  # bytes of XML that are parsed at a time
_TAG = 1 << 20  # most bytes of a tag
_BOOK = "xl/workbook.xml"
# Number formats without a code in the file that show a date or a time (18.8.30).
_DATES = {*range(14, 23), *range(45, 48)}
# Letters of a date in the code of a format, outside of quoted text, colours and locales.
_LITERAL = re.compile(r'"[^"]*"|\[(?!hh?\]|mm?\]|ss?\])[^\]]*\]', re.IGNORECASE)
_DATED = re.compile(r"(?<![_\\])[dmhys]", re.IGNORECASE)
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


class _Damaged(Exception):
    """The file is not as workbooks are."""


def rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows of the first sheet that have cells: number, and the value of each cell.

    A value is None, text, a number, True or False; a date or time is text in ISO 8601. A row ends
    with its last cell, and those after the first have at most as many as the first. Raises
    InputError for another file, beyond a limit, and OSError if it cannot be read.
    """
    try:
        with door.reading(path) as file, zipfile.ZipFile(file) as archive:
            yield from _Book(path, archive).rows()
    except (_Damaged, expat.ExpatError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not a workbook ({error})") from None
    except (ValueError, LookupError, EOFError, OverflowError, NotImplementedError) as error:
        raise InputError(f"{path}: not a workbook ({type(error).__name__})") from None


class _Book:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        if len(archive.infolist()) > limit("members"):
            raise exceeded(path, "members")
        self.there = {name.lower(): name for name in archive.namelist()}
        self.unpacked = 0
        self.texts: list[str] = []
        self.dates: list[bool] = []  # for each style of cells, whether it shows a number as a date
        self.epoch = datetime.datetime(1899, 12, 30)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        sheet, others = self._sheet()
        for kind in ("/styles", "/sharedStrings"):
            if others.get(kind, "").lower() in self.there:
                {"/styles": self._styles, "/sharedStrings": self._shared}[kind](others[kind])
        yield from self._cells(sheet)

    def _read(self, name: str, handle: Callable[[expat.XMLParserType], None], most: str) -> None:
        for _ in self._parsed(name, handle, most):
            pass

    def _parsed(
        self, name: str, handle: Callable[[expat.XMLParserType], None], most: str
    ) -> Iterator[None]:
        """Parse a part bit by bit, and yield after each bit.

        handle: gives a parser its functions. most: the limit on the bytes of the part.
        """
        if name.lower() not in self.there:
            raise _Damaged(f"no {name}")
        parser = expat.ParserCreate()
        parser.buffer_text = True
        handle(parser)

        def refuse(*_: object) -> None:
            raise _Damaged("a document type")

        parser.StartDoctypeDeclHandler = refuse
        size = 0
        with self.archive.open(self.there[name.lower()]) as part:
            while piece := part.read(_PART):
                size += len(piece)
                if size > limit(most):
                    raise exceeded(f"{self.path}, {name}", most)
                parser.Parse(piece)
                if size - parser.CurrentByteIndex > _TAG:
                    raise _Damaged(f"a tag of more than {_TAG} bytes in {name}")
                yield
        parser.Parse(b"", True)
        yield

    def _keep(self, text: str) -> str:
        """Count the memory of a text."""
        self.unpacked += sys.getsizeof(text)
        if self.unpacked > limit("unpacked"):
            raise exceeded(self.path, "unpacked")
        return text

    def _sheet(self) -> tuple[str, dict[str, str]]:
        """Find the part of the first sheet, and those that are there once, by kind."""
        ids: list[str] = []

        def begin(name: str, given: Mapping[str, str]) -> None:
            tag = _local(name)
            if tag == "sheet":
                ids.append(next(v for n, v in given.items() if ":" in n and _local(n) == "id"))
            elif tag == "workbookPr" and given.get("date1904") in ("1", "true"):
                self.epoch = datetime.datetime(1904, 1, 1)

        self._read(_BOOK, _tags(begin), "part")
        targets: dict[str, tuple[str, str]] = {}

        def relate(name: str, given: Mapping[str, str]) -> None:
            if _local(name) == "Relationship":
                kind, target = "/" + given["Type"].rpartition("/")[2], given["Target"]
                targets[given["Id"]] = kind, posixpath.normpath(posixpath.join("/xl", target))[1:]

        self._read("xl/_rels/workbook.xml.rels", _tags(relate), "part")
        found = [targets[one] for one in ids if one in targets]
        sheet = next((target for kind, target in found if kind == "/worksheet"), None)
        if sheet is None:
            raise _Damaged("no sheet")
        return sheet, dict(targets.values())

    def _styles(self, part: str) -> None:
        codes: dict[str, bool] = {}
        inside = False

        def begin(name: str, given: Mapping[str, str]) -> None:
            nonlocal inside
            tag = _local(name)
            if tag == "numFmt":
                code = _LITERAL.sub("", given.get("formatCode", "").split(";")[0])
                codes[given["numFmtId"]] = bool(_DATED.search(code))
            elif tag in ("cellXfs", "cellStyleXfs"):
                inside = tag == "cellXfs"
            elif tag == "xf" and inside:
                own = given.get("numFmtId", "0")
                builtin = own.isascii() and own.isdigit() and len(own) < 4 and int(own) in _DATES
                self.dates.append(codes.get(own, builtin))

        self._read(part, _tags(begin), "part")

    def _shared(self, part: str) -> None:
        reader = _Text()

        def begin(name: str, given: Mapping[str, str]) -> None:
            reader.begin(_local(name))

        def end(name: str) -> None:
            tag = _local(name)
            reader.end(tag)
            if tag == "si":
                self.texts.append(self._keep(reader.take()))
                if len(self.texts) > limit("cells"):
                    raise exceeded(self.path, "cells")

        self._read(part, _handlers(self.path, begin, end, reader), "unpacked")

    def _cells(self, part: str) -> Iterator[tuple[int, list[Any]]]:
        done: list[tuple[int, list[Any]]] = []
        line: list[Any] = []
        number = at = count = 0
        width = 1 << 14
        kind = style = ""
        reader = _Text()

        def begin(name: str, given: Mapping[str, str]) -> None:
            nonlocal number, at, kind, style
            tag = _local(name)
            if tag == "c":
                kind, style = given.get("t", "n"), given.get("s", "")
                at = _column(given["r"]) if "r" in given else at + 1
            elif tag == "row":
                number, at = int(given.get("r") or number + 1), -1
                line.clear()
            else:
                reader.begin(tag)

        def end(name: str) -> None:
            nonlocal count, width
            tag = _local(name)
            if tag == "c":
                value = self._value(kind, style, reader.take())
                if value is None or value == "":
                    return
                if at >= width:
                    raise InputError(f"{self.path}, row {number}: more cells than the first row")
                line.extend([None] * (at + 1 - len(line)))
                line[at] = value
            elif tag == "row":
                if not count:
                    width = len(line)
                count += max(1, width)
                if count > limit("cells"):
                    raise exceeded(self.path, "cells")
                if line:
                    done.append((number, line.copy()))
            else:
                reader.end(tag)

        for _ in self._parsed(part, _handlers(self.path, begin, end, reader), "unpacked"):
            yield from done
            done.clear()

    def _value(self, kind: str, style: str, text: str) -> Any:
        if kind == "s":
            return self.texts[int(text)] if text else None
        if kind in ("inlineStr", "str", "e", "d"):
            return self._keep(text)
        if not text:
            return None
        if kind == "b":
            return text.strip() == "1"
        number = float(text) if re.search("[.eE]", text) else int(text)
        dated = style.isdigit() and int(style) < len(self.dates) and self.dates[int(style)]
        return self._date(number) if dated else number

    def _date(self, number: float) -> str:
        """Write the number of a date or time in ISO 8601."""
        day, part = divmod(number, 1)
        time = datetime.timedelta(milliseconds=round(part * 86_400_000))
        if 0 <= number < 1 and not time.days:
            return (datetime.datetime.min + time).time().isoformat()
        if 0 < number < 60 and self.epoch.year == 1899:
            day += 1  # there, February 1900 has 29 days
        return (self.epoch + datetime.timedelta(days=day) + time).isoformat()


class _Text:
    """The text of a cell or shared text, whose parts may be formatted differently."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0
        self.reads = self.spoken = False

    def begin(self, tag: str) -> None:
        self.spoken |= tag == "rPh"  # how the text is pronounced
        self.reads = tag in ("t", "v") and not self.spoken

    def end(self, tag: str) -> None:
        self.spoken &= tag != "rPh"
        self.reads = False

    def take(self) -> str:
        text = "".join(self.parts).replace("x005F_", "")
        self.parts, self.size = [], 0
        return text


def _tags(begin: Callable[[str, Mapping[str, str]], None]) -> Callable[[Any], None]:
    def handle(parser: Any) -> None:
        parser.StartElementHandler = begin

    return handle


def _handlers(
    path: Path,
    begin: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None],
    reader: _Text,
) -> Callable[[Any], None]:
    most = limit("cell")

    def data(text: str) -> None:
        if reader.reads:
            reader.parts.append(text)
            reader.size += len(text)
            if reader.size > most:
                raise exceeded(path, "cell")

    def handle(parser: Any) -> None:
        parser.StartElementHandler, parser.EndElementHandler = begin, end
        parser.CharacterDataHandler = data

    return handle


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _column(place: str) -> int:
    """Return the index of the column of a place such as `AB12`."""
    found = _PLACE.fullmatch(place)
    if found is None:
        raise _Damaged(f"a cell at {place[:20]!r}")
    index = 0
    for letter in found[1]:
        index = 26 * index + ord(letter) - 64
    return index - 1
