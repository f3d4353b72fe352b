"""What a model prefers: sentence pairs and choices by log-probability."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from genprobe.commands._console import Bar, columns, print_scores
from genprobe.commands._options import ASKED, BY, FORMAT, QUIET, VERBOSE, asked, together

_SERVER = ("base_url", "concurrency", "engine_args", "headers", "key_env")


@click.command("logprob", short_help="Score sentence pairs by what a model prefers.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, templates, shades, bbq, or a file of pairs or choices (docs/preferences.md).",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="Scorer, see `list scorers`; may be repeated.",
)
@together(*(ASKED[name] for name in ("langs", "model", "limit", "out")))
@click.option(
    "--engine",
    default="auto",
    show_default="transformers",
    metavar="E",
    help="transformers; causal models also vllm, or openai: a running vLLM server.",
)
@together(*(ASKED[name] for name in _SERVER))
@click.option(
    "--revision",
    metavar="R,…",
    help="Of a model of the hub; several are one run each. So are the models in a folder.",
)
@click.option(
    "--context", default="", metavar="TEXT", help="Before every sentence of a pair, as it is."
)
@click.option("--prefix", default="", metavar="WORD", help="Part of every sentence of a table.")
@click.option("--plain", is_flag=True, help="Score a chat model without its template.")
@click.option(
    "--chat",
    is_flag=True,
    help="Score the sentence, or option, as the beginning of a chat model's own turn; the "
    "context, or the question, is the user's.",
)
@click.option(
    "--preprocess",
    default="",
    metavar="P",
    help="rubia: small letters, no punctuation but commas (RuBia, 3.8).",
)
@together(BY, FORMAT, QUIET, VERBOSE)
def command(revision: str | None, by: str | None, form: str, quiet: bool, **given: Any) -> None:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    Of causal, masked and encoder-decoder models of transformers. Writes a run folder (runs/…
    unless --out), which the same command resumes, with the value of every token: `genprobe score
    RUN --scorer S` reduces them in another way, without the model.
    """
    from genprobe import tasks
    from genprobe.analysis.score import score
    from genprobe.tasks.logprob import every_model

    folders = []
    ask = asked("logprob", given, by, quiet)
    for one in every_model(ask, columns(revision)):
        with Bar(quiet) as bar:
            run = tasks.run("logprob", dataclasses.replace(one, progress=bar))
        folders.append(run.folder)
    print_scores(score(folders, by=ask.by, note=ask.note), form)
    for folder in folders:
        ask.note(f"run folder: {folder}")
