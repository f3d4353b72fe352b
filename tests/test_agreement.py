"""Agreement: against other people's libraries, published examples, and by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_linear import too_slow

from genprobe import statistics
from genprobe.errors import InputError
from genprobe.render import formats
from genprobe.review import agreement


def table(seed: int) -> np.ndarray:
    """Answers (items, reviewers) of 0 … k - 1, -1 for the 0 to 40 % that are missing."""
    rng = np.random.default_rng(seed)
    items, reviewers, k = rng.integers(8, 60), rng.integers(2, 6), rng.integers(2, 6)
    truth = rng.integers(0, k, items)
    noise = rng.random((items, reviewers)) < rng.uniform(0.05, 0.7)
    answers = np.where(noise, rng.integers(0, k, (items, reviewers)), truth[:, None])
    return np.where(rng.random(answers.shape) < rng.choice([0, 0.1, 0.4]), -1, answers)


def write(path: Path, answers: np.ndarray, **more: list[object]) -> Path:
    with path.open("w") as file:
        for (item, reviewer), answer in np.ndenumerate(answers):
            row = {"item": f"i{item}", "reviewer": f"r{reviewer}", "question": "answer"}
            row |= {name: values[item] for name, values in more.items()}
            file.write(json.dumps(row | {"answer": f"c{answer}" if answer >= 0 else ""}) + "\n")
    return path


def values(scores) -> dict[tuple, float | None]:
    return {(s.metric, s.by.get("reviewers")): s.value for s in scores}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> list[tuple[np.ndarray, dict]]:
    """Fifty random tables and what we make of them, by way of files."""
    folder = tmp_path_factory.mktemp("tables")
    found = []
    for seed in range(50):
        answers = table(seed)
        scores = agreement.agreement([write(folder / f"{seed}.jsonl", answers)])
        found.append((answers, values(scores)))
    assert sum((answers < 0).any() for answers, _ in found) > 25
    return found


def test_alpha_is_that_of_krippendorff(ours):
    library = pytest.importorskip("krippendorff")
    for answers, found in ours:
        data = np.where(answers < 0, np.nan, answers).T
        theirs = library.alpha(reliability_data=data, level_of_measurement="nominal")
        assert found["krippendorff-alpha", None] == pytest.approx(theirs, abs=1e-12)


def test_fleiss_and_raw_are_those_of_irrcac(ours):
    pd, library = pytest.importorskip("pandas"), pytest.importorskip("irrCAC.raw")
    for answers, found in ours:
        data = pd.DataFrame(np.where(answers < 0, np.nan, answers))
        theirs = library.CAC(data, categories=list(range(answers.max() + 1)), digits=12)
        fleiss, krippendorff = theirs.fleiss()["est"], theirs.krippendorff()["est"]
        assert found["fleiss-kappa", None] == pytest.approx(fleiss["coefficient_value"], abs=1e-10)
        assert found["agreement", None] == pytest.approx(fleiss["pa"], abs=1e-10)
        alpha = krippendorff["coefficient_value"]
        assert found["krippendorff-alpha", None] == pytest.approx(alpha, abs=1e-10)


def test_cohen_is_that_of_statsmodels(ours):
    library = pytest.importorskip("statsmodels.stats.inter_rater")
    for answers, found in ours:
        pairs = {}
        for a in range(answers.shape[1]):
            for b in range(a):
                both = answers[(answers[:, [a, b]] >= 0).all(1)]
                square = np.zeros((answers.max() + 1,) * 2)
                np.add.at(square, (both[:, a], both[:, b]), 1)
                pairs[f"r{b}, r{a}"] = library.cohens_kappa(square).kappa
        assert found["cohen-kappa", None] == pytest.approx(np.mean(list(pairs.values())))
        for name, theirs in pairs.items() if len(pairs) > 1 else ():
            assert found["cohen-kappa", name] == pytest.approx(theirs, abs=1e-12)


def test_fleiss_without_gaps_is_that_of_statsmodels(ours):
    library = pytest.importorskip("statsmodels.stats.inter_rater")
    whole = [(answers, found) for answers, found in ours if (answers >= 0).all()]
    assert whole
    for answers, found in whole:
        counts, _ = library.aggregate_raters(answers)
        assert found["fleiss-kappa", None] == pytest.approx(library.fleiss_kappa(counts))


def test_published_examples():
    # Fleiss 1971, as on Wikipedia: 14 raters, 10 subjects, 5 categories, kappa 0.210.
    counts = np.array(
        [
            [0, 0, 0, 0, 14],
            [0, 2, 6, 4, 2],
            [0, 0, 3, 5, 6],
            [0, 3, 9, 2, 0],
            [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0],
            [3, 2, 6, 3, 0],
            [2, 5, 3, 2, 2],
            [6, 5, 2, 1, 0],
            [0, 2, 2, 3, 7],
        ]
    )
    assert agreement.fleiss(agreement.fleiss_units(counts).sum(0)) == pytest.approx(0.210, abs=5e-4)
    # Krippendorff 2011, C: nominal data, any number of observers, missing data: alpha 0.743.
    observers = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    answers = np.array(
        [[int(v) - 1 if v != "." else -1 for v in row.split()] for row in observers]
    ).T
    counts = np.stack([(answers == c).sum(1) for c in range(5)], 1)
    assert agreement.alpha(agreement.alpha_units(counts).sum(0)) == pytest.approx(0.743, abs=5e-4)
    # Cohen 1960, two raters of 50: 20 yes-yes, 15 no-no, 5 and 10 off: kappa 0.4.
    pairs = np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], [20, 15, 5, 10], 0)
    assert agreement.cohen(agreement.pair_units(pairs, 2).sum(0), 2) == pytest.approx(0.4)


def test_intervals_hold_the_value_and_shrink(tmp_path):
    small, large = table(4), np.tile(table(4), (9, 1))
    widths = []
    for number, answers in enumerate((small, large)):
        scores = agreement.agreement([write(tmp_path / f"{number}.jsonl", answers)])
        assert all(s.low <= s.value <= s.high for s in scores)
        widths.append([s.high - s.low for s in scores])
    assert all(b < a for a, b in zip(*widths, strict=True))


def test_bootstrap_covers_the_truth(tmp_path):
    """Two reviewers, each right 85 % of the time on yes and no: kappa is 0.49 in the long run."""
    rng, hits = np.random.default_rng(5), 0
    for number in range(60):
        truth = rng.integers(0, 2, (60, 1))
        answers = np.where(rng.random((60, 2)) < 0.15, 1 - truth, truth)
        scores = agreement.agreement([write(tmp_path / f"{number}.jsonl", answers)])
        (cohen,) = [s for s in scores if s.metric == "cohen-kappa"]
        hits += cohen.low <= 0.49 <= cohen.high
    assert 53 <= hits <= 60


def test_by_question_and_language(tmp_path):
    answers = table(7)
    langs = ["kk" if at % 2 else "ar" for at in range(len(answers))]
    scores = agreement.agreement([write(tmp_path / "a.jsonl", answers, lang=langs)])
    raw = {s.by["lang"]: s for s in scores if s.metric == "agreement"}
    assert list(raw) == ["all", "ar", "kk"]
    assert raw["all"].n == raw["ar"].n + raw["kk"].n
    # What is left out of all languages is not told once more.
    told = formats.render(scores, "table", 100)
    left = sum(s.excluded.get("fewer than two answers", 0) for s in (raw["ar"], raw["kk"]))
    planned = raw["all"].n + left
    assert left and f"{left} fewer than two answers, of {planned} planned." in told
    only = write(tmp_path / "b.jsonl", answers[np.array(langs) == "kk"])
    (alone,) = [s for s in agreement.agreement([only]) if s.metric == "agreement"]
    assert alone.value == raw["kk"].value
    assert "lang" not in alone.by


def test_repeats_are_self_agreement_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    lines = ["item,reviewer,question,answer"]
    lines += [f"i{n},{r},answer,yes" for n in range(4) for r in "ab"]
    lines += ["i0,a,answer,Yes", "i1,a,answer,no", "i9,adjudicator,answer,no"]
    path.write_text("\n".join(lines))
    scores = {(s.metric, s.by.get("reviewer")): s for s in agreement.agreement([path])}
    assert (scores["self-agreement", "a"].value, scores["self-agreement", "a"].n) == (0.5, 2)
    assert ("self-agreement", "b") not in scores
    assert (scores["agreement", None].value, scores["agreement", None].n) == (1.0, 4)
    # One category only: what chance would do is all there is, so a kappa has no value.
    assert scores["cohen-kappa", None].value is None
    assert scores["krippendorff-alpha", None].value is None
    # Full agreement of four items does not prove full agreement.
    assert scores["agreement", None].low < 0.7
    assert scores["agreement", None].high == 1


def test_files_are_one_table_and_signed(tmp_path):
    answers = table(3)
    whole = write(tmp_path / "whole.jsonl", answers)
    lines = whole.read_text().splitlines(keepends=True)
    halves = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    halves[0].write_text("".join(line for line in lines if '"r0"' in line))
    halves[1].write_text("".join(line for line in lines if '"r0"' not in line))
    assert values(agreement.agreement(halves)) == values(agreement.agreement([whole]))
    signed = [agreement.agreement(files)[0].signature for files in ([whole], halves, halves[1:])]
    assert len(set(signed)) == 3
    assert all(s.startswith("metric:agreement/1-bootstrap95x2000s1o|file:") for s in signed)


@pytest.mark.parametrize(
    "text, says",
    [
        ("item,reviewer,question\n1,a,q\n", "no column 'answer'"),
        ("item,reviewer,question,answer\n1,a,q,yes\n1,,q,yes\n", "row 3: 'reviewer' is empty"),
    ],
)
def test_faults_are_named(tmp_path, text, says):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        agreement.agreement([path])


def test_answers_that_look_alike_are_alike(tmp_path):
    """Case, spaces, marks of direction, 1 and 1.0, codes of one language: by hand, 2 of 3 agree."""
    path = tmp_path / "a.csv"
    rows = [("1", "en", "a", "yes"), ("1", "EN", "b ", "Yes\u200f "), ("2", "en", "a", "1")]
    rows += [("2\u200e", "English", "b", "1.0"), ("3", "en", "a", "yes"), ("3", "en", "b", "1")]
    path.write_text("item,lang,reviewer,answer\n" + "".join(f"{','.join(r)}\n" for r in rows))
    found = {s.metric: (s.value, s.n) for s in agreement.agreement([path])}
    # Categories of a: yes, 1, yes; of b: yes, 1, 1. By chance 2/3 * 1/3 + 1/3 * 2/3 = 4/9.
    assert found["agreement"] == (pytest.approx(2 / 3), 3)
    assert found["cohen-kappa"] == (pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9)), 3)
    assert found["krippendorff-alpha"][0] == pytest.approx(1 - (1 / 3) / (18 / 30))


def test_what_a_language_leaves_out_adds_up(tmp_path):
    """A language that one person read has cells without a value, so that all are what parts are."""
    path = tmp_path / "a.csv"
    path.write_text("item,lang,reviewer,answer\n1,en,a,yes\n1,en,b,no\n2,de,a,no\n3,de,a,no\n")
    got = {(s.metric, s.by["lang"]): (s.n, s.excluded) for s in agreement.agreement([path])}
    why = {"fewer than two answers": 2}
    for name in ("agreement", "cohen-kappa", "krippendorff-alpha"):
        assert got[name, "all"] == (1, why) and got[name, "de"] == (0, why)
        assert got[name, "en"] == (1, {})
    assert got["fleiss-kappa", "de"] == (0, why)


def crowd(path, items, reviewers, questions=1):
    """Each reviewer answers two items, and each item has about as many answers as any other."""
    with path.open("w") as file:
        file.write("item,reviewer,question,answer\n")
        for n in range(reviewers):
            for item in (n % items, (n * 7 + 1) % items):
                file.write(f"i{item},r{n},q{n % questions},{'yes' if n % 3 else 'no'}\n")
    return path


def test_a_crowd_has_too_many_pairs_and_all_other_coefficients(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics, "bootstrap", lambda *_, **__: (0.0, 1.0))
    path = crowd(tmp_path / "a.csv", 40, 60)
    whole = {(s.metric, *map(str, s.by.values())): s for s in agreement.agreement([path])}
    monkeypatch.setattr(agreement, "MOST", 1000)
    less = {(s.metric, *map(str, s.by.values())): s for s in agreement.agreement([path])}
    kappa = less.pop(("cohen-kappa", "q0"))
    assert (kappa.value, kappa.n, kappa.excluded) == (None, 0, {"pairs of reviewers": 60 * 59 // 2})
    assert whole["cohen-kappa", "q0"].value is not None
    assert less == {key: one for key, one in whole.items() if key[0] != "cohen-kappa"}


@pytest.mark.slow
def test_agreement_takes_time_in_step_with_the_answers(tmp_path, monkeypatch):
    """However many reviewers, items and questions there are."""
    monkeypatch.setattr(statistics, "bootstrap", lambda *_, **__: (0.0, 1.0))
    makers = {
        "reviewers and items": lambda n: crowd(tmp_path / f"a{n}.csv", n, n),
        "questions": lambda n: crowd(tmp_path / f"b{n}.csv", 2, n, max(1, n // 3)),
    }
    assert too_slow(lambda path: agreement.agreement([path]), makers, [2000]) == {}


def test_answers_that_are_no_categories_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(agreement, "MOST", 100)
    path = tmp_path / "a.csv"
    path.write_text("item,reviewer,answer\n" + "".join(f"i{n},r,text {n}\n" for n in range(30)))
    with pytest.raises(InputError, match="30 different answers on 30 items are no categories"):
        agreement.agreement([path])
