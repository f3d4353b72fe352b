"""Verify a run folder. Every problem is one line that names file, line and id."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from genprobe.errors import RunError
from genprobe.files import disk, door
from genprobe.limits import parsed
from genprobe.records import (
    DECODES,
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
    derive_seed,
    request_id,
)
from genprobe.resources import packs
from genprobe.runs import card, places, seal
from genprobe.runs.spec import LOG, Spec, statements_hash
from genprobe.text import many

if TYPE_CHECKING:
    import numpy as np

R = TypeVar("R", bound=Record)

SHOWN = 20  # most problems of one kind that are listed; the rest are counted

# Marks of a request, bits of two bytes. With its id (`places`) and its statement, a request needs
# some 50 bytes of memory at the peak.
_PLANNED, _ANSWERED, _FAILED, _JUDGED = 1, 2, 4, 8
_DECODES = {name: 16 << at for at, name in enumerate(DECODES)}
_SEAL = re.compile(r"\|seal:([0-9a-f]{16})\b")
_ROUNDING = 1e-3  # how far above 0 a log-probability may be


def verify(folder: Path, spec: Spec, growing: bool = False) -> list[str]:
    """List the problems of a run folder; none if it is whole, complete and as it was sealed.

    growing: this process is writing the run.
    """
    check = _Check(folder, spec)
    check.temporary_files()
    check.pack()
    check.statements()
    check.requests()
    check.planned()
    check.answers("responses.jsonl", Response, _ANSWERED)
    check.answers("logprobs.jsonl", LogProb, _ANSWERED)
    check.answers("failures.jsonl", Failure, _FAILED)
    check.complete()
    for path in sorted((folder / "judgments").glob("*.jsonl")):
        check.judgments(path.stem)
    check.seals(growing)
    check.scores()
    return check.report()


class _Check:
    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder, self.spec = folder, spec
        self._lines: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._seals: set[str] | None = None  # names; None if they cannot be read
        self._texts: dict[int, int] = {}  # line of a request -> hash of the texts scored for it

    def problem(self, kind: str, where: str, what: str) -> None:
        self._kinds[kind] += 1
        if self._kinds[kind] <= SHOWN:
            self._lines.append(f"{where}: {what}")

    def report(self) -> list[str]:
        more = [
            f"{kind}: {count - SHOWN} more like this"
            for kind, count in self._kinds.items()
            if count > SHOWN
        ]
        return self._lines + more

    def read(self, name: str, kind: type[R], **told: str) -> Iterator[tuple[str, R]]:
        """Yield (`file:line`, record) for valid lines of a file; note the others as problems.

        told: what the file says of all its records (`Record.from_json`).
        """
        appended = kind in (Response, LogProb, Failure)
        path, end = self.folder / name, 0
        try:
            for number, offset, line in disk.lines(path, appended=appended):
                where, end = f"{name}:{number}", offset + len(line)
                if not line.endswith(b"\n"):
                    self.problem("torn", where, "incomplete line (no newline at its end)")
                try:
                    record = kind.from_json(line, **told)
                except RunError as error:
                    self.problem("malformed", where, str(error))
                    continue
                yield where, record
            if path.stat().st_size > end:
                self.problem(
                    "torn",
                    name,
                    f"incomplete line at byte {end}; the next start removes it and asks again",
                )
        except (RunError, OSError):
            if not appended or path.exists():
                self.problem("unreadable", name, "missing or not readable")

    def temporary_files(self) -> None:
        for path in disk.leftovers(self.folder, self.folder / "judgments"):
            name = path.relative_to(self.folder).as_posix()
            self.problem("temporary", name, "left over from an interrupted write; delete it")

    def pack(self) -> None:
        """Check the pack of the run, if it is the user's own, against the spec."""
        path = self.folder / seal.PACK
        if path.is_file() and {packs.file_hash(path)} != set(self.spec.pack_hashes.values()):
            self.problem("hash", seal.PACK, "its hash is not in run.json's pack_hashes")

    def statements(self) -> None:
        """Check the statements against the spec; keep the number and the kind of each.

        A kind is a language and a number of options.
        """
        ids, kinds, kind_of = array("Q"), dict[tuple[str, int], int](), array("i")

        def passing() -> Iterator[Statement]:
            for _, statement in self.read("statements.jsonl", Statement):
                options = statement.extra.get("options")
                several = len(options) if isinstance(options, list | dict) else 0
                ids.append(places.number(_key(statement.id, statement.lang)))
                kind_of.append(kinds.setdefault((statement.lang, several), len(kinds)))
                yield statement

        found = statements_hash(passing())
        if found != self.spec.statements:
            self.problem(
                "hash", "statements.jsonl", f"hash {found} is not run.json's {self.spec.statements}"
            )
        self._statements = places.Places(zip(ids, range(len(ids)), strict=True))
        self._kinds_of, self._kind = list(kinds), kind_of

    def requests(self) -> None:
        """Check the requests, as far as they can be derived anew; keep the line of each."""
        import numpy as np

        parts: dict[tuple[str, str], int] = {}  # probe and decode
        about, part_of, marks = array("i"), array("i"), array("H", [0])

        def passing() -> Iterator[tuple[str, int]]:
            for where, r in self.read("requests.jsonl", Request):
                self._check(where, r)
                line = int(where.rpartition(":")[2])
                marks.frombytes(bytes(2 * (line - len(marks))))  # of lines that are no requests
                marks.append(_PLANNED | _DECODES.get(r.decode, 0))
                at = self._statements.get(_key(r.statement, r.lang))
                if at is None:
                    what = f"statement {r.statement} ({r.lang}) is not there"
                    self.problem("statement", where, what)
                about.append(-1 if at is None else at)
                part_of.append(parts.setdefault((r.probe, r.decode), len(parts)))
                if r.decode == "score":
                    texts = ((a, text) for a, some in r.options.items() for text in some)
                    self._texts[line] = _hash(texts)
                yield r.id, line

        self._lines_of = places.Places(passing())
        self._marks = np.array(marks)
        twice = self._lines_of.again
        for line, request in self._requests(twice):
            self.problem("twice", f"requests.jsonl:{line}", f"request {request} is there twice")
        once = np.ones(len(about), bool)
        once[np.searchsorted(np.flatnonzero(self._marks), twice)] = False
        self._marks[twice] = 0
        counted = once & (np.array(about) >= 0)
        size = len(self._kind), len(parts)
        cell = np.array(about)[counted] * np.int64(len(parts)) + np.array(part_of)[counted]
        self._asked = np.bincount(cell, minlength=size[0] * size[1]).reshape(size)
        self._parts = list(parts)

    def _check(self, where: str, r: Request) -> None:
        made = request_id(
            *(r.statement, r.lang, r.pack, r.probe, r.messages, r.sample, r.decode, r.options)
        )
        if made != r.id:
            self.problem("id", where, f"id {r.id} is not the hash of its content ({made})")
        if r.seed != derive_seed(self.spec.seed, r.id, r.sample):
            self.problem("seed", where, f"seed of {r.id} does not derive from run.json's")
        if r.pack != self.spec.pack:
            self.problem("pack", where, f"pack {r.pack} is not run.json's {self.spec.pack}")
        if r.decode not in self.spec.decode and self.spec.decode != ("recorded",):
            self.problem("decode", where, f"decode {r.decode!r} is not run.json's")

    def _requests(self, lines: Collection[int]) -> Iterator[tuple[int, str]]:
        """Yield some lines of the plan, and the ids of their requests."""
        wanted = set(lines)
        for line, _, text in disk.lines(self.folder / "requests.jsonl") if wanted else ():
            if line in wanted:
                yield line, Request.from_json(text).id

    def planned(self) -> None:
        """Count again what run.json plans: statements × probes × wordings × samples.

        A run of replies that others asked for (`LOG`) holds what they asked, and plans nothing.
        """
        import numpy as np

        if self.spec.engine == LOG:
            return
        asked, kind_of = self._asked, np.array(self._kind)
        kind_of[self._statements.again] = -1
        usual: dict[tuple[str, int, str, str], int] = {}  # most requests about a statement
        for number_of, kind in enumerate(self._kinds_of):
            most = asked[kind_of == number_of].max(0, initial=0)
            usual |= {(*kind, *p): int(n) for p, n in zip(self._parts, most, strict=True) if n}
        left = np.zeros(len(kind_of), int)
        for number_of, kind in enumerate(self._kinds_of):
            here = kind_of == number_of
            for part, n in self._wanted(*kind, usual).items():
                found = asked[here, self._parts.index(part)] if part in self._parts else 0
                left[here] += np.maximum(0, n - found)
        if left.any():
            # Its own problems are told: read without adding them a second time.
            every = enumerate(_Check(self.folder, self.spec).read("statements.jsonl", Statement))
            first = min(f"{one.id} ({one.lang})" for at, (_, one) in every if left[at])
            self.problem(
                "planned",
                "requests.jsonl",
                f"{many(int(left.sum()), 'request')} about "
                f"{many(int((left > 0).sum()), 'statement')} of statements.jsonl, which run.json "
                f"plans, are not there; first {first}",
            )

    def _wanted(
        self, lang: str, options: int, usual: Mapping[tuple[str, int, str, str], int]
    ) -> dict[tuple[str, str], int]:
        """Return (probe, decode) -> number of requests that a statement must have at least.

        usual: the most that a statement of the language has, with this number of options. Where a
        number of wordings was drawn, statements can differ, and only the samples are counted.
        """
        spec = self.spec
        parts = {(probe, decode) for _, _, probe, decode in usual}
        if spec.decode != ("score",):
            decodes = (
                {decode for _, decode in parts} if spec.decode == ("recorded",) else spec.decode
            )
            parts = {(probe, decode) for probe in spec.probes for decode in decodes or {"free"}}
        drawn = spec.wordings.isdecimal()
        least = {part: 1 if part[1] == "logprob" else spec.samples for part in parts}
        if drawn:
            return least
        return {part: max(n, usual.get((lang, options, *part), 0)) for part, n in least.items()}

    def answers(self, name: str, kind: type[Response | LogProb | Failure], mark: int) -> None:
        for where, record in self.read(name, kind):
            line = self._lines_of.get(record.request)
            if line is None:
                self.problem("unknown", where, f"no request {record.request}")
                continue
            if kind is not Failure and self._marks[line] & mark:
                self.problem("twice", where, f"second response to request {record.request}")
            if isinstance(record, LogProb) and (why := self._wrong(record, line)):
                what = f"request {record.request}: {why}; delete the line and start again"
                self.problem("values", where, what)
            self._marks[line] |= mark

    def _wrong(self, record: LogProb, line: int) -> str:
        """Say what is wrong with the log-probabilities of a record; "" if nothing is."""
        try:
            found = _hash((part["answer"], part["text"]) for part in record.continuations)
            for part in record.continuations:
                tokens, values = len(part["tokens"]), part["logprobs"]
                if tokens != len(values):
                    return f"{tokens} tokens and {len(values)} log-probabilities"
                for value in values:
                    if not value <= _ROUNDING:  # also true for NaN
                        return f"{value} is no log-probability"
        except (KeyError, TypeError) as error:
            return f"continuations are not as they were written ({type(error).__name__}: {error})"
        if found != self._texts.get(line, found):
            return "the texts are not those of the request"
        return ""

    def complete(self) -> None:
        # All in one line, because an interrupted run is incomplete, not damaged.
        planned = self._marks & _PLANNED != 0
        first, count = self._lacking(planned, _ANSWERED | _FAILED)
        if count:
            texts = {"logprob", "score"}.issuperset(self.spec.decode)
            self.problem(
                "incomplete",
                "logprobs.jsonl" if texts else "responses.jsonl",
                f"incomplete: {count} of {planned.sum()} requests have neither response nor "
                f"failure, first {first}; the command of the run asks them",
            )

    def judgments(self, judge: str) -> None:
        name = f"judgments/{judge}.jsonl"
        self._marks &= ~self._marks.dtype.type(_JUDGED)
        for where, judgment in self.read(name, Judgment, judge=judge):
            line = self._lines_of.get(judgment.request)
            if judgment.judge != judge:
                self.problem("judge", where, f"is of the judge {judgment.judge!r}")
            if line is None or not self._marks[line] & _ANSWERED:
                self.problem("unknown", where, f"no response to request {judgment.request}")
                continue
            if self._marks[line] & _JUDGED:
                self.problem("twice", where, f"second judgment on request {judgment.request}")
            self._marks[line] |= _JUDGED
        read, only = self._judged(judge, name)
        if only:  # the judge was given only a part of the replies
            return
        mine = (self._marks & read != 0) & (self._marks & _ANSWERED != 0)
        first, count = self._lacking(mine, _JUDGED)
        if count:
            self.problem(
                "unjudged",
                name,
                f"{many(count, 'response')} without judgment, first {first}; judge again",
            )

    def _lacking(self, some: np.ndarray, mark: int) -> tuple[str, int]:
        """Return (first id, number) of some requests without `mark`."""
        lacking = some & (self._marks & mark == 0)
        if not lacking.any():
            return "", 0
        [(_, first)] = self._requests([int(lacking.argmax())])
        return first, int(lacking.sum())

    def _judged(self, judge: str, name: str) -> tuple[int, str]:
        """Check the note about a file of judgments.

        Returns the marks of the kinds of requests (`decode`) that the judge reads, and the kind of
        replies that it was given ("" if all).
        """
        note, read, only = f"judgments/{judge}.json", 0, ""
        for where, judged in self.read(note, Judged):
            read, only = sum(_DECODES.get(d, 0) for d in judged.reads), judged.only
            with door.reading(self.folder / name) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            if judged.hash != found:
                self.problem("hash", where, f"{name} was changed after it was written; judge again")
        return read, only

    def seals(self, growing: bool) -> None:
        """Check that the records are those that were sealed, and what the scores were made of."""
        try:
            chain = seal.read(self.folder)
        except RunError as error:
            where, _, what = str(error).removeprefix(f"{self.folder}{os.sep}").partition(": ")
            self.problem("seal", where, what)
            return
        for where, what in seal.problems(self.folder, chain, growing):
            self.problem("seal", where, what)
        self._seals = {one.short for one in chain}
        for where, what in () if growing else card.problems(self.folder, self._seals):
            self.problem("page", where, what)

    def scores(self) -> None:
        path = self.folder / "scores.json"
        if not path.exists():
            return
        made = set[str]()
        try:
            for score in read_scores(path):
                made |= {found[1] for found in _SEAL.finditer(score.signature)}
        except RunError as error:
            self.problem("malformed", "scores.json", f"{error}; {_AGAIN}")
            return
        for name in () if self._seals is None else sorted(made - self._seals):
            what = f"made of records with the seal {name}, which is not this run's; {_AGAIN}"
            self.problem("seal", "scores.json", what)


_AGAIN = "delete it and score again with --save"


def read_scores(path: Path) -> Iterator[Score]:
    """Yield the scores of `scores.json`: an array with one score per line, or in one line.

    Raises RunError if the file is not such an array.
    """
    for number, _, line in disk.lines(path):
        text = line.strip(b", \r\n")
        if text in (b"[", b"]", b""):
            continue
        try:
            rows = parsed(text)
            yield from map(Score.from_dict, rows if isinstance(rows, list) else [rows])
        except (ValueError, TypeError, AttributeError, RunError) as error:
            raise RunError(f"line {number}: {error}") from None


def _hash(texts: Iterable[tuple[str, str]]) -> int:
    """Hash the (answer, text) pairs of a request, in order, to 32 bits."""
    return zlib.crc32(canonical([[answer, text] for answer, text in texts]).encode())


def _key(statement: str, lang: str) -> str:
    return f"{lang} {statement}"
