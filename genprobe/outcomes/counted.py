"""The table that is counted: outcomes without their texts, small enough for millions of replies.

It has the rows and columns of `table.outcomes`, but for the id of the request and the columns of
whole texts (`judges.VERBATIM`); texts are categories. A run is joined part by part, in the order
of its plan. A score keeps it in the folder of the run, under the hash of everything that it is
made of, and made again when that has changed.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from genprobe._version import __version__
from genprobe.errors import InputError
from genprobe.files import parquet
from genprobe.judges import VERBATIM
from genprobe.limits import parsed
from genprobe.outcomes import columns, external, table
from genprobe.records import Failure, Judgment, LogProb, Request, Response, Statement, digest
from genprobe.runs import card, seal
from genprobe.runs.places import number

if TYPE_CHECKING:
    from genprobe.runs.run import Run

PART = 4096  # requests that are joined at once, at least
GROUP = 1 << 16  # rows of a group of rows in the file
VERSION = 1  # of the file
_META = b"genprobe"
_ORDERED = ("probe", "decode")  # columns whose values are not in the order of the alphabet


def counted(run: Run, keep: bool = False) -> pd.DataFrame:
    """Return the table of a run, from its folder if it is up to date there; else it is made.

    keep: what is made is written to the folder, if that is possible. Raises as `table.outcomes`.
    """
    import pyarrow

    found, key = kept(run)
    if found is not None:
        return found
    made = compact_of(run)
    if not keep:
        return made
    with contextlib.suppress(pyarrow.ArrowException):  # a column of values of several kinds
        run.write_outcomes(file_of(made, key, seal.in_signature(run.folder)))
    return made


def kept(run: Run) -> tuple[pd.DataFrame | None, str]:
    """Return the table in the folder of a run, None if it is not up to date, and its key."""
    key = digest([VERSION, __version__, run.spec.pack, run.content()], 32)
    there = card.unchanged(run.folder, card.OUTCOMES)
    return stored(run.folder / card.OUTCOMES, key) if there else None, key


def compact_of(run: Run, but: Collection[str] = (), every: int = 1) -> pd.DataFrame:
    """Join a run part by part.

    but: texts that are kept. every: keep one of so many rows, chosen by the id of the request.
    Raises as `table.outcomes`.
    """

    def some(part: pd.DataFrame) -> pd.DataFrame:
        if every > 1 and "request" in part:
            chosen = [number(request) % every == 0 for request in part["request"]]
            part = part[chosen].reset_index(drop=True)
        return compact(part, but)

    try:
        parts = [some(part) for part in joined(run)]
    except OtherOrder:
        parts = [some(table.outcomes(run))]
    return _combined(parts, columns.unit_of(run.spec).known)


def with_texts(run: Run) -> Iterator[pd.DataFrame]:
    """Yield the outcomes of a run with their texts, in parts that have the same columns.

    Raises as `table.outcomes`; OtherOrder, at the end, if the parts are not those of the run.
    """
    unit = columns.unit_of(run.spec)
    if unit.rows or unit.last:
        yield table.outcomes(run)
        return
    small, start = counted(run), 0
    judged = (column.name for name in run.judges() for column in columns.filled(name))
    there = {"request", "text", "prompt", "response", *judged, *small}
    there |= {"thought"} if "thought_state" in small else set()
    ours = [name for name in unit.known if name in there]
    order = ours + [name for name in small if name not in ours]
    for part in joined(run):
        rows = small.iloc[start : start + len(part)].reset_index(drop=True)
        start += len(part)
        long = {name: part.get(name) for name in order if name not in small}
        yield rows.assign(**long)[order]


def compact(outcomes: pd.DataFrame, but: Collection[str] = ()) -> pd.DataFrame:
    """Return outcomes without texts. but: texts that are kept."""
    found = {}
    for name in outcomes:
        if not is_text(str(name)):
            found[name] = _small(outcomes[name])
        elif name in but:
            found[name] = outcomes[name]
    return pd.DataFrame(found, outcomes.index, copy=False)


def is_text(column: str) -> bool:
    """Tell whether a column of outcomes is not in the table that is counted."""
    return column in texts()


@functools.cache
def texts() -> frozenset[str]:
    """Return the columns of outcomes that are not in the table that is counted."""
    units = (columns.REPLY, *(load() for load in columns.units().values()))
    every = [column for unit in units for column in unit.known.values()]
    return frozenset({"request"} | {column.name for column in every if column.kind == VERBATIM})


def _small(column: pd.Series) -> pd.Series:
    if column.dtype == "category" and column.name not in _ORDERED:
        return table.sorted_categories(column)
    if str(column.dtype) == "str":
        return column.astype("category")
    if column.dtype == object:
        kinds = set(map(type, column.dropna()))
        if kinds <= {str}:
            return column.astype("str").astype("category")
        if kinds == {int} and column.notna().all():
            return column.astype("int64")
    return column


class OtherOrder(Exception):
    """Raised if judgments are not in the order of the plan."""


def joined(run: Run) -> Iterator[pd.DataFrame]:
    """Yield the outcomes of a run in parts, which are cut between statements."""
    unit = columns.unit_of(run.spec)
    if unit.rows or unit.last:  # a row is made of several requests
        yield table.outcomes(run)
        return
    statements = {(s.id, s.lang): s for s in run.statements()}
    failures = {failure.request: failure for failure in run.failures()}
    judged = {name: _Stream(run.judgments(name)) for name in run.judges()}
    held: list[tuple[Request, Response | LogProb | None]] = []

    def part() -> pd.DataFrame:
        ids = {request.id for request, _ in held}
        of = {name: list(stream.of(ids)) for name, stream in judged.items()}
        return table.outcomes(_Part(run, held, statements, failures, of))

    for request, answer in run.asked():
        if len(held) >= PART and request.statement != held[-1][0].statement:
            yield part()
            held = []
        held.append((request, answer))
    yield part()
    if any(stream.left for stream in judged.values()):
        raise OtherOrder


class _Stream:
    """Judgments in the order of the plan, read as far as they are needed."""

    def __init__(self, found: Iterator[Judgment]) -> None:
        self._found = found
        self.left = next(found, None)

    def of(self, ids: set[str]) -> Iterator[Judgment]:
        while self.left and self.left.request in ids:
            yield self.left
            self.left = next(self._found, None)


class _Part:
    """A run of only some of its requests."""

    def __init__(
        self,
        run: Run,
        asked: Sequence[tuple[Request, Response | LogProb | None]],
        statements: Mapping[tuple[str, str], Statement],
        failures: Mapping[str, Failure],
        judgments: Mapping[str, list[Judgment]],
    ) -> None:
        self._run, self._asked, self._judgments = run, asked, judgments
        self._statements, self._failures = statements, failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def statements(self) -> Iterable[Statement]:
        keys = dict.fromkeys((request.statement, request.lang) for request, _ in self._asked)
        return [self._statements[key] for key in keys if key in self._statements]

    def requests(self) -> Iterable[Request]:
        return [request for request, _ in self._asked]

    def responses(self) -> Iterable[Response]:
        return [answer for _, answer in self._asked if isinstance(answer, Response)]

    def logprobs(self) -> Iterable[LogProb]:
        return [answer for _, answer in self._asked if isinstance(answer, LogProb)]

    def answered(self) -> Iterable[str]:
        return [request.id for request, answer in self._asked if answer is not None]

    def failures(self) -> Iterable[Failure]:
        ids = (request.id for request, _ in self._asked)
        return [self._failures[name] for name in ids if name in self._failures]

    def judgments(self, judge: str) -> Iterable[Judgment]:
        return self._judgments[judge]


def _combined(parts: Sequence[pd.DataFrame], known: Iterable[str]) -> pd.DataFrame:
    """Put parts of a table together, with the types that it has if it is made at once."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part)
    order = [name for name in dict.fromkeys([*known, *names]) if name in names]
    index = pd.RangeIndex(sum(map(len, parts)))
    found = pd.DataFrame({name: _column(str(name), parts) for name in order}, index)
    if "thought_state" in found:
        none = found["thought_state"].isna() & ~found["left_out"].isin(columns.UNANSWERED)
        states = found["thought_state"].astype("str").mask(none, "none")
        found["thought_state"] = states.astype("category")
    return found


def _column(name: str, parts: Sequence[pd.DataFrame]) -> pd.Series:
    cells = [part[name] for part in parts if name in part]
    # Empty parts have the type of the others; if all are empty, that which is declared.
    told = [column for column in cells if column.notna().any()] or cells
    kinds = {str(column.dtype) for column in told}
    every = [
        part[name] if name in part else pd.Series(None, range(len(part)), dtype=object)
        for part in parts
    ]
    if kinds == {"category"}:
        orders = [column.cat.categories for column in cells if column.dtype == "category"]
        joint = list(dict.fromkeys(text for order in orders for text in order))
        if name not in _ORDERED:
            joint.sort()
        kind = pd.CategoricalDtype(pd.Index(joint, dtype="str"))
        return pd.concat([_categories(column, kind) for column in every], ignore_index=True)
    if kinds in ({"boolean"}, {"str"}):
        return pd.concat([column.astype(*kinds) for column in every], ignore_index=True)
    if kinds <= {"int64", "float64"}:
        whole = kinds == {"int64"} and not any(column.isna().any() for column in every)
        kind_of = "int64" if whole else "float64"
        return pd.concat([column.astype(kind_of) for column in every], ignore_index=True)
    values = [value for c in every for value in c.astype(object).where(c.notna(), None)]
    return _small(pd.Series(external.one_kind(values)).infer_objects())


def _categories(column: pd.Series, kind: pd.CategoricalDtype) -> pd.Series:
    if column.dtype == "category":
        return column.cat.set_categories(kind.categories)
    return pd.Series(pd.Categorical.from_codes([-1] * len(column), dtype=kind))  # nothing in it


# --- the file


def file_of(made: pd.DataFrame, key: str, sealed: str) -> Iterator[bytes]:
    """Yield the bytes of the file; texts are plain there, for other programs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {
        "key": key,
        "kinds": {str(name): str(made[name].dtype) for name in made},
        "orders": {str(n): [*made[n].cat.categories] for n in made if made[n].dtype == "category"},
    }
    sink = parquet.Sink()
    writer = None
    for start in range(0, len(made), GROUP):
        rows = made.iloc[start : start + GROUP]
        plain = {n: rows[n].astype("str") if made[n].dtype == "category" else rows[n] for n in made}
        if sealed:
            plain["seal"] = pd.Series(sealed, rows.index, dtype="str")
        group = pa.Table.from_pandas(pd.DataFrame(plain), preserve_index=False)
        group = group.replace_schema_metadata({_META: json.dumps(about).encode()})
        writer = writer or pq.ParquetWriter(sink, group.schema, compression="zstd")
        writer.write_table(group.cast(writer.schema))
        yield sink.taken()
    assert writer is not None
    writer.close()
    yield sink.taken()


def stored(path: Any, key: str = "") -> pd.DataFrame | None:
    """Return the table in a file; None if it is damaged, or of something else than the key says."""
    try:
        with parquet.opened(path) as (file, _):
            about = parsed((file.schema_arrow.metadata or {}).get(_META, b"{}"))
            if key and about.get("key") != key:
                return None
            groups = (file.read_row_group(at).to_pandas() for at in range(file.num_row_groups))
            parts = [_typed(group, about) for group in groups]
    except (InputError, ValueError, LookupError, TypeError, AttributeError):
        return None
    found = {name: [part[name] for part in parts] for name in about["kinds"]}
    return pd.DataFrame({n: pd.concat(c, ignore_index=True) for n, c in found.items()})


def _typed(group: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    """Return a group of rows with the types of the table."""

    def typed(name: str, kind: str) -> pd.Series:
        if kind == "category":
            order = pd.Index(about["orders"][name], dtype="str")
            return _categories(group[name], pd.CategoricalDtype(order))
        return group[name].astype(kind)

    return pd.DataFrame({name: typed(name, kind) for name, kind in about["kinds"].items()})
