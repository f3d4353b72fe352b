"""The steps by which a data set is made, as functions from rows to rows: `genprobe.dataset_…`.

Each takes a table (`files.rows.rows_of`), tells `note` what it did, and returns the rows; with
`out` they are also written to that file, `-` for standard output.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from genprobe.curation import collect as collecting
from genprobe.curation import exchange, tables
from genprobe.curation import extract as extracting
from genprobe.curation import fill as filling
from genprobe.curation import group as grouping
from genprobe.curation import pair as pairing
from genprobe.curation import validate as validating
from genprobe.errors import Caution, InputError
from genprobe.files.rows import Rows, any_of, paths_of, rows_of, sources_of
from genprobe.resources.registry import unknown
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text import many

Out = str | Path | None
F = TypeVar("F", bound=Callable[..., Any])


def _takes(settings: Any) -> Callable[[F], F]:
    """Let `help` and completion show the fields of a dataclass as keywords of a function."""

    def wrap(function: F) -> F:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        more = [p.replace(kind=kind) for p in inspect.signature(settings).parameters.values()]
        function.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        return function

    return wrap


def _kept(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], out: Out, dashes: Sequence[str] = ()
) -> Rows:
    if out is not None:
        tables.write(out, rows, columns, dashes)
    return Rows(list(rows))


def extract(data: Any, *, rules: str = "", out: Out = None, note: Note = quiet) -> Rows:
    """Extract identity and attribute from sentences (`curation.extract.run`).

    data: rows with `sentence`, or with `answer`, several sentences. rules: a file of
    prompts/extraction for all rows; if empty, those of each row's `lang`, else of English. Returns
    a row for each sentence, with identity, attribute, rule, confidence, or why there are none.
    """
    rows, names = extracting.run(rows_of(data, "data"), rules)
    found = _kept(rows, names, out, names)
    why = Counter(row["excluded"] or "" for row in rows)
    if not rules and tables.column(names, extracting.LANG) is None:
        note("no column gives the language: the rules of en were used")
    note(f"{many(len(rows), 'row')}: {why.pop('', 0):,} extracted")
    for reason, count in why.most_common():
        note(f"left out, {reason}: {count:,}")
    return found


@_takes(grouping.Grouping)
def group(
    data: Any,
    *,
    sweep: float | Sequence[float] = (),
    truth: str = "",
    out: Out = None,
    note: Note = quiet,
    **how: Any,
) -> Rows:
    """Group near-duplicates; add to each row its group, its medoid and what contradicts it.

    how: threshold, linkage, column, within, polarity, model, lang (`curation.group.Grouping`).
    sweep: thresholds; returns the groups, silhouette and purity of each instead. truth: then a
    column of a known grouping.
    """
    settings = _settings(grouping.Grouping, how)
    if thresholds := [sweep] if isinstance(sweep, int | float) else sweep:
        if not isinstance(thresholds, list | tuple) or {*map(type, thresholds)} - {int, float}:
            raise InputError("sweep: give a threshold, or a list of thresholds")
        table = grouping.sweep(rows_of(data, "data"), settings, thresholds, truth, note)
        return _kept(table, list(table[0]), out)
    rows, names = grouping.run(rows_of(data, "data"), settings, note)
    found = _kept(rows, names, out)
    groups = {row["group"] for row in rows if row["group_size"]}
    shared = len({row["group"] for row in rows if row["group_size"] > 1})
    against = sum(row["medoid"] and row["contradicts"] != "" for row in rows)
    grouped = many(sum(row["group_size"] > 0 for row in rows), "row")
    note(f"{grouped} in {many(len(groups), 'group')}, {shared:,} of two or more")
    if against:
        note(f"groups that another group contradicts: {against:,}")
    return found


@_takes(pairing.Pairing)
def pair(data: Any, *, out: Out = None, note: Note = quiet, **how: Any) -> Rows:
    """Make pairs from the groups and attributes of `extract` and `group`, for `logprob`.

    how: opposite, template, against, lang (`curation.pair.Pairing`).
    """
    rows, names = pairing.run(rows_of(data, "data"), _settings(pairing.Pairing, how), note)
    found = _kept(rows, names, out)
    note(many(len(rows), "pair"))
    return found


@_takes(filling.Filling)
def fill(
    data: Any, *, only_check: bool = False, out: Out = None, note: Note = quiet, **how: Any
) -> Rows:
    """Fill templates with groups, in the right grammatical form.

    how: lexicon, lang, limit, seed (`curation.fill.Filling`). only_check: return the faults of the
    templates instead: level (error, warning), where, message. note: also called with each sentence
    that a person should check.
    """
    settings = _settings(filling.Filling, how)
    if only_check:
        faults = [one._asdict() for one in filling.check(rows_of(data, "data"), settings)]
        return _kept(faults, tables.Finding._fields, out)
    rows, names, findings = filling.run(rows_of(data, "data"), settings)
    found = _kept(rows, names, out)
    for one in findings:
        note(f"to be checked: {one.where}: {one.message}")
    note(many(len(rows), "row"))
    return found


def collect(
    pack: str,
    answers: Any = (),
    *,
    lang: str = "en",
    out: Out = None,
    html: Out = None,
    delete: str | None = None,
    study: Out = None,
    seed: int | None = None,
    ask: Callable[[str], str] | None = None,
    say: Callable[[str], Any] = quiet,
    note: Note = quiet,
) -> Rows:
    """Collect the answers of respondents, make a form for them, or ask one.

    pack: of prompts/elicitation. answers: files that the form saved, one or several. lang: of the
    pack. html: write the form to this file instead. delete: delete from `out` the answers of the
    respondent with this code. study: for rubia, a folder with the study's own texts. ask: asks one
    respondent: a function that shows a prompt and returns the line typed, as `input`; `out` gets
    the answers. say: shows a text to the respondent. seed: by which tasks are drawn. Returns the
    answers that were collected.
    """
    if delete:
        count, left = collecting.delete(_needed(out, "delete", "out"), delete)
        found = f"{many(count, 'answer')} deleted" if count else "no answer with this code"
        note(f"{out}: {found}; the code is remembered in {collecting.DELETED}")
        for line in left or ["copies elsewhere, and what others were sent, are not known here"]:
            note(line)
        return Rows([])
    asked = collecting.load(pack, lang)
    if study is not None:
        asked, lacks = collecting.published(asked, study)
        if lacks:
            note(f"not in {study}, so in genprobe's words: {', '.join(lacks)}")
    if html is not None:
        collecting.form(asked, html)
        said = "" if lang == "en" else f" --lang {lang}"
        back = f"genprobe dataset collect {pack} FILE…{said}"
        note(f"{html}: a form; collect the files that it saves with `{back}`")
        return Rows([])
    files = any_of(answers)
    if files:
        rows, names = collecting.merge(files, asked, out)
        people = len({row["respondent"] for row in rows})
        kept = _kept(rows, names, out)
        note(f"{out or 'rows'}: {many(len(rows), 'answer')} of {many(people, 'respondent')}")
        return kept
    if ask is None:
        raise InputError("collect: give answers, html for a form, or ask to ask a respondent")
    count = collecting.interview(asked, _needed(out, "ask", "out"), ask, say, seed)
    note(f"{out}: {many(count, 'answer')} added")
    return Rows([])


def _needed(given: Out, what: str, name: str) -> str | Path:
    if given is None:
        raise InputError(f"{what} needs a file: give {name}")
    return given


def validate_import(paths: Any, *, key: str | Path, out: Out = None, note: Note = quiet) -> Rows:
    """Read the annotators' sheets into a table of votes: item, rater, question, label.

    paths: the sheets, one or several. key: that of the export. note: called with each answer that
    is missing or invalid, as a `genprobe.errors.Caution`; the others are used.
    """
    votes, problems = validating.collect(paths_of(paths), key)
    names = dict.fromkeys(name for vote in votes for name in vote)
    found = _kept(votes, list(names) or validating.VOTES, out)
    for line in problems:
        note(Caution(line))
    note(f"{many(len(votes), 'vote')}, {many(len(problems), 'problem')}")
    return found


def convert(
    sources: Any,
    out: str | Path,
    *,
    to: str | None = None,
    from_: str | None = None,
    name: str = "aqbileq",
    pack: str = "",
    lang: str = "en",
    votes: Out = None,
    source: Any = None,
    keep_about: bool = False,
    note: Note = quiet,
) -> Rows:
    """Convert rows or answers for the tool that you use, or back: Label Studio, forms, …

    sources: a table or, from a tool, its exports, one or several; `survey` to `xlsform` writes the
    form itself. to, `from_`: the tool, one of the two. name: of the questions for annotators. pack,
    lang: for forms, the elicitation pack. votes: a file for the votes of an export. source: the
    table that was converted, from which what stayed here is joined again. keep_about: also send
    what respondents said of themselves. Returns the rows that a tool's export gives.
    """
    tool = to or from_
    if tool is None or (to and from_):
        raise InputError("convert: give one of --to TOOL and --from TOOL")
    if tool not in exchange.TOOLS:
        raise unknown("tool", tool, exchange.TOOLS)
    if tool in exchange.FORMS and not pack:
        raise InputError(f"{tool} needs an elicitation pack; name it with --pack")
    given = sources_of(sources)
    if tool in exchange.ITEMS and to:
        for path in exchange.write(given[0], tool, out, name, keep_about):
            note(f"for {tool}: {path}")
        return Rows([])
    if tool in exchange.ITEMS:
        known = None if source is None else rows_of(source, "source")
        rows, found, left = exchange.read(paths_of(sources), tool, known, name)
        if rows:
            tables.write(out, rows, list(dict.fromkeys(n for row in rows for n in row)))
        if votes is not None:
            tables.write(votes, found, exchange.VOTES)
        note(f"{many(len(rows), 'row')}, {many(len(found), 'vote')}")
        if not rows:
            what = "no rows; name the table with --source, or the items"
            note(Caution(f"{out} is not written: {what}"))
        if left:
            note(f"left out, as the respondent's answers were deleted: {left:,} of rows and votes")
        return Rows(list(rows))
    asked = collecting.load(pack, lang)
    if from_:
        answers, notes = exchange.read_answers(paths_of(sources), tool, asked)
        answers = collecting.undeleted(answers, [*given, Path(out)])
        kept = _kept(answers, asked.columns, out)
        for line in notes:
            note(line)
        note(f"{out}: {many(len(answers), 'answer')}")
        return kept
    if str(given[0]) == "survey":
        exchange.form(asked, out)
        note(f"{out}: a form for KoboToolbox or ODK")
    else:
        people = exchange.write_answers(given[0], tool, asked, out)
        note(f"{out}: {many(people, 'respondent')}")
    return Rows([])


def _settings(kind: Any, given: Mapping[str, Any]) -> Any:
    """Make the settings of a step. Raises InputError for one that it does not have."""
    for name in given:
        if name not in kind.__annotations__:
            raise unknown("argument", name, sorted(kind.__annotations__))
    return kind(**given)
