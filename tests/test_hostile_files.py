"""No command ends in a traceback, or hangs, whatever the files hold that it is given.

Every argument and option that names a file (`commands_of_files.CASES`) is given every hostile file:
empty, of bytes, of other types in every field, nested, huge, broken, a pipe, a device, a loop of
links. A command ends with 0, with 1, 3 or 4 where that is documented, or with 2 and a message.
`make test` takes a part of them, another for each command; `make slow` takes three times as many, and
`HOSTILE=all make slow` all.
"""

import contextlib
import functools
import io
import itertools
import json
import os
import shutil
import zipfile

import pytest
from commands_of_files import (
    CASES,
    GOLDEN,
    Case,
    content_of,
    files_taken,
    paths_in,
    put,
    run,
    surroundings,
    to_bytes,
    words_of,
)

ALL_FILES = os.environ.get("HOSTILE") == "all"
DEEP = 200_000
DIGITS = "9" * 5_000
# What stands in the place of a value: other types, and what only few programs expect.
ODD = [None, True, 5, -1.5, 10**400, "", " ", "x", "\ud800", "\0", [], {}, [None], [[]], {"a": 1}]
ODD += [[{}], {"": {}}, ["x", 5], "nan", "1e999", DIGITS, "[" * 3000, '["a"', "\u202e\n=1+1", 1e308]

BROKEN = {
    "nothing": b"",
    "BOM": b"\xef\xbb\xbf",
    "BOM of UTF-16": b"\xff\xfea\0b\0",
    "line ends": b"\n\r\n\r\n",
    "bytes": bytes(range(256)) * 8,
    "NUL": b"a,b\n\0,\0\n",
    "not UTF-8": b'{"id": "\xff\xfe"}\n',
    "null": b"null\n",
    "a number": b"5\n",
    "a text": b'"x"\n',
    "a list": b"[]\n",
    "a list of numbers": b"[5, 6]\n",
    "a list of lists": b"[[[]]]\n",
    "an object": b"{}\n",
    "many digits": b'{"id": ' + DIGITS.encode() + b"}\n",
    "a list of many digits": b'[{"id": ' + DIGITS.encode() + b"}]\n",
    "digits in TOML": b"x = " + DIGITS.encode() + b"\n",
    "not a number": b'{"id": NaN, "pro": Infinity, "anti": -Infinity}\n',
    "brackets": b"[" * DEEP,
    "lists in lists": b"[" * 900 + b"]" * 900,
    "deep objects": b'{"a":' * DEEP,
    "deep and whole": b'{"id":' + b"[" * 900 + b"]" * 900 + b"}\n",
    "deep TOML": b"x = " + b"[" * DEEP,
    "TOML tables": b"".join(b"[a" + b".a" * n + b"]\n" for n in range(300)),
    "names twice": b'{"id": 1, "id": 2}\n',
    "half of a pair": b'{"id": "\\ud800", "text": "\\udfff", "lang": "\\ud83d"}\n',
    "columns twice": b"id,id,lang\n1,2,en\n",
    "ragged": b"id,lang\n1\n1,2,3\n",
    "a long field": b"id,text\n1," + b"x" * 140_000 + b"\n",
    "an open quote": b'id,text\n1,"x' + b"\n" * 2_000,
    "no names": b",,\n1,2,3\n",
    "a header": b"id,lang,text\n",
    "a shell script": b"#!/bin/sh\nexit 1\n",
    "a zip": b"PK\x03\x04" + b"\0" * 100,
    "the head of Parquet": b"PAR1" + b"\0" * 40 + b"PAR1",
}
SUFFIXES = {suffix for cases in CASES.values() for case in cases for suffix in case.suffixes}


def parquet(rows):
    """Tables of Parquet with a column of every name of `rows`, each of another unusual type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(rows[0]) if rows and isinstance(rows[0], dict) else ["id"]
    moment = pa.array([0], pa.timestamp("ns", "UTC"))
    for what, column in {
        "lists": pa.array([[["x"], None]]),
        "structs": pa.array([{"a": {"b": [1]}}]),
        "bytes": pa.array([b"\xff\0"]),
        "dictionary": pa.array(["x"]).dictionary_encode(),
        "moments": moment,
        "durations": pa.array([5], pa.duration("ns")),
        "years": pa.array([2**62], pa.timestamp("us")),
        "decimals": pa.array([None], pa.decimal128(38, 9)),
        "maps": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "nulls": pa.nulls(1),
        "no numbers": pa.array([float("nan")]),
        "no rows": pa.array([], pa.string()),
    }.items():
        sink = io.BytesIO()
        pq.write_table(pa.table(dict.fromkeys(names, column)), sink)
        yield f"Parquet of {what}", sink.getvalue()
    whole = sink.getvalue()
    yield "Parquet that is cut off", whole[: len(whole) // 2] + whole[-8:]


@functools.cache
def workbooks():
    """(what, bytes) of workbooks that are broken, far, and packed to a thousandth of their size."""
    import openpyxl

    found = []
    book, plain = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["id", "text", "lang"])
    book.active.append([1.5, True, "=1+1"])
    book.save(plain)
    book.active["XFD1048576"] = "x"
    far = io.BytesIO()
    book.save(far)
    found.append(("a far cell", far.getvalue()))
    for what, name, content in (
        ("bad XML", "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row"),
        ("a bomb", "xl/worksheets/sheet1.xml", b"<a>" + b" " * 300_000_000),
        ("entities", "xl/workbook.xml", b'<!DOCTYPE a [<!ENTITY a "aa">]><a>&a;</a>'),
        ("no sheet", "xl/workbook.xml", b"<workbook/>"),
        ("odd cells", "xl/worksheets/sheet1.xml", b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="0"><c r="??" t="s"><v>99</v></c></row></sheetData></worksheet>'),
        ("odd dates", "xl/worksheets/sheet1.xml", b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="d"><v>x</v></c><c r="B1" t="n"><v>1e999</v></c></row></sheetData></worksheet>'),
    ):  # fmt: skip
        held = io.BytesIO()
        with zipfile.ZipFile(plain) as old, zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as new:
            for one in old.infolist():
                new.writestr(one.filename, content if one.filename == name else old.read(one))
        found.append((f"a workbook of {what}", held.getvalue()))
    return found


def other_types(content):
    """The content with one part of another type, for every part and every odd value."""
    if isinstance(content, list):
        content = content[:1]
    for path in itertools.islice(paths_in(content), 60):
        for odd in ODD:
            yield f"{odd!r:.20} at {path}", put(content, path, odd)


def hostile(case, made, suffix, part=None):
    """Yield (what, bytes) of files that are hostile to a case.

    part: (number, of how many): only a part of them, another one for each number.
    """
    content = content_of(case, made)
    rows = content if isinstance(content, list) else [content]

    def every():
        yield from ((what, lambda data=data: data) for what, data in BROKEN.items())
        if isinstance(content, str):
            return
        for what, other in other_types(content):
            yield what, lambda other=other: to_bytes(other, suffix)
        if suffix == ".parquet":
            yield from ((what, lambda data=data: data) for what, data in parquet(rows))
        if suffix == ".xlsx":
            yield from ((what, lambda data=data: data) for what, data in workbooks())

    for at, (what, make) in enumerate(every()):
        if part is None or at % part[1] == part[0] % part[1]:
            try:
                yield what, make()
            except (ValueError, OverflowError, TypeError, AttributeError):
                continue  # files of this kind cannot hold it
            except Exception as error:
                if type(error).__module__.split(".")[0] not in ("pyarrow", "openpyxl"):
                    raise


def special(folder):
    """Yield what is no regular file."""
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "folder").mkdir()
    for name in ("pipe", "device", "loop", "dangling", "folder"):
        yield name, folder / name
    yield "nothing there", folder / "none"
    yield "a name too long", folder / ("x" * 300)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return surroundings(tmp_path_factory.mktemp("around"))


ALL = [(key, at) for key, cases in CASES.items() for at in range(len(cases))]
NAMES = [f"{command} {name} {at}" for (command, name), at in ALL]


def tried(case, path, made, folder, what):
    """Run a case; return a line if it ended as no command may, else nothing."""
    out = folder / "out"
    out.mkdir()
    try:
        ended = run(words_of(case, path, made, out))
    finally:
        shutil.rmtree(out)
    if ended.failed or ended.code not in (0, 1, 2, 3, 4) or "Traceback" in ended.out:
        return [f"{what}: {ended.code} {ended.failed or ended.out[-500:]}"]
    return []


def failures(case, made, folder, part=None):
    found = []
    for suffix in case.suffixes:
        path = folder / f"hostile{suffix}"
        for what, data in hostile(case, made, suffix, part):
            path.write_bytes(data)
            found += tried(case, path, made, folder, f"{suffix}: {what}")
    return found


def test_every_file_that_a_command_takes_has_a_case():
    assert [key for key in files_taken() if key not in CASES] == []


@pytest.mark.parametrize(("key", "at"), ALL, ids=NAMES)
def test_a_case_reads_its_own_file(made, tmp_path, key, at):
    """The file that is then spoiled is one that the command reads."""
    case = CASES[key][at]
    path = tmp_path / f"whole{case.suffixes[0]}"
    path.write_bytes(to_bytes(content_of(case, made), case.suffixes[0]))
    assert tried(case, path, made, tmp_path, "whole") == []


@pytest.mark.parametrize(("key", "at"), ALL, ids=NAMES)
def test_no_hostile_file_ends_in_a_traceback(made, tmp_path, key, at):
    number = ALL.index((key, at))
    assert failures(CASES[key][at], made, tmp_path, (number * 37, 173)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("key", "at"), ALL, ids=NAMES)
def test_no_hostile_file_at_all_ends_in_a_traceback(made, tmp_path, key, at):
    part = None if ALL_FILES else (ALL.index((key, at)) * 37 + 5, 53)
    assert failures(CASES[key][at], made, tmp_path, part) == []


@pytest.mark.parametrize(("key", "at"), ALL, ids=NAMES)
def test_what_is_no_file_is_refused(made, tmp_path, key, at):
    case, number = CASES[key][at], ALL.index((key, at))
    for place, (what, path) in enumerate(special(tmp_path)):
        if place % 7 != number % 7:
            continue
        for suffix in case.suffixes[:1]:
            named = path.with_name(path.name + suffix)
            with contextlib.suppress(OSError):  # where there is something
                path.rename(named)
            assert tried(case, named, made, tmp_path, what) == []


# --- folders of runs

RUNS = ["yesno", "choices", "stories", "pairs"]
OF_RUNS = [
    "verify {}", "verify {} --recompute", "score {}", "score {} -f json --by lang", "compare {} {run}",
    "report {} -o {out}/r.html", "review export {} -o {out}/s.csv", "judge {}",
    "gate {} --against {run} --max-rise yes=5", "yesno --engine replay --model {} --limit 1 --out {out}/run",
]  # fmt: skip


def spoiled(path):
    """Yield (what, bytes) of a file of a run: broken, and with other types in each record."""
    yield from BROKEN.items()
    if path.suffix not in (".json", ".jsonl") and path.name != "MANIFEST":
        return
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return
    whole = path.suffix == ".json"
    first, *rest = [text] if whole else text.splitlines(keepends=True)
    for what, other in other_types(json.loads(first)):
        try:
            yield (
                what,
                (json.dumps(other) + ("" if whole else "\n")).encode() + "".join(rest).encode(),
            )
        except ValueError:
            continue


def of_run(task, words, tmp_path, made, step):
    """The commands that failed on a run of which one file is spoiled; every `step`th file is tried."""
    found = []
    at = 0
    for path in sorted(p for p in (GOLDEN / task).rglob("*") if p.is_file()):
        for what, data in spoiled(path):
            at += 1
            if at % step:
                continue
            folder = tmp_path / "spoiled"
            shutil.copytree(GOLDEN / task, folder)
            (folder / path.relative_to(GOLDEN / task)).write_bytes(data)
            found += tried(Case(words, "", ()), folder, made, tmp_path, f"{path.name}: {what}")
            shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("words", OF_RUNS)
@pytest.mark.parametrize("task", RUNS)
def test_no_folder_of_a_run_ends_in_a_traceback(made, tmp_path, task, words):
    number = RUNS.index(task) * len(OF_RUNS) + OF_RUNS.index(words)
    assert of_run(task, words, tmp_path, made, 701 + 2 * number) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", OF_RUNS)
@pytest.mark.parametrize("task", RUNS)
def test_no_folder_of_a_run_at_all_ends_in_a_traceback(made, tmp_path, task, words):
    number = RUNS.index(task) * len(OF_RUNS) + OF_RUNS.index(words)
    assert of_run(task, words, tmp_path, made, 7 + number if ALL_FILES else 211 + number) == []
