"""Read tables of values scored elsewhere: pairs (`pro`, `anti`) and choices (`chosen`).

    item, model, pro, anti         higher is preferred, unless the values are perplexities
    label, chosen, condition, …    choices; or the columns of BBQ's own results

Other columns are kept, to group by: domain, task_type, lang, scorer, …
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from genprobe.datasets import choices
from genprobe.errors import InputError
from genprobe.files.cells import EXACT, Problems, cell_text
from genprobe.outcomes.columns import MISSING
from genprobe.text import whole
from genprobe.text.display import alike

if TYPE_CHECKING:
    import pandas as pd

VALUES = ("pro", "anti", "unrelated")
# Other columns of such tables that a measure reads.
COLUMNS = ("item", "domain", "subdomain", "task_type", "target", "label", "chosen", "condition")
_LOGS = ("loglik", "ppl", "pll", "ppll", "mpll")  # scorers with values of at most 0
_NUMBERS = ("russian", "people", "above_unrelated")  # further numeric columns that a measure reads
# Further columns of choices that a measure reads, as in the outcomes of a run.
_OF_CHOICES = (
    *("p_target", "p_counter", "p_unknown", "log_ratio", "uncertainty"),
    *("place", "options_listed"),
)
# Columns of choices: our name <- the names that other tables use.
_CHOICES = {
    "chosen": ("chosen", "pred_label"),
    "label": ("label",),
    "target": ("target", "target_loc"),
    "unknown": ("unknown",),
    "condition": ("condition", "context_condition"),
    "polarity": ("polarity", "question_polarity"),
}
_OPTIONS = 3  # number of options in BBQ and PBBQ


def is_pairs(columns: Collection[str]) -> bool:
    """Tell whether a table with these columns holds pairs."""
    return {"pro", "anti"} <= set(columns) and "answer" not in columns


def is_choices(columns: Collection[str]) -> bool:
    """Tell whether a table with these columns holds choices."""
    there = set(columns)
    return "label" in there and bool(there & set(_CHOICES["chosen"])) and "answer" not in there


def pairs(data: pd.DataFrame, perplexity: bool = False) -> pd.DataFrame:
    """Return the pairs of a file; an empty value is missing and counted as an exclusion.

    perplexity: lower is preferred; the values are stored negated, as everywhere in genprobe. Raises
    InputError, with the row (its label), for a value that is not a number or not a perplexity.
    """
    frame = data.copy()
    problems = Problems()
    for column in (*VALUES, *_NUMBERS):
        if column in frame:
            turned = perplexity and column in VALUES

            def read(cell: Any, at: Any, column: str = column, turned: bool = turned) -> float:
                value = number(column, cell, at)
                return _negated(value, column, at) if turned else value

            read_all = problems.each(frame[column].items(), read)
            values = [math.nan if value is None else value for value in read_all]
            if column in VALUES and "scorer" in frame and not turned:
                _below_zero(frame["scorer"], values, column, problems)
            frame[column] = values
    problems.tell()
    return _plain(frame, (*VALUES, *_NUMBERS))


def _below_zero(
    scorers: pd.Series, values: Sequence[float], column: str, problems: Problems
) -> None:
    """Note the values above 0 of a scorer whose values are log-probabilities."""
    for (at, scorer), value in zip(scorers.items(), values, strict=True):
        if str(scorer).strip() in _LOGS and value > 0:
            problems.add(
                at,
                f"{column} is {value:g}, but by the scorer {scorer!r} it is a log-probability, "
                "which is never above 0; give --perplexity if lower is preferred, or rename the "
                "scorer",
            )


def number(column: str, cell: Any, row: Any) -> float:
    """Return a cell as a number, NaN if it is empty.

    Raises InputError, which names the row, for a text that is not a number.
    """
    if isinstance(cell, float):
        return cell
    text = cell_text(cell)
    try:
        return float(text) if text else math.nan
    except ValueError:
        cure = "; `genprobe logprob` scores sentences" if column in VALUES else ""
        raise InputError(
            f"row {row}: {column} is {text[:40]!r}, which is no number{cure}"
        ) from None


_TRUTH = {"true": True, "yes": True, "1": True, "1.0": True}
_TRUTH |= {"false": False, "no": False, "0": False, "0.0": False}
TRUTHS = ("conflict", "refused", "in_language", "thought_tested")  # columns of yes and no


def truth(column: str, cell: Any, row: Any) -> bool | None:
    """Return a cell as true or false, None if it is empty. Raises InputError for another text."""
    text = "" if str(cell) in ("None", "nan", "<NA>") else alike(str(cell)).lower()
    if text and text not in _TRUTH:
        raise InputError(f"row {row}: {column} is {text[:40]!r}, neither true nor false")
    return _TRUTH.get(text)


def _negated(value: float, column: str, row: Any) -> float:
    if value <= 0:
        raise InputError(
            f"row {row}: {column} is {value:g}, and a perplexity is positive; "
            "leave --perplexity out if higher is preferred"
        )
    return -value


def choices_chosen(data: pd.DataFrame) -> pd.DataFrame:
    """Return the choices of a file: `choices.outcome` without the probabilities.

    chosen, label, target, unknown: numbers of the three options, from 0; an empty choice is
    missing. Without `unknown`, BBQ's columns `ans0_info`, … give it. Raises InputError, with the
    row, for unusable values.
    """
    names = {
        ours: next((name for name in known if name in data), None)
        for ours, known in _CHOICES.items()
    }
    rows = []
    problems = Problems()
    for at, row in zip(data.index, data.to_dict("records"), strict=True):
        with problems.at():
            cells = {ours: row[name] if name else None for ours, name in names.items()}
            found = {
                name: _option(cells[name], name, at)
                for name in ("chosen", "label", "target", "unknown")
            }
            if found["unknown"] is None:
                info = [cell_text(row.get(f"ans{n}_info")).lower() for n in range(_OPTIONS)]
                found["unknown"] = info.index("unknown") if info.count("unknown") == 1 else None
            known = {
                "condition": choices.one_of(
                    cells["condition"], choices.CONDITIONS, "condition", f"row {at}"
                ),
                "polarity": choices.one_of(
                    cells["polarity"], choices.POLARITIES, "polarity", f"row {at}"
                ),
            }
            found["counter"] = choices.counter(found["target"], found["unknown"], _OPTIONS)
            rows.append(
                {name: math.nan if n is None else float(n) for name, n in found.items()}
                | known
                | {"left_out": _why(row) if found["chosen"] is None else ""}
            )
    problems.tell()
    import pandas as pd

    ours = pd.DataFrame(rows, index=data.index)
    for column in _OF_CHOICES:
        if column in data:
            ours[column] = [number(column, cell, at) for at, cell in data[column].items()]
    for column in TRUTHS:
        if column in data:
            said = problems.each(data[column].items(), functools.partial(truth, column))
            ours[column] = pd.Series(said, data.index, dtype="boolean")
    problems.tell()
    used = {name for name in names.values() if name} | set(ours.columns)
    frame = pd.concat([ours, data[[c for c in data.columns if c not in used]]], axis=1)
    return _plain(frame, tuple(ours.columns))


def _why(row: Mapping[Any, Any]) -> str:
    """Return why a row has no value: as it says itself, else `missing`."""
    return cell_text(row.get("left_out")) or MISSING


def with_people(outcomes: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
    """Add to choices the share of people who agree with the stereotype.

    The column `people` gets the share, `people_of` the stereotype that people were asked about.

    data: one row per stereotype, with `people` (0 to 1), or the counts `yes` and `no`; it is joined
    by all of its other columns that the choices also have, such as `pair` or `category`. Raises
    InputError if there is no such column, a row occurs twice, or a share is invalid.
    """
    ours = [c for c in data.columns if c not in ("people", "yes", "no") and c in outcomes]
    there = ", ".join(map(str, data.columns))
    if not ours:
        raise InputError(
            f"the table of people's answers and the choices have no column in common: {there}"
        )
    shares = []
    for at, row in zip(data.index, data.to_dict("records"), strict=True):
        given = [number(name, row.get(name), at) for name in ("people", "yes", "no")]
        share = given[1] / (given[1] + given[2]) if given[1] + given[2] > 0 else given[0]
        if not 0 <= share <= 1:
            raise InputError(f"row {at}: give 'people', from 0 to 1, or the counts 'yes' and 'no'")
        shares.append(share)
    keys = data[ours].map(_name)
    if (twice := keys.duplicated()).any():
        raise InputError(f"row {twice.idxmax()}: people's answers are given twice")
    index = dict(zip(keys.itertuples(index=False, name=None), shares, strict=True))
    rows = list(outcomes[ours].map(_name).itertuples(index=False, name=None))
    return outcomes.assign(
        people=[index.get(row, math.nan) for row in rows], people_of=[" ".join(row) for row in rows]
    )


def _name(cell: Any) -> str:
    """Return a cell in the form by which two tables are joined."""
    return alike(cell_text(cell))


def _option(cell: Any, column: str, row: Any) -> int | None:
    value = number(column, cell, row)
    if math.isnan(value):
        return None
    if value not in range(_OPTIONS):
        raise InputError(f"row {row}: {column} is {value:g}; give 0, 1 or 2")
    return int(value)


def _plain(frame: pd.DataFrame, numbers: Collection[str]) -> pd.DataFrame:
    """Return a table whose cells scores can be split by: an empty one is missing, a list is JSON.

    numbers: columns that are left as they are.
    """
    import pandas as pd

    if not len(frame):
        raise InputError("there are no rows to make a table of")
    for column in frame.columns:
        if column not in numbers:
            cells = one_kind([_cell(value) for value in frame[column].tolist()])
            frame[column] = pd.Series(cells, frame.index).infer_objects()
    return frame


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return alike(whole(value)) or None
    return whole(cell_text(value)) if isinstance(value, list | dict) else value


def one_kind(cells: list[Any]) -> list[Any]:
    """Return cells that scores can be split by, all of one type, so that each is one group.

    The number 1 and the text "1" become equal; true and 1, which are equal in Python, stay
    different. Cells that are all numbers stay numbers, but for numbers of which a float holds no
    other than their neighbours: those are names.
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    names = int in kinds and any(type(cell) is int and abs(cell) > EXACT for cell in cells)
    if not names and not (kinds & {bool, str} and kinds & {int, float, bool} and len(kinds) > 1):
        return cells

    def text(cell: Any) -> Any:
        if isinstance(cell, bool):
            return str(cell).lower()
        if isinstance(cell, float) and not math.isfinite(cell):
            return None if math.isnan(cell) else str(cell)
        number = isinstance(cell, float) and cell.is_integer()
        return str(int(cell) if number else cell) if isinstance(cell, int | float) else cell

    return [text(cell) for cell in cells]
