"""Draw the uncertainty of a model's choices, by condition (PBBQ, Figure 3).

A box shows the spread over choices; the diamond is the mean, `uncertainty`, with its interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from genprobe.records import Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, split, spread
from genprobe.report.figures._plot import Key, Scale, boxes, looks

_NAMES = {"ambig": "ambiguous", "disambig": "disambiguated"}


def figures(data: Data) -> Iterator[Figure]:
    series = data.of_kind("choices", ("uncertainty", "condition"))
    tables = {one.name: one.table for one in series}
    for words, part in split(data.scores(series, ["uncertainty"], ["lang"]), ["scorer", "lang"]):
        spreads: dict[int, dict[str, float]] = {}
        for score in part:
            table = tables[str(score.by["model"])]
            here = table["uncertainty"].notna() & table["left_out"].isin(["", "tie"])
            for column in ("scorer", "lang", "condition"):
                if column in score.by:
                    here &= table[column] == score.by[column]
            spreads[id(score)] = spread(table["uncertainty"][here].to_numpy(float))
        points: dict[Key, Score] = {("", str(s.by["model"]), _condition(s)): s for s in part}
        shown = looks(list(dict.fromkeys(_condition(s) for s in part)))
        scale = Scale("uncertainty (%); 0: sure, 100: all options alike")
        yield Figure(
            stem("uncertainty", *words),
            "Uncertainty of choices, by condition",
            part,
            partial(boxes, points, spreads, scale, shown),
            ("condition",),
            [spreads[id(s)] for s in part],
        )


def _condition(score: Score) -> str:
    name = str(score.by.get("condition", ""))
    return _NAMES.get(name, name)
