"""Forced choices and probabilities of the transformers engine, against the plainest computation."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch
from scipy import stats
from test_engines import KINDS, engines, questions, zoo  # noqa: F401 (fixtures)

from genprobe.engines import Options, Sampling
from genprobe.engines import transformers as engine_module
from genprobe.errors import EngineError
from genprobe.judges import Item
from genprobe.judges.probability import masses
from genprobe.records import LogProb, Request, Response
from genprobe.resources import packs, registry

# With forms of one and several tokens, inside one another and across the answers.
OPTIONS = {"yes": ["yes", "Yes", "it is", "it is true", " yes"], "no": ["no", "No", "it", "not so"]}


def asked(n: int, decode: str, options: dict | None = None) -> list[Request]:
    options = options or OPTIONS
    return [
        Request(**{**vars(r), "id": f"{r.id}/{decode}", "decode": decode, "options": options})
        for r in questions(n)
    ]


def plain(engine, request: Request, ids: list[int]) -> list[float]:
    """log P of each token of a continuation: one forward pass, no cache, no padding."""
    (row,) = engine.prompts.rows([request])
    with torch.inference_mode():
        if engine.net.config.is_encoder_decoder:
            decoder = [engine.decoder_start, *ids[:-1]]
            out = engine.net(
                input_ids=torch.tensor([row.ids]), decoder_input_ids=torch.tensor([decoder])
            ).logits[0]
        else:
            out = engine.net(input_ids=torch.tensor([[*row.ids, *ids]])).logits[0]
            out = out[len(row.ids) - 1 : -1]
    logprobs = out.double().log_softmax(-1)
    return [float(logprobs[n, token]) for n, token in enumerate(ids)]


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_those_of_a_plain_pass(engines, kind):  # noqa: F811
    engine = engines[kind]
    requests = asked(9, "logprob")
    found = {r.request: r for r in engine.generate(requests, Sampling())}
    assert found.keys() == {r.id for r in requests}
    for request in requests:
        record = found[request.id]
        assert isinstance(record, LogProb) and record.tokens_in and record.sent
        assert {c["text"] for c in record.continuations} == set(itertools.chain(*OPTIONS.values()))
        for row in record.continuations:
            assert row["text"] in OPTIONS[row["answer"]]
            assert row["logprobs"] == pytest.approx(
                plain(engine, request, row["tokens"]), rel=2e-5, abs=1e-4
            )
    # Alone and in another order: the same, and the caller's sampling has no say in it.
    for request in requests[:3]:
        (alone,) = engine.generate([request], Sampling(temperature=2.0, max_tokens=1))
        for one, other in zip(alone.continuations, found[request.id].continuations, strict=True):
            assert one["logprobs"] == pytest.approx(other["logprobs"], rel=2e-5, abs=1e-5)


def test_what_forms_share_is_computed_once(engines, monkeypatch):  # noqa: F811
    engine = engines["llama"]
    (request,) = asked(1, "logprob")
    forms = engine.prompts.forms(OPTIONS)
    nodes = {tuple(f.ids[:n]) for f in forms for n in range(1, len(f.ids))}
    assert len(nodes) < sum(len(f.ids) - 1 for f in forms)
    seen = []
    forward = engine.net.forward

    def counted(*args, **kwargs):
        seen.append(kwargs["input_ids"].numel())
        return forward(*args, **kwargs)

    counted.__signature__ = engine_module.inspect.signature(forward)
    monkeypatch.setattr(engine.net, "forward", counted)
    list(engine.generate([request], Sampling()))
    (row,) = engine.prompts.rows([request])
    assert sum(seen) == len(row.ids) + len(nodes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_is_the_best_allowed_token_at_every_step(engines, kind):  # noqa: F811
    engine = engines[kind]
    requests = asked(8, "choice")
    found = {r.request: r for r in engine.generate(requests, Sampling(max_tokens=1))}
    forms = engine.prompts.forms(OPTIONS)
    end = engine.stop_ids[0]
    for request in requests:
        ids: list[int] = []
        while True:
            follow = {f.ids[len(ids)] for f in forms if f.ids[: len(ids)] == ids < f.ids}
            if any(f.ids == ids for f in forms):
                follow.add(end)
            scores = {t: plain(engine, request, [*ids, t])[-1] for t in follow}
            best = max(scores, key=lambda t: scores[t])
            if best == end:
                break
            ids.append(best)
        text = next(f.text for f in forms if f.ids == ids)
        record = found[request.id]
        assert isinstance(record, Response)
        assert (record.text, record.finish, record.tokens_out) == (text, "stop", len(ids))


def test_drawn_choices_have_their_probabilities(engines):  # noqa: F811
    engine = engines["llama"]
    (request,) = asked(1, "choice", {"yes": ["yes", "Yes"], "no": ["no", "it is"]})
    rows = [Request(**{**vars(request), "id": str(n), "seed": 7919 * n}) for n in range(3000)]
    drawn = Counter(r.text for r in engine.generate(rows, Sampling(temperature=3.0)))
    forms = engine.prompts.forms(request.options)
    end = engine.stop_ids[0]
    expected = dict.fromkeys((f.text for f in forms), 1.0)
    for form in forms:
        ids: list[int] = []
        for token in [*form.ids, end]:
            follow = {f.ids[len(ids)] for f in forms if f.ids[: len(ids)] == ids < f.ids}
            follow |= {end} if any(f.ids == ids for f in forms) else set()
            masses = {t: math.exp(plain(engine, request, [*ids, t])[-1] / 3.0) for t in follow}
            expected[form.text] *= masses[token] / sum(masses.values())
            ids.append(token)
    assert sum(expected.values()) == pytest.approx(1)
    rare = [text for text, p in expected.items() if p * 3000 < 5]
    counts = [(drawn[t], 3000 * p) for t, p in expected.items() if t not in rare]
    counts.append((sum(drawn[t] for t in rare), 3000 * sum(expected[t] for t in rare)))
    observed, wanted = zip(*[c for c in counts if c[1] > 0], strict=True)
    assert set(drawn) <= set(expected)
    assert stats.chisquare(observed, wanted).pvalue > 1e-3
    # One by one they are the same.
    again = {r.request: r.text for n in (5, 6) for r in engine.generate([rows[n]], Sampling(3.0))}
    together = {r.request: r.text for r in engine.generate(rows[:20], Sampling(3.0))}
    assert again.items() <= together.items()


def test_any_end_token_ends_a_choice(engines, monkeypatch):  # noqa: F811
    """A chat model ends its turn with another token than its texts; "it" must not become
    "it is" for want of it."""
    engine = engines["llama"]
    options = {"yes": ["it is", "it is true"], "no": ["it"]}
    requests = asked(6, "choice", options)
    other = engine.tokenizer.convert_tokens_to_ids("<end>")
    monkeypatch.setattr(engine, "stop_ids", [engine.stop_ids[0], other])
    forward = engine.net.forward

    def eager(*args, **kwargs):
        """Certain to end its turn, wherever it may."""
        out = forward(*args, **kwargs)
        out.logits[..., other] += 1e4
        return out

    eager.__signature__ = engine_module.inspect.signature(forward)
    monkeypatch.setattr(engine.net, "forward", eager)
    assert {r.text for r in engine.generate(requests, Sampling())} == {"it"}


def test_room_is_counted_for_each_request_by_itself(engines, monkeypatch):  # noqa: F811
    engine = engines["llama"]
    short, long = (
        asked(1, "choice", {"yes": [word], "no": ["no"]})[0] for word in ("yes", "it is true " * 9)
    )
    (row,) = engine.prompts.rows([short])
    need = max(len(f.ids) for f in engine.prompts.forms(short.options))
    monkeypatch.setattr(engine, "positions", len(row.ids) + need)
    long = Request(**{**vars(long), "id": "long"})
    found = {r.request: r for r in engine.generate([short, long], Sampling())}
    assert isinstance(found[short.id], Response) and found["long"].kind == "too-long"


def test_decodes_may_be_mixed(engines):  # noqa: F811
    engine = engines["qwen2"]
    free = questions(6)
    mixed = [
        r for rows in zip(free, asked(6, "choice"), asked(6, "logprob"), strict=True) for r in rows
    ]
    found = {r.request: r for r in engine.generate(mixed, Sampling(max_tokens=5))}
    alone = {r.request: r for r in engine.generate(free, Sampling(max_tokens=5))}
    assert found.keys() == {r.id for r in mixed}
    assert all(found[name] == record for name, record in alone.items())


def test_options_that_the_tokens_cannot_tell_apart(engines):  # noqa: F811
    with pytest.raises(EngineError, match="cannot tell 'no' from another answer"):
        list(
            engines["llama"].generate(asked(1, "choice", {"yes": ["no"], "no": ["no"]}), Sampling())
        )


def test_arguments_it_does_not_have(zoo):  # noqa: F811
    with pytest.raises(EngineError, match="no argument 'max_model_len'; it has dtype"):
        engine_module.open(str(zoo["llama"]), Options(more={"max_model_len": 1}))


# --- what a probability says


def row(answer: str, tokens: list[int], *ps: float) -> dict:
    return {"answer": answer, "text": "", "tokens": tokens, "logprobs": [math.log(p) for p in ps]}


def both(rows: list[dict]) -> tuple[float, ...]:
    return tuple(masses(rows, ("yes", "no")).values())


def test_masses_of_forms_inside_forms():
    found = both([row("yes", [1], 0.5), row("no", [2], 0.25)])
    assert found == pytest.approx((0.5, 0.25))
    # Inside a form of the same answer: once. The same tokens twice: once.
    rows = [row("yes", [1], 0.5), row("yes", [1, 3], 0.5, 0.5), row("yes", [1], 0.5)]
    assert both(rows) == pytest.approx((0.5, 0.0))
    # Behind a form of the other answer: to itself alone, and what is behind that, back again.
    rows = [row("no", [1], 0.8), row("yes", [1, 2], 0.8, 0.25)]
    assert both(rows) == pytest.approx((0.2, 0.6))
    rows.append(row("no", [1, 2, 3], 0.8, 0.25, 0.5))
    assert both(rows) == pytest.approx((0.1, 0.7))
    assert both([]) == (0.0, 0.0)


def test_the_judge_of_probabilities():
    judge = registry.module("judges", "probability").make()
    rows = [row("yes", [1], 0.1), row("no", [2], 0.3)]
    verdict = judge(Item("en", "agreement", "", "", rows))
    assert verdict.label == "no" and verdict.score == pytest.approx(0.25)
    assert verdict.fields["outside"] == pytest.approx(0.6)
    even = judge(Item("en", "agreement", "", "", [row("yes", [1], 0.1), row("no", [2], 0.1)]))
    assert (even.label, even.fields["kind"], even.score) == ("ambiguous", "both", 0.5)
    nothing = judge(Item("en", "agreement", "", "", []))
    assert (nothing.label, nothing.score, nothing.fields["outside"]) == ("ambiguous", None, 1.0)


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_every_option_is_read_as_its_answer(lang):
    pack, judge = packs.load_pack(), registry.module("judges", "yesno").make()
    for answer, texts in pack.options(lang, "choice").items():
        for text, probe in itertools.product(texts, pack.probes):
            verdict = judge(Item(lang, probe, pack.wordings[lang][probe].ask("…"), text))
            assert (verdict.label, verdict.fields["conflict"]) == (answer, False), (text, probe)
