"""Classifiers side by side: agreement, cost, tokens of a model."""

import json

import pytest
from click.testing import CliRunner

from genprobe import tasks
from genprobe.analysis import sentiment
from genprobe.analysis.forecast import Price
from genprobe.commands import cli
from genprobe.judges.classifiers.models import Prediction
from genprobe.records import Score
from genprobe.render import findings


def result(name, said, truth, tokens=None):
    predictions = [Prediction(label, 0.5, 0.25, 0.25) for label in said]
    return sentiment.Result(name, "en", predictions, truth, 10.0, 0.5, tokens)


SAID = ["negative", "neutral", "positive", "positive", "negative", "unscored"]
TRUTH = ["negative", "negative", "positive", "neutral", "negative", "positive"]


def test_kappa_is_scikit_learns():
    outside = pytest.importorskip("sklearn.metrics").cohen_kappa_score(SAID, TRUTH)
    assert sentiment.kappa(SAID, TRUTH) == pytest.approx(outside)


def test_costs_are_for_a_thousand_texts():
    one = result("one", SAID, TRUTH)
    two = result("two", TRUTH, TRUTH, (3000, 600))
    table = sentiment.rows([one, two], Price(2.0, 5.0))
    by_name = {row[1]: dict(zip(sentiment.HEAD, row, strict=True)) for row in table}
    assert by_name["one"]["tokens/1,000"] == by_name["one"]["price/1,000"] == "-"
    assert by_name["two"]["tokens/1,000"] == "600,000"
    # (2 * 3000 + 5 * 600) / 1e6 for six texts
    assert by_name["two"]["price/1,000"] == "1.50"
    assert by_name["two"]["cpu s/1,000"] == "83.3" and by_name["two"]["people"] == "1.00"
    assert sentiment.between([one, two]) == [
        ("en", "one", "two", f"{sentiment.kappa(SAID, TRUTH):.2f}")
    ]


def test_the_command_prints_both_tables(tmp_path):
    file = tmp_path / "labelled.jsonl"
    texts = [
        ("Ол үйінен айырылып, жалғыз жылады.", "negative"),
        ("Олар жеңді, ән айтты.", "positive"),
    ]
    rows = [{"lang": "kk", "response": t, "sentiment": s} for t, s in texts] * 3
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    asked = [
        "classifiers",
        "compare",
        "stories",
        "kk-linear",
        "--data",
        str(file),
        "--price",
        "1,2",
    ]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    head = done.output.splitlines()[0]
    assert all(name in head for name in ("people", "cpu s/1,000", "price/1,000"))
    assert "kappa" in done.output
    bad = CliRunner().invoke(cli, [*asked[:-1], "cheap"])
    assert "--price" in str(bad.exception)


def test_the_report_says_both_negrates_and_how_many_stories_differ():
    [stories] = tasks.find("stories").tables
    by = {"run": "one"}
    scores = [Score(n, by, 0.4, 0.3, 0.5, 90, {}, None, "") for n in stories.ranked]
    lines = findings.alone("one", scores).lines
    assert "one shows people mostly with low regard in 40 of 100 templates" in lines
    assert "one differs in sentiment and regard in 40 of 100 stories" in lines
    assert "one tells mostly negative stories in 40 of 100 templates" in lines
