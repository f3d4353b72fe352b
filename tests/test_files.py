"""Rows in and out: what goes in comes back, and every fault is one line that says where."""

import csv
import json
import math
import resource
import signal
import subprocess
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genprobe.errors import InputError
from genprobe.files import numbered_rows, parquet, read_rows, write_rows
from genprobe.files.cells import Notes, cell_list, cell_text

ROWS = [
    {"id": "a", "text": "Әйелдер көп сөйлейді.", "n": 1, "share": 0.5, "ok": True},
    {"id": "b", "text": 'two\nlines, "quoted"; \u2028 and \x85, a\rb\r\nc', "n": None, "share": None, "ok": None},
]  # fmt: skip


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "parquet", "JSONL"])
def test_typed_formats_are_exact(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    assert write_rows(path, ROWS) == 2
    back = list(read_rows(path))
    assert back == ROWS
    assert [list(row) for row in back] == [list(row) for row in ROWS]  # column order


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_csv_holds_text(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    write_rows(path, ROWS)
    assert list(read_rows(path)) == [
        {"id": "a", "text": ROWS[0]["text"], "n": "1", "share": "0.5", "ok": "true"},
        {"id": "b", "text": ROWS[1]["text"], "n": "", "share": "", "ok": ""},
    ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.text(), st.text("=-+'\",;\r\n\t a\0\ufeff")), min_size=1, max_size=4)
)
def test_any_text_survives(tmp_path, rows):
    table = [{"first": first, "second": second} for first, second in rows]
    for suffix in ("jsonl", "parquet", "csv"):
        path = tmp_path / f"x.{suffix}"
        path.unlink(missing_ok=True)
        write_rows(path, table)
        if suffix == "jsonl":
            # Readers that split lines by str.splitlines see the same lines.
            assert len(path.read_text("utf-8").splitlines()) == len(table)
        expected = table
        if suffix == "csv":
            expected = [{k: v.replace("\0", "\ufffd") for k, v in row.items()} for row in table]
            expected = [row for row in expected if any(row.values())]  # blank rows are skipped
            if not expected:
                continue
        assert list(read_rows(path)) == expected


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+1", "＝1"])  # fmt: skip
def test_formulas_stay_text_in_csv_and_nowhere_else(tmp_path, text):
    rows = [{"id": "1", "text": text, text: "name"}]
    path = tmp_path / "x.csv"
    write_rows(path, rows)
    with path.open(newline="", encoding="utf-8") as file:
        assert all(cell[0] not in "=+-@\t\r＝" for line in csv.reader(file) for cell in line)
    assert list(read_rows(path)) == rows
    for suffix in ("jsonl", "parquet"):
        write_rows(tmp_path / f"x.{suffix}", rows)
        assert list(read_rows(tmp_path / f"x.{suffix}")) == rows
    assert json.loads((tmp_path / "x.jsonl").read_text())["text"] == text


def test_negative_numbers_are_no_formulas(tmp_path):
    write_rows(tmp_path / "x.csv", [{"gap": -0.25, "n": -3}])
    assert (tmp_path / "x.csv").read_text("utf-8-sig") == "gap,n\n-0.25,-3\n"


def test_half_a_surrogate_pair(tmp_path):
    rows = [{"text": "a\ud83db"}]
    write_rows(tmp_path / "x.jsonl", rows)
    assert "\\ud83d" in (tmp_path / "x.jsonl").read_text("utf-8")
    assert list(read_rows(tmp_path / "x.jsonl")) == rows
    for suffix in ("csv", "parquet"):
        write_rows(tmp_path / f"x.{suffix}", rows)
        assert list(read_rows(tmp_path / f"x.{suffix}")) == [{"text": "a\ufffdb"}]


def test_jsonl_is_readable(tmp_path):
    write_rows(tmp_path / "x.jsonl", [{"text": "हो"}])
    assert "हो" in (tmp_path / "x.jsonl").read_text("utf-8")


def test_not_finite_is_null_in_json_and_empty_in_csv(tmp_path):
    rows = [{"a": math.nan, "b": [math.inf], "c": {"d": -math.inf}, "e": 1.5}]
    write_rows(tmp_path / "x.jsonl", rows)
    assert list(read_rows(tmp_path / "x.jsonl")) == [
        {"a": None, "b": [None], "c": {"d": None}, "e": 1.5}
    ]
    write_rows(tmp_path / "x.csv", rows)
    assert next(read_rows(tmp_path / "x.csv"))["a"] == ""


def test_lists_and_objects(tmp_path):
    rows = [{"langs": ["kk", "ru"], "more": {"é": [1]}, "deep": [{"a": 1}]}]
    for suffix, langs in (("jsonl", ["kk", "ru"]), ("parquet", ["kk", "ru"]), ("csv", '["kk", "ru"]')):  # fmt: skip
        write_rows(tmp_path / f"x.{suffix}", rows)
        (back,) = read_rows(tmp_path / f"x.{suffix}")
        assert back["langs"] == langs
        assert back["more"] == ({"é": [1]} if suffix == "jsonl" else '{"é": [1]}')


def test_stdout_is_jsonl(capfdbinary):
    assert write_rows("-", ROWS) == 2
    assert write_rows(None, [{"text": "\ud800"}]) == 1
    lines = capfdbinary.readouterr().out.split(b"\n")
    assert [json.loads(line) for line in lines if line] == [*ROWS, {"text": "\ud800"}]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_nothing_stands_there_after_a_failure(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    write_rows(path, [{"id": "old"}])
    before = path.read_bytes()

    def rows():
        for n in range(10_000):
            yield {"id": str(n)}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(path, rows())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_full_disk(tmp_path, suffix):
    """A limit on the size of files stands for the disk; the same road through the code."""
    path = tmp_path / f"x.{suffix}"
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(InputError, match=r"cannot be written \(File too large\)"):
            write_rows(path, ({"text": str(n * n) * 9} for n in range(20_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_be_rewritten_from_itself(tmp_path):
    path = tmp_path / "x.jsonl"
    write_rows(path, [{"n": n} for n in range(5000)])
    write_rows(path, ({"n": row["n"] + 1} for row in read_rows(path)))
    assert [row["n"] for row in read_rows(path)] == list(range(1, 5001))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_can_be_named(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    write_rows(path, [{"b": "1"}, {"a": "2", "b": "3"}], columns=["a", "b"])
    nothing = "" if suffix == "csv" else None
    assert list(read_rows(path)) == [{"a": nothing, "b": "1"}, {"a": "2", "b": "3"}]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("x.csv", [{"a": "1"}, {"a": "1", "b": "2"}], "row 2: a column 'b' that the first row does not have"),
        ("x.parquet", [{"a": "1"}, {"b": "2"}], "row 2: a column 'b' that the first row does not have"),
        ("x.parquet", [{"a": "1"}, {"a": 2}], "column 'a' mixes kinds of values"),
        ("x.parquet", [{"a": 2**80}], "column 'a' mixes kinds of values"),
        ("x.jsonl", [{"a": object()}], "row 1: cannot be written as JSON"),
        ("x.txt", [], "unknown suffix '.txt'; known: .jsonl, .ndjson, .csv, .tsv, .parquet"),
        ("x", [], "unknown suffix ''"),
        ("no/x.csv", [], "cannot be written (No such file or directory)"),
        ("folder.csv", [], "is a folder"),
    ],
)  # fmt: skip
def test_errors_of_writing(tmp_path, name, rows, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError) as error:
        write_rows(tmp_path / name, rows)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.csv"]


NUL = b"id,text\n1,a\n2,b\0\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", None, "cannot be read (No such file or directory)"),
        ("bad\0name.jsonl", None, "cannot be read"),
        ("folder.csv", None, "is a folder"),
        ("x.xlsx", b"PK", "not a workbook"),
        ("x.ods", b"PK", "unknown suffix '.ods'; known: .jsonl, .ndjson, .csv, .tsv, .parquet, .xlsx"),
        ("x.csv.gz", b"id,text", "cannot be read (Not a gzipped file"),
        ("x.parquet.gz", b"\x1f\x8b", "is packed twice"),
        ("x.jsonl", b"", "the file is empty"),
        ("x.csv", b"", "the file is empty"),
        ("x.parquet", b"", "the file is empty"),
        ("x.jsonl", b"\n \n", "the file holds no rows"),
        ("x.csv", b"id,text\n\n,\n", "the file holds no rows"),
        ("x.csv", b"\xef\xbb\xbf", "the file holds no rows"),
        ("x.jsonl", b'{"a": 1}\n{"a": "\xe4"}\n', "line 2: not UTF-8 (byte 16)"),
        ("x.csv", "id,text\n1,ä\n".encode("utf-16")[:-1], "not a text in utf-16"),
        ("x.csv", b"id,text\n1,\xe4\n", "line 2: not UTF-8 (byte 10)"),
        ("x.csv", NUL, "line 3: a NUL byte (byte 15)"),
        ("x.jsonl", b'{"a": "\0"}', "line 1: a NUL byte (byte 7)"),
        ("x.jsonl", b'{"a": 1}\n\n{"a": 1\n', "line 3: not a line of JSON"),
        ("x.jsonl", b'{"a": 1}\n[1]\n', "line 2: a row is a JSON object, not a list"),
        ("x.jsonl", b'"text"\n', "line 1: a row is a JSON object, not a text"),
        ("x.jsonl", b'{"a": 1, "a": 2}\n', "line 1: not a line of JSON (the name 'a' occurs twice"),
        ("x.jsonl", b"[" * 100_000, "line 1: not a line of JSON (more than 100 levels of nesting"),
        ("x.jsonl", b'{"a": ' + b"9" * 5000 + b"}", "line 1: not a line of JSON"),
        ("x.csv", b"id,id\n1,2\n", "line 1: two columns are called 'id'"),
        ("x.csv", b"a,b\n1,2\n1,2,3\n", "line 3: 3 fields where the header has 2"),
        ("x.csv", b'a,b\n"1\n2",2\n1\n', "line 4: 1 field where the header has 2"),
        ("x.csv", b'a,b\n1,"2\n3,4\n', "line 2: not CSV (unexpected end of data)"),
        ("x.csv", b'a,b\n1,"2" 3\n', "line 2: not CSV"),
        ("x.csv", b'a,b\n1,"' + b"x" * (1 << 24) + b"y", "line 2: more than 16,777,216 characters of a field"),
        ("x.parquet", b"id,text\n1,2\n", "not a Parquet file"),
        ("x.parquet", b"PAR1" + b"\0" * 50 + b"PAR1", "not a Parquet file"),
    ],
)  # fmt: skip
def test_errors_of_reading(tmp_path, name, content, message):
    (tmp_path / "folder.csv").mkdir()
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as error:
        list(read_rows(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "x.parquet"
    write_rows(path, [{"text": str(n * 7919)} for n in range(3000)])
    data = bytearray(path.read_bytes())
    data[40:4000] = b"\xff" * 3960
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged Parquet"):
        list(read_rows(path))


def test_parquet_whose_columns_do_not_fit_together(tmp_path):
    """Of such a column, pyarrow ends the process when it is asked where its pages stand."""
    path = tmp_path / "x.parquet"
    write_rows(path, [{"a": "yes"}, {"a": "no"}])
    text = bytes([0x15, 12, 0x25, 2, 0x18])  # in the schema: bytes, optional, and a name
    assert path.read_bytes().count(text) == 1
    path.write_bytes(path.read_bytes().replace(text, bytes([0x15, 12, 0x25, 0, 0x18])))
    code = "import sys; from genprobe.files import read_rows; list(read_rows(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "InputError" in done.stderr and "after row 0: damaged Parquet" in done.stderr


def test_a_list_in_a_parquet_header_ends_with_its_bytes():
    for kind in range(13):
        data = bytes([0x19, 0xF0 | kind]) + b"\xff" * 8 + b"\x0f" + b"\0" * 64
        with pytest.raises((IndexError, ValueError)):
            parquet._struct(data, 0)


def test_parquet_with_one_name_twice(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array(["1"]), pa.array(["2"])], names=["a", "a"])
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="two columns are called 'a'"):
        list(read_rows(tmp_path / "x.parquet"))


def test_csv_as_spreadsheets_save_it(tmp_path):
    expected = [{"lang": "kk", "text": "Сәлем, әлем"}]
    for name, content in [
        ("comma.csv", '\ufefflang,text\r\nkk,"Сәлем, әлем"\r\n,\r\n'),
        ("semicolon.csv", "\ufefflang;text\r\nkk;Сәлем, әлем\r\n"),
        ("tab.csv", "lang\ttext\nkk\tСәлем, әлем"),
        ("tab.tsv", "lang\ttext\nkk\tСәлем, әлем\n"),
    ]:
        (tmp_path / name).write_bytes(content.encode())
        assert list(read_rows(tmp_path / name)) == expected, name


def test_a_field_of_a_megabyte(tmp_path):
    text = "жол\n" * 400_000
    for suffix in ("csv", "jsonl", "parquet"):
        write_rows(tmp_path / f"x.{suffix}", [{"id": "1", "text": text}])
        assert next(read_rows(tmp_path / f"x.{suffix}"))["text"] == text


def test_an_empty_cell_of_a_single_column_is_a_row(tmp_path):
    write_rows(tmp_path / "x.csv", [{"response": "a"}, {"response": ""}])
    assert list(read_rows(tmp_path / "x.csv")) == [{"response": "a"}, {"response": ""}]


def test_numbers_of_rows_are_those_a_person_sees(tmp_path):
    (tmp_path / "x.csv").write_text('a,b\n"1\n2",3\n\n4,5\n')
    assert [n for n, _ in numbered_rows(tmp_path / "x.csv")] == [2, 4]
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n\n{"a": 2}\n')
    assert [n for n, _ in numbered_rows(tmp_path / "x.jsonl")] == [1, 3]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.slow
def test_memory_stays_flat(tmp_path, suffix):
    """Eight times the rows, hardly more memory: read, changed and written in one go."""
    script = textwrap.dedent("""
        import resource, sys
        from genprobe.files import read_rows, write_rows
        source, target, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
        write_rows(source, ({"id": str(i), "text": f"{i} " * 40} for i in range(n)))
        assert write_rows(target, ({**row, "more": "x"} for row in read_rows(source))) == n
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    """)
    peak = [
        int(
            subprocess.run(
                [sys.executable, "-c", script, tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}", str(n)],
                check=True,
                capture_output=True,
            ).stdout
        )
        for n in (8_000, 64_000)
    ]  # fmt: skip
    assert peak[1] - peak[0] < 12, peak  # MiB; the larger file is about 19


def test_broken_pipe_is_not_our_fault():
    script = (
        "from genprobe.files import write_rows; write_rows('-', ({'n': n} for n in range(10**6)))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert b"BrokenPipeError" in process.stderr.read()


def test_notes_count_and_show_the_first_rows():
    notes = Notes()
    for row in range(2, 10):
        notes.add("odd", row)
    notes.add("once", 7)
    notes.add("without a row")
    assert notes.lines() == ["odd: 8 (rows 2, 3, 4, 5, 6 and 3 more)", "once: 1 (row 7)", "without a row"]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("['en', 'fr']", ["en", "fr"]),
        ('["en","fr"]', ["en", "fr"]),
        ("en; fr,de", ["en", "fr", "de"]),
        (["en", None, " fr "], ["en", "fr"]),
        (None, []),
        (math.nan, []),
        ("[]", []),
        ("", []),
        (7, ["7"]),
    ],
)
def test_lists_in_cells(cell, expected):
    assert cell_list(cell) == expected


def test_text_of_cells():
    assert [cell_text(v) for v in (None, math.nan, " a ", 3, 1.0, True, ["a"])] == [
        "", "", "a", "3", "1", "true", '["a"]',
    ]  # fmt: skip
