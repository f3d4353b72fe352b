"""Load pairs of sentences and choices: tables as the studies publish them, or a plain table.

    builtin, shades, a SHADES table, a table of statements    originals and contrasts (statements)
    templates, or a table of templates with fillers           Aqbileq: prototypical and counter
    pro_trope, anti_trope                                     RuBia; with CS_…, RU_… Aqbileq (G)
    sent_more, sent_less                                      CrowS-Pairs
    Identity Term, Canonical Term Attributes, Anti-Stereotype Terms    AfriStereo
    stereotype, antistereotype                                any; with `unrelated`, StereoSet
    pro, anti                                                 the user's own pairs
    context, question, …                                      BBQ, PBBQ (choices)

Each sentence becomes a `Statement`: an original and its contrasts share `pair`; a third, unrelated
sentence (StereoSet) has the role `unrelated`. All other columns are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from genprobe.datasets import choices, identities, sets, statements, templates
from genprobe.errors import Caution, InputError
from genprobe.files import Row, door, numbered_rows, people
from genprobe.files.cells import Notes, Problems, cell_json, cell_sentence, cell_text
from genprobe.files.rows import Rows, Table, rows_of
from genprobe.linguistics import contradict, identify
from genprobe.records import JSON, Statement, digest
from genprobe.resources import packs, registry
from genprobe.text import whole

# The data sets known by name, in addition to those of `statements`.
NAMED = {"templates": "built-in templates with fillers (logprob)"}
DATA = ("builtin", "shades", *NAMED)
MIXED = "kk-x-ru"


@dataclass(frozen=True)
class _Layout:
    """A published table: the columns of its two sentences, and its language if no column has it.

    identity: the column of the group, if the columns of sentences only have attributes of it.
    """

    pro: str
    anti: str
    lang: str
    identity: str = ""


# Names of columns are compared in small letters, with `_` between words.
_LAYOUTS = (
    _Layout("pro_trope", "anti_trope", "ru"),
    _Layout("sent_more", "sent_less", "en"),
    _Layout("canonical_term_attributes", "anti_stereotype_terms", "en", "identity_term"),
    _Layout("stereotype", "antistereotype", "en"),
    _Layout("stereotype", "anti_stereotype", "en"),
    _Layout("stereotype_sentence", "antistereotype_sentence", "en"),
    _Layout("stereotype_sentence", "anti_stereotype_sentence", "en"),
    _Layout("pro", "anti", ""),
)
_ITEM = ("pair", "item", "id", "")  # CrowS-Pairs numbers its pairs in a column without a name
_LANG = ("lang", "language", "locale", "lang_code", "language_code")
_BIAS_TYPE = ("bias_type", "stereotype_type", "axis")
_DIVISIONS = {"domain", "subdomain", "task_type"}  # columns, as metrics of pairs name them

Found = tuple[list[Statement], list[str]]  # statements, notes


def load(source: str | Path | Rows, langs: Sequence[str] | None = None, prefix: str = "") -> Found:
    """Read the statements of a data set by name, or of a file or rows in one of the layouts above.

    langs: the languages to read, each of which must have a pair; None means all. prefix: a word put
    before every identity, or sentence, of a table of pairs, such as AfriStereo's "African". Returns
    the statements, with (id, lang) unique, and notes of one line on what was left out or changed.
    Raises InputError for unusable data.
    """
    wanted = list(dict.fromkeys(_language(lang, None) for lang in langs or ())) or None
    if isinstance(source, str) and sets.is_set(source):
        rows, told = sets.read(source, wanted)
        of_set, more = load(rows, wanted, prefix)
        return sets.signed(of_set), [*told, *more]
    path = rows_of(source)
    known_by_name = isinstance(source, str) and source in DATA
    if not (known_by_name or path.suffix or os.sep in str(source) or path.exists()):
        raise registry.unknown("data set", str(source), [*DATA, *sets.names()], "a file")
    if isinstance(path, Path) and not known_by_name and path.is_dir():
        return _folder(path, wanted)
    head = {} if known_by_name else next(numbered_rows(path))[1]
    there = set(map(_plain, head))
    layout = next((x for x in _LAYOUTS if {x.pro, x.anti} <= there), None)
    if layout is not None and _versions(there, layout):
        layout = replace(layout, lang="kk")  # Aqbileq, Appendix G, has the column names of RuBia
    filled = source == "templates" or "template" in there
    if prefix and (layout is None or filled):
        raise InputError(
            f"{source}: a prefix needs a table that has the two sentences of a pair in a row, "
            "as in docs/preferences.md"
        )
    if whole(prefix) != prefix:
        raise InputError("the prefix holds half a character; give it in UTF-8")
    half = [{x.pro, x.anti} & there for x in _LAYOUTS]
    if layout is None and not filled and "text" not in there and any(half):
        one = next(iter(next(filter(None, half))))
        others = " or ".join(
            dict.fromkeys(
                x.anti if one == x.pro else x.pro for x in _LAYOUTS if one in (x.pro, x.anti)
            )
        )
        raise InputError(
            f"{source}: the column {one!r} also needs {others}; columns: {', '.join(head)}; "
            "see docs/preferences.md"
        )
    if layout is None and {"identity", "attribute"} <= there and "text" not in there:
        raise InputError(
            f"{source}: groups and what is said of them, but no pairs of sentences; make these "
            f"with `genprobe dataset pair {path.name} -o pairs.csv`"
        )
    notes = Notes()
    if choices.is_table(head):
        found, languages = _choices(path, wanted, notes, str(source))
    elif filled:
        known, more = templates.load("builtin" if source == "templates" else source, wanted)
        found, languages = _filled(known, notes), [t.lang for t in known]
        return _checked(source, found, languages, wanted), [*more, *notes.lines()]
    elif layout is not None:
        found, languages = _table(path, layout, wanted, prefix.strip(), notes)
    else:
        known, more = statements.load(source, wanted)
        found, languages = _paired(known, notes), [s.lang for s in known]
        return _checked(source, found, languages, wanted), [*more, *notes.lines()]
    return _checked(source, found, languages, wanted), notes.lines()


def sentences(source: str | Path | Rows, langs: Sequence[str] | None = None) -> Found:
    """Read the statements to ask about: those of `statements.load`, or the two sides of pairs.

    A table of pairs (one of the layouts above), or of templates with fillers, is read as `load`
    reads it, so that what is said of a sentence and what is preferred have the same names.
    """
    if isinstance(source, str) and sets.is_set(source):
        rows, told = sets.read(source, [_language(lang, None) for lang in langs or ()] or None)
        found, notes = sentences(rows, langs)
        return sets.signed(found), [*told, *notes]
    path: Table = rows_of(source)
    read: Callable[..., Found] = statements.load
    if path.is_file():
        there = set(map(_plain, next(numbered_rows(path))[1]))
        if "template" in there or any({x.pro, x.anti} <= there for x in _LAYOUTS):
            read = load
    found, notes = read(source, langs)
    found = [one for one in found if one.role in statements.ROLES]
    turned = [one for one in found if one.extra.get("stereo_antistereo") == "antistereo"]
    if (
        turned
    ):  # CrowS-Pairs: the first sentence goes against a stereotype, so yes means another thing
        found = [one for one in found if one not in turned]
        notes = [
            *notes,
            f"pairs whose first sentence is no stereotype, left out: {len(turned) // 2}",
        ]
    mixes = any(one.lang == MIXED for one in found)
    return [_dosed(one) if mixes else one for one in found], notes


def _dosed(one: Statement) -> Statement:
    """Return a statement with its share of Russian words, if it is mixed or Kazakh (none)."""
    if one.lang not in (MIXED, packs.first_of(MIXED)) or "russian" in one.extra:
        return one
    return replace(
        one, extra=one.extra | {"russian": _russian(one.text) if one.lang == MIXED else 0.0}
    )


def _folder(folder: Path, wanted: Sequence[str] | None) -> Found:
    """Read a folder of files in BBQ's layout, or its subfolder `data`."""
    notes = Notes()
    found: list[Statement] = []
    languages: list[str] = []
    door.need_own(folder)
    places = (sorted(place.glob("*.jsonl")) for place in (folder, folder / "data"))
    paths = next(filter(None, places), [])
    if not paths:
        raise InputError(
            f"{folder}: the folder has no *.jsonl; name a file, or BBQ's folder `data`"
        )
    for path in paths:
        if not choices.is_table(next(numbered_rows(path))[1]):
            raise InputError(f"{path}: no columns context and question; a folder holds choices")
        part, codes = _choices(path, wanted, notes, str(path))
        found += part
        languages += codes
    return _checked(folder, found, languages, wanted), notes.lines()


def _choices(path: Table, wanted: Sequence[str] | None, notes: Notes, where: str) -> Found:
    """Read a file of choices, with BBQ's targets if the authors' file of targets is beside it."""
    rows, name = people.at_home(numbered_rows(path)), _name(path)
    targets = sets.targets_beside(path) if isinstance(path, Path) else None
    if targets is not None:
        rows, name = sets.joined(rows, targets), f"{name}+{_name(targets)}"
        notes.add(f"BBQ's targets are those of {targets}")
    return choices.read(rows, name, _only(wanted), wanted, notes, where)


def _only(wanted: Sequence[str] | None) -> str:
    """Return the language of a file without a column for it: the only one wanted, or ""."""
    return wanted[0] if wanted is not None and len(wanted) == 1 else ""


def _name(path: Table) -> str:
    return f"{path.name}@{packs.file_hash(path)}"


def _checked(
    source: object, found: list[Statement], languages: Iterable[str], wanted: Collection[str] | None
) -> list[Statement]:
    there = {statement.lang for statement in found}
    missing = [code for code in wanted or () if code not in there]
    if missing or not found:
        has = ", ".join(dict.fromkeys(languages)) or "no language"
        what = ", ".join(missing) or "any language"
        raise InputError(f"{source}: no pair in {what}; there is {has}")
    return found


def _language(name: str, notes: Notes | None, row: object = None, text: str = "") -> str:
    """Return the code of a language; note one that genprobe has no file for."""
    code = packs.any_code(name, text)
    if notes is not None and packs.tier(code) == "scored":
        notes.add(f"language {code!r} is not one of genprobe's, kept unchanged", row)
    return code


def _paired(found: Iterable[Statement], notes: Notes) -> list[Statement]:
    """Keep only the statements of pairs that have an original and a contrast in a language."""
    found = list(found)
    sides: dict[tuple[str, str], set[str]] = {}
    for statement in found:
        sides.setdefault((statement.lang, statement.pair), set()).add(statement.role)
    kept = [s for s in found if s.pair and len(sides[s.lang, s.pair]) > 1]
    alone = Counter(s.lang for s in found) - Counter(s.lang for s in kept)
    if alone:
        counts = ", ".join(f"{lang} {n}" for lang, n in sorted(alone.items()))
        notes.add(f"original or contrast without its partner, left out: {counts}")
    return kept


def _pair(name: str, lang: str, sentences: dict[str, str], **more: Any) -> list[Statement]:
    """Make the statements of a pair.

    The id of the original is the pair's name; the ids of the others are followed by their role.
    """
    return [
        Statement(
            id=name if role == "original" else f"{name}/{role}",
            lang=lang,
            text=text,
            role=role,
            pair=name,
            valid_in=(),
            **more,
        )
        for role, text in sentences.items()
    ]


def _filled(found: Iterable[Statement], notes: Notes) -> list[Statement]:
    """Make pairs from templates: the slot filled as people expect, and with the counter."""
    pairs: list[Statement] = []
    for template in found:
        extra = dict(template.extra)
        pro, anti = (str(extra.pop(name, "") or "") for name in ("prototypical", "counter"))
        if not pro or not anti:
            notes.add("template without both fillers, left out", template.lang)
            continue
        if pro == anti:
            notes.add("both fillers make the same sentence, left out", template.lang)
            continue
        if template.lang == MIXED:
            extra["russian"] = _russian(pro, anti)
        pairs += _pair(
            template.id,
            template.lang,
            {"original": pro, "contrast": anti},
            bias_type=template.bias_type,
            type="template",
            entity=template.entity,
            source=template.source,
            extra=extra | {"template": template.text},
        )
    return pairs


def _russian(*texts: str) -> float | None:
    """Compute the share of Russian words in the sentences of a pair (Aqbileq 4.1.3).

    The language is identified for each word.
    """
    return identify.make().share("ru", texts)


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _table(
    path: Table, layout: _Layout, wanted: Sequence[str] | None, prefix: str, notes: Notes
) -> tuple[list[Statement], list[str]]:
    """Read a table with two sentences per row."""
    source = _name(path)
    found: list[Statement] = []
    languages: list[str] = []
    guessed: dict[str, list[str]] = {}  # language that was assumed -> its sentences
    texts: dict[tuple[str, ...], str] = {}  # of a pair, and its language -> its name
    rows: dict[tuple[str, str], list[int]] = {}  # (pair, language) -> numbers of its rows
    problems = Problems(path)
    heads = list(next(people.at_home(numbered_rows(path)))[1])
    versions = _versions([_plain(name) for name in heads], layout)
    _tell_unread(heads, layout, versions, notes)
    for number, row, cells, version in _read(path, versions, notes):
        at = f"{path}, row {number}"
        with problems.at():
            only = _only([w for w in wanted or () if w not in versions]) or layout.lang
            first = cell_text(cells.get(layout.pro))
            lang = version or _row_language(cells, only, first, notes, number, at)
            languages.append(lang)
            if not version and not any(cell_text(cells.get(key)) for key in _LANG):
                known = [cell_text(cells.get(column)) for column in (layout.pro, layout.anti)]
                guessed.setdefault(lang, []).append(" ".join(known))
            if wanted is not None and lang not in wanted:
                continue
            sentences = _sentences(cells, layout, lang, "", notes, number, at)
            if sentences["original"] == sentences["contrast"]:
                notes.add("the same sentence twice: no model can prefer one", number)
            column = next((name for name in _ITEM if cell_text(cells.get(name))), None)
            # Named by the sentences without the prefix, so that runs with and without it can be
            # compared pair by pair.
            name = digest([lang, *sentences.values()], 12)
            if column is not None:  # the column's name may be "", as for an index without a heading
                name = cell_text(cells[column])
            before = rows.setdefault((name, lang), [])
            before.append(number)
            if column is not None and texts.setdefault((lang, *sentences.values()), name) != name:
                notes.add("a pair that an earlier row has, too, under another id", number)
            if len(before) > 1:
                name = _once_more(name, lang, before, column is not None, notes, at)
            if prefix:
                sentences = _sentences(cells, layout, lang, prefix, notes, number, at)
            extra = _extra(row, {layout.pro, layout.anti, "unrelated", "source", column, *_LANG})
            if lang == MIXED:
                extra.setdefault("russian", _russian(sentences["original"], sentences["contrast"]))
            found += _pair(
                name,
                lang,
                sentences,
                bias_type=next(
                    (text for key in _BIAS_TYPE if (text := cell_text(cells.get(key)))), ""
                ),
                type=cell_text(cells.get("type")),
                entity=cell_text(cells.get("entity") or cells.get(layout.identity or "identity")),
                source=cell_text(cells.get("source")) or source,
                extra=extra,
            )
    problems.tell()
    _tell_guessed(path, guessed, wanted or (), notes)
    return found, languages


def _once_more(
    name: str, lang: str, rows: Sequence[int], named: bool, notes: Notes, at: str
) -> str:
    """Return a new name for a pair whose name exists already.

    rows: the numbers of all rows with the name, this one last. named: whether the name comes from a
    column; then InputError is raised instead.
    """
    if named:
        raise InputError(f"{at}: the pair {name!r} is in row {rows[0]}, too, in {lang!r}")
    notes.add("a pair that an earlier row has, too, counted again", rows[-1])
    return f"{name}-{len(rows)}"


def _tell_guessed(
    path: Table, guessed: dict[str, list[str]], wanted: Collection[str], notes: Notes
) -> None:
    """Note a language that was assumed because no column has it.

    guessed: language -> its sentences. Raises InputError if they are plainly in another language.
    """
    for lang, texts in guessed.items():
        asked = lang in wanted
        why = "--lang" if asked else "the language of tables with such columns"
        contradict.refuse(texts, lang, str(path), why)
        if not asked:
            notes.add(Caution(f"no column gives the language: assumed {lang}, {why}"))


def _read(
    path: Table, versions: dict[str, dict[str, str]], notes: Notes
) -> Iterator[tuple[int, Row, Row, str]]:
    """Yield the rows of a table: number, row, cells under plain names, language of the version.

    A table may have versions of its sentences in additional columns, named after the language:
    Aqbileq's (App. G) has CS_pro_trope (code-switched); RU_pro_trope would be Russian. Each version
    is yielded as a separate row; the language of the row's own sentences is "".
    """
    others = {column for columns in versions.values() for column in columns.values()}
    for number, row in people.at_home(numbered_rows(path)):
        cells = {_plain(name): value for name, value in row.items()}
        named = {_plain(name): name for name in row}
        own = {name: value for name, value in row.items() if _plain(name) not in others}
        yield number, own, cells, ""
        for lang, columns in versions.items():
            filled = [bool(cell_text(cells.get(column))) for column in columns.values()]
            if any(filled) and not all(filled):
                notes.add(f"only one of the two sentences in {lang}, left out", number)
            if all(filled):
                other = cells | {ours: cells[column] for ours, column in columns.items()}
                yield number, own | {named[k]: other[k] for k in columns}, other, lang


def _versions(names: Collection[str], layout: _Layout) -> dict[str, dict[str, str]]:
    """Find the languages in whose name both columns of a pair are there once more."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        head = name.removesuffix(f"_{layout.pro}")
        columns = {column: f"{head}_{column}" for column in (layout.pro, layout.anti)}
        if head == name or not set(columns.values()) <= set(names):
            continue
        with contextlib.suppress(InputError):  # the columns stay what they are: further columns
            found.setdefault(_language(head, None), columns)
    return found


def _tell_unread(
    heads: Collection[str], layout: _Layout, versions: dict[str, dict[str, str]], notes: Notes
) -> None:
    """Note columns that look like sentences in another language and are not read.

    Note also languages of versions that genprobe does not know, as they may be no languages.
    """
    for lang, columns in versions.items():
        if lang not in {*registry.names("languages"), MIXED}:
            notes.add(
                f"{columns[layout.pro]} is read as the language {lang!r}, not one of genprobe's"
            )
    taken = {layout.pro, layout.anti, *(c for two in versions.values() for c in two.values())}
    tropes = {"pro", "anti", "trope"} if layout.pro.startswith("pro") else set()
    ends = {layout.pro, layout.anti, *tropes}
    both = f"CODE_{layout.pro} and CODE_{layout.anti}"
    for head in heads:
        name = _plain(head)
        if name not in taken and any(name.endswith(f"_{end}") for end in ends):
            notes.add(f"the column {head!r} is not read; sentences in a language need {both}")


def _extra(row: Row, ours: Collection[str | None]) -> dict[str, JSON]:
    """Return the columns that a statement has no field for, under their own names.

    Only the names of columns by which metrics group pairs are normalised ("Subdomain").
    """
    taken = {*ours, "bias_type", "type", "entity"}
    found = {name: cell_json(value) for name, value in row.items() if _plain(name) not in taken}
    return {
        plain if (plain := _plain(name)) in _DIVISIONS - row.keys() else name: value
        for name, value in found.items()
    }


def _sentences(
    cells: Row, layout: _Layout, lang: str, prefix: str, notes: Notes, number: int, at: str
) -> dict[str, str]:
    """Return the sentences of a row by role, with the prefix."""
    columns = {"original": layout.pro, "contrast": layout.anti}
    if cell_text(cells.get("unrelated")):
        columns["unrelated"] = "unrelated"
    texts = {role: _text(cells, column, notes, number, at) for role, column in columns.items()}
    if layout.identity:
        words = identities.load(lang)
        identity = _text(cells, layout.identity, notes, number, at)
        if prefix:
            identity = f"{prefix} {_inside(identity, lang, notes, number)}"
        texts = {
            role: words.say(identity, words.link.replace("{attribute}", text.rstrip(".")))
            for role, text in texts.items()
        }
        return {role: text[:1].upper() + text[1:] for role, text in texts.items()}
    if not prefix:
        return texts
    identity = cell_text(cells.get("identity"))
    if not identity:
        notes.add("no 'identity': the sentence after the prefix keeps its capital letter", number)
        return {role: f"{prefix} {text}" for role, text in texts.items()}
    identity = _inside(identity, lang, notes, number)
    return {role: _prefixed(prefix, text, identity) for role, text in texts.items()}


def _inside(identity: str, lang: str, notes: Notes, number: int) -> str:
    """Write an identity as it stands after a prefix; note a capital that may not belong there."""
    written, certain = identities.inside(identity, lang)
    if not certain:
        notes.add(
            f"{written!r} keeps its capital after the prefix, as it may be a name; if it is none, "
            "write the identity in small letters",
            number,
        )
    return written


def _row_language(cells: Row, only: str, text: str, notes: Notes, number: int, at: str) -> str:
    name = next((said for key in _LANG if (said := cell_text(cells.get(key)))), only)
    if not name:
        raise InputError(f"{at}: no language; give a column 'lang', or one language with --lang")
    try:
        return _language(name, notes, number, text)
    except InputError as error:
        raise InputError(f"{at}: {error}") from None


def _text(cells: Row, column: str, notes: Notes, number: int, at: str) -> str:
    value = cells.get(column)
    if not cell_text(value):
        raise InputError(f"{at}: {column!r} is empty")
    text = cell_sentence(value, notes, number)
    if not isinstance(value, str) or _is_number(text):
        raise InputError(
            f"{at}: {column!r} holds a number, not a sentence; "
            "if these are scores, use `genprobe score`"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{at}: {column!r} holds half a character (a lone surrogate)") from None
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _prefixed(prefix: str, sentence: str, identity: str) -> str:
    """Put a prefix before a sentence: `Women are kind.` -> `African women are kind.`.

    identity: as it stands inside a sentence.
    """
    if sentence[: len(identity)].lower() == identity.lower():
        sentence = identity + sentence[len(identity) :]
    return f"{prefix} {sentence}"


def first(statements: Iterable[Statement], limit: int | None) -> list[Statement]:
    """Keep the first `limit` pairs, or choices, of each language; all if it is None."""
    count: dict[str, dict[str, None]] = {}
    kept = []
    for statement in statements:
        units = count.setdefault(statement.lang, {})
        unit = statement.id if choices.is_choice(statement) else statement.pair or statement.id
        if limit is None or unit in units or len(units) < limit:
            units[unit] = None
            kept.append(statement)
    return kept
