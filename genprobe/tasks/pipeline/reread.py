"""Check that the judgments of a run are about its replies as they are now."""

from __future__ import annotations

import inspect
import math
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import files
from genprobe.errors import InputError
from genprobe.files.rows import Row, Rows, cells_of
from genprobe.judges import Item, Judge
from genprobe.outcomes import counted
from genprobe.records import Judgment, Request
from genprobe.resources import registry
from genprobe.runs import card
from genprobe.runs.run import OTHERS, Run
from genprobe.tasks.pipeline import Note, quiet
from genprobe.tasks.pipeline.judge import items_of, judgments_of
from genprobe.text import many, nfkc

_FEW = 20_000  # requests of a run whose outcomes are joined again, in seconds
_FIRST = 5  # replies that are named for each kind of move
SHOWN = 20  # most differences of one judge that are listed; the rest are counted
# Judges whose evidence is always words of the reply, in the spelling of the reply.
_QUOTING = ("yesno", "refusal")


class Reread(NamedTuple):
    """What is wrong with the judgments, and judge -> why its replies were not read again."""

    problems: list[str]
    left: dict[str, str]


def reread(run: Run, every: bool = False) -> Reread:
    """Read the replies of a run again with the judges that have read them.

    Where the judge is another version now, only its evidence is looked up in the replies. every:
    read again also with a classifier, which may be slow.
    """
    found = Reread([], {})
    for name, signature in run.judges().items():
        if name not in registry.names("judges") or name.startswith(OTHERS):
            continue
        why, judge = _again(name, signature, every)
        if judge is not None:
            lines = _differences(run, judge)
        else:
            found.left[name] = why
            lines = _unsupported(run, name) if name in _QUOTING else iter(())
        found.problems.extend(_first(f"judgments/{name}.jsonl", lines))
    found.problems.extend(_first(card.OUTCOMES, _other_outcomes(run)))
    return found


def rejudge(
    run: Any,
    judges: str | Sequence[str] = (),
    *,
    out: str | Path | None = None,
    note: Note = quiet,
) -> Rows:
    """Read the replies of a run again and tell which labels move; nothing in its folder changes.

    `judge` writes what this finds, by the same readers. run: the run or its folder. judges: names;
    empty means those that have judged it and ask no model. out: a file for the rows: JSONL, CSV or
    Parquet by suffix. note: called with a line for each judge and kind of move. Returns a row for
    each label that moves: judge, request, statement, lang, probe, was, now, rule, evidence. Raises
    InputError for a judge that has not judged the run, or asks a model.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    noted = run.judges()
    names = registry.listed(judges, "judges")
    for name in names:
        if name not in noted:
            raise registry.unknown(f"judge of {run.folder}", name, list(noted))
    rows: list[Row] = []
    for name in names or noted:
        module = registry.module("judges", name) if name in registry.names("judges") else None
        asks = module is None or "engine" in inspect.signature(module.make).parameters
        if asks or name.startswith(OTHERS):
            if names:
                raise InputError(f"{name}: these labels are a model's or people's, and stay")
            note(f"{name}: not read again: the labels are a model's or people's")
            continue
        judge: Judge = module.make()  # type: ignore[union-attr]
        found = list(_moved(run, judge))
        rows += found
        same = noted[name] == judge.signature
        who = judge.signature if same else f"{noted[name]} -> {judge.signature}"
        replies = many(sum(1 for _ in run.judgments(name)), "label")
        note(f"{name}: {len(found)} of {replies} move ({who})")
        moves: dict[tuple[str, str], list[str]] = {}
        for row in found:
            where = f"{row['lang']} {row['probe']} {row['statement']} ({row['request']})"
            moves.setdefault((row["was"], row["now"]), []).append(where)
        for (was, now), places in sorted(moves.items(), key=lambda one: -len(one[1])):
            more = f", and {len(places) - _FIRST} more" if len(places) > _FIRST else ""
            note(f"  {was} -> {now}: {len(places)}: {', '.join(places[:_FIRST])}{more}")
    if rows:
        which = " ".join(f"--judge {name}" for name in dict.fromkeys(row["judge"] for row in rows))
        note(f"`genprobe judge {run.folder} {which}` writes them")
    if out is not None:
        files.write_rows(out, rows)
    return Rows(rows, str(run.folder))


def _moved(run: Run, judge: Judge) -> Iterator[Row]:
    """Yield a row for each reply that the judge labels in another way than is stored."""
    stored = run.judgments(judge.name)
    one = next(stored, None)
    about: list[Request] = []

    def items() -> Iterator[tuple[Request, Item]]:
        for request, item in items_of(run):
            if request.decode in judge.reads:
                about.append(request)
            yield request, item

    for again in judgments_of(judge, items()):
        while about[0].id != again.request:
            about.pop(0)
        asked = about.pop(0)
        was = one.label if one is not None and one.request == asked.id else None
        one = next(stored, None) if was is not None else one
        if was != again.label:
            yield {
                "judge": judge.name,
                "request": asked.id,
                "statement": asked.statement,
                "lang": asked.lang,
                "probe": asked.probe,
                "was": was or "no label",
                "now": again.label,
                "rule": again.rule,
                "evidence": again.evidence,
            }


def _other_outcomes(run: Run) -> Iterator[str]:
    """Yield a line for each cell of the table in the folder that the records do not give.

    Of a large run nothing is compared: `verify --recompute` does it.
    """
    if not (run.folder / card.OUTCOMES).exists() or run.count("requests") > _FEW:
        return
    stored, _ = counted.kept(run)
    if stored is None:  # it is not counted, but made again
        return
    made = counted.compact_of(run)
    if list(stored) != list(made) or len(stored) != len(made):
        yield "has other rows or columns than the records give; delete it"
        return
    for name in made:
        cells = zip(cells_of(stored[name]), cells_of(made[name]), strict=True)
        for row, (mine, theirs) in enumerate(cells, 1):
            if not close(mine, theirs):
                yield f"row {row}: {name} is {mine}, and the records give {theirs}; delete it"


def _again(name: str, signature: str, every: bool) -> tuple[str, Judge | None]:
    """Return the judge with this signature, or why there is none."""
    make = registry.module("judges", name).make
    takes = inspect.signature(make).parameters
    if "engine" in takes:
        return "it asks a model", None
    if "classifier" in takes and not every:
        return "it has a classifier; --recompute reads them again", None
    try:
        judge: Judge = make()
    except InputError as error:  # the model under test, asked again
        return str(error), None
    if judge.signature != signature:
        return f"they were read by {signature}, and this is {judge.signature}", None
    return "", judge


def _first(name: str, lines: Iterator[str]) -> Iterator[str]:
    count = 0
    for count, line in enumerate(lines, 1):
        if count <= SHOWN:
            yield f"{name}: {line}"
    if count > SHOWN:
        yield f"{name}: {count - SHOWN} more like this"


def _differences(run: Run, judge: Judge) -> Iterator[str]:
    """Yield a line for each reply that the judge reads in another way than is stored."""
    stored = run.judgments(judge.name)
    one, met, total = next(stored, None), 0, 0
    for again in judgments_of(judge, items_of(run)):
        total += 1
        if one is None or one.request != again.request:
            continue  # the order and what is missing are told by `Run.verify`, or below
        met += 1
        if not _same(one, again):
            stored_as = f"request {one.request} is stored as {_said(one)}"
            yield f"{stored_as}, and read again as {_said(again)}"
        one = next(stored, None)
    if one is not None:
        left = f"{many(total - met, 'reply')} could not be compared"
        yield f"from request {one.request} on not in the order of the plan; {left}; judge again"


def _same(one: Judgment, again: Judgment) -> bool:
    """Tell whether two judgments agree; numbers may differ in their last digits."""
    fields = ({"score": j.score, **j.fields} for j in (one, again))
    mine, theirs = ({name: v for name, v in f.items() if v is not None} for f in fields)
    words = (one.label, one.rule, one.evidence) == (again.label, again.rule, again.evidence)
    return words and close(mine, theirs)


def close(a: Any, b: Any, apart: float = 1e-4) -> bool:
    """Tell whether two values from JSON are equal, fractions up to a distance of `apart`."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key], apart) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(*both, apart) for both in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float | int):
        return math.isclose(a, b, abs_tol=apart)
    return bool(a == b)


def _said(one: Judgment) -> str:
    words = f" ({one.evidence[:40]!r})" if one.evidence else ""
    return f"{one.label[:40]}, {one.rule[:40]}{words}"


def _unsupported(run: Run, name: str) -> Iterator[str]:
    """Yield a line for each judgment whose evidence does not stand in the reply."""
    stored = run.judgments(name)
    one = next(stored, None)
    for request, item in items_of(run):
        if one is not None and one.request == request.id:
            if one.evidence and _letters(one.evidence) not in _text(item):
                yield f"request {one.request}: {one.evidence[:40]!r} does not stand in the reply"
            one = next(stored, None)
    if one is not None:
        yield f"from request {one.request} on not in the order of the plan; judge again"


def _text(item: Item) -> str:
    return _letters(f"{item.response}\n{item.reasoning or ''}")


def _letters(text: str) -> str:
    """Return the letters, signs and digits of a text, so that spaces and case do not count."""
    folded = nfkc(text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")
