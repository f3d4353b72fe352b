"""Checkpoints of a model of the hub: real requests, to a hub of our own on this machine.

It answers as huggingface.co does: a small file by a redirect within the hub, weights by one to
another host, with the commit and the size in the headers of the redirect.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest
import torch
import transformers
from click.testing import CliRunner
from huggingface_hub import constants

from genprobe import api
from genprobe.analysis import score
from genprobe.audits.audit import audit
from genprobe.commands import cli
from genprobe.engines import Options, control
from genprobe.engines import transformers as transformers_engine
from genprobe.errors import EngineError, RowErrors
from genprobe.records import Score
from genprobe.report import figures
from genprobe.runs.run import Run

pytestmark = pytest.mark.slow

MODEL = "tests/tiny"
TOKEN = "hf_notforothers"
ASKED = ("logprob", "--lang", "en", "--limit", "4", "--scorer", "loglik")
STEPS = {"step-10": 10, "step-2": 2}  # branch -> seed of its weights


class Hub(http.server.ThreadingHTTPServer):
    """A hub of one model, a commit a branch. seen: (method, path) of every request. hold: a part of
    a path whose request is answered when `free` is set; `held` is then set. refusal: a part
    of a path, and the status, code and message that such requests get."""

    daemon_threads = True

    def __init__(self, folders):
        super().__init__(("127.0.0.1", 0), Handler)
        self.refs = {name: hashlib.sha1(name.encode()).hexdigest() for name in folders}
        self.files = {
            self.refs[name]: {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
            for name, folder in folders.items()
        }
        self.refs["main"] = self.refs["step-10"]
        self.seen, self.refusal, self.hold = [], None, None
        self.held, self.free = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address): ...  # of one that was killed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        hub, path = self.server, unquote(urlsplit(self.path).path)
        hub.seen.append((self.command, path))
        if hub.hold and hub.hold in path:
            hub.held.set()
            hub.free.wait(300)
        if hub.refusal and hub.refusal[0] in path:
            self.refuse(*hub.refusal[1:])
        else:
            self.give(hub, path)

    do_HEAD = do_GET

    def give(self, hub, path):
        match path.removeprefix("/").split("/"):
            case ["api", "models", "tests", "tiny", "refs"]:
                refs = [
                    {"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit}
                    for name, commit in hub.refs.items()
                ]
                self.json({"branches": refs, "tags": [], "converts": []})
            case ["api", "models", "tests", "tiny", "revision", *name] if commit := self.commit(
                "/".join(name)
            ):
                names = [{"rfilename": name} for name in hub.files[commit]]
                self.json({"id": MODEL, "modelId": MODEL, "sha": commit, "siblings": names})
            case ["api", "models", "tests", "tiny", "tree", commit] if commit in hub.files:
                self.json([entry(name, data) for name, data in hub.files[commit].items()])
            case ["tests", "tiny", "resolve", commit, name] if name in hub.files.get(commit, {}):
                self.file(commit, name)
            case ["api", "resolve-cache", "models", "tests", "tiny", commit, name]:
                data = hub.files[commit][name]
                head = {"ETag": f'"{blob(data)}"', "X-Repo-Commit": commit}
                self.answer(200, data, head)
            case ["cdn", commit, name]:
                assert self.headers.get("authorization") is None
                self.answer(200, hub.files[commit][name])
            case [*parts] if "tiny" in parts:
                self.refuse(404, "RevisionNotFound", f"Invalid rev id: {parts[-1]}")
            case _:
                self.refuse(404, "RepoNotFound", "Repository not found")

    def commit(self, name):
        return name if name in self.server.files else self.server.refs.get(name)

    def file(self, commit, name):
        hub, data = self.server, self.server.files[commit][name]
        if name.endswith(".safetensors"):
            head = {
                "Location": f"http://localhost:{hub.server_port}/cdn/{commit}/{name}",
                "X-Linked-Size": str(len(data)),
                "X-Linked-ETag": f'"{hashlib.sha256(data).hexdigest()}"',
                "X-Repo-Commit": commit,
            }
            self.answer(302, b"", head)
        else:
            head = {
                "Location": f"/api/resolve-cache/models/{MODEL}/{commit}/{name}",
                "X-Repo-Commit": commit,
            }
            self.answer(307, b"", head)

    def refuse(self, status, code, message):
        self.answer(status, b"", {"X-Error-Code": code, "X-Error-Message": message})

    def json(self, value):
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def answer(self, status, body, head=()):
        self.send_response(status)
        for name, value in dict(head).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments): ...


def blob(data):
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def entry(name, data):
    found = {"type": "file", "path": name, "size": len(data), "oid": blob(data)}
    if name.endswith(".safetensors"):
        sha = hashlib.sha256(data).hexdigest()
        found["lfs"] = {"oid": sha, "size": len(data), "pointerSize": 134}
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Branch -> the folder of the same model: random weights, and a README, which nobody needs."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(control.MODEL)
    tokenizer.chat_template = None
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128}
    shape |= {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **shape)
    found = {name: tmp_path_factory.getbasetemp() / "training" / name for name in STEPS}
    for name, seed in STEPS.items():
        torch.manual_seed(seed)
        transformers.GPT2LMHeadModel(config).save_pretrained(found[name])
        tokenizer.save_pretrained(found[name])
        (found[name] / "README.md").write_text("A card.")
    return found


@pytest.fixture(scope="module")
def hub(folders):
    with Hub(folders) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@dataclasses.dataclass
class Resumed:
    """Two checkpoints asked in one command, which was killed between the two and given again.

    place: where it was run, the runs in `runs`. killed: the names of the runs that there were when
    it was killed; kept: the log-probabilities of the first by then. asked: the requests to the hub
    by then. out, told: what the second command printed.
    """

    place: Path
    killed: list[str]
    kept: bytes
    asked: int
    out: str
    told: str


@pytest.fixture(scope="module")
def resumed(hub, tmp_path_factory):
    place = tmp_path_factory.mktemp("hub")
    hub.hold = "/revision/step-2"
    process = command(hub, place, "step-10,step-2", "runs")
    held = hub.held.wait(300)
    process.kill()
    _, told = process.communicate()
    assert held, told
    hub.hold = None
    hub.free.set()
    killed = sorted(path.name for path in (place / "runs").iterdir())
    kept = (place / "runs" / "step-10" / "logprobs.jsonl").read_bytes()
    asked = len(hub.seen)
    process = command(hub, place, "step-10,step-2", "runs")
    out, told = process.communicate()
    assert process.returncode == 0, told
    return Resumed(place, killed, kept, asked, out, told)


@pytest.fixture(scope="module")
def offline(resumed, hub):
    """Runs of the same checkpoints without the hub, of what the resumed command fetched."""
    asked = len(hub.seen)
    process = command(hub, resumed.place, "step-2,step-10", "offline", HF_HUB_OFFLINE="1")
    _, told = process.communicate()
    assert process.returncode == 0, told
    assert len(hub.seen) == asked
    return resumed.place / "offline"


@pytest.fixture(scope="module")
def local(folders, tmp_path_factory):
    """Runs of the same weights, each from a folder of this machine."""
    place = tmp_path_factory.mktemp("local")
    for name, folder in folders.items():
        api.logprob(str(folder), langs=["en"], limit=4, scorers=["loglik"], out=place / name)
    return place


def command(hub, place, revisions, out, **environment):
    """The command line in a process of its own, its caches beside the runs."""
    known = {
        k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "GENPROBE"))
    }
    known |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(place / "hf"), "HF_TOKEN": TOKEN}
    known |= {"NO_PROXY": "127.0.0.1,localhost", "OMP_NUM_THREADS": "1", **environment}
    line = [*ASKED, "--model", MODEL, "--revision", revisions, "--out", str(place / out)]
    return subprocess.Popen(
        [sys.executable, "-c", "from genprobe.commands import main; main()", *line, "-f", "json"],
        env=known,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def values(folder):
    """Request -> log P of the tokens of its text."""
    return {p.request: p.continuations[0]["logprobs"] for p in Run.open(folder).logprobs()}


def test_checkpoints_of_the_hub(resumed, local, hub):
    runs = resumed.place / "runs"
    assert resumed.killed == ["step-10"]
    assert "8 of 8 replies were there already" in resumed.told
    assert (runs / "step-10" / "logprobs.jsonl").read_bytes() == resumed.kept
    requests = hub.seen[resumed.asked :]
    fetched = {path for method, path in requests if method == "GET" and "api/m" not in path}
    assert fetched and not any(hub.refs["step-10"] in path for path in fetched)
    assert not any("README" in path for _, path in hub.seen)

    for name in STEPS:
        run = Run.open(runs / name)
        assert run.verify() == [] and len(values(run.folder)) == 8
        assert (run.spec.model, run.spec.checkpoint) == (MODEL, name)
        assert run.spec.revision == hub.refs[name]
        assert hub.refs[name] in (run.folder / "README.md").read_text()
        assert all(TOKEN.encode() not in path.read_bytes() for path in run.folder.glob("*.*"))
        here = Run.open(local / name)
        assert (here.spec.model, here.spec.checkpoint) == ("training", name)
        assert values(run.folder) == values(here.folder)
    assert values(runs / "step-2") != values(runs / "step-10")

    rates = [s for s in map(Score.from_dict, json.loads(resumed.out)) if s.metric == "win-rate"]
    assert [s.by["revision"] for s in rates] == ["step-2", "step-10"]
    assert all("model" not in s.by and "source" not in s.by for s in rates)
    assert f"|revision:{hub.refs['step-2'][:7]}~" in rates[0].signature
    assert "|checkpoint:step-2|" in rates[0].signature


def test_what_was_fetched_is_enough_offline(resumed, offline, hub):
    for name in STEPS:
        assert values(offline / name) == values(resumed.place / "runs" / name)
        assert Run.open(offline / name).spec.revision == hub.refs[name]


@pytest.fixture
def online(hub, tmp_path, monkeypatch):
    """The hub, asked from this process, with an empty cache."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    point(monkeypatch, hub.url)
    yield hub
    huggingface_hub.close_session()


def point(monkeypatch, url):
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    huggingface_hub.close_session()


def refused(*arguments):
    done = CliRunner().invoke(cli, [str(a) for a in (*ASKED, "--model", MODEL, *arguments)])
    assert isinstance(done.exception, EngineError), done.exception
    assert str(done.exception).startswith(f"{MODEL}: ") and "\n" not in str(done.exception)
    return str(done.exception)


def test_an_unknown_revision_is_told_with_those_that_there_are(online, tmp_path):
    told = refused("--revision", "step-20", "--out", tmp_path / "run")
    assert "no revision 'step-20' on the hub; it has step-2, step-10, main" in told
    assert not (tmp_path / "run").exists()


GATED = ("GatedRepo", "Access to model tests/tiny is restricted.")
INVALID = ("", "Invalid credentials in Authorization header")


@pytest.mark.parametrize(
    ("refusal", "cure"),
    [
        (("/resolve/", 401, *GATED), f"accept the terms at https://huggingface.co/{MODEL} and"),
        (("/resolve/", 403, *GATED), f"accept the terms at https://huggingface.co/{MODEL} and"),
        (("/api/", 401, *INVALID), "the hub refuses the token; renew it with `hf auth login`"),
        (("/api/", 503, "", "Down."), "the hub cannot be reached; go online"),
    ],
)
def test_what_the_hub_refuses(online, monkeypatch, refusal, cure):
    monkeypatch.setattr(online, "refusal", refusal)
    assert cure in refused("--revision", "step-2")


def test_a_hub_out_of_reach(online, monkeypatch):
    point(monkeypatch, "http://127.0.0.1:9")  # the discard port: refused
    assert "revision 'step-2' is not in the local hub cache, and the hub" in refused(
        "--revision", "step-2"
    )


def test_the_engine_of_the_other_commands_names_the_checkpoint_too(online):
    commit = online.refs["step-2"]
    for asked, called in (("step-2", "step-2"), (commit, "")):
        found = transformers_engine.open(MODEL, Options(revision=asked)).identity
        assert (found.model, found.revision, found.checkpoint) == (MODEL, commit, called)


def test_an_audit_mixes_no_two_commits_of_a_branch(online, tmp_path, monkeypatch):
    """A finished cell is not asked again, so another one would show other weights beside it."""
    asked = {"task": "logprob", "langs": ["en"], "limit": 2, "scorers": ["loglik"]}
    file = {"models": {"m": {"id": MODEL}}, "instruments": {"one": asked}}
    first = audit(file, out=tmp_path / "audit")
    assert not first.failed and Run.open(first.runs[0]).spec.revision == online.refs["main"]
    both = file | {"instruments": {"one": asked, "two": asked | {"limit": 3}}}
    monkeypatch.setitem(online.refs, "main", online.refs["step-2"])
    moved = f"revision: {online.refs['step-10']} -> {online.refs['step-2']}"
    with pytest.raises(RowErrors, match=moved):
        audit(both, out=tmp_path / "audit")
    assert not (tmp_path / "audit" / "runs" / "m-two").exists()
    monkeypatch.setitem(online.refs, "main", online.refs["step-10"])
    found = audit(both, out=tmp_path / "audit")
    assert [Run.open(run).spec.revision for run in found.runs] == [online.refs["step-10"]] * 2


def test_the_curve_is_of_the_model(offline, local):
    """Of revisions and of folders, in the order of the steps, under the name of the model."""
    for place, name in ((offline, "tiny"), (local, "training")):
        both = [place / step for step in STEPS]
        curves = [f for f in figures.found(both) if f.name.startswith("win-rate-by-checkpoint")]
        assert [[s.by["step"] for s in f.scores] for f in curves] == [[2, 10]]
        assert curves[0].title.endswith(f"by checkpoint of {name}")
        assert [s.by["model"] for s in curves[0].scores] == [f"{name}@step-2", f"{name}@step-10"]


def test_two_names_of_one_commit_are_told_apart(offline, tmp_path):
    first, again = offline / "step-10", tmp_path / "again"
    shutil.copytree(first, again)
    spec = (again / "run.json").read_text()
    (again / "run.json").write_text(spec.replace('"checkpoint": "step-10"', '"checkpoint": "main"'))
    rates = [s for s in score.score([first, again]) if s.metric == "win-rate"]
    assert [s.by["revision"] for s in rates] == ["main", "step-10"]
