"""PBBQ: its printed tables against each other: totals, means over categories and over models.

The study's items and its models' answers are not public at this time, so no folder is needed.
Tables 5 to 10 have a value for each model and category; Table 3 is their mean over the 16
categories (its caption), Table 4 that over the eight models.

Table 2's diversity does not follow the definitions in Appendix C. NGD is defined as a sum over
n = 1 to 4 of distinct over all n-grams (C.3). Longer n-grams are at least as often distinct, so a
sum of 0.75 would mean that at most 19 % of the words are distinct; the printed value is a mean. The
homogenisation score is defined as the sum over all ordered pairs divided by |D| - 1 (C.4), which is
|D| times the mean over pairs; the printed value is the mean. The values by the formulas are shown
beside the averages, with |D| the number of samples in Table 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from genprobe.analysis.reproduce import Cell, File, Folder, Printed, figure

FILES: tuple[File, ...] = ()
_KEYS = tuple(
    f"{condition}-{measure}"
    for condition in ("amb", "dis")
    for measure in ("accuracy", "bias", "uncertainty")
)


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the cells that follow from other printed figures."""
    *counts, total = printed.rows("counts")
    for column in ("templates", "samples"):
        summed = sum(figure(row[column])[1] for row in counts)
        yield printed.cell(printed.where("counts"), f"{column}, sum", total[column], summed)
    samples = sum(figure(row["samples"])[1] for row in counts)
    templates = sum(figure(row["templates"])[1] for row in counts)
    # No table counts the stereotypes: the two counts in the text are compared with each other.
    claims = {row["claim"]: row["figure"] for row in printed.rows("claims")}
    told = figure(claims["stereotypes (3.2, 3.5)"])[1]
    ours = (samples, templates, len(counts), told, told)
    for (claim, said), own in zip(claims.items(), ours, strict=True):
        yield printed.cell(printed.where("claims"), claim, said, own)
    *diversity, average = printed.rows("diversity")
    sizes = {row["category"]: figure(row["samples"])[1] for row in counts}
    times = {"ngd": dict.fromkeys(sizes, 4.0), "bertscore": sizes}
    table = f"{printed.where('diversity')}, average"
    for column in ("ngd", "ttr", "self-bleu", "bertscore"):
        value, slack = _mean([row[column] for row in diversity])
        beside = {}
        if column in times:
            by_formula = [
                times[column][row["category"]] * figure(row[column])[1] for row in diversity
            ]
            beside["by App. C"] = sum(by_formula) / len(by_formula)
        yield printed.cell(table, column, average[column], value, slack, **beside)
    for key in _KEYS:
        grid = {row.pop("model"): row for row in printed.rows(key)}
        for row in printed.rows("models"):
            value, slack = _mean(list(grid[row["model"]].values()))
            table = f"{printed.where('models')}, mean of {printed.where(key)} over categories"
            yield printed.cell(table, f"{row['model']}, {key}", row[key], value, slack)
        for row in printed.rows("categories"):
            value, slack = _mean([of[row["category"]] for of in grid.values()])
            table = f"{printed.where('categories')}, mean of {printed.where(key)} over models"
            yield printed.cell(table, f"{row['category']}, {key}", row[key], value, slack)


def _mean(texts: Sequence[str]) -> tuple[float, float]:
    """Compute the mean of printed figures, and its error from their rounding."""
    values = [figure(text) for text in texts]
    return sum(v for _, v, _ in values) / len(values), sum(h for _, _, h in values) / len(values)
