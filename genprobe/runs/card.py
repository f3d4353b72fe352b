"""The README.md of a run folder, for people and for `datasets.load_dataset`.

    datasets.load_dataset("runs/NAME", "responses", split="train")

Each file of records is a configuration that states the types of its fields, because `datasets`
cannot guess the type of a field that is empty, or whose keys differ between rows. The type of
fields with varying keys is `json`, which needs datasets 4.7 or later. A file without rows is left
out, because `datasets` has no empty splits.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import types
import typing
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe.files import door
from genprobe.records import RECORDS, Record, Score
from genprobe.runs.seal import Seal
from genprobe.runs.spec import LOG, Spec

NAME = "README.md"

_WARNING = """\
> **Content warning.** The statements are stereotypes, offensive by nature, and the replies may be
> as bad. They are here to measure and reduce harm: for evaluation, never for training."""
_BUILTIN = """\
The statements are those that come with genprobe (Apache-2.0). The replies are a model's: its
licence says what may be done with them."""
_PUBLIC = """\
The statements are from `{data}` ({licence}; cite {citation}), which this folder holds word for
word: its licence says whether you may pass them on. The replies' is what the model's licence
says."""
_OTHER = """\
The statements are from `{data}`, and theirs is the licence of that source; the replies' is what the
model's licence says. Statements from a gated source stay where you got them: this folder holds them
word for word, so do not publish it, nor upload it to a hub without the same gate."""
_PAGE = """\
---
license: other
pretty_name: {title}
tags: ["not-for-all-audiences"]
configs:
{configs}
---
# {title}

{warning}

A run of `genprobe {command}`: model `{model}`, revision `{revision}`, languages {languages}.
Written by genprobe, and again whenever the folder changes; do not edit it. What was changed after
the run ended is said by `genprobe verify {folder}`.

{licence}

| | |
|---|---|
{asked}

{figures}

```python
import datasets

replies = datasets.load_dataset("{folder}", "responses", split="train")
```

Configurations: {names}. The table that is counted, without texts, once the run is scored:
`datasets.load_dataset("parquet", data_files="{folder}/outcomes.parquet")`. What the fields are:
`runs/README.md` of genprobe.

Seal of the records, which is in `MANIFEST`: {sealed}.
{sums}
"""
OUTCOMES = "outcomes.parquet"
_SUMMED = (OUTCOMES, "outcomes.csv", "outcomes.jsonl")  # the last two are of older versions
_COUNTED = ("statements", "requests", "responses", "logprobs")  # files whose rows are told
_SHOWN = 100  # figures on the page
_SUM = "- SHA-256 of `{}`: `{}`"
_SUM_LINE = re.compile(_SUM.format(r"([\w.]+)", "([0-9a-f]{64})"))
_OWN = "SHA-256 of this page up to here: "
_SEALED = re.compile(r"^Seal of the records, .*: `([0-9a-f]{16})", re.MULTILINE)


def text(
    folder: Path,
    spec: Spec,
    sealed: str = "",
    made: str = "",
    chain: Sequence[Seal] = (),
    figures: Sequence[Score] = (),
) -> str:
    """Write the text of README.md, in ASCII, for the files that are now in the folder.

    The page names the seal of the records, the hash of the outcomes that were made of them, and at
    its end its own. sealed: the seal; "" if there is none. made: the file that has just been
    written. chain: all seals of the run. figures: those of scores.json that hold for the records
    and judgments that are there.
    """
    before = _content(folder).decode("ascii", "replace")
    noted = dict(_SUM_LINE.findall(before)) if _OWN in before else {}
    there = [name for name in _SUMMED if (folder / name).exists()]
    if _OWN in before:  # what was edited since is not covered up
        there = [name for name in there if name in noted or name == made]
    sums = {
        name: noted[name] if name in noted and name != made else _sum(folder / name)
        for name in there
    }
    found = configurations(folder)
    model = spec.model.rstrip("/").rsplit("/", 1)[-1] if spec.model.startswith("/") else spec.model
    page = _PAGE.format(
        title=f"genprobe {spec.command}, {plain(model)}",
        configs="\n".join(f"- {json.dumps(one)}" for one in found),
        warning=_WARNING,
        command=spec.command,
        model=plain(model),
        revision=plain(" = ".join(filter(None, (spec.checkpoint, spec.revision)))),
        languages=", ".join(map(plain, spec.languages)),
        licence=_licence(spec),
        asked="\n".join(f"| {name} | {plain(what)} |" for name, what in _asked(spec, chain)),
        figures=_figures(figures),
        folder=plain(folder.name),
        names=", ".join(f"`{one['config_name']}`" for one in found),
        sealed=f"`{sealed}`" if sealed else "none",
        sums="\n".join(_SUM.format(*one) for one in sorted(sums.items())),
    )
    written = page.encode("ascii", "xmlcharrefreplace")
    return f"{written.decode('ascii')}{_OWN}`{hashlib.sha256(written).hexdigest()}`\n"


def again(spec: Spec, folder: str) -> str:
    """Return the command that asks the questions of a run again.

    It reads them from the folder: those of the installed packs may be others by then.
    """
    words = ["genprobe", spec.command, "--like", folder]
    if spec.engine in (LOG, "replay"):
        words += ["--model", "MODEL"]
    elif spec.server:
        words += ["--base-url", spec.server]
    return " ".join(words)


def _asked(spec: Spec, chain: Sequence[Seal]) -> Iterator[tuple[str, str]]:
    """Yield (name, what) for how, where and when a run was asked, and how many replied."""
    yield "the same again", again(spec, "FOLDER")
    last = chain[-1].files if chain else {}
    rows = {name: last.get(f"{name}.jsonl", {}).get("rows", 0) for name in _COUNTED}
    replies = rows["responses"] + rows["logprobs"]
    if chain:
        lost = f", {rows['requests'] - replies} without a reply" * (rows["requests"] > replies)
        yield (
            "n",
            f"{rows['statements']} items, {rows['requests']} questions, {replies} replies{lost}",
        )
        days = dict.fromkeys((chain[0].at[:10], chain[-1].at[:10]))
        yield "sealed", " to ".join(days)
    yield "questions", f"{spec.pack}: {', '.join(spec.probes)}; {', '.join(spec.decode)}"
    drawn = {"temperature": spec.temperature, "top_p": spec.top_p, "max_tokens": spec.max_tokens}
    said = [f"{name} {v:g}" for name, v in drawn.items() if v is not None]
    yield "sampling", ", ".join([*said, f"{spec.samples} a question", f"seed {spec.seed}"])
    varied = {
        "wordings": spec.wordings,
        "personas": spec.personas,
        "language of the question": ", ".join(spec.instruct),
        "system prompt": spec.system,
        "thinking": spec.thinking,
        "server": spec.server,
    }
    yield from ((name, what) for name, what in varied.items() if what)
    yield "engine", f"{spec.engine} {spec.engine_version}, {spec.dtype}; genprobe {spec.version}"


def cell_of(score: Score) -> str:
    """Return the cell of a score in words, and which part of the statements it is counted on."""
    part = re.findall(r"\+(declared|regions:[^|+]*)", score.signature)
    return ", ".join([*(f"{name} {value}" for name, value in score.by.items()), *part])


def _figures(scores: Sequence[Score]) -> str:
    """Write the first figures as a table, in the units of scores.json."""
    if not scores:
        return "No figures: `genprobe score --save` counts them."
    lines = ["| figure | of | value | n | left out |", "|---|---|---|---|---|"]
    for one in scores[:_SHOWN]:
        cell = cell_of(one)
        value = "none" if one.value is None else f"{one.value:.4g}"
        if one.value is not None and one.low is not None and one.high is not None:
            value += f" [{one.low:.4g}, {one.high:.4g}]"
        lost = sum(one.excluded.values())
        lines.append(f"| {plain(one.metric)} | {plain(cell)} | {value} | {one.n} | {lost} |")
    if len(scores) > _SHOWN:
        lines += ["", f"These are {_SHOWN} of {len(scores)} figures; all are in `scores.json`."]
    return "\n".join(lines)


def _licence(spec: Spec) -> str:
    if spec.data == "builtin":
        return _BUILTIN
    if not spec.data_licence:
        return _OTHER.format(data=plain(spec.data))
    known = spec.data_licence
    named = "no licence is published, so pass no row on" if known == "none" else plain(known)
    cited = plain(spec.data_citation)
    return _PUBLIC.format(data=plain(spec.data), licence=named, citation=cited)


def unchanged(folder: Path, name: str) -> bool:
    """Tell whether a table of outcomes is as it was when the page was written."""
    page = _content(folder)
    body, own, last = page.rpartition(_OWN.encode("ascii"))
    if not own or last != f"`{hashlib.sha256(body).hexdigest()}`\n".encode("ascii"):
        return False
    noted = dict(_SUM_LINE.findall(body.decode("ascii", "replace"))).get(name)
    return (folder / name).is_file() and _sum(folder / name) == noted


def problems(folder: Path, seals: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (file, what) for each file that is not as it was when the page was written.

    seals: the names of the run's seals. A page without a hash of its own is of an older version,
    which made no seals either. A file that is missing is no problem, as all can be made again.
    """
    page = _content(folder)
    body, own, last = page.rpartition(_OWN.encode("ascii"))
    if not own:
        if page and seals:
            yield NAME, "was edited: it has no hash; score again with --save"
        return
    if last != f"`{hashlib.sha256(body).hexdigest()}`\n".encode("ascii"):
        yield NAME, "was edited after it was written; score again with --save"
    text = body.decode("ascii", "replace")
    sums = dict(_SUM_LINE.findall(text))
    for name in _SUMMED:
        ours = name in sums or name == OUTCOMES  # others may be copies that somebody asked for
        if ours and (folder / name).exists() and _sum(folder / name) != sums.get(name):
            yield name, "was edited after it was made of the records; score again with --save"
    found = _SEALED.search(text)
    if found and found[1] not in seals:
        yield NAME, f"names the seal {found[1]}, which is not this run's; score again with --save"


def _content(folder: Path) -> bytes:
    try:
        return door.content(folder / NAME)
    except FileNotFoundError:
        return b""


def _sum(path: Path) -> str:
    with door.reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(value: str) -> str:
    """Make an untrusted name safe: one line without YAML, Markdown or HTML."""
    safe = "".join(c if c.isalnum() or c in " ./@_-,;:+" else "-" for c in value)
    return re.sub(r":(?=\s|$)", "-", safe)  # a key of YAML ends so


def configurations(folder: Path) -> list[dict[str, Any]]:
    """Make the `configs` of a dataset card: name, path and features of each file with rows."""
    files: dict[str, list[dict[str, Any]]] = {}
    for name, kind in RECORDS.items():
        if name == "judgments/<judge>.jsonl":
            judged = sorted((folder / "judgments").glob("*.jsonl"))
            files |= {f"judgments/{path.name}": _features(kind) for path in judged}
        elif name != "judgments/<judge>.json":
            files[name] = _features(kind)
    return [
        {
            "config_name": name.rpartition(".")[0].replace("/", "-"),
            "data_files": name,
            **({"default": True} if name == "responses.jsonl" else {}),
            "features": features,
        }
        for name, features in files.items()
        if features and _has_rows(folder / name)
    ]


def _has_rows(path: Path) -> bool:
    try:
        with door.reading(path) as file:
            return b"{" in file.read(64)
    except OSError:
        return False


def _features(kind: type[Record]) -> list[dict[str, Any]]:
    hints = typing.get_type_hints(kind)
    assert dataclasses.is_dataclass(kind)
    features = [{"name": f.name} | _feature(hints[f.name]) for f in dataclasses.fields(kind)]
    if not any("json" in feature.values() for feature in features):
        # A reply that was cut off may end in half of a surrogate pair. There `datasets` fails,
        # unless a field of the row has the type `json`: then it drops that half. A text is read in
        # the same way with either type.
        texts = [feature for feature in features if feature.get("dtype") == "string"]
        texts[-1]["dtype"] = "json"
    return features


_TYPES = {str: "string", int: "int64", float: "float64", bool: "bool"}


def _feature(hint: Any) -> dict[str, Any]:
    """Return a field's type as in the YAML of `datasets`; `json` for objects without fixed keys."""
    if isinstance(hint, types.UnionType):
        options = [part for part in typing.get_args(hint) if part is not type(None)]
        return _feature(options[0]) if len(options) == 1 else {"dtype": "json"}
    if typing.get_origin(hint) in (list, tuple):
        inner = _feature(typing.get_args(hint)[0])
        return {"list": inner["dtype"]} if "dtype" in inner else {"dtype": "json"}
    return {"dtype": _TYPES.get(hint, "json")}
