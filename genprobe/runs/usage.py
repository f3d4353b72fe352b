"""Usage of a run: tokens, times, and the models named in its replies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from genprobe.runs.run import Run


class Used(NamedTuple):
    """Usage of a run; tokens are None if none were counted."""

    replies: int
    tokens_in: int | None
    tokens_out: int | None
    reasoning_tokens: int | None
    first: str  # times of the first and the last reply; "" if not recorded
    last: str
    names: dict[tuple[str, str], int]  # (model, fingerprint) -> replies


def usage(run: Run) -> Used:
    """Sum up the tokens, times and model names of a run's replies."""
    replies = 0
    sums: dict[str, int] = {}
    times: list[str] = []
    names: Counter[tuple[str, str]] = Counter()
    for reply in run.responses():
        replies += 1
        for name in ("tokens_in", "tokens_out", "reasoning_tokens"):
            value = getattr(reply, name)
            if value is not None:
                sums[name] = sums.get(name, 0) + value
        if reply.at:
            times.append(reply.at)
        if reply.model or reply.fingerprint:
            names[reply.model, reply.fingerprint] += 1
    return Used(
        replies,
        sums.get("tokens_in"),
        sums.get("tokens_out"),
        sums.get("reasoning_tokens"),
        min(times, default=""),
        max(times, default=""),
        dict(names.most_common()),
    )
