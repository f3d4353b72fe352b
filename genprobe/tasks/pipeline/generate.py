"""Send the planned requests of a run to an engine and store the replies."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from genprobe.engines import Engine, Sampling, short_enough
from genprobe.errors import Caution, EngineError
from genprobe.records import Failure, LogProb, Request, Response
from genprobe.runs.places import Places
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, Progress
from genprobe.text import many

# Decodes answered by a text; the others are answered by log-probabilities.
WRITTEN = ("free", "choice")
# Kinds of failures that would occur again -> description and cure.
LASTING = {
    "too-long": "too long for the model (give it a longer context, or shorter statements)",
    "too-large": "too large to be an answer (failures.jsonl names the limit, which can be raised)",
    "unscorable": "nothing that the model can score",
}


class Counts(NamedTuple):
    """The state of a run: answers (done) and failures of this call, and earlier answers."""

    done: int
    failed: int
    already: int
    total: int
    tokens: int = 0  # tokens of this call's replies, if the engine counts them
    kinds: Mapping[str, int] = {}  # kind -> number of this call's failures


def _now(record: Response | LogProb | Failure) -> Response | LogProb | Failure:
    """Return the record with the current time in it."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return type(record)(**{**vars(record), "at": at})


def left(run: Run) -> tuple[int, Counter[str]]:
    """Count the requests without an answer, and those of them that would fail again, by kind."""
    planned, *found = (run.count(name) for name in ("requests", "responses", "logprobs"))
    if planned == sum(found):
        return 0, Counter()
    answered = set(run.answered())
    kinds = {f.request: f.kind for f in run.failures() if f.request not in answered}
    lasting = Counter(kind for kind in kinds.values() if kind in LASTING)
    return planned - sum(found), lasting


def unanswered(run: Run) -> str:
    """Describe how many requests have no answer, and whether to ask again; "" if all have one."""
    count, lasting = left(run)
    if not count:
        return ""
    lost = ", ".join(f"{n} {'is' if n == 1 else 'are'} {LASTING[k]}" for k, n in lasting.items())
    what = f"{many(count, 'request')} {'has' if count == 1 else 'have'} no reply"
    if not lost:
        return f"{what}; the same command asks {'it' if count == 1 else 'them'} again"
    if again := count - lasting.total():
        return f"{what}; the same command asks {again} of them again, but {lost}"
    return f"{what}, and asking again does not help: {lost}"


def generate(
    run: Run,
    engine: Engine,
    sampling: Sampling,
    progress: Callable[[Counts], None] | None = None,
    pilot: int | None = None,
) -> Counts:
    """Send the pending requests and store each answer as it arrives.

    pilot: stop with so many answers in the run (`_drawn`); None asks for all. progress: called
    before the first answer and after each. If this is interrupted, also by Ctrl-C, the run can be
    resumed. Raises EngineError if the engine answers a request that was not sent, answers one twice
    or with another type of record, or leaves requests unanswered.
    """
    asked, total = run.pending(), run.count("requests")
    already = total - len(asked)
    if pilot is not None:
        asked = _drawn(asked, max(0, pilot - already))
    written = bytearray()

    def numbered() -> Iterator[tuple[str, int]]:
        for at, request in enumerate(asked):
            written.append(request.decode in WRITTEN)
            yield request.id, at

    places = Places(numbered())
    waiting = bytearray(b"\1") * len(asked)
    counts = Counts(done=0, failed=0, already=already, total=total)
    if progress:
        progress(counts)  # the first batch may take long
    name = engine.identity.engine
    kinds: Counter[str] = Counter()
    recorded = name == "replay"  # recorded replies keep their own time
    try:
        for record in engine.generate(asked, sampling) if asked else ():
            at = places.get(record.request)
            if at is None or not waiting[at]:
                raise EngineError(f"engine {name!r} answered {record.request} unasked or twice")
            waiting[at] = 0
            if not isinstance(record, Failure | (Response if written[at] else LogProb)):
                raise EngineError(f"engine {name!r} answered {record.request} with another kind")
            record = short_enough(record) if isinstance(record, Response) else record
            run.append(record if recorded else _now(record))
            if isinstance(record, Failure):
                kinds[record.kind] += 1
                counts = counts._replace(failed=counts.failed + 1, kinds=kinds)
            else:
                new = getattr(record, "tokens_out", 0) or 0
                counts = counts._replace(done=counts.done + 1, tokens=counts.tokens + new)
            if progress:
                progress(counts)
    finally:
        run.flush()
    if without := sum(waiting):
        raise EngineError(
            f"engine {name!r} left {without} of {len(asked)} requests unanswered; "
            "run again to ask them"
        )
    return counts


def _drawn(asked: Sequence[Request], most: int) -> list[Request]:
    """Draw requests, as evenly as can be from each language, question and way of answering.

    Ids are hashes: in their order, the requests of a cell are as if drawn by lot, always the same.
    """
    cells: dict[tuple[str, str, str], list[tuple[str, int]]] = {}
    for at, one in enumerate(asked):
        cells.setdefault((one.lang, one.probe, one.decode), []).append((one.id, at))
    turns = (
        (turn, cell, at)
        for cell, ids in enumerate(cells.values())
        for turn, (_, at) in enumerate(sorted(ids))
    )
    return [asked[at] for _, _, at in sorted(turns)[:most]]


def ask(
    run: Run,
    engine: Engine,
    sampling: Sampling,
    note: Note,
    progress: Progress,
    pilot: int | None = None,
) -> None:
    """Send the pending requests, with progress and notes. Raises EngineError if all fail.

    pilot: as for `generate`.
    """

    def step(counts: Counts) -> None:
        if hasattr(progress, "tell"):  # a progress bar, which can show more
            failed = ", ".join(f"{n} {kind}" for kind, n in counts.kinds.items())
            progress.tell(", ".join(filter(None, (f"{counts.tokens} tokens", failed))))
        progress("asking", counts.already + counts.done + counts.failed, counts.total)

    counts = generate(run, engine, sampling, step, pilot)
    if counts.already:
        note(f"{counts.already} of {counts.total} replies were there already")
    if counts.failed:
        last = list(deque(run.failures(), counts.failed))
        kinds = Counter(one.kind for one in last)
        ((kind, _),) = kinds.most_common(1)
        details = Counter(one.detail or kind for one in last if one.kind == kind)
        ((why, n),) = details.most_common(1)
        such = "such as " if n < sum(details.values()) else ""
        others = f" (and {len(last) - sum(details.values())} others)" if len(kinds) > 1 else ""
        cure = "" if kinds.keys() <= LASTING.keys() else "; the same command asks them again"
        said = f"requests failed: {such}{why[:200]}{others} ({run.folder}/failures.jsonl){cure}"
        if counts.failed == counts.total:
            raise EngineError(f"all {counts.total} {said}")
        note(Caution(f"{counts.failed} of {counts.total} {said}"))
