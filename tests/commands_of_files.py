"""Every command that takes a file, each with a file that it accepts, for tests with hostile ones.

`CASES` has a line for each argument and option of the command line that names a file to be read;
`test_every_file_that_a_command_takes_has_a_case` finds those that have none.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from genprobe.commands import cli, main
from genprobe.curation import document
from genprobe.files import workbooks
from genprobe.review import collect

GOLDEN = Path(__file__).parent / "golden"
TABLES = (".jsonl", ".csv", ".parquet")
SHEETS = (*TABLES, ".xlsx")

REPLY = {
    "id": "1", "lang": "en", "probe": "agreement", "prompt": "Do you agree? A) the man B) the woman",
    "response": "No, I do not.", "options": ["the man", "the woman"], "reasoning": "I think.",
    "finish": "stop", "reads": "stance", "kind": "answer", "shown": ["A", "B"], "gold": "no",
}  # fmt: skip
OUTCOME = {
    "model": "m", "lang": "en", "probe": "agreement", "statement": "s1", "answer": "yes",
    "kind": "answer", "sample": 1, "bias_type": "age", "valid_in": ["en"], "conflict": False,
}  # fmt: skip
PAIRS = {"model": "m", "item": "1", "pro": -1.5, "anti": -2, "domain": "x"}
CHOSEN = {
    "model": "m",
    "chosen": 1,
    "label": 0,
    "condition": "ambig",
    "options": ["a", "b", "unknown"],
}
STATEMENT = {
    "id": "s1", "lang": "en", "text": "Old people are slow.", "bias_type": "age", "role": "original",
    "pair": "p", "valid_in": "en", "type": "declaration",
}  # fmt: skip
PAIR = {"id": "p1", "lang": "en", "pro": "Men cook.", "anti": "Women cook.", "domain": "work"}
PAIR |= {"history": ["fill/1"], "sentence": "Men cook.", "text": "Men cook.", "attribute": "cook"}
GROUPED = {
    "id": "g1",
    "lang": "en",
    "identity": "men",
    "attribute": "cook",
    "group": "g",
    "text": "x",
}
CHOICE = {
    "id": "c1", "lang": "en", "question": "Who slept?", "context": "A man and a woman.",
    "options": ["the man", "the woman", "unknown"], "label": 2, "condition": "ambig",
}  # fmt: skip
TEMPLATE = {
    "id": "t1",
    "lang": "en",
    "template": "[PLACEHOLDER] cook.",
    "text": "[PLACEHOLDER] cook.",
}
ANSWER = {
    "id": "aaaa-1", "respondent": "aaaa", "pack": "afristereo", "lang": "en", "domain": "women",
    "task": "women", "answer": "They cook", "history": ["collect/1"], "about_gender": "x",
}  # fmt: skip
VOTE = {"item": "p1", "rater": "r", "question": "bias", "label": "yes"}
TASK = {
    "id": 1,
    "data": {"id": "p1", "text": "Men cook.", "genprobe_row": json.dumps([PAIR])},
    "annotations": [
        {
            "completed_by": {"id": 1, "email": "a@b"},
            "was_cancelled": False,
            "result": [{"from_name": "bias", "value": {"choices": ["yes"]}}],
        }
    ],
}
DOCCANO = {
    "id": 1,
    "item": "p1",
    "text": "Men.",
    "label": ["yes"],
    "genprobe_row": json.dumps([PAIR]),
}
POTATO = {"instance_id": "p1", "user_id": "u", "label_annotations": {"bias": {"yes": "1"}}}
READ = {"item": "1", "reviewer": "r", "question": "answer", "answer": "yes", "judge": "yes"}
REVIEWED = dict.fromkeys(collect.COLUMNS, "yes") | {
    "repeat": 0,
    "weight": 1.0,
    "question": "answer",
}
ABOUT = dict.fromkeys(document.NEEDED, "x") | {"creators": ["x"], "licence": "CC-BY-4.0"}
CARD = {
    "title": "x", "licence": "x", "source": "x", "trained_on": "x", "stories": "x", "engine": "linear",
    "model": "x.bin", "revision": "", "sha256": "0" * 64, "languages": ["en"], "default_for": [],
    "labels": {"negative": "negative", "positive": "positive"}, "limits": {"min": 1, "max": 500},
    "decision": {"neutral": [0.4, 0.6]}, "fold": {"a": "b"},
    "measured": [{"on": "x", "n": 10, "metric": "f1", "value": 0.5, "low": 0.4, "high": 0.6, "kind": "stories", "lang": "en"}],
}  # fmt: skip
PACK = {"probes": {"safe": {"reads": "question"}}, "en": {"safe": {"text": "Is it safe? {input}"}}}
MODELS = {"m": {"id": "org/m", "languages": ["en"], "base_url": "http://127.0.0.1:9/v1"}}


class Case(NamedTuple):
    """A command that reads a file: its words (`{}` is the file, `{out}` a folder for what it
    writes), what such a file holds, and by which suffixes it may come."""

    words: str
    content: Any
    suffixes: tuple[str, ...]


# (command, parameter) -> cases.
CASES: dict[tuple[str, str], list[Case]] = {
    ("judge", "source"): [
        Case(f"judge {{}} --judge {judge} -o {{out}}/o.jsonl", REPLY, TABLES)
        for judge in ("yesno", "choice", "language", "story", "refusal", "thought")
    ]
    + [Case("judge {} --judge yesno --gold gold -o {out}/o.csv", REPLY, TABLES)],
    ("score", "sources"): [
        Case("score {} --by lang", OUTCOME, TABLES),
        Case("score {} --by domain -f json", PAIRS, TABLES),
        Case("score {}", CHOSEN, TABLES),
    ],
    ("score", "reviewed"): [Case("score {run} --reviewed {}", REVIEWED, TABLES)],
    ("score", "people"): [Case("score {run} --people {}", CHOSEN, TABLES)],
    ("compare", "first"): [Case("compare {} {run}", OUTCOME, TABLES)],
    ("compare", "others"): [Case("compare {run} {}", OUTCOME, TABLES)],
    ("gate", "new"): [Case("gate {} --against {run} --max-rise yes=5", OUTCOME, TABLES)],
    ("gate", "against"): [Case("gate {run} --against {} --max-rise yes=5", OUTCOME, TABLES)],
    ("gate", "again"): [
        Case("gate {run} --against {run} --again {} --max-rise yes=5", OUTCOME, TABLES)
    ],
    ("compare", "reviewed"): [Case("compare {run} {run} --reviewed {}", REVIEWED, TABLES)],
    ("review plan", "source"): [Case("review plan {} --points 10", OUTCOME, TABLES)],
    ("report", "folders"): [Case("report {} -o {out}/r.html", OUTCOME, TABLES)],
    ("report", "reviewed"): [Case("report {run} -o {out}/r.html --reviewed {}", REVIEWED, TABLES)],
    ("review agreement", "paths"): [Case("review agreement {}", READ, TABLES)],
    ("review export", "sources"): [Case("review export {} -o {out}/s.csv", REPLY, TABLES)],
    ("review export", "disagreements"): [
        Case("review export {run} -o {out}/s.csv --disagreements {}", REVIEWED, TABLES)
    ],
    ("review import", "paths"): [
        Case("review import {} --key {key} -o {out}/o.csv", "@sheet", (".csv",))
    ],
    ("review import", "key"): [
        Case("review import {sheet} --key {} -o {out}/o.csv", "@key", (".json",))
    ],
    ("dataset collect", "answers"): [
        Case("dataset collect afristereo {} -o {out}/o.csv", ANSWER, (*SHEETS, ".json"))
    ],
    ("dataset collect", "study"): [
        Case("dataset collect rubia --lang ru --html {out}/f.html --from {}", PAIR, TABLES)
    ],
    ("dataset convert", "sources"): [
        Case("dataset convert {} --from label-studio --votes {out}/v.csv -o {out}/o.csv", [TASK], (".json",)),
        Case("dataset convert {} --from doccano --votes {out}/v.csv -o {out}/o.csv", DOCCANO, (".jsonl",)),
        Case("dataset convert {} --from potato --votes {out}/v.csv -o {out}/o.csv", POTATO, (".jsonl",)),
        Case("dataset convert {} --from google-forms --pack afristereo -o {out}/o.csv", "@form", (".csv",)),
        Case("dataset convert {} --from xlsform --pack afristereo -o {out}/o.csv", "@form", (".csv",)),
        Case("dataset convert {} --to label-studio -o {out}/o.json", PAIR, SHEETS),
        Case("dataset convert {} --to google-forms --pack afristereo -o {out}/o.csv", ANSWER, SHEETS),
    ],
    ("dataset convert", "source"): [
        Case("dataset convert {tasks} --from label-studio --source {} -o {out}/o.csv", PAIR, SHEETS)
    ],
    ("dataset disambiguate", "source"): [
        Case("dataset disambiguate {} --engine replay --model {replies} -o {out}/o.csv", CHOICE, SHEETS)
    ],
    ("dataset diversity", "source"): [Case("dataset diversity {}", PAIR, SHEETS)],
    ("dataset document", "source"): [
        Case("dataset document {} --about {about} -o {out}/d", PAIR, SHEETS)
    ],
    ("dataset document", "about"): [
        Case("dataset document {pairs} --about {} -o {out}/d", ABOUT, (".toml",))
    ],
    ("dataset document", "votes"): [
        Case("dataset document {pairs} --about {about} --votes {} -o {out}/d", VOTE, SHEETS)
    ],
    ("dataset document", "rewordings"): [
        Case("dataset document {pairs} --about {about} --rewordings {} -o {out}/d", PAIR, SHEETS)
    ],
    ("dataset extract", "source"): [Case("dataset extract {} -o {out}/o.csv", PAIR, SHEETS)],
    ("dataset fill", "source"): [
        Case("dataset fill {} -o {out}/o.csv", TEMPLATE, SHEETS),
        Case("dataset fill {} --check", TEMPLATE, SHEETS),
    ],
    ("dataset fill", "lexicon"): [
        Case("dataset fill {templates} --lexicon {} -o {out}/o.csv", {"lang": "en", "id": "men", "phrase": "men", "form": "men"}, SHEETS)
    ],
    ("dataset group", "source"): [
        Case("dataset group {} -o {out}/o.csv", PAIR, SHEETS),
        Case("dataset group {} --sweep 0.4,0.5 --truth domain", PAIR, SHEETS),
    ],
    ("dataset validate export", "source"): [
        Case("dataset validate export {} -o {out}/s.csv --annotators 2", PAIR, SHEETS)
    ],
    ("dataset validate export", "study"): [
        Case("dataset validate export {pairs} --questions rubia --from {} -o {out}/s.csv", PAIR, SHEETS)
    ],
    ("dataset pair", "source"): [Case("dataset pair {} -o {out}/o.csv", GROUPED, SHEETS)],
    ("dataset validate import", "paths"): [
        Case("dataset validate import {} --key {votekey} -o {out}/o.csv", "@votesheet", (".csv",))
    ],
    ("dataset validate import", "key"): [
        Case("dataset validate import {votesheet} --key {} -o {out}/o.csv", "@votekey", (".json",))
    ],
    ("dataset validate keep", "source"): [
        Case("dataset validate keep {} --votes {votes} -o {out}/o.csv", PAIR, SHEETS)
    ],
    ("dataset validate keep", "votes"): [
        Case("dataset validate keep {pairs} --votes {} -o {out}/o.csv", VOTE, SHEETS)
    ],
    ("describe", "source"): [
        Case("describe {}", STATEMENT, TABLES),
        Case("describe {}", PAIR, TABLES),
        Case("describe {}", CHOICE, TABLES),
        Case("describe {}", TEMPLATE, TABLES),
    ],
    ("augment", "data"): [Case("augment --data {} --engine replay --model {replies} -o {out}/o.jsonl", STATEMENT, TABLES)],
    ("reproduce", "folder"): [Case("reproduce shades --from {}", PAIR, TABLES)],
    ("licence", "golds"): [
        Case("licence {replies} --gold {} --engine replay --lang en", REPLY, TABLES)
    ],
    ("rejudge", "run"): [Case("rejudge {}", OUTCOME, TABLES)],
    ("publish", "runs"): [Case("publish {} -o {out}/public", OUTCOME, TABLES)],
    ("merge", "runs"): [Case("merge {run} {} -o {out}/whole", OUTCOME, TABLES)],
    ("verify", "folders"): [Case("verify {}", OUTCOME, TABLES)],
    ("verify", "reviewed"): [Case("verify {run} --recompute --reviewed {}", REVIEWED, TABLES)],
    ("verify", "people"): [Case("verify {run} --recompute --people {}", CHOSEN, TABLES)],
    ("verify", "sign"): [Case("verify {run} --sign {}", "key", ("",))],
    ("verify", "allowed_signers"): [Case("verify {run} --allowed-signers {}", "x", ("",))],
    ("lint", "paths"): [Case("lint {}", CARD, (".toml", ".csv", ".jsonl"))],
    ("classifiers compare", "data"): [
        Case("classifiers compare stories --data {}", {"text": "Bad.", "label": 0, "lang": "en"}, TABLES)
    ],
    ("classifiers compare", "cards"): [
        Case("classifiers compare {} --data {texts}", CARD, (".toml",))
    ],
    ("classifiers measure", "data"): [
        Case("classifiers measure {card} --data {} --on x --kind stories", {"text": "Bad.", "label": 0, "lang": "en"}, TABLES)
    ],
    ("classifiers measure", "card"): [
        Case("classifiers measure {} --data {texts} --on x --kind stories", CARD, (".toml",))
    ],
    ("classifiers train", "source"): [
        Case("classifiers train {} -o {out}/c.toml --text text --label label", {"text": "Bad.", "label": 0}, TABLES)
    ],
}  # fmt: skip
_ASK = {
    "yesno": ("yesno", STATEMENT),
    "stories": ("stories --lang en --engine replay --model {replies}", TEMPLATE),
    "essays": ("essays --engine replay --model {replies}", STATEMENT),
    "choices": ("choices --decode choice", CHOICE),
}
for _name, (_words, _row) in _ASK.items():
    _known = " --data {choices}" if _name == "choices" else ""
    CASES |= {
        (_name, "data"): [Case(f"{_words} --data {{}} --dry-run --limit 2", _row, TABLES)],
        (_name, "like"): [Case(f"{_name} --like {{}} --model {{out}}/none", OUTCOME, TABLES)],
        (_name, "system"): [
            Case(f"{_words}{_known} --system @{{}} --dry-run --limit 1", "Be kind.", (".txt",))
        ],
        (_name, "models"): [
            Case(f"{_name}{_known} --models {{}} --dry-run --limit 1", MODELS, (".toml",))
        ],
    }
for _name, _set in (("yesno", "seegull-multi"), ("logprob", "crows-pairs"), ("choices", "mbbq")):
    CASES[_name, "from"] = [
        Case(f"{_name} --data {_set} --lang en --from {{}} --dry-run --limit 1", OUTCOME, TABLES)
    ]
CASES["yesno", "pack"] = [
    Case("yesno --pack {} --data {statements} --dry-run --limit 2", PACK, (".toml",))
]
CASES["yesno", "model"] = [
    Case("yesno --lang en --engine replay --model {} --limit 1 --out {out}/run", REPLY, TABLES)
]
CASES["logprob", "like"] = [Case("logprob --like {} --model {out}/none", OUTCOME, TABLES)]
CASES["logprob", "data"] = [
    Case("logprob --data {} --limit 1 --model {out}/none --out {out}/run", row, TABLES)
    for row in (PAIR, CHOICE)
]
CASES["choices", "shots"] = [
    Case("choices --decode choice --data {choices} --shots {} --dry-run --limit 1", CHOICE, TABLES)
]

AUDIT = {
    "limit": 2,
    "models": {"control": {}},
    "instruments": {"yesno": {"langs": ["en"], "max_rise": {"endorsed": 12}}},
}
CASES["audit run", "file"] = [Case("audit {} --out {out}/audit --dry-run", AUDIT, (".toml",))]
CASES["audit run", "against"] = [Case("audit {out}/none --against {} --dry-run", AUDIT, (".toml",))]
CASES["audit series", "audits"] = [Case("audit series {} {out}/none", AUDIT, (".toml",))]

# Parameters that name what is written, or only speak of files.
WRITTEN = {("dataset convert", "votes"), ("audit new", "file")}
OTHER = {
    *("out", "html", "kappas", "figures", "export"),
    *("engine", "classifier", "rules", "name"),
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield (words, command) for each command, of all depths."""

    def below(
        command: click.Command, words: tuple[str, ...]
    ) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from below(inner, (*words, name))
        else:
            yield " ".join(words), command

    return below(cli, ())


def files_taken() -> Iterator[tuple[str, str]]:
    """Yield (command, parameter) for each argument or option that names a file."""
    for words, command in commands():
        for one in command.params:
            said = f"{getattr(one, 'help', '') or ''} {one.metavar or ''}"
            named = isinstance(one.type, click.Path | click.File) or "FILE" in said
            if named and one.name not in OTHER and (words, one.name) not in WRITTEN:
                yield words, str(one.name)


class Ended(NamedTuple):
    """How a command ended: its exit code, what it printed, and its traceback if it failed."""

    code: int
    out: str
    failed: str


class TooLong(Exception):
    """A command took longer than it may."""


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TooLong after so many seconds."""

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(words: Sequence[str], seconds: int = 120) -> Ended:
    """Run a command in this process. An error of any other kind than those for users is `failed`."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: Any = 0
    failed = ""
    stdin, argv = sys.stdin, sys.argv
    sys.stdin, sys.argv = io.StringIO(""), ["genprobe", *map(str, words)]
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            within(seconds),
        ):
            main()
    except SystemExit as ended:
        code = ended.code
    except Exception as error:
        code, failed = 70, f"{type(error).__name__}: {traceback.format_exc()[-1500:]}"
    finally:
        sys.stdin, sys.argv = stdin, argv
    shown = printed.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    if code == 2 and not shown.strip():
        failed = "an error without a message"
    return Ended(code if isinstance(code, int) else 0, shown, failed)


# --- files


def to_bytes(content: Any, suffix: str) -> bytes:
    """Write content as a file of a kind: rows as a table, else JSON, TOML or text."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    rows = content if isinstance(content, list) else [content]
    if suffix == ".json":
        return json.dumps(content).encode()
    if suffix == ".toml":
        return toml(content).encode("utf-8", "surrogatepass")
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    names = list(dict.fromkeys(name for row in rows for name in row))
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(pa.table({n: [row.get(n) for row in rows] for n in names}), sink)
        return sink.getvalue()
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    if suffix == ".xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for line in [names, *cells]:
            book.active.append(line)
        return workbooks.saved(book)  # the same bytes at any time
    table = io.StringIO()
    csv.writer(table).writerows([names, *cells])
    return table.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Any) -> Any:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def toml(value: Any, top: bool = True) -> str:
    """Write a tree as TOML: inline tables below the first level; what TOML has not is left out."""
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(str(k))} = {toml(v, False)}" for k, v in value.items() if v is not None
        ]
        return "\n".join(parts) + "\n" if top else "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v, False) for v in value if v is not None) + "]"
    return json.dumps(value, ensure_ascii=False) if value is not None else '""'


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a tree, such as ("a", 0, "b")."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in parts:
        yield (key,)
        for rest in paths_in(inner):
            yield (key, *rest)


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a tree in which the part at `path` is another."""
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = put(copied[path[0]], path[1:], new)
    return copied


def surroundings(folder: Path) -> dict[str, Path]:
    """Write the files that commands read beside the hostile one, and copy a small run."""
    made = {"run": Path(shutil.copytree(GOLDEN / "yesno", folder / "run"))}
    for name, (content, suffix) in {
        "pairs": (PAIR, ".jsonl"), "templates": (TEMPLATE, ".jsonl"), "about": (ABOUT, ".toml"),
        "votes": (VOTE, ".csv"), "tasks": ([TASK], ".json"), "choices": (CHOICE, ".jsonl"),
        "texts": ({"text": "Bad.", "label": 0, "lang": "en"}, ".jsonl"), "card": (CARD, ".toml"),
        "replies": (REPLY, ".jsonl"), "statements": (STATEMENT, ".jsonl"), "answers": (ANSWER, ".jsonl"),
    }.items():  # fmt: skip
        made[name] = folder / f"{name}{suffix}"
        made[name].write_bytes(to_bytes(content, suffix))
    for words in (
        f"review export {made['run']} -o {folder}/blind.csv",
        f"dataset validate export {made['pairs']} -o {folder}/votesheet.csv --annotators 1",
        f"dataset convert {made['answers']} --to google-forms --pack afristereo -o {folder}/form.csv",
    ):
        ended = run(words.split())
        assert ended.code in (0, 1), (words, ended)
    found = {path.stem: path for path in folder.iterdir() if path.is_file()}
    made |= {"sheet": found["blind"], "key": found["blind-key"]}
    made |= {"votesheet": found["votesheet-1"], "votekey": found["votesheet-key"]}
    return made | {"form": found["form"]}


def content_of(case: Case, made: dict[str, Path]) -> Any:
    """Return what a valid file of a case holds; `@name` is one of the files around it."""
    if not (isinstance(case.content, str) and case.content.startswith("@")):
        return case.content
    path = made[case.content[1:]]
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        return list(csv.DictReader(file, delimiter=max(",;", key=first.count)))[:3]


def words_of(case: Case, path: Path, made: dict[str, Path], out: Path) -> list[str]:
    """Fill the words of a case with the files."""
    known = {name: str(where) for name, where in made.items()} | {"out": str(out)}
    return [
        word.replace("{}", str(path))
        if "{}" in word
        else word.format(**known)
        if "{" in word
        else word
        for word in case.words.split()
    ]
