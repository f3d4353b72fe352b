"""Test the difference of two figures: what `compare`, the ranking and the gate share.

Two figures are about the same statements, which are a sample, and perhaps about the same wordings,
which may be one, too. Each class below is one kind of figure; all give an interval, one-sided ends
and a p-value:

- `OfStatements`, a mean over units: a bootstrap over statements with invented ones at both ends of
  the scale of a difference (`statistics.mean_interval`), exact.
- `OfPanel`, a mean over wordings like these: the same over statements and wordings (`two_way`).
- `OfSums`, any other function of sums: the same by draws.
- `OfIntervals`, a figure corrected by the measured errors of a reader: from the intervals of the
  two figures, which include these errors (Zou & Donner 2008, Statistics in Medicine 27:1693).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from genprobe.metrics import Metric
from genprobe.statistics import (
    ALPHA,
    COLUMNS,
    LEVEL,
    Array,
    Interval,
    mean_interval,
    p_at_most,
    spread_weights,
    two_way_end,
    two_way_interval,
    two_way_p,
    upper_end,
    usual_size,
)

ONE_SIDED = 1 - ALPHA  # level of a one-sided end
DRAWS = 8_000  # of `OfSums`


def least(n: int) -> float:
    """Return the smallest margin that n statements (or wordings) rule out if none of them changes.

    It is the one-sided upper limit of no hit in n (`statistics.upper_end`), a share of the scale.
    """
    return float(1 - ALPHA ** (1 / n))


def fewest(margin: float) -> int:
    """Return how many statements (or wordings) rule out a margin between 0 and 1: see `least`."""
    return math.floor(math.log(ALPHA) / math.log1p(-margin)) + 1


class Gap(ABC):
    """The second of two figures minus the first.

    value: the difference. width: its largest possible size. method: the interval, in signatures.
    """

    value: float
    width: float
    method: str

    @abstractmethod
    def interval(self, level: float = LEVEL) -> Interval | None:
        """Compute the interval of the difference; None if there is none."""

    @abstractmethod
    def upper(self) -> float:
        """Compute the one-sided upper confidence limit, 95 %."""

    @abstractmethod
    def reverse(self) -> Gap:
        """Return the first figure minus the second."""

    @abstractmethod
    def p(self, most: float) -> float:
        """Compute the p-value for the hypothesis that the difference is at most `most`."""

    def lower(self) -> float:
        """Compute the one-sided lower confidence limit, 95 %."""
        return -self.reverse().upper()

    def two_sided(self) -> float:
        """Compute the p-value for the hypothesis that there is no difference."""
        return min(1.0, 2 * min(self.p(0.0), self.reverse().p(0.0)))


def as_one(own: Array) -> tuple[Array, Array]:
    """Write the difference of two ratios of sums as a mean over statements.

    own: (statements, 4), sum and size of the first figure, and of the second. Returns (statements,)
    sums and sizes; sum(sums) / sum(sizes) is the difference, exactly. Where both figures count the
    same units, the sums are differences; else they also have what a statement contributes to the
    error of each ratio (the delta method).
    """
    (a, n, b, m), (_, total_n, _, total_m) = own.T, own.sum(0)
    both = (total_n + total_m) / 2
    middle = (a.sum() / total_n + b.sum() / total_m) / 2
    sums = (b - middle * m) * (both / total_m) - (a - middle * n) * (both / total_n)
    return sums, (m * (both / total_m) + n * (both / total_n)) / 2


@dataclass(frozen=True)
class OfStatements(Gap):
    """The difference of two means. own: as in `as_one`."""

    own: Array
    width: float
    method = "anchored"

    @property
    def value(self) -> float:  # type: ignore[override]
        a, n, b, m = self.own.sum(0)
        return float(b / m - a / n)

    @cached_property
    def _share(self) -> tuple[Array, Array]:
        """Return sums and sizes on a scale from 0 (a difference of -width) to 1."""
        sums, sizes = as_one(self.own)
        return (sums / self.width + sizes) / 2, sizes

    @cached_property
    def _usual(self) -> float:
        """Return the size of an invented statement: it moves either figure as a usual one does."""
        _, n, _, m = self.own.T
        both = (n.sum() + m.sum()) / 2
        return max(usual_size(size) * both / size.sum() for size in (n, m))

    def _points(self, share: float) -> float:
        return self.width * (2 * share - 1)

    def interval(self, level: float = LEVEL) -> Interval:
        low, high = map(self._points, mean_interval(*self._share, level, self._usual))
        return min(low, self.value), max(high, self.value)

    def upper(self) -> float:
        return self._points(upper_end(*self._share, ONE_SIDED, self._usual))

    def reverse(self) -> OfStatements:
        return OfStatements(self.own[:, [2, 3, 0, 1]], self.width)

    def p(self, most: float) -> float:
        return p_at_most((most / self.width + 1) / 2, *self._share, self._usual)


@dataclass(frozen=True)
class OfPanel(Gap):
    """The difference of two means over wordings. own: (statements, wordings, 4), shares.

    The value is that of the two figures, each over its own wordings. There is no interval if one
    of the two has no reply in some wording, or if there are fewer than three wordings.
    """

    own: Array
    width = 1.0
    method = "twoway"

    @property
    def value(self) -> float:  # type: ignore[override]
        a, b = means(self.own)
        return np.nan if a is None or b is None else b - a

    @property
    def _tables(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        a, n, b, m = np.moveaxis(self.own, -1, 0)
        return (b, m), (a, n)

    def known(self) -> bool:
        """Tell whether both figures are over the same wordings, and these are enough."""
        there = self.own[..., [1, 3]].sum(0) > 0
        return bool((there[:, 0] == there[:, 1]).all() and there.sum(0)[0] >= COLUMNS)

    def interval(self, level: float = LEVEL) -> Interval | None:
        return two_way_interval(*self._tables, level) if self.known() else None

    def upper(self) -> float:
        found = two_way_end(*self._tables, ONE_SIDED) if self.known() else None
        return self.width if found is None else found

    def reverse(self) -> OfPanel:
        return OfPanel(self.own[..., [2, 3, 0, 1]])

    def p(self, most: float) -> float:
        found = two_way_p(most, *self._tables) if self.known() else None
        return 1.0 if found is None else found


def means(own: Array) -> tuple[float | None, float | None]:
    """Return the means over wordings of two means, each over the wordings that have units.

    own: (statements, wordings, 4), as in `OfPanel`. None if there are no units.
    """
    a, n, b, m = np.moveaxis(own.sum(0), -1, 0)
    first, second = (
        float(np.mean(k[size > 0] / size[size > 0])) if size.any() else None
        for k, size in ((a, n), (b, m))
    )
    return first, second


@dataclass(frozen=True)
class OfSums(Gap):
    """The difference of two figures that are functions of sums.

    metric: it must have `extremes`. sums: (2, statements, statistics), of the first and the second
    figure. sizes: (2, statements), the units that count. An invented statement has the statistics
    of the highest, or of the lowest, value.
    """

    metric: Metric
    sums: Array
    sizes: Array
    method = "weighted"

    @property
    def width(self) -> float:  # type: ignore[override]
        return self.metric.limits[1] - self.metric.limits[0]

    @property
    def value(self) -> float:  # type: ignore[override]
        a, b = (float(self.metric.value(side.sum(0))) for side in self.sums)
        return b - a

    def _drawn(self, above: float, below: float) -> Array:
        """Draw the difference. above, below: the weights of the invented statements."""
        both = np.concatenate([*self.sums, self.sizes.T], axis=1)
        rows, times = np.unique(both, axis=0, return_counts=True)
        weights = spread_weights([above, below, *times], DRAWS)
        usual = (self.sizes**2).sum(1) / np.maximum(self.sizes.sum(1), 1.0)
        k = self.sums.shape[2]
        lowest, highest = (np.asarray(end, float) for end in self.metric.extremes)
        values = []
        for side, ends in enumerate(((lowest, highest), (highest, lowest))):
            parts = rows[:, side * k : (side + 1) * k]
            drawn = weights[:, 2:] @ parts + weights[:, :2] @ (usual[side] * np.array(ends))
            values.append(np.asarray(self.metric.value(drawn)))
        return values[1] - values[0]

    def interval(self, level: float = LEVEL) -> Interval:
        low, high = np.quantile(self._drawn(0.5, 0.5), [(1 - level) / 2, (1 + level) / 2])
        return min(float(low), self.value), max(float(high), self.value)

    def upper(self) -> float:
        return max(float(np.quantile(self._drawn(1.0, 0.0), ONE_SIDED)), self.value)

    def reverse(self) -> OfSums:
        return OfSums(self.metric, self.sums[::-1], self.sizes[::-1])

    def p(self, most: float) -> float:
        return max(float((self._drawn(0.5, 0.5) <= most).mean()), 1 / DRAWS)


@dataclass(frozen=True)
class OfIntervals(Gap):
    """The difference of two figures with intervals, taken as independent (it is too wide, then).

    a, b: the figures, each with its 95 % interval: value, low, high.
    """

    a: tuple[float, float, float]
    b: tuple[float, float, float]
    width: float
    method = "intervals"

    @property
    def value(self) -> float:  # type: ignore[override]
        return self.b[0] - self.a[0]

    def _reach(self) -> Interval:
        """Return how far the 95 % interval reaches below the value, and above it."""
        (a, low_a, high_a), (b, low_b, high_b) = self.a, self.b
        return float(np.hypot(b - low_b, high_a - a)), float(np.hypot(high_b - b, a - low_a))

    def interval(self, level: float = LEVEL) -> Interval:
        below, above = (reach * _normal(level) / _normal(LEVEL) for reach in self._reach())
        return max(-self.width, self.value - below), min(self.width, self.value + above)

    def upper(self) -> float:
        return self.interval(2 * ONE_SIDED - 1)[1]

    def reverse(self) -> OfIntervals:
        return OfIntervals(self.b, self.a, self.width)

    def p(self, most: float) -> float:
        reach = self._reach()[self.value < most]
        away = self.value - most
        return NormalDist().cdf(-away / reach * _normal(LEVEL)) if reach else float(away <= 0)


def _normal(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
