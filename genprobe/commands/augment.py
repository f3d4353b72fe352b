"""More rows like those that people gave, written by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter
from genprobe.commands._options import QUIET, VERBOSE, WRITER, together, writer
from genprobe.text import many


@click.command("augment", short_help="Have a model write more stereotypes, for people to review.")
@click.option(
    "--data",
    "source",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Seed rows: identity, attribute, sentence; country and category.",
)
@click.option("-n", "count", type=int, default=100, show_default=True, help="Rows wanted.")
@click.option("--lang", default="en", show_default=True, metavar="CODE", help="Of the prompts.")
@click.option("--places", default="", metavar="TEXT", help="Countries; else those of the seeds.")
@click.option(
    "--batch", type=int, default=50, show_default=True, metavar="N", help="Rows at a time."
)
@click.option("--temperature", type=float, default=1.0, show_default=True, help="Of sampling.")
@WRITER
@click.option("--seed", type=int, default=0, show_default=True, help="Of examples and sampling.")
@click.option("-o", "out", type=click.Path(path_type=Path), metavar="FILE", help="The new rows.")
@together(QUIET, VERBOSE)
def command(source: Path, out: Path | None, quiet: bool, **asked: Any) -> None:
    """Have a model write more stereotypes like the seeds, each with a positive counter-stereotype.

    What cannot be read as a row is printed to stderr, refusals are counted, near-duplicates
    dropped. The rows are for review (`genprobe dataset validate`) before anything is measured.
    """
    from genprobe.curation import augment as step
    from genprobe.curation import tables

    note = noter(quiet)
    with writer("augment", asked, note) as opened:
        done = step.run(source, opened, step.Wanted(**asked), note)
    tables.write(out, done.rows, step.COLUMNS)
    for line in done.bad:
        note(line)
    rows = many(len(done.rows), "row")
    note(f"{rows} of {asked['count']} wanted; near-duplicates dropped: {done.dropped}")
    for what, replies in done.replies.items():
        note(f"{what}: {done.refusals[what]} of {many(replies, 'reply')} refused")
    if done.halted:
        note(f"batches in which the model said that it stops: {done.halted}")
