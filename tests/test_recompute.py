"""Every stored figure of a run, its interval with it, computed again from the records."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from genprobe.analysis.recompute import recompute
from genprobe.analysis.recompute.figures import Figure
from genprobe.analysis.score import score
from genprobe.commands import cli
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(params=["yesno", "stories", "essays", "pairs", "choices"])
def run(request, tmp_path):
    folder = Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))
    score(folder)
    return folder


def test_every_figure_of_a_run_is_what_its_records_say(run):
    found = recompute(Run.open(run))
    assert found.differences == []
    assert found.left == {} and found.figures == len(Run.open(run).scores())


@pytest.mark.parametrize("field", ["value", "n", "excluded", "bounds", "low"])
def test_a_figure_that_was_changed_is_named(tmp_path, field):
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    scores = json.loads((folder / "scores.json").read_text())
    at = next(i for i, s in enumerate(scores) if s["metric"] == "endorsed" and s["value"])
    other = {
        "value": 0.123,
        "n": 99,
        "excluded": {"refusal": 77},
        "bounds": [0.01, 0.99],
        "low": 0.01,
    }
    scores[at][field] = other[field]
    (folder / "scores.json").write_text(json.dumps(scores))
    said = CliRunner().invoke(cli, ["verify", str(folder), "--recompute"], standalone_mode=False)
    assert said.return_value == 1
    (line,) = [line for line in said.stdout.splitlines() if line.startswith("endorsed (")]
    shown = {
        "value": "0.123",
        "n": "n 99",
        "excluded": "'refusal': 77",
        "bounds": "[0.01, 0.99]",
    } | {"low": "(0.01, "}
    assert shown[field] in line


def test_by_and_declared_are_computed_again_too(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    for more in ({"by": ["bias_type", "role"]}, {"declared": True}, {"by": ["statement"]}):
        score(folder, **more)
        found = recompute(Run.open(folder))
        assert found.differences == [] and found.figures > 5


def test_a_figure_computed_in_steps_may_differ_by_their_width_and_no_more():
    seeds = Figure(419.0, 3, {}, within=0.02)
    assert seeds.is_value(423.0) and not seeds.is_value(430.0) and not seeds.is_value(None)
    assert not Figure(419.0, 3, {}).is_value(419.1)
