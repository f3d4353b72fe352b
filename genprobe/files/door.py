"""Open files: the one door to the disk.

What lies in a folder of somebody else may be a link to a file of the user, or a pipe that never
ends. So only regular files are read, nothing is written through a link, temporary files have names
that nobody can guess, and links inside a folder that was taken in are refused unless
`--follow-links` is given (git-annex and DVC keep files as links). A link that the user names is
followed. `tests/test_door.py` finds every place that opens a file in another way.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import re
import secrets
import stat
from collections.abc import Iterator
from io import BufferedReader, BufferedWriter, FileIO
from pathlib import Path

from genprobe.errors import InputError
from genprobe.limits import exceeded, limit

# Whether links inside folders are read (never written).
_follow: contextvars.ContextVar[bool] = contextvars.ContextVar("follow_links", default=False)

# Windows has neither flag: there, links need a right that few users have.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def follow_links(follow: bool = True) -> None:
    """Allow links inside folders that are read, for git-annex, DVC and the like."""
    _follow.set(follow)


def reading(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file to read its bytes.

    Raises OSError if it cannot be opened, and InputError for a folder, pipe or device.
    """
    fd = os.open(path, os.O_RDONLY | _NO_WAIT | _PLAIN)  # a pipe without a writer does not hang
    try:
        _need_regular(os.fstat(fd).st_mode, path)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def content(path: str | os.PathLike[str]) -> bytes:
    """Read a whole regular file. Raises as `reading`, and InputError beyond the limit `text`."""
    most = limit("text")
    with reading(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise exceeded(path, "text")
    return data


def appending(path: Path) -> FileIO:
    """Open a file to append to it; make it if it is not there. Raises as `reading`."""
    return _written(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def mending(path: Path) -> FileIO:
    """Open a file that is there to read and shorten it. Raises as `reading`."""
    return _written(path, os.O_RDWR, "r+b")


def _written(path: Path, flags: int, mode: str) -> FileIO:
    try:
        fd = os.open(path, flags | _NO_LINK | _NO_WAIT | _PLAIN, 0o666)
    except OSError:
        need_no_link(path)
        raise
    try:
        _need_regular(os.fstat(fd).st_mode, path)
        return FileIO(fd, mode)
    except BaseException:
        os.close(fd)
        raise


def locking(path: Path) -> int:
    """Open a lock file, not through a link, and return its descriptor. Raises as `reading`."""
    need_no_link(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK | _NO_WAIT | _PLAIN, 0o666)


def temporary(target: Path, private: bool = False) -> tuple[Path, BufferedWriter]:
    """Make a new file beside `target` under a name that nobody can guess, and open it to write.

    private: others on the machine cannot read it, and git leaves `target` out. A file that is
    there already is replaced by one with its permissions. Raises InputError if `target`, which the
    new file will replace, is a folder, pipe or device (/dev/null); a link may be replaced.
    """
    mode = 0o600 if private else 0o666
    with contextlib.suppress(OSError):
        before = target.lstat().st_mode
        if not stat.S_ISLNK(before):
            _need_regular(before, target, "choose another name")
            mode &= before
    if private:
        leave_out_of_git(target)
    path = target.with_name(f".genprobe-{secrets.token_hex(6)}.tmp")
    # O_EXCL: never an existing file or link.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _PLAIN, mode)
    return path, os.fdopen(fd, "wb")


def expanded(path: str | os.PathLike[str]) -> Path:
    """Expand a `~` at the beginning of a path; one of a user whom nobody knows stays as it is."""
    with contextlib.suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def leave_out_of_git(path: Path) -> None:
    """Name a file in the `.gitignore` beside it, if it lies in a git checkout, as DVC does."""
    folder = path.resolve().parent
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return
    escaped = re.sub(r"([\\*?\[\]!# ])", r"\\\1", path.name)
    there = folder / ".gitignore"
    before = content(there) if there.exists() else b""
    line = f"/{escaped}".encode()
    if line not in before.splitlines():
        with appending(there) as file:
            file.write((b"" if before[-1:] in (b"", b"\n") else b"\n") + line + b"\n")


def creating(path: Path, private: bool = False) -> BufferedWriter:
    """Make a new file and open it to write. Raises FileExistsError if it is there.

    private: as of `temporary`.
    """
    if private:
        leave_out_of_git(path)
    mode = 0o600 if private else 0o666
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _PLAIN, mode)
    return os.fdopen(fd, "wb")


def lies_at(name: str | os.PathLike[str]) -> str:
    """Return "folder" or "file" for what lies at a path (`~` is the home), else "".

    Names of others, such as those of models, may be too long for a path, or hold NUL.
    """
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        mode = expanded(name).stat().st_mode
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else ""
    return ""


def _need_regular(
    mode: int,
    path: str | os.PathLike[str],
    cure: str = "save what it gives to a file first",
) -> None:
    if stat.S_ISDIR(mode):
        raise InputError(f"{os.fspath(path)}: is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{os.fspath(path)}: is a pipe or a device; {cure}")


def need_no_link(path: Path) -> None:
    """Raise InputError if `path` is a link, through which something would be written."""
    if path.is_symlink():
        raise InputError(f"{path}: is a link, and nothing is written through one; remove the link")


def need_own(folder: Path) -> None:
    """Raise InputError if a folder that is taken in holds links, unless links are followed.

    The folder itself may be a link, since the user named it.
    """
    for path in () if _follow.get() else _entries(folder):
        need_own_file(path)


def need_own_file(path: Path) -> None:
    """Raise InputError if a file that another one names is a link, unless links are followed."""
    if path.is_symlink() and not _follow.get():
        raise InputError(
            f"{path}: is a link, which may lead to any file of this machine; copy the file "
            "into the folder, or give --follow-links if you trust the folder"
        )


def _entries(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder, and in the folders in it; links are not entered."""
    with contextlib.suppress(NotADirectoryError, FileNotFoundError):
        for path in sorted(folder.iterdir()):
            yield path
            if not path.is_symlink() and path.is_dir():
                yield from _entries(path)
