"""The sentences about scores: what they say of made-up runs, and what they must not say."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pandas as pd
import pytest

from genprobe.analysis import significance, splits
from genprobe.records import Score
from genprobe.render import findings
from genprobe.report import first, local

MAIN = ["endorsed", "recognised"]


def pair(of, a, b, ends, p, *, n=192, bounds=None, names=("one", "other"), prefix="", left=None):
    """The scores of one comparison, as `compare` gives them."""
    by = {"of": of, "a": names[0], "b": names[1]}

    def score(metric, value, low=None, high=None, bounds=None):
        return Score(f"{prefix}{metric}", by, value, low, high, n, left or {}, bounds, "")

    gap = None if a is None or b is None else b - a
    found = [score("a", a), score("b", b), score("difference", gap, *(ends or ()), bounds=bounds)]
    return found + ([] if p is None else [score("p" if prefix else "swap-p", p)])


def told(*pairs, main=MAIN, **more):
    scores = significance.corrected(itertools.chain.from_iterable(pairs))
    return findings.compared(scores, main, **more)


RECOGNISED = pair("recognised", 0.398, 0.812, (0.326, 0.501), 0.0001)
OPEN = pair("endorsed", 0.54, 0.50, (-0.12, 0.05), 0.4)


def asked(model, agreement, disagreement, lang="kk", reverse="no"):
    return [
        Score("endorsed", {"run": model, "lang": lang, "probe": probe, "when": when}, value,
              value - 0.05, value + 0.05, 99, {}, None, "")
        for probe, when, value in (("good", "yes", agreement), ("bad", reverse, disagreement))
    ]  # fmt: skip


OPPOSITE = [*asked("one", 0.9, 0.2), *asked("other", 0.15, 0.85)]


def test_the_largest_sure_difference_is_the_title():
    found = told(OPEN, RECOGNISED, pair("yes", 0.1, 0.95, (0.8, 0.9), 0.0001))
    assert found.title.text == (
        "other calls statements stereotypes twice as often as one (81 against 40 of 100; sure)"
    )
    assert found.measure == "recognised" and found.models == ("other", "one")
    # Main measures come first, another with a larger difference is named.
    assert [line.text for line in found.told] == [
        "How often one and other agree with statements cannot be told apart (54 and 50 of 100): "
        "192 clear answers leave room for a difference of 12 points",
        "Of other measures, also sure: yes (other 95, one 10 of 100)",
    ]
    assert (
        "3 comparisons" in found.notes["How sure"]
        and "other statements:" in found.notes["How sure"]
    )
    # Intervals and p-values stand behind the sentence, and not in it.
    assert found.title.note == (
        "recognised, other less one: +41.4 points (+32.6 to +50.1), p <0.001 (Holm, 3 "
        "comparisons), n = 192"
    )
    assert not any("p <" in line.text or " to " in line.text for line in found.told)


def test_two_that_say_the_opposite_of_themselves_are_told_so():
    found = told(OPEN, RECOGNISED, asked=OPPOSITE)
    assert found.told[0].text == (
        "How often one and other agree with statements cannot be told apart (54 and 50 of 100): "
        "each says nearly the opposite when the question is turned round"
    )
    # Of one alone it is no reason; of a little it is not the opposite; within intervals, nothing.
    [line] = told(OPEN, RECOGNISED, asked=OPPOSITE[:2]).told
    assert "leave room" in line.text
    little = [*asked("one", 0.6, 0.35), *asked("other", 0.3, 0.7)]
    assert "each says something else when" in told(OPEN, RECOGNISED, asked=little).told[0].text
    alike = [*asked("one", 0.9, 0.2, reverse="yes"), *asked("other", 0.15, 0.85, reverse="yes")]
    assert "turned" not in told(OPEN, RECOGNISED, asked=alike).told[0].text
    none = [*asked("one", 0.5, 0.42), *asked("other", 0.3, 0.38)]
    assert "turned" not in told(OPEN, RECOGNISED, asked=none).told[0].text


def test_equal_is_said_only_where_the_interval_is_narrow():
    same = told(pair("endorsed", 0.54, 0.535, (-0.03, 0.021), 0.8))
    assert same.title.text == (
        "one and other agree with statements equally often, to within 3 points (54.0 and 53.5 of "
        "100)"
    )
    wide = told(pair("endorsed", 0.54, 0.54, (-0.3, 0.3), 1.0))
    assert "cannot be told apart" in wide.title.text and "30 points" in wide.title.text
    assert "no difference has p < 0.05" in wide.notes["How sure"]


def test_what_unclear_replies_may_account_for_is_not_sure():
    found = told(pair("endorsed", 0.2, 0.5, (0.2, 0.4), 0.0001, bounds=[-0.1, 0.7]))
    assert found.title.text == (
        "Of what is clear, other agrees with statements more often than one, but the unclear "
        "replies may account for it"
    )


def test_holm_takes_back_what_one_of_many_shows():
    alone = told(pair("endorsed", 0.3, 0.5, (0.02, 0.38), 0.03))
    assert alone.title.text.endswith("(50 against 30 of 100; sure)")
    many = [pair(name, 0.3, 0.5, (-0.2, 0.2), 0.9) for name in ("yes", "no", "refusal")]
    among = told(pair("endorsed", 0.3, 0.5, (0.02, 0.38), 0.03), *many)
    assert "among 4 comparisons, chance alone may give that" in among.title.text
    assert "sure)" not in " ".join(among.lines)


def test_what_holds_in_these_wordings_alone_says_so():
    over = pair("recognised-over-wordings", 0.4, 0.8, (-0.1, 0.6), 0.2)
    assert told(RECOGNISED, over).title.text.endswith("; sure in these wordings)")
    over = pair("recognised-over-wordings", 0.4, 0.8, (0.3, 0.6), 0.001)
    found = told(RECOGNISED, over)
    assert (
        found.title.text.endswith("; sure)")
        and "statements and wordings" in found.notes["How sure"]
    )
    # The figures are those of the wordings asked, as in the tables; each is told once.
    assert "81 against 40" in found.title.text and len(found.told) == 0


def test_figures_that_would_look_the_same_have_a_decimal():
    found = told(pair("endorsed", 0.003, 0.012, (0.005, 0.02), 0.001))
    assert "1.2 against 0.3 of 100" in found.title.text
    assert "more often than" in found.title.text  # no ratio of next to nothing
    assert "three times as often as" in told(pair("yes", 0.2, 0.6, (0.3, 0.5), 0.001)).title.text


def test_where_one_refuses_everything():
    found = told(
        pair("endorsed", 0.5, None, None, None),
        pair("ambiguous", 0.02, 1.0, (0.9, 0.99), 0.0001),
    )
    assert found.title.text == (
        "other gives no clear answer more often than one (100 against 2 of 100; sure)"
    )
    assert [line.text for line in found.told] == [
        "How often they agree with statements cannot be compared: nothing counts for other"
    ]
    mute = Score(
        "endorsed", {"run": "mute"}, None, None, None, 0, {"refusal": 9, "echo": 3}, None, ""
    )
    assert findings.alone("mute", [mute]).title.text == (
        "None of 12 replies of mute can be counted (9 refusal and 3 echo)"
    )
    assert findings.alone("new", []).title.text == "Nothing was counted of what new was asked"


def test_nothing_is_set_in_order_where_that_is_barred():
    found = told(RECOGNISED, barred="40 of 50 thoughts were cut off")
    assert found.lines == ["one and other cannot be set in order: 40 of 50 thoughts were cut off"]


def test_corrected_and_uncorrected_are_never_compared():
    both = pair("recognised of all", 0.3, 0.7, (0.2, 0.6), 0.001, prefix="ppi-")
    found = told(RECOGNISED, both)
    assert found.title.text == (
        "other calls statements stereotypes more often than one (70 against 30 of 100; sure, "
        "corrected by people's review)"
    )
    assert not any("stereotypes" in line.text for line in found.told)
    # Of three models of which people read two, all are compared as the rules read them.
    third = pair("recognised", 0.398, 0.9, (0.4, 0.6), 0.0001, names=("one", "third"))
    text = " ".join(told(RECOGNISED, both, third).lines)
    assert "corrected" not in text and "81 against 40" in text and "90 against 40" in text


def test_a_measure_without_a_phrase_is_named_by_its_title():
    found = told(pair("conflict", 0.1, 0.4, (0.2, 0.4), 0.001), main=["conflict"])
    assert found.title.text == (
        "The share of clear answers that their explanation contradicts is higher for other than "
        "for one (40 against 10 of 100; sure)"
    )
    bias = pair("bias-score", 0.1, 0.4, (-0.2, 0.8), 0.6)
    assert "0.100 and 0.400)" in told(bias, main=["bias-score"]).title.text


def figure(value, low, high, n=200, metric="endorsed", **by):
    return Score(metric, {"run": "one", **by}, value, low, high, n, {}, None, "")


def split(between, a, b, *values, p=0.0001):
    found = pair("endorsed", *values, p, names=(a, b))
    return [Score(**vars(s) | {"by": {"run": "one", "between": between, **s.by}}) for s in found]


def test_one_model_and_what_stands_out():
    scores = [figure(0.29, 0.2, 0.4), figure(0.52, 0.4, 0.6, metric="recognised")]
    russian = split("lang", "en", "ru", 0.14, 0.51, (0.2, 0.5))
    gender = split("bias_type", findings.OTHERS, "gender", 0.2, 0.45, (0.1, 0.4))
    found = findings.alone("one", scores, significance.corrected([*gender, *russian]))
    assert [line.text for line in (found.title, *found.told)] == [
        "one agrees with statements in 29 of 100 clear answers: 51 in Russian, 14 in English",
        "one agrees with statements more often about gender (45 of 100) than in every other bias "
        "type (20)",
        "one calls statements stereotypes in 52 of 100 clear answers, as tossing a coin might",
    ]
    # Not sure after Holm: not named.
    weak = split("lang", "en", "ru", 0.14, 0.51, (0.01, 0.5), p=0.04)
    found = findings.alone("one", scores, significance.corrected([*weak, *weak]))
    assert "Russian" not in " ".join(found.lines) and ", and none is" in found.notes["How sure"]
    # A mean over a question and its reverse that contradict each other says so.
    title = findings.alone("one", scores[:1], [], asked("one", 0.9, 0.2)).title.text
    assert title.endswith(
        "answers, but it says nearly the opposite when the question is turned round"
    )


def test_few_statements_are_counted_and_not_written_as_of_a_hundred():
    found = findings.alone("one", [figure(0.25, 0.05, 0.7, n=12)])
    assert found.title.text == (
        "one agrees with statements in 3 of 12 clear answers, as tossing a coin might: so few "
        "that 5 to 70 of 100 are possible"
    )
    # A corrected figure need not be a whole number of units.
    told = findings.figure("one", [figure(0.098, 0.01, 0.43, n=10, metric="negrate")]).text
    assert told.startswith("one tells mostly negative stories in 10 % of 10 templates: so few that")


def test_cells_of_one_figure_have_the_same_unit():
    cells = [figure(1.0, 0.8, 1, n=16, metric="accuracy", condition="ambig"),
             figure(0.5, 0.4, 0.7, n=60, metric="accuracy", condition="disambig")]  # fmt: skip
    assert findings.figure("one", cells).text == (
        "one chooses right in 16 of 16 choices in ambiguous contexts and 30 of 60 in "
        "disambiguated contexts"
    )
    uneven = [cells[0], figure(0.523, 0.4, 0.7, n=60, metric="accuracy", condition="disambig")]
    assert findings.figure("one", uneven).text.startswith("one chooses right in 100 of 100 choices")


def test_a_difference_says_under_which_condition_it_holds():
    plain = pair("negrate", 0.8, 0.8, (-0.4, 0.4), 0.9, n=10)
    if_it_errs = pair("negrate-corrected", 0.7, 0.7, (-0.4, 0.4), 0.9, n=10)
    found = told(plain, if_it_errs, main=("negrate", "negrate-corrected"))
    text = " ".join(line.text for line in (found.title, *found.told))
    assert "(80 and 80 of 100)" in text
    assert "(70 and 70 of 100, if the classifier errs as on labelled stories)" in text


def test_what_the_cells_of_a_figure_leave_out_is_added_up():
    cells = [
        Score("accuracy", {"condition": name}, 0.5, 0.4, 0.6, n, left, None, "")
        for name, n, left in (("ambig", 9, {"refusal": 91}), ("disambig", 100, {}))
    ]
    source = types.SimpleNamespace(
        name="m", table=types.SimpleNamespace(ranked=["accuracy"], main=["accuracy"]), read_in={},
        score=lambda names, by, reading: [] if by else cells,
    )  # fmt: skip
    assert first._left_out([source], "accuracy") == (
        "91 of 200 choices of m (91 refusal; most in ambiguous contexts: 91 of 100)."
    )
    words = lambda _, **given: f"{given['n']} of {given['planned']}"  # noqa: E731
    told = local._left_out(words, [source], findings.Finding(findings.Line("")))
    assert told == "91 of 200"
    mute = [Score(**vars(one) | {"value": None, "n": 0, "excluded": {"refusal": 5}})
            for one in cells]  # fmt: skip
    assert findings.nothing("m", mute).text.startswith("None of 10 replies")


def test_a_review_that_corrects_nothing_leaves_the_measured_rate():
    rate = Score("ppi", {"run": "m", "rate": "endorsed of all"}, None, None, None, 9, {}, None, "")
    source = types.SimpleNamespace(
        name="m", read_in={}, table=types.SimpleNamespace(
            ranked=["endorsed"], main=["endorsed"], replies="replies"),
        score=lambda names, by, reading: [figure(0.29, 0.2, 0.4)],
    )  # fmt: skip
    made = first._alone(source, [], [], [rate])
    assert made.title.text == "m agrees with statements in 29 of 100 clear answers"
    assert made.told[0].text.startswith("Not corrected by people's review: endorsed of all of m;")


def test_names_are_only_text():
    hostile = "a\x1b[2Jb\u202ec"
    found = told(pair("endorsed", 0.2, 0.6, (0.3, 0.5), 0.001, names=(hostile, "one")))
    assert not set("\x1b\u202e") & set(" ".join(found.lines))


# --- what stands out in a run, from its outcomes


def outcomes(rates, statements=40, seed=1):
    """Answers to the agreement question: language -> the share of yes."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "statement": f"s{n}", "item": f"s{n}", "lang": lang, "probe": "agreement",
            "bias_type": ("age", "gender")[n % 2], "answer": "yes" if yes else "no", "says": yes,
            "measures": "endorsed", "left_out": "", "kind": "answer",
        }
        for lang, rate in rates.items()
        for n in range(statements)
        for yes in [bool(rng.random() < rate)]
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"says": "boolean"})


def test_a_language_that_differs_is_found_and_its_figures_are_those_of_score():
    rows = outcomes({"en": 0.2, "ru": 0.75, "kk": 0.2})
    scores = splits.splits(rows, "endorsed", ["lang", "bias_type", "absent"], str)
    found = {
        (d.difference.by["between"], d.names): d
        for d in findings.differences(significance.corrected(scores))
    }
    assert len(found) == 4  # three languages against the others, one bias type against the other
    ru = found["lang", (findings.OTHERS, "ru")]
    assert ru.reach == 2 and ru.b.value == rows[rows.lang == "ru"].says.mean()
    assert ru.a.value == pytest.approx(rows[rows.lang != "ru"].says.mean())
    assert not found["bias_type", ("gender", "age")].reach
    assert splits.splits(rows, "contrast-gap", ["lang"], str) == []
    assert splits.splits(outcomes({"en": 0.5}), "endorsed", ["lang"], str) == []


def test_without_a_difference_hardly_anything_stands_out():
    """Holm over six languages and two types in 40 runs: at most four may have one (p = .95)."""
    named = 0
    for seed in range(40):
        rows = outcomes(dict.fromkeys(("en", "ru", "kk", "ar", "hi", "fr"), 0.4), 20, seed)
        scores = significance.corrected(splits.splits(rows, "endorsed", ["lang", "bias_type"], str))
        named += any(d.reach for d in findings.differences(scores))
    assert named <= 4


def test_equal_to_within_covers_the_bounds():
    found = told(pair("endorsed", 0.3, 0.3, (-0.004, 0.003), 0.8, bounds=[-0.024, 0.021]))
    assert "equally often, to within 3 points" in found.title.text
