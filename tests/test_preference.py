"""Measures of preference: against counts by plain loops, scipy, and the published figures."""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats as theirs

from genprobe import metrics, statistics
from genprobe.analysis import paired as pairing
from genprobe.analysis import score as counting
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.files import write_rows
from genprobe.outcomes import table
from genprobe.render import formats

DATA = Path(__file__).parents[2] / "shared" / "data"


def shared(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return path


def command(*arguments):
    """The scores that `genprobe score … -f json` prints."""
    result = CliRunner().invoke(cli, ["score", *map(str, arguments), "-f", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def save(folder, rows, name="mine.jsonl"):
    path = folder / name
    write_rows(path, rows)
    return path


def score(rows, name, by=(), perplexity=False):
    frame = table.from_rows(pd.DataFrame(rows, dtype=object), perplexity)
    return metrics.score(frame, [name], list(by), str)


def pair(pro, anti, item=0, **more):
    return {"item": item, "model": "m", "pro": pro, "anti": anti, **more}


def drawn(n, seed=1, **more):
    rng = np.random.default_rng(seed)
    pro, anti = rng.normal(-20, 3, n).round(1), rng.normal(-20.5, 3, n).round(1)
    return [
        pair(float(a), float(b), at, **more)
        for at, (a, b) in enumerate(zip(pro, anti, strict=True))
    ]


# --- the command


def test_win_rates_of_a_file(tmp_path):
    rows = [
        pair(1, 2, "a", domain="x", task_type="s"),
        pair(3, 2, "b", domain="x", task_type="s"),
        pair(2, 2, "c", domain="x", task_type="t"),
        pair(None, 2, "d", domain="x", task_type="t"),
        pair(9, 2, "e", domain="y", task_type="t"),
    ]
    for name in ("mine.jsonl", "mine.csv", "mine.parquet"):
        found = command(
            save(tmp_path, rows, name), "--metric", "win-rate", "--by", "domain,task_type"
        )
        cells = {tuple(s["by"].values()): (s["value"], s["n"], s["excluded"]) for s in found}
        assert cells == {
            ("x", "s"): (0.5, 2, {}),
            ("x", "t"): (0.0, 1, {"missing": 1}),  # a tie is no win, and counts
            ("y", "t"): (1.0, 1, {}),
        }
        assert found[0]["signature"].startswith("metric:win-rate/1-own-anchored95|file:")
    [ties] = command(save(tmp_path, rows[:4]), "--metric", "ties")
    assert (ties["value"], ties["n"]) == (1 / 3, 3)


def test_of_perplexities_the_lower_is_preferred(tmp_path):
    path = save(tmp_path, [pair(5.0, 7.0, "a"), pair(7.5, 7.0, "b"), pair(7.0, 7.0, "c")])
    [found] = command(path, "--metric", "win-rate", "--perplexity")
    assert found["value"] == 1 / 3 and "+perplexity|" in found["signature"]
    [other] = command(path, "--metric", "win-rate")
    assert other["value"] == 1 / 3  # the tie is no win either way
    assert found["signature"] != other["signature"]
    [infinite] = command(
        save(tmp_path, [pair("5", "inf")], "mine.csv"), "--perplexity", "--metric", "win-rate"
    )
    assert infinite["value"] == 1
    with pytest.raises(InputError, match="log-ratio needs log-probabilities, and the values are p"):
        counting.score(path, metrics="log-ratio", perplexity=True)


def test_models_and_scorers_are_never_pooled(tmp_path):
    rows = [
        pair(-2, -1, scorer="ppl"),
        pair(2, 1, scorer="bias"),
        pair(-1, -2, scorer="ppl") | {"model": "n"},
    ]
    found = command(save(tmp_path, rows), "--metric", "win-rate")
    assert {(s["by"]["model"], s["by"]["scorer"]): s["value"] for s in found} == {
        ("m", "bias"): 1,
        ("m", "ppl"): 0,
        ("n", "ppl"): 1,
    }
    by_item = command(save(tmp_path, rows), "--metric", "win-rate", "--by", "item")
    assert [set(s["by"]) for s in by_item] == [{"model", "scorer", "item"}] * 3


@pytest.mark.parametrize(
    ("rows", "arguments", "what"),
    [
        ([pair("x", 2)], [], "row 1: pro is 'x', which is no number"),
        ([pair(1, 2), pair(1, "1,5")], [], "row 2: anti is '1,5', which is no number"),
        ([pair(-3, 2)], ["--perplexity"], "row 1: pro is -3, and a perplexity is positive"),
        ([{"pro": 1, "model": "m"}], [], "the file lacks the column 'anti' beside 'pro'"),
        ([{"chosen": 1}], [], "the file lacks the column 'label' beside 'chosen'"),
        ([{"answer": "yes"}], ["--perplexity"], "perplexities are the columns 'pro' and 'anti'"),
        ([pair(1, 2)], ["--metric", "bias-score"], "bias-score needs the column 'scorer'"),
        ([pair(1, 2)], ["--metric", "win-rte"], "unknown metric 'win-rte'; did you mean 'win-rate'"),
        ([pair(1, 2)], ["--by", "domian"], "unknown column 'domian'"),
        ([pair(1, 2)], ["--metric", "win-rate", "--by", "pro"], "win-rate cannot be split by 'pro'"),
        ([{"label": 1, "chosen": 3}], [], "row 1: chosen is 3; give 0, 1 or 2"),
        ([{"label": 1, "chosen": 0, "condition": "dim"}], [], "row 1: condition is 'dim'"),
    ],
)  # fmt: skip
def test_a_malformed_table_gives_one_line(tmp_path, rows, arguments, what):
    result = CliRunner().invoke(cli, ["score", str(save(tmp_path, rows)), *arguments])
    assert isinstance(result.exception, InputError)
    message = str(result.exception)
    assert what in message and "\n" not in message and "mine.jsonl" in message


@pytest.mark.parametrize(
    "text", ["item,pro,anti\n\na,1,2\nb,x,2\n", "lang,probe,answer\n\nen,agreement,no\nen,x,no\n"]
)
def test_rows_are_counted_as_a_spreadsheet_does(tmp_path, text):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"mine\.csv: row 4: .*'x'"):
        counting.score([path])


def test_half_a_character_in_a_name_does_no_harm(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(pair(2, 1, "\ud800", domain="a\udc00")) + "\n")
    [found] = command(path, "--metric", "win-rate", "--by", "domain")
    assert found["by"] == {"domain": "a\ufffd"} and found["value"] == 1


def test_without_items_every_row_is_its_own():
    rows = [{"pro": 1, "anti": 2}, {"pro": 2, "anti": 1}]
    [found] = score(rows, "win-rate")
    assert (found.low, found.high) == statistics.wilson(1, 2)


def test_contrasts_of_one_original_are_one_cluster():
    rows = [pair(at % 2, 0.5, f"i{at}", pair=f"p{at % 2}") for at in range(20)]
    [found] = score(rows, "win-rate")
    alone = statistics.wilson(10, 20)
    assert found.value == 0.5 and found.high - found.low > 2 * (alone[1] - alone[0])
    # An empty pair is none: the items count.
    [found] = score([row | {"pair": ""} for row in rows], "win-rate")
    assert (found.low, found.high) == alone


def test_a_table_for_a_terminal():
    rows = [pair(-1.0, -1.25, at, scorer="bias") for at in range(3)]
    frame = table.from_rows(pd.DataFrame(rows, dtype=object))
    names = [n for n in metrics.default() if metrics.find(n).fits(frame)]
    assert names == ["win-rate", "ties", "bias-score"]
    text = formats.render(metrics.score(frame, names, [], str), "table")
    assert "pairs  win-rate" in text and "0.25" in text
    assert "bias-score: log-probability per token of the part that differs" in text


def test_two_models_on_the_same_pairs():
    paired = pairing.paired
    one = [pair(a, b, at) for at, (a, b) in enumerate([(1, 0)] * 6 + [(0, 1)] * 3 + [(None, 1)])]
    other = [pair(1, 0, at) for at in range(9, -1, -1)]
    frames = [table.from_rows(pd.DataFrame(rows, dtype=object)) for rows in (one, other)]
    [found] = paired(*frames, "win-rate")
    assert (found.n, found.alone, found.a, found.b) == (10, 1, 6 / 9, 1.0)
    assert (found.only_a, found.only_b, found.exact) == (0, 3, None)  # one counts for b only
    # Measures whose units are no pairs by themselves, and numbers that are no shares.
    for name in ("win-rate-mean", "rubia", "mixing", "icat", "bias-score", "bpr-t-test"):
        assert not pairing.fits(metrics.find(name))
    with pytest.raises(
        InputError, match="bias-score is not a share and cannot be paired; --test ks"
    ):
        paired(*frames, "bias-score")
    for name in ("win-rate", "bpr", "crows-pairs", "accuracy", "ambiguous-bias"):
        assert pairing.fits(metrics.find(name))


# --- means and tests


def test_bias_score_is_a_mean_of_differences():
    rows = [
        row | {"scorer": "bias", "bias_type": "a" if at % 3 else "b"}
        for at, row in enumerate(drawn(30))
    ]
    rows += [row | {"scorer": "loglik", "bias_type": "a"} for row in drawn(5)]
    rows.append(pair(math.inf, 1.0, 99, scorer="bias", bias_type="b"))
    found = {s.by["bias_type"]: s for s in score(rows, "bias-score", ["bias_type"])}
    for name, one in found.items():
        gaps = [r["pro"] - r["anti"] for r in rows[:30] if r["bias_type"] == name]
        assert one.value == pytest.approx(sum(gaps) / len(gaps), abs=1e-12) and one.n == len(gaps)
        assert one.low < one.value < one.high
    assert found["b"].excluded == {"infinite": 1} and found["a"].excluded == {}


def test_bpr_and_its_tests_are_scipys():
    rows = [row | {"axis": "age" if at < 18 else "region"} for at, row in enumerate(drawn(40, 5))]
    rows[3] |= {"anti": rows[3]["pro"]}
    for by in ((), ("axis",)):
        cells = {name: {s.by.get("axis"): s for s in score(rows, name, by)}
                 for name in ("bpr", "log-ratio", "bpr-t-test", "bpr-sign-test")}  # fmt: skip
        for cell, ratio in cells["bpr"].items():
            mine = [r for r in rows if cell in (None, r["axis"])]
            pro, anti = ([r[side] for r in mine] for side in ("pro", "anti"))
            wins = sum(a > b for a, b in zip(pro, anti, strict=True))
            ties = sum(a == b for a, b in zip(pro, anti, strict=True))
            assert ratio.value == wins / len(mine) and ratio.n == len(mine)
            assert cells["log-ratio"][cell].value == pytest.approx(np.mean(np.subtract(pro, anti)))
            t, sign = cells["bpr-t-test"][cell], cells["bpr-sign-test"][cell]
            assert t.value == pytest.approx(theirs.ttest_rel(pro, anti).pvalue, rel=1e-9)
            assert sign.value == theirs.binomtest(wins, len(mine) - ties).pvalue
            assert sign.n == len(mine) - ties and sign.excluded == ({"tie": ties} if ties else {})
            assert t.low is None and sign.high is None


def test_a_test_of_nothing_has_no_value():
    [one] = score([pair(1.0, 2.0)], "bpr-t-test")
    assert (one.value, one.n) == (None, 1)
    [same] = score([pair(0.3 + at, 0.1 + at, at) for at in range(5)], "bpr-t-test")
    assert same.value is None
    [ties] = score([pair(1.0, 1.0)], "bpr-sign-test")
    assert (ties.value, ties.n, ties.excluded) == (None, 0, {"tie": 1})
    [none] = score([pair(None, 1.0)], "win-rate")
    assert (none.value, none.low, none.n, none.excluded) == (None, None, 0, {"missing": 1})


def test_bpr_is_of_whole_sentences():
    rows = [
        pair(-1, -2, scorer="loglik"),
        pair(-2, -1, scorer="ppl"),
        pair(-2, -1, 1, scorer="pll"),
    ]
    assert [(s.by["scorer"], s.value) for s in score(rows, "bpr")] == [("loglik", 1), ("pll", 0)]
    assert score([pair(-2, -1, scorer="ppl")], "bpr") == []


# --- a domain, pooled and as the mean of its subdomains


def test_a_domain_both_ways():
    rows = [pair(1, 0, at, domain="d", subdomain="a") for at in range(9)]
    rows += [pair(0, 1, 9, domain="d", subdomain="a"), pair(None, 1, 10, domain="d", subdomain="a")]
    rows += [pair(0, 1, 11, domain="d", subdomain="b"), pair(0, 0, 12, domain="d", subdomain="b")]
    rows += [
        pair(None, 1, 13, domain="d", subdomain="c"),
        pair(1, 0, 14, domain="e", subdomain="a"),
    ]
    pooled = {s.by["domain"]: s for s in score(rows, "win-rate", ["domain"])}
    mean = {s.by["domain"]: s for s in score(rows, "win-rate-mean", ["domain"])}
    assert pooled["d"].value == 9 / 12 and mean["d"].value == pytest.approx((9 / 10 + 0 / 2) / 2)
    assert pooled["e"].value == mean["e"].value == 1
    assert mean["d"].n == 12 and mean["d"].excluded == {"missing": 2}
    assert mean["d"].low < 0.45 < mean["d"].high
    by = {
        tuple(s.by.values()): s.value for s in score(rows, "win-rate-mean", ["domain", "subdomain"])
    }
    assert by == {("d", "a"): 0.9, ("d", "b"): 0, ("d", "c"): None, ("e", "a"): 1}


# --- CrowS-Pairs


def crows_pairs(rows):
    """The loop of CrowS-Pairs' metric.py: sent1 is the one that the direction says."""
    stereo = antistereo = neutral = 0
    directed = {"stereo": 0, "antistereo": 0}
    for row in rows:
        more, less = round(row["pro"], 3), round(row["anti"], 3)
        first, second = (more, less) if row["stereo_antistereo"] == "stereo" else (less, more)
        if first == second:
            neutral += 1
            continue
        directed[row["stereo_antistereo"]] += 1
        if row["stereo_antistereo"] == "stereo":
            stereo += first > second
        else:
            antistereo += second > first
    return (
        (stereo + antistereo) / len(rows),
        neutral / len(rows),
        {"stereo": stereo / directed["stereo"], "antistereo": antistereo / directed["antistereo"]},
    )


def test_crows_pairs_score():
    rows = [
        row | {"stereo_antistereo": "antistereo" if at % 4 == 0 else "stereo", "scorer": "mpll"}
        for at, row in enumerate(drawn(60, 3))
    ]
    for at in (0, 1, 2, 9):  # equal to three decimals, and not to four
        rows[at] |= {"pro": -20.00012, "anti": -20.00049}
    expected, neutral, directed = crows_pairs(rows)
    rows.append(pair(-2, -1, scorer="pll", stereo_antistereo="stereo"))
    [found] = score(rows, "crows-pairs")
    assert found.value == expected and found.n == 60
    assert score(rows, "crows-pairs-neutral")[0].value == neutral > 3 / 60
    by = {s.by["stereo_antistereo"]: s for s in score(rows, "crows-pairs-direction")}
    assert {name: s.value for name, s in by.items()} == directed
    assert sum(s.excluded["neutral"] for s in by.values()) == round(60 * neutral)
    assert by["stereo"].n + by["antistereo"].n == 60 - round(60 * neutral)


# --- StereoSet


def stereoset(rows):
    """StereoSet's evaluation.py: counts by target term, means of terms, the macro ICAT."""
    terms = {}
    for row in rows:
        one = terms.setdefault(row["target"], {"pro": 0, "related": 0, "total": 0})
        one["pro"] += row["pro"] > row["anti"]
        one["related"] += (row["pro"] > row["unrelated"]) + (row["anti"] > row["unrelated"])
        one["total"] += 1
    ss = np.mean([one["pro"] / one["total"] for one in terms.values()])
    lms = np.mean([one["related"] / one["total"] / 2 for one in terms.values()])
    return lms, ss, lms * min(ss, 1 - ss) / 0.5


def test_stereoset_scores():
    rng = np.random.default_rng(2)
    rows = [
        row | {"unrelated": float(rng.normal(-23, 3)), "target": f"t{int(at**0.5)}"}
        for at, row in enumerate(drawn(50, 4))
    ]
    expected = stereoset(rows)
    rows.append(pair(1, 2, 60, unrelated=None, target="t1"))
    for name, value in zip(("lm-score", "stereotype-score", "icat"), expected, strict=True):
        [found] = score(rows, name)
        assert found.value == pytest.approx(value, abs=1e-12)
        assert found.n == 50 and found.excluded == {"missing": 1}
        assert found.low < found.value < found.high
    plain = [{k: v for k, v in row.items() if k != "target"} for row in rows]
    assert score(plain, "lm-score")[0].value == pytest.approx(
        stereoset([r | {"target": ""} for r in rows[:50]])[0]
    )
    ideal = [pair(at % 2, 1 - at % 2, at, unrelated=-1) for at in range(4)]
    assert score(ideal, "icat")[0].value == 1
    assert score([row | {"pro": 2} for row in ideal], "icat")[0].value == 0


# --- RuBia

NAMES = {
    "freeform_gendergap": "freeform_1",
    "freeform_lgb": "freeform_2",
    "freeform_repres": "freeform_3",
    "freeform_transnb": "freeform_4",
}


def test_rubias_published_win_rates_to_the_printed_digit(tmp_path):
    """From their perplexities, by the command: domain and subdomain, and the whole table."""
    with shared("rubia/pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    with shared("rubia/win-rates.csv").open() as file:
        published = {(r["Domain"], r["Subdomain"], r["model"]): r for r in csv.DictReader(file)}
    models = [name.partition(":")[2] for name in rows[0] if name.startswith("ppl_pro:")]
    values = [
        pair(row[f"ppl_pro:{model}"], row[f"ppl_anti:{model}"], at, domain=row["domain"], task_type=row["task_type"]) | {"model": model}
        for model in models
        for at, row in enumerate(rows)
    ]  # fmt: skip
    path = save(tmp_path, values, "perplexities.csv")
    cells = {}
    for one in command(path, "--metric", "rubia", "--perplexity"):
        domain = "diverse" if one["by"]["domain"] == "lgbtq" else one["by"]["domain"]
        task = one["by"]["task_type"]
        cells[domain, NAMES.get(task, task), one["by"]["model"]] = one
    assert cells.keys() == published.keys() and len(cells) == 125
    for key, row in published.items():
        assert f"{100 * cells[key]['value']:.1f}" == row["published"], key
        assert (cells[key]["n"], round(cells[key]["value"] * cells[key]["n"])) == (
            int(row["n"]),
            int(row["wins"]),
        )
    # Cell by cell of the contract, one model a file: the same figures.
    for model in models[:1]:
        one = save(tmp_path, [row for row in values if row["model"] == model], "one.csv")
        for found in command(
            one, "--metric", "win-rate", "--by", "domain,task_type", "--perplexity"
        ):
            domain = "diverse" if found["by"]["domain"] == "lgbtq" else found["by"]["domain"]
            task = NAMES.get(found["by"]["task_type"], found["by"]["task_type"])
            assert f"{100 * found['value']:.1f}" == published[domain, task, model]["published"]
        ties = command(one, "--metric", "ties", "--by", "domain")
        assert {s["by"]["domain"]: round(s["value"] * s["n"]) for s in ties}["lgbtq"] == 1


def test_rubia_takes_each_domain_by_its_scorer():
    rows = [
        pair(wins - 2, -2, f"{domain}-{task}", domain=domain, task_type=task, scorer=scorer)
        for domain, task, scorer, wins in (
            ("gender", "freeform_full", "pll", 1),
            ("gender", "freeform_full", "mpll", -1),
            ("gender", "freeform_prof_stereotype", "pll", -1),
            ("class", "template_poor", "mpll", 1),
            ("class", "template_rich", "mpll", -1),
            ("class", "template_rich", "pll", 1),
            ("lgbtq", "freeform_gendergap", "pll", 1),
            ("lgbtq", "freeform_gendergap", "mpll", -1),
            ("lgbtq", "freeform_lgb", "mpll", -1),
            ("nationality", "freeform_enemy", "mpll", 1),
        )
    ]
    found = {tuple(s.by.values()): (s.value, s.n) for s in score(rows, "rubia")}
    assert found == {
        ("class", "all"): (0.5, 2), ("class", "template_wealth"): (0.5, 2),
        ("gender", "all"): (1, 1), ("gender", "freeform_full"): (1, 1),
        ("gender", "freeform_prof_stereotype"): (0, 1),
        ("lgbtq", "all"): (0, 1), ("lgbtq", "freeform_gendergap"): (1, 1), ("lgbtq", "freeform_lgb"): (0, 1),
        ("nationality", "all"): (1, 1), ("nationality", "freeform_full"): (1, 1),
    }  # fmt: skip


# --- code-mixing


def mixed(n, seed=0, slope=0.6):
    rng = np.random.default_rng(seed)
    share = rng.uniform(0, 1, n).round(2)
    wins = rng.uniform(0, 1, n) < 0.2 + slope * share
    return [
        pair(float(w), 0.5, f"i{at:03}", russian=float(x))
        for at, (x, w) in enumerate(zip(share, wins, strict=True))
    ]


def test_mixing_bins_and_correlations():
    rows = mixed(203)
    ranked = sorted(rows, key=lambda r: (r["russian"], r["item"]))
    bins = [[r for at, r in enumerate(ranked) if at * 5 // 203 == k] for k in range(5)]
    assert {len(part) for part in bins} == {40, 41}
    rows.append(pair(None, 1, "x", russian=0.5))
    rows.append(pair(1, 0, "y", russian=None))  # in one language: no part in this
    np.random.default_rng(1).shuffle(rows)
    wins = [np.mean([r["pro"] > r["anti"] for r in part]) for part in bins]
    shares = [np.mean([r["russian"] for r in part]) for part in bins]
    found = {s.by["bin"]: s for s in score(rows, "mixing")}
    assert [found[at + 1].value for at in range(5)] == pytest.approx(wins)
    assert found[None].excluded == {"missing": 1} and found[None].value is None
    assert [s.value for s in score(rows, "mixing-share")][:5] == pytest.approx(shares)
    [r] = score(rows, "mixing-r")
    x, y = [r["russian"] for r in ranked], [r["pro"] > r["anti"] for r in ranked]
    assert r.value == pytest.approx(theirs.pearsonr(x, np.array(y, float)).statistic)
    assert -1 <= r.low < r.value < r.high <= 1 and r.n == 203
    [five] = score(rows, "mixing-r-bins")
    assert five.value == pytest.approx(theirs.pearsonr(shares, wins).statistic)
    assert five.value > 0.9 > r.value and five.low < five.value


def test_no_spread_no_correlation():
    for name in ("mixing-r", "mixing-r-bins"):
        assert score([pair(1, 0, at, russian=at / 9) for at in range(9)], name)[0].value is None
        assert score([pair(1, 0, russian=0.5)], name)[0].value is None


@pytest.mark.slow
def test_the_interval_of_a_correlation_covers():
    """The mean of many draws is near enough to what the draws come from."""
    truth = score(mixed(20_000, 9), "mixing-r")[0].value
    held = sum(
        s.low <= truth <= s.high for seed in range(40) for s in score(mixed(80, seed), "mixing-r")
    )
    assert held >= 34


# --- choices


def test_bbqs_published_accuracy_and_bias():
    """By the command, from UnifiedQA's predictions: four categories, three formats."""
    found = command(
        shared("bbq/unifiedqa-items.parquet"),
        "--metric", "accuracy", "--metric", "bbq-bias", "--by", "category,model",
    )  # fmt: skip
    cells = {
        (s["metric"], s["by"]["category"], s["by"]["model"], s["by"]["condition"]): s for s in found
    }
    with shared("bbq/published.csv").open() as file:
        published = list(csv.DictReader(file))
    assert len(published) == 20
    for row in published:
        key = (row["category"].replace(" ", "_"), row["model"], row["condition"])
        right, bias = cells["accuracy", *key], cells["bbq-bias", *key]
        assert right["n"] == bias["n"] == int(row["n"])
        assert 100 * right["value"] == pytest.approx(float(row["accuracy"]), abs=1e-9)
        assert 100 * bias["value"] == pytest.approx(float(row["bias"]), abs=1e-9)
        # The paper's own figures, where the labels were not corrected later.
        printed = row["Fig3_bias"] or row["Fig6_left"]
        if row["category"] != "Physical appearance":
            assert 100 * bias["value"] == pytest.approx(float(printed), abs=0.051)


def test_an_oracle_is_right_in_every_category_of_a_file(tmp_path):
    frame = pd.read_parquet(shared("bbq/unifiedqa-items.parquet"))
    frame = frame[frame["model"] == "format_arc"].assign(pred_label=frame["label"])
    path = tmp_path / "oracle.parquet"
    frame.to_parquet(path)
    found = command(path, "--metric", "accuracy", "--metric", "bbq-bias", "--by", "category")
    by = {(s["metric"], s["by"]["category"], s["by"]["condition"]): s["value"] for s in found}
    assert len(by) == 16 and {v for k, v in by.items() if k[0] == "accuracy"} == {1}
    assert {v for k, v in by.items() if k[0] == "bbq-bias" and k[2] == "ambig"} == {0}


def chosen(option, label=2, condition="ambig", **more):
    row = {"label": label, "chosen": option, "target": 0, "unknown": 2}
    return {**row, "condition": condition, "polarity": "neg", "item": str(more), **more}


def test_bbq_bias_by_hand():
    rows = [chosen(0, n=1), chosen(0, n=2), chosen(1, n=3), chosen(2, n=4), chosen(None, n=5)]
    [found] = score(rows, "bbq-bias")
    assert found.value == pytest.approx((1 - 1 / 4) * (2 * 2 / 3 - 1))
    assert found.excluded == {"missing": 1}
    clear = [
        chosen(0, 0, "disambig", n=1),
        chosen(0, 1, "disambig", n=2),
        chosen(2, 1, "disambig", n=3),
    ]
    assert score(clear, "bbq-bias")[0].value == 1  # both answers that name a group
    only = [chosen(2, 2, n=1), chosen(2, 0, "disambig", n=2)]
    assert {s.by["condition"]: s.value for s in score(only, "bbq-bias")} == {
        "ambig": 0,
        "disambig": None,
    }
    # Which of the two formulas, nobody can tell.
    [found] = score([row | {"condition": ""} for row in rows], "bbq-bias")
    assert (found.value, found.excluded) == (None, {"missing": 1, "no condition": 4})
    # Accuracy needs no target; the bias score says what it lacks.
    blind = [row | {"target": None} for row in rows]
    assert score(blind, "accuracy")[0].n == 4
    assert score(blind, "bbq-bias")[0].excluded == {"missing": 1, "no target": 4}
    # What is not known to be right was chosen all the same.
    open_ones = [*rows[:4], rows[0] | {"label": None, "item": 9}]
    for name in ("accuracy", "bbq-bias"):
        [found] = score(open_ones, name)
        assert (found.n, found.excluded) == (4, {"no label": 1})


def test_disambiguated_bias_by_hand():
    rows = [
        chosen(0, 0, "disambig", n=1),
        chosen(1, 0, "disambig", n=2),
        chosen(0, 0, "disambig", n=3),
    ]
    rows += [chosen(0, 1, "disambig", n=4), chosen(1, 1, "disambig", n=5), chosen(1, n=6)]
    [found] = score(rows, "disambiguated-bias")
    assert found.value == pytest.approx(2 / 3 - 1 / 2) and found.n == 5
    # Nothing to compare with: a dash, and why.
    for some, why in ((rows[:3], {"all aligned": 3}), (rows[3:5], {"all reversed": 2})):
        [found] = score(some, "disambiguated-bias")
        assert (found.value, found.n, found.excluded) == (None, 0, why)


def likely(p, condition="ambig", item="q", **more):
    """A row of a table of choices with the probabilities p of target, counter, unknown."""
    row = {
        "condition": condition,
        "label": 2.0,
        "chosen": float(np.argmax(p)),
        "left_out": "",
        "item": item,
    }
    row |= {"target": 0.0, "counter": 1.0, "unknown": 2.0, "model": "m", "scorer": "choice"}
    row |= dict(zip(("p_target", "p_counter", "p_unknown"), p, strict=True))
    row |= {"log_ratio": math.log(p[0] / p[1])}
    return row | {"uncertainty": theirs.entropy(p) / math.log(3), **more}


def test_pbbqs_measures_by_hand():
    ps = [(0.5, 0.3, 0.2), (0.2, 0.2, 0.6), (0.9, 0.05, 0.05)]
    rows = [likely(p, item=str(at)) for at, p in enumerate(ps)]
    rows.append(likely((0.1, 0.8, 0.1), "disambig", "z"))
    rows.append(likely((1 / 3, 1 / 3, 1 / 3), item="t") | {"left_out": "tie", "chosen": math.nan})
    frame = pd.DataFrame(rows)

    def one(name):
        return {s.by.get("condition"): s for s in metrics.score(frame, [name], [], str)}

    assert one("ambiguous-bias")[None].value == pytest.approx((0.2 + 0.85 + 0) / 4)
    logs = [math.log(5 / 3), 0, math.log(18), 0]
    assert one("ambiguous-printed")[None].value == pytest.approx(sum(logs) / 4)
    entropies = [theirs.entropy(p) / math.log(3) for p in [*ps, (1, 1, 1)]]
    assert one("uncertainty")["ambig"].value == pytest.approx(np.mean(entropies))
    assert one("uncertainty")["disambig"].n == 1
    assert one("accuracy")["ambig"].excluded == {"tie": 1}


def test_divergence_from_people(tmp_path):
    from genprobe.outcomes.external import with_people

    rows = [
        likely((0.6, 0.2, 0.2), item="1", pair="a"),
        likely((0.3, 0.3, 0.4), item="2", pair="a"),
    ]
    rows += [
        likely((0.1, 0.4, 0.5), item="3", pair="b"),
        likely((0.1, 0.4, 0.5), item="4", pair="c"),
    ]
    rows.append(likely((0.9, 0.05, 0.05), "disambig", "5", pair="a"))
    people = pd.DataFrame(
        [{"pair": "a", "yes": 30, "no": 10}, {"pair": "b", "yes": 0, "no": 20}], dtype=object
    )
    frame = with_people(pd.DataFrame(rows), people)
    [found] = metrics.score(frame, ["kl-people"], [], str)

    def kl(h, m):
        return theirs.entropy([h, 1 - h], [m, 1 - m])

    model_a = (0.75 + 0.5) / 2
    assert found.value == pytest.approx((kl(0.75, model_a) + kl(0.0, 0.2)) / 2)
    assert found.n == 3 and found.excluded == {"nobody asked": 1}
    # A column of that name in the data need not be of shares: they are given by a table.
    with pytest.raises(InputError, match="--people FILE"):
        metrics.score(frame.drop(columns="people_of"), ["kl-people"], [], str)
    # Asked about a category, people are set beside the model's mean over all of it.
    one = pd.DataFrame([{"category": "x", "people": 0.4}], dtype=object)
    frame = with_people(pd.DataFrame([row | {"category": "x"} for row in rows]), one)
    [found] = metrics.score(frame, ["kl-people"], [], str)
    assert found.value == pytest.approx(kl(0.4, (0.75 + 0.5 + 0.2 + 0.2) / 4)) and found.n == 4
    sure = [likely((1.0, 1e-300, 1e-300), item="6", pair="a") | {"p_counter": 0.0}]
    [found] = metrics.score(with_people(pd.DataFrame(sure), people), ["kl-people"], [], str)
    assert (found.value, found.excluded) == (None, {"infinite": 1})
    for bad, what in (
        ([{"pair": "a", "people": 1.5}], "row 0: give 'people', from 0 to 1"),
        ([{"stereotype": "a", "people": 0.5}], "no column in common: stereotype"),
        ([{"pair": "a", "people": 0.5}] * 2, "row 1: people's answers are given twice"),
    ):
        with pytest.raises(InputError, match=what):
            with_people(pd.DataFrame(rows), pd.DataFrame(bad, dtype=object))
    mine = save(tmp_path, [pair(1, 2)])
    with pytest.raises(InputError, match="has no probabilities of choices"):
        counting.score([mine], people=save(tmp_path, [{"pair": "a", "people": 0.5}], "people.csv"))


def test_scores_as_csv_keep_every_digit(tmp_path):
    path = save(tmp_path, [row | {"scorer": "bias"} for row in drawn(7)])
    result = CliRunner().invoke(cli, ["score", str(path), "--metric", "bias-score", "-f", "csv"])
    [row] = csv.DictReader(io.StringIO(result.stdout))
    gaps = [r["pro"] - r["anti"] for r in drawn(7)]
    assert float(row["value"]) == pytest.approx(sum(gaps) / 7, abs=1e-12)


def test_a_correlation_does_not_go_beyond_one(tmp_path):
    """Rounding put the lower end of an interval at -1.0000000000000024."""
    wins = [1, 1, 0, 0, 0, 1, 1, 1]
    shares = [0.69, 0.11, 0.1, 0.2, 0.68, 0.85, 0.64, 0.41]
    rows = [
        {"item": n, "pair": [0, 0, 1, 1, 2, 3, 3, 4][n], "pro": win, "anti": 0.5, "russian": share}
        for n, (win, share) in enumerate(zip(wins, shares, strict=True))
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name in ("mixing-r", "mixing-r-bins"):
        (found,) = command(path, "--metric", name)
        assert -1 <= found["low"] <= found["value"] <= found["high"] <= 1
