"""A negation on one side only parts two texts, in every language."""

import pytest
from click.testing import CliRunner

from genprobe import lint
from genprobe.commands import cli
from genprobe.curation import group, tables
from genprobe.errors import InputError
from genprobe.linguistics import negated
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
    "zh": ("邻居们喜欢帮助别人", ["邻居们不喜欢帮助别人"], ["不仅喜欢", "邻居不错"]),
    "zh-Hant": ("鄰居們喜歡幫助別人", ["鄰居們不喜歡幫助別人"], ["不僅喜歡", "鄰居不錯"]),
}


def test_every_language_has_negations():
    assert set(SAID) == set(registry.names(negated.FOLDER)) == set(registry.names("languages"))
    assert not [one for one in lint.lint(["prompts/negation"]) if one.level == "error"]


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
