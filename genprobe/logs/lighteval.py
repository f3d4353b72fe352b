"""lighteval's details: Parquet, one row a document, in `details/MODEL/DATE/`.

New versions have the columns `doc`, `model_response` and `metric`, old ones `full_prompt`,
`predictions`, `gold` and `metrics`.
https://github.com/huggingface/lighteval (logging/info_loggers.py, models/model_output.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from genprobe.limits import parsed_list
from genprobe.logs import Row, Source, asked, first_score, of_scored, table_of

ABOUT = "details of lighteval (Parquet)"


def fits(head: Any) -> bool:
    if not isinstance(head, dict):
        return False
    return {"doc", "model_response"} <= head.keys() or {"full_prompt", "predictions"} <= head.keys()


def made(source: Source) -> tuple[Any, str] | None:
    """Return (model, task) and the date, which is the folder of a file and the end of its name."""
    date = source.folders[-1] if source.folders else ""
    task = source.file.stem.removesuffix(f"_{date}")
    return ((_model(source), task), date) if re.match(r"\d{4}-\d\d-\d\d", date) else None


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the replies; a document with several has as many rows."""
    model = _model(source)
    for number, row in source.rows():
        row = {name: _value(value) for name, value in row.items()}
        doc, said = table_of(row, "doc"), table_of(row, "model_response")
        given = said.get("input") or doc.get("query") or row.get("full_prompt")
        about = asked(given) if isinstance(given, list) else {"prompt": given}
        metric, score = first_score(row.get("metric") or row.get("metrics"))
        replies = said.get("text") or row.get("predictions")
        replies = replies if isinstance(replies, list) else [replies]
        thoughts = said.get("reasonings")
        thoughts = thoughts if isinstance(thoughts, list) else []
        cut = said.get("text_post_processed")
        cut = cut if isinstance(cut, list) else []
        for sample, reply in enumerate(replies):
            yield (
                number,
                about
                | {
                    "id": doc.get("id"),
                    "model": model,
                    "response": reply if isinstance(reply, str) else None,
                    "error": None if isinstance(reply, str) else "no text: a score of options",
                    "reasoning": thoughts[sample] if len(thoughts) == len(replies) else None,
                    "sample": sample,
                    "target": _target(doc, row),
                    "their_answer": cut[sample] if len(cut) == len(replies) else None,
                    "data": doc.get("specific") if isinstance(doc.get("specific"), dict) else None,
                }
                | of_scored({"their_score": score, "their_metric": metric}, reply, replies),
            )


def _value(value: Any) -> Any:
    """Read a value of an old version, which writes lists and objects as texts."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parsed_list(value)
        except ValueError:
            return value
    return value


def _model(source: Source) -> str | None:
    """Return the model from the path `details/ORGANISATION/MODEL/DATE/details_….parquet`."""
    parts = source.folders
    if "details" in parts[:-1]:
        return "/".join(parts[len(parts) - parts[::-1].index("details") : -1]) or None
    return None


def _target(doc: dict[str, Any], row: Row) -> str | None:
    choices, at = doc.get("choices"), doc.get("gold_index")
    at = at[0] if isinstance(at, list) and len(at) == 1 else at
    if isinstance(choices, list) and isinstance(at, int) and 0 <= at < len(choices):
        return str(choices[at]).strip()
    gold = row.get("gold")
    gold = gold[0] if isinstance(gold, list) and len(gold) == 1 else gold
    return gold if isinstance(gold, str) else None
