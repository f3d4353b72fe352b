"""A server with faults, between a client and a real server, or with answers of its own.

`Faulty(faults, upstream)` listens on a free port. Each request for a completion takes the next
word of `faults` (None: none), and what happened is in `log`: (body, what came of it). Without
`upstream` it answers itself, in a way that depends on the body alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import threading
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import httpx

FAULTS = (
    *("429", "429-wait", "500", "503", "hang", "cut", "no-json", "html", "no-choices"),
    *("drop", "refuse", "die"),
)
# Manners of hosted servers, which no run may stumble over either.
MANNERS = ("comments", "error-in-200", "loading")
# What a server does that means harm. These bodies are no answers, however often they are asked for.
HARM = (
    *("endless", "length", "slow", "gzip-bomb", "deflate-bomb", "brotli", "nested", "kept-nested"),
    *("values", "headers", "digits"),
)


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """An answer of its own: every body has another, about one in seven cut off by length."""
    text = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    finish = "length" if int(text[0], 16) < 2 else "stop"
    message = {"role": "assistant", "content": f"Yes, {text[:12]}"}
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


class Faulty:
    def __init__(
        self,
        faults: Iterable[str | None] = (),
        upstream: str = "",
        answer: Callable[[dict[str, Any]], Any] = echo,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body,
        hang: float = 30.0,
        away: float = 0.7,
        models: Iterable[str] = ("echo",),
        listing: str = "",
    ) -> None:
        """Make a server. listing: how it lists its models, one of HARM; "": as it should."""
        self.faults, self.upstream, self.answer = iter(faults), upstream.rstrip("/"), answer
        self.change, self.hang, self.away = change, hang, away
        self.models, self.listing = list(models), listing
        self.packed = ""  # Content-Encoding of what `answer` gives
        self.loading = 0  # how many times the list of models is not there yet
        self.log: list[tuple[str, str]] = []
        self.seen: list[dict[str, str]] = []  # headers of the requests
        self.most = self.inside = 0  # in flight together
        self._connections: set[asyncio.StreamWriter] = set()
        self._busy: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Faulty:
        self._thread.start()
        self.port = 0
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=1 << 24, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._client = httpx.AsyncClient(
            timeout=600, limits=httpx.Limits(max_connections=None), verify=False
        )

    async def _stop(self) -> None:
        self._server.close()
        for writer in list(self._connections):
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()

    async def _leave(self, busy_too: bool) -> None:
        """Nobody listens for a while. busy_too: the process dies, with what it was doing."""
        self._server.close()
        for writer in list(self._connections):
            if writer not in self._busy:
                writer.close()  # what was said there is still delivered
            elif busy_too:
                writer.transport.abort()
        await asyncio.sleep(self.away)
        await self._listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines if line)
                self.seen.append(headers)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = first.split(" ")
                self._busy.add(writer)
                self.inside += 1
                self.most = max(self.most, self.inside)
                try:
                    await self._one(writer, method, path, body.decode(), headers)
                    await writer.drain()
                finally:
                    self.inside -= 1
                    self._busy.discard(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _one(
        self,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        body: str,
        headers: dict[str, str],
    ) -> None:
        if self.listing and path == "/v1/models":
            with contextlib.suppress(ConnectionError):
                await _harm(writer, self.listing)
            return
        if not path.endswith("/completions"):
            _send(writer, *await self._real(method, path, body))
            return
        fault = next(self.faults, None)
        if fault not in (None, "cut"):
            self.log.append((body, str(fault)))
        if fault in ("429", "500", "503"):
            _send(writer, int(fault), b'{"error": {"message": "not now"}}')
        elif fault == "429-wait":
            _send(writer, 429, b'{"error": {"message": "wait"}}', "Retry-After: 1\r\n")
        elif fault == "comments":
            status, content = await self._real(method, path, body)
            _send(writer, status, b": PROCESSING\n\n: PROCESSING\n\n" + content)
        elif fault == "error-in-200":
            _send(writer, 200, b'{"error": {"message": "Provider returned error", "code": 502}}')
        elif fault == "loading":
            _send(writer, 503, b'{"error": {"message": "Loading model", "code": 503}}')
        elif fault in HARM:
            with contextlib.suppress(ConnectionError):
                await _harm(writer, fault)
        elif fault in ("echo", "echo-error"):
            _send(writer, *_repeated(headers, fault == "echo-error"))
        elif fault == "hang":
            await asyncio.sleep(self.hang)
            writer.transport.abort()
        elif fault == "no-json":
            _send(writer, 200, b'{"choices": [{"message": {"content": "Yes')
        elif fault == "html":
            _send(writer, 200, b"<html>Sign in</html>", kind="text/html")
        elif fault == "no-choices":
            _send(writer, 200, b'{"choices": [], "usage": {}}')
        elif fault == "drop":
            writer.transport.abort()
        elif fault in ("refuse", "die"):
            writer.transport.abort()
            await self._leave(fault == "die")
        else:
            status, content = await self._real(method, path, body)
            if fault == "cut":
                self.log.append((body, "cut"))
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode()
                writer.write(head + content[: len(content) // 2])
                await writer.drain()
                writer.close()
                return
            if writer.transport.is_closing():  # another request's fault took this connection too
                self.log.append((body, "lost"))
                return
            # Noted before it is sent: no answer can be read that is not in the log.
            self.log.append((body, "answered" if status == 200 else str(status)))
            packed = f"Content-Encoding: {self.packed}\r\n" if self.packed else ""
            await _send_long(writer, status, content, packed)

    async def _real(self, method: str, path: str, body: str) -> tuple[int, bytes]:
        changed = json.dumps(self.change(json.loads(body))) if body else ""
        if self.upstream:
            url = f"{self.upstream}{path}"
            headers = {"Content-Type": "application/json"}
            reply = await self._client.request(method, url, content=changed, headers=headers)
            return reply.status_code, reply.content
        if path == "/v1/models" and self.loading:
            self.loading -= 1
            return 503, b'{"error": {"message": "Loading model", "code": 503}}'
        if path == "/v1/models":
            return 200, json.dumps({"data": [{"id": name} for name in self.models]}).encode()
        if not path.endswith("/completions"):
            return 404, b'{"detail": "Not Found"}'
        found = self.answer(json.loads(changed))
        status, found = found if isinstance(found, tuple) else (200, found)
        return status, found if isinstance(found, bytes) else json.dumps(found).encode()


def _repeated(headers: dict[str, str], fails: bool) -> tuple[int, bytes]:
    """What a server answers that repeats all headers of the request wherever it can."""
    said = " ".join(headers.values())
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in said)
    if fails:
        return 422, json.dumps({"error": {"message": said, "code": said, "type": said}}).encode()
    call = {"function": {"name": said, "arguments": json.dumps({said: said})}}
    message = {"content": said, "reasoning": said, "tool_calls": [call], "ESCAPED": "ESCAPED"}
    body = {
        "model": said,
        "system_fingerprint": said,
        "choices": [{"message": message, "finish_reason": said}],
    }
    if len(said) % 2:
        message["content"] = None  # what the tool is called with is the reply
    return 200, json.dumps(body).replace("ESCAPED", escaped).encode()


@functools.cache
def _bomb(bits: int) -> bytes:
    """Two MB that unpack to 2 GB: the same block again and again. bits: zlib's form of it."""
    pack = zlib.compressobj(9, wbits=bits)
    head = pack.compress(b"[") + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(b" " * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    return head + block * 2000


async def _harm(writer: asyncio.StreamWriter, fault: str) -> None:
    """Answer in a way of HARM; endless ones until the client has had enough."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    begun = b'{"choices": [{"message": {"content": "'
    if fault == "endless":
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(begun), begun))
        while True:
            writer.write(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
            await writer.drain()
    if fault == "length":
        writer.write(head + b"Content-Length: 1000000000\r\n\r\n" + begun)
        while True:
            writer.write(b"a" * 0x10000)
            await writer.drain()
    if fault == "slow":
        writer.write(head + b"Content-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.2)
    if fault == "headers":
        writer.write(head)
        for number in range(1 << 40):
            writer.write(b"X-%d: y\r\n" % number * 1000)
            await writer.drain()
    await _send_long(writer, 200, *_harmful(fault))


@functools.cache
def _harmful(fault: str) -> tuple[bytes, str]:
    """Make the body of an answer of HARM, and its headers."""
    more, body = "", b""
    if fault.endswith("-bomb"):
        more = f"Content-Encoding: {fault.removesuffix('-bomb')}\r\n"
        body = _bomb(31 if fault == "gzip-bomb" else 15)
    elif fault == "brotli":
        more, body = "Content-Encoding: br\r\n", b"\x1b" * 1000
    elif fault == "nested":
        body = b"[" * 20_000_000
    elif fault == "kept-nested":
        body = b": keep\n" * 1000 + b"[" * 200_000 + b"]" * 200_000
    elif fault == "values":
        body = b'{"choices": [' + b"{}," * 10_000_000 + b"{}]}"
    elif fault == "digits":
        body = b'{"choices": ' + b"1" * 1_000_000 + b"}"
    return body, more


async def _send_long(
    writer: asyncio.StreamWriter, status: int, content: bytes, more: str = ""
) -> None:
    """Send a body bit by bit: the server holds one copy of it, however many ask at a time."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    writer.write(f"HTTP/1.1 {status} X\r\n{kind}{more}\r\n".encode())
    for at in range(0, len(content), 1 << 16):
        writer.write(content[at : at + (1 << 16)])
        await writer.drain()
        await asyncio.sleep(0)  # others have their turn, also where the socket takes all at once


def _send(
    writer: asyncio.StreamWriter,
    status: int,
    content: bytes,
    more: str = "",
    kind: str = "application/json",
) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
    writer.write(f"{head}{more}\r\n".encode() + content)
