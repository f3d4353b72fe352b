"""Read tables of people's answers, one per row, with the column names that other tools use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from genprobe.errors import InputError
from genprobe.files import Row
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table
from genprobe.resources import packs
from genprobe.text.display import alike

# Our column -> the names that other tools use, in lower case with `_` between words.
COLUMNS = {
    "item": ("item", "item_id", "id", "task", "task_id", "unit", "unit_id", "instance_id"),
    "reviewer": (
        *("reviewer", "rater", "annotator", "annotator_id", "worker", "worker_id", "coder"),
        *("coder_id", "judge", "participant", "participant_id", "user", "user_id", "username"),
    ),
    "question": ("question", "criterion", "dimension", "schema"),
    "answer": (
        *("answer", "label", "annotation", "rating", "category", "value", "vote", "judgement"),
        *("judgment", "choice"),
    ),
}
ALONE = "label"  # the question of a table that has no column for it


def column(there: Sequence[str], name: str) -> str | None:
    """Return the name that a table gives to one of our columns; None if it has none."""
    plain = {one.strip().lower().replace(" ", "_"): one for one in reversed(there)}
    return next((plain[known] for known in COLUMNS[name] if known in plain), None)


def read(path: str | Table, rows: Iterable[tuple[int, Row]]) -> Iterator[Row]:
    """Read answers: item, reviewer, question, answer (lower case, or empty), lang, again.

    again: whether the answer repeats an earlier one.

    path: for error messages. rows: with their numbers. Raises InputError, which names the row, for
    a missing column or cell.
    """
    for number, row in rows:
        cells: Row = {}
        for name in COLUMNS:
            found = column(list(row), name)
            if found is None and name != "question":
                names = ", ".join(COLUMNS[name])
                raise InputError(f"{path}: no column {name!r}, by any of its names: {names}")
            cells[name] = alike(cell_text(row[found])) if found else ALONE
            if not cells[name] and name != "answer":
                raise InputError(f"{path}, row {number}: {name!r} is empty")
        again = cell_text(row.get("repeat")).casefold() in ("1", "1.0", "true", "yes")
        yield cells | {
            # One spreadsheet saves 1 as 1, another as 1.0.
            "answer": re.sub(r"^([+-]?\d+)\.0+$", r"\1", cells["answer"].casefold()),
            "lang": _lang(alike(cell_text(row.get("lang")))),
            "again": again,
        }


def need_distinct(names: Iterable[str], where: str) -> None:
    """Raise InputError if two names of people differ only in capital letters.

    They are most likely one person, who would otherwise have two votes and agree with herself.
    """
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f"{where}: {other!r} and {name!r} differ only in capital letters; write one person "
                "in one way, and two people in two"
            )


def _lang(name: str) -> str | None:
    """Return the code of a known language, by any of its names; any other name unchanged."""
    try:
        return packs.language_code(name) if name else None
    except InputError:
        return name
