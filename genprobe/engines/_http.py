"""Send many requests at once to one server, adapted to its speed; retry after temporary trouble.

Not an engine (the name begins with an underscore). It does not depend on what is asked. No server
can fill the memory: bodies are read in parts, unpacked here, and refused beyond `genprobe.limits`.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import functools
import re
import ssl
import time
import urllib.request
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import aiohttp
import tenacity

from genprobe.errors import EngineError, InputError
from genprobe.limits import TooMuch, exceeded, limit, parsed
from genprobe.records import Failure

MOST = 512  # requests in flight
BEGIN = 16  # requests in flight at first
ATTEMPTS = 8
BACKOFF = 0.5  # seconds before the second attempt; doubles, with jitter, up to 30
GAIN = 1.05  # a higher limit is kept if it multiplies the replies a second by this
AGAIN = 32  # rounds of replies before a higher limit is tried again
KEEP = 15.0  # seconds for which an idle connection is kept open
PART = 1 << 16  # bytes of a body that are read, and unpacked, at a time
WEIGHT = 8  # bytes of memory for a byte of a body: as text, up to 4 a character, twice

# What a server may send before its answer, to keep the connection alive.
_KEPT = re.compile(rb"(?:\s++|:[^\r\n]*+)++")

T = TypeVar("T")


class Times(NamedTuple):
    """Time limits in seconds.

    connect_timeout: to connect. read_timeout: between two bytes of an answer. total_timeout: for
    a request with all its attempts, and for the last of them.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    total_timeout: float = 600.0


class Answer(NamedTuple):
    """A server's answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes | bytearray

    def json(self) -> Any:
        """Parse the body as JSON.

        Lines before it that begin with a colon, sent to keep the connection alive, are skipped.
        Raises ValueError if it is not JSON, InputError if it holds too much to be an answer.
        """
        try:
            try:
                return parsed(self.content)
            except TooMuch:
                raise
            except ValueError:
                if not (kept := _KEPT.match(self.content)):
                    raise
                return parsed(self.content[kept.end() :])
        except TooMuch as error:
            raise InputError(f"the answer: {error}") from None

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


class Trouble(Exception):
    """A request that went wrong.

    passes: it may succeed later; lowers: fewer requests at once would help; down: the server is
    not available yet; wait: seconds that the server asked to wait.
    """

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


def retry_after(value: str | None) -> float | None:
    """Read a Retry-After header (RFC 9110, 10.2.3), a number or a date, as seconds from now."""
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


@functools.cache
def _trust() -> ssl.SSLContext:
    """Load the system's certificates and, if it is installed, those of certifi.

    A container may have none of its own. Loading takes a tenth of a second, so it is done once.
    """
    context = ssl.create_default_context()
    try:
        import certifi
    except ImportError:
        return context
    context.load_verify_locations(certifi.where())
    return context


def proxy(url: str) -> str | None:
    """Find the proxy that the environment names for an address (HTTPS_PROXY, NO_PROXY, …)."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def session(url: str, times: Times) -> aiohttp.ClientSession:
    """Make a session for requests to one server. Call it inside a running event loop."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,  # `Gate` limits them
            keepalive_timeout=KEEP,
            ssl=_trust() if url.startswith("https:") else False,
        ),
        timeout=aiohttp.ClientTimeout(
            total=times.total_timeout,
            sock_connect=times.connect_timeout,
            sock_read=times.read_timeout,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "gzip, deflate"},
        auto_decompress=False,  # `read` unpacks, as far as the limit
        read_bufsize=PART // 2,
        max_headers=limit("headers"),
    )


def large() -> asyncio.Semaphore:
    """Let in so many bodies longer than PART at a time as the limit `flight` has room for."""
    return asyncio.Semaphore(max(1, limit("flight") // (WEIGHT * limit("body"))))


async def read(
    reply: aiohttp.ClientResponse, large: asyncio.Semaphore, turn: contextlib.AsyncExitStack
) -> Answer:
    """Read an answer in parts and unpack it.

    large: taken once it is longer than PART, and kept until `turn` ends: what is made of a long
    answer takes more memory than its body.

    Raises InputError beyond the limit `body`, Trouble if the body cannot be unpacked.
    """
    most = limit("body")
    if (reply.content_length or 0) > most:
        raise exceeded("the answer", "body")
    body = bytearray()
    async for piece in _unpacked(reply):
        if len(body) <= PART < len(body) + len(piece):
            await turn.enter_async_context(large)
        body += piece
        if len(body) > most:
            body.clear()  # the error's traceback holds it
            raise exceeded("the answer", "body")
        if len(body) > PART:
            await asyncio.sleep(0)  # unpacking need not wait, and others want their turn
    return Answer(reply.status, reply.headers, body)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise InputError within a `with` block when aiohttp refuses the headers of an answer."""
    try:
        yield
    except aiohttp.ClientResponseError as error:
        if error.message.startswith(("Too many headers", "Got more than")):
            raise exceeded("the answer", "headers") from None
        raise


async def _unpacked(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield a body in pieces of at most PART bytes, without its gzip or deflate.

    Nothing else is asked for, so nothing else is unpacked. Raises as `read`.
    """
    packed = reply.headers.get("Content-Encoding", "").strip().lower()
    if packed in ("", "identity"):
        async for part in reply.content.iter_chunked(PART):
            yield part
        return
    if packed not in ("gzip", "x-gzip", "deflate"):
        raise Trouble("broken-reply", "packed in another way than gzip or deflate", passes=False)
    unpack, taken = None, 0
    async for part in reply.content.iter_chunked(PART):
        taken += len(part)
        if taken > limit("body"):  # a stream of empty blocks
            raise exceeded("the answer", "body")
        if unpack is None:
            bare = packed == "deflate" and part[0] & 15 != 8  # as some servers understand deflate
            unpack = zlib.decompressobj(
                -zlib.MAX_WBITS if bare else zlib.MAX_WBITS + 32  # 32: gzip or zlib
            )
        try:
            while True:
                piece = unpack.decompress(part, PART)
                yield piece
                part = unpack.unconsumed_tail
                if not part and len(piece) < PART:
                    break
        except zlib.error:
            raise Trouble("broken-reply", f"no {packed}, as which it was sent") from None
        if unpack.unused_data:
            raise Trouble("broken-reply", f"more after its {packed}")
    if unpack is not None and not unpack.eof:
        raise Trouble("broken-reply", f"its {packed} ends too early")


async def _get(url: str, headers: Mapping[str, str], times: Times) -> Answer:
    times = times._replace(
        read_timeout=times.connect_timeout,
        total_timeout=min(times.total_timeout, times.read_timeout),
    )
    async with session(url, times) as client:
        with limited():
            async with (
                contextlib.AsyncExitStack() as turn,
                client.get(url, headers=headers, allow_redirects=False, proxy=proxy(url)) as reply,
            ):
                return await read(reply, large(), turn)


def get(url: str, headers: Mapping[str, str], times: Times) -> Answer:
    """Send one GET request.

    Raises aiohttp.ClientError, TimeoutError, Trouble or ValueError if it fails, InputError if the
    answer is too large.
    """
    return apart(lambda: asyncio.run(_get(url, headers, times)))


def apart(work: Callable[[], T]) -> T:
    """Run a function in a new thread, since a notebook's thread already has an event loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


class Gate:
    """Limit how many requests are in flight.

    As long as all goes well, the limit doubles after each round of replies, until that brings no
    more replies a second (a server that answers four at a time would only queue the rest); every
    AGAIN rounds a higher limit is tried again. Trouble halves the limit; after that, each round of
    good answers raises it by one (AIMD, as in TCP).
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(min(most, BEGIN))
        self.inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut_at = self._open_at = 0.0
        self._troubled = False
        self._best = (0.0, self.limit)  # replies a second, and the limit at which they came
        self._rounds = 0  # rounds since a higher limit was last tried
        self._doubts = 0
        self._count, self._seconds, self._changed = 0, 0.0, 0.0  # of the current round

    async def enter(self) -> float:
        """Wait until one more request may be sent. Returns the time of `time.monotonic()`."""
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
        self._admit()

    def _admit(self) -> None:
        for _ in range(int(self.limit) - self.inside):
            while self._waiting:
                place = self._waiting.popleft()
                if not place.done():
                    place.set_result(None)
                    break

    def good(self, since: float = 0.0) -> None:
        """Count a good answer to a request that was let in at `since`."""
        if self._troubled:
            self.limit = min(self.most, self.limit + 1 / self.limit)
        elif self._waiting and since >= self._changed:  # let in at this limit, which is used up
            self._count += 1
            if self._count > 0:
                self._seconds += time.monotonic() - since
            if self._count >= max(8, self.limit):
                # Little's law: replies a second = requests in flight / mean seconds of each.
                self._judge(self.limit * self._count / max(1e-9, self._seconds))

    def _judge(self, rate: float) -> None:
        """Raise or lower the limit by how many replies a second the last round brought."""
        best, level = self._best
        higher = self.limit > level
        if higher and rate < GAIN * best:
            self._doubts += 1
            if self._doubts > 1:  # twice, as a round can be slow for another reason
                self.limit, self._rounds, self._doubts = level, 0, 0
        else:
            self._rounds = 0 if higher else self._rounds + 1
            self._best, self._doubts = (rate, self.limit), 0
            if best == 0.0 or higher or self._rounds >= AGAIN:
                self.limit, self._rounds = min(self.most, 2 * self.limit), 0
        # The first replies at a new limit still come from a server loaded at the old one.
        self._count = -int(self.limit)
        self._seconds, self._changed = 0.0, time.monotonic()
        self._admit()

    def bad(self, since: float) -> None:
        """Halve the limit, once for all requests that were in flight together."""
        if since > self._cut_at:
            self._troubled = True
            self.limit = max(1.0, self.limit / 2)
            self._cut_at = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Let no request in for `seconds`."""
        self._open_at = max(self._open_at, time.monotonic() + seconds)


class Speaker(Protocol):
    """A server: its address, the meaning of its answers, and its error messages."""

    url: str
    times: Times

    def headers(self) -> Mapping[str, str]: ...
    def check(self, answer: Answer) -> dict[str, Any]: ...
    def scrub(self, text: str) -> str: ...
    def unreachable(self, error: Exception) -> str: ...


class Work:
    """The connection and limits shared by the requests of one call. most: requests in flight."""

    def __init__(self, server: Speaker, most: int) -> None:
        self.server, self.gate = server, Gate(most)
        self.heard = time.monotonic()  # time of the server's last answer
        self._over: EngineError | None = None
        self._session: aiohttp.ClientSession | None = None
        self._large = large()
        self._headers = {**server.headers(), "Content-Type": "application/json"}
        self._proxy = proxy(server.url)

    async def post(self, url: str, body: str) -> dict[str, Any]:
        """Send a request once and return the body of a good answer.

        Raises Trouble if the request failed, EngineError if the run must end.
        """
        if self._session is None:
            self._session = session(self.server.url, self.server.times)
        since = await self.gate.enter()
        times = self.server.times
        if self._over:
            self.gate.leave()
            raise self._over
        try:
            with limited():
                async with (
                    contextlib.AsyncExitStack() as turn,
                    self._session.post(
                        url,
                        data=body.encode("ascii"),
                        headers=self._headers,
                        allow_redirects=False,
                        proxy=self._proxy,
                    ) as reply,
                ):
                    found = self._checked(await read(reply, self._large, turn))
        except EngineError as error:
            self._over = error  # no other request can succeed
            raise
        except InputError as error:  # of `read`
            raise Trouble("too-large", str(error), passes=False) from None
        except Trouble as trouble:
            if trouble.lowers:
                self.gate.bad(since)
                self.gate.pause(trouble.wait or 0.0)
            raise
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            if time.monotonic() - self.heard > times.total_timeout:
                line = self.server.unreachable(error)
                self._over = EngineError(f"{line} Run the same command again to resume.")
                raise self._over from None
            raise Trouble("unreachable", type(error).__name__, down=True) from None
        except TimeoutError as error:
            self.gate.bad(since)
            slow = not isinstance(error, aiohttp.SocketTimeoutError)
            most = times.total_timeout if slow else times.read_timeout
            raise Trouble("timeout", f"no {'whole ' * slow}answer in {most:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            said = self.server.scrub(str(error)) or type(error).__name__
            raise Trouble("broken-reply", said) from None
        finally:
            self.gate.leave()
        if self.heard - since > times.read_timeout / 2:
            self.gate.bad(since)
        else:
            self.gate.good(since)
        return found

    def _checked(self, answer: Answer) -> dict[str, Any]:
        """Check an answer. Raises as `post`; the errors do not keep the answer in memory."""
        self.heard = time.monotonic()
        try:
            return self.server.check(answer)
        except InputError as error:
            trouble = Trouble("too-large", str(error), passes=False)
        except Trouble as error:
            trouble = error.with_traceback(None)
            trouble.__context__ = None
        del answer
        raise trouble

    async def persist(self, request: str, once: Callable[[], Awaitable[Any]]) -> Any:
        """Call `once` until it succeeds. Returns its result, or a Failure if none succeeds."""
        begun = time.monotonic()
        try:
            return await once()
        except Trouble as trouble:
            first: Trouble | None = trouble
        attempts = refusals = 0

        def stop(state: tenacity.RetryCallState) -> bool:
            trouble = state.outcome.exception() if state.outcome else None
            late = time.monotonic() - begun > self.server.times.total_timeout
            if isinstance(trouble, Trouble) and trouble.down:
                # `post` ends the run if the server stays unreachable for too long.
                return late and trouble.kind != "unreachable"
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
                        if first is not None:  # the failure above counts as the first attempt
                            again, first = first, None
                            raise again
                        return await once()
                    except Trouble as trouble:
                        refusals += trouble.down
                        raise
        except Trouble as trouble:
            return Failure(request, trouble.kind, trouble.detail, attempts)
        raise AssertionError

    async def end(self, tasks: Iterable[asyncio.Task[Any]] = ()) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()


def _backoff(state: tenacity.RetryCallState) -> float:
    """Compute the wait before the next attempt: doubled each time, with jitter."""
    doubled = tenacity.wait_exponential(multiplier=BACKOFF, max=30)(state)
    return doubled + tenacity.wait_random(0, BACKOFF)(state)
