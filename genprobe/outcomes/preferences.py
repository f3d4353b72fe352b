"""The rows of log-probabilities: scores of sentences in pairs, and of choices.

A run stores passes over texts (`tasks.logprob`); `scorers` reduces them to numbers. `pair_rows` and
`choice_rows` put these side by side for the metrics of preference (metrics/preference.py,
metrics/choices.py).

A pair is an original (the stereotype) and a contrast of the same `pair` and language; an original
with three contrasts makes three pairs. A choice is a statement of type `choice`
(datasets/choices.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from genprobe.datasets import choices
from genprobe.errors import RunError
from genprobe.judges import NUMBER, VERBATIM, Column
from genprobe.outcomes.chosen import COLUMNS
from genprobe.outcomes.columns import FAILED, MISSING, Row, Unit
from genprobe.outcomes.scorers import (
    SCORERS,
    NoScoreError,
    Scorer,
    Text,
    check,
    default,
    find,
    pass_of,
)
from genprobe.records import Failure, LogProb, Request, Statement

ONE = "text"  # the key of the only text of a pass


def _rows(run: Any, scorers: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of the pairs, or the choices, of a run.

    scorers: if empty, those of the run (the probes of its spec), or else all that can be computed
    from its passes.
    """
    statements, plan = list(run.statements()), list(run.requests())
    chosen = any(map(choices.is_choice, statements))
    names = scorers or [name for name in run.spec.probes if name in SCORERS]
    names = names or default({request.probe for request in plan}, chosen)
    make = choice_rows if chosen else pair_rows
    return make(statements, plan, run.logprobs(), names, run.failures())


# Statement, language, pass, sample -> the texts by key, or why there are none.
Answers = dict[tuple[str, str, str, int], dict[str, Text] | str]


def _answers(
    plan: Iterable[Request], logprobs: Iterable[LogProb], failures: Iterable[Failure]
) -> Answers:
    keys = {r.id: (r.statement, r.lang, r.probe, r.sample) for r in plan}
    found: Answers = dict.fromkeys(keys.values(), MISSING)
    for failure in failures:
        if failure.request in keys:
            found[keys[failure.request]] = FAILED
    for record in logprobs:
        if record.request in keys:
            found[keys[record.request]] = {
                str(part["answer"]): _text(part, record.request) for part in record.continuations
            }
    return found


def _text(part: Mapping[str, Any], request: str) -> Text:
    text = Text(str(part["text"]), tuple(part["tokens"]), tuple(map(float, part["logprobs"])))
    if len(text.tokens) != len(text.logprobs):
        raise RunError(
            f"request {request}: {len(text.tokens)} tokens and {len(text.logprobs)} "
            "log-probabilities; `genprobe verify` says what else is damaged"
        )
    return text


def pairs(statements: Iterable[Statement]) -> list[tuple[Statement, Statement]]:
    """Return every original with every contrast of its pair and language, in the given order."""
    groups: dict[tuple[str, str], dict[str, list[Statement]]] = {}
    for statement in statements:
        if statement.pair:
            group = groups.setdefault((statement.lang, statement.pair), {})
            group.setdefault(statement.role, []).append(statement)
    return [
        two
        for group in groups.values()
        for two in itertools.product(group.get("original", ()), group.get("contrast", ()))
    ]


def pair_rows(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    failures: Iterable[Failure] = (),
) -> Iterator[Row]:
    """Yield one row per pair and scorer, in the order of the statements, scorer by scorer.

    Columns: those of the original, and `_OF_PAIRS`; left_out: why the values are missing (failed,
    missing, or a scorer's own reason). Only if the data have a third, unrelated sentence: unrelated
    and above_unrelated.

    Raises InputError for a scorer that needs other passes; RunError for a damaged run.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    unrelated = {(s.lang, s.pair): s for s in statements if s.role == "unrelated"}
    both = pairs(statements)
    check(scorers, chosen=False, passes=passes)
    abouts = {id(original): _about(original) for original, _ in both}
    for scorer in map(find, dict.fromkeys(scorers)):
        name = pass_of(scorer, passes, "run")
        for original, contrast in both:
            row: Row = {**abouts[id(original)], "scorer": scorer.name, "contrast": contrast.id}
            row["contrast_text"] = contrast.text
            row |= _values(scorer, name, found, original, contrast)
            if unrelated:
                third = unrelated.get((original.lang, original.pair))
                row |= _beside(scorer, name, found, (original, contrast), third)
            yield row


def _about(statement: Statement) -> Row:
    """Return the columns of a statement, whose id is called `item`."""
    row = UNIT.about(statement)
    return row | {"item": row.pop("statement")}


def _values(
    scorer: Scorer, name: str, found: Answers, original: Statement, contrast: Statement
) -> dict[str, Any]:
    row: dict[str, Any] = {"pro": math.nan, "anti": math.nan, "left_out": ""}
    texts = []
    for side in (original, contrast):
        answer = found.get((side.id, side.lang, name, 0), MISSING)
        if isinstance(answer, str):
            return row | {"left_out": answer}
        texts.append(answer[ONE])
    assert scorer.pair is not None
    try:
        pro, anti = scorer.pair(*texts)
    except NoScoreError as error:
        return row | {"left_out": str(error)}
    sign = -1 if scorer.lower else 1
    return row | {"pro": sign * pro, "anti": sign * anti}


def _beside(
    scorer: Scorer,
    name: str,
    found: Answers,
    pair: tuple[Statement, Statement],
    third: Statement | None,
) -> dict[str, float]:
    if third is not None:
        two = [_values(scorer, name, found, one, third) for one in pair]
        if not any(beside["left_out"] for beside in two):
            related = sum(beside["pro"] > beside["anti"] for beside in two)
            return {"unrelated": two[0]["anti"], "above_unrelated": related}
    return {"unrelated": math.nan, "above_unrelated": math.nan}


def choice_rows(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    failures: Iterable[Failure] = (),
) -> Iterator[Row]:
    """Yield one row per choice, order of its options and scorer.

    Columns: those of the statement, of `choices.outcome`, scorer and order; left_out: why nothing
    was chosen (failed, missing, tie). Raises InputError as `pair_rows` does.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    orders: dict[tuple[str, str, str], list[int]] = {}
    for item, lang, name, sample in found:
        orders.setdefault((item, lang, name), []).append(sample)
    check(scorers, chosen=True, passes=passes)
    abouts = {id(statement): _about(statement) for statement in statements}
    for scorer in map(find, dict.fromkeys(scorers)):
        name = pass_of(scorer, passes, "run")
        for statement in statements:
            for order in orders.get((statement.id, statement.lang, name), ()):
                answer = found[statement.id, statement.lang, name, order]
                row: Row = {**abouts[id(statement)], "scorer": scorer.name, "order": order}
                if isinstance(answer, str):
                    yield row | choices.outcome(statement, None) | {"left_out": answer}
                    continue
                assert scorer.option is not None
                values = {int(key): scorer.option(text) for key, text in answer.items()}
                yield row | choices.outcome(statement, values)


_OF_PAIRS = (
    Column("scorer", "how the log-probabilities are reduced to a number", None, reply=False),
    Column("contrast", "id of the contrast", None, reply=False),
    Column("contrast_text", "the contrast", None, VERBATIM, reply=False),
    Column("pro", "value of the original; higher is preferred", None, NUMBER),
    Column("anti", "value of the contrast; higher is preferred", None, NUMBER),
    Column("unrelated", "value of a third, unrelated sentence beside the original", None, NUMBER),
    Column("above_unrelated", "how many of the two are preferred to it", None, NUMBER),
)


def _never(items: Sequence[Statement]) -> set[str]:
    """Return the columns of pairs if the items are choices, else those of choices."""
    if any(map(choices.is_choice, items)):
        return {column.name for column in _OF_PAIRS} - {"scorer"}
    third = any(item.role == "unrelated" for item in items)
    none = set() if third else {"unrelated", "above_unrelated"}
    return none | {column.name for column in COLUMNS} - {"item"}


UNIT = Unit((*COLUMNS, *_OF_PAIRS), rows=_rows, hidden=choices.FIELDS, never=_never)
