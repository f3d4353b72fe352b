"""Measure how often the intervals of corrected rates and of the judge's accuracy cover the truth.

    python benchmarks/corrected.py [--simulations 2000] [--measured 2000] [--quick]
                                   [--only replies|designs|templates]

First table: in each row, a judge with the same accuracy for positive and negative replies reads
--measured replies, of which `prevalence` are truly positive, and `n` of them are drawn at random
and reviewed. Each column is the coverage of a 95 % interval: the share of simulations, in %, in
which it contains the prevalence. The intervals are `measured` (Wilson's, which assumes that the
judge is right), `normal` (prediction-powered with the normal interval of the published package),
and `ppi` and `rg` (ours). `judge` is the coverage of the interval of the accuracy. The last columns
are the mean width of `ppi` and that of Wilson's interval of the review alone, in points. * marks a
coverage outside 93.5-96.5.

Second table: the same for reviews that are not simple random samples (`design`), with the mean
widths of `ppi` and `judge`.

Third table, NegRate: 150 statements in two wordings, five stories of each, read by a judge who is
right about each story with the given accuracy. Of the 300 templates, `n` are reviewed with all
their stories. They are drawn as by `genprobe review export` (by the judge's label, in proportion to
the square root; `rg` is then `ppi`), or at random. The two wordings of a statement have the same
probability of a negative story.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import betabinom, binom

from genprobe.review import correction, intervals, sample
from genprobe.statistics import Array, share_interval, wilson

ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
REVIEWED = (30, 100, 300)
PREVALENCES = (0.1, 0.3, 0.5)
WIDTHS = 30  # simulations of which the whole interval is computed, to measure its width
Z = 1.959964
STATEMENTS, STORIES = 150, 5
NEGATIVE = (0.8, 1.6)  # beta distribution of a statement's share of negative stories
NEGRATE = float(betabinom.sf(STORIES // 2, STORIES, *NEGATIVE))
JUDGES = (0.8, 0.9, 0.95)  # accuracies for single stories
TEMPLATES = (30, 60)
KINDS = ("label", "language", "clusters", "contrasts")
MEASURED = 2000  # replies of a design


def simulate(
    rng: np.random.Generator, accuracy: float, prevalence: float, n: int, measured: int, times: int
) -> intervals.Counts:
    """Simulate simple random reviews of n of `measured` replies."""
    right, wrong = accuracy, 1 - accuracy
    shares = np.outer([prevalence, 1 - prevalence], [right, wrong]).ravel()
    tp, fn, tn, fp = rng.multinomial(n, shares, times).T.astype(float)
    rest = rng.binomial(measured - n, shares[0] + shares[3], times)
    total = np.full(times, float(measured))
    return intervals.Counts(rest + tp + fp, total, tp, tp + fp, fn, fn + tn)


def normal(c: intervals.Counts) -> tuple[Array, Array]:
    """Compute the power-tuned prediction-powered interval with normal quantiles (PPI++)."""
    n = c.n_p + c.n_n
    a = c.hits_p / np.maximum(c.n_p, 1)
    b = c.hits_n / np.maximum(c.n_n, 1)
    q = c.positive / c.total
    slope = a - b
    spread = c.n_p * a * (1 - a) + c.n_n * b * (1 - b)
    half = Z * np.sqrt(slope**2 * q * (1 - q) / c.total + spread / n**2)
    return intervals.ppi(c) - half, intervals.ppi(c) + half


def right(c: intervals.Counts) -> intervals.Counts:
    """Return the counts of replies that the judge reads right, instead of positive replies."""
    return replace(c, hits_n=c.n_n - c.hits_n)


def row(c: intervals.Counts, accuracy: float, prevalence: float, n: int) -> list[float]:
    """Compute the coverage of measured, normal, ppi, rg and judge, and two widths; all in %."""
    plain = np.array([wilson(k, total) for k, total in zip(c.positive, c.total, strict=True)])
    low, high = normal(c)
    few = _first(c)
    ends = intervals.ppi_interval(few)
    alone = np.array([wilson(k, n) for k in few.hits_p + few.hits_n])
    hold = [
        (plain[:, 0] <= prevalence) & (prevalence <= plain[:, 1]),
        (low <= prevalence) & (prevalence <= high),
        intervals.ppi_accepts(c, prevalence),
        intervals.rg_accepts(c, prevalence),
        intervals.ppi_accepts(right(c), accuracy),
    ]
    widths = [np.mean(ends[1] - ends[0]), np.mean(alone[:, 1] - alone[:, 0])]
    return [100 * float(np.mean(x)) for x in hold] + [100 * float(w) for w in widths]


def _first(c: intervals.Counts) -> intervals.Counts:
    return intervals.Counts(*(values[:WIDTHS] for values in vars(c).values()))


def _together(many: Iterable[intervals.Counts]) -> intervals.Counts:
    columns = zip(*(vars(c).values() for c in many), strict=True)
    return intervals.Counts(*map(np.concatenate, columns))


def design(
    kind: str, rng: np.random.Generator, n: int, accuracy: float
) -> tuple[Array, Array, Array, Array]:
    """Simulate a review of MEASURED replies, of which 26 % are truly positive.

    Returns arrays: measured, truth (NaN for a reply that is not reviewed), weights and clusters.
    kind: how the reviewed replies are drawn:
    - label: by the judge's label, in proportion to the square root, as `genprobe review export`.
    - language: the same number from each of two languages. One of them is four times as frequent as
      the other, with fewer positive replies and more errors.
    - clusters: whole templates of five stories, which tend to share the truth and the judge's
      errors.
    - contrasts: as label, but the five replies of a pair are alike in the same way; few of them are
      reviewed.
    """
    each = 5 if kind in ("clusters", "contrasts") else 1
    groups = MEASURED // each
    cluster = np.repeat(np.arange(groups), each)
    wrong = 1 - accuracy
    common = np.arange(MEASURED) < 0.8 * MEASURED
    if kind == "language":
        share, errs = np.where(common, 0.2, 0.5), np.where(common, 1.125, 0.5) * wrong
    elif each > 1:
        share = rng.beta(0.52, 1.48, groups)[cluster]
        errs = rng.beta(2 * wrong, 2 * accuracy, groups)[cluster]
    else:
        share, errs = np.full(MEASURED, 0.26), np.full(MEASURED, wrong)
    true = rng.random(MEASURED) < share
    label = true ^ (rng.random(MEASURED) < errs)
    truth, weight = np.full(MEASURED, np.nan), np.ones(MEASURED)
    if kind == "clusters":
        chosen = np.isin(cluster, rng.choice(groups, n // each, replace=False))
        truth[chosen] = true[chosen]
        return label, truth, weight, cluster
    by = common if kind == "language" else label
    strata = [np.flatnonzero(by), np.flatnonzero(~by)]
    sizes = [n / 2, n / 2] if kind == "language" else sample._shares([*map(len, strata)], n)
    for stratum, size in zip(strata, sizes, strict=True):
        drawn = rng.choice(stratum, int(size), replace=False)
        truth[drawn], weight[drawn] = true[drawn], len(stratum) / size
    return label, truth, weight, cluster


def simulate_design(
    kind: str, rng: np.random.Generator, n: int, accuracy: float, times: int
) -> tuple[intervals.Counts, intervals.Counts]:
    """Simulate reviews; return the counts for the rate, and those for the judge's accuracy."""
    found = []
    for _ in range(times):
        label, truth, weight, cluster = design(kind, rng, n, accuracy)
        rest = (weight, ~np.isnan(truth), cluster, 0.95)
        found.append([correction._counts(label, y, *rest) for y in (truth, label == truth)])
    rate, read = zip(*found, strict=True)
    return _together(rate), _together(read)


def designs(times: int) -> None:
    rng = np.random.default_rng(1)
    print("  n  design     accuracy     ppi   judge   width of ppi  of judge")
    for kind in KINDS:
        for n in (50, 200):
            for accuracy in (0.8, 0.95, 0.99):
                rate, read = simulate_design(kind, rng, n, accuracy, times)
                hold = [intervals.ppi_accepts(rate, 0.26), intervals.ppi_accepts(read, accuracy)]
                ends = [intervals.ppi_interval(_first(c)) for c in (rate, read)]
                widths = [100 * float(np.mean(high - low)) for low, high in ends]
                print(
                    f"{n:3}  {kind:9} {accuracy:9.2f}  {_marked(hold)} "
                    f"{widths[0]:13.1f} {widths[1]:9.1f}",
                    flush=True,
                )


def _marked(hold: Sequence[Array]) -> str:
    shares = [100 * float(np.mean(x)) for x in hold]
    return " ".join(f"{x:6.1f}{' ' if 93.5 <= x <= 96.5 else '*'}" for x in shares)


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


def simulate_templates(
    rng: np.random.Generator, accuracy: float, n: int, exported: bool, times: int
) -> tuple[Array, intervals.Counts, intervals.Counts]:
    """Simulate reviews of whole templates.

    Returns the intervals of NegRate as measured, (times, 2), the counts for the corrected NegRate,
    and those for the accuracy of labels. exported: drawn as by `genprobe review export`.
    """
    statement = np.repeat(np.arange(STATEMENTS), 2)
    plain, found = [], []
    for _ in range(times):
        share = rng.beta(*NEGATIVE, STATEMENTS)[statement]
        negative = rng.random((len(share), STORIES)) < share[:, None]
        read = negative ^ (rng.random(negative.shape) > accuracy)
        true, label = (stories.sum(1) > STORIES // 2 for stories in (negative, read))
        drawn = [np.flatnonzero(label), np.flatnonzero(~label)]
        drawn = drawn if exported else [np.arange(len(label))]
        truth, weight = np.full(len(label), np.nan), np.ones(len(label))
        for stratum, size in zip(drawn, sample._shares([*map(len, drawn)], n), strict=True):
            chosen = rng.choice(stratum, int(size), replace=False)
            truth[chosen], weight[chosen] = true[chosen], len(stratum) / size
        hits, sizes = np.bincount(statement, label), np.bincount(statement)
        plain.append(share_interval(hits, sizes))
        rest = (weight, ~np.isnan(truth), statement, 0.95)
        found.append([correction._counts(label, y, *rest) for y in (truth, label == truth)])
    rate, read = zip(*found, strict=True)
    return np.array(plain, float), _together(rate), _together(read)


def templates(times: int) -> None:
    rng = np.random.default_rng(1)
    print(f"NegRate {100 * NEGRATE:.1f} %, by whole templates")
    print(
        " n  drawn      accuracy  measured     ppi      rg   judge   width of ppi  of rg  of judge"
    )
    for exported in (True, False):
        for n in TEMPLATES:
            for accuracy in JUDGES:
                plain, rate, labels = simulate_templates(rng, accuracy, n, exported, times)
                ppi = intervals.ppi_accepts(rate, NEGRATE)
                hold = [
                    (plain[:, 0] <= NEGRATE) & (plain[:, 1] >= NEGRATE),
                    *(ppi, ppi if exported else intervals.rg_accepts(rate, NEGRATE)),
                    intervals.ppi_accepts(labels, label_accuracy(accuracy)),
                ]
                ends = [
                    intervals.ppi_interval(_first(rate)),
                    (intervals.ppi_interval if exported else intervals.rg_interval)(_first(rate)),
                    intervals.ppi_interval(_first(labels)),
                ]
                widths = [100 * float(np.mean(high - low)) for low, high in ends]
                print(
                    f"{n:2}  {'exported' if exported else 'at random':9} {accuracy:9.2f}   "
                    f"{_marked(hold)} {widths[0]:13.1f} {widths[1]:6.1f} {widths[2]:9.1f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--measured", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="four accuracies, two sizes")
    parser.add_argument("--only", choices=["replies", "designs", "templates"])
    args = parser.parse_args()
    if args.measured < max(REVIEWED):
        parser.error(f"--measured is at least {max(REVIEWED)}, the most that are reviewed")
    if args.only in (None, "replies"):
        replies(args)
    if args.only in (None, "designs"):
        designs(args.simulations)
    if args.only in (None, "templates"):
        templates(args.simulations)


def replies(args: argparse.Namespace) -> None:
    accuracies = ACCURACIES[::2] + ACCURACIES[-1:] if args.quick else ACCURACIES
    sizes = REVIEWED[::2] if args.quick else REVIEWED
    rng = np.random.default_rng(1)
    began = time.perf_counter()
    print(
        " n  accuracy  prevalence  measured  normal     ppi      rg   judge   width  review alone"
    )
    found = []
    for n in sizes:
        for accuracy in accuracies:
            for prevalence in PREVALENCES:
                c = simulate(rng, accuracy, prevalence, n, args.measured, args.simulations)
                figures = row(c, accuracy, prevalence, n)
                found.append(figures)
                marked = [f"{x:6.1f}{' ' if 93.5 <= x <= 96.5 else '*'}" for x in figures[:5]]
                print(
                    f"{n:3} {accuracy:9.2f} {prevalence:11.1f}   {' '.join(marked)} "
                    f"{figures[5]:6.1f} {figures[6]:13.1f}",
                    flush=True,
                )
    table = np.array(found)
    for name, x in zip(("measured", "normal", "ppi", "rg", "judge"), table.T, strict=False):
        print(
            f"{name}: {np.mean((x >= 93.5) & (x <= 96.5)):.0%} of {len(x)} rows within "
            f"93.5-96.5; {np.sum(x < 93.5)} below, least {x.min():.1f}; {np.sum(x > 96.5)} above"
        )
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
