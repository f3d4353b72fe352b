"""Have several people judge pairs or sentences, and keep those that enough of them confirm.

`export` writes a blind sheet for each annotator. `collect` reads the sheets into a table of votes
(`item, rater, question, label`). `keep` counts the votes and decides which rows are kept. The
questions, and the answers needed to keep a row, are in a file of `prompts/validation`: Aqbileq
(five of seven), RuBia (two questions), PBBQ (above 60 %). Votes from other tools can be read with
`convert`, or given as any table that `review agreement` reads.
"""

from __future__ import annotations

import functools
import json
import random
import re
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row, disk, sheets
from genprobe.files.cells import cell_text
from genprobe.limits import parsed
from genprobe.outcomes import votes as ballots
from genprobe.records import digest, fits
from genprobe.resources import packs, registry
from genprobe.text.display import alike

VERSION = "1"
FOLDER = "validation"
UNITS = ("pair", "sentence")
MODELS = ("dawid-skene", "glad")
VOTES = ("item", "rater", "question", "label", "lang", "repeat", "age_group", "gender")
COLUMNS = ("votes", "kept", "why")
_PAIRS = (
    *(("pro", "anti"), ("pro_trope", "anti_trope"), ("sent_more", "sent_less")),
    *(
        ("stereotype", "antistereotype"),
        ("stereotype_sentence", "antistereotype_sentence"),
        ("original", "contrast"),
    ),
)
_TEXT = ("text", "sentence", "statement")


@dataclass(frozen=True)
class Question:
    """A question for annotators.

    text: language -> wording. answers: folded answer word -> label. keep: the labels that count as
    votes for keeping a row. domains: domain -> language -> wording, for rows of that domain.
    """

    text: dict[str, str]
    answers: dict[str, str]
    keep: tuple[str, ...]
    domains: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Questions:
    """The questions about each item of a `unit`, and the rule by which rows are kept."""

    name: str
    unit: str
    rule: str
    about: tuple[str, ...]
    questions: dict[str, Question]
    hash: str


@functools.cache
def load(name: str) -> Questions:
    """Read the questions with a name. Raises InputError if they do not exist or are malformed."""
    registry.check(FOLDER, name)
    return read_questions(registry.PROMPTS / FOLDER / f"{name}.toml")


_SHAPES = {"unit": str, "rule": str, "about": list[str], "questions": dict[str, dict[str, Any]]}
_QUESTION = {"text": dict[str, str], "answers": dict[str, list[str]], "keep": list[str]}


def read_questions(path: Path) -> Questions:
    """Read and check one file of questions. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    known = {"title", "source", "review", "unit", "rule", "about", "questions"}
    for key in sorted(row.keys() ^ known):
        what = "unknown key" if key in row else "no key"
        raise InputError(f"{path}: {what} {key!r}; a file has {', '.join(sorted(known))}")
    packs.shaped(row, _SHAPES, path)
    for part in row["questions"].values():
        packs.shaped(part, _QUESTION, path)
    try:
        questions = {
            name: Question(
                text=dict(part["text"]),
                answers={_fold(w): label for label, ws in part["answers"].items() for w in ws},
                keep=tuple(part["keep"]),
                domains={key: dict(texts) for key, texts in part.get("domains", {}).items()},
            )
            for name, part in row["questions"].items()
        }
        found = Questions(
            name=path.stem,
            unit=row["unit"],
            rule=row["rule"],
            about=tuple(row["about"]),
            questions=questions,
            hash=packs.file_hash(path),
        )
        labels = {name: set(part["answers"]) for name, part in row["questions"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: something is missing or not a text ({error})") from None
    if found.unit not in UNITS:
        raise InputError(f"{path}: 'unit' must be one of {', '.join(UNITS)}")
    for name, question in questions.items():
        if not question.keep or not set(question.keep) <= labels[name]:
            raise InputError(f"{path}: {name}.keep must name answers of the question")
    Rule.parse(found.rule, str(path))
    return found


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", alike(text))
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


def items(source: str | Path, unit: str, lang: str = "") -> tuple[list[Row], list[Item]]:
    """Read a table as items to be judged.

    unit: `pair` (a row with two sentences, such as `pro` and `anti`; or the rows with the same
    `pair` and language: an original and its contrasts) or `sentence`. lang: the language of all
    rows, if no column has it. Returns the rows, each with an id, and the items. Raises InputError
    if the table has no items.
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
    columns = [str(tables.column(there, (name,))) for name in two or ()]
    if unit == "sentence" or two is None:
        columns = [str(text)]
    names = tables.name_rows(numbered, columns, source)
    rows = [
        {"id": name} | row | {"id": name} for (_, row), name in zip(numbered, names, strict=True)
    ]
    langs = [(cell_text(row.get(speaks)) if speaks else "") or lang for row in rows]
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


def export(
    source: str | Path,
    out: str | Path,
    name: str = "aqbileq",
    annotators: int = 7,
    each: int = 0,
    repeats: float = 0.1,
    seed: int = 0,
    lang: str = "",
) -> list[Path]:
    """Write a sheet for each annotator, and the key that `collect` needs.

    out: FILE.csv; the sheets are FILE-1.csv, …, the key is FILE-key.json. name: of the questions.
    annotators: number of people. each: number of people who read each item; 0 means all. The items
    are assigned so that all people read equally many, and any two overlap by chance. repeats: the
    share of a sheet's items that appear twice. seed: for this assignment and the order of each
    sheet. lang: the language of the items, if no column has it. Returns the files. Raises
    InputError for wrong arguments, before anything is written.
    """
    questions = load(name)
    _, found = items(source, questions.unit, lang)
    each = each or annotators
    if not 1 <= each <= annotators:
        raise InputError(f"each item can have 1 to {annotators} annotators, not {each}")
    if not 0 <= repeats <= 1:
        raise InputError(f"the share of repeats must be from 0 to 1, not {repeats:g}")
    out = Path(out)
    paths = [out.with_name(f"{out.stem}-{n}.csv") for n in range(1, annotators + 1)]
    key_path = out.with_name(f"{out.stem}-key.json")
    for path in (*paths, key_path):
        if path.exists():
            raise InputError(f"{path}: already exists; choose another name")
    dealer = random.Random(f"deal {seed}")
    dealt: list[list[Item]] = [[] for _ in range(annotators)]
    order = list(range(annotators))
    for at, item in enumerate(dealer.sample(found, len(found))):
        if at % annotators == 0:
            dealer.shuffle(order)
        for step in range(each):
            dealt[order[(at + step) % annotators]].append(item)
    key: dict[str, Any] = {"questions": name, "hash": questions.hash, "source": Path(source).name}
    codes: dict[str, dict[str, Any]] = {}
    for n, (path, mine) in enumerate(zip(paths, dealt, strict=True), 1):
        drawn = random.Random(f"sheet {seed} {n}")
        again = drawn.sample(mine, round(repeats * len(mine)))
        shown = drawn.sample(mine, len(mine)) + drawn.sample(again, len(again))
        apart = any(_asked(questions, item) for item in shown)
        lines = [_head(questions, shown, apart)]
        for place, item in enumerate(shown):
            code = digest([seed, n, place, item.name], 10)
            codes[code] = {"item": item.name, "lang": item.lang, "rater": str(n)}
            codes[code] |= {"repeat": place >= len(mine), "shown": _prints(item)}
            blank = [""] * (len(questions.questions) + len(questions.about))
            asked = [_asked(questions, item)] if apart else []
            texts = map(sheets.show, _padded(item, questions))
            lines.append([code, *texts, *asked, *blank])
        sheets.write(path, lines)
    disk.replace_bytes(key_path, [json.dumps(key | {"rows": codes}, indent=1).encode() + b"\n"])
    return [*paths, key_path]


def _padded(item: Item, questions: Questions) -> tuple[str, ...]:
    """Return the cells of an item: one, or two for a pair, whose contrasts share the second."""
    if questions.unit == "sentence":
        return item.texts
    return (item.texts[0], "\n".join(item.texts[1:]))


def _prints(item: Item) -> str:
    return digest(list(item.texts), 12)


def _asked(questions: Questions, item: Item) -> str:
    """Return the questions in the wording of the item's domain; "" if the domain has none."""
    found = []
    for name, question in questions.questions.items():
        texts = question.domains.get(item.domain, {})
        if text := texts.get(item.lang) or ("" if item.lang in question.text else texts.get("en")):
            found.append(f"{name}: {text}")
    return "\n".join(found)


def _head(questions: Questions, shown: Sequence[Item], apart: bool) -> list[str]:
    """Write the heads of a sheet. apart: rows have questions of their own, by their domain."""
    texts = ["sentence"] if questions.unit == "sentence" else ["first", "second"]
    lang = shown[0].lang if shown else ""
    asked = [
        f"{name}: {question.text.get(lang) or question.text['en']}"
        for name, question in questions.questions.items()
    ]
    return [
        "row",
        *texts,
        *(["asked here"] if apart else []),
        *asked,
        *(f"{name} (only if you want it stored)" for name in questions.about),
    ]


# --- collect


def collect(paths: Sequence[str | Path], key: str | Path) -> tuple[list[Row], list[str]]:
    """Read the sheets of annotators.

    An annotator's age group and gender are taken from the first row in which they are given.

    paths: the sheets, as any spreadsheet saved them. key: the key file of the export. Returns the
    votes (`item, rater, question, label, …`), and a line on each cell that cannot be used. Raises
    InputError for files that are not such sheets, or not the key.
    """
    try:
        known = parsed(packs.read_text(Path(key)))
        if not fits(known, dict[str, Any]) or not isinstance(known["questions"], str):
            raise TypeError
        questions, codes = load(known["questions"]), known["rows"]
        if not fits(codes, dict[str, dict[str, Any]]) or not isinstance(known["hash"], str):
            raise TypeError
        for row in codes.values():
            if not all(isinstance(row[name], str) for name in ("item", "rater", "lang")):
                raise TypeError
            if type(row["repeat"]) not in (bool, int):
                raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{key}: is not the key of an export ({error})") from None
    votes: list[Row] = []
    problems: list[str] = []
    if questions.hash != known["hash"]:
        problems.append(f"{key}: the questions {questions.name!r} have changed since the export")
    seen: dict[str, str] = {}
    for path in map(Path, paths):
        sheet = sheets.read(path, ["row"])
        place = {
            sheets.head_key(head.split(":")[0].split("(")[0]): at
            for at, head in enumerate(sheet.heads)
        }
        lacks = [
            name for name in ("row", *questions.questions) if sheets.head_key(name) not in place
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
            for name, question in questions.questions.items():
                said = _cell(cells, place, name)
                label = question.answers.get(_fold(said), "")
                if said and not label:
                    problems.append(f"{where}: {said[:40]!r} is not an answer to {name!r}")
                vote = {
                    "item": row["item"],
                    "rater": row["rater"],
                    "question": name,
                    "label": label,
                }
                vote |= {"lang": row["lang"], "repeat": int(row["repeat"])}
                votes.append(vote | {"age_group": "", "gender": ""} | about)
    missing = [code for code in codes if code not in seen]
    if missing:
        problems.append(f"{len(missing)} of {len(codes)} rows are missing")
    return votes, problems


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
    the table. foreign: questions with votes that are not in the file of questions; `yes` counts as
    a vote to keep. odd: labels that are no answer to their question, with their number of votes.
    """

    rows: list[Row]
    columns: list[str]
    counts: dict[str, int]
    unknown: list[str]
    foreign: list[str]
    odd: dict[str, int]


def keep(
    source: str | Path,
    votes: Sequence[str | Path],
    name: str = "aqbileq",
    rule: str = "",
    model: str = "",
    lang: str = "",
) -> Kept:
    """Count votes, and decide for every row whether it is kept.

    A row is kept if it passes the rule on every question. A rater's second vote on an item is not
    counted here; it serves to measure self-agreement.

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
    usable, unknown = _usable(votes, rows, found)
    where = ", ".join(map(str, votes))
    if not usable:
        raise InputError(f"{where}: no vote on an item of {source}")
    ballots.need_distinct((vote["rater"] for vote in usable), where)
    usable = _answers(usable, questions, where)
    counted: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for vote in usable:
        counted[vote["item"]][vote["question"]][vote["label"]] += 1
    asked = list(dict.fromkeys(vote["question"] for vote in usable))
    models = {
        q: _modelled([v for v in usable if v["question"] == q], model) for q in asked if model
    }
    step = f"validate/{VERSION}|{questions.name}@{questions.hash}|rule:{decide.text}"
    step += f"|model:{model}" if model else ""
    counts: Counter[str] = Counter()
    for item in found:
        why = _reasons(counted[item.name], asked, questions, decide)
        counts["left out" if why else "kept"] += 1
        for at in item.rows:
            old = rows[at]
            values: Row = {
                "votes": {q: dict(sorted(counted[item.name][q].items())) for q in asked},
                "kept": not why,
                "why": "; ".join(why),
            }
            for question, labels in models.items():
                label, probability = labels.get(item.name, ("", None))
                values |= {f"{question}_model": label, f"{question}_model_p": probability}
            rows[at] = old | values | {tables.HISTORY: tables.history([old], step)}
    extra = [f"{q}_model{end}" for q in models for end in ("", "_p")]
    columns = tables.columns(rows, [*COLUMNS, *extra])
    foreign = [q for q in asked if q not in questions.questions]
    answers = {q: set(one.answers.values()) for q, one in questions.questions.items()}
    odd = Counter(
        v["label"] for v in usable if v["label"] not in answers.get(v["question"], {v["label"]})
    )
    return Kept(rows, columns, dict(counts), unknown, foreign, odd)


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
            return own.answers.get(_fold(label), label)
    return label


def _reasons(
    counted: Mapping[str, Counter[str]], asked: Sequence[str], questions: Questions, rule: Rule
) -> list[str]:
    """List why an item is not kept: one reason for each question on which its votes do not pass."""
    why = []
    for name in asked:
        known = questions.questions.get(name)
        one = counted.get(name, Counter())
        kept, reason = rule.decide(
            sum(one[label] for label in (known.keep if known else ("yes",))), one.total()
        )
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
    missing = [name for name in questions.questions if name not in there]
    if missing and len(missing) < len(questions.questions):
        raise InputError(f"{where}: no vote on {missing[0]!r}, which {questions.name!r} asks, too")
    for name in registry.names(FOLDER) if missing and there else ():
        if shared := there & load(name).questions.keys():
            raise InputError(
                f"{where}: votes on {min(shared)!r}, a question of {name!r} and not of "
                f"{questions.name!r}; give --questions {name}"
            )
    return [
        vote | {"label": meant(vote["question"], vote["label"], questions.name)}
        if vote["question"] in questions.questions
        else vote
        for vote in votes
    ]


def _usable(
    votes: Sequence[str | Path], rows: Sequence[Row], found: Sequence[Item]
) -> tuple[list[Row], list[str]]:
    """Read each rater's first vote on items of the table, and list voted items not in the table."""
    named = {item.name for item in found}
    # Votes from other tools may name an item by the id of one of its rows.
    by_row = {rows[at]["id"]: item.name for item in found for at in item.rows}
    usable, unknown = [], []
    for vote in read_votes(votes):
        item = vote["item"] if vote["item"] in named else by_row.get(vote["item"])
        if item is None:
            unknown.append(vote["item"])
        elif vote["label"] and not vote["repeat"]:
            usable.append(vote | {"item": item})
    return usable, list(dict.fromkeys(unknown))


def need_votes(source: str | Path, votes: Sequence[str | Path]) -> None:
    """Raise InputError if no vote is about a row of the table."""
    rows = [row for _, row in tables.read(source)]
    known = {cell_text(row.get(name)) for row in rows for name in ("id", "pair", "item")} - {""}
    known |= {f"{cell_text(row.get('pair'))}/{cell_text(row.get('lang'))}" for row in rows}
    if not any(vote["item"] in known for vote in read_votes(votes)):
        raise InputError(f"{', '.join(map(str, votes))}: no vote on an item of {source}")


def read_votes(paths: Sequence[str | Path]) -> Iterable[Row]:
    """Yield votes from tables in long form: item, rater, question (or `label`), label, repeat."""
    seen: set[tuple[str, str, str]] = set()
    for path in paths:
        for row in ballots.read(path, tables.read(path)):
            key = (row["item"], row["reviewer"], row["question"])
            again = row["again"] or key in seen
            if row["answer"]:
                seen.add(key)
            yield {
                "item": row["item"],
                "rater": row["reviewer"],
                "question": row["question"],
                "label": row["answer"],
                "repeat": again,
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
