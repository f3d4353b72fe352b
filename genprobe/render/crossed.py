"""Print the correlations of every two measures as a matrix: traits by methods.

Each measure has a row and a column, and the lower half is filled. A matrix that is wider than the
terminal is printed in blocks of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from genprobe.records import Score
from genprobe.render.formats import WIDTH
from genprobe.render.grid import interval_text, notes_below, value_text
from genprobe.text.display import clean, label, pad, shorten, wide

# How the three kinds of pairs are marked, and what to expect of each.
_MARKS = {
    "same thing, other method": ("*", "should be high: the ways agree"),
    "other thing, same method": ("=", "should be low: if it is high, the way of measuring decides"),
    "other thing, other method": ("", "should be the lowest"),
}
_HEADS = {
    "correlation": "Correlation as measured; in brackets the reliability of a measure",
    "true-correlation": "Correlation corrected for the noise of both",
}
_GAP = "  "
_LEAST = 12  # terminal columns that the name of a measure always keeps


def crossed(scores: Sequence[Score], width: int = WIDTH) -> str:
    """Write the scores of `analysis.matrix` as matrices, ending in a newline.

    scores: `correlation` and `true-correlation`, whose cells have `a`, `b` and `kind`. width:
    columns of the terminal.
    """
    lines: list[str] = []
    models = list(dict.fromkeys(score.by.get("model") for score in scores))
    for model in models:
        mine = [score for score in scores if score.by.get("model") == model]
        names = list(dict.fromkeys(str(score.by["a"]) for score in mine))
        if model is not None:
            lines += [f"model {label(model)}", ""]
        for metric, head in _HEADS.items():
            pairs = {(str(s.by["a"]), str(s.by["b"])): s for s in mine if s.metric == metric}
            if any(score.value is not None for score in pairs.values()):
                lines += [f"{head}:", "", *_matrix(names, pairs, width)]
    kinds = {str(score.by["kind"]) for score in scores}
    lines += [
        f"{mark or 'no mark'}: {kind}; {hope}."
        for kind, (mark, hope) in _MARKS.items()
        if kind in kinds
    ]
    two = [score for score in scores if score.by["kind"] in _MARKS]
    ns = [score.n for score in two if score.value is not None]
    if ns:
        over = f"{min(ns)}" if min(ns) == max(ns) else f"{min(ns)} to {max(ns)}"
        lines.append(f"Each correlation is over {over} units.")
    if any(score.value is None and score.metric == "correlation" for score in two):
        lines.append(
            "There is no figure if too few units have both measures, or if one of them never "
            "varies."
        )
    return "\n".join([*lines, *notes_below(scores, [])]) + "\n"


def _matrix(names: list[str], pairs: dict[tuple[str, str], Score], width: int) -> list[str]:
    """Write one matrix: a line of figures and one of intervals per measure; a blank line last."""
    size = len(names)
    cells = [["", ""] for _ in range(size * size)]
    for at, row in enumerate(names):
        for to, column in enumerate(names[: at + 1]):
            score = pairs.get((column, row))
            if score is not None:
                cells[at * size + to] = _cell(score)
    column_width = max(wide(text) for cell in cells for text in cell)
    column_width = max(column_width, len(str(size)))
    digits = len(str(size))
    room = max(_LEAST, width - column_width - len(_GAP) - digits - 1)
    stub = [f"{at + 1:>{digits}} {shorten(clean(name), room)}" for at, name in enumerate(names)]
    stub_width = max(map(wide, stub))
    fit = max(1, (width - stub_width) // (column_width + len(_GAP)))
    lines = []
    for begin in range(0, size, fit):
        shown = range(begin, min(begin + fit, size))
        head = [pad(str(to + 1), column_width, right=True) for to in shown]
        lines.append(_GAP.join([" " * stub_width, *head]))
        for at in range(begin, size):  # the rows above have no figures in these columns
            for part, name in enumerate((stub[at], "")):
                texts = [cells[at * size + to][part] for to in shown]
                if not part or any(texts):
                    texts = [pad(text, column_width, right=True) for text in texts]
                    lines.append(_GAP.join([pad(name, stub_width), *texts]).rstrip())
        lines.append("")
    return lines


def _cell(score: Score) -> list[str]:
    """Write the two lines of a cell: the figure with the mark of its kind, and the interval."""
    if score.by["kind"] == "itself":
        return [f"({value_text(score)}) " if score.value is not None else "", ""]
    mark = _MARKS[str(score.by["kind"])][0] or " "
    return [
        f"{value_text(score)}{mark}",
        f"{interval_text(score)} " if score.low is not None else "",
    ]
