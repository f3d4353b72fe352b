"""Test the analyses of runs with several wordings (their intervals: `simulate.py`).

    python benchmarks/wordings.py components [REPS]   planted and estimated components
    python benchmarks/wordings.py dstudy [REPS]       forecast widths, and widths then found
    python benchmarks/wordings.py ranking [REPS]      rankings of models with and without an order
    python benchmarks/wordings.py needed [STATEMENTS] wordings that rank the same difference in each
    python benchmarks/wordings.py flips [REPS]        changed answers that are found
    python benchmarks/wordings.py speed               a million outcomes: seconds and memory

A reply says yes with a probability whose logit is the sum of a mean and normal effects of its
wording (standard deviation: the spread in the table), of its statement (1), and of both together
(0.5).
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy import special

from genprobe.analysis.gaps import OfPanel
from genprobe.statistics import COLUMNS, Array, two_way_interval

STATEMENT, TOGETHER = 1.0, 0.5
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def mean_rate(centre: Array | float, spread: float) -> Array:
    """Compute the mean of the logistic function over a normal distribution."""
    at = np.asarray(centre)[..., None] + spread * NODES
    return np.asarray((WEIGHTS * special.expit(at)).sum(-1))


def centre_of(rate: float, spread: float) -> float:
    """Find the mean logit that gives this mean rate, for effects with this standard deviation."""
    low, high = -20.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_rate(middle, spread) < rate else (low, middle)
    return (low + high) / 2


def simulate(
    rng: np.random.Generator,
    reps: int,
    spread: float,
    statements: int,
    wordings: int,
    samples: int,
    rate: float,
    missing: float = 0.0,
) -> tuple[Array, Array]:
    """Simulate hits and replies: two arrays (reps, statements, wordings)."""
    centre = centre_of(rate, (spread**2 + STATEMENT**2 + TOGETHER**2) ** 0.5)
    logit = (
        centre
        + STATEMENT * rng.standard_normal((reps, statements, 1))
        + spread * rng.standard_normal((reps, 1, wordings))
        + TOGETHER * rng.standard_normal((reps, statements, wordings))
    )
    sizes = rng.binomial(samples, 1 - missing, logit.shape)
    return rng.binomial(sizes, special.expit(logit)), sizes


def planted(rate: float, spread: float) -> dict[tuple[str, ...], float]:
    """Compute the true components of variance of the rate, by quadrature: effect -> component."""
    centre = centre_of(rate, (spread**2 + STATEMENT**2 + TOGETHER**2) ** 0.5)
    w = mean_rate(centre + spread * NODES, (STATEMENT**2 + TOGETHER**2) ** 0.5)
    s = mean_rate(centre + STATEMENT * NODES, (spread**2 + TOGETHER**2) ** 0.5)
    both = mean_rate(centre + spread * NODES[:, None] + STATEMENT * NODES[None], 0.0)
    deep = np.zeros_like(both)
    squared = np.zeros_like(both)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        p = special.expit(
            centre + spread * NODES[:, None] + STATEMENT * NODES[None] + TOGETHER * node
        )
        deep += weight * p
        squared += weight * p**2
    del both
    grid = WEIGHTS[:, None] * WEIGHTS[None]
    var_w = float((WEIGHTS * w**2).sum() - rate**2)
    var_s = float((WEIGHTS * s**2).sum() - rate**2)
    cell = float((grid * squared).sum() - rate**2)
    return {
        ("wording",): var_w,
        ("statement",): var_s,
        ("statement", "wording"): cell - var_w - var_s,
        (): float(rate - (grid * squared).sum()),
    }


def long(hits: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """Convert one table to outcomes of 0 and 1, with their statements and wordings."""
    s, w = np.indices(hits.shape)
    ones, all_of = hits.ravel(), sizes.ravel()
    value = np.concatenate([np.ones(ones.sum()), np.zeros((all_of - ones).sum())])
    at = [np.concatenate([np.repeat(x.ravel(), ones), np.repeat(x.ravel(), all_of - ones)])
          for x in (s, w)]  # fmt: skip
    return value, at[0], at[1]


def recovered(reps: int) -> None:
    from genprobe.analysis.components import components

    print(
        "spread  statements  wordings  samples  rate  missing  effect               found / planted"
    )
    for spread, statements, wordings, samples, rate, missing in (
        (0.5, 48, 6, 2, 0.5, 0.3), (1.0, 48, 8, 2, 0.2, 0.0), (1.5, 100, 12, 2, 0.1, 0.3),
        (0.1, 100, 8, 3, 0.8, 0.1),
    ):  # fmt: skip
        rng = np.random.default_rng(5)
        sums: dict[tuple[str, ...], list[float]] = {}
        for hits, sizes in zip(
            *simulate(rng, reps, spread, statements, wordings, samples, rate, missing), strict=True
        ):
            value, s, w = long(hits, sizes)
            for part in components(value, {"statement": s, "wording": w}).parts:
                sums.setdefault(part.effect, []).append(part.value)
        for effect, truth in planted(rate, spread).items():
            mean, error = np.mean(sums[effect]), np.std(sums[effect]) / len(sums[effect]) ** 0.5
            print(
                f"{spread:6} {statements:11} {wordings:9} {samples:8} {rate:5} {missing:8}  "
                f"{' x '.join(effect) or 'residual':22}{mean / truth:.3f} +- {error / truth:.3f}"
            )


def widths(reps: int) -> None:
    from genprobe.analysis import dstudy

    print("spread  rate  statements  wordings  samples   forecast   found    ratio")
    for spread, rate, statements, wordings, samples in (
        (0.5, 0.3, 100, 6, 1), (1.0, 0.3, 48, 8, 1), (1.0, 0.5, 48, 8, 3), (0.5, 0.1, 200, 4, 1),
        (0.1, 0.5, 48, 8, 1), (1.5, 0.2, 100, 12, 1), (0.5, 0.3, 24, 3, 1), (1.0, 0.5, 400, 8, 1),
        (0.5, 0.05, 400, 8, 1),
    ):  # fmt: skip
        pilot = simulate(np.random.default_rng(1), 1, spread, 1500, 400, 2, rate)
        given = dstudy.parts(pilot[0][0], pilot[1][0])
        assert given is not None
        expected = dstudy.forecast(given, statements, wordings, wordings, samples)
        rng = np.random.default_rng(2)
        studies = zip(
            *simulate(rng, reps, spread, statements, wordings, samples, rate), strict=True
        )
        ends = [two_way_interval(study) or (0.0, 1.0) for study in studies]
        found = [high - low for low, high in ends]
        print(
            f"{spread:6} {rate:5} {statements:11} {wordings:9} {samples:8} {expected:10.3f} "
            f"{np.mean(found):7.3f} {expected / np.mean(found):8.2f}",
            flush=True,
        )


def ranking(reps: int) -> None:
    """Print how often five models are ranked, and how often rightly.

    They have a common order, or none, from which they differ by wording (spread 0.3).
    """
    from genprobe.analysis.ranking import ranking as rank

    def study(
        rng: np.random.Generator, logits: Array, statements: int, wordings: int
    ) -> tuple[Array, Array]:
        logit = (
            logits[:, None, None]
            + rng.standard_normal((1, statements, 1))
            + 0.5 * rng.standard_normal((len(logits), statements, 1))
            + rng.standard_normal((1, 1, wordings))
            + 0.3 * rng.standard_normal((len(logits), 1, wordings))
        )
        sizes = rng.binomial(1, 0.9, logit.shape)
        return rng.binomial(sizes, special.expit(logit)), sizes

    names = ["a", "b", "c", "d", "e"]
    print("statements  wordings  truth                     ranked %  as it is %  power foretold")
    rng = np.random.default_rng(3)
    for statements, wordings in ((48, 3), (48, 8), (200, 8), (400, 12)):
        none = 0
        for _ in range(reps):
            found = rank(names, *study(rng, np.zeros(5), statements, wordings))
            assert found is not None
            none += found.groups is not None
        print(f"{statements:10} {wordings:9}  {'none differs':24} {100 * none / reps:9.1f}")
    order = np.array([1.2, 0.4, 0.4, -0.4, -1.2]) * 1.5
    truth = (("a",), ("b", "c"), ("d",), ("e",))
    for statements, wordings in ((48, 8), (200, 12), (400, 16)):
        ranked = right = powered = 0
        for _ in range(reps):
            found = rank(names, *study(rng, order, statements, wordings))
            assert found is not None
            tied = found.groups and tuple(tuple(sorted(group)) for group in found.groups)
            ranked += found.groups is not None
            right += tied == truth
            powered += all(
                pair.shown <= abs(pair.difference)
                for pair in found.pairs
                if {pair.a, pair.b} != {"b", "c"}
            )
        print(
            f"{statements:10} {wordings:9}  {'a > b = c > d > e':24} {100 * ranked / reps:9.1f}"
            f"{100 * right / reps:13.1f} {100 * powered / reps:15.1f}"
        )


def needed(statements: int) -> None:
    """Print from how many wordings on two models are ranked that differ alike in each of them.

    The replies to a statement are the same in all wordings.
    """
    for points in (20, 10, 5):
        for wordings in range(COLUMNS, 200):
            hits, sizes = np.zeros((statements, wordings)), np.ones((statements, wordings))
            more = hits.copy()
            more[: round(statements * points / 100)] = 1
            low, _ = OfPanel(np.stack([hits, sizes, more, sizes], -1)).interval() or (0.0, 0.0)
            if low > 0:
                print(f"{points} points in each of {wordings} wordings, {statements} statements")
                break


def flips(reps: int) -> None:
    """Print how often changed answers (flips) are found.

    300 items are asked twice. The probability of yes is near 0 or 1; each answer is drawn anew, or
    greedy.
    """
    import pandas as pd

    from genprobe.analysis.flips import flips as compared

    rng = np.random.default_rng(4)

    def table(chance: Array, drawn: bool) -> pd.DataFrame:
        says = rng.random((len(chance), 2)) < (chance[:, None] if drawn else chance[:, None] > 0.5)
        items = np.repeat([f"s{i:03}" for i in range(len(chance))], 2)
        says = says.ravel()
        return pd.DataFrame(
            {"statement": items, "sample": np.tile([0, 1], len(chance)), "left_out": "",
             "measures": "endorsed", "probe": "agreement", "says": says.astype(object),
             "response": says.astype(str)}
        )  # fmt: skip

    print("replies  version                      flips found %   share beyond")
    for drawn in (True, False):
        for what in ("the same", "10 % of flips, symmetric"):
            found, beyond = 0, []
            for _ in range(reps):
                chance = rng.beta(0.15, 0.15, 300)
                new = chance.copy()
                if what.startswith("10"):
                    halves = (np.flatnonzero(chance > 0.5), np.flatnonzero(chance <= 0.5))
                    turn = np.concatenate([rng.choice(half, 15, False) for half in halves])
                    new[turn] = 1 - new[turn]
                one = compared(table(chance, drawn), table(new, drawn), "endorsed")
                found += one.p is not None and one.p < 0.05
                beyond.append(one.share - (one.by_itself or 0.0))
            print(
                f"{'drawn' if drawn else 'greedy':8} {what:28} {100 * found / reps:12.1f}"
                f"{100 * np.mean(beyond):14.1f}",
                flush=True,
            )


def speed(_: int) -> None:
    from genprobe.analysis.components import components

    rng = np.random.default_rng(0)
    n, sizes = 1_000_000, {"statement": 5000, "wording": 10, "direction": 2, "model": 10}
    facets = {
        name: at.ravel()[:n]
        for name, at in zip(sizes, np.indices(tuple(sizes.values())), strict=True)
    }
    values = (rng.random(n) < 0.3).astype(float)
    started = time.monotonic()
    found = components(values, facets)
    hits = np.zeros((5000, 10))
    of = np.zeros((5000, 10))
    np.add.at(hits, (facets["statement"], facets["wording"]), values)
    np.add.at(of, (facets["statement"], facets["wording"]), 1)
    two_way_interval((hits, of))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{n:,} outcomes, {len(found.parts)} components and an interval: "
        f"{time.monotonic() - started:.1f} s, {memory:.0f} MiB at most"
    )


if __name__ == "__main__":
    what = {"components": recovered, "dstudy": widths,
            "ranking": ranking, "needed": needed, "flips": flips, "speed": speed}  # fmt: skip
    what[sys.argv[1] if len(sys.argv) > 1 else "components"](
        int(sys.argv[2]) if len(sys.argv) > 2 else 300
    )
