"""Turn outcomes into scores. Each file in this folder defines one family of metrics.

A metric file has `METRICS: tuple[Metric, ...]` and is found by `registry.module("metrics", name)`.
A metric defines its units (replies, items, pairs) and gives each unit additive statistics; its
value is a function of their sum. Counting, cells, exclusions and intervals are therefore written
only once, here and in `statistics`.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError
from genprobe.outcomes import columns
from genprobe.records import JSON, Score
from genprobe.resources import registry

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from genprobe.statistics import Array, Interval

MOST = 5_000_000  # rows at most for a metric that is not `additive`

# How a figure is written: `share` as a percentage; `points`, a difference of shares, with its
# sign; `number` with three digits; `count` without decimals; `coefficient` with two decimals; `p`
# as a p-value.
SCALES = ("share", "points", "number", "count", "coefficient", "p")

# What a figure is over: which replies, and which wordings; in signatures. Those of a gate are over
# all planned replies (`analysis.gate`).
OWN, OVER, ALIKE, NEXT = "own", "own-wordings", "own-alike", "own-next"
ESTIMANDS = {
    OWN: "units that count in each, these wordings",
    OVER: "units that count in each, wordings like these",
    ALIKE: "units that count in each, these wordings weighing alike",
    NEXT: "units that count in each, one further wording",
    "planned": "all planned replies, these wordings",
    "planned-wordings": "all planned replies, wordings like these",
    "planned-alike": "all planned replies, these wordings weighing alike",
    "planned-next": "all planned replies, one further wording",
}
PLANNED = {OWN: "planned", OVER: "planned-wordings", ALIKE: "planned-alike", NEXT: "planned-next"}

# Columns that describe a single reply, so that two replies to one question may differ in them.
REPLY = tuple(columns.of_replies())

# Reasons that lie in the data or in the plan: nothing was asked that such a unit could hide.
UNASKED = frozenset(
    (
        *("no label", "no target", "no condition", "no group is right", "all reversed"),
        *("all aligned", "one order only", "one answer only", "nobody asked", "no original"),
        *(
            "no contrast",
            "one question only",
            "several questions",
            "one share only",
            "no unknown option",
            "one condition only",
            "not asked",
            "no thought",
            "twice",
            "neutral",
        ),
    )
)

# The order in which exclusions are listed; others follow by name.
REASONS = (
    *(
        "failed",
        "missing",
        "unjudged",
        "refusal",
        "filter",
        "hedge",
        "both",
        "echo",
        "offtopic",
        "unsure",
        "empty",
    ),
    *("unclear", "mixed", "und"),
)


@dataclass(frozen=True)
class Units:
    """The units that a metric counts, one row for each planned unit.

    cells: the columns by which scores are split. cluster: units with the same value are not
    independent. left_out: why the unit does not count in n; "" if it does. stats: (units, k),
    additive. possible: (units, 2), the lowest and highest possible value of the unit, if they are
    not those of `Metric.ends`. of: names of equal shares of the columns of `stats`, sorted, where
    parts of a table may have others, such as wordings.
    """

    cells: pd.DataFrame
    cluster: pd.Series
    left_out: pd.Series
    stats: Array
    possible: Array | None = None
    of: Array | None = None


@dataclass(frozen=True)
class Measure:
    """The way in which figures with this name are shown, declared where they are made (`declare`).

    title: what it is, in one line. scale: of `SCALES`. unit: what n counts. note: line below tables
    with this measure, if its name does not say enough.
    """

    name: str
    title: str
    scale: str = "share"
    unit: str = "n"
    note: str = ""


@dataclass(frozen=True)
class Metric:
    """The definition of a metric.

    needs: columns that the outcomes must have. never_by: columns by which the metric cannot be
    split. unit: what n counts, in one word. method: the interval, as named in `statistics`. adds:
    further columns by which cells are split, if the outcomes have them. whole: computed once over
    the whole table unless columns are requested. limits: the lowest and highest possible value.
    scale: of `SCALES`. pairable: the value is a mean over units, so two runs can be compared unit
    by unit. place: position among the scores shown by default, low numbers first; 0 is shown only
    on request. apart: columns that are never averaged over. of_logs: it needs log-probabilities and
    has no meaning for perplexities. extremes: the statistics of a unit that makes the value as low,
    and as high, as it can be; only for a value that is no ratio. estimand: of `ESTIMANDS`.
    additive: its units are made of the rows of one statement or pair, so that a large table can be
    counted part by part (`outcomes.table.chunks`). short: says of the sums of a cell, (k,), why
    there is too little of it to count; "" if there is enough. version: changes whenever a value, an
    end of its interval or one of its bounds can change. says: what the model does in a unit that is
    a hit, for sentences (`render.findings`), such as `refuse to answer`; "" where the title serves.
    chance: the value of a model that tosses a coin.
    """

    name: str
    title: str
    unit: str
    units: Callable[[pd.DataFrame, list[str]], Units]
    value: Callable[[Array], Array]
    interval: Callable[[Array], Interval | None]  # (clusters, k) sums -> interval
    method: str
    needs: tuple[str, ...]
    never_by: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    whole: bool = False
    limits: tuple[float, float] = (0.0, 1.0)
    scale: str = "share"
    pairable: bool = True
    place: int = 0
    note: str = ""
    of_logs: bool = False
    extremes: tuple[tuple[float, ...], ...] = ()
    apart: tuple[str, ...] = ("decode",)
    estimand: str = OWN
    version: str = "1"
    additive: bool = False
    short: Callable[[Array], str] | None = None
    says: str = ""
    chance: float | None = None

    @property
    def id(self) -> str:
        """Return the metric in the signature of a score, such as `yes/2-own-anchored95`."""
        return f"{self.name}/{self.version}-{self.estimand}-{self.method}"

    def ends(self, units: Units) -> Array | None:
        """Return the lowest and the highest possible value of each planned unit, (units, 2).

        A unit that does not count could have any value of the scale, whatever the reason (a
        refusal, no reply yet); NaN if it was not asked for one (`UNASKED`). None if the metric is
        not a mean over units with equal weight, or its scale has no ends.
        """
        import numpy as np

        from genprobe.statistics import ratio

        if units.possible is not None:
            return units.possible
        counted = (units.left_out == "").to_numpy(bool)
        stats = units.stats[counted]
        even = self.value is ratio and bool((stats[:, 1] == 1).all())
        if not self.pairable or not even or not np.isfinite(self.limits).all():
            return None
        unasked = units.left_out.isin(UNASKED).to_numpy(bool)[:, None]
        found = np.where(counted[:, None], units.stats[:, :1], self.limits)
        return np.where(unasked, np.nan, found)

    def fits(self, outcomes: pd.DataFrame) -> bool:
        """Tell whether the outcomes have the columns that it needs."""
        return all(column in outcomes for column in self.needs)


_DECLARED: dict[str, Measure] = {}


def declare(*measures: Measure) -> None:
    """Declare how figures that are made outside this folder are shown."""
    _DECLARED.update({measure.name: measure for measure in measures})


def shown(name: str) -> Measure | Metric:
    """Return how figures of this name are shown: by a metric or declaration, else as a share."""
    return catalogue().get(name) or _DECLARED.get(name) or Measure(name, name)


def default() -> list[str]:
    """Return the names of the metrics that are shown by default, in their order.

    A metric for which nothing was planned has no score.
    """
    found = [metric for metric in catalogue().values() if metric.place]
    return [metric.name for metric in sorted(found, key=lambda metric: metric.place)]


@functools.cache
def catalogue() -> dict[str, Metric]:
    """Return all metrics by name. Raises InputError if two have the same."""
    found: dict[str, Metric] = {}
    for file in registry.names("metrics"):
        for metric in registry.module("metrics", file).METRICS:
            if found.setdefault(metric.name, metric) is not metric:
                raise InputError(
                    f"metrics/{file}.py: there is another metric {metric.name!r}; rename one's own"
                )
    return found


def find(name: str) -> Metric:
    """Return the metric with this name.

    Raises InputError, which suggests the nearest known name, if there is none.
    """
    if name not in catalogue():
        raise registry.unknown("metric", name, sorted(catalogue()))
    return catalogue()[name]


def score(
    outcomes: pd.DataFrame,
    names: Sequence[str],
    by: Sequence[str],
    signature: Callable[[str], str],
) -> list[Score]:
    """Compute every metric in every cell of `by`, metric by metric, cells sorted.

    outcomes: from `table`. signature: metric name -> the signature of its scores. A cell with
    nothing planned has no score; if nothing could be counted, the score has no value. Raises
    InputError for an unknown metric or column, and for one that does not fit the outcomes.
    """
    from genprobe.outcomes import table

    metrics = [find(name) for name in dict.fromkeys(names)]
    by = list(dict.fromkeys(by))
    if not len(outcomes):
        raise InputError("nothing to score: the table has no rows")
    for column in by:
        if column not in outcomes:
            raise registry.unknown("column", column, [str(c) for c in outcomes.columns])
    for metric in metrics:
        for column in metric.needs:
            if column not in outcomes:
                raise InputError(
                    f"{metric.name} needs the column {column!r}{columns.whose(column)}"
                )
        for column in by:
            if column in metric.never_by:
                raise InputError(
                    f"{metric.name} cannot be split by {column!r}, because it compares its values"
                )
    several = {
        column
        for metric in metrics
        for column in metric.apart
        if column in outcomes and column not in by and table.several(outcomes, column)
    }
    splits = [[*(c for c in m.apart if c in several and c not in m.never_by), *by] for m in metrics]
    parts = table.chunks(outcomes) if any(metric.additive for metric in metrics) else []
    scores: list[Score] = []
    for metric, split in zip(metrics, splits, strict=True):
        at_once = not metric.additive or len(parts) == 1
        if at_once and len(outcomes) > MOST:
            rows = f"{MOST:,}; here are {len(outcomes):,}"
            raise InputError(f"{metric.name} needs all rows at once, and so at most {rows}")
        some = [outcomes] if at_once else (table.part_of(outcomes, part) for part in parts)
        reduced = [reduce(metric, metric.units(part, split), split) for part in some]
        scores += finish(metric, reduced, signature(metric.name))
    return scores


@dataclass(frozen=True)
class Reduced:
    """What is kept of the units of a part of a table: numbers that add up over parts.

    cells: (cells, by), their labels. n: (cells,), the units that count. excluded: of each cell,
    reason -> number. cell, cluster, sums: of each cell and cluster with units that count, the
    number of the cell, the name of the cluster, and the sums of the statistics, (rows, k). bounds:
    (cells, 4), of the planned units number, unclear ones, lowest and highest sum; None if the
    metric has no bounds here. of: as in `Units`.
    """

    cells: pd.DataFrame
    n: np.ndarray
    excluded: list[dict[str, int]]
    cell: np.ndarray
    cluster: np.ndarray
    sums: np.ndarray
    bounds: np.ndarray | None
    of: np.ndarray | None = None

    def wide(self, every: np.ndarray) -> np.ndarray:
        """Return the sums with columns for every name, zero where this part has none."""
        import numpy as np

        if self.of is None or not len(every):
            return self.sums
        rows, each = len(self.sums), self.sums.shape[1] // max(1, len(self.of))
        found = np.zeros((rows, len(every), each))
        if len(self.of):
            found[:, np.searchsorted(every, self.of)] = self.sums.reshape(rows, len(self.of), each)
        return found.reshape(rows, len(every) * each)


def reduce(metric: Metric, units: Units, by: list[str]) -> Reduced:
    """Sum the units of a metric by cell and cluster. by: the columns asked for, without `adds`."""
    import numpy as np
    import pandas as pd

    by = [*by, *(c for c in metric.adds if c in units.cells and c not in by)]
    cell, first = numbered(units.cells, by)
    reason = units.left_out.to_numpy(dtype=object)
    counted = reason == ""
    # Clusters sorted by name: the order of the rows must not change a resample.
    sums = pd.DataFrame(units.stats[counted]).groupby(
        [cell[counted], units.cluster.to_numpy()[counted]], sort=True
    )
    totals = sums.sum()
    excluded: list[dict[str, int]] = [{} for _ in first]
    why = pd.Series(reason[~counted], dtype=object)
    for (at, name), count in why.groupby([cell[~counted], why]).size().items():
        excluded[at][name] = int(count)
    return Reduced(
        units.cells[by].iloc[first],
        np.bincount(cell[counted], minlength=len(first)),
        excluded,
        totals.index.get_level_values(0).to_numpy(),
        totals.index.get_level_values(1).to_numpy(),
        totals.to_numpy(float),
        _bounds(metric.ends(units), cell, len(first)),
        units.of,
    )


def joined(parts: Sequence[Reduced]) -> Reduced:
    """Add up the parts of a table, cell by cell and cluster by cluster."""
    import numpy as np
    import pandas as pd

    if len(parts) == 1:
        return parts[0]
    labels = pd.concat([part.cells for part in parts], ignore_index=True)
    cell, first = numbered(labels, list(labels))
    own = np.split(cell, np.cumsum([len(part.n) for part in parts])[:-1])
    n = np.bincount(cell, np.concatenate([part.n for part in parts]), len(first)).astype(int)
    excluded: list[Counter[str]] = [Counter() for _ in first]
    for numbers, part in zip(own, parts, strict=True):
        for at, reasons in zip(numbers, part.excluded, strict=True):
            excluded[at].update(reasons)
    at = np.concatenate([o[part.cell] for o, part in zip(own, parts, strict=True)])
    cluster = np.concatenate([part.cluster for part in parts])
    of = [part.of for part in parts if part.of is not None]
    every = np.unique(np.concatenate(of)) if of else np.array([])
    sums = np.concatenate([part.wide(every) for part in parts])
    # By cell, and in it by name, as in one part; pandas needs 200 bytes a row for it.
    order = np.argsort(cluster, kind="stable")
    order = order[np.argsort(at[order], kind="stable")]
    at, cluster, sums = at[order], cluster[order], sums[order]
    first_of = np.flatnonzero(np.r_[True, (at[1:] != at[:-1]) | (cluster[1:] != cluster[:-1])])
    if len(first_of) < len(at):  # a cluster of several parts
        at, cluster, sums = at[first_of], cluster[first_of], np.add.reduceat(sums, first_of)
    bounds = None
    if all(part.bounds is not None for part in parts):
        bounds = np.zeros((len(first), 4))
        np.add.at(bounds, cell, np.concatenate([part.bounds for part in parts]))
    return Reduced(
        labels.iloc[first],
        n,
        [dict(reasons) for reasons in excluded],
        at,
        cluster,
        sums,
        bounds,
    )


def finish(metric: Metric, parts: Sequence[Reduced], signature: str) -> list[Score]:
    """Compute the scores of one metric from the sums of all parts of a table, cells sorted."""
    import numpy as np

    whole = joined(parts)
    labels = labelled(whole.cells)
    starts = np.searchsorted(whole.cell, np.arange(len(labels)))
    sums = np.split(whole.sums, starts[1:]) if labels else []
    scores = []
    for at, (label, part) in enumerate(zip(labels, sums, strict=True)):
        n, excluded = int(whole.n[at]), whole.excluded[at]
        if n and metric.short and (why := metric.short(part.sum(0))):
            n, excluded = 0, excluded | {why: n}
        value = float(metric.value(part.sum(0))) if n else math.nan
        interval = metric.interval(part) if not math.isnan(value) else None
        if interval:  # percentiles of a skewed statistic may lie on one side of its value
            interval = min(interval[0], value), max(interval[1], value)
        bounds = None
        if whole.bounds is not None and whole.bounds[at, 1]:
            planned, _, low, high = whole.bounds[at]
            bounds = [float(low / planned), float(high / planned)]
        scores.append(
            Score(
                metric=metric.name,
                by=label,
                value=None if math.isnan(value) else value,
                low=interval[0] if interval else None,
                high=interval[1] if interval else None,
                n=n,
                excluded=dict(sorted(excluded.items(), key=rank)),
                bounds=bounds,
                signature=signature,
            )
        )
    return scores


def rank(item: tuple[str, int]) -> tuple[int, str]:
    """Return the sort key of an exclusion: `REASONS` first, in their order."""
    return (REASONS.index(item[0]) if item[0] in REASONS else len(REASONS), item[0])


def cells(cells: pd.DataFrame, by: list[str]) -> tuple[np.ndarray, list[dict[str, JSON]]]:
    """Return the number of each unit's cell, (units,), and the labels of the cells, sorted."""
    cell, first = numbered(cells, by)
    return cell, labelled(cells[by].iloc[first])


def numbered(cells: pd.DataFrame, by: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each unit's cell, (units,), and the first unit of each, (cells,)."""
    import numpy as np

    if not by or not len(cells):
        return np.zeros(len(cells), int), np.zeros(min(len(cells), 1), int)
    cell = cells.groupby(by, sort=True, dropna=False, observed=True).ngroup().to_numpy()
    return cell, np.unique(cell, return_index=True)[1]


def labelled(cells: pd.DataFrame) -> list[dict[str, JSON]]:
    """Return the rows of a table of cells as labels."""
    rows = cells.itertuples(index=False, name=None) if len(cells.columns) else ((),) * len(cells)
    return [dict(zip(cells, map(plain, row), strict=True)) for row in rows]


def plain(value: Any) -> JSON:
    """Return a cell of a DataFrame as a JSON value; missing is null."""
    import pandas as pd

    if pd.isna(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | int | float | bool) else str(value)


def _bounds(ends: Array | None, cell: np.ndarray, cells: int) -> np.ndarray | None:
    """Return of each cell the planned units, the unclear ones, and the sums of the ends."""
    import numpy as np

    if ends is None:
        return None
    part = ~np.isnan(ends[:, 0])
    n = np.bincount(cell[part], minlength=cells)
    unclear = np.bincount(cell[part], ends[part, 0] < ends[part, 1], cells)
    low, high = (np.bincount(cell[part], ends[part, end], cells) for end in (0, 1))
    return np.column_stack([n, unclear, low, high])


def cluster(outcomes: pd.DataFrame, item: str = "statement") -> pd.Series:
    """Return the cluster label of each row; rows of one cluster are not independent.

    The label is the `pair`: an original and its contrasts are one stereotype, in every language and
    sample. If the pair is empty, the label is the item (`item` names its column); without either,
    the row.
    """
    import numpy as np
    import pandas as pd

    from genprobe.outcomes import table

    found = pd.Series(None, outcomes.index, dtype=object)
    for column in ("pair", item):
        if column in outcomes and found.isna().any():
            codes, every = table.numbered(outcomes[column])
            names = [None if name == "" else f"{column} {name}" for name in every]
            named = pd.Series(np.array([*names, None], dtype=object)[codes], outcomes.index)
            found = found.where(found.notna(), named)
    if found.isna().any():
        rows = [f"row {at}" for at in range(len(outcomes))]
        found = found.where(found.notna(), pd.Series(rows, outcomes.index, dtype=object))
    return found


def unanswered(outcomes: pd.DataFrame) -> pd.Series:
    """Tell which planned requests have no reply."""
    return outcomes["left_out"].isin(columns.UNANSWERED)


def no_reply(outcomes: pd.DataFrame, judged: str) -> pd.Series:
    """Say why a planned reply cannot be used, "" if it can.

    The reason is `failed`, `missing`, or `unjudged` if the column `judged` is empty.
    """
    reason = outcomes["left_out"].astype(object).where(unanswered(outcomes), "")
    return reason.mask((reason == "") & outcomes[judged].isna(), "unjudged")


def once(rows: pd.DataFrame, keys: Sequence[str], metric: str) -> None:
    """Raise InputError if an item occurs twice; name columns that could distinguish the rows."""
    twice = rows.duplicated(list(keys), keep=False)
    if not twice.any():
        return
    first = rows[twice].iloc[0]
    among = rows[(rows[list(keys)] == first[list(keys)]).all(axis=1)]
    others = [c for c in rows if c not in keys and among[c].astype(str).nunique() > 1]
    apart = [str(c) for c in others if c not in REPLY and not str(c).startswith("__")]
    cure = f"--by {','.join(apart)} tells them apart" if apart else "remove one"
    raise InputError(
        f"{metric}: {len(rows[twice])} rows are there twice or more, such as statement "
        f"{first.get('statement')!r} ({first.get('lang')}), sample {first.get('sample')}; {cure}"
    )


def spoken(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of free replies."""
    return outcomes[outcomes["decode"] == "free"] if "decode" in outcomes else outcomes


def not_clear(outcomes: pd.DataFrame) -> pd.Series:
    """Say why a planned reply is no clear answer, "" if it is one.

    The reason is that of `no_reply`, else the kind of the reply (such as `refusal`).
    """
    reason = no_reply(outcomes, "answer")
    unclear = (reason == "") & (outcomes["answer"] == "ambiguous")
    why: Any = "unclear"
    if "kind" in outcomes:
        kind = outcomes["kind"].astype(object)
        why = kind.where(kind.notna() & (kind != "answer"), "unclear")
    return reason.mask(unclear, why)
