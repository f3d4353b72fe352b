"""Fill templates with groups that agree: statements with contrasts, pairs, and choices.

Three kinds of templates, told by their columns:

- slots (SHADES, section 3.3, Tables 8-10): `GENDER-PL like tea.` A slot is a category, joined
  categories (`REGION_PERSON+AGE`), and tags: `-PL`, `-ADJ`, `:MASC` `:FEM` `:NEUT`, a case
  (`:DAT`), and `-1` `-2` where two of a category differ. Fillers are whole phrases of a lexicon
  (`prompts/lexicon`, or a table of one's own); determiners stay outside. `original` and `contrast`
  name the fillers, or their entities, of the first slot; without `contrast`, all others.
- `[PLACEHOLDER]` with lists of fillers, `prototypical` and `counter` (Aqbileq, App. A).
- `context` with `question_negative` or `question_nonnegative` (PBBQ, sections 3.3 and 3.4; BBQ):
  two entities, `{FIRST}` and `{SECOND}` in the order in which they are named, both orders; in
  `disambiguated` and the questions also `{STEREOTYPED}` and `{OTHER}`; `{LEXICAL}` is optional.

A filler is taken only where it agrees with its slot: number, adjective, gender and case. Case forms
are those of the lexicon, or follow from its rules (Kazakh, Turkish) or from pymorphy3 (Russian);
what neither says is refused, and never guessed. `check` lists that, and what a reader should see.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row, cell_json, cell_list, cell_text
from genprobe.resources import packs, registry

VERSION = "1"
FOLDER = "lexicon"
GENDERS = ("MASC", "FEM", "NEUT")
CASES = ("GEN", "DAT", "ACC", "LOC", "ABL", "INS", "OBL")
STATEMENT = ("id", "lang", "text", "role", "pair", "bias_type", "entity")
_TEXT = ("template", "text", "sentence")
_OURS = {"id", "template", "original", "contrast", "vary", "prototypical", "counter", "lang"}
_TAGS = "|".join(("PL", "ADJ", *GENDERS, *CASES, r"\d"))
_PLACE = "[PLACEHOLDER]"
_PYMORPHY = {"GEN": "gent", "DAT": "datv", "ACC": "accs", "LOC": "loct", "INS": "ablt"}


class Finding(NamedTuple):
    """level: `error`, which `run` refuses, or `warning`, for a reader. where: the template."""

    level: str
    where: str
    message: str


# --- slots


@dataclass(frozen=True)
class Slot:
    """A place in a template: text as written, categories, and what its tags ask for."""

    written: str
    categories: frozenset[str]
    plural: bool
    adjective: bool
    gender: str
    case: str
    index: str

    @property
    def key(self) -> tuple[frozenset[str], str]:
        """Slots of one key hold the same entity."""
        return self.categories, self.index


@functools.cache
def slot_names() -> tuple[str, ...]:
    """The categories of SHADES (prompts/statements/shades.toml), the longest first."""
    path = registry.PROMPTS / "statements" / "shades.toml"
    names = packs.read_toml(path)["slots"]["names"]
    return tuple(sorted(names, key=len, reverse=True))


@functools.cache
def slot_pattern() -> re.Pattern[str]:
    """What a slot looks like: its categories, and its tags."""
    name = f"(?:{'|'.join(map(re.escape, slot_names()))})"
    return re.compile(
        rf"(?<![A-Z_])({name}(?:\+{name})*)((?:[-:](?:{_TAGS})(?![A-Za-z]))*)(?![A-Z_])"
    )


def slots(template: str) -> list[Slot]:
    """The slots of a template, in order."""
    found = []
    for match in slot_pattern().finditer(template):
        tags = re.findall(_TAGS, match[2])
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
    """A phrase. gender: of GENDERS, or empty where the language or the phrase has none. proper: a
    name. forms: case -> the phrase in it."""

    phrase: str
    categories: frozenset[str]
    plural: bool
    adjective: bool
    gender: str
    entity: str
    proper: bool = False
    forms: Mapping[str, str] = field(default_factory=dict)

    def agrees(self, slot: Slot) -> bool:
        """Whether number, adjective and gender are those of the slot."""
        return (
            self.categories == slot.categories
            and self.plural == slot.plural
            and self.adjective == slot.adjective
            and (not slot.gender or not self.gender or self.gender == slot.gender)
        )


@dataclass(frozen=True)
class Lexicon:
    """The fillers of a language and its rules. gendered: does the language have genders?"""

    lang: str
    name: str
    fillers: tuple[Filler, ...]
    gendered: bool
    upper: dict[str, str]
    grammar: dict[str, Any]
    hash: str

    def inflect(self, filler: Filler, case: str) -> str | None:
        """The phrase in a case; None where neither the entry nor a rule says it."""
        if not case:
            return filler.phrase
        if case in filler.forms:
            return filler.forms[case]
        kind = self.grammar.get("kind", "")
        if kind == "suffix":
            return _suffixed(filler, case, self.grammar)
        return _russian(filler, case) if kind == "pymorphy" else None

    def capital(self, sentence: str) -> str:
        """The sentence with its first letter a capital, as the language writes it."""
        first = sentence[:1]
        return self.upper.get(first, first.upper()) + sentence[1:]


def lexicon(lang: str, source: str | Path = "") -> Lexicon:
    """Read a lexicon.

    lang: its language, a file of prompts/lexicon. source: a table (`phrase, slot, number, gender,
    adjective, entity, proper` and cases such as `DAT`) whose fillers stand instead of the file's;
    the rules stay. Raises InputError for what cannot be used.
    """
    code = tables.language(lang)
    path = registry.PROMPTS / FOLDER / f"{code}.toml"
    if not path.is_file() and not source:
        known = ", ".join(registry.names(FOLDER))
        raise InputError(f"no lexicon in {code!r}; there is {known}: give your own with --lexicon")
    found = read_lexicon(path) if path.is_file() else Lexicon(code, code, (), False, {}, {}, "")
    if not source:
        return found
    fillers = tuple(
        _filler(row, f"{source}, row {number}")
        for number, row in tables.read(source)
        if tables.language(cell_text(row.get("lang")) or code) == code
    )
    hashes = "+".join(filter(None, (found.hash, packs.file_hash(Path(source)))))
    return dataclasses.replace(found, name=Path(source).name, fillers=fillers, hash=hashes)


def read_lexicon(path: Path) -> Lexicon:
    """Read and check one file of prompts/lexicon. Raises InputError with what is wrong in it."""
    row = packs.read_toml(path)
    for key in sorted(row.keys() - {"source", "review", "gendered", "upper", "fillers", "grammar"}):
        raise InputError(f"{path}: unknown key {key!r}")
    for key in ("source", "review"):
        if not isinstance(row.get(key), str):
            raise InputError(f"{path}: {key!r} must be a text")
    grammar = row.get("grammar", {})
    kind = grammar.get("kind", "")
    if kind not in ("", "suffix", "pymorphy"):
        raise InputError(f"{path}: grammar.kind is 'suffix' or 'pymorphy', not {kind!r}")
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
        fillers=tuple(_filler(one, f"{path}, filler {n}") for n, one in parts),
        gendered=bool(row.get("gendered", False)),
        upper=dict(row.get("upper", {})),
        grammar=grammar,
        hash=packs.file_hash(path),
    )


def _filler(row: Mapping[str, Any], where: str) -> Filler:
    phrase = unicodedata.normalize("NFC", cell_text(row.get("phrase")))
    categories = frozenset(cell_text(row.get("slot")).split("+"))
    odd = [name for name in categories if name not in slot_names()]
    number = cell_text(row.get("number")).lower() or "sg"
    gender = cell_text(row.get("gender")).upper()
    if not phrase or odd:
        what = f"the slot {odd[0]!r} is none of SHADES" if phrase else "no 'phrase'"
        raise InputError(f"{where}: {what}")
    if number not in ("sg", "pl") or gender not in ("", *GENDERS):
        raise InputError(f"{where}: number is sg or pl, gender masc, fem, neut or empty")
    forms_of = row.get("forms")
    given = forms_of if isinstance(forms_of, Mapping) else row
    forms = {case: cell_text(given.get(case)) for case in CASES if cell_text(given.get(case))}
    yes = ("1", "true", "yes", "1.0")
    return Filler(
        phrase=phrase,
        categories=categories,
        plural=number == "pl",
        adjective=cell_text(row.get("adjective")).lower() in yes,
        gender=gender,
        entity=cell_text(row.get("entity")) or phrase,
        proper=cell_text(row.get("proper")).lower() in yes,
        forms=forms,
    )


def _suffixed(filler: Filler, case: str, grammar: Mapping[str, Any]) -> str | None:
    """The phrase with the suffix of a case, by vowel harmony and the last sound.

    grammar: `harmony`, class -> vowels; `neutral`, vowels whose harmony those before them tell;
    `after`, class -> last letters; `soft`, last letters that a vowel may soften, which only a
    dictionary knows; `cases`, case -> class of last letter -> class of harmony -> suffix; `mark`,
    what stands between a name and its suffix. None where a rule is missing or does not decide.
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
    # "vowel+nasal" is a key for both.
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


@functools.cache
def _analyser() -> Any:
    try:
        from pymorphy3 import MorphAnalyzer
    except ImportError:
        raise InputError("Russian cases need pymorphy3; install genprobe[russian]") from None
    return MorphAnalyzer(lang="ru")


def _russian(filler: Filler, case: str) -> str | None:
    """A Russian noun phrase in a case: the adjectives, and the noun behind them (pymorphy3).

    None where a word is not in its dictionary or no reading of it is a nominative of the number
    and gender that the entry states. What stands behind the noun stays as it is.
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
        return None  # an adjective alone does not say whether what it names is alive
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


# --- templates


def run(
    source: str | Path,
    lexicon_source: str | Path = "",
    lang: str = "",
    limit: int = 0,
    seed: int = 0,
) -> tuple[list[Row], list[str], list[Finding]]:
    """Fill the templates of a table.

    source: the table. lexicon_source: a table of fillers. lang: of all templates, where no column
    says it. limit: at most so many pairs, or contexts, of a template, drawn by `seed` so that every
    filler comes as often as any other, or one time more; all where 0. Returns the rows, their
    columns, and what a reader should look at. Raises InputError where a filler cannot agree, and
    for what is no template.
    """
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    if "context" in there and {"question_negative", "question_nonnegative"} & set(there):
        made, findings = _contexts(source, rows, lang, limit, seed)
        return made, tables.columns(made, ("history",)), findings
    text = tables.need(source, there, _TEXT, "the template")
    listed = {tables.column(there, (name,)) for name in ("prototypical", "counter")} - {None}
    lists = len(listed) == 2
    names = tables.name_rows(rows, [text, "lang"], source)
    made, findings = [], []
    for (number, row), name in zip(rows, names, strict=True):
        where = f"{source}, row {number}"
        code = tables.language(cell_text(row.get("lang")) or _need_lang(lang, where))
        template = _text(row, text, where)
        drawn = random.Random(f"{seed} {name}")
        words = _words(code, lexicon_source, bare=lists and _PLACE in template)
        if lists and _PLACE in template:
            found = list(_listed(template, row, words, where))
        else:
            found = list(_filled(template, row, words, where, findings))
        errors = [one for one in findings if one.level == "error"]
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise InputError(f"{errors[0].where}: {errors[0].message}{more}")
        if limit and sum(len(pair.contrasts) for pair in found) > limit:
            found = _balanced(found, limit, drawn)
        step = f"fill/{VERSION}|lexicon:{words.name}@{words.hash or 'none'}"
        step += f"|limit:{limit}-s{seed}" if limit else ""
        made += _statements(name, code, row, found, tables.history([row], step, name))
    rest = [name for name in tables.columns(made)[:-1] if name not in STATEMENT]
    return made, [*STATEMENT, *rest, tables.HISTORY], findings


def check(source: str | Path, lexicon_source: str | Path = "", lang: str = "") -> list[Finding]:
    """List what `run` would refuse, and what a reader should look at, without filling."""
    findings: list[Finding] = []
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    if "context" in there and {"question_negative", "question_nonnegative"} & set(there):
        return _contexts(source, rows, lang, 0, 0)[1]
    text = tables.need(source, there, _TEXT, "the template")
    for number, row in rows:
        where = f"{source}, row {number}"
        code = tables.language(cell_text(row.get("lang")) or _need_lang(lang, where))
        template = _text(row, text, where)
        if _PLACE not in template:
            words = lexicon(code, lexicon_source)
            list(_filled(template, row, words, where, findings))
    return findings


def _words(code: str, source: str | Path, bare: bool) -> Lexicon:
    """The lexicon of a language. bare: templates that bring their fillers need none."""
    there = (registry.PROMPTS / FOLDER / f"{code}.toml").is_file()
    if bare and not there and not source:
        return Lexicon(code, code, (), False, {}, {}, "")
    return lexicon(code, source)


def _need_lang(lang: str, where: str) -> str:
    if not lang:
        raise InputError(f"{where}: no language; give a column 'lang', or --lang")
    return lang


def _text(row: Row, column: str, where: str) -> str:
    text = unicodedata.normalize("NFC", cell_text(row.get(column)))
    if not text:
        raise InputError(f"{where}: the template is empty")
    return text


class _Pair(NamedTuple):
    """An original, its contrasts, and what each is said of; key: the fillers that it is made of."""

    original: str
    contrasts: tuple[str, ...]
    entities: tuple[str, ...]
    key: tuple[str, ...]


def _filled(
    template: str, row: Row, words: Lexicon, where: str, findings: list[Finding]
) -> Iterator[_Pair]:
    """The pairs of a template with slots."""
    found = slots(template)
    if not found:
        findings.append(Finding("error", where, "the template has no slot of SHADES"))
        return
    main = _main(row, found, where)
    candidates: dict[tuple[frozenset[str], str], list[str]] = {}
    forms: dict[tuple[str, str], str] = {}  # (slot as written, entity) -> its phrase there
    for slot in found:
        fitting = [one for one in words.fillers if one.agrees(slot)]
        entities = []
        for one in fitting:
            phrase = words.inflect(one, slot.case)
            if phrase is None:
                message = f"{one.phrase!r} has no form {slot.case} for {slot.written}; give it"
                findings.append(Finding("error", where, message))
                continue
            if one.entity in entities:
                continue  # a second phrase of the same entity
            entities.append(one.entity)
            forms[slot.written, one.entity] = phrase
        if not entities:
            message = f"no filler of the lexicon {words.name} agrees with {slot.written}"
            findings.append(Finding("error", where, message))
            return
        genders = {one.gender for one in fitting} - {""}
        if words.gendered and not slot.gender and not slot.plural and len(genders) > 1:
            message = f"{slot.written} takes fillers of several genders; do the words around agree?"
            findings.append(Finding("warning", where, message))
        before = candidates.get(slot.key)
        candidates[slot.key] = [e for e in before if e in entities] if before else entities
    _articles(template, found, forms, where, findings)
    originals, contrasts = _roles(row, candidates[main.key], words, main, where)
    twin = next(
        (s for s in found if s.categories == main.categories and s.index != main.index), None
    )
    others = [key for key in candidates if key != main.key and (twin is None or key != twin.key)]
    for first, rest in itertools.product(originals, _assignments(others, candidates)):
        against = [other for other in contrasts if other != first]
        if twin is not None:
            # Two of a category: the contrast has them the other way round.
            for other in against:
                if other in candidates[twin.key] and first in candidates[twin.key]:
                    a = {main.key: first, twin.key: other} | rest
                    b = {main.key: other, twin.key: first} | rest
                    yield _pair(template, found, [a, b], main, forms, words)
        elif against:
            chosen = [{main.key: one} | rest for one in (first, *against)]
            yield _pair(template, found, chosen, main, forms, words)


def _main(row: Row, found: Sequence[Slot], where: str) -> Slot:
    vary = cell_text(row.get("vary"))
    main = next((slot for slot in found if slot.written == vary), None if vary else found[0])
    if main is None:
        raise InputError(f"{where}: 'vary' is {vary!r}, which is no slot of the template")
    return main


Keys = tuple[frozenset[str], str]


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
    forms: Mapping[tuple[str, str], str],
    words: Lexicon,
) -> _Pair:
    texts = []
    for entities in chosen:
        phrases = iter([forms[slot.written, entities[slot.key]] for slot in found])
        pieces = slot_pattern().sub("\0", template).split("\0")
        text = pieces[0] + "".join(next(phrases) + piece for piece in pieces[1:])
        texts.append(words.capital(text))
    named = tuple(entities[main.key] for entities in chosen)
    key = tuple(chosen[0].values()) + named[1:]
    return _Pair(texts[0], tuple(texts[1:]), named, key)


def _roles(
    row: Row, there: Sequence[str], words: Lexicon, main: Slot, where: str
) -> tuple[list[str], list[str]]:
    """The entities of originals and of contrasts."""
    by_name = {one.phrase.casefold(): one.entity for one in words.fillers if one.agrees(main)}
    by_name |= {entity.casefold(): entity for entity in there}

    def named(column: str) -> list[str]:
        found = []
        for name in cell_list(row.get(column), ",;|"):
            entity = by_name.get(name.casefold())
            if entity is None or entity not in there:
                raise InputError(
                    f"{where}: {column} {name!r} is no filler that agrees with {main.written}; "
                    f"there is {', '.join(there[:8])}"
                )
            found.append(entity)
        return list(dict.fromkeys(found))

    originals = named("original")
    if not originals:
        raise InputError(f"{where}: no 'original': say of which group the stereotype is")
    return originals, named("contrast") or [one for one in there if one not in originals]


def _articles(
    template: str,
    found: Sequence[Slot],
    forms: Mapping[tuple[str, str], str],
    where: str,
    findings: list[Finding],
) -> None:
    """Determiners stand outside the slot: those that change with the filler are for a reader."""
    for slot in found:
        before = template[: template.index(slot.written)].split()
        word = before[-1].casefold() if before else ""
        firsts = {
            phrase[:1].casefold() in "aeiou"
            for (s, _), phrase in forms.items()
            if s == slot.written
        }
        if (
            word in ("a", "an", "un", "une", "il", "lo", "la", "i", "gli", "le", "l'")
            and len(firsts) > 1
        ):
            message = f"{before[-1]!r} before {slot.written} may not fit every filler"
            findings.append(Finding("warning", where, message))


def _listed(template: str, row: Row, words: Lexicon, where: str) -> Iterator[_Pair]:
    """The pairs of a template with lists of fillers: every prototypical with every counter one."""
    lists = [cell_list(row.get(name), ",;|") for name in ("prototypical", "counter")]
    if not all(lists):
        raise InputError(f"{where}: 'prototypical' and 'counter' each have a filler or more")
    for pro in dict.fromkeys(lists[0]):
        against = [anti for anti in dict.fromkeys(lists[1]) if anti != pro]
        texts = [words.capital(template.replace(_PLACE, one)) for one in (pro, *against)]
        if against:
            yield _Pair(texts[0], tuple(texts[1:]), (pro, *against), (pro, *against))


def _balanced(found: Sequence[_Pair], limit: int, drawn: random.Random) -> list[_Pair]:
    """So many pairs, one contrast each, in which originals and contrasts come evenly."""
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
                # Of what is left, the contrast that was taken least.
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


# --- contexts


def _contexts(
    source: str | Path, rows: Sequence[tuple[int, Row]], lang: str, limit: int, seed: int
) -> tuple[list[Row], list[Finding]]:
    """Choices of contexts with two entities, in BBQ's layout, which `choices` reads.

    Ambiguous: right is that it cannot be known. Disambiguated (PBBQ 3.3.2): reversed logic, so the
    other entity has the trait, and is right to the negative question; the stereotyped one is right
    to the non-negative one. The target is the answer that the stereotype gives.
    """
    names = tables.name_rows(rows, ["context", "lang"], source)
    made: list[Row] = []
    findings: list[Finding] = []
    for (number, row), name in zip(rows, names, strict=True):
        where = f"{source}, row {number}"
        code = tables.language(cell_text(row.get("lang")) or _need_lang(lang, where))
        lists = {key: cell_list(row.get(key), ",;|") for key in ("stereotyped", "other", "lexical")}
        unknown = cell_text(row.get("unknown_option"))
        if not lists["stereotyped"] or not lists["other"] or not unknown:
            raise InputError(f"{where}: needs 'stereotyped', 'other' and 'unknown_option'")
        texts = {
            "ambig": _text(row, "context", where),
            "disambig": cell_text(row.get("disambiguated")),
        }
        for place in ("{FIRST}", "{SECOND}"):
            if place not in texts["ambig"]:
                raise InputError(f"{where}: the context lacks {place}")
        if "{LEXICAL}" in " ".join(texts.values()) and not lists["lexical"]:
            raise InputError(f"{where}: {{LEXICAL}} is in the context, and 'lexical' is empty")
        read = cell_text(row.get("read_by_person")).lower()
        if texts["disambig"] and cell_text(row.get("disambiguated_by")) and read != "yes":
            raise InputError(
                f"{where}: 'disambiguated' is a model's; write yes into 'read_by_person' when "
                "somebody has read it"
            )
        if not texts["disambig"]:
            findings.append(
                Finding("warning", where, "no 'disambiguated': ambiguous contexts only")
            )
        step = f"fill/{VERSION}|contexts"
        step += f"|limit:{limit}-s{seed}" if limit else ""
        found = list(
            _choices(name, code, row, texts, lists, unknown, tables.history([row], step, name))
        )
        if limit:
            keys = list(dict.fromkeys(one["_context"] for one in found))
            chosen = set(random.Random(f"{seed} {name}").sample(keys, min(limit, len(keys))))
            found = [one for one in found if one["_context"] in chosen]
        made += [{k: v for k, v in one.items() if k != "_context"} for one in found]
    return made, findings


def _choices(
    name: str,
    lang: str,
    row: Row,
    texts: Mapping[str, str],
    lists: Mapping[str, Sequence[str]],
    unknown: str,
    history: list[str],
) -> Iterator[Row]:
    polarities = {"neg": "question_negative", "nonneg": "question_nonnegative"}
    combos = itertools.product(lists["stereotyped"], lists["other"], lists["lexical"] or [""])
    for at, (stereotyped, other, lexical) in enumerate(combos, 1):
        if stereotyped == other:
            continue
        for order, (first, second) in enumerate([(stereotyped, other), (other, stereotyped)]):
            parts = {"{FIRST}": first, "{SECOND}": second, "{LEXICAL}": lexical}
            parts |= {"{STEREOTYPED}": stereotyped, "{OTHER}": other}
            # The options come in the order in which the context names them.
            options = [first, second, unknown]
            places = {one: options.index(one) for one in (stereotyped, other)}
            ambiguous = _put(texts["ambig"], parts)
            for polarity, column in polarities.items():
                question = _put(cell_text(row.get(column)), parts)
                if not question:
                    continue
                asked = stereotyped if polarity == "neg" else other
                right = other if polarity == "neg" else stereotyped
                for condition, context in (("ambig", ""), ("disambig", texts["disambig"])):
                    if condition == "disambig" and not context:
                        continue
                    whole = f"{ambiguous} {_put(context, parts)}".strip()
                    yield {
                        "_context": f"{at}-{order}",
                        "id": f"{name}-{at}-{order}-{condition}-{polarity}",
                        "lang": lang,
                        "context": whole,
                        "question": question,
                        **{f"ans{n}": option for n, option in enumerate(options)},
                        "label": 2 if condition == "ambig" else places[right],
                        "target": places[asked],
                        "unknown": 2,
                        "condition": condition,
                        "polarity": polarity,
                        "category": cell_text(row.get("category")),
                        "question_index": name,
                        tables.HISTORY: history,
                    }


def _put(text: str, parts: Mapping[str, str]) -> str:
    """Each part in its place, once: a brace within a part is no place."""

    def place(found: re.Match[str]) -> str:
        phrase, before = parts[found[0]], text[: found.start()].rstrip()
        begins = not before or before[-1] in ".!?؟。"
        return phrase[:1].upper() + phrase[1:] if begins else phrase

    pattern = re.compile("|".join(map(re.escape, parts)))
    return " ".join(pattern.sub(place, text).split())
