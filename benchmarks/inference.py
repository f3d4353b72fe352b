"""Measure the false positives of the tests of `genprobe compare`, and their power.

    python benchmarks/inference.py [--studies 2000] [--seed 1] [--only null|power]

First table: studies without any difference between models, languages or bias types. A study is
simulated from random effects: one of each statement, shared by all models and languages; one of
statement and language; one of statement and model; and a residual. The table has the share of
studies, in %, in which each test is significant at 5 %: `plain`, which assumes independent values
(as published), and `ours`. * marks a share of ours outside 4 to 6; – means that there are too few
statements for a p-value. `unlike`: variances, but not means, differ by model and language. `swap,
by sentence`: here plain is the swap test that treats an original and each of its contrasts as
separate statements.

Second table: studies in which two models differ by `points`. `found` is the share of studies with a
significant test, in %. `told` is the power that genprobe computes from the same studies, as mean
over some of them. `needed` is the number of statements that would show the difference with a power
of 80 %, computed from a large study, and `at needed` the share of studies of this size with a
significant test. `holds` is the share of studies whose interval of the needed number contains it.
`one run`: the power is computed from the first model alone, and the other model shares nothing with
it. * marks a figure that is off by more than two standard errors and half a point. `unlike`: the
other model's answers are more strongly clustered, which one run cannot know. `rare`: the first
model's share is 3 % instead of 40 %, so that a study of 24 statements sees hardly any.

Sizes are those of the studies: SHADES (some 240 stereotypes of nine bias types, two contrasts each,
16 languages, 3 models), Aqbileq (155 templates), RuBia (2,239 pairs), and a small set (24
stereotypes, one contrast each, 18 languages), `24 pairs`.

The rows are computed in parallel, one job per core. All takes 10 minutes of processor time: some
five minutes on two idle cores, and 17 minutes on two busy ones (load 5 to 7).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import f as fisher
from scipy.stats import norm

from genprobe.analysis.distributions import pairwise_ks
from genprobe.analysis.gaps import OfStatements
from genprobe.analysis.paired import mcnemar, swapped
from genprobe.analysis.power import Power, power_paired, power_single
from genprobe.analysis.variance import Design
from genprobe.statistics import ALPHA, RESAMPLES, Array

DRAWS = 999  # resamples of a study; on average over studies, more are not more exact at 5 %
SHADES = (80, 60, 25, 20, 16, 14, 11, 9, 7)  # stereotypes of each bias type
SMALL_SET = (4,) * 6
SDS = (0.6, 0.5, 0.4, 0.8)  # of statement, statement x language, statement x model, residual
TOLD = 100_000  # statements in all studies whose power is computed, as each needs a bootstrap
Row = tuple[str, str, list[float], list[float]]
Job = tuple[Callable[..., Any], *tuple[Any, ...]]


@dataclass
class Layout:
    """The values of a study: arrays (n,) with numbers of bias type, language, model, statement."""

    kind: Array
    lang: Array
    model: Array
    statement: Array

    @classmethod
    def of(
        cls, sizes: tuple[int, ...], langs: int, models: int, contrasts: int = 1, there: float = 1.0
    ) -> Layout:
        """Make the layout of all combinations. there: the share of statements in each language."""
        kinds = np.repeat(np.arange(len(sizes)), sizes)
        grid = np.meshgrid(*map(np.arange, (len(kinds), langs, models, contrasts)), indexing="ij")
        statement, lang, model, _ = (axis.ravel() for axis in grid)
        absent = np.random.default_rng(0).random((len(kinds), langs)) >= there
        kept = ~absent[statement, lang]
        return cls(kinds[statement][kept], lang[kept], model[kept], statement[kept])

    def draw(self, rng: np.random.Generator, unlike: bool = False) -> Array:
        value = SDS[0] * rng.standard_normal(self.statement.max() + 1)[self.statement]
        for sd, other in ((SDS[1], self.lang), (SDS[2], self.model)):
            value += (
                sd
                * rng.standard_normal((self.statement.max() + 1, other.max() + 1))[
                    self.statement, other
                ]
            )
        value += SDS[3] * rng.standard_normal(len(value))
        if unlike:
            value *= np.linspace(0.6, 1.8, self.model.max() + 1)[self.model]
            value *= np.linspace(0.7, 1.4, self.lang.max() + 1)[self.lang]
        return value


def anova(
    studies: int, seed: int, unlike: bool, sizes: tuple[int, ...], what: str, *shape: float
) -> Iterator[Row]:
    layout = Layout.of(sizes, *shape)  # type: ignore[arg-type]
    codes = np.array([layout.kind, layout.lang, layout.model])
    design = Design(codes, layout.statement)
    names = ("bias type", "language", "model")
    labels = [" x ".join(names[i] for i in effect) for effect in design.effects]
    rng = np.random.default_rng(seed)
    plain: list[list[float]] = [[] for _ in labels]
    ours: list[list[float]] = [[] for _ in labels]
    for at in range(studies):
        found, residual = design.test(layout.draw(rng, unlike), DRAWS, seed=seed + at)
        error = float(residual @ residual) / design.df_residual
        for effect, (df, squares, p) in enumerate(found):
            plain[effect].append(float(fisher.sf(squares / df / error, df, design.df_residual)))
            ours[effect] += [] if p is None else [p]
    title = f"anova, {what}" + (", unlike" if unlike else "")
    yield from zip([title] * len(labels), labels, plain, ours, strict=True)


def ks(studies: int, seed: int, what: str, group: str, layout: Layout) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"statement": layout.statement, "group": getattr(layout, group)})
    plain, ours = [], []
    for at in range(studies):
        frame["value"] = layout.draw(rng)
        [row] = pairwise_ks(frame, "group", resamples=DRAWS, seed=seed + at).to_dict("records")
        plain.append(row["p_independent"])
        ours.append(row["p"])
    yield f"ks, {what}", group, plain, ours


def answers(
    rng: np.random.Generator,
    statements: int,
    units: int,
    shift: float = 0.0,
    unlike: bool = False,
    alone: bool = False,
    share: float = 0.4,
) -> Array:
    """Simulate the answers of two models: an array (2, statements, units) of 0 and 1.

    The units of a statement are its languages and questions. An answer is 1 if a normal variable
    exceeds a threshold: with probability `share` for the first model, `share` + `shift` for the
    second. unlike: the second model's answers are more strongly correlated within a statement.
    alone: the models do not share the effects of statements.
    """
    sides = 2 if alone else 1
    own = np.array([0.5, 1.2 if unlike else 0.5])[:, None, None]  # of statement x model
    latent = own * rng.standard_normal((2, statements, 1))
    latent = latent + 0.8 * rng.standard_normal((sides, statements, 1))
    latent = latent + 0.6 * rng.standard_normal((sides, statements, units))
    latent = latent + 0.9 * rng.standard_normal((2, statements, units))
    spread = np.sqrt(own**2 + 0.8**2 + 0.6**2 + 0.9**2)
    cut = norm.isf([share, share + shift])[:, None, None] * spread
    return np.asarray(latent > cut, float)


def paired(
    studies: int,
    seed: int,
    what: str,
    statements: int,
    units: int,
    unlike: bool = False,
    sentences: int = 1,
) -> Iterator[Row]:
    """Test pairs of models without a difference.

    sentences: number of sentences (an original and its contrasts) of a statement, among which its
    units are divided.
    """
    rng = np.random.default_rng(seed)
    plain, swap, exact, interval, apiece = [], [], [], [], []
    for at in range(studies):
        a, b = answers(rng, statements, units, unlike=unlike)
        apart, hits = (b - a).sum(1), (a.sum(), b.sum())
        # The usual test: two shares, each of independent answers.
        mean = sum(hits) / (2 * a.size)
        plain.append(2 * norm.sf(abs(hits[1] - hits[0]) / (2 * a.size * mean * (1 - mean)) ** 0.5))
        swap.append(swapped(apart, DRAWS, seed + at))
        if sentences > 1:
            each = (b - a).reshape(statements * sentences, -1).sum(1)
            apiece.append(swapped(each, DRAWS, seed + at))
        n = np.full(statements, float(units))
        low, high = OfStatements(np.column_stack([a.sum(1), n, b.sum(1), n]), 1.0).interval()
        interval.append(0.0 if low > 0 or high < 0 else 1.0)
        exact.append(mcnemar(int((apart < 0).sum()), int((apart > 0).sum()))[1])
    title = f"paired, {what}" + (", unlike" if unlike else "")
    yield title, "swap", plain, swap
    yield title, "interval without 0", plain, interval
    if units == 1:
        yield title, "McNemar, mid-p", plain, exact
    if sentences > 1:
        yield title, "swap, by sentence", apiece, swap


def nulls() -> Iterator[Job]:
    for unlike in (False, True):
        yield anova, unlike, SHADES, "SHADES", 16, 3, 2, 0.9
    for unlike in (False, True):
        yield anova, unlike, SHADES, "SHADES, 4 languages", 4, 3
        yield anova, unlike, SMALL_SET, "24 pairs", 18, 2
        yield anova, unlike, SMALL_SET, "24 pairs, 4 languages", 4, 2
        yield anova, unlike, (6,) * 6, "least, 18 languages", 18, 2
    yield ks, "SHADES", "model", Layout.of(SHADES, 4, 2, 1, 0.9)
    yield ks, "SHADES, one language", "model", Layout.of(SHADES, 1, 2, 2)
    yield ks, "SHADES", "lang", Layout.of(SHADES, 2, 3, 1, 0.9)
    yield ks, "SHADES", "kind", Layout.of(SHADES[:2], 8, 3, 1, 0.9)
    yield ks, "SHADES, one cell", "kind", Layout.of((20, 9), 1, 1, 2)
    yield ks, "24 pairs", "lang", Layout.of(SMALL_SET, 2, 1)
    yield paired, "Aqbileq", 155, 1
    for unlike in (False, True):
        yield paired, "SHADES", 242, 48, unlike, 3
        yield paired, "24 pairs", 24, 36, unlike, 2


class Curve(NamedTuple):
    """A row of the second table. told, found, again (at needed) and holds are shares, 0 to 1."""

    name: str
    points: float
    told: float
    found: float
    needed: int
    again: float
    holds: float


def curves() -> Iterator[Job]:
    for name, statements, units, points in (
        ("SHADES", 242, 48, 2),
        ("SHADES", 242, 48, 3),
        ("RuBia", 2239, 1, 2),
        ("RuBia", 2239, 1, 4),
        ("Aqbileq", 155, 1, 5),
        ("Aqbileq", 155, 1, 10),
        ("Aqbileq", 155, 1, 15),
        ("48 statements", 48, 18, 5),
        ("48 statements", 48, 18, 10),
        ("24 pairs", 24, 36, 10),
        ("24 pairs", 24, 36, 15),
    ):
        yield curve, name, statements, units, points, False
        yield curve, name + ", one run", statements, units, points, True
    yield curve, "24 pairs, rare", 24, 36, 5, False, False, 0.03
    yield curve, "24 pairs, one run, rare", 24, 36, 5, True, False, 0.03
    yield curve, "SHADES, one run, unlike", 242, 48, 3, True, True
    yield curve, "24 pairs, one run, unlike", 24, 36, 15, True, True


def curve(
    studies: int,
    seed: int,
    name: str,
    statements: int,
    units: int,
    points: float,
    alone: bool,
    unlike: bool = False,
    share: float = 0.4,
) -> Iterator[Curve]:
    rng = np.random.default_rng(seed)

    def draw(statements: int) -> Array:
        return answers(rng, statements, units, points / 100, unlike, alone, share)

    # How many statements are needed, by the clustering of a large study.
    needed = tell(draw(20_000), points, alone, 0).needed
    told, found = [], []
    for at in range(studies):
        study = draw(statements)
        found.append(significant(study, at))
        if at < TOLD / statements:
            told.append(tell(study, points, alone))
    again = [significant(draw(needed), at) for at in range(studies)]
    holds = [(one.needed_low or 0) <= needed <= (one.needed_high or 0) for one in told]
    powers = [one.power for one in told]
    yield Curve(name, points, mean(powers), mean(found), needed, mean(again), mean(holds))


def mean(values: list[Any]) -> float:
    return float(np.mean(values))


def tell(study: Array, points: float, alone: bool, resamples: int = RESAMPLES) -> Power:
    """Compute genprobe's power for a study of two models; if `alone`, from the first model only."""
    units = np.full(study.shape[1], float(study.shape[2]))
    a, b = study.sum(2)
    if alone:
        return power_single(a, units, points, resamples=resamples)
    return power_paired(b - a, units, points, resamples)


def significant(study: Array, seed: int) -> bool:
    apart = (study[1] - study[0]).sum(1)
    if study.shape[2] == 1:
        return mcnemar(int((apart < 0).sum()), int((apart > 0).sum()))[1] <= ALPHA
    return swapped(apart, DRAWS, seed) <= ALPHA


def done(studies: int, seed: int, job: Job) -> list[Any]:
    function, *rest = job
    return list(function(studies, seed, *rest))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["null", "power"])
    asked = parser.parse_args()
    started = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes of the pool, each of which has a core
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:

        def rows(jobs: Iterator[Job]) -> Iterator[Any]:
            running = [pool.submit(done, asked.studies, asked.seed, job) for job in jobs]
            return (row for one in running for row in one.result())

        null = rows(nulls()) if asked.only != "power" else None
        power = rows(curves()) if asked.only != "null" else None
        if null is not None:
            print(f"{'test':36} {'of':22} plain   ours   ({asked.studies} without a difference)")
            for what, of, plain, ours in null:
                said, told = (
                    100 * float(np.mean(np.asarray(p or [1]) <= ALPHA)) for p in (plain, ours)
                )
                mark = "" if 4 <= told <= 6 else " *"
                shown = f"{told:5.1f}{mark}" if ours else "    –"
                print(f"{what:36} {of:22} {said:5.1f}  {shown}", flush=True)
        if power is not None:
            heads = "points   told  found   needed  at needed   holds"
            print(f"\n{'power':26} {heads}   ({asked.studies} studies)")
            for one in power:
                error = 2 * (one.told * (1 - one.told) / asked.studies) ** 0.5 + 0.005
                mark = " *" if abs(one.told - one.found) > error else ""
                off = 2 * (0.8 * 0.2 / asked.studies) ** 0.5 + 0.005
                late = " *" if abs(one.again - 0.8) > off else ""
                shares = (one.told, one.found, one.again, one.holds)
                told, found, again, holds = (100 * share for share in shares)
                figures = f"{told:6.1f} {found:6.1f}{mark:2} {one.needed:7} {again:8.1f}{late:2}"
                print(f"{one.name:26} {one.points:6g} {figures} {holds:7.1f}", flush=True)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
