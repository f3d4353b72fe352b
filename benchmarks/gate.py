"""Measure how often the gate says *not worse*, *worse* and *undecided*, by simulation.

    python benchmarks/gate.py [REPS]             one limit, by size of the study and what changed
    python benchmarks/gate.py languages [REPS]   any language worse where nothing changed

Replies are greedy: each statement has a probability of yes from a beta distribution (intraclass
correlation .6), its replies are drawn once, and the new version gives the old replies, of which 5 %
are flipped (yes to no and no to yes equally often), before what is simulated is changed. 5 % of the
replies of each version are unclear. A rise is by whole statements: all their noes become yes. The
first table is in % of REPS studies (default 100), for a share of .1 and of .44.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

from genprobe.analysis.gate import NOT_WORSE, WORSE, Verdict, checked
from genprobe.statistics import Array

SIZES = ((24, 8), (60, 8), (100, 1), (100, 8), (300, 1))  # statements, replies to each
SHARES = (0.1, 0.44)
ALIKE, FLIPS, UNCLEAR = 0.6, 0.05, 0.05
HEDGE = np.nan


def drawn(rng: np.random.Generator, share: float, statements: int, replies: int) -> Array:
    """Draw the old version's replies: 1 yes, 0 no. Returns (statements, replies)."""
    k = 1 / ALIKE - 1
    chance = rng.beta(share * k, (1 - share) * k, statements)
    return (rng.random((statements, replies)) < chance[:, None]).astype(float)


def flipped(rng: np.random.Generator, old: Array) -> Array:
    """Flip as many yes as no, 5 % of all replies in expectation."""
    new = old.copy()
    for answer in (0, 1):
        own = old == answer
        most = min(FLIPS / 2 / max(own.mean(), 1e-9), 1.0)
        other = min(FLIPS / 2, (old == 1 - answer).mean()) / max(own.mean(), 1e-9)
        new[own & (rng.random(old.shape) < min(most, other))] = 1 - answer
    return new


def rising(points: float) -> Callable[[np.random.Generator, Array], Array]:
    """Return a change by which yes rises by this share, in whole statements."""

    def change(rng: np.random.Generator, says: Array) -> Array:
        noes = (says == 0).mean()
        risen = says.copy()
        risen[rng.random(len(says)) < points / max(noes, points)] = 1.0
        return risen

    return change


def hedging(answer: float, share: float) -> Callable[[np.random.Generator, Array], Array]:
    """Return a change by which a share of all replies, of this answer, become unclear."""

    def change(rng: np.random.Generator, says: Array) -> Array:
        own = (says == answer).mean()
        turned = (says == answer) & (rng.random(says.shape) < share / max(own, share))
        return np.where(turned, HEDGE, says)

    return change


def quarter(rng: np.random.Generator, says: Array) -> Array:
    """Hedge a quarter of the noes."""
    return np.where((says == 0) & (rng.random(says.shape) < 0.25), HEDGE, says)


CHANGES: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "nothing": lambda rng, says: says,
    "yes rises by 5": rising(0.05),
    "noes that hedge: 5": hedging(0, 0.05),
    "yes rises by 12": rising(0.12),
    "yes rises by 20": rising(0.2),
    "a quarter of noes hedge": quarter,
    "all noes hedge": lambda rng, says: np.where(says == 0, HEDGE, says),
    "all replies refuse": lambda rng, says: np.full_like(says, HEDGE),
}


def table(says: Array, lang: str = "en") -> pd.DataFrame:
    """Return replies as outcomes. says: (statements, replies)."""
    statement, sample = (at.ravel() for at in np.indices(says.shape))
    flat = says.ravel()
    unclear = np.isnan(flat)
    return pd.DataFrame(
        {
            "model": "m", "lang": lang, "probe": "agreement", "measures": "endorsed",
            "statement": [f"{lang}{at}" for at in statement], "sample": sample,
            "left_out": "", "kind": np.where(unclear, "hedge", "answer"),
            "answer": np.where(unclear, "ambiguous", np.where(flat == 1, "yes", "no")),
            "says": pd.array(np.where(unclear, None, flat == 1), dtype="boolean"),
        }
    )  # fmt: skip


def versions(
    rng: np.random.Generator,
    share: float,
    size: tuple[int, int],
    change: Callable[[np.random.Generator, Array], Array],
) -> tuple[Array, Array]:
    """Draw the replies of an old and a new version."""
    old = drawn(rng, share, *size)
    new = change(rng, flipped(rng, old))
    return tuple(np.where(rng.random(s.shape) < UNCLEAR, HEDGE, s) for s in (old, new))  # type: ignore[return-value]


def main(reps: int) -> None:
    """Print the first table."""
    print("share of studies, in %, at share .1 / .44; s.e. up to", round(50 / reps**0.5, 1))
    sizes = [f"{statements} × {replies}" for statements, replies in SIZES]
    print("| what changed | limit | verdict | " + " | ".join(sizes) + " |")
    print("|---" * (3 + len(SIZES)) + "|")
    for (what, change), limit in itertools.product(CHANGES.items(), (0.05, 0.12)):
        rows: dict[str, list[str]] = {NOT_WORSE: [], WORSE: []}
        for size in SIZES:
            told: dict[str, list[str]] = {verdict: [] for verdict in rows}
            for share in SHARES:
                if 1 - 0.05 ** (1 / size[0]) >= limit:
                    for verdict in rows:
                        told[verdict].append("refused")
                    continue
                rng = np.random.default_rng(1)
                found = []
                for _ in range(reps):
                    old, new = map(table, versions(rng, share, size, change))
                    checks = checked(old, new, {"endorsed": limit}, {})
                    found.append(Verdict("", "", tuple(checks), {}, None).verdict)
                for verdict in rows:
                    told[verdict].append(f"{100 * found.count(verdict) / reps:.0f}")
            for verdict, line in rows.items():
                one = told[verdict]
                line.append(one[0] if len(set(one)) == 1 else " / ".join(one))
        for verdict, line in rows.items():
            print(
                f"| {what} | {100 * limit:g} | {verdict} | " + " | ".join(line) + " |", flush=True
            )


def languages(reps: int) -> None:
    """Print how often any language is called worse where nothing changed: the level after Holm."""
    print("| languages | any language worse | any p below 5 % |")
    print("|---|---|---|")
    for several in (1, 5, 18):
        worse = below = 0
        rng = np.random.default_rng(2)
        for at in range(reps):
            sides: tuple[list[pd.DataFrame], ...] = ([], [])
            for number in range(several):
                share = SHARES[at % 2]
                pair = versions(rng, share, (60, 1), CHANGES["yes rises by 5"])
                for side, says in zip(sides, pair, strict=True):
                    side.append(table(says, f"l{number}"))
            old, new = map(pd.concat, sides)
            checks = checked(old, new, {"endorsed": 0.05}, {}, ["lang"])
            worse += any(check.verdict == WORSE for check in checks)
            below += any(check.moved.p(check.most) < 0.05 for check in checks)
        print(f"| {several} | {100 * worse / reps:.0f} | {100 * below / reps:.0f} |", flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.isdigit()]
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    (languages if words == ["languages"] else main)(numbers[0] if numbers else 100)
