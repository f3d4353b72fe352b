"""Estimate reliability: do repeated measurements of the same items agree?

Two measurements differ only in what should not matter, such as seed, day, engine or precision. The
agreement is the intraclass correlation of single measurements, two-way random, absolute agreement
(McGraw & Wong 1996, Psychological Methods 1:30, ICC(A,1)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.errors import InputError
from genprobe.metrics import Measure, declare
from genprobe.records import FACETS, Score
from genprobe.statistics import LEVEL, Array, student

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reliability:
    """The agreement of repeated measurements.

    value: the intraclass correlation; None if the items do not differ. low, high: 95 %, over
    clusters of items; None if no cluster may be left out. n: items that have every measurement.
    times: measurements per item.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    times: int


def reliability(
    values: Array, clusters: Sequence[Any] | None = None, level: float = LEVEL
) -> Reliability:
    """Estimate how far measurements of the same items agree.

    values: (items, times) measurements, such as 0 and 1 or rates; an item with a missing one (NaN)
    is left out. clusters: of the items; those of one (a statement in several languages) are not
    independent; each its own if None. Raises InputError for fewer than two complete items or two
    measurements.

    The interval is a jackknife over clusters of Fisher's transformation of the correlation (1925,
    Statistical Methods for Research Workers, 39), with Student's t.
    """
    values = np.asarray(values, float)
    whole = ~np.isnan(values).any(1)
    labels = np.arange(len(values)) if clusters is None else np.asarray(clusters)
    values, labels = values[whole], labels[whole]
    n, times = values.shape
    if n < 2 or times < 2:
        raise InputError("reliability needs two items that were each measured twice")
    means = values.mean(1)
    within = ((values - means[:, None]) ** 2).sum(1)
    parts = np.column_stack([np.ones(n), means, means**2, within, values])
    at = np.unique(labels, return_inverse=True)[1]
    sums = np.zeros((at.max() + 1, parts.shape[1]))
    np.add.at(sums, at, parts)
    found = float(_icc(sums.sum(0)))
    if np.isnan(found):
        return Reliability(None, None, None, n, times)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole_, left = (
            np.log1p((times - 1) * one) - np.log1p(-one)
            for one in (found, _icc(sums.sum(0) - sums))
        )
    m = len(sums)
    if m < 2 or not np.isfinite([whole_, *left]).all():
        return Reliability(found, None, None, n, times)
    error = ((m - 1) / m * float(((left - left.mean()) ** 2).sum())) ** 0.5
    reach = student(m - 1, level) * error
    low, high = (1 - times / (np.exp(end) + times - 1) for end in (whole_ - reach, whole_ + reach))
    return Reliability(found, float(low), float(high), n, times)


def _icc(sums: Array) -> Array:
    """Compute ICC(A,1), absolute agreement; NaN if nothing varies.

    sums: (..., 4 + times), over items: their number; their means, squared means, and squared
    deviations of measurements from them; the measurements of each time.
    """
    n, mean, squares, within = np.moveaxis(sums[..., :4], -1, 0)
    k = sums.shape[-1] - 4
    with np.errstate(invalid="ignore", divide="ignore"):
        grand = mean / n
        rows = k * np.maximum(squares - n * grand**2, 0.0) / (n - 1)
        between = (n[..., None] * (sums[..., 4:] / n[..., None] - grand[..., None]) ** 2).sum(-1)
        columns = between / (k - 1)
        error = np.maximum(within - between, 0.0) / ((n - 1) * (k - 1))
        below = rows + (k - 1) * error + k * (columns - error) / n
        return np.where(below > 1e-12, (rows - error) / below, np.nan)


# Columns that identify an item, which every run or sample measures once.
_ITEM = ("decode", "lang", "probe", "item_", *FACETS)


def retest(
    tables: Mapping[str, pd.DataFrame],
    metric: str,
    by: Sequence[str],
    signature: Callable[[str], str],
) -> list[Score]:
    """Estimate how far the answers agree, item by item, of runs that asked one model the same.

    With a single run its samples are compared. tables: run -> outcomes. metric: a mean over equally
    weighted units. Returns `reliability` (of an item's mean over the samples of a run) and
    `same-answers` (of single answers, one from each of two runs or samples) over all measurements,
    in each cell of `by`. An item counts if every run or sample measured it. Raises InputError if
    nothing was measured twice.
    """
    import pandas as pd

    from genprobe.analysis import significance
    from genprobe.metrics import cells, find, numbered

    rows, asked = [], []
    for name, table in tables.items():
        # In `values` the column `statement` is the cluster: an original and its contrasts share it.
        table = table.assign(item_=table["statement"])
        items = [c for c in _ITEM if c in table and c not in find(metric).never_by]
        items = list(dict.fromkeys([*items, *by]))
        apart = () if len(tables) > 1 else ("sample",)
        kept, out = significance.values(table, metric, [*items, "sample"], apart)
        asked.append(pd.concat([kept[items], out.rows[items]]).astype(object))
        rows.append(kept.assign(__time=name if len(tables) > 1 else kept["sample"].astype(str)))
    whole = pd.concat(rows, ignore_index=True)
    items = list(dict.fromkeys([c for c in (*_ITEM, *by) if c in whole]))
    times = list(dict.fromkeys(whole["__time"]))
    if len(times) < 2:
        raise InputError(
            "nothing was measured twice; give another run of the model, or ask with --samples 2"
        )
    whole["__item"], first = numbered(whole, items)
    wide = whole.pivot_table(index="__item", columns="__time", values="value", aggfunc="mean")
    alike = _same_answers(whole).to_numpy(float)
    every = pd.concat(asked).drop_duplicates()
    at, labels = cells(whole.iloc[first], list(by))
    # Of a statement, its contrasts, languages and questions.
    clusters = whole["statement"].iloc[first]
    of = find(metric)
    sign = signature(f"{metric}/{of.version}-{of.estimand}-icc+jackknife{100 * LEVEL:g}")
    scores = []
    for number, label in enumerate(labels):
        values = wide.to_numpy(float)[at == number]
        found = reliability(values, clusters.to_numpy()[at == number])
        alone = len(significance.in_cell(every, label)) - found.n
        why = {"not counted in all": alone} if alone else {}
        about: dict[str, Any] = {"of": metric, **label, "times": found.times}
        ends = found.value, found.low, found.high
        scores.append(Score("reliability", about, *ends, found.n, why, None, sign))
        same = float(np.nanmean(alike[at == number]))
        scores.append(Score("same-answers", about, same, None, None, found.n, why, None, sign))
    return scores


def _same_answers(rows: pd.DataFrame) -> pd.Series:
    """Return, by item, how often two answers from different runs or samples are equal.

    All pairs of answers of two `time`s are compared, whatever their sample numbers; every pair of
    times weighs the same. NaN for an item that one of the times did not measure.
    """
    import pandas as pd

    counts = rows.groupby(["__item", "__time", "value"]).size().unstack("__time", fill_value=0)
    answers = counts.groupby("__item").sum()
    pairs = list(combinations(answers.columns, 2))
    shares = [
        (counts[a] * counts[b]).groupby("__item").sum() / (answers[a] * answers[b])
        for a, b in pairs
    ]
    return pd.concat(shares, axis=1).mean(axis=1, skipna=False)


declare(
    Measure(
        "reliability",
        "intraclass correlation of measurements of one item",
        "coefficient",
        "items",
        "reliability: of a single measurement (ICC, two-way random, agreement); at 1 measurements "
        "agree as far as items differ.",
    ),
    Measure("same-answers", "share of pairs of single answers that are equal", unit="items"),
)
