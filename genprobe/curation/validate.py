"""Have several people judge pairs, sentences or groups, and keep what enough of them confirm.

`export` writes a blind sheet for each annotator. `collect` reads the sheets into a table of votes
(`item, rater, question, label`). `keep` counts the votes and decides which rows are kept. The
questions, and the answers needed to keep a row, are in a file of `prompts/validation`, or of the
user's own: Aqbileq (five of seven), RuBia (two questions), PBBQ (above 60 %), and others. A
question has `one` answer, or `many` (the errors of a translation), names `members` of a group that
do not belong to it, or is `free`: people write a text, such as the code-switched sentence, which
becomes a column. Votes from other tools can be read with `convert`, or given as any table that
`review agreement` reads.
"""

from __future__ import annotations

import functools
import json
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row, disk, door, sheets, workbooks
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table, rows_of
from genprobe.limits import parsed
from genprobe.outcomes import votes as ballots
from genprobe.records import digest, fits
from genprobe.resources import guides, packs, registry
from genprobe.resources.guides import Guide
from genprobe.text import nfkc, whole_number
from genprobe.text.display import alike

VERSION = "1"
FOLDER = "validation"
UNITS = ("pair", "sentence", "group")
KINDS = ("one", "many", "members", "free")
MODELS = ("dawid-skene", "glad")
VOTES = ("item", "rater", "question", "label", "text", "lang", "repeat", "shown")
JOINED = "; "  # between several labels of one answer
COLUMNS = ("votes", "kept", "why")
_PAIRS = (
    *(("pro", "anti"), ("pro_trope", "anti_trope"), ("sent_more", "sent_less")),
    *(("source_text", "translation"), ("text", "translation")),
    *(
        ("stereotype", "antistereotype"),
        ("stereotype_sentence", "antistereotype_sentence"),
        ("original", "contrast"),
    ),
)
_TEXT = ("text", "sentence", "statement")
_MEMBER = ("attribute", *_TEXT)  # the text of a row in a group, as `group` takes it


@dataclass(frozen=True)
class Question:
    """A question for annotators.

    text: language -> wording. answers: folded answer word -> label. keep: the labels that count as
    votes for keeping a row; none if the question decides nothing. domains: domain -> language ->
    wording, for rows of that domain. kind: one of KINDS. needed: a row is kept only if somebody
    wrote the text of a `free` question.
    """

    text: dict[str, str]
    answers: dict[str, str]
    keep: tuple[str, ...]
    domains: dict[str, dict[str, str]]
    kind: str = "one"
    needed: bool = False

    def read(self, said: str) -> str | None:
        """Return the label of an answer; None if it is none. The text of `free` is its own."""
        if self.kind == "free":
            return said
        label = self.answers.get(_fold(said))
        if label is not None or self.kind == "one":
            return label
        # "L, S", "1 3": commas first, so that an answer may have several words.
        for parts in (re.split(r"[,;/+&،；，]", said), said.split()):
            labels = [self._part(part) for part in parts if part.strip()]
            if labels and None not in labels:
                return JOINED.join(sorted({str(label) for label in labels}))
        return None

    def offered(self, lang: str) -> list[str]:
        """List the answers that the wording of a language names, in brackets at its end.

        If it names none, or other words, these are the labels; a text has none.
        """
        named = re.search(r"[(（]([^()（）]*)[)）]\s*$", self.text.get(lang) or self.text["en"])
        words = [word.strip() for word in named[1].split(";")[0].split("/")] if named else []
        labels = list(dict.fromkeys(self.answers.values()))
        read = [self.answers.get(_fold(word), self.read(word.split()[0])) for word in words if word]
        return words if self.answers and sorted(map(str, read)) == sorted(labels) else labels

    def _part(self, said: str) -> str | None:
        said = said.strip().rstrip(".")
        if self.kind == "members":
            at = whole_number(said)
            return str(at) if at and at < 1000 else None
        return self.answers.get(_fold(said))


@dataclass(frozen=True)
class Questions:
    """The questions about each item of a `unit`, and the rule by which rows are kept.

    about: what is asked of annotators about themselves. choices: of it, by language. guide:
    language -> instructions for annotators.
    """

    name: str
    unit: str
    rule: str
    about: tuple[str, ...]
    choices: dict[str, dict[str, list[str]]]
    guide: dict[str, str]
    questions: dict[str, Question]
    hash: str


def load(name: str) -> Questions:
    """Read the questions with a name, or those of a file of the user's (a path to a .toml).

    Raises InputError if they do not exist or are malformed.
    """
    if name.endswith(".toml"):
        return read_questions(Path(name))
    if name not in registry.names(FOLDER):
        known = registry.names(FOLDER)
        raise registry.unknown("validation", name, known, "a file of your own (FILE.toml)")
    return _named(name)


@functools.cache
def _named(name: str) -> Questions:
    return read_questions(registry.path(FOLDER, f"{name}.toml"))


_CHOICES = dict[str, dict[str, list[str]]]
_SHAPES: dict[str, Any] = {
    "unit": str,
    "rule": str,
    "about": list[str],
    "questions": dict[str, dict[str, Any]],
    "choices": _CHOICES,
    "guide": dict[str, str],
}
_QUESTION: dict[str, Any] = {
    "text": dict[str, str],
    "answers": dict[str, list[str]],
    "keep": list[str],
    "kind": str,
    "needed": bool,
    "domains": dict[str, dict[str, str]],
}


def read_questions(path: Path) -> Questions:
    """Read and check one file of questions. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    needed = {"title", "source", "review", "unit", "rule", "about", "questions"}
    packs.no_more(row, needed | {"choices", "guide"}, path)
    for key in sorted(needed - row.keys()):
        raise InputError(f"{path}: no key {key!r}; a file has {', '.join(sorted(needed))}")
    packs.shaped(row, _SHAPES, path)
    questions = {}
    for name, part in row["questions"].items():
        packs.no_more(part, set(_QUESTION), path, f"{name}.")
        packs.shaped(part, _QUESTION, path)
        questions[name] = _question(name, part, path)
    found = Questions(
        name=path.stem,
        unit=row["unit"],
        rule=row["rule"],
        about=tuple(row["about"]),
        choices=row.get("choices", {}),
        guide=row.get("guide", {}),
        questions=questions,
        hash=packs.file_hash(path),
    )
    if found.unit not in UNITS:
        raise InputError(f"{path}: 'unit' must be one of {', '.join(UNITS)}")
    if odd := sorted(found.choices.keys() - set(found.about)):
        raise InputError(f"{path}: [choices] {odd[0]!r} is not in 'about'")
    if not questions or set(questions) & {*VOTES, *found.about, "row"}:
        raise InputError(f"{path}: needs questions, none called as a column of the votes")
    Rule.parse(found.rule, str(path))
    return found


def _question(name: str, part: dict[str, Any], path: Path) -> Question:
    kind, answers = part.get("kind", "one"), part.get("answers", {})
    keep = tuple(part.get("keep", ()))
    if kind not in KINDS:
        raise InputError(f"{path}: {name}.kind must be one of {', '.join(KINDS)}")
    if "en" not in part.get("text", {}):
        raise InputError(f"{path}: {name}.text has no 'en', which other languages fall back on")
    if not set(keep) <= set(answers) or (kind == "one" and not keep):
        raise InputError(f"{path}: {name}.keep must name answers of the question")
    if bool(answers) != (kind in ("one", "many")) or (part.get("needed") and kind != "free"):
        raise InputError(f"{path}: {name}: 'answers' are of one or many, 'needed' is of free")
    return Question(
        text=dict(part["text"]),
        answers={_fold(word): label for label, words in answers.items() for word in words},
        keep=keep,
        domains={key: dict(texts) for key, texts in part.get("domains", {}).items()},
        kind=kind,
        needed=bool(part.get("needed", False)),
    )


# The file of the two questions by domain in RuBia's public repository, and where it may stand.
_STUDY = Path("Response Collection") / "validator_text.json"
_YES_NO = "(да / нет)"  # what the study's bot offers as buttons


def published(questions: Questions, folder: str | Path) -> tuple[Questions, list[str]]:
    """Replace RuBia's questions by the study's own, in Russian, from a copy of its repository.

    folder: the copy, or the folder in it that holds `validator_text.json`: domain -> its two
    questions. Returns the questions, and the domains that keep our wording. Raises InputError for
    other questions, or a folder without this file.
    """
    if questions.name != "rubia":
        raise InputError("--from reads the study's questions of rubia; give --questions rubia")
    places = [Path(folder) / _STUDY, Path(folder) / _STUDY.name]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise InputError(f"{folder}: no {_STUDY}, as RuBia's repository has")
    door.need_own(path.parent)
    try:
        found = parsed(packs.read_text(path))
    except (ValueError, RecursionError):
        found = None
    if not fits(found, dict[str, list[str]]):
        raise InputError(f"{path}: not questions by domain")
    made, lacks = {}, []
    for at, (name, question) in enumerate(questions.questions.items()):
        domains = {}
        for domain, texts in question.domains.items():
            asked = found.get(domain, [])[at : at + 1]
            domains[domain] = texts | ({"ru": f"{asked[0].strip()} {_YES_NO}"} if asked else {})
            lacks += [] if asked else [domain]
        made[name] = replace(question, domains=domains)
    hash_ = f"{questions.hash}+study-{digest(sorted(found.items()), 12)}"
    return replace(questions, questions=made, hash=hash_), list(dict.fromkeys(lacks))


def _fold(text: str) -> str:
    text = nfkc(alike(text))
    return " ".join(text.casefold().split()).strip(" .,;:!")


# --- export


@dataclass(frozen=True)
class Item:
    """A unit that an annotator judges: a sentence, or a pair with its sentences."""

    name: str
    lang: str
    texts: tuple[str, ...]
    rows: tuple[int, ...]  # indexes in the table
    domain: str = ""


def items(source: str | Table, unit: str, lang: str = "") -> tuple[list[Row], list[Item]]:
    """Read a table as items to be judged.

    unit: `pair` (a row with two sentences, such as `pro` and `anti`; or the rows with the same
    `pair` and language: an original and its contrasts), `sentence`, or `group` (the rows of one
    `group` of several texts, its medoid first). lang: the language of all rows, if no column has
    it. Returns the rows, each with an id, and the items. Raises InputError if the table has no
    items.
    """
    numbered = tables.read(source)
    there = list(dict.fromkeys(name for _, row in numbered for name in row))
    speaks = tables.column(there, ("lang", "language"))
    two = next((p for p in _PAIRS if all(tables.column(there, (name,)) for name in p)), None)
    text = tables.column(there, _TEXT)
    joined = {"pair", "role"} <= set(there) and text is not None
    if unit == "pair" and two is None and not joined:
        raise InputError(
            f"{source}: no pairs; give columns 'pro' and 'anti', or 'text', 'pair' and 'role'"
        )
    if unit == "sentence" and text is None:
        tables.need(source, there, _TEXT, "what is judged")
    if unit == "group":
        tables.need(source, there, ("group",), "of `genprobe dataset group`")
        text, two = tables.need(source, there, _MEMBER, "the texts of the groups"), None
    columns = [str(tables.column(there, (name,))) for name in two or ()]
    if unit != "pair" or two is None:
        columns = [str(text)]
    names = tables.name_rows(numbered, columns, source)
    rows = [
        {"id": name} | row | {"id": name} for (_, row), name in zip(numbered, names, strict=True)
    ]
    langs = [(cell_text(row.get(speaks)) if speaks else "") or lang for row in rows]
    if unit == "group":
        return rows, _groups(rows, langs, columns[0])
    if unit == "sentence" or two is not None:
        return rows, [
            Item(
                row["id"],
                langs[at],
                tuple(cell_text(row.get(name)) for name in columns),
                (at,),
                cell_text(row.get("domain")),
            )
            for at, row in enumerate(rows)
        ]
    by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        by_pair[cell_text(row["pair"]) or row["id"], langs[at]].append(at)
    many = len({pair for pair, _ in by_pair}) < len(by_pair)
    found = []
    for (pair, code), places in by_pair.items():
        ordered = sorted(places, key=lambda at: cell_text(rows[at]["role"]) != "original")
        texts = tuple(cell_text(rows[at][columns[0]]) for at in ordered)
        name, domain = f"{pair}/{code}" if many else pair, cell_text(rows[places[0]].get("domain"))
        found.append(Item(name, code, texts, tuple(places), domain))
    return rows, found


def _groups(rows: Sequence[Row], langs: Sequence[str], column: str) -> list[Item]:
    """Make the items of grouped rows: groups of two texts or more, the medoid first."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if cell_text(row.get("group")) and cell_text(row.get(column)):
            found[cell_text(row["group"])].append(at)
    items_ = []
    for name, places in found.items():
        first = next((at for at in places if _yes(rows[at].get("medoid"))), places[0])
        ordered = sorted(places, key=lambda at: at != first)
        texts = dict.fromkeys(cell_text(rows[at].get(column)) for at in ordered)
        if len(texts) > 1:
            items_.append(Item(name, langs[first], tuple(texts), tuple(ordered)))
    return items_


def _yes(value: object) -> bool:
    return cell_text(value).lower() in ("true", "1", "yes")


def export(
    data: Any,
    out: str | Path,
    *,
    name: str = "aqbileq",
    annotators: int = 7,
    each: int = 0,
    repeats: float = 0.1,
    study: str | Path | None = None,
    seed: int = 0,
    lang: str = "",
    reader_lang: str = "",
    note: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Write a blind sheet for each annotator, each in its own order, and the key.

    data: the table to be judged. out: FILE.csv or FILE.xlsx; the sheets are FILE-1.csv, …, the key
    is FILE-key.json. Workbooks hold the instructions; with CSV they are FILE-instructions.txt.
    name: of the questions. annotators: number of people. each: number of people who read each item;
    0 means all. The items are assigned so that all people read equally many, and any two overlap by
    chance. repeats: the share of a sheet's items that appear twice. seed: for this assignment and
    the order of each sheet. lang: the language of the items, if no column has it. study: a folder
    with the published wording of the questions (`published`). reader_lang: language of the
    annotators; by default, that of the items, if all are in one, else English. note: called with
    what the folder lacks, and with the files. Returns the files, the key last, which `collect`
    needs. Raises InputError for wrong arguments, before anything is written.
    """
    source, questions = rows_of(data, "data"), load(name)
    if study is not None:
        questions, lacks = published(questions, study)
        if lacks:
            note(f"not in {study}, so in genprobe's words: {', '.join(lacks)}")
    _, found = items(source, questions.unit, lang)
    each = each or annotators
    if not 1 <= each <= annotators:
        raise InputError(f"each item can have 1 to {annotators} annotators, not {each}")
    if not 0 <= repeats <= 1:
        raise InputError(f"the share of repeats must be from 0 to 1, not {repeats:g}")
    out = Path(out)
    kind = out.suffix.lower() or ".csv"
    if kind not in (".csv", ".xlsx"):
        raise InputError(f"{out}: annotators get workbooks or CSV files; name it .xlsx or .csv")
    said = set.intersection(*(set(q.text) for q in questions.questions.values()))
    lang = guides.choose([item.lang for item in found], reader_lang, sorted(said))
    guide = guides.load(lang)
    paths = [out.with_name(f"{out.stem}-{n}{kind}") for n in range(1, annotators + 1)]
    key_path = out.with_name(f"{out.stem}-key.json")
    apart = [out.with_name(f"{out.stem}-instructions.txt")] if kind == ".csv" else []
    for path in (*paths, *apart, key_path):
        if path.exists():
            raise InputError(f"{path}: already exists; choose another name")
    more = questions.guide.get(lang) or questions.guide.get(guides.ENGLISH, "")
    page = guide.write("judging", kind.removeprefix("."), guide=more.strip())
    dealer = random.Random(f"deal {seed}")
    dealt: list[list[Item]] = [[] for _ in range(annotators)]
    order = list(range(annotators))
    for at, item in enumerate(dealer.sample(found, len(found))):
        if at % annotators == 0:
            dealer.shuffle(order)
        for step in range(each):
            dealt[order[(at + step) % annotators]].append(item)
    key: dict[str, Any] = {
        "questions": name,
        "hash": questions.hash,
        "source": Path(str(source)).name,
        "row": _name_in(guide, "row"),
    }
    # People of two exports are not taken for one another, nor the sheets of one for the other's.
    told = [
        out.stem,
        name,
        annotators,
        each,
        repeats,
        seed,
        [prints(item, questions) for item in found],
    ]
    stamp = digest(told, 6)
    codes: dict[str, dict[str, Any]] = {}
    for n, (path, mine) in enumerate(zip(paths, dealt, strict=True), 1):
        drawn = random.Random(f"sheet {seed} {n}")
        again = drawn.sample(mine, round(repeats * len(mine)))
        shown = drawn.sample(mine, len(mine)) + drawn.sample(again, len(again))
        own = any(_asked(questions, item, lang) for item in shown)
        heads = _head(questions, guide, lang, own)
        blank = [""] * (len(questions.questions) + len(questions.about))
        lines = [heads]
        for place, item in enumerate(shown):
            code = digest([stamp, n, place, item.name], 10)
            codes[code] = {"item": item.name, "lang": item.lang, "rater": f"{stamp}-{n}"}
            asked = [_asked(questions, item, lang)] if own else []
            texts = [sheets.show(text) for text in _padded(item, questions)]
            codes[code] |= {"repeat": place >= len(mine), "shown": prints(item, questions)}
            codes[code] |= {"cells": [sheets.fingerprint(text) for text in texts]}
            lines.append([code, *texts, *asked, *blank])
        first = len(heads) - len(blank)
        kinds = enumerate(questions.questions.values(), first)
        form = workbooks.Form(
            lines=lines,
            open=range(first, len(heads)),
            choices={at: q.offered(lang) for at, q in kinds if q.kind == "one"},
            page=page,
            names=(guide.words["page"], guide.words["answers"]),
            refused=guide.words["choose"],
            right_to_left=guides.direction(lang) == "rtl",
        )
        sheets.write(path, form)
    for path in apart:
        sheets.write_new(path, page.encode("utf-8-sig"))
    data = json.dumps(key | {"rows": codes}, indent=1).encode() + b"\n"
    disk.replace_bytes(key_path, [data], private=True)  # ids of rows hold codes of respondents
    for path in (*paths, *apart):
        note(f"for an annotator: {path}")
    note(f"not for annotators: {key_path}")
    return [*paths, *apart, key_path]


def _padded(item: Item, questions: Questions) -> tuple[str, ...]:
    """Return the cells of an item: one, or two for a pair, whose contrasts share the second.

    The members of a group, which share it, too, are numbered.
    """
    if questions.unit == "sentence":
        return item.texts
    others: Iterable[str] = item.texts[1:]
    if questions.unit == "group":
        others = (f"{n}. {text}" for n, text in enumerate(others, 1))
    return (item.texts[0], "\n".join(others))


def prints(item: Item, questions: Questions) -> str:
    """Hash the texts of an item; the order of contrasts does not count, that of members does."""
    others = list(map(sheets.fingerprint, item.texts[1:]))
    if questions.unit != "group":
        others.sort()
    return digest([sheets.fingerprint(item.texts[0]), *others], 12)


def _asked(questions: Questions, item: Item, lang: str) -> str:
    """Return the questions in the wording of the item's domain; "" if the domain has none."""
    found = []
    for name, question in questions.questions.items():
        texts = question.domains.get(item.domain, {})
        if text := texts.get(lang) or ("" if lang in question.text else texts.get("en")):
            found.append(f"{name}: {text}")
    return "\n".join(found)


def _head(questions: Questions, guide: Guide, lang: str, own: bool) -> list[str]:
    """Write the heads of a sheet, which begin with the names that `collect` reads.

    own: rows have questions of their own, by their domain.
    """
    shown = _shown(questions)
    heads = [_name_in(guide, name) for name in ("row", *shown, *(["asked"] if own else []))]
    asked = [
        f"{name}: {question.text.get(lang) or question.text['en']}"
        for name, question in questions.questions.items()
    ]
    about = [_about(name, questions.choices.get(name, {}), guide, lang) for name in questions.about]
    return [*heads, *asked, *about]


def _shown(questions: Questions) -> tuple[str, ...]:
    return ("sentence",) if questions.unit == "sentence" else ("first", "second")


def _name_in(guide: Guide, name: str) -> str:
    english, own = guides.load().words[name], guide.words[name]
    return own if own == english else f"{english}: {own}"


def _about(name: str, choices: Mapping[str, Sequence[str]], guide: Guide, lang: str) -> str:
    """Write the head of a question about the annotator, with its choices."""
    listed = " / ".join(choices.get(lang) or choices.get("en") or ())
    said = ": ".join(filter(None, (name, guide.words.get(name, ""), listed)))
    return f"{said} ({guide.words['private']})"


# --- collect


def collect(paths: Sequence[str | Path], key: str | Path) -> tuple[list[Row], list[str]]:
    """Read the sheets of annotators.

    What annotators say about themselves is taken from the first row in which they say it.

    paths: the sheets, as any spreadsheet saved them. key: the key file of the export. Returns the
    votes (`item, rater, question, label, …`; what was written freely is in `text`, and `shown` is a
    hash of the texts that were judged), and a line on each cell that cannot be used. Raises
    InputError for files that are not such sheets, or not the key.
    """
    try:
        known = parsed(packs.read_text(Path(key)))
        if not fits(known, dict[str, Any]) or not isinstance(known["questions"], str):
            raise TypeError
        questions, codes = load(_beside(known["questions"], Path(key))), known["rows"]
        if not fits(codes, dict[str, dict[str, Any]]) or not isinstance(known["hash"], str):
            raise TypeError
        for row in codes.values():
            if not all(isinstance(row[name], str) for name in ("item", "rater", "lang", "shown")):
                raise TypeError
            if type(row["repeat"]) not in (bool, int) or not fits(row["cells"], list[str]):
                raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{key}: is not the key of an export ({error})") from None
    votes: list[Row] = []
    problems: list[str] = []
    if questions.hash != known["hash"].partition("+")[0]:  # behind it, the study's wording
        problems.append(f"{key}: the questions {questions.name!r} have changed since the export")
    seen: dict[str, str] = {}
    writing = any(question.kind == "free" for question in questions.questions.values())
    for path in map(Path, paths):
        sheet = sheets.read(path, [str(known.get("row", "row"))])
        place = {
            sheets.head_key(head.split(":")[0].split("(")[0]): at
            for at, head in enumerate(sheet.heads)
        }
        lacks = [
            name
            for name in ("row", *_shown(questions), *questions.questions)
            if sheets.head_key(name) not in place
        ]
        if lacks:
            raise InputError(f"{path}: no column {lacks[0]!r}; is this a sheet of the export?")
        about = {
            name: next((c for _, cells in sheet.rows if (c := _cell(cells, place, name))), "")
            for name in questions.about
        }
        for number, cells in sheet.rows:
            where = f"{path}, row {number}"
            code = _cell(cells, place, "row")
            row = codes.get(code)
            if row is None:
                problems.append(f"{where}: {code!r} is not a row of the export")
                continue
            if code in seen:
                problems.append(f"{where}: this row is also in {seen[code]}")
                continue
            seen[code] = str(path)
            texts = [cells[place[sheets.head_key(name)]] for name in _shown(questions)]
            if [sheets.fingerprint(text) for text in texts] != row["cells"]:
                problems.append(f"{where}: the text of {code!r} was changed; not counted")
                continue
            for name, question in questions.questions.items():
                said = _cell(cells, place, name)
                label = question.read(said) if said else ""
                if label is None:
                    problems.append(f"{where}: {said[:40]!r} is not an answer to {name!r}")
                free = question.kind == "free"
                vote = {"item": row["item"], "rater": row["rater"], "question": name}
                vote |= {"label": "" if free else label or ""}
                vote |= {"text": said if free else ""} if writing else {}
                vote |= {"lang": row["lang"], "repeat": int(row["repeat"]), "shown": row["shown"]}
                votes.append(vote | about)
    missing = [code for code in codes if code not in seen]
    if missing:
        problems.append(f"{len(missing)} of {len(codes)} rows are missing")
    return votes, problems


def _beside(name: str, key: Path) -> str:
    """Find the file of questions that a key names: as it was given, or else beside the key."""
    beside = key.parent / Path(name).name
    return str(beside) if not Path(name).is_file() and beside.is_file() else name


def _cell(cells: Sequence[str], place: Mapping[str, int], name: str) -> str:
    return cells[place[sheets.head_key(name)]].strip() if sheets.head_key(name) in place else ""


# --- keep


@dataclass(frozen=True)
class Rule:
    """The rule by which a row is kept.

    `5/7`: at least 5 votes for it, out of at least 7; `>60%`, `>=60%`: more than, or at least, this
    share of its votes.
    """

    text: str
    least: int
    votes: int
    share: Fraction | None
    strict: bool

    @classmethod
    def parse(cls, text: str, where: str) -> Rule:
        """Parse a rule. Raises InputError for any other text."""
        plain = text.replace(" ", "")
        if found := re.fullmatch(r"(\d+)/(\d+)", plain):
            k, n = int(found[1]), int(found[2])
            if 1 <= k <= n:
                return cls(plain, k, n, None, False)
        if found := re.fullmatch(r"(>=?)(\d+(?:\.\d+)?)%", plain):
            share = Fraction(found[2]) / 100
            if share <= 1 and not (share == 1 and found[1] == ">"):
                return cls(plain, 0, 1, share, found[1] == ">")
        raise InputError(f"{where}: {text!r} is not a rule such as 5/7, >60% or >=50%")

    def decide(self, votes_for: int, votes: int) -> tuple[bool, str]:
        """Decide whether an item is kept; if not, also return the reason."""
        if votes < self.votes:
            return False, f"{votes} of {self.votes} votes"
        if self.share is None:
            kept = votes_for >= self.least
        else:
            share = Fraction(votes_for, votes)
            kept = share > self.share if self.strict else share >= self.share
        return kept, "" if kept else f"{votes_for} of {votes} for it"


@dataclass(frozen=True)
class Kept:
    """The result of voting on a table.

    rows: all rows, with `votes`, `kept` (yes or no) and `why` (the reason if not kept). columns: of
    these rows. counts: number of items by outcome. unknown: items that have votes but are not in
    the table. changed: items whose annotators were shown another text; those votes do not count.
    foreign: questions with votes that are not in the file of questions; `yes` counts as a vote to
    keep. odd: labels that are no answer to their question, with their number of votes. more:
    question -> number of items for which several people wrote a text, of which the first is taken.
    """

    rows: list[Row]
    columns: list[str]
    counts: dict[str, int]
    unknown: list[str]
    changed: list[str]
    foreign: list[str]
    odd: dict[str, int]
    more: dict[str, int]


def keep(
    source: str | Table,
    votes: Sequence[str | Table],
    name: str = "aqbileq",
    rule: str = "",
    model: str = "",
    lang: str = "",
) -> Kept:
    """Count votes, and decide for every row whether it is kept.

    A row is kept if it passes the rule on every question that decides, and if somebody wrote each
    text that is needed; texts become columns. A rater's second vote on an item is not counted here;
    it serves to measure self-agreement. Of a `group`, no row is left out: members that more than
    half of its raters name become groups of their own, and so do all texts of a group that is not
    confirmed.

    source: the table that was judged. votes: tables of votes, from `collect` or any others with
    `item, rater, label` under the names that `review agreement` knows. name: of the questions; for
    a question that no file of questions has, `yes` is a vote to keep. rule: a rule instead of that
    of the questions. model: `dawid-skene` or `glad` (crowd-kit) also gives each item a label and
    its probability, but does not change which rows are kept. Raises InputError for votes that
    cannot be counted.
    """
    questions = load(name)
    decide = Rule.parse(rule or questions.rule, "--rule")
    rows, found = items(source, questions.unit, lang)
    usable, unknown, changed = _usable(votes, rows, found, questions)
    texts = _written(votes, questions, found)
    where = ", ".join(map(str, votes))
    if changed and (questions.unit == "group" or not usable):
        raise InputError(
            f"{source}: {changed[0]!r} is not as annotators were shown it; give the table that was "
            "exported, its rows in that order"
        )
    if not usable and not texts:
        raise InputError(f"{where}: no vote on an item of {source}")
    ballots.need_distinct((vote["rater"] for vote in usable), where)
    free = {name: q for name, q in questions.questions.items() if q.kind == "free"}
    usable = [vote for vote in usable if vote["question"] not in free]
    usable = _answers(usable, questions, where) if usable else []
    counted: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    passed: dict[str, dict[str, Counter[bool]]] = defaultdict(lambda: defaultdict(Counter))
    raters: dict[str, set[str]] = defaultdict(set)
    for vote in usable:
        known = questions.questions.get(vote["question"])
        many = known is not None and known.kind != "one"
        labels = vote["label"].split(JOINED) if many else [vote["label"]]
        counted[vote["item"]][vote["question"]].update(labels)
        # One vote a person, however many labels it has: for the row if all of them are.
        right = set(labels) <= {*(known.keep if known else ("yes",))}
        passed[vote["item"]][vote["question"]][right] += 1
        raters[vote["item"]].add(vote["rater"])
    asked = list(dict.fromkeys(vote["question"] for vote in usable))
    models = {
        q: _modelled([v for v in usable if v["question"] == q], model)
        for q in asked
        if model and (q not in questions.questions or questions.questions[q].kind == "one")
    }
    step = f"validate/{VERSION}|{questions.name}@{questions.hash}|rule:{decide.text}"
    step += f"|model:{model}" if model else ""
    counts: Counter[str] = Counter()
    left = 0  # rows that are not kept
    group = questions.unit == "group"
    rows = [row | ({"votes": {}, "kept": True, "why": ""} if group else {}) for row in rows]
    for item in found:
        why = _reasons(passed[item.name], asked, questions, decide)
        wrote = {name: texts[item.name, name] for name in free if (item.name, name) in texts}
        why += [f"{q}: nobody wrote it" for q in free if free[q].needed and q not in wrote]
        dissolved = "dissolved" if group else "left out"
        counts[dissolved if why else "kept"] += 1
        for at in item.rows:
            old = rows[at]
            values: Row = {
                "votes": {q: dict(sorted(counted[item.name][q].items())) for q in asked},
                "kept": group or not why,
                "why": "; ".join(why),
                **{name: (wrote.get(name) or [""])[0] for name in free},
            }
            for question, labels_of in models.items():
                label, probability = labels_of.get(item.name, ("", None))
                values |= {f"{question}_model": label, f"{question}_model_p": probability}
            rows[at] = old | values | {tables.HISTORY: tables.history([old], step)}
        left += 0 if group or not why else len(item.rows)
        if group:
            _regroup(rows, item, questions, counted[item.name], len(raters[item.name]), bool(why))
    if left:  # for the card, which has only the rows that are kept
        # Two tables that pass the same step are joined with the number of each.
        own = digest([[item.name, prints(item, questions)] for item in found], 6)
        told = f"{step}|of:{own}|{tables.LEFT}{left}"
        rows = [
            row | {tables.HISTORY: [told if line == step else line for line in row[tables.HISTORY]]}
            if tables.HISTORY in row
            else row
            for row in rows
        ]
    extra = [f"{q}_model{end}" for q in models for end in ("", "_p")]
    columns = tables.columns(rows, [*free, *COLUMNS, *extra])
    foreign = [q for q in asked if q not in questions.questions]
    answers = {q: set(one.answers.values()) for q, one in questions.questions.items()}
    odd = Counter(
        v["label"]
        for v in usable
        if answers.get(v["question"])
        and not set(v["label"].split(JOINED)) <= answers[v["question"]]
    )
    several = Counter(name for (_, name), those in texts.items() if len(those) > 1)
    return Kept(rows, columns, dict(counts), unknown, changed, foreign, odd, dict(several))


def _written(
    votes: Sequence[str | Table], questions: Questions, found: Sequence[Item]
) -> dict[tuple[str, str], list[str]]:
    """Collect the texts that people wrote: (item, question) -> texts, each once."""
    free = {name for name, question in questions.questions.items() if question.kind == "free"}
    named = {item.name: prints(item, questions) for item in found}
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in votes if free else ():
        for _, row in tables.read(path):
            item, question = cell_text(row.get("item")), cell_text(row.get("question"))
            text = cell_text(row.get("text")) or cell_text(row.get("label"))
            shown = cell_text(row.get("shown")) or named.get(item)
            if question not in free or item not in named or shown != named[item]:
                continue
            if text and text not in texts[item, question]:
                texts[item, question].append(text)
    return {key: those for key, those in texts.items() if those}


def _regroup(
    rows: list[Row],
    item: Item,
    questions: Questions,
    counted: Mapping[str, Counter[str]],
    raters: int,
    dissolved: bool,
) -> None:
    """Give members that people took out of a group, or all of a dissolved one, their own groups."""
    column = str(tables.column(rows[item.rows[0]], _MEMBER))
    named = next((q for q, one in questions.questions.items() if one.kind == "members"), "")
    out = {
        item.texts[at]
        for told, n in counted.get(named, Counter()).items()
        if (at := whole_number(told)) and at < len(item.texts) and 2 * n > raters
    }
    out |= set(item.texts[1:]) if dissolved else set()
    own = [at for at in item.rows if cell_text(rows[at].get(column)) not in out]
    for text in out:
        places = [at for at in item.rows if cell_text(rows[at].get(column)) == text]
        first = rows[places[0]]
        name = f"group-{digest([text], 8)}" if cell_text(first.get("respondent")) else first["id"]
        for at in places:
            more = {"group": name, "group_size": len(places), "medoid": at == places[0]}
            why = rows[at]["why"] or f"taken out of {item.name}"
            rows[at] = rows[at] | more | {"similarity": 1.0, "contradicts": "", "why": why}
    for at in own:
        rows[at] = rows[at] | {"group_size": len(own)}


def meant(question: str, label: str, name: str = "") -> str:
    """Return the label of a vote's answer, which may be a word in any language of the question.

    question: of the vote; `label` if its table has no column for it. name: of the file of
    questions; by default, any file that has this question. Returns `label` unchanged if it is no
    answer to the question.
    """
    for one in [name] if name else registry.names(FOLDER):
        asked = load(one).questions
        alone = bool(name) and question == ballots.ALONE and len(asked) == 1
        own = next(iter(asked.values())) if alone else asked.get(question)
        if own is not None:
            return own.read(label) or label
    return label


def _reasons(
    passed: Mapping[str, Counter[bool]], asked: Sequence[str], questions: Questions, rule: Rule
) -> list[str]:
    """List why an item is not kept: one reason for each question on which its votes do not pass."""
    why = []
    for name in asked:
        known = questions.questions.get(name)
        if known is not None and not known.keep:
            continue
        one = passed.get(name, Counter())
        kept, reason = rule.decide(one[True], one.total())
        if not kept:
            why.append(f"{name}: {reason}")
    return why


def _answers(votes: list[Row], questions: Questions, where: str) -> list[Row]:
    """Match votes to the questions, and convert their labels, given in any language.

    Votes in a table without a column `question` belong to the only question, if some of their
    labels are answers to it. Raises InputError if votes are on questions of another file, or if
    some of the questions have no votes.
    """
    there = {vote["question"] for vote in votes}
    name, only = next(iter(questions.questions.items()))
    labels = {_fold(vote["label"]) for vote in votes}
    # If `yes` is no answer to the question, a `yes` is a plain vote to keep a row.
    known = labels & only.answers.keys() and "yes" not in labels - only.answers.keys()
    if known and there == {ballots.ALONE} and len(questions.questions) == 1:
        there, votes = {name}, [vote | {"question": name} for vote in votes]
    decides = [name for name, question in questions.questions.items() if question.keep]
    missing = [name for name in decides if name not in there]
    if missing and len(missing) < len(decides):
        raise InputError(f"{where}: no vote on {missing[0]!r}, which {questions.name!r} asks, too")
    for name in registry.names(FOLDER) if missing and there else ():
        if shared := there & load(name).questions.keys():
            raise InputError(
                f"{where}: votes on {min(shared)!r}, a question of {name!r} and not of "
                f"{questions.name!r}; give --questions {name}"
            )
    return [
        vote | {"label": own.read(vote["label"]) or vote["label"]}
        if (own := questions.questions.get(vote["question"]))
        else vote
        for vote in votes
    ]


def _usable(
    votes: Sequence[str | Table],
    rows: Sequence[Row],
    found: Sequence[Item],
    questions: Questions,
) -> tuple[list[Row], list[str], list[str]]:
    """Read each rater's first vote on items of the table.

    Also list voted items that are not in the table, and those that are not as they were shown.
    """
    named = {item.name: prints(item, questions) for item in found}
    # Votes from other tools may name an item by the id of one of its rows.
    by_row = {rows[at]["id"]: item.name for item in found for at in item.rows}
    usable, unknown, changed = [], [], []
    for vote in read_votes(votes):
        item = vote["item"] if vote["item"] in named else by_row.get(vote["item"])
        if item is None:
            unknown.append(vote["item"])
        elif vote["shown"] not in ("", named[item]):
            changed.append(item)
        elif vote["label"] and not vote["repeat"]:
            usable.append(vote | {"item": item})
    return usable, list(dict.fromkeys(unknown)), list(dict.fromkeys(changed))


def need_votes(source: str | Table, votes: Sequence[str | Table]) -> None:
    """Raise InputError if no vote is about a row of the table."""
    rows = [row for _, row in tables.read(source)]
    known = {cell_text(row.get(name)) for row in rows for name in ("id", "pair", "item")} - {""}
    known |= {f"{cell_text(row.get('pair'))}/{cell_text(row.get('lang'))}" for row in rows}
    if not any(vote["item"] in known for vote in read_votes(votes)):
        raise InputError(f"{', '.join(map(str, votes))}: no vote on an item of {source}")


def read_votes(paths: Sequence[str | Table]) -> Iterable[Row]:
    """Yield votes from tables in long form: item, rater, question (or `label`), label, repeat.

    Raises InputError if somebody votes on one item in two tables, and it is not marked as a repeat:
    it may be another person of the same name.
    """
    seen: dict[tuple[str, str, str], object] = {}
    for path in dict.fromkeys(paths):
        there = tables.read(path)
        for row, (_, cells) in zip(ballots.read(path, there), there, strict=True):
            key = (row["item"], row["reviewer"], row["question"])
            again = row["again"] or key in seen
            if seen.get(key, path) is not path and not row["again"]:
                raise InputError(
                    f"{path}: {key[1]!r} votes on {key[0]!r}, as in {seen[key]}; write two people "
                    "in two ways, or mark one person's second vote in a column 'repeat' (1)"
                )
            if row["answer"]:
                seen.setdefault(key, path)
            yield {
                "item": row["item"],
                "rater": row["reviewer"],
                "question": row["question"],
                "label": row["answer"],
                "repeat": again,
                "shown": cell_text(cells.get("shown")),
            }


def _modelled(votes: Sequence[Row], model: str) -> dict[str, tuple[str, float]]:
    """Fit a model of annotators, and return each item's label and its probability.

    Dawid & Skene 1979 (Applied Statistics 28:20): every annotator has an error matrix. GLAD
    (Whitehill et al. 2009): every annotator has a skill and every item a difficulty; it allows at
    most two labels.
    """
    if model not in MODELS:
        raise registry.unknown("model of annotators", model, MODELS)
    try:
        from crowdkit.aggregation import GLAD, DawidSkene
    except ImportError:
        raise InputError(f"{model} needs crowd-kit; install genprobe[annotators]") from None
    import pandas as pd

    table = pd.DataFrame(
        [(v["item"], v["rater"], v["label"]) for v in votes], columns=["task", "worker", "label"]
    ).sort_values(["task", "worker"])
    labels = sorted(table["label"].unique())
    if len(labels) < 2:
        return dict.fromkeys(table["task"].unique(), (labels[0], 1.0))
    fitted = DawidSkene(n_iter=100) if model == "dawid-skene" else GLAD(n_iter=100, silent=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns the authors of the library, not its users
        found = fitted.fit_predict_proba(table)
    return {
        str(item): (str(row.idxmax()), round(float(row.max()), 4)) for item, row in found.iterrows()
    }
