"""SHADES: the labels of the recorded yes/no replies, and their shares by model, probe, language.

Every label is derived again with the study's own reader (`judge --parser shades2025`); the shares
by genprobe's reader are shown beside. The study shows the shares only as Figures 16 to 21, without
numbers, so our labels are compared with its labels. `published` is the literal answer, before the
study swaps yes and no for its third experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from genprobe.analysis.reproduce import Cell, File, Folder, Printed
from genprobe.errors import InputError
from genprobe.text.display import clean

if TYPE_CHECKING:
    import pandas as pd

REPLIES = File(
    "responses-dev.parquet",
    "https://github.com/bigscience-workshop/ShadesofBias (labels and replies of the generation "
    "experiments, one row a reply)",
    ("model", "probe", "lang", "prompt", "response", "published"),
    also="responses.parquet",
)
FILES = (REPLIES,)
_ANSWERS = ("yes", "no", "ambiguous")


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the labels and their shares, from the recorded replies in the folder."""
    replies = folder.read(REPLIES)
    with folder.at(REPLIES):
        _check(replies)
        replies = replies.assign(
            model=replies["model"].map(clean),  # pandas cannot group by lone surrogates
            theirs=_read(replies, "shades2025"),
            reader=_read(replies, ""),
        )
    same = int((replies["theirs"] == replies["published"]).sum())
    yield printed.cell("all replies", "labels", f"{len(replies):,}", same)
    # Models and probes keep the order of the file; languages are sorted by name.
    for (model, probe), block in replies.groupby(["model", "probe"], sort=False):
        for lang, rows in block.groupby("lang"):
            table = f"{model}, {probe}, % of replies"
            same = int((rows["theirs"] == rows["published"]).sum())
            yield printed.cell(table, f"{lang}: labels", str(len(rows)), same)
            for answer in _ANSWERS:
                share = {c: 100 * float((rows[c] == answer).mean())
                         for c in ("published", "theirs", "reader")}  # fmt: skip
                yield printed.cell(
                    table,
                    f"{lang}: {answer}",
                    f"{share['published']:.1f}",
                    share["theirs"],
                    genprobe=share["reader"],
                )


def _check(replies: pd.DataFrame) -> None:
    """Raise InputError, with the row, for a cell that is empty or not a label."""
    for column in REPLIES.columns:
        labels = column == "published"
        for row, cell in replies[column].items():
            if not isinstance(cell, str) or (labels and cell not in _ANSWERS):
                expected = f"one of {', '.join(_ANSWERS)}" if labels else "text"
                raise InputError(
                    f"row {row}: {column} is {str(cell)[:40]!r} and must be {expected}"
                )


def _read(replies: pd.DataFrame, parser: str) -> list[str]:
    """Read every reply with a reader and return the labels."""
    from genprobe.judges import Item, yesno

    judge = yesno.make(parser)
    columns = (replies[name].tolist() for name in ("lang", "probe", "prompt", "response"))
    return [judge(Item(*cells)).label for cells in zip(*columns, strict=True)]
