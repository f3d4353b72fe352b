"""Read a table of any size into memory: each different text is held once.

Texts become categories, numbers and truth values columns of their type, so that ten million rows of
a few words each need some hundred megabytes. `files.read_frame` keeps every cell as it is.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genprobe import files
from genprobe.files import parquet
from genprobe.files.rows import Rows

if TYPE_CHECKING:
    import os

_AT_ONCE = 1 << 16  # rows that are read at a time


def read_compact(
    path: str | os.PathLike[str] | Rows, without: Collection[str] = (), answers: bool = False
) -> pd.DataFrame:
    """Read the rows of a file as a table of categories and numbers.

    without: columns of long texts that are not read if the table has a column `answer`. answers:
    nothing else of interest is in a table without one, so they are never read. Its index
    has the row numbers of `files.numbered_rows`. A column of texts is one of categories, which
    are sorted; of whole numbers, of numbers, or of truth values, one of that
    type; all others hold Python objects. Raises InputError as `files.numbered_rows`.
    """
    held: dict[str, _Column] = {}
    numbers = _Column(0)
    done = 0
    table = not isinstance(path, Rows) and Path(path).suffix.lower() == ".parquet"
    for at, cells in _parts(path, without, answers):
        held |= {name: _Column(done) for name in cells if name not in held}
        with parquet.sound(Path(str(path)), done) if table else contextlib.nullcontext():
            for name, column in held.items():
                column.add(cells[name] if name in cells else [None] * len(at))
        if at != range(done + 1, done + 1 + len(at)) and not numbers:
            numbers.add(range(1, done + 1))
        if numbers:
            numbers.add(at)
        done += len(at)
    index = pd.Index(numbers.whole()) if numbers else pd.RangeIndex(1, done + 1)
    found = {}
    while held:
        name = next(iter(held))
        found[name] = pd.Series(held.pop(name).whole(), index, copy=False)
    return pd.DataFrame(found, index, copy=False)


def _parts(
    path: Any, without: Collection[str], answers: bool
) -> Iterator[tuple[Sequence[int], Mapping[str, Any]]]:
    """Yield the numbers of some rows, and their columns."""

    def kept(names: list[str]) -> list[str]:
        return [n for n in names if n not in without] if answers or "answer" in names else names

    rows = files.numbered_rows(path, streamed=True)
    if not isinstance(path, Rows) and Path(path).suffix.lower() == ".parquet":
        done = 0
        for batch in parquet.parts(Path(path), kept, _AT_ONCE):
            at = range(done + 1, done + 1 + batch.num_rows)
            yield at, dict(zip(batch.schema.names, batch.columns, strict=True))
            done += batch.num_rows
        if not done:
            next(rows)  # raises that there are none
        return
    left_out = None
    while some := list(itertools.islice(rows, _AT_ONCE)):
        names = list(dict.fromkeys(name for _, row in some for name in row))
        left_out = set(names) - set(kept(names)) if left_out is None else left_out
        yield (
            [number for number, _ in some],
            {name: [row.get(name) for _, row in some] for name in names if name not in left_out},
        )


class _Column:
    """A column that grows by parts, in place: a copy of each column would double what is held."""

    def __init__(self, empty: int) -> None:
        """Begin with so many empty cells."""
        self._codes: dict[str, int] = {}
        # Arrays of one kind each, longer than filled; codes of texts are -1 if empty.
        self._held: list[tuple[str, np.ndarray]] = []
        self._filled: list[int] = []
        if empty:
            self.add([None] * empty)

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, cells: Any) -> None:
        """Add cells: Python values, or an array of Arrow."""
        of_arrow = hasattr(cells, "to_pylist")
        kind, part = self._of_arrow(cells) if of_arrow else ("", None)
        if part is None:
            kind, part = self._of_cells(cells.to_pylist() if of_arrow else list(cells))
        if not self._held or self._held[-1][0] != kind:
            self._held.append((kind, part))
            self._filled.append(len(part))
            return
        held, start = self._held.pop()[1], self._filled[-1]
        self._filled[-1] = end = start + len(part)
        held = held.astype(np.promote_types(held.dtype, part.dtype), copy=False)
        if end > len(held):
            held.resize(end + end // 8, refcheck=False)
        held[start:end] = part
        self._held.append((kind, held))

    def _of_arrow(self, cells: Any) -> tuple[str, np.ndarray | None]:
        import pyarrow as pa

        if pa.types.is_dictionary(cells.type) and pa.types.is_string(cells.type.value_type):
            codes = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            used, at = np.unique(codes, return_inverse=True)
            first = int(used[0] == -1) if len(used) else 0
            texts = cells.dictionary.take(pa.array(used[first:])).to_pylist()
            return "text", self._coded(texts, np.r_[[-1] * first, :0], at)
        if pa.types.is_integer(cells.type) and not cells.null_count:
            found = cells.to_numpy(zero_copy_only=False)
            return ("int", _least(found)) if found.dtype != np.uint64 else ("", None)
        return "", None

    def _of_cells(self, cells: list[Any]) -> tuple[str, np.ndarray]:
        kinds = {*map(type, cells)} - {type(None)}
        if kinds <= {str}:
            codes = self._codes
            own = [-1 if cell is None else codes.setdefault(cell, len(codes)) for cell in cells]
            return "text", _least(np.array(own, np.int64))
        if kinds == {float}:
            return "float", np.array(cells, float)  # None is NaN
        if None not in cells and kinds == {bool}:
            return "bool", np.array(cells)
        if None not in cells and kinds == {int} and all(-(1 << 63) <= c < 1 << 63 for c in cells):
            return "int", _least(np.array(cells, np.int64))
        every = np.empty(len(cells), object)
        every[:] = cells
        return "object", every

    def _coded(self, texts: list[str], first: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return codes of texts. first: codes before them; at: which of both each cell has."""
        codes = self._codes
        own = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int64)
        return _least(np.concatenate([first, own]).astype(np.int64)[at])

    def whole(self) -> Any:
        """Return the column as an array of pandas or numpy."""
        for (_, held), filled in zip(self._held, self._filled, strict=True):
            held.resize(filled, refcheck=False)
        empty = [kind == "text" and bool((p < 0).all()) for kind, p in self._held]
        told = {kind for (kind, _), none in zip(self._held, empty, strict=True) if not none}
        if told <= {"text"}:
            [(_, codes)] = self._held
            texts = sorted(self._codes)
            rank = np.empty(len(texts) + 1, codes.dtype)
            rank[[*(self._codes[text] for text in texts), -1]] = [*range(len(texts)), -1]
            for start in range(0, len(codes), _AT_ONCE):
                codes[start : start + _AT_ONCE] = rank[codes[start : start + _AT_ONCE]]
            return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))
        parts = [
            np.full(len(p), np.nan) if none and told == {"float"} else p
            for (_, p), none in zip(self._held, empty, strict=True)
        ]
        if len(parts) == 1 or told == {"float"}:
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        every = np.array([*self._codes, None], object)
        plain = (
            every[p] if kind == "text" else p.astype(object)
            for (kind, _), p in zip(self._held, parts, strict=True)
        )
        return np.concatenate([*plain])


def _least(numbers: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest type with a sign that holds them."""
    low, high = int(numbers.min(initial=-1)), int(numbers.max(initial=0))
    return numbers.astype(np.min_scalar_type(min(low, -1 - high)))
