"""Tests of figures that share statements: against R, statsmodels, scipy and simulation."""

import importlib.util
import itertools
import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from click.testing import CliRunner
from scipy import stats as theirs
from statsmodels.formula.api import ols
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower, normal_sample_size_one_tail, ttest_power

from genprobe.analysis import compare, distributions, paired, power, significance, variance
from genprobe.commands import cli
from genprobe.datasets import statements
from genprobe.errors import InputError, RunError
from genprobe.outcomes import table as table_of
from genprobe.records import Score
from genprobe.render import formats
from genprobe.resources import packs
from genprobe.statistics import adjusted, turned

# --- analysis of variance: published data

# Crampton 1947, J. Nutrition 33:491, as R's ToothGrowth has it: teeth by supplement and dose.
TOOTH = {
    ("VC", 0.5): "4.2 11.5 7.3 5.8 6.4 10 11.2 11.2 5.2 7",
    ("VC", 1.0): "16.5 16.5 15.2 17.3 22.5 17.3 13.6 14.5 18.8 15.5",
    ("VC", 2.0): "23.6 18.5 33.9 25.5 26.4 32.5 26.7 21.5 23.3 29.5",
    ("OJ", 0.5): "15.2 21.5 17.6 9.7 14.5 10 8.2 9.4 16.5 9.7",
    ("OJ", 1.0): "19.7 23.3 23.6 26.4 20 25.2 25.8 21.2 14.5 27.3",
    ("OJ", 2.0): "25.5 26.4 22.4 24.5 24.8 30.9 26.4 27.3 29.4 23",
}
# Days in hospital by duration of treatment and weight gained (Kutner et al., Applied Linear
# Statistical Models, problem 19.18), and R's car::Anova of log(days + 1), type II, without the
# first three: both as statsmodels tests its own against (stats/tests/test_anova.py).
KIDNEY = {
    (1, 1): "0 2 1 3 0 2 0 5 6 8",
    (1, 2): "2 4 7 12 15 4 3 1 5 20",
    (1, 3): "15 10 8 5 25 16 7 30 3 27",
    (2, 1): "0 1 1 0 4 2 7 4 0 3",
    (2, 2): "5 3 2 0 1 1 3 6 7 9",
    (2, 3): "10 8 12 3 7 15 4 9 6 1",
}


def table(data, *names):
    rows = [(*cell, float(value)) for cell, values in data.items() for value in values.split()]
    frame = pd.DataFrame(rows, columns=[*names, "value"])
    return frame.assign(statement=range(len(frame)))


def effects(found):
    return {" × ".join(one.factors): one for one in found.effects}


def test_anova_is_that_of_r():
    found = variance.anova(table(TOOTH, "supp", "dose"), ["supp", "dose"], resamples=99)
    # R: anova(lm(len ~ supp * factor(dose), ToothGrowth)); balanced, so all types are one.
    want = {
        "supp": (1, 205.35, 15.572, 0.0002312),
        "dose": (2, 2426.43, 92.000, 4.046e-18),
        "supp × dose": (2, 108.32, 4.107, 0.0218603),
    }
    for name, one in effects(found).items():
        df, squares, f, p = want[name]
        assert one.df == df
        assert one.sum_sq == pytest.approx(squares, abs=0.005)
        assert one.f == pytest.approx(f, abs=0.0005)
        assert one.p_independent == pytest.approx(p, rel=1e-3)
        assert one.partial_eta2 == pytest.approx(squares / (squares + 712.11), abs=1e-5)
    assert found.df_residual == 54


def test_anova_is_type_ii_where_cells_differ_in_size():
    data = table(KIDNEY, "duration", "weight").drop([0, 1, 2])
    data["value"] = np.log(data["value"] + 1)
    found = variance.anova(data, ["duration", "weight"], resamples=99)
    want = {
        "duration": (3.067066, 5.667033, 0.02106078),
        "weight": (13.27205, 12.26141, 4.487909e-05),
        "duration × weight": (0.1905093, 0.1760025, 0.8391231),
    }
    for name, one in effects(found).items():
        assert (one.sum_sq, one.f, one.p_independent) == pytest.approx(want[name], rel=2e-6)
        assert one.sum_sq / one.partial_eta2 - one.sum_sq == pytest.approx(27.60181, abs=1e-5)


def study(seed=0, sizes=(6, 4, 8, 3), langs=4, models=3, there=0.8, effect=0.0):
    """Values whose statements share an effect of their own, of the first model more."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    rows = [
        (f"k{kind}", f"l{lang}", f"m{model}", f"s{at:03}")
        for at, kind in enumerate(kinds)
        for lang in range(langs)
        for model in range(models)
        if lang == 0 or rng.random() < there
    ]
    frame = pd.DataFrame(rows, columns=["bias_type", "lang", "model", "statement"])
    own = dict(zip(frame["statement"].unique(), rng.normal(size=len(kinds)), strict=True))
    value = frame["statement"].map(own) + rng.normal(size=len(frame))
    return frame.assign(value=value + effect * (frame["model"] == "m0"))


def test_anova_is_statsmodels_with_three_factors():
    data = study()
    found = effects(variance.anova(data, resamples=99))
    fit = ols("value ~ (C(bias_type) + C(lang) + C(model)) ** 2", data).fit()
    want = sm.stats.anova_lm(fit, typ=2)
    names = {"bias_type": "C(bias_type)", "lang": "C(lang)", "model": "C(model)"}
    for name, one in found.items():
        row = want.loc[":".join(names[part] for part in name.split(" × "))]
        assert (one.df, one.sum_sq, one.f) == pytest.approx((row["df"], row["sum_sq"], row["F"]))
        assert one.p_independent == pytest.approx(row["PR(>F)"])
    assert len(found) == 6


def test_an_empty_cell_costs_its_degree_of_freedom():
    data = study()
    data = data[(data["bias_type"] != "k1") | (data["lang"] != "l2")]
    found = effects(variance.anova(data, resamples=99))["bias_type × lang"]
    less = ols("value ~ C(lang) * C(model) + C(bias_type) * C(model)", data).fit()
    with pytest.warns(Warning, match="rank-deficient"):
        full = ols("value ~ (C(bias_type) + C(lang) + C(model)) ** 2", data).fit()
    f, p, df = full.compare_f_test(less)
    assert found.df == df == 3 * 3 - 1
    assert (found.f, found.p_independent) == pytest.approx((f, p))


def test_one_level_is_no_factor_and_one_statement_no_level():
    data = study(models=1)
    lone = data[data["bias_type"] == "k3"].assign(bias_type="k9", statement="s999").head(2)
    found = variance.anova(pd.concat([data, lone]), resamples=99)
    assert found.dropped == ("model",)
    assert list(effects(found)) == ["bias_type", "lang", "bias_type × lang"]
    assert found.left_out == {"bias_type with one statement": 2}
    assert found.n == len(data) and found.statements == 21
    with pytest.raises(InputError, match="no factor has two levels with two statements each"):
        variance.anova(data, ["model"])
    with pytest.raises(InputError, match="nothing to compare the effects with"):
        variance.anova(data.assign(value=1.0))
    for value in (data["lang"] == "l0", (data["lang"] == "l0") ^ (data["bias_type"] == "k1")):
        with pytest.raises(InputError, match="the factors explain all"):
            variance.anova(data.assign(value=value.astype(float)))


def test_too_few_statements_have_no_clustered_p():
    """With 24 statements and 18 languages it was wrong in 3.6 % of studies without a difference,
    and in 6.5 % of them for bias type and language."""
    data = study(sizes=(3, 3), langs=4, models=2)
    found = effects(variance.anova(data, resamples=9))
    assert found["lang"].p is None and found["lang × model"].p is None
    assert found["lang"].p_independent is not None
    assert found["model"].p is not None and found["bias_type"].p is not None


def test_assumptions_are_looked_at():
    data = study(3)
    normal, equal, independent = variance.anova(data, resamples=9).assumptions
    fit = ols("value ~ (C(bias_type) + C(lang) + C(model)) ** 2", data).fit()
    assert normal.value == pytest.approx(theirs.shapiro(fit.resid).pvalue, rel=1e-3)
    groups = data.groupby(["bias_type", "lang", "model"])["value"]
    cells = [part.to_numpy() for _, part in groups if len(part) > 1]
    assert equal.value == pytest.approx(theirs.levene(*cells, center="median").pvalue)
    assert independent.holds is False and 0.2 < independent.low < independent.value < 0.8
    skewed = data.assign(value=np.exp(2 * data["value"]))
    assert variance.anova(skewed, resamples=9).assumptions[0].holds is False
    wide = data.assign(value=data["value"] * np.where(data["model"] == "m0", 5, 1))
    assert variance.anova(wide, resamples=9).assumptions[1].holds is False
    once = data.drop_duplicates("statement")
    _, _, independent = variance.anova(once, ["bias_type"], resamples=9).assumptions
    assert independent.holds is True and independent.found == "one value a statement"


def test_the_intraclass_correlation_is_the_textbook_one():
    # Shrout & Fleiss 1979, Psychological Bulletin 86:420, Table 2: six targets, four judges;
    # ICC(1,1) = .17 with mean squares 11.24 between and 6.26 within.
    marks = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = variance._independent(np.ravel(marks).astype(float), np.full(6, 4))
    assert found.value == pytest.approx((11.24 - 6.26) / (11.24 + 3 * 6.26), abs=5e-4)


# --- resampling


def test_turned_signs_and_the_swap_test_are_scipy_s():
    rng = np.random.default_rng(2)
    apart = rng.normal(0.3, 1, 12)
    exact = theirs.permutation_test(
        (apart,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    ).pvalue
    assert paired.swapped(apart) == pytest.approx(exact, abs=0.01)
    # A 0/1 unit a statement: McNemar's mid-p value.
    for only_a, only_b in ((3, 12), (1, 7), (9, 14)):
        apart = np.repeat([-1.0, 1.0, 0.0], [only_a, only_b, 30])
        want = paired.mcnemar(only_a, only_b)[1]
        assert paired.swapped(apart) == pytest.approx(want, abs=0.012)
    assert paired.swapped(np.zeros(5)) == 1.0
    sums = turned(np.array([[1.0], [2.0]]), 4000)
    assert set(np.ravel(sums)) == {-3.0, -1.0, 1.0, 3.0} and abs(sums.mean()) < 0.1


def test_the_wild_bootstrap_sees_what_is_there_and_repeats():
    data = study(5, sizes=(10, 10), effect=0.9)
    one, two = (effects(variance.anova(data, resamples=499)) for _ in range(2))
    assert one["model"].p == two["model"].p <= 0.01
    assert one["bias_type"].p > 0.05 and one["lang × model"].p > 0.05
    shuffled = data.sample(frac=1, random_state=1)
    assert effects(variance.anova(shuffled, resamples=499))["model"].p == one["model"].p


# --- Kolmogorov and Smirnov


def test_pairwise_ks_compares_values_and_no_join():
    data = study(1)
    found = distributions.pairwise_ks(data, "lang", resamples=9)
    assert list(zip(found["a"], found["b"], strict=True)) == list(
        itertools.combinations(["l0", "l1", "l2", "l3"], 2)
    )
    for row in found.to_dict("records"):
        x, y = (data.loc[data["lang"] == row[side], "value"] for side in "ab")
        want = theirs.ks_2samp(x, y)
        assert (row["statistic"], row["p_independent"]) == pytest.approx(tuple(want)[:2])
        assert (row["n_a"], row["n_b"]) == (len(x), len(y))  # a join has n_a x n_b rows
    p = found["p"].tolist()
    assert adjusted(p, "bonferroni") == pytest.approx(np.minimum(1, 6 * found["p"]))
    assert adjusted(p, "holm") == pytest.approx(multipletests(p, method="holm")[1])


def mid_p(distances):
    """Of the first, among all."""
    apart = np.array(distances) - distances[0]
    return np.mean((apart > 1e-9) + 0.5 * (np.abs(apart) <= 1e-9))


def test_ks_swaps_whole_statements():
    """Against every swap there is."""
    rng = np.random.default_rng(4)
    names = np.repeat(["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"], 6)
    group = np.tile(["a", "a", "a", "b", "b", "b"], 8)
    value = rng.normal(size=48).round(1) + 0.6 * (group == "b") * (names != "s0")
    data = pd.DataFrame({"statement": names, "group": group, "value": value})
    far = []
    for swap in itertools.product([False, True], repeat=8):
        turned_group = (group == "a") ^ np.repeat(swap, 6)
        far.append(theirs.ks_2samp(value[turned_group], value[~turned_group]).statistic)
    want = mid_p(far)
    [row] = distributions.pairwise_ks(data, "group").to_dict("records")
    assert row["p"] == pytest.approx(want, rel=0.25)
    assert row["statements"] == 8 and row["mean_a"] == pytest.approx(value[group == "a"].mean())


def test_ks_deals_out_statements_that_are_of_one_group_only():
    """Of nine statements, three are of one group: against all 84 ways to deal them."""
    rng = np.random.default_rng(6)
    own = np.array([1.5, 2.0, 1.0, 0, 0.5, -1, 0.2, -0.4, 0.1])
    value = (own[:, None] + 0.2 * rng.normal(size=(9, 4))).ravel()
    unit = np.repeat(np.arange(9), 4)
    data = pd.DataFrame({"statement": unit, "value": value, "group": np.where(unit < 3, "a", "b")})
    far = []
    for chosen in itertools.combinations(range(9), 3):
        inside = np.isin(unit, chosen)
        far.append(theirs.ks_2samp(value[inside], value[~inside]).statistic)
    want = mid_p(far)
    [row] = distributions.pairwise_ks(data, "group").to_dict("records")
    assert row["p"] == pytest.approx(want, abs=0.004) and row["p_independent"] < 1e-5


def test_resamples_leave_room_for_the_correction():
    assert distributions.enough(3) == 9999
    for pairs in (120, 2880):
        assert pairs / (distributions.enough(pairs) + 1) <= 0.05 / 2
    data = study(1).assign(value=lambda d: d["value"] + 9 * (d["lang"] == "l0"))
    found = distributions.pairwise_ks(data, "lang").set_index(["a", "b"])["p"]
    assert len(found) * found["l0", "l1"] < 0.05 < len(found) * found["l1", "l2"]
    alone = distributions.pairwise_ks(data[data["lang"] == "l0"], "lang")
    assert len(alone) == 0 and "p" in alone


# --- several tests


def test_p_values_are_corrected_for_all_that_are_given():
    # R: p.adjust(c(.01, .02, .03, .04, .05), "holm")
    given = [
        Score("swap-p", {"of": m}, p, None, None, 9, {}, None, "x")
        for m, p in zip("abcde", (0.01, 0.02, 0.03, 0.04, 0.05), strict=True)
    ]
    other = Score("difference", {"of": "a"}, 0.1, 0.0, 0.2, 9, {}, None, "x")
    none = Score("swap-p", {"of": "f"}, None, None, None, 0, {}, None, "x")
    found = significance.corrected([other, *given, none], ("bonferroni", "holm"))
    by = {(s.metric, s.by["of"]): s for s in found}
    holm = [by["holm-p", m].value for m in "abcde"]
    assert holm == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert by["bonferroni-p", "b"].value == pytest.approx(0.1)
    assert by["holm-p", "a"].n == 5 and ("holm-p", "f") not in by
    assert significance.corrected([other, given[0]]) == [other, given[0]]
    assert "tests  holm-p" in formats.render(significance.corrected(given), "table")


# --- power


def test_power_of_0_and_1_is_connor_s():
    """One 0/1 unit a statement: Connor 1987, from the discordant share and the difference."""
    apart = np.repeat([1.0, -1.0, 0.0], [30, 20, 150])  # a quarter is discordant
    found = power.power_paired(apart, np.ones(200), 10)
    null, other = math.sqrt(0.25), math.sqrt(0.25 - 0.01)
    want = normal_sample_size_one_tail(0.1, 0.8, 0.025, null, other)
    assert found.needed == math.ceil(want)
    assert found.needed_low < found.needed < found.needed_high
    assert found.power_low < found.power < found.power_high
    at = power.power_paired(apart, np.ones(200), 100 * found.detectable, 0)
    assert at.power == pytest.approx(0.8, abs=1e-6) and at.needed in (200, 201)
    assert at.needed_low is at.power_low is None
    assert power.power_paired(apart, np.ones(200), 5).needed > found.needed
    # No discordance was seen: a difference of 10 points takes one of 10 % at least.
    none = power.power_paired(np.zeros(200), np.ones(200), 10)
    null, other = math.sqrt(0.1), math.sqrt(0.1 - 0.01)
    assert none.needed == math.ceil(normal_sample_size_one_tail(0.1, 0.8, 0.025, null, other))
    # A model alone, at 40 %; the other is independent, at 50 %.
    hits = np.repeat([1.0, 0.0], [80, 120])
    null = math.sqrt(0.4 * 0.5 + 0.6 * 0.5)
    want = normal_sample_size_one_tail(0.1, 0.8, 0.025, null, math.sqrt(null**2 - 0.01))
    assert power.power_single(hits, np.ones(200), 10).needed == math.ceil(want)


def test_power_of_several_units_is_that_of_students_t():
    rng = np.random.default_rng(0)
    apart = rng.integers(-6, 7, 48).astype(float)
    # The variance as often too large as too small, not on average right.
    sd = apart.std() / 18 * math.sqrt(48 / (48 - 5 / 3))
    found = power.power_paired(apart, np.full(48, 18.0), 10)
    assert found.power == pytest.approx(ttest_power(0.1 / sd, 48, 0.05), rel=1e-9)
    want = TTestPower().solve_power(0.1 / sd, power=0.8, alpha=0.05)
    assert found.needed == pytest.approx(want, abs=1)
    at = power.power_paired(apart, np.full(48, 18.0), 100 * found.detectable)
    assert at.power == pytest.approx(0.8, abs=1e-6) and at.needed == pytest.approx(48, abs=1)
    # What is seen already is no part of how differences vary.
    more = power.power_paired(apart + 2, np.full(48, 18.0), 10)
    assert (more.power, more.needed) == (found.power, found.needed)
    # Far off, scipy's lower tail is nan.
    assert power.power_paired(apart, np.full(48, 18.0), 40).power == pytest.approx(1)


def test_power_of_one_run_is_of_the_share_that_the_other_would_have():
    """Near 0 and 1 the other varies more than this one: against both, drawn with one clustering."""
    units = np.full(20_000, 10.0)
    rng = np.random.default_rng(3)
    for share, other in ((0.03, 0.08), (0.4, 0.45), (0.97, 0.92)):
        each = [rng.beta(5 * p, 5 * (1 - p), len(units)) for p in (share, other)]
        a, b = (rng.binomial(10, p).astype(float) for p in each)
        told = power.power_single(a, units, 5, resamples=0)
        assert told.needed == pytest.approx(power.power_paired(b - a, units, 5, 0).needed, rel=0.05)
        single = a.var() / 100 * 2 * ((1.959964 + 0.841621) / 0.05) ** 2
        assert (told.needed > 1.5 * single) == (share != 0.4)
    # Of what is no share, the other varies as this one.
    value = np.random.default_rng(0).normal(size=300)
    told = power.power_single(value, np.ones(300), 10, (-math.inf, math.inf))
    sd = math.sqrt(2 * value.var() * 300 / (300 - 5 / 3))
    assert told.power == pytest.approx(ttest_power(0.1 / sd, 300, 0.05))


def test_where_nothing_varies_power_is_that_of_units_taken_for_one():
    want = math.ceil(((1.959964 + 0.841621) / 0.1) ** 2 * 0.09 + 1.959964**2 / 2)
    for share in (0.0, 1.0):
        found = power.power_single(np.full(48, 18 * share), np.full(48, 18.0), 10)
        assert found.needed == want and found.needed_low is None
    for apart in (0.0, 0.9):
        found = power.power_paired(np.full(48, apart), np.full(48, 18.0), 10)
        assert found.needed == want
    # Swaps of four statements cannot be significant.
    few = power.power_paired(np.array([-9.0, 0, 1, 8]), np.full(4, 18.0), 40)
    assert few.power == 0 and few.detectable is None and few.needed >= 5


def test_power_counts_statements_and_not_replies():
    rng = np.random.default_rng(0)
    apart = rng.choice([-1.0, 0.0, 1.0], 400, p=[0.2, 0.6, 0.2])
    once = power.power_paired(apart, np.ones(400), 5)
    # Eight replies that always say the same are one; eight that are unlike are nearly eight.
    alike = power.power_paired(8 * apart, np.full(400, 8.0), 5)
    assert alike.needed == pytest.approx(once.needed, rel=0.01) and alike.n == 400
    unlike = rng.choice([-1.0, 0.0, 1.0], (400, 8), p=[0.2, 0.6, 0.2]).sum(1)
    assert power.power_paired(unlike, np.full(400, 8.0), 5).needed < once.needed / 6
    for points in (0, 100, -5, math.nan):
        with pytest.raises(InputError, match="give a number from 0 to 100"):
            power.power_paired(apart, np.ones(400), points)
    with pytest.raises(InputError, match="1 statement cannot show how statements vary"):
        power.power_paired(apart[:1], np.ones(1), 5)


def test_power_of_what_is_no_hit_asks_for_no_discordance():
    """P(yes) may differ by 5 points in every statement, and two answers may not."""
    found = power.power_paired(np.tile([-0.04, 0.04], 50), np.ones(100), 5)
    assert found.needed < 10
    hits = np.zeros(100)
    hits[:2] = -1, 1
    least = math.ceil(normal_sample_size_one_tail(0.05, 0.8, 0.025, 0.05**0.5, 0.0475**0.5))
    assert power.power_paired(hits, np.ones(100), 5).needed == least > 100


# --- simulation: benchmarks/inference.py in small


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).parents[1] / "benchmarks" / "inference.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_inference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


STUDIES = 200


def rates(rows):
    return {
        of: tuple(float(np.mean(np.asarray(p) <= 0.05)) for p in (plain, ours))
        for _, of, plain, ours in rows
    }


def held(rate, of=""):
    """Not too many for 5 %, nor too few (an interval may), but for one study in a thousand."""
    low, high = theirs.binom.ppf([0.0005, 0.9995], STUDIES, 0.05) / STUDIES
    return (low <= rate or "interval" in of) and rate <= high


def test_false_positives_of_anova(bench):
    found = rates(itertools.islice(bench.anova(STUDIES, 3, False, (15,) * 4, "small", 4, 3), 6))
    assert len(found) == 6 and all(held(ours) for _, ours in found.values())
    assert found["bias type"][0] > 0.5  # as published: statements taken for independent
    assert found["language x model"][0] < 0.02


@pytest.mark.slow
def test_false_positives_of_ks_and_pairs(bench):
    layout = bench.Layout.of((12, 9), 3, 2)
    [(plain, ours)] = rates(bench.ks(STUDIES, 3, "small", "kind", layout)).values()
    assert held(ours) and plain > 0.15
    found = rates(bench.paired(STUDIES, 3, "small", 60, 24, sentences=4))
    assert all(held(ours, of) for of, (_, ours) in found.items()) and len(found) == 3
    assert found["swap, by sentence"][0] > 0.1  # sentences of a statement taken for statements
    found = rates(bench.paired(STUDIES, 3, "small", 150, 1, False))
    assert all(held(ours, of) for of, (_, ours) in found.items()) and "McNemar, mid-p" in found


def test_power_is_what_it_is_told_to_be(bench, monkeypatch):
    monkeypatch.setattr(bench, "TOLD", 1000)  # statements: a few studies tell enough
    for size, units, points in ((155, 1, 10), (48, 18, 8), (24, 36, 12)):
        for alone in (False, True):
            [one] = bench.curve(STUDIES, 1, "small", size, units, points, alone)
            assert 0.2 < one.told < 0.8  # where the curve is steep
            assert one.found == pytest.approx(one.told, abs=3 * (0.25 / STUDIES) ** 0.5)
            assert one.again == pytest.approx(0.8, abs=3.3 * (0.16 / STUDIES) ** 0.5)


# --- the command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Recorded replies to a part of the built-in statements, in English and Kazakh."""
    folder = tmp_path_factory.mktemp("inference")
    items, _ = statements.load("builtin", ["en", "kk"])
    rng = np.random.default_rng(1)
    words = {"en": ("Yes.", "No."), "kk": ("Иә.", "Жоқ.")}
    with (folder / "recorded.jsonl").open("w") as file:
        for item in items:
            for wording in packs.load_pack().wordings[item.lang].values():
                reply = words[item.lang][int(rng.random() < 0.6)]
                file.write(json.dumps({"prompt": wording.ask(item.text), "response": reply}) + "\n")
    engine = ["--engine", "replay", "--model", str(folder / "recorded.jsonl")]
    line = ["yesno", *engine, "--lang", "en", "--lang", "kk", "--limit", "12", "-q"]
    done = CliRunner().invoke(cli, [*line, "--out", str(folder / "one")])
    assert done.exit_code == 0, done.output
    return folder / "one"


def copied(run, folder, **changes):
    shutil.copytree(run, folder)
    spec = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(spec | changes))
    return folder


def compared(*arguments, code=0):
    done = CliRunner().invoke(cli, ["compare", *map(str, arguments)])
    assert (done.exit_code == 0) == (code == 0), done.output
    return done if code else done.stdout


def scores(*arguments):
    found = json.loads(compared(*arguments, "-f", "json"))
    rows = found["scores"] if isinstance(found, dict) else found
    return [Score.from_dict(row) for row in rows]


@pytest.mark.slow
def test_the_command_tests(run, tmp_path):
    found = scores(run, "--test", "anova", "--between", "lang,probe", "-q")
    rows = {(s.metric, s.by.get("effect")): s for s in found}
    assert {e for _, e in rows if e} == {"lang", "probe", "lang × probe"}
    mean = rows["endorsed", None]
    assert mean.n == rows["F", "lang"].n and 0 < mean.low < mean.value < mean.high < 1
    assert mean.n + sum(mean.excluded.values()) == 2 * 12 * 2
    assert rows["clustered-p", "lang"].signature.startswith("metric:endorsed/3+anova2-wild9999s1|")
    assert rows["holm-p", "lang"].n == 3
    assert {s.by["assumption"] for s in found if "assumption" in s.by} == {
        *("normal residuals", "equal variances", "independent values")
    }
    found = scores(run, "--test", "ks", "--between", "lang", "--by", "probe", "-q")
    tested = [s for s in found if s.metric == "clustered-p"]
    assert [(s.by["a"], s.by["b"]) for s in tested] == [("en", "kk")] * 2
    assert [s.n for s in found if s.metric == "bonferroni-p"] == [2, 2]

    found = scores(run, "--between", "lang", "--metric", "endorsed")
    assert [s.metric for s in found] == ["a", "b", "difference", "swap-p"]
    other = copied(run, tmp_path / "other", model="org/other")
    found = {s.metric: s for s in scores(run, other, "--metric", "endorsed")}
    assert found["difference"].value == 0.0 and found["swap-p"].value == 1.0

    single = {s.metric: s for s in scores(run, "--power", "5")}
    pair = {s.metric: s for s in scores(run, other, "--power", "5")}
    assert single["statements-needed"].by["b"] == "another" and single["power"].n == 6
    assert pair["power"].n == 6  # of twelve statements: an original and its contrast are one
    # No difference varies, so the units of a statement count as one: variance d - d², and Guenther's
    # correction of the normal quantiles.
    z, d = sum(theirs.norm.ppf((0.975, 0.8))), 0.05
    assert pair["statements-needed"].value == math.ceil(z**2 * (d - d**2) / d**2 + 1.96**2 / 2)
    assert single["statements-needed"].low <= single["statements-needed"].value
    assert 0 < single["power"].value < single["detectable"].value * 3
    said = "independent of it, as one run cannot show more"
    assert said in compared(run, "--power", "5")
    assert said not in compared(run, other, "--power", "5")
    for form in ("table", "csv", "latex"):
        assert compared(run, "--test", "anova", "--between", "lang,probe", "-f", form)
    text = compared(run, "--test", "anova", "--between", "lang,probe")
    assert (
        "clustered-p" in text and "for comparison only" in text and text.count("clustered-p") == 2
    )


def test_an_original_and_its_contrasts_are_one_statement():
    rng = np.random.default_rng(0)
    rows = [
        {"lang": "en", "probe": "agreement", "item": f"{pair}{role}", "pair": pair, "role": role}
        for pair in range(40)
        for role in ("original", "contrast")
    ]
    sides = []
    for name in ("m", "n"):
        said = np.repeat(rng.integers(0, 2, 40), 2)  # the same of both
        answers = [{"model": name, "answer": ("no", "yes")[hit]} for hit in said]
        both = [row | answer for row, answer in zip(rows, answers, strict=True)]
        sides.append(table_of.from_rows(pd.DataFrame(both, dtype=object)))
    [found] = paired.paired(*sides, "endorsed")
    halves = [side[side["role"] == "original"] for side in sides]
    [half] = paired.paired(*halves, "endorsed")
    assert (found.n, half.n) == (80, 40) and found.mid_p is None
    assert found.swap_p == half.swap_p and half.mid_p is not None
    assert (found.low, found.high) == pytest.approx((half.low, half.high))


def test_as_many_swaps_as_the_correction_takes(run, monkeypatch):
    """With fewer, the least p times the number of tests could not fall below 5 %."""
    drawn = []
    tested = paired.tested

    def spy(metric, cell, resamples):
        drawn.extend([resamples] if len(cell.pairs) else [])
        return tested(metric, cell, resamples)

    monkeypatch.setattr(paired, "tested", spy)
    monkeypatch.setattr(distributions, "TURNS", 9)
    found = compare.compare(run, between="lang", by="probe")
    assert len(drawn) > 3 and len({s.n for s in found if s.metric == "holm-p"}) == 1
    assert min(drawn) + 1 >= 2 * len(drawn) / 0.05
    assert {f"+swap{draws}s1|" for draws in drawn} == {"+swap" + _how(s, "swap") for s in found}
    for test, how in (("ks", "ks-swap"), ("anova", "anova2-wild")):
        asked = {"metrics": ["endorsed", "yes"], "by": "probe"}
        found = compare.compare(run, test=test, between="lang", **asked)
        tests = sum(s.metric == "clustered-p" for s in found)
        assert tests == 5  # no statement is endorsed by recognising it
        assert {s.n for s in found if s.metric == "holm-p"} == {tests}
        draws = {int(_how(s, how).removesuffix("s1|")) for s in found}
        assert len(draws) == 1 and min(draws) + 1 >= 2 * tests / 0.05


def _how(score, test):
    """The draws of a signature: 9999s1|"""
    return score.signature.split(test)[1].split("|")[0] + "|"


def test_a_cell_in_which_nothing_pairs_is_told(run, tmp_path):
    other = copied(run, tmp_path / "other", model="org/other")
    asked = [json.loads(line) for line in (run / "requests.jsonl").read_text().splitlines()]
    kazakh = {row["id"] for row in asked if row["lang"] == "kk"}
    path = other / "judgments" / "yesno.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["request"] in kazakh:
            row |= {"label": "ambiguous", "fields": {"kind": "refusal", "conflict": False}}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = scores(run, other, "--metric", "endorsed", "--by", "lang")
    kk = {s.metric: s for s in found if s.by["lang"] == "kk"}
    assert list(kk) == ["a", "b", "difference"]
    assert (kk["a"].n, kk["b"].n, kk["b"].excluded) == (24, 0, {"not counted": 24})
    assert kk["b"].value is kk["difference"].value is None
    assert kk["b"].bounds == [0, 1]
    gaps = -kk["a"].value, 1 - kk["a"].value  # if what b left unclear was no, and yes
    assert kk["difference"].bounds == pytest.approx(gaps)
    assert not any(s.metric == "holm-p" for s in found)  # one test is left
    done = CliRunner().invoke(cli, ["compare", str(run), str(other), "--power=5", "--by=lang"])
    assert "lang kk: fewer than two statements" in done.stderr and "en " in done.stdout


def test_the_command_says_what_it_cannot_do(run, tmp_path):
    def said(*arguments):
        return str(compared(*arguments, code=2).exception)

    assert "is compared with nothing" in said(run)
    assert "--power plans a paired comparison" in said(run, "--test", "ks", "--power", "5")
    assert "compares the values of one column" in said(run, run, "--between", "lang,probe")
    assert "there is one model" in said(run, "--test", "ks")
    assert "give a number from 0 to 100" in said(run, "--power", "0")
    assert "did you mean 'lang'" in said(run, "--test", "ks", "--between", "lng")
    assert "no unit counts for two values of bias_type" in said(run, "--between", "bias_type")
    for more in (["--test", "ks"], [], ["--power", "5"]):
        assert "is given twice" in said(run, run, *more)
    shutil.rmtree(copied(run, tmp_path / "unread") / "judgments")
    for more in (["--test", "anova"], ["--power", "5"], ["--between", "lang"]):
        assert "no reply has been judged; run `genprobe judge`" in said(tmp_path / "unread", *more)
    again = copied(run, tmp_path / "again")
    assert "compares rows of one run" in said(run, again, "--between", "lang")
    assert "cannot be used with --paradigms" in said(run, run, "--paradigms", "--power", "5")
    with pytest.raises(InputError, match="unknown test 'kss'"):
        compare.compare(run, test="kss")


def test_every_two_runs_must_have_asked_alike(run, tmp_path):
    other = copied(run, tmp_path / "b", model="org/b")
    warm = copied(run, tmp_path / "c", model="org/c", temperature=0.7)
    for test in compare.TESTS:
        with pytest.raises(
            RunError, match=r"differ in more than the model \(temperature: .* 0.7\)"
        ):
            compare.compare(run, [other, warm], test=test)
    # A judge that the first run lacks must be the same in the others.
    judged = copied(run, tmp_path / "d", model="org/d")
    shutil.rmtree(tmp_path / "b" / "judgments")
    meta = next((judged / "judgments").glob("yesno.json"))
    row = json.loads(meta.read_text())
    meta.write_text(json.dumps(row | {"signature": "yesno@0"}))
    with pytest.raises(RunError, match="different judges 'yesno'"):
        compare.compare(other, [run, judged])
