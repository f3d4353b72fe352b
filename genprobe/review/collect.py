"""Collect the answers of reviewers: `collect` reads their sheets, `resolve` turns them into labels.

The sheets are checked against the key file of `sample.export`. The answers become one table
(`COLUMNS`). The labels become judgments of the runs, like those of any other judge:
`judgments/reviewed-<question>.jsonl`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe import files
from genprobe.errors import InputError, RunError
from genprobe.files import sheets
from genprobe.files.rows import paths_of
from genprobe.limits import parsed
from genprobe.records import Judgment, digest, fits
from genprobe.resources import guides, packs
from genprobe.resources.guides import SHOWN
from genprobe.runs.run import Run
from genprobe.text.display import alike, clean

ADJUDICATOR = "adjudicator"
SETTLED = "adjudicated"  # the rule of a label that an adjudicator gave
VERSION = "1"  # of the rules that turn answers into labels
# The columns of the table of answers, which has one row per item, reviewer, question and reading.
# `label` is the judge's answer to the question, `group` the probe or domain, and `repeat` 1 for the
# second reading.
COLUMNS = (
    *("item", "reviewer", "question", "answer", "repeat", "run", "request", "model", "lang"),
    *("group", "label", "weight", "stratum", "comment"),
)
ONLY = "only "  # begins the stratum of a reply if only replies of one kind were sampled

Row = dict[str, Any]


def item_id(spec: str, request: str) -> str:
    """Return the id of a reply, which is the same in every export. spec: `Spec.hash`."""
    return f"i{digest([spec, request], 12)}"


def prints(cells: Iterable[str]) -> list[str]:
    return [sheets.fingerprint(cell) for cell in cells]


@dataclass(frozen=True)
class Problem:
    """A problem in a sheet of a reviewer.

    row: its number in a spreadsheet; None for the whole file. what: the problem in words. name: the
    name of the row in the export, if something is missing. missing: what is missing; many rows of a
    file that lack the same are reported in one line.
    """

    file: str
    row: int | None
    what: str
    name: str = ""
    missing: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, row {self.row}" if self.row else self.file
        return clean(f"{where}: {self.what}")


_FEW = 5  # more rows that lack the same are reported in one line


def told(problems: Sequence[Problem]) -> list[str]:
    """Write problems as lines, by file and row.

    If many rows of a file lack the same, there is one line with their number.
    """
    files = list(dict.fromkeys(problem.file for problem in problems))
    problems = sorted(problems, key=lambda p: (files.index(p.file), p.row or 0))
    many: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        if problem.missing:
            many.setdefault((problem.file, problem.missing), []).append(problem.name)
    lines: dict[str, None] = {}
    for problem in problems:
        line = str(problem)
        rows = many.get((problem.file, problem.missing), [])
        if len(rows) > _FEW:
            what = f"{problem.missing}: {len(rows)} rows, {rows[0]} to {rows[-1]}"
            line = clean(f"{problem.file}: {what}")
        lines[line] = None
    return list(lines)


@dataclass(frozen=True)
class Collected:
    """The result of `collect`.

    rows: the table (`COLUMNS`). problems: what is missing, malformed or changed. judged: run folder
    -> question -> number of labels now in its judgments. kept: number of earlier labels that were
    kept: those of an adjudicator, and those of other exports.
    """

    rows: list[Row]
    problems: list[Problem]
    judged: dict[str, dict[str, int]]
    kept: int = 0


def collect(
    paths: object, key: str | Path | None = None, out: str | Path | None = None
) -> Collected:
    """Read the reviewers' sheets, check them against the key, and write the table to `out`.

    paths: the sheets, one or several. key: the key file of the export; None for the one beside the
    sheets. out: the table to write, if any.

    Each correct row is used, whatever is wrong with others. A row whose texts were changed is not
    used, because its answer may belong to another text. The labels are also written as judgments of
    the runs, if these are found.

    An adjudicator's labels that are already in `out` or in the runs are kept, unless these sheets
    have an adjudicator's answer to the same question: to import a sheet again undoes nothing.

    Raises InputError if the key is missing or not a key, or if the table cannot be written.
    """
    given = paths_of(paths)
    key = _beside(given) if key is None else Path(key)
    known = _read_key(key)
    problems: list[Problem] = []
    came: dict[str, list[_Reading]] = {}
    for path in given:
        try:
            sheet = sheets.read(path, known["heads"].values())
        except InputError as error:
            problems.append(Problem(str(path), None, str(error).removeprefix(f"{path}: ")))
            continue
        for reading in _readings(str(path), sheet, known, problems):
            came.setdefault(reading.name, []).append(reading)
    rows = [*known["earlier"], *_rows(known, came, problems)]
    settled = _settled(out, rows)
    rows += settled
    if out is not None:
        files.write_rows(out, rows, COLUMNS)
    judged, kept = _judge(known, key, rows, problems)
    return Collected(rows, problems, judged, kept + len(settled))


def _settled(out: str | Path | None, rows: Sequence[Row]) -> list[Row]:
    """Return the adjudicator's rows of the old table that the new rows do not replace.

    Only rows about items and questions of the new rows are returned.
    """
    if out is None or not Path(out).is_file():
        return []
    try:
        before = read_table(out)
    except InputError:
        return []  # not a table of `collect`
    mine = {(row["item"], row["question"]) for row in rows}
    spoken = {(r["item"], r["question"]) for r in rows if r["reviewer"] == ADJUDICATOR}
    return [
        row
        for row in before
        if row["reviewer"] == ADJUDICATOR and (row["item"], row["question"]) in mine - spoken
    ]


def _beside(paths: Sequence[Path]) -> Path:
    """Find the key file: `out-key.json` for `out.csv` and `out-reviewer1.csv`.

    If there is none, and only one other key file is beside the sheets, it is that one.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
    bases = {path.with_name(re.sub(r"-reviewer\d+$", "", path.stem)) for path in paths}
    found = [key for base in sorted(bases) if (key := Path(f"{base}-key.json")).exists()]
    if not found:  # the sheets may have been renamed
        found = sorted({key for path in paths for key in path.parent.glob("*-key.json")})
    if len(found) != 1:
        what = f"{len(found)} keys lie" if found else "no key of the export (FILE-key.json) is"
        raise InputError(f"{what} beside the files; name it with --key")
    return found[0]


# What a key holds, and what it holds about each reply.
_KEY = {
    "questions": list[str],
    "heads": dict[str, str],
    "rows": dict[str, list[str]],
    "runs": list[dict[str, str]],
    "items": dict[str, dict[str, Any]],
    "earlier": list[dict[str, str | int | float | None]],
}
_ITEM = {
    **dict.fromkeys(("request", "model", "lang", "group", "stratum"), str),
    "run": int,
    "labels": dict[str, str | None],
    "weight": float,
    "shown": list[str],
}


def _read_key(path: Path) -> dict[str, Any]:
    try:
        key: dict[str, Any] = parsed(packs.read_text(path))
        lacking = next((name for name, kind in _KEY.items() if not fits(key[name], kind)), None)
        if lacking is None:
            lacking = next(_faults(key), None)
        if lacking is not None:
            raise ValueError(f"{lacking!r} is not as it was written")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: not a key of `genprobe review export` ({error!r})") from None
    return key


def _faults(key: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a key that do not fit the others."""
    if not key["heads"].keys() >= {"row", *SHOWN, *key["questions"], "comment"}:
        yield "heads"
    if any(len(row) != 2 or row[1] not in key["items"] for row in key["rows"].values()):
        yield "rows"
    if any(not run.keys() >= {"folder", "spec"} for run in key["runs"]):
        yield "runs"
    if any(not row.keys() >= set(COLUMNS) for row in key["earlier"]):
        yield "earlier"
    for name, item in key["items"].items():
        whole = all(part in item and fits(item[part], kind) for part, kind in _ITEM.items())
        if (
            not whole
            or len(item["shown"]) != len(SHOWN)
            or item["run"] not in range(len(key["runs"]))
            or not item["labels"].keys() >= set(key["questions"])
        ):
            yield name


@dataclass(frozen=True)
class _Reading:
    """A row of a sheet. answers: question -> answer; None if its problem has been reported."""

    name: str
    file: str
    row: int
    answers: dict[str, str | None]
    comment: str


def _readings(
    file: str, sheet: sheets.Sheet, key: Mapping[str, Any], problems: list[Problem]
) -> Iterator[_Reading]:
    """Check the rows of a sheet, and add their problems to `problems`."""

    def problem(row: int, what: str) -> None:
        problems.append(Problem(file, row, what))

    at = _columns(sheet, key, problem)
    lacking = [key["heads"][name] for name in ("row", *SHOWN) if name not in at]
    if lacking:
        problem(1, f"no column {lacking[0]!r}: rows cannot be checked without it, so none is used")
        return
    asked = [question for question in key["questions"] if question in at]
    known = changed_rows = 0
    for number, cells in sheet.rows:
        cell = {name: alike(cells[index]) for name, index in at.items()}
        name, given = cell["row"], [cell[q] for q in asked if cell[q]]
        lost = f"; {' / '.join(given)[:60]!r} is not counted" if given else ""
        if name not in key["rows"]:
            problem(number, f"there is no row {name[:40]!r}{lost}")
            continue
        was = key["items"][key["rows"][name][1]]["shown"]
        now = prints(cells[at[column]] for column in SHOWN)
        changed = [key["heads"][c] for c, a, b in zip(SHOWN, was, now, strict=True) if a != b]
        answers: dict[str, str | None] = {}
        known += 1
        if changed:
            changed_rows += 1
            problem(number, f"{name}: {' and '.join(map(repr, changed))} was changed{lost}")
            answers = dict.fromkeys(key["questions"])
        for question in asked:
            if cell[question] and not changed:
                answers[question] = guides.answer(question, cell[question])
                if answers[question] is None:
                    allowed = ", ".join(guides.load().offered(question))
                    text = cell[question][:40]
                    problem(number, f"{name}: {question} {text!r} must be one of {allowed}")
        yield _Reading(name, file, number, answers, cell.get("comment", ""))
    if known > _FEW and changed_rows == known:
        problem(1, "no row matches the key; is it the key of another export?")


def _columns(
    sheet: sheets.Sheet, key: Mapping[str, Any], problem: Callable[[int, str], None]
) -> dict[str, int]:
    """Find the columns of a sheet: name -> index. Reports missing, repeated and unknown ones."""
    names = {sheets.head_key(head): name for name, head in key["heads"].items()}
    at: dict[str, int] = {}
    for index, head in enumerate(sheet.heads):
        name = names.get(sheets.head_key(head))
        if name in at:
            problem(1, f"the column {head[:40]!r} occurs twice; the first is used")
        elif name is not None:
            at[name] = index
        elif filled := sum(1 for _, cells in sheet.rows if cells[index].strip()):
            problem(
                1, f"the column {head[:40]!r} is not part of the sheet: {filled} cells are ignored"
            )
    for question in key["questions"]:
        if question not in at:
            problem(1, f"no column {key['heads'][question]!r}: its answers are missing")
    return at


def _rows(
    key: Mapping[str, Any], came: Mapping[str, Sequence[_Reading]], problems: list[Problem]
) -> Iterator[Row]:
    """Make the rows of the table in the order of the key; report what is missing as problems."""
    reviewers = {key["rows"][name][0] for name in came}
    for reviewer in dict.fromkeys(row[0] for row in key["rows"].values()):
        if reviewer not in reviewers:
            problems.append(Problem(reviewer, None, "no row of this reviewer is here"))
    read: set[tuple[str, str, str]] = set()
    for name, (reviewer, item) in key["rows"].items():
        readings = came.get(name, ())
        if not readings and reviewer in reviewers:
            what = f"the row {name} is missing"
            problems.append(Problem(reviewer, None, what, name, "missing"))
        comments = dict.fromkeys(one.comment for one in readings if one.comment)
        for question in key["questions"] if readings else ():
            answer = _answer(question, readings, problems)
            if answer is not None:
                about, reading = key["items"][item], (item, reviewer, question)
                yield {
                    "item": item,
                    "reviewer": reviewer,
                    "question": question,
                    "answer": answer,
                    "repeat": int(reading in read),
                    "run": key["runs"][about["run"]]["folder"],
                    **{c: about[c] for c in ("request", "model", "lang", "group")},
                    "label": about["labels"][question],
                    "weight": about["weight"],
                    "stratum": about["stratum"],
                    "comment": " / ".join(comments),
                }
                read.add(reading)


def _answer(question: str, readings: Sequence[_Reading], problems: list[Problem]) -> str | None:
    """Return the answer of a row, which may occur in several sheets; None if none or several."""
    first = readings[0]
    found = {one.answers[question]: one for one in readings if one.answers.get(question)}
    if len(found) > 1:
        places = " and ".join(f"{a} ({one.file}, row {one.row})" for a, one in found.items())
        problems.append(Problem(first.file, first.row, f"{first.name}: {question} is {places}"))
        return None
    if not found and not any(question in one.answers for one in readings):
        what = f"no answer ({question})"
        told_as = f"{first.name}: {what}"
        problems.append(Problem(first.file, first.row, told_as, first.name, what))
    return next(iter(found), None)


def _judge(
    key: Mapping[str, Any], path: Path, rows: Sequence[Row], problems: list[Problem]
) -> tuple[dict[str, dict[str, int]], int]:
    """Write the reviewers' labels as judgments of the runs.

    path: the key file, as runs may be beside it. Returns folder -> question -> number of labels,
    and how many of the labels are earlier ones that were kept.
    """
    kept = 0
    asked_of = {about["request"] for about in key["items"].values()}
    labels = [one for one in resolve(rows) if one.label is not None]
    written: dict[str, dict[str, int]] = {}
    for entry in key["runs"]:
        folder = next(
            (f for f in (Path(entry["folder"]), path.parent / entry["folder"]) if f.is_dir()), None
        )
        try:
            if folder is None:
                raise RunError("the run is not here")
            run = Run.open(folder)
            if run.spec.hash != entry["spec"]:
                raise RunError("this is not the run that was exported")
            mine = [one for one in labels if one.run == entry["folder"]]
            asked = [q for q in key["questions"] if any(one.question == q for one in mine)]
            counts = written[entry["folder"]] = {}
            for question in asked:
                counts[question], stay = _write(run, question, mine, asked_of)
                kept += stay
        except RunError as error:
            what = f"{error}; its judgments are not written, but the table is"
            problems.append(Problem(entry["folder"], None, what))
    return written, kept


def _write(
    run: Run, question: str, labels: Iterable[Reviewed], asked_of: Collection[str]
) -> tuple[int, int]:
    """Write the labels of a question to a run.

    asked_of: requests in this export. Returns how many labels the run has now, and how many of them
    are earlier ones that were kept: an adjudicator's that these labels do not replace, and those of
    replies that are not in `asked_of`.
    """
    judge = f"reviewed-{question}"
    found = {
        one.request: Judgment(
            request=one.request,
            judge=judge,
            label=str(one.label),
            score=one.votes[str(one.label)] / sum(one.votes.values()),
            rule=one.rule,
            evidence="",
            fields={"votes": dict(one.votes), "weight": one.weight},
        )
        for one in labels
        if one.question == question
    }
    stay = {
        old.request: old
        for old in (run.judgments(judge) if judge in run.judges() else ())
        if old.request not in asked_of
        or (old.rule == SETTLED and getattr(found.get(old.request), "rule", "") != SETTLED)
    }
    found |= stay
    judgments = [found[request.id] for request in run.requests() if request.id in found]
    # `reads` is empty, so that replies that nobody reviewed do not count as unjudged.
    signature = f"{VERSION}-{digest([judgment.to_json() for judgment in judgments], 12)}"
    return run.write_judgments(judge, signature, judgments, reads=()), len(stay)


# --- the table


@dataclass(frozen=True)
class Reviewed:
    """The answers of all reviewers to a question about one item.

    rule: how the label was found: `adjudicated`, `single` (one reviewer), `agreed`, `majority`
    (more than half), or `open` (no label). votes: answer -> number of reviewers; if an adjudicator
    answered, only this answer. differ: whether reviewers other than the adjudicator gave different
    answers.
    """

    item: str
    question: str
    run: str
    request: str
    lang: str
    label: str | None
    rule: str
    votes: dict[str, int]
    differ: bool
    weight: float


def read_table(path: str | Path) -> list[Row]:
    """Read the rows of a table that `collect` wrote. Raises InputError for a malformed row."""
    rows = []
    for number, row in files.numbered_rows(path):
        try:
            numbers = {"repeat": int(row["repeat"]), "weight": float(row["weight"])}
            rows.append({c: "" if row[c] is None else str(row[c]) for c in COLUMNS} | numbers)
        except KeyError as error:
            raise InputError(
                f"{path}: no column {error}; it is not a table of `genprobe review import`"
            ) from None
        except (ValueError, TypeError, OverflowError):
            raise InputError(f"{path}, row {number}: repeat or weight is not a number") from None
    return rows


def resolve(rows: Iterable[Row]) -> list[Reviewed]:
    """Return one label per item and question: the adjudicator's, else the majority's, else none.

    Only first readings count. Repeats serve to measure how far reviewers agree with themselves.
    """
    items: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not row["repeat"]:
            items.setdefault((row["item"], row["question"]), []).append(row)
    found = []
    for (item, question), said in items.items():
        votes = Counter(row["answer"] for row in said if row["reviewer"] != ADJUDICATOR)
        last = Counter(row["answer"] for row in said if row["reviewer"] == ADJUDICATOR)
        counted = last or votes
        answer, most = counted.most_common(1)[0]
        total = counted.total()
        if last:
            rule = SETTLED
        elif len(votes) == 1:
            rule = "single" if total == 1 else "agreed"
        else:
            rule = "majority" if 2 * most > total else "open"
        one = said[0]
        found.append(
            Reviewed(
                item=item,
                question=question,
                **{name: one[name] for name in ("run", "request", "lang")},
                label=None if rule == "open" else answer,
                rule=rule,
                votes=dict(counted),
                differ=len(votes) > 1,
                weight=one["weight"],
            )
        )
    return found
