"""Variation of a question (`Vary`): its wording, a persona, the language of the question.

`prompts/<pack>/wordings/<language>.toml` has the further wordings of a pack in a language;
prompts/yesno/wordings/en.toml explains how to write one. Together with the published wording, in
the pack itself, they are called the panel. A wording can name its two answers in either order.
`prompts/personas/<language>.toml` has system prompts that give the model a persona.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import text
from genprobe.errors import InputError
from genprobe.records import Statement, digest
from genprobe.resources import registry
from genprobe.resources.packs import (
    ANSWERS,
    Pack,
    Wording,
    file_hash,
    first_of,
    no_more,
    read_toml,
    string,
    strings,
    table,
)

FOLDER = "wordings"
PUBLISHED = "published"
NOBODY = "none"  # no persona
OWN, ENGLISH = "own", "en"  # languages in which a question may be asked
ORDERS = ("yes-no", "no-yes")
_SLOTS = ("{first}", "{second}")


@dataclass(frozen=True)
class Vary:
    """The settings by which the questions about a statement vary.

    wordings: `published`, `all`, or the number of wordings for each statement. personas: `none`,
    `all` (which includes no persona), or the number for each statement. instruct: the languages of
    the question: `own` (the language of the statement), `en`.
    """

    wordings: str = PUBLISHED
    personas: str = NOBODY
    instruct: tuple[str, ...] = (OWN,)

    def __post_init__(self) -> None:
        if not self.instruct or set(self.instruct) - {OWN, ENGLISH}:
            raise InputError(f"--instruct {','.join(self.instruct)}: own, en, or own,en")

    def fields(self) -> dict[str, Any]:
        """Return the fields for `runs.spec.Spec`; a field is empty if it does not vary."""
        return {
            "wordings": "" if self.wordings == PUBLISHED else self.wordings,
            "personas": "" if self.personas == NOBODY else self.personas,
            "instruct": () if self.instruct == (OWN,) else self.instruct,
        }


class Way(NamedTuple):
    """One way to ask about a statement.

    order: of the answers; None means both. persona: its name; "" means none. lang: of the question.
    """

    wording: str
    order: str | None
    persona: str
    lang: str


@dataclass(frozen=True)
class Worded:
    """A wording of the panel in one language: its questions and the answer words in them."""

    name: str
    texts: dict[str, str]  # question -> its text, with {input}, {first}, {second}
    negated: frozenset[str]  # questions that are negated
    answers: dict[str, dict[str, str]]  # question -> yes/no -> answer word
    own: frozenset[str]  # questions whose answer words are not the pack's

    def wording(self, probe: str, order: str, pack: Pack, panel: Panel) -> Wording:
        """Return the question with its answers in an order (one of `ORDERS`; "" means none)."""
        said = self.texts[probe]
        if order:
            for slot, answer in zip(_SLOTS, order.split("-"), strict=True):
                said = said.replace(slot, self.answers[probe][answer])
        return Wording(
            text=said,
            polarity=("negated" if probe in self.negated else "plain") if order else "",
            lang=pack.wordings[panel.lang][probe].lang,
            source=panel.source,
            review=panel.review,
            slot=pack.wordings[panel.lang][probe].slot,
        )

    def answered(self, probe: str, order: str) -> dict[str, str] | None:
        """Return the words that the question asks for, if they differ from the pack's, else None.

        They are the letters of lettered options, or the wording's own words: answer -> word.
        """
        if letters := lettered(self.texts[probe]):
            shown = dict(zip(_SLOTS, order.split("-"), strict=True))
            return {shown[word]: letter for letter, word in letters.items() if word in shown}
        return self.answers[probe] if probe in self.own else None


@dataclass(frozen=True)
class Panel:
    """The further wordings of one language, without the published one."""

    lang: str
    source: str
    review: str
    wordings: dict[str, Worded]
    hash: str


class Asked(NamedTuple):
    """A question asked in one way: its text, and its answer words if they differ from the pack's.

    order: of its two answers; "" if it names none. lang: of the question.
    """

    name: str
    order: str
    wording: Wording
    answers: dict[str, str] | None
    persona: str
    lang: str

    def facets(self, vary: Vary) -> dict[str, str]:
        """Return the facets that vary, by the names in `records.FACETS`."""
        return facets(vary, self.name, self.order, self.persona, self.lang)

    def system(self, about: str) -> str:
        """Return the system prompt of the persona, in the language of the statement (`about`)."""
        return persona(first_of(about), self.persona)


def facets(vary: Vary, wording: str, order: str, persona: str, lang: str) -> dict[str, str]:
    """Return those of `records.FACETS` that vary, with their values for a request."""
    found = {}
    if vary.wordings != PUBLISHED:
        found["wording"] = wording
        if order:
            found["order"] = order
    if vary.personas != NOBODY:
        found["persona"] = persona or NOBODY
    if vary.instruct != (OWN,):
        found["instruction"] = lang
    return found


# --- personas


@functools.cache
def personas(lang: str) -> dict[str, str]:
    """Read the personas of a language: name -> system prompt. InputError if there are none."""
    path = registry.path("personas", f"{lang}.toml")
    if not path.is_file():
        raise InputError(
            f"no personas in {lang!r} (prompts/personas); there are some in "
            f"{', '.join(registry.names('personas'))}"
        )
    return read_personas(path)


def read_personas(path: Path) -> dict[str, str]:
    """Read and check a file of personas, which must have the same names as in English."""
    row = read_toml(path)
    no_more(row, {"source", "review", "personas"}, path)
    for key in ("source", "review"):
        string(row, key, path)
    found = table(row, "personas", path)
    texts = {name: string(found, name, path) for name in found}
    known = read_toml(registry.path("personas", "en.toml"))["personas"]
    if texts.keys() != known.keys() or len(set(texts.values())) < len(texts):
        raise InputError(f"{path}: [personas] must have {', '.join(known)}, each with its own text")
    return texts


def persona(lang: str, name: str) -> str:
    """Return the system prompt of a persona; "" for no persona."""
    return personas(lang)[name] if name else ""


@functools.cache
def load(pack: str, lang: str) -> Panel:
    """Read the panel of a pack in a language. InputError if it is missing or malformed."""
    from genprobe.resources.packs import load_pack

    known = sorted(path.stem for path in registry.files(f"{pack}/{FOLDER}"))
    if lang not in known:
        have = f"; there are some in {', '.join(known)}" if known else ""
        raise InputError(
            f"the pack {pack!r} has no further wordings in {lang!r}{have}; "
            "leave --wordings out, or write a panel (docs/wordings.md)"
        )
    return read(registry.path(pack, FOLDER, f"{lang}.toml"), load_pack(pack))


def read(path: Path, pack: Pack) -> Panel:
    """Read and check the panel of one language.

    Raises InputError, with file and key, for unusable content: an unknown or missing wording, or a
    text without its slots.
    """
    row = read_toml(path)
    lang = path.stem
    if lang not in pack.wordings:
        raise InputError(f"{path}: the pack {pack.name!r} has no questions in {lang!r}")
    no_more(row, {"source", "review", *pack.panel}, path)
    for name in pack.panel:
        if name not in row:
            raise InputError(f"{path}: no wording [{name}], which the pack names")
    return Panel(
        lang=lang,
        source=string(row, "source", path),
        review=string(row, "review", path),
        wordings={name: _read(name, table(row, name, path), pack, path) for name in pack.panel},
        hash=file_hash(path),
    )


def _read(name: str, row: dict[str, Any], pack: Pack, path: Path) -> Worded:
    closed = [probe.name for probe in pack.probes.values() if probe.when]
    known = {*pack.probes} | ({"answers", "negated"} if closed else set())
    no_more(row, known, path, f"{name}.")
    # A question that consists of the statement alone has no other wording.
    worded = [p for p, asked in pack.wordings[path.stem].items() if asked.text != "{input}"]
    texts = {probe: string(row, probe, path) for probe in pack.probes if probe in worded}
    for probe, said in texts.items():
        for slot in ("{input}", *(_SLOTS if probe in closed else ())):
            count = said.count(slot)
            if count != 1 and (slot == "{input}" or not count):
                once = "exactly once" if slot == "{input}" else "at least once"
                raise InputError(f"{path}: {name}.{probe} must hold {slot} {once}")
    negated = strings(row, "negated", path)
    own = table(row, "answers", path)
    for key, probes in (("negated", negated), ("answers", own)):
        for probe in probes:
            if probe not in closed:
                raise InputError(f"{path}: {name}.{key}: {probe!r} is no yes/no question")
    answers = {}
    for probe in closed:
        part = table(own, probe, path) or pack.answers[path.stem]
        no_more(part, set(ANSWERS), path, f"{name}.answers.{probe}.")
        answers[probe] = {answer: string(part, answer, path) for answer in ANSWERS}
    return Worded(name, texts, frozenset(negated), answers, frozenset(own))


def ways(pack: Pack, lang: str, probe: str, drawn: Iterable[Way]) -> Iterator[Asked]:
    """Write the question about a statement in language `lang`, in each of the given ways.

    The published wording is asked only in its own order of answers; other wordings are asked in
    both orders if no order was drawn. A question without further wordings is asked once, in the
    published one. Raises InputError for a language without a panel.
    """
    asked = set()
    for way in drawn:
        worded = None
        if way.wording != PUBLISHED:
            panel = load(pack.name, way.lang)
            worded = panel.wordings[way.wording]
        if worded is None or probe not in worded.texts:
            wording = pack.wordings[way.lang][probe]
            # A question that is the statement alone is in the language of the statement.
            spoken = first_of(lang) if wording.text == "{input}" else way.lang
            if (key := (way.persona, spoken)) not in asked:
                asked.add(key)
                order = order_of(wording.text, pack.answers[way.lang])
                yield Asked(PUBLISHED, order, wording, None, way.persona, spoken)
            continue
        closed = bool(pack.probes[probe].when)
        for order in ((way.order,) if way.order else ORDERS) if closed else ("",):
            put, answers = worded.wording(probe, order, pack, panel), worded.answered(probe, order)
            yield Asked(way.wording, order, put, answers, way.persona, way.lang)


def hashes(pack: Pack, langs: Iterable[str], vary: Vary) -> dict[str, str]:
    """Return the hashes of the questions: language of the question -> hash.

    If wordings or personas vary, there are also the keys `<language>/wordings` or
    `<language>/personas`.
    """
    langs = list(langs)
    put = list(dict.fromkeys(put_in(lang, one) for lang in langs for one in vary.instruct))
    found = {lang: pack.hashes[lang] for lang in put}
    if vary.wordings != PUBLISHED:
        found |= {f"{lang}/{FOLDER}": load(pack.name, lang).hash for lang in put}
    return found | persona_hashes(langs, vary)


def persona_hashes(langs: Iterable[str], vary: Vary) -> dict[str, str]:
    """Return the hashes of files of personas, if personas vary: `<language>/personas` -> hash."""
    if vary.personas == NOBODY:
        return {}
    files = {lang: registry.path("personas", f"{lang}.toml") for lang in langs}
    return {f"{lang}/personas": file_hash(file) for lang, file in files.items()}


def put_in(lang: str, instruct: str) -> str:
    """Return the language of a question about a statement of `lang`."""
    return first_of(lang) if instruct == OWN else instruct


def order_of(said: str, answers: dict[str, str]) -> str:
    """Find the order in which a text last names its two answers: one of `ORDERS`, or ""."""
    words = text.tokens(text.normalise(said))
    at = {}
    for answer, word in answers.items():
        parts = text.tokens(text.normalise(word))
        places = [i for i in range(len(words)) if words[i : i + len(parts)] == parts]
        at[answer] = places[-1] if places else -1
    if not at or min(at.values()) < 0:
        return ""
    return "-".join(sorted(at, key=at.__getitem__))


def drawn(
    statements: Iterable[Statement], pack: Pack, vary: Vary, seed: int
) -> Iterator[tuple[Statement, list[Way]]]:
    """Yield each statement with the ways in which a pack asks about it (see `hands`)."""
    if ENGLISH in vary.instruct and ENGLISH not in pack.wordings:
        raise InputError(
            f"{pack.name} has no English questions that fit other languages; leave --instruct out"
        )
    if vary.wordings != PUBLISHED:
        if not pack.panel:
            raise InputError(f"{pack.name} has no further wordings; leave --wordings out")
        statements = list(statements)
        for lang in dict.fromkeys(s.lang for s in statements if s.lang in pack.wordings):
            for one in vary.instruct:
                load(pack.name, put_in(lang, one))  # raises InputError if the panel is missing
    return hands(statements, list(pack.panel), vary, seed)


def hands(
    statements: Iterable[Statement], further: Sequence[str], vary: Vary, seed: int
) -> Iterator[tuple[Statement, list[Way]]]:
    """Yield each statement with the ways to ask about it: wordings × personas × languages.

    further: the names of the further wordings. With `all`, every wording is asked in both orders of
    the answers (order None). If a number is given, this many wordings are drawn for each statement
    without replacement from the whole panel of the language, which is shuffled again (by the seed)
    when it is used up. So all wordings are asked equally often (± 1), with alternating orders of
    answers. Personas are drawn in the same way. For a fixed number of requests, this estimates the
    rate over wordings better than the same few wordings for all statements, because the error falls
    with the number of *different* wordings (Brennan 2001, ch. 4; docs/wordings.md). A statement and
    its contrasts get the same ways, so that they still differ only in the group.
    """
    decks = {
        "": _Dealer(f"{seed}", "--wordings", PUBLISHED, vary.wordings, [PUBLISHED, *further]),
        "personas": _Dealer(f"{seed}/personas", "--personas", NOBODY, vary.personas, _known(vary)),
    }
    for statement in statements:
        key = (statement.lang, statement.pair or statement.id)
        wordings, people = (deck.hand(key) for deck in decks.values())
        put = dict.fromkeys(put_in(statement.lang, one) for one in vary.instruct)
        yield (
            statement,
            [
                Way(name, order, "" if who == NOBODY else who, lang)
                for name, order in wordings
                for who, _ in people
                for lang in put
            ],
        )


def _known(vary: Vary) -> list[str]:
    return [NOBODY] if vary.personas == NOBODY else [NOBODY, *personas(ENGLISH)]


class _Dealer:
    """A dealer with one deck of names per language, who deals the same hand for the same key."""

    def __init__(self, seed: str, option: str, single: str, given: str, names: list[str]) -> None:
        self.seed, self.names = seed, names
        self.everything = given == "all"
        self.single = single if given == single else ""
        self.count = number(given, len(names), option, single)
        self.decks: dict[str, _Deck] = {}
        self.hands: dict[tuple[str, str], list[tuple[str, str | None]]] = {}

    def hand(self, key: tuple[str, str]) -> list[tuple[str, str | None]]:
        if self.single:
            return [(self.single, None)]
        if self.everything:
            return [(name, None) for name in self.names]
        if key not in self.hands:
            lang = key[0]
            if lang not in self.decks:
                self.decks[lang] = _Deck(self.names, f"{self.seed}/{lang}")
            self.hands[key] = self.decks[lang].deal(self.count)
        return self.hands[key]


class _Deck:
    """A deck of names; a name is dealt again only after all others have been dealt."""

    def __init__(self, names: Sequence[str], seed: str) -> None:
        self.names = list(names)
        self.cards: list[str] = []
        self.random = random.Random(int(digest(["wordings", seed], 12), 16))
        self.turns = {name: self.random.randrange(2) for name in names}

    def deal(self, count: int) -> list[tuple[str, str | None]]:
        hand: list[str] = []
        while len(hand) < count:
            if not self.cards:
                self.cards = self.random.sample(self.names, len(self.names))
            # A card that is already in this hand is left for the next hand.
            name = next((card for card in self.cards if card not in hand), None)
            if name is None:
                self.cards += self.random.sample(self.names, len(self.names))
                continue
            self.cards.remove(name)
            hand.append(name)
        out: list[tuple[str, str | None]] = []
        for name in sorted(hand, key=self.names.index):
            out.append((name, ORDERS[self.turns[name]]))
            self.turns[name] = 1 - self.turns[name]
        return out


# A line with one option: "A) yes", "(б) жоқ", "甲. 是".
_OPTION = re.compile(r"^[ \t]*[(（]?(\w)[)）.:：、][ \t]*(\S.{0,79}?)[ \t]*$", re.MULTILINE)


def lettered(prompt: str) -> dict[str, str]:
    """Find the lettered options of a question that ends in lines of them: letter -> option.

    There must be at least two options, with different letters; else the result is empty. Digits do
    not count, because a numbered list may be part of the statement.
    """
    found = [(m[1], m[2]) for m in _OPTION.finditer(prompt) if m[1].isalpha()]
    letters = dict(found)
    return letters if 1 < len(letters) == len(found) else {}


def number(given: str, most: int, option: str, single: str) -> int:
    """Return the number in an option's value: `single` means 1, `all` means `most`, or a number.

    Raises InputError for anything else.
    """
    if given == single:
        return 1
    if given == "all":
        return most
    asked = text.whole_number(given) if given.isascii() else None  # it is stored as it is given
    if asked is None or not 1 <= asked <= most:
        raise InputError(f"{option} {given}: give {single}, all, or a number up to {most}")
    return asked
