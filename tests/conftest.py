"""What all tests share: none is timed, since machines are noisy, and all draw the same examples.

What is drawn anew at each run finds its fault in somebody else's change. To look for faults:
`HYPOTHESIS_PROFILE=search pytest tests/test_hostile.py`.
"""

import gc
import os

import pytest
from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True, scope="module")
def _objects_that_stay():
    """Exclude what the libraries keep from garbage collection: each full one would walk through it."""
    yield
    gc.collect()
    gc.freeze()
