"""Read the file of an audit and check it whole, before anything runs."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from genprobe import api, metrics, tasks
from genprobe.analysis import forecast
from genprobe.analysis.gate import UNCLEAR
from genprobe.errors import GenprobeError, InputError, RowErrors, RunError
from genprobe.files import door
from genprobe.limits import parsed
from genprobe.records import DECODES
from genprobe.resources import models, packs, registry
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.tasks import Ask, Asked
from genprobe.tasks.pipeline import open, second
from genprobe.tasks.pipeline.generate import left

PLAN = "audit.json"  # in the folder of an audit: its cells and what they ask
RUNS = "runs"  # the folder of its runs
CONTROL = "control"
# Keys of the tables of the file. A model also has the keys of a file of models.
_EVERYWHERE = ("langs", "limit", "seed")  # what all instruments take, unless they say otherwise
_TOP = ("out", "date", "at_once", *_EVERYWHERE, "models", "instruments")
_FACTS = tuple(f.name for f in dataclasses.fields(models.Model) if f.name != "alias")
_TOLD = ("thinking", "think_tokens", "template_args", "request_args", "concurrency", "http_key")
_MAY_CHANGE = ("price", "concurrency", "api_key_env", "http_key")  # while an audit goes on
_GATE = ("max_rise", "max_fall", "max_flips")  # limits with --against, as those of `gate`
# Option of the command line -> key, where they are not the same.
_KEYS = {n: f"{n.replace('-', '_')}s" for n in ("lang", "probe", "decode", "scorer", "header")}
_KEYS |= {"frame": "probes", "wording": "probes", "allow-http-key": "http_key"}
_KEYS |= {f"{n}-arg": f"{n}_args" for n in ("engine", "template", "request")}
_CHOICES = {
    "decodes": DECODES,
    "thinking": ("default", "on", "off", "low", "medium", "high"),
    "orders": ("all", "balanced", "given"),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One model and one instrument: a run.

    model, instrument: their names in the file. task: of the instrument. ask: what is asked; asked:
    as its task has checked it. size: what it takes. price: of the model, if the file has it. gate:
    the limits with --against. settings: all that may not change when the audit goes on.
    """

    model: str
    instrument: str
    task: str
    ask: Ask
    asked: Asked
    size: forecast.Size
    price: forecast.Price | None
    gate: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        return name_of(self.model, self.instrument)

    @property
    def folder(self) -> Path:
        return Path(str(self.ask.out))

    def there(self) -> tuple[int, bool]:
        """Return how many requests are answered, and whether the run is finished.

        It is if nothing is left that could be asked again, and all judges have read the replies.
        """
        if not (self.folder / "run.json").is_file():
            return 0, False
        run = Run.open(self.folder)
        planned, answered = run.counts()
        without, lasting = left(run) if answered < planned else (0, {})
        if without > sum(lasting.values()) or not run.seals():
            return answered, False
        readers = {judge.name for judge in self.asked.judges}
        own = tasks.find(self.task).second
        if own and self.ask.second_reader and readers <= {*run.judges()}:
            readers |= {own.name} if second.left_open(run, own) else set()
        return answered, readers <= {*run.judges()}


@dataclasses.dataclass(frozen=True)
class Plan:
    """An audit that can run: its cells, model by model.

    known: the models that the file describes. fetch: bytes to fetch from the hub, by model.
    at_once: most cells that run at the same time; 0 for as many as there are places.
    """

    name: str
    out: Path
    cells: Sequence[Cell]
    known: Mapping[str, models.Model]
    fetch: Mapping[str, int]
    date: str  # of the audit, in a series; "" for that of its first reply
    at_once: int = 0


def name_of(model: str, instrument: str) -> str:
    """Return the name of the folder of a cell."""
    return "-".join(re.sub(r"[^\w.-]+", "-", part).strip("-.") for part in (model, instrument))


def read(source: str | Path | Mapping[str, Any], out: str | Path | None = None) -> Plan:
    """Read an audit and check it: names, settings, data, servers and their keys, what is there.

    source: the file, or its content. out: the folder, instead of the one that the file names, or
    else `audits/<name of the file>`. Raises RowErrors with all problems, one a line.
    """
    path = Path("audit.toml") if isinstance(source, Mapping) else door.expanded(source)
    if not isinstance(source, Mapping) and not path.is_file():
        raise InputError(f"{path}: no such file; `genprobe audit new {path}` writes one")
    table = source if isinstance(source, Mapping) else packs.read_toml(path)
    return _Reader(table, path).plan(out)


class _Reader:
    """Reads the tables of a file and collects what is wrong."""

    def __init__(self, table: Mapping[str, Any], path: Path) -> None:
        self.table, self.path = table, path
        self.problems: list[str] = []

    @contextlib.contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Keep an error within the block as a problem of this place in the file."""
        try:
            yield
        except GenprobeError as error:
            # A path, if the message begins with it, is this file's.
            text = str(error).removeprefix(f"{self.path}: ").removeprefix(f"[{where}] ")
            text = re.sub(r"--([a-z]+(?:-[a-z]+)*)", _key, text)
            self.problems.append(f"{self.path}: {f'[{where}] ' if where else ''}{text}")

    def known(self, where: str, row: Mapping[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
        """Return the keys of a table that are allowed; the others are problems."""
        for name in row:
            with self.at(where):
                if name not in allowed:
                    raise registry.unknown("key", name, allowed)
        return {name: value for name, value in row.items() if name in allowed}

    def tables(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return the tables [name.…]; there must be one at least."""
        found = self.table.get(name, {})
        with self.at(""):
            if not isinstance(found, Mapping) or not found:
                raise InputError(f"names no {name}; add a table [{name}.NAME]")
            for one, row in found.items():
                with self.at(f"{name}.{one}"):
                    if not isinstance(row, Mapping):
                        raise InputError("must be a table")
            return {one: row for one, row in found.items() if isinstance(row, Mapping)}
        return {}

    def plan(self, out: str | Path | None) -> Plan:
        """Return the plan. Raises RowErrors."""
        top = self.known("", self.table, _TOP)
        shared = {name: value for name, value in top.items() if name in _EVERYWHERE}
        everywhere = self.values("", shared, _keywords("yesno"))
        rows = {alias: self.model(alias, row) for alias, row in self.tables("models").items()}
        known = {alias.lower(): row[0] for alias, row in rows.items() if row and row[0]}
        own = self.values("", {"out": top["out"]}, {"out": str}) if "out" in top else {}
        folder = door.expanded(out or own.get("out") or f"audits/{self.path.stem}")
        most = {n: v for n, v in top.items() if n == "at_once"}
        most = self.values("", most, {"at_once": int})
        date = str(top.get("date", ""))
        with self.at(""):
            if date and not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
                raise InputError(f"date = {date}: must be a day, such as 2027-01-31")
        cells: list[Cell] = []
        with models.also(known):
            instruments = {
                name: self.instrument(name, row, everywhere)
                for name, row in self.tables("instruments").items()
            }
            for alias, served in rows.items():
                for name, given in instruments.items():
                    if served and given:
                        cells += self.cell(alias, served, name, given, folder)
            if not any(rows.values()):  # what is asked can be checked without a model
                for name, given in instruments.items():
                    with self.at(f"instruments.{name}"):
                        asked = {n: v for n, v in given.items() if n not in ("task", *_GATE)}
                        if given:
                            ask = api.ask_of(given["task"], "owner/name", asked)
                            self.prepared(given["task"], ask, f"instruments.{name}")
            with self.at(""):
                open.need_one_host((cell.ask.model, cell.ask.options) for cell in cells)
            # No server and no hub is asked while the file is wrong.
            wrong, fetch = bool(self.problems), {}
            alike: dict[tuple[str, str], list[Cell]] = {}
            for c in cells:
                each = c.name if tasks.find(c.task).scores else ""
                alike.setdefault((c.model, each), []).append(c)
            for same in alike.values():
                cell = same[-1]
                with self.at(f"{cell.model} × {cell.instrument}"):
                    fetch[cell.model] = 0 if wrong else _reach(cell, same)
        with self.at(""):
            for name in (names := [cell.name for cell in cells]):
                if names.count(name) > 1:
                    raise InputError(f"two cells would be called {name!r}; rename a model")
        with self.at(""):
            goes_on(folder, {cell.name: cell.settings for cell in cells})
        if self.problems:
            raise RowErrors("\n".join(dict.fromkeys(self.problems)))
        return Plan(self.path.stem, folder, cells, known, fetch, date, most.get("at_once", 0))

    def model(
        self, alias: str, row: Mapping[str, Any]
    ) -> tuple[models.Model | None, dict[str, Any], Any] | None:
        """Return a model, how it is asked, and its price; None if something is wrong."""
        where, before = f"models.{alias}", len(self.problems)
        row = self.known(where, row, [*_FACTS, *_TOLD, "price"])
        told = self.values(where, {n: row[n] for n in _TOLD if n in row}, _keywords("yesno"))
        facts = {n: row[n] for n in _FACTS if n in row}
        price = model = None
        with self.at(where):
            if given := row.get("price"):
                if not isinstance(given, list):
                    raise InputError("price: two amounts for a million tokens, as [0.15, 0.60]")
                price = forecast.price(",".join(map(str, given)))
        with self.at(where):
            if "id" not in facts and "base_url" in facts:
                facts["id"] = alias
            if facts == {"id": CONTROL}:
                facts = {}
            elif "id" not in facts and alias != CONTROL:
                own = {n: v for n, v in vars(models.resolve(alias)).items() if v and n in _FACTS}
                lists = {n: list(v) if isinstance(v, tuple) else v for n, v in own.items()}
                facts = {**lists, **facts}
            if facts.get("engine") == "replay" and isinstance(facts.get("id"), str):
                facts["id"] = str(self.beside(facts["id"]))
                if not door.lies_at(facts["id"]):
                    raise InputError(f"id {row['id']!r}: there are no recordings")
            for variable in _variables(facts):
                if not os.environ.get(variable):
                    raise InputError(f"there is no variable {variable} in the environment")
            if facts:
                model = models.described(alias.lower(), facts, self.path)
        return None if len(self.problems) > before else (model, told, price)

    def beside(self, name: str) -> Path:
        """Return the path of a file that is named in this one: beside it, if it is there."""
        near = self.path.parent / door.expanded(name)
        return near if door.lies_at(near) else door.expanded(name)

    def instrument(
        self, name: str, row: Mapping[str, Any], everywhere: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the keywords of an instrument, with its `task`; empty if something is wrong."""
        where, before = f"instruments.{name}", len(self.problems)
        task = row.get("task", name)
        with self.at(where):
            if not isinstance(task, str) or task not in registry.names("tasks"):
                raise registry.unknown("instrument", str(task), registry.names("tasks"))
            allowed = _keywords(task)
            own = self.known(where, row, [*allowed, *_GATE, "task"])
            given = {n: v for n, v in everywhere.items() if n in allowed and n not in own}
            given |= self.values(where, own, allowed)
            for key in ("data", "pack", "shots"):
                if isinstance(given.get(key), str) and door.lies_at(self.beside(given[key])):
                    given[key] = str(self.beside(given[key]))
            for key in _GATE[:2]:
                if key in given and not isinstance(given[key], Mapping):
                    raise InputError(f"{key}: a table of measures and points: {{ endorsed = 12 }}")
                for metric, points in given.get(key, {}).items():
                    with self.at(where):
                        if metric != UNCLEAR:
                            metrics.find(metric)
                        if not _fits(points, float) or points < 0:
                            raise InputError(f"{key} {metric} = {points!r}: must be points")
            return {} if len(self.problems) > before else {"task": task, **given}
        return {}

    def values(
        self, where: str, row: Mapping[str, Any], kinds: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of a table, each of its kind; others are problems."""
        found = {}
        for name, value in row.items():
            kind = kinds.get(name, typing.Any)
            if str in _parts(kind) and type(value) is int:  # wordings = 2
                value = str(value)
            with self.at(where):
                if not _fits(value, kind):
                    raise InputError(f"{name} = {value!r}: must be {_said(kind)}")
                if isinstance(value, int | float) and name != "seed":
                    least = 1 if int in _parts(kind) else 0
                    if not isinstance(value, bool) and value < least:
                        raise InputError(f"{name} = {value!r}: must be at least {least}")
                for one in [value] if isinstance(value, str) else _texts(value):
                    if name in _CHOICES and one not in _CHOICES[name]:
                        raise registry.unknown(f"value of {name}", one, _CHOICES[name])
                found[name] = value
        if isinstance(langs := found.get("langs"), list):
            found["langs"] = []
            for lang in langs:
                with self.at(where):
                    found["langs"].append(packs.language_code(lang, mixed=True))
        return found

    def cell(
        self, alias: str, served: Any, name: str, given: Mapping[str, Any], out: Path
    ) -> list[Cell]:
        """Return the cell of a model and an instrument, if nothing is wrong with it."""
        model, told, price = served
        asked = {n: v for n, v in given.items() if n not in ("task", *_GATE)}
        task = str(given["task"])
        whom: str | None = alias
        if model is None:
            whom = None
            if "max_tokens" in _keywords(task):  # the rates of the control model hold at this one
                asked = {"temperature": 1.0, **asked}
        elif model.engine == "replay":
            whom, asked["engine"] = model.id, "replay"
        elif model.base_url:
            asked["base_url"] = model.base_url
        with self.at(f"instruments.{name}"):
            ask = api.ask_of(
                task, whom, {**told, **asked, "out": out / RUNS / name_of(alias, name)}
            )
            # `note` is called when it runs; here each would be told again.
            ready = self.prepared(task, ask, f"instruments.{name}")
            if ready is None:
                return []
            size = forecast.size(task, ask, ready)
            row = self.table["models"][alias]
            shown = {n: sorted(v) if n == "headers" else v for n, v in row.items()}
            shown = {n: v for n, v in shown.items() if n not in _MAY_CHANGE}
            settings = {"model": alias, "instrument": name, "task": task, "asked_of": shown}
            settings |= {"asked": {n: v for n, v in given.items() if n not in ("task", *_GATE)}}
            settings |= {"statements": statements_hash(ready.items)}
            settings = parsed(json.dumps(settings, default=str))
            gate = {n: given[n] for n in _GATE if n in given}
            return [Cell(alias, name, task, ask, ready, size, price, gate, settings)]
        return []

    def prepared(self, task: str, ask: Ask, where: str) -> Asked | None:
        """Let the task check an Ask; of several names in a list each wrong one is a problem."""
        try:
            return tasks.find(task).prepare(ask)
        except GenprobeError as error:
            found = []
            for name in ("langs", "probes", "scorers"):
                for one in getattr(ask, name) if len(getattr(ask, name)) > 1 else ():
                    alone: dict[str, Any] = {name: (one,)}
                    try:
                        tasks.find(task).prepare(dataclasses.replace(ask, **alone))
                    except GenprobeError as single:
                        found.append(single)
            for one in found or [error]:
                with self.at(where):
                    raise one from None
            return None


def goes_on(folder: Path, cells: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise RunError unless an audit of these cells can begin or go on in a folder.

    Cells may be added to an audit; those that are there stay as they are.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder}: is a file; choose another folder (--out)")
    if not (folder / PLAN).is_file():
        if any(folder.iterdir()):
            raise RunError(
                f"{folder}: is not empty and holds no audit; choose a new folder (--out)"
            )
        return
    for line in differences(stored(folder), cells):
        raise RunError(
            f"{folder}: holds this audit with other settings ({line}); choose a new folder "
            "(--out), or use those settings"
        )


def stored(folder: str | Path) -> dict[str, Any]:
    """Return the cells of an audit's folder. Raises RunError if it is none."""
    return dated(folder)[1]


def dated(folder: str | Path) -> tuple[str, dict[str, Any]]:
    """Return the date that an audit's file gave, and its cells. Raises RunError as `stored`."""
    path = door.expanded(folder) / PLAN
    try:
        found = parsed(door.content(path))
        cells = found["cells"]
        assert all({"asked", "statements", "model", "instrument"} <= {*c} for c in cells.values())
        return str(found.get("date", "")), dict(cells)
    except OSError:
        raise RunError(f"{folder}: is not the folder of an audit (no {PLAN})") from None
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
        raise RunError(f"{path}: is damaged; restore it from a copy") from None


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], of: Sequence[str] = ()
) -> Iterator[str]:
    """Yield in which settings the cells differ that are in both. of: settings; all if empty."""
    for name in [name for name in new if name in old]:
        for key in of or new[name]:
            before, after = (_flat(key, cells[name].get(key)) for cells in (old, new))
            for part in sorted({*before} | {*after}):
                if before.get(part) != after.get(part):
                    yield f"{name}: {part}: {before.get(part)} -> {after.get(part)}"


def _flat(key: str, value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {key: value}


def _need_same(cell: Cell, new: str) -> None:
    """Raise RunError if the run of a cell was asked of other recordings or other weights."""
    if (cell.folder / "run.json").is_file():
        old = Run.open(cell.folder).spec.revision
        if old != new:
            raise RunError(
                f"{cell.folder}: holds a run with other settings (revision: {old} -> {new}); "
                "choose another folder (--out)"
            )


def _reach(cell: Cell, cells: Sequence[Cell]) -> int:
    """Check that the model of a cell is there; its weights are neither loaded nor fetched.

    A server must serve it and take the key, recordings must be readable, a folder must hold a
    model, and the hub must give it. cells: all that the same engine is asked for; a finished one
    must have been asked of the same. Returns how many bytes are to be fetched; raises
    GenprobeError.
    """
    ask, scores = cell.ask, tasks.find(cell.task).scores
    if ask.control:
        return 0
    known = models.Model("", "") if ask.engine == "replay" else models.resolve(str(ask.model))
    if ask.engine == "replay" or known.base_url:
        with contextlib.closing(
            open.open_engine(ask.engine, ask.model, ask.options, scores)
        ) as engine:
            for one in cells:
                one.asked.spec(engine)
                _need_same(one, engine.identity.revision)
        return 0
    if known.engine:
        registry.module("engines", known.engine)
    engine, fetch = registry.module("engines", "transformers"), 0
    if door.lies_at(known.id) != "folder":
        models.resolve(known.id)
        fetch, commit = engine.to_fetch(known.id, known.revision or None)
        for one in cells:  # a branch may have moved since: finished cells are not opened again
            _need_same(one, commit)
    elif not (door.expanded(known.id) / "config.json").is_file():
        raise InputError(f"{known.id}: holds no model (no config.json)")
    elif any((one.folder / "run.json").is_file() for one in cells):
        revision = engine.revision_of(known.id)
        for one in cells:
            _need_same(one, revision)
    if scores:
        words = engine.tokenizer_of(known.id, known.revision or None)
        template = "own" if getattr(words, "chat_template", None) else "none"
        identity = types.SimpleNamespace(model=known.id, chat_template=template)
        cell.asked.spec(types.SimpleNamespace(identity=identity, **vars(forecast.CAUSAL)))
    return fetch


def _key(option: re.Match[str]) -> str:
    """Return the key of the file for an option that a message names."""
    if option[1] in ("out", "against"):  # of this command
        return option[0]
    return _KEYS.get(option[1], option[1].replace("-", "_"))


def _variables(facts: Mapping[str, Any]) -> list[str]:
    """Return the variables of the environment that a model needs: of its key and its headers."""
    headers = facts.get("headers")
    values = headers.values() if isinstance(headers, Mapping) else ()
    found = [name for value in values for name in re.findall(r"\$\{?(\w+)", str(value))]
    own = facts.get("api_key_env")
    return [*([own] if isinstance(own, str) and own else []), *found]


def _keywords(task: str) -> dict[str, Any]:
    """Return the keywords of a task that a file can give, with their kinds."""
    parameters = inspect.signature(getattr(api, task)).parameters
    other = {"model", "by", "out", "note", "progress", "options", "sampling", "engine", "base_url"}
    other |= {"headers", "key_env", "engine_args"}  # those of a model
    return {name: p.annotation for name, p in parameters.items() if name not in other}


def _parts(kind: Any) -> tuple[Any, ...]:
    several = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if several else (kind,)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value of a TOML file is of the kind of a keyword."""
    for part in _parts(kind):
        if part is typing.Any or (isinstance(part, type) and type(value) is part):
            return True
        if part is float and type(value) is int:
            return True
        origin = typing.get_origin(part)
        if origin in (Sequence, list) and isinstance(value, list):
            return all(isinstance(one, str) for one in value)
        if origin is Mapping and isinstance(value, Mapping):
            return True
    return False


def _said(kind: Any) -> str:
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    found = [words[part] for part in _parts(kind) if part in words]
    lists = [part for part in _parts(kind) if typing.get_origin(part) in (Sequence, list)]
    return " or ".join([*found, *(["a list of texts"] if lists else [])]) or "a table"


def _texts(value: Any) -> list[str]:
    """Return the texts of a list; none for any other value."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
