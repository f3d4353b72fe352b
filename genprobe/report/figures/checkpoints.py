"""Draw the win rate over the checkpoints of a model, by language (Aqbileq, Figure 5).

If there are checkpoints of several models (one per corpus), a further figure shows them in panels
side by side (Aqbileq, Figures 8, 11 and 12). If the pairs have subdomains, the mean of the
subdomains' win rates (S_D), which the study plots, has its own figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from genprobe.records import JSON, Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, Series, shown, split, values
from genprobe.report.figures._plot import Scale, lines, looks, panels
from genprobe.resources.models import STEP
from genprobe.text import whole_number
from genprobe.text.display import short_name

_AXES = (Scale("checkpoint", percent=False, limits=None), Scale("win rate (%)", middle=50.0))
# Language -> its points: step, score.
Curves = dict[str, list[tuple[float, Score]]]


def figures(data: Data) -> Iterator[Figure]:
    yield from _of(data, "win-rate", ("pro", "anti"), "Pairs of which the stereotype is preferred")
    yield from _of(
        data,
        "win-rate-mean",
        ("pro", "anti", "subdomain"),
        "Mean of the subdomains' shares of pairs of which the stereotype is preferred",
    )


def _of(data: Data, measure: str, needs: tuple[str, ...], title: str) -> Iterator[Figure]:
    found: dict[str, list[tuple[int, Series]]] = {}
    for series in data.of_kind("logprob", needs):
        model, step = checkpoint(series)
        if step is not None:
            found.setdefault(model, []).append((step, series))
    beside: dict[tuple[str, ...], dict[str, tuple[list[Score], Curves]]] = {}
    for model, points in found.items():
        if len({step for step, _ in points}) < 2:
            continue
        scores: list[Score] = []
        for step, series in sorted(points, key=lambda point: point[0]):
            for score in data.scores([series], [measure], ["lang"]):
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
            name = short_name(model)
            several = [name] if len(found) > 1 else []
            beside.setdefault(tuple(words), {})[model] = part, curves
            yield Figure(
                stem(f"{measure}-by-checkpoint", *several, *words),
                f"{title}, by checkpoint of {name}",
                part,
                partial(lines, curves, *_AXES, seen),
                ("lang",),
            )

    for key, models in beside.items():
        if len(models) > 1:
            yield _beside(measure, title, key, models)


def _beside(
    measure: str,
    title: str,
    words: tuple[str, ...],
    models: dict[str, tuple[list[Score], Curves]],
) -> Figure:
    """Set the curves of several models side by side, a panel each."""
    names = [short_name(model) for model in models]
    names = names if len(set(names)) == len(names) else list(models)
    parts = {name: curves for name, (_, curves) in zip(names, models.values(), strict=True)}
    seen = looks(list(dict.fromkeys(lang for curves in parts.values() for lang in curves)))
    return Figure(
        stem(f"{measure}-by-checkpoint", "side-by-side", *words),
        f"{title}, by checkpoint of {', '.join(names)}",
        [
            dataclasses.replace(score, by={**score.by, "model": name})
            for name, (scores, _) in zip(names, models.values(), strict=True)
            for score in scores
        ],
        partial(panels, parts, *_AXES, seen),
        ("model", "lang"),
    )


def checkpoint(series: Series) -> tuple[str, int | None]:
    """Return the model that a series is a checkpoint of, and its step.

    The step is read from the name of the revision, the last part of a served model's path, or the
    run's folder; None if none of them contains one.
    """
    run = series.runs[0]
    model = run.spec.model.rstrip("/")
    if (step := _step(run.spec.checkpoint)) is not None:
        return model, step
    before, _, last = model.rpartition("/")
    if STEP.fullmatch(last):
        return before or run.folder.resolve().parent.name, _step(last)
    return model, _step(run.folder.name)


def _step(name: str) -> int | None:
    """Read the step in a name; of `epoch-2-step-300`, that of the training and not the epoch."""
    found = STEP.findall(name)
    steps = [number for word, number in found if word.lower() != "epoch"]
    return whole_number((steps or [number for _, number in found] or [""])[-1])
