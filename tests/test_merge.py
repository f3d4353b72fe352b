"""Pieces of a run, made apart, become one run that is whole and has the figures of the run at once."""

import dataclasses
import shutil

import pytest

import genprobe
from genprobe.errors import RunError
from genprobe.records import Failure
from genprobe.resources.packs import load_pack
from genprobe.runs.merge import merge
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.tasks import judge_run
from genprobe.tasks.pipeline.plan import plan
from tests.sample import REQUESTS, SPEC, STATEMENTS, reply


def piece(folder, statements, answered, judged=True, planned=REQUESTS, **changed):
    """A run about some statements, in which some requests are answered and the others failed."""
    spec = dataclasses.replace(SPEC, statements=statements_hash(statements), **changed)
    about = {(one.id, one.lang) for one in statements}
    requests = [one for one in planned if (one.statement, one.lang) in about]
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


def figured(run):
    """The scores of each reply or answer, which stand in cells of languages and questions."""
    return [s for s in genprobe.score(run) if "lang" in s.by]


def figures(run):
    found = [(s.metric, s.by, s.value, s.low, s.high, s.n, s.excluded) for s in figured(run)]
    return sorted(found, key=str)


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


def test_a_folder_and_a_pattern_of_pieces_are_one_table_and_overlapping_ones_stay_apart(tmp_path):
    german = [dataclasses.replace(one, lang="de") for one in STATEMENTS]
    asked = list(plan(german, load_pack(), list(SPEC.probes), seed=SPEC.seed))
    hashes = {"de": "cbacbacbacba"}
    en = piece(tmp_path / "langs" / "en", STATEMENTS, everything)
    of_de = {"planned": asked, "languages": ("de",), "pack_hashes": hashes}
    de = piece(tmp_path / "langs" / "de", german, everything, **of_de)
    merged = genprobe.merge([de, en], tmp_path / "merged")
    for given in (tmp_path / "langs", f"{tmp_path}/l*/*", [de, en]):
        assert (
            figures(given) == figures(merged) and len({s.by["lang"] for s in figured(given)}) == 2
        )
        assert genprobe.verify(given) == []
    assert all(f">{lang}<" in genprobe.report(tmp_path / "langs") for lang in ("German", "English"))
    # Pieces of one language share their cells: not pooled before they are merged.
    cut = STATEMENTS[:1], STATEMENTS[1:]
    halves = [piece(tmp_path / "halves" / f"{n}", part, everything) for n, part in enumerate(cut)]
    found = figured(tmp_path / "halves")
    assert {s.by["source"] for s in found} == {str(one.folder) for one in halves}
    for one in halves:
        mine = [s for s in found if s.by["source"] == str(one.folder)]
        assert [(s.metric, s.value, s.n) for s in mine] == [
            (s.metric, s.value, s.n) for s in figured(one)
        ]


def test_models_in_a_folder_are_compared_as_if_named_and_pieces_of_one_are_not(tmp_path):
    for name in ("model-1", "model-2"):
        piece(tmp_path / "models" / name, STATEMENTS, everything, model=f"org/{name}")
    named = genprobe.compare(tmp_path / "models" / "model-1", tmp_path / "models" / "model-2")
    assert len(named) and list(genprobe.compare(tmp_path / "models")) == list(named)
    assert list(genprobe.compare(f"{tmp_path}/models/*")) == list(named)
    for n, part in enumerate((STATEMENTS[:1], STATEMENTS[1:])):
        piece(tmp_path / "pieces" / f"{n}", part, everything)
    with pytest.raises(RunError, match="differ in more than the model"):
        genprobe.compare(tmp_path / "pieces")


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
