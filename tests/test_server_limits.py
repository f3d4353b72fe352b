"""Servers that mean harm: what they send fills no memory, ends no run by a traceback, keeps no key."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
import time
import zlib

import pytest
from faulty import HARM, Faulty
from test_openai import ask, requests

from genprobe.engines import Options, _http, openai
from genprobe.engines._http import Answer
from genprobe.engines._server import Server
from genprobe.errors import EngineError, InputError
from genprobe.records import Failure
from genprobe.runs.run import Run

KEY, HOUSE = "sk-Very-Secret-0123456789", "house/Secret+value 1"
MOST = 500  # MB of memory, whatever a server does


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_http, "BACKOFF", 0.02)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GENPROBE_API_KEY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


def command(*words: str, **more: str):
    env = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    script = "from genprobe.engines import _http; _http.BACKOFF = 0.02\n"
    script += "from genprobe.commands import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True, encoding="utf-8", env=env | more, timeout=120,
    )  # fmt: skip


# --- sizes

# Asks with `most` requests in flight from the start, until `enough` answers came; prints the kinds of
# the failures and the most memory that it ever had, in MB.
ASKER = """
import itertools, json, sys
from genprobe.engines import Options, Sampling, _http, openai
from genprobe.records import Failure, Request
from collections import Counter
url, enough, seconds, most = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
_http.BEGIN, _http.BACKOFF, _http.ATTEMPTS = most, 0.02, 2
asked = [
    Request(f"r{i}", "s", "en", "p@1", "agreement", [{"role": "user", "content": f"{i}?"}], 0, i, "free", {})
    for i in range(600)
]
options = Options(base_url=url, concurrency=most, more={"total_timeout": seconds})
answers = openai.open("", options).generate(asked, Sampling())
kinds = Counter(getattr(one, "kind", "response") for one in itertools.islice(answers, enough))
answers.close()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([kinds, int(peak.split()[1]) // 1000]))
"""


def asked(server: Faulty, enough: int, seconds: float = 60.0, most: int = 512):
    words = [sys.executable, "-c", ASKER, server.url, str(enough), str(seconds), str(most)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    kinds, peak = json.loads(done.stdout)
    return kinds, peak


KINDS = dict.fromkeys(HARM, "too-large") | {
    "slow": "timeout", "brotli": "broken-reply"
}  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    "fault",
    [h if h in ("endless", "slow") else pytest.param(h, marks=pytest.mark.slow) for h in HARM],
)
def test_memory_is_flat_with_512_in_flight(fault):
    enough = 100 if fault == "slow" else 2
    seconds = 2.0 if fault == "slow" else 60.0
    with Faulty(faults=[None, *[fault] * 10_000]) as server:
        kinds, peak = asked(server, enough, seconds)
        if fault in ("endless", "length", "slow"):
            assert server.most > 200  # in flight together; some end before the last ones come
    assert kinds == {KINDS[fault]: enough}
    assert peak < MOST


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("tail", ["", "\U0001f600"])
def test_long_answers_within_the_limit_come_one_at_a_time(tail):
    """Text of four bytes a character, of which a single character makes all the others so."""
    text = "a" * 30_000_000 + tail
    body = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
    bodies = iter([{"choices": [{"message": {"content": "Yes."}}]}])
    with Faulty(answer=lambda _: next(bodies, (200, body))) as server:
        kinds, peak = asked(server, 3)
    assert kinds == {"too-large": 3}  # beyond the limit `reply`
    assert peak < MOST


@pytest.mark.parametrize("fault", HARM)
def test_a_list_of_models_that_means_harm_is_one_line(fault):
    options = Options(
        base_url="", more={"total_timeout": 1.0, "connect_timeout": 1.0, "read_timeout": 1.0}
    )
    begun = time.monotonic()
    with Faulty(listing=fault) as server, pytest.raises(EngineError) as told:
        openai.open("", dataclasses.replace(options, base_url=server.url))
    assert "\n" not in str(told.value) and server.url in str(told.value)
    assert time.monotonic() - begun < 15
    if KINDS[fault] == "too-large":
        named = "PYTHONINTMAXSTRDIGITS" if fault == "digits" else "GENPROBE_LIMIT_"
        assert named in str(told.value)


def test_what_harms_the_first_trial_request_is_one_line(tmp_path):
    words = ("yesno", "--lang", "en", "--limit", "1", "--out", str(tmp_path / "run"))
    with Faulty(faults=["endless"] * 9) as server:
        done = command(*words, "--base-url", server.url)
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert done.stderr.splitlines()[-1] == (
        f"genprobe: {server.url}: the answer: more than 32,000,000 bytes of one answer of a server, "
        "unpacked; if you trust it, set GENPROBE_LIMIT_BODY to a larger number"
    )


def test_a_run_goes_on_past_answers_that_are_too_large(tmp_path):
    words = ("yesno", "-q", "--lang", "en", "--limit", "1", "--out", str(tmp_path / "run"))
    with Faulty(faults=[None, "gzip-bomb", None, "nested"]) as server:
        done = command(*words, "--base-url", server.url)
    assert done.returncode == 3, done.stderr
    assert "too large to be an answer" in done.stderr.splitlines()[-1]
    run = Run.open(tmp_path / "run")
    assert run.count("responses") == 1 and run.verify() == []
    assert [f.kind for f in run.failures()] == ["too-large"] * 2
    assert sorted(f.detail.partition("set ")[2].split(" ")[0] for f in run.failures()) == [
        "GENPROBE_LIMIT_BODY",
        "GENPROBE_LIMIT_VALUES",
    ]


def test_limits_can_be_raised(monkeypatch):
    monkeypatch.setenv("GENPROBE_LIMIT_BODY", "100")
    with Faulty() as server, pytest.raises(EngineError, match=r"100 bytes.*GENPROBE_LIMIT_BODY"):
        ask(server, requests(1))
    monkeypatch.setenv("GENPROBE_LIMIT_BODY", "1000")
    with Faulty() as server:
        assert not any(isinstance(r, Failure) for r in ask(server, requests(5)).values())


def test_what_is_packed_by_the_rules_is_read():
    """Also deflate without its head, as some servers send it, and an empty body."""
    body = json.dumps({"choices": [{"message": {"content": "Yes. " * 50_000}}]}).encode()
    bare = zlib.compressobj(wbits=-15)
    forms = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "bare": bare.compress(body) + bare.flush(),
        "identity": body,
    }
    for name, packed in forms.items():
        server = Faulty(answer=lambda _, packed=packed: (200, packed))
        server.packed = "deflate" if name == "bare" else name
        with server:
            found = ask(server, requests(3))
        assert {r.text for r in found.values()} == {"Yes. " * 50_000}, name


@pytest.mark.parametrize("broken", ["cut", "junk", "twice"])
def test_what_is_packed_badly_is_a_broken_reply(broken, monkeypatch):
    monkeypatch.setattr(_http, "ATTEMPTS", 2)
    good = gzip.compress(b'{"choices": [{"message": {"content": "Yes."}}]}')
    packed = {"cut": good[:-12], "junk": b"no gzip", "twice": good + good}[broken]
    bodies = iter([good])
    server = Faulty(answer=lambda _: (200, next(bodies, packed)))
    server.packed = "gzip"
    with server:
        (record,) = ask(server, requests(1)).values()
    assert isinstance(record, Failure) and record.kind == "broken-reply"


# --- what is in a body


@pytest.mark.parametrize(
    ("content", "limit"),
    [
        (b"[" * 200_000, "NESTING"),
        (b": keep\n" + b"[" * 200_000, "NESTING"),
        (b": keep\n\n: keep\n" + b"[" * 200_000 + b"]" * 200_000, "NESTING"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "NESTING"),
        (b"[" + b"1," * 2_000_000 + b"1]", "VALUES"),
        (b"1" * 5000, "digits of a number"),
    ],
)
def test_json_that_holds_too_much_is_refused_by_its_limit(content, limit):
    begun = time.perf_counter()
    with pytest.raises(InputError, match=f"GENPROBE_LIMIT_{limit}|^.*{limit};"):
        Answer(200, {}, content).json()
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", "{}".encode("utf-16"), b": keep\n"])
def test_what_is_no_json_is_a_value_error(content):
    with pytest.raises(ValueError):
        Answer(200, {}, content).json()


def test_comments_before_an_answer_are_skipped_in_linear_time():
    for line in (b": keep\n", b":\r\n", b"\n", b": [\n"):
        begun = time.perf_counter()
        assert Answer(200, {}, line * 500_000 + b'{"a": [1]}').json() == {"a": [1]}
        assert time.perf_counter() - begun < 2
    nested = b"[" * 100 + b"]" * 100
    assert Answer(200, {}, b"\xef\xbb\xbf" + nested).json()  # a hundred levels, and a mark of UTF-8


@pytest.mark.parametrize(
    "body",
    [
        {"usage": {"prompt_tokens": 10**4000, "completion_tokens": -5}},
        {"usage": {"prompt_tokens": float("inf"), "completion_tokens": True}},
        {"model": "m" * 10_000, "system_fingerprint": ["x"]},
        {"choices": [{"message": {"content": "Yes."}, "finish_reason": ["x" * 100_000]}]},
        {"error": None},
    ],
)
def test_wild_values_are_cut_or_left_out(body):
    good = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}
    with Faulty(answer=lambda _: good | body) as server:
        (record,) = ask(server, requests(1)).values()
    assert record.text == "Yes." and len(record.finish) <= 200 and len(record.model) <= 200
    assert record.tokens_in is None and record.tokens_out is None


def test_wild_probabilities_are_a_broken_reply():
    server = Server(Options(base_url="http://localhost/v1"))
    for value in (10**400, float("nan"), "x", None, [], {}):
        found = {"choices": [{"index": 0, "prompt_logprobs": [None, {"7": {"logprob": value}}]}]}
        with pytest.raises(_http.Trouble, match="without prompt_logprobs"):
            server.readings([[1, 7]], found)
        told = {"choices": [{"index": 0, "logprobs": {"token_logprobs": [None, value]}}]}
        with pytest.raises(_http.Trouble, match="without the log-probabilities"):
            server.readings([[1, 7]], told, echo=True)


# --- keys


@pytest.mark.parametrize("fault", ["echo", pytest.param("echo-error", marks=pytest.mark.slow)])
def test_what_a_server_repeats_of_a_secret_is_nowhere(fault, tmp_path):
    out = tmp_path / "run"
    for extra in ("", "x"):  # one makes the reply a text, the other the call of a tool
        words = ("yesno", "--lang", "en", "--limit", "2", "--out", f"{out}{extra}")
        header = ("--header", "X-House-Key=$HOUSE", "--header", f"X-More=a{extra}")
        with Faulty(faults=[None, *[fault] * 100]) as server:
            done = command(
                *words, *header, "--base-url", server.url, GENPROBE_API_KEY=KEY, HOUSE=HOUSE
            )
        seen = server.seen[-1]
        assert (seen["authorization"], seen["x-house-key"]) == (
            f"bearer {KEY.lower()}",
            HOUSE.lower(),
        )
        held = done.stdout + done.stderr
        held += "".join(
            p.read_text("utf-8", "replace")
            for p in (tmp_path / f"run{extra}").rglob("*")
            if p.is_file()
        )
        if fault == "echo":
            with Run.open(f"{out}{extra}") as run:
                texts = [r.text for r in run.responses()]
            assert len(texts) == 6 and all("<key>" in text for text in texts)
        assert "<key>" in held
        for secret in (KEY, HOUSE, KEY.encode().hex()):
            assert secret.lower() not in held.lower()
            assert json.dumps(secret)[1:-1].lower() not in held.lower()


def test_a_model_is_listed_by_no_key(monkeypatch):
    monkeypatch.setenv("GENPROBE_API_KEY", KEY)
    with Faulty(models=(f"m-{KEY}",)) as server:
        one = openai.open("", Options(base_url=server.url))
    assert one.identity.model == "m-<key>"
    with Faulty(models=(f"m-{KEY}", "other")) as server, pytest.raises(EngineError) as told:
        openai.open("x", Options(base_url=server.url))
    assert KEY not in str(told.value)


@pytest.mark.parametrize("key", ["none", "EMPTY", "x"])
def test_a_key_that_is_none_is_no_secret(key, monkeypatch):
    """Servers that want no key are given such words, which replies may hold."""
    monkeypatch.setenv("GENPROBE_API_KEY", key)
    answer = {"choices": [{"message": {"content": "None. It is empty, as x is."}}]}
    with Faulty(answer=lambda _: answer) as server:
        (record,) = ask(server, requests(1)).values()
    assert record.text == "None. It is empty, as x is."


AWAY = "http://box.example:8000/v1"


def test_over_http_no_key_leaves_this_machine(monkeypatch):
    Server(Options(base_url=AWAY))  # nothing to send
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Server(Options(base_url=AWAY))  # it is not sent there
    monkeypatch.setenv("GENPROBE_API_KEY", KEY)
    monkeypatch.setenv("HOUSE", HOUSE)
    for more in ({}, {"key_env": "HOUSE"}, {"headers": {"X-A": "b $HOUSE"}, "key_env": "HOUSE"}):
        options = Options(base_url=AWAY, **more)
        with pytest.raises(InputError) as told:
            Server(options)
        for word in ("--allow-http-key", "--api-key-env", AWAY):
            assert word in str(told.value)
        assert KEY not in str(told.value) and HOUSE not in str(told.value)
        assert Server(dataclasses.replace(options, http_key=True)).headers()
        Server(dataclasses.replace(options, base_url=AWAY.replace("http:", "https:")))
    for here in ("localhost", "127.0.0.1", "127.8.8.8", "[::1]", "0.0.0.0", "a.localhost"):
        Server(Options(base_url=f"http://{here}:8000/v1"))
    for away in ("10.0.0.1", "localhost.example", "2130706433", "127.0.0.1.example"):
        with pytest.raises(InputError, match="allow-http-key"):
            Server(Options(base_url=f"http://{away}:8000/v1"))
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    with pytest.raises(InputError, match="allow-http-key"):
        Server(Options(base_url="http://localhost:8000/v1"))


def test_only_what_is_plain_is_sent_over_http_by_a_command(tmp_path):
    words = ("yesno", "--lang", "en", "--limit", "1", "--out", str(tmp_path / "run"))
    done = command(*words, "--base-url", AWAY, GENPROBE_API_KEY=KEY)
    assert done.returncode == 2 and len(done.stderr.splitlines()) <= 2
    assert "GENPROBE_API_KEY" in done.stderr and "--allow-http-key" in done.stderr
    assert KEY not in done.stderr and not (tmp_path / "run").exists()


def house(tmp_path, one: Faulty, other: Faulty, more: str = "") -> tuple[str, ...]:
    """The words of a command for two models, each on a host of its own."""
    (tmp_path / "models.toml").write_text(
        f'[one]\nid = "echo"\nbase_url = "{one.url}"\n'
        'headers = { X-House-Key = "$HOUSE", X-Title = "mine" }\n'
        f'[two]\nid = "echo"\nbase_url = "{other.url.replace("127.0.0.1", "localhost")}"\n{more}'
    )
    words = ("yesno", "-q", "--lang", "en", "--limit", "1", "--out", str(tmp_path / "runs"))
    return (*words, "--models", str(tmp_path / "models.toml"))


@pytest.mark.slow
def test_headers_of_a_model_go_to_its_server_only(tmp_path):
    with Faulty() as one, Faulty() as other:
        words = house(tmp_path, one, other)
        done = command(*words, HOUSE=HOUSE)
        assert done.returncode == 0, done.stderr
        assert all(h["x-house-key"] == HOUSE.lower() and h["x-title"] == "mine" for h in one.seen)
        assert other.seen and not any({"x-house-key", "x-title"} & h.keys() for h in other.seen)
        spec = Run.open(tmp_path / "runs" / "one").spec
        assert spec.engine_args["headers"] == ["X-House-Key", "X-Title"]
        missing = command(*words)
        assert missing.returncode == 2 and "no variable HOUSE" in missing.stderr
        # Nor do they go to another server that is named for the same model.
        before = len(other.seen)
        again = command(
            *words[:7], str(tmp_path / "more"), "--model", "one", "--base-url", other.url,
            HOUSE=HOUSE, GENPROBE_MODELS=str(tmp_path / "models.toml"),
        )  # fmt: skip
        assert len(other.seen) > before, again.stderr
        assert not any("x-house-key" in h for h in other.seen)


@pytest.mark.parametrize(
    ("more", "env", "says"),
    [
        (["--header", "X-House-Key=$HOUSE"], {}, 'headers = { X-House-Key = "$HOUSE" }'),
        (["--api-key-env", "HOUSE"], {}, 'api_key_env = "HOUSE"'),
        ([], {"GENPROBE_API_KEY": KEY}, "api_key_env ="),
    ],
)
def test_a_secret_that_is_given_once_goes_to_no_two_hosts(tmp_path, more, env, says):
    with Faulty() as one, Faulty() as other:
        done = command(*house(tmp_path, one, other), *more, HOUSE=HOUSE, **env)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert says in done.stderr and re.search(r"127\.0\.0\.1:\d+ and localhost:\d+", done.stderr)
        assert not one.seen and not other.seen and not (tmp_path / "runs").exists()
        # With a key of its own for one of them, the other may have that of the environment.
        if env:
            words = house(tmp_path, one, other, 'api_key_env = "HOUSE"\n')
            assert command(*words, HOUSE=HOUSE, **env).returncode == 0
            assert one.seen[-1]["authorization"] == f"bearer {KEY.lower()}"
            assert other.seen[-1]["authorization"] == f"bearer {HOUSE.lower()}"


@pytest.mark.slow
def test_what_is_no_secret_goes_to_all(tmp_path):
    with Faulty() as one, Faulty() as other:
        done = command(*house(tmp_path, one, other), "--header", "X-Plain=here", HOUSE=HOUSE)
        assert done.returncode == 0, done.stderr
        assert one.seen[-1]["x-plain"] == other.seen[-1]["x-plain"] == "here"
