"""`genprobe score`: compute the scores of runs and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import (
    BY,
    DECLARED,
    FOLLOW,
    FORMAT,
    QUIET,
    VERBOSE,
    WIDE,
    Named,
    together,
)


@click.command("score", short_help="Compute scores with intervals and signatures.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE|LOG..."
)
@click.option(
    "--metric",
    "metrics",
    type=Named("metrics"),
    multiple=True,
    metavar="M",
    help="Metric; see `list metrics`.",
)
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Table of `review import`: also print rates corrected by what reviewers answered.",
)
@click.option(
    "--rule",
    type=click.Choice(["published"]),
    help="For stories: also print NegRate by the rule of the published study.",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="For a run of logprob: the scorer, see `list scorers`; may be repeated.",
)
@click.option(
    "--perplexity",
    is_flag=True,
    help="The columns pro and anti of a file are perplexities: the lower one is preferred.",
)
@click.option(
    "--people",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For choices: a table of the share of people who agree with each stereotype; see "
    "docs/preferences.md.",
)
@click.option(
    "--band", is_flag=True, help="Show how far yes/no rates depend on how replies are read."
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="R",
    help="Only stereotypes known in this region (SHADES); may be repeated. With --by inside, "
    "compare them with the others.",
)
@click.option(
    "--league",
    default="",
    metavar="COL",
    help="Also set the values of a column, such as lang, in order: shares partly pooled, and the "
    "chance of each to be the highest.",
)
@click.option(
    "--save",
    is_flag=True,
    help="Add the scores to scores.json of the run; what was asked before stays.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the rows that are counted, with their texts: .csv, .jsonl or .parquet.",
)
@together(BY, WIDE, DECLARED, FOLLOW, FORMAT, QUIET, VERBOSE)
def command(
    sources: tuple[Path, ...], by: str | None, form: str, quiet: bool, **asked: Any
) -> None:
    """Compute the scores of run folders, files that `judge` wrote, or logs of other harnesses.

    A file of sentence pairs that another program scored can be used, too. Its columns are item,
    model, pro and anti: the value of the stereotype and of its contrast, of which the higher is
    preferred (docs/preferences.md).

    Every figure comes with its n, what was left out, a 95 % confidence interval and a signature.
    No model is needed, and a run can be scored as often as you like; nothing is written without
    --save.

    With --wide and neither --by nor --metric, the main measure is shown, models against languages.
    """
    from genprobe.analysis.score import score

    asked["rule"] = asked["rule"] or ""
    print_scores(score(sources, by=columns(by), note=noter(quiet), **asked), form)
