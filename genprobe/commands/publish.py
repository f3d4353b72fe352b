"""`genprobe publish`: a folder with runs, figures and cards, which a stranger can check."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import FOLLOW, QUIET, VERBOSE, together


@click.command("publish", short_help="Write a folder of runs, figures and cards to publish.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "out",
    required=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="New folder.",
)
@click.option(
    "--hide",
    "hide",
    multiple=True,
    metavar="PART",
    help="hosts: addresses of servers, paths of models, details of failures; texts: statements, "
    "prompts, replies, evidence. May be repeated; texts of gated data are hidden anyway.",
)
@together(FOLLOW, QUIET, VERBOSE)
def command(runs: tuple[Path, ...], out: Path, hide: tuple[str, ...], quiet: bool) -> None:
    """Write a folder with everything that a stranger needs to check runs; send nothing.

    It holds the runs, their page and figures, an evaluation card (README.md, which the Hugging Face
    hub reads), model-index.yml, croissant.json, records of Every Eval Ever, CITATION.cff and
    SHA256SUMS. `genprobe verify FOLDER` finds every altered byte; `genprobe verify --recompute
    FOLDER` makes the figures again.
    """
    from genprobe.publishing import publish

    publish(runs, out, hide=hide, note=noter(quiet))
