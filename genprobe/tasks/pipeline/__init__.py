"""One run, step by step: plan the requests, open an engine, ask it, judge what came back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Note = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # what, how many done, of how many


def quiet(*_: Any) -> None:
    """Take a note or progress that nobody wants."""
