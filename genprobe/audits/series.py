"""Set several audits in order of time: each figure with its interval, and when it moved.

The rule: every audit is compared with the first one, item by item (`analysis.compare`). A figure
moved on the first day on which the difference is sure: p below 5 % after Holm's correction for all
days, languages and measures of a model and an instrument, with an interval that agrees, and
whatever unclear replies mean; it had not before, on the last day whose interval leaves this
difference out. Comparing with the first audit finds slow drift, which no two
neighbours show; and the number of tests is known before, which it is not if the audit to compare
with is chosen by what was found.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from genprobe import api, tasks
from genprobe.analysis.score import score
from genprobe.audits.audit import named
from genprobe.audits.plan import RUNS, dated, differences, stored
from genprobe.errors import Caution, InputError
from genprobe.files import disk, door
from genprobe.records import JSON, Score
from genprobe.render import findings
from genprobe.render.findings import Difference
from genprobe.render.scores import Scores
from genprobe.report.figures import over_days, rendered, stem
from genprobe.resources.registry import listed
from genprobe.runs.run import Run
from genprobe.runs.usage import usage
from genprobe.tasks.pipeline import Note, quiet
from genprobe.tasks.pipeline.generate import unanswered

_CELL = ("of", "a", "b")


@dataclasses.dataclass(frozen=True)
class Series:
    """Figures over time. scores: their cells have `day` and `audit`. told: when they moved."""

    scores: Scores
    told: Sequence[str]
    figures: Sequence[Path] = ()


class _At(NamedTuple):
    """An audit: when the first reply of a cell came (UTC), how that is shown, and its folder."""

    time: str
    day: str
    folder: Path


def series(
    audits: str | Path | Sequence[str | Path],
    *,
    metrics: str | Sequence[str] = (),
    figures: str | Path | None = None,
    note: Note = quiet,
) -> Series:
    """Set the audits of several days or versions in order, and say when a figure moved.

    audits: their folders, two or more; the day of each is that of its first reply. metrics: if
    empty, the first main measure of each instrument. figures: a folder for a figure of each
    measure, as SVG, PDF, CSV and LaTeX. note: called with what is left out.

    Raises InputError or RunError for folders that are no audits, or that asked otherwise.
    """
    given = [audits] if isinstance(audits, str | Path) else list(audits)
    folders = list(dict.fromkeys(door.expanded(one) for one in given))
    shown = ", ".join(map(str, folders)) or "no audit"
    if len(folders) < 2:
        raise InputError(f"{shown}: a series needs the folders of two audits at least")
    cells = {folder: stored(folder) for folder in folders}
    for folder in folders[1:]:
        for line in differences(cells[folders[0]], cells[folder], ("task", "asked", "statements")):
            raise InputError(f"{folder}: asked otherwise than {folders[0]} ({line})")
    scores, told = Scores(), list[str]()
    drawn: list[Path] = []
    for name, cell in {n: c for own in cells.values() for n, c in own.items()}.items():
        at = _dated(folders, name)
        if len(at) < 2:
            note(f"{name}: is in one audit only, and left out")
            continue
        runs = [Run.open(one.folder / RUNS / name) for one in at]
        main = listed(metrics, "metrics") or tasks.find(cell["task"]).table(runs[0]).ranked[:1]
        own = [_figures(one, run, cell, main, note) for one, run in zip(at, runs, strict=True)]
        every = [score for found in own for score in found]
        scores += every
        told += [f"{name}: {line}" for line in _moved(at, runs, main, note)]
        for metric in main if figures is not None else ():
            drawn += _drawn(stem(metric, name), metric, every, door.expanded(str(figures)))
    if not scores:
        raise InputError(f"{shown}: no model and instrument is in two of these with replies")
    return Series(scores, told, drawn)


def _dated(folders: Sequence[Path], name: str) -> list[_At]:
    """Return the audits that have replies of a cell, the first one first.

    They are shown by their days, with the time if two are of one day.
    """
    found = []
    for folder in folders:
        if (folder / RUNS / name / "run.json").is_file():
            run = Run.open(folder / RUNS / name)
            time = dated(folder)[0] or usage(run).first
            time = time or min((p.at for p in run.logprobs() if p.at), default="")
            if not time:
                cure = "write date = YEAR-MONTH-DAY into its file"
                raise InputError(f"{run.folder}: its replies have no times; {cure}")
            found.append((time, folder))
    found.sort(key=lambda one: one[0])
    ends = 10 if len({time[:10] for time, _ in found}) == len(found) else 19
    return [_At(time, time[:ends].replace("T", " "), folder) for time, folder in found]


def _figures(at: _At, run: Run, cell: dict[str, JSON], main: Sequence[str], note: Note) -> Scores:
    """Count a run, with the day and the audit in each cell; `note` is called with cautions."""

    def tell(line: str) -> None:
        if isinstance(line, Caution):
            note(Caution(f"{at.folder.name}: {line}"))

    if left := unanswered(run):
        tell(Caution(left))
    whose: dict[str, JSON] = {"instrument": cell["instrument"], "model": cell["model"]}
    return Scores(
        dataclasses.replace(one, by={**whose, **one.by, "day": at.day, "audit": at.folder.name})
        for one in score([run.folder], metrics=main, by=["lang"], note=tell)
    )


def _moved(
    at: Sequence[_At], runs: Sequence[Run], main: Sequence[str], note: Note
) -> Iterator[str]:
    """Say of each figure when it moved, or that it did not."""
    found = findings.differences(
        api.compare(runs[0], runs[1:], metrics=main, by=["lang"], note=note)
    )
    others = dict(zip(dict.fromkeys(one.names[1] for one in found), at[1:], strict=True))
    parts: dict[tuple[str, ...], list[tuple[_At, Difference]]] = {}
    for one in found:
        key = (one.of, *(f"{k} {v}" for k, v in one.about.items() if k not in _CELL))
        parts.setdefault(key, []).append((others[one.names[1]], one))
    names = {str(run.folder): one.folder.name for run, one in zip(runs, at, strict=True)}
    for key, later in parts.items():
        where = ", ".join(key)
        sure = [(then, one) for then, one in later if one.reach]
        if not sure:
            most = max((max(map(abs, one.ends)) for _, one in later if one.ends), default=None)
            room = "" if most is None else f"; {100 * most:.0f} points either way are left open"
            counted = {then.day for then, one in later if one.ends}
            if blank := [one.day for one in at[1:] if one.day not in counted]:
                room += f"; anything may be on {', '.join(blank)}, with too few answers to compare"
            yield f"{where}: not shown to have moved since {at[0].day}{room}"
            continue
        then, one = sure[0]
        before = [at[0]]
        before += [other for other, was in later if other.time < then.time and _less(was, one)]
        back = " and is no longer sure on the last" if later[-1] != sure[-1] else ""
        yield (
            f"{where}: moved between {before[-1].day} and {then.day} ({then.folder.name}){back}: "
            f"{named(one.note, names)}"
        )


def _less(was: Difference, sure: Difference) -> bool:
    """Tell whether a figure surely had not moved so far: its interval leaves `sure` out."""
    far = sure.difference.value or 0.0
    return bool(was.ends) and (was.ends[1] < far if far > 0 else was.ends[0] > far)


def _drawn(name: str, metric: str, scores: Sequence[Score], folder: Path) -> Iterator[Path]:
    """Draw a measure over the days, a curve for each language (or other part)."""
    curves: dict[str, list[tuple[float, Score]]] = {}
    days = [datetime.datetime.fromisoformat(str(score.by["day"])) for score in scores]
    for day, one in zip(days, scores, strict=True):
        if one.metric == metric:
            parts = [v for k, v in one.by.items() if k not in ("instrument", "day", "audit")]
            since = (day - min(days)).total_seconds() / 86400
            curves.setdefault(" ".join(map(str, parts)), []).append((since, one))
    if not curves:
        return
    first = min(days).date()
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for form, content in rendered(over_days(name, metric, curves, f"days since {first}")):
        disk.replace_bytes(folder / f"{name}.{form}", [content])
        yield folder / f"{name}.{form}"
