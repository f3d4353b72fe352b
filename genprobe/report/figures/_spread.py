"""Compute the spread of a value over its units, drawn as a box beside the mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from genprobe.statistics import Array

_AT = {"p5": 5, "q1": 25, "median": 50, "q3": 75, "p95": 95}


def spread(found: Array) -> Mapping[str, float]:
    """Return the percentiles of a box: 5, 25, 50, 75, 95 (linear between values)."""
    return dict(zip(_AT, map(float, np.percentile(found, list(_AT.values()))), strict=True))
