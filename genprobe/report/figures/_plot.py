"""Define the common style of figures and the few kinds of plot that they use.

The colours are those of Okabe & Ito (2008, "Color Universal Design"), ordered so that neighbours
also differ in lightness; each has its own marker, so nothing depends on colour alone. SVG keeps
text as text, and PDF embeds the fonts. A label in another script is set in an installed font that
supports it (matplotlib shapes it with HarfBuzz); without one, its characters are written as code
points such as U+0928, never as boxes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genprobe.records import Score
from genprobe.text.display import clean, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLUMN, PAGE = 3.3, 6.9  # inches: one column, and the full text width, of an ACL or ACM page
TALLEST = 9.0
_FONT = "DejaVu Sans"  # comes with matplotlib, so figures look the same on every machine
_SIZE = 7.0
_INK, _GREY, _BAND = "#222222", "#767676", "#f3f3f3"


@dataclass(frozen=True)
class Look:
    """How a series is drawn. hollow: the marker is white inside. hatch: the pattern of its box."""

    colour: str
    marker: str
    hollow: bool = False
    hatch: str = ""
    line: Any = "-"


_COLOURS = ("#0072B2", "#E69F00", "#000000", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8C8C8C")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "++++", "||||")
_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
ANSWERS = {
    "yes": Look("#0072B2", "o"),
    "no": Look("#D55E00", "s"),
    "ambiguous": Look("#767676", "D", hollow=True),
}


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look for each name; after the eighth, looks repeat with hollow markers."""
    n = len(_COLOURS)
    return {
        name: Look(
            _COLOURS[at % n],
            _MARKERS[at % n],
            (at // n) % 2 == 1,
            _HATCHES[at % n],
            _LINES[at % len(_LINES)],
        )
        for at, name in enumerate(names)
    }


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Return the matplotlib settings with which a figure is drawn and saved.

    The user's own settings are neither used nor changed.
    """
    import matplotlib

    with contextlib.ExitStack() as stack:
        stack.enter_context(matplotlib.rc_context())
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": [_FONT],
                "font.size": _SIZE,
                "text.parse_math": False,  # a name with two dollar signs is not a formula
                "axes.titlesize": _SIZE,
                "axes.titleweight": "bold",
                "axes.titlelocation": "left",
                "axes.labelsize": _SIZE,
                "axes.linewidth": 0.6,
                "axes.edgecolor": _GREY,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.axisbelow": True,
                "text.color": _INK,
                "axes.labelcolor": _INK,
                "xtick.color": _INK,
                "ytick.color": _INK,
                "xtick.labelsize": _SIZE,
                "ytick.labelsize": _SIZE,
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
                "xtick.major.size": 2.5,
                "ytick.major.size": 2.5,
                "legend.fontsize": _SIZE,
                "legend.frameon": False,
                "legend.handletextpad": 0.5,
                "legend.columnspacing": 1.5,
                "hatch.linewidth": 0.4,
                "svg.fonttype": "none",
                "svg.hashsalt": "genprobe",
                "pdf.fonttype": 42,
                "pdf.compression": 6,
                "savefig.facecolor": "white",
            }
        )
        # Messages about tables dropped from font subsets are of no use to the user.
        logger = logging.getLogger("fontTools.subset")
        level = logger.level
        stack.callback(logger.setLevel, level)
        logger.setLevel(logging.ERROR)
        yield


# --- text


@functools.cache
def _covers(path: str) -> frozenset[int]:
    """Return the characters that a font file supports; none if it cannot be read."""
    from fontTools.ttLib import TTFont

    try:
        with TTFont(path, fontNumber=0, lazy=True) as font:
            return frozenset(font.getBestCmap() or ())
    except Exception:  # installed font files can be broken in many ways
        return frozenset()


@functools.cache
def _fonts() -> tuple[tuple[str, str], ...]:
    """List the installed fonts (name and file) that may supply characters missing in DejaVu.

    Upright regular fonts, those called `Sans` first, then by name. Matplotlib's placeholder font
    for missing characters is excluded.
    """
    from matplotlib import font_manager

    entries = {
        entry.name: entry.fname
        for entry in sorted(font_manager.fontManager.ttflist, key=lambda e: (e.name, e.fname))
        if entry.style == "normal" and entry.weight in (400, "normal", "regular")
        if not entry.name.startswith(("Last Resort", "DejaVu", "LM ", "Latin Modern", "cm", "STIX"))
    }
    return tuple(sorted(entries.items(), key=lambda item: ("Sans" not in item[0], item)))


@functools.cache
def _font_for(char: str) -> str | None:
    """Return a font that supports a character: DejaVu, else an installed one, else None."""
    from matplotlib import font_manager

    if ord(char) in _covers(font_manager.findfont(_FONT)):
        return _FONT
    return next((name for name, path in _fonts() if ord(char) in _covers(path)), None)


def label(text: str, width: int = 28) -> str:
    """Return a name as figures show it: one line, shortened, with characters that can be drawn.

    Adds the fonts it needs to the current settings.
    """
    import matplotlib

    shown = ""
    for char in shorten(clean(text), width):
        font = _font_for(char) if char.isprintable() or char in "\u200c\u200d" else None
        if char in "\u200c\u200d":  # joiners have no glyph
            shown += char
            continue
        shown += char if font else f"U+{ord(char):04X}"
        family = matplotlib.rcParams["font.family"]
        if font and font not in family:
            matplotlib.rcParams["font.family"] = [*family, font]
    return shown or "(none)"


def counts(numbers: Sequence[int]) -> str:
    """Write a set of counts as one number or as a range: `102` or `98–102`."""
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low}–{high}"


# --- plots


@dataclass(frozen=True)
class Scale:
    """An axis of values.

    percent: draw shares in %. limits: of the axis; None to fit the data. middle: position of the
    line for "no preference".
    """

    title: str
    percent: bool = True
    limits: tuple[float, float] | None = (0.0, 100.0)
    middle: float | None = None

    def at(self, value: float) -> float:
        return 100 * value if self.percent else value


Key = tuple[str, str, str]  # panel, row, series


def canvas(width: float, height: float, names: Iterable[str]) -> Canvas:
    """Return an empty figure.

    names: all labels that it will show, because their fonts must be set in advance.
    """
    from matplotlib.figure import Figure

    for name in names:
        label(name)

    found = Figure(figsize=(width, min(height, TALLEST)), layout="constrained")
    found.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02)  # type: ignore[union-attr, call-arg]
    return found


def dots(
    points: Mapping[Key, Score],
    scale: Scale,
    shown: Mapping[str, Look],
    across: int = 3,
    draw: Callable[[Axes, float, Score, Look, float], None] | None = None,
) -> Canvas:
    """Draw panels of rows (top to bottom) with a point and its interval for each series.

    points: (panel, row, series) -> score; a missing score or value leaves a gap. draw: a function
    that draws something other than a point at a given height.
    """
    panels, rows, series = (list(dict.fromkeys(key[at] for key in points)) for at in range(3))
    series = [name for name in shown if name in series]
    shape = _shape(len(panels), across)
    step = max(0.16, 0.062 * len(series) + 0.07)
    head = 0.55 + 0.16 * _legend_lines(series, len(panels))
    height = shape[0] * (len(rows) * step + 0.34) + head
    wide = len(panels) > 1 or len(rows) > 12 or max(map(len, rows)) > 22
    figure = canvas(PAGE if wide else COLUMN, height, [*panels, *rows, *series])
    axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    of_series = {name: shown[name] for name in series}
    for ax, panel in zip(axes, panels, strict=False):
        if len(panels) > 1:
            ax.set_title(label(panel, 40), pad=10)
        here = {(row, name): score for (of, row, name), score in points.items() if of == panel}
        _panel(ax, rows, here, scale, of_series, draw or functools.partial(_point, scale=scale))
    for ax in axes[len(panels) :]:
        ax.remove()
    first = axes[0]
    first.set_yticks(range(len(rows)), [label(row, 30) for row in rows])
    first.set_ylim(len(rows) - 0.5, -0.5)
    if scale.limits:
        first.set_xlim(scale.limits[0] - 2, scale.limits[1] + 2)
    if scale.limits == (0.0, 100.0):
        first.set_xticks([0, 25, 50, 75, 100])
    for at, ax in enumerate(axes[: len(panels)]):
        ax.tick_params(axis="y", labelleft=at % shape[1] == 0)
        ax.tick_params(axis="x", labelbottom=at + shape[1] >= len(panels))
    figure.supxlabel(scale.title, fontsize=_SIZE)
    if len(series) > 1:
        legend(figure, of_series, boxed=draw is not None)
    return figure


def _panel(
    ax: Axes,
    rows: Sequence[str],
    points: Mapping[tuple[str, str], Score],
    scale: Scale,
    looks: Mapping[str, Look],
    draw: Callable[[Axes, float, Score, Look, float], None],
) -> None:
    """Draw the rows of one panel, the series of a row one above the other.

    points: (row, series) -> score. draw: as of `dots`.
    """
    several = max(len(looks), 1)
    spread = 0.8 * (len(looks) - 1) / several
    numbers: list[str] = []
    for y, row in enumerate(rows):
        if y % 2:
            ax.axhspan(y - 0.5, y + 0.5, color=_BAND, linewidth=0, zorder=0)
        here = []
        for at, (name, look) in enumerate(looks.items()):
            score = points.get((row, name))
            if score is not None:
                here.append(score.n)
            if score is not None and score.value is not None:
                offset = spread * (at / max(len(looks) - 1, 1) - 0.5)
                draw(ax, y + offset, score, look, 0.8 / several)
        numbers.append(counts(here) if here else "–")
    _counts(ax, numbers)
    ax.grid(axis="x", color="#dddddd", linewidth=0.5)
    ax.spines["left"].set_visible(False)
    if scale.middle is not None:
        ax.axvline(scale.middle, color=_GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    ax.tick_params(axis="y", length=0)


def _shape(panels: int, across: int) -> tuple[int, int]:
    columns = min(panels, across)
    return -(-panels // columns), columns


def _legend_lines(series: Sequence[str], panels: int) -> int:
    return -(-len(series) // _legend_columns(series, PAGE if panels > 1 else COLUMN))


def _legend_columns(series: Sequence[str], width: float) -> int:
    longest = min(max(map(len, series)), 28)
    return max(1, min(len(series), int(width / (0.42 + 0.06 * longest))))


def _counts(ax: Axes, numbers: Sequence[str]) -> None:
    """Write n to the right of each row, or once above all rows if it is the same."""
    same = len(set(numbers)) == 1
    at = ax.get_yaxis_transform()
    size = _SIZE - 1
    if same:
        ax.text(1.0, 1.0, f"n = {numbers[0]}", transform=ax.transAxes, fontsize=size, color=_GREY,
                ha="right", va="bottom")  # fmt: skip
        return
    ax.text(1.02, 1.0, "n", transform=ax.transAxes, fontsize=size, color=_GREY, va="bottom")
    for y, text in enumerate(numbers):
        ax.text(1.02, y, text, transform=at, fontsize=size, color=_GREY, va="center")


def _point(ax: Axes, y: float, score: Score, look: Look, room: float, *, scale: Scale) -> None:
    assert score.value is not None
    interval(ax, scale.at(score.value), y, look, x=_ends(score, scale))


def _ends(score: Score, scale: Scale) -> tuple[float, float] | None:
    if score.low is None or score.high is None:
        return None
    return scale.at(score.low), scale.at(score.high)


def interval(
    ax: Axes,
    x_at: float,
    y_at: float,
    look: Look,
    x: tuple[float, float] | None = None,
    y: tuple[float, float] | None = None,
    size: float = 3.4,
) -> None:
    """Draw a marker and its intervals, each a line from its low to its high end."""
    if x:
        ax.plot(x, (y_at, y_at), color=look.colour, linewidth=0.9, solid_capstyle="butt", zorder=3)
    if y:
        ax.plot((x_at, x_at), y, color=look.colour, linewidth=0.9, solid_capstyle="butt", zorder=3)
    ax.plot([x_at], [y_at], linestyle="none", zorder=4, **_marker(look, size))


def _marker(look: Look, size: float = 3.4) -> dict[str, Any]:
    return {
        "marker": look.marker,
        "markersize": size,
        "color": look.colour,
        "markerfacecolor": "white" if look.hollow else look.colour,
        "markeredgewidth": 0.7,
    }


def legend(figure: Canvas, shown: Mapping[str, Look], boxed: bool = False) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=pale(look.colour), edgecolor=look.colour, hatch=look.hatch, linewidth=0.7)
        if boxed
        else Line2D([], [], linewidth=0.9, **_marker(look))
        for look in shown.values()
    ]
    figure.legend(
        handles,
        [label(name) for name in shown],
        loc="outside upper center",
        ncols=_legend_columns(list(shown), figure.get_size_inches()[0]),
        borderaxespad=0.1,
    )


def pale(colour: str) -> str:
    """Mix a colour with white, for areas."""
    from matplotlib import colors

    red, green, blue = colors.to_rgb(colour)
    return colors.to_hex((0.65 + 0.35 * red, 0.65 + 0.35 * green, 0.65 + 0.35 * blue))


def boxes(
    points: Mapping[Key, Score],
    spreads: Mapping[int, Mapping[str, float]],
    scale: Scale,
    shown: Mapping[str, Look],
    across: int = 3,
) -> Canvas:
    """Draw `dots` over boxes of quartiles, with whiskers from the 5th to the 95th percentile.

    spreads: `id` of a score -> its percentiles (`_data.spread`).
    """

    def draw(ax: Axes, y: float, score: Score, look: Look, room: float) -> None:
        spread = {name: scale.at(value) for name, value in spreads[id(score)].items()}
        names = ("p5", "q1", "median", "q3", "p95")
        stats = dict(
            zip(("whislo", "q1", "med", "q3", "whishi"), map(spread.get, names), strict=True)
        )
        ax.bxp(
            [stats],
            positions=[y],
            widths=0.8 * room,
            orientation="horizontal",
            showfliers=False,
            showcaps=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={
                "facecolor": pale(look.colour),
                "edgecolor": look.colour,
                "hatch": look.hatch,
                "linewidth": 0.6,
            },
            medianprops={"color": _INK, "linewidth": 1.1},
            whiskerprops={"color": look.colour, "linewidth": 0.6},
        )
        assert score.value is not None
        dark = Look(_INK, "D", hollow=True)
        interval(ax, scale.at(score.value), y, dark, x=_ends(score, scale), size=2.4)

    return dots(points, scale, shown, across, draw)


def lines(
    curves: Mapping[str, Sequence[tuple[Score | float, Score]]],
    x: Scale,
    y: Scale,
    shown: Mapping[str, Look],
) -> Canvas:
    """Draw curves of points with their intervals.

    If x is a score, intervals are drawn on both axes; else the curves are shifted slightly so that
    they do not overlap. A point without a value interrupts its curve.
    """
    figure = canvas(COLUMN, 2.5 + 0.14 * len(curves), curves)
    ax = figure.subplots()
    _curves(ax, curves, x, y, shown)
    if len(curves) > 1:
        legend(figure, {name: shown[name] for name in curves})
    return figure


def panels(
    parts: Mapping[str, Mapping[str, Sequence[tuple[Score | float, Score]]]],
    x: Scale,
    y: Scale,
    shown: Mapping[str, Look],
) -> Canvas:
    """Draw curves as in `lines`, one panel per part, side by side with a common value axis."""
    names = list(dict.fromkeys(name for curves in parts.values() for name in curves))
    rows, columns = _shape(len(parts), 3)
    figure = canvas(PAGE, 2.3 * rows + 0.14 * len(names), [*parts, *names])
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for ax, (part, curves) in zip(grid, parts.items(), strict=False):
        _curves(ax, curves, x, y, shown)
        ax.set_title(label(part), loc="left", fontsize=_SIZE)
    for ax in grid[: len(parts)]:
        ax.label_outer(remove_inner_ticks=False)
    for ax in grid[len(parts) :]:
        ax.remove()
    if len(names) > 1:
        legend(figure, {name: shown[name] for name in names})
    return figure


def _curves(
    ax: Axes,
    curves: Mapping[str, Sequence[tuple[Score | float, Score]]],
    x: Scale,
    y: Scale,
    shown: Mapping[str, Look],
) -> None:
    every = [at for points in curves.values() for at, _ in points if not isinstance(at, Score)]
    aside = (
        0.015 * (max(every) - min(every)) if every else 0.0
    )  # shift the intervals sideways, so that they do not overlap
    for order, (name, points) in enumerate(curves.items()):
        look = shown[name]
        shift = aside * (order - (len(curves) - 1) / 2)
        path: tuple[list[float], list[float]] = ([], [])
        for at, score in points:
            across = at.value if isinstance(at, Score) else at
            gap = across is None or score.value is None
            path[0].append(float("nan") if across is None else x.at(across) + shift)
            path[1].append(float("nan") if score.value is None else y.at(score.value))
            if not gap:
                ends = _ends(at, x) if isinstance(at, Score) else None
                interval(ax, path[0][-1], path[1][-1], look, x=ends, y=_ends(score, y))
        ax.plot(*path, color=look.colour, linestyle=look.line, linewidth=0.9, zorder=2)
    if y.middle is not None:
        ax.axhline(y.middle, color=_GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    ax.grid(axis="y", color="#dddddd", linewidth=0.5)
    ax.set_xlabel(x.title)
    ax.set_ylabel(y.title)
    numbers = [score.n for points in curves.values() for _, score in points]
    ax.text(1.0, 1.01, f"n = {counts(numbers)} a point", transform=ax.transAxes, ha="right",
            va="bottom", fontsize=_SIZE - 1, color=_GREY)  # fmt: skip


def bars(numbers: Mapping[str, int], title: str) -> Canvas:
    """Draw a bar for each name, top to bottom, with its number at the end."""
    names = list(numbers)
    figure = canvas(COLUMN if max(map(len, names)) < 30 else PAGE, 0.16 * len(names) + 0.5, names)
    ax = figure.subplots()
    ax.barh(range(len(names)), list(numbers.values()), height=0.7, color=_COLOURS[0])
    for y, n in enumerate(numbers.values()):
        ax.annotate(f"{n:,}", (n, y), (2, 0), textcoords="offset points", va="center",
                    fontsize=_SIZE - 1, color=_GREY)  # fmt: skip
    ax.set_yticks(range(len(names)), [label(name, 40) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, 1.12 * max(numbers.values()))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(title)
    return figure


def heat(
    cells: Mapping[Key, tuple[float, str]],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    ends: tuple[float, float] = (0.0, 1.0),
    names: tuple[str, str] = ("", ""),
) -> Canvas:
    """Draw tables whose cells are coloured by their value.

    cells: (panel, row, column) -> value and text. ends: the values of the first and the last
    colour. names: what rows and columns are. The colour map is cividis, which suits colour-blind
    readers and is uniform in grey.
    """
    import matplotlib
    import numpy as np

    panels = list(dict.fromkeys(key[0] for key in cells))
    most = max(len(rows), len(columns))
    shape = _shape(len(panels), 3 if most <= 8 else 1 if len(columns) > 20 else 2)
    page = PAGE if len(panels) > 1 or most > 8 else COLUMN
    side = min((page - 0.9) / shape[1], max(1.7, 0.32 * (most + 1)))
    cell = side / most
    longest = max(len(line) for _, text in cells.values() for line in text.split("\n"))
    size = min(_SIZE - 0.5, 72 * cell / longest / 0.8)
    wide, high = (max(0.6, cell * len(names)) for names in (columns, rows))
    below = 0.05 * min(16, max(map(len, columns))) + 0.3
    beside = 0.06 * min(44, max(map(len, rows))) + 0.3
    figure = canvas(
        shape[1] * (wide + beside) + 0.8,
        shape[0] * (high + below) + 0.3,
        [*panels, *rows, *columns],
    )
    axes = figure.subplots(*shape, squeeze=False).ravel()
    colours = matplotlib.colormaps["cividis"]
    for ax, panel in zip(axes, panels, strict=False):
        grid = np.full((len(rows), len(columns)), np.nan)
        for (of, row, column), (value, text) in cells.items():
            if of != panel:
                continue
            y, x = rows.index(row), columns.index(column)
            grid[y, x] = value
            place = (value - ends[0]) / (ends[1] - ends[0])
            ink = "white" if sum(colours(place)[:3]) < 1.5 else "black"
            ax.text(x, y, text, ha="center", va="center", fontsize=size, color=ink)
        image = ax.imshow(grid, cmap=colours, vmin=ends[0], vmax=ends[1])
        if len(panels) > 1:
            ax.set_title(label(panel, 40))
        ax.set_xticks(range(len(columns)), [label(n, 16) for n in columns], rotation=90)
        ax.set_yticks(range(len(rows)), [label(n, 44) for n in rows])
        ax.tick_params(length=0)
        ax.set_ylabel(names[0])
        ax.set_xlabel(names[1])
        ax.spines[:].set_visible(False)
    for ax in axes[len(panels) :]:
        ax.remove()
    figure.colorbar(image, ax=list(axes[: len(panels)]), label=title, shrink=0.8, aspect=30)
    return figure


def crosses(
    points: Mapping[tuple[str, str, str], Score], x: tuple[str, Scale], y: tuple[str, Scale]
) -> Canvas:
    """Draw panels of named points with their intervals on both axes.

    points: (panel, name, metric) -> score; x, y: the metric of each axis."""
    panels = list(dict.fromkeys(key[0] for key in points))
    shape = _shape(len(panels), 3)
    width = PAGE if len(panels) > 1 else COLUMN
    names = [name for key in points for name in key[:2]]
    figure = canvas(width, shape[0] * (width - 0.5) / shape[1] + 0.3, names)
    axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    look = Look(_COLOURS[0], "o")
    for ax, panel in zip(axes, panels, strict=False):
        if len(panels) > 1:
            ax.set_title(label(panel, 40))
        numbers, named = [], []
        for name in dict.fromkeys(key[1] for key in points if key[0] == panel):
            at = [points.get((panel, name, metric)) for metric, _ in (x, y)]
            if any(score is None or score.value is None for score in at):
                continue
            across, up = (score for score in at if score is not None)
            numbers.append(across.n)
            here = [s.at(v.value or 0.0) for v, (_, s) in ((across, x), (up, y))]
            ends = [_ends(v, s) for v, (_, s) in ((across, x), (up, y))]
            thin = Look("#8fbbd6", "o")
            interval(ax, here[0], here[1], thin, x=ends[0], y=ends[1], size=0)
            ax.plot(*[[v] for v in here], linestyle="none", zorder=4, **_marker(look, 2.6))
            named.append((label(name, 16), here[0], here[1]))
        _name_points(ax, named, 72 * (width - 0.7) / shape[1] / 104)
        for line, (_, scale) in ((ax.axvline, x), (ax.axhline, y)):
            if scale.middle is not None:
                line(scale.middle, color=_GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
        if numbers:
            ax.text(1.0, 1.0, f"n = {counts(numbers)}", transform=ax.transAxes, ha="right",
                    va="bottom", fontsize=_SIZE - 1, color=_GREY)  # fmt: skip
        ax.set_xlim(-2, 102)
        ax.set_ylim(-2, 102)
        ax.set_aspect("equal")
    for ax in axes[len(panels) :]:
        ax.remove()
    figure.supxlabel(x[1].title, fontsize=_SIZE)
    figure.supylabel(y[1].title, fontsize=_SIZE)
    return figure


def _name_points(ax: Axes, named: Sequence[tuple[str, float, float]], points: float) -> None:
    """Write names beside their points, each where it covers the fewest others.

    points: typographic points per unit, for both axes."""
    size = _SIZE - 1
    taken = [(x - 1, y - 1, x + 1, y + 1) for _, x, y in named]  # the markers
    for text, x, y in named:
        wide, high = 0.62 * size * len(text) / points, size / points
        gap = 2.5 / points
        places = [
            (x + dx, y + dy, x + dx + wide, y + dy + high)
            for dx in (gap, -gap - wide, -wide / 2)
            for dy in (gap / 2, -gap / 2 - high, gap + 0.6 * high, -gap - 1.6 * high)
        ]

        def covered(place: tuple[float, float, float, float]) -> float:
            return sum(
                max(0.0, min(place[2], other[2]) - max(place[0], other[0]))
                * max(0.0, min(place[3], other[3]) - max(place[1], other[1]))
                for other in taken
            )

        best = min(places, key=covered)
        taken.append(best)
        ax.text(best[0], best[1], text, fontsize=size, va="bottom", zorder=5)
