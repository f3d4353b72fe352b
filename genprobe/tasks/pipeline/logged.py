"""Make a run of replies that others asked for: of exactly what a log or a table holds."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
import tempfile
import typing
from array import array
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from genprobe import logs
from genprobe._version import __version__
from genprobe.datasets import statements
from genprobe.errors import Caution, InputError
from genprobe.files import disk
from genprobe.files.cells import Notes, Problems, cell_text
from genprobe.files.rows import Table
from genprobe.limits import exceeded, limit
from genprobe.outcomes import columns
from genprobe.outcomes.external import truth
from genprobe.outcomes.table import ANSWERS
from genprobe.records import (
    FACETS,
    JSON,
    MOST,
    Failure,
    Judgment,
    Request,
    Response,
    Statement,
    canonical,
    digest,
)
from genprobe.resources import packs, panel, registry
from genprobe.runs.places import Places, number
from genprobe.runs.run import Run
from genprobe.runs.spec import LOG, Spec, statements_hash, versions
from genprobe.tasks.pipeline import Note
from genprobe.tasks.pipeline.gold import THEIRS, Gold
from genprobe.tasks.pipeline.judge import opened, tell_unknown
from genprobe.text import many, whole_number

# What a row says how it is read -> the question that is read so, in the pack of yes/no questions.
_READ_AS = {"stance": "agreement", "stereotype": "recognition"}
# A pack for questions of one's own, which consist of nothing but the question.
_ASKED = """\
title = "Questions as they were asked"
version = "1"

[probes.question]
reads = "question"
"""
_OWN = "asked"
_SETTINGS = ("temperature", "top_p", "max_tokens")


class _Reply(NamedTuple):
    """A row with its statement and question.

    pack: the name of its pack; worded: whether its prompt has the words of that pack.
    """

    found: logs.Found
    pack: str
    probe: str
    statement: Statement
    messages: list[dict[str, str]]
    facets: Mapping[str, str]
    worded: bool


class _Part(Sequence[Request]):
    """The replies of one model to one pack, as requests; of each, memory holds a few numbers.

    held: the file that holds the rest, a line of JSON each.
    """

    def __init__(self, held: IO[bytes]) -> None:
        self._held = held
        self._at = array("q")  # where each stands in the file
        self._asked = array("Q")  # a hash of what was asked
        self._way = array("q")  # number of its facets in `ways`
        self._number = array("q")  # number of its own sample number in `_numbers`
        self._numbers: dict[int | None, int] = {}
        self._places: dict[tuple[str, ...], int] = {}  # of statements
        self.ways: dict[tuple[str, ...], int] = {}
        self.probes: dict[str, None] = {}
        self.worded: set[str] = set()  # languages
        self.files: set[Table] = set()
        self.readers: set[str] = set()
        self.judged = self.labelled = False
        self._settings: dict[str, set[Any]] = {name: set() for name in _SETTINGS}
        self.about: list[Statement] = []
        self.pack = ""

    def add(self, reply: _Reply) -> None:
        """Add a row. Raises InputError for a label that is none."""
        row, place = reply.found.row, _place(reply.statement)
        answer, given, theirs = _answer(row), _given(row, reply.found), _label(row)
        at = self._places.setdefault(place, len(self._places))
        line = [at, reply.probe, reply.messages, reply.facets, answer, given, theirs]
        with disk.writing(Path(tempfile.gettempdir())):
            self._at.append(self._held.seek(0, os.SEEK_END))
            self._held.write(json.dumps(line).encode("ascii") + b"\n")
        # Not by facets alone: requests with the same words have the same id.
        self._asked.append(number(canonical([*place, reply.probe, reply.messages])))
        way = tuple(reply.facets[name] for name in FACETS)
        self._way.append(self.ways.setdefault(way, len(self.ways)))
        told = whole_number(cell_text(row.get("sample")))
        self._number.append(self._numbers.setdefault(told, len(self._numbers)))
        self.probes[reply.probe] = None
        self.worded |= {reply.statement.lang} if reply.worded else set()
        self.files.add(reply.found.path)
        self.readers |= {cell_text(row.get("reader"))} - {""}
        self.judged |= given is not None
        self.labelled |= theirs is not None
        for name, values in self._settings.items():
            value = row.get(name)
            if len(values) < 2:
                values.add(value if isinstance(value, Hashable) else cell_text(value))

    def settle(self, made: _Statements) -> None:
        """Take the statements as all replies have them, and number replies and ways of asking."""
        self.about = [made.settled(made.known[place]) for place in self._places]
        self.samples = self._sampled()
        values = {name: {way[at] for way in self.ways} for at, name in enumerate(FACETS)}
        worded = bool(values["wording"] - {"", panel.PUBLISHED})
        varies = {
            "wording": worded,
            "order": worded and values["order"] != {""},
            "persona": bool(values["persona"] - {"", panel.NOBODY}),
            "instruction": len(values["instruction"]) > 1,
        }
        # In what the questions differ (`records.FACETS`), with the values.
        self.vary = {name: values[name] for name in FACETS if varies[name]}

    def _sampled(self) -> array[int]:
        """Return the number of each reply among those to its question.

        It is that of the column `sample`, so that a reply which is not there moves no other, if the
        column numbers replies to a question: it has as many numbers as the most replies to one, and
        none twice there. Else it is the place among the rows.
        """
        _, asked, count = np.unique(self._asked, return_inverse=True, return_counts=True)
        if None not in self._numbers and len(self._numbers) == count.max():
            each = asked * len(self._numbers) + np.frombuffer(self._number, np.int64)
            if len(np.unique(each)) == len(each):
                ordered = sorted(n for n in self._numbers if n is not None)
                rank = {self._numbers[n]: place for place, n in enumerate(ordered)}
                return array("q", (rank[n] for n in self._number))
        done = [0] * len(count)
        found = array("q")
        for question in asked.tolist():
            found.append(done[question])
            done[question] += 1
        return found

    def most(self) -> int:
        """Return how many replies a question has at most, in one wording and persona."""
        if not self.vary:
            return 1 + max(self.samples)
        kept = [tuple(way[FACETS.index(name)] for name in self.vary) for way in self.ways]
        of = {way: at for at, way in enumerate(dict.fromkeys(kept))}
        ways = np.array([of[way] for way in kept])[np.frombuffer(self._way, np.int64)]
        _, asked = np.unique(self._asked, return_inverse=True)
        return int(np.unique(asked * len(of) + ways, return_counts=True)[1].max())

    def single(self, name: str) -> Any:
        """Return a setting that all rows share, as a number; None if not, or if it is unknown."""
        values = self._settings[name]
        (value,) = values if len(values) == 1 else (None,)
        try:
            found = (int if name == "max_tokens" else float)(cell_text(value))
        except (ValueError, OverflowError):
            return None
        return found if abs(found) <= MOST else None

    def __len__(self) -> int:
        return len(self._at)

    @typing.overload
    def __getitem__(self, at: int) -> Request: ...
    @typing.overload
    def __getitem__(self, at: slice) -> list[Request]: ...
    def __getitem__(self, at: int | slice) -> Request | list[Request]:
        if isinstance(at, slice):
            return [self.reply(one)[0] for one in range(len(self))[at]]
        return self.reply(at)[0]

    def replies(self) -> Iterator[tuple[Request, Any, Any, Any]]:
        """Yield each request with its answer, and what a judge and another reader said of it."""
        return map(self.reply, range(len(self)))

    def reply(self, at: int) -> tuple[Request, Any, Any, Any]:
        self._held.seek(self._at[at])
        place, probe, messages, facets, *rest = json.loads(self._held.readline())
        about = self.about[place]
        request = Request.asked(
            *(about.id, about.lang, self.pack, probe, messages),
            sample=self.samples[at],
            facets={name: facets[name] for name in self.vary if facets[name]},
        )
        return request, *rest


def keep(log: logs.Log, folder: Path, note: Note) -> list[Run]:
    """Write the replies of a log to run folders, and return the runs, closed and not yet judged.

    folder: of the run; if the log has replies of several models or packs, the folder of their
    folders. A row without a reply is a failure; what asks a question that nobody knows is left out,
    and noted. Labels of the log's own reader are judgments of `theirs`. Raises InputError with all
    rows that cannot be used.
    """
    with tempfile.TemporaryFile() as held:
        parts = _read(log, held, note)
        if len(parts) > 1:
            note(Caution(f"{folder}: {many(len(parts), 'run')}, one of each model: {folder}/*"))
        named = {key: _name(key, list(parts)) for key in parts}
        return [
            _written(log, folder / named[key] if len(parts) > 1 else folder, key, part)
            for key, part in parts.items()
        ]


def _read(log: logs.Log, held: IO[bytes], note: Note) -> dict[tuple[str, str], _Part]:
    """Return the replies of each pack and model."""
    if log.told:
        note(log.told)
    problems = Problems(log.name)
    made = _Statements(named=not log.harness)
    parts: dict[tuple[str, str], _Part] = {}
    for count, found in enumerate(opened(log, problems, note), 1):
        if count > limit("rows"):
            raise exceeded(log.name, "rows")
        if found.unknown and not found.row.get("reads"):
            continue
        with problems.at(found.where):
            reply = made.reply(found)
            model = cell_text(found.row.get("model")) or Path(str(found.path)).stem
            parts.setdefault((reply.pack, model), _Part(held)).add(reply)
    problems.tell()
    tell_unknown(log, bool(parts), note)
    if made.roles:
        names = ", ".join(map(repr, sorted(made.roles)[:5]))
        roles = ", ".join(statements.ROLES)
        note(Caution(f"{log.name}: role {names} counts as original; known: {roles}"))
    if made.varying:
        names = ", ".join(sorted(made.varying))
        note(
            Caution(
                f"{log.name}: {names}: differ between replies to one statement, so the run has "
                "them not; `-o FILE.jsonl` makes a table, which can be split by them"
            )
        )
    for part in parts.values():
        part.settle(made)
    return parts


def _name(key: tuple[str, str], others: Sequence[tuple[str, str]]) -> str:
    """Name the folder of a run: by its model, and by its pack if there are several."""
    pack, model = key
    packed = f"{pack}-" if len({name for name, _ in others}) > 1 else ""
    plain = re.sub(r"[^\w.-]+", "-", model)[:60].strip(".") or "model"
    same = [other for _, other in others if re.sub(r"[^\w.-]+", "-", other)[:60] == plain]
    return packed + plain + (f"-{digest(model, 6)}" if len(set(same)) > 1 else "")


class _Statements:
    """Makes the statements of rows; the same sentence is one statement, built-in ones are known.

    named: the column `statement` names the statement; in a log it may be the name of a task.
    """

    def __init__(self, named: bool) -> None:
        self.named = named
        # id, language -> one for each role and pair
        self.made: dict[tuple[str, str], list[Statement]] = {}
        self.types: dict[tuple[str, ...], set[str]] = {}  # of bias, by id, language, role, pair
        self.roles: set[str] = set()  # that are not known
        self.varying: set[str] = set()  # columns that differ between replies to one statement
        self.known: dict[tuple[str, ...], Statement] = {}  # by id, language, role and pair

    def reply(self, found: logs.Found) -> _Reply:
        """Return a row with its statement. Raises InputError if it lacks what a run needs."""
        row = found.row
        prompt = row["prompt"] if isinstance(row.get("prompt"), str) else ""
        lang, probe, reads = (cell_text(row.get(name)) for name in ("lang", "probe", "reads"))
        asked = logs.recognised(prompt, lang) if prompt else None
        lang = lang or (asked.lang if asked else "")
        if not probe and asked:
            known = packs.closed_probes().get(asked.probe)
            probe = asked.probe if not reads or (known and known.reads == reads) else ""
        probe = probe or _READ_AS.get(reads, "")
        if not lang or not (probe or reads):
            lacking = "lang" if not lang else "probe"
            raise InputError(f"a run needs {lacking!r}; columns: {', '.join(map(str, row))}")
        code = packs.language_code(lang, mixed=True)
        if reads == "question":
            pack, probe = _OWN, "question"
        else:
            probe = packs.probe_name(probe)
            pack = asked.pack if asked and asked.probe == probe else "yesno"
            if probe not in packs.load_pack(pack).probes:
                raise registry.unknown("probe", probe, list(packs.load_pack(pack).probes))
        if not isinstance(row.get("response"), str | None):
            raise InputError(f"'response' is {cell_text(row['response'])[:40]!r}, not a text")
        messages = [
            {"role": one["role"], "content": one["content"]}
            for one in (row.get("messages") or ())
            if isinstance(one, dict) and {type(one.get(n)) for n in ("role", "content")} == {str}
        ] or [{"role": "user", "content": prompt}]
        whose = asked if asked and asked.probe == probe else None
        return _Reply(
            found,
            pack,
            probe,
            self._statement(found, code, prompt, whose),
            messages,
            {n: cell_text(row.get(n)) for n in FACETS}
            | ({"wording": whose.wording, "order": whose.order} if whose else {}),
            whose is not None,
        )

    def _statement(
        self, found: logs.Found, lang: str, prompt: str, asked: logs.Question | None
    ) -> Statement:
        row = found.row
        given = cell_text(row.get("statement") or row.get("item"))
        said = cell_text(row.get("text")) or (asked.text if asked else "")
        said = said or (given if self.named and " " in given else "")
        text = said or prompt
        data = row.get("data")
        about = {**(data if isinstance(data, Mapping) else {}), **row}
        about = {name: value for name, value in about.items() if name not in _OF_REPLIES}
        role = cell_text(about.pop("role", None)).casefold().strip("_")
        if role in statements.ROLES:
            about["role"] = role
        elif role and role not in _OF_CHATS:
            self.roles.add(role)
        about |= {"text": text or given or "(unknown)", "id": "" if " " in given else given}
        for line in (text, *text.splitlines()) if asked else ():  # beside it, words of a template
            if known := _builtin().get((lang, line)):
                about = _annotated(known, about)
                break
        made = statements.of_row(about, lang, found.where, found.number, LOG, Notes())
        before = self.made.setdefault((made.id, lang), [made])
        if self.named and given and not said:  # all that is known of its text are its prompts
            made = dataclasses.replace(made, text=before[0].text)
        elif before[0].text != made.text:  # the name of something else, such as of a task
            made = dataclasses.replace(made, id=digest([lang, made.text], 12))
            before = self.made.setdefault((made.id, lang), [made])
        # A sentence can be the original in one pair, and the contrast in another.
        one = next((s for s in before if (s.role, s.pair) == (made.role, made.pair)), made)
        if one is made and made not in before:
            before.append(made)
        own, other = ({**s.extra, **{n: getattr(s, n) for n in _ALIKE}} for s in (one, made))
        self.varying |= {n for n in own.keys() | other.keys() if own.get(n) != other.get(n)}
        self.known.setdefault(_place(one), one)
        self.types.setdefault(_place(one), set()).update(filter(None, made.bias_type.split("+")))
        return one

    def settled(self, statement: Statement) -> Statement:
        """Return a statement as all its replies have it.

        What differs between them is left out, types of bias are joined, and each role and pair of
        one sentence is a statement of its own.
        """
        kept = {n: value for n, value in statement.extra.items() if n not in self.varying}
        empty = {n: type(getattr(statement, n))() for n in _ALIKE if n in self.varying}
        several = len(self.made[statement.id, statement.lang]) > 1
        return dataclasses.replace(
            statement,
            id=digest(list(_place(statement)), 12) if several else statement.id,
            bias_type="+".join(sorted(self.types[_place(statement)])),
            extra=kept,
            **empty,
        )


_ALIKE = ("type", "entity", "valid_in")  # that all replies to a statement share


def _place(one: Statement) -> tuple[str, ...]:
    return one.id, one.lang, one.role, one.pair


def _annotated(known: Statement, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a built-in statement, with what a row says of it in their places."""
    said = {n: v for n, v in about.items() if cell_text(v) and n not in ("id", "text")}
    paired = {"role", "pair"} & said.keys()
    own = {n: getattr(known, n) for n in statements.COLUMNS if hasattr(known, n)}
    own |= known.extra | {"valid_in": list(known.valid_in)}
    return {n: v for n, v in own.items() if not (paired and n in ("role", "pair"))} | said


_OF_CHATS = ("assistant", "user", "system", "tool", "model", "developer")
# Columns that say nothing of a statement.
_OF_REPLIES = frozenset(
    (
        *(*logs.COLUMNS, "reads", "item", "request", "score", "shown", "options", "messages"),
        *("source", "reader", "revision", "decode", "measures", "when", "valid", "seal"),
        *columns.of_replies(),
    )
) - {"text"}


@functools.cache
def _builtin() -> dict[tuple[str, str], Statement]:
    """Return the built-in statements by language and text, as it may stand in a prompt."""
    found = {}
    for one in statements.load("builtin")[0]:
        found[one.lang, packs.clause(one.text)] = one
        found[one.lang, one.text] = one
    return found


def _written(log: logs.Log, folder: Path, key: tuple[str, str], part: _Part) -> Run:
    pack, model = key
    languages = tuple(dict.fromkeys(one.lang for one in part.about))
    own, packed = _pack(pack, languages, part.worded)
    part.pack = packed["pack"]
    vary = part.vary
    order = list(packs.load_pack(pack).probes) if not own else []
    files = sorted(part.files, key=str)
    spec = Spec(
        command=pack if pack in registry.names("tasks") else "yesno",
        model=model,
        revision=digest([packs.file_hash(path) for path in files]),
        engine=LOG,
        engine_version=log.format,
        dtype="unknown",
        chat_template="unknown",
        engine_args={
            "files": [Path(str(path)).name for path in files],
            "unknown": log.unknown.total(),
        },
        data=Path(log.name).name or log.name,
        statements=statements_hash(part.about),
        languages=languages,
        probes=tuple(sorted(part.probes, key=order.index) if order else part.probes),
        decode=("recorded",),
        **{name: part.single(name) for name in _SETTINGS},
        seed=0,
        samples=part.most(),
        limit=None,
        wordings=str(len(vary["wording"])) if "wording" in vary else "",
        personas=str(len(vary["persona"])) if "persona" in vary else "",
        packages=versions(),
        version=__version__,
        **packed,
    )
    with Run.start(folder, spec, part.about, part, own) as run:
        there = Places((name, 0) for name in run.answered())
        failed = {one.request for one in run.failures()}
        for request, answer, *_ in part.replies():
            if there.get(request.id) is None and request.id not in failed:
                said = not isinstance(answer, str)
                run.append(_response(request, answer) if said else _failure(request, answer))
    with Run.open(folder) as run:
        if part.judged:
            reader = part.readers.pop() if len(part.readers) == 1 else "given"
            run.write_judgments(_READ, reader, _judgments(part, _READ))
        if part.labelled:
            signature = f"{THEIRS}@1+{log.format}"
            run.write_judgments(THEIRS, signature, _judgments(part, THEIRS), only=THEIRS)
    return run


def _pack(
    name: str, languages: Sequence[str], worded: Collection[str]
) -> tuple[bytes, dict[str, Any]]:
    """Return the content of a pack of questions of one's own, and what the spec says of a pack.

    worded: the languages in which something was asked in the words of the pack.
    """
    codes = list(dict.fromkeys(map(packs.first_of, languages)))
    if name != _OWN:
        pack = packs.load_pack(name)
        own = {packs.first_of(lang) for lang in worded} & pack.hashes.keys()
        hashes = {code: pack.hashes[code] for code in codes if code in own}
        return b"", {"pack": pack.id, "pack_hashes": hashes}
    tables = "".join(f'\n[{code}.question]\ntext = "{{input}}"\n' for code in codes)
    content = (_ASKED + tables).encode()
    hashes = dict.fromkeys(codes, hashlib.sha256(content).hexdigest()[:12])
    return content, {"pack": f"{_OWN}@1", "pack_hashes": hashes}


_TEXTS = ("finish", "prompt", "reasoning", "reasoning_from", "answered_by")


def _answer(row: Mapping[str, Any]) -> list[str] | str:
    """Return the reply of a row and its texts; of a row without a reply, why there is none."""
    if row.get("response") is None:
        return cell_text(row.get("error")) or "no reply"
    found = [row.get(name) for name in _TEXTS]
    return [row["response"], *(one if isinstance(one, str) else "" for one in found)]


def _response(request: Request, answer: Sequence[str]) -> Response:
    text, finish, prompt, reasoning, reasoning_from, model = answer
    return Response(
        *(request.id, text, finish or "recorded", prompt, None, None),
        reasoning=reasoning or None,
        reasoning_from=reasoning_from,
        model=model,
    )


def _failure(request: Request, why: str) -> Failure:
    return Failure(request.id, "missing", why, 1)


_READ = "yesno"  # the judge whose columns a table may have already


def _given(row: Mapping[str, Any], found: logs.Found) -> list[Any] | None:
    """Return what a table that `genprobe judge` wrote says of a reply: label, rule, evidence, more.

    Raises InputError for a label that is none.
    """
    if row.get("response") is None or not (label := cell_text(row.get("answer"))):
        return None
    if label not in ANSWERS:
        raise registry.unknown("answer", label, ANSWERS)
    told = {name: cell_text(row.get(name)) for name in ("kind", "likely", "rule", "evidence")}
    fields: dict[str, JSON] = {
        "kind": told["kind"] or None,
        "conflict": truth("conflict", row.get("conflict"), found.number),
        "likely": told["likely"] or None,
    }
    return [label, told["rule"], told["evidence"], fields]


def _label(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the label that another harness gave a reply, where there is one."""
    if not (label := cell_text(row.get("theirs"))):
        return None
    told = {name: cell_text(row.get(name)) for name in ("their_score", "target")}
    rule = cell_text(row.get("their_metric")) or "unknown"
    return [label, rule, cell_text(row.get("their_answer")), told]


def _judgments(part: _Part, judge: str) -> Iterator[Judgment]:
    """Yield what the rows say of the replies."""
    for request, _, given, theirs in part.replies():
        if said := (given if judge == _READ else theirs):
            label, rule, evidence, fields = said
            yield Judgment(request.id, judge, label, None, rule, evidence, fields)


def beside(run: Run) -> Iterator[str]:
    """Yield lines that set our labels beside those of the harness that the replies are from.

    First how many agree, then the replies where they differ; nothing without labels of both.
    """
    judge = "yesno"
    if not {THEIRS, judge} <= run.judges().keys():
        return
    theirs = {found.request: found.label for found in run.judgments(THEIRS)}
    gold = Gold(THEIRS)
    read = zip(run.exchanges(), run.judgments(judge), strict=True)
    for (request, answer), found in read:
        if isinstance(answer, Response):
            row = {THEIRS: theirs.get(request.id), "response": answer.text}
            row |= {"lang": request.lang, "statement": request.statement}
            place = f"{request.lang}, {request.probe}, {request.statement}"
            gold.add(place, row, found.label, found.fields["kind"])
    if gold.counted:
        yield from gold.lines(judge)
