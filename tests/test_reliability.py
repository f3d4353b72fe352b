"""Reliability against worked values."""

import numpy as np
import pytest

from genprobe.analysis.reliability import reliability
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


def test_too_little_is_refused():
    with pytest.raises(InputError):
        reliability(np.ones((1, 2)))
