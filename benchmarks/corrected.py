"""How often the intervals of corrected rates hold the truth.

    python benchmarks/corrected.py [--simulations 2000] [--measured 2000] [--quick] [--templates]

Per row: a judge of one accuracy (for positive and negative replies alike) reads --measured
replies of which `prevalence` are truly positive, and `n` of them, drawn at random, are reviewed.
Each column is the share of simulations, in %, whose 95 % interval holds the prevalence:
`measured` (Wilson's, which takes the judge for right), `normal` (prediction-powered with the
normal interval of the published package), `ppi` and `rg` (ours); then the mean width of `ppi`
beside that of Wilson's interval of the review alone, in points. * marks what is outside
93.5-96.5.

Then NegRate (with --templates that alone): 150 statements in two wordings, five stories of each,
read by a judge who is right about each story with the accuracy. Of the 300 templates `n` are
reviewed, all their stories; drawn as `genprobe review export` does (by the judge's label, shares as
the root), or at random. Two wordings of a statement have the same chance of a negative story.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import betabinom

from genprobe import corrected, review
from genprobe.stats import Array, clustered_wilson, wilson

ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
REVIEWED = (30, 100, 300)
PREVALENCES = (0.1, 0.3, 0.5)
WIDTHS = 30  # simulations whose interval is computed, for its width
Z = 1.959964
STATEMENTS, STORIES = 150, 5
NEGATIVE = (0.8, 1.6)  # beta distribution of a statement's share of negative stories
NEGRATE = float(betabinom.sf(STORIES // 2, STORIES, *NEGATIVE))
JUDGES = (0.8, 0.9, 0.95)  # of single stories
TEMPLATES = (30, 60)


def simulate(
    rng: np.random.Generator, accuracy: float, prevalence: float, n: int, measured: int, times: int
) -> corrected.Counts:
    """Simple random reviews of n of `measured` replies."""
    right, wrong = accuracy, 1 - accuracy
    shares = np.outer([prevalence, 1 - prevalence], [right, wrong]).ravel()
    tp, fn, tn, fp = rng.multinomial(n, shares, times).T.astype(float)
    rest = rng.binomial(measured - n, shares[0] + shares[3], times)
    total = np.full(times, float(measured))
    return corrected.Counts(rest + tp + fp, total, tp, tp + fp, fn, fn + tn)


def normal(c: corrected.Counts) -> tuple[Array, Array]:
    """Power-tuned prediction-powered interval with normal quantiles (PPI++)."""
    n = c.n_p + c.n_n
    a = c.hits_p / np.maximum(c.n_p, 1)
    b = c.hits_n / np.maximum(c.n_n, 1)
    q = c.positive / c.total
    slope = a - b
    spread = c.n_p * a * (1 - a) + c.n_n * b * (1 - b)
    half = Z * np.sqrt(slope**2 * q * (1 - q) / c.total + spread / n**2)
    return corrected.ppi(c) - half, corrected.ppi(c) + half


def row(c: corrected.Counts, prevalence: float, n: int) -> list[float]:
    """Coverage of measured, normal, ppi and rg, and two widths; all in %."""
    plain = np.array([wilson(k, total) for k, total in zip(c.positive, c.total, strict=True)])
    low, high = normal(c)
    ours, rg = corrected.accepted(c, prevalence)
    few = corrected.Counts(*(values[:WIDTHS] for values in vars(c).values()))
    ends = corrected.ppi_interval(few)
    alone = np.array([wilson(k, n) for k in few.hits_p + few.hits_n])
    hold = [
        (plain[:, 0] <= prevalence) & (prevalence <= plain[:, 1]),
        (low <= prevalence) & (prevalence <= high),
        ours,
        rg,
    ]
    widths = [np.mean(ends[1] - ends[0]), np.mean(alone[:, 1] - alone[:, 0])]
    return [100 * float(np.mean(x)) for x in hold] + [100 * float(w) for w in widths]


def simulate_templates(
    rng: np.random.Generator, accuracy: float, n: int, exported: bool, times: int
) -> tuple[Array, corrected.Counts, corrected.Counts]:
    """As measured, (times, 2) intervals; counts for `ppi` and for `rg`."""
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
        for stratum, size in zip(drawn, review._shares([*map(len, drawn)], n), strict=True):
            chosen = rng.choice(stratum, int(size), replace=False)
            truth[chosen], weight[chosen] = true[chosen], len(stratum) / size
        hits, sizes = np.bincount(statement, label), np.bincount(statement)
        plain.append(clustered_wilson(hits, sizes))
        seen = ~np.isnan(truth)
        found.append(corrected._counts(label, truth, weight, seen, statement, 0.95))
    ours, rg = (
        corrected.Counts(*map(np.concatenate, zip(*(vars(c).values() for c in one), strict=True)))
        for one in zip(*found, strict=True)
    )
    return np.array(plain, float), ours, rg


def row_of_templates(plain: Array, ours: corrected.Counts, rg: corrected.Counts) -> list[float]:
    """Coverage of measured, ppi and rg, and the mean widths of the last two; all in %."""
    hold = [
        (plain[:, 0] <= NEGRATE) & (plain[:, 1] >= NEGRATE),
        corrected.accepted(ours, NEGRATE)[0],
        corrected.accepted(rg, NEGRATE)[1],
    ]
    few = [corrected.Counts(*(x[:WIDTHS] for x in vars(c).values())) for c in (ours, rg)]
    ends = [corrected.ppi_interval(few[0]), corrected.rg_interval(few[1])]
    return [100 * float(np.mean(x)) for x in (*hold, *(high - low for low, high in ends))]


def templates(times: int) -> None:
    rng = np.random.default_rng(1)
    print(f"NegRate {100 * NEGRATE:.1f} %, by whole templates")
    print(" n  drawn      accuracy  measured     ppi      rg   width of ppi  of rg")
    for exported in (True, False):
        for n in TEMPLATES:
            for accuracy in JUDGES:
                figures = row_of_templates(*simulate_templates(rng, accuracy, n, exported, times))
                marked = [f"{x:6.1f}{' ' if 93.5 <= x <= 96.5 else '*'}" for x in figures[:3]]
                print(
                    f"{n:2}  {'exported' if exported else 'at random':9} {accuracy:9.2f}   "
                    f"{' '.join(marked)} {figures[3]:13.1f} {figures[4]:6.1f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--measured", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="four accuracies, two sizes")
    parser.add_argument("--templates", action="store_true", help="NegRate alone")
    args = parser.parse_args()
    if not args.templates:
        replies(args)
    templates(args.simulations)


def replies(args: argparse.Namespace) -> None:
    accuracies = ACCURACIES[::2] + ACCURACIES[-1:] if args.quick else ACCURACIES
    sizes = REVIEWED[::2] if args.quick else REVIEWED
    rng = np.random.default_rng(1)
    began = time.perf_counter()
    print(" n  accuracy  prevalence  measured  normal     ppi      rg   width  review alone")
    found = []
    for n in sizes:
        for accuracy in accuracies:
            for prevalence in PREVALENCES:
                c = simulate(rng, accuracy, prevalence, n, args.measured, args.simulations)
                figures = row(c, prevalence, n)
                found.append(figures)
                marked = [f"{x:6.1f}{' ' if 93.5 <= x <= 96.5 else '*'}" for x in figures[:4]]
                print(
                    f"{n:3} {accuracy:9.2f} {prevalence:11.1f}   {' '.join(marked)} "
                    f"{figures[4]:6.1f} {figures[5]:13.1f}",
                    flush=True,
                )
    table = np.array(found)
    for name, x in zip(("measured", "normal", "ppi", "rg"), table.T, strict=False):
        print(
            f"{name}: {np.mean((x >= 93.5) & (x <= 96.5)):.0%} of {len(x)} rows within "
            f"93.5-96.5; {np.sum(x < 93.5)} below, least {x.min():.1f}; {np.sum(x > 96.5)} above"
        )
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
