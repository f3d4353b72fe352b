"""Read public data sets by name, each described in one file of `prompts/sets` (docs/sets.md).

The file says where the set is, at which commit, the hash of each file by language, its licence and
citation, how its columns become those of genprobe, and by which rule the target of a choice is
found (`RULES`). A set becomes a table of rows that every loader reads. Columns that the file does
not name are not taken. What cannot be asked (two equal options) is left out, and counted.

A target is right or absent: a row in which no single option fits, or in which the answer that the
authors give contradicts it, has none. A rule that people have not confirmed gives none either.
"""

from __future__ import annotations

import codecs
import functools
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from genprobe.datasets import choices, fetch
from genprobe.errors import Caution, InputError
from genprobe.files import Row, door, numbered_rows
from genprobe.files.cells import Notes, cell_text
from genprobe.files.rows import Rows
from genprobe.limits import parsed, parsed_list
from genprobe.records import Statement, digest
from genprobe.resources import packs, registry
from genprobe.text import whole_number

FOLDER = "sets"
# What the rows of a set are -> tier of the language (`packs.tier`) -> the commands that take them.
KINDS = {
    "choices": {"read": "choices, logprob", "chosen": "choices, logprob", "scored": "logprob"},
    "pairs": {"read": "logprob, choices, yesno", "chosen": "logprob, choices", "scored": "logprob"},
    "statements": {"read": "yesno", "chosen": "no command yet", "scored": "no command yet"},
}
NEEDED = 10  # rows of each category that somebody must confirm before a doubtful rule is followed
_SIGNED = "set"  # the column that becomes the source of a statement
_NAME = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, kw_only=True)
class Set:
    """The description of a data set, as its file has it; docs/sets.md explains each key.

    files: language -> name -> hash. rows: language -> number of rows. columns: ours -> theirs.
    """

    name: str
    title: str
    home: str
    kind: str
    licence: str
    citation: str
    note: str
    hash: str
    commit: str = ""
    form: str = ""
    encoding: str = ""
    records: str = ""
    pick: dict[str, Any] = field(default_factory=dict)
    labels: str = "0"
    files: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    columns_of: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    spellings: dict[str, Any] = field(default_factory=dict)
    least: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """Say in a line what the set has: commands, rows by language, licence."""
        by: dict[str, list[str]] = {}
        for lang, rows in self.rows.items():
            told = f"{lang} {rows:,}" if rows else lang
            by.setdefault(KINDS[self.kind][packs.tier(lang)], []).append(told)
        parts = [f"{commands}: {', '.join(langs)}" for commands, langs in by.items()]
        parts += [] if self.commit else ["a copy of yours, with --from FOLDER"]
        return "; ".join([self.title, *parts, self.allowed])

    @property
    def allowed(self) -> str:
        return self.licence or "no licence is published: use it yourself, and pass no row on"


def names() -> list[str]:
    """List the names of the data sets."""
    return registry.names(FOLDER)


def is_set(source: object) -> bool:
    """Tell whether a source is the name of a data set, or the user's own description of one."""
    return isinstance(source, str) and (source in names() or source.endswith(".toml"))


def load(source: str) -> Set:
    """Load the description of a data set by name, or from a file of the user's own."""
    own = source.endswith(".toml")
    return read_set(Path(source) if own else registry.path(FOLDER, f"{source}.toml"))


@functools.cache
def read_set(path: Path) -> Set:
    """Read and check one file of `prompts/sets`. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    known = {one.name: one for one in fields(Set)}
    packs.no_more(row, known.keys() - {"name", "hash"}, path)
    for name in ("title", "home", "kind", "citation", "note"):
        packs.string(row, name, path)
    packs.shaped(row, typing.get_type_hints(Set), path)
    if row["kind"] not in KINDS:
        raise InputError(f"{path}: kind must be one of {', '.join(KINDS)}")
    rule = packs.table(row, "target", path).get("rule", "none")
    if rule not in RULES:
        raise InputError(f"{path}: target.rule must be one of {', '.join(RULES)}")
    if not row.get("files") or not row.get("columns"):
        raise InputError(f"{path}: needs [files.LANGUAGE] and [columns]")
    row.setdefault("licence", "")
    return Set(name=path.stem, hash=packs.file_hash(path)[:8], **row)


def facts(source: object, versions: Iterable[str]) -> dict[str, str]:
    """Return what a run records of a data set: version, licence and citation; {} for other data.

    versions: the sources of its statements, as `read` writes them.
    """
    if not is_set(source):
        return {}
    one = load(str(source))
    behind = {version.rpartition("@")[2] for version in versions}
    return {
        "data_version": "+".join([one.hash, *sorted(behind)][:9]),
        "data_licence": one.licence or "none",
        "data_citation": one.citation,
    }


def read(source: str, wanted: Sequence[str] | None) -> tuple[Rows, list[str]]:
    """Read a data set as a table in genprobe's columns, with notes of one line each.

    wanted: the languages to read; None means all. Raises InputError for a language that the set
    does not have, a file that is missing, or a row that is not as its description says.
    """
    one, notes = load(source), Notes()
    missing = [code for code in wanted or () if code not in one.files]
    if missing:
        there = ", ".join(one.files)
        raise InputError(f"{one.name}: no rows in {', '.join(missing)}; there is {there}")
    langs = list(wanted or one.files)
    if not wanted and one.kind == "statements":  # in other languages no answer could be read
        langs = [code for code in langs if packs.tier(code) == "read"]
    home = fetch.Home(one.name, one.home, one.commit, one.form)
    found = fetch.files(home, {code: one.files[code] for code in langs}, notes)
    notes.add(f"{one.name}: {one.allowed}; cite {one.citation}")
    notes.add(f"{one.name}: {one.note}")
    maker = _Maker(one, home, notes)
    rows = [row for file in found for row in maker.rows(file)]
    return Rows(rows, name=one.name), notes.lines()


def signed(items: Iterable[Statement]) -> list[Statement]:
    """Return the statements of a data set, each with the set, its description and its file."""
    found = []
    for item in items:
        extra = dict(item.extra)
        found.append(replace(item, source=str(extra.pop(_SIGNED)), extra=extra))
    return found


class _Maker:
    """Makes rows in genprobe's columns of the rows of a data set."""

    def __init__(self, one: Set, home: fetch.Home, notes: Notes) -> None:
        self.set, self.notes = one, notes
        rule = one.target.get("rule", "none")
        self.rule = RULES[rule]
        same = one.target.get("same", {})
        self.same = {plain(word): plain(name) for name, words in same.items() for word in words}
        self.where = ""  # the row at hand
        self.known: dict[tuple[str, str], str] = {}
        if rule == "table":
            wanted = {"": {one.target["file"]: one.target["hash"]}}
            self.known = _targets(fetch.files(home, wanted, Notes())[0].path)

    def rows(self, file: fetch.File) -> Iterator[Row]:
        one = self.set
        for number, row in _table(one, file.path):
            self.where = f"{file.name}:{number}"
            try:
                if any(_count(row.get(name)) < least for name, least in one.least.items()):
                    self.notes.add("too few of its raters agree, left out", self.where)
                    continue
                raw = _split(one, {**row, "path": file.name, "number": number})
                cells = self._cells(raw, file.lang)
                said = {"lang": file.lang, "row": self.where}
                said[_SIGNED] = f"{one.name}/{one.hash}@{file.version}"
                made = self._choice(cells, raw, file.lang) if one.kind == "choices" else cells
            except InputError as error:
                raise InputError(f"{one.name}: {self.where}: {error}") from None
            if made is not None and not self._lacks(made):
                yield {**made, **said}

    def _lacks(self, cells: Row) -> bool:
        """Tell whether a row has an empty text, or the same text twice, and note it."""
        names = ("sent_more", "sent_less", "stereotype", "antistereotype", "text")
        texts = [cell_text(cells[name]) for name in names if name in cells]
        if all(texts) and len(set(texts)) == len(texts):
            return False
        why = "the same sentence twice" if all(texts) else "a sentence is empty"
        self.notes.add(f"{why}, left out", self.where)
        return True

    def _cells(self, raw: Row, lang: str) -> Row:
        """Return a row under our names, in our spellings."""
        cells: Row = {}
        columns = self.set.columns | self.set.columns_of.get(lang, {})
        for ours, theirs in columns.items():
            if isinstance(theirs, list):
                cells[ours] = [_cell(raw, name) for name in theirs]
            elif theirs.startswith("*"):  # the column that another one names
                cells[ours] = _cell(raw, cell_text(cells[theirs[1:]]))
            elif "{" in theirs:
                both = cells | raw
                cells[ours] = "".join(
                    cell_text(_cell(both, part)) if at % 2 else part
                    for at, part in enumerate(_NAME.split(theirs))
                )
            else:
                cells[ours] = _cell(raw, theirs)
            spelled = self.set.spellings.get(ours)
            if spelled and (text := cell_text(cells[ours])):
                if text not in spelled:
                    raise InputError(f"{theirs} is {text[:40]!r}; known: {', '.join(spelled)}")
                cells[ours] = spelled[text]
        return cells

    def _choice(self, cells: Row, raw: Row, lang: str) -> Row | None:
        """Return the row of a choice with options, label, target and unknown option."""
        options = [cell_text(option) for option in _listed(cells["options"])]
        if not all(options) or len(set(options)) < len(options):
            why = "two options are the same" if all(options) else "an option is empty"
            self.notes.add(f"{why}, left out", self.where)
            return None
        label = self._place(cells.get("label"), options, self.set.labels, "label")
        unknown = self._unknown(raw, options, lang)
        condition = choices.one_of(cells.get("condition"), choices.CONDITIONS, "condition")
        polarity = choices.one_of(cells.get("polarity"), choices.POLARITIES, "polarity")
        target, turned = self.rule(self, cells, raw, options)
        if target is not None and turned and polarity != "neg":
            other = choices.counter(target, unknown, len(options))
            target = other if polarity == "nonneg" else None
        if target is not None and condition == "disambig" and not self._agrees(raw, target, label):
            target = None
        if unknown is not None and self.set.unknown.get("as"):
            key = cells.get("question_index") or cells.get("id")
            words = self.set.unknown["as"][lang]
            options[unknown] = words[int(digest([lang, cell_text(key)], 8), 16) % len(words)]
            self.notes.add(f"the unknown option is worded by genprobe, in {lang}")
        numbers = {"label": label, "target": target, "unknown": unknown}
        return {**cells, **numbers, "options": options}

    def _place(self, cell: object, options: Sequence[str], how: str, name: str) -> int | None:
        """Return the option that a cell names: by its text, or counted from 0 or 1."""
        text = cell_text(cell)
        if not text:
            return None
        if how == "text":
            if options.count(text) != 1:
                raise InputError(f"{name} is {text[:40]!r}, which is none of the options")
            return options.index(text)
        told = whole_number(text.removesuffix(".0"))
        at = -1 if told is None else told - int(how)
        if not 0 <= at < len(options):
            raise InputError(f"{name} is {text[:40]!r}; options are counted from {how}")
        return at

    def _unknown(self, raw: Row, options: Sequence[str], lang: str) -> int | None:
        words = {choices.bare(word) for word in self.set.unknown.get("words", ())}
        found = [at for at, option in enumerate(options) if choices.bare(option) in words]
        tags = self.set.target.get("tags")
        if not words:
            if not tags:
                return None  # `choices` finds it by its words
            found = [at for at in range(len(options)) if _tag(raw, tags, at) == "unknown"]
        if len(found) != 1:
            self.notes.add("no single unknown option: no bias score", self.where)
        return found[0] if len(found) == 1 else None

    def _agrees(self, raw: Row, target: int, label: int | None) -> bool:
        """Tell whether a right answer is the target where it is said to follow the stereotype."""
        told = self.set.target.get("told")
        if not told or label is None:
            return True
        said = cell_text(_cell(raw, told["column"]))
        if said not in told["follows"] and said not in told["opposes"]:
            why = f"{told['column']} does not say whether its answer follows the stereotype"
        elif (said in told["follows"]) == (label == target):
            return True
        else:
            why = "its answer contradicts its target"
        self.notes.add(f"{why}: no bias score", self.where)
        return False

    # --- rules: (option, whether it is the group, so that non-negative questions turn it)

    def none(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Find none."""
        return None, False

    def answer(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Take the answer that a column gives, as the text or the number of an option."""
        how = str(self.set.target.get("counted", "text"))
        return self._place(_cell(raw, self.set.target["column"]), options, how, "target"), False

    def group(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Take the option of the group that a column gives, in both polarities."""
        return self.answer(cells, raw, options)[0], True

    def tags(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Find the option with a tag of a stereotyped group, without spaces and case."""
        named = _listed(_cell(raw, self.set.target["groups"]))
        groups = {self._same(plain(cell_text(name))) for name in named}
        tags = self.set.target["tags"]
        own = [self._same(_tag(raw, tags, at)) for at in range(len(options))]
        found = [at for at, tag in enumerate(own) if tag and tag in groups]
        if len(found) != 1:
            self.notes.add(
                "no single option is of the stereotyped group: no bias score", self.where
            )
        return found[0] if len(found) == 1 else None, True

    def place(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Take the place that the group has in a category, if people have confirmed it."""
        category = cell_text(cells.get("category"))
        known = self.set.target["places"].get(category)
        people = self.set.target.get("confirmed", {}).get(category, {})
        if known is None or people.get("rows", 0) < NEEDED:
            what = "nobody has confirmed which option the stereotype names: no bias score"
            self.notes.add(Caution(f"{self.set.name}: {what} (docs/sets.md)"))
            return None, True
        return int(known), True

    def table(self, cells: Row, raw: Row, options: Sequence[str]) -> tuple[int | None, bool]:
        """Take the option that a file of the authors names."""
        named = self.known.get(_key(raw), "NA")
        return whole_number(named), False

    def _same(self, tag: str) -> str:
        return self.same.get(tag, tag)


_Rule = Callable[[_Maker, Row, Row, Sequence[str]], tuple[int | None, bool]]
RULES: dict[str, _Rule] = {
    "none": _Maker.none,
    "answer": _Maker.answer,
    "group": _Maker.group,
    "tags": _Maker.tags,
    "place": _Maker.place,
    "table": _Maker.table,
}


def plain(tag: str) -> str:
    """Return a tag without spaces, `_` and `-`, in small letters."""
    return re.sub(r"[\s_-]+", "", tag).casefold()


def _tag(raw: Row, tags: str, at: int) -> str:
    """Return the tag of an option: the last item of its list, after the last comma."""
    items = _listed(_cell(raw, tags.replace("{n}", str(at))))
    return plain(cell_text(items[-1]).rpartition(",")[2]) if items else ""


def _listed(value: Any) -> list[Any]:
    """Return a cell that is a list, or a list or table written as text, as a list."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            value = parsed_list(value.strip())
        except ValueError as error:
            raise InputError(f"{value[:40]!r} is {error}") from None
    if isinstance(value, Mapping):
        value = list(value.values())
    return value if isinstance(value, list) else [] if value is None else [value]


def _cell(raw: Row, name: str) -> Any:
    """Return a cell by its column, or by `column.key` if it holds a table, also written as text."""
    if name in raw:
        return raw[name]
    head, _, key = name.partition(".")
    if head not in raw or not key:
        raise InputError(f"no column {name!r}; there is {', '.join(raw)[:200]}")
    held = raw[head]
    if isinstance(held, str):
        try:
            held = parsed_list(held.strip())
        except ValueError as error:
            raise InputError(f"{head} is {error}") from None
    if not isinstance(held, Mapping):
        raise InputError(f"{head} holds no table with {key!r}")
    return held.get(key, held.get(whole_number(key)))


def _count(value: object) -> int:
    return whole_number(cell_text(value)) or 0


def _split(one: Set, row: Row) -> Row:
    """Add the named parts of columns that hold several facts, such as an id or the file's name."""
    for column, pattern in one.parts.items():
        match = re.search(pattern, cell_text(row.get(column)))
        if match is None:
            raise InputError(f"{column} is {cell_text(row.get(column))[:60]!r}, not as described")
        row |= match.groupdict()
    return row


def _table(one: Set, path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a file; of a nested JSON, the records of the list `records`."""
    if not one.records:
        encoding = f"{_ELSE}{one.encoding}" if one.encoding else ""
        for number, row in numbered_rows(path, encoding=encoding):
            yield number, {name.removeprefix("\ufeff"): value for name, value in row.items()}
        return
    try:
        held: Any = parsed(door.content(path))
        for key in one.records.split("."):
            held = held[key]
    except (ValueError, LookupError, TypeError):
        raise InputError(f"{path}: no list {one.records!r} in it") from None
    for number, record in enumerate(held, 1):
        by = {item[one.pick["by"]]: item[one.pick["text"]] for item in record[one.pick["of"]]}
        yield number, {**record, **by}


# --- two encodings in a file

_ELSE = "utf_8_else_"  # and the older encoding, such as mac_roman


def _codec(name: str) -> codecs.CodecInfo | None:
    """Return the codec that decodes UTF-8 where valid, else bytes in an older encoding."""
    if not name.startswith(_ELSE):
        return None
    older = name.removeprefix(_ELSE)

    def byte(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        return error.object[error.start : error.start + 1].decode(older), error.start + 1

    codecs.register_error(name, byte)
    utf_8, decoder = codecs.lookup("utf-8"), codecs.getincrementaldecoder("utf-8")
    return codecs.CodecInfo(
        utf_8.encode,
        lambda data, errors="strict": utf_8.decode(data, name),
        incrementaldecoder=lambda errors="strict": decoder(name),
        name=name,
    )


codecs.register(_codec)

# --- BBQ's own targets, beside its files

TARGETS = "additional_metadata.csv"


def targets_beside(path: Path) -> Path | None:
    """Find BBQ's file of targets for a file of questions of the user; None if there is none."""
    folders = [path.parent, path.parent.parent]
    places = [folder / name for folder in folders for name in ("supplemental", "analysis_scripts")]
    found = [place / TARGETS for place in (path.parent, *places)]
    return next((file for file in found if file.is_file()), None)


def joined(rows: Iterable[tuple[int, Row]], file: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of questions, each with its `target_loc` from BBQ's file of targets.

    A row that already has a target, or that is not in the file, is unchanged. Raises InputError for
    a file without the columns category, example_id and target_loc.
    """
    known = _targets(file)
    for number, row in rows:
        named = known.get(_key(row))
        if named is None or cell_text(row.get("target")) or cell_text(row.get("target_loc")):
            yield number, row
        elif whole_number(named) is not None:
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
