"""Engines turn requests into responses, and texts into log-probabilities. One file each.

An engine module has `PACKAGES`, the packages whose versions a reply depends on, and one of, or
both:
  open(model: str, options: Options) -> Engine          answers requests
  open_scorer(model: str, options: Options) -> Scorer   scores texts
Both may be slow, and raise EngineError (one line, with the cure) when the model cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from genprobe.records import Failure, LogProb, Request, Response


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. temperature 0 is greedy; the seed is in each request."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 64


MODES = ("default", "on", "off", "low", "medium", "high")


@dataclass(frozen=True)
class Thinking:
    """Whether and how long a model is to think before it answers.

    mode: of `MODES`; `default` leaves it to the model, which is found out and said. tokens: of a
    thought at most, beside `Sampling.max_tokens` of the reply behind it; None: `THINK_TOKENS` where
    the model thinks, else 0.
    """

    mode: str = "default"
    tokens: int | None = None


# Room for a thought where nobody said how much. Thoughts about a yes/no question take models of
# 2025-26 some hundreds of tokens, those of small ones thousands.
THINK_TOKENS = 4096


@dataclass(frozen=True)
class Options:
    """What an engine may be told. None leaves the choice to the engine."""

    dtype: str | None = None
    device: str | None = None
    revision: str | None = None
    batch_tokens: int | None = None  # transformers: padded tokens a batch may hold
    base_url: str | None = None  # of a server
    concurrency: int | None = None  # most requests in flight to a server
    thinking: Thinking = Thinking()
    template_args: Mapping[str, Any] = field(default_factory=dict)  # of the chat template
    # To a server: further headers, of which `$NAME` in a value is read from the environment and
    # never kept; further parameters of each request; the variable that holds the key.
    headers: Mapping[str, str] = field(default_factory=dict)
    request_args: Mapping[str, Any] = field(default_factory=dict)
    key_env: str = ""
    name: str = ""  # the model as the user wrote it, where that may be a server's name for it
    # What else an engine takes, by its own names; it refuses what it does not know.
    more: Mapping[str, Any] = field(default_factory=dict)
    # For a person, one line, such as "the server ignores seeds".
    note: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Identity:
    """What ran, for the run's spec and signature."""

    model: str
    revision: str  # hub commit, or a hash of the files in a folder
    engine: str
    engine_version: str
    dtype: str
    chat_template: str  # hash of the template, or "none"
    # Of `Options.more`, what may change a reply.
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str = ""  # branch or tag that was asked for, or folder of a training step
    server: str = ""  # address of the server that answered, without credentials
    thinking: str = ""  # what was asked: a mode and the tokens of a thought; "" for nothing
    thinking_put: str = ""  # how the model was told, such as `enable_thinking=false`
    thinking_seen: str = ""  # what was found: `opens`, `closed`, `thinks`, `none`; "" not looked


class Engine(Protocol):
    """What answers requests.

    An engine may have `prepare(requests, sampling)`, called before anything is written: it finds
    out what it needs to know, and `identity` is whole afterwards.
    """

    identity: Identity

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request exactly once, in any order, as each finishes.

        A request of decode `logprob` is answered by a LogProb, others by a Response; one of
        decode `choice` by nothing but one of its options. EngineError where the engine cannot do
        what a request wants; a request that cannot be answered is a Failure.
        """
        ...

    def close(self) -> None: ...


class Scorer(Protocol):
    identity: Identity
    passes: tuple[str, ...]  # what it can compute, of those in `engines.scoring`
    first: str  # what stands before a first token, such as "bos <s>"
    unknown: int | None  # id of the unknown token; None where the model has none, or it is not told

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        """Score every request exactly once, in any order. `sampling` is not used.

        A request whose texts cannot be scored is a Failure; EngineError for one of another decode
        or pass.
        """
        ...

    def close(self) -> None: ...
