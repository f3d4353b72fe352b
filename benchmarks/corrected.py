"""Measure how often intervals of rates corrected for a judge's errors hold the true rate.

    OMP_NUM_THREADS=1 python benchmarks/corrected.py [--simulations 200] [--only NAME]

Corrected by a review (`ppi`, and `judge-accuracy`); beside them the interval of the measured rate,
which takes the judge for right. All in % of the simulations; mean widths in points.

replies     a simple random sample of 400 independent replies is reviewed. The judge is equally
            accurate for positive and negative replies.
designs     2,000 replies, 26 % of them truly positive; the review is no simple random sample:
            `label`: by the judge's label, in proportion to the square root, as `review export`
            draws; `language`: the same number from each of two languages, of which one is four
            times as frequent, with fewer positive replies and more errors; `clusters`: whole
            templates of five stories that tend to share the truth and the judge's errors;
            `contrasts`: as label, but five replies of a pair are alike in that way.
statements  few statements are asked many times; drawn as `review export` draws. The judge's errors
            are independent, or alike within a statement.
wordings    the rate over wordings like these, which come from six distributions.
reviewers   three people read each reply of the sample. They err independently; or their differences
            are real, and the truth is what most people would say.
templates   NegRate: 150 statements in two wordings, five stories of each, read by a judge who is
            right about each story with the given accuracy; whole templates are reviewed.

Corrected by errors on other texts (`band`): refusals of essays in 100 statements with five replies
each, by a judge whose sensitivity and false alarms on the run differ from those on the labelled
texts. `negrate.py` does the same for NegRate.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import betabinom, binom

from genprobe.review import sample
from genprobe.review.correction import Corrected, Read, correct, doubt
from genprobe.statistics import Array

STATEMENTS, STORIES = 150, 5
NEGATIVE = (0.8, 1.6)  # beta distribution of a statement's share of negative stories
NEGRATE = float(betabinom.sf(STORIES // 2, STORIES, *NEGATIVE))
KINDS = ("label", "language", "clusters", "contrasts")
MEASURED = 2000  # replies of a design
SHARE = 0.26  # of them truly positive
Case = tuple[str, float, float | None]  # what is simulated, the true rate, the judge's accuracy


def drawn(rng: np.random.Generator, label: Array, n: int) -> tuple[Array, Array]:
    """Draw n replies as `review export` does; returns which, and their weights."""
    seen, weight = np.zeros(len(label), bool), np.ones(len(label))
    strata = [part for part in (np.flatnonzero(label), np.flatnonzero(~label)) if len(part)]
    for part, size in zip(strata, sample._shares([*map(len, strata)], n), strict=True):
        chosen = rng.choice(part, int(size), replace=False)
        seen[chosen], weight[chosen] = True, len(part) / size
    return seen, weight


def replies(rng: np.random.Generator, accuracy: float, share: float, n: int) -> Read:
    """Simulate a simple random review of n of 400 independent replies."""
    true = rng.random(400) < share
    label = np.where(rng.random(400) < accuracy, true, ~true)
    y = np.where(rng.permutation(400) < n, true, np.nan)
    return Read(label, y, np.ones(400), np.arange(400))


def design(kind: str, rng: np.random.Generator, n: int, accuracy: float) -> Read:
    """Simulate a review of MEASURED replies; see the head of this file."""
    each = 5 if kind in ("clusters", "contrasts") else 1
    groups = MEASURED // each
    cluster = np.repeat(np.arange(groups), each)
    wrong = 1 - accuracy
    common = np.arange(MEASURED) < 0.8 * MEASURED
    if kind == "language":
        share, errs = np.where(common, 0.2, 0.5), np.where(common, 1.125, 0.5) * wrong
    elif each > 1:
        share = rng.beta(2 * SHARE, 2 * (1 - SHARE), groups)[cluster]
        errs = rng.beta(2 * wrong, 2 * accuracy, groups)[cluster]
    else:
        share, errs = np.full(MEASURED, SHARE), np.full(MEASURED, wrong)
    true = rng.random(MEASURED) < share
    label = true ^ (rng.random(MEASURED) < errs)
    weight = np.ones(MEASURED)
    if kind == "clusters":
        seen = np.isin(cluster, rng.choice(groups, n // each, replace=False))
    elif kind == "language":
        seen = np.zeros(MEASURED, bool)
        for part in (np.flatnonzero(common), np.flatnonzero(~common)):
            chosen = rng.choice(part, n // 2, replace=False)
            seen[chosen], weight[chosen] = True, len(part) / (n // 2)
    else:
        seen, weight = drawn(rng, label, n)
    return Read(label, np.where(seen, true, np.nan), weight, cluster)


def statements(
    rng: np.random.Generator, many: int, each: int, share: float, judge: tuple[float, float, bool]
) -> Read:
    """Simulate `many` statements with `each` replies (correlation 0.4), of which 100 are reviewed.

    judge: sensitivity, false alarms, and whether its errors are alike within a statement.
    """
    cluster = np.repeat(np.arange(many), each)
    true = rng.random(many * each) < rng.beta(1.5 * share, 1.5 * (1 - share), many)[cluster]
    label = _judged(rng, true, cluster, *judge)
    seen, weight = drawn(rng, label, 100)
    return Read(label, np.where(seen, true, np.nan), weight, cluster)


def _judged(
    rng: np.random.Generator, true: Array, cluster: Array, s: float, f: float, alike: bool
) -> Array:
    groups = cluster.max() + 1
    rates = [
        rng.beta(4 * rate, 4 * (1 - rate), groups)[cluster] if alike else rate for rate in (s, f)
    ]
    return rng.random(len(true)) < np.where(true, *rates)


# Standardised effects of wordings: in how many ways they may be distributed.
DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: rng.exponential(1, n) - 1,
    "lognormal": lambda rng, n: (rng.lognormal(0, 1, n) - np.exp(0.5)) / (np.e**2 - np.e) ** 0.5,
    "t, 3 df": lambda rng, n: rng.standard_t(3, n) / 3**0.5,
    "one in ten apart": lambda rng, n: ((rng.random(n) < 0.1) - 0.1) / 0.3,
    "half and half": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, -1.0),
}
_CENTRES: dict[tuple[str, float, float], float] = {}


def centre(kind: str, share: float, spread: float) -> float:
    """Find the mean logit at which the share over all wordings and statements is `share`."""
    key = kind, share, spread
    if key not in _CENTRES:
        rng = np.random.default_rng(0)
        off = spread * DISTRIBUTIONS[kind](rng, 200_000) + 1.25**0.5 * rng.standard_normal(200_000)
        _CENTRES[key] = brentq(lambda c: expit(c + off).mean() - share, -40, 40)
    return _CENTRES[key]


def worded(
    rng: np.random.Generator, kind: str, many: int, wordings: int, spread: float, share: float
) -> Array:
    """Draw the chance of a hit for statements × wordings (statement sd 1, interaction 0.5)."""
    logit = centre(kind, share, spread) + spread * DISTRIBUTIONS[kind](rng, (1, wordings))
    logit = logit + rng.standard_normal((many, 1)) + 0.5 * rng.standard_normal((many, wordings))
    return np.asarray(expit(logit))


def wordings(
    rng: np.random.Generator, kind: str, count: int, share: float, judge: tuple[float, float, bool]
) -> Read:
    """Simulate 24 statements in `count` wordings (sd 1); up to 100 replies are reviewed."""
    true = (rng.random((24, count)) < worded(rng, kind, 24, count, 1.0, share)).ravel()
    cluster, wording = np.repeat(np.arange(24), count), np.tile(np.arange(count), 24)
    label = _judged(rng, true, cluster, *judge)
    seen, weight = drawn(rng, label, min(100, len(true)))
    return Read(label, np.where(seen, true, np.nan), weight, cluster, wording)


def reviewers(rng: np.random.Generator, err: float, real: bool, judge: float) -> Read:
    """Simulate 1,000 independent replies, 30 % positive, 100 of them read by three people.

    err: how often one of them is wrong; or, if their differences are real, the share of people who
    differ from the rest about every reply.
    """
    true = rng.random(1000) < 0.3
    label = np.where(rng.random(1000) < judge, true, ~true)
    seen, weight = drawn(rng, label, 100)
    votes = (rng.random((1000, 3)) < np.where(true, 1 - err, err)[:, None]).sum(1)
    if real:  # all agree about half of the replies
        votes = np.where(rng.random(1000) < 0.5, votes, 3 * true)
    unsure = doubt(np.column_stack([votes, np.full(1000, 3), weight])[seen])
    y = np.where(seen, (votes > 1).astype(float), np.nan)
    return Read(label, y, weight, np.arange(1000), doubt=unsure)


def label_accuracy(accuracy: float) -> float:
    """Compute how often a template's label is right if single stories are with this accuracy."""
    negative = np.arange(STORIES + 1)
    # Distributions given k negative stories: how many of these are read as negative (kept), and how
    # many of the other stories (taken).
    kept = binom.pmf(negative[:, None], negative, accuracy)
    taken = binom.pmf(negative[:, None], STORIES - negative, 1 - accuracy)
    read = np.array(
        [np.convolve(a, b)[STORIES // 2 + 1 :].sum() for a, b in zip(kept.T, taken.T, strict=True)]
    )
    agrees = np.where(negative > STORIES // 2, read, 1 - read)
    return float(betabinom.pmf(negative, STORIES, *NEGATIVE) @ agrees)


def templates(rng: np.random.Generator, accuracy: float, n: int) -> Read:
    """Simulate a review of n whole templates."""
    statement = np.repeat(np.arange(STATEMENTS), 2)
    negative = (
        rng.random((len(statement), STORIES)) < rng.beta(*NEGATIVE, STATEMENTS)[statement, None]
    )
    read = negative ^ (rng.random(negative.shape) > accuracy)
    true, label = (stories.sum(1) > STORIES // 2 for stories in (negative, read))
    seen, weight = drawn(rng, label, n)
    return Read(label, np.where(seen, true, np.nan), weight, statement)


JUDGES = ((1.0, 0.0, False), (0.95, 0.01, False), (0.85, 0.05, False), (0.85, 0.05, True))


def cases(only: str) -> Iterator[tuple[Case, object]]:
    """Yield each setting: its name, true rate and accuracy, and the function that draws it."""
    if only in ("", "replies"):
        for n in (30, 100, 300):
            for accuracy in (0.6, 0.8, 0.9, 0.99):
                for share in (0.01, 0.1, 0.3, 0.5):
                    name = f"replies: {n} reviewed, accuracy {accuracy}, share {share}"
                    yield (
                        (name, share, accuracy),
                        lambda rng, a=(accuracy, share, n): replies(rng, *a),
                    )
    if only in ("", "designs"):
        for kind in KINDS:
            for n in (50, 200):
                for accuracy in (0.8, 0.95, 0.99):
                    name = f"designs: {kind}, {n} reviewed, accuracy {accuracy}"
                    yield (
                        (name, SHARE, accuracy),
                        lambda rng, a=(kind, n, accuracy): design(a[0], rng, *a[1:]),
                    )
    if only in ("", "statements"):
        for many, each in ((20, 60), (24, 16), (100, 8)):
            for share in (0.05, 0.3):
                for judge in JUDGES:
                    name = f"statements: {many} × {each}, share {share}, judge {judge}"
                    yield (
                        (name, share, None),
                        lambda rng, a=(many, each, share, judge): statements(rng, *a),
                    )
    if only in ("", "wordings"):
        for kind in DISTRIBUTIONS:
            for count in (3, 8):
                for share in (0.05, 0.3):
                    for judge in JUDGES[1::2]:
                        name = f"wordings: {kind}, {count}, share {share}, judge {judge}"
                        yield (
                            (name, share, None),
                            lambda rng, a=(kind, count, share, judge): wordings(rng, *a),
                        )
    if only in ("", "reviewers"):
        for real in (False, True):
            for err in (0.05, 0.1, 0.2):
                for judge in (0.8, 0.95):
                    what = "differ" if real else "err"
                    name = f"reviewers: {what} in {err}, judge {judge}"
                    yield (name, 0.3, None), lambda rng, a=(err, real, judge): reviewers(rng, *a)
    if only in ("", "templates"):
        for accuracy in (0.8, 0.9, 0.95):
            for n in (30, 60):
                name = f"templates: {n} reviewed, accuracy {accuracy}"
                right = label_accuracy(accuracy)
                yield (name, NEGRATE, right), lambda rng, a=(accuracy, n): templates(rng, *a)


def simulated(case: Case, draw: object, times: int) -> list[float]:
    """Return coverage of ppi, measured and accuracy, and the widths of the first two; in %."""
    name, share, accuracy = case
    rng, found = np.random.default_rng(7), []
    over = name.startswith("wordings")
    for _ in range(times):
        read: Read = draw(rng)  # type: ignore[operator]
        one: Corrected = correct(read)
        low, high = (one.over_low, one.over_high) if over else (one.ppi_low, one.ppi_high)
        if low is None or high is None or one.low is None or one.high is None:
            continue
        right = one.accuracy_low, one.accuracy_high
        known = accuracy is not None and None not in right
        found.append(
            (
                low <= share <= high,
                one.low <= share <= one.high,
                right[0] <= accuracy <= right[1] if known else np.nan,  # type: ignore[operator]
                high - low,
                one.high - one.low,
            )
        )
    table = 100 * np.array(found, float)
    return [float(x[~np.isnan(x)].mean()) if (~np.isnan(x)).any() else np.nan for x in table.T]


def band(times: int) -> None:
    """Print how often the interval of refusals holds, where the errors are not those measured."""
    from genprobe.metrics import judged

    called = ((33.0, 36.0), (2.0, 216.0))  # the refusals and the other texts that were labelled
    print("band: sensitivity, false alarms of the run; share 0.02, 0.1, 0.3: holds (width)")
    rng = np.random.default_rng(3)
    for s in (0.65, 0.8, 0.92, 0.97):
        for f in (0.001, 0.009, 0.03):
            cells = []
            for share in (0.02, 0.1, 0.3):
                hits, width = 0, 0.0
                for _ in range(times):
                    true = rng.binomial(5, rng.beta(1.5 * share, 1.5 * (1 - share), 100))
                    k = rng.binomial(true, s) + rng.binomial(5 - true, f)
                    units = np.column_stack([k, np.full(100, 5)]).astype(float)
                    low, high = judged.interval(units, called) or (0.0, 1.0)
                    hits, width = hits + (low <= share <= high), width + high - low
                cells.append(f"{100 * hits / times:5.1f} ({100 * width / times:.0f})")
            print(f"{s:5} {f:6}  {'  '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    print("                                                          ppi  (width)   measured")
    held = []
    for case, draw in cases(asked.only):
        row = simulated(case, draw, asked.simulations)
        held.append(row[0])
        right = "" if np.isnan(row[2]) else f"   accuracy {row[2]:.1f}"
        print(
            f"{case[0]:56} {row[0]:6.1f}   ({row[3]:4.1f})   {row[1]:5.1f} ({row[4]:.1f}){right}",
            flush=True,
        )
    if held:
        low = sum(x < 93 for x in held)
        print(f"{len(held)} settings: {min(held):.1f} to {max(held):.1f}; {low} below 93")
    if asked.only in ("", "band"):
        band(asked.simulations)


if __name__ == "__main__":
    main()
