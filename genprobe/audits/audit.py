"""Run an audit, count it, and set it beside an earlier one."""

from __future__ import annotations

import contextvars
import dataclasses
import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from genprobe import api, tasks
from genprobe._version import __version__
from genprobe.analysis import forecast
from genprobe.analysis.score import score
from genprobe.audits import foresee
from genprobe.audits.plan import PLAN, RUNS, Cell, Plan, differences, read, stored
from genprobe.errors import Caution, GenprobeError, InputError, RunError
from genprobe.files import disk
from genprobe.render import formats
from genprobe.render.scores import Scores
from genprobe.resources import models
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, Progress, quiet, second
from genprobe.tasks.pipeline.generate import unanswered
from genprobe.tasks.pipeline.open import open_engine, served
from genprobe.text import many

if TYPE_CHECKING:
    from genprobe.analysis.gate import Verdict

PAGE, CARD = "report.html", "README.md"
_SAME = ("task", "asked", "statements")  # what an earlier audit must have asked alike


@dataclasses.dataclass(frozen=True)
class Audit:
    """An audit that has run, or what one would take.

    folder: its folder. forecast: what it takes and will show, in lines. runs: the folders of its
    runs. scores: the main measures, by instrument, model and language. compared: name of a run ->
    the comparison with the earlier audit; told: what these show, in sentences; gates: name of a run
    -> the verdict, where the file has limits. failed: cells that did not run or could not be
    counted, and why, in lines; left: the same of requests without a reply.
    """

    folder: Path
    forecast: Sequence[str] = ()
    runs: Sequence[Path] = ()
    scores: Scores = dataclasses.field(default_factory=Scores)
    compared: Mapping[str, Scores] = dataclasses.field(default_factory=dict)
    told: Sequence[str] = ()
    gates: Mapping[str, Verdict] = dataclasses.field(default_factory=dict)
    failed: Sequence[str] = ()
    left: Sequence[str] = ()


def audit(
    file: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    against: str | Path | None = None,
    dry_run: bool = False,
    pilot: int | None = None,
    note: Note = quiet,
    progress: Progress = quiet,
) -> Audit:
    """Run the audit that a file describes (docs/audit.md): every model with every instrument.

    Models on different servers, and one on this machine, are asked at the same time.

    file: the file, or its content as a dict. It is checked whole before anything runs. out: the
    folder, in which the same audit goes on; None means that of the file, else
    `audits/<its name>`. against: the folder of an earlier audit, with which each model is compared.
    dry_run: only say what it takes. pilot: ask so many requests of each cell, and say by their
    replies what it takes. note: called with messages. progress: called with (what, number of
    replies, of how many), over all cells.

    Returns the figures and the paths. Raises RowErrors with all problems of the file, RunError or
    InputError for folders that do not fit. A model that fails is told, and the others go on.
    """
    plan = read(file, out)
    old = None if against is None else foresee.need_folder(against)
    if old is not None:
        _need_like(plan, old)
    told = list(foresee.lines(plan, old))
    if dry_run:
        return Audit(plan.out, told)
    for line in told:
        note(line)
    _write(plan)
    if pilot is not None:
        asks = [dataclasses.replace(cell.ask, pilot=pilot) for cell in plan.cells]
        both = zip(plan.cells, asks, strict=True)
        cells = [dataclasses.replace(cell, ask=ask) for cell, ask in both]
        plan = dataclasses.replace(plan, cells=cells)
    with models.also(plan.known):
        failed = _Work(plan, note, progress).run()
    if pilot is not None:
        return Audit(plan.out, list(foresee.lines(plan, old)), failed=failed)
    done = [cell for cell in plan.cells if (cell.folder / "run.json").is_file()]
    left = [f"{c.name}: {line}" for c in done if (line := unanswered(Run.open(c.folder)))]
    found = Audit(plan.out, told, [c.folder for c in done], failed=failed, left=left)
    if not done:
        return found
    found = dataclasses.replace(found, scores=_scores(done, failed))
    api.report(found.runs, plan.out / PAGE, note=_cautions(note))
    disk.replace(plan.out / CARD, [_card(plan, found)], encoding="utf-8")
    return found if old is None else _beside(found, done, old, note)


def _need_like(plan: Plan, old: Path) -> None:
    """Raise RunError unless an earlier audit asked in the same way what both ask."""
    cells, new = stored(old), {cell.name: dict(cell.settings) for cell in plan.cells}
    if not cells.keys() & new.keys():
        raise RunError(
            f"--against {old}: has none of these cells; it has {', '.join(cells)}, and this audit "
            f"{', '.join(new)}"
        )
    for line in differences(cells, new, _SAME):
        raise RunError(f"--against {old}: asked otherwise ({line}); ask both in the same way")
    for line in (line for cell in plan.cells for line in foresee.never_shown(cell)):
        raise InputError(f"--against {old}: {line}; ask about more, or raise the limit")


def _write(plan: Plan) -> None:
    """Make the folder, and note the cells in it; those of an earlier call stay."""
    path = plan.out / PLAN
    before = stored(plan.out) if path.is_file() else {}
    cells = before | {cell.name: cell.settings for cell in plan.cells}
    with disk.writing(plan.out):
        plan.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {"version": __version__, "date": plan.date, "cells": cells}, indent=1, ensure_ascii=True
    )
    disk.replace(path, [text + "\n"])


class _Kept:
    """Opens engines, and keeps the last one for the next cell of the same model."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.of: Any = None

    def __call__(self, engine: str, model: str | None, options: Any, scores: bool) -> _Kept:
        of = (engine, model, dataclasses.replace(options, note=quiet), scores)
        if of != self.of:
            self.end()
            self.engine, self.of = open_engine(engine, model, options, scores), of
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def close(self) -> None:
        """Keep it; `end` closes it."""

    def end(self) -> None:
        engine, self.engine, self.of = self.engine, None, None
        if engine is not None:
            engine.close()


HERE = "this machine"
LEAVE = 5.0  # seconds that a stop waits for what servers are still asked


def _places(cell: Cell) -> frozenset[str]:
    """Return where a cell works: at its server or here, and where its second reader does.

    Two cells never work in one place at once, so no two models share this machine's GPU.
    """
    ask = cell.ask
    found = {_place(ask.engine, ask.model, ask.options)}
    if ask.second_reader:
        found.add(
            _place("auto", ask.second_reader, second.options_for(ask.second_reader, ask.options))
        )
    if any(getattr(judge, "heavy", False) for judge in cell.asked.judges):
        found.add(HERE)
    return frozenset(found)


def _place(engine: str, model: str | None, options: Any) -> str:
    if engine == "replay":
        return f"recordings of {model}"
    url = served(engine, model, options).base_url
    if not url and model is not None and (known := models.catalogue().get(model.lower())):
        url = known.base_url
    return urlsplit(url).netloc if url else HERE


class _Work:
    """Runs the cells that are not finished: those of different places at the same time.

    failed: cells that failed and why, in lines, in the order of the cells.
    """

    def __init__(self, plan: Plan, note: Note, progress: Progress) -> None:
        self.plan, self.note, self.progress = plan, note, progress
        self.turn = threading.Condition(threading.RLock())
        there = {cell.name: cell.there() for cell in plan.cells}
        self.counts = {name: n for name, (n, _) in there.items()}
        self.waiting = [cell for cell in plan.cells if not there[cell.name][1]]
        self.places = {cell.name: _places(cell) for cell in self.waiting}
        self.total = sum(cell.size.total[0] for cell in plan.cells)
        self.busy: dict[str, Cell] = {}
        self.kept: dict[str, _Kept] = {}
        self.of: dict[str, str] = {}  # place -> the model that was there last
        self.lines: dict[str, str] = {}
        self.down: set[str] = set()
        self.ended: BaseException | None = None

    def run(self) -> list[str]:
        """Run them all. What interrupts one, also Ctrl-C, ends all; the same call resumes."""
        threads: list[threading.Thread] = []
        try:
            with self.turn:
                self.tell()
                while (self.waiting or self.busy) and not self.ended:
                    while cell := self.next():
                        self.busy[cell.name] = cell
                        work = contextvars.copy_context().run
                        threads.append(
                            threading.Thread(target=work, args=(self.cell, cell), daemon=True)
                        )
                        threads[-1].start()
                    self.turn.wait(0.2)  # a wait without an end would not hear Ctrl-C everywhere
        except BaseException as error:
            self.ended = self.ended or error
        until = time.monotonic() + LEAVE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        for kept in self.kept.values() if not any(map(threading.Thread.is_alive, threads)) else ():
            kept.end()
        if self.ended:
            raise self.ended
        return [self.lines[cell.name] for cell in self.plan.cells if cell.name in self.lines]

    def next(self) -> Cell | None:
        """Take the next cell whose places are free, if one more may run."""
        taken = frozenset[str]().union(*(self.places[name] for name in self.busy))
        if self.ended or (self.plan.at_once and len(self.busy) >= self.plan.at_once):
            return None
        for cell in self.waiting:
            if not self.places[cell.name] & taken:
                self.waiting.remove(cell)
                return cell
        return None

    def cell(self, cell: Cell) -> None:
        """Run a cell, in a thread of its own."""
        try:
            self._cell(cell)
        except BaseException as error:
            self.ended = self.ended or error
        finally:
            with self.turn:
                self.busy.pop(cell.name)
                self.turn.notify_all()

    def _cell(self, cell: Cell) -> None:
        at = [one.name for one in self.plan.cells].index(cell.name) + 1
        where = f"cell {at} of {len(self.plan.cells)}, {cell.name}"
        with self.turn:
            if cell.model in self.down:
                self.lines[cell.name] = f"{cell.name}: not asked, because the model failed before"
                return
            for place in self.places[cell.name]:
                if place in self.kept and self.of[place] != cell.model:
                    self.kept[place].end()
            place = _place(cell.ask.engine, cell.ask.model, cell.ask.options)
            kept, self.of[place] = self.kept.setdefault(place, _Kept()), cell.model
            self.note(
                f"{where}: {self.counts[cell.name]} of {cell.size.total[0]} replies are there"
            )
        step = _Step(self, cell.name, where)
        ask = dataclasses.replace(cell.ask, note=_cautions(self.say), progress=step)
        try:
            run = tasks.run(cell.task, ask, kept)
            self.say(f"{cell.name}: {forecast.used(run, cell.price)}")
        except GenprobeError as error:
            # A model that cannot be opened is not tried again for its next cell.
            self.down |= {cell.model} if kept.engine is None else set()
            self.lines[cell.name] = f"{cell.name}: {error}"
        if (cell.folder / "run.json").is_file():
            self.counts[cell.name] = Run.open(cell.folder).counts()[1]

    def say(self, line: str) -> None:
        with self.turn:
            self.note(line)

    def tell(self, more: str = "") -> None:
        """Show how many replies of the whole audit are there, and what is being done."""
        with self.turn:
            if self.ended:
                raise KeyboardInterrupt  # another cell was interrupted
            if more and hasattr(self.progress, "tell"):
                self.progress.tell(more)
            self.progress("audit", sum(self.counts.values()), self.total)


class _Step:
    """Progress of one cell as that of the whole audit."""

    def __init__(self, work: _Work, name: str, where: str) -> None:
        self.work, self.name, self.where, self.more = work, name, where, ""

    def tell(self, more: str) -> None:
        self.more = f"{self.where}, {more}"

    def __call__(self, what: str, done: int, total: int) -> None:
        if what == "asking":
            self.work.counts[self.name] = done
            self.work.tell(self.more)
        else:
            self.work.tell(f"{self.where}, {what} {done} of {total}")


def _cautions(note: Note) -> Note:
    """Return a function that passes on nothing but cautions."""
    return lambda line: note(line) if isinstance(line, Caution) else None


def _scores(cells: Sequence[Cell], failed: list[str]) -> Scores:
    """Count the runs; save their figures, and return the main ones. The page has the cautions."""
    found = Scores()
    for cell in cells:
        run = Run.open(cell.folder)
        task = tasks.find(cell.task)
        try:
            every = score([cell.folder], save=True)
            main = [name for name in task.table(run).main if name in {s.metric for s in every}]
            for one in score([cell.folder], metrics=main, by=["lang"], save=True):
                by = {"instrument": cell.instrument, "model": cell.model, **one.by}
                found.append(dataclasses.replace(one, by=by))
        except InputError as error:
            failed.append(f"{cell.name}: {error}")
    return found


def _card(plan: Plan, found: Audit) -> str:
    """Describe the folder in Markdown."""
    lines = [
        f"# {plan.name}",
        "",
        f"An audit by genprobe {__version__}: {many(len({c.model for c in plan.cells}), 'model')}, "
        f"{many(len({c.instrument for c in plan.cells}), 'instrument')}. `{PAGE}` shows it, "
        f"`{RUNS}/` has a run folder for each model and instrument, `{PLAN}` what was asked. "
        f"`genprobe verify {RUNS}/*` checks that the records are whole and unchanged.",
        "",
        *(f"- missing: {line}" for line in (*found.failed, *found.left)),
        "",
        formats.markdown(found.scores),
    ]
    return "\n".join(lines)


def _beside(found: Audit, cells: Sequence[Cell], old: Path, note: Note) -> Audit:
    """Compare each cell with that of an earlier audit, and test the limits of the file."""
    compared, gates, failed, told = {}, {}, list(found.failed), list[str]()
    for cell in cells:
        before = old / RUNS / cell.name
        if not (before / "run.json").is_file():
            continue
        try:
            specs = [Run.open(folder).spec for folder in (before, cell.folder)]
            was, now = (spec.revision for spec in specs)
            if was != now and "replay" not in {spec.engine for spec in specs}:
                told.append(f"{cell.name}: other weights than in {old} ({was} -> {now})")
            main = tasks.find(cell.task).table(Run.open(cell.folder)).main
            compared[cell.name] = api.compare(
                before, cell.folder, metrics=main, by=["lang"], note=note
            )
            if (finding := compared[cell.name].finding) is not None:
                names = {str(run): run.parents[1].name for run in (before, cell.folder)}
                told += [f"{cell.name}: {named(line, names)}" for line in finding.lines]
            if cell.gate:
                gates[cell.name] = api.gate(cell.folder, against=before, **cell.gate)
        except GenprobeError as error:
            failed.append(f"{cell.name}, against {old}: {error}")
    return dataclasses.replace(found, compared=compared, told=told, gates=gates, failed=failed)


def named(text: str, names: Mapping[str, str]) -> str:
    """Write the names of audits for the folders of their runs, by which a comparison knows them."""
    for folder in sorted(names, key=len, reverse=True):
        text = text.replace(folder, names[folder])
    return text
