"""An OpenAI-compatible server: address, key, dialect, and the meaning of its answers."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import math
import os
import re
import time
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from genprobe.engines import Options, Sampling, _http, short_enough
from genprobe.engines._http import Answer, Times, Trouble
from genprobe.errors import EngineError, GenprobeError, InputError
from genprobe.files import bodies
from genprobe.limits import parsed
from genprobe.records import Failure, Request, Response, canonical

# The same date as in engines that render templates themselves (`_local.TEMPLATE_DATE`).
TEMPLATE_DATE = "26 Jul 2024"
OVERLOADED = (429, 503, 529)
PASSING = (408, 409, 425, 500, 502, 504, 520, 522, 524)
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_LONG = re.compile(
    r"(?i)context[ _](length|window|size)|too long|max(imum)?[ _]model[ _]len|too many tokens"
    r"|context_length_exceeded|exceeds? the (available )?(context|maximum|model)"
)
_LOADING = re.compile(r"(?i)\bload(ing|ed)\b|warming up|cold[ -]?start|starting up")
_USED_UP = re.compile(
    r"(?i)insufficient[ _](quota|balance|funds|credits?)|exceeded your current quota|out of credits"
    r"|credit balance|billing|(per|a) ?-?day|daily|requires more credits"
)
# Parameters of a request that genprobe sets -> the option that sets them.
_OURS = {
    "model": "--model",
    "messages": "--system",
    "prompt": "--data",
    "max_tokens": "--max-tokens",
    "max_completion_tokens": "--max-tokens",
    "temperature": "--temperature",
    "top_p": "--top-p",
    "seed": "--seed",
    "n": "--samples",
    "stream": "nothing: replies come whole",
    "chat_template_kwargs": "--template-arg",
}
_SECRET = re.compile(
    r"(?i)(.*[_-])?(api[_-]?)?(key|token|secret|password|auth|authorization|cookie)"
)
_NAMED = re.compile(r"\$(\w+|\{\w+\})")
# Characters of a secret that is removed wherever a server repeats it. A shorter one, such as the
# "none" and "EMPTY" of servers that want no key, may be a word of a reply.
SECRET = 8


class Way(NamedTuple):
    """One way to set how a model thinks.

    modes: mode -> fields to add to a request, or arguments for a chat template.
    """

    name: str
    modes: Mapping[str, Mapping[str, Any]]

    def put(self, mode: str, tokens: int) -> dict[str, Any]:
        """Return the fields that ask for a mode; {} if this way does not have the mode."""
        return {k: _filled(v, tokens) for k, v in self.modes.get(mode, {}).items()}


def _filled(value: Any, tokens: int) -> Any:
    if isinstance(value, Mapping):
        return {k: _filled(v, tokens) for k, v in value.items()}
    return tokens if value == "{tokens}" else value


@functools.cache
def _data() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "servers.toml").read_text(encoding="utf-8"))


def ways(family: str) -> list[Way]:
    """List the ways to set thinking, in the order of trying. family: `server` or `template`."""
    return [
        Way(row["name"], {k: v for k, v in row.items() if k != "name"}) for row in _data()[family]
    ]


def _of_host(table: str, url: str) -> Any:
    """Find the entry of servers.toml for an address's host or domain; "" if there is none."""
    host = (urlsplit(url).hostname or "").lower()
    found: Mapping[str, Any] = _data()[table]
    return next((v for k, v in found.items() if host == k or host.endswith("." + k)), "")


def answers_to(url: str, model: str, listed: Collection[str]) -> bool:
    """Return whether a host accepts a model name that it does not list (`unlisted`)."""
    kind = _of_host("unlisted", url)
    return kind == "any" or (kind == "suffix" and model.rpartition(":")[0] in listed)


# -- the user's settings ----------------------------------------------------------------------


def address(url: str | None) -> str:
    """Check a base URL and return it without a final slash.

    Raises EngineError if it is not an HTTP address, or contains a user name, password or query.
    """
    if not url:
        raise EngineError("--engine openai needs --base-url, such as http://localhost:8000/v1")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018  # raises ValueError for an invalid port
    except ValueError:
        good = False
    if not good:
        raise EngineError("--base-url is no address; it looks like http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EngineError(
            "--base-url holds a name, password or query; put the key into GENPROBE_API_KEY instead"
        )
    return url.rstrip("/")


def identity_of(url: str) -> str:
    """Normalise an address: host in lower case, one name for this machine, no default port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = "127.0.0.1" if host in _LOCAL else host
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def key_for(url: str, named: str) -> tuple[str, str]:
    """Find the key for a server. Returns (key, environment variable it came from), or ("", "").

    named: the variable that the user names, or "". Without it, GENPROBE_API_KEY is used, else the
    provider's own variable, which servers.toml gives to the provider's hosts alone. Raises
    InputError if the named variable is not set.
    """
    if named:
        if not os.environ.get(named):
            raise InputError(f"--api-key-env {named}: there is no such variable in the environment")
        return os.environ[named], named
    for name in ("GENPROBE_API_KEY", *_of_host("keys", url)):
        if os.environ.get(name):
            return os.environ[name], name
    return "", ""


def _stays_here(url: str) -> bool:
    """Return whether what is sent to an address does not leave this machine."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
        here = address.is_loopback or address.is_unspecified
    except ValueError:
        here = host == "localhost" or host.endswith(".localhost")
    return here and not _http.proxy(url)


def _headers(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Fill in the variables of headers. Returns (headers, secrets in them).

    Raises InputError for a missing variable, or a secret that is written out.
    """
    found, secrets = {}, []
    for name, value in given.items():
        names = [m.group(1).strip("{}") for m in _NAMED.finditer(value)]
        for variable in names:
            if not os.environ.get(variable):
                raise InputError(
                    f"header {name}: there is no variable {variable} in the environment"
                )
            secrets.append(os.environ[variable])
        if not names and _SECRET.fullmatch(name):
            raise InputError(
                f"header {name}: a key on the command line or in a file can be read by others; "
                f"put it into the environment and write $NAME, as in --header '{name}=$NAME'"
            )
        found[name] = _NAMED.sub(lambda m: os.environ[m.group(1).strip("{}")], value)
    return found, secrets


def check_request_args(given: Mapping[str, Any]) -> None:
    """Raise InputError for a parameter that has an option of its own, or looks like a key."""
    for name in given:
        if name in _OURS:
            raise InputError(f"--request-arg {name}: that is set by {_OURS[name]}")
        if _SECRET.fullmatch(name):
            raise InputError(
                f"--request-arg {name}: keys are not given here, where others can read them; set "
                "GENPROBE_API_KEY, or give --header 'NAME=$VARIABLE'"
            )


class Settings(NamedTuple):
    api: str
    times: Times


def settings_of(more: Mapping[str, Any]) -> Settings:
    """Read the settings in `Options.more`. Raises EngineError for an unknown or invalid one."""
    known = ["api", *Times._fields]
    for name, value in more.items():
        if name not in known:
            raise EngineError(
                f"--engine openai has no argument {name!r}; it has {', '.join(known)}; parameters "
                "of the requests are given by --request-arg, and how a model thinks by --thinking"
            )
        if name in Times._fields and (not isinstance(value, int | float) or not value > 0):
            raise EngineError(f"--engine-arg {name}={value}: give seconds, more than 0")
    api = more.get("api", "chat")
    if api not in ("chat", "completions"):
        raise EngineError(f"--engine-arg api={api}: it is chat or completions")
    return Settings(api, Times(**{k: float(v) for k, v in more.items() if k != "api"}))


# -- the server -------------------------------------------------------------------------------


class Server:
    """A server: its address, its dialect of the API, and how to read its answers."""

    def __init__(self, options: Options) -> None:
        self.url, self.note = address(options.base_url), options.note
        settings = settings_of(options.more)
        self.api, self.times = settings
        _, self.key_name = key_for(self.url, options.key_env)
        self.given = dict(options.headers)
        check_request_args(options.request_args)
        self.more = dict(options.request_args)
        self.template_args = dict(options.template_args)
        self.http_key = options.http_key
        self._headers = headers_for(self.url, options.key_env, self.given, self.http_key)
        self.root = self.url.removesuffix("/v1")
        self.model, self.vllm = "", False
        # The dialect. names: our parameter -> the server's name for it, "" if it has none.
        self.names = {"max_tokens": "max_tokens"}
        self.choice = ""  # key of `CHOICES`: how it restricts a reply to options
        self.thinking: dict[str, Any] = {}  # fields of a request that set thinking
        self.positions: int | None = None  # most tokens of prompt and reply, if it says
        self.room = 0  # tokens for a thought, in addition to those of the reply

    def headers(self) -> Mapping[str, str]:
        return self._headers.all()

    def scrub(self, text: str) -> str:
        return self._headers.scrub(text)

    # -- before the first request -----------------------------------------------------------

    def models(self) -> dict[str, Mapping[str, Any]]:
        """Return model name -> the server's description of it; empty if it does not list models."""
        reply = self._loaded(f"{self.url}/models")
        if reply.status in (404, 405, 501):
            if not self.url.endswith("/v1"):
                other = self.look(f"{self.url}/v1/models")
                if other.status == 200:
                    raise EngineError(f"{self.url} has no models; did you mean {self.url}/v1 ?")
            return {}
        if reply.status != 200:
            self.refuse(reply)
        try:
            found = self._json(reply)
            rows = found if isinstance(found, list) else found["data"]  # Together.ai sends a list
            return {str(row["id"])[:200]: row for row in rows or ()}
        except InputError as error:
            raise EngineError(f"{self.url}/models: {error}") from None
        except (ValueError, KeyError, TypeError):
            raise EngineError(
                f"{self.url}/models does not answer as an OpenAI-compatible server does; check "
                "the address, which ends in /v1"
            ) from None

    def _loaded(self, url: str) -> Answer:
        """Repeat a GET request while the server loads its model, up to `total_timeout` seconds."""
        wait, until = _http.BACKOFF, time.monotonic() + self.times.total_timeout
        reply = self.look(url)
        while reply.status == 503 and _LOADING.search(self.words(reply)):
            if wait == _http.BACKOFF:
                self.note(f"waiting: the server is loading the model ({self.words(reply)})")
            if time.monotonic() > until:
                break
            time.sleep(wait)
            wait = min(2 * wait, 30.0)
            reply = self.look(url)
        return reply

    def version(self) -> str:
        """Ask the server for its vLLM version; "" if it is not vLLM's server."""
        with contextlib.suppress(GenprobeError, ValueError, KeyError, TypeError, AttributeError):
            found = self._json(self.look(f"{self.root}/version"))
            if found.keys() == {"version"} and re.fullmatch(r"[\w.+-]{1,60}", found["version"]):
                return str(found["version"])
        return ""

    def _json(self, reply: Answer) -> Any:
        """Parse an answer, and remove the secrets that it repeats. Raises as `Answer.json`."""
        return self._headers.clean(reply.json())

    def look(self, url: str) -> Answer:
        try:
            return _http.get(url, self.headers(), self.times)
        except (InputError, Trouble) as error:
            raise EngineError(f"{url}: {error}") from None
        except (aiohttp.InvalidURL, ValueError):
            raise EngineError("--base-url is no address; it looks like http://host/v1") from None
        except (aiohttp.ClientError, OSError) as error:
            raise EngineError(self.unreachable(error)) from None

    def unreachable(self, error: Exception) -> str:
        cause = getattr(error, "os_error", None)  # aiohttp's message mentions SSL in any case
        number = getattr(cause, "errno", None) or 0
        why = os.strerror(number) if number > 0 else getattr(cause, "strerror", None)
        why = why or self.scrub(str(error)) or type(error).__name__
        return f"{self.url}: no server answers there ({why}); is it running, and the address right?"

    def refuse(self, reply: Answer) -> None:
        """Raise EngineError for an answer after which no other request can succeed."""
        said = self.words(reply)
        if 300 <= reply.status < 400:
            raise EngineError(f"{self.url} redirects to another address; give that address")
        if reply.status in (401, 403):
            given = "the key was refused" if self.key_name else "it wants a key"
            name = self.key_name or "GENPROBE_API_KEY"
            raise EngineError(f"{self.url}: {given}; set {name} ({said})")
        if reply.status == 404:
            raise EngineError(f"{self.url}: not found; check the address and --model ({said})")
        raise EngineError(f"{self.url}: answers {reply.status} ({said})")

    def words(self, reply: Answer) -> str:
        """Return the server's error message."""
        return self._error(reply)[0]

    def _error(self, reply: Answer) -> tuple[str, str]:
        """Read (message, code) of an error, in any of the forms that servers use."""
        code = ""
        try:
            found = self._json(reply)
            found = found[0] if isinstance(found, list) and found else found  # Gemini sends a list
            error = found.get("error", found.get("detail", found))
            said = error
            if isinstance(error, dict):
                said = error.get("message", error)
                inner = error.get("innererror") or error.get("metadata") or {}
                parts = [error.get("code"), error.get("type"), error.get("status")]
                if isinstance(inner, dict):
                    parts += [inner.get("code"), inner.get("raw")]
                code = " ".join(str(part) for part in parts if part)
        except (ValueError, AttributeError, InputError):
            said = reply.text[:500]
        return self.scrub(str(said)) or f"status {reply.status}", code[:500]

    # -- bodies -------------------------------------------------------------------------------

    def body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        """Make the body of a request for a free reply or a choice.

        Every setting is given, so that no default of the server or the model counts.
        """
        body: dict[str, Any] = {"model": self.model, "stream": False}
        if self.api == "chat":
            body["messages"] = request.messages
        else:
            body["prompt"] = "\n".join(m["content"] for m in request.messages)
        given: dict[str, Any] = {
            "max_tokens": sampling.max_tokens + self.room,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.temperature else 1.0,
            "seed": request.seed,
            "n": 1,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }
        if request.decode == "choice":
            texts = [text for options in request.options.values() for text in options]
            form = CHOICES[self.choice]
            given["max_tokens"] = longest(texts) + form.more + self.room
            body |= form.put(texts)
        if self.vllm:
            body |= {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
        for name, value in given.items():
            if name := self.names.get(name, name):
                body[name] = value
        body = merged(body, self.thinking)
        if kwargs := self.kwargs():
            body = merged(body, {"chat_template_kwargs": kwargs})
        return merged(body, self.more)

    def kwargs(self) -> dict[str, Any]:
        """Return the arguments of the chat template other than those about thinking."""
        if self.api != "chat":
            return {}
        return ({"date_string": TEMPLATE_DATE} if self.vllm else {}) | self.template_args

    def reading(self, rows: Sequence[Sequence[int]], echo: bool = False) -> str:
        """Return the body of a request for the log-probability of every token of given texts.

        rows: token ids of each text. By default vLLM's `prompt_logprobs` is used; 0 asks for no
        alternative tokens, and the text's own token is always included. echo: use `echo` with
        `logprobs`, as in the first completions API: the text is returned with its values.
        """
        told: dict[str, Any] = {"echo": True, "logprobs": 1} if echo else {"prompt_logprobs": 0}
        body = {"model": self.model, "prompt": rows, "max_tokens": 1, "temperature": 0.0, **told}
        return canonical(body)

    @property
    def path(self) -> str:
        return "/chat/completions" if self.api == "chat" else "/completions"

    # -- answers ------------------------------------------------------------------------------

    def check(self, reply: Answer) -> dict[str, Any]:
        """Return the body of a good answer; {"filtered": message} if a filter rejected the prompt.

        Raises Trouble if another attempt may help, InputError if the answer holds too much,
        EngineError if the run must end.
        """
        status = reply.status
        if status == 200:
            try:
                found = self._json(reply)
            except ValueError:
                kind = self.scrub(reply.headers.get("content-type", "no type"))
                raise Trouble("broken-reply", f"status 200 without JSON ({kind})") from None
            if not isinstance(found, dict):
                raise Trouble("broken-reply", "status 200 with another JSON than an object")
            error = found.get("error")
            if not error and (choices := found.get("choices")):
                first = choices[0] if isinstance(choices, list) else None
                error = first.get("error") if isinstance(first, dict) else None
            if not error:
                return found
            # OpenRouter and some proxies send errors with status 200.
            code = error.get("code") if isinstance(error, dict) else None
            status = code if type(code) is int and 400 <= code < 600 else 500
            reply = Answer(status, reply.headers, canonical({"error": error}).encode("ascii"))
        said, code = self._error(reply)
        if bodies.blocked(status, said, code):
            return {"filtered": said}
        if status in (402, *OVERLOADED):
            wait = _http.retry_after(reply.headers.get("retry-after"))
            self._quota(status, said, code, wait)
            if status == 503 and _LOADING.search(said):
                raise Trouble("loading", said, down=True, wait=wait)
            raise Trouble(f"http-{status}", said, lowers=True, wait=wait)
        if status in PASSING:
            raise Trouble(f"http-{status}", said, down=bool(_LOADING.search(said)))
        if status in (400, 413, 422):
            long = _LONG.search(f"{code} {said}")
            raise Trouble("too-long" if long else f"http-{status}", said, passes=False)
        self.refuse(reply)
        raise AssertionError

    def _quota(self, status: int, said: str, code: str, wait: float | None) -> None:
        """Raise EngineError if the quota is used up, or the wait is longer than the time limit."""
        if wait is not None and wait > self.times.total_timeout:
            raise EngineError(
                f"{self.url}: asks to wait {wait:.0f} s ({said}); run the same command later to "
                "resume"
            )
        short = wait is not None or re.search(r"(?i)(per|a) ?-?minute|(retry|try again) in", said)
        if status == 402 or (_USED_UP.search(f"{code} {said}") and not short):
            raise EngineError(
                f"{self.url}: the quota is used up ({said}); run the same command to resume when "
                "there is quota again"
            )

    def response(
        self, request: Request, sent: str, asked: Mapping[str, Any], found: Mapping[str, Any]
    ) -> Response | Failure:
        """Turn the body of an answer into a record. Raises Trouble if it contains no reply."""
        if "filtered" in found:
            return Response(request.id, "", bodies.FILTERED, sent, None, None)
        try:
            said = bodies.said(found)
        except (LookupError, TypeError, AttributeError):
            raise Trouble("broken-reply", "status 200 without a reply in it") from None
        if said.finish.lower() in bodies.BROKEN:
            raise Trouble("broken-reply", f"broke off, finish reason {said.finish!r}")
        text = said.text
        if text is None:
            # For an empty reply, some servers send "" and others null.
            ended = said.finish in ("stop", "length")
            if not ended and said.reasoning is None and said.reasoning_from == "":
                detail = f"no text, finish reason {said.finish!r}"
                return Failure(request.id, "no-text", detail, 1)
            text = ""
        where = said.reasoning_from
        new = asked.get(self.names["max_tokens"])
        if (
            self.vllm
            and new is not None
            and said.finish == "length"
            and said.tokens_out is not None
            and said.tokens_out < new
        ):
            detail = f"{said.tokens_in} tokens of prompt and {new} of reply are more than it has"
            return Failure(request.id, "too-long", detail, 1)
        if request.decode == "choice" and said.finish not in (bodies.FILTERED, bodies.REFUSED):
            if where == "hidden" and not text.strip() and said.finish == "length":
                return Failure(request.id, "unfinished", "cut off inside a hidden thought", 1)
            text = CHOICES[self.choice].read(text)
            if all(text not in o for o in request.options.values()):
                detail = f"the reply is no option: {text[:80]!r}"
                return Failure(request.id, "unconstrained", detail, 1)
        response = Response(
            request=request.id,
            text=text,
            finish=said.finish,
            sent=sent,
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            reasoning=said.reasoning,
            reasoning_from=where,
            reasoning_tokens=said.reasoning_tokens,
            model=said.model,
            fingerprint=said.fingerprint,
        )
        return short_enough(response)  # before the next answer is read

    def readings(
        self, rows: Sequence[Sequence[int]], found: Mapping[str, Any], echo: bool = False
    ) -> list[list[float]]:
        """Read the answer to `reading`: log P of each token of each row but the first."""
        try:
            choices = sorted(found["choices"], key=lambda c: c["index"])
            if echo:
                return [
                    _echoed(row, choice["logprobs"])
                    for row, choice in zip(rows, choices, strict=True)
                ]
            return [
                [
                    _logprob(at[str(token)]["logprob"])
                    for token, at in zip(row[1:], choice["prompt_logprobs"][1:], strict=True)
                ]
                for row, choice in zip(rows, choices, strict=True)
            ]
        except (KeyError, TypeError, ValueError, OverflowError):
            what = "the log-probabilities of its prompt" if echo else "prompt_logprobs"
            raise Trouble("broken-reply", f"status 200 without {what}") from None


def _echoed(row: Sequence[int], told: Mapping[str, Any]) -> list[float]:
    """Read the log-probability of each token of an echoed text but the first.

    One generated token may follow the text. Raises ValueError if the number of tokens differs from
    what was sent.
    """
    values = told["token_logprobs"]
    if not len(row) <= len(values) <= len(row) + 1:
        raise ValueError("not the tokens that were sent")
    return [_logprob(value) for value in values[1 : len(row)]]


def _logprob(value: Any) -> float:
    """Read a log-probability. Raises ValueError, TypeError or OverflowError if it is none."""
    if math.isnan(number := float(value)):
        raise ValueError("not a number")
    return number


class _Hidden:
    """Headers with secrets in them, which `repr` does not show."""

    def __init__(self, given: dict[str, str], secrets: list[str], key: str, url: str) -> None:
        self._all = {"Authorization": f"Bearer {key}"} if key else {}
        if key and (name := _of_host("key_headers", url)):
            self._all[name] = key
        names = {name.lower() for name in given}
        self._all = {k: v for k, v in self._all.items() if k.lower() not in names} | given
        self._secrets = sorted({s for s in (key, *secrets) if s}, key=len, reverse=True)
        long = "|".join(re.escape(s) for s in self._secrets if len(s) >= SECRET)
        self._repeated = re.compile(long, re.IGNORECASE) if long else None

    def all(self) -> dict[str, str]:
        return self._all

    def __repr__(self) -> str:
        return "<key>"

    def clean(self, value: Any) -> Any:
        """Remove the secrets of at least SECRET characters from a text, or from all of a JSON."""
        if self._repeated is None:
            return value
        if isinstance(value, str):
            return self._repeated.sub("<key>", value)
        if isinstance(value, list):
            return [self.clean(one) for one in value]
        if isinstance(value, dict):
            return {self.clean(name): self.clean(one) for name, one in value.items()}
        return value

    def scrub(self, text: str) -> str:
        """Put a server's message on one line of at most 200 characters, without secrets."""
        text = self.clean(text)
        for secret in self._secrets:
            text = text.replace(secret, "<key>")
        text = re.sub(r"(?i)bearer\s+\S+|\bsk-[\w*-]{6,}", "<key>", text)
        text = " ".join(text.split())
        return text if len(text) <= 200 else text[:199] + "…"


def headers_for(url: str, key_env: str, given: Mapping[str, str], http_key: bool) -> _Hidden:
    """Make the headers of a request, with keys from the environment.

    http_key: a secret may also go to another machine over http, where others can read it. Raises
    InputError as `key_for` does, for a missing variable, and for such a secret.
    """
    key, name = key_for(url, key_env)
    found, secrets = _headers(given)
    if urlsplit(url).scheme == "http" and not http_key and not _stays_here(url):
        sent = [f"the key of {name}"] * bool(name)
        sent += [f"header {name}" for name, value in given.items() if _NAMED.search(value)]
        if sent:
            raise InputError(
                f"{url}: over http others can read {' and '.join(sent)} on the way; use https, "
                "name another key with --api-key-env, or give --allow-http-key"
            )
    return _Hidden(found, secrets, key, url)


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two objects, also nested ones. If both have a value, the second one is used."""
    found = dict(one)
    for name, value in other.items():
        inner = found.get(name)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[name] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return found


# -- choices ----------------------------------------------------------------------------------


class Choice(NamedTuple):
    """A way to constrain a reply to one of several texts.

    more: tokens needed in addition to those of the text. wraps: whether the text is inside JSON.
    """

    name: str
    more: int
    wraps: bool

    def put(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the parameters that constrain a reply to one of the texts."""
        options = list(texts)
        schema = {"type": "string", "enum": options}
        wrapped = {
            "type": "object",
            "properties": {"answer": schema},
            "required": ["answer"],
            "additionalProperties": False,
        }
        alternatives = " | ".join(_gbnf(text) for text in options)
        forms: dict[str, dict[str, Any]] = {
            "structured_outputs": {"structured_outputs": {"choice": options}},
            "guided_choice": {"guided_choice": options},
            "regex": {"regex": "|".join(re.escape(text) for text in options)},
            "grammar": {"grammar": f"root ::= {alternatives}"},
            "json_schema": {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": True, "schema": wrapped},
                }
            },
            "format": {"format": wrapped},
        }
        return forms[self.name]

    def read(self, text: str) -> str:
        """Return the option in a reply; the whole reply if it contains none."""
        if not self.wraps:
            return text
        with contextlib.suppress(ValueError):
            found = parsed(text)
            if isinstance(found, dict) and isinstance(found.get("answer"), str):
                return str(found["answer"])
        return text


def _gbnf(text: str) -> str:
    """Quote a text for llama.cpp's grammars."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# The ways to restrict a reply to options, in the order of trying. A server may ignore one that it
# does not know, and answer with status 200.
CHOICES = {
    choice.name: choice
    for choice in (
        Choice("structured_outputs", 1, False),  # vLLM
        Choice("guided_choice", 1, False),  # vLLM before 0.12
        Choice("regex", 1, False),  # SGLang
        Choice("grammar", 1, False),  # llama.cpp
        Choice("json_schema", 24, True),  # OpenAI, Ollama, LM Studio, TGI, OpenRouter, Mistral
        Choice("format", 24, True),  # Ollama
    )
}
CHOICES[""] = CHOICES["structured_outputs"]  # before the server was tested


def longest(texts: Iterable[str]) -> int:
    """Return the most tokens that any of the texts can have: its bytes, by any tokenizer."""
    return max(len(text.encode("utf-8", "surrogatepass")) for text in texts)
