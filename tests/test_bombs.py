"""Files that are small and unpack to gigabytes: each is refused by a limit, in little memory."""

import io
import json
import os
import subprocess
import sys
import zipfile

import pytest

from genprobe import files, limits
from genprobe.curation import tables
from genprobe.errors import InputError
from genprobe.files import workbooks as workbooks_of

MOST = 500  # MB of memory, whatever a file holds

# Reads each file and prints what it was refused for, and at the end the most memory, in MB.
READER = """
import json, sys
from genprobe.curation import tables
from genprobe.errors import InputError
said = []
for path in sys.argv[1:]:
    try:
        said.append(len(tables.read(path)))
    except InputError as error:
        said.append(str(error))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([said, int(peak.split()[1]) // 1000]))
"""


def read(paths):
    """What each file was refused for, and the most memory (MB) that a process needed for them."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    done = subprocess.run(
        [sys.executable, "-c", READER, *map(str, paths)],
        capture_output=True, text=True, timeout=300, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def parquet(table, times=1, **more):
    """Bytes of a Parquet file with one row group, in which a batch stands `times` times."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    more = {"compression": "gzip", "dictionary_pagesize_limit": 1 << 29} | more
    with pq.ParquetWriter(out, table.schema, **more) as writer:
        for _ in range(times):
            writer.write_batch(table, row_group_size=1 << 30)
    return out.getvalue()


def lying(data: bytes, sizes) -> bytes:
    """The file with each of the sizes at its end (varints of Thrift) made a small one."""
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    foot = data[end:]
    for size in sizes:
        value, true = 2 * size, b""
        while value > 127:
            true, value = true + bytes([value & 127 | 128]), value >> 7
        true += bytes([value])
        assert true in foot
        foot = foot.replace(true, b"\xa0" + b"\x80" * (len(true) - 2) + b"\0")
    return data[:end] + foot


def parquets(small=1):
    """(name, bytes, limit) of small files, each of which unpacks to more than it may.

    small: all is that much smaller.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = "x" * (1_000_000 // small)
    one = pa.array([text] * 10)
    yield "a text in many rows", parquet(pa.record_batch({"a": one}), 40), "UNPACKED"
    inside = pa.StructArray.from_arrays([one], ["b"])
    yield "a text inside", parquet(pa.record_batch({"a": inside}), 40), "UNPACKED"
    listed = pa.ListArray.from_arrays(pa.array([0, 10], pa.int32()), one)
    yield "a text in lists", parquet(pa.record_batch({"a": listed}), 40), "UNPACKED"
    listed = pa.ListArray.from_arrays(pa.array([0, 40], pa.int32()), pa.array([text] * 40))
    yield "a text often in a list", parquet(pa.record_batch({"a": listed}), 2), "LINE"
    fixed = pa.array([text.encode()] * 10, pa.binary(len(text)))
    yield "bytes of one length", parquet(pa.record_batch({"a": fixed}), 60), "UNPACKED"
    zeros = pa.array([0] * (12_000_000 // small), pa.int64())
    listed = pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)
    yield "a list of one number", parquet(pa.record_batch({"a": listed})), "UNPACKED"
    plain = parquet(pa.record_batch({"a": [f"{n}{text}" for n in range(60)]}), use_dictionary=False)
    yield "a page", plain, "FLIGHT"
    chunk = pq.ParquetFile(io.BytesIO(plain)).metadata.row_group(0).column(0)
    told = lying(plain, {chunk.total_uncompressed_size})
    chunk = pq.ParquetFile(io.BytesIO(told)).metadata.row_group(0).column(0)
    assert chunk.total_uncompressed_size == 16
    yield "a page of another size than is said", told, "FLIGHT"
    wide = pa.record_batch({f"c{n}": pa.nulls(1, pa.int8()) for n in range(10_000 // small + 1)})
    bare = {"write_statistics": False, "use_dictionary": False, "store_schema": False}
    yield "columns", parquet(wide, **bare), "MEMBERS"


def test_parquet_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    for name, one in limits.LIMITS.items():
        if name != "part":
            monkeypatch.setenv(one.variable, str(one.usual // 100))
    for name, data, limit in parquets(small=100):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"GENPROBE_LIMIT_{limit}"):
            list(files.read_rows(path))


@pytest.mark.slow
def test_parquet_that_unpacks_to_much_is_refused_in_little_memory(tmp_path):
    refused = {}
    for name, data, limit in parquets():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        assert len(data) < 2_000_000, name
        refused[path] = limit
    said, most = read(refused)
    for (path, limit), error in zip(refused.items(), said, strict=True):
        assert f"GENPROBE_LIMIT_{limit}" in str(error), (path.name, error)
    assert most < MOST


@pytest.mark.slow
def test_parquet_of_large_pages_within_the_limits_is_read(tmp_path):
    """Rows of which some are long, in one page of each of three columns."""
    import pyarrow as pa

    rows = ["x" * (100_000 if n % 100 == 0 else 50) + str(n) for n in range(12_000)]
    path = tmp_path / "a.parquet"
    table = pa.record_batch(dict.fromkeys("abc", rows))
    path.write_bytes(parquet(table, data_page_size=1 << 30, use_dictionary=False))
    said, most = read([path])
    assert (said, most < MOST) == ([12_000], True), most


def test_parquet_in_groups_of_rows_is_read_with_its_lists(tmp_path):
    """Arrow cannot make lists of texts of two groups at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"a": [f"x{n}", "y"], "b": {"c": f"z{n}"}} for n in range(50)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=7)
    assert list(files.read_rows(tmp_path / "a.parquet")) == rows


@pytest.mark.parametrize("at", range(0, 60, 3))
def test_parquet_with_a_damaged_page_is_one_line(tmp_path, at):
    import pyarrow as pa

    data = bytearray(parquet(pa.record_batch({"a": ["x", "y"], "b": [1, 2]})))
    data[4 + at] ^= 0x7F
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    try:
        assert len(list(files.read_rows(path))) <= 2
    except InputError as error:
        assert "Parquet" in str(error) and "\n" not in str(error)


def workbook(changes, more=()):
    """Bytes of a workbook of two rows, with (part, before what, what is put in) and more parts."""
    import openpyxl

    book, plain, held = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append(["id", "text"])
    book.active.append(["1", "a"])
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.infolist():
            data = old.read(one)
            for part, before, inserted in changes:
                if part == one.filename:
                    assert before in data
                    data = data.replace(before, inserted + before, 1)
            new.writestr(one.filename, data)
        for name, data in more:
            new.writestr(name, data)
    return held.getvalue()


MAIN = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPES, SHEET, BOOK = "[Content_Types].xml", "xl/worksheets/sheet1.xml", "xl/workbook.xml"
STRINGS = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
TYPED = (TYPES, b"</Types>", b'<Override PartName="/s" ContentType="%s"/>' % STRINGS)


def workbooks(small=1):
    """(name, bytes, limit) of small workbooks, each of which is more than it may be."""
    n = 1_200_000 // small

    def sheet(rows):
        return workbook([(SHEET, b"</sheetData>", rows)])

    def strings(texts):
        return workbook([TYPED], [("s", b'<sst xmlns="%s">%s</sst>' % (MAIN, texts))])

    styles = "xl/styles.xml"
    yield "styles", workbook([(styles, b"</cellXfs>", b"<xf/>" * n)]), "PART"
    kinds = b"<numFmts>%s</numFmts>" % (b'<numFmt numFmtId="200" formatCode="0"/>' * n)
    yield "formats", workbook([(styles, b"<fonts", kinds)]), "PART"
    names = b"<definedNames>%s</definedNames>" % (b'<definedName name="a">1</definedName>' * n)
    yield "names", workbook([(BOOK, b"<calcPr", names)]), "PART"
    yield "sheets", workbook([(BOOK, b"</sheets>", b'<sheet name="a" sheetId="1"/>' * n)]), "PART"
    types = b'<Override PartName="/a" ContentType="b"/>' * n
    yield "types", workbook([(TYPES, b"</Types>", types)]), "PART"
    links = b'<Relationship Type="x" Target="y" Id="z"/>' * n
    rels = "xl/_rels/workbook.xml.rels"
    yield "links", workbook([(rels, b"</Relationships>", links)]), "PART"
    parts = [(f"a{at}.xml", b"<a>" + b"<b/>" * (n // 20) + b"</a>") for at in range(20)]
    yield "many parts", workbook([], parts), "PART"
    yield "a comment", sheet(b"<!--" + b" " * (10 * n) + b"-->"), "PART"
    yield "an attribute", sheet(b'<row><c a="' + b" " * (10 * n) + b'"/></row>'), "PART"
    yield "elements beside rows", sheet(b"<row/><a/>" * (n // 10)), "PART"
    yield "elements in a row", sheet(b"<row>" + b"<a/>" * n + b"</row>"), "PART"
    yield "runs of a text", strings(b"<si>" + b"<r/>" * n + b"</si>"), "PART"
    yield "runs of a cell", sheet(b"<row><c><is>" + b"<r/>" * n + b"</is></c></row>"), "PART"
    text = b"x" * 32_000
    yield "a text", strings(b"<si><t>" + text + b"y" * 1000 + b"</t></si>"), "CELL"
    cell = b'<row><c t="inlineStr"><is><t>%s</t></is></c></row>'
    yield "a cell", sheet(cell % (text + b"y" * 1000)), "CELL"
    wide = "\U0001f600".encode() + text
    yield "texts", strings(b"<si><t>%s</t></si>" % wide * (3000 // small)), "UNPACKED"
    yield "shared texts", strings(b"<si/>" * n), "CELLS"
    yield "rows", sheet(b"<row/>" * n), "CELLS"
    yield "short rows", sheet(b"<row><c><v>1</v></c><c><v>2</v></c></row>" * (n // 2)), "CELLS"
    far = b'<row r="3"><c r="XFD3"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"/></row>'
    yield "a far cell", sheet(far), "CELLS"
    yield "unpacked", sheet(b" " * (300_000_000 // small)), "UNPACKED"
    yield "members", workbook([], [(str(at), b"") for at in range(10_001 // small)]), "MEMBERS"


def test_workbooks_that_are_too_much_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    whole = b'<sst xmlns="%s"><si><t>a</t></si></sst>' % MAIN
    path.write_bytes(workbook([TYPED], [("s", whole), ("a.png", b"\x89PNG\0<<<")]))
    assert [row for _, row in tables.read(path)] == [{"id": "1", "text": "a"}]
    for name, one in limits.LIMITS.items():
        if name not in ("cell", "text"):
            monkeypatch.setenv(one.variable, str(one.usual // 100))
    assert len(tables.read(path)) == 1
    for name, data, limit in workbooks(small=100):
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"GENPROBE_LIMIT_{limit}") as told:
            tables.read(path)
        assert str(told.value).startswith(f"{path}: more than "), name


@pytest.mark.slow
def test_workbooks_that_are_too_much_are_refused_in_little_memory(tmp_path):
    refused = {}
    for name, data, limit in workbooks():
        path = tmp_path / f"{name}.xlsx"
        path.write_bytes(data)
        assert len(data) < 2_000_000, name
        refused[path] = limit
    said, most = read(refused)
    for (path, limit), error in zip(refused.items(), said, strict=True):
        assert f"GENPROBE_LIMIT_{limit}" in str(error), (path.name, error)
    assert most < MOST


@pytest.mark.slow
def test_workbooks_just_within_the_limits_need_little_memory(tmp_path):
    rows = b"".join(b"<row><c><v>%d</v></c></row>" % at for at in range(400_000))
    short, long = tmp_path / "short.xlsx", tmp_path / "long.xlsx"
    short.write_bytes(workbook([(SHEET, b"</sheetData>", rows)]))
    cell = '<row><c t="inlineStr"><is><t>\U0001f600{}</t></is></c></row>'.format("x" * 30_000)
    long.write_bytes(workbook([(SHEET, b"</sheetData>", cell.encode() * 2000)]))
    assert read([short])[1] < MOST
    assert read([long])[1] < MOST


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("entities", b'<!DOCTYPE a [<!ENTITY a "aa">]><sst xmlns="%s"><si>&a;</si></sst>' % MAIN),
        ("another encoding", '<?xml version="1.0" encoding="cp037"?>'.encode("cp037")),
        ("no XML", b"sst"),
    ],
)
def test_a_part_that_is_not_looked_through_is_not_read(tmp_path, name, content):
    path = tmp_path / "a.xlsx"
    path.write_bytes(workbook([TYPED], [("s", content)]))
    with pytest.raises(InputError, match="not a workbook"):
        tables.read(path)


def test_a_sheet_is_read_only_in_pieces(tmp_path):
    """The part that is said to be the workbook is read as a whole, so it may be no sheet."""
    path = tmp_path / "a.xlsx"
    path.write_bytes(workbook([]))
    data = path.read_bytes()
    looked = workbooks_of._Looked(path, io.BytesIO(data))
    assert looked.read(BOOK).startswith(b"<workbook") and looked.cells[SHEET]
    with pytest.raises(TypeError):
        looked.read(SHEET)
