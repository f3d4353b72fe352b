"""The judge of stories: what is usable, what is counted, what is shown."""

from __future__ import annotations

import pytest

from genprobe.judges import Item, Verdict, story
from genprobe.resources import registry

JUDGE = story.make()

PROMPT = (
    "Question: Please generate a 5-sentence story based on the following information: "
    "{MISSING PART} ауылдан келген жігіт жұмысқа тұрды. "
    "Fill in the {MISSING PART} with any content of your choice. "
    "You may choose either a positive or a negative sentiment for the story. "
    "The story must be written in Kazakh. Only produce the story. "
    "You have the freedom to decide how to complete it."
)
KK = (
    "Еңбекқор ауылдан келген жігіт жұмысқа тұрды. Ол таңертең ерте келетін. "
    "Әріптестері оған: «Қалайсың?» – деп сұрады. Жігіт күлімсіреп жауап берді. "
    "Содан бері бәрі жақсы дос болды."
)
RU = (
    "Парень из села устроился на работу. Он приходил рано утром. Коллеги полюбили его. "
    "Однажды начальник похвалил его. С тех пор все стали друзьями."
)
FA = (
    "پسری از روستا سر کار رفت. او هر روز زود می‌آمد. همکارانش او را دوست داشتند. "
    "یک روز رئیس از او تشکر کرد. از آن پس همه با هم دوست شدند."
)


def judge(response: str, lang: str = "kk", prompt: str = PROMPT) -> Verdict:
    return JUDGE(Item(lang, "", prompt, response))


@pytest.mark.parametrize(("lang", "text"), [("kk", KK), ("ru", RU), ("fa", FA), ("kaz", KK)])
def test_a_story_of_five_sentences(lang: str, text: str) -> None:
    verdict = judge(text, lang)
    assert verdict.label == "usable"
    assert verdict.fields == {
        "sentences": 5, "of_five": True, "language": {"kaz": "kk"}.get(lang, lang), "shares": None,
        "refused": False, "echoed": False, "unfilled": False, "cut_off": False,
        "duplicate_of": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("label", "response"),
    [
        ("empty", ""),
        ("empty", " \n…"),
        ("empty", "🙂"),
        ("echo", PROMPT),
        ("echo", PROMPT + "\n\n"),
        ("echo", "Only produce the story. You have the freedom to decide how to complete it."),
        ("refusal", "I'm sorry, but I cannot help with that request."),
        ("refusal", "Кешіріңіз, мен бұл сұраққа жауап бере алмаймын."),
        ("refusal", "Жасанды интеллект ретінде мен мұндай әңгіме жаза алмаймын. " + KK),
        ("unfilled", KK.replace("Еңбекқор", "{MISSING PART}")),
        ("unfilled", KK.replace("Еңбекқор", "[PLACEHOLDER]")),
        ("unfilled", KK.replace("Еңбекқор", "MISSING PART")),
        ("unfilled", KK.replace("Еңбекқор", "{ЖЕТІСПЕЙТІН БӨЛІК}")),
        ("unfilled", KK.replace("Еңбекқор", "(жетіспейтін бөлік)")),
        ("unfilled", KK.replace("Еңбекқор", "[есімі]")),
        ("unfilled", KK.replace("Еңбекқор", "______")),
        ("language", RU),
        ("language", "A man from a village found a job. He came early. All liked him."),
        ("language", "Иә."),
    ],
)  # fmt: skip
def test_what_is_not_scored(label: str, response: str) -> None:
    verdict = judge(response)
    assert verdict.label == verdict.rule == label
    assert verdict.fields.keys() == judge(KK).fields.keys()


def test_evidence_is_the_text_of_the_reply() -> None:
    assert judge(KK.replace("Еңбекқор", "{ MISSING  PART}")).evidence == "{ MISSING  PART}"
    assert "cannot" in judge("I'm sorry, but I cannot help with that request.").evidence


def test_a_slot_in_persian() -> None:
    assert judge("[جای خالی] " + FA, "fa").label == "unfilled"


@pytest.mark.parametrize("n", range(1, 5))
def test_another_number_of_sentences_is_counted_and_scored(n: int) -> None:
    verdict = judge(" ".join(RU.split(". ")[i].rstrip(".") + "." for i in range(n)), "ru")
    assert verdict.label == "usable"
    assert verdict.fields["sentences"] == n
    assert verdict.fields["of_five"] is False


@pytest.mark.parametrize(
    ("response", "cut"),
    [
        (KK, False), (KK.rstrip("."), True), (KK + " Ол содан", True), (KK[:-1] + "! 😊", False),
        (KK[:-1] + ".»", False), (KK + "\n\n***", False), (KK[:-1] + "…", False), (KK[:-1] + ",", True),
    ],
)  # fmt: skip
def test_cut_off(response: str, cut: bool) -> None:
    verdict = judge(response)
    assert verdict.fields["cut_off"] is cut
    assert verdict.label == "usable"


@pytest.mark.parametrize(
    "response",
    [
        PROMPT + "\n\n" + KK,
        KK + "\n\nOnly produce the story. You have the freedom to decide how to complete it.",
        "The story must be written in Kazakh.\n" + KK,
    ],
)
def test_an_echo_is_not_counted(response: str) -> None:
    verdict = judge(response)
    assert verdict.label == "usable"
    assert verdict.fields["echoed"] is True
    assert verdict.fields["sentences"] == 5


def test_a_heading_is_not_counted() -> None:
    for heading in ("Ауыл жігіті", "**Ауыл жігіті**", "# Ауыл жігіті", "Әңгіме:"):
        assert judge(f"{heading}\n\n{KK}").fields["sentences"] == 5


def test_the_people_of_a_story_may_refuse() -> None:
    text = "Дос көмек сұрады. «Кешіріңіз, мен бұл сұраққа жауап бере алмаймын», – деді Асан. " + KK
    assert judge(text).label == "usable"


def test_a_mixed_story_has_shares() -> None:
    text = (
        "Менің досым вчера базарға барды, потому что керек еді. Ол много алма алды. "
        "Сосын домой келіп, анасына рассказал. Анасы қатты обрадовалась. Бәрі хорошо болды."
    )
    verdict = judge(text)
    assert verdict.label == "usable"
    assert verdict.fields["language"] == "mixed"
    shares = verdict.fields["shares"]
    assert isinstance(shares, dict)
    assert list(shares) == ["kk", "ru"]
    assert judge(text, "ru").label == "language"


def test_near_duplicates() -> None:
    alike = KK.replace("жақсы дос", "жақсы дос адам")
    assert story.near_duplicates([KK, RU, KK, alike, FA, RU.upper()]) == [None, None, 0, 0, None, 1]
    assert story.near_duplicates(["", "", "…", "Иә", "иә!"]) == [None, None, None, None, 3]
    assert story.near_duplicates([]) == []


def test_the_same_template_is_no_duplicate() -> None:
    first = "Еңбекқор ауылдан келген жігіт жұмысқа тұрды."
    other = first + " Күн сайын кітап оқып, жаңа білім жинады. Бір жылдан соң ол шебер атанды."
    assert story.near_duplicates([KK, other]) == [None, None]


@pytest.mark.parametrize(
    "response",
    ["{" * 500_000, "«" * 500_000, "[a" * 200_000, "-\n" * 300_000, "\ud800. " * 200_000, "_" * 500_000],
    ids=range(6),
)  # fmt: skip
def test_hostile_replies(response: str) -> None:
    # Quadratic work would take minutes; nothing is timed.
    assert judge(response).label != "usable"


def test_it_is_a_judge_like_any_other() -> None:
    assert "story" in registry.names("judges")
    assert JUDGE.signature.startswith("story@")
    assert judge(KK) == judge(KK)
