"""What the wording does, of runs that asked a panel: its dots, and what an answer depends on.

`wordings-by-model`: the share of each wording, and the mean over wordings with its interval for one
not yet written (docs/wordings.md). `components-by-model`: of the variance of one answer, the share
that each effect has (`analysis.components`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from genprobe.analysis import components
from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.report.figures import Figure
from genprobe.report.figures._data import Data, Series, values
from genprobe.report.figures._plot import Key, Scale, dots, looks

_MEASURES = ("endorsed", "recognised")
_SHARE = Scale("share of clear answers (%)")
_PART = Scale("share of the variance of one answer (%)", limits=None)
OVER = "over wordings"


def figures(data: Data) -> Iterator[Figure]:
    series = [
        one
        for one in data.of_kind("yesno", ("wording", "says"))
        if one.table["wording"].nunique() > 1
    ]
    if not series:
        return
    yield _dots(data, series)
    found = [score for one in series for score in _components(one)]
    if found:
        points: dict[Key, Score] = {
            (str(s.by["of"]), str(s.by["effect"]), str(s.by["model"])): s for s in found
        }
        shown = looks(values(found, "model"))
        title = "What an answer depends on"
        yield Figure(
            "components-by-model", title, found, lambda: dots(points, _PART, shown, 2), ("model",)
        )


def _dots(data: Data, series: Sequence[Series]) -> Figure:
    """Draw a panel for each measure, a row for each model and a dot for each wording."""
    bare = [
        dataclasses.replace(score, low=None, high=None)  # each is one draw, and has no interval
        for score in data.scores(series, list(_MEASURES), ["wording"])
    ]
    over = [
        dataclasses.replace(score, by={**score.by, "wording": OVER})
        for score in data.scores(series, [f"{name}-over-wordings" for name in _MEASURES], [])
    ]
    scores = [*bare, *over]
    points: dict[Key, Score] = {
        (s.metric.removesuffix("-over-wordings"), str(s.by["model"]), str(s.by["wording"])): s
        for s in scores
    }
    shown = looks([OVER, *(name for name in values(bare, "wording"))])
    title = "Shares by wording, and over wordings with an interval for a new one"
    return Figure(
        "wordings-by-model", title, scores, lambda: dots(points, _SHARE, shown, 2), ("wording",)
    )


def _components(one: Series) -> Iterator[Score]:
    for metric in _MEASURES:
        try:
            found = components.of_outcomes(one.table, metric, [], [], one.sign)
        except InputError:  # nothing of it was asked, or nothing varies
            continue
        for score in found:
            yield dataclasses.replace(score, by={"model": one.name, **score.by})
