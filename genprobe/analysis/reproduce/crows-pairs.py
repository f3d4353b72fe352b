"""CrowS-Pairs: its counts, and the scores of three models, from counts and from your own values.

The counts come from the data set. The scores of each model are checked against each other: shares
of n pairs are counts, and the counts of the bias types have to add up to that of all pairs. Where
the folder has the file that the study's script wrote for a model (bert.csv, roberta.csv,
albert.csv: `metric.py --lm_model bert --output_file bert.csv`), every score is derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from genprobe.analysis.reproduce import Cell, File, Folder, Printed

if TYPE_CHECKING:
    import pandas as pd

_WHERE = "https://github.com/nyu-mll/crows-pairs"
PAIRS = File(
    "crows_pairs_anonymized.csv",
    f"{_WHERE} (data)",
    ("stereo_antistereo", "bias_type"),
    also="crows_pairs.csv",
)
_VALUES = ("sent_more_score", "sent_less_score")
_MODELS = ("bert", "roberta", "albert")
SCORES = {
    model: File(
        f"{model}.csv",
        f"{_WHERE} (written by its metric.py)",
        (*_VALUES, "stereo_antistereo", "bias_type"),
        optional=True,
    )
    for model in _MODELS
}
FILES = (PAIRS, *SCORES.values())
_DIRECTIONS = ("stereo", "antistereo")


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the counts of the data set, and the scores of the models."""
    pairs = folder.read(PAIRS)
    rows = {row["part"]: row for row in printed.rows("scores")}
    for part, row in rows.items():
        n = int(_of(pairs, part).sum())
        yield printed.cell("pairs", f"{part}: n", row["n"], n)
        if row["%"]:
            yield printed.cell("pairs", f"{part}: %", row["%"], 100 * n / len(pairs))
    for model in _MODELS:
        yield from _sums(printed, rows, model)
    for model, file in SCORES.items():
        values = folder.read(file)
        if len(values):
            with folder.at(file, " and ".join(_VALUES) + " as pro and anti"):
                yield from _scores(printed, rows, model, values)


def _of(pairs: pd.DataFrame, part: str) -> pd.Series:
    """Select the pairs that a line of the table is about."""
    if part == "all":
        return pairs["bias_type"].notna()
    return pairs["stereo_antistereo" if part in _DIRECTIONS else "bias_type"] == part


def _sums(printed: Printed, rows: dict[str, dict[str, str]], model: str) -> Iterator[Cell]:
    """Compute the score of all pairs, from those of the bias types and of the two directions."""
    table = f"{model}: the score of all pairs, from its parts, in %"
    n = int(rows["all"]["n"])
    types = [part for part in rows if part not in ("all", *_DIRECTIONS)]
    for name, parts in (("from the bias types", types), ("from the directions", _DIRECTIONS)):
        wins = sum(round(float(rows[part][model]) / 100 * int(rows[part]["n"])) for part in parts)
        yield printed.cell(table, name, rows["all"][model], 100 * wins / n)


def _scores(
    printed: Printed, rows: dict[str, dict[str, str]], model: str, values: pd.DataFrame
) -> Iterator[Cell]:
    """Compute every score of a model from the values of its pairs."""
    from genprobe import metrics
    from genprobe.outcomes import table

    # sent_more_score is pro, sent_less_score is anti.
    frame = table.from_rows(values.rename(columns=dict(zip(_VALUES, ("pro", "anti"), strict=True))))
    found = {"all": metrics.score(frame, ["crows-pairs"], [], str)}
    found["type"] = metrics.score(frame, ["crows-pairs"], ["bias_type"], str)
    found["direction"] = metrics.score(frame, ["crows-pairs-direction"], [], str)
    shares = {"all": found["all"][0].value}
    shares |= {str(s.by["bias_type"]): s.value for s in found["type"]}
    shares |= {str(s.by["stereo_antistereo"]): s.value for s in found["direction"]}
    for part, row in rows.items():
        share = shares.get(part)
        value = None if share is None else 100 * share
        yield printed.cell(f"{model}: scores from {model}.csv, in %", part, row[model], value)
