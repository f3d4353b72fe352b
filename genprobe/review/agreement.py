"""Compute how far reviewers agree with one another (four coefficients) and with themselves.

Missing answers are allowed. If item i has r_i answers, of which r_ik are of category k:

- `agreement`: the mean of a_i = sum_k r_ik (r_ik - 1) / (r_i (r_i - 1)), the share of pairs of
  answers to item i that agree, over the items with two or more answers.
- `cohen-kappa` of two reviewers (Cohen 1960, Educ. Psychol. Meas. 20:37), over the items that both
  answered. If the cell does not name two reviewers, the mean over all pairs of reviewers (Light
  1971, Psychol. Bull. 76:365).
- `fleiss-kappa` (Fleiss 1971, Psychol. Bull. 76:378), with missing answers as in Gwet (2014,
  Handbook of Inter-Rater Reliability, 4th ed., ch. 2): agreement by chance is computed from the
  mean of r_ik / r_i over all answered items.
- `krippendorff-alpha`, nominal (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability).
- `self-agreement`: the share of repeated items that a reviewer answered as the first time.

The number of pairs of reviewers grows with the square of theirs. If more than `MOST` numbers would
have to be held for them, as for a crowd, Cohen's kappa has no value, and its pairs are counted as
left out. The other coefficients take time in step with the number of answers.

All are functions of sums over items, so an interval is one bootstrap over items
(`statistics.bootstrap`). A coefficient has no value if chance alone would always agree (only one
category was used). A resample in which this is so counts as full agreement.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from genprobe import files, statistics
from genprobe.errors import InputError
from genprobe.files.rows import Table, sources_of
from genprobe.metrics import Measure, declare
from genprobe.outcomes import votes
from genprobe.records import JSON, Score
from genprobe.render.scores import Scores
from genprobe.review.collect import ADJUDICATOR
from genprobe.runs.spec import file_signer
from genprobe.statistics import BOOTSTRAP, Array

VERSION = "1"
MOST = 20_000_000  # numbers that are held for the pairs of reviewers of a question
Value = Callable[[Array], Array]


def agreement(paths: object, meant: Callable[[str, str], str] | None = None) -> Scores:
    """Compute how far reviewers agree, by question, and by language if there is a column `lang`.

    paths: tables, one or several, with the columns `item, reviewer, question, answer`, or their
    usual other names (`item, rater, label`; outcomes/votes.py). They are read as one table. Without
    a column of questions there is one question, `label`. An empty answer is missing; case does not
    matter. meant: a function of question and answer that returns the answer to compare, for answers
    that can be given in several words.

    An answer is a repeat if the column `repeat` marks it, or if it is the second one of a reviewer
    to the same item. Answers of an adjudicator are left out. Raises InputError, with the row, for a
    row that cannot be read.
    """
    sources = list(dict.fromkeys(sources_of(paths)))
    rows = [row for path in sources for row in _rows(path)]
    votes.need_distinct((row["reviewer"] for row in rows), ", ".join(map(str, sources)))
    if meant is not None:
        rows = [row | {"answer": meant(row["question"], row["answer"])} for row in rows]
    sign = _signer(sources)
    scores: list[Score] = []
    for question, mine in _grouped(rows, "question"):
        by_lang = sorted((lang, part) for lang, part in _grouped(mine, "lang") if lang is not None)
        parts: list[tuple[dict[str, JSON], list[dict[str, Any]]]] = [({}, mine)]
        if len(by_lang) == 1:
            parts = [({"lang": by_lang[0][0]}, mine)]
        elif by_lang:
            parts = [({"lang": "all"}, mine), *(({"lang": lang}, part) for lang, part in by_lang)]
        several = len({row["reviewer"] for row in mine}) > 1
        for cell, part in parts:
            scores += _scores(part, {"question": question} | cell, sign, several)
    order = ("agreement", "cohen-kappa", "fleiss-kappa", "krippendorff-alpha", "self-agreement")
    return Scores(sorted(scores, key=lambda score: (len(score.by), order.index(score.metric))))


def _grouped(
    rows: Iterable[dict[str, Any]], name: str
) -> Iterable[tuple[Any, list[dict[str, Any]]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found.items()


def _rows(path: Table) -> Iterable[dict[str, Any]]:
    for row in votes.read(path, files.numbered_rows(path)):
        if row["reviewer"] != ADJUDICATOR:
            yield row


def _signer(paths: Sequence[Table]) -> Callable[[str], str]:
    """Return a function that makes the signature of a metric computed from these files."""
    sign = file_signer(paths, {})
    return lambda metric: sign(f"{metric}/{VERSION}-{BOOTSTRAP}")


def _scores(
    rows: Sequence[dict[str, Any]],
    cell: dict[str, JSON],
    sign: Callable[[str], str],
    several: bool,
) -> list[Score]:
    """Compute the scores of one question, in all languages or in one.

    several: whether the question has several reviewers, in whatever language.
    """
    first, again, reviewers, counts = tables(rows)
    readers = counts.sum(1)
    scores = []

    def add(
        metric: str,
        by: dict[str, JSON],
        units: Array,
        value: Value,
        left: int,
        why: str = "fewer than two answers",
    ) -> None:
        point = float(value(units.sum(0))) if len(units) else math.nan
        interval = None
        if not math.isnan(point):
            limits = (0.0, 1.0) if metric.endswith("agreement") else (-1.0, 1.0)
            interval = statistics.bootstrap(
                units, functools.partial(_resampled, value), limits=limits
            )
        low, high = interval or (None, None)
        scores.append(
            Score(
                metric=metric,
                by=cell | by,
                value=None if math.isnan(point) else point,
                low=low,
                high=high,
                n=len(units),
                excluded={why: left} if left else {},
                bounds=None,
                signature=sign(metric),
            )
        )

    k = counts.shape[1]
    pairs = len(reviewers) * (len(reviewers) - 1) // 2
    few = len(counts) * pairs * (2 + 2 * k) <= MOST
    answers = np.full((len(counts), len(reviewers)) if few else (0, 0), -1)
    if few and first:
        answers[tuple(np.array(list(first)).T)] = list(first.values())
    left = int((readers == 1).sum())
    add("agreement", {}, raw_units(counts), statistics.ratio, left)
    if several:
        of_pairs = functools.partial(cohen, k=k)
        if few:
            add("cohen-kappa", {}, pair_units(answers, k), of_pairs, left)
        else:
            add("cohen-kappa", {}, np.zeros((0, 0)), of_pairs, pairs, "pairs of reviewers")
        # Items with one answer count too: they show how often each category is used.
        some = fleiss_units(counts if (readers > 1).any() else counts[:0])
        add("fleiss-kappa", {}, some, fleiss, 0 if len(some) else left)
        add("krippendorff-alpha", {}, alpha_units(counts), alpha, left)
    for a, b in itertools.combinations(range(len(reviewers)), 2) if few and pairs > 1 else ():
        units = pair_units(answers[:, [a, b]], k)
        by: dict[str, JSON] = {"reviewers": f"{reviewers[a]}, {reviewers[b]}"}
        add("cohen-kappa", by, units, functools.partial(cohen, k=k), 0)
    same: dict[int, list[bool]] = {}
    for (item, at), category in again.items():
        if (item, at) in first:
            same.setdefault(at, []).append(first[item, at] == category)
    for at, found in sorted(same.items()):
        units = np.stack([np.array(found, float), np.ones(len(found))], 1)
        add("self-agreement", {"reviewer": reviewers[at]}, units, statistics.ratio, 0)
    return scores


def tables(
    rows: Iterable[dict[str, Any]],
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int], list[str], Array]:
    """Return first readings, second readings, the names of the reviewers, and counts.

    Readings: (number of the item, number of the reviewer) -> number of the category. counts:
    (items, categories), how many first readings each item has of each category. Raises InputError
    if there are too many different answers to count.
    """
    rows = list(rows)
    # The same name in two languages is two items.
    names = dict.fromkeys((row.get("lang"), row["item"]) for row in rows)
    items = {name: at for at, name in enumerate(names)}
    reviewers = sorted({row["reviewer"] for row in rows})
    numbers = {name: at for at, name in enumerate(reviewers)}
    found = sorted({row["answer"] for row in rows} - {""})
    category = {answer: at for at, answer in enumerate(found)}
    if len(items) * len(found) > MOST:
        raise InputError(
            f"{len(found):,} different answers on {len(items):,} items are no categories; is the "
            "column of answers the right one?"
        )
    first: dict[tuple[int, int], int] = {}
    again: dict[tuple[int, int], int] = {}
    for row in rows:
        at = items[row.get("lang"), row["item"]], numbers[row["reviewer"]]
        table = again if row["again"] or at in first else first
        if row["answer"]:
            table.setdefault(at, category[row["answer"]])
    counts = np.zeros((len(items), len(found)), int)
    for (item, _), number in first.items():
        counts[item, number] += 1
    return first, again, reviewers, counts


# --- additive statistics of items, and coefficients from their sums; counts: (items, categories)


def raw_units(counts: Array) -> Array:
    """Return the columns a_i and 1 for each item with two or more answers."""
    r = counts.sum(1)
    counts, r = counts[r > 1], r[r > 1]
    agree = (counts * (counts - 1)).sum(1) / (r * (r - 1))
    return np.stack([agree, np.ones(len(r))], 1)


def fleiss_units(counts: Array) -> Array:
    """Return the statistics of Fleiss' kappa for each item with an answer.

    Columns: a_i (0 for one answer), whether there are two or more answers, r_ik / r_i for each
    category k, and 1.
    """
    r = counts.sum(1)
    counts, r = counts[r > 0], r[r > 0]
    agree = (counts * (counts - 1)).sum(1) / np.maximum(r * (r - 1), 1)
    return np.column_stack([agree, r > 1, counts / r[:, None], np.ones(len(r))])


def fleiss(sums: Array) -> Array:
    shares = sums[..., 2:-1] / sums[..., -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        return _beyond_chance(sums[..., 0] / sums[..., 1], (shares**2).sum(-1))


def alpha_units(counts: Array) -> Array:
    """Return the statistics of Krippendorff's alpha for each item with two or more answers.

    Columns: the number of agreeing ordered pairs / (r_i - 1), and r_ik for each category k.
    """
    r = counts.sum(1)
    counts, r = counts[r > 1], r[r > 1]
    agree = (counts * (counts - 1)).sum(1) / (r - 1)
    return np.column_stack([agree, counts])


def alpha(sums: Array) -> Array:
    totals = sums[..., 1:]
    n = totals.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (totals * (totals - 1)).sum(-1) / (n * (n - 1))
        return _beyond_chance(sums[..., 0] / n, expected)


def pair_units(answers: Array, k: int) -> Array:
    """Return the statistics of Cohen's kappa for each item with two or more answers.

    The array is (items, pairs * (2 + 2 k)). For each pair of reviewers it has: whether both
    answered, whether they agree, and indicators of the category of the one and of the other.
    """
    answers = answers[(answers >= 0).sum(1) > 1]
    parts = []
    for a, b in itertools.combinations(range(answers.shape[1]), 2):
        both: Array = (answers[:, a] >= 0) & (answers[:, b] >= 0)
        one, other = (np.equal.outer(answers[:, c], np.arange(k)) & both[:, None] for c in (a, b))
        agree = both & (answers[:, a] == answers[:, b])
        parts.append(np.column_stack([both, agree, one, other]).astype(float))
    return np.concatenate(parts, 1) if parts else np.zeros((0, 0))  # there is only one reviewer


def cohen(sums: Array, k: int) -> Array:
    """Compute Cohen's kappa of a pair, or the mean over the pairs that have a kappa."""
    parts = sums.reshape(*sums.shape[:-1], -1, 2 + 2 * k)
    n = parts[..., 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        one, other = parts[..., 2 : 2 + k], parts[..., 2 + k :]
        kappa = _beyond_chance(parts[..., 1] / n, (one * other).sum(-1) / n**2)
        have = ~np.isnan(kappa)
        return np.where(have, kappa, 0.0).sum(-1) / have.sum(-1)


def _beyond_chance(observed: Array, expected: Array) -> Array:
    """Compute (observed - expected) / (1 - expected); NaN if chance always agrees or is unknown."""
    rest = 1 - expected
    return np.where(rest > 1e-12, (observed - expected) / rest, np.nan)


def _resampled(value: Value, sums: Array) -> Array:
    """Return a coefficient of resamples; 1 (full agreement) where only one category was used."""
    return np.nan_to_num(value(sums), nan=1.0)


declare(
    Measure("agreement", "share of answers in which reviewers agree"),
    Measure("cohen-kappa", "Cohen's kappa of two reviewers", "coefficient"),
    Measure("fleiss-kappa", "Fleiss' kappa of all reviewers", "coefficient"),
    Measure("krippendorff-alpha", "Krippendorff's alpha, nominal", "coefficient"),
    Measure("self-agreement", "share of repeated items answered as the first time"),
)
