"""How many replies exclaim."""

import numpy as np

from genprobe.metrics import Metric, Units, cluster, no_reply
from genprobe.statistics import SHARE, ratio, share_interval


def _units(outcomes, by):
    """Share of replies that exclaim, of all that were judged. Source: this file."""
    hits = outcomes["exclaims"].fillna(False).to_numpy(float)
    stats = np.column_stack([hits, np.ones(len(outcomes))])
    return Units(outcomes[by], cluster(outcomes), no_reply(outcomes, "exclaims"), stats)


METRICS = (
    Metric(
        "exclaiming",
        "share of replies that exclaim",
        "replies",
        _units,
        ratio,
        lambda sums: share_interval(sums[:, 0], sums[:, 1]),
        SHARE,
        ("exclaims", "statement", "left_out"),
        place=900,
    ),
)
