"""`Run`: the folder of a run. `runs/README.md` describes its format, and is generated here.

Replies are appended and never edited; derived files are replaced as a whole and can be deleted.
Only one process can write at a time; readers need no lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
import time
import typing
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

from genprobe.errors import RunError
from genprobe.files import disk, door
from genprobe.records import (
    JSON,
    RECORDS,
    Failure,
    Judged,
    Judgment,
    LogProb,
    Record,
    Request,
    Response,
    Score,
    Statement,
    canonical,
)
from genprobe.resources import packs, registry
from genprobe.runs import card, seal, sign
from genprobe.runs.places import Places
from genprobe.runs.seal import Seal
from genprobe.runs.spec import Spec, refuse_newer, signature, statements_hash
from genprobe.runs.verify import read_scores, verify
from genprobe.text import many

R = TypeVar("R", bound=Record)

APPENDED: dict[type[Record], str] = {
    Response: "responses.jsonl",
    LogProb: "logprobs.jsonl",
    Failure: "failures.jsonl",
}
# The files that an interrupted creation of a run can leave behind. run.json is written last, and
# responses only after it.
_BEGUN = {
    ".lock",
    seal.PACK,
    f"{seal.PACK}.tmp",
    "statements.jsonl",
    "statements.jsonl.tmp",
    "requests.jsonl",
    "requests.jsonl.tmp",
    "run.json.tmp",
}

# What names of judgments that are no reader's begin with: reviewers, and the harness that asked.
OTHERS = ("reviewed-", "theirs")
KEPT = 1 << 24  # most bytes of answers that are kept in memory; more are read from the disk again
_FLUSH_EVERY = 0.2  # least seconds between syncs
_FLUSH_SHARE = 0.01  # greatest share of the time that is spent on syncing to a slow disk


class Run:
    """A run folder. `Run.start` to write, `Run.open` to read; close it, or use `with`."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder, self.spec = folder, spec
        self._lock: int | None = None
        self._files: dict[type[Record], FileIO] = {}
        self._unsynced: set[FileIO] = set()
        self._due = 0.0
        self._planned: Sequence[Request] | None = None  # known while the run is written

    def __fspath__(self) -> str:
        """Return the folder, so that a run can be passed as a path."""
        return str(self.folder)

    # -- start, open, close ----------------------------------------------------------------

    @classmethod
    def start(
        cls,
        folder: str | Path,
        spec: Spec,
        statements: Sequence[Statement],
        requests: Sequence[Request],
        pack: bytes = b"",
    ) -> Self:
        """Create the folder, or resume it if it has a run with the same spec.

        pack: the content of the pack's file, if it is the user's own. Raises RunError if the folder
        has another spec or other requests, is not a run, is being written by another process, is
        damaged, or cannot be written.
        """
        run = cls(Path(folder), spec)
        _refuse_other(run.folder)
        door.need_own(run.folder)
        with disk.writing(run.folder):
            run.folder.mkdir(parents=True, exist_ok=True)
            run._lock = disk.lock(run.folder)
        try:
            if (run.folder / "run.json").exists():
                run._resume(statements, requests)
            else:
                run._create(statements, requests, pack)
            run._open_files()
            run._planned = requests
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a run to read it and to write derived files. Raises RunError if it is not a run."""
        if not isinstance(folder, str | os.PathLike):
            raise RunError(f"give a run, or its folder, not {type(folder).__name__}")
        folder = Path(folder)
        if not folder.is_dir():
            what = "there is no such run folder"
            if folder.is_file():
                what = (
                    "is a file, and no run folder; `genprobe judge FILE -o FOLDER` makes a run of "
                    "the replies in it"
                )
            raise RunError(f"{folder}: {what}")
        door.need_own(folder)
        return cls(folder, _read_spec(folder))

    def close(self) -> None:
        """Flush, close and release the lock. Calling it again does nothing."""
        try:
            self.flush()
            if self._files:
                seal.seal(self.folder)
                self._describe()
        finally:
            for file in self._files.values():
                file.close()
            self._files, self._unsynced, self._planned = {}, set(), None
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _create(
        self, statements: Sequence[Statement], requests: Sequence[Request], pack: bytes
    ) -> None:
        found = statements_hash(statements)
        if found != self.spec.statements:
            raise RunError(
                f"{self.folder}: the run was made with other statements "
                f"(hash {self.spec.statements}, these have {found})"
            )
        self._tidy()
        if pack:
            disk.replace_bytes(self.folder / seal.PACK, [pack])
        for name, records in (("statements.jsonl", statements), ("requests.jsonl", requests)):
            disk.replace(self.folder / name, (r.to_json() + "\n" for r in records))
        # Written last, so that in a folder with a run.json the other files are complete.
        text = json.dumps(vars(self.spec), indent=2, ensure_ascii=True)
        disk.replace(self.folder / "run.json", [text + "\n"])

    def _resume(self, statements: Sequence[Statement], requests: Sequence[Request]) -> None:
        differences = _read_spec(self.folder).like(self.spec).differences(self.spec)
        if differences:
            raise RunError(
                f"{self.folder}: holds a run with other settings ({'; '.join(differences)}); "
                "choose another folder, or use the settings of that run"
            )
        _ = self.pack  # raises RunError if its own is not the one of the spec
        _compare(self.folder / "statements.jsonl", statements)
        _compare(self.folder / "requests.jsonl", requests)
        seal.read(self.folder)  # before anything is asked, because the end of the run needs it
        self._tidy()
        for name in APPENDED.values():
            with disk.writing(self.folder / name):
                disk.cut(self.folder / name)

    def _tidy(self) -> None:
        """Delete what an interrupted write left behind."""
        with disk.writing(self.folder):
            for path in disk.leftovers(self.folder, self.folder / "judgments"):
                path.unlink()

    def _open_files(self) -> None:
        for kind, name in APPENDED.items():
            with disk.writing(self.folder / name):
                self._files[kind] = door.appending(self.folder / name)
        with disk.writing(self.folder):
            disk.sync_folder(self.folder)

    # -- replies, which are appended -------------------------------------------------------

    def append(self, record: Response | LogProb | Failure) -> None:
        """Append one record to its file.

        The record survives a crash of this process at once, and a crash of the machine after the
        next `flush`, which this method calls about every 0.2 s.

        Raises RunError if it cannot be written; the file then ends with the previous record.
        """
        file = self._files.get(type(record))
        if file is None:
            raise RunError(f"{self.folder}: is open for reading only")
        line = memoryview(record.to_json().encode("ascii") + b"\n")
        with disk.writing(self.folder / APPENDED[type(record)]):
            before = os.fstat(file.fileno()).st_size
            try:
                while line:
                    line = line[file.write(line) :]
            except BaseException:  # a full disk, or Ctrl-C in the middle of a long line
                with contextlib.suppress(OSError):
                    file.truncate(before)
                raise
        self._unsynced.add(file)
        if time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Sync everything that was appended to the disk."""
        if not self._unsynced:
            return
        begun = time.monotonic()
        with disk.writing(self.folder):
            for file in self._unsynced:
                os.fsync(file.fileno())
        self._unsynced.clear()
        now = time.monotonic()
        self._due = now + max(_FLUSH_EVERY, (now - begun) / _FLUSH_SHARE)

    # -- derived files, which are replaced as a whole --------------------------------------

    def write_judgments(
        self,
        judge: str,
        signature: str,
        judgments: Iterable[Judgment],
        reads: Iterable[str] = ("free",),
        only: str = "",
        licence: Iterable[dict[str, JSON]] = (),
    ) -> int:
        """Replace `judgments/<judge>.jsonl`, and return the number of judgments.

        judge, signature: the judge's name and signature. reads: the kinds of requests (`decode`)
        that it judges. only: the kinds of replies that it was given, if not all. licence: of a
        second reader (`Judged`). Raises RunError if the file cannot be written.
        """
        path = self.folder / "judgments" / f"{judge}.jsonl"
        note = path.with_suffix(".json")
        state, count = hashlib.sha256(), 0

        def lines() -> Iterator[str]:
            nonlocal count
            for judgment in judgments:
                line = judgment.to_json(judge) + "\n"
                state.update(line.encode("ascii"))
                count += 1
                yield line

        with self._locked():
            with disk.writing(path):
                door.need_no_link(path.parent)
                path.parent.mkdir(exist_ok=True)
                # So that after a kill the note does not ascribe the new judgments to the old judge.
                note.unlink(missing_ok=True)
            self._without_outcomes()
            disk.replace(path, lines())
            about = (judge, signature, state.hexdigest()[:16], sorted(reads), only)
            judged = Judged(*about, tuple(licence))
            disk.replace(note, [judged.to_json() + "\n"])
            self._describe()
        return count

    def write_scores(self, scores: Iterable[Score], add: bool = False) -> None:
        """Replace `scores.json`, a JSON array with one score per line.

        add: keep what is there; a score takes the place of an older one of the same question
        (measure, part of the rows, cell).
        """
        path = self.folder / "scores.json"
        with self._locked():
            there = self.scores() if add and path.exists() else []
            found = {_question(score): score for score in (*there, *scores)} if add else {}
            rows = ",\n".join(score.to_json() for score in found.values() or scores)
            disk.replace(path, [f"[\n{rows}\n]\n"])
            self._describe("scores.json")

    def write_outcomes(self, content: Iterable[bytes]) -> None:
        """Replace `outcomes.parquet`, the table that scores are counted from.

        content: the bytes of the file (`outcomes.counted`). Nothing is written to a folder that can
        only be read.
        """
        with disk.if_writable(), self._locked():
            disk.replace_bytes(self.folder / card.OUTCOMES, content)
            self._describe(card.OUTCOMES)

    def _without_outcomes(self) -> None:
        """Remove tables of outcomes that were made of other judgments."""
        with disk.writing(self.folder):
            for name in (card.OUTCOMES, "outcomes.csv", "outcomes.jsonl"):
                (self.folder / name).unlink(missing_ok=True)

    def content(self) -> str:
        """Return one hash of all that outcomes are made of: the records and the judgments."""
        state = hashlib.sha256()
        names = [*seal.SEALED, seal.NAME]
        judged = sorted(path.name for path in (self.folder / "judgments").glob("*.json*"))
        for name in (*names, *(f"judgments/{one}" for one in judged)):
            with contextlib.suppress(FileNotFoundError), door.reading(self.folder / name) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
                state.update(f"{name}:{found}\n".encode("utf-8", "replace"))
        return state.hexdigest()

    def _describe(self, made: str = "") -> None:
        """Write the README.md that describes the folder, for people and for `datasets`."""
        sealed, chain = seal.in_signature(self.folder), seal.read(self.folder)
        lines = card.text(self.folder, self.spec, sealed, made, chain, self._current())
        disk.replace(self.folder / card.NAME, [lines])

    def _current(self) -> list[Score]:
        """Return the scores that were counted from the records and judgments that are here now."""
        if not (self.folder / "scores.json").exists():
            return []
        of = self.signer()("").partition("|")[2]
        with contextlib.suppress(RunError):
            return [one for one in self.scores() if one.signature.partition("|")[2] == of]
        return []

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._lock is not None:
            yield
            return
        with disk.writing(self.folder):
            held = disk.lock(self.folder)
        try:
            yield
        finally:
            os.close(held)

    # -- reading ---------------------------------------------------------------------------

    @functools.cached_property
    def pack(self) -> packs.Pack | None:
        """Return the pack of the questions: the run's own, or one of prompts/.

        None if the questions are of neither. Raises RunError if the run's own is missing or is not
        the one that was asked from.
        """
        name, path = self.spec.pack.partition("@")[0], self.folder / seal.PACK
        if name in registry.names("packs"):
            return packs.load_pack(name)
        if "@" not in self.spec.pack:
            return None
        hashes = set(self.spec.pack_hashes.values())
        if not path.is_file() or {packs.file_hash(path)} != hashes:
            what = "is not the pack that was asked from" if path.is_file() else "is missing"
            raise RunError(f"{path}: {what}; restore it from a copy")
        return packs.read_own(path, name)

    @property
    def probes(self) -> Mapping[str, packs.Probe]:
        """Return the probes of the pack by name; none without a pack."""
        return self.pack.probes if self.pack else {}

    def statements(self) -> Iterator[Statement]:
        return _read(self.folder / "statements.jsonl", Statement)

    def requests(self) -> Iterator[Request]:
        """Return the requests, in the order of the plan."""
        if self._planned is not None:
            return iter(self._planned)
        return _read(self.folder / "requests.jsonl", Request)

    def pending(self) -> Sequence[Request]:
        """Return the requests without an answer, also failed ones, in the order of the plan."""
        every = self._planned if self._planned is not None else list(self.requests())
        done = Places((name, 0) for name in self.answered())
        if not len(done):
            return every
        left = array("q", (at for at, one in enumerate(every) if done.get(one.id) is None))
        return _Some(every, left)

    def responses(self) -> Iterator[Response]:
        """Return the responses, in the order in which they came."""
        return _read(self.folder / "responses.jsonl", Response)

    def logprobs(self) -> Iterator[LogProb]:
        """Return the log-probabilities, in the order in which they came."""
        return _read(self.folder / "logprobs.jsonl", LogProb)

    def count(self, name: str) -> int:
        """Count the records of a file: `requests`, `responses`, `logprobs` or `failures`."""
        path = self.folder / f"{name}.jsonl"
        return sum(1 for _ in disk.lines(path, appended=True)) if path.exists() else 0

    def answered(self) -> Iterator[str]:
        """Yield the ids of requests with a response, then of those with log-probabilities."""
        for kind in (Response, LogProb):
            yield from (name for name, _ in _ids(self.folder / APPENDED[kind], kind))

    def failures(self) -> Iterator[Failure]:
        """Return all failures, also of requests that have a later response."""
        return _read(self.folder / "failures.jsonl", Failure)

    @property
    def small(self) -> bool:
        """Tell whether the answers are few enough to be kept in memory."""
        paths = [self.folder / APPENDED[kind] for kind in (Response, LogProb)]
        return sum(path.stat().st_size for path in paths if path.exists()) <= KEPT

    def exchanges(self) -> Iterator[tuple[Request, Response | LogProb]]:
        """Yield the answered requests with their answers, in the order of the plan."""
        if any((self.folder / APPENDED[kind]).exists() for kind in (Response, LogProb)):
            yield from ((request, answer) for request, answer in self.asked() if answer)

    def asked(self) -> Iterator[tuple[Request, Response | LogProb | None]]:
        """Yield all requests with their answers, in the order of the plan.

        Only the positions of the answers are kept in memory. If a request has several answers, the
        first one counts.
        """
        kinds: tuple[type[Response | LogProb], ...] = (Response, LogProb)
        paths = [self.folder / APPENDED[kind] for kind in kinds]
        places = Places(
            (name, len(kinds) * offset + number)
            for number, path in enumerate(paths)
            for name, offset in _ids(path, kinds[number])
        )
        with contextlib.ExitStack() as stack:
            opened: dict[int, BinaryIO] = {}
            for request in self.requests():
                if (place := places.get(request.id)) is None:
                    yield request, None
                    continue
                offset, number = divmod(place, len(kinds))
                if number not in opened:
                    opened[number] = stack.enter_context(door.reading(paths[number]))
                answer = _record_at(opened[number], offset, paths[number], kinds[number])
                yield request, answer if answer.request == request.id else None

    def judgments(self, judge: str) -> Iterator[Judgment]:
        """Yield the judgments of a judge, in the order of the plan.

        Raises RunError if this judge has not judged the run.
        """
        path = self.folder / "judgments" / f"{judge}.jsonl"
        if not path.exists():
            raise RunError(
                f"{self.folder}: no judgments of {judge!r}; "
                f"make them with `genprobe judge {self.folder} --judge {judge}`"
            )
        return _read(path, Judgment, judge=judge)

    def judges(self) -> dict[str, str]:
        """Return the judges that have judged the run: name -> signature."""
        return {name: row.signature for name, row in self.judged().items()}

    def judged(self) -> dict[str, Judged]:
        """Return what is noted about each judge that has judged the run, by its name."""
        rows = (
            next(_read(path, Judged), None)
            for path in sorted((self.folder / "judgments").glob("*.json"))
        )
        return {row.judge: row for row in rows if row}

    def counts(self) -> tuple[int, int]:
        """Count the requests, and those that are answered."""
        lines = {
            name: sum(1 for _ in disk.lines(self.folder / name, appended=True))
            for name in ("requests.jsonl", "responses.jsonl", "logprobs.jsonl")
            if (self.folder / name).exists()
        }
        asked = lines.pop("requests.jsonl")
        return asked, sum(lines.values())

    def scores(self) -> list[Score]:
        """Read the scores of the run, and those that `genprobe score --save` added.

        Raises RunError if they are missing or malformed.
        """
        path = self.folder / "scores.json"
        if not path.exists():
            raise RunError(f"{self.folder}: no scores; make them with `genprobe score --save`")
        try:
            return list(read_scores(path))
        except RunError as error:
            raise RunError(f"{path}: {error}; delete it and score again") from None

    def signer(self) -> Callable[[str], str]:
        """Return a function from a metric with its version to the signature of its number.

        Labels by others are used only on request, so they are none of its judges.
        """
        judges = {k: v for k, v in self.judges().items() if not k.startswith(OTHERS)}
        sealed = seal.in_signature(self.folder)
        return lambda metric: signature(self.spec, judges, metric, sealed)

    def seals(self) -> list[Seal]:
        """Return the seals of the run, the first one first; none if it was never sealed."""
        return seal.read(self.folder)

    def seal(self) -> Seal:
        """Seal the run by hand: accept its records as they are now. Returns the last seal."""
        with self._locked():
            made = seal.seal(self.folder, by="hand")
            self._describe()
            return made

    def sign_seal(self, key: Path) -> None:
        """Sign the seals with an SSH key, as `sign.sign`."""
        with self._locked():
            sign.sign(self.folder, key)

    def verify(self) -> list[str]:
        """List the problems of the folder; each is one line that names file, line and id."""
        return verify(self.folder, self.spec, growing=bool(self._files))


class _Some(Sequence[Request]):
    """Some requests of a plan, by their numbers."""

    def __init__(self, every: Sequence[Request], chosen: Sequence[int]) -> None:
        self._every, self._chosen = every, chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def __iter__(self) -> Iterator[Request]:
        wanted = iter(self._chosen)
        at = next(wanted, None)
        for number, request in enumerate(self._every):
            if number == at:
                yield request
                at = next(wanted, None)

    @typing.overload
    def __getitem__(self, at: int) -> Request: ...
    @typing.overload
    def __getitem__(self, at: slice) -> list[Request]: ...
    def __getitem__(self, at: int | slice) -> Request | list[Request]:
        if isinstance(at, slice):
            return [self._every[one] for one in self._chosen[at]]
        return self._every[self._chosen[at]]


def _refuse_other(folder: Path) -> None:
    """Raise RunError unless `folder` is a run, or a run can be created in it.

    Files of an interrupted creation are recognised only if genprobe's lock file is also there, so
    that a user's own `statements.jsonl` is never overwritten.
    """
    with disk.writing(folder):
        if not folder.exists():
            return
        names = {path.name for path in folder.iterdir()}
        begun = _BEGUN | {path.name for path in disk.leftovers(folder)}
    if "run.json" not in names and names and (".lock" not in names or names - begun):
        raise RunError(f"{folder}: is not empty and holds no run; choose a new folder")


def _read_spec(folder: Path) -> Spec:
    path = folder / "run.json"
    try:
        text = door.content(path)
    except FileNotFoundError:
        inside = sum(1 for _ in folder.glob("*/run.json"))
        cure = f", but holds {many(inside, 'run')}; name them: {folder}/*" if inside else ""
        raise RunError(f"{folder}: is not a run folder (no run.json){cure}") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    refuse_newer(text, folder)
    try:
        return Spec.from_json(text)
    except RunError as error:
        raise RunError(f"{path}: {error}; restore the file from a copy") from None


def _compare(path: Path, records: Sequence[Record]) -> None:
    """Raise RunError unless the file has exactly these records."""
    for stored, record in zip_longest(disk.lines(path), records):
        if not stored or not record or stored[2] != record.to_json().encode("ascii") + b"\n":
            number = stored[0] if stored else len(records)
            raise RunError(
                f"{path}:{number}: differs from what this run would write, though the spec is "
                "the same; choose another folder"
            )


def _read(path: Path, kind: type[R], **told: str) -> Iterator[R]:
    return (record for _, record in _read_at(path, kind, **told))


def _read_at(path: Path, kind: type[R], **told: str) -> Iterator[tuple[int, R]]:
    """Yield (byte offset, record). Raises RunError, with file and line, for a malformed record.

    told: what the file says of all its records (`Record.from_json`).
    """
    appended = kind in APPENDED
    if appended and not path.exists():
        return
    for number, offset, line in disk.lines(path, appended=appended):
        yield offset, _parsed(line, kind, path, number, **told)


def _parsed(line: bytes, kind: type[R], path: Path, number: int, **told: str) -> R:
    try:
        return kind.from_json(line, **told)
    except RunError as error:
        cure = "delete the line and start again" if kind in APPENDED else "restore the file"
        raise RunError(f"{path}:{number}: {error}; {cure}") from None


# A line of a Response or LogProb as genprobe writes it, up to the id.
_ID = re.compile(rb'\{"request":"([0-9a-f]{16})",')


def _ids(path: Path, kind: type[Response | LogProb]) -> Iterator[tuple[str, int]]:
    """Yield the request of each answer in a file, and the byte offset of its line."""
    if not path.exists():
        return
    for number, offset, line in disk.lines(path, appended=True):
        found = _ID.match(line)
        yield found[1].decode() if found else _parsed(line, kind, path, number).request, offset


def _record_at(file: BinaryIO, offset: int, path: Path, kind: type[R]) -> R:
    """Read the record that begins at an offset. Raises RunError as `_read_at`."""
    file.seek(offset)
    line = file.readline()
    try:
        return kind.from_json(line)
    except RunError:
        file.seek(0)
        return _parsed(line, kind, path, file.read(offset).count(b"\n") + 1)


def _question(score: Score) -> tuple[str, str, str]:
    """Return what a score answers: its measure, the part of the rows, the cell."""
    rows = "".join(re.findall(r"\+(?:declared|regions:[^|+]*)", score.signature))
    return score.metric, rows, canonical(score.by)


# -- the format page -------------------------------------------------------------------------

_INTRODUCTION = """\
<!-- Generated from the record types: python -m genprobe.runs.run > runs/README.md -->
# A run folder

A run folder holds everything about one run, as text. What models said (`responses.jsonl`,
`logprobs.jsonl`, `failures.jsonl`) is appended and never edited. `judgments/`, `scores.json` and
`outcomes.parquet` are derived from it; you can delete them and make them again without a model.
Texts are JSON lines in ASCII, one record per line, with every other character escaped. A field that
is not named here is an error. `outcomes.parquet` is the table that scores are counted from, in the
order of the plan, without the texts; it is made again when the records or judgments have changed.
`genprobe list columns` says what its columns mean; further ones are those of your data. `genprobe
score RUN --export FILE.csv` (or `.jsonl`) writes it with the texts, for a spreadsheet. genprobe
also writes a `README.md` that describes the folder, so that
`datasets.load_dataset("runs/NAME", "responses", split="train")` can open it (also `requests`,
`statements`, `judgments-yesno`, `scores`, …; every file of JSON with rows).

- **Resume**: the same spec with the same folder continues where the run stopped. Another spec is
  an error that shows the difference. A request with a response is never asked again; a request
  with only a failure is.
- **A pack of one's own** (`genprobe yesno --pack FILE`) is kept word for word as `pack.toml`. Its
  hash stands in `pack_hashes`, and every command reads it from there.
- **Crash**: `run.json` is written last, so a folder that has it has a complete header; without it
  the header is made again. If the last line of a file is incomplete (no newline, or not JSON), it
  is removed at the next start and its request is asked again. Every response is written as it
  comes, and synced to the disk every 0.2 s or so.
- **One writer**: `.lock` is locked while a process writes. The lock ends with the process.
- **Derived files** are first written as `*.tmp` in the same folder and renamed when complete.
  Judgments are in the order of `requests.jsonl`, whatever the order of the responses.
- **Seal**: when a run ends, also by Ctrl-C, `MANIFEST` gets a line with the hashes of `run.json`,
  `statements.jsonl`, `requests.jsonl` and the files that are appended. A resumed run adds a line
  that names the one before. After a kill the old seals are there, and the same command seals what
  was added since. `sha256sum` gives the same hashes; `ssh-keygen -Y verify -n genprobe` checks
  `MANIFEST.sig`, if there is one (`genprobe verify --sign`). `README.md` names the seal, the hash
  of `outcomes.parquet`, and at its end its own.
- `genprobe verify RUN` checks all of this and names what is wrong.
"""

_FILES: dict[str, str] = {
    "run.json": "The spec. Written once.",
    "statements.jsonl": "Written once.",
    "requests.jsonl": "The plan, in its order. Written once.",
    "responses.jsonl": "Appended, in the order in which they came.",
    "logprobs.jsonl": "Appended; empty unless the run was asked for probabilities.",
    "failures.jsonl": "Appended; a history, which can contain a request several times.",
    "judgments/<judge>.jsonl": "Derived. In the order of `requests.jsonl`.",
    "judgments/<judge>.json": "Derived, together with the file above.",
    "scores.json": "Derived. An array, one score per line; `genprobe score --save` adds to it.",
    seal.NAME: "One seal per line, the last one counts. Replaced as a whole when a run ends.",
}


def format_page() -> str:
    """Write `runs/README.md`, the format of the run folder, from the record types."""
    kinds: dict[str, type[Record]] = {"run.json": Spec, **RECORDS, seal.NAME: Seal}
    parts = [_INTRODUCTION]
    for name, kind in kinds.items():
        assert dataclasses.is_dataclass(kind)
        doc = " ".join((kind.__doc__ or "").split())
        parts.append(f"\n## `{name}`: {kind.__name__}\n\n{doc}\n\n*{_FILES[name]}*\n")
        parts.append("\n| field | type | what it is |\n|---|---|---|\n")
        for f in dataclasses.fields(kind):
            hint = _type_name(typing.get_type_hints(kind)[f.name])
            parts.append(f"| `{f.name}` | {hint} | {f.metadata['doc']} |\n")
    return "".join(parts)


_JSON_NAMES = {str: "text", int: "integer", float: "number", type(None): "null"}


def _type_name(hint: typing.Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _JSON_NAMES:
        return _JSON_NAMES[hint]
    if origin in (tuple, list):
        one = _type_name(inner[0])
        return f"list of {one.replace('object', 'objects') if 'object' in one else one + 's'}"
    if origin is dict:
        value = inner[1]
        return "object" if value not in _JSON_NAMES else f"object of {_JSON_NAMES[value]}s"
    return " or ".join(_type_name(part) for part in inner)


if __name__ == "__main__":
    import sys

    sys.stdout.write(format_page())
