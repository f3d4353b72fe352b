"""`genprobe licence`: measure how well a second reader reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._chat import TOLD
from genprobe.commands._console import Bar, noter
from genprobe.commands._options import ASKED, QUIET, SERVER, VERBOSE, together


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
def command(model: str, quiet: bool, **asked: Any) -> None:
    """Ask a model about labelled replies, and say how well it reads them.

    The licence is stored in your folder of settings, by model, revision, language and kind of
    question. Runs that the model reads as --second-reader state it, and have a band from it.
    """
    from genprobe.analysis.licence import lines
    from genprobe.api import data
    from genprobe.resources.licences import Licence

    with Bar(quiet) as bar:
        found = data.licence(model, note=noter(quiet), progress=bar, **asked)
    for line in lines(Licence(**row) for row in found):
        click.echo(line)
