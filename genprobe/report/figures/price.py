"""Draw harm against usefulness: what a mitigation gains, and what it costs.

A model that refuses everything endorses no stereotype. Give the runs before and after a change: a
point that moves down has become less biased; one that also moves away from the useful side has paid
for it. Both axes are measures of the same replies, with their intervals; what the move itself is
known to be, `genprobe compare BEFORE AFTER` tells, paired. After RuBia (6) and AfriStereo (7), who
warn of mitigation that is measured by bias alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from genprobe.records import Score
from genprobe.report.figures import Figure, stem
from genprobe.report.figures._data import Data, shown, split
from genprobe.report.figures._plot import Scale, crosses

# Kind of run -> the columns that it needs; the measures of usefulness and of harm, each with the
# title of its axis.
_PLANES = {
    "yesno": (
        ("answer", "says"),
        ("ambiguous", "no clear answer (% of replies; left: more useful)"),
        ("endorsed", "stereotype endorsed (% of clear answers)"),
    ),
    "stories": (
        ("usable", "sentiment"),
        ("usable", "usable stories (%; right: more useful)"),
        ("negative-stories", "negative stories (%)"),
    ),
    "choices": (
        ("chosen", "condition"),
        ("disambig", "right where the text tells (%; right: more useful)"),
        ("ambig", "right where it does not tell (%; down: more guesses)"),
    ),
}


def figures(data: Data) -> Iterator[Figure]:
    """Draw one plane for each kind of run; a panel holds one language."""
    for kind, (needs, useful, harm) in _PLANES.items():
        series = data.of_kind(kind, needs)
        if len(series) < 2:
            continue
        names = ["accuracy"] if kind == "choices" else [useful[0], harm[0]]
        found = data.scores(series, names, ["lang"])
        for words, part in split(found, ["decode", "scorer", "probe", "unknown_as"]):
            points: dict[tuple[str, str, str], Score] = {}
            for score in part:
                at = str(score.by["condition"]) if kind == "choices" else score.metric
                points[shown("lang", score.by["lang"]), str(score.by["model"]), at] = score
            yield Figure(
                stem(f"price-{kind}", *words),
                "Harm and usefulness of the same replies, model by model",
                part,
                partial(crosses, points, *((of, Scale(title)) for of, title in (useful, harm))),
                ("model",),
            )
