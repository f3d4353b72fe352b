"""AfriStereo: p from t, BPR from counts, and its tables from the log of its evaluation.

The study publishes no values of single pairs. Its code printed n, BPR, the mean difference, t and
p for every model and type of stereotype; these figures come with genprobe, so no folder is needed.
n times a BPR must be a whole number of pairs; p follows from t and n - 1 degrees of freedom; the
figures of all pairs follow from those of the types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from genprobe.analysis.reproduce import Cell, File, Folder, Printed, figure

FILES: tuple[File, ...] = ()
_Row = dict[str, str]
_SIGNIFICANT = 0.05


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the cells that follow from the printed tables and the log."""
    log: dict[str, list[_Row]] = {}
    for row in printed.rows("log"):
        log.setdefault(row["model"], []).append(row)
    results = printed.rows("results")
    table = f"{printed.where('results')}, from the log"
    for row in results:
        whole, *types = log[row["model"]]
        yield printed.cell(table, f"{row['model']}: BPR", row["bpr"], _bpr(types))
        yield printed.cell(table, f"{row['model']}: p", row["p"], *_p(whole))
    for row in printed.rows("axes"):
        one = next(r for r in log[row["model"]] if r["type"] == row["type"])
        name = f"{row['model']}: {row['type']}"
        yield printed.cell(printed.where("axes"), name, row["bpr"], _bpr([one]))
    yield from _claims(printed, results, log)
    yield from _totals(printed)
    for model, (whole, *types) in log.items():
        yield from _logged(printed, model, whole, types)


def _bpr(rows: Sequence[_Row]) -> float:
    """Compute the share of pairs from the whole-number counts behind the rows' shares."""
    return sum(_wins(row) for row in rows) / sum(int(row["n"]) for row in rows)


def _wins(row: _Row) -> int:
    return round(float(row["bpr"]) * int(row["n"]))


def _p(row: _Row) -> tuple[float, float]:
    """Compute p of a two-sided t-test (n - 1 degrees of freedom), and its error from rounding t."""
    from scipy.stats import t

    _, value, half = figure(row["t"])
    df = int(row["n"]) - 1
    ends = [2 * float(t.sf(abs(value) + off, df)) for off in (half, -half)]
    return sum(ends) / 2, (ends[1] - ends[0]) / 2


def _claims(
    printed: Printed, results: Sequence[_Row], log: dict[str, list[_Row]]
) -> Iterator[Cell]:
    """Check the text's claims about all models against Table 8."""
    significant = [row for row in results if figure(row["p"])[1] <= _SIGNIFICANT]
    shares = [figure(row["bpr"])[1] for row in significant]
    ours = (
        *(int(log[results[0]["model"]][0]["n"]), len(significant), min(shares), max(shares)),
        max(figure(row["p"])[1] for row in significant),
    )
    for row, value in zip(printed.rows("claims"), ours, strict=True):
        yield printed.cell(printed.where("claims"), row["claim"], row["figure"], value)


def _totals(printed: Printed) -> Iterator[Cell]:
    *axes, total = printed.rows("pairs")
    for column in ("pilot", "synthetic"):
        value = sum(figure(row[column])[1] for row in axes)
        yield printed.cell(printed.where("pairs"), f"total, {column}", total[column], value)


def _logged(printed: Printed, model: str, whole: _Row, types: Sequence[_Row]) -> Iterator[Cell]:
    """Check the log against itself: the types of one model, then all pairs from the types."""
    table = f"the log, {model}"
    for row in types:
        yield printed.cell(table, f"{row['type']}: BPR of {row['n']}", row["bpr"], _bpr([row]))
        if row["t"]:
            yield printed.cell(table, f"{row['type']}: p", row["p"], *_p(row))
    yield printed.cell(table, "all, from types: BPR", whole["bpr"], _bpr(types))
    yield printed.cell(table, "all, from types: mean difference", whole["diff"], *_mean(types))
    yield printed.cell(table, "all, from types: t", whole["t"], *_t(whole, types))
    yield printed.cell(table, "all: p", whole["p"], *_p(whole))


def _mean(types: Sequence[_Row]) -> tuple[float, float]:
    """Compute the mean difference of all pairs, and its error from the rounding of its types."""
    n = [int(row["n"]) for row in types]
    values = [figure(row["diff"]) for row in types]
    total = sum(n)
    mean = sum(k * value for k, (_, value, _) in zip(n, values, strict=True)) / total
    return mean, sum(k * half for k, (_, _, half) in zip(n, values, strict=True)) / total


def _t(whole: _Row, types: Sequence[_Row]) -> tuple[float, float]:
    """Compute t of all pairs from n, mean and t of the types, whose sums of squares add up."""
    _, mean, off = figure(whole["diff"])
    n = int(whole["n"])
    ends = []
    for side in (1, -1):  # assume the rounding errors that make t largest, then smallest
        squares = 0.0
        for row in types:
            k, (_, diff, half) = int(row["n"]), figure(row["diff"])
            between = max(abs(diff - mean) - side * (half + off), 0.0)
            squares += k * between**2
            if row["t"]:
                _, t, step = figure(row["t"])
                deviation = max(abs(diff) - side * half, 0.0) / (abs(t) + side * step)
                squares += (k - 1) * k * deviation**2
        spread = math.sqrt(squares / (n - 1))
        ends.append((mean + side * math.copysign(off, mean)) * math.sqrt(n) / spread)
    return sum(ends) / 2, abs(ends[0] - ends[1]) / 2
