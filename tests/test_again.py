"""`verify --recompute`: a folder, its figures and its tables belong together, or it says what does not."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from genprobe.analysis.again import score_again
from genprobe.analysis.score import score
from genprobe.commands import cli
from genprobe.files import read_rows
from genprobe.report import figures
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"


def copied(kind, tmp_path):
    return Path(shutil.copytree(GOLDEN / kind, tmp_path / kind))


def _scored(folder, **how):
    """Score a folder, whose stored scores may be of another version."""
    (folder / "scores.json").unlink(missing_ok=True)
    score(folder, save=True, **how)


def verified(*words):
    """The exit code of `verify --recompute`, and its lines."""
    words = ["verify", *map(str, words), "--recompute", "-q"]
    said = CliRunner().invoke(cli, words, standalone_mode=False)
    assert said.exception is None, said.exception
    return said.return_value, said.stdout.splitlines()


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("kind", ["yesno", "stories", "essays", "pairs", "choices"])
def test_a_run_that_was_scored_is_as_stored_and_nothing_is_written(kind, tmp_path):
    folder = copied(kind, tmp_path)
    _scored(folder)
    before = content(folder)
    assert verified(folder) == (0, [])
    assert content(folder) == before
    found = score_again(Run.open(folder))
    assert found.left == {} and found.figures == len(Run.open(folder).scores())


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("yesno", {"by": ["bias_type", "role"]}),
        ("yesno", {"by": ["statement"], "declared": True}),
        ("yesno", {"metrics": ["endorsed", "readings"], "band": True}),
        ("choices", {"by": ["condition"]}),
        ("choices", {"by": ["model", "lang"], "metrics": ["accuracy"]}),
        ("pairs", {"scorers": ["ppl", "bias"]}),
        ("stories", {"by": ["lang", "domain"]}),
    ],
)
def test_it_is_scored_again_as_it_was_scored(kind, how, tmp_path):
    folder = copied(kind, tmp_path)
    _scored(folder, **how)
    assert verified(folder) == (0, [])


def test_runs_that_were_scored_together_are_scored_again_each(tmp_path):
    one, other = copied("yesno", tmp_path), tmp_path / "other"
    shutil.copytree(one, other)
    spec = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(spec | {"model": "another"}))
    for folder in (one, other):
        for made in ("scores.json", "outcomes.csv", "outcomes.jsonl"):
            (folder / made).unlink(missing_ok=True)
    score([one, other], save=True)
    assert all("model" in s.by for s in Run.open(other).scores() if s.metric == "yes")
    for folder in (one, other):
        assert score_again(Run.open(folder)).differences == []


def test_a_figure_that_was_changed_is_named(tmp_path):
    other = {
        "value": 0.123,
        "n": 99,
        "excluded": {"refusal": 77},
        "bounds": [0.01, 0.99],
        "low": 0.012,
        "readings": {"ours": 0.5},
        "signature": "metric:endorsed/9",
    }
    folder = copied("yesno", tmp_path)
    _scored(folder)
    path = folder / "scores.json"
    scores = json.loads(path.read_text())
    own = [one for one in scores if one["value"] is not None and one["low"]]
    for one, (field, value) in zip(own, other.items(), strict=False):
        rest = one["signature"].partition("|")[2]
        one[field] = f"{value}|{rest}" if field == "signature" else value
    path.write_text(json.dumps(scores))
    wrong, lines = verified(folder)
    assert wrong and len(lines) == len(other)
    for line, one, (field, value) in zip(lines, own, other.items(), strict=False):
        assert line.startswith(f"{one['metric']} (") and f"the stored {field} " in line
        assert str(value) in line


def test_a_figure_that_was_taken_away_or_given_another_cell_is_named(tmp_path):
    folder = copied("choices", tmp_path)
    _scored(folder)
    path = folder / "scores.json"
    scores = json.loads(path.read_text())
    at, *_ = [n for n, one in enumerate(scores) if one["metric"] == "accuracy"]
    gone = scores.pop(at)
    path.write_text(json.dumps(scores))
    wrong, (line,) = verified(folder)
    assert wrong and line.startswith("accuracy (") and "is not stored" in line
    path.write_text(json.dumps([*scores, gone | {"by": gone["by"] | {"condition": "other"}}]))
    assert [line.rpartition(": ")[2] for line in verified(folder)[1]] == [
        "the records give no such figure",
        "the records give it, and it is not stored",
    ]


def test_a_judgment_that_was_changed_moves_the_figures(tmp_path):
    """The hash of the file is written anew, and the judge is another version now."""
    folder = copied("yesno", tmp_path)
    _scored(folder)
    path = folder / "judgments" / "yesno.jsonl"
    first, rest = path.read_text().split("\n", 1)
    other = {"yes": "no", "no": "yes", "ambiguous": "yes"}[json.loads(first)["label"]]
    path.write_text(json.dumps(json.loads(first) | {"label": other}) + "\n" + rest)
    found = score_again(Run.open(folder))
    assert {"yes", "outcomes.parquet"} <= {
        line.partition(":")[0].partition(" (")[0] for line in found.differences
    }


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_table_of_outcomes_that_was_changed_is_named(suffix, tmp_path):
    folder = copied("choices", tmp_path)
    path = folder / f"outcomes.{suffix}"
    _scored(folder, export=path)
    lines = path.read_text("utf-8-sig").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if re.search(r"\bambig\b", line))
    lines[at] = re.sub(r"\bambig\b", "disambig", lines[at])
    path.write_text("".join(lines))
    (line,) = score_again(Run.open(folder)).differences
    assert line.startswith(path.name) and "disambig, and the records give ambig" in line
    path.write_text("".join(lines[:-2]))  # in the CSV within a reply
    assert "fewer rows" in score_again(Run.open(folder)).differences[0]


def test_figures_of_a_report_belong_to_their_runs(tmp_path):
    folder = copied("pairs", tmp_path)
    _scored(folder)
    drawn = tmp_path / "figures"
    paths = [path for path in figures.draw([folder], drawn) if path.suffix == ".csv"]
    assert paths and verified(folder, "--figures", drawn) == (0, [])
    value = next(row["value"] for row in read_rows(paths[0]))
    paths[0].write_text(paths[0].read_text().replace(f",{value},", ",0.123,", 1))
    wrong, (line,) = verified(folder, "--figures", drawn)
    assert wrong and paths[0].name in line and f"0.123, and the records give {value}" in line
    paths[0].rename(drawn / "other.csv")
    assert "no such figure" in verified(folder, "--figures", drawn)[1][-1]
