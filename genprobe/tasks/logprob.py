"""Pairs of sentences, or choices, scored by their log-probability under a model.

Besides model, languages, data, limit, engine and out of `Ask` it reads:
  scorers      names of `outcomes.scorers.SCORERS`; empty means those that fit model and data
  context      text before every sentence of a pair; for an encoder-decoder model, the encoder's
               input
  prefix       a word put before every sentence of a table
  plain, chat  a chat model needs one of the two. plain: score the text without the chat template.
               chat: score the text as the beginning of the model's turn, after a user's turn with
               the context (or the choice), written by the chat template
  preprocess   `rubia`: how the sentences of pairs are rewritten before scoring (`PREPROCESSES`)
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe.datasets import choices, pairs
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.outcomes import preferences, scorers
from genprobe.records import Request, Statement, digest
from genprobe.resources import registry
from genprobe.runs.run import Run
from genprobe.runs.spec import WHO
from genprobe.tasks import Ask, Asked, Table, Task
from genprobe.tasks.pipeline import Note
from genprobe.text import natural, whole

PACK = "text/1"


def prepare(ask: Ask) -> Asked:
    """Check the data and options; the model is checked when it is loaded."""
    items = _items(ask)
    are_choices = any(map(choices.is_choice, items))
    if ask.plain and ask.chat:
        raise InputError("--plain leaves the chat template out and --chat applies it; name one")
    if whole(ask.context) != ask.context:
        raise InputError("the context holds half a character; give it in UTF-8")

    def names(engine: Any) -> list[str]:
        return list(dict.fromkeys(ask.scorers)) or scorers.default(engine.passes, are_choices)

    def spec(engine: Any) -> dict[str, Any]:
        identity = engine.identity
        if identity.chat_template != "none" and not (ask.plain or ask.chat or ask.control):
            raise InputError(
                f"{ask.model or identity.model} is a chat model; give --plain to score the "
                "sentences as plain text, or --chat to score them as the model's turn"
            )
        hashes = {"context": digest(ask.context)} if ask.context else {}
        if ask.preprocess:
            hashes["preprocess"] = ask.preprocess
        if are_choices:
            languages = dict.fromkeys(item.lang for item in items)
            hashes |= {code: choices.wording(code).hash for code in languages}
        return {
            "engine_args": {"first": engine.first, **({"turn": "chat"} if ask.chat else {})},
            "pack": PACK,
            "pack_hashes": hashes,
            "data": ask.called,
            "probes": tuple(names(engine)),
            "decode": ("score",),
            "temperature": None,
            "top_p": None,
            "max_tokens": None,
            "seed": 0,
            "samples": 1,
        }

    def requests(engine: Any) -> Any:
        turn = _turn(engine) if ask.chat else None
        return plan(items, names(engine), engine.passes, ask.context, turn)

    return Asked(items, requests, spec)


def plan(
    statements: Iterable[Statement],
    names: Sequence[str],
    passes: Collection[str] = scorers.PASSES,
    context: str = "",
    turn: Callable[[str], str] | None = None,
) -> list[Request]:
    """Plan the requests: every text once in every pass that the scorers (`names`) need.

    A choice is asked in every order of its options.

    passes: those that the model can make. context: text before every sentence of a pair, for
    `seq2seq` the encoder's prompt, which may be empty. turn: function that writes a user's turn in
    the chat template; the context, or a choice with its options, is that turn, and the scored text
    begins the model's turn. Raises InputError for an unknown scorer, one that does not fit model or
    data, or a statement that occurs twice.
    """
    statements = list(statements)
    for kind in {choices.is_choice(statement) for statement in statements}:
        scorers.check(names, kind)
    wanted = list(
        dict.fromkeys(scorers.pass_of(scorers.find(name), passes, "model") for name in names)
    )
    found: dict[str, Request] = {}
    for statement in statements:
        kind = choices.is_choice(statement)
        for name in wanted:
            asked = _asked_choices(statement) if kind else [_asked_text(statement, name, context)]
            if turn is not None:
                asked = [_in_turn(turn, *one) for one in asked]
            for sample, (messages, options) in enumerate(asked):
                request = _request(statement, name, messages, options, sample)
                if request.id in found:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is given twice; remove one"
                    )
                found[request.id] = request
    return list(found.values())


_Texts = tuple[list[dict[str, str]], dict[str, list[str]]]  # messages, options


def _asked_text(statement: Statement, name: str, context: str) -> _Texts:
    shown = [{"role": "context", "content": context}] if context or name == scorers.SEQ2SEQ else []
    return shown, {preferences.ONE: [statement.text]}


def _in_turn(
    turn: Callable[[str], str], messages: list[dict[str, str]], options: dict[str, list[str]]
) -> _Texts:
    """Put the context into a user's turn; the scored reply then begins without a space."""
    shown = turn("".join(message["content"] for message in messages))
    bare = {answer: [text.lstrip() for text in texts] for answer, texts in options.items()}
    return [{"role": "context", "content": shown}], bare


def _asked_choices(statement: Statement) -> list[_Texts]:
    """Make one request for each order of the options; their keys are their numbers in the data."""
    return [
        ([{"role": "context", "content": prompt}], options)
        for prompt, options in choices.prompts(statement)
    ]


def _request(
    statement: Statement,
    name: str,
    messages: list[dict[str, str]],
    options: dict[str, list[str]],
    sample: int,
) -> Request:
    asked = (statement.id, statement.lang, PACK, name, messages)
    return Request.asked(*asked, sample=sample, decode="score", options=options)


def _items(ask: Ask) -> list[Statement]:
    """Read the pairs or choices to score. Raises InputError for options that do not fit."""
    items, notes = pairs.load(ask.data, ask.langs or None, ask.prefix)
    for line in notes:
        ask.note(line)
    items = pairs.first(items, ask.limit)
    are_choices = any(map(choices.is_choice, items))
    scorers.check(ask.scorers, are_choices)
    if ask.context and are_choices:
        raise InputError("choices have their own context; use --context only with pairs")
    if not ask.preprocess:
        return items
    if ask.preprocess not in PREPROCESSES:
        raise registry.unknown("preprocessing", ask.preprocess, list(PREPROCESSES))
    if are_choices:
        raise InputError(
            "--preprocess can be used only with pairs of sentences, and these are choices"
        )
    write = PREPROCESSES[ask.preprocess]
    items = [dataclasses.replace(item, text=write(item.text)) for item in items]
    if empty := next((item for item in items if not item.text), None):
        raise InputError(f"{ask.data}: --preprocess leaves nothing of {empty.id!r}")
    return items


def _turn(engine: Any) -> Callable[[str], str]:
    """Return the function that writes a user's turn by this model's chat template.

    Raises InputError if the engine has none.
    """
    if "causal" not in engine.passes:
        raise InputError("--chat can be used only with a causal model; leave it out")
    if getattr(engine, "texts", None) is None:
        raise InputError(
            "--chat needs the chat template, which this server does not show; name its tokenizer: "
            "--engine-arg tokenizer=, a folder or hub id"
        )
    turn: Callable[[str], str] = engine.texts.turn
    return turn


def _rubia(text: str) -> str:
    """Normalise a text as RuBia does (3.8): lower case, only commas, single spaces.

    The paper says "mostly removed" without details. Here, hyphens and apostrophes within a word are
    kept, and every removed mark leaves a space.
    """
    kept = (
        c if c == "," or unicodedata.category(c)[0] != "P" or _within(text, at) else " "
        for at, c in enumerate(text)
    )
    return re.sub(r" +,", ",", " ".join("".join(kept).lower().split()))


def _within(text: str, at: int) -> bool:
    """Return whether the character at a position stands between two letters."""
    around = text[at - 1 : at] + text[at + 1 : at + 2]
    return text[at] in "-'’‐‑" and len(around) == 2 and around.isalnum()


PREPROCESSES: dict[str, Callable[[str], str]] = {"rubia": _rubia}


def tell_unknown(run: Run, engine: Any, note: Note) -> None:
    """Note how many texts hold the unknown token.

    One token represents all unknown characters, so the values of such texts mean little.
    """
    langs = {request.id: request.lang for request in run.requests()}
    held = Counter(
        langs[record.request]
        for record in run.logprobs()
        if any(engine.unknown in part["tokens"] for part in record.continuations)
    )
    if held:
        of = Counter(langs.values())
        parts = ", ".join(f"{lang} {n} of {of[lang]}" for lang, n in held.items())
        what = "texts with characters that the model has no token for, so their values mean little"
        note(Caution(f"{what}: {parts}"))


def checkpoints(model: str) -> list[str]:
    """List the model folders in a folder, step-9 before step-10; none if the folder is a model."""
    folder = door.expanded(model)
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = [str(path.parent) for path in folder.glob("*/config.json")]
    return sorted(found, key=natural)


def every_model(ask: Ask, revisions: Sequence[str] = ()) -> Iterator[Ask]:
    """Make one Ask of each model in a folder of checkpoints, and of each revision.

    If there are several, each gets its own folder in `ask.out`.
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
            replies="preferences",
        ),
        Table(
            "choices",
            "Choices",
            "Of the questions: how often the right option was the likeliest.",
            main=("accuracy", "bbq-bias"),
            across=("condition",),
            place=41,
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
    rows=preferences.UNIT,
    after=tell_unknown,
)
