"""Compute the error band: how far figures about the same questions differ between readings.

Readers of the same replies: `ours` (judges/yesno.py), `strict` (an answer is the first word, or
none), `shades2025` (the study's own reader, with its faults). Readings of the same questions, asked
in another way, if a run has them: `choice` (forced to an answer word) and `logprob` (the likelier
of yes and no). `given` are labels that the data already have, from any other reader.

The band of a rate reaches from the lowest to the highest of these figures. It shows how far the
choice of a reading alone changes a table. It is not a confidence interval: the true rate may lie
outside, and more replies do not make it narrower. Stored judgments are not changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.judges import Item, Judge, yesno
from genprobe.records import JSON, Score, digest
from genprobe.resources import packs
from genprobe.review.corrected_rates import OF_ALL

if TYPE_CHECKING:
    import pandas as pd

VERSION = "1"
RATES = ("yes", "no", "ambiguous", *packs.READ_AS)
OURS, GIVEN = "ours", "given"
READERS = (OURS, *yesno.PARSERS)
ASKED = ("choice", "logprob")  # decodes that are readings of the same questions

# Columns of the outcomes that depend on the reading.
_READ = ("answer", "kind", "conflict", "rule", "evidence", "says", "refused")

Cell = tuple[tuple[str, JSON], ...]


class Readings:
    """All readings of one table of outcomes: reading -> rate and cell -> figure.

    signature: the judge of the table's own answers, None if unknown. Raises InputError if there is
    only one reading.
    """

    def __init__(self, outcomes: pd.DataFrame, signature: str | None) -> None:
        if "answer" not in outcomes:
            raise InputError(
                "a band needs answers to yes/no questions, and there are none; run `genprobe "
                "judge` first if the run has not been judged"
            )
        self._tables = dict(_tables(outcomes, signature))
        if len(self._tables) < 2:
            raise InputError(
                f"one reading only ({', '.join(self._tables)}), and a band needs several; with "
                "the replies in a column 'response' they can be read again"
            )
        judges = [yesno.make("" if name == OURS else name).signature for name in READERS]
        self.version = f"band-{VERSION}-{digest([list(self._tables), judges], 8)}"
        self._found: dict[tuple[str, ...], dict[str, dict[tuple[str, Cell], Score]]] = {}

    def beside(self, scores: Sequence[Score]) -> list[Score]:
        """Add to each rate its values by the other readings, and name these in its signature.

        A rate that a review corrects (`measured`, corrected.py) is a share of all replies; its
        values by the other readings then are, too.
        """
        return [self._one(score) for score in scores]

    def _one(self, score: Score) -> Score:
        rate, by = score.metric, dict(score.by)
        if rate == "measured":
            rate = str(by.pop("rate", "")).removeprefix("answer ").removesuffix(OF_ALL)
        if rate not in RATES:
            return score
        by.pop("decode", None)
        found = self._figures(tuple(by))
        key = (rate, tuple(by.items()))
        readings: dict[str, float | None] = {}
        for name, figures in found.items():
            if (one := figures.get(key)) is None:
                continue  # this reading (a decode) is not in this cell
            # The lower bound counts no unclear reply as a hit: it is the share of all replies.
            of_all = score.metric == "measured" and one.bounds is not None
            readings[name] = one.bounds[0] if of_all and one.bounds else one.value
        metric, bar, rest = score.signature.partition("|")
        signature = f"{metric}+{self.version}{bar}{rest}"
        return dataclasses.replace(score, readings=readings, signature=signature)

    def _figures(self, by: tuple[str, ...]) -> Mapping[str, Mapping[tuple[str, Cell], Score]]:
        for column in by:
            if column in _READ:
                raise InputError(f"{column!r} depends on the reading; a band cannot be split by it")
        if by not in self._found:
            self._found[by] = {
                name: {
                    (score.metric, tuple(score.by.items())): score
                    for names in [[name for name in RATES if metrics.find(name).fits(table)]]
                    for score in metrics.score(table, names, by, lambda _: "")
                }
                for name, table in self._tables.items()
            }
        return self._found[by]


def _tables(outcomes: pd.DataFrame, signature: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Return reading -> the outcomes that it counts, with its answers."""
    spoken = metrics.spoken(outcomes)
    if len(spoken):
        judges = {name: yesno.make("" if name == OURS else name) for name in READERS}
        mine = next((n for n, j in judges.items() if j.signature == signature), GIVEN)
        yield mine, spoken
        if "response" in spoken and spoken["response"].notna().any():
            for name, judge in judges.items():
                if name != mine:
                    yield name, _read(spoken, judge)
    for decode in ASKED:
        if "decode" in outcomes and (outcomes["decode"] == decode).any():
            yield decode, outcomes[outcomes["decode"] == decode]


def _read(outcomes: pd.DataFrame, judge: Judge) -> pd.DataFrame:
    """Return the outcomes with the answers of another reader; rows without a reply have none."""
    import pandas as pd

    empty = [""] * len(outcomes)
    columns = (
        outcomes[name].astype(object).tolist() if name in outcomes else empty
        for name in ("lang", "probe", "prompt", "response", "measures", "when")
    )
    answers = [
        judge(
            Item(
                *(lang, probe, prompt if isinstance(prompt, str) else "", reply),
                reads=packs.READ_AS.get(measures, ""),
                when=when if isinstance(when, str) else "",
            )
        ).label
        if isinstance(reply, str)
        else None
        for lang, probe, prompt, reply, measures, when in zip(*columns, strict=True)
    ]
    answer = pd.Series(answers, outcomes.index, dtype="str")
    clear = answer.isin(("yes", "no"))
    says = (answer == outcomes["when"]).astype("boolean").mask(~clear)
    return outcomes.assign(answer=answer, says=says)
