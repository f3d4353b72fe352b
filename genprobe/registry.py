"""The file name is the name: languages, packs, classifiers, engines, judges and metrics by name.

Adding one is adding a file to its folder; nothing else is touched.
"""

from __future__ import annotations

import difflib
import importlib
import os
from pathlib import Path
from types import ModuleType

from genprobe.errors import InputError

_HERE = Path(__file__).parent


def _prompts() -> Path:
    """The folder that GENPROBE_PROMPTS names, a copy that its user edits; else what is shipped:
    in the wheel it lies inside the package, in a checkout beside it.
    """
    if own := os.environ.get("GENPROBE_PROMPTS"):
        folder = Path(own).expanduser().resolve()
        if not (folder / "yesno" / "pack.toml").is_file():
            raise InputError(
                f"GENPROBE_PROMPTS: {own}: no copy of genprobe's prompts/ (no yesno/pack.toml)"
            )
        return folder
    return _HERE / "prompts" if (_HERE / "prompts").is_dir() else _HERE.parent / "prompts"


PROMPTS = _prompts()
# Beside the module `classifiers` the folder has another name.
CLASSIFIERS = _HERE / "cards" if (_HERE / "cards").is_dir() else _HERE.parent / "classifiers"

MODULES = ("engines", "judges", "metrics", "reproduce")
_ONE = {"reproduce": "reproduction"}  # what one of a family is called, where it is not without s


def names(family: str) -> list[str]:
    """Sorted names of a family: `languages`, `packs`, `classifiers`, `engines`, …"""
    if family in MODULES:
        return sorted(p.stem for p in (_HERE / family).glob("[a-z]*.py"))
    if family == "packs":
        return sorted(p.parent.name for p in PROMPTS.glob("*/pack.toml"))
    if family == "classifiers":
        return sorted(p.stem for p in CLASSIFIERS.glob("*.toml"))
    return sorted(p.stem for p in (PROMPTS / family).glob("*.toml"))


def module(family: str, name: str) -> ModuleType:
    """Import `genprobe.<family>.<name>`, only now. InputError for an unknown name."""
    check(family, name)
    return importlib.import_module(f"genprobe.{family}.{name}")


def check(family: str, name: str) -> None:
    """InputError, with the nearest known name, unless `name` is one of the family's."""
    known = names(family)
    if name not in known:
        raise unknown(_ONE.get(family, family.removesuffix("s")), name, known)


def unknown(what: str, name: str, known: list[str]) -> InputError:
    """The error for a name that is not known, with a guess at what was meant."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    shown = name if len(name) <= 80 else f"{name[:80]}…"
    return InputError(f"unknown {what} {shown!r}; {hint}")
