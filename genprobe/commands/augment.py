"""`genprobe augment`: have a model write more stereotypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter
from genprobe.commands._options import QUIET, VERBOSE, WRITER, together


@click.command("augment", short_help="Have a model write more stereotypes, for people to review.")
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Seeds: a table with columns identity, attribute, sentence, country, category.",
)
@click.option("-n", "count", type=int, default=100, show_default=True, help="Number of rows.")
@click.option(
    "--lang", default="en", show_default=True, metavar="CODE", help="Language of the prompts."
)
@click.option("--places", default="", metavar="TEXT", help="Countries; default those of the seeds.")
@click.option(
    "--batch", type=int, default=50, show_default=True, metavar="N", help="Rows per request."
)
@click.option(
    "--temperature", type=float, default=1.0, show_default=True, help="Sampling temperature."
)
@WRITER
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the examples and of sampling."
)
@click.option("-o", "out", type=click.Path(path_type=Path), metavar="FILE", help="The new rows.")
@together(QUIET, VERBOSE)
def command(data: Path, out: Path | None, quiet: bool, **asked: Any) -> None:
    """Have a model write more stereotypes like the seeds, each with a positive counter-stereotype.

    Replies that are no rows are printed to stderr, refusals are counted, and near-duplicates are
    dropped. Have people check the rows (`genprobe dataset validate`) before you measure with them.
    """
    from genprobe.api.data import augment

    augment(data, out=out or "-", note=noter(quiet), **asked)
