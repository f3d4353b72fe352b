"""Compare what a model says of the same statement with few and many words of a second language.

Aqbileq (4.1.3) finds preferences strongest in code-mixed sentences, and leaves open whether what
models *say* changes, too. Statements in `kk-x-ru` are asked about in Kazakh, as those in Kazakh
are: only the statement is mixed. Both measures are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from genprobe.errors import InputError
from genprobe.metrics import Metric, Units, cluster, not_clear
from genprobe.metrics.rates import units_of
from genprobe.records import FACETS
from genprobe.statistics import BOOTSTRAP, SHARE, Array, Interval, bootstrap, ratio, share_of_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

BINS = 5
_NEEDS = ("answer", "says", "measures", "probe", "russian", "statement", "left_out")
_SAME = ("model", "revision", "decode", "probe", "pair", "role", "statement", *FACETS)


def _asked(outcomes: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Return the questions that measure endorsement, of mixed statements and of unmixed ones.

    Also returns why each row is left out, "" if it counts.
    """
    try:  # a CSV file has texts
        share = pd.to_numeric(outcomes["russian"].astype(object))
    except ValueError as error:
        raise InputError(f"'russian' must be a share of words: {error}") from None
    rows = outcomes.assign(russian=share)
    rows = rows[rows["russian"].notna() & (rows["measures"] == "endorsed")]
    return rows.copy(), not_clear(rows)


def _bins(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the rate of endorsement in bin 0 (no Russian words) and in five bins of their share.

    The mixed statements are sorted by that share (equal ones by name) and cut into five bins of
    equal size, within each cell of `by`; all replies about a statement are in one bin.
    """
    rows, reason = _asked(outcomes)
    rows["__name"] = cluster(rows)
    some = [*by, "russian", "__name"]
    kinds = rows.loc[rows["russian"] > 0, some].drop_duplicates().sort_values(some)
    groups = kinds.assign(__all=0).groupby([*by, "__all"], dropna=False, observed=True)["__all"]
    kinds["bin"] = groups.cumcount() * BINS // groups.transform("size") + 1
    at = rows[some].merge(kinds, "left", some)["bin"].fillna(0).astype(int)
    rows["bin"] = at.to_numpy()
    return units_of(rows, [*by, "bin"], rows["says"], reason)


def _doses(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Sum what the slope of endorsement over the share of Russian words needs, by statement.

    The slope is that of least squares within statements (each statement and question has a level of
    its own, so that what a statement says cannot pass for the dose): the sum over them of
    (x - mean x)(y - mean y), divided by that of (x - mean x)^2.
    """
    rows, reason = _asked(outcomes)
    x, y = rows["russian"].astype(float), rows["says"].astype("Float64").fillna(0).astype(float)
    clear = (reason == "").astype(float)
    sums = {"n": clear, "x": clear * x, "y": clear * y, "xx": clear * x * x, "xy": clear * x * y}
    keys: Sequence[str] = list(dict.fromkeys([*by, *(name for name in _SAME if name in rows)]))
    rows = rows.assign(**sums, low=x, high=x, __name=cluster(rows), __why=reason)
    own = rows.groupby(keys, dropna=False, observed=True, sort=True)
    found = own[[*sums]].sum().join(own.agg(low=("low", "min"), high=("high", "max")))
    found = found.join(own[["__name", "__why"]].first()).reset_index()
    n = found["n"].where(found["n"] > 0, 1.0)
    across, up = found["xx"] - found["x"] ** 2 / n, found["xy"] - found["x"] * found["y"] / n
    why = pd.Series("", found.index, dtype=object).mask(across < 1e-12, "no clear answer")
    why = why.mask(found["low"] == found["high"], "one share only")
    stats = pd.DataFrame({"up": up, "across": across}).to_numpy(float)
    return Units(found[by], found["__name"], why, stats)


def _slope(sums: Array) -> Interval | None:
    return bootstrap(sums, ratio)


METRICS = (
    Metric(
        "mixing-endorsed",
        "share of clear answers that endorse the statement, by its share of Russian words",
        "clear",
        _bins,
        ratio,
        share_of_sums,
        SHARE,
        _NEEDS,
        never_by=("lang",),
        adds=("bin",),
        place=67,
        note="mixing-endorsed: bin 0 has no Russian words, bins 1 to 5 have few to many.",
    ),
    Metric(
        "mixing-dose",
        "change of endorsement of the same statement, from no Russian words to only such",
        "statements",
        _doses,
        ratio,
        _slope,
        BOOTSTRAP,
        _NEEDS,
        never_by=("lang",),
        limits=(-float("inf"), float("inf")),
        scale="points",
        pairable=False,
        place=68,
        note="mixing-dose: points of endorsement from no Russian words to nothing but such, within "
        "statements asked with several shares.",
    ),
)
