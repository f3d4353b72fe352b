"""Reading, counting and reporting need neither torch nor transformers: with both of them away, they work,
and what runs a model says in one line what to install."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from genprobe.files import write_rows
from genprobe.resources import registry

GOLDEN = Path(__file__).parent / "golden"

# The packages cannot be found, and commands run one after the other, since each start costs a second.
AWAY = """
import importlib.abc, json, sys

class Away(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Away())
import genprobe
from genprobe.commands import main
for words in json.load(sys.stdin):
    sys.argv = ["genprobe", *words.split()]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print(f"== {code}", file=sys.stderr, flush=True)
assert not {"torch", "transformers"} & {*sys.modules}
"""


def without_models(*commands, folder):
    """The exit code of each command, and what it said on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", AWAY], input=json.dumps(commands), capture_output=True, text=True,
        cwd=folder, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parts = re.split(r"^== (\d+)\n", done.stderr, flags=re.MULTILINE)
    assert len(parts) == 2 * len(commands) + 1, done.stderr
    return list(zip(map(int, parts[1::2]), parts[::2], strict=False))


def test_replies_are_read_counted_compared_and_reported(tmp_path):
    shutil.copytree(GOLDEN / "stories", tmp_path / "stories")
    texts = [
        {"id": f"s{n}", "lang": "en", "text": f"Cooks of village {n} are loud."} for n in range(8)
    ]
    write_rows(tmp_path / "data.jsonl", texts)
    for name in ("one", "two"):
        said = [{"statement": row["id"], "lang": "en", "probe": "agreement"} for row in texts]
        answers = ["Yes.", "No."] if name == "one" else ["No.", "Yes.", "Yes."]
        rows = [row | {"response": answers[at % len(answers)]} for at, row in enumerate(said)]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    asked = "--lang en --probe agreement --data data.jsonl --engine replay -q"
    found = without_models(
        *(f"yesno {asked} --model {name}.jsonl --out {name}" for name in ("one", "two")),
        "judge stories --judge story --judge sentiment -q",
        "score one stories -q",
        "compare one two -q",
        "gate one --against two --max-rise endorsed=99",
        "report one -o page.html -q",
        "verify one stories --recompute -q",
        folder=tmp_path,
    )
    assert [code for code, _ in found] == [0] * len(found), found


def test_what_runs_a_model_says_in_one_line_what_to_install(tmp_path):
    shutil.copytree(GOLDEN / "yesno", tmp_path / "yesno")
    shutil.copytree(GOLDEN / "stories", tmp_path / "stories")
    extras = {
        "yesno --lang mr --limit 1 --out x": "models",
        "logprob --lang en --limit 1 --out x": "models",
        "yesno --lang mr --engine vllm --model a/b --out x": "vllm",
        "yesno --lang mr --engine ray --model a/b --out x": "ray",
        "judge yesno --second-reader a/b": "models",
        "judge stories --judge sentiment --classifier xlm-roberta": "models",
        "selftest": "models",
    }
    found = without_models(*extras, folder=tmp_path)
    for (command, extra), (code, said) in zip(extras.items(), found, strict=True):
        last = said.strip().splitlines()[-1]
        assert code == 2 and last.endswith(f"; `pip install 'genprobe[{extra}]'`"), (command, said)
        assert "not installed" in last and "Traceback" not in said
    assert not (tmp_path / "x").exists()


def test_a_module_is_described_without_importing_it():
    assert registry.about("engines", "vllm").startswith("Models through vLLM")
    for name in registry.names("judges"):
        doc = registry.module("judges", name).__doc__
        assert registry.about("judges", name) == doc.strip().split("\n")[0]


def test_a_file_of_replies_is_read_without_numpy(tmp_path):
    """It is loaded in a tenth of a second, which is a tenth of the start of a command."""
    row = {"lang": "en", "probe": "agreement", "response": "I agree with this."}
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    code = (
        "import sys; from genprobe.commands import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'pandas', 'pyarrow'} & {*sys.modules}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "judge", "replies.jsonl", "-o", "read.jsonl"],
        capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "read.jsonl").read_text(encoding="utf-8"))["answer"] == "yes"
