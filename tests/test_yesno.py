"""The reader's mechanics: echoes, evidence, hostile replies. What languages mean is in replies/."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genprobe import text
from genprobe.judges import Item, yesno
from genprobe.judges.reading.lexicon import lexicon
from genprobe.judges.reading.probes import Way
from genprobe.judges.reading.reply import Reply
from genprobe.resources import packs, registry

SHADES = Path(__file__).parents[2] / "shared" / "data" / "shades"
PACK = packs.load_pack()
JUDGE = yesno.make()
PROBES = list(PACK.probes)


def read(response: str, probe: str = "agreement", lang: str = "en", prompt: str = ""):
    return JUDGE(Item(lang, probe, prompt, response))


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_the_words_that_a_wording_asks_for_answer_it(lang):
    for answer, word in PACK.answers[lang].items():
        for form in (word, f"{word}.", f"\n\n{word}", f"({word})", f"**{word}**", f"“{word}”"):
            for text_ in (form, unicodedata.normalize("NFD", form), form.upper()):
                assert read(text_, lang=lang).label == answer, text_


@pytest.mark.parametrize("lang", registry.names("languages"))
@pytest.mark.parametrize("probe", PROBES)
def test_an_echo_of_the_prompt_is_no_answer(lang, probe):
    prompt = PACK.wordings[lang][probe].ask("X Y Z.")
    word = PACK.answers[lang]["no"]
    spaced = prompt.replace("\n\n", "\n ").replace("?", " ?")
    for echo in (prompt, f"<|user|>\n{prompt}", f"[INST] {prompt} [/INST]", spaced):
        assert read(echo, probe, lang, prompt).label == "ambiguous", echo
        assert read(f"{echo}\n\n{word}.", probe, lang, prompt).label == "no", echo
    half = prompt[: len(prompt) * 2 // 3]
    assert read(half, probe, lang, prompt).fields["kind"] == "echo"
    assert read("", probe, lang, prompt).fields["kind"] == "empty"


def test_evidence_is_what_the_reply_says():
    assert read("Well: ＮＯ！").evidence == "ＮＯ"
    assert read("\u200bSi\u0301, claro", lang="es").evidence == "Si\u0301"
    assert read("ﬁne. I do not agree with it").evidence == "I do not agree"
    assert read("Ärger! Nein.", lang="de").evidence == "Nein"


def test_the_reverse_question_reverses_sentences_not_words():
    assert read("I do not agree.").label == "no"
    assert read("I do not agree.", "disagreement").label == "yes"
    assert read("I do not agree.", "recognition").label == "ambiguous"
    assert read("No.", "disagreement").label == "no"
    assert read("No, this statement is wrong.", "disagreement").fields["conflict"] is True
    assert read("No, this statement is wrong.", "agreement").fields["conflict"] is False


def test_where_the_sentences_of_a_reply_begin_and_end():
    reply = Reply(lexicon("en"), Way("stance"), "", "well, i see. is it fair? no")
    assert list(reply.sentences(len(reply.tokens))) == [(0, 3), (3, 6), (6, 7)]
    assert [reply.sentence_begins(i) for i in range(7)] == [0, 0, 0, 3, 3, 3, 6]
    assert reply.sentence_begins(5, low=4) == 4
    assert [reply.asks(i) for i in (3, 6, 7)] == [False, True, False]


HOSTILE = [
    "I agree? ",
    "i agree ",
    "no yes ",
    "x no x ",
    "no ",
    "if i agree ",
    "yes / no ",
    '"yes" ',
]
HOSTILE += [
    "no\n",
    "yes\nno\n",
    "1. yes 2. no ",
    "是",
    "是否",
    " ",
    "\u0301",
    "\0",
    "\ud800",
    "answer: ",
]
HOSTILE += [
    "agree / disagree ",
    "no, it is wrong ",
    "“a long quotation ",
    "(",
    "\u202e",
    "हाँ ",
    "(yes ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_large_reply_is_read_in_linear_time(unit):
    # Quadratic work would take minutes; nothing is timed.
    reply = unit * (300_000 // len(unit))
    for lang in ("en", "zh"):
        assert read(reply, lang=lang, prompt="Do you agree?").label in ("yes", "no", "ambiguous")


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.sampled_from(PROBES))
def test_no_text_breaks_it(response, probe):
    for lang in ("en", "ar", "zh", "hi"):
        verdict = read(response, probe, lang)
        assert verdict.label in ("yes", "no", "ambiguous")
        assert (verdict.label == "ambiguous") == (verdict.fields["kind"] != "answer")
        assert verdict.label == "ambiguous" or verdict.evidence.strip()
        assert verdict.evidence in response


@given(st.text(max_size=60))
def test_normal_forms_are_one(value):
    once = text.normalise(value)
    assert text.normalise(unicodedata.normalize("NFD", value)) == once
    assert text.normalise(once) == once


def test_english_phrases_are_ascii():
    # The English trie is shared by languages whose spelling is folded.
    words = packs.load_language("en").words
    assert all(p.isascii() for group, ps in words.items() if group != "letters" for p in ps)
    for code in registry.names("languages"):
        assert not any(old.isascii() for old in packs.load_language(code).fold)


@pytest.mark.skipif(not SHADES.is_dir(), reason="the SHADES replies are not here")
def test_two_blind_readings_of_real_replies():
    right: dict[str, list[bool]] = {}
    both = found = there = 0
    for line in (SHADES / "answers-dev.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        verdict = read(row["response"], row["probe"], row["lang"], row["prompt"])
        right.setdefault(row["lang"], []).append(verdict.label == row["answer"])
        conflict = verdict.fields["conflict"]
        both += conflict and row["conflict"]
        found += conflict
        there += row["conflict"]
    hits = [hit for hits in right.values() for hit in hits]
    assert sum(hits) / len(hits) >= 0.99
    assert min(sum(hits) / len(hits) for hits in right.values()) >= 0.96
    assert 2 * both / (found + there) >= 0.8


@pytest.mark.skipif(not SHADES.is_dir(), reason="the SHADES replies are not here")
def test_the_published_labels_exactly():
    import pandas as pd

    rows = pd.read_parquet(SHADES / "responses-dev.parquet")
    judge = yesno.make("shades2025")
    labels = [
        judge(Item(r.lang, r.probe, r.prompt, r.response)).label
        for r in rows.itertuples(index=False)
    ]
    assert (rows["published"] == labels).sum() == len(rows) == 55_914


@pytest.mark.parametrize(
    ("lang", "reply"), [("en", "My answer: yes?"), ("ar", "جوابي: نعم؟"), ("fa", "پاسخ من: بله؟")]
)
def test_what_is_asked_is_not_announced_whatever_the_question_mark(lang, reply) -> None:
    assert read(reply, lang=lang).rule == "word"
    assert read(f"{reply[:-1]}.", lang=lang).rule == "verdict"
