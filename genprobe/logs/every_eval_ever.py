"""Every Eval Ever: one line a sample (`*_samples.jsonl`), by its instance-level schema.

https://github.com/evaleval/every_eval_ever (instance_level_eval.schema.json)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from genprobe.logs import Row, Source, answered, asked, of_scored, table_of

ABOUT = "samples of Every Eval Ever (JSONL)"


def fits(head: Any) -> bool:
    return (
        isinstance(head, dict)
        and {"evaluation_id", "model_id", "input", "evaluation"} <= head.keys()
    )


def made(source: Source) -> tuple[Any, str] | None:
    """Return the evaluation and its model, and the time, which ends the name of the evaluation."""
    named = str(source.head.get("evaluation_id")).rpartition("/")
    what = named[0], str(source.head.get("model_id")), str(source.head.get("evaluation_name"))
    return (what, f"{float(named[2]):020.6f}") if re.fullmatch(r"\d+(\.\d+)?", named[2]) else None


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the replies; a sample with several has as many rows."""
    for number, row in source.rows():
        given, output, score = (table_of(row, n) for n in ("input", "output", "evaluation"))
        about: Row = {"prompt": given.get("formatted") or given.get("raw")}
        messages = row.get("messages")
        replies = output.get("raw")
        if isinstance(messages, list):  # of several turns
            said = [one for one in messages if isinstance(one, dict)]
            roles = [one.get("role") for one in said]
            # Earlier replies may be examples.
            at = max((n for n, role in enumerate(roles) if role == "assistant"), default=len(said))
            about = asked(said[:at])
            replies = [said[at].get("content") if at < len(said) else None]
        thought = output.get("reasoning_trace")
        thought = thought[0] if isinstance(thought, list) and len(thought) == 1 else thought
        references = given.get("reference")
        references = references if isinstance(references, list) else [references]
        parsers = row.get("answer_attribution")
        last = parsers[-1] if isinstance(parsers, list) and parsers else None
        cut = last.get("extracted_value") if isinstance(last, dict) else None
        right = score.get("is_correct")
        scored = {
            "their_answer": cut if isinstance(cut, str) else None,
            "their_score": right if isinstance(right, bool) else score.get("score"),
            "their_metric": row.get("evaluation_name"),
        }
        replies = replies if isinstance(replies, list) else [replies]
        for sample, reply in enumerate(replies):
            found = about | _text(reply)
            yield (
                number,
                found
                | {
                    "id": row.get("sample_id"),
                    "model": row.get("model_id"),
                    "reasoning": thought if isinstance(thought, str) else None,
                    "sample": sample,
                    "target": references[0] if len(references) == 1 else None,
                    "data": table_of(row, "metadata") or None,
                }
                | of_scored(scored, reply, replies, cut),
            )


def _text(reply: Any) -> Row:
    try:
        text = answered({"choices": [{"message": {"content": reply}}]})["response"]
    except (LookupError, TypeError, AttributeError):
        text = None
    return {"response": text, "error": None if text is not None else "no text"}
