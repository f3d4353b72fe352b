"""Inspect's logs, as JSON or `.eval`: https://inspect.aisi.org.uk/eval-logs.html"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genprobe.logs import (
    Row,
    Source,
    asked,
    every_answer,
    first_score,
    list_of,
    sampling,
    table_of,
    text_of,
)
from genprobe.records import canonical

ABOUT = "logs of Inspect (JSON, .eval)"
_PARTS = "samples/"  # the folder of the samples in a packed log


def fits(head: Any) -> bool:
    if not isinstance(head, dict):
        return False
    packed = "header.json" in head or "_journal/start.json" in head
    return packed or {"eval", "status", "version"} <= head.keys()


def made(source: Source) -> tuple[Any, str] | None:
    """Return task and model with their settings, and the time; a log that failed comes first."""
    head = _head(source)
    about = table_of(head, "eval")
    done = isinstance(head, dict) and head.get("status") == "success"
    return canonical([about.get(name) for name in _SAME]), f"{done:d} {about.get('created')}"


_SAME = ("task", "task_args", "model", "model_args", "model_generate_config", "solver", "config")


def _head(source: Source) -> Any:
    if not source.zipped:
        return source.document
    there = "header.json" in source.members
    return source.member("header.json" if there else "_journal/start.json")


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the samples; of a packed log, which may be long, one at a time."""
    head = _head(source)
    samples = iter(list_of(head, "samples"))
    if source.zipped:
        parts = (n for n in source.members if n.startswith(_PARTS) and n.endswith(".json"))
        samples = map(source.member, parts)
    about = table_of(head, "eval")
    settings = table_of(about, "model_generate_config") | table_of(table_of(head, "plan"), "config")
    settings = {name: value for name, value in settings.items() if value is not None}
    for number, sample in enumerate(samples, 1):
        if isinstance(sample, dict):
            for row in _rows(sample, str(about.get("model") or ""), settings):
                yield number, row


def _rows(sample: dict[str, Any], model: str, settings: dict[str, Any]) -> Iterator[Row]:
    """Yield the choices of a sample; the score is of the first."""
    texts = table_of(sample, "attachments")

    def whole(value: Any) -> Any:
        """Put texts that are kept apart, since they are long, in their places."""
        if isinstance(value, str) and value.startswith("attachment://"):
            return texts.get(value.removeprefix("attachment://"), value)
        return value

    given = sample.get("input")
    messages = given if isinstance(given, list) else [{"role": "user", "content": given}]
    said = sample.get("messages")
    if isinstance(said, list):  # what was sent: all before the reply to the input
        examples, spoken = map(_replies_in, (messages, said))
        messages = said[: spoken[len(examples)]] if len(spoken) > len(examples) else said
    messages = [
        one | {"content": whole(text_of(one.get("content")))}
        for one in messages
        if isinstance(one, dict)
    ]
    row = asked(messages)
    output = table_of(sample, "output")
    epoch = sample.get("epoch")
    place = epoch - 1 if isinstance(epoch, int) and epoch > 0 else 0
    try:
        replies = replies_of(output, place)
        for one in replies:
            one["response"] = whole(one["response"])
    except (LookupError, TypeError, AttributeError):
        error = table_of(sample, "error").get("message") or output.get("error") or "no reply"
        replies = [{"error": str(error)[:200]}]
    scores = table_of(sample, "scores")
    name, value = first_score(
        {name: score.get("value") for name, score in scores.items() if isinstance(score, dict)}
    )
    target = sample.get("target")
    row |= sampling(settings) | {
        "id": sample.get("id"),
        "model": model or output.get("model"),
        "sample": place if epoch else None,
        "target": target[0] if isinstance(target, list) and len(target) == 1 else target,
        "data": table_of(sample, "metadata") or None,
    }
    scored = {
        "their_answer": whole(table_of(scores, name or "").get("answer")),
        "their_score": value,
        "their_metric": name,
    }
    for at, reply in enumerate(replies):
        yield row | reply | (scored if not at else {})


def replies_of(output: Any, sample: int = 0) -> list[Row]:
    """Return the replies in the output of a model. Raises as `every_answer`."""
    choices = [one | {"finish_reason": one.get("stop_reason")} for one in output["choices"]]
    return every_answer({"choices": choices}, sample)


def _replies_in(messages: list[Any]) -> list[int]:
    """Return the places of the assistant's messages, which may be examples in an input."""
    roles = [one.get("role") if isinstance(one, dict) else "" for one in messages]
    return [at for at, role in enumerate(roles) if role == "assistant"]
