"""Logs of other harnesses, read as rows: each format is a module here, found by its file name.

A format has `ABOUT` (what it is, in a few words), `fits(head)`, which tells by the first row or the
whole document whether a file is of the format, and `read(source)`, which yields (number, row). A
row has any of `COLUMNS`. If its files tell what was asked of which model, and when, `made(source)`
returns both (the time as a text in its order): of several files the latest counts, since a rerun is
no further sample. A file that no format knows is a table of the user's own, if it has rows.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from genprobe import files
from genprobe.errors import InputError
from genprobe.files import bodies, door, zips
from genprobe.files.cells import cell_text
from genprobe.files.rows import Rows, Table
from genprobe.limits import exceeded, limit, parsed
from genprobe.logs._questions import Question, recognised
from genprobe.records import digest
from genprobe.resources import packs, registry
from genprobe.text import many, normalise

__all__ = ["Log", "Question", "Source", "recognised"]

Row = dict[str, Any]

# Columns of a row of a log. `answered_by`: the model that the server says it is. `messages`: all
# messages, if there are more than the prompt. `target`: the answer that the harness counts as
# right; `their_answer`, `their_score`, `their_metric`: what its own parser found, and its score.
# `theirs`: the answer that this amounts to (`_theirs`). `error`: why there is no reply. `data`: all
# that the harness was told about the item.
COLUMNS = (
    *(
        "id",
        "model",
        "answered_by",
        "lang",
        "probe",
        "statement",
        "text",
        "wording",
        "prompt",
        "messages",
    ),
    *("response", "reasoning", "reasoning_from", "finish", "sample"),
    *("temperature", "top_p", "max_tokens"),
    *("target", "their_answer", "their_score", "their_metric", "theirs", "error", "data"),
)
# Our column -> names that others give it, in small letters, the likeliest first.
SYNONYMS = {
    "lang": ("language", "locale", "lang_code", "language_code"),
    "response": (
        *("reply", "completion", "output", "outputs", "generated_text", "generation"),
        *("prediction", "resps", "model_output", "answer", "text"),
    ),
    "prompt": ("input", "instruction", "question", "query"),
    "probe": ("question_kind",),
    "model": ("model_name", "model_id"),
    "reasoning": ("thought", "thinking", "reasoning_content"),
}
_INPUT = "standard-input"  # the name of the file that standard input is written to
ASKED = ("lang", "probe", "statement", "text", "wording")  # what a recognised prompt gives


class Found(NamedTuple):
    """A row with the file that it is from, and its number there.

    unknown: whether neither the row nor the words of its prompt tell what it asks.
    """

    path: Table
    number: int
    row: Row
    unknown: bool = False

    @property
    def where(self) -> str:
        name = "-" if isinstance(self.path, Path) and self.path.stem == _INPUT else self.path
        return f"{name}, row {self.number}"


class Log:
    """What was found under a name: its rows, and what kind of thing it is.

    given: a file, a folder, a pattern (`runs/*.jsonl`), `-` for standard input, or rows in memory.
    renamed: our column -> the column of the file. encoding: of a text that is not in UTF-8. Raises
    InputError if nothing in it can be read. Close it, or use `with`.
    """

    def __init__(
        self, given: str | Table, renamed: Mapping[str, str] | None = None, encoding: str = ""
    ) -> None:
        self.name, self.renamed = str(given), dict(renamed or {})
        self._stack = contextlib.ExitStack()
        try:
            paths = [given] if isinstance(given, Rows) else self._paths(self.name)
            sources = [Source(path, encoding) for path in paths]
            kinds = [(source, _kind(source, len(sources) == 1)) for source in sources]
        except BaseException:
            self.close()
            raise
        self.read = [(source, kind) for source, kind in kinds if kind is not _NOTHING]
        self.left = [source.file.name for source, kind in kinds if kind is _NOTHING]
        if not self.read:
            raise InputError(f"{given}: holds no file of replies that genprobe knows: {known()}")
        # Beside logs of harnesses, tables are something else, such as results.
        logs = [one for one in self.read if one[1] is not None]
        if logs and len(logs) < len(self.read):
            self.left += [source.file.name for source, kind in self.read if kind is None]
            self.read = logs
        self.again: list[tuple[Source, Source]] = []  # files that a later one asks again
        if len(self.read) > 1:
            self._latest()
        self.unknown: Counter[str] = Counter()  # prompts whose question was not recognised
        self.earlier = 0  # answers to recognised questions that stand before the reply of a chat
        self.known = 0  # rows whose question was recognised by the prompt
        self.against: Counter[tuple[str, str, str]] = Counter()  # column, its value, what was asked

    def _latest(self) -> None:
        """Leave of the files that ask the same of the same model only the latest."""
        groups: dict[Any, list[tuple[str, Source]]] = {}
        for source, kind in self.read:
            made = getattr(kind, "made", lambda _: None)(source)
            if made is not None:
                groups.setdefault((kind, made[0]), []).append((made[1], source))
        for files_of in groups.values():
            _, latest = max(files_of, key=lambda one: one[0])
            self.again += [(source, latest) for _, source in files_of if source is not latest]
        old = {id(source) for source, _ in self.again}
        self.read = [one for one in self.read if id(one[0]) not in old]

    def _paths(self, name: str) -> list[Path]:
        if name == "-":
            return [self._stack.enter_context(_input())]
        path = door.expanded(name)
        if path.is_dir():
            door.need_own(path)
            found = sorted(one for one in path.rglob("*") if one.is_file())
            found = [one for one in found if not one.name.startswith(".")]
        elif not path.exists() and glob.has_magic(name):
            found = sorted(map(Path, glob.iglob(str(path), recursive=True)))  # noqa: PTH207
            found = [one for one in found if one.is_file()]
        else:
            return [path]
        if len(found) > limit("members"):
            raise exceeded(name, "members")
        if not found:
            raise InputError(f"{name}: no files there")
        return found

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def told(self) -> str:
        """Say in a line what was found; "" for one table."""
        kinds = Counter(kind.ABOUT if kind else "a table" for _, kind in self.read)
        if kinds == {"a table": 1} and not self.left:
            return ""
        parts = [f"{about} ({many(n, 'file')})" if n > 1 else about for about, n in kinds.items()]
        left = f"; left alone: {_listed(self.left)}" if self.left else ""
        return f"{self.name}: {', '.join(parts)}{left}"

    @property
    def format(self) -> str:
        """Return the names of the formats, joined by `+`."""
        return "+".join(dict.fromkeys(_name(kind) if kind else "table" for _, kind in self.read))

    @property
    def harness(self) -> bool:
        """Tell whether the rows are from a harness, and may have its own answers."""
        return any(kind is not None for _, kind in self.read)

    def rows(self) -> Iterator[Found]:
        """Yield the rows; all of a file have the same columns, with ours under our names."""
        for source, kind in self.read:
            rows = _table(source, self.renamed) if kind is None else self._logged(source, kind)
            lacking: list[str] | None = None  # what the columns of the file do not tell
            for number, row in rows:
                if lacking is None:
                    lacking = [name for name in ASKED if name not in row or kind is not None]
                if isinstance(row.get("probe"), str):
                    row["probe"] = packs.probe_name(row["probe"])
                told = {"lang", "probe"}.isdisjoint(lacking)
                unknown = "prompt" in row and self._recognise(row, () if told else lacking)
                if kind is not None:
                    row["theirs"] = _theirs(row)
                self.earlier += _earlier(row.get("messages"))
                yield Found(source.path, number, row, unknown)

    def _logged(self, source: Source, kind: ModuleType) -> Iterator[tuple[int, Row]]:
        for number, found in kind.read(source):
            data = found.get("data")
            about = _named(data, self.renamed) if isinstance(data, Mapping) else {}
            row = as_row(found)
            for name in ("lang", "probe", "statement", "text", "sample"):
                row[name] = about.get(name) if row[name] is None else row[name]
            for name in self.renamed:  # what the user says beats what the format says
                row[name] = about.get(name, row.get(name))
            yield number, row

    def _recognise(self, row: Row, lacking: Sequence[str]) -> bool:
        """Fill what the prompt of a row tells and the row does not. lacking: the columns to fill.

        Returns whether it is not known what the row asks.
        """
        prompt = row.get("prompt")
        needed = row.get("lang") is None or not (row.get("probe") or row.get("reads"))
        needed = needed and bool(lacking)
        asked = None
        if isinstance(prompt, str):
            asked = recognised(prompt, cell_text(row.get("lang")))
            if asked is not None:
                self.known += needed
                against = list(_against(row, asked))
                self.against.update(against)
                if any(column == "reads" for column, *_ in against):
                    asked = asked._replace(probe="")
            elif needed:
                self.unknown[prompt[:80]] += 1
        for name in lacking:
            if row.get(name) is None:
                row[name] = getattr(asked, name, None) or None
        if asked is not None and "statement" in lacking and row["statement"] is None:
            row["statement"] = digest([asked.lang, asked.text], 12)  # as of a table of statements
        return needed and asked is None


def _earlier(messages: Any) -> int:
    """Count the answers to recognised questions in what was said before the reply of a chat."""
    said = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    pairs = itertools.pairwise(said)
    return sum(
        (question.get("role"), answer.get("role")) == ("user", "assistant")
        and recognised(text_of(question.get("content")), "") is not None
        for question, answer in pairs
    )


def _against(row: Row, asked: Question) -> Iterator[tuple[str, str, str]]:
    """Yield what a row says of its question and the words of its prompt do not: (column, both)."""
    probe = packs.closed_probes().get(asked.probe)
    lang, said, reads = (cell_text(row.get(name)) for name in ("lang", "probe", "reads"))
    with contextlib.suppress(InputError):  # an unknown language is told where it is read
        code = packs.first_of(packs.language_code(lang, mixed=True)) if lang else asked.lang
        if code != asked.lang and not row.get("instruction"):
            yield "lang", lang, asked.lang
    if probe and said in packs.closed_probes() and said != asked.probe:
        yield "probe", said, asked.probe
    if probe and reads in packs.READS and reads != probe.reads:
        yield "reads", reads, probe.reads


class Source:
    """One file, or rows in memory, as the formats see it."""

    def __init__(self, path: Table, encoding: str = "") -> None:
        self.path, self.encoding = path, encoding
        self.file = Path(str(path))
        self._begun: Iterator[tuple[int, Row]] | None = None  # rows that can be read only once

    @functools.cached_property
    def head(self) -> Any:
        """Return the first row, or the whole document; None if it is neither rows nor JSON.

        Raises InputError for a file that cannot be read.
        """
        if self.zipped:
            return dict.fromkeys(self.members)
        if self._whole:
            found = self.document
            return found[0] if isinstance(found, list) and found else found
        rows = self.rows()
        first = next(rows)
        if isinstance(self.path, Rows):
            self._begun = itertools.chain([first], rows)
        return first[1]

    @property
    def _whole(self) -> bool:
        return self.path.suffix.lower() == ".json"

    @property
    def zipped(self) -> bool:
        return self.path.suffix.lower() in (".eval", ".zip")

    @functools.cached_property
    def document(self) -> Any:
        """Parse the file as one JSON text. Raises InputError if it is none."""
        try:
            return parsed(door.content(self.file))
        except ValueError as error:
            lines = self.file.with_suffix(".jsonl").name
            raise InputError(
                f"{self.path}: not JSON ({error}); if each line is an object, rename it to {lines}"
            ) from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from None

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the numbered rows of a table, or of a JSON list of objects."""
        begun, self._begun = self._begun, None
        if begun is not None:
            yield from begun
        elif not self._whole:
            yield from files.numbered_rows(self.path, streamed=True, encoding=self.encoding)
        else:
            for number, row in enumerate(self.document, 1):
                if not isinstance(row, dict):
                    raise InputError(f"{self.path}, row {number}: a row is a JSON object")
                yield number, row

    @functools.cached_property
    def members(self) -> list[str]:
        """List the files in a zip."""
        return zips.names(self.file)

    def member(self, name: str) -> Any:
        """Parse a file in a zip as JSON. Raises InputError if it is none."""
        return zips.content(self.file, name)

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the names of the folders that the file is in; none of rows in memory."""
        return () if isinstance(self.path, Rows) else self.path.resolve().parent.parts

    def beside(self, pattern: str) -> Iterator[Source]:
        """Yield the other files of the same folder whose names fit a pattern; links are left."""
        found = () if isinstance(self.path, Rows) else self.path.parent.glob(pattern)
        for path in sorted(found)[:1000]:
            if path != self.path and path.is_file() and not path.is_symlink():
                yield Source(path, self.encoding)


class _Nothing(ModuleType):
    """What a file is in which no replies are known."""


_NOTHING = _Nothing("nothing")


def _kind(source: Source, alone: bool) -> ModuleType | None:
    """Find the format of a file: None for a table of the user's own, _NOTHING for another file.

    alone: it is the only file that was named, so that InputError is raised where it is nothing.
    """
    try:
        head = source.head
    except InputError:
        if alone:
            raise
        return _NOTHING
    for name in registry.names("logs"):
        kind = registry.module("logs", name)
        if kind.fits(head):
            return kind
    document = source.zipped or (source.path.suffix.lower() == ".json" and head is source.document)
    if isinstance(head, dict) and not document:
        return None if alone or _has_replies(head) else _NOTHING
    if alone:
        raise InputError(f"{source.path}: is none of the logs that genprobe knows: {known()}")
    return _NOTHING


def known() -> str:
    """Name all formats, in a line."""
    about = [registry.module("logs", name).ABOUT for name in registry.names("logs")]
    return "; ".join([*about, "tables (JSONL, CSV, Parquet, XLSX) with a column 'response'"])


def _name(kind: ModuleType) -> str:
    return kind.__name__.rpartition(".")[2]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


@contextlib.contextmanager
def _input() -> Iterator[Path]:
    """Write standard input to a file, which is removed at the end; its bytes give its suffix."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _INPUT
        left = limit("unpacked")
        with door.creating(path) as file:
            while part := sys.stdin.buffer.read(1 << 20):
                left -= len(part)
                if left < 0:
                    raise exceeded("standard input", "unpacked")
                file.write(part)
        with door.reading(path) as again:
            start = again.read(1 << 16)
        yield path.rename(path.with_name(_INPUT + zips.suffix(start)))


# --- tables


def _table(source: Source, renamed: Mapping[str, str]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table, its columns under our names."""
    names: dict[str, str] = {}
    for place, (number, row) in enumerate(source.rows()):
        if not place:
            names = _our_names(row, renamed, source.path)
        yield (
            number,
            {names.get(name, name): value for name, value in row.items()} if names else row,
        )


def _our_names(row: Row, renamed: Mapping[str, str], path: Table) -> dict[str, str]:
    """Return column of a table -> our name, where the two differ.

    Raises InputError if the table lacks a column that the user names.
    """
    names: dict[str, str] = {}
    for ours, theirs in renamed.items():
        if theirs not in row:
            raise registry.unknown("column", theirs, list(map(str, row)))
        if ours != theirs:
            names[theirs] = ours
            if ours in row:
                names[ours] = _free(f"{ours}_data", row)
    plain = {str(name).strip().casefold(): name for name in reversed(row)}
    for ours, others in SYNONYMS.items():
        if ours in row or ours in renamed:
            continue
        like = next((plain[n] for n in (ours, *others) if n in plain), None)
        if like is not None and like not in names and like not in _OURS:
            names[like] = ours
    for ours in ("reads", "finish", "options", "sample", "id"):
        if ours not in row and ours in plain and plain[ours] not in names:
            names[plain[ours]] = ours
    return names


_OURS = frozenset(SYNONYMS) | {"reads", "id", "statement"}


def _free(name: str, row: Row) -> str:
    while name in row:
        name += "_data"
    return name


def _named(data: Mapping[str, Any], renamed: Mapping[str, str]) -> Row:
    """Return what the data of an item say, by our names."""
    plain = {str(name).strip().casefold(): name for name in reversed(list(data))}
    found = {ours: data[theirs] for ours, theirs in renamed.items() if theirs in data}
    names = {"lang": SYNONYMS["lang"], "probe": (), "statement": (), "text": (), "sample": ()}
    for ours, others in names.items():
        like = next((plain[n] for n in (ours, *others) if n in plain), None)
        if like is not None and ours not in found:
            value = data[like]
            if value is None or isinstance(value, str | int):
                found[ours] = value
    return found


def _has_replies(head: Row) -> bool:
    there = {str(name).strip().casefold() for name in head}
    return bool(there & {"response", *SYNONYMS["response"]})


_TEXTS = (
    "prompt",
    "answered_by",
    "response",
    "reasoning",
    "reasoning_from",
    "finish",
    "their_answer",
)


def as_row(found: Mapping[str, Any]) -> Row:
    """Return what a format found as a row with all columns; what is not of its type is missing."""
    row = {name: found.get(name) for name in COLUMNS}
    for name in _TEXTS:
        row[name] = row[name] if isinstance(row[name], str) else None
    row["model"] = row["model"] or row["answered_by"]
    for name in ("id", "model", "target", "their_score", "their_metric"):
        row[name] = row[name] if isinstance(row[name], str | int | float) else None
    if row["response"] is None:
        row["error"] = row["error"] if isinstance(row["error"], str) else "no text"
    else:
        row["error"] = None
    return row


# --- what the formats share


def asked(messages: Any) -> Row:
    """Return `prompt` and `messages` of a list of messages; one that is no message is left out."""
    kept = []
    for one in messages if isinstance(messages, list) else ():
        if isinstance(one, dict) and isinstance(one.get("role"), str):
            kept.append({"role": one["role"][:40], "content": text_of(one.get("content"))})
    prompt = next((m["content"] for m in reversed(kept) if m["role"] == "user"), None)
    return {"prompt": prompt, "messages": kept if len(kept) > 1 else None}


def table_of(row: Any, name: str) -> Row:
    """Return a field of an object that is an object itself; an empty one for anything else."""
    found = row.get(name) if isinstance(row, Mapping) else None
    return found if isinstance(found, dict) else {}


def list_of(row: Any, name: str) -> list[Any]:
    """Return a field of an object that is a list; an empty one for anything else."""
    found = row.get(name) if isinstance(row, Mapping) else None
    return found if isinstance(found, list) else []


def text_of(content: Any) -> str:
    """Return the text of the content of a message; "" if it has none."""
    with contextlib.suppress(TypeError):
        return bodies.said({"choices": [{"message": {"content": content}}]}).text or ""
    return ""


def answered(body: Any) -> Row:
    """Return the reply in the body of a chat completion. Raises LookupError, TypeError, …"""
    said = bodies.said(body)
    return {
        "response": said.text,
        "reasoning": said.reasoning,
        "reasoning_from": said.reasoning_from or None,
        "finish": said.finish,
        "answered_by": said.model or None,
    }


def every_answer(body: Any, sample: int = 0) -> list[Row]:
    """Return the reply of each choice in a body, numbered as samples. Raises as `answered`.

    sample: number of the request among those of its question.
    """
    choices = body["choices"]
    found = [answered({**body, "choices": [choice]}) for choice in choices]
    if not found:
        raise LookupError
    if len(found) == 1:
        return found
    first = sample * len(found)
    return [reply | {"sample": first + at} for at, reply in enumerate(found)]


def of_scored(found: Row, reply: Any, replies: Sequence[Any], cut: Any = None) -> Row:
    """Return what a harness says of a reply, if it is the one of a sample that it scored.

    found: the score of a sample. cut: what its filter left of the replies, which is what it scored.
    Of several replies, those have the score that say the same; where none does, nobody knows which.
    """
    alone = all(one == reply for one in replies) or reply == cut
    return found if alone else dict.fromkeys(found)


def sampling(given: Any, names: Mapping[str, str] | None = None) -> Row:
    """Return the sampling settings in an object. names: ours -> theirs, where they differ."""
    found: Row = {}
    for ours in ("temperature", "top_p", "max_tokens"):
        value = given.get((names or {}).get(ours, ours)) if isinstance(given, Mapping) else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found[ours] = value if number else None
    return found


def first_score(scores: Any) -> tuple[str | None, Any]:
    """Return (metric, value) of the first plain score in an object of scores."""
    for name, value in scores.items() if isinstance(scores, Mapping) else ():
        if isinstance(value, str | int | float):
            return str(name), value
    return None, None


@functools.lru_cache(4096)
def _answer_word(word: str, lang: str) -> str:
    """Return yes or no for an answer word of a language, or of English; "" for another text."""
    plain = normalise(word).strip(" .!\"'«»*")
    for code in dict.fromkeys((lang, "en")):
        try:
            words = packs.load_language(packs.language_code(code)).words
        except InputError:
            continue
        for answer in packs.ANSWERS:
            if plain in {normalise(w) for w in (*words[answer], *words[f"{answer}_alone"])}:
                return answer
    return ""


_RIGHT = {"c": True, "i": False, "1": True, "0": False, "true": True, "false": False}


def _theirs(row: Row) -> str | None:
    """Return the answer that another reader gave a reply: `yes`, `no`, `not yes`, `not no`.

    It is the answer word that its parser cut out of the reply, or else what its score says if the
    target is an answer word: the target where it is right, and not the target where it is wrong.
    None if neither tells.
    """
    if row["response"] is None:
        return None
    lang = cell_text(row["lang"])
    for name in ("their_answer", "their_score"):
        short = row[name] if isinstance(row[name], str) and len(row[name]) < 40 else ""
        if word := _answer_word(short, lang):
            return word
    target = _answer_word(cell_text(row["target"])[:40], lang)
    score = row["their_score"]
    if isinstance(score, float) and score.is_integer():
        score = int(score)
    right = _RIGHT.get(cell_text(score).lower())
    if not target or right is None:
        return None
    return target if right else f"not {target}"
