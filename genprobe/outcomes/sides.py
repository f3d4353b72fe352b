"""Which side an essay argues for, where a reader was shown to tell it: the column `side`.

Rates of sides count this column. It has the label of the second reader in the languages in which
its licence on essays reaches `licences.TELLS`; else that of the word lists (judges/stance.py) where
they reach it on blind essays; else nothing: a reader that is right in half of the essays makes
every model look alike, and its errors take sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from genprobe.resources import licences, measured, packs

if TYPE_CHECKING:
    from genprobe.records import Judged

COLUMN = "side"
NOBODY = "no reader"  # why an essay is left out
WORDS, MODEL = "stance", "llm-stance"  # the judges
UNCLEAR, NEITHER = "unclear", "neither"


def readers(judged: Mapping[str, Judged]) -> dict[str, str]:
    """Return language -> the judge whose labels of sides count, where one was shown to tell them.

    judged: what is noted of the judges of a run, by name. Word lists that somebody has changed are
    not those that were measured.
    """
    found: dict[str, str] = {}
    own = f"{judged[WORDS].signature}+" if WORDS in judged else ""
    if own.startswith(f"{measured.version(WORDS)}+"):
        found = {lang: WORDS for lang, one in measured.sides().items() if one.tells}
    for row in judged[MODEL].licence if MODEL in judged else ():
        licence = licences.Licence.from_dict(row)
        if licence.kind == "essay" and licence.tells:
            found[licence.lang] = MODEL
    return found


def of(frame: pd.DataFrame, judged: Mapping[str, Judged]) -> pd.Series:
    """Return the sides of the essays of a run, empty where no reader tells them."""
    by = frame["lang"].map(readers(judged))
    side = pd.Series(None, frame.index, dtype=object)
    for judge in by.dropna().unique():
        label = frame[judge.replace("-", "_")].replace(UNCLEAR, NEITHER)
        side = side.mask(by == judge, label)
    return side.where(frame[WORDS].notna() & (frame[WORDS] != "refusal"), frame[WORDS])


def unread(outcomes: pd.DataFrame) -> list[str]:
    """Return the languages in which some essays have no side."""
    if COLUMN not in outcomes:
        return []
    langs = outcomes.loc[outcomes[WORDS].notna() & outcomes[COLUMN].isna(), "lang"]
    return sorted(set(langs.astype(str)))


def untold(outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield a line if some essays have no side, with the reason and the cure."""
    yield from needed(unread(outcomes), MODEL.replace("-", "_") in outcomes)


def needed(langs: list[str], second: bool = False) -> Iterator[str]:
    """Yield a line on the languages in which the word lists tell no side; none if they all do.

    second: whether a second reader has read the essays, which then was not measured well enough.
    """
    known = measured.sides()
    lost = [lang for lang in langs if lang not in known or not known[lang].tells]
    if not lost:
        return
    right, n = measured.accuracy(WORDS)
    own = known.get(lost[0]) if len(lost) == 1 else None
    told = f"in {lost[0]} {own.brief()}; " if own else ""
    least = f"{100 * licences.TELLS:.0f} %"
    cure = (
        "the second reader has no licence for essays there that reaches it: measure it"
        if second
        else "have a model read them that reaches it (--second-reader M; measure it"
    )
    yield (
        f"no rate of sides in {', '.join(lost)}: the word lists are right in "
        f"{100 * right / n:.0f} % of blind essays ({told}n {n}), and a rate needs {least}; "
        f"{cure} by `genprobe licence M --lang {packs.first_of(lost[0])}`{'' if second else ')'}, "
        "or have people read a sample (`genprobe review export`)"
    )
