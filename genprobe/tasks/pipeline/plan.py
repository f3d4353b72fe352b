"""Plan the requests of a run: every statement in every probe, decode and sample."""

from __future__ import annotations

import bisect
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from genprobe.errors import InputError
from genprobe.records import Request, Statement
from genprobe.resources import panel, registry
from genprobe.resources.packs import Pack, first_of
from genprobe.runs.places import number

Drawn = tuple[Statement, list[panel.Way]]


class Plan(Sequence[Request]):
    """The requests of a run, in their order; each is made when it is read, and not kept."""

    def __init__(self, drawn: Iterable[Drawn], asked: Callable[..., Iterator[Request]]) -> None:
        """Make every request once, to check it.

        drawn: the statements with the ways to ask about them. asked: makes the requests of one.
        Raises InputError for the same request twice.
        """
        import numpy as np

        self._drawn, self._asked = list(drawn), asked
        self._ends: list[int] = []  # number of requests up to each statement
        ids = array("Q")
        for one in self._drawn:
            ids.extend(number(request.id) for request in asked(*one))
            self._ends.append(len(ids))
        every = np.frombuffer(ids, np.uint64) if ids else np.zeros(0, np.uint64)
        first = np.unique(every, return_index=True)[1]
        if len(first) < len(ids):
            at = int(np.setdiff1d(np.arange(len(ids)), first)[0])
            statement = self._drawn[bisect.bisect_right(self._ends, at)][0]
            raise InputError(
                f"statement {statement.id!r} ({statement.lang}) is given twice with the same text; "
                "remove one"
            )

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Request]:
        return itertools.chain.from_iterable(self._asked(*one) for one in self._drawn)

    @overload
    def __getitem__(self, at: int) -> Request: ...
    @overload
    def __getitem__(self, at: slice) -> list[Request]: ...
    def __getitem__(self, at: int | slice) -> Request | list[Request]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        block = bisect.bisect_right(self._ends, at)
        before = self._ends[block - 1] if block else 0
        return next(itertools.islice(self._asked(*self._drawn[block]), at - before, None))


def plan(
    statements: Iterable[Statement],
    pack: Pack,
    probes: Sequence[str],
    seed: int,
    samples: int = 1,
    decodes: Sequence[str] = ("free",),
    vary: panel.Vary = panel.Vary(),  # noqa: B008 - frozen
    system: str = "",
    thoughts: bool = False,
) -> Plan:
    """Plan every statement in every probe, in every way drawn for it (`panel.drawn`).

    Each is planned in every decode and `samples` times. Probabilities are not sampled, so they are
    requested once, unless sampled thoughts come before them (`thoughts`). system: a system prompt,
    put after that of the pack and before that of a persona. Raises InputError for a language or
    probe that the pack lacks, or the same request twice.
    """
    for probe in probes:
        if probe not in pack.probes:
            raise registry.unknown("probe", probe, list(pack.probes))
    drawn = list(panel.drawn(statements, pack, vary, seed))
    for statement, _ in drawn:
        if first_of(statement.lang) not in pack.wordings:
            raise InputError(
                f"statement {statement.id!r}: the pack {pack.name!r} has no wordings in "
                f"{statement.lang!r}; it has {', '.join(pack.wordings)}"
            )

    def asked(statement: Statement, ways_of: list[panel.Way]) -> Iterator[Request]:
        ways = [
            (probe, way, decode)
            for probe in probes
            for way in panel.ways(pack, statement.lang, probe, ways_of)
            for decode in decodes
        ]
        for probe, way, decode in ways:
            messages = [{"role": "user", "content": way.wording.ask(statement.text)}]
            texts = (pack.system, system, way.system(statement.lang))
            if before := "\n\n".join(text for text in texts if text):
                messages.insert(0, {"role": "system", "content": before})
            options = pack.options(way.lang, decode, way.answers)
            for sample in range(1 if decode == "logprob" and not thoughts else samples):
                yield Request.asked(
                    *(statement.id, statement.lang, pack.id, probe, messages),
                    base=seed,
                    sample=sample,
                    decode=decode,
                    options=options,
                    facets=way.facets(vary),
                )

    return Plan(drawn, asked)
