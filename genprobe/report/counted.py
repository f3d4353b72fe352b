"""Draw what is in a data set: bars, and a heat map for a cross table.

These are the figures that the studies print about their data: SHADES, Figures 3, 4, 8 and 9;
AfriStereo, Figure 2; Aqbileq, Figure 4. The map of SHADES' Figure 1 is drawn as bars of regions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe.datasets.describe import Count
from genprobe.metrics import Measure, declare
from genprobe.records import JSON, Score
from genprobe.report.figures import Figure, stem, written
from genprobe.report.figures._plot import bars, heat

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

declare(Measure("count", "number of items", "count", "of"))


def draw(counts: Iterable[Count], source: str, out: str | Path) -> list[Path]:
    """Draw each table of counts that has two values or more into the folder `out`.

    source: what was counted, for the captions. Returns the files, four for each figure as in
    `report.figures.draw`. Raises RunError if a file cannot be written.
    """
    return written(_figures(counts, Path(source).name), Path(out))


def _figures(counts: Iterable[Count], source: str) -> Iterator[Figure]:
    for table, group in itertools.groupby(counts, lambda count: count.table):
        found = list(group)
        if table == "items" or len({count.value for count in found}) < 2:
            continue
        scores = []
        for one in found:
            by: dict[str, JSON] = {"value": one.value}
            if one.across:
                by["across"] = one.across
            scores.append(
                Score("count", by, float(one.n), None, None, one.of, {}, None, f"data:{source}")
            )
        across = ("across",) if found[0].across else ()
        name, title = stem("counts", table), f"{source}: {table}, of {found[0].of:,}"
        yield Figure(name, title, scores, lambda found=found: _plot(found), across)  # type: ignore[misc]


def _plot(found: Sequence[Count]) -> Canvas:
    if not found[0].across:
        rest = f", {found[-1].value} not drawn" if found[-1].value.endswith("more values") else ""
        drawn = {one.value: one.n for one in (found[:-1] if rest else found)}
        return bars(drawn, f"{found[0].table} (of {found[0].of:,}{rest})")
    rows = list(dict.fromkeys(one.value for one in found))
    columns = list(dict.fromkeys(one.across for one in found))
    cells = {("", c.value, c.across): (float(c.n), f"{c.n:,}") for c in found if c.n}
    return heat(cells, rows, columns, "items", (0.0, max(value for value, _ in cells.values())))
