"""Every limit is used: it refuses in a line that names it and its variable, and can be changed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from faulty import Faulty
from sample import Scripted, reply, start
from test_bombs import SHEET, parquet, workbook
from test_openai import ask, requests

from genprobe import files, limits
from genprobe.curation import tables
from genprobe.engines import Sampling
from genprobe.errors import EngineError, GenprobeError
from genprobe.files import door, sheets
from genprobe.limits import LIMITS
from genprobe.records import Failure
from genprobe.tasks.pipeline.generate import generate


def written(folder, name, content):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(name, content):
    return lambda folder: list(files.numbered_rows(written(folder, name, content)))


def book(rows=b""):
    return lambda folder: tables.read(
        written(folder, "a.xlsx", workbook([(SHEET, b"</sheetData>", rows)]))
    )


def served(folder):
    with Faulty() as server:
        ask(server, requests(1))


def replied(folder):
    """Ask an engine; the failures of the run are its errors."""
    with start(folder) as run:
        generate(run, Scripted(), Sampling())
        for one in run.failures():
            assert (one.kind, run.verify()) == ("too-large", [])
            raise EngineError(one.detail)


def pages(folder):
    import pyarrow as pa

    return rows("a.parquet", parquet(pa.record_batch({"a": ["x" * 1000]})))(folder)


def groups(folder):
    import pyarrow as pa

    wide = pa.record_batch({f"c{n}": [1] for n in range(20)})
    return rows("a.parquet", parquet(wide))(folder)


LONG = "a,b\n1," + "x" * 300 + "\n"
# Limit -> a value of it, and what is then beyond it.
BEYOND = {
    "body": [(100, served)],
    "flight": [(100, pages)],
    "headers": [(1, served)],
    "reply": [(3, replied)],
    "values": [
        (9, rows("a.jsonl", '{"a": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}')),
        (9, rows("a.csv", ",".join("abcdefghijklm") + "\n" + "1," * 12 + "1")),
    ],
    "nesting": [(2, rows("a.jsonl", '{"a": [[1]]}'))],
    "line": [(200, rows("a.jsonl", '{"a": "%s"}' % ("x" * 300))), (200, rows("a.csv", LONG))],
    "field": [
        (200, rows("a.csv", LONG)),
        (200, lambda folder: sheets.read(written(folder, "a.csv", LONG), ["a"])),
    ],
    "text": [(10, lambda folder: door.content(written(folder, "a", "x" * 11)))],
    "rows": [(2, rows("a.csv", "a\n1\n2\n3\n"))],
    "unpacked": [(900, book()), (900, pages)],
    "members": [(5, book()), (5, groups)],
    "part": [(900, book()), (100, pages)],
    "cells": [(6, book(b"<row><c><v>1</v></c></row>" * 9))],
    "cell": [(9, book(b'<row><c t="str"><v>0123456789</v></c></row>'))],
}  # fmt: skip


def test_every_limit_has_an_example():
    assert BEYOND.keys() == LIMITS.keys()


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_refuses_by_its_name_and_can_be_changed(name, tmp_path, monkeypatch):
    one = LIMITS[name]
    for at, (value, work) in enumerate(BEYOND[name]):
        work(tmp_path / f"usual{at}")
        monkeypatch.setenv(one.variable, str(value))
        with pytest.raises(GenprobeError) as told:
            work(tmp_path / f"small{at}")
        said = str(told.value)
        assert f"more than {value:,} {one.what}; if you trust it, set {one.variable} to" in said
        assert "\n" not in said
        monkeypatch.delenv(one.variable)


@pytest.mark.parametrize("value", ["many", "0x10", "-1", "1e6", "٣", "9" * 30])
def test_a_limit_is_a_whole_number(value, monkeypatch):
    monkeypatch.setenv("GENPROBE_LIMIT_LINE", value)
    with pytest.raises(GenprobeError, match="give a whole number"):
        limits.limit("line")


def test_a_long_reply_is_a_failure_and_the_others_are_kept(tmp_path, monkeypatch):
    """Also the thought counts; the run goes on, and asks again when the limit is raised."""
    monkeypatch.setenv("GENPROBE_LIMIT_REPLY", "100")
    long = {"text": "x" * 60, "reasoning": "y" * 60}

    def script(request):
        one = reply(request)
        return type(one)(**vars(one) | (long if request.statement == "s0" else {}))

    with start(tmp_path) as run:
        counts = generate(run, Scripted(script), Sampling())
        kinds = {one.kind for one in run.failures()}
        assert counts.failed and counts.done and kinds == {"too-large"}
        assert all(isinstance(one, Failure) and len(one.detail) < 300 for one in run.failures())
        monkeypatch.delenv("GENPROBE_LIMIT_REPLY")
        again = generate(run, Scripted(script), Sampling())
        assert (again.done, again.failed, run.verify()) == (counts.failed, 0, [])


COUNTER = """
import sys
from genprobe import files
print(sum(1 for _ in files.numbered_rows(sys.argv[1], streamed=True)))
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_table_of_three_million_rows_is_streamed_in_little_memory(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("id,lang,response\n")
        file.writelines(f"{n},en,Yes I do.\n" for n in range(3_000_000))
    done = subprocess.run(
        [sys.executable, "-c", COUNTER, str(path)], capture_output=True, text=True, timeout=300
    )
    count, kilobytes = map(int, done.stdout.split())
    assert count == 3_000_000 and kilobytes < 150_000
    with pytest.raises(GenprobeError, match="GENPROBE_LIMIT_ROWS"):
        for _ in files.numbered_rows(path):
            pass


# --- one way in which texts of others are parsed

PARSERS = {
    ("json", "loads"), ("json", "load"), ("json", "JSONDecoder"), ("ast", "literal_eval"),
    ("tomllib", "loads"), ("tomllib", "load"), ("pickle", "loads"), ("pickle", "load"),
    ("yaml", "load"), ("np", "load"), ("pd", "read_csv"), ("pd", "read_json"), ("torch", "load"),
    ("pd", "read_parquet"), ("pd", "read_excel"), ("", "eval"), ("", "exec"),
}  # fmt: skip
# Where one of them may stand besides limits.py: why.
OWN = {
    "files/__init__.py": "JSON that it has just written",
    "files/cells.py": "JSON that it has just written",
    "tasks/pipeline/logged.py": "JSON that it has just written",
    "engines/ray.py": "JSON that its own workers wrote",
    "engines/_server.py": "its own table of servers",
    "tasks/pipeline/open.py": "what the user writes in the command",
}


def parsers(tree):
    """The calls that parse a text, of a module's syntax tree."""
    for node in ast.walk(tree):
        owner = getattr(getattr(node, "value", None), "id", "")
        if isinstance(node, ast.Attribute) and owner and (owner, node.attr) in PARSERS:
            yield f"{owner}.{node.attr}"
        if isinstance(node, ast.Name) and ("", node.id) in PARSERS:
            yield node.id


def test_what_others_wrote_is_parsed_in_one_place():
    root = Path(files.__file__).parents[1]
    found = {}
    for path in sorted(root.rglob("*.py")):
        calls = list(parsers(ast.parse(path.read_text("utf-8"))))
        if calls:
            found[path.relative_to(root).as_posix()] = calls
    assert len(found.pop("limits.py")) >= 3
    assert found.keys() == OWN.keys(), "parse by genprobe.limits"
    assert list(parsers(ast.parse("x = json.loads\ny = eval('1')"))) == ["json.loads", "eval"]


@pytest.mark.parametrize(
    ("parse", "text", "name"),
    [
        (limits.parsed_list, "['\"', " + "1, " * 60 + "'\"']", "VALUES"),
        (limits.parsed_list, "(" * 60 + ")" * 60, "VALUES"),
        (limits.parsed_toml, "a = ['\"', " + "1, " * 60 + "'\"']", "VALUES"),
        (limits.parsed_toml, "a=1\n" * 60, "VALUES"),
        (limits.parsed_toml, "a." * 200 + "a = 1", "NESTING"),
        (limits.parsed_toml, '"a" . ' * 200 + "a = 1", "NESTING"),
        (limits.parsed_toml, f"[{'a.' * 200}a]", "NESTING"),
        (limits.parsed_toml, "a = " + "[" * 40 + "]" * 40, "NESTING"),
    ],
)
def test_other_texts_have_the_limits_of_json(parse, text, name, monkeypatch):
    monkeypatch.setenv("GENPROBE_LIMIT_VALUES", "50" if name == "VALUES" else "1000")
    monkeypatch.setenv("GENPROBE_LIMIT_NESTING", "20")
    with pytest.raises(ValueError, match=f"GENPROBE_LIMIT_{name}"):
        parse(text)


@pytest.mark.parametrize("text", ["['a', \"b\"]", '["a", "b"]', "('a', 'b')"])
def test_a_list_is_read_as_json_or_python_writes_it(text):
    assert list(limits.parsed_list(text)) == ["a", "b"]


@pytest.mark.parametrize("text", ["a, b", "[a]", "[" * 300, "-" * 100_000, "f(1)", "\0", "{[]: 1}"])
def test_what_is_no_list_is_a_value_error(text):
    with pytest.raises(ValueError):
        limits.parsed_list(text)
