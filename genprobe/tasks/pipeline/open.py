"""Open the engine for a model, a server, or a file of recorded replies."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from genprobe.engines import Options, Thinking, control
from genprobe.engines.control import thoughts
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.resources import models, registry

SCORER = "open_scorer"  # the function of an engine module that opens a scorer


def engine_options(
    arguments: Sequence[str] | Mapping[str, Any] = (),
    base_url: str | None = None,
    concurrency: int | None = None,
) -> Options:
    """Parse `KEY=VALUE` texts into options. A value is read as JSON if possible, else as text.

    arguments: texts, or names and values already parsed. Raises InputError for another form, a name
    that is given twice, or one that looks like a secret.
    """
    known = {"dtype": str, "device": str, "revision": str, "batch_tokens": int}
    found: dict[str, Any] = {}
    if isinstance(arguments, Mapping):
        arguments = [f"{name}={json.dumps(value)}" for name, value in arguments.items()]
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--engine-arg {argument!r} is not KEY=VALUE")
        if name in found:
            raise InputError(f"--engine-arg {name} is given twice")
        if name in ("api_key", "key", "token", "hf_token", "password"):
            raise InputError(
                f"--engine-arg {name}: keys are not given here, where others can read them; "
                "set GENPROBE_API_KEY (a server) or log in with `hf auth login` (the hub)"
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
        if name in known and type(found[name]) is not known[name]:
            if known[name] is not str:
                raise InputError(f"--engine-arg {argument!r}: {name} must be a whole number")
            found[name] = text
    if found.get("batch_tokens", 1) < 1:
        raise InputError(f"--engine-arg batch_tokens={found['batch_tokens']}: give at least 1")
    ours = {name: found.pop(name) for name in known if name in found}
    return Options(**ours, base_url=base_url, concurrency=concurrency, more=found)


def told(options: Options, given: dict[str, Any]) -> Options:
    """Add the options about thinking, templates, headers, parameters and keys.

    They are removed from `given`. Raises InputError for a malformed value.
    """
    mode, tokens = given.pop("thinking", None), given.pop("think_tokens", None)
    return dataclasses.replace(
        options,
        thinking=Thinking(mode or "default", tokens),
        template_args=_pairs("--template-arg", given.pop("template_args", ())),
        request_args=_pairs("--request-arg", given.pop("request_args", ()), strict=True),
        headers=_pairs("--header", given.pop("headers", ()), plain=True),
        key_env=given.pop("key_env", None) or "",
        http_key=given.pop("http_key", False),
    )


def _pairs(
    option: str,
    arguments: Sequence[str] | Mapping[str, Any],
    strict: bool = False,
    plain: bool = False,
) -> dict[str, Any]:
    """Parse NAME=VALUE texts. Values are read as JSON if possible, else as text.

    arguments: texts, or names and values already parsed. strict: they must be JSON. plain: they are
    always text.
    """
    if isinstance(arguments, Mapping):
        return dict(arguments)
    found: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        name = name.strip()
        if not equals or not name:
            # The text is not repeated in the message, because it may be a key.
            raise InputError(f"{option} needs NAME=VALUE, such as {_SUCH[option]}")
        if name in found:
            raise InputError(f"{option} {name} is given twice")
        found[name] = text
        if not plain:
            try:
                found[name] = json.loads(text)
            except ValueError:
                if strict:
                    raise InputError(
                        f"{option} {name}: the value is not JSON; put a text in quotes, such as "
                        f"{_SUCH[option]}"
                    ) from None
    return found


_SUCH = {
    "--template-arg": "enable_thinking=false",
    "--request-arg": """'service_tier="flex"'""",
    "--header": "'X-Title=$TITLE'",
}


def system_text(given: str | None) -> str:
    """Return a system prompt, read from the file if it is @FILE.

    Raises InputError if that fails.
    """
    if not given or not given.startswith("@"):
        return given or ""
    try:
        text = door.content(door.expanded(given[1:])).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not in UTF-8"
        raise InputError(f"--system {given}: cannot be read ({reason})") from None
    if not text:
        raise InputError(f"--system {given}: the file is empty")
    return text


def served(engine: str, model: str | None, options: Options) -> Options:
    """Return the options with the server of OPENAI_BASE_URL, if it is to be used.

    It is used if the user names no other server, and no model on this machine or the hub.
    """
    url = os.environ.get("OPENAI_BASE_URL")
    if not url or options.base_url:
        return options
    if engine not in ("auto", "openai"):
        why = f"because of --engine {engine}"
        options.note(Caution(f"OPENAI_BASE_URL is set but not used, {why}"))
        return options
    if engine == "auto" and model is not None:
        with contextlib.suppress(InputError):
            models.resolve(model)
            options.note(
                Caution(
                    f"OPENAI_BASE_URL is set but not used, because {model} is on this machine or "
                    "the hub; give --base-url to ask that server"
                )
            )
            return options
    options.note(Caution("asking the server of OPENAI_BASE_URL; unset it to ask another"))
    return dataclasses.replace(options, base_url=url)


def control_folder(options: Options) -> Path:
    """Return the folder of the control model, or of its thinking variant if thinking is on."""
    asked = options.thinking.mode not in ("default", "off")
    return thoughts.MODEL if asked else control.MODEL


def control_room(options: Options) -> int | None:
    """Return the default number of tokens for a thought of the control model.

    Some of its thoughts never end, so more tokens would only take longer.
    """
    if control_folder(options) == control.MODEL:
        return None
    return options.thinking.tokens or thoughts.THINK_TOKENS


def is_control(model: str | None, options: Options) -> bool:
    """Return whether the control model is used, because neither model nor server is named."""
    return model is None and options.base_url is None


def open_engine(engine: str, model: str | None, options: Options, scores: bool = False) -> Any:
    """Open an engine; close it after use.

    engine: a name, or `auto` for the one that fits model and machine. model: alias, hub id or
    folder; None is the control model, or a server's only one. scores: open a scorer of texts
    (`engines.scoring.Scorer`), not an `engines.Engine`. Raises InputError or EngineError.
    """
    names = registry.names("engines")
    if engine not in ("auto", *names):
        raise registry.unknown("engine", engine, ["auto", *names])
    if scores and engine != "auto" and not hasattr(registry.module("engines", engine), SCORER):
        raise InputError(f"engine {engine!r} gives no log-probabilities of texts; leave it out")
    if engine == "replay":  # its model is a file or folder, not a model's name
        if model is None:
            raise InputError("replay needs --model: the run folder or the file with the recordings")
        return _open(engine, model, options, scores)
    if is_control(model, options) and not (scores and engine == "openai"):
        return _open_control("transformers" if engine == "auto" else engine, options, scores)
    known = _resolved(model, options)
    if not scores:
        if known.kind == "masked":
            raise InputError(
                f"{model} is a masked model, which writes no replies; name an instruct model "
                "(`genprobe list models`)"
            )
        if known.kind == "base":
            options.note(
                Caution(f"{model} is a base model: it continues the question as plain text")
            )
    options = dataclasses.replace(
        options,
        base_url=options.base_url or known.base_url or None,
        revision=options.revision or known.revision or None,
        dtype=options.dtype or known.dtype or None,
        headers=_headers(known, options),
        key_env=options.key_env or _key_env(known, options),
        name=model or "",
    )
    why = ""
    if scores:
        engine = ("openai" if options.base_url else "transformers") if engine == "auto" else engine
        if options.base_url and engine != "openai":
            raise InputError(
                f"--engine {engine} cannot ask the server of --base-url; leave one of them out"
            )
    else:
        options = dataclasses.replace(options, more={**known.engine_args, **options.more})
        if engine == "auto":
            engine, why = (known.engine, "") if known.engine else _choose(known, options)
    found = _open(engine, known.id, options, scores)
    # The catalogue says which models follow instructions without a template (mT0).
    if not scores and not known.kind and found.identity.chat_template == "none":
        line = "has no chat template: it is given the question as plain text, as a base model is"
        options.note(Caution(f"{model} {line}"))
    if why:
        options.note(f"engine: {engine} ({why})")
    return found


def _own_server(known: models.Model, options: Options) -> bool:
    """Return whether the server is the one for which a model's headers and key are meant."""
    url = options.base_url or known.base_url
    return bool(url) and url.rstrip("/") == known.base_url.rstrip("/")


def _headers(known: models.Model, options: Options) -> dict[str, str]:
    """Join a model's headers with those of the command line, which take precedence."""
    given = {name.lower() for name in options.headers}
    own = known.headers if _own_server(known, options) else {}
    return {n: v for n, v in own.items() if n.lower() not in given} | dict(options.headers)


def _key_env(known: models.Model, options: Options) -> str:
    own = _own_server(known, options) or not known.base_url
    return known.api_key_env if own else ""


def need_one_host(asked: Iterable[tuple[str | None, Options]]) -> None:
    """Raise InputError if a secret that is given once would go to several servers.

    Two ports of a host are two servers, which may be of two users.

    asked: each model, and the options with which it is opened.
    """
    hosts: dict[tuple[str, str], set[str]] = {}  # (what is sent, the cure) -> hosts and ports
    for model, options in asked:
        known = models.Model("", "")
        with contextlib.suppress(InputError):
            known = _resolved(model, options)
        url = options.base_url or known.base_url
        host = urlsplit(url).netloc.lower().rpartition("@")[2]
        if not host:
            continue
        secrets = [
            (f"--header {name}", f"headers = {{ {name} = {json.dumps(value)} }}")
            for name, value in options.headers.items()
            if "$" in value
        ]
        if options.key_env:
            how = f"api_key_env = {json.dumps(options.key_env)}"
            secrets.append((f"--api-key-env {options.key_env}", how))
        elif os.environ.get("GENPROBE_API_KEY") and not _key_env(known, options):
            secrets.append(("GENPROBE_API_KEY", 'api_key_env = "NAME"'))
        for secret in secrets:
            hosts.setdefault(secret, set()).add(host)
    for (what, how), found in hosts.items():
        if len(found) > 1:
            several = " and ".join(sorted(found))
            raise InputError(
                f"{what}: a secret goes to one server, and the models are on {several}; give each "
                f"its own in the file of models: {how}"
            )


def _open(engine: str, model: str, options: Options, scores: bool) -> Any:
    module = registry.module("engines", engine)
    return getattr(module, SCORER if scores else "open")(model, options)


def _open_control(engine: str, options: Options, scores: bool) -> Any:
    options.note(
        Caution(
            "no --model: the control model runs, a test instrument and not a model to be judged"
        )
    )
    # The rates of the control model are known for float32. It is too small to be faster on a GPU,
    # but vLLM runs only on the device that it was built for.
    device = options.device or ("cpu" if engine == "transformers" else None)
    options = dataclasses.replace(options, dtype="float32", device=device)
    if control_room(options):
        room = dataclasses.replace(options.thinking, tokens=control_room(options))
        if options.thinking.tokens is None:
            options.note(f"it thinks: {room.tokens} tokens are added for that (--think-tokens)")
        options = dataclasses.replace(options, thinking=room)
    found = _open(engine, str(control_folder(options)), options, scores)
    found.identity = dataclasses.replace(found.identity, model="control")
    return found


def _resolved(model: str | None, options: Options) -> models.Model:
    if model is None:
        return models.Model("", "")
    if options.base_url is not None:  # an alias, or a name that the server knows
        return models.catalogue().get(model.lower()) or models.Model("", model)
    return models.resolve(model)


def _choose(model: models.Model, options: Options) -> tuple[str, str]:
    """Choose the engine for `auto`. Returns it and the reason."""
    if options.base_url is not None:
        return "openai", "a server is named"
    if importlib.util.find_spec("vllm") is None:
        return "transformers", "vLLM is not installed"
    import torch  # both engines need it

    if not torch.cuda.is_available():
        return "transformers", "no GPU is here"
    if model.architecture == "encoder-decoder":
        return "transformers", "vLLM does not run encoder-decoder models"
    return "vllm", "it is installed, and a GPU is here"
