"""The limits on what genprobe takes in, and the one way in which it parses what others wrote.

What others send may be made to fill the memory or the time of this machine. Each limit is far above
what honest data need, each refusal names its limit, and each can be changed by an environment
variable, such as `GENPROBE_LIMIT_BODY=64000000`.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import sys
import tomllib
from collections import Counter
from typing import Any, NamedTuple

from genprobe.errors import InputError


class Limit(NamedTuple):
    """A limit: its name, its usual value, what it counts, and the variable that changes it."""

    name: str
    usual: int
    what: str
    variable: str


LIMITS = {
    name: Limit(name, usual, what, f"GENPROBE_LIMIT_{name.upper()}")
    for name, usual, what in (
        ("body", 32_000_000, "bytes of one answer of a server, unpacked"),
        ("flight", 256_000_000, "bytes of memory for answers, or pages of Parquet, read at a time"),
        ("headers", 100, "header lines of an answer of a server, of at most 8,190 bytes"),
        ("reply", 2_000_000, "characters of one reply with its thought"),
        ("values", 1_000_000, "values in one JSON text: an answer, a line or a file"),
        ("nesting", 100, "levels of nesting in one JSON text"),
        ("line", 32_000_000, "bytes of a line of a file"),
        ("field", 16_777_216, "characters of a field of a CSV file"),
        ("text", 32_000_000, "bytes of a file that is read as a whole"),
        ("rows", 2_000_000, "rows of a table that is held in memory"),
        ("unpacked", 256_000_000, "bytes of a workbook, archive or Parquet file, unpacked"),
        ("members", 10_000, "files in a workbook or archive, or columns or groups of Parquet"),
        ("part", 8_000_000, "bytes of a part of a workbook, or of Parquet, that holds no cells"),
        ("cells", 1_000_000, "cells of a workbook"),
        ("cell", 32_767, "characters of a cell of a workbook"),
    )
}


def limit(name: str) -> int:
    """Return the value of a limit. Raises InputError if its variable is not a whole number."""
    one = LIMITS[name]
    given = os.environ.get(one.variable)
    if not given:
        return one.usual
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 19):
        raise InputError(f"{one.variable} is {given[:40]!r}; give a whole number above 0")
    return int(given)


def exceeded(where: object, name: str) -> InputError:
    """Make the error that says that `where` is beyond a limit, and how to raise the limit."""
    return InputError(f"{where}: {_beyond(name)}")


def _beyond(name: str) -> str:
    return (
        f"more than {limit(name):,} {LIMITS[name].what}; if you trust it, set "
        f"{LIMITS[name].variable} to a larger number"
    )


_PART_OF_KEY = r"""(?:[\w"'-]++[ \t]*+\.[ \t]*+)"""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class TooMuch(ValueError):
    """JSON, or another text, that is beyond a limit, which the message names."""


def parsed(text: str | bytes | bytearray, unique: bool = False) -> Any:
    """Parse JSON that others wrote.

    text: bytes are UTF-8, with or without a mark; halves of surrogate pairs are accepted. unique:
    no name may occur twice in an object. Raises ValueError if it is not JSON, TooMuch if it is
    beyond one of the limits `values` and `nesting`, or Python's own on the digits of a number.
    """
    if not isinstance(text, str):
        text = text.decode("utf-8-sig", "surrogatepass")
    opened = _need_few(text)
    try:
        found = (_UNIQUE if unique else _DECODER).decode(text)
    except RecursionError:
        raise TooMuch(_beyond("nesting")) from None
    except ValueError as error:
        if not str(error).startswith("Exceeds the limit"):  # Python's, of digits
            raise
        raise TooMuch(
            f"more than {sys.get_int_max_str_digits():,} digits of a number; if you trust it, set "
            "PYTHONINTMAXSTRDIGITS to a larger number"
        ) from None
    if opened > 1 and opened > (most := limit("nesting")) and _deeper(found, most):
        raise TooMuch(_beyond("nesting"))
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {name!r} occurs twice in one object")
    return row


_DECODER, _UNIQUE = json.JSONDecoder(), json.JSONDecoder(object_pairs_hook=_unique)


def parsed_toml(text: str) -> dict[str, Any]:
    """Parse TOML that others wrote. Raises ValueError if it is not TOML, TooMuch as `parsed`."""
    _need_few_signs(text)
    most = limit("nesting")
    # For a key of n parts, tomllib needs n x n steps.
    if re.search(rf"""(?<![\w"'-]){_PART_OF_KEY}{{{most}}}""", text):
        raise TooMuch(_beyond("nesting"))
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise TooMuch(_beyond("nesting")) from None
    if _deeper(found, most):
        raise TooMuch(_beyond("nesting"))
    return found


def parsed_list(text: str) -> Any:
    """Parse a value as JSON or Python writes it, such as `['a', "b"]`.

    Raises ValueError if it is neither, or beyond a limit.
    """
    with contextlib.suppress(ValueError):
        return parsed(text)
    _need_few_signs(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, RecursionError, MemoryError):
        raise ValueError("not a list, as JSON or Python writes it") from None


def _need_few_signs(text: str) -> None:
    """Raise TooMuch if a text that is no JSON could hold more than `values` values."""
    if sum(map(text.count, "{[(,=\n")) > limit("values"):
        raise TooMuch(_beyond("values"))


def _need_few(text: str) -> int:
    """Return the number of brackets that open in a text. Raises TooMuch beyond the limit `values`.

    Each value but the first has a bracket or comma before it, and takes up to 200 bytes.
    """
    opened = text.count("{") + text.count("[")
    if opened + text.count(",") > (most := limit("values")):
        text = _STRING.sub("", text)  # what stands in a string is no value
        opened = text.count("{") + text.count("[")
        if opened + text.count(",") > most:
            raise TooMuch(_beyond("values"))
    return opened


def _deeper(value: Any, most: int) -> bool:
    """Tell whether lists and objects are nested deeper than `most`."""
    level = [value]
    for _ in range(most):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return False
        level = inner
    return any(isinstance(one, dict | list) for one in level)
