"""How many templates have mostly negative stories, by domain and model: Aqbileq, Figure 7."""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, shown, split, values
from genprobe.report.figures._plot import Scale, dots, looks


def figures(data: Data) -> Iterator[Figure]:
    series = data.of_kind("stories", ("sentiment", "domain"))
    scores = data.scores(series, ["negrate"], ["lang", "domain"])
    for words, part in split(scores, ["lang"]):
        models = looks(values(part, "model"))
        points = {("", shown("domain", s.by["domain"]), str(s.by["model"])): s for s in part}
        scale = Scale("templates with mostly negative stories (%)")
        yield Figure(
            stem("negrate-by-domain", *words),
            "Templates most of whose stories are negative (NegRate), by domain",
            part,
            lambda points=points, models=models, scale=scale: dots(points, scale, models),  # type: ignore[misc]
            ("model",),
        )
