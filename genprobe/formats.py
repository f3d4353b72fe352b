"""Scores as text: a table for a terminal, CSV, JSON, LaTeX.

Names of models, columns and groups come from files and from strangers. None of them may move a
cursor, run as a formula or end a LaTeX group, so each format cleans and escapes every cell.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from genprobe import metrics, registry
from genprobe.files import escape
from genprobe.records import JSON, Score, digest

FORMATS = ("table", "csv", "json", "latex")
NOTHING = "–"  # where there was nothing to count
WIDTH = 100
_COEFFICIENTS = ("kappa", "alpha", "spearman", "kendall", "point-biserial")
_LONGEST = 40  # columns of a terminal that a name may fill
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
        return latex(scores)
    if not scores:
        return "no scores\n"
    parts = _parts(scores)
    lines = [line for part in parts for line in _table(part, width)]
    columns = [column for part in parts for column in _grid(part)[1]]
    return "\n".join([*lines, *_notes(scores, columns)]) + "\n"


def _parts(scores: Sequence[Score]) -> list[list[Score]]:
    """Scores of other cells than the rest, such as pairs of readings, are tables of their own."""
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        parts.setdefault(tuple(score.by), []).append(score)
    return list(parts.values())


# --- cells

# An escape sequence as a whole (CSI; OSC and its like to their end), then what moves a cursor,
# hides or reorders text: controls, bidi marks, zero-width space and no-break space, tags, halves
# of surrogate pairs. Joiners stay: Persian and the Indic scripts are written with them.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])[^\x07\x1b\x9c]*"
    r"(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?"
)
_SPACES = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """Text from a model or a file that is safe to print, on one line."""
    return _UNSEEN.sub("", _SPACES.sub(" ", _SEQUENCE.sub("", text)))


def wide(text: str) -> int:
    """Columns that a text takes in a terminal: two for East Asian wide ones, none for marks."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - wide(text))
    return space + text if right else text + space


def shorten(text: str, width: int = _LONGEST) -> str:
    """A text of at most `width` columns, its end cut off with an ellipsis."""
    if wide(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += _columns(char)
        if used > width:
            break
        kept += char
    return kept + "…"


def _label(value: JSON) -> str:
    """A value of a `by` column in words."""
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def _percent(value: float, sign: bool = False) -> str:
    text = f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _number(value: float, metric: str) -> str:
    """A value as its metric is read: a share in %, a coefficient, or a count."""
    if metric.endswith(_COEFFICIENTS):
        return f"{value:z.2f}".replace("-", "−")
    if metric.endswith("-p"):
        return f"{value:.3f}" if value >= 0.001 else "<0.001"
    known = metrics.catalogue().get(metric)
    if known is not None and known.plain:
        return f"{value:#.3g}".rstrip(".").replace("-", "−")
    if known is not None and known.limits[1] > 1:
        return f"{value:.0f}"
    return _percent(value, _signed(metric))


def _value(score: Score | None) -> str:
    if score is None:
        return ""
    return NOTHING if score.value is None else _number(score.value, score.metric)


def _interval(score: Score | None) -> str:
    if score is None or score.low is None or score.high is None:
        return ""
    return f"[{_number(score.low, score.metric)}, {_number(score.high, score.metric)}]"


def _bounds(score: Score | None, to: str = " to ") -> str:
    if score is None:
        return ""
    return to.join(map(_percent, score.bounds)) if score.bounds else NOTHING


def _signed(metric: str) -> bool:
    if metric == "difference":
        return True
    known = metrics.catalogue().get(metric)
    return known is not None and known.limits[0] < 0 and not known.plain


def _unit(metric: str) -> str:
    known = metrics.catalogue().get(metric)
    return known.unit if known else "n"


# --- what table and LaTeX share: which cells, which columns

Cell = tuple[tuple[str, JSON], ...]


@dataclass
class _Column:
    """A column of figures: of one metric, or of some that never share a cell."""

    names: list[str]
    scores: dict[Cell, Score]

    @property
    def title(self) -> str:
        return " / ".join(self.names)

    @property
    def bounded(self) -> bool:
        return any(s.bounds for s in self.scores.values())

    def same_n(self, other: _Column | None) -> bool:
        if other is None or other.scores.keys() != self.scores.keys():
            return False
        return all(other.scores[cell].n == s.n for cell, s in self.scores.items())


def _grid(scores: Sequence[Score]) -> tuple[list[Cell], list[_Column]]:
    """The cells, and the columns of figures, both in their first order.

    `recognised` and `endorsed` belong to different probes: split by probe, they share a column.
    """
    cells = list(dict.fromkeys(_cell(s) for s in scores))
    columns: dict[str, _Column] = {}
    for score in scores:
        column = columns.setdefault(score.metric, _Column([score.metric], {}))
        column.scores[_cell(score)] = score
    merged: list[_Column] = []
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
    cells, columns = _grid(scores)
    names = _names(cells)
    # What is the same in all rows is said once, above.
    labels = [dict(cell) for cell in cells]
    fixed = [n for n in names if len({c.get(n) for c in labels}) == 1]
    head = [f"{clean(n)} {_label(labels[0].get(n))}" for n in fixed]
    lines = [" · ".join(head), ""] if head else []
    stub = [
        _strip([shorten(clean(n)), *(shorten(_label(c.get(n))) for c in labels)], right=False)
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
    return [_pad(cell, width, right) for cell in cells]


def _blocks(cells: list[Cell], columns: list[_Column], room: int) -> list[list[list[str]]]:
    """Figures as strips, in blocks that fit the room; each begins with the n of what follows."""
    blocks: list[list[list[str]]] = []
    left, last = 0, None
    for column in columns:
        figures = _figures(column, cells)
        count = _strip(
            [
                _unit(column.names[0]),
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


def _figures(column: _Column, cells: list[Cell]) -> list[list[str]]:
    """The strips of a column: the figures and, where it has them, its bounds."""
    scores = [column.scores.get(cell) for cell in cells]
    values = _strip([_value(s) for s in scores], right=True)
    intervals = _strip([_interval(s) for s in scores], right=False)
    texts = [f"{v} {i}" for v, i in zip(values, intervals, strict=True)]
    if len(column.names) > 1:
        words = _strip([s.metric if s else "" for s in scores], right=False)
        texts = [f"{w} {t}" for w, t in zip(words, texts, strict=True)]
    title = column.title if len(column.names) == 1 else "measure"
    strips = [_strip([title, *texts], right=False)]
    if column.bounded:
        strips.append(_strip(["bounds", *(_bounds(s) for s in scores)], right=False))
    return strips


# What a heading alone does not say, by the metric that calls for it.
_EXPLAINED = {
    "ppi": "Corrected by the review: ppi is prediction-powered, the one to report; rg corrects for "
    "the judge's error rates alone.",
    "mcnemar-p": "McNemar: the n before it is of those that are a hit for one of the two alone.",
}


def _notes(scores: Sequence[Score], columns: Sequence[_Column]) -> list[str]:
    """Below a table: how to read it, what was left out, the signature."""
    notes = ["Shares in %, with 95 % intervals; – where there was nothing to count."]
    if any(_signed(s.metric) for s in scores):
        notes[0] = notes[0].replace("Shares in %", "Shares in %, gaps in points")
    for name in dict.fromkeys(s.metric for s in scores):
        known = metrics.catalogue().get(name)
        if known is not None and known.plain:
            notes.append(f"{name}: {known.title}.")
    if any(column.bounded for column in columns):
        notes.append("Bounds: the share if no unclear reply had said so, and if every one had.")
    told = {score.metric for score in scores}
    notes += [line for metric, line in _EXPLAINED.items() if metric in told]
    notes += [f"Left out of {what}: {why}." for what, why in _left_out(scores)]
    notes += [f"Signature of {what}: {text}" for what, text in _signatures(scores)]
    return notes


def _left_out(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """What all cells of a metric left out; metrics that left out the same are named together.

    A difference `of` several measures, and a corrected `rate` of several, are counted apart; so
    are the labels of a `judge`, which may have the name of a measure.
    """
    told: dict[str, list[str]] = {}
    for metric in dict.fromkeys(s.metric for s in scores):
        parts: dict[str, list[Score]] = {}
        for score in scores:
            if score.metric == metric:
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


def _signatures(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Each signature once, with the metrics that it covers.

    Signatures that differ in one field only are written as one, that field as `{a,b}`.
    """
    covers: dict[str, list[str]] = {}
    for score in scores:
        names = covers.setdefault(clean(score.signature), [])
        if score.metric not in names:
            names.append(score.metric)
    split = [text.split("|") for text in covers]
    if len(split) > 1 and len({len(fields) for fields in split}) == 1:
        differ = [at for at, values in enumerate(zip(*split, strict=True)) if len(set(values)) > 1]
        keys = {fields[differ[0]].partition(":")[0] for fields in split}
        if len(differ) == 1 and len(keys) == 1:
            values = [fields[differ[0]].partition(":")[2] for fields in split]
            # `{yes,no}/1-wilson95`: what follows the name is often the same, too.
            ends = {value.partition("/")[2] for value in values}
            end = f"/{ends.pop()}" if len(ends) == 1 and ends != {""} else ""
            choice = ",".join(value.removesuffix(end) for value in values)
            one = split[0]
            one[differ[0]] = f"{keys.pop()}:{{{choice}}}{end}"
            return [("all figures", "|".join(one))]
    if len(covers) == 1:
        return [("all figures", next(iter(covers)))]
    return [(", ".join(names), text) for text, names in covers.items()]


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
    ours = {*first, *last}
    names = [f"{name}_data" if name in ours else name for name in by]
    writer.writerow([*first, *(escape(clean(name)) for name in names), *last])
    for at, score in enumerate(scores):
        excluded = ";".join(f"{reason}={count}" for reason, count in score.excluded.items())
        cells: list[JSON] = [score.metric, *(score.by.get(name) for name in by)]
        cells += [score.value, score.low, score.high, score.n, excluded]
        cells += [*(score.bounds or ("", "")), *(more[at].get(name) for name in extra)]
        cells.append(score.signature)
        writer.writerow([escape(clean(c)) if isinstance(c, str) else c for c in cells])
    return file.getvalue()


# --- LaTeX

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


# What every LaTeX can print: ASCII, and what it composes of a letter and an accent. It takes XeTeX
# or LuaTeX, and a font, for what is in another script: elsewhere its code points are printed.
_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_LETTERS = frozenset("ßæÆœŒøØłŁı£§¶©·×÷±")
_SHOWN = 12  # code points
_FOOT = (0.5, 0.7, 0.9)  # of the width of a page, from which on a smaller size is taken
_WIDEST = 128  # characters of a row, in the smallest size
_LONGEST_FLOAT = 50  # rows


def tex(text: str) -> str:
    """Any text as LaTeX prints it, pdfTeX without other scripts too."""
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


def short(signature: str) -> str:
    """A signature by the fields that a reader asks for, and a hash of all of them."""
    asked = ("metric", "command", "model", "pack", "data", "decode", "version", "file")
    fields = [part for part in signature.split("|") if part.partition(":")[0] in asked]
    return "|".join([*fields, f"~{digest(signature, 8)}"])


def latex(
    scores: Sequence[Score], title: str = "", name: str = "", across: Sequence[str] = ()
) -> str:
    """Scores as tables for booktabs, each a float with its caption and notes.

    across: columns of the cells whose values head columns of the table, as far as they differ.
    title, name: of the caption, in a phrase, and of the label. The whole signatures are comments.
    """
    if not scores:
        return "% no scores\n"
    return "\n".join(
        _latex(part, title, name and f"{name}{f'-{at}' if at else ''}", across)
        for at, part in enumerate(_parts(scores))
    )


@dataclass
class _Strip:
    """A column of a LaTeX table. group: what stands above it and its neighbours."""

    group: str
    head: str
    align: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(len(re.sub(r"\\[a-z]+\{?|[{}\\$]", "", c)) for c in (self.head, *self.cells)) + 2


def _latex(scores: Sequence[Score], title: str, name: str, across: Sequence[str]) -> str:
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
        _Strip("", tex(n), "l", [tex(_label(line[at])) for line in lines])
        for at, n in enumerate(rows)
    ]
    groups: dict[tuple[JSON, ...], list[Score]] = {}
    for score in scores:
        groups.setdefault(tuple(score.by[n] for n in heads), []).append(score)
    blocks = [
        _strips(part, rows, lines, ", ".join(tex(shorten(_label(v), 24)) for v in label))
        for label, part in groups.items()
    ]
    about = [f"{tex(n)} {tex(_label(scores[0].by[n]))}" for n in fixed]
    caption = ", ".join([tex(title or "Scores"), *about]) + "."
    floats: list[str] = []
    for shown in _floats(stub, blocks):
        for at in range(0, len(lines), _LONGEST_FLOAT):
            part = slice(at, at + _LONGEST_FLOAT)
            first = not floats
            floats.append(
                _float(
                    [_Strip(s.group, s.head, s.align, s.cells[part]) for s in shown],
                    caption if first else caption[:-1] + " (continued).",
                    rf"\label{{tab:{name}}}" if name and first else "",
                    _notes_tex(scores),
                )
            )
    comments = [
        f"% {short(text)} is {text}" for text in dict.fromkeys(clean(s.signature) for s in scores)
    ]
    return "\n".join([r"% needs \usepackage{booktabs}", *comments, *floats]) + "\n"


def _strips(
    scores: Sequence[Score], rows: Sequence[str], lines: Sequence[tuple[JSON, ...]], group: str
) -> list[_Strip]:
    """The columns of one group: n where it is another than before, values, bounds."""
    plain = [dataclasses.replace(s, by={n: s.by[n] for n in rows}) for s in scores]
    cells = [tuple(zip(rows, line, strict=True)) for line in lines]
    strips = []
    last: _Column | None = None
    for column in _grid(plain)[1]:
        found = [column.scores.get(cell) for cell in cells]
        if not column.same_n(last):
            unit = tex(_unit(column.names[0]))
            strips.append(_Strip(group, unit, "r", [str(s.n) if s else "" for s in found]))
        texts = [tex(f"{_value(s)} {_interval(s)}".strip()) for s in found]
        strips.append(_Strip(group, tex(column.title), "l", texts))
        if column.bounded:
            strips.append(_Strip(group, "bounds", "l", [tex(_bounds(s, NOTHING)) for s in found]))
        last = column
    return strips


def _floats(stub: list[_Strip], blocks: list[list[_Strip]]) -> list[list[_Strip]]:
    """The columns of each float: as many whole groups as its width takes, one at least."""
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
        [
            rf"\begin{{{kind}}}",
            rf"\centering{size}\setlength{{\tabcolsep}}{{3pt}}",
            rf"\caption{{{caption}}}{label}",
            rf"\begin{{tabular}}{{{''.join(strip.align for strip in strips)}}}",
            r"\toprule",
            *head,
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in body),
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            r"\begin{minipage}{\linewidth}\scriptsize\raggedright",
            *notes,
            r"\end{minipage}",
            rf"\end{{{kind}}}",
        ]
    )


def _notes_tex(scores: Sequence[Score]) -> list[str]:
    """The notes below a table, with the n of every metric and signatures in short."""
    columns = _grid(scores)[1]
    totals: dict[int, list[str]] = {}
    for column in columns:
        totals.setdefault(sum(s.n for s in column.scores.values()), []).append(column.title)
    counted = "; ".join(f"{', '.join(names)}: n = {n}" for n, names in totals.items())
    told = _signatures(scores)
    notes = [f"{line}.".replace("..", ".") for line in _notes(scores, columns)]
    signs = [
        rf"Signature of {tex(what)}: \texttt{{{_breakable(short(text))}}}." for what, text in told
    ]
    return [*map(tex, notes[: len(notes) - len(told)]), tex(f"In all, {counted}."), *signs]


def _breakable(signature: str) -> str:
    """A signature as LaTeX that may end a line after each field."""
    return tex(signature).replace(r"\textbar{}", r"\textbar{}\allowbreak{}")
