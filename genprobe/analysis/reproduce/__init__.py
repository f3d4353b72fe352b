"""Recompute published tables cell by cell. One file per study; `genprobe reproduce NAME`.

A module has `FILES` (the files that the user's folder must contain) and `cells(folder, printed)`.
The printed figures are in published/NAME.toml, as text, to keep the number of digits; no
statements and no replies.

A cell agrees if our value, rounded to the printed digits, equals the printed figure. A value
exactly halfway may be rounded either way (half up, half to even). If our value is derived from
rounded printed figures, it is a range, and the cell agrees if any value in the range does.
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
from genprobe.files import SUFFIXES, door, read_frame
from genprobe.resources import packs, registry

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = Path(__file__).parent / "published"
_FIGURE = re.compile(r"([<≤]?)([+-]?\d+(?:\.(\d+))?)")
_DUST = 1e-9  # tolerance for a half in binary floating point


@dataclass(frozen=True)
class Cell:
    """One published figure and its recomputed value.

    table: where the figure is printed, and its subject; cells of a table are shown together. name:
    the cell in the table. published: as printed. ours: our value in the printed unit; None if the
    data have nothing for the cell. slack: possible error of ours, if derived from rounded printed
    figures. beside: further values for the cell, by name. verdict: `agrees`, `known`,
    `differs` or `missing`. why: the reason for a known difference, or what is missing.
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
        """Return the cell as a flat row; each value in `beside` becomes a column."""
        row: dict[str, Any] = {"table": self.table, "cell": self.name}
        row |= {"published": self.published, "ours": self.ours, "slack": self.slack}
        return row | self.beside | {"verdict": self.verdict, "why": self.why}


def figure(text: str) -> tuple[str, float, float]:
    """Read a printed figure: comparison sign or "", value, and half a unit of its last digit.

    `1,163` has a thousands separator, `<0.0001` is a bound. Raises InputError for other text.
    """
    match = _FIGURE.fullmatch(text.replace(",", "").replace("−", "-").strip())
    if match is None:
        raise InputError(f"{text!r} is no printed figure, such as 12.5, 1,163 or <0.0001")
    return match[1], float(match[2]), 0.5 * 10.0 ** -len(match[3] or "")


def digits(text: str) -> int:
    """Count the digits after the decimal point of a printed figure."""
    return round(-math.log10(2 * figure(text)[2]))


def agrees(published: str, ours: float, slack: float = 0.0) -> bool:
    """Tell whether our value rounds to the printed one. slack: possible error of our value."""
    sign, value, half = figure(published)
    if sign == "<":
        return ours - slack < value
    slack += _DUST * max(half, abs(value))
    return ours <= value + half + slack and (sign == "≤" or ours >= value - half - slack)


# --- printed figures


class Printed:
    """The printed figures of a study, from published/NAME.toml.

    The file has `title`, `source` and `faults` (errors that no cell shows). Each [tables.KEY] has
    `where` (the place in print) and `rows`: one per line, cells separated by `|`, column names in
    the first line. Each [[known]] has a reason (`why`) and `cells` (columns table, cell, ours): a
    difference counts as known if our value is the one given there.
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
        """Return where a table is printed."""
        return str(self.data["tables"][key]["where"])

    def rows(self, key: str) -> list[dict[str, str]]:
        """Return the rows of a printed table: column -> figure as text."""
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
        """Make a cell and determine its verdict."""
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
    """Return the rows of a table written with `|` between cells and column names first."""
    head, *lines = [
        [cell.strip() for cell in line]
        for line in csv.reader(text.split("\n"), delimiter="|")
        if line
    ]
    for line in lines:
        if len(line) != len(head):
            raise InputError(f"{path}: {' | '.join(line)!r} has not the columns {', '.join(head)}")
    return [dict(zip(head, line, strict=True)) for line in lines]


# --- the user's files


@dataclass(frozen=True)
class File:
    """A file to read: its name, where it is published, and the columns needed.

    also: an alternative name. rename: published column name -> the name used here.
    """

    name: str
    where: str
    columns: tuple[str, ...]
    optional: bool = False
    also: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)


class Folder:
    """The user's folder of files, read by name with any suffix that can be read."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.present: list[Path] = []
        self.absent: list[File] = []

    def find(self, file: File) -> Path | None:
        """Return the path of a file, by either name and any suffix; None if it is missing."""
        if self.path is None:
            return None
        stems = [Path(name).stem for name in (file.name, file.also) if name]
        names = [file.name, *(stem + suffix for stem in stems for suffix in SUFFIXES)]
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def read(self, file: File) -> pd.DataFrame:
        """Return the needed columns of a file; an empty frame if it is optional and missing.

        Raises InputError if the file is missing (naming its source and columns), a column is
        missing or occurs twice, or a cell holds a list or an object.
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
        """Put the name of the file, and what is read from it, in front of errors about rows."""
        try:
            yield
        except InputError as error:
            path = self.find(file)
            if path is None or str(error).startswith(str(path)):
                raise
            raise InputError(": ".join(filter(None, (str(path), what, str(error))))) from None


# --- the command


@dataclass(frozen=True)
class Found:
    """The result of `run`.

    present: the user's files that were used; absent: files that would have added cells. faults:
    errors of the study that no cell shows.
    """

    title: str
    source: str
    cells: list[Cell]
    present: list[Path]
    absent: list[File]
    faults: list[str]

    @property
    def ok(self) -> bool:
        """Tell whether every cell agrees or differs for a known reason."""
        return all(cell.verdict in ("agrees", "known") for cell in self.cells)

    @property
    def summary(self) -> str:
        """Say how many cells agree: `120 of 125 cells agree, 3 differ for a known reason, …`"""
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
    """Recompute the published tables of a study. folder: the folder with the published raw data.

    Raises InputError for an unknown name, a missing or broken file, or data of another kind.
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
    there = Path(str(module.__file__)).parent / PUBLISHED.name  # beside the study's module
    printed, own = Printed(there / f"{name}.toml"), Folder(path)
    cells: Iterable[Cell] = module.cells(own, printed)
    found = list(cells)
    return Found(printed.title, printed.source, found, own.present, own.absent, printed.faults)


def _check(path: Path) -> None:
    """Raise InputError unless the path is a folder that can be read."""
    try:
        next(path.iterdir(), None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: cannot be read ({reason}); name the folder that the data lie in"
        ) from None
    door.need_own(path)
