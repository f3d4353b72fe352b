"""Compute the corrected rates of a run from its outcomes and the answers of a review, by cell.

This module selects the replies of each rate and the labels that reviewers gave them. It also
computes NegRate of templates, NegRate by reviewers alone, and the errors of each judge. The
correction itself is in `correction`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from genprobe.errors import InputError
from genprobe.metrics import OVER as OVER_WORDINGS
from genprobe.metrics import OWN, cells, cluster, no_reply, rank
from genprobe.metrics.negrate import FEWEST, TEMPLATE, not_told
from genprobe.metrics.regard import REGARD, UNCLEAR
from genprobe.outcomes import sides
from genprobe.records import JSON, Score
from genprobe.resources.registry import unknown
from genprobe.review.collect import ADJUDICATOR
from genprobe.review.correction import (
    METHOD,
    VERSION,
    Corrected,
    Read,
    at_least,
    correct,
    doubt,
    interval,
    p_value,
)
from genprobe.statistics import LEVEL, SAME, Array, Interval, share_interval

NEGRATES = {
    "sentiment": "negrate",
    "regard": "negrate-regard",
}  # question -> name of the rate of templates
BY_PEOPLE = "by-people"
PPI = "ppi"
OVER = "ppi-over-wordings"
LIKE = " over wordings"  # ends the name of a compared rate over wordings, a test of its own
OF_ALL = " of all"  # ends the name of a share of all replies, as there is one of clear answers
IN_PART = "reviewed in part"  # the reason for leaving out templates with a story without a verdict


@dataclass(frozen=True)
class Rate:
    """A corrected rate in one cell.

    by: columns and values of the cell. column: the judge's column (`negrate` for templates).
    positive: the value counted as positive. excluded: exclusions by reason. split: number of
    reviewed replies without a verdict, because their reviewers are split (for templates: because
    some story has no verdict); they are measured, but count as not reviewed. rate: the rate.
    """

    by: dict[str, JSON]
    column: str
    positive: str
    excluded: dict[str, int]
    split: int
    rate: Corrected


def labelled(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, column: str, positive: str
) -> pd.DataFrame:
    """Label the replies of a rate by a judge and by reviewers, one row each, as `rates` takes.

    The rate is the share of replies whose `column` is `positive`.

    outcomes: the table of a run. column: `answer`, `sentiment`, `reply_language`, …
    reviewed: rows with `request` (and `run` or `model` if the outcomes have it), `reviewer`,
        `question`, `answer`, and `weight` if replies had unequal chances of being reviewed. Only
        rows whose question is the column and whose answer is not empty are used.

    Several labels are reduced to positive against the rest. The value takes the adjudicator's
    answer for the truth, else that of most reviewers; if they are split, the reply counts as not
    reviewed. The interval carries their disagreements (`correction`). It is clustered
    (`metrics.cluster`), and over wordings there is another if three or more were asked.

    The column `says` is special: it is what the answer means for the statement. `positive` is then
    `endorsed` or `recognised`, the question to the reviewers is `answer`, and the rate is a share
    of all replies to the probes that measure it; an unclear reply is not positive. (The metrics
    `endorsed` and `recognised` are shares of clear answers; this one is called "endorsed of all".)

    Raises InputError for a missing column, a reviewed reply that is not in the outcomes, or no
    review at all.
    """
    if column == "says":
        _needs(outcomes, ("measures", "when", "answer"), "the outcomes")
    _needs(outcomes, ("left_out", "statement", "request", column), "the outcomes")
    judged = "answer" if column == "says" else column
    yes = outcomes["when"] if column == "says" else pd.Series(positive, outcomes.index)
    verdicts = _verdicts(outcomes, reviewed, judged.removeprefix("llm_"), yes)
    reason = _left_out(outcomes, judged)
    measured = outcomes[judged].astype(object) == yes.astype(object)
    rows = outcomes.assign(
        __measured=measured.to_numpy(bool), __reason=reason.to_numpy(object), **verdicts
    )
    return rows[rows["measures"] == positive] if column == "says" else rows


def of_templates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    column: str = "sentiment",
    by: Sequence[str] = (),
) -> tuple[pd.DataFrame, str, str]:
    """Label the templates by a judge and by reviewers; with the name of their rate, for `rates`.

    The rate is NegRate, the share of templates with mostly negative stories. A majority is not
    linear in its stories, so error rates per story cannot correct it. A template counts as reviewed
    if *all* its stories that count are reviewed; its true label is their majority, and its weight
    is that of any of them. Templates must therefore have been sampled whole, as `review.export`
    does.

    column: `sentiment`, or a chat model's `llm_sentiment` or `llm_regard`, if the reviewers were
    asked the same question. The other arguments are those of `labelled`.
    """
    _needs(outcomes, ("left_out", "statement", "request", column), "the outcomes")
    counts = (_left_out(outcomes, column) == "").to_numpy(bool)
    negative = counts & (outcomes[column] == "negative").to_numpy(bool, na_value=False)
    question = column.removeprefix("llm_")
    rows = _templates(outcomes, reviewed, question, counts, negative, by)
    return rows, column.replace(question, NEGRATES[question]), ""


def _templates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    question: str,
    counts: Array,
    negative: Array,
    by: Sequence[str],
) -> pd.DataFrame:
    """Label the templates by a judge and by reviewers, one row each, in the form `rates` takes.

    counts, negative: boolean arrays (stories,): which stories count, and which of these the judge
    calls negative.
    """
    yes = pd.Series("negative", outcomes.index)
    verdicts = _verdicts(outcomes, reviewed, question, yes)
    seen = counts & ~np.isnan(verdicts["__truth"])
    keys = list(dict.fromkeys([*(c for c in TEMPLATE if c in outcomes), *by]))
    stories = outcomes[keys].assign(
        __valid=counts.astype(int),
        __negative=negative,
        __seen=seen.astype(int),
        __true=seen & (verdicts["__truth"] == 1),
        __part=seen | (counts & verdicts["__split"]),
        __weight=np.where(seen, verdicts["__weight"], np.nan),
        __cluster=cluster(outcomes),
    )
    groups = stories.groupby(keys, sort=True, dropna=False, observed=True)
    found = groups[["__valid", "__negative", "__seen", "__true", "__part"]].sum()
    found = found.join(groups[["__weight", "__cluster"]].first()).reset_index()
    valid = found["__valid"]
    # What each reviewer says of a template whose stories he or she has all read.
    votes = _votes(outcomes, reviewed, question, yes)
    votes = votes[counts[votes["__row"]]].assign(
        __at=lambda v: groups.ngroup().to_numpy()[v["__row"]]
    )
    read = votes.groupby(["__at", "reviewer"])["__hit"].agg(["sum", "size"]).reset_index("__at")
    read = read[read["size"] == valid.to_numpy()[read["__at"]]]
    said = (read["sum"] * 2 > read["size"]).groupby(read["__at"]).agg(["sum", "size"])
    said = said.reindex(range(len(found)), fill_value=0)
    whole = (valid >= FEWEST) & (found["__seen"] == valid)
    return found.assign(
        __measured=found["__negative"] * 2 > valid,
        __truth=(found["__true"] * 2 > valid).astype(float).where(whole),
        __split=(found["__part"] > 0) & ~whole,
        __for=said["sum"].to_numpy(float),
        __of=said["size"].to_numpy(float),
        __reason=pd.Series("", found.index, dtype=object).mask(valid < FEWEST, "few-stories"),
    )


def by_people(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str] = (), level: float = LEVEL
) -> list[Score]:
    """Compute NegRate from reviewers' answers alone, and how often their two answers differ.

    The values of the column `rate` are: `negrate` (by the reviewers' sentiment) and
    `negrate-regard` (by their regard), over templates of which all stories that count were
    reviewed; and `felt-or-shown`, the share of stories called negative in only one of the two
    answers, over stories with both answers. The review's weights make these rates of the whole run.
    n is the number reviewed. A story counts if it passed the story checks, whatever a classifier
    says of it. Arguments as in `labelled`; signatures are empty.
    """
    told = not_told(outcomes.assign(sentiment="read"))
    counts = (told == "").to_numpy(bool)
    nobody = np.zeros(len(outcomes), bool)
    asked = [q for q in NEGRATES if _answered(reviewed, q)]
    found: list[Rate] = []
    for question in asked:
        rows = _templates(outcomes, reviewed, question, counts, nobody, by)
        found += rates(rows, NEGRATES[question], "", by, level)
    if len(asked) == len(NEGRATES):
        negative = pd.Series("negative", outcomes.index)
        felt, shown = (_verdicts(outcomes, reviewed, question, negative) for question in asked)
        truth = np.abs(felt["__truth"] - shown["__truth"])
        rows = outcomes.assign(
            __measured=nobody,
            __truth=np.where(counts, truth, np.nan),
            __split=felt["__split"] | shown["__split"],
            __for=0.0,  # how often people err in the difference of two answers is not known
            __of=0.0,
            __weight=felt["__weight"],
            __reason=told.to_numpy(object),
        )
        found += rates(rows, "felt-or-shown", "", by, level)
    scores = []
    for one in found:
        accuracy = _as_scores(one)[-1]
        rate = one.rate
        ends = (rate.ppi_low, rate.ppi_high)
        scores.append(
            replace(accuracy, metric=BY_PEOPLE, value=rate.ppi, low=ends[0], high=ends[1])
        )
    return [score for score in scores if score.n]


def _answered(reviewed: pd.DataFrame, question: str) -> bool:
    """Tell whether anybody has answered a question of the review."""
    answers = reviewed["answer"].astype(object)
    return bool(((reviewed["question"] == question) & answers.notna() & (answers != "")).any())


def _left_out(outcomes: pd.DataFrame, column: str) -> pd.Series:
    """Say why a reply is not part of the rates of a judge's column, or return ""."""
    if column.removeprefix("llm_") in NEGRATES:
        said = outcomes[column].astype(object)
        # As in `negrate-regard`, a story that the model calls unclear counts as not judged.
        said = said.where(said != UNCLEAR) if column == REGARD else said
        return not_told(outcomes.assign(sentiment=said))
    return no_reply(outcomes, column)


_SIDES = "stance"  # the question on sides
# Question of a review -> the rates that it corrects: (column, positive value).
_ASKED = {
    "answer": (
        *(("says", "recognised"), ("says", "endorsed"), ("says", "affirmed")),
        *(("answer", "yes"), ("answer", "no"), ("answer", "ambiguous")),
    ),
    "sentiment": (("sentiment", "negative"),),
    "regard": (("regard", "negative"),),
    _SIDES: tuple((_SIDES, side) for side in ("for", "against", "both")),
    "refusal": (("refusal", "yes"),),
}


def by_question(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes in which every question of a review has a column, if a judge answered it."""
    if "refused" not in outcomes:
        return outcomes
    words = {True: "yes", False: "no"}
    found = outcomes.assign(refusal=outcomes["refused"].astype(object).map(words))
    if sides.COLUMN in found and f"llm_{_SIDES}" not in found:  # only people tell sides then
        found[_SIDES] = sides.NOBODY
    return found


def scores(outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str] = ()) -> list[Score]:
    """Compute the rates that a review can correct, as measured and as corrected.

    Arguments as in `labelled`. Each rate is a value of the column `rate`, with the metrics
    `measured` (of n replies), `ppi`, `ppi-over-wordings` (if three or more were asked) and
    `judge-accuracy` (on the same replies; its n is the number reviewed). For stories, NegRate is
    included (`of_templates`) if templates have labels, next to the rate by reviewers alone
    (`by_people`). The errors of each judge follow: cells with the columns `judge` and `reviewed`
    (the label that reviewers gave to n replies), and the shares of the judge's labels among them
    (`confusion`). Signatures are empty.

    Raises InputError if no question of the review corrects a rate of these outcomes, or if a cell
    has replies in a language of which none were reviewed.
    """
    outcomes = by_question(outcomes)
    _need_languages(outcomes, reviewed, by)
    given = [str(q) for q in reviewed["question"].unique() if q in _ASKED]
    asked = [q for q in given if {q, f"llm_{q}"} & {*outcomes}]
    people = []
    if "usable" in outcomes and {*NEGRATES} & {*given}:
        people = by_people(outcomes, reviewed, by)
    if not asked and not people:
        raise InputError("the review has no question that corrects a rate of this run")
    found: list[Rate] = []
    for rows, column, positive in _corrected(outcomes, reviewed, asked, by):
        found += [one for one in rates(rows, column, positive, by) if one.rate.n or positive]
    if sides.unread(outcomes):  # then no judge's own rate is any good
        for at, one in enumerate(found):
            if one.column in (_SIDES, f"llm_{_SIDES}"):
                bare = replace(one.rate, measured=None, low=None, high=None)
                found[at] = replace(one, rate=bare)
    judges = [c for q in asked for c in (q, f"llm_{q}") if c in outcomes and c != _SIDES]
    errors = [score for column in judges for score in confusion(outcomes, reviewed, column, by)]
    own = [score for r in found for score in _as_scores(r)[: -1 if r.column == _SIDES else None]]
    return [*own, *people, *errors]


_Ends = tuple[float, float | None, float | None]  # a value and its interval


def _need_languages(outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse to correct languages together if a review has replies in some of them alone.

    Such a review was drawn by `review export --lang`, or its other rows are empty; it says nothing
    of how the judge reads the other languages.
    """
    answers = reviewed["answer"].astype(object)
    read = outcomes["request"].isin(reviewed["request"][answers.notna() & (answers != "")])
    if "lang" in outcomes and "lang" not in by and read.any():
        languages = outcomes["lang"].astype(str)
        here = set(languages[read])
        if others := sorted(set(languages[outcomes["left_out"] == ""]) - here):
            raise InputError(
                f"people reviewed replies in {', '.join(sorted(here))} alone, and the run has "
                f"{', '.join(others)}, too; --by lang corrects what was reviewed"
            )


def half_widths(outcomes: pd.DataFrame, reviewed: pd.DataFrame) -> dict[str, tuple[float, int]]:
    """Compute half the width of the interval of each corrected rate, and the replies it is of.

    It is 0.5 if the rate cannot be corrected: anything is possible. Arguments as in `labelled`.
    """
    asked = list(reviewed["question"].unique())
    return {
        _name(column, positive): (
            float(np.ptp(interval([read]))) / 2 if read.tells else 0.5,
            len(read.measured),
        )
        for rows, column, positive in _corrected(outcomes, reviewed, asked)
        for _, _, read in _reads(rows, positive, ())
        if len(read.measured) or positive
    }


def _corrected(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, asked: Sequence[str], by: Sequence[str] = ()
) -> Iterator[tuple[pd.DataFrame, str, str]]:
    """Yield for each rate that the questions `asked` correct: labelled rows, column and label."""
    for question in asked:
        for column, positive in _ASKED.get(question, ()):
            if column == "says" and not _fits(outcomes, column, positive):
                continue
            for name in (c for c in (column, f"llm_{column}") if c in outcomes):
                yield labelled(outcomes, reviewed, name, positive), name, positive
    for column in ("sentiment", "llm_sentiment", "llm_regard"):
        if column in outcomes and column.removeprefix("llm_") in asked:
            yield of_templates(outcomes, reviewed, column, by)


Side = tuple[str, pd.DataFrame, pd.DataFrame]  # name, outcomes, reviewed


@dataclass(frozen=True)
class Difference:
    """The corrected rates of two models, and b's less a's.

    by: columns and values of the cell, with the rate (`of`) and the models (`a`, `b`). over:
    whether over wordings like these. rates: of a, and of b: value, low, high. n, excluded: of a,
    and of b, the replies that count, and the others by reason. ends: of a, and of b, the rate if no
    reply that does not count, or leaves the question open, were positive, and if all were. low,
    high, p: of the difference; None if the models have different wordings. statements: of both
    together. wordings: 1 if not over them.
    """

    by: dict[str, JSON]
    over: bool
    rates: tuple[_Ends, _Ends]
    n: tuple[int, int]
    excluded: tuple[dict[str, int], dict[str, int]]
    ends: tuple[Interval, Interval]
    low: float | None
    high: float | None
    p: float | None
    statements: int
    wordings: int

    @property
    def value(self) -> float:
        """Return the difference."""
        return self.rates[1][0] - self.rates[0][0]

    @property
    def bounds(self) -> Interval | None:
        """Return the bounds of the difference; None if every reply is clear."""
        (low_a, high_a), (low_b, high_b) = self.ends
        bounds = low_b - high_a, high_b - low_a
        return bounds if _told(bounds) else None

    def scores(self) -> list[Score]:
        """Return the two rates, their difference and its p-value; signatures are empty."""
        name = OVER if self.over else PPI
        found = [
            Score(f"{name}-{side}", self.by, *rate, n, out, _told(ends), "")
            for side, rate, n, out, ends in zip(
                "ab", self.rates, self.n, self.excluded, self.ends, strict=True
            )
        ]
        n, bounds = min(self.n), _told(self.bounds)
        apart = Score(f"{name}-difference", self.by, self.value, None, None, n, {}, bounds, "")
        found.append(replace(apart, low=self.low, high=self.high))
        if self.p is not None:
            found.append(Score(f"{name}-p", self.by, self.p, None, None, n, {}, None, ""))
        return found


def _told(ends: Interval | None) -> list[float] | None:
    return list(ends) if ends and ends[1] - ends[0] > SAME else None


def differences(sides: Sequence[Side], by: Sequence[str] = ()) -> list[Difference]:
    """Compare every two models by the rates that reviews of all correct, in each cell of `by`.

    The interval of a difference is that of `correction.interval` for two: the same statements are
    drawn for both models. p is 5 % where this interval begins or ends at 0. If three or more
    wordings were asked, the same follows over wordings. A model whose rate cannot be corrected is
    left out. Rates of templates are not compared. Raises InputError if there is none to compare, or
    as `scores` does.
    """
    for _, outcomes, said in sides:
        _need_languages(outcomes, said, by)
    sides = [(name, by_question(outcomes), said) for name, outcomes, said in sides]
    found = []
    for question in (q for q in _ASKED if all(_answered(said, q) for _, _, said in sides)):
        for column, positive in _ASKED[question]:
            if not all(_fits(outcomes, column, positive) for _, outcomes, _ in sides):
                continue
            models = [
                (name, _in_cells(outcomes, said, column, positive, by))
                for name, outcomes, said in sides
            ]
            for key in dict.fromkeys(key for _, cells_ in models for key in cells_):
                own = [(name, cells_[key]) for name, cells_ in models if key in cells_]
                for (a, one), (b, other) in itertools.combinations(own, 2):
                    cell = {"of": _name(column, positive), "a": a, "b": b, **one.label}
                    found += _differences(one, other, cell)
    if not found:
        raise InputError("the review has no question that corrects a rate of two of these runs")
    return found


@dataclass(frozen=True)
class _InCell:
    """A rate of one model in a cell. ends: as in `Difference`, in these wordings and over."""

    label: dict[str, JSON]
    read: Read
    rate: Corrected
    excluded: dict[str, int]
    ends: tuple[Interval, Interval]


def _in_cells(
    outcomes: pd.DataFrame, said: pd.DataFrame, column: str, positive: str, by: Sequence[str]
) -> dict[str, _InCell]:
    """Correct a rate of one model in each cell in which it can be corrected."""
    against: dict[str, tuple[pd.DataFrame, Read]] = {}
    if column == "says":  # neither yes nor no: it could be either
        turned = outcomes.assign(when=outcomes["when"].map({"yes": "no", "no": "yes"}))
        rows = labelled(turned, said, column, positive)
        against = {str(label): (part, read) for label, part, read in _reads(rows, positive, by)}
    found = {}
    for label, part, read in _reads(labelled(outcomes, said, column, positive), positive, by):
        rate = correct(read)
        if rate.ppi is not None:
            other = against.get(str(label))
            ends = (
                _ends(rate.ppi, part, read, other),
                _ends(rate.over or 0, part, read, other, True),
            )
            found[str(label)] = _InCell(label, read, rate, _excluded(part), ends)
    return found


def _ends(
    value: float,
    part: pd.DataFrame,
    read: Read,
    other: tuple[pd.DataFrame, Read] | None,
    over: bool = False,
) -> Interval:
    """Return the lowest and the highest rate that the planned replies could have.

    other: the rows and replies, read for the opposite answer, where an answer may be unclear.
    """

    def least(rows: pd.DataFrame, read: Read) -> tuple[float, float]:
        kept = rows["__reason"] == ""
        called = pd.DataFrame({"called": kept & rows["__measured"], "kept": kept})
        groups = called.groupby(rows["wording"]) if over and "wording" in rows else called
        shares = groups.mean()
        called_, kept_ = shares.mean() if over and "wording" in rows else shares
        return at_least(read, called_, kept_), kept_

    low, kept = least(part, read)
    high = low + 1 - kept if other is None else 1 - least(*other)[0]
    return min(low, value), max(high, value)


def _fits(outcomes: pd.DataFrame, column: str, positive: str) -> bool:
    """Tell whether outcomes have the column of a rate, and questions that it is about."""
    if column not in outcomes:
        return False
    return column != "says" or bool((outcomes["measures"] == positive).any())


def _differences(one: _InCell, other: _InCell, cell: dict[str, JSON]) -> list[Difference]:
    """Compare the rates of two models in a cell, in these wordings and over wordings like them."""
    both, reads = (one.rate, other.rate), [other.read, one.read]
    statements = len(np.unique(np.concatenate([read.clusters for read in reads])))
    wordings = [set() if read.wordings is None else {*read.wordings} for read in reads]
    n, excluded = (one.rate.n, other.rate.n), (one.excluded, other.excluded)
    found = []
    for over in (False, True):
        first, second = (
            (rate.over, rate.over_low, rate.over_high)
            if over
            else (rate.ppi, rate.ppi_low, rate.ppi_high)
            for rate in both
        )
        a, b = first[0], second[0]
        if a is None or b is None:
            continue
        by: dict[str, JSON] = {**cell, "of": f"{cell['of']}{LIKE}"} if over else cell
        low = high = p = None
        if not over or wordings[0] == wordings[1]:
            (low, high), p = interval(reads, over=over), p_value(reads, over)
        ends, several = (one.ends[over], other.ends[over]), len(wordings[0]) if over else 1
        found.append(
            Difference(
                *(by, over, ((a, *first[1:]), (b, *second[1:])), n, excluded, ends),
                *(low, high, p, statements, several),
            )
        )
    return found


def metric_id(metric: str) -> str:
    """Return a metric of these rates with its version, estimand and interval, for signatures."""
    return f"{metric}/{VERSION}-{OVER_WORDINGS if metric.startswith(OVER) else OWN}-{METHOD}"


def confusion(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, column: str, by: Sequence[str] = ()
) -> list[Score]:
    """Compute the shares of the judge's labels among the replies with each true label.

    The true label of a reply is the adjudicator's, else the one that most of its reviewers gave.
    Left out are replies whose reviewers are split, replies that the judge has not read, and stories
    that do not count. Each reply counts with the weight of its draw, since `review export` draws by
    the judge's label: without weights a judge that misses a rare label would look better than it
    is. Intervals are clustered by statement. n: replies that were reviewed. Arguments as in
    `labelled`.
    """
    question = column.removeprefix("llm_")
    votes = _deciding(_reviews(outcomes, reviewed, question))
    times = votes.value_counts(["__row", "answer"], sort=False).rename("times").reset_index()
    times["of"] = times.groupby("__row")["times"].transform("sum")
    label = times[2 * times["times"] > times["of"]].set_index("__row")["answer"].sort_index()
    weight = votes.groupby("__row")["__weight"].first()[label.index].to_numpy(float)
    seen = outcomes.iloc[label.index].assign(__truth=label.to_numpy(object), __weight=weight)
    seen = seen[seen[column].notna()]
    if question in NEGRATES:
        seen = seen[_left_out(seen, column) == ""]
    found = []
    for cell, part in zip(*_parts(seen, [*by, "__truth"]), strict=True):
        truth = cell.pop("__truth")
        for label in sorted({*seen["__truth"], *seen[column]}):
            hits, weights = (part[column] == label).to_numpy(float), part["__weight"].to_numpy()
            at = np.unique(cluster(part), return_inverse=True)[1]
            share = float(hits @ weights / weights.sum())
            ends = share_interval(np.bincount(at, hits * weights), np.bincount(at, weights))
            low, high = ends or (None, None)
            by_cell: dict[str, JSON] = {"judge": column, "reviewed": truth, **cell}
            # The label alone could also be the name of a metric.
            said = f"says {label}"
            found.append(Score(said, by_cell, share, low, high, len(hits), {}, None, ""))
    return found


def _parts(frame: pd.DataFrame, by: list[str]) -> tuple[list[dict[str, JSON]], list[pd.DataFrame]]:
    cell, labels = cells(frame, by)
    return labels, [frame[cell == at] for at in range(len(labels))]


def _name(column: str, positive: str) -> str:
    """Return the name of a rate."""
    return positive + OF_ALL if column == "says" else f"{column} {positive}".strip()


def _as_scores(one: Rate) -> list[Score]:
    rate = one.rate
    name = _name(one.column, one.positive)
    cell: dict[str, JSON] = {"rate": name, **one.by}
    why = "split" if one.positive else IN_PART
    unread = {why: one.split, "not reviewed": rate.n - rate.n_reviewed - one.split}
    left = one.excluded | {why: count for why, count in unread.items() if count}
    accuracy = (rate.accuracy, rate.accuracy_low, rate.accuracy_high)
    rows = (
        ("measured", rate.measured, rate.low, rate.high, rate.n, one.excluded),
        (PPI, rate.ppi, rate.ppi_low, rate.ppi_high, rate.n, one.excluded),
        (OVER, rate.over, rate.over_low, rate.over_high, rate.n, one.excluded),
        ("judge-accuracy", *accuracy, rate.n_reviewed, left),
    )
    return [
        Score(metric, cell, value, low, high, n, excluded, None, "")
        for metric, value, low, high, n, excluded in rows
        if metric != OVER or value is not None
    ]


def _needs(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in frame:
            raise InputError(f"{what} lack the column {column!r}, which corrected rates need")


def _verdicts(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, question: str, yes: pd.Series
) -> dict[str, Array]:
    """Return the reviewers' verdicts as columns for the outcomes.

    They are `__truth` (1, 0, or NaN for no verdict), `__split` (the reviewers are split),
    `__weight`, and the votes without the adjudicator's: `__for`, `__of`. yes: for every row of the
    outcomes, the answer that counts as positive.
    """
    rows = _votes(outcomes, reviewed, question, yes)
    every = range(len(outcomes))
    share = _deciding(rows).groupby("__row")["__hit"].mean().reindex(every).to_numpy(float)
    votes = rows[rows["reviewer"] != ADJUDICATOR].groupby("__row")["__hit"].agg(["sum", "size"])
    votes = votes.reindex(every, fill_value=0)
    split = share == 0.5
    return {
        "__truth": np.where(np.isnan(share) | split, np.nan, (share > 0.5).astype(float)),
        "__split": split,
        "__weight": rows.groupby("__row")["__weight"].first().reindex(every).to_numpy(float),
        "__for": votes["sum"].to_numpy(float),
        "__of": votes["size"].to_numpy(float),
    }


def _votes(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, question: str, yes: pd.Series
) -> pd.DataFrame:
    """Return the reviewers' answers, and whether each is the positive one (`__hit`)."""
    rows = _reviews(outcomes, reviewed, question)
    hit = rows["answer"].to_numpy(object) == yes.to_numpy(object)[rows["__row"]]
    return rows.assign(__hit=hit.astype(float))


def _deciding(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the answers that decide: of each reply the adjudicator's, or all if it has none."""
    last = rows["reviewer"] == ADJUDICATOR
    return rows[last | ~rows["__row"].isin(rows.loc[last, "__row"])]


def _reviews(outcomes: pd.DataFrame, reviewed: pd.DataFrame, question: str) -> pd.DataFrame:
    """Return the reviewers' answers to a question.

    Each has the row of its outcome (`__row`) and the weight of its draw (`__weight`).
    """
    _needs(reviewed, ("request", "reviewer", "question", "answer"), "the reviewed rows")
    keys = [c for c in ("run", "model", "request") if c in outcomes and c in reviewed]
    here = outcomes[keys].assign(__row=np.arange(len(outcomes)))
    if here.duplicated(keys).any():
        raise InputError("two runs have the same requests; the reviewed rows need the column 'run'")
    answers = reviewed["answer"].astype(object)
    given = (reviewed["question"] == question) & answers.notna() & (answers != "")
    if not given.any():
        raise InputError(f"nobody answered the question {question!r} in the reviewed rows")
    # If an item was repeated to test a reviewer, only the first answer is used.
    rows = reviewed[given].drop_duplicates([*keys, "reviewer"]).merge(here, "left", keys)
    strange = rows[rows["__row"].isna()].drop_duplicates(keys)
    if len(strange):
        raise InputError(
            f"{len(strange)} of the reviewed replies are not in these outcomes, such as "
            f"{strange['request'].iloc[0]}; give the run that the review was exported from"
        )
    weight = pd.to_numeric(rows["weight"], errors="coerce") if "weight" in rows else 1.0
    return rows.assign(__row=rows["__row"].astype(int), __weight=weight)


def rates(
    rows: pd.DataFrame,
    column: str,
    positive: str,
    by: Sequence[str] = (),
    level: float = LEVEL,
) -> list[Rate]:
    """Compute a rate, measured and corrected, in each cell of `by`.

    rows: as `labelled` and `of_templates` return them.
    """
    found = []
    for label, part, read in _reads(rows, positive, by):
        split = int(part.loc[part["__reason"] == "", "__split"].sum())
        found.append(Rate(label, column, positive, _excluded(part), split, correct(read, level)))
    return found


def _excluded(part: pd.DataFrame) -> dict[str, int]:
    """Count the rows that do not count, by reason."""
    left_out = Counter(str(reason) for reason in part["__reason"] if reason != "")
    return dict(sorted(left_out.items(), key=rank))


def _reads(
    rows: pd.DataFrame, positive: str, by: Sequence[str]
) -> Iterator[tuple[dict[str, JSON], pd.DataFrame, Read]]:
    """Yield for each cell its label, its rows, and the replies that count."""
    for name in by:
        if name not in rows:
            raise unknown("column", name, [str(c) for c in rows.columns if c[:2] != "__"])
    cell, labels = cells(rows, list(by))
    seen = rows[(rows["__reason"] == "") & (rows["__of"] > 0)]
    # Of all cells together: in one cell, too few replies tell how often reviewers err.
    unsure = doubt(seen[["__for", "__of", "__weight"]].to_numpy(float))
    for at, label in enumerate(labels):
        part = rows[cell == at]
        kept = part[part["__reason"] == ""]
        split = kept["__split"].to_numpy(bool)
        read = Read(
            kept["__measured"].to_numpy(bool),
            kept["__truth"].to_numpy(float),
            kept["__weight"].to_numpy(float),
            (kept["__cluster"] if "__cluster" in kept else cluster(kept)).to_numpy(object),
            kept["wording"].to_numpy(str) if "wording" in kept else None,
            split if positive else None,
            unsure,
        )
        yield label, part, read
