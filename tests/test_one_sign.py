"""Every judge reads every reply: one sign, nothing, signs that are broken, in every language."""

import itertools

import pytest
from test_linear import JUDGES, item, judges, scored

from genprobe.errors import InputError
from genprobe.judges import Verdict
from genprobe.judges.classifiers import cards
from genprobe.resources import registry

LANGUAGES = registry.names("languages")
# One of each kind of sign, as Unicode sorts them, and what models write instead of an answer.
SIGNS = {
    "nothing": ["", " ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\u3000", "\ufeff", " \n \n"],
    "stops": [
        ".",
        "!",
        "?",
        "…",
        "...",
        "?!",
        "。",
        "？",
        "।",
        "؟",
        "۔",
        ":",
        ";",
        ",",
        "،",
        "、",
        "·",
    ],
    "brackets": [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "（",
        "「",
        "」",
        "()",
        "[]",
        "{}",
        "<>",
        "[ ]",
    ],
    "quotes": ['"', "'", "`", "“", "”", "„", "«", "»", "‘", "’", '""', "“”", "```", "```\n```"],
    "marks": [
        "-",
        "–",
        "—",
        "_",
        "*",
        "#",
        "/",
        "\\",
        "|",
        "~",
        "^",
        "@",
        "&",
        "%",
        "**",
        "---",
        "___",
        "# ",
    ],
    "symbols": [
        "+",
        "=",
        "$",
        "€",
        "✓",
        "✗",
        "☑",
        "☐",
        "→",
        "😀",
        "👩‍⚕️",
        "🇰🇿",
        "❤️",
        "\\boxed{}",
        "[x]",
    ],
    "letters": ["a", "A", "b", "1", "0", "٣", "३", "½", "²", "是", "ب", "न", "ж", "ß", "İ", "ﷺ"],
    "marks alone": ["\u0301", "\u093f", "\u094d", "\u064b", "\u0300\u0301" * 40],
    "unseen": [
        "\0",
        "\x1b",
        "\x7f",
        "\u200b",
        "\u200d",
        "\u200e",
        "\u202e",
        "\u00ad",
        "\ue000",
        "\uffff",
    ],
    "halves": ["\ud800", "\udfff", "\udc00\ud800", "\ufffd", "no \ud83d"],
    "tags": [
        "<think>",
        "</think>",
        "<think></think>",
        "<answer>",
        "<answer></answer>",
        "<|channel|>",
    ],
}
REPLIES = list(itertools.chain(*SIGNS.values()))
PROMPTS = ("", ".", "Do you agree?\nA) yes\nB) no")
# Judges that read the same in all languages, or ask a model, and so need not read all replies in each.
ONCE = {"likeliest", "llm", "probability", "refusal"}


@pytest.fixture(scope="module")
def made():
    return dict(judges())


def has_classifier(lang):
    try:
        return bool(cards.default(lang, "sentiment"))
    except InputError:
        return False


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_reads_every_sign_and_nothing(made, name):
    """No judge fails, and evidence is a part of what was read."""
    judge = made[name]
    known = LANGUAGES if name != "sentiment" else list(filter(has_classifier, LANGUAGES))
    for lang in ["en"] if name in ONCE else known:
        for reply in REPLIES:
            prompt = PROMPTS[len(reply) % len(PROMPTS)]
            verdict = judge(one := item(reply, lang)._replace(prompt=prompt))
            assert isinstance(verdict, Verdict) and isinstance(verdict.label, str), (lang, reply)
            if verdict.evidence and name in ("yesno", "choice", "refusal"):
                assert verdict.evidence[0] in one.response or name == "choice", (lang, reply)


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize(
    "more",
    [
        {"options": ("", " ", ".")},
        {"options": ("yes", "yes")},
        {"options": ("a", "b"), "marks": ("", "")},
        {"reasoning": ".", "finish": "length"},
        {"reasoning": "\ud800", "reasoning_from": "hidden"},
        {"opened": True},
        {"finish": "content_filter"},
        {"finish": "refusal"},
    ],
    ids=str,
)
def test_what_stands_around_a_reply_may_be_odd_too(made, name, more):
    for reply in ("", ".", "A", "yes", "\ud800", "<think>", "...\n\n..."):
        assert isinstance(made[name](item(reply)._replace(**more)), Verdict), reply


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_reads_nothing_at_all(made, name):
    judge = made[name]
    for continuations in ((), scored(""), scored("."), scored("no")):
        assert isinstance(judge(item("")._replace(continuations=continuations)), Verdict)
    if hasattr(judge, "many"):
        assert list(judge.many([])) == []
