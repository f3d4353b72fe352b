"""Published tables derived again, cell by cell. One file a name; `genprobe reproduce NAME`.

A module has `FILES`, what the user's folder has to hold, and `cells(folder, printed)`. What a
study printed lies in published/NAME.toml, as text, so that the number of its digits is known;
figures only, no statement and no reply.

A cell agrees if ours, rounded to the digits that are printed, is the printed figure. A value that
lies exactly between two may go either way (half up, half to even). Where ours is derived from
figures that are printed themselves, it is a range, and a cell agrees if some value of it does.
"""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError
from genprobe.files import SUFFIXES, read_frame
from genprobe.resources import packs, registry

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = Path(__file__).parent / "published"
VERDICTS = ("agrees", "known", "differs", "missing")
_FIGURE = re.compile(r"([<≤]?)([+-]?\d+(?:\.(\d+))?)")
_DUST = 1e-9  # what binary fractions leave of a half


@dataclass(frozen=True)
class Cell:
    """One published figure, and what it comes to.

    table: where it is printed, and of what; cells of a table are shown together. name: the cell in
    it. published: as printed. ours: the value, in the unit that is printed; None where the data
    have nothing for the cell. slack: by how much ours may be off, because what it is derived from
    is printed with few digits. beside: other values for the same cell, by what they are.
    verdict: one of `VERDICTS`. why: the reason of a known difference, or what is missing.
    """

    table: str
    name: str
    published: str
    ours: float | None
    verdict: str
    why: str = ""
    slack: float = 0.0
    beside: dict[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """As a flat row; `beside` makes columns of its own."""
        row: dict[str, Any] = {"table": self.table, "cell": self.name}
        row |= {"published": self.published, "ours": self.ours, "slack": self.slack}
        return row | self.beside | {"verdict": self.verdict, "why": self.why}


def figure(text: str) -> tuple[str, float, float]:
    """Read a printed figure: sign of comparison or "", value, half a unit of its last digit.

    InputError for what is no figure. `1,163` has a comma for thousands, `<0.0001` is a bound.
    """
    match = _FIGURE.fullmatch(text.replace(",", "").replace("−", "-").strip())
    if match is None:
        raise InputError(f"{text!r} is no printed figure, such as 12.5, 1,163 or <0.0001")
    return match[1], float(match[2]), 0.5 * 10.0 ** -len(match[3] or "")


def digits(text: str) -> int:
    """How many digits after the point a figure is printed with."""
    return round(-math.log10(2 * figure(text)[2]))


def agrees(published: str, ours: float, slack: float = 0.0) -> bool:
    """Whether ours rounds to what is printed. slack: ours may be as much more or less."""
    sign, value, half = figure(published)
    if sign == "<":
        return ours - slack < value
    slack += _DUST * max(half, abs(value))
    return ours <= value + half + slack and (sign == "≤" or ours >= value - half - slack)


# --- what is printed


class Printed:
    """What a study printed: published/NAME.toml.

    `title`, `source`, `faults` (what is wrong and shows in no cell), and under [tables.KEY]
    `where` it is printed and `rows`, one a line, cells between `|`, the first line the names of
    the columns; [[known]] has a reason (`why`) and `cells` (columns table, cell, ours): the
    difference is known where ours is as it says.
    """

    def __init__(self, path: Path) -> None:
        row = packs.read_toml(path)
        self.path = path
        self.title, self.source = str(row["title"]), str(row["source"])
        self.faults = [str(fault) for fault in row.get("faults", ())]
        self.data: dict[str, Any] = row
        self._known = {
            (cell["table"], cell["cell"]): (cell["ours"], str(known["why"]))
            for known in row.get("known", [])
            for cell in _grid(known["cells"], path)
        }

    def where(self, key: str) -> str:
        return str(self.data["tables"][key]["where"])

    def rows(self, key: str) -> list[dict[str, str]]:
        return _grid(self.data["tables"][key]["rows"], self.path)

    def cell(
        self,
        table: str,
        name: str,
        published: str,
        ours: float | None,
        slack: float = 0.0,
        **beside: float,
    ) -> Cell:
        """Return the cell with its verdict."""
        if ours is None or math.isnan(ours):
            why = "the data have no row for it"
            return Cell(table, name, published, None, "missing", why, beside=beside)
        verdict, why = "agrees", ""
        if not agrees(published, ours, slack):
            expected, reason = self._known.get((table, name), ("", ""))
            known = bool(expected) and agrees(expected, ours, slack)
            verdict, why = ("known", reason) if known else ("differs", "")
        return Cell(table, name, published, ours, verdict, why, slack, beside)


def _grid(text: str, path: Path) -> list[dict[str, str]]:
    """Rows of a table that is written with `|` between its cells, the columns' names first."""
    head, *lines = [
        [cell.strip() for cell in line]
        for line in csv.reader(text.split("\n"), delimiter="|")
        if line
    ]
    for line in lines:
        if len(line) != len(head):
            raise InputError(f"{path}: {' | '.join(line)!r} has not the columns {', '.join(head)}")
    return [dict(zip(head, line, strict=True)) for line in lines]


# --- what the user has


@dataclass(frozen=True)
class File:
    """A file that is read: its name, where it is published, and the columns needed.

    also: a further name that it goes by. rename: columns as published -> as needed.
    """

    name: str
    where: str
    columns: tuple[str, ...]
    optional: bool = False
    also: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)


class Folder:
    """The user's folder. Files are found by their name, under any suffix that can be read."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.present: list[Path] = []
        self.absent: list[File] = []

    def find(self, file: File) -> Path | None:
        if self.path is None:
            return None
        stems = [Path(name).stem for name in (file.name, file.also) if name]
        names = [file.name, *(stem + suffix for stem in stems for suffix in SUFFIXES)]
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def read(self, file: File) -> pd.DataFrame:
        """Return the columns needed of a file; an empty frame where it is optional and not there.

        InputError, one line: it is missing (with where it is published, and its columns), a column
        is missing or there twice, a cell holds a list or an object.
        """
        import pandas as pd

        path = self.find(file)
        columns = ", ".join(file.columns)
        if path is None:
            if file.optional:
                self.absent.append(file)
                return pd.DataFrame(columns=list(file.columns))
            name = f"{file.name} (or {file.also})" if file.also else file.name
            raise InputError(
                f"{self.path or '--from'}: there is no {name}; published at {file.where}; "
                f"its columns are {columns}"
            )
        frame = read_frame(path).rename(columns=file.rename)
        lacking = [name for name in file.columns if name not in frame]
        if lacking:
            raise InputError(
                f"{path}: lacks the column{'s' * (len(lacking) > 1)} {', '.join(lacking)}; "
                f"expected are {columns}, as published at {file.where}"
            )
        frame = frame[list(file.columns)]
        if len(frame.columns) > len(file.columns):
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"{path}: two columns are {twice}, under one name or two")
        for column in file.columns:
            for row, cell in frame[column].items():
                if isinstance(cell, list | dict):
                    raise InputError(f"{path}: row {row}: {column} is no single value")
        self.present.append(path)
        return frame

    @contextlib.contextmanager
    def at(self, file: File, what: str = "") -> Iterator[None]:
        """Errors about rows get the name of the file in front, and what is read from it."""
        try:
            yield
        except InputError as error:
            path = self.find(file)
            if path is None or str(error).startswith(str(path)):
                raise
            raise InputError(": ".join(filter(None, (str(path), what, str(error))))) from None


# --- the verb


@dataclass(frozen=True)
class Found:
    """What `run` returns.

    present: the files of the user's that the cells rest on; absent: those that would have added
    cells. faults: of the study, none of which shows in a cell.
    """

    title: str
    source: str
    cells: list[Cell]
    present: list[Path]
    absent: list[File]
    faults: list[str]

    @property
    def ok(self) -> bool:
        """Every cell agrees, or differs for a known reason."""
        return all(cell.verdict in ("agrees", "known") for cell in self.cells)

    @property
    def summary(self) -> str:
        """`120 of 125 cells agree, 3 differ for a known reason, …`"""
        count = Counter(cell.verdict for cell in self.cells)
        parts = [f"{count['agrees']} of {len(self.cells)} cells agree"]
        words = {"known": "for a known reason", "differs": "without a known reason"}
        for verdict, word in words.items():
            if n := count[verdict]:
                parts.append(f"{n} differ{'s' * (n == 1)} {word}")
        if n := count["missing"]:
            parts.append(f"{n} {'is' if n == 1 else 'are'} missing")
        return ", ".join(parts)


def run(name: str, folder: str | Path | None = None) -> Found:
    """Derive a published table again. folder: where the published raw data lie.

    InputError, one line: an unknown name, a file that is missing or broken, data of other kinds.
    """
    module = registry.module("reproduce", name)
    path = None if folder is None else Path(folder)
    if path is not None:
        _check(path)
    needed = [file for file in module.FILES if not file.optional]
    if path is None and needed:
        raise InputError(
            f"{name} needs {', '.join(file.name for file in needed)}; name its folder in --from "
            f"(published at {needed[0].where})"
        )
    printed, own = Printed(PUBLISHED / f"{name}.toml"), Folder(path)
    cells: Iterable[Cell] = module.cells(own, printed)
    found = list(cells)
    return Found(printed.title, printed.source, found, own.present, own.absent, printed.faults)


def _check(path: Path) -> None:
    """InputError unless the path is a folder that can be read."""
    try:
        next(path.iterdir(), None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: cannot be read ({reason}); name the folder that the data lie in"
        ) from None
