"""Languages and packs, read from `prompts/` and checked.

A language is `prompts/languages/<code>.toml`; a pack is a folder with `pack.toml` and one
`<code>.toml` per language, or one file of the user's own (`read_own`). All are data, edited by
people who read the language. This module refuses unusable files; `genprobe lint` (lint.py) also
warns about oddities.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.files.rows import Rows, Table
from genprobe.limits import parsed_toml
from genprobe.records import fits
from genprobe.resources import registry
from genprobe.text.display import clean

ANSWERS = ("yes", "no")
# The folder of languages in which options can be chosen, but no sentence is read.
CHOSEN = "languages/chosen"
# What a yes/no probe asks: a stance on a statement, whether it is a stereotype, or anything else.
READS = ("stance", "stereotype", "question")
SLOT = "[PLACEHOLDER]"  # the open slot of a template


def read_text(path: Path) -> str:
    """Read the text of a UTF-8 file, without a BOM. Raises InputError if it cannot be read."""
    try:
        return door.content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file. Raises InputError, with file and line, if it is malformed."""
    try:
        return parsed_toml(read_text(path))
    except ValueError as error:  # also a number of too many digits
        raise InputError(f"{path}: not TOML: {error}") from None


@dataclass(frozen=True)
class Language:
    """The word lists of a language, by which judges and other tools read texts in it.

    `words[group]` has plain words and phrases; `WORD_GROUPS` lists the groups.
    """

    code: str
    name: str
    native: str
    script: str
    direction: str
    review: str
    aliases: tuple[str, ...]
    also: tuple[str, ...]
    words: dict[str, tuple[str, ...]]
    fold: dict[str, str]
    clause: dict[str, tuple[str, ...]]  # stems, by `CLAUSE_GROUPS` and `QUESTION_GROUPS`
    negation: str  # the position of negations: `before` the negated words, or on `both` sides


# The lists of [clause]; prompts/languages/README.md explains them.
CLAUSE_GROUPS = (
    *("for", "against", "for_if_me", "against_if_me", "me", "others", "not", "none", "without"),
    *("certain", "and", "fully", "partly", "stereotype", "counter", "fine", "faulty", "statement"),
    *("such", "that", "although", "therefore", "verdict", "extent", "polite", "service"),
    *("here", "help", "say", "tested", "because", "own", "same", "opposite", "only"),
    *("tell", "single", "plain", "group", "judge", "open", "verbs", "reported", "sides", "side"),
    *("neutral", "able", "possible", "retract", "oh", "clitics"),
)
# The lists of [question].
QUESTION_GROUPS = (
    *("pro", "contra", "ought", "may", "think", "topic", "good", "bad", "real", "unreal", "until"),
    "small",
)

# Table of the TOML file -> its lists; prompts/languages/README.md explains them.
WORD_GROUPS: dict[str, tuple[str, ...]] = {
    "answer": (
        "yes",
        "no",
        "yes_alone",
        "no_alone",
        "true",
        "false",
        "label",
        "or",
        "unlike",
        "prefixes",
    ),
    "sentence": (
        "agree",
        "disagree",
        "stereotype",
        "not_stereotype",
        "both",
        "negation",
        "condition",
    ),
    "unclear": ("refusal", "hedge"),
    "explanation": ("wrong", "right"),
    "text": ("frequent", "letters", "endings", "abbreviations", "closing", "said"),
}


def table(row: dict[str, Any], key: str, path: Path | str) -> dict[str, Any]:
    value = row.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{path}: [{key}] must be a table")
    return value


def string(row: dict[str, Any], key: str, path: Path | str, default: str | None = None) -> str:
    value = row.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise InputError(f"{path}: {key!r} must be a text and is {value!r}")
    return value


def strings(row: dict[str, Any], key: str, path: Path | str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
        raise InputError(f"{path}: {key!r} must be a list of non-empty texts")
    return tuple(value)


def shaped(row: dict[str, Any], kinds: Mapping[str, Any], path: Path) -> None:
    """Raise InputError unless each entry, where it is there, is of its type (`records.fits`)."""
    for key, kind in kinds.items():
        if key in row and not fits(row[key], kind):
            what = kind.__name__ if isinstance(kind, type) else kind
            raise InputError(f"{path}: {key!r} must be of the type {what}")


def no_more(row: dict[str, Any], known: set[str], path: Path | str, where: str = "") -> None:
    for key in sorted(row.keys() - known):
        raise InputError(f"{path}: unknown key {where}{key!r}; known: {', '.join(sorted(known))}")


@functools.cache
def load_language(code: str) -> Language:
    """Load a language by its code, also one of `CHOSEN`, which has no words.

    Raises InputError if it is unknown or malformed.
    """
    if code not in registry.names(CHOSEN):
        registry.check("languages", code)
    return read_language(_language_file(code))


@functools.cache
def language_hash(code: str) -> str:
    """Hash a language's file (`file_hash`), without reading what it says."""
    return file_hash(_language_file(code))


def _language_file(code: str) -> Path:
    place = CHOSEN if tier(code) == "chosen" else "languages"  # words that somebody added win
    return registry.path(place, f"{code}.toml")


def tier(code: str) -> str:
    """Return what genprobe does in a language: `read` replies, see `chosen` options, or `scored`.

    In a `chosen` language a reply is read by the mark and the text of an option alone, and nobody
    has measured how well; in a `scored` one only log-probabilities are measured.
    """
    if first_of(code) in registry.names("languages"):
        return "read"
    return "chosen" if first_of(code) in registry.names(CHOSEN) else "scored"


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if genprobe does not know it."""
    try:
        return load_language(code).name
    except InputError:
        return clean(code)


def native(code: str) -> str:
    """Name a language in itself, or by its code if genprobe does not know it."""
    try:
        return load_language(code).native
    except InputError:
        return clean(code)


def read_language(path: Path) -> Language:
    """Read and check one language file. Raises InputError that says what is wrong."""
    row = read_toml(path)
    scalars = {"name", "native", "script", "direction", "review", "aliases", "also", "fold"}
    scalars |= {"clause", "question"}
    no_more(row, scalars | WORD_GROUPS.keys(), path)
    words = {}
    for name, groups in WORD_GROUPS.items():
        part = table(row, name, path)
        no_more(part, set(groups), path, f"{name}.")
        for group in groups:
            words[group] = strings(part, group, path)
    for group in ANSWERS if path.parent.name != Path(CHOSEN).name else ():
        if not words[group] and not words[f"{group}_alone"]:
            raise InputError(f"{path}: no word for {group!r} in [answer]")
    part = table(row, "clause", path)
    no_more(part, {"negation", *CLAUSE_GROUPS}, path, "clause.")
    clause = {group: strings(part, group, path) for group in CLAUSE_GROUPS}
    asked = table(row, "question", path)
    no_more(asked, set(QUESTION_GROUPS), path, "question.")
    clause |= {group: strings(asked, group, path) for group in QUESTION_GROUPS}
    negation = string(part, "negation", path, "before")
    if negation not in ("before", "both"):
        raise InputError(f"{path}: clause.negation must be 'before' or 'both'")
    fold = {k: string({k: v}, k, path, "") for k, v in table(row, "fold", path).items()}
    direction = string(row, "direction", path, "ltr")
    if direction not in ("ltr", "rtl"):
        raise InputError(f"{path}: direction must be 'ltr' or 'rtl'")
    return Language(
        code=path.stem,
        name=string(row, "name", path),
        native=string(row, "native", path),
        script=string(row, "script", path),
        direction=direction,
        review=string(row, "review", path),
        aliases=strings(row, "aliases", path),
        also=strings(row, "also", path),
        words=words,
        fold=fold,
        clause=clause,
        negation=negation,
    )


def load_neighbours() -> dict[str, dict[str, tuple[str, ...]]]:
    """Read the [text] groups of languages without a file of their own that replies may be in."""
    path = registry.path("neighbours.toml")
    row, groups = read_toml(path), WORD_GROUPS["text"]
    for code in row:
        no_more(table(row, code, path), set(groups), path, f"{code}.")
    return {c: {group: strings(row[c], group, path) for group in groups} for c in row}


def load_slots() -> tuple[str, ...]:
    """Read the words for an open slot in templates, in all languages: `prompts/slots.toml`."""
    path = registry.path("slots.toml")
    row = read_toml(path)
    no_more(row, {"words"}, path)
    return strings(row, "words", path)


@functools.cache
def load_mixed() -> dict[str, str]:
    """Read the names of language mixtures, with their BCP 47 codes: `prompts/mixed.toml`."""
    path = registry.path("mixed.toml")
    row = read_toml(path)
    names = {code: strings(table(row, code, path), "names", path) for code in row}
    return {_key(name): code for code, known in names.items() for name in (code, *known)}


def first_of(code: str) -> str:
    """Return the first language of a mixture, such as kk of `kk-x-ru`; another code as it is."""
    return code.partition("-x-")[0]


@functools.cache
def _codes() -> dict[str, str]:
    table = {}
    for code in registry.names("languages"):
        one = load_language(code)
        for alias in (code, one.name, one.native, *one.aliases):
            table[_key(alias)] = code
    return table


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


@functools.lru_cache(1000)
def _meant(key: str) -> str:
    """Guess the code meant by `en-US`, or by a misspelled name; "" if there is no guess."""
    if region := re.fullmatch(r"([a-z]{2,3})(-[a-z]{4})?-[a-z]{2}", key):
        return _codes().get(region[1], "")
    names = [known for known in _codes() if len(known) > 3 and "-" not in known]
    near = difflib.get_close_matches(key, names, 1, 0.7) if len(key) > 3 else []
    return _codes()[near[0]] if near else ""


def is_code(name: str, text: str) -> bool:
    """Tell whether a name of a mixture is a code of its own where this text is in the language.

    Aqbileq's word for code-switched Kazakh, `cs`, is the code of Czech, which has Latin letters.
    """
    key = _key(name)
    short = len(key) == 2 and key in load_mixed()
    return short and not any(char.isalpha() and char > _LATIN for char in text) and bool(text)


_LATIN = "\u024f"  # the last letter of Latin Extended-B


def language_code(name: str, mixed: bool = False, text: str = "") -> str:
    """Find the code of a language from any of its names (`pt_br`, `fre`, `Hindi`, `हिन्दी`).

    mixed: also accept mixtures of two languages (`kk-x-ru`), about which a question is asked in the
    first of them (`first_of`). text: in that language, if one is known (`is_code`). Raises
    InputError if no language file has the name.
    """
    key = _key(name)
    if mixed and key in load_mixed() and not is_code(name, text):
        return load_mixed()[key]
    if key not in _codes():
        if code := _meant(key):
            meant = f"did you mean {code!r}, {load_language(code).name}?"
            raise InputError(f"unknown language {name[:80]!r}; {meant}")
        raise registry.unknown("language", name, registry.names("languages"))
    return _codes()[key]


_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def any_code(name: str, text: str = "") -> str:
    """Find the code of a language as `language_code` does; accept what looks like a code.

    Scoring a text, or reading which option is chosen, needs no words of its language.
    """
    return _any_code(name, not is_code(name, text))


@functools.lru_cache(1000)
def _any_code(name: str, mixed: bool) -> str:
    try:
        return language_code(name, mixed)
    except InputError:
        for code in registry.names(CHOSEN):
            one = load_language(code)
            if _key(name) in map(_key, (code, one.name, one.native, *one.aliases)):
                return code
        code = name.strip().replace("_", "-")
        if not _CODE.fullmatch(code):
            raise
        return code


@dataclass(frozen=True)
class Wording:
    """One question in one language.

    Its text has the placeholder `{input}` for the statement, or `{clause}` for the statement inside
    a sentence: "A friend told me that {clause}." (see `clause`).
    """

    text: str
    polarity: str  # "plain" or "negated" ("do you not agree?"); "" if it is no yes/no question
    lang: str  # the language of the question, which may differ from that of the reply
    source: str
    review: str
    slot: str  # the text shown in place of SLOT
    note: str = ""  # known faults, since published wordings are not changed

    def ask(self, statement: str) -> str:
        statement = statement.replace(SLOT, self.slot)
        if "{clause}" in self.text:
            return self.text.replace("{clause}", clause(statement))
        return self.text.replace("{input}", statement)


def clause(statement: str) -> str:
    """Write a statement for use inside a sentence: without full stop, with a small first letter.

    The first letter stays a capital if the second is a capital, too (NATO). A name at the beginning
    loses its capital, so in a language with many such names a wording should quote `{input}`.
    """
    bare = statement.strip().rstrip(".!。।").rstrip()
    return bare if bare[1:2].isupper() else bare[:1].lower() + bare[1:]


@dataclass(frozen=True)
class Probe:
    """A question of a pack: what it measures, and which answer means that.

    measures: `recognised` or `endorsed`; when: the answer (`yes`/`no`) that means this; reads: how
    replies are read, one of `READS`. All are "" if it is no yes/no question.
    """

    name: str
    measures: str
    when: str
    reads: str = ""


@dataclass(frozen=True)
class Pack:
    """A pack: probes, and their wordings by language."""

    name: str
    version: str
    title: str
    citation: str
    system: str
    probes: dict[str, Probe]
    wordings: dict[str, dict[str, Wording]]  # language -> probe -> wording
    # language -> yes/no -> the word that the wordings ask for (answers), and the forms in which it
    # may be written (forms). Both are empty if no probe asks for yes or no.
    answers: dict[str, dict[str, str]]
    forms: dict[str, dict[str, tuple[str, ...]]]
    sources: dict[str, str]
    reviews: dict[str, str]
    # language -> the version of its wordings, if it has one, and the hash of its file and pack.toml
    hashes: dict[str, str]
    panel: dict[str, str]  # further wordings (panel.py) -> their descriptions
    own: bytes = b""  # the content of the file of a pack of the user's own

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    def options(
        self, lang: str, decode: str, own: Mapping[str, str] | None = None
    ) -> dict[str, list[str]]:
        """Return the answer words of a language, as models may write them: answer -> words.

        Each word is written in small letters, with a first capital, and in capitals; for `logprob`
        also after a space, with which many tokenizers begin a word.

        decode: of the request; the result is empty for `free`. own: the answer words of a wording
        that asks for other words.
        """
        if decode == "free":
            return {}
        found: dict[str, list[str]] = {}
        known = {a: (word,) for a, word in own.items()} if own else self.forms[lang]
        for answer, words in known.items():
            cases = [c for w in words for c in (w, w[:1].upper() + w[1:], w.upper())]
            spaced = [f" {case}" for case in cases] if decode == "logprob" else []
            found[answer] = list(dict.fromkeys([*cases, *spaced]))
        return found


def file_hash(*paths: Table) -> str:
    """Return the first 12 hex digits of the SHA-256 of the files' bytes, or of rows in memory."""
    state = hashlib.sha256()
    for path in paths:
        if isinstance(path, Rows):
            state.update(path.digest().encode())
            continue
        with door.reading(path) as file:
            while part := file.read(1 << 20):
                state.update(part)
    return state.hexdigest()[:12]


def _wordings_hash(head: Path, path: Path) -> str:
    """Hash the questions: the files as in `file_hash`, without notes, `reads` and wordings' names.

    The panel of wordings has its own hash, since a change in it does not change the published
    questions.
    """
    pack = re.sub(rb"\n(#.*\n)*\[wordings\]\n(.+\n)*", b"", door.content(head))
    pack = re.sub(rb"(?m)^reads = .*\n", b"", pack)
    asked = re.sub(rb"(?m)^note = .*\n", b"", door.content(path))
    return hashlib.sha256(pack + asked).hexdigest()[:12]


@functools.cache
def load_pack(name: str = "yesno") -> Pack:
    """Load a pack, a folder of `prompts/`. Raises InputError if it is unknown or malformed."""
    registry.check("packs", name)
    return read_pack(registry.path(name), registry.files(name))


def read_pack(folder: Path, files: Iterable[Path] | None = None) -> Pack:
    """Read and check the folder of a pack. Raises InputError that says what is wrong.

    files: its wordings, one a language, which may stand elsewhere; by default those of the folder.
    """
    head = folder / "pack.toml"
    row = read_toml(head)
    no_more(row, {"title", "version", "citation", "system", "slot", "probes", "wordings"}, head)
    probes = {name: _probe(name, part, head) for name, part in table(row, "probes", head).items()}
    if not probes:
        raise InputError(f"{head}: no [probes.<name>]")
    panel = table(row, "wordings", head)
    paths = sorted(files or folder.glob("*.toml"), key=lambda path: path.stem)
    rows = {path.stem: (read_toml(path), path) for path in paths if path.name != head.name}
    hashes = {}
    for code, (row_l, path) in rows.items():
        version = string(row_l, "version", path, "")
        hashes[code] = "-".join(filter(None, (version, _wordings_hash(head, path))))
    return _pack(
        *(folder.name, row, probes, rows, head),
        citation=string(row, "citation", head),
        hashes=hashes,
        panel={k: string(panel, k, head) for k in panel},
    )


# What a yes/no probe measures -> how it is read.
READ_AS = {"endorsed": "stance", "recognised": "stereotype", "affirmed": "question"}


def read_own(path: Path, name: str = "") -> Pack:
    """Read and check a pack of the user's own: one file, with probes and their wordings.

    A probe has `reads` and `when` (yes, if left out). A language is a table with the wording of
    each probe; its answer words are those of the pack `yesno`, unless [<code>.answers] names
    others. docs/wordings.md shows one. name: the name of the pack; that of the file if empty.
    Raises InputError that says what is wrong.
    """
    row, name = read_toml(path), name or path.stem
    head = {"title", "version", "citation", "system", "slot", "probes"}
    taken = [*registry.names("packs"), "choosing", "text"]
    if name in taken or not re.fullmatch(r"[\w.-]+", name):
        why = "is the name of a pack of genprobe" if name in taken else "cannot name a pack"
        raise InputError(f"{path}: {name!r} {why}; rename the file")
    probes = {}
    for probe, part in table(row, "probes", path).items():
        given = table({probe: part}, probe, path)
        no_more(given, {"reads", "when"}, path, f"probes.{probe}.")
        if not re.fullmatch(r"[\w-]+", probe):
            raise InputError(f"{path}: a probe cannot be called {probe[:40]!r}; use letters and -")
        measures = next((m for m, reads in READ_AS.items() if reads == given.get("reads")), "")
        probes[probe] = _probe(probe, {"when": "yes", "measures": measures} | given, path)
    if not probes:
        raise InputError(f"{path}: no [probes.<name>]; docs/wordings.md shows a pack")
    rows: dict[str, tuple[dict[str, Any], Path | str]] = {}
    for key in row.keys() - head:
        if (code := language_code(key)) in rows:
            raise InputError(f"{path}: [{key}] is {code}, which is given twice")
        rows[code] = _inherited(table(row, key, path), code, probes, path), f"{path}: [{key}]"
    if not rows:
        raise InputError(f"{path}: no wordings, such as [en.{next(iter(probes))}]")
    return _pack(
        *(name, row, probes, dict(sorted(rows.items())), path),
        citation=string(row, "citation", path, "the user's own"),
        hashes=dict.fromkeys(rows, file_hash(path)),
        own=door.content(path),
    )


def _inherited(
    row: dict[str, Any], code: str, probes: Mapping[str, Probe], path: Path
) -> dict[str, Any]:
    """Fill what the table of a language leaves out, its answer words from the pack `yesno`."""
    shipped = registry.path("yesno", f"{code}.toml")
    words = read_toml(shipped) if "answers" not in row and shipped.is_file() else {}
    found = {key: words[key] for key in ("answers", "forms") if key in words}
    found |= {"source": path.name, "review": "the user's own"} | row
    polarity = {"polarity": "plain"}
    return found | {p: polarity | table(row, p, path) for p in probes if p in row}


def _pack(
    name: str,
    row: dict[str, Any],
    probes: dict[str, Probe],
    rows: Mapping[str, tuple[dict[str, Any], Path | str]],
    head: Path,
    **more: Any,
) -> Pack:
    """Make a pack. rows: language -> its table and where that stands. more: further fields."""
    closed = any(probe.when for probe in probes.values())
    slot = string(row, "slot", head, SLOT)
    wordings: dict[str, dict[str, Wording]] = {}
    answers: dict[str, dict[str, str]] = {}
    forms: dict[str, dict[str, tuple[str, ...]]] = {}
    sources, reviews = {}, {}
    for code, (row_l, path) in rows.items():
        known = {"version", "source", "review", *probes} | (
            {"answers", "forms"} if closed else set()
        )
        no_more(row_l, known, path)
        answers[code], forms[code] = {}, {}
        if closed:
            asked = table(row_l, "answers", path)
            answers[code] = {a: string(asked, a, path) for a in ANSWERS}
            forms[code] = _forms(row_l, answers[code], path)
        sources[code] = string(row_l, "source", path)
        reviews[code] = string(row_l, "review", path)
        wordings[code] = {p.name: _wording(row_l, code, p, slot, path) for p in probes.values()}
    return Pack(
        name=name,
        version=string(row, "version", head),
        title=string(row, "title", head),
        system=string(row, "system", head, ""),
        probes=probes,
        wordings=wordings,
        answers=answers,
        forms=forms,
        sources=sources,
        reviews=reviews,
        **{"panel": {}} | more,
    )


def _probe(name: str, row: dict[str, Any], head: Path) -> Probe:
    no_more(row, {"measures", "when", "reads"}, head, f"probes.{name}.")
    if not row:
        return Probe(name, "", "")
    when = string(row, "when", head)
    if when not in ANSWERS:
        raise InputError(f"{head}: probes.{name}.when must be 'yes' or 'no'")
    reads = string(row, "reads", head)
    if reads not in READS:
        raise InputError(
            f"{head}: probes.{name}.reads must be {', '.join(READS[:-1])} or {READS[-1]}"
        )
    if reads == "question" and when == "no":
        raise InputError(
            f"{head}: probes.{name}.when must be 'yes': a question is read as it stands"
        )
    return Probe(name, string(row, "measures", head), when, reads)


def _way(probe: Probe) -> tuple[str, str]:
    return probe.reads, probe.when


@functools.cache
def closed_probes() -> dict[str, Probe]:
    """Return the yes/no probes of all packs by name.

    Raises InputError if two packs read a probe of the same name in two ways.
    """
    found: dict[str, Probe] = {}
    for pack in registry.names("packs"):
        head = registry.path(pack, "pack.toml")
        for name, row in table(read_toml(head), "probes", head).items():
            one = _probe(name, row, head)
            if one.when and _way(found.setdefault(name, one)) != _way(one):
                raise InputError(f"{head}: another pack reads its probe {name!r} in another way")
    return found


@functools.lru_cache(1000)
def probe_name(name: str) -> str:
    """Return the yes/no probe that a name means: in any case, or its first letters (`agree`).

    A name that means none, or several, is returned as it is.
    """
    plain = name.strip().casefold()
    known = closed_probes()
    begun = [one for one in known if one.startswith(plain)] if len(plain) > 4 else []
    return plain if plain in known else begun[0] if len(begun) == 1 else name


def _wording(row: dict[str, Any], code: str, probe: Probe, slot: str, path: Path | str) -> Wording:
    """Read the wording of a probe; without its own source and review, it has those of the file."""
    part = table(row, probe.name, path)
    if not part:
        raise InputError(f"{path}: no wording for the probe [{probe.name}]")
    known = {"text", "lang", "source", "review", "note"} | ({"polarity"} if probe.when else set())
    no_more(part, known, path, f"{probe.name}.")
    text = string(part, "text", path)
    if text.count("{input}") + text.count("{clause}") != 1:
        raise InputError(
            f"{path}: {probe.name}.text must hold {{input}} exactly once (or {{clause}})"
        )
    polarity = string(part, "polarity", path) if probe.when else ""
    if polarity not in ("plain", "negated") and probe.when:
        raise InputError(f"{path}: {probe.name}.polarity must be 'plain' or 'negated'")
    return Wording(
        text=text,
        polarity=polarity,
        lang=string(part, "lang", path, code),
        source=string(part, "source", path, string(row, "source", path)),
        review=string(part, "review", path, string(row, "review", path)),
        slot=slot,
        note=string(part, "note", path, ""),
    )


def _forms(
    row: dict[str, Any], answers: dict[str, str], path: Path | str
) -> dict[str, tuple[str, ...]]:
    """Read the table [forms], after the answer words; InputError if yes and no share a form."""
    part = table(row, "forms", path)
    no_more(part, set(ANSWERS), path, "forms.")
    forms = {a: tuple(dict.fromkeys((answers[a], *strings(part, a, path)))) for a in ANSWERS}
    for word in set(forms["yes"]) & set(forms["no"]):
        raise InputError(f"{path}: {word!r} is a form of both yes and no")
    return forms
