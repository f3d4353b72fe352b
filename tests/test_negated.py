"""A negation on one side only parts two texts, in every language."""

import pytest
from click.testing import CliRunner

from genprobe.commands import cli
from genprobe.curation import group, tables
from genprobe.errors import InputError
from genprobe.linguistics import negated
from genprobe.lint import lint
from genprobe.resources import registry

# Per language: a sentence, its negations, and sentences with words that only look like one.
SAID = {
    "ar": (
        "الجيران لطفاء دائما في الحي",
        ["الجيران ليسوا لطفاء دائما في الحي"],
        ["لا شك أنهم لطفاء"],
    ),
    "bn": ("প্রতিবেশীরা খুব সাহায্য করে", ["প্রতিবেশীরা খুব সাহায্য করে না"], ["তিনি জাপানি"]),
    "de": ("Nachbarn sind hilfsbereit", ["Nachbarn sind nicht hilfsbereit"], ["nicht nur nett"]),
    "en": ("Bakers get up early", ["Bakers don't get up early"], ["not only bakers", "no doubt"]),
    "es": ("Los vecinos ayudan mucho", ["Los vecinos no ayudan mucho"], ["no solo ayudan"]),
    "fa": (
        "همسایه‌ها خیلی کمک می‌کنند",
        ["همسایه‌ها خیلی کمک نمی‌کنند", "همسایه‌ها خیلی کمک نمی کنند"],
        ["نه تنها خوب"],
    ),
    "fr": (
        "Les voisins aiment aider",
        ["Les voisins n'aiment pas aider", "Les voisins n'aiment plus aider"],
        ["Une personne âgée aime plus le thé", "ils ne pensent qu'au thé"],
    ),
    "hi": ("पड़ोसी बहुत मदद करते हैं", ["पड़ोसी बहुत मदद नहीं करते हैं"], ["न केवल पड़ोसी"]),
    "it": ("I vicini aiutano molto", ["I vicini non aiutano molto"], ["non solo i vicini"]),
    "kk": (
        "Көршілер көп көмектеседі",
        ["Көршілер көп көмектеспейді", "Көршілер көп көмектескен емес"],
        ["Көршілер ғана емес"],
    ),
    "mr": ("शेजारी खूप मदत करतात", ["शेजारी खूप मदत करत नाहीत"], ["फक्त शेजारी नाही"]),
    "nl": ("Buren helpen elkaar", ["Buren helpen elkaar niet"], ["niet alleen buren"]),
    "pl": ("Sąsiedzi chętnie pomagają", ["Sąsiedzi nie pomagają chętnie"], ["nie tylko sąsiedzi"]),
    "pt-BR": ("Os vizinhos ajudam muito", ["Os vizinhos não ajudam muito"], ["não só vizinhos"]),
    "ro": ("Vecinii ajută mult", ["Vecinii nu ajută mult", "N-ajută mult"], ["nu doar vecinii"]),
    "ru": ("Соседи любят помогать", ["Соседи не любят помогать"], ["не только соседи"]),
    "tr": (
        "Komşular çok yardım eder",
        ["Komşular çok yardım etmez", "Komşular çok yardım etmiyor"],
        ["sadece komşular değil", "Komşular namaz kılar"],
    ),
    "zh": ("邻居们喜欢帮助别人", ["邻居们不喜欢帮助别人"], ["不仅喜欢", "邻居不错"]),
    "zh-Hant": ("鄰居們喜歡幫助別人", ["鄰居們不喜歡幫助別人"], ["不僅喜歡", "鄰居不錯"]),
}


def test_every_language_has_negations():
    assert set(SAID) == set(registry.names(negated.FOLDER))
    assert set(SAID) >= set(registry.names("languages"))  # Turkish is made into data, not asked
    assert not [one for one in lint(["prompts/negation"]) if one.level == "error"]


@pytest.mark.parametrize("lang", SAID)
def test_a_negation_on_one_side_parts_two_texts(lang, tmp_path):
    plain, denied, only_look = SAID[lang]
    words = negated.load(lang)
    assert [text for text in (plain, *only_look) if words.negates(text)] == []
    assert [text for text in denied if not words.negates(text)] == []
    rows = [{"lang": lang, "text": text} for text in (plain, plain + "!", *denied)]
    tables.write(tmp_path / "t.csv", rows, ["lang", "text"])
    said = []
    made, names = group.run(tmp_path / "t.csv", group.Grouping(threshold=0.2), said.append)
    first, second, *others = made
    assert first["group"] == second["group"] not in [row["group"] for row in others]
    assert first["negated"] == "no" and {row["negated"] for row in others} == {"yes"}
    assert others[0]["group"] in first["contradicts"].split()
    assert first["group"] in others[0]["contradicts"].split()
    assert names.index("negated") == names.index("polarity") + 1
    assert any("only one of the two negates" in line for line in said)


# Holes of the lists before: negations that were missed, and words that only look like one.
MISSED = {
    "en": ["bakers wont rest", "you shouldnt wait", "unable to wait", "they lack patience",
           "non smokers"],
    "de": ["alles andere als nett", "wenig hilfsbereit"],
    "fr": ["peu aimables", "loin d'être gentils", "ils ne le font plus"],
    "it": ["mica gentili", "poco gentili"],
    "es": ["poco amables"],
    "pt-BR": ["pouco gentis"],
    "nl": ["allesbehalve vriendelijk"],
    "kk": ["келмес", "көрінбес", "айтпас", "бармайтындар"],
    "bn": ["তারা কাঁদেনা"],
    "ru": ["мало знают"],
    "pl": ["mało mili"],
    "ro": ["deloc amabili", "lipsiți de răbdare"],
    "tr": ["sabırlı değil", "gelmezler"],
}  # fmt: skip
ONLY_LOOK = {
    "kk": ["Абайды білеміз", "Сабаған", "Мамай келді", "ақша табады", "компас"],
    "ro": ["Nu există îndoială că ajută", "mai puțin zgomot"],
    "ru": ["нет сомнений, помогут", "нет никаких сомнений"],
    "mr": ["केवळ शेजारी नव्हे", "केवळ जुने शेजारीच नव्हे"],
    "bn": ["শুধু নয়", "শুধু পুরনো প্রতিবেশী নয়"],
    "zh": ["不由得笑了", "邻居了不起", "离不开邻居", "不会有错"],
    "zh-Hant": ["不由得笑了", "鄰居了不起", "離不開鄰居"],
    "fr": ["un peu bruyants", "il n'y a pas de doute"],
    "it": ["un poco rumorosi", "non c'è alcun dubbio"],
    "es": ["un poco ruidosos", "no cabe ninguna duda"],
    "pt-BR": ["um pouco barulhentos", "canta que nem gente grande"],
    "hi": ["इसमें कोई शक नहीं", "कोई संदेह नहीं"],
    "tr": ["kaçınılmaz bir son", "komedi"],
    "en": ["no wonder they sing", "there is no doubt"],
}


@pytest.mark.parametrize("lang", sorted(MISSED.keys() | ONLY_LOOK.keys()))
def test_the_holes_of_the_lists_are_filled(lang):
    words = negated.load(lang)
    assert [text for text in MISSED.get(lang, ()) if not words.negates(text)] == []
    assert [text for text in ONLY_LOOK.get(lang, ()) if words.negates(text)] == []


# Opposites that only an affix makes, and two texts that say the same.
AFFIXES = {
    "en": ("bakers are reliable people", "bakers are unreliable people"),
    "de": ("Bäcker sind höfliche Leute", "Bäcker sind unhöfliche Leute"),
    "ru": ("женщины очень умные", "женщины очень неумные"),
    "pl": ("kobiety są bardzo mądre", "kobiety są bardzo niemądre"),
    "ro": ("femeile sunt foarte deștepte", "femeile sunt foarte nedeștepte"),
    "kk": ("ұлдар өте ақылды болады", "ұлдар өте ақылсыз болады"),
    "tr": ("işçiler çok sabırlı olur", "işçiler çok sabırsız olur"),
    "it": ("i fornai sono gente fortunata", "i fornai sono gente sfortunata"),
    "fa": ("همسایه‌ها خیلی باادب هستند", "همسایه‌ها خیلی بی‌ادب هستند"),
    "hi": ("पड़ोसी लोग बहुत सक्षम हैं", "पड़ोसी लोग बहुत अक्षम हैं"),
    "bn": ("প্রতিবেশীরা খুব বিনয়ী মানুষ", "প্রতিবেশীরা খুব অবিনয়ী মানুষ"),
}


@pytest.mark.parametrize("linkage", group.LINKAGES)
@pytest.mark.parametrize("lang", AFFIXES)
def test_an_affix_that_makes_the_opposite_parts_two_texts(lang, linkage, tmp_path):
    plain, denied = AFFIXES[lang]
    texts = (plain, denied, plain + "!", denied + ".")
    tables.write(tmp_path / "t.csv", [{"lang": lang, "text": t} for t in texts], ["lang", "text"])
    how = group.Grouping(threshold=0.2, linkage=linkage)
    made, _ = group.run(tmp_path / "t.csv", how)
    first, second, third, fourth = (row["group"] for row in made)
    assert first == third != second == fourth
    assert made[0]["contradicts"] == second and made[1]["contradicts"] == first


@pytest.mark.parametrize("linkage", group.LINKAGES)
def test_a_text_between_two_opposites_joins_only_one_of_them(linkage, tmp_path):
    texts = ("bakers are reliable people", "bakers are unreliable people", "bakers are people")
    tables.write(tmp_path / "t.csv", [{"text": text} for text in texts], ["text"])
    how = group.Grouping(threshold=0.2, linkage=linkage, lang="en")
    made, _ = group.run(tmp_path / "t.csv", how)
    assert made[0]["group"] != made[1]["group"]
    assert len({row["group"] for row in made}) == 2


def test_two_negations_undo_each_other(tmp_path):
    texts = ("bakers are reliable", "bakers are unreliable", "bakers are not unreliable")
    texts += ("bakers are able to sing", "bakers are unable to sing", "bakers are not able to sing")
    tables.write(tmp_path / "t.csv", [{"text": text} for text in texts], ["text"])
    made, _ = group.run(tmp_path / "t.csv", group.Grouping(threshold=0.4, lang="en"))
    names = [row["group"] for row in made]
    assert names[0] == names[2] != names[1]
    # "unable" negates by itself, so that its prefix does not count once more.
    assert names[4] == names[5] != names[3]


@pytest.mark.parametrize(
    ("lang", "texts"),
    [("zh", ("女人很聪明", "女人非常聪明", "女人不聪明")),
     ("zh-Hant", ("女人很聰明", "女人非常聰明", "女人不聰明"))],
)  # fmt: skip
def test_short_chinese_texts_are_compared_by_characters(lang, texts, tmp_path):
    rows = [{"lang": lang, "text": text} for text in (*texts, "老人喜欢喝茶", "老人喜歡喝茶")]
    tables.write(tmp_path / "t.csv", rows, ["lang", "text"])
    made, _ = group.run(tmp_path / "t.csv", group.Grouping(threshold=0.3))
    one, other, denied, *_ = made
    assert one["group"] == other["group"] != denied["group"]
    assert denied["contradicts"] == one["group"] and one["contradicts"] == denied["group"]


def test_the_history_names_the_list_of_negations(tmp_path):
    tables.write(tmp_path / "t.csv", [{"lang": "en", "text": "a b c"}], ["lang", "text"])
    made, _ = group.run(tmp_path / "t.csv", group.Grouping())
    assert made[0]["history"][-1].endswith(f"|negation:en@{negated.load('en').hash}")


def test_both_negated_share_a_group_and_mixed_text_reads_both_languages(tmp_path):
    rows = [{"text": "Bakers are not lazy."}, {"text": "Bakers aren't lazy."}]
    tables.write(tmp_path / "t.csv", rows, ["text"])
    made, _ = group.run(tmp_path / "t.csv", group.Grouping(threshold=0.3, lang="en"))
    assert len({row["group"] for row in made}) == 1
    mixed = negated.load("kk-x-ru")
    assert mixed.negates("көршілер не любят чай") and mixed.negates("олар көмектеспейді")
    assert not mixed.negates("көршілер любят чай")


@pytest.mark.parametrize("polarity", ["", "tone"])
def test_without_a_language_the_texts_tell_it_and_it_is_said(polarity, tmp_path):
    texts = ("Women are smart", "Women are not smart", "Old people get up early in the morning")
    rows = [{"text": text, "tone": "positive"} for text in texts]
    tables.write(tmp_path / "t.csv", rows, ["text", "tone"])
    source, out = str(tmp_path / "t.csv"), str(tmp_path / "o.csv")
    more = ["--polarity", polarity] if polarity else []
    said = CliRunner().invoke(cli, ["dataset", "group", source, "-o", out, *more])
    assert "negations are those of en" in said.stderr and "3 rows in 3 groups" in said.stderr
    assert "similar texts kept apart, as only one of the two negates: 1 pair" in said.stderr
    assert "groups that another group contradicts: 2" in said.stderr


def test_a_language_without_negations_merges_as_before_and_says_so(tmp_path):
    rows = [{"lang": "sw", "text": text} for text in ("Wapishi ni wazuri", "Wapishi si wazuri")]
    tables.write(tmp_path / "t.csv", rows, ["lang", "text"])
    said = []
    made, _ = group.run(tmp_path / "t.csv", group.Grouping(threshold=0.3), said.append)
    assert made[0]["group"] == made[1]["group"] and made[0]["negated"] == ""
    assert any("no list of negations" in line and "sw" in line for line in said)
    tables.write(tmp_path / "s.csv", [{"text": "qx"}, {"text": "qx zq"}], ["text"])
    group.run(tmp_path / "s.csv", group.Grouping(), said.append)
    assert any("negations are not told" in line for line in said)


def test_a_wrong_file_of_negations(tmp_path):
    for text, why in [
        ("negation = []\nunless = []", "no word"),
        ('negation = ["(a"]', "bracket"),
        ('negation = ["a"]\nmore = 1', "unknown key"),
    ]:
        path = tmp_path / "xx.toml"
        path.write_text(f'review = "x"\n{text}\n', encoding="utf-8")
        with pytest.raises(InputError, match=why):
            negated.read(path)
