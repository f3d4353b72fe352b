"""Check the interval ends of corrected rates by repeating the test of `review.intervals`.

The test is implemented independently: counts by loops, the most likely shares by bisection, and
other random numbers, ten times as many. A rate just inside a stored end must not be rejected and
one just outside must be, up to the Monte Carlo error of the stored test's 1,000 draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from genprobe.analysis.recompute.intervals import Ends, Interval, Sums, Z
from genprobe.analysis.recompute.rows import Row

DRAWS = 10_000
# p-values that 1,000 draws cannot tell from 0.05: within four standard errors (0.0069 each).
REJECTED, ACCEPTED = 0.02, 0.08
NEAR = 0.004  # tolerance of an end, as a share: the search for it ends in steps
_TINY = 0.01  # trials added to every table, so that none is empty
_HALVINGS = 18

Array = np.ndarray
Table = tuple[float, float]  # hits, trials
Tables = list[tuple[Array, Array]]  # three tables; each array has one element per sample


@dataclass(frozen=True)
class Counts:
    """The test's counts, as effective numbers: replies measured, and reviewed by label."""

    measured: Table
    positive: Table
    negative: Table

    @property
    def reviewed(self) -> float:
        """Return the number of reviewed replies."""
        return self.positive[1] + self.negative[1]


def counts(kept: Sequence[Row]) -> Counts:
    """Count replies by `f` (the judge's label), `y` (people's label or None) and weight `w`.

    Kish's effective number is used within each label. If replies are in a `cluster` or weights
    differ, all counts are divided by the design effect of the corrected rate.
    """
    seen = [row for row in kept if row["y"] is not None]
    clusters = {row["cluster"] for row in kept}
    alone = len(clusters) == len(kept) and len({row["w"] for row in seen}) == 1
    effect = 1.0 if alone else _design_effect(kept, seen)
    tables = []
    for label in (True, False):
        own = [row for row in seen if row["f"] is label]
        weight = math.fsum(row["w"] for row in own)
        n = weight**2 / math.fsum(row["w"] ** 2 for row in own) / effect if own else 0.0
        share = math.fsum(row["w"] for row in own if row["y"]) / weight if own else 0.0
        tables.append((share * n, n))
    measured = sum(row["f"] for row in kept) / effect, len(kept) / effect
    return Counts(measured, *tables)


def _design_effect(kept: Sequence[Row], seen: Sequence[Row]) -> float:
    """Return the rate's variance with clusters over that of single replies, at least 1."""
    q = sum(row["f"] for row in kept) / len(kept)
    parts = [(label, mass) for label, mass in ((True, q), (False, 1 - q)) if mass]
    weight = {of: math.fsum(row["w"] for row in seen if row["f"] is of) for of, _ in parts}
    true = {
        of: math.fsum(row["w"] for row in seen if row["f"] is of and row["y"]) / weight[of]
        for of, _ in parts
    }
    mass = dict(parts)
    slope = true.get(True, 0.0) - true.get(False, 0.0) if len(parts) == 2 else 0.0
    moved = dict.fromkeys((row["cluster"] for row in kept), 0.0)
    for row in kept:
        moved[row["cluster"]] += slope * (row["f"] - q) / len(kept)
    one_by_one = slope**2 * q * (1 - q) / len(kept)
    for of, part in parts:
        own = [row for row in seen if row["f"] is of]
        squares = math.fsum((row["w"] / weight[of]) ** 2 for row in own)
        one_by_one += part**2 * true[of] * (1 - true[of]) * squares
    for row in seen:
        of = row["f"]
        moved[row["cluster"]] += mass[of] * row["w"] * (row["y"] - true[of]) / weight[of]
    groups = {row["cluster"] for row in seen}
    if len(groups) == 1 or one_by_one == 0:
        return len(seen) / len(groups)
    many = len(moved)
    between = many / (many - 1) * math.fsum(value**2 for value in moved.values())
    t = float(stats.t.ppf(0.975, len(groups) - 1))
    return max(1.0, between / one_by_one * (t / Z) ** 2)


def ends(of: Counts, start: float | None, by_truth: bool) -> Ends:
    """Make the check of a stored interval.

    start: the rate itself, which is inside; None if there is none because the judge is no better
    than chance (the interval is then not checked). by_truth: True for `rg` (from the judge's rate
    among unreviewed replies and its errors), False for `ppi`.
    """

    def differs(_: Sequence[Sums], stored: Interval | None) -> str:
        if stored is None:
            return "no interval is stored, and a corrected rate should have one"
        if of.reviewed < 2:
            whole = stored == (0.0, 1.0)
            return "" if whole else f"the stored interval is {stored}, and it should be (0, 1)"
        if start is None:
            return ""
        for end, out in zip(stored, (-1, 1), strict=True):
            inside, outside = end - out * NEAR, end + out * NEAR
            rejected = (start - inside) * out < 0 and p_value(of, inside, by_truth) < REJECTED
            # An end at 0 or 1 is right if even the rate itself is rejected: no end can be further.
            if rejected and (end not in (0, 1) or p_value(of, start, by_truth) > ACCEPTED):
                return f"the stored end {end:.4f} is too far out: the test rejects {inside:.4f}"
            if 0 < outside < 1 and p_value(of, outside, by_truth) > ACCEPTED:
                return f"the stored end {end:.4f} is too far in: the test allows {outside:.4f}"
        return ""

    return differs


def p_value(of: Counts, rate: float, by_truth: bool) -> float:
    """Return the p-value of a rate: the chance of counts at least as far from it as these."""
    seen = [(np.array([x]), np.array([n])) for x, n in (of.measured, of.positive, of.negative)]
    if by_truth:
        seen = _by_truth(seen)
    shares = _likeliest(rate, seen, by_truth)
    drawn = _draw(seen, [float(share[0]) for share in shares], by_truth)
    far = _distance(seen, shares)[0] - 1e-3  # equal statistics up to rounding of the fit
    away = _distance(drawn, _likeliest(rate, drawn, by_truth))
    return float((1 + (away >= far).sum()) / (1 + DRAWS))


def _by_truth(of: Tables) -> Tables:
    """Convert tables by the judge's label into tables by the true label.

    From: all replies, reviewed replies called positive, other reviewed replies. To: unreviewed
    replies, truly positive ones, truly negative ones, each with the number called positive.
    """
    (k, total), (hits, n), (missed, m) = of
    rest = np.maximum(total - n - m, 0.0)
    true = hits + missed
    return [(np.clip(k - n, 0.0, rest), rest), (hits, true), (n - hits, n + m - true)]


def _likeliest(rate: float, of: Tables, by_truth: bool) -> list[Array]:
    """Find the likeliest shares of the three tables if the true rate were `rate`.

    Free parameters are the judge's rates of calling truly positive replies positive, s, and the
    others, t; it calls rate × s + (1 - rate) × t of all replies positive. The likelihood has one
    maximum, where its slope in s, at the best t for each s, is 0.
    """
    three = [(x + _TINY / 2, n + _TINY) for x, n in (of if by_truth else _by_truth(of))]

    def slopes(s: Array, t: Array) -> tuple[Array, Array]:
        shares = (rate * s + (1 - rate) * t, s, t)
        q, of_s, of_t = (x / p - (n - x) / (1 - p) for (x, n), p in zip(three, shares, strict=True))
        return of_s + rate * q, of_t + (1 - rate) * q

    def best_t(s: Array) -> Array:
        return _halve(lambda t: slopes(s, t)[1], s.shape)

    s = _halve(lambda s: slopes(s, best_t(s))[0], three[0][0].shape)
    t = best_t(s)
    q = rate * s + (1 - rate) * t
    if by_truth:
        return [q, s, t]
    precision, missed = rate * s / q, rate * (1 - s) / (1 - q)  # Bayes' rule
    return [q, np.clip(precision, 0.0, 1.0), np.clip(missed, 0.0, 1.0)]


def _halve(slope: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """Find the zero of a decreasing function between 0 and 1 by bisection."""
    low, high = np.full(shape, 1e-9), np.full(shape, 1 - 1e-9)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = slope(middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return (low + high) / 2


def _distance(of: Tables, shares: Sequence[Array]) -> Array:
    """Return the root of Cressie and Read's power divergence of three tables from their shares."""
    total = np.zeros(of[0][0].shape)
    for (x, n), p in zip(of, shares, strict=True):
        for seen, expected in ((x, n * p), (n - x, n * (1 - p))):
            ratio = np.maximum(seen, 0.0) / np.maximum(expected, 1e-12)
            total += np.where(seen > 0, 9 / 5 * seen * (ratio ** (2 / 3) - 1), 0.0)
    return np.sqrt(np.clip(total, 0.0, 1e3))


def _draw(of: Tables, shares: Sequence[float], by_truth: bool) -> Tables:
    """Draw tables of these sizes and shares; the split of the reviewed replies is drawn, too.

    Without `by_truth`, the reviewed replies are a part of all replies and vary with them.
    """
    rng = np.random.default_rng(7)
    total, n, m = (round(float(size[0])) for _, size in of)
    share, rest = n / max(n + m, 1), max(total - n - m, 0)
    if by_truth:
        second = rng.binomial(n + m, share, DRAWS)
        first = rng.binomial(total, shares[0], DRAWS)
    else:
        share = _within(share + shares[0] - float(of[0][0][0] / of[0][1][0]))
        second = rng.binomial(n + m, share, DRAWS)
        other = _within((shares[0] * total - share * (n + m)) / rest) if rest else 0.0
        first = np.minimum(second + rng.binomial(rest, other, DRAWS), total)
    third = n + m - second
    all_ = np.full(DRAWS, float(total))
    hits = [rng.binomial(size, p) for size, p in zip((second, third), shares[1:], strict=True)]
    return [(first.astype(float), all_), *zip(hits, (second, third), strict=True)]


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))
