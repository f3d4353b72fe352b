"""The same plan through ray.data.llm: a replica of the real vLLM, and a real server."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

pytest.importorskip("vllm")
pytest.importorskip("ray")

from conftest import FLOAT, plan

from genprobe.engines import Sampling, ray
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Response

GREEDY, DRAWN = Sampling(max_tokens=24), Sampling(temperature=1.0, max_tokens=24)
LANGS = ("kk", "zh", "de", "bn")
BLOCK = 8
LONG = [{"role": "user", "content": "Is that so? " * 500}]


@pytest.fixture(scope="module")
def ray_engine(control):
    with pytest.MonkeyPatch.context() as patch:  # Ray's workers get what is set when it starts
        patch.setenv("GENPROBE_API_KEY", "top-secret")
        engine = ray.open(control, dataclasses.replace(FLOAT, more={"block": BLOCK}))
        yield engine
    engine.close()


def by_id(records) -> dict:
    records = list(records)
    found = {record.request: record for record in records}
    assert len(found) == len(records)
    return found


def test_greedy_records_of_every_decode_are_those_of_vllm(ray_engine, vllm_engine, capfd):
    requests = plan(LANGS, 1, decodes=("free", "choice", "logprob"))
    long = dataclasses.replace(requests[0], id="long", messages=LONG)
    capfd.readouterr()
    found = by_id(ray_engine.generate([long, *requests], GREEDY))
    assert capfd.readouterr() == ("", "")
    failure = found.pop("long")
    assert isinstance(failure, Failure) and failure.kind == "too-long"
    expected = by_id(vllm_engine.generate(requests, GREEDY))
    assert found.keys() == expected.keys()
    for name, theirs in expected.items():
        ours = found[name]
        if isinstance(theirs, LogProb):
            assert isinstance(ours, LogProb)
            for one, other in zip(ours.continuations, theirs.continuations, strict=True):
                assert one["tokens"] == other["tokens"]
                assert one["logprobs"] == pytest.approx(other["logprobs"], abs=1e-4)
        else:  # text, finish, tokens and what was sent
            assert ours == theirs


def test_a_run_stopped_behind_a_block_goes_on_with_the_same_seeds(ray_engine, vllm_engine):
    requests = plan(LANGS, 3)[:30]
    answers = ray_engine.generate(requests, DRAWN)
    stored = by_id(itertools.islice(answers, BLOCK))
    answers.close()
    rest = [r for r in requests if r.id not in stored]
    found = by_id(ray_engine.generate(rest, DRAWN))
    assert found.keys() == {r.id for r in rest}
    assert {**stored, **found} == by_id(vllm_engine.generate(requests, DRAWN))


def test_a_server_gives_the_same_texts_and_failures_stay_alone(
    ray_engine, vllm_engine, server, capfd
):
    options = dataclasses.replace(FLOAT, base_url=server, more={"block": BLOCK})
    engine = ray.open("", options)
    assert engine.identity.model == "control"
    requests = plan(LANGS, 2)
    long = dataclasses.replace(requests[0], id="long", messages=LONG)
    capfd.readouterr()
    found = by_id(engine.generate([*requests, long], DRAWN))
    assert capfd.readouterr() == ("", "")
    failure = found.pop("long")
    assert isinstance(failure, Failure) and failure.kind == "too-long"
    expected = by_id(vllm_engine.generate(requests, DRAWN))
    assert {k: r.text for k, r in found.items()} == {k: r.text for k, r in expected.items()}
    for name, record in found.items():
        assert isinstance(record, Response) and record.finish == expected[name].finish
        assert record.tokens_in == expected[name].tokens_in
        assert "top-secret" not in record.sent
    with pytest.raises(EngineError, match="--engine openai"):
        list(engine.generate(plan(("de",), 1, decodes=("choice",)), GREEDY))
    engine.close()
    assert "top-secret" not in repr(vars(engine))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"max_model_length": 9}, "did you mean 'max_model_len'"),
        ({"replicas": 0}, "replicas=0"),
        ({"generation_config": "auto"}, "generation_config"),
    ],
)
def test_an_unknown_argument_is_refused_in_a_line(control, more, words):
    with pytest.raises(EngineError, match=words) as caught:
        ray.open(control, dataclasses.replace(FLOAT, more=more))
    assert "\n" not in str(caught.value)
