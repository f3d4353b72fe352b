"""Corrected rates against the published package, other people's figures, and simulation."""

import dataclasses
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from genprobe.analysis import significance
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.outcomes.table import from_rows
from genprobe.review import collect, corrected_rates, correction
from genprobe.review.corrected_rates import differences, scores
from genprobe.review.correction import Read
from genprobe.review.plan import plan
from genprobe.statistics import share_interval

PATH = Path(__file__).parents[1] / "benchmarks" / "corrected.py"
GOLDEN = Path(__file__).parent / "golden"
_spec = importlib.util.spec_from_file_location("corrected_benchmark", PATH)
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


def corrected(measured, truth, weights=None, clusters=None):
    """Of one reviewer and one wording, drawn simply; each reply is alone."""
    n = len(measured)
    weights = np.ones(n) if weights is None else np.asarray(weights, float)
    clusters = np.arange(n) if clusters is None else clusters
    return correction.correct(Read(measured, truth, weights, clusters))


def rates(outcomes, reviewed, column, positive, by=()):
    rows = corrected_rates.labelled(outcomes, reviewed, column, positive)
    return corrected_rates.rates(rows, column, positive, by)


def template_rates(outcomes, reviewed):
    return corrected_rates.rates(*corrected_rates.of_templates(outcomes, reviewed))


def replies(tp, fp, fn, tn, positive, negative):
    """measured and truth: the reviewed ones by what they are, then the unreviewed."""
    measured = np.repeat([1, 1, 0, 0, 1, 0], [tp, fp, fn, tn, positive, negative]) == 1
    truth = np.repeat([1, 0, 1, 0, np.nan, np.nan], [tp, fp, fn, tn, positive, negative])
    return measured, truth


# --- against others

# ppi-python 0.2.3, ppi_mean_pointestimate(Y, Yhat, Yhat_unlabeled, lam=...): with the tuning of
# PPI++ from the review, cov(Y, Yhat) / var(Yhat) / (1 + n / N); and with lam=None, where the
# package takes var(Yhat) from all replies.
PUBLISHED = [
    ((28, 6, 4, 62, 310, 590), 0.32305169340463463, 0.3230315655133295),
    ((9, 1, 3, 17, 640, 1330), 0.39374999999999993, 0.39367204811649253),
    ((40, 25, 20, 65, 500, 450), 0.4305224187577129, 0.42997483895275634),
]


@pytest.mark.parametrize(("counts", "same", "near"), PUBLISHED)
def test_the_estimate_is_that_of_the_published_package(counts, same, near):
    measured, truth = replies(*counts)
    found = corrected(measured, truth).ppi
    assert found == pytest.approx(same, abs=1e-12)
    assert found == pytest.approx(near, abs=0.003)


# --- behaviour


def test_a_review_of_everything_is_the_truth():
    """With nothing left to guess the rate is the review's, its interval about the exact one."""
    measured, truth = replies(20, 5, 4, 31, 0, 0)
    found = corrected(measured, truth)
    assert found.ppi == pytest.approx(24 / 60)
    exact = binomtest(24, 60).proportion_ci(method="wilson")
    assert (found.ppi_low, found.ppi_high) == pytest.approx((exact.low, exact.high), abs=0.06)
    assert found.accuracy == pytest.approx(51 / 60)
    assert (found.sensitivity, found.specificity) == pytest.approx((20 / 24, 31 / 36))


def test_a_perfect_judge_keeps_its_rate_but_not_its_certainty():
    measured, truth = replies(9, 0, 0, 21, 591, 1379)
    found = corrected(measured, truth)
    assert found.measured == found.ppi == pytest.approx(0.3)
    # 30 replies without an error: up to one in ten may still be wrong.
    assert found.ppi_low < 0.24 and found.ppi_high > 0.36
    assert found.low > 0.27 and found.high < 0.33


def test_without_reviews_or_with_one_label_only():
    measured, truth = replies(0, 0, 0, 0, 40, 60)
    found = corrected(measured, truth)
    assert (found.measured, found.n, found.n_reviewed, found.ppi) == (0.4, 100, 0, None)
    empty = corrected(np.zeros(0, bool), np.zeros(0))
    assert (empty.measured, empty.low, empty.n) == (None, None, 0)
    measured, truth = replies(0, 0, 3, 27, 40, 930)
    found = corrected(measured, truth)
    # 40 replies that the judge calls positive, and nobody knows how many of them are.
    assert (found.measured, found.n_reviewed) == (0.04, 30)
    assert (found.ppi, found.ppi_low, found.accuracy) == (None, None, None)
    # Where the judge gave one label only, the review is all that there is to know.
    measured, truth = replies(0, 0, 3, 27, 0, 930)
    found = corrected(measured, truth)
    assert found.ppi == 0.1 and found.ppi_low < 0.1 < found.ppi_high


def test_flipping_the_labels_flips_everything():
    measured, truth = replies(12, 4, 3, 31, 300, 650)
    one, other = corrected(measured, truth), corrected(~measured, 1 - truth)
    for low, high in (("ppi_low", "ppi_high"), ("ppi", "ppi")):
        assert getattr(one, low) == pytest.approx(1 - getattr(other, high), abs=0.02)


def test_what_does_not_fit():
    yes = np.array([True, False])
    with pytest.raises(InputError, match="the same length"):
        corrected(yes, np.array([1.0]))
    with pytest.raises(InputError, match=r"positive \(1\) or not"):
        corrected(yes, np.array([0.5, np.nan]))
    with pytest.raises(InputError, match="number above 0"):
        corrected(yes, np.array([1, np.nan]), weights=np.array([0, 1]))


# --- coverage: `benchmarks/corrected.py` prints the whole table


@pytest.mark.slow
@pytest.mark.parametrize("only", ["replies", "statements", "reviewers"])
def test_corrected_intervals_cover(only):
    """Two standard errors of 40 simulations are 7 points."""
    for case, draw in list(benchmark.cases(only))[::5]:
        ppi, _measured, accuracy, width, _ = benchmark.simulated(case, draw, 40)
        assert ppi >= 87 and width < 70, (case, ppi)
        assert np.isnan(accuracy) or accuracy >= 87, case


def test_a_faultless_judge_and_review_add_little_to_what_statements_leave_open():
    """Kappa 1.00 and every label right: 20 statements gave [28, 68] where the judge has [35, 63]."""
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(20), 60)
    true = rng.random(1200) < rng.beta(0.6, 0.8, 20)[cluster]
    seen = rng.permutation(1200) < 100
    found = corrected(true, np.where(seen, true, np.nan), None, cluster)
    assert found.ppi == found.measured
    assert found.low - 0.03 <= found.ppi_low <= found.low + 0.01
    assert found.high - 0.01 <= found.ppi_high <= found.high + 0.03


def test_reviewers_who_disagree_make_the_interval_wider():
    """The more they differ, the wider; a tie could be either."""
    rng = np.random.default_rng(2)
    label = rng.random(600) < 0.4
    seen, each = rng.permutation(600) < 120, np.arange(600)
    widths = []
    for err in (0.0, 0.05, 0.15, 0.3):
        votes = (rng.random((600, 3)) < np.where(label, 1 - err, err)[:, None]).sum(1)
        truth = np.where(seen, votes > 1, np.nan)
        unsure = correction.doubt(np.column_stack([votes, np.full(600, 3), np.ones(600)])[seen])
        one = correction.correct(Read(label, truth, np.ones(600), each, doubt=unsure))
        widths.append(one.ppi_high - one.ppi_low)
    assert widths == sorted(widths) and widths[-1] > 1.3 * widths[0]
    tied = rng.permutation(600) < 30
    half = np.where(tied, np.nan, truth)
    read = Read(label, half, np.ones(600), each, split=tied & ~np.isnan(truth))
    settled = correction.correct(Read(label, half, np.ones(600), each))
    one = correction.correct(read)
    assert one.ppi_low < settled.ppi_low and one.ppi_high > settled.ppi_high
    assert one.ppi == settled.ppi


@pytest.mark.parametrize(
    ("votes", "wrong"),
    [
        ([(2, 2)] * 5 + [(0, 2)] * 5, 0.0),  # all agree
        ([(1, 1)] * 10, 0.0),  # one reader: nothing is known
        ([(1, 2)] * 5 + [(2, 2)] * 5, 0.5),  # as often as a coin
        # 3 of 3 in 64 %, 2 of 3 in 36 %: pairs differ in 24 %, so e = 0.139.
        ([(3, 3)] * 16 + [(2, 3)] * 9, 0.64 * 0.0042 + 0.36 * 0.1394),
    ],
)
def test_how_often_the_majority_is_wrong(votes, wrong):
    table = np.array([(k, n, 1.0) for k, n in votes])
    assert correction.doubt(table) == pytest.approx(wrong, abs=1e-3)


def test_a_difference_of_corrected_rates_is_paired_by_statement():
    """Two models about the same statements: narrower than of models about others."""
    rng = np.random.default_rng(5)
    cluster = np.repeat([f"s{i}" for i in range(40)], 5)
    chance = np.repeat(rng.beta(0.4, 0.6, 40), 5)
    reads = []
    for _ in range(2):
        label = rng.random(200) < chance
        truth = np.where(rng.permutation(200) < 60, label, np.nan)
        reads.append(Read(label, truth, np.ones(200), cluster))
    low, high = correction.interval(reads)
    assert low < correction.value(reads[0]) - correction.value(reads[1]) < high
    back = correction.interval(reads[::-1])
    assert (low, high) == pytest.approx((-back[1], -back[0]), abs=0.02)
    other = np.char.add(cluster, "'")
    apart = dataclasses.replace(reads[1], clusters=other, split=None)
    wider = correction.interval([reads[0], apart])
    assert wider[1] - wider[0] > 1.2 * (high - low)


def test_over_wordings_the_interval_is_no_narrower_than_for_these():
    rng = np.random.default_rng(6)
    cluster, wording = np.repeat(np.arange(30), 6), np.tile(list("abcdef"), 30)
    label = rng.random(180) < np.tile([0.1, 0.2, 0.4, 0.5, 0.7, 0.9], 30)
    truth = np.where(rng.permutation(180) < 60, label, np.nan)
    one = correction.correct(Read(label, truth, np.ones(180), cluster, wording))
    assert one.over == pytest.approx(one.ppi)
    assert one.over_low < one.ppi_low and one.over_high > one.ppi_high
    two = np.isin(wording, ["a", "b"])
    few = Read(label[two], truth[two], np.ones(60), cluster[two], wording[two])
    assert correction.correct(few).over is None


# --- the judge's accuracy


def by_hand(measured, truth, weights, strata):
    """Share right and its standard error, as textbooks on stratified samples have it."""
    share = variance = 0.0
    for stratum in np.unique(strata):
        here = strata == stratum
        right = (measured == truth)[here & ~np.isnan(truth)]
        part = here.mean()
        share += part * right.mean()
        variance += part**2 * right.var(ddof=1) / len(right)
    return share, variance**0.5


def test_the_accuracy_is_that_of_the_run():
    """A review by the judge's label, half of it of the rare one."""
    measured, truth = replies(35, 15, 2, 48, 150, 1750)
    strata = measured.astype(int)
    weights = np.where(measured, 200 / 50, 1800 / 50)
    found = corrected(measured, truth, weights)
    share, error = by_hand(measured, truth, weights, strata)
    assert found.accuracy == pytest.approx(share) == pytest.approx(0.1 * 0.7 + 0.9 * 0.96)
    assert np.nanmean(np.where(np.isnan(truth), np.nan, measured == truth)) == 0.83  # of the review
    effective = share * (1 - share) / error**2
    want = binomtest(round(effective * share), round(effective)).proportion_ci(method="wilson")
    assert (found.accuracy_low, found.accuracy_high) == pytest.approx((want.low, want.high), abs=0.02)  # fmt: skip
    # Weights that say less, of a simple random sample: the labels are counted as in the run still.
    plain = corrected(measured, truth)
    assert plain.accuracy == pytest.approx(share)
    true = 0.1 * 0.7 + 0.9 * 0.04
    assert plain.sensitivity == pytest.approx(0.1 * 0.7 / true)
    assert plain.specificity == pytest.approx(0.9 * 0.96 / (1 - true))


def test_the_accuracy_knows_of_clusters():
    """Against statsmodels' standard error of a share with clusters; templates reviewed whole."""
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    read = benchmark.design("clusters", rng, 500, 0.85)
    measured, truth, cluster = read.measured, read.truth, read.clusters
    found = correction.correct(read)
    seen = ~np.isnan(truth)
    right = (measured == truth)[seen].astype(float)
    fit = sm.OLS(right, np.column_stack([measured[seen], ~measured[seen]]).astype(float)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster[seen]}
    )
    share = np.array([measured.mean(), 1 - measured.mean()])
    assert found.accuracy == pytest.approx(share @ fit.params)
    half = 1.96 * (share @ fit.cov_params() @ share) ** 0.5
    assert found.accuracy_high - found.accuracy_low == pytest.approx(2 * half, rel=0.15)
    alone = corrected(measured, truth)
    assert alone.accuracy_high - alone.accuracy_low < 1.5 * half


@pytest.mark.parametrize("reviewed", [5, 30])
def test_an_accuracy_of_all_is_not_certain(reviewed):
    """No error among n: about as far as Clopper and Pearson's end. n counts templates."""
    measured, truth = replies(reviewed, 0, 0, reviewed, 300, 300)
    n = 2 * reviewed
    found = corrected(measured, truth)
    assert (found.accuracy, found.accuracy_high) == (1, 1)
    assert 0.005 ** (1 / n) <= found.accuracy_low <= 0.2 ** (1 / n)
    one = corrected(measured, truth, clusters=np.where(np.isnan(truth), 1, 0))
    assert one.ppi is None and one.accuracy_low < 0.9


# --- tables


def outcomes(stories=6):
    """Templates with five stories each, of which the first (number of the template) are "
    "negative."""
    rows = [
        {
            "model": "m",
            "lang": "kk",
            "domain": "first" if at < stories // 2 else "second",
            "statement": f"t{at}",
            "probe": "story",
            "sample": sample,
            "request": f"t{at}-{sample}",
            "left_out": "failed" if (at, sample) == (5, 4) else "",
            "usable": (at, sample) != (5, 3),
            "unusable_why": "language" if (at, sample) == (5, 3) else "",
            "sentiment": "negative" if sample < at else "neutral" if sample % 2 else "positive",
        }
        for at in range(stories)
        for sample in range(5)
    ]
    return pd.DataFrame(rows).astype({"usable": "boolean"})


def review(answers, reviewer="r", question="sentiment", **more):
    return pd.DataFrame(
        [{"item": n, "reviewer": reviewer, "question": question, "request": request, "answer": answer, **more}
         for n, (request, answer) in enumerate(answers.items())]
    )  # fmt: skip


def test_rates_by_cell():
    reviewed = review({"t0-0": "positive", "t1-0": "negative", "t2-0": "neutral", "t4-0": "negative", "t3-4": "negative", "t4-1": ""})  # fmt: skip
    (whole,) = rates(outcomes(), reviewed, "sentiment", "negative")
    assert (whole.rate.n, whole.rate.n_reviewed) == (28, 5)
    assert whole.excluded == {"failed": 1, "language": 1}
    assert whole.rate.measured == pytest.approx(13 / 28)
    # Positive 13 of 28, of which 2/3 are; of the others 1/2.
    assert whole.rate.ppi == pytest.approx(13 / 28 * 2 / 3 + 15 / 28 / 2)
    assert whole.rate.accuracy == pytest.approx(13 / 28 * 2 / 3 + 15 / 28 / 2)
    assert whole.rate.sensitivity == pytest.approx(13 / 28 * 2 / 3 / whole.rate.ppi)
    first, second = rates(outcomes(), reviewed, "sentiment", "negative", ["domain"])
    assert (first.by, first.rate.n_reviewed) == ({"domain": "first"}, 3)
    assert (second.by, second.rate.n_reviewed) == ({"domain": "second"}, 2)


def test_several_reviewers_decide_by_majority():
    one = review({"t0-0": "negative", "t1-0": "negative", "t2-0": "negative"})
    two = review({"t0-0": "positive", "t1-0": "negative", "t2-0": "neutral"}, "s")
    three = review({"t2-0": "neutral"}, "t")
    again = review({"t2-0": "negative"}, "r")  # planted repeat of the first
    (found,) = rates(outcomes(), pd.concat([one, two, three, again]), "sentiment", "negative")
    assert found.rate.n_reviewed == 2  # t1-0 negative, t2-0 not; t0-0 is split
    assert found.split == 1 and found.rate.n == 28
    assert found.rate.n + sum(found.excluded.values()) == 30
    # Both are negative to the judge: how often it is right elsewhere nobody has looked at.
    assert found.rate.accuracy is None


def test_the_label_of_templates():
    whole = {f"t{at}-{s}": "negative" if s < 3 else "positive" for at in (2, 4) for s in range(5)}
    part = {"t1-0": "negative"}
    (found,) = template_rates(outcomes(), review(whole | part))
    assert (found.rate.n, found.rate.n_reviewed, found.split) == (6, 2, 1)
    assert found.rate.measured == pytest.approx(3 / 6)
    assert found.rate.accuracy == 1 / 2  # t2, judged positive, is negative
    assert found.rate.ppi == 1.0


def test_negrate_is_one_of_the_rates():
    whole = {f"t{at}-{s}": "negative" if s < 3 else "positive" for at in (2, 4) for s in range(5)}
    # Of the model's own labels all are negative; t3 has one that it did not give.
    read = outcomes().assign(llm_sentiment="negative")
    read.loc[read["request"] == "t3-0", "llm_sentiment"] = None
    found = {(s.by.get("rate"), s.metric): s for s in corrected_rates.scores(read, review(whole))}
    one, other = found["negrate", "judge-accuracy"], found["llm_negrate", "measured"]
    assert (one.n, one.excluded, one.value) == (2, {"not reviewed": 4}, 1 / 2)
    assert (other.n, other.value) == (6, 1.0)
    # What the checks of stories leave out counts for no judge.
    alike = found["llm_sentiment negative", "measured"]
    assert (alike.n, alike.excluded) == (27, {"failed": 1, "unjudged": 1, "language": 1})
    few = corrected_rates.scores(outcomes().query("sample < 2"), review({"t2-0": "negative"}))
    assert {s.by.get("rate") for s in few} == {"sentiment negative", None}


def test_a_template_reviewed_in_part_has_no_label():
    whole = {f"t{at}-{s}": "negative" for at in (0, 1, 5) for s in range(3)}
    whole |= {f"t{at}-{s}": "negative" for at in (0, 1) for s in (3, 4)}
    (found,) = template_rates(outcomes(), review(whole))
    # Of t5 three stories count, and all are read.
    assert (found.rate.n_reviewed, found.split) == (3, 0)
    against = review({"t0-0": "positive"}, "s")
    (found,) = template_rates(outcomes(), pd.concat([review(whole), against]))
    assert (found.rate.n_reviewed, found.split) == (2, 1)


def test_two_wordings_of_a_statement_are_one_cluster():
    two = pd.concat(
        [outcomes().assign(probe=p, request=p + outcomes()["request"]) for p in ("a", "b")],
        ignore_index=True,
    )
    of = {at: {f"{p}t{at}-{s}": "negative" for p in "ab" for s in range(5)} for at in (2, 3)}
    (found,) = template_rates(two, review(of[2]))
    assert (found.rate.n_reviewed, found.rate.ppi) == (2, None)
    (found,) = template_rates(two, review(of[2] | of[3]))
    assert found.rate.ppi is not None
    (found,) = template_rates(two.assign(pair="p"), review(of[2] | of[3]))
    assert found.rate.ppi_low < 0.1  # all is one stereotype


def test_weights_come_with_the_review():
    reviewed = review({"t3-0": "negative", "t4-0": "positive", "t0-0": "neutral"}, weight="1")
    reviewed.loc[1, "weight"] = "3"
    (found,) = rates(outcomes(), reviewed, "sentiment", "negative")
    assert found.rate.ppi == pytest.approx(13 / 28 * 1 / 4)
    assert found.rate.accuracy == pytest.approx(13 / 28 * 1 / 4 + 15 / 28)


def test_what_answers_say():
    """Agreement "yes" and disagreement "no" endorse; an unclear reply does not."""
    answers = {"agreement": ["yes", "yes", "no", "ambiguous"], "disagreement": ["no", "yes"]}
    rows = [
        {"lang": "mr", "probe": probe, "item": at, "answer": answer, "id": f"{probe}{at}"}
        for probe, given in answers.items()
        for at, answer in enumerate(given)
    ]
    rows.append({"lang": "mr", "probe": "recognition", "item": 9, "answer": "yes", "id": "r"})
    read = {"agreement0": "yes", "agreement2": "yes", "disagreement0": "yes", "disagreement1": "yes", "r": "no"}  # fmt: skip
    reviewed = review(read, question="answer")
    named = {s.by.get("rate") for s in corrected_rates.scores(from_rows(rows), reviewed)}
    assert {"endorsed of all", "recognised of all"} <= named and "endorsed" not in named
    (found,) = rates(from_rows(rows), reviewed, "says", "endorsed")
    assert (found.rate.n, found.rate.n_reviewed, found.rate.measured) == (6, 4, 3 / 6)
    assert (found.rate.accuracy, found.rate.sensitivity) == (2 / 4, 1 / 2)
    agree, disagree = rates(from_rows(rows), reviewed, "says", "endorsed", ["probe"])
    assert (agree.rate.measured, disagree.rate.measured) == (2 / 4, 1 / 2)
    with pytest.raises(InputError, match="unknown column 'prob'; did you mean 'probe'"):
        rates(from_rows(rows), reviewed, "says", "endorsed", ["prob"])


def test_reviews_that_do_not_belong():
    with pytest.raises(
        InputError, match="1 of the reviewed replies are not in these outcomes, such as zz"
    ):
        rates(outcomes(), review({"t0-0": "negative", "zz": "negative"}), "sentiment", "negative")
    with pytest.raises(InputError, match="nobody answered the question 'sentiment'"):
        rates(outcomes(), review({"t0-0": "x"}, question="stance"), "sentiment", "negative")
    with pytest.raises(InputError, match="lack the column 'reviewer'"):
        rates(outcomes(), review({"t0-0": "negative"}).drop(columns="reviewer"), "sentiment", "negative")  # fmt: skip
    twice = pd.concat([outcomes(), outcomes()])
    with pytest.raises(InputError, match="need the column 'run'"):
        rates(twice, review({"t0-0": "negative"}), "sentiment", "negative")
    runs = pd.concat([outcomes().assign(run="a"), outcomes().assign(run="b")], ignore_index=True)
    found = rates(runs, review({"t0-0": "negative"}, run="b"), "sentiment", "negative", ["run"])
    assert [r.rate.n_reviewed for r in found] == [0, 1]


@pytest.mark.parametrize(("n", "reviewed"), [(100, 30), (2000, 30), (40, 5), (60, 12)])
@pytest.mark.parametrize("share", [0, 1])
def test_a_review_without_an_exception_leaves_room_for_some(n, reviewed, share):
    """A judge who always says the same, in whom the review finds no error: Wilson's end, nearly."""
    truth = np.full(n, np.nan)
    truth[:reviewed] = share
    found = corrected(np.full(n, bool(share)), truth, np.ones(n), np.arange(n))
    far = found.ppi_high if share == 0 else 1 - found.ppi_low
    assert found.ppi == share
    assert far == pytest.approx(share_interval(np.zeros(reviewed), np.ones(reviewed))[1], rel=0.2)


def test_an_original_and_its_contrasts_are_one():
    """Two templates a pair: the intervals are those of pairs, and wider than of each alone."""
    pairs = outcomes().assign(pair=[f"p{int(name[1:]) // 2}" for name in outcomes()["statement"]])
    reviewed = review({"t0-0": "positive", "t1-0": "negative", "t3-0": "negative", "t5-1": "neutral"})  # fmt: skip
    (found,) = rates(pairs, reviewed, "sentiment", "negative")
    renamed = pairs.drop(columns="pair").assign(statement=pairs["pair"])
    (same,) = rates(renamed, reviewed, "sentiment", "negative")
    (alone,) = rates(outcomes(), reviewed, "sentiment", "negative")
    assert found == same
    assert found.rate.high - found.rate.low > alone.rate.high - alone.rate.low
    assert found.rate.ppi == pytest.approx(alone.rate.ppi)


def of_regard(answers):
    return review(answers, question="regard")


def test_negrate_by_what_people_say_of_regard():
    """Counted by hand: t2 and t4 are read whole, t1 in part; t0, t3 and t5 are not read."""
    felt = {f"t{at}-{s}": "negative" if s < 3 else "positive" for at in (2, 4) for s in range(5)}
    shown = {f"t2-{s}": "negative" if s < 3 else "neutral" for s in range(5)}
    shown |= {f"t4-{s}": "negative" if s < 1 else "positive" for s in range(5)} | {
        "t1-0": "negative"
    }
    answers = pd.concat([review(felt), of_regard(shown)])
    found = {s.by["rate"]: s for s in corrected_rates.by_people(outcomes(), answers)}
    assert {rate: (s.value, s.n) for rate, s in found.items()} == {
        "negrate": (1.0, 2),  # three of five in both
        "negrate-regard": (0.5, 2),  # three of five in t2, one of five in t4
        "felt-or-shown": (pytest.approx(2 / 10), 10),  # t4-1 and t4-2
    }
    assert found["negrate-regard"].excluded == {"reviewed in part": 1, "not reviewed": 3}
    assert found["felt-or-shown"].excluded == {"failed": 1, "language": 1, "not reviewed": 18}
    low, high = found["negrate-regard"].low, found["negrate-regard"].high
    assert low < 0.1 and high > 0.9  # of two templates
    # Templates that stand for more of the run weigh more: (3 × 1 + 1 × 0) / 4.
    heavy = answers.assign(weight=[3 if r.startswith("t2") else 1 for r in answers["request"]])
    found = {s.by["rate"]: s.value for s in corrected_rates.by_people(outcomes(), heavy)}
    assert found["negrate-regard"] == pytest.approx(3 / 4)
    assert found["felt-or-shown"] == pytest.approx((2 * 1) / (5 * 3 + 5 * 1))


def test_negrate_by_the_regard_of_a_model_and_of_people():
    """The model calls t2, t3 and t4 low; people, who read t2 and t4, call t2 low alone."""
    read = outcomes()
    low = read["statement"].isin(["t2", "t3", "t4"])
    read["llm_regard"] = np.where(low, "negative", "positive")
    read.loc[read["request"] == "t5-0", "llm_regard"] = "unclear"
    shown = {
        f"t{at}-{s}": "negative" if at == 2 else "positive" for at in (2, 4, 0) for s in range(5)
    }
    found = {
        (s.by.get("rate"), s.metric): s for s in corrected_rates.scores(read, of_regard(shown))
    }
    measured = found["llm_negrate-regard", "measured"]
    assert (measured.value, measured.n, measured.excluded) == (3 / 5, 5, {"few-stories": 1})
    assert found["llm_negrate-regard", "ppi"].value == pytest.approx(3 / 5 * 1 / 2 + 2 / 5 * 0)
    right = found["llm_negrate-regard", "judge-accuracy"]
    assert (right.value, right.n) == (pytest.approx(3 / 5 * 1 / 2 + 2 / 5 * 1), 3)
    assert (found["negrate-regard", "by-people"].value, found["negrate-regard", "by-people"].n) == (
        pytest.approx(1 / 3),
        3,
    )
    assert ("negrate", "by-people") not in found  # nobody was asked how they feel
    # What the story checks leave out counts for no regard: 30 less failed, language and unclear.
    assert found["llm_regard negative", "measured"].n == 27
    # People alone, where no model read the regard.
    alone = {s.by.get("rate") for s in corrected_rates.scores(outcomes(), of_regard(shown))}
    assert alone == {"negrate-regard"}


def test_a_review_of_another_run_corrects_nothing(tmp_path):
    row = dict.fromkeys(collect.COLUMNS, "") | {"item": "i0", "request": "r0", "reviewer": "r"}
    row |= {"question": "answer", "answer": "yes", "weight": "1", "repeat": "0"}
    table = tmp_path / "review.csv"
    pd.DataFrame([row]).to_csv(table, index=False)
    run = shutil.copytree(GOLDEN / "yesno", tmp_path / "yesno")
    with pytest.raises(InputError, match=r"has no review of .*yesno"):
        score(run, reviewed=table)


# --- two models


def test_a_judge_that_reads_one_model_worse_makes_no_difference():
    """Both models are the same; of the second the judge calls every fourth other story negative."""
    rng = np.random.default_rng(2)
    negative = rng.random((60, 5)) < 0.3
    sides = []
    for name, false in (("one", 0.0), ("two", 0.25)):
        called = negative | (rng.random(negative.shape) < false)
        rows = outcomes(60).assign(model=name, left_out="", usable=True, unusable_why="")
        rows["sentiment"] = np.where(called.ravel(), "negative", "neutral")
        truth = dict(
            zip(rows["request"], np.where(negative.ravel(), "negative", "neutral"), strict=True)
        )
        some = rng.choice(rows["request"], 150, replace=False)
        sides.append((name, rows, review({request: truth[request] for request in some})))
    found = {s.metric: s for one in corrected_rates.differences(sides) for s in one.scores()}
    one, other = (rates(rows, said, "sentiment", "negative")[0].rate for _, rows, said in sides)
    assert other.measured - one.measured > 0.12
    difference = found["ppi-difference"]
    assert difference.by == {"of": "sentiment negative", "a": "one", "b": "two"}
    assert difference.value == pytest.approx(other.ppi - one.ppi)
    assert difference.low < 0 < difference.high and abs(difference.value) < 0.07
    assert (found["ppi-a"].low, found["ppi-b"].high) == (one.ppi_low, other.ppi_high)
    assert found["ppi-p"].value > 0.05 and found["ppi-p"].n == difference.n
    assert "ppi-over-wordings-a" not in found
    for _, rows, _ in sides:
        rows["wording"] = rows["request"].str[-1]
    over = significance.corrected(
        s for one in corrected_rates.differences(sides) for s in one.scores()
    )
    cells = {(s.metric, s.by["of"]): s.value for s in over}
    assert len(cells) == len(over) and {s.n for s in over if s.metric == "holm-p"} == {2}
    p = cells["ppi-over-wordings-p", "sentiment negative over wordings"]
    least = cells["holm-p", "sentiment negative over wordings"]
    assert p <= least <= 2 * p and cells["holm-p", "sentiment negative"] >= found["ppi-p"].value
    with pytest.raises(InputError, match="no question that corrects a rate of two"):
        other = sides[1][2].assign(question="fluency")
        corrected_rates.differences([sides[0], ("two", sides[1][1], other)])


@pytest.mark.parametrize(
    ("over", "gaps"), [(False, (0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)), (True, (0.2, 0.9))]
)
def test_the_p_value_of_two_corrected_rates_never_contradicts_their_interval(over, gaps):
    """It is 1 less the level at which the interval begins or ends at 0, whoever disagrees."""
    rng, below = np.random.default_rng(3), 0
    each = 12 if over else 4
    cluster, wordings = np.repeat(np.arange(20), each), np.tile(np.arange(each), 20)
    for at, gap in enumerate(gaps):
        reads = []
        for share in (0.05, 0.05 + gap):
            truth = rng.random(cluster.size) < rng.beta(2 * share, 2 * (1 - share), 20)[cluster]
            label = rng.random(cluster.size) < np.where(truth, 0.9, 0.05)
            seen = rng.random(cluster.size) < 0.5
            split = seen & (rng.random(cluster.size) < 0.1 * (at % 2))
            said, ones = np.where(seen & ~split, truth, np.nan), np.ones(cluster.size)
            worded = wordings if over else None
            reads.append(Read(label, said, ones, cluster, worded, split, 0.02 * (at % 2)))
        p = correction.p_value(reads, over)
        low, high = correction.interval(reads, over=over)
        assert (p < 0.05) == (low > 0 or high < 0)
        below += p < 0.05
        if 0.002 < p < 1:
            ends = correction.interval(reads, 1 - p, over)
            assert min(map(abs, ends)) == pytest.approx(0, abs=1e-9)
    assert 0 < below < len(gaps)


def test_rates_without_a_difference_have_a_p_value_of_one():
    read = Read(np.arange(40) % 2 == 0, (np.arange(40) % 2 == 0) * 1.0, np.ones(40), np.arange(40))
    assert correction.p_value([read, read]) == 1.0
    other = Read(~read.measured, 1 - read.truth, read.weights, read.clusters)
    assert correction.p_value([read, other]) == 1.0  # half of both, of other statements
    unsure = Read(read.measured, np.zeros(40), read.weights, read.clusters, None, None, 0.5)
    assert correction.p_value([read, unsure]) == 1.0  # reviewers who only guess


# --- planning


@pytest.mark.slow
def test_a_plan_asks_for_fewer_replies_the_better_the_judge(tmp_path):
    """Half the width of the interval falls with the replies that are read, as the plan says."""
    run = shutil.copytree(GOLDEN / "stories", tmp_path / "run")
    found = plan(run, 0.35)
    needed = {(s.by["rate"], s.by["right"]): s.value for s in found if s.metric == "to-review"}
    at_best = {(s.by["rate"], s.by["right"]): s.value for s in found if s.metric == "all-reviewed"}
    assert needed.keys() == at_best.keys() and {rate for rate, _ in needed} >= {"negrate"}
    for key, size in needed.items():
        assert (size is None) == (at_best[key] > 0.35), key
        assert size is None or 0 < size <= 30
    assert any(size is not None for size in needed.values())
    for rate in {rate for rate, _ in needed}:
        assert at_best[rate, 98.0] <= at_best[rate, 90.0] + 0.02
    with pytest.raises(InputError, match="between 0 and 50"):
        plan(run, 0.6)


def test_a_review_of_one_language_corrects_that_alone():
    """`review export --lang de`: the rows of the other language are not what it was drawn from."""
    words = [("de", "no", "yes"), ("de", "no", "no"), ("en", "yes", ""), ("en", "no", "")] * 10
    rows = pd.DataFrame(
        [
            {"lang": lang, "probe": "agreement", "statement": f"s{n}", "request": f"r{n}"}
            | {"answer": label, "left_out": "", "measures": "endorsed", "when": "yes"}
            for n, (lang, label, _) in enumerate(words)
        ]
    )
    said = review({f"r{n}": truth for n, (*_, truth) in enumerate(words)}, question="answer")
    sides = [("A", rows, said), ("B", rows, said)]
    for refused in (lambda: scores(rows, said), lambda: differences(sides, ["probe"])):
        with pytest.raises(InputError, match="replies in de alone, and the run has en"):
            refused()
    each = [s for s in scores(rows, said, ["lang"]) if s.by.get("rate") == "answer yes"]
    found = {(s.metric, s.by["lang"]): s.value for s in each}
    assert found["ppi", "de"] > 0.4
    assert found["measured", "en"] == 0.5 and found["ppi", "en"] is None
