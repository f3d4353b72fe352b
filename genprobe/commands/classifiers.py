"""`genprobe classifiers`: train, measure and compare sentiment classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, SERVER, VERBOSE, together
from genprobe.files.rows import Rows


@click.group("classifiers", short_help="Train, measure and compare sentiment classifiers.")
def command() -> None:
    """Train, measure and compare sentiment classifiers.

    `genprobe list classifiers` lists their cards.
    """


@command.command(name="train", short_help="Train a linear classifier on a table.")
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="CARD",
    help="Its card, NAME.toml.",
)
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column of texts.")
@click.option(
    "--label",
    default="label",
    show_default=True,
    metavar="COL",
    help="Column of labels: 0 (negative) or 1.",
)
@click.option(
    "--share", type=float, metavar="P", help="Share of negative texts where it will be used."
)
@together(QUIET, VERBOSE)
def train_(
    source: Path, out: Path, text: str, label: str, share: float | None, quiet: bool
) -> None:
    """Train a linear classifier on a table of texts and labels; write its card and weights.

    The same table always gives the same weights. Texts are normalised as for the card kk-linear.
    """
    from genprobe.api import data

    data.classifiers_train(source, out, text=text, label=label, share=share, note=noter(quiet))


DATA = click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Labelled texts: columns lang, response or text, sentiment or label.",
)
LANG = click.option("--lang", metavar="L", help="Language of the texts, if no column gives it.")


@command.command(name="measure", short_help="Measure a classifier; write its card.")
@click.argument("card", metavar="CARD")
@DATA
@click.option("--kind", required=True, metavar="K", help="What the texts are: stories, reviews, …")
@click.option("--on", default="", metavar="WORDS", help="What the card says about the texts.")
@LANG
@together(FOLLOW, QUIET, VERBOSE)
def measure_(card: str, data: Path, kind: str, on: str, lang: str | None, quiet: bool) -> None:
    """Measure a classifier on labelled texts, and write the figures into its card.

    CARD is a name or a path. For each language it writes macro F1, the recall of negative and of
    positive texts, the calibration error, and how often each class is labelled negative (by which
    NegRate is corrected). Older figures for the same kind and language are replaced.
    """
    from genprobe.api.data import classifiers_measure

    for f in classifiers_measure(card, data=data, kind=kind, on=on, lang=lang):
        ends = f"{f['low']:.3f} to {f['high']:.3f}"
        click.echo(f"{f['lang']}  {f['metric']}  {f['value']:.3f} ({ends})  n {f['n']}")


@command.command(name="compare", short_help="Compare classifiers on labelled texts.")
@click.argument("cards", nargs=-1, metavar="[CARD]...")
@DATA
@LANG
@click.option(
    "--model", metavar="M", help="Also compare a chat model that judges by the rubric sentiment."
)
@click.option(
    "--price", metavar="IN,OUT", help="Price of a million tokens of prompts and of replies."
)
@together(*SERVER)
@together(FOLLOW, QUIET, VERBOSE)
def compare_(cards: tuple[str, ...], quiet: bool, **asked: Any) -> None:
    """Compare classifiers on labelled texts: accuracy, calibration and cost.

    Without CARD, genprobe compares all its own classifiers that need no download and read a
    language of the texts. `people` is Cohen's kappa with the given labels; a second table has the
    kappa of each pair of classifiers. Costs are for 1,000 texts: seconds of one core, or a model's
    tokens, with their price if --price is given. A model judges in two wordings, with the labels in
    both orders.
    """
    from genprobe.api.data import classifiers_compare

    found = classifiers_compare(cards, note=noter(quiet), **asked)
    _print(found.rows)
    if len(found.pairs):
        click.echo()
        _print(found.pairs)
    if found.bias:
        noter(quiet)(found.bias)


def _print(rows: Rows) -> None:
    """Print rows below the names of their columns, aligned."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
