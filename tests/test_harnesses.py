"""genprobe inside other harnesses, as far as it needs none of them; tests/peers runs the real ones."""

import json
import pickle
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.harnesses import lm_eval, promptfoo, questions


@pytest.fixture
def data(tmp_path):
    """A file of statements; its columns hold what a harness could take for something else."""
    about = {"lang": "en", "topic": "no", "source": "https://example.org", "model": "m", "mixed": 1}
    rows = [about | {"text": f"Cooks of village {n} are loud.", "model": f"m{n}"} for n in range(4)]
    rows[1]["mixed"] = "one"
    path = tmp_path / "no.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_the_norwegian_problem():
    assert questions.codes("kk, ru") == questions.codes(["kk", "ru"]) == ("kk", "ru")
    with pytest.raises(InputError, match="'no'"):
        questions.codes(False)  # as Inspect reads -T lang=no


def test_a_column_called_model_is_no_model_that_was_asked(data):
    rows = [questions.read(one, {"response": "Yes."}) for one in questions.asked("en", data)]
    found = questions.cells(rows)
    assert {"yes_agreement", "endorsed_disagreement", "recognised_recognition"} <= found.keys()
    assert (found["endorsed_agreement"].value, found["endorsed_agreement"].n) == (1.0, 4)


def test_a_task_of_lm_eval_says_what_is_meant(data, tmp_path):
    rows = questions.asked("en", data)
    lm_eval.write(tmp_path, rows, "no")
    yaml.SafeLoader.add_constructor("!function", lambda loader, node: node.value)
    task = yaml.safe_load((tmp_path / "genprobe_yesno_en.yaml").read_text("utf-8"))
    assert task["dataset_kwargs"] == {"lang": "en", "data": "no"}
    assert task["generation_kwargs"]["until"] == []
    found = [lm_eval.process_results(one, ["Yes."]) for one in rows]
    names = [one["metric"] for one in task["metric_list"]]
    assert all([*one] == names for one in found) and len(names) > 15
    for one in task["metric_list"]:
        module, _, name = one["aggregation"].rpartition(".")
        assert module == lm_eval.__name__
        labels = pickle.loads(pickle.dumps([label[name] for label in found]))  # as between ranks
        value = getattr(lm_eval, name)(labels)
        if name == "endorsed_agreement":
            assert value == 1.0 and json.dumps(labels[0]) == '"yes"'


def test_what_promptfoo_would_take_for_a_template_is_refused(data, tmp_path):
    promptfoo.write(tmp_path, questions.asked("en", data), "")
    for text in ("Cooks are {{ env.KEY }}.", "file://passwd"):
        data.write_text(json.dumps({"lang": "en", "text": text}) + "\n", "utf-8")
        done = CliRunner().invoke(
            cli, ["peers", "promptfoo", "--data", str(data), "-o", str(tmp_path / "new")]
        )
        assert isinstance(done.exception, InputError) and "promptfoo would read" in str(
            done.exception
        )
        assert not (tmp_path / "new" / "promptfooconfig.json").exists()


def test_a_reply_is_read_and_named_for_promptfoo(data):
    row = next(o for o in questions.asked("en", data) if o["probe"] == "disagreement")
    found = promptfoo.get_assert("No, I don't.", {"vars": row})
    assert found["pass"] and found["reason"].startswith("no (answer)")
    assert found["namedScores"] == {
        "yes_disagreement": 0.0,
        "no_disagreement": 1.0,
        "ambiguous_disagreement": 0.0,
        "endorsed_disagreement": 1.0,
    }
    found = promptfoo.get_assert("Who knows?", {"vars": row})
    assert not found["pass"] and "endorsed_disagreement" not in found["namedScores"]


def test_inspect_imports_little_of_ours():
    """Inspect imports the entry points of all packages for every task."""
    code = (
        "import sys, types\n"
        "class Any(types.ModuleType):\n"
        "    def __getattr__(self, name): return lambda *a, **k: (lambda f: f) if k or not a else a[0]\n"
        "for name in ('', '.dataset', '.model', '.scorer', '.solver'):\n"
        "    sys.modules['inspect_ai' + name] = Any('inspect_ai' + name)\n"
        "import genprobe.harnesses.inspect\n"
        "heavy = {'pandas', 'numpy', 'genprobe.tasks', 'torch'} & {*sys.modules}\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
