"""`genprobe reproduce`: derive a published table again."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, VERBOSE, together


@click.command("reproduce", short_help="Derive a published table again from its raw data.")
@click.argument("name", metavar="NAME")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the study's raw data, which you have downloaded. Not needed if only the "
    "printed figures are checked.",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Format of the cells.",
)
@together(FOLLOW, QUIET, VERBOSE)
def command(name: str, folder: Path | None, form: str, quiet: bool) -> int:
    """Derive a published table again from its raw data, and compare the two.

    \b
    genprobe list reproductions
    genprobe reproduce rubia --from ./RuBia-Dataset
    genprobe reproduce rubia --from ./RuBia-Dataset -f csv > cells.csv

    Prints which cells agree to the printed digits, which do not, and why, if that is known. The
    published figures come with genprobe, statements and replies do not: docs/reproduce.md names the
    files that each study needs. Exit code 0 if every cell agrees or differs for a known reason,
    else 1.
    """
    from genprobe.analysis.reproduce import run
    from genprobe.analysis.reproduced import render

    found = run(name, folder)
    click.echo(render(found, form), nl=False)
    if form != "table":
        noter(quiet)(f"{name}: {found.summary}")
    return 0 if found.ok else 1
