"""`genprobe verify`: check a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from genprobe.commands._options import FOLLOW, VERBOSE
from genprobe.text import many
from genprobe.text.display import clean

if TYPE_CHECKING:
    from genprobe.runs.run import Run


@click.command("verify", short_help="Check that run folders are complete and unchanged.")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--recompute",
    is_flag=True,
    help="Also compute the figures of scores.json again from the records, with separate, simple "
    "code.",
)
@click.option(
    "--reviewed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --recompute: the table of `review import` by which rates were corrected.",
)
@click.option(
    "--people",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --recompute: the table of people's answers with which the run was scored.",
)
@click.option(
    "--seal",
    is_flag=True,
    help="Seal the records as they are now, after a change on purpose; the change stays noted.",
)
@click.option(
    "--sign",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign the seal with your SSH key (ssh-keygen), if nothing is wrong.",
)
@click.option(
    "--allowed-signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Whose signatures you accept: lines of a name and a public key, as ssh-keygen reads them.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print problems only.")
@FOLLOW
@VERBOSE
def command(
    folders: tuple[Path, ...],
    recompute: bool,
    reviewed: Path | None,
    people: Path | None,
    seal: bool,
    sign: Path | None,
    allowed_signers: Path | None,
    quiet: bool,
) -> int:
    """Check that run folders are complete and unchanged; else name the problems (exit code 1).

    The records must be those that were sealed at the end of the run, and whoever read the replies
    must read them in the same way again.
    """
    from genprobe.errors import InputError
    from genprobe.runs.run import Run

    if (reviewed or people) and not recompute:
        raise InputError("--reviewed and --people work only with --recompute; add it")
    runs = [Run.open(folder) for folder in folders]
    wrong = 0
    for run in runs:
        where = f"{run.folder}: " if len(runs) > 1 else ""
        if seal:
            run.seal()
        found = _problems(run, where, recompute, quiet)
        if recompute:
            found += _recomputed(run, where, reviewed, people, quiet, bool(found))
        wrong += found
        if sign and not found:
            run.sign_seal(sign)
        wrong += _sealed(run, where, allowed_signers, bool(found), quiet)
        if sign and found:
            click.echo(clean(f"{where}not signed, because of the problems above"))
    return 1 if wrong else 0


def _problems(run: Run, where: str, recompute: bool, quiet: bool) -> int:
    """Print what is wrong with a run folder, or that it is whole; return the number of problems.

    where: text that begins each line. recompute: read replies again also with classifiers.
    """
    from genprobe.errors import GenprobeError
    from genprobe.tasks.pipeline.reread import Reread, reread

    problems = run.verify()
    again = Reread([], {})
    try:
        again = reread(run, recompute)
    except GenprobeError as error:  # mostly damage that is named already
        again.problems.extend([] if problems else [str(error)])
    problems = [*problems, *again.problems]
    for problem in problems:
        click.echo(clean(f"{where}{problem}"))
    if not problems and not quiet:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        click.echo(
            f"{clean(str(run.folder))}: whole: {many(replies, 'response')} to "
            f"{many(planned, 'request')}{failed}, none twice"
        )
    for name, why in () if quiet else again.left.items():
        click.echo(clean(f"{where}not read again: {name}: {why}"))
    return len(problems)


def _sealed(run: Run, where: str, allowed: Path | None, found: bool, quiet: bool) -> int:
    """Print the seal of a run and who signed it; return the number of problems.

    found: whether problems were found before.
    """
    from genprobe.errors import RunError
    from genprobe.runs import seal, sign

    try:
        chain = run.seals()
    except RunError:  # named already
        return 0
    line, wrong = sign.check(run.folder, allowed) if chain else ("", allowed is not None)
    told = seal.told(chain)
    if not chain:
        told += ": what was changed cannot be told; `genprobe verify --seal` seals it as it is"
    elif found:
        told += "; it does not cover what is named above"
    if wrong or not quiet:
        click.echo(clean(f"{where or f'{run.folder}: '}{', '.join(filter(None, (told, line)))}"))
    return int(wrong)


def _recomputed(
    run: Run, where: str, reviewed: Path | None, people: Path | None, quiet: bool, damaged: bool
) -> int:
    """Print which stored figures differ when they are computed again; return their number.

    where: text that begins each line. damaged: whether problems were found in the records, so that
    they may not fit together.
    """
    from genprobe.analysis import recompute as again

    try:
        found = again.recompute(run, reviewed, people)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        if not damaged:
            raise
        click.echo(clean(f"{where}no figure computed again, because of the problems above"))
        return 0
    for line in found.differences:
        click.echo(clean(f"{where}{line}"))
    agree = "all as stored" if not found.differences else "those above differ; score again"
    if not quiet:
        click.echo(clean(f"{where}{many(found.figures, 'figure')} computed again, {agree}"))
    for name, why in found.left.items():
        click.echo(clean(f"{where}not computed again: {name}: {why}"))
    return len(found.differences)
