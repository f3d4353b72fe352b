"""From statements to judgments: plan the requests, ask them, judge what came back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from genprobe import registry
from genprobe.engines import Engine, Sampling
from genprobe.errors import EngineError, InputError
from genprobe.inputs import Pack
from genprobe.judges import Item, Judge
from genprobe.records import (
    Judgment,
    Request,
    Response,
    Statement,
    derive_seed,
    request_id,
)
from genprobe.store import Run


def plan(
    statements: Iterable[Statement], pack: Pack, probes: Sequence[str], seed: int, samples: int = 1
) -> list[Request]:
    """The requests: every statement in every probe, `samples` times, in this order.

    InputError for a language or probe that the pack lacks, or the same request twice.
    """
    for probe in probes:
        if probe not in pack.probes:
            raise registry.unknown("probe", probe, list(pack.probes))
    requests: dict[str, Request] = {}
    for statement in statements:
        wordings = pack.wordings.get(statement.lang)
        if wordings is None:
            raise InputError(
                f"statement {statement.id!r}: the pack {pack.name!r} has no wordings in "
                f"{statement.lang!r}; it has {', '.join(pack.wordings)}"
            )
        for probe in probes:
            messages = [{"role": "user", "content": wordings[probe].ask(statement.text)}]
            if pack.system:
                messages.insert(0, {"role": "system", "content": pack.system})
            for sample in range(samples):
                request = _request(statement, pack.id, probe, messages, sample, seed)
                if request.id in requests:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is there twice with the "
                        "same text; remove one"
                    )
                requests[request.id] = request
    return list(requests.values())


def _request(
    statement: Statement,
    pack: str,
    probe: str,
    messages: list[dict[str, str]],
    sample: int,
    seed: int,
) -> Request:
    name = request_id(statement.id, statement.lang, pack, probe, messages, sample)
    return Request(
        id=name,
        statement=statement.id,
        lang=statement.lang,
        pack=pack,
        probe=probe,
        messages=messages,
        sample=sample,
        seed=derive_seed(seed, name, sample),
    )


def pending(run: Run) -> list[Request]:
    """The requests without a response, in the order of the plan. A failure is asked again."""
    answered = {response.request for response in run.responses()}
    return [request for request in run.requests() if request.id not in answered]


class Counts(NamedTuple):
    """Where a run stands: responses and failures of now, and responses of before."""

    done: int
    failed: int
    already: int
    total: int


def generate(
    run: Run,
    engine: Engine,
    sampling: Sampling,
    progress: Callable[[Counts], None] | None = None,
) -> Counts:
    """Ask what is pending and store each answer as it comes; `progress` is called after each.

    Whatever stops it, Ctrl-C included, leaves a folder that resumes. EngineError if the engine
    answers what was not asked, answers twice, or leaves requests unanswered.
    """
    asked = pending(run)
    waiting = {request.id for request in asked}
    total = sum(1 for _ in run.requests())
    counts = Counts(done=0, failed=0, already=total - len(asked), total=total)
    name = engine.identity.engine
    try:
        for record in engine.generate(asked, sampling) if asked else ():
            if record.request not in waiting:
                raise EngineError(f"engine {name!r} answered {record.request} unasked or twice")
            waiting.remove(record.request)
            run.append(record)
            if isinstance(record, Response):
                counts = counts._replace(done=counts.done + 1)
            else:
                counts = counts._replace(failed=counts.failed + 1)
            if progress:
                progress(counts)
    finally:
        run.flush()
    if waiting:
        raise EngineError(
            f"engine {name!r} left {len(waiting)} of {len(asked)} requests unanswered; "
            "run again to ask them"
        )
    return counts


def judge(
    run: Run, judges: Iterable[Judge], progress: Callable[[str], None] | None = None
) -> dict[str, int]:
    """Judge every response; judge name -> number of judgments.

    They are written in the order of the plan, so that a run that was killed and resumed has the
    same files, byte for byte, as one that was not. `progress` is called with the judge's name
    after each.
    """
    return {
        judge.name: run.write_judgments(judge.name, judge.signature, _judge(run, judge, progress))
        for judge in judges
    }


def _judge(run: Run, judge: Judge, progress: Callable[[str], None] | None) -> Iterator[Judgment]:
    for request, response in run.exchanges():
        prompt = next(m["content"] for m in reversed(request.messages) if m["role"] == "user")
        verdict = judge(Item(request.lang, request.probe, prompt, response.text))
        yield Judgment(
            request=request.id,
            judge=judge.name,
            label=verdict.label,
            score=verdict.score,
            rule=verdict.rule,
            evidence=verdict.evidence,
            fields=verdict.fields,
        )
        if progress:
            progress(judge.name)
