"""promptfoo runs the configuration that `genprobe peers promptfoo` writes; its results give our table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from conftest import cells, genprobe, said

PROGRAM = os.environ.get("PROMPTFOO") or shutil.which("promptfoo")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="promptfoo is not installed: `make peers`")
MODEL = """\
const said = %s;
module.exports = class {
  id() { return "scripted"; }
  async callApi(prompt) { return { output: said[prompt] }; }
};
"""


@pytest.fixture(scope="module")
def results(home):
    asked = "peers promptfoo --lang kk --data data.jsonl -o foo"
    folder = home / genprobe(*asked.split(), folder=home).strip()
    config = folder / "promptfooconfig.json"
    prompts = [one["vars"]["prompt"] for one in json.loads(config.read_text("utf-8"))["tests"]]
    model = folder / "model.js"
    model.write_text(MODEL % json.dumps({one: said(one) for one in prompts}), "utf-8")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    quiet |= {"PROMPTFOO_CONFIG_DIR": str(home / "config"), "PROMPTFOO_DISABLE_SHARING": "1"}
    done = subprocess.run(
        [
            *(str(PROGRAM), "eval", "--no-cache", "-c", str(config), "-r", f"file://{model}"),
            *("-o", str(home / "foo.json")),
        ],
        cwd=home,
        env=os.environ | quiet,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 100), done.stderr + done.stdout  # 100: a test did not pass
    return json.loads((home / "foo.json").read_text("utf-8"))["results"]


def test_its_named_scores_are_the_values_of_our_table(results, ours):
    [prompt] = results["prompts"]
    sums, counts = prompt["metrics"]["namedScores"], prompt["metrics"]["namedScoresCount"]
    told = [key for key in ours if key[0] in ("yes", "no", "ambiguous", "recognised", "endorsed")]
    assert {f"{metric}_{probe}" for metric, probe in told} == sums.keys()
    for metric, probe in told:
        (value, _, _, n, *_), name = ours[metric, probe], f"{metric}_{probe}"
        assert (sums[name] / counts[name], counts[name]) == (pytest.approx(value), n), name


def test_it_passes_what_was_read_and_says_why(results):
    for one in results["results"]:
        [part] = one["gradingResult"]["componentResults"]
        assert part["reason"].startswith(("yes (", "no (", "ambiguous ("))
        assert one["success"] != part["reason"].startswith("ambiguous")


def test_its_results_give_the_table_again(results, ours, home):
    genprobe("judge", "foo.json", "-o", "of-promptfoo", "-q", folder=home)
    assert cells("of-promptfoo", folder=home) == ours
