"""`genprobe yesno`: ask a model yes/no questions."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    DECLARED,
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


@click.command("yesno", short_help="Ask a model yes/no questions; read and count its replies.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="A data set by name (`genprobe list data`), or a file of statements or pairs.",
)
@click.option(
    "--pack",
    default="",
    metavar="FILE.toml",
    help="Questions of your own: a pack in one file, see docs/wordings.md.",
)
@click.option(
    "--probe", "probes", multiple=True, metavar="P", help="A question of the pack; may be repeated."
)
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
    help="How the answer is obtained: as a free reply (default), as a forced choice of an answer "
    "word, or from the probabilities of the answer words; may be repeated.",
)
@varied()
@drawn(1, "0; the control model: 1", 1.0, 64)
@together(BY, DECLARED, FOLLOW, FORMAT, FROM, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model yes/no questions about statements; read and count its replies.

    Writes a run folder (--out, or a folder in runs/) and prints the table. The same command
    resumes an interrupted run. Without --model the control model answers: it tests genprobe, and
    is not a model to be judged.
    """
    declared = asked.pop("declared", False)
    return ask_and_score("yesno", asked, by, form, quiet, declared)
