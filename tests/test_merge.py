"""Pieces of a run, made apart, become one run that is whole and has the figures of the run at once."""

import dataclasses
import shutil

import pytest

import genprobe
from genprobe.errors import RunError
from genprobe.records import Failure
from genprobe.runs.merge import merge
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.tasks import judge_run
from tests.sample import REQUESTS, SPEC, STATEMENTS, reply


def piece(folder, statements, answered, judged=True, **changed):
    """A run about some statements, in which some requests are answered and the others failed."""
    spec = dataclasses.replace(SPEC, statements=statements_hash(statements), **changed)
    about = {(one.id, one.lang) for one in statements}
    requests = [one for one in REQUESTS if (one.statement, one.lang) in about]
    with Run.start(folder, spec, statements, requests) as run:
        for request in requests:
            if answered(request):
                run.append(reply(request))
        if not answered(requests[-1]):
            run.append(Failure(requests[-1].id, "engine", "gone", 1))
    if judged:
        judge_run(run)
    return run


def everything(_):
    return True


def figures(run):
    return [(s.metric, s.by, s.value, s.low, s.high, s.n, s.excluded) for s in genprobe.score(run)]


def test_pieces_about_other_statements_become_the_run(tmp_path):
    whole = piece(tmp_path / "whole", STATEMENTS, everything)
    half = len(STATEMENTS) // 2
    parts = STATEMENTS[:half], STATEMENTS[half:]
    made = [piece(tmp_path / f"{n}", part, everything, data=f"{n}") for n, part in enumerate(parts)]
    before = [(one.folder / "responses.jsonl").read_bytes() for one in made]
    run = genprobe.merge(made, tmp_path / "all")
    assert not run.verify() and run.spec.data == "0+1"
    assert list(run.requests()) == list(whole.requests())
    assert list(run.statements()) == list(STATEMENTS)
    for judge in whole.judges():
        assert list(run.judgments(judge)) == list(whole.judgments(judge))
    assert figures(run) == figures(whole)
    assert before == [(one.folder / "responses.jsonl").read_bytes() for one in made]
    # Again, and after an interruption: the same.
    kept = (run.folder / "responses.jsonl").read_bytes()
    (run.folder / "responses.jsonl").write_bytes(kept[: len(kept) // 2])
    merge([one.folder for one in made], run.folder)
    assert sorted(r.request for r in run.responses()) == sorted(r.id for r in REQUESTS)


def test_pieces_of_one_plan_become_the_run(tmp_path):
    names = [request.id for request in REQUESTS]
    odd = piece(tmp_path / "odd", STATEMENTS, lambda r: names.index(r.id) % 2)
    even = piece(tmp_path / "even", STATEMENTS, lambda r: not names.index(r.id) % 2)
    run = merge([odd.folder, even.folder], tmp_path / "all")
    whole = piece(tmp_path / "whole", STATEMENTS, everything)
    assert run.spec == whole.spec and not run.verify()
    for judge in whole.judges():
        assert list(run.judgments(judge)) == list(whole.judgments(judge))
    assert figures(run) == figures(whole)


def test_labels_that_not_all_pieces_have_are_left_out(tmp_path):
    half = len(STATEMENTS) // 2
    one = piece(tmp_path / "one", STATEMENTS[:half], everything)
    two = piece(tmp_path / "two", STATEMENTS[half:], everything, judged=False)
    lines = []
    run = merge([one.folder, two.folder], tmp_path / "all", lines.append)
    assert not run.judges() and any("read only some of the pieces" in line for line in lines)


@pytest.mark.parametrize("changed", [{"seed": 9}, {"model": "other"}, {"temperature": 0.5}])
def test_runs_that_asked_otherwise_are_no_pieces(tmp_path, changed):
    half = len(STATEMENTS) // 2
    one = piece(tmp_path / "one", STATEMENTS[:half], everything, judged=False)
    spec = dataclasses.replace(one.spec, **changed)
    with Run.start(tmp_path / "two", spec, STATEMENTS[:half], list(one.requests())):
        pass
    with pytest.raises(RunError, match=f"no piece of the same run .*{next(iter(changed))}"):
        merge([one.folder, tmp_path / "two"], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_runs_that_overlap_are_not_merged(tmp_path):
    one = piece(tmp_path / "one", STATEMENTS, everything, judged=False)
    shutil.copytree(one.folder, tmp_path / "two")
    with pytest.raises(RunError, match="also answered"):
        merge([one.folder, tmp_path / "two"], tmp_path / "all")
    with pytest.raises(RunError, match="at least two"):
        merge([one.folder], tmp_path / "all")


def test_places_tell_which_ids_come_again():
    from genprobe.runs.places import Places

    ids = ["00000000000000ff", "a\ud800", "a\ud801", "00000000000000ff", "a\ud800", "ä"]
    found = Places((one, 10 * at) for at, one in enumerate(ids))
    assert [found.get(one) for one in ids] == [0, 10, 20, 0, 10, 50]
    assert found.get("a") is None and found.again == [30, 40]
    assert Places(()).again == []
