"""Check the control model's stories in Kazakh: NegRate by domain against the exact rate.

The intervals must cover the true NegRate, the number of negative templates must differ from the
expected one by no more than chance allows, and every planted story must be read correctly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.engines.control import stories as tales
from genprobe.records import Score
from genprobe.selftest import truth
from genprobe.selftest.truth import KEY

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.statistics import Array

LANG = "kk"
STORIES = 5  # stories per template and wording
TOKENS = 512
# Kind of story -> why the story judge leaves it out; the others are read by their sentiment.
READ = {"russian": "language", "refusal": "refusal"}
MOST_MISREAD = 0.01  # share of a domain's stories whose sentiment may be misclassified


@dataclass(frozen=True)
class Domain:
    """The results for the stories of one domain.

    n: number of templates with a label. templates: number of all. true: the true NegRate. value,
    low, high: the measured NegRate and its 95 % interval. z: z-value of the number of negative
    templates. misread: number of misread stories.
    """

    domain: str
    n: int
    templates: int
    true: float
    value: float
    low: float
    high: float
    z: float
    misread: int

    @property
    def covered(self) -> bool:
        return self.low <= self.true <= self.high

    def cells(self) -> tuple[str, ...]:
        return (
            self.domain,
            f"{self.n} of {self.templates}",
            f"{self.value:.3f}",
            f"{self.low:.3f}-{self.high:.3f}",
            f"{self.true:.3f}" + ("" if self.covered else " outside"),
            f"{self.z:+.1f}",
            str(self.misread),
        )


@dataclass(frozen=True)
class Told:
    """The results for all stories."""

    stories: int
    domains: tuple[Domain, ...]
    faults: tuple[str, ...]

    def text(self) -> list[str]:
        """Write a table by domain, then the total, as lines."""
        head = ("stories", "templates", "NegRate", "95 % interval", "true", "z", "misread")
        covered = sum(domain.covered for domain in self.domains)
        return [
            *truth.aligned([head, *(domain.cells() for domain in self.domains)]),
            f"{covered} of {len(self.domains)} intervals of NegRate cover the true one; "
            f"{self.stories} stories",
        ]


def compare(outcomes: pd.DataFrame) -> Told:
    """Compare outcomes of stories with the exact rates that `truth.beside` added."""
    read = outcomes["unusable_why"].fillna("").mask(lambda why: why == "", outcomes["sentiment"])
    outcomes = outcomes.assign(read=read)
    outcomes = outcomes.assign(misread=_misread(outcomes))
    scores = {s.by["domain"]: s for s in metrics.score(outcomes, ["negrate"], ["domain"], str)}
    domains, faults = [], []
    for name, rows in outcomes.groupby("domain", sort=True):
        domain = _domain(str(name), rows, scores[name])
        if domain is None:
            faults.append(f"stories, {name}: no template has a label; check the judge story")
            continue
        domains.append(domain)
        if abs(domain.z) > truth.MOST_Z:
            faults.append(
                f"stories, {name}: NegRate differs from the true one by more than chance "
                f"(z {domain.z:+.1f}); check the judges story and sentiment"
            )
        misread = rows[rows["misread"] != ""]
        if (misread["misread"] == "rule").any() or len(misread) > MOST_MISREAD * len(rows):
            row = misread.sort_values("misread", kind="stable").iloc[0]
            faults.append(
                f"stories, {name}: {len(misread)} are misread, such as {row['response']!r} as "
                f"{row['read']}; check the judges story and sentiment"
            )
    if (
        sum(d.covered for d in domains) < len(domains) - 2
    ):  # happens by chance in one correct run of 300
        faults.append(
            "stories: too few 95 % intervals of NegRate cover the true one; check genprobe/metrics"
        )
    return Told(len(outcomes), tuple(domains), tuple(faults))


def _domain(name: str, rows: pd.DataFrame, score: Score) -> Domain | None:
    """Compare the stories of one domain; None if no template has a label."""
    import numpy as np

    from genprobe.metrics import negrate

    if score.value is None or score.low is None or score.high is None:
        return None
    exact = rows.drop_duplicates(KEY).set_index(KEY)
    negative = (exact["true_negative"] + exact["true_short_negative"]).to_numpy(float)
    positive = (exact["true_positive"] + exact["true_short_positive"]).to_numpy(float)
    # Only templates with a label count: by chance, a template may have too few usable stories.
    label, most = votes(negative, positive, negrate.FEWEST)
    found = negrate.templates(rows, ["domain"])
    labelled = (found["__valid"] >= negrate.FEWEST).to_numpy()
    called = (found["__negative"] * 2 > found["__valid"]).to_numpy() & labelled
    order = exact.index.get_indexer(list(found[KEY].itertuples(index=False, name=None)))
    chance = (most / label)[order][labelled]
    return Domain(
        domain=name,
        n=score.n,
        templates=len(exact),
        true=float(np.mean(chance)),
        value=score.value,
        low=score.low,
        high=score.high,
        z=truth.z_of(int(called.sum()), chance, chance),
        misread=int((rows["misread"] != "").sum()),
    )


def _misread(outcomes: pd.DataFrame) -> list[str]:
    """Return why each story was misread, `rule` or `sentiment`; "" if it was not."""
    out = []
    for row in outcomes[["lang", "response", "read"]].itertuples():
        kind = tales.kind_of(row.response, row.lang)
        want = "" if kind is None else READ.get(kind.label, kind.sentiment)
        # Two seeds may give nearly the same story; one is then left out as a duplicate.
        wrong = kind is not None and row.read not in (want, "duplicate")
        felt = {want, row.read} <= {"negative", "neutral", "positive"}
        out.append(("sentiment" if felt else "rule") if wrong else "")
    return out


def votes(negative: Array, positive: Array, fewest: int) -> tuple[Array, Array]:
    """Compute the probabilities that a template has a label, and a negative one, (templates,) each.

    negative, positive: probability that one of its `STORIES` stories counts and is negative or
    positive, (templates,) each. fewest: stories that must count for a label.
    """
    import numpy as np

    label, most = np.zeros(len(negative)), np.zeros(len(negative))
    for k in range(STORIES + 1):
        for m in range(max(0, fewest - k), STORIES + 1 - k):
            rest = STORIES - k - m
            ways = math.comb(STORIES, k) * math.comb(STORIES - k, m)
            chance = ways * negative**k * positive**m * (1 - negative - positive) ** rest
            label += chance
            most += chance * (k > m)
    return label, most
