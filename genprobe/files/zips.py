"""Read JSON files in a zip, within limits, and tell what a file is by its first bytes.

Inspect packs its logs with Zstandard, which Python's own reader does not unpack; pyarrow does.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from genprobe.errors import InputError
from genprobe.files import door, parquet, workbooks
from genprobe.limits import exceeded, limit, parsed

_PIECE = 1 << 16  # bytes that are unpacked at a time
# What zipfile, zlib and the reader of JSON raise for other bytes than they expect.
_DAMAGE = (
    *(OSError, zipfile.BadZipFile, ValueError, LookupError, EOFError, OverflowError),
    *(struct.error, zlib.error, NotImplementedError, RuntimeError),
)
_ZSTD = 93  # the method, of which Python 3.13 and older know no name
_GZIP = b"\x1f\x8b"
_LOCAL = 30  # bytes of the head of a file in a zip, before its name


def names(path: Path) -> list[str]:
    """List the files in a zip. Raises InputError if it is none, or has too many."""
    try:
        with door.reading(path) as file, zipfile.ZipFile(file) as archive:
            found = archive.namelist()
    except _DAMAGE as error:
        raise InputError(f"{path}: not a zip, or a damaged one ({error})") from None
    if len(found) > limit("members"):
        raise exceeded(path, "members")
    return found


def content(path: Path, name: str) -> Any:
    """Parse a file in a zip as JSON. Raises InputError for other content, or beyond a limit."""
    try:
        return parsed(read(path, name))
    except ValueError as error:
        raise InputError(f"{path}, {name}: cannot be read ({error})") from None


def read(path: Path, name: str) -> bytes:
    """Read a file in a zip. Raises InputError if it cannot be read, or is beyond a limit."""
    most, data = limit("line"), bytearray()
    try:
        with door.reading(path) as file, zipfile.ZipFile(file) as archive:
            for piece in _pieces(file, archive, archive.getinfo(name)):
                data += piece
                if len(data) > most:
                    raise exceeded(f"{path}, {name}", "line")
        return bytes(data)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path}, {name}: cannot be read ({error})") from None


def _pieces(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.compress_type != _ZSTD:
        with archive.open(info) as member:
            while piece := member.read(_PIECE):
                yield piece
        return
    import pyarrow as pa

    file.seek(info.header_offset)
    head = file.read(_LOCAL)
    if head[:4] != workbooks.MAGIC:
        raise ValueError("damaged")
    file.seek(sum(struct.unpack("<HH", head[26:30])), 1)
    if info.compress_size > limit("line"):
        raise exceeded(f"{archive.filename or 'zip'}, {info.filename}", "line")
    packed = pa.BufferReader(file.read(info.compress_size))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        while piece := stream.read(_PIECE):
            yield piece


def suffix(start: bytes) -> str:
    """Return the suffix of a file that begins with these bytes: .parquet, .json, .csv, …"""
    if start.startswith(parquet.MAGIC):
        return ".parquet"
    if start.startswith(workbooks.MAGIC):
        return ".xlsx" if b"xl/" in start or b"docProps/" in start else ".eval"
    if start.startswith(_GZIP):
        try:
            return suffix(zlib.decompressobj(31).decompress(start, _PIECE)) + ".gz"
        except zlib.error:
            return ".csv.gz"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")):
        return ".csv"
    try:
        parsed(text.splitlines()[0])
    except ValueError:
        return ".json"
    return ".jsonl" if text.startswith(b"{") else ".json"
