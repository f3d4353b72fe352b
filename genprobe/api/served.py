"""The keywords of every function that has a model run, and what becomes of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import numbers
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, get_type_hints

from genprobe.engines import Engine, Options
from genprobe.errors import InputError
from genprobe.resources import registry
from genprobe.tasks import Ask
from genprobe.tasks.pipeline import Note

F = TypeVar("F", bound=Callable[..., Any])


class Served(TypedDict, total=False):
    """What says which program or server runs a model."""

    engine: str
    base_url: str | None
    concurrency: int | None
    engine_args: Sequence[str] | Mapping[str, Any]
    headers: Sequence[str] | Mapping[str, str]
    key_env: str | None
    http_key: bool
    thinking: str
    think_tokens: int | None
    template_args: Sequence[str] | Mapping[str, Any]
    request_args: Sequence[str] | Mapping[str, Any]
    options: Options | None


def shown(keywords: Any) -> Callable[[F], F]:
    """Let `help` and completion show the keywords of a function, with the defaults of `Ask`."""

    def wrap(function: F) -> F:
        defaults = {f.name: f.default for f in dataclasses.fields(Ask)} | {"options": None}
        kinds = get_type_hints(keywords)
        own = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind is not p.VAR_KEYWORD
        ]
        named = {p.name for p in own}
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default if isinstance(default := defaults.get(name), _PLAIN) else None,
                annotation=kind,
            )
            for name, kind in kinds.items()
            if name not in named
        ]
        returns = inspect.signature(function).return_annotation
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*own, *more], return_annotation=returns
        )
        return function

    return wrap


_PLAIN = (str, int, bool, tuple)


_LISTED = ("engine_args", "headers", "template_args", "request_args")


def _settings(given: Any, name: str) -> Sequence[str] | Mapping[str, Any]:
    """Return settings KEY=VALUE, one or several, or those of a dict. Raises InputError if not."""
    if not isinstance(given, Mapping):
        return registry.listed(given, name)
    try:
        json.dumps(dict(given))
    except (TypeError, ValueError):
        raise InputError(f"{name}: give a dict of texts and numbers") from None
    return given


def options_of(asked: dict[str, Any]) -> Options:
    """Take the options of the engine out of the keywords, but not its name."""
    from genprobe.tasks.pipeline.open import engine_options, told

    given = asked.pop("options", None)
    own = {n: asked.pop(n) for n in Served.__annotations__ if n in asked and n != "engine"}
    own |= {n: _settings(own[n], n) for n in _LISTED if n in own}
    if given is not None:
        if any(own.values()):
            raise InputError(f"options: give {', '.join(own)} there, or by themselves")
        if not isinstance(given, Options):
            raise InputError(f"options: give genprobe.Options(…), not {type(given).__name__}")
        return given
    arguments = own.pop("engine_args", ())
    address = own.pop("base_url", None), own.pop("concurrency", None)
    return told(engine_options(arguments, *address), own)


# A word of an annotation -> what messages call it, and the types that it allows.
_KINDS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "str": ("a text", str),
    "int": ("a whole number", numbers.Integral),
    "float": ("a number", numbers.Real),
    "bool": ("True or False", bool),
    "Path": ("a path", (str, os.PathLike)),
    "None": ("None", type(None)),
}


def checked(function: F) -> F:
    """Have a function refuse values of another type than its annotations name, in one line.

    Only annotations of plain types are looked at; tables and lists are checked where they are read.
    """
    kinds = {
        p.name: words
        for p in inspect.signature(function).parameters.values()
        if (words := _words(p.annotation)) and all(word in _KINDS for word in words)
    }
    own = inspect.signature(function)

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        with contextlib.suppress(TypeError):  # Python says what is missing, or too much
            named_all = own.bind_partial(*given, **named).arguments
            for name, value in named_all.items():
                if name in kinds and not isinstance(value, _types(kinds[name])):
                    what = " or ".join(_KINDS[word][0] for word in kinds[name] if word != "None")
                    raise InputError(f"{name}: give {what}, not {type(value).__name__}")
        return function(*given, **named)

    return call  # type: ignore[return-value]


def _words(annotation: Any) -> list[str]:
    """Split an annotation, a text or a type, into the names of its alternatives."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    text = str(annotation) if text in ("", "Union") else text
    return text.replace("Out", "str | Path | None").replace("pathlib.", "").split(" | ")


def _types(words: list[str]) -> tuple[Any, ...]:
    return tuple(_KINDS[word][1] for word in words)


@contextlib.contextmanager
def writer(
    command: str, model: str | None, given: Mapping[str, Any], note: Note
) -> Iterator[Engine]:
    """Open a model that writes or reads texts for a command; given: the keywords of `Served`.

    Raises InputError if none is named.
    """
    from genprobe.tasks.pipeline.open import open_engine

    asked = dict(given)
    for name in asked:
        if name not in Served.__annotations__:
            raise registry.unknown("argument", name, sorted(Served.__annotations__))
    engine = asked.pop("engine", "auto")
    options = options_of(asked)
    if model is None and options.base_url is None:
        raise InputError(f"{command}: no model is named; name one with --model or --base-url")
    opened = open_engine(engine, model, dataclasses.replace(options, note=note))
    with contextlib.closing(opened):
        yield opened
