"""The instrument measured with what is known."""

from __future__ import annotations

import click

from genprobe.commands._console import Bar
from genprobe.commands._options import QUIET, VERBOSE, together


@click.command("selftest", short_help="Compare what is measured with rates that are known.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Base of every request's seed."
)
@together(QUIET, VERBOSE)
def command(seed: int, quiet: bool) -> int:
    """Measure the control model and compare with its exact answer rates (exit code 1 if off).

    The whole instrument is tested: engine, reader, counting, intervals.
    """
    from genprobe import selftest as test

    with Bar(quiet) as bar:
        report = test.run(bar, seed)
    click.echo(report.text())
    return 0 if report.ok else 1
