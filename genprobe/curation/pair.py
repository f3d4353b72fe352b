"""Make pairs of sentences from groups and what is said of them (AfriStereo, section 3.3.4).

A row has `identity` and `attribute`, as `extract` writes them. The stereotype is the language's
sentence of both (`prompts/pairs`) or the user's template. The opposite is, in this order: what a
column says (the study wrote antonyms by hand: caring, uncaring), the user's second template, or a
negation by the rules of the language ("not business-oriented"). An attribute that is negated
already has no opposite by rule ("not not smart"), and so is left out until a person gives one.

Rows of the same group of people and the same attribute become one pair, and so do rows of one
`group` (of `group`): the pair has the attribute that is nearest to the medoid. `said` is the number
of rows. Pairs hold nothing of the respondents.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from genprobe.curation import lexicon, tables
from genprobe.datasets import identities
from genprobe.errors import InputError
from genprobe.files import Row, people
from genprobe.files.cells import Notes, cell_json, cell_text
from genprobe.files.rows import Table
from genprobe.linguistics import negated
from genprobe.records import digest
from genprobe.resources import registry

VERSION = "1"
COLUMNS = ("lang", "identity", "attribute", "opposite", "by", "pro", "anti", "said")
IDENTITY, ATTRIBUTE = ("identity", "identity_term"), ("attribute", "attribute_term")
OPPOSITE = ("opposite", "opposite_attribute", "anti_attribute", "antonym")
LANG, SENTENCE = ("lang", "language"), ("sentence", "text")
# Columns that belong to a row and not to the pair.
_LEFT = {
    *("id", "respondent", "answer", "rule", "confidence", "excluded", "group_size", "medoid"),
    *("similarity", "negated", "contradicts", tables.HISTORY),
}


class Pairing(NamedTuple):
    """How pairs are made.

    opposite: the column of opposite attributes, if not one of OPPOSITE. template, against: the
    sentence and its opposite, with {identity} and {attribute}; by default, those of the language.
    lang: the language of rows without one.
    """

    opposite: str = ""
    template: str = ""
    against: str = ""
    lang: str = ""


class _Said(NamedTuple):
    """A row: its group of people, what is said of it, and the opposite that a person gave.

    nearness: the cosine to the medoid of its group, 0 if it is in none.
    """

    number: int
    row: Row
    lang: str
    identity: str
    attribute: str
    opposite: str
    sentence: str
    nearness: float


def run(
    source: str | Table, how: Pairing, note: Callable[[str], None] = lambda line: None
) -> tuple[list[Row], list[str]]:
    """Make the pairs of a table.

    note: called with a line about each kind of row that makes no pair, and about the opposites.
    Returns the pairs and their columns. Raises InputError for a table without identities and
    attributes, for a language without sentences, and if no row makes a pair.
    """
    for name, text in (("template", how.template), ("against", how.against)):
        lacks = [place for place in ("{identity}", "{attribute}") if text.count(place) != 1]
        if text and lacks:
            raise InputError(f"--{name}: {text!r} must hold {lacks[0]} once")
    rows, notes = tables.read(source), Notes()
    codes = people.respondents(row for _, row in rows)
    by: Counter[str] = Counter()
    made: list[Row] = []
    for members in _members(source, rows, how, notes).values():
        one = max(members, key=lambda said: (bool(said.opposite), said.nearness))
        words = _own(how.template) if how.template else identities.load(one.lang)
        predicate = words.predicate(one.attribute, one.sentence)
        anti, origin = _anti(one, words, predicate, how)
        if anti is None:
            notes.add(f"left out, {origin}; write its opposite in 'opposite'", one.number)
            continue
        capital = _capital(one.lang)
        texts = capital(words.say(one.identity, predicate)), capital(anti)
        by[origin] += 1
        values = (one.lang, one.identity, one.attribute, one.opposite, origin, *texts, len(members))
        step = f"pair/{VERSION}|by:{origin}|sentence:{words.hash}"
        made.append(
            {"id": digest([one.lang, one.identity, one.attribute], 12)}
            | dict(zip(COLUMNS, values, strict=True))
            | {column: cell_json(value) for column, value in one.row.items() if _kept(column)}
            | {tables.HISTORY: people.renamed(tables.history([one.row], step), codes)}
        )
    for line in notes.lines():
        note(line)
    if not made:
        raise InputError(f"{source}: no row makes a pair; write the opposites in 'opposite'")
    note("opposites: " + ", ".join(f"{n:,} by {what}" for what, n in by.most_common()))
    return made, tables.columns(made)


def _members(
    source: str | Table, rows: Sequence[tuple[int, Row]], how: Pairing, notes: Notes
) -> dict[tuple[str, str, str], list[_Said]]:
    """Read the rows, together by language, group of people, and attribute or its `group`."""
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    identity = tables.need(source, there, IDENTITY, "the group of people")
    attribute = tables.need(source, there, ATTRIBUTE, "what is said of it")
    opposite = tables.column(there, OPPOSITE)
    if how.opposite:
        opposite = tables.need(source, there, (how.opposite,), "the opposite attributes")
    lang, sentence = tables.column(there, LANG), tables.column(there, SENTENCE)
    found: dict[tuple[str, str, str], list[_Said]] = {}
    for number, row in rows:
        who, what = cell_text(row.get(identity)), _bare(row.get(attribute))
        if not who or not what:
            reason = cell_text(row.get("excluded"))
            notes.add(f"without group or attribute{f' ({reason})' if reason else ''}", number)
            continue
        name = cell_text(row.get(lang)) if lang else ""
        where = f"{source}, row {number}"
        code = tables.row_language({"lang": name}, how.lang, where)
        wrote = cell_text(row.get(sentence)) if sentence else ""
        against = _bare(row.get(opposite)) if opposite else ""
        nearness = _number(row.get("similarity"))
        said = _Said(number, row, code, _inside(who, wrote, code), what, against, wrote, nearness)
        same = cell_text(row.get("group")) or what.casefold()
        found.setdefault((code, who.casefold(), same), []).append(said)
    return found


def _anti(
    one: _Said, words: identities.Wording, predicate: str, how: Pairing
) -> tuple[str | None, str]:
    """Make the opposite sentence, and say where it is from; or None and why there is none."""
    if one.opposite:
        linked = predicate != one.attribute
        against = words.predicate(one.opposite) if linked else one.opposite
        return words.say(one.identity, against), "column"
    lists = negated.load(one.lang)
    if lists is not None and lists.negates(one.attribute):
        return None, "negated already"
    if how.against:
        return _own(how.against).say(one.identity, one.attribute), "template"
    denied = words.negated(predicate)
    if denied is None:
        return None, "no rule negates it"
    return words.say(one.identity, denied), "negation"


def _own(template: str) -> identities.Wording:
    """Read a template of the user's as a language's sentence."""
    sentence = template.replace("{attribute}", "{predicate}")
    return identities.Wording(sentence, "{attribute}", (), (), f"own-{digest([template], 8)}")


def _number(value: object) -> float:
    with contextlib.suppress(ValueError):
        return float(cell_text(value) or 0)
    return 0.0


def _bare(value: object) -> str:
    return cell_text(value).rstrip(" .।。")


def _inside(identity: str, sentence: str, lang: str) -> str:
    """Write an identity, which `extract` put in small letters, as it stands inside a sentence."""
    found = re.search(rf"(?<!\w){re.escape(identity)}(?!\w)", sentence, re.IGNORECASE)
    # The first letter of a sentence is a capital whatever the word is.
    first = identity[:1] if not found or not found.start() else found[0][:1]
    return identities.inside(first + (found[0] if found else identity)[1:], lang)[0]


def _capital(lang: str) -> Callable[[str], str]:
    if lang in registry.names(lexicon.FOLDER):
        return lexicon.load(lang).capital
    return lambda text: text[:1].upper() + text[1:]


def _kept(column: str) -> bool:
    return column not in {*_LEFT, *COLUMNS} and not people.is_private(column)
