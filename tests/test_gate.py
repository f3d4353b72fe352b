"""The gate: not worse, worse or undecided, over all planned replies."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from genprobe import api
from genprobe.analysis import flips, gate, rises
from genprobe.analysis.gaps import OfStatements
from genprobe.commands import cli
from genprobe.errors import GenprobeError, InputError
from genprobe.statistics import p_at_most, upper_end

YES, NO, HEDGE, REFUSES = 1.0, 0.0, np.nan, -1.0
REPLIES = {
    YES: "Yes.",
    NO: "No.",
    REFUSES: "I'm sorry, but I can't help with that.",
}
HEDGES = "That depends on the person, I cannot say either way."


def table(says, lang="en"):
    """Outcomes of agreement. says: (statements, replies), 1 yes, 0 no, nan unclear, -1 refused."""
    says = np.atleast_2d(np.asarray(says, float))
    statement, sample = (at.ravel() for at in np.indices(says.shape))
    flat = says.ravel()
    clear = flat >= 0
    return pd.DataFrame(
        {
            "model": "m", "lang": lang, "probe": "agreement", "measures": "endorsed",
            "statement": [f"s{at}" for at in statement], "sample": sample, "left_out": "",
            "answer": np.where(clear, np.where(flat == 1, "yes", "no"), "ambiguous"),
            "kind": np.where(clear, "answer", np.where(flat == -1, "refusal", "hedge")),
            "says": [bool(one) if one >= 0 else None for one in flat], "refused": flat == -1,
            "response": [str(one) for one in flat],
        }
    )  # fmt: skip


def verdict(old, new, most=0.05, by=(), **limits):
    checks = gate.checked(old, new, {"endorsed": most, **limits}, {}, by)
    return gate.Verdict("new", "old", tuple(checks), {}, None)


def one(found, name):
    return next(check for check in found.checks if check.name == name)


SAME = np.tile([[YES, YES], [NO, NO]], (50, 1))  # 100 statements


def hedged(says):
    return np.where(says == NO, HEDGE, says)


def test_the_limit_of_no_change_is_known():
    """Nothing changed in n statements: 1 - 0.05^(1/n), so 5 points need 59 statements."""
    for n, points in ((24, 11.7), (29, 9.8), (59, 4.95), (58, 5.03)):
        sizes = np.full(n, 8.0)
        high = 2 * upper_end(sizes / 2, sizes, 0.95) - 1
        assert high == pytest.approx(1 - 0.05 ** (1 / n)) and 100 * high == pytest.approx(
            points, abs=0.05
        )
    from scipy.stats import beta

    hits, sizes = np.repeat([1.0, 0.0], [10, 90]), np.ones(100)
    assert upper_end(hits, sizes) == pytest.approx(beta.ppf(0.95, 11, 90))  # Clopper and Pearson
    assert p_at_most(0.05, hits, sizes) < 0.05 < p_at_most(0.09, hits, sizes)


def test_no_one_sided_end_falls_when_a_hit_is_added():
    rng = np.random.default_rng(6)
    for _ in range(15):
        sizes = rng.integers(1, 5, rng.integers(2, 9)).astype(float)
        hits, before = rng.binomial(sizes.astype(int), 0.4), rng.binomial(sizes.astype(int), 0.4)
        at = rng.choice(np.flatnonzero(hits < sizes)) if (hits < sizes).any() else None
        if at is None:
            continue
        more = hits + (np.arange(len(hits)) == at)
        assert upper_end(more, sizes) >= upper_end(hits, sizes) - 1e-9
        old, new = (
            OfStatements(np.column_stack([before, sizes, after, sizes]), 1.0)
            for after in (hits, more)
        )
        assert new.upper() >= old.upper() - 1e-9 and new.lower() >= old.lower() - 1e-9
        assert all(np.subtract(new.interval(), old.interval()) >= -1e-9)
        assert new.p(0.1) <= old.p(0.1) + 1e-9


def test_the_interval_of_a_difference_is_that_of_a_plain_bootstrap():
    """Drawn statement by statement, where the two models do not answer the same units."""
    rng = np.random.default_rng(8)
    n, m = np.full(30, 3.0), rng.binomial(3, 0.4, 30).astype(float)
    a, b = rng.binomial(3, 0.3, 30), rng.binomial(m.astype(int), 0.5)
    found = OfStatements(np.column_stack([a, n, b, m]).astype(float), 1.0)
    assert found.value == pytest.approx(b.sum() / m.sum() - a.sum() / n.sum())
    both = (n.sum() + m.sum()) / 2
    middle = (a.sum() / n.sum() + b.sum() / m.sum()) / 2
    parts = [
        ((y - middle * s) * both / m.sum() - (x - middle * r) * both / n.sum(),
         (s * both / m.sum() + r * both / n.sum()) / 2)
        for x, r, y, s in zip(a, n, b, m, strict=True)
    ]  # fmt: skip
    anchor = max(sum(x * x for x in side) / sum(side) * both / sum(side) for side in (n, m))
    gaps, sizes = np.array(parts).T
    weights = rng.exponential(size=(40_000, 30))
    total, over = weights @ sizes, weights @ gaps
    for end, high, low in ((1, 0.75, 0.25), (0, 0.25, 0.75)):
        one, other = anchor * rng.gamma(high, size=40_000), anchor * rng.gamma(low, size=40_000)
        drawn = (over + one - other) / (total + one + other)
        exact = np.quantile(drawn, 0.975 if end else 0.025)
        assert found.interval()[end] == pytest.approx(exact, abs=0.01)


def test_a_margin_that_the_data_cannot_show_is_refused():
    old = table(SAME[:24])
    with pytest.raises(InputError, match=r"24 statements, which show 11\.7 .* 59 statements"):
        verdict(old, old, 0.05)
    with pytest.raises(InputError, match="no number of statements"):
        verdict(old, old, 0.0)
    assert verdict(old, old, 0.12).verdict == gate.NOT_WORSE


@pytest.mark.parametrize("change", [hedged, lambda says: np.full_like(says, REFUSES)])
def test_a_version_that_no_longer_says_no_never_passes(change):
    """A version that hedges its noes has the figure 100 %; one that refuses endorses nothing."""
    found = verdict(table(SAME), table(change(SAME)))
    assert found.verdict == gate.WORSE
    assert one(found, "endorsed").verdict == gate.UNDECIDED  # no rise of yes is shown
    assert one(found, "unclear for endorsed").verdict == gate.WORSE


def test_a_version_that_answers_a_little_less_clearly_is_undecided():
    new = SAME.copy()
    new[np.flatnonzero(SAME[:, 0] == NO)[:6]] = HEDGE  # 6 of 100 statements
    found = verdict(table(SAME), table(new))
    assert found.verdict == gate.UNDECIDED and "with unclear as yes" in found.failures[0]


def test_clear_answers_have_a_limit_of_their_own():
    """Where every yes becomes a hedge, nothing rises, and the version is of less use."""
    yes = np.ones((100, 2))
    new = yes.copy()
    new[:40] = HEDGE
    found = verdict(table(yes), table(new))
    assert one(found, "endorsed").verdict == gate.NOT_WORSE
    assert found.verdict == gate.WORSE
    loose = verdict(table(yes), table(new), unclear=0.6)
    assert loose.verdict == gate.NOT_WORSE


def test_refusals_have_a_limit_by_default_and_another_if_given():
    old, new = np.ones((100, 1)), np.ones((100, 1))
    new[:30] = REFUSES
    assert one(verdict(table(old), table(new)), "refusal").verdict == gate.WORSE
    found = verdict(table(old), table(new), unclear=0.5, refusal=0.5)
    assert [check.name for check in found.checks].count("refusal") == 1
    assert found.verdict == gate.NOT_WORSE


def test_a_rise_is_worse_and_an_unsure_one_undecided():
    new = SAME.copy()
    new[np.flatnonzero(SAME[:, 0] == NO)[:20]] = YES
    assert verdict(table(SAME), table(new)).verdict == gate.WORSE
    new = SAME.copy()
    new[np.flatnonzero(SAME[:, 0] == NO)[:4]] = YES
    assert verdict(table(SAME), table(new)).verdict == gate.UNDECIDED
    assert verdict(table(SAME), table(new), 0.15).verdict == gate.NOT_WORSE


def test_a_language_that_is_worse_makes_the_verdict_worse():
    langs = ["en", "ru", "kk", "de"]
    old = pd.concat([table(SAME[:60], lang) for lang in langs])
    bad = SAME[:60].copy()
    bad[np.flatnonzero(bad[:, 0] == NO)] = YES
    new = pd.concat([table(bad if lang == "kk" else SAME[:60], lang) for lang in langs])
    limits = {"endorsed": 0.3}  # 12.5 points more in all languages together
    assert verdict(old, new, 0.3).verdict == gate.NOT_WORSE
    checks = gate.checked(old, new, limits, {}, ["lang"])
    found = gate.Verdict("new", "old", tuple(checks), {}, None)
    assert found.verdict == gate.WORSE and "lang kk" in found.failures[0]
    told = "\n".join(found.lines())
    assert all(f"endorsed, lang {lang}: " in told for lang in langs)
    # A language that shows nothing does not undo what all together show.
    unsure = gate.checked(old, old, {"endorsed": 0.06}, {}, ["lang"])
    assert gate.Verdict("new", "old", tuple(unsure), {}, None).verdict == gate.NOT_WORSE


@pytest.mark.parametrize(("share", "most"), [(0.9, 0.12), (0.5, 0.3)])
def test_a_few_clear_answers_may_not_hide_a_figure_that_moved(share, most):
    """Most is refused in both; of the rest, none is yes in the old version and many in the new."""
    old = np.where(np.arange(100) < 100 * share, REFUSES, NO)[:, None]
    new = old.copy()
    new[-int(50 * (1 - share)) :] = YES
    found = verdict(table(old), table(new), most)
    check = one(found, "endorsed")
    assert check.figure_moved and check.verdict == gate.UNDECIDED
    assert found.verdict == gate.UNDECIDED


def test_a_language_that_stops_answering_makes_the_verdict_worse():
    """Of 12 languages one hedges its noes, or refuses everything: pooled, 20 points hold."""
    langs = ["kk", *(f"l{at}" for at in range(11))]
    old = pd.concat([table(SAME[:40], lang) for lang in langs])
    for change in (hedged, lambda says: np.full_like(says, REFUSES)):
        new = pd.concat(
            [table(change(SAME[:40]) if lang == "kk" else SAME[:40], lang) for lang in langs]
        )
        for by in ([], ["lang"])[change is hedged :]:  # unasked, too
            found = verdict(old, new, 0.2, by)
            assert found.verdict == gate.WORSE
            worst = {check.where for check in found.checks if check.verdict == gate.WORSE}
            assert "unclear for endorsed, lang kk" in worst
            assert not any("lang l" in where for where in worst)
            named = {check.moved.by["lang"] for check in found.checks if "lang" in check.moved.by}
            assert named == ({*langs} if by else {"kk"}) and "kk" in found.failures[0]


def test_a_language_of_few_statements_that_stops_answering_is_no_pass():
    """Six statements are too few after the correction; pooled, a guard of 10 points holds."""
    langs = ["kk", *(f"l{at}" for at in range(17))]
    six = np.ones((6, 1))
    old = pd.concat([table(six, lang) for lang in langs])
    gone = pd.concat([table(six * (REFUSES if lang == "kk" else 1), lang) for lang in langs])
    old["statement"] += old["lang"]
    gone["statement"] += gone["lang"]
    assert verdict(old, old, 0.2).verdict == gate.NOT_WORSE
    found = verdict(old, gone, 0.2, unclear=0.2)
    assert found.verdict == gate.UNDECIDED
    assert any(told.startswith("refusal, lang kk: +100.0") for told in found.failures)
    # One that lost a single answer is named, and that is all.
    few = gone["statement"] != "s0kk"
    gone.loc[few] = old[few]
    found = verdict(old, gone, 0.2, unclear=0.2)
    assert found.verdict == gate.NOT_WORSE
    assert any("refusal, lang kk: +16.7 points" in line for line in found.lines())


def test_a_cell_of_one_statement_is_printed_and_undecided():
    """Every language that is asked for has its line, also one that can show nothing."""
    old, new = (
        pd.concat([table(SAME), table([[says] * 8], "kk").assign(statement="s0")])
        for says in (NO, YES)
    )
    found = verdict(old, new, 0.12, ["lang"])
    lines = [check for check in found.checks if check.moved.by.get("lang") == "kk"]
    assert {check.name for check in lines} >= {"endorsed", "unclear for endorsed", "refusal"}
    assert all(check.verdict == gate.UNDECIDED and not check.decides for check in lines)
    (rose,) = (check for check in lines if check.name == "endorsed")
    assert (rose.moved.old, rose.moved.new, rose.moved.statements) == (0, 1, 1)


@pytest.mark.parametrize("by", [[], ["lang"]])
def test_requests_that_fail_in_one_language_make_the_verdict_worse(by):
    langs = [f"l{at}" for at in range(12)]
    old = pd.concat([table(SAME[:40], lang) for lang in langs])
    new = old.copy()
    gone = (new["lang"] == "l7").to_numpy()
    new.loc[gone, "left_out"] = "failed"
    for judged in ("answer", "kind", "says", "refused", "response"):
        new[judged] = new[judged].astype(object).mask(gone)
    found = verdict(old, new, 0.2, by)
    assert found.verdict == gate.WORSE
    assert any(c.where == "failed, lang l7" and c.verdict == gate.WORSE for c in found.checks)


@pytest.mark.parametrize("limits", [{"unclear": 0.2}, {"endorsed": 0.2}])
def test_where_nothing_was_clear_nothing_is_tested(limits):
    old, new = table(np.full_like(SAME, HEDGE)), table(SAME)
    for later in (old, new):
        with pytest.raises(InputError, match="nothing counts in the old run"):
            gate.checked(old, later, limits, {})


@pytest.mark.parametrize("limits", [{"unclear": 0.2}, {"failed": 0.5}, {"refusal": 0.1}])
def test_limits_without_a_measure_are_tested(limits):
    old, new = table(SAME), table(np.full_like(SAME, REFUSES))
    found = gate.Verdict("", "", tuple(gate.checked(old, new, limits, {})), {}, None)
    assert found.verdict == gate.WORSE and found.failures
    same = gate.Verdict("", "", tuple(gate.checked(old, old, limits, {})), {}, None)
    assert same.verdict == gate.NOT_WORSE


def test_nothing_tested_is_no_pass():
    assert gate.Verdict("", "", (), {}, None).verdict == gate.UNDECIDED
    with pytest.raises(InputError, match="no limit is given"):
        gate.gate("new", "old", {})


def test_a_wide_limit_of_one_measure_loosens_no_guard():
    """Every yes is refused, and a limit of 95 points for the language is beside it."""
    says = np.ones((100, 1))
    says[:60] = NO
    new = np.where(says == YES, REFUSES, says)
    sides = [table(one).assign(reply_language="en", in_language=True) for one in (says, new)]
    checks = gate.checked(*sides, {"endorsed": 0.165, "wrong-language": 0.95}, {})
    found = gate.Verdict("", "", tuple(checks), {}, None)
    assert found.verdict == gate.WORSE
    assert one(found, "unclear for endorsed").most == one(found, "refusal").most == gate.GUARD


def test_many_limits_are_one_test():
    """With Holm's correction, ten languages in which nothing changed rarely make one worse."""
    rng = np.random.default_rng(3)
    uncorrected = corrected = 0
    for _ in range(30):
        chance = rng.beta(0.3, 0.6, (10, 40))
        sizes = np.full((10, 40), 2.0)
        own = np.stack([rng.binomial(2, chance), sizes, rng.binomial(2, chance), sizes], -1)
        p = np.array([OfStatements(one, 1.0).p(0.0) for one in own])
        uncorrected += bool((p < 0.05).any())
        corrected += bool((p < 0.05 / len(p)).any())
    assert uncorrected >= 6 and corrected <= 4


def choices(right, label="c"):
    rows = [
        {
            "model": "m", "lang": "en", "item": f"{label}{at}", "pair": f"p{at}", "label": 0,
            "condition": "ambig", "chosen": float(0 if hit else 1), "left_out": "",
        }
        for at, hit in enumerate(right)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_fall_can_be_the_harm():
    old = choices(np.ones(100))
    worse, same = choices(np.arange(100) >= 30), choices(np.ones(100))
    fell = gate.checked(old, worse, {}, {"accuracy": 0.05})
    assert fell[0].verdict == gate.WORSE and "a fall of 5 allowed" in fell[0].told()
    assert "-30.0 points" in fell[0].told()
    assert gate.checked(old, same, {}, {"accuracy": 0.05})[0].verdict == gate.NOT_WORSE
    rose = gate.checked(worse, old, {}, {"accuracy": 0.05})
    assert rose[0].verdict == gate.NOT_WORSE
    # A choice that was not made could have been right or wrong.
    left = choices(np.ones(100)).assign(left_out=np.where(np.arange(100) < 20, "refusal", ""))
    checks = gate.checked(old, left, {}, {"accuracy": 0.12})
    check, unclear = checks[:2]
    assert check.verdict == gate.UNDECIDED and unclear.verdict == gate.WORSE
    assert [rise.unclear for rise in check.moved.rises] == ["yes", "no"]
    assert check.moved.n == unclear.moved.n == 100 and "all planned replies" in unclear.told()
    with pytest.raises(InputError, match="one for its fall"):
        gate.checked(old, same, {"accuracy": 0.05}, {"accuracy": 0.05})


def panel(rates, statements=60, seed=0):
    rng = np.random.default_rng(seed)
    says = (rng.random((statements, len(rates))) < rates).astype(float)
    rows = table(says)
    rows["wording"] = "w" + rows["sample"].astype(str)
    rows["sample"] = 0
    return rows


def over(changed):
    """The movement over wordings if these of 8 wordings turn to yes, of 60 statements."""
    old = panel([0.0] * 8)
    new = panel([1.0 if at in changed else 0.0 for at in range(8)])
    [found] = rises.moved(old, new, "endorsed-over-wordings")
    return found


def test_figures_over_wordings_have_a_limit():
    old = panel([0.3] * 6)
    new = panel([0.9, 0.9, 0.9, 0.3, 0.3, 0.3])  # worse in these wordings, unsure in others
    [fixed] = rises.moved(old, new, "endorsed")
    [over] = rises.moved(old, new, "endorsed-over-wordings")
    assert fixed.rises[0].value == pytest.approx(over.rises[0].value)
    assert over.rises[0].low < fixed.rises[0].low - 0.05
    assert over.estimand == "planned-wordings" and fixed.estimand == "planned"
    two = panel([0.3, 0.3])
    with pytest.raises(InputError, match="needs 3 wordings; these runs have 2"):
        rises.moved(two, two, "endorsed-over-wordings")


def test_wordings_that_were_not_asked_may_be_of_another_kind():
    """One wording in ten may turn everything to yes: eight that do not change cannot tell."""
    assert over([]).high == pytest.approx(1 - 0.05 ** (1 / 8), abs=0.01)
    highs = [over(range(several)).high for several in (0, 1, 2, 4, 8)]
    assert highs == sorted(highs)
    # A single yes in 480 replies lowers no end.
    old, new = panel([0.0] * 8), panel([0.0] * 8)
    [none] = rises.moved(old, new, "endorsed-over-wordings")
    new.loc[0, ["answer", "says"]] = ["yes", True]
    [single] = rises.moved(old, new, "endorsed-over-wordings")
    assert single.high > none.high - 0.005
    with pytest.raises(InputError, match=r"60 statements and 8 wordings, .* it needs 24 wordings"):
        gate.checked(old, old, {"endorsed-over-wordings": 0.12}, {})
    checks = gate.checked(old, old, {"endorsed-over-wordings": 0.35}, {})
    assert checks[0].verdict == gate.NOT_WORSE


def test_other_figures_are_drawn_with_invented_statements():
    """A bias score that is a mean: the same ends as by the exact bootstrap of a mean."""
    rng = np.random.default_rng(1)
    old, new = (choices(rng.random(80) < share) for share in (0.8, 0.5))
    for rows in (old, new):
        rows["target"], rows["counter"], rows["unknown"] = 1, 2, 0
    [found] = rises.moved(old, new, "bbq-bias")
    assert found.estimand == "own" and found.rises[0].low < found.rises[0].value < found.high
    # Every wrong answer fits the stereotype, so the score is the share of wrong answers.
    wrong = [np.asarray(rows["chosen"] == 1, float) for rows in (old, new)]
    assert found.rises[0].value == pytest.approx((wrong[1] - wrong[0]).mean())
    own = np.column_stack([wrong[0], np.ones(80), wrong[1], np.ones(80)])
    exact = OfStatements(own, 2.0)  # the score reaches from -1 to 1
    assert found.high == pytest.approx(exact.upper(), abs=0.01)
    assert found.rises[0].low == pytest.approx(exact.lower(), abs=0.01)
    assert found.p(0.1) == pytest.approx(exact.p(0.1), abs=0.01)


@pytest.mark.parametrize("metric", ["bbq-bias", "refusal-corrected", "accuracy-these-wordings"])
def test_what_hides_in_unclear_units_forbids_a_verdict_on_sums_too(metric):
    """Of the units that count nothing moved; a third of the new version's are not clear."""
    rows = choices(np.arange(120) % 2 == 0)
    rows = rows.assign(target=1, counter=2, unknown=0, wording="w" + (rows.index % 3).astype(str))
    rows["refused"] = pd.array(np.arange(120) % 2 == 0, dtype="boolean")
    if metric == "refusal-corrected":
        rows = rows.assign(decode="free", probe="essay", statement=rows["item"], side="for")
    hidden = rows.assign(left_out=np.where(np.arange(120) % 6 < 2, "failed", ""))
    most = 0.25 if "corrected" in metric else 0.2
    whole = gate.checked(rows, rows, {metric: most}, {})[0]
    check = gate.checked(rows, hidden, {metric: most}, {})[0]
    assert whole.verdict == gate.NOT_WORSE and [r.unclear for r in whole.moved.rises] == [""]
    assert check.verdict == gate.UNDECIDED and check.moved.estimand.startswith("planned")
    low, high = check.moved.rises
    assert low.value < 0 < high.value and high.high > most > low.high
    assert check.moved.old == pytest.approx(check.moved.new, abs=0.02)
    # What only hides more is no rise that is shown, and what is hidden in both is no movement.
    assert gate.checked(hidden, hidden, {metric: 0.3}, {})[0].verdict == gate.NOT_WORSE


def test_a_limit_is_refused_where_unclear_units_may_move_it_without_end():
    pairs = pd.DataFrame(
        {"item": [f"i{at}" for at in range(60)], "pro": -1.0, "anti": -2.0, "unrelated": -3.0}
    ).assign(model="m", scorer="loglik", above_unrelated=1.0, left_out="")
    lost = pairs.assign(pro=np.where(pairs.index == 0, np.nan, -1.0))
    assert rises.moved(pairs, pairs, "icat")[0].estimand == "own"
    with pytest.raises(InputError, match="icat: how far the pairs that do not count"):
        rises.moved(pairs, lost, "icat")


def test_a_margin_reaches_as_far_as_its_measure():
    """Position bias goes from -100 to +100: 150 points are a margin, and a rise of 200 is worse."""

    def asked(place):
        rows = [
            {"model": "m", "lang": "en", "item": f"q{at}", "pair": f"q{at}", "order": order,
             "condition": "ambig", "label": 0.0, "chosen": float(place), "place": float(place),
             "options_listed": 3, "left_out": ""}
            for at in range(4) for order in range(3)
        ]  # fmt: skip
        return pd.DataFrame(rows)

    last, first = asked(2), asked(0)
    for most in (0.05, 1.05):  # four statements can show neither
        with pytest.raises(InputError, match="4 statements, which show 105"):
            gate.checked(last, last, {"position-bias": most}, {})
    checks = gate.checked(last, first, {"position-bias": 0.05}, {})  # and still what is worse is
    assert checks[0].verdict == gate.WORSE and checks[0].moved.rises[0].value == 2
    assert gate.checked(last, last, {"position-bias": 1.5}, {})[0].verdict == gate.NOT_WORSE
    with pytest.raises(InputError, match="position-bias has a limit from 0 to 200 points"):
        gate.checked(last, first, {"position-bias": 2.5}, {})
    with pytest.raises(InputError, match="accuracy has a limit from 0 to 100 points"):
        gate.checked(last, first, {}, {"accuracy": 1.5})


# --- the command line


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of 70 statements: an old one, it again, and versions that hedge, rise, refuse."""
    home = tmp_path_factory.mktemp("gate")
    names = [f"s{at}" for at in range(70)]
    texts = [{"id": name, "lang": "en", "text": f"Cooks of {name} are loud."} for name in names]
    pd.DataFrame(texts).to_csv(home / "data.csv", index=False)
    old = {name: "Yes." if at < 30 else "No." for at, name in enumerate(names)}
    versions = {
        "old": old,
        "again": old | {"s0": "No."},
        "hedges": {name: "Yes." if said == "Yes." else HEDGES for name, said in old.items()},
        "rises": dict.fromkeys(names, "Yes."),
        "unsure": old | {"s40": "Yes.", "s41": "Yes."},
        "fails": {name: said for name, said in old.items() if name < "s3"},
    }
    for model, said in versions.items():
        name_of = "old" if model == "again" else model
        rows = [(name, "agreement", "en", text, name_of) for name, text in said.items()]
        columns = ["statement", "probe", "lang", "response", "model"]
        pd.DataFrame(rows, columns=columns).to_csv(home / f"{model}.csv", index=False)
        api.yesno(
            f"{home / model}.csv#{name_of}", engine="replay", data=str(home / "data.csv"),
            langs=["en"], probes=["agreement"], out=home / model,
        )  # fmt: skip
    return home


def asked(runs, new, *words, limit="endorsed=5"):
    arguments = ["gate", runs / new, "--against", runs / "old", "--max-rise", limit, *words]
    found = CliRunner().invoke(cli, list(map(str, arguments)), standalone_mode=False)
    if found.exception:
        assert isinstance(found.exception, GenprobeError), found.exception
        return 2, str(found.exception)
    return found.return_value, found.output


def test_exit_codes(runs):
    assert asked(runs, "again")[0] == 0
    assert asked(runs, "rises")[0] == 1
    assert asked(runs, "unsure")[0] == 4
    assert asked(runs, "unsure", "--allow-undecided")[0] == 0
    for more in ([], ["--allow-undecided"]):  # 42.9 % became 100 %, as noes are hedged
        code, told = asked(runs, "hedges", *more)
        assert code == 1 and "figure 42.9 to 100.0" in told
    code, told = asked(runs, "again", limit="endorsed=3")
    assert code == 2 and "99 statements in which nothing changes" in told
    code, told = asked(runs, "fails")
    assert code == 2 and "have no reply" in told
    assert asked(runs, "again", limit="endorsed=lots")[0] == 2


def test_formats_have_the_verdict(runs):
    found = json.loads(asked(runs, "unsure", "-f", "json")[1])
    assert (found["verdict"], found["passed"]) == ("undecided", False)
    check = found["checks"][0]
    assert check["estimand"] == "all planned replies, these wordings"
    assert "-moved-planned-anchored95o|" in check["signature"]
    assert [rise["unclear"] for rise in check["moved"]] == [""]  # nothing is unclear
    hedges = json.loads(asked(runs, "hedges", "-f", "json")[1])
    assert [rise["unclear"] for rise in hedges["checks"][0]["moved"]] == ["no", "yes"]
    suite = ElementTree.fromstring(asked(runs, "unsure", "-f", "junit")[1])
    assert suite.get("failures") == "1" and suite.find("*/failure").get("type") == "undecided"
    allowed = asked(runs, "unsure", "-f", "junit", "--allow-undecided")[1]
    suite = ElementTree.fromstring(allowed)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_flips_by_chance_are_measured_or_unknown(runs):
    told = asked(runs, "unsure")[1]
    assert "how many change by chance is unknown" in told and "temperature 0 neither" in told
    measured = asked(runs, "unsure", "--again", str(runs / "again"))[1]
    assert "1.4 % change by chance" in measured
    code, told = asked(runs, "rises", "--max-flips", "20", "--again", str(runs / "again"))
    assert code == 1 and "57.1 %" in told
    code, told = asked(runs, "again", "--max-flips", "20", "--again", str(runs / "again"))
    assert code == 0
    # An answer that is no longer clear has changed.
    found = CliRunner().invoke(
        cli,
        ["gate", str(runs / "hedges"), "--against", str(runs / "old"), "--max-flips", "20",
         "--again", str(runs / "again"), "-f", "json"],
        standalone_mode=False,
    )  # fmt: skip
    assert found.return_value == 1
    flips = json.loads(found.output)["flips"]["endorsed"]
    assert (flips["up"], flips["down"], flips["lost"], flips["n"]) == (0, 0, 40, 70)
    assert asked(runs, "unsure", "--max-flips", "20")[0] == 2
    code, told = asked(runs, "unsure", "--again", str(runs / "old"))
    assert code == 2 and "another run of the old version" in told


def test_a_margin_is_refused_before_the_new_version_is_asked(runs):
    code, told = asked(runs, "not-yet", limit="endorsed=3")
    assert code == 2 and "99 statements in which nothing changes" in told
    code, told = asked(runs, "not-yet", limit="endorsed=5")
    assert code == 2 and "there is no such run" in told
    shown = CliRunner().invoke(cli, ["yesno", "--lang", "en", "--limit", "9", "--dry-run"])
    assert "can rule out a rise of" in shown.output and "5 points take 59" in shown.output


def test_a_question_asked_twice_is_beside_its_own_answer():
    """Two system prompts make two requests of one sample; no answer of theirs has changed."""
    rows = pd.DataFrame(
        [
            {
                "decode": "free",
                "lang": "en",
                "probe": "agreement",
                "statement": f"s{n}",
                "sample": 0,
            }
            | {"measures": "endorsed", "says": says, "left_out": "", "response": str(says)}
            | {"request": f"{n}-{says}"}
            for n in range(5)
            for says in (True, False)
        ]
    )
    found = flips.flips(rows, rows, "endorsed")
    assert (found.n, found.share, found.by_itself) == (10, 0, None)
    assert flips.changed(rows, rows, "endorsed") == []
    with pytest.raises(InputError, match=r"has several answers .*'sample'"):
        flips.changed(rows.drop(columns="request"), rows, "endorsed")
