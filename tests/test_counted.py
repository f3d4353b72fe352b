"""The table that is counted: joined part by part, kept in the folder, made again when it is stale."""

import dataclasses
import errno
import shutil
from pathlib import Path

import pandas as pd
import pytest

from genprobe.analysis.score import plain_rows, score
from genprobe.files import door, read_rows, write_rows
from genprobe.outcomes import counted, table
from genprobe.records import Failure
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.tasks import judge_run
from genprobe.tasks.pipeline import reread as reread_module
from genprobe.tasks.pipeline.reread import reread
from tests.sample import REQUESTS, SPEC, STATEMENTS, reply

GOLDEN = Path(__file__).parent / "golden"
same = pd.testing.assert_frame_equal


@pytest.fixture(params=["yesno", "stories", "essays", "pairs", "choices"])
def run(request, tmp_path) -> Run:
    return Run.open(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(counted, "PART", 3)
    monkeypatch.setattr(counted, "GROUP", 7)


def test_parts_make_the_whole_table_and_so_does_the_file(run, small):
    whole = counted.compact(table.outcomes(run))
    parts = len(list(counted.joined(run)))
    assert parts > 1 or run.spec.decode == ("score",)
    same(counted.compact_of(run), whole)
    same(counted.counted(run, keep=True), whole)
    path, made = run.folder / "outcomes.parquet", []
    before = path.stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "compact_of", made.append)
        same(counted.counted(run, keep=True), whole)
    assert not made and path.stat().st_mtime_ns == before


def test_columns_of_the_data_may_differ_in_kind_between_parts(tmp_path, small):
    cells = [{"own": 1, "late": None}, {"own": "x", "late": 2.5}, {"own": True, "late": 3}]
    pairs = zip(STATEMENTS, cells * len(STATEMENTS), strict=False)
    statements = [dataclasses.replace(one, extra=extra) for one, extra in pairs]
    spec = dataclasses.replace(SPEC, statements=statements_hash(statements))
    with Run.start(tmp_path / "run", spec, statements, REQUESTS) as run:
        for request in REQUESTS[::2]:
            run.append(reply(request))
    judge_run(run)
    whole = counted.compact(table.outcomes(run))
    assert len(list(counted.joined(run))) > 1 and {"own", "late"} <= {*whole}
    same(counted.counted(run, keep=True), whole)
    same(counted.counted(run, keep=True), whole)


def test_it_is_made_again_when_something_has_changed(run):
    counted.counted(run, keep=True)
    path = run.folder / "outcomes.parquet"
    was = path.read_bytes()
    if judges := [name for name in run.judges() if name in ("yesno", "story", "refusal")]:
        (run.folder / "outcomes.csv").write_text("of an older version")
        judge_run(run, judges)
        assert not path.exists() and not (run.folder / "outcomes.csv").exists()
    with (run.folder / "failures.jsonl").open("ab") as file:  # the key holds all records
        name = next(iter(run.requests())).id
        file.write(Failure(name, "engine", "", 1).to_json().encode() + b"\n")
    counted.counted(run, keep=True)
    assert path.read_bytes() != was
    path.write_bytes(was)  # of other records
    same(counted.counted(run, keep=True), counted.compact(table.outcomes(run)))
    path.write_bytes(was[:-20])
    same(counted.counted(run, keep=True), counted.compact(table.outcomes(run)))
    assert not [line for line in run.verify() if "outcomes" in line]


def test_judgments_in_another_order_are_joined_too(tmp_path, small):
    run = Run.open(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    whole = counted.compact(table.outcomes(run))
    path = run.folder / "judgments" / "yesno.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    same(counted.counted(run, keep=True), whole)


@pytest.mark.parametrize("why", [errno.EROFS, errno.EACCES])
def test_a_folder_that_can_only_be_read_is_scored(run, why, monkeypatch):
    want = score(run)
    for name in ("outcomes.parquet", "scores.json"):
        (run.folder / name).unlink()
    before = sorted(path.name for path in run.folder.iterdir())

    def refuse(*_, **__):
        raise OSError(why, "read-only")

    for name in ("locking", "temporary"):
        monkeypatch.setattr(door, name, refuse)
    assert list(score(run)) == list(want)
    assert sorted(path.name for path in run.folder.iterdir()) == before


def test_verify_finds_a_forged_table_of_a_small_run(tmp_path):
    run = Run.open(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    made = counted.counted(run, keep=True)
    assert not reread(run).problems
    column = made["answer"].astype("str")
    forged = made.assign(answer=column.mask(column == "no", "yes").astype("category"))
    kinds = forged["answer"].cat.set_categories(made["answer"].cat.categories)
    run.write_outcomes(counted.file_of(forged.assign(answer=kinds), counted.kept(run)[1], ""))
    assert "outcomes.parquet: row " in " ".join(reread(run).problems)
    assert "answer is yes, and the records give no" in " ".join(reread(run).problems)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reread_module, "_FEW", 0)
        assert not reread(run).problems


def test_an_export_is_written_part_by_part_and_has_the_whole_table(run, small, tmp_path):
    score(run, export=tmp_path / "rows.jsonl")
    rows = list(read_rows(tmp_path / "rows.jsonl"))
    seals = {row.pop("seal", None) for row in rows}
    assert rows == list(read_rows(written(table.outcomes(run), tmp_path / "whole.jsonl")))
    assert list(rows[0]) == list(table.outcomes(run)) and len(seals) == 1


def written(outcomes, path) -> Path:
    write_rows(path, plain_rows(outcomes))
    return path


def test_an_export_of_a_file_has_its_texts(tmp_path):
    rows = [{"item": "a", "lang": "en", "probe": "agreement", "answer": "yes", "response": "Yes."}]
    path = written(pd.DataFrame(rows), tmp_path / "judged.jsonl")
    score(path, export=tmp_path / "rows.csv")
    [row] = read_rows(tmp_path / "rows.csv")
    assert (row["statement"], row["response"], row["says"]) == ("a", "Yes.", "true")
