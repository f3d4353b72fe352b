"""`genprobe choices`: ask a model to choose among options."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    FOLLOW,
    FORMAT,
    FROM,
    QUIET,
    VERBOSE,
    drawn,
    together,
    varied,
)
from genprobe.records import DECODES


@click.command("choices", short_help="Ask questions with options; read which one is chosen.")
@click.option(
    "--data",
    default="builtin",
    metavar="D",
    help="A data set by name (`genprobe list data`), a file or folder in BBQ's layout, a table of "
    "choices or of pairs of sentences, of which is asked which is likelier (docs/choices.md).",
)
@click.option(
    "--frame",
    "probes",
    multiple=True,
    metavar="F",
    help="How options are listed: letters (default), numbers, bare, or shades (Russian only); may "
    "be repeated.",
)
@click.option(
    "--orders",
    type=click.Choice(["all", "balanced", "given"]),
    default="all",
    show_default=True,
    help="Orders of the options: all, rotations in which each option is once in each place, or "
    "the order of the data.",
)
@click.option(
    "--unknowns",
    is_flag=True,
    help="Also ask each question without its unknown option, and with it in other words "
    "(--by unknown_as).",
)
@click.option("--shots", metavar="FILE", help="Solved examples that are put before each question.")
@CHAT
@click.option(
    "--ask-again",
    is_flag=True,
    help="Ask the model again, with its own reply, about what the rules leave open.",
)
@click.option(
    "--decode",
    "decodes",
    multiple=True,
    type=click.Choice(DECODES),
    help="How the answer is obtained: as a free reply (default), as a forced choice of an option, "
    "or from the probabilities of the options; may be repeated.",
)
@varied()
@drawn(1, "0", 1.0, 64)
@together(BY, FORMAT, FOLLOW, FROM, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model to choose among options; read and count what it chose.

    The questions are of the BBQ family: a context, ambiguous or not, a question, and two to six
    options. Of a pair of sentences it is asked which is likelier. Writes a run folder (--out, or a
    folder in runs/) and prints the table. The same command resumes an interrupted run.
    """
    return ask_and_score("choices", asked, by, form, quiet)
