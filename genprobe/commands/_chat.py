"""Shared code of the commands that ask chat models: options, several models, the run."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import Bar, print_scores, say
from genprobe.commands._options import ASKED, KEEP_ABOUT, Named, asked, together
from genprobe.errors import Caution, EngineError, InputError
from genprobe.files import door

FAILED = 3  # exit code of a finished run in which requests failed

# Options that change what the model receives: thinking, arguments of templates and of requests.
TOLD = together(
    click.option(
        "--thinking",
        type=click.Choice(["default", "on", "off", "low", "medium", "high"]),
        default="default",
        show_default=True,
        help="Whether the model thinks before it answers; default leaves it to the model.",
    ),
    click.option(
        "--think-tokens",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of tokens of a thought; --max-tokens then limits the answer.  "
        "[default: 4096 if the model thinks]",
    ),
    click.option(
        "--template-arg",
        "template_args",
        multiple=True,
        metavar="KEY=VALUE",
        help="Argument of the chat template, such as enable_thinking=false; may be repeated.",
    ),
    click.option(
        "--request-arg",
        "request_args",
        multiple=True,
        metavar="KEY=JSON",
        help="Parameter of each request to a server; may be repeated.",
    ),
)
CHAT = together(
    click.option(
        "--model",
        "model",
        type=Named("models"),
        multiple=True,
        metavar="M",
        help="An alias, a hub id, a folder, or the name that a server uses; may be repeated. "
        "Without it, the control model runs.",
    ),
    *(option for name, option in ASKED.items() if name != "model"),
    KEEP_ABOUT,
    TOLD,
    click.option(
        "--second-reader",
        default="",
        metavar="M",
        help="Another model, which reads what the rules leave open; see docs/second-reader.md.",
    ),
    click.option("--system", metavar="TEXT|@FILE", help="System prompt, or a file that holds it."),
    click.option(
        "--models",
        metavar="FILE|M,…",
        help="Several models, from a file of models or a list: one run folder each, one table.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Ask nothing; print the size of the run and some prompts."
    ),
    click.option(
        "--pilot",
        type=click.IntRange(2),
        metavar="N",
        help="Ask N requests of all, and say what the run will take; without --pilot it goes on.",
    ),
    click.option(
        "--price",
        metavar="IN,OUT",
        help="Price of a million tokens of prompts and of replies, to compute what a run costs.",
    ),
)


def ask_and_score(
    task: str, given: dict[str, Any], by: str | None, form: str, quiet: bool, declared: bool = False
) -> int:
    """Run a task for one model or several, score the runs and print the table.

    given: the options of the task's command. Returns the exit code.
    """
    from genprobe import tasks
    from genprobe.analysis import dstudy, forecast
    from genprobe.analysis.score import score
    from genprobe.resources import models
    from genprobe.tasks.pipeline.generate import unanswered
    from genprobe.tasks.pipeline.open import need_one_host
    from genprobe.tasks.pipeline.second import options_for

    price = forecast.price(given.pop("price"))
    dry, out, pilot = given.pop("dry_run"), given.pop("out"), given.pop("pilot")
    names, known = _models(given.pop("model"), given.pop("models"))
    folders: list[Path] = []
    left: list[str] = []
    code = 0
    with models.also(known):
        asks = [asked(task, {**given, "model": name}, by, quiet) for name in names]
        reads = [ask for ask in asks if ask.second_reader]
        need_one_host(
            [
                *((ask.model, ask.options) for ask in asks),
                *((a.second_reader, options_for(a.second_reader, a.options)) for a in reads),
            ]
        )
        for name, ask in zip(names, asks, strict=True):
            if dry:
                for line in forecast.lines(task, ask, price):
                    click.echo(line)
                for line in dstudy.of_plan(tasks.planned(task, ask)):
                    click.echo(line)
                continue
            place = out / _safe(name or "control") if out and len(names) > 1 else out
            try:
                with Bar(quiet) as bar:
                    ask = dataclasses.replace(ask, out=place, pilot=pilot, progress=bar)
                    run = tasks.run(task, ask)
            except EngineError as error:
                if len(names) == 1:
                    raise
                code = say(f"{name}: {error}", 2)
                continue
            folders.append(run.folder)
            if pilot:
                for line in forecast.of_pilot(run, price):
                    click.echo(line)
                continue
            if line := unanswered(run):
                left.append(f"{run.folder}: {line}" if len(names) > 1 else line)
            ask.note(forecast.used(run, price))
    if dry or pilot or not folders:
        return code
    print_scores(score(folders, by=ask.by, declared=declared, save=True, note=ask.note), form)
    for folder in folders:
        ask.note(f"run folder: {folder}")
    for line in left:
        # Printed last, because the table above lacks these requests.
        ask.note(Caution(line))
        code = code or FAILED
    return code


def _models(given: tuple[str, ...], more: str | None) -> tuple[list[str | None], dict[str, Any]]:
    """Return the names of all models, and those that the file `more` describes, by name."""
    from genprobe.resources import models

    known: dict[str, Any] = {}
    names: list[str | None] = list(given)
    if more:
        path = door.expanded(more)
        if path.suffix == ".toml" or path.is_file():
            known = models.read(path)
            names += known
        else:
            names += [name.strip() for name in more.split(",") if name.strip()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"the model {twice} is named twice; name it once")
    return names or [None], known


def _safe(name: str) -> str:
    """Turn a model's name into the name of a folder."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "model"
