"""`genprobe essays`: ask a model for essays and read which side they take."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    DECLARED,
    FOLLOW,
    FORMAT,
    QUIET,
    VERBOSE,
    drawn,
    together,
    varied,
)


@click.command(
    "essays", short_help="Ask a model for essays and remarks; read which side they take."
)
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, shades, or a file of statements.",
)
@click.option(
    "--frame", "probes", multiple=True, metavar="F", help="A frame of the pack; may be repeated."
)
@CHAT
@varied()
@drawn(1, "0.7", 0.95, 128)
@together(BY, DECLARED, FORMAT, FOLLOW, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model for essays, reasons and remarks about statements; read which side they take.

    Writes a run folder (--out, or a folder in runs/) and prints the table. The same command
    resumes an interrupted run.
    """
    declared = asked.pop("declared", False)
    return ask_and_score("essays", asked, by, form, quiet, declared)
