"""Fetch the files of a public data set into the cache of this machine, or take the user's copy.

Files come from the set's home at one commit, only those of the languages that are asked for, into
$XDG_CACHE_HOME/genprobe/sets/NAME/COMMIT. Each is checked against its hash (git's, or SHA-256)
whenever it is read, so nothing is fetched twice and nothing is read that was cut or changed. A
download that breaks goes on where it stopped. `take_from` names a folder that the user has instead
(`--from`). Files are data: nothing in them is run.
"""

from __future__ import annotations

import contextvars
import hashlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genprobe.errors import Caution, InputError
from genprobe.files import disk, door
from genprobe.files.cells import Notes
from genprobe.limits import exceeded, limit

RAW = "https://raw.githubusercontent.com"  # where GitHub has the files of a commit
_WAIT = 60  # timeout of a connection, in seconds
_TRIES = 3  # times that a download goes on after its connection broke
_PART = 1 << 16  # bytes that are read at a time
_folder: contextvars.ContextVar[Path | None] = contextvars.ContextVar("from_folder", default=None)


class Home(NamedTuple):
    """Where a data set is: its name, page, and commit; form: the page where one asks for it."""

    name: str
    page: str
    commit: str
    form: str = ""


class File(NamedTuple):
    """A file of a data set: its language, its name in the set, its place here, and its version."""

    lang: str
    name: str
    path: Path
    version: str  # the commit, or the hash of a file that is not the published one


def take_from(folder: Path | None) -> None:
    """Read data sets from a folder that the user has; None for the cache."""
    _folder.set(folder)


def files(home: Home, wanted: Mapping[str, Mapping[str, str]], notes: Notes) -> list[File]:
    """Return the files of a data set, fetched if they are not here.

    wanted: language -> name of a file, or pattern of names, in the set -> its hash; "" if nobody
    has seen it. Raises InputError for a file that is missing, or is not the published one.
    """
    listed = [(lang, *one) for lang, named in wanted.items() for one in named.items()]
    if (folder := _folder.get()) is not None:
        return _of_folder(home, folder, listed, notes)
    if not (home.commit and home.page.startswith("https://github.com/")):
        how = f"ask for it at {home.form}" if home.form else f"get it at {home.page}"
        raise InputError(f"{home.name}: is not fetched; {how}, then give --from FOLDER")
    there = _cache() / home.name / home.commit[:12]
    found, fetched = [], 0
    for lang, name, hash_ in listed:
        path = there / name
        if not (path.is_file() and hash_of(path, hash_) == hash_):
            _fetch(home, name, hash_, path)
            fetched += 1
        found.append(File(lang, name, path, home.commit[:12]))
    how = f"{fetched} of {len(found)} files fetched from" if fetched else "read from the cache;"
    notes.add(f"{home.name}: {how} {home.page.split('//')[1]} at commit {home.commit[:12]}")
    return found


def _of_folder(
    home: Home, folder: Path, listed: Sequence[tuple[str, str, str]], notes: Notes
) -> list[File]:
    if not folder.is_dir():
        raise InputError(f"--from {folder}: no such folder; give a copy of {home.page}")
    door.need_own(folder)
    found = []
    for lang, name, hash_ in listed:
        places = sorted(folder.glob(name)) if "*" in name else [folder / name]
        places = [path for path in places if path.is_file()]
        if not places and (folder / Path(name).name).is_file():
            places = [folder / Path(name).name]
        if not places:
            raise InputError(f"--from {folder}: no {name}; give a copy of {home.page}")
        for path in places:
            own = hash_of(path, hash_)
            shown = path.relative_to(folder).as_posix() if "*" in name else name
            if hash_ and own != hash_:
                what = f"{home.name}: not the file of commit {home.commit[:12]}, read all the same"
                notes.add(Caution(what), shown)
            published = bool(hash_) and own == hash_
            found.append(File(lang, shown, path, home.commit[:12] if published else own[:12]))
    notes.add(f"{home.name}: read from {folder}")
    return found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "genprobe" / "sets"


def hash_of(path: Path, like: str = "") -> str:
    """Return the SHA-256 of a file, or git's hash of it if `like` is one (40 digits)."""
    content = door.content(path)
    if len(like) == 40:
        head = b"blob %d\0" % len(content)
        return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
    return hashlib.sha256(content).hexdigest()


def _fetch(home: Home, name: str, hash_: str, path: Path) -> None:
    """Download a file and check it; what has come of it waits in `path`.part."""
    place = home.page.removeprefix("https://github.com/")
    url = f"{RAW}/{place}/{home.commit}/{urllib.parse.quote(name)}"
    cure = "or give a copy with --from FOLDER"
    part = path.with_name(f"{path.name}.part")
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for again in range(_TRIES):
            try:
                whole = _more(url, part)
            except urllib.error.HTTPError as error:
                part.unlink(missing_ok=True)
                raise InputError(f"{url}: HTTP {error.code}; try later, {cure}") from None
            except http.client.HTTPException as error:
                why, whole = f"the connection broke ({type(error).__name__})", False
            except urllib.error.URLError as error:
                why = f"cannot be reached ({type(error.reason).__name__})"
                raise InputError(f"{url}: {why}; try later, {cure}") from None
            except (TimeoutError, ConnectionError, ValueError) as error:
                why, whole = f"the connection broke ({type(error).__name__})", False
            else:
                why = "the connection broke"
            if whole:
                break
            if again == _TRIES - 1:
                raise InputError(f"{url}: {why}; the same command goes on from there, {cure}")
        if hash_of(part, hash_) != hash_:
            part.unlink()
            raise InputError(f"{url}: not the file that its authors published; try later, {cure}")
        part.replace(path)


def _more(url: str, part: Path) -> bool:
    """Append what is missing to a part of a file; tell whether it is whole now."""
    most, done = limit("text"), part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=_WAIT) as answer:
        if done and answer.status != http.client.PARTIAL_CONTENT:
            part.unlink()  # the server begins at the beginning
            done = 0
        left = int(answer.headers.get("Content-Length") or -1)
        if done + left > most:
            raise exceeded(url, "text")
        with door.appending(part) as file:
            while (left < 0 or left > 0) and (piece := answer.read(_PART)):
                file.write(piece)
                done, left = done + len(piece), left - len(piece) if left > 0 else left
                if done > most:
                    raise exceeded(url, "text")
    return left <= 0
