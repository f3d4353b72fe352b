"""Slots of templates, and the phrases of a language that fill them: `prompts/lexicon`.

The forms of a phrase come from its entry, or from the rules in its language's file: suffixes by
vowel harmony (Kazakh, Turkish), endings by gender and number (Hindi, Marathi, Bengali, Persian), or
pymorphy3 (Russian). An unknown form is None; it is never guessed.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files.cells import cell_list, cell_text
from genprobe.linguistics import articles
from genprobe.linguistics.articles import GENDERS
from genprobe.resources import packs, registry
from genprobe.text import nfc

FOLDER = "lexicon"
# Cases, and forms that are tagged like cases: OBL, before a postposition; EZ (ezafe), of a Persian
# noun before its modifier; INDEF, of an indefinite Persian noun, with -i.
CASES = ("GEN", "DAT", "ACC", "LOC", "ABL", "INS", "OBL", "EZ", "INDEF")
_TAGS = "|".join(("PL", "ADJ", *GENDERS, *CASES, r"\d"))
# A word that agrees with a filler.
MARKED = re.compile(r"([^\W\d_](?:[^\s~\0]*[^\s~\0])?)~(\d?)")
_PYMORPHY = {"GEN": "gent", "DAT": "datv", "ACC": "accs", "LOC": "loct", "INS": "ablt"}


@dataclass(frozen=True)
class Slot:
    """A slot of a template: the text as written, its categories, and the form that its tags ask."""

    written: str
    categories: frozenset[str]
    plural: bool
    adjective: bool
    gender: str
    case: str
    index: str

    @property
    def key(self) -> tuple[frozenset[str], str]:
        """Return the key of the slot's entity: slots with the same key have the same entity."""
        return self.categories, self.index


@functools.cache
def slot_names() -> tuple[str, ...]:
    """Read the categories of SHADES (prompts/statements/shades.toml), the longest first."""
    path = registry.path("statements", "shades.toml")
    names = packs.read_toml(path)["slots"]["names"]
    return tuple(sorted(names, key=len, reverse=True))


@functools.cache
def slot_pattern() -> re.Pattern[str]:
    """Compile the regular expression of a slot: categories, and tags in any letter case."""
    name = f"(?:{'|'.join(map(re.escape, slot_names()))})"
    return re.compile(
        rf"(?<![A-Z_])({name}(?:\+{name})*)((?:[-:](?i:{_TAGS})(?![A-Za-z]))*)(?![A-Z_])"
    )


_BEHIND = re.compile(r"\0([-:]?)([^\W\d_]+)")  # what follows a slot without a space
_TAGGED = re.compile(rf"(?<!\w)([A-Za-z_]+(?:\+[A-Za-z_]+)*)((?:[-:](?i:{_TAGS})(?!\w))+)")
_CAPITALS = re.compile(r"(?<![\w-])[A-Z_]{5,}(?![\w-])")
_CLOSE = 0.88  # of a word in capitals and a category: GENDR, GENDERS


def misspelt(template: str) -> Iterator[tuple[str, str]]:
    """Yield what looks like a slot or a tag and is none, with what there is: (level, message)."""
    rest = slot_pattern().sub("\0", template)
    for sign, word in _BEHIND.findall(rest):
        if sign == ":" or (sign and word.isascii() and word.isupper()):
            near = difflib.get_close_matches(word.upper(), (*GENDERS, *CASES), 1, 0.5)
            meant = f"; did you mean {sign}{near[0]}?" if near else ""
            yield (
                "error",
                (
                    f"{sign}{word} is no tag of a slot{meant}; there are -PL, -ADJ, -1, -2, "
                    f"{', '.join(f':{tag}' for tag in (*GENDERS, *CASES))}"
                ),
            )
        elif not sign:
            yield "warning", f"{word!r} is written right behind a slot; check that it fits"
    for name, tags in _TAGGED.findall(rest):
        if (name.isupper() and not tags[1:].isdigit()) or name.upper() in slot_names():
            yield "error", unknown_slot(f"{name}{tags}", name)
    for name in _CAPITALS.findall(rest):
        if difflib.get_close_matches(name, slot_names(), 1, _CLOSE):
            yield "error", unknown_slot(name, name)


def unknown_slot(written: str, name: str) -> str:
    """Say that this is no slot, which one may be meant, and which there are."""
    near = difflib.get_close_matches(name.upper(), slot_names(), 1, 0.6)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{written} is no slot{meant}; there are {', '.join(sorted(slot_names()))}"


def unmarked(text: str, where: str) -> str:
    """Return a text unchanged. Raises InputError if one of its words is marked for agreement."""
    found = MARKED.search(text)
    if found:
        raise InputError(f"{where}: {found[0]!r}: words can agree only with slots of SHADES")
    return text


def slots(template: str) -> list[Slot]:
    """Find the slots of a template, in order."""
    found = []
    for match in slot_pattern().finditer(template):
        tags = re.findall(_TAGS, match[2].upper())
        found.append(
            Slot(
                written=match[0],
                categories=frozenset(match[1].split("+")),
                plural="PL" in tags,
                adjective="ADJ" in tags,
                gender=next((tag for tag in tags if tag in GENDERS), ""),
                case=next((tag for tag in tags if tag in CASES), ""),
                index=next((tag for tag in tags if tag.isdigit()), ""),
            )
        )
    return found


# --- the lexicon


@dataclass(frozen=True)
class Filler:
    """A phrase that can fill a slot.

    gender: one of GENDERS, or "" if the language or the phrase has none. proper: whether it is a
    name. forms: case -> the phrase in that case.
    """

    phrase: str
    categories: frozenset[str]
    plural: bool
    adjective: bool
    gender: str
    entity: str
    proper: bool = False
    forms: Mapping[str, str] = field(default_factory=dict, hash=False)

    def agrees(self, slot: Slot) -> bool:
        """Tell whether the phrase fits the slot in categories, number, adjective and gender."""
        return (
            self.categories == slot.categories
            and self.plural == slot.plural
            and self.adjective == slot.adjective
            and (not slot.gender or not self.gender or self.gender == slot.gender)
        )


@dataclass(frozen=True)
class Lexicon:
    """The fillers of a language and its rules.

    gendered: whether the language has genders. cased: whether its nouns change by case.
    """

    lang: str
    name: str
    fillers: tuple[Filler, ...]
    gendered: bool
    upper: dict[str, str]
    grammar: dict[str, Any]
    hash: str
    articles: tuple[articles.Articles, ...] = ()
    cased: bool = False

    def inflect(self, filler: Filler, case: str) -> str | None:
        """Return the phrase in a case; None if neither its entry nor a rule gives the form."""
        if not case:
            return filler.phrase
        if case in filler.forms:
            return filler.forms[case]
        kind = self.grammar.get("kind", "")
        if kind == "suffix":
            return _suffixed(filler, case, self.grammar)
        if kind == "ending":
            return _ended(filler.phrase, _features(filler), self.grammar["cases"].get(case, {}))
        return _russian(filler, case) if kind == "pymorphy" else None

    def agree(self, word: str, filler: Filler, case: str) -> str | None:
        """Return the form of a template's word that agrees with a phrase; None if no rule gives it.

        word: the form for a masculine singular in the nominative. case: of the phrase.
        """
        if self.grammar.get("kind", "") == "pymorphy":
            return _russian_word(word, filler, case)
        features = _features(filler)
        case = "" if case in ("EZ", "INDEF") else case
        if not (filler.plural or case) and (filler.gender == "MASC" or not self.gendered):
            return word
        keys = [f"{'-'.join(features)}-{case}"] if case else []
        table = self.grammar.get("agree", {})
        return _ended(word, features, table, keys)

    def before(self, text: str, slot: Slot, form: str, filler: Filler) -> tuple[str, bool]:
        """Give the article at the end of a text the form that stands before a filled slot.

        text: what precedes the slot. form: the filler in its case. Returns the text, and whether
        the form of the article is certain.
        """
        number = "PL" if slot.plural else "SG"
        gender = filler.gender or slot.gender
        return articles.before(text, form, self.articles, (slot.gender, number), (gender, number))

    def capital(self, sentence: str) -> str:
        """Write the first letter of a sentence as a capital, by the rules of the language."""
        first = sentence[:1]
        return self.upper.get(first, first.upper()) + sentence[1:]


def load(lang: str, source: str | Path = "") -> Lexicon:
    """Read a lexicon.

    lang: its language, a file of prompts/lexicon. source: a table (`phrase, slot, number, gender,
    adjective, entity, proper` and cases such as `DAT`) whose fillers replace those of the file; the
    rules are still the file's. Raises InputError for a file or table that cannot be used.
    """
    code = tables.language(lang)
    path = registry.path(FOLDER, f"{code}.toml")
    if not path.is_file() and not source:
        known = ", ".join(registry.names(FOLDER))
        raise InputError(f"no lexicon in {code!r}, only in {known}; give your own with --lexicon")
    found = read(path) if path.is_file() else Lexicon(code, code, (), False, {}, {}, "")
    if not source:
        return found
    fillers = tuple(
        one
        for number, row in tables.read(source)
        if tables.language(cell_text(row.get("lang")) or code) == code
        for one in _fillers(row, f"{source}, row {number}")
    )
    hashes = "+".join(filter(None, (found.hash, packs.file_hash(Path(source)))))
    return dataclasses.replace(found, name=Path(source).name, fillers=fillers, hash=hashes)


def read(path: Path) -> Lexicon:
    """Read and check one file of prompts/lexicon. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    known = {"source", "review", "gendered", "cased", "upper", "fillers", "grammar"}
    known |= {"articles", "sounds"}
    packs.no_more(row, known, path)
    for key in ("source", "review"):
        if not isinstance(row.get(key), str):
            raise InputError(f"{path}: {key!r} must be a text")
    grammar = row.get("grammar", {})
    kind = grammar.get("kind", "")
    if kind not in ("", "suffix", "ending", "pymorphy"):
        raise InputError(
            f"{path}: grammar.kind must be 'suffix', 'ending' or 'pymorphy', not {kind!r}"
        )
    if kind == "ending":
        _check_endings(grammar, path)
    if kind == "suffix":
        known = set(grammar.get("after", {}))
        for case, table in grammar.get("cases", {}).items():
            odd = [name for keys in table for name in keys.split("+") if name not in known]
            if case not in CASES or odd:
                what = f"{odd[0]!r} is no class of 'after'" if odd else "no case"
                raise InputError(f"{path}: grammar.cases.{case}: {what}")
    parts = enumerate(row.get("fillers", []), 1)
    return Lexicon(
        lang=path.stem,
        name=path.stem,
        fillers=tuple(
            filler for n, one in parts for filler in _fillers(one, f"{path}, filler {n}")
        ),
        gendered=bool(row.get("gendered", False)),
        upper=dict(row.get("upper", {})),
        grammar=grammar,
        hash=packs.file_hash(path),
        articles=articles.read(row, path),
        cased=bool(row.get("cased", False)),
    )


_NUMBERS = ("SG", "PL")
_FEATURES = {
    *_NUMBERS,
    *GENDERS,
    "all",
    *(f"{gender}-{number}" for gender in GENDERS for number in _NUMBERS),
    *(f"{g}-{n}-{case}" for g in GENDERS for n in _NUMBERS for case in CASES),
}


def _check_endings(grammar: Mapping[str, Any], path: Path) -> None:
    """Raise InputError for a table of endings under an unknown case, gender or number."""
    cases = {f"cases.{case}": table for case, table in grammar.get("cases", {}).items()}
    for name, table in (cases | {"agree": grammar.get("agree", {})}).items():
        case = name.removeprefix("cases.")
        if name != "agree" and case not in CASES:
            raise InputError(f"{path}: grammar.{name}: no case; known: {', '.join(CASES)}")
        for key, rules in table.items():
            if key not in _FEATURES:
                raise InputError(f"{path}: grammar.{name}: {key!r} is no gender, number or both")
            for rule in rules:
                try:
                    pattern, _ = rule
                    re.compile(pattern)
                except (ValueError, TypeError, re.error) as error:
                    raise InputError(f"{path}: grammar.{name}.{key}: {rule!r} ({error})") from None


def lacking(words: Lexicon) -> list[str]:
    """List what a person should check in a lexicon: forms and genders that no rule gives."""
    cases = [case for case in CASES if case in words.grammar.get("cases", {})]
    found = [
        f"{one.phrase!r} has no form {case}"
        for one in words.fillers
        for case in cases
        if words.inflect(one, case) is None
    ]
    if words.gendered:
        bare = [one.phrase for one in words.fillers if not (one.gender or one.plural)]
        found += [f"{phrase!r} is a singular without a gender" for phrase in bare]
    return list(dict.fromkeys(found))  # a phrase may be a filler of several slots


def _fillers(row: Mapping[str, Any], where: str) -> list[Filler]:
    """Read a phrase; one that fits several slots is a filler of each."""
    phrase = nfc(cell_text(row.get("phrase")))
    slots_of = [frozenset(slot.split("+")) for slot in cell_list(row.get("slot"))]
    odd = [name for slot in slots_of for name in slot if name not in slot_names()]
    number = cell_text(row.get("number")).lower() or "sg"
    gender = cell_text(row.get("gender")).upper()
    if not phrase or not slots_of or odd:
        what = f"the slot {odd[0]!r} is not one of SHADES" if odd else "no 'phrase' or no 'slot'"
        raise InputError(f"{where}: {what}")
    if number not in ("sg", "pl") or gender not in ("", *GENDERS):
        raise InputError(f"{where}: number must be sg or pl, gender masc, fem, neut or empty")
    forms_of = row.get("forms")
    given = forms_of if isinstance(forms_of, Mapping) else row
    forms = {case: cell_text(given.get(case)) for case in CASES if cell_text(given.get(case))}
    yes = ("1", "true", "yes", "1.0")
    one = Filler(
        phrase=phrase,
        categories=slots_of[0],
        plural=number == "pl",
        adjective=cell_text(row.get("adjective")).lower() in yes,
        gender=gender,
        entity=cell_text(row.get("entity")) or phrase,
        proper=cell_text(row.get("proper")).lower() in yes,
        forms=forms,
    )
    return [dataclasses.replace(one, categories=slot) for slot in slots_of]


def _suffixed(filler: Filler, case: str, grammar: Mapping[str, Any]) -> str | None:
    """Add the suffix of a case to a phrase, by vowel harmony and the last sound.

    grammar: `harmony`, class -> vowels; `neutral`, vowels that take the harmony of the vowels
    before them; `after`, class -> last letters; `soft`, last letters that a vowel may soften, which
    only a dictionary could tell; `cases`, case -> class of last letter -> class of harmony ->
    suffix; `mark`, the sign between a name and its suffix. Returns None if a rule is missing or
    does not decide.
    """
    word = filler.phrase.casefold()
    harmony = next(
        (
            name
            for letter in reversed(word)
            for name, vowels in grammar["harmony"].items()
            if letter in vowels
        ),
        None,
    )
    after = next((name for name, letters in grammar["after"].items() if word[-1] in letters), None)
    table = grammar["cases"].get(case, {})
    # A key such as "vowel+nasal" holds for both classes.
    by_last = next((forms for keys, forms in table.items() if after in keys.split("+")), None)
    if harmony is None or by_last is None:
        return None
    suffix: str | None = by_last.get(harmony, by_last.get("all"))
    if suffix is None:
        return None
    vowels = "".join(grammar["harmony"].values())
    if word[-1] in grammar.get("soft", "") and suffix[0] in vowels and not filler.proper:
        return None
    mark = grammar.get("mark", "") if filler.proper else ""
    return f"{filler.phrase}{mark}{suffix}"


def _features(filler: Filler) -> tuple[str, str]:
    return filler.gender, "PL" if filler.plural else "SG"


def _ended(
    text: str,
    features: tuple[str, str],
    table: Mapping[str, Sequence[Sequence[str]]],
    keys: Sequence[str] = (),
) -> str | None:
    """Change the end of a text by the first rule that fits.

    table: gender and number (`FEM-PL`), one of them, or `all` -> rules, each a pattern and its
    replacement. Only the rules of the most specific key in the table are tried. keys: further keys,
    more specific than these. Returns None if no key is in the table, or none of its rules fits.
    """
    gender, number = features
    for key in (*keys, f"{gender}-{number}", gender, number, "all"):
        if key in table:
            for pattern, other in table[key]:
                changed, count = re.subn(pattern, other, text)
                if count:
                    return changed
            return None
    return None


@functools.cache
def _analyser() -> Any:
    try:
        from pymorphy3 import MorphAnalyzer
    except ImportError:
        raise InputError("Russian cases need pymorphy3; install genprobe[russian]") from None
    return MorphAnalyzer(lang="ru")


def _russian(filler: Filler, case: str) -> str | None:
    """Inflect a Russian noun phrase: its adjectives, and the noun after them (pymorphy3).

    Words after the noun are unchanged. Returns None if a word is not in pymorphy3's dictionary, or
    cannot be a nominative of the number and gender in the entry.
    """
    number = "plur" if filler.plural else "sing"
    gender = {"MASC": "masc", "FEM": "femn", "NEUT": "neut"}.get(filler.gender, "")
    wanted = _PYMORPHY.get(case)
    words = filler.phrase.split()
    chain: list[Any] = []
    for at, word in enumerate(words):
        readings = [
            one
            for one in _analyser().parse(word)
            if one.is_known
            and {"nomn", number} in one.tag
            and (filler.plural or not gender or gender in one.tag)
        ]
        nouns = [one for one in readings if one.tag.POS == "NOUN"]
        adjectives = [one for one in readings if one.tag.POS in ("ADJF", "PRTF")]
        head = nouns and (at == len(words) - 1 or not adjectives)
        if not head and not adjectives:
            return None
        chain.append(nouns[0] if head else adjectives[0])
        if head:
            break
    last = chain[-1]
    if wanted is None or (wanted == "accs" and last.tag.POS != "NOUN"):
        return None  # an adjective alone does not tell whether its noun is animate
    made = []
    for one, word in zip(chain, words, strict=False):
        grammemes = {wanted, number}
        if wanted == "accs" and one is not last and (filler.plural or "masc" in one.tag):
            grammemes.add("anim" if "anim" in last.tag else "inan")
        inflected = one.inflect(grammemes)
        if inflected is None:
            return None
        made.append(inflected.word.capitalize() if word[:1].isupper() else inflected.word)
    return " ".join([*made, *words[len(chain) :]])


def _russian_word(word: str, filler: Filler, case: str) -> str | None:
    """Make a Russian adjective, participle or verb of the past agree with a phrase (pymorphy3).

    Returns None if the word is not in pymorphy3's dictionary, or if the phrase is a singular
    without a gender.
    """
    gender = {"MASC": "masc", "FEM": "femn", "NEUT": "neut"}.get(filler.gender, "")
    if not filler.plural and not gender:
        return None
    for one in _analyser().parse(word):
        long = one.tag.POS in ("ADJF", "PRTF")
        if not one.is_known or not (long or one.tag.POS in ("ADJS", "PRTS", "VERB")):
            continue
        if one.tag.POS == "VERB" and "past" not in one.tag:
            continue
        wanted = {"plur"} if filler.plural else {"sing", gender}
        if case and long:
            if case not in _PYMORPHY or case == "ACC":
                return None  # the accusative depends on whether the noun is animate
            wanted.add(_PYMORPHY[case])
        made = one.inflect(wanted)
        if made is not None:
            return str(made.word.capitalize() if word[:1].isupper() else made.word)
    return None
