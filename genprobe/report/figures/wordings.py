"""Draw the effect of the wording in runs that asked a panel of wordings.

`wordings-by-model`: the share for each wording, and the mean with its interval over wordings like
these (docs/wordings.md). `components-by-model`: the share of each effect in the variance of
one answer (`analysis.components`). Names of figures of stories, essays and choices begin with
these words.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from genprobe.analysis import components
from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.report.figures import Figure
from genprobe.report.figures._data import Data, Series, values
from genprobe.report.figures._plot import Key, Scale, dots, looks
from genprobe.text.display import label

OVER = "over wordings"


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of run that may ask in several wordings.

    measures: the metrics drawn. share: what they are shares of (plural). one: the same in the
    singular. apart: columns that the metrics are never averaged over; each value has a panel.
    """

    measures: tuple[str, ...]
    share: str
    one: str
    apart: tuple[str, ...] = ()

    def panel(self, measure: str, score: Score) -> str:
        """Return the name of the panel that a score belongs to."""
        here = [label(score.by[name]) for name in self.apart if score.by.get(name) is not None]
        return ", ".join([measure, *here])


_KINDS = {
    "yesno": _Kind(("endorsed", "recognised"), "clear answers", "answer"),
    "stories": _Kind(("negative-stories",), "stories", "story"),
    "essays": _Kind(("argues-for",), "essays", "essay", ("probe",)),
    "choices": _Kind(("accuracy",), "choices", "choice", ("scorer", "condition")),
}


def figures(data: Data) -> Iterator[Figure]:
    for command, kind in _KINDS.items():
        series = [
            one for one in data.of_kind(command, ("wording",)) if one.table["wording"].nunique() > 1
        ]
        if series:
            before = "" if command == "yesno" else f"{command}-"
            yield from _dots(data, series, kind, before)
            yield from _components(series, kind, before)


def _dots(data: Data, series: Sequence[Series], kind: _Kind, before: str) -> Iterator[Figure]:
    """Draw a panel for each measure, a row for each model and a dot for each wording."""
    apart = [name for name in kind.apart if all(name in one.table for one in series)]
    points: dict[Key, Score] = {}
    for measure in kind.measures:
        bare = [  # a single wording is one draw and gets no interval
            dataclasses.replace(score, low=None, high=None)
            for score in data.scores(series, [measure], [*apart, "wording"])
        ]
        over = [
            dataclasses.replace(score, by={**score.by, "wording": OVER})
            for score in data.scores(series, [f"{measure}-over-wordings"], apart)
        ]
        panels = [kind.panel(measure, score) for score in bare]
        for score in (*bare, *over):
            panel = kind.panel(measure, score)
            if panels.count(panel) > 1:  # an essay frame may have only one wording
                points[panel, str(score.by["model"]), str(score.by["wording"])] = score
    scores = list(points.values())
    if not scores:
        return
    shown = looks([OVER, *(name for name in values(scores, "wording") if name != OVER)])
    title = "Shares by wording, and their mean with an interval over wordings like these"
    plot = functools.partial(dots, points, Scale(f"share of {kind.share} (%)"), shown, 2)
    yield Figure(f"{before}wordings-by-model", title, scores, plot, ("wording",))


def _components(series: Sequence[Series], kind: _Kind, before: str) -> Iterator[Figure]:
    """Draw a panel for each measure, a row for each effect and a dot for each model."""
    found: list[Score] = []
    for one in series:
        apart = [name for name in kind.apart if name in one.table]
        for measure in kind.measures:
            try:
                made = components.of_outcomes(one.table, measure, apart, [], one.sign)
            except InputError:  # nothing of this kind was asked, or nothing varies
                continue
            found += [dataclasses.replace(s, by={"model": one.name, **s.by}) for s in made]
    if not found:
        return
    points: dict[Key, Score] = {
        (kind.panel(str(s.by["of"]), s), str(s.by["effect"]), str(s.by["model"])): s for s in found
    }
    scale = Scale(f"share of the variance of one {kind.one} (%)", limits=None)
    plot = functools.partial(dots, points, scale, looks(values(found, "model")), 2)
    title = f"What one {kind.one} depends on"
    yield Figure(f"{before}components-by-model", title, found, plot, ("model",))
