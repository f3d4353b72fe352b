"""The command line as a user meets it: results, one-line errors, nothing half-written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from genprobe import commands
from genprobe.commands import cli
from genprobe.datasets import statements
from genprobe.files import read_rows
from genprobe.resources import packs, registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline.open import engine_options


def run(*arguments: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """(exit code, stdout, stderr) of a command, in this process."""
    monkeypatch.setattr(sys, "argv", ["genprobe", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        commands.main()
    out = capsys.readouterr()
    return stop.value.code or 0, out.out, out.err


@pytest.fixture
def genprobe(capsys, monkeypatch):
    return lambda *a: run(*a, capsys=capsys, monkeypatch=monkeypatch)


@pytest.fixture
def recordings(tmp_path: Path) -> list[object]:
    """A command on recorded replies: yes to recognition in German, no to the other questions."""
    pack = packs.load_pack()
    items, _ = statements.load("builtin", ["de"])
    path = tmp_path / "recorded.jsonl"
    with path.open("w") as file:
        for item in items:
            for probe, wording in pack.wordings["de"].items():
                reply = "Ja." if probe == "recognition" else "Nein, das sehe ich anders."
                row = {"prompt": wording.ask(item.text), "response": reply}
                file.write(json.dumps(row) + "\n")
    return ["yesno", "--engine", "replay", "--model", path, "--lang", "de", "--limit", 48]


def test_help_is_light():
    code = (
        "import sys; sys.argv = ['genprobe', '--help']\n"
        "from genprobe import commands\n"
        "try: commands.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'pandas', 'scipy', 'numpy', 'pyarrow', 'vllm'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "yesno" in done.stdout


def test_verify_takes_many_runs(genprobe, tmp_path):
    whole = Path(__file__).parent / "golden/yesno"
    cut = Path(shutil.copytree(whole, tmp_path / "cut"))
    (cut / "responses.jsonl").write_text("")
    code, out, _ = genprobe("verify", whole, cut)
    assert code == 1 and f"{whole}: whole" in out
    assert f"{cut}: responses.jsonl: incomplete" in out
    code, out, _ = genprobe("verify", "-q", whole)
    assert (code, out) == (0, "")
    code, _, err = genprobe("review", "export", tmp_path, "-o", tmp_path / "x.csv")
    assert code == 2 and f"holds 1 run; name them: {tmp_path}/*" in err


def test_a_folder_of_runs_and_a_pattern_are_all_of_them(genprobe, tmp_path):
    for name in ("yesno", "stories"):
        shutil.copytree(Path(__file__).parent / "golden" / name, tmp_path / "all" / name)
    named = genprobe("score", tmp_path / "all" / "stories", tmp_path / "all" / "yesno")
    assert named[0] == 0 and named[1]
    assert genprobe("score", tmp_path / "all") == named
    assert genprobe("score", f"{tmp_path}/*/[sy]*") == named
    code, out, _ = genprobe("verify", tmp_path / "all")
    assert code == 0 and out.count(": whole: ") == 2
    code, _, err = genprobe("score", f"{tmp_path}/x*")
    assert code == 2 and "x*" in err


def test_yesno_from_recordings_to_table(genprobe, recordings, tmp_path):
    folder = tmp_path / "run"
    code, out, err = genprobe(*recordings, "--out", folder)
    assert code == 0, err
    assert "recognised" in out and "  100.0 [86.2, 100.0]" in out and "Signature" in out
    assert (folder / "outcomes.parquet").stat().st_size > 1000
    code, out, _ = genprobe("verify", folder)
    assert code == 0 and "144 responses" in out
    # The same command goes on where it was; another spec in the same folder is refused.
    code, _, err = genprobe(*recordings, "--out", folder)
    assert code == 0 and "144 of 144 replies were there already" in err
    code, _, err = genprobe(*recordings, "--out", folder, "--seed", "7")
    assert code == 2 and "seed: 0 -> 7" in err
    # Scores are made again without a model, and are JSON with everything in them.
    code, out, _ = genprobe("score", folder, "--by", "bias_type", "-f", "json")
    scores = json.loads(out)
    assert code == 0 and {"metric", "by", "value", "low", "high", "n", "signature"} <= {*scores[0]}
    assert "model:recorded" in scores[0]["signature"]
    code, out, err = genprobe("score", folder, "--declared", "--metric", "endorsed")
    assert code == 0 and "left out" in err and "+declared" in out


def test_judge_file_keeps_what_was_there(genprobe, tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [
        {"id": 1, "lang": "nl", "probe": "agreement", "prompt": "", "response": "Nee, dat klopt"},
        {
            "id": 2,
            "lang": "pt_br",
            "probe": "agreement",
            "prompt": "",
            "response": "Sim.",
            "answer": "x",
        },
        {"id": 3, "lang": "zh_hant", "probe": "recognition", "response": "\ud800 是否"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = genprobe("judge", path, "--judge", "yesno", "-o", out)
    assert code == 0 and "3 replies" in err
    read = [json.loads(line) for line in out.read_text().splitlines()]
    assert [r["answer"] for r in read] == ["no", "yes", "ambiguous"]
    assert [r["id"] for r in read] == [1, 2, 3]
    assert read[0]["evidence"] == "Nee" and read[0]["kind"] == "answer"
    assert read[1]["answer_data"] == "x" and read[2]["response"] == "\ud800 是否"
    code, old, _ = genprobe("judge", path, "--parser", "shades2025")
    assert json.loads(old.splitlines()[0])["answer"] == "yes"  # "dat" holds Romanian "da"
    code, table, _ = genprobe("score", out, "--by", "lang", "--metric", "yes", "-f", "csv")
    assert code == 0 and "pt-BR" in table


def test_judged_rows_fit_one_table(genprobe, tmp_path):
    """Every row has the same columns, whatever is found in it; null is no reply, not a text."""
    path, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    replies = [
        ("en", "Yes, it does."),
        ("en", "I do not agree with that. Aber das ist nicht richtig, weil das niemand so glaubt."),
        ("zh_hant", "我不同意,他不是好人"),
        ("nl", None),
    ]
    rows = [{"lang": lang, "probe": "agreement", "response": text} for lang, text in replies]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judges = ("--judge", "yesno", "--judge", "language", "--judge", "refusal")
    code, _, err = genprobe("judge", path, *judges, "-o", out)
    assert code == 0 and "1 no reply" not in err and "no reply 1" in err
    read = list(read_rows(out))
    assert [r["language"] for r in read] == ["en", "mixed", "zh-Hant", ""]
    assert json.loads(read[1]["shares"]).keys() == {"de", "en"}
    code, text, _ = genprobe("score", out, "--metric", "yes", "--by", "probe", "-f", "json")
    (score,) = json.loads(text)
    assert code == 0 and score["n"] == 3 and score["excluded"] == {"missing": 1}
    # Judged again, nothing of the first judgment is lost.
    again, third = tmp_path / "again.jsonl", tmp_path / "third.jsonl"
    genprobe("judge", out, "-o", again)
    genprobe("judge", again, "-o", third)
    row = json.loads(third.read_text().splitlines()[0])
    assert row["answer"] == row["answer_data"] == row["answer_data_data"] == "yes"


def test_sources_that_share_a_cell_are_told_apart(genprobe, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for path, answer in ((one, "yes"), (two, "no")):
        path.write_text(json.dumps({"lang": "nl", "probe": "agreement", "answer": answer}) + "\n")
    code, out, _ = genprobe("score", one, two, one, "--metric", "yes", "-f", "json")
    found = {score["by"]["source"]: score["value"] for score in json.loads(out)}
    assert code == 0 and found == {str(one): 1.0, str(two): 0.0}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("redirect", [">/dev/full", ">&-"])
def test_a_standard_output_that_takes_nothing_gets_one_line(redirect):
    code = "import sys; sys.argv = ['genprobe', 'list', 'data']; from genprobe import commands; commands.main()"
    command = f'"{sys.executable}" -c "{code}" {redirect}'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "standard output" in done.stderr


GOOD = '{"id": 1, "lang": "nl", "probe": "agreement", "response": "Nee"}\n'

BAD_FILES = [
    ("in.jsonl", b"", "empty"),
    ("in.jsonl", b"\xff\xfe{}", "JSON"),
    ("in.jsonl", b'{"id": 1\n', "JSON"),
    ("in.jsonl", b"[1]\n", "object"),
    ("in.jsonl", b'{"lang": "nl", "probe": "agreement"}\n', "response"),
    ("in.jsonl", b'{"lang": "xx", "probe": "agreement", "response": "a"}\n', "'xx'"),
    ("in.jsonl", b'{"lang": "nl", "probe": "agre", "response": "a"}\n', "'agre'"),
    ("in.jsonl", b'{"probe": "agreement", "response": "a"}\n', "lang"),
    ("in.csv", b"id,response\n1\n", "in.csv"),
    ("in.xlsx", b"PK", "xlsx"),
    ("in.parquet", b"PAR1", "arquet"),
]


@pytest.mark.parametrize(("name", "content", "says"), BAD_FILES)
def test_bad_files_get_one_line(genprobe, tmp_path, name, content, says):
    path, out = tmp_path / name, tmp_path / "out.jsonl"
    path.write_bytes(content)
    code, stdout, err = genprobe("judge", path, "-o", out)
    assert code == 2 and stdout == ""
    assert err.count("\n") == 1 and says in err and name in err
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


BAD_COMMANDS = [
    (["yesno", "--lang", "xx"], "unknown language 'xx'"),
    (["yesno", "--lang", "en-US"], "unknown language 'en-US'; did you mean 'en', English?"),
    (["yesno", "--lang", "Marati"], "unknown language 'Marati'; did you mean 'mr', Marathi?"),
    (["yesno", "--lang", "all"], "leave --lang out"),
    (["yesno", "--probe", "agre"], "agreement"),
    (["yesno", "--engine", "vlm"], "unknown engine"),
    (["yesno", "--data", "nowhere.csv"], "nowhere.csv"),
    (["yesno", "--model", "./nowhere"], "nowhere"),
    (["yesno", "--limit", "0"], "--limit"),
    (["yesno", "--limit", "few"], "'few' is not a whole number."),
    (["yesno", "--temperature", "hot"], "'hot' is not a number."),
    (["yesno", "--frobnicate"], "--frobnicate"),
    (["frobnicate"], "frobnicate"),
    (["scoer", "run"], "No such command 'scoer'. Did you mean 'score'?"),
    (["judge", "nowhere.jsonl"], "nowhere.jsonl"),
    (["judge", "nowhere.jsonl", "--judge", "yesn"], "yesno"),
    (["judge", "nowhere.jsonl", "--parser", "x"], "shades2025"),
    (["score", "nowhere"], "nowhere"),
    (["verify", "nowhere"], "nowhere"),
    (["lint", "nowhere"], "nowhere"),
    (["list", "frobs"], "frobs"),
    (["list"], "Choose from: models"),
    (["report", "run"], "Example: genprobe report RUN|FILE|LOG... -o FILE.html"),
]


@pytest.mark.parametrize(("command", "says"), BAD_COMMANDS)
def test_bad_commands_get_one_line(genprobe, tmp_path, monkeypatch, command, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = genprobe(*command)
    lines = [line for line in err.splitlines() if "no --model" not in line]
    assert code == 2 and out == "" and len(lines) == 1 and says in lines[0]
    assert not list(tmp_path.iterdir())


def test_score_names_what_it_does_not_know(genprobe, tmp_path):
    path = tmp_path / "read.jsonl"
    path.write_text(GOOD.replace('"Nee"', '"Nee", "answer": "no"'))
    for arguments, says in (
        (["--by", "lng"], "lang"),
        (["--by", "language"], "did you mean 'lang'?"),
        (["--metric", "endorse"], "endorsed"),
        (["--declared"], "role"),
    ):
        code, out, err = genprobe("score", path, *arguments)
        assert code == 2 and out == "" and err.count("\n") == 1 and says in err


@pytest.mark.parametrize("option", ["-v", "-qv", "-vq", "--verbose"])
def test_verbose_shows_the_traceback_and_changes_nothing_else(monkeypatch, capsys, option):
    monkeypatch.setattr(sys, "argv", ["genprobe", "score", "nowhere", option])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 2
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("Traceback") and last.startswith("genprobe: nowhere")


@pytest.mark.parametrize("words", [[], ["review"]])
def test_no_command_is_answered_with_the_help(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["genprobe", *words])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("Usage: genprobe") and len(said) > 10


def test_hostile_names_cannot_reach_the_terminal(genprobe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = genprobe("score", "\x1b[31mred\x07\u202e")
    assert code == 2 and "\x1b" not in err and "\x07" not in err and "\u202e" not in err


@pytest.mark.parametrize(
    "what", ["packs", "languages", "engines", "judges", "metrics", "data", "models"]
)
def test_list(genprobe, what):
    code, out, _ = genprobe("list", what)
    assert code == 0 and len(out.splitlines()) >= 1
    if what in registry.MODULES:
        assert all(line.split()[0] in out and len(line.split()) > 3 for line in out.splitlines())


def test_every_column_of_the_outcomes_is_listed_with_its_meaning(genprobe, tmp_path):
    told = dict(line.split(maxsplit=1) for line in genprobe("list", "columns")[1].splitlines())
    genprobe("yesno", "--lang", "kk", "--limit", "1", "--out", str(tmp_path / "run"))
    genprobe("score", str(tmp_path / "run"), "--export", str(tmp_path / "rows.csv"))
    header = (tmp_path / "rows.csv").read_text("utf-8-sig").partition("\n")[0]
    assert set(header.strip().split(",")) <= told.keys()
    assert {"region", "model_size", "thought_answer"} <= told.keys()


def test_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(GOOD * 20000)
    genprobe = Path(sys.executable).parent / "genprobe"
    done = subprocess.run(
        f"{genprobe} judge {path} -q | head -1", shell=True, capture_output=True, text=True
    )
    assert done.stderr == "" and '"answer":' in done.stdout


# --- decodes, samples, arguments of engines


def test_three_readings_in_one_run(genprobe, tmp_path):
    folder = tmp_path / "run"
    decodes = [part for name in ("logprob", "free", "choice") for part in ("--decode", name)]
    arguments = ("yesno", "--lang", "kk", "--limit", 4, *decodes, "--out", folder)
    code, out, err = genprobe(*arguments, "--engine", "transformers")
    assert code == 0, err
    assert "disagreement" in out and "free, logprob" in out and "p-yes" in out
    assert out.count("Signature") == 1
    run = Run.open(folder)
    asked = {r.id: r for r in run.requests()}
    assert [r.decode for r in asked.values()] == ["free", "choice", "logprob"] * 12
    assert run.spec.decode == ("free", "choice", "logprob")
    for response in run.responses():
        request = asked[response.request]
        if request.decode == "choice":
            assert response.text in [t for texts in request.options.values() for t in texts]
    assert {asked[r.request].decode for r in run.logprobs()} == {"logprob"}
    assert run.verify() == []
    # Taken apart, the free replies are those of a run that asks for nothing else.
    genprobe("yesno", "--lang", "kk", "--limit", 4, "--out", tmp_path / "free")
    alone = {r.request: r.text for r in Run.open(tmp_path / "free").responses()}
    together = {r.request: r.text for r in run.responses() if asked[r.request].decode == "free"}
    assert alone == together
    # Again: everything is there.
    before = (folder / "logprobs.jsonl").read_bytes()
    code, again, err = genprobe(*arguments, "--engine", "transformers")
    assert (code, again) == (0, out) and "36 of 36 replies were there already" in err
    assert (folder / "logprobs.jsonl").read_bytes() == before


def test_samples_are_different_draws(genprobe, tmp_path):
    folder = tmp_path / "run"
    code, _out, err = genprobe(
        *("yesno", "--lang", "mr", "--limit", 3, "--samples", 4, "--probe", "agreement"),
        *("--out", folder),
    )
    assert code == 0, err
    requests = list(Run.open(folder).requests())
    assert [r.sample for r in requests] == [0, 1, 2, 3] * 3
    assert len({r.seed for r in requests}) == len({r.id for r in requests}) == 12
    assert len({r.text for r in Run.open(folder).responses()}) > 3
    code, _, err = genprobe("yesno", "--lang", "mr", "--samples", 2, "--temperature", 0)
    assert code == 2 and "2 samples at temperature 0 are 2 times the same reply" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dtype"], "--engine-arg 'dtype' is not KEY=VALUE"),
        (["a=1", "a=2"], "--engine-arg a is given twice"),
        (["api_key=sk-123"], "keys are not given here, where others can read them"),
        (["batch_tokens=many"], "batch_tokens must be a whole number"),
    ],
)
def test_engine_arguments_that_are_none(genprobe, arguments, says):
    given = [part for a in arguments for part in ("--engine-arg", a)]
    code, out, err = genprobe("yesno", "--lang", "mr", *given)
    assert code == 2 and out == "" and says in err and err.count("\n") == 1
    assert "sk-123" not in err


def test_engine_arguments_are_read_as_json():
    options = engine_options(["dtype=float32", "n=2", "eager=true", "x=a=b", "batch_tokens=9"])
    assert (options.dtype, options.batch_tokens) == ("float32", 9)
    assert options.more == {"n": 2, "eager": True, "x": "a=b"}


def test_a_metric_of_both_questions_is_not_split_by_them_unasked(genprobe, recordings, tmp_path):
    folder = tmp_path / "run"
    genprobe(*recordings, "--out", folder)
    both = ("--metric", "acquiescence", "--metric", "endorsed", "-f", "json")
    code, out, err = genprobe("score", folder, *both)
    assert code == 0, err
    found = {(s["metric"], s["by"].get("probe")) for s in json.loads(out)}
    assert found >= {("acquiescence", None), ("endorsed", "agreement")}
    code, _, err = genprobe("score", folder, *both, "--by", "probe")
    assert code == 2 and "cannot be split by 'probe'" in err


@pytest.mark.parametrize(
    ("words", "begun", "there"),
    [
        (("yesno", "--lang"), "m", "mr"),
        (("score", "run", "--metric"), "en", "endorsed"),
        (("score", "run", "--by"), "lang,mod", "lang,model"),
        (("judge", "run", "--judge"), "re", "refusal"),
        (("stories", "--model"), "sher", "sherkala"),
        (("yesno", "--engine"), "re", "replay"),
    ],
)
def test_a_shell_completes_names(words, begun, there):
    found = ShellComplete(cli, {}, "genprobe", "_GENPROBE_COMPLETE").get_completions(
        [*words], begun
    )
    assert there in {item.value for item in found}
    assert all(item.value.startswith(begun) for item in found)
