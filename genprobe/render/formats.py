"""Write scores as a table for a terminal, CSV, JSON, or HTML for a notebook (LaTeX: latex.py).

Names of models, columns and groups come from files of others. They must not move the cursor of a
terminal, run as a formula of a spreadsheet or end a LaTeX group, so each format cleans and escapes
every cell.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html
from typing import TYPE_CHECKING, Any

from genprobe import metrics
from genprobe.files import escape
from genprobe.records import JSON, Score
from genprobe.render.grid import (
    Cell,
    Column,
    bounds_text,
    cell_names,
    grid,
    interval_text,
    notes_below,
    parts_of,
    readers_text,
    signatures_of,
    value_text,
)
from genprobe.resources import registry
from genprobe.text.display import clean, label, pad, shorten, wide

if TYPE_CHECKING:
    from genprobe.render.findings import Finding

FORMATS = ("table", "csv", "json", "markdown", "latex", "latex-marked")
WIDTH = 100
_GAP = "  "


def render(
    scores: Sequence[Score], form: str, width: int = WIDTH, finding: Finding | None = None
) -> str:
    """Write scores in one of `FORMATS`, ending in a newline.

    width: columns of the terminal. finding: what they show; its sentences stand below a table (for
    JSON: `ranked`), and CSV has none. Raises InputError for an unknown format.
    """
    if form not in FORMATS:
        raise registry.unknown("format", form, list(FORMATS))
    told = finding.lines if finding else []
    if form == "json":
        rows = ",\n".join(score.to_json() for score in scores)
        return f"[\n{rows}\n]\n" if scores else "[]\n"
    if form == "csv":
        return table_csv(scores)
    if form in ("latex", "latex-marked"):
        from genprobe.render.latex import latex

        return latex(scores, marked=form == "latex-marked", told=told)
    if not scores:
        return "no scores\n"
    if form == "markdown":
        return markdown(scores, told)
    parts = parts_of(scores)
    lines = [line for part in parts for line in _table(part, width)]
    columns = [column for part in parts for column in grid(part)[1]]
    return "\n".join([*lines, *notes_below(scores, columns), *told]) + "\n"


def ranked(
    scores: Sequence[Score],
    rankings: Sequence[Mapping[str, Any]],
    finding: Finding | None = None,
) -> str:
    """Write compared scores, what they show and the rankings of the models as one JSON object.

    finding: the sentences (`findings.Finding.json`), or null. rankings: the ranking of every cell;
    if there is only one, its keys also stand at the top level of the object.
    """
    only: dict[str, Any] = {"ranking": None}
    if len(rankings) == 1:
        only = dict(rankings[0])
    rows = ",\n".join(score.to_json() for score in scores)
    said = finding.json if finding else None
    head = json.dumps({**only, "finding": said, "rankings": list(rankings)}, ensure_ascii=True)
    return f'{head[:-1]}, "scores": [\n{rows}\n]}}\n'


def _table(scores: Sequence[Score], width: int) -> list[str]:
    """Write the lines of one table, the last one blank."""
    head, blocks = _cells(scores, width)
    lines = [head, ""] if head else []
    for rows in blocks:
        lines += [_GAP.join(row).rstrip() for row in rows] + [""]
    return lines


def _cells(scores: Sequence[Score], width: int) -> tuple[str, list[list[list[str]]]]:
    """Return a heading with the labels that all rows share, and blocks of rows that fit the width.

    The first row of a block has the titles. Rows without a figure in a block are left out of it.
    """
    cells, columns = grid(scores)
    names = cell_names(cells)
    # Labels that are the same in all rows are written once, above the table.
    labels = [dict(cell) for cell in cells]
    fixed = [n for n in names if len({c.get(n) for c in labels}) == 1]
    head = [f"{clean(n)} {label(labels[0].get(n))}" for n in fixed]
    blocks = []
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
        blocks.append(
            [[*label, *figures] for label, figures in rows if any(map(str.strip, figures))]
        )
    return " · ".join(head), blocks


# --- Markdown, for a pull request, an issue or a model card

_MARKS = re.compile(r"([\\`*_<>|#~]|\](?=[(\[:]))")


def markdown(scores: Sequence[Score], told: Sequence[str] = ()) -> str:
    """Write the same table as for a terminal in GitHub's Markdown; any text in names is escaped.

    told: sentences that stand above it.
    """
    lines = [f"{marked(clean(line))}.\n".replace("..", ".") for line in told]
    for part in parts_of(scores):
        head, blocks = _cells(part, 1 << 20)  # so wide that there is only one block
        lines += [f"**{marked(head)}**", ""] if head else []
        for title, *rows in blocks:
            every = [title, ["---"] * len(title), *rows]
            cells = ([marked(c) if c != "---" else c for c in row] for row in every)
            lines += [f"| {' | '.join(row)} |" for row in cells] + [""]
    columns = [column for part in parts_of(scores) for column in grid(part)[1]]
    notes, signatures = notes_below(scores, columns), signatures_of(scores)
    lines += [f"- {marked(note)}" for note in notes[: len(notes) - len(signatures)]]
    for what, text in signatures:
        lines.append(f"- Signature of {marked(what)}: `{clean(text).replace('`', '?')}`")
    return "\n".join(lines) + "\n"


def marked(text: str) -> str:
    """Escape the characters that Markdown would take for markup."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _strip(cells: Sequence[str], right: bool) -> list[str]:
    """Make a column of a table: its cells, the title first, all padded to the widest."""
    width = max(map(wide, cells))
    return [pad(cell, width, right) for cell in cells]


def _blocks(cells: list[Cell], columns: list[Column], room: int) -> list[list[list[str]]]:
    """Arrange the columns of figures in blocks that are at most `room` wide.

    Each block begins with a column of n. Another follows wherever the n of the figures changes.
    """
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
    """Write a column as text: the figures with intervals, then the band and bounds if it has any.

    Returns one list of equally wide texts for each of these, the title first.
    """
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


# --- HTML, for a notebook

_MOST = 200  # rows of a table that are shown
# `!important`, because a notebook's own, more specific rules align every cell to the right.
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


def html(scores: Sequence[Score], finding: Finding | None = None) -> str:
    """Write the same table as for a terminal in HTML, for a notebook; any text is escaped."""
    if not scores:
        return "<p>no scores</p>"
    parts = parts_of(scores)
    body = [line for part in parts for line in _html_table(part)]
    columns = [column for part in parts for column in grid(part)[1]]
    notes, signatures = notes_below(scores, columns), signatures_of(scores)
    body += [f"<p>{_text(note)}</p>" for note in notes[: len(notes) - len(signatures)]]
    body += [f"<p>{_text(line)}</p>" for line in (finding.lines if finding else ())]
    body += [
        f"<details><summary>Signature of {_text(what)}</summary><code>{_text(text)}</code>"
        "</details>"
        for what, text in signatures
    ]
    return boxed(body)


def boxed(body: Sequence[str]) -> str:
    """Put lines of HTML into a notebook, with the style of its tables."""
    return "\n".join([f'<div class="genprobe">{_STYLE}', *body, "</div>"])


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """Write a small HTML table with a name and a value in each row, for a notebook."""
    rows = (
        f'<tr><th scope="row">{_text(name)}</th><td dir="auto">{_text(shorten(clean(value), 200))}'
        "</td></tr>"
        for name, value in facts.items()
    )
    return boxed([f"<table><caption>{_text(title)}</caption>", *rows, "</table>"])


def _html_table(scores: Sequence[Score]) -> list[str]:
    cells, columns = grid(scores)
    labels = [dict(cell) for cell in cells]
    names = cell_names(cells)
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
    """Escape any text for HTML, and clean it of control characters."""
    return escape_html(clean(text))


# --- CSV


def table_csv(scores: Sequence[Score], more: Sequence[Mapping[str, JSON]] = ()) -> str:
    """Write one score per row: numbers in full, null as an empty cell, `excluded` as `reason=n;…`.

    more: further columns of each score; they stand before the signature."""
    extra = list(dict.fromkeys(name for row in more for name in row))
    by = list(dict.fromkeys(name for score in scores for name in score.by))
    banded = any(score.readings for score in scores)
    own = list(fields(EMPTY, banded))
    at = own.index("signature")
    own[at:at] = extra
    rows: list[list[JSON]] = [
        [*own[:1], *(f"{name}_data" if name in own else name for name in by), *own[1:]]
    ]
    for score, added in zip(scores, more or [{}] * len(scores), strict=True):
        row = flat(score, banded) | dict(added)
        rows.append([score.metric, *(score.by.get(n) for n in by), *(row.get(n) for n in own[1:])])
    return csv_text(rows)


def csv_text(rows: Iterable[Sequence[JSON]]) -> str:
    """Write rows as CSV; no text moves a cursor or is a formula."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(
        [escape(clean(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return file.getvalue()


EMPTY = Score("", {}, None, None, None, 0, {}, None, "")


def fields(score: Score, banded: bool) -> dict[str, Any]:
    """Return what a score has beside its cell, column by column; banded: with that of a band."""
    bounds = score.bounds or (None, None)
    row: dict[str, Any] = {
        "metric": score.metric,
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "n": score.n,
        "excluded": score.excluded,
        "bound_low": bounds[0],
        "bound_high": bounds[1],
        "signature": score.signature,
    }
    if banded:
        row["readings"] = score.readings
        for name, end in zip(("low", "high"), score.band or (None, None), strict=True):
            by = None if end is None else score.by_reading(end)
            row |= {f"readers_{name}": end, f"readers_{name}_by": by}
    return row


def flat(score: Score, banded: bool = False) -> dict[str, Any]:
    """Return `fields` for CSV: `reason=n;…` and, if there is a band, `reading=figure;…`."""
    row = fields(score, banded)
    row["excluded"] = ";".join(f"{reason}={count}" for reason, count in score.excluded.items())
    if banded:
        known = score.readings if score.band and score.readings else {}
        figures = ((name, "" if v is None else repr(v)) for name, v in known.items())
        row["readings"] = ";".join(f"{name}={figure}" for name, figure in figures)
    return row
