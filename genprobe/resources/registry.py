"""Find languages, packs, classifiers, engines, judges and metrics by file name.

To add one, add a file to its folder; no other file changes. What is not part of genprobe stands in
folders of one's own (`--with FOLDER`, `GENPROBE_PATH`: `judges/NAME.py`, `prompts/languages/…`), or
comes with an installed package: an entry point of the group `genprobe.judges` names a module.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType

from genprobe.errors import GenprobeError, InputError, need_models
from genprobe.text import normalise

_HERE = Path(__file__).parent.parent  # the package
# In a wheel the prompts are inside the package, in a checkout beside it.
_SHIPPED = _HERE / "prompts" if (_HERE / "prompts").is_dir() else _HERE.parent / "prompts"
# The folder of prompts, or the user's copy of it with other languages or wordings.
PROMPTS = Path(os.environ.get("GENPROBE_PROMPTS") or _SHIPPED)
CLASSIFIERS = _SHIPPED.parent / "classifiers"

# Folders with members of one's own, as in PATH; `genprobe --with FOLDER` adds one.
WITH = "GENPROBE_PATH"
_FOLDERS = "genprobe.folders"  # entry points: packages that are such folders

# Families of modules -> their subpackages.
MODULES = {
    "commands": "commands",
    "engines": "engines",
    "figures": "report.figures",
    "judges": "judges",
    "logs": "logs",
    "metrics": "metrics",
    "reproduce": "analysis.reproduce",
    "tasks": "tasks",
}
# What a module of a family must have.
_NEEDS = {
    "commands": ("command",),
    "engines": ("PACKAGES",),
    "figures": ("figures",),
    "judges": ("make", "COLUMNS", "PLACE", "READS"),
    "logs": ("ABOUT", "fits", "read"),
    "metrics": ("METRICS",),
    "reproduce": ("FILES", "cells"),
    "tasks": ("TASK",),
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
    """Return the sorted names of a family: `languages`, `packs`, `classifiers`, `engines`, …

    Raises InputError for a member of one's own that has the name of another.
    """
    if family in MODULES:
        return sorted({p.stem for p in files(family)} | _entries(family).keys())
    if family != "classifiers":
        prompts()
    if family == "packs":
        return sorted(p.parent.name for p in files("packs", "*/pack.toml"))
    return sorted(p.stem for p in files(family))


def path(*parts: str) -> Path:
    """Return the place of a file or folder of prompts: ours, or else the one that a user added.

    A user's copy of the prompts may lack a folder, which is then the shipped one, but no file.
    """
    whole = len(parts) == 1 or (PROMPTS / parts[0]).is_dir()
    ours = (PROMPTS if whole else _SHIPPED).joinpath(*parts)
    theirs = () if ours.exists() else (root.joinpath("prompts", *parts) for root in added())
    return next(filter(Path.exists, theirs), ours)


def beside(file: Path, name: str) -> Path:
    """Return the file of another name in the same folder, or else ours of the same family."""
    there = file.with_stem(name)
    return there if there.is_file() else path(file.parent.name, there.name)


def files(family: str, pattern: str = "") -> list[Path]:
    """Return the files of a family, ours and those that a user added.

    family: one of MODULES, `classifiers`, `packs`, or a folder of prompts (`yesno/wordings`).
    pattern: which files, from the family's folder; by default `NAME.py` or `NAME.toml`.
    Raises InputError if one that a user added has the place of another.
    """
    if family in MODULES:
        ours, place = _HERE.joinpath(*MODULES[family].split(".")), family
        pattern = pattern or "[a-z]*.py"
    elif family == "classifiers":
        ours, place = CLASSIFIERS, family
    elif family == "packs":
        ours, place = PROMPTS, "prompts"
    else:
        there = (PROMPTS / family).is_dir()  # the user's copy may lack a family
        ours, place = (PROMPTS if there else _SHIPPED) / family, f"prompts/{family}"
    found: dict[Path, Path] = {}
    for root in (ours, *(one / place for one in added())):
        for file in sorted(root.glob(pattern or "*.toml")):
            other = found.setdefault(file.relative_to(root), file)
            if other is not file:
                raise InputError(f"{file}: there is one of this name ({other}); rename yours")
    return list(found.values())


def added() -> tuple[Path, ...]:
    """Return the folders of one's own, and those of installed packages (`genprobe.folders`).

    Raises InputError for one that is no folder, or adds nothing.
    """
    return _added(os.environ.get(WITH, ""))


@functools.cache
def _added(listed: str) -> tuple[Path, ...]:
    packages = (
        importlib.util.find_spec(one.value) for one in _installed() if one.group == _FOLDERS
    )
    named = [one for one in dict.fromkeys(listed.split(os.pathsep)) if one]
    named += [one for spec in packages if spec for one in spec.submodule_search_locations or ()]
    roots = tuple(Path(one).resolve() for one in named)
    places = (*MODULES, "prompts", "classifiers")
    for root in roots:
        if not root.is_dir():
            raise InputError(f"{root}: no folder (--with, {WITH})")
        if not any((root / one).is_dir() for one in places):
            raise InputError(f"{root}: adds nothing; name its folders {', '.join(places)}")
    return roots


@functools.cache  # looking through all packages takes 20 ms
def _installed() -> list[metadata.EntryPoint]:
    every = metadata.entry_points()
    groups = [one for one in every.groups if one.startswith("genprobe.")]
    return [one for group in groups for one in every.select(group=group)]


@functools.cache
def _entries(family: str) -> dict[str, str]:
    """Return the modules that installed packages add to a family: name -> module."""
    found: dict[str, str] = {}
    ours = {one.stem for one in files(family)}
    for one in _installed():
        if one.group != f"genprobe.{family}":
            continue
        if one.name in ours or found.setdefault(one.name, one.value) != one.value:
            raise InputError(
                f"{one.value}: adds {one.name!r} to the {family}, which have one of this name; "
                "rename its entry point, or remove the package"
            )
    return found


def prompts() -> Path:
    """Return the folder of languages, packs and wordings. InputError if it has no languages."""
    if not (PROMPTS / "languages").is_dir():
        found = "no prompts in" if PROMPTS.is_dir() else "no folder"
        raise InputError(f"GENPROBE_PROMPTS: {found} {PROMPTS}; copy {_SHIPPED} there, or unset")
    return PROMPTS


def module(family: str, name: str) -> ModuleType:
    """Import a module of a family, and return it.

    Raises InputError for an unknown name, and for one of the user's own that cannot be imported or
    lacks what its family needs; EngineError if it runs models and cannot here.
    """
    check(family, name)
    what = f"the {_ONE.get(family, family.removesuffix('s'))} {name}"
    place = _place(family, name)
    known = place in sys.modules
    try:
        with need_models(what, name if name in _extras() else "models"):
            found = importlib.import_module(place)
    except GenprobeError:
        raise
    except Exception as error:
        if not (own := _own(family, name)):
            raise
        raise InputError(f"{own}: cannot be imported ({type(error).__name__}: {error})") from error
    if not known and (lacks := [one for one in _NEEDS[family] if not hasattr(found, one)]):
        raise InputError(f"{found.__file__}: has no {', '.join(lacks)}; see docs/extending.md")
    return found


def _own(family: str, name: str) -> str:
    """Return where a member of the user's own stands; "" for one of genprobe's."""
    if name in (entries := _entries(family)):
        return entries[name]
    [file] = [one for one in files(family) if one.stem == name]
    return "" if file.is_relative_to(_HERE) else str(file)


def _place(family: str, name: str) -> str:
    """Return the full name of a module of a family, which Python can import from now on."""
    if name in (entries := _entries(family)):
        return entries[name]
    package = f"genprobe.{MODULES[family]}"
    if added():
        places = importlib.import_module(package).__path__
        places += [one for root in added() if (one := str(root / family)) not in places]
    return f"{package}.{name}"


@functools.cache
def _extras() -> Sequence[str]:
    """Return the extras of the installed genprobe; some are of one engine and have its name."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.metadata("genprobe").get_all("Provides-Extra") or ()
    return ()


def about(family: str, name: str) -> str:
    """Return the first line of the docstring of a module of a family, without importing it."""
    check(family, name)
    found = importlib.util.find_spec(_place(family, name))
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
