"""Outcomes: one row per planned request, with everything known about it, for metrics to count.

Its columns are those of `columns.PLANNED` and those that the judges declare (`columns.of_judges`);
a missing value is NaN/NA, and a file may lack columns. `says`: whether a clear answer means what
the probe measures, NA if unclear. `in_language`: NA if the language could not be identified.
`refused`: by the judge `refusal`; without it, by the kind of the answer.

A task declares what one row is (`Task.rows`), and its further columns: a planned reply, a choice
(`chosen`), a pair of sentences (`preferences`). `row_of` makes the row of one request.

Columns of the data that genprobe does not know come last; a name that is also one of ours gets the
suffix `_data`. The rows add up to the plan: a request without a response is a row, too.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from genprobe.datasets.statements import known_in
from genprobe.errors import InputError, RunError
from genprobe.files.cells import Problems, cell_text
from genprobe.files.rows import cells_of
from genprobe.judges import BOOLEAN, NUMBER, VERBATIM, Column, asked, parted_of
from genprobe.judges.story import near_duplicates
from genprobe.limits import parsed_list
from genprobe.outcomes import columns, external, sides
from genprobe.outcomes.columns import FAILED, MISSING, UNANSWERED, Row, Unit, scalar
from genprobe.records import (
    DECODES,
    FACETS,
    Failure,
    Judged,
    Judgment,
    LogProb,
    Request,
    Response,
    Statement,
)
from genprobe.resources import packs, registry
from genprobe.text import whole
from genprobe.text.display import alike

if TYPE_CHECKING:
    from genprobe.runs.spec import Spec

ANSWERS = ("yes", "no", "ambiguous")
PROBABILITIES = ("p_yes", "p_no", "outside")


class Readable(Protocol):
    """The part of a run (`runs.run.Run`) that is read here."""

    spec: Spec

    @property
    def pack(self) -> packs.Pack | None: ...
    def statements(self) -> Iterable[Statement]: ...
    def requests(self) -> Iterable[Request]: ...
    def responses(self) -> Iterable[Response]: ...
    def logprobs(self) -> Iterable[LogProb]: ...
    def failures(self) -> Iterable[Failure]: ...
    def judges(self) -> Mapping[str, str]: ...
    def judged(self) -> Mapping[str, Judged]: ...
    def judgments(self, judge: str) -> Iterable[Judgment]: ...


def outcomes(run: Readable, scorers: Sequence[str] = ()) -> pd.DataFrame:
    """Join a run into its table of outcomes, in the order of its plan.

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
    pack = run.pack
    if "@" in run.spec.pack and (pack is None or pack.id != run.spec.pack):
        there = pack.id if pack else "none of this name"
        raise InputError(
            f"the run was made with the pack {run.spec.pack}, and this version has {there}; "
            f"score it with genprobe {run.spec.version}"
        )
    unit = columns.unit_of(run.spec)
    rows = list(unit.rows(run, scorers)) if unit.rows else _rows(run, unit)
    if unit.last:
        unit.last(rows)
    frame = _frame(rows)
    frame[["model", "revision"]] = whole(run.spec.model), whole(run.spec.shown)
    if "thought_state" in frame:
        none = frame["thought_state"].isna() & ~frame["left_out"].isin(UNANSWERED)
        frame.loc[none, "thought_state"] = "none"
    # A judge that has run without any reply still has its columns.
    for name in () if unit.rows else run.judges():
        for column in columns.filled(name):
            if column.name not in frame and not name.startswith("llm-"):
                frame[column.name] = None
    if sides.COLUMN in unit.known:
        frame[sides.COLUMN] = sides.of(frame, run.judged())
    return _finish(frame, unit.known, pack, () if pack else run.spec.probes)


def _rows(run: Readable, unit: Unit) -> list[Row]:
    """Return the row of each request, in the order of the plan."""
    statements = {(s.id, s.lang): (s, unit.about(s)) for s in run.statements()}
    responses = {r.request: r for r in run.responses()}
    answered = responses.keys() | {logprob.request for logprob in run.logprobs()}
    failures = {f.request: f.kind for f in run.failures() if f.request not in answered}
    judged = {name: {j.request: j for j in run.judgments(name)} for name in run.judges()}
    rows = []
    for request in run.requests():
        if (request.statement, request.lang) not in statements:
            raise RunError(
                f"request {request.id}: no statement {request.statement!r} in {request.lang}; "
                "`genprobe verify` says what else is damaged"
            )
        statement, about = statements[request.statement, request.lang]
        failure = failures.get(request.id)
        left_out = "" if request.id in answered else FAILED if failure else MISSING
        row = {**about, "left_out": left_out, "failure": failure}
        of = {} if left_out else {name: found.get(request.id) for name, found in judged.items()}
        row |= row_of(request, responses.get(request.id), of)
        if unit.further:
            row |= unit.further(statement, request, row, of)
        rows.append(row)
    if (run.judges().get("story") or "").startswith(_UNMARKED):
        _repeated(rows)
    return rows


def row_of(
    request: Request, response: Response | None, judgments: Mapping[str, Judgment | None]
) -> Row:
    """Return the columns of one request: what was asked, what came, what each judge says of it.

    judgments: by the name of the judge. It needs no other request; what does has its own name
    (`Unit.last`, `_repeated`, `_asked_twice`).
    """
    row = {
        "decode": request.decode,
        "probe": request.probe,
        **request.facets,
        "sample": request.sample,
        "request": request.id,
        "prompt": asked(request),
        "response": None,
    }
    if response is not None:
        parted = parted_of(request, response, judgments.values())
        row["response"] = parted.reply
        if response.model or response.fingerprint:
            row["served"], row["fingerprint"] = response.model, response.fingerprint
        if parted.state != "none":
            row["thought"], row["thought_state"] = parted.thought, parted.state
    return row | columns.verdicts(judgments)


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


_ONE_QUESTION = ("model", "revision", "decode", "lang", "probe", "statement", *FACETS)
# Our column <- the first of these names that the file has. They include the names in files of
# `genprobe judge` and in the SHADES table.
_COUNTS = "answered"  # in the column `status`, which was what `left_out` is: it is not left out
_FROM = {
    "left_out": ("left_out", "status"),
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
        *("failure", "answer", "kind", "conflict", "rule", "evidence"),
        *("thought", "thought_state", "thought_language", "thought_answer", "thought_tested"),
        *PROBABILITIES,
    )
}


def from_rows(
    rows: pd.DataFrame | Iterable[Mapping[str, Any]], perplexity: bool = False
) -> pd.DataFrame:
    """Turn a file of judged replies into a table of outcomes.

    rows: `lang, probe, answer` and any other columns; or, for what a model prefers, `pro, anti` or
    `chosen, label` (external.py). Texts may be categories (`files.frames`); in a table of answers
    they stay categories. perplexity: `pro, anti` are perplexities, of which the lower is preferred.

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


def unnamed(data: pd.DataFrame) -> list[bool]:
    """Tell of each row of a file whether it does not say which statement it is about."""
    data = _headed(data)
    name = next((name for name in _FROM["statement"] if name in data), None)
    return [True] * len(data) if name is None else [not _text(cell) for cell in data[name]]


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
        yield from _asked_twice(data, frame.set_axis(data.index))
        return
    cells = data.astype(object).map(lambda cell: whole(str(cell)))
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
    plain = frame
    if "sample" in keys and frame["sample"].dtype == object:
        # A file may hold anything as the number of a sample, a list too.
        plain = frame.assign(sample=frame["sample"].map(str))
    again = _again(plain, keys)
    if not again.any():
        return
    row = again.idxmax()
    same = (frame[keys].astype(str) == frame.loc[row, keys].astype(str)).all(axis=1)
    first = same.idxmax()
    apart = [
        str(name)
        for name in frame
        if name not in (*keys, "sample", "says", *columns.of_replies())
        and frame.loc[same, name].map(lambda cell: alike(str(cell))).nunique() > 1
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


def _again(frame: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Return which rows are equal, in these columns, to an earlier one; part by part."""
    found = np.zeros(len(frame), bool)
    for part in chunks(frame):
        found[part] = frame[keys].iloc[part].duplicated()
    return pd.Series(found, frame.index)


AT_ONCE = 1 << 16  # rows at most (and a cluster) of a part


def chunks(outcomes: pd.DataFrame) -> list[Any]:
    """Divide the rows of a table into parts of whole clusters, as arrays of their numbers.

    All rows of a statement (of an item, without statements), and of a pair, are in one part, in
    the order of the table, so that units are the same as those of the whole table. One part if that
    is not possible.
    """
    whole = [slice(None)]
    item = next((name for name in ("statement", "item") if name in outcomes), None)
    if len(outcomes) <= AT_ONCE or item is None:
        return whole
    own, every = numbered(outcomes[item])
    if (own < 0).any() or "" in every:
        return whole
    group = np.arange(len(every))
    blocks = _blocks(len(own))
    if "pair" in outcomes:
        pair, names = numbered(outcomes["pair"])
        if "" in names:
            pair = np.where(pair == list(names).index(""), -1, pair)
        first = np.full(len(every), -1)
        for block in reversed(blocks):
            first[own[block]] = pair[block]
        if any((first[own[block]] != pair[block]).any() for block in blocks):
            return whole  # a statement of several pairs
        group = np.where(first >= 0, first, len(names) + group)
    group = np.unique(group, return_inverse=True)[1]
    size = np.zeros(group.max() + 1, np.int64)
    for block in blocks:
        size += np.bincount(group[own[block]], minlength=len(size))
    # Clusters fill a part after the other. Sorted by part, some rows at a time.
    part_of = ((np.cumsum(size) - size) // AT_ONCE)[group].astype(np.int16)
    sizes = [np.bincount(part_of[own[block]], minlength=part_of.max() + 1) for block in blocks]
    ends = np.cumsum(np.sum(sizes, axis=0))
    place = np.concatenate([[0], ends[:-1]])  # where the next row of each part belongs
    order = np.empty(len(own), np.int32)
    for block, count in zip(blocks, sizes, strict=True):
        part = part_of[own[block]]
        rows = np.argsort(part, kind="stable")
        order[np.arange(len(rows)) + np.repeat(place - np.cumsum(count) + count, count)] = (
            rows + block.start
        )
        place += count
    return np.split(order, ends[:-1])


def _blocks(rows: int) -> list[slice]:
    return [slice(at, at + AT_ONCE) for at in range(0, rows, AT_ONCE)]


def several(outcomes: pd.DataFrame, column: str) -> bool:
    """Tell whether a column has several values; revisions: of one model, if models are told."""
    if column == "revision" and "model" in outcomes:
        return bool(
            (outcomes.groupby("model", dropna=False, observed=True)[column].nunique() > 1).any()
        )
    return outcomes[column].nunique() > 1


def part_of(outcomes: pd.DataFrame, rows: Any) -> pd.DataFrame:
    """Return a part of a table; its categories are those that are in it."""
    part = outcomes.iloc[rows]
    for name in ("statement", "item", "pair"):
        if name in part and part[name].dtype == "category":
            codes, every = part[name].array.codes, part[name].cat.categories
            used = np.zeros(len(every) + 1, bool)
            used[codes] = True  # the last one for the code -1
            used[-1] = False
            into = np.where(used, np.cumsum(used) - 1, -1).astype(codes.dtype)[codes]
            kept = pd.Categorical.from_codes(into, every[used[:-1]])
            part = part.assign(**{name: pd.Series(kept, part.index, copy=False)})
    return part


def numbered(column: pd.Series) -> tuple[np.ndarray, Collection[str]]:
    """Return a number for each cell, -1 if it is empty, and the different cells."""
    if column.dtype == "category":
        return column.array.codes, column.cat.categories
    return pd.factorize(column)


def _read(data: pd.DataFrame, perplexity: bool) -> pd.DataFrame:
    if external.is_pairs(data.columns):
        return external.pairs(data.astype(object), perplexity)
    if perplexity:
        raise InputError("perplexities are the columns 'pro' and 'anti' of a table of pairs")
    if external.is_choices(data.columns):
        return external.choices_chosen(data.astype(object))
    pack = packs.load_pack("yesno")
    if "answer" not in data and set(data) >= _WHOLE:
        return _exported(data)
    if "answer" not in data and not {"story", "sentiment", "side"}.isdisjoint(data.columns):
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
    return _finish(_checked(_rename(data), pack), columns.known(), pack)


# What every table of outcomes of replies has; other tables of stories and essays lack the plan.
_WHOLE = {"request", "statement", "lang", "probe", "sample", "left_out"}


def _exported(data: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes that `score --export` wrote in the types that are declared for them."""
    known, problems, frame = columns.known(), Problems(), data.copy()
    kinds = {BOOLEAN: external.truth, NUMBER: external.number}
    for name in (name for name in data if name in known and known[name].kind in kinds):
        read = functools.partial(kinds[known[name].kind], name)
        frame[name] = problems.each(frame[name].items(), read)
    problems.tell()
    for name in (name for name in data if name not in known):  # an empty cell is missing
        frame[name] = pd.Series([scalar(cell) for cell in data[name]], data.index, dtype=object)
    return _finish(frame, known, None, list(dict.fromkeys(frame["probe"].dropna().map(str))))


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
    told = frame["answer"].notna()
    if "left_out" in frame:
        reasons = (*UNANSWERED, _COUNTS)
        given = each("left_out", lambda why: _one_of("left_out", why, reasons), empty=True)
        left_out = given.astype(object).replace(_COUNTS, "").fillna(told.map(_LEFT_OUT))
        left_out = left_out if given.dtype != "category" else left_out.astype("category")
    else:
        left_out = _mapped(frame["answer"], lambda answer: MISSING if answer is None else "")
    frame["left_out"] = left_out
    if "statement" not in frame or frame["statement"].isna().any():
        rows_alone = pd.Series([f"row {at}" for at in frame.index], frame.index, dtype=object)
        named = frame["statement"].astype(object) if "statement" in frame else rows_alone
        frame["statement"] = named.fillna(rows_alone)
    if "role" in frame:
        frame["role"] = each("role", _role, empty=True)
    for column in ("bias_type", "type"):
        if column in frame:
            frame[column] = each(column, lambda v: "+".join(_several(v)), empty=True)
    if "type" in frame:
        frame["type"] = _mapped(frame["type"], lambda v: v and v.casefold())
    if "decode" in frame:
        frame["decode"] = each("decode", lambda d: _one_of("decode", d, DECODES))
    for names, number_or_truth in (
        (PROBABILITIES, external.number),
        (external.TRUTHS, external.truth),
    ):
        for column in names:
            if column in frame:
                read = functools.partial(number_or_truth, column)
                frame[column] = _cells(frame[column], read, problems)
    problems.tell()
    if "valid" in frame:
        codes = functools.cache(lambda text: _codes(text))
        frame["valid"] = _truths(
            frame["valid"], frame["lang"], lambda v, lang: known_in(lang, codes(str(v)))
        )
    if "sample" not in frame:
        same = [c for c in _ONE_QUESTION if c in frame]
        frame["sample"] = frame.groupby(same, dropna=False, observed=True).cumcount()
    return frame


_LEFT_OUT = {True: "", False: MISSING}  # of a row: whether it has an answer -> why it is left out


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
        _CODE.fullmatch(cell) for cell in _different(data["language"]) if cell
    ),
    "index": lambda data: "subset" in data,  # of SHADES; also pandas's name for row numbers
    "subset": lambda data: _different(data["subset"]) <= _SUBSETS,
    "kind": lambda data: _different(data["kind"]) <= _KINDS,
}


def _different(column: pd.Series) -> set[str | None]:
    """Return the different texts of a column, None for an empty cell."""
    return set(map(_text, column.cat.categories if column.dtype == "category" else column))


def _rename(data: pd.DataFrame) -> pd.DataFrame:
    """Return a file's columns under our names (`_FROM`), then the rest; empty cells are None."""
    there = [name for name in data if name not in _OURS or _OURS[str(name)](data)]
    used = {
        column: next(name for name in names if name in there)
        for column, names in _FROM.items()
        if any(name in there for name in names)
    }
    found: dict[str, pd.Series] = {}
    for column, name in used.items():
        as_it_is = columns.known()[column].kind == VERBATIM or column == "sample"
        as_it_is |= column in PROBABILITIES and data[name].dtype == float
        found[column] = data[name] if as_it_is else _mapped(data[name], _text)
        if name == "left_out":  # where `status` is empty, the answer says whether it counts
            found[column] = _mapped(found[column], lambda cell: cell or _COUNTS)
    for name in data.columns:
        if name not in used.values():
            found[columns.REPLY.free(str(name))] = _mapped_texts(data[name], scalar)
    return pd.DataFrame(found, data.index, copy=False)


def sorted_categories(column: pd.Series) -> pd.Series:
    """Return a column of categories with those sorted."""
    texts = column.cat.categories
    order = np.argsort(texts.to_numpy(object), kind="stable")
    codes = column.array.codes
    if not np.array_equal(order, np.arange(len(order))):
        rank = np.append(np.argsort(order), -1).astype(codes.dtype)
        codes = _at(rank, codes)
    kept = pd.Index(texts.to_numpy(object)[order], dtype="str")
    return pd.Series(pd.Categorical.from_codes(codes, kept), column.index, copy=False)


def _mapped(column: pd.Series, read: Callable[[Any], Any]) -> pd.Series:
    """Apply `read`, which returns texts, to each cell; to each different one if cells have a type.

    Cells of a type (`files.frames`) become categories.
    """
    if column.dtype == object or column.dtype == "str":
        values = column.tolist() if column.dtype == object else cells_of(column)
        once = functools.cache(read)  # of texts alone: 1 and true are equal, and no text is either
        found = [once(value) if type(value) is str else read(value) for value in values]
        return pd.Series(found, column.index, dtype=object)
    codes, every = numbered(column)
    values = [*map(read, pd.Index(every).tolist()), read(None)]  # the last one for the code -1
    into, texts = pd.factorize(np.array(values, dtype=object))
    if column.dtype != "category" or not np.array_equal(into, [*range(len(every)), -1]):
        codes = _at(into.astype(np.min_scalar_type(-max(1, len(texts)))), codes)
    kept = pd.Index(texts, dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, kept), column.index, copy=False)


def _at(values: np.ndarray, *codes: np.ndarray) -> np.ndarray:
    """Look up the value of each row by its codes, some rows at a time."""
    found = np.empty(len(codes[0]), values.dtype)
    for block in _blocks(len(found)):
        found[block] = values[tuple(code[block] for code in codes)]
    return found


def _mapped_texts(column: pd.Series, read: Callable[[Any], Any]) -> pd.Series:
    """Apply `read` to each cell, unless the cells are numbers or truth values."""
    return _mapped(column, read) if column.dtype in (object, "category", "str") else column


def _truths(one: pd.Series, other: pd.Series, read: Callable[[Any, Any], bool | None]) -> pd.Series:
    """Return what `read` says of two cells of each row: true, false, or None for neither."""
    a, of_one = numbered(one)
    b, of_other = numbered(other)
    said = {True: 1, False: 0, None: -1}
    every = [[said[read(x, y)] for y in (*of_other, None)] for x in (*of_one, None)]
    found = _at(np.array(every, np.int8), a, b)
    return pd.Series(pd.arrays.BooleanArray(found == 1, found < 0), one.index)


def _each(
    column: pd.Series, read: Callable[[str], Any], problems: Problems, empty: bool = False
) -> pd.Series:
    """Apply `read` to every different text of a column.

    A problem is reported for the first row with that text. empty: the cell may be empty.
    """
    values: dict[str | None, str | None] = {}
    codes, texts = numbered(column)
    for code, value in enumerate([*texts, None]):
        try:
            if value is not None:
                values[value] = read(value)
            elif not empty and (codes < 0).any():
                raise InputError(f"{column.name!r} is empty")
        except InputError as error:
            here = codes == (code if value is not None else -1)
            problems.add(column.index[[here.argmax()]].tolist()[0], str(error))
    found = _mapped(column, values.get)
    return found if column.dtype == "category" else found.astype("str")


def _cells(
    column: pd.Series, read: Callable[[Any, Any], Any], problems: Problems
) -> Sequence[Any] | pd.Series:
    """Return `read(value, row)` of each cell of a column, noting its problems."""
    if column.dtype == float:
        return column
    if column.dtype != "category":
        return problems.each(column.items(), read)
    codes, texts = numbered(column)
    values = []
    for code, text in enumerate([*texts, None]):
        try:
            values.append(read(text, None))
        except InputError:
            values.append(None)
            problems.each(((row, text) for row in column.index[codes == code].tolist()), read)
    return _at(np.array(values, dtype=object), codes)


def _text(value: Any) -> str | None:
    """Return a cell as text (a list as Python writes it), None if it is empty."""
    if isinstance(value, str):
        return alike(whole(value)) or None
    if isinstance(value, list | tuple):
        return str(list(value)) if value else None
    if isinstance(value, float):
        return cell_text(value) or None
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


def _finish(
    frame: pd.DataFrame,
    known: Mapping[str, Column],
    pack: packs.Pack | None,
    probes: Sequence[str] = (),
) -> pd.DataFrame:
    """Add the derived columns; give the table the order and types that all tables have.

    known: the columns that are not the data's. pack: defines what an answer means; None if nothing
    was asked about one. probes: the names of its questions without a pack, in their order.
    """
    if not len(frame):
        raise InputError("there are no rows to make a table of")
    if pack:
        probes = list(pack.probes)
        for name in frame["probe"].unique():
            _one_of("probe", name, probes)
        for column in ("measures", "when"):
            said = {name: getattr(probe, column) for name, probe in pack.probes.items()}
            frame[column] = _mapped(frame["probe"], said.get)
        if "answer" in frame:
            frame["says"] = _truths(
                frame["answer"],
                frame["when"],
                lambda answer, when: answer == when if answer in ("yes", "no") else None,
            )
    if "refused" not in frame and "kind" in frame:
        kind = frame["kind"].notna()
        frame["refused"] = frame["kind"].isin(("refusal", "filter")).astype("boolean").mask(~kind)
    if "reply_language" in frame:
        frame["in_language"] = in_language(frame["reply_language"], frame["lang"])
    extra = [c for c in frame.columns if c not in known]
    ours = {c: _typed(frame[c], column.kind) for c, column in known.items() if c in frame}
    ours["left_out"] = _filled(ours["left_out"])
    ours |= {name: _free(frame[name]) for name in extra}
    frame = pd.DataFrame(ours, frame.index, copy=False)
    # In the order of the pack, not alphabetical.
    for column, order in (("probe", probes), ("decode", DECODES)):
        if column in frame:
            found = [v for v in frame[column].unique() if v not in order and not pd.isna(v)]
            frame[column] = _ordered(frame[column], pd.Index([*order, *sorted(found)]))
    return frame


def _ordered(column: pd.Series, order: pd.Index) -> pd.Series | pd.Categorical:
    """Return a column as categories in this order; pandas needs eight bytes a row more for it."""
    if column.dtype != "category":
        return pd.Categorical(column, order)
    rank = np.append(order.get_indexer(column.cat.categories), -1)
    codes = _at(rank.astype(np.min_scalar_type(-len(order))), column.array.codes)
    return pd.Series(pd.Categorical.from_codes(codes, order), column.index, copy=False)


def _typed(column: pd.Series, kind: str) -> pd.Series:
    """Return a column in the type that is declared for it."""
    if kind == BOOLEAN:
        return column.astype("boolean")
    if kind == NUMBER:
        try:
            return pd.to_numeric(column.astype(object) if column.dtype == "category" else column)
        except (ValueError, TypeError) as error:
            raise InputError(f"the column {column.name!r} is not of numbers ({error})") from None
    if column.name == "sample":  # a file may hold anything as the number of a sample, a list too
        return column.map(scalar) if column.dtype == object else column
    read = _verbatim if kind == VERBATIM else _text
    found = _mapped(column, read)
    return found if column.dtype == "category" else found.astype("str")


def _filled(column: pd.Series) -> pd.Series:
    """Return the column `left_out`, in which no cell is empty."""
    return (
        _mapped(column, lambda why: why or "") if column.dtype == "category" else column.fillna("")
    )


def _free(column: pd.Series) -> pd.Series:
    """Return a column of the data, of values of one kind."""
    if column.dtype == object:
        found = pd.Series(external.one_kind([whole(v) for v in column]), column.index)
        return found.infer_objects()
    return _mapped_texts(column, whole)


def in_language(reply: pd.Series, lang: pd.Series) -> pd.Series:
    """Return whether each reply is in the language of its question; NA for `und` and `mixed`.

    A mixture (`kk-x-ru`) may be answered in both of its languages. Regions do not matter (pt for
    pt-BR). For Chinese the script does: a Simplified reply to a
    Traditional question is in another language, and the judge recognises texts that are in both.
    """
    return _truths(reply, lang, _alike)


def _alike(reply: Any, lang: Any) -> bool | None:
    if not isinstance(reply, str) or reply in ("und", "mixed"):
        return None
    return _bare(reply) in (_bare(lang), _bare(str(lang).partition("-x-")[2]))


def _bare(code: Any) -> Any:
    if not isinstance(code, str):
        return code
    code, *parts = code.replace("_", "-").lower().split("-")
    if code in ("zh", "zho"):
        hant = "hans" not in parts and {"hant", "tw", "hk", "mo"} & {*parts}
        return "zh-hant" if hant else "zh"
    try:
        return packs.language_code(code)  # `kaz` is `kk`
    except InputError:
        return code
