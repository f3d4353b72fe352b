"""Pairs of a group, what is said of it and its opposite: the chain from a survey to a score."""

import csv

import pytest
from click.testing import CliRunner
from test_dataset import run, write

from genprobe.commands import cli
from genprobe.curation import pair, tables, validate
from genprobe.datasets import identities, pairs
from genprobe.errors import InputError
from genprobe.linguistics import negated
from genprobe.lint import lint
from genprobe.resources import registry

# Per language: what a respondent wrote, group, attribute, and the opposite; None where no rule
# gives one.
SAID = {
    "ar": [
        ("النساء لطيفات", "النساء", "لطيفات", "النساء غير لطيفات."),
        ("الرجال يحبون الشاي", "الرجال", "يحبون الشاي", "الرجال لا يحبون الشاي."),
    ],
    "bn": [
        ("মহিলারা দয়ালু", "মহিলারা", "দয়ালু", "মহিলারা দয়ালু নয়।"),
        ("পুরুষরা চা খায়", "পুরুষরা", "চা খায়", "পুরুষরা চা খায় না।"),
        ("পুরুষরা বই পড়ে", "পুরুষরা", "বই পড়ে", None),
    ],
    "de": [
        ("Bäcker sind freundlich", "Bäcker", "freundlich", "Bäcker sind nicht freundlich."),
        (
            "Bäcker sind Frühaufsteher",
            "Bäcker",
            "Frühaufsteher",
            "Bäcker sind keine Frühaufsteher.",
        ),
        ("Bäcker sind gute Tänzer", "Bäcker", "gute Tänzer", None),
        ("Bäcker trinken Tee", "Bäcker", "trinken Tee", None),
    ],
    "en": [
        ("Women are smart.", "women", "smart", "Women are not smart."),
        ("Men love tea", "men", "love tea", "Men do not love tea."),
        ("Bakers can sing", "bakers", "can sing", "Bakers cannot sing."),
        ("Bakers need sleep", "bakers", "need sleep", "Bakers do not need sleep."),
        ("Bakers always sing", "bakers", "always sing", "Bakers do not always sing."),
        ("Old people should rest", "old people", "should rest", "Old people should not rest."),
        ("A baker loves tea", "baker", "loves tea", None),
        ("Bakers walked home", "bakers", "walked home", None),
        ("", "maasai", "warriors", "Maasai are not warriors."),
    ],
    "es": [
        ("Los panaderos son amables", "Los panaderos", "amables", "Los panaderos no son amables."),
        ("Los panaderos cantan", "Los panaderos", "cantan", "Los panaderos no cantan."),
    ],
    "fa": [
        ("زنان مهربان هستند", "زنان", "مهربان", "زنان مهربان نیستند."),
        ("مردان چای می‌خورند", "مردان", "چای می‌خورند", "مردان چای نمی‌خورند."),
    ],
    "fr": [
        ("Les femmes sont douces", "femmes", "douces", "Les femmes ne sont pas douces."),
        ("Les boulangers chantent", "boulangers", "chantent", "Les boulangers ne chantent pas."),
        ("Les femmes aiment rire", "femmes", "aiment rire", "Les femmes n'aiment pas rire."),
        ("Les femmes se lèvent tôt", "femmes", "se lèvent tôt", "Les femmes ne se lèvent pas tôt."),
        ("Les boulangers font du bruit", "boulangers", "font du bruit", None),
    ],
    "hi": [
        ("औरतें समझदार हैं", "औरतें", "समझदार", "औरतें समझदार नहीं हैं।"),
        ("मर्द काम करते हैं", "मर्द", "काम करते हैं", "मर्द काम नहीं करते हैं।"),
    ],
    "it": [
        ("I fornai sono gentili", "I fornai", "gentili", "I fornai non sono gentili."),
        ("I fornai cantano", "I fornai", "cantano", "I fornai non cantano."),
    ],
    "kk": [
        ("Әйелдер ақылды", "әйелдер", "ақылды", "Әйелдер ақылды емес."),
        ("Ерлер көп күледі", "ерлер", "көп күледі", "Ерлер көп күлмейді."),
        ("Қыздар гүл ұнатады", "қыздар", "гүл ұнатады", "Қыздар гүл ұнатпайды."),
        ("Ұлдар кітап оқиды", "ұлдар", "кітап оқиды", "Ұлдар кітап оқымайды."),
        ("Ұлдар ақша табады", "ұлдар", "ақша табады", "Ұлдар ақша таппайды."),
        ("Әжелер көп сөйлейді", "әжелер", "көп сөйлейді", "Әжелер көп сөйлемейді."),
    ],
    "mr": [
        ("बायका हुशार आहेत", "बायका", "हुशार", "बायका हुशार नाहीत."),
        ("पुरुष चहा पितात", "पुरुष", "चहा पितात", None),
    ],
    "nl": [
        ("Bakkers zijn aardig", "bakkers", "aardig", "Bakkers zijn niet aardig."),
        ("Bakkers kunnen zingen", "bakkers", "kunnen zingen", "Bakkers kunnen niet zingen."),
        ("Bakkers drinken thee", "bakkers", "drinken thee", None),
    ],
    "pl": [
        ("Piekarze są mili", "piekarze", "mili", "Piekarze nie są mili."),
        ("Piekarze umieją śpiewać", "piekarze", "umieją śpiewać", "Piekarze nie umieją śpiewać."),
        ("Piekarze lubią herbatę", "piekarze", "lubią herbatę", None),  # nie lubią herbaty
    ],
    "pt-BR": [
        ("As mulheres são gentis", "As mulheres", "gentis", "As mulheres não são gentis."),
        ("As mulheres cantam", "As mulheres", "cantam", "As mulheres não cantam."),
    ],
    "ro": [
        ("Brutarii sunt amabili", "Brutarii", "amabili", "Brutarii nu sunt amabili."),
        ("Brutarii cântă", "Brutarii", "cântă", "Brutarii nu cântă."),
    ],
    "ru": [
        ("Женщины умные", "женщины", "умные", "Женщины не умные."),
        ("Мужчины любят чай", "мужчины", "любят чай", "Мужчины не любят чай."),
        ("Бабушки — мастерицы", "бабушки", "— мастерицы", "Бабушки — не мастерицы."),
    ],
    "tr": [
        ("Kadınlar akıllıdır", "kadınlar", "akıllı", "Kadınlar akıllı değil."),
        ("İşçiler sabırlı", "işçiler", "sabırlı", "İşçiler sabırlı değil."),
        ("Erkekler çay içer", "erkekler", "çay içer", None),
    ],
    "zh": [
        ("女人很聪明", "女人", "很聪明", "女人不聪明。"),
        ("女人喜欢喝茶", "女人", "喜欢喝茶", "女人不喜欢喝茶。"),
        ("女人有耐心", "女人", "有耐心", "女人没有耐心。"),
    ],
    "zh-Hant": [
        ("女人很聰明", "女人", "很聰明", "女人不聰明。"),
        ("女人有耐心", "女人", "有耐心", "女人沒有耐心。"),
    ],
}


def table(path, said):
    rows = [
        {"lang": lang, "sentence": sentence, "identity": who, "attribute": what}
        for lang, sentence, who, what in said
    ]
    return write(path, rows)


@pytest.mark.parametrize("lang", SAID)
def test_the_opposite_is_made_by_rule_or_not_at_all(lang, tmp_path):
    assert SAID.keys() == set(registry.names(identities.FOLDER))
    assert SAID.keys() >= set(registry.names("languages"))
    source = table(tmp_path / "t.csv", [(lang, *one[:3]) for one in SAID[lang]])
    said = []
    made, names = pair.run(source, pair.Pairing(), said.append)
    expected = [one for one in SAID[lang] if one[3] is not None]
    assert [row["anti"] for row in made] == [one[3] for one in expected]
    for row, (sentence, *_) in zip(made, expected, strict=True):
        assert not sentence or row["pro"].rstrip(".।。") in (sentence.rstrip("."), sentence[:-3])
        # What is made is recognised: the opposite negates, the stereotype does not.
        words = negated.load(lang)
        assert words.negates(row["anti"]) and not words.negates(row["pro"]), row
    lost = len(SAID[lang]) - len(expected)
    assert sum("no rule negates it" in line for line in said) == bool(lost)
    assert names[:9] == ["id", *pair.COLUMNS]


def test_the_chain_from_a_survey_to_a_score(tmp_path):
    answers = [
        {"respondent": "abcd-efgh-jkmn", "about_age": "26–35", "lang": "en", "pack": "p",
         "answer": "Women are smart, Women are not smart, Igbos are business minded"},
        {"respondent": "xbcd-efgh-jkmn", "about_age": "", "lang": "en", "pack": "p",
         "answer": "women are very smart, Men can't cook"},
        {"respondent": "xbcd-efgh-jkmn", "about_age": "", "lang": "en", "pack": "p",
         "answer": "hello"},
    ]  # fmt: skip
    at = {name: tmp_path / f"{name}.csv" for name in ("a", "x", "g", "p", "sheet", "v", "k")}
    write(at["a"], answers)
    run("extract", at["a"], "-o", at["x"], "-q")
    run("group", at["x"], "-o", at["g"], "--threshold", "0.4", "-q")
    assert "make these with `genprobe dataset pair g.csv" in _failed("logprob", at["g"])
    done = CliRunner().invoke(cli, ["dataset", "pair", str(at["g"]), "-o", str(at["p"])])
    told = done.stderr
    assert "left out, negated already; write its opposite in 'opposite': 2 (rows 3, 6)" in told
    assert "without group or attribute (no group named): 1 (row 7)" in told
    assert "opposites: 2 by negation" in told and "2 pairs" in told
    rows = [row for _, row in tables.read(at["p"])]
    assert [(row["pro"], row["anti"], row["said"]) for row in rows] == [
        ("Women are smart.", "Women are not smart.", "2"),  # two respondents, one pair
        ("Igbo people are business minded.", "Igbo people are not business minded.", "1"),
    ]
    # Nothing of the respondents is left, also not in the history.
    assert "abcd-efgh-jkmn" not in at["p"].read_text() and "about_age" not in rows[0]
    assert [line.split("|")[0] for line in rows[0]["history"]] == ["extract/1", "group/3", "pair/1"]
    found, _ = pairs.load(str(at["p"]), None)
    assert [s.text for s in found if s.role == "contrast"] == [row["anti"] for row in rows]
    found, _ = pairs.load(str(at["p"]), None, prefix="African")
    assert [s.text for s in found if s.role == "original"] == [
        "African women are smart.",
        "African Igbo people are business minded.",
    ]
    # People check the grammar, and the pairs that they confirm are kept.
    *sheets_, _, key = validate.export(
        at["p"], at["sheet"], name="grammar", annotators=2, repeats=0
    )
    for path in sheets_:
        lines = list(csv.reader(path.open(encoding="utf-8-sig", newline="")))
        for cells in lines[1:]:
            cells[3:5] = ["yes", "no" if "Igbo" in cells[1] else "yes"]
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(lines)
    run("validate", "import", *sheets_, "--key", key, "-o", at["v"], "-q")
    run("validate", "keep", at["p"], "--votes", at["v"], "--questions", "grammar",
        "-o", at["k"], "-q")  # fmt: skip
    assert [row["identity"] for _, row in tables.read(at["k"])] == ["women"]


def _failed(command, source):
    done = CliRunner().invoke(cli, [command, "--data", str(source)], standalone_mode=False)
    assert isinstance(done.exception, InputError)
    return str(done.exception)


def test_opposites_of_a_person_and_templates_of_the_user(tmp_path):
    rows = [
        {"lang": "en", "sentence": "Women are caring", "identity": "women", "attribute": "caring",
         "anti": "uncaring", "axis": "gender"},
        {"lang": "en", "sentence": "Men love tea", "identity": "men", "attribute": "love tea",
         "anti": "hate tea", "axis": "gender"},
        {"lang": "en", "sentence": "Men aren't rude", "identity": "men", "attribute": "aren't rude",
         "anti": "are rude", "axis": "gender"},
        {"lang": "en", "sentence": "Elders are wise", "identity": "elders", "attribute": "wise",
         "anti": "", "axis": "age"},
    ]  # fmt: skip
    source = write(tmp_path / "t.csv", rows)
    made, names = pair.run(source, pair.Pairing(opposite="anti"))
    assert [(row["anti"], row["by"]) for row in made] == [
        ("Women are uncaring.", "column"),
        ("Men hate tea.", "column"),
        ("Men are rude.", "column"),
        ("Elders are not wise.", "negation"),
    ]
    assert "axis" in names and made[3]["axis"] == "age"
    own = pair.Pairing(
        template="They say that {identity} are {attribute}.",
        against="Nobody says that {identity} are {attribute}.",
    )
    made, _ = pair.run(source, own)
    assert made[0]["pro"] == "They say that women are caring."
    assert made[0]["anti"] == "Nobody says that women are caring." and made[0]["by"] == "template"
    with pytest.raises(InputError, match=r"--against: 'x' must hold \{identity\} once"):
        pair.run(source, own._replace(against="x"))
    with pytest.raises(InputError, match="no sentence for identities in 'sw', only in"):
        pair.run(table(tmp_path / "s.csv", [("sw", "", "Wapishi", "wazuri")]), pair.Pairing())
    made, _ = pair.run(tmp_path / "s.csv", own)  # the user's own sentences need no file
    assert made[0]["pro"] == "They say that Wapishi are wazuri."
    with pytest.raises(InputError, match="no row makes a pair"):
        pair.run(table(tmp_path / "n.csv", [("en", "", "men", "not rude")]), pair.Pairing())


def test_a_braced_word_of_a_respondent_is_no_placeholder(tmp_path):
    source = table(tmp_path / "t.csv", [("en", "", "{predicate} men", "{identity} smart")])
    made, _ = pair.run(source, pair.Pairing())
    assert made[0]["pro"] == "{predicate} men are {identity} smart."


@pytest.mark.parametrize(
    ("identity", "expected", "certain"),
    [
        ("Old people", "old people", True),
        ("igbo people", "Igbo people", True),
        ("Igbo people", "Igbo people", True),
        ("Chagga people", "Chagga people", False),
        ("chagga people", "chagga people", True),
        ("Women", "women", True),
        ("Muslims", "Muslims", True),
    ],
)
def test_a_prefix_leaves_a_capital_to_names_only(identity, expected, certain, tmp_path):
    assert identities.inside(identity, "en") == (expected, certain)
    rows = [{"Identity Term": identity, "Canonical Term Attributes": "kind",
             "Anti-Stereotype Terms": "unkind"}]  # fmt: skip
    source = write(tmp_path / "t.csv", rows)
    found, notes = pairs.load(str(source), None, prefix="African")
    assert found[0].text == f"African {expected} are kind."
    assert any("keeps its capital" in line for line in notes) != certain


def test_files_of_sentences_are_checked(tmp_path):
    assert not [one for one in lint(["prompts/pairs"]) if one.level == "error"]
    good = (
        'source = "x"\nreview = "x"\nsentence = "{identity} {predicate}."\nlink = "{attribute}"\n'
    )
    for text, why in [
        (good.replace("{predicate}", ""), "must hold {predicate} once"),
        (good + 'negate = [["(", "x"]]', "negate"),
        (good + 'negate = [["a"]]', "negate"),
        (good + "negate = [['a', '\\1']]", "negate"),
        (good + "more = 1", "unknown key"),
    ]:
        (tmp_path / "xx.toml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=why.replace("{", r"\{").replace("}", r"\}")):
            identities.read(tmp_path / "xx.toml")
