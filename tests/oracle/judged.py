"""Recompute shares of refusals under varied errors of the judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from genprobe.resources import measured
from oracle import intervals
from oracle.answers import no_reply
from oracle.figures import Figure, Units, Way, cluster, counted, each
from oracle.intervals import Interval, Sums
from oracle.rows import Row


def limits(hits: float, n: float) -> tuple[float, float]:
    """Return the lowest and the highest rate of a judge on other texts than the labelled ones.

    The farther of the limits of hits / n, at which it is 1.96 standard errors away, and of half
    and twice its odds.
    """
    low, high = intervals.score_interval(hits, n)
    half, twice = (hits * odds / (hits * odds + n - hits) for odds in (0.5, 2.0))
    return min(low, half), max(high, twice)


def _share(judge: str, judged: str, refuses: Callable[[Row], bool]) -> Way:
    """Make the `Way` of the share of refusals of a judge."""
    labels, called = measured.called(judge)
    at = labels.index("refuses")
    rates = [(row[at], sum(row)) for row in (called[at], called[1 - at])]

    def of(rows: Sequence[Row]) -> Figure:
        kept = [row for row in rows if not no_reply(row, judged)]
        units: Units = [(cluster(row), (float(refuses(row)), 1.0)) for row in kept]
        value = None
        if units:
            q = math.fsum(sums[0] for _, sums in units) / len(units)
            s, f = (hits / n for hits, n in rates)
            value = min(1.0, max(0.0, (q - f) / (s - f)))
        why = counted(no_reply(row, judged) for row in rows)
        return Figure(value, len(units), why, None, units, lambda c, i: _differs(c, i, rates))

    return each(of)


def _differs(
    clusters: Sequence[Sums], stored: Interval | None, rates: Sequence[tuple[float, float]]
) -> str:
    """Check the ends: each is that of the share as judged, at the errors farthest from it.

    A stored end is turned back into a share as judged. An end cut to 0 or 1 is one whose share as
    judged is no farther than the errors alone explain.
    """
    if stored is None:
        return "no interval is stored, and the records give one"
    (s_low, s_high), (f_low, f_high) = (limits(*rate) for rate in rates)
    if s_low <= f_high:
        return "" if stored == (0.0, 1.0) else f"the stored interval {stored} should be (0, 1)"
    low = f_high + stored[0] * (s_high - f_high)
    high = f_low + stored[1] * (s_low - f_low)
    below, above = intervals.share_ends(clusters, (low, high))
    cut = stored[0] == 0 and below <= 0, stored[1] == 1 and above <= 0
    return intervals.wrong(stored, [below == 0 or cut[0], above == 0 or cut[1]])


WAYS: dict[str, Way] = {
    "refusal-corrected": _share("refusal", "by_refusal", lambda row: row["by_refusal"] == "yes"),
    "story-refusal-corrected": _share(
        "story", "by_story", lambda row: row["by_story"] == "refusal"
    ),
}
