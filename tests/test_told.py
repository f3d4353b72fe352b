"""Stories and essays from recorded replies to a corrected table: what the commands do together."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections import Counter

import pandas as pd
import pytest
from click.testing import CliRunner

from genprobe import api, files
from genprobe.analysis import compare, score
from genprobe.commands import cli
from genprobe.datasets import statements, templates
from genprobe.engines.control.stories import kinds
from genprobe.errors import InputError, RunError
from genprobe.outcomes import table
from genprobe.resources import packs, registry
from genprobe.review import collect, sample
from genprobe.runs.run import Run
from genprobe.tasks import judge_run
from genprobe.tasks.pipeline.plan import plan as plan_requests

TEMPLATES, SAMPLES = 24, 5


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Stories of known kinds in a file: (the file, template -> its kinds, sample by sample)."""
    rng = random.Random(5)
    pack = packs.load_pack("stories")
    items, _ = templates.load("builtin", ["kk"])
    requests = plan_requests(items[:TEMPLATES], pack, ["published"], 0, SAMPLES)
    rows, planted = [], {}
    for request in requests:
        kind = rng.choices(kinds("kk"), [6, 2, 2, 6, 2, 2, 1])[0]
        planted.setdefault(request.statement, []).append(kind)
        text = " ".join(kind.draw(rng))
        rows.append({"prompt": request.messages[-1]["content"], "response": text})
    path = tmp_path_factory.mktemp("told") / "stories.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, planted


@pytest.fixture(scope="module")
def run(told, tmp_path_factory) -> Run:
    path, _ = told
    folder = tmp_path_factory.mktemp("run") / "stories"
    return api.stories(str(path), engine="replay", limit=TEMPLATES, out=folder)


def test_negrate_is_the_planted_one(told, run):
    """Russian stories and refusals are not scored, short ones are; a majority of what is left."""
    _, planted = told
    votes = {
        name: [k.sentiment for k in ks if k.label in ("negative", "positive", "short")]
        for name, ks in planted.items()
    }
    frame = table.outcomes(run)
    repeats = frame[frame["unusable_why"] == "duplicate"]  # two draws of one text, perhaps
    assert len(repeats) <= 2
    for row in repeats.itertuples():
        votes[row.statement].remove(planted[row.statement][row.sample].sentiment)
    enough = {name: v for name, v in votes.items() if len(v) >= 3}
    negative = [2 * v.count("negative") > len(v) for v in enough.values()]
    scores = {s.metric: s for s in score.score([run.folder], by=["lang"])}
    found = scores["negrate"]
    assert (found.n, found.excluded) == (
        len(enough),
        {"few-stories": TEMPLATES - len(enough)} if len(enough) < TEMPLATES else {},
    )
    assert found.value == pytest.approx(sum(negative) / len(enough))
    assert found.low <= found.value <= found.high
    told_of = Counter(k.label for ks in planted.values() for k in ks)
    left_out = scores["negative-stories"].excluded
    assert left_out["language"] == told_of["russian"] and left_out["refusal"] == told_of["refusal"]
    short = told_of["short"]
    assert (frame["sentences"] == 4).sum() == short
    assert run.verify() == []


def test_domains_are_the_default_cells(run):
    scores = score.score([run.folder])
    items, _ = templates.load("builtin", ["kk"])
    domains = {s.extra["domain"] for s in items[:TEMPLATES]}
    assert {s.by["domain"] for s in scores if s.metric == "negrate"} == domains


@pytest.mark.slow
def test_a_review_corrects_what_the_judge_said(run, tmp_path):
    """Reviewers who call every second negative story positive halve the share."""
    out = tmp_path / "sample.csv"
    sample.export([run.folder], out, size=60, repeats=0.0, seed=1, reader_lang="en")
    with out.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    sentiment = next(at for at, title in enumerate(head) if "negative" in title.lower())
    labels = {j.request: j.label for j in run.judgments("sentiment")}
    key = json.loads((tmp_path / "sample-key.json").read_text())
    every_second = itertools.cycle((True, False))
    for row in rows:
        _, item = key["rows"][row[0]]
        negative = labels[key["items"][item]["request"]] == "negative"
        row[sentiment] = "negative" if negative and next(every_second) else "positive"
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([head, *rows])
    found = collect.collect([out], out=tmp_path / "review.csv")
    assert {p.what.partition(": ")[2] for p in found.problems} == {
        "no answer (language)",
        "no answer (regard)",
    }
    scores = score.score([run.folder], reviewed=tmp_path / "review.csv")
    rate = {s.metric: s for s in scores if s.by.get("rate") == "sentiment negative"}
    assert rate["ppi"].low <= rate["measured"].value / 2 <= rate["ppi"].high
    assert rate["ppi"].value == pytest.approx(rate["measured"].value / 2, abs=0.05)
    assert rate["ppi"].value < rate["measured"].low
    assert "+review-" in rate["ppi"].signature

    # The judge's errors are those in what the rate counts: stories that cannot be scored are out.
    errors = {(s.by["reviewed"], s.metric): s for s in scores if s.by.get("judge") == "sentiment"}
    usable = {j.request for j in run.judgments("story") if j.label == "usable"}
    asked = {name: key["items"][item]["request"] for name, (_, item) in key["rows"].items()}
    read = [(row[sentiment], asked[row[0]]) for row in rows if asked[row[0]] in usable]
    drawn = files.read_rows(tmp_path / "review.csv")
    weight = {row["request"]: float(row["weight"]) for row in drawn}
    assert len(read) < len(rows)
    halved = errors["positive", "says negative"]
    positive = [(labels[name], weight[name]) for said, name in read if said == "positive"]
    wrong = sum(one for label, one in positive if label == "negative")
    assert halved.value == pytest.approx(wrong / sum(one for _, one in positive))
    assert errors["negative", "says negative"].value == 1.0
    assert errors["negative", "says negative"].n + halved.n == len(read)
    assert halved.low < halved.value < halved.high
    accuracy, measured = rate["judge-accuracy"], rate["measured"]
    assert accuracy.n == len(read)
    assert accuracy.excluded == measured.excluded | {"not reviewed": measured.n - len(read)}
    # What was called negative and is not is all that is read wrong.
    assert accuracy.value == pytest.approx(1 - (measured.value - rate["ppi"].value))
    assert accuracy.low < accuracy.value <= accuracy.high

    # A template is corrected as a label: all of its stories that count were read.
    frame = table.outcomes(run).set_index("request")
    counted = [(frame.loc[asked[row[0]], "statement"], row) for row in rows]
    counted = [(name, row) for name, row in counted if frame.loc[asked[row[0]], "usable"]]
    stories = Counter(name for name, _ in counted)
    negative = Counter(name for name, row in counted if row[sentiment] == "negative")
    labels = pd.Series({name: 2 * negative[name] > n for name, n in stories.items() if n >= 3})
    whole = frame[frame["usable"]].groupby("statement")["sentiment"]
    judged = whole.agg(lambda part: 2 * (part == "negative").sum() > len(part))[labels.index]
    negrate = {s.metric: s for s in scores if s.by.get("rate") == "negrate"}
    assert negrate["judge-accuracy"].n == len(labels) < negrate["measured"].n
    assert labels.any() and (judged & ~labels).any()
    (plain,) = score.score([run.folder], metrics=["negrate"], by=["lang"])
    assert (negrate["measured"].value, negrate["measured"].n) == (plain.value, plain.n)
    assert negrate["ppi"].low < negrate["ppi"].value < negrate["measured"].value
    assert negrate["judge-accuracy"].low < negrate["judge-accuracy"].value < 1

    # With single stories of them there is nothing to correct it by, and a line says so.
    first = {name: asked[row[0]] for name, row in counted if name in labels}
    single = [row for row in found.rows if row["request"] in first.values()]
    files.write_rows(tmp_path / "single.csv", single, collect.COLUMNS)
    lines: list[str] = []
    scores = score.score([run.folder], reviewed=tmp_path / "single.csv", note=lines.append)
    negrate = {s.metric: s for s in scores if s.by.get("rate") == "negrate"}
    assert (negrate["ppi"].value, negrate["judge-accuracy"].n) == (None, 0)
    assert negrate["judge-accuracy"].excluded["reviewed in part"] == len(labels)
    (line,) = [line for line in lines if "negrate" in line]
    assert f"here 0 are complete and {len(labels)} only in part" in line
    # Nor can one story correct anything.
    files.write_rows(tmp_path / "one.csv", single[:1], collect.COLUMNS)
    lines.clear()
    score.score([run.folder], reviewed=tmp_path / "one.csv", note=lines.append)
    assert any("not corrected: sentiment negative" in line for line in lines)


def test_essays_from_recorded_replies(tmp_path):
    pack = packs.load_pack("essays")
    items, _ = statements.load("builtin", ["it"])
    requests = plan_requests(items[:3], pack, ["reasons", "remark"], 0, 1)
    replies = {
        "reasons": "Ecco cinque motivi:\n1. Primo.\n2. Secondo.\n3. Terzo.\n4. Quarto.\n5. Quinto.",
        "remark": "Questo è uno stereotipo: non tutte le persone sono così.",
    }
    path = tmp_path / "essays.jsonl"
    path.write_text(
        "".join(
            json.dumps({"prompt": r.messages[-1]["content"], "response": replies[r.probe]}) + "\n"
            for r in requests
        )
    )
    run = api.essays(
        str(path),
        engine="replay",
        langs=["it"],
        limit=3,
        probes=["remark", "reasons"],
        out=tmp_path / "run",
    )
    assert run.spec.probes == ("reasons", "remark")
    probes = {request.id: request.probe for request in run.requests()}
    said = {(probes[one.request], one.label) for one in run.judgments("refusal")}
    assert said == {("reasons", "no"), ("remark", "no")}
    assert run.verify() == []


def test_the_control_model_writes_no_essays_and_tells_stories_in_kazakh_alone(tmp_path):
    with pytest.raises(InputError, match="essays need --model"):
        api.essays(out=tmp_path / "run")
    with pytest.raises(InputError, match="tells no stories in 'ru', only in kk; name a model"):
        api.stories(langs=["ru"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_two_models_are_compared_template_by_template(told, run, tmp_path, monkeypatch):
    from genprobe.analysis.paired import paired
    from genprobe.records import Score

    path, _ = told
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    good = next(k for k in kinds("kk") if k.label == "positive")
    rng = random.Random(7)
    for row in rows[: len(rows) // 2]:
        row["response"] = " ".join(good.draw(rng))
    other = tmp_path / "milder.jsonl"
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    two = api.stories(str(other), engine="replay", limit=TEMPLATES, out=tmp_path / "two")
    command = ["compare", str(run.folder), str(two.folder), "--metric", "negrate", "-f", "json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    scores = {s.metric: s for s in map(Score.from_dict, json.loads(done.stdout)["scores"])}
    (want,) = paired(table.outcomes(run), table.outcomes(two), "negrate")
    assert scores["a"].value == want.a and scores["b"].value == want.b < want.a
    assert scores["difference"].value == pytest.approx(want.b - want.a)
    assert scores["difference"].high < 0
    assert scores["swap-p"].value == want.swap_p < 0.05  # a template counts for one model only
    assert (scores["a"].n, scores["b"].n) == (want.n_a, want.n_b)
    assert scores["a"].by["of"] == "negrate"
    assert "|model:{stories" in scores["a"].signature and "|seed:0|" in scores["a"].signature

    again = api.stories(
        str(other), engine="replay", limit=TEMPLATES, seed=1, out=tmp_path / "three"
    )
    with pytest.raises(RunError, match=r"differ in more than the model \(seed: 0 -> 1\)"):
        compare.compare(run.folder, [again.folder])
    other_version = registry.module("judges", "sentiment").make()
    monkeypatch.setattr(type(other_version), "signature", "sentiment@0")
    judge_run(two, [other_version])
    with pytest.raises(RunError, match="different judges 'sentiment'"):
        compare.compare(run.folder, [two.folder])


def test_the_commands(told, tmp_path):
    path, _ = told
    command = ["stories", "--engine", "replay", "--model", str(path), "--limit", str(TEMPLATES)]
    done = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "run"), "--by", "lang"])
    assert done.exit_code == 0, done.output
    assert "negrate" in done.output and "seeds" in done.output and "templates" in done.output
    for command in ("stories", "essays", "classifiers", "review"):
        assert CliRunner().invoke(cli, [command, "--help"]).exit_code == 0
