"""`genprobe judge`: read the replies of a run, or of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._chat import TOLD
from genprobe.commands._console import Bar, noter
from genprobe.commands._options import FOLLOW, QUIET, SERVER, VERBOSE, Named, together


@click.command("judge", short_help="Read the replies of a run, a log or your own file.")
@click.argument("source", metavar="RUN|FILE|LOG")
@click.option(
    "--judge",
    "judges",
    type=Named("judges"),
    multiple=True,
    metavar="J",
    help="Judge, see `list judges`; default yesno.",
)
@click.option("--parser", metavar="P", help="For yesno: another way to read, shades2025 or strict.")
@click.option(
    "--classifier", metavar="C", help="For sentiment: the classifier, see `list classifiers`."
)
@click.option(
    "--kind", metavar="K", help="For sentiment: what the texts are; stories (default) or reviews."
)
@click.option(
    "--second-reader",
    metavar="M",
    help="A model that reads what the rules leave open: an alias, a hub id, a folder, or the name "
    "that a server uses.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="KIND",
    help="Kind of replies for the second reader, such as undecided; may be repeated.  "
    "[default: unsure, undecided, both, offtopic]",
)
@click.option(
    "--rubric",
    metavar="R",
    help="Have the second reader read every reply by this rubric: answer, choice, stance, "
    "sentiment or regard.",
)
@click.option(
    "--gold",
    metavar="COLUMN",
    help="For a file: column of labels that people gave; says how often the judge agrees, and "
    "where it does not.",
)
@together(*SERVER)
@TOLD
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="OURS=YOURS,…",
    help="For a file: which column is ours, such as response=Antwort,lang=Sprache.",
)
@click.option(
    "--encoding", default="", metavar="E", help="For a text that is not in UTF-8, such as cp1251."
)
@click.option(
    "-o",
    "out",
    metavar="FILE|FOLDER",
    help="Output file: JSONL, CSV or Parquet by suffix; else a run folder of the replies.  "
    "[default: stdout, as JSONL]",
)
@together(FOLLOW, QUIET, VERBOSE)
def command(
    source: str,
    judges: tuple[str, ...],
    out: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Read the replies of a run folder, of a log of another harness, or of your own file.

    LOG is a file, a folder, a pattern ('logs/*.eval') or - (standard input): of Inspect, lm-eval,
    promptfoo, HELM, lighteval, Every Eval Ever, batches of OpenAI and Anthropic, or chats. What it
    is, is found out and said. A FILE is JSONL, CSV, Parquet or XLSX, also packed (.gz). Rows need
    `response`; to read yes/no answers also `lang` and `probe` (or `reads`: stance, stereotype or
    question, which beats it), and `prompt`, which a plain question needs. A prompt in the words of
    a pack tells language, probe and statement by itself. The columns `answer`, `kind`, `conflict`,
    `likely`, `rule`, `evidence` and `reader` are added (or the columns of another judge); other
    columns are kept. With -o FOLDER the replies become a run, for `score`, `report`, `compare`,
    `gate`, `review` and `verify`. A second reader (--second-reader, or the only model of
    --base-url) is a chat model: it reads what the rules leave open, in columns of its own. It never
    reads its own replies. `genprobe licence` measures how well it reads.
    """
    from genprobe import api

    with Bar(quiet) as bar:
        api.judge(
            source,
            judges,
            out=out or (None if (Path(source) / "run.json").is_file() else "-"),
            note=noter(quiet),
            progress=bar,
            **asked,
        )
