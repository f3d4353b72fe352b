"""`genprobe rejudge`: which labels of a run move when its replies are read again."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._options import FOLLOW, VERBOSE, Named, together
from genprobe.text.display import clean


@click.command("rejudge", short_help="Say which labels move when a run is read again.")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--judge",
    "judges",
    type=Named("judges"),
    multiple=True,
    metavar="J",
    help="Judge; default all that read it.",
)
@click.option(
    "-o", "out", metavar="FILE", help="Write every label that moves: JSONL, CSV or Parquet."
)
@together(FOLLOW, VERBOSE)
def command(run: Path, judges: tuple[str, ...], out: str | None) -> None:
    """Read the replies of a run again with the judges that have read it; say which labels move.

    For each judge and move: how many, and the first replies, by language, question, statement and
    request. Nothing in the folder changes: `genprobe judge RUN` writes the new labels.
    """
    from genprobe.tasks.pipeline.reread import rejudge

    rejudge(run, judges, out=out, note=lambda line: click.echo(clean(line)))
