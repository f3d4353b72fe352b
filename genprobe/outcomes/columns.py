"""The columns of the outcomes: of statement and request, of every judge, of a task's own unit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genprobe.datasets.statements import known_in
from genprobe.judges import BOOLEAN, NUMBER, VERBATIM, Column
from genprobe.outcomes import facts
from genprobe.records import JSON, Judgment, Request, Statement, canonical
from genprobe.resources import registry
from genprobe.runs.spec import Spec
from genprobe.text import whole
from genprobe.text.display import alike

Row = dict[str, Any]
UNANSWERED = FAILED, MISSING = ("failed", "missing")  # in `left_out`: there is no reply

# Columns of the plan and the replies, before any judge.
PLANNED = (
    Column("model", "the model", None, reply=False),
    Column("revision", "commit on the Hub, or a hash of the files of a folder", None, reply=False),
    Column("decode", "how the reply was obtained: free, choice or logprob", None, reply=False),
    Column("lang", "language of the statement and of the question", None, reply=False),
    Column("probe", "kind of question, such as agreement", None, reply=False),
    Column("measures", "what the question measures: recognised, endorsed", None, reply=False),
    Column("when", "the answer that counts for it: yes or no", None, reply=False),
    Column("statement", "id of the statement", None, reply=False),
    Column("pair", "id shared by an original and its contrasts", None, reply=False),
    Column("role", "original, contrast or unrelated", None, reply=False),
    Column("bias_type", "type of bias, such as gender; several are joined by +", None, reply=False),
    Column("type", "linguistic form of the statement", None, reply=False),
    Column("entity", "the group that the statement is about", None, reply=False),
    Column("text", "the statement", None, VERBATIM, reply=False),
    Column("valid", "whether the stereotype is known in this language", None, BOOLEAN, reply=False),
    Column("wording", "name of the wording, if there are several", None, reply=False),
    Column("order", "order in which the question names the answers", None, reply=False),
    Column("persona", "name of the persona in the system prompt", None, reply=False),
    Column("instruction", "language of the question, if it varies", None, reply=False),
    Column(
        "sample", "number of the sample: 0 for the first reply to a question", None, reply=False
    ),
    Column("request", "id of the request", None),
    Column("prompt", "the last message of the user to the model", None, VERBATIM),
    Column("response", "the reply, without the thought", None, VERBATIM),
    Column("thought", "the reasoning before the reply", None, VERBATIM),
    Column("thought_state", "none, closed, open (cut off inside the thought) or hidden", None),
    Column("served", "model named in the server's reply", None),
    Column("fingerprint", "system_fingerprint of the server's reply", None),
    Column(
        "left_out",
        "why the row does not count: failed, missing, or why it has no value; empty if it counts",
        None,
    ),
    Column("failure", "kind of failure", None),
    Column("seal", "seal of the records, in the files of a sealed run", None, reply=False),
)


@functools.cache
def of_judges() -> Mapping[str, tuple[Column, ...]]:
    """Return the columns of each judge, in the order in which they stand in the table."""
    modules = {name: registry.module("judges", name) for name in registry.names("judges")}
    order = sorted(modules, key=lambda name: (modules[name].PLACE, name))
    return {name: tuple(modules[name].COLUMNS) for name in order}


@functools.cache
def known() -> Mapping[str, Column]:
    """Return every column by name, in the order of the table, except those of single rubrics."""
    found = {column.name: column for column in PLANNED}
    for judge, columns in of_judges().items():
        if judge != "llm":
            found |= {column.name: column for column in columns if column.name not in found}
    return found


# Columns of a statement, which every table has.
STATED = ("lang", "statement", "pair", "role", "bias_type", "type", "entity", "text", "valid")


@dataclass(frozen=True)
class Unit:
    """What one row of the outcomes of a task is; the task declares it (`Task.rows`).

    columns: its further columns, which beat those of the same name. further: function (statement,
    request, row, judgments by judge) -> those columns of one request. last: sets in place what
    follows from several rows. rows: function (run, scorers) -> rows, if a row is made of several
    requests; it then has no columns of a request. hidden: fields of the data that are not columns.
    never: function from the items to those of its columns that no row about them has.
    """

    columns: tuple[Column, ...] = ()
    further: Callable[[Statement, Request, Row, Mapping[str, Judgment | None]], Row] | None = None
    last: Callable[[list[Row]], None] | None = None
    rows: Callable[[Any, Sequence[str]], Iterable[Row]] | None = None
    hidden: Collection[str] = ()
    never: Callable[[Sequence[Statement]], Collection[str]] | None = None

    @functools.cached_property
    def known(self) -> Mapping[str, Column]:
        """Return every column that is not the data's, by name, in the order of the table."""
        every = known()
        if self.rows is not None:
            of_plan = {"model", "revision", "left_out", *STATED} - {"statement"}
            every = {name: column for name, column in every.items() if name in of_plan}
        return {**every, **{column.name: column for column in self.columns}}

    @property
    def kinds(self) -> dict[str, str]:
        """Return the type of each column in a table of JSON rows: string, bool, float64, int64."""
        types = {BOOLEAN: "bool", NUMBER: "float64"}
        found = {name: types.get(column.kind, "string") for name, column in self.known.items()}
        return found | {"sample": "int64"}

    def possible(self, statements: Iterable[Statement]) -> list[str]:
        """Return the columns that the outcomes of a run of these statements can have."""
        items = list(statements)
        extra = {name: None for s in items for name in s.extra if name not in self.hidden}
        models = () if self.rows else (column.name for column in of_judges()["llm"])
        never = self.never(items) if self.never else ()
        ours = (name for name in self.known if name not in never)
        return list(dict.fromkeys([*ours, *facts.COLUMNS, *models, *map(self.free, extra)]))

    def free(self, name: str) -> str:
        """Return the name of a column of the data; one of ours gets the suffix `_data`."""
        return f"{name}_data" if name in self.known else name

    def about(self, statement: Statement) -> Row:
        """Return the columns of a statement, those of the data last."""
        found = {name: getattr(statement, name) for name in STATED[2:-1]}
        valid = known_in(statement.lang, statement.valid_in)
        found = {"lang": statement.lang, "statement": statement.id, **found, "valid": valid}
        return found | {
            self.free(name): scalar(value)
            for name, value in statement.extra.items()
            if name not in self.hidden
        }


REPLY = Unit()  # a planned reply


_declared: tuple[Callable[[], list[str]], Callable[[str], Unit]] | None = None


def declare(names: Callable[[], list[str]], rows: Callable[[str], Unit]) -> None:
    """Say what one row of a task is: the names of all tasks, and a function from a name.

    `genprobe.tasks` says it when it is imported, since nothing here knows a task.
    """
    global _declared
    _declared = names, rows


def units() -> Mapping[str, Callable[[], Unit]]:
    """Return of every task, by name, a function that loads what one row of it is."""
    if _declared is None:
        raise RuntimeError("import genprobe.tasks first: it says what a row of a task is")
    names, rows = _declared
    return {name: functools.partial(rows, name) for name in names()}


def unit_of(spec: Spec) -> Unit:
    """Return what one row of a run is, as its task declares it; a reply if the task is not here."""
    return units().get(spec.command, lambda: REPLY)()


def scalar(value: JSON) -> Any:
    """Return a cell in a form that scores can be split by: texts that look alike become equal."""
    if isinstance(value, str):
        return alike(whole(value)) or None
    return canonical(value) if isinstance(value, list | dict) else value


def filled(judge: str) -> tuple[Column, ...]:
    """Return the columns that a judge of this name fills; none for an unknown judge."""
    family = judge.partition("-")[0]
    if family != judge and family in of_judges():
        found: tuple[Column, ...] = registry.module("judges", family).columns_of(judge)
        return found
    return tuple(column for column in of_judges().get(judge, ()) if column.of is not None)


def verdicts(judgments: Mapping[str, Judgment | None]) -> dict[str, Any]:
    """Return the columns of a row that judges fill; if two fill the same, the later one counts."""
    row: dict[str, Any] = {}
    for judge in sorted(judgments, key=_place):
        if (judgment := judgments[judge]) is not None:
            row |= {column.name: column.of(judgment) for column in filled(judge) if column.of}
    return row


def _place(judge: str) -> tuple[int, str]:
    order = list(of_judges())
    return (order.index(judge) if judge in order else len(order), judge)


def of_replies() -> Sequence[str]:
    """Return the columns that describe one reply, in which two replies may differ."""
    return [name for name, column in known().items() if column.reply]


def whose(column: str) -> str:
    """Say which tables have a missing column, and how to get it."""
    if column in ("people", "people_of"):
        return ", which a table of people's answers gives: --people FILE"
    for judge, columns in of_judges().items():
        if any(one.name == column for one in columns):
            read = registry.module("judges", judge).READS
            return f", which only {read} have, once read by `genprobe judge` with --judge {judge}"
    return "; the data do not have it"
