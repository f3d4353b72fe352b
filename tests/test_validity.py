"""Reliability against worked values, and planted traits found again under noise."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from genprobe.analysis import matrix, validity
from genprobe.analysis.validity import multitrait, reliability
from genprobe.errors import InputError
from genprobe.render.crossed import crossed

# Shrout & Fleiss 1979, Psychological Bulletin 86:420, Table 2: six subjects, four judges.
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_the_coefficient_of_shrout_and_fleiss():
    found = reliability(np.array(SHROUT))
    assert found.value == pytest.approx(0.29, abs=0.005)  # ICC(2,1)
    assert found.low < 0.29 < found.high
    assert (found.n, found.times) == (6, 4)


def test_missing_measurements_leave_an_item_out():
    values = np.array([*SHROUT, [1, np.nan, 3, 4]], float)
    assert reliability(values) == reliability(np.array(SHROUT))


def test_measurements_that_never_differ_have_no_coefficient():
    found = reliability(np.ones((10, 2)))
    assert found.value is None


def test_too_little_is_refused():
    with pytest.raises(InputError):
        reliability(np.ones((1, 2)))
    with pytest.raises(InputError):
        multitrait({("a", "said"): {}})


def planted(rng, correlation, method=0.0, noise=1.0, units=400, times=4):
    """Two traits by two methods, each method with a leaning of its own."""
    cover = np.linalg.cholesky([[1, correlation], [correlation, 1]])
    traits = cover @ rng.standard_normal((2, units))
    leaning = method * rng.standard_normal((2, units))
    return {
        (trait, way): {
            f"u{i}": tuple(traits[t, i] + leaning[m, i] + noise * rng.standard_normal(times))
            for i in range(units)
        }
        for t, trait in enumerate(("gender", "age"))
        for m, way in enumerate(("said", "told"))
    }


def test_planted_traits_come_back_with_the_noise_taken_out():
    rng = np.random.default_rng(1)
    found = [multitrait(planted(rng, 0.4)) for _ in range(8)]
    assert np.mean([m.mean("convergent", true=True) for m in found]) == pytest.approx(1, abs=0.05)
    assert np.mean([m.mean("neither", true=True) for m in found]) == pytest.approx(0.4, abs=0.05)
    assert np.mean([m.mean("convergent") for m in found]) == pytest.approx(0.8, abs=0.05)
    for one in found:
        for reliable in one.reliabilities.values():
            assert reliable == pytest.approx(0.8, abs=0.06)
        assert "tell properties apart" in one.told()


def test_a_method_that_says_more_than_the_trait_is_told():
    matrix = multitrait(planted(np.random.default_rng(2), 0.0, method=2.0))
    assert matrix.mean("one method") > matrix.mean("convergent")
    assert "the way of measuring matters more" in matrix.told()


def test_what_was_measured_once_has_no_reliability():
    rng = np.random.default_rng(3)
    matrix = multitrait(planted(rng, 0.3, times=1))
    assert set(matrix.reliabilities.values()) == {None}
    assert all(cell.true is None and cell.value is not None for cell in matrix.cells)


def said(model, latent, seen, rng):
    """Yes/no outcomes: agreement and disagreement, and recognition, of items with these chances."""
    rows = []
    for at, (endorsed, recognised) in enumerate(zip(latent, seen, strict=True)):
        for probe, when, measures, p in (
            ("agreement", "yes", "endorsed", endorsed),
            ("disagreement", "no", "endorsed", endorsed),
            ("recognition", "yes", "recognised", recognised),
        ):
            for sample in range(3):
                says = bool(rng.random() < p)
                rows.append((f"s{at}", probe, when, measures, sample, says))
    columns = ["statement", "probe", "when", "measures", "sample", "says"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(
        model=model, lang="en", decode="free", role="original", text=found["statement"],
        bias_type=np.where(found["statement"].str[1:].astype(int) % 2, "age", "gender"),
    )  # fmt: skip


def explained(model, latent, rng):
    table = said(model, latent, latent, rng)
    table = table[table["probe"] == "agreement"].drop(columns=["says", "measures", "when"])
    stance = [
        ("against", "for")[int(rng.random() < latent[int(s[1:])])] for s in table["statement"]
    ]
    return table.assign(side=stance)


def test_the_matrix_of_runs_finds_planted_traits_and_methods():
    rng = np.random.default_rng(11)
    latent, seen = rng.beta(0.5, 0.5, 300), rng.beta(0.5, 0.5, 300)
    tables = [("m", said("m", latent, seen, rng)), ("m", explained("m", latent, rng))]
    found = validity.multitrait(matrix.measures(tables, ""))
    cells = {(c.a, c.b): c for c in found.cells}
    one = cells[("endorsed", "said"), ("endorsed", "explained")]
    assert one.kind == "convergent"
    assert one.n == 300
    assert one.true == pytest.approx(1.0, abs=0.08)
    assert one.value < one.true
    other = cells[("endorsed", "said"), ("recognised", "said")]
    assert other.kind == "one method"
    assert abs(other.value) < 0.15
    assert "tell properties apart" in matrix.told(found)


def test_models_are_the_units_where_traits_are_kinds_of_stereotypes():
    rng = np.random.default_rng(12)
    tables = []
    for at, level in enumerate(np.linspace(0.1, 0.9, 8)):
        tables.append((f"m{at}", said(f"m{at}", [level] * 40, [0.5] * 40, rng)))
        tables.append((f"m{at}", explained(f"m{at}", [level] * 40, rng)))
    found = validity.multitrait(matrix.measures(tables, "bias_type"))
    assert {trait for trait, _ in found.measures} == {"age", "gender"}
    one = next(c for c in found.cells if c.a == ("age", "said") and c.b == ("age", "explained"))
    assert one.n == 8
    assert one.value > 0.9
    with pytest.raises(InputError, match="5 are needed"):
        matrix.measures(tables[:4], "bias_type")


def test_an_item_that_reads_otherwise_in_another_run_is_refused():
    rng = np.random.default_rng(13)
    one, other = (said("m", [0.5] * 3, [0.5] * 3, rng) for _ in range(2))
    with pytest.raises(InputError, match="another text"):
        matrix.measures([("m", one), ("m", other.assign(text="another"))], "")


def test_the_matrix_is_printed_as_one_and_fits_narrow_terminals():
    rng = np.random.default_rng(11)
    latent, seen = rng.beta(0.5, 0.5, 300), rng.beta(0.5, 0.5, 300)
    tables = [("m", said("m", latent, seen, rng)), ("m", explained("m", latent, rng))]
    found = validity.multitrait(matrix.measures(tables, ""))
    scores = list(matrix._scores(found, {}, "metric:correlation/1"))
    text = crossed(scores, 100)
    measured, _, true = text.partition("corrected for the noise of both")
    rows = [line for line in measured.splitlines() if line[:1].isdigit()]
    names = [", ".join(name) for name in found.measures]
    assert [row[2:].startswith(name) for row, name in zip(rows, names, strict=True)] == [True] * 3
    assert [len(row[len(n) + 2 :].split()) for row, n in zip(rows, names, strict=True)] == [1, 2, 3]
    for cell in found.cells:
        at, to = (names.index(", ".join(name)) for name in (cell.b, cell.a))
        shown = rows[at][len(names[at]) + 2 :].split()[to]
        mark = {"convergent": "*", "one method": "=", "neither": ""}[cell.kind]
        assert shown == f"{cell.value:z.2f}".replace("-", "−") + mark
        low, high = cell.interval
        assert f"[{low:z.2f}, {high:z.2f}]".replace("-", "−") in measured
        assert f"{cell.true:z.2f}".replace("-", "−") in true
    assert f"({found.reliabilities[found.measures[0]]:.2f})" in rows[0]
    assert "over 300 units" in text
    for width in (30, 40, 60):
        narrow = crossed(scores, width)
        lines = narrow[: narrow.index("*: same")].splitlines()
        assert max(len(line) for line in lines if ":" not in line) <= width
        figures = [word for line in measured.splitlines() for word in line.split()]
        assert all(word in narrow for word in figures if word.startswith(("0.", "−0.", "(")))
    assert text.count("Signature of all figures") == 1
    few = [dataclasses.replace(scores[-2], value=None, low=None, high=None, n=3), *scores[:-2]]
    assert "over 300 units" in crossed(few)
    assert "There is no figure if too few units have both" in crossed(few)
