"""Plan the requests of a run: every statement in every probe, decode and sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from genprobe.errors import InputError
from genprobe.records import Request, Statement
from genprobe.resources import panel, registry
from genprobe.resources.packs import Pack, first_of


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
) -> list[Request]:
    """Plan every statement in every probe, in every way drawn for it (`panel.drawn`).

    Each is planned in every decode and `samples` times. Probabilities are not sampled, so they are
    requested once, unless sampled thoughts come before them (`thoughts`). system: a system prompt,
    put after that of the pack and before that of a persona. Raises InputError for a language or
    probe that the pack lacks, or the same request twice.
    """
    for probe in probes:
        if probe not in pack.probes:
            raise registry.unknown("probe", probe, list(pack.probes))
    requests: dict[str, Request] = {}
    for statement, drawn in panel.drawn(statements, pack, vary, seed):
        if first_of(statement.lang) not in pack.wordings:
            raise InputError(
                f"statement {statement.id!r}: the pack {pack.name!r} has no wordings in "
                f"{statement.lang!r}; it has {', '.join(pack.wordings)}"
            )
        ways = [
            (probe, way, decode)
            for probe in probes
            for way in panel.ways(pack, statement.lang, probe, drawn)
            for decode in decodes
        ]
        for probe, way, decode in ways:
            messages = [{"role": "user", "content": way.wording.ask(statement.text)}]
            texts = (pack.system, system, way.system(statement.lang))
            if before := "\n\n".join(text for text in texts if text):
                messages.insert(0, {"role": "system", "content": before})
            options = pack.options(way.lang, decode, way.answers)
            for sample in range(1 if decode == "logprob" and not thoughts else samples):
                request = Request.asked(
                    *(statement.id, statement.lang, pack.id, probe, messages),
                    base=seed,
                    sample=sample,
                    decode=decode,
                    options=options,
                    facets=way.facets(vary),
                )
                if request.id in requests:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is given twice with the "
                        "same text; remove one"
                    )
                requests[request.id] = request
    return list(requests.values())
