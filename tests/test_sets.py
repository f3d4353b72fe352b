"""Public data sets by name: each layout with invented rows, each trap, and the fetcher.

No row of a set stands here: the rows are ours, mild, in the layout that the authors publish.
"""

import contextlib
import csv
import dataclasses
import hashlib
import http.server
import io
import json
import threading

import pytest

from genprobe import commands
from genprobe.analysis.score import score
from genprobe.datasets import choices, fetch, frames, pairs, phrasing, sets
from genprobe.errors import InputError
from genprobe.files import write_rows
from genprobe.resources import packs, registry
from genprobe.tasks import Ask, planned, run
from genprobe.tasks.choices import plan


@pytest.fixture(autouse=True)
def nothing_given():
    """No folder of the test before, as each command sets its own."""
    yield
    fetch.take_from(None)


def described(tmp_path, name, files):
    """A copy of a set's description for these files: language -> path -> content."""
    text = (registry.path("sets") / f"{name}.toml").read_text("utf-8")
    text = text[: text.index("\n[files.")] + "\n"
    for lang, contents in files.items():
        text += f"\n[files.{lang}]\n"
        for path, content in contents.items():
            text += f'{json.dumps(path)} = ""\n'
            place = tmp_path / "copy" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    fetch.take_from(tmp_path / "copy")
    return str(tmp_path / f"{name}.toml")


def read(tmp_path, name, files, langs=None):
    return pairs.load(described(tmp_path, name, files), langs)


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(*rows, delimiter=","):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def places(items):
    """What decides: (label, target, unknown) of each choice, by its id."""
    names = ("label", "target", "unknown")
    return {item.id: tuple(item.extra[name] for name in names) for item in items}


# --- BBQ's layout: MBBQ, PakBBQ

ASKED = {
    "example_id": 0,
    "question_index": "1",
    "question_polarity": "neg",
    "context_condition": "ambig",
    "category": "Age",
    "answer_info": {
        "ans0": ["grandson", "nonOld"],
        "ans1": ["Not known", "unknown"],
        "ans2": ["grandfather", "old"],
    },
    "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"]},
    "context": "A grandson and a grandfather had tea.",
    "question": "Who spilled the tea?",
    "ans0": "The grandson",
    "ans1": "Not known",
    "ans2": "The grandfather",
    "label": 1,
}


def asked(tags=(), groups=(), **more):
    info = [[tag, tag] for tag in tags]
    row = ASKED | more
    if tags:
        row |= {"answer_info": {f"ans{at}": one for at, one in enumerate(info)}}
        row |= {"additional_metadata": {"subcategory": "None", "stereotyped_groups": [*groups]}}
    return row


def test_mbbq(tmp_path):
    """The language is in the file's name; tags are compared without spaces, and by a table."""
    ses = [
        asked(["lowSES", "unknown", "highSES"], ["low SES"]),
        asked(
            ["lowSES", "unknown", "highSES"], ["low SES"], example_id=1, question_polarity="nonneg"
        ),
    ]
    gender = [
        asked(["adam", "unknown", "kadın"], ["F"]),
        asked(["kız", "unknown", "erkek çocuk"], ["M"], example_id=1),
        asked(["kız", "unknown", "kadın"], ["F"], example_id=2),
    ]
    files = {
        "tr": {
            "data/SES_tr.jsonl": lines(*ses),
            "data/Gender_identity_tr.jsonl": lines(*gender),
        },
        "es": {"data/SES_es.jsonl": lines(*ses)},
    }
    items, notes = read(tmp_path, "mbbq", files, ["tr"])
    assert {item.lang for item in items} == {"tr"}
    assert places(items) == {
        "SES/0": (1, 0, 1),
        "SES/1": (1, 2, 1),
        "Gender_identity/0": (1, 2, 1),
        "Gender_identity/1": (1, 2, 1),
        "Gender_identity/2": (1, None, 1),  # two women: nobody is contrasted
    }
    assert any(
        "no single option" in note and "Gender_identity_tr.jsonl:3" in note for note in notes
    )
    assert any("no licence is published" in note and "Neplenbroek" in note for note in notes)
    items, _ = read(tmp_path, "mbbq", files)
    assert {item.lang for item in items} == {"tr", "es"}


def test_mbbqs_control_is_a_set_of_its_own(tmp_path):
    files = {"nl": {"data/SES_control_nl.jsonl": lines(asked())}}
    items, notes = read(tmp_path, "mbbq-control", files)
    assert places(items) == {"SES/0": (1, 2, 1)} and any("not a stereotype" in n for n in notes)
    ordinary = [path for path in sets.load("mbbq").files["nl"] if "control" in path]
    assert ordinary == []


# --- pairs, and encodings


def crows(more, less, at=0, kind="stereo", key="id"):
    both = {"sent_more": more, "sent_less": less}
    return {key: at, **both, "stereo_antistereo": kind, "bias_type": "age"}


def test_crows_pairs(tmp_path):
    """Personal columns are not taken; yes/no questions leave out what is no stereotype."""
    rows = [
        crows("Old people drink tea.", "Young people drink tea.", key=""),
        crows("Young people nap.", "Old people nap.", 1, "antistereo", key=""),
    ]
    rows = [row | {"annotations": "[]", "anon_writer": "a1"} for row in rows]
    source = described(
        tmp_path, "crows-pairs", {"en": {"data/crows_pairs_anonymized.csv": table(*rows)}}
    )
    items, _ = pairs.load(source)
    assert [(i.id, i.role) for i in items[:2]] == [("0", "original"), ("0/contrast", "contrast")]
    assert len(items) == 4 and not {"anon_writer", "annotations"} & items[0].extra.keys()
    said, notes = pairs.sentences(source)
    assert [one.text for one in said] == ["Old people drink tea.", "Young people drink tea."]
    assert any("left out: 1" in note for note in notes)


def test_mac_roman_with_two_letters_of_utf_8(tmp_path):
    """cp1252 would read 0x91 as a quotation mark, and no error would tell."""
    text = table(crows("Oma houdt van een siësta.", "Opa houdt van een siësta; één idee."))
    content = text.replace("één", "één").encode("mac_roman")
    content = content.replace("één".encode("mac_roman"), "één".encode())  # these two are UTF-8
    files = {"nl": {"datasets/crows_dutch.csv": content}}
    items, _ = read(tmp_path, "crows-pairs-nl", files)
    assert [item.text for item in items] == [
        "Oma houdt van een siësta.",
        "Opa houdt van een siësta; één idee.",
    ]


def test_a_pair_without_a_sentence_or_with_one_twice_is_left_out(tmp_path):
    rows = [
        crows("Elle lit.", ""),
        crows("Il lit.", "Il lit.", 1),
        crows("Il rit.", "Elle rit.", 2),
    ]
    files = {"fr": {"datasets/crows_french.csv": table(*rows)}}
    items, notes = read(tmp_path, "crows-pairs-nl", files)
    assert {item.pair for item in items} == {"2"}
    assert any("a sentence is empty, left out: 1" in note for note in notes)
    assert any("the same sentence twice, left out: 1" in note for note in notes)


# --- EsBBQ, CaBBQ, KoBBQ, GG-BBQ


@pytest.mark.parametrize(("name", "lang"), [("esbbq", "es"), ("cabbq", "ca")])
def test_the_english_word_unknown_is_not_shown(name, lang, tmp_path):
    """It is worded in the language, the same for a template; the tag stands after the last comma."""
    row = {
        "instance_id": 0,
        "template_id": 1,
        "version": "a",
        "flipped": "original",
        "question_polarity": "neg",
        "context_condition": "ambig",
        "category": "Age",
        "subcategory": "",
        "stereotyped_groups": "['old', 'senior']",
        "answer_info.ans0": "['un abuelo, con sombrero', 'un abuelo, old']",
        "answer_info.ans1": "['un nieto', 'nonOld']",
        "answer_info.ans2": "['unknown', 'unknown']",
        "context": "Un abuelo y un nieto tomaron té.",
        "question": "¿Quién derramó el té?",
        "ans0": "El abuelo",
        "ans1": "El nieto",
        "ans2": "unknown",
        "question_type": "n/a",
        "label": 2,
    }
    rows = [row, row | {"instance_id": 1, "question_polarity": "nonneg"}]
    files = {lang: {f"data_{lang}/Age.full.csv": table(*rows)}}
    items, notes = read(tmp_path, name, files)
    assert places(items) == {"Age/0": (2, 0, 2), "Age/1": (2, 1, 2)}
    shown = {item.extra["options"][2] for item in items}
    assert len(shown) == 1 and shown <= set(sets.load(name).unknown["as"][lang])
    assert any("worded by genprobe" in note for note in notes)
    known = [packs.any_code(lang), *(item.lang for item in items)]
    assert set(known) == {lang}


def test_kobbq(tmp_path):
    """Options are a list as Python writes it; the answers are texts; the id holds the condition."""
    row = {
        "sample_id": "age-001a-002-amb-bsd",
        "label_annotation": "ST",
        "context": "손자와 할머니가 차를 마셨습니다.",
        "question": "누가 차를 쏟았습니까?",
        "choices": "['손자', '할머니', '알 수 없음']",
        "biased_answer": "할머니",
        "answer": "알 수 없음",
    }
    right = {"sample_id": "age-001b-002-dis-cnt", "biased_answer": "손자", "answer": "손자"}
    wrong = {"sample_id": "age-001a-002-dis-cnt", "biased_answer": "손자", "answer": "손자"}
    files = {
        "ko": {"data/KoBBQ_test_samples.tsv": table(row, row | right, row | wrong, delimiter="\t")}
    }
    items, notes = read(tmp_path, "kobbq", files)
    assert places(items) == {
        "age/001a-002-amb-bsd": (2, 1, 2),
        "age/001b-002-dis-cnt": (0, 0, 2),  # not turned: the answer itself is named
        "age/001a-002-dis-cnt": (0, None, 2),  # version a goes against the stereotype
    }
    found = [(i.extra["condition"], i.extra["polarity"], i.pair) for i in items]
    assert found[:2] == [("ambig", "neg", "age/001"), ("disambig", "nonneg", "age/001")]
    assert any("contradicts its target" in note for note in notes)
    files["ko"]["data/KoBBQ_test_samples.tsv"] = table(row | {"answer": "강아지"}, delimiter="\t")
    with pytest.raises(InputError, match=r"kobbq: data/KoBBQ.*none of the options"):
        read(tmp_path, "kobbq", files)


@pytest.mark.parametrize("name", ["gg-bbq", "gg-bbq-names"])
def test_gg_bbq(name, tmp_path):
    """Tags in the text of a table with numbers for keys; trans people by their own tag, not names."""
    row = {
        "index": 0,
        "context": "Eine Transfrau und eine Kollegin tranken Tee.",
        "question": "Wer hat den Tee verschüttet?",
        "label": 2,
        "choice_0": "Die Transfrau",
        "choice_1": "Die Kollegin",
        "choice_2": "keine Antwort",
        "question_type": "non_negative",
        "context_type": "ambiguous_context",
        "known_stereotyped_groups": '["Transgender women", "trans"]',
        "relevant_social_values": "care",
        "choice_info": "{0: ['Die Transfrau', 'non_binary'], 1: ['Die Kollegin', 'F'],"
        " 2: ['keine Antwort', 'unknown']}",
    }
    other = {"index": 1, "question_type": "negative", "known_stereotyped_groups": '["F"]'}
    part = "1/bbq_de_amb_test" if name == "gg-bbq" else "2/bbq_de_proper_names_amb_test"
    items, _ = read(tmp_path, name, {"de": {f"data/subset-{part}.jsonl": lines(row, row | other)}})
    assert places(items) == {
        "ambiguous_context/0": (2, 1 if name == "gg-bbq" else None, 2),
        "ambiguous_context/1": (2, 1, 2),
    }


def test_equal_options_are_left_out(tmp_path):
    rows = lines(asked(), asked(example_id=1, ans0="Not known"), asked(example_id=2, ans0=""))
    items, notes = read(tmp_path, "mbbq", {"en": {"data/Age_en.jsonl": rows}})
    assert [item.id for item in items] == ["Age/0"]
    assert any("two options are the same, left out: 1" in note for note in notes)
    assert any("an option is empty, left out: 1" in note for note in notes)


def test_bbq_by_its_authors_targets(tmp_path):
    """The file of targets names the option itself; where it names none, there is none."""
    rows = lines(*(asked(example_id=at) for at in range(3)))
    named = [
        {"category": "Age", "example_id": 0, "target_loc": "2.0"},
        {"category": "age", "example_id": 1, "target_loc": "NA"},
    ]
    place = tmp_path / "copy" / "supplemental" / sets.TARGETS
    place.parent.mkdir(parents=True)
    place.write_text(table(*named), "utf-8")
    items, _ = read(tmp_path, "bbq", {"en": {"data/Age.jsonl": rows}})
    assert places(items) == {"Age/0": (1, 2, 1), "Age/1": (1, None, 1), "Age/2": (1, None, 1)}


# --- PakBBQ, BharatBBQ, CBBQ, BBQ-fa


def test_pakbbq(tmp_path):
    """Groups in the plural, and equal options, which refused the whole file."""
    rows = [
        asked(["Sikh", "unknown", "nonSikh"], ["Sikhs"], category="Religion"),
        asked(["nonTrans_F", "unknown", "trans_M"], ["trans"], example_id=1),
        asked(["formal", "unknown", "informal"], ["slang users"], example_id=2),
        asked(example_id=3, ans2="Not known"),
    ]
    rows = [row | {"type": "NA"} for row in rows]
    files = {"ur": {"PakBBQ/PakBBQ_UR/Religion.jsonl": lines(*rows)}}
    items, _ = read(tmp_path, "pakbbq", files)
    assert [one[1] for one in places(items).values()] == [0, 2, None]
    assert {item.lang for item in items} == {"ur"}


BHARAT = {
    "Qid": 1,
    "Context_type": "disamb",
    "Context": "A grandson and a grandfather had tea. The grandfather spilled it.",
    "Question": "Who spilled the tea?",
    "Question_polarity": "neg",
    "Option1": "The grandfather",
    "Option2": "The grandson",
    "Option3": "can't be determined",
    "Label": 1,
    "Target": 1,
    "Pairing": "biased",
    "Proper_Noun": 0,
    "Category": "Age",
    "id": 1,
}


def test_bharatbbq_counts_from_1_and_its_target_is_the_group(tmp_path):
    """Copied as it is, the target of every non-negative question would be the wrong one."""
    rows = [
        BHARAT,
        BHARAT | {"id": 2, "Question_polarity": "non-neg", "Label": 2},
        BHARAT | {"id": 3, "Context_type": "amb", "Question_polarity": "non-neg", "Label": 3},
        BHARAT | {"id": 4, "Pairing": "anti"},  # contradicts itself
        BHARAT | {"id": 5, "Pairing": "Biased "},  # says neither
    ]
    path = "BharatBBQ_Dataset/Examples/Age_examples.csv"
    items, notes = read(tmp_path, "bharatbbq", {"en": {path: table(*rows)}})
    assert places(items) == {
        "Age/1": (0, 0, 2),
        "Age/2": (1, 1, 2),
        "Age/3": (2, 1, 2),
        "Age/4": (0, None, 2),
        "Age/5": (0, None, 2),
    }
    assert any("contradicts its target" in note and f"{path}:5" in note for note in notes)
    assert any("Pairing does not say whether" in note and f"{path}:6" in note for note in notes)
    with pytest.raises(InputError, match="options are counted from 1"):
        read(tmp_path, "bharatbbq", {"en": {path: table(BHARAT | {"Label": 0})}})


def test_cbbq_has_no_target_until_people_have_confirmed_its_rule(tmp_path):
    """A BOM, spellings of its own; ten rows of a category, not nine."""
    row = {
        "example_id": 1,
        "question_index": 1,
        "question_polarity": "non_neg",
        "context_condition": "disambiguous",
        "category": "SES",
        "subcategory": "",
        "bias_targeted_groups": "",
        "context": "小王和小李喝茶，小李洒了茶。",
        "question": "谁没有洒茶？",
        "ans0": "小王",
        "ans1": "小李",
        "ans2": "无法判断",
        "label": 0,
    }
    content = "\ufeff" + table(row)
    files = {"zh": {"data/SES/disambiguous/disambiguous.csv": content}}
    source = described(tmp_path, "cbbq", files)
    items, notes = pairs.load(source)
    assert places(items) == {"SES/disambiguous/1": (0, None, 2)}
    assert any("nobody has confirmed" in note for note in notes)
    text = (tmp_path / "cbbq.toml").read_text("utf-8")
    for rows, target in ((9, None), (10, 1)):
        own = tmp_path / f"confirmed-{rows}.toml"
        more = f'[target.confirmed]\nSES = {{by = "two readers", rows = {rows}}}\n'
        own.write_text(text.replace("[target.places]", f"{more}\n[target.places]"), "utf-8")
        items, _ = pairs.load(str(own))
        assert items[0].extra["target"] == target  # place 0 is named, and the question turns it


def test_a_bom_before_the_keys_of_json(tmp_path):
    rows = lines({f"\ufeff{key}" if key == "example_id" else key: v for key, v in asked().items()})
    items, _ = read(tmp_path, "mbbq", {"en": {"data/Age_en.jsonl": rows}})
    assert [item.id for item in items] == ["Age/0"]


def test_bbq_fa_has_two_languages_in_a_row(tmp_path):
    row = {
        "example_id": 1,
        "question_index": 1,
        "question_polarity": "neg",
        "context_condition": "ambig",
        "category": "Gender_identity",
        "context - EN": "A man and a woman had tea.",
        "context - FA": "یک مرد و یک زن چای خوردند.",
        "question - EN": "Who spilled it?",
        "question - FA": "چه کسی آن را ریخت؟",
        "ans0 - EN": "The man",
        "ans0 - FA": "مرد",
        "ans1 - EN": "Not enough information",
        "ans1 - FA": "اطلاعات کافی نیست",
        "ans2 - EN": "The woman",
        "ans2 - FA": "زن",
        "label": 1,
        "target": 2,
    }
    files = {"fa": {"BBQ-Fa.csv": table(row)}, "en": {"BBQ-Fa.csv": table(row)}}
    items, _ = read(tmp_path, "bbq-fa", files)
    assert [(i.lang, i.extra["options"][0], i.extra["target"]) for i in items] == [
        ("fa", "مرد", None),
        ("en", "The man", None),
    ]
    assert [item.extra["unknown"] for item in items] == [1, 1]


# --- further pairs and statements


def texts(items):
    return {(item.lang, item.role): item.text for item in items}


def test_indibias_has_two_languages_in_a_row(tmp_path):
    row = {
        "": 0,
        "index": 7,
        "modified_eng_sent_more": "Old men nap.",
        "modified_eng_sent_less": "Young men nap.",
        "sent_more_hindi": "बूढ़े आदमी सोते हैं।",
        "sent_less_hindi": "जवान आदमी सोते हैं।",
        "bias_type": "age",
        "stereo_antistereo": "stereo",
    }
    content = table(row)
    files = {lang: {"IndiBias_v1_sample.csv": content} for lang in ("hi", "en")}
    items, _ = read(tmp_path, "indibias", files)
    assert texts(items)["hi", "original"] == "बूढ़े आदमी सोते हैं।"
    assert texts(items)["en", "contrast"] == "Young men nap." and {i.pair for i in items} == {"7"}


def test_rubia(tmp_path):
    row = {"": 0, "pro-trope": "Она шьёт.", "anti-trope": "Он шьёт.", "domain": "gender"}
    row["task_type"] = "freeform"
    items, _ = read(tmp_path, "rubia", {"ru": {"rubia.tsv": table(row, delimiter="\t")}})
    assert texts(items)["ru", "original"] == "Она шьёт." and items[0].extra["domain"] == "gender"


def test_filipino_mixes_cp1252_and_utf_8(tmp_path):
    row = {
        "": 0,
        "sent_more_bias": "Umiidlip ang matanda…",
        "sent_less_bias": "Umiidlip ang bata’t.",
    }
    row |= {"sent_more_bias_en": "a", "sent_less_bias_en": "b", "bias_type": "gender"}
    content = table(row).encode().replace("…".encode(), b"\x85")
    items, _ = read(tmp_path, "crows-pairs-fil", {"fil": {"crowspairs_tl.csv": content}})
    assert texts(items) == {
        ("fil", "original"): "Umiidlip ang matanda…",
        ("fil", "contrast"): "Umiidlip ang bata’t.",
    }
    other = {key: value for key, value in row.items() if not key.endswith("_en")}
    content = ("\ufeff" + table(other)).encode()
    items, _ = read(tmp_path, "winoqueer-fil", {"fil": {"winoqueer_tl.csv": content}})
    assert [item.id for item in items] == ["0", "0/contrast"]


@pytest.mark.parametrize(
    ("name", "lang", "path"),
    [("stereoset-pt-br", "pt-BR", "data/dev_ptbr.json"), ("stereoset", "en", "data/dev.json")],
)
def test_stereoset_is_nested(name, lang, path, tmp_path):
    said = {
        "stereotype": "Cooks hum.",
        "anti-stereotype": "Cooks read.",
        "unrelated": "Cooks blue.",
    }
    sentences = [{"sentence": text, "gold_label": label} for label, text in said.items()]
    record = {"id": "a1", "target": "cook", "bias_type": "profession", "sentences": sentences}
    nested = json.dumps({"version": "1", "data": {"intrasentence": [record], "intersentence": []}})
    items, _ = read(tmp_path, name, {lang: {path: nested}})
    assert texts(items) == {
        (lang, "original"): "Cooks hum.",
        (lang, "contrast"): "Cooks read.",
        (lang, "unrelated"): "Cooks blue.",
    }
    with pytest.raises(InputError, match=r"no list 'data.intrasentence'"):
        read(tmp_path, name, {lang: {path: "{}"}})


def test_gest_puts_the_gender_of_the_stereotype_first(tmp_path):
    rows = [{"sentence": "I hum", "stereotype": 3}, {"sentence": "I nap", "stereotype": 9}]
    items, _ = read(tmp_path, "gest", {"en": {"data/gest_1.1.csv": table(*rows)}})
    assert [item.text for item in items if item.role == "original"] == [
        '"I hum", the woman said.',
        '"I nap", the man said.',
    ]


def test_eurogest_takes_sentences_with_both_genders(tmp_path):
    row = {"GEST_ID": "g1", "Stereotype_ID": 2.0, "Masculine": "Soy alto.", "Feminine": "Soy alta."}
    rows = [row | {"Neutral": ""}, row | {"GEST_ID": "g2", "Masculine": "", "Feminine": ""}]
    place = tmp_path / "made.parquet"
    write_rows(place, rows)
    items, notes = read(
        tmp_path, "eurogest", {"es": {"data/Spanish-0.parquet": place.read_bytes()}}
    )
    assert texts(items) == {("es", "original"): "Soy alta.", ("es", "contrast"): "Soy alto."}
    assert any("a sentence is empty, left out: 1" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "lang", "path"),
    [
        ("crows-pairs-multi", "mt", "data/mt_MT/train.csv"),
        ("crows-pairs-fr", "fr", "test_FR.jsonl"),
    ],
)
def test_pairs_that_are_read_only_from_a_copy(name, lang, path, tmp_path):
    row = crows("Old people nap.", "Young people nap.")
    content = lines(row) if path.endswith("l") else table(row)
    items, _ = read(tmp_path, name, {lang: {path: content}})
    assert texts(items)[lang, "original"] == "Old people nap."
    fetch.take_from(None)
    with pytest.raises(InputError, match=r"is not fetched; get it at .* then give --from FOLDER"):
        pairs.load(name, [lang])
    fetch.take_from(tmp_path / "copy")  # by the pattern of the description that is shipped
    assert pairs.load(name, [lang])[0]
    other = {key: value for key, value in row.items() if key != "sent_less"}
    with pytest.raises(InputError, match="no column 'sent_less'"):
        read(tmp_path, name, {lang: {path: lines(other) if path.endswith("l") else table(other)}})


@pytest.mark.parametrize(("name", "lang"), [("pbbq", "fa"), ("jbbq", "ja")])
def test_choices_that_are_read_only_from_a_copy(name, lang, tmp_path):
    items, _ = read(tmp_path, name, {lang: {"Age.jsonl": lines(asked())}})
    assert places(items)["Age/0"][0] == 1 and items[0].lang == lang
    fetch.take_from(None)
    with pytest.raises(InputError, match="then give --from FOLDER"):
        pairs.load(name)
    assert "ask for it at https://github.com/ynklab" in refused("jbbq")


def refused(name):
    with pytest.raises(InputError) as told:
        pairs.load(name)
    return str(told.value)


def test_seegull_multi(tmp_path):
    """A group and a word for it, if two of three called it a stereotype; read languages only."""
    row = {"identity": "vecinos", "attribute": "puntuales", "non_stereotype": 1, "stereotype": 2}
    row |= {"unsure": 0, "mean_offensive_score": -1, "translated_identity": "neighbours"}
    row |= {"translated_attribute_list": "punctual"}
    content = table(row, row | {"attribute": "altos", "stereotype": 1})
    name = "dataset/stereotypes/Spanish (es) in {}.csv"
    files = {
        "es": {name.format("Spain"): content, name.format("Mexico"): content},
        "id": {"dataset/stereotypes/Indonesian (id) in Indonesia.csv": content},
    }
    source = described(tmp_path, "seegull-multi", files)
    items, notes = pairs.sentences(source)
    assert {(i.id, i.lang, i.text) for i in items} == {
        ("Spain/2", "es", "vecinos: puntuales."),
        ("Mexico/2", "es", "vecinos: puntuales."),
    }
    assert items[0].entity == "vecinos" and any("left out: 2" in note for note in notes)


# --- what is shipped


@pytest.mark.parametrize("name", sets.names())
def test_every_description_can_be_read(name):
    """Each file is pinned by a hash, or the set is read only from a copy that the user has."""
    one = sets.load(name)
    hashes = [hash_ for files in one.files.values() for hash_ in files.values()]
    assert one.rows.keys() == one.files.keys() and one.citation and one.note
    assert [packs.any_code(lang) for lang in one.files] == list(one.files)
    assert bool(one.commit) == all(len(hash_) in (40, 64) for hash_ in hashes)
    assert one.about.startswith(one.title)
    for lang in one.unknown.get("as", {}):
        assert lang in one.files


def test_list_data_names_every_set(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["genprobe", "list", "data"])
    with contextlib.suppress(SystemExit):
        commands.main()
    listed = capsys.readouterr().out
    for name in sets.names():
        assert f"\n{name} " in listed
    assert "MBBQ; choices, logprob: en 10,088, es 10,088" in listed
    assert "Filipino CrowS-Pairs; logprob: fil 204; logprob, choices, yesno: en 204" in listed
    assert "no licence is published" in listed and "CC0-1.0" in listed


def test_a_language_that_a_set_has_not_is_refused():
    with pytest.raises(InputError, match="mbbq: no rows in kk; there is en, es, nl, tr"):
        pairs.load("mbbq", ["kk"])


def test_an_unknown_name_lists_the_sets():
    with pytest.raises(InputError, match="did you mean 'mbbq'"):
        pairs.load("mbqb")


# --- the fetcher

CONTENT = (lines(asked(), asked(example_id=1)) * 1).encode()
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Home(http.server.BaseHTTPRequestHandler):
    """A home of data in the layout of GitHub, which can cut an answer or give another one."""

    kind, asked = "whole", []

    def do_GET(self):
        Home.asked.append((self.path, self.headers.get("Range")))
        if self.path != f"/some/set/{COMMIT}/data/%C3%89ge_en.jsonl":
            self.send_error(404)
            return
        content = CONTENT.upper() if Home.kind == "another" else CONTENT
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if Home.kind == "no-range":
            start = 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = start + 100 if Home.kind in ("cut", "no-range") else len(content)
        if Home.kind == "no-range" and len(Home.asked) > 1:
            end = len(content)
        self.wfile.write(content[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The name of a set whose home is a server of ours."""
    text = (registry.path("sets") / "mbbq.toml").read_text("utf-8")
    text = text[: text.index("\n[files.")].replace(
        "https://github.com/Veranep/MBBQ", "https://github.com/some/set"
    )
    text = text.replace(sets.load("mbbq").commit, COMMIT)
    text += f'\n[files.en]\n"data/Ége_en.jsonl" = "{git_hash(CONTENT)}"\n'
    text += '\n[files.es]\n"data/Age_es.jsonl" = "' + "0" * 40 + '"\n'
    source = tmp_path / "served.toml"
    source.write_text(text, "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Home.kind, Home.asked = "whole", []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Home) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(fetch, "RAW", f"http://127.0.0.1:{server.server_port}")
        yield str(source)
        server.shutdown()


def test_fetched_once_only_the_language_asked_for_and_read_offline(home, tmp_path, monkeypatch):
    items, notes = pairs.load(home, ["en"])
    assert len(items) == 2 and len(Home.asked) == 1
    assert any("1 of 1 files fetched from github.com/some/set at commit" in note for note in notes)
    assert items[0].source.endswith("@0123456789ab")
    monkeypatch.setattr(fetch, "RAW", "http://127.0.0.1:9")
    again, notes = pairs.load(home, ["en"])
    assert again == items and any("read from the cache" in note for note in notes)
    (kept,) = (tmp_path / "cache").rglob("*.jsonl")
    kept.write_bytes(CONTENT.replace(b"tea", b"oil"))  # changed since
    with pytest.raises(InputError, match="cannot be reached"):
        pairs.load(home, ["en"])


def test_a_cut_connection_goes_on_where_it_stopped(home, tmp_path):
    """Each answer brings 100 bytes; the third try leaves the rest to the next command."""
    Home.kind = "cut"
    with pytest.raises(InputError, match="goes on from there") as told:
        pairs.load(home, ["en"])
    assert "\n" not in str(told.value)
    assert [part for _, part in Home.asked] == [None, "bytes=100-", "bytes=200-"]
    (part,) = (tmp_path / "cache").rglob("*.part")
    assert part.read_bytes() == CONTENT[:300]
    Home.kind, Home.asked = "whole", []
    assert len(pairs.load(home, ["en"])[0]) == 2
    assert Home.asked[0][1] == "bytes=300-" and not list((tmp_path / "cache").rglob("*.part"))


def test_a_server_that_begins_again_is_read_from_the_beginning(home):
    Home.kind = "no-range"
    assert len(pairs.load(home, ["en"])[0]) == 2 and len(Home.asked) == 2


def test_another_file_is_refused_and_not_kept(home, tmp_path):
    Home.kind = "another"
    with pytest.raises(InputError, match="not the file that its authors published"):
        pairs.load(home, ["en"])
    with pytest.raises(InputError, match="HTTP 404"):
        pairs.load(home, ["es"])
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_copy_that_is_not_the_published_one_is_told(home, tmp_path):
    copy = tmp_path / "mine"
    copy.mkdir()
    (copy / "Ége_en.jsonl").write_bytes(CONTENT)
    fetch.take_from(copy)
    items, notes = pairs.load(home, ["en"])
    assert not any("not the file" in note for note in notes) and not Home.asked
    assert items[0].source.endswith("@0123456789ab")
    (copy / "Ége_en.jsonl").write_bytes(CONTENT.replace(b"tea", b"oil"))
    items, notes = pairs.load(home, ["en"])
    assert any("not the file of commit 0123456789ab" in note for note in notes)
    assert not items[0].source.endswith("@0123456789ab")
    fetch.take_from(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such folder"):
        pairs.load(home, ["en"])
    fetch.take_from(tmp_path)
    with pytest.raises(InputError, match=r"no data/Ége_en.jsonl"):
        pairs.load(home, ["en"])


# --- a run


def letters(items, out):
    """Recorded replies of a model that always chooses the stereotype, by letter or by text."""
    found = []
    for number, request in enumerate(plan(items, ["letters"], ["free"], "all", [], 0)):
        one = next(item for item in items if item.id == request.statement)
        order = tuple(map(int, request.options))
        frame, at = frames.frames(one.lang)["letters"], one.extra["target"]
        mark = frames.said(frame, one, order, at)
        said = mark if number % 2 else f"Cevap: {mark}) {one.extra['options'][at]}"
        found.append({"prompt": request.messages[-1]["content"], "response": said})
    out.write_text(lines(*found), "utf-8")
    return str(out)


def test_a_run_in_a_language_that_is_not_read(tmp_path):
    """Turkish: asked in Turkish, read by mark and text; version and licence in the signature."""
    calm = {"question_polarity": "nonneg", "question": "Who was careful?"}
    rows = [asked(), asked(example_id=1, **calm)]
    source, told = described(tmp_path, "mbbq", {"tr": {"data/Age_tr.jsonl": lines(*rows)}}), []
    model = letters(pairs.load(source)[0], tmp_path / "replies.jsonl")
    ask = Ask(model=model, data=source, langs=["Turkish"], engine="replay", out=tmp_path / "run")
    found = run("choices", dataclasses.replace(ask, note=told.append))
    assert all("harfini" in one.messages[-1]["content"] for one in found.requests())
    scores = {s.metric: s for s in score([found.folder], metrics=["accuracy", "bbq-bias"])}
    assert (scores["accuracy"].value, scores["bbq-bias"].value) == (0.0, 1.0)
    assert scores["accuracy"].n == 12 and not scores["accuracy"].excluded
    assert "|data_licence:none|" in scores["accuracy"].signature
    assert found.spec.data_citation.startswith("Neplenbroek")
    assert found.spec.data_version.startswith(sets.load(source).hash)
    assert any("tr: replies are read by the marks" in str(line) for line in told)
    card = " ".join((found.folder / "README.md").read_text("utf-8").split())
    assert "no licence is published" in card and "Neplenbroek" in card


def test_log_probabilities_need_no_file_of_the_language(tmp_path):
    """Any code: context, question and options, and no word of ours."""
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(asked()), "utf-8")
    found = run("logprob", Ask(data=str(path), langs=["sq"], out=tmp_path / "run"))
    (first, *_) = found.requests()
    assert first.lang == "sq" and found.outcomes()["chosen"].notna().all()
    assert first.messages[0]["content"].endswith("- The grandfather")
    with pytest.raises(InputError, match="no wording to ask choices in 'sq'"):
        planned("choices", Ask(model="m", data=str(path), langs=["sq"], engine="replay"))


def test_yes_no_stops_where_nothing_is_read():
    """A language of choices is none of yes/no: its sentences would be read as English."""
    with pytest.raises(InputError, match="unknown language 'tr'"):
        planned("yesno", Ask(langs=["tr"]))
    assert packs.tier("tr") == "chosen" and packs.tier("kk-x-ru") == "read"
    assert packs.tier("sq") == "scored" and packs.any_code("Türkçe") == "tr"


@pytest.mark.parametrize("lang", registry.names(packs.CHOSEN))
def test_a_chosen_language_has_its_frames_and_words(lang):
    assert {"bare", "letters", "numbers"} <= frames.frames(lang).keys()
    assert choices.wording(lang).unknown and packs.load_language(lang).review.startswith("awaiting")
    for word in choices.wording(lang).unknown:
        assert phrasing.unknown(lang, ("A1", word, "B1")) == 1
