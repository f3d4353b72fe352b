"""Draw rates as corrected by a review, beside the rates as the judge measured them."""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.report.corrected import TITLES
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, shown, split
from genprobe.report.figures._plot import Scale, dots, looks


def figures(data: Data) -> Iterator[Figure]:
    for _, part in split(list(data.corrected), ["rate"]):
        rate = str(part[0].by["rate"])
        names = [name for name in ("run", "lang", "probe", "domain") if name in part[0].by]
        several = [n for n in names if len({str(s.by[n]) for s in part}) > 1] or names[1:2]
        points = {
            ("", ", ".join(shown(n, s.by[n]) for n in several), TITLES[s.metric]): s for s in part
        }
        models = looks(list(TITLES.values()))
        scale = Scale(f"{rate} (%)")
        yield Figure(
            stem("corrected", rate),
            f"Rate corrected by people's review: {rate}",
            part,
            lambda points=points, models=models, scale=scale: dots(points, scale, models),  # type: ignore[misc]
            tuple(n for n in ("run",) if n in part[0].by),
        )
