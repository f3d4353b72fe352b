"""BBQ as its authors publish it (Parrish et al. 2022, Findings of ACL): a folder of JSON Lines.

`bbq` by name is fetched from the authors' repository, and only then: at a fixed commit, each file
checked against its git hash, kept in the cache of this machine ($XDG_CACHE_HOME/genprobe/bbq). A
folder is a copy of the repository, or of its `data`.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from genprobe.errors import InputError
from genprobe.files import Notes

NAME = "bbq"
ABOUT = "58,492 choices of BBQ in English (choices, logprob): fetched from its authors' repository"
URL = "https://raw.githubusercontent.com/nyu-mll/BBQ"
COMMIT = "bea11bd97d79217245b5871acd247b9d6eb24598"  # 6 July 2022, the last
# Category -> git's hash of its file at that commit.
CATEGORIES = {
    "Age": "5c5e7586163b869fe029e77e63716f2026e4ae08",
    "Disability_status": "9aedeccaf599299cdfa523531d625ae85ecb9131",
    "Gender_identity": "dc79ceaaa9e7126edc99a200d632899c50274b16",
    "Nationality": "cba9b63d34536cb51a6cbae76b189df3d2a945c0",
    "Physical_appearance": "8cbdf83265459083224e3a2d37809294ff12ad77",
    "Race_ethnicity": "68daf3d692b27a10596772b3b15742b26f0b110e",
    "Race_x_SES": "905cd8a5b8734e2063fe524e69a38f0a71c75907",
    "Race_x_gender": "dd09a905b284690445d36259d675243950fa0bd7",
    "Religion": "44c1940ee22f00891ab4a5526a293691957aeacb",
    "SES": "78d11ffbdb70f501617345e5c697d00045d57c29",
    "Sexual_orientation": "a06351f4dd67ba30632396eeb0c3677c67b7d387",
}
_WAIT = 60  # seconds for a file


def paths(source: str, notes: Notes) -> list[Path]:
    """List the files of `bbq`, fetched where they are not here yet, or of a folder.

    InputError, in one line, for a folder without JSON Lines, or what cannot be fetched.
    """
    if source != NAME:
        return _folder(Path(source))
    there = _cache()
    found = [there / f"{name}.jsonl" for name in CATEGORIES]
    missing = [path for path in found if not path.is_file()]
    for path in missing:
        _fetch(path)
    how = "fetched from" if missing else "read from the cache;"
    notes.add(f"BBQ {how} github.com/nyu-mll/BBQ at commit {COMMIT[:12]}")
    return found


def _folder(folder: Path) -> list[Path]:
    """List the JSON Lines files of a folder, or of `data` in it."""
    for place in (folder, folder / "data"):
        if found := sorted(place.glob("*.jsonl")):
            return found
    raise InputError(
        f"{folder}: a folder without *.jsonl, as BBQ's `data` has; name a file, or that folder"
    )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "genprobe" / "bbq" / COMMIT[:12]


def _fetch(path: Path) -> None:
    """Fetch one file and keep it, whole or not at all."""
    url = f"{URL}/{COMMIT}/data/{path.name}"
    cure = "try later, or name a folder or file of it in --data"
    try:
        with urllib.request.urlopen(url, timeout=_WAIT) as answer:
            content: bytes = answer.read()
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: the server answers with HTTP {error.code}; {cure}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{url}: cannot be reached ({type(error).__name__}); {cure}") from None
    # Git names a file by this hash, which tells a cut or changed file.
    known = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if known != CATEGORIES[path.stem]:
        raise InputError(f"{url}: not the file that its authors published; {cure}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_bytes(content)
    partial.replace(path)
