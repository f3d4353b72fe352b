"""Essays that a model writes, and where they stand."""

from __future__ import annotations

from typing import Any

import click

from genprobe.commands._chat import CHAT, ask_and_score
from genprobe.commands._options import (
    BY,
    DECLARED,
    FORMAT,
    QUIET,
    VERBOSE,
    drawn,
    together,
    varied,
)


@click.command("essays", short_help="Ask a model for essays and remarks, read where they stand.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, shades, or a file of statements.",
)
@click.option("--frame", "probes", multiple=True, metavar="F", help="Frame; may be repeated.")
@CHAT
@varied()
@drawn(1, "0.7", 0.95, 128)
@together(BY, DECLARED, FORMAT, QUIET, VERBOSE)
def command(by: str | None, form: str, quiet: bool, **asked: Any) -> int:
    """Ask a model for essays, reasons and remarks about statements, read where they stand.

    Writes a run folder (runs/… unless --out), which the same command resumes, and prints the
    table.
    """
    declared = asked.pop("declared", False)
    return ask_and_score("essays", asked, by, form, quiet, declared)
