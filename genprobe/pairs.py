"""Pairs of sentences to be scored, and choices: as the studies publish them, and one plain table.

    builtin, shades, a SHADES table, a table of statements    originals and contrasts (statements)
    templates, or a table of templates with fillers           Aqbileq: prototypical and counter
    pro_trope, anti_trope                                     RuBia
    sent_more, sent_less                                      CrowS-Pairs
    stereotype, antistereotype                                AfriStereo; StereoSet with unrelated
    pro, anti                                                 one's own
    context, question, …                                      BBQ, PBBQ (choices)

Everything becomes `Statement`s: an original and its contrasts share `pair`; a third, `unrelated`
sentence (StereoSet) has that role. All other columns come along.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from genprobe import choices, inputs, registry, statements, templates
from genprobe.errors import InputError
from genprobe.files import Notes, Row, cell_json, cell_sentence, cell_text, numbered_rows
from genprobe.records import Statement, digest

DATA = ("builtin", "templates", "shades")
MIXED = "kk-x-ru"
# The two columns of sentences, by layout, and the language where the file does not say it.
_LAYOUTS = (
    ("pro_trope", "anti_trope", "ru"),
    ("sent_more", "sent_less", "en"),
    ("stereotype", "antistereotype", "en"),
    ("stereotype_sentence", "antistereotype_sentence", "en"),
    ("stereotype_sentence", "anti_stereotype_sentence", "en"),
    ("stereotype", "anti_stereotype", "en"),
    ("pro", "anti", ""),
)
_ITEM = ("pair", "item", "id", "")  # CrowS-Pairs numbers its pairs in a column without a name
_LANG = ("lang", "language", "locale", "lang_code", "language_code")
_BIAS_TYPE = ("bias_type", "stereotype_type", "axis")
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")

Found = tuple[list[Statement], list[str]]  # statements, notes


def load(source: str, langs: Sequence[str] | None = None, prefix: str = "") -> Found:
    """The statements of `DATA`, or of a file in one of the layouts above (JSONL, CSV, Parquet).

    langs: limits the languages; each must have a pair. prefix: a word that is put before every
    sentence of a table of pairs, as AfriStereo's "African": the sentence that is scored has it;
    its first letter becomes small where a column `identity` writes the identity so.
    Returns the statements, (id, lang) unique, and notes, one line each, on what was left out or
    changed. InputError for what cannot be used.
    """
    wanted = list(dict.fromkeys(_language(lang, None) for lang in langs or ())) or None
    path = Path(source)
    if source not in DATA and not path.suffix and os.sep not in source and not path.exists():
        raise registry.unknown("data set", source, [*DATA, "a file"])
    first = {} if source in DATA else next(numbered_rows(path))[1]
    layout = next((x for x in _LAYOUTS if x[0] in first and x[1] in first), None)
    filled = source == "templates" or bool({"template", "Template"} & set(first))
    if prefix and (layout is None or filled):
        raise InputError(f"{source}: a prefix goes with a table of pairs of sentences")
    notes = Notes()
    if choices.is_table(first):
        found, languages = choices.read(
            numbered_rows(path), _name(path), _only(wanted), wanted, notes, source
        )
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


def _only(wanted: Sequence[str] | None) -> str:
    """The language of a file without a column for it: the one that was asked for."""
    return wanted[0] if wanted is not None and len(wanted) == 1 else ""


def _name(path: Path) -> str:
    return f"{path.name}@{inputs.file_hash(path)}"


def _checked(
    source: str, found: list[Statement], languages: Iterable[str], wanted: Collection[str] | None
) -> list[Statement]:
    there = {statement.lang for statement in found}
    missing = [code for code in wanted or () if code not in there]
    if missing or not found:
        has = ", ".join(dict.fromkeys(languages)) or "no language"
        what = ", ".join(missing) or "any language"
        raise InputError(f"{source}: no pair in {what}; there is {has}")
    return found


def _language(name: str, notes: Notes | None, row: object = None) -> str:
    """A language's code. One that genprobe has no words of is kept where it looks like a code:
    to score a sentence no words are needed."""
    try:
        return inputs.language_code(name, mixed=True)
    except InputError:
        code = name.strip().replace("_", "-")
        if not _CODE.fullmatch(code):
            raise
        if notes is not None:
            notes.add(f"language {code!r} is none of genprobe's, kept as it is", row)
        return code


def _paired(found: Iterable[Statement], notes: Notes) -> list[Statement]:
    """Those that have somebody to be paired with: an original and a contrast of one language."""
    found = list(found)
    sides: dict[tuple[str, str], set[str]] = {}
    for statement in found:
        sides.setdefault((statement.lang, statement.pair), set()).add(statement.role)
    kept = [s for s in found if s.pair and len(sides[s.lang, s.pair]) > 1]
    alone = Counter(s.lang for s in found) - Counter(s.lang for s in kept)
    if alone:
        counts = ", ".join(f"{lang} {n}" for lang, n in sorted(alone.items()))
        notes.add(f"original or contrast alone, in no pair, left out: {counts}")
    return kept


def _pair(name: str, lang: str, sentences: dict[str, str], **more: Any) -> list[Statement]:
    """The statements of a pair: the original has its name, the others their role behind it."""
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
    """Templates with their slot filled as people expect, and otherwise."""
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
    """Share of Russian words in the sentences of a pair (Aqbileq 4.1.3), told word by word."""
    from genprobe.judges import language

    return language.make().share("ru", texts)


def _table(
    path: Path,
    layout: tuple[str, str, str],
    wanted: Sequence[str] | None,
    prefix: str,
    notes: Notes,
) -> tuple[list[Statement], list[str]]:
    """A table with two sentences a row."""
    pro, anti, default = layout
    only = _only(wanted) or default
    source = _name(path)
    found: list[Statement] = []
    languages: list[str] = []
    taken: dict[tuple[str, str], int] = {}
    for number, row in numbered_rows(path):
        at = f"{path}, row {number}"
        lang = _row_language(row, only, notes, number, at)
        languages.append(lang)
        if wanted is not None and lang not in wanted:
            continue
        sentences = {"original": _sentence(row, pro, notes, number, at)}
        sentences["contrast"] = _sentence(row, anti, notes, number, at)
        if cell_text(row.get("unrelated")):
            sentences["unrelated"] = _sentence(row, "unrelated", notes, number, at)
        if sentences["original"] == sentences["contrast"]:
            notes.add("the same sentence twice: no model can prefer one", number)
        column = next((name for name in _ITEM if cell_text(row.get(name))), None)
        name = cell_text(row.get(column)) if column is not None else ""
        if not name:
            name = digest([lang, *sentences.values()], 12)
            taken[name, lang] = taken.get((name, lang), 0) + 1
            if taken[name, lang] > 1:
                notes.add("a pair of an earlier row once more, counted again", number)
                name = f"{name}-{taken[name, lang]}"
        elif taken.setdefault((name, lang), number) != number:
            before = taken[name, lang]
            raise InputError(f"{at}: the pair {name!r} stands in row {before} already, in {lang!r}")
        if prefix:
            identity = cell_text(row.get("identity"))
            sentences = {k: _prefixed(prefix, text, identity) for k, text in sentences.items()}
        ours = {pro, anti, "unrelated", column, *_LANG, "source"}
        extra = {key: cell_json(value) for key, value in row.items() if key not in ours}
        kind = next((key for key in _BIAS_TYPE if key in extra), None)
        if lang == MIXED and "russian" not in extra:
            extra["russian"] = _russian(*itertools.islice(sentences.values(), 2))
        found += _pair(
            name,
            lang,
            sentences,
            bias_type=cell_text(extra.pop("bias_type") if kind == "bias_type" else extra.get(kind))
            if kind
            else "",
            type=cell_text(extra.pop("type", "")),
            entity=cell_text(extra.pop("entity", "")),
            source=cell_text(row.get("source")) or source,
            extra=extra,
        )
    return found, languages


def _row_language(row: Row, only: str, notes: Notes, number: int, at: str) -> str:
    name = next((text for key in _LANG if (text := cell_text(row.get(key)))), only)
    if not name:
        raise InputError(f"{at}: no language; give a column 'lang', or one language with --lang")
    try:
        return _language(name, notes, number)
    except InputError as error:
        raise InputError(f"{at}: {error}") from None


def _sentence(row: Row, column: str, notes: Notes, number: int, at: str) -> str:
    value = row.get(column)
    if not cell_text(value):
        raise InputError(f"{at}: {column!r} is empty")
    text = cell_sentence(value, notes, number)
    if not isinstance(value, str) or _is_number(text):
        raise InputError(
            f"{at}: {column!r} holds a number, not a sentence; "
            "values that are scored already are counted by `genprobe score`"
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
    """`Women are kind.` -> `African women are kind.`; names keep their capital."""
    if identity[:1].islower() and sentence[: len(identity)].lower() == identity.lower():
        sentence = identity + sentence[len(identity) :]
    return f"{prefix} {sentence}"
