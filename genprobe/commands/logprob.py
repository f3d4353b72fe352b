"""`genprobe logprob`: measure by log-probability which sentence or option a model prefers."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from genprobe.commands._console import Bar, columns, print_scores
from genprobe.commands._options import (
    ASKED,
    BY,
    FOLLOW,
    FORMAT,
    FROM,
    KEEP_ABOUT,
    QUIET,
    SERVER,
    VERBOSE,
    Named,
    asked,
    together,
)


@click.command("logprob", short_help="Measure which of two sentences a model prefers.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="A data set by name (`genprobe list data`), or a file of pairs or choices "
    "(docs/preferences.md).",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="Scorer; see `list scorers`; may be repeated.",
)
@together(*(ASKED[name] for name in ("langs", "model", "like", "limit", "out")))
@click.option(
    "--engine",
    type=Named("engines"),
    default="auto",
    show_default="transformers",
    metavar="E",
    help="transformers; for causal models also vllm, or openai (a running vLLM server).",
)
@together(*SERVER[1:])  # all but the engine
@click.option(
    "--revision",
    metavar="R,…",
    help="Revision of a model of the hub; each makes its own run. So does each model in a folder.",
)
@click.option(
    "--context", default="", metavar="TEXT", help="Text before every sentence of a pair, unchanged."
)
@click.option("--prefix", default="", metavar="WORD", help="Word put before every sentence.")
@click.option("--plain", is_flag=True, help="Score a chat model without its template.")
@click.option(
    "--chat",
    is_flag=True,
    help="Score the sentence (or option) as the beginning of a chat model's turn, after the "
    "context (or question) as the user's turn.",
)
@click.option(
    "--preprocess",
    default="",
    metavar="P",
    help="rubia: lower case, and no punctuation except commas (RuBia, 3.8).",
)
@KEEP_ABOUT
@together(BY, FOLLOW, FORMAT, FROM, QUIET, VERBOSE)
def command(revision: str | None, by: str | None, form: str, quiet: bool, **given: Any) -> None:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    The model can be causal, masked or encoder-decoder. Writes a run folder (--out, or a folder in
    runs/) with the value of every token, and prints the table; the same command resumes an
    interrupted run. `genprobe score RUN --scorer S` then applies another scorer without the model.
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
    print_scores(score(folders, by=ask.by, save=True, note=ask.note), form)
    for folder in folders:
        ask.note(f"run folder: {folder}")
