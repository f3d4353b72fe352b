"""Write scores as LaTeX tables for booktabs, and escape any text for LaTeX."""

from __future__ import annotations

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from genprobe import metrics
from genprobe.metrics import preference
from genprobe.records import JSON, Score, digest
from genprobe.render.grid import (
    NOTHING,
    Column,
    alike,
    bounds_text,
    by,
    grid,
    interval_text,
    notes_below,
    parts_of,
    readers_text,
    signatures_of,
    titled,
    value_text,
)
from genprobe.text.display import clean, label, shorten

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\char34{}",  # \textquotedbl is not in every font
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    # After `\\` these would begin an argument or a star; two hyphens would become a dash.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
}


# Every LaTeX can print ASCII, and letters that it composes of an ASCII letter and these accents.
# Other scripts need XeTeX or LuaTeX, and a font: pdfTeX prints their code points instead.
_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_LETTERS = frozenset("ßæÆœŒøØłŁı£§¶©·×÷±")
_SHOWN = 12  # code points that pdfTeX prints of a text in another script
_FOOT = (0.5, 0.7, 0.9)  # a table wider than these shares of the page gets a smaller font size
_WIDEST = 128  # characters that fit in a row, in the smallest font size
_LONGEST_FLOAT = 50  # most rows of a float
_NAMED = 4  # most measures that a caption names


def tex(text: str) -> str:
    """Escape any text for LaTeX; where pdfTeX cannot print a script, it prints code points."""
    parts = [(known, "".join(chars)) for known, chars in itertools.groupby(clean(text), _printable)]
    return "".join(_escaped(part) if known else _elsewhere(part) for known, part in parts)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)


def _printable(char: str) -> bool:
    if char.isascii() or char in _LATEX or char in _LETTERS:
        return True
    plain = unicodedata.normalize("NFD", char)
    base, marks = plain[0], plain[1:]
    return base.isascii() and bool(marks) and set(marks) <= _ACCENTS and char < "\u0180"


def _elsewhere(text: str) -> str:
    codes = " ".join(f"U+{ord(char):04X}" for char in text[:_SHOWN])
    more = r"\dots{}" if len(text) > _SHOWN else ""
    return rf"\ifdefined\Umathchar {text}\else {codes}{more}\fi{{}}"


def slug(names: Sequence[str]) -> str:
    """Make a label or file name of names."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")


def short(signature: str) -> str:
    """Shorten a signature to its most important fields and a hash of the whole signature."""
    asked = ("metric", "command", "model", "pack", "data", "decode", "version", "file", "rows")
    fields = [part for part in signature.split("|") if part.partition(":")[0] in asked]
    return "|".join([*fields, f"~{digest(signature, 8)}"])


def latex(
    scores: Sequence[Score],
    title: str = "",
    name: str = "",
    across: Sequence[str] = (),
    marked: bool = False,
    told: Sequence[str] = (),
) -> str:
    """Write scores as LaTeX tables (package booktabs), each a float with a caption and notes.

    title: a phrase for the caption, name: for the `tab:` label; else both say which measures these
    are, and by which columns. across: columns of the cells whose
    values become groups of table columns, if there are several values. marked: mark values nearest
    to and furthest from one half (`_marked`). told: sentences, which become the first notes. Notes
    have short signatures; the whole signatures are in comments.
    """
    if not scores:
        return "% no scores\n"
    return "\n".join(
        _latex(part, title, name and f"{name}{f'-{at}' if at else ''}", across, marked, told)
        for at, part in enumerate(parts_of(scores))
    )


@dataclass
class _Strip:
    """A column of a LaTeX table. group: the heading above it and its neighbours."""

    group: str
    head: str
    align: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(len(re.sub(r"\\[a-z]+\{?|[{}\\$]", "", c)) for c in (self.head, *self.cells)) + 2


def _latex(
    scores: Sequence[Score],
    title: str,
    name: str,
    across: Sequence[str],
    marked: bool,
    told: Sequence[str],
) -> str:
    names = list(scores[0].by)
    several = [n for n in names if len({str(s.by[n]) for s in scores}) > 1]
    heads = [n for n in across if n in several]
    rows = [n for n in several if n not in heads] or [n for n in several if n in heads][-1:]
    heads = [n for n in heads if n not in rows]
    if not rows:
        rows = names[:1]
    fixed = [n for n in names if n not in (*rows, *heads)]
    lines = list(dict.fromkeys(tuple(s.by[n] for n in rows) for s in scores))
    stub = [
        _Strip("", tex(n), "l", [tex(label(line[at])) for line in lines])
        for at, n in enumerate(rows)
    ]
    groups: dict[tuple[JSON, ...], list[Score]] = {}
    for score in scores:
        groups.setdefault(tuple(score.by[n] for n in heads), []).append(score)
    blocks = [
        _strips(part, rows, lines, ", ".join(tex(shorten(label(v), 24)) for v in head), marked)
        for head, part in groups.items()
    ]
    one = {n: label(scores[0].by[n]) for n in fixed}
    about = [f"{tex(n)} {tex(of)}" for n, of in one.items() if not title.endswith(f": {of}")]
    measures = list(dict.fromkeys(s.metric for s in scores))
    if not title:
        more = f" and {len(measures) - _NAMED} more" if len(measures) > _NAMED else ""
        title = ", ".join(measures[:_NAMED]) + more if measures[1:] else titled(measures[0])
        title += f"{by([*rows, *heads])}, with 95 % intervals"
    name = name or slug([*measures[:_NAMED], *rows, *heads])
    caption = ", ".join([tex(title), *about]) + "."
    floats: list[str] = []
    for shown in _floats(stub, blocks):
        for at in range(0, len(lines), _LONGEST_FLOAT):
            part = slice(at, at + _LONGEST_FLOAT)
            first = not floats
            floats.append(
                _float(
                    [_Strip(s.group, s.head, s.align, s.cells[part]) for s in shown],
                    caption if first else caption[:-1] + " (continued).",
                    rf"\label{{tab:{name}}}" if first else "",
                    [
                        *(tex(f"{line}.".replace("..", ".")) for line in told),
                        *notes_tex(scores, marked),
                    ],
                )
            )
    return "\n".join([r"% needs \usepackage{booktabs}", *comments(scores), *floats]) + "\n"


def comments(scores: Sequence[Score]) -> list[str]:
    """Write the whole signatures of a table as comments, with the short ones of its notes."""
    whole = dict.fromkeys(clean(score.signature) for score in scores)
    return [f"% {short(text)} is {text}" for text in whole]


def _strips(
    scores: Sequence[Score],
    rows: Sequence[str],
    lines: Sequence[tuple[JSON, ...]],
    group: str,
    marked: bool,
) -> list[_Strip]:
    """Make the columns of one group: values, bands and bounds, and n wherever it changes."""
    plain = [dataclasses.replace(s, by={n: s.by[n] for n in rows}) for s in scores]
    cells = [tuple(zip(rows, line, strict=True)) for line in lines]
    strips = []
    last: Column | None = None
    for column in grid(plain)[1]:
        found = [column.scores.get(cell) for cell in cells]
        if not column.same_n(last):
            unit = tex(metrics.shown(column.names[0]).unit)
            strips.append(_Strip(group, unit, "r", [str(s.n) if s else "" for s in found]))
        texts = [tex(f"{value_text(s)} {interval_text(s)}".strip()) for s in found]
        if marked and column.names[0] in preference.HALVES:
            texts = _marked(texts, [s.value if s else None for s in found])
        title = column.title
        if len(column.names) > 1:  # as in a terminal, each cell names its measure
            title = "measure"
            texts = [
                f"{tex(s.metric)} {text}" if s else text
                for s, text in zip(found, texts, strict=True)
            ]
        strips.append(_Strip(group, tex(title), "l", texts))
        if column.banded:
            strips.append(_Strip(group, "readers", "l", [tex(readers_text(s)) for s in found]))
        if column.bounded:
            strips.append(
                _Strip(group, "bounds", "l", [tex(bounds_text(s, NOTHING)) for s in found])
            )
        last = column
    return strips


def _marked(texts: Sequence[str], values: Sequence[float | None]) -> list[str]:
    """Set the value nearest to one half in bold, and the furthest from it underlined.

    So print RuBia (Table 1) and Aqbileq (Tables 2 and 3, bold only). The values of one column are
    compared, rounded as they are printed, so that values that look the same are marked alike.
    Nothing is marked if all are equally far from one half.
    """
    far = [None if value is None else round(abs(value - 0.5), 3) for value in values]
    known = {distance for distance in far if distance is not None}
    if len(known) < 2:
        return list(texts)
    ways = {min(known): r"\textbf{%s}", max(known): r"\underline{%s}"}
    return [
        text if distance is None else ways.get(distance, "%s") % text
        for text, distance in zip(texts, far, strict=True)
    ]


def _floats(stub: list[_Strip], blocks: list[list[_Strip]]) -> list[list[_Strip]]:
    """Divide the columns into floats: as many whole groups as fit side by side, at least one.

    Each float begins with the columns of `stub`.
    """
    left = sum(strip.width for strip in stub)
    found: list[list[_Strip]] = []
    used = _WIDEST
    for block in blocks:
        need = sum(strip.width for strip in block)
        if not found or used + need > _WIDEST:
            found.append([*stub])
            used = left
        found[-1] += block
        used += need
    return found


def _float(strips: Sequence[_Strip], caption: str, label: str, notes: Sequence[str]) -> str:
    share = sum(strip.width for strip in strips) / _WIDEST
    size = (r"\normalsize", r"\small", r"\footnotesize", r"\scriptsize")[
        sum(share > limit for limit in _FOOT)
    ]
    kind = "table*" if share > 0.45 else "table"
    head = [" & ".join(strip.head for strip in strips) + r" \\"]
    runs = [(group, len(list(run))) for group, run in itertools.groupby(s.group for s in strips)]
    if any(group for group, _ in runs):
        spans, rules, at = [], [], 1
        for group, n in runs:
            spans.append(rf"\multicolumn{{{n}}}{{c}}{{{group}}}" if group else " & " * (n - 1))
            rules += [rf"\cmidrule(lr){{{at}-{at + n - 1}}}"] if group else []
            at += n
        head = [" & ".join(spans) + r" \\", "".join(rules), *head]
    body = zip(*(strip.cells for strip in strips), strict=True)
    return "\n".join(
        floated(
            kind,
            rf"\centering{size}\setlength{{\tabcolsep}}{{3pt}}",
            rf"\caption{{{caption}}}{label}",
            "".join(strip.align for strip in strips),
            head,
            [" & ".join(row) + r" \\" for row in body],
            notes,
        )
    )


def floated(
    kind: str,
    size: str,
    caption: str,
    columns: str,
    head: Sequence[str],
    body: Sequence[str],
    notes: Sequence[str],
) -> list[str]:
    """Write the lines of a float for booktabs. columns: their alignments. notes: stand below."""
    return [
        rf"\begin{{{kind}}}",
        size,
        caption,
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip",
        r"\begin{minipage}{\linewidth}\scriptsize\raggedright",
        *notes,
        r"\end{minipage}",
        rf"\end{{{kind}}}",
    ]


def notes_tex(scores: Sequence[Score], marked: bool = False) -> list[str]:
    """Write the notes below a table, with the total n of every metric and short signatures."""
    columns = grid(scores)[1]
    totals: dict[int, list[str]] = {}
    every = [(name, column) for column in columns for name in column.names]
    for metric, column in every:  # the metrics that share a column are counted separately
        parts = alike([s for s in column.scores.values() if s.metric == metric])
        title = column.title if len(column.names) == 1 else metric
        for about, part in parts.items():
            name = title + (f" ({about})" if about and len(parts) > 1 else "")
            totals.setdefault(sum(s.n for s in part), []).append(name)
    counted = "; ".join(f"{', '.join(names)}: n = {n}" for n, names in totals.items())
    told = signatures_of(scores)
    notes = [f"{line}.".replace("..", ".") for line in notes_below(scores, columns)]
    if marked and any(score.metric in preference.HALVES for score in scores):
        notes.insert(0, "Bold: nearest to one half (no preference); underlined: furthest from it.")
    signs = [
        rf"Signature of {tex(what)}: \texttt{{{breakable(short(text))}}}." for what, text in told
    ]
    return [*map(tex, notes[: len(notes) - len(told)]), tex(f"In all, {counted}."), *signs]


def breakable(signature: str) -> str:
    """Write a signature as LaTeX that may break the line after each field."""
    return tex(signature).replace(r"\textbar{}", r"\textbar{}\allowbreak{}")
