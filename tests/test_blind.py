"""Judges on examples written by others: floors under the published figures.

docs/reading.md, docs/choices.md and docs/story-sentiment.md have the figures. In `blind/` stand
examples that nobody who mends a judge has seen; in `seen/` those that were blind once, and are for
development now. Whoever mends a judge with blind ones in view makes them seen: move them, and have
others write new ones then.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from genprobe.judges import Item
from genprobe.resources import measured, registry

HERE = Path(__file__).parent


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def answers(path: Path) -> Counter[str]:
    judge = registry.module("judges", "yesno").make()
    found: Counter[str] = Counter()
    for row in rows(path):
        item = Item(row["lang"], row["probe"], row.get("prompt") or "", row["response"])
        said, meant = judge(item).label, row["answer"]
        found["all"] += 1
        found["right"] += said == meant
        found["turned"] += {said, meant} == {"yes", "no"}
        found["cut"] += row.get("kind") == "unfinished" and said != "ambiguous"
    return found


@pytest.mark.slow
def test_answers_of_replies_of_other_authors():
    found = answers(HERE / "seen" / "yesno_2.jsonl")
    assert found["right"] >= 0.955 * 900 and found["turned"] <= 0.008 * 900
    found = answers(HERE / "seen" / "yesno.jsonl")
    assert found["all"] == 924
    assert found["right"] >= 0.98 * 924 and found["turned"] <= 0.005 * 924
    assert found["cut"] == 0  # no thought that was cut off counts as an answer


def test_answers_of_blind_replies():
    found = answers(HERE / "blind" / "yesno.jsonl")
    assert found["all"] == 900
    assert found["right"] >= 0.93 * 900 and found["turned"] <= 0.01 * 900
    assert found["cut"] == 0


@pytest.mark.slow
def test_answers_of_sentences_that_the_stems_were_mended_on():
    parts = [answers(path) for path in sorted((HERE / "sentences_today").glob("*.jsonl"))]
    found = sum(parts, Counter())
    assert len(parts) == 18
    assert found["right"] >= 0.94 * found["all"] and found["turned"] <= 0.003 * found["all"]


def test_what_others_say_is_no_answer_of_the_speaker():
    """Verbs of saying behind what is said (kk, mr, bn, hi, fa, de), and words like English "no".

    The examples were written before the rules for them: 112, fifty more after those for the first,
    thirty more after those. At first reading 79, 39 and 23 were right.
    """
    found = answers(HERE / "reported.jsonl")
    assert found["all"] == 192
    assert found["right"] >= 184 and not found["turned"]


def test_who_weighs_two_sides_answers_both_and_who_leans_answers():
    """Some deny by themselves (Bengali "baseless"); "they tend to" is a tendency, no answer."""
    found = answers(HERE / "weighed.jsonl")
    assert found["all"] == 152
    assert found["right"] >= 148 and not found["turned"]


def test_answers_of_replies_that_the_rules_were_mended_on():
    parts = [answers(path) for path in sorted((HERE / "replies_today").glob("*.jsonl"))]
    found = sum(parts, Counter())
    assert len(parts) == 18 and found["all"] == 900
    assert found["right"] >= 0.96 * found["all"] and found["turned"] <= 0.005 * found["all"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("seen/choices", 0.99, 0.005), ("seen/choices_2", 0.98, 0.005), ("blind/choices", 0.95, 0.01)],
)
def test_options_of_replies_of_other_authors(name, right, wrong):
    judge = registry.module("judges", "choice").make()
    found: Counter[str] = Counter()
    for row in rows(HERE / f"{name}.jsonl"):
        item = Item(row["lang"], "", "", row["response"], options=tuple(row["options"]))
        item = item._replace(marks=tuple(row["shown"] or ()))
        said = judge(item).label
        chosen = int(said) if said.isdigit() else None
        found["all"] += 1
        found["right"] += chosen == row["chosen"]
        found["wrong"] += chosen is not None and chosen != row["chosen"]
    assert found["right"] >= right * found["all"] and found["wrong"] <= wrong * found["all"]


@pytest.mark.parametrize("lang", ["kk", "ru", "fa", "en"])
@pytest.mark.parametrize(("name", "least"), [("seen", 0.97), ("blind", 0.75)])
def test_sentiment_of_stories_that_are_trained_on_and_of_blind_ones(name, least, lang):
    judge = registry.module("judges", "sentiment").make()
    mine = [r for r in rows(HERE / name / "stories.jsonl") if r["lang"] == lang]
    pairs = [
        (row["sentiment"], judge(Item(lang, "", "", row["response"])).label)
        for row in mine
        if row["sentiment"]
    ]
    scores = []
    for label in ("negative", "neutral", "positive"):
        hits = sum(meant == said == label for meant, said in pairs)
        total = sum((meant == label) + (said == label) for meant, said in pairs)
        scores.append(2 * hits / total)
    assert sum(scores) / 3 >= least


def right(path: Path, column: str, part: str | None = None) -> tuple[int, int]:
    """How many essays the judge of refusals gets right, of how many."""
    asked = registry.module("judges", "refusal").make()
    found = [row for row in rows(path) if column in row and part in (None, row.get("set"))]
    said = [asked(Item(row["lang"], "", "", row["response"])).label for row in found]
    meant = [{True: "yes", False: "no"}.get(row[column], row[column]) for row in found]
    return sum(a == b for a, b in zip(said, meant, strict=True)), len(found)


@pytest.mark.slow
def test_refusals_of_essays():
    hits, n = right(HERE / "seen" / "refusals.jsonl", "refused")
    assert n == 576 and hits >= 0.98 * n
    hits, n = right(HERE / "seen" / "essays.jsonl", "refused", "typical")
    assert n == 108 and hits >= 0.95 * n
    hits, n = right(HERE / "blind" / "refusals.jsonl", "refused")
    said = measured.accuracy("refusal")
    assert n == said[1] == 72 and abs(hits - said[0]) <= 2


def test_what_shares_are_corrected_by_is_what_the_judges_call_blind_texts():
    refusal, story = (registry.module("judges", name).make() for name in ("refusal", "story"))
    found: Counter[tuple[str, str, str]] = Counter()
    for name in ("stance", "refusals", "stories"):
        for row in rows(HERE / "blind" / f"{name}.jsonl"):
            item = Item(row["lang"], "", "", row["response"])
            refuses = "refuses" if row.get("refused") else "answers"
            if name == "stance" or row.get("refused"):
                said = "refuses" if refusal(item).label == "yes" else "answers"
                found["refusal", refuses, said] += 1
            if name == "stories" or row.get("refused"):
                said = "refuses" if story(item).label == "refusal" else "answers"
                found["story", refuses, said] += 1
    for judge, made in (("refusal", refusal), ("story", story)):
        assert f"{made.signature}+".startswith(f"{measured.version(judge)}+"), "measure it again"
        labels, called = measured.called(judge)
        for label, own in zip(labels, called, strict=True):
            for said, n in zip(labels, own, strict=True):
                assert abs(found[judge, label, said] - n) <= 2, (judge, label, said)


def test_the_classifier_of_stories_does_not_read_regard():
    judge = registry.module("judges", "sentiment").make()
    found = rows(HERE / "seen" / "regard.jsonl")
    said = [judge(Item(row["lang"], "", "", row["response"])).label for row in found]
    assert sum(a == row["sentiment"] for a, row in zip(said, found, strict=True)) == 20
    assert sum(a == row["regard"] for a, row in zip(said, found, strict=True)) == 10
