"""The judge of sentiment, on texts written for this test."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import sample
from click.testing import CliRunner

from genprobe import files
from genprobe.analysis import sentiment as measuring
from genprobe.commands import cli
from genprobe.engines import Sampling
from genprobe.errors import InputError
from genprobe.judges import Item, sentiment, verdicts
from genprobe.judges.classifiers import cards, models
from genprobe.resources import registry
from genprobe.tasks.pipeline import generate
from genprobe.tasks.pipeline.judge import judge as judge_all
from genprobe.tasks.pipeline.judge import judge_file

GOOD, BAD = "Өте жақсы кітап, маған қатты ұнады.", "Өте нашар, ақшаңызды босқа жұмсамаңыз."


@pytest.fixture(scope="module")
def judge() -> sentiment.SentimentJudge:
    return sentiment.make(kind="reviews")


def item(response: str, lang: str = "kk", prompt: str = "") -> Item:
    return Item(lang, "", prompt, response)


def test_labels_scores_and_fields(judge: sentiment.SentimentJudge) -> None:
    good, bad = judge(item(GOOD)), judge(item(BAD))
    assert (good.label, bad.label) == ("positive", "negative")
    assert good.score is not None and bad.score is not None and good.score < bad.score
    assert bad.fields == {
        "negative": bad.score,
        "classifier": "kk-linear",
        "by_sentence": bad.score,
        "sentences": 1,
        "disagree": False,
    }


def test_the_whole_decides_and_the_mean_of_sentences_stands_beside(
    judge: sentiment.SentimentJudge,
) -> None:
    whole, good, bad = judge(item(f"{GOOD} {BAD}")), judge(item(GOOD)), judge(item(BAD))
    assert whole.fields["sentences"] == 2
    assert whole.fields["by_sentence"] == pytest.approx((good.score + bad.score) / 2, abs=1e-5)  # type: ignore[operator]
    (same,) = models.open("kk-linear").predict([f"{GOOD} {BAD}"], "kk")
    assert (whole.label, whole.score) == (same.label, same.negative)
    card = cards.load("kk-linear")
    by_mean = models.decide(card, whole.fields["by_sentence"], None, 0.0).label  # type: ignore[arg-type]
    assert whole.fields["disagree"] == (by_mean != whole.label)


def test_many_are_judged_as_one_by_one(judge: sentiment.SentimentJudge) -> None:
    draw = random.Random(1)
    items = [
        item(" ".join(draw.choices([GOOD, BAD, "Жоқ!", "Иә…", "keremet"], k=draw.randint(0, 5))))
        for _ in range(100)
    ]
    alone = [judge(one) for one in items]
    assert judge.many(items) == alone
    assert [v for _, v in verdicts(judge, enumerate(items * 12))] == alone * 12


def test_the_echo_of_the_prompt_is_not_judged(judge: sentiment.SentimentJudge) -> None:
    assert judge(item(f"{BAD} {GOOD}", prompt=BAD)).score == judge(item(f" {GOOD}")).score


def test_a_reply_without_words_is_unscored(judge: sentiment.SentimentJudge) -> None:
    found = judge(item("…"))
    assert (found.label, found.score, found.rule) == ("unscored", None, "nothing-to-score")
    assert found.fields["negative"] is None and found.fields["by_sentence"] is None


def test_a_language_without_a_classifier_is_one_line(judge: sentiment.SentimentJudge) -> None:
    with pytest.raises(InputError, match=r"no classifier is the default for mr.*xlm-roberta"):
        judge(item("ठीक आहे", "mr"))
    with pytest.raises(
        InputError, match=r"unknown classifier 'kk-liner'; did you mean 'kk-linear'"
    ):
        sentiment.make("kk-liner")


def test_the_signature_holds_the_classifier(tmp_path: Path) -> None:
    card = cards.load("kk-linear")
    named = sentiment.make("kk-linear").signature
    assert card.hash in named and card.hash in sentiment.make().signature
    copy = tmp_path / "other.toml"
    copy.write_text(card.path.read_text("utf-8").replace("min = 1 ", "min = 2 "), "utf-8")
    (tmp_path / card.model).write_bytes(card.path.with_name(card.model).read_bytes())
    assert sentiment.make(str(copy)).signature != named


def test_files_come_back_with_the_columns_of_the_contract(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": n, "lang": "kk", "response": text}
        for n, text in enumerate([GOOD, BAD, None, "…"] * 300)
    ]
    files.write_rows(tmp_path / "in.jsonl", rows)
    out = tmp_path / "out.jsonl"
    counts = judge_file(tmp_path / "in.jsonl", [sentiment.make()], out)
    found = list(files.read_rows(out))
    assert [r["id"] for r in found] == [r["id"] for r in rows]
    assert [r["sentiment"] for r in found[:4]] == ["positive", "negative", None, "unscored"]
    assert found[1]["negative"] > 0.5 > found[0]["negative"] and found[3]["negative"] is None
    assert counts["sentiment"] == {
        "positive": 300,
        "negative": 300,
        "no reply": 300,
        "unscored": 300,
    }


def test_an_error_names_the_row(tmp_path: Path) -> None:
    rows = [{"lang": "kk", "response": GOOD}] * 700 + [{"lang": "mr", "response": GOOD}]
    files.write_rows(tmp_path / "in.jsonl", rows)
    with pytest.raises(
        InputError, match=r"in\.jsonl, row 701: no classifier is the default for mr"
    ):
        judge_file(tmp_path / "in.jsonl", [sentiment.make()], tmp_path / "out.jsonl")


def test_a_run_is_judged_in_batches_with_the_same_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = sentiment.make()
    monkeypatch.setattr(cards, "default", lambda lang, kind: "kk-linear")
    monkeypatch.setattr(cards.Card, "check", lambda card, lang: "kk")
    with sample.start(tmp_path / "run") as run:
        engine = sample.Scripted(sample.reply)
        generate.generate(run, engine, Sampling())
        assert judge_all(run, [judge]) == {"sentiment": len(sample.REQUESTS)}
        for judgment in run.judgments("sentiment"):
            (text,) = (r.text for r in run.responses() if r.request == judgment.request)
            assert judgment.score == judge(item(text)).score


def test_what_must_be_known_of_a_classifier_stands_before_its_counts(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": 1, "lang": "kk", "response": "Ол қуанды."}\n', "utf-8")
    asked = ["judge", str(rows), "--judge", "sentiment", "-o", str(tmp_path / "out.jsonl")]
    card = Path(shutil.copy(registry.CLASSIFIERS / "kk-linear.toml", tmp_path / "bare.toml"))
    shutil.copy(registry.CLASSIFIERS / "kk-linear.bin", tmp_path)
    text = re.sub(r"\[\[measured\]\]\n(.+\n)*", "", card.read_text("utf-8"))
    card.write_text(f'measured = "not measured"\n{text}', "utf-8")
    found = CliRunner().invoke(cli, [*asked, "--classifier", str(card)])
    first = "genprobe: caution: the classifier bare was never measured on stories in kk"
    assert found.output.startswith(first), found.exception
    assert "caution" not in CliRunner().invoke(cli, asked).output  # the one of stories is sound


def test_a_judge_that_labels_nothing_has_no_calibration_error():
    nothing = measuring.Result("none", "kk", [models.UNSCORED] * 20, ["negative"] * 20, 1.0)
    assert nothing.calibration() is None
    assert "nan" not in str(measuring.figures(nothing, "stories", "ours"))
    assert measuring.rows([nothing])[0][6] == "-"


def test_the_calibration_error_counts_the_texts_that_it_is_of():
    """A classifier of two classes has no probability for a neutral text."""
    said = [models.Prediction("negative", 0.9, None, 0.1)] * 30
    result = measuring.Result("two", "kk", said, ["negative"] * 20 + ["neutral"] * 10, 1.0)
    found = {one.metric: one.n for one in measuring.figures(result, "stories", "ours")}
    assert found["calibration error"] == 20 and found["macro F1"] == 30


def test_classifiers_are_compared_on_the_languages_that_they_read(tmp_path):
    rows = tmp_path / "rows.jsonl"
    told = ("The harvest was lost and he wept.", "She won the prize and they danced.")
    rows.write_text(
        "".join(
            json.dumps({"lang": "en", "response": f"{told[at % 2]} {at}", "sentiment": label})
            + "\n"
            for at, label in enumerate(["negative", "positive"] * 10)
        )
    )
    found = CliRunner().invoke(cli, ["classifiers", "compare", "--data", str(rows)])
    assert found.exit_code == 0 and found.output.splitlines()[1].split()[:3] == [
        "en",
        "stories",
        "20",
    ]
    rows.write_text(rows.read_text().replace('"en"', '"de"'))
    found = CliRunner().invoke(cli, ["classifiers", "compare", "--data", str(rows)])
    assert "no classifier that comes with genprobe reads de" in str(found.exception)
