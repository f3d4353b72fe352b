"""Draw replies of the control model, without running it, with planted effects of the wording.

The control model was trained only on the published questions, and its rates for other wordings are
not known exactly. Here replies are drawn from its list at `control.planted` rates, with an effect
of each wording of the panel. So the analysis of wordings (panel, reader, counting, variance
components) can be compared with a truth that is known exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from genprobe.engines import control
from genprobe.records import Request, Statement
from genprobe.resources.panel import PUBLISHED


def wording_of(request: Request) -> str:
    """Return the name of a request's wording; "" for the published one."""
    name = request.facets.get("wording", "")
    return "" if name == PUBLISHED else name


def replies(
    requests: Sequence[Request], statements: Iterable[Statement]
) -> Iterator[dict[str, Any]]:
    """Draw a reply to each request by its seed. Yields rows as in a file of replies.

    Each also has `true`: the planted probability that a clear answer endorses the statement.
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
