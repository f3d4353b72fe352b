"""Count the items of a data set by their annotations: `genprobe describe FILE`.

The counts are those that the studies print about their data: statements by language, form, bias
type and region (SHADES, Tables 4 and 6, Figures 3, 4, 8, 9), pairs by domain and subdomain
(Aqbileq, Table 1; crossed with the language), by axis or identity (AfriStereo, Table 5), groups of
what respondents said (AfriStereo, Figure 2), choices by category and template (PBBQ, Table 1); and
what is missing, duplicated or odd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from genprobe.datasets import choices, pairs, statements, templates
from genprobe.files import Row, numbered_rows
from genprobe.files.cells import cell_text
from genprobe.files.rows import Rows, rows_of
from genprobe.records import Statement
from genprobe.resources import packs
from genprobe.text import normalise, tokens
from genprobe.text.display import alike

SHOWN = 40  # most values of a column that are listed


@dataclass(frozen=True)
class Count:
    """The number of items with a value.

    table: what is counted; of: total number of items. across: the value of the last column named in
    `table`, if it crosses several.
    """

    table: str
    value: str
    n: int
    of: int
    across: str = ""


def describe(source: str | Path | Rows, langs: Sequence[str] = ()) -> tuple[list[Count], list[str]]:
    """Count a table of statements, pairs, templates or choices by its annotations.

    Returns the counts, and notes of one line each on what the loader left out or changed, and on
    oddities (the same text twice, contrasts without an original, inconsistent labels). Raises
    InputError for a file that cannot be read.
    """
    table = rows_of(source)
    head = next(numbered_rows(table))[1] if table.is_file() else {}
    if {"group", "group_size", "medoid"} <= set(head):
        return list(_groups(source, langs)), []
    kind, items, notes = _load(source, langs, head)
    found = list(_counts(kind, items))
    return found, [*notes, *_odd(kind, items)]


def _load(
    source: str | Path | Rows, langs: Sequence[str], head: Row
) -> tuple[str, list[Statement], list[str]]:
    if "template" in {name.strip().lower() for name in head} or source == "templates":
        items, notes = templates.load("builtin" if source == "templates" else source, langs or None)
        return "templates", items, notes
    if "context" in head or (
        source not in ("builtin", "shades")
        and "text" not in head
        and not any("_biased_sentences" in name for name in head)
    ):
        items, notes = pairs.load(source, langs or None)
        kind = "choices" if items and all(map(choices.is_choice, items)) else "pairs"
        return kind, items, notes
    items, notes = statements.load(source, langs or None)
    return "statements", items, notes


def _counts(kind: str, items: Sequence[Statement]) -> Iterable[Count]:
    originals = [item for item in items if item.role == "original"]
    what = "sentences of pairs" if kind == "pairs" else kind
    yield Count("items", what, len(items), len(items))
    names = {item.pair or item.id for item in items}
    yield Count(
        "items",
        "distinct items (a pair, or an item in several languages, counts once)",
        len(names),
        len(items),
    )
    roles = Counter(item.role for item in items)
    yield from (Count("role", role, n, len(items)) for role, n in roles.most_common())
    yield from _by("language", originals, lambda item: [item.lang])
    yield from _by("form", originals, lambda item: item.type.split("+") if item.type else [])
    yield from _by("bias type", originals, lambda item: item.bias_type.split("+"))
    yield from _by("entity", originals, lambda item: [item.entity])
    yield from _by("known in (language)", originals, lambda item: item.valid_in)
    for column in ("domain", "subdomain", "task_type", "condition", "polarity", "label", "axis"):
        yield from _by(column, originals, lambda item, c=column: [_text(item, c)])  # type: ignore[misc]
    yield from _crossed(originals)
    if kind == "choices":
        known = {(i.bias_type, i.pair) for i in originals if i.pair}
        yield from _by(
            "templates of a category",
            [i for i in originals if (i.bias_type, i.pair) in known],
            lambda item: [item.bias_type],
            lambda item: item.pair,
        )
    regions = {item.id: _regions(item) for item in originals}
    regions = {name: of for name, of in regions.items() if of}
    if regions:
        placed = [item for item in originals if item.id in regions]
        yield from _by("region", placed, _regions, lambda item: item.id)
        shared = {name for name, of in regions.items() if len(of) > 1}
        yield Count("known in two regions or more", "all", len(shared), len(regions))
        types = {item.id: item.bias_type for item in originals if item.id in shared}
        by = Counter(part for value in types.values() for part in value.split("+") if part)
        yield from (
            Count("known in two regions or more", t, n, len(shared)) for t, n in by.most_common()
        )


def _crossed(items: Sequence[Statement]) -> Iterable[Count]:
    """Count domain and subdomain by language, if there are several languages."""
    langs = sorted({item.lang for item in items})
    under = [c for c in ("domain", "subdomain") if any(_text(item, c) for item in items)]
    if len(langs) < 2 or not under:
        return
    found = Counter(
        (" / ".join(_text(item, column) or "(missing)" for column in under), item.lang)
        for item in items
    )
    table = ", ".join([*under, "language"])
    for value in sorted({value for value, _ in found}):
        yield from (Count(table, value, found[value, lang], len(items), lang) for lang in langs)


def _groups(source: str | Path | Rows, langs: Sequence[str]) -> Iterable[Count]:
    """Count a table of `dataset group`: what is said most, and of whom.

    A group is shown by the text of its medoid: its attribute, else its sentence.
    """
    wanted = {packs.language_code(lang) for lang in langs}
    rows = [row for _, row in numbered_rows(source)]
    rows = [row for row in rows if not wanted or cell_text(row.get("lang")) in wanted]
    grouped = [row for row in rows if cell_text(row["group"])]
    size = Counter(cell_text(row["group"]) for row in grouped)
    yield Count("rows", "in a group", len(grouped), len(rows))
    yield Count("groups", "all", len(size), len(size))
    yield Count("groups", "of two or more", sum(n > 1 for n in size.values()), len(size))
    against = {cell_text(row["group"]) for row in grouped if cell_text(row.get("contradicts"))}
    yield Count("groups", "that another group contradicts", len(against), len(size))
    named: dict[str, str] = {}
    for row in sorted(grouped, key=lambda row: cell_text(row["medoid"]).lower() != "true"):
        text = next(
            (t for c in ("attribute", "text", "sentence") if (t := cell_text(row.get(c)))), ""
        )
        named.setdefault(cell_text(row["group"]), alike(text))
    for name, n in size.most_common(SHOWN):
        yield Count("what is said (a group, by its medoid)", named[name], n, len(grouped))
    of = Counter(alike(cell_text(row.get("identity"))) for row in grouped)
    yield from (Count("identity", who, n, len(grouped)) for who, n in of.most_common(SHOWN) if who)


def _by(
    table: str,
    items: Sequence[Statement],
    values: Callable[[Statement], Iterable[str]],
    unit: Callable[[Statement], str] | None = None,
) -> Iterable[Count]:
    """Count items by the values of a column; an item with several values counts for each.

    table: what is counted, for the result. values: returns an item's values. unit: returns the unit
    that is counted instead of the item; each unit counts once per value.
    """
    of: dict[str, set[str]] = {}
    for number, item in enumerate(items):
        key = unit(item) if unit else f"{number}"
        for value in values(item):
            if value:
                of.setdefault(value, set()).add(key)
    count = sorted(of.items(), key=lambda one: (-len(one[1]), one[0]))
    total = len({unit(item) for item in items}) if unit else len(items)
    for value, keys in count[:SHOWN]:
        yield Count(table, value, len(keys), total)
    if len(count) > SHOWN:
        rest = sum(len(keys) for _, keys in count[SHOWN:])
        yield Count(table, f"{len(count) - SHOWN} more values", rest, total)
    missing = sum(not any(values(item)) for item in items)
    if count and missing and unit is None:
        yield Count(table, "(missing)", missing, total)


def _text(item: Statement, column: str) -> str:
    return alike(cell_text(next((v for k, v in item.extra.items() if k.lower() == column), None)))


def _regions(item: Statement) -> list[str]:
    for column in ("stereotype_valid_regions", "valid_regions", "regions"):
        cell = item.extra.get(column)
        if isinstance(cell, list):
            return [str(part) for part in cell]
        if isinstance(cell, str) and cell:
            return [part.strip(" '\"[]") for part in cell.split(",") if part.strip(" '\"[]")]
    return []


def _odd(kind: str, items: Sequence[Statement]) -> list[str]:
    """Note oddities of a data set."""
    notes = []
    same: dict[tuple[str, str], list[str]] = {}
    for item in items:
        key = item.lang, " ".join(tokens(normalise(item.text)))
        if kind == "choices":
            key = key[0], f"{key[1]} {item.extra['options']}"
        same.setdefault(key, []).append(item.id)
    doubled = [names for names in same.values() if len(names) > 1]
    if doubled:
        shown = "; ".join(", ".join(names[:3]) for names in doubled[:3])
        notes.append(
            f"the same text (ignoring case and punctuation) under {len(doubled)} names: {shown}"
        )
    if kind == "choices":
        for column in ("label", "target", "unknown"):
            n = sum(item.extra.get(column) is None for item in items)
            if n:
                notes.append(f"{n} of {len(items)} choices have no {column}")
    if kind in ("pairs", "statements"):
        sides: dict[tuple[str, str], set[str]] = {}
        for item in items:
            sides.setdefault((item.lang, item.pair or item.id), set()).add(item.role)
        alone = sum(roles == {"contrast"} for roles in sides.values())
        if alone:
            notes.append(f"{alone} contrasts have no original in their language")
    languages = Counter(item.lang for item in items if item.role == "original")
    if len(languages) > 1 and len(set(languages.values())) > 1:
        least, most = min(languages.values()), max(languages.values())
        notes.append(f"languages have {least} to {most} originals: not every item is in each")
    return notes
