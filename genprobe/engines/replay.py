"""Recorded replies instead of a model: a run folder, or a JSONL, CSV or Parquet file.

Columns of a file (others are ignored):
  response, or text   the reply; required. Null means no reply, whose place among the samples no
                      other takes; an empty text is an empty reply.
  sample              number of the reply among those to the same question, from the least in the
                      file. Without it, or if one comes twice, the replies to a question are
                      samples 0, 1, 2, … in the order of the file.
  model               name of the model that replied. If a file has several models, `FILE#NAME`
                      chooses one.
  finish              why the reply ended: `stop`, `length`, …; `recorded` if there is no column.

A row is matched to a request by one of:
  request, or id           the request's id;
  prompt                   the exact text of the last user message;
  statement, lang, probe   these three together. A row that also has a prompt is matched by all
                           four or, if no request fits, by the prompt alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import files
from genprobe._version import __version__
from genprobe.engines import Identity, Options, Sampling
from genprobe.errors import InputError
from genprobe.files import door
from genprobe.records import Failure, Request, Response
from genprobe.resources import packs
from genprobe.runs.run import Run

PACKAGES = ()

# What a request is matched by: a prompt; or statement, language and probe; or all four.
Key = str | tuple[str, str, str] | tuple[str, str, str, str]


class Recording(NamedTuple):
    text: str
    finish: str
    sent: str
    tokens_in: int | None = None
    tokens_out: int | None = None


def open(path: str, options: Options) -> ReplayEngine:
    """Read recorded replies. Raises InputError if the file has another form than above."""
    source, wanted = door.expanded(path), ""
    if not source.exists() and "#" in path:
        path, _, wanted = path.rpartition("#")
        source = door.expanded(path)
    if not source.exists():
        raise InputError(f"{source}: no such file or run folder; replay needs recorded replies")
    return (
        _open_run(source, options.note)
        if source.is_dir()
        else _open_file(source, wanted, options.note)
    )


class ReplayEngine:
    """An engine that returns recorded replies. Without one, a request is a Failure, `missing`."""

    def __init__(
        self,
        identity: Identity,
        by_id: dict[str, Recording | None],
        by_prompt: dict[Key, dict[int, Recording]],
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.identity = identity
        self.by_id = by_id
        self.by_prompt = by_prompt
        self.note = note

    def prepare(self, requests: Sequence[Request], sampling: Sampling) -> None:
        """Note how many recorded replies answer no question of the run."""
        there = {id(one) for one in self.by_id.values() if one}
        there.update(id(one) for found in self.by_prompt.values() for one in found.values())
        asked: set[int] = set()
        for request in requests:
            if request.id in self.by_id:
                asked.add(id(self.by_id[request.id]))
            elif (key := self._key(request)) is not None:
                asked.update(map(id, self.by_prompt[key].values()))
        if left := len(there - asked):
            self.note(
                f"{left:,} of {len(there):,} recorded replies are to none of the questions of this "
                "run, and are not used"
            )

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | Failure]:
        """Answer in the order of the requests. `sampling` is not used.

        Notes say how many recorded replies no request uses, and how many prompts belong to several
        statements, which then get the same replies.
        """
        self._tell(requests)
        for request in requests:
            known = request.id in self.by_id  # then the reply to another request is not its own
            found = self.by_id[request.id] if known else self._by_prompt(request)
            if found is None:
                yield Failure(request.id, "missing", "no recorded reply to this request", 1)
            else:
                yield Response(request.id, *found)

    def close(self) -> None:
        self.by_id, self.by_prompt = {}, {}

    def _tell(self, requests: Sequence[Request]) -> None:
        asked: dict[Key, set[str]] = {}
        used: Counter[Key] = Counter()
        for request in requests:
            if request.id not in self.by_id and (key := self._key(request)) is not None:
                asked.setdefault(key, set()).add(request.statement)
                used[key] = max(used[key], request.sample + 1)
        spare = sum(one >= n for key, n in used.items() for one in self.by_prompt[key])
        if spare:
            most = 1 + max(max(self.by_prompt[key], default=0) for key in used)
            total = sum(len(self.by_prompt[key]) for key in used)
            self.note(
                f"{spare} of {total} recorded replies to these questions are not used; "
                f"--samples {most} uses them"
            )
        if shared := sum(len(names) > 1 for names in asked.values()):
            self.note(
                f"{shared} recorded prompts belong to several statements, which get the same "
                "replies; columns 'statement', 'lang' and 'probe' would tell them apart"
            )

    def _key(self, request: Request) -> Key | None:
        """Return the first key of a request that has recordings; None if there is none."""
        item, prompt = (request.statement, request.lang, request.probe), _prompt(request.messages)
        keys: tuple[Key, ...] = ((*item, prompt), item, prompt)
        return next((key for key in keys if key in self.by_prompt), None)

    def _by_prompt(self, request: Request) -> Recording | None:
        key = self._key(request)
        return None if key is None else self.by_prompt[key].get(request.sample)


def _prompt(messages: list[dict[str, str]]) -> str:
    """Return the last message of the user."""
    return next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")


def _identity(
    path: Path, model: str, dtype: str = "unknown", template: str = "unknown"
) -> Identity:
    """Make the identity of the replies in a file."""
    state = hashlib.sha256()
    with door.reading(path) as file:
        while part := file.read(1 << 20):
            state.update(part)
    return Identity(
        model=model,
        revision=state.hexdigest()[:16],
        engine="replay",
        engine_version=__version__,
        dtype=dtype,
        chat_template=template,
    )


# --- a run folder ---------------------------------------------------------------------------


def _open_run(folder: Path, note: Callable[[str], None]) -> ReplayEngine:
    """Read the responses of a run, to be matched by request id or, for other ids, by prompt."""
    run, paths = Run.open(folder), (folder / "requests.jsonl", folder / "responses.jsonl")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{folder}: no {path.name}; this is not a run folder with responses")
    by_id: dict[str, Recording | None] = {
        r.request: Recording(r.text, r.finish, r.sent, r.tokens_in, r.tokens_out)
        for r in run.responses()
    }
    held: dict[Key, list[_Numbered]] = {}
    for request in run.requests():
        recording = by_id.setdefault(request.id, None)
        held.setdefault(_prompt(request.messages), []).append((request.sample, recording))
    by_prompt = {key: _placed(numbered, 0) for key, numbered in held.items()}
    identity = _identity(paths[1], run.spec.model, run.spec.dtype, run.spec.chat_template)
    return ReplayEngine(identity, by_id, by_prompt, note)


_Numbered = tuple[int | None, Recording | None]  # the number of a sample, and its reply


def _placed(numbered: Sequence[_Numbered], first: int) -> dict[int, Recording]:
    """Return the replies to one question by their samples; one that is missing moves no other.

    numbered: in the order of the file. first: the number of the first sample.
    """
    answered = {sample for sample, recording in numbered if recording}
    # A reply that was asked for again stands in the place of what was missing.
    again = [(n, one) for n, one in numbered if one or n is None or n not in answered]
    again.sort(key=lambda one: one[0] or 0)
    numbers = [n for n, _ in again if n is not None]
    places = (
        (n - first for n in numbers)
        if len(set(numbers)) == len(again)
        else range(len(again))  # without numbers, or of several statements with one prompt
    )
    return {n: one for n, (_, one) in zip(places, again, strict=True) if one}


# --- a file ---------------------------------------------------------------------------------


def _open_file(path: Path, wanted: str, note: Callable[[str], None]) -> ReplayEngine:
    """Read the replies of a file, to be matched by id if ids are unique, and by the other keys."""
    by_id: dict[str, Recording | None] = {}
    by_prompt: dict[Key, dict[int, Recording]] = {}
    models: set[str] = set()
    held: dict[Key, list[_Numbered]] = {}
    first: int | None = None
    replies = 0
    twice: str | None = None
    for number, row in files.numbered_rows(path):
        where = f"{path}, row {number}"
        text = _first(row, "response", "text")
        name, prompt, item = _first(row, "request", "id"), row.get("prompt"), _item(row, where)
        if "response" not in row and "text" not in row:
            raise InputError(f"{where}: no column 'response' (or 'text')")
        if name is None and prompt is None and item is None:
            raise InputError(
                f"{where}: no columns to match by; give 'request' (or 'id'), 'prompt', or "
                "'statement', 'lang' and 'probe'"
            )
        model = row.get("model")
        if model is not None:
            models.add(str(model))
        if wanted and model != wanted:
            continue
        if not isinstance(text, str | None) or not isinstance(prompt, str | None):
            raise InputError(f"{where}: response and prompt must be texts")
        prompt = prompt or None  # an empty cell is no prompt
        recording = None
        if text is not None:
            recording = Recording(text, str(row.get("finish") or "recorded"), prompt or "")
            replies += 1
        if name is not None:
            before = by_id.setdefault(str(name), recording)
            if before is not recording and recording:
                twice = str(name) if before else twice
                by_id[str(name)] = recording
        sample = _sample(row.get("sample"), where)
        if sample is not None:
            first = sample if first is None else min(first, sample)
        # Statement, language and probe match better than the prompt, which several statements may
        # share. The prompt alone is used if the statements have other names here.
        for key in _keys(item, prompt):
            held.setdefault(key, []).append((sample, recording))
    if wanted and wanted not in models:
        known = ", ".join(sorted(models)) or "none; it has no column 'model'"
        raise InputError(f"{path}: no replies of {wanted!r}; it holds: {known}")
    if not wanted and len(models) > 1:
        raise InputError(
            f"{path}: replies of {len(models)} models ({', '.join(sorted(models))});"
            f" name one, as in {path.name}#{min(models)}"
        )
    if not replies:
        raise InputError(f"{path}: no replies in it")
    if twice is not None:
        # The ids are not ours (for example, row numbers in each language): match by the other keys.
        if not held:
            raise InputError(f"{path}: the id {twice!r} is given twice; ids must be unique")
        by_id = {}
    while held:  # emptied, so that it is not held twice
        key, numbered = held.popitem()
        by_prompt[key] = _placed(numbered, first or 0)
    model = wanted or next(iter(models), path.name)
    return ReplayEngine(_identity(path, model), by_id, by_prompt, note)


def _keys(item: tuple[str, str, str] | None, prompt: str | None) -> Iterator[Key]:
    """Return the keys by which a request can find a row."""
    if item is not None:
        yield item if prompt is None else (*item, prompt)
    if prompt is not None:
        yield prompt


def _sample(value: Any, where: str) -> int | None:
    """Return the sample number of a row; None if it has none."""
    try:
        return None if value in (None, "") else int(float(value))
    except (TypeError, ValueError):
        raise InputError(f"{where}: sample is {str(value)[:40]!r}, no whole number") from None


def _item(row: dict[str, Any], where: str) -> tuple[str, str, str] | None:
    """Return the statement, language and probe of a row if it has all three."""
    statement, lang, probe = (row.get(name) for name in ("statement", "lang", "probe"))
    if not (statement and lang and probe):
        return None
    try:
        return str(statement), packs.language_code(str(lang)), str(probe)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _first(row: dict[str, Any], *names: str) -> Any:
    return next((row[n] for n in names if row.get(n) is not None), None)
