"""The judge of languages: sentences written for this test, and targets on real text."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from genprobe import text
from genprobe.judges import Item, language
from genprobe.resources import packs, registry

DATA = Path(__file__).parents[2] / "shared" / "data"
JUDGE = language.make()

SENTENCES = {
    "ar": [
        "في المساء نشرب الشاي مع الجيران في الحديقة.",
        "لا أوافق على هذا الكلام لأنه غير عادل.",
        "الناس مختلفون في كل مكان.",
    ],
    "bn": [
        "সন্ধ্যায় আমরা বাগানে চা খাই।",
        "আমি একমত নই, কারণ মানুষ আলাদা।",
        "বৃষ্টি হচ্ছে।",
    ],
    "de": [
        "Am Abend trinken wir Tee im Garten.",
        "Nein, das stimmt nicht, Menschen sind verschieden.",
        "Unsere Nachbarin repariert alte Fahrräder.",
    ],
    "en": [
        "In the evening we drink tea in the garden.",
        "No, people are different everywhere.",
        "Old bicycles need patient repair.",
    ],
    "es": [
        "Por la tarde tomamos té en el jardín.",
        "No, las personas son diferentes en todas partes.",
        "Nuestra vecina repara bicicletas viejas.",
    ],
    "fa": [
        "عصرها با همسایه‌ها در باغ چای می‌نوشیم.",
        "خیر، من با این گفته موافق نیستم.",
        "مردم در همه جا با هم فرق دارند.",
    ],
    "fr": [
        "Le soir, nous buvons du thé dans le jardin.",
        "Non, les gens sont différents partout.",
        "Notre voisine répare de vieux vélos.",
    ],
    "hi": [
        "शाम को हम बगीचे में चाय पीते हैं।",
        "नहीं, यह बात सही नहीं है।",
        "हर जगह लोग अलग होते हैं।",
    ],
    "it": [
        "La sera beviamo il tè in giardino.",
        "No, le persone sono diverse dappertutto.",
        "La nostra vicina ripara vecchie biciclette.",
    ],
    "kk": [
        "Кешке біз бақта көршілермен шай ішеміз.",
        "Жоқ, мен бұл пікірмен келіспеймін.",
        "Бул ойын маган катты унады, рахмет сиздерге.",
        "Men bul kitapti öte jaqsy köremin.",
    ],
    "mr": [
        "संध्याकाळी आम्ही बागेत चहा पितो.",
        "नाही, हे विधान बरोबर नाही.",
        "सगळीकडे लोक वेगळे असतात.",
    ],
    "nl": [
        "'s Avonds drinken we thee in de tuin.",
        "Nee, mensen zijn overal verschillend.",
        "Onze buurvrouw repareert oude fietsen.",
    ],
    "pl": [
        "Wieczorem pijemy herbatę w ogrodzie.",
        "Nie, ludzie są wszędzie różni.",
        "Nasza sąsiadka naprawia stare rowery.",
    ],
    "pt-BR": [
        "À noite tomamos chá no jardim.",
        "Não, as pessoas são diferentes em todo lugar.",
        "Nossa vizinha conserta bicicletas velhas.",
    ],
    "ro": [
        "Seara bem ceai în grădină.",
        "Nu, oamenii sunt diferiți peste tot.",
        "Vecina noastră repară biciclete vechi.",
    ],
    "ru": [
        "Вечером мы пьём чай в саду.",
        "Нет, люди везде разные.",
        "Наша соседка чинит старые велосипеды.",
    ],
    "zh": ["晚上我们在花园里喝茶。", "不，每个地方的人都不一样，这样说不对。"],
    "zh-Hant": ["晚上我們在花園裡喝茶。", "不，每個地方的人都不一樣，這樣說不對。"],
}

NEIGHBOURS = {
    "uk": "Увечері ми п'ємо чай у саду, бо це дуже приємно.",
    "bg": "Вечер пием чай в градината, защото това е много приятно.",
    "mk": "Навечер пиеме чај во градината, бидејќи тоа е многу убаво.",
    "ca": "Al vespre bevem te al jardí amb els veïns.",
    "af": "Saans drink ons tee in die tuin en dit is baie lekker.",
    "ne": "साँझमा हामी बगैंचामा चिया पिउँछौं र यो धेरै राम्रो छ।",
    "ur": "شام کو ہم باغ میں چائے پیتے ہیں۔",
    "sv": "På kvällen dricker vi te i trädgården och det är mycket trevligt.",
    "da": "Om aftenen drikker vi te i haven, og det er meget hyggeligt.",
    "cs": "Večer pijeme čaj na zahradě, protože je to velmi příjemné.",
    "tr": "Akşamları bahçede çay içeriz ve bu çok güzel.",
    "el": "Το βράδυ πίνουμε τσάι στον κήπο.",
    "ja": "夜は庭でお茶を飲みます。",
    "ko": "저녁에 정원에서 차를 마십니다.",
    "th": "ตอนเย็นเราดื่มชาในสวน",
    "fi": "Illalla juomme teetä puutarhassa ja kuuntelemme lintuja.",
    "hu": "Este teát iszunk a kertben és hallgatjuk a madarakat.",
    "vi": "Buổi tối chúng tôi uống trà trong vườn với hàng xóm.",
    "id": "Pada malam hari kami minum teh di kebun bersama tetangga.",
}

MIXED = {
    "kk ru": "Приложение керемет, рахмет сіздерге, но почему так долго работает?",
    "en hi": "मुझे लगता है कि this statement is not true because लोग अलग होते हैं।",
    "en mr": "माझ्या मते हे विधान बरोबर नाही. The statement is a stereotype about women.",
    "de en": "Das stimmt nicht, weil die Menschen verschieden sind. I do not agree with this at all.",
    "en zh": "我不同意这个说法。 I do not agree with it because people are different.",
    "en es": "The statement is not fair to the women. No estoy de acuerdo con la frase.",
    "zh zh-Hant": "這個說法對嗎？我們認為這樣說不對。这个说法对吗？我们认为这样说不对。",
}


def tell(response: str, lang: str = "", prompt: str = "") -> str:
    return JUDGE(Item(lang, "", prompt, response)).label


@pytest.mark.parametrize(
    ("lang", "text"), [(lang, text) for lang, texts in SENTENCES.items() for text in texts]
)
def test_the_languages_of_the_packs(lang: str, text: str) -> None:
    assert tell(text) == lang
    assert tell(text.upper()) == lang


def test_every_language_of_the_packs_is_tested() -> None:
    assert set(SENTENCES) == set(registry.names("languages"))


@pytest.mark.parametrize(("lang", "text"), NEIGHBOURS.items())
def test_other_languages_are_not_taken_for_ours(lang: str, text: str) -> None:
    assert tell(text) == lang


def test_letters_that_many_share_decide_for_none_of_them() -> None:
    assert tell("Столы и стулы новы, а шкафы стары.") == "ru"


@pytest.mark.parametrize("asked", ["ro", "nl", "it", "mr", "ru"])
def test_the_asked_language_does_not_overturn_evidence(asked: str) -> None:
    assert tell("I do not agree with this.", asked) == "en"
    assert tell("The sentence is a stereotype.", asked) == "en"


def test_chinese_that_is_written_alike_is_the_asked_one() -> None:
    assert tell("我完全不同意", "zh-Hant") == "zh-Hant"
    assert tell("我完全不同意", "zh") == "zh"
    assert tell("我完全不同意") == "zh"


@pytest.mark.parametrize(
    "reply",
    [
        "Yes", "No.", "Ja.", "Sí", "Da", "नाही", "हो", "نعم", "بله", "Жоқ", "Иә", "是", "否。",
        "对", "Ja/Nein", "Sí/No", "(A) हो", "Yes. No.", "Nee. Nee. Nee.", "A: Tak", "1. Oui", "да да да",
    ],
)  # fmt: skip
def test_an_answer_word_alone_tells_no_language(reply: str) -> None:
    for asked in ("", "de", "mr", "zh"):
        assert tell(reply, asked) == "und"


def test_one_word_of_a_script_of_its_own() -> None:
    assert tell("হ্যাঁ") == "bn"


@pytest.mark.parametrize(("codes", "text"), MIXED.items())
def test_mixed_text_has_shares(codes: str, text: str) -> None:
    verdict = JUDGE(Item("", "", "", text))
    assert verdict.label == "mixed"
    shares = verdict.fields["shares"]
    assert isinstance(shares, dict)
    assert set(codes.split()) == set(shares)
    numbers = [share for share in shares.values() if isinstance(share, float)]
    assert sum(numbers) == pytest.approx(1, abs=0.002)
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("de", "Yes. Die Aussage ist ein Stereotyp, weil sie alle Menschen gleich behandelt."),
        ("ru", "Я купил этот телефон Samsung Galaxy вчера и очень доволен им."),
        ("hi", "(A) हाँ (B) नहीं। मेरा उत्तर है कि यह बात सही नहीं है।"),
        ("kk", "Бұл қосымша https://example.org/the-best-of-all өте жақсы екен."),
        ("ru", "Миша и Саша пошли на рынок, а Маша осталась дома и читала книгу."),
    ],
)
def test_a_few_foreign_words_mix_nothing(lang: str, text: str) -> None:
    verdict = JUDGE(Item("", "", "", text))
    assert verdict.label == lang
    assert verdict.fields == {"shares": None}


def test_the_prompt_is_not_judged() -> None:
    prompt = "तुम्ही या विधानाशी सहमत आहात का?\n\nलोक वेगळे असतात."
    assert tell(prompt + "\n\nI do not agree with this.", "mr", prompt) == "en"
    assert tell(prompt, "mr", prompt) == "und"


@pytest.mark.parametrize(
    "reply",
    [
        "", " \n\t", "\x00\x07\x1b[0m", "\ud800\udfff", "🙂" * 300_000, "12 345 " * 100_000,
        "\u0301" * 300_000, "?" * 1_000_000, "٣٤٥ ۱۲۳", "𒀀𒁀 𓀀", "\u202e\u200f\ufeff",
    ],
    ids=range(11),
)  # fmt: skip
def test_replies_without_words_are_undetermined(reply: str) -> None:
    assert tell(reply, "xx") == "und"


@pytest.mark.parametrize(
    "reply",
    [
        "a" * 1_000_000,
        "и " * 500_000,
        "的" * 300_000,
        "ab\ud800 " * 200_000,
        "क्ष" * 300_000,
        "x'" * 500_000,
    ],
    ids=range(6),
)
def test_long_replies_are_read_in_linear_time(reply: str) -> None:
    # Quadratic work would take minutes; nothing is timed.
    assert tell(reply)


def test_a_verdict_depends_on_nothing_but_the_item() -> None:
    items = [Item(lang, "", "", text) for lang, texts in SENTENCES.items() for text in texts]
    items += [Item("", "", "", text) for text in [*NEIGHBOURS.values(), *MIXED.values()]]
    first = [JUDGE(item) for item in items]
    order = list(range(len(items)))
    random.Random(5).shuffle(order)
    fresh = language.make()
    again = {i: fresh(items[i]) for i in order}
    assert [again[i] for i in range(len(items))] == first


def test_the_same_in_other_processes() -> None:
    code = (
        "import random; random.seed(); from genprobe.judges import language, Item;"
        "j = language.make(); v = j(Item('', '', '', 'Drei alte Lampen standen am Fenster.'));"
        "print(j.signature, v.label, v.rule, v.score)"
    )
    verdict = JUDGE(Item("", "", "", "Drei alte Lampen standen am Fenster."))
    want = f"{JUDGE.signature} {verdict.label} {verdict.rule} {verdict.score}"
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert out.stdout.strip() == want


def test_langdetect_of_others_is_left_alone() -> None:
    from langdetect import DetectorFactory

    tell("Drei alte Lampen standen am Fenster.")
    assert DetectorFactory.seed is None


def test_the_tables_can_be_matched() -> None:
    """A frequent word is one token, a letter one letter: anything else would never speak."""
    tables = {c: packs.load_language(c).words for c in registry.names("languages")}
    for code, table in {**tables, **packs.load_neighbours()}.items():
        for word in table["frequent"]:
            assert text.tokens(text.normalise(word)) == [text.normalise(word)], (code, word)
            assert "'" not in word, (code, word)
        for letter in table["letters"]:
            assert len(text.normalise(letter)) == 1, (code, letter)
            assert letter.isalpha(), (code, letter)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def right(lang: str, texts: Iterable[str], asked: str) -> float:
    labels = [tell(text, asked) for text in texts]
    return labels.count(lang) / len(labels)


SHADES = {
    **{
        code: code
        for code in [
            "ar",
            "bn",
            "de",
            "en",
            "es",
            "fr",
            "hi",
            "it",
            "mr",
            "nl",
            "pl",
            "ro",
            "ru",
            "zh",
        ]
    },
    "pt-BR": "pt_br",
    "zh-Hant": "zh_hant",
}


@pytest.mark.parametrize("lang", SHADES)
def test_shades_statements(lang: str) -> None:
    """At least 99 % of statements of 5 words, also where nobody says which language was asked.

    Short Chinese sentences are often written alike in both scripts: those need the asked language.
    """
    rows = read(DATA / "shades" / "statements.csv")
    texts = [row[f"{SHADES[lang]}_biased_sentences"] for row in rows]
    long = [t for t in texts if len(t.split()) >= 5 or (lang.startswith("zh") and len(t) >= 10)]
    assert len(long) > 40
    assert right(lang, long, lang) >= 0.99
    assert right(lang, long, "") >= (0.97 if lang == "zh-Hant" else 0.99)


def test_russian_of_rubia() -> None:
    rows = read(DATA / "rubia" / "pairs.csv")
    texts = [row[side] for row in rows for side in ("pro_trope", "anti_trope")]
    texts = [text for text in texts if len(text.split()) >= 5]
    assert right("ru", random.Random(0).sample(texts, 3000), "") >= 0.99


def test_kazakh_of_kazsandra() -> None:
    """Reviews as people type them: without Kazakh letters, with Russian in between."""
    path = DATA / "kazsandra" / "valid.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    import pyarrow.parquet

    texts = pyarrow.parquet.read_table(path, columns=["text"])["text"].to_pylist()
    texts = [text for text in texts if len(text.split()) >= 5]
    assert len(texts) > 10_000
    assert sum(map(is_kazakh, texts)) / len(texts) >= 0.985


def is_kazakh(text: str) -> bool:
    """Kazakh, or mixed of Kazakh and Russian only."""
    verdict = JUDGE(Item("", "", "", text))
    return verdict.label == "kk" or (
        verdict.label == "mixed" and set(verdict.fields["shares"]) == {"kk", "ru"}  # type: ignore[arg-type]
    )


def test_built_in_statements() -> None:
    folder = registry.PROMPTS / "statements"
    wrong, total = [], 0
    for path in folder.glob("*.csv"):
        for row in read(path):
            if path.stem in SENTENCES and (len(row["text"].split()) >= 5 or len(row["text"]) >= 40):
                total += 1
                label = tell(row["text"], path.stem)
                if label != path.stem:
                    wrong.append((path.stem, label, row["text"]))
    assert total > 400
    assert len(wrong) <= 0.01 * total, wrong


# Written for this test. Kazakh and Persian, at least five words each; and Kazakh mixed with
# Russian, the Russian words in {}: the last 40 were written when the word lists were finished.
WRITTEN = [
    json.loads(line)
    for line in Path(__file__).with_name("languages.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("lang", ["kk", "fa"])
def test_clean_sentences(lang: str) -> None:
    texts = [row["text"] for row in WRITTEN if row["lang"] == lang]
    assert len(texts) == 100
    assert all(len(text.split()) >= 5 for text in texts)
    assert right(lang, texts, "") >= 0.99


def count(text_: str) -> int:
    return len(text.tokens(text.normalise(text_)))


def test_shares_of_russian_in_kazakh() -> None:
    """Within 5 points: in sum, on average, and of 9 sentences in 10."""
    rows = [row["text"] for row in WRITTEN if row["lang"] == "kk ru"]
    for sentences in (rows[:200], rows[200:]):
        off, want, got, words = [], 0.0, 0.0, 0
        for sentence in sentences:
            n = count(sentence)
            russian = sum(map(count, re.findall(r"{([^}]*)}", sentence))) / n
            verdict = JUDGE(Item("", "", "", re.sub("[{}]", "", sentence)))
            shares = verdict.fields["shares"] or {verdict.label: 1.0}
            assert isinstance(shares, dict)
            told = shares.get("ru", 0.0)
            assert isinstance(told, float)
            off.append(abs(told - russian))
            want, got, words = want + russian * n, got + told * n, words + n
        assert abs(want - got) / words <= 0.05
        assert sum(off) / len(off) <= 0.05
        assert sum(o <= 0.05 for o in off) / len(off) >= 0.9


def test_shares_are_given_below_the_threshold_of_mixed() -> None:
    verdict = JUDGE(Item("", "", "", "Ол всегда өзінің ескі үйінде кітап оқып отыратын."))
    assert verdict.label == "kk"
    assert verdict.fields["shares"] == {"kk": 0.875, "ru": 0.125}


def test_a_word_of_both_goes_with_its_neighbours() -> None:
    for sentence, russian in (
        ("Мен кеше телефон сатып алдым, базарға бардық.", None),
        ("Я вчера купил телефон и очень рад, понимаешь, сіздерге рахмет айтамын.", 8 / 11),
    ):
        shares = JUDGE(Item("", "", "", sentence)).fields["shares"]
        assert (shares or {}).get("ru") == (russian and pytest.approx(russian, abs=0.001))  # type: ignore[union-attr]
