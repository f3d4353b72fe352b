"""Check runs: `genprobe.verify`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from genprobe import publishing
from genprobe.analysis.again import score_again
from genprobe.analysis.sources import runs_of
from genprobe.errors import Caution, GenprobeError, InputError, RunError
from genprobe.runs import seal as seals
from genprobe.runs import sign as signing
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, quiet
from genprobe.tasks.pipeline.reread import Reread, reread
from genprobe.text import many

_Tell = Callable[[str], None]


def verify(
    runs: Any,
    *,
    recompute: bool = False,
    reviewed: str | Path | None = None,
    people: str | Path | None = None,
    figures: str | Path | None = None,
    seal: bool = False,
    sign: str | Path | None = None,
    allowed_signers: str | Path | None = None,
    note: Note = quiet,
) -> list[str]:
    """Check that run folders are complete and unchanged. Returns the problems, none if all is well.

    The records must be those that were sealed at the end of the run, and whoever read the replies
    must read them in the same way again. recompute: also score again, and compare with what is
    stored; with reviewed and people, the tables by which it was scored, and figures, a folder of
    figures of all these runs. seal: seal the records as they are now. sign: an SSH key to sign the
    seal with, if nothing is wrong. allowed_signers: a file of the signers that you accept. note:
    called with every line, also with the problems, as a `genprobe.errors.Caution`.
    """
    if (reviewed or people or figures) and not recompute:
        raise InputError("--reviewed, --people and --figures work only with --recompute; add it")
    problems: list[str] = []

    def wrong(line: str) -> None:
        problems.append(line)
        note(Caution(line))

    opened, bare = [], []
    published = [one for one in runs_of(runs) if publishing.is_publication(one)]
    for folder in runs_of(runs):
        if folder not in published:
            opened.append(Run.open(folder))
            continue
        if seal or sign:
            raise InputError(f"{folder}: is published; seal and sign the runs before")
        whole, hidden, lines = publishing.check(folder)
        opened += whole
        bare += hidden
        for line in lines:
            wrong(line)
        if not lines:
            note(f"{folder}: every file is as it was published")
    for run in opened:
        where = f"{run.folder}: " if len(opened) > 1 or published else ""
        before = len(problems)
        if seal:
            run.seal()
        _whole(run, where, recompute, wrong, note)
        if recompute:
            tables = [None if one is None else Path(one) for one in (reviewed, people)]
            _recomputed(run, where, tables, len(problems) > before, wrong, note)
        found = len(problems) > before
        if sign and not found:
            run.sign_seal(Path(sign))
        allowed = None if allowed_signers is None else Path(allowed_signers)
        _sealed(run, where, allowed, found, wrong, note)
        if sign and found:
            note(Caution(f"{where}not signed, because of the problems above"))
    for folder in published if recompute else ():
        for line in publishing.recompute(folder, bare, note):
            wrong(line)
        drawn = folder / publishing.DRAWN
        if drawn.is_dir():
            mine = [run.folder for run in opened if folder in run.folder.parents]
            _drawn(mine, drawn, None, wrong, note)
    if figures is not None:
        _drawn([run.folder for run in opened], Path(figures), reviewed, wrong, note)
    return problems


def _whole(run: Run, where: str, recompute: bool, wrong: _Tell, note: Note) -> None:
    """Tell what is wrong with a run folder, or that it is whole.

    where: text that begins each line. recompute: read replies again also with classifiers.
    """
    problems = [str(problem) for problem in run.verify()]
    again = Reread([], {})
    try:
        again = reread(run, recompute)
    except GenprobeError as error:  # mostly damage that is named already
        again.problems.extend([] if problems else [str(error)])
    problems += map(str, again.problems)
    for problem in problems:
        wrong(f"{where}{problem}")
    if not problems:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        note(
            f"{run.folder}: whole: {many(replies, 'response')} to {many(planned, 'request')}"
            f"{failed}, none twice"
        )
    for name, why in again.left.items():
        note(f"{where}not read again: {name}: {why}")


def _sealed(
    run: Run, where: str, allowed: Path | None, found: bool, wrong: _Tell, note: Note
) -> None:
    """Tell the seal of a run and who signed it. found: whether problems were found before."""
    try:
        chain = run.seals()
    except RunError:  # named already
        return
    line, bad = signing.check(run.folder, allowed) if chain else ("", allowed is not None)
    told = seals.told(chain)
    if not chain:
        told += ": what was changed cannot be told; `genprobe verify --seal` seals it as it is"
    elif found:
        told += "; it does not cover what is named above"
    (wrong if bad else note)(f"{where or f'{run.folder}: '}{', '.join(filter(None, (told, line)))}")


def _recomputed(
    run: Run, where: str, tables: list[Path | None], damaged: bool, wrong: _Tell, note: Note
) -> None:
    """Tell which stored figures differ when they are computed again.

    tables: of reviews and of people's answers. damaged: whether problems were found in the records,
    so that they may not fit together.
    """
    try:
        found = score_again(run, *tables)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, GenprobeError):
        if not damaged:
            raise
        note(Caution(f"{where}not scored again, because of the problems above"))
        return
    for line in found.differences:
        wrong(f"{where}{line}")
    agree = "all as stored" if not found.differences else "those above differ; score again"
    if found.figures or found.differences:
        note(f"{where}{many(found.figures, 'figure')} computed again, {agree}")
    for name, why in found.left.items():
        note(Caution(f"{where}not computed again: {name}: {why}"))


def _drawn(
    folders: list[Path], drawn: Path, reviewed: str | Path | None, wrong: _Tell, note: Note
) -> None:
    """Tell which figures of a folder are not those of these runs."""
    from genprobe.report import figures

    table = None if reviewed is None else Path(reviewed)
    count, found = figures.differing(folders, drawn, table)
    for line in found:
        wrong(f"{drawn}: {line}")
    if not found:
        note(f"{drawn}: {many(count, 'figure')} drawn again, all as they are")
