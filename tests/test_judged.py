"""Shares of refusals, if the judge errs as on other texts: a band, not a correction."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from genprobe.metrics import corrected, find, judged
from genprobe.records import Score
from genprobe.resources import registry
from genprobe.statistics import share_interval, wilson

CALLED = ((33.0, 36.0), (2.0, 216.0))  # refusals, and other texts: called so, all


def test_the_value_is_that_of_rogan_and_gladen():
    s, f = 33 / 36, 2 / 216
    for hits, n in ((40, 100), (300, 400), (70, 1000)):
        value = float(judged.estimate(np.array([hits, n], float), CALLED))
        assert value == pytest.approx((hits / n - f) / (s - f))
    # Fewer are called so than the judge calls by mistake.
    assert float(judged.estimate(np.array([0.0, 100.0]), CALLED)) == 0


@pytest.mark.parametrize(("hits", "n"), [(33, 36), (2, 216), (0, 50), (330, 360), (5000, 6000)])
def test_errors_are_varied_by_their_limits_and_by_their_odds(hits, n):
    low, high = corrected.plausible(hits, n)
    ends = wilson(hits, n)
    assert low <= ends[0] and high >= ends[1]
    p = hits / n
    if 0 < p < 1:
        odds = p / (1 - p)
        assert low / (1 - low) <= odds / 2 + 1e-9 and high / (1 - high) >= odds * 2 - 1e-9
    if n > 1000:  # many labelled texts do not make other texts known
        assert (low, high) == pytest.approx((odds / 2 / (1 + odds / 2), odds * 2 / (1 + odds * 2)))


def test_no_end_falls_when_a_reply_is_a_refusal():
    """20 statements × 30 replies, 0 and 1 refusals: the upper end fell from 10.0 to 0.5 %."""
    ends = []
    for hits in range(12):
        units = np.column_stack([np.zeros(20), np.full(20, 30.0)])
        units[0, 0] = hits
        ends.append(judged.interval(units, CALLED))
    assert (np.diff(np.array(ends), axis=0) >= -1e-9).all()
    assert ends[0][0] == 0 and ends[0][1] > share_interval(np.zeros(20), np.full(20, 30))[1]


@pytest.mark.parametrize(
    ("s", "f", "share"),
    [(0.97, 0.03, 0.3), (0.97, 0.03, 0.02), (0.8, 0.009, 0.3), (0.92, 0.001, 0.1)],
)
def test_the_interval_holds_where_the_run_is_easier_or_harder_than_the_labelled_texts(s, f, share):
    """A run of sensitivity 0.97 and false alarms of 3 %: it held 74 to 88 %."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(60):
        true = rng.binomial(5, rng.beta(1.5 * share, 1.5 * (1 - share), 100))
        k = rng.binomial(true, s) + rng.binomial(5 - true, f)
        low, high = judged.interval(np.column_stack([k, np.full(100, 5)]).astype(float), CALLED)
        held += low <= share <= high
    assert held >= 56


def test_a_judge_that_may_be_no_better_than_chance_tells_nothing():
    assert judged.interval(np.full((4, 2), 5.0), ((5.0, 10.0), (4.0, 10.0))) == (0.0, 1.0)
    assert judged.interval(np.zeros((3, 2)), CALLED) is None


def test_a_judge_that_cannot_tell_says_so():
    score = Score(
        metric="refusal-corrected", by={}, value=0.4, low=0.1, high=0.7, n=200, excluded={},
        bounds=None, signature="",
    )  # fmt: skip
    (line,) = corrected.cannot_tell([score])
    assert line == "between 10 and 70 % of the essays are refused: this judge cannot tell more"


def test_what_is_read_stands_before_what_errors_could_make_of_it():
    for name in ("refusal", "story-refusal", "negrate"):
        assert 0 < find(name).place < find(f"{name}-corrected").place
        assert "a review of these" in find(f"{name}-corrected").note
    assert "odds2" in find("refusal-corrected").id


def test_a_copy_of_the_prompts_without_measured_errors_corrects_nothing(tmp_path):
    """As one that somebody made before there were any: other figures are counted as ever."""
    copy = shutil.copytree(registry.PROMPTS, tmp_path / "prompts")
    (copy / "measured.toml").unlink()
    code = (
        "from genprobe import metrics; from genprobe.metrics import judged; "
        "assert judged.METRICS == () and metrics.find('refusal')"
    )
    env = os.environ | {"GENPROBE_PROMPTS": str(copy)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
