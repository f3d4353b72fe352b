"""lm-evaluation-harness: `samples_*.jsonl`, one line a document (`--log_samples`).

`resps` is a list with a list of replies for each request; `filtered_resps` is what the filter cut
out of them. The model stands in the `results*.json` beside it.
https://github.com/EleutherAI/lm-evaluation-harness (loggers/evaluation_tracker.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.limits import parsed_list
from genprobe.logs import Row, Source, asked, first_score, of_scored, sampling, table_of

ABOUT = "samples of lm-eval (samples_*.jsonl)"
_NAMES = {"max_tokens": "max_gen_toks"}


def fits(head: Any) -> bool:
    return isinstance(head, dict) and {"doc", "resps", "arguments"} <= head.keys()


def made(source: Source) -> tuple[Any, str] | None:
    """Return (model, task) and the date in the name of a file of samples."""
    named = re.fullmatch(r"samples_(.+)_(\d{4}-\d\d-\d\dT.+)", source.file.stem)
    return ((_model(source), named[1]), named[2]) if named else None


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the replies; a document with several has as many rows."""
    model = _model(source)
    seen: set[tuple[str, int]] = set()
    for number, row in source.rows():
        call = _call(row.get("arguments"))
        # Each filter of the harness writes every reply once more.
        replies = list(_replies(row))
        for sample, (reply, cut) in enumerate(replies):
            key = repr(row.get("doc_id")), sample
            if row.get("doc_id") is not None and key in seen:
                continue
            seen.add(key)
            names = row.get("metrics")
            names = names if isinstance(names, list) else []
            metric, score = first_score({str(name): row.get(str(name)) for name in names})
            scored = {"their_score": score, "their_metric": metric}
            yield (
                number,
                _prompt(call[0])
                | sampling(call[1], _NAMES)
                | {
                    "id": row.get("doc_id"),
                    "model": model,
                    "response": reply if isinstance(reply, str) else None,
                    "error": None if isinstance(reply, str) else "no text: a score of options",
                    "sample": sample,
                    "target": row.get("target"),
                    "their_answer": cut if isinstance(cut, str) else None,
                    "data": row.get("doc") if isinstance(row.get("doc"), dict) else None,
                }
                | of_scored(scored, reply, [one for one, _ in replies], _only(row)),
            )


def _model(source: Source) -> str | None:
    """Return the model that the results beside the samples name; else the name of the folder.

    Of several results, those of the same date count first; others, if they name one model.
    """
    date = source.path.stem.rpartition("_")[2] if isinstance(source.path, Path) else ""
    names = []
    for other in source.beside("results*.json"):
        try:
            name = table_of({"": other.document}, "").get("model_name")
        except InputError:
            continue
        if isinstance(name, str):
            if str(other.path).endswith(f"_{date}.json"):
                return name
            names.append(name)
    folder = source.folders[-1] if source.folders else None
    return names[0] if len(set(names)) == 1 else folder


def _call(arguments: Any) -> tuple[Any, Any]:
    """Return the prompt and the settings of the first request of a document."""
    first = arguments
    if isinstance(arguments, dict):
        first = next(iter(arguments.values()), None)
    elif isinstance(arguments, list):
        first = arguments[0] if arguments else None
    if isinstance(first, dict):
        return first.get("arg_0"), first.get("arg_1")
    parts = first if isinstance(first, list) else [first]
    return (*parts, None, None)[0], (*parts, None, None)[1]


def _prompt(prompt: Any) -> Row:
    """Return the columns of a prompt; one made for a chat is a list of messages, or its JSON."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt.startswith('[{"role"'):
        try:
            return asked(parsed_list(prompt))
        except ValueError:
            pass
    if isinstance(prompt, list):
        return asked(prompt)
    return {"prompt": prompt if isinstance(prompt, str) else None}


def _only(row: Row) -> Any:
    """Return the only text that a filter left of the replies, such as the first, or a majority."""
    cut = row.get("filtered_resps")
    while isinstance(cut, list) and len(cut) == 1:
        cut = cut[0]
    return cut


def _replies(row: Row) -> Iterator[tuple[Any, Any]]:
    """Yield each reply with what the filter cut out of it."""
    found = row.get("resps")
    lists = found if isinstance(found, list) else [found]
    replies = [reply for one in lists for reply in (one if isinstance(one, list) else [one])]
    cut = row.get("filtered_resps")
    cuts = cut if isinstance(cut, list) else [cut]
    if len(cuts) == 1 and isinstance(cuts[0], list):
        cuts = cuts[0]
    for place, reply in enumerate(replies):
        yield reply, cuts[place] if len(cuts) == len(replies) else None
