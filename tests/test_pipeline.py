from __future__ import annotations

import dataclasses
import functools
import random
from pathlib import Path

import pytest
from sample import REQUESTS, STATEMENTS, Echo, Scripted, reply, start

from genprobe.engines import Sampling
from genprobe.errors import EngineError, InputError
from genprobe.records import Failure, LogProb, Request, Response
from genprobe.resources.packs import load_pack
from genprobe.tasks.pipeline.generate import Counts, generate, unanswered
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

GREEDY = Sampling()
PACK = load_pack()


# -- plan --------------------------------------------------------------------------------------


def test_a_request_is_the_wording_with_the_statement_in_it() -> None:
    (request,) = plan(STATEMENTS[:1], PACK, ["agreement"], seed=0)
    text = PACK.wordings["en"]["agreement"].text.replace("{input}", STATEMENTS[0].text)
    assert request.messages == [{"role": "user", "content": text}]
    assert (request.statement, request.lang, request.probe) == ("s0", "en", "agreement")
    assert request.pack == PACK.id


def test_a_system_message_is_sent_only_by_a_pack_that_has_one() -> None:
    pack = dataclasses.replace(PACK, system="Answer in one word.")
    (request,) = plan(STATEMENTS[:1], pack, ["agreement"], seed=0)
    assert [m["role"] for m in request.messages] == ["system", "user"]
    assert request.messages[0]["content"] == "Answer in one word."


def test_ids_and_seeds_do_not_depend_on_what_else_is_asked() -> None:
    alone = plan(STATEMENTS[2:], PACK, ["disagreement"], seed=7)
    assert alone[0] in plan(STATEMENTS, PACK, ["agreement", "disagreement"], seed=7, samples=3)
    assert {r.id for r in alone} == {
        r.id for r in plan(STATEMENTS[2:], PACK, ["disagreement"], seed=8)
    }


def test_samples_have_seeds_of_their_own() -> None:
    requests = plan(STATEMENTS, PACK, list(PACK.probes), seed=0, samples=5)
    assert len(requests) == 3 * 3 * 5
    assert len({r.seed for r in requests}) == len({r.id for r in requests}) == len(requests)
    assert [r.sample for r in requests[:5]] == [0, 1, 2, 3, 4]
    other = plan(STATEMENTS, PACK, list(PACK.probes), seed=1, samples=5)
    assert not {r.seed for r in requests} & {r.seed for r in other}


@pytest.mark.parametrize(
    "lang, probe, said",
    [
        ("en", "agreemnt", "did you mean 'agreement'"),
        ("xx", "agreement", "'s0'.*no wordings in 'xx'"),
    ],
)
def test_what_the_pack_lacks_is_refused(lang: str, probe: str, said: str) -> None:
    statement = dataclasses.replace(STATEMENTS[0], lang=lang)
    with pytest.raises(InputError, match=said):
        plan([statement], PACK, [probe], seed=0)


def test_the_same_statement_twice_is_refused() -> None:
    with pytest.raises(InputError, match="'s1' \\(en\\) is given twice"):
        plan([*STATEMENTS, STATEMENTS[1]], PACK, ["agreement"], seed=0)


# -- generate ----------------------------------------------------------------------------------


def test_counts_add_up_and_failures_are_asked_again(tmp_path: Path) -> None:
    def flaky(request: Request) -> Response | Failure:
        if request in REQUESTS[:2]:
            return Failure(request.id, "engine", "refused", 3)
        return reply(request)

    seen: list[Counts] = []
    with start(tmp_path) as run:
        assert generate(run, Scripted(flaky), GREEDY, seen.append)[:4] == (4, 2, 0, 6)
        assert [c.done + c.failed for c in seen] == [0, 1, 2, 3, 4, 5, 6]
        assert list(run.pending()) == REQUESTS[:2]
    with start(tmp_path) as run:
        engine = Scripted()
        assert generate(run, engine, GREEDY) == Counts(2, 0, 4, 6)
        assert engine.asked == [r.id for r in REQUESTS[:2]]
        assert len(list(run.failures())) == 2  # history
        assert run.verify() == []
        assert generate(run, Scripted(), GREEDY) == Counts(0, 0, 6, 6)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EngineError, MemoryError])
def test_a_run_that_is_stopped_goes_on(tmp_path: Path, stop: type[BaseException]) -> None:
    def stopping(request: Request) -> Response:
        if request == REQUESTS[3]:
            raise stop
        return reply(request)

    with pytest.raises(stop), start(tmp_path) as run:
        generate(run, Scripted(stopping), GREEDY)
    with start(tmp_path) as run:
        assert list(run.pending()) == REQUESTS[3:]
        assert generate(run, Scripted(), GREEDY) == Counts(3, 0, 3, 6)
        assert run.verify() == []


def test_an_engine_that_answers_too_much_or_too_little_is_caught(tmp_path: Path) -> None:
    cases = {
        "twice": lambda requests: [requests[0], requests[0]],
        "unasked": lambda requests: [dataclasses.replace(requests[0], id="f" * 16)],
        "left 5 of 6 requests": lambda requests: requests[:1],
    }
    for said, order in cases.items():
        with start(tmp_path / said) as run, pytest.raises(EngineError, match=said):
            generate(run, Scripted(order=order), GREEDY)
        with start(tmp_path / said) as run:
            generate(run, Scripted(), GREEDY)
            assert run.verify() == []


def test_an_answer_of_another_kind_is_caught(tmp_path: Path) -> None:
    def wrong(request: Request) -> LogProb:
        return LogProb(request.id, [], "", 1)

    with start(tmp_path) as run:
        with pytest.raises(EngineError, match="with another kind"):
            generate(run, Scripted(wrong), GREEDY)
        assert not list(run.logprobs())


# -- judge -------------------------------------------------------------------------------------


def test_judgments_are_the_same_bytes_however_the_run_went(tmp_path: Path) -> None:
    files = set()
    for seed in range(4):
        folder = tmp_path / str(seed)
        engine = Scripted(order=functools.partial(random.Random(seed).sample, k=2))
        for left in (4, 2, 0):
            with start(folder) as run:
                if left:
                    with pytest.raises(EngineError, match=f"left {left} of"):
                        generate(run, engine, GREEDY)
                else:
                    generate(run, engine, GREEDY)
                judge(run, [Echo()])
        files.add((folder / "judgments" / "echo.jsonl").read_bytes())
    assert len(files) == 1


def test_what_asking_again_cannot_mend_is_said(tmp_path: Path) -> None:
    def failing(*kinds: str) -> str:
        left = {r.id: kind for r, kind in zip(REQUESTS, kinds, strict=False)}

        def answer(request: Request) -> Response | Failure:
            kind = left.get(request.id)
            return Failure(request.id, kind, "", 1) if kind else reply(request)

        with start(tmp_path / "-".join(kinds)) as run:
            generate(run, Scripted(answer), GREEDY)
            return unanswered(run)

    long = "too long for the model (give it a longer context, or shorter statements)"
    assert failing() == ""
    assert failing("http-500") == "1 request has no reply; the same command asks it again"
    assert failing("too-long", "too-long") == (
        f"2 requests have no reply, and asking again does not help: 2 are {long}"
    )
    assert failing("too-long", "http-500", "http-500") == (
        f"3 requests have no reply; the same command asks 2 of them again, but 1 is {long}"
    )


def test_a_judge_sees_the_question_and_nothing_of_failures(tmp_path: Path) -> None:
    def first_fails(request: Request) -> Response | Failure:
        failed = Failure(request.id, "too-long", "9 > 8", 1)
        return failed if request == REQUESTS[0] else reply(request)

    seen: list[str] = []
    with start(tmp_path) as run:
        generate(run, Scripted(first_fails), GREEDY)
        assert judge(run, [Echo()], seen.append) == {"echo": 5}
        judgments = list(run.judgments("echo"))
        assert run.judges() == {"echo": "1"}
        assert run.verify() == []
    assert seen == ["echo"] * 5
    assert [j.request for j in judgments] == [r.id for r in REQUESTS[1:]]
    for judgment, request in zip(judgments, REQUESTS[1:], strict=True):
        assert judgment.label == "en"
        assert judgment.evidence == reply(request).text
        assert judgment.fields == {"prompt": request.messages[-1]["content"]}
