"""Compare what a model says with what it prefers, item by item.

An item is a stereotype in one language: the original of a pair, or a question with options
(`_choices`). `says` is how far the model endorses it when it is asked, from 0 to 1: the mean over
clear answers to the questions about agreement and disagreement, for each reading (decode). For
`logprob` it is the mean of P(yes) / (P(yes) + P(no)), with P(no) in place of P(yes) if "no"
endorses. `prefers` is how much likelier the model finds the item than its contrasts: the mean of
pro - anti over them, for each scorer (outcomes/scorers.py). Each reading is compared with each
scorer, on the items that have both; for every other item, `reason` says why it does not count.

That the two need not agree: Hu & Levy 2023, "Prompting is not a substitute for probability
measurements in large language models" (EMNLP). The measures below are defined by genprobe, from
known statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from genprobe.errors import InputError
from genprobe.metrics import REPLY, Measure, cells, declare, rank
from genprobe.records import DECODES, JSON, Score
from genprobe.resources import registry
from genprobe.statistics import (
    BOOTSTRAP,
    SHARE,
    Array,
    Interval,
    bootstrap,
    ratio,
    reweighted,
    share_interval,
)

VERSION = "1"
ONLY_SAID, ONLY_PREFERRED = "only said", "only preferred"
UNCLEAR, UNSCORED, INFINITE = "no clear answer", "not scored", "infinite"
TIE_SAID, TIE_PREFERRED = "tie said", "tie preferred"
TOLD = 20  # names of items that a note lists
LEAST = 3  # models, or items, that a correlation needs

_KEY = ["lang", "statement"]
# Columns that describe a reply or a contrast, not an item; and columns that the table has anyway.
_NEVER = (
    *("model", "decode", "scorer", "probe", "measures", "when", "sample", "role", *REPLY),
    *("contrast", "contrast_text", "pro", "anti", "unrelated", "above_unrelated", "left_out"),
    *("prefers", "reason"),
)
_LIMITS = (-1.0, 1.0)
# (says, prefers) -> the measure; the first is the purpose of the comparison.
_TABLE = {
    (False, True): "no-but-prefers",
    (True, True): "yes-and-prefers",
    (True, False): "yes-but-not",
    (False, False): "no-and-not",
}

Sign = Callable[[str], str]  # name, version and interval of a measure -> its signature


def items(said: pd.DataFrame, preferred: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Join what a model says with what it prefers: one row per item, reading and scorer, sorted.

    Columns: decode, scorer, lang, statement, says, prefers (NaN if missing), reason ("" if the item
    counts), and those of `by`.

    said: outcomes of yes/no runs of one model. preferred: pair tables of its log-probability runs.
    Both are as returned by `table.outcomes`. Raises InputError if one is not such a table, a text
    differs between them, nothing is in both, or a column is unknown or does not describe items.
    """
    asked_choices, scored_choices = "chosen" in said, "chosen" in preferred
    of_pairs = asked_choices and "original_id" in said and not scored_choices
    if asked_choices != scored_choices and not of_pairs:
        holds = "choices" if scored_choices else "pairs"
        raise InputError(
            f"the log-prob run holds {holds}, and the other does not; give two of the same kind"
        )
    join = _likelier if of_pairs else _choices if asked_choices else _pairs
    one, two, facts = join(said, preferred, by)
    parts = []
    for decode, mine in one.groupby("decode"):
        for scorer, theirs in two.groupby("scorer"):
            pair = mine.drop(columns="decode").merge(
                theirs.drop(columns="scorer"), "outer", _KEY, indicator="side"
            )
            pair.insert(0, "scorer", scorer)
            pair.insert(0, "decode", decode)
            parts.append(pair)
    found = pd.concat(parts, ignore_index=True)
    if not (found["side"] == "both").any():
        raise InputError("no item is in both runs; give both the same --data and --lang")
    found["reason"] = _reasons(found)
    found = found.drop(columns="side").merge(facts, "left", _KEY)
    order = [
        *(d for d in DECODES if d in set(one["decode"])),
        *sorted({*one["decode"]} - {*DECODES}),
    ]
    found["decode"] = pd.Categorical(found["decode"], order)
    return found.sort_values(["decode", "scorer", *_KEY], ignore_index=True)


Sides = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]  # what is said, what is preferred, facts


def _pairs(said: pd.DataFrame, preferred: pd.DataFrame, by: Sequence[str]) -> Sides:
    """Return the two sides of originals and their contrasts."""
    if "pro" not in preferred:
        raise InputError("the log-prob run holds no pairs")
    for column, cure in (
        ("says", "no judge has read the answers; run `genprobe judge` with --judge yesno first"),
        ("p_yes", "no judge has read P(yes); run `genprobe judge` with --judge probability first"),
    ):
        if column not in said and (column == "says" or (said["decode"] == "logprob").any()):
            raise InputError(cure)
    asked = said[(said["measures"] == "endorsed") & (said["role"] == "original")]
    if not len(asked):
        raise InputError("no original was asked about by agreement or disagreement")
    # The data may have a column of this name, which answers use for the item.
    preferred = preferred.drop(columns="statement", errors="ignore")
    preferred = preferred.rename(columns={"item": "statement"})
    _same_texts(said, preferred)
    facts = _facts(asked, preferred, [c for c in dict.fromkeys(by) if c not in _KEY])
    asked = asked[["decode", *_KEY]].assign(decode=asked["decode"].astype(str), says=says(asked))
    one = asked.groupby(["decode", *_KEY], observed=True)["says"].mean().reset_index()
    return one, _by_original(preferred), facts


def _by_original(preferred: pd.DataFrame) -> pd.DataFrame:
    """Compute the mean of pro - anti over the contrasts of each original, by scorer."""
    with np.errstate(invalid="ignore"):  # infinite values
        scored = preferred[["scorer", *_KEY]].assign(prefers=preferred["pro"] - preferred["anti"])
    return scored.groupby(["scorer", *_KEY], observed=True)["prefers"].mean().reset_index()


def _likelier(said: pd.DataFrame, preferred: pd.DataFrame, by: Sequence[str]) -> Sides:
    """Return the two sides of pairs of which it was asked which sentence is likelier.

    says: among answers that name one of the two sentences, over the contrasts, frames, orders and
    samples of an original, the share that names the original.
    """
    said = said.drop(columns=["statement", "item"], errors="ignore")
    said = said.rename(columns={"original_id": "statement"})
    preferred = preferred.drop(columns="statement", errors="ignore")
    preferred = preferred.rename(columns={"item": "statement"})
    both = (
        said[[*_KEY, "text"]]
        .drop_duplicates()
        .merge(preferred[[*_KEY, "text", "contrast_text"]].drop_duplicates(), "inner", _KEY)
    )
    ends = " " + both["text_y"] + " / " + both["contrast_text"]
    same = [text.endswith(end) for text, end in zip(both["text_x"], ends, strict=True)]
    held = both.assign(same=same).groupby([*_KEY, "text_x"])["same"].any()
    if not held.all():
        lang, statement, _ = held.index[~held][0]
        raise InputError(
            f"pair {statement!r} ({lang}) has another text in the log-prob run; give two runs of "
            "the same data"
        )
    facts = _facts(said, preferred, [c for c in dict.fromkeys(by) if c not in _KEY])
    return _named(said), _by_original(preferred), facts


def _choices(said: pd.DataFrame, preferred: pd.DataFrame, by: Sequence[str]) -> Sides:
    """Return the two sides of choices.

    says: among answers that name one of the two groups, over the frames, orders and samples of a
    question, the share that names the group of the stereotype. prefers: the mean of log p(target) -
    log p(counter) over the orders.
    """
    said, preferred = (
        side.drop(columns="statement", errors="ignore").rename(columns={"item": "statement"})
        for side in (said, preferred)
    )
    _same_questions(said, preferred)
    facts = _facts(said, preferred, [c for c in dict.fromkeys(by) if c not in _KEY])
    scored = preferred.groupby(["scorer", *_KEY], observed=True)["log_ratio"].mean()
    return _named(said), scored.rename("prefers").reset_index(), facts


def _named(said: pd.DataFrame) -> pd.DataFrame:
    """Compute, of the answers that name one of the two sides, the share that names the target."""
    masses = said[["p_target", "p_counter"]].where(said["left_out"] == "", 0.0).fillna(0.0)
    keys = ["decode", *_KEY]
    total = pd.concat([said[keys], masses], axis=1).groupby(keys, observed=True).sum()
    both = total["p_target"] + total["p_counter"]
    return (total["p_target"] / both.where(both > 0)).rename("says").reset_index()


def _same_questions(said: pd.DataFrame, preferred: pd.DataFrame) -> None:
    """Raise InputError if a choice has another text in the other table."""
    texts = [side[[*_KEY, "text"]].drop_duplicates(_KEY) for side in (said, preferred)]
    both = texts[0].merge(texts[1], "inner", _KEY)
    wrong = both[both["text_x"] != both["text_y"]]
    if len(wrong):
        first = wrong.iloc[0]
        raise InputError(
            f"{first['statement']} ({first['lang']}) has another text in the other run; give both "
            "runs the same --data"
        )


def says(asked: pd.DataFrame) -> Array:
    """Read from each answer how far it endorses, or recognises, 0 to 1; NaN if it is not clear.

    asked: outcomes of yes/no questions. For probabilities it is P(yes) / (P(yes) + P(no)), or 1
    minus that if "no" is the answer that endorses. Returns (rows,).
    """
    found = asked["says"].astype("Float64").to_numpy(float, na_value=np.nan)
    if "p_yes" not in asked:
        return found
    mass = asked["p_yes"] + asked["p_no"]
    share = (asked["p_yes"] / mass.where(mass > 0)).to_numpy(float)
    share = np.where(asked["when"] == "yes", share, 1 - share)
    return np.where(asked["decode"] == "logprob", share, found)


def _reasons(found: pd.DataFrame) -> pd.Series:
    """Say why each item does not count, "" if it does."""
    reason = pd.Series("", found.index, dtype=object)
    for why, where in (
        (ONLY_SAID, found["side"] == "left_only"),
        (ONLY_PREFERRED, found["side"] == "right_only"),
        (UNCLEAR, found["says"].isna()),
        (UNSCORED, found["prefers"].isna()),
        (INFINITE, ~np.isfinite(found["prefers"])),
    ):
        reason = reason.mask((reason == "") & where, why)
    return reason


def _same_texts(said: pd.DataFrame, preferred: pd.DataFrame) -> None:
    """Raise InputError if a statement has another text in the other table."""
    contrasts = preferred[["lang", "contrast", "contrast_text"]]
    contrasts = contrasts.set_axis([*_KEY, "text"], axis=1)
    scored = pd.concat([preferred[[*_KEY, "text"]], contrasts]).drop_duplicates(_KEY)
    both = said[[*_KEY, "text"]].drop_duplicates(_KEY).merge(scored, "inner", _KEY)
    wrong = both[both["text_x"] != both["text_y"]]
    if len(wrong):
        first = wrong.iloc[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"{first['statement']} ({first['lang']}) was asked about as {first['text_x']!r} and "
            f"scored as {first['text_y']!r}{more}; give both runs the same --data"
        )


def _facts(asked: pd.DataFrame, preferred: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the columns `by` of every item: from the asked table, else from the scored one."""
    known = [c for c in dict.fromkeys([*asked, *preferred]) if c not in _NEVER]
    for column in by:
        if column in _NEVER:
            raise InputError(f"items cannot be split by {column!r}; try bias_type")
        if column not in known:
            raise registry.unknown("column", column, known)
    sides = [side[[*_KEY, *(c for c in by if c in side)]] for side in (asked, preferred)]
    return pd.concat(sides, ignore_index=True).drop_duplicates(_KEY)


# --- statistics


def ranks(values: Array, times: Array) -> Array:
    """Rank each value in a sample that holds each as often as `times` says.

    Equal values share their mean rank. values: (n,); times: (..., n) -> (..., n).
    """
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    starts = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
    mass = np.add.reduceat(times[..., order], starts, axis=-1)
    middle = np.cumsum(mass, axis=-1) - (mass - 1) / 2
    group = np.empty(len(values), int)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(values)]))
    return np.asarray(middle[..., group])


def pearson(x: Array, y: Array, times: Array) -> Array:
    """Compute Pearson's correlation of a sample that holds each unit as often as `times` says.

    NaN if one of the two does not vary. All (..., n) -> (...).
    """
    n = times.sum(-1)
    sides, spreads = [], []
    for values in (x, y):
        mean = np.einsum("...i,...i", times, values) / n
        off = values - mean[..., None]
        spread = np.einsum("...i,...i,...i", times, off, off)
        # Differences from rounding equal values do not count as variation.
        none = spread <= 1e-14 * (spread + n * mean**2)
        sides.append(off)
        spreads.append(np.where(none, np.nan, spread))
    both = np.einsum("...i,...i,...i", times, *sides)
    return np.asarray(np.clip(both / np.sqrt(spreads[0] * spreads[1]), -1.0, 1.0))


Estimate = tuple[float | None, Interval | None]


def spearman(says: Array, prefers: Array, cluster: Array) -> Estimate:
    """Compute Spearman's rank correlation, and its interval.

    1904, American Journal of Psychology 15:72; equal values share their mean rank. The interval is
    a bootstrap over clusters that ranks every resample anew; a resample without variation counts as
    0.
    """
    return _estimate(
        lambda times: pearson(ranks(says, times), ranks(prefers, times), times), cluster
    )


def point_biserial(yes: Array, prefers: Array, cluster: Array) -> Estimate:
    """Compute Pearson's correlation of a 0/1 variable and a number, in the scorer's own units.

    Tate 1954, Annals of Mathematical Statistics 25:603; interval as in `spearman`.
    """
    return _estimate(lambda times: pearson(yes.astype(float), prefers, times), cluster)


def _estimate(value: Callable[[Array], Array], cluster: Array) -> Estimate:
    if len(cluster) < LEAST:
        return None, None
    found = float(value(np.ones(len(cluster))))
    if np.isnan(found):
        return None, None
    return found, reweighted(cluster, lambda times: np.nan_to_num(value(times)), limits=_LIMITS)


# --- scores


def scores(
    found: pd.DataFrame, by: Sequence[str], signature: Sign, model: str | None = None
) -> list[Score]:
    """Compute the measures of `items` in every cell of reading, scorer and `by`.

    All intervals count statements: one statement in five languages is one cluster. model: added to
    the cells as a column, unless it is None.

    `says` (mean endorsement); `prefers` (share of items with a difference above 0; a tie is not
    above 0); `spearman` of the two; `point-biserial` of the answer (yes above one half) and the
    difference; `no-but-prefers` and the other three shares of the 2 x 2 table of answer and
    preference. Ties of the answer are left out of `point-biserial` and the 2 x 2 table, ties of the
    preference out of the 2 x 2 table; both are counted as exclusions.
    """
    columns = list(dict.fromkeys(["decode", "scorer", *by]))
    cell, labels = cells(found, columns)
    who: dict[str, JSON] = {} if model is None else {"model": model}
    rows: list[Score] = []
    for at, label in enumerate(labels):
        rows += _cell(found[cell == at], who | label, signature)
    return rows


def _cell(here: pd.DataFrame, by: dict[str, JSON], signature: Sign) -> Iterator[Score]:
    left = here["reason"][here["reason"] != ""].value_counts().to_dict()
    here = here[here["reason"] == ""]
    says, prefers = (here[name].to_numpy(float) for name in ("says", "prefers"))
    # Numbered by name: the order of the rows must not change a resample.
    cluster = np.unique(here["statement"].to_numpy(str), return_inverse=True)[1]

    def made(name: str, method: str, estimate: Estimate, n: int) -> Score:
        value, interval = estimate
        low, high = interval or (None, None)
        out = dict(sorted(left.items(), key=rank))
        sign = signature(f"{name}/{VERSION}-{method}")
        return Score(name, by, value, low, high, n, out, None, sign)

    def share(hits: Array, of: Array, drawn: bool = False) -> Estimate:
        if not len(of):
            return None, None
        sums = np.column_stack([np.bincount(of, hits), np.bincount(of)])
        sums = sums[sums[:, 1] > 0]
        if drawn:
            return float(hits.mean()), bootstrap(sums, ratio, limits=(0.0, 1.0))
        return float(hits.mean()), share_interval(sums[:, 0], sums[:, 1])

    n = len(here)
    yield made("says", BOOTSTRAP, share(says, cluster, drawn=True), n)
    yield made("prefers", SHARE, share((prefers > 0).astype(float), cluster), n)
    yield made("spearman", BOOTSTRAP, spearman(says, prefers, cluster), n)
    clear = says != 0.5
    left |= {TIE_SAID: int((~clear).sum())} if not clear.all() else {}
    says, prefers = says[clear], prefers[clear]
    cluster = np.unique(cluster[clear], return_inverse=True)[1]
    yield made("point-biserial", BOOTSTRAP, point_biserial(says > 0.5, prefers, cluster), len(says))
    clear = prefers != 0
    left |= {TIE_PREFERRED: int((~clear).sum())} if not clear.all() else {}
    says, prefers, cluster = says[clear], prefers[clear], cluster[clear]
    for (yes, stereotype), name in _TABLE.items():
        hits = ((says > 0.5) == yes) & ((prefers > 0) == stereotype)
        yield made(name, SHARE, share(hits.astype(float), cluster), len(hits))


def ranking(figures: Sequence[Score], signature: Sign) -> list[Score]:
    """Correlate the models' ranks by saying and by preferring, in every cell of `scores`.

    Spearman's and Kendall's correlation (tau-b: 1945, Biometrika 33:239) of the models' `says` and
    `prefers`; n counts models that have both, and below `LEAST` there is no value. There is no
    interval: with so few models it would say nothing.
    """
    from scipy import stats

    grid: dict[tuple[tuple[str, JSON], ...], dict[JSON, dict[str, float]]] = {}
    for score in figures:
        if score.metric in ("says", "prefers"):
            label = tuple((k, v) for k, v in score.by.items() if k != "model")
            of = grid.setdefault(label, {}).setdefault(score.by["model"], {})
            if score.value is not None:
                of[score.metric] = score.value
    rows = []
    for name, function in (
        ("models-spearman", stats.spearmanr),
        ("models-kendall", stats.kendalltau),
    ):
        sign = signature(f"{name}/{VERSION}")
        for label, models in grid.items():
            points = [(m["says"], m["prefers"]) for m in models.values() if len(m) == 2]
            value = None
            if len(points) >= LEAST and all(
                len(set(side)) > 1 for side in zip(*points, strict=True)
            ):
                result: Any = function(*zip(*points, strict=True))
                value = float(result.statistic)
            rows.append(Score(name, dict(label), value, None, None, len(points), {}, None, sign))
    return rows


def notes(found: pd.DataFrame) -> list[str]:
    """Write a line for every set of items that does not count, or is a tie.

    It gives the reason, the readings and scorers (unless all), the number, and the first `TOLD`
    names.
    """
    counts = found["reason"] == ""
    why = found["reason"].mask(counts & (found["prefers"] == 0), TIE_PREFERRED)
    why = why.mask(counts & (found["says"] == 0.5), TIE_SAID)
    names = found["statement"].astype(str) + " (" + found["lang"].astype(str) + ")"
    every = [tuple(found[column].unique()) for column in ("decode", "scorer")]
    # A set that is left out for several readings or scorers gets one line.
    sets: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    left = found["reason"].index[why != ""]
    keys = [why[left], found.loc[left, "decode"], found.loc[left, "scorer"]]
    for (reason, decode, scorer), group in names[left].groupby(keys, observed=True):
        sets.setdefault((reason, tuple(group)), {}).setdefault(decode, []).append(scorer)
    lines = []
    for (reason, group), where in sets.items():
        same: dict[tuple[str, ...], list[str]] = {}
        for decode, scorers in where.items():
            same.setdefault(tuple(scorers), []).append(decode)
        parts = [
            " × ".join(", ".join(s) for s, e in zip((d, s), every, strict=True) if len(s) < len(e))
            for s, d in same.items()
        ]
        within = f" in {'; '.join(parts)}" if any(parts) else ""
        more = f" and {len(group) - TOLD} more" if len(group) > TOLD else ""
        lines.append(f"{reason}{within}, {len(group)}: {', '.join(group[:TOLD])}{more}")
    return lines


declare(
    Measure("spearman", "Spearman's rho of what is said and what is preferred", "coefficient"),
    Measure("point-biserial", "correlation of the answer and the difference", "coefficient"),
    Measure("models-spearman", "Spearman's rho of the ranks of models", "coefficient"),
    Measure("models-kendall", "Kendall's tau of the ranks of models", "coefficient"),
)
