"""Rows in, rows out: every command takes a table in memory, and errors are one line."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sample import REQUESTS, start

import genprobe
from genprobe import files, tasks
from genprobe.errors import InputError
from genprobe.files.rows import Rows, rows_of, sources_of
from genprobe.records import Response
from genprobe.runs.run import Run
from genprobe.tasks import Ask

REPLIES: list[dict[str, Any]] = [
    {"id": "a", "model": "m", "lang": "kk", "probe": "agreement", "response": "Жоқ, келіспеймін."},
    {"id": "b", "model": "m", "lang": "ar", "probe": "agreement", "response": "نعم، أوافق."},
    {"id": "c", "model": "m", "lang": "en", "probe": "agreement", "response": None},
    {"id": "d", "model": "n", "lang": "en", "probe": "disagreement", "response": "No\ud800"},
]
STATEMENTS = [
    {"id": "1", "lang": "en", "text": "People from the north are reserved."},
    {"id": "2", "lang": "en", "text": "People from the south are loud."},
]
PLAIN = [{**row, "response": (row["response"] or "").replace("\ud800", "")} for row in REPLIES]


class Streamed:
    """What Polars and others give: the stream of Arrow, and nothing else."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.table = pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self.table.__arrow_c_stream__(requested)


class Columns:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_dict(self) -> dict[str, list[Any]]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}


def of_datasets(streamed: bool) -> Callable[[list[dict[str, Any]]], Any]:
    def give(rows: list[dict[str, Any]]) -> Any:
        datasets = pytest.importorskip("datasets")
        found = datasets.Dataset.from_list(rows)
        return found.to_iterable_dataset() if streamed else found

    return give


KINDS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "rows": lambda rows: rows,
    "a generator": lambda rows: (row for row in rows),
    "a tuple": tuple,
    "pandas": pd.DataFrame,
    "an index of its own": lambda rows: pd.DataFrame(rows, index=range(7, 7 + len(rows))),
    "an index that repeats": lambda rows: pd.DataFrame(rows, index=[0] * len(rows)),
    "an index of two levels": lambda rows: pd.DataFrame(
        rows, index=pd.MultiIndex.from_product([["x"], range(len(rows))])
    ),
    "types that may be empty": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "types of arrow": lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda rows: pd.DataFrame(rows).astype("category"),
    "a map": lambda rows: map(dict, rows),
    "polars": lambda rows: pytest.importorskip("polars").DataFrame(rows),
    "a data set": of_datasets(False),
    "a data set that is read as it comes": of_datasets(True),
    "arrow": pa.Table.from_pylist,
    "batches": lambda rows: pa.Table.from_pylist(rows).to_reader(1),
    "a stream": Streamed,
    "columns": Columns,
    "ours": Rows,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_judged_counted_and_signed_alike(kind):
    give = KINDS[kind]
    judged = genprobe.judge(give(PLAIN))
    assert [row["answer"] for row in judged] == ["no", "yes", "ambiguous", "no"]
    assert [list(row)[:5] for row in judged] == [list(PLAIN[0])] * 4
    assert judged.counts == {"yesno": {"no": 2, "yes": 1, "ambiguous": 1}}
    found = genprobe.score(give(list(judged)), metrics="yes", by="lang")
    assert found == genprobe.score(judged, metrics=["yes"], by=["lang"])
    assert {s.by["lang"]: s.value for s in found} == {"kk": 0.0, "ar": 1.0, "en": 0.0}


def test_a_file_and_its_rows_give_the_same_figures(tmp_path):
    path = tmp_path / "judged.jsonl"
    judged = genprobe.judge(REPLIES)
    files.write_rows(path, judged)
    kept = list(genprobe.judge(path_of(tmp_path, REPLIES), out=tmp_path / "out.jsonl"))
    assert kept == list(judged) and judged[2]["answer"] is None
    ours = genprobe.score(judged, metrics="yes", by="model")
    theirs = genprobe.score(str(path), metrics="yes", by="model")
    assert [(s.by, s.value, s.n) for s in ours] == [(s.by, s.value, s.n) for s in theirs]
    assert "|rows:" in ours[0].signature and "|file:" in theirs[0].signature


def path_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "replies.jsonl"
    files.write_rows(path, rows)
    return path


def test_a_hugging_face_data_set_is_a_table():
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(PLAIN)
    assert [row["answer"] for row in genprobe.judge(table)] == ["no", "yes", "ambiguous", "no"]
    with pytest.raises(genprobe.GenprobeError, match="one dict is no table; give one of its parts: 'train'"):  # fmt: skip
        genprobe.judge(datasets.DatasetDict({"train": table}))


def test_cells_are_plain_values_and_an_empty_one_is_none():
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, math.nan], "t": ["a", None]})
    frame["i"] = pd.array([3, None], dtype="Int64")
    frame["c"] = pd.Categorical(["u", None])
    frame["d"] = [pd.Timestamp("2026-11-28"), pd.NaT]
    frame["l"] = [np.array([1, 2]), ["x"]]
    first, second = rows_of(frame)
    assert first == {"n": 1, "x": 0.5, "t": "a", "i": 3, "c": "u", "d": "2026-11-28T00:00:00", "l": [1, 2]}  # fmt: skip
    assert second == {"n": 2, "x": None, "t": None, "i": None, "c": None, "d": None, "l": ["x"]}
    assert type(first["n"]) is int and type(first["x"]) is float
    odd = {1: np.float32(0.5), "b": b"\xff", "d": decimal.Decimal("0.1"), "t": datetime.date(2026, 1, 2)}  # fmt: skip
    assert list(rows_of([odd])) == [{"1": 0.5, "b": "\ufffd", "d": "0.1", "t": "2026-01-02"}]
    json.dumps(list(rows_of([{"a": {"b": (np.int8(1), math.inf)}}])))


def test_rows_are_read_as_often_as_needed():
    once = rows_of(iter(PLAIN))
    assert list(once) == list(once) == PLAIN and len(once) == 4 and once[1] == PLAIN[1]
    assert list(once.frame()["id"]) == ["a", "b", "c", "d"]
    assert repr(once) == "<rows: 4 rows of id, model, lang, probe, response>"
    assert [str(one) for one in sources_of([pd.DataFrame(PLAIN), PLAIN])] == ["rows 1", "rows 2"]


def test_two_tables_that_share_a_cell_stand_apart():
    judged = genprobe.judge(PLAIN).frame()
    found = genprobe.score([judged, list(genprobe.judge(PLAIN))], metrics="yes", by="model")
    assert [s.by["source"] for s in found] == ["rows 1", "rows 1", "rows 2", "rows 2"]


def test_one_reply_is_read():
    found = genprobe.read("Жоқ, келіспеймін.", lang="kk", probe="agreement")
    assert (found["answer"], found["kind"]) == ("no", "answer") and "response" not in found
    asked = {"lang": "en", "reads": "question", "prompt": "Is it polite?"}
    assert genprobe.read("Yes, it is.", **asked)["answer"] == "yes"
    options = ["Anna", "Bek", "Unknown"]
    assert genprobe.read("B", judge="choice", lang="en", options=options)["chosen"] == "1"
    with pytest.raises(genprobe.GenprobeError, match="reply, row 1: the judge 'yesno' needs"):
        genprobe.read("Yes")


# --- house.md 1.3: what failed in the Python face


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("rows") / "r4"
    with start(folder) as made:
        for number, request in enumerate(REQUESTS):
            text = "Yes, I agree." if number % 2 else "No."
            made.append(Response(request.id, text, "stop", "", None, None))
    genprobe.judge(made, "yesno")
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_statements_are_a_table(kind):
    ask = Ask(data=KINDS[kind](STATEMENTS), probes="agreement", instruct="own", decodes="free")
    asked = tasks.find("yesno").prepare(ask)
    assert [s.text for s in asked.items] == [row["text"] for row in STATEMENTS]
    assert ask.called == ("rows" if kind == "ours" else "data")
    assert asked.items[0].source.startswith(f"{ask.called}@")


def test_a_run_asks_about_rows(tmp_path):
    asked = {"probes": "agreement", "instruct": "own", "decodes": "free", "langs": "en"}
    run = genprobe.yesno(data=pd.DataFrame(STATEMENTS), out=tmp_path / "run", **asked)
    assert [s.text for s in run.statements()] == [row["text"] for row in STATEMENTS]
    assert (run.spec.data, run.spec.probes) == ("data", ("agreement",))
    assert run.verify() == [] == genprobe.verify(run)
    again = tasks.find("yesno").prepare(Ask(data=run))
    assert [s.text for s in again.items] == [row["text"] for row in STATEMENTS]
    one = genprobe.Statement("a", "en", "People are kind.")
    assert (one.role, one.valid_in, one.extra) == ("original", (), {})


def test_pairs_choices_and_templates_are_tables():
    pairs = [{"pro": "Girls like dolls.", "anti": "Boys like dolls.", "lang": "en"}]
    counted = genprobe.describe(pd.DataFrame(pairs), langs="en")
    assert counted[0] == {"table": "items", "value": "sentences of pairs", "n": 2, "of": 2}
    choice = {"context": "A and B met.", "question": "Who was late?", "ans0": "A", "ans1": "B", "ans2": "Unknown", "label": 2, "lang": "en"}  # fmt: skip
    assert genprobe.describe([choice])[0]["value"] == "choices"
    template = {"template": "A [PLACEHOLDER] person came.", "lang": "en", "subdomain": "s"}
    assert genprobe.describe([template])[0]["value"] == "templates"


def test_outcomes_of_a_run_are_counted_as_the_run_is(run):
    table = genprobe.score(run.outcomes(), metrics="yes", by="probe")
    whole = genprobe.score(run, metrics="yes", by="probe")
    assert [(s.by, s.value, s.n) for s in table] == [(s.by, s.value, s.n) for s in whole]


def test_a_run_is_judged_by_its_folder_and_gives_its_judgments(run):
    found = genprobe.judge(str(run.folder), "yesno")
    assert [row["label"] for row in found] == [j.label for j in run.judgments("yesno")]
    assert genprobe.judge(run.folder, ["yesno"])[0]["judge"] == "yesno"


def test_one_run_needs_no_list_and_several_may_be_one(run, tmp_path):
    page = genprobe.report(str(run.folder), tmp_path / "o.html")
    assert (tmp_path / "o.html").read_text("utf-8") == page and page.startswith("<!DOCTYPE html>")
    assert genprobe.report([run]).startswith("<!DOCTYPE html>")
    with pytest.raises(genprobe.GenprobeError, match="is compared with nothing"):
        genprobe.compare([run])
    with pytest.raises(genprobe.GenprobeError, match="is given twice"):
        genprobe.compare(run, [run])


def test_a_gate_takes_points_and_gives_a_verdict(run):
    found = genprobe.gate(run, against=run.folder, max_rise={"failed": 70})
    assert found.verdict == "not worse" and found.lines()
    with pytest.raises(genprobe.GenprobeError, match="no limit is given"):
        genprobe.gate(run, against=run)


def test_nothing_is_written_without_a_path_and_what_was_asked_stays(run):
    genprobe.score(run)  # keeps the table that is counted, so that it is made once
    before = {p: p.read_bytes() for p in run.folder.rglob("*") if p.is_file()}
    genprobe.score(run, metrics="yes", by="probe")
    genprobe.compare(run, between="probe", metrics="yes")
    assert {p: p.read_bytes() for p in run.folder.rglob("*") if p.is_file()} == before
    whole = genprobe.score(run, save=True)
    more = genprobe.score(run, metrics="yes", by="lang", save=True)
    assert run.scores() == [*whole, *more]
    genprobe.score(run, metrics="yes", by="lang", save=True)
    assert run.scores() == [*whole, *more]


def test_a_unknown_keyword_is_named_with_the_nearest():
    with pytest.raises(genprobe.GenprobeError, match="unknown argument 'probe'; did you mean"):
        genprobe.yesno(probe="agreement")


HOSTILE: dict[str, tuple[Callable[[Run], Any], str]] = {
    "nothing": (lambda run: genprobe.score(None), "None is no table"),
    "a number": (lambda run: genprobe.judge(3), "an int is no table"),
    "bytes": (lambda run: genprobe.judge(b"x"), "a bytes is no table"),
    "no rows": (lambda run: genprobe.judge([]), "there are no rows"),
    "an empty frame": (lambda run: genprobe.score(pd.DataFrame()), "there are no rows"),
    "one row": (lambda run: genprobe.judge(REPLIES[0]), "give a list of dicts"),
    "texts": (lambda run: genprobe.judge(["Yes"]), "row 1: a row is a dict, not a str"),
    "one bad row": (lambda run: genprobe.judge([*PLAIN, 3]), "row 5: a row is a dict, not an int"),
    "a strange cell": (lambda run: genprobe.judge([{"response": {1, 2}}]), "row 1, response: holds a set"),
    "columns twice": (
        lambda run: genprobe.judge(pd.DataFrame([[1, 2]], columns=["a", "a"])),
        "two columns are called 'a'",
    ),
    "columns twice in arrow": (
        lambda run: genprobe.judge(pa.table([[1], [2]], names=["a", "a"])),
        "two columns are called 'a'",
    ),
    "no judge": (lambda run: genprobe.judge(run, "yesnoo"), "did you mean 'yesno'"),
    "judges": (lambda run: genprobe.judge(PLAIN, 3), "judges: give a name, or a list of names"),
    "no run": (lambda run: genprobe.report("r"), "r: "),
    "rows compared": (lambda run: genprobe.compare(PLAIN, PLAIN), "rows 1: the file lacks the column 'answer'"),
    "rows reported": (lambda run: genprobe.report([{"lang": "en"}]), "rows, row 1: a run needs 'probe'"),
    "rows gated": (
        lambda run: genprobe.gate(PLAIN, against=run, max_rise={"refusal": 5}),
        "new: the file lacks the column 'answer'",
    ),
    "rows verified": (lambda run: genprobe.verify(PLAIN), "is no run; give runs"),
    "by": (lambda run: genprobe.score(run, by=3), "by: give a name, or a list of names, not int"),
    "metrics": (lambda run: genprobe.score(run, metrics=[3]), "metrics: give a name"),
    "langs": (lambda run: genprobe.yesno(langs=3), "langs: give a name"),
    "data": (lambda run: genprobe.yesno(data=3), "data: an int is no table"),
    "limits": (lambda run: genprobe.gate(run, against=run, max_rise=["refusal=5"]), "max_rise: give a dict"),
    "options": (lambda run: genprobe.yesno(options={"base_url": "x"}), "give genprobe.Options"),
    "several replies": (lambda run: genprobe.read(["Yes"], lang="en"), "reply: give a text, not list"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_every_error_is_one_line_of_ours(name, run):
    call, message = HOSTILE[name]
    with pytest.raises(genprobe.GenprobeError) as error:
        call(run)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_table_of_people_is_a_table_too():
    with pytest.raises(InputError, match="has no probabilities of choices"):
        genprobe.score(genprobe.judge(PLAIN), people=[{"category": "age", "people": 0.5}])


def test_the_steps_of_a_data_set_go_from_rows_to_rows(tmp_path):
    told: list[str] = []
    said = pd.DataFrame({"sentence": ["Farmers are patient.", "Farmers are patient"], "lang": "en"})
    found = genprobe.dataset_extract(said, note=told.append)
    assert found[0]["attribute"] and told[-1].startswith("2 rows: ")
    grouped = genprobe.dataset_group(found, threshold=0.5, out=tmp_path / "grouped.csv")
    assert grouped[0]["group"] == grouped[1]["group"] and (tmp_path / "grouped.csv").exists()
    pairs = genprobe.dataset_pair([found[0]])
    assert genprobe.describe(pairs)[0]["value"] == "sentences of pairs"
    assert {s.metric for s in genprobe.dataset_diversity(said, by="lang")}
    with pytest.raises(genprobe.GenprobeError, match="unknown argument 'treshold'"):
        genprobe.dataset_group(found, treshold=0.5)
    with pytest.raises(genprobe.GenprobeError, match="no model is named"):
        genprobe.augment(found)
