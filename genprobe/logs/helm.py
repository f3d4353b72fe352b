"""HELM's scenario states: `scenario_state.json` in the folder of a run.

https://github.com/stanford-crfm/helm (benchmark/adaptation/scenario_state.py, request_state.py)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genprobe.logs import Row, Source, asked, list_of, sampling, table_of, text_of

ABOUT = "scenario states of HELM (scenario_state.json)"


def fits(head: Any) -> bool:
    return isinstance(head, dict) and {"adapter_spec", "request_states"} <= head.keys()


def read(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the completions; a request for several has as many rows."""
    states = source.document["request_states"]
    for number, state in enumerate(states if isinstance(states, list) else (), 1):
        if isinstance(state, dict):
            for row in _rows(state):
                yield number, row


def _rows(state: dict[str, Any]) -> Iterator[Row]:
    request, result, instance = (table_of(state, n) for n in ("request", "result", "instance"))
    messages = request.get("messages")
    about = asked(messages) if messages else {"prompt": request.get("prompt")}
    about |= sampling(request)
    about |= {
        "id": instance.get("id"),
        "model": request.get("model_deployment") or request.get("model"),
        "target": _target(instance),
        "data": {name: instance[name] for name in ("split", "sub_split") if instance.get(name)}
        | table_of(instance, "extra_data")
        or None,
    }
    found = result.get("completions")
    if not result.get("success", True) or not isinstance(found, list) or not found:
        yield about | {"error": str(result.get("error") or "no completion")[:200]}
        return
    for sample, one in enumerate(found):
        one = one if isinstance(one, dict) else {}
        reason = table_of(one, "finish_reason").get("reason")
        thinking = table_of(one, "thinking").get("text")
        yield about | {
            "response": one["text"]
            if isinstance(one.get("text"), str)
            else text_of(one.get("text")),
            "reasoning": thinking if isinstance(thinking, str) else None,
            "finish": reason if isinstance(reason, str) else None,
            "sample": sample,
        }


def _target(instance: dict[str, Any]) -> str | None:
    """Return the text of the only reference that is marked as correct."""
    right = [
        table_of(one, "output").get("text")
        for one in list_of(instance, "references")
        if "correct" in list_of(one, "tags")
    ]
    return right[0] if len(right) == 1 and isinstance(right[0], str) else None
