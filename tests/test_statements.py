"""Statements: the built-in ones, plain tables, the SHADES table, and the gated hub data set."""

import collections
import http.server
import json
import re
import threading
import unicodedata
from pathlib import Path

import pytest

from genprobe.datasets import shades, statements
from genprobe.errors import Caution, InputError
from genprobe.files import write_rows
from genprobe.resources import packs, registry
from genprobe.text import normalise, plain_phrases, tokens

DATA = Path(__file__).parents[2] / "shared" / "data" / "shades"
PLAIN = [
    {"id": "1", "lang": "en", "text": "Librarians are quiet.", "role": "original", "pair": "p1"},
    {"id": "2", "lang": "en", "text": "Drummers are quiet.", "role": "contrast", "pair": "p1"},
    {"id": "1", "lang": "kk", "text": "Кітапханашылар тыныш.", "role": "original", "pair": "p1"},
]


def save(folder, rows, name="mine.jsonl"):
    path = folder / name
    write_rows(path, rows)
    return str(path)


def refused(source, langs=None):
    with pytest.raises(InputError) as error:
        statements.load(source, langs)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_text_under_several_ids_is_told(tmp_path):
    rows = [
        {"id": f"s{n}", "lang": "en", "text": f"Librarians are quiet {n % 2}."} for n in range(5)
    ]
    found, notes = statements.load(save(tmp_path, rows), None)
    (line,) = [note for note in notes if isinstance(note, Caution)]
    assert len(found) == 5
    assert "3 statements (rows 3, 4, 5) have the text of an earlier row" in line
    assert statements.load(save(tmp_path, rows[:2]), None)[1] == []


# --- the built-in statements


def test_builtin_is_parallel():
    loaded, notes = statements.load("builtin")
    assert notes == []
    by_lang = collections.defaultdict(dict)
    for s in loaded:
        by_lang[s.lang][s.id] = s
        assert s.text == unicodedata.normalize("NFC", s.text.strip())
    assert set(by_lang) == set(registry.names("languages"))
    ids = set(by_lang["en"])
    for lang, items in by_lang.items():
        assert set(items) == ids, lang
        assert len({s.text for s in items.values()}) == len(ids), lang
        roles = collections.Counter((s.pair, s.role) for s in items.values())
        assert set(roles.values()) == {1} and len(roles) == len(ids)
    types = collections.Counter(s.bias_type for s in by_lang["en"].values())
    assert len(ids) == 120 and set(types.values()) == {12}


def test_builtin_texts_are_short_and_of_the_form_that_is_said():
    loaded, _ = statements.load("builtin")
    ends = {}
    for s in loaded:
        assert len(s.text) < (45 if s.lang.startswith("zh") else 90), s
        assert "  " not in s.text
        assert s.text[-1] == ends.setdefault((s.lang, s.type == "question"), s.text[-1]), s
    assert all(ends[lang, True] != ends[lang, False] for lang, _ in ends)
    for lang in {s.lang for s in loaded}:
        words = packs.load_language(lang).words
        # In Chinese no space tells 會 (it will) from 會計 (an accountant).
        alone = [] if lang.startswith("zh") else [*words["yes_alone"], *words["no_alone"]]
        phrases = map(plain_phrases, (*words["yes"], *words["no"], *alone))
        said = {tuple(found) for some in phrases for _, found in some}
        for s in (s for s in loaded if s.lang == lang):
            found = tokens(normalise(s.text))
            assert not {tuple(found[:n]) for n in range(1, len(found))} & said, s


def test_where_the_stereotype_is_of_the_other_group_the_halves_change_roles():
    found = {
        (s.lang, s.id): s for s in statements.load("builtin", ["de", "pt-BR", "zh", "zh-Hant"])[0]
    }
    north, south = "region-1/original", "region-1/contrast"
    for lang, roles in (("de", "oc"), ("zh-Hant", "oc"), ("pt-BR", "co"), ("zh", "co")):
        two = [found[lang, name] for name in (north, south)]
        assert [s.role[0] for s in two] == list(roles), lang
        for s in two:
            assert statements.known_in(lang, s.valid_in) == (s.role == "original"), s
    assert found["zh", south].text == "南方人性格内敛。"
    assert all(s.role == s.id.split("/")[1] for s in found.values() if s.pair != "region-1")


def test_builtin_has_one_source_whatever_the_languages():
    one, _ = statements.load("builtin", ["kk"])
    all_, _ = statements.load("builtin")
    assert {s.source for s in one} == {s.source for s in all_}
    assert re.fullmatch(r"builtin@[0-9a-f]{12}", one[0].source)
    assert {s.lang for s in one} == {"kk"}


def test_languages_by_any_name():
    names = ["pt_br", "br-pt", "ZH_HANT", "Kazakh", "मराठी", "Brazilian Portuguese"]
    loaded, _ = statements.load("builtin", names)
    assert {s.lang for s in loaded} == {"pt-BR", "zh-Hant", "kk", "mr"}
    assert "unknown language 'xx'" in refused("builtin", ["xx"])


def test_names():
    assert statements.names() == ["builtin", "shades"]
    assert "unknown data set 'bultin'; did you mean 'builtin'?" in refused("bultin")


# --- plain tables


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.csv", "mine.tsv", "mine.parquet"])
def test_plain_table(tmp_path, name):
    more = {"bias_type": "occupation", "type": "declaration", "entity": "librarians",
            "valid_in": "en, pt_br;kk", "source": "", "theme": "work"}  # fmt: skip
    loaded, notes = statements.load(save(tmp_path, [{**row, **more} for row in PLAIN], name))
    assert notes == []
    assert [(s.id, s.lang, s.role, s.pair) for s in loaded] == [
        ("1", "en", "original", "p1"), ("2", "en", "contrast", "p1"), ("1", "kk", "original", "p1"),
    ]  # fmt: skip
    first = loaded[0]
    assert first.text == "Librarians are quiet."
    assert (first.bias_type, first.type, first.entity) == (
        "occupation",
        "declaration",
        "librarians",
    )
    assert first.valid_in == ("en", "pt-BR", "kk")
    assert re.fullmatch(rf"{name}@[0-9a-f]{{12}}", first.source)
    assert first.extra == {"theme": "work"}


def test_only_text_and_lang_are_needed(tmp_path):
    loaded, _ = statements.load(save(tmp_path, [{"lang": "en", "text": "Tall people are calm."}]))
    (s,) = loaded
    assert (s.role, s.pair, s.bias_type, s.valid_in, s.extra) == ("original", "", "", (), {})
    again, _ = statements.load(
        save(tmp_path, [{"text": "Tall people are calm.", "lang": "eng"}], "b.csv")
    )
    assert again[0].id == s.id and len(s.id) == 12  # the id is made of the content


def test_one_language_can_stand_in_for_the_column(tmp_path):
    path = save(tmp_path, [{"text": "Tall people are calm."}])
    assert statements.load(path, ["en"])[0][0].lang == "en"
    for langs in (None, ["en", "kk"]):
        message = refused(path, langs)
        assert "no column 'lang'; there is: text;" in message
        assert "--lang" in message


def test_typed_values(tmp_path):
    rows = [{
        "id": 7, "lang": "en", "text": "Tall people are calm.", "bias_type": ["gender", "age"],
        "valid_in": ["en", "kk"], "pair": None, "score": 0.5, "tags": ["a"],
    }]  # fmt: skip
    for name in ("a.jsonl", "a.parquet"):
        s = statements.load(save(tmp_path, rows, name))[0][0]
        assert (s.id, s.pair, s.bias_type, s.valid_in) == ("7", "", "age+gender", ("en", "kk"))
        assert s.extra == {"score": 0.5, "tags": ["a"]}


def test_bias_types_are_sorted(tmp_path):
    s = statements.load(save(tmp_path, [{**PLAIN[0], "bias_type": "gender + age+gender"}]))[0][0]
    assert s.bias_type == "age+gender"


def test_langs_limit_and_must_be_there(tmp_path):
    path = save(tmp_path, PLAIN)
    assert [s.lang for s in statements.load(path, ["kaz"])[0]] == ["kk"]
    assert "no statement in ru; there is en, kk" in refused(path, ["kk", "ru"])


def test_text_as_it_is_but_for_nfc_and_space(tmp_path):
    text = "  Cafe\u0301 staff say\u200b {input} \u202efast\n"
    (s,), notes = statements.load(save(tmp_path, [{"lang": "fr", "text": text}]))
    assert s.text == "Caf\u00e9 staff say\u200b {input} \u202efast"
    assert notes == [
        "text brought to the Unicode form NFC: 1 (row 1)",
        "line breaks, control or invisible characters in the text, kept: 1 (row 1)",
    ]


def test_joiners_are_spelling(tmp_path):
    rows = [{"lang": "fa", "text": "آدم\u200cهای قدبلند آرام\u200cاند."}]
    assert statements.load(save(tmp_path, rows))[1] == []


def test_notes(tmp_path):
    rows = [
        {**PLAIN[1], "valid_in": "en tlh"},
        {**PLAIN[0], "pair": "p2", "valid_in": "tlh"},
        {**PLAIN[1], "id": "3", "text": "Drummers rest.", "pair": "", "valid_in": ""},
    ]
    loaded, notes = statements.load(save(tmp_path, rows, "a.csv"))
    assert len(loaded) == 3
    assert loaded[0].valid_in == ("en", "tlh")
    assert notes == [
        "language 'tlh' is not one of genprobe's, kept unchanged: 2 (rows 2, 3)",
        "contrast without an original of the same pair and language: 2 (rows 2, 4)",
    ]


def changed(row, **fields):
    return {**PLAIN[row], **fields}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"lang": "en", "sentence": "x"}], "no column 'text'; there is: lang, sentence; rename 'sentence' to 'text'"),
        ([{"lang": "en", "Text": "x"}], "rename 'Text' to 'text'"),
        ([{"lang": "en", "x": "x"}], "no column 'text'; there is: lang, x; see docs/statements.md"),
        ([{"language": "en", "text": "x"}], "no column 'lang'; there is: language, text; rename 'language' to 'lang'"),
        ([changed(0), changed(1, text=" \n")], "row 2: the text is empty"),
        ([changed(0), changed(1, text=None)], "row 2: the text is empty"),
        ([changed(0), changed(1, text=7)], "row 2: the text is int, not a text"),
        ([changed(0, text="a \ud800 b")], "row 1: the text holds half a character (a lone surrogate)"),
        ([changed(0), changed(1, lang="xx")], "row 2: unknown language 'xx'"),
        ([changed(0), changed(1, lang="")], "row 2: no language; 'lang' is empty"),
        ([changed(0), changed(1, id="1")], "row 2: the id '1' is already in row 1, also in 'en'"),
        ([{"lang": "en", "text": "x"}, {"lang": "en", "text": "x "}], "row 2: the same text is already in row 1, also in 'en'"),
        ([changed(0, role="stereotype")], "row 1: role 'stereotype' is neither 'original' nor 'contrast'"),
    ],
)  # fmt: skip
def test_errors_of_plain_tables(tmp_path, rows, message):
    path = save(tmp_path, rows)
    error = refused(path)
    assert error.startswith(path)
    assert message in error


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"lang,text\n", "the file holds no rows"),
        ("a.csv", b"lang,text\nen,\xff\n", "line 2: not UTF-8 (byte 13)"),
        ("a.csv", b"lang,text\nen,a,b\n", "line 2: 3 fields where the header has 2"),
        ("a.csv", b"lang,text\n\nen,a\nen,\n", "row 4: the text is empty"),
        ("a.txt", b"x", "unknown suffix '.txt'"),
        ("a.jsonl", None, "cannot be read (No such file or directory)"),
    ],
)
def test_errors_of_files(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert message in refused(str(tmp_path / name))


def test_rows_of_a_csv_are_those_of_the_spreadsheet(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('lang,text\nen,"two\nlines"\nen,\n')
    assert "row 3: the text is empty" in refused(str(path))


def test_the_example_of_the_docs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "statements.md").read_text("utf-8")
    example = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "mine.csv").write_text(example, "utf-8")
    loaded, notes = statements.load(str(tmp_path / "mine.csv"), ["kk"])
    assert [s.role for s in loaded] == ["original", "contrast"]
    assert notes == []
    for column in statements.COLUMNS:
        assert f"| `{column}` |" in page


# --- the SHADES table, in sentences of our own


def shades_row(index, subset, en="", gold="", bias="['occupation']", **more):
    return {
        "index": index,
        "subset": subset,
        "bias_type": bias,
        "stereotype_origin_langs": "",
        "stereotype_valid_langs": "",
        "stereotype_valid_regions": "",
        "stereotyped_entity": "",
        "type": "declaration",
        "en_templates": "",
        "en_biased_sentences": en,
        "en_expression": "False",
        "zh_hant_templates": "",
        "zh_hant_biased_sentences": "",
        "gold": gold,
        **more,
    }


def test_shades_table(tmp_path):
    rows = [
        shades_row("1.0", "_original", "Librarians are quiet.", "1",
                   stereotype_valid_langs="['dr-es', 'zh', 'ru-uz', 'ru', 'fre']",
                   stereotype_origin_langs="['du', 'en']",
                   stereotype_valid_regions="['KZ', 'US']", stereotyped_entity="librarians",
                   en_templates="OCCUPATION-PL are quiet.",
                   zh_hant_biased_sentences="圖書館員很安靜。"),
        shades_row("1.0", "a", "Drummers are quiet.", "0"),
    ]  # fmt: skip
    loaded, notes = statements.load(save(tmp_path, rows, "table.csv"))
    assert [(s.id, s.lang, s.role, s.pair) for s in loaded] == [
        ("1.0/original", "en", "original", "1.0"),
        ("1.0/a", "en", "contrast", "1.0"),
        ("1.0/original", "zh-Hant", "original", "1.0"),
    ]
    first = loaded[0]
    assert first.valid_in == ("es", "zh", "zh-Hant", "ru", "fr")
    assert (first.bias_type, first.entity) == ("occupation", "librarians")
    assert first.extra == {
        "row": 2,
        "stereotype_origin_langs": ["nl", "en"],
        "stereotype_valid_regions": ["KZ", "US"],
        "gold": "1",
        "templates": "OCCUPATION-PL are quiet.",
        "expression": False,
    }
    assert loaded[2].extra["templates"] == ""
    assert notes == [
        "valid in 'zh' read as valid in zh, zh-Hant: 1 (row 2)",
        "empty cells, no statement in that language: zh-Hant 1",
    ]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("['region person']", "regional-person"),
        ("['regional person']", "regional-person"),
        ("Regional-Person", "regional-person"),
        ("['gender+age', 'profession']", "age+gender+occupation"),
        ("region person + gender + age", "age+gender+regional-person"),
        ("['age', 'gender']", "age+gender"),
        ("['socio-economic status']", "socioeconomic-status"),
        ("['hair color']", "physical-appearance"),
        ("['mental issue']", "mental-health"),
        (["gender", "family_relation"], "family-relation+gender"),
        ("['zodiac sign']", "zodiac sign"),
        ("", ""),
        ("nan", ""),
        ("[]", ""),
    ],
)
def test_bias_types(tmp_path, cell, expected):
    rows = [shades_row("1.0", "_original", "Librarians are quiet.", bias=cell)]
    (s,), notes = statements.load(save(tmp_path, rows), ["en"])
    assert s.bias_type == expected
    unknown = "bias_type 'zodiac sign' is unknown, kept unchanged: 1 (row 1)"
    assert (unknown in notes) == ("zodiac" in str(cell))


def test_shades_faults_are_said(tmp_path):
    rows = [
        shades_row("1.0", "_original", "A one.", "0"),  # gold disagrees
        shades_row("1.0", "a", "B one.", "0", bias="", type=""),  # taken from the original
        shades_row("1.0", "a", "C one.", "0"),  # twice
        shades_row("", "", "D one.", "0"),  # no index
        shades_row("2.0", "", "E GENDER:MASC-PL one.", "1.0"),  # role from gold, a slot
        shades_row("3.0", "a", "A one.", "0"),  # no original; the same sentence
        shades_row("4.0", "", "F one."),  # nobody knows
        shades_row("5.0", "_original", "", "1"),  # no sentence
        shades_row("237/0", "_original", "G\none.", "1",
                   stereotype_valid_langs="['zh. br-pt', 'tlh']", type="riddle"),
        shades_row("6", "_original", "H one.", "1", bias=""),
    ]  # fmt: skip
    for row in rows:
        del row["zh_hant_templates"], row["zh_hant_biased_sentences"]
        row["tlh_biased_sentences"] = "nuqneH"
    loaded, notes = statements.load(save(tmp_path, rows, "table.csv"))
    by_id = {s.id: s for s in loaded}
    assert list(by_id) == [
        "1.0/original", "1.0/a", "1.0/a-2", "row-5", "2.0/original", "3.0/a", "237.0/original",
        "6.0/original",
    ]  # fmt: skip
    assert (by_id["1.0/a"].bias_type, by_id["1.0/a"].type) == ("occupation", "declaration")
    assert by_id["row-5"].pair == "" and by_id["row-5"].role == "contrast"
    assert by_id["237.0/original"].valid_in == ("zh", "zh-Hant", "pt-BR", "tlh")
    assert set(notes) == {
        "language 'tlh' is not one of genprobe's, left out: 10 sentences",
        "gold says contrast, subset says original: subset used: 1 (row 2)",
        "no bias_type: taken from the original: 1 (row 3)",
        "no bias_type: left empty: 1 (row 11)",
        "no type: taken from the original: 1 (row 3)",
        "an earlier row has this index and subset: id made unique: 1 (row 4)",
        "no index: not in a pair, named by its row: 1 (row 5)",
        "no subset: gold says whether it is original or contrast: 2 (rows 5, 6)",
        "neither subset nor gold says whether it is original or contrast, left out: 1 (row 8)",
        "contrast without an original under its index: 1 (row 7)",
        "the text still has a template slot, kept: 1 (row en 6)",
        "the same sentence as another item: en 1",
        "no sentence in any language: 1 (row 9)",
        "empty cells, no statement in that language: en 1",
        "index '237/0' read as '237.0': 1 (row 10)",
        "languages 'zh. br-pt' read as zh, pt-BR: 1 (row 10)",
        "language 'tlh' is not one of genprobe's, kept unchanged: 1 (row 10)",
        "valid in 'zh' read as valid in zh, zh-Hant: 1 (row 10)",
        "type 'riddle' is unknown, kept unchanged: 1 (row 10)",
        "line breaks, control or invisible characters in the text, kept: 1 (row en 10)",
    }


@pytest.mark.parametrize("text", ["Only bad students have ADHD.", "AIDS is a topic.", "AGENDA"])
def test_capitals_are_no_slots(tmp_path, text):
    assert statements.load(save(tmp_path, [shades_row("1.0", "_original", text)]), ["en"])[1] == []


def test_shades_table_as_parquet_with_real_lists(tmp_path):
    row = shades_row(1.0, "_original", "Librarians are quiet.", bias=["gender", "profession"])
    row |= {"stereotype_valid_langs": ["pt_br", "en"], "gold": 1, "en_expression": True}
    (s,), _ = statements.load(save(tmp_path, [row], "table.parquet"), ["en"])
    assert (s.id, s.bias_type) == ("1.0/original", "gender+occupation")
    assert s.valid_in == ("pt-BR", "en")
    assert s.extra["expression"] is True


def test_two_columns_for_one_language(tmp_path):
    row = shades_row("1.0", "_original", "A one.", eng_biased_sentences="A one.")
    error = refused(save(tmp_path, [row]))
    assert "two columns of sentences for 'en', the second is 'eng_biased_sentences'" in error


# --- the real table


@pytest.fixture(scope="module")
def real():
    path = DATA / "statements.csv"
    if not path.exists():
        pytest.skip("the SHADES table is not here")
    return statements.load(str(path))


def test_real_table_counts(real):
    loaded, _ = real
    counts = collections.Counter(s.lang for s in loaded)
    assert counts == {
        "ar": 92, "bn": 519, "de": 712, "en": 724, "es": 386, "fr": 582, "hi": 619, "it": 724,
        "mr": 628, "nl": 410, "pl": 684, "pt-BR": 670, "ro": 612, "ru": 685, "zh": 635,
        "zh-Hant": 637,
    }  # fmt: skip
    assert len({(s.id, s.lang) for s in loaded}) == len(loaded)
    canonical = set(shades._data()["bias_type"])
    assert {part for s in loaded for part in s.bias_type.split("+")} <= canonical | {""}
    assert {s.type for s in loaded} <= set(shades._data()["type"]) | {""}
    assert {code for s in loaded for code in s.valid_in} <= set(registry.names("languages"))


def test_real_table_is_what_the_published_replies_were_asked(real):
    pq = pytest.importorskip("pyarrow.parquet")
    path = DATA / "responses-dev.parquet"
    if not path.exists():
        pytest.skip("the published replies are not here")
    table = pq.read_table(path, columns=["lang", "item", "statement"]).to_pylist()
    asked = {(row["lang"], row["item"]): row["statement"] for row in table}
    from genprobe.resources.packs import language_code

    texts = collections.Counter(
        (language_code(lang), unicodedata.normalize("NFC", text.strip()))
        for (lang, _), text in asked.items()
    )
    assert texts == collections.Counter((s.lang, s.text) for s in real[0])


def test_real_table_notes(real):
    notes = "\n".join(real[1])
    for line in [
        "no index: not in a pair, named by its row: 4",
        "no subset: gold says whether it is original or contrast: 6",
        "an earlier row has this index and subset: id made unique: 1",
        "no bias_type: left empty: 28",
        "the text still has a template slot, kept: 1 (row bn 612)",
        "no sentence in any language: 2 (rows 534, 536)",
        "'region person' as 'regional-person' (244)",
        "empty cells, no statement in that language: ar 634",
    ]:
        assert line in notes
    assert "is not known" not in notes
    assert "without an original" not in notes


# --- the hub: a real server that stands in for it

SHA = "0123456789abcdef" * 2 + "01234567"
TOKEN = "hf_neverShowThis"
TABLE = (
    "index,subset,bias_type,type,en_biased_sentences,kk_biased_sentences,gold\n"
    "1.0,_original,['occupation'],declaration,Librarians are quiet.,Кітапханашылар тыныш.,1\n"
    "1.0,a,['occupation'],declaration,Drummers are quiet.,,0\n"
).encode()
PART = "index,subset,bias_type,type,{0}_biased_sentences\n1.0,_original,age,declaration,{1}\n"


class Hub(http.server.ThreadingHTTPServer):
    """Answers as the hub does: `files` by name, or `fail` = (path part, status, headers)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {"README.md": b"card", "all/all.csv": TABLE}
        self.fail = []  # used up one by one
        self.seen = []


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_HEAD(self):
        hub = self.server
        hub.seen.append((self.command, self.path, self.headers.get("authorization")))
        if hub.fail and hub.fail[0][0] in self.path:
            _, status, headers = hub.fail.pop(0)
            self.answer(status, b"no", headers)
        elif self.path.startswith("/api/"):
            info = {
                "id": shades.REPO,
                "sha": SHA,
                "siblings": [{"rfilename": name} for name in hub.files],
            }
            self.answer(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
        else:
            name = self.path.partition(f"/resolve/{SHA}/")[2]
            tag = {"ETag": f'"{len(hub.files[name])}-{name}"', "X-Repo-Commit": SHA}
            self.answer(200, hub.files[name], tag)

    do_GET = do_HEAD

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(shades, "_WAIT", 0)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def test_hub(hub):
    loaded, notes = statements.load("shades")
    assert [(s.id, s.lang, s.text) for s in loaded] == [
        ("1.0/original", "en", "Librarians are quiet."),
        ("1.0/a", "en", "Drummers are quiet."),
        ("1.0/original", "kk", "Кітапханашылар тыныш."),
    ]
    assert re.fullmatch(r"shades@[0-9a-f]{12}", loaded[0].source)
    assert notes[0] == f"read all.csv of {shades.REPO} at commit {SHA[:12]}"
    assert hub.seen[0][2] == f"Bearer {TOKEN}"
    assert TOKEN not in repr(loaded) + repr(notes)
    asked = len(hub.seen)
    statements.load("shades", ["kk"])  # the table comes from the cache
    assert len(hub.seen) == asked + 1


def test_hub_passing_faults_are_tried_again(hub):
    hub.fail = [("/api/", 503, {}), ("/api/", 429, {}), ("/api/", 502, {})]
    assert len(statements.load("shades")[0]) == 3
    hub.fail = [("/api/", 503, {})] * 4
    assert "the hub answers with HTTP 503; try later" in refused("shades")
    assert hub.fail == []


def test_hub_parts_by_language(hub):
    hub.files = {
        "broken.csv": b'a,"b',
        "other.csv": b"a,b\n1,2\n",
        "by_language/en.csv": PART.format("en", "Tall people are calm.").encode(),
        "by_language/kk.csv": PART.format("kk", "Бойы ұзындар сабырлы.").encode(),
    }
    loaded, notes = statements.load("shades")
    assert [(s.id, s.lang) for s in loaded] == [("1.0/original", "en"), ("1.0/original", "kk")]
    assert notes[0].startswith("read en.csv, kk.csv of ")


GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."}


@pytest.mark.parametrize(
    ("token", "where", "status", "headers", "message"),
    [
        (TOKEN, "/resolve/", 403, GATED, "its licence is not accepted for this token's account; accept it on that page"),
        (None, "/resolve/", 401, GATED, "a gated data set, and there is no token; accept its licence on that page, then `hf auth login` or set HF_TOKEN"),
        (TOKEN, "/api/", 403, GATED, "its licence is not accepted for this token's account"),
        (None, "/api/", 401, {}, "there is no token"),
        (TOKEN, "/api/", 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, "the token is not valid"),
        (TOKEN, "/api/", 403, {}, "the token may not read it"),
        (TOKEN, "/api/", 404, {"X-Error-Code": "RepoNotFound"}, "not found with this token; download the table there"),
        (TOKEN, "/api/", 418, {}, "the hub answers with HTTP 418"),
    ],
)  # fmt: skip
def test_hub_refusals(hub, monkeypatch, token, where, status, headers, message):
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    hub.fail = [(where, status, headers)] * 9
    error = refused("shades")
    assert message in error
    assert error.startswith(f"http://127.0.0.1:{hub.server_port}/datasets/{shades.REPO}: ")
    assert TOKEN not in error
    assert len(hub.fail) == 8, "a refusal does not pass: asked once"


def test_hub_without_a_table(hub):
    hub.files = {"README.md": b"card", "other.csv": b"a,b\n1,2\n"}
    error = refused("shades")
    assert "no table with the columns of SHADES among its files (README.md, other.csv)" in error
    assert "name the file in --data" in error


def test_hub_out_of_reach(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused
    assert "cannot be reached; check the network, or download the table" in refused("shades")


def test_hub_offline(hub, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refused("shades")


def test_no_trace_of_the_token(hub):
    """Not in the error's causes either, which a traceback would print."""
    hub.fail = [("/api/", 500, {})] * 9
    with pytest.raises(InputError) as error:
        statements.load("shades")
    assert error.value.__suppress_context__
    assert error.value.__cause__ is None
