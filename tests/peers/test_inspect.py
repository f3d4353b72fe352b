"""Inspect runs our task, found by its entry point, and its log shows our table."""

from __future__ import annotations

import pytest
from conftest import SAID, cells, genprobe, said

inspect_ai = pytest.importorskip("inspect_ai", reason="Inspect is not installed: `make peers`")


@pytest.fixture(scope="module")
def log(home):
    return run(home, "inspect")


def run(home, folder, **options):
    """Ask a model that answers as the stored replies say, each choice of it in the same way."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def reply(messages, *_):
        found = ModelOutput.from_content("mockllm/model", said(messages[-1].text))
        found.choices += [
            found.choices[0].model_copy(deep=True) for _ in range(1, options.get("num_choices", 1))
        ]
        found.usage = ModelUsage()  # else it counts tokens, for which it loads a file
        return found

    [log] = inspect_ai.eval(
        "genprobe/yesno",
        task_args={"lang": "kk", "data": str(home / "data.jsonl")},
        model=get_model("mockllm/model", custom_outputs=reply),
        log_dir=str(home / folder),
        display="none",
        **options,
    )
    assert log.status == "success"
    return log


def test_its_metrics_are_our_table(log, ours):
    [score] = log.results.scores
    found = {name: one.value for name, one in score.metrics.items()}
    told = {}
    for (metric, probe), (value, low, high, n, *_) in ours.items():
        parts = {"": value, "_low": low, "_high": high, "_n": n}
        told |= {f"{metric}_{probe}{of}": one for of, one in parts.items()}
    assert {name: found[name] for name in told} == told
    assert len({sample.output.completion for sample in log.samples}) == len(SAID)
    assert {sample.scores["genprobe"].value for sample in log.samples} == {"yes", "no", "ambiguous"}


def test_its_log_gives_the_table_again(log, ours, home):
    genprobe("judge", "inspect", "-o", "of-inspect", "-q", folder=home)
    assert cells("of-inspect", folder=home) == ours


def test_every_choice_of_a_reply_is_counted(ours, home):
    """As in the log: three choices of each question are three samples."""
    log = run(home, "three", num_choices=3)
    [score] = log.results.scores
    found = {name: one.value for name, one in score.metrics.items()}
    for (metric, probe), (_, _, _, n, *_) in ours.items():
        assert found[f"{metric}_{probe}_n"] == 3 * n
    genprobe("judge", "three", "-o", "of-three", "-q", folder=home)
    for (metric, probe), (value, low, high, n, *_) in cells("of-three", folder=home).items():
        parts = {"": value, "_low": low, "_high": high, "_n": n}
        assert {of: found[f"{metric}_{probe}{of}"] for of in parts} == parts
