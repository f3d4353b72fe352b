"""`genprobe compare`: compare models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import BY, FOLLOW, FORMAT, QUIET, VERBOSE, WIDE, Named, together


@click.command("compare", short_help="Compare models item by item, with tests and power.")
@click.argument("first", type=click.Path(path_type=Path), metavar="RUN|FILE|LOG")
@click.argument("others", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN|FILE|LOG]...")
@click.option(
    "--test",
    type=click.Choice(["paired", "anova", "ks", "components", "differences", "retest"]),
    default="paired",
    show_default=True,
    help="paired: item by item. anova: analysis of variance. ks: distributions, two by two "
    "(Kolmogorov-Smirnov). components: what an answer depends on (variance components; one run is "
    "enough). differences: what the difference of two models depends on. retest: how far runs of "
    "one model, or the samples of one run, agree.",
)
@click.option(
    "--between",
    metavar="COL",
    help="Column whose values are compared, such as lang; default model. For anova the factors, "
    "such as bias_type,lang,model.",
)
@click.option(
    "--power",
    type=float,
    metavar="POINTS",
    help="Instead of a test, compute how many statements would show a difference of this many "
    "points.",
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
    help="Table of `review import` with replies of all runs: compare the rates that it corrects.",
)
@click.option(
    "--paradigms",
    is_flag=True,
    help="For runs of yesno and logprob: compare what each model says with what it prefers "
    "(docs/paradigms.md).",
)
@together(BY, WIDE, FOLLOW, FORMAT, QUIET, VERBOSE)
def command(
    first: Path,
    others: tuple[Path, ...],
    between: str | None,
    by: str | None,
    form: str,
    quiet: bool,
    **asked: Any,
) -> None:
    """Compare the models of two runs on the same items; of more runs, compare each with the first.

    Instead of runs you can give tables of replies that `genprobe judge` read, or of outcomes
    (`score --export`), and logs of other harnesses. In a table with the column `model`, each model
    is compared with the first. Rows of two tables are matched by the columns that both have, and an
    item that was asked with two prompts is an error.

    Items are matched by statement, language, question and sample. Prints both figures, each of the
    replies that count for its own model, their difference (second minus first) with an interval
    over statements and bounds for unclear replies, and a p-value: McNemar's mid-p if every
    statement has one item that counts for both, else from swapping the models' replies statement by
    statement. The runs may differ only in which model was asked. With --between, the values of a
    column of one run are compared, such as two languages.

    The sentences below the table say what differs for sure, the largest difference of a main
    measure first, and what cannot be told apart, and why; they are those of `report`. Of three
    models or more a line says whether the first metric supports a ranking: groups in order, with
    ties, or none; none either if unclear replies may account for the difference. If
    three wordings or more were asked (`yesno --wordings`), the ranking is by the mean over wordings
    like these. With -f json the output is an object: `finding` (the sentences), `ranking` (groups
    in order, or null), `rank_chances`, `pairs`, and `scores`; with --by, `rankings` has one for
    each cell. With --reviewed every two runs are compared, and the ranking is of the first
    corrected rate, by the p-values that are printed, corrected for all of them.

    docs/inference.md says which test answers which question, and what it assumes. Where there are
    several p-values, each is also printed corrected for their number.

    With --paradigms, the runs are of `yesno` and `logprob`, of one model or several, matched by
    model and revision. Prints the correlation and a cross-table of what a model says and what it
    prefers, item by item, for every reading and scorer.
    """
    from genprobe import api
    from genprobe.render import formats
    from genprobe.text.display import clean

    found = api.compare(
        first, others, between=columns(between), by=columns(by), note=noter(quiet), **asked
    )
    if form == "json" and found.rankings is not None and not between and not found.wide:
        click.echo(formats.ranked(found, found.rankings, found.finding), nl=False)
        return
    print_scores(found, form)
    # The sentences of `finding` rank two models, but not by rates that people corrected.
    several = [
        one
        for one in found.rankings or ()
        if found.finding is None or len(one["values"]) + len(one["not_ranked"]) > 2
    ]
    for one in several if form in ("table", "markdown") else ():
        where = "".join(f"{column} {value}: " for column, value in one["by"].items())
        line = clean(f"{where}{one['metric']}: {one['told']}")
        click.echo(f"- {formats.marked(line)}" if form == "markdown" else line)
