"""Relations that must hold for every metric of the registry, whatever the data.

The tables are random; no expected figure is written down. What a relation says is in the name of its
test. A metric that a relation does not concern is named with the reason.
"""

import math
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from genprobe import metrics
from genprobe.analysis import paired
from genprobe.errors import InputError
from genprobe.outcomes import table as joined
from tests.random_tables import KINDS, fitting, pairs, replies

SEEDS = st.integers(0, 10_000)
CLOSE = 1e-9
# Few tables in every test run; `EXAMPLES=200 HYPOTHESIS_PROFILE=search pytest tests/test_relations.py` draws more.
PARTS = 1 if "EXAMPLES" in os.environ else 8
QUICK = settings(
    max_examples=int(os.environ.get("EXAMPLES", "1")),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
)


OWN = {"negrate-corrected": "kk", "thought-language": "en", "wrong-language": "en"}  # need these
# Differences and tests that need units of both sorts: without a value although some units count.
MAY_LACK = (
    "disambiguated-bias",
    "bbq-bias",
    "bpr-t-test",
    "bpr-sign-test",
    "mixing-r",
    "bias-score",
)
MAY_LACK += ("mixing-r-bins",)
# Names of units: what a relation renames or copies.
NAMES = ("statement", "pair", "item", "people_of")


def score(name, table, by=()):
    try:
        return metrics.score(table, [name], list(by), lambda metric: metric)
    except InputError:
        return []


def same(one, other, *, names=True, ends=True):
    """Whether two lists of scores are equal up to rounding."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        if names:
            assert a.by == b.by
        assert (a.metric, a.n, a.excluded) == (b.metric, b.n, b.excluded)
        fields = [(a.value, b.value), *zip(a.bounds or (), b.bounds or (), strict=True)]
        fields += [(a.low, b.low), (a.high, b.high)] if ends else []
        for x, y in fields:
            assert (x is None) == (y is None)
            assert x is None or x == pytest.approx(y, abs=CLOSE, rel=CLOSE), a.metric


def tables(seed, part):
    """Random tables for a part of the metrics, another for each relation; `make slow` takes all."""
    for name, kind in fitting()[part % PARTS :: PARTS]:
        yield name, KINDS[kind](np.random.default_rng(seed))


@QUICK
@given(SEEDS)
def test_the_order_of_the_rows_changes_nothing(seed):
    for name, table in tables(seed, 0):
        mixed = table.sample(frac=1, random_state=seed).reset_index(drop=True)
        same(score(name, table), score(name, mixed))


@QUICK
@given(SEEDS)
def test_a_table_counted_in_parts_has_the_figures_of_the_whole(seed):
    """To the byte, also if texts are categories; parts are whole statements."""
    for name, table in tables(seed, 3):
        kept = {c: "category" for c in table if table[c].map(type).isin([str, type(None)]).all()}
        by = [c for c in ("lang", "role") if c in table and c not in metrics.find(name).never_by]
        whole = score(name, table, by)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joined, "AT_ONCE", 7)
            assert score(name, table.astype(kept), by) == whole, name
            if "statement" in table:
                parts = [{*table["statement"].iloc[rows]} for rows in joined.chunks(table)]
                assert len(parts) > 1 and sum(map(len, parts)) == table["statement"].nunique()


@QUICK
@given(SEEDS)
def test_the_names_of_units_change_nothing(seed):
    for name, table in tables(seed, 1):
        renamed = table.copy()
        for column in (c for c in NAMES if c in table):
            old = sorted(set(table[column]))
            new = np.random.default_rng(seed).permutation([f"u{at:03}" for at in range(len(old))])
            renamed[column] = table[column].map(dict(zip(old, new, strict=True)))
        same(score(name, table), score(name, renamed), ends="over-wordings" not in name)


@QUICK
@given(SEEDS)
def test_two_revisions_count_as_two_models_do(seed):
    """Their replies are never put together in one template, item or pair."""
    for name, table in tables(seed, 4):
        other = KINDS[dict(fitting())[name]](np.random.default_rng(seed + 1))
        who = {"model": [["m", "m"], ["m", "n"]], "revision": [["r", "s"], ["r", "r"]]}
        revisions, models = (
            pd.concat(
                [
                    part.assign(**{column: who[column][way][at] for column in who})
                    for at, part in enumerate((table, other))
                ],
                ignore_index=True,
            )
            for way in (0, 1)
        )
        same(score(name, revisions), score(name, models), names=False)


@QUICK
@given(SEEDS)
def test_the_name_of_the_language_changes_nothing(seed):
    for name, table in tables(seed, 2):
        if "lang" in table and table["lang"].nunique() == 1 and name not in OWN:
            other = table.assign(lang="mr", domain_lang="mr")
            same(score(name, table, ["lang"]), score(name, other, ["lang"]), names=False)


@QUICK
@given(SEEDS)
def test_a_value_lies_in_its_interval_and_both_in_the_scale(seed):
    for name, table in tables(seed, 3):
        low, high = metrics.find(name).limits
        for one in score(name, table):
            if one.value is None:
                assert not one.n or name in MAY_LACK, one
                continue
            assert low - CLOSE <= one.value <= high + CLOSE, one
            if one.low is not None:
                assert one.low <= one.high, one
                assert one.low - CLOSE <= one.value <= one.high + CLOSE, one
                assert low - CLOSE <= one.low and one.high <= high + CLOSE, one
            if one.bounds:
                assert low - CLOSE <= one.bounds[0] <= one.bounds[1] <= high + CLOSE, one


@QUICK
@given(SEEDS)
def test_copies_under_new_names_leave_the_value_and_narrow_no_less(seed):
    """Twice as many independent units with the same answers are known better, not worse."""
    for name, table in tables(seed, 4):
        if name.startswith("mixing"):
            continue  # its bins are quantiles of the items
        copy = table.copy()
        for column in (c for c in NAMES if c in table):
            copy[column] = table[column].astype(str) + "'"
        both = pd.concat([table, copy], ignore_index=True)
        tests = name.startswith("bpr-") or name == "seeds"  # p-values and numbers change with n
        for a, b in zip(score(name, table), score(name, both), strict=True):
            assert b.n == 2 * a.n and b.excluded == {why: 2 * n for why, n in a.excluded.items()}
            if tests or a.value is None:
                continue
            assert b.value == pytest.approx(a.value, abs=1e-6 if "corrected" in name else CLOSE)
            if a.low is not None and b.low is not None:
                assert b.high - b.low <= (a.high - a.low) * 1.05 + 0.01, name


@QUICK
@given(SEEDS)
def test_failed_requests_change_no_value_and_are_counted(seed):
    for name, table in tables(seed, 5):
        if "statement" not in table or metrics.find(name).unit == "templates" or name == "failed":
            continue
        more = table.head(3).assign(left_out="failed", sample=90)
        judged = [c for c in table if c not in (*NAMES, "left_out", "sample", "lang", "probe")]
        asked = ("role", "measures", "when", "wording", "model", "decode", "classifier")
        more[[c for c in judged if c not in asked]] = None
        both = pd.concat([table, more.astype(table.dtypes.to_dict(), errors="ignore")])
        for a, b in zip(score(name, table), score(name, both.reset_index(drop=True)), strict=True):
            assert (a.value is None) == (b.value is None)
            if a.value is not None and "corrected" not in name:
                assert b.value == pytest.approx(a.value, abs=CLOSE), name
            assert b.n == a.n, name
            if a.bounds and b.bounds:
                assert b.bounds[0] <= a.bounds[0] + CLOSE, name
                assert b.bounds[1] >= a.bounds[1] - CLOSE, name


@QUICK
@given(SEEDS)
def test_yes_and_no_are_treated_alike(seed):
    """All answers turned round: each figure about *yes* becomes the one about *no*."""
    table = replies(np.random.default_rng(seed))
    turned = table.assign(
        answer=table["answer"].replace({"yes": "no", "no": "yes"}),
        says=~table["says"],
        thought_answer=table["thought_answer"].replace({"yes": "no", "no": "yes"}),
    )
    found, other = (
        {n: score(n, t) for n, _ in fitting() if t is not None} for t in (table, turned)
    )
    mirrors = {"yes": "no", "yes-saying": "no-saying"}
    mirrors |= {"endorsed-both-ways": "rejected-both-ways"}
    for one, two in mirrors.items():
        for a, b in ((one, two), (two, one)):
            for x, y in zip(found[a], other[b], strict=True):
                assert (x.value, x.low, x.high, x.n) == (y.value, y.low, y.high, y.n), a
    for name in ("ambiguous", "acquiescence", "refusal", "thought-against-answer"):
        same(found[name], other[name])
    for name in ("endorsed", "recognised"):
        for x, y in zip(found[name], other[name], strict=True):
            if x.value is not None:
                assert (x.value, x.low, x.high) == pytest.approx(
                    (1 - y.value, 1 - y.high, 1 - y.low)
                )
                assert x.bounds == pytest.approx([1 - end for end in y.bounds[::-1]])


@QUICK
@given(SEEDS)
def test_pro_and_anti_are_treated_alike(seed):
    table = pairs(np.random.default_rng(seed)).assign(scorer="loglik")
    turned = table.assign(pro=table["anti"], anti=table["pro"])
    (win,), (loss,), (ties,) = (
        score("win-rate", table),
        score("win-rate", turned),
        score("ties", table),
    )
    assert win.value == pytest.approx(1 - loss.value - ties.value)
    same(score("ties", table), score("ties", turned))
    for name in ("log-ratio", "bpr"):
        for a, b in zip(score(name, table), score(name, turned), strict=True):
            if name == "log-ratio":
                assert a.value == pytest.approx(-b.value)
                assert (a.low, a.high) == pytest.approx((-b.high, -b.low), abs=0.2)


@QUICK
@given(SEEDS)
def test_a_model_beside_itself_does_not_differ(seed):
    for name, table in tables(seed, 6):
        if not paired.fits(metrics.find(name)):
            continue
        try:
            found = paired.paired(table, table.assign(model="other"), name)
        except InputError:
            continue  # a measure whose units weigh unequally, or occur twice in these rows
        for one in found:
            if one.n:
                assert one.difference == 0 and one.swap_p == 1, name
                assert one.low <= 0 <= one.high, name


@QUICK
@given(SEEDS)
def test_sums_over_units_are_those_of_a_plain_loop(seed):
    """The reduced sums, cell by cell and cluster by cluster, against adding up one by one."""
    for name, table in tables(seed, 7):
        metric = metrics.find(name)
        by = [c for c in ("lang",) if c in table and c not in metric.never_by]
        units = metric.units(table, by)
        total = {}
        for at in range(len(units.left_out)):
            if units.left_out.iloc[at] == "":
                cell = tuple(units.cells[by].iloc[at]) if by else ()
                total[cell] = total.get(cell, 0) + units.stats[at]
        split = {c for c in (*metric.apart, *metric.adds) if c in table and table[c].nunique() > 1}
        if split - set(by) or metric.adds:
            continue  # its cells are split further
        for one in score(name, table, by):
            if one.n:
                value = float(metric.value(total[tuple(one.by[c] for c in by)]))
                assert (one.value is None and math.isnan(value)) or one.value == pytest.approx(
                    value
                )


@pytest.mark.slow
@pytest.mark.parametrize("relation", [name for name in dir() if name.startswith("test_")])
def test_relations_hold_for_every_metric(relation, monkeypatch):
    monkeypatch.setitem(globals(), "PARTS", 1)
    for seed in (1, 2):
        globals()[relation].hypothesis.inner_test(seed)
