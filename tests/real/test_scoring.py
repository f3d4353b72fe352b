"""Log-probabilities by the real vLLM: those of transformers."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm")

import torch
import transformers
from conftest import FLOAT, serving
from tokenizers import processors

from genprobe.datasets import statements
from genprobe.engines import Options, Sampling, openai, scoring, vllm
from genprobe.records import Failure, LogProb, Request


def request(text: str, context: str = "") -> Request:
    messages = [{"role": "context", "content": context}] if context else []
    options = {"text": [text]}
    name = f"{context}|{text}"
    return Request(name, "s", "en", "text/1", "causal", messages, 0, 0, "score", options)


def requests() -> list[Request]:
    items, _ = statements.load("builtin")
    assert len({s.lang for s in items[::23]}) == 18
    found = [request(s.text) for s in items[::23]]
    found += [request(" " + s.text, "It is said:") for s in items[::225]]
    return found + [request(s.text, c) for s in items[::225] for c in ("It is said: ", "Say", "  ")]


def compare(ours: scoring.Scorer, theirs: scoring.Scorer) -> None:
    """Equal but for rounding."""
    assert ours.first == theirs.first
    one, two = ({r.request: r for r in s.generate(requests(), Sampling())} for s in (ours, theirs))
    assert one.keys() == two.keys() == {r.id for r in requests()}
    for name, record in one.items():
        other = two[name]
        assert isinstance(record, LogProb) and isinstance(other, LogProb)
        assert record.sent == other.sent and record.tokens_in == other.tokens_in
        (a,), (b,) = record.continuations, other.continuations
        assert a["tokens"] == b["tokens"] and len(a["logprobs"]) == len(a["tokens"])
        assert a["logprobs"] == pytest.approx(b["logprobs"], abs=1e-4)


def test_values_are_those_of_transformers(vllm_engine, control):
    ours, theirs = vllm.VllmScorer(vllm_engine), scoring.open(control, FLOAT)
    assert ours.identity.revision == theirs.identity.revision
    compare(ours, theirs)


def test_a_servers_values_are_those_of_transformers(server, control):
    ours = openai.open_scorer("", Options(base_url=server, more={"tokenizer": control}))
    theirs = scoring.open(control, FLOAT)
    assert ours.identity.engine_version.startswith("vllm 0.")
    assert ours.identity.chat_template == theirs.identity.chat_template != "none"
    compare(ours, theirs)


@pytest.mark.parametrize(
    ("around", "first"), [("<|begin|> $A", "bos <|begin|>"), ("", "eos <|end|>")]
)
def test_a_server_tells_the_tokens(around, first, control, tmp_path):
    """Also the one that ends a text, where its tokenizer puts nothing before one."""
    raw = transformers.AutoTokenizer.from_pretrained(control).backend_tokenizer
    ids = [("<|begin|>", raw.token_to_id("<|begin|>"))]
    raw.post_processor = processors.TemplateProcessing(single=around or "$A", special_tokens=ids)
    special = {"eos_token": "<|end|>"} | ({"bos_token": "<|begin|>"} if around else {})
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **special)
    tokenizer.save_pretrained(tmp_path)
    net = transformers.AutoModelForCausalLM.from_pretrained(control, dtype=torch.float32)
    net.save_pretrained(tmp_path)
    with serving(str(tmp_path), "--max-model-len", "512") as url:
        ours = openai.open_scorer("", Options(base_url=url))
        assert (ours.first, ours.identity.chat_template) == (first, "none")
        compare(ours, scoring.open(str(tmp_path), FLOAT))


def test_one_that_a_server_finds_too_long_fails_alone(server):
    ours = openai.open_scorer("", Options(base_url=server))
    found = list(ours.generate([request("viel " * 3000), request("Old people.")], Sampling()))
    kinds = {r.request: getattr(r, "kind", "scored") for r in found}
    assert kinds == {"|" + "viel " * 3000: "too-long", "|Old people.": "scored"}


def test_one_that_is_too_long_fails_alone(vllm_engine):
    ours = vllm.VllmScorer(vllm_engine)
    found = list(ours.generate([request("viel " * 3000), request("Old people.")], Sampling()))
    kinds = {r.request: type(r) for r in found}
    assert kinds == {"|" + "viel " * 3000: Failure, "|Old people.": LogProb}
