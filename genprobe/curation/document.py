"""Document a data set: a folder with its rows, a card, and Croissant with responsible-AI fields.

The folder holds `data.jsonl`, `README.md` (the card, which `datasets.load_dataset` reads) and
`croissant.json` (Croissant 1.1 and its RAI fields, as `mlcroissant validate` checks them). Every
row has a canary, a string by which the data can be found in training data. Two rewordings of each
row are held back, in a file beside the folder that must not be published: a model that knows the
published wordings but not the rewordings has seen the data. The card has the hash of that file, so
that its existence can be proved later.

The card's information about people and purpose comes from a file `about.toml`, whose important
entries are required; numbers are counted from the data.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe._version import __version__
from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row, people
from genprobe.files.cells import cell_text
from genprobe.files.disk import replace_bytes
from genprobe.files.rows import Table
from genprobe.records import Score
from genprobe.render import croissant
from genprobe.resources import packs
from genprobe.text import whole, whole_number

DATA, CARD, CROISSANT = "data.jsonl", "README.md", "croissant.json"
REWORDINGS = ("rewording_1", "rewording_2")
# Required entry of about.toml -> the heading in the card, and the property of Croissant's RAI.
NEEDED = {
    "title": ("", ""),
    "description": ("", ""),
    "licence": ("", ""),
    "url": ("", ""),
    "creators": ("", ""),
    "purpose": ("What it is for", "dataUseCases"),
    "limitations": ("What it does not show", "dataLimitations"),
    "biases": ("Whose view it is", "dataBiases"),
    "collection": ("How it was collected", "dataCollection"),
    "people": ("Who was asked", "annotatorDemographics"),
    "sensitive": ("Personal and sensitive content", "personalSensitiveInformation"),
    "warning": ("", ""),
}
MORE = {
    "published": ("", ""),
    "cite": ("", ""),
    "annotation": ("How it was judged", "dataAnnotationProtocol"),
    "platform": ("", "dataAnnotationPlatform"),
    "preprocessing": ("What was done to it", "dataPreprocessingProtocol"),
    "impact": ("What harm it may do", "dataSocialImpact"),
    "maintenance": ("Who looks after it", "dataReleaseMaintenancePlan"),
    "timeframe": ("When it was collected", ""),
}
# Licences of data, by their SPDX names, for which the Hugging Face hub has an identifier
# (huggingface.co/docs/hub/repositories-licenses): the name in small letters, except for these.
_HUB = {"C-UDA-1.0": "c-uda", "ODC-By-1.0": "odc-by", "ODbL-1.0": "odbl", "PDDL-1.0": "pddl"}
_SPDX = (
    *("Apache-2.0", "CC0-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0"),
    *("etalab-2.0", "EUPL-1.1", "EUPL-1.2", "MIT", *_HUB),
    *(f"CC-BY-{version}" for version in ("2.0", "2.5", "3.0", "4.0")),
    *(f"CC-BY-SA-{version}" for version in ("3.0", "4.0")),
    *(f"CC-BY-NC-{version}" for version in ("2.0", "3.0", "4.0")),
    *(f"CC-BY-NC-SA-{version}" for version in ("2.0", "3.0", "4.0")),
    *("CC-BY-ND-4.0", "CC-BY-NC-ND-3.0", "CC-BY-NC-ND-4.0"),
)
UNKNOWN = "unknown"  # the licence of a data set if nobody has named one
_COEFFICIENTS = {
    "cohen-kappa": "mean Cohen's kappa",
    "fleiss-kappa": "Fleiss' kappa",
    "krippendorff-alpha": "Krippendorff's alpha",
}
_NAMESPACE = uuid.UUID("6e4f0d2e-8f5a-5d3b-9a52-6d1f0a8f7b11")


@dataclass(frozen=True)
class Documented:
    """The published data set.

    rows: number of rows. left_out: number of rows that were not kept. lacking: number of rows
    without two rewordings. held_back: the file of rewordings, or None if there are none. canary:
    the string in every row. licence: the hub's identifier of the licence, `other` or `unknown`.
    """

    rows: int
    left_out: int
    lacking: int
    held_back: Path | None
    canary: str
    licence: str


def read_about(path: str | Path) -> dict[str, Any]:
    """Read about.toml. Raises InputError if an entry is missing or unknown."""
    row = packs.read_toml(Path(path))
    for key in sorted(row.keys() - NEEDED.keys() - MORE.keys()):
        known = ", ".join([*NEEDED, *MORE])
        raise InputError(f"{path}: unknown key {key!r}; known: {known}")
    for key in NEEDED:
        value = row.get(key)
        if key == "creators":
            if not isinstance(value, list) or not value or not all(map(_is_text, value)):
                raise InputError(f"{path}: 'creators' must be a list of names")
        elif key == "licence" and not _is_text(value):
            raise InputError(
                f"{path}: 'licence' must be a text: an SPDX identifier such as CC-BY-4.0, another "
                f"licence by its name, or {UNKNOWN!r}"
            )
        elif not _is_text(value):
            raise InputError(f"{path}: {key!r} must be a text; if it is not known, say so")
    for key in row.keys() & MORE.keys():
        if not _is_text(row[key]):
            raise InputError(f"{path}: {key!r} must be a text")
    return row


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def licence_id(name: str) -> tuple[str, str]:
    """Look up a licence: return the hub's identifier of it, and its SPDX name.

    name: as a person wrote it: "CC-BY-4.0", "cc by 4.0", "odbl". For the word `unknown`, both are
    `unknown`. For a licence that the hub does not know, they are `other` and "".
    """
    plain = "-".join(name.lower().split())
    if plain == UNKNOWN:
        return UNKNOWN, UNKNOWN
    for spdx in _SPDX:
        hub = _HUB.get(spdx, spdx.lower())
        if plain in (hub, spdx.lower()):
            return hub, spdx
    return "other", ""


def run(
    source: str | Table,
    about: str | Path,
    out: str | Path,
    agreement: Sequence[Score] = (),
    rewordings: str | Table = "",
    keep_about: bool = False,
) -> Documented:
    """Write the folder of a data set.

    A pair in one row becomes two statements, each with its own id (`-o`, `-c1`) and rewordings. The
    codes of respondents become r1, r2, …. The same input gives the same bytes.

    source: the table; rows with `kept` false are left out and counted. about: the file about.toml.
    out: the folder; its three files are overwritten. agreement: agreement of annotators, the scores
    of `review agreement`. rewordings: a table `id, rewording_1, rewording_2`; by default, these
    columns of the source. keep_about: publish the columns `about_…` of respondents, if all of them
    consented to that. Raises InputError for missing information, before anything is written.
    """
    said = read_about(about)
    rows, texts = _rows(source)
    kept = [row for row in rows if cell_text(row.get("kept", "true")).lower() in ("true", "1", "")]
    if not kept:
        raise InputError(f"{source}: no row is kept")
    content = json.dumps([[row[name] for name in ("id", *texts)] for row in kept], default=str)
    canary = f"genprobe canary {uuid.uuid5(_NAMESPACE, said['title'] + content)}"
    published, sources = _published(kept, canary, keep_about)
    again, lacking = _rewordings(published, sources, rewordings)
    held = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in again).encode("utf-8")
    columns = list(dict.fromkeys(name for row in published for name in row))
    facts = {
        "rows": len(published),
        "langs": _count(published, "lang"),
        "bias": _count(published, "bias_type"),
        "roles": _count(published, "role"),
        "why": _left_out([row for row in rows if row not in kept], kept),
        "people": len({cell_text(row.get("respondent")) for row in kept} - {""}),
        "steps": _steps(published),
        "agreement": _agreement(agreement),
        "held": hashlib.sha256(held).hexdigest() if again else "",
        "held_rows": len(again),
        "canary": canary,
        "columns": columns,
    }
    folder = _made(out)
    _write(folder, said, facts, published)
    beside = folder.with_name(f"{folder.name}-held-back.jsonl")
    if again:
        replace_bytes(beside, [held])
    return Documented(
        rows=len(published),
        left_out=len(rows) - len(kept),
        lacking=lacking,
        held_back=beside if again else None,
        canary=canary,
        licence=licence_id(said["licence"])[0],
    )


def _rows(source: str | Table) -> tuple[list[Row], list[str]]:
    """Read the rows, each with an id, and the names of the columns that hold texts."""
    numbered = tables.read(source)
    there = list(dict.fromkeys(name for _, row in numbered for name in row))
    known = ("text", "sentence", "pro", "anti", "context")
    texts = [name for name in there if name in known]
    if not texts:
        tables.need(source, there, known, "what is said")
    names = tables.name_rows(numbered, texts, source)
    return [row | {"id": name} for (_, row), name in zip(numbered, names, strict=True)], texts


def _made(out: str | Path) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{out}: is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made ({error.strerror})") from None
    return folder


def _write(
    folder: Path, said: Mapping[str, Any], facts: Mapping[str, Any], published: Sequence[Row]
) -> None:
    """Write the three files of a folder: rows, card and Croissant."""
    columns = facts["columns"]
    lines = [
        json.dumps({name: row.get(name, "") for name in columns}, ensure_ascii=False) + "\n"
        for row in published
    ]
    data = "".join(lines).encode("utf-8", "replace")
    kinds = {name: _kind([row.get(name, "") for row in published]) for name in columns}
    # With `keep_about`, rows may say who somebody is: who publishes them lets others read them.
    replace_bytes(folder / DATA, [data], private=any(map(people.names_somebody, published)))
    replace_bytes(folder / CARD, [whole(_card(said, facts, kinds)).encode("utf-8")])
    about = json.dumps(_croissant(said, facts, kinds, data), indent=2, ensure_ascii=False)
    replace_bytes(folder / CROISSANT, [whole(about).encode("utf-8"), b"\n"])


def _rewordings(
    published: Sequence[Row], sources: Sequence[Row], path: str | Table
) -> tuple[list[Row], int]:
    """Find the two rewordings of each published row that has them, and count the rows without.

    sources: for each published row, its id before codes of respondents were replaced, and its
    columns of rewordings. path: a table of rewordings, which may use either id of a row, and may
    hold the text of it. Returns the rewordings, with the published ids, and the number of rows
    without. Raises InputError for another row or text.
    """
    given = {cell_text(row.get("id")): row for _, row in tables.read(path)} if path else {}
    known = {row["id"] for row in (*published, *sources)}
    extra = next((name for name in given if name not in known), None)
    if extra is not None:
        raise InputError(
            f"{path}: {extra!r} is not the id of a published row, such as {published[0]['id']!r}"
        )
    found = []
    for row, source in zip(published, sources, strict=True):
        own = given.get(source["id"]) or given.get(row["id"]) or source
        if own is not source and cell_text(own.get("text")) not in ("", cell_text(row.get("text"))):
            raise InputError(
                f"{path}: {own['id']!r} has another text than the published row; numbers move when "
                "answers are deleted"
            )
        texts = [cell_text(own.get(name)) for name in REWORDINGS]
        shown = {cell_text(row.get(name)) for name in ("text", "sentence")}
        if all(texts) and len({*texts}) == 2 and not set(texts) & shown:
            found.append({"id": row["id"], **dict(zip(REWORDINGS, texts, strict=True))})
    return found, len(published) - len(found)


def _agreement(scores: Sequence[Score]) -> list[Row]:
    """Make one row per question (and language): its items, and each coefficient of agreement."""
    found: dict[str, Row] = {}
    for score in scores:
        if "reviewers" in score.by or "reviewer" in score.by:
            continue
        name = ", ".join(str(value) for value in score.by.values())
        one = found.setdefault(name, {"question": name, "items": 0})
        one["items"] = max(one["items"], score.n)
        one[score.metric] = (score.value, score.low, score.high)
    return list(found.values())


def _published(kept: Sequence[Row], canary: str, keep_about: bool) -> tuple[list[Row], list[Row]]:
    """Make the rows to be published, and for each of them the source of its rewordings.

    Published rows have no codes of respondents, no rewordings and no answers about respondents
    (unless `keep_about`). A pair in one row (`pro`, `anti`) becomes two statements, which every
    task can read; their rewordings cannot come from columns of that row.
    """
    number = people.respondents(kept)
    made: list[Row] = []
    sources: list[Row] = []
    for row in kept:
        hidden = {*REWORDINGS, "kept", "why"}
        hidden |= set() if keep_about else {name for name in row if people.is_private(name)}
        one = {name: _plain(value) for name, value in row.items() if name not in hidden}
        code = cell_text(row.get("respondent"))
        if code:
            # The code is in ids and in the history as well.
            one = {n: people.renamed(value, {code: number[code]}) for n, value in one.items()}
        parts, before = _statements(one), _statements(row)
        made += [part | {"canary": canary} for part in parts]
        sources += before if len(before) == 1 else [{"id": part["id"]} for part in before]
    return made, sources


def _statements(row: Row) -> list[Row]:
    # As texts, since an empty list or table is published as one that is not empty.
    if not cell_text(row.get("pro")) or not cell_text(row.get("anti")):
        return [row]
    rest = {name: value for name, value in row.items() if name not in ("id", "pro", "anti")}
    parts = (("o", row["pro"], "original"), ("c1", row["anti"], "contrast"))
    return [
        {"id": f"{row['id']}-{end}", "text": text, "role": role, "pair": row["id"]} | rest
        for end, text, role in parts
    ]


def _plain(value: Any) -> Any:
    """Convert a value to a text, a number, or a list of texts."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, list | tuple):
        return [part if isinstance(part, str) else json.dumps(part) for part in value]
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else str(value)


def _kind(values: Sequence[Any]) -> str:
    """Name the type of a column: the name that `datasets` has for it, or `list`."""
    if any(isinstance(value, list) for value in values):
        return "list"
    if all(isinstance(value, bool) for value in values):
        return "bool"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "int64"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "float64"
    return "string"


def _count(rows: Sequence[Row], column: str) -> Counter[str]:
    return Counter(cell_text(row.get(column)) for row in rows if cell_text(row.get(column)))


def _left_out(gone: Sequence[Row], kept: Sequence[Row]) -> Counter[str]:
    """Count the rows that were left out, here or by an earlier step, by reason.

    gone: those in the table. kept: the others, whose history has the numbers of earlier steps.
    """
    why = Counter(cell_text(row.get("why")) or "not kept" for row in gone)
    # The last step of the rows in the table counted those that it left out, which are here.
    lefts = [[one for one in _steps([row]) if f"|{tables.LEFT}" in one][-1:] for row in gone]
    here = {line for last in lefts for line in last}
    for line in _steps(kept):
        if line in here:
            continue
        step, sign, told = line.rpartition(f"|{tables.LEFT}")
        if sign and (n := whole_number(told)) is not None:
            rule = step.partition("|rule:")[2].partition("|")[0]
            why[f"not confirmed by annotators (rule {rule})"] += n
    return why


def _steps(rows: Sequence[Row]) -> list[str]:
    """List the steps in the history of rows, without the ids of single rows."""
    found = dict.fromkeys(
        line.split("|from:")[0] for row in rows for line in row.get(tables.HISTORY) or ()
    )
    return list(found)


# --- the card


def _card(said: Mapping[str, Any], facts: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """Write README.md, the data set's card."""
    lines = [*_front(said, facts, kinds), f"# {_line(said['title'])}", ""]
    lines += [f"> **Content warning.** {_line(said['warning'])}", ""]
    lines += ["> For evaluation, never for training.", "", _block(said["description"]), ""]
    hub, _ = licence_id(said["licence"])
    named = said["licence"] if hub != UNKNOWN else "none is named, so nobody may share it"
    lines += [f"Licence: {_line(named)}. By {_line(', '.join(said['creators']))}.", ""]
    for key, (heading, _) in {**NEEDED, **MORE}.items():
        if heading and said.get(key):
            lines += [f"## {heading}", "", _block(said[key]), ""]
    return "\n".join([*lines, *_counted(facts), *_origin(facts)]) + "\n"


def _front(
    said: Mapping[str, Any], facts: Mapping[str, Any], kinds: Mapping[str, str]
) -> list[str]:
    """Write the YAML metadata at the head of a card, which the hub reads."""
    features = [
        {"name": name, "list": "string"} if kind == "list" else {"name": name, "dtype": kind}
        for name, kind in kinds.items()
    ]
    config = {
        "config_name": "default",
        "data_files": [{"split": "test", "path": DATA}],
        "features": features,
    }
    hub, _ = licence_id(said["licence"])
    head = {
        "license": hub,
        **({"license_name": said["licence"]} if hub == "other" else {}),
        "pretty_name": said["title"],
        "language": sorted(facts["langs"]),
        "tags": ["not-for-all-audiences", "bias", "stereotypes", "croissant"],
        "configs": [config],
        "extra_gated_prompt": said["warning"],
    }
    # JSON is valid YAML.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    return ["---", *lines, "---"]


def _counted(facts: Mapping[str, Any]) -> list[str]:
    """Write the card's counts of rows, of rows left out, and the agreement of annotators."""
    lines = ["## What is in it", "", f"{facts['rows']:,} rows."]
    for name, what in (("langs", "Languages"), ("roles", "Roles"), ("bias", "Bias types")):
        if facts[name]:
            counted = ", ".join(f"{_line(k)} {n:,}" for k, n in sorted(facts[name].items()))
            lines += ["", f"{what}: {counted}."]
    if facts["people"]:
        lines += ["", f"Answers of {facts['people']:,} respondents, under numbers."]
    lines += ["", "## What was left out", ""]
    left = facts["why"]
    lines += [f"- {n:,}: {_line(why)}" for why, n in sorted(left.items())] or ["Nothing is known."]
    lines += ["", "## How far annotators agree", ""]
    if facts["agreement"]:
        lines += ["| question | items | " + " | ".join(_COEFFICIENTS.values()) + " |"]
        lines += ["|---" * (2 + len(_COEFFICIENTS)) + "|"]
        for one in facts["agreement"]:
            cells = [_figure(one.get(name, (None,) * 3)) for name in _COEFFICIENTS]
            lines += [f"| {_line(one['question'])} | {one['items']} | {' | '.join(cells)} |"]
        lines += ["", "With 95 % intervals of a bootstrap over items."]
    else:
        lines += ["Not measured: the rows were documented without votes."]
    return lines


def _origin(facts: Mapping[str, Any]) -> list[str]:
    """Write the steps by which the data set was made, and which part of it is held back."""
    lines = ["", "## How it was made", "", f"With genprobe {__version__}, step by step:", ""]
    lines += [f"- `{_line(step)}`" for step in facts["steps"]] or ["- no step of it is on record"]
    lines += ["", "## Contamination", "", f"Canary, in every row: `{facts['canary']}`.", ""]
    if facts["held"]:
        lines += [
            f"Of {facts['held_rows']:,} rows two rewordings are held back, in a file with the "
            f"SHA-256 `{facts['held']}`."
        ]
    else:
        lines += ["No rewordings are held back."]
    return lines


def _figure(found: Sequence[float | None]) -> str:
    value, low, high = found
    if value is None:
        return "none"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if low is not None else f"{value:.2f}"


def _line(text: str) -> str:
    """Write an untrusted text on one line, with Markdown and HTML escaped."""
    for sign in "\\`*_{}[]<>|#":
        text = text.replace(sign, "\\" + sign if sign != "`" else "'")
    return " ".join(text.split())


def _block(text: str) -> str:
    return "\n\n".join(_line(part) for part in text.split("\n\n"))


# --- Croissant


def _responsible(said: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Fill Croissant's RAI fields: how the data were collected, annotated and filtered."""
    rai: dict[str, Any] = {
        f"rai:{prop}": said[key]
        for key, (_, prop) in {**NEEDED, **MORE}.items()
        if prop and said.get(key)
    }
    rai["rai:dataCollectionType"] = "Surveys"
    if facts["agreement"]:
        rai["rai:dataAnnotationAnalysis"] = "; ".join(
            f"{one['question']}: {what} {_figure(one[name])} over {one['items']} items"
            for one in facts["agreement"]
            for name, what in _COEFFICIENTS.items()
            if name in one
        )
    if facts["why"]:
        rai["rai:dataManipulationProtocol"] = "left out: " + ", ".join(
            f"{n} ({why})" for why, n in sorted(facts["why"].items())
        )
    return rai


def _croissant(
    said: Mapping[str, Any], facts: Mapping[str, Any], kinds: Mapping[str, str], data: bytes
) -> dict[str, Any]:
    spdx = licence_id(said["licence"])[1]
    url = f"https://spdx.org/licenses/{spdx}.html" if spdx not in ("", UNKNOWN) else ""
    published = said.get("published"), said.get("cite")
    more = {name: v for name, v in zip(("datePublished", "citeAs"), published, strict=True) if v}
    return croissant.dataset(
        said["title"],
        said["description"],
        url or said["licence"],
        {"url": said["url"]},
        said["creators"],
        sorted(facts["langs"]),
        [croissant.File("data", DATA, hashlib.sha256(data).hexdigest(), "rows", kinds)],
        more | _responsible(said, facts),
    )
