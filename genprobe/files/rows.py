"""Rows in memory, which every reader of a file can read: `rows_of`, the one door for tables.

A frame of pandas or Polars, an Arrow table, a data set of Hugging Face, an iterable of dicts and a
file all become rows: dicts of plain Python values, numbered from 1. No package is needed for it
beyond that of the table itself.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError, NoRows
from genprobe.records import canonical
from genprobe.text import many
from genprobe.text.display import clean

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

_UNNAMED = "rows"  # what messages call rows in memory
_TOGETHER = 8192  # rows of a frame that are turned at a time
_AS_IT_IS = (str, int, bool, type(None))
_GIVE = "give a file, a frame, an Arrow table, a data set, or a list of dicts"


class Rows:
    """A table of rows, each a dict; it can be read as often as needed, like a file.

    `list(rows)` or a loop gives the rows, `rows[0]` one, `rows.frame()` a table of pandas.

    name: what messages call it. counts: of a judged table, judge -> label -> number of rows.
    """

    suffix = ".jsonl"  # so that no reader takes its name for that of a data set

    def __init__(
        self,
        source: Iterable[Any] | Callable[[], Iterable[Any]],
        name: str = _UNNAMED,
        counts: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self._source = source
        self.name = name
        self.counts = counts or {}

    def __iter__(self) -> Iterator[Row]:
        rows = self._source() if callable(self._source) else self._source
        for number, row in enumerate(rows, 1):
            yield self._plain_row(row, number)

    def __len__(self) -> int:
        return len(self._source) if isinstance(self._source, list) else sum(1 for _ in self)

    def __getitem__(self, at: int) -> Row:
        return list(self)[at]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        first = next(iter(self), {})
        columns = ", ".join(first) or "no columns"
        return clean(f"<{self.name}: {many(len(self), 'row')} of {columns}>")

    def frame(self) -> pd.DataFrame:
        """Make a table of pandas, one row each."""
        import pandas as pd

        found = pd.DataFrame(list(self), dtype=object)
        for name, column in found.items():
            typed = column.infer_objects()
            # A whole number beside an empty cell becomes a float, which may be another number.
            pairs = zip(typed.tolist(), column, strict=True)
            if typed.dtype != float or all(one == cell for one, cell in pairs if one == one):
                found[name] = typed
        return found

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """Yield the rows with their numbers. Raises NoRows if there are none."""
        rows = enumerate(self, 1)
        first = next(rows, None)
        if first is None:
            raise NoRows(f"{self}: there are no rows")

        def every() -> Iterator[tuple[int, Row]]:
            yield first
            yield from rows

        return every()

    def digest(self) -> str:
        """Return the SHA-256 of the rows, by which figures name them; the order counts."""
        state = hashlib.sha256()
        for row in self:
            state.update(canonical(row).encode("ascii") + b"\n")
        return state.hexdigest()

    # What readers ask a path.
    def exists(self) -> bool:
        return True

    is_file = exists

    def is_dir(self) -> bool:
        return False

    def _plain_row(self, row: Any, number: int) -> Row:
        if not isinstance(row, Mapping):
            raise InputError(f"{self}, row {number}: a row is a dict, not {_kind(row)}")
        return {
            name if isinstance(name, str) else str(name): value
            if type(value) in _AS_IT_IS
            else _plain(value, f"{self}, row {number}, {name}")
            for name, value in row.items()
        }


Table = Path | Rows  # what a reader of rows reads


def rows_of(given: object, name: str = _UNNAMED, streamed: bool = False) -> Table:
    """Return a table that every reader reads: the path of a file or folder, or rows in memory.

    given: a path, a run (its folder), a frame of pandas or Polars, an Arrow table or anything else
    with `__arrow_c_stream__`, an object with `to_dict`, a data set, or an iterable of dicts. name:
    what messages call rows in memory. streamed: rows that can be read only once, as from a
    generator, are not kept. Raises InputError for anything else.
    """
    if isinstance(given, Rows):
        return given
    if isinstance(given, str | os.PathLike):
        return Path(given)
    if hasattr(given, "itertuples") and hasattr(given, "iloc"):  # pandas
        return Rows(lambda: _of_pandas(given, name), name)
    if hasattr(given, "__arrow_c_stream__"):
        once = not hasattr(given, "schema") or hasattr(given, "read_next_batch")
        if once and not streamed:
            return Rows(list(_of_arrow(given, name)), name)
        return Rows(lambda: _of_arrow(given, name), name)
    if isinstance(given, Mapping):
        raise InputError(f"{name}: one dict is no table; {_of_dict(given)}")
    if isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        if hasattr(given, "to_dict"):
            return Rows(_of_columns(given.to_dict(), name), name)
        raise InputError(f"{name}: {_kind(given)} is no table; {_GIVE}")
    if iter(given) is given and not streamed:
        given = list(given)
    return Rows(given, name)


def sources_of(*given: object) -> list[Table]:
    """Return tables as a list, each given by itself or with others; several in memory are numbered.

    An empty tuple or list beside others is nothing. Raises InputError for what is no table.
    """
    some = [one for one in given if not (isinstance(one, tuple | list) and not one)]
    found = [table for one in some or given for table in _tables_of(one)]
    in_memory = [table for table in found if isinstance(table, Rows)]
    for number, table in enumerate(in_memory if len(found) > 1 else (), 1):
        if table.name == _UNNAMED:
            found[found.index(table)] = named = copy.copy(table)
            named.name = f"{_UNNAMED} {number}"
    return found


def any_of(given: object) -> list[Table]:
    """Return tables as `sources_of`; none for an empty list."""
    return [] if isinstance(given, list | tuple) and not given else sources_of(given)


def paths_of(given: object) -> list[Path]:
    """Return the names of files, one or several or none. Raises InputError for rows in memory."""
    found = []
    for one in any_of(given):
        if isinstance(one, Rows):
            raise InputError(f"{one}: rows in memory, where the name of a file is needed")
        found.append(one)
    return found


def _tables_of(given: object) -> list[Table]:
    several = isinstance(given, list | tuple | set | frozenset | Iterator)
    if not several or hasattr(given, "__arrow_c_stream__"):
        return [rows_of(given)]
    parts = list(given)  # type: ignore[call-overload]
    if not parts or isinstance(parts[0], Mapping) or not _is_table(parts[0]):
        return [rows_of(parts)]
    return [rows_of(one) for one in parts]


def _is_table(one: object) -> bool:
    if isinstance(one, str | os.PathLike | Rows):
        return True
    return not isinstance(one, bytes) and (
        isinstance(one, Iterable) or hasattr(one, "__arrow_c_stream__")
    )


def _of_dict(given: Mapping[Any, Any]) -> str:
    """Say what to give instead of a dict: a row, columns, or parts of a data set."""
    inside = next(iter(given.values()), None)
    if hasattr(inside, "column_names") or hasattr(inside, "columns"):
        return f"give one of its parts: {', '.join(map(repr, given))}"
    return "give a list of dicts, one for each row"


def _of_columns(columns: Any, name: str) -> list[Row]:
    """Turn what `to_dict` gives, a list of rows or a dict of columns, into rows."""
    if isinstance(columns, Mapping) and all(isinstance(c, list) for c in columns.values()):
        if len({len(column) for column in columns.values()}) > 1:
            raise InputError(f"{name}: its columns are not equally long")
        names = list(columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(columns, list):
        return columns
    raise InputError(f"{name}: to_dict gives neither columns nor rows; {_GIVE}")


def _need_distinct(names: list[str], name: str) -> None:
    if twice := [one for one in names if names.count(one) > 1]:
        raise InputError(f"{name}: two columns are called {twice[0]!r}")


def _of_pandas(frame: Any, name: str) -> Iterator[Row]:
    """Yield the rows of a table of pandas; an empty cell is None."""
    names = [str(column) for column in frame.columns]
    _need_distinct(names, name)
    for start in range(0, len(frame), _TOGETHER):
        part = frame.iloc[start : start + _TOGETHER]
        columns = [cells_of(part.iloc[:, at]) for at in range(len(names))]
        for cells in zip(*columns, strict=True):
            yield dict(zip(names, cells, strict=True))


def cells_of(column: pd.Series) -> list[Any]:
    """Return the cells of a column of pandas as Python values, None for an empty one."""
    cells = zip(column.tolist(), column.isna().tolist(), strict=True)
    return [None if empty is True else _scalar(value) for value, empty in cells]


def _scalar(value: Any) -> Any:
    """Return a number of numpy as one of Python."""
    return value.item() if hasattr(value, "dtype") and not value.shape else value


def _of_arrow(table: Any, name: str) -> Iterator[Row]:
    """Yield the rows of anything with the stream protocol of Arrow."""
    import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{name}: cannot be read as a table of Arrow ({error})") from None
    _need_distinct(list(reader.schema.names), name)
    for batch in reader:
        for start in range(0, batch.num_rows, _TOGETHER):
            yield from batch.slice(start, _TOGETHER).to_pylist()


def _plain(value: Any, where: str) -> Any:
    """Return a value in a form that JSON has. Raises InputError if it has none."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(part, where) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, where) for part in value]
    if isinstance(value, _AS_IT_IS):
        return value
    if hasattr(value, "tolist"):  # numbers and arrays of numpy, tensors
        return _plain(value.tolist(), where)
    if isinstance(value, datetime.date | datetime.time):  # NaT is no equal of itself
        return value.isoformat() if value == value else None
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise InputError(f"{where}: holds {_kind(value)}, which no table keeps")


def _kind(value: object) -> str:
    """Name the type of a value in an error."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
