"""Compare a judge with labels that people gave to the same rows of a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from genprobe.errors import InputError
from genprobe.files.cells import cell_text
from genprobe.text import many

THEIRS = "theirs"  # the column with the labels of the harness that asked
MOST = 20  # most rows that are shown; the others are only counted
_NOT = "not "  # begins a label of which only what it is not is known
_SHOWN = 100  # most characters of a reply that are shown


class Gold:
    """Counts in how many rows a judge agrees with people's labels.

    column: the column with these labels. Rows in which it is empty are left out and counted. Rows
    of one statement (the column `pair`, else `statement` or `item`) are not independent, and the
    interval counts statements.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self._says = "by the harness" if column == THEIRS else "is"
        # Language -> statement -> rows in which the judge is right, and all.
        self._rows: dict[str, dict[str, list[int]]] = defaultdict(
            lambda: defaultdict(lambda: [0, 0])
        )
        self._strange: Counter[str] = Counter()
        self._said: set[str] = set()
        self._turned = self._unlabelled = self._without = 0
        self._wrong: list[str] = []

    @property
    def counted(self) -> bool:
        """Tell whether any row had a label and a reply."""
        return bool(self._rows)

    def add(self, where: str, row: dict[str, Any], label: str | None, kind: Any) -> None:
        """Count a row. label: the judge's; None without a reply. kind: the judge's reason, if any.

        where: the row, such as `row 3`. A label `not yes` or `not no` agrees with all others.

        Raises InputError if the row does not have the column.
        """
        if self.column not in row:
            raise InputError(f"no column {self.column!r}; columns: {', '.join(map(str, row))}")
        mine = cell_text(row[self.column]).strip().casefold()
        if not mine:
            self._unlabelled += 1
            return
        if label is None:
            self._without += 1
            return
        lang = cell_text(row.get("lang", ""))
        self._said.add(label)
        self._strange[mine] += 1
        names = (cell_text(row.get(name)) for name in ("pair", "statement", "item"))
        counts = self._rows[lang][next(filter(None, names), where)]
        counts[1] += 1
        if mine == label or (mine.startswith(_NOT) and label != mine.removeprefix(_NOT)):
            counts[0] += 1
            return
        turned = {mine, label} == {"yes", "no"}
        self._turned += turned
        why = f" ({kind})" if kind not in (None, "", "answer") else ""
        reply = cell_text(row["response"])
        reply = reply if len(reply) <= _SHOWN else reply[: _SHOWN - 1] + "…"
        self._wrong.append(
            f"{where}: {reply!r}: read as {label}{why}, {self._says} {mine}"
            + (": reversed" if turned else "")
        )

    def lines(self, judge: str) -> Iterator[str]:
        """Yield the lines to print about a judge: shares, intervals, rows where labels differ."""
        if not self._rows:
            raise InputError(f"no row has a label in {self.column!r} and a reply")
        each = {lang: list(self._rows[lang].values()) for lang in sorted(self._rows)}
        for lang, counts in each.items() if len(each) > 1 else ():
            yield f"{judge}, {lang or 'no language'}: {_share(counts)}"
        # A statement is the same one in every language.
        both: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for part in self._rows.values():
            for name, (right, n) in part.items():
                both[name] = [both[name][0] + right, both[name][1] + n]
        turned = f"; {self._turned} reversed" if {"yes", "no"} & self._said else ""
        left = [
            f"{many(k, 'row')} {why}"
            for k, why in (
                (self._unlabelled, "without a label"),
                (self._without, "without a reply"),
            )
            if k
        ]
        yield (
            f"{judge}: {_share(list(both.values()))} agree with {self.column!r}{turned}"
            + "".join(f"; left out: {one}" for one in left)
        )
        yield from self._wrong[:MOST]
        if len(self._wrong) > MOST:
            yield f"and {many(len(self._wrong) - MOST, 'row')} more"
        strange = [label for label in self._strange if label not in self._said | {"yes", "no"}]
        for label in sorted(label for label in strange if not label.startswith(_NOT)):
            yield (
                f"caution: {self.column!r} says {label!r} in {many(self._strange[label], 'row')}, "
                f"a label that {judge} gave to none"
            )


def _share(counts: Sequence[Sequence[int]]) -> str:
    """Write a share with its interval. counts: of each statement, the rows that agree, and all."""
    import numpy as np

    from genprobe.statistics import share_interval

    right, sizes = np.array(counts).T
    low, high = (100 * end for end in share_interval(right, sizes) or (0.0, 1.0))
    n = int(sizes.sum())
    about = f" about {many(len(sizes), 'statement')}" if len(sizes) < n else ""
    return f"{right.sum()} of {n}{about} ({100 * right.sum() / n:.1f} % [{low:.1f}, {high:.1f}])"
