"""Fill templates with groups, in the right grammatical form: statements with contrasts, or choices.

There are four kinds of templates, recognised by their columns:

- Slots (SHADES, section 3.3, Tables 8-10): `GENDER-PL like tea.` A slot is a category, or several
  that are joined (`REGION_PERSON+AGE`), with tags: `-PL`, `-ADJ`, `:MASC` `:FEM` `:NEUT`, a case
  (`:DAT`), and `-1` `-2` if two slots of a category must differ. Fillers are whole phrases from a
  lexicon (`prompts/lexicon`, or the user's own table); determiners are not part of them. The
  columns `original` and `contrast` name fillers, or their entities, of the first slot; without
  `contrast`, all other fillers are contrasts.
- `[PLACEHOLDER]` with lists of fillers, `prototypical` and `counter` (Aqbileq, App. A).
- `context` with `question_negative` or `question_nonnegative` (PBBQ, sections 3.3 and 3.4; BBQ):
  see `contexts`.
- The table of SHADES itself, whose originals are filled as its other statements are: see `shades`.

A filler is used only if it agrees with its slot in number, adjective, gender and case. A word of
the template that must agree with a filler is followed by `~`, and is written in its form for a
masculine singular (`पीता~ है~`). It agrees with the last slot before it, or else with the first
slot after it; `~2` means the second slot. Forms come from `lexicon`; a missing form is an error and
is never guessed. `check` lists the missing forms, and the texts that a person should check.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genprobe.curation import contexts, lexicon, shades, tables
from genprobe.curation.lexicon import MARKED, Filler, Lexicon, Slot, slot_pattern, slots, unmarked
from genprobe.curation.tables import Finding
from genprobe.datasets.shades import is_table as is_shades
from genprobe.errors import InputError
from genprobe.files import Row
from genprobe.files.cells import cell_json, cell_list, cell_text
from genprobe.files.rows import Table
from genprobe.linguistics import articles
from genprobe.records import digest
from genprobe.resources import registry

VERSION = "1"
STATEMENT = ("id", "lang", "text", "role", "pair", "bias_type", "entity")
_TEXT = ("template", "text", "sentence")
_OURS = {"id", "template", "original", "contrast", "vary", "prototypical", "counter", "lang"}
_PLACE = "[PLACEHOLDER]"
_MANY = 8  # more places with the same finding are told in one line


# --- templates


class Filling(NamedTuple):
    """The settings for filling templates.

    lexicon: a table of fillers; by default, those of the language's file. lang: the language of all
    templates, if no column has it. limit: the most pairs, or contexts, of a template; 0 means all.
    They are drawn with `seed` so that the numbers of uses of any two fillers differ by at most one.
    """

    lexicon: str | Path = ""
    lang: str = ""
    limit: int = 0
    seed: int = 0


EVERYTHING = Filling()


def run(
    source: str | Table, how: Filling = EVERYTHING
) -> tuple[list[Row], list[str], list[Finding]]:
    """Fill the templates of a table.

    Returns the rows, their columns, and what a person should check. Raises InputError if a filler
    has no suitable form, or a row is not a template.
    """
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    if contexts.is_table(there):
        made, findings = contexts.run(source, rows, how.lang, how.limit, how.seed)
        return made, tables.columns(made, ("history",)), findings
    made, findings = [], []
    seen: set[str] = set()
    names: Counter[str] = Counter()
    for one in _templates(source, rows, there, how, findings):
        found = _pairs(one, source, findings)
        errors = [one for one in findings if one.level == "error"]
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise InputError(f"{errors[0].where}: {errors[0].message}{more}")
        if not found and not one.statement:
            said = "original and contrast are one group, so no pair can be made; left out"
            findings.append(Finding("warning", f"{source}, row {one.number}", said))
        names[one.name] += 1
        name = one.name if names[one.name] == 1 else f"{one.name}-{names[one.name]}"
        if how.limit and sum(len(pair.contrasts) for pair in found) > how.limit:
            found = _balanced(found, how.limit, random.Random(f"{how.seed} {name}"))
        step = f"fill/{VERSION}|lexicon:{one.words.name}@{one.words.hash or 'none'}"
        step += f"|limit:{how.limit}-s{how.seed}" if how.limit else ""
        history = tables.history([one.row], step, name)
        own = list(_statements(name, one.words.lang, one.row, found, history))
        bare = ("id", "pair", tables.HISTORY)
        print_ = digest([{k: v for k, v in row.items() if k not in bare} for row in own])
        if print_ in seen:  # asked again, it would count as another pair
            where = f"{source}, row {one.number}"
            findings.append(Finding("warning", where, "the same pairs as an earlier row; left out"))
        else:
            made += own
        seen |= {print_} if own else set()
    if not made:
        raise InputError(f"{source}: no template can be filled")
    rest = [name for name in tables.columns(made)[:-1] if name not in STATEMENT]
    return made, [*STATEMENT, *rest, tables.HISTORY], together(findings)


def together(findings: Sequence[Finding]) -> list[Finding]:
    """Say what is found in many places of a file once, with its number and the first places."""
    by: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        by.setdefault((one.level, one.message), []).append(one.where)
    shown: list[Finding] = []
    for (level, message), where in by.items():
        if len(where) > _MANY:
            file = where[0].rpartition(", row ")[0]
            rows = dict.fromkeys(place.rpartition(", row ")[2] for place in where)
            message = f"{message} ({len(where):,}: rows {', '.join([*rows][:5])}, …)"
            shown.append(Finding(level, file, message))
        else:
            shown += [Finding(level, place, message) for place in where]
    return shown


def check(source: str | Table, how: Filling = EVERYTHING) -> list[Finding]:
    """List the faults that `run` would refuse, and what a person should check, without filling."""
    findings: list[Finding] = []
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    if contexts.is_table(there):
        return contexts.run(source, rows, how.lang, how.limit, how.seed)[1]
    for one in _templates(source, rows, there, how, findings):
        if not one.lists:
            _pairs(one, source, findings)
    return together(findings)


class _Template(NamedTuple):
    """A row with a template, its id and the lexicon.

    lists: its own fillers are in lists. statement: the original that was written with the template;
    such a template is left out if it cannot be filled.
    """

    number: int
    name: str
    row: Row
    words: Lexicon
    lists: bool = False
    statement: str = ""


def _templates(
    source: str | Table,
    rows: Sequence[tuple[int, Row]],
    there: Sequence[str],
    how: Filling,
    findings: list[Finding],
) -> Iterator[_Template]:
    """Yield the templates of a table, each with its text in the column `template`."""
    if is_shades(there):
        if how.lexicon:
            raise InputError(f"{source}: SHADES' own table has its fillers; leave out --lexicon")
        for number, row, text, words in shades.templates(str(source), rows, how.lang, findings):
            yield _Template(number, str(row["id"]), row, words, statement=text)
        return
    text = tables.need(source, there, _TEXT, "the template")
    listed = {tables.column(there, (name,)) for name in ("prototypical", "counter")} - {None}
    names = tables.name_rows(rows, [text, "lang"], source)
    for (number, row), name in zip(rows, names, strict=True):
        where = f"{source}, row {number}"
        template = tables.row_text(row, text, where)
        lists = len(listed) == 2 and _PLACE in template
        words = _words(tables.row_language(row, how.lang, where), how.lexicon, bare=lists)
        yield _Template(number, name, row | {"template": template}, words, lists)


def _pairs(one: _Template, source: str | Table, findings: list[Finding]) -> list[_Pair]:
    """Make the pairs of a template, and add what is wrong or unsure with it to `findings`."""
    where = f"{source}, row {one.number}"
    template = tables.row_text(one.row, "template", where)
    if one.lists:
        return list(_listed(template, one.row, one.words, where))
    if not one.statement:
        wrong = [Finding(level, where, said) for level, said in lexicon.misspelt(template)]
        findings += wrong
        if any(fault.level == "error" for fault in wrong):
            return []
        return list(_filled(template, one.row, one.words, where, findings))
    own: list[Finding] = []
    try:
        found = list(_filled(template, one.row, one.words, where, own))
    except InputError:
        found = []
    if not found or own:
        message = "the words around the slot may not agree with every filler"
        message = message if found else "no other group of the table fits the template, left out"
        findings.append(Finding("warning", where, message))
    return [pair._replace(original=one.statement) for pair in found]


def _words(code: str, source: str | Path, bare: bool) -> Lexicon:
    """Read the lexicon of a language. bare: the template has its own fillers and needs none."""
    there = registry.path(lexicon.FOLDER, f"{code}.toml").is_file()
    if bare and not there and not source:
        return Lexicon(code, code, (), False, {}, {}, "")
    return lexicon.load(code, source)


class _Pair(NamedTuple):
    """An original and its contrasts; entities: the entity of each; key: the fillers used."""

    original: str
    contrasts: tuple[str, ...]
    entities: tuple[str, ...]
    key: tuple[str, ...]


Keys = tuple[frozenset[str], str]


class _Form(NamedTuple):
    """A filler, and the phrase in the form that a slot needs."""

    phrase: str
    filler: Filler


_Forms = dict[tuple[str, str], _Form]  # (slot as written, entity) -> its form there


def _filled(
    template: str, row: Row, words: Lexicon, where: str, findings: list[Finding]
) -> Iterator[_Pair]:
    """Make the pairs of a template with slots."""
    found = slots(template)
    if not found:
        names = ", ".join(sorted(lexicon.slot_names()))
        message = f"the template has no slot of SHADES, in capitals: {names}"
        if _PLACE in template:
            message = f"{_PLACE} is filled from the columns 'prototypical' and 'counter'; name them"
        findings.append(Finding("error", where, message))
        return
    main = _main(row, found, where)
    candidates: dict[Keys, list[str]] = {}
    forms: _Forms = {}
    for slot in found:
        entities = _fitting(slot, words, where, findings, forms)
        if not entities:
            message = f"no filler of the lexicon {words.name} agrees with {slot.written}"
            findings.append(Finding("error", where, message))
            return
        before = candidates.get(slot.key)
        candidates[slot.key] = [e for e in before if e in entities] if before else entities
    _uncertain(template, found, forms, words, where, findings)
    if _agreeing(template, found, forms, words, where, findings):
        return
    originals, contrasts = _roles(row, candidates[main.key], words, main, where)
    twin = next(
        (s for s in found if s.categories == main.categories and s.index != main.index), None
    )
    others = [key for key in candidates if key != main.key and (twin is None or key != twin.key)]
    for first, rest in itertools.product(originals, _assignments(others, candidates)):
        against = [other for other in contrasts if other != first]
        if twin is not None:
            # Two slots of a category: the contrast swaps their fillers.
            for other in against:
                if other in candidates[twin.key] and first in candidates[twin.key]:
                    a = {main.key: first, twin.key: other} | rest
                    b = {main.key: other, twin.key: first} | rest
                    yield _pair(template, found, [a, b], main, forms, words)
        elif against:
            chosen = [{main.key: one} | rest for one in (first, *against)]
            yield _pair(template, found, chosen, main, forms, words)


def _fitting(
    slot: Slot, words: Lexicon, where: str, findings: list[Finding], forms: _Forms
) -> list[str]:
    """List the entities that fit a slot, and add their forms in this slot to `forms`."""
    entities: list[str] = []
    for one in words.fillers:
        if not one.agrees(slot) or one.entity in entities:
            continue  # only the first phrase of an entity is used
        phrase = words.inflect(one, slot.case)
        if phrase is None:
            message = f"{one.phrase!r} has no form {slot.case} for {slot.written}; add it"
            findings.append(Finding("error", where, message))
            continue
        entities.append(one.entity)
        forms[slot.written, one.entity] = _Form(phrase, one)
    return entities


def _agreeing(
    template: str,
    found: Sequence[Slot],
    forms: _Forms,
    words: Lexicon,
    where: str,
    findings: list[Finding],
) -> bool:
    """Check the words that must agree with fillers; return True if one of them cannot."""
    faults: list[Finding] = []
    marked = set()
    for word, at in _marks(template):
        if not 0 <= at < len(found):
            message = f"{word}~{at + 1} names a slot that is not there; there are {len(found)}"
            faults.append(Finding("error", where, message))
            continue
        slot = found[at]
        marked.add(slot.written)
        for (written, _), form in forms.items():
            if written == slot.written and words.agree(word, form.filler, slot.case) is None:
                message = f"{word}~ cannot be made to agree with {form.phrase!r} ({written})"
                faults.append(Finding("error", where, message))
    findings += faults
    for slot in found:
        held = [form.filler for (written, _), form in forms.items() if written == slot.written]
        several = len({one.gender for one in held} - {""}) > 1
        # In a language without gender in the plural (Russian), only words around a singular agree.
        tells = words.grammar.get("plural_gender", False) or not slot.plural
        if words.gendered and several and tells and slot.written not in marked:
            message = (
                f"{slot.written} takes fillers of several genders; check that the words around "
                f"it agree."
            )
            findings.append(Finding("warning", where, f"{message} Mark those that do with ~"))
    return bool(faults)


def _uncertain(
    template: str,
    found: Sequence[Slot],
    forms: _Forms,
    words: Lexicon,
    where: str,
    findings: list[Finding],
) -> None:
    """Note an article before a slot whose form no rule gives for some of the fillers."""
    for before, slot in zip(slot_pattern().sub("\0", template).split("\0"), found, strict=False):
        held = [form for (written, _), form in forms.items() if written == slot.written]
        if not all(words.before(before, slot, form.phrase, form.filler)[1] for form in held):
            message = f"{before.split()[-1]!r} before {slot.written} may not fit every filler"
            findings.append(Finding("warning", where, message))


def _marks(template: str) -> list[tuple[str, int]]:
    """Find the marked words of a template, each with the index of the slot that it agrees with."""
    bare, made = slot_pattern().sub("\0", template), []
    for match in MARKED.finditer(bare):
        before = bare.count("\0", 0, match.start())
        made.append((match[1], int(match[2]) - 1 if match[2] else max(before - 1, 0)))
    return made


def _main(row: Row, found: Sequence[Slot], where: str) -> Slot:
    vary = cell_text(row.get("vary"))
    main = next((slot for slot in found if slot.written == vary), None if vary else found[0])
    if main is None:
        raise InputError(f"{where}: 'vary' is {vary!r}, which is no slot of the template")
    return main


def _assignments(
    keys: Sequence[Keys], candidates: Mapping[Keys, Sequence[str]]
) -> Iterator[dict[Keys, str]]:
    for chosen in itertools.product(*(candidates[key] for key in keys)):
        by_category: dict[frozenset[str], list[str]] = {}
        for key, entity in zip(keys, chosen, strict=True):
            by_category.setdefault(key[0], []).append(entity)
        if all(len(set(entities)) == len(entities) for entities in by_category.values()):
            yield dict(zip(keys, chosen, strict=True))


def _pair(
    template: str,
    found: Sequence[Slot],
    chosen: Sequence[Mapping[Keys, str]],
    main: Slot,
    forms: _Forms,
    words: Lexicon,
) -> _Pair:
    texts = []
    marks = _marks(template)
    for entities in chosen:
        held = [forms[slot.written, entities[slot.key]] for slot in found]
        # Slots are first replaced by NUL, so that no part of a filler is taken for a marked word.
        bare = slot_pattern().sub("\0", template)
        for word, at in marks:
            agreed = words.agree(word, held[at].filler, found[at].case)
            bare = MARKED.sub(agreed or "", bare, count=1)
        first, *pieces = bare.split("\0")
        text = ""
        for before, slot, form in zip([first, *pieces], found, held, strict=False):
            text += words.before(before, slot, form.phrase, form.filler)[0] + form.phrase
        texts.append(words.capital(text + pieces[-1]))
    named = tuple(entities[main.key] for entities in chosen)
    key = tuple(chosen[0].values()) + named[1:]
    return _Pair(texts[0], tuple(texts[1:]), named, key)


def _roles(
    row: Row, there: Sequence[str], words: Lexicon, main: Slot, where: str
) -> tuple[list[str], list[str]]:
    """Find the entities of the originals and of the contrasts."""
    by_name = {one.phrase.casefold(): one.entity for one in words.fillers if one.agrees(main)}
    by_name |= {entity.casefold(): entity for entity in there}

    def named(column: str) -> list[str]:
        found = []
        for name in cell_list(row.get(column), ",;|"):
            entity = by_name.get(name.casefold())
            if entity is None or entity not in there:
                raise InputError(
                    f"{where}: {column} {name!r} is no filler that agrees with {main.written}; "
                    f"these do: {', '.join(there[:8])}"
                )
            found.append(entity)
        return list(dict.fromkeys(found))

    originals = named("original")
    if not originals:
        raise InputError(f"{where}: no 'original'; name the group that the stereotype is about")
    return originals, named("contrast") or [one for one in there if one not in originals]


def _listed(template: str, row: Row, words: Lexicon, where: str) -> Iterator[_Pair]:
    """Make the pairs of a template with lists: every prototypical filler with every counter one."""
    lists = [cell_list(row.get(name), ",;|") for name in ("prototypical", "counter")]
    unmarked(template, where)
    if not all(lists):
        raise InputError(f"{where}: 'prototypical' and 'counter' each need a filler")
    for pro in dict.fromkeys(lists[0]):
        against = [anti for anti in dict.fromkeys(lists[1]) if anti != pro]
        texts = [words.capital(_placed(template, one, words)) for one in (pro, *against)]
        if against:
            yield _Pair(texts[0], tuple(texts[1:]), (pro, *against), (pro, *against))


def _placed(template: str, filler: str, words: Lexicon) -> str:
    before, *rest = template.split(_PLACE)
    return articles.before(before, filler, words.articles)[0] + filler + filler.join(rest)


def _balanced(found: Sequence[_Pair], limit: int, drawn: random.Random) -> list[_Pair]:
    """Draw `limit` pairs with one contrast each, so that originals and contrasts occur evenly."""
    left: dict[str, list[tuple[int, int]]] = {}
    for at, pair in enumerate(found):
        left.setdefault(pair.entities[0], []).extend((at, n) for n in range(len(pair.contrasts)))
    for options in left.values():
        drawn.shuffle(options)
    order = drawn.sample(list(left), len(left))
    used: dict[str, int] = {}
    chosen: list[tuple[int, int]] = []
    while len(chosen) < limit and any(left.values()):
        for entity in order:
            if left[entity] and len(chosen) < limit:
                # Take the contrast that was taken least so far.
                best = min(
                    left[entity], key=lambda one: used.get(found[one[0]].entities[one[1] + 1], 0)
                )
                left[entity].remove(best)
                name = found[best[0]].entities[best[1] + 1]
                used[name] = used.get(name, 0) + 1
                chosen.append(best)
    return [
        _Pair(
            found[at].original,
            (found[at].contrasts[n],),
            (found[at].entities[0], found[at].entities[n + 1]),
            found[at].key,
        )
        for at, n in sorted(chosen)
    ]


def _statements(
    name: str, lang: str, row: Row, found: Sequence[_Pair], history: list[str]
) -> Iterator[Row]:
    kept = {
        k: cell_json(v) for k, v in row.items() if k not in {*_OURS, *STATEMENT, *_TEXT, "history"}
    }
    template = next((cell_text(row.get(column)) for column in _TEXT if row.get(column)), "")
    for at, pair in enumerate(found, 1):
        group = f"{name}-{at}" if len(found) > 1 else name
        texts = [pair.original, *pair.contrasts]
        for n, (text, entity) in enumerate(zip(texts, pair.entities, strict=True)):
            yield {
                "id": f"{group}-{'c' + str(n) if n else 'o'}",
                "lang": lang,
                "text": text,
                "role": "contrast" if n else "original",
                "pair": group,
                "bias_type": cell_text(row.get("bias_type")),
                "entity": entity,
                "made_of": template,
                **kept,
                tables.HISTORY: history,
            }
