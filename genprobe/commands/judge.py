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

Note = Callable[[str], None]


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

    server = engine_options(asked["engine_args"], asked["base_url"], asked["concurrency"])
    server = dataclasses.replace(told(server, asked), note=noter(quiet))
    second = bool(reader or asked["base_url"])
    if (only or rubric) and not second:
        raise InputError("--only and --rubric are for a second reader; name it: --second-reader")
    model = _Reader(reader, server, asked["engine"], rubric, only) if second else None
    # With a second reader alone, what was read before stays.
    alone = second and not names and (source.is_dir() or rubric is not None)
    judges = make(names, parser=parser, classifier=classifier, kind=kind) if not alone else []
    _judge(source, judges, model, out, quiet, gold)


@dataclasses.dataclass(frozen=True)
class _Reader:
    """The second reader, as the options name it."""

    model: str | None
    options: Any
    engine: str
    rubric: str | None
    only: tuple[str, ...]

    def open(self, rubric: str) -> Any:
        from genprobe.tasks.pipeline.second import reader

        return reader(self.model, self.options, rubric, self.engine)


def _judge(
    source: Path,
    judges: list[Any],
    reader: _Reader | None,
    out: str | None,
    quiet: bool,
    column: str | None,
) -> None:
    note = noter(quiet)
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
            _judge_run(source, judges, reader, note, bar)
            return
        _judge_file(source, judges, reader, out, note, bar, column)


def _judge_run(
    source: Path, judges: list[Any], reader: _Reader | None, note: Note, bar: Bar
) -> None:
    from genprobe import tasks
    from genprobe.judges import llm
    from genprobe.runs.run import Run
    from genprobe.tasks.pipeline import second

    with Run.open(source) as run:
        counts = tasks.judge_run(run, judges, bar) if judges else {}
        if reader and reader.rubric and not reader.only:
            with reader.open(reader.rubric) as judge:
                second.need_another(run.spec, judge.identity)
                counts |= tasks.judge_run(run, [judge], bar)
        elif reader:
            tasks.read_second(
                *(run, reader.model, reader.options, reader.only, reader.engine), note, bar
            )
        for name, count in counts.items():
            note(f"{source}/judgments/{name}.jsonl: {many(count, 'judgment')}")
        for name in run.judges() if reader else ():
            if name.startswith("llm-"):
                note(f"{name}: {llm.bias(run.judgments(name))}")


def _judge_file(
    source: Path,
    judges: list[Any],
    reader: _Reader | None,
    out: str | None,
    note: Note,
    bar: Bar,
    column: str | None,
) -> None:
    from genprobe import tasks
    from genprobe.tasks.pipeline import second
    from genprobe.tasks.pipeline.gold import Gold
    from genprobe.tasks.pipeline.judge import judge_file

    gold = Gold(column) if column else None
    with contextlib.ExitStack() as stack:
        judge: Any = None
        only: tuple[str, ...] = ()
        if reader:
            fills = {t.second.fills: t.second for t in tasks.every() if t.second}
            own = fills[judges[0].name] if judges and judges[0].name in fills else None
            rubric = reader.rubric or (own.rubric if own else "answer")
            only = reader.only or (() if reader.rubric or (own and own.of) else second.OPEN)
            judge = stack.enter_context(reader.open(rubric))
        found = judge_file(source, judges, out, bar, note, gold, judge, only)
    every = [*judges, *([judge] if judge else [])]
    for line in _cautions(judges):
        note(Caution(f"caution: {line}"))
    for name, labels in found.items():
        total = sum(labels.values())
        parts = ", ".join(
            f"{label} {n}" for label, n in sorted(labels.items(), key=lambda x: -x[1])
        )
        which = many(total, "reply")
        note(f"{name}: {which}: {parts}" if parts else f"{name}: {which}")
    for line in gold.lines(every[0].name) if gold else ():
        note(Caution(line))
    if judge:
        note(f"{judge.name}: {judge.bias}")


def _cautions(judges: list[Any]) -> Iterator[str]:
    """Yield cautions about the measured accuracy of the judges of stories and essays."""
    from genprobe.resources import measured

    for judge in judges:
        if judge.name in ("stance", "refusal"):
            yield from filter(None, [measured.caution(judge.name, ())])
        yield from getattr(judge, "cautions", ())
