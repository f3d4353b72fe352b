"""Write prompts for choices that a model answers in words: frames, orders of options, examples.

A frame is a layout of a choice, a table of `prompts/choosing/<lang>.toml`: `bare` (options without
labels), `letters` (of the language's script), `numbers`, and `shades` in Russian, as printed in
SHADES' Figure 28. (PBBQ prints no question prompt: it scores the options after the bare text, as
`genprobe logprob` does.)

Source of the orders: BBQ and PBBQ 3.3 name the two people in both orders. Models prefer some
positions (Pezeshkpour & Hruschka 2024, Findings of NAACL), so every order is asked, or a balanced
rotation, in which every option is once in every position.

`prompts/choosing/wordings/<lang>.toml` has further wordings of the frames (see `read_panel`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from genprobe.datasets import choices
from genprobe.errors import InputError
from genprobe.records import JSON, Request, Statement
from genprobe.resources import packs, panel, registry

PACK = "choosing/1"
ORDERS = ("all", "balanced", "given")


@dataclass(frozen=True)
class Frame:
    """A layout of a choice. marks: the labels of the options; empty if they have none."""

    name: str
    text: str
    option: str
    marks: tuple[str, ...]
    joined: str
    source: str
    review: str


@functools.cache
def frames(lang: str) -> dict[str, Frame]:
    """Read the frames of a language, by name. InputError if it has none, or a malformed one."""
    path = registry.path("choosing", f"{lang}.toml")
    if not path.is_file():
        known = ", ".join(registry.names("choosing"))
        raise InputError(
            f"no wording to ask choices in {lang!r} (prompts/choosing); there are wordings in "
            f"{known}"
        )
    return read_frames(path)


def file_hash(lang: str) -> str:
    """Hash the file of frames of a language, for the signature."""
    return packs.file_hash(registry.path("choosing", f"{lang}.toml"))


def read_frames(path: Path) -> dict[str, Frame]:
    """Read the frames in a file, by name. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    source, review = row.pop("source", None), row.pop("review", None)
    if not (isinstance(source, str) and isinstance(review, str)):
        raise InputError(f"{path}: 'source' and 'review' must be texts")
    if not row:
        raise InputError(f"{path}: no frame; a frame is a table with 'text' and 'option'")
    return {name: _frame(name, part, source, review, path) for name, part in row.items()}


def _frame(name: str, part: JSON, source: str, review: str, path: Path) -> Frame:
    known = {"text": "", "option": "", "marks": "", "joined": "\n", "source": source}
    if not isinstance(part, dict):
        raise InputError(f"{path}: {name!r} must be a table")
    for key, value in part.items():
        if key not in known or not isinstance(value, str):
            raise InputError(f"{path}: [{name}] {key!r} must be one of {', '.join(known)}, a text")
        known[key] = value
    for place in ("{context}", "{question}", "{options}"):
        if known["text"].count(place) != 1:
            raise InputError(f"{path}: [{name}] 'text' must hold {place} once")
    marks = tuple(known["marks"].split())
    if known["option"].count("{option}") != 1 or ("{mark}" in known["option"]) != bool(marks):
        raise InputError(f"{path}: [{name}] 'option' must hold {{option}}, and {{mark}} with marks")
    if marks and (len(set(marks)) < len(marks) or len(marks) < choices.MOST):
        raise InputError(f"{path}: [{name}] needs {choices.MOST} different marks")
    return Frame(
        name, known["text"], known["option"], marks, known["joined"], known["source"], review
    )


@functools.cache
def wordings() -> tuple[str, ...]:
    """Return the names of the further wordings, which are the same in every language."""
    return tuple(_panel_rows(_panel_path("en")))


def worded(probe: str, ways: Sequence[panel.Way]) -> list[tuple[panel.Way, Frame]]:
    """Return the given ways of asking, each with the frame in its language and wording.

    probe: the name of the frame. A frame without further wordings is used once, as published.
    """
    found: dict[panel.Way, Frame] = {}
    for way in ways:
        frame = frames(way.lang)[probe]
        texts = {} if way.wording == panel.PUBLISHED else panel_of(way.lang)[way.wording]
        if probe in texts:
            found[way] = dataclasses.replace(frame, text=texts[probe])
        else:
            found.setdefault(way._replace(wording=panel.PUBLISHED, order=None), frame)
    return list(found.items())


@functools.cache
def panel_of(lang: str) -> dict[str, dict[str, str]]:
    """Read a language's further wordings: wording -> frame -> text. InputError without any."""
    path = _panel_path(lang)
    if not path.is_file():
        raise InputError(
            f"no further wordings of choices in {lang!r} ({path.parent}); leave --wordings out"
        )
    return read_panel(path)


def panel_hash(lang: str) -> str:
    """Hash the further wordings of a language, for the signature."""
    return packs.file_hash(_panel_path(lang))


def _panel_path(lang: str) -> Path:
    return registry.path("choosing", panel.FOLDER, f"{lang}.toml")


def read_panel(path: Path) -> dict[str, dict[str, str]]:
    """Read further wordings of the frames.

    In the file, `layout` has {context}, {question}, {options} and {task}; the last is replaced by
    the sentence of each frame. Returns wording -> frame -> text. Raises InputError for a frame that
    is missing, or for two equal texts.
    """
    published, found = frames(path.stem), {}
    known = set(_TASKS)
    if path.stem != "en":
        packs.no_more(_panel_rows(path), set(wordings()), path)
    for name, row in _panel_rows(path).items():
        packs.no_more(row, {"layout", *known}, path, f"{name}.")
        layout = packs.string(row, "layout", path)
        tasks = {frame: packs.string(row, frame, path) for frame in _TASKS}
        found[name] = {
            frame: choices.fill(layout, {"{task}": task}) for frame, task in tasks.items()
        }
        for place in ("{context}", "{question}", "{options}"):
            if layout.count(place) != 1 or layout.count("{task}") != 1:
                raise InputError(f"{path}: {name}.layout must hold {place} and {{task}} once")
    if path.stem != "en" and (missing := [name for name in wordings() if name not in found]):
        raise InputError(f"{path}: no wording [{missing[0]}], which English has")
    for frame in _TASKS:
        texts = [published[frame].text, *(row[frame] for row in found.values())]
        if len({text.strip() for text in texts}) < len(texts):
            raise InputError(f"{path}: two wordings of {frame!r} are the same")
    return found


# The frames that have further wordings; these frames exist in all languages.
_TASKS = ("bare", "letters", "numbers")


def _panel_rows(path: Path) -> dict[str, dict[str, JSON]]:
    row = packs.read_toml(path)
    for key in ("source", "review"):
        packs.string(row, key, path)
    names = [key for key in row if key not in ("source", "review")]
    return {name: packs.table(row, name, path) for name in names}


def orders(count: int, how: str) -> list[tuple[int, ...]]:
    """List orders of `count` options: all orders, a balanced rotation, or the order of the data."""
    given = tuple(range(count))
    if how == "all":
        return list(itertools.permutations(given))
    return [given[at:] + given[:at] for at in given] if how == "balanced" else [given]


def order_number(order: Sequence[int]) -> int:
    """Return the number of an order among all orders; 0 is the order of the data."""
    left, number = sorted(order), 0
    for at in order:
        number = number * len(left) + left.index(at)
        left.remove(at)
    return number


def put(frame: Frame, statement: Statement, order: Sequence[int]) -> str:
    """Write the prompt of a choice, with its options in the given order."""
    texts = options(statement)
    listed = frame.joined.join(
        choices.fill(
            frame.option,
            {"{mark}": mark, "{option}": texts[at]} if frame.marks else {"{option}": texts[at]},
        )
        for at, mark in zip(order, frame.marks or ("",) * len(order), strict=False)
    )
    extra = statement.extra
    parts = {"{context}": str(extra["context"]), "{question}": str(extra["question"])}
    # Stripped, so that an empty context leaves no empty line at the beginning.
    return choices.fill(frame.text, {**parts, "{options}": listed}).strip()


def said(frame: Frame, statement: Statement, order: Sequence[int], number: int) -> str:
    """Return the answer that names option `number`: its mark in this order, or else its text."""
    return frame.marks[list(order).index(number)] if frame.marks else options(statement)[number]


def shown(request: Request) -> tuple[str, ...]:
    """List the marks of the options in a planned request; none in a bare frame."""
    if request.pack != PACK:
        return ()
    marks = frames(packs.first_of(request.lang))[request.probe].marks
    return marks[: len(request.options)]


def options(statement: Statement) -> list[str]:
    """Return the texts of the options, in the order of the data."""
    found = statement.extra["options"]
    return [str(option) for option in found] if isinstance(found, list) else []


def turns(frame: Frame, shots: Sequence[Statement]) -> list[dict[str, str]]:
    """Write examples as chat messages: each question, in the order of the data, and its answer."""
    found = []
    for shot in shots:
        order = tuple(range(len(options(shot))))
        label = shot.extra["label"]
        assert isinstance(label, int)
        found.append({"role": "user", "content": put(frame, shot, order)})
        found.append({"role": "assistant", "content": said(frame, shot, order, label)})
    return found
