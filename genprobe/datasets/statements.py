"""Load statements from a named data set or from a file (docs/statements.md)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from genprobe.datasets import sets, shades
from genprobe.errors import Caution, InputError
from genprobe.files import Row, numbered_rows, people, read_rows
from genprobe.files.cells import Notes, Problems, cell_json, cell_list, cell_sentence, cell_text
from genprobe.files.rows import Rows, Table, rows_of
from genprobe.linguistics import contradict
from genprobe.records import Statement, digest
from genprobe.resources import packs, registry
from genprobe.text import many

ROLES = ("original", "contrast")
COLUMNS = (
    "id",
    "lang",
    "text",
    "role",
    "pair",
    "bias_type",
    "type",
    "entity",
    "valid_in",
    "source",
)
# Other accepted names of the two required columns.
_ALSO_CALLED = {
    "text": ("sentence", "statement", "sentences", "statements", "content", "prompt", "item"),
    "lang": ("language", "languages", "locale", "lang_code", "language_code", "code"),
}

Found = tuple[list[Statement], list[str]]  # statements of the wanted languages; all languages


# The data sets known by name; any other source is a file.
DATA = {
    "builtin": "120 mild statements, parallel in 18 languages, written for genprobe",
    "shades": "the gated data set of the SHADES study, with your own token for the hub",
}


def names() -> list[str]:
    """List the names of the data sets."""
    return list(DATA)


def load(
    source: str | Path | Rows, langs: Sequence[str] | None = None
) -> tuple[list[Statement], list[str]]:
    """Read the statements of `builtin`, `shades` (the gated hub data set) or a file.

    source: a name, or a file or rows in memory: the SHADES table, recognised by its columns, or a
    plain table in JSONL, CSV or Parquet. langs: the languages to read, in any spelling that
    `packs.language_code` knows, each of which must have a statement; None means all. Returns the
    statements, with (id, lang) unique, and notes of one line on what was normalised, not
    understood, or looks wrong. Raises InputError for unusable data.
    """
    named = dict.fromkeys(packs.language_code(one, mixed=True) for one in langs or ())
    wanted = list(named) or None
    notes = Notes()
    if source == "builtin":
        statements, languages = _builtin(wanted)
    elif source == "shades":
        paths = shades.download(notes)
        statements, languages = _shades(paths, "shades", wanted, notes)
    else:
        statements, languages = _file(source, wanted, notes)
    there = {statement.lang for statement in statements}
    missing = [code for code in wanted or () if code not in there]
    if missing or not statements:
        has = ", ".join(dict.fromkeys(languages)) or "no language"
        what = ", ".join(missing) or "any language"
        raise InputError(f"{source}: no statement in {what}; there is {has}")
    return statements, notes.lines()


def _file(source: str | Path | Rows, wanted: Sequence[str] | None, notes: Notes) -> Found:
    path = rows_of(source)
    if not path.suffix and os.sep not in str(source) and not path.exists():
        raise registry.unknown("data set", str(source), [*names(), *sets.names()], "a file")
    rows = people.at_home(numbered_rows(path))
    first = next(rows)
    if shades.is_table(first[1]):
        return _shades([path], path.name, wanted, notes)
    return _table(path, first, rows, wanted, notes)


def _shades(paths: Sequence[Table], name: str, wanted: Sequence[str] | None, notes: Notes) -> Found:
    source = f"{name}@{packs.file_hash(*paths)}"
    statements: list[Statement] = []
    languages: list[str] = []
    for path in paths:
        part, codes = shades.read(people.at_home(numbered_rows(path)), source, wanted, notes)
        statements += part
        languages += codes
    return statements, languages


def _builtin(wanted: Collection[str] | None) -> Found:
    """Read `prompts/statements`: items.csv, which all languages share, and one CSV per language."""
    folder = registry.path("statements")
    head = folder / "items.csv"
    texts = sorted(path for path in folder.glob("*.csv") if path != head)
    source = f"builtin@{packs.file_hash(head, *texts)}"
    items = {str(row["id"]): row for row in read_rows(head)}
    statements = []
    for path in texts:
        code = path.stem
        if wanted is not None and code not in wanted:
            continue
        by_id = {str(row["id"]): str(row["text"]) for row in read_rows(path)}
        # If the stereotype in a language is about the other group (in China, southerners are said
        # to be reserved), the two sentences of a pair swap roles.
        turned = {
            row["pair"]
            for row in items.values()
            if row["role"] == "contrast" and code in row["valid_in"].split()
        }
        if by_id.keys() != items.keys():
            odd = sorted(by_id.keys() ^ items.keys())[0]
            raise InputError(f"{path}: {odd!r} must be both here and in {head.name}")
        for name, row in items.items():
            original = (row["role"] == "original") != (row["pair"] in turned)
            role = "original" if original else "contrast"
            statements.append(
                Statement(
                    id=name,
                    lang=code,
                    text=cell_sentence(by_id[name], Notes(), name),
                    role=role,
                    pair=row["pair"],
                    bias_type=row["bias_type"],
                    type=row["type"],
                    entity=row["entity"],
                    valid_in=tuple(row["valid_in"].split()) if original else (),
                    source=source,
                    extra={},
                )
            )
    return statements, [path.stem for path in texts]


def _table(
    path: Table,
    first: tuple[int, Row],
    rest: Iterable[tuple[int, Row]],
    wanted: Sequence[str] | None,
    notes: Notes,
) -> Found:
    """Read a plain table, one statement per row."""
    only = wanted[0] if wanted is not None and len(wanted) == 1 else None
    _check_columns(path, list(first[1]), only)
    _tell_lookalikes(path, list(first[1]), notes)
    rows = [first, *rest]
    source = f"{path.name}@{packs.file_hash(path)}"
    statements: list[Statement] = []
    languages: list[str] = []
    numbers: dict[tuple[str, str], int] = {}
    problems = Problems(path)
    for number, row in rows:
        where = f"{path}, row {number}"
        with problems.at():
            lang = _lang(row, only, where)
            languages.append(lang)
            if wanted is not None and lang not in wanted:
                continue
            statement = of_row(row, lang, where, number, source, notes)
            before = numbers.setdefault((statement.id, lang), number)
            if before != number:
                named = cell_text(row.get("id"))
                what = f"the id {named!r}" if named else "the same text"
                cure = "" if named else "; give each its own 'id'"
                raise InputError(
                    f"{where}: {what} is already in row {before}, also in {lang!r}{cure}"
                )
            statements.append(statement)
    problems.tell()
    seen: set[tuple[str, str, str]] = set()
    again = []
    for statement in statements:
        key = (statement.lang, statement.role, statement.text)
        again += [numbers[statement.id, statement.lang]] if key in seen else []
        seen.add(key)
    if again:
        what = "have the text of an earlier row under another id, and count as others: intervals"
        shown = ", ".join(map(str, again[:5])) + (", …" if len(again) > 5 else "")
        told = f"{many(len(again), 'statement')} (rows {shown}) {what} are too narrow"
        notes.add(Caution(f"{path}: {told}"))
    originals = {(s.pair, s.lang) for s in statements if s.role == "original" and s.pair}
    for statement in statements:
        if statement.role == "contrast" and (statement.pair, statement.lang) not in originals:
            notes.add(
                "contrast without an original of the same pair and language",
                numbers[statement.id, statement.lang],
            )
    _check_languages(path, statements, "lang" in first[1], notes)
    return statements, languages


def _check_languages(
    path: Table, statements: Sequence[Statement], said: bool, notes: Notes
) -> None:
    """Note sentences that are clearly in another language than the one given for them.

    said: whether a column gives the language; if only --lang does, InputError is raised. Languages
    with fewer than five sentences are not checked, because short texts are easily misidentified.
    """
    texts: dict[str, dict[str, None]] = {}
    for statement in statements:
        texts.setdefault(statement.lang, {})[statement.text] = None
    for lang, some in ((lang, list(own)) for lang, own in texts.items()):
        if len(some) < contradict.ALL:
            continue
        if not said:
            contradict.refuse(some, lang, str(path), "--lang")
        elif found := contradict.other(some, lang):
            what = f"statements whose 'lang' is {lang} are clearly in {found}"
            notes.add(Caution(f"{path}: {what}; they are asked in {lang}"))


def _check_columns(path: Table, columns: list[str], lang: str | None) -> None:
    for name in ("text", "lang"):
        if name in columns or (name == "lang" and lang is not None):
            continue
        near = [c for c in columns if c.strip().lower() in (name, *_ALSO_CALLED[name])]
        cure = f"rename {near[0]!r} to {name!r}" if near else "see docs/statements.md"
        if name == "lang":
            cure += ", or name one language with --lang"
        more = ", …" if len(columns) > 12 else ""
        there = ", ".join(columns[:12]) + more
        raise InputError(f"{path}: no column {name!r}; there is: {there}; {cure}")


def _tell_lookalikes(path: Table, columns: list[str], notes: Notes) -> None:
    """Note columns with a misspelled name of ours: without `role`, all rows would be originals."""
    for own in columns:
        name = own.strip().lower().replace(" ", "_").replace("-", "_")
        if name in COLUMNS and name not in columns:
            what = "is kept as your own column and not used"
            notes.add(Caution(f"{path}: {own!r} {what}; if it means {name!r}, rename it"))


def _lang(row: Row, only: str | None, where: str) -> str:
    name = cell_text(row.get("lang"))
    if not name and "lang" not in row and only is not None:
        return only
    if not name:
        raise InputError(f"{where}: no language; 'lang' is empty")
    try:
        return packs.language_code(name, True, cell_text(row.get("text")))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def of_row(row: Row, lang: str, where: str, number: int, source: str, notes: Notes) -> Statement:
    """Make the statement of a row, whose columns that are none of `COLUMNS` become `extra`.

    lang: its language. where: the row, which errors name; number: how notes name it. source: of the
    statement, if the row does not say. Raises InputError for a text or role that is none.
    """
    value = row.get("text")
    if not cell_text(value):
        raise InputError(f"{where}: the text is empty")
    if not isinstance(value, str):
        raise InputError(f"{where}: the text is {type(value).__name__}, not a text")
    text = cell_sentence(value, notes, number)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: the text holds half a character (a lone surrogate)") from None
    role = cell_text(row.get("role")).lower() or "original"
    if role not in ROLES:
        raise InputError(f"{where}: role {role!r} is neither 'original' nor 'contrast'")
    bias_types = [
        part.strip() for item in cell_list(row.get("bias_type"), ",;+") for part in item.split("+")
    ]
    return Statement(
        id=cell_text(row.get("id")) or digest([lang, text], 12),
        lang=lang,
        text=text,
        role=role,
        pair=cell_text(row.get("pair")),
        bias_type="+".join(sorted(set(filter(None, bias_types)))),
        type=cell_text(row.get("type")),
        entity=cell_text(row.get("entity")),
        valid_in=_valid_in(row.get("valid_in"), number, notes),
        source=cell_text(row.get("source")) or source,
        extra={name: cell_json(value) for name, value in row.items() if name not in COLUMNS},
    )


def _valid_in(value: object, number: int, notes: Notes) -> tuple[str, ...]:
    codes = []
    for name in cell_list(value, " ,;|"):
        try:
            codes.append(packs.language_code(name))
        except InputError:
            notes.add(f"language {name!r} is not one of genprobe's, kept unchanged", number)
            codes.append(name)
    return tuple(dict.fromkeys(codes))


def known_in(lang: str, valid_in: Iterable[str]) -> bool:
    """Tell whether a stereotype is marked as known in a language.

    Data sets mark languages, not scripts: `zh` also holds for Traditional Chinese, for which SHADES
    has no mark of its own.
    """
    return lang in valid_in or (lang == "zh-Hant" and "zh" in valid_in)
