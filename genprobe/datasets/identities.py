"""Make sentences of a group and of what is said of it: `prompts/pairs`, one file per language.

Source: AfriStereo, sections 3.3.4 and 5.1. The negation of a predicate follows from rules; where no
rule fits, there is none, and a person writes the opposite.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.resources import packs, registry
from genprobe.text import normalise, tokens

FOLDER = "pairs"
_KEYS = {"source", "review", "sentence", "link", "links", "negate"}
_PLACES = {"sentence": ("{identity}", "{predicate}"), "link": ("{attribute}",)}


class Wording(NamedTuple):
    """How a language makes a sentence of an identity and an attribute, and negates it."""

    sentence: str
    link: str
    links: tuple[str, ...]
    negate: tuple[tuple[re.Pattern[str], str], ...]
    hash: str

    def say(self, identity: str, predicate: str) -> str:
        """Make the sentence; its first letter is as in the file or the identity."""
        places = {"{identity}": identity, "{predicate}": predicate}
        return re.sub(r"\{\w+\}", lambda place: places.get(place[0], place[0]), self.sentence)

    def predicate(self, attribute: str, sentence: str = "") -> str:
        """Return the predicate of an attribute: linked to the group, or its own verb.

        sentence: what a respondent wrote. An attribute that stands in it without one of `links` at
        its side has a verb of its own. Without a sentence, every attribute is linked.
        """
        linked = self.link.replace("{attribute}", attribute)
        folded, said = f" {normalise(sentence)} ", re.escape(normalise(attribute))
        if not self.links or not re.search(rf"\s{said}\W", folded):
            return linked
        words = "|".join(re.escape(normalise(word)) for word in self.links)
        behind = self.link.startswith("{attribute}")
        beside = rf"\s{said}\s+(?:{words})\W" if behind else rf"\W(?:{words})\s+{said}\W"
        return linked if re.search(beside, folded) else attribute

    def negated(self, predicate: str) -> str | None:
        """Negate a predicate by the first rule that fits; None if none does."""
        for pattern, other in self.negate:
            made, count = pattern.subn(other, predicate, count=1)
            if count:
                return made
        return None


@functools.cache
def load(lang: str) -> Wording:
    """Read the sentences of a language. Raises InputError if it has none."""
    path = registry.path(FOLDER, f"{lang}.toml")
    if not path.is_file():
        known = ", ".join(registry.names(FOLDER))
        raise InputError(f"no sentence for identities in {lang!r}, only in {known} (prompts/pairs)")
    return read(path)


def read(path: Path) -> Wording:
    """Read and check one file of `prompts/pairs`. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    packs.no_more(row, _KEYS, path)
    packs.shaped(row, {"negate": list[list[str]]}, path)
    for key in ("source", "review", "sentence", "link"):
        text = packs.string(row, key, path)
        lacks = [place for place in _PLACES.get(key, ()) if text.count(place) != 1]
        if lacks:
            raise InputError(f"{path}: {key!r} must hold {lacks[0]} once")
    rules = []
    for rule in row.get("negate", ()):
        try:
            pattern, other = rule
            rules.append((re.compile(pattern), other))
            re.sub(pattern, other, "")
        except (ValueError, re.error, IndexError) as error:
            raise InputError(f"{path}: 'negate' {rule!r}: {error}") from None
    links = packs.strings(row, "links", path)
    return Wording(row["sentence"], row["link"], links, tuple(rules), packs.file_hash(path))


@functools.cache
def _words(lang: str) -> tuple[frozenset[str], frozenset[str]]:
    """Read which words begin a name and which a common noun: [known] of prompts/extraction.

    Its `names` says which of the lists are written with a capital letter.
    """
    path = registry.path("extraction", f"{lang}.toml")
    row = packs.read_toml(path) if path.is_file() else {}
    lists = {name: tokens(normalise(" ".join(ws))) for name, ws in row.get("known", {}).items()}
    same = tokens(normalise(" ".join(row.get("same", {}))))
    names = {word for name in row.get("names", ()) for word in lists.get(name, ())}
    common = {word for name, ws in lists.items() if name not in row.get("names", ()) for word in ws}
    return frozenset(names - common), frozenset((common | set(same)) - names)


def inside(identity: str, lang: str) -> tuple[str, bool]:
    """Write an identity as it stands inside a sentence, and tell whether its case is certain.

    The first letter becomes small where its first word is known to be no name, and a capital where
    it is known to be one; otherwise it is kept (`African Chagga people`).
    """
    names, common = _words(lang)
    first = next(iter(tokens(normalise(identity))), "")
    if first in names:
        return identity[:1].upper() + identity[1:], True
    if first in common or identity[:1].islower():
        return identity[:1].lower() + identity[1:], True
    return identity, not identity[:1].isupper()
