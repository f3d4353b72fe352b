"""`genprobe report`: make a page about runs."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, VERBOSE, together


@click.command(name="report", short_help="Make a page about runs that you can publish.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN..."
)
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="The page.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write figures for a paper: each as SVG and PDF, and its data as CSV.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out statements, prompts and replies; items are named by a hash.",
)
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Table of `review import`: rates are shown corrected by it, with the measured ones beside "
    "them.",
)
@together(FOLLOW, QUIET, VERBOSE)
def command(
    folders: tuple[Path, ...],
    out: Path,
    figures: Path | None,
    redact: bool,
    reviewed: Path | None,
    quiet: bool,
) -> None:
    """Make a page about one run or several: what was measured, the figures, the replies.

    The page is one file that needs no network. Runs of several models are shown side by side; runs
    of `yesno` and `logprob` of the same model are also compared. No model is needed.
    """
    from genprobe import report
    from genprobe.report.sources import salt

    note = noter(quiet)
    salted = salt(redact) or False  # the same names on the page and in its figures
    page = report.build(folders, out, redact=salted, reviewed=reviewed, note=note)
    note(f"report: {page}")
    if figures is not None:
        from genprobe.report.figures import draw

        for path in draw(folders, figures, redact=salted, reviewed=reviewed, note=note):
            note(f"figure: {path}")
