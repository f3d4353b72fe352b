"""The list of scores that Python functions return: it displays as a table and works with pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from genprobe.records import Score

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.render.findings import Finding


class Scores(list[Score]):
    """A list of scores that displays as a table; `frame()` converts it to pandas.

    rankings: the rankings of `compare`, one per cell, as `compare -f json` prints them; None
    unless models were compared. finding: what `compare` of models shows, in sentences; else None.
    wide: display the values of the last column side by side (render/wide.py).
    """

    rankings: Sequence[Mapping[str, Any]] | None = None
    finding: Finding | None = None
    wide: bool = False

    def frame(self) -> pd.DataFrame:
        """Make a table with one row per score.

        Its columns are metric, the columns of the cells, value, low, high, n, excluded (reason ->
        count), bound_low, bound_high and signature. If a score has a band, these follow: readings
        (reading -> figure), readers_low, readers_low_by, readers_high and readers_high_by.

        Shares are from 0 to 1; a score without a value has NaN. If a column of the cells has the
        same name as one of these columns, `_data` is added to its name.
        """
        import pandas as pd

        from genprobe.render.formats import EMPTY, fields

        banded = any(score.readings for score in self)
        numbers = ["value", "low", "high", "bound_low", "bound_high"]
        numbers += ["readers_low", "readers_high"] if banded else []
        rows = [fields(score, banded) for score in self]
        by = dict.fromkeys(name for score in self for name in score.by)
        own = list(fields(EMPTY, banded))
        names = {name: f"{name}_data" if name in own else name for name in by}
        for row, score in zip(rows, self, strict=True):
            row |= {names[name]: value for name, value in score.by.items()}
        table = pd.DataFrame(rows, columns=["metric", *names.values(), *own[1:]], dtype=object)
        for name in table.columns:
            if name in numbers:
                table[name] = table[name].astype("float64")
            elif name not in ("excluded", "readings"):
                table[name] = table[name].infer_objects()
        return table

    def render(self, form: str = "table", width: int = 100) -> str:
        """Write the scores in a format of `render.formats.FORMATS`. width: of the terminal."""
        from genprobe.render import formats, wide

        return (wide if self.wide else formats).render(self, form, width, self.finding)

    def __repr__(self) -> str:
        return self.render().rstrip()

    def _repr_html_(self) -> str:
        from genprobe.render import formats, wide

        if self.wide:
            return wide.html(self, self.finding.lines if self.finding else ())
        return formats.html(self, self.finding)
