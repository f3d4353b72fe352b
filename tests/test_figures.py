"""Figures: what is drawn is what was counted, and nothing else."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import sample
from test_formats import HOSTILE

from genprobe import api
from genprobe.analysis import distributions
from genprobe.analysis import score as counting
from genprobe.errors import RunError
from genprobe.records import Score
from genprobe.render import latex
from genprobe.report import figures
from genprobe.report.figures import (
    _plot,
    checkpoints,
    mixing,
    negrate,
    price,
    shares,
    significance,
    uncertainty,
)
from genprobe.report.figures._data import Data, Series, _series
from genprobe.runs.spec import signature

LANGS = ["en", "kk"]


@pytest.fixture(scope="module")
def yesno(tmp_path_factory):
    return [
        api.yesno(langs=LANGS, limit=4, seed=n, out=tmp_path_factory.mktemp(f"y{n}")).folder
        for n in (0, 1)
    ]


@pytest.fixture(scope="module")
def logprob(tmp_path_factory):
    return api.logprob(
        langs=LANGS, limit=24, scorers=["bias"], out=tmp_path_factory.mktemp("l")
    ).folder  # fmt: skip


def drawn(figure):
    """The lines, as ends and points, on all axes of a figure."""
    with _plot.style():
        canvas = figure.plot()
        canvas.draw_without_rendering()
    return canvas, [
        tuple(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for ax in canvas.axes
        for line in ax.lines
    ]


def test_every_score_is_counted_as_by_the_command_and_drawn_with_its_interval(yesno):
    found = {f.name: f for f in figures.found(yesno[:1])}
    figure = found["shares-by-language"]
    assert "shares-by-model" in found and not any("significance" in name for name in found)
    told = {
        (s.metric, s.by["lang"], s.by["probe"]): s
        for s in counting.score(yesno[:1], metrics=["yes", "no", "ambiguous"])
    }
    assert len(figure.scores) == len(told) == 3 * 3 * 2
    for s in figure.scores:
        one = told[s.metric, s.by["lang"], s.by["probe"]]
        assert dataclasses.replace(s, by=one.by) == one
    canvas, lines = drawn(figure)
    assert [ax.get_title(loc="left") for ax in canvas.axes] == [
        "recognition",
        "agreement",
        "disagreement",
    ]
    ends = {tuple(x for x, _ in line) for line in lines if len(line) == 2}
    points = {line[0][0] for line in lines if len(line) == 1}
    for s in figure.scores:
        assert (100 * s.low, 100 * s.high) in ends and 100 * s.value in points


@pytest.mark.slow
def test_the_csv_is_what_is_drawn(yesno, tmp_path):
    paths = {path.name: path for path in figures.draw(yesno, tmp_path)}
    for figure in figures.found(yesno):
        rows = list(csv.DictReader(io.StringIO(paths[f"{figure.name}.csv"].read_text())))
        assert [float(r["value"]) for r in rows] == [s.value for s in figure.scores]
        assert [int(r["n"]) for r in rows] == [s.n for s in figure.scores]
        assert all(r["signature"].startswith(f"metric:{r['metric']}/") for r in rows)
    assert {"shares-by-language-agreement.svg", "shares-by-model.pdf"} <= set(paths)
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(logprob):
    boxes, *_, heat = figures.found([logprob])
    assert "significance" in heat.name and "bias" in boxes.name
    one, two = ([*figures.rendered(boxes), *figures.rendered(heat)] for _ in "ab")
    for (form, a), (_, b) in zip(one, two, strict=True):
        assert a == b, form
        assert b"/CreationDate" not in a and b"dc:date" not in a
        if form == "svg":
            ET.fromstring(a)
            assert b"<text" in a  # text is text


@pytest.mark.slow
def test_boxes_are_the_quartiles_of_the_pairs_and_the_mean_of_the_score(logprob):
    found = {f.name: f for f in figures.found([logprob])}
    assert {"bias-scores-by-bias-type", "bias-scores-by-entity"} <= set(found)
    figure = found["bias-scores-by-language"]
    table = Data.of([logprob], print).of_kind("logprob")[0].table
    for score, box in zip(figure.scores, figure.more, strict=True):
        rows = table[table["lang"] == score.by["lang"]]
        gaps = rows["pro"] - rows["anti"]
        assert score.value == pytest.approx(gaps.mean()) and score.n == len(gaps) == 24
        assert box["median"] == pytest.approx(gaps.median())
        assert box["q1"] == pytest.approx(gaps.quantile(0.25))
    _, lines = drawn(figure)
    xs = {tuple(x for x, _ in line) for line in lines}
    assert all((s.low, s.high) in xs and (s.value,) in xs for s in figure.scores)


@pytest.mark.slow
def test_saying_and_preferring_appear_with_both_runs_only(yesno, logprob):
    names = {f.name: f for f in figures.found([yesno[0], logprob])}
    assert "say-prefer" in names and "say-prefer-table" in names
    assert not any("say" in f.name for f in figures.found([logprob]))
    _, lines = drawn(names["say-prefer"])
    ends = {line for line in lines if len(line) == 2}
    for s in names["say-prefer"].scores:
        axis = 0 if s.metric == "prefers" else 1
        assert any((e[0][axis], e[1][axis]) == (100 * s.low, 100 * s.high) for e in ends)


def score(value, metric="yes", **by):
    ends = (None, None) if value is None else (value - 0.1, value + 0.1)
    return Score(metric, by, value, *ends, 0 if value is None else 9, {}, None, "metric:yes/1|m:x")


def test_an_empty_cell_is_a_gap():
    scores = [score(0.5, lang="en", probe="p"), score(None, lang="kk", probe="p")]
    figure = shares._figure("x", "X", [*scores, score(0.2, "no", lang="kk", probe="p")], "lang")
    canvas, lines = drawn(figure)
    at = sorted(line[0][0] for line in lines if len(line) == 1)
    assert at == [20.0, 50.0]
    assert "0–9" in [t.get_text() for t in canvas.axes[0].texts]


@pytest.mark.parametrize(
    "name", [HOSTILE, "$x_{1$ ^", "نساء ایران", "नहीं", "\ufffe\U000f0000", "a" * 400]
)
@pytest.mark.filterwarnings("error:Glyph")
def test_hostile_names_are_drawn_and_tables_compile(name, tmp_path):
    scores = [score(0.5, lang=lang, probe="p", model=name) for lang in (name, "en")]
    figure = dataclasses.replace(shares._models("x", name, scores), across=("lang",))
    files = dict(figures.rendered(figure))
    ET.fromstring(files["svg"])
    assert files["pdf"].startswith(b"%PDF") and len(files["svg"]) < 200_000
    compiles(files["tex"].decode(), tmp_path)


def compiles(table: str, folder):
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex here")
    (folder / "t.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}" + "\n" + table
        + r"\end{document}", "utf-8")  # fmt: skip
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "t.tex"],
        cwd=folder, capture_output=True, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-800:]


@pytest.mark.slow
def test_the_tables_of_a_run_compile(yesno, logprob, tmp_path):
    tables = [
        latex.latex(f.scores, f.title, f.name, f.across)
        for f in figures.found([*yesno[:1], logprob])
    ]
    compiles("\n".join(tables), tmp_path)


@pytest.mark.slow
def test_tests_are_corrected_over_the_figure():
    values = pd.DataFrame(
        [
            {"model": "m", "lang": lang, "statement": n, "value": n + 100 * (lang == "c")}
            for lang in "abc"
            for n in range(20)
        ]
    )
    table = significance.pairwise(values, "lang", ["model"])
    assert list(zip(table["a"], table["b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert table["statistic"].tolist() == [0.0, 1.0, 1.0]
    assert (table["p_adjusted"] >= table["p"]).all()
    assert table["p_adjusted"][0] >= 0.5 > 0.05 > table["p_adjusted"][1]
    assert len(significance.pairwise(values[values["statement"] < 4], "lang", ["model"])) == 0


@pytest.mark.slow
def test_a_stratum_without_a_name_is_one():
    """Values whose language is not known were in no test, and the figure said nothing of it."""
    values = pd.DataFrame(
        [
            {"model": model, "lang": None, "statement": n, "value": n + 100.0 * (model == "b")}
            for model in "ab"
            for n in range(20)
        ]
    )
    table = significance.pairwise(values, "model", ["lang"])
    assert table["statistic"].tolist() == [1.0]


@pytest.mark.slow
def test_draws_leave_room_for_the_correction_over_the_figure(monkeypatch):
    monkeypatch.setattr(distributions, "TURNS", 9)
    values = pd.DataFrame(
        [
            {"model": model, "lang": lang, "statement": n, "value": n + 100.0 * at}
            for model in "mnop"
            for at, lang in enumerate("abcde")
            for n in range(20)
        ]
    )
    table = significance.pairwise(values, "lang", ["model"])
    assert len(table) == 40 and (table["p_adjusted"] < 0.05).all()
    assert len(significance.pairwise(values[:0], "lang", ["model"])) == 0


@pytest.mark.slow
def test_samples_that_are_all_alike_are_drawn():
    rows = [
        {"model": "m", "lang": lang, "statement": n, "value": n} for lang in "ab" for n in range(9)
    ]
    table = significance.pairwise(pd.DataFrame(rows), "lang", ["model"])
    figure = significance._figure(table, "lang", "")
    assert [s.value for s in figure.scores] == [0.0]
    drawn(figure)


# --- tables made by hand


def data(kind, **tables):
    specs = [dataclasses.replace(sample.SPEC, model=name) for name in tables]
    signers = [functools.partial(signature, spec, {}) for spec in specs]
    runs = (
        SimpleNamespace(spec=spec, judges=dict, signer=lambda sign=sign: sign)
        for spec, sign in zip(specs, signers, strict=True)
    )
    series = [
        Series(name, (run,), pd.DataFrame(table))
        for run, (name, table) in zip(runs, tables.items(), strict=True)
    ]
    return Data({kind: series}, print)


def points(lines):
    return {line[0] for line in lines if len(line) == 1}


def test_negrate_is_the_share_of_templates_with_mostly_negative_stories():
    bad = {"a1": 3, "a2": 1, "b1": 0, "c1": 2}  # of three stories
    rows = [
        {
            "lang": "kk",
            "probe": "story",
            "statement": name,
            "left_out": "",
            "sentiment": "negative" if n < negative else "positive",
            "sample": n,
            "domain": {"a": "work", "b": "home", "c": None}[name[0]],
        }
        for name, negative in bad.items()
        for n in range(3)
    ]
    (figure,) = negrate.figures(data("stories", m=rows))
    assert [(s.by["domain"], s.value, s.n) for s in figure.scores] == [
        ("home", 0.0, 1),
        ("work", 0.5, 2),
        (None, 1.0, 1),
    ]
    canvas, lines = drawn(figure)
    assert {x for x, _ in points(lines)} == {0.0, 50.0, 100.0}
    assert [t.get_text() for t in canvas.axes[0].get_yticklabels()] == ["home", "work", "(none)"]


def test_mixing_is_the_win_rate_over_the_share_in_five_bins():
    rows = [
        {"item": n, "scorer": "loglik", "pro": float(n > 4), "anti": 0.5, "russian": n / 10}
        for n in range(10)
    ]
    unscored = {"item": 10, "scorer": "loglik", "pro": None, "anti": 0.5, "russian": 0.5}
    (figure,) = mixing.figures(data("logprob", m=[*rows, unscored]))
    rates = [s.value for s in figure.scores if s.metric == "mixing" and s.by["bin"]]
    assert rates == [0.0, 0.0, 0.5, 1.0, 1.0]
    shares = [s for s in figure.scores if s.metric == "mixing-share" and s.by["bin"]]
    canvas, lines = drawn(figure)
    # A pair in no bin is told in the table, and is no point of n = 0.
    assert sum(sum(s.excluded.values()) for s in figure.scores if s.metric == "mixing") == 1
    assert "n = 2 a point" in [text.get_text() for text in canvas.axes[0].texts]
    assert sorted(points(lines)) == [
        (pytest.approx(100 * s.value), 100 * rate) for s, rate in zip(shares, rates, strict=True)
    ]
    xs = {tuple(x for x, _ in line) for line in lines if len(line) == 2}
    assert all((100 * s.low, 100 * s.high) in xs for s in shares)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step1000-tokens4B", 1000),
        ("epoch-2-step-300", 300),
        ("global_step-40-epoch-2", 40),
        ("epoch_3", 3),
        ("checkpoint-" + "9" * 5000, None),
        ("main", None),
    ],
)
def test_a_checkpoint_is_of_a_step_and_not_of_its_epoch(name, step):
    (series,) = data("logprob", one=[]).of_kind("logprob")
    series.runs[0].spec = SimpleNamespace(model="kaz", checkpoint=name)
    series.runs[0].folder = Path("runs", "one")
    assert checkpoints.checkpoint(series) == ("kaz", step)


def test_checkpoints_are_points_of_one_curve():
    series = []
    for step, wins in ((2000, 3), (1000, 1)):
        rows = [
            {"item": n, "lang": "kk", "scorer": "loglik", "pro": float(n < wins), "anti": 0.5}
            for n in range(4)
        ]
        (one,) = data("logprob", **{f"checkpoint-{step}": rows}).of_kind("logprob")
        one.runs[0].folder = Path("kaz", f"run-{step}")
        series.append(one)
    (figure,) = checkpoints.figures(Data({"logprob": series}, print))
    assert [(s.by["step"], s.value, s.n) for s in figure.scores] == [
        (1000, 0.25, 4),
        (2000, 0.75, 4),
    ]
    _, lines = drawn(figure)
    assert {(1000.0, 25.0), (2000.0, 75.0)} == points(lines)
    assert ((1000.0, 25.0), (2000.0, 75.0)) in lines  # the curve


def test_checkpoints_of_several_corpora_stand_side_by_side():
    """Aqbileq, Figures 8, 11, 12: a panel a corpus, a curve a language, on one axis of values."""
    series = []
    for corpus, first, last in (("news", 1, 3), ("books", 2, 2)):
        for step, wins in ((1000, first), (2000, last)):
            rows = [
                {"item": n, "lang": lang, "scorer": "ppl", "pro": float(n < wins), "anti": 0.5}
                for n in range(4)
                for lang in ("kk", "ru")
            ]
            name = f"kaz/{corpus}/checkpoint-{step}"
            series += data("logprob", **{name: rows}).of_kind("logprob")
            series[-1].runs[0].folder = Path("runs", f"{corpus}-{step}")
    *alone, beside = checkpoints.figures(Data({"logprob": series}, print))
    assert len(alone) == 2 and beside.name == "win-rate-by-checkpoint-side-by-side"
    assert {(s.by["model"], s.by["lang"]) for s in beside.scores} == {
        (corpus, lang) for corpus in ("news", "books") for lang in ("kk", "ru")
    }
    canvas, lines = drawn(beside)
    assert [ax.get_title(loc="left") for ax in canvas.axes] == ["news", "books"]
    assert len({ax.get_ylim() for ax in canvas.axes}) == 1
    assert [line for line in lines if len(line) == 2 and line[0][1] == 25 and line[1][1] == 75]


def test_uncertainty_is_told_by_condition():
    rows = [
        {
            "item": n,
            "lang": "en",
            "scorer": "choice",
            "left_out": "tie" if n == 3 else "",
            "condition": condition,
            "uncertainty": n / scale,
        }
        for condition, scale in (("ambig", 4), ("disambig", 8))
        for n in range(5)
    ]
    (figure,) = uncertainty.figures(data("choices", m=rows))
    assert [(s.by["condition"], s.value, s.n) for s in figure.scores] == [
        ("ambig", 0.5, 5),
        ("disambig", 0.25, 5),
    ]
    assert [box["median"] for box in figure.more] == [0.5, 0.25]
    canvas, lines = drawn(figure)
    assert {x for x, _ in points(lines)} == {50.0, 25.0}
    assert [t.get_text() for t in canvas.legends[0].get_texts()] == ["ambiguous", "disambiguated"]


def test_a_model_that_answers_nothing_has_its_price():
    """Before: 3 of 4 clear answers endorse. After: none does, and 3 of 4 replies are refusals."""
    said = {"before": ["yes", "yes", "yes", "no"], "after": ["no", *["ambiguous"] * 3]}
    rows = {
        name: [
            {"lang": "kk", "probe": "agreement", "statement": f"s{n}", "pair": f"s{n}", "answer": one,
             "says": None if one == "ambiguous" else one == "yes", "measures": "endorsed", "when": "yes",
             "kind": "refusal" if one == "ambiguous" else "answer", "left_out": "", "decode": "free"}
            for n, one in enumerate(answers)
        ]
        for name, answers in said.items()
    }  # fmt: skip
    (figure,) = price.figures(data("yesno", **rows))
    assert figure.name == "price-yesno"
    found = {(s.by["model"], s.metric): s.value for s in figure.scores}
    assert found == {
        ("before", "ambiguous"): 0.0, ("before", "endorsed"): 0.75,
        ("after", "ambiguous"): 0.75, ("after", "endorsed"): 0.0,
    }  # fmt: skip
    canvas, lines = drawn(figure)
    assert {(0.0, 75.0), (75.0, 0.0)} <= set(points(lines))
    assert "useful" in canvas.get_supxlabel()
    assert list(price.figures(data("yesno", before=rows["before"]))) == []  # nothing to compare


def test_the_price_in_choices_is_told_by_condition():
    rows = {
        name: [
            {"item": f"{c}{n}", "lang": "en", "scorer": "choice", "left_out": "", "condition": c,
             "label": 2 if c == "ambig" else 0, "chosen": chosen[c], "uncertainty": 0.5}
            for c in ("ambig", "disambig") for n in range(3)
        ]
        for name, chosen in {"guesses": {"ambig": 0, "disambig": 0}, "abstains": {"ambig": 2, "disambig": 2}}.items()
    }  # fmt: skip
    (figure,) = price.figures(data("choices", **rows))
    _, lines = drawn(figure)
    assert {(100.0, 0.0), (0.0, 100.0)} <= set(points(lines))


# --- names


def test_languages_have_their_names(yesno):
    figure = next(f for f in figures.found(yesno[:1]) if f.name == "shares-by-language")
    canvas, _ = drawn(figure)
    names = [t.get_text() for t in canvas.axes[0].get_yticklabels()]
    assert names == ["English en", "Kazakh kk"]


def test_two_models_of_one_name_are_two(tmp_path):
    found = {}
    for lang, model in (("en", "a/m"), ("kk", "b/m"), ("de", "b\\m")):
        spec = dataclasses.replace(sample.SPEC, model=model)
        run = sample.start(tmp_path / lang, spec)
        found[spec.who] = [(run, pd.DataFrame([{"lang": lang}]))]
    assert len({series.name for series in _series(found)}) == 3


def test_the_same_run_twice_is_one(yesno, monkeypatch):
    monkeypatch.chdir(yesno[0])
    assert [f.name for f in figures.found([yesno[0], "."])] == [
        f.name for f in figures.found(yesno[:1])
    ]


def test_no_figure_takes_the_files_of_another(yesno, monkeypatch):
    made = [dataclasses.replace(f, name="one") for f in figures.found(yesno[:1])[:2]]
    monkeypatch.setattr(shares, "figures", lambda _: iter(made))
    names = [f.name for f in figures.found(yesno[:1])]
    assert [name for name in names if "one" in name] == ["one", "one-2"]


@pytest.mark.slow
def test_redacted_no_entity_is_drawn(logprob, tmp_path):
    entities = {str(v) for v in Data.of([logprob], print).of_kind("logprob")[0].table["entity"]}
    told = []
    paths = figures.draw([logprob], tmp_path, redact=True, note=told.append)
    assert entities and not any("entity" in path.name for path in paths)
    assert any("entity is not drawn" in line for line in told)
    for path in paths:
        if path.suffix == ".csv":
            cells = {c for row in csv.reader(io.StringIO(path.read_text())) for c in row}
            assert not entities & cells


def test_nothing_to_draw_and_nowhere_to_write(yesno, tmp_path):
    sample.start(tmp_path / "run").close()
    with pytest.raises(RunError, match="nothing to draw; there are figures of yesno and"):
        figures.draw([tmp_path / "run"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        figures.draw(yesno, tmp_path / "file")
