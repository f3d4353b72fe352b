"""BBQ: accuracy, bias score and cost of non-alignment of UnifiedQA, from its predictions.

Four categories, three formats. Bias score: BBQ 5. Cost: accuracy where the right answer is
against the stereotype minus where it is the stereotype's, in disambiguated contexts.
"""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.analysis.reproduce import Cell, File, Folder, Printed

ITEMS = File(
    "unifiedqa-items.parquet",
    "https://github.com/nyu-mll/BBQ (UnifiedQA's results with target_loc, a row a question)",
    (
        *("category", "model", "condition", "polarity", "label", "pred_label", "target_loc"),
        *("ans0_info", "ans1_info", "ans2_info"),
    ),
)
FILES = (ITEMS,)
# Column of the published table: the metric, and what it is multiplied by to be in %.
_MEASURES = {"accuracy": ("accuracy", 100), "bias": ("bbq-bias", 100)}
_MEASURES |= {"cost": ("disambiguated-bias", -100)}
_TITLES = {"accuracy": "accuracy in %", "bias": "bias score"}
_TITLES |= {"cost": "accuracy cost of bias non-alignment"}


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the cells of the published table, from the predictions in the folder."""
    from genprobe import metrics
    from genprobe.outcomes import table

    names = [name for name, _ in _MEASURES.values()]
    with folder.at(ITEMS):
        outcomes = table.from_rows(folder.read(ITEMS))
        scores = metrics.score(outcomes, names, ["category", "model"], str)
    values = {
        (s.metric, s.by["category"], s.by["model"], s.by.get("condition", "disambig")): s.value
        for s in scores
    }
    for measure, (name, times) in _MEASURES.items():
        for row in printed.rows(measure):
            category = row["category"].replace(" ", "_")
            value = values.get((name, category, row["model"], row["condition"]))
            yield printed.cell(
                f"{row['category']}, {_TITLES[measure]}",
                f"{row['where']}: {row['model']}, {row['condition']}",
                row[measure],
                None if value is None else times * value,
            )
