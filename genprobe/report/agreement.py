"""Draw the kappa of every pair of annotators (Aqbileq, Appendix F, Figure 10)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from genprobe.errors import InputError
from genprobe.files import disk
from genprobe.records import Score
from genprobe.report.figures import _plot

FORMS = (".svg", ".pdf")


def kappas(scores: Sequence[Score], path: str | Path) -> None:
    """Draw Cohen's kappa of every pair of annotators, one panel per question.

    scores: those of `review.agreement.agreement`. path: a file name that ends in .svg or .pdf. A
    kappa below 0 is drawn in the colour of 0, with its own number. The same scores give the same
    bytes. Raises InputError for another suffix, or if no pair of annotators has a kappa.
    """
    path = Path(path)
    if path.suffix not in FORMS:
        raise InputError(f"{path}: the figure is drawn as {' or '.join(FORMS)}")
    cells: dict[tuple[str, str, str], tuple[float, str]] = {}
    names: dict[str, None] = {}
    for score in scores:
        both = str(score.by.get("reviewers", "")).split(", ")
        if score.metric != "cohen-kappa" or score.by.get("lang", "all") not in ("all", None):
            one_language = len({s.by.get("lang") for s in scores}) == 1
            if score.metric != "cohen-kappa" or not one_language:
                continue
        if len(both) != 2 or score.value is None:
            continue
        names |= dict.fromkeys(both)
        text = f"{score.value:.2f}".replace("0.", ".", 1)
        cells[str(score.by["question"]), max(both), min(both)] = (max(0.0, score.value), text)
    if not cells:
        raise InputError(f"{path}: no kappa to draw; it needs three annotators who share items")
    with _plot.style():
        ordered = sorted(names)
        canvas = _plot.heat(cells, ordered[1:], ordered[:-1], "Cohen's kappa")
        file = io.BytesIO()
        gone = ("Date", "Creator") if path.suffix == ".svg" else ("CreationDate", "Producer")
        canvas.savefig(file, format=path.suffix[1:], metadata={**dict.fromkeys((*gone, "Creator"))})
    disk.replace_bytes(path, [file.getvalue()])
