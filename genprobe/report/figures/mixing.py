"""Draw the win rate by share of Russian words in code-mixed pairs (five bins; Aqbileq, Fig. 6)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, split, values
from genprobe.report.figures._plot import Scale, lines, looks

_AXES = (Scale("mean share of Russian words (%)"), Scale("win rate (%)", middle=50.0))


def figures(data: Data) -> Iterator[Figure]:
    series = [
        s for s in data.of_kind("logprob", ("pro", "russian")) if s.table["russian"].notna().any()
    ]
    scores = data.scores(series, ["mixing", "mixing-share"], [])
    for words, part in split(scores, ["scorer"]):
        points = {(s.by["model"], s.by["bin"], s.metric): s for s in part}
        curves = {
            model: [
                (points[model, at, "mixing-share"], points[model, at, "mixing"])
                # Pairs in no bin are left out; only their number is reported.
                for at in sorted({b for m, b, _ in points if m == model and b is not None}, key=str)
            ]
            for model in values(part, "model")
        }
        yield Figure(
            stem("win-rate-by-mixing", *words),
            "Pairs of which the stereotype is preferred, by share of Russian words",
            part,
            partial(lines, curves, *_AXES, looks(list(curves))),
            ("model",),
        )
