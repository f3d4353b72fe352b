"""Any OpenAI-compatible server, over HTTP: vLLM's own, a hosted one, with --base-url.

Many requests are in flight, as many as the server takes well. What can pass (a busy server, a cut
connection) is asked again; an answer that was read never is. A key comes from the environment,
GENPROBE_API_KEY or else OPENAI_API_KEY, and goes nowhere but into the header of a request.

Arguments (`Options.more`): api = chat | completions, connect_timeout, read_timeout (seconds
without a byte), total_timeout (of one request with all its attempts).
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import email.utils
import functools
import json
import os
import re
import ssl
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import tenacity

from genprobe.engines import Identity, Options, Sampling, Scorer
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request, Response, canonical

PACKAGES = ("httpx",)
CONCURRENCY = 64
BEGIN = 64  # requests in flight at first; where more are allowed, each good reply adds one
LANES = 8  # connections of one client: what httpcore does for a request grows with their square
ATTEMPTS = 8
BACKOFF = 0.5  # seconds before the second attempt; doubles, with jitter, up to 30
# As in the engines that render templates themselves (`_local.TEMPLATE_DATE`).
TEMPLATE_DATE = "26 Jul 2024"

TIMES = {"connect_timeout": 10.0, "read_timeout": 120.0, "total_timeout": 600.0}
OVERLOADED = (429, 503, 529)
PASSING = (408, 409, 425, 500, 502, 504)
# A choice that no model makes by itself.
RARE = "zyzzyva quokka"


def open(model: str, options: Options) -> OpenAIEngine:
    """As `connect`."""
    return OpenAIEngine(*connect(model, options), options)


@functools.cache
def _trust() -> ssl.SSLContext:
    """Known certificates. Reading them takes a tenth of a second: once is enough."""
    return httpx.create_ssl_context()


def client_of(settings: Settings) -> httpx.Client:
    """To look at a server, before its requests are sent."""
    return httpx.Client(timeout=settings.connect_timeout, verify=_trust())


def connect(model: str, options: Options) -> tuple[Server, Identity]:
    """Look whether the server is there and serves the model; "" is the only one that it serves.

    EngineError, in one line, where there is no server, no such model, or a key is refused.
    """
    url = _address(options.base_url)
    settings = _settings(options.more)
    key = os.environ.get("GENPROBE_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    server = Server(url, key, settings)
    with client_of(settings) as client:
        served = server.models(client)
        version = server.version(client)
    if not model:
        if len(served) != 1:
            known = ", ".join(served) or "it does not say which"
            raise EngineError(f"{url} serves {len(served)} models; name one with --model: {known}")
        model = served[0]
    if served and model not in served:
        near = difflib.get_close_matches(model, served, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(served[:8])}"
        raise EngineError(f"{url} does not serve {model!r}; {hint}")
    server.model, server.vllm = model, bool(version)
    identity = Identity(
        model=model,
        revision="served",
        engine="openai",
        engine_version=f"vllm {version}" if version else urlsplit(url).hostname or "unknown",
        dtype="unknown",
        chat_template="server" if settings.api == "chat" else "none",
        engine_args={"api": settings.api},
    )
    return server, identity


def open_scorer(model: str, options: Options) -> Scorer:
    """Open what scores texts instead of answering: `engines.scoring`."""
    from genprobe.engines.scoring import served

    return served.open(model, options)


class Settings(NamedTuple):
    api: str
    connect_timeout: float
    read_timeout: float
    total_timeout: float


def _settings(more: Mapping[str, Any]) -> Settings:
    known = ["api", *TIMES]
    for name, value in more.items():
        if name not in known:
            raise EngineError(
                f"--engine openai has no argument {name!r}; it has {', '.join(known)}"
            )
        if name in TIMES and (not isinstance(value, int | float) or not value > 0):
            raise EngineError(f"--engine-arg {name}={value}: give seconds, more than 0")
    api = more.get("api", "chat")
    if api not in ("chat", "completions"):
        raise EngineError(f"--engine-arg api={api}: it is chat or completions")
    return Settings(api, *(float(more.get(name, usual)) for name, usual in TIMES.items()))


def _address(url: str | None) -> str:
    """The address without what should not be in it."""
    if not url:
        raise EngineError("--engine openai needs --base-url, such as http://localhost:8000/v1")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise EngineError("--base-url is no address; it looks like http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EngineError(
            "--base-url holds a name, password or query; put the key into GENPROBE_API_KEY instead"
        )
    return url.rstrip("/")


class Trouble(Exception):
    """A request went wrong. passes: it may go right later; lowers: fewer at a time would help;
    down: nobody listens; wait: seconds that the server asked for."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        passes: bool = True,
        lowers: bool = False,
        down: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.wait = kind, detail, wait
        self.passes, self.lowers, self.down = passes, lowers, down


class _Key(httpx.Auth):
    """Puts the key into a request, and keeps it out of everything that is printed."""

    def __init__(self, key: str) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        yield request

    def __repr__(self) -> str:
        return "<key>"

    def scrub(self, text: str) -> str:
        """A server's words on one line, without any key that it repeats."""
        if self._key:
            text = text.replace(self._key, "<key>")
        text = re.sub(r"(?i)bearer\s+\S+|\bsk-[\w*-]{6,}", "<key>", text)
        text = " ".join(text.split())
        return text if len(text) <= 200 else text[:199] + "…"


class Server:
    """An address, its dialect, and what its answers mean."""

    def __init__(self, url: str, key: str, settings: Settings) -> None:
        self.url, self.key, self.settings = url, _Key(key), settings
        self.root = url.removesuffix("/v1")
        self.model, self.vllm = "", False
        # Of the dialect: names that this server has for ours, "" for what it does not know.
        self.names = {"max_tokens": "max_tokens"}
        self.choice = ""

    # -- before anything is asked -----------------------------------------------------------

    def models(self, client: httpx.Client) -> list[str]:
        """The models served; none where the server does not tell."""
        reply = self.look(client, f"{self.url}/models")
        if reply.status_code in (404, 405, 501):
            if not self.url.endswith("/v1"):
                other = self.look(client, f"{self.url}/v1/models")
                if other.status_code == 200:
                    raise EngineError(f"{self.url} has no models; did you mean {self.url}/v1 ?")
            return []
        if reply.status_code != 200:
            self.refuse(reply)
        try:
            return [str(row["id"]) for row in reply.json()["data"]]
        except (ValueError, KeyError, TypeError):
            raise EngineError(
                f"{self.url}/models is not what an OpenAI-compatible server says; is the address "
                "right, and does it end in /v1?"
            ) from None

    def version(self, client: httpx.Client) -> str:
        """The version of vLLM, "" of another server."""
        with contextlib.suppress(EngineError, ValueError, KeyError, TypeError, AttributeError):
            found = self.look(client, f"{self.root}/version").json()
            return str(found["version"]) if found.keys() == {"version"} else ""
        return ""

    def look(self, client: httpx.Client, url: str) -> httpx.Response:
        try:
            return client.get(url, auth=self.key)
        except httpx.HTTPError as error:
            raise EngineError(self.unreachable(error)) from None
        except (httpx.InvalidURL, ValueError):
            raise EngineError("--base-url is no address; it looks like http://host/v1") from None

    def unreachable(self, error: Exception) -> str:
        why = self.key.scrub(str(error)) or type(error).__name__
        return f"{self.url}: no server answers there ({why}); is it running, and the address right?"

    def refuse(self, reply: httpx.Response) -> None:
        """EngineError for an answer after which nothing else can go right."""
        said = self.words(reply)
        if 300 <= reply.status_code < 400:
            raise EngineError(f"{self.url} sends us elsewhere; give the address it moved to")
        if reply.status_code in (401, 403):
            given = "the key was refused" if self.key._key else "it wants a key"
            raise EngineError(f"{self.url}: {given}; set GENPROBE_API_KEY ({said})")
        if reply.status_code == 404:
            raise EngineError(f"{self.url}: not found; check the address and --model ({said})")
        raise EngineError(f"{self.url}: answers {reply.status_code} ({said})")

    def words(self, reply: httpx.Response) -> str:
        """What a server says went wrong."""
        try:
            error = reply.json()
            error = error.get("error", error)
            said = error.get("message", error) if isinstance(error, dict) else error
        except (ValueError, AttributeError):
            said = reply.text[:500]
        return self.key.scrub(str(said)) or f"status {reply.status_code}"

    # -- bodies -------------------------------------------------------------------------------

    def body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        """What is sent for a free reply or a choice: every setting, and nothing left to the
        server's own or the model's."""
        body: dict[str, Any] = {"model": self.model, "stream": False}
        if self.settings.api == "chat":
            body["messages"] = request.messages
        else:
            body["prompt"] = "\n".join(m["content"] for m in request.messages)
        given: dict[str, Any] = {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.temperature else 1.0,
            "seed": request.seed,
            "n": 1,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }
        if request.decode == "choice":
            texts = [text for options in request.options.values() for text in options]
            given["max_tokens"] = max(len(t.encode("utf-8")) for t in texts) + 1
            body |= _choice(self.choice, texts)
        if self.vllm:
            body |= {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
            if self.settings.api == "chat":
                body["chat_template_kwargs"] = {"date_string": TEMPLATE_DATE}
        for name, value in given.items():
            if name := self.names.get(name, name):
                body[name] = value
        return body

    def reading(self, rows: Sequence[Sequence[int]]) -> str:
        """What asks for the probability of every token of given texts, as vLLM's server tells it.

        0 others are asked for at each place: the text's own token is always told.
        """
        body = {
            "model": self.model,
            "prompt": rows,
            "max_tokens": 1,
            "temperature": 0.0,
            "prompt_logprobs": 0,
        }
        return canonical(body)

    @property
    def path(self) -> str:
        return "/chat/completions" if self.settings.api == "chat" else "/completions"

    # -- answers ------------------------------------------------------------------------------

    def check(self, reply: httpx.Response) -> dict[str, Any]:
        """The body of a good answer; Trouble or EngineError for another."""
        status = reply.status_code
        if status == 200:
            try:
                found = reply.json()
            except ValueError:
                kind = reply.headers.get("content-type", "no type")
                raise Trouble("broken-reply", f"status 200 without JSON ({kind})") from None
            if not isinstance(found, dict):
                raise Trouble("broken-reply", "status 200 with another JSON than an object")
            return found
        said = self.words(reply)
        if status in OVERLOADED:
            wait = _retry_after(reply.headers.get("retry-after"))
            if wait is not None and wait > self.settings.total_timeout:
                raise EngineError(
                    f"{self.url}: asks to wait {wait:.0f} s ({said}); run the same command later"
                )
            raise Trouble(f"http-{status}", said, lowers=True, wait=wait)
        if status in PASSING:
            raise Trouble(f"http-{status}", said)
        if status in (400, 413, 422):
            long = re.search(r"(?i)context length|too long|max(imum)?[ _]model[ _]len", said)
            raise Trouble("too-long" if long else f"http-{status}", said, passes=False)
        self.refuse(reply)
        raise AssertionError

    def response(
        self, request: Request, sent: str, asked: Mapping[str, Any], found: Mapping[str, Any]
    ) -> Response | Failure:
        """A reply as a record. Trouble where the body is not one."""
        try:
            choice = found["choices"][0]
            text = _text(choice["message"]) if "message" in choice else choice["text"]
            finish = str(choice.get("finish_reason") or "unknown")
            usage = found.get("usage") or {}
            tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise Trouble("broken-reply", "status 200 without a choice in it") from None
        if text is None:
            detail = f"no text, finish reason {finish!r}; a larger --max-tokens may help"
            return Failure(request.id, "no-text", detail, 1)
        if not isinstance(text, str):
            raise Trouble("broken-reply", "status 200 with a text that is none")
        new = asked.get(self.names["max_tokens"])
        if self.vllm and finish == "length" and tokens[1] is not None and tokens[1] < new:
            detail = f"{tokens[0]} tokens of prompt and {new} of reply are more than the model has"
            return Failure(request.id, "too-long", detail, 1)
        if request.decode == "choice" and all(text not in o for o in request.options.values()):
            return Failure(request.id, "unconstrained", f"the reply is no option: {text[:80]!r}", 1)
        counts = (n if type(n) is int else None for n in tokens)
        return Response(request.id, text, finish, sent, *counts)

    def readings(
        self, rows: Sequence[Sequence[int]], found: Mapping[str, Any]
    ) -> list[list[float]]:
        """For each row, log P of each of its tokens but the first, of the answer to `reading`."""
        try:
            choices = sorted(found["choices"], key=lambda c: c["index"])
            return [
                [
                    float(at[str(token)]["logprob"])
                    for token, at in zip(row[1:], choice["prompt_logprobs"][1:], strict=True)
                ]
                for row, choice in zip(rows, choices, strict=True)
            ]
        except (KeyError, TypeError, ValueError):
            raise Trouble("broken-reply", "status 200 without prompt_logprobs") from None


def _text(message: Mapping[str, Any]) -> Any:
    text = message.get("content")
    return message.get("refusal") if text is None else text


def _choice(dialect: str, texts: list[str]) -> dict[str, Any]:
    return (
        {"guided_choice": texts}
        if dialect == "guided_choice"
        else {"structured_outputs": {"choice": texts}}
    )


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3), a number or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


class Gate:
    """How many requests may be in flight: one more for each good answer until the first trouble,
    then half, and from there one more for each round of answers (AIMD, as TCP does)."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(min(most, BEGIN))
        self.inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begins_slowly = True
        self._cut_at = self._open_at = 0.0

    async def enter(self) -> float:
        """Wait for a place; when it was given."""
        while True:
            now = time.monotonic()
            if now < self._open_at:
                await asyncio.sleep(self._open_at - now)
            elif self.inside < int(self.limit):
                self.inside += 1
                return now
            else:
                place = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                await place

    def leave(self) -> None:
        self.inside -= 1
        for _ in range(int(self.limit) - self.inside):
            while self._waiting:
                place = self._waiting.popleft()
                if not place.done():
                    place.set_result(None)
                    break

    def good(self) -> None:
        self.limit = min(self.most, self.limit + (1 if self._begins_slowly else 1 / self.limit))

    def bad(self, since: float) -> None:
        """Halve, once for all that were in flight together."""
        if since > self._cut_at:
            self._begins_slowly = False
            self.limit = max(1.0, self.limit / 2)
            self._cut_at = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Nobody in for a while."""
        self._open_at = max(self._open_at, time.monotonic() + seconds)


class OpenAIEngine:
    """See `genprobe.engines.Engine`."""

    def __init__(self, server: Server, identity: Identity, options: Options) -> None:
        self.server, self.identity, self.note = server, identity, options.note
        self.most = options.concurrency or CONCURRENCY
        self._ids: dict[str, list[int]] = {}  # tokens of the forms, as the server cuts them

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, each as it comes. EngineError where nothing more can come."""
        answers = self._generate(requests, sampling)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return answers
        return _elsewhere(answers)  # a notebook has a loop of its own, and two do not mix

    def _generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Generator[Response | LogProb | Failure, None, None]:
        """As `generate`, in this thread.

        The event loop runs only while an answer is waited for: storing one takes a fraction of a
        millisecond, in which the replies wait in the system's buffers.
        """
        tasks: set[asyncio.Task[Response | LogProb | Failure]] = set()
        waiting = iter(requests)
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            work = _Work(self.server, self.most, sampling)
            finished: asyncio.Queue[asyncio.Task[Response | LogProb | Failure]] = asyncio.Queue()
            try:
                runner.run(self._learn(work, requests, sampling))
                while True:
                    # More than are in flight: some are waiting to be asked again.
                    while len(tasks) < 4 * self.most and (request := next(waiting, None)):
                        task = loop.create_task(self._answer(work, request))
                        task.add_done_callback(finished.put_nowait)
                        tasks.add(task)
                    if not tasks:
                        return
                    task = runner.run(finished.get())
                    tasks.remove(task)
                    yield task.result()
            finally:
                for task in tasks:
                    task.cancel()
                runner.run(work.end(tasks))

    def close(self) -> None: ...

    async def _answer(self, work: _Work, request: Request) -> Response | LogProb | Failure:
        if request.decode == "logprob":
            return await work.persist(request.id, lambda: self._read(work, request))
        return await work.persist(request.id, lambda: self._say(work, request))

    async def _say(self, work: _Work, request: Request) -> Response | Failure:
        body = self.server.body(request, work.sampling)
        sent = json.dumps(body, ensure_ascii=True)
        found = await work.post(f"{self.server.url}{self.server.path}", sent)
        return self.server.response(request, sent, body, found)

    # -- what the server can do ---------------------------------------------------------------

    async def _learn(self, work: _Work, requests: Sequence[Request], sampling: Sampling) -> None:
        """Find the server's dialect by asking, before anything that counts."""
        by_decode = {r.decode: r for r in reversed(requests)}
        if first := by_decode.get("free"):
            await self._dialect(work, first)
            if sampling.temperature > 0 and self.server.names.get("seed", "seed"):
                await self._seeds(work, first)
        if first := by_decode.get("choice"):
            await self._dialect(work, first)
            await self._constraint(work, first)
        if (first := by_decode.get("logprob")) and not self.server.vllm:
            raise EngineError(
                f"{self.server.url}: --decode logprob needs the log-probabilities of a given text, "
                "which only vLLM's server returns; leave it out, or use --engine vllm"
            )

    async def _probe(
        self, work: _Work, request: Request, tokens: int, **more: Any
    ) -> tuple[str, Any] | Trouble:
        """(text, body) of a short reply, or why there is none."""
        few = Sampling(work.sampling.temperature, work.sampling.top_p, tokens)
        plain = Request(**{**vars(request), "decode": "free", "options": {}})
        body = {**self.server.body(plain, few), **more}
        url = f"{self.server.url}{self.server.path}"

        async def once() -> Any:
            try:
                return await work.post(url, json.dumps(body))
            except Trouble as trouble:
                if trouble.passes:
                    raise
                return trouble

        found = await work.persist(request.id, once)
        if isinstance(found, Failure):
            raise EngineError(f"{self.server.url}: does not answer ({found.kind}: {found.detail})")
        if isinstance(found, Trouble):
            return found
        with contextlib.suppress(Trouble):
            reply = self.server.response(plain, "", {}, {**found, "usage": None})
            return getattr(reply, "text", ""), found
        return "", found

    async def _dialect(self, work: _Work, request: Request) -> None:
        """Learn which of our settings the server does not know, from what it refuses."""
        for _ in range(8):
            found = await self._probe(work, request, 1)
            if not isinstance(found, Trouble) or found.kind == "too-long":
                return
            said = found.detail
            if "max_completion_tokens" in said and "max_tokens" in self.server.names.values():
                self.server.names["max_tokens"] = "max_completion_tokens"
                continue
            if "chat template" in said.lower():
                raise EngineError(
                    f"{self.server.model}: the server has no chat template for it, as for a base "
                    "model; --engine-arg api=completions prompts it with plain text"
                )
            known = ("seed", "top_p", "presence_penalty", "frequency_penalty", "n")
            name = next(
                (k for k in known if re.search(rf"\b{k}\b", said) and k not in self.server.names),
                "",
            )
            if not name:
                raise EngineError(f"{self.server.url}: refuses the request ({said})")
            self.server.names[name] = ""
            what = "replies will not repeat" if name == "seed" else "it uses its own"
            self.note(f"the server does not take {name!r}: {what}")

    async def _seeds(self, work: _Work, request: Request) -> None:
        replies = [await self._probe(work, request, 16) for _ in range(2)]
        said = [found[0] for found in replies if not isinstance(found, Trouble)]
        if len(set(said)) > 1:
            self.note("the server ignores seeds: the same run again will give other replies")

    async def _constraint(self, work: _Work, request: Request) -> None:
        """Find how the server takes a choice; it may ignore what it does not know, with 200."""
        for dialect in ("structured_outputs", "guided_choice"):
            found = await self._probe(work, request, 16, **_choice(dialect, [RARE]))
            if not isinstance(found, Trouble) and found[0].strip() == RARE:
                self.server.choice = dialect
                return
        raise EngineError(
            f"{self.server.url}: ignores structured outputs (a choice was forced, and the reply was"
            " another), so --decode choice cannot be used with it"
        )

    # -- probabilities --------------------------------------------------------------------------

    async def _read(self, work: _Work, request: Request) -> LogProb:
        """Each form behind the prompt's own tokens, with the log-probabilities of a given text.

        A form that another begins with is read off that one.
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

    async def _tokens(self, work: _Work, request: Request) -> list[int]:
        """The prompt as the server cuts it, chat template and all."""
        body: dict[str, Any] = {"model": self.server.model}
        if self.server.settings.api == "chat":
            body |= {"messages": request.messages, "add_generation_prompt": True}
            body["chat_template_kwargs"] = {"date_string": TEMPLATE_DATE}
        else:
            body["prompt"] = "\n".join(m["content"] for m in request.messages)
        return await self._tokenize(work, body)

    async def _form(self, work: _Work, text: str) -> list[int]:
        if text not in self._ids:
            body = {"model": self.server.model, "prompt": text, "add_special_tokens": False}
            self._ids[text] = await self._tokenize(work, body)
        return self._ids[text]

    async def _tokenize(self, work: _Work, body: Mapping[str, Any]) -> list[int]:
        found = await work.post(f"{self.server.root}/tokenize", json.dumps(body))
        try:
            return [int(token) for token in found["tokens"]]
        except (KeyError, TypeError, ValueError):
            raise Trouble("broken-reply", "status 200 without tokens") from None


def _backoff(state: tenacity.RetryCallState) -> float:
    """Seconds before the next attempt: doubled each time, and not the same for everybody."""
    doubled = tenacity.wait_exponential(multiplier=BACKOFF, max=30)(state)
    return doubled + tenacity.wait_random(0, BACKOFF)(state)


class _Work:
    """What the requests of one call of `generate` share. most: of them in flight together."""

    def __init__(self, server: Server, most: int, sampling: Sampling) -> None:
        self.server, self.gate, self.sampling = server, Gate(most), sampling
        settings = server.settings
        limits = httpx.Limits(max_connections=LANES, max_keepalive_connections=LANES)
        timeout = httpx.Timeout(settings.read_timeout, connect=settings.connect_timeout, pool=None)
        self.clients = [
            httpx.AsyncClient(auth=server.key, limits=limits, timeout=timeout, verify=_trust())
            for _ in range(-(-most // LANES))
        ]
        # As many as the gate lets in; the last that was left is the first to be taken, warm.
        self.lanes = [client for client in self.clients for _ in range(LANES)]
        self.heard = time.monotonic()  # when the server last said anything

    async def post(self, url: str, body: str) -> dict[str, Any]:
        """One attempt. Trouble, or an EngineError that ends the run."""
        since = await self.gate.enter()
        client = self.lanes.pop()
        settings = self.server.settings
        try:
            async with asyncio.timeout(settings.total_timeout):
                headers = {"Content-Type": "application/json"}
                reply = await client.post(url, content=body.encode("ascii"), headers=headers)
            self.heard = time.monotonic()
            found = self.server.check(reply)
        except Trouble as trouble:
            if trouble.lowers:
                self.gate.bad(since)
                self.gate.pause(trouble.wait or 0.0)
            raise
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if time.monotonic() - self.heard > settings.total_timeout:
                line = self.server.unreachable(error)
                raise EngineError(f"{line} The same command goes on where it stopped.") from None
            raise Trouble("unreachable", type(error).__name__, down=True) from None
        except (httpx.TimeoutException, TimeoutError):
            self.gate.bad(since)
            raise Trouble("timeout", f"no answer in {settings.read_timeout:.0f} s") from None
        except httpx.HTTPError as error:
            said = self.server.key.scrub(str(error)) or type(error).__name__
            raise Trouble("broken-reply", said) from None
        finally:
            self.lanes.append(client)
            self.gate.leave()
        if time.monotonic() - since > settings.read_timeout / 2:
            self.gate.bad(since)
        else:
            self.gate.good()
        return found

    async def persist(self, request: str, once: Any) -> Any:
        """What `once` returns, after as many attempts as it takes; a Failure if none is good."""
        begun = time.monotonic()
        attempts = refusals = 0

        def stop(state: tenacity.RetryCallState) -> bool:
            trouble = state.outcome.exception() if state.outcome else None
            if isinstance(trouble, Trouble) and trouble.down:
                return False  # `post` ends the run when it has been too long for all
            late = time.monotonic() - begun > self.server.settings.total_timeout
            return late or attempts - refusals >= ATTEMPTS

        def wait(state: tenacity.RetryCallState) -> float:
            trouble = state.outcome.exception() if state.outcome else None
            asked = trouble.wait if isinstance(trouble, Trouble) else None
            backoff = _backoff(state)
            return backoff if asked is None else asked + backoff / 8

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, Trouble) and e.passes),
            wait=wait,
            stop=stop,
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    attempts += 1
                    try:
                        return await once()
                    except Trouble as trouble:
                        refusals += trouble.down
                        raise
        except Trouble as trouble:
            return Failure(request, trouble.kind, trouble.detail, attempts)
        raise AssertionError

    async def end(self, tasks: Iterable[asyncio.Task[Any]] = ()) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in self.clients:
            await client.aclose()


def _elsewhere(answers: Generator[Response | LogProb | Failure, None, None]) -> Iterator[Any]:
    """The same, in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        try:
            while (record := thread.submit(next, answers, None).result()) is not None:
                yield record
        finally:
            thread.submit(answers.close).result()
