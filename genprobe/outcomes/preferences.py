"""Make the outcomes of log-probabilities: scores of sentences in pairs, and of choices.

`requests` plans the passes over the texts, which a run stores; `scorers` reduces them to numbers.
`pair_table` and `choice_table` put these side by side for the metrics of preference
(metrics/preference.py, metrics/choices.py).

A pair is an original (the stereotype) and a contrast of the same `pair` and language; an original
with three contrasts makes three pairs. A choice is a statement of type `choice`
(datasets/choices.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from genprobe.datasets import choices
from genprobe.datasets.statements import known_in
from genprobe.errors import InputError, RunError
from genprobe.outcomes import external
from genprobe.outcomes.scorers import (
    CAUSAL,
    PASSES,
    SCORERS,
    SEQ2SEQ,
    NoScoreError,
    Scorer,
    Text,
    check,
    default,
    find,
    pass_of,
)
from genprobe.records import (
    JSON,
    Failure,
    LogProb,
    Request,
    Statement,
    canonical,
)
from genprobe.text import whole
from genprobe.text.display import alike

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.runs.spec import Spec

PACK = "text/1"
ONE = "text"  # the key of the only text of a pass


# --- the plan


def first(statements: Iterable[Statement], limit: int | None) -> list[Statement]:
    """Keep the first `limit` pairs, or choices, of each language; all if it is None."""
    count: dict[str, dict[str, None]] = {}
    kept = []
    for statement in statements:
        units = count.setdefault(statement.lang, {})
        unit = statement.id if choices.is_choice(statement) else statement.pair or statement.id
        if limit is None or unit in units or len(units) < limit:
            units[unit] = None
            kept.append(statement)
    return kept


def requests(
    statements: Iterable[Statement],
    scorers: Sequence[str],
    passes: Collection[str] = PASSES,
    context: str = "",
    turn: Callable[[str], str] | None = None,
) -> list[Request]:
    """Plan the requests: every text once in every pass that the scorers need.

    A choice is asked in every order of its options.

    passes: those that the model can make. context: text before every sentence of a pair, for
    `seq2seq` the encoder's prompt, which may be empty. turn: function that writes a user's turn in
    the chat template; the context, or a choice with its options, is that turn, and the scored text
    begins the model's turn. Raises InputError for an unknown scorer, one that does not fit model or
    data, or a statement that occurs twice.
    """
    statements = list(statements)
    for kind in {choices.is_choice(statement) for statement in statements}:
        check(scorers, kind)
    wanted = list(dict.fromkeys(pass_of(find(name), passes, "model") for name in scorers))
    plan: dict[str, Request] = {}
    for statement in statements:
        kind = choices.is_choice(statement)
        for name in wanted:
            asked = _asked_choices(statement) if kind else [_asked_text(statement, name, context)]
            if turn is not None:
                asked = [_in_turn(turn, *one) for one in asked]
            for sample, (messages, options) in enumerate(asked):
                request = _request(statement, name, messages, options, sample)
                if request.id in plan:
                    raise InputError(
                        f"statement {statement.id!r} ({statement.lang}) is given twice; remove one"
                    )
                plan[request.id] = request
    return list(plan.values())


Asked = tuple[list[dict[str, str]], dict[str, list[str]]]  # messages, options


def _asked_text(statement: Statement, name: str, context: str) -> Asked:
    shown = [{"role": "context", "content": context}] if context or name == SEQ2SEQ else []
    return shown, {ONE: [statement.text]}


def _in_turn(
    turn: Callable[[str], str], messages: list[dict[str, str]], options: dict[str, list[str]]
) -> Asked:
    """Put the context into a user's turn; the scored reply then begins without a space."""
    shown = turn("".join(message["content"] for message in messages))
    bare = {answer: [text.lstrip() for text in texts] for answer, texts in options.items()}
    return [{"role": "context", "content": shown}], bare


def _asked_choices(statement: Statement) -> list[Asked]:
    """Make one request for each order of the options; their keys are their numbers in the data."""
    return [
        ([{"role": "context", "content": prompt}], options)
        for prompt, options in choices.prompts(statement)
    ]


def _request(
    statement: Statement,
    name: str,
    messages: list[dict[str, str]],
    options: dict[str, list[str]],
    sample: int,
) -> Request:
    asked = (statement.id, statement.lang, PACK, name, messages)
    return Request.asked(*asked, sample=sample, decode="score", options=options)


# --- the tables


class Scored(Protocol):
    """The part of `runs.run.Run` that is read here."""

    spec: Spec

    def statements(self) -> Iterable[Statement]: ...
    def requests(self) -> Iterable[Request]: ...
    def logprobs(self) -> Iterable[LogProb]: ...
    def failures(self) -> Iterable[Failure]: ...


def outcomes(run: Scored, scorers: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table of the pairs, or the choices, of a run.

    scorers: if empty, those of the run (the probes of its spec), or else all that can be computed
    from its passes.
    """
    statements, plan = list(run.statements()), list(run.requests())
    chosen = any(map(choices.is_choice, statements))
    names = scorers or [name for name in run.spec.probes if name in SCORERS]
    names = names or default({request.probe for request in plan}, chosen)
    make = choice_table if chosen else pair_table
    found = make(statements, plan, run.logprobs(), names, run.spec.model, run.failures())
    found.insert(1, "revision", run.spec.shown)  # differs between checkpoints of a model
    return found


def columns(statements: Sequence[Statement]) -> list[str]:
    """Return the columns that the outcomes of a run of these statements will have."""
    chosen = any(map(choices.is_choice, statements))
    name = "choice" if chosen else "loglik"
    make = choice_table if chosen else pair_table
    return ["revision", *make(statements, requests(statements, [name], (CAUSAL,)), (), [name])]


# Statement, language, pass, sample -> the texts by key, or why there are none.
Answers = dict[tuple[str, str, str, int], dict[str, Text] | str]


def _answers(
    plan: Iterable[Request], logprobs: Iterable[LogProb], failures: Iterable[Failure]
) -> Answers:
    keys = {r.id: (r.statement, r.lang, r.probe, r.sample) for r in plan}
    found: Answers = dict.fromkeys(keys.values(), "missing")
    for failure in failures:
        if failure.request in keys:
            found[keys[failure.request]] = "failed"
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


def pair_table(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    model: str = "",
    failures: Iterable[Failure] = (),
) -> pd.DataFrame:
    """Make one row per pair and scorer, in the order of the statements, scorer by scorer.

    Columns: model, scorer, lang, item and contrast (ids of the two), pair, role, bias_type, type,
    entity, valid, text, contrast_text; pro and anti (higher is preferred; NaN if missing); left_out
    (why they are missing: failed, missing, or a scorer's own reason). If the data have a third,
    unrelated sentence: unrelated (its value when scored beside the original) and above_unrelated
    (how many of the two sentences are preferred to it, each scored beside it). Then the extra
    columns of the original.

    Raises InputError for a scorer that needs other passes; RunError for a damaged run.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    unrelated = {(s.lang, s.pair): s for s in statements if s.role == "unrelated"}
    both = pairs(statements)
    check(scorers, chosen=False, passes=passes)
    rows: list[dict[str, Any]] = []
    for scorer in map(find, dict.fromkeys(scorers)):
        name = pass_of(scorer, passes, "run")
        for original, contrast in both:
            row: dict[str, Any] = {"scorer": scorer.name, "contrast": whole(contrast.id)}
            row["contrast_text"] = contrast.text
            row |= _values(scorer, name, found, original, contrast)
            if unrelated:
                third = unrelated.get((original.lang, original.pair))
                row |= _beside(scorer, name, found, (original, contrast), third)
            rows.append(row)
    originals = [original for original, _ in both] * len(set(scorers))
    return facts_beside(model, originals, rows)


def _values(
    scorer: Scorer, name: str, found: Answers, original: Statement, contrast: Statement
) -> dict[str, Any]:
    row: dict[str, Any] = {"pro": math.nan, "anti": math.nan, "left_out": ""}
    texts = []
    for side in (original, contrast):
        answer = found.get((side.id, side.lang, name, 0), "missing")
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


def facts_beside(
    model: str,
    statements: Sequence[Statement],
    rows: Sequence[Mapping[str, Any]],
    but: Collection[str] = (),
) -> pd.DataFrame:
    """Add the columns of the statements to rows.

    statements: one for each row. but: extra columns that are left out.
    """
    import pandas as pd

    ours = {*_OURS, *(rows[0] if rows else ())}
    once = list({id(s): s for s in statements}.values())
    at = {id(s): n for n, s in enumerate(once)}
    facts = pd.DataFrame([_facts(s) | _extra(s, ours, but) for s in once], dtype=object)
    for name in facts.columns.difference(_OURS):
        facts[name] = pd.Series(external.one_kind(facts[name].tolist()), dtype=object)
    facts = (
        facts.map(whole)
        .infer_objects()
        .iloc[[at[id(s)] for s in statements]]
        .reset_index(drop=True)
    )
    values = pd.DataFrame(list(rows))
    extra = [name for name in facts.columns if name not in _OURS]
    found = pd.concat([facts[facts.columns.intersection(_OURS)], values, facts[extra]], axis=1)
    found.insert(0, "model", model)
    return found


_OURS = (
    *("lang", "item", "pair", "role", "bias_type", "type", "entity", "valid", "text"),
    "model",
)


def _facts(statement: Statement) -> dict[str, Any]:
    return {
        "lang": statement.lang,
        "item": statement.id,
        "pair": statement.pair,
        "role": statement.role,
        "bias_type": statement.bias_type,
        "type": statement.type,
        "entity": statement.entity,
        "valid": known_in(statement.lang, statement.valid_in),
        "text": statement.text,
    }


def _extra(statement: Statement, ours: Collection[str], but: Collection[str]) -> dict[str, JSON]:
    return {
        f"{name}_data" if name in ours else name: _plain(value)
        for name, value in statement.extra.items()
        if name not in but
    }


def _plain(value: JSON) -> JSON:
    """Return a value in a form that scores can be split by."""
    if isinstance(value, str):
        return alike(whole(value)) or None
    return canonical(value) if isinstance(value, list | dict) else value


def choice_table(
    statements: Sequence[Statement],
    plan: Iterable[Request],
    logprobs: Iterable[LogProb],
    scorers: Sequence[str],
    model: str = "",
    failures: Iterable[Failure] = (),
) -> pd.DataFrame:
    """Make one row per choice, order of its options and scorer.

    Columns: those of `choices.outcome`, and model, scorer, lang, item, pair, order (0 is that of
    the data), left_out (why nothing was chosen: failed, missing, tie), and the extra columns.
    Raises InputError as `pair_table` does.
    """
    found = _answers(plan, logprobs, failures)
    passes = {key[2] for key in found}
    orders: dict[tuple[str, str, str], list[int]] = {}
    for item, lang, name, sample in found:
        orders.setdefault((item, lang, name), []).append(sample)
    check(scorers, chosen=True, passes=passes)
    asked: list[Statement] = []
    rows: list[dict[str, Any]] = []
    for scorer in map(find, dict.fromkeys(scorers)):
        name = pass_of(scorer, passes, "run")
        for statement in statements:
            for order in orders.get((statement.id, statement.lang, name), ()):
                answer = found[statement.id, statement.lang, name, order]
                row: dict[str, Any] = {"scorer": scorer.name, "order": order}
                if isinstance(answer, str):
                    row |= choices.outcome(statement, None) | {"left_out": answer}
                else:
                    assert scorer.option is not None
                    row |= choices.outcome(
                        statement, {int(key): scorer.option(text) for key, text in answer.items()}
                    )
                asked.append(statement)
                rows.append(row)
    return facts_beside(model, asked, rows, choices.FIELDS)
