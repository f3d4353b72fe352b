"""Draw the share of templates with mostly negative stories, by domain and model (Aqbileq, Fig. 7).

Shown as measured and, if the classifier's card has its errors on labelled stories, also as it would
be with these errors, which are varied.
"""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.metrics import corrected
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, shown, split, values
from genprobe.report.figures._plot import Scale, dots, looks

_TITLES = {"negrate": "as measured", corrected.NAME: "if as on card"}


def figures(data: Data) -> Iterator[Figure]:
    """Draw NegRate by domain, one figure per language."""
    series = data.of_kind("stories", ("sentiment", "domain"))
    known = [one for one in series if {"classifier", "lang"} <= set(one.table)]
    scores = [
        *data.scores(series, ["negrate"], ["lang", "domain"]),
        *(
            s
            for s in data.scores(known, [corrected.NAME], ["lang", "domain"])
            if s.value is not None
        ),
    ]
    for words, part in split(scores, ["lang"]):
        beside = any(score.metric == corrected.NAME for score in part)

        def name(model: str, metric: str, beside: bool = beside) -> str:
            return f"{model}, {_TITLES[metric]}" if beside else model

        shown_as = [name(m, k) for m in values(part, "model") for k in _TITLES]
        models = looks([one for one in shown_as if beside] or values(part, "model"))
        points = {
            ("", shown("domain", s.by["domain"]), name(str(s.by["model"]), s.metric)): s
            for s in part
        }
        scale = Scale("templates with mostly negative stories (%)")
        yield Figure(
            stem("negrate-by-domain", *words),
            "Templates most of whose stories are negative (NegRate), by domain",
            part,
            lambda points=points, models=models, scale=scale: dots(points, scale, models),  # type: ignore[misc]
            ("model",),
        )
