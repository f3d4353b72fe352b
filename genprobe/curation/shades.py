"""Read SHADES' own templates, with the fillers that its statements give (sections 3.2 and 3.3).

A statement is taken apart by its template: what stands where the template has a slot is a filler,
and the entity of the first slot is the statement's `stereotyped_entity`. `fill` then fills each
original's template with the fillers that other statements of the language have in such a slot. A
statement that differs from its template outside the slots gives none, and is counted by reason.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genprobe.curation import lexicon
from genprobe.curation.lexicon import Filler, Lexicon, Slot, slot_pattern, slots
from genprobe.curation.tables import Finding
from genprobe.datasets import shades
from genprobe.files import Row
from genprobe.files.cells import Notes
from genprobe.records import Statement
from genprobe.resources import packs, registry
from genprobe.text import nfc

REASONS = ("no slot", "case or punctuation", "a slot that is not marked", "words outside the slots")


def fillers(template: str, statement: str, flags: re.RegexFlag = re.NOFLAG) -> list[str] | None:
    """Return the fillers of a statement, one per slot; None if it does not fit the template."""
    pieces = slot_pattern().split(template)
    literal = pieces[:: slot_pattern().groups + 1]
    first = literal[0][:1].upper() + literal[0][1:]
    pattern = "(.+?)".join(map(re.escape, [first, *literal[1:]]))
    found = re.fullmatch(pattern, statement, flags)
    return list(found.groups()) if found else None


def reason(template: str, statement: str) -> str:
    """Return "" if a statement fits its template, else the reason why not (one of REASONS)."""
    if not slots(template):
        return "no slot"
    if fillers(template, statement) is not None:
        return ""
    if fillers(_bare(template), _bare(statement), re.IGNORECASE) is not None:
        return "case or punctuation"
    if re.search(r"[A-Z]{3,}", slot_pattern().sub("", template)):
        return "a slot that is not marked"
    return "words outside the slots"


def _bare(text: str) -> str:
    kept = "".join(c for c in text if c in "-:+_" or not unicodedata.category(c).startswith("P"))
    return " ".join(kept.split())


class _Taken(NamedTuple):
    """A statement with its template, slots and fillers. before: the word before each slot."""

    statement: Statement
    template: str
    slots: list[Slot]
    parts: list[str]
    before: list[str]


class Template(NamedTuple):
    """An original's template as a row of `fill`, its statement, and the lexicon to fill it with."""

    number: int
    row: Row
    statement: str
    words: Lexicon


def templates(
    source: str, rows: Sequence[tuple[int, Row]], lang: str, findings: list[Finding]
) -> Iterator[Template]:
    """Yield the templates of the originals of a SHADES table.

    rows: of the table, with their numbers. lang: the only language to read; "" means all. Adds to
    `findings` which statements do not fit their templates. Raises InputError for another table.
    """
    wanted = [packs.language_code(lang)] if lang else None
    found, _ = shades.read(rows, source, wanted, Notes())
    by_lang: dict[str, list[Statement]] = defaultdict(list)
    for statement in found:
        if statement.extra.get("templates"):
            by_lang[statement.lang].append(statement)
    for code, statements in by_lang.items():
        base = Lexicon(code, code, (), False, {}, {}, "")
        if code in registry.names(lexicon.FOLDER):
            base = lexicon.load(code)
        taken, reasons = _take_apart(statements)
        if reasons:
            told = ", ".join(f"{why} {reasons[why]}" for why in REASONS if reasons[why])
            message = f"{reasons.total()} of {len(statements)} statements do not fit their template"
            findings.append(Finding("warning", f"{source}, {code}", f"{message}: {told}"))
        pool = _Pool(base, taken, statements)
        for one in taken:
            if one.statement.role == "original":
                number, chosen = int(str(one.statement.extra["row"])), pool.of(one)
                words = dataclasses.replace(base, name=f"{code}+shades", fillers=chosen)
                yield Template(number, _row(one, chosen), one.statement.text, words)
    message = "SHADES' slots tell no case, and not every gender: people must read what is made"
    findings.append(Finding("warning", source, message))


def _take_apart(statements: Sequence[Statement]) -> tuple[list[_Taken], Counter[str]]:
    taken: list[_Taken] = []
    reasons: Counter[str] = Counter()
    for statement in statements:
        template = nfc(str(statement.extra["templates"]).strip())
        if why := reason(template, statement.text):
            reasons[why] += 1
            continue
        parts = fillers(template, statement.text) or []
        pieces = slot_pattern().sub("\0", template).split("\0")
        before = [(piece.split() or [""])[-1].casefold() for piece in pieces[:-1]]
        taken.append(_Taken(statement, template, slots(template), parts, before))
    return taken, reasons


def _row(one: _Taken, chosen: Sequence[Filler]) -> Row:
    """Make the row of an original. chosen: its fillers, that of its first slot first."""
    statement = one.statement
    return {
        "id": f"{statement.id}/{statement.lang}",
        "lang": statement.lang,
        "template": one.template,
        "original": [filler.entity for filler in chosen[:1]],
        "bias_type": statement.bias_type,
        "type": statement.type,
        "valid_in": " ".join(statement.valid_in),
    }


class _Pool:
    """The fillers of the statements of a language that have one slot, by their slots."""

    def __init__(
        self, words: Lexicon, taken: Sequence[_Taken], statements: Sequence[Statement]
    ) -> None:
        self.words = words
        texts = [statement.text for statement in statements]
        # Behind another word, so that the first word of a phrase counts, too.
        self.small = _small([*texts, *(f"- {one.phrase}" for one in words.fillers)])
        self.genders = {one.phrase.casefold(): one.gender for one in words.fillers} | {
            part.casefold(): slot.gender
            for one in taken
            for slot, part in zip(one.slots, one.parts, strict=True)
            if slot.gender
        }
        self.entities: dict[str, str] = {}  # phrase -> entity, as annotated where it stands alone
        self.found: dict[tuple[frozenset[str], str], dict[Filler, None]] = defaultdict(dict)
        for one in taken:
            entity = " ".join(one.statement.entity.split())
            if len(one.slots) == 1 and entity:
                filler = self._filler(one, 0)
                self.entities.setdefault(filler.phrase.casefold(), entity)
                filler = dataclasses.replace(filler, entity=entity)
                self.found[self._place(one)][filler] = None

    def _place(self, one: _Taken) -> tuple[frozenset[str], str]:
        """Return the kind of a first slot: its categories, and the word before it.

        The word counts in languages with cases only, where it mostly decides the case.
        """
        return one.slots[0].categories, one.before[0] if self.words.cased else ""

    def of(self, one: _Taken) -> tuple[Filler, ...]:
        """Return the fillers for a template: its own first, then those of other groups.

        Another group is one whose entity begins otherwise: not `females ∩ children` for
        `females ∩ adults`. A statement about two groups of a category, which its contrast swaps,
        has its own fillers only; if the template does not tell its slots apart, it has none.
        """
        own = [self._filler(one, at) for at in range(len(one.slots))]
        entity = " ".join(one.statement.entity.split())
        if len(own) == 1 and entity:
            own[0] = dataclasses.replace(own[0], entity=entity)
        if len({slot.categories for slot in one.slots}) < len(own):
            by_key = {
                (slot.key, filler.phrase) for slot, filler in zip(one.slots, own, strict=True)
            }
            return tuple(own) if len(by_key) == len({slot.key for slot in one.slots}) else ()
        begins = _first(own[0].entity)
        others = [
            filler for filler in self.found[self._place(one)] if _first(filler.entity) != begins
        ]
        return tuple(dict.fromkeys([*own, *others]))

    def _filler(self, one: _Taken, at: int) -> Filler:
        slot, part = one.slots[at], one.parts[at]
        small = at == 0 and one.template.startswith(slot.written)
        small = small and part.split()[0].casefold() in self.small
        phrase = part[:1].lower() + part[1:] if small else part
        return Filler(
            phrase=phrase,
            categories=slot.categories,
            plural=slot.plural,
            adjective=slot.adjective,
            gender=slot.gender or self.genders.get(part.casefold(), ""),
            entity=self.entities.get(phrase.casefold(), phrase),
        )


def _first(entity: str) -> str:
    return re.split(r"\s*[∩∪;,]\s*", entity)[0].casefold()


def _small(texts: Sequence[str]) -> set[str]:
    """Find the words that are written with a small letter inside a sentence."""
    return {
        word.strip(".,;:!?\"'«»“”()")
        for text in texts
        for word in text.split()[1:]
        if word[:1].islower()
    }
