"""Read and write JSONL, CSV and Parquet files as streams of rows, one dict per row.

The suffix of a file gives its format; workbooks (.xlsx), and texts packed as .gz, can be read.
Memory does not grow with the file, but for workbooks. Every fault is an InputError: one line that
names the place.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime
import decimal
import gzip
import io
import itertools
import json
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from genprobe.errors import InputError, NoRows
from genprobe.files import door, parquet, people, workbooks
from genprobe.files.rows import Row as Row
from genprobe.files.rows import Rows
from genprobe.limits import exceeded, limit, parsed
from genprobe.text import many, nfc

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
# What can be read, but is not written here.
_READ_ONLY = {".xlsx": "workbook"}
# What to do with files of other types.
_JUDGED = " have `genprobe judge LOG -o FOLDER` make a run of a log of a harness"
_CURES = (
    dict.fromkeys((".xls", ".ods"), "; save it as CSV (UTF-8)")
    | dict.fromkeys(
        (".txt", ".tab", ""),
        "; a table that has its columns' names in the first line can be renamed to .csv or .tsv",
    )
    | {".json": "; write one object a line, as .jsonl, or" + _JUDGED, ".eval": ";" + _JUDGED}
)
_BATCH = 4096  # rows of Parquet that are written at a time

# First characters of a cell that a spreadsheet runs as a formula, with their full-width forms.
_FORMULA = "=+\\-@＝＋－＠"
# A cell begins with the text; where `;` or a tab separates, also after these and with each line. A
# dash before plain words there begins a list, which no spreadsheet runs. A tab or a line end is
# passed over where a cell begins.
_STARTS = '(\\A|[\n\r;\t]"*)'
_LISTED = r"(?!(?<=[\n\r])-[^\S\n\r]+[^\n\r=+@(!|]*(?:[\n\r]|\Z))"
_TO_ESCAPE = re.compile(f"\\A(?='*[\t\r\n])|{_STARTS}{_LISTED}(?='*[{_FORMULA}])")
_ESCAPED = re.compile(f"\\A'(?='*[\t\r\n])|{_STARTS}'(?='*[{_FORMULA}])")
# A dash, alone or before words, without a sign that could call a function or name another cell.
_DASH = re.compile(r"-(?:\s[\w\s,.:;&/'’-]*)?")
# Not allowed in CSV (NUL) or in UTF-8 (half of a surrogate pair, which models do produce).
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Halves of surrogate pairs, and characters that some readers, unlike JSON, take for a line end.
_TO_JSON_ESCAPE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def read_rows(path: str | os.PathLike[str] | Rows) -> Iterator[Row]:
    """Read the rows of a .jsonl/.ndjson, .csv/.tsv or .parquet file, in order.

    CSV: UTF-8, separated by commas (or by `;` or tab if the header line has no comma); every value
    is text; blank rows are skipped; the apostrophe that keeps a formula from running (see
    `write_rows`) is removed. JSONL and Parquet: values keep their types. InputError is raised at
    once for a missing file or an unknown suffix, and for a faulty row when it is reached.
    """
    return (row for _, row in numbered_rows(path))


def read_frame(path: str | os.PathLike[str] | Rows) -> pd.DataFrame:
    """Read the rows of a file as a table; its index has the row numbers of `numbered_rows`.

    Cells are Python objects: no type is guessed, and every value fits, even half of a surrogate
    pair.
    """
    import pandas as pd

    numbered = list(numbered_rows(path))
    numbers = [number for number, _ in numbered]
    return pd.DataFrame([row for _, row in numbered], index=numbers, dtype=object)


def numbered_rows(
    path: str | os.PathLike[str] | Rows, streamed: bool = False, encoding: str = ""
) -> Iterator[tuple[int, Row]]:
    """Read rows as `read_rows` does, each with its number.

    The number is the line in a JSONL file, the row that a spreadsheet shows for a CSV file or a
    workbook (the header is row 1), and the count from 1 in a Parquet file and for rows in memory.
    streamed: the rows are not kept, so there may be more of them than the limit `rows`, and in
    Parquet 4 KB of each beyond the limit `unpacked`. encoding: of a text that is not in UTF-8;
    UTF-16 is known by its first bytes.
    """
    if isinstance(path, Rows):
        return path.numbered()
    path = Path(path)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from None
    kind = _format(path, _READ_ONLY)
    if kind in ("parquet", "workbook") and path.suffix.lower() == ".gz":
        raise InputError(f"{path}: is packed twice; unpack it (gunzip)")
    read = {
        "jsonl": lambda: _read_jsonl(path, encoding),
        "csv": lambda: _read_csv(path, encoding),
        "parquet": lambda: enumerate(parquet.rows(path, streamed), 1),
        "workbook": lambda: workbooks.rows(path),
    }[kind]
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder, not a file")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise NoRows(f"{path}: the file is empty")
    return _counted(path, read(), streamed)


def _format(path: Path, more: Mapping[str, str] | None = None) -> str:
    """Return the format that a suffix names. more: further suffixes; a packed file has two."""
    suffix = _suffix(path) if more else path.suffix.lower()
    known = SUFFIXES | dict(more or {})
    try:
        return known[suffix]
    except KeyError:
        cure = _CURES.get(suffix, "")
        raise InputError(
            f"{path}: unknown suffix {path.suffix!r}; known: {', '.join(known)}{cure}"
        ) from None


def _suffix(path: Path) -> str:
    """Return the suffix of a file that is read, in small letters; of `x.csv.gz`, `.csv`."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _counted(
    path: Path, rows: Iterator[tuple[int, Row]], streamed: bool
) -> Iterator[tuple[int, Row]]:
    count, most = 0, math.inf if streamed else limit("rows")
    for count, row in enumerate(rows, 1):
        if count > most:
            raise exceeded(path, "rows")
        yield row
    if not count:
        raise NoRows(f"{path}: the file holds no rows")


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """Read the lines of a text with their line ends, but without a BOM."""
    start = 0
    longest = limit("line")
    try:
        with door.reading(path) as raw_file:
            packed = path.suffix.lower() == ".gz"
            file: Any = _Unpacked(path, raw_file) if packed else raw_file
            if not encoding and not packed and raw_file.peek(2)[:2] in _UTF16:
                encoding = "utf-16"
            if encoding:
                yield from _decoded(path, file, encoding, longest)
                return
            for number, raw in enumerate(iter(lambda: file.readline(longest + 1), b""), 1):
                if len(raw) > longest:
                    raise exceeded(f"{path}, line {number}", "line")
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{path}, line {number}: not UTF-8 (byte {start + error.start}); save the "
                        "file as UTF-8 (`genprobe judge` also takes --encoding, such as cp1251)"
                    ) from None
                if b"\0" in raw:
                    raise InputError(
                        f"{path}, line {number}: a NUL byte (byte {start + raw.index(0)}); "
                        "this is not a text file, or it is damaged"
                    )
                start += len(raw)
                yield line.removeprefix("\ufeff") if number == 1 else line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from None


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _decoded(path: Path, file: Any, encoding: str, longest: int) -> Iterator[str]:
    """Read the lines of a text in another encoding than UTF-8."""
    number = 0
    try:
        with io.TextIOWrapper(file, encoding, newline="\n") as text:
            for number, line in enumerate(iter(lambda: text.readline(longest + 1), ""), 1):
                if len(line) > longest:
                    raise exceeded(f"{path}, line {number}", "line")
                if "\0" in line:
                    raise InputError(f"{path}, line {number}: not a text in {encoding}")
                yield line.removeprefix("\ufeff") if number == 1 else line
    except LookupError:
        raise InputError(f"unknown encoding {encoding[:40]!r}; such as cp1251, utf-16") from None
    except UnicodeError:
        raise InputError(f"{path}, after line {number}: not a text in {encoding}") from None


class _Unpacked(gzip.GzipFile):
    """A packed file, which is read up to the limit `unpacked`."""

    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(fileobj=file, mode="rb")
        self.path, self.left = path, limit("unpacked")

    def _of(self, data: bytes) -> bytes:
        self.left -= len(data)
        if self.left < 0:
            raise exceeded(self.path, "unpacked")
        return data

    def readline(self, size: int | None = -1) -> bytes:
        return self._of(super().readline(size))

    def read1(self, size: int = -1) -> bytes:
        return self._of(super().read1(size))


def _read_jsonl(path: Path, encoding: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(_lines(path, encoding), 1):
        text = line.strip(" \t\r\n")
        if not text:
            continue
        try:
            row = parsed(text, unique=True)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not a line of JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(
                f"{path}, line {number}: a row is a JSON object, not {_json_kind(row)}"
            )
        yield number, row


def _json_kind(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _repeated(names: Sequence[str]) -> str | None:
    """Find the first name that occurs twice; None if there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _read_csv(path: Path, encoding: str) -> Iterator[tuple[int, Row]]:
    longest, field = limit("line"), allow_fields()
    lines = _lines(path, encoding)
    first = next(lines, "")
    delimiter, size = _delimiter(path, first), 0  # of the row so far, which may have many lines
    if first.count(delimiter) > limit("values"):
        raise exceeded(f"{path}, line 1", "values")

    def short() -> Iterator[str]:
        nonlocal size
        for text in itertools.chain([first], lines):
            size += len(text)
            if size > longest:
                raise exceeded(f"{path}, line {line}", "line")
            yield text

    reader = csv.reader(short(), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1
    try:
        for number, cells in enumerate(reader, 1):
            if size > field:
                need_short_fields(f"{path}, line {line}", cells)
            size = 0
            if not header:
                header = [unescape(nfc(c.strip())) for c in cells]
                twice = _repeated(header)
                if twice is not None:
                    raise InputError(f"{path}, line {line}: two columns are called {twice!r}")
            elif any(cells) or (cells and len(header) == 1):
                if len(cells) != len(header):
                    raise InputError(
                        f"{path}, line {line}: {many(len(cells), 'field')} where the header has "
                        f"{len(header)}; is a quote or a separator missing?"
                    )
                yield number, dict(zip(header, map(unescape, cells), strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise csv_error(f"{path}, line {line}", error) from None


def allow_fields() -> int:
    """Return the limit `field`, and let the module csv read fields of that length.

    Its own limit holds for the whole process, so it is only ever raised.
    """
    csv.field_size_limit(max(limit("field"), csv.field_size_limit()))
    return limit("field")


def need_short_fields(where: str, cells: Iterable[str]) -> None:
    """Raise InputError if a field of CSV is beyond the limit `field`."""
    if any(len(cell) > limit("field") for cell in cells):
        raise exceeded(where, "field")


def csv_error(where: str, error: csv.Error) -> InputError:
    """Make the error that says what is wrong with CSV."""
    if str(error).startswith("field larger than"):
        return exceeded(where, "field")
    return InputError(f"{where}: not CSV ({error}); is a quote not closed?")


def _delimiter(path: Path, header: str) -> str:
    if _suffix(path) == ".tsv":
        return "\t"
    if "," in header:
        return ","
    # Spreadsheets write `;` in countries where the comma is the decimal sign.
    return next((sign for sign in ";\t" if sign in header), ",")


# --- writing


def write_rows(
    path: str | os.PathLike[str] | None,
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    dashes: Sequence[str] = (),
    follow: bool = True,
    private: bool = False,
) -> int:
    """Write rows to a file in the format of its suffix, and return the number of rows.

    path: the file; `-` or None writes JSONL to standard output. The file appears only when all rows
    are written: a temporary file in the same folder is renamed at the end, and removed on any
    error, including Ctrl-C.

    JSONL is exact (but a number that is not finite becomes null). In CSV and Parquet, half of a
    surrogate pair becomes U+FFFD. CSV is made for spreadsheets: it begins with a byte order mark,
    without which Excel reads it in the code page of the machine, and a text (never a number) that a
    spreadsheet would run as a formula, because it starts with `=`, `+`, `-`, `@`, tab or a line
    end, gets an apostrophe before it, which `read_rows` removes; null is an empty cell, and a list
    is written as JSON. In Parquet an object is written as JSON, and the first rows decide the type
    of a column.

    columns: of CSV and Parquet; by default, those of the first row. dashes: columns of CSV in which
    a dash before plain words (`- quiet`), which no spreadsheet runs, gets no apostrophe, because a
    program compares the text. follow: write to where a link of this name leads; otherwise the link
    is replaced. private: others on the machine cannot read the file, and git leaves it out; so too
    if the first row names somebody (`people.names_somebody`). Raises InputError for a later row
    with other columns, for a value that does not fit, and for a file that cannot be written.
    """
    if path is None or str(path) == "-":
        return _write_stdout(rows)
    path = Path(path)
    writers: dict[str, type[_Writer]] = {
        "jsonl": _JsonlWriter,
        "csv": _CsvWriter,
        "parquet": _ParquetWriter,
    }
    writer_class = writers[_format(path)]
    target = Path(os.path.realpath(path)) if follow else path
    temporary = None
    rows = iter(rows)
    first = list(itertools.islice(rows, 1))
    private = private or any(map(people.names_somebody, first))
    try:
        with _writing(path):
            temporary, file = door.temporary(target, private)
        writer = writer_class(path, file, columns)
        writer.dashes = frozenset(dashes)
        count = _fill(writer, itertools.chain(first, rows))
        with _writing(path):
            temporary.replace(target)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise
    return count


def _fill(writer: _Writer, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows, sync them to the disk, and close the file even after an error."""
    count = 0
    try:
        for row in rows:
            count += 1
            try:
                writer.write(count, row)
            except OSError as error:
                raise _cannot_write(writer.path, error) from None
        with _writing(writer.path):
            writer.close()
            writer.file.flush()
            os.fsync(writer.file.fileno())
    except BaseException:
        writer.abandon()
        raise
    finally:
        with contextlib.suppress(OSError):  # closing tries again to write what failed
            writer.file.close()
    return count


def _cannot_write(path: object, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be written ({error.strerror or error})")


@contextlib.contextmanager
def _writing(path: object) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader (`| head`) has closed the pipe, which is no error
    except OSError as error:
        raise _cannot_write(path, error) from None


def _write_stdout(rows: Iterable[Mapping[str, Any]]) -> int:
    where, count = "standard output", 0
    for row in rows:
        count += 1
        line = json_of(row, f"{where}, row {count}")
        with _writing(where):
            sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    with _writing(where):
        sys.stdout.buffer.flush()
    return count


def json_of(value: object, where: str) -> str:
    """Write a value as JSON on one line, with escapes only for what UTF-8 or a line cannot hold.

    where: the place that an InputError names if JSON cannot hold the value.
    """
    try:
        try:
            text = _DUMPS(value)
        except ValueError:  # NaN or infinity, which JSON does not have
            text = _DUMPS(_finite(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: cannot be written as JSON ({error})") from None
    # Outside of strings JSON is ASCII, so every match is inside a string.
    return _TO_JSON_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: object) -> object:
    """Convert a value of a type that Parquet has, but JSON does not, to one that JSON has."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise TypeError(f"a {type(value).__name__}")


_DUMPS = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


class _Writer:
    """Writer of rows to an open file (base class of the formats)."""

    dashes: frozenset[str] = frozenset()

    def __init__(self, path: Path, file: IO[bytes], columns: Sequence[str] | None) -> None:
        self.path, self.file = path, file
        self.columns = None if columns is None else list(columns)

    def write(self, number: int, row: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write the rows that are still in memory."""

    def abandon(self) -> None:
        """Release the file without writing the rest."""

    def check(self, number: int, row: Mapping[str, Any]) -> list[str]:
        """Return the columns. Raises InputError if the row has others."""
        if self.columns is None:
            self.columns = list(row)
        if not row.keys() <= set(self.columns):
            extra = next(name for name in row if name not in self.columns)
            raise InputError(
                f"{self.path}, row {number}: a column {extra!r} that the first row does not have; "
                "write a .jsonl file instead"
            )
        return self.columns


class _JsonlWriter(_Writer):
    def write(self, number: int, row: Mapping[str, Any]) -> None:
        line = json_of(row, f"{self.path}, row {number}")
        self.file.write(line.encode("utf-8") + b"\n")


class _CsvWriter(_Writer):
    def __init__(self, path: Path, file: IO[bytes], columns: Sequence[str] | None) -> None:
        super().__init__(path, file, columns)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        # csv quotes a cell that has a character of its line end: with "\n" alone, a "\r" would be
        # written without quotes, and a reader would end the line there.
        self.csv = csv.writer(_Utf8(file), delimiter=delimiter, lineterminator="\r\n")
        self.headed = False

    def write(self, number: int, row: Mapping[str, Any]) -> None:
        columns = self.check(number, row)
        self._header()
        self.csv.writerow([self._cell(number, name, row.get(name)) for name in columns])

    def _header(self) -> None:
        if not self.headed and self.columns is not None:
            self.file.write(codecs.BOM_UTF8)
            self.csv.writerow([escape(name) for name in self.columns])
            self.headed = True

    def _cell(self, number: int, name: str, value: Any) -> object:
        if isinstance(value, str):
            plain = name in self.dashes and _DASH.fullmatch(value)
            return value if plain else escape(value)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return ""
        if isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool):
            return value
        return escape(text_of(value, f"{self.path}, row {number}"))

    def close(self) -> None:
        self._header()


class _Utf8:
    """Output of csv.writer, encoded as UTF-8; its lines end in "\n" in the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        return self.file.write(text.removesuffix("\r\n").encode("utf-8") + b"\n")


def escape(text: str) -> str:
    """Escape a text as a CSV cell that a spreadsheet shows but does not run; see `unescape`."""
    text = _UNWRITABLE.sub("\ufffd", text)
    return _TO_ESCAPE.sub(r"\g<0>'", text)


def unescape(cell: str) -> str:
    return _ESCAPED.sub(r"\1", cell)


class _ParquetWriter(_Writer):
    def __init__(self, path: Path, file: IO[bytes], columns: Sequence[str] | None) -> None:
        super().__init__(path, file, columns)
        self.held: list[Mapping[str, Any]] = []
        self.start = 1  # number of the first row in memory
        self.schema: Any = None
        self.writer: Any = None

    def write(self, number: int, row: Mapping[str, Any]) -> None:
        self.check(number, row)
        self.held.append(row)
        if len(self.held) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = self.columns or []
        arrays = [self._array(index, name) for index, name in enumerate(columns)]
        if self.writer is None:
            fields = zip(columns, arrays, strict=True)
            self.schema = pa.schema([(_SURROGATE.sub("\ufffd", n), a.type) for n, a in fields])
            self.writer = pq.ParquetWriter(self.file, self.schema)
        if arrays:
            self.writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
        self.start += len(self.held)
        self.held = []

    def _array(self, index: int, name: str) -> Any:
        """Make an Arrow array of a column's values; the first batch decides the column's type."""
        import pyarrow as pa

        values = [self._cell(n, row.get(name)) for n, row in enumerate(self.held, self.start)]
        kind = self.schema.field(index).type if self.schema is not None else None
        try:
            array = pa.array(values, type=kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.path}: column {name!r} mixes kinds of values "
                f"({parquet.first_line(error)}, rows {self.start} to "
                f"{self.start + len(self.held) - 1}); write a .jsonl file instead"
            ) from None
        # So far the column has only nulls: later values are most likely text.
        return array.cast(pa.string()) if pa.types.is_null(array.type) else array

    def _cell(self, number: int, value: Any) -> Any:
        if isinstance(value, str):
            return _SURROGATE.sub("\ufffd", value)
        if isinstance(value, list | tuple) and not any(
            isinstance(part, Mapping | list | tuple) for part in value
        ):
            return [self._cell(number, part) for part in value]
        if isinstance(value, Mapping | list | tuple):
            return _SURROGATE.sub("\ufffd", text_of(value, f"{self.path}, row {number}"))
        return value

    def close(self) -> None:
        if self.held or self.writer is None:
            self._flush()
        self.writer.close()

    def abandon(self) -> None:
        if self.writer is not None:
            self.writer.is_open = False  # else it writes a footer when it is garbage-collected


def text_of(value: object, where: str) -> str:
    """Write a value as text: a date in ISO 8601, everything else as JSON."""
    text = json_of(value, where)
    return json.loads(text) if text.startswith('"') else text
