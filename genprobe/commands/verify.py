"""`genprobe verify`: check a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._options import FOLLOW, VERBOSE
from genprobe.text.display import clean


@click.command("verify", short_help="Check that run folders are complete and unchanged.")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--recompute",
    is_flag=True,
    help="Also score again from the stored replies and judgments, and compare with scores.json "
    "and the table of outcomes.",
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
@click.option(
    "--figures",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="With --recompute: figures of `report --figures DIR` of all these runs; their CSV files "
    "are compared, too.",
)
@click.option(
    "--seal",
    is_flag=True,
    help="Seal the records as they are now, after a change on purpose; the change stays noted.",
)
@click.option(
    "--sign",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign the seal with your SSH key (ssh-keygen), if nothing is wrong.",
)
@click.option(
    "--allowed-signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Whose signatures you accept: lines of a name and a public key, as ssh-keygen reads them.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print problems only.")
@FOLLOW
@VERBOSE
def command(folders: tuple[Path, ...], quiet: bool, **asked: Any) -> int:
    """Check that run folders are complete and unchanged; else name the problems (exit code 1).

    The records must be those that were sealed at the end of the run, and whoever read the replies
    must read them in the same way again.
    """
    from genprobe.api.checks import verify
    from genprobe.errors import Caution

    def note(line: str) -> None:
        if not quiet or isinstance(line, Caution):
            click.echo(clean(line))

    return int(bool(verify(folders, note=note, **asked)))
