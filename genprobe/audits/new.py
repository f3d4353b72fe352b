"""Write the file of a new audit from six answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe import tasks
from genprobe.audits.plan import CONTROL
from genprobe.errors import GenprobeError, InputError, RowErrors
from genprobe.files import disk, door
from genprobe.resources import models, packs, registry
from genprobe.tasks import Ask

_FETCHED = {"choices": "bbq"}  # instruments whose data must be named, and are not shipped
_HEAD = """\
# An audit of language models: every model below is asked with every instrument.
#   genprobe audit {file} --dry-run   checks all of it; what it takes, what it will show
#   genprobe audit {file}             runs it; the same command resumes it
# docs/audit.md has every key.

# The folder of its runs, its table and its page. Give each date or version its own (--out).
out = {out}
langs = [{langs}]
# Statements of each language; without it, all.
{limit}
seed = 0
"""
_MODEL = """\
# price = [0.15, 0.60]   # of a million tokens of prompts, and of replies
# thinking = "off"       # on, off, low, medium, high; without it, as the model does by itself
"""
_SERVER = (
    '# api_key_env = "MY_KEY"  # the environment variable with the key; never the key itself\n'
)
_LIMITS = {
    "yesno": "endorsed = 12",
    "essays": "argues-for = 12",
    "stories": "negrate = 20",
    "logprob": "win-rate = 12",
}


def write(
    file: str | Path,
    models_: Sequence[str],
    langs: Sequence[str],
    instruments: Sequence[str],
    wordings: str,
    limit: int | None,
    out: str,
) -> Path:
    """Write the file of an audit, with comments. Returns its path.

    models_: aliases, hub ids, folders, or NAME@URL for a model of a server. langs, instruments:
    codes, and names of tasks; an instrument gets those languages in which it exists. wordings:
    `published`, `all` or a number. limit: statements of each language; None for all. out: the
    audit's folder; "" for one by the file's name. Raises RowErrors for unknown names, one a line;
    InputError if the file is there.
    """
    path = door.expanded(file)
    if path.exists():
        raise InputError(f"{path}: is there already; give another name")
    problems: list[str] = []
    codes = list(_each(problems, langs, lambda lang: packs.language_code(lang, mixed=True)))
    list(_each(problems, instruments, lambda name: registry.check("tasks", name)))
    parts = list(_each(problems, models_, _model))
    if not (codes and instruments and parts) and not problems:
        problems.append("name a model, a language and an instrument at least")
    if problems:
        raise RowErrors("\n".join(problems))
    text = _HEAD.format(
        file=path.name,
        out=_toml(out or f"audits/{path.stem}"),
        langs=", ".join(map(_toml, codes)),
        limit=f"limit = {limit}" if limit else "# limit = 40",
    )
    text += "".join(parts)
    names = list(dict.fromkeys(None if name == CONTROL else name for name in models_))
    text += "".join(
        _each(problems, instruments, lambda name: _instrument(name, names, codes, wordings))
    )
    if problems:
        raise RowErrors("\n".join(problems))
    disk.replace(path, [text], encoding="utf-8")
    return path


def _each(problems: list[str], names: Sequence[str], check: Callable[[str], Any]) -> Iterator[Any]:
    """Yield what `check` returns for each name; what it refuses is a problem."""
    for name in names:
        try:
            yield check(name)
        except GenprobeError as error:
            problems.append(str(error))


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _model(given: str) -> str:
    """Write the table of a model. Raises InputError for an unknown one."""
    name, _, url = given.partition("@")
    alias = re.sub(r"[^\w.-]+", "-", name.rstrip("/").rsplit("/", 1)[-1]).strip("-.") or CONTROL
    head = f"\n[models.{alias if re.fullmatch(r'[A-Za-z0-9_-]+', alias) else _toml(alias)}]\n"
    if url:
        return f"{head}id = {_toml(name)}\nbase_url = {_toml(url)}\n{_SERVER}{_MODEL}"
    if name == CONTROL:
        return f"{head}# A test of genprobe itself: its rates are known, and it is not judged.\n"
    try:
        known = models.resolve(name)
    except InputError as error:
        raise InputError(str(error).replace("needs --base-url", "is written NAME@URL")) from None
    return head + ("" if known.alias == alias.lower() else f"id = {_toml(name)}\n") + _MODEL


def _instrument(
    name: str, models_: Collection[str | None], codes: Sequence[str], wordings: str
) -> str:
    """Write the table of an instrument, with the languages in which every model can be asked.

    models_: None for the control model. Raises InputError if there is no such language.
    """
    task, fetched = tasks.find(name), _FETCHED.get(name)
    lines = [f"\n# {task.about}", f"[instruments.{name}]"]
    if fetched:
        lines.append(f"data = {_toml(fetched)}")
        if None in models_:
            lines.append(
                'decodes = ["choice"]   # the control model names no option in its own words'
            )
    why: list[str] = []
    asks = [Ask(langs=(code,), limit=1, model=model) for model in models_ for code in codes]
    lacks = {ask.langs[0] for ask in asks if not fetched and not _exists(task, ask, why)}
    there = [] if fetched else [code for code in codes if code not in lacks]
    if not fetched and not there:
        told = why[0] if why else f"has nothing to ask in {', '.join(codes)}"
        raise InputError(f"[instruments.{name}] {told}; or leave {name} out")
    if there and not task.scores:  # which wordings there are
        for model in models_:
            task.prepare(Ask(langs=tuple(there), limit=1, wordings=wordings, model=model))
    if there and there != list(codes):
        lines.append(f"langs = [{', '.join(map(_toml, there))}]  # it exists in no other of these")
    if task.scores:
        lines.append("plain = true   # texts are scored without the chat template; or chat = true")
    else:
        lines.append(f"wordings = {_toml(wordings)}   # published, all, or a number")
    if limit := _LIMITS.get(name):
        lines.append(f"# max_rise = {{ {limit} }}   # with --against: more points are worse")
    return "\n".join(lines) + "\n"


def _exists(task: tasks.Task, ask: Ask, why: list[str]) -> bool:
    """Tell whether a task has something to ask so; what it says otherwise is added to `why`."""
    try:
        return bool(task.prepare(ask).items)
    except GenprobeError as error:
        why.append(str(error))
        return False
