"""Find languages, packs, classifiers, engines, judges and metrics by file name.

To add one, add a file to its folder; no other file changes.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from genprobe.errors import InputError
from genprobe.text import normalise

_HERE = Path(__file__).parent.parent  # the package
# In a wheel the prompts are inside the package, in a checkout beside it.
_SHIPPED = _HERE / "prompts" if (_HERE / "prompts").is_dir() else _HERE.parent / "prompts"
# The folder of prompts, or the user's copy of it with other languages or wordings.
PROMPTS = Path(os.environ.get("GENPROBE_PROMPTS") or _SHIPPED)
CLASSIFIERS = _SHIPPED.parent / "classifiers"

# Families of modules -> their subpackages.
MODULES = {
    "engines": "engines",
    "figures": "report.figures",
    "judges": "judges",
    "metrics": "metrics",
    "reproduce": "analysis.reproduce",
    "tasks": "tasks",
}
_ONE = {"reproduce": "reproduction"}  # singular names that are not the plural without s


def names(family: str) -> list[str]:
    """Return the sorted names of a family: `languages`, `packs`, `classifiers`, `engines`, …"""
    if family not in (*MODULES, "classifiers"):
        prompts()
    if family in MODULES:
        return sorted(p.stem for p in _HERE.joinpath(*MODULES[family].split(".")).glob("[a-z]*.py"))
    if family == "packs":
        return sorted(p.parent.name for p in PROMPTS.glob("*/pack.toml"))
    if family == "classifiers":
        return sorted(p.stem for p in CLASSIFIERS.glob("*.toml"))
    return sorted(p.stem for p in (PROMPTS / family).glob("*.toml"))


def prompts() -> Path:
    """Return the folder of languages, packs and wordings. InputError if it has no languages."""
    if not (PROMPTS / "languages").is_dir():
        found = "no prompts in" if PROMPTS.is_dir() else "no folder"
        raise InputError(f"GENPROBE_PROMPTS: {found} {PROMPTS}; copy {_SHIPPED} there, or unset")
    return PROMPTS


def module(family: str, name: str) -> ModuleType:
    """Import a module of a family, and return it. Raises InputError for an unknown name."""
    check(family, name)
    return importlib.import_module(f"genprobe.{MODULES[family]}.{name}")


def check(family: str, name: str) -> None:
    """Raise InputError, with the most similar known name, unless the family has this name."""
    known = names(family)
    if name not in known:
        raise unknown(_ONE.get(family, family.removesuffix("s")), name, known)


def unknown(what: str, name: str, known: Sequence[str], other: str = "") -> InputError:
    """Make the error for an unknown name, with the most similar known one.

    other: in words, what else can be given instead of a known name.
    """
    same = [one for one in known if normalise(one.strip()) == normalise(name.strip())]
    begins = [one for one in known if len(one) > 3 and name.startswith(one)]  # language: lang
    near = same or begins[:1] or difflib.get_close_matches(name, known, n=1)
    there = ", ".join([*known, *([other] if other else [])])
    hint = f"did you mean {near[0]!r}?" if near else f"known: {there}"
    shown = name if len(name) <= 80 else f"{name[:80]}…"
    return InputError(f"unknown {what} {shown!r}; {hint}")
