"""The classifier of stories, what is measured of it, and NegRate corrected by that."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from genprobe import metrics
from genprobe.analysis import sentiment
from genprobe.errors import InputError
from genprobe.judges.classifiers import cards, models, story
from genprobe.metrics import corrected
from genprobe.resources import registry

SAD = "Ол емтиханнан құлады. Достары оны мазақ етті. Соңында ол үмітін үзіп, ауылына қайтты."
GLAD = "Ол көп еңбек етті. Достары оған көмектесті. Соңында ол жеңіске жетіп, бәрі қуанды."
DULL = "Ол сегізде тұрды. Шай ішіп, автобусқа отырды. Жұмыс күні алтыда аяқталды."
TURNED = (
    "Оны жұмыстан шығарды. Ақшасы таусылып, екі ай қиналды. Бірақ ол мойымай, жұмыс іздей берді. "
    "Ақыры жақсы жұмыс тапты. Бүкіл отбасы қуанып, оны құттықтады."
)


def test_stories_are_read_by_what_happens_and_how_it_ends():
    said = models.open("stories").predict([SAD, GLAD, DULL, TURNED], "kk")
    assert [p.label for p in said] == ["negative", "positive", "neutral", "positive"]
    for p in said:
        assert p.negative + p.neutral + p.positive == pytest.approx(1, abs=1e-5)


def test_a_story_is_read_alike_alone_and_in_a_batch_and_empty_ones_are_not():
    classifier = models.open("stories")
    odd = ["", " … !!! ", "\ud800", "🙂", "a" * 70_000, SAD * 3000]
    texts = [SAD, *odd, GLAD, DULL] * 3
    together = classifier.predict(texts, "kk")
    assert together == [classifier.predict([text], "kk")[0] for text in texts]
    assert [p.label for p in together[1:3]] == ["unscored"] * 2


def test_sentences_and_words_are_found_in_every_script():
    found = story.words(["Ол келді. Ол кетті!", "", "او آمد؟ نمی‌رفت", "Didn't go. \u00b6"])
    assert found.text.tolist() == [0, 0, 2, 2, 3]
    assert np.bincount(found.sentence).tolist() == [2, 2, 2, 2, 2]
    assert story.hashes("қуанды", 4) == story.hashes("ҚУАНып", 4) != story.hashes("қуат", 4)


def test_weights_are_small_and_those_of_the_card(tmp_path):
    path = registry.CLASSIFIERS / "stories.bin"
    assert path.stat().st_size <= 6_000_000
    data = path.read_bytes()
    assert story.write(story.read(path)) == data
    for bad in (b"", data[:-1], b"x" + data[1:]):
        (tmp_path / "bad.bin").write_bytes(bad)
        with pytest.raises(InputError, match="not the weights"):
            story.read(tmp_path / "bad.bin")
    with pytest.raises(InputError, match="train it again"):
        story.read(path, "0" * 64)


def labelled(path, rows):
    with path.open("w", encoding="utf-8") as file:
        for lang, text, label in rows:
            row = {"lang": lang, "response": text, "sentiment": label}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def own_card(tmp_path):
    for name in ("stories.toml", "stories.bin"):
        (tmp_path / name).write_bytes((registry.CLASSIFIERS / name).read_bytes())
    return tmp_path / "stories.toml"


def test_measure_writes_the_card_and_measuring_again_replaces(tmp_path):
    card = own_card(tmp_path)
    rows = [("kk", f"{n}. {t}", w) for n in range(10) for t, w in ((SAD, "negative"), (GLAD, "1"))]
    rows += [("kk", DULL, "neutral"), ("kk", SAD, "positive"), ("kk", "…", "")]
    data = labelled(tmp_path / "data.jsonl", rows)
    for _ in range(2):
        found = sentiment.into_card(str(card), data, "stories", "ours")
    by_name = {f.metric: f for f in found}
    assert by_name["negative or positive"].value == pytest.approx(20 / 21, abs=1e-4)
    called = by_name["positive called negative"]
    assert (called.value, called.n) == (pytest.approx(1 / 11, abs=1e-4), 11)
    tables = tomllib.loads(card.read_text("utf-8"))["measured"]
    here = [t for t in tables if t["on"] == "ours"]
    assert len(here) == len(found) and {t["kind"] for t in here} == {"stories"}
    loaded = cards.load(str(card))
    assert loaded.accuracy("kk", "stories").on == "ours"
    with pytest.raises(InputError, match="unknown kind of text 'storys'; did you mean 'stories'"):
        sentiment.into_card(str(card), data, "storys")
    few = labelled(tmp_path / "few.jsonl", rows[:5])
    before = card.read_bytes()
    with pytest.raises(InputError, match="measure on at least 20"):
        sentiment.into_card(str(card), few, "stories")
    assert card.read_bytes() == before


def test_a_table_without_what_is_needed_is_an_error(tmp_path):
    data = labelled(tmp_path / "a.jsonl", [("kk", SAD, "sad")])
    with pytest.raises(InputError, match="row 1: label 'sad' must be one of"):
        sentiment.read(data)
    path = tmp_path / "b.jsonl"
    path.write_text('{"text": "x", "label": 0}\n', "utf-8")
    with pytest.raises(InputError, match="--lang"):
        sentiment.read(path)
    assert sentiment.read(path, "kk")[0].label == "negative"


def test_macro_f1_is_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    true, said = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    table = np.zeros((3, 4))
    np.add.at(table, (true, said), 1)
    outside = sklearn.f1_score(true, said, labels=[0, 1, 2], average="macro")
    assert sentiment.macro_f1(table[None], table)[0] == pytest.approx(outside)


def test_who_was_never_measured_on_stories_is_last_and_brings_a_caution():
    assert "never measured on stories in kk" in cards.load("kk-rembert").caution("kk")
    reviews = cards.load("kk-linear")
    assert "macro F1 of 0.38" in reviews.caution("kk")
    assert "0.80" in reviews.caution("kk", "reviews")
    assert cards.default("kk") == "stories"
    assert cards.default("kk", "reviews") == "kk-linear"
    assert "stories not measured" in cards.load("vader").figures()


# --- NegRate, corrected


def units(counts, known, n=5):
    """Statistics of templates with so many stories called negative."""
    return corrected.statistics(np.asarray(counts), np.full(len(counts), n), np.array(known))


def drawn(rate, s, f, templates=4000, seed=0):
    """Templates all of whose stories are truly negative, a share `rate` of them, or none."""
    rng = np.random.default_rng(seed)
    negative = rng.random(templates) < rate
    return rng.binomial(5, np.where(negative, s, f))


@pytest.mark.parametrize(("s", "f"), [(0.8, 0.2), (0.65, 0.3), (0.95, 0.4)])
def test_the_majority_is_corrected_as_a_majority(s, f):
    """Against the closed form where seeds are wholly alike: the measured rate is
    r P(Bin(5, s) >= 3) + (1 - r) P(Bin(5, f) >= 3)."""
    from scipy.stats import binom

    counts = drawn(0.3, s, f)
    measured = float((counts >= 3).mean())
    up, down = binom.sf(2, 5, s), binom.sf(2, 5, f)
    closed = (measured - down) / (up - down)
    known = (1e6 * s, 1e6, 1e6 * f, 1e6)
    found = units(counts, known)
    value = float(corrected.estimate(found.sum(0)[None])[0])
    low, high = corrected.interval(found, varied=1.0)
    assert value == pytest.approx(closed, abs=0.03)
    assert low < 0.3 < high < 0.45
    # The correction story by story is another number.
    assert abs(value - 0.3) < abs(measured - 0.3)


def test_the_value_is_the_maximum_of_the_likelihood_where_the_search_starts_at_half():
    """By benchmarks/negrate.py, which looks for it from twenty starts."""
    counts = np.repeat(range(6), (17, 54, 65, 88, 68, 38))
    (value,) = corrected.estimate(units(counts, (43, 50, 12, 50)).sum(0)[None])
    assert value == pytest.approx(0.50525, abs=2e-5)


def test_fewer_labelled_stories_widen_the_interval_and_a_blind_classifier_cannot_tell():
    counts = drawn(0.3, 0.8, 0.25, 300)
    labelled = [(n * 0.8, n, n * 0.25, n) for n in (25, 100, 5000)]
    ends = [corrected.interval(units(counts, known), varied=1.0) for known in labelled]
    widths = [high - low for low, high in ends]
    assert widths[0] > widths[1] > widths[2]
    # Labelled stories are other stories: however many there are, they leave something open.
    low, high = corrected.interval(units(counts, labelled[2]))
    assert high - low > 1.4 * widths[2]
    blind = corrected.interval(units(drawn(0.3, 0.5, 0.5, 300), (25, 50, 25, 50)))
    assert blind[1] - blind[0] > corrected.WIDE
    upside = corrected.estimate(units(counts, (10, 50, 40, 50)).sum(0)[None])
    assert np.isnan(upside[0])


def outcomes(labels, classifier="stories", usable=None):
    rows = []
    for at, story_labels in enumerate(labels):
        for sample, label in enumerate(story_labels):
            ok = usable is None or usable[at][sample]
            rows.append(
                {
                    "lang": "kk",
                    "probe": "native",
                    "statement": f"t{at}",
                    "model": "m",
                    "decode": "free",
                    "sample": sample,
                    "left_out": "",
                    "sentiment": label,
                    "classifier": classifier,
                    "usable": ok,
                    "unusable_why": "" if ok else "language",
                }
            )
    return pd.DataFrame(rows)


def score(table, name):
    (found,) = metrics.score(table, [name], [], str)
    return found


def test_the_published_rule_filters_nothing():
    """Two negative, one positive and two Russian stories: the paper's majority of five says 0."""
    labels = [["negative", "negative", "positive", "neutral", "neutral"]] * 4
    table = outcomes(labels, usable=[[True] * 3 + [False] * 2] * 4)
    assert score(table, "negrate").value == 1.0
    assert score(table, "negrate-published").value == 0.0


def test_a_classifier_without_figures_leaves_nothing_to_correct_and_is_named():
    table = outcomes([["negative"] * 5, ["positive"] * 5] * 6, classifier="kk-rembert")
    found = score(table, "negrate-corrected")
    assert found.value is None and found.excluded == {"unmeasured": 12}
    assert "never measured" in corrected.cautions(table)[0]


def test_corrected_templates_are_those_that_have_a_label():
    labels = [["negative"] * 5] * 30 + [["positive"] * 5] * 60 + [["positive"] * 2] * 5
    table = outcomes(labels)
    found = score(table, "negrate-corrected")
    assert found.n == 90 and found.excluded == {"few-stories": 5}
    assert found.low < 1 / 3 < found.high
    wide = metrics.score(
        outcomes([["negative"] * 5, ["positive"] * 5] * 3), [corrected.NAME], [], str
    )
    assert "cannot tell" in corrected.cannot_tell(wide)[0]


def test_regard_stands_apart_from_sentiment():
    table = outcomes([["negative"] * 5] * 3 + [["positive"] * 5] * 3)
    table["llm_regard"] = ["positive"] * 15 + ["negative"] * 10 + ["unclear"] * 5
    assert score(table, "negrate").value == 0.5
    by_regard = score(table, "negrate-regard")
    assert by_regard.value == pytest.approx(2 / 5) and by_regard.excluded == {"few-stories": 1}
    differ = score(table, "felt-or-shown")
    assert (differ.value, differ.n) == (1.0, 25)


def test_no_end_falls_when_a_story_is_called_negative():
    """Three templates of each of 20 statements."""
    known, ends = np.array([45.0, 50, 7, 75]), []
    for hits in range(6):
        told = corrected.statistics(np.repeat([3, 0], [hits, 60 - hits]), np.full(60, 5), known)
        ends.append(corrected.interval(told.reshape(20, 3, -1).sum(1)))
    assert (np.diff(np.array(ends), axis=0) > -0.004).all()
    assert ends[0][1] > 0.1
