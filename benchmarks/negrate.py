"""Measure how often the interval of the corrected NegRate covers the truth, in simulated studies.

    OMP_NUM_THREADS=1 python benchmarks/negrate.py [--studies 2000] [--seed 1]

A study has 84 to 1,000 templates with five stories each. The stories of a template are correlated:
the templates' shares of negative stories follow a beta distribution, or one with two peaks
(`--shape peaks`), which the method does not assume. A classifier is right about 60 to 95 % of the
negative stories, and of the others; its errors are estimated from 100 to 500 labelled stories. The
truth is the probability that a template of such a study is negative by the true labels of its
stories. NegRate as measured, with its Wilson interval, is given for comparison.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import binom

from genprobe.metrics import corrected
from genprobe.statistics import Array, wilson

STORIES = 5


def shares(rng: np.random.Generator, templates: int, shape: str) -> tuple[Array, Array]:
    """Draw the share of negative stories of each template, and of many more for the truth."""
    mean, alike = rng.uniform(0.1, 0.7), rng.uniform(0.05, 0.6)
    size = 1 / alike - 1
    if shape == "beta":
        draw = rng.beta(mean * size, (1 - mean) * size, templates + 200_000)
    else:
        low, high = sorted(rng.uniform(0.05, 0.95, 2))
        draw = np.where(rng.random(templates + 200_000) < mean, high, low)
    return draw[:templates], draw[templates:]


def study(rng: np.random.Generator, shape: str, reviewed: int = 0) -> tuple[Array, float, int]:
    """Simulate a study.

    Returns the statistics of its templates (as `corrected.interval` takes them), the truth, and the
    number of templates that the classifier calls negative. reviewed: number of templates whose
    stories were all labelled by people; the errors found in them are added to those of the card.
    """
    templates, labelled = int(rng.integers(84, 1001)), int(rng.integers(100, 501))
    p, many = shares(rng, templates, shape)
    s, c = rng.uniform(0.6, 0.95, 2)
    truth = float(binom.sf(STORIES // 2, STORIES, many).mean())
    negative = rng.binomial(STORIES, p)
    called = rng.binomial(negative, s) + rng.binomial(STORIES - negative, 1 - c)
    n = max(10, min(labelled - 10, int(rng.binomial(labelled, rng.uniform(0.3, 0.6)))))
    known = (rng.binomial(n, s), n, rng.binomial(labelled - n, 1 - c), labelled - n)
    if reviewed:
        true, hits = negative[:reviewed], rng.binomial(negative[:reviewed], s)
        called[:reviewed] = hits + (false := rng.binomial(STORIES - true, 1 - c))
        n, others = int(true.sum()), int((STORIES - true).sum())
        known = (
            corrected.both_errors(known, (int(hits.sum()), n, int(false.sum()), others)) or known
        )
    units = corrected.statistics(called, np.full(templates, STORIES), np.array(known))
    return units, truth, int((called * 2 > STORIES).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reviewed", type=int, default=0, help="templates of the run")
    parser.add_argument("--shape", choices=("beta", "peaks"), default="beta")
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    started, rows = time.monotonic(), []
    for _ in range(asked.studies):
        units, truth, count = study(rng, asked.shape, asked.reviewed)
        low, high = corrected.interval(units) or (0.0, 1.0)
        plain = wilson(count, len(units)) or (0.0, 1.0)
        value = float(corrected.estimate(units.sum(0)[None])[0])
        rows.append(
            (
                low <= truth <= high,
                plain[0] <= truth <= plain[1],
                high - low,
                abs(value - truth),
                abs(count / len(units) - truth),
                high - low >= corrected.WIDE,
            )
        )
    found = np.array(rows, float)
    n = len(found)
    for name, hits in (("corrected", found[:, 0]), ("as measured", found[:, 1])):
        ends = wilson(int(hits.sum()), n) or (0.0, 1.0)
        print(
            f"{name:<12} covers {100 * hits.mean():.1f} % "
            f"({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"
        )
    print(
        f"width {np.nanmean(found[:, 2]):.2f}, error {np.nanmean(found[:, 3]):.3f} against "
        f"{found[:, 4].mean():.3f} as measured; {100 * found[:, 5].mean():.1f} % cannot tell; "
        f"{n} studies, {1000 * (time.monotonic() - started) / n:.0f} ms each"
    )


if __name__ == "__main__":
    main()
