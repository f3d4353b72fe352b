"""What is asked in other harnesses, how a reply is read, and the table of them all.

A harness asks with `asked`, reads with `read`, and counts with `cells`, so that its figures are
those of `genprobe score` of the same replies.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from genprobe.api.served import checked
from genprobe.errors import Caution
from genprobe.files import disk
from genprobe.files.rows import Row, Rows
from genprobe.judges import Judge, make
from genprobe.outcomes import columns
from genprobe.records import Score
from genprobe.resources import packs, registry
from genprobe.tasks import Ask
from genprobe.tasks.pipeline.judge import judged_rows
from genprobe.tasks.yesno import TASK

HARNESSES = ("lm-eval", "promptfoo")


@checked
def write(
    harness: str,
    *,
    langs: str | Sequence[str] = (),
    data: str = "builtin",
    out: str | Path | None = None,
) -> Path:
    """Write the yes/no questions as tasks of another harness, and return their folder.

    harness: `lm-eval` or `promptfoo`. langs: all of the pack if empty. data: `builtin` or a file of
    statements. out: peers/HARNESS if None. Raises InputError for an unknown name or a file that
    cannot be read.
    """
    if harness not in HARNESSES:
        raise registry.unknown("harness", harness, HARNESSES)
    data = data if data == "builtin" else str(Path(data).resolve())
    rows = asked(registry.listed(langs, "langs"), data)
    folder = Path("peers", harness) if out is None else Path(out)
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    module = importlib.import_module(f"genprobe.harnesses.{harness.replace('-', '_')}")
    module.write(folder, rows, data)
    return folder


def codes(given: object) -> tuple[str, ...]:
    """Return language codes that a harness gives as a text, `kk` or `kk,ru`, or as a list.

    Raises InputError for an unknown one; `no`, which YAML reads as false, is told as it was meant.
    """
    several = given.split(",") if isinstance(given, str) else given
    named = several if isinstance(several, list | tuple) else [several]
    return tuple(packs.language_code("no" if n is False else str(n).strip()) for n in named)


# What a row of a log says of a reply: a column of the statements that is called so says it of none.
_OF_REPLIES = {"reasoning", "reasoning_from", "finish", "reads", "options", "shown"}


def _free(name: str) -> str:
    return f"{name}_data" if name in _OF_REPLIES else columns.REPLY.free(name)


def asked(langs: object, data: Any = "builtin", probes: Sequence[str] = ()) -> list[Row]:
    """Return what `genprobe yesno` asks, a row for each request: its prompt, and what it is about.

    langs: of `codes`. data: `builtin` or a table of statements. probes: all if empty. Raises
    InputError as `yesno` does.
    """
    prepared = TASK.prepare(
        Ask(langs=codes(langs), data=data, probes=registry.listed(probes, "probes"), note=_told)
    )
    about = {(one.id, one.lang): one for one in prepared.items}
    rows = []
    for request in prepared.requests(None):
        one = dataclasses.asdict(about[request.statement, request.lang])
        rows.append(
            {_free(name): value for name, value in one.pop("extra").items()}
            | one
            | {
                "id": request.id,
                "statement": one["id"],
                "probe": request.probe,
                "prompt": request.messages[-1]["content"],
                "valid_in": list(one["valid_in"]),
            }
        )
    return rows


def read(
    row: Mapping[str, Any], reply: Mapping[str, Any], names: Sequence[str] = TASK.judges["free"]
) -> Row:
    """Return a row of `asked` with a reply and what judges read in it.

    reply: `response`, and what else a log has of it, such as `reasoning` and `finish`. names: of
    the judges, those of `genprobe yesno` if not given.
    """
    [found] = judged_rows(Rows([{**row, **reply}], "reply"), _judges(tuple(names)))
    return found


@functools.cache
def _judges(names: tuple[str, ...]) -> list[Judge]:
    return make(names)


def cells(rows: Sequence[Row]) -> dict[str, Score]:
    """Count rows that were read: measure, and what tells it from the others, such as its question.

    The names are `endorsed_agreement`, or `endorsed_kk_agreement` if there are several languages.
    What there is nothing to count of is left out.
    """
    from genprobe.analysis.score import score

    # A column of the statements that is called so is no model that was asked.
    own = [{k: v for k, v in row.items() if k not in ("model", "revision")} for row in rows]
    found = [one for one in score(Rows(own, "replies"), note=_told) if one.value is not None]
    alone = {name for one in found for name in one.by} - {"probe"}
    alone = {name for name in alone if len({one.by.get(name) for one in found}) == 1}
    return {
        "_".join([one.metric, *(str(v) for n, v in one.by.items() if n not in alone)]): one
        for one in found
    }


def _told(line: str) -> None:
    level = logging.WARNING if isinstance(line, Caution) else logging.INFO
    logging.getLogger("genprobe").log(level, line)
