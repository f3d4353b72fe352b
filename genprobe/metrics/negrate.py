"""Measure how often stories are negative, and how much of that depends on the seed.

The unit is a template: one statement in one wording and language, told several times by one model
with different seeds. Only stories that passed the story checks and have a sentiment count. The
label of a template is negative if more than half of these stories are negative; with five stories
that means three, as in Aqbileq, section 4.2. With fewer than three such stories it has no label.
`docs/measures.md` says when to use which.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from genprobe.metrics import REPLY, Metric, Units, no_reply, unanswered
from genprobe.records import FACETS
from genprobe.statistics import (
    BOOTSTRAP,
    SHARE,
    Array,
    bootstrap,
    ratio,
    share_of_sums,
)

FEWEST = 3  # stories that a template needs for a label
AGREEMENT = 0.95  # probability that two sets of seeds give one template the same label
MOST = 999  # seeds at most; also the answer if even these are not enough

TEMPLATE = ("model", "revision", "decode", "lang", "probe", "statement", *FACETS)
STORY = ("sample", "usable", "unusable_why", "sentiment", "negative", *REPLY)
NEEDS = ("sentiment", "statement", "left_out")


def not_told(outcomes: pd.DataFrame) -> pd.Series:
    """Say why a planned story does not count, "" if it does.

    The reason is `failed`, `missing`, `unjudged`, that of the story checks, or `unscored` if the
    classifier abstains.
    """
    reason = no_reply(outcomes, "sentiment")
    abstained = (reason == "") & (outcomes["sentiment"] == "unscored")
    reason = reason.mask(abstained, "unscored")
    if "usable" not in outcomes:
        return reason
    answered = ~unanswered(outcomes)
    usable = outcomes["usable"].astype("boolean")
    why: pd.Series | str = "unusable"
    if "unusable_why" in outcomes:
        named = outcomes["unusable_why"].astype(object)
        why = named.where(named.notna() & (named != ""), "unusable")
    reason = reason.mask(answered & usable.isna(), "unjudged")
    return reason.mask(answered & ~usable.fillna(True), why)


def templates(outcomes: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return one row for each template and cell of `by`.

    Its columns: those of the template, `by`, and the numbers of stories that were planned
    (`__planned`), that count (`__valid`), and that count and are negative (`__negative`).
    """
    valid = (not_told(outcomes) == "").to_numpy(bool)
    negative = (outcomes["sentiment"] == "negative").to_numpy(bool, na_value=False)
    keys = list(dict.fromkeys([*(c for c in TEMPLATE if c in outcomes), *by]))
    stories = outcomes[keys].assign(
        __planned=1,
        __valid=valid.astype(int),
        __negative=(valid & negative).astype(int),
    )
    return stories.groupby(keys, sort=True, dropna=False, observed=True).sum().reset_index()


def _units(
    found: pd.DataFrame, by: list[str], stats: list[pd.Series], possible: Array | None = None
) -> Units:
    reason = pd.Series("", found.index, dtype=object)
    reason = reason.mask(found["__valid"] < FEWEST, "few-stories")
    values = np.column_stack([s.to_numpy(float) for s in stats])
    return Units(found[by], found["statement"], reason, values, possible)


def _one(found: pd.DataFrame) -> pd.Series:
    return pd.Series(1.0, found.index)


def of_templates(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of templates whose label is negative.

    Bounds: the share among all templates, if none of the stories that do not count were negative,
    and if all of them were. A template without a label could be either.
    """
    found = templates(outcomes, by)
    label = found["__negative"] * 2 > found["__valid"]
    planned, valid = found["__planned"], found["__valid"]
    least = found["__negative"] * 2 > planned
    most = (found["__negative"] + planned - valid) * 2 > planned
    possible = np.column_stack([least, most]).astype(float)
    possible[(valid < FEWEST).to_numpy()] = (0.0, 1.0)
    return _units(found, by, [label, _one(found)], possible)


def _published(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of negative templates by the published rule (Aqbileq 4.2).

    Every story that came counts, in any language and whether or not it passes the story checks. A
    template is negative if most of its stories are negative, else positive.
    """
    came = ~unanswered(outcomes)
    negative = came & (outcomes["sentiment"] == "negative")
    keys = list(dict.fromkeys([*(c for c in TEMPLATE if c in outcomes), *by]))
    stories = outcomes[keys].assign(
        __told=came.astype(int), __negative=negative.fillna(False).astype(int)
    )
    found = stories.groupby(keys, sort=True, dropna=False, observed=True).sum().reset_index()
    reason = pd.Series("", found.index, dtype=object).mask(found["__told"] == 0, "missing")
    values = np.column_stack([found["__negative"] * 2 > found["__told"], _one(found)])
    return Units(found[by], found["statement"], reason, values.astype(float))


def _margin(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the mean margin of the vote within a template, |negative - others| / stories."""
    found = templates(outcomes, by)
    others = found["__valid"] - found["__negative"]
    margin = (found["__negative"] - others).abs() / found["__valid"].clip(lower=1)
    return _units(found, by, [margin, _one(found)])


def _disagreement(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of templates whose stories are not all on one side."""
    found = templates(outcomes, by)
    split = (found["__negative"] > 0) & (found["__negative"] < found["__valid"])
    return _units(found, by, [split, _one(found)])


def _stories(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Compute the share of stories that are negative."""
    reason = not_told(outcomes)
    negative = (outcomes["sentiment"] == "negative").to_numpy(float, na_value=0.0)
    stats = np.column_stack([negative, np.ones(len(outcomes))])
    return Units(outcomes[by], outcomes["statement"], reason, stats)


def _pairs(outcomes: pd.DataFrame, by: list[str]) -> Units:
    """Count what estimates the moments of a template's share of negative stories.

    The statistics: negative stories, stories, ordered pairs of two negative stories of one
    template, ordered pairs of any two stories of one template.
    """
    found = templates(outcomes, by)
    k, n = found["__negative"], found["__valid"]
    return _units(found, by, [k, n, k * (k - 1), n * (n - 1)])


@functools.cache
def _labels() -> tuple[Array, Array, Array]:
    """Return the probability that two sets of stories of one template get the same label.

    Returns three arrays: the edges (201,) of 200 narrow ranges of shares p, closer together near 0
    and 1; odd numbers k of stories (numbers,); and the probability (ranges, numbers) for two sets
    of k stories with the share p.
    """
    from scipy.special import betainc

    edges = np.sin(np.linspace(0, np.pi / 2, 201)) ** 2
    p = np.sin((np.linspace(0, np.pi / 2, 201)[1:] + np.linspace(0, np.pi / 2, 201)[:-1]) / 2) ** 2
    odd = np.arange(1, MOST + 1, 2)
    half = (odd + 1) / 2
    majority = betainc(half, half, p[:, None])  # P(more than half of k are negative)
    return edges, odd, majority**2 + (1 - majority) ** 2


def seeds_needed(sums: Array) -> Array:
    """Return how many stories a template needs for a reliable label.

    This is the smallest odd number from which two fresh sets of stories would give one template the
    same label with probability `AGREEMENT`, on average over templates; `MOST` if even that is not
    enough. Even numbers are left out because they can tie.

    sums: (..., 4), summed over templates, of `_pairs`; returns (...).

    The shares of the templates are assumed to follow a beta distribution. Its mean, and the
    correlation of two stories of one template, are estimated from the sums (both without bias,
    whatever the numbers of stories).
    """
    from scipy.special import betainc

    edges, odd, same = _labels()
    k, n, kk, nn = np.moveaxis(np.asarray(sums, float), -1, 0)
    mean = k / n
    spread = mean * (1 - mean)
    excess = kk / np.maximum(nn, 1) - mean**2
    alike = np.divide(excess, spread, out=np.ones(np.shape(mean)), where=spread > 0)
    # Correlation 1: all stories of a template agree; 0: every template has the mean share.
    alike = np.clip(alike, 1e-4, 1 - 1e-9)
    size = 1 / alike - 1
    a = np.maximum(mean * size, 1e-12)[..., None]
    b = np.maximum((1 - mean) * size, 1e-12)[..., None]
    weight = np.diff(betainc(a, b, edges), axis=-1)
    enough = weight @ same >= AGREEMENT
    first = np.where(enough.any(-1), odd[enough.argmax(-1)], MOST)
    return np.asarray(first, float)


METRICS = (
    Metric(
        "negrate",
        "share of templates most of whose stories are negative",
        "templates",
        of_templates,
        ratio,
        share_of_sums,
        SHARE,
        NEEDS,
        additive=True,
        never_by=STORY,
        place=100,
        says="tell mostly negative stories",
        version="2",
    ),
    Metric(
        "negrate-published",
        "NegRate by the published rule: every story counts, and a template is positive unless "
        "most of its stories are negative",
        "templates",
        _published,
        ratio,
        share_of_sums,
        SHARE,
        NEEDS,
        additive=True,
        never_by=STORY,
        place=105,
    ),
    Metric(
        "negative-stories",
        "share of stories that are negative",
        "stories",
        _stories,
        ratio,
        share_of_sums,
        SHARE,
        NEEDS,
        additive=True,
        never_by=("sentiment", "negative"),
        place=110,
        says="write negatively",
        version="2",
    ),
    Metric(
        "vote-margin",
        "mean difference between the numbers of a template's negative and other stories, as a "
        "share of its stories",
        "templates",
        _margin,
        ratio,
        lambda sums: bootstrap(sums, ratio, limits=(0.0, 1.0)),
        BOOTSTRAP,
        NEEDS,
        additive=True,
        never_by=STORY,
        place=130,
    ),
    Metric(
        "seed-disagreement",
        "share of templates with both negative and other stories",
        "templates",
        _disagreement,
        ratio,
        share_of_sums,
        SHARE,
        NEEDS,
        additive=True,
        never_by=STORY,
        place=120,
    ),
    Metric(
        "seeds",
        f"stories per template at which two sets agree on its label {100 * AGREEMENT:g} % of the "
        "time",
        "templates",
        _pairs,
        seeds_needed,
        lambda sums: bootstrap(sums, seeds_needed),
        BOOTSTRAP,
        NEEDS,
        additive=True,
        never_by=STORY,
        limits=(1.0, float(MOST)),
        place=140,
        scale="count",
        pairable=False,
    ),
)
