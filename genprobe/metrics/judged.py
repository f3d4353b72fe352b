"""Correct shares of stances and refusals for the errors of their judge, with its uncertainty.

A judge that misreads one text in five shifts every share, however many replies there are.
`prompts/measured.toml` (`[….called]`) counts its labels on blind texts that people labelled: of the
texts that truly are for the statement, how many it labelled for, against, both, neither. With the
true shares p and these probabilities M, a text is labelled l with probability

    sum over j of p(j) × M(j, l).

The corrected shares are the most likely p, with M as measured. The interval holds the shares that a
likelihood-ratio test does not reject, with all other shares and M free: the labelled texts are part
of the likelihood, so few of them make it wide. Replies to one statement count for less than
independent ones, by their design effect. The errors are assumed to be those on the blind texts, in
every language and frame; if they are not, only a review of the run helps (`score --reviewed`).

Method: misclassification with an estimated matrix (Buonaccorsi 2010, Measurement Error, ch. 2-3),
profile likelihood by the EM algorithm (Dempster, Laird & Rubin 1977, J. Royal Statistical Society B
39:1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from genprobe.metrics import Metric, Units, cluster, no_reply
from genprobe.metrics.corrected import design_weight
from genprobe.metrics.rates import no_essay
from genprobe.records import digest
from genprobe.resources import measured
from genprobe.statistics import LEVEL, Array, Interval

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.records import Score

SHARES = 51  # points in the grid of shares that the interval is searched on
REFINED = 4  # times that the step at an end of the interval is divided by ten
STEPS = 200  # of the EM algorithm if M is estimated, too
ROUNDS, PLACES = 1000, 4  # steps with M as measured; decimals of the share
NOTE = (
    "Corrected for the errors of the judge on labelled texts, with their uncertainty; the "
    "uncorrected share is beside it."
)


def likeliest(counts: Array, called: Array, at: int, fixed: Array) -> tuple[Array, Array]:
    """Maximise the likelihood with the share of one label fixed.

    counts: (labels,) texts by the judge's label. called: (labels, labels) labelled texts, by true
    label (rows) and the judge's label (columns). at: number of the label. fixed: (n,) its shares;
    NaN leaves it free. Returns the shares (n, labels) and the log-likelihoods (n,).
    """
    size = len(counts)
    start = (called + 0.5) / (called + 0.5).sum(1, keepdims=True)
    chances = np.repeat(start[None], len(fixed), 0)
    shares = np.full((len(fixed), size), 1 / size)
    free = np.isnan(fixed)
    others = np.arange(size) != at

    def hold(found: Array) -> Array:
        rest = found[:, others]
        scaled = rest / np.maximum(rest.sum(1, keepdims=True), 1e-300)
        kept = found / np.maximum(found.sum(1, keepdims=True), 1e-300)
        kept[~free, at] = fixed[~free]
        kept[np.ix_(~free, others)] = scaled[~free] * (1 - fixed[~free, None])
        return kept

    shares = hold(shares)
    for _ in range(STEPS):
        joint = shares[:, :, None] * chances
        part = counts * joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)
        shares = hold(part.sum(2) + 1e-12)
        chances = called + part
        chances = chances / np.maximum(chances.sum(2, keepdims=True), 1e-300)
    seen = np.log(np.maximum((shares[:, :, None] * chances).sum(1), 1e-300))
    logs = (counts * seen).sum(1)
    logs += (called * np.log(np.maximum(chances, 1e-300))).sum((1, 2))
    return shares, logs


def estimate(sums: Array, called: Array, at: int) -> Array:
    """Return the corrected share of one label.

    sums: (..., labels) counts by the judge's label. called, at: as in `likeliest`. Returns (...),
    NaN where there are no counts.
    """
    chances = called / called.sum(1, keepdims=True)
    counts = sums.reshape(-1, sums.shape[-1])
    shares = np.full(counts.shape, 1 / counts.shape[1])
    for _ in range(ROUNDS):
        seen = np.maximum(shares @ chances, 1e-300)
        shares = shares * ((counts / seen) @ chances.T)
        shares = shares / np.maximum(shares.sum(1, keepdims=True), 1e-300)
    found = np.where(counts.sum(1) > 0, np.round(shares[:, at], PLACES), np.nan)
    return np.asarray(found.reshape(sums.shape[:-1]))


def interval(units: Array, called: Array, at: int, level: float = LEVEL) -> Interval | None:
    """Compute the interval of the corrected share of one label.

    units: (clusters, labels) counts of `Units`, summed within each cluster. called, at: as in
    `likeliest`.
    """
    from scipy.stats import chi2

    counts = units.sum(0)
    if not counts.sum():
        return None
    weighed = counts * design_weight(units.sum(1), units[:, at])
    fixed = np.append(np.linspace(0, 1, SHARES), np.nan)
    logs = likeliest(weighed, called, at, fixed)[1]
    beyond = logs[:-1] - (logs.max() - chi2.ppf(level, 1) / 2)
    value = float(estimate(counts, called, at))
    steps, inside = fixed[:-1], np.flatnonzero(beyond >= 0)
    # The interval may lie between two shares of the grid, but it holds the most likely one.
    below = steps[inside[0]] if len(inside) else value
    above = steps[inside[-1]] if len(inside) else value
    outer = steps[steps < below], steps[steps > above]
    limit = logs.max() - chi2.ppf(level, 1) / 2

    def end(within: float, beyond: Array) -> float:
        outside = float(beyond[np.abs(beyond - within).argmin()]) if len(beyond) else within
        for _ in range(REFINED):
            shares = np.linspace(within, outside, 11)
            kept = likeliest(weighed, called, at, shares)[1] >= limit
            kept[0] = True
            last = int(np.flatnonzero(kept)[-1])
            within, outside = float(shares[last]), float(shares[min(last + 1, 10)])
        return within

    return min(end(below, outer[0]), value), max(end(above, outer[1]), value)


def _units(
    outcomes: pd.DataFrame, by: list[str], label: pd.Series, reason: pd.Series, labels: list[str]
) -> Units:
    called = label.astype(object).fillna("").to_numpy()
    stats = np.column_stack([called == one for one in labels]).astype(float)
    return Units(outcomes[by], cluster(outcomes), reason, stats)


def _stances(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count the essays that are not refusals, by the judge's label."""
    labels, _ = measured.called("stance")
    return _units(outcomes, by, outcomes["stance"], no_essay(outcomes), labels)


def _refusals(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count replies to requests for essays, by whether the judge labels them refusals."""
    refused = outcomes["refused"].map({True: "refuses", False: "answers"})
    labels, _ = measured.called("refusal")
    return _units(outcomes, by, refused, no_reply(outcomes, "refused"), labels)


def _refused_stories(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count replies to requests for stories, by whether the judge labels them refusals."""
    refused = (outcomes["unusable_why"] == "refusal").map({True: "refuses", False: "answers"})
    labels, _ = measured.called("story")
    return _units(outcomes, by, refused, no_reply(outcomes, "usable"), labels)


def _metric(name: str, title: str, judge: str, label: str, place: int) -> Metric:
    (labels, called), version = measured.called(judge), measured.version(judge)
    at, known = labels.index(label), np.array(called, float)
    units, unit, needs = {
        "stance": (_stances, "essays", ("stance",)),
        "refusal": (_refusals, "replies", ("refused", "stance")),
        "story": (_refused_stories, "told", ("usable", "unusable_why")),
    }[judge]
    return Metric(
        name=f"{name}-corrected",
        title=f"{title}, corrected for the judge's errors",
        unit=unit,
        units=units,
        value=partial(estimate, called=known, at=at),
        interval=partial(interval, called=known, at=at),
        method=f"lr95+{digest([version, called], 8)}",
        needs=(*needs, "statement", "status"),
        pairable=False,
        place=place,
        note=NOTE,
        version="2",
    )


# name, what it is, judge, label, place among the measures
_SHARES = (
    ("refusal", "share of essays that are refused", "refusal", "refuses", 39),
    ("story-refusal", "share of stories that are refused", "story", "refuses", 88),
    ("argues-for", "share of essays that argue for the statement", "stance", "for", 149),
    ("argues-against", "share of essays that argue against it", "stance", "against", 159),
    ("argues-both", "share of essays that argue on both sides", "stance", "both", 169),
)
METRICS = tuple(_metric(*share) for share in _SHARES if measured.has_errors(share[2]))


def outdated(scores: Iterable[Score]) -> Iterator[str]:
    """Yield a line for corrected shares if another judge read the replies than the measured one.

    A judge of another version, or with other word lists, is another judge.
    """
    judges = {f"{name}-corrected": judge for name, _, judge, *_ in _SHARES}
    found: dict[tuple[str, str], dict[str, None]] = {}
    for score in scores:
        if judge := judges.get(score.metric):
            # A long signature is shortened, and has "-" for "+".
            by = re.search(rf"judge\.{judge}:({judge}@[\d.]+)[+-](\w{{8}})", score.signature)
            read = f"{by[1]}+{by[2]}" if by else "another judge"
            if read != measured.version(judge):
                found.setdefault((judge, read), {})[score.metric] = None
    for (judge, read), names in found.items():
        yield (
            f"{', '.join(names)}: {read} read these replies, and the errors are those of "
            f"{measured.version(judge)}: have that one read them (`genprobe judge RUN`), or review "
            "a sample"
        )
