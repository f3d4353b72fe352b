"""BBQ as its authors publish it (Parrish et al. 2022, Findings of ACL): a folder of JSON Lines.

The name `bbq` downloads the data from the authors' repository (a folder does not), at a fixed
commit, into the cache of this machine ($XDG_CACHE_HOME/genprobe/bbq); each file is checked against
its git hash whenever it is read. A folder must be a copy of the repository, or of its `data`.

The authors' bias scores use `target_loc`, the option that agrees with the stereotype, from a
separate file, additional_metadata.csv. If this file is beside the data (or in `supplemental` or
`analysis_scripts` of the repository), it is joined by category and example_id; a question for which
it names no option has no bias score, because the authors leave such questions out. Without the
file, the target is found by the questions' own metadata (see `choices`): the same option in all
9,536 questions of Age, Nationality, Physical_appearance and Religion, but none where a group is
written in two ways, as for names ("F-Black", stereotyped: "Black").
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from genprobe.errors import InputError
from genprobe.files import Row, disk, door, numbered_rows
from genprobe.files.cells import Notes, cell_text

NAME = "bbq"
ABOUT = "58,492 choices of BBQ in English (choices, logprob): fetched from its authors' repository"
URL = "https://raw.githubusercontent.com/nyu-mll/BBQ"
COMMIT = "bea11bd97d79217245b5871acd247b9d6eb24598"  # 6 July 2022, the last
TARGETS = "additional_metadata.csv"
# File -> its git hash at that commit.
FILES = {
    "data/Age.jsonl": "5c5e7586163b869fe029e77e63716f2026e4ae08",
    "data/Disability_status.jsonl": "9aedeccaf599299cdfa523531d625ae85ecb9131",
    "data/Gender_identity.jsonl": "dc79ceaaa9e7126edc99a200d632899c50274b16",
    "data/Nationality.jsonl": "cba9b63d34536cb51a6cbae76b189df3d2a945c0",
    "data/Physical_appearance.jsonl": "8cbdf83265459083224e3a2d37809294ff12ad77",
    "data/Race_ethnicity.jsonl": "68daf3d692b27a10596772b3b15742b26f0b110e",
    "data/Race_x_SES.jsonl": "905cd8a5b8734e2063fe524e69a38f0a71c75907",
    "data/Race_x_gender.jsonl": "dd09a905b284690445d36259d675243950fa0bd7",
    "data/Religion.jsonl": "44c1940ee22f00891ab4a5526a293691957aeacb",
    "data/SES.jsonl": "78d11ffbdb70f501617345e5c697d00045d57c29",
    "data/Sexual_orientation.jsonl": "a06351f4dd67ba30632396eeb0c3677c67b7d387",
    f"supplemental/{TARGETS}": "564eb184be7427cefe9f1ffd8fd03cb700e6aa98",
}
_WAIT = 60  # timeout of a download, in seconds


def paths(source: str, notes: Notes) -> list[Path]:
    """List the JSON Lines files of `bbq`, which are downloaded if necessary, or of a folder.

    Raises InputError for a folder without such files, or if a download fails.
    """
    if source != NAME:
        return _folder(Path(source))
    there = _cache()
    missing = [name for name in FILES if not _whole(there / Path(name).name, FILES[name])]
    for name in missing:
        _fetch(name, there)
    how = "fetched from" if missing else "read from the cache;"
    notes.add(f"BBQ {how} github.com/nyu-mll/BBQ at commit {COMMIT[:12]}")
    return [there / Path(name).name for name in FILES if name.endswith(".jsonl")]


def targets(path: Path) -> Path | None:
    """Find the authors' file of targets for a file of questions; None if there is none."""
    folders = [path.parent, path.parent.parent]
    places = [folder / name for folder in folders for name in ("supplemental", "analysis_scripts")]
    found = [place / TARGETS for place in (path.parent, *places)]
    return next((file for file in found if file.is_file()), None)


def joined(rows: Iterable[tuple[int, Row]], file: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of questions, each with its `target_loc` from the authors' file.

    A row that already has a target, or that is not in the file, is unchanged. Raises InputError for
    a file without the columns category, example_id and target_loc.
    """
    known = _targets(file)
    for number, row in rows:
        named = known.get(_key(row))
        if named is None or cell_text(row.get("target")) or cell_text(row.get("target_loc")):
            yield number, row
        elif named.isdecimal():
            yield number, {**row, "target_loc": named}
        else:  # "NA": the authors leave it out, so no target may be found by its metadata either
            yield number, {key: v for key, v in row.items() if key != "additional_metadata"}


def _targets(file: Path) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for number, row in numbered_rows(file):
        missing = [name for name in ("category", "example_id", "target_loc") if name not in row]
        if missing:
            raise InputError(f"{file}: no column {missing[0]!r}, which BBQ's {TARGETS} has")
        named = cell_text(row["target_loc"]).removesuffix(".0") or "NA"
        if found.setdefault(_key(row), named) != named:
            raise InputError(f"{file}, row {number}: another target_loc for the same question")
    return found


def _key(row: Mapping[str, object]) -> tuple[str, str]:
    """Return the key of a question: its category, in one spelling, and its example_id."""
    category = cell_text(row.get("category")).strip().lower().replace(" ", "_")
    return category, cell_text(row.get("example_id")).removesuffix(".0")


def _folder(folder: Path) -> list[Path]:
    """List the JSON Lines files of a folder, or of its subfolder `data`."""
    door.need_own(folder)
    for place in (folder, folder / "data"):
        if found := sorted(place.glob("*.jsonl")):
            return found
    raise InputError(f"{folder}: the folder has no *.jsonl; name a file, or BBQ's folder `data`")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "genprobe" / "bbq" / COMMIT[:12]


def _whole(path: Path, hash_: str) -> bool:
    return path.is_file() and _hash(door.content(path)) == hash_


def _hash(content: bytes) -> str:
    """Return git's hash of a file, by which a file that was cut or changed is detected."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _fetch(name: str, there: Path) -> None:
    """Download one of `FILES` and store it, completely or not at all."""
    path = there / Path(name).name
    url = f"{URL}/{COMMIT}/{name}"
    cure = "try later, or name a folder or file of it in --data"
    try:
        with urllib.request.urlopen(url, timeout=_WAIT) as answer:
            content: bytes = answer.read()
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: the server answers with HTTP {error.code}; {cure}") from None
    except http.client.HTTPException as error:
        raise InputError(f"{url}: the connection broke ({type(error).__name__}); {cure}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{url}: cannot be reached ({type(error).__name__}); {cure}") from None
    if _hash(content) != FILES[name]:
        raise InputError(f"{url}: not the file that its authors published; {cure}")
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace_bytes(path, [content])
