"""`genprobe verify`: check a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from genprobe.commands._options import VERBOSE
from genprobe.text import many
from genprobe.text.display import clean

if TYPE_CHECKING:
    from genprobe.runs.run import Run


@click.command("verify", short_help="Check that run folders are complete and unchanged.")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--recompute",
    is_flag=True,
    help="Also compute the figures of scores.json again from the records, with separate, simple "
    "code.",
)
@click.option(
    "--reviewed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --recompute: the table of `review import` by which rates were corrected.",
)
@click.option(
    "--people",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --recompute: the table of people's answers with which the run was scored.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print problems only.")
@VERBOSE
def command(
    folders: tuple[Path, ...],
    recompute: bool,
    reviewed: Path | None,
    people: Path | None,
    quiet: bool,
) -> int:
    """Check that run folders are complete and unchanged; else name the problems (exit code 1)."""
    from genprobe.errors import InputError
    from genprobe.runs.run import Run

    if (reviewed or people) and not recompute:
        raise InputError("--reviewed and --people work only with --recompute; add it")
    runs = [Run.open(folder) for folder in folders]
    wrong = 0
    for run in runs:
        where = f"{run.folder}: " if len(runs) > 1 else ""
        wrong += _problems(run, where, quiet)
        if recompute:
            wrong += _recomputed(run, where, reviewed, people, quiet)
    return 1 if wrong else 0


def _problems(run: Run, where: str, quiet: bool) -> int:
    """Print what is wrong with a run folder, or that it is whole; return the number of problems.

    where: text that begins each line.
    """
    problems = run.verify()
    for problem in problems:
        click.echo(clean(f"{where}{problem}"))
    if not problems and not quiet:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        click.echo(
            f"{clean(str(run.folder))}: whole: {many(replies, 'response')} to "
            f"{many(planned, 'request')}{failed}, none twice"
        )
    return len(problems)


def _recomputed(
    run: Run, where: str, reviewed: Path | None, people: Path | None, quiet: bool
) -> int:
    """Print which stored figures differ when they are computed again; return their number.

    where: text that begins each line.
    """
    from genprobe.analysis import recompute as again

    found = again.recompute(run, reviewed, people)
    for line in found.differences:
        click.echo(clean(f"{where}{line}"))
    agree = "all as stored" if not found.differences else "those above differ; score again"
    if not quiet:
        click.echo(clean(f"{where}{many(found.figures, 'figure')} computed again, {agree}"))
    for name, why in found.left.items():
        click.echo(clean(f"{where}not computed again: {name}: {why}"))
    return len(found.differences)
