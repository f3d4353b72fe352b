"""Draw what a model says in each language about stereotypes of each region, or language.

`recognised-` and `endorsed-by-language-and-region`: like SHADES, Figure 22 (language of the prompt
against region), of originals, with the number of clear answers in the CSV. A stereotype of five
regions counts in five columns. `known-gap-by-language`: endorsement where a stereotype is known (a
row) minus where it is unknown (a column), paired by statement (metrics/spread.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from genprobe.errors import InputError
from genprobe.outcomes import facts
from genprobe.records import Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, split
from genprobe.report.figures._plot import heat

_WIDEST = 24  # regions in one figure
_SAYS = {"recognised": "Recognised", "endorsed": "Endorsed"}


def figures(data: Data) -> Iterator[Figure]:
    series = data.of_kind("yesno", ("says", "measures", "lang", "role"))
    named = [*_SAYS] if any(_regional(one.table).size for one in series) else []
    for name in named:
        scores = data.scores(series, [name], ["decode", "lang", "region"], _regional)
        for words, part in split(scores, ["decode"]):
            kept = _most(part, data)
            title = f"{_SAYS[name]} stereotypes of a region, by language of the question"
            yield from _figure(stem(f"{name}-by-language-and-region", *words), title, kept,
                               ("lang", "region"), f"{name} (%), n below")  # fmt: skip
    known = data.of_kind("yesno", ("says", "measures", "lang", "probe", "pair", "valid"))
    scores = data.scores(known, ["known-gap-between"], ["decode"])
    for words, part in split(scores, ["decode"]):
        title = "Endorsement where a stereotype is known (row) minus where it is not (column)"
        yield from _figure(stem("known-gap-by-language", *words), title, part,
                           ("known_in", "asked_in"), "gap (points), n below")  # fmt: skip


def _regional(table: pd.DataFrame) -> pd.DataFrame:
    """Return the originals, with one row for each region; none if the data have no regions."""
    try:
        return facts.beside(table[table["role"] == "original"], ["region"], ())
    except InputError:
        return table.iloc[:0]


def _most(scores: Sequence[Score], data: Data) -> list[Score]:
    """Keep the regions with most answers; say how many are left out."""
    size: dict[str, int] = {}
    for score in scores:
        size[str(score.by["region"])] = size.get(str(score.by["region"]), 0) + score.n
    kept = sorted(size, key=lambda name: (-size[name], name))[:_WIDEST]
    if len(size) > len(kept):
        data.note(f"{len(size) - len(kept)} of {len(size)} regions, with fewest answers, not drawn")
    return [score for score in scores if score.by["region"] in kept]


def _figure(
    name: str, title: str, scores: Sequence[Score], axes: tuple[str, str], what: str
) -> Iterator[Figure]:
    """Make a figure with a panel for each model; none if nothing could be counted."""
    cells = {
        (str(s.by["model"]), str(s.by[axes[0]]), str(s.by[axes[1]])): (
            100 * s.value,
            f"{100 * s.value:.0f}\n({s.n})".replace("-", "\N{MINUS SIGN}"),
        )
        for s in scores
        if s.value is not None
    }
    if not cells:
        return
    rows, columns = (sorted({key[at] for key in cells}) for at in (1, 2))
    named = axes[0].replace("_", " ").replace("lang", "language"), axes[1].replace("_", " ")
    far = max(abs(value) for value, _ in cells.values()) or 1.0
    ends = (-far, far) if "gap" in what else (0.0, 100.0)
    yield Figure(
        name, title, scores, lambda: heat(cells, rows, columns, what, ends, named), axes[1:]
    )
