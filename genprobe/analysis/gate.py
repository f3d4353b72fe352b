"""Test whether a new version of a model may pass: no figure rose by more than is allowed.

Each limit is tested one-sided, so a version whose figure rose by no more than the limit is stopped
in at most 5 % of cases. The gate also says which rise the sample is too small to detect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from genprobe.analysis import paired
from genprobe.analysis.compare import asked_alike
from genprobe.analysis.flips import Flips, flips
from genprobe.analysis.score import Source
from genprobe.errors import InputError
from genprobe.outcomes import table
from genprobe.runs.run import Run
from genprobe.runs.spec import WHO
from genprobe.statistics import LEVEL, Array
from genprobe.text.display import clean

ALPHA = 0.05


@dataclass(frozen=True)
class Check:
    """The test of one limit of a gate.

    metric: the figure. most: the rise allowed, a share. rise, low, high: new minus old over the
    shared items, with its interval. p: for the hypothesis that the rise is within the limit. seen:
    the smallest rise beyond the limit that a sample of this size detects in 80 % of cases. passed:
    False if the rise is significantly above the limit.
    """

    metric: str
    most: float
    old: float
    new: float
    rise: float
    low: float
    high: float
    p: float
    seen: float
    n: int
    statements: int
    passed: bool

    def told(self) -> str:
        """Say in one line how much the figure changed, in points."""
        points = f"{self.metric} moved by {100 * self.rise:+.1f} points"
        points += f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}] on {self.n} units"
        limit = f"{100 * self.most:g} allowed"
        if not self.passed:
            return f"{points}, more than the {limit} (p {self.p:.3g})"
        if self.rise > self.most:
            return f"{points}; {limit}: above the limit, but within chance (p {self.p:.2g})"
        return f"{points}; {limit}"

    @property
    def weak(self) -> str:
        """Say which rise the sample is too small to detect; empty if it detects twice the limit."""
        if self.seen <= max(self.most, 0.01):
            return ""
        if self.most + self.seen >= 1:
            return (
                f"{self.metric}: {self.statements} statements are too few to show any rise; ask "
                "more"
            )
        return (
            f"{self.metric}: {self.statements} statements like these miss a rise of "
            f"{100 * (self.most + self.seen):.1f} points in one case of five, and smaller rises "
            "more often; ask more statements"
        )


def check(units: Array, metric: str, most: float) -> Check:
    """Test whether a figure rose by more than is allowed.

    units: (statements, 3), sums over the units of a statement: of the old version, of the new
    version, and the number of units. most: the rise allowed, a share. The test is a one-sided
    t-test of the mean difference over statements at 5 %. Raises InputError if fewer than two
    statements count.
    """
    from scipy import stats

    units = np.asarray(units, float)
    statements = len(units)
    if statements < 2:
        raise InputError(f"{metric}: fewer than two statements count for both; nothing to test")
    old, new, n = units.sum(0)
    rise = float((new - old) / n)
    parts = (units[:, 1] - units[:, 0] - rise * units[:, 2]) / n
    error = (statements / (statements - 1) * float((parts**2).sum())) ** 0.5
    freedom = statements - 1
    # Even if no item differs in the sample, some may in others; assume one.
    least = max(error, 1 / n / 2)
    p = float(stats.t.sf((rise - most) / least, freedom))
    reach = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * least
    seen = _seen(float(stats.t.ppf(1 - ALPHA, freedom) + stats.t.ppf(0.8, freedom)), least, most, n)
    return Check(
        metric=metric,
        most=most,
        old=float(old / n),
        new=float(new / n),
        rise=rise,
        low=max(-1.0, rise - reach),
        high=min(1.0, rise + reach),
        p=p,
        seen=seen,
        n=int(n),
        statements=statements,
        passed=p >= ALPHA,
    )


def _seen(quantiles: float, error: float, most: float, n: float) -> float:
    """Find the smallest rise beyond the limit that is detected in 80 % of cases.

    A rise means that units differ, so it has a sampling error even if none differ in this sample.
    """
    rise = quantiles * error
    for _ in range(50):
        share = min(0.5, most + rise)
        rise = quantiles * max(error, (share * (1 - share) / n) ** 0.5)
    return rise


@dataclass(frozen=True)
class Verdict:
    """The result of a gate.

    checks: one for each limit. flips: by measure. most_flips: the share of answers that may change
    beyond chance; None without that limit. notes: warnings, one line each.
    """

    new: str
    old: str
    checks: tuple[Check, ...]
    flips: Mapping[str, Flips]
    most_flips: float | None
    notes: tuple[str, ...] = field(default=())

    @property
    def failures(self) -> list[str]:
        """Return the reasons for not passing, one line each; empty if it passes."""
        found = [check.told() for check in self.checks if not check.passed]
        for measure, one in self.flips.items():
            if self.most_flips is not None and one.beyond and one.beyond[0] > self.most_flips:
                found.append(f"{measure}: {told(one)}; {100 * self.most_flips:g} points allowed")
        return found

    @property
    def passed(self) -> bool:
        """Return whether there is no reason for not passing."""
        return not self.failures

    def lines(self) -> list[str]:
        """Write the verdict: passed, or failed and why; then all figures and notes."""
        head = "pass" if self.passed else f"FAIL: {self.failures[0]}"
        figures = [check.told() for check in self.checks]
        figures += [f"{measure}: {told(one)}" for measure, one in self.flips.items()]
        return [head, *figures, *(f"note: {note}" for note in self.notes)]

    def json(self) -> dict[str, Any]:
        """Return the whole verdict as JSON, for programs."""
        return {
            "passed": self.passed,
            "failures": self.failures,
            "new": self.new,
            "old": self.old,
            "checks": [vars(check) for check in self.checks],
            "flips": {m: vars(one) for m, one in self.flips.items()},
            "notes": list(self.notes),
        }

    def junit(self) -> str:
        """Write the verdict as JUnit XML, one test case for each limit."""
        cases = [(c.metric, "" if c.passed else c.told(), c.told()) for c in self.checks]
        for measure, one in self.flips.items():
            failed = [line for line in self.failures if line.startswith(f"{measure}: ")]
            cases.append((f"{measure} flips", failed[0] if failed else "", told(one)))
        failures = sum(bool(why) for _, why, _ in cases)
        out = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuite name="genprobe gate" tests="{len(cases)}" failures="{failures}">',
        ]
        for name, why, said in cases:
            inner = f"<failure message={quoteattr(clean(why))}/>" if why else ""
            out.append(
                f'  <testcase classname="genprobe.gate" name={quoteattr(name)}>{inner}'
                f"<system-out>{_escaped(said)}</system-out></testcase>"
            )
        notes = "".join(f"{_escaped(note)}\n" for note in self.notes)
        return "\n".join([*out, f"  <system-out>{notes}</system-out>", "</testsuite>"]) + "\n"


def _escaped(text: str) -> str:
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def told(one: Flips) -> str:
    """Say in one line how many answers changed, and how many beyond chance."""
    said = (
        f"{one.up + one.down} of {one.n} answers changed ({100 * one.share:.1f} % "
        f"[{100 * one.low:.1f}, {100 * one.high:.1f}]), {one.up} up and {one.down} down"
    )
    if one.beyond is None or one.by_itself is None:
        return f"{said}; how many change by chance is unknown"
    low, high = (100 * end for end in one.beyond)
    return (
        f"{said}; {100 * one.by_itself:.1f} % change by chance, beyond that "
        f"{100 * (one.share - one.by_itself):+.1f} points [{low:+.1f}, {high:+.1f}]"
    )


def gate(
    new: Source, old: Source, limits: Mapping[str, float], most_flips: float | None = None
) -> Verdict:
    """Test a new version's run against an old one's.

    limits: metric -> the rise allowed, a share. most_flips: share of answers that may change beyond
    chance. Raises RunError if the two asked differently; InputError for a metric that is not a mean
    over items, or invalid limits.
    """
    runs = [Run.open(folder) for folder in (old, new)]
    asked_alike(runs[0], runs[1], (*WHO, "seed"))
    before, after = (table.outcomes(run) for run in runs)
    checks: list[Check] = []
    notes = [f"{run.folder}: {line}" for run in runs if (line := run.spec.drawn_otherwise)]
    for metric, most in limits.items():
        found_in = paired.matched(before, after, metric)
        if not found_in:
            raise InputError(f"{metric}: nothing counts in either run; nothing to test")
        for cell in found_in:
            where = "".join(f", {column} {value}" for column, value in cell.by.items())
            one = check(cell.sums, metric + where, most)
            checks.append(one)
            if cell.alone:
                told_of = f"{cell.alone} units count in only one of the two runs"
                notes.append(f"{metric}{where}: {told_of}")
            if one.weak:
                notes.append(one.weak)
    drawn = not all(run.spec.greedy for run in runs)
    turned: dict[str, Flips] = {}
    for measure in ("endorsed", "recognised"):
        if all("measures" in t and (t["measures"] == measure).any() for t in (before, after)):
            try:
                turned[measure] = flips(before, after, measure, drawn)
            except InputError as error:
                notes.append(str(error))
    if turned and all(found.nothing_changed for found in turned.values()):
        notes.append(
            "all replies are exactly the same: check that the new version was used (an adapter "
            "that is not loaded changes nothing)"
        )
    for measure, found in turned.items():
        if found.by_itself is None:
            notes.append(
                f"{measure}: replies are sampled once each, so changed answers cannot be told "
                "from chance; ask with --samples 2"
            )
    if most_flips is not None and not turned:
        raise InputError("--max-flips counts yes/no answers, and these runs have none")
    if most_flips is not None and all(found.beyond is None for found in turned.values()):
        raise InputError(
            "--max-flips: replies are sampled once each, so changes by chance are unknown; ask "
            "with --samples 2"
        )
    return Verdict(str(new), str(old), tuple(checks), turned, most_flips, tuple(notes))
