"""A run folder proved whole."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._options import VERBOSE
from genprobe.text import many


@click.command("verify", short_help="Prove that a run folder is whole.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--recompute",
    is_flag=True,
    help="Compute the figures of scores.json again from the records, by a slow and obvious way.",
)
@VERBOSE
def command(folder: Path, recompute: bool, verbose: bool) -> int:
    """Prove that a run folder is whole, or name what is not (exit code 1)."""
    from genprobe.runs.run import Run
    from genprobe.text.display import clean

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

        found = again.recompute(run)
        for line in found.differences:
            click.echo(clean(line))
        problems += found.differences
        left = f"; of {', '.join(found.left)} no slow way is known" if found.left else ""
        agree = "all as stored" if not found.differences else "see above"
        click.echo(f"{many(found.figures, 'figure')} computed again, {agree}{left}")
    return 1 if problems else 0
