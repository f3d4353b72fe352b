"""Models of this machine that think: how they are told, and what is asked behind a thought."""

from __future__ import annotations

import json
import statistics

import pytest

from genprobe.engines import Options, Sampling, Thinking, _thinking, control, transformers
from genprobe.engines.control import thoughts as of_control
from genprobe.errors import EngineError
from genprobe.judges import probability
from genprobe.linguistics import thoughts
from genprobe.records import Failure, LogProb, Request
from genprobe.tasks.pipeline import open as opening

OPEN = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}"
    "{% endfor %}{{ '<|assistant|>' }}"
)
# As Qwen3's, but that the thought is opened, as R1's.
SWITCHED = OPEN + (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)
QUESTION = "Do you agree?"
# thought -> answer: the two come equally often, and the answer follows from the thought.
SAID = {"It is kind.": "Yes.", "It is rude.": "No."}
OPTIONS = {"yes": ["Yes"], "no": ["No"]}


def rendering(template: str):
    from jinja2 import Environment

    made = Environment().from_string(template)
    messages = [{"role": "user", "content": "?"}]
    return lambda arguments: made.render(messages=messages, bos_token="", **arguments)


def tell(template: str, mode: str = "default", tokens: int | None = None, **given):
    thinking = Thinking(mode, tokens)
    return _thinking.tell("m", rendering(template), template, thinking, given, 1024)


QWEN = (
    OPEN
    + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
OFF_BY_DEFAULT = OPEN + "{% if thinking %}<think>\n{% endif %}"
ALWAYS = OPEN + "<think>\n"
EFFORT = "Reasoning: {{ reasoning_effort or 'medium' }}<|channel|>" + OPEN


@pytest.mark.parametrize(
    ("template", "mode", "put", "seen"),
    [
        (OPEN, "default", "", ""),
        (OPEN, "off", "", ""),
        (QWEN, "default", "", "thinks"),
        (QWEN, "on", "enable_thinking=on", "thinks"),
        (QWEN, "off", "enable_thinking=off", "closed"),
        (OFF_BY_DEFAULT, "default", "", ""),
        (OFF_BY_DEFAULT, "on", "thinking=on", "opens"),
        (OFF_BY_DEFAULT, "off", "thinking=off", ""),
        (ALWAYS, "default", "", "opens"),
        (ALWAYS, "on", "", "opens"),
        (EFFORT, "default", "", "thinks"),
        (EFFORT, "high", "reasoning_effort=high", "thinks"),
        (OPEN + "{# <think> is cut out of older turns #}", "default", "", "thinks"),
    ],
)
def test_a_template_is_told_by_its_own_switch(template, mode, put, seen):
    found = tell(template, mode)
    assert (found.put, found.seen) == (put, seen)
    assert found.room == (512 if seen in ("opens", "thinks") else 0)
    assert tell(template, mode, tokens=77).room == 77


@pytest.mark.parametrize(
    ("template", "mode", "says"),
    [
        (OPEN, "on", "nothing in its chat template makes it think"),
        (ALWAYS, "off", "no known switch"),
        (EFFORT, "off", "no known switch"),
        (QWEN, "low", "has no levels of thinking"),
        ("", "on", "has no chat template"),
    ],
)
def test_what_a_template_cannot_be_told_is_refused(template, mode, says):
    with pytest.raises(EngineError, match=says) as told:
        tell(template, mode)
    assert "\n" not in str(told.value)


def test_arguments_by_hand_come_last():
    found = tell(QWEN, enable_thinking=False)
    assert (found.kwargs, found.seen) == ({"enable_thinking": False}, "closed")


@pytest.fixture(scope="session")
def thinker(tmp_path_factory) -> str:
    """The control model, taught in half a minute to think one of two thoughts about one question
    and to answer by it; its weights are real, and run through the real engine."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(control.MODEL)
    tokenizer.chat_template = SWITCHED
    net = AutoModelForCausalLM.from_pretrained(control.MODEL, dtype=torch.float32)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], return_dict=False
    )
    texts = [f"{thought}\n</think>\n\n{answer}" for thought, answer in SAID.items()]
    rows = [
        [*prompt, *tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        for text in texts
    ]
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    labels = ids.clone()
    labels[:, : len(prompt)] = -100
    for at, row in enumerate(rows):
        labels[at, len(row) :] = -100
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3)
    net.train()
    for _ in range(80):
        loss = net(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    folder = tmp_path_factory.mktemp("thinker")
    net.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def opened(folder: str, mode: str = "default", **more):
    options = Options(dtype="float32", device="cpu", thinking=Thinking(mode), **more)
    return transformers.open(folder, options)


def asked(n: int, decode: str = "free") -> list[Request]:
    messages = [{"role": "user", "content": QUESTION}]
    options = OPTIONS if decode != "free" else {}
    return [
        Request(f"r{i}", "s", "en", "p@1", "agreement", messages, i, i, decode, options)
        for i in range(n)
    ]


DRAWN = Sampling(temperature=1.0, max_tokens=16)


def test_a_reply_keeps_its_thought_and_is_read_behind_it(thinker):
    notes: list[str] = []
    engine = opened(thinker, note=notes.append)
    assert engine.identity.thinking_seen == "opens" and engine.identity.thinking == "512 tokens"
    assert len(notes) == 1 and "thinks before it answers: 512 tokens" in notes[0]
    found = list(engine.generate(asked(40), DRAWN))
    read = [thoughts.read(r.text, opened=thoughts.opens(r.sent)) for r in found]
    assert sum((p.thought, p.reply.strip()) in SAID.items() for p in read) >= 34
    assert 8 <= sum(p.reply.strip() == "Yes." for p in read) <= 32


def test_a_thought_that_is_cut_is_seen_to_be(thinker):
    engine = opened(thinker)
    engine.how = engine.how._replace(room=1)
    (found,) = engine.generate(asked(1), Sampling(max_tokens=1))
    assert found.finish == "length"
    assert thoughts.read(found.text, opened=thoughts.opens(found.sent)).state == "open"
    (lost,) = engine.generate(asked(1, "choice"), Sampling(max_tokens=1))
    assert isinstance(lost, Failure) and lost.kind == "unfinished"


@pytest.mark.parametrize("decode", ["choice", "logprob"])
def test_never_in_the_middle_of_a_thought(thinker, decode):
    engine = opened(thinker)
    with pytest.raises(EngineError, match=f"--decode {decode} would ask in the middle"):
        engine.prepare(asked(1, decode), DRAWN)
    opened(thinker, "on").prepare(asked(1, decode), DRAWN)
    off = opened(thinker, "off")
    off.prepare(asked(1, decode), DRAWN)
    (record,) = off.generate(asked(1, decode), DRAWN)
    assert record.sent.endswith("<think>\n\n</think>\n\n")


def test_a_choice_behind_a_thought(thinker):
    found = list(opened(thinker, "on").generate(asked(30, "choice"), DRAWN))
    found = [r for r in found if not isinstance(r, Failure)]  # of which the thought had no end
    assert len(found) >= 24
    right = sum(SAID.get(r.reasoning, "")[:-1] == r.text for r in found)
    assert right >= 0.9 * len(found) and {r.text for r in found} == {"Yes", "No"}
    for record in found:
        assert record.sent.rstrip().endswith("</think>") and record.reasoning_tokens
        assert thoughts.read(record.text, record.reasoning).state == "closed"


def test_probabilities_behind_thoughts_are_those_given_each(thinker):
    """P(yes | thought) is near 1 behind one and near 0 behind the other, as it was taught; computed
    anew by the network over the whole text."""
    import torch

    engine = opened(thinker, "on")
    found = [r for r in engine.generate(asked(20, "logprob"), DRAWN) if isinstance(r, LogProb)]
    assert len(found) >= 15
    for record in found[:6]:
        # As the model wrote it: white space is cut otherwise at the end of a text.
        whole = engine.tokenizer(f"{record.sent}Yes", add_special_tokens=False)["input_ids"]
        ids = whole[: -len(record.continuations[0]["tokens"])]
        with torch.inference_mode():
            after = engine.net(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        for form in record.continuations:
            assert form["logprobs"][0] == pytest.approx(float(after[form["tokens"][0]]), abs=1e-3)
    by_thought: dict[str, list[float]] = {}
    for record in found:
        yes, no = probability.masses(record.continuations, ("yes", "no")).values()
        by_thought.setdefault(record.reasoning, []).append(yes / (yes + no))
    kind, rude = (by_thought[thought] for thought in SAID)
    assert statistics.median(kind) > 0.9 and statistics.median(rude) < 0.1
    assert LogProb.from_json(found[0].to_json()) == found[0]
    assert json.loads(found[0].to_json())["reasoning"] in SAID


def test_the_control_model_that_thinks_gets_room_for_its_thoughts_and_no_more():
    notes: list[str] = []
    asked = Options(thinking=Thinking("on"), note=notes.append)
    assert opening.control_room(asked) == of_control.THINK_TOKENS
    assert opening.control_room(Options(thinking=Thinking("on", 7))) == 7
    assert opening.control_room(Options()) is None
    engine = opening.open_engine("auto", None, asked)
    assert engine.how.room == of_control.THINK_TOKENS
    assert any(f"{of_control.THINK_TOKENS} tokens are added" in note for note in notes)
