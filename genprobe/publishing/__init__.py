"""A folder to publish: runs, their figures and cards, which a stranger checks with nothing else.

    runs/NAME/          each run: as it is, or without hosts or texts (`copies`)
    README.md           the evaluation card, with the metadata of the Hugging Face hub
    model-index.yml     the main figures, for the card of the model
    croissant.json      Croissant 1.1 with RAI fields
    data/genprobe-…/    records of Every Eval Ever (`records`)
    figures.csv         every figure of every run, with its signature
    report.html, figures/   the page, and the figures for a paper
    CITATION.cff, published.json, SHA256SUMS

Nothing is sent. SHA256SUMS holds every file but itself; `sha256sum -c` reads it, and `verify` makes
it again, so an altered, added or dropped byte anywhere is found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from genprobe import files
from genprobe._version import __version__
from genprobe.analysis.again import differing_rows, score_again
from genprobe.analysis.sources import runs_of
from genprobe.errors import Caution, InputError, RunError
from genprobe.files import disk, door
from genprobe.limits import parsed
from genprobe.outcomes import counted
from genprobe.publishing import cards, copies, records
from genprobe.resources import registry
from genprobe.runs import card
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text import many

SUMS, ABOUT, FIGURES, RUNS = "SHA256SUMS", "published.json", "figures.csv", "runs"
PAGE, DRAWN = "report.html", "figures"


def is_publication(folder: object) -> bool:
    """Tell whether something is a folder that `publish` made."""
    return isinstance(folder, Path) and (folder / ABOUT).is_file() and (folder / SUMS).is_file()


def publish(
    runs: Any,
    out: str | Path,
    *,
    hide: str | list[str] | tuple[str, ...] = (),
    note: Note = quiet,
) -> Path:
    """Write a folder with runs, their figures and cards, ready to be published; send nothing.

    runs: one or several, sealed at their end or sealed here. out: a new folder. hide: `hosts`
    (addresses of servers, paths of models and what servers said of failures), `texts` (statements,
    prompts, replies, evidence; data that are gated hide them anyway). note: called with what was
    hidden, and with the SHA-256 by which the folder is known. Returns the folder. Raises InputError
    for a name that is taken, RunError for a run that is not whole.
    """
    folder, hidden = Path(out), registry.listed(hide, "hide")
    for one in hidden:
        if one not in copies.HIDE:
            raise registry.unknown("part to hide", one, copies.HIDE)
    if folder.exists():
        raise InputError(f"{folder}: is there already; name a new folder")
    opened = [Run.open(one) for one in runs_of(runs)]
    for run in opened:
        if problems := run.verify():
            raise RunError(f"{run.folder}: {problems[0]}; `genprobe verify {run.folder}` says all")
    with disk.writing(folder), tempfile.TemporaryDirectory(dir=folder.parent) as name:
        made = Path(name) / "made"
        (made / RUNS).mkdir(parents=True)
        about: dict[str, Any] = {
            "genprobe": __version__,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "runs": [],
        }
        for run in opened:
            gated = copies.gated(run)
            if gated and "texts" not in hidden:
                note(Caution(f"{run.folder}: {gated}: its texts are left out"))
            parts = sorted({*hidden, "texts"} if gated else {*hidden})
            place = made / RUNS / _free(made / RUNS, run.folder.name)
            about["runs"].append(copies.copy(run, place, parts))
        _write_page([made / RUNS / one["name"] for one in about["runs"]], made, about, note)
        disk.replace(made / ABOUT, [json.dumps(about, indent=2) + "\n"])
        _write_cards(made, made, about)
        disk.replace(made / SUMS, list(_sums(made)), encoding="utf-8")
        made.rename(folder)
    known = hashlib.sha256(door.content(folder / SUMS)).hexdigest()
    note(f"{folder}: {many(len(opened), 'run')}; {SUMS} has the SHA-256 {known}; publish it, too")
    return folder


def _free(folder: Path, name: str) -> str:
    """Return a name that no run in the folder has."""
    number, plain = 1, "".join(c if c.isalnum() or c in "-_." else "-" for c in name) or "run"
    found = plain
    while (folder / found).exists():
        number += 1
        found = f"{plain}-{number}"
    return found


def _write_page(folders: list[Path], made: Path, about: dict[str, Any], note: Note) -> None:
    """Write the page and the figures of runs whose texts are there."""
    from genprobe.report import figures, render

    if any("texts" in one["hidden"] for one in about["runs"]):
        note(f"no {PAGE}, no {DRAWN}: they are made of texts that are hidden")
        return
    disk.replace(made / PAGE, [render(folders, note=note)], encoding="utf-8")
    with contextlib.suppress(RunError):  # there are no figures of these runs
        figures.draw(folders, made / DRAWN, note=note)


def _write_cards(folder: Path, out: Path, about: dict[str, Any]) -> None:
    """Write what is made of the runs of a publication alone; the same runs give the same bytes."""
    runs = [(one, Run.open(folder / RUNS / one["name"])) for one in about["runs"]]
    rows = [
        {
            "run": one["name"],
            "model": run.spec.model,
            **{n: v for n, v in vars(score).items() if n not in ("by", "excluded", "bounds")},
            **{n: json.dumps(getattr(score, n)) for n in ("by", "excluded", "bounds")},
        }
        for one, run in runs
        for score in run.scores()
    ]
    files.write_rows(out / FIGURES, [row | {"readings": str(row["readings"])} for row in rows])
    for one, run in runs:
        for path, content in records.made(one["name"], run, about["at"]):
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            disk.replace(out / path, [json.dumps(content, indent=2) + "\n"])
    for name, text in cards.made(runs, about):
        disk.replace(out / name, [text], encoding="utf-8")


def _sums(folder: Path) -> Iterator[str]:
    """Yield the lines of SHA256SUMS. Raises InputError for a link, or a name in two lines."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not name.isprintable():
            raise InputError(f"{path}: is a link, or its name cannot be printed")
        if path.is_file() and name != SUMS and path.name != ".lock":
            with door.reading(path) as file:
                yield f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n"


# --- checks


def check(folder: Path) -> tuple[list[Run], list[Path], list[str]]:
    """Check that a publication has just the files, byte for byte, with which it was made.

    Returns its runs that have their texts, the folders of the others, and the problems. Raises
    RunError if what it says of itself cannot be read.
    """
    problems: list[str] = []
    said = dict(_parted(line) for line in _lines(folder / SUMS))
    found = dict(_parted(line) for line in _sums(folder))
    for name in sorted({*said, *found}):
        if said.get(name) != found.get(name):
            gone, new = name not in found, name not in said
            what = "was dropped" if gone else "was added" if new else "was edited"
            problems.append(f"{folder / name}: {what} since it was published")
    if not problems and "".join(_sums(folder)) != "".join(_lines(folder / SUMS)):
        problems.append(f"{folder / SUMS}: was edited: its lines are not those of its files")
    whole, bare = [], []
    for one in about_of(folder)["runs"]:
        place = folder / RUNS / one["name"]
        if "texts" in one["hidden"]:
            bare.append(place)
        elif (place / "run.json").is_file():
            whole.append(Run.open(place))
    return whole, bare, problems


def recompute(folder: Path, bare: list[Path], note: Note) -> Iterator[str]:
    """Yield what differs if figures, cards and records are made again of a publication's runs.

    bare: its runs without texts, whose figures are counted from `outcomes.parquet`.
    """
    for place in bare:
        run = Run.open(place)
        table = counted.stored(place / card.OUTCOMES)
        if table is None:
            yield f"{place / card.OUTCOMES}: cannot be read"
            continue
        found = score_again(run, outcomes=table)
        yield from (f"{place}: {line}" for line in found.differences)
        said = "counted from outcomes.parquet; the replies are not here, so nobody can read them"
        note(f"{place}: {many(found.figures, 'figure')} computed again, {said}")
        for name, why in found.left.items():
            note(Caution(f"{place}: not computed again: {name}: {why}"))
    about = about_of(folder)
    if about["genprobe"] != __version__:
        note(
            Caution(f"{folder}: made by genprobe {about['genprobe']}; its cards are not made again")
        )
        return
    with tempfile.TemporaryDirectory(prefix="genprobe-verify-") as name:
        again = Path(name)
        _write_cards(folder, again, about)
        made = [path for path in sorted(again.rglob("*")) if path.is_file()]
        for path in made:
            own = folder / path.relative_to(again)
            if path.name == FIGURES and own.is_file():
                yield from (f"{folder}: {line}" for line in differing_rows(own, path))
            elif not own.is_file() or door.content(own) != door.content(path):
                yield f"{own}: the runs give another"
        note(f"{folder}: {many(len(made), 'table and card')} made again")


def about_of(folder: Path) -> dict[str, Any]:
    """Read `published.json`. Raises RunError if it is not as `publish` wrote it."""
    try:
        found = parsed(door.content(folder / ABOUT))
        names = [one["name"] for one in found["runs"]]
        assert all(type(name) is str and "/" not in name and name[:2] != ".." for name in names)
        assert all(set(one["hidden"]) <= set(copies.HIDE) for one in found["runs"])
        assert isinstance(found["genprobe"], str) and isinstance(found["at"], str)
    except (OSError, ValueError, TypeError, LookupError, AssertionError):
        raise RunError(f"{folder / ABOUT}: is not as genprobe wrote it; get a fresh copy") from None
    return dict(found)


def _lines(path: Path) -> list[str]:
    return door.content(path).decode("utf-8", "replace").splitlines(keepends=True)


def _parted(line: str) -> tuple[str, str]:
    digest, _, name = line.rstrip("\n").partition("  ")
    return name, digest
