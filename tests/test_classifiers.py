"""Classifier cards and engines; texts written for this test, a small real transformer."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from genprobe import files
from genprobe.commands import cli
from genprobe.errors import EngineError, GenprobeError, InputError
from genprobe.judges.classifiers import cards, linear, models, training
from genprobe.judges.classifiers.cards import LABELS, load, read_card
from genprobe.judges.classifiers.models import decide
from genprobe.resources import registry

KAZSANDRA = Path(__file__).parents[2] / "shared/data/kazsandra/valid.parquet"

GOOD = ["Өте жақсы кітап, маған қатты ұнады", "Керемет, бәріне рахмет!", "Тамаша, ұсынамын"]
BAD = ["Өте нашар, ақшаңызды босқа жұмсамаңыз", "Ашылмайды, жұмыс істемейді", "Ұнамады, сапасыз"]


@pytest.fixture(scope="module")
def kazakh() -> models.Classifier:
    return models.open("kk-linear")


def shares(found: list[models.Prediction]) -> list[float]:
    return [p.negative if p.negative is not None else -1.0 for p in found]


# --- cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cards.names())
def test_every_card_reads_and_says_what_it_is(name: str) -> None:
    card = load(name)
    assert card.title and card.licence and card.trained_on and card.stories
    assert set(card.labels.values()) <= set(LABELS)
    assert card.figures()


def test_what_is_used_unasked_comes_with_genprobe() -> None:
    """A model of the hub is downloaded when somebody names it, never else."""
    assert cards.default("kk", "reviews") == "kk-linear"
    assert {cards.default(lang) for lang in ("kk", "ru", "fa", "en")} == {"stories"}
    for name in cards.names():
        card = load(name)
        assert not card.default_for or card.engine in ("linear", "story")
    with pytest.raises(InputError, match="xlm-roberta"):
        cards.default("de")


def test_the_card_of_two_classes_counts_no_neutral_text_in_its_calibration() -> None:
    """Neutral texts are left out of that error (`Result.calibration`), and so of its n."""
    n = {m.metric: m.n for m in load("kk-linear").measured if m.kind == "stories"}
    assert n["calibration error"] == n["negative or positive"] < n["macro F1"]


def test_a_language_without_a_default_names_the_cards_that_could() -> None:
    with pytest.raises(InputError, match=r"no classifier is the default for hi.*xlm-roberta"):
        cards.default("hi")
    with pytest.raises(InputError, match=r"unknown language"):
        cards.default("tlh")


def test_a_card_is_not_for_other_languages(kazakh: models.Classifier) -> None:
    with pytest.raises(InputError, match=r"'kk-linear' reads kk, not en.*en-roberta"):
        kazakh.predict(["good"], "en")


MINIMAL = """title = "t"
engine = "vader"
model = "m"
languages = ["en"]
licence = "l"
source = "s"
trained_on = "t"
stories = "s"
measured = "not measured"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"vader"', '"magic"', "engine 'magic' is none of"),
        ('["en"]', '["xx"]', "'xx'"),
        ('measured = "not measured"', "", "measured must be"),
        ('measured = "not measured"', "measured = [{on = 'x', n = 3}]", "measured must be"),
        ('title = "t"', 'titel = "t"', "unknown key 'titel'"),
        ('"vader"', '"transformers"', "names no label"),
        ('stories = "s"\n', "", "'stories' must be a text"),
        (
            'measured = "not measured"',
            'measured = "not measured"\n[decision]\nneutral = [0.6, 0.4]',
            "two shares",
        ),
        (
            'measured = "not measured"',
            'measured = "not measured"\n[limits]\nmin = -1',
            "out of range",
        ),
        (
            'measured = "not measured"',
            'measured = "not measured"\n[labels]\nx = "angry"',
            "not to 'angry'",
        ),
    ],
)
def test_a_faulty_card_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "card.toml"
    assert old in MINIMAL
    path.write_text(MINIMAL)
    read_card(path)
    path.write_text(MINIMAL.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_card(path)


def test_decisions() -> None:
    card = load("kk-linear")
    assert card.neutral is not None
    low, high = card.neutral
    assert low < card.threshold < high
    assert decide(card, low - 0.01, None, 0.5).label == "positive"
    assert decide(card, low, None, 0.5).label == "neutral"
    assert decide(card, high, None, 0.5).label == "negative"
    assert decide(card, 0.2, 0.5, 0.3).label == "neutral"
    assert decide(card, 0.5, 0.1, 0.4).label == "negative"


# --- the embedded classifier -------------------------------------------------------------------


def test_plain_kazakh(kazakh: models.Classifier) -> None:
    assert [p.label for p in kazakh.predict(GOOD, "kk")] == ["positive"] * 3
    assert [p.label for p in kazakh.predict(BAD, "kk")] == ["negative"] * 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Өте жақсы, рахмет", "Оте жаксы, рахмет"),
        ("Өте жақсы, рахмет", "ӨТЕ ЖАҚСЫ, РАХМЕТ"),
        ("керемет кітап", "keremet kitap"),
        ("керемет кітап", "керемееееет кітааап"),
        ("мүлдем ашылмайды", "muldem ashylmaidy"),
        ("Күйінішті", "Ку\u0438\u0306иништи"),  # a decomposed letter
    ],
)
def test_spellings_that_count_as_one(kazakh: models.Classifier, one: str, other: str) -> None:
    assert len(set(shares(kazakh.predict([one, other], "kk")))) == 1


def test_code_mixed_text(kazakh: models.Classifier) -> None:
    found = kazakh.predict(["Ужас, осындай тупой приложение көрмедім", "Супер, маған ұнады"], "kk")
    assert [p.label for p in found] == ["negative", "positive"]


def test_a_text_is_scored_alike_alone_and_in_any_batch(kazakh: models.Classifier) -> None:
    draw = random.Random(0)
    words = " ".join([*GOOD, *BAD, "keremet", "👍👎", "!?", "жоқ"]).split()
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 60))) for _ in range(200)]
    texts += ["", " ", "…", "a", "\n", "👎", "line\nfeed", "\ud800 half", "x" * 7000]
    alone = [kazakh.predict([text], "kk")[0] for text in texts]
    assert kazakh.predict(texts, "kk") == alone
    order = draw.sample(range(len(texts)), len(texts))
    assert kazakh.predict([texts[i] for i in order], "kk") == [alone[i] for i in order]


def test_texts_are_cut_into_batches_without_a_trace(
    kazakh: models.Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kazakh.predict([*GOOD, *BAD], "kk")
    monkeypatch.setattr(linear, "BATCH", 40)
    assert kazakh.predict([*GOOD, *BAD], "kk") == whole


def test_nothing_to_score_is_unscored(kazakh: models.Classifier) -> None:
    found = kazakh.predict(["", "   ", "...", "\u200b"], "kk")
    assert {p.label for p in found} == {"unscored"}
    assert all(p.negative is None for p in found)


def test_a_long_text_is_the_mean_of_its_windows(kazakh: models.Classifier) -> None:
    half = ((BAD[0] + " ") * 100)[:1999].rsplit(" ", 1)[0] + " "
    other = ((GOOD[0] + " ") * 100)[:1999].rsplit(" ", 1)[0]
    (both,), parts = kazakh.predict([half + other], "kk"), kazakh.predict([half, other], "kk")
    a, b = shares(parts)
    expected = (a * len(half) + b * len(other)) / len(half + other)
    assert both.negative == pytest.approx(expected, abs=1e-5)


def test_hashing_is_that_of_the_text_itself() -> None:
    """Buckets by the vectorised hasher against the definition, position by position."""
    folder = linear.Folder({})
    codes = folder(["  ab, cd\te.", "xx"])
    assert "".join(map(chr, codes)) == " \2ab cd e\3 \n \2x\3 \n"
    text = [int(c) for c in codes]
    base, mask = int(linear._MULTIPLIER), (1 << 64) - 1

    def bucket(part: list[int], kind: int) -> int:
        value = sum(c * pow(base, i, 1 << 64) for i, c in enumerate(part)) + kind & mask
        value ^= value >> 32
        return (value * 0xD6E8FEB86659FD93 & mask) >> (64 - linear.BITS)

    kinds = list(linear.ngrams(codes))
    for n, (start, found, times) in enumerate(kinds[: linear.CHARACTERS], 1):
        for at, number, count in zip(range(*start.indices(len(text))), found, times, strict=True):
            assert count == (10 not in text[at : at + n])
            assert not count or number == bucket(text[at : at + n], n)
    words = [(1, 4), (5, 7), (8, 10), (13, 16)]
    _, found, _ = kinds[linear.CHARACTERS]
    assert list(found) == [bucket(text[a:b], linear.CHARACTERS + 1) for a, b in words]
    _, found, times = kinds[linear.CHARACTERS + 1]
    assert list(times) == [
        linear.WORD_COUNT,
        linear.WORD_COUNT,
        0,
    ]  # the last pair would be of two texts
    assert found[0] == bucket(text[1:7], linear.CHARACTERS + 2)

    def stem(word: tuple[int, int]) -> int:
        part = text[word[0] : min(word[1], word[0] + linear.STEM)]
        return sum(c * pow(base, i, 1 << 64) for i, c in enumerate(part))

    for (_, found, times), gap in zip(kinds[linear.CHARACTERS + 2 :], linear.GAPS, strict=True):
        pairs = list(zip(words, words[gap:], strict=False))
        assert list(times) == [linear.WORD_COUNT * (b != words[3]) for _, b in pairs]
        for (a, b), number in zip(pairs, found, strict=True):
            pair = stem(a) * int(linear.PAIR) + stem(b) & mask
            assert number == bucket([pair], linear.CHARACTERS + linear.WORDS + gap)


def test_the_shipped_weights_are_small_and_those_of_the_card() -> None:
    card = load("kk-linear")
    data = card.path.with_name(card.model).read_bytes()
    assert len(data) <= 4_000_000
    assert hashlib.sha256(data).hexdigest() == card.sha256


def test_other_weights_than_the_card_s_are_refused(tmp_path: Path) -> None:
    card = load("kk-linear")
    copy = tmp_path / "kk-linear.toml"
    copy.write_bytes(card.path.read_bytes())
    with pytest.raises(InputError, match=r"kk-linear\.bin: cannot be read"):
        models.open(str(copy))
    data = bytearray(card.path.with_name(card.model).read_bytes())
    data[-1] ^= 1
    (tmp_path / card.model).write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"not the weights that the card was written for"):
        models.open(str(copy))
    (tmp_path / card.model).write_bytes(b"something else")
    with pytest.raises(InputError, match=r"not the weights of a linear classifier"):
        models.open(str(copy))


@pytest.mark.skipif(not KAZSANDRA.exists(), reason="the reviews are not here")
def test_what_the_card_says_was_measured(kazakh: models.Classifier) -> None:
    rows = list(files.read_rows(KAZSANDRA))
    p = np.array(shares(kazakh.predict([row["text"] for row in rows], "kk")))
    y = np.array([1 - row["label"] for row in rows])
    said = {m.metric: m.value for m in load("kk-linear").measured if m.kind != "stories"}
    ones = np.ones(len(y))
    threshold = load("kk-linear").threshold
    assert training.macro_f1(p, y, ones, threshold) == pytest.approx(said["macro F1"], abs=5e-4)
    bins = np.minimum((p * 15).astype(int), 14)
    error = sum(abs((p - y)[bins == i].sum()) for i in range(15)) / len(y)
    assert error == pytest.approx(said["calibration error"], abs=5e-4)
    assert said["macro F1"] >= 0.80 and said["calibration error"] <= 0.03


# --- training ----------------------------------------------------------------------------------


def table(path: Path, n: int = 400, noise: float = 0.0) -> Path:
    """Generated reviews: a few words of one class among words of none."""
    draw = random.Random(5)
    words = [f"сөз{i}" for i in range(60)]
    marks = {1: ["жақсы", "керемет", "ұнады"], 0: ["нашар", "жаман", "ұнамады"]}
    rows = []
    for i in range(n):
        label = i % 2
        text = [*draw.choices(words, k=draw.randint(1, 12)), *draw.choices(marks[label], k=2)]
        draw.shuffle(text)
        rows.append({"text": " ".join(text), "label": label ^ (draw.random() < noise)})
    files.write_rows(path, rows)
    return path


@pytest.mark.slow
def test_training_learns_and_gives_the_same_bytes(tmp_path: Path) -> None:
    data = table(tmp_path / "reviews.csv")
    card = training.train(data, tmp_path / "one.toml", share=0.3)
    for name, code in (("two", ""), ("three", "")):
        out = tmp_path / f"{name}.toml"
        command = "import sys; from genprobe.commands import main; main()"
        subprocess.run(
            [
                sys.executable,
                "-c",
                command,
                "classifiers",
                "train",
                data,
                "-o",
                out,
                "--share",
                "0.3",
            ],
            check=True,
            env={
                "PYTHONPATH": str(Path(__file__).parents[1]),
                "OMP_NUM_THREADS": "1" if code else "2",
            },
        )
        assert out.with_suffix(".bin").read_bytes() == (tmp_path / "one.bin").read_bytes()
    assert card.measured == () and card.share == 0.3
    good, bad = shares(
        models.open(str(tmp_path / "one.toml")).predict(
            ["сөз1 жақсы керемет", "сөз1 нашар жаман"], "kk"
        )
    )
    assert good < 0.1 and bad > 0.9
    # Parquet and words as labels are the same texts.
    rows = [r | {"label": ("negative", "positive")[int(r["label"])]} for r in files.read_rows(data)]
    files.write_rows(tmp_path / "words.parquet", rows)
    training.train(tmp_path / "words.parquet", tmp_path / "four.toml", share=0.3)
    assert (tmp_path / "four.bin").read_bytes() == (tmp_path / "one.bin").read_bytes()


@pytest.mark.slow
def test_a_share_that_is_negative_whatever_it_says_is_found() -> None:
    """Scores, and labels drawn from c + (1 - c) · sigmoid(a · score + b)."""
    draw = np.random.default_rng(3)
    score = draw.normal(size=40_000)
    truth = 0.06 + 0.94 / (1 + np.exp(-(2.0 * score - 1.0)))
    y = (draw.random(len(score)) < truth).astype(float)
    found = linear._calibration(score, y, np.ones_like(score))
    assert found == pytest.approx((2.0, -1.0, 0.06), abs=0.1)
    assert found[2] == pytest.approx(0.06, abs=0.01)
    # Repeated as a weight, a text counts as often.
    twice = linear._calibration(np.tile(score, 2), np.tile(y, 2), np.full(2 * len(y), 0.5))
    assert twice == pytest.approx(found, rel=1e-4)


def test_praise_that_is_called_negative_does_not_teach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in five negative texts is praise: P(negative) of complaint rises once it is left out."""
    draw = random.Random(2)
    rows = []
    for i in range(1200):
        label = i % 2
        praise = label == 1 or draw.random() < 0.2
        marks = ["жақсы", "керемет"] if praise else ["нашар", "жаман"]
        text = [f"сөз{draw.randrange(60)}" for _ in range(4)] + draw.choices(marks, k=1)
        rows.append({"text": " ".join(text), "label": label})
    files.write_rows(tmp_path / "t.csv", rows)
    margins = []
    for doubt in (1e-9, 0.4):  # the first doubts nothing
        monkeypatch.setattr(linear, "DOUBT", doubt)
        training.train(tmp_path / "t.csv", tmp_path / "c.toml", share=0.5)
        model = models.open(str(tmp_path / "c.toml"))
        good, bad = shares(model.predict(["сөз1 жақсы", "сөз1 нашар"], "kk"))
        margins.append(bad - good)
        assert good > 0.05  # praise keeps the probability that its label is negative
    assert margins[1] > margins[0]


def test_no_training_text_is_in_the_weights(tmp_path: Path) -> None:
    training.train(table(tmp_path / "reviews.csv"), tmp_path / "one.toml")
    data = (tmp_path / "one.bin").read_bytes()
    assert "жақсы".encode() not in data and "жақсы".encode("utf-16-le") not in data


def test_probabilities_are_those_of_the_mix_asked_for(tmp_path: Path) -> None:
    """The same texts, calibrated for a rarer class, have lower probabilities of it."""
    data = table(tmp_path / "reviews.csv", noise=0.2)
    means = []
    for share in (0.5, 0.1):
        training.train(data, tmp_path / "c.toml", share=share)
        model = models.open(str(tmp_path / "c.toml"))
        means.append(np.mean(shares(model.predict(["сөз1 сөз2", "сөз3"], "kk"))))
    assert means[1] < means[0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a", "label": "2"}, "row 2: label '2' must be one of"),
        ({"texte": "a", "label": "1"}, "no column 'text'; columns: texte, label"),
        ({"text": "a", "label": "1"}, "fewer than 50 texts of one class"),
    ],
)
def test_tables_that_cannot_be_learnt_from(
    tmp_path: Path, row: dict[str, str], message: str
) -> None:
    files.write_rows(tmp_path / "t.csv", [row])
    with pytest.raises(InputError, match=message):
        training.train(tmp_path / "t.csv", tmp_path / "c.toml")


# --- transformers ------------------------------------------------------------------------------


CARD = """title = "small"
engine = "transformers"
model = "net"
languages = ["en"]
licence = "none"
source = "made by the test"
trained_on = "nothing"
stories = "nothing"
measured = "not measured"
[labels]
Bad = "negative"
Fine = "positive"
Meh = "neutral"
[limits]
max = 12
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real, random BERT of three classes, beside its card."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cards")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnop"]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        id2label={0: "bad", 1: "meh", 2: "fine"},
        label2id={"bad": 0, "meh": 1, "fine": 2},
        initializer_range=0.8,
    )
    BertForSequenceClassification(config).save_pretrained(folder / "net")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "net")
    (folder / "small.toml").write_text(CARD)
    return folder


def test_a_transformer_gives_its_softmax_by_the_label_map(net: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    texts = ["a b c", "d", "e f g h a b", "p o n m"]
    found = models.open(str(net / "small.toml")).predict(texts, "en")
    model = AutoModelForSequenceClassification.from_pretrained(net / "net").eval()
    tokenizer = AutoTokenizer.from_pretrained(net / "net")
    for text, own in zip(texts, found, strict=True):
        with torch.inference_mode():
            want = model(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        assert own[1:] == pytest.approx(want, abs=1e-4)
        assert own.label == ("negative", "neutral", "positive")[int(np.argmax(want))]
    assert len({p.label for p in found}) > 1  # the network is not the same to all


def test_long_texts_go_in_windows_of_tokens(net: Path) -> None:
    model = models.open(str(net / "small.toml"))
    first, second = "a b c d e f g h i j", "k l m"  # ten tokens and two special ones fill 12
    parts = model.predict([first, second], "en")
    (whole,) = model.predict([f"{first} {second}"], "en")
    for at in (1, 2, 3):
        want = (10 * parts[0][at] + 3 * parts[1][at]) / 13  # type: ignore[operator]
        assert whole[at] == pytest.approx(want, abs=1e-4)
    assert model.predict(["", "a"], "en")[0].label == "unscored"


def test_labels_that_the_card_does_not_map_are_refused(net: Path) -> None:
    (net / "less.toml").write_text(CARD.replace('Meh = "neutral"\n', ""))
    with pytest.raises(EngineError, match=r"has the label 'meh'"):
        models.open(str(net / "less.toml"))


@pytest.mark.parametrize(
    "facts",
    [
        {"id2label": {0: "bad"}, "label2id": {"bad": 0}},  # its only share is always 1
        {"problem_type": "multi_label_classification"},  # its shares do not add up to 1
    ],
)
def test_a_network_that_does_not_choose_one_label_is_refused(net: Path, facts: dict) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    shutil.copytree(net / "net", net / "odd", dirs_exist_ok=True)
    config = BertConfig(**{**BertConfig.from_pretrained(net / "net").to_dict(), **facts})
    BertForSequenceClassification(config).save_pretrained(net / "odd")
    (net / "odd.toml").write_text(CARD.replace('"net"', '"odd"'))
    with pytest.raises(EngineError, match="is no classifier of one label for a text"):
        models.open(str(net / "odd.toml"))


def test_a_network_without_a_trained_head_is_refused(net: Path) -> None:
    from transformers import BertModel

    body = BertModel.from_pretrained(net / "net")
    body.save_pretrained(net / "body")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (net / "body" / name).write_bytes((net / "net" / name).read_bytes())
    (net / "body.toml").write_text(CARD.replace('"net"', '"body"'))
    with pytest.raises(EngineError, match=r"missing and would be random|does not map"):
        models.open(str(net / "body.toml"))


def test_a_model_that_cannot_be_had_is_one_line(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (net / "gone.toml").write_text(CARD.replace('"net"', '"./no/such/folder"'))
    with pytest.raises(
        EngineError, match=r"'gone' \(\./no/such/folder\) cannot be loaded: [^\n]+$"
    ):
        models.open(str(net / "gone.toml"))


# --- VADER -------------------------------------------------------------------------------------


def test_vader_is_optional() -> None:
    try:
        import vaderSentiment  # noqa: F401
    except ImportError:
        with pytest.raises(EngineError, match=r"pip install 'genprobe\[vader\]'"):
            models.open("vader")
        return
    found = models.open("vader").predict(["I love it!", "This is horrible.", "A table."], "en")
    assert [p.label for p in found] == ["positive", "negative", "neutral"]


def test_help_stays_light() -> None:
    code = (
        "import sys, genprobe.commands, genprobe.judges.sentiment\n"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'pandas', 'numpy')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1]).returncode == 0
    )


def test_the_threshold_is_the_middle_of_the_best() -> None:
    p, y = np.array([0.02, 0.98]), np.array([0, 1])
    assert training.best_threshold(p, y, np.ones(2)) == 0.5
    p = np.array([0.31, 0.315, 0.4, 0.1])
    assert training.best_threshold(p, np.array([1, 1, 1, 0]), np.ones(4)) == 0.21


# --- cards and weights of strangers


def a_card(folder: Path, model: str, engine: str = "linear") -> Path:
    """A card of a stranger that names its model so."""
    text = CARD_OF_A_STRANGER.replace("ENGINE", engine).replace("MODEL", json.dumps(model))
    (folder / "card.toml").write_text(text)
    return folder / "card.toml"


CARD_OF_A_STRANGER = """
title = "t"
engine = "ENGINE"
model = MODEL
languages = ["en"]
default_for = []
licence = "l"
source = "s"
trained_on = "t"
stories = "s"
measured = "not measured"
[labels]
negative = "negative"
positive = "positive"
"""


@pytest.mark.parametrize("engine", ["linear", "story"])
@pytest.mark.parametrize(
    "model", ["/dev/zero", ".", "..", "...", "a/b", "../w.bin", "a\0b", "a\\b", "C:w", "a\nb", ""]
)
def test_a_card_names_no_file_elsewhere(tmp_path, engine, model):
    with pytest.raises(InputError) as told:
        cards.read_card(a_card(tmp_path, model, engine))
    assert "\n" not in str(told.value)
    if model:
        assert "is not the name of a file beside the card" in str(told.value)


@pytest.mark.parametrize("model", ["/dev/zero", "a\0b", "a\nb"])
def test_a_transformer_that_is_no_model_is_one_line(tmp_path, model):
    pytest.importorskip("transformers")
    with pytest.raises(GenprobeError) as told:
        models.open(str(a_card(tmp_path, model, "transformers")))
    assert "\n" not in str(told.value)


def test_weights_that_are_a_link_are_read_only_when_asked(tmp_path):
    from genprobe.files import door

    card = a_card(tmp_path, "w.bin")
    (tmp_path / "w.bin").symlink_to(registry.CLASSIFIERS / "kk-linear.bin")
    for words in (("measure", card, "--on", "x", "--kind", "stories"), ("compare", card)):
        table = tmp_path / "a.jsonl"
        table.write_text('{"text": "Bad.", "label": 0, "lang": "en"}\n')
        words = ["classifiers", *map(str, words), "--data", str(table)]
        ended = CliRunner().invoke(cli, words)
        assert isinstance(ended.exception, InputError)
        assert "w.bin: is a link" in str(ended.exception)
        ended = CliRunner().invoke(cli, [*words, "--follow-links"])
        door.follow_links(False)
        assert "is a link" not in str(ended.exception)  # the weights are read; the texts are few


ODD = [float("nan"), float("inf"), -float("inf"), 1e300]


@pytest.mark.parametrize("odd", ODD)
def test_weights_with_odd_numbers_are_refused(tmp_path, odd):
    from genprobe.judges.classifiers import story

    data = (registry.CLASSIFIERS / "kk-linear.bin").read_bytes()
    for at in range(3):
        path = tmp_path / "w.bin"
        start = len(linear.MAGIC) + 8 * at
        path.write_bytes(data[:start] + struct.pack("<d", odd) + data[start + 8 :])
        with pytest.raises(InputError, match="train it again"):
            linear.read(path, linear.Folder({}))
    data = (registry.CLASSIFIERS / "stories.bin").read_bytes()
    head = len(story.MAGIC)
    for at in (head + 16, head + 24):  # the scale, and the first number of the network
        path.write_bytes(data[:at] + struct.pack("<d", odd) + data[at + 8 :])
        with pytest.raises(InputError, match="train it again"):
            story.read(path)


@pytest.mark.parametrize("sizes", [(-1, -1), (0, 1), (1 << 30, (1 << 30) + 1), (7, 9)])
def test_weights_with_odd_sizes_are_refused(tmp_path, sizes):
    from genprobe.judges.classifiers import story

    data = (registry.CLASSIFIERS / "stories.bin").read_bytes()
    head = len(story.MAGIC)
    for at, size in zip((head + 4, head + 8), sizes, strict=True):
        data = data[:at] + struct.pack("<i", size) + data[at + 4 :]
    path = tmp_path / "w.bin"
    path.write_bytes(data)
    with pytest.raises(InputError, match="train it again"):
        story.read(path)
