"""How a question can vary: wordings, personas, the language of the question (`Vary`).

`prompts/<pack>/wordings/<language>.toml` holds the further wordings of a pack in a language (its
panel); prompts/yesno/wordings/en.toml says how one is written. The published wording, in the pack
itself, belongs to the panel, too. A wording names its two answers in either order.
`prompts/personas/<language>.toml` holds system prompts that tell the model who it is.
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
    no_more,
    read_toml,
    string,
    strings,
    table,
)

FOLDER = "wordings"
PUBLISHED = "published"
NOBODY = "none"  # no persona
OWN, ENGLISH = "own", "en"  # languages that a question may be put in
ORDERS = ("yes-no", "no-yes")
_SLOTS = ("{first}", "{second}")


@dataclass(frozen=True)
class Vary:
    """How the questions about a statement vary.

    wordings: `published`, `all`, or how many each statement gets. personas: `none`, `all` (and also
    none), or how many each statement gets. instruct: languages of the question: `own` (that of the
    statement), `en`.
    """

    wordings: str = PUBLISHED
    personas: str = NOBODY
    instruct: tuple[str, ...] = (OWN,)

    def __post_init__(self) -> None:
        if not self.instruct or set(self.instruct) - {OWN, ENGLISH}:
            raise InputError(f"--instruct {','.join(self.instruct)}: own, en, or own,en")

    def fields(self) -> dict[str, Any]:
        """Return the fields of `runs.spec.Spec`, which are empty where nothing varies."""
        return {
            "wordings": "" if self.wordings == PUBLISHED else self.wordings,
            "personas": "" if self.personas == NOBODY else self.personas,
            "instruct": () if self.instruct == (OWN,) else self.instruct,
        }


class Way(NamedTuple):
    """One way to ask about a statement.

    order: of the answers; None: both. persona: empty for none. lang: of the question.
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
        """Return the question with its answers in this order (of `ORDERS`; empty: none)."""
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
        """Map answers to what the question asks for, where it is not the pack's word.

        It is the letter of a lettered option, or a word of the wording's own.
        """
        if letters := lettered(self.texts[probe]):
            shown = dict(zip(_SLOTS, order.split("-"), strict=True))
            return {shown[word]: letter for letter, word in letters.items() if word in shown}
        return self.answers[probe] if probe in self.own else None


@dataclass(frozen=True)
class Panel:
    """The wordings of one language besides the published one."""

    lang: str
    source: str
    review: str
    wordings: dict[str, Worded]
    hash: str


class Asked(NamedTuple):
    """A question in one way: its text, and its answer words if they differ from the pack's.

    order: of its two answers, empty where it has none. lang: of the question.
    """

    name: str
    order: str
    wording: Wording
    answers: dict[str, str] | None
    persona: str
    lang: str

    def facets(self, vary: Vary) -> dict[str, str]:
        """Give what varies, by the names of `records.FACETS`."""
        return facets(vary, self.name, self.order, self.persona, self.lang)

    def system(self, about: str) -> str:
        """Give the system prompt of the persona, in the language of the statement (`about`)."""
        return persona(about, self.persona)


def facets(vary: Vary, wording: str, order: str, persona: str, lang: str) -> dict[str, str]:
    """Return the facets of a request: those of `records.FACETS` that vary."""
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
    """Read the personas of a language: name -> system prompt. InputError where there are none."""
    path = registry.PROMPTS / "personas" / f"{lang}.toml"
    if not path.is_file():
        raise InputError(
            f"no personas in {lang!r} (prompts/personas); there are some in "
            f"{', '.join(registry.names('personas'))}"
        )
    return read_personas(path)


def read_personas(path: Path) -> dict[str, str]:
    """Read and check a file of personas: those of English, by the same names."""
    row = read_toml(path)
    no_more(row, {"source", "review", "personas"}, path)
    for key in ("source", "review"):
        string(row, key, path)
    found = table(row, "personas", path)
    texts = {name: string(found, name, path) for name in found}
    known = read_toml(registry.PROMPTS / "personas" / "en.toml")["personas"]
    if texts.keys() != known.keys() or len(set(texts.values())) < len(texts):
        raise InputError(f"{path}: [personas] must have {', '.join(known)}, each with its own text")
    return texts


def persona(lang: str, name: str) -> str:
    """Return the system prompt of a persona; empty for none."""
    return personas(lang)[name] if name else ""


@functools.cache
def load(pack: str, lang: str) -> Panel:
    """Read the panel of a pack in a language; InputError for none, or a malformed one."""
    from genprobe.resources.packs import load_pack

    folder = registry.PROMPTS / pack / FOLDER
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if lang not in known:
        have = f"; there are some in {', '.join(known)}" if known else ""
        raise InputError(
            f"the pack {pack!r} has no further wordings in {lang!r}{have}; "
            "leave --wordings out, or write a panel (docs/wordings.md)"
        )
    return read(folder / f"{lang}.toml", load_pack(pack))


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
    # A question that consists only of the statement has no other wording.
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

    The published wording has only its own order of answers; others are asked in both orders if no
    order was drawn. A question without other wordings is asked once, in the published one. Raises
    InputError for a language without a panel.
    """
    asked = set()
    for way in drawn:
        worded = None
        if way.wording != PUBLISHED:
            panel = load(pack.name, way.lang)
            worded = panel.wordings[way.wording]
        if worded is None or probe not in worded.texts:
            wording = pack.wordings[way.lang][probe]
            # The statement and nothing else is in the language of the statement.
            spoken = lang if wording.text == "{input}" else way.lang
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
    """Return the hashes of the questions: language -> hash.

    `<language>/wordings` and `/personas` are there where they vary. English is one of the languages
    where questions are put in it.
    """
    langs = list(langs)
    put = list(dict.fromkeys(put_in(lang, one) for lang in langs for one in vary.instruct))
    found = {lang: pack.hashes[lang] for lang in put}
    if vary.wordings != PUBLISHED:
        found |= {f"{lang}/{FOLDER}": load(pack.name, lang).hash for lang in put}
    return found | persona_hashes(langs, vary)


def persona_hashes(langs: Iterable[str], vary: Vary) -> dict[str, str]:
    """Return `<language>/personas` -> hash of the file, where personas vary."""
    if vary.personas == NOBODY:
        return {}
    place = registry.PROMPTS / "personas"
    return {f"{lang}/personas": file_hash(place / f"{lang}.toml") for lang in langs}


def put_in(lang: str, instruct: str) -> str:
    """Return the language of a question about a statement of `lang`."""
    return lang if instruct == OWN else instruct


def order_of(said: str, answers: dict[str, str]) -> str:
    """Find the order in which a text names its two answers last: of `ORDERS`, empty for none."""
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
    """Yield each statement with the ways in which it is asked about (`hands`), of a pack."""
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
                load(pack.name, put_in(lang, one))  # there is one
    return hands(statements, list(pack.panel), vary, seed)


def hands(
    statements: Iterable[Statement], further: Sequence[str], vary: Vary, seed: int
) -> Iterator[tuple[Statement, list[Way]]]:
    """Yield each statement with the ways to ask about it: wordings × personas × languages.

    further: names of the wordings besides the published one. With `all`, every wording is asked in
    both orders of the answers (order None). A number of wordings is drawn without replacement from
    the whole panel, which is reshuffled when it is used up, by seed and language. So all wordings
    are asked equally often (± 1), in alternating order; personas likewise. For a fixed number of
    requests this gives a better estimate of the rate over wordings than the same few for all
    statements, because the error falls with the number of *different* wordings (Brennan 2001, ch.
    4; docs/wordings.md). A statement and its contrasts get the same ways, so that they still differ
    in nothing but the group.
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
    """Deals from one deck a language; the same hand for the same key."""

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
    """Cards dealt one after another, each again only when all have been."""

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
            # A card that the hand has waits for the next one.
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
    """Find letter -> option in a question that ends in lines of lettered options; else empty.

    Two options or more, each with a letter of its own. Digits letter nothing: a numbered list may
    be a part of the statement.
    """
    found = [(m[1], m[2]) for m in _OPTION.finditer(prompt) if m[1].isalpha()]
    letters = dict(found)
    return letters if 1 < len(letters) == len(found) else {}


def number(given: str, most: int, option: str, single: str) -> int:
    """Return the number that an option gives: `single` means 1, `all` means `most`, else a number.

    Raises InputError for anything else.
    """
    if given == single:
        return 1
    if given == "all":
        return most
    if not (given.isascii() and given.isdigit() and 1 <= int(given) <= most):
        raise InputError(f"{option} {given}: give {single}, all, or a number up to {most}")
    return int(given)
