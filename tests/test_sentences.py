"""The splitter of sentences: texts counted by a person, other languages, hostile input."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from genprobe.linguistics.sentences import sentences

# At least 100 texts each in Kazakh, Russian and Persian, counted before the splitter saw them.
COUNTED = [
    json.loads(line)
    for line in Path(__file__).with_name("sentences.jsonl").read_text("utf-8").splitlines()
]

# One space of the text, `|`, stands where a sentence ends.
OTHERS = {
    "en": "Mr. Smith paid 3.50 dollars, i.e. too much.|He said \"Stop. Wait!\" and left.|Why?",
    "de": "Am 3. Oktober kam Dr. Weber z. B. mit dem Zug.|„Kommst du?“, fragte er.|Ja!",
    "fr": "M. Dupont habite au n° 5.|« Tu viens ? » demanda-t-il.|Elle sourit…|Puis elle partit.",
    "es": "La Sra. López llegó.|¿Quién es?|¡Qué alegría!|Compró pan, leche, etc. para todos.",
    "it": "Il Sig. Rossi è qui.|«Vieni?» chiese lei.|Sì, grazie.",
    "pt-BR": "O Sr. Silva chegou.|Ele trouxe pão, leite etc. para todos.|Que bom!",
    "nl": "Dhr. de Vries komt o.a. uit Gent.|Hij zei: 'Ja.'|Mooi!",
    "pl": "Prof. Nowak mieszka przy ul. Długiej.|Kupił chleb, mleko itd.|Potem wrócił.",
    "ro": "Dl. Popescu a venit.|A cumpărat pâine, lapte etc. pentru toți.|Ce bine!",
    "ar": "جاء د. أحمد.|قال: «أهلا!»|هل أنت بخير؟|نعم.",
    "hi": "डॉ. शर्मा आए।|\"तुम कहाँ हो?\" उसने पूछा।|मैं घर पर हूँ।",
    "mr": "डॉ. जोशी आले.|“तू कुठे आहेस?” त्याने विचारले.|मी घरी आहे.",
    "bn": "ডা. সেন এলেন।|তিনি বললেন, “ভালো আছ?”|আমি ভালো আছি।",
    "zh": "她来了。|“你在哪里？”他问。|我在家！|天气真好……",
    "zh-Hant": "她來了。|「你在哪裡？」他問。|我在家！",
    "xx": "Ula ma.|Keto 3.5 ri?|So!",
}  # fmt: skip

HOSTILE = {
    "stops": "." * 1_000_000,
    "letters": "а." * 100_000,
    "open": "«" * 1_000_000,
    "nested": "«" * 500_000 + "»" * 500_000,
    "plain quotes": '"' * 1_000_000,
    "spaces": " " * 1_000_000 + ".",
    "lines": "а\n " * 333_000,
    "abbreviations": "т.б. " * 50_000,
    "emoji": "😊" * 500_000,
    "addresses": "a.b@" * 250_000,
    "one word": "а" * 1_000_000,
    "surrogates": "\ud800." * 100_000,
    "marks": "\u0301" * 1_000_000,
    "quotations": "«а. б» " * 50_000,
}


@pytest.mark.parametrize("lang", ["kk", "ru", "fa"])
def test_counted_texts(lang: str) -> None:
    rows = [row for row in COUNTED if row["lang"] == lang]
    assert len(rows) >= 100
    wrong = [row for row in rows if len(sentences(row["text"], lang)) != row["n"]]
    assert len(wrong) <= 0.01 * len(rows), wrong


def test_counted_texts_have_one_to_eight_sentences() -> None:
    assert set(Counter(row["n"] for row in COUNTED)) == set(range(1, 9))


@pytest.mark.parametrize(("lang", "text"), OTHERS.items())
def test_other_languages(lang: str, text: str) -> None:
    join = "" if lang.startswith("zh") else " "
    assert sentences(text.replace("|", join), lang) == text.split("|")


@pytest.mark.parametrize("text", ["", " \n", "...", "😊", "—", "\u200b", "«»"])
def test_nothing_to_count(text: str) -> None:
    assert sentences(text, "kk") == []


def test_nothing_is_lost() -> None:
    """All that is seen comes back, in order."""
    for row in COUNTED:
        joined = "".join("".join(sentences(row["text"], row["lang"])).split())
        assert joined == "".join(row["text"].split())


def test_names_of_a_language() -> None:
    text = "А. Құнанбаев 1845 ж. туған."
    assert sentences(text, "kaz") == sentences(text, "kk") == [text]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.slow
def test_linear_on_hostile_input(text: str) -> None:
    # Quadratic work would take minutes; nothing is timed.
    found = "".join("".join(sentences(text, "kk")).split())
    assert found == ("".join(text.split()) if any(map(str.isalpha, text)) else "")
