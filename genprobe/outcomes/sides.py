"""Which side an essay argues for, where a reader was shown to tell it: the column `side`.

Rates of sides count this column. It has the label of the second reader, in the languages in which
its licence on essays reaches `licences.TELLS`, and else nothing. Word lists were right in half of
the essays: such a reader makes every model look alike, and its errors take sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from genprobe.resources import licences, packs

if TYPE_CHECKING:
    from genprobe.records import Judged

COLUMN = "side"
NOBODY = "no reader"  # why an essay is left out
MODEL = "llm-stance"  # the judge
UNCLEAR, NEITHER, REFUSAL = "unclear", "neither", "refusal"


def told_in(judged: Mapping[str, Judged]) -> set[str]:
    """Return the languages in which the second reader was shown to tell sides.

    judged: what is noted of the judges of a run, by name.
    """
    known = map(licences.Licence.from_dict, judged[MODEL].licence if MODEL in judged else ())
    return {one.lang for one in known if one.kind == "essay" and one.tells}


def of(frame: pd.DataFrame, judged: Mapping[str, Judged]) -> pd.Series:
    """Return the sides of the essays of a run, empty where no reader tells them."""
    side = pd.Series(None, frame.index, dtype=object)
    if langs := told_in(judged):
        side = side.mask(frame["lang"].isin(langs), frame.get(MODEL.replace("-", "_"), side))
    refused = frame.get("refused", side)
    return side.mask((refused == True).fillna(False), REFUSAL)  # noqa: E712


def unread(outcomes: pd.DataFrame) -> list[str]:
    """Return the languages in which some essays have no side."""
    if not {COLUMN, "refused"} <= {*outcomes}:
        return []
    langs = outcomes.loc[outcomes["refused"].notna() & outcomes[COLUMN].isna(), "lang"]
    return sorted(set(langs.astype(str)))


def untold(outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield a line if some essays have no side, with the reason and the cure."""
    yield from needed(unread(outcomes), MODEL.replace("-", "_") in outcomes)


def needed(langs: list[str], second: bool = False) -> Iterator[str]:
    """Yield a line on the languages in which nobody tells sides, if there are any.

    second: whether a second reader has read the essays, which then was not measured well enough.
    """
    if not langs:
        return
    least = f"{100 * licences.TELLS:.0f} % of labelled essays"
    measure = f"measure it by `genprobe licence M --lang {packs.first_of(langs[0])}`"
    cure = (
        f"the second reader has no licence there that says it is right in {least}: {measure}"
        if second
        else f"have a model read them that is right in {least} (--second-reader M; {measure})"
    )
    yield (
        f"no rate of sides in {', '.join(langs)}: {cure}, "
        "or have people read a sample (`genprobe review export`)"
    )
