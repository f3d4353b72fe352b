"""Draw bias scores by language, bias type and entity (SHADES, Figures 5, 13 and 14).

A box shows the spread over pairs of an original and a contrast; the diamond is the mean,
`bias-score`, with its bootstrap interval over originals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from genprobe.records import Score
from genprobe.report.figures import Figure
from genprobe.report.figures._data import Data, Series, shown, spread, values
from genprobe.report.figures._plot import Key, Scale, boxes, looks

_NAMES = {"lang": "language", "bias_type": "bias type", "entity": "entity"}
MOST = 40  # rows of a figure
SEPARATE = 4  # most languages that get a panel each; more share one panel
SCALE = Scale("bias score (nats a token); above 0: the stereotype is likelier", False, None, 0.0)


def figures(data: Data) -> Iterator[Figure]:
    series = [
        s
        for s in data.of_kind("logprob", ("pro", "anti", "scorer"))
        if (s.table["scorer"] == "bias").any()
    ]
    if not series:
        return
    languages = {lang for one in series for lang in one.table["lang"].unique()}
    for column, name in _NAMES.items():
        if column == "entity" and data.redact:
            data.note("bias-scores-by-entity is not drawn: entities are words of the data")
            continue
        panels = ["lang"] if column != "lang" and 1 < len(languages) <= SEPARATE else []
        scores = data.scores(
            series, ["bias-score"], [*panels, column], lambda t: t[t["scorer"] == "bias"]
        )
        scores = [s for s in scores if s.by[column]]
        if len(values(scores, column)) < 2:
            continue
        yield _figure(data, series, scores, column, name, panels)


def _figure(
    data: Data,
    series: Sequence[Series],
    scores: Sequence[Score],
    column: str,
    name: str,
    panels: Sequence[str],
) -> Figure:
    stem = f"bias-scores-by-{name.replace(' ', '-')}"
    sizes: Counter[str] = Counter()
    for score in scores:
        sizes[str(score.by[column])] += score.n
    if len(sizes) > MOST:
        kept = {value for value, _ in sorted(sizes.items(), key=lambda v: (-v[1], v[0]))[:MOST]}
        scores = [s for s in scores if str(s.by[column]) in kept]
        data.note(f"{stem}: of {len(sizes)} the {MOST} with most pairs; --by {column} has them all")
    spreads = {id(s): _spread(series, s) for s in scores}
    points: dict[Key, Score] = {
        ("".join(shown(p, s.by[p]) for p in panels), row, str(s.by["model"])): s
        for row, s in sorted(
            ((shown(column, s.by[column]), s) for s in scores), key=lambda found: found[0]
        )
    }
    series_looks = looks(values(scores, "model"))
    return Figure(
        stem,
        f"Bias scores by {name}, in nats a token",
        scores,
        lambda: boxes(points, spreads, SCALE, series_looks, across=2),
        ("model",),
        [spreads[id(s)] for s in scores],
    )


def _spread(series: Sequence[Series], score: Score) -> dict[str, float]:
    """Return the percentiles of the values of the pairs that a score counts."""
    table = next(s.table for s in series if s.name == score.by["model"])
    here = table["scorer"] == "bias"
    for column, value in score.by.items():
        if column not in ("model", "scorer"):
            here &= table[column] == value
    gaps = (table["pro"] - table["anti"])[here & (table["left_out"] == "")].to_numpy(float)
    return spread(gaps[np.isfinite(gaps)])
