"""Read replies: of a run, or of anybody's."""

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
from genprobe.commands._options import ASKED, QUIET, VERBOSE, together
from genprobe.errors import Caution, InputError
from genprobe.text import many

_OF_A_MODEL = ("engine", "base_url", "concurrency", "engine_args", "headers", "key_env")


@click.command("judge", short_help="Read replies, of a run or of anybody's.")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN|FILE")
@click.option("--judge", "names", multiple=True, metavar="J", help="Judge; default yesno.")
@click.option("--parser", metavar="P", help="For yesno: another reader; shades2025 or strict.")
@click.option("--classifier", metavar="C", help="For sentiment: a card; see `list classifiers`.")
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
    help="For llm: only replies of this kind, as they were read before; such as undecided.",
)
@click.option(
    "--gold",
    metavar="COLUMN",
    help="Of a file: labels that people gave; says how often the judge gives the same, and where "
    "it does not.",
)
@together(*(ASKED[name] for name in _OF_A_MODEL))
@TOLD
@click.option("-o", "out", metavar="FILE", help="JSONL, CSV or Parquet by suffix; else stdout.")
@together(QUIET, VERBOSE)
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
    """Read replies: of a run folder, or of anybody's, in JSONL, CSV or Parquet.

    Rows need `response`; for the answers also `lang` and `probe`, and `prompt` where replies may
    begin with an echo of it. They come back with `answer`, `kind`, `conflict`, `rule` and
    `evidence` (or the columns of another judge: `genprobe list judges`), others untouched.
    The judge llm is a chat model, which --model, or --base-url, and a rubric name.
    """
    from genprobe.judges import make
    from genprobe.tasks.pipeline.open import engine_options, open_engine, told

    if only and set(names) != {"llm"}:
        raise InputError(
            "--only goes with --judge llm; the other judges read all replies in no time"
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
                raise InputError("-o goes with a file; judgments of a run stay in its folder")
            if column:
                raise InputError(
                    "--gold goes with a file; people's labels of a run: `genprobe review export`"
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
    """Say how far judges of stories and essays can be trusted with what they have read."""
    from genprobe.resources import measured

    for judge in judges:
        if judge.name in ("stance", "refusal"):
            yield from filter(None, [measured.caution(judge.name, ())])
        yield from getattr(judge, "cautions", ())
