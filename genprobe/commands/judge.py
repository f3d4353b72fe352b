"""`genprobe judge`: read the replies of a run, or of a file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from genprobe.commands._chat import TOLD
from genprobe.commands._console import Bar, noter
from genprobe.commands._options import FOLLOW, QUIET, SERVER, VERBOSE, together
from genprobe.errors import Caution, InputError
from genprobe.text import many


@click.command("judge", short_help="Read the replies of a run, or of your own file.")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN|FILE")
@click.option(
    "--judge", "names", multiple=True, metavar="J", help="Judge, see `list judges`; default yesno."
)
@click.option("--parser", metavar="P", help="For yesno: another way to read, shades2025 or strict.")
@click.option(
    "--classifier", metavar="C", help="For sentiment: the classifier, see `list classifiers`."
)
@click.option(
    "--kind", metavar="K", help="For sentiment: what the texts are; stories (default) or reviews."
)
@click.option("--rubric", metavar="R", help="For llm: stance (default), sentiment or answer.")
@click.option(
    "--model", metavar="M", help="For llm: the model that judges; alias, hub id or folder."
)
@click.option(
    "--only",
    default="",
    metavar="KIND",
    help="For llm: only replies that yesno gave this kind, such as undecided.",
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
    "-o", "out", metavar="FILE", help="Output file: JSONL, CSV or Parquet by suffix; else stdout."
)
@together(FOLLOW, QUIET, VERBOSE)
def command(
    source: Path,
    names: tuple[str, ...],
    parser: str | None,
    classifier: str | None,
    kind: str | None,
    rubric: str | None,
    only: str,
    gold: str | None,
    out: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Read the replies of a run folder, or of your own file (JSONL, CSV or Parquet).

    Rows need `response`; to read yes/no answers also `lang` and `probe` (or `reads`: stance,
    stereotype or question, which beats it), and `prompt`, which a plain question needs. The columns
    `answer`, `kind`, `conflict`, `likely`, `rule` and `evidence` are added (or the columns of
    another judge); other columns are kept. The judge llm is a chat model: name it with --model or
    --base-url, and choose a rubric.
    """
    from genprobe.judges import make
    from genprobe.tasks.pipeline.open import engine_options, open_engine, told

    if only and set(names) != {"llm"}:
        raise InputError(
            "--only can be used only with --judge llm; the other judges are fast enough to read "
            "all replies"
        )
    note = noter(quiet)
    server = engine_options(asked["engine_args"], asked["base_url"], asked["concurrency"])
    server = told(server, asked)
    with contextlib.ExitStack() as stack:
        engine = None
        if asked["model"] or asked["base_url"]:
            server = dataclasses.replace(server, note=note)
            engine = functools.partial(open_engine, asked["engine"], asked["model"], server)
        judges = make(
            names,
            stack,
            parser=parser,
            classifier=classifier,
            kind=kind,
            rubric=rubric,
            model=engine,
        )
        _judge(source, judges, out, note, quiet, only, gold)


def _judge(
    source: Path,
    judges: list[Any],
    out: str | None,
    note: Callable[[str], None],
    quiet: bool,
    only: str,
    column: str | None,
) -> None:
    from genprobe.runs.run import Run
    from genprobe.tasks import judge_run
    from genprobe.tasks.pipeline.gold import Gold
    from genprobe.tasks.pipeline.judge import judge_file

    with Bar(quiet) as bar:
        if source.is_dir():
            if out:
                raise InputError(
                    "-o can be used only with a file; judgments of a run are written to its folder"
                )
            if column:
                raise InputError(
                    "--gold can be used only with a file; people label the replies of a run with "
                    "`genprobe review export`"
                )
            with Run.open(source) as run:
                counts = judge_run(run, judges, bar, only)
                of = f" of {many(run.count('responses'), 'reply')}, those {only}" if only else ""
            for name, count in counts.items():
                note(f"{source}/judgments/{name}.jsonl: {many(count, 'judgment')}{of}")
                if name.startswith("llm-"):
                    from genprobe.judges import llm

                    note(f"{name}: {llm.bias(run.judgments(name))}")
            return
        gold = Gold(column) if column else None
        found = judge_file(source, judges, out, bar, note, only, gold)
    for line in _cautions(judges):
        note(Caution(f"caution: {line}"))
    for name, labels in found.items():
        total = sum(labels.values())
        parts = ", ".join(
            f"{label} {n}" for label, n in sorted(labels.items(), key=lambda x: -x[1])
        )
        which = f"{total:,} {only} replies" if only else many(total, "reply")
        note(f"{name}: {which}: {parts}" if parts else f"{name}: {which}")
    for line in gold.lines(judges[0].name) if gold else ():
        note(Caution(line))
    for judge in judges:
        if hasattr(judge, "bias"):
            note(f"{judge.name}: {judge.bias}")


def _cautions(judges: list[Any]) -> Iterator[str]:
    """Yield cautions about the measured accuracy of the judges of stories and essays."""
    from genprobe.resources import measured

    for judge in judges:
        if judge.name in ("stance", "refusal"):
            yield from filter(None, [measured.caution(judge.name, ())])
        yield from getattr(judge, "cautions", ())
