"""vLLM's real server, alone and behind a proxy with faults."""

from __future__ import annotations

import random
from collections import Counter

import pytest

pytest.importorskip("vllm")

from conftest import plan
from faulty import FAULTS, Faulty

from genprobe.engines import Options, Sampling, _http, openai
from genprobe.errors import EngineError
from genprobe.records import Response

GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0)
LANGS = ("kk", "mr", "zh", "ar", "de", "bn")


def connect(url: str, **more):
    return openai.open("", Options(base_url=url, more=more))


def ask(engine, requests, sampling=GREEDY) -> dict:
    records = list(engine.generate(requests, sampling))
    assert len(records) == len(requests) == len({r.request for r in records})
    return {r.request: r for r in records}


def said(records: dict) -> dict:
    return {k: (r.text, r.finish, r.tokens_in) for k, r in records.items()}


def test_greedy_replies_are_those_of_transformers(server, transformers_engine):
    requests = plan(LANGS, 6)
    engine = connect(server)
    assert said(ask(engine, requests)) == said(ask(transformers_engine, requests))
    assert engine.identity.model == "control"
    assert engine.identity.engine_version.startswith("vllm 0.")


def test_draws_are_those_of_vllm_in_process_alone_and_among_500(server, vllm_engine):
    requests = plan(LANGS, 14, samples=2)[:500]
    engine = connect(server)
    together = ask(engine, requests, DRAWN)
    assert said(together) == said(ask(vllm_engine, requests, DRAWN))
    for request in requests[::100]:
        (alone,) = engine.generate([request], DRAWN)
        assert alone.text == together[request.id].text


def test_choices_and_probabilities_are_those_of_vllm_in_process(server, vllm_engine):
    requests = plan(("kk", "hi", "zh"), 3, decodes=("choice", "logprob"))
    ours, theirs = ask(connect(server), requests), ask(vllm_engine, requests)
    for request in requests:
        one, other = ours[request.id], theirs[request.id]
        if request.decode == "choice":
            assert one.text == other.text
            continue
        rows = {tuple(c["tokens"]): c for c in other.continuations}
        assert len(rows) == len(one.continuations)
        for form in one.continuations:
            values = rows[tuple(form["tokens"])]["logprobs"]
            assert form["logprobs"] == pytest.approx(values, abs=1e-4)


def test_an_ignored_constraint_is_found_out(server):
    """What vLLM does with a field that it does not know: status 200, and any reply."""

    def strip(body):
        return {k: v for k, v in body.items() if k != "structured_outputs"}

    requests = plan(("kk",), 2, decodes=("choice",))
    with (
        Faulty(upstream=server.removesuffix("/v1"), change=strip) as proxy,
        pytest.raises(EngineError, match="ignores structured outputs"),
    ):
        ask(connect(proxy.url), requests)


def test_one_that_is_too_long_fails_alone(server):
    requests = plan(("de",), 2)
    long = [{"role": "user", "content": "viel " * 3000}]
    requests.append(type(requests[0])(**{**vars(requests[0]), "id": "long", "messages": long}))
    found = ask(connect(server), requests)
    assert found["long"].kind == "too-long" and "\n" not in found["long"].detail
    assert sum(isinstance(r, Response) for r in found.values()) == 6


def test_six_hundred_requests_through_every_fault(server, monkeypatch):
    """Nothing lost, nothing invented, nothing asked again that had been answered."""
    monkeypatch.setattr(_http, "BACKOFF", 0.05)
    few = Sampling(temperature=1.0, max_tokens=6)
    requests = plan(LANGS, 12, samples=3)[:600]
    assert len(requests) == 600
    expected = {k: r.text for k, r in ask(connect(server), requests, few).items()}
    rng = random.Random(3)
    often = {"hang": 4, "refuse": 2, "die": 2, "429-wait": 2}
    rest = [fault for fault in FAULTS for _ in range(often.get(fault, 12))]
    rest += [None] * (690 - len(rest))
    rng.shuffle(rest)
    faults = [None] * 30 + rest
    with Faulty(faults, server.removesuffix("/v1"), hang=22.0, away=0.5) as proxy:
        found = ask(connect(proxy.url, read_timeout=20.0, total_timeout=300.0), requests, few)
    assert {k: r.text for k, r in found.items() if isinstance(r, Response)} == expected
    happened = Counter(what for _, what in proxy.log)
    assert all(happened[fault] for fault in FAULTS), happened
    answered = Counter(body for body, what in proxy.log if what == "answered")
    times = Counter(answered[r.sent] for r in found.values())
    assert times == {1: 600}
    assert sum(answered.values()) <= 600 + 6  # and the calls that learn the dialect
    assert {r.finish for r in found.values()} == {"stop", "length"}
