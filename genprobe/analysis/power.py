"""The power of a comparison of models: what so many statements show, and how many are needed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from genprobe.errors import InputError
from genprobe.statistics import ALPHA, LEAST, RESAMPLES, SAME, Array, Interval, bootstrap

POWER = 0.8
_FEWEST = 5  # statements whose 2^5 swaps can be significant at all: mid-p 1/32
_SURE = 50.0  # differences so many standard deviations large are found, in figures that are finite


@dataclass(frozen=True)
class Power:
    """What so many statements can show, and how many would show a difference of `points`.

    n: statements at hand. needed: statements for 80 % power at the 5 % level, two-sided. power:
    that of n for `points`. Both with the interval over statements (low, high; None where values
    that are all alike give none) that not knowing how statements vary leaves. detectable: the
    smallest difference, as a share, that n show with that power, None where none is.
    """

    points: float
    n: int
    needed: int
    needed_low: int | None
    needed_high: int | None
    detectable: float | None
    power: float
    power_low: float | None
    power_high: float | None


class _Seen(NamedTuple):
    """What is seen of statements.

    The mean, and the variance of one's value around it, as shares; units of a statement, and their
    squared coefficient of variation.
    """

    mean: Array
    variance: Array
    units: Array
    uneven: Array


def power_paired(
    difference: Array, units: Array, points: float, resamples: int = RESAMPLES
) -> Power:
    """Tell the power of comparing two models on the same statements.

    difference: (statements,), hits of b minus those of a, or the sum of differences. units:
    (statements,), over how many units. resamples: for the intervals; 0 for none.

    One 0/1 unit a statement, McNemar's test: Connor 1987 (Biometrics 43:207), where the discordant
    share stays as it is and turns one way. Otherwise, the swap test, which has the power of
    Student's t-test (Hoeffding 1952, Annals of Mathematical Statistics 23:169): noncentral t, and
    for the number needed Guenther 1981 (The American Statistician 35:243); the variance of a
    statement's difference stays. A difference of D takes discordance of D at least, which is put
    in where there was less; where no difference varied, nothing shows how units of a statement
    hang together, and they are taken for one. InputError for fewer than two statements, or points
    beyond 0 to 100.
    """
    whole, once = _whole(difference), _once(np.abs(difference), units)

    def variance(seen: _Seen, d: float) -> Array:
        if once:
            return np.asarray(np.maximum(seen.variance + seen.mean**2, d) - d**2)
        least = d / seen.units - d**2 if whole else 0.0
        return np.where(seen.variance > SAME**2, np.maximum(seen.variance, least), d - d**2)

    return _power(difference, units, points, variance, 1.0, once, resamples)


def power_single(
    hits: Array,
    units: Array,
    points: float,
    limits: Interval = (0.0, 1.0),
    resamples: int = RESAMPLES,
) -> Power:
    """Tell the power of comparing one model with another that was not asked yet.

    hits: (statements,), sums of what the share is the mean of, over so many units. limits: of the
    mean. As `power_paired`, of another model that is taken to share nothing with this one, to lie
    as far off as is asked on the side where a share varies more, and there to have answers that
    hang together as much within a statement: p(1-p) times a design effect is the variance of both.
    Where all statements are alike, nothing shows how answers hang together; they are taken for one.
    No run can know these of a model that is not in it.
    """
    low, high = limits
    once = _once(hits, units)

    def variance(seen: _Seen, d: float) -> Array:
        if np.isinf(limits).any():
            return 2 * seen.variance
        here = np.clip(seen.mean, low, high)
        there = np.clip(np.where(2 * here < low + high, here + d, here - d), low, high)
        room, other = ((x - low) * (high - x) for x in (here, there))
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = np.where(seen.variance > SAME**2, seen.variance / room, 1.0)
        return np.asarray(seen.variance + other * effect)

    mean = float(hits.sum()) / max(float(units.sum()), 1.0)
    most = max(mean - low, high - mean)
    return _power(hits, units, points, variance, most, once, resamples)


def _whole(sums: Array) -> bool:
    """Say whether all sums are whole numbers, as counts of hits are."""
    return bool((np.mod(sums, 1) == 0).all())


def _once(hits: Array, units: Array) -> bool:
    """Say whether every statement has exactly one unit, which is a hit or none."""
    return bool((units == 1).all() and np.isin(hits, (0, 1)).all())


def _power(
    sums: Array,
    units: Array,
    points: float,
    variance: Callable[[_Seen, float], Array],
    most: float,
    once: bool,
    resamples: int,
) -> Power:
    """Compute how many statements show a difference, and what this number of them shows.

    sums, units: (statements,). variance: of a statement's difference, where the models differ by so
    much. most: the largest difference there can be. once: whether the test is McNemar's.
    """
    from scipy.optimize import brentq

    n, d = len(sums), points / 100
    if n < LEAST:
        raise InputError(f"{n} statement{'s' * (n != 1)} cannot show how statements vary")
    if not 0 < d < 1:
        raise InputError(
            f"{points:g} points is not a difference of shares; give a number from 0 to 100"
        )

    def spread(sums: Array, d: float) -> Array:
        now = _seen(sums, once)
        return np.asarray(variance(now, d) + d**2 * now.uneven)

    def beyond(d: float) -> float:
        return _reached(float(spread(total, d)), d, n, once) - POWER

    parts = np.column_stack([np.ones(n), units, units**2, sums, sums * units, sums**2])
    total = parts.sum(0)
    least, most, detectable = 1e-6, min(most, 1 - 1e-9), None
    if beyond(most) >= 0:
        detectable = least if beyond(least) >= 0 else float(brentq(beyond, least, most))
    now = float(spread(total, d))
    needed, power = _needed(now, d, once), _reached(now, d, n, once)
    found = Power(points, n, needed, None, None, detectable, power, None, None)
    ends = bootstrap(parts, lambda s: spread(s, d), resamples=resamples) if resamples else None
    if ends is None:
        return found
    low, high = ends
    return dataclasses.replace(
        found,
        needed_low=_needed(low, d, once),
        needed_high=_needed(high, d, once),
        power_low=_reached(high, d, n, once),
        power_high=_reached(low, d, n, once),
    )


def _seen(sums: Array, once: bool) -> _Seen:
    """Summarise statements from their sums.

    sums: (..., 6): statements, units, their squares, the sums of differences, those times units,
    and squared.
    """
    k, n, squares, total, cross, own = np.moveaxis(np.asarray(sums, float), -1, 0)
    mean = total / n
    around = np.maximum(own - 2 * mean * cross + mean**2 * squares, 0.0) * k / n**2
    # A variance of few statements is too small more often than too large, and power told from it
    # too high. The median of chi-square, about df - 2/3, makes both as frequent.
    factor = 1.0 if once else k / (k - 5 / 3)
    return _Seen(mean, around * factor, n / k, k * squares / n**2 - 1)


def _needed(variance: float, d: float, once: bool) -> int:
    """Statements that show a difference of `d` with the power `POWER`."""
    if once:
        least = (_Z[0] * (variance + d**2) ** 0.5 + _Z[1] * variance**0.5) ** 2 / d**2
    else:
        least = (_Z[0] + _Z[1]) ** 2 * variance / d**2 + _Z[0] ** 2 / 2
    return max(math.ceil(least), _FEWEST)


def _reached(variance: float, d: float, n: int, once: bool) -> float:
    """Return the power with which `n` statements show a difference of `d`."""
    from scipy.stats import nct as t_of
    from scipy.stats import t
    from statsmodels.stats.power import normal_power_het

    if n < _FEWEST:
        return 0.0
    sd = max(variance**0.5, d / _SURE)
    if once:
        return float(normal_power_het(d, n, ALPHA, (variance + d**2) ** 0.5, sd))
    least, far = t.isf(ALPHA / 2, n - 1), d / sd * n**0.5
    # Of a tail that is next to nothing, scipy may say nan.
    return float(t_of.sf(least, n - 1, far) + np.nan_to_num(t_of.cdf(-least, n - 1, far)))


_Z = (NormalDist().inv_cdf(1 - ALPHA / 2), NormalDist().inv_cdf(POWER))
