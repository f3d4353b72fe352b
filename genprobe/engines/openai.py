"""Any OpenAI-compatible server (vLLM, Ollama, a hosted one) over HTTP, with --base-url.

A key is read from the environment and used only in the headers of requests. `_asking` sends the
requests, and `_served_scores` scores texts.

Arguments (`Options.more`): api (chat or completions) and three time limits in seconds:
connect_timeout, read_timeout (between two bytes), total_timeout (of one request with all attempts).
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from genprobe.engines import Identity, Options, Scorer
from genprobe.engines._asking import OpenAIEngine
from genprobe.engines._http import Times
from genprobe.engines._served_scores import ServedScorer
from genprobe.engines._server import CHOICES, Server, answers_to, identity_of, longest
from genprobe.engines.scoring import _texts
from genprobe.errors import EngineError, need_models
from genprobe.records import Request, digest

PACKAGES = ()  # the HTTP library does not change a reply


def open(model: str, options: Options) -> OpenAIEngine:
    """Open a server as an engine: see `connect`."""
    return OpenAIEngine(*connect(model, options), options)


def connect(model: str, options: Options) -> tuple[Server, Identity]:
    """Check that the server answers and serves the model. model: "" for its only one.

    Raises EngineError if there is no server, if it does not have the model, or if it refuses the
    key.
    """
    server = Server(options)
    served = server.models()
    version = server.version()
    server.vllm = bool(version)
    server.model = _served(
        server.url, options.name if options.name in served else model, list(served)
    )
    length = served.get(server.model, {}).get("max_model_len")
    server.positions = length if type(length) is int else None
    where = identity_of(server.url)
    args: dict[str, Any] = {"api": server.api}
    if server.more:
        args["request"] = server.more
    if server.template_args:
        args["template"] = server.template_args
    if options.headers:
        args["headers"] = sorted(options.headers)  # the names only, never the values
    identity = Identity(
        model=server.model,
        revision="served",
        engine="openai",
        engine_version=f"vllm {version}" if version else urlsplit(where).hostname or "unknown",
        dtype="unknown",
        chat_template="server" if server.api == "chat" else "none",
        engine_args=args,
        server=where,
    )
    return server, identity


def _served(url: str, model: str, served: Sequence[str]) -> str:
    """Return the server's name for a model. Raises EngineError, with its names, if it has none."""
    shown = ", ".join(served[:12]) + (f" and {len(served) - 12} others" if served[12:] else "")
    if not model:
        if len(served) == 1:
            return served[0]
        if not served:
            raise EngineError(
                f"{url} does not say which models it has; is the address right, and does it end in "
                "/v1? If so, name the model with --model"
            )
        raise EngineError(f"{url} serves {len(served)} models; name one with --model: {shown}")
    if not served or model in served:
        return model
    for name in (f"{model}:latest", f"models/{model}"):  # as Ollama and Gemini write them
        if name in served:
            return name
    same = [name for name in served if name.lower() == model.lower()]
    if len(same) == 1:
        return same[0]
    if answers_to(url, model, served):
        return model
    near = difflib.get_close_matches(model, served, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise EngineError(f"{url} does not serve {model!r}; {hint}it has: {shown}")


def open_scorer(model: str, options: Options) -> Scorer:
    """Open a scorer of texts by a running vLLM server: each token given the tokens before it.

    The server tokenises a text (`/tokenize`), so that no tokenizer is needed here, and returns the
    probability of each token (`prompt_logprobs`, or `echo` with `logprobs`). The token before the
    first is the one that the server's tokenizer adds, else its end-of-text token. Arguments
    (`Options.more`): the time limits of `open`, and tokenizer, a folder or hub id to use instead of
    the server's. Raises EngineError as `open` does, if the server does not score texts, or if the
    token before the first cannot be found.
    """
    for name in options.more:
        if name not in ("tokenizer", *Times._fields):
            known = ", ".join(("tokenizer", *Times._fields))
            raise EngineError(f"scoring by a server has no argument {name!r}; it has {known}")
    for name in ("dtype", "device", "revision", "batch_tokens"):
        if getattr(options, name) is not None:
            raise EngineError(f"{name}: the server sets this; leave it out with --base-url")
    more = {**options.more, "api": "completions"}
    named = more.pop("tokenizer", None)
    server, identity = connect(model, dataclasses.replace(options, more=more))
    if named is not None:
        texts, template = _own(str(named))
        identity = dataclasses.replace(identity, chat_template=template)
        return ServedScorer(server, identity, options, texts)
    if server.look(f"{server.root}/tokenize").status == 404:
        raise EngineError(
            f"{server.url}: does not return the tokens of a text (vLLM's server does, by "
            "/tokenize); name its tokenizer: --engine-arg tokenizer=, a folder or hub id"
        )
    return ServedScorer(server, identity, options)


def _own(name: str) -> tuple[_texts.Texts, str]:
    """Load a tokenizer. Returns it, and the hash of its chat template or "none"."""
    with need_models("a tokenizer of one's own"):
        import transformers

        from genprobe.engines._local import quiet, refusing

    with quiet(), refusing(f"{name}: the tokenizer cannot be read"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        template = tokenizer.get_chat_template() if tokenizer.chat_template else None
    return _texts.Texts(name, tokenizer), digest(template, 12) if template else "none"


def most_of_choice(request: Request) -> int:
    """Return the most tokens that a server is asked for when one of the options is forced."""
    texts = (text for options in request.options.values() for text in options)
    return longest(texts) + max(form.more for form in CHOICES.values())
