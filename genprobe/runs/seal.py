"""The seal of a run: `MANIFEST`, which says later whether the run's records were changed.

A line is one seal. It holds the length and SHA-256 of every file that a run appends to or writes
once, and the name of the seal before it. Whatever is appended later leaves the sealed beginning as
it was, so that a run that went on can be told from one that was edited.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from genprobe._version import __version__
from genprobe.errors import RunError
from genprobe.files import disk
from genprobe.records import Record, canonical, described
from genprobe.runs.spec import refuse_newer
from genprobe.text import many, whole_number

NAME = "MANIFEST"
SIGNATURE = "MANIFEST.sig"  # of the whole file, by the user's own key: see sign.py
APPENDED = ("responses.jsonl", "logprobs.jsonl", "failures.jsonl")
PACK = "pack.toml"  # the pack of a run, if it is the user's own
SEALED = ("run.json", PACK, "statements.jsonl", "requests.jsonl", *APPENDED)
_BLOCKS = 1000  # most blocks of a file, about: up to so many rows, each row is one
_MOST = 100 * _BLOCKS  # most that are compared, whatever a folder holds


@dataclass(frozen=True, kw_only=True)
class Seal(Record):
    """The state of the run's records at one time.

    The name of the last seal is the seal of the run, which signatures show by its first 16 digits.
    """

    seal: str = described(
        "Name of this seal: the SHA-256 of `previous`, `files`, `changed` and `by`, as JSON with "
        "sorted keys and without spaces. So equal records have equal seals, whenever they came."
    )
    previous: str = described("Name of the seal on the line before; empty in the first line.")
    files: dict[str, Any] = described(
        "For each file: `bytes` and `rows`, how long it was; `sha256` of these bytes; `blocks`, "
        "the first 12 digits of the SHA-256 of each block of rows, after the number of its rows; "
        "`every`: a block ends with a row whose CRC-32 is a multiple of this number."
    )
    changed: tuple[str, ...] = described(
        "Files in which something that was sealed before was no longer as it had been."
    )
    by: str = described(
        "`run`: made at the end of a run; `hand`: by `genprobe verify --seal`, which accepts all "
        "changes before it."
    )
    at: str = described("Time at which it was made (UTC).")
    version: str = described("Version of genprobe that made it.")

    @property
    def short(self) -> str:
        """Return the first 16 digits of the name."""
        return self.seal[:16]

    @property
    def content(self) -> str:
        """Return the name that fits the content."""
        names = ("previous", "files", "changed", "by")
        content = {name: getattr(self, name) for name in names}
        return hashlib.sha256(canonical(content).encode("ascii")).hexdigest()


class _Hashed(NamedTuple):
    """A file in one pass: its whole lines, and the SHA-256 of its beginnings by their length."""

    size: int
    rows: int
    sums: dict[int, str]


def read(folder: Path) -> list[Seal]:
    """Read the seals of a run, the first one first; none if it was never sealed.

    Raises RunError if the file is malformed, or was written by a newer version.
    """
    path, found = folder / NAME, list[Seal]()
    if not path.exists():
        return found
    for number, _, line in disk.lines(path):
        refuse_newer(line, f"{path}:{number}")
        try:
            one = Seal.from_json(line)
            _check(one)
        except RunError as error:
            cure = "restore the file from a copy, or delete it: the run is unsealed then"
            raise RunError(f"{path}:{number}: {error}; {cure}") from None
        found.append(one)
    return found


def _check(one: Seal) -> None:
    """Raise RunError unless the files of a seal are described as `_sealed` does it."""
    if not set(one.changed) <= set(SEALED) or len(one.at) > 40:
        raise RunError("'changed' or 'at' is not as it is in a Seal")
    for name, file in one.files.items():
        kinds = {"bytes": int, "rows": int, "sha256": str, "every": int, "blocks": list}
        whole = name in SEALED and isinstance(file, dict) and file.keys() == kinds.keys()
        if not whole or any(type(file[key]) is not kind for key, kind in kinds.items()):
            raise RunError(f"{name[:40]!r} is not described as files are in a Seal")
        texts = [block for block in file["blocks"][:_MOST] if isinstance(block, str)]
        if file["every"] < 1 or len(texts) < len(file["blocks"]):
            raise RunError(f"the blocks of {name!r} are not described as in a Seal")


def seal(folder: Path, by: str = "run") -> Seal:
    """Seal the files of a run as they are now; return the last seal if nothing has come since.

    The caller holds the lock of the folder. Raises RunError if that fails; the old seals remain.
    """
    chain = read(folder)
    last = chain[-1] if chain else None
    files, changed = {}, []
    for name in SEALED:
        old = last.files.get(name) if last else None
        if (folder / name).exists():
            hashed = _hashed(folder / name, [old["bytes"]] if old else [])
            if old and hashed.sums.get(old["bytes"]) != old["sha256"]:
                changed.append(name)
            same = old and old["bytes"] == hashed.size and name not in changed
            files[name] = old if same else _sealed(folder / name, hashed)
        elif old:
            changed.append(name)
    if last and files == last.files and not (by == "hand" and _open_changes(chain)):
        return last
    new = Seal(
        seal="",
        previous=last.seal if last else "",
        files=files,
        changed=tuple(changed),
        by=by,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        version=__version__,
    )
    new = Seal(**{**vars(new), "seal": new.content})
    with disk.writing(folder):  # it signs what is no longer there
        (folder / SIGNATURE).unlink(missing_ok=True)
    disk.replace(folder / NAME, (one.to_json() + "\n" for one in [*chain, new]))
    return new


def _sealed(path: Path, hashed: _Hashed) -> dict[str, Any]:
    every = 1
    while hashed.rows > every * _BLOCKS:
        every *= 2
    blocks = [f"{rows} {digest}" for rows, digest in _blocks(path, every)]
    whole = hashed.sums[hashed.size]
    return {
        "bytes": hashed.size,
        "rows": hashed.rows,
        "sha256": whole,
        "every": every,
        "blocks": blocks,
    }


def _hashed(path: Path, lengths: Iterable[int]) -> _Hashed:
    """Hash a file's whole lines, and its beginnings of these lengths that end with a line."""
    wanted, state = set(lengths), hashlib.sha256()
    rows, size, sums = 0, 0, dict[int, str]()
    for number, offset, line in _lines(path):
        if offset in wanted:
            sums[offset] = state.hexdigest()
        state.update(line)
        rows, size = number, offset + len(line)
    sums[size] = state.hexdigest()
    return _Hashed(size, rows, sums)


def _blocks(path: Path, every: int) -> Iterator[tuple[int, str]]:
    """Yield (number of rows, hash) of each block; where a block ends depends on its last row."""
    state, rows = hashlib.sha256(), 0
    for _, _, line in _lines(path):
        state.update(line)
        rows += 1
        if zlib.crc32(line) % every == 0:
            yield rows, state.hexdigest()[:12]
            state, rows = hashlib.sha256(), 0
    if rows:
        yield rows, state.hexdigest()[:12]


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    return disk.lines(path, appended=path.name in APPENDED)


# -- checks --------------------------------------------------------------------------------------


def problems(
    folder: Path, chain: Sequence[Seal], growing: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (where, what) for everything that is not as it was sealed.

    growing: the run is being written, so rows that came after the seal are no problem.
    """
    if not chain:
        return
    for number, one in enumerate(chain, 1):
        previous = chain[number - 2].seal if number > 1 else ""
        if one.seal != one.content or one.previous != previous:
            yield f"{NAME}:{number}", "the seal does not fit its content; it was edited"
    last = chain[-1]
    for name in SEALED:
        there = (folder / name).exists()
        if there and name in last.files:
            yield from _differences(folder / name, chain, growing)
        elif there or name in last.files:
            what = "was added" if there else "was removed"
            yield name, f"{what} after the seal of {last.at}"
    for name, at in _open_changes(chain):
        what = f"was changed before the seal of {at}, by which the run went on"
        yield name, f"{what}; `genprobe verify --seal` accepts it"


def _differences(path: Path, chain: Sequence[Seal], growing: bool) -> Iterator[tuple[str, str]]:
    """Yield (where, what) for the rows of a file that are not as they were sealed."""
    sealed, at = chain[-1].files[path.name], chain[-1].at
    first = max((n for n, one in enumerate(chain) if path.name in one.changed), default=0)
    earlier = {n: one.files.get(path.name) for n, one in enumerate(chain) if n >= first}
    hashed = _hashed(path, [file["bytes"] for file in earlier.values() if file])
    if hashed.sums.get(sealed["bytes"]) == sealed["sha256"]:
        if hashed.size > sealed["bytes"] and not growing:
            more = many(hashed.rows - sealed["rows"], "row")
            yield f"{path.name}:{sealed['rows'] + 1}", f"{more} added after the seal of {at}"
        for number, file in earlier.items():
            if file and hashed.sums.get(file["bytes"]) != file["sha256"]:
                yield f"{NAME}:{number + 1}", f"seals another beginning of {path.name}"
        return
    named = False
    for where, what in _located(path, sealed):
        named = True
        yield where, f"{what} after the seal of {at}"
    if not named:
        yield path.name, f"its rows are in another order than in the seal of {at}"


def _located(path: Path, sealed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (place, `edited` or …) for the blocks that differ; places are those of today's file.

    Blocks are compared by their hashes, wherever they stand, so that one row more or less does not
    move the others.
    """
    old = [_block(text) for text in sealed["blocks"]]
    new = list(itertools.islice(_blocks(path, sealed["every"]), _MOST))
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    at_old, at_new, row = 0, 0, 1
    while at_old < len(old) or at_new < len(new):
        lost, added, begin = 0, 0, row
        while at_old < len(old) and gone[old[at_old]] > 0:
            gone[old[at_old]] -= 1
            lost += old[at_old][0]
            at_old += 1
        while at_new < len(new) and come[new[at_new]] > 0:
            come[new[at_new]] -= 1
            added += new[at_new][0]
            at_new += 1
        row += added
        if lost or added:
            yield _place(path.name, begin, added), _what(lost, added, sealed["every"])
        if at_new < len(new):
            row += new[at_new][0]
        at_old, at_new = at_old + 1, at_new + 1


def _block(text: str) -> tuple[int, str]:
    rows, _, digest = text.partition(" ")
    return whole_number(rows) or 0, digest


def _place(name: str, begin: int, rows: int) -> str:
    return f"{name}:{begin}" + (f"-{begin + rows - 1}" if rows > 1 else "")


def _what(lost: int, added: int, every: int) -> str:
    if not added:
        return f"{many(lost, 'row')} dropped before this one"
    if not lost:
        return f"{many(added, 'row')} added"
    if lost == added:
        within = "something in " if every > 1 else ""
        return f"{within}{many(added, 'row')} edited"
    more = added - lost
    change = f"{many(abs(more), 'row')} {'more' if more > 0 else 'fewer'}"
    return f"edited, with {change} than the {lost} that were here"


def _open_changes(chain: Iterable[Seal]) -> list[tuple[str, str]]:
    """List (file, time of the seal) for each change that nobody has accepted by `--seal`."""
    left: list[tuple[str, str]] = []
    for one in chain:
        left = [] if one.by == "hand" else [*left, *((name, one.at) for name in one.changed)]
    return left


def told(chain: Sequence[Seal]) -> str:
    """Describe the seal of a run and what became of it, as one line; `unsealed` without one."""
    if not chain:
        return "unsealed"
    line = f"seal {chain[-1].short}"
    for number, one in enumerate(chain):
        if one.by == "hand":
            changed = [name for seal in chain[: number + 1] for name in seal.changed]
            what = f" after a change of {', '.join(dict.fromkeys(changed))}" if changed else ""
            line += f", sealed {'again ' if number else ''}by hand on {one.at[:10]}{what}"
    return line


def in_signature(folder: Path) -> str:
    """Return the name of the run's seal for signatures; "" if it is unsealed.

    It ends in `-changed` if a file has another length than was sealed. Whether the bytes are those
    that were sealed is found only by `problems`.
    """
    chain = read(folder)
    if not chain:
        return ""
    sizes = {name: file["bytes"] for name, file in chain[-1].files.items()}
    paths = {name: folder / name for name in SEALED if (folder / name).exists()}
    found = {name: path.stat().st_size for name, path in paths.items()}
    return chain[-1].short + ("" if found == sizes else "-changed")
