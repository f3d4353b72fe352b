"""Put pieces of a run, made on several machines, together to one run: `merge`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe.errors import RunError
from genprobe.files import door
from genprobe.records import Failure, Judgment, LogProb, Request, Response, Statement
from genprobe.runs import seal
from genprobe.runs.places import Places
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec, statements_hash

# What pieces may differ in: which statements were asked, and in which languages.
_PIECE = ("data", "statements", "languages", "pack_hashes")


def merge(
    folders: Sequence[Path], out: str | Path, note: Callable[[str], None] = lambda _: None
) -> Run:
    """Put pieces of a run together to one run.

    The pieces asked the same model in the same way, each about its own statements, or each a part
    of the same plan. The merged run has their statements, plans, replies, failures and labels, in
    the order of the pieces; the pieces stay as they are. An interrupted merge is resumed.

    folders: the pieces. out: a new folder. note: called with what is left out. Raises RunError if
    the pieces differ in their settings, in what they say of a statement, or in a reply.
    """
    if len(folders) < 2:
        raise RunError("merge puts pieces of a run together; name at least two")
    pieces = [Run.open(folder) for folder in folders]
    statements = _statements(pieces)
    spec = _joint([run.spec for run in pieces], pieces, statements)
    own = pieces[0].folder / seal.PACK
    pack = door.content(own) if own.exists() else b""
    _need_own_replies(pieces)
    with Run.start(out, spec, statements, _Plan(pieces), pack) as run:
        there = Places((name, 0) for name in run.answered())
        failed = {(one.request, one.kind, one.detail) for one in run.failures()}
        for piece in pieces:
            for record in _records(piece):
                if isinstance(record, Failure):
                    if (record.request, record.kind, record.detail) not in failed:
                        run.append(record)
                elif there.get(record.request) is None:
                    run.append(record)
    for name in sorted({name for piece in pieces for name in piece.judges()}):
        _judgments(run, pieces, name, note)
    return run


def _records(run: Run) -> Iterator[Response | LogProb | Failure]:
    yield from run.responses()
    yield from run.logprobs()
    yield from run.failures()


def _statements(pieces: Sequence[Run]) -> list[Statement]:
    """Return the statements of all pieces. Raises RunError if two of one id and language differ."""
    found: dict[tuple[str, str], Statement] = {}
    for run in pieces:
        for one in run.statements():
            if found.setdefault((one.id, one.lang), one) != one:
                raise RunError(
                    f"{run.folder}: another statement {one.id!r} ({one.lang}) than before"
                )
    return list(found.values())


class _Plan(Sequence[Request]):
    """The requests of all pieces, each once, in the order of the pieces; read from their files."""

    def __init__(self, pieces: Sequence[Run]) -> None:
        self._pieces = pieces
        self._ids = [Places((one.id, 0) for one in run.requests()) for run in pieces]

    def __iter__(self) -> Iterator[Request]:
        for at, run in enumerate(self._pieces):
            for one in run.requests():
                if all(before.get(one.id) is None for before in self._ids[:at]):
                    yield one

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]


def _joint(specs: Sequence[Spec], pieces: Sequence[Run], statements: Sequence[Statement]) -> Spec:
    """Return the spec of all pieces. Raises RunError if they asked in different ways."""
    first, hashes = specs[0], dict(specs[0].pack_hashes)
    for spec, run in zip(specs, pieces, strict=True):
        others = first.differences(spec, _PIECE)
        others += [
            f"pack_hashes.{lang}: {hashes[lang]} -> {found}"
            for lang, found in spec.pack_hashes.items()
            if hashes.setdefault(lang, found) != found
        ]
        if others:
            raise RunError(
                f"{run.folder}: is no piece of the same run as {pieces[0].folder} "
                f"({'; '.join(others)}); score both by themselves"
            )
    return dataclasses.replace(
        first,
        data="+".join(dict.fromkeys(spec.data for spec in specs)),
        languages=tuple(dict.fromkeys(lang for spec in specs for lang in spec.languages)),
        pack_hashes=hashes,
        statements=statements_hash(statements),
    )


def _need_own_replies(pieces: Sequence[Run]) -> None:
    """Raise RunError if two pieces have a reply to one request."""
    seen: list[Places] = []
    for run in pieces:
        for request in run.answered():
            for at, before in enumerate(seen):
                if before.get(request) is not None:
                    raise RunError(
                        f"{run.folder}: request {request} was also answered in "
                        f"{pieces[at].folder}; these runs overlap, so score them by themselves"
                    )
        seen.append(Places((request, 0) for request in run.answered()))


def _judgments(run: Run, pieces: Sequence[Run], name: str, note: Callable[[str], None]) -> None:
    """Put the judgments of one judge together, if the same one read all pieces with replies."""
    judged = [piece.judged().get(name) for piece in pieces]
    said = {one and (one.signature, tuple(one.reads), one.only, str(one.licence)) for one in judged}
    if len(said) != 1 or judged[0] is None:
        why = "read only some of the pieces" if None in said else "is not the same in all pieces"
        note(f"{name} {why}, and its labels are left out; `genprobe judge {run.folder}` makes them")
        return
    one = judged[0]
    about = one.reads, one.only, one.licence
    try:
        run.write_judgments(name, one.signature, _in_order(run, pieces, name), *about)
    except _OtherOrder as piece:
        note(
            f"{piece}: the labels of {name} are not in the order of the plan and are left out; "
            f"`genprobe judge {run.folder}` makes them"
        )


def _in_order(run: Run, pieces: Sequence[Run], name: str) -> Iterator[Judgment]:
    """Yield the judgments of all pieces, in the order of the merged plan."""
    streams = [piece.judgments(name) for piece in pieces]
    ahead = [next(stream, None) for stream in streams]
    for request in run.requests():
        for at, one in enumerate(ahead):
            if one is not None and one.request == request.id:
                yield one
                ahead[at] = next(streams[at], None)
    for piece, one in zip(pieces, ahead, strict=True):
        if one is not None:
            raise _OtherOrder(piece.folder)


class _OtherOrder(Exception):
    """Raised with the piece whose judgments are not in the order of the merged plan."""
