"""Win rate over the checkpoints of one model, by language: Aqbileq, Figure 5."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from genprobe.figures import Figure, stem
from genprobe.figures._data import Data, Series, shown, split, values
from genprobe.figures._plot import Scale, lines, looks
from genprobe.records import JSON, Score

_STEP = re.compile(r"(?:checkpoint|global_step|step|iter)[-_]?(\d+)", re.IGNORECASE)


def figures(data: Data) -> Iterator[Figure]:
    found: dict[str, list[tuple[int, Series]]] = {}
    for series in data.of_kind("logprob", ("pro", "anti")):
        model, step = checkpoint(series)
        if step is not None:
            found.setdefault(model, []).append((step, series))
    for model, points in found.items():
        if len({step for step, _ in points}) < 2:
            continue
        scores: list[Score] = []
        for step, series in sorted(points, key=lambda point: point[0]):
            for score in data.scores([series], ["win-rate"], ["lang"]):
                by: dict[str, JSON] = {**score.by, "step": step}
                scores.append(dataclasses.replace(score, by=by))
        for words, part in split(scores, ["scorer"]):
            curves = {
                shown("lang", lang): [
                    (float(str(s.by["step"])), s) for s in part if str(s.by["lang"]) == lang
                ]
                for lang in values(part, "lang")
            }
            seen = looks(list(curves))
            several = [model] if len(found) > 1 else []
            yield Figure(
                stem("win-rate-by-checkpoint", *several, *words),
                f"Pairs of which the stereotype is preferred, by checkpoint of {model}",
                part,
                lambda curves=curves, seen=seen: lines(  # type: ignore[misc]
                    curves,
                    Scale("training step", percent=False, limits=None),
                    Scale("win rate (%)", middle=50.0),
                    seen,
                ),
                ("lang",),
            )


def checkpoint(series: Series) -> tuple[str, int | None]:
    """The model that a series is a checkpoint of, and its step, as the name of the model's folder
    (`checkpoint-25000`) or of the run's (`step1000`) says it; no step where neither does."""
    run = series.runs[0]
    name = run.spec.model.rstrip("/").rsplit("/", 1)[-1]
    if match := _STEP.fullmatch(name):
        return run.folder.resolve().parent.name, int(match[1])
    if match := _STEP.search(run.folder.name):
        return name, int(match[1])
    return name, None
