"""`genprobe merge`: put pieces of a run together."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, VERBOSE


@click.command("merge", short_help="Put pieces of a run, made on several machines, together.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, metavar="RUN", type=click.Path(path_type=Path), help="New folder."
)
@QUIET
@FOLLOW
@VERBOSE
def command(runs: tuple[Path, ...], out: Path, quiet: bool) -> None:
    """Put pieces of a run together to one run, which `genprobe verify` checks like any other.

    The pieces asked the same model in the same way, each about its own statements (such as
    `--lang`, or a part of the file of `--data`), or each a part of one plan. They stay as they are.
    """
    from genprobe import api

    api.merge(runs, out, note=noter(quiet))
