"""`genprobe audit`: models × instruments from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._chat import FAILED
from genprobe.commands._console import Bar, noter, print_scores, say
from genprobe.commands._options import FORMAT, QUIET, VERBOSE, Named, together
from genprobe.text import whole_number


class _Audits(click.Group):
    """A group that takes a file in the place of a command: `genprobe audit FILE` runs it."""

    default = "run"

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = [self.default, *args]
        return super().resolve_command(context, args)


@click.group(
    "audit",
    cls=_Audits,
    short_help="Ask models × languages × instruments as one file says.",
    context_settings={"ignore_unknown_options": True},
)
def command() -> None:
    """Ask several models with several instruments, as one file says; `audit FILE.toml` runs it.

    \b
    genprobe audit new audit.toml        six questions, and a file with comments
    genprobe audit audit.toml --dry-run  check it whole; what it takes, what it will show
    genprobe audit audit.toml            run it; the same command resumes it
    genprobe audit audit.toml --out audits/december --against audits/november
    genprobe audit series audits/*       many audits: when a figure moved

    docs/audit.md shows the file.
    """


@command.command("run", short_help="Run the audit of a file: the same as `genprobe audit FILE`.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The audit's folder.  [default: that of the file, else audits/ and the file's name]",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of an earlier audit; each model is compared with itself, and tested against "
    "the limits in the file.",
)
@click.option(
    "--dry-run", is_flag=True, help="Check the file and say what it takes; ask and write nothing."
)
@click.option(
    "--pilot",
    type=click.IntRange(2),
    metavar="N",
    help="Ask N requests of each cell, and say by their replies what all will take.",
)
@together(FORMAT, QUIET, VERBOSE)
def run(form: str, quiet: bool, **asked: Any) -> int:
    """Check the file whole, then run what is not there yet, count it, and make the page.

    Every cell (a model and an instrument) is an ordinary run folder in DIR/runs. The same command
    resumes an audit. Prints the main measures of all cells as one table. Exit code 3: requests have
    no reply; 2: the file is wrong (nothing has run), or a model failed (the others are there). With
    --against and limits, also 1: a figure is worse, 4: undecided (as `genprobe gate`).
    """
    from genprobe.audits.audit import PAGE, audit
    from genprobe.commands.gate import CODES
    from genprobe.text.display import clean

    with Bar(quiet) as bar:
        found = audit(asked.pop("file"), note=noter(quiet), progress=bar, **asked)
    if asked["dry_run"] or asked["pilot"]:
        for line in found.forecast:
            click.echo(clean(line))
        for line in found.failed:
            say(line)
        return 2 if found.failed else 0
    if found.scores:
        print_scores(found.scores, form)
    for line in found.told if form == "table" else ():
        click.echo(clean(line))
    for name, verdict in found.gates.items() if form == "table" else ():
        for line in verdict.lines():
            click.echo(clean(f"{name}: {line}"))
    if found.scores and not quiet:
        say(f"page: {found.folder / PAGE}; `genprobe verify {found.folder}/runs/*` checks all")
    for line in (*found.failed, *found.left):
        say(line)
    if found.failed or found.left:
        return 2 if found.failed else FAILED
    return max((CODES[one.verdict] for one in found.gates.values()), default=0)


_QUESTIONS = {
    "models": "Which models? (aliases, hub ids, folders, NAME@URL; commas between)",
    "langs": "Which languages? (codes, such as kk,ru)",
    "instruments": "Which instruments? (yesno, essays, stories, choices, logprob)",
    "wordings": "How many wordings of each question? (published, all, or a number)",
    "limit": "How many statements of each language? (a number, or all)",
    "out": "Which folder for the runs?",
}


@command.command("new", short_help="Ask six questions and write the file of an audit.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@click.option("--model", "models", metavar="M,…", help=_QUESTIONS["models"])
@click.option("--lang", "langs", metavar="CODE,…", help=_QUESTIONS["langs"])
@click.option("--instrument", "instruments", metavar="I,…", help=_QUESTIONS["instruments"])
@click.option("--wordings", metavar="published|all|N", help=_QUESTIONS["wordings"])
@click.option("--limit", metavar="N|all", help=_QUESTIONS["limit"])
@click.option("--out", metavar="DIR", help=_QUESTIONS["out"])
@VERBOSE
def new(file: Path, **given: str | None) -> None:
    """Ask six questions and write the file of an audit, with comments.

    Each question can be answered by an option instead, so that nothing is asked in a script.
    """
    from genprobe.audits.new import write
    from genprobe.errors import InputError

    usual = {"models": "control", "langs": "en", "instruments": "yesno", "wordings": "published"}
    usual |= {"limit": "all", "out": f"audits/{file.stem}"}
    for name, question in _QUESTIONS.items():
        if given[name] is None:
            try:
                given[name] = click.prompt(question, default=usual[name], err=True)
            except click.Abort:
                option = next(p.opts[0] for p in new.params if p.name == name)
                raise InputError(f"no answer; give {option}") from None
    lists = ([part.strip() for part in str(given[n]).split(",")] for n in list(_QUESTIONS)[:3])
    models, langs, instruments = ([part for part in one if part] for one in lists)
    limit = str(given["limit"])
    most = None if limit == "all" else whole_number(limit) or 0
    if most == 0:
        raise InputError(f"--limit {limit}: a number, or all")
    path = write(file, models, langs, instruments, str(given["wordings"]), most, str(given["out"]))
    say(f"{path}: written; `genprobe audit {path} --dry-run` checks it and says what it takes")


@command.command("series", short_help="Audits of several days: each figure, and when it moved.")
@click.argument(
    "audits", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option(
    "--metric",
    "metrics",
    type=Named("metrics"),
    multiple=True,
    metavar="M",
    help="Measure; may be repeated.  [default: the first main one of each instrument]",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also draw each measure over the days: SVG, PDF, and its data as CSV and LaTeX.",
)
@together(FORMAT, QUIET, VERBOSE)
def series(audits: tuple[Path, ...], form: str, quiet: bool, **asked: Any) -> None:
    """Set the audits of several days or versions in order, and say when a figure moved.

    Each audit is compared with the first one, item by item. A figure moved on the first day on
    which that difference is sure: p below 5 % after Holm's correction for all days, languages and
    measures of a model and an instrument, and whatever unclear replies mean.
    """
    from genprobe.audits.series import series as set_in_order
    from genprobe.text.display import clean

    found = set_in_order(audits, note=noter(quiet), **asked)
    print_scores(found.scores, form)
    for line in found.told if form == "table" else ():
        click.echo(clean(line))
    for path in found.figures:
        if not quiet:
            say(f"figure: {path}")
