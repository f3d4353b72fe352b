"""Write reproduced cells as text: a table for a terminal, CSV or JSON."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Sequence
from typing import Any

from genprobe.analysis.reproduce import Cell, Found, digits
from genprobe.files import escape
from genprobe.render.grid import NOTHING
from genprobe.resources import registry
from genprobe.text.display import clean, pad, wide

FORMATS = ("table", "csv", "json")
RULE = (
    "A cell agrees if ours, rounded to the printed digits, is the printed figure (an exact half "
    "either way)."
)
_LONGEST = 200  # characters of a name that are shown
_SLACK = "±: uncertainty from the rounding of the printed figures from which ours is derived."
_WORDS = {"known": "differs {}", "differs": "DIFFERS", "missing": "missing"}


def render(found: Found, form: str) -> str:
    """Write the cells in one of `FORMATS`, ending in a newline; InputError for another format."""
    if form not in FORMATS:
        raise registry.unknown("format", form, list(FORMATS))
    rows = [{name: _safe(value) for name, value in cell.row().items()} for cell in found.cells]
    if form == "json":
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        return "[\n" + ",\n".join(lines) + "\n]\n" if rows else "[]\n"
    if form == "csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            # A printed -2.3 is a number, not a formula.
            writer.writerow(
                escape(value) if isinstance(value, str) and name != "published" else value
                for name, value in ((name, row.get(name)) for name in names)
            )
        return file.getvalue()
    return _table(found)


def _safe(value: Any) -> Any:
    """Make text safe to print: names of models come from the user's file."""
    return clean(value[:_LONGEST]) if isinstance(value, str) else value


def _table(found: Found) -> str:
    lines = [found.title, found.source, *(f"from {clean(str(path))}" for path in found.present)]
    if found.absent:
        names = ", ".join(file.name for file in found.absent)
        lines.append(f"without {names}, which the folder does not have ({found.absent[0].where})")
    reasons = list(dict.fromkeys(cell.why for cell in found.cells if cell.verdict == "known"))
    marks = {why: _mark(at) for at, why in enumerate(reasons)}
    for table, group in itertools.groupby(found.cells, key=lambda cell: cell.table):
        cells = list(group)
        beside = list(dict.fromkeys(name for cell in cells for name in cell.beside))
        head = [_safe(table), "published", "ours", *beside, ""]
        rows = [head, *(_row(cell, beside, marks) for cell in cells)]
        lines += ["", *_aligned(rows)]
    lines += ["", RULE]
    if any(cell.slack for cell in found.cells):
        lines.append(_SLACK)
    lines += [f"{mark}: {why}" for why, mark in marks.items()]
    lines += [f"Not in a cell: {fault}" for fault in found.faults]
    return "\n".join([*lines, found.summary]) + "\n"


def _mark(at: int) -> str:
    return f"({chr(ord('a') + at)})" if at < 26 else f"({at + 1})"


def _row(cell: Cell, beside: Sequence[str], marks: dict[str, str]) -> list[str]:
    ours = _number(cell, cell.ours)
    slack = f"{cell.slack:.{digits(cell.published) + 1}f}"
    if float(slack) and cell.ours is not None:
        ours += f" ±{slack}"
    verdict = _WORDS.get(cell.verdict, cell.verdict).format(marks.get(cell.why, ""))
    others = [_number(cell, cell.beside.get(name)) for name in beside]
    return [f"  {_safe(cell.name)}", cell.published, ours, *others, verdict]


def _number(cell: Cell, value: float | None) -> str:
    """Write a value with one digit more than the printed one; whole numbers without decimals."""
    if value is None:
        return NOTHING
    places = digits(cell.published)
    if not places and value == round(value):
        return f"{value:,.0f}" if "," in cell.published else f"{value:.0f}"
    if 0 < abs(value) < 10.0 ** -(places + 1):
        return f"{value:.0e}"
    return f"{value:.{places + 1}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: the first and the last to the left, figures to the right."""
    widths = [max(map(wide, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    places = [(width, 0 < at < last) for at, width in enumerate(widths)]
    padded = ([pad(cell, *to) for cell, to in zip(row, places, strict=True)] for row in rows)
    return ["  ".join(row).rstrip() for row in padded]
