"""Aliases of models: those of the five studies, and the user's own.

genprobe's aliases are in models.toml beside this file. The user's are in one TOML file of the same
form, `$GENPROBE_MODELS` or else `~/.config/genprobe/models.toml`, and take precedence.
docs/models.md shows both.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.resources import packs, registry

OURS = Path(__file__).parent / "models.toml"
KINDS = ("instruct", "base", "reasoning", "masked")
ARCHITECTURES = ("decoder", "encoder-decoder", "masked")
# Names of checkpoints (branches on the hub, or folders): `step1000`, `checkpoint-500`.
STEP = re.compile(r"(checkpoint|ckpt|global_step|step|iter|epoch)[-_]?([0-9]+)", re.IGNORECASE)
_KEYS = re.compile(r"(?i)(.*[_-])?(api[_-]?)?(key|token|secret|password|auth|authorization|cookie)")


@dataclass(frozen=True)
class Model:
    """Facts about a model; empty if unknown."""

    alias: str
    id: str  # hub id, or a folder
    kind: str = ""  # one of KINDS
    architecture: str = ""  # one of ARCHITECTURES
    gated: bool = False  # access must be requested on the hub
    family: str = ""  # the base model or family
    size: str = ""  # parameters, such as "8B"; if empty, the size in the name
    licence: str = ""
    languages: tuple[str, ...] = ()  # BCP 47, or "multilingual"
    studies: tuple[str, ...] = ()  # the studies that ran the model, and for what
    note: str = ""
    revision: str = ""
    dtype: str = ""
    engine: str = ""
    base_url: str = ""
    api_key_env: str = ""  # the environment variable with the key for that server
    # Further headers of requests to that server; `$NAME` is read from the environment.
    headers: Mapping[str, str] = field(default_factory=dict)
    engine_args: Mapping[str, Any] = field(default_factory=dict)


def user_file() -> Path:
    """Return the path of the user's file of aliases, which need not exist."""
    if given := os.environ.get("GENPROBE_MODELS"):
        return door.expanded(given)
    return user_folder() / "models.toml"


def user_folder() -> Path:
    """Return the folder of the user's settings, which need not exist."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA") or "~/.config"
    return door.expanded(home) / "genprobe"


_ALSO: dict[str, Model] = {}


@contextlib.contextmanager
def also(known: Mapping[str, Model]) -> Iterator[None]:
    """Add further models within a `with` block; they take precedence over all others."""
    before = dict(_ALSO)
    _ALSO.update(known)
    try:
        yield
    finally:
        _ALSO.clear()
        _ALSO.update(before)


def read(path: Path) -> dict[str, Model]:
    """Read a file of aliases: alias -> model. InputError if it is malformed, missing or empty."""
    if not path.is_file():
        raise InputError(f"{path}: no such file of models")
    ours = {model.id.lower(): model for model in _read(OURS).values()}
    found = {k: _inherit(m, ours.get(m.id.lower())) for k, m in _read(path).items()}
    if not found:
        raise InputError(f"{path}: names no model; docs/models.md shows how")
    return found


def catalogue() -> dict[str, Model]:
    """Return all models by alias, the user's last. Raises InputError if a file is malformed."""
    found = _read(OURS)
    own = user_file()
    if own.is_file():
        ours = {model.id.lower(): model for model in found.values()}
        found |= {k: _inherit(m, ours.get(m.id.lower())) for k, m in _read(own).items()}
    elif os.environ.get("GENPROBE_MODELS"):
        raise InputError(f"GENPROBE_MODELS names {own}, which does not exist")
    return found | _ALSO


def _inherit(own: Model, known: Model | None) -> Model:
    """Fill the empty fields of a user's alias from genprobe's entry for the same model."""
    if known is None:
        return own
    facts = ("kind", "architecture", "gated", "licence", "languages", "studies")
    return replace(own, **{f: getattr(known, f) for f in facts if not getattr(own, f)})


def _read(path: Path) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for alias, row in packs.read_toml(path).items():
        if alias.lower() in found:
            raise InputError(
                f"{path}: [{alias}] is given twice; upper and lower case count as the same"
            )
        found[alias.lower()] = described(alias.lower(), row, path)
    return found


def _no_keys(row: Mapping[str, Any], where: str) -> None:
    """Raise InputError if a file holds the key of a server, because files are copied and shown.

    The message does not repeat the key.
    """
    for name, value in row.items():
        if _KEYS.fullmatch(name):
            raise InputError(
                f"{where} holds {name!r}: keys belong in the environment (GENPROBE_API_KEY)"
            )
        if isinstance(value, dict) and name != "headers":
            _no_keys(value, where)
    if "@" in str(row.get("base_url", "")):
        raise InputError(
            f"{where}: no user or password in 'base_url'; keys belong in the environment "
            "(GENPROBE_API_KEY)"
        )


def described(alias: str, row: Any, path: Path) -> Model:
    """Make a model of a table of a file. Raises InputError, with the file's path, if it is wrong.

    row: the keys of `Model`; an id that is a folder is looked up beside the file first.
    """
    where = f"{path}: [{alias}]"
    if not isinstance(row, dict):
        raise InputError(f"{where} must be a table")
    _no_keys(row, where)
    known = {f.name: f for f in fields(Model) if f.name != "alias"}
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name not in known and isinstance(value, dict):
            raise InputError(
                f"{where}: unknown table {name!r}; put an alias with a dot in quotes: "
                f'["{alias}.{name}"]'
            )
        if name not in known:
            raise InputError(f"{where}: unknown key {name!r}; known: {', '.join(known)}")
        kind = str(known[name].type).partition("[")[0]
        good = {
            "str": isinstance(value, str),
            "bool": isinstance(value, bool),
            "tuple": isinstance(value, list) and all(isinstance(v, str) for v in value),
            "Mapping": isinstance(value, dict),
        }[kind]
        if not good:
            what = {"str": "a text", "bool": "true or false", "tuple": "a list of texts"}
            raise InputError(f"{where}: {name!r} must be {what.get(kind, 'a table')}")
        values[name] = tuple(value) if isinstance(value, list) else value
    if not values.get("id"):
        raise InputError(f"{where} lacks 'id': a hub id, or a folder")
    for name, allowed in (("kind", KINDS), ("architecture", ARCHITECTURES)):
        if values.get(name, "") not in ("", *allowed):
            raise InputError(f"{where}: {name} must be one of {', '.join(allowed)}")
    headers = values.get("headers", {})
    if headers and not values.get("base_url"):
        raise InputError(f"{where}: 'headers' needs 'base_url', the server to which they go")
    for name, value in headers.items():
        if not isinstance(value, str):
            raise InputError(f"{where}: headers: {name} must be a text")
        if _KEYS.fullmatch(name) and "$" not in value:
            raise InputError(
                f"{where}: headers: {name}: keys belong in the environment; write $NAME, and put "
                "the key into the variable NAME"
            )
    if values.get("engine"):
        registry.check("engines", values["engine"])
    for language in values.get("languages", ()):
        if language != "multilingual":
            registry.check("languages", language)
    try:
        json.dumps(values.get("engine_args", {}))  # they become part of a run's spec, which is JSON
    except TypeError as error:
        raise InputError(f"{where}: 'engine_args' cannot be passed on ({error})") from None
    beside = path.parent / door.expanded(values["id"])
    if path != OURS and door.lies_at(beside) == "folder":  # a path relative to the file
        values["id"] = str(beside)
    return Model(alias=alias, **values)


def resolve(name: str) -> Model:
    """Find the model of an alias, a hub id or a folder.

    Raises InputError for an unknown name.
    """
    known = catalogue()
    if name.lower() in known:
        return known[name.lower()]
    if name and door.lies_at(name) == "folder":
        return Model(alias="", id=name)
    for model in known.values():
        if model.id.lower() == name.lower():
            return model
    if name and door.lies_at(name) == "file":
        raise InputError(f"{name}: is a file, not a model; recorded replies need --engine replay")
    if "/" not in name:
        error = registry.unknown("model", name, list(known))
        served = "a model of a server needs --base-url"
        if "did you mean" in str(error):
            raise InputError(f"{error} {served[0].upper()}{served[1:]}")
        raise InputError(
            f"unknown model {name!r}; give an alias (`genprobe list models`), a folder, or a hub "
            f"id, which reads owner/name; {served}"
        )
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name):
        raise InputError(f"{name}: no such folder, and not a hub id, which reads owner/name")
    return Model(alias="", id=name)


def listed() -> list[tuple[str, str]]:
    """List the models: (alias, description on one line)."""
    return [
        (
            model.alias,
            "; ".join(
                part
                for part in (
                    model.id,
                    f"{model.kind}, {model.architecture}"
                    if model.architecture == "encoder-decoder"
                    else model.kind,
                    model.licence + (", gated" if model.gated else ""),
                    ", ".join(model.languages),
                    *model.studies,
                    model.note,
                )
                if part
            ),
        )
        for model in catalogue().values()
    ]
