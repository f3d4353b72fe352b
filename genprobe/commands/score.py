"""Runs and files counted."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import BY, DECLARED, FORMAT, QUIET, VERBOSE, together


@click.command("score", short_help="Count answers, with intervals and signatures.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE..."
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of `review import`: rates come as measured and corrected by what people said.",
)
@click.option(
    "--rule",
    type=click.Choice(["published"]),
    help="Of stories: NegRate by the rule of the study, beside ours.",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="Of a log-prob run: how its values are reduced; may be repeated.",
)
@click.option(
    "--perplexity",
    is_flag=True,
    help="The pro and anti of a file are perplexities: the lower is preferred.",
)
@click.option(
    "--people",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of choices: what share of people agree with each stereotype; see docs/preferences.md.",
)
@click.option("--band", is_flag=True, help="How far the choice of a reader moves yes/no answers.")
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="R",
    help="Only stereotypes known in this region (SHADES); may be repeated. With --by inside, these "
    "against the others.",
)
@together(BY, DECLARED, FORMAT, QUIET, VERBOSE)
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
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
) -> None:
    """Count the answers of run folders, or of files that `judge` wrote.

    A file of sentence pairs scored anywhere (rows item, model, pro, anti: the value of the
    stereotype and of its contrast, higher is preferred) is counted, too: docs/preferences.md.

    Every figure comes with its n, what was left out, a 95 % interval and a signature. No model
    is needed: a run can be scored again and again.
    """
    from genprobe.analysis.score import score

    if rule:
        metrics = (*metrics, *(f"negrate{kind}" for kind in ("-corrected", "", f"-{rule}")))
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
        note=noter(quiet),
    )
    print_scores(found, form)
