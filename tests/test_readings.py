"""Free, choice and logprob side by side: against counts by hand and a plain loop."""

from __future__ import annotations

import random
from collections import Counter

import pandas as pd
import pytest

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.outcomes import table

ANSWERS = ("yes", "no", "ambiguous")


def frame(rows: list[dict]) -> pd.DataFrame:
    """Outcomes from (statement, decode, answer, …), in the order of a plan."""
    full = [
        {"model": "m", "lang": "en", "probe": "agreement", "sample": 0, **row, "request": str(at)}
        for at, row in enumerate(rows)
    ]
    found = table.from_rows(full)
    for column in table.PROBABILITIES:
        found[column] = [row.get(column) for row in full]
        found[column] = pd.to_numeric(found[column])
    return found


def cells(outcomes: pd.DataFrame, name: str, by: list[str] | None = None) -> dict:
    scores = metrics.score(outcomes, [name], by or [], str)
    return {tuple(s.by.values()): (s.value, s.n, s.excluded) for s in scores}


BY_HAND = [
    # statement, free, choice, logprob
    ("a", "yes", "yes", "yes"),
    ("b", "yes", "no", "no"),
    ("c", "ambiguous", "no", "yes"),
    ("d", "no", "no", None),
]


@pytest.fixture
def hand():
    return frame(
        [
            {"item": name, "decode": decode, "answer": answer}
            for name, *answers in BY_HAND
            for decode, answer in zip(("free", "choice", "logprob"), answers, strict=True)
        ]
    )


def test_disagreement_by_hand(hand):
    assert cells(hand, "disagreement") == {
        ("free, choice",): (1 / 3, 3, {"unclear": 1}),
        ("free, logprob",): (1 / 2, 2, {"missing": 1, "unclear": 1}),
        ("choice, logprob",): (1 / 3, 3, {"missing": 1}),
    }


def test_combinations_by_hand(hand):
    found = cells(hand, "readings")
    assert found == {
        ("ambiguous", "no", "yes"): (1 / 3, 3, {"missing": 1}),
        ("yes", "no", "no"): (1 / 3, 3, {"missing": 1}),
        ("yes", "yes", "yes"): (1 / 3, 3, {"missing": 1}),
    }


def test_readings_are_never_pooled(hand):
    assert {key[0] for key in cells(hand, "yes")} == {"free", "choice", "logprob"}
    assert cells(hand, "yes", ["lang"])[("free", "en")] == (0.5, 4, {})
    # One way of reading is no comparison, and needs no column for it.
    alone = hand[hand["decode"] == "free"]
    assert cells(alone, "yes") == {(): (0.5, 4, {})}
    assert cells(alone, "disagreement") == cells(alone, "readings") == {}
    with pytest.raises(InputError, match=r"disagreement cannot be split by .decode"):
        cells(hand, "disagreement", ["decode"])


def test_a_probability_stands_beside_every_sample():
    rows = [
        {"item": "a", "decode": "free", "answer": a, "sample": n} for n, a in enumerate(ANSWERS)
    ]
    rows.append({"item": "a", "decode": "logprob", "answer": "no", "p_yes": 0.1, "p_no": 0.3})
    found = cells(frame(rows), "disagreement")
    assert found == {("free, logprob",): (0.5, 2, {"unclear": 1})}


def test_probabilities():
    rows = [
        {
            "item": "a",
            "decode": "logprob",
            "answer": "no",
            "p_yes": 0.1,
            "p_no": 0.3,
            "outside": 0.6,
        },
        {
            "item": "b",
            "decode": "logprob",
            "answer": "yes",
            "p_yes": 0.4,
            "p_no": 0.1,
            "outside": 0.5,
        },
        {
            "item": "c",
            "decode": "logprob",
            "answer": "ambiguous",
            "p_yes": 0.0,
            "p_no": 0.0,
            "outside": 1.0,
        },
        {"item": "d", "decode": "logprob", "answer": None},
        {"item": "a", "decode": "free", "answer": "yes"},
    ]
    found = frame(rows)
    value, n, excluded = cells(found, "p-yes")[("logprob",)]
    assert value == pytest.approx((0.25 + 0.8) / 2) and n == 2
    assert excluded == {"missing": 1, "no mass": 1}
    value, n, excluded = cells(found, "outside")[("logprob",)]
    assert value == pytest.approx(0.7) and (n, excluded) == (3, {"missing": 1})


def test_many_against_a_plain_loop():
    rng = random.Random(4)
    items = {
        (lang, name, sample): {d: rng.choice(ANSWERS) for d in ("free", "choice")}
        for lang in ("en", "de")
        for name in "abcdefghijkl"
        for sample in range(3)
    }
    rows = [
        {"item": name, "lang": lang, "sample": sample, "decode": decode, "answer": answer}
        for (lang, name, sample), answers in items.items()
        for decode, answer in answers.items()
    ]
    rng.shuffle(rows)
    found = cells(frame(rows), "readings", ["lang"])
    for lang in ("en", "de"):
        mine = [tuple(a.values()) for key, a in items.items() if key[0] == lang]
        for pattern, count in Counter(mine).items():
            assert found[(lang, *pattern)] == (pytest.approx(count / len(mine)), len(mine), {})
        clear = [a for a in mine if "ambiguous" not in a]
        value, n, excluded = cells(frame(rows), "disagreement", ["lang"])[(lang, "free, choice")]
        assert value == pytest.approx(sum(a != b for a, b in clear) / len(clear))
        assert (n, excluded) == (len(clear), {"unclear": len(mine) - len(clear)})
    assert len(found) == len({(k[0], *a.values()) for k, a in items.items()})
