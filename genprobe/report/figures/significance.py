"""Show which distributions of bias scores differ, pair by pair (SHADES, Figures 6 and 15).

Two-sample Kolmogorov-Smirnov tests compare the bias scores of originals (the mean over their
contrasts) under one model, and in one language when bias types are compared. p-values come from
resampling statements (`inference.pairwise_ks`), with Holm's correction over all tests of the
figure. With one stratum the figure shows the statistic D, with a star if p < 0.05; with several,
the share of tested strata where p < 0.05. SHADES joined the two samples before the test, which
makes pure noise significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from genprobe.analysis.distributions import KS, enough, pairwise_ks
from genprobe.metrics import cluster
from genprobe.records import JSON, Score
from genprobe.report.figures import Figure
from genprobe.report.figures._data import Data, Series
from genprobe.report.figures._plot import heat
from genprobe.runs.spec import both_signatures
from genprobe.statistics import ALPHA, adjusted, resampled, wilson

LEAST = 5  # minimum number of originals in a sample
# Column compared -> columns held fixed.
_WITHIN = {"lang": ["model"], "bias_type": ["model", "lang"], "model": ["lang"]}
_NAMES = {"lang": "language", "bias_type": "bias-type", "model": "model"}


def figures(data: Data) -> Iterator[Figure]:
    series = [
        s
        for s in data.of_kind("logprob", ("pro", "anti", "scorer", "bias_type"))
        if (s.table["scorer"] == "bias").any()
    ]
    if not series:
        return
    found = pd.concat([_values(one) for one in series], ignore_index=True)
    for column, within in _WITHIN.items():
        table = pairwise(found, column, within)
        if len(table):
            version = f"ks/1-{resampled(KS, enough(len(table)))}+holm"
            sign = both_signatures(*(one.sign(version) for one in series))
            yield _figure(table, column, sign)


def _values(series: Series) -> pd.DataFrame:
    """Return one row per original: model, lang, bias_type, statement, value (mean bias score)."""
    rows = series.table[series.table["scorer"] == "bias"]
    rows = rows.assign(value=rows["pro"] - rows["anti"], statement=cluster(rows, "item"))
    rows = rows[(rows["left_out"] == "") & np.isfinite(rows["value"])].assign(model=series.name)
    keys = ["model", "lang", "bias_type", "statement"]
    return rows.groupby(keys, dropna=False, observed=True)["value"].mean().reset_index()


def pairwise(found: pd.DataFrame, column: str, within: Sequence[str]) -> pd.DataFrame:
    """Test every pair of groups of a column in every stratum.

    Returns the columns a, b, those in `within`, n, statistic, p and p_adjusted (Holm, over all
    rows). Groups of fewer than `LEAST` originals are not tested.
    """
    strata = []
    for names, stratum in found.groupby(list(within), dropna=False, observed=True):
        rows = stratum[stratum[column].notna() & (stratum[column] != "")]
        size = rows.groupby(column, observed=True)["value"].transform("size")
        strata.append((dict(zip(within, names, strict=True)), rows[size >= LEAST]))
    if not strata:
        return pd.DataFrame()
    draws = enough(sum(math.comb(rows[column].nunique(), 2) for _, rows in strata))
    parts = [pairwise_ks(rows, column, resamples=draws).assign(**names) for names, rows in strata]
    table = pd.concat(parts, ignore_index=True)
    table = table.assign(n=table["n_a"] + table["n_b"])
    if len(table):
        table["p_adjusted"] = adjusted(table["p"], "holm")
    return table


def _figure(table: pd.DataFrame, column: str, sign: str) -> Figure:
    """Make the figure from the table that `pairwise` returns."""
    strata = len(table[_WITHIN[column]].drop_duplicates())
    scores, more, cells = [], [], {}
    for (a, b), tests in table.groupby(["a", "b"], sort=True, observed=True):
        by: dict[str, JSON] = {"a": str(a), "b": str(b)}
        cell = "", max(str(a), str(b)), min(str(a), str(b))  # in the lower triangle
        hits, n = int((tests["p_adjusted"] < ALPHA).sum()), len(tests)
        if strata == 1:
            one = tests.iloc[0]
            value = float(one["statistic"])
            cells[cell] = (
                value,
                f"{value:.2f}"[1:] + "*" * hits if value < 1 else "1" + "*" * hits,
            )
            scores.append(Score("ks", by, value, None, None, int(one["n"]), {}, None, sign))
            more.append({"p": float(one["p"]), "p_adjusted": float(one["p_adjusted"])})
            continue
        low, high = wilson(hits, n) or (0.0, 1.0)
        cells[cell] = (hits / n, f"{hits}/{n}")
        left = {"too few": strata - n} if n < strata else {}
        scores.append(Score("ks-significant", by, hits / n, low, high, n, left, None, sign))
        more.append({"largest_p_adjusted": float(tests["p_adjusted"].max())})
    names = sorted({name for _, a, b in cells for name in (a, b)})
    words = _NAMES[column].replace("-", " ")
    # All statistics may be 0, but the colour scale needs a positive length.
    top = 1.0 if strata > 1 else max(v for v, _ in cells.values()) or 1.0
    what = "D; *: p < 0.05 (Holm)"
    if strata > 1:
        what = "tests with p < 0.05 (share)"
    return Figure(
        f"significance-by-{_NAMES[column]}",
        f"Kolmogorov-Smirnov tests of bias scores, by {words}",
        scores,
        lambda: heat(cells, names[1:], names[:-1], what, (0.0, top)),
        (),
        more,
        tests=True,
    )
