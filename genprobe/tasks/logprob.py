"""Pairs of sentences, or choices, scored by their log-probability under a model.

Of `Ask` it reads besides model, languages, data, limit, engine and out:
scorers: of `outcomes.preferences.SCORERS`; the defaults that fit model and data where empty.
context: what stands before every sentence of a pair; for an encoder-decoder model the encoder's
prompt. prefix: a word put before every sentence of a table. plain: score a chat model as a plain
language model, without its template.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe.datasets import choices, pairs
from genprobe.errors import Caution, InputError
from genprobe.outcomes import preferences
from genprobe.records import digest
from genprobe.runs.run import Run
from genprobe.runs.spec import WHO
from genprobe.tasks import Ask, Asked, Table, Task
from genprobe.tasks.pipeline import Note
from genprobe.text import natural, whole


def prepare(ask: Ask) -> Asked:
    """Check what is to be scored; what the model can do is checked when it is loaded."""
    items, notes = pairs.load(ask.data, ask.langs or None, ask.prefix)
    for line in notes:
        ask.note(line)
    items = preferences.first(items, ask.limit)
    are_choices = any(map(choices.is_choice, items))
    preferences.check(ask.scorers, are_choices)
    if ask.context and are_choices:
        raise InputError("choices have a context of their own; --context goes with pairs")
    if whole(ask.context) != ask.context:
        raise InputError("the context holds half a character; give it in UTF-8")

    def names(engine: Any) -> list[str]:
        return list(dict.fromkeys(ask.scorers)) or preferences.default(engine.passes, are_choices)

    def spec(engine: Any) -> dict[str, Any]:
        identity = engine.identity
        if identity.chat_template != "none" and not ask.plain and not ask.control:
            raise InputError(
                f"{ask.model or identity.model} is a chat model, and its template is no part of "
                "these sentences; --plain scores them as plain text, and the run says so"
            )
        hashes = {"context": digest(ask.context)} if ask.context else {}
        if are_choices:
            languages = dict.fromkeys(item.lang for item in items)
            hashes |= {code: choices.wording(code).hash for code in languages}
        return {
            "engine_args": {"first": engine.first},
            "pack": preferences.PACK,
            "pack_hashes": hashes,
            "data": ask.data if ask.data in pairs.DATA else Path(ask.data).name,
            "probes": tuple(names(engine)),
            "decode": ("score",),
            "temperature": None,
            "top_p": None,
            "max_tokens": None,
            "seed": 0,
            "samples": 1,
        }

    def requests(engine: Any) -> Any:
        return preferences.requests(items, names(engine), engine.passes, ask.context)

    columns = preferences.columns(items) if ask.by else ()
    return Asked(items, requests, spec, columns=columns, after=tell_unknown)


def tell_unknown(run: Run, engine: Any, note: Note) -> None:
    """Note how many texts hold the unknown token: one token for all that the model has none for,
    so that their values say little."""
    langs = {request.id: request.lang for request in run.requests()}
    held = Counter(
        langs[record.request]
        for record in run.logprobs()
        if any(engine.unknown in part["tokens"] for part in record.continuations)
    )
    if held:
        of = Counter(langs.values())
        parts = ", ".join(f"{lang} {n} of {of[lang]}" for lang, n in held.items())
        what = "texts with what the model has no token for, of which its values say little"
        note(Caution(f"{what}: {parts}"))


def checkpoints(model: str) -> list[str]:
    """List the model folders in a folder, step-9 before step-10; none where it is a model."""
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = [str(path.parent) for path in folder.glob("*/config.json")]
    return sorted(found, key=natural)


def every_model(ask: Ask, revisions: Sequence[str] = ()) -> Iterator[Ask]:
    """Make one Ask of each model in a folder of checkpoints, and of each revision.

    Where there are several, each gets a folder of its own name in `ask.out`.
    """
    found = checkpoints(ask.model) if ask.model else []
    named: Sequence[str | None] = revisions or (ask.options.revision,)
    for model in found or [ask.model or ""]:
        for revision in named:
            parts = [Path(model).name] if found else []
            parts += [str(revision).replace("/", "-")] if revisions else []
            yield dataclasses.replace(
                ask,
                model=model or None,
                options=dataclasses.replace(ask.options, revision=revision),
                out=Path(ask.out) / "-".join(parts) if ask.out else None,
            )


def kind_of(run: Run) -> str:
    """Return `choices` or `pairs`."""
    return "choices" if any(map(choices.is_choice, run.statements())) else "pairs"


TASK = Task(
    name="logprob",
    about="Pairs of sentences, or choices, by what a model prefers.",
    prepare=prepare,
    tables=(
        Table(
            "pairs",
            "What is preferred",
            "Of the pairs: how often the stereotype was likelier than its contrast. One half is no "
            "preference.",
            main=("win-rate", "bias-score"),
            across=("scorer",),
            place=40,
            says=("prefers of", "prefer of"),
            replies="preferences",
        ),
        Table(
            "choices",
            "Choices",
            "Of the questions: how often the right option was the likeliest.",
            main=("accuracy", "bbq-bias"),
            across=("condition",),
            place=41,
            says=("prefers of", "prefer of"),
            replies="choices",
        ),
    ),
    kind_of=kind_of,
    asked="scored on {statements} in {languages} by log-probability ({probes})",
    thing="item",
    unit="pass",
    scores=True,
    paradigm="prefers",
    may_differ=(*WHO, "probes"),
    row=("scorer", "lang", "item", "contrast"),
)
