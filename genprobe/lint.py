"""Check packs, templates and languages for mistakes that people overlook: `genprobe lint`.

An error means that a file is unusable or certainly wrong; a warning needs a person's judgement.
Published wordings are used unchanged, so their faults are only warnings.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import metrics, text
from genprobe.curation import augment, collect, extract, lexicon, validate
from genprobe.datasets import choices, frames, identities, phrasing, sets, templates
from genprobe.errors import InputError
from genprobe.files import door
from genprobe.files.rows import paths_of
from genprobe.judges import Item, Judge, llm, refusal
from genprobe.judges.classifiers import cards
from genprobe.linguistics import negated
from genprobe.resources import guides, page, panel, registry
from genprobe.resources import packs as inputs

# ISO 15924 script -> the beginning of its letters' Unicode names.
_SCRIPTS: dict[str, str | tuple[str, ...]] = {
    "Arab": "ARABIC",
    "Armn": "ARMENIAN",
    "Beng": "BENGALI",
    "Cyrl": "CYRILLIC",
    "Deva": "DEVANAGARI",
    "Ethi": "ETHIOPIC",
    "Geor": "GEORGIAN",
    "Grek": "GREEK",
    "Gujr": "GUJARATI",
    "Guru": "GURMUKHI",
    "Hans": "CJK",
    "Hant": "CJK",
    "Hebr": "HEBREW",
    "Jpan": ("CJK", "HIRAGANA", "KATAKANA"),
    "Knda": "KANNADA",
    "Kore": "HANGUL",
    "Latn": "LATIN",
    "Mlym": "MALAYALAM",
    "Orya": "ORIYA",
    "Sinh": "SINHALA",
    "Taml": "TAMIL",
    "Telu": "TELUGU",
    "Thai": "THAI",
}
# Hans, Hant: characters that are in the first national character set but not in the second.
_CODECS = {"Hans": ("gb2312", "big5"), "Hant": ("big5", "gb2312")}
_QUOTES = {"“": "”", "„": "“”", "«": "»", "「": "」", "『": "』"}
# Checked in addition to the packs; elicitation has one folder for each of its packs.
FOLDERS = (
    *(
        "languages",
        inputs.CHOSEN,
        "sets",
        "templates",
        "refusal",
        "rubrics",
        "choices",
        "options",
        "choosing",
    ),
    *("choosing/wordings", "personas"),
    *("extraction", "validation", "lexicon", "negation", "pairs", "augmentation", "elicitation/*"),
    *("page", "sheets"),
)
_ZWNJ = "\u200c"  # Persian orthography needs it


# Folder -> function that reads its files and raises InputError for an unusable one.
_READ: dict[str, Callable[[Path], object]] = {
    "refusal": refusal.read_words,
    "rubrics": llm.read_rubric,
    "extraction": extract.read_rules,
    "validation": validate.read_questions,
    "sheets": guides.read,
    "lexicon": lexicon.read,
    "negation": negated.read,
    "pairs": identities.read,
    "options": phrasing.read_words,
    "sets": sets.read_set,
    "choosing": frames.read_frames,
    "augmentation": augment.read_prompts,
    "page": page.read,
}


class Finding(NamedTuple):
    """A fault found in a file."""

    level: str  # "error", "warning"
    where: str  # file, and the key in it
    message: str


def lint(paths: object = ()) -> list[Finding]:
    """Check packs, templates, phrases, rubrics, languages or folders of them.

    paths: one or several; by default, all files that come with genprobe, its cards of classifiers,
    and what the folders of --with add. Raises InputError if a path is none of these.
    """
    found: list[Finding] = []
    own = (root / place for root in registry.added() for place in ("prompts", "classifiers"))
    every = (registry.prompts(), registry.CLASSIFIERS, *filter(Path.is_dir, own))
    for path in paths_of(paths) or every:
        found += _path(path)
    return found


def _path(path: Path) -> Iterator[Finding]:
    if (path / "pack.toml").is_file():
        yield from _pack(path)
    elif path.is_dir():
        packs = [p.parent for p in sorted(path.glob("**/pack.toml"))]
        whole = bool(packs) or any((path / name).is_dir() for name in FOLDERS)
        places = tuple(f"{name}/*.toml" for name in FOLDERS) if whole else ("*.toml",)
        files = [file for place in places for file in sorted(path.glob(place))]
        if not packs and not files:
            raise InputError(f"{path}: neither a pack (with pack.toml) nor language files in it")
        for pack in packs:
            yield from _pack(pack)
        for file in files:
            yield from _file(file)
    elif not path.is_file():
        raise InputError(f"{path}: not found")
    elif path.suffix != ".toml":
        raise InputError(
            f"{path}: lint checks only packs, templates, phrases, rubrics and languages (.toml)"
        )
    elif (path.parent / "pack.toml").is_file():
        yield from _pack(path.parent, only=path.stem)
    elif path.parent.name == panel.FOLDER and (path.parents[1] / "pack.toml").is_file():
        yield from _panel(path, inputs.read_pack(path.parents[1]))
    else:
        yield from _file(path)


def _file(path: Path) -> Iterator[Finding]:
    """Check a file; its folder says what it holds: a language, templates, phrases, a rubric, …"""
    folder = path.parent.name
    if folder == "templates":
        if path.name != templates.DOMAINS.name:
            yield from _templates(path)
    elif folder == "choices":
        yield from _choices(path)
    elif folder in ("personas", panel.FOLDER):
        yield from _varied(path, panel.read_personas if folder == "personas" else frames.read_panel)
    elif folder in _READ or path.parent.parent.name == "elicitation":
        try:
            _READ.get(folder, collect.read_pack)(path)
        except InputError as error:
            yield Finding("error", str(path), str(error).removeprefix(f"{path}: "))
        else:
            review = str(inputs.read_toml(path).get("review", ""))
            if folder in ("extraction", "lexicon") and review.startswith("awaiting"):
                yield Finding("warning", str(path), "awaits a native reader")
            if folder == page.FAMILY and path.stem != page.ENGLISH:
                words = page.read(path)
                for name in metrics.catalogue():
                    if not words.measure(name):
                        message = (
                            f"'metrics.{name}' is missing: what is {name!r}, in this language?"
                        )
                        yield Finding("warning", str(path), message)
            if folder == "lexicon":
                for message in lexicon.lacking(lexicon.read(path)):
                    yield Finding("warning", str(path), message)
    elif folder == registry.CLASSIFIERS.name:
        yield from _card(path)
    else:
        yield from _language(path)


def _card(path: Path) -> Iterator[Finding]:
    """Check a classifier's card: a model of the hub is pinned to a commit, which cannot change."""
    try:
        card = cards.read_card(path)
    except InputError as error:
        yield Finding("error", str(path), str(error).removeprefix(f"{path}: "))
        return
    if card.engine != "transformers" or door.lies_at(path.parent / card.model) == "folder":
        return
    if not card.revision:
        yield Finding("warning", str(path), "no revision: the model's files may change")
    elif not re.fullmatch("[0-9a-f]{40}", card.revision):
        message = f"revision {card.revision!r} is no commit (40 hexadecimal digits) and may move"
        yield Finding("error", str(path), message)


def _of_language(path: Path, read: Callable[[Path], Any], awaits: str) -> tuple[Any, list[Finding]]:
    """Read a file of one language. Returns its content (None if unusable) and the findings."""
    where = str(path)
    try:
        found = read(path)
    except InputError as error:
        return None, [Finding("error", where, str(error).removeprefix(f"{path}: "))]
    if path.stem == choices.NO_WORDS:
        return None, []
    if path.stem not in (*registry.names("languages"), *registry.names(inputs.CHOSEN)):
        lacking = f"no language file prompts/languages/{path.stem}.toml"
        return None, [Finding("error", where, lacking)]
    if str(inputs.read_toml(path).get("review", "")).startswith("awaiting"):
        return found, [Finding("warning", where, f"{awaits} a native reader")]
    return found, []


def _varied(path: Path, read: Callable[[Path], dict[str, Any]]) -> Iterator[Finding]:
    """Check a file of personas, or a file of wordings of choices."""
    found, findings = _of_language(path, read, "texts await")
    yield from findings
    if found is None:
        return
    where, language = str(path), inputs.load_language(path.stem)
    for name, texts in found.items():
        for said in texts.values() if isinstance(texts, dict) else (texts,):
            for message in _text(re.sub(r"\{[a-z]+\}", "", said).strip(), language):
                yield Finding("error", f"{where} [{name}]", message)


def _pack(folder: Path, only: str = "") -> Iterator[Finding]:
    """Read a pack file by file, so that one fault does not hide the next."""
    try:
        ours = folder == registry.path(folder.name)  # languages may stand in folders of --with
        pack = inputs.load_pack(folder.name) if ours else inputs.read_pack(folder)
    except InputError as error:
        yield Finding("error", str(folder), str(error).removeprefix(f"{folder}/"))
        return
    for code, wordings in pack.wordings.items():
        where = f"{folder / code}.toml"
        if only not in ("", "pack", code):
            continue
        if code not in registry.names("languages"):
            yield Finding("error", where, f"no language file prompts/languages/{code}.toml")
            continue
        language = inputs.load_language(code)
        if any(w.review.startswith("awaiting") for w in wordings.values()):
            yield Finding("warning", where, "wording awaits a native reader")
        for answer, words in pack.forms[code].items():
            for word in words:
                if not _knows(language, answer, word):
                    asks = "asks for" if word == pack.answers[code][answer] else "[forms] has"
                    yield Finding(
                        "error",
                        where,
                        f"{asks} {word!r}, which is no word for {answer!r} in {code}.toml",
                    )
        for name, wording in wordings.items():
            at = f"{where} [{name}]"
            level = "warning" if wording.review == "published" else "error"
            if wording.lang not in registry.names("languages"):
                yield Finding("error", at, f"lang is {wording.lang!r}, which has no language file")
                continue
            written = inputs.load_language(wording.lang)
            for message in _text(wording.text.replace(wording.slot, ""), written):
                yield Finding(level, at, message)
            for message in _asked(wording.text, pack.answers[code]):
                yield Finding(level, at, message)
            if wording.slot != inputs.SLOT and wording.slot not in wording.text:
                yield Finding(level, at, f"does not say what {wording.slot} is for")
            if wording.polarity:
                yield from _polarity(at, wording, written)
    own = folder.name if ours else ""
    panels = (
        registry.files(f"{own}/{panel.FOLDER}") if own else (folder / panel.FOLDER).glob("*.toml")
    )
    for path in sorted(panels) if pack.panel else ():
        if only in ("", "pack", path.stem):
            yield from _panel(path, pack)
    missing = sorted(set(registry.names("languages")) - pack.wordings.keys())
    if missing and not only:
        yield Finding("warning", str(folder), f"no wording in {', '.join(missing)}")


def _panel(path: Path, pack: inputs.Pack) -> Iterator[Finding]:
    """Check the panel of wordings of one language against the published questions.

    Every wording must differ from the others, have the polarity that it states, and have answers
    that the reader recognises.
    """
    where, lang = str(path), path.stem
    try:
        found = panel.read(path, pack)
    except InputError as error:
        yield Finding("error", where, str(error).removeprefix(f"{path}: "))
        return
    if found.review.startswith("awaiting"):
        yield Finding("warning", where, "wordings await a native reader")
    said = {wording.text: f"[{name}]" for name, wording in pack.wordings[lang].items()}
    for name, worded in found.wordings.items():
        for probe in worded.texts:
            at = f"{where} [{name}] {probe}"
            closed = bool(pack.probes[probe].when)
            published = pack.wordings[lang][probe]
            if published.lang not in registry.names("languages"):
                continue  # `_pack` reports this fault
            language = inputs.load_language(published.lang)
            if published.slot != inputs.SLOT and published.slot not in worded.texts[probe]:
                yield Finding("error", at, f"does not say what {published.slot} is for")
            for order in panel.ORDERS if closed else ("",):
                wording = worded.wording(probe, order, pack, found)
                for message in _text(wording.text.replace(wording.slot, ""), language):
                    yield Finding("error", at, f"{order}: {message}" if order else message)
                if (before := said.setdefault(wording.text, at)) != at:
                    yield Finding("error", at, f"the same text as {before}")
                if closed:
                    answers = worded.answered(probe, order) or worded.answers[probe]
                    for message in _read_back(wording, probe, answers):
                        yield Finding("error", at, message)
            if closed:
                asks = dataclasses.replace(wording, text=worded.texts[probe])  # no answer words
                yield from _polarity(at, asks, language)


@functools.cache  # slow to make, as it hashes its word lists
def _reader() -> Judge:
    judge: Judge = registry.module("judges", "yesno").make()
    return judge


def _read_back(wording: inputs.Wording, probe: str, answers: dict[str, str]) -> Iterator[str]:
    """Yield a message for each answer of a question that the reader takes for another one."""
    judge = _reader()
    for answer, word in answers.items():
        prompt = wording.ask("…")
        for reply in (word, f"{word[:1].upper()}{word[1:]}."):
            read = judge(Item(wording.lang, probe, prompt, reply)).label
            if read != answer:
                yield f"the answer {reply!r} means {answer} but is read as {read}"


# Doubled spaces, and spaces before punctuation: typing mistakes in templates.
_SPACES = re.compile(r"\s{2,}|\s[.,!?؟،]")


def _templates(path: Path) -> Iterator[Finding]:
    found, findings = _of_language(path, templates.read, "templates await")
    yield from findings
    if found is None:
        return
    where, language = str(path), inputs.load_language(path.stem)
    seen: dict[str, str] = {}
    for template in found:
        at = f"{where} [{template.id}]"
        sentences = [str(template.extra[name]) for name in ("prototypical", "counter")]
        for message in {m: None for value in sentences for m in _text(value, language)}:
            yield Finding("error", at, message)
        if sentences[0] == sentences[1]:
            yield Finding("error", at, "the two fillers are the same")
        if any(_SPACES.search(value) for value in sentences):
            yield Finding("error", at, "too much white space")
        if not template.text.endswith((".", "!", "?", "؟")):
            yield Finding("error", at, "does not end like a sentence")
        before = seen.setdefault(template.text, template.id)
        if before != template.id:
            yield Finding("error", at, f"the same text as {before!r}")
    for subdomain in templates.domains().keys() - {t.bias_type for t in found}:
        yield Finding("warning", where, f"no template of the subdomain {subdomain!r}")


def _choices(path: Path) -> Iterator[Finding]:
    said, findings = _of_language(path, choices.read_wording, "wording awaits")
    yield from findings
    if said is None:
        return
    where, language = str(path), inputs.load_language(path.stem)
    for value in (re.sub(r"\{\w+\}", "", said.text).strip(), *said.unknown):
        for message in _text(value, language):
            yield Finding("error", where, message)
    if said.text != said.text.strip():
        yield Finding("error", where, "white space around 'text'; 'space' says what follows it")
    if len({choices.bare(word) for word in said.unknown}) < len(said.unknown):
        yield Finding("error", where, "an unknown option occurs twice")


def _knows(language: inputs.Language, answer: str, word: str) -> bool:
    known = (*language.words[answer], *language.words[f"{answer}_alone"])
    forms = {text.normalise(form) for pattern in known for form in text.expand(pattern)}
    return text.replace(text.normalise(word), language.fold) in {
        text.replace(form, language.fold) for form in forms
    }


def _asked(wording: str, answers: dict[str, str]) -> Iterator[str]:
    words = text.tokens(text.normalise(wording))
    for word in answers.values():
        parts = text.tokens(text.normalise(word))
        if not any(words[i : i + len(parts)] == parts for i in range(len(words))):
            yield f"does not name the answer word {word!r}"


def _polarity(where: str, wording: inputs.Wording, language: inputs.Language) -> Iterator[Finding]:
    question = re.split(r"[?？؟]", wording.text, maxsplit=1)[0]
    negators = {text.normalise(w) for p in language.words["negation"] for w in text.expand(p)}
    # In the instruction after the question, "no" is only the answer word.
    negators |= {text.normalise(w) for w in language.words["no_alone"]}
    inside = [w for w in text.tokens(text.normalise(question)) if w in negators]
    if wording.polarity == "negated":
        yield Finding("warning", where, "negated question: a bare answer is ambiguous")
    elif inside:
        yield Finding(
            "warning", where, f"polarity is 'plain', but the question holds {inside[0]!r}"
        )


# Letters accepted as apostrophes in any language; Ukrainian and Uzbek use them.
_APOSTROPHES = "ʼʻ"


def _text(value: str, language: inputs.Language, latin: bool = False) -> Iterator[str]:
    """Yield a message for each fault in a text's characters, such as a letter of another script.

    latin: also allow Latin letters, as words of any script are sometimes typed in them.
    """
    if value != text.nfc(value):
        yield "not in Unicode normal form C"
    hidden = {
        f"U+{ord(c):04X}"
        for c in value
        if unicodedata.category(c) in ("Cf", "Cc", "Co", "Cs")
        and c != "\n"
        and not (c == _ZWNJ and language.code == "fa")
    }
    if hidden:
        yield f"invisible characters: {', '.join(sorted(hidden))}"
    plain = value.replace("{input}", "")
    for mark in _APOSTROPHES:
        plain = plain.replace(mark, "'")
    strange = sorted(set(foreign_letters(plain, language.script)))
    if latin:
        strange = [c for c in strange if not unicodedata.name(c, "").startswith("LATIN")]
    if strange:
        yield f"not in the script {language.script}: {''.join(strange)}"
    for match in re.finditer(r"[.!?。！？।؟]{2,}", value):
        yield f"doubled end of sentence {match.group()!r}"
    if re.search(rf"[{text.HAN}][\"'”」』]*\.(?:\s|$)", value):
        yield "ASCII full stop in a Chinese sentence"
    yield from _quotes(value)
    if value.strip() != value:
        yield "white space at the beginning or end"


def _quotes(value: str) -> Iterator[str]:
    opened = ""
    for c in value:
        if opened and c in _QUOTES[opened]:
            opened = ""
        elif c in _QUOTES:
            if opened:
                break
            opened = c
        elif c in "”»」』":
            yield f"{c!r} closes a quotation that was not opened"
            return
    if opened:
        yield f"{opened!r} opens a quotation that is not closed"


def foreign_letters(value: str, script: str) -> Iterator[str]:
    """Yield the letters of a text outside an ISO 15924 script; Hans and Hant are distinguished."""
    name = _SCRIPTS[script]
    for c in value:
        if not c.isalpha():
            continue
        if not unicodedata.name(c, "").startswith(name):
            yield c
        elif script in _CODECS:
            own, other = _CODECS[script]
            if not _has(own, c) and _has(other, c):
                yield c


def _has(codec: str, c: str) -> bool:
    try:
        c.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


# Pairs of groups that must not share a phrase.
_OPPOSITES = (
    ("yes", "no"),
    ("yes", "no_alone"),
    ("yes_alone", "no"),
    ("yes_alone", "no_alone"),
    ("agree", "disagree"),
    ("stereotype", "not_stereotype"),
    ("wrong", "right"),
)


def _language(path: Path) -> Iterator[Finding]:
    try:
        language = inputs.read_language(path)
    except InputError as error:
        yield Finding("error", str(path), str(error).removeprefix(f"{path}: "))
        return
    where = str(path)
    if path.parent.name == Path(inputs.CHOSEN).name:
        return
    if language.script not in _SCRIPTS:
        yield Finding("error", where, f"script {language.script!r}; known: {', '.join(_SCRIPTS)}")
        return
    if language.review.startswith("awaiting"):
        yield Finding("warning", where, "word lists await a native reader")
    plain: dict[str, set[tuple[str, ...]]] = {}
    for group, patterns in language.words.items():
        plain[group] = set()
        if group in inputs.WORD_GROUPS.get("text", ()):
            continue  # letters and words of running text, also in other scripts
        for pattern in patterns:
            at = f"{where} [{group}] {pattern!r}"
            if not text.well_formed(pattern):
                yield Finding("error", at, "a pattern has only (a|b) and (a)?")
                continue
            for message in _text(pattern, language, latin=True):
                yield Finding("error", at, message)
            for phrase in text.expand(pattern):
                words = tuple(text.tokens(text.replace(text.normalise(phrase), language.fold)))
                if not words:
                    yield Finding("error", at, "contains no letter")
                plain[group].add(words)
    for group, patterns in language.clause.items():
        for pattern in patterns:
            if not text.well_formed(pattern):
                at = f"{where} [clause {group}] {pattern!r}"
                yield Finding("error", at, "a pattern has only (a|b) and (a)?")
    for one, two in _OPPOSITES:
        for words in sorted(plain[one] & plain[two]):
            yield Finding("error", where, f"{' '.join(words)!r} is in both {one!r} and {two!r}")
    if not language.clause["not"]:
        yield from _hidden(where, plain)
    for group in ("agree", "disagree", "stereotype", "not_stereotype"):
        if not plain[group]:
            yield Finding("warning", where, f"no phrase in [sentence] {group}")


def _hidden(where: str, plain: dict[str, set[tuple[str, ...]]]) -> Iterator[Finding]:
    """Yield a warning for each phrase that hides a denial overlapping its end.

    The phrase that begins first is read: "bu stereotip" hides "stereotip emas" in "bu stereotip
    emas" unless the whole is listed as a denial. Only for a language without `[clause]`, whose
    stems would find the negation.
    """
    for said, denied in (("stereotype", "not_stereotype"), ("agree", "disagree")):
        for one in sorted(plain[said]):
            for other in sorted(plain[denied]):
                shared = [n for n in range(1, len(other)) if n < len(one) and one[-n:] == other[:n]]
                if shared and (whole := one + other[shared[-1] :]) not in plain[denied]:
                    told = f"{' '.join(whole)!r} is read as {said}: add it to {denied!r}"
                    yield Finding("warning", where, told)
