"""Recompute rates corrected by a human review, and join the table of people's answers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genprobe import files
from genprobe.errors import InputError
from genprobe.files import cells
from genprobe.records import Score
from genprobe.review import collect
from genprobe.runs.run import Run
from oracle import intervals
from oracle.answers import no_reply
from oracle.figures import Figure, Units, cluster, counted, in_cell, mean_of
from oracle.rows import Row
from oracle.stories import FEWEST, not_told, templates

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
    """The answers of a review: (request, question) -> answers by reviewer, and the weight."""

    def __init__(self, run: Run, rows: Sequence[Row], table: Path) -> None:
        words: dict[Any, str] = {True: "yes", False: "no"}
        self.rows = [
            {**row, "refusal": words.get(row.get("refused"))}
            for row in rows
            if row.get("decode", "free") == "free"
        ]
        items: dict[tuple[str, str], list[Any]] = {}
        for row in collect.read_table(table):
            mine = row["item"] == collect.item_id(run.spec.hash, row["request"])
            if mine and not row["repeat"]:
                items.setdefault((row["request"], row["question"]), []).append(row)
        self._said = {
            key: ({row["reviewer"]: row["answer"] for row in said}, float(said[0]["weight"]))
            for key, said in items.items()
        }

    def figure(self, score: Score, rows: Sequence[Row]) -> Figure | str:
        """Return the recomputed figure of a stored score, or why there is none."""
        by = {k: v for k, v in score.by.items() if k not in ("rate", "judge", "reviewed")}
        every, rows = rows, in_cell(rows, by)
        if score.metric.startswith("says "):
            return self._confusion(score, rows)
        rate = str(score.by["rate"])
        if score.metric == "by-people":
            return self._by_people(rate, rows, every)
        if score.metric not in ("measured", "ppi", "ppi-over-wordings", "judge-accuracy"):
            return "--recompute does not know this figure"
        of_templates = rate.removeprefix("llm_") in QUESTIONS
        collect_ = self._templates if of_templates else self._replies
        kept, excluded = collect_(rate, rows)
        doubt = _doubt(collect_(rate, every)[0])
        return _corrected(score.metric, kept, excluded, of_templates, doubt)

    def _by_people(self, rate: str, rows: Sequence[Row], every: Sequence[Row]) -> Figure:
        """Compute a weighted rate from people's labels alone, without any judge."""

        def kept_of(rows: Sequence[Row]) -> tuple[list[Row], dict[str, int]]:
            read = [{**row, "read": "read"} for row in rows]
            if rate in QUESTIONS:
                return self._templates(rate, read, "read")
            kept, why = [], []
            for row in read:
                why.append(not_told({**row, "by_sentiment": "read"}))
                if not why[-1]:
                    felt, shown = (self._read(row, q, "negative") for q in QUESTIONS.values())
                    known = felt["y"] is not None and shown["y"] is not None
                    true = felt["y"] != shown["y"] if known else None
                    split = felt["split"] or shown["split"]
                    kept.append({**felt, "f": False, "y": true, "split": split, "of": 0})
            return kept, counted(why)

        kept, excluded = kept_of(rows)
        doubt = _doubt(kept_of(every)[0])
        found = _corrected("ppi", kept, excluded, rate in QUESTIONS, doubt)
        seen = _corrected("judge-accuracy", kept, excluded, rate in QUESTIONS, doubt)
        return dataclasses.replace(found, n=seen.n, excluded=seen.excluded)

    def _read(self, row: Row, question: str, wanted: Any) -> Row:
        """Return what people say of a reply: `y`, `split`, weight `w`, and the votes `for`, `of`.

        The adjudicator decides, else the majority; votes are those of the others.
        """
        said, weight = self._said.get((row["request"], question), ({}, 1.0))
        votes = [answer == wanted for name, answer in said.items() if name != ADJUDICATOR]
        last = [said[ADJUDICATOR] == wanted] if ADJUDICATOR in said else votes
        split = bool(last) and 2 * sum(last) == len(last)
        return {
            "y": None if split or not last else 2 * sum(last) > len(last),
            "split": split,
            "w": weight,
            "for": sum(votes),
            "of": len(votes),
            "cluster": cluster(row),
            "wording": row.get("wording"),
            "said": said,
        }

    def _replies(self, rate: str, rows: Sequence[Row]) -> tuple[list[Row], dict[str, int]]:
        """Collect the judge's and the reviewers' labels of each reply that a rate counts."""
        says = rate.endswith(" of all")
        column, positive = ("answer", "") if says else tuple(rate.rsplit(" ", 1))
        question = column.removeprefix("llm_")
        if says:
            rows = [row for row in rows if row["measures"] == rate.removesuffix(" of all")]
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
                kept.append({"f": value == wanted, **self._read(row, question, wanted)})
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
            said = [self._read(row, question, "negative") for row in count]
            known = [one for one in said if one["y"] is not None]
            whole = len(known) == len(count)
            negative = sum(row["by_sentiment"] == "negative" for row in count)
            # What each reviewer who read all its stories says of the template.
            names = {n for one in said for n in one["said"] if n != ADJUDICATOR}
            votes = [
                2 * sum(one["said"][name] == "negative" for one in said) > len(said)
                for name in names
                if all(name in one["said"] for one in said)
            ]
            kept.append(
                {
                    "f": 2 * negative > len(count),
                    "y": 2 * sum(one["y"] for one in known) > len(count) if whole else None,
                    "w": known[0]["w"] if known else 1.0,
                    "cluster": cluster(stories[0]),
                    "part": any(one["y"] is not None or one["split"] for one in said) and not whole,
                    "for": sum(votes),
                    "of": len(votes),
                    "wording": None,
                    "split": False,
                }
            )
        return kept, counted(why)

    def _confusion(self, score: Score, rows: Sequence[Row]) -> Figure:
        """Compute how often the judge gives a label to replies with the cell's true label.

        A reply counts with the weight of its draw.
        """
        judge, wanted = str(score.by["judge"]), score.metric.removeprefix("says ")
        question = judge.removeprefix("llm_")
        units: Units = []
        for row in rows:
            said, weight = self._said.get((row.get("request", ""), question), ({}, 1.0))
            told = {**row, "by_sentiment": row.get(judge)}
            if judge == "llm_regard" and row.get(judge) == "unclear":
                told["by_sentiment"] = None
            out = question in QUESTIONS.values() and not_told(told)
            if _label(said) == score.by["reviewed"] and row.get(judge) is not None and not out:
                units.append((cluster(row), (float(row[judge] == wanted) * weight, weight)))
        return mean_of(units, {})


def _label(said: dict[str, str]) -> str | None:
    """Return the adjudicator's label, else the majority label of the reviewers, else None."""
    if not said or ADJUDICATOR in said:
        return said.get(ADJUDICATOR)
    answer, most = Counter(said.values()).most_common(1)[0]
    return answer if 2 * most > len(said) else None


def _doubt(kept: Sequence[Row]) -> float:
    """Return how often a label of people is wrong, if their disagreements are errors.

    Two people differ with probability 2 e (1 - e), which gives e; a majority is wrong with the odds
    of its lead over the others.
    """
    read = [row for row in kept if row["of"]]
    pairs = [row for row in read if row["of"] > 1]
    if not pairs:
        return 0.0
    total = math.fsum(row["w"] for row in pairs)
    differ = 0.0
    for row in pairs:
        votes = [True] * row["for"] + [False] * (row["of"] - row["for"])
        unlike = [a != b for a, b in itertools.combinations(votes, 2)]
        differ += row["w"] / total * sum(unlike) / len(unlike)
    if differ >= 0.5:
        return 0.5
    e = (1 - math.sqrt(1 - 2 * differ)) / 2
    sure = [row for row in read if 2 * row["for"] != row["of"]]
    if not sure:
        return 0.5
    wrong = 0.0
    for row in sure:
        lead = abs(2 * row["for"] - row["of"])
        wrong += row["w"] * e**lead / (e**lead + (1 - e) ** lead)
    return wrong / math.fsum(row["w"] for row in sure)


def _corrected(
    metric: str, kept: Sequence[Row], excluded: dict[str, int], of_templates: bool, doubt: float
) -> Figure:
    n = len(kept)
    if metric == "measured":
        units: Units = [(row["cluster"], (float(row["f"]), 1.0)) for row in kept]
        return mean_of(units, excluded, scale=None)
    seen = [row for row in kept if row["y"] is not None]
    if metric == "judge-accuracy":
        part = sum(bool(row.get("part")) for row in kept) if of_templates else 0
        split = 0 if of_templates else sum(row["split"] for row in kept)
        unread = {"reviewed in part": part, "split": split, "not reviewed": n - len(seen)}
        unread["not reviewed"] -= part + split
        left = excluded | {why: many for why, many in unread.items() if many}
        right = [{**row, "y": None if row["y"] is None else row["f"] == row["y"]} for row in kept]
        value = _share_of_run(kept, right)
        found = Figure(value, len(seen), left)
        return dataclasses.replace(found, ends=_joint(right, 0.0, errors=False)) if seen else found
    over = metric == "ppi-over-wordings"
    value = _share_of_run(kept, seen, over)
    groups = {row["cluster"] for row in seen}
    if value is None or len(groups) == 1 < len({row["cluster"] for row in kept}):
        return Figure(None, n, excluded)
    return Figure(value, n, excluded, ends=_joint(kept, doubt, over))


_DRAWN = 4000
_OFF = 0.012  # error of a chance among so many draws, and among those of the stored end


def _joint(
    kept: Sequence[Row], doubt: float, over: bool = False, errors: bool = True
) -> intervals.Ends:
    """Make the check of the interval of a corrected rate (`review.correction`).

    Its parts are drawn again, with other random numbers, in the order of the records. A stored end
    must lie where its chance is right up to the error of both, or be the rate itself.
    """

    def differs(_: Sequence[intervals.Sums], stored: intervals.Interval | None) -> str:
        if stored is None:
            return "no interval is stored, and the records give one"
        value, right = _share_of_run(kept, kept, over), []
        assert value is not None
        for end, out in zip(stored, (-1, 1), strict=True):
            settled = [{**row, "y": out > 0 if row["split"] else row["y"]} for row in kept]
            near, far = out * value, out * value
            for wrong in {0.0, doubt}:
                for drawn in _rates(settled, out, wrong, over, errors) if wrong < 0.5 else ():
                    ends = np.quantile(out * np.clip(drawn, 0, 1), [0.975 - _OFF, 0.975 + _OFF])
                    near, far = max(near, float(ends[0])), max(far, float(ends[1]))
                if wrong >= 0.5:
                    near = far = (1 + out) / 2 * out
            right.append(near - 2e-3 <= out * end <= far + 2e-3)
        return intervals.wrong(stored, right)

    return differs


def _rates(
    kept: Sequence[Row], out: int, wrong: float, over: bool, errors: bool
) -> list[np.ndarray]:
    """Draw the rate, for statements like these and, with `over`, for wordings like these, too."""
    rng = np.random.default_rng(13)
    names = sorted({row["cluster"] for row in kept})
    at = np.array([names.index(row["cluster"]) for row in kept])
    f = np.array([row["f"] for row in kept], float)
    seen = np.array([row["y"] is not None for row in kept])
    y = np.array([float(bool(row["y"])) for row in kept])
    w = np.array([row["w"] if row["y"] is not None else 0.0 for row in kept])
    anchor = 0.5 + out / 4

    def shares(
        tables: Sequence[tuple[np.ndarray, np.ndarray]], sizes: Sequence[float]
    ) -> list[np.ndarray]:
        """Draw shares of hits under the same weights of statements; anchors have these sizes."""
        weights, found = rng.exponential(size=(_DRAWN, len(names))), []
        for table, size in zip(tables, sizes, strict=True):
            one, zero = (size * rng.gamma(shape, size=_DRAWN) for shape in (anchor, 1 - anchor))
            k, n = (weights @ np.bincount(at, part, len(names)) for part in table)
            found.append((k + one) / (n + one + zero))
        return found

    def squares(sizes: np.ndarray) -> float:
        return float((sizes**2).sum() / sizes.sum())

    usual = squares(np.bincount(at, minlength=len(names)))
    q = _called(kept, over)
    several = bool((seen & (f == 1)).any() and (seen & (f == 0)).any())
    own = [w * f, w * (1 - f)] if several else [w]
    anchors = [squares(np.bincount(at, part, len(names))) for part in own]
    if several:  # between the size of a statement and that of a reply
        anchors = [
            math.sqrt(size * squares(part[part > 0]))
            for size, part in zip(anchors, own, strict=True)
        ]
    parts = shares([(part * y, part) for part in own], anchors)
    parts = parts if several else parts * 2
    a, b = (np.clip((part - wrong) / (1 - 2 * wrong), 0, 1) for part in parts)
    here = q * a + (1 - q) * b
    t, slope = float(here.mean()), float((a - b).mean())
    wordings = sorted({str(row["wording"]) for row in kept}) if over else []
    lone = usual / len(kept) + (1 / len(wordings) if over else 0.0)
    if errors:
        shown = q * (1 - q) * slope / (t * (1 - t))
        slope = 1 / max(shown, 0.1) if several else 0.0
    moves = [shares([(f, np.ones(len(f)))], [usual])[0] - float(f.mean())]
    if over:
        of = np.array([wordings.index(str(row["wording"])) for row in kept])
        shape = len(names), len(wordings)
        hits, sizes = np.zeros(shape), np.zeros(shape)
        np.add.at(hits, (at, of), f)
        np.add.at(sizes, (at, of), 1.0)
        drawn, weights = (
            rng.exponential(size=(_DRAWN, shape[0])),
            rng.exponential(size=(_DRAWN, shape[1])),
        )
        one, zero = rng.gamma(0.5, size=(2, _DRAWN))
        rates = (drawn @ hits) / (drawn @ sizes)
        means = ((weights * rates).sum(1) + one) / (weights.sum(1) + one + zero)
        moves.append(means - q)
    most = math.sqrt(t * (1 - t) * lone)
    return [here + min(slope, most / max(float(m.std()), 1e-12)) * m for m in moves]


def _called(kept: Sequence[Row], over: bool) -> float:
    """Return the share that the judge calls positive; `over` lets each wording weigh alike."""
    if not over:
        return sum(row["f"] for row in kept) / len(kept)
    rates = []
    for wording in sorted({str(row["wording"]) for row in kept}):
        own = [row["f"] for row in kept if str(row["wording"]) == wording]
        rates.append(sum(own) / len(own))
    return math.fsum(rates) / len(rates)


def _share_of_run(kept: Sequence[Row], seen: Sequence[Row], over: bool = False) -> float | None:
    """Return the share of replies with a true `y`, stratified by the judge's label.

    Each label weighs as often as the judge gave it among all replies. None if no reply with one
    of the labels was reviewed.
    """
    seen = [row for row in seen if row["y"] is not None]
    found, called = 0.0, _called(kept, over) if kept else 0.0
    if not seen:
        return None
    for label, part in ((True, called), (False, 1 - called)):
        own = [row for row in seen if row["f"] is label]
        if any(row["f"] is label for row in kept) and not own:
            return None
        if own:
            positive = math.fsum(row["w"] for row in own if row["y"])
            found += part * positive / math.fsum(row["w"] for row in own)
    return found
