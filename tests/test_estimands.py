"""`compare`: table, ranking, p-values and chances answer one question."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_gate import HEDGE, HEDGES, NO, table

from genprobe import api, metrics
from genprobe.analysis import compare, paired, ranking
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.statistics import p_at_most


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A model; one that hedges a quarter of its noes; one that is never clear."""
    home, rng = tmp_path_factory.mktemp("estimands"), np.random.default_rng(2)
    names = [f"s{at}" for at in range(160)]
    texts = [{"id": name, "lang": "en", "text": f"Cooks of {name} are loud."} for name in names]
    pd.DataFrame(texts).to_csv(home / "data.csv", index=False)
    says = ["Yes." if rng.random() < 0.45 else "No." for _ in names]
    versions = {
        "a": says,
        "b": [HEDGES if one == "No." and rng.random() < 0.25 else one for one in says],
        "c": [HEDGES] * len(names),
    }
    for model, said in versions.items():
        rows = [(name, "agreement", "en", text) for name, text in zip(names, said, strict=True)]
        columns = ["statement", "probe", "lang", "response"]
        pd.DataFrame(rows, columns=columns).to_csv(home / f"{model}.csv", index=False)
        api.yesno(
            str(home / f"{model}.csv"), engine="replay", data=str(home / "data.csv"),
            langs=["en"], probes=["agreement"], out=home / model,
        )  # fmt: skip
    return home


def compared(*arguments):
    found = CliRunner().invoke(cli, ["compare", *map(str, arguments), "-q"])
    assert found.exit_code == 0, found.output
    return found.output


def test_hedged_noes_give_no_order(runs):
    """The same replies, of which b hedges some: the difference is no longer 0.0 beside `b > a`."""
    words = runs / "a", runs / "b", "--metric", "endorsed"
    found = json.loads(compared(*words, "-f", "json"))
    scores = {score["metric"]: score for score in found["scores"]}
    for side in "ab":
        run = CliRunner().invoke(
            cli, ["score", str(runs / side), "--metric", "endorsed", "-f", "json", "-q"]
        )
        [own] = json.loads(run.output)
        assert scores[side]["value"] == own["value"] == found["values"][f"{side}.csv"]
        assert scores[side]["n"] == own["n"]
    difference = scores["difference"]
    assert difference["value"] == pytest.approx(scores["b"]["value"] - scores["a"]["value"]) != 0
    assert difference["value"] == -found["pairs"][0]["difference"] * (
        1 if found["pairs"][0]["a"] == "a.csv" else -1
    )
    assert difference["bounds"][0] == pytest.approx(0) and difference["bounds"][1] > 0.1
    assert found["ranking"] is None and found["rank_chances"] is None
    assert found["pairs"][0]["unclear_may_account"] and not found["pairs"][0]["differ"]
    told = compared(*words)
    assert "no ranking of b.csv, a.csv" in found["told"]
    assert all("unclear replies may account for it" in text for text in (told, found["told"]))
    assert all("-own-" in score["signature"] for score in found["scores"])
    assert found["estimand"] == "units that count in each, these wordings"


def test_a_model_that_is_not_ranked_is_named(runs):
    told = compared(runs / "a", runs / "b", runs / "c", "--metric", "endorsed")
    assert "not ranked, as they have no figure: c.csv" in told


def test_the_interval_of_the_table_is_that_of_the_ranking_over_wordings():
    rng = np.random.default_rng(0)
    a, b = panel(rng, 0.5, 8, 60, 0.4), panel(rng, 0.5, 8, 60, 0.4, "other")
    [two] = paired.paired(a, b, "endorsed-over-wordings")
    name, [(_, one, _)] = compare.ranked({"m": a, "other": b})
    assert name == "endorsed-over-wordings"
    [pair] = one.pairs
    sign = 1 if pair.a == "other" else -1
    assert two.difference == pytest.approx(sign * pair.difference)
    assert sorted((sign * two.low, sign * two.high)) == pytest.approx(
        [pair.low, pair.high], abs=2e-3
    )
    assert dict(zip(one.models, one.values, strict=True)) == pytest.approx(
        {"m": two.a, "other": two.b}
    )
    # For these wordings alone, table and ranking agree, too, and say so.
    [fixed] = paired.paired(a, b, "endorsed")
    _, [(_, same, _)] = compare.ranked({"m": a, "other": b}, "endorsed")
    assert abs(same.pairs[0].difference) == pytest.approx(abs(fixed.difference))
    assert "in the wordings asked" in same.over and "new wordings" in one.over
    few = [rows[rows["wording"].isin(["w0", "w1"])] for rows in (a, b)]
    with pytest.raises(InputError, match="needs 3 wordings"):
        paired.paired(*few, "endorsed-over-wordings")


def panel(rng, share, several, statements, apart, model="m"):
    """Replies to a panel. apart: standard deviation of the model's reaction to a wording."""
    logit = np.log(share / (1 - share)) + apart * rng.standard_normal((1, several))
    says = rng.random((statements, several)) < 1 / (1 + np.exp(-logit))
    rows = table(says.astype(float)).assign(model=model)
    rows["wording"] = "w" + rows["sample"].astype(str)
    return rows.assign(sample=0)


@pytest.mark.slow
def test_models_that_are_equal_over_wordings_are_called_different_in_5_percent():
    rng = np.random.default_rng(1)
    fixed = over = 0
    for _ in range(60):
        sides = [panel(rng, 0.4, 8, 60, 0.6, model) for model in ("m", "other")]
        over += paired.paired(*sides, "endorsed-over-wordings")[0].gap_p < 0.05
        [cell] = paired.cells_of(*sides, "endorsed")
        fixed += paired.tested("endorsed", cell, 199).swap_p < 0.05
    assert fixed >= 10 and over <= 7  # 10 or more of 60 for these wordings alone
    chance = p_at_most(0.05, np.repeat([1.0, 0.0], [over, 60 - over]), np.ones(60))
    assert chance > 0.01


def test_bounds_hold_the_difference():
    rng = np.random.default_rng(4)
    for _ in range(30):
        sides = []
        for model in ("m", "other"):
            says = rng.choice([1.0, NO, HEDGE], (12, 2), p=rng.dirichlet([1, 1, 1]))
            sides.append(table(says).assign(model=model))
        [found] = paired.paired(*sides, "endorsed")
        if found.difference is not None and found.bounds is not None:
            low, high = found.bounds
            assert low <= found.difference <= high
            assert found.bounds_a[0] <= found.a <= found.bounds_a[1]
        both = pd.concat(sides, ignore_index=True)
        for _, one, _ in ranking.of_outcomes(both, "endorsed"):
            assert not (one.groups and ranking.hides(one.pairs[0].bounds))


def test_without_unclear_replies_there_are_no_bounds():
    says = np.tile([[1.0, NO]], (8, 1))
    [found] = paired.paired(table(says), table(1 - says).assign(model="other"), "endorsed")
    assert found.bounds is None and metrics.find("endorsed").pairable


def hedging(wordings="abc", lost=""):
    """Two models: one always clear; the other hedges nearly wherever it would say no."""
    rows = []
    for n, wording, model in itertools.product(range(40), wordings, "ab"):
        if model == "b" and wording == lost:
            continue
        answer = "yes" if n % 5 < 2 else "no"
        if model == "b" and answer == "no" and n % 10 != 9:
            answer = "ambiguous"
        rows.append(
            {"model": model, "statement": f"s{n}", "lang": "en", "probe": "agreement",
             "wording": wording, "answer": answer,
             "kind": "answer" if answer != "ambiguous" else "hedge"}
        )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("lost", ["", "c"])
def test_figures_of_sums_have_the_bounds_and_the_n_of_their_units(lost):
    found = api.compare(hedging(lost=lost), metrics=["endorsed", "endorsed-these-wordings"])
    plain, alike = (s for s in found if s.metric == "difference")
    assert alike.by["of"] == "endorsed-these-wordings"
    assert (alike.n, alike.excluded) == (plain.n, plain.excluded)
    assert alike.bounds == pytest.approx(plain.bounds)  # as many units in each wording
    assert alike.bounds[0] <= 0 < alike.low and "sure)" not in " ".join(found.finding.lines)


def test_bounds_of_a_gap_hold_every_way_to_fill_what_is_unclear():
    rows = [
        {"model": m, "lang": "en", "item": f"q{n}{kind}", "pair": f"q{n}", "condition": kind,
         "label": 2 if kind == "ambig" else 0, "target": 0, "counter": 1, "unknown": 2,
         "chosen": 2.0 if kind == "ambig" else 0.0, "left_out": "", "decode": "free"}
        for m in "ab" for n in range(6) for kind in ("ambig", "disambig")
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    whole = table.copy()
    gone = (table.model == "b") & (table["item"].str[1].astype(int) < 4)
    gone &= table["condition"] == "ambig"
    table.loc[gone, ["chosen", "left_out"]] = [np.nan, "refusal"]
    for metric in ("unknown-gap", "bbq-bias"):
        found = paired.paired(*(table[table.model == m] for m in "ab"), metric)
        [one] = [c for c in found if c.by.get("condition") != "disambig"]
        for fill in (0.0, 1.0, 2.0):
            full = whole.copy()
            full.loc[gone, "chosen"] = fill
            every = paired.paired(*(full[full.model == m] for m in "ab"), metric)
            [true] = [c for c in every if c.by.get("condition") != "disambig"]
            assert one.bounds[0] - 1e-9 <= true.difference <= one.bounds[1] + 1e-9


def test_a_ranking_says_why_it_ties_what_the_table_calls_sure():
    # x agrees with 9 of 50, y with 20, z with 43.
    first = {"x": set(range(0, 45, 5)), "y": set(range(20)), "z": set(range(43))}
    rows = [
        {"model": m, "statement": f"s{n}", "lang": "en", "probe": "agreement", "kind": "answer",
         "answer": "yes" if n in hits else "no"}
        for m, hits in first.items() for n in range(50)
    ]  # fmt: skip
    found = api.compare(pd.DataFrame(rows), metrics="endorsed")
    [ranked] = found.rankings
    assert ranked["ranking"] == [["z"], ["y", "x"]]
    assert "y agrees with statements more often than x (40 against 18 of 100; sure)" in (
        found.finding.lines
    )
    assert "; y and x differ in the table, but not here" in ranked["told"]
