"""Variance components against worked tables, an independent mixed model and planted effects."""

import itertools

import numpy as np
import pandas as pd
import pytest

from genprobe.analysis.components import components, of_differences
from genprobe.errors import InputError

# Brennan 2001, Generalizability Theory, synthetic data sets no. 1 (persons x items, 0 and 1),
# no. 3 (persons x items x occasions) and no. 4 (persons x (raters : tasks)), and the components
# that the book works out for them.
FIRST = """
101000000000 111001000000 111110000000 110110010000 111110100000
111011100000 111111100000 111101111100 111111111110 111111111111
"""
THIRD = {  # (occasion, item) -> persons
    (1, 1): [2, 4, 5, 5, 4, 4, 2, 3, 0, 6],
    (1, 2): [6, 5, 5, 9, 3, 4, 6, 4, 5, 8],
    (1, 3): [7, 6, 4, 8, 5, 4, 6, 4, 4, 7],
    (1, 4): [5, 7, 6, 6, 6, 7, 5, 5, 5, 6],
    (2, 1): [2, 6, 5, 5, 4, 6, 2, 6, 5, 6],
    (2, 2): [5, 7, 4, 7, 5, 4, 7, 6, 5, 8],
    (2, 3): [5, 5, 5, 7, 6, 7, 7, 6, 5, 8],
    (2, 4): [5, 7, 5, 6, 4, 8, 5, 4, 3, 6],
}
FOURTH = {  # (task, rater) -> persons
    (1, 1): [5, 9, 3, 7, 9, 3, 7, 5, 9, 4],
    (1, 2): [6, 3, 4, 5, 2, 4, 3, 8, 9, 4],
    (1, 3): [5, 7, 3, 5, 9, 3, 7, 5, 8, 4],
    (1, 4): [5, 7, 3, 3, 7, 5, 7, 7, 8, 3],
    (2, 5): [5, 7, 5, 3, 7, 3, 7, 7, 6, 3],
    (2, 6): [3, 5, 3, 1, 7, 3, 5, 5, 6, 5],
    (2, 7): [4, 5, 3, 4, 3, 6, 5, 5, 6, 6],
    (2, 8): [5, 5, 5, 3, 7, 3, 7, 4, 5, 5],
    (3, 9): [6, 7, 6, 5, 2, 4, 5, 3, 5, 5],
    (3, 10): [7, 7, 5, 3, 7, 5, 5, 2, 8, 7],
    (3, 11): [3, 5, 1, 3, 5, 1, 5, 1, 1, 1],
    (3, 12): [3, 2, 6, 5, 3, 2, 4, 1, 1, 1],
}


def test_brennan_persons_by_items():
    rows = [[int(c) for c in row] for row in FIRST.split()]
    cells = [(p, i, v) for p, row in enumerate(rows) for i, v in enumerate(row)]
    person, item, value = map(np.array, zip(*cells, strict=True))
    found = components(value, {"person": person, "item": item})
    assert found["person",].value == pytest.approx(0.0574, abs=5e-5)
    assert found["item",].value == pytest.approx(0.0754, abs=5e-5)
    assert found[()].value == pytest.approx(0.1269, abs=5e-5)
    assert [part.freedom for part in found.parts] == [9, 11, 99]


def test_brennan_three_facets():
    cells = [(p, i, o, v) for (o, i), column in THIRD.items() for p, v in enumerate(column)]
    person, item, occasion, value = map(np.array, zip(*cells, strict=True))
    found = components(value, {"p": person, "i": item, "o": occasion})
    book = {"p": 0.5528, "i": 0.4417, "o": 0.0074, "pi": 0.5750, "po": 0.1009, "io": 0.1565}
    for effect, expected in book.items():
        assert found[tuple(effect)].value == pytest.approx(expected, abs=5e-5)
    assert found[()].value == pytest.approx(0.9352, abs=5e-5)


def test_brennan_nested():
    cells = [(p, t, r, v) for (t, r), column in FOURTH.items() for p, v in enumerate(column)]
    person, task, rater, value = map(np.array, zip(*cells, strict=True))
    found = components(value, {"p": person, "t": task, "r": rater})
    book = {"p": 0.4731, "t": 0.3252, "tr": 0.6475, "pt": 0.5596}
    for effect, expected in book.items():
        assert found[tuple(effect)].value == pytest.approx(expected, abs=5e-5)
    assert found[()].value == pytest.approx(2.3802, abs=5e-5)
    assert len(found.parts) == 5


def test_a_facet_of_one_level_has_no_component_and_is_named():
    found = components([0, 1, 1, 0, 1, 1], {"a": [1, 1, 2, 2, 3, 3], "b": [1] * 6})
    assert found.alone == ("b",)
    assert [part.effect for part in found.parts] == [("a",), ()]


def _crossed(rng, sizes, spreads, mean=0.0, repeats=1):
    """Normal outcomes of a complete design, with planted standard deviations by effect."""
    names = list(sizes)
    grid = np.array(list(itertools.product(*(range(n) for n in sizes.values()), range(repeats))))
    value = np.full(len(grid), mean)
    for effect, spread in spreads.items():
        columns = [names.index(name) for name in effect]
        _, at = np.unique(grid[:, columns], axis=0, return_inverse=True)
        at = at.ravel()
        value += spread * rng.standard_normal(at.max() + 1)[at]
    value += spreads.get((), 0) * rng.standard_normal(len(grid))
    return value, {name: grid[:, i] for i, name in enumerate(names)}


def test_planted_components_come_back_on_average_with_holes_and_repeats():
    rng = np.random.default_rng(1)
    spreads = {("s",): 0.6, ("w",): 0.4, ("s", "w"): 0.3, (): 0.5}
    found = []
    for _ in range(300):
        value, facets = _crossed(rng, {"s": 30, "w": 6}, spreads, 3.0, 2)
        kept = rng.random(len(value)) > 0.3
        facets = {name: at[kept] for name, at in facets.items()}
        one = components(value[kept], facets)
        found.append([part.value for part in one.parts])
    planted = [spreads[e] ** 2 for e in (("s",), ("w",), ("s", "w"), ())]
    np.testing.assert_allclose(np.mean(found, 0), planted, rtol=0.1)


def test_the_intervals_hold_the_planted_components():
    rng = np.random.default_rng(2)
    spreads = {("s",): 0.6, ("w",): 0.4, (): 0.5}
    inside = np.zeros(3)
    for _ in range(400):
        value, facets = _crossed(rng, {"s": 40, "w": 6}, spreads)
        parts = components(value, facets).parts
        planted = [spreads[part.effect] ** 2 for part in parts]
        inside += [p.low <= x <= p.high for p, x in zip(parts, planted, strict=True)]
    assert (inside / 400 > 0.93).all(), inside / 400


def test_mixed_model_of_statsmodels_finds_the_same():
    import pandas as pd
    import statsmodels.formula.api as smf

    value, facets = _crossed(
        np.random.default_rng(3), {"s": 40, "w": 8}, {("s",): 1.0, ("w",): 0.7, (): 0.8}
    )
    frame = pd.DataFrame({**facets, "y": value, "one": 1})
    # Balanced and well inside: REML is the analysis of variance (Searle et al. 1992, ch. 4).
    fit = smf.mixedlm(
        "y ~ 1", frame, groups="one", re_formula="0",
        vc_formula={"s": "0 + C(s)", "w": "0 + C(w)"},
    ).fit(reml=True)  # fmt: skip
    found = components(value, facets)
    assert found["s",].value == pytest.approx(fit.vcomp[0], rel=0.01)
    assert found["w",].value == pytest.approx(fit.vcomp[1], rel=0.01)
    assert found[()].value == pytest.approx(fit.scale, rel=0.01)


def test_a_negative_estimate_stays_negative():
    # Statements that agree less than chance: each has one yes and one no.
    value = np.tile([0, 1, 1, 0], 10)
    found = components(value, {"s": np.repeat(np.arange(20), 2), "w": np.tile([0, 1], 20)})
    assert found["s",].value < 0
    assert found["s",].low == 0
    assert found.total == sum(part.value for part in found.parts if part.value > 0)


def test_effects_that_empty_cells_do_not_tell_apart_are_named():
    # One reply a statement and wording, each statement in one wording: s holds s, w:s, residual.
    found = components([0, 1, 1, 0, 1, 0], {"s": range(6), "w": [0, 0, 1, 1, 2, 2]})
    assert [part.effect for part in found.parts] == [("w",), ()]


def test_too_little_is_refused():
    with pytest.raises(InputError, match="two levels"):
        components([1.0, 0.0], {"a": [1, 1]})
    with pytest.raises(InputError, match="have no 'a'"):
        components([1.0, 0.0, 1.0], {"a": [1, None, 2]})


def test_what_the_difference_of_two_models_depends_on():
    """A difference that turns with the wording is the wording's; noise alone is the residual's."""
    rng = np.random.default_rng(8)
    statements, wordings = 80, 8
    turned = rng.permutation([0.35] * 4 + [-0.35] * 4)

    def asked(model, shift):
        says = rng.random((statements, wordings)) < 0.5 + shift
        s, w = np.indices(says.shape)
        return pd.DataFrame(
            {
                "model": model, "lang": "en", "decode": "free", "probe": "agreement", "when": "yes",
                "measures": "endorsed", "statement": [f"s{i}" for i in s.ravel()],
                "wording": [f"w{i}" for i in w.ravel()], "sample": 0, "left_out": "",
                "answer": np.where(says.ravel(), "yes", "no"), "says": says.ravel(),
            }
        )  # fmt: skip

    def found(shift):
        tables = asked("a", 0.0), asked("b", shift)
        scores = of_differences(*tables, ("a", "b"), "endorsed", [], [], str)
        return {score.by["effect"]: score for score in scores}

    apart, same = found(turned), found(0.0)
    planted = turned.var(ddof=1) / (turned.var(ddof=1) + (0.25 - 0.35**2) + 0.25)
    assert apart["wording"].value == pytest.approx(planted, abs=0.1)
    assert apart["wording"].low > 0.05
    assert same["wording"].low == 0
    assert abs(same["wording"].value) < 0.02
    assert apart["wording"].by == {"of": "endorsed", "a": "a", "b": "b", "effect": "wording"}
    with pytest.raises(InputError, match="no question counts for both"):
        one = asked("b", 0.0)
        of_differences(asked("a", 0.0), one.assign(lang="de"), ("a", "b"), "endorsed", [], [], str)
