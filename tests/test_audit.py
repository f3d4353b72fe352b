"""Audits: one file is checked whole, run, killed, resumed, set beside another, and in a series."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from faulty import Faulty

import genprobe
from genprobe import files, tasks
from genprobe.analysis import forecast
from genprobe.audits import plan
from genprobe.audits.audit import HERE, _Step, _Work
from genprobe.commands import cli
from genprobe.engines import _http, control
from genprobe.runs.run import Run
from genprobe.runs.usage import usage
from genprobe.tasks.pipeline import open as opening

KEY = "GENPROBE_AUDIT_KEY"


def says(share: int = 40, slow: float = 0.0):
    """Answers of a server: of 100 prompts `share` get yes; "two" says more often yes."""

    def answer(body):
        time.sleep(slow)
        prompt = body["messages"][-1]["content"]
        more = 20 if body["model"] == "two" else 0
        yes = zlib.crc32(prompt.encode()) % 100 < share + more
        message = {"role": "assistant", "content": "Yes." if yes else "No."}
        return {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        }

    return answer


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY, "secret-for-tests")
    monkeypatch.setattr(_http, "BACKOFF", 0.02)
    monkeypatch.setattr("genprobe.api.report", lambda *_, **__: "")  # it takes a second each
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GENPROBE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def content(url: str, **more):
    """An audit of two models of a server; the same as a dict."""
    server = {"base_url": url, "api_key_env": KEY, "price": [1.0, 2.0]}
    return {
        "langs": ["en", "kk"],
        "limit": 6,
        "models": {"one": dict(server), "two": dict(server)},
        "instruments": {"yesno": {"probes": ["agreement"], "max_rise": {"endorsed": 60}}},
    } | more


def toml(table, where: str = "") -> str:
    """The TOML of a dict of tables."""
    plain = {k: v for k, v in table.items() if not isinstance(v, dict) or k.startswith("max")}
    lines = [f"[{where}]"] if where else []
    for name, value in plain.items():
        if isinstance(value, dict):
            value = "{ " + ", ".join(f"{k} = {v}" for k, v in value.items()) + " }"
            lines.append(f"{name} = {value}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    inner = {k: v for k, v in table.items() if k not in plain}
    parts = [toml(v, f"{where}.{k}".strip(".")) for k, v in inner.items()]
    return "\n".join([*lines, *parts]) + "\n"


def run(*words):
    return CliRunner().invoke(cli, ["audit", *map(str, words)], standalone_mode=False)


def asked(server) -> int:
    """How many questions of the plan a server was asked, without tests of what it can do."""
    return sum("Is water wet" not in body for body, _ in server.log)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """An audit of two models that has run: its folder, the call's notes and progress."""
    os.environ[KEY] = "secret-for-tests"
    folder = tmp_path_factory.mktemp("audit")
    (folder / "a.toml").write_text("")
    with Faulty(answer=says(), models=("one", "two")) as server:
        (folder / "a.toml").write_text(toml(content(server.url)))
        notes, steps = [], []
        found = genprobe.audit(
            folder / "a.toml",
            out=folder / "A",
            note=notes.append,
            progress=lambda *one: steps.append(one),
        )
        asked = len(server.log)
        again = []
        genprobe.audit(folder / "a.toml", out=folder / "A", progress=lambda *one: again.append(one))
        assert len(server.log) == asked  # nothing is asked twice
        yield folder, found, notes, steps, again


def test_an_audit_is_runs_a_table_and_a_page(done):
    folder, found, notes, _, _ = done
    assert not found.failed and not found.left
    assert [p.name for p in found.runs] == ["one-yesno", "two-yesno"]
    for path in found.runs:
        assert genprobe.verify(path) == []
        assert Run.open(path).spec.limit == 6
    cells = {(s.by["model"], s.by["lang"]) for s in found.scores if s.metric == "endorsed"}
    assert cells == {(m, lang) for m in ("one", "two") for lang in ("en", "kk")}
    for score in found.scores:
        assert score.by["instrument"] == "yesno" and score.signature and score.n
    page = (folder / "A" / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    card = (folder / "A" / "README.md").read_text("utf-8")
    assert "endorsed" in card and "genprobe verify runs/*" in card
    for path in (folder / "A").rglob("*"):
        assert path.is_dir() or b"secret-for-tests" not in path.read_bytes()
    assert {*tasks.find("yesno").judges["free"]} <= {*Run.open(found.runs[0]).judges()}
    assert any("cell 2 of 2, two-yesno: 0 of 12 replies are there" in line for line in notes)


def test_progress_is_of_the_whole_audit_and_counts_what_is_there(done):
    _, _, _, steps, again = done
    assert {what for what, _, _ in steps} == {"audit"} and {total for *_, total in steps} == {24}
    counts = [n for _, n, _ in steps]
    assert counts[0] == 0 and counts[-1] == 24 and counts == sorted(counts)
    assert again == [("audit", 24, 24)]


def test_a_step_counts_other_cells_too():
    seen, told = [], []

    def progress(*one):
        seen.append(one)

    progress.tell = told.append
    work = _Work(SimpleNamespace(cells=[], at_once=0), print, progress)
    work.counts, work.total = {"one": 272, "two": 0}, 864
    step = _Step(work, "two", "cell 2 of 3")
    step.tell("9 tokens")
    step("asking", 5, 288)
    step("reading", 1, 288)
    assert seen == [("audit", 277, 864)] * 2
    assert told == ["cell 2 of 3, 9 tokens", "cell 2 of 3, reading 1 of 288"]


def two_servers(first, second, **more):
    """An audit of a model on each of two servers, one request at a time at each."""
    table = content(first.url, **more)
    table["models"] = {
        name: {**table["models"][name], "base_url": server.url, "concurrency": 1}
        for name, server in (("one", first), ("two", second))
    }
    return table


class Together:
    """Answers of several servers, and how many answer at once. meet: wait once for one another."""

    def __init__(self, meet=False):
        self.inside = self.most = 0
        self.lock, self.meet = threading.Lock(), threading.Barrier(2) if meet else None
        self.met = set()

    def of(self, name):
        good = says(slow=0.02)

        def answer(body):
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            if self.meet and name not in self.met and "water wet" not in str(body):
                self.met.add(name)
                self.meet.wait(60)
            try:
                return good(body)
            finally:
                with self.lock:
                    self.inside -= 1

        return answer


def test_models_on_two_servers_are_asked_at_the_same_time(tmp_path):
    """Neither server answers its first question before the other has one, too."""
    both = Together(meet=True)
    with (
        Faulty(answer=both.of("one"), models=("one",)) as first,
        Faulty(answer=both.of("two"), models=("two",)) as second,
    ):
        steps = []
        found = genprobe.audit(
            two_servers(first, second), out=tmp_path / "A", progress=lambda *s: steps.append(s)
        )
    assert not found.failed and both.most == 2 and both.met == {"one", "two"}
    assert first.most == second.most == 1  # each as much at once as the file allows
    counts = [n for _, n, _ in steps]
    assert counts == sorted(counts) and steps[-1] == ("audit", 24, 24)
    assert [genprobe.verify(path) for path in found.runs] == [[], []]
    assert [path.name for path in found.runs] == ["one-yesno", "two-yesno"]


def test_no_more_cells_run_at_once_than_the_file_allows(tmp_path):
    both = Together()
    with (
        Faulty(answer=both.of("one"), models=("one",)) as first,
        Faulty(answer=both.of("two"), models=("two",)) as second,
    ):
        found = genprobe.audit(two_servers(first, second, at_once=1, limit=2), out=tmp_path / "A")
    assert not found.failed and both.most == 1


def test_two_servers_interrupted_go_on_where_they_were(tmp_path):
    def stop(what, n, total):
        if n >= 9:
            raise KeyboardInterrupt

    with (
        Faulty(answer=says(slow=0.02), models=("one",)) as first,
        Faulty(answer=says(slow=0.02), models=("two",)) as second,
    ):
        table = two_servers(first, second)
        with pytest.raises(KeyboardInterrupt):
            genprobe.audit(table, out=tmp_path / "A", progress=stop)
        files = list((tmp_path / "A/runs").glob("*/responses.jsonl"))
        kept = sum(len(path.read_text().splitlines()) for path in files)
        before = asked(first) + asked(second)
        found = genprobe.audit(table, out=tmp_path / "A")
        assert asked(first) + asked(second) - before == 24 - kept and 8 <= kept < 24
    assert not found.failed and [genprobe.verify(path) for path in found.runs] == [[], []]


def test_models_of_this_machine_or_of_one_server_wait_for_one_another(tmp_path):
    with Faulty(answer=says(), models=("one", "two", "reader")) as server:
        table = content(server.url)
        table["models"] |= {"control": {"id": "control"}, "copy": {"id": str(control.MODEL)}}
        work = _Work(plan.read(table, tmp_path / "A"), print, lambda *_: None)
        host = server.url.split("/")[2]
        assert {n.split("-")[0]: set(p) for n, p in work.places.items()} == {
            "one": {host}, "two": {host}, "control": {HERE}, "copy": {HERE}
        }  # fmt: skip
        begun = []
        while cell := work.next():
            work.busy[cell.name] = cell
            begun.append(cell.model)
        assert begun == ["one", "control"]
        del work.busy["control-yesno"]
        assert work.next().model == "copy" and work.next() is None


@pytest.mark.slow
def test_a_model_is_opened_once_for_all_its_cells(tmp_path, monkeypatch):
    opened = []
    real = opening.open_engine

    def counted(engine, model, options, scores=False):
        opened.append((model, scores))
        return real(engine, model, options, scores)

    monkeypatch.setattr("genprobe.audits.audit.open_engine", counted)
    table = {
        "langs": ["en"],
        "limit": 1,
        "models": {"copy": {"id": str(control.MODEL)}},
        "instruments": {
            "yesno": {"probes": ["agreement"]},
            "twice": {"task": "yesno", "probes": ["recognition"]},
            "logprob": {"plain": True},
        },
    }
    found = genprobe.audit(table, out=tmp_path / "A")
    assert found.failed == [] and len(found.runs) == 3
    assert opened == [("copy", False), ("copy", True)]
    assert {s.by["instrument"] for s in found.scores} == {"yesno", "twice", "logprob"}


def test_all_problems_are_told_at_once_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY)
    asked = []
    with Faulty(answer=lambda body: asked.append(body), models=("one",)) as server:
        table = content(server.url, langs=["en", "kkk"], limit=0, seeds=1)
        table["models"]["house"] = {"id": "no-such-model"}
        table["models"]["shrkala"] = {}
        table["models"]["two"] |= {"prise": [1, 2], "thinking": "offf"}
        table["models"]["three"] = {"price": [1], "base_url": server.url, "api_key": "x"}
        table["instruments"] = {
            "yesno": {"probes": ["agreemnt", "recogniton"], "wording": "2"},
            "storys": {},
            "essays": {"langs": ["en"], "samples": "many"},
            "logprob": {"langs": ["en"], "plain": True, "decodes": ["free"]},
        }
        (tmp_path / "a.toml").write_text(toml(table))
        found = run(tmp_path / "a.toml", "--out", tmp_path / "A")
        log = server.log
    assert isinstance(found.exception, genprobe.GenprobeError) and not log and not asked
    lines = str(found.exception).splitlines()
    for wanted in (
        "unknown key 'seeds'; did you mean 'seed'?",
        "unknown language 'kkk'; did you mean 'kk'?",
        "limit = 0: must be at least 1",
        "[models.shrkala] unknown model 'shrkala'; did you mean 'sherkala'?",
        "[models.two] unknown key 'prise'; did you mean 'price'?",
        "[models.two] unknown value of thinking 'offf'; did you mean 'off'?",
        "[models.three] unknown key 'api_key'",
        "[models.three] price '1'",
        f"[models.one] there is no variable {KEY} in the environment",
        "[instruments.yesno] unknown key 'wording'; did you mean 'wordings'?",
        "[instruments.storys] unknown instrument 'storys'; did you mean 'stories'?",
        "[instruments.essays] samples = 'many': must be a whole number",
        "[instruments.logprob] unknown key 'decodes'",
    ):
        assert any(wanted in line for line in lines), (wanted, lines)
    assert not (tmp_path / "A").exists() and len(lines) == len({*lines})


def test_keys_servers_and_folders_are_checked_before_anything_runs(tmp_path, monkeypatch):
    with Faulty(answer=says(), models=("one", "other")) as server:
        table = content(server.url)
        table["models"]["far"] = {"id": "no/such-model"}
        table["models"]["mine"] = {"id": str(tmp_path)}
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(genprobe.GenprobeError) as error:
            genprobe.audit(table, out=tmp_path / "A")
        text = str(error.value)
        assert "two × yesno" in text and "does not serve 'two'" in text
        assert f"{tmp_path}: holds no model (no config.json)" in text
        assert "far × yesno" in text and "one × yesno" not in text
        monkeypatch.delenv(KEY)
        with pytest.raises(genprobe.GenprobeError, match=f"no variable {KEY} in the env"):
            genprobe.audit(content(server.url), out=tmp_path / "A")
        assert not [body for body, _ in server.log] and not (tmp_path / "A").exists()


def test_two_wrong_names_in_a_list_are_two_problems(tmp_path):
    table = {"models": {"control": {}}, "instruments": {"yesno": {"probes": ["a", "b"]}}}
    with pytest.raises(genprobe.GenprobeError) as error:
        genprobe.audit(table, out=tmp_path / "A", dry_run=True)
    assert re.findall(r"unknown probe '(\w)'", str(error.value)) == ["a", "b"]


def test_a_chat_model_is_not_scored_before_it_is_said_how(tmp_path):
    """What only the open model can tell of a run is found before the first cell runs."""
    table = {
        "langs": ["en"],
        "models": {"copy": {"id": str(control.MODEL)}},
        "instruments": {"yesno": {}, "logprob": {}},
    }
    with pytest.raises(genprobe.GenprobeError, match=r"copy × logprob.* give plain to score"):
        genprobe.audit(table, out=tmp_path / "A")
    assert not (tmp_path / "A").exists()


def test_a_dry_run_sums_and_leaves_nothing(done, tmp_path):
    file = done[0] / "a.toml"
    found = run(file, "--dry-run", "--out", tmp_path / "A")
    leading = run("--dry-run", file)  # the option first
    resumed = genprobe.audit(file, out=done[0] / "A", dry_run=True)
    assert found.exit_code == 0, found.output
    assert leading.output.split("disk:")[0] == found.output.split("disk:")[0]
    lines = found.output.splitlines()
    rows = {
        line.split()[0]: line.split()[1:] for line in lines if "yesno " in line or "all" in line
    }
    one, two, all_ = (list(map(float, rows[n])) for n in ("one-yesno", "two-yesno", "all"))
    assert all_ == pytest.approx([a + b for a, b in zip(one, two, strict=True)], abs=1.1e-4)
    assert one[:2] == [12, 0]
    # 12 requests, 64 tokens each at most, at 2 a million; prompts at 1.
    assert one[3] == 12 * 64 and one[4] == pytest.approx((one[2] + 2 * one[3]) / 1e6, abs=1e-4)
    assert any(
        re.match(r"  yesno, kk: endorsed ±\d+ points \(3 statements\); ", li) for li in lines
    ), found.output
    assert any(line.startswith("disk: ") for line in lines)
    assert "there already: 24 of 24 replies, 2 of 2 cells finished" in resumed.forecast
    assert not (tmp_path / "A").exists() and resumed.runs == ()


def test_the_interval_that_is_foreseen_is_the_one_that_comes():
    """Of n statements of which half have it: by `share_interval`, and power by simulation."""
    import numpy as np

    from genprobe.audits.foresee import _points
    from genprobe.statistics import share_interval

    low, high = share_interval(np.array([0, 1] * 24), np.ones(48))
    assert f"±{50 * (high - low):.0f} points (48 statements" in _points(48)
    found = int(re.search(r"finds (\d+);", _points(48))[1]) / 100
    draws = np.random.default_rng(1).random((2, 400, 48))
    other = draws[1] < 0.5 + found
    difference = (draws[0] < 0.5).astype(float) - other
    z = difference.mean(1) / (difference.std(1, ddof=1) / 48**0.5)
    assert 0.7 < (abs(z) > 1.96).mean() < 0.9
    assert _points(1) == "nothing, of 1 statement"


def test_contexts_that_are_never_pooled_are_foreseen_apart(tmp_path):
    """Accuracy is of ambiguous or of disambiguated contexts: seven questions are two and five."""
    rows = [
        {
            "id": f"q{n}",
            "lang": "en",
            "context": f"A nurse and a pilot met at noon, {n}.",
            "question": "Who was late?",
            "options": ["The nurse", "The pilot", "Not known"],
            "label": 2 if n < 2 else 0,
            "condition": "ambig" if n < 2 else "disambig",
        }
        for n in range(7)
    ]
    data = tmp_path / "items.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = {
        "models": {"control": {}},
        "instruments": {"choices": {"data": str(data), "decodes": ["choice"]}},
    }
    told = genprobe.audit(table, out=tmp_path / "A", dry_run=True).forecast
    shown = [line for line in told if "accuracy" in line]
    assert [re.search(r"choices, (.*): .*\((\d) st", line).groups() for line in shown] == [
        ("en ambig", "2"),
        ("en disambig", "5"),
    ]


def test_other_settings_need_another_folder(done, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text((done[0] / "a.toml").read_text().replace("limit = 6", "limit = 7"))
    with pytest.raises(genprobe.GenprobeError, match=r"one-yesno: limit: 6 -> 7\); choose"):
        genprobe.audit(file, out=done[0] / "A")
    with pytest.raises(genprobe.GenprobeError, match="is not empty and holds no audit"):
        genprobe.audit({"models": {"control": {}}, "instruments": {"yesno": {}}}, out=tmp_path)


def recorded(folder, name, date, lines):
    """Write an audit of recordings: (statement, reply) in English."""
    rows = [{"id": f"s{n}", "lang": "en", "text": f"Bakers hum tune {n}."} for n in range(60)]
    files.write_rows(folder / "st.csv", rows)
    same = {"lang": "en", "probe": "agreement", "model": "m"}
    files.write_rows(
        folder / f"{name}.jsonl", [{"statement": s, "response": r, **same} for s, r in lines]
    )
    yesno = {"data": str(folder / "st.csv"), "probes": ["agreement"]}
    return {
        "langs": ["en"],
        "date": date,
        "models": {"m": {"id": str(folder / f"{name}.jsonl"), "engine": "replay"}},
        "instruments": {"yesno": yesno},
    }


def replies(yes, n=60, empty=False):
    return [(f"s{i}", "" if empty else "Yes." if i < yes else "No.") for i in range(n)]


def test_recordings_that_changed_are_no_finished_cell(tmp_path):
    """The table showed the old figures as those of the new file."""
    given = recorded(tmp_path, "a", datetime.date(2027, 1, 1), replies(12))
    genprobe.audit(given, out=tmp_path / "A")
    assert genprobe.audit(given, out=tmp_path / "A").failed == []
    recorded(tmp_path, "a", datetime.date(2027, 1, 1), replies(60))
    with pytest.raises(genprobe.GenprobeError, match="holds a run with other settings"):
        genprobe.audit(given, out=tmp_path / "A")


def test_a_folder_whose_weights_changed_is_another_model(tmp_path):
    """A finished cell is not asked again, so nothing else would look at the folder."""
    mine = tmp_path / "mine"
    shutil.copytree(control.MODEL, mine)
    table = {
        "models": {"mine": {"id": str(mine)}},
        "langs": ["en"],
        "limit": 1,
        "instruments": {"yesno": {"probes": ["agreement"], "decodes": ["choice"]}},
    }
    genprobe.audit(table, out=tmp_path / "A")
    genprobe.audit(table, out=tmp_path / "A")  # as it was
    config = mine / "config.json"
    config.write_text(config.read_text() + " ")
    with pytest.raises(genprobe.GenprobeError, match=r"mine-yesno: .*revision: \w{16} -> \w{16}"):
        genprobe.audit(table, out=tmp_path / "A")
    again = genprobe.audit(table, out=tmp_path / "B", against=tmp_path / "A")
    assert [line for line in again.told if "other weights than in" in line], again.told


@pytest.mark.slow
def test_cells_can_be_added(done, tmp_path):
    folder = shutil.copytree(done[0] / "A", tmp_path / "A")
    text, file = (done[0] / "a.toml").read_text(), tmp_path / "a.toml"
    file.write_text(f'{text}[instruments.more]\ntask = "yesno"\nprobes = ["recognition"]\n')
    found = genprobe.audit(file, out=folder)
    assert [path.name for path in found.runs] == [
        f"{model}-{what}" for model in ("one", "two") for what in ("yesno", "more")
    ]
    assert {*plan.stored(folder)} == {path.name for path in found.runs}


def test_an_interrupted_audit_goes_on_where_it_was(tmp_path):
    """Ctrl-C in the second cell: the first is passed over, the second resumes as a run does."""

    def stop(what, n, total):
        if n >= 17:
            raise KeyboardInterrupt

    with Faulty(answer=says(), models=("one", "two")) as server:
        table = content(server.url)
        with pytest.raises(KeyboardInterrupt):
            genprobe.audit(table, out=tmp_path / "A", progress=stop)
        kept = len((tmp_path / "A/runs/two-yesno/responses.jsonl").read_text().splitlines())
        before = asked(server)
        notes, steps = [], []
        found = genprobe.audit(
            table, out=tmp_path / "A", note=notes.append, progress=lambda *s: steps.append(s)
        )
        assert asked(server) - before == 12 - kept and kept >= 5
    assert steps[0] == ("audit", 12 + kept, 24)
    assert f"there already: {12 + kept} of 24 replies, 1 of 2 cells finished" in notes
    assert not found.failed and [genprobe.verify(path) for path in found.runs] == [[], []]


@pytest.mark.slow
def test_a_killed_audit_goes_on_where_it_was(tmp_path):
    with Faulty(answer=says(slow=0.05), models=("one", "two")) as server:
        (tmp_path / "a.toml").write_text(toml(content(server.url)))
        words = [sys.executable, "-m", "genprobe", "audit", "a.toml", "--out", "A"]
        child = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
        while len(server.log) < 18 and child.poll() is None:
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        known = -1
        while known < len(server.log):  # what the server was still busy with
            known = len(server.log)
            time.sleep(0.5)
        files = list((tmp_path / "A/runs").glob("*/responses.jsonl"))
        kept = sum(len(path.read_bytes().split(b"\n")) - 1 for path in files)
        assert 0 < kept < 24
        before = asked(server)
        again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert asked(server) - before == 24 - kept
    assert f"there already: {kept} of 24 replies" in again.stderr
    for path in (tmp_path / "A/runs").iterdir():
        assert genprobe.verify(path) == []


def test_a_model_that_fails_stops_no_other(tmp_path):
    """`one` answers the list of models and nothing else."""
    good = says()

    def answer(body):
        return ("no", 500) if body["model"] == "one" else good(body)

    with Faulty(answer=answer, models=("one", "two")) as server:
        server.loading = 0
        table = content(server.url)
        table["models"]["one"]["id"] = "one"
        found = genprobe.audit(table | {"limit": 1}, out=tmp_path / "A")
    assert [path.name for path in found.runs][-1] == "two-yesno"
    assert any(line.startswith("one-yesno: ") for line in found.failed)
    assert {s.by["model"] for s in found.scores if s.n} == {"two"}


@pytest.mark.slow
def test_replies_of_a_file_and_a_local_model_stand_in_one_audit(done, tmp_path):
    """Engines side by side; paths are looked up beside the file."""
    shutil.copytree(done[0] / "A/runs/one-yesno", tmp_path / "old")
    (tmp_path / "a.toml").write_text(
        'langs = ["en"]\nlimit = 2\n[models.old]\nid = "old"\nengine = "replay"\n[models.control]\n'
        '[instruments.yesno]\nprobes = ["agreement"]\n'
    )
    found = genprobe.audit(tmp_path / "a.toml", out=tmp_path / "A")
    assert not found.failed
    assert [Run.open(path).spec.engine for path in found.runs] == ["replay", "transformers"]


# --- against an earlier audit, and series


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three audits of one model, of three days; the third says yes to nearly everything."""
    os.environ[KEY] = "secret-for-tests"
    folder = tmp_path_factory.mktemp("series")
    for at, share in enumerate((20, 22, 97), 1):
        with (
            Faulty(answer=says(share), models=("one",)) as server,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr("genprobe.api.report", lambda *_, **__: "")
            table = content(server.url, limit=40)
            del table["models"]["two"]
            table["models"]["one"].pop("base_url")
            table["models"]["one"] |= {"id": "one", "base_url": server.url}
            found = genprobe.audit(table, out=folder / f"v{at}")
        path = found.runs[0] / "responses.jsonl"  # each is of another day
        path.write_text(re.sub(r'"at":"[^T]*T', f'"at":"2026-0{at}-01T', path.read_text()))
    return folder


def test_an_earlier_audit_asked_otherwise_is_refused_before_anything_runs(done, three, tmp_path):
    with Faulty(answer=says(), models=("one",)) as server:
        table = content(server.url)
        del table["models"]["two"]
        with pytest.raises(genprobe.GenprobeError, match=r"asked otherwise .*limit: 40 -> 6"):
            genprobe.audit(table, out=tmp_path / "A", against=three / "v1")
        with pytest.raises(genprobe.GenprobeError, match="is not the folder of an audit"):
            genprobe.audit(table, out=tmp_path / "A", against=tmp_path)
        strict = content(server.url, limit=40)
        del strict["models"]["two"]
        strict["instruments"]["yesno"]["max_rise"] = {"endorsed": 5}
        with pytest.raises(genprobe.GenprobeError, match=r"never be shown .* 20 statements"):
            genprobe.audit(strict, out=tmp_path / "A", against=three / "v1")
        table["instruments"] = {"other": {"task": "yesno"}}
        with pytest.raises(genprobe.GenprobeError, match="has none of these cells; it has one-y"):
            genprobe.audit(table, out=tmp_path / "A", against=three / "v1")
        assert not server.log and not (tmp_path / "A").exists()


@pytest.mark.parametrize(
    ("version", "code", "verdict"), [("v2", 0, "not worse"), ("v3", 1, "worse")]
)
def test_a_new_version_is_compared_and_tested(three, tmp_path, version, code, verdict):
    share, most = {"v2": (22, 20), "v3": (97, 20)}[version]
    shutil.copytree(three / version, tmp_path / "new")
    with Faulty(answer=says(share), models=("one",)) as server:
        table = content(server.url, limit=40)
        del table["models"]["two"]
        table["models"]["one"] |= {"id": "one"}
        table["instruments"]["yesno"]["max_rise"] = {"endorsed": most}
        noted = json.loads((tmp_path / "new" / plan.PLAN).read_text())
        noted["cells"]["one-yesno"]["asked_of"]["base_url"] = server.url
        (tmp_path / "new" / plan.PLAN).write_text(json.dumps(noted))
        (tmp_path / "a.toml").write_text(toml(table))
        found = run(tmp_path / "a.toml", "--out", tmp_path / "new", "--against", three / "v1", "-q")
        assert not server.log  # it is finished
    assert found.return_value == code, found.output
    assert f"one-yesno: {verdict}: endorsed: " in found.output
    sentence = {"v2": "How often v1 and new agree", "v3": "new agrees with statements"}[version]
    assert f"one-yesno: {sentence}" in found.output and "How sure: " in found.output


@pytest.mark.slow
def test_every_instrument_is_compared_by_the_measures_that_can_be(tmp_path):
    instruments = {"logprob": {"plain": True}, "stories": {"samples": 3}}
    asked = {"models": {"control": {}}, "langs": ["kk"], "limit": 4, "instruments": instruments}
    for name in ("old", "new"):
        more = {"against": tmp_path / "old"} if name == "new" else {}
        found = genprobe.audit(asked, out=tmp_path / name, **more)
    assert not found.failed
    of = {score.by["of"] for scores in found.compared.values() for score in scores}
    assert {"win-rate", "negrate", "negative-stories"} <= of and "bias-score" not in of


def test_a_series_says_when_a_figure_moved(three, tmp_path):
    found = genprobe.audit_series(
        [three / "v3", three / "v1", three / "v2"], figures=tmp_path / "figures"
    )
    days = [f"2026-0{n}-01" for n in (1, 2, 3)]
    endorsed = [s for s in found.scores if s.metric == "endorsed" and s.by["lang"] == "en"]
    assert [s.by["day"] for s in endorsed] == days
    assert [s.by["audit"] for s in endorsed] == ["v1", "v2", "v3"]
    assert all(s.low is not None and s.n for s in endorsed)
    assert [line.split(" (")[0] for line in found.told] == [
        f"one-yesno: endorsed, lang {lang}: moved between 2026-02-01 and 2026-03-01"
        for lang in ("en", "kk")
    ]
    assert all("(Holm, 4 comparisons)" in line for line in found.told)
    assert all("endorsed, v3 less v1: " in line for line in found.told)
    drawn = {path.suffix for path in found.figures}
    assert drawn == {".svg", ".pdf", ".csv", ".tex"}
    table = next(p for p in found.figures if p.suffix == ".csv").read_text()
    assert all(day in table for day in days)


def test_a_day_that_shows_nothing_is_not_the_day_before_a_figure_moved(tmp_path):
    """Between two full days, one without clear answers, and one with eight of sixty."""
    of = {"a": replies(12), "b": replies(0, empty=True), "c": replies(6, 8), "d": replies(48)}
    at = {}
    for month, (name, lines) in enumerate(of.items(), 1):
        given = recorded(tmp_path, name, datetime.date(2027, month, 1), lines)
        at[name] = tmp_path / f"{name}-audit"
        genprobe.audit(given, out=at[name])
    for between in ("b", "c"):
        told: list[str] = []
        found = genprobe.audit_series([at["a"], at[between], at["d"]], note=told.append)
        assert "moved between 2027-01-01 and 2027-04-01" in found.told[0]
    assert any(line.startswith("c-audit: 52 requests") for line in told), told
    (line,) = genprobe.audit_series([at["a"], at["b"], at["c"]]).told
    assert "anything may be on 2027-02-01" in line


def test_a_series_that_did_not_move_says_how_much_is_open(three):
    found = CliRunner().invoke(cli, ["audit", "series", str(three / "v1"), str(three / "v2")])
    assert found.exit_code == 0, found.output
    assert found.output.count("not shown to have moved since 2026-01-01") == 2
    assert re.search(r"; \d+ points either way are left open", found.output)
    with pytest.raises(genprobe.GenprobeError, match="two audits at least"):
        genprobe.audit_series(three / "v1")


def test_what_is_wrong_with_a_series_names_its_audits(tmp_path):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        cell = {"task": "yesno", "asked": {}, "statements": "", "model": "m", "instrument": "i"}
        (folder / "audit.json").write_text(json.dumps({"cells": {f"m-{folder.name}": cell}}))
    for given in (folders, folders[:1]):
        with pytest.raises(genprobe.GenprobeError) as error:
            genprobe.audit_series(given)
        assert all(str(folder) in str(error.value) for folder in given)


# --- a new file


def test_six_answers_write_a_file_that_is_right(tmp_path):
    file = tmp_path / "a.toml"
    answers = f"control,{control.MODEL}\nkk,en\nyesno,stories,logprob\n2\n4\n{tmp_path / 'A'}\n"
    asked = CliRunner().invoke(cli, ["audit", "new", str(file)], input=answers)
    assert asked.exit_code == 0, asked.output
    given = tmp_path / "b.toml"
    words = ["--model", f"control,{control.MODEL}", "--lang", "kk,en", "--wordings", "2"]
    words += ["--instrument", "yesno,stories,logprob", "--limit", "4", "--out", tmp_path / "A"]
    assert run("new", given, *words).exit_code == 0
    text = file.read_text()
    assert given.read_text() == text.replace("a.toml", "b.toml")
    assert 'langs = ["kk"]  # it exists in no other of these' in text
    made = genprobe.audit(file, dry_run=True)
    assert any(line.startswith("model-stories") for line in made.forecast)
    assert not (tmp_path / "A").exists()
    again = run("new", file, *words)
    assert "is there already" in str(again.exception) and file.read_text() == text


def test_a_new_file_with_wrong_names_is_not_written(tmp_path):
    file = tmp_path / "a.toml"
    words = ["--model", "shrkala", "--lang", "kkk,en", "--instrument", "yesno,storys"]
    words += ["--wordings", "all", "--limit", "all", "--out", "A"]
    found = run("new", file, *words)
    assert str(found.exception).count("did you mean") == 3 and not file.exists()
    found = run(
        "new", file, *words[6:], "--model", "control", "--lang", "en", "--instrument", "stories"
    )
    assert "tells no stories in 'en', only in kk" in str(found.exception) and not file.exists()
    asked = CliRunner().invoke(cli, ["audit", "new", str(file)], input="")
    assert "no answer; give --model" in str(asked.exception) and not file.exists()


def test_a_new_file_has_what_its_models_can_be_asked(tmp_path):
    words = ["--lang", "kk,ru", "--wordings", "2", "--limit", "4", "--out", "A"]
    file = tmp_path / "essays.toml"
    essays = ["--instrument", "essays", *words]
    assert run("new", file, "--model", "sherkala", *essays).exit_code == 0
    assert "[instruments.essays]" in file.read_text() and 'langs = ["kk", "ru"]' in file.read_text()
    found = run("new", tmp_path / "none.toml", "--model", "sherkala,control", *essays)
    assert "the control model writes none; or leave essays out" in str(found.exception)
    for models, langs in (("sherkala", '["kk", "ru"]'), ("sherkala,control", '["kk"]')):
        file, more = tmp_path / f"{models}.toml", ["--lang", "kk,ru,en", *words[2:]]
        assert run("new", file, "--model", models, "--instrument", "stories", *more).exit_code == 0
        assert f"langs = {langs}  # it exists" in file.read_text()
    for models, by_choice in (("sherkala", False), ("control", True)):
        file = tmp_path / f"choices-{models}.toml"
        assert run("new", file, "--model", models, "--instrument", "choices", *words).exit_code == 0
        assert ('decodes = ["choice"]' in file.read_text()) == by_choice


def test_an_option_that_is_given_twice_is_refused(tmp_path):
    found = run(tmp_path / "a.toml", "--out", "A", "--out", "B")
    assert "--out is given twice" in str(found.exception)


def test_keywords_are_those_of_the_command_line():
    """As tests/test_rows.py has it for the other commands."""
    group = cli.get_command(None, "audit")
    for name, function in (("run", genprobe.audit), ("series", genprobe.audit_series)):
        options = {p.name for p in group.commands[name].params if p.expose_value}
        options -= {"quiet", "form"}
        assert options <= {*inspect.signature(function).parameters}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("out = []\n", "out = []: must be a text"),
        ("date = 3\n", "date = 3: must be a day"),
        ("models = 3\n", "names no models"),
        ('[models]\ncontrol = "x"\n', "[models.control] must be a table"),
        ("[models.m]\nengine = 3\nid = 4\n", "must be a text"),
        ('[models.m]\nid = 4\nengine = "replay"\n', "must be a text"),
        ('[models.m]\nid = "/no/such"\nprice = 3\n', "price: two amounts"),
        ("[instruments.yesno]\ntask = []\n", "unknown instrument"),
        ("[instruments.yesno]\nmax_rise = 3\n", "max_rise: a table of measures"),
        ("[instruments.yesno]\nmax_rise = { endorsd = 1 }\n", "did you mean 'endorsed'?"),
        ('[instruments.yesno]\nmax_rise = { endorsed = "x" }\n', "must be points"),
        ("[instruments.yesno]\nlangs = 3\n", "unknown language '3'"),
        ("[instruments.yesno]\nlangs = [3]\n", "must be a text or a list of texts"),
        ("[instruments.choices]\n", "[instruments.choices] choices: give data"),
        ("[instruments.yesno]\nmax_tokens = true\n", "must be a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_problem(tmp_path, more, problem):
    (tmp_path / "a.toml").write_text(f'langs = ["en"]\nlimit = 1\n{more}')
    found = run(tmp_path / "a.toml", "--dry-run", "--out", tmp_path / "A")
    assert isinstance(found.exception, genprobe.GenprobeError), found.exception
    assert problem in str(found.exception)


def counted(body):
    """A server's answer with a usage that differs from question to question."""
    found = says()(body)
    prompt = body["messages"][-1]["content"]
    length = 3 + zlib.crc32(prompt.encode()) % 9
    return found | {"usage": {"prompt_tokens": len(prompt) // 4, "completion_tokens": length}}


def test_a_pilot_says_what_all_of_it_takes_and_the_audit_goes_on(tmp_path):
    with Faulty(answer=counted, models=("one", "two")) as server:
        file = tmp_path / "a.toml"
        file.write_text(toml(content(server.url, limit=40)))
        told = run(file, "--pilot", "20", "--out", tmp_path / "A")
        sent = asked(server)
        assert told.exit_code == 0, told.output
        assert sent == 40 and [p.name for p in (tmp_path / "A").glob("*.html")] == []
        found = re.findall(r"(\S+), by its replies: .* cost about ([\d.]+)", told.output)
        assert [name for name, _ in found] == ["one-yesno", "two-yesno"]
        (every,) = re.findall(r"cost of these cells: about ([\d.]+)", told.output)
        notes = []
        whole = genprobe.audit(file, out=tmp_path / "A", note=notes.append)
        runs = [Run.open(folder) for folder in whole.runs]
        assert asked(server) == sum(r.counts()[0] for r in runs) and not whole.left
    spent = [float(found[1]) for line in notes if (found := re.search(r"; cost ([\d.]+)", line))]
    assert len(spent) == 2 and float(every) == pytest.approx(sum(spent), rel=0.2)


def test_a_pilot_of_one_run_is_its_beginning(tmp_path):
    words = [
        "yesno",
        "--model",
        "one",
        "--lang",
        "en",
        "--limit",
        "30",
        "--price",
        "1000,2000",
        "-q",
    ]
    with Faulty(answer=counted, models=("one",)) as server:
        words += ["--base-url", server.url, "--out", str(tmp_path / "run")]
        told = [CliRunner().invoke(cli, [*words, "--pilot", "12"]) for _ in range(2)]
        assert asked(server) == 12  # the second finds what the first asked
        assert told[0].output == told[1].output and "12 of 90 requests" in told[0].output
        asks = [(r.lang, r.probe) for r in Run.open(tmp_path / "run").pending()]
        assert {asks.count(part) for part in set(asks)} == {26}  # four of each question
        more = CliRunner().invoke(cli, [*words, "--pilot", "15"])
        assert "15 of 90" in more.output and asked(server) == 15
        assert CliRunner().invoke(cli, words).exit_code == 0 and asked(server) == 90
    value, low, high = (
        float(x) for x in re.search(r"run: about ([\d.]+) \(([\d.]+) to ([\d.]+)\)", more.output).groups()
    )  # fmt: skip
    used = usage(Run.open(tmp_path / "run"))
    true = forecast.Price(1000, 2000).of(used.tokens_in, used.tokens_out)
    assert low <= value <= high and value == pytest.approx(true, rel=0.2)


def test_the_interval_of_a_pilot_holds_the_sum():
    """Of 400 draws from skewed cells: about 95 % do."""
    rng = np.random.default_rng(3)
    planned = {"a": 200, "b": 100, "c": 60}
    every = {cell: rng.gamma(4, 10 + 5 * at, n) for at, (cell, n) in enumerate(planned.items())}
    true, held = sum(values.sum() for values in every.values()), 0
    for _ in range(400):
        drawn = [
            (c, v) for c, values in every.items() for v in rng.choice(values, 7, replace=False)
        ]
        found = forecast._sum(drawn, planned)
        held += found.low <= true <= found.high
    assert 360 <= held <= 396
    whole = [(cell, v) for cell, values in every.items() for v in values]
    assert forecast._sum(whole, planned) == pytest.approx((true, true, true))
