"""The command `genprobe logprob`: from pairs to a table, and again without the model."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from click.testing import CliRunner

from genprobe import api
from genprobe.analysis import compare, score
from genprobe.commands import cli
from genprobe.datasets import pairs
from genprobe.engines import Options, control, transformers
from genprobe.errors import EngineError, InputError, RunError
from genprobe.outcomes import facts, preferences, table
from genprobe.records import Score
from genprobe.runs.run import Run
from genprobe.tasks.logprob import checkpoints
from genprobe.tasks.pipeline.open import engine_options

LANGS = ["en", "kk", "ar"]


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def scores(*arguments):
    done = invoke(*arguments, "-f", "json", "-q")
    assert done.exit_code == 0, done.output
    return [Score.from_dict(row) for row in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("r")
    return api.logprob(langs=["en", "kk"], limit=24, scorers=["bias"], out=folder)


def test_a_run_is_scored_and_whole(run):
    assert run.spec.command == "logprob" and run.spec.decode == ("score",)
    assert run.spec.engine_args["first"].startswith("bos")
    assert run.verify() == []
    (requests, answers) = (list(run.requests()), list(run.logprobs()))
    assert len(requests) == len(answers) == 2 * 48
    found = {s.by["lang"]: s for s in score.score([run.folder]) if s.metric == "bias-score"}
    assert found["en"].n == found["kk"].n == 24
    assert found["en"].by["scorer"] == "bias"
    assert "|model:control|" in found["en"].signature


def test_another_reduction_needs_no_model(run, monkeypatch):
    monkeypatch.setattr("genprobe.engines.scoring.open", lambda *a: pytest.fail("loads a model"))
    found = scores("score", run.folder, "--scorer", "loglik-byte", "--metric", "win-rate")
    assert {s.by["scorer"] for s in found} == {"loglik-byte"}
    texts = {(s.id, s.lang): s for s in run.statements()}
    values = {
        (r.statement, r.lang): sum(next(iter(p.continuations))["logprobs"])
        / len(texts[r.statement, r.lang].text.encode())
        for r, p in zip(run.requests(), sorted_by_plan(run), strict=True)
    }
    both = preferences.pairs(run.statements())
    wins = [values[a.id, a.lang] > values[b.id, b.lang] for a, b in both if a.lang == "kk"]
    kazakh = next(s for s in found if s.by["lang"] == "kk")
    assert kazakh.value == pytest.approx(sum(wins) / len(wins))


def sorted_by_plan(run):
    answers = {p.request: p for p in run.logprobs()}
    return [answers[r.id] for r in run.requests()]


def test_the_same_command_resumes_and_another_is_refused(run):
    again = api.logprob(langs=["en", "kk"], limit=24, scorers=["bias"], out=run.folder)
    assert sum(1 for _ in again.logprobs()) == 2 * 48
    done = invoke(
        "logprob", "--lang", "en", "--limit", 24, "--scorer", "bias", "--out", run.folder, "-q"
    )
    assert done.exit_code != 0 and "other settings" in str(done.exception)


def test_a_chat_model_must_be_named_plain(tmp_path):
    with pytest.raises(InputError, match=r"is a chat model; give --plain to score"):
        api.logprob(str(control.MODEL), langs=["en"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    plain = api.logprob(str(control.MODEL), langs=["en"], plain=True, limit=2, out=tmp_path / "p")
    assert len({s.pair for s in plain.statements()}) == 2


def test_a_sentence_as_the_models_own_turn(tmp_path):
    """log P of the sentence behind the template: a plain pass over the rendered conversation."""
    found = api.logprob(
        str(control.MODEL), langs=["en"], chat=True, limit=2, context="Go on.", scorers=["loglik"],
        out=tmp_path / "run",
    )  # fmt: skip
    engine = transformers.open(str(control.MODEL), Options(dtype="float32", device="cpu"))
    tokenizer = engine.tokenizer
    shown = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Go on."}], tokenize=False, add_generation_prompt=True
    )
    before = tokenizer(shown, add_special_tokens=False)["input_ids"]
    assert before.count(tokenizer.bos_token_id) == 1
    for request, record in zip(found.requests(), sorted_by_plan(found), strict=True):
        (part,) = record.continuations
        own = tokenizer(part["text"], add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logits = engine.net(input_ids=torch.tensor([[*before, *own]])).logits[0]
        want = logits.log_softmax(-1)[len(before) - 1 : -1].gather(1, torch.tensor(own)[:, None])
        assert part["logprobs"] == pytest.approx(want[:, 0].tolist(), abs=2e-3), request.statement
    assert found.spec.engine_args["turn"] == "chat"


def test_chat_and_plain_and_a_model_without_a_template(tmp_path):
    with pytest.raises(InputError, match="name one"):
        api.logprob(str(control.MODEL), langs=["en"], chat=True, plain=True, out=tmp_path / "x")
    choices = tmp_path / "items.jsonl"
    choices.write_text(
        '{"lang": "en", "context": "A.", "question": "Who?", "options": ["Ann", "Bo"], "label": 0}'
    )
    run = api.logprob(str(control.MODEL), data=str(choices), chat=True, out=tmp_path / "c")
    (first, *_) = run.requests()
    assert "Who?" in first.messages[0]["content"] and "assistant" in first.messages[0]["content"]
    assert all(text == text.lstrip() for texts in first.options.values() for text in texts)


def test_rubias_preprocessing(tmp_path):
    """3.8: small letters, single spaces, no punctuation but commas; in the signature."""
    from genprobe.tasks.logprob import PREPROCESSES

    rubia = PREPROCESSES["rubia"]
    assert rubia("Да,  это — «Маша»!  Кто-то...") == "да, это маша кто-то"
    assert rubia("Он сказал : нет , так нельзя.") == "он сказал нет, так нельзя"
    found = api.logprob(langs=["ru"], preprocess="rubia", limit=2, out=tmp_path / "run")
    assert all(s.text == s.text.lower() and "." not in s.text for s in found.statements())
    assert found.spec.pack_hashes["preprocess"] == "rubia"
    with pytest.raises(InputError, match="did you mean 'rubia'"):
        api.logprob(langs=["ru"], preprocess="rubio", out=tmp_path / "x")


def test_weights_of_four_and_eight_bits(tmp_path):
    """The signature names them; their values are near those of the model, and not the same."""
    pytest.importorskip("bitsandbytes")
    pytest.importorskip("accelerate")
    values = {}
    for kind in (None, "8bit", "4bit"):
        options = Options(more={"quantization": kind} if kind else {})
        found = api.logprob(
            str(control.MODEL), langs=["en"], plain=True, limit=2, scorers=["loglik"],
            options=options, out=tmp_path / str(kind),
        )  # fmt: skip
        values[kind] = [sum(p.continuations[0]["logprobs"]) for p in sorted_by_plan(found)]
        assert found.spec.dtype == {None: "float32", "8bit": "float32+int8"}.get(
            kind, "float32+nf4"
        )
    off = {kind: max(map(abs, map(float.__sub__, values[kind], values[None]))) for kind in values}
    assert 0 < off["8bit"] < off["4bit"] < 10


@pytest.mark.parametrize("task", ["logprob", "yesno"])
def test_quantisation_that_cannot_be_had_is_one_line(tmp_path, monkeypatch, task):
    from genprobe.engines import _torch

    ask = {"langs": ["en"], "limit": 1, "out": tmp_path / "x", "engine": "transformers"}
    for kind, says in (("2bit", "known: 4bit, 8bit"), ("4bit", "pip install bitsandbytes acc")):
        monkeypatch.setattr(_torch.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(EngineError, match=says):
            getattr(api, task)(options=Options(more={"quantization": kind}), **ask)
    assert not (tmp_path / "x").exists()


def test_a_scorer_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(InputError, match="pll needs a masked model, and this one is causal"):
        api.logprob(langs=["en"], scorers=["pll"], out=tmp_path / "run")
    with pytest.raises(InputError, match="unknown scorer 'loglig'; did you mean 'loglik'"):
        api.logprob(langs=["en"], scorers=["loglig"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_can_be_known_is_refused_before_a_model_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr("genprobe.engines.scoring.open", lambda *a: pytest.fail("loads a model"))
    monkeypatch.setattr("genprobe.tasks.open_engine", lambda *a: pytest.fail("loads a model"))
    with pytest.raises(InputError, match="choice scores choices, and the data are pairs"):
        api.logprob(langs=["en"], scorers=["loglik", "choice"], out=tmp_path / "run")
    for verb, lang in (("logprob", "en"), ("yesno", "en"), ("stories", "kk")):
        done = invoke(verb, "--lang", lang, "--by", "lang,bias_typ", "--out", tmp_path / "run")
        assert "unknown column 'bias_typ'; did you mean 'bias_type'?" in str(done.exception)
    question = tmp_path / "c.jsonl"
    options = {"context": "", "question": "Who sings?", "options": ["Al", "Bo"], "label": 0}
    question.write_text(json.dumps(options))
    with pytest.raises(InputError, match="choices have their own context"):
        api.logprob(data=str(question), context="Once, ", out=tmp_path / "run")
    with pytest.raises(InputError, match="batch_tokens=0: give at least 1"):
        engine_options(["batch_tokens=0"])
    assert not (tmp_path / "run").exists()


def test_known_columns_are_those_of_the_outcomes(run):
    found = preferences.UNIT.possible(run.statements())
    assert set(found) == {*table.outcomes(run).columns, *facts.COLUMNS}


def test_a_measure_with_nothing_to_count_is_told(run):
    notes: list[str] = []
    with pytest.raises(InputError, match="nothing could be counted"):
        score.score([run.folder], metrics=["crows-pairs"], note=notes.append)
    assert notes == [
        f"{run.folder}: crows-pairs has nothing to count by the scorers bias; see docs/measures.md"
    ]


def test_scorers_are_compared_apart(run, tmp_path):
    two = [
        api.logprob(langs=["en"], scorers=["loglik", "ppl"], limit=5, out=tmp_path / name)
        for name in "ab"
    ]
    found = compare.compare(two[0].folder, [two[1].folder], metrics=["win-rate"])
    assert {s.by["scorer"] for s in found} == {"loglik", "ppl"}
    assert {s.n for s in found if s.metric == "a"} == {5}
    said = api.yesno(langs=["en"], limit=2, out=tmp_path / "said")
    with pytest.raises(RunError, match=r"`yesno` and `logprob`; .* --paradigms"):
        compare.compare(said.folder, [run.folder])


def test_too_long_texts_are_told_and_not_promised_again(tmp_path):
    path = tmp_path / "long.csv"
    sides = [(n, "word " * 3000 + "a" * n, "word " * 3000) for n in range(2)] + [(9, "No.", "Yes.")]
    path.write_text("pair,pro,anti\n" + "".join(f"{n},{a},{b}\n" for n, a, b in sides))
    notes: list[str] = []
    api.logprob(data=str(path), langs=["en"], out=tmp_path / "run", note=notes.append)
    (said,) = [line for line in notes if "failed" in line]
    assert said.startswith("4 of 6 requests failed: ") and "tokens; the model has" in said
    assert said.endswith(f"({tmp_path / 'run'}/failures.jsonl)")


def test_verify_sees_damaged_values(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    for name in ("MANIFEST", "README.md", "scores.json"):  # they would find it, too
        (folder / name).unlink(missing_ok=True)
    path = folder / "logprobs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["continuations"][0]["logprobs"].pop()
    rows[1]["continuations"][0]["logprobs"][0] = float("nan")
    rows[2]["continuations"][0]["logprobs"][0] = 0.5
    rows[3]["continuations"][0]["text"] = "Another."
    del rows[4]["continuations"][0]["tokens"]
    rows[5]["continuations"][0]["logprobs"][0] = "-1"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    found = Run.open(folder).verify()
    whys = ["log-probabilities", "nan is no log-prob", "0.5 is no log-prob"]
    whys += ["the texts are not those", *["a part of 'continuations' of a LogProb is not as"] * 2]
    for n, why in enumerate(whys):
        assert found[n].startswith(f"logprobs.jsonl:{n + 1}: ") and why in found[n]
        assert found[n].endswith("; delete the line and start again") or n > 3
    assert found[6].startswith("logprobs.jsonl: incomplete: 3 of 96") and len(found) == 7


def test_checkpoints_are_a_run_each_and_a_curve(tmp_path):
    folder = tmp_path / "training"
    for step in (100, 20):
        shutil.copytree(control.MODEL, folder / f"checkpoint-{step}")
    config = folder / "checkpoint-20" / "config.json"
    config.write_text(config.read_text() + " ")  # another revision
    assert [name[-4:] for name in checkpoints(str(folder))] == ["t-20", "-100"]
    found = scores(
        *("logprob", "--model", folder, "--plain", "--lang", "en", "--limit", 3),
        *("--scorer", "loglik", "--out", tmp_path / "runs"),
    )
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [
        "checkpoint-100",
        "checkpoint-20",
    ]
    again = score.score(sorted((tmp_path / "runs").iterdir()))  # as a shell lists them
    for scored in (found, again):
        rates = [s for s in scored if s.metric == "win-rate"]
        assert [s.by["revision"] for s in rates] == ["checkpoint-20", "checkpoint-100"]
        assert not {"model", "source"} & {column for s in rates for column in s.by}
        assert rates[0].value == rates[1].value
        assert "|model:training|" in rates[0].signature


def test_choices_are_asked_in_every_order(tmp_path):
    rows = [
        {
            "example_id": n,
            "category": "Trades",
            "context": "A baker and a miller met at noon.",
            "question": "Who was late?",
            "ans0": "The baker",
            "ans1": "The miller",
            "ans2": "Cannot be determined",
            "label": 2,
            "target_loc": 0,
            "context_condition": "ambig",
            "question_polarity": "neg",
        }
        for n in range(2)
    ]
    path = tmp_path / "choices.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = api.logprob(data=str(path), limit=1, out=tmp_path / "run")
    assert sum(1 for _ in run.requests()) == 6
    assert all(len(p.continuations) == 3 for p in run.logprobs())
    found = {s.metric for s in score.score([run.folder])}
    assert {"accuracy", "ambiguous-bias"} <= found


@pytest.mark.slow
def test_killed_and_resumed_is_the_same(tmp_path):
    """kill -9 while it scores: nothing lost, nothing twice, the same values."""
    command = [sys.executable, "-c", "from genprobe.commands import main; main()", "logprob", "-q"]
    command += ["--scorer", "loglik", "--engine-arg", "batch_tokens=64"]
    command += [*itertools.chain(*(("--lang", lang) for lang in LANGS)), "--out"]
    whole = api.logprob(langs=LANGS, scorers=["loglik"], out=tmp_path / "whole")
    killed = tmp_path / "killed"
    kills = 0
    for _ in range(40):
        process = subprocess.Popen(
            [*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        before = lines(killed)
        while process.poll() is None and lines(killed) <= before + 40:
            time.sleep(0.01)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills >= 1 and process.returncode == 0
    run = Run.open(killed)
    assert run.verify() == []
    values = [
        {p.request: p.continuations[0]["logprobs"] for p in one.logprobs()} for one in (run, whole)
    ]
    assert values[0].keys() == values[1].keys()
    for name, found in values[0].items():
        assert found == pytest.approx(values[1][name], rel=1e-5)


def lines(folder):
    path = folder / "logprobs.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_half_a_character_stops_no_table(tmp_path):
    path = tmp_path / "mine.jsonl"
    row = {"pair": "p\ud800", "pro": "Men run.", "anti": "Women run.", "lang": "en", "of": "\udc00"}
    path.write_text(json.dumps(row) + "\n")
    found = scores(
        "logprob", "--data", path, "--scorer", "bias", "--by", "of,pair", "--out", tmp_path / "run"
    )
    assert {(s.by["of"], s.by["pair"]) for s in found} == {("\ufffd", "p\ufffd")}
    with pytest.raises(InputError, match="the context holds half a character"):
        api.logprob(langs=["en"], context="\udcff", out=tmp_path / "no")
    with pytest.raises(InputError, match="the prefix holds half a character"):
        api.logprob(data=str(path), prefix="\udcff", out=tmp_path / "no")


def test_pairs_of_all_kinds_reach_a_table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "lang,pair,pro,anti,domain\n"
        "en,1,Bakers rise early.,Sailors rise early.,trades\n"
        "en,2,Bakers sing well.,Sailors sing well.,trades\n"
    )
    assert len(pairs.load(str(path))[0]) == 4
    found = scores("logprob", "--data", path, "--scorer", "ppl", "--out", tmp_path / "run")
    rate = next(s for s in found if s.metric == "win-rate")
    assert rate.n == 2 and rate.by == {"scorer": "ppl", "lang": "en", "domain": "trades"}
