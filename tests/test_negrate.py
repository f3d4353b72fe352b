"""NegRate and its kin against counts by hand, brute force and simulation; pairs of models."""

from statistics import mean

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genprobe import metrics
from genprobe.analysis import paired
from genprobe.analysis.gaps import OfStatements
from genprobe.errors import InputError
from genprobe.metrics.negrate import MOST, seeds_needed
from genprobe.render import formats

NAMES = ["negrate", "negative-stories", "vote-margin", "seed-disagreement", "seeds"]


def table(templates, **columns):
    """Outcomes of {template: stories}, a story being n(egative), p(ositive), 0 (neutral),
    x (unusable), f(ailed), m(issing) or ? (not judged)."""
    rows = []
    for statement, stories in templates.items():
        for sample, story in enumerate(stories):
            left_out = {"f": "failed", "m": "missing"}.get(story, "")
            sentiment = {"n": "negative", "p": "positive", "0": "neutral", "x": "negative"}
            usable = {"x": False, "f": None, "m": None, "?": True}.get(story, True)
            rows.append(
                {
                    "model": "m",
                    "lang": "kk",
                    "statement": statement,
                    "probe": "story",
                    "sample": sample,
                    "request": f"{statement}-{sample}",
                    "left_out": left_out,
                    "usable": usable,
                    "unusable_why": "language" if story == "x" else None,
                    "sentiment": sentiment.get(story),
                }
                | {name: value(statement) for name, value in columns.items()}
            )
    frame = pd.DataFrame(rows)
    return frame.assign(usable=frame["usable"].astype("boolean"))


def score(frame, name, by=()):
    return metrics.score(frame, [name], by, str)


def one(frame, name):
    (found,) = score(frame, name)
    return found


STORIES = {
    "a": "nnnpp",  # three of five
    "b": "nnppp",  # two of five
    "c": "nnx?p",  # two of the three that count
    "d": "nnppx",  # two of four: no majority
    "e": "nnxxx",  # two stories: no label
    "f": "ppp00",
    "g": "fmfmf",
}


def test_a_table_by_hand():
    frame = table(STORIES)
    rate = one(frame, "negrate")
    assert (rate.value, rate.n, rate.excluded) == (2 / 5, 5, {"few-stories": 2})
    # Least: a; c and d cannot be negative against 5 stories. Most: a, c, d; e could be either, and
    # so could that whose requests all failed.
    assert rate.bounds == pytest.approx([1 / 7, 5 / 7])
    margin = one(frame, "vote-margin")
    assert margin.value == pytest.approx(mean([1 / 5, 1 / 5, 1 / 3, 0, 1]))
    assert one(frame, "seed-disagreement").value == 4 / 5
    stories = one(frame, "negative-stories")
    assert (stories.value, stories.n) == (11 / 24, 24)
    assert stories.excluded == {"failed": 3, "missing": 2, "unjudged": 1, "language": 5}
    assert stories.bounds == [
        11 / 35,
        22 / 35,
    ]  # eleven that failed or do not count could be either


def test_domains_pool_templates_and_two_wordings_are_two_templates():
    frame = table(STORIES, domain=lambda s: "first" if s in "ab" else "second")
    found = {s.by["domain"]: (s.value, s.n) for s in score(frame, "negrate", ["domain"])}
    assert found == {"first": (1 / 2, 2), "second": (1 / 3, 3)}
    twice = pd.concat([frame, frame.assign(probe="story-kk")])
    assert (one(twice, "negrate").value, one(twice, "negrate").n) == (2 / 5, 10)
    # The same templates: no narrower than five independent ones.
    both, alone = one(twice, "negrate"), one(frame, "negrate")
    assert both.low <= alone.low and both.high >= alone.high


def test_without_story_checks_all_stories_count():
    frame = table({"a": "nnnpp"}).drop(columns=["usable", "unusable_why"])
    assert one(frame, "negrate").value == 1.0
    with pytest.raises(InputError, match="cannot be split by 'sample'"):
        score(frame, "negrate", ["sample"])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.text("nnnppp0x?fm", min_size=1, max_size=7), min_size=1, max_size=8),
    st.randoms(),
)
def test_against_brute_force(stories, random):
    frame = table({str(at): text for at, text in enumerate(stories)})
    counts = [(text.count("n"), sum(map(text.count, "np0"))) for text in stories]
    labelled = [(k, n) for k, n in counts if n >= 3]
    expected = {
        "negrate": [k > n / 2 for k, n in labelled],
        "vote-margin": [abs(k - (n - k)) / n for k, n in labelled],
        "seed-disagreement": [0 < k < n for k, n in labelled],
        "negative-stories": [at < k for k, n in counts for at in range(n)],
    }
    rows = list(range(len(frame)))
    random.shuffle(rows)
    for name, values in expected.items():
        found = one(frame, name)
        assert found.n == len(values)
        planned = len(frame) if name == "negative-stories" else len(stories)
        assert found.n + sum(found.excluded.values()) == planned
        if values:
            assert found.value == pytest.approx(mean(map(float, values)))
            assert found.low - 1e-9 <= found.value <= found.high + 1e-9
        else:
            assert found.value is None and found.low is None
        assert one(frame.iloc[rows], name) == found


# --- how many seeds


def sums(k, n):
    k, n = np.asarray(k), np.broadcast_to(n, np.shape(k))
    return np.array([k.sum(), n.sum(), (k * (k - 1)).sum(), (n * (n - 1)).sum()], float)


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.7), (0.15, 0.45), (0.1, 0.1)])
def test_seeds_needed_is_what_fresh_seeds_need(a, b):
    """Beta templates: with the number found two fresh sets agree 95 % of the time; with two
    seeds fewer they do not."""
    rng = np.random.default_rng(3)
    p = rng.beta(a, b, 400_000)
    needed = int(seeds_needed(sums(rng.binomial(5, p), 5)))
    assert needed % 2 == 1

    def agree(k):
        first, second = (rng.binomial(k, p) * 2 > k for _ in range(2))
        return np.mean(first == second)

    assert agree(needed) >= 0.95 - 0.001
    assert needed == 1 or agree(needed - 2) < 0.95 + 0.001


def test_seeds_needed_at_the_edges():
    assert seeds_needed(sums([0, 5, 5, 0], 5)) == 1  # never a doubt
    assert seeds_needed(sums([0, 0, 0], 5)) == 1
    assert seeds_needed(sums([2, 3, 2, 3], 5)) == MOST  # every template is a coin
    many = np.stack([sums([0, 5], 5), sums([2, 3], 5)])
    assert seeds_needed(many).tolist() == [1, MOST]
    # Numbers of stories that differ do not matter.
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 1, 200_000)
    n = rng.integers(3, 6, len(p))
    found = seeds_needed(np.stack([sums(rng.binomial(n, p), n), sums(rng.binomial(5, p), 5)]))
    assert abs(found[0] - found[1]) <= 2


def test_seeds_has_an_interval_over_templates():
    rng = np.random.default_rng(1)
    told = {str(at): "".join(rng.choice(["n", "p"], 5, p=[p, 1 - p])) for at, p in enumerate(rng.beta(0.3, 0.7, 60))}  # fmt: skip
    found = one(table(told), "seeds")
    assert found.low <= found.value <= found.high and found.high > found.low


# --- two models


def test_mcnemar_is_the_published_one():
    """Fagerland, Lydersen & Laake 2013: 1 and 7 discordant pairs; statsmodels 0.15 for the rest."""
    assert paired.mcnemar(1, 7) == pytest.approx((0.0703125, 0.0390625))
    assert paired.mcnemar(3, 12)[0] == pytest.approx(0.03515625)
    assert paired.mcnemar(0, 6)[0] == pytest.approx(0.03125)
    assert paired.mcnemar(2, 2) == pytest.approx((1.0, 1 - 0.5 * 6 / 16))
    assert paired.mcnemar(0, 0) == (1.0, 1.0)


FIRST = {"a": "nnnnn", "b": "nnnpp", "c": "ppppp", "d": "npppp", "e": "nnnnn", "z": "nnnnn"}
SECOND = {"a": "nnnnn", "b": "npppp", "c": "ppppp", "d": "npppp", "e": "pppnn", "y": "ppppp"}


def test_two_models_on_the_same_templates():
    a, b = table(FIRST), table(SECOND).assign(model="other")
    (found,) = paired.paired(a, b, "negrate")
    assert (found.n, found.alone, found.n_a, found.n_b) == (7, 2, 6, 6)
    assert (found.a, found.b) == (4 / 6, 1 / 6)  # as `score` prints them
    assert found.difference == pytest.approx(-3 / 6)
    assert (found.only_a, found.only_b) == (2, 0)
    assert found.exact is None and found.swap_p is not None  # z and y have no partner
    assert found.low < found.difference < found.high
    (swapped,) = paired.paired(b, a, "negrate")
    assert swapped.difference == pytest.approx(3 / 6)
    both = [
        {name: said for name, said in side.items() if name in "abcde"} for side in (FIRST, SECOND)
    ]
    (shared,) = paired.paired(table(both[0]), table(both[1]), "negrate")
    assert (shared.n, shared.alone, shared.a, shared.b) == (5, 0, 3 / 5, 1 / 5)
    assert (shared.exact, shared.mid_p) == (0.5, 0.25)
    (margin,) = paired.paired(table(both[0]), table(both[1]), "vote-margin")
    assert margin.difference == pytest.approx(mean([0, 0.4, 0, 0, -0.8]))
    assert margin.exact is None and margin.only_a is None


def test_stories_of_a_template_are_no_independent_pairs():
    (found,) = paired.paired(table(FIRST), table(SECOND), "negative-stories")
    assert (found.n, found.n_a, found.n_b) == (35, 30, 30)
    assert found.only_a == 5 and found.exact is None


def test_cells_and_what_cannot_be_paired():
    domain = {"domain": lambda s: "first" if s in "ab" else "second"}
    a, b = table(FIRST, **domain), table(SECOND, **domain)
    found = {p.by["domain"]: (p.n, p.only_a) for p in paired.paired(a, b, "negrate", ["domain"])}
    assert found == {"first": (2, 1), "second": (5, 1)}
    with pytest.raises(InputError, match="seeds is not a share and cannot be paired"):
        paired.paired(a, b, "seeds")
    with pytest.raises(InputError, match="the same templates occur twice"):
        paired.paired(pd.concat([a, a.assign(model="n")]), b, "negrate")
    with pytest.raises(InputError, match="cannot be split by 'sample'"):
        paired.paired(a, b, "negrate", ["sample"])


def test_the_paired_difference_covers():
    """Templates whose shares differ, and a model that is a little more negative: 92-98 % of
    intervals hold the true difference; McNemar rejects at most 5 % where there is none."""
    rng = np.random.default_rng(2)
    held = rejected = 0
    for _ in range(300):
        p = rng.beta(1, 1, 80)
        one, two = rng.random(80) < p, rng.random(80) < 0.8 * p + 0.2 * 0.5
        same = rng.random(80) < p
        own = np.column_stack([one, np.ones(80), two, np.ones(80)])
        low, high = OfStatements(own.astype(float), 1.0).interval()
        held += low <= 0 <= high  # 0.8 p + 0.1 has the mean of p
        rejected += paired.mcnemar(int((one & ~same).sum()), int((same & ~one).sum()))[1] < 0.05
    assert 0.91 < held / 300 < 0.99
    assert rejected / 300 < 0.075


def test_a_number_of_seeds_is_shown_as_a_number():
    shown = formats.render(metrics.score(table(STORIES), ["negrate", "seeds"], [], str), "table")
    needed = one(table(STORIES), "seeds")
    assert "40.0" in shown and f" {needed.value:.0f} " in shown
