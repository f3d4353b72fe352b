"""Thoughts are set apart from the replies behind them, in every shape that models write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genprobe.linguistics import thoughts

MODERN = Path(__file__).parents[2] / "shared" / "data" / "modern" / "replies.jsonl"
YES = "Yes, many do. So no."  # a thought that holds both answer words

# shape -> what came, the thought, the reply, the state
SHAPES: dict[str, tuple[str, str, str, str]] = {
    "none": ("No.", "", "No.", "none"),
    "think": (f"<think>\n{YES}\n</think>\n\nNo.", YES, "No.", "closed"),
    "capitals": (f"<THINK>{YES}</Think>No.", YES, "No.", "closed"),
    "behind a special token": (f"<|im_start|>assistant\n<think>{YES}</think>No.", YES, "No.", "closed"),
    "empty": ("<think>\n\n</think>\n\nNo.", "", "No.", "closed"),
    "lone end": (f"{YES}\n</think>\n\nNo.", YES, "No.", "closed"),
    "lone end, glued": (f"{YES}</think>no", YES, "no", "closed"),
    "two ends": (f"<think>{YES}</think>\nWait.\n</think>No.", f"{YES}\n\nWait.", "No.", "closed"),
    "nested": (f"<think>a <think>{YES}</think> b</think>No.", f"a <think>{YES}</think> b", "No.", "closed"),
    "nested, cut": (f"<think>a <think>{YES}</think> b. Yes", f"a <think>{YES}</think> b. Yes", "", "open"),
    "several": (f"<think>{YES}</think>Hm.\n<think>b</think>No.", f"{YES}\n\nb", "No.", "closed"),
    "answer first": (f"No.\n<think>{YES}</think>", YES, "No.", "closed"),
    "cut": (f"<think>\n{YES}", YES, "", "open"),
    "cut in its second thought": (f"<think>a</think>\n<think>{YES}", f"a\n\n{YES}", "", "open"),
    "cut in the closing tag": (f"<think>{YES}</thin", f"{YES}</thin", "", "open"),
    "cut in the opening tag": ("<thin", "", "", "open"),
    "nothing behind": (f"<think>{YES}</think>", YES, "", "closed"),
    "thinking": (f"<thinking>{YES}</thinking>\n<answer>No</answer>", YES, "No", "closed"),
    "seed": (f"<seed:think>{YES}</seed:think>No.", YES, "No.", "closed"),
    "opened twice": (f"<think>\n<think>\n{YES}\n</think>\n\nNo.", YES, "No.", "closed"),
    "opened twice, cut": (f"<think>\n<think>\n{YES}", YES, "", "open"),
    "escaped": (f"&lt;think&gt;{YES}&lt;/think&gt;No.", YES, "No.", "closed"),
    "magistral": (f"[THINK]{YES}[/THINK]No.", YES, "No.", "closed"),
    "magistral, cut": (f"[THINK]{YES}", YES, "", "open"),
    "kimi": (f"◁think▷{YES}◁/think▷No.", YES, "No.", "closed"),
    "harmony": (
        f"<|channel|>analysis<|message|>{YES}<|end|><|start|>assistant<|channel|>final<|message|>No.",
        YES, "No.", "closed",
    ),
    "harmony with its return": (
        f"<|channel|>analysis<|message|>{YES}<|end|><|start|>assistant"
        "<|channel|>final<|message|>No.<|return|>",
        YES, "No.", "closed",
    ),
    "harmony, two thoughts": (
        f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>"
        f"{YES}<|end|><|start|>assistant<|channel|>final<|message|>No.",
        f"a\n\n{YES}", "No.", "closed",
    ),
    "harmony, cut": (f"<|channel|>analysis<|message|>{YES}", YES, "", "open"),
    "harmony, final only": ("<|channel|>final<|message|>No.", "", "No.", "none"),
    "harmony, decoded": (f"analysis{YES}assistantfinalNo.", YES, "No.", "closed"),
    "harmony, decoded and cut": (f"analysis{YES}", YES, "", "open"),
    "harmony, decoded with spaces": (f"analysis {YES} assistantfinal No.", YES, "No.", "closed"),
    "harmony, decoded with lines": (f"analysis\n{YES}\nassistantfinal\nNo.", YES, "No.", "closed"),
    "gemma, decoded": (f"thought\n{YES}\nNo.", f"{YES}\nNo.", "", "open"),
    "gemma, decoded in part": (f"thought\n{YES}<channel|>No.", f"thought\n{YES}", "No.", "closed"),
    "gemma": (f"<|channel>thought\n{YES}<channel|>No.", YES, "No.", "closed"),
    "gemma, cut": (f"<|channel>thought\n{YES}", YES, "", "open"),
    "granite": (
        f"Here is my thought process:\n{YES}\n\nHere is my response:\nNo.", YES, "No.", "closed"
    ),
    "granite, in a line": (
        f"Here is my thought process: {YES} Here is my response: No.", YES, "No.", "closed"
    ),
    "granite, cut": (f"Here is my thought process: {YES}", YES, "", "open"),
    "plain": (f"Thinking Process:\n\n1. {YES}\n\n**Final Answer:** No", f"1. {YES}", "No", "closed"),
    "plain, cut": (f"Thinking Process:\n\n1. {YES}", f"1. {YES}", "", "open"),
    "ollama": (f"Thinking...\n{YES}\n...done thinking.\n\nNo.", YES, "No.", "closed"),
    "two stages": (
        f"<|begin_of_thought|>{YES}<|end_of_thought|>\n\n"
        "<|begin_of_solution|>No.<|end_of_solution|>",
        YES, "No.", "closed",
    ),
    "command": (
        f"<|START_THINKING|>{YES}<|END_THINKING|><|START_RESPONSE|>No.<|END_RESPONSE|>",
        YES, "No.", "closed",
    ),
    "apertus": (f"<|inner_prefix|>{YES}<|inner_suffix|>No.", YES, "No.", "closed"),
    "a tag spoken of in the thought": (
        f'<think>I close with "</think>". {YES}</think>No.', f'I close with "</think>". {YES}', "No.", "closed",
    ),
    "an answer's tag in the thought": (
        "<think>I might write <answer>yes</answer>.</think>\n<answer>No</answer>",
        "I might write <answer>yes</answer>.", "No", "closed",
    ),
}  # fmt: skip

# Replies that speak of a tag, or look like a shape, and hold no thought.
MERELY = [
    "No. The tag `<think>` opens a thought.",
    "No. Models write <think> before they answer.",
    "The tag </think> ends a thought. No.",
    "Analysis: the statement is about a group. Yes.",
    "analysis of the statement: no.",
    "The final answer: No",
    "[thinking about it] No.",
    "I think no.",
    "<b>No</b>",
    "Final Answer: No",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_thought_is_set_apart(shape: str) -> None:
    text, thought, reply, state = SHAPES[shape]
    parted = thoughts.part(text)
    assert parted.state == state
    assert parted.reply.strip() == reply
    assert parted.thought == thought


@pytest.mark.parametrize("text", MERELY)
def test_a_reply_that_speaks_of_a_tag_stays_whole(text: str) -> None:
    assert thoughts.part(text) == ("", text, "none")


def test_a_template_that_opens_the_thought() -> None:
    assert thoughts.opens("<|user|>Do you agree?<|assistant|><think>\n")
    assert not thoughts.opens("<|user|>Do you agree?<|assistant|><think>\n\n</think>\n\n")
    assert not thoughts.opens("Do you agree?")
    assert thoughts.part("Yes, many do", opened=True) == ("Yes, many do", "", "open")
    assert thoughts.part("<think>\nYes.</think>No.", opened=True) == ("Yes.", "No.", "closed")
    assert thoughts.part("Yes.</think>No.", opened=True) == ("Yes.", "No.", "closed")


def test_what_a_server_delivers_apart_is_the_thought() -> None:
    assert thoughts.read("No.", "Yes?", "reasoning_content") == ("Yes?", "No.", "closed")
    assert thoughts.read("", "Yes?", "reasoning", finish="length") == ("Yes?", "", "open")
    assert thoughts.read("", "Yes?", "reasoning", finish="stop").state == "closed"
    assert thoughts.read("No.", None, "hidden") == ("", "No.", "hidden")
    assert thoughts.read("", None, "hidden", finish="length").state == "open"
    both = thoughts.read("<think>b</think>No.", "a", "reasoning")
    assert both == ("a\n\nb", "No.", "closed")
    assert thoughts.read("<think>b", "a", "reasoning").state == "open"


@given(st.text(st.characters(exclude_categories=()), max_size=80), st.booleans())
def test_no_text_breaks_it(text: str, opened: bool) -> None:
    parted = thoughts.part(text, opened)
    assert parted.state in thoughts.STATES
    assert parted.reply in text
    assert parted.state != "open" or not parted.reply


@pytest.mark.parametrize(
    "unit",
    ["<think>", "x <think> ", "</think>", "x</think> ", "<think></think>", "[think]x", "<|channel|>a",
     "<|channel|>analysis<|message|>x", "`<think>` ", "analysis", "assistantfinal", "<answer>", "<"],
)  # fmt: skip
@pytest.mark.slow
def test_a_large_text_is_linear(unit: str) -> None:
    # Quadratic work would take minutes; nothing is timed.
    text = unit * (500_000 // len(unit))
    for whole in (text, f"<think>{text}", f"thinking process:\n{text}"):
        assert thoughts.part(whole).state in thoughts.STATES


@pytest.mark.skipif(not MODERN.is_file(), reason="the modern replies are not here")
def test_thoughts_of_modern_replies() -> None:
    rows = [json.loads(line) for line in MODERN.open(encoding="utf-8")]
    for row in rows:
        state = thoughts.part(row["response"]).state
        thinks = row["style"].startswith(
            ("think", "harmony", "diamond", "magistral", "tpro", "gemma")
        )
        if row["style"] == "cot_plain":  # thinks without a mark: "Okay, so the user wants …"
            assert state in ("none", "closed")
            continue
        assert (state != "none") == thinks, row["style"]
        assert (state == "open") == (row["style"] in ("think_cut", "harmony_cut")), row["style"]
