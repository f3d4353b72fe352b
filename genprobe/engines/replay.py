"""Recorded replies instead of a model: a run folder, or a JSONL, CSV or Parquet file.

Columns of a file (others are ignored):
  response, or text   the reply; required. Null means no reply; an empty text is an empty reply.
  sample              number of the reply among those to the same question, from 0. Without it, the
                      replies to a question are samples 0, 1, 2, … in the order of the file.
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
from typing import Any, NamedTuple, TypeVar

from genprobe import files
from genprobe._version import __version__
from genprobe.engines import Identity, Options, Sampling
from genprobe.errors import InputError, RunError
from genprobe.files import disk, door
from genprobe.limits import parsed
from genprobe.records import Failure, Record, Request, Response
from genprobe.resources import packs
from genprobe.runs.spec import refuse_newer

PACKAGES = ()

R = TypeVar("R", bound=Record)
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
        by_id: dict[str, Recording],
        by_prompt: dict[Key, list[Recording]],
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.identity = identity
        self.by_id = by_id
        self.by_prompt = by_prompt
        self.note = note

    def prepare(self, requests: Sequence[Request], sampling: Sampling) -> None:
        """Note how many recorded replies answer no question of the run."""
        there = {id(one) for one in self.by_id.values()}
        there.update(id(one) for found in self.by_prompt.values() for one in found)
        asked: set[int] = set()
        for request in requests:
            if request.id in self.by_id:
                asked.add(id(self.by_id[request.id]))
            elif (key := self._key(request)) is not None:
                asked.update(map(id, self.by_prompt[key]))
        if left := len(there) - len(asked):
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
            found = self.by_id.get(request.id) or self._by_prompt(request)
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
        spare = sum(max(0, len(self.by_prompt[key]) - n) for key, n in used.items())
        if spare:
            most = max(len(self.by_prompt[key]) for key in used)
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
        if key is None:
            return None
        replies = self.by_prompt[key]
        return replies[request.sample] if request.sample < len(replies) else None


def _prompt(messages: list[dict[str, str]]) -> str:
    """Return the last message of the user."""
    return next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")


def _identity(path: Path, model: str, spec: dict[str, Any]) -> Identity:
    """Make the identity of the replies in a file. spec: of the run that it is from, {} for none."""
    state = hashlib.sha256()
    with door.reading(path) as file:
        while part := file.read(1 << 20):
            state.update(part)
    return Identity(
        model=model,
        revision=state.hexdigest()[:16],
        engine="replay",
        engine_version=__version__,
        dtype=str(spec.get("dtype", "unknown")),
        chat_template=str(spec.get("chat_template", "unknown")),
    )


# --- a run folder ---------------------------------------------------------------------------


def _open_run(folder: Path, note: Callable[[str], None]) -> ReplayEngine:
    """Read the responses of a run, to be matched by request id or, for other ids, by prompt."""
    door.need_own(folder)
    paths = folder / "requests.jsonl", folder / "responses.jsonl"
    for path in paths:
        if not path.is_file():
            raise InputError(f"{folder}: no {path.name}; this is not a run folder with responses")
    spec = _spec(folder)
    requests = _records(paths[0], Request)
    by_id = {
        r.request: Recording(r.text, r.finish, r.sent, r.tokens_in, r.tokens_out)
        for r in _records(paths[1], Response)
    }
    by_prompt: dict[Key, list[Recording]] = {}
    for request in sorted(requests, key=lambda r: r.sample):
        if request.id in by_id:
            by_prompt.setdefault(_prompt(request.messages), []).append(by_id[request.id])
    model = str(spec.get("model", folder.resolve().name))
    return ReplayEngine(_identity(paths[1], model, spec), by_id, by_prompt, note)


def _records(path: Path, kind: type[R]) -> list[R]:
    """Read the lines of a file as records; a last line that was cut off by a crash is skipped."""
    found = []
    for number, _, line in disk.lines(path, appended=True):
        try:
            found.append(kind.from_json(line))
        except RunError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return found


def _spec(folder: Path) -> dict[str, Any]:
    """Read the spec of a run; {} if it cannot be read, as the replies can be used without it."""
    try:
        text = door.content(folder / "run.json")
        refuse_newer(text, folder)
        spec = parsed(text)
    except (OSError, ValueError):
        return {}
    return spec if isinstance(spec, dict) else {}


# --- a file ---------------------------------------------------------------------------------


def _open_file(path: Path, wanted: str, note: Callable[[str], None]) -> ReplayEngine:
    """Read the replies of a file, to be matched by id if ids are unique, and by the other keys."""
    by_id: dict[str, Recording] = {}
    by_prompt: dict[Key, list[Recording]] = {}
    models: set[str] = set()
    order: dict[Key, list[tuple[int, int]]] = {}  # (sample number, position in the file)
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
        if (wanted and model != wanted) or text is None:
            continue
        if not isinstance(text, str) or not isinstance(prompt, str | None):
            raise InputError(f"{where}: response and prompt must be texts")
        prompt = prompt or None  # an empty cell is no prompt
        recording = Recording(text, str(row.get("finish") or "recorded"), prompt or "")
        if name is not None:
            twice = str(name) if str(name) in by_id else twice
            by_id[str(name)] = recording
        sample = _sample(row.get("sample"), where)
        # Statement, language and probe match better than the prompt, which several statements may
        # share. The prompt alone is used if the statements have other names here.
        for key in _keys(item, prompt):
            order.setdefault(key, []).append((sample, len(order.get(key, []))))
            by_prompt.setdefault(key, []).append(recording)
    if wanted and wanted not in models:
        known = ", ".join(sorted(models)) or "none; it has no column 'model'"
        raise InputError(f"{path}: no replies of {wanted!r}; it holds: {known}")
    if not wanted and len(models) > 1:
        raise InputError(
            f"{path}: replies of {len(models)} models ({', '.join(sorted(models))});"
            f" name one, as in {path.name}#{min(models)}"
        )
    if not by_id and not by_prompt:
        raise InputError(f"{path}: no replies in it")
    if twice is not None:
        # The ids are not ours (for example, row numbers in each language): match by the other keys.
        if not by_prompt:
            raise InputError(f"{path}: the id {twice!r} is given twice; ids must be unique")
        by_id = {}
    for key, places in order.items():
        by_prompt[key] = [by_prompt[key][at] for _, at in sorted(places)]
    model = wanted or next(iter(models), path.name)
    return ReplayEngine(_identity(path, model, {}), by_id, by_prompt, note)


def _keys(item: tuple[str, str, str] | None, prompt: str | None) -> Iterator[Key]:
    """Return the keys by which a request can find a row."""
    if item is not None:
        yield item if prompt is None else (*item, prompt)
    if prompt is not None:
        yield prompt


def _sample(value: Any, where: str) -> int:
    """Return the sample number of a row; 0 if it has none."""
    try:
        return 0 if value in (None, "") else int(float(value))
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
