"""Set figures by the second reader, and by answers given when asked again, beside those of a run.

`second`: the figure with the verdicts of a licensed second reader on the replies that the rules
leave open. Its licence leaves some of them wrong: of k open replies to a kind of question in a
language, of which it reads at least the share q right (`Measured.least`), up to k × (1 - q).
`second-least` and `second-most` are the figure if all of these are wrong in one direction; shares
of replies have them. `again`: the figure with the model's answers when it was asked again. `rules`:
the figure as it is, which none of this moves.

The range of these figures is a band, no interval: chance in the sample of replies is not in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from genprobe import metrics, tasks
from genprobe.judges import llm
from genprobe.outcomes import sides
from genprobe.records import JSON, Judgment, Score, digest
from genprobe.runs.run import Run
from genprobe.statistics import SHARE
from genprobe.tasks.pipeline import second

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
RULES, SECOND, SETTLED, AGAIN = "rules", "second", "settled", second.AGAIN
ENDS = ("second-least", "second-most")
# What n counts where a unit is one reply, so that wrong verdicts can be counted.
_OF_REPLIES = ("replies", "clear", "essays", "stories", "choices")

Cell = tuple[tuple[str, JSON], ...]


class View:
    """A run in which some replies have the label of another reader; None: they are not read."""

    def __init__(self, run: Run, judge: str, labels: Mapping[str, str | None]) -> None:
        self._run, self._judge, self._labels = run, judge, labels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def judgments(self, name: str) -> Iterator[Judgment]:
        for one in self._run.judgments(name):
            if name != self._judge or one.request not in self._labels:
                yield one
            elif (label := self._labels[one.request]) is not None:
                fields = one.fields | ({"conflict": None} if "conflict" in one.fields else {})
                yield dataclasses.replace(one, label=label, fields=fields)


@dataclasses.dataclass(frozen=True)
class Beside:
    """The other tables of outcomes of a run.

    tables: reading -> outcomes; SETTLED: without the replies that the second reader read. wrong:
    request -> the share of its verdicts on such replies that may be wrong. version: of all this,
    for signatures.
    """

    tables: Mapping[str, pd.DataFrame]
    wrong: Mapping[str, float]
    version: str

    def changed(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Beside:
        """Return the same with every table changed."""
        return dataclasses.replace(self, tables={k: change(t) for k, t in self.tables.items()})

    def scores(self, scores: Sequence[Score]) -> list[Score]:
        """Add the readings to the figures of each metric that they change in some cell."""
        split = dict.fromkeys((score.metric, tuple(score.by)) for score in scores)
        others = {key: self._readings(*key) for key in split}
        found = [others[s.metric, tuple(s.by)].get(tuple(s.by.items()), {}) for s in scores]
        changed = {
            score.metric
            for score, readings in zip(scores, found, strict=True)
            if any(readings.get(name, score.value) != score.value for name in (SECOND, AGAIN))
            or (readings and _rests_on_it(score.metric))
        }
        return [
            self._with(score, readings) if score.metric in changed else score
            for score, readings in zip(scores, found, strict=True)
        ]

    def _with(self, score: Score, readings: Mapping[str, float | None]) -> Score:
        metric, bar, rest = score.signature.partition("|")
        before = score.readings or {RULES: score.value}
        return dataclasses.replace(
            score,
            readings={**({} if _rests_on_it(score.metric) else before), **readings},
            signature=f"{metric}+{self.version}{bar}{rest}",
        )

    def _readings(self, name: str, by: Sequence[str]) -> dict[Cell, dict[str, float | None]]:
        """Return cell -> reading -> figure of a metric; nothing for figures of another kind."""
        metric = metrics.catalogue().get(name)
        if metric is None or name.endswith("-corrected"):  # for the errors of the rules
            return {}
        asked = [column for column in by if column not in metric.adds]
        figures: dict[str, dict[Cell, Score]] = {}
        for reading, table in self.tables.items():
            if metric.fits(table) and {*asked} <= {*table.columns}:
                scores = metrics.score(table, [name], asked, lambda _: "")
                figures[reading] = {tuple(s.by.items()): s for s in scores}
        found: dict[Cell, dict[str, float | None]] = {}
        for reading in (SECOND, AGAIN):
            for cell, score in figures.get(reading, {}).items():
                found.setdefault(cell, {})[reading] = score.value
        if SECOND in figures and metric.method == SHARE and metric.unit in _OF_REPLIES:
            for cell, (read, wrong) in self._asked(metric, asked).items():
                without = figures.get(SETTLED, {}).get(cell)
                ends = _ends(without, figures[SECOND][cell], read, wrong)
                found[cell] |= dict(zip(ENDS, ends, strict=True))
        return found

    def _asked(self, metric: metrics.Metric, by: list[str]) -> dict[Cell, tuple[int, float]]:
        """Return cell -> replies that the second reader read, and how many may be read wrongly."""
        table = self.tables[SECOND]
        units = metric.units(table, by)
        at, labels = metrics.cells(units.cells, by)
        wrong = table.loc[units.cells.index, "request"].map(dict(self.wrong))
        parts = ((label, wrong[at == number].dropna()) for number, label in enumerate(labels))
        return {tuple(label.items()): (len(part), float(part.sum())) for label, part in parts}


def _rests_on_it(metric: str) -> bool:
    """Tell whether a figure counts sides of essays, and so the second reader's verdicts."""
    found = metrics.catalogue().get(metric)
    return found is not None and sides.COLUMN in found.needs


def _ends(
    without: Score | None, full: Score, read: int, wrong: float
) -> tuple[float | None, float | None]:
    """Return the lowest and the highest share if so many verdicts are wrong in one direction.

    without: the share without the replies that the second reader read. full: with its verdicts.
    read: how many it read, also those in which it sees no answer. wrong: how many may be wrong.
    """

    def hits(score: Score | None) -> float:
        return (score.value or 0.0) * score.n if score else 0.0

    n = without.n if without else 0
    yes = hits(full) - hits(without)
    no, none = full.n - n - yes, read - (full.n - n)

    def share(hit: float, miss: float) -> float | None:
        """Return the share with so many hits and misses among the replies that it read."""
        total = n + hit + miss
        return (hits(without) + hit) / total if total else full.value

    # First an answer is turned into the other, then no answer into that one.
    down, up = min(wrong, yes), min(wrong, no)
    return (
        share(yes - down, no + down + min(wrong - down, none)),
        share(yes + up + min(wrong - up, none), no - up),
    )


def told(run: Run) -> Iterator[str]:
    """Say what the second reader of a run has read, and its licence."""
    own = tasks.of(run.spec).second
    yield from second.told(run, own) if own else ()


class Views(NamedTuple):
    """The views of a run by reading; `wrong` as in `Beside`; what they rest on, for signatures."""

    of: dict[str, View]
    wrong: dict[str, float]
    rests_on: list[Any]


def views(run: Run) -> Views:
    """Return the run as its second reader reads it, and as the model answered when asked again.

    Only replies that the rules still leave open have other labels, and of a second reader only
    those for which it is licensed.
    """
    own, judged = tasks.of(run.spec).second, run.judged()
    found = Views({}, {}, [VERSION])
    if own is None or own.fills not in judged:
        return found
    if licences := second.licensed(run, own):
        requests = {request.id: request for request in run.requests()}
        still = second.left_open(run, own, judged[own.name].only.split("+"))
        labels: dict[str, str | None] = {}
        for verdict in run.judgments(own.name):
            request = requests[verdict.request]
            licence = licences.get((request.lang, own.kind(run, request)))
            if licence and request.id in still:
                unclear = verdict.label == llm.UNCLEAR and own.fills != own.name
                labels[request.id] = own.none if unclear else verdict.label
                found.wrong[request.id] = 1 - licence.least
        found.of[SECOND] = View(run, own.fills, labels)
        found.of[SETTLED] = View(run, own.fills, dict.fromkeys(labels))
        found.rests_on.extend([judged[own.name].signature, *judged[own.name].licence])
    if AGAIN in judged:
        still = second.left_open(run, own)
        said = {j.request: j.label for j in run.judgments(AGAIN) if j.request in still}
        found.of[AGAIN] = View(run, own.fills, said)
        found.rests_on.append(judged[AGAIN].signature)
    return found


def beside(run: Run, table: Callable[[Any], pd.DataFrame]) -> Beside | None:
    """Return what stands beside the figures of a run; None if nothing does.

    table: function from a run, or a view of one, to its outcomes.
    """
    found = views(run)
    if not found.of:
        return None
    tables = {name: table(view) for name, view in found.of.items()}
    return Beside(tables, found.wrong, f"second-{digest(found.rests_on, 8)}")
