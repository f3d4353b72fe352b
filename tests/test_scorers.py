"""The plan of a log-probability run, the reductions of what it stores, and the tables of these."""

import dataclasses
import difflib
import itertools
import math
import random

import pandas as pd
import pytest
from sample import SPEC

from genprobe import metrics
from genprobe.datasets import pairs
from genprobe.errors import InputError, RunError
from genprobe.outcomes import preferences, scorers, table
from genprobe.outcomes.scorers import NoScoreError, Text
from genprobe.records import Failure, LogProb, Statement
from genprobe.tasks import logprob


def statement(name, text, role="original", pair="p", lang="en", **more):
    extra = more.pop("extra", {})
    return Statement(name, lang, text, role, pair, "gender", "", "people", (), "test", extra)


def text(tokens, logprobs, said="x"):
    return Text(said, tuple(tokens), tuple(logprobs))


PAIR = [statement("a", "Men run."), statement("b", "Women run.", "contrast")]


def answer(plan, values, at=0):
    """A LogProb to request `at`: option -> (text, tokens, logprobs)."""
    return LogProb(
        plan[at].id,
        [
            {"answer": key, "text": said, "tokens": list(ids), "logprobs": list(logs)}
            for key, (said, ids, logs) in values.items()
        ],
        "<s>",
        None,
    )


# --- the plan


def test_one_request_a_text_and_pass():
    plan = logprob.plan(PAIR, ["loglik", "ppl", "bias", "pll", "mpll", "pll-word"])
    assert [(r.statement, r.probe) for r in plan] == [
        ("a", "causal"), ("a", "masked"), ("a", "masked-word"),
        ("b", "causal"), ("b", "masked"), ("b", "masked-word"),
    ]  # fmt: skip
    assert {r.pack for r in plan} == {"text/1"} and {r.decode for r in plan} == {"score"}
    assert plan[0].messages == [] and plan[0].options == {"text": ["Men run."]}
    assert len({r.id for r in plan}) == 6


def test_an_original_with_three_contrasts_is_asked_once():
    several = [*PAIR, statement("c", "Boys run.", "contrast"), statement("d", "I run.", "contrast")]
    assert len(logprob.plan(several, ["bias"])) == 4
    assert [(o.id, c.id) for o, c in preferences.pairs(several)] == [
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
    ]


def test_pairs_stay_within_their_language():
    both = [*PAIR, *(statement(s.id, s.text, s.role, lang="ru") for s in PAIR)]
    assert [(o.lang, c.lang) for o, c in preferences.pairs(both)] == [("en", "en"), ("ru", "ru")]
    assert (
        preferences.pairs([statement("a", "Alone."), statement("b", "No pair.", "contrast", "")])
        == []
    )


def test_a_scorer_takes_the_pass_that_the_model_has():
    plan = logprob.plan(PAIR, ["loglik"], {"seq2seq"}, context="Say it:")
    assert {r.probe for r in plan} == {"seq2seq"}
    assert plan[0].messages == [{"role": "context", "content": "Say it:"}]
    # An encoder always has a prompt, if an empty one: it is said.
    assert logprob.plan(PAIR, ["loglik"], {"seq2seq"})[0].messages[0]["content"] == ""
    with pytest.raises(
        InputError, match="pll needs a masked model, and this one is causal; those fit: loglik"
    ):
        logprob.plan(PAIR, ["pll"], {"causal"})
    with pytest.raises(InputError, match="unknown scorer 'loglike'; did you mean 'loglik'"):
        logprob.plan(PAIR, ["loglike"])
    with pytest.raises(
        InputError, match=r"choice scores choices, and the data are pairs .*; those fit: loglik,"
    ):
        logprob.plan(PAIR, ["choice"])
    with pytest.raises(InputError, match=r"'a' \(en\) is given twice"):
        logprob.plan([PAIR[0], PAIR[0]], ["loglik"])


def test_every_scorer_says_what_it_is():
    for name, scorer in scorers.SCORERS.items():
        assert scorer.name == name and (scorer.pair is None) != (scorer.option is None)
        assert scorer.about and set(scorer.passes) <= set(scorers.PASSES)
    assert scorers.fitting({"masked"}, False) == ["pll", "ppll", "mpll"]
    assert scorers.fitting({"causal"}, True) == [
        "choice",
        "choice-token",
        "choice-byte",
        "choice-char",
    ]


# --- reductions of a text


def test_sums_and_means():
    one = text([5, 6, 7, 8], [-1.0, -2.0, -0.5, -4.5], "жоқ")
    assert scorers.loglik(one) == scorers.pll(one) == scorers.pll_word(one) == -8.0
    assert scorers.loglik_token(one) == -2.0
    assert scorers.loglik_byte(one) == -8 / 6  # Cyrillic letters are two bytes
    assert scorers.ppl(one) == scorers.ppll(one) == math.exp(2.0)
    # The first token counts: n values are divided by n, and nothing is multiplied back.
    assert scorers.loglik(one) == math.fsum(one.logprobs)
    assert scorers.loglik_byte(text([1], [-3.0], "\ud800")) == -1.0  # half a character: 3 bytes
    assert scorers.ppl(text([1], [-1e6])) == math.inf


def test_options_are_measured_without_the_space_before_them():
    one = text([1, 2], [-3.0, -3.0], " не")
    assert scorers.choice(one) == -6 and scorers.choice_token(one) == -3
    assert scorers.choice_char(one) == -3 and scorers.choice_byte(one) == -1.5


# --- reductions of a pair


def test_bias_goes_by_ids_and_not_by_values():
    pro = text([1, 2, 3, 4], [-1.0, -1.0, -2.0, -4.0])
    # Noise in the shared part moves nothing; an equal value at the first difference hides nothing.
    anti = text([1, 2, 9], [-1.0000001, -0.9999999, -2.0])
    assert scorers.bias(pro, anti) == (-3.0, -2.0)
    assert scorers.bias(text([7], [-1.5]), text([8, 9], [-1.0, -3.0])) == (-1.5, -2.0)
    with pytest.raises(NoScoreError, match="one begins the other"):
        scorers.bias(pro, text([1, 2], [-1.0, -1.0]))
    with pytest.raises(NoScoreError, match="same tokens"):
        scorers.bias(pro, pro)


def crows_positions(first, second):
    """CrowS-Pairs: ids with [CLS] and [SEP], difflib's `equal`, all but the first and the last."""
    ids = [["101", *map(str, tokens), "102"] for tokens in (first, second)]
    spans = [[], []]
    for op, a, b, c, d in difflib.SequenceMatcher(None, *ids).get_opcodes():
        if op == "equal":
            spans[0] += range(a, b)
            spans[1] += range(c, d)
    assert len(spans[0]) == len(spans[1])
    return [[at - 1 for at in span[1:-1]] for span in spans]


def test_mpll_scores_what_crows_pairs_scores():
    rng = random.Random(3)
    scored = 0
    for _ in range(400):
        first = [rng.randrange(6) for _ in range(rng.randrange(1, 9))]
        second = [t if rng.random() < 0.7 else rng.randrange(6) for t in first]
        second = second[rng.randrange(2) :] + [rng.randrange(6)] * rng.randrange(2)
        values = [[-rng.random() for _ in tokens] for tokens in (first, second)]
        texts = [text(ids, logs) for ids, logs in zip((first, second), values, strict=True)]
        places = crows_positions(first, second)
        if not places[0]:
            with pytest.raises(NoScoreError, match="nothing shared"):
                scorers.mpll(*texts)
            continue
        expected = [sum(logs[at] for at in span) for logs, span in zip(values, places, strict=True)]
        assert scorers.mpll(*texts) == pytest.approx(expected, abs=1e-12)
        scored += 1
    assert scored > 300


def test_mpll_of_long_sentences_knows_frequent_tokens():
    """difflib takes a token that is in over 1 % of 200 or more for junk, unless it is told."""
    tokens = [1, 2] * 120
    pro = text([*tokens, 3], [-1.0] * 241)
    anti = text([4, *tokens[1:], 3], [-1.0] * 241)
    assert scorers.mpll(pro, anti) == (-240.0, -240.0)


# --- tables


def rows_of(make, *given, **more) -> pd.DataFrame:
    return pd.DataFrame(list(make(*given, **more)))


def test_pair_table_by_hand():
    plan = logprob.plan(PAIR, ["loglik", "ppl", "bias"], {"causal"})
    records = [
        answer(plan, {"text": ("Men run.", [1, 2], [-1.0, -2.0])}, 0),
        answer(plan, {"text": ("Women run.", [1, 3, 4], [-1.0, -2.0, -3.0])}, 1),
    ]
    table = rows_of(preferences.pair_rows, PAIR, plan, reversed(records), ["loglik", "ppl", "bias"])
    assert table[["scorer", "lang", "item", "pair", "contrast"]].values.tolist() == [
        [name, "en", "a", "p", "b"] for name in ("loglik", "ppl", "bias")
    ]
    assert list(table["pro"]) == pytest.approx([-3.0, -math.exp(1.5), -2.0])
    assert list(table["anti"]) == pytest.approx([-6.0, -math.exp(2.0), -2.5])
    assert set(table["left_out"]) == {""}
    # Higher is preferred in every row, perplexity too.
    assert (table["pro"] > table["anti"]).all()


def test_what_is_not_there_is_told_apart():
    rows = [
        *PAIR,
        statement("c", "I run.", "contrast"),
        statement("d", "Men run. Far.", "contrast"),
    ]
    plan = logprob.plan(rows, ["bias"], {"causal"})
    records = [
        answer(plan, {"text": ("Men run.", [1, 2], [-1.0, -2.0])}, 0),
        answer(plan, {"text": ("Men run. Far.", [1, 2, 5], [-1.0, -2.0, -3.0])}, 3),
    ]
    table = rows_of(
        preferences.pair_rows,
        rows,
        plan,
        records,
        ["bias"],
        failures=[Failure(plan[1].id, "engine", "", 1)],
    )
    assert list(table["left_out"]) == ["failed", "missing", "one begins the other"]
    assert table[["pro", "anti"]].isna().all(axis=None)


def test_extra_columns_come_along_and_never_hide_ours():
    extra = {"domain": "work", "scorer": "mine", "tags": ["x"]}
    rows = [statement("a", "Men run.", extra=extra), PAIR[1]]
    plan = logprob.plan(rows, ["loglik"], {"causal"})
    row = rows_of(preferences.pair_rows, rows, plan, [], ["loglik"]).iloc[0]
    assert (row["domain"], row["scorer"], row["scorer_data"]) == ("work", "loglik", "mine")
    assert row["tags"] == '["x"]'


def test_no_pair_is_an_empty_table():
    alone = [statement("a", "Men run.")]
    plan = logprob.plan(alone, ["loglik"], {"causal"})
    found = rows_of(preferences.pair_rows, alone, plan, [], ["loglik"])
    assert len(found) == 0
    with pytest.raises(InputError, match="no rows"):
        metrics.score(found, ["win-rate"], [], str)


def test_an_unrelated_sentence_is_a_column():
    rows = [*PAIR, statement("u", "Blue run.", "unrelated")]
    plan = logprob.plan(rows, ["loglik"], {"causal"})
    records = [
        answer(plan, {"text": (plan[at].options["text"][0], [1], [-1.0 - at])}, at)
        for at in range(3)
    ]
    table = rows_of(preferences.pair_rows, rows, plan, records, ["loglik"])
    assert table[["pro", "anti", "unrelated"]].values.tolist() == [[-1.0, -2.0, -3.0]]
    assert table["above_unrelated"].tolist() == [2]


@pytest.mark.parametrize(("scorer", "name"), [("bias", "causal"), ("mpll", "masked")])
def test_an_unrelated_sentence_is_compared_with_either_by_itself(scorer, name):
    """What differs from the contrast is not what differs from the unrelated sentence."""
    rows = [*PAIR, statement("u", "Blue run.", "unrelated")]
    plan = logprob.plan(rows, [scorer], {name})
    of = {
        "a": ([1, 2, 3, 9], [-0.1, -1.0, -3.0, -1.0]),
        "b": ([1, 2, 4, 9], [-0.2, -0.2, -5.0, -5.0]),
        "u": ([1, 5, 6, 9], [-1.0, -2.4, -2.5, -0.5]),
    }
    records = [
        answer(plan, {"text": (r.options["text"][0], *of[r.statement])}, at)
        for at, r in enumerate(plan)
    ]
    table = rows_of(preferences.pair_rows, rows, plan, records, [scorer])
    texts = {key: text(*one) for key, one in of.items()}
    two = [scorers.find(scorer).pair(texts[key], texts["u"]) for key in "ab"]
    assert [a > b for a, b in two] == [True, False]
    assert not (table["pro"] > table["unrelated"]).item()  # beside the contrast
    assert table["above_unrelated"].tolist() == [1]
    [lm] = metrics.score(table, ["lm-score"], [], str)
    assert lm.value == 0.5
    lost = rows_of(preferences.pair_rows, rows, plan, records[1:], [scorer])
    [lm] = metrics.score(lost, ["lm-score"], [], str)
    assert lm.n == 0 and lm.excluded == {"missing": 1}


def test_a_damaged_record_is_refused():
    plan = logprob.plan(PAIR, ["loglik"], {"causal"})
    broken = answer(plan, {"text": ("Men run.", [1, 2], [-1.0])})
    with pytest.raises(RunError, match="2 tokens and 1 log-prob"):
        rows_of(preferences.pair_rows, PAIR, plan, [broken], ["loglik"])
    with pytest.raises(
        InputError,
        match="pll is made of the pass masked, and the run holds causal; those fit: loglik",
    ):
        rows_of(preferences.pair_rows, PAIR, plan, [], ["pll"])
    with pytest.raises(InputError, match=r"choice scores choices, .* fit: loglik, .*, ppl, bias$"):
        rows_of(preferences.pair_rows, PAIR, plan, [], ["choice"])


# --- choices


def choice(**more):
    extra = {
        "context": "Ann and Bo {question} sat.", "question": "Who slept?",
        "options": ["Ann", "Bo", "Not known"], "label": 2, "target": 0, "unknown": 2,
        "condition": "ambig", "polarity": "neg", **more,
    }  # fmt: skip
    return Statement("q", "en", "Who slept?", "original", "t", "", "choice", "", (), "test", extra)


def test_every_order_of_the_options_is_asked():
    plan = logprob.plan([choice()], ["choice", "choice-char"], {"causal"})
    assert [r.sample for r in plan] == list(range(6)) and len({r.id for r in plan}) == 6
    prompts = [r.messages[0]["content"] for r in plan]
    # What the context has in braces is no place to fill.
    assert all(p.startswith("Ann and Bo {question} sat.\nWho slept?\n- ") for p in prompts)
    listed = [tuple(line[2:] for line in p.split("\n") if line.startswith("- ")) for p in prompts]
    assert listed == list(itertools.permutations(["Ann", "Bo", "Not known"]))
    # Behind any of them an option answers to its number in the data.
    assert all(r.options == {"0": [" Ann"], "1": [" Bo"], "2": [" Not known"]} for r in plan)
    with pytest.raises(InputError, match="data are choices"):
        logprob.plan([choice()], ["bias"], {"causal"})


def test_choices_are_nothing_for_a_masked_model():
    passes, says = ("masked", "masked-word"), "this one is masked; give such a model"
    with pytest.raises(InputError, match=says):
        logprob.plan([choice()], ["choice"], passes)
    with pytest.raises(InputError, match=says):  # and no run of nothing where none is named
        scorers.default(passes, chosen=True)
    assert scorers.default(("seq2seq",), chosen=True) == ["choice", "choice-token"]


def test_choice_table_by_hand():
    rows = [choice()]
    plan = logprob.plan(rows, ["choice"], {"causal"})
    logs = {"0": [-1.0], "1": [-2.0, -1.0], "2": [-2.0]}
    said = {"0": " Ann", "1": " Bo", "2": " Not known"}
    record = answer(plan, {k: (said[k], [9] * len(v), v) for k, v in logs.items()})
    tie = answer(plan, {k: (said[k], [9], [-1.0]) for k in logs}, 1)
    table = rows_of(preferences.choice_rows, rows, plan, [record, tie], ["choice", "choice-token"])
    first = table.iloc[0]
    masses = [math.exp(-1), math.exp(-3), math.exp(-2)]
    p = [mass / sum(masses) for mass in masses]
    assert first["chosen"] == 0 and first["left_out"] == ""
    assert (first["p_target"], first["p_counter"], first["p_unknown"]) == pytest.approx(p)
    assert first["log_ratio"] == pytest.approx(math.log(p[0] / p[1])) == pytest.approx(2.0)
    assert first["uncertainty"] == pytest.approx(-sum(x * math.log(x) for x in p) / math.log(3))
    assert math.isnan(table.iloc[1]["chosen"]) and table.iloc[1]["left_out"] == "tie"
    assert table.iloc[1]["uncertainty"] == pytest.approx(1.0)
    assert list(table["left_out"][2:6]) == ["missing"] * 4
    # Per token, the second option is at -1.5 and the third at -2.
    assert table.iloc[6]["scorer"] == "choice-token" and table.iloc[6]["log_ratio"] == 0.5
    assert list(table["order"]) == [*range(6), *range(6)]


class Stored:
    """What is read of a run."""

    pack = None

    def __init__(self, statements, plan, records, probes):
        self.spec = dataclasses.replace(SPEC, command="logprob", pack=logprob.PACK, probes=probes)
        self.rows = {"statements": statements, "requests": plan, "logprobs": records}

    def statements(self):
        return self.rows["statements"]

    def requests(self):
        return self.rows["requests"]

    def logprobs(self):
        return self.rows["logprobs"]

    def failures(self):
        return []


def test_the_outcomes_of_a_run():
    plan = logprob.plan(PAIR, ["bias", "ppl"], {"causal"})
    records = [
        answer(plan, {"text": ("Men run.", [1, 2], [-1.0, -2.0])}, 0),
        answer(plan, {"text": ("Women run.", [1, 3], [-1.0, -3.0])}, 1),
    ]
    found = table.outcomes(Stored(PAIR, plan, records, ("bias", "ppl")))
    assert list(found["scorer"]) == ["bias", "ppl"] and set(found["model"]) == {SPEC.model}
    # Other reductions of the same values need no model.
    every = table.outcomes(Stored(PAIR, plan, records, ("causal",)))
    assert list(every["scorer"]) == ["loglik", "ppl", "bias"]  # the usual ones
    names = [n for n in metrics.default() if metrics.find(n).fits(every)]
    scores = {(s.metric, s.by["scorer"]): s.value for s in metrics.score(every, names, [], str)}
    assert scores["bias-score", "bias"] == 1.0 and scores["win-rate", "ppl"] == 1.0
    plan = logprob.plan([choice()], ["choice"], {"causal"})
    found = table.outcomes(Stored([choice()], plan, [], ("choice",)))
    assert list(found["left_out"]) == ["missing"] * 6
    assert {s.value for s in metrics.score(found, ["accuracy", "uncertainty"], [], str)} == {None}


def test_the_studies_make_pairs(tmp_path):
    """The way through: a file, its plan, its table."""
    path = tmp_path / "mine.csv"
    path.write_text("pair,lang,pro,anti,domain\nx,en,Men run.,Women run.,work\n")
    found, notes = pairs.load(str(path))
    assert notes == []
    plan = logprob.plan(found, ["loglik"], {"causal"})
    table = rows_of(preferences.pair_rows, found, plan, [], ["loglik"])
    assert table[["item", "contrast", "domain"]].values.tolist() == [["x", "x/contrast", "work"]]
