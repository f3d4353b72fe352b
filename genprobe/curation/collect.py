"""Ask people for stereotypes that they know, in the terminal or with a form in one HTML file.

An elicitation pack is a folder of `prompts/elicitation` with one file per language: a warning, a
question of consent, questions about the respondent, and domains, each with tasks. A task has one
message, or two, of which the second is shown after the first is answered (RuBia, section 3.7), and
maybe further ones, which may be left empty. Whatever else the respondent knows is asked at the end,
if the pack has `more` (PBBQ, section 3.2).
`order = "drawn"` draws a domain and a task by their weights, again and again, as RuBia's bot does;
`"all"` goes through all tasks once, as AfriStereo's survey does. A respondent can skip a task,
switch to another one or leave at any time.

Each answer is a row with the columns `id, respondent, pack, lang, domain, task`, the columns that
the task gives (`answer`, or `pro` and `anti`), `about_…` (empty without consent) and `history`. No
name, time or address is recorded: `respondent` is a random code, with which the respondent can
have the answers deleted.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import re
import secrets
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.errors import InputError, NoRows
from genprobe.files import Row, disk, door
from genprobe.files.cells import cell_text
from genprobe.files.rows import Rows, Table, rows_of
from genprobe.limits import exceeded, limit, parsed
from genprobe.records import digest, fits
from genprobe.resources import packs, registry
from genprobe.text import whole_number

VERSION = "1"
FOLDER = "elicitation"
KINDS = ("one", "many", "text")
ORDERS = ("all", "drawn")
DELETED = "deleted-codes.json"  # file beside the answers
FIXED = ("id", "respondent", "pack", "lang", "domain", "task")
_SIGNS = "23456789abcdefghjkmnpqrstuvwxyz"  # characters of a code; no two look alike
_TEXTS = (
    *("title", "source", "review", "order", "warning"),
    *("consent", "consent_yes", "consent_no", "consent_about"),
)
# Shown after the consent, if a pack has them: how to write answers, whether that is understood, and
# the same in other words for those who ask for more.
_FORMAT = ("format", "format_question", "format_yes", "format_more", "clarification")
MORE = "more"  # domain and task of what a respondent adds at the end
JOINED = "; "  # between several choices of one question
_WORDS = (
    *("next", "back", "skip", "switch", "leave", "save", "stored", "done", "saved", "code"),
    *("again", "wipe", "sure", "optional", "example", "task", "other", "answered", "choose"),
    *("required", "help"),
)


@dataclass(frozen=True)
class About:
    """A question about the respondent: `one` or `many` of the choices, or any `text`.

    other: other words than the choices may be written, too.
    """

    id: str
    text: str
    kind: str
    choices: tuple[str, ...]
    other: bool


@dataclass(frozen=True)
class Task:
    """A task: messages for the respondent.

    first, second: the messages; second is "" if there is only one. then: further messages, which
    may be left unanswered. gives: columns of the answers.
    """

    id: str
    weight: float
    first: str
    second: str
    gives: tuple[str, ...]
    then: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        """Return all messages, in order."""
        return (self.first, *([self.second] if self.second else []), *self.then)

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the columns that an answer must fill."""
        return self.gives[: 2 if self.second else 1]


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
    def every(self) -> tuple[Domain, ...]:
        """Return the domains, and the one of what a respondent adds at the end."""
        if MORE not in self.texts:
            return self.domains
        task = Task(MORE, 1, self.texts[MORE], "", ("answer",))
        return (*self.domains, Domain(MORE, self.words["other"], 1, (task,)))

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns of a table of answers."""
        gives = dict.fromkeys(c for d in self.every for task in d.tasks for c in task.gives)
        return [*FIXED, *gives, *(f"about_{one.id}" for one in self.about), tables.HISTORY]


def names() -> list[str]:
    """List the names of the elicitation packs."""
    return sorted({path.parent.name for path in registry.files(FOLDER, "*/*.toml")})


def load(name: str, lang: str) -> Pack:
    """Read a pack in a language. Raises InputError if it does not exist or is malformed."""
    if name not in names():
        raise registry.unknown("pack of elicitation", name, names())
    code = tables.language(lang)
    path = registry.path(FOLDER, name, f"{code}.toml")
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in registry.files(f"{FOLDER}/{name}")))
        raise InputError(f"{name} does not exist in {code!r}, only in {there}; translate one")
    return read_pack(path)


_TASKS = list[dict[str, Any]]
# What may stand in a question about the respondent, in a domain and in a task.
_PART = dict.fromkeys(("id", "text", "kind", "title", "first", "second"), str) | {
    **dict.fromkeys(("choices", "gives", "then"), list[str]),
    "tasks": _TASKS,
}


def read_pack(path: Path) -> Pack:
    """Read and check one file of a pack. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    known = {*_TEXTS, *_FORMAT, MORE, "about", "domains", "words"}
    for key in sorted(row.keys() - known):
        raise InputError(f"{path}: unknown key {key!r}; known: {', '.join(sorted(known))}")
    optional = [*(_FORMAT if set(_FORMAT) & row.keys() else ()), *({MORE} & row.keys())]
    for key in (*_TEXTS, *optional):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise InputError(f"{path}: {key!r} must be a text")
    if row["order"] not in ORDERS:
        raise InputError(f"{path}: 'order' must be one of {', '.join(ORDERS)}")
    words = packs.table(row, "words", path)
    lacks = [key for key in _WORDS if not isinstance(words.get(key), str)]
    if lacks:
        raise InputError(f"{path}: [words] lacks {lacks[0]!r}")
    packs.shaped(row, {"about": list[dict[str, Any]], "domains": dict[str, dict[str, Any]]}, path)
    parts = [*row.get("about", ()), *row.get("domains", {}).values()]
    for part in (*parts, *(t for p in parts if fits(p.get("tasks"), _TASKS) for t in p["tasks"])):
        packs.shaped(part, _PART, path)
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
        texts={key: row[key].strip() for key in (*_TEXTS, *optional)},
        about=about,
        domains=domains,
        words=dict(words),
        hash=packs.file_hash(path),
    )


# Domain and task of RuBia's pack -> their names in the study's public repository, if others.
_STUDY = {"nationality": "national", "lgbtq": "diverse", "freeform_prof_pos": "freeform_prof"}
_GREETING = Path("interface") / "greeting.txt"


def published(pack: Pack, folder: str | Path) -> tuple[Pack, list[str]]:
    """Replace the texts of RuBia's pack by the study's own, from a copy of its public repository.

    folder: the copy, or its folder Data-Collection: `tasks/DOMAIN/TASK.txt`, with a line `===`
    between the two messages (App. A.1), and `interface/greeting.txt`, the warning. Returns the
    pack, and the tasks that the copy lacks, which keep our words. Raises InputError for another
    pack or language, or a folder without these files.
    """
    if (pack.name, pack.lang) != ("rubia", "ru"):
        raise InputError("--from reads the study's texts of rubia, in Russian; give --lang ru")
    places = [Path(folder), Path(folder) / "Data-Collection"]
    home = next((place for place in places if (place / _GREETING).is_file()), None)
    if home is None:
        raise InputError(f"{folder}: no Data-Collection/{_GREETING}, as RuBia's repository has")
    door.need_own(home)
    lacks: list[str] = []
    read = [packs.read_text(home / _GREETING).strip()]
    domains = []
    for domain in pack.domains:
        tasks = []
        for task in domain.tasks:
            name = f"{_STUDY.get(task.id, task.id)}.txt"
            path = home / "tasks" / _STUDY.get(domain.id, domain.id) / name
            if not path.is_file():
                lacks.append(f"{domain.id}/{task.id}")
                tasks.append(task)
                continue
            first, mark, second = packs.read_text(path).partition("===")
            if not mark or not first.strip() or not second.strip():
                raise InputError(f"{path}: needs two messages, with a line === between them")
            read += [first.strip(), second.strip()]
            tasks.append(replace(task, first=read[-2], second=read[-1]))
        domains.append(replace(domain, tasks=tuple(tasks)))
    texts = pack.texts | {"warning": read[0]}
    hash_ = f"{pack.hash}+study-{digest(read, 12)}"
    return replace(pack, texts=texts, domains=tuple(domains), hash=hash_), lacks


def _about(part: dict[str, Any]) -> About:
    choices = tuple(part.get("choices", ()))
    if part["kind"] not in KINDS or (part["kind"] != "text") != bool(choices):
        raise ValueError(f"'kind' of {part['id']!r}")
    if any(JOINED.strip() in choice for choice in choices):
        raise ValueError(f"'choices' of {part['id']!r}: a semicolon")
    return About(part["id"], part["text"], part["kind"], choices, bool(part.get("other", False)))


def _domain(name: str, part: dict[str, Any]) -> Domain:
    tasks = []
    for one in part["tasks"]:
        gives, then = tuple(one["gives"]), tuple(one.get("then", ()))
        task = Task(one["id"], _weight(one), one["first"], one.get("second", ""), gives, then)
        if len(gives) != len(task.messages) or set(gives) & {*FIXED, tables.HISTORY}:
            raise ValueError(f"'gives' of {one['id']!r}")
        tasks.append(task)
    return Domain(name, part["title"], _weight(part), tuple(tasks))


def _weight(part: dict[str, Any]) -> float:
    weight = part.get("weight", 1)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < 1e9:
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
        _show_format(pack, ask, say)
        say(words["help"])
        about = _ask_about(pack, ask, say)

        def put(domain: Domain, task: Task) -> None:
            """Ask for a task, and write its answer."""
            try:
                answers = _ask_task(domain, task, ask, say)
            except Switch:
                return
            if answers is None:
                return
            row = {"id": f"{code}-{len(rows) + 1}", "respondent": code, "pack": pack.name}
            row |= {"lang": pack.lang, "domain": domain.id, "task": task.id}
            rows.append(row | answers | about | {tables.HISTORY: [pack.step]})
            tables.write(out, [*before, *rows], _columns(before, pack))

        with contextlib.suppress(Leave):
            for domain, task in _tasks(pack, drawn):
                put(domain, task)
        for domain in pack.every[len(pack.domains) :]:
            put(domain, domain.tasks[0])
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


def _choose_many(
    question: About,
    words: dict[str, str],
    ask: Callable[[str], str],
    say: Callable[[str], None],
) -> str:
    """Ask for any of the choices, by numbers separated by commas; return them joined."""
    say(question.text)
    for number, choice in enumerate(question.choices, 1):
        say(f"  {number}. {choice}")
    prompt = f"{words['choose']} (1, 2, …)" + (f" / {words['other']}" if question.other else "")
    while True:
        found = several(_line(prompt, ask), question)
        if found is not None:
            return found


def several(text: str, question: About) -> str | None:
    """Read several choices from a text: numbers, words, or other words where these are allowed.

    Returns them joined by JOINED, each once; None if a part is none of them.
    """
    parts = [part.strip() for part in re.split(r"[,;،；，]", text) if part.strip()]
    if text.strip() in question.choices:
        parts = [text.strip()]  # a choice with a comma
    found = []
    for part in parts:
        at = whole_number(part) or 0
        if 1 <= at <= len(question.choices):
            found.append(question.choices[at - 1])
        elif part in question.choices or (question.other and not part.isdecimal()):
            found.append(part)
        else:
            return None
    return JOINED.join(dict.fromkeys(found))


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
        if 1 <= (at := whole_number(text) or 0) <= len(choices):
            return choices[at - 1]
        if not text or text in choices or (other and not text.isdecimal()):
            return text


def _show_format(pack: Pack, ask: Callable[[str], str], say: Callable[[str], None]) -> None:
    """Show how to write answers until the respondent says that it is understood.

    Who asks for more reads it in other words, with what goes wrong and how it is right.
    """
    if "format" not in pack.texts:
        return
    choices = pack.texts["format_yes"], pack.texts["format_more"]
    shown = "format"
    while True:
        say(pack.texts[shown])
        if (
            _choose(pack.texts["format_question"], choices, False, pack.words, ask, say)
            != choices[1]
        ):
            return
        shown = "clarification"


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
            elif one.kind == "many":
                empty[name] = _choose_many(one, pack.words, ask, say)
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
    answers: Row = {}
    for message, column in zip(task.messages, task.gives, strict=True):
        say(message if answers else f"{domain.title}: {message}")
        answers[column] = _line("", ask)
        if not answers[column] and column in task.needed:
            return None
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
                    {"id": t.id, "weight": t.weight, "messages": t.messages, "gives": t.gives}
                    | {"needed": len(t.needed)}
                    for t in domain.tasks
                ],
            }
            for domain in pack.every
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
    disk.replace_bytes(Path(out), [html.encode("utf-8")])


# --- many files, one table


def merge(
    paths: Sequence[str | Table], pack: Pack, out: str | Path | None = None
) -> tuple[list[Row], list[str]]:
    """Combine the files of several respondents into one table.

    paths: files of answers, from the form or from `interview`. out: the table that will be written.
    Returns the rows and the columns. An answer that is in two files is kept once; one that was
    deleted (`delete`) from a table beside a file, or beside `out`, stays away. Raises InputError
    for answers to another pack, and for two different answers with the same id.
    """
    found: dict[str, Row] = {}
    for path in paths:
        for row in _answers(rows_of(path), pack, must=True):
            if found.setdefault(row["id"], row) != row:
                raise InputError(
                    f"{path}: the answer {row['id']!r} differs between files; correct one"
                )
    rows = undeleted(list(found.values()), [*paths, *([out] if out else [])])
    return rows, _columns(rows, pack)


def undeleted(rows: Sequence[Row], paths: Sequence[str | Table]) -> list[Row]:
    """Leave out the answers of respondents who had theirs deleted from a table beside `paths`."""
    folders = sorted({Path(path).parent for path in paths if not isinstance(path, Rows)})
    deleted = [kept for folder in folders if (kept := _deleted(folder))]

    def gone(code: str) -> bool:
        ways = {code, _spelled(code)}
        return any(_hashed(way, kept["salt"]) in kept["codes"] for kept in deleted for way in ways)

    codes = {code for code in {cell_text(row.get("respondent")) for row in rows} if gone(code)}
    return [row for row in rows if cell_text(row.get("respondent")) not in codes]


def delete(path: str | Path, code: str) -> tuple[int, list[str]]:
    """Delete all answers of the respondent with a code from a table.

    The code, in capitals or not, is remembered, hashed, in `DELETED` beside the table, so that
    `merge` does not bring the answers back from files in that folder; it is remembered, too, if the
    table has no answer with it. Returns the number of answers, and a line on each file of the
    folder, and of the folders in it, in which the code still stands or that cannot be read.
    """
    path, code = Path(path), _spelled(code)
    if not code:
        raise InputError("--delete: no code is given; the respondent has it")
    rows = [row for _, row in _there(path)]
    if rows:
        tables.need(path, rows[0], ("respondent",), "the codes")
    kept = [row for row in rows if _spelled(cell_text(row.get("respondent"))) != code]
    deleted = _deleted(path.parent)
    salt = deleted.get("salt") or secrets.token_hex(16)
    codes = sorted({*deleted.get("codes", ()), _hashed(code, salt)})
    # Remembered first: a crash between the two must not leave answers that nobody remembers.
    text = json.dumps({"salt": salt, "codes": codes}, indent=1) + "\n"
    disk.replace(path.parent / DELETED, [text])
    if len(kept) < len(rows):
        tables.write(path, kept, list(dict.fromkeys(name for row in rows for name in row)))
    return len(rows) - len(kept), _still_in(path.parent, code)


def _there(path: Table) -> list[tuple[int, Row]]:
    """Read a table that may not be there yet, or of which everything was deleted."""
    with contextlib.suppress(NoRows):
        return tables.read(path) if path.exists() else []
    return []


def _spelled(code: str) -> str:
    """Spell a code as `collect` gives it, whatever capitals, blanks and hyphens were typed."""
    plain = "".join(code.split()).casefold()
    signs = re.sub("[-\u2010-\u2015\u2212]", "", plain)
    return "-".join(re.findall("....", signs)) if re.fullmatch("[0-9a-z]{12}", signs) else plain


def _hashed(code: str, salt: str) -> str:
    """Hash a code. It has 59 random bits, so that nobody finds it by trying."""
    return digest([salt, code], 32)


def _deleted(folder: Path) -> dict[str, Any]:
    """Read the salt and the hashed codes that were deleted in a folder; {} if there are none."""
    path = folder / DELETED
    if not path.exists():
        return {}
    try:
        found = parsed(packs.read_text(path))
        salt, codes = found["salt"], found["codes"]
    except (ValueError, KeyError, TypeError):
        salt, codes = None, []
    if isinstance(salt, str) and isinstance(codes, list) and all(isinstance(c, str) for c in codes):
        return {"salt": salt, "codes": frozenset(codes)}
    raise InputError(
        f"{path}: damaged; restore it from a copy, as answers that were deleted would come back"
    )


def _still_in(folder: Path, code: str) -> list[str]:
    """Say in which files of a folder, and of the folders in it, a code stands.

    Workbooks and Parquet are opened, .gz is unpacked; folders whose name begins with a dot are not
    entered.
    """
    bare = code.replace("-", "")
    ways = [code, bare] if _spelled(bare) == code else [code]
    said = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names)):
            if path.is_symlink() or not path.is_file():
                continue
            try:
                if path.suffix.lower() in (".xlsx", ".parquet"):
                    rows = (str(row).casefold() for _, row in tables.read(path))
                    there = any(way in row for row in rows for way in ways)
                else:
                    there = _holds(path, ways)
            except (InputError, OSError, EOFError, zlib.error) as error:
                why = str(error).removeprefix(f"{path}: ")
                said.append(
                    f"{path}: cannot be looked into ({why}); look whether the code is in it"
                )
                continue
            if there:
                said.append(f"{path}: the code still stands here; delete its rows, or the file")
    return said


def _holds(path: Path, ways: Sequence[str]) -> bool:
    """Tell whether a text, in UTF-8 or UTF-16, packed or not, stands in a file of any length."""
    wanted = [way.encode(form) for way in ways for form in ("utf-8", "utf-16-le", "utf-16-be")]
    longest, most, tail = max(map(len, wanted)), limit("unpacked"), b""
    with door.reading(path) as raw:
        packed = path.suffix.lower() == ".gz"
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        while part := file.read(1 << 20):
            part = tail + part.lower()
            if any(way in part for way in wanted):
                return True
            tail = part[-longest:]
            if packed and file.tell() > most:
                raise exceeded(path, "unpacked")
    return False


def _answers(path: Table, pack: Pack, must: bool = False) -> list[Row]:
    rows = []
    for number, row in tables.read(path) if must else _there(path):
        lacks = [name for name in FIXED if not cell_text(row.get(name))]
        if lacks:
            raise InputError(f"{path}, row {number}: no {lacks[0]!r}; are these collected answers?")
        wrong = next((name for name in FIXED if not isinstance(row[name], str | int | float)), "")
        if wrong:
            raise InputError(f"{path}, row {number}: {wrong!r} is not a text")
        row |= {name: cell_text(row[name]) for name in FIXED}
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
