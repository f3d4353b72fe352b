"""The limits on what genprobe takes in: files, bodies of servers, tables.

What others send may be made to fill the memory or the time of this machine. Each limit is far above
what honest data need, each refusal names its limit, and each can be changed by an environment
variable, such as `GENPROBE_LIMIT_BODY=64000000`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from genprobe.errors import InputError


class Limit(NamedTuple):
    """A limit: its name, its usual value, and what it counts."""

    name: str
    usual: int
    what: str


LIMITS = {
    limit.name: limit
    for limit in (
        Limit("body", 32_000_000, "bytes of one answer of a server, unpacked"),
        Limit("flight", 256_000_000, "bytes of memory for all answers that are read at a time"),
        Limit("values", 1_000_000, "values in one answer of a server"),
        Limit("nesting", 100, "levels of nesting in one answer of a server"),
        Limit("headers", 100, "header lines of an answer of a server, of at most 8,190 bytes"),
        Limit("line", 256_000_000, "bytes of a line of a file"),
        Limit("field", 16_777_216, "characters of a field of a CSV file"),
        Limit("text", 256_000_000, "bytes of a file that is read as a whole"),
        Limit("unpacked", 256_000_000, "bytes of a workbook or archive, unpacked"),
        Limit("members", 2_000, "files in a workbook or archive"),
        Limit("cells", 5_000_000, "cells of a workbook"),
        Limit("digits", 4_300, "digits of a number"),
    )
}


def limit(name: str) -> int:
    """Return the value of a limit. Raises InputError if its variable is not a whole number."""
    variable = f"GENPROBE_LIMIT_{name.upper()}"
    given = os.environ.get(variable, "").strip()
    if not given:
        return LIMITS[name].usual
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 19):
        raise InputError(f"{variable} is {given[:40]!r}; give a whole number above 0")
    return int(given)


def exceeded(where: object, name: str) -> InputError:
    """Make the error that says that `where` is beyond a limit, and how to raise the limit."""
    return InputError(
        f"{where}: more than {limit(name):,} {LIMITS[name].what}; if you trust it, set "
        f"GENPROBE_LIMIT_{name.upper()} to a larger number"
    )
