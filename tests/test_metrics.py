"""Scores against tables counted by hand, brute force, and simulation."""

import itertools
import math
from collections import Counter
from statistics import mean

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from scipy.stats import t as student_t

from genprobe import metrics, statistics
from genprobe.errors import InputError
from genprobe.metrics.rates import recognised_declarations
from genprobe.outcomes import table
from genprobe.resources import registry

# --- intervals


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 40), (3, 10), (17, 40), (40, 40), (1, 1000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_scipys(k, n, level):
    theirs = binomtest(k, n).proportion_ci(level, method="wilson")
    assert statistics.wilson(k, n, level) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_has_no_interval_for_nothing():
    assert statistics.wilson(0, 0) is None
    assert statistics.share_interval(np.array([]), np.array([])) is None
    assert statistics.bootstrap(np.empty((0, 2))) is None


@pytest.mark.parametrize("scale", [1e300, 1e-200])
@pytest.mark.parametrize("interval", [statistics.share_interval, statistics.mean_interval])
def test_an_interval_does_not_depend_on_the_scale_of_the_weights(interval, scale):
    """Without a warning of numbers that are too large, which are errors here."""
    hits, sizes = np.array([1.0, 0.0, 3.0, 2.0]), np.array([2.0, 3.0, 4.0, 2.0])
    with np.errstate(over="raise"):
        assert interval(hits * scale, sizes * scale) == pytest.approx(interval(hits, sizes))


def test_one_reply_a_cluster_is_plain_wilson():
    hits = np.array([1, 0, 0, 1, 1, 0, 0])
    assert statistics.share_interval(hits, np.ones(7)) == statistics.wilson(3, 7)


def test_replies_that_are_all_alike_count_about_once():
    """Ten statements with five equal replies each: nearly Wilson's for ten replies."""
    hits = np.array([5, 0, 0, 5, 0, 0, 0, 0, 0, 5])
    wanted = statistics.wilson(3, 10)
    assert statistics.share_interval(hits, np.full(10, 5)) == pytest.approx(wanted, abs=0.03)
    # No variance to be seen: the statements are counted.
    low, high = statistics.share_interval(np.zeros(10), np.full(10, 5))
    assert (low, high) == pytest.approx(statistics.wilson(0, 10), abs=0.01)
    assert statistics.share_interval(np.full(10, 5), np.full(10, 5)) == pytest.approx(
        (1 - high, 1), abs=1e-12
    )


TABLES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=12)


@given(TABLES)
def test_the_interval_of_a_share_holds_it_and_never_falls_when_a_hit_is_added(pairs):
    sizes = np.array([n for _, n in pairs])
    hits = np.array([min(k, n) for k, n in pairs])
    low, high = statistics.share_interval(hits, sizes)
    p = hits.sum() / sizes.sum()
    assert 0 <= low <= p <= high <= 1
    for at in np.flatnonzero(hits < sizes):
        more = statistics.share_interval(hits + (np.arange(len(hits)) == at), sizes)
        assert more[0] >= low - 1e-9 and more[1] >= high - 1e-9
    # Renamed answers turn the interval round.
    assert statistics.share_interval(sizes - hits, sizes) == pytest.approx(
        (1 - high, 1 - low), abs=1e-9
    )


def test_the_ends_of_a_share_are_the_quantiles_of_drawn_weights():
    """Against the definition: weights drawn, no integral."""
    hits, sizes = np.array([0, 2, 7, 1, 0]), np.array([3, 2, 9, 4, 1])
    rng, draws = np.random.default_rng(3), 400_000
    usual = (sizes**2).sum() / sizes.sum()
    weights = rng.exponential(size=(draws, 5))
    ends = []
    for tail, yes in ((0.025, 0.25), (0.975, 0.75)):
        one, zero = rng.gamma(yes, size=draws) * usual, rng.gamma(1 - yes, size=draws) * usual
        drawn = (weights @ hits + one) / (weights @ sizes + one + zero)
        ends.append(np.quantile(drawn, tail))
    assert statistics.share_interval(hits, sizes) == pytest.approx(ends, abs=0.002)


@pytest.mark.parametrize(("clusters", "p"), [(12, 0.2), (40, 0.5)])
def test_the_interval_of_a_share_covers(clusters, p):
    """Beta-binomial replies, correlation 0.5 within a statement: plain Wilson is far off."""
    rng = np.random.default_rng(7)
    covered, naive = 0, 0
    for _ in range(600):
        sizes = rng.integers(1, 9, clusters)
        hits = rng.binomial(sizes, rng.beta(p, 1 - p, clusters))
        low, high = statistics.share_interval(hits, sizes)
        covered += low <= p <= high
        low, high = statistics.wilson(hits.sum(), sizes.sum())
        naive += low <= p <= high
    assert covered / 600 > 0.94
    assert naive / 600 < 0.85


@pytest.mark.parametrize("clusters", [5_000, 30_000])
def test_the_interval_of_a_share_of_very_many_statements_is_nearly_the_normal_one(clusters):
    rng = np.random.default_rng(2)
    hits = rng.binomial(2, rng.beta(1, 2, clusters)).astype(float)
    half = 1.96 * hits.std() / 2 / clusters**0.5
    wanted = hits.mean() / 2 - half, hits.mean() / 2 + half
    found = statistics.share_interval(hits, np.full(clusters, 2.0))
    assert found == pytest.approx(wanted, abs=half / 10)


# --- the mean over columns, two-way


def _two_way_table(rng, statements=14, wordings=5, share=0.3):
    sizes = rng.integers(0, 4, (statements, wordings)).astype(float)
    return rng.binomial(sizes.astype(int), share).astype(float), sizes


def test_two_way_draws_are_those_of_the_definition():
    """Weights drawn plainly, in the given order."""
    rng = np.random.default_rng(4)
    (x, n), (y, m) = _two_way_table(rng), _two_way_table(rng, share=0.6)
    draws = 200_000
    d, e = rng.exponential(size=(draws, len(x))), rng.exponential(size=(draws, x.shape[1]))
    above, below = rng.gamma(0.5, size=(2, draws))
    total = e.sum(1) + above + below
    for less, shares, ends in (
        (None, (d @ x) / (d @ n), above),
        ((y, m), (d @ x) / (d @ n) - (d @ y) / (d @ m), above - below),
    ):
        plain = ((e * shares).sum(1) + ends) / total
        ours = statistics.two_way((x, n), less)
        for at in (0.025, 0.5, 0.975):
            assert np.quantile(ours, at) == pytest.approx(np.quantile(plain, at), abs=0.01)


def test_two_way_ends_do_not_depend_on_names_or_order_and_turn_with_the_answers():
    rng = np.random.default_rng(5)
    (x, n), (y, m) = _two_way_table(rng), _two_way_table(rng)
    rows, columns = rng.permutation(14), rng.permutation(5)
    moved = [part[rows][:, columns] for part in (x, n, y, m)]
    low, high = statistics.two_way_interval((x, n))
    assert statistics.two_way_interval((moved[0], moved[1])) == pytest.approx((low, high))
    assert statistics.two_way_interval((n - x, n)) == pytest.approx((1 - high, 1 - low))
    low, high = statistics.two_way_interval((x, n), (y, m))
    assert statistics.two_way_interval((y, m), (x, n)) == pytest.approx((-high, -low))
    end = statistics.two_way_end((x, n), (y, m))
    assert end == pytest.approx(statistics.two_way_end(tuple(moved[:2]), tuple(moved[2:])))
    p = statistics.two_way_p(0.1, (x, n), (y, m))
    assert p == pytest.approx(statistics.two_way_p(0.1, tuple(moved[:2]), tuple(moved[2:])))


def test_two_way_ends_rise_with_hits_and_say_nothing_from_two_columns():
    rng = np.random.default_rng(6)
    x, n = np.zeros((12, 4)), np.full((12, 4), 3.0)
    found = [statistics.two_way_interval((x, n))]
    assert found[0][0] == 0
    for _ in range(25):
        at = tuple(rng.integers(0, (12, 4)))
        x[at] = min(3, x[at] + 1)
        found.append(statistics.two_way_interval((x, n)))
    # The quantiles of 8,000 draws move by a few tenths of a point.
    assert (np.diff(np.array(found), axis=0) > -0.004).all()
    assert statistics.two_way_interval((x[:, :2], n[:, :2])) is None
    assert statistics.two_way_end((x[:, :2], n[:, :2])) is None


def test_two_way_limits_without_a_change_are_those_of_as_many_columns():
    same = np.full((60, 3), 1.0), np.full((60, 3), 1.0)
    # One anchor among three wordings: 1 - 0.05^(1/3).
    assert statistics.two_way_end(same, same) == pytest.approx(1 - 0.05 ** (1 / 3), abs=0.01)
    assert statistics.two_way_p(0.0, same, same) == pytest.approx(0.5, abs=0.02)


def test_the_bootstrap_covers():
    """Few pairs and many; plain percentiles cover 83 % of the time with seven."""
    rng = np.random.default_rng(7)
    for pairs, least in ((7, 0.9), (30, 0.91)):
        covered = 0
        for _ in range(300):
            gaps = rng.normal(0.2, 1, pairs)
            low, high = statistics.bootstrap(np.column_stack([gaps, np.ones(pairs)]), resamples=500)
            covered += low <= 0.2 <= high
        assert least < covered / 300 < 0.99


def test_the_names_of_clusters_change_no_bootstrap():
    rng = np.random.default_rng(5)
    for clusters in (2, 6, 12):
        units = np.column_stack([rng.normal(size=clusters), np.ones(clusters)])
        wanted = statistics.bootstrap(units)
        for _ in range(5):
            assert statistics.bootstrap(rng.permutation(units)) == wanted


def test_the_bootstrap_of_few_clusters_is_that_of_every_resample():
    units = np.column_stack([[0.1, 0.9, 0.4], np.ones(3)])
    every = [units[list(drawn)].sum(0) for drawn in itertools.product(range(3), repeat=3)]
    values = np.sort([one[0] / one[1] for one in every])
    tail = norm.cdf(-math.sqrt(3 / 2) * student_t.ppf(0.975, 2))
    at = math.ceil(tail * 27) - 1
    assert statistics.bootstrap(units) == pytest.approx((values[at], values[-1 - at]))


def test_the_bootstrap_is_that_of_the_mean():
    """Against the normal interval of a mean of many: same centre, same width."""
    x = np.random.default_rng(1).normal(2, 3, 2000)
    low, high = statistics.bootstrap(np.column_stack([x, np.ones(2000)]))
    half = 1.96 * x.std(ddof=1) / math.sqrt(2000)
    assert (low, high) == pytest.approx((x.mean() - half, x.mean() + half), abs=0.03)


def test_the_bootstrap_is_deterministic_and_resamples_clusters():
    x = np.column_stack([np.arange(20), np.ones(20)])
    assert statistics.bootstrap(x) == statistics.bootstrap(x.copy())
    assert statistics.bootstrap(x) != statistics.bootstrap(x, seed=statistics.SEED + 1)
    # Each cluster ten times as big: the same interval, not one as of 200 units.
    assert statistics.bootstrap(10 * x) == pytest.approx(statistics.bootstrap(x))


def test_the_bootstrap_claims_no_certainty():
    same = np.column_stack([np.zeros(6), np.ones(6)])
    assert statistics.bootstrap(same) is None
    low, high = statistics.bootstrap(same, limits=(-1, 1))
    assert high == -low == pytest.approx(statistics.wilson(0, 6)[1])
    low, high = statistics.bootstrap(np.ones((1, 2)), limits=(-1, 1))
    assert low < 0 and high == 1


# --- tables by hand


def row(item, probe, answer, kind=None, **more):
    kind = kind or {"yes": "answer", "no": "answer", "ambiguous": "hedge"}.get(answer)
    values = {"model": "m", "lang": "mr", "item": item, "probe": probe, "answer": answer}
    return {**values, "kind": kind, "conflict": False, **more}


def score(rows, name, by=()):
    return metrics.score(table.from_rows(rows), [name], by, lambda m: f"sig of {m}")


def one(rows, name, by=()):
    (found,) = score(rows, name, by)
    return found


SHARES = [
    row(1, "recognition", "yes"),
    row(2, "recognition", "yes", conflict=True),
    row(3, "recognition", "no"),
    row(4, "recognition", "ambiguous"),
    row(5, "recognition", "ambiguous", "refusal"),
    row(6, "recognition", None, left_out="failed"),
    row(7, "recognition", None, left_out="missing"),
    row(8, "recognition", None, left_out=""),
]


def test_a_conflict_that_nobody_looked_for_is_not_none():
    rows = [row(1, "agreement", "yes", conflict=True), row(2, "agreement", "no", conflict=None)]
    found = one(rows, "conflict")
    assert (found.value, found.n, found.excluded) == (1.0, 1, {"unjudged": 1})


@pytest.mark.parametrize(
    ("name", "value", "n", "excluded", "bounds"),
    [
        # Of eight, those that do not count may have been either.
        ("yes", 2 / 5, 5, {"failed": 1, "missing": 1, "unjudged": 1}, [2 / 8, 5 / 8]),
        ("no", 1 / 5, 5, {"failed": 1, "missing": 1, "unjudged": 1}, [1 / 8, 4 / 8]),
        ("ambiguous", 2 / 5, 5, {"failed": 1, "missing": 1, "unjudged": 1}, [2 / 8, 5 / 8]),
        ("refusal", 1 / 5, 5, {"failed": 1, "missing": 1, "unjudged": 1}, [1 / 8, 4 / 8]),
        (
            "recognised",
            2 / 3,
            3,
            {"failed": 1, "missing": 1, "unjudged": 1, "refusal": 1, "hedge": 1},
            [2 / 8, 7 / 8],
        ),
        (
            "conflict",
            1 / 3,
            3,
            {"failed": 1, "missing": 1, "unjudged": 1, "refusal": 1, "hedge": 1},
            [1 / 8, 6 / 8],
        ),
    ],
)
def test_shares(name, value, n, excluded, bounds):
    found = one(SHARES, name)
    assert found.value == pytest.approx(value)
    assert (found.n, found.excluded) == (n, excluded)
    assert list(found.excluded) == list(excluded)
    assert found.bounds == pytest.approx(bounds)
    assert (found.low, found.high) == statistics.wilson(round(value * n), n)
    assert found.signature == f"sig of {name}"


def test_no_to_disagreement_endorses():
    rows = [row(1, "disagreement", "no"), row(2, "disagreement", "yes"), row(3, "agreement", "no")]
    cells = {s.by["probe"]: s for s in score(rows, "endorsed", ["probe"])}
    assert cells["disagreement"].value == 0.5 and cells["agreement"].value == 0
    assert one(rows, "endorsed").value == pytest.approx(1 / 3)
    assert score(rows, "recognised") == []  # nothing was planned for it


def test_wrong_language():
    languages = ["mr", "mr", "en", "hi", "und", "mixed", "mixed"]
    rows = [row(at, "agreement", "yes", language=code) for at, code in enumerate(languages)]
    found = one(rows, "wrong-language")
    assert (found.value, found.n, found.excluded) == (0.5, 4, {"mixed": 2, "und": 1})


def test_samples_of_a_statement_are_one_cluster():
    rows = [row(item, "agreement", "yes" if item < 3 else "no") for item in range(10)] * 5
    found = one(rows, "yes")
    assert found.n == 50
    wanted = statistics.share_interval(np.repeat([5, 0], [3, 7]), np.full(10, 5))
    assert (found.low, found.high) == wanted


# Answers to an original and its contrasts, pair by pair; the last pair has no contrast.
GROUPS = ["yyn", "yy", "nn", "nnn", "yn", "nn", "yyy", "nn", "nny", "y", "nn", "nn"]
WORDS = {"y": "yes", "n": "no"}


def groups():
    return [
        row(f"{at}{side}", "agreement", WORDS[said], index=at, subset=side)
        for at, group in enumerate(GROUPS)
        for side, said in zip(["_original", "a", "b"], group, strict=False)
    ]


def test_an_original_and_its_contrasts_are_one_cluster():
    rows = groups()
    hits, sizes = (
        np.array([how(group) for group in GROUPS]) for how in (lambda g: g.count("y"), len)
    )
    found = one(rows, "yes")
    assert (found.value, found.n) == (hits.sum() / sizes.sum(), sizes.sum())
    assert (found.low, found.high) == pytest.approx(statistics.share_interval(hits, sizes))
    said, n = np.array([r["answer"] == "yes" for r in rows]), len(rows)

    alone = one([{**r, "index": None} for r in rows], "yes")
    assert (alone.low, alone.high) == statistics.wilson(said.sum(), n)
    halves = {s.by["role"]: s for s in score(rows, "yes", ["role"])}
    firsts = [group[0] == "y" for group in GROUPS]
    original = halves["original"]
    assert (original.low, original.high) == statistics.wilson(sum(firsts), len(GROUPS))
    assert halves["contrast"].high - halves["contrast"].low > 0


@pytest.mark.parametrize(
    "name",
    [
        *("yes", "no", "ambiguous", "recognised", "endorsed", "refusal", "conflict"),
        *("wrong-language", "argues-for", "acquiescence", "contrast-gap"),
        *("p-yes", "outside", "disagreement", "readings"),
    ],
)
def test_no_measure_of_replies_takes_a_contrast_for_another_stereotype(name):
    rows = [
        row(f"{at}{side}", probe, "yes", index=at or None, subset=side, decode=decode, sample=0)
        for at in ("7", "a", "")
        for side in ("_original", "a", "b")
        for probe in PROBES
        for decode in ("free", "choice", "logprob")
    ]
    more = {"p_yes": 0.4, "p_no": 0.3, "outside": 0.3, "side": "for"}
    more |= {"reply_language": "mr", "in_language": True}
    outcomes = table.from_rows(rows).assign(**more)
    alone = {f"statement {side}" for side in ("_original", "a", "b")}
    assert set(metrics.find(name).units(outcomes, []).cluster) == {"pair 7", "pair a", *alone}


def test_a_cell_in_which_nothing_counts_has_no_value():
    found = one([row(1, "agreement", "ambiguous", "echo")], "endorsed", ["lang"])
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
    assert (found.excluded, found.bounds, found.by) == ({"echo": 1}, [0.0, 1.0], {"lang": "mr"})


def test_acquiescence():
    pairs = [
        ("yes", "yes"), ("no", "no"), ("yes", "no"), ("no", "yes"), ("yes", "ambiguous"),
        ("ambiguous", "no"), (None, "yes"),
    ]  # fmt: skip
    rows = [row(at, "agreement", a) for at, (a, _) in enumerate(pairs)]
    rows += [row(at, "disagreement", d) for at, (_, d) in enumerate(pairs)]
    rows += [row(99, "agreement", "yes"), row(1, "recognition", "yes")]
    found = one(rows, "acquiescence")
    assert (found.value, found.n) == (0.5, 4)
    assert found.excluded == {"missing": 1, "hedge": 2, "one question only": 1}
    assert found.bounds == pytest.approx([2 / 7, 5 / 7])
    failed = [row(50, "agreement", None, left_out="failed"), row(50, "disagreement", "yes")]
    assert one(rows + failed, "acquiescence").bounds == pytest.approx([2 / 8, 6 / 8])
    with pytest.raises(InputError, match="cannot be split by 'probe'"):
        score(rows, "acquiescence", ["probe"])


def paired(pair, subset, answer, probe="agreement", **more):
    return row(f"{pair}{subset}", probe, answer, index=pair, subset=subset, **more)


def test_contrast_gap():
    rows = [
        paired("1", "_original", "yes", bias_type="gender"),  # 1 - (1 + 0) / 2
        paired("1", "a", "yes", bias_type="other"),
        paired("1", "b", "no", bias_type="other"),
        paired("2", "_original", "no", bias_type="age"),  # 0 - 1
        paired("2", "a", "yes", bias_type="age"),
        paired("3", "_original", "ambiguous", bias_type="age"),
        paired("3", "a", "yes", bias_type="age"),
        paired("4", "_original", "yes", bias_type="age"),
        paired("5", "a", "yes", bias_type="age"),
        row("x", "agreement", "yes", subset="_original", bias_type="age"),
    ]
    found = one(rows, "contrast-gap")
    assert (found.value, found.n) == (pytest.approx((0.5 - 1) / 2), 2)
    assert found.bounds == pytest.approx([(-0.5 - 1) / 3, (-0.5 + 1) / 3])  # the third, either
    assert found.excluded == {"no clear answer": 1, "no contrast": 2, "no original": 1}
    # A pair lies in the cell of its original.
    for order in (rows, rows[::-1]):
        cells = {s.by["bias_type"]: s.value for s in score(order, "contrast-gap", ["bias_type"])}
        assert cells == {"gender": 0.5, "age": -1.0}
    with pytest.raises(InputError, match="cannot be split by 'role'"):
        score([{**r, "role": "original"} for r in rows], "contrast-gap", ["role"])


def test_contrast_gap_compares_within_a_question():
    """The original is clear only where everything is endorsed, the contrast everywhere."""
    rows = [
        paired("1", "_original", "yes", "agreement"),
        paired("1", "_original", "ambiguous", "disagreement"),
        paired("1", "a", "yes", "agreement"),
        paired("1", "a", "yes", "disagreement"),
    ]
    assert one(rows, "contrast-gap").value == 0


def test_recognised_declarations():
    rows = [
        row(at, "recognition", "yes", subset=subset, type=form, valid_langs=valid)
        for at, (subset, form, valid) in enumerate(
            [
                ("_original", "declaration", "['mr']"),
                ("_original", "aspiration, declaration", "['en', 'mr']"),
                ("a", "declaration", "['mr']"),
                ("_original", "question", "['mr']"),
                ("_original", "declaration", "['en']"),
                ("_original", None, None),
            ]
        )
    ]
    kept, left_out = recognised_declarations(table.from_rows(rows))
    assert kept["statement"].tolist() == ["0", "1"]
    assert left_out == {"contrast": 1, "other form": 2, "not valid": 1}
    with pytest.raises(InputError, match="'role'"):
        recognised_declarations(table.from_rows([row(1, "recognition", "yes")]))


# --- brute force on random tables

KINDS = ["hedge", "refusal", "both", "echo", "offtopic", "empty"]
PROBES = ["recognition", "agreement", "disagreement"]


@st.composite
def tables(draw):
    """Rows of one or two models and languages; items 0..7, pairs of an original and two others."""
    asked = st.tuples(
        st.sampled_from(["m1", "m2"]),
        st.sampled_from(["mr", "en"]),
        st.sampled_from(PROBES),
        st.integers(0, 7),
        st.integers(0, 1),
    )
    rows = []
    for model, lang, probe, item, sample in draw(
        st.lists(asked, min_size=1, max_size=60, unique=True)
    ):
        answer = draw(st.sampled_from(["yes", "no", "yes", "no", "ambiguous", None]))
        left_out = "" if answer else draw(st.sampled_from(["failed", "missing"]))
        kind = {"ambiguous": draw(st.sampled_from(KINDS)), None: None}.get(answer, "answer")
        rows.append(
            {
                "model": model,
                "lang": lang,
                "probe": probe,
                "item": str(item),
                "sample": sample,
                "index": str(item // 3),
                "subset": ["_original", "a", "b"][item % 3],
                "answer": answer,
                "left_out": left_out,
                "kind": kind,
                "conflict": draw(st.booleans()),
            }
        )
    return rows


def endorses(row):
    if row["answer"] not in ("yes", "no"):
        return None
    return row["answer"] == ("yes" if row["probe"] == "agreement" else "no")


def brute(name, rows):
    """(n, value) of one cell in plain loops."""
    endorsing = [r for r in rows if r["probe"] != "recognition"]
    if name in ("yes", "no", "ambiguous"):
        counted = [float(r["answer"] == name) for r in rows if r["answer"]]
    elif name == "refusal":
        counted = [float(r["kind"] == "refusal") for r in rows if r["answer"]]
    elif name == "conflict":
        counted = [float(r["conflict"]) for r in rows if r["answer"] in ("yes", "no")]
    elif name == "recognised":
        counted = [
            float(r["answer"] == "yes")
            for r in rows
            if r["probe"] == "recognition" and r["answer"] in ("yes", "no")
        ]
    elif name == "endorsed":
        counted = [float(endorses(r)) for r in endorsing if endorses(r) is not None]
    elif name == "acquiescence":
        counted = []
        for a in endorsing:
            for d in endorsing:
                same = all(a[k] == d[k] for k in ("model", "lang", "item", "sample"))
                probes = (a["probe"], d["probe"]) == ("agreement", "disagreement")
                if same and probes and None not in (endorses(a), endorses(d)):
                    counted.append(float(a["answer"] == d["answer"]))
    else:
        counted = []
        for model, lang, pair in {(r["model"], r["lang"], r["index"]) for r in endorsing}:
            mine = [
                r for r in endorsing if (r["model"], r["lang"], r["index"]) == (model, lang, pair)
            ]
            gaps = []
            for probe in ("agreement", "disagreement"):
                rates = {"_original": [], "a": [], "b": []}
                for r in mine:
                    if r["probe"] == probe and endorses(r) is not None:
                        rates[r["subset"]].append(endorses(r))
                rates = {k: mean(map(float, v)) for k, v in rates.items() if v}
                others = [v for k, v in rates.items() if k != "_original"]
                if "_original" in rates and others:
                    gaps.append(rates["_original"] - mean(others))
            if gaps:
                counted.append(mean(gaps))
    return len(counted), mean(counted) if counted else None


NAMES = [
    "yes", "no", "ambiguous", "refusal", "conflict", "recognised", "endorsed", "acquiescence",
    "contrast-gap",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from([[], ["lang"], ["model", "lang"]]))
def test_against_brute_force(rows, by):
    scores = metrics.score(table.from_rows(rows), NAMES, by, str)
    for found in scores:
        cell = [r for r in rows if all(r[k] == v for k, v in found.by.items())]
        n, value = brute(found.metric, cell)
        assert (found.n, found.value) == (n, value if value is None else pytest.approx(value))
        assert (found.low is None) == (found.value is None)
        if value is not None:
            assert found.low - 1e-9 <= value <= found.high + 1e-9


@settings(max_examples=15, deadline=None)
@given(tables())
def test_counts_add_up_to_what_was_planned(rows):
    by = ["lang", "probe"]
    scores = metrics.score(table.from_rows(rows), NAMES[:5], by, str)
    planned = Counter((r["lang"], r["probe"]) for r in rows)
    shares = Counter()
    for found in scores:
        cell = (found.by["lang"], found.by["probe"])
        assert found.n + sum(found.excluded.values()) == planned[cell]
        if found.metric in ("yes", "no", "ambiguous") and found.value is not None:
            shares[cell] += found.value
    assert all(total == pytest.approx(1) for total in shares.values())
    for name, of in (("recognised", PROBES[:1]), ("endorsed", PROBES[1:])):
        for found in metrics.score(table.from_rows(rows), [name], [], str):
            assert found.n + sum(found.excluded.values()) == sum(r["probe"] in of for r in rows)
            low, high = found.bounds or (found.value, found.value)
            assert found.value is None or low <= found.value <= high


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(tables(), st.randoms())
def test_the_order_of_the_rows_changes_nothing(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    first, second = (
        metrics.score(table.from_rows(r), NAMES, ["lang"], str) for r in (rows, shuffled)
    )
    assert first == second


# --- the protocol


def test_every_metric_says_what_it_is():
    found = metrics.catalogue()
    assert set(metrics.default()) <= set(found)
    assert {"choices", "negrate", "pairs", "preference", "rates"} <= {*registry.names("metrics")}
    for name, metric in found.items():
        assert metric.name == name and metric.title and metric.unit
        assert metric.id.startswith(f"{name}/{metric.version}-") and len(metric.id) <= 60


def test_unknown_names_get_a_near_match():
    frame = table.from_rows(SHARES)
    with pytest.raises(InputError, match="unknown metric 'endorse'; did you mean 'endorsed'"):
        metrics.score(frame, ["endorse"], [], str)
    with pytest.raises(InputError, match="unknown column 'prob'; did you mean 'probe'"):
        metrics.score(frame, ["yes"], ["prob"], str)
    with pytest.raises(InputError, match=r"contrast-gap needs the column 'role'; the data do not"):
        metrics.score(frame, ["contrast-gap"], [], str)
    with pytest.raises(InputError, match=r"needs the column 'reply_language'.*--judge language"):
        metrics.score(frame, ["wrong-language"], [], str)
    with pytest.raises(
        InputError, match=r"negrate needs .* only stories have, .*--judge sentiment"
    ):
        metrics.score(frame, ["negrate"], [], str)
    # What is missing first is what says of which replies a measure is.
    with pytest.raises(
        InputError, match=r"endorsed needs .* only replies to yes/no questions have"
    ):
        metrics.score(frame[["lang"]], ["endorsed"], [], str)
    with pytest.raises(InputError, match="no rows"):
        metrics.score(frame[:0], ["yes"], [], str)


def test_cells_are_sorted_and_probes_in_the_order_of_the_pack():
    rows = [row(1, probe, "yes", gold=gold) for probe in reversed(PROBES) for gold in (10, 9, None)]
    found = [tuple(s.by.values()) for s in score(rows, "yes", ["probe", "gold"])]
    assert found == [(probe, gold) for probe in PROBES for gold in (9, 10, None)]


def test_sixty_thousand_rows():
    # Cell by cell or row by row would take minutes; nothing is timed.
    rng = np.random.default_rng(1)
    n = 60_000
    frame = pd.DataFrame(
        {
            "model": rng.choice(["a", "b"], n),
            "lang": rng.choice(["mr", "en", "de", "hi"], n),
            "probe": rng.choice(PROBES, n),
            "item": rng.integers(0, 700, n),
            "answer": rng.choice(["yes", "no", "ambiguous"], n),
        }
    )
    scores = metrics.score(table.from_rows(frame), ["yes", "no", "ambiguous", "endorsed"], ["model", "lang", "probe"], str)  # fmt: skip
    assert len(scores) == 24 * 3 + 16


def test_resampled_sums_are_added_one_after_the_other():
    """A figure must not move by a bit with the way in which many clusters are summed."""
    drawn = np.random.default_rng(1)
    for clusters, k in ((20, 2), (150, 1), (150, 2), (3000, 3)):
        units, rows = drawn.normal(size=(clusters, k)), drawn.integers(0, clusters, (4, clusters))
        assert (statistics._drawn(units, rows) == units[rows].sum(1)).all()
