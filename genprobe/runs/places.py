"""Know where the records of many requests lie, in 16 bytes a request."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterable

_HEX = re.compile("[0-9a-f]{16}")  # an id as `records.request_id` makes it


def number(request: str) -> int:
    """Return the id of a request as 64 bits: the number that it spells, else one of its hash."""
    if _HEX.fullmatch(request):
        return int(request, 16)
    return int.from_bytes(
        hashlib.blake2b(request.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


class Places:
    """Maps ids of requests to integers, such as places in a file; the first of several counts."""

    def __init__(self, places: Iterable[tuple[str | int, int]]) -> None:
        """Read the pairs (id or its `number`, integer below 2^63), once."""
        import numpy as np

        ids, found = array("Q"), array("q")
        for request, place in places:
            ids.append(number(request) if isinstance(request, str) else request)
            found.append(place)
        every = np.frombuffer(ids, np.uint64) if ids else np.zeros(0, np.uint64)
        order = np.argsort(every, kind="stable")
        self._ids = every[order]
        self._places = (np.frombuffer(found, np.int64) if found else np.zeros(0, np.int64))[order]
        again = self._ids[1:] == self._ids[:-1]
        # Of an id that was there before; in their order.
        self.again: list[int] = sorted(self._places[1:][again].tolist())

    def __len__(self) -> int:
        return len(self._ids)

    def get(self, request: str) -> int | None:
        """Return the integer of an id, None if there is none."""
        own = number(request)
        at = int(self._ids.searchsorted(self._ids.dtype.type(own)))
        if at < len(self._ids) and int(self._ids[at]) == own:
            return int(self._places[at])
        return None
