"""Scores as text: a table for a terminal, CSV, JSON, HTML for a notebook; LaTeX is latex.py's.

Names of models, columns and groups come from files and from strangers. None of them may move a
cursor, run as a formula or end a LaTeX group, so each format cleans and escapes every cell.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.files import escape
from genprobe.records import JSON, Score
from genprobe.resources import registry
from genprobe.text.display import clean, label, pad, short_name, shorten, wide

if TYPE_CHECKING:
    from genprobe.runs.spec import Spec

FORMATS = ("table", "csv", "json", "latex")
NOTHING = "–"  # where there was nothing to count
WIDTH = 100
_GAP = "  "


def render(scores: Sequence[Score], form: str, width: int = WIDTH) -> str:
    """Scores as one of `FORMATS`, ending in a newline. width: columns of the terminal.

    InputError for an unknown format.
    """
    if form not in FORMATS:
        raise registry.unknown("format", form, list(FORMATS))
    if form == "json":
        rows = ",\n".join(score.to_json() for score in scores)
        return f"[\n{rows}\n]\n" if scores else "[]\n"
    if form == "csv":
        return table_csv(scores)
    if form == "latex":
        from genprobe.render.latex import latex

        return latex(scores)
    if not scores:
        return "no scores\n"
    parts = parts_of(scores)
    lines = [line for part in parts for line in _table(part, width)]
    columns = [column for part in parts for column in grid(part)[1]]
    return "\n".join([*lines, *notes_below(scores, columns)]) + "\n"


def parts_of(scores: Sequence[Score]) -> list[list[Score]]:
    """Scores of other cells than the rest, such as pairs of readings, are tables of their own."""
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        parts.setdefault(tuple(score.by), []).append(score)
    return list(parts.values())


def model_names(specs: Iterable[Spec]) -> dict[tuple[str, str], str]:
    """Names to show of what was asked (`Spec.who`), no two alike: the last part of a path or hub
    id, of two where several share it, with what the revision is called, or, where there are several
    of one model, its beginning."""
    called: dict[tuple[str, str], str] = {}
    for spec in specs:
        called[spec.who] = called.get(spec.who) or spec.checkpoint
    who = list(called)
    ends = {depth: {m: short_name(m, depth) for m, _ in who} for depth in (1, 2)}
    found: dict[tuple[str, str], str] = {}
    for model, revision in who:
        alone = list(ends[1].values()).count(ends[1][model]) == 1
        name = ends[1 if alone else 2][model]
        if called[model, revision]:
            name += f"@{short_name(called[model, revision], 9)}"
        elif sum(m == model for m, _ in who) > 1:
            name += f"@{clean(revision)[:12]}"
        # Two may still end alike, or in what is not shown.
        names = itertools.chain([name], (f"{name} {at}" for at in itertools.count(2)))
        found[model, revision] = next(n for n in names if n not in found.values())
    return found


def _percent(value: float, sign: bool = False) -> str:
    text = f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "−")


def number(value: float, metric: str) -> str:
    """Write a value on the scale of its measure: a share in %, a coefficient, a count, …"""
    scale = metrics.shown(metric).scale
    if scale == "coefficient":
        return f"{value:z.2f}".replace("-", "−")
    if scale == "p":
        return f"{value:.3f}" if value >= 0.001 else "<0.001"
    if scale == "count":
        return f"{value:.0f}"
    if scale == "number":
        return f"{value:#.3g}".rstrip(".").replace("-", "−")
    return _percent(value, scale == "points")


def value_text(score: Score | None) -> str:
    if score is None:
        return ""
    return NOTHING if score.value is None else number(score.value, score.metric)


def interval_text(score: Score | None) -> str:
    if score is None or score.low is None or score.high is None:
        return ""
    return f"[{number(score.low, score.metric)}, {number(score.high, score.metric)}]"


def bounds_text(score: Score | None, to: str = " to ") -> str:
    if score is None:
        return ""
    return to.join(map(_percent, score.bounds)) if score.bounds else NOTHING


def readers_text(score: Score | None) -> str:
    """The band: the lowest and highest figure that a reader makes."""
    if score is None or score.readings is None:
        return ""
    return NOTHING.join(map(_percent, score.band)) if score.band else NOTHING


# --- what tables share: which cells, which columns

Cell = tuple[tuple[str, JSON], ...]


@dataclass
class Column:
    """A column of figures: of one metric, or of some that never share a cell."""

    names: list[str]
    scores: dict[Cell, Score]

    @property
    def title(self) -> str:
        return " / ".join(self.names)

    @property
    def bounded(self) -> bool:
        return any(s.bounds for s in self.scores.values())

    @property
    def banded(self) -> bool:
        return any(s.readings for s in self.scores.values())

    def same_n(self, other: Column | None) -> bool:
        if other is None or other.scores.keys() != self.scores.keys():
            return False
        return all(other.scores[cell].n == s.n for cell, s in self.scores.items())


def grid(scores: Sequence[Score]) -> tuple[list[Cell], list[Column]]:
    """The cells, and the columns of figures, both in their first order.

    `recognised` and `endorsed` belong to different probes: split by probe, they share a column.
    """
    cells = list(dict.fromkeys(_cell(s) for s in scores))
    columns: dict[str, Column] = {}
    for score in scores:
        column = columns.setdefault(score.metric, Column([score.metric], {}))
        column.scores[_cell(score)] = score
    merged: list[Column] = []
    for column in columns.values():
        last = merged[-1] if merged else None
        if (
            last
            and column.bounded
            and last.bounded
            and not last.scores.keys() & column.scores.keys()
        ):
            last.names += column.names
            last.scores |= column.scores
        else:
            merged.append(column)
    return cells, merged


def _names(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells for name, _ in cell))


def _cell(score: Score) -> Cell:
    return tuple(score.by.items())


# --- table


def _table(scores: Sequence[Score], width: int) -> list[str]:
    """The lines of one table, a blank one last; a block leaves out the cells it has nothing of."""
    cells, columns = grid(scores)
    names = _names(cells)
    # What is the same in all rows is said once, above.
    labels = [dict(cell) for cell in cells]
    fixed = [n for n in names if len({c.get(n) for c in labels}) == 1]
    head = [f"{clean(n)} {label(labels[0].get(n))}" for n in fixed]
    lines = [" · ".join(head), ""] if head else []
    stub = [
        _strip([shorten(clean(n)), *(shorten(label(c.get(n))) for c in labels)], right=False)
        for n in names
        if n not in fixed
    ]
    for block in _blocks(cells, columns, width + len(_GAP) - _taken(stub)):
        rows = zip(
            zip(*stub, strict=True) if stub else [()] * len(block[0]),
            zip(*block, strict=True),
            strict=True,
        )
        full = [[*label, *figures] for label, figures in rows if any(map(str.strip, figures))]
        lines += [_GAP.join(row).rstrip() for row in full] + [""]
    return lines


def _strip(cells: Sequence[str], right: bool) -> list[str]:
    """A column of a table: its cells, the title first, all padded to the widest."""
    width = max(map(wide, cells))
    return [pad(cell, width, right) for cell in cells]


def _blocks(cells: list[Cell], columns: list[Column], room: int) -> list[list[list[str]]]:
    """Figures as strips, in blocks that fit the room; each begins with the n of what follows."""
    blocks: list[list[list[str]]] = []
    left, last = 0, None
    for column in columns:
        figures = _figures(column, cells)
        count = _strip(
            [
                metrics.shown(column.names[0]).unit,
                *(str(column.scores[c].n) if c in column.scores else "" for c in cells),
            ],
            right=True,
        )
        new = [] if column.same_n(last) else [count]
        need = _taken([*new, *figures])
        if not blocks or need > left:
            blocks.append([])
            left, new = room, [count]
            need = _taken([*new, *figures])
        blocks[-1] += [*new, *figures]
        left -= need
        last = column
    return blocks


def _taken(strips: Iterable[list[str]]) -> int:
    return sum(wide(strip[0]) + len(_GAP) for strip in strips)


def _figures(column: Column, cells: list[Cell]) -> list[list[str]]:
    """The strips of a column: the figures and, where it has them, its bounds."""
    scores = [column.scores.get(cell) for cell in cells]
    values = _strip([value_text(s) for s in scores], right=True)
    intervals = _strip([interval_text(s) for s in scores], right=False)
    texts = [f"{v} {i}" for v, i in zip(values, intervals, strict=True)]
    if len(column.names) > 1:
        words = _strip([s.metric if s else "" for s in scores], right=False)
        texts = [f"{w} {t}" for w, t in zip(words, texts, strict=True)]
    title = column.title if len(column.names) == 1 else "measure"
    strips = [_strip([title, *texts], right=False)]
    if column.banded:
        strips.append(_strip(["readers", *(readers_text(s) for s in scores)], right=False))
    if column.bounded:
        strips.append(_strip(["bounds", *(bounds_text(s) for s in scores)], right=False))
    return strips


_ANOTHER = (
    "another: a model taken to vary as this one and to share nothing with it, which one run cannot "
    "tell: it takes fewer where they share something, more where the other varies more."
)


def notes_below(scores: Sequence[Score], columns: Sequence[Column]) -> list[str]:
    """Below a table: how to read it, what was left out, the signature."""
    measures = [metrics.shown(name) for name in dict.fromkeys(s.metric for s in scores)]
    scales = {measure.scale for measure in measures}
    units = ["Shares in %"] if scales & {"share", "points"} else []
    units += ["gaps in points"] if "points" in scales else []
    notes = [
        f"{', '.join([*units, 'with 95 % intervals'])}; – where there was nothing to count."
        if units
        else "With 95 % intervals; – where there was nothing to count."
    ]
    notes += [
        f"{m.name}: {m.title}."
        for m in measures
        if m.scale == "number" and isinstance(m, metrics.Metric)
    ]
    if any(column.bounded for column in columns):
        notes.append("Bounds: the share if no unclear reply had said so, and if every one had.")
    notes += _band_notes(scores)
    notes += [measure.note for measure in measures if measure.note]
    if any(score.by.get("b") == "another" for score in scores):
        notes.append(_ANOTHER)
    notes += [f"Left out of {what}: {why}." for what, why in _left_out(scores)]
    notes += [f"Signature of {what}: {text}" for what, text in signatures_of(scores)]
    return notes


# Readings that are no readers of the same replies.
_OTHERWISE = ("choice", "logprob")


def _band_notes(scores: Sequence[Score]) -> list[str]:
    """What the bands of a table are, and which readings have no figure in some cells."""
    banded = [score for score in scores if score.readings]
    names = list(dict.fromkeys(name for score in banded for name in score.readings or {}))
    if not names:
        return []
    same = ", ".join(name for name in names if name not in _OTHERWISE)
    asked = ", ".join(name for name in names if name in _OTHERWISE)
    of = [f"of the same replies ({same})"] if same else []
    of += [f"of the same questions asked otherwise ({asked})"] if asked else []
    notes = [
        f"Readers: the lowest and the highest of the readings {' and '.join(of)}. This is what the "
        "choice of a reading alone makes: it is no confidence interval."
    ]
    empty = Counter(n for s in banded for n, value in (s.readings or {}).items() if value is None)
    if empty:
        lacking = ", ".join(f"{name} {count}" for name, count in empty.items())
        notes.append(f"Figures without a clear answer to count, left out of the band: {lacking}.")
    return notes


def _left_out(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """What all cells of a metric left out; metrics that left out the same are named together.

    A difference `of` several measures, and a corrected `rate` of several, are counted apart; so
    are the labels of a `judge`, which may have the name of a measure. A cell `all` is the others
    once more.
    """
    told: dict[str, list[str]] = {}
    for metric in dict.fromkeys(s.metric for s in scores):
        parts: dict[str, list[Score]] = {}
        cells = [score for score in scores if score.metric == metric]
        for score in [score for score in cells if "all" not in score.by.values()] or cells:
            about = next((score.by[k] for k in ("of", "rate", "judge") if k in score.by), "")
            parts.setdefault(str(about), []).append(score)
        reasons = {about: why for about, part in parts.items() if (why := _why(part))}
        same = len(reasons) == len(parts) and len(set(reasons.values())) == 1
        for about, why in reasons.items():
            alone = same or len(parts) == 1 or not about
            name = metric if alone else f"{metric} ({clean(about)})"
            if name not in (names := told.setdefault(why, [])):
                names.append(name)
    return [(", ".join(n) + (" (each)" if len(n) > 1 else ""), why) for why, n in told.items()]


def _why(scores: Sequence[Score]) -> str:
    """What some cells of one metric left out, and of how many; empty for nothing."""
    total: Counter[str] = Counter()
    for score in scores:
        total.update(score.excluded)
    if not total:
        return ""
    order = sorted(total.items(), key=metrics.rank)
    why = ", ".join(f"{count} {clean(reason)}" for reason, count in order)
    return f"{why}, of {sum(s.n for s in scores) + total.total()} planned"


def signatures_of(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Each signature once, with what it covers.

    Signatures that differ in one field only are written as one, that field as `{a,b}`; where
    they differ in the metric and in more, there is one for each of the rest, such as a model.
    """
    covers: dict[str, list[str]] = {}
    for score in scores:
        names = covers.setdefault(clean(score.signature), [])
        if score.metric not in names:
            names.append(score.metric)
    if whole := _as_one(list(covers)):
        return [("all figures", whole)]
    alike: dict[tuple[str, ...], list[str]] = {}
    for text in covers:
        rest = tuple(field for field in text.split("|") if not field.startswith("metric:"))
        alike.setdefault(rest, []).append(text)
    found = [one for texts in alike.values() if (one := _as_one(texts))]
    covered = [[name for text in texts for name in covers[text]] for texts in alike.values()]
    if len(found) < len(alike) or any(names != covered[0] for names in covered):
        return [(", ".join(names), text) for text, names in covers.items()]
    # Named by the field that tells the most of them apart, the first of several.
    told = sorted(zip(*alike, strict=False), key=lambda row: -len(set(row)))
    named = next((row for row in told if len(set(row)) > 1), None)
    if named is None:
        return [("all figures", text) for text in found]
    return [
        (f"all figures, {field.replace(':', ' ', 1)}", text)
        for field, text in zip(named, found, strict=True)
    ]


def _as_one(texts: Sequence[str]) -> str | None:
    """Signatures that differ in one field only as one; None where they differ in more."""
    split = [text.split("|") for text in texts]
    if len({len(fields) for fields in split}) > 1:
        return None
    if len(split) == 1:
        return texts[0]
    differ = [at for at, values in enumerate(zip(*split, strict=True)) if len(set(values)) > 1]
    keys = {fields[differ[0]].partition(":")[0] for fields in split}
    if len(differ) > 1 or len(keys) > 1:
        return None
    values = [fields[differ[0]].partition(":")[2] for fields in split]
    # `{yes,no}/1-wilson95`: what follows the name is often the same, too.
    ends = {value.partition("/")[2] for value in values}
    end = f"/{ends.pop()}" if len(ends) == 1 and ends != {""} else ""
    choice = ",".join(value.removesuffix(end) for value in values)
    one = split[0]
    one[differ[0]] = f"{keys.pop()}:{{{choice}}}{end}"
    return "|".join(one)


# --- HTML, for a notebook

_MOST = 200  # rows of a table that are shown
# A notebook's own rules put every cell on the right, by more specific selectors.
_STYLE = """<style>
.genprobe{overflow-x:auto}
.genprobe table{border-collapse:collapse;margin:.5em 0}
.genprobe caption{text-align:left}
.genprobe td,.genprobe th{text-align:left!important;white-space:nowrap;padding:.1em .5em;
font-variant-numeric:tabular-nums}
.genprobe thead th{border-bottom:1px solid}
.genprobe .number{text-align:right!important}
.genprobe .interval{padding-left:0}
.genprobe p{margin:.2em 0;max-width:60em}
.genprobe code{overflow-wrap:anywhere;white-space:normal}
</style>"""


def html(scores: Sequence[Score]) -> str:
    """The table of a terminal for a notebook: a fragment of HTML, safe whatever names hold."""
    if not scores:
        return "<p>no scores</p>"
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        parts.setdefault(tuple(score.by), []).append(score)
    body = [line for part in parts.values() for line in _html_table(part)]
    columns = [column for part in parts.values() for column in grid(part)[1]]
    notes, signatures = notes_below(scores, columns), signatures_of(scores)
    body += [f"<p>{_text(note)}</p>" for note in notes[: len(notes) - len(signatures)]]
    body += [
        f"<details><summary>Signature of {_text(what)}</summary><code>{_text(text)}</code>"
        "</details>"
        for what, text in signatures
    ]
    return "\n".join([f'<div class="genprobe">{_STYLE}', *body, "</div>"])


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """A small table of names and what they are, for a notebook."""
    rows = (
        f'<tr><th scope="row">{_text(name)}</th><td dir="auto">{_text(shorten(clean(value), 200))}'
        "</td></tr>"
        for name, value in facts.items()
    )
    head = f'<div class="genprobe">{_STYLE}<table><caption>{_text(title)}</caption>'
    return "\n".join([head, *rows, "</table></div>"])


def _html_table(scores: Sequence[Score]) -> list[str]:
    cells, columns = grid(scores)
    labels = [dict(cell) for cell in cells]
    names = _names(cells)
    fixed = [n for n in names if len(cells) > 1 and len({c.get(n) for c in labels}) == 1]
    names = [n for n in names if n not in fixed]
    heads = [f'<th scope="col">{_text(name)}</th>' for name in names]
    rows = [
        [f'<th scope="row" dir="auto">{_text(label(c.get(n)))}</th>' for n in names] for c in labels
    ]
    last: Column | None = None
    for column in columns:
        several = len(column.names) > 1
        if not column.same_n(last):
            heads.append(
                f'<th scope="col" class="number">{metrics.shown(column.names[0]).unit}</th>'
            )
            _put(rows, [_number_cell(str(s.n) if s else "") for s in _of(column, cells)])
        span = 3 if several else 2
        title = "measure" if several else _text(column.title)
        heads.append(f'<th scope="colgroup" colspan="{span}">{title}</th>')
        if several:
            _put(rows, [f"<td>{_text(s.metric) if s else ''}</td>" for s in _of(column, cells)])
        _put(rows, [_number_cell(value_text(s)) for s in _of(column, cells)])
        _put(
            rows,
            [f'<td class="interval">{_text(interval_text(s))}</td>' for s in _of(column, cells)],
        )
        for there, head, show in (
            (column.banded, "readers", readers_text),
            (column.bounded, "bounds", bounds_text),
        ):
            if there:
                heads.append(f'<th scope="col">{head}</th>')
                _put(rows, [f"<td>{_text(show(s))}</td>" for s in _of(column, cells)])
        last = column
    said = " · ".join(f"{_text(n)} <b>{_text(label(labels[0].get(n)))}</b>" for n in fixed)
    more = len(rows) - _MOST
    return [
        "<table>",
        *([f"<caption>{said}</caption>"] if said else []),
        f"<thead><tr>{''.join(heads)}</tr></thead>",
        "<tbody>",
        *(f"<tr>{''.join(row)}</tr>" for row in rows[:_MOST]),
        "</tbody></table>",
        *([f"<p>… and {more} rows more, all in <code>.frame()</code></p>"] if more > 0 else []),
    ]


def _of(column: Column, cells: Sequence[Cell]) -> list[Score | None]:
    return [column.scores.get(cell) for cell in cells]


def _put(rows: list[list[str]], cells: Iterable[str]) -> None:
    for row, cell in zip(rows, cells, strict=True):
        row.append(cell)


def _number_cell(text: str) -> str:
    return f'<td class="number">{_text(text)}</td>'


def _text(text: str) -> str:
    """Any text as HTML shows it."""
    return escape_html(clean(text))


# --- CSV


def table_csv(scores: Sequence[Score], more: Sequence[Mapping[str, JSON]] = ()) -> str:
    """One score a row; numbers in full, null as an empty cell, `excluded` as `reason=count;…`.

    more: further columns of each score, which stand before the signature."""
    extra = list(dict.fromkeys(name for row in more for name in row))
    first = ["metric"]
    last = ["value", "low", "high", "n", "excluded", "bound_low", "bound_high", *extra]
    last += ["signature"]
    by = list(dict.fromkeys(name for score in scores for name in score.by))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    banded = any(score.readings for score in scores)
    if banded:
        last += ["readings", "readers_low", "readers_low_by", "readers_high", "readers_high_by"]
    ours = {*first, *last}
    names = [f"{name}_data" if name in ours else name for name in by]
    writer.writerow([*first, *(escape(clean(name)) for name in names), *last])
    for at, score in enumerate(scores):
        excluded = ";".join(f"{reason}={count}" for reason, count in score.excluded.items())
        cells: list[JSON] = [score.metric, *(score.by.get(name) for name in by)]
        cells += [score.value, score.low, score.high, score.n, excluded]
        cells += [*(score.bounds or ("", "")), *(more[at].get(name) for name in extra)]
        cells.append(score.signature)
        if banded:
            cells += _csv_band(score)
        writer.writerow([escape(clean(c)) if isinstance(c, str) else c for c in cells])
    return file.getvalue()


def _csv_band(score: Score) -> list[JSON]:
    """`reading=figure;…`, then each end of the band and the readings that make it."""
    if score.band is None:
        return [""] * 5
    figures = ((n, "" if v is None else repr(v)) for n, v in (score.readings or {}).items())
    ends = (cell for end in score.band for cell in (end, score.by_reading(end)))
    return [";".join(f"{name}={figure}" for name, figure in figures), *ends]
