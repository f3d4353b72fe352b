"""Measure how often the interval of the corrected NegRate covers the truth, in simulated studies.

    OMP_NUM_THREADS=1 python benchmarks/negrate.py [--studies 2000] [--seed 1]

A study has 84 to 1,000 templates with five stories each. The stories of a template are correlated:
the templates' shares of negative stories follow a beta distribution, or one with two peaks
(`--shape peaks`), which the method does not assume. A classifier is right about 60 to 95 % of the
negative stories, and of the others; its errors are estimated from 100 to 500 labelled stories. The
truth is the probability that a template of such a study is negative by the true labels of its
stories. NegRate as measured, with its Wilson interval, is given for comparison.

`--maxima N` sets the corrected shares of N studies beside the maximum of their likelihood, which is
written here anew by its definition and found from several starts: NegRate, and the share of
refusals that a judge with known errors finds (`refusal-corrected`).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from scipy.stats import betabinom, binom

from genprobe.metrics import corrected, judged
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


def likeliest(called: Array, s: float, f: float) -> float:
    """Maximise the likelihood of the number of stories called negative of each template.

    Returns the share of templates most of whose stories are truly negative.
    """
    ks = range(STORIES + 1)
    # The chance of k calls if j stories are negative: hits among these and among the others.
    chance = np.array(
        [
            [
                sum(binom.pmf(i, j, s) * binom.pmf(k - i, STORIES - j, f) for i in range(k + 1))
                for k in ks
            ]
            for j in ks
        ]
    )
    seen = np.bincount(called, minlength=STORIES + 1)

    def true(point: Array) -> Array:
        mean, alike = np.clip(expit(point), 1e-7, 1 - 1e-7)
        size = 1 / alike - 1
        return np.asarray(betabinom.pmf(ks, STORIES, mean * size, (1 - mean) * size))

    def unlikely(point: Array) -> float:
        return -float(seen @ np.log(np.maximum(true(point) @ chance, 1e-300)))

    starts = [(mean, alike) for mean in (-3, -1, 0, 1, 3) for alike in (-5, -2, 0, 2)]
    least = min(
        (minimize(unlikely, at, method="Nelder-Mead") for at in starts), key=lambda o: o.fun
    )
    return float(true(least.x)[STORIES // 2 + 1 :].sum())


def maxima(studies: int, seed: int) -> None:
    """Print how far the corrected shares lie from the maximum of the likelihood, in points."""
    rng = np.random.default_rng(seed)
    apart: dict[str, list[float]] = {"negrate-corrected": [], "refusal-corrected": []}
    for _ in range(studies):
        templates = int(rng.integers(20, 500))
        p, _ = shares(rng, templates, "beta")
        known = [int(n) for n in rng.integers((30, 50, 2, 50), (49, 51, 20, 51))]
        negative = rng.binomial(STORIES, p)
        s, f = known[0] / known[1], known[2] / known[3]
        called = rng.binomial(negative, s) + rng.binomial(STORIES - negative, f)
        sums = corrected.statistics(called, np.full(templates, STORIES), np.array(known)).sum(0)
        s, f = (known[0] + 0.5) / (known[1] + 1), (known[2] + 0.5) / (known[3] + 1)
        ours = float(corrected.estimate(sums[None])[0])
        apart["negrate-corrected"].append(ours - likeliest(called, s, f))
        n, hits = templates, int((called > 2).sum())
        errors = ((known[0], known[1]), (known[2], known[3]))
        s, f = known[0] / known[1], known[2] / known[3]
        found = minimize_scalar(
            lambda q, hits=hits, n=n, s=s, f=f: -binom.logpmf(hits, n, q * s + (1 - q) * f),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-10},
        )
        ours = float(judged.estimate(np.array([hits, n], float), errors))
        apart["refusal-corrected"].append(ours - float(found.x))
    for name, far in apart.items():
        most = 100 * np.abs(far).max()
        print(f"{name:<18} at most {most:.3f} points from the maximum, {studies} studies")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reviewed", type=int, default=0, help="templates of the run")
    parser.add_argument("--shape", choices=("beta", "peaks"), default="beta")
    parser.add_argument("--maxima", type=int, default=0, help="studies set beside the maximum")
    asked = parser.parse_args()
    if asked.maxima:
        maxima(asked.maxima, asked.seed)
        return
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
