"""`genprobe score`: compute the scores of runs and files."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import BY, DECLARED, FOLLOW, FORMAT, QUIET, VERBOSE, together


@click.command("score", short_help="Compute scores with intervals and signatures.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE..."
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
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
@together(BY, DECLARED, FOLLOW, FORMAT, QUIET, VERBOSE)
def command(
    sources: tuple[Path, ...],
    metrics: tuple[str, ...],
    reviewed: Path | None,
    scorers: tuple[str, ...],
    perplexity: bool,
    rule: str | None,
    people: Path | None,
    band: bool,
    regions: tuple[str, ...],
    league: str,
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
) -> None:
    """Compute the scores of run folders, or of files that `judge` wrote.

    A file of sentence pairs that another program scored can be used, too. Its columns are item,
    model, pro and anti: the value of the stereotype and of its contrast, of which the higher is
    preferred (docs/preferences.md).

    Every figure comes with its n, what was left out, a 95 % confidence interval and a signature.
    No model is needed, and a run can be scored as often as you like.
    """
    from genprobe.analysis.score import score

    if rule:
        metrics = (*metrics, *(f"negrate{kind}" for kind in ("", "-corrected", f"-{rule}")))
    found = score(
        sources,
        metrics=metrics,
        by=columns(by),
        declared=declared,
        reviewed=reviewed,
        scorers=scorers,
        perplexity=perplexity,
        people=people,
        band=band,
        regions=regions,
        league=league,
        note=noter(quiet),
    )
    print_scores(found, form)
