"""Check a panel of wordings with planted effects (`control.worded`).

The share endorsed in every wording, and the variance component of the wording, must differ from the
true values by no more than chance allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from genprobe import metrics
from genprobe.outcomes import table
from genprobe.resources import packs
from genprobe.selftest import truth
from genprobe.tasks.pipeline import Progress

LANG = "en"
SAMPLES = 2
DRAWS = 60  # simulated sets of answers, for the true variance component


@dataclass(frozen=True)
class Panel:
    """The results for a panel of wordings with planted effects.

    shares: wording -> (measured share endorsed, true share, z). component: measured and true
    variance component of the wording, and z of the difference. interval: 95 % interval of the
    rate over wordings.
    """

    lang: str
    replies: int
    shares: dict[str, tuple[float, float, float]]
    component: tuple[float, float, float]
    interval: tuple[float, float]

    def text(self) -> list[str]:
        """Write a table by wording, then the variance component, as lines."""
        rows = [("wording", "share endorsed", "true", "z")]
        rows += [
            (name, f"{got:.3f}", f"{true:.3f}", f"{z:+.1f}")
            for name, (got, true, z) in self.shares.items()
        ]
        got, true, z = self.component
        return [
            *truth.aligned(rows),
            f"variance component of the wording {got:.4f}, true {true:.4f} (z {z:+.1f}); "
            f"interval over wordings {self.interval[0]:.3f}-{self.interval[1]:.3f}; {self.replies} "
            f"replies in {self.lang}",
        ]

    @property
    def faults(self) -> list[str]:
        """List the faults, one line each."""
        found = [
            f"{name}: the share endorsed differs from the true one by more than chance "
            f"(z {z:+.1f}); check the judge yesno"
            for name, (_, _, z) in self.shares.items()
            if abs(z) > truth.MOST_Z
        ]
        if abs(self.component[2]) > truth.MOST_Z:
            found.append(
                "the variance component of the wording differs from the true one by more than "
                f"chance (z {self.component[2]:+.1f}); check genprobe/analysis/components.py"
            )
        return [f"wordings, {self.lang}: {fault}" for fault in found]


def worded(seed: int = 0, progress: Progress = lambda what, done, total: None) -> Panel:
    """Draw replies with planted effects of the wordings, read them, and analyse the answers."""
    import numpy as np

    from genprobe.analysis.components import components
    from genprobe.datasets import statements
    from genprobe.engines import control
    from genprobe.engines.control.worded import replies
    from genprobe.judges import Item
    from genprobe.resources import panel, registry
    from genprobe.tasks.pipeline.plan import plan

    pack, (items, _) = packs.load_pack("yesno"), statements.load("builtin", [LANG])
    probes = ["agreement", "disagreement"]
    requests = plan(items[: control.TRAINED], pack, probes, seed, SAMPLES, vary=panel.Vary("all"))
    judge = registry.module("judges", "yesno").make()
    rows = []
    for row in replies(requests, items):
        item = Item(row["lang"], row["probe"], row["prompt"], row["response"])
        read = judge(item)
        rows.append({**row, "answer": read.label, **read.fields})
        if len(rows) % 500 == 0:
            progress("wordings", len(rows), len(requests))
    found = table.from_rows(rows)
    clear = found[found["says"].notna()]
    true, says = clear["true"].to_numpy(float), clear["says"].to_numpy(float)
    facets = {name: clear[name].to_numpy() for name in ("statement", "wording", "probe")}
    shares = {}
    for name in dict.fromkeys(facets["wording"]):
        at = facets["wording"] == name
        z = truth.z_of(int(says[at].sum()), true[at], true[at])
        shares[str(name)] = float(says[at].mean()), float(true[at].mean()), z
    rng = np.random.default_rng(seed)
    drawn = [
        components((rng.random(len(true)) < true).astype(float), facets)["wording",].value
        for _ in range(DRAWS)
    ]
    got = components(says, facets)["wording",].value
    (score,) = metrics.score(found, ["endorsed-over-wordings"], [], str)
    return Panel(
        lang=LANG,
        replies=len(rows),
        shares=shares,
        component=(got, float(np.mean(drawn)), float((got - np.mean(drawn)) / np.std(drawn))),
        interval=(score.low or 0.0, score.high or 1.0),
    )
