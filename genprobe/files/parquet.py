"""Read Parquet files as rows, within limits that hold whatever a file says of itself.

A page of a few kilobytes may unpack to gigabytes, a text that is written once may stand in a
million rows, and the sizes at the end of a file may be false. So the headers of all pages are read
first; from them comes how many rows are read at a time. Source of the format:
https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import collections
import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.limits import exceeded, limit

MAGIC = b"PAR1"
_BATCH = 4096  # rows that are read at a time, at most
_STEP = 8_000_000  # bytes of them that are made Python objects at a time
_HEADS = 1 << 12, 1 << 24  # bytes of the header of a page: mostly, at most
_WEIGHT = 6  # bytes of memory for a byte of a page: unpacked, in columns, and as texts by hash
_VALUE = 24  # bytes of a value in a list
_NESTED = 100  # levels of a header
_ROW = 4096  # bytes that a row may have beyond the limit `unpacked`, if rows are not kept


@contextlib.contextmanager
def opened(
    path: Path, chosen: Callable[[list[str]], list[str]] = list, streamed: bool = False
) -> Iterator[tuple[Any, list[int]]]:
    """Open a Parquet file whose pages are within the limits; its texts are read as categories.

    chosen, streamed: as in `parts`. Yields it, and the rows of each row group that are read at a
    time. Raises InputError for a file that is damaged, or beyond a limit.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with door.reading(path) as source:
            foot = _foot(path, source)
            file = pq.ParquetFile(source, thrift_container_size_limit=limit("members"))
            names = chosen(list(file.schema_arrow.names))
            texts, groups = _looked_over(path, source, file, foot, names, streamed)
            file = pq.ParquetFile(
                door.reading(path), metadata=file.metadata, read_dictionary=sorted(texts)
            )
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        if "Exceeded size limit" in str(error):
            raise exceeded(path, "members") from None
        raise InputError(f"{path}: not a Parquet file ({first_line(error)})") from None
    with file:
        yield file, groups


class Sink(io.RawIOBase):
    """A file that Parquet is written to, and whose bytes are taken out as they come."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self._held.append(bytes(data))
        self._size += len(self._held[-1])
        return len(self._held[-1])

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        found, self._held = b"".join(self._held), []
        return found


def rows(path: Path, streamed: bool = False) -> Iterator[dict[str, Any]]:
    """Read the rows of a Parquet file; a text that stands in many rows is held once.

    streamed: as in `parts`. Raises InputError for a file that is damaged, or beyond a limit.
    """
    unpacked = done = 0
    for part in parts(path, streamed=streamed):
        with sound(path, done):
            found = part.to_pylist()
        done += len(found)
        texts_of = (v for row in found for v in row.values() if isinstance(v, str))
        unpacked += max(_weight(part), sum(map(sys.getsizeof, texts_of)))
        if unpacked > _most(done, streamed):
            raise exceeded(path, "unpacked")
        yield from found


def _most(rows: int, streamed: bool) -> int:
    """Return how many bytes so many rows may be, unpacked."""
    return limit("unpacked") + (_ROW * min(rows, limit("rows")) if streamed else 0)


@contextlib.contextmanager
def sound(path: Path, done: int) -> Iterator[None]:
    """Raise InputError if a value of a part cannot be read, such as a time after the year 9999."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}, after row {done}: damaged Parquet ({first_line(error)})"
        ) from None


def parts(
    path: Path,
    chosen: Callable[[list[str]], list[str]] = list,
    rows: int = _BATCH,
    streamed: bool = False,
) -> Iterator[Any]:
    """Read a Parquet file as batches of Arrow; a text is one of a dictionary, held once.

    chosen: which of the columns are read. rows: most of them in a batch. streamed: they are not
    kept, so that many may have long texts. Raises InputError as the function `rows`.
    """
    import pyarrow as pa

    done = 0
    try:
        with opened(path, chosen, streamed) as (file, groups):
            names = file.schema_arrow.names
            twice = [n for n, count in collections.Counter(names).items() if count > 1]
            if twice:
                raise InputError(f"{path}: two columns are called {twice[0]!r}")
            for group, most in enumerate(groups):
                read = file.iter_batches(min(rows, most), row_groups=[group], columns=chosen(names))
                for batch in read:
                    step = max(1, batch.num_rows * _STEP // max(1, _weight(batch)))
                    for start in range(0, batch.num_rows, step):
                        part = batch.slice(start, step)
                        if _weight(part) > limit("line") * part.num_rows:
                            raise exceeded(f"{path}, row {done + 1}", "line")
                        done += part.num_rows
                        yield part
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError) as error:
        raise InputError(
            f"{path}, after row {done}: damaged Parquet ({first_line(error)})"
        ) from None


def _foot(path: Path, source: IO[bytes]) -> bytes:
    """Return what stands at the end of a file, about all its parts. Raises InputError if too long.

    Of a file that is no Parquet, any bytes.
    """
    size = source.seek(0, 2)
    source.seek(max(0, size - 8))
    end = source.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] == MAGIC and length > limit("part"):
        raise exceeded(path, "part")
    source.seek(max(0, size - 8 - length))
    return source.read(min(length, limit("part")))


def _looked_over(
    path: Path, source: IO[bytes], file: Any, foot: bytes, chosen: list[str], streamed: bool
) -> tuple[set[str], list[int]]:
    """Return which columns hold texts, and how many rows of each group are read at a time.

    chosen: the columns that are read; only their pages are looked at. Where the pages stand is read
    from the foot: pyarrow ends the process if what it says about a column does not fit together.

    Raises InputError if the file is too large, unpacked, by the headers of its pages.
    """
    found = file.metadata
    total, texts, groups = 0, set(), []
    inside, rows = tuple(f"{name}." for name in chosen), 0
    for number, group in enumerate(_struct(foot, 0)[0].get(4, [])):
        parts = [part.get(3, {}) for part in group.get(1, [])]
        if len(parts) != found.num_columns:
            raise ValueError("a row group with other columns")
        together = row = 0.0  # bytes of a page of each column; bytes of a row, at most
        rows += group.get(3, 0)
        for at, part in enumerate(parts):
            column = found.schema.column(at)
            if column.path not in chosen and not column.path.startswith(inside):
                continue
            width = 0  # of a value that may stand once for many
            if column.physical_type == "BYTE_ARRAY":
                texts.add(column.path)
            elif column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                width = column.length
            pages = list(_pages(source, part))
            size = sum(size for _, size in pages)
            values = sum(count for count, _ in pages)
            if column.max_repetition_level:  # a row may go on over many pages
                size += (_VALUE + width) * values
                together += size
                row += size / max(1, group.get(3, 0))
            else:
                together += max((size for _, size in pages), default=0)
                row += max((size / count for count, size in pages if count), default=0) + width
            total += size
            if total > _most(rows, streamed):
                raise exceeded(path, "unpacked")
        if _WEIGHT * together > limit("flight"):
            raise exceeded(f"{path}, row group {number + 1}", "flight")
        groups.append(max(1, int(_STEP / max(1.0, row))))
    return texts, groups


def _pages(source: IO[bytes], part: dict[int, Any]) -> Iterator[tuple[int, int]]:
    """Yield (number of values, bytes unpacked) of each page; a dictionary has no values.

    part: what the foot says about a column of a row group.
    """
    length, first, dictionary = part.get(7), part.get(9), part.get(11)
    if not isinstance(length, int) or not isinstance(first, int):
        raise ValueError("a column that stands nowhere")
    at = min(first, dictionary or first)
    end = at + length
    while at < end:
        header, length = _header(source, at, end)
        data = header.get(5) or header.get(8)  # of values; a dictionary has neither
        count = data.get(1) if isinstance(data, dict) else 0
        sizes: tuple[Any, ...] = count, header.get(2), header.get(3)
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError("a page of unknown size")
        count, unpacked, packed = sizes
        yield count, unpacked
        at += length + packed


def _header(source: IO[bytes], at: int, end: int) -> tuple[dict[int, Any], int]:
    for most in _HEADS:
        source.seek(at)
        with contextlib.suppress(IndexError):
            return _struct(source.read(min(most, end - at)), 0)
    raise ValueError("a page is cut off")


def _struct(data: bytes, at: int, level: int = 0) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol: its whole numbers, structs and lists; its end."""
    found: dict[int, Any] = {}
    field = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _number(data, at)
        if kind not in (1, 2):  # a truth value, in its head
            found[field], at = _value(data, at, kind, level)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, level: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):  # a truth value of a list; a byte
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _number(data, at)
    if kind == 7:  # a float; a list may say that it has more of them than there are bytes
        return data[at + 7], at + 8
    if kind == 8:  # bytes; their length is not signed
        length, at = _number(data, at, signed=False)
        return None, at + length
    if kind == 12 and level < _NESTED:
        return _struct(data, at, level + 1)
    if kind not in (9, 10) or level >= _NESTED:
        raise ValueError("a header of another kind")
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _number(data, at, signed=False)
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, level + 1)
        values.append(value)
    return values, at


def _number(data: bytes, at: int, signed: bool = True) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1) if signed else value, at


def _weight(array: Any) -> int:
    """Return how many bytes the values of an Arrow array or batch take, about, one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.RecordBatch):
        return sum(_weight(column) for column in array.columns)
    if isinstance(array, pa.DictionaryArray):
        sizes = pc.binary_length(array.dictionary).take(array.indices)
        return (pc.sum(sizes).as_py() or 0) + 8 * len(array)
    if isinstance(array, pa.MapArray):
        return _weight(array.keys) + _weight(array.items)
    if isinstance(array, pa.StructArray):
        return sum(_weight(part) for part in array.flatten())
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return 8 * len(array) + _weight(array.flatten())
    return int(array.nbytes)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")
