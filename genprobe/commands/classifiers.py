"""Sentiment classifiers of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import QUIET, VERBOSE, together


@click.group("classifiers", short_help="Train a sentiment classifier of your own.")
def command() -> None:
    """Sentiment classifiers: `genprobe list classifiers` lists their cards."""


@command.command(name="train", short_help="Train a linear classifier on a table.")
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "-o", "out", required=True, type=click.Path(path_type=Path), metavar="CARD", help="NAME.toml."
)
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column of texts.")
@click.option(
    "--label",
    default="label",
    show_default=True,
    metavar="COL",
    help="Column of 0 (negative) or 1.",
)
@click.option("--share", type=float, metavar="P", help="Of negative texts where it will be used.")
@together(QUIET, VERBOSE)
def train_(
    source: Path, out: Path, text: str, label: str, share: float | None, quiet: bool, verbose: bool
) -> None:
    """Train a linear classifier on a table of texts and labels; write its card and weights.

    The same file gives the same bytes. Texts are folded as those of the card kk-linear.
    """
    from genprobe import classifiers

    classifiers.train(source, out, text, label, share=share, note=noter(quiet))
