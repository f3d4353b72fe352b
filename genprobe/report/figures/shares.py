"""Draw the shares of yes, no and ambiguous answers, by model and by language.

Like SHADES, Figures 16 to 21, but always as shares of replies, with intervals, and never pooled
over models. `-declared`: only recognised declarations, the statements of those figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from genprobe.errors import InputError
from genprobe.metrics.rates import recognised_declarations
from genprobe.records import Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, Series, shown, split, values
from genprobe.report.figures._plot import ANSWERS, Key, Scale, dots, looks

_SCALE = Scale("share of replies (%)")
_TITLE = "Replies that answer yes, no or ambiguous"


def figures(data: Data) -> Iterator[Figure]:
    series = data.of_kind("yesno", ("answer", "probe"))
    if not series:
        return
    yield from _of(data, series, (), None)
    kept = [_declared(one.table) for one in series]
    if any(0 < len(rows) < len(one.table) for rows, one in zip(kept, series, strict=True)):
        yield from _of(data, series, ("declared",), _declared)


def _declared(table: pd.DataFrame) -> pd.DataFrame:
    try:
        return recognised_declarations(table)[0]
    except InputError:  # the data do not say what is one
        return table.iloc[:0]


def _of(
    data: Data,
    series: Sequence[Series],
    more: tuple[str, ...],
    chosen: Callable[[pd.DataFrame], pd.DataFrame] | None,
) -> Iterator[Figure]:
    title = _TITLE + (", to recognised declarations" if more else "")
    whole = data.scores(series, list(ANSWERS), ["decode", "probe"], chosen)
    for words, part in split(whole, ["decode"]):
        yield _figure(stem("shares-by-model", *more, *words), f"{title}, by model", part, "model")
    each = data.scores(series, list(ANSWERS), ["decode", "probe", "lang"], chosen)
    for words, part in split(each, ["decode"]):
        if len(values(part, "lang")) < 2:
            continue
        name = stem("shares-by-language", *more, *words)
        if len(values(part, "model")) == 1:
            yield _figure(name, f"{title}, by language", part, "lang")
            continue
        for probe in values(part, "probe"):
            here = [s for s in part if s.by["probe"] == probe]
            yield _models(f"{name}-{stem(probe)}", f"{title}, by language: {probe}", here)


def _figure(name: str, title: str, scores: Sequence[Score], row: str) -> Figure:
    """Draw a panel for each probe and a series for each answer."""
    points: dict[Key, Score] = {
        (str(s.by["probe"]), shown(row, s.by[row]), s.metric): s for s in _sorted(scores, row)
    }
    return Figure(name, title, scores, lambda: dots(points, _SCALE, ANSWERS), ("probe",))


def _models(name: str, title: str, scores: Sequence[Score]) -> Figure:
    """Draw a panel for each answer and a series for each model."""
    points: dict[Key, Score] = {
        (s.metric, shown("lang", s.by["lang"]), str(s.by["model"])): s
        for s in _sorted(scores, "lang")
    }
    models = looks(values(scores, "model"))
    return Figure(name, title, scores, lambda: dots(points, _SCALE, models), ("model",))


def _sorted(scores: Sequence[Score], row: str) -> Sequence[Score]:
    """Sort languages by name and leave all else, including the answers, in the given order."""
    return sorted(scores, key=lambda s: shown("lang", s.by[row])) if row == "lang" else scores
