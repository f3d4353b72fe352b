"""Measure how often the interval of a share holds the true share.

    python benchmarks/intervals.py [--draws 200] [--all]     simulated statements
    python benchmarks/intervals.py FILE [--draws 300]        recorded replies, and simulated pairs

Without FILE, replies to statements are drawn in 336 settings: a number of statements, replies to
each, a true share, and how alike the replies to a statement are. `icc`: each statement has a chance
of its own, from a beta distribution in which the replies to a statement have this intraclass
correlation. `kinds`: three statements in five get the same reply each time, as at temperature 0,
and the replies to the others do not depend on each other. The statements of a draw are a sample of
those that the truth is about. Each row of the table is about the settings with these statements:
the mean coverage of the 95 % intervals, the lowest and where it was, and the mean width in points.
`--all` prints each setting. Sizes of statements are drawn anew each time, if they differ.

FILE has judged replies, or replies that are judged first, with the columns `pair` and `role`, such
as the recorded ones of the SHADES study. Each row of the table is about all cells by some columns
(and by model) whose share lies between 2 and 98 %. `ratio` is the standard error of the share with
an original and its contrasts as one cluster, divided by that with each statement as a cluster: the
median over cells and, in brackets, the first and the last decile. `coverage`: the pairs of a cell
serve as the population, from which the same number of pairs (then 24) is drawn with replacement. It
is the share of 95 % intervals, in %, that contain the cell's share, as the mean over cells, first
with pairs and then with statements as clusters.

A second table has the coverage for simulated statements, in which the answers to an original and
its contrasts are correlated (`alike`).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from genprobe import metrics
from genprobe.files import read_rows
from genprobe.outcomes import table
from genprobe.resources import registry
from genprobe.statistics import Array, share_interval
from genprobe.tasks.pipeline.judge import judged_rows

METRICS = ("yes", "recognised", "endorsed")
SPLITS: tuple[tuple[str, ...], ...] = (
    *((), ("probe",), ("lang",), ("lang", "probe"), ("role",), ("lang", "role")),
    *(("lang", "probe", "role"), ("lang", "probe", "bias_type")),
)
FEW = 24  # pairs: a small set of statements
LEAST = 12
# Statements, and replies to each: the fewest and the most, or HALF: one statement has as many as
# all others together.
HALF = (0, 0)
USUAL = (
    *((5, (10, 10)), (10, (5, 5)), (20, (30, 30)), (24, (16, 16)), (50, (5, 5)), (100, (1, 9))),
)
SAME_REPLY = 0.6  # of the statements, among `kinds`
SHARES = (0.01, 0.03, 0.05, 0.1, 0.3, 0.5)


class Setting(NamedTuple):
    """What is simulated."""

    statements: int
    replies: tuple[int, int]
    alike: float | None  # intraclass correlation; None: statements of two kinds
    share: float

    def where(self) -> str:
        """Name the statements and their replies."""
        low, high = self.replies
        return (
            f"{self.statements} x {'half' if not low else low if low == high else f'{low}-{high}'}"
        )

    def how(self) -> str:
        """Name the rest."""
        return f"{'kinds' if self.alike is None else f'icc {self.alike:g}'}, share {self.share:g}"


def settings() -> list[Setting]:
    """List the 336 settings: 144 usual ones, 120 hard ones, and 72 whose replies hardly depend."""
    few = itertools.product((3, 4, 8), ((1, 60), HALF))
    grids = (
        (USUAL, (0.3, 0.6, 0.9, None), SHARES),
        (few, (0.02, 0.1, 0.3, 0.9, None), (0.02, 0.05, 0.1, 0.3)),
        (USUAL, (0.0, 0.1), SHARES),
    )
    return [
        Setting(*where, alike, share)
        for wheres, likes, shares in grids
        for where, alike, share in itertools.product(wheres, likes, shares)
    ]


def drawn(rng: np.random.Generator, of: Setting) -> tuple[Array, Array]:
    """Draw the hits and the replies of each statement, (statements,)."""
    n, (low, high) = of.statements, of.replies
    sizes = rng.integers(low, high + 1, n) if low else np.array([5 * (n - 1), *[5] * (n - 1)])
    chance = np.full(n, of.share)
    if of.alike is None:
        same = rng.random(n) < SAME_REPLY
        chance = np.where(same, rng.random(n) < of.share, chance)
    elif of.alike:
        both = 1 / of.alike - 1
        chance = rng.beta(of.share * both, (1 - of.share) * both, n)
    return rng.binomial(sizes, chance), sizes


def held(of: Setting, draws: int, seed: int) -> tuple[float, float]:
    """Return the share of intervals that hold the true share, and their mean width, both in %."""
    rng = np.random.default_rng(seed)
    ends = np.array([share_interval(*drawn(rng, of)) for _ in range(draws)])
    holds = (ends[:, 0] <= of.share) & (of.share <= ends[:, 1])
    return 100 * float(holds.mean()), 100 * float((ends[:, 1] - ends[:, 0]).mean())


def shares(draws: int, seed: int, every: bool) -> Iterator[str]:
    """Yield the rows of the table of simulated settings."""
    found = {}
    if every:
        yield f"{'statements':12} {'setting':24} coverage   width"
    for of in settings():
        rate, width = found[of] = held(of, draws, seed)
        if every:
            yield f"{of.where():12} {of.how():24} {rate:8.1f}  {width:6.1f}"
    yield f"{'statements':12} settings   mean   lowest   width   where it was lowest"
    groups = [(where, [of for of in found if of.where() == where]) for where in
              dict.fromkeys(of.where() for of in found)]  # fmt: skip
    for where, group in [*groups, ("all", list(found))]:
        rates = [found[of][0] for of in group]
        worst = group[int(np.argmin(rates))]
        yield (
            f"{where:12} {len(group):8}  {np.mean(rates):5.1f}   {min(rates):6.1f}   "
            f"{np.mean([found[of][1] for of in group]):5.1f}   {worst.how()}"
            + f" ({worst.where()})"
            * (where == "all")
        )


def cells(outcomes: pd.DataFrame, metric: str, by: list[str]) -> Iterator[tuple[Array, Array]]:
    """Yield the hits and the replies of every cell, arrays (pairs, statements).

    If a pair has fewer statements than others, its row ends in 0.
    """
    chosen = metrics.find(metric)
    one = chosen.units(outcomes, by)
    alone = chosen.units(outcomes.drop(columns="pair"), by)
    number, labels = metrics.cells(one.cells, by)
    kept = pd.DataFrame(
        {"pair": one.cluster.to_numpy(), "statement": alone.cluster.to_numpy()}
        | {"hit": one.stats[:, 0], "n": one.stats[:, 1], "cell": number}
    )[(one.left_out == "").to_numpy()]
    for at in range(len(labels)):
        if not (kept["cell"] == at).any():
            continue
        sums = kept[kept["cell"] == at].groupby(["pair", "statement"])[["hit", "n"]].sum()
        wide = sums.assign(at=sums.groupby("pair").cumcount()).set_index("at", append=True)
        wide = wide.droplevel("statement").unstack(fill_value=0)
        yield wide["hit"].to_numpy(float), wide["n"].to_numpy(float)


def spread(hits: Array, sizes: Array) -> float:
    """Compute the linearised standard error of sum(hits) / sum(sizes) between clusters.

    hits, sizes: (clusters,).
    """
    apart = hits - hits.sum() / sizes.sum() * sizes
    return float((len(hits) / (len(hits) - 1) * (apart**2).sum()) ** 0.5 / sizes.sum())


def covered(hits: Array, sizes: Array, true: float) -> tuple[bool, bool]:
    """Return whether the intervals by pair and by statement contain the true share.

    hits, sizes: (pairs, statements).
    """
    there = sizes > 0
    found = (
        share_interval(hits.sum(1), sizes.sum(1)),
        share_interval(hits[there], sizes[there]),
    )
    one, alone = (bool(ends and ends[0] <= true <= ends[1]) for ends in found)
    return one, alone


def again(rng: np.random.Generator, hits: Array, sizes: Array, pairs: int, draws: int) -> Array:
    """Compute the coverage of the intervals of samples of pairs: (2,), by pair and by statement."""
    true = float(hits.sum() / sizes.sum())
    drawn = rng.integers(0, len(hits), (draws, pairs))
    return np.mean([covered(hits[at], sizes[at], true) for at in drawn], axis=0)


def measured(outcomes: pd.DataFrame, draws: int, seed: int) -> Iterator[str]:
    for by in SPLITS:
        for metric in METRICS:
            rng = np.random.default_rng(seed)
            ratios, whole, few = [], [], []
            for hits, sizes in cells(outcomes, metric, ["model", *by]):
                there = sizes > 0
                share = hits.sum() / max(1, sizes.sum())
                if len(hits) < LEAST or not 0.02 <= share <= 0.98:
                    continue
                one = spread(hits.sum(1), sizes.sum(1))
                ratios.append(one / spread(hits[there], sizes[there]))
                whole.append(again(rng, hits, sizes, len(hits), draws))
                few.append(again(rng, hits, sizes, FEW, draws))
            if not ratios:
                continue
            low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
            parts = [100 * np.mean(part, axis=0) for part in (whole, few)]
            shown = "   ".join(f"{one:5.1f} {alone:5.1f}" for one, alone in parts)
            name = ",".join(by) or "all"
            yield (
                f"{name:22} {metric:10} {len(ratios):5}   {middle:4.2f} ({low:4.2f}-{high:4.2f})"
                f"   {shown}"
            )


def simulated(draws: int, seed: int) -> Iterator[str]:
    """Yield the rows of the second table: coverage for beta-binomial answers, 30 % of them yes."""
    for contrasts in (1, 2):
        for alike in (0.0, 0.25, 0.5, 0.75):
            for pairs in (4, 12, 24, 240):
                rng = np.random.default_rng(seed)
                size = 1 / max(alike, 1e-9) - 1
                found = []
                for _ in range(draws):
                    p = rng.beta(0.3 * size, 0.7 * size, pairs)[:, None]
                    hits = rng.binomial(1, np.broadcast_to(p, (pairs, 1 + contrasts))).astype(float)
                    found.append(covered(hits, np.ones(hits.shape), 0.3))
                one, alone = 100 * np.mean(found, axis=0)
                yield f"{contrasts:9} {alike:7.2f} {pairs:7}   {one:5.1f} {alone:5.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="each of the 336 settings")
    asked = parser.parse_args()
    if not asked.file:
        for line in shares(asked.draws or 200, asked.seed, asked.all):
            print(line, flush=True)
        return
    asked.draws = asked.draws or 300
    first = next(read_rows(asked.file))
    judge = registry.module("judges", "yesno").make()
    rows = read_rows(asked.file) if "answer" in first else judged_rows(asked.file, [judge])
    outcomes = table.from_rows(rows)
    print(f"{'cells of model and':22} {'rate':10} cells   ratio              coverage: all    24")
    for line in measured(outcomes, asked.draws, asked.seed):
        print(line, flush=True)
    print("\ncontrasts   alike   pairs   coverage")
    for line in simulated(asked.draws, asked.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
