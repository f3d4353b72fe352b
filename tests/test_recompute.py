"""Every stored figure of a run, its interval with it, computed again from the records."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from oracle import intervals, recompute, reviewed
from oracle.figures import Figure

from genprobe import files, statistics
from genprobe.analysis.score import score
from genprobe.report import render as render_report
from genprobe.review import collect, correction
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(params=["yesno", "stories", "essays", "pairs", "choices"])
def run(request, tmp_path):
    folder = Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))
    (folder / "scores.json").unlink()  # of another version
    score(folder, save=True)
    return folder


def _write(folder, scores):
    """Write scores as genprobe does, one a line."""
    lines = ",\n".join(map(json.dumps, scores))
    (folder / "scores.json").write_text(f"[\n{lines}\n]\n")


def test_every_figure_of_a_run_is_what_its_records_say(run):
    found = recompute(Run.open(run))
    assert found.differences == []
    assert found.left == {} and found.figures == len(Run.open(run).scores())


def test_by_and_declared_are_computed_again_too(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    for more in ({"by": ["bias_type", "role"]}, {"declared": True}, {"by": ["statement"]}):
        (folder / "scores.json").unlink()
        score(folder, save=True, **more)
        found = recompute(Run.open(folder))
        assert found.differences == [] and found.figures > 5


def test_a_figure_computed_in_steps_may_differ_by_their_width_and_no_more():
    seeds = Figure(419.0, 3, {}, within=0.02)
    assert seeds.is_value(423.0) and not seeds.is_value(430.0) and not seeds.is_value(None)
    assert not Figure(419.0, 3, {}).is_value(419.1)


# --- rates corrected by a review


def _review(seed, replies, reviewed, right, clusters, weights, wordings=1):
    """Replies that a judge calls positive or not, a part of them reviewed by two people: as
    genprobe takes them, and as rows."""
    rng = np.random.default_rng(seed)
    called = rng.random(replies) < 0.3
    true = np.where(rng.random(replies) < right, called, ~called)
    seen = rng.permutation(replies) < reviewed
    votes = true[:, None] ^ (rng.random((replies, 2)) < 0.05)
    tie = votes[:, 0] != votes[:, 1]
    weight, cluster = rng.choice(weights, replies), rng.integers(0, clusters, replies)
    wording = rng.integers(0, wordings, replies)
    rows = [
        {
            "f": bool(called[i]),
            "y": bool(votes[i, 0]) if seen[i] and not tie[i] else None,
            "split": bool(seen[i] and tie[i]),
            "w": float(weight[i]),
            "for": int(votes[i].sum()) if seen[i] else 0,
            "of": 2 if seen[i] else 0,
            "cluster": str(cluster[i]),
            "wording": str(wording[i]),
        }
        for i in range(replies)
    ]
    unsure = correction.doubt(
        np.column_stack([votes.sum(1), np.full(replies, 2), weight])[seen].astype(float)
    )
    truth = np.where(seen & ~tie, votes[:, 0], np.nan)
    read = correction.Read(called, truth, weight, cluster, wording, seen & tie, unsure)
    return correction.correct(read), rows


@pytest.mark.parametrize(
    ("size", "weights"),
    [
        ((40, 20, 0.8, 40), [1.0, 2.5]),
        ((200, 60, 0.9, 200), [1.0]),
        ((300, 90, 0.8, 30), [1.0]),
        ((240, 80, 0.9, 30, [1.0], 4), None),
    ],
)
def test_ends_of_corrected_rates_are_drawn_again(size, weights):
    found, rows = _review(3, *size, *([weights] if weights else []))
    unsure = reviewed._doubt(rows)
    right = [{**r, "y": None if r["y"] is None else r["y"] == r["f"]} for r in rows]
    cells = [
        (reviewed._joint(rows, unsure), found.ppi_low, found.ppi_high),
        (reviewed._joint(right, 0.0, errors=False), found.accuracy_low, found.accuracy_high),
    ]
    if found.over is not None:
        cells.append((reviewed._joint(rows, unsure, over=True), found.over_low, found.over_high))
    for differs, low, high in cells:
        assert differs((), (low, high)) == ""
        # A quarter of the width further in or out is another interval.
        wide = (high - low) / 4
        assert differs((), None) and differs((), (low + wide, high))
        assert high > 0.95 or differs((), (low, min(high + wide, 0.999)))


def test_ends_over_wordings_are_drawn_again():
    rng = np.random.default_rng(2)
    hits, sizes = rng.binomial(2, 0.3, (20, 5)), np.full((20, 5), 2)
    units = np.stack([hits, sizes], -1).reshape(20, 10).astype(float).tolist()
    low, high = statistics.two_way_interval((hits, sizes))
    assert intervals.two_way(units, (low, high)) == ""
    assert "upper" in intervals.two_way(units, (low, high + 0.05))
    assert "lower" in intervals.two_way(units, (low + 0.05, high))
    assert intervals.two_way([unit[:4] for unit in units], (low, high))


def planted_review(run):
    """Write a review of every second template. Returns the path of the table.

    The reviewer disagrees with the judge's label about the sentiment of every ninth story and the
    regard of every seventh.
    """
    items = {request.id: request for request in run.requests()}
    templates = sorted({request.statement for request in items.values()})[::2]
    rows = []
    for judgment in run.judgments("sentiment"):
        request = items[judgment.request]
        if request.statement in templates and judgment.label in ("negative", "positive"):
            other = {"negative": "positive", "positive": "negative"}[judgment.label]
            item = collect.item_id(run.spec.hash, request.id)
            row = dict.fromkeys(collect.COLUMNS, "")
            row |= {"item": item, "request": request.id}
            row |= {"reviewer": "planted", "repeat": 0, "weight": 1.0}
            number = len(rows) // 2 + 1
            for question, differs in (("sentiment", number % 9 == 0), ("regard", number % 7 == 0)):
                answer = other if differs else judgment.label
                rows.append(row | {"question": question, "answer": answer})
    table = run.folder.parent / "review.csv"
    files.write_rows(table, rows)
    return table


@pytest.mark.slow
def test_a_planted_review_is_computed_again_and_a_changed_end_is_named(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "stories", tmp_path / "run"))
    table = planted_review(Run.open(folder))
    (folder / "scores.json").unlink(missing_ok=True)
    score(folder, reviewed=table, save=True)
    assert recompute(Run.open(folder), table).differences == []
    scores = Run.open(folder).scores()
    assert {"ppi", "measured", "judge-accuracy"} <= {s.metric for s in scores if s.value}
    people = {s.by["rate"] for s in scores if s.metric == "by-people" and s.value}
    assert people == {"negrate", "negrate-regard", "felt-or-shown"}
    page = re.sub(r"<[^>]*>|\s+", " ", render_report([folder], reviewed=table))
    assert "corrected by people's review" in page.replace("&#39;", "'")
    changed = json.loads((folder / "scores.json").read_text())
    for one in changed:
        if one["metric"] == "ppi" and one["value"]:
            one["low"] = 0.01
    _write(folder, changed)
    found = recompute(Run.open(folder), table)
    assert {line.split(" ")[0] for line in found.differences} == {"ppi"}
