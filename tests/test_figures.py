"""Figures: what is drawn is what was counted, and nothing else."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pandas as pd
import pytest
import sample
from test_formats import HOSTILE

from genprobe import asking, counting, figures, formats, inference
from genprobe.errors import RunError
from genprobe.figures import _plot, shares, significance
from genprobe.figures._data import Data
from genprobe.records import Score

LANGS = ["en", "kk"]


@pytest.fixture(scope="module")
def yesno(tmp_path_factory):
    return [
        asking.yesno(langs=LANGS, limit=4, seed=n, out=tmp_path_factory.mktemp(f"y{n}")).folder
        for n in (0, 1)
    ]


@pytest.fixture(scope="module")
def logprob(tmp_path_factory):
    return asking.logprob(
        langs=LANGS, scorers=["bias"], out=tmp_path_factory.mktemp("l")
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


def test_the_csv_is_what_is_drawn(yesno, tmp_path):
    paths = {path.name: path for path in figures.draw(yesno, tmp_path)}
    for figure in figures.found(yesno):
        rows = list(csv.DictReader(io.StringIO(paths[f"{figure.name}.csv"].read_text())))
        assert [float(r["value"]) for r in rows] == [s.value for s in figure.scores]
        assert [int(r["n"]) for r in rows] == [s.n for s in figure.scores]
        assert all(r["signature"].startswith(f"metric:{r['metric']}/") for r in rows)
    assert {"shares-by-language-agreement.svg", "shares-by-model.pdf"} <= set(paths)
    assert not list(tmp_path.glob("*.tmp"))


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


def test_the_tables_of_a_run_compile(yesno, logprob, tmp_path):
    tables = [
        formats.latex(f.scores, f.title, f.name, f.across)
        for f in figures.found([*yesno[:1], logprob])
    ]
    compiles("\n".join(tables), tmp_path)


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


def test_draws_leave_room_for_the_correction_over_the_figure(monkeypatch):
    monkeypatch.setattr(inference, "TURNS", 9)
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


def test_nothing_to_draw_and_nowhere_to_write(yesno, tmp_path):
    sample.start(tmp_path / "run").close()
    with pytest.raises(RunError, match="nothing to draw"):
        figures.draw([tmp_path / "run"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        figures.draw(yesno, tmp_path / "file")
