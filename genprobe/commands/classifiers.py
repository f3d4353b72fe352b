"""`genprobe classifiers`: train, measure and compare sentiment classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, SERVER, VERBOSE, together


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
    from genprobe.judges.classifiers import training

    training.train(source, out, text, label, share=share, note=noter(quiet))


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
    from genprobe.analysis import sentiment as measure

    for f in measure.into_card(card, data, kind, on, lang):
        click.echo(f"{f.lang}  {f.metric}  {f.value:.3f} ({f.low:.3f} to {f.high:.3f})  n {f.n}")


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
def compare_(
    cards: tuple[str, ...],
    data: Path,
    lang: str | None,
    model: str | None,
    price: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Compare classifiers on labelled texts: accuracy, calibration and cost.

    Without CARD, genprobe compares all its own classifiers that need no download and read a
    language of the texts. `people` is Cohen's kappa with the given labels; a second table has the
    kappa of each pair of classifiers. Costs are for 1,000 texts: seconds of one core, or a model's
    tokens, with their price if --price is given. A model judges in two wordings, with the labels in
    both orders.
    """
    import contextlib

    from genprobe.analysis import forecast
    from genprobe.analysis import sentiment as measure

    cost = forecast.price(price)
    texts = measure.read(data, lang)
    results = [r for name in cards or measure.fitting(texts) for r in measure.run(name, texts)]
    bias = ""
    if model or asked["base_url"]:
        from genprobe.judges import llm
        from genprobe.tasks.pipeline.open import engine_options, open_engine, told

        server = engine_options(asked["engine_args"], asked["base_url"], asked["concurrency"])
        engine = open_engine(asked["engine"], model, told(server, asked))
        with contextlib.closing(engine):
            judge = llm.make(engine, "sentiment")
            results += measure.judged(judge, texts)
            bias = f"{judge.name}: {judge.bias}"
    results.sort(key=lambda r: r.lang)
    _print((measure.HEAD, *measure.rows(results, cost)))
    if pairs := measure.between(results):
        click.echo()
        _print((("lang", "classifier", "and", "kappa"), *pairs))
    if bias:
        noter(quiet)(bias)


def _print(rows: tuple[tuple[str, ...], ...]) -> None:
    """Print rows with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
