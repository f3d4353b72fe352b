"""Engines turn requests into responses, and texts into log-probabilities. Each is a module here.

An engine module has `PACKAGES`, the packages on whose versions a reply depends, and one or both of
these functions:
  open(model: str, options: Options) -> Engine          answers requests
  open_scorer(model: str, options: Options) -> Scorer   scores texts
Both may be slow, and raise EngineError if the model cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from genprobe.limits import exceeded, limit
from genprobe.records import Failure, LogProb, Request, Response


@dataclass(frozen=True)
class Sampling:
    """How replies are sampled. Temperature 0 is greedy decoding. Each request has its own seed."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 64


@dataclass(frozen=True)
class Thinking:
    """Whether a model should think before it answers, and how long.

    mode: `on`, `off`, `low`, `medium`, `high`, or `default`, which leaves it to the model, whose
    behaviour is detected and recorded.
    tokens: the maximum for a thought, in addition to `Sampling.max_tokens` for the reply; None
    means `THINK_TOKENS` if the model thinks, else 0.
    """

    mode: str = "default"
    tokens: int | None = None


# Default maximum of tokens for a thought. To answer a yes/no question, models of 2025-26 need some
# hundreds of tokens, and small models thousands.
THINK_TOKENS = 4096


@dataclass(frozen=True)
class Options:
    """Settings of an engine. None means that the engine chooses."""

    dtype: str | None = None
    device: str | None = None
    revision: str | None = None
    batch_tokens: int | None = None  # transformers: most padded tokens in a batch
    base_url: str | None = None  # address of a server, such as http://localhost:8000/v1
    concurrency: int | None = None  # most requests in flight to a server
    thinking: Thinking = Thinking()
    template_args: Mapping[str, Any] = field(default_factory=dict)  # arguments of the chat template
    # For a server: further headers (`$NAME` in a value is read from the environment, counts as a
    # secret and is never stored), further parameters of each request, and the environment variable
    # with the key.
    headers: Mapping[str, str] = field(default_factory=dict)
    request_args: Mapping[str, Any] = field(default_factory=dict)
    key_env: str = ""
    http_key: bool = False  # a key may go to another machine over http
    name: str = ""  # the model as the user wrote it, which may be its name on a server
    # Further arguments of the engine; it refuses unknown ones.
    more: Mapping[str, Any] = field(default_factory=dict)
    # Called with notes to the user, one line each, such as "the server ignores seeds".
    note: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Identity:
    """The model and engine that ran, for the run's spec and signature."""

    model: str
    revision: str  # hub commit, or a hash of the files in a folder
    engine: str
    engine_version: str
    dtype: str
    chat_template: str  # hash of the template, or "none"
    # The arguments in `Options.more` that may change a reply.
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str = ""  # branch or tag that was asked for, or folder of a training step
    server: str = ""  # address of the server that answered, without credentials
    thinking: str = ""  # the requested mode and tokens of a thought; "" for none
    thinking_put: str = ""  # how that was set, such as `enable_thinking=false`
    thinking_seen: str = ""  # what was observed: `opens`, `closed`, `thinks`, `none`; "" unknown


class Engine(Protocol):
    """An engine: it answers requests.

    It may have `prepare(requests, sampling)`, which is called before anything is written, to find
    out what it needs to know about the model or server; afterwards `identity` is complete.
    """

    identity: Identity

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request exactly once, in any order, as each finishes.

        A request with decode `logprob` is answered by a LogProb, others by a Response; one with
        decode `choice` only by one of its options. A request that cannot be answered is a Failure.
        Raises EngineError if the engine does not support a request.
        """
        ...

    def close(self) -> None: ...


class Scorer(Protocol):
    identity: Identity
    passes: tuple[str, ...]  # the passes of `engines.scoring` that it can compute
    first: str  # token added before the first one of a text, such as "bos <s>"
    unknown: int | None  # id of the unknown token; None if the model has none, or it is unknown

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        """Score every request exactly once, in any order. `sampling` is not used.

        A request whose texts cannot be scored is a Failure. Raises EngineError for another decode
        or pass.
        """
        ...

    def close(self) -> None: ...


def short_enough(response: Response) -> Response | Failure:
    """Return a response, or a Failure instead of one that is beyond the limit `reply`."""
    if len(response.text) + len(response.reasoning or "") <= limit("reply"):
        return response
    return Failure(response.request, "too-large", str(exceeded("the reply", "reply")), 1)
