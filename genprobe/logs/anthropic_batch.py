"""The results of Anthropic's message batches: one line an answer, joined with its input.

The input is a file of the same folder with `custom_id` and `params`, as it was sent.
https://docs.anthropic.com/en/docs/build-with-claude/batch-processing
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genprobe.logs import Row, Source, answered, asked, sampling, table_of
from genprobe.logs.openai_batch import inputs

ABOUT = "batches of Anthropic (results and requests)"


def fits(head: Any) -> bool:
    found = head.get("result") if isinstance(head, dict) and "custom_id" in head else None
    return isinstance(found, dict) and "type" in found


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the answers; one that failed has no response."""
    sent = inputs(
        source, "params", lambda row: table_of(table_of(row, "result"), "message").get("model")
    )
    for number, row in source.rows():
        params = sent(row)
        messages = params.get("messages")
        messages = messages if isinstance(messages, list) else []
        if params.get("system"):
            messages = [{"role": "system", "content": params["system"]}, *messages]
        found = asked(messages) | sampling(params)
        found |= {"id": row.get("custom_id"), "model": params.get("model")}
        result = row.get("result")
        try:
            message = result["message"]  # type: ignore[index]
            finish = message.get("stop_reason")
            choice = {"message": {"content": message["content"]}, "finish_reason": finish}
            reply = answered({"choices": [choice], "model": message.get("model")})
            found |= {name: value for name, value in reply.items() if value is not None}
        except (LookupError, TypeError, AttributeError):
            found["error"] = str(result)[:200]
        more = {name: v for name, v in row.items() if name not in ("custom_id", "result")}
        yield number, found | {"data": more or None}
