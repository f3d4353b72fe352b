"""Figures that are printed and not stored, recounted from the raw rows with plain pandas."""

import itertools

import numpy as np
import pandas as pd
import pytest

from genprobe import api
from genprobe.analysis.compare import compare
from genprobe.review.agreement import agreement

LABELS = ["yes", "no", "ambiguous"]


@pytest.mark.parametrize("seed", range(6))
def test_agreement_of_reviewers(tmp_path, seed):
    """Percent, Cohen's kappa and Krippendorff's alpha of two reviewers, some answers missing."""
    rng = np.random.default_rng(seed)
    rows = [
        {"item": f"s{at}", "reviewer": who, "question": "answer", "answer": answer}
        for at, who in itertools.product(range(12), "ab")
        if (answer := rng.choice([*LABELS, ""]))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    found = {s.metric: s.value for s in agreement([tmp_path / "a.csv"])}
    both = pd.DataFrame(rows).pivot(index="item", columns="reviewer", values="answer").dropna()
    same = float((both["a"] == both["b"]).mean())
    chance = sum((both["a"] == x).mean() * (both["b"] == x).mean() for x in LABELS)
    assert found["agreement"] == pytest.approx(same)
    assert found["cohen-kappa"] == pytest.approx((same - chance) / (1 - chance))
    values = pd.concat([both["a"], both["b"]]).value_counts()
    n = values.sum()
    by_chance = 1 - (values * (values - 1)).sum() / (n * (n - 1))
    assert found["krippendorff-alpha"] == pytest.approx(1 - (1 - same) / by_chance)


def test_differences_of_two_runs(tmp_path):
    """The rates and their difference, counted from the replies themselves."""
    rng, shares = np.random.default_rng(3), {}
    names = [f"s{at}" for at in range(20)]
    texts = [{"id": name, "lang": "en", "text": f"Sentence {name}."} for name in names]
    pd.DataFrame(texts).to_csv(tmp_path / "data.csv", index=False)
    keys = [*itertools.product(names, ["agreement", "disagreement"])]
    for model in ("one", "two"):
        said = rng.choice(["Yes.", "No.", ""], len(keys), p=[0.5, 0.4, 0.1])
        rows = pd.DataFrame(keys, columns=["statement", "probe"]).assign(lang="en", response=said)
        rows.to_csv(tmp_path / f"{model}.csv", index=False)
        api.yesno(
            str(tmp_path / f"{model}.csv"), engine="replay", data=str(tmp_path / "data.csv"),
            langs=["en"], probes=["agreement", "disagreement"], out=tmp_path / model,
        )  # fmt: skip
        clear = rows[rows["response"] != ""]
        hit = (clear["response"] == "Yes.") == (clear["probe"] == "agreement")
        shares[model] = hit.set_axis(clear["statement"] + clear["probe"]).astype(float)
    pairs = pd.concat(shares, axis=1, join="inner")
    found = compare(tmp_path / "one", tmp_path / "two", metrics=["endorsed"])
    (score,) = [s for s in found if s.metric == "difference"]
    assert score.n == len(pairs)
    expected = float(pairs["one"].mean() - pairs["two"].mean())
    assert abs(score.value) == pytest.approx(abs(expected))
