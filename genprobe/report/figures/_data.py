"""Collect the runs of a set of figures as named tables, and compute their scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.records import FACETS, JSON, Score
from genprobe.render.grid import model_names
from genprobe.runs.run import Run
from genprobe.runs.spec import both_signatures
from genprobe.tasks.pipeline import Note
from genprobe.text.display import clean, label

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.statistics import Array

# Columns that identify a row: runs of one model that share such a row asked the same thing twice.
_ROW = (
    *("decode", "scorer", "lang", "probe", "statement", *FACETS, "sample"),
    *("item", "contrast", "condition"),
)


@dataclass(frozen=True)
class Series:
    """The runs of one model and one kind. name: unique among the series."""

    name: str
    runs: tuple[Run, ...]
    table: pd.DataFrame

    redact: bool = False

    def sign(self, metric: str) -> str:
        """Return the signature of a score of this metric.

        metric: its name, or another text that states its version.
        """
        from genprobe.report.sources import without_folders

        known = metric if "/" in metric else metrics.find(metric).id
        signed = both_signatures(*(run.signer()(known) for run in self.runs))
        return without_folders(signed) if self.redact else signed


@dataclass(frozen=True)
class Data:
    """The data of all figures: the series of each command, and those of `choices` separately.

    redact: no text of the data may be drawn. corrected: rates corrected by a review, each also as
    measured.
    """

    kinds: dict[str, list[Series]]
    note: Note
    redact: bool = False
    corrected: tuple[Score, ...] = ()

    @classmethod
    def of(cls, folders: Sequence[str | Path], note: Note, salt: str = "") -> Data:
        """Open runs, join them and group them into series by kind and model.

        salt: of a redacted export (`sources.salt`). Raises RunError or InputError, with the folder,
        for a run that cannot be read.
        """
        from genprobe.report import sources

        kinds: dict[str, dict[tuple[str, str], list[tuple[Run, pd.DataFrame]]]] = {}
        for one in sorted(sources.load(folders, salt), key=lambda one: one.run.spec.order):
            spec = one.run.spec
            kind = "choices" if "chosen" in one.outcomes else spec.command
            kinds.setdefault(kind, {}).setdefault(spec.who, []).append((one.run, one.outcomes))
        series = {kind: _series(of) for kind, of in kinds.items()}
        if salt:
            series = {k: [replace(one, redact=True) for one in of] for k, of in series.items()}
        return cls(series, note, bool(salt))

    def of_kind(self, kind: str, needs: Collection[str] = ()) -> list[Series]:
        """Return the series of a command whose tables have these columns."""
        return [s for s in self.kinds.get(kind, ()) if set(needs) <= set(s.table)]

    def scores(
        self,
        series: Sequence[Series],
        names: Sequence[str],
        by: Sequence[str],
        chosen: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    ) -> list[Score]:
        """Score each series that has the columns, separately; `model` is the series' name.

        chosen: selects the rows of a table. Scorers are kept separate.
        """
        rows = []
        for one in series:
            table = chosen(one.table) if chosen else one.table
            columns = [*(["scorer"] if "scorer" in table and "scorer" not in by else []), *by]
            if not len(table) or not set(columns) <= set(table):
                continue
            for score in metrics.score(table, names, columns, one.sign):
                label = {k: v for k, v in score.by.items() if k != "model"}
                rows.append(replace(score, by={"model": one.name, **label}))
        return rows


def _series(found: dict[tuple[str, str], list[tuple[Run, pd.DataFrame]]]) -> list[Series]:
    """Make one series per model, or one per run if a model's runs ask the same thing twice."""
    import pandas as pd

    names = model_names(run.spec for parts in found.values() for run, _ in parts)
    series = []
    for who, parts in found.items():
        name = names[who]
        tables = [table for _, table in parts]
        whole = pd.concat(tables, ignore_index=True) if len(parts) > 1 else tables[0]
        key = [column for column in _ROW if column in whole]
        if len(parts) > 1 and whole.duplicated(key).any():
            folders = [run.folder.resolve() for run, _ in parts]
            # Use as many parts of the path as make the names unique.
            depth = next(
                d
                for d in itertools.count(1)
                if len({f.parts[-d:] for f in folders}) == len(folders)
            )
            series += [
                Series(f"{name} ({clean('/'.join(folder.parts[-depth:]))})", (run,), table)
                for folder, (run, table) in zip(folders, parts, strict=True)
            ]
        else:
            series.append(Series(name, tuple(run for run, _ in parts), whole))
    return series


def shown(column: str, value: JSON) -> str:
    """Return a cell's value in words; a language as its English name and code."""
    from genprobe.resources.packs import language_name

    text = label(value)
    name = language_name(text) if column == "lang" else text
    return text if name == text else f"{name} {text}"


def values(scores: Sequence[Score], column: str) -> list[str]:
    """Return the distinct values of a column of the cells as text, in their order."""
    return list(dict.fromkeys(str(s.by[column]) for s in scores if column in s.by))


def spread(found: Array) -> dict[str, float]:
    """Return the percentiles of a box: 5, 25, 50, 75, 95 (linear between values); {} of nothing."""
    import numpy as np

    at = {"p5": 5, "q1": 25, "median": 50, "q3": 75, "p95": 95}
    ends = np.percentile(found, list(at.values())) if len(found) else ()
    return dict(zip(at, map(float, ends), strict=bool(len(found))))


def split(scores: Sequence[Score], columns: Sequence[str]) -> list[tuple[list[str], list[Score]]]:
    """Split the scores by columns that are never drawn in one figure.

    For each combination of values: the values that distinguish it (columns with a single value
    are omitted), and its scores.
    """
    several = [c for c in columns if len(values(scores, c)) > 1]
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        parts.setdefault(tuple(str(score.by.get(c, "")) for c in several), []).append(score)
    return [(list(key), part) for key, part in parts.items()]
