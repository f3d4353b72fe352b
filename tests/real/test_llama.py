"""llama.cpp's server, by llama-cpp-python, on the control model as GGUF; from .venv-llama."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import free_port, plan

from genprobe import tasks
from genprobe.engines import Options, Sampling, Thinking, control, openai
from genprobe.engines.control import thoughts
from genprobe.errors import EngineError
from genprobe.outcomes import table
from genprobe.records import Response
from genprobe.tasks import Ask

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-llama" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="needs llama.cpp: make llama")
GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0)
LANGS = ("en", "nl")  # whose words its tokenizer cuts as ours does (tools/control_gguf.py)


@contextlib.contextmanager
def serving(model: Path, folder: Path) -> Iterator[str]:
    """The address of a server of a model, which is gone afterwards."""
    path = folder / "control.gguf"
    tool = ROOT / "tools" / "control_gguf.py"
    subprocess.run([PYTHON, tool, path, "--model", model], check=True)
    port = free_port()
    command = [PYTHON, "-m", "llama_cpp.server", "--model", path, "--model_alias", "control"]
    command += ["--n_ctx", "1024", "--n_threads", "1", "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log:  # a pipe that nobody reads would stop it
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            for _ in range(240):
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(log.read().decode(errors="replace")[-2000:])
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/models", timeout=1)
                    break
                time.sleep(0.25)
            yield url
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serving(control.MODEL, tmp_path_factory.mktemp("gguf")) as address:
        yield address


def connect(url: str, model: str = "", **more):
    return openai.open(model, Options(base_url=url, **more))


def ask(engine, requests, sampling=GREEDY) -> dict:
    engine.prepare(requests, sampling)
    records = list(engine.generate(requests, sampling))
    assert len(records) == len(requests) == len({r.request for r in records})
    return {r.request: r for r in records}


def test_greedy_replies_are_those_of_transformers(url, transformers_engine):
    requests = plan(LANGS, 12)
    ours, theirs = ask(connect(url), requests), ask(transformers_engine, requests)
    assert all(isinstance(record, Response) for record in ours.values())
    same = sum(ours[r.id].text == theirs[r.id].text for r in requests)
    tokens = sum(ours[r.id].tokens_in == theirs[r.id].tokens_in for r in requests)
    assert tokens >= 0.9 * len(requests)
    assert same >= 0.9 * len(requests)


def test_a_choice_is_forced_by_a_grammar(url, transformers_engine):
    requests = plan(LANGS, 6, decodes=("choice",))
    engine = connect(url)
    ours, theirs = ask(engine, requests), ask(transformers_engine, requests)
    for request in requests:
        assert ours[request.id].text in [t for texts in request.options.values() for t in texts]
    assert engine.server.choice == "grammar"
    assert sum(ours[r.id].text == theirs[r.id].text for r in requests) >= 0.9 * len(requests)


def test_a_seed_gives_one_text(url):
    requests = plan(("en",), 6, samples=2)
    first, again = ask(connect(url), requests, DRAWN), ask(connect(url), requests[::-1], DRAWN)
    same = sum(first[r.id].text == again[r.id].text for r in requests)
    assert same >= 0.9 * len(requests)
    assert len({r.text for r in first.values()}) > 5


def test_what_it_cannot_do_is_one_line(url):
    with pytest.raises(EngineError, match=r"does not serve 'other'.*it has: control"):
        connect(url, "other")
    with pytest.raises(EngineError, match="--decode logprob needs"):
        ask(connect(url), plan(("en",), 1, decodes=("logprob",)))


def test_a_prompt_that_is_too_long_fails_alone(url):
    requests = plan(("en",), 1)
    long = [{"role": "user", "content": "very " * 3000}]
    requests.append(type(requests[0])(**{**vars(requests[0]), "id": "long", "messages": long}))
    found = ask(connect(url), requests)
    assert found.pop("long").kind == "too-long"
    assert all(isinstance(record, Response) for record in found.values())


def test_a_model_that_thinks_is_given_room_for_it(tmp_path):
    notes = []
    with serving(thoughts.MODEL, tmp_path) as url:
        ask_ = Ask(
            langs=("en",),
            limit=8,
            sampling=Sampling(temperature=1.0, max_tokens=thoughts.MAX_TOKENS),
            options=Options(base_url=url, note=notes.append, thinking=Thinking(tokens=60)),
            out=tmp_path / "run",
            note=notes.append,
        )
        run = tasks.run("yesno", ask_)
    outcomes = table.outcomes(run)
    states = outcomes["thought_state"].value_counts()
    assert run.spec.thinking_seen == "thinks"
    assert states["closed"] > 12
    assert (outcomes["kind"][outcomes["thought_state"] == "open"] == "unfinished").all()
