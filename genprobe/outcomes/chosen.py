"""Make the outcomes of asked choices: one row per choice, frame, order of options and sample.

The columns are those of choices by log-probability (`datasets.choices.outcome`), so that the same
measures count both. Additional columns: decode, probe (the frame), order (0 is the order of the
data), sample, `place` (position of the chosen option in the list, from 0), kind, `likely` (the
option of a reply that is unsure), `by_mark` and `by_text` (the two options of a mismatch), and
`left_out` (why nothing is chosen: failed, missing, several, neither, hedge, refusal, mismatch,
unsure, …).

Probabilities: for decode `logprob`, those of the options, normalised. For replies, the share of an
item's orders and samples in which the option is chosen (within one frame and decode). The ambiguous
bias score is then KoBBQ's (Jin et al. 2024, TACL, eq. 2: targets minus counters over all answers),
and the uncertainty is the entropy of a model's answers to one question asked in several ways.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from genprobe.datasets import choices, frames
from genprobe.errors import RunError
from genprobe.outcomes import preferences
from genprobe.records import Failure, Judgment, Request, Response, Statement
from genprobe.text import whole

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.runs.spec import Spec

_WITHHELD = ("likely", "by_mark", "by_text")  # columns with an option that is not counted
JUDGES = {"free": "choice", "choice": "choice", "logprob": "likeliest"}


class Readable(Protocol):
    """The part of a run that is read here."""

    spec: Spec

    def statements(self) -> Iterable[Statement]: ...
    def requests(self) -> Iterable[Request]: ...
    def responses(self) -> Iterable[Response]: ...
    def answered(self) -> Iterable[str]: ...
    def failures(self) -> Iterable[Failure]: ...
    def judges(self) -> Iterable[str]: ...
    def judgments(self, judge: str) -> Iterable[Judgment]: ...


def outcomes(run: Readable) -> pd.DataFrame:
    """Make the table of a run, in the order of its plan.

    Raises RunError if a request is about an unknown statement.
    """
    statements = {(s.id, s.lang): s for s in run.statements()}
    replies = {r.request: r.text for r in run.responses()}
    answered, failures = set(run.answered()), {f.request: f.kind for f in run.failures()}
    there = set(run.judges())
    judged = {
        name: {j.request: j for j in run.judgments(name)} if name in there else {}
        for name in {*JUDGES.values(), "refusal"}
    }
    asked: list[Statement] = []
    rows: list[dict[str, Any]] = []
    for request in run.requests():
        statement = statements.get((request.statement, request.lang))
        if statement is None:
            raise RunError(
                f"request {request.id}: no statement {request.statement!r} in {request.lang}; "
                "`genprobe verify` says what else is damaged"
            )
        failed = "failed" if request.id in failures else "missing"
        status = "" if request.id in answered else failed
        found = judged[JUDGES[request.decode]].get(request.id)
        rows.append(_row(statement, request, status, found, replies.get(request.id)))
        asked.append(statement)
    _shares(rows)
    table = preferences.facts_beside(run.spec.model, asked, rows, choices.FIELDS)
    table.insert(1, "revision", run.spec.shown)
    import pandas as pd

    # In the order of the plan, not alphabetical.
    table["decode"] = pd.Categorical(table["decode"], list(JUDGES))
    table["probe"] = pd.Categorical(table["probe"], list(run.spec.probes))
    return table


def columns(statements: Sequence[Statement]) -> list[str]:
    """List the columns that the outcomes of a run about these statements will have."""
    first = statements[0]
    order = tuple(range(len(frames.options(first))))
    request = Request(
        *("", first.id, first.lang, frames.PACK, "", [], 0, 0),
        options={str(at): [""] for at in order},
    )
    rows = [_row(first, request, "missing", None, None)]
    _shares(rows)
    return ["revision", *preferences.facts_beside("", [first], rows, choices.FIELDS)]


def _row(
    statement: Statement,
    request: Request,
    status: str,
    judgment: Judgment | None,
    reply: str | None,
) -> dict[str, Any]:
    order = tuple(map(int, request.options))
    row: dict[str, Any] = {
        "decode": request.decode,
        "probe": request.probe,
        **request.facets,
        "order": frames.order_number(order),
        "sample": request.sample,
        "request": request.id,
        "item_key": (
            *(statement.lang, statement.id, request.decode, request.probe),
            *request.facets.values(),
        ),
        **choices.outcome(statement, None),
        "place": math.nan,
        "options_listed": len(order),
        "kind": None,
        **dict.fromkeys(_WITHHELD, math.nan),
        "response": None if reply is None else whole(reply),
        "left_out": status,
    }
    if status or judgment is None:
        return row | {"left_out": status or "unjudged"}
    kind = str(judgment.fields["kind"])
    row |= {"kind": kind, "left_out": "" if judgment.label else kind}
    if judgment.label:
        row |= {"chosen": float(order[int(judgment.label)]), "place": float(judgment.label)}
    for name in _WITHHELD:
        if at := judgment.fields.get(name):
            row[name] = float(order[int(str(at))])
    p = judgment.fields.get("p")
    if isinstance(p, list) and sum(map(float, p)) > 0:  # type: ignore[arg-type]
        total = math.fsum(map(float, p))  # type: ignore[arg-type]
        masses = {at: float(mass) / total for at, mass in zip(order, p, strict=True)}  # type: ignore[arg-type]
        row |= _probabilities(row, masses)
    return row


def _probabilities(row: Mapping[str, Any], p: Mapping[int, float]) -> dict[str, float]:
    """Return the columns that follow from the probabilities of the options.

    p: number of an option -> its probability; they add up to 1.
    """
    found = {
        f"p_{name}": p.get(int(row[name]), 0.0)
        for name in ("target", "counter", "unknown")
        if not math.isnan(row[name])
    }
    two = found.get("p_target", 0.0), found.get("p_counter", 0.0)
    if min(two) > 0:
        found["log_ratio"] = math.log(two[0] / two[1])
    entropy = -math.fsum(x * math.log(x) for x in p.values() if x > 0)
    return found | {"uncertainty": abs(entropy) / math.log(row["options_listed"])}


def _shares(rows: Sequence[dict[str, Any]]) -> None:
    """Set the probabilities of replies: the shares of the answers that their item got."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["decode"] != "logprob" and not row["left_out"]:
            groups.setdefault(row["item_key"], []).append(row)
    for group in groups.values():
        count = Counter(int(row["chosen"]) for row in group)
        shares = {at: n / len(group) for at, n in count.items()}
        for row in group:
            row |= _probabilities(row, shares)
    for row in rows:
        del row["item_key"]
