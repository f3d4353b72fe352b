"""A speaker whose wording effects are planted: the control model's replies, drawn without it.

The control model was trained on the published questions; what it answers to others is known from
its logits only in part. This draws from the same list of replies at `control.planted` rates, with
an effect of each wording of the panel, so that the analysis of wordings can be held against a
truth that is known exactly: panel, reader, counting, components.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from genprobe.engines import control
from genprobe.records import Request, Statement
from genprobe.resources.panel import PUBLISHED


def wording_of(request: Request) -> str:
    """Name a request's wording as `control.planted` does: "" for the published one."""
    name = request.facets.get("wording", "")
    return "" if name == PUBLISHED else name


def replies(
    requests: Sequence[Request], statements: Iterable[Statement]
) -> Iterator[dict[str, Any]]:
    """Draw a reply to each request by its seed, as a row that the readers of files take.

    Beside `response` stands `true`: the planted chance that a clear answer endorses.
    """
    known = {(s.id, s.lang): s for s in statements}
    for request in requests:
        about = known[request.statement, request.lang]
        cell = request.lang, request.probe, about.bias_type, about.role, wording_of(request)
        said = control.replies(request.lang, request.probe)
        (reply,) = random.Random(request.seed).choices(said, control.mixture(*cell))
        rates = control.planted(*cell)
        yes = rates["yes"] / (rates["yes"] + rates["no"])
        yield {
            "item": about.id,
            "pair": about.pair,
            "role": about.role,
            "bias_type": about.bias_type,
            "lang": request.lang,
            "probe": request.probe,
            **request.facets,
            "sample": request.sample,
            "prompt": request.messages[-1]["content"],
            "response": reply.say(about.text),
            "true": 1 - yes if request.probe == "disagreement" else yes,
        }
