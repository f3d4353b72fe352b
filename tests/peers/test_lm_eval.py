"""lm-eval runs the tasks that `genprobe peers lm-eval` writes, and its values are those of our table."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
from conftest import cells, genprobe, said

lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed: `make peers`")


@pytest.fixture(scope="module")
def results(home):
    """What lm-eval finds; its samples are written to a folder."""
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        def generate_until(self, requests, disable_tqdm=False):
            assert {one.args[1]["max_gen_toks"] for one in requests} == {64}
            assert all(one.args[1]["until"] == [] for one in requests)  # no reply is cut
            return [said(one.args[0]) for one in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    asked = "peers lm-eval --lang kk --data data.jsonl -o tasks"
    folder = genprobe(*asked.split(), folder=home).strip()
    found = lm_eval.simple_evaluate(
        Scripted(),
        tasks=["genprobe_yesno_kk"],
        task_manager=TaskManager(include_path=str(home / folder), include_defaults=False),
        log_samples=True,
    )
    samples = found.pop("samples")
    tracker = EvaluationTracker(output_path=str(home / "lm-eval"))
    tracker.general_config_tracker.model_name = "scripted"
    tracker.general_config_tracker.model_name_sanitized = "scripted"
    tracker.save_results_aggregated(results=found, samples=samples)
    tracker.save_results_samples("genprobe_yesno_kk", samples["genprobe_yesno_kk"])
    return found["results"]["genprobe_yesno_kk"]


def test_its_values_are_our_table(results, ours):
    named = {name.partition(",")[0]: value for name, value in results.items()}
    assert {f"{m}_{p}": named[f"{m}_{p}"] for m, p in ours} == {
        f"{m}_{p}": value for (m, p), (value, *_) in ours.items()
    }
    assert not any(isinstance(v, float) and math.isnan(v) for v in named.values())


def test_its_samples_give_the_table_again(results, ours, home):
    genprobe("judge", "lm-eval", "-o", "of-lm-eval", "-q", folder=home)
    assert cells("of-lm-eval", folder=home) == ours


def test_the_command_line_finds_the_task(home, results):
    """Its own model `dummy` says the same to everything; the builtin statements are asked about."""
    folder = genprobe("peers", "lm-eval", "--lang", "mr", folder=home).strip()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--include_path", folder),
            *("--tasks", "genprobe_yesno_mr", "--limit", "6", "--output_path", "dummy"),
        ],
        cwd=home,
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    [path] = (home / "dummy").rglob("results*.json")
    found = json.loads(path.read_text("utf-8"))["results"]["genprobe_yesno_mr"]
    assert found["ambiguous_agreement,none"] == 1.0 and found["yes_recognition,none"] == 0.0
