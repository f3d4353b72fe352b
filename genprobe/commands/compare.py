"""`genprobe compare`: compare runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import BY, FOLLOW, FORMAT, QUIET, VERBOSE, together
from genprobe.errors import InputError


@click.command("compare", short_help="Compare models item by item, with tests and power.")
@click.argument("first", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("others", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN]...")
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
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
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
@click.option(
    "--matrix",
    is_flag=True,
    help="For runs of different tasks with one model: whether the tasks agree, item by item; with "
    "--by bias_type, whether they agree for several models.",
)
@together(BY, FOLLOW, FORMAT, QUIET, VERBOSE)
def command(
    first: Path,
    others: tuple[Path, ...],
    test: str,
    between: str | None,
    power: float | None,
    metrics: tuple[str, ...],
    reviewed: Path | None,
    paradigms: bool,
    matrix: bool,
    by: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Compare the models of two runs on the same items; of more runs, compare each with the first.

    Items are matched by statement, language, question and sample. Prints both figures, each of the
    replies that count for its own model, their difference (second minus first) with an interval
    over statements and bounds for unclear replies, and a p-value: McNemar's mid-p if every
    statement has one item that counts for both, else from swapping the models' replies statement by
    statement. The runs may differ only in which model was asked. With --between, the values of a
    column of one run are compared, such as two languages.

    The line below the table says whether the first metric supports a ranking of the models: groups
    in order, with ties, or none; none either if unclear replies may account for the difference. If
    three wordings or more were asked (`yesno --wordings`), the ranking is by the mean over wordings
    like these. With -f json the output is an object: `ranking` (groups in order, or null),
    `rank_chances`, `pairs`, and `scores`; with --by, `rankings` has one for each cell.

    docs/inference.md says which test answers which question, and what it assumes. Where there are
    several p-values, each is also printed corrected for their number.

    With --paradigms, the runs are of `yesno` and `logprob`, of one model or several, matched by
    model and revision. Prints the correlation and a cross-table of what a model says and what it
    prefers, item by item, for every reading and scorer.

    With --matrix, the runs can be of any tasks. Prints a matrix of the correlations between the
    ways of measuring, as measured and corrected for noise, and a sentence that explains it
    (docs/wordings.md). Other formats have a row for each pair.
    """
    from genprobe.analysis import compare, paradigm_runs
    from genprobe.render import formats
    from genprobe.text.display import clean

    if paradigms and metrics:
        raise InputError("--metric cannot be used with --paradigms, which has its own measures")
    if paradigms and (between or power is not None or test != "paired"):
        raise InputError("--test, --between and --power cannot be used with --paradigms")
    if reviewed is not None and (paradigms or matrix):
        raise InputError("--reviewed cannot be used with --paradigms and --matrix")
    if matrix:
        if paradigms or metrics or between or power is not None or test != "paired":
            raise InputError("--matrix can be combined only with --by")
        _print_matrix([first, *others], columns(by), form)
        return
    if paradigms:
        found = paradigm_runs.paradigms([first, *others], by=columns(by), note=noter(quiet))
    else:
        found = compare.compare(
            first,
            others,
            test=test,
            between=columns(between),
            metrics=metrics,
            by=columns(by),
            power=power,
            reviewed=reviewed,
            note=noter(quiet),
        )
    models = test == "paired" and power is None and not between and not paradigms
    if form == "json" and models and reviewed is None:
        click.echo(formats.ranked(found, found.rankings), nl=False)
        return
    print_scores(found, form)
    for one in found.rankings if form in ("table", "markdown") else ():
        where = "".join(f"{column} {value}: " for column, value in one["by"].items())
        line = clean(f"{where}{one['metric']}: {one['told']}")
        click.echo(f"- {formats.marked(line)}" if form == "markdown" else line)


def _print_matrix(runs: Sequence[Path], by: Sequence[str], form: str) -> None:
    """Print the correlations between all ways of measuring, as a matrix or as rows."""
    import shutil

    from genprobe.analysis import matrix
    from genprobe.render.crossed import crossed
    from genprobe.text.display import clean

    if len(by) > 1:
        raise InputError("--matrix --by takes one column only, whose values are the traits")
    scores, words = matrix.of_runs(runs, *by)
    if form != "table":
        print_scores(scores, form)
        return
    click.echo(crossed(scores, shutil.get_terminal_size((100, 24)).columns), nl=False)
    for line in words:
        click.echo(clean(line))
