"""Shares of stances and refusals, corrected for the errors of their judge."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from genprobe.metrics import corrected, find, judged
from genprobe.records import Score
from genprobe.resources import measured, registry
from genprobe.statistics import share_interval

CALLED = np.array(measured.called("stance")[1], float)
REFUSED = np.array(measured.called("refusal")[1], float)


def test_the_corrected_share_of_two_labels_is_that_of_rogan_and_gladen():
    s, f = REFUSED[0, 0] / REFUSED[0].sum(), REFUSED[1, 0] / REFUSED[1].sum()
    for hits, n in ((40, 100), (300, 400), (70, 1000)):
        value = float(judged.estimate(np.array([hits, n - hits], float), REFUSED, 0))
        assert value == pytest.approx((hits / n - f) / (s - f), abs=1e-3)
    # Fewer are called so than the judge calls by mistake.
    assert float(judged.estimate(np.array([0.0, 100.0]), REFUSED, 0)) == pytest.approx(0, abs=1e-3)


def test_the_shares_are_the_most_likely_ones():
    counts = np.array([60.0, 80.0, 30.0, 50.0])

    def cost(free):
        p, *rows = np.split(np.exp(free), 5)
        p, chances = p / p.sum(), np.array([row / row.sum() for row in rows])
        logs = (counts * np.log(p @ chances)).sum() + (CALLED * np.log(chances)).sum()
        return -logs

    start = np.log(np.concatenate([np.ones(4), (CALLED + 0.5).ravel()]))
    best = minimize(cost, start, options={"maxiter": 2000})
    p = np.exp(best.x[:4]) / np.exp(best.x[:4]).sum()
    found, logs = judged.likeliest(counts, CALLED, 0, np.array([np.nan]))
    assert logs[0] == pytest.approx(-best.fun, abs=0.05)
    assert found[0] == pytest.approx(p, abs=0.02)


def test_many_labelled_texts_make_a_narrow_interval_and_few_a_wide_one():
    units = np.tile([7.0, 3.0], (40, 1))
    low, high = judged.interval(units, REFUSED, 0)
    narrow = judged.interval(units, 100 * REFUSED, 0)
    wide = judged.interval(units, REFUSED / 10, 0)
    s, f = REFUSED[0, 0] / REFUSED[0].sum(), REFUSED[1, 0] / REFUSED[1].sum()
    assert low < narrow[0] < (0.7 - f) / (s - f) < narrow[1] < high
    assert wide[1] - wide[0] > high - low
    assert judged.interval(np.zeros((3, 2)), REFUSED, 0) is None


def test_replies_to_one_statement_that_are_alike_count_for_less():
    alike = np.array([[10.0, 0.0], [0.0, 10.0]] * 5)
    mixed = np.full((10, 2), 5.0)
    apart, together = judged.interval(mixed, REFUSED, 0), judged.interval(alike, REFUSED, 0)
    assert together[1] - together[0] > 1.5 * (apart[1] - apart[0])


def test_a_judge_that_cannot_tell_says_so():
    score = Score(
        metric="argues-for-corrected", by={}, value=0.4, low=0.1, high=0.7, n=200, excluded={},
        bounds=None, signature="",
    )  # fmt: skip
    (line,) = corrected.cannot_tell([score])
    assert (
        line
        == "between 10 and 70 % of the essays argue for the statement: this judge cannot tell more"
    )


def test_corrected_shares_stand_before_the_measured_ones():
    for name in ("argues-for", "argues-against", "argues-both", "refusal"):
        assert 0 < find(f"{name}-corrected").place < find(name).place


def _covered(studies: int, seed: int) -> tuple[int, int, int]:
    """How many corrected and measured intervals of how many hold the true share."""
    rng = np.random.default_rng(seed)
    hits = plain = total = 0
    for _ in range(studies):
        right = rng.uniform(0.5, 0.95, 4)
        chances = np.array([rng.dirichlet(np.full(4, 2.0)) for _ in range(4)])
        chances *= (1 - right)[:, None]
        chances[np.arange(4), np.arange(4)] += right
        many = (72, 90, 36, 18)
        called = np.array([rng.multinomial(n, row) for n, row in zip(many, chances, strict=True)])
        p = rng.dirichlet(np.full(4, 1.0))
        each, statements = rng.integers(1, 6), rng.integers(40, 200)
        # The replies to a statement are as alike as those of a model are.
        own = np.array([rng.dirichlet(p * 3 + 1e-3) for _ in range(statements)])
        truth = (p * 3 + 1e-3) / (3 + 4e-3)
        units = np.array([rng.multinomial(each, row @ chances) for row in own], float)
        at = int(rng.integers(0, 3))
        low, high = judged.interval(units, called.astype(float), at)
        hits += low <= truth[at] <= high
        ends = share_interval(units[:, at], units.sum(1))
        plain += ends[0] <= truth[at] <= ends[1]
        total += 1
    return hits, plain, total


def test_the_interval_holds_the_truth_and_that_of_the_measured_share_does_not():
    hits, plain, total = _covered(150, 1)
    assert hits >= 0.9 * total > 1.5 * plain


@pytest.mark.slow
def test_the_interval_holds_the_truth_in_95_of_100_studies():
    hits, plain, total = _covered(2000, 2)
    assert 0.93 * total <= hits <= 0.975 * total
    assert plain < 0.7 * total


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
