"""Ask an OpenAI-compatible server: find its dialect first, then send many requests at once.

The number of simultaneous requests is adapted to the server. A request is repeated after temporary
trouble (a busy server, a broken connection), but never once an answer was read. Test requests find
out what the server supports before any request of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from genprobe.engines import THINK_TOKENS, Identity, Options, Sampling, Thinking, _http
from genprobe.engines._http import Trouble, Work
from genprobe.engines._server import CHOICES, Choice, Server, ways
from genprobe.errors import EngineError
from genprobe.files import bodies
from genprobe.linguistics import thoughts
from genprobe.records import DECODES, Failure, LogProb, Request, Response

# An answer that no model gives unless forced to.
RARE = "zyzzyva quokka"
# The test request to a server; harmless, so that no filter blocks it.
PLAIN = "Is water wet? Answer with one word, yes or no."
FEW, MANY = 32, 1024  # tokens of the test replies that show whether a model thinks
TOGETHER = 16  # replies that are passed on at once
SOON = 0.01  # seconds after which fewer replies are passed on


class OpenAIEngine:
    """The engine that asks one OpenAI-compatible server: see `genprobe.engines.Engine`."""

    def __init__(self, server: Server, identity: Identity, options: Options) -> None:
        self.server, self.identity, self.note = server, identity, options.note
        self.asked = options.thinking
        self.most = options.concurrency or _http.MOST
        self._ids: dict[str, list[int]] = {}  # form -> its token ids, by the server's tokenizer
        self._learned: set[str] = set()  # ways of decoding that were already tested
        self._names: Counter[tuple[str, str]] = Counter()  # (model, fingerprint) of the replies
        self._told: set[str] = set()

    def prepare(self, requests: Sequence[Request], sampling: Sampling) -> None:
        """Find the server's dialect, and how its model thinks, before the run begins.

        Raises EngineError if the server cannot answer the requests.
        """

        async def learn() -> None:
            work = Work(self.server, self.most)
            try:
                await self._learn(work, requests, sampling)
            finally:
                await work.end()

        _http.apart(lambda: asyncio.run(learn()))

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, as replies arrive. Raises EngineError if the run must end."""
        answers = self._generate(requests, sampling)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return answers
        return _elsewhere(answers)  # a notebook's thread already runs an event loop

    def _generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Generator[Response | LogProb | Failure, None, None]:
        """Do the work of `generate`, in this thread.

        The event loop runs only while waiting for answers. Storing one takes less than a
        millisecond; replies that arrive meanwhile stay in the system's buffers.
        """
        tasks: set[asyncio.Task[Response | LogProb | Failure]] = set()
        done: list[asyncio.Task[Response | LogProb | Failure]] = []
        ready: list[asyncio.Task[Response | LogProb | Failure]] = []
        waiting = iter(requests)
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            work = Work(self.server, self.most)
            some = asyncio.Event()

            def finish(task: asyncio.Task[Response | LogProb | Failure]) -> None:
                done.append(task)
                some.set()

            async def gather() -> None:
                """Wait for an answer, then until there are TOGETHER of them or SOON has passed."""
                await some.wait()
                until = loop.time() + SOON
                while len(done) < min(TOGETHER, len(tasks)) and loop.time() < until:
                    await asyncio.sleep(SOON / 10)
                some.clear()

            try:
                runner.run(self._learn(work, requests, sampling))
                while True:
                    # More tasks than requests in flight: some wait before a retry.
                    while len(tasks) < 4 * self.most and (request := next(waiting, None)):
                        task = loop.create_task(self._answer(work, request, sampling))
                        task.add_done_callback(finish)
                        tasks.add(task)
                    if not tasks:
                        break
                    runner.run(gather())
                    ready = done[::-1]
                    done.clear()
                    tasks.difference_update(ready)
                    ended: BaseException | None = None
                    while ready:
                        task = ready.pop()
                        if error := task.exception():
                            ended = ended or error  # raised once the others are stored
                        else:
                            yield self._noted(task.result())
                    if ended:
                        raise ended
            finally:
                for task in tasks:
                    task.cancel()
                runner.run(work.end([*tasks, *done, *ready]))
        self._tell_names()

    def close(self) -> None: ...

    async def _answer(
        self, work: Work, request: Request, sampling: Sampling
    ) -> Response | LogProb | Failure:
        found: Response | LogProb | Failure
        if request.decode == "logprob":
            found = await work.persist(request.id, lambda: self._read(work, request))
            return found
        found = await work.persist(request.id, lambda: self._say(work, request, sampling))
        if isinstance(found, Response) and found.finish == "length" and not found.text.strip():
            # The thought used all tokens. Ask once more, with more tokens, and keep that reply.
            more = dataclasses.replace(
                sampling, max_tokens=sampling.max_tokens + max(3 * self.server.room, THINK_TOKENS)
            )
            again = await work.persist(request.id, lambda: self._say(work, request, more))
            if isinstance(again, Response) or found.reasoning_from == "":
                self._say_once(
                    "replies that were only a thought are asked again with more tokens; "
                    "--think-tokens gives all requests more from the start"
                )
                found = again
        return found

    async def _say(self, work: Work, request: Request, sampling: Sampling) -> Response | Failure:
        body = self.server.body(request, sampling)
        sent = json.dumps(body, ensure_ascii=True)
        found = await work.post(f"{self.server.url}{self.server.path}", sent)
        return self.server.response(request, sent, body, found)

    # -- notes to the user --------------------------------------------------------------------

    def _say_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.note(line)

    def _noted(self, record: Response | LogProb | Failure) -> Response | LogProb | Failure:
        if isinstance(record, Response) and (record.model or record.fingerprint):
            self._names[record.model, record.fingerprint] += 1
        return record

    def _tell_names(self) -> None:
        """Tell the user if the replies name more than one model or fingerprint."""
        if len(self._names) > 1:
            said = "; ".join(
                f"{model or 'no name'}{f' ({mark})' if mark else ''}: {n}"
                for (model, mark), n in self._names.most_common(6)
            )
            self._say_once(f"the replies name more than one model or fingerprint: {said}")

    # -- what the server can do ---------------------------------------------------------------

    async def _learn(self, work: Work, requests: Sequence[Request], sampling: Sampling) -> None:
        """Find the server's dialect by asking, once for each decode."""
        by_decode = {r.decode: r for r in reversed(requests) if r.decode in DECODES}
        new = {decode: r for decode, r in by_decode.items() if decode not in self._learned}
        self._learned |= new.keys()
        if (first := new.get("logprob")) and not self.server.vllm:
            raise EngineError(
                f"{self.server.url}: --decode logprob needs the log-probabilities of a given text, "
                "which only vLLM's server returns; leave it out, or use --engine vllm"
            )
        if new:
            first = next(iter(new.values()))
            if len(new) == len(self._learned):  # the first time
                found = await self._dialect(work, first, sampling)
                await self._think(work, first, sampling, found)
            if "free" in new and sampling.temperature > 0 and self.server.names.get("seed", "seed"):
                await self._seeds(work, first, sampling)
        for decode in ("choice", "logprob"):
            if decode in new and self.identity.thinking_seen in ("thinks", "opens"):
                raise EngineError(
                    f"{self.server.model} thinks before it answers, and --decode {decode} would "
                    "ask in the middle of a thought; give --thinking off, or --engine "
                    "transformers, which asks after the thought"
                )
        if first := new.get("choice"):
            await self._constraint(work, first, sampling)

    async def _probe(
        self, work: Work, request: Request, sampling: Sampling, tokens: int, **more: Any
    ) -> dict[str, Any] | Trouble:
        """Send a harmless test request. Returns the body of the reply, or why it was refused.

        tokens: the most tokens of the reply; more: further fields of the request.
        """
        few = dataclasses.replace(sampling, max_tokens=tokens)
        messages = [{**m, "content": PLAIN} for m in request.messages]
        plain = Request(**{**vars(request), "decode": "free", "options": {}, "messages": messages})
        body = self.server.body(plain, few) | more
        url = f"{self.server.url}{self.server.path}"

        async def once() -> Any:
            try:
                return await work.post(url, json.dumps(body))
            except Trouble as trouble:
                if trouble.kind == "loading":
                    self._say_once(f"waiting: the server is loading the model ({trouble.detail})")
                if trouble.passes:
                    raise
                return trouble

        found = await work.persist(request.id, once)
        if isinstance(found, Failure):
            raise EngineError(f"{self.server.url}: {self._no_answer(found)}")
        return found

    @staticmethod
    def _no_answer(found: Failure) -> str:
        """Describe what the server returned instead of a first reply."""
        if not found.detail.startswith("status 200"):
            return f"does not answer ({found.kind}: {found.detail})"
        return (
            f"what answers is no OpenAI-compatible server ({found.detail}); is the address right, "
            "and does it end in /v1?"
        )

    async def _dialect(
        self, work: Work, request: Request, sampling: Sampling
    ) -> dict[str, Any] | None:
        """Learn from refusals which of our settings the server does not accept.

        Returns its first reply; None if even this prompt is too long for it.
        """
        names = self.server.names
        for _ in range(10):
            found = await self._probe(work, request, sampling, FEW)
            if not isinstance(found, Trouble):
                return found
            if found.kind == "too-long":
                return None
            if found.kind == "too-large":
                raise EngineError(f"{self.server.url}: {found.detail}")
            said = found.detail
            if "max_completion_tokens" in said and names["max_tokens"] == "max_tokens":
                names["max_tokens"] = "max_completion_tokens"
                self._say_once("the server calls 'max_tokens' 'max_completion_tokens'")
                continue
            if "chat template" in said.lower():
                raise EngineError(
                    f"{self.server.model}: the server has no chat template for it, as for a base "
                    "model; --engine-arg api=completions prompts it with plain text"
                )
            known = ("seed", "temperature", "top_p", "presence_penalty", "frequency_penalty", "n")
            name = next((k for k in known if re.search(rf"\b{k}\b", said) and k not in names), "")
            if not name:
                raise EngineError(f"{self.server.url}: refuses the request ({said})")
            names[name] = ""
            what = {
                "seed": "replies will not repeat",
                "temperature": "it samples as it likes, not at temperature "
                f"{sampling.temperature:g}",
            }.get(name, "it uses its own")
            self._say_once(f"the server does not take {name!r}: {what}")
            left = sorted(k for k, v in names.items() if not v)
            args = {**self.identity.engine_args, "left_out": left}
            self.identity = dataclasses.replace(self.identity, engine_args=args)
        raise EngineError(f"{self.server.url}: refuses the request ({said})")

    async def _seeds(self, work: Work, request: Request, sampling: Sampling) -> None:
        said = set()
        for _ in range(2):
            found = await self._probe(work, request, sampling, 16)
            if not isinstance(found, Trouble):
                with contextlib.suppress(LookupError, TypeError, AttributeError):
                    said.add(bodies.said(found).text)
        if len(said) > 1:
            self._say_once("the server ignores seeds: the same run again will give other replies")

    async def _constraint(self, work: Work, request: Request, sampling: Sampling) -> None:
        """Find a constraint that the server obeys; it may ignore unknown ones with status 200."""
        for name, choice in CHOICES.items():
            if name and await self._constrains(work, request, sampling, choice):
                self.server.choice = name
                if choice.wraps:
                    self._say_once(f"the server takes a forced choice as {name}, inside JSON")
                return
        raise EngineError(
            f"{self.server.url}: refuses or ignores structured outputs (tried: "
            f"{', '.join(name for name in CHOICES if name)}), so it cannot be made to answer with "
            "one of several words"
        )

    async def _constrains(
        self, work: Work, request: Request, sampling: Sampling, choice: Choice
    ) -> bool:
        found = await self._probe(work, request, sampling, 16 + choice.more, **choice.put([RARE]))
        if isinstance(found, Trouble):
            return False
        with contextlib.suppress(LookupError, TypeError, AttributeError):
            return choice.read(bodies.said(found).text or "").strip() == RARE
        return False

    # -- thinking -----------------------------------------------------------------------------

    async def _think(
        self, work: Work, request: Request, sampling: Sampling, first: dict[str, Any] | None
    ) -> None:
        """Find out whether the model thinks, set thinking as asked, and reserve tokens for it."""
        mode, server = self.asked.mode, self.server
        if server.api != "chat":
            if mode != "default":
                raise EngineError(
                    "--thinking needs a chat, and --engine-arg api=completions has none"
                )
            return
        room = self._room(sampling)
        seen = await self._seen(work, request, sampling, first)
        put = ""
        if mode not in ("default", "off" if seen == "none" else ""):
            for way in ways("server"):
                if not (told := way.put(mode, room)):
                    continue
                server.thinking = told
                now = await self._seen(work, request, sampling, None)
                if now and (now == "none") == (mode == "off"):
                    put, seen = f"{way.name}={mode}", now
                    break
            else:
                server.thinking = {}
                raise EngineError(self._untold(seen))
        if seen in ("thinks", "opens", "hidden"):
            server.room = room
            if self.asked.tokens is None:
                self._say_once(
                    f"{server.model} thinks before it answers: {room} tokens are added for it "
                    "(--think-tokens)"
                )
        elif self.asked.tokens:
            server.room = room
        self.identity = dataclasses.replace(
            self.identity,
            thinking=asked(self.asked, server.room),
            thinking_put=put,
            thinking_seen=seen,
        )

    def _untold(self, seen: str) -> str:
        mode = self.asked.mode
        tried = ", ".join(way.name for way in ways("server") if way.put(mode, 1))
        what = "still thinks" if mode == "off" else "shows no thought"
        return (
            f"{self.server.url}: {self.server.model} {what} although --thinking {mode} was sent as "
            f"{tried}; leave --thinking out, or use --request-arg or --template-arg"
        )

    def _room(self, sampling: Sampling) -> int:
        """Return the tokens for a thought: those asked for, else `THINK_TOKENS` if they fit."""
        if self.asked.tokens is not None:
            return self.asked.tokens
        if self.server.positions is None:
            return THINK_TOKENS
        return max(0, min(THINK_TOKENS, self.server.positions // 2))

    async def _seen(
        self, work: Work, request: Request, sampling: Sampling, first: dict[str, Any] | None
    ) -> str:
        """Find out from a short reply whether the model thinks.

        If the template opens the thought, only its end is marked in the reply, and a reply that is
        cut off may be inside it; then a longer reply is requested.

        Returns `opens` (the template opens a thought), `thinks` (the reply has a thought), `hidden`
        (the thought is not shown) or `none`; "" if no reply comes.
        """
        if self.server.vllm and await self._opens(work, request):
            return "opens"
        for tokens in (FEW, MANY):
            found: dict[str, Any] | Trouble | None = first
            if first is None or tokens == MANY:
                found = await self._probe(work, request, sampling, tokens)
            if isinstance(found, Trouble) or found is None:
                return ""
            try:
                said = bodies.said(found)
            except (LookupError, TypeError, AttributeError):
                return "none"
            text = said.text or ""
            if said.reasoning or thoughts.part(text).state != "none":
                return "thinks"
            if said.reasoning_from == "hidden" and said.reasoning_tokens != 0:
                return "hidden"
            if said.finish != "length":
                return "none"
            if not text.strip():
                return "hidden"
        return "none"

    async def _opens(self, work: Work, request: Request) -> bool:
        """Tell whether vLLM's chat template leaves the prompt inside a thought."""
        with contextlib.suppress(Trouble):
            ids = await self._tokens(work, request)
            body = {"model": self.server.model, "tokens": ids[-64:]}
            found = await work.post(f"{self.server.root}/detokenize", json.dumps(body))
            return isinstance(found.get("prompt"), str) and thoughts.opens(found["prompt"])
        return False

    # -- probabilities --------------------------------------------------------------------------

    async def _read(self, work: Work, request: Request) -> LogProb:
        """Score each form after the prompt, by the log-probabilities of a given text.

        If one form is the beginning of another, both are read from the longer one.
        """
        ids = await self._tokens(work, request)
        forms = [
            (answer, text, await self._form(work, text))
            for answer, texts in request.options.items()
            for text in texts
        ]
        seen: dict[tuple[int, ...], tuple[str, str]] = {}
        for answer, text, tokens in forms:
            if not tokens or seen.setdefault(tuple(tokens), (answer, text))[0] != answer:
                raise EngineError(f"the tokenizer cannot tell {text!r} from another answer")
        leaves = [t for t in seen if not any(o != t and o[: len(t)] == t for o in seen)]
        rows = [[*ids, *leaf] for leaf in leaves]
        body = self.server.reading(rows)
        found = self.server.readings(rows, await work.post(f"{self.server.url}/completions", body))
        logprobs = {leaf: values[-len(leaf) :] for leaf, values in zip(leaves, found, strict=True)}
        return LogProb(
            request=request.id,
            continuations=[
                {
                    "answer": answer,
                    "text": text,
                    "tokens": list(tokens),
                    "logprobs": next(
                        values[: len(tokens)]
                        for leaf, values in logprobs.items()
                        if leaf[: len(tokens)] == tokens
                    ),
                }
                for tokens, (answer, text) in seen.items()
            ],
            sent=body,
            tokens_in=len(ids),
        )

    async def _tokens(self, work: Work, request: Request) -> list[int]:
        """Ask the server for the tokens of a prompt, chat template included."""
        body: dict[str, Any] = {"model": self.server.model}
        if self.server.api == "chat":
            body |= {"messages": request.messages, "add_generation_prompt": True}
            told = self.server.thinking.get("chat_template_kwargs", {})
            body["chat_template_kwargs"] = self.server.kwargs() | told
        else:
            body["prompt"] = "\n".join(m["content"] for m in request.messages)
        return await self._tokenize(work, body)

    async def _form(self, work: Work, text: str) -> list[int]:
        if text not in self._ids:
            body = {"model": self.server.model, "prompt": text, "add_special_tokens": False}
            self._ids[text] = await self._tokenize(work, body)
        return self._ids[text]

    async def _tokenize(self, work: Work, body: Mapping[str, Any]) -> list[int]:
        found = await work.post(f"{self.server.root}/tokenize", json.dumps(body))
        try:
            return [int(token) for token in found["tokens"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise Trouble("broken-reply", "status 200 without tokens") from None


def asked(thinking: Thinking, room: int) -> str:
    """Describe the thinking that was asked for: the mode, unless `default`, and the tokens."""
    parts = [thinking.mode] if thinking.mode != "default" else []
    parts += [f"{room} tokens"] if room else []
    return " ".join(parts)


def _elsewhere(answers: Generator[Response | LogProb | Failure, None, None]) -> Iterator[Any]:
    """Yield the same answers, computed in a separate thread."""
    with ThreadPoolExecutor(1) as thread:
        try:
            while (record := thread.submit(next, answers, None).result()) is not None:
                yield record
        finally:
            thread.submit(answers.close).result()
