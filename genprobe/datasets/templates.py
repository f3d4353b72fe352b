"""Load templates: sentences with an open slot, for stories and pairs (prompts/templates).

A template is a `Statement` whose text has `[PLACEHOLDER]`. Its `extra` has `domain`, `subdomain`,
and two sentences: `prototypical`, with the slot filled as people expect, and `counter`, with the
opposite filler. They are empty if a file does not have them.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genprobe.errors import Caution, InputError
from genprobe.files import Row, numbered_rows, people
from genprobe.files.cells import Notes, Problems, cell_json, cell_list, cell_sentence, cell_text
from genprobe.files.rows import Rows, Table, rows_of
from genprobe.linguistics import articles, contradict
from genprobe.records import JSON, Statement, digest
from genprobe.resources import packs, registry
from genprobe.resources.packs import SLOT

DOMAINS = registry.path("templates", "domains.toml")
_FIELDS = ("id", "entity", "text", "prototypical", "counter")  # of a built-in template
# Column -> the names it may have in a file (lower case, `_` between words): ours, then those in
# Aqbileq's tables (Appendices A, F, G).
_COLUMNS = {
    "text": ("template", "text"),
    "lang": ("lang", "language", "locale", "lang_code", "language_code"),
    "id": ("id", "template_id"),
    "domain": ("domain",),
    "subdomain": ("subdomain", "sub_domain"),
    "entity": ("entity", "biased_topic", "topic"),
    "source": ("source",),
    "prototypical": (
        *("prototypical_statement", "pro_trope", "prototypical", "prototypical_options"),
        *("prototypical_option", "prototypical_filler", "prototypical_fillers"),
    ),
    "counter": (
        *("counter_stereotypical_statement", "counter_statement", "anti_trope", "counter"),
        *("counter_stereotypical", "counter_stereotypical_options", "counter_options"),
        *("counter_stereotypical_option", "counter_filler", "counter_fillers"),
    ),
}
_SENTENCES = ("statement", "trope")  # ends of the names of columns with whole sentences
_ALSO_SLOT = re.compile(r"[\[{<(]\s*place[- ]?holder\s*[\]})>]|\{missing part\}", re.IGNORECASE)
_LANG = "kk"  # the language of a file without a column for it, such as Aqbileq's


def load(
    source: str | Path | Rows, langs: Sequence[str] | None = None
) -> tuple[list[Statement], list[str]]:
    """Read the templates of `builtin`, or of a file or rows in memory in Aqbileq's columns.

    langs: the languages to read, in any spelling that `packs.language_code` knows, each of which
    must have a template; None means all. Returns the templates, with (id, lang) unique, and notes
    of one line on what was normalised or not understood. Raises InputError for unusable data.
    """
    wanted = list(dict.fromkeys(packs.language_code(lang, True) for lang in langs or ())) or None
    notes = Notes()
    found = _builtin() if source == "builtin" else _file(source, wanted, notes)
    templates = [t for t in found if wanted is None or t.lang in wanted]
    there = {template.lang for template in templates}
    missing = [code for code in wanted or () if code not in there]
    if missing or not templates:
        has = ", ".join(dict.fromkeys(t.lang for t in found)) or "no language"
        raise InputError(f"{source}: no template in {', '.join(missing)}; there is {has}")
    return templates, notes.lines()


def fill(template: str, filler: str, lang: str = "") -> str:
    """Fill the slot of a template, and capitalise the first letter of the sentence.

    lang: the language, by whose rules the article before the slot changes (a, an).
    """
    before, _, after = template.partition(SLOT)
    before, _ = articles.before(before, filler, articles.load(lang))
    sentence = f"{before}{filler}{after}"
    return sentence[:1].upper() + sentence[1:]


@functools.cache
def domains() -> dict[str, str]:
    """Map each of Aqbileq's fourteen subdomains to one of its six domains."""
    return dict(_spellings()["in"])


@functools.cache
def _spellings() -> dict[str, dict[str, Any]]:
    return packs.read_toml(DOMAINS)


def _plain(name: str) -> str:
    words = re.sub(r"[\s_&/-]+", " ", name.casefold()).split()
    return " ".join(word for word in words if word != "and")


def _slug(name: str, table: str, notes: Notes, number: int) -> str:
    """Return the name of a domain or subdomain in our form; note one that is not known."""
    plain = _plain(name)
    for slug, spellings in _spellings()[table].items():
        if plain in map(_plain, (slug, *spellings)):
            return str(slug)
    if plain:
        notes.add(f"{table} {name!r} is not one of Aqbileq's, kept unchanged", number)
    return plain.replace(" ", "-")


def _builtin() -> list[Statement]:
    paths = sorted(p for p in registry.files("templates") if p != DOMAINS)
    return [template for path in paths for template in read(path)]


def read(path: Path) -> list[Statement]:
    """Read a language's file of `prompts/templates`. Raises InputError that says what is wrong."""
    rows = packs.read_toml(path)
    source = f"builtin@{packs.file_hash(path)}"
    for key in ("source", "review"):
        if not isinstance(rows.pop(key, None), str):
            raise InputError(f"{path}: {key!r} must be a text")
    templates = []
    for subdomain, part in rows.items():
        if subdomain not in domains():
            raise registry.unknown(f"subdomain in {path}:", subdomain, list(domains()))
        for row in part if isinstance(part, list) else [part]:
            if not isinstance(row, dict) or not all(isinstance(v, str) for v in row.values()):
                raise InputError(f"{path}: [[{subdomain}]] must be tables of texts")
            where = f"{path}: {row.get('id') or f'[[{subdomain}]]'}"
            lacks = [k for k in _FIELDS if not row.get(k)] + sorted(row.keys() - set(_FIELDS))
            if lacks:
                raise InputError(f"{where}: needs exactly {', '.join(_FIELDS)}; see {lacks[0]!r}")
            text = _template(row["text"], where, Notes(), 0)
            templates.append(
                _statement(
                    row["id"],
                    path.stem,
                    text,
                    row["entity"],
                    source,
                    {
                        "domain": domains()[subdomain],
                        "subdomain": subdomain,
                        "prototypical": fill(text, row["prototypical"], path.stem),
                        "counter": fill(text, row["counter"], path.stem),
                    },
                )
            )
    ids = [template.id for template in templates]
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice:
        raise InputError(f"{path}: the id {twice!r} is given twice")
    return templates


def _statement(
    name: str, lang: str, text: str, entity: str, source: str, extra: dict[str, JSON]
) -> Statement:
    return Statement(
        id=name,
        lang=lang,
        text=text,
        role="original",
        pair="",
        bias_type=str(extra["subdomain"]),
        type="template",
        entity=entity,
        valid_in=(),
        source=source,
        extra=extra,
    )


def _template(value: object, where: str, notes: Notes, number: int) -> str:
    """Return a text with its one open slot written as `[PLACEHOLDER]`."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: the template is empty or not a text")
    text = cell_sentence(value, notes, number)
    if SLOT not in text:
        text, n = _ALSO_SLOT.subn(SLOT, text)
        if n:
            notes.add(f"slot written differently, changed to {SLOT}", number)
    if text.count(SLOT) != 1:
        raise InputError(
            f"{where}: a template must have {SLOT} once, this one has it {text.count(SLOT)} times"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: the text holds half a character (a lone surrogate)") from None
    return text


def _file(source: str | Path | Rows, wanted: Sequence[str] | None, notes: Notes) -> list[Statement]:
    """Read a table of templates, one per row."""
    path = rows_of(source)
    if not path.suffix and os.sep not in str(source) and not path.exists():
        raise registry.unknown("set of templates", str(source), ["builtin"], "a file")
    rows = list(people.at_home(numbered_rows(path)))
    columns = _columns(list(rows[0][1]), path, notes)
    only = wanted[0] if wanted is not None and len(wanted) == 1 else _LANG
    version = f"{path.name}@{packs.file_hash(path)}"
    templates: list[Statement] = []
    numbers: dict[tuple[str, str], int] = {}
    problems = Problems(path)
    for number, row in rows:
        where = f"{path}, row {number}"
        with problems.at():
            template = _row(row, columns, only, version, where, notes, number)
            key = (template.id, template.lang)
            if numbers.setdefault(key, number) != number:
                named = cell_text(row.get(columns["id"])) if "id" in columns else ""
                what = f"the id {named!r}" if named else "the same template"
                raise InputError(
                    f"{where}: {what} is already in row {numbers[key]}, in {template.lang!r}; "
                    "give each an 'id' of its own"
                )
            templates.append(template)
    problems.tell()
    if "lang" not in columns:
        why = "--lang" if only != _LANG or wanted else "the language of Aqbileq's templates"
        contradict.refuse([t.text for t in templates], only, str(path), why)
        if not wanted:
            notes.add(Caution(f"no column gives the language: assumed {only}, {why}"))
    return templates


def _columns(there: list[str], path: Table, notes: Notes) -> dict[str, str]:
    """Map our names of columns to the file's; note missing ones. InputError without templates."""
    plain: dict[str, str] = {}
    for name in there:
        plain.setdefault(re.sub(r"[\s-]+", "_", name.strip().lower()), name)
    found = {}
    for column, names in _COLUMNS.items():
        known = next((plain[name] for name in names if name in plain), None)
        if known is not None:
            found[column] = known
    if "text" not in found:
        raise InputError(
            f"{path}: no column 'template'; there is: {', '.join(there[:12])}; "
            f"give this name to the column of sentences with {SLOT}"
        )
    if "domain" not in found and "subdomain" not in found:
        notes.add("no column 'domain' or 'subdomain': figures cannot be grouped by them")
    for column in ("prototypical", "counter"):
        if column not in found:
            notes.add(f"no column {column!r}: the templates make no pairs")
    return found


def _row(
    row: Row,
    columns: dict[str, str],
    only: str,
    source: str,
    where: str,
    notes: Notes,
    number: int,
) -> Statement:
    cells = {column: row.get(name) for column, name in columns.items()}
    try:
        lang = packs.language_code(cell_text(cells["lang"]), True) if "lang" in cells else only
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    text = _template(cells["text"], where, notes, number)
    subdomain = _slug(cell_text(cells.get("subdomain")), "subdomain", notes, number)
    domain = _slug(cell_text(cells.get("domain")), "domain", notes, number)
    extra: dict[str, JSON] = {
        "domain": domain or domains().get(subdomain, ""),
        "subdomain": subdomain,
    }
    for column in ("prototypical", "counter"):
        name = columns.get(column, "")
        extra[column] = _filled(text, cells.get(column), name, lang, notes, number)
    taken = set(columns.values())
    return _statement(
        cell_text(cells.get("id")) or digest([lang, text], 12),
        lang,
        text,
        cell_text(cells.get("entity")),
        cell_text(cells.get("source")) or source,
        {name: cell_json(value) for name, value in row.items() if name not in taken} | extra,
    )


def _filled(template: str, value: object, column: str, lang: str, notes: Notes, number: int) -> str:
    """Return the sentence of a cell, or the template filled with the cell's first filler."""
    text = cell_sentence(value, notes, number)
    before, after = (part.strip(" .!?").casefold() for part in template.split(SLOT))
    folded = text.strip(" .!?").casefold()
    whole = folded.startswith(before) and folded.endswith(after) and folded != before + after
    if not text or column.strip().lower().endswith(_SENTENCES) or (whole and before + after):
        return text
    fillers = cell_list(text)
    return fill(template, fillers[0], lang) if fillers else ""
