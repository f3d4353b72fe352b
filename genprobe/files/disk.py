"""Crash-safe files: complete lines, atomic replacement, an exclusive lock, one-line errors."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from genprobe.errors import RunError
from genprobe.files import door
from genprobe.limits import TooMuch, exceeded, limit, parsed

if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


_CURES = {
    errno.ENOSPC: "free some space and start again: what was written is kept",
    errno.EDQUOT: "free some of your quota and start again: what was written is kept",
    errno.EFBIG: "raise the limit on file sizes and start again: what was written is kept",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose a folder that can be written to",
    errno.EPERM: "choose a folder that can be written to",
    errno.ENOTDIR: "choose another name: a file is in the way",
    errno.EEXIST: "choose another name: a file is in the way",
}

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def write_error(path: Path, error: OSError) -> RunError:
    """Make the error that says that `path` cannot be written."""
    cure = _CURES.get(error.errno or 0)
    reason = error.strerror or str(error)
    return RunError(f"{path}: cannot be written ({reason}){'; ' + cure if cure else ''}")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into the RunError of `write_error`."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error


@contextlib.contextmanager
def if_writable() -> Iterator[None]:
    """Leave the block without an error if a file cannot be written because it may only be read."""
    try:
        yield
    except RunError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _READ_ONLY:
            raise


def lock(folder: Path) -> int:
    """Take the folder's exclusive lock, and return the open file descriptor that holds it.

    The lock is freed when the descriptor is closed or the process ends. Raises RunError if another
    process has it, and OSError if the lock file cannot be made.
    """
    fd = door.locking(folder / ".lock")
    try:
        _take(fd)
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise RunError(
                f"{folder}: another process is writing to this run; wait until it has ended"
            ) from None
        raise RunError(
            f"{folder}: cannot be locked ({error.strerror}); choose a folder on a local disk"
        ) from None
    return fd


def sync_folder(folder: Path) -> None:
    """Make new and renamed entries of a folder durable (Windows has no such call)."""
    if sys.platform != "win32":
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def replace(path: Path, lines: Iterable[str], encoding: str = "ascii") -> None:
    """Write `lines` to `path`, all or nothing: after a kill there is the old file or the new one.

    A link of this name is replaced, not followed. Raises RunError if the file cannot be written,
    and any error of `lines`. After an error there is no temporary file; a kill may leave one,
    `.genprobe-*.tmp`.
    """
    replace_bytes(path, (line.encode(encoding) for line in lines))


def replace_bytes(path: Path, chunks: Iterable[bytes], private: bool = False) -> None:
    """Write `chunks` of bytes to `path`, all or nothing, as `replace` writes lines.

    private: others on the machine cannot read it.
    """
    temporary = None
    try:
        with writing(path):
            temporary, file = door.temporary(path, private)
        try:
            for chunk in chunks:
                try:
                    file.write(chunk)
                except OSError as error:
                    raise write_error(path, error) from error
            with writing(path):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with writing(path):  # closing writes what is left in the buffer
                file.close()
        with writing(path):
            temporary.replace(path)
            sync_folder(path.parent)
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise


def leftovers(*folders: Path) -> list[Path]:
    """Find temporary files that a kill during `replace` or `files.write_rows` left behind."""
    names = ("*.json*.tmp", "README.md.tmp", "MANIFEST*.tmp", ".genprobe-*.tmp")
    return sorted(path for folder in folders for name in names for path in folder.glob(name))


def lines(path: Path, *, appended: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number from 1, byte offset, line) for each line of a file.

    appended: the file grows line by line, so an incomplete last line is left out (see `whole`).
    Raises RunError if the file cannot be read.
    """
    try:
        longest = limit("line")
        with door.reading(path) as file:
            end = whole(file) if appended else file.seek(0, os.SEEK_END)
            number, offset = 1, file.seek(0)
            while offset < end and (line := file.readline(longest + 1)):
                if len(line) > longest:
                    raise exceeded(f"{path}, line {number}", "line")
                yield number, offset, line
                number, offset = number + 1, offset + len(line)
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None


def whole(file: BinaryIO | FileIO) -> int:
    """Find the offset at which the complete lines of a file end; a crash cut off the rest.

    An incomplete line has no newline, or is not JSON (after a crash, a disk may have the length of
    a write but not its bytes).
    """
    size = file.seek(0, os.SEEK_END)
    end = _line_start(file, size)
    if end < size or not size:
        return end
    start = _line_start(file, size - 1)
    if size - start > limit("line"):
        return size  # whoever reads the line says so
    file.seek(start)
    try:
        parsed(file.read(size - start))
    except TooMuch:
        return size
    except ValueError:
        return start
    return size


def _line_start(file: BinaryIO | FileIO, end: int) -> int:
    """Return the offset after the last newline before `end`."""
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def cut(path: Path) -> None:
    """Remove an incomplete last line, if `path` exists and has one."""
    if not path.exists():
        return
    with door.mending(path) as file:
        end = whole(file)
        if end < file.seek(0, os.SEEK_END):
            file.truncate(end)
            os.fsync(file.fileno())
