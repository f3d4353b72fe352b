"""What a model says against what it prefers: against scipy, counts by hand, and a real run."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats as theirs

from genprobe import api, statistics
from genprobe.analysis import paradigm_runs, paradigms
from genprobe.commands import cli
from genprobe.errors import InputError, RunError
from genprobe.outcomes import table
from genprobe.records import Score
from genprobe.render import grid
from genprobe.runs.run import Run


def reply(statement, says, lang="en", decode="free", probe="agreement", **more):
    """A row of outcomes. says: True, False, None (unclear), or P(yes) of the two."""
    row = {"decode": decode, "lang": lang, "probe": probe, "statement": statement}
    row |= {"measures": "recognised" if probe == "recognition" else "endorsed", "role": "original"}
    row |= {"when": "no" if probe == "disagreement" else "yes", "bias_type": "age", "sample": 0}
    row |= {"text": f"{statement} in {lang}", "says": says, "p_yes": None, "p_no": None}
    if isinstance(says, float):
        row |= {"says": None, "p_yes": says / 2, "p_no": (1 - says) / 2}
    return row | more


def pair(statement, gap, lang="en", scorer="bias", contrast="x", **more):
    row = {"scorer": scorer, "lang": lang, "item": statement, "contrast": f"{statement}/{contrast}"}
    row |= {"text": f"{statement} in {lang}", "contrast_text": "other", "bias_type": "age"}
    return row | {"pro": -5.0 + gap, "anti": -5.0} | more


def said(rows):
    frame = pd.DataFrame(rows, dtype=object)
    for column in ("p_yes", "p_no"):
        frame[column] = pd.to_numeric(frame[column])
    return frame.assign(says=frame["says"].astype("boolean"))


def items(replies, pairs, by=()):
    return paradigms.items(said(replies), pd.DataFrame(pairs), by)


def scores(found, by=(), model=None):
    return paradigms.scores(found, list(by), str, model)


def by_name(found, **cell):
    """metric -> its score in the cell with these values."""
    return {s.metric: s for s in found if all(s.by.get(k) == v for k, v in cell.items())}


def drawn(n, seed=1, langs=("en",), decode="logprob", noise=1.0):
    """Replies and pairs whose says and prefers have something in common."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    p = 1 / (1 + np.exp(-common - noise * rng.normal(size=n)))
    gap = (common + noise * rng.normal(size=n)).round(2)
    both = [(f"s{at}", float(p[at]), float(gap[at])) for at in range(n)]
    return (
        [reply(s, p, lang, decode=decode) for lang in langs for s, p, _ in both],
        [pair(s, gap, lang) for lang in langs for s, _, gap in both],
    )


# --- items


def test_says_is_the_mean_of_clear_answers_and_prefers_of_all_contrasts():
    replies = [
        reply("a", True),
        reply("a", True, sample=1),
        reply("a", None, sample=2),
        reply("a", False, probe="disagreement"),
        reply("a", False, probe="recognition"),  # it is no endorsement
        reply("a/x", False, role="contrast", text="other"),
        reply("a", 0.9, decode="logprob"),
        reply("a", 0.7, decode="logprob", probe="disagreement"),  # "yes, I disagree"
    ]
    pairs = [pair("a", 2.0), pair("a", -0.5, contrast="y"), pair("a", np.nan, contrast="z")]
    found = items(replies, pairs)
    assert list(found["decode"]) == ["free", "logprob"]  # in the order of the readings
    assert found["says"].tolist() == pytest.approx([2 / 3, (0.9 + 0.3) / 2])
    assert found["prefers"].tolist() == [0.75, 0.75]
    assert found["reason"].tolist() == ["", ""]


def test_every_reading_meets_every_scorer():
    replies = [reply("a", True, decode=d) for d in ("free", "choice")] + [
        reply("a", 0.2, decode="logprob")
    ]
    found = items(replies, [pair("a", 1.0, scorer=s) for s in ("ppl", "bias", "loglik")])
    assert list(zip(found["decode"], found["scorer"], strict=True)) == [
        (d, s) for d in ("free", "choice", "logprob") for s in ("bias", "loglik", "ppl")
    ]
    assert len(scores(found)) == 9 * 8


def test_items_that_do_not_count_are_counted_and_told():
    replies = [
        *(reply(f"s{n}", True) for n in range(25)),
        reply("unclear", None),
        reply("both", True),
        reply("even", True),
        reply("even", False, probe="disagreement", sample=1),
        reply("tie", True),
        reply("same", False),
        reply("far", False),
    ]
    replies[-4]["says"] = False  # "even": as often one as the other
    pairs = [
        pair("p1", 1.0),
        pair("p2", 1.0, lang="de"),
        pair("unclear", 1.0),
        pair("both", 1.0),
        pair("even", 1.0),
        pair("tie", 0.0),
        pair("same", np.nan, left_out="same tokens"),
        pair("far", np.inf),
    ]
    found = items(replies, pairs)
    made = by_name(scores(found))
    common = {"infinite": 1, "no clear answer": 1, "not scored": 1}
    common |= {"only preferred": 2, "only said": 25}
    assert made["spearman"].excluded == common and made["spearman"].n == 3
    assert made["point-biserial"].excluded == common | {"tie said": 1}
    assert made["no-but-prefers"].excluded == common | {"tie said": 1, "tie preferred": 1}
    assert made["no-but-prefers"].n == 1
    per_language = by_name(scores(found, ["lang"]), lang="de")["says"]
    assert (per_language.value, per_language.n) == (None, 0)
    assert per_language.excluded == {"only preferred": 1}
    told = dict(line.split(", ", 1) for line in paradigms.notes(found))
    assert set(told) == {*common, "tie said", "tie preferred"}
    assert told["only preferred"] == "2: p2 (de), p1 (en)"
    names = sorted(f"s{n}" for n in range(25))
    listed = ", ".join(f"{name} (en)" for name in names[:20])
    assert told["only said"] == f"25: {listed} and 5 more"


def test_notes_say_in_which_readings_and_scorers():
    replies = [reply(s, True, decode=d) for s in "ab" for d in ("free", "choice")]
    replies[1]["says"] = None  # a, choice
    pairs = [pair(s, 1.0, scorer=c) for s in "ab" for c in ("bias", "ppl")]
    pairs[3]["pro"] = np.nan  # b, ppl
    assert paradigms.notes(items(replies, pairs)) == [
        "no clear answer in choice, 1: a (en)",
        "not scored in ppl, 1: b (en)",
    ]
    assert paradigms.notes(items(replies[2:], pairs[:3] + pairs[:1])) == [
        "only preferred, 1: a (en)",
        "only said in ppl, 1: b (en)",
    ]


def test_columns_of_an_item_come_from_either_table():
    replies = [reply("a", True, entity="x"), reply("b", True, bias_type="gender", entity="y")]
    pairs = [pair("a", 1.0) | {"statement": "of the data"}, pair("c", 1.0, bias_type="race")]
    found = items(replies, pairs, ["lang", "bias_type", "entity"])
    assert found["bias_type"].tolist() == ["age", "gender", "race"]
    made = [s for s in scores(found, ["bias_type"]) if s.metric == "says"]
    assert [(s.by["bias_type"], s.n) for s in made] == [("age", 1), ("gender", 0), ("race", 0)]
    assert {s.by["entity"] for s in scores(found, ["entity"])} == {"x", "y", None}


@pytest.mark.parametrize(
    ("replies", "pairs", "by", "what"),
    [
        ([reply("a", True)], [pair("b", 1.0)], [], "no item is in both runs"),
        (
            [reply("a", True, text="A."), reply("b", True, text="B."), reply("c", True)],
            [pair("a", 1.0, text="A!"), pair("b", 1.0), pair("c", 1.0)],
            [],
            r"a \(en\) was asked about as 'A.' and scored as 'A!' \(and 1 more\)",
        ),
        (
            [reply("a", True), reply("a/x", True, role="contrast", text="others")],
            [pair("a", 1.0)],
            [],
            r"a/x \(en\) was asked about as 'others' and scored as 'other'",
        ),
        ([reply("a", True)], [pair("a", 1.0)], ["bias_typ"], "did you mean 'bias_type'"),
        ([reply("a", True)], [pair("a", 1.0)], ["probe"], "items cannot be split by 'probe'"),
        ([reply("a", True)], [pair("a", 1.0)], ["contrast"], "items cannot be split by 'contrast'"),
        ([reply("a", True)], [{"scorer": "choice", "chosen": 1}], [], "holds choices"),
        ([reply("a", True, probe="recognition")], [pair("a", 1.0)], [], "no original was asked"),
        ([reply("a", True, role="contrast")], [pair("a", 1.0)], [], "no original was asked"),
    ],
)
def test_what_cannot_be_compared(replies, pairs, by, what):
    with pytest.raises(InputError, match=what) as error:
        items(replies, pairs, by)
    assert "\n" not in str(error.value)


def test_answers_must_have_been_read():
    replies = said([reply("a", 0.2, decode="logprob")])
    for column, judge in (("says", "yesno"), ("p_yes", "probability")):
        with pytest.raises(InputError, match=f"--judge {judge}"):
            paradigms.items(replies.drop(columns=column), pd.DataFrame([pair("a", 1.0)]))


# --- statistics


def test_correlations_are_those_of_scipy():
    replies, pairs = drawn(60, langs=("en", "de"))
    pairs = pairs[5:]
    replies = replies[:-7]
    found = scores(items(replies, pairs, ["lang"]), ["lang"])
    for lang in ("en", "de"):
        p = {r["statement"]: r["p_yes"] * 2 for r in replies if r["lang"] == lang}
        gap = {r["item"]: r["pro"] - r["anti"] for r in pairs if r["lang"] == lang}
        names = sorted(p.keys() & gap.keys())
        x, y = [p[s] for s in names], [gap[s] for s in names]
        made = by_name(found, lang=lang)
        assert made["spearman"].value == pytest.approx(theirs.spearmanr(x, y).statistic, abs=1e-12)
        want = theirs.pointbiserialr(np.array(x) > 0.5, y).statistic
        assert made["point-biserial"].value == pytest.approx(want, abs=1e-12)
        assert made["spearman"].n == len(names)
        assert made["says"].value == pytest.approx(np.mean(x))
        assert made["prefers"].value == pytest.approx(np.mean(np.array(y) > 0))


def test_ranks_and_correlations_of_a_resample_are_those_of_the_sample_written_out():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 5, 30).astype(float), rng.normal(size=30)
    times = rng.integers(0, 4, (8, 30)).astype(float)
    found = paradigms.pearson(paradigms.ranks(x, times), paradigms.ranks(y, times), times)
    plain = paradigms.pearson(x, y, times)
    for at, row in enumerate(times.astype(int)):
        long_x, long_y = np.repeat(x, row), np.repeat(y, row)
        got = np.repeat(paradigms.ranks(x, times)[at], row)
        assert got.tolist() == theirs.rankdata(long_x).tolist()
        assert found[at] == pytest.approx(theirs.spearmanr(long_x, long_y).statistic, abs=1e-12)
        assert plain[at] == pytest.approx(theirs.pearsonr(long_x, long_y).statistic, abs=1e-12)


def test_no_correlation_without_spread_or_of_two_items():
    level = np.full(9, 0.1)
    assert np.isnan(paradigms.pearson(level, np.arange(9.0), np.ones(9)))
    assert paradigms.spearman(level, np.arange(9.0), np.arange(9)) == (None, None)
    assert paradigms.spearman(np.arange(2.0), np.arange(2.0), np.arange(2)) == (None, None)
    value, interval = paradigms.spearman(np.arange(9.0), np.arange(9.0) ** 3, np.arange(9))
    assert value == 1 and interval[1] == 1 and interval[0] < 1  # nine agree, the next may not


def test_a_resample_is_drawn_as_for_any_other_interval():
    x = np.sort(np.random.default_rng(2).normal(size=20))
    means = statistics.bootstrap(np.column_stack([x, np.ones(20)]))
    again = statistics.reweighted(np.arange(20), lambda times: (times * x).sum(-1) / times.sum(-1))
    assert again == pytest.approx(means, abs=1e-12)
    assert statistics.reweighted(np.array([], int), lambda times: times.sum(-1)) is None


def test_a_statement_in_five_languages_counts_once():
    one, five = (
        by_name(scores(items(*drawn(40, langs=langs))))
        for langs in (("en",), ("en", "de", "fr", "kk", "ru"))
    )
    for name in ("spearman", "point-biserial", "says", "prefers", "no-but-prefers"):
        assert five[name].n == 5 * one[name].n
        assert five[name].value == pytest.approx(one[name].value)
        # The copies say nothing new.
        width = five[name].high - five[name].low
        assert width == pytest.approx(one[name].high - one[name].low, rel=0.1), name
    replies, pairs = drawn(40, langs=("en", "de", "fr", "kk", "ru"))
    found = items(replies, pairs)
    says, prefers = found["says"].to_numpy(), found["prefers"].to_numpy()
    naive = paradigms.spearman(says, prefers, np.arange(len(found)))[1]
    assert five["spearman"].high - five["spearman"].low > 1.8 * (naive[1] - naive[0])


def test_intervals_cover_what_is_there():
    # Spearman's correlation of two normal variables with Pearson's correlation 1/2.
    truth = 6 / np.pi * np.arcsin(0.25)
    hit = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(30, 3))  # two translations that are alike
        x, y = np.repeat(common[:, 0] + common[:, 1], 2), np.repeat(common[:, 0] + common[:, 2], 2)
        _, (low, high) = paradigms.spearman(x, y, np.repeat(np.arange(30), 2))
        hit += low <= truth <= high
    assert 90 <= hit <= 99


def test_the_table_of_answer_and_preference():
    cells = {(False, 1.0): 5, (True, 2.0): 3, (True, -1.0): 1, (False, -0.5): 2}
    rows = [(f"{key}{n}", *key) for key, count in cells.items() for n in range(count)]
    found = items([reply(s, yes) for s, yes, _ in rows], [pair(s, gap) for s, _, gap in rows])
    made = by_name(scores(found))
    want = {"no-but-prefers": 5, "yes-and-prefers": 3, "yes-but-not": 1, "no-and-not": 2}
    for name, count in want.items():
        assert made[name].value == pytest.approx(count / 11) and made[name].n == 11
        assert (made[name].low, made[name].high) == pytest.approx(statistics.wilson(count, 11))
    assert made["says"].value == pytest.approx(4 / 11)
    assert made["prefers"].value == pytest.approx(8 / 11)
    assert [s.metric for s in scores(found)][:5] == [
        *("says", "prefers", "spearman", "point-biserial", "no-but-prefers")
    ]


def test_the_order_of_the_rows_changes_nothing():
    replies, pairs = drawn(20, langs=("en", "de"))
    other = items(replies[::-1], pairs[::-1], ["lang"])
    assert scores(items(replies, pairs, ["lang"]), ["lang"]) == scores(other, ["lang"])


# --- several models


def figures(rows):
    """Scores of `says` and `prefers`; rows: model, the two."""
    return [
        Score(name, {"model": model, "decode": "free"}, value, None, None, 9, {}, None, "")
        for model, *two in rows
        for name, value in zip(("says", "prefers"), two, strict=True)
    ]


def test_whether_models_are_ranked_alike():
    rows = [("a", 0.1, 0.5), ("b", 0.4, 0.6), ("c", 0.3, 0.7), ("d", 0.9, 0.8), ("e", 0.2, 0.55)]
    found = by_name(paradigms.ranking(figures(rows), str))
    x, y = [r[1] for r in rows], [r[2] for r in rows]
    assert found["models-spearman"].value == pytest.approx(theirs.spearmanr(x, y).statistic)
    assert found["models-kendall"].value == pytest.approx(theirs.kendalltau(x, y).statistic)
    assert found["models-kendall"].by == {"decode": "free"} and found["models-kendall"].n == 5
    # A model without a figure has no rank; two models are ranked alike too easily.
    few = by_name(paradigms.ranking(figures([*rows[:2], ("f", None, 0.4)]), str))
    assert few["models-spearman"].value is None and few["models-spearman"].n == 2
    even = by_name(paradigms.ranking(figures([(m, 0.5, x) for m, x, _ in rows]), str))
    assert even["models-kendall"].value is None and even["models-kendall"].n == 5


# --- the command


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A yes/no run and a log-prob run of the control model."""
    folder = tmp_path_factory.mktemp("runs")
    lines = (
        ["yesno", "--decode", "free", "--decode", "logprob", "--temperature", "0"],
        ["logprob", "--scorer", "bias", "--scorer", "loglik", "--scorer", "ppl"],
    )
    for line in lines:
        more = ["--lang", "en", "--limit", "8", "--out", str(folder / line[0]), "-q"]
        done = CliRunner().invoke(cli, [*line, *more])
        assert done.exit_code == 0, done.output
    return tuple(Run.open(folder / line[0]) for line in lines)


def command(*arguments, code=0):
    done = CliRunner().invoke(cli, ["compare", "--paradigms", *map(str, arguments)])
    assert (done.exit_code == 0) == (code == 0), done.output
    return done


def copied(run, folder, **changes):
    """The run under another name, with other fields in its spec."""
    shutil.copytree(run.folder, folder)
    spec = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(spec | changes))
    return folder


def test_a_real_run(runs):
    asked, scored = runs
    done = command(scored.folder, asked.folder, "-f", "json")
    found = [Score.from_dict(row) for row in json.loads(done.stdout)]
    cells = {(s.by["decode"], s.by["scorer"], s.by["lang"]) for s in found}
    assert cells == {(d, s, "en") for d in ("free", "logprob") for s in ("bias", "loglik", "ppl")}
    # The first eight sentences are four originals; the first eight pairs have eight.
    assert {s.excluded.get("only preferred") for s in found} == {4}
    assert "only preferred, 4: age-1/original (en), age-2/original (en)" in done.stderr

    outcomes, pairs = table.outcomes(asked), table.outcomes(scored)
    rows = outcomes[(outcomes["decode"] == "logprob") & (outcomes["role"] == "original")]
    for scorer in ("bias", "loglik"):
        says, gaps = [], []
        for row in pairs[pairs["scorer"] == scorer].itertuples():
            mine = rows[rows["statement"] == row.item].set_index("probe")
            if len(mine):
                p = mine["p_yes"] / (mine["p_yes"] + mine["p_no"])
                says.append((p["agreement"] + 1 - p["disagreement"]) / 2)
                gaps.append(row.pro - row.anti)
        made = by_name(found, decode="logprob", scorer=scorer)
        want = theirs.spearmanr(says, gaps).statistic
        assert made["spearman"].value == pytest.approx(want) and made["spearman"].n == 4
        assert made["says"].value == pytest.approx(np.mean(says))
        want = np.mean([s < 0.5 and g > 0 for s, g in zip(says, gaps, strict=True)])
        assert made["no-but-prefers"].value == pytest.approx(want)
    assert "|command:{yesno,logprob}|model:control|" in found[0].signature
    assert found[0].signature.startswith("metric:says/1-bootstrap95x2000s1o|judge.language:")


def test_the_formats(runs):
    folders = [run.folder for run in runs]
    text = command(*folders).stdout
    assert "spearman" in text and "no-but-prefers" in text
    assert re.search(r"^logprob  bias .* −?[01]\.\d\d \[−?[01]\.\d\d, −?[01]\.\d\d\]", text, re.M)
    assert command(*folders, "-f", "csv").stdout.startswith("metric,decode,scorer,lang,value,")
    assert r"\begin{tabular}" in command(*folders, "-f", "latex").stdout
    assert "age" in command(*folders, "--by", "bias_type").stdout
    whole = json.loads(command(*folders, "--by", "model", "-f", "json").stdout)
    assert set(whole[0]["by"]) == {"decode", "scorer"}
    twice = command(*folders, "--by", "bias_type,scorer,bias_type", "-f", "json").stdout
    assert list(json.loads(twice)[0]["by"]) == ["decode", "scorer", "bias_type"]
    assert command(*folders, "-q").stderr == ""
    told = [grid.number(value, "models-kendall") for value in (-0.456, -0.004, 1.0)]
    assert told == ["−0.46", "0.00", "1.00"]


def test_several_models(runs, tmp_path):
    asked, scored = runs
    first = [asked.folder, scored.folder]
    second = [copied(run, tmp_path / run.folder.name, model="org/other") for run in runs]
    done = command(*first, *second[::-1], "-f", "json")
    found = [Score.from_dict(row) for row in json.loads(done.stdout)]
    assert {s.by["model"] for s in found if s.metric == "says"} == {"control", "other"}
    assert "genprobe: control: only preferred, 4:" in done.stderr
    assert "2 models: comparing their ranks needs 3 at least" in done.stderr
    ranks = [s for s in found if s.metric.startswith("models-")]
    assert {(s.value, s.n) for s in ranks} == {(None, 2)} and len(ranks) == 2 * 6
    assert "|model:{control,org/other}|" in ranks[0].signature
    third = [copied(run, tmp_path / f"{run.folder.name}3", revision="r2") for run in runs]
    done = command(*first, *second, *third, "-f", "json")
    names = dict.fromkeys(row["by"].get("model") for row in json.loads(done.stdout))
    revision = asked.spec.revision[:12]
    assert list(names) == [f"control@{revision}", "other", "control@r2", None]
    assert "ranked alike" not in done.stderr


def test_runs_that_do_not_fit(runs, tmp_path):
    asked, scored = runs
    other = copied(scored, tmp_path / "other", revision="r2")
    with pytest.raises(RunError, match=r"no `logprob` run of control, .*; run `genprobe logprob`"):
        paradigm_runs.paradigms([asked.folder])
    with pytest.raises(RunError, match=r"no `yesno` run of control, .*; run `genprobe yesno`"):
        paradigm_runs.paradigms([scored.folder])
    with pytest.raises(RunError, match=r"no `logprob` run of control, .* is of revision r2"):
        paradigm_runs.paradigms([asked.folder, other])
    again = copied(asked, tmp_path / "again")
    with pytest.raises(InputError, match="ask the same question twice"):
        paradigm_runs.paradigms([asked.folder, again, scored.folder])
    wrong = copied(asked, tmp_path / "wrong", command="stories")
    with pytest.raises(RunError, match="is a run of `stories`"):
        paradigm_runs.paradigms([wrong, scored.folder])
    hotter = [
        copied(asked, tmp_path / "hotter", model="m", temperature=0.5),
        copied(scored, tmp_path / "hotter-scored", model="m"),
    ]
    with pytest.raises(RunError, match=r"more than the model \(temperature: 0.0 -> 0.5\)"):
        paradigm_runs.paradigms([asked.folder, scored.folder, *hotter])
    text = (other / "statements.jsonl").read_text()
    (other / "run.json").write_text((scored.folder / "run.json").read_text())
    (other / "statements.jsonl").write_text(text.replace("Women remember", "Women recall"))
    done = command(asked.folder, other, code=2)
    assert "was asked about as 'Women remember every birthday.'" in str(done.exception)
    assert "--metric cannot be used with" in str(
        command(asked.folder, other, "--metric", "yes", code=2).exception
    )


def test_runs_of_one_model_add_up(runs, tmp_path):
    asked, scored = runs
    german = api.logprob(langs=["de"], limit=2, scorers=["bias"], out=tmp_path / "de")
    found = paradigm_runs.paradigms([asked.folder, scored.folder, german.folder])
    assert {s.by["lang"] for s in found if s.by["scorer"] == "bias"} == {"de", "en"}
    (says,) = (
        s for s in found if s.metric == "says" and s.by["lang"] == "de" and s.by["decode"] == "free"
    )
    assert says.n == 0 and says.excluded == {"only preferred": 2}
