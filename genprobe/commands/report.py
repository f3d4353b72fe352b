"""A page of runs."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import QUIET, VERBOSE, together


@click.command(name="report", short_help="Make a page of runs that one can publish.")
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
    help="Also write figures for a paper, each as SVG and PDF with its data as CSV.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Without statements, prompts, replies and quotes of them; items are known by a hash.",
)
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of `review import`: the rates that it corrects come first, corrected and as measured.",
)
@together(QUIET, VERBOSE)
def command(
    folders: tuple[Path, ...],
    out: Path,
    figures: Path | None,
    redact: bool,
    reviewed: Path | None,
    quiet: bool,
) -> None:
    """Make one page of one run or several: what was measured, the figures, all behind them.

    The page is one file that needs no network. Runs of several models stand side by side; those
    of `yesno` and `logprob` of one model are also set against each other. No model is needed.
    """
    from genprobe import report

    note = noter(quiet)
    page = report.build(folders, out, redact=redact, reviewed=reviewed, note=note)
    note(f"report: {page}")
    if figures is not None:
        from genprobe.report.figures import draw

        for path in draw(folders, figures, redact=redact, reviewed=reviewed, note=note):
            note(f"figure: {path}")
