"""Find what stands out in one run: a language, a question, a kind of statement.

Each value of a column is compared with all others together. Both figures are over the units that
count for them, and statements are the sample: a statement that is asked about in several languages
counts in both (`gaps.OfStatements`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from genprobe import metrics
from genprobe.analysis import paired
from genprobe.analysis.gaps import OfStatements
from genprobe.metrics import Metric, Units
from genprobe.records import Score
from genprobe.render.findings import OTHERS
from genprobe.statistics import ALPHA, Array, ratio

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5  # statements on either side, below which nothing is compared
VALUES = 60  # columns with more values are left out


def splits(
    outcomes: pd.DataFrame, metric: str, columns: Sequence[str], sign: Callable[[str], str]
) -> list[Score]:
    """Compare each value of each column with all others of the same run.

    metric: a mean over units with equal weight; no scores for another. columns: of the outcomes;
    those that it lacks, or that the metric cannot be split by, are ignored. sign: metric with
    version and method -> signature. Returns scores as `compare` does, p-values not corrected
    (`significance.corrected`), with `between`, the column, in their cells. Of two values, one is
    compared with the other.
    """
    chosen = metrics.find(metric)
    fit = [c for c in columns if c in outcomes and c not in chosen.never_by]
    if chosen.value is not ratio or not chosen.fits(outcomes) or not fit:
        return []
    units = chosen.units(outcomes, fit)
    counted = (units.left_out == "").to_numpy(bool)
    if not counted.any() or not (units.stats[counted][:, 1] == 1).all():
        return []
    signed = sign(f"{metric}/{chosen.version}-{chosen.estimand}-{paired.method(chosen)}")
    found: list[Score] = []
    for column in fit:
        for a, b, there in _sides(units.cells[column]):
            if one := _compared(chosen, units, counted, there, column):
                found += paired.scores([one], a, b, signed)
    return found


def _sides(column: pd.Series) -> Iterator[tuple[str, str, pd.Series]]:
    """Yield the names of two sides and, for each unit, whether it is of the second; NA for none."""
    known = column.notna() & (column != "")
    values = sorted(column[known].unique(), key=str)
    if not 1 < len(values) <= VALUES:
        return
    for value in values[:1] if len(values) == 2 else values:
        other = str(values[1]) if len(values) == 2 else OTHERS
        yield other, str(value), (column == value).astype(object).where(known, None)


def _compared(
    chosen: Metric, units: Units, counted: Array, there: pd.Series, column: str
) -> paired.Paired | None:
    """Compare two sides of the units of one run; None if one of them has too few statements."""
    import pandas as pd

    ends = chosen.ends(units)
    side = [(there == of).fillna(False).to_numpy(bool) for of in (False, True)]
    cluster, names = pd.factorize(units.cluster)
    own = np.zeros((len(names), 4))
    for at, mine in enumerate(side):
        rows = mine & counted
        own[:, 2 * at] = np.bincount(cluster[rows], units.stats[rows, 0], len(names))
        own[:, 2 * at + 1] = np.bincount(cluster[rows], minlength=len(names))
    if (own[:, [1, 3]] > 0).sum(0).min() < FEWEST:
        return None
    a, b = (float(own[:, at].sum() / own[:, at + 1].sum()) for at in (0, 2))
    gap = OfStatements(own[own[:, [1, 3]].any(axis=1)], paired.limits(chosen)[1])
    p = gap.two_sided()
    low, high = gap.interval() if p < ALPHA else (None, None)  # it takes time
    n_a, n_b = (int(own[:, at].sum()) for at in (1, 3))
    planned = int(side[0].sum() + side[1].sum())
    bounds = None
    if ends is not None:
        (low_a, high_a), (low_b, high_b) = (np.nanmean(ends[mine], axis=0) for mine in side)
        bounds = (float(low_b - high_a), float(high_b - low_a))
    return paired.Paired(
        metric=chosen.name,
        by={"between": column},
        n=n_a + n_b,
        alone=n_a + n_b,
        neither=planned - n_a - n_b,
        n_a=n_a,
        n_b=n_b,
        a=a,
        b=b,
        difference=b - a,
        low=low,
        high=high,
        bounds=bounds,
        gap_p=p,
    )
