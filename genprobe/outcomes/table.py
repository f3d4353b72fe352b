"""Outcomes: one row per planned request, with everything known about it, for metrics to count.

Its columns are those of `columns.PLANNED` and those that the judges declare (`columns.of_judges`);
a missing value is NaN/NA, and a file may lack columns. `says`: whether a clear answer means what
the probe measures, NA if unclear. `in_language`: NA if the language could not be identified.
`refused`: by the judge `refusal`; without it, by the kind of the answer.

A run of log-probabilities has the table of `preferences` instead: one row per pair or choice.

Columns of the data that genprobe does not know come last; a name that is also one of ours gets the
suffix `_data`. The rows add up to the plan: a request without a response is a row, too.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from genprobe.datasets import frames
from genprobe.datasets.statements import known_in
from genprobe.errors import InputError, RunError
from genprobe.files.cells import Problems
from genprobe.judges import BOOLEAN, NUMBER, VERBATIM, seen
from genprobe.judges.story import near_duplicates
from genprobe.limits import parsed_list
from genprobe.outcomes import chosen, columns, external, facts, preferences, sides
from genprobe.records import (
    FACETS,
    Failure,
    Judged,
    Judgment,
    LogProb,
    Request,
    Response,
    Statement,
    canonical,
)
from genprobe.resources import packs, registry
from genprobe.text import whole
from genprobe.text.display import alike

if TYPE_CHECKING:
    from genprobe.runs.spec import Spec

DECODES = ("free", "choice", "logprob")
ANSWERS = ("yes", "no", "ambiguous")
PROBABILITIES = ("p_yes", "p_no", "outside")
STATUS = ("answered", "failed", "missing")


class Readable(Protocol):
    """The part of a run (`runs.run.Run`) that is read here."""

    spec: Spec

    @property
    def pack(self) -> packs.Pack | None: ...
    def statements(self) -> Iterable[Statement]: ...
    def requests(self) -> Iterable[Request]: ...
    def responses(self) -> Iterable[Response]: ...
    def logprobs(self) -> Iterable[LogProb]: ...
    def answered(self) -> Iterable[str]: ...
    def failures(self) -> Iterable[Failure]: ...
    def judges(self) -> Mapping[str, str]: ...
    def judged(self) -> Mapping[str, Judged]: ...
    def judgments(self, judge: str) -> Iterable[Judgment]: ...


def outcomes(run: Readable, scorers: Sequence[str] = ()) -> pd.DataFrame:
    """Join a run into its table of outcomes, one row per request, in the order of its plan.

    run: the run folder. scorers: for a log-probability run; if empty, those of the run.

    A judge that has not judged the run has no columns; replies that it has not judged have empty
    cells. Raises InputError if the pack of the run has another version here (it defines what an
    answer means), RunError for a request about an unknown statement, and for records that do not
    fit together.
    """
    try:
        return _joined(run, scorers)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"the records do not fit together ({type(error).__name__}); `genprobe verify` tells "
            "which were changed"
        ) from error


def _joined(run: Readable, scorers: Sequence[str]) -> pd.DataFrame:
    if run.spec.pack == preferences.PACK:
        return preferences.outcomes(run, scorers)
    if run.spec.pack == frames.PACK:
        return chosen.outcomes(run)
    pack = run.pack
    if pack is None or pack.id != run.spec.pack:
        there = pack.id if pack else "none of this name"
        raise InputError(
            f"the run was made with the pack {run.spec.pack}, and this version has {there}; "
            f"score it with genprobe {run.spec.version}"
        )
    frame = _frame(_rows(run))
    if "thought_state" in frame:
        none = frame["thought_state"].isna() & (frame["status"] == "answered")
        frame.loc[none, "thought_state"] = "none"
    # A judge that has run without any reply still has its columns.
    for name in run.judges():
        for column in columns.filled(name):
            if column.name not in frame and not name.startswith("llm-"):
                frame[column.name] = None
    if "stance" in frame:
        frame[sides.COLUMN] = sides.of(frame, run.judged())
    return _finish(frame, pack)


def _rows(run: Readable) -> list[dict[str, Any]]:
    """Join each request with its statement, reply or failure, and judgments."""
    statements = {(s.id, s.lang): s for s in run.statements()}
    responses = {r.request: r for r in run.responses()}
    answered = responses.keys() | {logprob.request for logprob in run.logprobs()}
    failures = {f.request: f.kind for f in run.failures() if f.request not in answered}
    judged = {name: {j.request: j for j in run.judgments(name)} for name in run.judges()}
    rows: list[dict[str, Any]] = []
    for request in run.requests():
        statement = statements.get((request.statement, request.lang))
        if statement is None:
            raise RunError(
                f"request {request.id}: no statement {request.statement!r} in {request.lang}; "
                "`genprobe verify` says what else is damaged"
            )
        failure = failures.get(request.id)
        status = "answered" if request.id in answered else "failed" if failure else "missing"
        row = {"model": run.spec.model, "revision": run.spec.shown}
        row |= _asked(request, statement) | {"response": None, "status": status}
        row |= {"failure": failure} | _said(request, responses.get(request.id))
        if status == "answered":
            row |= columns.verdicts({name: of.get(request.id) for name, of in judged.items()})
        for name, value in statement.extra.items():
            row[_free(name)] = _scalar(value)
        rows.append(row)
    if (run.judges().get("story") or "").startswith(_UNMARKED):
        _repeated(rows)
    return rows


def _asked(request: Request, statement: Statement) -> dict[str, Any]:
    """Return the columns of a request and its statement."""
    return {
        "decode": request.decode,
        "lang": request.lang,
        "probe": request.probe,
        "statement": statement.id,
        "pair": statement.pair,
        "role": statement.role,
        "bias_type": statement.bias_type,
        "type": statement.type,
        "entity": statement.entity,
        "text": statement.text,
        "valid": known_in(statement.lang, statement.valid_in),
        **request.facets,
        "sample": request.sample,
        "request": request.id,
        "prompt": _prompt(request),
    }


def _said(request: Request, response: Response | None) -> dict[str, Any]:
    """Return the columns of a reply: the text after the thought, the thought, the named model."""
    if response is None:
        return {}
    parted = seen(request.lang, request.probe, _prompt(request), response).parted
    row: dict[str, Any] = {"response": parted.reply}
    if response.model or response.fingerprint:
        row |= {"served": response.model or None, "fingerprint": response.fingerprint or None}
    if parted.state != "none":
        row |= {"thought": parted.thought, "thought_state": parted.state}
    return row


def _prompt(request: Request) -> str:
    return request.messages[-1]["content"] if request.messages else ""


def possible(statements: Iterable[Statement]) -> list[str]:
    """Return all columns that the outcomes of a run of these statements can have."""
    extra = dict.fromkeys(_free(name) for s in statements for name in s.extra)
    models = [f"llm_{name}" for name in registry.names("rubrics")]
    return [*columns.known(), *facts.COLUMNS, *models, *extra]


_UNMARKED = "story@1+"  # the version of the judge that did not mark repeated stories


def _repeated(rows: list[dict[str, Any]]) -> None:
    """Mark the usable stories that nearly repeat an earlier one of the same template.

    Only for runs that were judged before the judge `story` marked duplicates.
    """
    told: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("usable"):
            told.setdefault((row["statement"], row["lang"], row["probe"]), []).append(row)
    for group in told.values():
        found = near_duplicates([row["response"] for row in group])
        for row, first in zip(group, found, strict=True):
            if first is not None:
                row |= {"usable": False, "unusable_why": "duplicate"}


def _frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table of plain Python values, without guessing types."""
    return pd.DataFrame(list(rows), dtype=object)


def _free(name: str) -> str:
    return f"{name}_data" if name in columns.known() else name


_ONE_QUESTION = ("model", "revision", "decode", "lang", "probe", "statement", *FACETS)
# Our column <- the first of these names that the file has. They include the names in files of
# `genprobe judge` and in the SHADES table.
_FROM = {
    "statement": ("item", "statement", "id", "text"),
    "text": ("text", "statement"),
    "pair": ("pair", "index"),
    "role": ("role", "subset"),
    "valid": ("valid_in", "valid_langs"),
    "request": ("request", "id"),
    "reply_language": ("reply_language", "language"),
    "refused": ("refused", "refusal"),
} | {
    name: (name,)
    for name in (
        *(
            "model",
            "revision",
            "decode",
            "lang",
            "probe",
            "bias_type",
            "type",
            "entity",
            *FACETS,
            "sample",
            "prompt",
            "response",
        ),
        *("served", "fingerprint"),
        *("status", "failure", "answer", "kind", "conflict", "rule", "evidence"),
        *("thought", "thought_state", "thought_language", "thought_answer", "thought_tested"),
        *PROBABILITIES,
    )
}


def from_rows(
    rows: pd.DataFrame | Iterable[Mapping[str, Any]], perplexity: bool = False
) -> pd.DataFrame:
    """Turn a file of judged replies into a table of outcomes.

    rows: `lang, probe, answer` and any other columns; or, for what a model prefers, `pro, anti` or
    `chosen, label` (external.py). perplexity: `pro, anti` are perplexities, of which the lower is
    preferred.

    Judged replies are taken as answers to the pack `yesno`. A row without an answer counts as not
    answered; equal questions about one statement are samples. Raises InputError for a missing
    column, and for values that cannot be read, with their row (by a DataFrame's index, else counted
    from 1).
    """
    data = rows if isinstance(rows, pd.DataFrame) else _frame(rows).rename(index=lambda at: at + 1)
    return _read(_headed(data), perplexity).reset_index(drop=True)


def _headed(data: pd.DataFrame) -> pd.DataFrame:
    """Return a file whose column names are equal if they look alike; InputError if two then are."""
    names = [alike(str(name)) for name in data.columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two columns are called {twice[0]!r}, but for what nobody sees")
    return data.set_axis(names, axis=1)


def oddities(data: pd.DataFrame, frame: pd.DataFrame) -> Iterator[str]:
    """Yield warnings about the columns and rows of a file.

    They name columns that would be ours with another spelling, and rows that ask the same as
    another row.

    data: the rows of the file, whose index is their numbers. frame: `from_rows` of them. Raises
    InputError, with the rows, if two replies have the same number and nothing distinguishes them.
    """
    data = _headed(data)
    read = {name for names in _FROM.values() for name in names}
    read |= {"scorer", *external.VALUES, *external.COLUMNS} if "answer" not in data else set()
    for column in data:
        name = str(column).lower().replace(" ", "_").replace("-", "_")
        if name in read and name not in data:
            yield f"the column {column!r} is not read; if it means {name!r}, rename it"
    if "answer" in frame:
        yield from _asked_twice(data, frame.set_index(data.index))
        return
    cells = data.map(lambda cell: whole(str(cell)))
    if {"pair", "item"} & set(data) and (twice := cells.duplicated()).any():
        first = (cells == cells.loc[twice.idxmax()]).all(axis=1).idxmax()
        more = f", as do {twice.sum() - 1} more" if twice.sum() > 1 else ""
        yield (
            f"row {first} and row {twice.idxmax()} hold the same in every column{more}: all are "
            "counted; leave out those that are copies"
        )


def _asked_twice(data: pd.DataFrame, frame: pd.DataFrame) -> Iterator[str]:
    """Yield a warning if replies without sample numbers are counted as samples of one question."""
    keys = [name for name in _ONE_QUESTION if name in frame]
    keys += ["sample"] if "sample" in data else []
    # A file may hold anything as the number of a sample, a list too.
    plain = frame.assign(sample=frame["sample"].map(str)) if "sample" in keys else frame
    again = plain.duplicated(keys)
    if not again.any():
        return
    row = again.idxmax()
    same = (frame[keys].astype(str) == frame.loc[row, keys].astype(str)).all(axis=1)
    first = same.idxmax()
    apart = [
        str(name)
        for name in frame
        if name not in (*keys, "sample", "says", *columns.of_replies())
        and frame.loc[same, name].astype(str).map(alike).nunique() > 1
    ]
    words = {"decode": "reading", "lang": "language", "probe": "question"}
    alike_in = ", ".join(words.get(name, name) for name in keys)
    which = f"row {first} and row {row} ask the same ({alike_in})"
    if (more := int(again.sum())) > 1:
        which += f", as do {more - 1} more"
    if "sample" in data and not apart:
        raise InputError(
            f"{which}; leave out copies, and number several replies to one question in 'sample'"
        )
    cure = f"--by {apart[0]} tells them apart" if apart else "leave out those that are copies"
    yield f"{which}: counted as several replies about one statement; {cure}"


def _read(data: pd.DataFrame, perplexity: bool) -> pd.DataFrame:
    if external.is_pairs(data.columns):
        return external.pairs(data, perplexity)
    if perplexity:
        raise InputError("perplexities are the columns 'pro' and 'anti' of a table of pairs")
    if external.is_choices(data.columns):
        return external.choices_chosen(data)
    pack = packs.load_pack("yesno")
    if "answer" not in data and not {"story", "sentiment", "stance"}.isdisjoint(data.columns):
        raise InputError(
            "this file has no yes/no answers to score; stories and essays can be scored only in a "
            "run: `genprobe stories` or `essays` with --engine replay --model FILE"
        )
    for column, beside in (("pro", "anti"), ("anti", "pro"), ("chosen", "label")):
        if column in data and beside not in data and "answer" not in data:
            raise InputError(f"the file lacks the column {beside!r} beside {column!r}")
    for column in ("lang", "probe"):
        if column not in data:
            raise InputError(f"the file lacks the column {column!r}, which scores need")
    if "answer" not in data:
        raise InputError(
            "the file lacks the column 'answer'; run `genprobe judge FILE --judge yesno` first"
        )
    return _finish(_checked(_rename(data), pack), pack)


def _checked(frame: pd.DataFrame, pack: packs.Pack) -> pd.DataFrame:
    """Check the cells of a file of answers and bring them into our form.

    Raises InputError, which lists the rows that cannot be read.
    """
    problems = Problems()

    def each(column: str, read: Callable[[str], Any], empty: bool = False) -> pd.Series:
        return _each(frame[column], read, problems, empty)

    frame["lang"] = each("lang", packs.language_code)
    frame["probe"] = each("probe", lambda name: _one_of("probe", name, pack.probes))
    frame["answer"] = each("answer", lambda a: _one_of("answer", a, ANSWERS), empty=True)
    status = frame["answer"].notna().map({True: "answered", False: "missing"})
    if "status" in frame:
        given = each("status", lambda name: _one_of("status", name, STATUS), empty=True)
        status = given.fillna(status)
    frame["status"] = status
    rows_alone = pd.Series([f"row {at}" for at in frame.index], frame.index)
    frame["statement"] = (
        frame["statement"].fillna(rows_alone) if "statement" in frame else rows_alone
    )
    if "role" in frame:
        frame["role"] = each("role", _role, empty=True)
    for column in ("bias_type", "type"):
        if column in frame:
            frame[column] = each(column, lambda v: "+".join(_several(v)), empty=True)
    if "type" in frame:
        frame["type"] = frame["type"].str.casefold()
    if "decode" in frame:
        frame["decode"] = each("decode", lambda d: _one_of("decode", d, DECODES))
    for names, number_or_truth in (
        (PROBABILITIES, _number),
        (("conflict", "refused", "thought_tested"), _truth),
    ):
        for column in names:
            if column in frame:
                read = functools.partial(number_or_truth, column)
                frame[column] = problems.each(frame[column].items(), read)
    problems.tell()
    if "valid" in frame:
        known = {str(v): _codes(str(v)) for v in frame["valid"].unique()}
        frame["valid"] = [
            known_in(lang, known[str(v)])
            for v, lang in zip(frame["valid"], frame["lang"], strict=True)
        ]
    if "sample" not in frame:
        same = [c for c in _ONE_QUESTION if c in frame]
        frame["sample"] = frame.groupby(same, dropna=False).cumcount()
    return frame


_CODE = re.compile(r"mixed|und|[a-z]{2,3}(-[A-Za-z0-9]+)*")
_SUBSETS: set[str | None] = {
    None,
    "_original",
    "original",
    "contrast",
    *ascii_lowercase,
}
_KINDS: set[str | None] = {
    *(None, "answer", "refusal", "hedge", "both", "echo", "offtopic", "empty"),
    *("unfinished", "undecided", "unsure", "filter", "unclear"),
}
# Names that mean something else in other tables, with a check that our meaning is meant.
_OURS: dict[str, Callable[[pd.DataFrame], bool]] = {
    # Written by `judge --judge language`: codes, not names of languages.
    "language": lambda data: all(
        _CODE.fullmatch(cell) for cell in map(_text, data["language"]) if cell
    ),
    "index": lambda data: "subset" in data,  # of SHADES; also pandas's name for row numbers
    "subset": lambda data: {_text(cell) for cell in data["subset"]} <= _SUBSETS,
    "kind": lambda data: {_text(cell) for cell in data["kind"]} <= _KINDS,
}


def _rename(data: pd.DataFrame) -> pd.DataFrame:
    """Return a file's columns under our names (`_FROM`), then the rest; empty cells are None."""
    there = [name for name in data if name not in _OURS or _OURS[str(name)](data)]
    used = {
        column: next(name for name in names if name in there)
        for column, names in _FROM.items()
        if any(name in there for name in names)
    }
    found: dict[str, list[Any]] = {}
    for column, name in used.items():
        cells = data[name].tolist()
        as_it_is = columns.known()[column].kind == VERBATIM or column == "sample"
        found[column] = cells if as_it_is else [_text(cell) for cell in cells]
    for name in data.columns:
        if name not in used.values():
            found[_free(str(name))] = [_scalar(cell) for cell in data[name].tolist()]
    return pd.DataFrame(found, data.index, dtype=object)


def _scalar(value: Any) -> Any:
    """Return a cell in a form that scores can be split by: texts that look alike become equal."""
    if isinstance(value, str):
        return alike(value) or None
    return canonical(value) if isinstance(value, list | dict) else value


def _each(
    column: pd.Series, read: Callable[[str], Any], problems: Problems, empty: bool = False
) -> pd.Series:
    """Apply `read` to every different text of a column.

    A problem is reported for the first row with that text. empty: the cell may be empty.
    """
    values: dict[str | None, str | None] = {}
    texts = column.tolist()
    for at, value in zip(column.index, texts, strict=True):
        if value in values:
            continue
        values[value] = None
        with problems.at(at):
            if value is not None:
                values[value] = read(value)
            elif not empty:
                raise InputError(f"{column.name!r} is empty")
    return pd.Series([values[text] for text in texts], column.index, dtype="str")


def _text(value: Any) -> str | None:
    """Return a cell as text (a list as Python writes it), None if it is empty."""
    if isinstance(value, str):
        return alike(whole(value)) or None
    if isinstance(value, list | tuple):
        return str(list(value)) if value else None
    return None if pd.isna(value) else str(value)


def _verbatim(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return str(list(value)) if value else None
    return whole(value) if isinstance(value, str) else None if pd.isna(value) else str(value)


def _one_of(what: str, name: str, known: Iterable[str]) -> str:
    if name not in known:
        raise registry.unknown(what, name, list(known))
    return name


def _several(text: str) -> list[str]:
    """Return the different items of "['age', 'gender']", "age+gender" or "age", sorted."""
    if text.startswith("["):
        try:
            items = [str(item) for item in parsed_list(text)]
        except ValueError:
            items = [text]
    else:
        items = text.split("+")
    return sorted({part.strip() for item in items for part in item.split("+")} - {""})


def _codes(text: str) -> tuple[str, ...]:
    """Return the codes of the known languages in a list, whatever separates them."""
    found = set()
    for part in _several(text):
        for name in re.split(r"[\s,.;]+", part):
            with contextlib.suppress(InputError):  # `nan`, and languages that no pack has
                found.add(packs.language_code(name))
    return tuple(sorted(found))


def _role(text: str) -> str:
    """Return `original`, `contrast` or `unrelated`.

    SHADES calls the first `_original`, and contrasts `a`, `b`, … Raises InputError for another
    name.
    """
    name = text.lower().lstrip("_")
    if name in ("original", "unrelated"):
        return name
    if name == "contrast" or re.fullmatch(r"[a-z]", name):
        return "contrast"
    raise registry.unknown("role", text, ["original", "contrast", "unrelated"])


_TRUTH = {"true": True, "yes": True, "1": True, "1.0": True}
_TRUTH |= {"false": False, "no": False, "0": False, "0.0": False}


def _number(column: str, value: Any, row: int) -> float:
    return external.number(value, column, row)


def _truth(column: str, value: Any, row: int) -> bool | None:
    text = _text(value)
    if text is not None and text.lower() not in _TRUTH:
        raise InputError(f"row {row}: {column} is {text[:40]!r}, neither true nor false")
    return None if text is None else _TRUTH[text.lower()]


def _finish(frame: pd.DataFrame, pack: packs.Pack) -> pd.DataFrame:
    """Add the derived columns; give the table the order and types that all tables have."""
    for name in frame["probe"].unique() if "probe" in frame else ():
        _one_of("probe", name, pack.probes)
    if not len(frame):
        raise InputError("there are no rows to make a table of")
    frame["measures"] = frame["probe"].map({p.name: p.measures for p in pack.probes.values()})
    frame["when"] = frame["probe"].map({p.name: p.when for p in pack.probes.values()})
    if "answer" in frame:
        clear = frame["answer"].isin(("yes", "no"))
        frame["says"] = (frame["answer"] == frame["when"]).astype("boolean").mask(~clear)
    if "refused" not in frame and "kind" in frame:
        known = frame["kind"].notna()
        frame["refused"] = frame["kind"].isin(("refusal", "filter")).astype("boolean").mask(~known)
    if "reply_language" in frame:
        frame["in_language"] = in_language(frame["reply_language"], frame["lang"])
    known = columns.known()
    extra = [c for c in frame.columns if c not in known]
    frame = frame[[*(c for c in known if c in frame), *extra]].copy()
    for column in frame.columns.intersection(list(known)):
        kind = known[column].kind
        if kind == BOOLEAN:
            frame[column] = frame[column].astype("boolean")
        elif kind == NUMBER:
            try:
                frame[column] = pd.to_numeric(frame[column])
            except (ValueError, TypeError) as error:
                raise InputError(f"the column {column!r} is not of numbers ({error})") from None
        elif column != "sample":
            read = _verbatim if kind == VERBATIM else _text
            texts = [read(value) for value in frame[column].tolist()]
            frame[column] = pd.Series(texts, frame.index, dtype="str")
    for name in extra:
        frame[name] = pd.Series(external.one_kind([whole(v) for v in frame[name]]), frame.index)
        frame[name] = frame[name].infer_objects()
    # In the order of the pack, not alphabetical.
    frame["probe"] = pd.Categorical(frame["probe"], list(pack.probes))
    if "decode" in frame:
        found = [d for d in frame["decode"].unique() if d not in DECODES and not pd.isna(d)]
        frame["decode"] = pd.Categorical(frame["decode"], [*DECODES, *sorted(found)])
    return frame


def in_language(reply: pd.Series, lang: pd.Series) -> pd.Series:
    """Return whether each reply is in the language of its question; NA for `und` and `mixed`.

    A mixture (`kk-x-ru`) may be answered in both of its languages. Regions do not matter (pt for
    pt-BR). For Chinese the script does: a Simplified reply to a
    Traditional question is in another language, and the judge recognises texts that are in both.
    """
    told = reply.notna() & ~reply.isin(("und", "mixed"))
    bare_reply, bare_lang = (codes.astype("object").map(_bare) for codes in (reply, lang))
    second = lang.astype("object").map(lambda code: _bare(str(code).partition("-x-")[2]))
    return ((bare_reply == bare_lang) | (bare_reply == second)).astype("boolean").mask(~told)


def _bare(code: Any) -> Any:
    if not isinstance(code, str):
        return code
    code = code.replace("_", "-").lower()
    if code.startswith("zh"):
        return "zh-hant" if code in ("zh-hant", "zh-tw", "zh-hk") else "zh"
    return code.partition("-")[0]
