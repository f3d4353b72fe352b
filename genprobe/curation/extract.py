"""Extract the group, and the attribute ascribed to it, from people's sentences.

A set of rules is a file of `prompts/extraction`: a cascade, of which the first rule that fits a
sentence decides, as in AfriStereo (section 3.3.1). The rules `afristereo` give the same results as
the extractor of that study, including its errors. The rules of each language are our own: a
sentence that names no group is excluded, with the reason, instead of being forced into two parts.

Every row is returned, with `identity`, `attribute`, the `rule` that decided, its `confidence`
(high, medium or low, as judged by the rule's author; docs/datasets.md has the share of each that
two readers found right) and, if nothing was extracted, the reason in `excluded`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table
from genprobe.linguistics import contradict
from genprobe.resources import packs, registry
from genprobe.text import nfc

VERSION = "1"
FOLDER = "extraction"
CONFIDENCE = ("high", "medium", "low")
COLUMNS = ("identity", "attribute", "rule", "confidence", "excluded")
SENTENCE = ("sentence", "text", "statement", "stereotype")
ANSWER = ("answer", "response", "answers", "responses")
LANG = ("lang", "language")
TYPE = ("stereotype_type", "type", "category", "task")
_LISTS = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Rule:
    """One rule of the cascade.

    pattern: matched against the sentence, with the groups `identity` and `attribute`. identity: the
    identity, if the pattern does not capture it; `{type}` stands for that of the question. types:
    the questions to which the rule applies; all if empty. find: used without a pattern; `known`
    finds a known identity anywhere, as a whole word, the longest first; `first` takes the first
    word.
    """

    name: str
    find: str
    pattern: re.Pattern[str] | None
    identity: str
    types: tuple[str, ...]
    confidence: str


@dataclass(frozen=True)
class Rules:
    """A set of rules as in its file, with its word lists inserted into the patterns.

    letters: replacements of characters before any rule is applied, such as Turkish `I` -> `ı`.
    """

    name: str
    lang: str
    letters: dict[int, str]
    known: tuple[str, ...]
    types: dict[str, str]
    split: re.Pattern[str] | None
    strip: tuple[re.Pattern[str], ...]
    exclude: tuple[tuple[str, re.Pattern[str]], ...]
    rules: tuple[Rule, ...]
    after: re.Pattern[str] | None
    identity: tuple[tuple[re.Pattern[str], str], ...]
    same: dict[str, str]
    fold: bool
    published: bool
    hash: str


@dataclass(frozen=True)
class Extraction:
    """The parts extracted from a sentence; `excluded` is the reason if nothing was extracted."""

    identity: str
    attribute: str
    rule: str
    confidence: str
    excluded: str = ""


@functools.cache
def load(name: str) -> Rules:
    """Read the set of rules with a name.

    Raises InputError if it does not exist or is malformed.
    """
    registry.check(FOLDER, name)
    return read_rules(registry.path(FOLDER, f"{name}.toml"))


_KEYS = {
    *("title", "lang", "source", "review", "published", "letters", "split", "fold", "after"),
    *("words", "known", "names", "types", "strip", "exclude", "identity", "same", "rules"),
}


_SHAPES: dict[str, Any] = {
    **dict.fromkeys(("split", "after"), str),
    **dict.fromkeys(("words", "known", "same"), dict[str, list[str]]),
    **dict.fromkeys(("letters", "types", "exclude"), dict[str, str]),
    **dict.fromkeys(("strip", "names"), list[str]),
    "identity": list[list[str]],
    "rules": list[dict[str, Any]],
}
_RULE = {"pattern": str, "identity": str, "types": list[str], "confidence": str, "find": str}


def read_rules(path: Path) -> Rules:
    """Read and check one file of rules. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    for key in sorted(row.keys() - _KEYS):
        raise InputError(f"{path}: unknown key {key!r}; known: {', '.join(sorted(_KEYS))}")
    for key in ("title", "lang", "source", "review"):
        if not isinstance(row.get(key), str):
            raise InputError(f"{path}: {key!r} must be a text")
    packs.shaped(row, _SHAPES, path)
    if any(len(pair) != 2 for pair in row.get("identity", ())):
        raise InputError(
            f"{path}: 'identity' must be a list of pairs: a pattern and its replacement"
        )
    if any(len(letter) != 1 for letter in row.get("letters", ())):
        raise InputError(f"{path}: 'letters' must have single letters before the equals sign")
    lists = {name: list(words) for name, words in row.get("words", {}).items()}
    known = tuple(dict.fromkeys(w.lower() for ws in row.get("known", {}).values() for w in ws))
    lists["known"] = list(known)
    compiled = functools.partial(_compile, path=path, lists=lists)
    rules = tuple(_rule(part, compiled, path) for part in row.get("rules", []))
    if not rules:
        raise InputError(f"{path}: no [[rules]]")
    return Rules(
        name=path.stem,
        lang=tables.language(row["lang"]),
        letters=str.maketrans(row.get("letters", {})),
        # The longest come first, so that "old people" is found before "people".
        known=tuple(sorted(known, key=lambda word: -len(word))),
        types=dict(row.get("types", {})),
        split=compiled(row["split"]) if "split" in row else None,
        strip=tuple(map(compiled, row.get("strip", []))),
        exclude=tuple((why, compiled(text)) for why, text in row.get("exclude", {}).items()),
        rules=rules,
        after=compiled(row["after"]) if "after" in row else None,
        identity=tuple((compiled(a), b) for a, b in row.get("identity", [])),
        same={a: b for b, others in row.get("same", {}).items() for a in others},
        fold=bool(row.get("fold", True)),
        published=bool(row.get("published", False)),
        hash=packs.file_hash(path),
    )


def _compile(text: str, path: Path, lists: dict[str, list[str]]) -> re.Pattern[str]:
    """Compile a pattern in which `<name>` stands for any word of a list, the longest first."""

    def words(found: re.Match[str]) -> str:
        if found[1] not in lists:
            return found[0]  # the name of a regex group: (?P<identity>…)
        return "(?:" + "|".join(map(re.escape, sorted(lists[found[1]], key=len)[::-1])) + ")"

    try:
        return re.compile(_LISTS.sub(words, text), re.IGNORECASE)
    except re.error as error:
        raise InputError(f"{path}: {text[:60]!r} is not a valid pattern ({error})") from None


def _rule(part: dict[str, Any], compiled: Any, path: Path) -> Rule:
    name = part.get("name")
    where = f"{path}: the rule {name!r}"
    known = {"name", "find", "pattern", "identity", "types", "confidence"}
    if not isinstance(name, str) or part.keys() - known:
        raise InputError(f"{where}: needs a name, and may have only {', '.join(sorted(known))}")
    packs.shaped(part, _RULE, path)
    find = part.get("find", "pattern")
    pattern = compiled(part["pattern"]) if "pattern" in part else None
    if find not in ("pattern", "known", "first") or (find == "pattern") != (pattern is not None):
        raise InputError(f"{where}: needs a 'pattern', or find = 'known' or 'first'")
    if pattern is not None and "attribute" not in pattern.groupindex:
        raise InputError(f"{where}: the pattern has no group (?P<attribute>…)")
    if pattern is not None and "identity" not in pattern.groupindex and "identity" not in part:
        raise InputError(f"{where}: needs a group (?P<identity>…) or 'identity'")
    if part.get("confidence") not in CONFIDENCE:
        raise InputError(f"{where}: 'confidence' must be one of {', '.join(CONFIDENCE)}")
    return Rule(
        name=name,
        find=find,
        pattern=pattern,
        identity=part.get("identity", ""),
        types=tuple(part.get("types", ())),
        confidence=part["confidence"],
    )


# --- one sentence


def extract(sentence: str, rules: Rules, kind: str = "") -> Extraction:
    """Find the identity and the attribute in a sentence.

    kind: the question that the sentence answers, a key of the rules' `types` (`women`, `age`), or
    "". Returns the result of the first rule that fits. Both texts are in small letters if the rules
    say `fold`. Our own rules also trim them and remove markup, and replace an identity by the name
    that the rules' `same` has for it.
    """
    text = sentence.strip().translate(rules.letters)
    if not rules.published:
        text = " ".join(nfc(text).replace("’", "'").split())
        for pattern in rules.strip:
            text = pattern.sub("", text).strip()
    for why, pattern in rules.exclude:
        if pattern.search(text):
            return Extraction("", "", "", "", why)
    group = rules.types.get(kind, kind)
    for rule in rules.rules:
        if rule.types and kind not in rule.types:
            continue
        found = _apply(rule, text, rules, group)
        if found is not None:
            identity, attribute = (_finish(part, rules) for part in found)
            if not rules.published:
                identity = normal(identity, rules)
                attribute = rules.after.sub("", attribute) if rules.after else attribute
            return Extraction(identity, attribute, rule.name, rule.confidence)
    return Extraction("", "", "", "", "no group named")


def _apply(rule: Rule, text: str, rules: Rules, group: str) -> tuple[str, str] | None:
    """Return the identity and the attribute as in the sentence; None if the rule does not fit."""
    if rule.pattern is not None:
        match = rule.pattern.match(text)
        if match is None:
            return None
        parts = match.groupdict()
        identity = rule.identity.replace("{type}", group) or parts["identity"]
        return (identity, parts["attribute"] or "") if identity else None
    if rule.find == "first":
        first, _, rest = text.partition(" ") if not rules.published else _words(text)
        return (first, rest) if rest else None
    lowered = text.lower()
    for name in rules.known:
        if re.search(rf"\b{re.escape(name)}\b", lowered):
            # Cut after the first occurrence, even inside a word, as the study's extractor does.
            rest = lowered[lowered.find(name) + len(name) :].strip()
            return name, rules.after.sub("", rest) if rules.after else rest
    return None


def _words(text: str) -> tuple[str, str, str]:
    words = text.split()
    return words[0], " ", " ".join(words[1:])


def _finish(part: str, rules: Rules) -> str:
    part = part.strip()
    if rules.published:
        return part.rstrip(".").lower()
    part = part.strip(' .,;:!?*"“”«»।؟،؛')
    return part.lower() if rules.fold else part


def normal(identity: str, rules: Rules) -> str:
    """Return an identity without article and quantity, under the name that the rules give it."""
    for pattern, other in rules.identity:
        identity = pattern.sub(other, identity).strip()
    return rules.same.get(identity, identity)


# --- a table


def run(source: str | Table, rules_name: str = "") -> tuple[list[Row], list[str]]:
    """Extract the group and the attribute from every sentence of a table.

    source: a table with a column `sentence`, one sentence per row; or `answer`, in which a person
    gave several sentences separated by commas: each becomes a row, and one that names no group
    takes the group of the one before it. A column `stereotype_type` (or `type`, `category`) says
    which question was asked. rules_name: a file of prompts/extraction for all rows; by default, the
    rules of each row's `lang`, or of English if it has none. Returns the rows, in order, and their
    columns. Raises InputError for a table that cannot be read, and for sentences that are treated
    as English but are plainly in another language.
    """
    named = load(rules_name or "en")
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    sentence = tables.column(there, SENTENCE)
    answer = None if sentence else tables.column(there, ANSWER)
    if sentence is None and answer is None:
        tables.need(source, there, SENTENCE, "one sentence a row, or 'answer', several")
    kind = tables.column(there, TYPE)
    lang = None if rules_name else tables.column(there, LANG)
    if not rules_name:
        bare = [row for _, row in rows if not cell_text(row.get(str(lang)))]
        texts = [cell_text(row.get(str(sentence or answer))) for row in bare]
        found_in = contradict.other(texts, "en")
        if found_in:
            raise InputError(
                f"{source}: no language, so assumed en, but the sentences are clearly in "
                f"{found_in}; give a column 'lang', or --rules"
            )
    made: list[Row] = []
    keys = [name for name in (kind, sentence or answer) if name]
    for (number, row), name in zip(rows, tables.name_rows(rows, keys, source), strict=True):
        code = cell_text(row.get(lang)) if lang else ""
        rules = _of_language(code, f"{source}, row {number}") if code else named
        step = f"extract/{VERSION}|rules:{rules.name}@{rules.hash}"
        asked = cell_text(row.get(kind)) if kind else ""
        if sentence is not None:
            found = extract(cell_text(row.get(sentence)), rules, asked)
            made.append(_row(row, name, found, tables.history([row], step)))
            continue
        parts = list(_parts(cell_text(row.get(str(answer))), rules, asked))
        for at, (text, found) in enumerate(parts, 1):
            one = {"sentence": text} | {k: v for k, v in row.items() if k != answer}
            own = f"{name}-{at}" if len(parts) > 1 else name
            made.append(_row(one, own, found, tables.history([row], step, name)))
    return made, tables.columns(made, COLUMNS)


def _of_language(name: str, where: str) -> Rules:
    """Load the rules of a language, or else of the language of which it is a variety."""
    code = tables.language(name)
    for one in (code, code.partition("-")[0]):
        if one in registry.names(FOLDER):
            return load(one)
    there = ", ".join(one for one in registry.names(FOLDER) if load(one).lang == one)
    raise InputError(f"{where}: no rules in {code!r}, only in {there}; name some with --rules")


def _row(row: Row, name: str, found: Extraction, history: list[str]) -> Row:
    values = {column: getattr(found, column) for column in COLUMNS}
    return {"id": name} | row | {"id": name} | values | {tables.HISTORY: history}


def _parts(answer: str, rules: Rules, kind: str) -> Iterator[tuple[str, Extraction]]:
    """Split an answer into sentences; one that names no group takes the group before it."""
    before = ""
    parts: Sequence[str] = rules.split.split(answer) if rules.split else [answer]
    for part in filter(None, (part.strip() for part in parts)):
        found = extract(part, rules, kind)
        carried = found.excluded == "no group named" or found.rule == "of the question"
        if carried and before and not rules.published:
            found = Extraction(before, _finish(part, rules), "of the part before", "medium")
        before = found.identity or before
        yield part, found
