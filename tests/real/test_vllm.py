"""The real vLLM in this process: the same texts as transformers, seeds, choices, probabilities."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm")

import torch
import transformers
from conftest import FLOAT, plan

from genprobe.engines import Options, Sampling, vllm
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request, Response

GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0)
LANGS = ("kk", "mr", "zh", "ar", "de", "bn")


def ask(engine, requests, sampling=GREEDY) -> dict:
    records = list(engine.generate(requests, sampling))
    assert len(records) == len(requests) == len({r.request for r in records})
    return {r.request: r for r in records}


def test_greedy_replies_are_those_of_transformers(vllm_engine, transformers_engine):
    requests = plan(LANGS, 6)
    ours, theirs = ask(vllm_engine, requests), ask(transformers_engine, requests)
    for request in requests:
        # Text, tokens, finish and what was sent: the whole record.
        assert ours[request.id] == theirs[request.id]
    assert vllm_engine.identity.dtype == "float32"
    assert vllm_engine.identity.revision == transformers_engine.identity.revision


def test_a_seed_gives_one_text_alone_and_among_500(vllm_engine):
    requests = plan(LANGS, 14, samples=2)[:500]
    together = ask(vllm_engine, requests, DRAWN)
    again = ask(vllm_engine, requests[::-1], DRAWN)
    assert {k: r.text for k, r in together.items()} == {k: r.text for k, r in again.items()}
    for request in requests[::50]:
        (alone,) = vllm_engine.generate([request], DRAWN)
        assert alone == together[request.id]
    # Samples are different draws.
    assert len({r.text for r in together.values()}) > 100


def test_a_choice_is_an_option_and_that_of_transformers(vllm_engine, transformers_engine):
    requests = plan(LANGS, 4, decodes=("choice",))
    ours, theirs = ask(vllm_engine, requests), ask(transformers_engine, requests)
    for request in requests:
        texts = [text for options in request.options.values() for text in options]
        assert ours[request.id].text in texts
    same = sum(ours[r.id].text == theirs[r.id].text for r in requests)
    # A word that can be cut into other tokens has other ways in a grammar of texts.
    assert same >= 0.95 * len(requests)
    drawn = ask(vllm_engine, requests, DRAWN)
    assert drawn == ask(vllm_engine, requests[::-1], DRAWN)


def test_probabilities_are_those_of_a_plain_pass(vllm_engine, control):
    requests = plan(("kk", "hi", "zh"), 3, decodes=("logprob",))
    found = ask(vllm_engine, requests, DRAWN)
    net = transformers.AutoModelForCausalLM.from_pretrained(control, dtype=torch.float32)
    worst = 0.0
    for request in requests:
        record = found[request.id]
        assert isinstance(record, LogProb)
        (row,) = vllm_engine.prompts.rows([request])
        for form in record.continuations:
            ids = torch.tensor([[*row.ids, *form["tokens"]]])
            with torch.inference_mode():
                logprobs = net(ids).logits[0].double().log_softmax(-1)
            for n, (token, value) in enumerate(zip(form["tokens"], form["logprobs"], strict=True)):
                plain = float(logprobs[len(row.ids) - 1 + n, token])
                worst = max(worst, abs(value - plain))
    assert worst < 1e-4


def test_one_that_is_too_long_fails_alone(vllm_engine):
    requests = plan(("de",), 3)
    long = [{"role": "user", "content": "viel " * 3000}]
    requests.insert(4, Request(**{**vars(requests[0]), "id": "long", "messages": long}))
    found = ask(vllm_engine, requests)
    assert isinstance(found["long"], Failure) and found["long"].kind == "too-long"
    assert sum(isinstance(r, Response) for r in found.values()) == 9


def test_replies_come_as_they_finish_and_it_can_be_stopped(vllm_engine):
    requests = plan(LANGS, 14)
    answers = vllm_engine.generate(requests, DRAWN)
    first = next(answers)
    assert vllm_engine.llm.llm_engine.get_num_unfinished_requests() > 0
    answers.close()
    assert vllm_engine.llm.llm_engine.get_num_unfinished_requests() == 0
    (again,) = vllm_engine.generate([r for r in requests if r.id == first.request], DRAWN)
    assert again == first


def test_what_it_does_not_take_is_one_line(control, tmp_path):
    cases = {
        "did you mean 'max_model_len'": Options(more={"max_model_lenn": 5}),
        "vLLM has max_num_batched_tokens": Options(batch_tokens=5),
        "built for a CPU here": Options(device="cuda"),
    }
    for says, options in cases.items():
        with pytest.raises(EngineError, match=says):
            vllm.open(control, options)
    tokenizer = transformers.AutoTokenizer.from_pretrained(control)
    config = transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(EngineError, match="encoder-decoder model, which vLLM does not run"):
        vllm.open(str(tmp_path), FLOAT)


def test_too_little_memory_is_one_line_with_the_cure(control):
    with pytest.raises(EngineError) as error:
        vllm.open(control, Options(dtype="float32", more={"kv_cache_memory_bytes": 1000}))
    assert "\n" not in str(error.value) and "kv_cache_memory_bytes" in str(error.value)
