"""Runs set beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from genprobe.commands._console import columns, noter, print_scores
from genprobe.commands._options import BY, FORMAT, QUIET, VERBOSE, together
from genprobe.errors import InputError


@click.command("compare", short_help="Compare models, item by item; tests and power.")
@click.argument("first", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("others", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN]...")
@click.option(
    "--test",
    type=click.Choice(["paired", "anova", "ks", "components", "differences", "retest"]),
    default="paired",
    show_default=True,
    help="Item by item; analysis of variance; distributions, pair by pair (Kolmogorov-Smirnov); "
    "what an answer depends on (variance components; also of one run); what the difference of two "
    "models depends on; how far runs of one model, or the samples of one run, agree.",
)
@click.option(
    "--between",
    metavar="COL",
    help="Column whose values are compared: the model, or such as lang. Of anova the factors: "
    "bias_type,lang,model.",
)
@click.option(
    "--power",
    type=float,
    metavar="POINTS",
    help="How many statements would show a difference of so many points, in place of a test.",
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
@click.option(
    "--paradigms",
    is_flag=True,
    help="Of yes/no and log-prob runs: what each model says against what it prefers "
    "(docs/paradigms.md).",
)
@click.option(
    "--matrix",
    is_flag=True,
    help="Of runs of one model made in several ways (said, explained, chosen, told, preferred): "
    "whether they agree, item by item; with --by bias_type, whether models do.",
)
@together(BY, FORMAT, QUIET, VERBOSE)
def command(
    first: Path,
    others: tuple[Path, ...],
    test: str,
    between: str | None,
    power: float | None,
    metrics: tuple[str, ...],
    paradigms: bool,
    matrix: bool,
    by: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Compare the models of two runs on the same items; of more runs, each with the first.

    Items pair by statement, language, question and sample. Prints both figures, the difference
    (second minus first) with an interval over statements, and a p-value: McNemar's mid-p where a
    statement has one item, else that of swapping the models' replies statement by statement. The
    runs may differ in nothing but who was asked. With --between the values of a column of one run
    are paired, such as two languages.

    Below stands whether the models can be ranked at all, by the first metric: groups of ties in
    order, or that no ranking is supported. Where a panel was asked (`yesno --wordings`), it is one
    for wordings not yet written. With -f json the answer is an object: `ranking` (groups in order,
    or null), `rank_chances`, `pairs`, and `scores`; with --by `rankings` has one of each cell.

    Which test answers which question, and what it takes for granted: docs/inference.md. Where
    there are several p-values, each comes with itself corrected for all of them.

    With --paradigms the runs are those of `yesno` and `logprob`, of one model or several, matched
    by model and revision: correlation and table of what a model says and what it prefers, item by
    item, for every reading and scorer.

    With --matrix the runs are of any tasks: every two ways of measuring are correlated, as measured
    and with the noise taken out. It prints both as a matrix, and a sentence says what that shows
    (docs/wordings.md); other formats have a row for every two.
    """
    from genprobe.analysis import compare, paradigm_runs
    from genprobe.render import formats
    from genprobe.text.display import clean

    if paradigms and metrics:
        raise InputError("--metric goes without --paradigms, which has measures of its own")
    if paradigms and (between or power is not None or test != "paired"):
        raise InputError("--test, --between and --power go without --paradigms")
    if matrix:
        if paradigms or metrics or between or power is not None or test != "paired":
            raise InputError("--matrix goes with --by alone")
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
            note=noter(quiet),
        )
    models = test == "paired" and power is None and not between and not paradigms
    if form == "json" and models:
        click.echo(formats.ranked(found, found.rankings), nl=False)
        return
    print_scores(found, form)
    for one in found.rankings if form == "table" else ():
        where = "".join(f"{column} {value}: " for column, value in one["by"].items())
        click.echo(clean(f"{where}{one['metric']}: {one['told']}"))


def _print_matrix(runs: Sequence[Path], by: Sequence[str], form: str) -> None:
    """Correlate every two ways of measuring, and print them as a matrix or as rows."""
    import shutil

    from genprobe.analysis import matrix
    from genprobe.render.crossed import crossed
    from genprobe.text.display import clean

    if len(by) > 1:
        raise InputError("--matrix --by takes one column, whose values are the traits")
    scores, words = matrix.of_runs(runs, *by)
    if form != "table":
        print_scores(scores, form)
        return
    click.echo(crossed(scores, shutil.get_terminal_size((100, 24)).columns), nl=False)
    for line in words:
        click.echo(clean(line))
