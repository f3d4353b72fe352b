"""What a model chooses among options."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    FORMAT,
    QUIET,
    VERBOSE,
    drawn,
    together,
    varied,
)


@click.command("choices", short_help="Ask questions with options, read which one is chosen.")
@click.option(
    "--data",
    required=True,
    metavar="D",
    help="bbq (fetched from its authors' repository), a file or folder in BBQ's layout, or a table "
    "of choices (docs/choices.md).",
)
@click.option(
    "--frame",
    "probes",
    multiple=True,
    metavar="F",
    help="letters (default), numbers, bare, or shades (ru): how options are listed; may be "
    "repeated.",
)
@click.option(
    "--orders",
    type=click.Choice(["all", "balanced", "given"]),
    default="all",
    show_default=True,
    help="Every order of the options, a rotation with each option once in each place, or that of "
    "the data alone.",
)
@click.option(
    "--shots", metavar="FILE", help="Examples with their right answers, put before each question."
)
@CHAT
@click.option(
    "--decode",
    "decodes",
    multiple=True,
    type=click.Choice(["free", "choice", "logprob"]),
    help="How the answer is taken: the model's own words (default), forced to an option, or the "
    "probabilities of the options; may be repeated.",
)
@varied()
@drawn(1, "0", 1.0, 64)
@together(BY, FORMAT, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model to choose among options, read its replies, count what it chose.

    The BBQ family: a context, ambiguous or not, a question, two to six options. Writes a run
    folder (runs/… unless --out), which the same command resumes, and prints the table.
    """
    return ask_and_score("choices", asked, by, form, quiet)
