"""Score a run again from its records, and compare with the figures and tables that name it.

What differs was edited, or was made of other records. The figures are computed as `genprobe score`
computes them, so a fault of its own is not found here: for that, the package's tests compute every
measure a second time, in another way (`tests/oracle`).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe import files, metrics
from genprobe.analysis import second
from genprobe.analysis.band import Readings
from genprobe.analysis.league import league
from genprobe.analysis.score import of_review, plain_rows, sign_people, with_people
from genprobe.analysis.sources import signer
from genprobe.errors import InputError
from genprobe.files import door
from genprobe.metrics.rates import recognised_declarations
from genprobe.outcomes import counted, facts, table
from genprobe.records import Score, canonical, digest
from genprobe.runs import card
from genprobe.runs.run import Run
from genprobe.tasks.pipeline.reread import close
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

APART = 1e-6  # how far apart two numbers may be, as machines round otherwise
_DEFINED = re.compile(r"metric:([^/|]+/\d+-[\w-]+)")
_REGIONS = re.compile(r"\+regions:([^|]*)")
_SEAL = re.compile(r"\|seal:[^|]*")


@dataclasses.dataclass(frozen=True)
class Again:
    """What came of scoring a run again.

    differences: one line each. figures: how many figures of `scores.json` were computed again.
    left: metric -> why its figures were not.
    """

    differences: list[str]
    figures: int
    left: dict[str, str]


def score_again(
    run: Run,
    review: Path | None = None,
    people: Path | None = None,
    outcomes: pd.DataFrame | None = None,
) -> Again:
    """Compare `scores.json` and the tables of outcomes of a run with what its records give now.

    The replies are taken as their stored judgments say (`reread` reads them again). Nothing is
    written. review, people: the tables with which it was scored; figures that need one which is
    not given are left out. outcomes: the table of a run whose texts are not there, to be counted
    instead of its records.

    Raises RunError if the run has no scores, InputError for a table that it was not scored with.
    """
    stored, left = run.scores(), dict[str, str]()
    _need_own(stored, "review", review)
    _need_own(stored, "people", people)
    kept = []
    for score in stored:
        why = _left_out(score, review is not None, people is not None)
        if not why and outcomes is not None and "+second-" in score.signature:
            why = "it rests on a second reader's verdicts, which are not here"
        if why:
            left[score.metric] = why
        else:
            kept.append(score)
    there = outcomes
    outcomes, scores = _scored(run, stored, kept, review, people, there)
    again = {_key(score): score for score in scores}
    lines = []
    for score in kept:
        found = again.pop(_key(score), None)
        for line in _differ(score, found) if found else ("the records give no such figure",):
            lines.append(f"{_name(score)}: {line}")
    names = {score.metric for score in kept}
    more = [s for s in again.values() if s.metric in names and s.metric not in left]
    lines += [f"{_name(score)}: the records give it, and it is not stored" for score in more]
    tables = _of_outcomes(run, outcomes) if there is None else ()
    return Again([*lines, *tables], len(kept), left)


def _left_out(score: Score, review: bool, people: bool) -> str:
    """Say why a stored score is not computed again; "" if it is."""
    if "+review-" in score.signature:
        return "" if review else "it needs the table of the review; give it with --reviewed FILE"
    if "+people-" in score.signature and not people:
        return "it needs the table of people's answers; give it with --people FILE"
    if score.metric not in metrics.catalogue():
        return "" if "of" in score.by else "this version of genprobe has no such measure"
    defined, now = _DEFINED.match(score.signature), metrics.find(score.metric)
    own = now.id.partition("+")[0]
    if defined is None or defined[1].partition("/")[0] != now.name or defined[1] == own:
        return ""
    return f"it was stored as {defined[1]}, and the definition is {own} now; score the run again"


def _need_own(stored: Iterable[Score], what: str, given: Path | None) -> None:
    """Raise InputError unless some signature names this table, by its digest."""
    if given is None:
        return
    own = f"+{what}-{digest(door.content(given).hex(), 8)}"
    if not any(own in score.signature for score in stored):
        raise InputError(
            f"{given}: no figure of this run was computed with this table; give the one that the "
            "run was scored with"
        )


def _scored(
    run: Run,
    stored: Sequence[Score],
    kept: Sequence[Score],
    review: Path | None,
    people: Path | None,
    there: pd.DataFrame | None,
) -> tuple[pd.DataFrame, list[Score]]:
    """Return the table of outcomes, and the figures of `kept`, split as they are.

    How the run was scored is in the cells and signatures of `stored`.
    """
    signed = "\n".join(score.signature for score in stored)
    regions = sorted({r for found in _REGIONS.findall(signed) for r in found.split(",")})
    named = list(dict.fromkeys(name for score in stored for name in score.by))
    declared = "+declared" in signed
    subset = ("+declared" if declared else "") + (f"+regions:{','.join(regions)}" * bool(regions))

    scorers = _scorers(run, {str(s.by["scorer"]) for s in stored if "scorer" in s.by})

    def of(view: Run) -> pd.DataFrame:
        found = table.outcomes(view, scorers) if there is None else there
        if people is not None and view is run:
            found = with_people(run.folder, found, people)
        return facts.beside(found, named, regions)

    chosen = outcomes = of(run)
    beside = second.beside(run, of) if there is None else None
    if declared:
        chosen = recognised_declarations(outcomes)[0]
        beside = beside and beside.changed(lambda found: recognised_declarations(found)[0])
    sign = signer(run.folder, run, subset, {})
    if people is not None:
        sign = sign_people(sign, people)
    split: dict[tuple[str, ...], list[str]] = {}
    leagues: dict[tuple[str, ...], None] = {}
    by: list[str] = []
    for score in kept:
        if "+review-" in score.signature:
            by = by or [name for name in score.by if name != "rate"]  # measured rates come first
        elif score.metric not in metrics.catalogue():
            leagues[str(score.by["of"]), *(name for name in score.by if name != "of")] = None
        else:
            added = metrics.find(score.metric).adds
            split.setdefault(tuple(n for n in score.by if n not in added), []).append(score.metric)
    scores: list[Score] = []
    for columns, names in split.items():
        scores += metrics.score(chosen, names, columns, sign)
    if review is not None:
        scores += of_review(run.folder, run, chosen, review, by, sign)
    if "+band-" in signed:
        scores = Readings(chosen, run.judges().get("yesno")).beside(scores)
    for metric, *cells, column in leagues:
        for part, _ in league(chosen, metric, column, cells, sign):
            scores += part
    return outcomes, beside.scores(scores) if beside else scores


def _scorers(run: Run, names: Collection[str]) -> list[str]:
    """Return the scorers of the figures, in the order of the table of outcomes, if it is there."""
    tables = sorted(run.folder.glob("outcomes.*"))[:1] if names else []
    rows = itertools.chain.from_iterable(map(_rows, tables))
    order = dict.fromkeys(str(row.get("scorer")) for _, row in rows)
    return [*(name for name in order if name in names), *sorted({*names} - {*order})]


def _key(score: Score) -> tuple[str, str]:
    return score.metric, canonical(score.by)


def _name(score: Score) -> str:
    cell = ", ".join(f"{name} {value}" for name, value in score.by.items()) or "all"
    return f"{score.metric} ({cell})"


def _differ(score: Score, found: Score) -> Iterator[str]:
    """Yield a line for each field that differs; the seals of signatures are checked elsewhere."""
    for field in dataclasses.fields(Score):
        mine, theirs = (getattr(one, field.name) for one in (score, found))
        if field.name == "signature":
            parts = (_SEAL.sub("", text).split("|") for text in (mine, theirs))
            lost = sorted(set.symmetric_difference(*map(set, parts)))
            if lost:
                yield f"the stored signature differs in {', '.join(lost)[:200]}"
        elif field.name != "by" and not close(mine, theirs, APART):
            yield f"the stored {field.name} is {_told(mine)}, and the records give {_told(theirs)}"


def _told(value: object) -> str:
    return str(dict(value)) if isinstance(value, dict) else str(value)


def _of_outcomes(run: Run, outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each table of outcomes in the folder that the records do not give."""
    with tempfile.TemporaryDirectory(prefix="genprobe-verify-") as name:
        for stored in sorted(run.folder.glob("outcomes.*")):
            again = Path(name) / stored.name
            kept = outcomes
            if stored.name == card.OUTCOMES:
                kept = counted.compact_of(run)
            elif "scorer" in outcomes:
                order = dict.fromkeys(str(row.get("scorer")) for _, row in _rows(stored))
                kept = table.outcomes(run, list(order))
            files.write_rows(again, plain_rows(kept))
            yield from differing_rows(stored, again)


def differing_rows(stored: Path, again: Path) -> Iterator[str]:
    """Yield a line if a table differs from the one made again, in the columns that both have."""
    wrong: list[str] = []
    rows = itertools.zip_longest(*map(_rows, (stored, again)), fillvalue=(0, {}))
    try:
        for (at, row), (_, mine) in rows:
            if not row or not mine:
                yield f"{stored.name}: {'fewer' if mine else 'more'} rows than the records give"
                break
            names = (n for n in row if n in mine and n != "seal" and not _alike(row[n], mine[n]))
            if name := next(names, ""):
                said = (str(one[name])[:60] for one in (row, mine))
                wrong.append(f"row {at}: {name} is {', and the records give '.join(said)}")
    except InputError as error:
        yield str(error).removeprefix(f"{stored.parent}{os.sep}")
    if wrong:
        more = f"; and {many(len(wrong) - 1, 'row')} more" if len(wrong) > 1 else ""
        yield f"{stored.name}: {wrong[0]}{more}"


def _rows(path: Path) -> Iterator[tuple[int, files.Row]]:
    yield from files.numbered_rows(path, streamed=True)


def _alike(one: object, other: object) -> bool:
    """Tell whether two cells are equal; those of CSV are texts, and an empty one is none."""
    if one in ("", None) and other in ("", None):
        return True
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            return close(float(one), float(other), APART)
        except ValueError:
            one, other = (_SEAL.sub("", text) for text in (one, other))
    return close(one, other, APART)
