"""Log-probabilities by the real vLLM: those of transformers."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm")

from conftest import FLOAT

from genprobe import scoring, statements
from genprobe.engines import Sampling
from genprobe.records import Failure, LogProb, Request
from genprobe.scoring import vllm


def request(text: str, context: str = "") -> Request:
    messages = [{"role": "context", "content": context}] if context else []
    options = {"text": [text]}
    name = f"{context}|{text}"
    return Request(name, "s", "en", "text/1", "causal", messages, 0, 0, "score", options)


def test_values_are_those_of_transformers(vllm_engine, control):
    items, _ = statements.load("builtin")
    requests = [request(s.text) for s in items[::9]]
    requests += [request(" " + s.text, "It is said:") for s in items[::90]]
    ours = vllm.VllmScorer(vllm_engine)
    theirs = scoring.open(control, FLOAT)
    assert (ours.first, ours.identity.revision) == (theirs.first, theirs.identity.revision)
    one, two = ({r.request: r for r in s.generate(requests, Sampling())} for s in (ours, theirs))
    assert one.keys() == two.keys() == {r.id for r in requests}
    assert len({s.lang for s in items[::9]}) == 18
    for name, record in one.items():
        other = two[name]
        assert isinstance(record, LogProb) and isinstance(other, LogProb)
        assert record.sent == other.sent and record.tokens_in == other.tokens_in
        (a,), (b,) = record.continuations, other.continuations
        assert a["tokens"] == b["tokens"] and len(a["logprobs"]) == len(a["tokens"])
        assert a["logprobs"] == pytest.approx(b["logprobs"], abs=1e-4)


def test_one_that_is_too_long_fails_alone(vllm_engine):
    ours = vllm.VllmScorer(vllm_engine)
    found = list(ours.generate([request("viel " * 3000), request("Old people.")], Sampling()))
    kinds = {r.request: type(r) for r in found}
    assert kinds == {"|" + "viel " * 3000: Failure, "|Old people.": LogProb}
