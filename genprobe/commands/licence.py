"""`genprobe licence`: measure how well a second reader reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._chat import TOLD
from genprobe.commands._console import Bar, noter
from genprobe.commands._options import ASKED, QUIET, SERVER, VERBOSE, together, writer
from genprobe.errors import InputError
from genprobe.text import many


@click.command("licence", short_help="Measure how well a second reader reads.")
@click.argument("model", metavar="MODEL")
@ASKED["langs"]
@click.option(
    "--gold",
    "golds",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Replies that you have labelled: lang, prompt, response, reads, gold; may be repeated.",
)
@click.option(
    "--download",
    is_flag=True,
    help="Also ask about real replies, whose texts are fetched from their public repositories.",
)
@together(*SERVER)
@TOLD
@click.option(
    "-o", "out", metavar="FILE", help="Also write the table: JSONL, CSV or Parquet by suffix."
)
@together(QUIET, VERBOSE)
def command(
    model: str,
    langs: tuple[str, ...],
    golds: tuple[Path, ...],
    download: bool,
    out: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Ask a model about labelled replies, and say how well it reads them.

    The licence is stored in your folder of settings, by model, revision, language and kind of
    question. Runs that the model reads as --second-reader state it, and have a band from it.
    """
    from genprobe import files
    from genprobe.analysis import licence
    from genprobe.resources import licences, packs

    note = noter(quiet)
    codes = [packs.language_code(lang) for lang in langs]
    with Bar(quiet) as bar:
        cases = licence.imitations(codes)
        for path in golds:
            cases += licence.of_file(path, codes)
        if download:
            cases += licence.real(codes, note, bar)
        if not cases:
            raise InputError(f"no labelled replies in {', '.join(codes)}; give some with --gold")
        with writer("licence", asked | {"model": model}, note) as engine:
            found = licence.measured(cases, engine, bar)
    for line in licence.lines(found):
        click.echo(line)
    note(f"licence: {licences.keep(found)}")
    if out:
        files.write_rows(out, [vars(one) for one in found])
        note(f"{out}: {many(len(found), 'row')}")
