"""Make the multitrait-multimethod matrix of runs: does it matter how a model is asked?

Methods are ways of asking: *said* (yes or no, in the model's own words; *forced* to an answer word;
the *probability* of one), *explained* (essays), *chosen* (questions with options), *told* (stories)
and *preferred* (log-probabilities of sentences).

By default the units are the items of each model, and the traits are whether the model *endorses*
the item, and whether it *recognises* a stereotype. With a column, such as `bias_type`, the traits
are its values, and the units are models in a language: if a model is high on one kind of stereotype
by one method, is it high by the others? Choices and stories are about other items than statements,
so they can be compared with statements only in this way.

Every method gives a unit a value from 0 (against the stereotype) to 1; log-probabilities give the
difference of the two sentences. `validity.multitrait` computes the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genprobe.analysis.score import Source, signer, sources_of
from genprobe.analysis.validity import LEAST, Matrix, multitrait
from genprobe.errors import InputError, RunError
from genprobe.metrics import Measure, declare
from genprobe.records import Score
from genprobe.render.grid import model_names
from genprobe.render.scores import Scores
from genprobe.runs.run import Run
from genprobe.runs.spec import both_signatures
from genprobe.statistics import BOOTSTRAP

if TYPE_CHECKING:
    import pandas as pd

VERSION = "1"
_SAID = {"free": "said", "recorded": "said", "choice": "forced", "logprob": "probability"}
_STANCE = {"for": 1.0, "both": 0.5, "against": 0.0}

Measures = dict[tuple[str, str], dict[str, tuple[float, ...]]]


def of_runs(folders: Source | Sequence[Source], by: str = "") -> tuple[Scores, list[str]]:
    """Make the matrix of runs, and say in words what it shows.

    by: the column whose values are the traits; if empty, items are compared. Returns `correlation`
    of every two measures (with itself: the reliability) and `true-correlation`, corrected for
    noise; and one line of words per model, or one for all. Raises RunError if a run is not judged;
    InputError if the runs have fewer than two measures of the same units, or nobody tells the sides
    of essays.
    """
    from genprobe.outcomes import sides, table

    runs = [Run.open(folder) for folder in sources_of(folders)]
    for run in runs:
        if run.spec.command != "logprob" and not run.judges():
            raise RunError(
                f"{run.folder}: no reply has been judged; run `genprobe judge` on it first"
            )
    names = model_names(run.spec for run in runs)
    tables = [(names[run.spec.who], table.outcomes(run)) for run in runs]
    for run, (_, outcomes) in zip(runs, tables, strict=True):
        for line in sides.untold(outcomes):
            if not outcomes[sides.COLUMN].isin(_STANCE).any():
                raise InputError(f"{run.folder}: {line}")
    signs = [signer(run.folder, run, "", {}) for run in runs]
    sign = both_signatures(*(of(f"correlation/{VERSION}-pearson+{BOOTSTRAP}") for of in signs))
    models = list(dict.fromkeys(name for name, _ in tables))
    if by:
        found = multitrait(measures(tables, by))
        return Scores(_scores(found, {"by": by}, sign)), [told(found)]
    scores, lines = Scores(), []
    for model in models:
        mine = [(name, table) for name, table in tables if name == model]
        matrix = multitrait(measures(mine, ""))
        label = {"model": model} if len(models) > 1 else {}
        scores += _scores(matrix, label, sign)
        lines.append((f"{model}: " if len(models) > 1 else "") + told(matrix))
    return scores, lines


def told(matrix: Matrix) -> str:
    """Say what a matrix shows, for a reader of reports."""
    pairs = [cell for cell in matrix.cells if cell.kind == "convergent" and cell.value is not None]
    shared = min((cell.n for cell in pairs), default=0)
    return f"{matrix.told()} ({shared} units or more)" if pairs else matrix.told()


def measures(tables: Sequence[tuple[str, pd.DataFrame]], by: str) -> Measures:
    """Collect the measurements in outcomes: (trait, method) -> unit -> values.

    tables: name of the model and its outcomes, one per run. by: as in `of_runs`. Raises InputError
    if nothing is measured, an item has another text in another table, or there are too few units.
    """
    import pandas as pd

    parts, texts = [], dict[tuple[str, str], str]()
    for model, outcomes in tables:
        for found in _values(outcomes):
            if by and by not in outcomes:
                continue
            _same(texts, outcomes)
            columns = {c: outcomes.loc[found.index, c] for c in ([by] if by else [])}
            parts.append(found.assign(model=model, **columns))
    if not parts:
        raise InputError("none of these runs measures a stereotype" + (f" by {by}" if by else ""))
    whole = pd.concat(parts, ignore_index=True)
    made: Measures = {}
    if not by:
        for (trait, method), part in whole.groupby(["trait", "method"], sort=False):
            units = part.groupby(["lang", "item"])["value"].agg(tuple)
            made[trait, method] = {f"{i} ({lang})": v for (lang, i), v in units.items()}
    else:
        half = whole["item"].map(_halves(whole["item"]))
        for (trait, method), part in whole[whole["trait"] == "endorsed"].groupby(
            [by, "method"], sort=False
        ):
            means = part.groupby(["model", "lang", half[part.index]])["value"].mean()
            of = means.groupby(["model", "lang"]).agg(tuple)
            made[str(trait), method] = {f"{m} ({lang})": v for (m, lang), v in of.items()}
        most = max(map(len, made.values()), default=0)
        if most < LEAST:
            raise InputError(
                f"traits by {by} are compared over models and languages; there are {most} here, "
                f"and {LEAST} are needed; leave --by out to compare items"
            )
    return made


def _halves(items: pd.Series) -> dict[str, int]:
    """Split the items into two halves by name: two measurements of the same trait."""
    return {name: at % 2 for at, name in enumerate(sorted(set(items)))}


def _same(texts: dict[tuple[str, str], str], outcomes: pd.DataFrame) -> None:
    """Raise InputError if an item has another text in another run."""
    item = "item" if "item" in outcomes else "statement"
    rows = outcomes[["lang", item, "text"]].drop_duplicates(["lang", item])
    for lang, name, text in rows.itertuples(index=False):
        if texts.setdefault((lang, name), text) != text:
            raise InputError(
                f"{name} ({lang}) has another text in another run; give all runs the same --data"
            )


def _values(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the measures of a table, by trait and method: lang, item, value of rows that count."""
    if "pro" in outcomes:
        scorers = outcomes["scorer"].nunique() > 1
        with np.errstate(invalid="ignore"):
            gap = outcomes["pro"] - outcomes["anti"]
        for scorer in outcomes["scorer"].unique():
            method = f"preferred ({scorer})" if scorers else "preferred"
            rows = outcomes["scorer"].eq(scorer) & np.isfinite(gap)
            yield _part(outcomes[rows], "endorsed", method, gap)
        return
    if "chosen" in outcomes:
        rows = outcomes[outcomes["chosen"].notna() & outcomes["target"].notna()]
        if "condition" in rows and (rows["condition"] == "ambig").any():
            rows = rows[rows["condition"] == "ambig"]  # only the stereotype decides here
        value = (rows["chosen"] == rows["target"]).astype(float)
        value = value.mask((value == 0) & (rows["chosen"] != rows["counter"]), 0.5)
        yield _part(rows, "endorsed", "chosen", value)
        return
    original = outcomes[outcomes["role"] == "original"]
    if "side" in original:
        value = original["side"].map(_STANCE)
        yield _part(original[value.notna()], "endorsed", "explained", value)
    elif "sentiment" in original:
        counts = (
            original["usable"].astype("boolean").fillna(False) if "usable" in original else True
        )
        rows = original[counts & original["sentiment"].isin(("negative", "neutral", "positive"))]
        value = (rows["sentiment"] == "negative").astype(float)
        yield _part(rows, "endorsed", "told", value)
    elif "says" in original:
        yield from _of_answers(original)


def _of_answers(original: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the measures of yes/no answers: by decode, endorsement and recognition."""
    from genprobe.analysis.paradigms import says

    value = np.asarray(says(original), float)
    for trait in ("endorsed", "recognised"):
        for decode in original["decode"].unique():
            rows = (original["measures"] == trait) & (original["decode"] == decode)
            rows &= ~np.isnan(value)
            if rows.any():
                method = _SAID.get(str(decode), str(decode))
                yield _part(original[rows], trait, method, value[rows.to_numpy()])


def _part(rows: pd.DataFrame, trait: str, method: str, value: Any) -> pd.DataFrame:
    item = "item" if "item" in rows else "statement"
    found = rows[["lang", item]].rename(columns={item: "item"}).astype(str)
    value = value.loc[rows.index] if hasattr(value, "loc") else value
    return found.assign(trait=trait, method=method, value=np.asarray(value, float))


def _scores(matrix: Matrix, label: Mapping[str, Any], sign: str) -> Iterator[Score]:
    """Yield a score for each measure (its reliability), and two for each pair of measures."""
    for (trait, method), value in matrix.reliabilities.items():
        name, n = f"{trait}, {method}", matrix.units[trait, method]
        by = {**label, "a": name, "b": name, "kind": "itself"}
        yield Score("correlation", by, value, None, None, n, {}, None, sign)
        yield Score("true-correlation", by, None, None, None, n, {}, None, sign)
    for cell in matrix.cells:
        by = {**label, "a": ", ".join(cell.a), "b": ", ".join(cell.b), "kind": _KINDS[cell.kind]}
        yield Score("correlation", by, cell.value, *_ends(cell.interval), cell.n, {}, None, sign)
        ends = _ends(cell.true_interval)
        yield Score("true-correlation", by, cell.true, *ends, cell.n, {}, None, sign)


def _ends(interval: tuple[float, float] | None) -> tuple[float | None, float | None]:
    return interval or (None, None)


_KINDS = {
    "convergent": "same thing, other method",
    "one method": "other thing, same method",
    "neither": "other thing, other method",
}


declare(
    Measure("correlation", "Pearson's correlation of two measures over units", "coefficient"),
    Measure(
        "true-correlation",
        "the correlation, corrected for the noise of both measures",
        "coefficient",
        note="The correlation of a measure with itself is its reliability. true-correlation: "
        "divided by "
        "the root of both reliabilities (Spearman 1904); it can exceed 1 by chance, and is empty "
        "if a measure was taken only once or is not reliable at all.",
    ),
)
