"""Engines turn requests into responses. One file each; `registry.module("engines", name)`.

An engine module has `open(model: str, options: Options) -> Engine`, which may be slow and
raises EngineError (one line, with the cure) when the model cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from genprobe.records import Failure, Request, Response


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. temperature 0 is greedy; the seed is in each request."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 64


@dataclass(frozen=True)
class Options:
    """What an engine may be told. None leaves the choice to the engine."""

    batch_tokens: int | None = None  # transformers: padded tokens a batch may hold
    dtype: str | None = None
    device: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Identity:
    """What ran, for the run's spec and signature."""

    model: str
    revision: str  # hub commit, or a hash of the files in a folder
    engine: str
    engine_version: str
    dtype: str
    chat_template: str  # hash of the template, or "none"


class Engine(Protocol):
    identity: Identity

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | Failure]:
        """Answer every request exactly once, in any order, as each finishes."""
        ...

    def close(self) -> None: ...
