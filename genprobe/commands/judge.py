"""`genprobe judge`: read the replies of a run, or of a file."""

from __future__ import annotations

import contextlib
import dataclasses
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
@click.option(
    "--second-reader",
    "reader",
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
    "-o", "out", metavar="FILE", help="Output file: JSONL, CSV or Parquet by suffix; else stdout."
)
@together(FOLLOW, QUIET, VERBOSE)
def command(
    source: Path,
    names: tuple[str, ...],
    parser: str | None,
    classifier: str | None,
    kind: str | None,
    reader: str | None,
    only: tuple[str, ...],
    rubric: str | None,
    gold: str | None,
    out: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Read the replies of a run folder, or of your own file (JSONL, CSV or Parquet).

    Rows need `response`; to read yes/no answers also `lang` and `probe` (or `reads`: stance,
    stereotype or question, which beats it), and `prompt`, which a plain question needs. The columns
    `answer`, `kind`, `conflict`, `likely`, `rule` and `evidence` are added (or the columns of
    another judge); other columns are kept. A second reader (--second-reader, or the only model of
    --base-url) is a chat model: it reads what the rules leave open, in columns of its own. It never
    reads its own replies. `genprobe licence` measures how well it reads.
    """
    from genprobe.judges import make
    from genprobe.tasks.pipeline.open import engine_options, told

    note = noter(quiet)
    server = engine_options(asked["engine_args"], asked["base_url"], asked["concurrency"])
    server = dataclasses.replace(told(server, asked), note=note)
    second = bool(reader or asked["base_url"])
    if second and names:
        raise InputError("--judge and --second-reader: first the judge, then the second reader")
    if (only or rubric) and not second:
        raise InputError("--only and --rubric are for a second reader; name it: --second-reader")
    model = (reader, server, asked["engine"]) if second else None
    judges = [] if model else make(names, parser=parser, classifier=classifier, kind=kind)
    if source.is_dir() and (out or gold):
        raise InputError(
            "-o can be used only with a file; judgments of a run are written to its folder"
            if out
            else "--gold can be used only with a file; people label the replies of a run with "
            "`genprobe review export`"
        )
    with Bar(quiet) as bar, contextlib.ExitStack() as stack:
        if source.is_dir():
            _judge_run(source, judges, model, only, rubric, note, bar, stack)
        else:
            _judge_file(source, judges, model, only, rubric, note, bar, stack, out, gold)


# The name of a second reader, the settings of its engine, and the engine.
_Reader = tuple[str | None, Any, str] | None


def _judge_run(
    source: Path,
    judges: list[Any],
    model: _Reader,
    only: tuple[str, ...],
    rubric: str | None,
    note: Callable[[str], None],
    bar: Bar,
    stack: contextlib.ExitStack,
) -> None:
    from genprobe import tasks
    from genprobe.analysis.second import told
    from genprobe.runs.run import Run
    from genprobe.tasks.pipeline import second

    run = stack.enter_context(Run.open(source))
    if model is None:
        counts = tasks.judge_run(run, judges, bar)
    else:
        own = tasks.of(run.spec).second
        if own is None:
            raise InputError(f"{source}: a run of {run.spec.command} has no replies to read")
        judge = stack.enter_context(second.reader(*model, rubric or own.rubric))
        if rubric and not only:
            second.need_another(run.spec, judge.identity)
            counts = tasks.judge_run(run, [judge], bar)
        else:
            counts = {judge.name: second.read(run, own, judge, only, bar)}
        for line in told(run):
            note(line)
        note(f"{judge.name}: {judge.bias}")
    for name, count in counts.items():
        note(f"{source}/judgments/{name}.jsonl: {many(count, 'judgment')}")


def _judge_file(
    source: Path,
    judges: list[Any],
    model: _Reader,
    only: tuple[str, ...],
    rubric: str | None,
    note: Callable[[str], None],
    bar: Bar,
    stack: contextlib.ExitStack,
    out: str | None,
    column: str | None,
) -> None:
    from genprobe.tasks.pipeline import second
    from genprobe.tasks.pipeline.gold import Gold
    from genprobe.tasks.pipeline.judge import judge_file

    gold = Gold(column) if column else None
    if model:
        judges = [stack.enter_context(second.reader(*model, rubric or "answer"))]
        only = only or (() if rubric else second.OPEN)
    found = judge_file(source, judges, out, bar, note, only, gold)
    for line in _cautions(judges):
        note(Caution(f"caution: {line}"))
    for name, labels in found.items():
        total = sum(labels.values())
        parts = ", ".join(
            f"{label} {n}" for label, n in sorted(labels.items(), key=lambda x: -x[1])
        )
        which = (
            f"{many(total, 'reply')} of the kind {', '.join(only)}"
            if only
            else many(total, "reply")
        )
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
