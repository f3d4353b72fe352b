"""Write scores as wide tables: one for each measure, the values of a column side by side.

The last column of the cells that has several values goes across, such as the language in
`--by model,lang`; the others make the rows. Every figure keeps its interval and n.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape as escape_html

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.limits import parsed
from genprobe.records import JSON, Score
from genprobe.render import formats, grid
from genprobe.render.findings import Finding
from genprobe.render.formats import marked
from genprobe.render.latex import comments, floated, notes_tex, slug, tex
from genprobe.resources import registry
from genprobe.resources.packs import language_name
from genprobe.text.display import clean, label, pad
from genprobe.text.display import wide as taken


@dataclass(frozen=True)
class Wide:
    """One measure by two columns of the cells, or more.

    across: the column whose values (`heads`) stand side by side. names: the columns of the rows.
    rows: (their values, a score or None for each head). fixed: columns with one value.
    """

    metric: str
    across: str
    heads: list[JSON]
    names: list[str]
    rows: list[tuple[tuple[JSON, ...], list[Score | None]]]
    fixed: dict[str, JSON]

    @property
    def scores(self) -> list[Score]:
        return [score for _, row in self.rows for score in row if score]

    @property
    def n(self) -> int | None:
        """Return n if it is the same in all cells."""
        every = {score.n for score in self.scores}
        return every.pop() if len(every) == 1 else None

    @property
    def below(self) -> list[Callable[[Score], str]]:
        """Return what stands below a figure: the interval if any has one, and n if it differs."""
        lines = [grid.interval_text] if any(s.low is not None for s in self.scores) else []
        return [*lines, *([_count] if self.n is None else [])]

    @property
    def caption(self) -> str:
        """Say what the figures are, of what, and by which columns."""
        title, cell = grid.titled(self.metric), self.scores[0].by
        fixed = dict(self.fixed)
        if (of := cell.get("of")) and not {"a", "b"} & {*self.names, self.across}:  # of `compare`
            who = [label(cell.get(side)) for side in ("a", "b")]
            fixed = {n: v for n, v in fixed.items() if n not in ("of", "a", "b")}
            side = who["ab".index(self.metric)] if self.metric in ("a", "b") else None
            title = f"{of} of {side}" if side else f"{of}, {who[1]} less {who[0]}: {title}"
        scale = {"share": ", in %", "points": ", in points"}.get(
            metrics.shown(self.metric).scale, ""
        )
        by = grid.by([n for n in [*self.names, self.across] if n != "of"])
        return clean(
            ", ".join([f"{title}{scale}{by}", *(f"{n} {label(v)}" for n, v in fixed.items())])
        )

    def name(self, score: Score) -> str:
        """Return the key of the cell of a score across."""
        return label(score.by.get(self.across))


def wide(scores: Sequence[Score]) -> list[Wide]:
    """Arrange scores in wide tables. Raises InputError if no column has several values."""
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        of = str(score.by.get("of", ""))  # of `compare`: each measure by itself
        parts.setdefault((score.metric, of, *score.by), []).append(score)
    found = [made for part in parts.values() if (made := _wide(part))]
    if not found:
        raise InputError(
            "--wide sets two columns against each other, and no column of these figures has "
            "several values; name two with --by, such as --by model,lang"
        )
    return found


def _wide(scores: Sequence[Score]) -> Wide | None:
    names = list(scores[0].by)
    values = {name: list(dict.fromkeys(s.by[name] for s in scores)) for name in names}
    several = [name for name in names if len(values[name]) > 1]
    if not several:
        return None
    across = several[-1]
    rows = [n for n in several if n != across] or [n for n in names if n not in (across, "a", "b")][
        :1
    ]
    heads = values[across]
    if across == "lang":
        heads = sorted(heads, key=lambda code: language_name(str(code)))
    cells: dict[tuple[JSON, ...], dict[JSON, Score]] = {}
    for score in scores:
        cells.setdefault(tuple(score.by[n] for n in rows), {})[score.by[across]] = score
    return Wide(
        scores[0].metric,
        across,
        heads,
        rows,
        [(key, [row.get(head) for head in heads]) for key, row in cells.items()],
        {n: values[n][0] for n in names if n not in (across, *rows)},
    )


def _notes(tables: Sequence[Wide]) -> list[str]:
    return grid.notes_below([s for one in tables for s in one.scores], [])  # no bounds are shown


def _counted(table: Wide) -> list[str]:
    return (
        [] if table.n is None else [f"n = {table.n:,} {metrics.shown(table.metric).unit} in each"]
    )


def _count(score: Score) -> str:
    return f"n {score.n:,}"


def render(
    scores: Sequence[Score], form: str, width: int = formats.WIDTH, finding: Finding | None = None
) -> str:
    """Write wide tables in one of `formats.FORMATS`; the arguments are those of `formats.render`.

    Raises InputError for an unknown format, and the errors of `wide`.
    """
    told = finding.lines if finding else []
    if form == "json":
        return json.dumps(data(scores), ensure_ascii=True) + "\n"
    if form == "csv":
        return table_csv(scores)
    if form == "latex":
        return latex(scores, told)
    if form == "markdown":
        return markdown(scores, told)
    if form != "table":
        raise registry.unknown("format of a wide table", form, formats.FORMATS[:-1])
    return text(scores, width, told)


# --- terminal, Markdown, notebook


def text(scores: Sequence[Score], width: int, told: Sequence[str] = ()) -> str:
    """Write wide tables for a terminal of this width: the interval and n stand below a figure."""
    tables = wide(scores)
    lines: list[str] = []
    for one in tables:
        stub = [[clean(name)] for name in one.names]
        columns = [[label(head)] for head in one.heads]
        for key, row in one.rows:
            for cells, value in zip(stub, key, strict=True):
                cells += [label(value), *[""] * len(one.below)]
            for cells, score in zip(columns, row, strict=True):
                cells += [grid.value_text(score), *(f(score) if score else "" for f in one.below)]
        lines += [one.caption, "", *_in_blocks(stub, columns, width)]
        lines += [f"{line}." for line in _counted(one)]
    return "\n".join([*lines, *_notes(tables), *told]) + "\n"


def _in_blocks(stub: list[list[str]], columns: list[list[str]], width: int) -> Iterator[str]:
    """Write columns side by side, each block as wide as fits; every block begins with the stub."""
    first, *rest = ([pad(c, max(map(taken, cells))) for c in cells] for cells in [*stub, *columns])
    left = [first, *rest[: len(stub) - 1]]
    blocks: list[list[list[str]]] = []
    room = 0
    for cells in rest[len(stub) - 1 :]:
        need = taken(cells[0]) + 2
        if not blocks or need > room:
            blocks.append([*left])
            room = width - sum(taken(one[0]) + 2 for one in left) + 2
        blocks[-1].append(cells)
        room -= need
    for block in blocks:
        yield from ("  ".join(row).rstrip() for row in zip(*block, strict=True))
        yield ""


def markdown(scores: Sequence[Score], told: Sequence[str] = ()) -> str:
    """Write wide tables in GitHub's Markdown; any text in names is escaped."""
    tables = wide(scores)
    lines = [f"{marked(clean(line))}.\n".replace("..", ".") for line in told]
    for one in tables:
        heads = [*map(clean, one.names), *map(label, one.heads)]
        lines += [f"**{marked(one.caption)}**", "", f"| {' | '.join(map(marked, heads))} |"]
        lines.append(f"| {' | '.join(['---'] * len(one.names) + ['---:'] * len(one.heads))} |")
        for key, row in one.rows:
            cells = [*map(label, key), *(_in_line(one, score) for score in row)]
            lines.append(f"| {' | '.join(map(marked, cells))} |")
        lines += ["", *(f"{line}.\n" for line in _counted(one))]
    return "\n".join([*lines, *(f"- {marked(note)}" for note in _notes(tables))]) + "\n"


def _in_line(table: Wide, score: Score | None) -> str:
    if score is None:
        return ""
    return " ".join(filter(None, [grid.value_text(score), *(f(score) for f in table.below)]))


def html(scores: Sequence[Score], told: Sequence[str] = ()) -> str:
    """Write wide tables in HTML, for a notebook; any text is escaped."""
    tables = wide(scores)
    body = [line for one in tables for line in _html(one)]
    below = [*(f"{line}." for one in tables for line in _counted(one)), *_notes(tables), *told]
    return formats.boxed([*body, *(f"<p>{_safe(line)}</p>" for line in below)])


def _html(table: Wide) -> Iterator[str]:
    yield f"<table><caption>{_safe(table.caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{_safe(n)}</th>' for n in table.names)
    yield "".join(f'<th scope="col" class="number">{_safe(label(h))}</th>' for h in table.heads)
    yield "</tr></thead><tbody>"
    for key, row in table.rows:
        names = "".join(f'<th scope="row" dir="auto">{_safe(label(value))}</th>' for value in key)
        cells = "".join(f'<td class="number">{_safe(_in_line(table, s))}</td>' for s in row)
        yield f"<tr>{names}{cells}</tr>"
    yield "</tbody></table>"


def _safe(text: str) -> str:
    return escape_html(clean(text))


# --- data


def data(scores: Sequence[Score]) -> list[dict[str, JSON]]:
    """Return wide tables as `-f json` prints them: each figure whole, by the value across."""
    return [
        {
            "metric": one.metric,
            "caption": one.caption,
            "across": one.across,
            "columns": list(one.heads),
            "rows": [
                {
                    **one.fixed,
                    **dict(zip(one.names, key, strict=True)),
                    "figures": {one.name(s): parsed(s.to_json()) for s in row if s},
                }
                for key, row in one.rows
            ],
        }
        for one in wide(scores)
    ]


def table_csv(scores: Sequence[Score]) -> str:
    """Write a row for each row of the wide tables, numbers in full.

    Each value across has columns for the figure, the ends of its interval, n, what was left out,
    the bounds, and the signature.
    """
    tables = wide(scores)
    heads = list(dict.fromkeys((t.across, label(head)) for t in tables for head in t.heads))
    names = list(dict.fromkeys(n for t in tables for n in (*t.fixed, *t.names)))
    parts = list(formats.flat(formats.EMPTY))[1:]
    titles = (h if part == "value" else f"{h} {part}" for _, h in heads for part in parts)
    rows: list[list[JSON]] = [["metric", *names, *titles]]
    for one in tables:
        for key, row in one.rows:
            cell = one.fixed | dict(zip(one.names, key, strict=True))
            by = {(one.across, one.name(s)): formats.flat(s) for s in row if s}
            cells = [one.metric, *(cell.get(name) for name in names)]
            rows.append([*cells, *(by.get(head, {}).get(part) for head in heads for part in parts)])
    return formats.csv_text(rows)


# --- LaTeX


def latex(scores: Sequence[Score], told: Sequence[str] = ()) -> str:
    """Write wide tables for booktabs and siunitx: figures in S columns, intervals below them."""
    tables = wide(scores)
    head = [r"% needs \usepackage{booktabs,siunitx}", *comments(scores)]
    return "\n".join([*head, *(line for one in tables for line in _float(one, told))]) + "\n"


def _float(table: Wide, told: Sequence[str]) -> Iterator[str]:
    name = slug([table.metric, *table.names, table.across])
    stub = "l" * len(table.names)
    kind = "table*" if len(table.heads) > 5 else "table"
    heads = [*map(tex, table.names), *(f"{{{tex(_head(table.across, h))}}}" for h in table.heads)]
    body = []
    for key, row in table.rows:
        body.append(" & ".join([*(tex(label(v)) for v in key), *map(_number, row)]) + r" \\")
        for line in table.below:
            cells = [rf"{{\scriptsize {tex(line(s))}}}" if s else "" for s in row]
            body.append(" & ".join([*[""] * len(key), *cells]) + r" \\")
    notes = [tex(f"{line}.".replace("..", ".")) for line in told]
    notes += [tex(f"{line}.") for line in _counted(table)]
    yield from floated(
        kind,
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{tex(table.caption)}, with 95\,\% intervals.}}\label{{tab:{name}}}",
        f"{stub}*{{{len(table.heads)}}}{{S[{_format(table.scores)}]}}",
        [" & ".join(heads) + r" \\"],
        body,
        [*notes, *notes_tex([dataclasses.replace(s, bounds=None) for s in table.scores])],
    )


def _head(column: str, value: JSON) -> str:
    return language_name(str(value)) if column == "lang" else label(value)


def _number(score: Score | None) -> str:
    """Write a figure for an S column: digits as they are, anything else in braces."""
    plain = grid.value_text(score).replace("−", "-")
    return plain if re.fullmatch(r"[+-]?\d+(\.\d+)?", plain) else f"{{{tex(plain)}}}"


def _format(scores: Sequence[Score]) -> str:
    """Return the format of an S column that is as wide as these figures need."""
    plain = [text for s in scores if re.match(r"[+-]?\d", text := _number(s))]
    whole = max((len(t.lstrip("+-").partition(".")[0]) for t in plain), default=1)
    parts = max((len(t.partition(".")[2]) for t in plain), default=0)
    sign = (
        "+" if any(t[0] == "+" for t in plain) else "-" if any(t[0] == "-" for t in plain) else ""
    )
    more = ", retain-explicit-plus" if sign == "+" else ""
    return f"table-format={sign.replace('+', '-')}{whole}.{parts}{more}"
