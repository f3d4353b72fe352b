"""A file that is read by columns is counted like its rows, whatever its cells hold."""

import itertools
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from genprobe import files
from genprobe.analysis import score as scoring
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.files import frames
from genprobe.files.frames import read_compact
from genprobe.files.rows import Rows
from genprobe.outcomes import counted, table

CELLS = [
    *(None, "", "yes", "हो", "\ud800x", " a ", "1"),
    *(0, 1, -(1 << 40), 1 << 70, True, False, 0.5, float("nan"), [1, "a"], {"b": None}),
]


def rows(n=240):
    """Rows whose columns hold texts, numbers, truths, nothing, and mixtures; some come late."""
    at = itertools.cycle(CELLS)
    langs, answers = ("mr", "en", "de"), ("yes", "no", "ambiguous", None)
    found = []
    for k in range(n):
        own = {"n": k % 5, "x": k / 7, "t": k % 2 == 0, "mixed": next(at), "none": None}
        own |= {"late": f"z{k % 3}"} if k > n // 2 else {}
        row = {"item": f"s{k % 8}", "pair": f"p{k % 4}", "lang": langs[k % 3], "sample": k // 48}
        row |= {"probe": ("agreement", "disagreement")[k % 2], "answer": answers[k % 4]}
        row |= {"kind": (None, "answer", "refusal")[k % 3], "conflict": ("true", None)[k % 2]}
        row |= {"valid_in": ("mr", "en+de", None)[k % 3], "language": ("en", "und", "mr")[k % 3]}
        found.append(
            row | own | {"id": f"r{k}", "response": "Yes." * (k % 3), "type": "Declaration"}
        )
    return found


@pytest.mark.parametrize("at_once", [7, 1 << 16])
def test_columns_hold_the_cells_of_the_rows(at_once, monkeypatch, tmp_path):
    monkeypatch.setattr(frames, "_AT_ONCE", at_once)
    path = tmp_path / "rows.jsonl"
    files.write_rows(path, rows())
    for source in (Rows(rows()), path):
        plain, compact = files.read_frame(source), read_compact(source)
        assert list(plain) == list(compact) and list(plain.index) == list(compact.index)
        for name in plain:
            cells = zip(plain[name], compact[name].astype(object), strict=True)
            assert all(same(one, other) for one, other in cells), name
    assert isinstance(compact["item"].dtype, pd.CategoricalDtype) and compact["n"].dtype.kind == "i"
    assert compact["x"].dtype == float and compact["t"].dtype == bool


def same(one, other):
    if isinstance(one, list | dict | str):
        return one == other
    return (pd.isna(one) and pd.isna(other)) or (one == other and type(one) is type(other))


@pytest.mark.parametrize("at_once", [7, 1 << 16])
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_table_of_columns_is_that_of_the_rows(at_once, suffix, monkeypatch, tmp_path):
    monkeypatch.setattr(frames, "_AT_ONCE", at_once)
    path = tmp_path / f"rows.{suffix}"
    every = rows()
    if suffix != "jsonl":
        every = [
            {k: v for k, v in row.items() if k != "mixed"} | {"late": row.get("late")}
            for row in every
        ]
    files.write_rows(path, every)
    if suffix == "parquet":  # texts that another program wrote, in groups of rows
        pq.write_table(pq.read_table(path), path, row_group_size=50)
    whole = counted.compact(table.from_rows(files.read_frame(path)))
    found = counted.compact(table.from_rows(read_compact(path, counted.texts() - {"text"})))
    assert list(found) == list(whole)
    for name in whole:
        one, other = whole[name].astype(object), found[name].astype(object)
        assert all(same(a, b) or a == b for a, b in zip(one, other, strict=True)), name
        assert whole[name].dtype == "category" or found[name].dtype != "category", name


def test_a_large_file_has_the_figures_of_its_rows(monkeypatch, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(
        pa.Table.from_pylist([{k: v for k, v in r.items() if k != "mixed"} for r in rows()]), path
    )
    found = score(path)
    monkeypatch.setattr(table, "AT_ONCE", 7)
    monkeypatch.setattr(frames, "_AT_ONCE", 7)
    assert list(score(path)) == list(found)
    monkeypatch.setattr(scoring._How, "texts", True)
    assert list(score(path)) == list(found) and len(found) > 10


def test_a_fault_names_its_rows_and_an_empty_file_has_none(tmp_path):
    path = tmp_path / "rows.jsonl"
    bad = [
        {"lang": "en", "probe": "agreement", "answer": a, "item": "x"} for a in ("yes", "si", "si")
    ]
    path.write_text("\n\n".join(map(json.dumps, bad)))
    with pytest.raises(InputError, match="row 3: unknown answer 'si'"):
        score(path)
    path.write_text("\n\n")
    with pytest.raises(InputError, match="no rows"):
        score(path)
