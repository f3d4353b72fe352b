"""One table for every task: what a judge finds of a choice is counted and shown as of any reply."""

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest
from oracle import recompute
from sample import Scripted
from test_pairs import BBQ

from genprobe import judges, tasks
from genprobe.analysis.score import score
from genprobe.errors import InputError
from genprobe.linguistics import thoughts
from genprobe.outcomes import columns, table
from genprobe.records import Response
from genprobe.report import build as build_report
from genprobe.runs.run import Run
from genprobe.tasks import Ask

GOLDEN = Path(__file__).parent / "golden"
FREE = ("choice", "refusal", "language", "thought")


def asked(replies, folder, monkeypatch) -> Run:
    """Ask one choice, once in each of its orders, of a model that says `replies` in turn."""
    turn = iter(range(1000))

    def says(request):
        text = replies[next(turn) % len(replies)]
        return Response(request.id, text, "stop", "", None, None)

    engine = Scripted(says)
    engine.identity = dataclasses.replace(engine.identity, engine="openai")
    monkeypatch.setattr(tasks, "open_engine", lambda *_: engine)
    path = folder / "bbq.jsonl"
    path.write_text(json.dumps(BBQ) + "\n", "utf-8")
    return tasks.run("choices", Ask(model="m", data=str(path), out=folder / "run"))


def test_choices_cut_off_in_their_thought_are_told(tmp_path, monkeypatch):
    run = asked(["<think>It may be A."], tmp_path, monkeypatch)
    told = []
    score(run, note=told.append)
    assert any("6 of 6 replies were cut off inside the thought" in line for line in told)


def test_the_response_of_a_choice_holds_no_thought(tmp_path, monkeypatch):
    run = asked(["<think>It may be A.</think>B"], tmp_path, monkeypatch)
    found = table.outcomes(run)
    assert set(found["response"]) == {"B"} and set(found["thought"]) == {"It may be A."}
    assert set(found["thought_state"]) == {"closed"}


def test_every_measure_of_a_reply_counts_choices(tmp_path, monkeypatch):
    """And a plain second computation agrees."""
    replies = ["<think>Hm.", "I cannot help with that.", "Das kann ich leider nicht beantworten."]
    run = asked([*replies, "A", "B", "The answer is A."], tmp_path, monkeypatch)
    with pytest.raises(InputError, match="--judge thought"):
        score(run, metrics=["thought-tested"])
    tasks.judge_run(run, ["thought"])
    by = {
        s.metric: s
        for s in score(
            run, metrics=["thought-cut", "refusal", "wrong-language", "failed"], save=True
        )
    }
    assert (by["thought-cut"].value, by["thought-cut"].n) == (1.0, 1)
    assert by["refusal"].n == 6 and by["refusal"].value in (
        pytest.approx(2 / 6),
        pytest.approx(1 / 6),
    )
    assert by["wrong-language"].value is not None
    assert (by["failed"].value, by["failed"].n) == (0.0, 6)
    found = table.outcomes(run)
    assert found["left_out"].tolist()[3:] == ["", "", ""] and found["left_out"][0] == "unfinished"
    assert recompute(Run.open(run.folder)).differences == []


def test_the_page_shows_the_replies_to_choices(tmp_path, monkeypatch):
    run = asked(["A", "I cannot help with that."], tmp_path, monkeypatch)
    score(run)
    build_report([run.folder], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert 'id="replies"' in page


def test_a_choice_fills_the_declared_columns(tmp_path, monkeypatch):
    run = asked(["A", "B"], tmp_path, monkeypatch)
    tasks.judge_run(run, FREE)
    found, unit = table.outcomes(run), columns.unit_of(run.spec)
    read = {column.name for judge in FREE for column in columns.filled(judge)}
    assert read <= set(found)
    assert {"in_language", "refused"} <= set(found)
    data = {"category", "question_index", "answer_info", "additional_metadata"}
    assert set(found) <= {*unit.known, *data}
    for name, column in unit.known.items():
        if name in found and column.kind == judges.NUMBER:
            assert pd.api.types.is_numeric_dtype(found[name]), name


def test_a_reply_is_parted_once_and_never_when_joined(tmp_path, monkeypatch):
    calls = []
    read = thoughts.read
    monkeypatch.setattr(thoughts, "read", lambda *a: calls.append(a) or read(*a))
    run = asked(
        ["<think>Hm.</think>A", "<think>x</think> <think>y</think> B", "A"], tmp_path, monkeypatch
    )
    assert len(calls) == 4  # the four replies with a thought, for three judges
    found = table.outcomes(run)
    assert len(calls) == 4
    # What the judgments keep is what reading again gives, whoever made them.
    for path in (run.folder / "judgments").glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert sum(judges.PARTED in row.get("fields", ()) for row in rows) == 4
        for row in rows:
            row.get("fields", {}).pop(judges.PARTED, None)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pd.testing.assert_frame_equal(table.outcomes(run), found)
    assert len(calls) == 8


@pytest.mark.parametrize(
    "text", ["", "no thought", "<think>a</think>b", "<think>a", "x\U0001f600<think>"]
)
@pytest.mark.parametrize("reasoning", [None, "apart 😀", ""])
@pytest.mark.parametrize("source", ["", "reasoning_content"])
def test_what_is_kept_of_a_parted_reply_is_the_same(text, reasoning, source):
    from test_table import request

    response = Response("a", text, "stop", "", 1, 1, reasoning=reasoning, reasoning_from=source)
    item = judges.seen("en", "", judges.asked(request("a")), response)
    judgment = judges_of(json.loads(json.dumps(judges.where(item))))
    assert judges.parted_of(request("a"), response, [None, judgment]) == item.parted


def judges_of(fields):
    from genprobe.records import Judgment

    return Judgment("a", "j", "", None, "", "", fields)


def test_an_outcomes_file_with_the_former_column_is_read(tmp_path):
    was = pd.read_csv(GOLDEN / "yesno" / "outcomes.csv", dtype=str)
    assert "status" in was and "left_out" not in was
    was.loc[0, ["status", "answer"]] = "failed", None
    was.loc[1, "answer"] = None  # it came, and was not judged
    found = table.from_rows(was)
    now = table.from_rows(found.drop(columns=["sample"]).assign(sample=was["sample"]))
    for frame in (found, now):
        assert frame["left_out"].tolist()[:3] == ["failed", "", ""]
        assert "status" not in frame and "status_data" not in frame


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_the_outcomes_of_choices_score_as_their_run(tmp_path, monkeypatch, suffix):
    run = asked(["A", "I cannot help with that.", "<think>Hm."], tmp_path, monkeypatch)
    names = ["accuracy", "refusal", "wrong-language", "failed", "unknown-chosen"]
    rows = tmp_path / f"rows.{suffix}"
    told = score(run, metrics=names, by=["lang"], export=rows)
    again = score(rows, metrics=names, by=["lang"])
    for one, other in zip(told, again, strict=True):
        mine = (one.metric, one.value, one.low, one.high, one.n, one.excluded)
        assert mine == (other.metric, other.value, other.low, other.high, other.n, other.excluded)
    pd.testing.assert_series_equal(
        table.from_rows(table.outcomes(run))["refused"], table.outcomes(run)["refused"]
    )
