"""`--like RUN` asks the questions of a folder again; the page of a folder says how and what came."""

import json
import shutil
from pathlib import Path

import pytest
from test_own_pack import PACK

import genprobe
from genprobe.errors import InputError, RunError
from genprobe.records import Request
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden" / "9361e4c"
TASKS = {"yesno": "yesno", "stories": "stories", "pairs": "logprob", "choices": "choices"}


def copied(kind, tmp_path):
    return Path(shutil.copytree(GOLDEN / kind, tmp_path / "old"))


def asked(task, folder, tmp_path, model=None, **more):
    return getattr(genprobe, task)(model, like=folder, out=tmp_path / "new", **more)


@pytest.mark.parametrize("kind", TASKS)
def test_the_questions_of_an_older_folder_are_asked_again_byte_for_byte(kind, tmp_path):
    old = copied(kind, tmp_path)
    run = asked(TASKS[kind], old, tmp_path)
    for name in ("statements.jsonl", "requests.jsonl"):
        assert (run.folder / name).read_bytes() == (old / name).read_bytes()
    assert run.verify() == []
    kept = ("pack", "pack_hashes", "data", "statements", "languages", "probes", "decode")
    drawn = ("temperature", "top_p", "max_tokens", "seed", "samples", "limit")
    was = Run.open(old).spec
    assert all(getattr(run.spec, name) == getattr(was, name) for name in (*kept, *drawn))


def test_the_wordings_of_the_folder_are_asked_though_the_installed_pack_is_another(tmp_path):
    """A folder in words that no pack has; both runs are compared question by question."""
    old = copied("yesno", tmp_path)
    base, lines = Run.open(old).spec.seed, []
    for r in list(Run.open(old).requests()):
        said = [{**one, "content": "Ойланыңыз. " + one["content"]} for one in r.messages]
        how = {"base": base, "sample": r.sample, "decode": r.decode, "options": r.options}
        lines.append(Request.asked(r.statement, r.lang, r.pack, r.probe, said, **how).to_json())
    (old / "requests.jsonl").write_text("".join(f"{line}\n" for line in lines))
    for name in ("responses", "logprobs"):
        (old / f"{name}.jsonl").write_text("")
    run = asked("yesno", old, tmp_path)
    assert (run.folder / "requests.jsonl").read_text() == (old / "requests.jsonl").read_text()
    again = genprobe.yesno(like=run, out=tmp_path / "again")
    (found,) = genprobe.compare(run, again, metrics="endorsed", by="decode")[:1]
    assert found.n == 4 and list(again.requests()) == list(run.requests())


def test_recorded_replies_are_asked_of_a_model_that_is_named(tmp_path):
    old, told = copied("essays", tmp_path), []
    with pytest.raises(InputError, match="recorded; name --model"):
        asked("essays", old, tmp_path)
    run = asked("essays", old, tmp_path, str(old), engine="replay", note=told.append)
    assert run.verify() == [] and run.spec.decode == ("recorded",)
    assert run.spec.temperature is None


def test_what_a_folder_says_is_not_said_otherwise(tmp_path):
    old = copied("yesno", tmp_path)
    for more in ({"langs": "kk"}, {"samples": 2}, {"temperature": 0.5}, {"wordings": "all"}):
        with pytest.raises(InputError, match="--like"):
            asked("yesno", old, tmp_path, **more)
    with pytest.raises(InputError, match="genprobe yesno --like"):
        asked("stories", old, tmp_path)
    assert not (tmp_path / "new").exists()


def test_a_folder_does_not_say_where_a_key_is_sent(tmp_path):
    old = copied("yesno", tmp_path)
    spec = json.loads((old / "run.json").read_text())
    spec |= {"server": "http://stranger.example/v1", "engine": "openai", "model": "m"}
    (old / "run.json").write_text(json.dumps(spec))
    with pytest.raises(InputError, match="--base-url"):
        asked("yesno", old, tmp_path)


@pytest.mark.parametrize("edited", ['"role":"user"', '"seed":1'])
def test_edited_questions_are_not_asked(edited, tmp_path):
    old = copied("yesno", tmp_path)
    path = old / "requests.jsonl"
    to = {'"role":"user"': '"role":"system"', '"seed":1': '"seed":11'}[edited]
    assert edited in path.read_text()
    path.write_text(path.read_text().replace(edited, to, 1))
    with pytest.raises(RunError, match="was edited"):
        asked("yesno", old, tmp_path)


@pytest.mark.parametrize("how", ["pack", "personas", "wordings"])
def test_system_prompt_personas_and_a_pack_of_ones_own_are_those_of_the_folder(how, tmp_path):
    pack = tmp_path / "safety.toml"
    pack.write_text(PACK, "utf-8")
    given = {"pack": pack} if how == "pack" else {how: "2"}
    first = genprobe.yesno(langs="en", limit=1, system="Be brief.", out=tmp_path / "old", **given)
    pack.unlink()
    run = asked("yesno", first.folder, tmp_path)
    assert list(run.requests()) == list(first.requests())
    assert run.spec == first.spec and run.verify() == []


def test_the_page_of_a_run_says_how_it_was_asked_and_what_came(tmp_path):
    run = genprobe.yesno(langs="en", limit=1, out=tmp_path / "run")
    genprobe.score(run, save=True)
    page = (run.folder / "README.md").read_text()
    for said in ("genprobe yesno --like FOLDER", "1 items, 3 questions, 3 replies", "temperature"):
        assert said in page
    first = run.scores()[0]
    assert f"| {first.metric} | " in page and f" | {first.n} | " in page
    genprobe.judge(run, "refusal")  # the same reader: the figures hold
    assert f"| {first.metric} | " in (run.folder / "README.md").read_text()
    genprobe.judge(run, "yesno", parser="strict")  # another: they were counted of other labels
    page = (run.folder / "README.md").read_text()
    assert f"| {first.metric} | " not in page and "No figures" in page


def test_rejudge_names_each_label_that_moves_and_writes_nothing(tmp_path):
    old = copied("yesno", tmp_path)
    path = old / "judgments" / "yesno.jsonl"
    lines = path.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    at = next(n for n, row in enumerate(rows) if row["label"] == "yes")
    rows[at]["label"] = "no"  # as an older reader had it
    gone = rows.pop()  # and a reply that it had not read
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = {one: one.read_bytes() for one in old.rglob("*") if one.is_file()}
    told: list[str] = []
    found = list(genprobe.rejudge(old, note=told.append, out=tmp_path / "moved.jsonl"))
    assert {one: one.read_bytes() for one in old.rglob("*") if one.is_file()} == before
    assert [(one["request"], one["was"], one["now"]) for one in found] == [
        (rows[at]["request"], "no", "yes"),
        (gone["request"], "no label", gone["label"]),
    ]
    assert any(line.startswith("yesno: 2 of 11 labels move (yesno@11") for line in told)
    assert any(f"no -> yes: 1: kk {found[0]['probe']}" in line for line in told)
    assert len((tmp_path / "moved.jsonl").read_text().splitlines()) == 2
    genprobe.judge(old, ["yesno"])
    assert list(genprobe.rejudge(old, "yesno")) == []


def test_rejudge_leaves_what_people_and_models_said(tmp_path):
    old, told = copied("yesno", tmp_path), []
    shutil.copy(old / "judgments" / "yesno.jsonl", old / "judgments" / "reviewed-yesno.jsonl")
    note = json.loads((old / "judgments" / "yesno.json").read_text())
    note |= {"judge": "reviewed-yesno", "signature": "people"}
    (old / "judgments" / "reviewed-yesno.json").write_text(json.dumps(note))
    assert list(genprobe.rejudge(old, note=told.append)) == []
    assert any(line.startswith("reviewed-yesno: not read again") for line in told)
    with pytest.raises(InputError, match="people's"):
        genprobe.rejudge(old, "reviewed-yesno")
