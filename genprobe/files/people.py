"""What tables hold of the people who filled them, and how it stays at home.

`respondent` holds the code of whoever gave an answer; ids and histories hold it as well. The
columns `about_…` hold what she said about herself, `rater` who judged a row.
"""

from __future__ import annotations

import contextvars
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = dict[str, Any]

# Whether runs hold what respondents said about themselves.
_keep: contextvars.ContextVar[bool] = contextvars.ContextVar("keep_about", default=False)
_CODE = re.compile(r"(?!r\d+$).+", re.DOTALL)  # of a respondent; r1, r2, … stand in for codes
# A code that `collect` gave, which stands for nothing else wherever it stands.
_GIVEN = re.compile(r"[0-9a-z]{4}(-[0-9a-z]{4}){2}|[0-9a-f]{12}")


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value).strip()


def keep_about(keep: bool = True) -> None:
    """Allow runs to hold what respondents said about themselves, and their codes."""
    _keep.set(keep)


def is_private(name: str) -> bool:
    """Tell whether a column holds what a respondent said about herself."""
    return name.startswith("about_")


def names_somebody(row: Mapping[str, Any]) -> bool:
    """Tell whether a row says who a person is, or what she said of herself."""
    if _CODE.fullmatch(_text(row.get("respondent"))) or _text(row.get("rater")):
        return True
    return any(is_private(str(name)) and _text(value) for name, value in row.items())


def respondents(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Give each code of a respondent a number, r1, r2, …, in the order of the rows."""
    codes = dict.fromkeys(_text(row.get("respondent")) for row in rows)
    codes.pop("", None)
    return {code: f"r{number}" for number, code in enumerate(codes, 1)}


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Replace codes of respondents in a value of a cell.

    names: what stands in for each code. A code of another kind than `collect` gives may be any
    word, so that it is replaced only where it is all of a text, or begins an id (`CODE-1`).
    """
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    if not isinstance(value, str):
        return value
    for code, name in names.items():
        if code in value:
            own = re.escape(code)
            where = own if _GIVEN.fullmatch(code) else rf"(?<![\w-]){own}(?=-\d)|\A{own}\Z"
            value = re.sub(where, name.replace("\\", r"\\"), value)
    return value


def at_home(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield numbered rows that will be asked about, without what they hold of respondents.

    The columns `respondent` and `about_…` are left out, and codes in other columns become r1, r2,
    …, unless `keep_about`.
    """
    numbers: dict[str, str] = {}
    for at, row in rows:
        code = _text(row.get("respondent"))
        if _keep.get() or not any(name == "respondent" or is_private(name) for name in row):
            yield at, row
            continue
        kept = {n: v for n, v in row.items() if n != "respondent" and not is_private(n)}
        if _CODE.fullmatch(code):
            number = numbers.setdefault(code, f"r{len(numbers) + 1}")
            kept = {name: renamed(value, {code: number}) for name, value in kept.items()}
        yield at, kept
