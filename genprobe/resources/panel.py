"""The panel of a pack: other wordings of its questions, and which of them a statement is asked in.

`prompts/<pack>/wordings/<language>.toml` holds the wordings of a language; prompts/yesno/wordings/
en.toml says how one is written. The published wording, in the pack itself, is one of the panel.
A wording names its two answers in either order: order is a facet of its own, crossed with wording.
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
ORDERS = ("yes-no", "no-yes")
_SLOTS = ("{first}", "{second}")


@dataclass(frozen=True)
class Worded:
    """A wording of the panel in one language: what it asks, and the words that it asks for."""

    name: str
    texts: dict[str, str]  # question -> its text, with {input}, {first}, {second}
    negated: frozenset[str]  # questions that are negated
    answers: dict[str, dict[str, str]]  # question -> yes/no -> answer word
    own: frozenset[str]  # questions whose answer words are not the pack's

    def wording(self, probe: str, order: str, pack: Pack, panel: Panel) -> Wording:
        """The question as it is asked, its answers in this order (of `ORDERS`; empty: none)."""
        said = self.texts[probe]
        if order:
            for slot, answer in zip(_SLOTS, order.split("-"), strict=True):
                said = said.replace(slot, self.answers[probe][answer])
        return Wording(
            text=said,
            polarity=("negated" if probe in self.negated else "plain") if order else "",
            lang=panel.lang,
            source=panel.source,
            review=panel.review,
            slot=pack.wordings[panel.lang][probe].slot,
        )

    def answered(self, probe: str, order: str) -> dict[str, str] | None:
        """Answer -> what the question asks for, where it is not the pack's word: the letter of a
        lettered option, or a word of the wording's own."""
        if letters := lettered(self.texts[probe]):
            shown = dict(zip(_SLOTS, order.split("-"), strict=True))
            return {shown[word]: letter for letter, word in letters.items() if word in shown}
        return self.answers[probe] if probe in self.own else None


@dataclass(frozen=True)
class Panel:
    """The wordings of one language beside the published one."""

    lang: str
    source: str
    review: str
    wordings: dict[str, Worded]
    hash: str


class Asked(NamedTuple):
    """One way to ask a question: its wording, and its answer words where not the pack's."""

    name: str
    order: str
    wording: Wording
    answers: dict[str, str] | None

    @property
    def facets(self) -> dict[str, str]:
        return {"wording": self.name, "order": self.order}


@functools.cache
def load(pack: str, lang: str) -> Panel:
    """The panel of a pack in a language; InputError where there is none, or it is malformed."""
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
    """Read and check the panel of one language. InputError, with file and key, for what is not
    usable: a wording that the pack does not know or that is missing, a text without its slots."""
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
    texts = {probe: string(row, probe, path) for probe in pack.probes}
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
                raise InputError(f"{path}: {name}.{key}: no question {probe!r} of yes or no")
    answers = {}
    for probe in closed:
        part = table(own, probe, path) or pack.answers[path.stem]
        no_more(part, set(ANSWERS), path, f"{name}.answers.{probe}.")
        answers[probe] = {answer: string(part, answer, path) for answer in ANSWERS}
    return Worded(name, texts, frozenset(negated), answers, frozenset(own))


def ways(
    pack: Pack, lang: str, probe: str, drawn: Iterable[tuple[str, str | None]]
) -> Iterator[Asked]:
    """The question in each wording that was drawn, of `drawn`; both orders where it has none.

    The published wording has the one order that it has. InputError for a language without a panel.
    """
    for name, one in drawn:
        if name == PUBLISHED:
            wording = pack.wordings[lang][probe]
            order = order_of(wording.text, pack.answers[lang])
            yield Asked(name, order, wording, None)
            continue
        panel = load(pack.name, lang)
        worded = panel.wordings[name]
        closed = bool(pack.probes[probe].when)
        for order in ((one,) if one else ORDERS) if closed else ("",):
            answers = worded.answered(probe, order)
            yield Asked(name, order, worded.wording(probe, order, pack, panel), answers)


def hashes(pack: Pack, langs: Iterable[str], wordings: str) -> dict[str, str]:
    """Language -> hash of its questions, and where a panel is asked `<language>/wordings` of it."""
    langs = list(langs)
    found = {lang: pack.hashes[lang] for lang in langs}
    if wordings != PUBLISHED:
        found |= {f"{lang}/{FOLDER}": load(pack.name, lang).hash for lang in langs}
    return found


def order_of(said: str, answers: dict[str, str]) -> str:
    """In which order a text names its two answers last: of `ORDERS`, empty where it does not."""
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
    statements: Iterable[Statement], pack: Pack, wordings: str, seed: int
) -> Iterator[tuple[Statement, list[tuple[str, str | None]]]]:
    """Each statement with the wordings that it is asked in, and the order of the answers.

    wordings: `published`; `all`: every wording, in both orders (order None); or a number of
    wordings a statement. Then they are dealt from a deck of the whole panel that is shuffled
    anew whenever it is used up, by seed and language, so that every wording is asked as often as
    every other (by one, more or less) and in either order in turn. At a fixed number of requests
    this says more of the rate over wordings than the same few for all, since the error of the
    wording falls with the number of *different* ones (Brennan 2001, ch. 4; docs/wordings.md). A
    statement and its contrasts get the same, so that they still differ in nothing but the group.
    """
    if wordings == PUBLISHED:
        for statement in statements:
            yield statement, [(PUBLISHED, None)]
        return
    names = [PUBLISHED, *pack.panel]
    count = len(names) if wordings == "all" else number(wordings, pack)
    decks: dict[str, _Deck] = {}
    hands: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for statement in statements:
        load(pack.name, statement.lang)  # there is one
        key = (statement.lang, statement.pair or statement.id)
        if wordings == "all":
            hands[key] = [(name, None) for name in names]
        elif key not in hands:
            if statement.lang not in decks:
                decks[statement.lang] = _Deck(names, f"{seed}/{statement.lang}")
            hands[key] = decks[statement.lang].deal(count)
        yield statement, hands[key]


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
    """Letter -> option, of a question that ends in lines of lettered options; else empty.

    Two options or more, each with a letter of its own. Digits letter nothing: a numbered list may
    be a part of the statement.
    """
    found = [(m[1], m[2]) for m in _OPTION.finditer(prompt) if m[1].isalpha()]
    letters = dict(found)
    return letters if 1 < len(letters) == len(found) else {}


def number(wordings: str, pack: Pack) -> int:
    """How many wordings `--wordings` asks for. InputError for what is neither `published`, `all`
    nor a number that the panel has."""
    most = len(pack.panel) + 1
    if wordings == PUBLISHED:
        return 1
    if wordings == "all":
        return most
    if not (wordings.isascii() and wordings.isdigit() and 1 <= int(wordings) <= most):
        raise InputError(
            f"--wordings {wordings}: published, all, or how many of the {most} a statement is "
            "asked in"
        )
    return int(wordings)
