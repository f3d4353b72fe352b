"""How well a reader was measured on labelled replies (`Measured`), and the licences of models.

A reader may be rules or a model. Its errors may take sides: if it loses *yes* more often than *no*,
it makes a model look less agreeing, however few its errors. Therefore the skew, the difference of
the two shares, is measured beside the agreement, for each language and kind of question.

A model's licences are one file in the user's folder, made by `genprobe licence`. A run keeps a copy
of those that its second reader had when it read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from genprobe.files import disk
from genprobe.records import Record, digest
from genprobe.resources import models

if TYPE_CHECKING:
    from genprobe.statistics import Interval

# Kind of question -> its two sides, and the label of a reply that takes none.
SIDES = dict.fromkeys(("stance", "stereotype", "question"), ("yes", "no", "ambiguous")) | {
    "choice": ("", "", ""),
    "essay": ("for", "against", "neither"),
    "story": ("negative", "positive", "neutral"),
}
LEAST = 0.5  # a licence holds if the lower end of its agreement is above this
TELLS = 0.8  # share that a reader of sides must read right for its rates to be printed
FEWEST = 10  # labelled replies that a licence needs, or its agreement on what the rules leave open
EVERYBODY = "everybody"  # stands for who labelled, where all labels are taken together


class Labelled(NamedTuple):
    """A reply with people's label (`gold`) and a reader's.

    question: replies to the same one are not independent. by: who labelled it. left: whether the
    rules leave it open.
    """

    lang: str
    kind: str
    gold: str
    label: str
    question: str
    by: str
    left: bool = False


@dataclass(frozen=True)
class Measured(Record):
    """How well a reader reads the replies to one kind of question in one language."""

    lang: str
    kind: str  # of question, one of SIDES
    by: str  # who labelled the replies
    n: int
    right: int
    low: float  # ends of the 95 % interval of right / n
    high: float
    sides: list[list[int]]  # of each side, such as yes and no: its replies, those that are lost
    # Share lost of the first side minus that of the second, with the ends of its 95 % interval;
    # None if a side has no reply.
    skew: list[float] | None
    none: list[int]  # replies without an answer, those that are read as one
    left: list[int]  # replies that the rules leave open, those that are right

    @property
    def holds(self) -> bool:
        """Tell whether this licenses the reader: shown to be right more often than not."""
        return self.n >= FEWEST and self.low > LEAST

    @property
    def tells(self) -> bool:
        """Tell whether shares of sides by this reader are printed."""
        return self.holds and self.right >= TELLS * self.n

    @property
    def least(self) -> float:
        """Return the share of verdicts on open replies that is right at least.

        It is the lower end of the agreement, or that on the labelled replies that the rules leave
        open, if there are enough of them and it is lower.
        """
        from genprobe.statistics import wilson

        n, right = self.left
        ends = wilson(right, n) if n >= FEWEST else None
        return min(self.low, ends[0]) if ends else self.low

    def shift(self, share: float, unread: float) -> float:
        """Return how far a share of yes may lie from that of all replies that answer.

        share: of yes among the answers that were read. unread: the share of replies that were not.
        As many answers are taken to be lost, yes and no in the ratio that was measured.
        """
        (yes, lost_yes), (no, lost_no) = self.sides
        if not (yes and no and lost_yes + lost_no):
            return 0.0
        scale = unread * (yes + no) / (lost_yes + lost_no)
        kept = (1 - min(0.99, scale * k / n) for k, n in ((lost_yes, yes), (lost_no, no)))
        hit, miss = (part / kept for part, kept in zip((share, 1 - share), kept, strict=True))
        return hit / (hit + miss) - share

    def brief(self) -> str:
        """Describe it in a few words: agreement and skew."""
        said = f"{self.right} of {self.n} right"
        if self.skew:
            point, *ends = self.skew
            said += f", skew {100 * point:+.1f} [{_points(ends, '+')}]"
        return said

    def told(self) -> str:
        """Describe it in a line: agreement, skew, guesses."""
        share = f"{100 * self.right / self.n:.1f}"
        said = f"{self.brief()} ({share} % [{_points((self.low, self.high))}])"
        if self.skew:
            names = SIDES[self.kind][:2]
            lost = (f"{k} of {n} {m}" for m, (n, k) in zip(names, self.sides, strict=True))
            said += f"; lost {' and '.join(lost)}"
        if self.none[0]:
            said += f"; guesses in {self.none[1]} of {self.none[0]} without an answer"
        if self.left[0]:
            said += f"; {self.left[1]} of {self.left[0]} right where the rules leave it open"
        return said


@dataclass(frozen=True)
class Licence(Measured):
    """How well a model reads, as a second reader by a rubric."""

    reader: str  # version of the judge, model with revision, rubric with its hash
    sources: list[str]  # of the labelled replies
    made: str  # the day
    version: str  # of genprobe


def _points(ends: Iterable[float], sign: str = "") -> str:
    return ", ".join(f"{100 * end:{sign}.1f}" for end in ends)


def measure(rows: Iterable[Labelled]) -> list[Measured]:
    """Measure a reader by language and kind of question, for everybody and by who labelled.

    A side is lost where it is read as anything else. Intervals are those of shares in clusters of
    replies to one question; that of the skew is made of the intervals of both shares (Newcombe
    1998, Statistics in Medicine 17:873, method 10; for other intervals Zou & Donner 2008, ibid.
    27:1693).
    """
    groups: dict[tuple[str, str], list[Labelled]] = {}
    for row in rows:
        groups.setdefault((row.lang, row.kind), []).append(row)
    found = []
    for (lang, kind), group in sorted(groups.items()):
        found.append(_measured(lang, kind, EVERYBODY, group))
        names = sorted({row.by for row in group})
        for name in names if len(names) > 1 else ():
            found.append(_measured(lang, kind, name, [row for row in group if row.by == name]))
    return found


def _measured(lang: str, kind: str, by: str, rows: Sequence[Labelled]) -> Measured:
    *two, nothing = SIDES[kind]
    ends = _interval(rows, lambda row: row.label == row.gold)
    assert ends is not None
    sides, lost = [], []
    for side in filter(None, two):
        of = [row for row in rows if row.gold == side]
        sides.append([len(of), sum(row.label != side for row in of)])
        lost.append(_interval(of, lambda row: row.label != row.gold))
    none = [row for row in rows if row.gold == nothing]
    left = [row for row in rows if row.left]
    return Measured(
        *(lang, kind, by, len(rows), sum(row.label == row.gold for row in rows), *ends),
        sides,
        _skew(sides, lost),
        [len(none), sum(row.label not in (nothing, "unscored") for row in none)],
        [len(left), sum(row.label == row.gold for row in left)],
    )


def _interval(rows: Sequence[Labelled], hit: Callable[[Labelled], bool]) -> Interval | None:
    import numpy as np

    from genprobe.statistics import share_of_sums

    counts: dict[str, list[int]] = {}
    for row in rows:
        of = counts.setdefault(row.question, [0, 0])
        of[0] += hit(row)
        of[1] += 1
    return share_of_sums(np.array(list(counts.values()), float).reshape(-1, 2))


def _skew(sides: Sequence[Sequence[int]], lost: Sequence[Interval | None]) -> list[float] | None:
    if len(sides) < 2 or lost[0] is None or lost[1] is None:
        return None
    one, other = (k / n for n, k in sides)
    (low, high), (low2, high2) = lost[0], lost[1]
    below = ((one - low) ** 2 + (high2 - other) ** 2) ** 0.5
    above = ((high - one) ** 2 + (other - low2) ** 2) ** 0.5
    return [round(part, 6) for part in (one - other, one - other - below, one - other + above)]


def place(reader: str) -> Path:
    """Return the file of the licences of a model in a revision, which need not exist."""
    who = reader.partition("+")[2].rpartition("+")[0]
    name = re.sub(r"[^\w.-]+", "-", who.partition("@")[0])[-40:]
    return models.user_folder() / "licences" / f"{name}-{digest(who, 8)}.jsonl"


def _stored(path: Path) -> list[Licence]:
    return [Licence.from_json(line) for _, _, line in disk.lines(path)] if path.is_file() else []


def find(reader: str) -> Mapping[tuple[str, str], Licence]:
    """Read the licences of a reader: language and kind of question -> licence."""
    rows = (row for row in _stored(place(reader)) if (row.reader, row.by) == (reader, EVERYBODY))
    return {(row.lang, row.kind): row for row in rows}


def keep(found: Sequence[Licence]) -> Path:
    """Store the licences of a model in place of those for the same languages and kinds."""
    path = place(found[0].reader)
    new = {(row.reader, row.lang, row.kind) for row in found}
    old = (row for row in _stored(path) if (row.reader, row.lang, row.kind) not in new)
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, [row.to_json() + "\n" for row in (*old, *found)])
    return path
