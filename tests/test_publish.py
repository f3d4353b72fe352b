"""`publish` writes a folder that a stranger checks with nothing else: every byte, every figure."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import genprobe
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden" / "9361e4c"
ROOT = Path(genprobe.__file__).parents[1]
HOST = "secret.example"
TEXTS = ("тұрып", "birthday")  # words of statements of the golden runs


def scored(kind, tmp_path, server=""):
    folder = Path(shutil.copytree(GOLDEN / kind, tmp_path / kind))
    if server:
        spec = json.loads((folder / "run.json").read_text())
        spec |= {"server": f"http://{server}/v1", "engine": "openai", "engine_version": server}
        (folder / "run.json").write_text(json.dumps(spec))
    run = Run.open(folder)
    genprobe.judge(run, list(run.judges())) if run.judges() else None
    (folder / "scores.json").unlink()
    run.seal()
    genprobe.score(folder, save=True)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return [scored(kind, place) for kind in ("yesno", "pairs")]


@pytest.fixture(scope="module")
def published(runs, tmp_path_factory):
    return genprobe.publish(runs, tmp_path_factory.mktemp("out") / "public")


def verified(*words):
    said = CliRunner().invoke(cli, ["verify", *map(str, words)], standalone_mode=False)
    assert said.exception is None, said.exception
    return said.return_value, said.stdout


def test_a_stranger_makes_the_figures_again_equal_to_the_cell(runs, published, tmp_path):
    """In a process with nothing but the folder: another home, no settings, another place."""
    alone = Path(shutil.copytree(published, tmp_path / "alone" / "public"))
    words = [sys.executable, "-m", "genprobe", "verify", "--recompute", "public"]
    clean = {"PYTHONPATH": str(ROOT), "PATH": os.defpath, "HOME": str(tmp_path)}
    done = subprocess.run(words, cwd=alone.parent, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for run in runs:
        stored = Run.open(run).scores()
        assert f"{run.name}: {len(stored)} figures computed again, all as stored" in done.stdout
        assert Run.open(alone / "runs" / run.name).scores() == stored
    assert "table and cards made again" in done.stdout
    rows = csv.DictReader((alone / "figures.csv").read_text("utf-8-sig").splitlines())
    table = {(row["run"], row["metric"], row["by"]): row for row in rows}
    for run in runs:
        for one in Run.open(run).scores():
            cell = table[run.name, one.metric, json.dumps(one.by)]
            assert cell["signature"] == one.signature and int(cell["n"]) == one.n
            assert (float(cell["value"]) if cell["value"] else None) == one.value


def test_every_altered_byte_is_found(published, tmp_path):
    folder = Path(shutil.copytree(published, tmp_path / "public"))
    from genprobe import publishing

    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(paths) > 30
    for path in paths:
        before = path.read_bytes()
        for at in {0, len(before) // 2, len(before) - 1} if before else ():
            changed = bytearray(before)
            changed[at] ^= 1
            path.write_bytes(bytes(changed))
            try:
                found = publishing.check(folder)[2]
            except genprobe.GenprobeError as error:
                found = [str(error)]
            assert found, f"{path.relative_to(folder)} at {at}"
        path.unlink()
        if path.name not in ("SHA256SUMS", "published.json", "run.json"):
            assert publishing.check(folder)[2], path
        path.write_bytes(before)
    (folder / "more.txt").write_text("")
    assert publishing.check(folder)[2] == [f"{folder}/more.txt: was added since it was published"]


def test_figures_that_were_edited_with_their_checksum_are_found_by_counting_again(
    published, tmp_path
):
    folder = Path(shutil.copytree(published, tmp_path / "public"))
    for name, old, new in (
        ("figures.csv", "control", "another"),
        ("README.md", "n | left out", "n | no loss"),
        ("model-index.yml", "control", "another"),
    ):
        path = folder / name
        kept = path.read_bytes()
        path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
        sums = (folder / "SHA256SUMS").read_text()
        was, now = (hashlib.sha256(text).hexdigest() for text in (kept, path.read_bytes()))
        (folder / "SHA256SUMS").write_text(sums.replace(was, now))
        assert verified(folder)[0] == 0
        code, said = verified(folder, "--recompute")
        assert code == 1 and name in said
        path.write_bytes(kept)
        (folder / "SHA256SUMS").write_text(sums)


def test_it_names_the_seal_and_the_manifest_of_the_raw_runs(runs, published):
    page = (published / "README.md").read_text("utf-8")
    about = json.loads((published / "published.json").read_text())
    for run, said in zip(runs, about["runs"], strict=True):
        manifest = (run / "MANIFEST").read_bytes()
        assert said["raw_seal"] == said["seal"] == Run.open(run).seals()[-1].short
        assert said["raw_seal"] in page and hashlib.sha256(manifest).hexdigest() in page
        assert (published / "runs" / run.name / "MANIFEST").read_bytes() == manifest
        for name in ("requests.jsonl", "scores.json", "run.json"):
            mine = published / "runs" / run.name / name
            assert mine.read_bytes() == (run / name).read_bytes()
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=published)
    assert done.returncode == 0


def test_hosts_are_hidden_everywhere_and_the_copy_has_a_seal_of_its_own(tmp_path):
    run = scored("yesno", tmp_path, HOST)
    out = genprobe.publish(run, tmp_path / "public", hide="hosts")
    assert not [p for p in out.rglob("*") if p.is_file() and HOST.encode() in p.read_bytes()]
    about = json.loads((out / "published.json").read_text())["runs"][0]
    assert about["raw_seal"] == Run.open(run).seals()[-1].short != about["seal"]
    assert verified(out, "--recompute")[0] == 0
    values = [(one.metric, one.by, one.value, one.n) for one in Run.open(run).scores()]
    mine = Run.open(out / "runs" / "yesno").scores()
    assert [(one.metric, one.by, one.value, one.n) for one in mine] == values


@pytest.mark.parametrize("kind", ["yesno", "pairs"])
def test_without_texts_the_figures_are_counted_of_the_table(kind, tmp_path):
    run = scored(kind, tmp_path)
    texts = {one.text for one in Run.open(run).statements()}
    words = {word for text in texts for word in text.rstrip(".").split() if len(word) > 5}
    out = genprobe.publish(run, tmp_path / "public", hide=["texts"])
    there = {p.name for p in (out / "runs" / kind).rglob("*") if p.is_file()}
    assert not there & {"requests.jsonl", "responses.jsonl", "statements.jsonl", "report.html"}
    import pandas as pd

    frame = pd.read_parquet(out / "runs" / kind / "outcomes.parquet").to_csv()
    for path in [p for p in out.rglob("*") if p.is_file() and p.suffix != ".parquet"]:
        text = path.read_bytes().decode("utf-8")
        plain = text.encode().decode("unicode_escape", "replace") + text
        assert not [word for word in words if word in plain], path
    assert not [text for text in texts if text in frame]
    code, said = verified(out, "--recompute")
    assert code == 0 and "counted from outcomes.parquet" in said
    table = out / "runs" / kind / "scores.json"
    rows = json.loads(table.read_text())
    at = next(n for n, row in enumerate(rows) if row["value"])
    rows[at]["value"] /= 2
    table.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    code, said = verified(out, "--recompute")
    assert code == 1 and "the records give" in said and "was edited" in said


def test_gated_data_are_published_without_texts(tmp_path):
    run = scored("yesno", tmp_path)
    spec = json.loads((run / "run.json").read_text()) | {"data": "shades"}
    (run / "run.json").write_text(json.dumps(spec))
    for name in ("scores.json", "MANIFEST", "README.md", "outcomes.parquet"):
        (run / name).unlink()
    Run.open(run).seal()
    genprobe.score(run, save=True)
    told = []
    out = genprobe.publish(run, tmp_path / "public", note=told.append)
    assert any("is gated" in line for line in told)
    assert not list(out.rglob("responses.jsonl"))


def test_what_cannot_be_published_leaves_nothing(tmp_path):
    run = scored("yesno", tmp_path)
    with pytest.raises(InputError, match="part to hide"):
        genprobe.publish(run, tmp_path / "public", hide="names")
    with (run / "responses.jsonl").open("r+") as file:
        file.write("[")
    with pytest.raises(genprobe.GenprobeError, match="verify"):
        genprobe.publish(run, tmp_path / "public")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["yesno"]


def test_the_hub_reads_the_card_and_mlcroissant_the_document(published):
    hub = pytest.importorskip("huggingface_hub")
    card = hub.DatasetCard.load(published / "README.md")
    assert card.data.license == "other" and card.data.configs
    index = hub.ModelCard(f"---\n{(published / 'model-index.yml').read_text()}\n---\n")
    results = index.data.eval_results
    assert results and all(one.metric_type.startswith("genprobe.") for one in results)
    datasets = pytest.importorskip("datasets")
    name = "yesno-responses"
    rows = datasets.load_dataset(str(published), name, split="train")
    assert len(rows) == Run.open(published / "runs" / "yesno").count("responses")
    mlcroissant = pytest.importorskip("mlcroissant")
    found = mlcroissant.Dataset(jsonld=published / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    rows = list(found.records("yesno-outcomes-rows"))
    assert len(rows) == Run.open(published / "runs" / "yesno").count("requests")


def test_the_validator_of_every_eval_ever_accepts_the_records(published):
    core = pytest.importorskip(
        "every_eval_ever.validator.validation_core",
        reason="skipped: every-eval-ever is not installed (it needs Python 3.12)",
    )
    found = sorted(published.glob("data/*/*/*/*.json"))
    assert len(found) == 2
    for path in found:
        report = core.validate_file(path)
        assert report.valid, report.errors
        assert core.check_path_structure(path.relative_to(published).as_posix()) == []
        record = json.loads(path.read_text())
        assert core.check_score_metadata(record) == core.check_model_deployment(record) == []


def test_the_records_of_every_eval_ever_hold_the_figures(published):
    for path in published.glob("data/*/*/*/*.json"):
        record = json.loads(path.read_text())
        run = Run.open(published / record["source_metadata"]["additional_details"]["run"])
        kept = [one for one in run.scores() if one.value is not None]
        results = record["evaluation_results"]
        assert [one["score_details"]["score"] for one in results] == [one.value for one in kept]
        assert len({one["evaluation_result_id"] for one in results}) == len(results)
        assert "neither correct nor wrong" in str(record["source_metadata"])
        assert not list(path.parent.glob("*_samples.jsonl"))
