"""Recompute rates corrected by a human review, and join the table of people's answers."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genprobe import files
from genprobe.analysis.recompute import intervals
from genprobe.analysis.recompute.answers import no_reply
from genprobe.analysis.recompute.figures import Figure, Units, cluster, counted, in_cell, mean_of
from genprobe.analysis.recompute.rows import Row
from genprobe.analysis.recompute.stories import FEWEST, Errors, negrate, not_told, templates
from genprobe.analysis.recompute.tested import counts, ends
from genprobe.errors import InputError
from genprobe.files import cells
from genprobe.records import Score
from genprobe.review import collect
from genprobe.runs.run import Run

ADJUDICATOR = "adjudicator"
QUESTIONS = {
    "negrate": "sentiment",
    "negrate-regard": "regard",
}  # metric of templates -> question of the review


def with_people(rows: Sequence[Row], table: Path) -> list[Row]:
    """Add to each choice the share of people who agree with its stereotype.

    The table is joined on every column that it has in common with the choices.
    """
    data = [row for _, row in files.numbered_rows(table)]
    ours = [c for c in data[0] if c not in ("people", "yes", "no") and any(c in r for r in rows)]
    shares = {}
    for said in data:
        try:
            yes, no = (float(said.get(name) or 0) for name in ("yes", "no"))
            share = yes / (yes + no) if yes + no else float(said["people"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(f"{table}: no number in 'people', nor 'yes' and 'no'") from None
        shares[tuple(cells.cell_text(said[c]) for c in ours)] = share
    found = []
    for row in rows:
        key = tuple(cells.cell_text(row.get(c)) for c in ours)
        found.append({**row, "people": shares.get(key), "people_of": " ".join(key)})
    return found


class Review:
    """The answers of a review: (request, question) -> label and weight."""

    def __init__(self, run: Run, rows: Sequence[Row], table: Path) -> None:
        self.rows = [row for row in rows if row.get("decode", "free") == "free"]
        items: dict[tuple[str, str], list[Any]] = {}
        for row in collect.read_table(table):
            mine = row["item"] == collect.item_id(run.spec.hash, row["request"])
            if mine and not row["repeat"]:
                items.setdefault((row["request"], row["question"]), []).append(row)
        self._said = {key: (_label(said), float(said[0]["weight"])) for key, said in items.items()}

    def figure(self, score: Score, rows: Sequence[Row]) -> Figure | str:
        """Return the recomputed figure of a stored score, or why there is none."""
        by = {k: v for k, v in score.by.items() if k not in ("rate", "judge", "reviewed")}
        rows = in_cell(rows, by)
        if score.metric.startswith("says "):
            return self._confusion(score, rows)
        if score.metric == "pooled":
            return negrate(rows, by, self._errors())
        rate = str(score.by["rate"])
        if score.metric == "by-people":
            return self._by_people(rate, rows)
        if score.metric not in ("measured", "ppi", "rg", "judge-accuracy"):
            return "--recompute does not know this figure"
        if rate.removeprefix("llm_") in QUESTIONS:
            kept, excluded = self._templates(rate, rows)
        else:
            kept, excluded = self._replies(rate, rows)
        return _corrected(score.metric, kept, excluded, rate.removeprefix("llm_") in QUESTIONS)

    def _by_people(self, rate: str, rows: Sequence[Row]) -> Figure:
        """Compute a weighted rate from people's labels alone, without any judge."""
        read = [{**row, "read": "read"} for row in rows]
        if rate in QUESTIONS:
            kept, excluded = self._templates(rate, read, "read")
        else:
            kept, why = [], []
            for row in read:
                why.append(not_told({**row, "by_sentiment": "read"}))
                if not why[-1]:
                    said = [
                        self._said.get((row["request"], question), (None, 1.0))
                        for question in QUESTIONS.values()
                    ]
                    (felt, weight), (shown, _) = said
                    known = felt is not None and shown is not None
                    true = (felt == "negative") != (shown == "negative") if known else None
                    kept.append({"f": False, "y": true, "w": weight, "cluster": cluster(row)})
            excluded = counted(why)
        found = _corrected("ppi", kept, excluded, rate in QUESTIONS)
        seen = _corrected("judge-accuracy", kept, excluded, rate in QUESTIONS)
        assert isinstance(found, Figure) and isinstance(seen, Figure)
        return dataclasses.replace(found, n=seen.n, excluded=seen.excluded)

    def _replies(self, rate: str, rows: Sequence[Row]) -> tuple[list[Row], dict[str, int]]:
        """Collect the judge's and the reviewers' labels of each reply that a rate counts."""
        says = rate in ("recognised", "endorsed")
        column, positive = ("answer", "") if says else tuple(rate.rsplit(" ", 1))
        question = column.removeprefix("llm_")
        if says:
            rows = [row for row in rows if row["measures"] == rate]
        kept, why = [], []
        for row in rows:
            value = row.get(column)
            told = {**row, "by_sentiment": value}
            if column == "llm_regard" and value == "unclear":
                told["by_sentiment"] = None
            of_stories = question in QUESTIONS.values()
            reason = not_told(told) if of_stories else no_reply(row, column)
            why.append(reason)
            if not reason:
                wanted = row["when"] if says else positive
                label, weight = self._said.get((row["request"], question), (None, 1.0))
                true = None if label is None else label == wanted
                name = cluster(row)
                kept.append({"f": value == wanted, "y": true, "w": weight, "cluster": name})
        return kept, counted(why)

    def _templates(
        self, rate: str, rows: Sequence[Row], judged: str = ""
    ) -> tuple[list[Row], dict[str, int]]:
        """Collect the labelled templates, and the true label of those reviewed completely.

        judged: the column of the judge's labels, if it differs from the rate's column.
        """
        question = QUESTIONS[rate.removeprefix("llm_")]
        column = judged or rate.replace(rate.removeprefix("llm_"), question)
        if column == "llm_regard":
            rows = [
                {**r, column: None if r.get(column) == "unclear" else r.get(column)} for r in rows
            ]
        kept, why = [], []
        for stories in templates(rows):
            told = [{**row, "by_sentiment": row.get(column)} for row in stories]
            count = [row for row in told if not not_told(row)]
            why.append("few-stories" if len(count) < FEWEST else "")
            if len(count) < FEWEST:
                continue
            said = [self._said.get((row["request"], question), (None, 1.0)) for row in count]
            labels = [label for label, _ in said if label is not None]
            weights = [weight for label, weight in said if label is not None]
            whole = len(labels) == len(count)
            negative = sum(row["by_sentiment"] == "negative" for row in count)
            kept.append(
                {
                    "f": 2 * negative > len(count),
                    "y": 2 * labels.count("negative") > len(count) if whole else None,
                    "w": weights[0] if weights else 1.0,
                    "cluster": cluster(stories[0]),
                    "part": bool(labels) and not whole,
                }
            )
        return kept, counted(why)

    def _errors(self) -> dict[tuple[str, str], Errors]:
        """Count reviewed stories that are called negative, by classifier and language.

        For truly negative stories and for the others: the number called negative and the total,
        with weights of mean 1.
        """
        found: dict[tuple[str, str], list[tuple[bool, bool, float]]] = {}
        for row in self.rows:
            label, weight = self._said.get((row["request"], "sentiment"), (None, 1.0))
            if label is not None and not not_told(row):
                key = str(row["classifier"]), str(row["lang"])
                hit = row["by_sentiment"] == "negative"
                found.setdefault(key, []).append((label == "negative", hit, weight))
        errors = {}
        for key, stories in found.items():
            mean = math.fsum(weight for _, _, weight in stories) / len(stories)
            sums = []
            for truth in (True, False):
                own = [(hit, weight / mean) for true, hit, weight in stories if true is truth]
                sums += [math.fsum(w for hit, w in own if hit), math.fsum(w for _, w in own)]
            errors[key] = (sums[0], sums[1], sums[2], sums[3])
        return errors

    def _confusion(self, score: Score, rows: Sequence[Row]) -> Figure:
        """Compute how often the judge gives a label to replies with the cell's true label.

        A reply counts with the weight of its draw; the interval is Wilson's for (sum of
        weights)^2 / sum of squares replies.
        """
        judge, wanted = str(score.by["judge"]), score.metric.removeprefix("says ")
        question = judge.removeprefix("llm_")
        drawn = []
        for row in rows:
            label, weight = self._said.get((row.get("request", ""), question), (None, 1.0))
            told = {**row, "by_sentiment": row.get(judge)}
            if judge == "llm_regard" and row.get(judge) == "unclear":
                told["by_sentiment"] = None
            out = question in QUESTIONS.values() and not_told(told)
            if label == score.by["reviewed"] and row.get(judge) is not None and not out:
                drawn.append((row[judge] == wanted, weight))
        total = math.fsum(weight for _, weight in drawn)
        units: Units = [(str(at), (hit * weight, weight)) for at, (hit, weight) in enumerate(drawn)]
        number = total**2 / math.fsum(weight**2 for _, weight in drawn) if drawn else 0.0

        def interval(sums: Sequence[intervals.Sums]) -> intervals.Interval:
            return intervals.score_interval(math.fsum(k for k, _ in sums) / total * number, number)

        return mean_of(units, {}, intervals.exactly(interval))


def _label(said: Sequence[Any]) -> str | None:
    """Return the adjudicator's label, else the majority label of the reviewers, else None."""
    last = [row["answer"] for row in said if row["reviewer"] == ADJUDICATOR]
    votes = Counter(last or [row["answer"] for row in said])
    answer, most = votes.most_common(1)[0]
    return answer if last or 2 * most > votes.total() else None


def _corrected(
    metric: str, kept: Sequence[Row], excluded: dict[str, int], of_templates: bool
) -> Figure | str:
    n = len(kept)
    if metric == "measured":
        units: Units = [(row["cluster"], (float(row["f"]), 1.0)) for row in kept]
        return mean_of(units, excluded, scale=None)
    seen = [row for row in kept if row["y"] is not None]
    if metric == "judge-accuracy":
        part = sum(bool(row.get("part")) for row in kept) if of_templates else 0
        unread = {"reviewed in part": part, "not reviewed": n - len(seen) - part}
        left = excluded | {why: many for why, many in unread.items() if many}
        right = [{**row, "y": None if row["y"] is None else row["f"] == row["y"]} for row in kept]
        value = _share_of_run(kept, right)
        found = Figure(value, len(seen), left)
        if value is None:
            return found
        return dataclasses.replace(found, ends=ends(counts(right), value, by_truth=False))
    value = _share_of_run(kept, seen)
    groups = {row["cluster"] for row in seen}
    if value is None or len(groups) == 1 < len({row["cluster"] for row in kept}):
        return Figure(None, n, excluded)
    of, tested = counts(kept), Figure(value, n, excluded, may_stand_alone=True)
    if metric == "ppi":
        return dataclasses.replace(tested, ends=ends(of, value, by_truth=False))
    solved = _rogan_gladen(kept, seen, value)
    if len(seen) == n:
        return Figure(None, n, excluded)
    weighted = len({row["w"] for row in seen}) > 1  # then the test is that of `ppi`
    start = value if weighted and solved is not None else solved
    own = ends(of, start, by_truth=not weighted)
    return dataclasses.replace(tested, value=solved, ends=own)


def _share_of_run(kept: Sequence[Row], seen: Sequence[Row]) -> float | None:
    """Return the share of replies with a true `y`, stratified by the judge's label.

    Each label weighs as often as the judge gave it among all replies. None if no reply with one
    of the labels was reviewed.
    """
    seen = [row for row in seen if row["y"] is not None]
    found = 0.0
    if not seen:
        return None
    for label in (True, False):
        of_all = [row for row in kept if row["f"] is label]
        own = [row for row in seen if row["f"] is label]
        if of_all and not own:
            return None
        if own:
            positive = math.fsum(row["w"] for row in own if row["y"])
            share = positive / math.fsum(row["w"] for row in own)
            found += len(of_all) / len(kept) * share
    return found


def _rogan_gladen(kept: Sequence[Row], seen: Sequence[Row], ppi: float) -> float | None:
    """Correct the judge's rate among unreviewed replies for its sensitivity and specificity."""
    rest = [row for row in kept if row["y"] is None]
    if not rest:
        return None
    positive = [row for row in seen if row["y"]]
    negative = [row for row in seen if not row["y"]]
    if len({row["w"] for row in seen}) > 1:
        true = _share_of_run(kept, seen) or 0.0
        both = _share_of_run(kept, [{**row, "y": row["y"] and row["f"]} for row in seen]) or 0.0
        neither = [{**row, "y": not row["y"] and not row["f"]} for row in seen]
        right = _share_of_run(kept, neither) or 0.0
        sensitivity = both / true if true else 0.0
        specificity = right / (1 - true) if true < 1 else 0.0
        return ppi if sensitivity + specificity > 1 + intervals.CLOSE else None
    if not positive or not negative:
        return None
    rate = sum(row["f"] for row in rest) / len(rest)
    sensitivity = sum(row["f"] for row in positive) / len(positive)
    specificity = sum(not row["f"] for row in negative) / len(negative)
    better = sensitivity + specificity - 1
    return (
        min(1.0, max(0.0, (rate + specificity - 1) / better)) if better > intervals.CLOSE else None
    )
