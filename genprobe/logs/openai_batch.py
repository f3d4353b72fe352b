"""The output of OpenAI's batches, and of servers that write the same (vLLM `run-batch`).

One line an answer, joined by `custom_id` with the line of its input, a file beside it, which has
the prompt. https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from genprobe.errors import InputError
from genprobe.logs import Row, Source, asked, every_answer, sampling, table_of
from genprobe.records import canonical

ABOUT = "batches of OpenAI (output and input)"


def fits(head: Any) -> bool:
    return isinstance(head, dict) and "custom_id" in head and isinstance(head.get("response"), dict)


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the answers; one that failed has no response."""
    sent = inputs(source, "body", lambda row: _body(row).get("model"))
    for number, row in source.rows():
        response = row.get("response")
        body = sent(row)
        messages = body.get("messages", [{"role": "user", "content": body.get("prompt")}])
        found = asked(messages) | sampling(body)
        found |= {"id": row.get("custom_id"), "model": body.get("model")}
        if found["max_tokens"] is None:
            found |= {"max_tokens": body.get("max_completion_tokens")}
        try:
            if response["status_code"] != 200:  # type: ignore[index]
                raise LookupError
            replies = every_answer(response["body"])  # type: ignore[index]
        except (LookupError, TypeError, AttributeError):
            error = row.get("error") or (response if isinstance(response, dict) else {})
            replies = [{"error": str(error)[:200]}]
        # Columns that the user joined to the lines.
        more = {n: v for n, v in row.items() if n not in ("id", "custom_id", "response", "error")}
        for reply in replies:
            said = {name: value for name, value in reply.items() if value is not None}
            yield number, found | said | {"data": more or None}


def _body(row: Row) -> Row:
    return table_of(table_of(row, "response"), "body")


def inputs(
    source: Source, name: str, model_of: Callable[[Row], Any]
) -> Callable[[Row], dict[str, Any]]:
    """Return what finds what a row of an output answers, in the files of input beside it.

    name: of the field with what was asked. model_of: returns the model that answered a row. The
    result is called with a row, and returns what was asked; an empty object if no file has it.
    Numbers as `custom_id` are common, so that several files may have an id: those of the model
    count first; then those that have exactly the ids of the output, or else all of them. It raises
    InputError if the files that are left ask different things by one id.
    """
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    ids: dict[str, set[str]] = {}  # of each file
    for other in source.beside("*.jsonl"):
        try:
            if not isinstance(other.head, dict) or not {"custom_id", name} <= other.head.keys():
                continue
            for _, row in other.rows():
                if isinstance(row.get(name), dict):
                    key, file = str(row.get("custom_id")), other.file.name
                    found.setdefault(key, []).append((file, row[name]))
                    ids.setdefault(file, set()).add(key)
        except InputError:
            continue
    likely, only = set(ids), None
    if len(ids) > 1:
        rows = [(str(row.get("custom_id")), model_of(row)) for _, row in source.rows()]
        own, models = {key for key, _ in rows}, {str(model) for _, model in rows if model}
        likely = {file for file, there in ids.items() if there == own}
        likely = likely or {file for file, there in ids.items() if there >= own}
        only = models.pop() if len(models) == 1 else None  # failures name none

    def sent(row: Row) -> dict[str, Any]:
        key, model = str(row.get("custom_id")), model_of(row) or only
        some = found.get(key, [])
        some = [one for one in some if _answers(model, one[1].get("model"))] or some
        some = [one for one in some if one[0] in likely] or some
        if len({canonical(what) for _, what in some}) < 2:
            return some[0][1] if some else {}
        files = " and ".join(dict.fromkeys(file for file, _ in some[:2]))
        raise InputError(
            f"{source.path}: the id {key!r} asks different things in {files}, and neither ids nor "
            "models tell which was answered; put each output in a folder with its input alone"
        )

    return sent


def _answers(answered_by: Any, model: Any) -> bool:
    """Tell whether a model may answer by a name: its own, or that with a version or a date."""
    theirs, ours = (str(name or "").rpartition("/")[2] for name in (answered_by, model))
    ours = ours.removesuffix("-latest")
    return (
        bool(ours)
        and theirs.startswith(ours)
        and _VERSION.fullmatch(theirs[len(ours) :]) is not None
    )


_VERSION = re.compile(r"([-@:]v?\d.*)?")
