"""Score texts by a running server that returns the log-probabilities of a prompt's tokens."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from genprobe.engines import Identity, Options, Sampling
from genprobe.engines._asking import OpenAIEngine
from genprobe.engines._http import Trouble, Work
from genprobe.engines._server import CHOICES, Server
from genprobe.engines.scoring import _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request

CONTEXTS = 4096  # contexts whose tokens are kept in memory
LOWEST = -9999.0  # vLLM's value for log 0, as JSON has no infinity
PROBE = "The quick brown fox jumps over the lazy dog."


class ServedScorer(OpenAIEngine):
    """A scorer that asks a server: see `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...] = ("causal",)

    def __init__(
        self,
        server: Server,
        identity: Identity,
        options: Options,
        texts: _texts.Texts | None = None,
    ) -> None:
        """Test what the server can do. texts: tokenises here; None: the server tokenises."""
        super().__init__(server, identity, options)
        self.texts = texts
        self.unknown = texts.unknown if texts is not None else None
        self._contexts: dict[str, list[int]] = {}
        self.echo = False  # whether the server returns the text with its values (`echo`)
        self.first, self.before = "", list[int]()
        with ThreadPoolExecutor(1) as thread:  # a notebook's thread already runs an event loop
            thread.submit(asyncio.run, self._begin()).result()

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        for request in requests:
            _texts.wanted(self.server.url, request, self.passes)
        return cast(Iterator[LogProb | Failure], super().generate(requests, sampling))

    async def _answer(self, work: Work, request: Request, sampling: Sampling) -> LogProb | Failure:
        found: LogProb | Failure
        found = await work.persist(request.id, lambda: self._score(work, request))
        return found

    async def _score(self, work: Work, request: Request) -> LogProb | Failure:
        context, texts = _texts.wanted(self.server.url, request, self.passes)
        items = [
            _texts.Item(answer, text, *await self._seam(work, context, text))
            for answer, text in texts
        ]
        asked = _texts.Asked(request, context, items)
        if failure := _texts.unusable(asked, len(self.before), None, None):
            return failure
        rows = [[*self.before, *item.before, *item.ids] for item in items]
        body = self.server.reading(rows, self.echo)
        found = await work.post(f"{self.server.url}/completions", body)
        values = [
            [value if value > LOWEST else -math.inf for value in all_[-len(item.ids) :]]
            for item, all_ in zip(items, self.server.readings(rows, found, self.echo), strict=True)
        ]
        sent = self.first.partition(" ")[2] + context
        return _texts.record(asked, sent, len(self.before), values)

    # -- texts as tokens ----------------------------------------------------------------------

    async def _seam(self, work: Work, context: str, text: str) -> _texts.Seam:
        """Tokenise a context and the text after it, as `Texts.seams` does.

        The server does not say where tokens begin in the text. But if the tokens of the joined text
        begin with those of the context, a token ends where the context ends.
        """
        if self.texts is not None:
            return self.texts.seams([(context, text)], apart=False)[0]
        ids = await self._cut(work, context + text)
        for part in dict.fromkeys((context, context.rstrip())):
            before = await self._context(work, part)
            if len(before) < len(ids) and ids[: len(before)] == before:
                return _seam(before, ids[len(before) :])
        return _seam(await self._context(work, context), await self._cut(work, text))

    async def _context(self, work: Work, text: str) -> list[int]:
        if not text:
            return []
        if text not in self._contexts:
            ids = await self._cut(work, text)
            if len(self._contexts) >= CONTEXTS:
                self._contexts.clear()
            self._contexts[text] = ids
        return self._contexts[text]

    async def _cut(self, work: Work, text: str, special: bool = False) -> list[int]:
        body = {"model": self.server.model, "prompt": text, "add_special_tokens": special}
        return await self._tokenize(work, body)

    # -- tests before the first request ----------------------------------------------------------

    async def _begin(self) -> None:
        """Find the token before the first token of a text, and whether the server scores texts."""
        work = Work(self.server, 1)
        try:
            found = await work.persist("", lambda: self._learn_first(work))
            if not isinstance(found, Failure):
                found = await self._try_both(work)
        finally:
            await work.end()
        if isinstance(found, Failure):
            raise EngineError(
                f"{self.server.url}: does not score texts ({found.kind}: {found.detail})"
            )

    async def _learn_first(self, work: Work) -> None:
        if self.texts is not None:
            self.first, self.before = self.texts.first()
            return
        bare, full = [await self._cut(work, "a", special) for special in (False, True)]
        prefix, _ = _texts.around(self.server.url, bare, full)
        self.before = prefix or [await self._eos(work, bare)]
        words = await self._words(work, self.before)
        self.first = f"{'bos' if prefix else 'eos'} {words}"
        template = await self._template(work)
        self.identity = dataclasses.replace(self.identity, chat_template=template)
        if not prefix:
            self.note(
                f"the server adds no token before a text, so its end-of-text token {words} is "
                "used there; if the model has a BOS token, name its tokenizer: --engine-arg "
                "tokenizer=, "
                "a folder or hub id"
            )

    async def _words(self, work: Work, ids: list[int]) -> str:
        body = {"model": self.server.model, "tokens": ids}
        found = await work.post(f"{self.server.root}/detokenize", json.dumps(body))
        if not isinstance(found.get("prompt"), str):
            raise Trouble("broken-reply", "status 200 without a text")
        return str(found["prompt"])

    async def _eos(self, work: Work, ids: list[int]) -> int:
        """Find the token that ends a text: the last one of a reply constrained to one word."""
        body: dict[str, Any] = {
            "model": self.server.model,
            "prompt": [ids],
            "max_tokens": 16,
            "temperature": 0.0,
            "return_token_ids": True,
            **CHOICES["structured_outputs"].put(["a"]),
        }
        with contextlib.suppress(KeyError, IndexError, TypeError, ValueError, OverflowError):
            try:
                found = await work.post(f"{self.server.url}/completions", json.dumps(body))
            except Trouble as trouble:
                if trouble.passes:
                    raise
                found = {}
            choice = found["choices"][0]
            # If the reply ended in another token, `stop_reason` would name it.
            if choice["finish_reason"] == "stop" and choice["stop_reason"] is None:
                return int(choice["token_ids"][-1])
        raise EngineError(
            f"{self.server.url}: its tokenizer adds no token before a text, and the server does "
            "not name its end-of-text token; name the tokenizer: --engine-arg tokenizer=, a "
            "folder or "
            "hub id"
        )

    async def _template(self, work: Work) -> str:
        """Return "server" if the server has a chat template, else "none"."""
        body = {"model": self.server.model, "messages": [{"role": "user", "content": "?"}]}
        try:
            await self._tokenize(work, body)
        except Trouble as trouble:
            if trouble.passes:
                raise
            return "none" if "chat template" in trouble.detail.lower() else "server"
        return "server"

    async def _try_both(self, work: Work) -> Failure | None:
        """Find how the server returns the values of a given text: `prompt_logprobs`, or `echo`.

        If it supports neither, returns the Failure of the first way, or raises its EngineError.
        """
        refused: EngineError | None = None
        found: Failure | None = None
        try:
            found = await work.persist("", lambda: self._try(work))
        except EngineError as error:
            refused = error
        if refused is None and not isinstance(found, Failure):
            return None
        self.echo = True
        with contextlib.suppress(EngineError):
            again = await work.persist("", lambda: self._try(work))
            if not isinstance(again, Failure):
                return None
        if refused is not None:
            raise refused
        return found

    async def _try(self, work: Work) -> None:
        seam = await self._seam(work, "", PROBE)
        row = [*self.before, *seam.ids]
        body = self.server.reading([row], self.echo)
        found = await work.post(f"{self.server.url}/completions", body)
        if self.echo:
            self.server.readings([row], found, echo=True)
            told = found["choices"][0]["logprobs"].get("tokens")
            if self.texts is not None and isinstance(told, list):
                words = told[len(row) - len(seam.ids) : len(row)]
                self._compare(
                    seam.ids,
                    [
                        {str(token): {"decoded_token": word}}
                        for token, word in zip(seam.ids, words, strict=False)
                    ],
                )
            return
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
            if found["choices"][0].get("prompt_logprobs") is None:
                raise EngineError(
                    f"{self.server.url}: returns no log-probabilities of a given text, neither by "
                    "prompt_logprobs (vLLM) nor by echo; use --engine transformers or vllm"
                )
        self.server.readings([row], found)
        if self.texts is not None:
            self._compare(seam.ids, found["choices"][0]["prompt_logprobs"][-len(seam.ids) :])

    def _compare(self, ids: list[int], told: list[dict[str, Any]]) -> None:
        """Raise EngineError if the server decodes a token to another word than our tokenizer."""
        assert self.texts is not None
        for token, at in zip(ids, told, strict=False):
            theirs = at[str(token)].get("decoded_token")
            ours = self.texts.tokenizer.decode([token])
            if isinstance(theirs, str) and theirs.strip() != ours.strip():
                raise EngineError(
                    f"{self.texts.name}: is not the tokenizer of {self.server.model}, to which "
                    f"token {token} is {theirs!r} and not {ours!r}"
                )


def _seam(before: list[int], ids: list[int]) -> _texts.Seam:
    return _texts.Seam(before, ids, [None] * len(ids))
