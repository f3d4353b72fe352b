"""Every stored figure of a run, its interval with it, computed again from the records."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize

from genprobe import api, report
from genprobe.analysis.recompute import recompute, tested
from genprobe.analysis.recompute.figures import Figure
from genprobe.analysis.score import score
from genprobe.commands import cli
from genprobe.review import correction
from genprobe.runs.run import Run
from genprobe.selftest import chain

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
    score(folder)
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
        "n": "n is 99",
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


# --- rates corrected by a review


def _review(seed, replies, reviewed, right, clusters, weights):
    """Replies that a judge calls positive or not, a part of them reviewed: as genprobe takes them,
    and as rows."""
    rng = np.random.default_rng(seed)
    called = rng.random(replies) < 0.3
    true = np.where(rng.random(replies) < right, called, ~called).astype(float)
    true[rng.permutation(replies)[reviewed:]] = np.nan
    weight, cluster = rng.choice(weights, replies), rng.integers(0, clusters, replies)
    rows = [
        {"f": bool(f), "y": None if np.isnan(y) else bool(y), "w": float(w), "cluster": str(c)}
        for f, y, w, c in zip(called, true, weight, cluster, strict=True)
    ]
    return correction.corrected(called, true, weight, cluster), rows


@pytest.mark.parametrize(
    ("size", "weights"),
    [
        ((40, 20, 0.8, 40), [1.0, 2.5]),
        ((200, 60, 0.9, 200), [1.0]),
        ((300, 90, 0.8, 30), [1.0]),
        ((12, 8, 1.0, 12), [1.0]),
    ],
)
def test_ends_of_corrected_rates_are_where_the_test_turns(size, weights):
    found, rows = _review(3, *size, weights)
    right = [{**r, "y": None if r["y"] is None else r["y"] == r["f"]} for r in rows]
    rg_by_truth = len(weights) == 1
    cells = [
        (rows, found.ppi, found.ppi_low, found.ppi_high, False),
        (right, found.accuracy, found.accuracy_low, found.accuracy_high, False),
        (rows, found.rg, found.rg_low, found.rg_high, rg_by_truth),
    ]
    for of, value, low, high, by_truth in cells:
        assert value is not None
        differs = tested.ends(tested.counts(of), value, by_truth)
        assert differs((), (low, high)) == ""
        # A tenth of the width further in or out is another interval.
        wide = (high - low) / 4
        assert differs((), None) and differs((), (low + wide, high))
        assert high == 1 or differs((), (low, min(high + wide, 0.999)))


def test_the_rate_is_solved_by_a_likelihood_that_scipy_finds_too():
    """The halving against a search over both shares at once."""
    of = [(np.array([x]), np.array([n])) for x, n in ((60.0, 200.0), (25.0, 30.0), (9.0, 60.0))]
    three = [(float(x[0]) + 0.005, float(n[0]) + 0.01) for x, n in of]

    def loss(shares):
        s, t = shares
        rates = (0.25 * s + 0.75 * t, s, t)
        return -sum(
            x * np.log(p) + (n - x) * np.log1p(-p) for (x, n), p in zip(three, rates, strict=True)
        )

    best = minimize(loss, (0.5, 0.5), bounds=[(1e-6, 1 - 1e-6)] * 2, tol=1e-12).x
    _, s, t = tested._likeliest(0.25, of, by_truth=True)
    assert (s[0], t[0]) == pytest.approx(tuple(best), abs=1e-4)


# --- choices that a model is asked


def test_choices_that_were_asked_are_computed_again(tmp_path):
    """Recorded replies in all orders; forced choices and probabilities of the control model."""
    (first, *_) = chain._choices(tmp_path, ["kk"], 0)
    assert not first.fault
    forced = api.choices(
        data=str(tmp_path / "choices.jsonl"), decodes=["choice", "logprob"], out=tmp_path / "forced"
    )
    for run in (Run.open(tmp_path / "choices-first"), forced):
        score(run, by=["condition"])
        found = recompute(run)
        assert found.differences == [] and found.left == {}
        assert {s.metric for s in run.scores()} >= {"accuracy", "bbq-bias", "position-bias"}
        assert found.figures == len(run.scores())


def test_a_planted_review_is_computed_again_and_a_changed_end_is_named(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "stories", tmp_path / "run"))
    assert chain.again("stories", Run.open(folder), reviewed=True) == []
    scores = Run.open(folder).scores()
    assert {"ppi", "rg", "judge-accuracy", "pooled"} <= {s.metric for s in scores if s.value}
    people = {s.by["rate"] for s in scores if s.metric == "by-people" and s.value}
    assert people == {"negrate", "negrate-regard", "felt-or-shown"}
    page = re.sub(r"<[^>]*>|\s+", " ", report.render([folder], reviewed=tmp_path / "review.csv"))
    for said in (
        "most stories are negative in",
        "low regard in",
        "negative by only one of sentiment and regard",
    ):
        assert re.search(f"According to the reviewers, [^%]*%? ?[^%]*{said}", page), said
    changed = json.loads((folder / "scores.json").read_text())
    for one in changed:
        if one["metric"] in ("ppi", "pooled") and one["value"]:
            one["low"] *= 0.7
    (folder / "scores.json").write_text(json.dumps(changed))
    found = recompute(Run.open(folder), tmp_path / "review.csv")
    assert {line.split(" ")[0] for line in found.differences} == {"ppi", "pooled"}
