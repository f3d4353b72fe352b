"""Compare what models say with what they prefer, for the same statements (docs/paradigms.md).

`say-prefer`: one point per language, one panel per model. `say-prefer-table`: the four cells of
the 2 x 2 table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from genprobe.analysis import paradigm_runs
from genprobe.errors import GenprobeError
from genprobe.records import Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, shown, split, values
from genprobe.report.figures._plot import Key, Scale, crosses, dots, looks
from genprobe.tasks.pipeline import quiet
from genprobe.text.display import short_name

_CELLS = {
    "no-but-prefers": "no, but prefers it",
    "yes-and-prefers": "yes, and prefers it",
    "yes-but-not": "yes, prefers contrast",
    "no-and-not": "no, prefers contrast",
}

_AXES = (
    ("prefers", Scale("stereotype preferred (% of items)", middle=50.0)),
    ("says", Scale("stereotype endorsed (%)", middle=50.0)),
)


def figures(data: Data) -> Iterator[Figure]:
    asked = {kind: data.of_kind(kind) for kind in ("yesno", "logprob")}
    known = [{run.spec.who for s in of for run in s.runs} for of in asked.values()]
    both = set.intersection(*known)
    folders = [
        run.folder for of in asked.values() for s in of for run in s.runs if run.spec.who in both
    ]
    if not folders:
        return
    try:
        found = paradigm_runs.paradigms(folders, note=quiet)
    except GenprobeError as error:
        data.note(f"say-prefer is not drawn: {error}")
        return
    only = short_name(sorted(both)[0][0])
    scores = [
        s if "model" in s.by else dataclasses.replace(s, by={"model": only, **s.by}) for s in found
    ]
    for words, part in split(scores, ["decode", "scorer"]):
        points = [s for s in part if s.metric in ("says", "prefers") and "lang" in s.by]
        where = {(str(s.by["model"]), str(s.by["lang"]), s.metric): s for s in points}
        yield Figure(
            stem("say-prefer", *words),
            "What is said (mean endorsement) and what is preferred (share of stereotypes)",
            points,
            partial(crosses, where, *_AXES),
            ("model",),
        )
        table = [s for s in part if s.metric in _CELLS]
        rows = sorted(table, key=lambda s: shown("lang", s.by["lang"]))
        cells: dict[Key, Score] = {
            (_CELLS[s.metric], shown("lang", s.by["lang"]), str(s.by["model"])): s for s in rows
        }
        models = looks(values(table, "model"))
        yield Figure(
            stem("say-prefer-table", *words),
            "What is said and what is preferred: shares of the four combinations",
            table,
            partial(dots, cells, Scale("share of items (%)"), models, across=4),
            ("model",),
        )
