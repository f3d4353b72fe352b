"""`genprobe selftest`: check genprobe against known values."""

from __future__ import annotations

import click

from genprobe.commands._console import Bar
from genprobe.commands._options import QUIET, VERBOSE, together


@click.command("selftest", short_help="Check genprobe against a model with known rates.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Number from which all seeds are derived.",
)
@together(QUIET, VERBOSE)
def command(seed: int, quiet: bool) -> int:
    """Measure the control model and compare with its known rates (exit code 1 if they differ).

    This tests what may differ on your machine: answers to yes/no questions, stories, thoughts,
    forced choices and probabilities, as they are drawn, read and counted.
    """
    from genprobe.selftest import run

    with Bar(quiet) as bar:
        report = run(bar, seed)
    click.echo(report.text())
    return 0 if report.ok else 1
