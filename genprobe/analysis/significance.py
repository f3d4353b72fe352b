"""Prepare what the tests share: the values under test, the level, and the scores.

A statement is measured in every language, by every model and question, so its values are not
independent. p-values that assume independence are given as `p_independent`, for comparison with
published ones; the p-values to report resample whole statements. docs/inference.md says which test
answers which question, and how often each is wrong if there is no effect.

The tests are in `variance` (analysis of variance), `distributions` (every two groups) and `power`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.metrics import Measure, declare
from genprobe.records import JSON, Score
from genprobe.resources.registry import unknown
from genprobe.statistics import adjusted, ratio

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.analysis.power import Power
    from genprobe.analysis.variance import Anova


class Left(dict[str, int]):
    """The number of units that are left out, by reason, in all; `of` gives those of one cell."""

    def __init__(self, rows: pd.DataFrame) -> None:
        """Count the reasons. rows: one per unit, with its columns and the reason `why_`."""
        super().__init__(Counter(map(str, rows["why_"])))
        self.rows = rows

    def of(self, label: Mapping[str, JSON]) -> dict[str, int]:
        """Count the reasons in one cell. label: of the cell, from `metrics.cells`."""
        return dict(Counter(map(str, in_cell(self.rows, label)["why_"])))


def in_cell(rows: pd.DataFrame, label: Mapping[str, JSON]) -> pd.DataFrame:
    """Return the rows of a cell, by its label, as `metrics.cells` makes it."""
    for column, value in label.items():
        rows = rows[
            rows[column]
            .astype(object)
            .map(lambda cell, own=value: metrics.plain(cell) == own)
            .astype(bool)
        ]
    return rows


def values(
    outcomes: pd.DataFrame, metric: str, by: Sequence[str], levels: Sequence[str] = ()
) -> tuple[pd.DataFrame, Left]:
    """List the units that count, and count the others by the reason why they are left out.

    by: columns of cells, in which an empty cell is a group of its own, as in `metrics.score`.
    levels: columns whose values are compared; a unit without one is left out. Returns one row per
    unit (these columns, `statement`, `value`). Units of one statement are not independent
    (`metrics.cluster`). Raises InputError for a metric that is not a mean over its units, and for a
    column that the outcomes lack or the metric cannot be split by.
    """
    chosen = metrics.find(metric)
    columns = list(dict.fromkeys([*by, *levels]))
    for column in chosen.needs:
        if column not in outcomes:
            raise InputError(f"{metric} needs the column {column!r}, which the data do not have")
    for column in columns:
        if column not in outcomes:
            raise unknown("column", column, [str(name) for name in outcomes.columns])
        if column in chosen.never_by:
            raise InputError(f"{metric} cannot be split by {column!r}")
    units = chosen.units(outcomes, columns)
    counted = (units.left_out == "").to_numpy(bool)
    stats = units.stats[counted]
    if chosen.value is not ratio or stats.shape[1] != 2 or not (stats[:, 1] == 1).all():
        raise InputError(
            f"{metric} is not a mean over equally weighted {chosen.unit}; test another metric"
        )
    import pandas as pd

    out = [units.cells.loc[~counted, columns].assign(why_=units.left_out[~counted])]
    kept = units.cells[counted].reset_index(drop=True)
    statement = units.cluster[counted].reset_index(drop=True)
    kept = kept[columns].assign(statement=statement, value=stats[:, 0])
    for column in levels:
        none = empty(kept[column])
        out.append(kept.loc[none, columns].assign(why_=f"no {column}"))
        kept = kept[~none]
    left = pd.concat([rows.astype(object) for rows in out if len(rows)] or out[:1])
    return kept.reset_index(drop=True), Left(left)


def empty(column: pd.Series) -> pd.Series:
    """Tell which cells of a column are empty."""
    return column.isna() | (column == "")


def reasons(left: Mapping[str, int]) -> str:
    """Say in one line what was left out."""
    return "left out: " + (", ".join(f"{n} {why}" for why, n in left.items()) or "nothing")


# --- as scores


def mean_score(
    values: pd.DataFrame, metric: str, by: Mapping[str, JSON], left: Mapping[str, int], sign: str
) -> Score:
    """Return the mean of the values under test, with their number and the exclusions."""
    units = values.groupby("statement")["value"].agg(["sum", "count"]).to_numpy(float)
    interval = metrics.find(metric).interval(units)
    low, high = interval or (None, None)
    one = _score(metric, by, float(values["value"].mean()), len(values), sign)
    return dataclasses.replace(one, low=low, high=high, excluded=dict(left))


def anova_scores(found: Anova, about: Mapping[str, JSON], sign: str) -> list[Score]:
    """Return one row for each effect, and one for each assumption.

    about: columns put in front: metric, cell, …
    """
    size = {**about, "statements": found.statements, "residual df": found.df_residual}
    scores = []

    def add(by: dict[str, JSON], **figures: float | None) -> None:
        for name, value in figures.items():
            scores.append(_score(name.replace("_", "-"), by, value, found.n, sign))

    for one in found.effects:
        effect = {**size, "effect": " × ".join(one.factors)}
        add(effect, df=one.df, F=one.f, partial_eta2=one.partial_eta2)
        add(effect, clustered_p=one.p, independent_p=one.p_independent)
    for check in found.assumptions:
        by = {**size, "assumption": check.name, "holds": _words(check.holds)}
        name = "icc" if check.low is not None else "assumption-p"
        score = _score(name, by, check.value, found.n, sign)
        scores.append(dataclasses.replace(score, low=check.low, high=check.high))
    return scores


def ks_scores(table: pd.DataFrame, about: Mapping[str, JSON], sign: str) -> list[Score]:
    """Return one row for each pair in a table of `pairwise_ks`, uncorrected: see `corrected`."""
    scores = []
    for row in table.to_dict("records"):
        by = {**about, "a": metrics.plain(row["a"]), "b": metrics.plain(row["b"])}
        for side in ("a", "b"):
            scores.append(_score(f"mean-{side}", by, row[f"mean_{side}"], row[f"n_{side}"], sign))
        n = row["n_a"] + row["n_b"]
        figures = {"ks": "statistic", "clustered-p": "p", "independent-p": "p_independent"}
        scores += [_score(name, by, row[column], n, sign) for name, column in figures.items()]
    return scores


def power_scores(found: Power, about: Mapping[str, JSON], sign: str) -> list[Score]:
    """Return the statements needed, the detectable difference and the power as scores."""
    by = {**about, "points": found.points}
    needed = _score("statements-needed", by, found.needed, found.n, sign)
    power = _score("power", by, found.power, found.n, sign)
    return [
        dataclasses.replace(needed, low=found.needed_low, high=found.needed_high),
        _score("detectable", by, found.detectable, found.n, sign),
        dataclasses.replace(power, low=found.power_low, high=found.power_high),
    ]


TO_REPORT = (
    *("mcnemar-p", "swap-p", "wordings-p", "interval-p", "clustered-p"),
    *("ppi-p", "ppi-over-wordings-p"),
)


def corrected(scores: Iterable[Score], methods: Sequence[str] = ("holm",)) -> list[Score]:
    """Add to the p-values to report, if there are several, the same corrected for their number.

    `holm-p` (Holm 1979, Scandinavian J. of Statistics 6:65) and `bonferroni-p`; their n is the
    number of comparisons. A comparison without a p-value, because of too few statements, does not
    count.
    """
    scores = list(scores)
    p = [s.value for s in scores if s.metric in TO_REPORT and s.value is not None]
    if len(p) < 2:
        return scores
    columns = {method: iter(adjusted(p, method)) for method in methods}
    found = []
    for score in scores:
        found.append(score)
        if score.metric in TO_REPORT and score.value is not None:
            for method, value in columns.items():
                one = dataclasses.replace(score, metric=f"{method}-p", value=float(next(value)))
                found.append(dataclasses.replace(one, n=len(p), excluded={}))
    return found


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return the p-values as `corrected` corrects them; those that are missing do not count."""
    known = iter(adjusted([one for one in p if one is not None], "holm"))
    return [None if one is None else float(next(known)) for one in p]


def _score(name: str, by: Mapping[str, JSON], value: float | None, n: int, sign: str) -> Score:
    return Score(name, dict(by), value, None, None, int(n), {}, None, sign)


def _words(holds: bool | None) -> str:
    return "unknown" if holds is None else "no sign against" if holds else "no"


declare(
    Measure("F", "F statistic of an effect", "number"),
    Measure("df", "degrees of freedom", "count"),
    Measure("partial-eta2", "partial eta squared of an effect", "number"),
    Measure("icc", "intraclass correlation of the values of a statement", "number"),
    Measure("ks", "largest distance of two distribution functions", "number"),
    Measure("mean-a", "mean of the first group", "number"),
    Measure("mean-b", "mean of the second group", "number"),
    Measure("assumption-p", "p-value of a test of an assumption", "p"),
    Measure(
        "clustered-p",
        "p-value over whole statements",
        "p",
        note="clustered-p: over whole statements, which are measured repeatedly; report this one.",
    ),
    Measure(
        "independent-p",
        "p-value as published, as if all values were independent",
        "p",
        note="independent-p, as published, treats all values as independent, which those of one "
        "statement are not; it is for comparison only, and often far too small, sometimes too "
        "large.",
    ),
    Measure(
        "holm-p",
        "p-value corrected for several tests (Holm)",
        "p",
        "tests",
        note="holm-p: the p-value before it, corrected (Holm) for the number of tests that are "
        "shown.",
    ),
    Measure("bonferroni-p", "p-value corrected for several tests (Bonferroni)", "p", "tests"),
    Measure(
        "statements-needed",
        "statements that would show the difference",
        "count",
        "statements",
        note="statements-needed: for 80 % power, two-sided at 5 %; an original with its "
        "contrasts, in all languages, counts as one. detectable: the smallest difference that "
        "these statements show with that power. power: that of these statements for the given "
        "points. All three are rough if hardly any statement gets the answer.",
    ),
    Measure("detectable", "smallest difference that these statements would show"),
    Measure("power", "probability that they show the difference asked for"),
)
