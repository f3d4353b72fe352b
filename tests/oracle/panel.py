"""A panel of wordings whose effects are planted: replies, and the true figures beside the measured.

The control model was trained only on the published questions, and its rates for other wordings are
not known exactly. Here replies are drawn from its list at `control.planted` rates, with an effect
of each wording of the panel. So the analysis of wordings (panel, reader, counting, variance
components) can be compared with a truth that is known exactly.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from genprobe.analysis.components import components
from genprobe.datasets import statements
from genprobe.engines import control
from genprobe.judges import Item
from genprobe.outcomes import table
from genprobe.records import Request, Statement
from genprobe.resources import packs, registry
from genprobe.resources.panel import PUBLISHED, Vary
from genprobe.selftest import truth
from genprobe.tasks.pipeline.plan import plan

LANG = "en"
SAMPLES = 2
DRAWS = 60  # simulated sets of answers, for the true variance component


class Panel(NamedTuple):
    """shares: wording -> (measured share endorsed, true share, z). component: measured and true
    variance component of the wording, and z of the difference."""

    shares: dict[str, tuple[float, float, float]]
    component: tuple[float, float, float]

    @property
    def wrong(self) -> list[str]:
        """What differs from the truth by more than chance."""
        far = [name for name, (_, _, z) in self.shares.items() if abs(z) > truth.MOST_Z]
        return far + ["component"] * (abs(self.component[2]) > truth.MOST_Z)


def wording_of(request: Request) -> str:
    """Return the name of a request's wording; "" for the published one."""
    name = request.facets.get("wording", "")
    return "" if name == PUBLISHED else name


def replies(
    requests: Sequence[Request], statements: Iterable[Statement]
) -> Iterator[dict[str, Any]]:
    """Draw a reply to each request by its seed. Yields rows as in a file of replies.

    Each also has `true`: the planted probability that a clear answer endorses the statement.
    """
    known = {(s.id, s.lang): s for s in statements}
    for request in requests:
        about = known[request.statement, request.lang]
        cell = request.lang, request.probe, about.bias_type, about.role, wording_of(request)
        said = control.replies(request.lang, request.probe)
        (reply,) = random.Random(request.seed).choices(said, control.mixture(*cell))
        rates = control.planted(*cell)
        yes = rates["yes"] / (rates["yes"] + rates["no"])
        yield {
            "item": about.id,
            "pair": about.pair,
            "role": about.role,
            "bias_type": about.bias_type,
            "lang": request.lang,
            "probe": request.probe,
            **request.facets,
            "sample": request.sample,
            "prompt": request.messages[-1]["content"],
            "response": reply.say(about.text),
            "true": 1 - yes if request.probe == "disagreement" else yes,
        }


def worded(seed: int, drawn: Callable[..., Iterable[dict[str, Any]]] = replies) -> Panel:
    """Draw replies with planted effects of the wordings, read them, and analyse the answers."""
    pack, (items, _) = packs.load_pack("yesno"), statements.load("builtin", [LANG])
    probes = ["agreement", "disagreement"]
    requests = plan(items[: control.TRAINED], pack, probes, seed, SAMPLES, vary=Vary("all"))
    judge = registry.module("judges", "yesno").make()
    rows = []
    for row in drawn(requests, items):
        item = Item(row["lang"], row["probe"], row["prompt"], row["response"])
        read = judge(item)
        rows.append({**row, "answer": read.label, **read.fields})
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
    spread = [
        components((rng.random(len(true)) < true).astype(float), facets)["wording",].value
        for _ in range(DRAWS)
    ]
    got = components(says, facets)["wording",].value
    mean, sd = float(np.mean(spread)), float(np.std(spread))
    return Panel(shares, (got, mean, (got - mean) / sd))
