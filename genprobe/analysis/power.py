"""Compute the power of a comparison of models: what the statements show, how many are needed."""

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
_SURE = 50.0  # standard deviations at which a difference is capped, so that all figures are finite


@dataclass(frozen=True)
class Power:
    """The difference that n statements show, and the number that would show `points`.

    n: statements at hand. needed: statements for 80 % power at the 5 % level, two-sided. power: of
    n statements for `points`. Both have an interval over statements (low, high), because the
    variance between statements is only estimated; None if all values are alike. detectable: the
    smallest difference, as a share, that n statements show with 80 % power; None if there is none.
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
    """A summary of the statements.

    mean: of the values, a share. variance: of one statement's value around the mean. units: the
    mean number per statement. uneven: the squared coefficient of variation of the units.
    """

    mean: Array
    variance: Array
    units: Array
    uneven: Array


def power_paired(
    difference: Array, units: Array, points: float, resamples: int = RESAMPLES
) -> Power:
    """Compute the power of comparing two models on the same statements.

    difference: (statements,), hits of b minus hits of a, or the sum of differences. units:
    (statements,), the number of units of each statement. resamples: for the intervals; 0 for none.

    With one 0/1 unit per statement the test is McNemar's: Connor 1987 (Biometrics 43:207), assuming
    that the share of discordant statements stays the same and only their direction changes.
    Otherwise it is the swap test, which has the power of Student's t-test (Hoeffding 1952, Annals
    of Mathematical Statistics 23:169): noncentral t, and Guenther 1981 (The American Statistician
    35:243) for the number needed; the variance of a statement's difference is assumed to stay the
    same. A difference of D needs a discordance of at least D; where the data have less, D is used.
    If no difference varies, nothing shows how the units of a statement correlate, and they are
    treated as one. Raises InputError for fewer than two statements, or points outside 0 to 100.
    """
    once = _once(np.abs(difference), units)
    whole = bool((np.mod(difference, 1) == 0).all())  # as counts of hits are

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
    """Compute the power of comparing one model with another that has not been asked yet.

    hits: (statements,), sums of the values whose mean is the share. units: (statements,), the
    number of values in each sum. limits: of the mean.

    As `power_paired`, with assumptions about the other model: its answers are independent of this
    one's; its share is at the requested distance, on the side where a share varies more; and its
    answers correlate as much within a statement, so p(1-p) times one design effect is the variance
    of both. If all statements are alike, nothing shows how answers correlate, and those of a
    statement are treated as one. No run can show this about a model that is not in it.
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


def _once(hits: Array, units: Array) -> bool:
    """Return whether every statement has exactly one unit, with the value 0 or 1."""
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
    """Compute how many statements show a difference, and the power of the statements at hand.

    sums, units: (statements,). variance: (summary, d) -> variance of a statement's difference if
    the models differ by d. most: the largest possible difference. once: whether the test is
    McNemar's.
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

    sums: (..., 6): numbers of statements, units, and squared units; sums of differences, of
    differences times units, and of squared differences.
    """
    k, n, squares, total, cross, own = np.moveaxis(np.asarray(sums, float), -1, 0)
    mean = total / n
    around = np.maximum(own - 2 * mean * cross + mean**2 * squares, 0.0) * k / n**2
    # A variance estimated from few statements is too small more often than too large, and the power
    # then too high. The median of chi-square, about df - 2/3, makes both equally frequent.
    factor = 1.0 if once else k / (k - 5 / 3)
    return _Seen(mean, around * factor, n / k, k * squares / n**2 - 1)


def _needed(variance: float, d: float, once: bool) -> int:
    """Return how many statements show a difference of `d` with the power `POWER`."""
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
    # scipy may return nan for a vanishing tail.
    return float(t_of.sf(least, n - 1, far) + np.nan_to_num(t_of.cdf(-least, n - 1, far)))


_Z = (NormalDist().inv_cdf(1 - ALPHA / 2), NormalDist().inv_cdf(POWER))
