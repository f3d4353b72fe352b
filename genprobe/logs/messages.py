"""Chats: rows with a list of messages, the last of which is the reply (JSONL, Parquet).

`messages` or `conversation` with `role` and `content`, or `conversations` with `from` and `value`
(ShareGPT): https://huggingface.co/docs/trl/dataset_formats
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genprobe.limits import parsed_list
from genprobe.logs import Row, Source, answered, asked

ABOUT = "chats (rows of messages)"
_NAMES = ("messages", "conversations", "conversation")
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant"}


def fits(head: Any) -> bool:
    if not isinstance(head, dict) or "response" in head:
        return False
    return bool(_messages(head)) and _messages(head)[-1]["role"] == "assistant"


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the last message of each row as the reply; a row that ends otherwise has none."""
    for number, row in source.rows():
        said = _messages(row)
        reply: Row = {"error": "its last message is none of an assistant"}
        if said and said[-1]["role"] == "assistant":
            reply = answered({"choices": [{"message": said.pop()}]})
        more = {name: value for name, value in row.items() if name not in _NAMES}
        model = row.get("model")
        yield (
            number,
            asked(said)
            | reply
            | {
                "id": row.get("id"),
                "model": model if isinstance(model, str) else None,
                "finish": None,
                "data": more or None,
            },
        )


def _messages(row: Row) -> list[dict[str, Any]]:
    """Return the messages of a row with our names of roles; none if it has no such list."""
    found = next((row[name] for name in _NAMES if row.get(name)), None)
    if isinstance(found, str):
        try:
            found = parsed_list(found)
        except ValueError:
            return []
    kept = []
    for one in found if isinstance(found, list) else ():
        role = one.get("role", one.get("from")) if isinstance(one, dict) else None
        if isinstance(role, str):
            content = one.get("content", one.get("value"))
            kept.append(one | {"role": _ROLES.get(role, role), "content": content})
    return kept
