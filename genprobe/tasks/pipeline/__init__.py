"""The steps of a run: plan the requests, open an engine, ask it, judge the replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Note = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # what, how many done, of how many


def quiet(*_: Any) -> None:
    """Ignore a message or progress: the default for `note` and `progress`."""
