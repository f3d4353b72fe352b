"""`genprobe verify`: check a run folder."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._options import VERBOSE
from genprobe.text import many


@click.command("verify", short_help="Check that a run folder is complete and unchanged.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
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
@VERBOSE
def command(folder: Path, recompute: bool, reviewed: Path | None, people: Path | None) -> int:
    """Check that a run folder is complete and unchanged; else name the problems (exit code 1)."""
    from genprobe.errors import InputError
    from genprobe.runs.run import Run
    from genprobe.text.display import clean

    if (reviewed or people) and not recompute:
        raise InputError("--reviewed and --people go with --recompute")
    run = Run.open(folder)
    problems = run.verify()
    for problem in problems:
        click.echo(clean(problem))
    if not problems:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        click.echo(
            f"{clean(str(folder))}: whole: {many(replies, 'response')} to "
            f"{many(planned, 'request')}{failed}, none twice"
        )
    if recompute:
        from genprobe.analysis import recompute as again

        found = again.recompute(run, reviewed, people)
        for line in found.differences:
            click.echo(clean(line))
        problems += found.differences
        agree = "all as stored" if not found.differences else "see above"
        click.echo(f"{many(found.figures, 'figure')} computed again, {agree}")
        for name, why in found.left.items():
            click.echo(clean(f"not computed again: {name}: {why}"))
    return 1 if problems else 0
