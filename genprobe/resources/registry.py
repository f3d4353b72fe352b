"""Find languages, packs, classifiers, engines, judges and metrics by file name.

To add one, add a file to its folder; no other file changes.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType

from genprobe.errors import InputError, need_models
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
    "logs": "logs",
    "metrics": "metrics",
    "reproduce": "analysis.reproduce",
    "tasks": "tasks",
}
# What `genprobe list` lists.
LISTS = (
    *("models", "packs", "languages", "classifiers", "engines", "judges", "scorers", "metrics"),
    *("columns", "data", "reproductions", "tasks", "words"),
)
# Singular names that are not the plural without s.
_ONE = {"reproduce": "reproduction", "page": "language of the page"}


def listed(given: object, what: str = "names") -> tuple[str, ...]:
    """Return one name or several as a tuple; a text is one name. Raises InputError for others."""
    several = (given,) if isinstance(given, str) else given
    if isinstance(several, Iterable) and not isinstance(several, bytes | Mapping):
        found = tuple(several)
        if all(isinstance(one, str) for one in found):
            return found
    raise InputError(f"{what}: give a name, or a list of names, not {type(given).__name__}")


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
    return sorted(p.stem for p in folder(family).glob("*.toml"))


def folder(family: str) -> Path:
    """Return the folder of a family of prompts: the user's, or else the one that is shipped."""
    return PROMPTS / family if (PROMPTS / family).is_dir() else _SHIPPED / family


def prompts() -> Path:
    """Return the folder of languages, packs and wordings. InputError if it has no languages."""
    if not (PROMPTS / "languages").is_dir():
        found = "no prompts in" if PROMPTS.is_dir() else "no folder"
        raise InputError(f"GENPROBE_PROMPTS: {found} {PROMPTS}; copy {_SHIPPED} there, or unset")
    return PROMPTS


def module(family: str, name: str) -> ModuleType:
    """Import a module of a family, and return it.

    Raises InputError for an unknown name, EngineError if it runs models and cannot here.
    """
    check(family, name)
    what = f"the {_ONE.get(family, family.removesuffix('s'))} {name}"
    with need_models(what, name if name in _extras() else "models"):
        return importlib.import_module(f"genprobe.{MODULES[family]}.{name}")


@functools.cache
def _extras() -> Sequence[str]:
    """Return the extras of the installed genprobe; some are of one engine and have its name."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.metadata("genprobe").get_all("Provides-Extra") or ()
    return ()


def about(family: str, name: str) -> str:
    """Return the first line of the docstring of a module of a family, without importing it."""
    check(family, name)
    found = importlib.util.find_spec(f"genprobe.{MODULES[family]}.{name}")
    source = found.loader.get_source(found.name) if found else ""  # type: ignore[union-attr]
    return (ast.get_docstring(ast.parse(source)) or "").split("\n")[0]


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
