"""promptfoo's results: `promptfoo eval -o results.json`.

https://www.promptfoo.dev/docs/configuration/outputs
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genprobe.limits import parsed_list
from genprobe.logs import Row, Source, asked, first_score, sampling, table_of
from genprobe.records import canonical

ABOUT = "results of promptfoo (JSON)"


def fits(head: Any) -> bool:
    return isinstance(head, dict) and _results(head) is not None


def _results(head: dict[str, Any]) -> list[Any] | None:
    """Return the results of a file; those of old versions stand a level higher."""
    found = head.get("results")
    if isinstance(found, dict) and ("prompts" in found or "stats" in found):
        found = found.get("results")
        return found if isinstance(found, list) else None
    return None


def made(source: Source) -> tuple[Any, str] | None:
    """Return what was asked by the configuration of a file, and the time."""
    asked = table_of(source.document, "config")
    when = table_of(source.document, "results").get("timestamp")
    same = canonical([asked.get(name) for name in ("description", "prompts", "providers", "tests")])
    return (same, str(when)) if asked and when else None


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the replies; one that could not be asked for has none."""
    for number, one in enumerate(_results(source.document) or (), 1):
        if isinstance(one, dict):
            yield number, _row(one)


def _row(one: dict[str, Any]) -> Row:
    prompt = one.get("prompt")
    raw = prompt.get("raw") if isinstance(prompt, dict) else prompt
    found: Row = {"prompt": raw if isinstance(raw, str) else None}
    if isinstance(raw, str) and raw.lstrip().startswith("["):
        try:
            messages = parsed_list(raw)
        except ValueError:
            messages = None
        if isinstance(messages, list) and all(isinstance(m, dict) for m in messages):
            found = asked(messages)
    response = one.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, str):
        error = response.get("error") if isinstance(response, dict) else one.get("error")
        found["error"] = str(error or "no text")[:200]
        output = None
    provider = one.get("provider")
    names = provider if isinstance(provider, dict) else {"id": provider}
    metric, score = first_score(one.get("namedScores"))
    success = one.get("success")
    case = one.get("testCase")
    asserted = case.get("assert") if isinstance(case, dict) else None
    first = asserted[0] if isinstance(asserted, list) and len(asserted) == 1 else None
    compares = isinstance(first, dict) and first.get("type") in _COMPARED
    value = table_of({"first": first}, "first").get("value") if compares else None
    return (
        found
        | sampling(names.get("config"))
        | {
            "id": one.get("testIdx"),
            "model": names.get("label") or names.get("id"),
            "response": output,
            # What it wants said stands in a test only if that is a single comparison of texts.
            "target": value if isinstance(value, str) else None,
            "their_score": success if isinstance(success, bool) else score,
            "their_metric": metric or ("success" if isinstance(success, bool) else None),
            "data": _plain(one.get("vars")),
        }
    )


_COMPARED = ("equals", "contains", "icontains", "starts-with")


def _plain(data: Any) -> dict[str, Any] | None:
    return data if isinstance(data, dict) and data else None
