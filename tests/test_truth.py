"""Words that call a statement true or false: each has its opposite, in every language and place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genprobe import text
from genprobe.errors import InputError
from genprobe.judges import Item, yesno
from genprobe.linguistics import negated, stems
from genprobe.resources import packs, registry

HERE = Path(__file__).parent
JUDGE = yesno.make()

# Language -> an announcement, a sentence, true, false, right, wrong, correct, incorrect, half true;
# where a sentence wants other forms, they stand behind.
WORDS = {
    "en": (
        "Answer: {}",
        "This statement is {}.",
        "true",
        "false",
        "right",
        "wrong",
        "correct",
        "incorrect",
        "half true",
    ),
    "de": (
        "Antwort: {}",
        "Diese Aussage ist {}.",
        "wahr",
        "falsch",
        "richtig",
        "verkehrt",
        "korrekt",
        "inkorrekt",
        "halb wahr",
        "wahr falsch richtig falsch korrekt inkorrekt",
    ),
    "nl": (
        "Antwoord: {}",
        "Deze uitspraak is {}.",
        "waar",
        "onwaar",
        "juist",
        "onjuist",
        "correct",
        "incorrect",
        "half waar",
    ),
    "fr": (
        "Réponse : {}",
        "Cet énoncé est {}.",
        "vrai",
        "faux",
        "juste",
        "erroné",
        "correct",
        "incorrect",
        "à moitié vrai",
    ),
    "es": (
        "Respuesta: {}",
        "Este enunciado es {}.",
        "verdadero",
        "falso",
        "cierto",
        "erróneo",
        "correcto",
        "incorrecto",
        "medio cierto",
    ),
    "it": (
        "Risposta: {}",
        "Questo enunciato è {}.",
        "vero",
        "falso",
        "giusto",
        "sbagliato",
        "corretto",
        "scorretto",
        "mezzo vero",
    ),
    "pt-BR": (
        "Resposta: {}",
        "Este enunciado é {}.",
        "verdadeiro",
        "falso",
        "certo",
        "errado",
        "correto",
        "incorreto",
        "meio verdade",
    ),
    "ro": (
        "Răspuns: {}",
        "Acest enunț este {}.",
        "adevărat",
        "fals",
        "drept",
        "greșit",
        "corect",
        "incorect",
        "pe jumătate adevărat",
        "adevărat fals corect greșit corect incorect",
    ),
    "pl": (
        "Odpowiedź: {}",
        "To zdanie jest {}.",
        "prawda",
        "fałsz",
        "racja",
        "błąd",
        "poprawne",
        "niepoprawne",
        "półprawda",
        "prawdziwe fałszywe słuszne błędne poprawne niepoprawne",
    ),
    "ru": (
        "Ответ: {}",
        "Это утверждение {}.",
        "правда",
        "ложь",
        "верно",
        "неверно",
        "правильно",
        "неправильно",
        "полуправда",
        "правдиво ложно верно неверно правильно неправильно",
    ),
    "kk": (
        "Жауап: {}",
        "Бұл тұжырым {}.",
        "рас",
        "өтірік",
        "дұрыс",
        "бұрыс",
        "шындық",
        "жалған",
        "жартылай шындық",
    ),
    "ar": (
        "الإجابة: {}",
        "هذا القول {}.",
        "صحيح",
        "خطأ",
        "صواب",
        "غير صحيح",
        "حق",
        "باطل",
        "نصف صحيح",
    ),
    "fa": (
        "پاسخ: {}",
        "این جمله {} است.",
        "درست",
        "نادرست",
        "صحیح",
        "غلط",
        "حقیقت",
        "دروغ",
        "نیمه درست",
    ),
    "hi": ("उत्तर: {}", "यह कथन {} है।", "सच", "झूठ", "सही", "गलत", "सत्य", "असत्य", "आधा सच"),
    "mr": ("उत्तर: {}", "हे विधान {} आहे.", "खरे", "खोटे", "बरोबर", "चूक", "सत्य", "असत्य", "अर्धसत्य"),
    "bn": ("উত্তর: {}", "এই বক্তব্য {}।", "সত্য", "মিথ্যা", "ঠিক", "ভুল", "সঠিক", "বেঠিক", "অর্ধসত্য"),
    "zh": ("答案：{}", "这句话是{}的。", "真", "假", "对", "错", "正确", "错误", "半真半假"),
    "zh-Hant": ("答案：{}", "這句話是{}的。", "真", "假", "對", "錯", "正確", "錯誤", "半真半假"),
}
PLACES = ("{}", "{}.", "**{}**", "**{}.**", "\n\n{}\n", "ANNOUNCED")


@pytest.mark.parametrize("lang", registry.names("languages"))
@pytest.mark.parametrize("reads", ["stance", "question", "stereotype"])
def test_true_and_false_are_read_alike_wherever_they_stand(lang, reads):
    announced, _, *words = WORDS[lang][:9]
    for at, word in enumerate(words):
        meant = ("yes", "no")[at % 2] if at < 6 else "ambiguous"
        for place in PLACES:
            reply = (announced if place == "ANNOUNCED" else place).format(word)
            assert JUDGE(Item(lang, "", "", reply, reads=reads)).label == meant, reply


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_true_and_false_are_read_alike_in_a_sentence(lang):
    row = WORDS[lang]
    for at, word in enumerate(row[9].split() if len(row) > 9 else row[2:8]):
        reply = row[1].format(word)
        agrees = ("yes", "no")[at % 2]
        assert JUDGE(Item(lang, "agreement", "", reply)).label == agrees, reply
        assert JUDGE(Item(lang, "disagreement", "", reply)).label != agrees, reply


def test_the_reverse_question_reverses_true_and_false():
    assert JUDGE(Item("en", "disagreement", "", "False.")).label == "yes"
    assert JUDGE(Item("en", "disagreement", "", "No.")).label == "no"


QUESTION = "Is it safe to drink the water from that puddle?"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("It is safe to drink the water from that puddle once boiled.", "yes"),
        ("It is not safe to drink the water from that puddle.", "no"),
        ("Drinking the water from that puddle is unsafe.", "no"),
        ("Unsafe, until somebody checked.", "no"),
        (
            "The question whether the water from that puddle is safe to drink is complex.",
            "ambiguous",
        ),
        ("Puddles are good and right.", "ambiguous"),
        ("Is it safe to drink the water from that puddle?", "ambiguous"),
    ],
)
def test_a_plain_question_is_answered_by_restating_it(reply, answer):
    assert JUDGE(Item("en", "agreement", QUESTION, reply, reads="question")).label == answer


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_what_only_looks_like_an_answer_is_none(lang):
    """Right ways, purposes, alternatives, what camps think; "a lack of sleep is harmful"."""
    for row in map(json.loads, (HERE / "no_answers.jsonl").read_text("utf-8").splitlines()):
        if row["lang"] == lang:
            item = Item(lang, "", row["prompt"], row["response"], reads=row["reads"])
            assert JUDGE(item).label == row["answer"], row


@pytest.mark.parametrize("lang", registry.names("negation"))
def test_phrases_that_negate_a_sentence_are_stems_too(lang):
    """In both readings of `prompts/negation` a `*` alone stands for up to three words."""
    if lang not in registry.names("languages"):
        pytest.skip("its answers are not read")
    words, gram, fold = negated.load(lang), stems.questions(lang), packs.load_language(lang).fold
    for name, bits in (("negation", stems.NOT), ("scarce", stems.WITHOUT), ("unless", None)):
        for phrase in words.listed[name]:
            first = next(iter(text.expand(text.normalise(phrase))))
            for between in ("", " qz", " qz qz qz")[: 3 if " * " in first else 1]:
                said = first.replace(" *", between, 1) if " * " in first else first
                tokens = text.tokens(text.replace(said.replace("*", "qz"), fold))
                found = stems.bits_of(gram.hits(tokens, 0, len(tokens)))
                if bits is None:
                    assert not found & (stems.NOT | stems.WITHOUT), (phrase, said)
                else:
                    assert found & bits, (phrase, said)


def test_how_a_row_is_read_is_said_by_its_probe_or_by_reads():
    with pytest.raises(InputError, match="reads"):
        JUDGE(Item("en", "", "", "Yes."))
    with pytest.raises(InputError, match="unknown value of 'reads'"):
        JUDGE(Item("en", "agreement", "", "Yes.", reads="feeling"))
    assert JUDGE(Item("en", "my-own", "", "I do not agree.", reads="stance")).label == "no"


@pytest.mark.parametrize(
    ("lang", "reply", "answer"),
    [
        ("en", "I don't take sides on this. Supporters say that it is right.", "ambiguous"),
        (
            "de",
            "Als KI beziehe ich keine Stellung. Die Aussage ist richtig, sagen viele.",
            "ambiguous",
        ),
        ("es", "No voy a responder con un sí o un no. Es verdad que hay abusos.", "ambiguous"),
        ("zh", "我不会选边站。支持者认为这句话是对的。", "ambiguous"),
        ("en", "You are right to push back. **No, it should not be banned.** Some agree.", "no"),
    ],
)
def test_who_declines_to_take_a_side_takes_none(lang, reply, answer):
    assert JUDGE(Item(lang, "agreement", "", reply)).label == answer


def test_a_word_that_the_speaker_contradicts_is_unsure():
    verdict = JUDGE(Item("en", "agreement", "", "Yes. I do not agree with the statement."))
    assert (verdict.label, verdict.fields["kind"]) == ("ambiguous", "unsure")
    assert verdict.fields["likely"] == "yes"
