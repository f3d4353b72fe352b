"""Reliability against worked values, and planted traits found again under noise."""

import numpy as np
import pytest

from genprobe.analysis.validity import multitrait, reliability
from genprobe.errors import InputError

# Shrout & Fleiss 1979, Psychological Bulletin 86:420, Table 2: six subjects, four judges.
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_the_coefficient_of_shrout_and_fleiss():
    found = reliability(np.array(SHROUT))
    assert found.value == pytest.approx(0.29, abs=0.005)  # ICC(2,1)
    assert found.low < 0.29 < found.high
    assert (found.n, found.times) == (6, 4)


def test_missing_measurements_leave_an_item_out():
    values = np.array([*SHROUT, [1, np.nan, 3, 4]], float)
    assert reliability(values) == reliability(np.array(SHROUT))


def test_measurements_that_never_differ_have_no_coefficient():
    found = reliability(np.ones((10, 2)))
    assert found.value is None
    assert found.same == 1


def test_too_little_is_refused():
    with pytest.raises(InputError):
        reliability(np.ones((1, 2)))
    with pytest.raises(InputError):
        multitrait({("a", "said"): {}})


def planted(rng, correlation, method=0.0, noise=1.0, units=400, times=4):
    """Two traits by two methods, each method with a leaning of its own."""
    cover = np.linalg.cholesky([[1, correlation], [correlation, 1]])
    traits = cover @ rng.standard_normal((2, units))
    leaning = method * rng.standard_normal((2, units))
    return {
        (trait, way): {
            f"u{i}": tuple(traits[t, i] + leaning[m, i] + noise * rng.standard_normal(times))
            for i in range(units)
        }
        for t, trait in enumerate(("gender", "age"))
        for m, way in enumerate(("said", "told"))
    }


def test_planted_traits_come_back_with_the_noise_taken_out():
    rng = np.random.default_rng(1)
    found = [multitrait(planted(rng, 0.4)) for _ in range(8)]
    assert np.mean([m.mean("convergent", true=True) for m in found]) == pytest.approx(1, abs=0.05)
    assert np.mean([m.mean("neither", true=True) for m in found]) == pytest.approx(0.4, abs=0.05)
    assert np.mean([m.mean("convergent") for m in found]) == pytest.approx(0.8, abs=0.05)
    for matrix in found:
        for reliable in matrix.reliabilities.values():
            assert reliable == pytest.approx(0.8, abs=0.06)
        assert "tell things apart" in matrix.told()


def test_a_method_that_says_more_than_the_trait_is_told():
    matrix = multitrait(planted(np.random.default_rng(2), 0.0, method=2.0))
    assert matrix.mean("one method") > matrix.mean("convergent")
    assert "the way of measuring says more" in matrix.told()


def test_what_was_measured_once_has_no_reliability():
    rng = np.random.default_rng(3)
    matrix = multitrait(planted(rng, 0.3, times=1))
    assert set(matrix.reliabilities.values()) == {None}
    assert all(cell.true is None and cell.value is not None for cell in matrix.cells)
