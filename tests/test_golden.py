"""Runs made by version 0.1.0 still open, verify, resume, and score to the same bytes."""

import json
import re
import shutil
from pathlib import Path

import pytest
from oracle import recompute

from genprobe import metrics
from genprobe.analysis.again import score_again
from genprobe.analysis.score import score
from genprobe.report import figures
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"
KINDS = ("yesno", "stories", "essays", "pairs", "choices")
# What the next versions of genprobe say of a run besides, in columns of their own.
SINCE = frozenset(
    (
        *("negrate-corrected", "negrate-published", "story-refusal", "story-refusal-corrected"),
        *("refusal-corrected", "unknown-chosen", "unknown-gap"),
    )
)
# Since then definitions have changed (what failed is inside the bounds; no request of these runs
# failed), signatures name the estimand, and intervals are computed otherwise: the ends are no longer
# those of then; all else is.
GONE = {"hedged", "stance"}  # of the word lists of essays
METRIC = re.compile(r"(?<=metric:)([^/|{]+)/[^|+]*")


def raised(text: str) -> str:
    """The text with the definitions of today in its signatures."""
    known = metrics.catalogue()
    return METRIC.sub(lambda found: known[found[1]].id if found[1] in known else found[0], text)


def without_ends(scores: list[dict]) -> list[dict]:
    """The scores without the ends of intervals, which must hold the value, and without bounds."""
    for one in scores:
        low, high = one.pop("low"), one.pop("high")
        assert low is None or one["value"] is None or low <= one["value"] <= high
        del one["bounds"]
    return scores


def bounds(scores: list[dict]) -> list[list[float]]:
    """The bounds; there are none since where nothing is unclear."""
    return [one["bounds"] if one["bounds"] != [one["value"]] * 2 else None for one in scores]


@pytest.fixture(params=KINDS)
def run(request, tmp_path) -> Path:
    return Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))


def test_there_are_runs_of_each_release():
    """Of the next one, they come with its heading: in golden/VERSION/KIND, and in `run` here."""
    changes = (GOLDEN.parents[1] / "CHANGELOG.md").read_text("utf-8")
    made = {json.loads(p.read_text())["version"] for p in GOLDEN.rglob("run.json")}
    assert set(re.findall(r"^## ([\d.]+)", changes, re.MULTILINE)) == made


def test_the_run_is_whole_and_its_spec_has_the_same_hash(run):
    opened = Run.open(run)
    assert opened.verify() == []
    assert opened.spec.version == "0.1.0"
    assert json.loads((run / "run.json").read_text())["command"] == opened.spec.command


def test_it_scores_to_the_same_bytes(run):
    wanted = json.loads(raised((run / "scores.json").read_text()))
    (run / "scores.json").unlink()
    score(run, save=True)
    found = json.loads((run / "scores.json").read_text())
    kept = [one for one in found if one["metric"] not in SINCE]
    # Word lists gave a rate of sides then, and give none since.
    wanted = [one for one in wanted if one["metric"] not in GONE]
    wanted = [one for one in wanted if not one["metric"].startswith("argues-")]
    assert all(one["value"] is None for one in kept if one["metric"].startswith("argues-"))
    kept = [one for one in kept if not one["metric"].startswith("argues-")]
    # What is `und` may be in either language, and is inside the bounds since.
    pairs = zip(bounds(kept), bounds(wanted), kept, strict=True)
    new = {one["metric"] for found, was, one in pairs if found != was}
    assert new <= {"wrong-language"}
    assert without_ends(kept) == without_ends(wanted)


def test_its_outcomes_are_the_same(run):
    import pandas as pd

    wanted = pd.read_csv(run / "outcomes.csv", dtype=str)
    score(run, export=run / "outcomes.csv")
    found = pd.read_csv(run / "outcomes.csv", dtype=str)
    if "status" in wanted:  # it had a word for what is not left out, too
        came = wanted.pop("status")
        wanted["left_out"] = came.where(came != "answered")
    wanted = wanted.drop(columns=GONE & {*wanted})
    pd.testing.assert_frame_equal(found[wanted.columns], wanted)


def rounded(path: Path) -> str:
    """Return a file with numbers of 12 digits: processors differ in the last of 16."""
    return re.sub(r"\d+\.\d{13,}", lambda m: f"{float(m[0]):.12f}", path.read_text("utf-8"))


def test_the_figures_of_the_report_are_the_same(tmp_path):
    """golden/figures has what `draw` writes of today's definitions and intervals."""
    folders = [Path(shutil.copytree(GOLDEN / kind, tmp_path / kind)) for kind in KINDS]
    drawn = figures.draw(folders, tmp_path / "figures")
    made = {path.name: path for path in map(Path, drawn) if path.suffix == ".csv"}
    for path in sorted((GOLDEN / "figures").glob("*.csv")):
        assert rounded(made[path.name]) == rounded(path), path.name


def test_a_figure_of_an_older_definition_is_told_and_not_called_wrong(run):
    found = score_again(Run.open(run))
    assert found.differences == [] and recompute(Run.open(run)).differences == []
    signatures = {
        score["metric"]: score["signature"]
        for score in json.loads((run / "scores.json").read_text())
    }
    older = {metric for metric, why in found.left.items() if why.startswith("it was stored as")}
    assert older == {metric for metric, was in signatures.items() if raised(was) != was}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_9361e4c_opens_and_gives_its_tables_and_values(kind, tmp_path):
    """Of a later state of 0.1.0, before the estimands; with choices that were asked."""
    run = Path(shutil.copytree(GOLDEN / "9361e4c" / kind, tmp_path / kind))
    assert Run.open(run).verify() == []
    assert score_again(Run.open(run)).differences == []  # the outcomes, too

    def defined(signature):
        return re.match(r"(?:metric:)?([^/]+/\d+)", signature)[1]

    def values():
        kept = [one for one in Run.open(run).scores() if defined(one.signature) in versions]
        return {(one.metric, str(one.by)): (one.value, one.n, one.excluded) for one in kept}

    versions = {defined(one.id) for one in metrics.catalogue().values()}
    wanted = values()
    (run / "scores.json").unlink()
    score(run, save=True)
    found = values()
    for (metric, cell), was in wanted.items():
        if not metric.startswith("argues-"):  # word lists give no rate of sides since
            assert found[metric, cell] == was, (metric, cell)


def test_it_resumes_where_it_was(run):
    """With its last answer gone it asks for that one, and for no other."""
    opened = Run.open(run)
    name = "logprobs.jsonl" if opened.spec.decode == ("score",) else "responses.jsonl"
    lines = (run / name).read_text().splitlines(keepends=True)
    (run / name).write_text("".join(lines[:-1]) + lines[-1][:20])  # cut off by a crash
    statements, requests = list(opened.statements()), list(opened.requests())
    with Run.start(run, opened.spec, statements, requests) as again:
        assert [one.id for one in again.pending()] == [json.loads(lines[-1])["request"]]
    assert (run / name).read_text() == "".join(lines[:-1])


def test_shares_corrected_for_the_errors_of_another_judge_say_so(tmp_path):
    run = Path(shutil.copytree(GOLDEN / "essays", tmp_path / "essays"))
    told: list[str] = []
    score(run, note=told.append)
    (line,) = [line for line in told if "refusal@1+2ad9d05c read these replies" in line]
    assert "refusal-corrected" in line and "`genprobe judge RUN`" in line
