"""Copies of runs for others: as they are, without hosts, or without texts.

A copy from which nothing is left out has the bytes of the run, and its seal. Any other has a seal
of its own and says which seal the run has, so that its owner can show that the copy is of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from genprobe.analysis.score import score
from genprobe.datasets import shades
from genprobe.errors import InputError, RunError
from genprobe.files import disk, door
from genprobe.outcomes import columns, counted
from genprobe.records import Score
from genprobe.runs import card, seal
from genprobe.runs.run import Run

HIDE = ("hosts", "texts")
_FILES = (*seal.SEALED, seal.NAME, seal.SIGNATURE, "scores.json", card.OUTCOMES, card.NAME)
# What of a run says nothing of what was asked and answered, word for word.
_BARE = ("run.json", "scores.json", card.OUTCOMES, card.NAME)
HIDDEN = "hidden"


def gated(run: Run) -> str:
    """Say why the texts of a run's data may not be passed on; "" if nothing is known against it."""
    if run.spec.data == "shades" or any(shades.REPO in one.source for one in run.statements()):
        return f"{shades.REPO} is gated"
    return f"{run.spec.data} has no licence" if run.spec.data_licence == "none" else ""


def copy(run: Run, place: Path, hide: list[str]) -> dict[str, Any]:
    """Copy a run to a new folder; return what is said of it: its name, its seal, what is hidden."""
    place.mkdir()
    for name in _FILES:
        if (run.folder / name).exists():
            disk.replace_bytes(place / name, [door.content(run.folder / name)])
    for path in sorted((run.folder / "judgments").glob("*.json*")):
        (place / "judgments").mkdir(exist_ok=True)
        disk.replace_bytes(place / "judgments" / path.name, [door.content(path)])
    sealed = run.seals()
    manifest = run.folder / seal.NAME
    about = {
        "name": place.name,
        "hidden": hide,
        "raw_seal": sealed[-1].short if sealed else "",
        "raw_manifest_sha256": hashlib.sha256(door.content(manifest)).hexdigest() if sealed else "",
    }
    if not sealed:
        Run.open(place).seal()
    if "hosts" in hide:
        _hide_hosts(place)
    opened = Run.open(place)
    if (place / "scores.json").exists():
        _need_current(run)
    else:
        score(opened, save=True)
    counted.counted(opened, keep=True)
    if "texts" in hide:
        _hide_texts(Run.open(place))
    about["seal"] = opened.seals()[-1].short if "texts" not in hide else ""
    (place / ".lock").unlink(missing_ok=True)
    return about


def _need_current(run: Run) -> None:
    """Raise RunError if a stored figure was counted of another reading than the run now has."""
    now = {f"judge.{name}:{signature}" for name, signature in run.judges().items()}
    for one in run.scores():
        read = {part for part in one.signature.split("|") if part.startswith("judge.")}
        if not read <= now:
            raise RunError(
                f"{run.folder}: the stored {one.metric} was counted of another reading of the "
                "replies; delete scores.json (it is counted again), then publish"
            )


def _hide_hosts(place: Path) -> None:
    """Take the address of the server, the path of the model and details of failures out."""
    old = Run.open(place).spec
    changed: dict[str, Any] = {
        "server": HIDDEN if old.server else "",
        "engine_version": HIDDEN if old.server else old.engine_version,
        "model": re.split(r"[/\\]", old.model.rstrip("/"))[-1]
        if _is_path(old.model)
        else old.model,
    }
    spec = dataclasses.replace(old, **changed)
    failures = [
        dataclasses.replace(one, detail=HIDDEN if one.detail else "").to_json() + "\n"
        for one in Run.open(place).failures()
    ]
    if spec == old and not failures:
        return
    disk.replace(place / "run.json", [json.dumps(vars(spec), indent=2, ensure_ascii=True) + "\n"])
    if failures:
        disk.replace(place / "failures.jsonl", failures)
    stored = Run.open(place).scores() if (place / "scores.json").exists() else []
    for name in (seal.NAME, seal.SIGNATURE, card.NAME, card.OUTCOMES):
        (place / name).unlink(missing_ok=True)
    run = Run.open(place)
    run.seal()
    if stored:
        run.write_scores([_signed(one, run) for one in stored])


def _is_path(model: str) -> bool:
    return model[:1] in "/\\~." or re.match(r"[A-Za-z]:[/\\]", model) is not None


def _signed(score: Score, run: Run) -> Score:
    """Sign a figure as one of the copy: what is hidden there does not stand in it."""
    mine = dict(part.split(":", 1) for part in run.signer()("").split("|"))
    own = []
    for part in score.signature.split("|"):
        key, _, value = part.partition(":")
        if key in ("server", "engine_version", "model", "seal"):
            value = mine.get(key, value)
        own.append(f"{key}:{value}")
    return dataclasses.replace(score, signature="|".join(own))


def _hide_texts(run: Run) -> None:
    """Keep of a run its settings, its figures, and the table that they are counted from.

    Columns of the data that genprobe does not know may hold texts, and go, unless a figure is split
    by them.
    """
    for one in run.statements():
        if one.text and one.text in (one.id, one.pair):
            raise InputError(
                f"{run.folder}: the id of a statement is its text; give ids of their own to hide it"
            )
    table = counted.counted(run)
    split = {name for score in run.scores() for name in score.by}
    known = {*columns.unit_of(run.spec).known, *split}
    kept = table[[name for name in table if name in known]]
    disk.replace_bytes(run.folder / card.OUTCOMES, counted.file_of(kept, "", ""))
    for path in sorted(run.folder.iterdir()):
        if path.is_file() and path.name not in _BARE:
            path.unlink()
    for path in (run.folder / "judgments").glob("*.jsonl"):
        path.unlink()
    disk.replace(run.folder / card.NAME, [card.text(run.folder, run.spec)])
