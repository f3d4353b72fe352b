"""Ask people for stereotypes that they know, in the terminal or with a form in one HTML file.

An elicitation pack is a folder of `prompts/elicitation` with one file per language: a warning, a
question of consent, questions about the respondent, and domains, each with tasks. A task has one
message, or two, of which the second is shown after the first is answered (RuBia, section 3.7).
`order = "drawn"` draws a domain and a task by their weights, again and again, as RuBia's bot does;
`"all"` goes through all tasks once, as AfriStereo's survey does. A respondent can skip a task,
switch to another one or leave at any time.

Each answer is a row with the columns `id, respondent, pack, lang, domain, task`, the columns that
the task gives (`answer`, or `pro` and `anti`), `about_…` (empty without consent) and `history`. No
name, time or address is recorded: `respondent` is a random code, with which the respondent can
have the answers deleted.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import Row
from genprobe.files.cells import cell_text
from genprobe.files.disk import replace_bytes
from genprobe.resources import packs, registry

VERSION = "1"
FOLDER = "elicitation"
KINDS = ("one", "text")
ORDERS = ("all", "drawn")
FIXED = ("id", "respondent", "pack", "lang", "domain", "task")
_SIGNS = "23456789abcdefghjkmnpqrstuvwxyz"  # characters of a code; no two look alike
_TEXTS = (
    *("title", "source", "review", "order", "warning"),
    *("consent", "consent_yes", "consent_no", "consent_about"),
)
_WORDS = (
    *("next", "back", "skip", "switch", "leave", "save", "stored", "done", "code", "again"),
    *("wipe", "sure", "optional", "example", "task", "other", "answered", "choose", "required"),
    "help",
)


@dataclass(frozen=True)
class About:
    """A question about the respondent: `one` of the choices (or other words), or any `text`."""

    id: str
    text: str
    kind: str
    choices: tuple[str, ...]
    other: bool


@dataclass(frozen=True)
class Task:
    """A task: one or two messages for the respondent.

    first, second: the messages; second is "" if there is only one. gives: columns of the answers.
    """

    id: str
    weight: float
    first: str
    second: str
    gives: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """Tasks on one subject, and the weight with which it is drawn."""

    id: str
    title: str
    weight: float
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Pack:
    """The texts and questions for respondents, in one language."""

    name: str
    lang: str
    texts: dict[str, str]
    about: tuple[About, ...]
    domains: tuple[Domain, ...]
    words: dict[str, str]
    hash: str

    @property
    def step(self) -> str:
        """Return the first line of the history of an answer."""
        return f"collect/{VERSION}|pack:{self.name}-{self.lang}@{self.hash}"

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns of a table of answers."""
        gives = dict.fromkeys(c for d in self.domains for task in d.tasks for c in task.gives)
        return [*FIXED, *gives, *(f"about_{one.id}" for one in self.about), tables.HISTORY]


def names() -> list[str]:
    """List the names of the elicitation packs."""
    return sorted({path.parent.name for path in (registry.PROMPTS / FOLDER).glob("*/*.toml")})


def load(name: str, lang: str) -> Pack:
    """Read a pack in a language. Raises InputError if it does not exist or is malformed."""
    if name not in names():
        raise registry.unknown("pack of elicitation", name, names())
    code = tables.language(lang)
    path = registry.PROMPTS / FOLDER / name / f"{code}.toml"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.toml")))
        raise InputError(f"{name} does not exist in {code!r}, only in {there}; translate one")
    return read_pack(path)


def read_pack(path: Path) -> Pack:
    """Read and check one file of a pack. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    known = {*_TEXTS, "about", "domains", "words"}
    for key in sorted(row.keys() - known):
        raise InputError(f"{path}: unknown key {key!r}; known: {', '.join(sorted(known))}")
    for key in _TEXTS:
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise InputError(f"{path}: {key!r} must be a text")
    if row["order"] not in ORDERS:
        raise InputError(f"{path}: 'order' must be one of {', '.join(ORDERS)}")
    words = row.get("words", {})
    lacks = [key for key in _WORDS if not isinstance(words.get(key), str)]
    if lacks:
        raise InputError(f"{path}: [words] lacks {lacks[0]!r}")
    try:
        about = tuple(_about(part) for part in row.get("about", []))
        domains = tuple(_domain(name, part) for name, part in row["domains"].items())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: {error} is missing or wrong") from None
    for domain in domains:
        ids = [task.id for task in domain.tasks]
        if not ids or len(set(ids)) < len(ids):
            raise InputError(f"{path}: {domain.id}: needs tasks, each with its own id")
    if not domains or len({one.id for one in about}) < len(about):
        raise InputError(f"{path}: needs domains, and questions [[about]] each with its own id")
    return Pack(
        name=path.parent.name,
        lang=path.stem,
        texts={key: row[key] for key in _TEXTS},
        about=about,
        domains=domains,
        words=dict(words),
        hash=packs.file_hash(path),
    )


def _about(part: dict[str, Any]) -> About:
    choices = tuple(part.get("choices", ()))
    if part["kind"] not in KINDS or (part["kind"] == "one") != bool(choices):
        raise ValueError(f"'kind' of {part['id']!r}")
    return About(part["id"], part["text"], part["kind"], choices, bool(part.get("other", False)))


def _domain(name: str, part: dict[str, Any]) -> Domain:
    tasks = []
    for one in part["tasks"]:
        gives, second = tuple(one["gives"]), one.get("second", "")
        if len(gives) != (2 if second else 1) or set(gives) & {*FIXED, tables.HISTORY}:
            raise ValueError(f"'gives' of {one['id']!r}")
        tasks.append(Task(one["id"], _weight(one), one["first"], second, gives))
    return Domain(name, part["title"], _weight(part), tuple(tasks))


def _weight(part: dict[str, Any]) -> float:
    weight = part.get("weight", 1)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not weight > 0:
        raise ValueError("'weight'")
    return float(weight)


# --- in the terminal


class Leave(Exception):
    """The respondent wants to stop."""


class Switch(Exception):
    """The respondent wants another task."""


def interview(
    pack: Pack,
    out: str | Path,
    ask: Callable[[str], str],
    say: Callable[[str], None],
    seed: int | None = None,
) -> int:
    """Interview one respondent, add the answers to a table, and return their number.

    Every answer is written to the file before the next question is asked. ask: a function that
    shows a prompt and returns the line that was typed; it raises EOFError at the end. say: a
    function that shows a text. seed: for drawing the tasks. Raises InputError if the table holds
    anything else than answers to this pack.
    """
    before = _answers(Path(out), pack)
    drawn = random.Random(seed)
    code = _code()
    words = pack.words
    rows: list[Row] = []
    say(pack.texts["title"])
    say(pack.texts["warning"])
    yes, no = pack.texts["consent_yes"], pack.texts["consent_no"]
    try:
        if _choose(pack.texts["consent"], (yes, no), False, words, ask, say) != yes:
            return 0
        say(words["help"])
        about = _ask_about(pack, ask, say)
        for domain, task in _tasks(pack, drawn):
            try:
                answers = _ask_task(domain, task, ask, say)
            except Switch:
                continue
            if answers is None:
                continue
            row = {"id": f"{code}-{len(rows) + 1}", "respondent": code, "pack": pack.name}
            row |= {"lang": pack.lang, "domain": domain.id, "task": task.id}
            rows.append(row | answers | about | {tables.HISTORY: [pack.step]})
            tables.write(out, [*before, *rows], _columns(before, pack))
    except (Leave, EOFError, KeyboardInterrupt):  # the respondent must still be told the code
        pass
    if rows:
        say(f"{words['code']}: {code}")
    return len(rows)


def _code() -> str:
    signs = "".join(secrets.choice(_SIGNS) for _ in range(12))
    return f"{signs[:4]}-{signs[4:8]}-{signs[8:]}"


def _line(prompt: str, ask: Callable[[str], str]) -> str:
    text = " ".join(ask(prompt).split())
    if text == "/leave":
        raise Leave
    if text == "/switch":
        raise Switch
    return text


def _choose(
    question: str,
    choices: Sequence[str],
    other: bool,
    words: dict[str, str],
    ask: Callable[[str], str],
    say: Callable[[str], None],
) -> str:
    """Ask for one of the choices, by its number or in words; return "" for an empty line."""
    say(question)
    for number, choice in enumerate(choices, 1):
        say(f"  {number}. {choice}")
    prompt = f"{words['choose']} (1–{len(choices)})" + (f" / {words['other']}" if other else "")
    while True:
        text = _line(prompt, ask)
        if text.isdecimal() and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        if not text or text in choices or (other and not text.isdecimal()):
            return text


def _ask_about(pack: Pack, ask: Callable[[str], str], say: Callable[[str], None]) -> Row:
    empty = {f"about_{one.id}": "" for one in pack.about}
    if not pack.about:
        return empty
    yes, no = pack.texts["consent_yes"], pack.texts["consent_no"]
    try:
        if _choose(pack.texts["consent_about"], (yes, no), False, pack.words, ask, say) != yes:
            return empty
        for one in pack.about:
            name = f"about_{one.id}"
            if one.kind == "one":
                empty[name] = _choose(one.text, one.choices, one.other, pack.words, ask, say)
            else:
                empty[name] = _line(one.text, ask)
    except Switch:
        pass  # there is no task yet to switch from, so the other questions stay empty
    return empty


def _tasks(pack: Pack, drawn: random.Random) -> Any:
    if pack.texts["order"] == "all":
        yield from ((domain, task) for domain in pack.domains for task in domain.tasks)
        return
    while True:
        domain = drawn.choices(pack.domains, [one.weight for one in pack.domains])[0]
        yield domain, drawn.choices(domain.tasks, [one.weight for one in domain.tasks])[0]


def _ask_task(
    domain: Domain, task: Task, ask: Callable[[str], str], say: Callable[[str], None]
) -> Row | None:
    say(f"{domain.title}: {task.first}")
    first = _line("", ask)
    if not first:
        return None
    answers = {task.gives[0]: first}
    if task.second:
        say(task.second)
        second = _line("", ask)
        if not second:
            return None
        answers[task.gives[1]] = second
    return answers


# --- as a form


def form(pack: Pack, out: str | Path) -> None:
    """Write a form as one HTML file that loads nothing: no server, font or external script.

    Answers stay in the browser's storage until the respondent saves them to a file, which `merge`
    reads.
    """
    import jinja2
    from markupsafe import Markup

    source = (Path(__file__).parent / "form.html").read_text(encoding="utf-8")
    data = {
        "name": pack.name,
        "lang": pack.lang,
        "hash": pack.hash,
        "step": pack.step,
        **pack.texts,
        "words": pack.words,
        "about": [
            {"id": a.id, "text": a.text, "kind": a.kind, "choices": a.choices, "other": a.other}
            for a in pack.about
        ],
        "domains": [
            {
                "id": domain.id,
                "title": domain.title,
                "weight": domain.weight,
                "tasks": [
                    {"id": t.id, "weight": t.weight, "first": t.first, "second": t.second}
                    | {"gives": t.gives}
                    for t in domain.tasks
                ],
            }
            for domain in pack.domains
        ],
    }
    # Inside <script>, only a "<" could end the element.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = jinja2.Environment(autoescape=True, keep_trailing_newline=True).from_string(source)
    language = packs.load_language(pack.lang) if pack.lang in registry.names("languages") else None
    html = page.render(
        lang=pack.lang,
        direction=language.direction if language else "ltr",
        title=pack.texts["title"],
        data=Markup(text),
    )
    replace_bytes(Path(out), [html.encode("utf-8")])


# --- many files, one table


def merge(paths: Sequence[str | Path], pack: Pack) -> tuple[list[Row], list[str]]:
    """Combine the files of several respondents into one table.

    paths: files of answers, from the form or from `interview`. Returns the rows and the columns. An
    answer that is in two files is kept once. Raises InputError for answers to another pack, and for
    two different answers with the same id.
    """
    found: dict[str, Row] = {}
    for path in paths:
        for row in _answers(Path(path), pack, must=True):
            if found.setdefault(row["id"], row) != row:
                raise InputError(
                    f"{path}: the answer {row['id']!r} differs between files; correct one"
                )
    rows = list(found.values())
    return rows, _columns(rows, pack)


def delete(path: str | Path, code: str) -> int:
    """Delete all answers of the respondent with a code from a table; return their number.

    Raises InputError if there are none; the table is then unchanged.
    """
    rows = [row for _, row in tables.read(path)]
    tables.need(path, rows[0], ("respondent",), "the codes")
    kept = [row for row in rows if cell_text(row.get("respondent")) != code.strip().lower()]
    if len(kept) == len(rows):
        raise InputError(f"{path}: no answer of {code!r}")
    tables.write(path, kept, list(dict.fromkeys(name for row in rows for name in row)))
    return len(rows) - len(kept)


def _answers(path: Path, pack: Pack, must: bool = False) -> list[Row]:
    if not must and not path.exists():
        return []
    rows = []
    for number, row in tables.read(path):
        lacks = [name for name in FIXED if not cell_text(row.get(name))]
        if lacks:
            raise InputError(f"{path}, row {number}: no {lacks[0]!r}; are these collected answers?")
        if (row["pack"], row["lang"]) != (pack.name, pack.lang):
            raise InputError(
                f"{path}, row {number}: of the pack {row['pack']} in {row['lang']!r}, and not of "
                f"{pack.name} in {pack.lang!r}; name it, and its language with --lang"
            )
        rows.append(row)
    return rows


def _columns(rows: Sequence[Row], pack: Pack) -> list[str]:
    others = dict.fromkeys(name for row in rows for name in row if name not in pack.columns)
    return [*pack.columns[:-1], *others, tables.HISTORY]
