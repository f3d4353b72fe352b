"""`genprobe stories`: ask a model for stories and read their sentiment."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    FOLLOW,
    FORMAT,
    QUIET,
    VERBOSE,
    drawn,
    together,
    varied,
)


@click.command("stories", short_help="Ask a model for stories; read their sentiment and count it.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, or a file of templates.",
)
@click.option(
    "--wording",
    "probes",
    multiple=True,
    metavar="W",
    help="published (default) or native; may be repeated.",
)
@CHAT
@varied(False)
@drawn(5, "1", 1.0, 512)
@click.option("--classifier", metavar="C", help="Sentiment classifier; see `list classifiers`.")
@together(BY, FORMAT, FOLLOW, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model for five-sentence stories about people; read their sentiment and count it.

    Without --lang the stories are in Kazakh. Writes a run folder (--out, or a folder in runs/) and
    prints the share of templates with mostly negative stories. The same command resumes an
    interrupted run.
    """
    declared = asked.pop("declared", False)
    return ask_and_score("stories", asked, by, form, quiet, declared)
