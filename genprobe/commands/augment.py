"""More rows like those that people gave, written by a model."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import ASKED, QUIET, VERBOSE, together
from genprobe.errors import InputError
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
@together(*(ASKED[name] for name in ("model", "engine", "base_url", "concurrency", "engine_args")))
@click.option("--seed", type=int, default=0, show_default=True, help="Of examples and sampling.")
@click.option("-o", "out", type=click.Path(path_type=Path), metavar="FILE", help="The new rows.")
@together(QUIET, VERBOSE)
def command(
    source: Path,
    count: int,
    lang: str,
    places: str,
    batch: int,
    temperature: float,
    model: str | None,
    engine: str,
    base_url: str | None,
    concurrency: int | None,
    engine_args: tuple[str, ...],
    seed: int,
    out: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Have a model write more stereotypes like the seeds, each with a positive counter-stereotype.

    What cannot be read as a row is printed to stderr, refusals are counted, near-duplicates
    dropped. The rows are for review (`genprobe dataset validate`) before anything is measured.
    """
    from genprobe.curation import augment as step
    from genprobe.curation import tables
    from genprobe.tasks.pipeline.open import engine_options, open_engine

    if model is None and base_url is None:
        raise InputError("augment: name a model that writes, with --model or --base-url")
    note = noter(quiet)
    options = dataclasses.replace(engine_options(engine_args, base_url, concurrency), note=note)
    with contextlib.closing(open_engine(engine, model, options)) as opened:
        done = step.run(source, opened, count, lang, places, batch, temperature, seed, note)
    tables.write(out, done.rows, step.COLUMNS)
    for line in done.bad:
        note(line)
    note(
        f"{many(len(done.rows), 'row')} of {count} wanted; near-duplicates dropped: {done.dropped}"
    )
    for what, replies in done.replies.items():
        note(f"{what}: {done.refusals[what]} of {many(replies, 'reply')} refused")
    if done.halted:
        note(f"batches in which the model said that it stops: {done.halted}")
