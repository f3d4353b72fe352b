"""The columns of the outcomes: those of the request and the statement, and those of every judge."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from genprobe.judges import BOOLEAN, NUMBER, VERBATIM, Column
from genprobe.records import Judgment
from genprobe.resources import registry

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
    Column("prompt", "the last message sent to the model", None, VERBATIM),
    Column("response", "the reply, without the thought", None, VERBATIM),
    Column("thought", "the reasoning before the reply", None, VERBATIM),
    Column("thought_state", "none, closed, open (cut off inside the thought) or hidden", None),
    Column("served", "model named in the server's reply", None),
    Column("fingerprint", "system_fingerprint of the server's reply", None),
    Column("status", "answered, failed or missing", None),
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


def kinds() -> dict[str, str]:
    """Return the type of each column in a table of JSON rows: string, bool, float64 or int64."""
    types = {BOOLEAN: "bool", NUMBER: "float64"}
    return {n: types.get(c.kind, "string") for n, c in known().items()} | {"sample": "int64"}


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
