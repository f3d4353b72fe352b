"""Verify a run folder. Every problem is one line that names file, line and id."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from genprobe.errors import RunError
from genprobe.files import disk, door
from genprobe.limits import parsed
from genprobe.records import (
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
from genprobe.runs import card, seal
from genprobe.runs.spec import Spec, statements_hash
from genprobe.text import many

R = TypeVar("R", bound=Record)

SHOWN = 20  # most problems of one kind that are listed; the rest are counted

# Marks of a request, bits of one small number, so that a million requests fit in 250 MB.
_ANSWERED, _FAILED = 1, 2
_DECODES = {"free": 4, "choice": 8, "logprob": 16}
_FIRST_JUDGE = 32
_SEAL = re.compile(r"\|seal:([0-9a-f]{16})\b")
_ROUNDING = 1e-3  # how far above 0 a log-probability may be


def verify(folder: Path, spec: Spec, growing: bool = False) -> list[str]:
    """List the problems of a run folder; none if it is whole, complete and as it was sealed.

    growing: this process is writing the run.
    """
    check = _Check(folder, spec)
    check.temporary_files()
    check.pack()
    known = check.statements()
    marks = check.requests(known)
    check.planned(known)
    check.answers("responses.jsonl", Response, marks, _ANSWERED)
    check.answers("logprobs.jsonl", LogProb, marks, _ANSWERED)
    check.answers("failures.jsonl", Failure, marks, _FAILED)
    check.complete(marks)
    for number, path in enumerate(sorted((folder / "judgments").glob("*.jsonl"))):
        check.judgments(path.stem, marks, _FIRST_JUDGE << number)
    check.seals(growing)
    check.scores()
    return check.report()


class _Check:
    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder, self.spec = folder, spec
        self._lines: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._seals: set[str] | None = None  # names; None if they cannot be read
        # (statement, language) -> (probe, decode) -> number of requests
        self._asked: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
        self._texts: dict[str, int] = {}  # request -> hash of the texts that are scored for it

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

    def read(self, name: str, kind: type[R]) -> Iterator[tuple[str, R]]:
        """Yield (`file:line`, record) for valid lines of a file; note the others as problems."""
        appended = kind in (Response, LogProb, Failure)
        path, end = self.folder / name, 0
        try:
            for number, offset, line in disk.lines(path, appended=appended):
                where, end = f"{name}:{number}", offset + len(line)
                if not line.endswith(b"\n"):
                    self.problem("torn", where, "incomplete line (no newline at its end)")
                try:
                    record = kind.from_json(line)
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

    def statements(self) -> dict[tuple[str, str], int]:
        """Check the statements against the spec; return (id, language) -> number of options."""
        known: dict[tuple[str, str], int] = {}

        def passing() -> Iterator[Statement]:
            for _, statement in self.read("statements.jsonl", Statement):
                options = statement.extra.get("options")
                several = len(options) if isinstance(options, list | dict) else 0
                known[statement.id, statement.lang] = several
                yield statement

        found = statements_hash(passing())
        if found != self.spec.statements:
            self.problem(
                "hash", "statements.jsonl", f"hash {found} is not run.json's {self.spec.statements}"
            )
        return known

    def requests(self, known: Collection[tuple[str, str]]) -> dict[str, int]:
        """Check the requests, as far as they can be derived anew; return request id -> 0."""
        marks: dict[str, int] = {}
        for where, r in self.read("requests.jsonl", Request):
            asked = r.messages, r.sample, r.decode, r.options
            made = request_id(r.statement, r.lang, r.pack, r.probe, *asked)
            if made != r.id:
                self.problem("id", where, f"id {r.id} is not the hash of its content ({made})")
            if r.seed != derive_seed(self.spec.seed, r.id, r.sample):
                self.problem("seed", where, f"seed of {r.id} does not derive from run.json's")
            if (r.statement, r.lang) not in known:
                self.problem("statement", where, f"statement {r.statement} ({r.lang}) is not there")
            if r.pack != self.spec.pack:
                self.problem("pack", where, f"pack {r.pack} is not run.json's {self.spec.pack}")
            if r.decode not in self.spec.decode and self.spec.decode != ("recorded",):
                self.problem("decode", where, f"decode {r.decode!r} is not run.json's")
            if r.id in marks:
                self.problem("twice", where, f"request {r.id} is there twice")
            else:
                self._asked[r.statement, r.lang][r.probe, r.decode] += 1
            marks[r.id] = _DECODES.get(r.decode, 0)
            if r.decode == "score":
                self._texts[r.id] = _hash(
                    (a, text) for a, some in r.options.items() for text in some
                )
        return marks

    def planned(self, known: Mapping[tuple[str, str], int]) -> None:
        """Count again what run.json plans: statements × probes × wordings × samples."""
        asked = self._asked
        usual: dict[tuple[str, int, str, str], int] = {}  # most requests about a statement
        for (name, lang), options in known.items():
            for (probe, decode), count in asked.get((name, lang), {}).items():
                key = (lang, options, probe, decode)
                usual[key] = max(count, usual.get(key, 0))
        lacking = {}
        for (name, lang), options in known.items():
            wanted = self._wanted(lang, options, usual)
            found = asked.get((name, lang), Counter())
            if left := sum(max(0, n - found[part]) for part, n in wanted.items()):
                lacking[f"{name} ({lang})"] = left
        if lacking:
            self.problem(
                "planned",
                "requests.jsonl",
                f"{many(sum(lacking.values()), 'request')} about {many(len(lacking), 'statement')} "
                f"of statements.jsonl, which run.json plans, are not there; first {min(lacking)}",
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

    def answers(
        self, name: str, kind: type[Response | LogProb | Failure], marks: dict[str, int], mark: int
    ) -> None:
        for where, record in self.read(name, kind):
            known = marks.get(record.request)
            if known is None:
                self.problem("unknown", where, f"no request {record.request}")
                continue
            if kind is not Failure and known & mark:
                self.problem("twice", where, f"second response to request {record.request}")
            if isinstance(record, LogProb) and (why := self._wrong(record)):
                what = f"request {record.request}: {why}; delete the line and start again"
                self.problem("values", where, what)
            marks[record.request] = known | mark

    def _wrong(self, record: LogProb) -> str:
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
        if found != self._texts.get(record.request, found):
            return "the texts are not those of the request"
        return ""

    def complete(self, marks: dict[str, int]) -> None:
        # All in one line, because an interrupted run is incomplete, not damaged.
        first, count = _lacking(marks, 0)
        if count:
            texts = {"logprob", "score"}.issuperset(self.spec.decode)
            self.problem(
                "incomplete",
                "logprobs.jsonl" if texts else "responses.jsonl",
                f"incomplete: {count} of {len(marks)} requests have neither response nor failure, "
                f"first {first}; the command of the run asks them",
            )

    def judgments(self, judge: str, marks: dict[str, int], mark: int) -> None:
        name = f"judgments/{judge}.jsonl"
        for where, judgment in self.read(name, Judgment):
            known = marks.get(judgment.request, 0)
            if judgment.judge != judge:
                self.problem("judge", where, f"is of the judge {judgment.judge!r}")
            if not known & _ANSWERED:
                self.problem("unknown", where, f"no response to request {judgment.request}")
                continue
            if known & mark:
                self.problem("twice", where, f"second judgment on request {judgment.request}")
            marks[judgment.request] = known | mark
        read, only = self._judged(judge, name)
        if only:  # the judge was given only a part of the replies
            return
        mine = {request: known for request, known in marks.items() if known & read}
        first, count = _lacking(mine, _ANSWERED, mark)
        if count:
            self.problem(
                "unjudged",
                name,
                f"{many(count, 'response')} without judgment, first {first}; judge again",
            )

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
            self.problem("malformed", "scores.json", f"{error}; score again")
            return
        for name in () if self._seals is None else sorted(made - self._seals):
            what = f"made of records with the seal {name}, which is not this run's; score again"
            self.problem("seal", "scores.json", what)


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


def _lacking(marks: dict[str, int], has: int, mark: int = _ANSWERED | _FAILED) -> tuple[str, int]:
    """Return (first id, number) of the requests with `has` but without `mark`."""
    first, count = "", 0
    for request, known in marks.items():
        if known & has == has and not known & mark:
            first, count = first or request, count + 1
    return first, count
