"""`genprobe report`: make a page about runs, or about replies in a table or log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, VERBOSE, together


@click.command(name="report", short_help="Make a page about runs that you can publish.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE|LOG..."
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
    help="Also write figures for a paper: each as SVG and PDF, and its data as CSV; wide tables "
    "and a paragraph about the methods, as LaTeX and Markdown.",
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
@click.option(
    "--page-lang",
    default="en",
    show_default=True,
    metavar="CODE",
    help="Language of the page's own words: finding, headings and glossary; figures stay as they "
    "are.",
)
@together(FOLLOW, QUIET, VERBOSE)
def command(folders: tuple[Path, ...], quiet: bool, **asked: Any) -> None:
    """Make a page about one run or several: what was measured, the figures, the replies.

    Replies in a table or in a log of another harness are shown as a run of them would be (`genprobe
    judge LOG -o FOLDER`); labels that a table has are kept.

    The page is one file that needs no network. Runs of several models are shown side by side; runs
    of `yesno` and `logprob` of the same model are also compared. No model is needed.
    """
    from genprobe import api

    api.report(folders, note=noter(quiet), **asked)
