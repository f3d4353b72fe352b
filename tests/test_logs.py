"""Logs of other harnesses are read as they are, judged, and made runs.

What is in tests/logs the harnesses wrote themselves (tests/logs/make.py); the formats of the others
are made here, by their published schemas (the modules of genprobe/logs name them).
"""

import copy
import gzip
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import genprobe
from genprobe import files, logs
from genprobe.analysis.score import score
from genprobe.commands import cli
from genprobe.datasets import statements
from genprobe.errors import Caution, InputError
from genprobe.files import zips
from genprobe.logs import Log, recognised
from genprobe.report import sources, words
from genprobe.resources import packs, panel, registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import logged
from genprobe.tasks.pipeline.judge import judge_file

HERE = Path(__file__).parent / "logs"
EN = packs.load_pack().wordings["en"]["agreement"].ask("People from the hills are quiet.")
KK = packs.load_pack().wordings["kk"]["disagreement"].ask("Таудың адамдары үндемейді.")
# prompt, reply, target
SAID = ((EN, "Yes.", "no"), (KK, "Жоқ, қарсы емеспін.", "yes"))


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def whole(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


# --- the formats, each as its program writes it


def inspect(folder):
    return shutil.copy(HERE / "inspect.json", folder / "log.json")


def packed(folder):
    return shutil.copy(HERE / "inspect.eval", folder / "log.eval")


def lm_eval(folder):
    shutil.copytree(HERE / "lm-eval" / "scripted", folder / "lm", dirs_exist_ok=True)
    return folder / "lm" / "samples_hills.jsonl"


def promptfoo(folder):
    return shutil.copy(HERE / "promptfoo.json", folder / "out.json")


def openai(folder):
    body = {"model": "m", "temperature": 0.5, "max_tokens": 64}
    write(
        folder / "input.jsonl",
        *(
            {
                "custom_id": f"r{n}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body | {"messages": [{"role": "user", "content": prompt}]},
            }
            for n, (prompt, *_) in enumerate(SAID)
        ),
    )
    answers = [
        {
            "id": f"b{n}",
            "custom_id": f"r{n}",
            "response": {
                "status_code": 200,
                "request_id": "x",
                "body": {
                    "model": "m-2026",
                    "choices": [{"message": {"content": reply}, "finish_reason": "stop"}],
                },
            },
            "error": None,
        }
        for n, (_, reply, _) in enumerate(SAID)
    ]
    failed = {"custom_id": "r0", "response": None, "error": {"code": "batch_expired"}}
    return write(folder / "output.jsonl", *answers, failed)


def anthropic(folder):
    write(
        folder / "requests.jsonl",
        *(
            {
                "custom_id": f"r{n}",
                "params": {
                    "model": "m",
                    "max_tokens": 64,
                    "temperature": 0.5,
                    "system": "Be brief.",
                    "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
                },
            }
            for n, (prompt, *_) in enumerate(SAID)
        ),
    )
    answers = [
        {
            "custom_id": f"r{n}",
            "result": {
                "type": "succeeded",
                "message": {
                    "model": "m-2026",
                    "stop_reason": "end_turn",
                    "content": [
                        {"type": "thinking", "thinking": "Well."},
                        {"type": "text", "text": reply},
                    ],
                },
            },
        }
        for n, (_, reply, _) in enumerate(SAID)
    ]
    failed = {"custom_id": "r0", "result": {"type": "expired"}}
    return write(folder / "results.jsonl", *answers, failed)


def helm(folder):
    states = [
        {
            "instance": {
                "id": f"id{n}",
                "input": {"text": prompt},
                "references": [{"output": {"text": target}, "tags": ["correct"]}],
                "split": "test",
            },
            "train_trial_index": 0,
            "request": {
                "model": "org/m",
                "model_deployment": "org/m",
                "prompt": prompt,
                "temperature": 0.5,
                "max_tokens": 64,
            },
            "result": {
                "success": True,
                "completions": [{"text": reply, "finish_reason": {"reason": "stop"}}],
            },
        }
        for n, (prompt, reply, target) in enumerate(SAID)
    ]
    whole(folder / "helm" / "stats.json", [{"name": "exact_match"}])
    path = folder / "helm" / "scenario_state.json"
    return whole(path, {"adapter_spec": {"method": "generation"}, "request_states": states})


def lighteval(folder):
    rows = [
        {
            "doc": {
                "query": prompt,
                "choices": ["yes", "no"],
                "gold_index": [target == "no"],
                "id": "1",
            },
            "model_response": {"text": [reply], "input": None},
            "metric": {"exact": 0.0},
        }
        for prompt, reply, target in SAID
    ]
    for row in rows:
        row["doc"]["gold_index"] = [int(row["doc"]["gold_index"][0])]
    return parquet(folder / "details" / "org" / "m" / "2026-11-28" / "details_hills.parquet", rows)


def older_lighteval(folder):
    rows = [
        {
            "full_prompt": prompt,
            "predictions": str([reply]),
            "gold": str([target]),
            "metrics": "{'em': 0}",
        }
        for prompt, reply, target in SAID
    ]
    return parquet(folder / "details" / "org" / "m" / "old" / "details_hills.parquet", rows)


def every_eval(folder):
    rows = [
        {
            "schema_version": "0.2.2",
            "evaluation_id": "hills/m/1",
            "model_id": "org/m",
            "evaluation_name": "hills",
            "sample_id": f"s{n}",
            "interaction_type": "single_turn",
            "input": {"raw": prompt, "reference": [target]},
            "output": {"raw": [reply]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": "yes" if n == 0 else "none",
                    "extraction_method": "regex",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": 0.0, "is_correct": False},
        }
        for n, (prompt, reply, target) in enumerate(SAID)
    ]
    return write(folder / "x_samples.jsonl", *rows)


def chats(folder):
    rows = [
        {
            "id": n,
            "messages": [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": reply},
            ],
        }
        for n, (prompt, reply, _) in enumerate(SAID)
    ]
    return parquet(folder / "chats.parquet", rows)


def sharegpt(folder):
    rows = [
        {"conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": reply}]}
        for prompt, reply, _ in SAID
    ]
    return write(folder / "share.jsonl", *rows)


FORMATS = {
    inspect: "inspect",
    packed: "inspect",
    lm_eval: "lm_eval",
    promptfoo: "promptfoo",
    openai: "openai_batch",
    anthropic: "anthropic_batch",
    helm: "helm",
    lighteval: "lighteval",
    older_lighteval: "lighteval",
    every_eval: "every_eval_ever",
    chats: "messages",
    sharegpt: "messages",
}


def test_every_format_is_made_here_and_recognised_by_itself_alone(tmp_path):
    assert set(FORMATS.values()) == set(registry.names("logs"))
    for make, name in FORMATS.items():
        head = logs.Source(Path(make(tmp_path))).head
        fits = [one for one in registry.names("logs") if registry.module("logs", one).fits(head)]
        assert fits == [name], make


@pytest.mark.parametrize("make", FORMATS)
def test_a_log_is_read_as_it_is(tmp_path, make):
    told = []
    path = Path(make(tmp_path))
    out = tmp_path / "judged.csv"
    counts = judge_file(path, ["yesno"], out, note=told.append)
    assert registry.module("logs", FORMATS[make]).ABOUT in told[0]
    rows = list(files.read_rows(out))
    assert rows[0]["response"] == "Yes." and rows[0]["answer"] == "yes"
    assert (rows[0]["lang"], rows[0]["probe"]) == ("en", "agreement")
    assert "quiet" in rows[0]["prompt"] and rows[0]["reader"].startswith("yesno@")
    real = make in (inspect, packed, lm_eval, promptfoo)
    if real:  # Yes; No; Жоқ after a thought; and a Russian question in nobody's words
        left = {"no": 1, "not recognised": 1} if make is not lm_eval else {"no": 2}
        assert counts["yesno"] == {"yes": 1, "no": 1 + left.pop("no")} | left
        assert rows[2]["lang"] == "kk" and rows[2]["thought"] == "Бұл жалпылау."
        assert rows[0]["model"] in ("mockllm/model", "scripted")
        assert [row["theirs"] for row in rows[1:3]] == {
            "lm_eval": ["no", "not no"],
            "inspect": ["not yes", "not no"],
            "promptfoo": ["not yes", "not no"],
        }[FORMATS[make]]
    else:
        assert (rows[1]["lang"], rows[1]["probe"], rows[1]["answer"]) == (
            "kk",
            "disagreement",
            "no",
        )
        assert rows[0]["text"] == "People from the hills are quiet."
        failed = make in (openai, anthropic)
        assert counts["yesno"] == {"yes": 1, "no": 1} | ({"no reply": 1} if failed else {})
    if make in (openai, anthropic, helm, inspect, packed, lm_eval):
        assert (float(rows[0]["temperature"]), rows[0]["max_tokens"]) == (0.5, "64")
    models = {openai: "m", anthropic: "m", helm: "org/m", lighteval: "org/m"}
    assert rows[0]["model"] == models.get(make, rows[0]["model"])
    if make is anthropic:
        assert json.loads(rows[0]["messages"])[0] == {"role": "system", "content": "Be brief."}
        assert rows[0]["thought"] == "Well."


def test_inspect_packed_and_as_json_give_the_same_rows():
    both = []
    for name in ("inspect.json", "inspect.eval"):
        with Log(str(HERE / name)) as log:
            both.append([found.row for found in log.rows()])
    assert both[0] == both[1] and len(both[0]) == 4


def test_a_folder_and_a_pattern_hold_logs_and_what_is_none_is_named(tmp_path):
    openai(tmp_path)
    helm(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with Log(str(tmp_path)) as log:
        assert log.format == "helm+openai_batch" and len(list(log.rows())) == 5
        assert "left alone: stats.json, input.jsonl, notes.txt" in log.told
    with Log(str(tmp_path / "*" / "*.json")) as log:
        assert log.format == "helm"
    with pytest.raises(InputError, match="no files there"):
        Log(str(tmp_path / "*.nothing"))
    alone = whole(tmp_path / "other.json", {"a": 1})
    with pytest.raises(InputError) as error:
        Log(str(alone))
    assert "\n" not in str(error.value) and "Inspect" in str(error.value)
    assert all(registry.module("logs", n).ABOUT in str(error.value) for n in registry.names("logs"))


# --- the question


def test_every_wording_of_every_pack_is_recognised():
    """A statement in each wording, with text before and behind, gives back all that was put in."""
    said = "Ұстаздар N 7."
    wrong = []
    for name in ("yesno", "essays"):
        pack = packs.load_pack(name)
        for lang in pack.wordings:
            asked = [(probe, panel.PUBLISHED, one) for probe, one in pack.wordings[lang].items()]
            known = panel.load(name, lang) if lang in registry.names(f"{name}/wordings") else None
            for worded in known.wordings.values() if known else ():
                for probe in worded.texts:
                    order = panel.ORDERS[0] if pack.probes[probe].when else ""
                    asked.append((probe, worded.name, worded.wording(probe, order, pack, known)))
            for probe, wording, one in asked:
                if len(re.sub(r"\{\w+\}|\W", "", one.text)) < 8:
                    continue  # nothing but the statement
                prompt = f"Be brief.\r\n\r\n{one.ask(said)}\n\nAnswer:"
                found = recognised(prompt, lang)
                clause = packs.clause(said) if "{clause}" in one.text else said
                if (found and found[:4]) != (name, lang, probe, wording) or found.text != clause:
                    wrong.append((name, lang, probe, wording, found))
    assert wrong == []


def test_the_last_of_several_questions_counts_and_a_stranger_is_none():
    shot = EN.replace("People from the hills are quiet.", "Cats are proud.")
    assert recognised(f"{shot}\nYes.\n\n{EN}").text == "People from the hills are quiet."
    assert recognised("What is the capital of France?") is None
    assert recognised("yes or no") is None and recognised("\ud800" * 9) is None
    # Words of both questions about one statement: nobody knows which is meant.
    assert recognised(EN.replace(" agree ", " like ")) is None


# --- tables


def test_columns_by_other_names_in_any_case_and_by_a_map(tmp_path):
    rows = [{"Sprache": "kk", "Frage": KK, "Antwort": "Жоқ.", "Modell": "m"}]
    path = write(tmp_path / "t.jsonl", *rows)
    with Log(str(path), {"response": "Antwort", "lang": "Sprache", "prompt": "Frage"}) as log:
        row = next(log.rows()).row
    assert row["response"] == "Жоқ." and row["probe"] == "disagreement" and row["Modell"] == "m"
    with pytest.raises(InputError, match="unknown column 'Antwrt'; did you mean 'Antwort'"):
        list(Log(str(path), {"response": "Antwrt"}).rows())
    code = CliRunner().invoke(cli, ["judge", str(path), "--map", "response=Antwort,prompt=Frage"])
    assert json.loads(code.stdout)["answer"] == "no"
    bad = CliRunner().invoke(cli, ["judge", str(path), "--map", "response"])
    assert "write OURS=YOURS" in str(bad.exception)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "cp1251"])
def test_a_table_in_any_encoding_that_can_be_told(tmp_path, encoding):
    text = "lang,probe,response\nru,agreement,Да.\n"
    data = text.encode(encoding)
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfe" + data if encoding == "utf-16-le" else data)
    told = encoding if encoding == "cp1251" else ""
    with Log(str(path), encoding=told) as log:
        assert [found.row["response"] for found in log.rows()] == ["Да."]
    if told:
        with pytest.raises(InputError, match="--encoding, such as cp1251"):
            Log(str(path))
        with pytest.raises(InputError, match="unknown encoding 'klingon'"):
            Log(str(path), encoding="klingon")


def test_packed_tables_workbooks_and_standard_input(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    text = f"lang,probe,response\n{'en,agreement,Yes.'}\n"
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    book = openpyxl.Workbook()
    for line in text.splitlines():
        book.active.append(line.split(","))
    book.save(tmp_path / "t.xlsx")
    one = {"yesno": {"yes": 1}}
    for path in (packed, tmp_path / "t.xlsx"):
        assert judge_file(path, out=tmp_path / "o.jsonl") == one
    given = (packed.read_bytes(), (tmp_path / "t.xlsx").read_bytes(), text.encode())
    for data in (
        *given,
        (HERE / "inspect.eval").read_bytes(),
        (HERE / "inspect.json").read_bytes(),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        counts = judge_file("-", out=tmp_path / "o.jsonl")
        assert counts["yesno"]["yes"] == 1


def test_all_problems_of_a_file_at_once(tmp_path):
    rows = [{"lang": lang, "probe": "agreement", "response": "Yes."} for lang in ("en", "xx", "yy")]
    with pytest.raises(InputError, match=r"2 problems\nrow 2: unknown language.*\nrow 3: "):
        judge_file(write(tmp_path / "t.jsonl", *rows), out=tmp_path / "o.jsonl")
    assert not (tmp_path / "o.jsonl").exists()
    code = CliRunner().invoke(
        cli, ["judge", str(tmp_path / "t.jsonl"), "-o", str(tmp_path / "run")]
    )
    assert "2 problems" in str(code.exception) and not (tmp_path / "run").exists()


# --- a run


def run_of(path, folder):
    told = []
    with Log(str(path)) as log:
        runs = logged.keep(log, folder, told.append)
    return runs, told


@pytest.mark.parametrize("make", FORMATS)
def test_a_log_becomes_a_run_of_what_it_holds(tmp_path, make):
    """The same labels as in a table, a whole folder, and nothing that was not asked."""
    path, folder = Path(make(tmp_path)), tmp_path / "run"
    found = CliRunner().invoke(cli, ["judge", str(path), "-o", str(folder), "-q"])
    assert found.exit_code == 0, found.exception
    run = Run.open(folder)
    assert run.verify() == []
    judge_file(path, ["yesno"], tmp_path / "t.jsonl")
    table = [row for row in files.read_rows(tmp_path / "t.jsonl") if row["answer"]]
    assert [j.label for j in run.judgments("yesno")] == [row["answer"] for row in table]
    assert run.spec.engine == "log" and run.spec.engine_version == FORMATS[make]
    failed = list(run.failures())
    assert len(failed) == (make in (openai, anthropic))
    assert all("expired" in one.detail for one in failed)
    scores = score(folder, metrics=["yes"], by=["model"])
    assert sum(one.n for one in scores) == len(table) and run.verify() == []
    assert "theirs" not in scores[0].signature
    again = CliRunner().invoke(cli, ["judge", str(path), "-o", str(folder), "-q"])
    assert again.exit_code == 0 and len(list(run.responses())) == len(table)


def test_two_models_with_one_log_each_are_compared_gated_reported_and_reviewed(tmp_path):
    """lm-eval's own log, and the same of another model that says no."""
    other = tmp_path / "other"
    shutil.copytree(HERE / "lm-eval" / "scripted", other)
    for name, old, new in (
        ("results.json", '"model_name": "scripted"', '"model_name": "other"'),
        ("samples_hills.jsonl", "Yes.", "No."),
    ):
        text = (other / name).read_text("utf-8")
        (other / name).write_text(text.replace(old, new), "utf-8")
    (other / "samples_hills.jsonl").rename(other / "samples_hills_2.jsonl")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")

    def ran(*line):
        found = CliRunner().invoke(cli, list(line))
        assert found.exit_code == 0, found.exception
        return found

    ran("judge", str(HERE / "lm-eval"), "-o", a)
    ran("judge", str(other), "-o", b)
    assert "−25.0" in ran("compare", a, b).stdout and "of" in ran("compare", a, b).stdout
    page = ran("report", a, b, "-o", str(tmp_path / "p.html"))
    assert "reviewed" not in page.stderr and (tmp_path / "p.html").stat().st_size > 10_000
    ran("review", "export", a, "-o", str(tmp_path / "r.csv"))
    assert len(list(files.read_rows(tmp_path / "r.csv"))) == 4
    # The gate wants more than two statements.
    for model, reply in (
        ("old", "No."),
        ("new", "Yes."),
    ):
        rows = [
            {"model": model, "prompt": EN.replace("hills", f"{n} hills"), "response": reply}
            for n in range(20)
        ]
        ran("judge", str(write(tmp_path / f"{model}.jsonl", *rows)), "-o", str(tmp_path / model))
    line = ["gate", str(tmp_path / "new"), "--against", str(tmp_path / "old")]
    found = CliRunner().invoke(cli, [*line, "--max-rise", "endorsed=5"])
    assert "worse: endorsed: +100.0" in found.output


def test_replies_to_built_in_statements_pair_with_a_run_of_ours(tmp_path):
    known = next(iter(logged._builtin().values()))
    rows = [
        {
            "prompt": packs.load_pack().wordings[known.lang]["agreement"].ask(known.text),
            "response": r,
        }
        for r in ("…", "…", "?")
    ]
    (run,), told = run_of(write(tmp_path / "r.jsonl", *rows), tmp_path / "run")
    assert list(run.statements()) == [known]
    assert [request.sample for request in run.requests()] == [0, 1, 2]
    assert "3 questions recognised" in told[0]


def test_several_models_are_several_runs_and_own_questions_have_a_pack(tmp_path):
    rows = [
        {
            "model": f"org/m{n % 2}",
            "lang": "en",
            "reads": "question",
            "prompt": f"Is it {n}?",
            "response": "No.",
        }
        for n in range(4)
    ]
    runs, told = run_of(write(tmp_path / "r.jsonl", *rows), tmp_path / "runs")
    assert [run.folder.name for run in runs] == ["org-m0", "org-m1"] and "2 runs" in told[-1]
    from genprobe.tasks import judge_run

    for run in runs:
        judge_run(Run.open(run.folder), ["yesno"])
        assert run.verify() == [] and run.spec.pack == "asked@1"
        assert [j.label for j in run.judgments("yesno")] == ["no", "no"]


def test_their_labels_stand_beside_ours_where_they_differ_first(tmp_path):
    found = CliRunner().invoke(
        cli, ["judge", str(HERE / "inspect.json"), "-o", str(tmp_path / "r")]
    )
    assert "2 of 3 about 2 statements" in found.stderr
    assert "kk, agreement" in found.stderr and "read as no, by the harness not no" in found.stderr
    score(tmp_path / "r", export=tmp_path / "o.csv")
    rows = list(files.read_rows(tmp_path / "o.csv"))
    assert [row["theirs"] for row in rows] == ["yes", "not yes", "not no"]
    assert [row["their_score"] for row in rows] == ["I"] * 3
    with pytest.raises(InputError, match="the harness that asked"):
        registry.module("judges", "theirs").make()


# --- in memory


def test_a_log_in_memory_or_by_its_name_is_judged_as_the_command_does(tmp_path):
    path = HERE / "lm-eval" / "scripted" / "samples_hills.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    told = []
    found = genprobe.judge(rows, note=told.append)
    assert any("lm-eval" in line for line in told) and any("'theirs'" in line for line in told)
    named = genprobe.judge(path.parent)
    assert [row["answer"] for row in found] == [row["answer"] for row in named]
    assert {row["model"] for row in named} == {"scripted"} and found.counts == named.counts
    asked = {"lang": "en", "reads": "question", "prompt": "Is it polite?"}
    assert next(iter(genprobe.read("Yes, it is.", **asked))) == "answer"
    assert genprobe.read("Yes.", prompt=EN)["probe"] == "agreement"
    # A generator is read once, the first row too.
    kept = genprobe.judge((row for row in rows), out=tmp_path / "o.jsonl")
    assert list(kept) == list(found)
    with pytest.raises(InputError, match="--gold needs a table"):
        genprobe.judge(rows, gold="target", out=tmp_path / "run")


def test_rows_in_memory_become_a_run_with_columns_by_a_map(tmp_path):
    rows = [{"Frage": prompt, "Antwort": reply, "model": "m"} for prompt, reply, _ in SAID]
    mapped = {"prompt": "Frage", "response": "Antwort"}
    assert [row["answer"] for row in genprobe.judge(rows, mapped=mapped)] == ["yes", "no"]
    for number, given in enumerate((rows, iter(rows), pa.Table.from_pylist(rows))):
        folder = tmp_path / str(number)
        found = genprobe.judge(given, mapped="prompt=Frage,response=Antwort", out=folder)
        assert {row["judge"] for row in found} == {"yesno", "refusal", "language"}
        run = Run.open(folder)
        assert run.verify() == [] and run.spec.model == "m" and run.count("responses") == 2
    with pytest.raises(InputError, match="--map can be used only with a file or log"):
        genprobe.judge(run, mapped=mapped)
    with pytest.raises(InputError, match="write OURS=YOURS"):
        genprobe.judge(rows, mapped="response")


# --- hostile


def shaken(value, path=()):
    """Every value of a JSON document, replaced by others, one at a time."""
    for strange in (None, 7, "x", [], {}, [[]], [None], {"a": None}, True):
        yield path, strange
    if isinstance(value, dict):
        for name, part in value.items():
            yield from shaken(part, (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value[:1]):
            yield from shaken(part, (*path, place))


def put(value, path, strange):
    if not path:
        return strange
    found = copy.copy(value)
    found[path[0]] = put(value[path[0]], path[1:], strange)
    return found


@pytest.mark.parametrize("make", FORMATS)
def test_whatever_stands_in_a_log_it_is_read_or_refused(tmp_path, make, monkeypatch):
    """Each value of the first row, or of a document with two items, is replaced by nine others."""
    if make is packed:
        pytest.skip("its parts are those of the JSON")
    source = logs.Source(Path(make(tmp_path)))
    kind = registry.module("logs", FORMATS[make])
    document = source.path.suffix == ".json"
    value = source.document if document else source.head
    if make is inspect:
        value = value | {"samples": value["samples"][:1]}
    seen = 0
    for path, strange in shaken(value):
        new = put(value, path, strange)
        if not isinstance(new, dict) or not kind.fits(new):
            continue
        one = logs.Source(source.path)
        one.__dict__ |= {"document": new, "head": new}
        if not document:
            monkeypatch.setattr(one, "rows", lambda new=new: iter([(1, new)]))
        try:
            rows = list(kind.read(one))
        except InputError:
            continue
        seen += len(rows)
        for row in (logs.as_row(found) for _, found in rows):
            assert isinstance(row.get("response"), str | None), (path, strange)
            assert isinstance(row.get("prompt"), str | None), (path, strange)
            files.json_of(row, "row")
    assert seen > 20


def test_bombs_links_and_damage_are_refused(tmp_path, monkeypatch):
    bomb = tmp_path / "b.csv.gz"
    bomb.write_bytes(gzip.compress(b"response\n" + b"a\n" * 1_000_000))
    monkeypatch.setenv("GENPROBE_LIMIT_UNPACKED", "100000")
    with pytest.raises(InputError, match="GENPROBE_LIMIT_UNPACKED"):
        list(Log(str(bomb)).rows())
    monkeypatch.setenv("GENPROBE_LIMIT_LINE", "100000")
    with zipfile.ZipFile(tmp_path / "b.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "[" + " " * 1_000_000 + "]")
        archive.writestr("samples/1.json", "{}")
    with pytest.raises(InputError, match="GENPROBE_LIMIT_LINE"):
        list(Log(str(tmp_path / "b.eval")).rows())
    monkeypatch.setenv("GENPROBE_LIMIT_MEMBERS", "1")
    with pytest.raises(InputError, match="GENPROBE_LIMIT_MEMBERS"):
        zips.names(tmp_path / "b.eval")
    monkeypatch.undo()
    good = (HERE / "inspect.eval").read_bytes()
    for at in range(7000, len(good), 29):  # a byte turned round, anywhere
        path = tmp_path / "d.eval"
        path.write_bytes(good[:at] + bytes([good[at] ^ 255]) + good[at + 1 :])
        try:
            with Log(str(path)) as log:
                list(log.rows())
        except InputError as error:
            assert "\n" not in str(error)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.jsonl").symlink_to(tmp_path / "d.eval")
    with pytest.raises(InputError, match="is a link"):
        Log(str(tmp_path / "in"))


def test_of_a_prompt_with_an_example_the_last_question_counts():
    asked = packs.load_pack("yesno").wordings["en"]
    example = asked["disagreement"].ask("Cats are nice.") + "\nno\n\n"
    found = logs.recognised(example + asked["agreement"].ask("Dogs bark."))
    assert found is not None and (found.probe, found.text) == ("agreement", "Dogs bark.")
    found = logs.recognised(example + asked["recognition"].ask("Dogs bark."))
    assert found is not None and (found.probe, found.text) == ("recognition", "Dogs bark.")


def test_what_differs_between_replies_to_one_statement_is_no_column_of_a_run(tmp_path):
    asked = packs.load_pack("yesno").wordings["en"]["agreement"].ask("Dogs bark.")
    rows = [
        {"prompt": asked, "response": "Yes.", "sysprompt": "judge", "topic": "dogs", "sample": 0},
        {"prompt": asked, "response": "No.", "sysprompt": "nurse", "topic": "dogs", "sample": 1},
    ]
    told = []
    with logs.Log(str(write(tmp_path / "l.jsonl", *rows))) as log:
        [run] = logged.keep(log, tmp_path / "run", told.append)
    [statement] = run.statements()
    assert statement.extra == {"topic": "dogs"}
    assert any("sysprompt: differ between replies" in line for line in told)


TWO = "Dogs bark.\nCats do not."


@pytest.mark.parametrize("name", ("published", "person", "after", "direct"))
@pytest.mark.parametrize("lang", ("en", "ar", "zh"))
def test_a_statement_of_several_lines_is_whole(name, lang):
    pack = packs.load_pack("yesno")
    if name == "published":
        ask = pack.wordings[lang]["agreement"].ask
    else:
        known = panel.load("yesno", lang)
        ask = known.wordings[name].wording("agreement", "yes-no", pack, known).ask
    yes, no = pack.answers[lang].values()
    tails = "" if name in ("after", "person") else f"\n\n{yes} / {no}?\nAnswer:", "<|end|>\n<|bot|>"
    for text in (TWO, TWO.replace("\n", "\r\n"), f"{TWO}\n\nSo it is.", "Dogs bark."):
        if name == "after" and "\n\n" in text:
            continue  # what stands before it may be anything
        example = ask("Birds sing.\nBees hum.") + f"\n{no}\n\n"
        for prompt in (ask(text), example + ask(text), *(ask(text) + tail for tail in tails)):
            found = recognised(prompt)
            assert found is not None and found.wording == name, prompt
            assert found.text == text.replace("\r\n", "\n"), prompt


def test_a_built_in_statement_is_known_beside_what_a_template_adds(tmp_path):
    ask = packs.load_pack("yesno").wordings["en"]["agreement"].ask
    own = next(s for s in statements.load("builtin")[0] if s.lang == "en")
    rows = [
        {"prompt": f"{ask(own.text)}\n\nThink before you answer.", "response": "No."},
        *({"prompt": ask(f"Dogs bark.\n{more}"), "response": "Yes."} for more in ("So", "Or")),
    ]
    with logs.Log(str(write(tmp_path / "l.jsonl", *rows))) as log:
        [run] = logged.keep(log, tmp_path / "run", lambda _: None)
    first, *others = run.statements()
    assert first.id == own.id
    assert [one.text for one in others] == ["Dogs bark.\nSo", "Dogs bark.\nOr"]


# --- reruns: a second file of the same is no second sample


def dated_lm_eval(folder, place, date, reply):
    row = {"doc_id": 0, "doc": {}, "arguments": {"gen_args_0": {"arg_0": EN}}, "resps": [[reply]]}
    whole(folder / place / f"results_{date}.json", {"model_name": "m"})
    return write(folder / place / f"samples_hills_{date}.jsonl", row)


def dated_inspect(folder, place, date, reply, **more):
    sample = {
        "id": 1,
        "epoch": 1,
        "input": EN,
        "output": {"choices": [{"message": {"content": reply}}]},
    }
    head = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "created": date}}
    return whole(folder / place / f"{date}.json", head | {"samples": [sample]} | more)


def dated_promptfoo(folder, place, date, reply):
    result = {"prompt": {"raw": EN}, "provider": {"id": "m"}, "response": {"output": reply}}
    results = {"timestamp": date, "prompts": [], "results": [result]}
    config = {"prompts": ["p"], "providers": ["m"]}
    return whole(folder / place / f"{date}.json", {"results": results, "config": config})


def dated_lighteval(folder, place, date, reply):
    row = {
        "doc": {"query": EN, "id": "1"},
        "model_response": {"text": [reply]},
        "metric": {"e": 0.0},
    }
    name = f"details_hills_{date}.parquet"
    return parquet(folder / place / "details" / "org" / "m" / date / name, [row])


def dated_every_eval(folder, place, date, reply):
    row = {
        "evaluation_id": f"hills/m/17{date[8:10]}.5", "model_id": "m", "evaluation_name": "hills",
        "sample_id": "s", "input": {"raw": EN}, "output": {"raw": [reply]}, "evaluation": {},
    }  # fmt: skip
    return write(folder / place / f"{date}_samples.jsonl", row)


def undated_helm(folder, place, date, reply):
    helm(folder / place)
    path = folder / place / "helm" / "scenario_state.json"
    state = json.loads(path.read_text("utf-8"))
    state["request_states"][0]["result"]["completions"][0]["text"] = reply
    return whole(path, state)


DATED = (dated_lm_eval, dated_inspect, dated_promptfoo, dated_lighteval, dated_every_eval)
DATES = ("2026-11-27T09-00-00", "2026-11-28T09-00-00")


@pytest.mark.parametrize("make", DATED)
@pytest.mark.parametrize("places", ("aa", "ba"))
def test_of_reruns_the_latest_counts_and_the_others_are_told(tmp_path, make, places):
    for place, date, reply in zip(places, DATES, ("Yes.", "No."), strict=True):
        make(tmp_path / "in", place, date, reply)
    [run], told = run_of(tmp_path / "in", tmp_path / "run")
    assert [answer.text for _, answer in run.exchanges()] == ["No."]
    (caution,) = [line for line in told if isinstance(line, Caution)]
    assert "a rerun is no further sample" in caution and DATES[0] in caution
    told = []
    judge_file(tmp_path / "in", ["yesno"], tmp_path / "t.jsonl", note=told.append)
    assert [row["answer"] for row in files.read_rows(tmp_path / "t.jsonl")] == ["no"]
    assert any("a rerun is no further sample" in line for line in told)


def test_a_rerun_that_failed_is_not_the_latest(tmp_path):
    dated_inspect(tmp_path / "in", "a", DATES[0], "Yes.")
    dated_inspect(tmp_path / "in", "a", DATES[1], "No.", status="error")
    [run], _ = run_of(tmp_path / "in", tmp_path / "run")
    assert [answer.text for _, answer in run.exchanges()] == ["Yes."]


def test_files_without_a_date_that_answer_the_same_are_refused_or_told(tmp_path):
    for place, reply in zip("ab", ("Yes.", "No."), strict=True):
        undated_helm(tmp_path / "helm", place, "", reply)
        (tmp_path / place).mkdir()
        openai(tmp_path / place)
    for call in (
        lambda: run_of(tmp_path / "helm", tmp_path / "run"),
        lambda: judge_file(tmp_path / "helm", ["yesno"], tmp_path / "t.jsonl"),
    ):
        with pytest.raises(InputError, match=r"row 1 and .*row 1 are replies to the same question"):
            call()
    assert not (tmp_path / "run").exists() and not (tmp_path / "t.jsonl").exists()
    _, told = run_of(tmp_path / "[ab]" / "output.jsonl", tmp_path / "run")
    assert any("2 replies of one file to what another file asks" in line for line in told)


def test_a_row_that_says_otherwise_than_its_prompt_is_told(tmp_path):
    rows = [
        {"lang": "en", "probe": "disagreement", "prompt": EN, "response": "No."},
        {"lang": "en", "probe": "Disagree", "prompt": EN, "response": "No."},
        {"lang": "ru", "probe": "disagreement", "prompt": KK, "response": "Жоқ."},
        {"lang": "en", "probe": "agreement", "prompt": EN, "response": "Yes."},
        {"lang": "en", "probe": "agreement", "prompt": "Well?", "response": "Yes."},
    ]
    for columns in (("lang", "probe", "prompt", "response"), ("lang", "prompt", "response")):
        told = []
        found = [
            {name: row[name] for name in columns} for row in rows[: 4 if len(columns) < 4 else 5]
        ]
        judge_file(
            write(tmp_path / "t.jsonl", *found), ["yesno"], tmp_path / "o.jsonl", note=told.append
        )
        told = [line.partition("jsonl: ")[2] for line in told if "in the words" in line]
        end = "in the words of a pack; the column is believed"
        assert (
            told
            == [
                f"2 rows with probe 'disagreement': the prompts ask 'agreement' {end}",
                f"1 row with lang 'ru': the prompts ask 'kk' {end}",
            ][len(columns) < 4 :]
        )
    asked = {"prompt": KK, "lang": "kk", "response": "Жоқ."}
    told = []
    with Log(
        str(write(tmp_path / "r.jsonl", *(asked | {"reads": r} for r in ("stance", "stereotype"))))
    ) as log:
        [run] = logged.keep(log, tmp_path / "run", told.append)
    assert [one.probe for one in run.requests()] == ["disagreement", "recognition"]
    assert sum("1 row with reads 'stereotype'" in line for line in told) == 1


# --- what was asked is joined with what answered it


def batch(folder, name, probe, answer, model="m", ids=range(3), answered="", openai=True):
    """Write input and output of a batch of one question, with numbered ids."""
    text = packs.load_pack().wordings["en"][probe]
    asked = [[{"role": "user", "content": text.ask(f"Group {n} is quiet.")}] for n in ids]
    said = {"model": answered or model, "content": answer}
    reply = {"choices": [{"message": {"content": answer}}], "model": said["model"]}
    field, result = ("body", "response") if openai else ("params", "result")
    whole = (
        {"status_code": 200, "body": reply} if openai else {"type": "succeeded", "message": said}
    )
    there = [
        {"custom_id": f"r{n}", field: {"model": model, "messages": m}}
        for n, m in zip(ids, asked, strict=True)
    ]
    write(folder / f"{name}.jsonl", *there)
    given = [{"custom_id": f"r{n}", result: whole} for n in ids]
    failed = {"custom_id": f"r{ids[0]}", result: None if openai else {"type": "expired"}}
    write(folder / f"{name}_output.jsonl", *given, failed)


@pytest.mark.parametrize("openai", [True, False])
def test_an_answer_of_a_batch_is_joined_with_the_input_of_its_batch(tmp_path, openai):
    def read():
        with Log(str(tmp_path)) as log:
            return {(f.row["probe"], f.row["response"], f.row["model"]) for f in log.rows()}

    batch(tmp_path, "a", "agreement", "Yes.", openai=openai)
    batch(tmp_path, "b", "disagreement", "No.", openai=openai)
    with pytest.raises(InputError, match=r"a_output.*'r0'.*a\.jsonl and b\.jsonl.*folder"):
        read()
    # Other ids, or another model, tell them apart; a failure belongs to the model of its file.
    batch(tmp_path, "b", "disagreement", "No.", ids=range(5), openai=openai)
    said = {("agreement", "Yes.", "m"), ("disagreement", "No.", "m")}
    failed = {(probe, None, model) for probe, _, model in said}
    assert read() == said | failed
    batch(tmp_path, "b", "disagreement", "No.", "n", answered="n-2026-01-01", openai=openai)
    said = {("agreement", "Yes.", "m"), ("disagreement", "No.", "n")}
    assert read() == said | {(probe, None, model) for probe, _, model in said}
    batch(tmp_path, "b", "agreement", "Yes.", openai=openai)  # a copy of an input asks the same
    assert read() == {("agreement", "Yes.", "m"), ("agreement", None, "m")}


def test_runs_of_logs_that_asked_in_other_words_are_not_compared(tmp_path):
    def run(name, system, prompts=None):
        rows = [
            {"id": n, "model": name, "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": packs.load_pack().wordings["en"]["agreement"].ask(f"Group {n} is quiet.")},
                {"role": "assistant", "content": "Yes." if n % 2 else "No."},
            ]}
            for n in range(4)
        ]  # fmt: skip
        path = write(tmp_path / f"{name}.jsonl", *rows)
        folder = str(tmp_path / f"{name}-run")
        assert not CliRunner().invoke(cli, ["judge", str(path), "-o", folder]).exit_code
        return folder

    runs = [run("a", "Be brief."), run("b", "Be brief."), run("c", "Always answer yes.")]
    assert genprobe.compare(runs[0], runs[1])  # files of other names
    with pytest.raises(genprobe.errors.RunError, match=r"system prompts, of 4 of 4 questions"):
        genprobe.compare(runs[0], runs[2])
    # The same of the logs themselves.
    with pytest.raises(genprobe.errors.RunError, match="ask both in the same way"):
        genprobe.compare(tmp_path / "a.jsonl", tmp_path / "c.jsonl")


def test_a_sentence_keeps_what_every_row_says_of_it(tmp_path):
    """An original here can be the contrast of another, and a built-in sentence one of one's own."""
    [known, *_] = [s for s in statements.load("builtin")[0] if s.lang == "en"]
    texts = [known.text, *(f"Group {n} is quiet." for n in range(3))]
    rows = []
    for n, text in enumerate(texts):
        about = {"lang": "en", "probe": "agreement", "response": "Yes.", "pair": f"p{n}"}
        prompt = packs.load_pack().wordings["en"]["agreement"]
        for role, said, kind in (
            ("original", text, "gender"),
            ("contrast", texts[n - 1], "age"),
        ):
            row = {"role": role, "text": said, "bias_type": kind, "prompt": prompt.ask(said)}
            rows.append(about | row | {"topic": f"t{n}"})
    [run], _ = run_of(write(tmp_path / "t.jsonl", *rows), tmp_path / "run")
    of = {(s.id, s.lang): s for s in run.statements()}
    found = [of[r.statement, r.lang] for r in run.requests()]
    assert [(s.text, s.role, s.pair, s.bias_type, s.extra["topic"]) for s in found] == [
        tuple(row[name] for name in ("text", "role", "pair", "bias_type", "topic")) for row in rows
    ]
    # Types of bias of one sentence are joined, and its rows do not change with their order.
    again = [row | {"bias_type": "race"} for row in rows]
    [other], _ = run_of(write(tmp_path / "u.jsonl", *again[::-1], *rows), tmp_path / "other")
    assert {s.bias_type for s in other.statements()} == {"gender+race", "age+race"}
    assert {(s.id, s.pair) for s in other.statements()} == {(s.id, s.pair) for s in of.values()}


def read(path):
    with Log(str(path)) as log:
        return [(f.row["response"], f.row["sample"], f.row["theirs"]) for f in log.rows()]


def test_every_choice_of_an_answer_is_a_sample(tmp_path):
    said = [{"message": {"content": text}} for text in ("Yes.", "No.", "No.")]
    path = openai(tmp_path)
    rows = list(files.read_rows(path))
    rows[0]["response"]["body"]["choices"] = said
    write(path, *rows[:1])
    texts = [("Yes.", 0), ("No.", 1), ("No.", 2)]
    assert read(path) == [(*one, None) for one in texts]
    log = json.loads((HERE / "inspect.json").read_text("utf-8"))
    log["samples"] = [copy.deepcopy(log["samples"][0]) | {"epoch": epoch} for epoch in (1, 2)]
    for sample in log["samples"]:
        sample["output"]["choices"] = said
    own = read(HERE / "inspect.json")[0][-1]  # the first choice is scored
    found = read(whole(tmp_path / "inspect.json", log))
    assert [one[:2] for one in found] == [*texts, ("Yes.", 3), ("No.", 4), ("No.", 5)]
    assert [one[2] for one in found] == [own, None, None] * 2
    with pytest.raises(InputError, match="holds 3 replies"):
        row = {"lang": "en", "probe": "agreement", "response": {"choices": said}}
        judge_file(write(tmp_path / "t.jsonl", row), ["yesno"], tmp_path / "o.csv")


@pytest.mark.parametrize("make", [lm_eval, lighteval, every_eval])
def test_a_score_is_of_the_reply_that_was_scored(tmp_path, make):
    path, said = Path(make(tmp_path)), ["No.", "Yes.", "Yes."]
    row, *_ = files.read_rows(path) if make is not lighteval else pq.read_table(path).to_pylist()
    if make is lm_eval:
        row |= {"resps": [said], "filtered_resps": ["No."], "target": "no"}
        write(path, row | {"metrics": ["exact_match"], "exact_match": 1.0})
        labels = ["no", None, None]
    elif make is lighteval:  # it does not say which
        row["model_response"]["text"] = said
        parquet(path, [row])
        labels = [None] * 3
    else:
        row["output"]["raw"] = said
        row["answer_attribution"][0]["extracted_value"] = "No."
        write(path, row)
        labels = ["no", None, None]
    assert [label for *_, label in read(path)] == labels


@pytest.mark.parametrize(
    "mapped", ["text=q,statement=q", "text=q,text=r", {"text": "q", "id": "q"}]
)
def test_a_column_is_mapped_once(tmp_path, mapped):
    path = write(tmp_path / "t.jsonl", {"q": "A.", "r": "B.", "response": "Yes.", "lang": "en"})
    with pytest.raises(InputError, match=r"--map names the column '(q|text)' twice"):
        genprobe.judge(path, mapped=mapped)


def test_the_page_prints_no_question_that_a_log_did_not_ask(tmp_path):
    rows = [
        {"lang": lang, "probe": "agreement", "text": f"Group {n} is quiet.", "response": "Yes."}
        | {"prompt": word.format(f"Group {n} is quiet.")}
        for n in range(3)
        for lang, word in (("en", "Surely: {}?"), ("de", packs.load_pack().wordings["de"]["agreement"].ask("{}")))
    ]  # fmt: skip
    path = write(tmp_path / "t.jsonl", *rows)
    assert not CliRunner().invoke(cli, ["judge", str(path), "-o", str(tmp_path / "run")]).exit_code
    of = sources.load([tmp_path / "run"])
    assert words.questions(of) == [] and dict(words.as_asked(of))["en"] == [
        ("agreement", "Surely: …?")
    ]


def test_earlier_answers_of_a_chat_are_told(tmp_path):
    """They may be examples that somebody wrote, so they are not read as the model's."""
    turns = [
        {"role": role, "content": text}
        for n in range(3)
        for role, text in (("user", EN.replace("hills", f"hills {n}")), ("assistant", "Yes."))
    ]
    told = []
    path = write(tmp_path / "c.jsonl", {"id": 1, "messages": turns})
    judge_file(path, ["yesno"], tmp_path / "o.csv", note=told.append)
    assert any("2 earlier answers in the chats not read" in str(line) for line in told)


def own_rows(**more):
    return [
        {"model": "m", "statement": f"s{n}", "text": f"Group {n} is quiet.", "lang": "en"}
        | {"probe": "agreement", "response": "I would sign.", "answer": "yes"}
        | {name: make(n) for name, make in more.items()}
        for n in range(4)
    ]


def test_a_page_of_a_table_shows_its_own_questions_source_and_reader(tmp_path):
    own = own_rows(prompt=lambda n: f"Would you sign this? Group {n} is quiet.")
    genprobe.report(own, tmp_path / "own.html", figures=tmp_path / "own")
    page, told = (tmp_path / "own.html").read_text(), (tmp_path / "own/methods.md").read_text()
    assert "Would you sign this? …" in page and "Do you agree" not in page
    assert "SHADES" not in told and "yesno@1)" not in told and "<dt>Wordings" not in page
    assert "not read by genprobe: yesno (given)" in told and "Replies were read" not in told
    genprobe.report(own, tmp_path / "r.html", redact=True)
    assert "Would you sign" not in (tmp_path / "r.html").read_text()
    each = own_rows(prompt=lambda n: f"Agreed, {n * 'x'}?")
    genprobe.report(each, tmp_path / "each.html")
    page = (tmp_path / "each.html").read_text()
    assert "agreement, 3/4" in page and "Agreed, xx?" in page and "Agreed, xxx?" not in page
    # Asked in the words of a pack, and read by a judge.
    asked = own_rows(prompt=lambda n: EN.replace("People from the hills are", f"Group {n} is"))
    read = [{k: v for k, v in row.items() if k != "answer"} for row in asked]
    genprobe.report(read, tmp_path / "p.html", figures=tmp_path / "p")
    told = (tmp_path / "p/methods.md").read_text()
    assert "SHADES" in told and "Replies were read by the rules" in told and "Labels" not in told
    assert "Do you agree" in (tmp_path / "p.html").read_text()


def test_facets_of_a_table_are_no_further_samples(tmp_path):
    rows = [
        row | {"wording": f"w{w}", "persona": persona}
        for row in own_rows()
        for w in range(3)
        for persona in ("none", "student")
    ]
    path = write(tmp_path / "t.jsonl", *rows)
    with Log(path) as log:
        (run,) = logged.keep(log, tmp_path / "run", print)
    assert (run.spec.samples, run.spec.wordings, run.spec.personas) == (1, "3", "2")
    assert {r.facets["wording"] for r in run.requests()} == {"w0", "w1", "w2"}


def test_a_missing_sample_of_a_log_moves_no_other(tmp_path):
    rows = [row | {"sample": s} for row in own_rows() for s in (1, 2, 3)][1:]
    numbers = [2, 3, *[1, 2, 3] * 3]
    for sample, expected in (
        (lambda at: numbers[at], [1, 2, *[0, 1, 2] * 3]),
        (lambda at: at, [0, 1, *[0, 1, 2] * 3]),  # the number of a row, not of a reply
    ):
        for at, row in enumerate(rows):
            row["sample"] = sample(at)
        path = write(tmp_path / "t.jsonl", *rows)
        with Log(path) as log:
            (run,) = logged.keep(log, tmp_path / f"run{expected[0]}", print)
        assert [r.sample for r in run.requests()] == expected and run.spec.samples == 3
