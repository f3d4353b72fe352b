"""The HTTP engine against a server with faults, and every line that it says to a person."""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import selectors
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from faulty import FAULTS, Faulty, echo

from genprobe.engines import Options, Sampling, _http, openai
from genprobe.errors import EngineError
from genprobe.records import Failure, Request, Response
from genprobe.runs.run import Run

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_http, "BACKOFF", 0.02)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("GENPROBE_API_KEY", KEY)


def requests(n: int, decode: str = "free", options: dict | None = None) -> list[Request]:
    return [
        Request(f"r{i}", "s", "en", "p@1", "agreement", [{"role": "user", "content": f"Question {i}?"}],
                0, i, decode, options or {})
        for i in range(n)
    ]  # fmt: skip


def engine(server: Faulty, model: str = "", **more):
    names = ("concurrency", "note", "thinking")
    options = {name: more.pop(name) for name in names if name in more}
    return openai.open(model, Options(base_url=server.url, more=more, **options))


def ask(server: Faulty, asked: list[Request], sampling: Sampling | None = None, **more):
    records = list(engine(server, **more).generate(asked, sampling or Sampling()))
    assert Counter(r.request for r in records) == Counter(r.id for r in asked)
    return {r.request: r for r in records}


def test_replies_and_what_was_really_sent():
    with Faulty() as server:
        found = ask(server, requests(50), Sampling(max_tokens=9))
    for request in requests(50):
        record = found[request.id]
        sent = json.loads(record.sent)
        assert record.text == echo(sent)["choices"][0]["message"]["content"]
        assert record.finish == echo(sent)["choices"][0]["finish_reason"]
        assert sent["messages"] == request.messages and sent["seed"] == request.seed
        assert (sent["max_tokens"], sent["temperature"], sent["n"]) == (9, 0.0, 1)
        assert (record.tokens_in, record.tokens_out) == (7, 3)
    assert {r.finish for r in found.values()} == {"stop", "length"}
    # The key went into the header, and nowhere else.
    assert all(h["authorization"] == f"bearer {KEY}" for h in server.seen)
    assert not any(KEY in r.sent + r.text for r in found.values())


@pytest.mark.slow
def test_two_thousand_requests_through_every_fault():
    """Nothing lost, nothing invented, nothing asked again that had been answered."""
    rng = random.Random(5)
    faults: list[str | None] = [None] * 40
    for fault in FAULTS:
        often = {"hang": 6, "refuse": 2, "die": 2, "429-wait": 2}.get(fault, 60)
        faults += [fault] * often
    faults += [None] * (2400 - len(faults))
    begin, rest = faults[:40], faults[40:]
    rng.shuffle(rest)
    asked = requests(2000)
    with Faulty() as plain:
        expected = {name: r.text for name, r in ask(plain, asked).items()}
    with Faulty(begin + rest, hang=2.0, away=0.4) as server:
        found = ask(server, asked, read_timeout=1.0, total_timeout=60.0)
    assert {name: r.text for name, r in found.items() if isinstance(r, Response)} == expected
    happened = Counter(what for _, what in server.log)
    assert all(happened[fault] for fault in FAULTS), happened
    answered = Counter(body for body, what in server.log if what == "answered")
    sent = {r.sent for r in found.values()}
    assert all(answered[body] == 1 for body in sent)
    assert len(answered) <= len(sent) + 3  # and the call that learns the dialect


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("500", "http-500"), ("503", "http-503"), ("no-json", "broken-reply"), ("cut", "broken-reply"),
     ("no-choices", "broken-reply"), ("html", "broken-reply"), ("drop", "broken-reply")],
)  # fmt: skip
def test_what_never_passes_is_a_failure_with_its_reason(fault, kind, monkeypatch):
    monkeypatch.setattr(_http, "ATTEMPTS", 4)
    with Faulty([None, *[fault] * 100]) as server:
        found = ask(server, requests(1))
    record = found["r0"]
    assert isinstance(record, Failure)
    assert (record.kind, record.attempts) == (kind, _http.ATTEMPTS) and record.detail


def test_a_hanging_reply_holds_up_nobody_else():
    with Faulty([None, "hang"], hang=20.0) as server:
        begun = time.monotonic()
        order = list(engine(server, read_timeout=1.5).generate(requests(40), Sampling()))
    assert time.monotonic() - begun < 10
    assert len(order) == 40 and all(isinstance(r, Response) for r in order)


def test_retry_after_is_waited_for():
    with Faulty([None, "429-wait"]) as server:
        begun = time.monotonic()
        assert isinstance(ask(server, requests(1))["r0"], Response)
    assert time.monotonic() - begun >= 1.0
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 28 < _http.retry_after(date) <= 30
    assert _http.retry_after("2.5") == 2.5
    assert _http.retry_after("soon") is None and _http.retry_after(None) is None


def test_a_server_that_asks_to_wait_for_ever():
    with Faulty(answer=lambda body: echo(body)) as server:
        one = engine(server, total_timeout=0.5)
        with pytest.raises(EngineError, match=r"asks to wait 60 s .*run the same command later"):
            reply = _http.Answer(429, {"retry-after": "60"}, b'{"error": "x"}')
            one.server.check(reply)


def test_the_level_is_found_and_capped():
    with Faulty() as server:
        ask(server, requests(400), concurrency=7)
    assert server.most <= 7
    gate = _http.Gate(64)
    since = time.monotonic()
    gate.limit = 64.0
    gate.bad(since)
    gate.bad(since)  # of the same round
    assert gate.limit == 32
    for _ in range(32):
        gate.good()
    assert 32.9 < gate.limit < 33.1
    for _ in range(20):
        gate.bad(time.monotonic())
    assert gate.limit == 1


class Clock(selectors.SelectSelector):
    """For a loop whose time passes only where it waits: nothing depends on the machine."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0.0
        return super().select(0)


@pytest.mark.parametrize(
    ("at_once", "least", "most"), [(1, 16, 16), (4, 16, 16), (100, 64, 128), (10_000, 512, 512)]
)
@pytest.mark.slow
def test_as_many_are_in_flight_as_a_server_answers_at_a_time(at_once, least, most, monkeypatch):
    """A server that answers so many at a time, each in 50 ms: more of them only queue."""
    clock = Clock()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now
    monkeypatch.setattr(_http.time, "monotonic", lambda: clock.now)
    seen = []

    async def run():
        gate, places = _http.Gate(512), asyncio.Semaphore(at_once)

        async def one():
            since = await gate.enter()
            async with places:
                await asyncio.sleep(0.05)
            gate.leave()
            gate.good(since)
            seen.append(gate.limit)

        await asyncio.gather(*(one() for _ in range(8000)))

    loop.run_until_complete(run())
    loop.close()
    assert least <= statistics.median(seen[4000:]) <= most


def test_a_server_that_goes_away_ends_the_run_in_one_line():
    server = Faulty()
    with server:
        one = engine(server, total_timeout=0.6)
        answers = one.generate(requests(300), Sampling())
        next(answers)
    with pytest.raises(
        EngineError, match=r"no server answers .* same command again to resume"
    ) as error:
        list(answers)
    assert "\n" not in str(error.value)


def refusing(status: int, message: str):
    return lambda body: (status, {"error": {"message": message}})


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [(400, "This model's maximum context length is 512 tokens", "too-long"),
     (422, "bad\nthing", "http-422"), (413, "large", "http-413")],
)  # fmt: skip
def test_what_cannot_pass_is_asked_once(status, message, kind):
    def answer(body):
        refuse = body["max_tokens"] == 64
        return (status, {"error": {"message": message}}) if refuse else echo(body)

    with Faulty(answer=answer) as server:
        record = ask(server, requests(1))["r0"]
    assert isinstance(record, Failure)
    assert (record.kind, record.attempts) == (kind, 1) and "\n" not in record.detail
    assert len(server.log) == 2


@pytest.mark.parametrize(
    ("status", "message", "says"),
    [(401, f"Incorrect API key provided: {KEY}", "the key was refused; set GENPROBE_API_KEY"),
     (403, "Bearer abc.def.ghi", "the key was refused"), (404, "gone", "not found"),
     (302, "", "redirects to another address"), (418, "tea", "answers 418"),
     (400, "unexpected thing", "refuses the request"),
     (400, "As of transformers v4.44, default chat template is no longer allowed", "api=completions")],
)  # fmt: skip
def test_what_ends_a_run_is_one_line_without_the_key(status, message, says):
    with (
        Faulty(answer=refusing(status, message)) as server,
        pytest.raises(EngineError, match=says) as error,
    ):
        ask(server, requests(3))
    text = str(error.value)
    assert "\n" not in text and KEY not in text and "abc.def" not in text


def test_dialects_are_learned():
    def answer(body):
        for name in ("max_tokens", "seed", "presence_penalty"):
            if name in body:
                better = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                return 400, {"error": {"message": f"Unsupported parameter: '{name}'.{better}"}}
        return echo(body)

    notes: list[str] = []
    with Faulty(answer=answer) as server:
        found = ask(server, requests(5), note=notes.append)
    assert all(isinstance(r, Response) for r in found.values())
    sent = json.loads(found["r0"].sent)
    assert sent["max_completion_tokens"] == 64 and "seed" not in sent
    assert any("seed" in note and "not repeat" in note for note in notes)


def test_a_server_that_ignores_seeds_is_told():
    notes: list[str] = []
    numbers = iter(range(1000))

    def answer(body):
        return echo({**body, "draw": next(numbers)})

    with Faulty(answer=answer) as server:
        ask(server, requests(2), Sampling(temperature=1.0), note=notes.append)
        assert notes == ["the server ignores seeds: the same run again will give other replies"]
    notes.clear()
    with Faulty() as server:
        ask(server, requests(2), Sampling(temperature=1.0), note=notes.append)
    assert notes == []


OPTIONS = {"yes": ["yes", "Yes"], "no": ["no"]}


def constrained(field: str):
    """A server that knows a choice by one name, and ignores all else with status 200."""

    def answer(body):
        found = echo(body)
        choice = body.get(field, {})
        choice = choice.get("choice") if isinstance(choice, dict) else choice
        if choice:
            found["choices"][0]["message"]["content"] = choice[body["seed"] % len(choice)]
        return found

    return answer


@pytest.mark.parametrize("field", ["structured_outputs", "guided_choice"])
def test_a_choice_is_one_of_the_options(field):
    with Faulty(answer=constrained(field)) as server:
        found = ask(server, requests(9, "choice", OPTIONS))
    assert {r.text for r in found.values()} == {"yes", "Yes", "no"}
    assert all(field in json.loads(r.sent) for r in found.values())


def test_a_server_that_ignores_the_constraint_is_found_out():
    with Faulty() as server, pytest.raises(EngineError, match="ignores structured outputs"):
        ask(server, requests(3, "choice", OPTIONS))


def test_one_reply_out_of_the_options_is_a_failure():
    def answer(body):
        found = constrained("structured_outputs")(body)
        if body["seed"] == 1 and body["max_tokens"] < 10:
            found["choices"][0]["message"]["content"] = "Yes, because"
        return found

    with Faulty(answer=answer) as server:
        found = ask(server, requests(3, "choice", OPTIONS))
    assert isinstance(found["r1"], Failure) and found["r1"].kind == "unconstrained"
    assert isinstance(found["r0"], Response) and isinstance(found["r2"], Response)


def test_probabilities_need_vllms_server():
    with Faulty() as server, pytest.raises(EngineError, match="--decode logprob needs"):
        ask(server, requests(1, "logprob", OPTIONS))


def test_texts_that_are_none():
    contents = {0: "", 1: None, 2: "\ud800 x", 3: "y" * 1_000_000}

    def answer(body):
        found = echo(body)
        message = found["choices"][0]["message"]
        message["content"] = contents.get(body["seed"], "z")
        if body["seed"] == 4:
            message |= {"content": None, "refusal": "I cannot."}
        return found

    with Faulty(answer=answer) as server:
        found = ask(server, requests(5))
    assert found["r0"].text == "" and found["r2"].text == "\ud800 x"
    assert found["r1"].text == "" and len(found["r3"].text) == 1_000_000
    assert found["r4"].text == "I cannot."


def test_plain_completions():
    def answer(body):
        return {"choices": [{"text": f" {body['prompt']}", "finish_reason": "stop"}]}

    with Faulty(answer=answer) as server:
        found = ask(server, requests(2), api="completions")
    assert found["r1"].text == " Question 1?" and found["r1"].tokens_in is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (Options(), "needs --base-url"),
        (Options(base_url="localhost:8000"), "is no address"),
        (Options(base_url=f"http://me:{KEY}@localhost/v1"), "put the key into GENPROBE_API_KEY"),
        (Options(base_url=f"http://localhost/v1?key={KEY}"), "put the key into GENPROBE_API_KEY"),
        (
            Options(base_url="http://127.0.0.1:9/v1"),
            r"no server answers there \(Connection refused\)",
        ),
        (
            Options(base_url="http://127.0.0.1:9/v1", more={"x": 1}),
            "has no argument 'x'; it has api",
        ),
        (Options(base_url="http://127.0.0.1:9/v1", more={"api": "chatty"}), "chat or completions"),
        (Options(base_url="http://127.0.0.1:9/v1", more={"read_timeout": 0}), "more than 0"),
    ],
)
def test_addresses_and_arguments(options, says):
    with pytest.raises(EngineError, match=says) as error:
        openai.open("", options)
    assert KEY not in str(error.value) and "\n" not in str(error.value)


def test_models_that_are_not_served():
    with Faulty() as server:
        with pytest.raises(EngineError, match="does not serve 'ecco'; did you mean 'echo'"):
            engine(server, "ecco")
        assert engine(server).identity.model == "echo"
        with pytest.raises(EngineError, match=r"has no models; did you mean http.*/v1 \?"):
            openai.open("", Options(base_url=server.url.removesuffix("/v1")))


def test_a_key_is_in_nothing_that_is_shown():
    with Faulty() as server:
        one = engine(server)
    assert KEY not in repr(vars(one.server)) + repr(one.identity)


def test_stopping_early_leaves_nothing_behind():
    with Faulty() as server:
        answers = engine(server).generate(requests(500), Sampling())
        for _ in range(10):
            next(answers)
        answers.close()
        time.sleep(0.2)  # what was in flight arrives
        before = len(server.log)
        time.sleep(0.3)
        assert len(server.log) == before < 500


def test_in_a_notebook_whose_loop_is_running():
    async def cell():
        with Faulty() as server:
            return ask(server, requests(20))

    assert len(asyncio.run(cell())) == 20


# --- the whole command


def command(server: Faulty, folder: Path, *more: str) -> list[str]:
    genprobe = str(Path(sys.executable).with_name("genprobe"))
    return [genprobe, "yesno", "--base-url", server.url, "--out", str(folder), *more]


@pytest.mark.slow
def test_a_run_holds_no_key_and_says_what_it_used(tmp_path):
    with Faulty([None, "500", "429", "html"]) as server:
        done = subprocess.run(
            command(server, tmp_path / "run", "--lang", "mr", "--limit", "5", "-v"),
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert "engine: openai (a server is named)" in done.stderr
    run = Run.open(tmp_path / "run")
    assert run.verify() == [] and sum(1 for _ in run.responses()) == 15
    assert (run.spec.model, run.spec.engine) == ("echo", "openai")
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert KEY.encode() not in everything and KEY not in done.stdout + done.stderr
    assert any(h.get("authorization") == f"bearer {KEY}" for h in server.seen)


@pytest.mark.slow
def test_killed_it_goes_on_and_asks_nothing_twice(tmp_path):
    def slow(body):
        time.sleep(0.003)
        return echo(body)

    folder = tmp_path / "run"
    kills = 0
    with Faulty(answer=slow) as server:
        while True:
            process = subprocess.Popen(
                command(server, folder, "-q", "--lang", "mr", "--lang", "kk"),
                stdout=subprocess.DEVNULL,
            )
            responses = folder / "responses.jsonl"
            before = responses.stat().st_size if responses.exists() else 0
            while kills < 3 and process.poll() is None:
                if responses.exists() and responses.stat().st_size > before + 20_000:
                    process.kill()
                    kills += 1
                    break
                time.sleep(0.002)
            if process.wait() == 0:
                break
        stored = list(Run.open(folder).responses())
        answered = Counter(body for body, what in server.log if what == "answered")
    assert kills == 3 and len(stored) == len({r.request for r in stored}) == 720
    assert Run.open(folder).verify() == []
    # Asked again were at most those that were in flight when it was killed, or read and not yet
    # stored, as on a busy machine some are.
    again = sum(n - 1 for n in answered.values())
    assert again <= kills * 2 * 64
