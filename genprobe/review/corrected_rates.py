"""Compute the corrected rates of a run from its outcomes and the answers of a review, by cell.

This module selects the replies of each rate and the labels that reviewers gave them. It also
computes NegRate of templates, NegRate by reviewers alone, and the errors of each judge. The
correction itself is in `correction`.
"""

from __future__ import annotations

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
    correct,
    doubt,
    interval,
    p_value,
)
from genprobe.statistics import LEVEL, Array, share_interval

NEGRATES = {
    "sentiment": "negrate",
    "regard": "negrate-regard",
}  # question -> name of the rate of templates
BY_PEOPLE = "by-people"
OVER = "ppi-over-wordings"
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


def rates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    column: str,
    positive: str,
    by: Sequence[str] = (),
    level: float = LEVEL,
) -> list[Rate]:
    """Compute the share of replies whose `column` is `positive`, measured and corrected, by cell.

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
    return _rates(_labelled(outcomes, reviewed, column, positive), column, positive, by, level)


def _labelled(
    outcomes: pd.DataFrame, reviewed: pd.DataFrame, column: str, positive: str
) -> pd.DataFrame:
    """Label the replies of a rate by a judge and by reviewers, one row each, as `_rates` takes."""
    if column == "says":
        _needs(outcomes, ("measures", "when", "answer"), "the outcomes")
    _needs(outcomes, ("status", "statement", "request", column), "the outcomes")
    judged = "answer" if column == "says" else column
    yes = outcomes["when"] if column == "says" else pd.Series(positive, outcomes.index)
    verdicts = _verdicts(outcomes, reviewed, judged.removeprefix("llm_"), yes)
    reason = _left_out(outcomes, judged)
    measured = outcomes[judged].astype(object) == yes.astype(object)
    rows = outcomes.assign(
        __measured=measured.to_numpy(bool), __reason=reason.to_numpy(object), **verdicts
    )
    return rows[rows["measures"] == positive] if column == "says" else rows


def template_rates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    column: str = "sentiment",
    by: Sequence[str] = (),
    level: float = LEVEL,
) -> list[Rate]:
    """Compute NegRate, measured and corrected: the share of templates with mostly negative stories.

    A majority is not linear in its stories, so error rates per story cannot correct it. A template
    counts as reviewed if *all* its stories that count are reviewed; its true label is their
    majority, and its weight is that of any of them. Templates must therefore have been sampled
    whole, as `review.export` does.

    column: `sentiment`, or a chat model's `llm_sentiment` or `llm_regard`, if the reviewers were
    asked the same question. The other arguments are those of `rates`.
    """
    _needs(outcomes, ("status", "statement", "request", column), "the outcomes")
    counts = (_left_out(outcomes, column) == "").to_numpy(bool)
    negative = counts & (outcomes[column] == "negative").to_numpy(bool, na_value=False)
    question = column.removeprefix("llm_")
    rows = _templates(outcomes, reviewed, question, counts, negative, by)
    return _rates(rows, column.replace(question, NEGRATES[question]), "", by, level)


def _templates(
    outcomes: pd.DataFrame,
    reviewed: pd.DataFrame,
    question: str,
    counts: Array,
    negative: Array,
    by: Sequence[str],
) -> pd.DataFrame:
    """Label the templates by a judge and by reviewers, one row each, in the form `_rates` takes.

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
    says of it. Arguments as in `rates`; signatures are empty.
    """
    told = not_told(outcomes.assign(sentiment="read"))
    counts = (told == "").to_numpy(bool)
    nobody = np.zeros(len(outcomes), bool)
    asked = [q for q in NEGRATES if _answered(reviewed, q)]
    found: list[Rate] = []
    for question in asked:
        rows = _templates(outcomes, reviewed, question, counts, nobody, by)
        found += _rates(rows, NEGRATES[question], "", by, level)
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
        found += _rates(rows, "felt-or-shown", "", by, level)
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


# Question of a review -> the rates that it corrects: (column, positive value).
_ASKED = {
    "answer": (
        *(("says", "recognised"), ("says", "endorsed"), ("says", "affirmed")),
        *(("answer", "yes"), ("answer", "no"), ("answer", "ambiguous")),
    ),
    "sentiment": (("sentiment", "negative"),),
    "regard": (("regard", "negative"),),
    "stance": (("stance", "for"), ("stance", "against"), ("stance", "both")),
    "refusal": (("refusal", "yes"),),
}


def by_question(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes in which every question of a review has a column, if a judge answered it."""
    if "refused" not in outcomes:
        return outcomes
    words = {True: "yes", False: "no"}
    return outcomes.assign(refusal=outcomes["refused"].astype(object).map(words))


def scores(outcomes: pd.DataFrame, reviewed: pd.DataFrame, by: Sequence[str] = ()) -> list[Score]:
    """Compute the rates that a review can correct, as measured and as corrected.

    Arguments as in `rates`. Each rate is a value of the column `rate`, with the metrics `measured`
    (of n replies), `ppi`, `ppi-over-wordings` (if three or more were asked) and `judge-accuracy`
    (on the same replies; its n is the number reviewed). For stories, NegRate is included
    (`template_rates`) if templates have labels, next to the rate by reviewers alone (`by_people`).
    The errors of each judge follow: cells with the columns `judge` and `reviewed` (the label that
    reviewers gave to n replies), and the shares of the judge's labels among them (`confusion`).
    Signatures are empty.

    Raises InputError if no question of the review corrects a rate of these outcomes.
    """
    outcomes = by_question(outcomes)
    given = [str(q) for q in reviewed["question"].unique() if q in _ASKED]
    asked = [q for q in given if {q, f"llm_{q}"} & {*outcomes}]
    people = []
    if "usable" in outcomes and {*NEGRATES} & {*given}:
        people = by_people(outcomes, reviewed, by)
    if not asked and not people:
        raise InputError("the review has no question that corrects a rate of this run")
    found: list[Rate] = []
    for question in asked:
        for column, positive in _ASKED[question]:
            if column == "says" and not _fits(outcomes, column, positive):
                continue
            if column in outcomes:
                found += rates(outcomes, reviewed, column, positive, by)
            if f"llm_{column}" in outcomes:
                found += rates(outcomes, reviewed, f"llm_{column}", positive, by)
    for column in ("sentiment", "llm_sentiment", "llm_regard"):
        if column in outcomes and column.removeprefix("llm_") in asked:
            labelled = template_rates(outcomes, reviewed, column, by)
            found += [rate for rate in labelled if rate.rate.n]
    if sides.unread(outcomes):  # then no judge's own rate is any good
        for at, one in enumerate(found):
            if one.column in (sides.WORDS, f"llm_{sides.WORDS}"):
                bare = replace(one.rate, measured=None, low=None, high=None)
                found[at] = replace(one, rate=bare)
    judges = [c for q in asked for c in (q, f"llm_{q}") if c in outcomes]
    errors = [score for column in judges for score in confusion(outcomes, reviewed, column, by)]
    return [*(score for rate in found for score in _as_scores(rate)), *people, *errors]


Side = tuple[str, pd.DataFrame, pd.DataFrame]  # name, outcomes, reviewed


def differences(a: Side, b: Side, by: Sequence[str] = ()) -> list[Score]:
    """Compare two models by the rates that reviews of both correct, in each cell of `by`.

    Returns for each rate `ppi-a`, `ppi-b` and `ppi-difference`, b less a, whose interval is that of
    `correction.interval` for two: the same statements are drawn for both models; and `ppi-p`, which
    is 5 % where this interval begins or ends at 0. The cells have the columns `of`, `a` and `b`. If
    three or more wordings were asked, the same follows over wordings (`ppi-over-wordings-a`, …).
    Rates of templates are not compared. Signatures are empty.
    """
    sides = [(name, by_question(outcomes), said) for name, outcomes, said in (a, b)]
    found = []
    for question in (q for q in _ASKED if all(_answered(said, q) for _, _, said in sides)):
        for column, positive in _ASKED[question]:
            if not all(_fits(outcomes, column, positive) for _, outcomes, _ in sides):
                continue
            rows = [_labelled(outcomes, said, column, positive) for _, outcomes, said in sides]
            cells_ = [
                {str(label): (label, read) for label, _, _, read in _reads(part, positive, by)}
                for part in rows
            ]
            for key in (key for key in cells_[0] if key in cells_[1]):
                (label, one), (_, other) = (part[key] for part in cells_)
                cell = {"of": _name(column, positive), "a": a[0], "b": b[0], **label}
                found += _difference(one, other, cell)
    if not found:
        raise InputError("the review has no question that corrects a rate of both runs")
    return found


def _fits(outcomes: pd.DataFrame, column: str, positive: str) -> bool:
    """Tell whether outcomes have the column of a rate, and questions that it is about."""
    if column not in outcomes:
        return False
    return column != "says" or bool((outcomes["measures"] == positive).any())


def _difference(a: Read, b: Read, cell: dict[str, JSON]) -> list[Score]:
    """Compare the corrected rates of two models; empty if one of them cannot be corrected."""
    both = [correct(read) for read in (a, b)]
    own = [(one.ppi, one.ppi_low, one.ppi_high) for one in both]
    alike = [(one.over, one.over_low, one.over_high) for one in both]
    found = []
    for name, ends in (("ppi", own), (OVER, alike)):
        (first, _, _), (second, _, _) = ends
        if first is None or second is None:
            continue
        n = [len(read.measured) for read in (a, b)]
        rows = [(*end, count) for end, count in zip(ends, n, strict=True)]
        over = name == OVER
        rows.append((second - first, *interval([b, a], over=over), min(n)))
        rows.append((p_value([b, a], over), None, None, min(n)))
        found += [
            Score(f"{name}-{side}", cell, *figure, {}, None, "")
            for side, figure in zip(("a", "b", "difference", "p"), rows, strict=True)
        ]
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
    `rates`.
    """
    question = column.removeprefix("llm_")
    votes = _deciding(_reviews(outcomes, reviewed, question)).groupby("__row")
    label = votes["answer"].agg(
        lambda said: (
            most[0]
            if len(most := said.mode()) == 1 and 2 * sum(said == most[0]) > len(said)
            else None
        )
    )
    weight = votes["__weight"].first().to_numpy(float)
    seen = outcomes.iloc[label.index].assign(__truth=label.to_numpy(object), __weight=weight)
    seen = seen[seen["__truth"].notna() & seen[column].notna()]
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
        ("ppi", rate.ppi, rate.ppi_low, rate.ppi_high, rate.n, one.excluded),
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


def _rates(
    rows: pd.DataFrame, column: str, positive: str, by: Sequence[str], level: float
) -> list[Rate]:
    found = []
    for label, kept, left_out, read in _reads(rows, positive, by):
        excluded = dict(sorted(left_out.items(), key=rank))
        split = int(kept["__split"].sum())
        found.append(Rate(label, column, positive, excluded, split, correct(read, level)))
    return found


def _reads(
    rows: pd.DataFrame, positive: str, by: Sequence[str]
) -> Iterator[tuple[dict[str, JSON], pd.DataFrame, Counter[str], Read]]:
    """Yield for each cell its label, the rows that count, what was left out, and the replies."""
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
        left_out = Counter(str(reason) for reason in part["__reason"] if reason != "")
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
        yield label, kept, left_out, read
