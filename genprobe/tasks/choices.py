"""Choices by generation: a context, a question, two to six options (BBQ and its family, PBBQ).

Besides the common fields of `Ask` it reads: probes (the frames: how question and options are
written), wordings, personas, instruct, decodes, orders (one of `datasets.frames.ORDERS`), shots (a
file of examples that are put before every question), unknowns (whether each choice is also asked
without its unknown option, and with that in other words) and system.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from genprobe.datasets import choices, frames, pairs
from genprobe.engines import Sampling
from genprobe.errors import Caution, InputError
from genprobe.outcomes import chosen, preferences
from genprobe.records import DECODES, FACETS, Request, Statement, digest
from genprobe.resources import packs, panel, registry
from genprobe.runs.run import Run
from genprobe.runs.spec import WHO
from genprobe.tasks import Ask, Asked, Second, Table, Task


def prepare(ask: Ask) -> Asked:
    """Check the choices, frames, orders and examples of an Ask."""
    decodes = tuple(decode for decode in DECODES if decode in ask.decodes) or ("free",)
    if ask.engine == "replay" and decodes != ("free",):
        raise InputError("recorded replies are read as free replies; leave --decode out")
    if ask.control and "free" in decodes:
        raise InputError(
            "the control model cannot answer questions with options in a free reply; name a model "
            "with --model, or try --decode choice or logprob"
        )
    if ask.data == "builtin":
        raise InputError("choices: give data: `bbq`, or a table of choices or pairs")
    if ask.orders not in frames.ORDERS:
        raise registry.unknown("order", ask.orders, frames.ORDERS)
    items = _items(ask)
    unread = sorted({item.lang for item in items if packs.tier(item.lang) != "read"})
    if unread and "free" in decodes:
        how = "by the marks and texts of the options alone, and how well was never measured"
        cure = "read some yourself, name a --second-reader, or give --decode choice or logprob"
        ask.note(Caution(f"{', '.join(unread)}: replies are read {how}; {cure}"))
    shots = _shots(ask)
    sampling, samples = ask.sampling or TASK.sampling, ask.samples or TASK.samples
    if samples > 1 and not sampling.temperature and ask.engine != "replay":
        raise InputError(
            f"{samples} samples at temperature 0 are {samples} times the same reply; raise "
            "--temperature"
        )
    probes = tuple(dict.fromkeys(ask.probes)) or ("letters",)
    vary, langs = ask.vary, list(dict.fromkeys(item.lang for item in items))
    put = list(dict.fromkeys(panel.put_in(lang, one) for lang in langs for one in vary.instruct))
    for lang in put:
        for probe in probes:
            if probe not in frames.frames(lang):
                raise registry.unknown(f"frame in {lang}", probe, list(frames.frames(lang)))
    names = dict.fromkeys(name for decode in decodes for name in TASK.judges[decode])
    judges = [registry.module("judges", name).make() for name in names]
    requests = plan(items, probes, decodes, ask.orders, shots, ask.seed, samples, vary, ask.system)

    def spec(engine: Any) -> dict[str, Any]:
        recorded = engine.identity.engine == "replay"
        drawn: dict[str, Any] = dataclasses.asdict(sampling)
        hashes = {lang: frames.file_hash(lang) for lang in put} | {"orders": ask.orders}
        hashes |= panel.persona_hashes(langs, vary)
        if vary.wordings != panel.PUBLISHED:
            hashes |= {f"{lang}/{panel.FOLDER}": frames.panel_hash(lang) for lang in put}
        if any("original_id" in item.extra for item in items):
            hashes["likelier"] = packs.file_hash(choices.LIKELIER)
        if shots:
            hashes["shots"] = digest([vars(shot) for shot in shots])
        return {
            "pack": frames.PACK,
            "pack_hashes": hashes,
            **vary.fields(),
            "data": ask.called,
            "probes": probes,
            "decode": ("recorded",) if recorded else decodes,
            **(dict.fromkeys(drawn) if recorded else drawn),
            "seed": ask.seed,
            "samples": samples,
            "system": digest(ask.system, 12) if ask.system else "",
        }

    return Asked(items, lambda engine: requests, spec, judges, sampling)


def _items(ask: Ask) -> list[Statement]:
    """Read the choices of `ask.data` in the requested languages, at most `ask.limit` of each.

    Of a pair of sentences it is asked which is likelier.
    """
    items, notes = pairs.load(ask.data, ask.langs or None)
    for line in notes:
        ask.note(line)
    items = list(pairs.first(items, ask.limit))
    if any(map(choices.is_choice, items)):
        return choices.unknowns(items) if ask.unknowns else items
    if ask.orders == "given":
        raise InputError(
            f"{ask.data} holds pairs of sentences, and the order of the data would put every "
            "stereotype first; leave --orders out"
        )
    if ask.unknowns:
        raise InputError(f"{ask.data} holds pairs, without unknown options; leave --unknowns out")
    return choices.of_pairs(preferences.pairs(items))


def _shots(ask: Ask) -> list[Statement]:
    """Read the examples of `ask.shots`. Raises InputError for one without a right answer."""
    if not ask.shots:
        return []
    found, notes = pairs.load(str(ask.shots))
    for line in notes:
        ask.note(f"{ask.shots}: {line}")
    for shot in found:
        if not choices.is_choice(shot) or shot.extra["label"] is None:
            raise InputError(
                f"{ask.shots}: an example must be a choice with a 'label'; {shot.id!r} is not"
            )
    return found


def plan(
    items: Sequence[Statement],
    probes: Sequence[str],
    decodes: Sequence[str],
    orders: str,
    shots: Sequence[Statement],
    seed: int,
    samples: int = 1,
    vary: panel.Vary = panel.Vary(),  # noqa: B008 - frozen
    system: str = "",
) -> list[Request]:
    """Plan the requests for choices: one for each frame, decode, way, order of options and sample.

    The ways to put a question (wording, persona, language) are drawn by `panel.hands`. shots:
    examples; a choice gets those in its language. vary: wordings, personas and languages of
    the question. system: a system prompt, put before that of a persona. Raises InputError for a
    choice that occurs twice.
    """
    requests: dict[str, Request] = {}
    further = () if vary.wordings == panel.PUBLISHED else frames.wordings()
    for item, ways in panel.hands(items, further, vary, seed):
        mine = [shot for shot in shots if shot.lang == item.lang]
        for probe, decode, (way, frame) in itertools.chain.from_iterable(
            ((probe, decode, one) for one in frames.worded(probe, ways))
            for probe, decode in itertools.product(probes, decodes)
        ):
            texts = (system, panel.persona(item.lang, way.persona))
            said = "\n\n".join(text for text in texts if text)
            before = [{"role": "system", "content": said}] if said else []
            before += frames.turns(frame, mine)
            for order in frames.orders(len(frames.options(item)), orders):
                messages = [*before, {"role": "user", "content": frames.put(frame, item, order)}]
                options = {str(at): _ways(frame, item, order, at, decode) for at in order}
                for sample in range(1 if decode == "logprob" else samples):
                    # Ids ignore the order of `options`; the messages differ.
                    request = Request.asked(
                        *(item.id, item.lang, frames.PACK, probe, messages),
                        base=seed,
                        sample=sample,
                        decode=decode,
                        options=options,
                        facets=panel.facets(vary, way.wording, "", way.persona, way.lang),
                    )
                    if request.id in requests:
                        raise InputError(
                            f"choice {item.id!r} ({item.lang}) is given twice; remove one"
                        )
                    requests[request.id] = request
    return list(requests.values())


def _ways(
    frame: frames.Frame, item: Statement, order: Sequence[int], at: int, decode: str
) -> list[str]:
    """Return the names of an option that a reply may be restricted to or scored for."""
    if decode == "free":
        return [frames.options(item)[at]]
    name = frames.said(frame, item, order, at)
    return [f" {name}", name] if decode == "logprob" else [name]


def kind_of(run: Run) -> str:
    """Return `likelier` for pairs of sentences, else `chosen`."""
    first = next(iter(run.statements()), None)
    return "likelier" if first is not None and "original_id" in first.extra else "chosen"


TASK = Task(
    name="choices",
    about="Questions with options: which one is chosen.",
    prepare=prepare,
    judges={
        "free": ("choice", "refusal", "language"),
        "choice": ("choice",),
        "logprob": ("likeliest",),
    },
    tables=(
        Table(
            "chosen",
            "Choices by answer",
            "Of the questions: how often the right option was chosen.",
            main=("accuracy", "bbq-bias"),
            across=("condition",),
            place=15,
            read=("chosen", "choice"),
        ),
        Table(
            "likelier",
            "Pairs by which sentence is called likelier",
            "Of the pairs: how often the stereotype was called likelier than its contrast. One "
            "half is no preference.",
            main=("stereotype-chosen",),
            place=16,
            read=("chosen", "choice"),
        ),
    ),
    kind_of=kind_of,
    asked="asked to choose in {statements} in {languages}, in the frames {probes}",
    probe="frame",
    thing="choice",
    sampling=Sampling(max_tokens=64),
    paradigm="says",
    may_differ=(*WHO, "decode", "probes"),
    row=("decode", "lang", "probe", "item", *FACETS, "sample"),
    rows=chosen.UNIT,
    second=Second("choice", "choice", asks="choice", none=""),
)
