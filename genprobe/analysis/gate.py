"""Test whether a new version of a model is not worse than the old one, by given margins.

Three verdicts. *Not worse*: of every limit, each upper confidence limit lies below the margin (a
test of non-inferiority; as all must hold, no correction is needed: Berger 1982, Technometrics
24:295). *Worse*: a rise beyond a margin is shown, after Holm's correction for all limits and cells.
*Undecided*: neither. docs/inference.md says how often each is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from genprobe import metrics
from genprobe.analysis import paired, rises
from genprobe.analysis.compare import main_measure
from genprobe.analysis.flips import Flips, flips
from genprobe.analysis.rises import Moved
from genprobe.analysis.sources import Side, need_alike, one_side, signed_by
from genprobe.errors import InputError, RunError
from genprobe.runs import seal
from genprobe.runs.spec import WHO
from genprobe.statistics import ALPHA, adjusted
from genprobe.text import many
from genprobe.text.display import clean

if TYPE_CHECKING:
    import pandas as pd

NOT_WORSE, WORSE, UNDECIDED = "not worse", "worse", "undecided"
# Limits that are set unless others are given. A model that refuses everything endorses nothing, and
# is of no use; one that hedges where it said no may hide what it endorses.
GUARD = 0.1  # rise of refusals, and of units that do not count
FAILED = 0.05  # planned requests without a reply
UNCLEAR, NO_REPLY = "unclear", "failed"  # their names, beside `refusal` and `story-refusal`
_REFUSALS = ("refusal", "story-refusal")


@dataclass(frozen=True)
class Check:
    """The test of one limit in one cell.

    name: the limit. most: the margin, a share. falls: whether a fall is the harm. moved: the
    figures and movements. adjusted: the p-value that the margin is exceeded, after Holm's
    correction. decides: whether it must hold; another cell can only be worse.
    """

    name: str
    most: float
    falls: bool
    moved: Moved
    adjusted: float
    decides: bool
    signature: str

    @property
    def verdict(self) -> str:
        """Return the verdict of this limit alone."""
        if self.adjusted < ALPHA:
            return WORSE
        shown = self.moved.high < self.most and not self.figure_moved
        return NOT_WORSE if shown else UNDECIDED

    @property
    def figure_moved(self) -> bool:
        """Return whether the figure itself, as `score` prints it, moved by more than the margin.

        It is of the units that count, which may be few; True if one version has none.
        """
        old, new = self.moved.old, self.moved.new
        if old is None or new is None:
            return old is not new
        return (old - new if self.falls else new - old) > self.most

    @property
    def guards_language(self) -> bool:
        """Return whether it tests what may drop out in one language."""
        return "lang" in self.moved.by and _guards(self.name)

    @property
    def beyond(self) -> bool:
        """Return whether the movement is beyond the margin, shown or not."""
        return self.moved.rises[0].value > self.most

    @property
    def where(self) -> str:
        """Return the limit and its cell in words."""
        return self.name + "".join(f", {column} {v}" for column, v in self.moved.by.items())

    def told(self) -> str:
        """Say in one line how far the figure moved and what that shows."""
        sign = -1 if self.falls else 1
        ends = []
        for rise in self.moved.rises:
            low, high = sorted((sign * rise.low, sign * rise.high))
            said = f"{100 * sign * rise.value:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"
            ends.append(said + (f" with unclear as {rise.unclear}" if rise.unclear else ""))
        what = f"a {'fall' if self.falls else 'rise'} of {100 * self.most:g} allowed"
        old, new = (
            "–" if value is None else f"{100 * value:.1f}"
            for value in (self.moved.old, self.moved.new)
        )
        size = f"{many(self.moved.statements, 'statement')}, n {self.moved.n}"
        shown = f"; Holm p {self.adjusted:.2g}" if self.verdict == WORSE else ""
        if self.figure_moved and self.moved.high < self.most:
            shown += "; but of the units that count, the figure moved by more"
        return (
            f"{self.where}: {' and '.join(ends)}; {what}; figure {old} to {new}; "
            f"{metrics.ESTIMANDS[self.moved.estimand]}: {size}{shown}"
        )

    def json(self) -> dict[str, Any]:
        """Return the check for programs; shares, not points."""
        moved = self.moved
        return {
            "metric": self.name,
            "by": moved.by,
            "verdict": self.verdict,
            "estimand": metrics.ESTIMANDS[moved.estimand],
            "decides": self.decides,
            "most": self.most,
            "harm": "fall" if self.falls else "rise",
            "old": moved.old,
            "new": moved.new,
            "moved": [vars(rise) for rise in moved.rises],
            "holm_p": self.adjusted,
            "n": moved.n,
            "statements": moved.statements,
            "least_shown": moved.shown,
            "signature": self.signature,
        }


@dataclass(frozen=True)
class Verdict:
    """The result of a gate.

    checks: of each limit and cell. flips: by measure. most_flips: the share of answers that may
    change beyond chance; None without that limit. notes: warnings, one line each.
    """

    new: str
    old: str
    checks: tuple[Check, ...]
    flips: Mapping[str, Flips]
    most_flips: float | None
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> str:
        """Return the verdict of all limits together."""
        found = {line[1] for line in self._lines()}
        if WORSE in found:
            return WORSE
        return NOT_WORSE if found == {NOT_WORSE} else UNDECIDED

    @property
    def failures(self) -> list[str]:
        """Return why it is not shown to be not worse, one line each, the worst first."""
        lines = list(self._lines())
        return [
            told for wanted in (WORSE, UNDECIDED) for _, verdict, told in lines if verdict == wanted
        ]

    def _lines(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, verdict and line of everything that the verdict depends on."""
        for check in self.checks:
            if check.decides or check.verdict == WORSE:
                yield check.where, check.verdict, check.told()
        if self.most_flips is not None:
            for measure, one in self.flips.items():
                verdict = self._flipped(one)
                yield f"{measure} flips", verdict, f"{measure}: {one.told()}"

    def _flipped(self, one: Flips) -> str:
        if one.beyond is None or self.most_flips is None:
            return UNDECIDED
        if one.beyond[0] > self.most_flips:
            return WORSE
        return NOT_WORSE if one.beyond[1] < self.most_flips else UNDECIDED

    def lines(self) -> list[str]:
        """Write the verdict and its first reason; then all figures and notes."""
        head = self.verdict if self.verdict == NOT_WORSE else f"{self.verdict}: {self.failures[0]}"
        figures = [f"{check.verdict}: {check.told()}" for check in self.checks]
        figures += [f"{measure}: {one.told()}" for measure, one in self.flips.items()]
        ends = ["[low, high]: one-sided 95 % confidence limits"] if self.checks else []
        return [head, *figures, *ends, *(f"note: {note}" for note in self.notes)]

    def json(self) -> dict[str, Any]:
        """Return the whole verdict as JSON, for programs."""
        return {
            "verdict": self.verdict,
            "passed": self.verdict == NOT_WORSE,
            "failures": self.failures,
            "new": self.new,
            "old": self.old,
            "checks": [check.json() for check in self.checks],
            "flips": {m: vars(one) for m, one in self.flips.items()},
            "notes": list(self.notes),
        }

    def junit(self, allow_undecided: bool = False) -> str:
        """Write the verdict as JUnit XML, one test case for each line that it depends on.

        allow_undecided: what is undecided is skipped, else it fails.
        """
        cases, failures, skipped = [], 0, 0
        for name, verdict, told in self._lines():
            inner = ""
            if verdict == UNDECIDED and allow_undecided:
                inner, skipped = f"<skipped message={quoteattr(clean(told))}/>", skipped + 1
            elif verdict != NOT_WORSE:
                inner = f'<failure type="{verdict}" message={quoteattr(clean(told))}/>'
                failures += 1
            cases.append(
                f'  <testcase classname="genprobe.gate" name={quoteattr(clean(name))}>{inner}'
                f"<system-out>{escape(clean(told))}</system-out></testcase>"
            )
        notes = "".join(f"{escape(clean(note))}\n" for note in self.notes)
        head = f'<testsuite name="genprobe gate" tests="{len(cases)}" failures="{failures}"'
        return "\n".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>',
                f'{head} skipped="{skipped}">',
                *cases,
                f"  <system-out>{notes}</system-out>",
                "</testsuite>\n",
            ]
        )


def gate(
    new: object,
    old: object,
    limits: Mapping[str, float],
    falls: Mapping[str, float] | None = None,
    *,
    by: Sequence[str] = (),
    most_flips: float | None = None,
    again: object = None,
) -> Verdict:
    """Test a new version's replies against an old one's: of runs, or of tables of judged replies.

    limits: metric -> by how much it may rise, a share; also `unclear`, `refusal` and `failed`,
    which have limits by default, also in each language. falls: metric -> by how much it may fall.
    by: columns of which each cell is printed, and can be worse. most_flips: share of answers that
    may change beyond chance. again: another run of the old version, which shows what changes by
    chance. Raises RunError if the runs asked differently, or one is not there; InputError for a
    margin that the data cannot show (also before the new version is asked), a metric that does not
    fit, or too many requests without a reply.
    """
    if not limits and not falls and most_flips is None:
        raise InputError("no limit is given; give one for a rise, for a fall or for flips")
    notes: list[str] = []
    first = one_side(old, "against", notes.append)
    before = first.outcomes
    try:
        second = one_side(new, "new", notes.append)
    except RunError:
        checked(before, before, limits, falls or {}, by)
        raise
    notes += need_alike(first, second, (*WHO, "seed"))
    sides, after = (first, second), second.outcomes
    notes += [f"{one.name}: {line}" for one in sides if (line := one.drawn_otherwise)]
    notes.append(_failed(sides, limits.get(NO_REPLY, FAILED)))
    notes += [f"{one.name}: {seal.told(one.run.seals())}" for one in sides if one.run]
    sign = signed_by([one.sign for one in sides])
    checks = checked(before, after, limits, falls or {}, by, sign)
    repeated = None if again is None else _again(first, again, notes)
    turned = _flips(before, after, repeated, notes)
    if most_flips is not None and not turned:
        raise InputError("--max-flips counts yes/no answers, and these runs have none")
    if most_flips is not None and all(found.beyond is None for found in turned.values()):
        raise InputError(
            "--max-flips: nothing was asked twice, so changes by chance are unknown; give a second "
            "run of the old version with --again, or ask with --samples 2"
        )
    return Verdict(second.name, first.name, tuple(checks), turned, most_flips, tuple(notes))


def checked(
    before: pd.DataFrame,
    after: pd.DataFrame,
    limits: Mapping[str, float],
    falls: Mapping[str, float],
    by: Sequence[str] = (),
    sign: Callable[[str], str] = str,
) -> list[Check]:
    """Test limits on the outcomes of an old and a new version; the arguments are those of `gate`.

    sign: metric -> the signature of its figures. Raises InputError for a margin that the data
    cannot show, unless they show something to be worse.
    """
    if both := [name for name in falls if name in limits]:
        raise InputError(f"{both[0]} has a limit for its rise and one for its fall; give one")
    sides = before, after
    asked = {name: (most, False) for name, most in limits.items() if name != UNCLEAR}
    asked |= {name: (most, True) for name, most in falls.items()}
    for name, most in [*limits.items(), *falls.items()]:
        width = 1.0 if name == UNCLEAR else paired.limits(metrics.find(name))[1]
        if not 0 <= most <= width:
            raise InputError(f"{name} has a limit from 0 to {100 * width:g} points")
    tests = [
        _Limit(name, most, fall, partial(rises.moved, *sides, name, fall))
        for name, (most, fall) in asked.items()
    ]
    # What may drop out: of each measure with a limit, else of the one that is shown first.
    counted = [name for name in asked if name != NO_REPLY]
    if UNCLEAR in limits and not counted:
        counted = [main_measure(sides, by, share=True)]
    for name in counted:
        own = asked[name][0] if name in asked else GUARD
        lost = partial(rises.lost, *sides, name)
        tests.append(_Limit(f"{UNCLEAR} for {name}", limits.get(UNCLEAR), False, lost, own))
    least = min((most for most, _ in asked.values()), default=GUARD)
    for name in (*_REFUSALS, NO_REPLY) if tests else ():
        metric = metrics.find(name)
        if name in asked or not all(map(metric.fits, sides)):
            continue
        if (metric.units(before, []).left_out == "").any():
            moved = partial(rises.moved, *sides, name, False)
            tests.append(_Limit(name, None, False, moved, least))
    several = all("lang" in side and side["lang"].nunique() > 1 for side in sides)
    langs = ("lang",) if several and "lang" not in by else ()
    found = [check for test in tests for check in test.checks(by, langs)]
    if not found:
        return []
    alone = [one.moved.p(one.most) for one in found]
    found = [
        replace(one, adjusted=float(p), signature=sign(_method(one.name, one.moved)))
        for one, p in zip(found, adjusted(alone, "holm"), strict=True)
    ]
    if not any(check.adjusted < ALPHA for check in found):
        given = {test.name for test in tests if test.most is not None}
        _showable([one for one in found if one.decides and one.name in given])
    # A language in which a guard is broken, without correction, is no pass.
    return [
        replace(one, decides=one.decides or (one.guards_language and p < ALPHA))
        for one, p in zip(found, alone, strict=True)
        if not langs or one.decides or not one.guards_language or one.beyond
    ]


@dataclass(frozen=True)
class _Limit:
    """A limit to test.

    most: the margin; None for a guard. fall: whether a fall is the harm. measure: columns -> the
    cells. own: the margin of what a guard guards, which it has, too, where so few statements could
    not show the usual one.
    """

    name: str
    most: float | None
    fall: bool
    measure: Callable[[Sequence[str]], list[Moved]]
    own: float = 0.0

    def checks(self, by: Sequence[str], langs: Sequence[str]) -> Iterator[Check]:
        """Make the checks of all units together, which decide, and of each cell of `by`.

        langs: the column of languages, if guards are also tested in each of them.
        """
        pooled, most = self.measure(()), self.most
        splits = [by, langs if _guards(self.name) else ()]
        apart = [
            cells for split in splits if split and len(cells := self.measure(split)) > len(pooled)
        ]
        if most is None:
            usual = FAILED if self.name == NO_REPLY else GUARD
            most = usual if all(one.shown < usual for one in pooled) else max(usual, self.own)
        # Of failed requests the number has a limit (`_failed`), so none need be shown.
        decides = self.most is not None or self.name != NO_REPLY
        for cell in pooled:
            yield Check(self.name, most, self.fall, cell, 1.0, decides, "")
        for cell in itertools.chain(*apart):
            yield Check(self.name, most, self.fall, cell, 1.0, False, "")


def _guards(name: str) -> bool:
    """Tell whether a limit is of what drops out: no reply, a refusal, no clear answer."""
    return name.startswith(f"{UNCLEAR} for ") or name in (*_REFUSALS, NO_REPLY)


def _method(name: str, cell: Moved) -> str:
    """Name the estimand and the interval of a limit, for its signature."""
    metric = name.removeprefix(f"{UNCLEAR} for ")
    what = UNCLEAR if metric != name else "moved"
    return f"{metric}/{metrics.find(metric).version}-{what}-{cell.estimand}-{cell.method}"


def _showable(checks: Sequence[Check]) -> None:
    """Raise InputError if so many statements could not show a margin even if nothing changed."""
    for one in checks:
        cell = one.moved
        if cell.shown < one.most:
            continue
        way, size = "fall" if one.falls else "rise", many(cell.statements, "statement")
        needed, what = cell.needed(one.most), "statement"
        if cell.wordings > 1:
            size += f" and {many(cell.wordings, 'wording')}"
            what = "wording" if needed and cell.wordings < needed else what
        cure = "no number of statements can show it"
        if needed is not None:
            cure = f"it needs {many(needed, what)} in which nothing changes"
        raise InputError(
            f"{one.where}: a {way} of {100 * one.most:g} points cannot be ruled out by {size}, "
            f"which show {100 * cell.shown:.1f} points at best; {cure}"
        )


def _failed(sides: Sequence[Side], most: float) -> str:
    """Say how many requests have no reply; raise InputError if they are too many in a run."""
    from genprobe.metrics import unanswered

    shares = []
    for one in sides:
        outcomes = one.outcomes
        none = unanswered(outcomes)
        if (without := none.mean()) > most:
            langs = none.groupby(outcomes["lang"]).mean() if "lang" in outcomes else none[:0]
            where = ", ".join(
                f"{lang} {100 * share:.1f} %" for lang, share in langs.items() if share
            )
            raise InputError(
                f"{one.name}: {100 * without:.1f} % of the planned requests have no reply "
                f"({where}); {100 * most:g} allowed; run the same command again, or give "
                f"--max-rise {NO_REPLY}=POINTS"
            )
        shares.append(f"{100 * without:.1f} %")
    return f"requests without a reply: {shares[0]} in the old run, {shares[1]} in the new one"


def _again(first: Side, again: object, notes: list[str]) -> pd.DataFrame:
    """Return the outcomes of another run of the same model, asked the same."""
    second = one_side(again, "again", notes.append)
    if first.run and second.run and first.run.folder.resolve() == second.run.folder.resolve():
        raise InputError(f"{second.name}: --again needs another run of the old version")
    recorded = ["revision"] if first.recorded else []  # it is that of a file
    notes += need_alike(first, second, ("seed", *recorded))
    second.need_judges()
    return second.outcomes


def _flips(
    before: pd.DataFrame, after: pd.DataFrame, again: pd.DataFrame | None, notes: list[str]
) -> dict[str, Flips]:
    """Count the answers that changed, by measure, and add notes on what they show."""
    turned: dict[str, Flips] = {}
    for measure in ("endorsed", "recognised"):
        if all("measures" in t and (t["measures"] == measure).any() for t in (before, after)):
            try:
                turned[measure] = flips(before, after, measure, again)
            except InputError as error:
                notes.append(str(error))
    if turned and all(found.nothing_changed for found in turned.values()):
        notes.append(
            "all replies are exactly the same: check that the new version was used (an adapter "
            "that is not loaded changes nothing)"
        )
    if any(found.by_itself is None for found in turned.values()):
        notes.append(
            "nothing was asked twice, so changed answers cannot be told from chance, at "
            "temperature 0 neither; give a second run of the old version with --again, or ask with "
            "--samples 2"
        )
    return turned
