"""Arrange scores in tables of dots and intervals, with the positions at which page.html draws them.

The rows of a table are the cells by some columns (such as language and run). It has a column of
figures for each metric, which other columns (such as the question) can split. All positions are
percentages of the width of a table column, so that the page draws them without scripts and inline
styles.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from genprobe import metrics
from genprobe.records import JSON, Score
from genprobe.render import grid
from genprobe.render.findings import READINGS
from genprobe.resources.packs import language_name
from genprobe.text import display
from genprobe.text.display import LONGEST, clean

SHAPES = 5  # shapes of dots that page.html defines
ALL = "All"

# Columns of the outcomes -> their headings in a table.
HEADS = {
    "run": "Model",
    "lang": "Language",
    "probe": "Question",
    "decode": "Reading",
    "bias_type": "Bias type",
    "role": "Statement",
    "domain": "Domain",
    "subdomain": "Subdomain",
    "scorer": "Scorer",
    "condition": "Context",
    "readings": "Readings",
    "of": "Measure",
    "model": "Model",
    "wording": "Wording",
    "persona": "Persona",
    "instruction": "Question in",
    "effect": "Depends on",
}
_ROLES = {"original": "stereotype", "contrast": "contrast"}
_CONDITIONS = {"ambig": "ambiguous", "disambig": "disambiguated"}


@dataclass(frozen=True)
class Axis:
    """The scale on which a column of figures is drawn.

    low, high: the values at its ends. ticks: five labels, at 0, 25, 50, 75 and 100 % of its width.
    middle: whether its middle means no preference or no difference.
    """

    low: float
    high: float
    ticks: tuple[str, ...]
    middle: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value in % of the axis, limited to the axis."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 1)


@dataclass(frozen=True)
class Figure:
    """A score as it is printed and drawn.

    dot, low, high, bounds: positions in % of the axis; None if they are not drawn.
    """

    score: Score
    dot: float | None = None
    low: float | None = None
    high: float | None = None
    bounds: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        return grid.value_text(self.score)

    @property
    def labels(self) -> list[Label]:
        """Return the labels of the cell."""
        return [label(k, v, {}) for k, v in self.score.by.items()]

    @property
    def unit(self) -> str:
        return unit(self.score.metric)

    @property
    def interval(self) -> str:
        if self.score.low is None or self.score.high is None:
            return ""
        ends = (grid.number(v, self.score.metric) for v in (self.score.low, self.score.high))
        return " to ".join(ends)

    @property
    def between(self) -> str:
        """Return the bounds as text; empty without bounds."""
        if self.score.bounds is None:
            return ""
        return " to ".join(grid.number(v, self.score.metric) for v in self.score.bounds)

    @property
    def left_out(self) -> int:
        return sum(self.score.excluded.values())

    @property
    def planned(self) -> int:
        return self.score.n + self.left_out

    @property
    def why(self) -> str:
        """Return what was left out, by reason, as text; empty if nothing was."""
        return reasons(self.score.excluded)


@dataclass(frozen=True)
class Label:
    """A label of a row or column.

    code: of the language, if it names one. series: number of the marker, if it names a run. value:
    of the data, where it differs from the text.
    """

    text: str
    code: str = ""
    series: int | None = None
    value: str = ""


@dataclass
class Column:
    metric: str
    title: str
    across: str  # the values of the columns that split the metric, in words
    axis: Axis | None
    unit: str
    at: str = ""  # the values of the columns that split it, as a query of the replies

    @property
    def defined(self) -> bool:
        """Return whether it is a measure, and not the figure of one of two models (`a`, `b`)."""
        return self.metric not in ("a", "b")


@dataclass
class Row:
    """A row of a table.

    span: number of rows that its first label covers; 0 if the label of a row above covers it.
    """

    labels: list[Label]
    figures: list[Figure | None]
    span: int = 1
    whole: bool = False  # it is about all cells together


@dataclass
class Table:
    """A table of the page.

    keys: the columns of the cells that `heads` name. link: of all its cells, as a query of the
    replies (`replies.js`); None if they do not lead there. wide: it has figures without pictures.
    """

    caption: str
    heads: list[str]
    columns: list[Column]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    keys: Sequence[str] = ()
    link: str | None = None
    wide: bool = False

    @property
    def scores(self) -> list[Score]:
        return [f.score for row in self.rows for f in row.figures if f]


Key = tuple[JSON, ...]


def table(
    scores: Sequence[Score],
    rows: Sequence[str],
    across: Sequence[str] = (),
    *,
    caption: str,
    series: Mapping[str, int] | None = None,
    whole: Sequence[Score] = (),
    titles: Mapping[str, str] | None = None,
    heads: Mapping[str, str] = HEADS,
) -> Table | None:
    """Make a table of scores; None if there are none.

    rows: columns of the cells that make the rows. A column with a single value is left out, except
    if no column would remain, and except the run if `series` has several. across: columns of the
    cells by which a metric is split into columns. whole: scores over all values of the first of
    `rows`; they become the first rows. series: name of a run -> number of its marker. titles:
    metric -> title, if it is not the metric's name. heads: column of the cells -> heading.
    """
    every = [*whole, *scores]
    if not every:
        return None
    first = rows[0]
    # All other columns of the cells, such as the scorer, also make rows.
    told = dict.fromkeys(name for score in every for name in score.by)
    rows = [*rows, *(name for name in told if name not in (*rows, *across))]
    several = {"run"} if len(series or {}) > 1 and "run" in every[0].by else set()
    left = [
        name for name in rows if name in several or len({score.by.get(name) for score in every}) > 1
    ]
    left = left or [next((name for name in rows if name in every[0].by), first)]
    keys: dict[tuple[bool, Key], dict[Key, Score]] = {}
    order: dict[Key, None] = {}
    for at, score in enumerate(every):
        is_whole = at < len(whole)
        column: Key = (score.metric, *(score.by.get(name) for name in across))
        row = (is_whole, tuple(score.by.get(name) for name in left))
        order[column] = None
        keys.setdefault(row, {})[column] = score
    columns = [
        _column(key, [cells[key] for cells in keys.values() if key in cells], across, titles or {})
        for key in order
    ]
    found = []
    for is_whole, cell in _sorted(keys, left):
        cells = keys[is_whole, cell]
        labels = [
            Label(ALL) if is_whole and name == first else label(name, value, series or {})
            for name, value in zip(left, cell, strict=True)
        ]
        figures = [
            figure(cells[key], column.axis) if key in cells else None
            for key, column in zip(order, columns, strict=True)
        ]
        found.append(Row(labels, figures, whole=is_whole))
    _span(found)
    named = [heads.get(name, READINGS.get(name, clean(name))) for name in left]
    # Measures that compare two runs (`of`) share their replies, so only their rows say what is left
    # out.
    alone = [s for s in whole or scores if "of" not in s.by]
    same = {n: v for n, v in every[0].by.items() if len({str(s.by.get(n)) for s in every}) == 1}
    link = urlencode({n: v for n, v in same.items() if n not in left and n != "run"})
    return Table(caption, named, columns, found, left_out(alone), left, link)


def _sorted(keys: Iterable[tuple[bool, Key]], names: Sequence[str]) -> list[tuple[bool, Key]]:
    """Sort the rows: those over all cells first, then in the order of their first occurrence.

    Languages are sorted by their names.
    """
    every = list(keys)
    came: list[dict[JSON, int]] = [{} for _ in names]
    for _, cell in every:
        for seen, value in zip(came, cell, strict=True):
            seen.setdefault(value, len(seen))

    def rank(row: tuple[bool, Key]) -> tuple[object, ...]:
        whole, cell = row
        places: list[object] = [seen[v] for seen, v in zip(came, cell, strict=True)]
        if "lang" in names:
            at = names.index("lang")
            places[at] = "" if cell[at] is None else language_name(str(cell[at]))
        return (not whole, *places)

    return sorted(every, key=rank)


def _span(rows: Sequence[Row]) -> None:
    """Merge equal first labels of adjacent rows (sets `span`)."""
    first: Row | None = None
    for row in rows:
        if first and len(row.labels) > 1 and row.labels[0] == first.labels[0]:
            first.span += 1
            row.span = 0
        else:
            first = row


def label(name: str, value: JSON, series: Mapping[str, int]) -> Label:
    """Return the label of a value of a column of the cells, in words.

    series: name of a run -> number of its marker.
    """
    text = display.label(value)
    if name == "lang":
        return Label(language_name(str(value)), str(value))
    if name == "run":
        return Label(text, series=series.get(str(value), 0))
    if name == "decode":
        return Label(READINGS.get(text, text), value=text)
    if name == "readings":
        return Label(" against ".join(READINGS.get(part, part) for part in text.split(", ")))
    if name == "role":
        return Label(_ROLES.get(text, text), value=text)
    if name == "condition":
        return Label(_CONDITIONS.get(text, text))
    shown = text.replace("+", ", ") if name == "bias_type" else text
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
    return Label(shown, value=text if shown != text else "")


def _column(
    key: Key, scores: Sequence[Score], across: Sequence[str], titles: Mapping[str, str]
) -> Column:
    metric = str(key[0])
    words = [
        label(name, value, {}).text
        for name, value in zip(across, key[1:], strict=True)
        if value is not None
    ]
    return Column(
        metric=metric,
        title=titles.get(metric, metric),
        across=", ".join(words),
        axis=axis(metric, scores),
        unit=unit(metric),
        at=urlencode({n: v for n, v in zip(across, key[1:], strict=True) if v is not None}),
    )


def unit(metric: str) -> str:
    """Return the unit of a metric; empty for a number without a unit."""
    return {"share": "%", "points": "points"}.get(metrics.shown(metric).scale, "")


def axis(metric: str, scores: Sequence[Score]) -> Axis | None:
    """Choose the scale on which all of these scores of a metric are drawn.

    Returns None for what is not drawn: p-values, counts, and scores without any finite number.
    """
    # Bounds can exist even if no value does.
    drawn = ((s.value, s.low, s.high, *(s.bounds or ())) for s in scores)
    ends = [v for values in drawn for v in values if v is not None]
    scale_of = metrics.shown(metric).scale
    if not any(math.isfinite(v) for v in ends) or scale_of in ("p", "count"):
        return None
    known = metrics.catalogue().get(metric)
    if unit(metric) == "%":
        return Axis(0, 1, ("0", "", "50", "", "100"), bool(known and known.chance))
    if scale_of == "coefficient":
        return Axis(-1, 1, ("−1", "", "0", "", "1"), True)
    # Differences use little of their possible range: make the axis only as wide as needed.
    most = max(abs(v) for v in ends if math.isfinite(v))
    high = _nice(most) or (1.0 if unit(metric) != "points" else 0.1)
    scale = 100 if unit(metric) == "points" else 1
    end = f"{scale * high:g}"
    if known is not None and known.limits[0] >= 0:
        return Axis(0, high, ("0", "", f"{high / 2:g}", "", end))
    return Axis(-high, high, (f"−{end}", "", "0", "", f"+{end}"), True)


def _nice(value: float) -> float:
    """Round a value up to 1, 2 or 5 times a power of ten; 0 if the value is not positive."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    step = next(step for step in (1, 2, 5, 10, 20) if step * power >= value * (1 - 1e-9))
    return float(f"{step * power:.6g}")


def figure(score: Score, scale: Axis | None) -> Figure:
    """Compute the positions of a score on its axis; None for a figure that is only printed."""

    if scale is None:
        return Figure(score)
    ends = (score.value, score.low, score.high)
    dot, low, high = (None if value is None else scale.at(value) for value in ends)
    bounds = (scale.at(score.bounds[0]), scale.at(score.bounds[1])) if score.bounds else None
    return Figure(score, dot, low, high, bounds)


def reasons(excluded: Mapping[str, int]) -> str:
    """Write what was left out, by reason, such as `12 refusal, 3 failed`."""
    order = sorted(excluded.items(), key=metrics.rank)
    return ", ".join(f"{count:,} {clean(reason)}" for reason, count in order if count)


def left_out(scores: Sequence[Score]) -> list[str]:
    """Say what was left out, and of how many planned, in one line for each set of metrics.

    Metrics that left out the same are named in the same line.
    """
    told: dict[str, list[str]] = {}
    for metric in dict.fromkeys(s.metric for s in scores):
        total: Counter[str] = Counter()
        of = [s for s in scores if s.metric == metric]
        for score in of:
            total.update(score.excluded)
        if total:
            planned = sum(s.n for s in of) + total.total()
            each = ", counted for each scorer" * (len({s.by.get("scorer") for s in of}) > 1)
            told.setdefault(f"{reasons(total)}, of {planned:,} planned{each}", []).append(metric)
    return [f"Left out of {', '.join(names)}: {why}." for why, names in told.items()]
