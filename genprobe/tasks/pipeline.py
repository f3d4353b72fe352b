"""From statements to judgments: plan the requests, ask them, judge what came back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from genprobe.engines import Engine, Sampling
from genprobe.errors import EngineError, InputError
from genprobe.judges import Item, Judge, verdicts
from genprobe.records import (
    Failure,
    Judgment,
    LogProb,
    Request,
    Response,
    Statement,
    derive_seed,
    request_id,
)
from genprobe.resources import registry
from genprobe.resources.packs import Pack
from genprobe.runs.run import Run


def plan(
    statements: Iterable[Statement],
    pack: Pack,
    probes: Sequence[str],
    seed: int,
    samples: int = 1,
    decodes: Sequence[str] = ("free",),
) -> list[Request]:
    """The requests: every statement in every probe, in every decode, `samples` times, in this
    order. Probabilities are not drawn: they are asked for once.

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
        for probe, decode in itertools.product(probes, decodes):
            messages = [{"role": "user", "content": wordings[probe].ask(statement.text)}]
            if pack.system:
                messages.insert(0, {"role": "system", "content": pack.system})
            options = pack.options(statement.lang, decode)
            for sample in range(1 if decode == "logprob" else samples):
                asked = (messages, sample, decode, options)
                name = request_id(statement.id, statement.lang, pack.id, probe, *asked)
                if name in requests:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is there twice with the "
                        "same text; remove one"
                    )
                requests[name] = Request(
                    id=name,
                    statement=statement.id,
                    lang=statement.lang,
                    pack=pack.id,
                    probe=probe,
                    messages=messages,
                    sample=sample,
                    seed=derive_seed(seed, name, sample),
                    decode=decode,
                    options=options,
                )
    return list(requests.values())


def pending(run: Run) -> list[Request]:
    """The requests without an answer, in the order of the plan. A failure is asked again."""
    answered = set(run.answered())
    return [request for request in run.requests() if request.id not in answered]


# Decodes whose answer is a text; that of the others are log-probabilities.
WRITTEN = ("free", "choice")


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
    answers what was not asked, answers twice or in another way than asked, or leaves requests
    unanswered.
    """
    asked = pending(run)
    waiting = {request.id: request.decode for request in asked}
    total = sum(1 for _ in run.requests())
    counts = Counts(done=0, failed=0, already=total - len(asked), total=total)
    name = engine.identity.engine
    try:
        for record in engine.generate(asked, sampling) if asked else ():
            if record.request not in waiting:
                raise EngineError(f"engine {name!r} answered {record.request} unasked or twice")
            decode = waiting.pop(record.request)
            if not isinstance(record, Failure | (Response if decode in WRITTEN else LogProb)):
                raise EngineError(f"engine {name!r} answered {record.request} with another kind")
            run.append(record)
            if isinstance(record, Failure):
                counts = counts._replace(failed=counts.failed + 1)
            else:
                counts = counts._replace(done=counts.done + 1)
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
    """Judge every answer of a run that a judge reads; judge name -> number of judgments.

    They are written in the order of the plan, so that a run that was killed and resumed has the
    same files, byte for byte, as one that was not. `progress` is called with the judge's name
    after each.
    """
    return {
        judge.name: run.write_judgments(
            judge.name, judge.signature, _judge(run, judge, progress), judge.reads
        )
        for judge in judges
    }


def _judge(run: Run, judge: Judge, progress: Callable[[str], None] | None) -> Iterator[Judgment]:
    for request, verdict in verdicts(judge, _items(run, judge)):
        yield Judgment(
            request=request,
            judge=judge.name,
            label=verdict.label,
            score=verdict.score,
            rule=verdict.rule,
            evidence=verdict.evidence,
            fields=verdict.fields,
        )
        if progress:
            progress(judge.name)


def _items(run: Run, judge: Judge) -> Iterator[tuple[str, Item]]:
    """The id of each request whose answer the judge reads, and what it sees of it."""
    for request, answer in run.exchanges():
        if request.decode not in judge.reads:
            continue
        prompt = next(m["content"] for m in reversed(request.messages) if m["role"] == "user")
        if isinstance(answer, LogProb):
            yield request.id, Item(request.lang, request.probe, prompt, "", answer.continuations)
        else:
            yield request.id, Item(request.lang, request.probe, prompt, answer.text)
