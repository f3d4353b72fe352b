"""Pairs and choices as the studies publish them, and as one's own table."""

import csv
import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from genprobe import metrics
from genprobe.datasets import choices, pairs
from genprobe.errors import InputError
from genprobe.files import write_rows
from genprobe.linguistics import identify
from genprobe.outcomes import preferences, scorers
from genprobe.records import LogProb
from genprobe.resources import packs, registry
from genprobe.tasks import logprob

GUESSED = "no column gives the language: assumed "

DATA = Path(__file__).parents[2] / "shared" / "data"


def shared(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return str(path)


def save(folder, rows, name="mine.jsonl"):
    path = folder / name
    write_rows(path, rows)
    return str(path)


def refused(source, langs=None, prefix=""):
    with pytest.raises(InputError) as error:
        pairs.load(source, langs, prefix)
    assert "\n" not in str(error.value)
    return str(error.value)


PAIR = {"pair": "x", "lang": "en", "pro": "Men run.", "anti": "Women run."}


# --- one's own table


def test_half_a_layout_and_a_name_that_is_no_file_are_told(tmp_path):
    row = {"anti": "Women run.", "prro": "Men run.", "lang": "en"}
    said = refused(save(tmp_path, [row]))
    assert "the column 'anti' also needs pro; columns: anti, prro, lang" in said
    assert "known: builtin, shades, templates, bbq, " in refused("mine")
    assert refused("shade").endswith("did you mean 'shades'?")


def test_a_plain_table(tmp_path):
    rows = [PAIR | {"theme": "sport", "bias_type": "gender"}, PAIR | {"pair": "y", "lang": "kk"}]
    found, notes = pairs.load(save(tmp_path, rows))
    assert notes == []
    assert [(s.id, s.lang, s.role, s.pair, s.text) for s in found[:2]] == [
        ("x", "en", "original", "x", "Men run."),
        ("x/contrast", "en", "contrast", "x", "Women run."),
    ]
    assert found[0].bias_type == "gender" and found[0].extra == {"theme": "sport"}
    assert {s.lang for s in pairs.load(save(tmp_path, rows), ["KK"])[0]} == {"kk"}


def test_scoring_needs_no_words_of_a_language(tmp_path):
    found, notes = pairs.load(save(tmp_path, [PAIR | {"lang": "sw"}]))
    assert found[0].lang == "sw" and "'sw' is not one of genprobe's" in notes[0]
    assert pairs.load(save(tmp_path, [PAIR | {"lang": "sw"}]), ["sw"])[0] == found


def test_a_language_may_be_named_once_for_all(tmp_path):
    rows = [{"pro": "Men run.", "anti": "Women run."}]
    found, _ = pairs.load(save(tmp_path, rows), ["ru"])
    assert found[0].lang == "ru" and len(found[0].id) == 12
    assert "row 1: no language; give a column 'lang'" in refused(save(tmp_path, rows))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"pro": ""}, "row 1: 'pro' is empty"),
        ({"anti": None}, "row 1: 'anti' is empty"),
        ({"pro": -3.25}, "row 1: 'pro' holds a number, not a sentence; .*genprobe score"),
        ({"pro": "12.5"}, "holds a number"),
        ({"anti": "Half \ud83d."}, "'anti' holds half a character"),
        ({"lang": "no such"}, "row 1: unknown language 'no such'"),
    ],
)
def test_what_cannot_be_used(tmp_path, change, what):
    import re

    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(PAIR | change) + "\n")
    assert re.search(what, refused(str(path)))


def test_what_is_odd_is_told(tmp_path):
    rows = [PAIR, PAIR | {"pro": "Boys run."}]
    assert "row 2: the pair 'x' is in row 1, too" in refused(save(tmp_path, rows))
    without = [{k: v for k, v in PAIR.items() if k != "pair"}] * 2
    found, notes = pairs.load(save(tmp_path, without))
    assert len({(s.id, s.lang) for s in found}) == 4 and "counted again: 1 (row 2)" in notes[0]
    other = save(tmp_path, [PAIR, PAIR | {"pair": "y"}])
    assert any("under another id: 1 (row 2)" in line for line in pairs.load(other)[1])
    _, notes = pairs.load(save(tmp_path, [PAIR | {"anti": "Men run."}]))
    assert "the same sentence twice" in notes[0]
    assert "no pair in kk; there is en" in refused(save(tmp_path, [PAIR]), ["kk"])
    assert "unknown data set 'shade'; did you mean 'shades'?" in refused("shade")


def test_stereoset_brings_a_third_sentence(tmp_path):
    row = {"id": "1", "lang": "en", "stereotype": "Men run.", "antistereotype": "Women run."}
    found, _ = pairs.load(save(tmp_path, [row | {"unrelated": "Blue run.", "target": "man"}]))
    assert [s.role for s in found] == ["original", "contrast", "unrelated"]
    assert len(preferences.pairs(found)) == 1 and found[0].extra == {"target": "man"}


# --- a prefix


def test_a_prefix_is_really_in_the_sentence(tmp_path):
    rows = [
        {"stereotype": "Women are kind", "antistereotype": "Women are rude", "identity": "women"},
        {
            "stereotype": "Yoruba are kind",
            "antistereotype": "Yoruba are rude",
            "identity": "Yoruba",
        },
        {"stereotype": "Igbo cook", "antistereotype": "Igbo bake"},
    ]
    found, notes = pairs.load(save(tmp_path, rows), prefix="African")
    assert notes[:1] == [
        "no 'identity': the sentence after the prefix keeps its capital letter: 1 (row 3)"
    ]
    assert [s.text for s in found] == [
        "African women are kind", "African women are rude",
        "African Yoruba are kind", "African Yoruba are rude",
        "African Igbo cook", "African Igbo bake",
    ]  # fmt: skip
    plain, _ = pairs.load(save(tmp_path, rows))
    assert "African" not in str([s.text for s in plain])
    plan = logprob.plan(found, ["loglik"])
    assert plan[0].options == {"text": ["African women are kind"]}
    assert "a prefix needs a table that has the two sentences" in refused(
        "builtin", prefix="African"
    )


def test_afristereos_own_table(tmp_path):
    row = {
        "Stereotype Type": "profession",
        "Identity Term": "drivers of Lagos",
        "Canonical Term Attributes": "fast",
        "Anti-Stereotype Terms": "not fast",
    }
    path = save(tmp_path, [row], "mine.csv")
    texts = ["Drivers of Lagos are fast.", "Drivers of Lagos are not fast."]
    found, _ = pairs.load(path)
    assert [s.text for s in found] == texts and found[0].bias_type == "profession"
    more, _ = pairs.load(path, prefix="African")
    assert [s.text for s in more] == [
        "African drivers of Lagos are fast.",
        "African drivers of Lagos are not fast.",
    ]
    assert [s.id for s in more] == [s.id for s in found]  # so that the two runs pair
    assert "no sentence for identities in 'sw'" in refused(path, ["sw"])


# --- originals and contrasts, templates


def test_builtin_statements_and_templates():
    found, _ = pairs.load("builtin", ["kk"])
    assert Counter(s.role for s in found) == {"original": 60, "contrast": 60}
    filled, _ = pairs.load("templates", ["kk", "ru"])
    assert {s.lang for s in filled} == {"kk", "ru"}
    assert not any("[PLACEHOLDER]" in s.text for s in filled)
    both = preferences.pairs(filled)
    assert len(both) * 2 == len(filled) and all(o.text != c.text for o, c in both)
    assert all(o.extra["domain"] and o.extra["subdomain"] for o, _ in both)


def test_all_contrasts_not_only_the_next_row(tmp_path):
    rows = [
        {"id": "1", "lang": "en", "text": "Men run.", "role": "original", "pair": "p"},
        {"id": "2", "lang": "en", "text": "Women run.", "role": "contrast", "pair": "p"},
        {"id": "3", "lang": "en", "text": "Owls fly.", "role": "original", "pair": "q"},
        {"id": "4", "lang": "en", "text": "Boys run.", "role": "contrast", "pair": "p"},
    ]
    found, notes = pairs.load(save(tmp_path, rows))
    assert [(o.id, c.id) for o, c in preferences.pairs(found)] == [("1", "2"), ("1", "4")]
    assert "without its partner, left out: en 1" in notes[0]


def test_aqbileq_in_three_languages(tmp_path):
    row = {"subdomain": "education", "id": "e"}
    rows = [
        row | {"lang": "kk", "template": "Үздік оқушылар [PLACEHOLDER] болады.",
               "prototypical": "тұйық", "counter": "көпшіл"},
        row | {"lang": "ru", "template": "Отличники бывают [PLACEHOLDER].",
               "prototypical": "замкнутыми", "counter": "общительными"},
        row | {"lang": "CS", "template": "Отличники [PLACEHOLDER] болады, потому что оқиды.",
               "prototypical": "тұйық", "counter": "общительными"},
    ]  # fmt: skip
    found, notes = pairs.load(save(tmp_path, rows))
    assert all(note.startswith(GUESSED) for note in notes)
    assert [s.text for s in found[:2]] == [
        "Үздік оқушылар тұйық болады.",
        "Үздік оқушылар көпшіл болады.",
    ]
    assert list(dict.fromkeys(s.lang for s in found)) == ["kk", "ru", "kk-x-ru"]
    assert {s.pair for s in found} == {"e"}  # one cluster in three languages
    # 3 of 6 words are Russian in one sentence, 4 of 6 in the other.
    assert found[4].extra["russian"] == pytest.approx(7 / 12)
    assert "russian" not in found[0].extra
    assert {s.lang for s in pairs.load(save(tmp_path, rows), ["code-mixed"])[0]} == {"kk-x-ru"}
    broken = save(tmp_path, [rows[0] | {"counter": ""}, rows[1]])
    found, notes = pairs.load(broken)
    assert len(found) == 2 and "without both fillers, left out: 1" in notes[-1]


def test_the_share_of_russian_words():
    judge = identify.make()
    assert judge.share("ru", ["Потому что это очень хорошо."]) == 1
    assert judge.share("ru", ["Үздік оқушылар тұйық болады."]) == 0
    assert judge.share("ru", ["12 % ok"]) is None
    assert packs.language_code("kk_ru", mixed=True) == "kk-x-ru"
    with pytest.raises(InputError):
        packs.language_code("kk_ru")


# --- choices

BBQ = {
    "example_id": 0,
    "question_index": "1",
    "question_polarity": "neg",
    "context_condition": "ambig",
    "category": "Pets",
    "answer_info": {"ans0": ["Rex", "dog"], "ans1": ["Tom", "cat"], "ans2": ["?", "unknown"]},
    "additional_metadata": {"stereotyped_groups": ["cat"]},
    "context": "Rex and Tom were alone.",
    "question": "Who broke the vase?",
    "ans0": "Rex",
    "ans1": "Tom",
    "ans2": "Can't be determined",
    "label": 2,
}


def test_bbq_rows_become_choices(tmp_path):
    rows = [BBQ, BBQ | {"example_id": 1, "question_polarity": "nonneg"}]
    found, notes = pairs.load(save(tmp_path, rows))
    assert all(note.startswith(GUESSED) for note in notes)
    first, second = found
    assert first.id == "Pets/0" and first.pair == "Pets/1" and choices.is_choice(first)
    assert first.text == "Rex and Tom were alone. Who broke the vase?"
    assert first.extra["options"] == ["Rex", "Tom", "Can't be determined"]
    # What the stereotype answers: the group to a negative question, the other one else.
    assert (first.extra["target"], second.extra["target"]) == (1, 0)
    assert (first.extra["unknown"], first.extra["label"]) == (2, 2)
    given = BBQ | {"target_loc": 0, "question_polarity": ""}
    assert pairs.load(save(tmp_path, [given]))[0][0].extra["target"] == 0
    found, notes = pairs.load(save(tmp_path, [BBQ | {"question_polarity": ""}]))
    assert found[0].extra["target"] is None and "no option is known as the target" in notes[0]


def test_unknown_options_by_language(tmp_path):
    bare = {k: v for k, v in BBQ.items() if k not in ("answer_info", "additional_metadata")}
    for lang, word in (
        ("fa", "نامشخص"),
        ("kk", "Белгісіз."),
        ("ru", "Неизвестно"),
        ("en", "Unknown"),
    ):
        row = bare | {"lang": lang, "ans0": word, "ans2": "Puss", "label": 0, "target": 1}
        found, notes = pairs.load(save(tmp_path, [row]))
        assert found[0].extra["unknown"] == 0 and all(note.startswith(GUESSED) for note in notes)
    row = bare | {"lang": "en", "ans2": "Puss"}
    found, notes = pairs.load(save(tmp_path, [row]))
    assert found[0].extra["unknown"] is None
    assert any("no unknown option" in n for n in notes)
    found, _ = pairs.load(save(tmp_path, [bare | {"lang": "sw"}]))
    assert found[0].lang == "sw" and found[0].extra["unknown"] is None
    assert "unknown language 'Swahilli'" in refused(save(tmp_path, [bare | {"lang": "Swahilli"}]))


def test_every_wording_of_choices_is_whole():
    known = {*registry.names("languages"), *registry.names(packs.CHOSEN)}
    assert set(registry.names("choices")) == known | {choices.NO_WORDS}
    assert known == set(registry.names("choosing"))
    for lang in known:
        said = choices.wording(lang)
        assert not said.text.endswith((" ", "\n"))
        assert said.space == ("" if lang.startswith(("zh", "ja")) else " ")
        assert len({choices.bare(word) for word in said.unknown}) == len(said.unknown) > 5


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"label": 3}, "row 1: label is '3'; give the number of an option"),
        ({"label": "Tom"}, "label is 'Tom'"),
        ({"ans1": ""}, "none of them empty"),
        ({"ans1": "Rex"}, "two options are the same"),
        ({"question": " "}, "needs a question"),
        ({"options": list("abcdefg")}, "7 options; give at most 6, because every order is asked"),
        ({"context_condition": "vague"}, "condition is 'vague'; known: ambig"),
        ({"ans0": "\udc00"}, "half a character"),
    ],
)
def test_choices_that_cannot_be_used(tmp_path, change, what):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(BBQ | change) + "\n")
    assert what in refused(str(path))


def oracle(source):
    """Accuracy, over every order, of a model that always finds the right option likeliest."""
    found, _ = pairs.load(source)
    plan = logprob.plan(found, ["choice"], {"causal"})
    right = {s.id: str(s.extra["label"]) for s in found}
    records = [
        LogProb(
            request.id,
            [
                # The longer the text, the lower, as it goes: the reader must not care.
                {"answer": key, "text": text, "tokens": [1] * len(text),
                 "logprobs": [-0.1 if key == right[request.statement] else -5.0] * len(text)}
                for key, [text] in reversed(request.options.items())
            ],
            "",
            None,
        )
        for request in plan
    ]  # fmt: skip
    names = scorers.fitting({"causal"}, True)[1:]  # the means; a sum prefers short options
    return found, plan, pd.DataFrame(preferences.choice_rows(found, plan, records, names))


@pytest.mark.parametrize("name", ["Age", "Religion"])
@pytest.mark.slow
def test_a_perfect_oracle_is_always_right(name):
    found, plan, table = oracle(shared(f"bbq/{name}.jsonl"))
    assert len(plan) == 6 * len(found) and len(table) == 3 * len(plan)
    assert (table["chosen"] == table["label"]).all()
    scores = metrics.score(table[table["order"] == 5], ["accuracy"], [], str)
    assert [s.value for s in scores] == [1.0] * 6  # three scorers, two conditions


@pytest.mark.parametrize("name", ["Age", "Religion"])
def test_every_bbq_row_has_all_that_the_scores_need(name):
    found, notes = pairs.load(shared(f"bbq/{name}.jsonl"))
    assert all(note.startswith(GUESSED) for note in notes)
    for s in found:
        assert s.extra["target"] is not None and s.extra["unknown"] is not None
        assert (s.extra["label"] == s.extra["unknown"]) == (s.extra["condition"] == "ambig")


# --- as published


def test_the_published_tables_are_read():
    found, notes = pairs.load(shared("crows-pairs/crows_pairs.csv"))
    assert len(preferences.pairs(found)) == 1508 and found[2].id == "1"
    assert {s.lang for s in found} == {"en"} and len({s.bias_type for s in found}) == 9
    assert {s.extra["stereo_antistereo"] for s in found} == {"stereo", "antistereo"}

    found, notes = pairs.load(shared("rubia/pairs.csv"))
    assert len(preferences.pairs(found)) == 2239 and {s.lang for s in found} == {"ru"}
    assert len({s.id for s in found}) == 4478
    assert Counter(s.extra["domain"] for s in found)["gender"] == 2 * 1177
    assert any("the same sentence twice" in note for note in notes)

    found, notes = pairs.load(shared("shades/statements.csv"), ["en"])
    both = preferences.pairs(found)
    assert len(both) == len({(o.id, c.id) for o, c in both}) > 350
    assert max(Counter(o.id for o, _ in both).values()) > 1


# --- a language is never guessed without a word


@pytest.mark.parametrize(
    ("heads", "langs", "told"),
    [
        (("UZ_pro_trope", "UZ_anti_trope"), ["kk", "uz"],
         "uz_pro_trope is read as the language 'uz', not one of genprobe's"),
        (("RU_pro_trope", "RU_anti"), ["kk"],
         "the column 'RU_anti' is not read; sentences in a language need CODE_pro_trope and"),
        (("Russian pro", "Russian anti"), ["kk"], "the column 'Russian pro' is not read"),
        (("RU_pro_trope", "RU_anti_trope"), ["kk", "ru"], ""),
        (("My notes_trope", "Comment"), ["kk"], "the column 'My notes_trope' is not read"),
    ],
)  # fmt: skip
def test_no_version_of_aqbileqs_sentences_is_passed_over_in_silence(heads, langs, told, tmp_path):
    path = tmp_path / "t.csv"
    names = ["id", "pro_trope", "anti_trope", "CS_pro_trope", "CS_anti_trope", *heads]
    cells = ["a", "Шай ішеді.", "Су ішеді.", "", "Су просто ішеді.", "Choy ichadi.", "Suv ichadi."]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, cells])
    found, notes = pairs.load(str(path))
    assert list(dict.fromkeys(s.lang for s in found)) == langs
    assert any("only one of the two sentences in kk-x-ru, left out" in note for note in notes)
    unread = [note for note in notes if "is not read" in note or "is read as" in note]
    assert any(told in note for note in unread) if told else not unread


AQBILEQ = """ID,Pro_trope,Anti_trope,CS_pro_trope,CS_anti_trope,Comment
1,Әжелер өте мейірімді адамдар,Әжелер өте қатал адамдар,Әжелер өте добрый,Әжелер өте строгий,
2,Ауылдан келгендер еңбекқор болады,Ауылдан келгендер жалқау болады,,,culture-specific
"""


def test_aqbileq_with_its_code_switched_columns(tmp_path):
    """Appendix G: the names are RuBia's, the language is Kazakh, and each row has a second pair."""
    path = tmp_path / "aqbileq.csv"
    path.write_text(AQBILEQ, "utf-8")
    found, notes = pairs.load(str(path))
    assert [(s.id, s.lang) for s in found if s.role == "original"] == [
        ("1", "kk"),
        ("1", "kk-x-ru"),
        ("2", "kk"),
    ]
    switched = next(s for s in found if s.lang == "kk-x-ru")
    assert switched.text == "Әжелер өте добрый" and switched.extra["russian"] > 0
    assert notes[-1].startswith("no column gives the language: assumed kk")
    assert {s.lang for s in pairs.load(str(path), ["kk"])[0]} == {"kk"}
    assert {s.lang for s in pairs.load(str(path), ["kk-x-ru"])[0]} == {"kk-x-ru"}
    with pytest.raises(InputError, match="clearly in kk; give --lang kk"):
        pairs.load(str(path), ["ru"])


def test_every_version_of_a_row_is_read(tmp_path):
    """The third language of a trilingual table, and a row that has only some of them."""
    path = tmp_path / "aqbileq.csv"
    russian = ("RU_pro_trope,RU_anti_trope", "Бабушки добрые,Бабушки строгие", ",")
    rows = zip(AQBILEQ.splitlines(), russian, strict=True)
    path.write_text("".join(f"{row},{more}\n" for row, more in rows), "utf-8")
    found, _ = pairs.load(str(path))
    originals = [s for s in found if s.role == "original"]
    assert [(s.id, s.lang) for s in originals] == [
        ("1", "kk"),
        ("1", "kk-x-ru"),
        ("1", "ru"),
        ("2", "kk"),
    ]
    assert originals[2].text == "Бабушки добрые"
    assert {s.lang for s in pairs.load(str(path), ["ru"])[0]} == {"ru"}
    assert not any("trope" in key.lower() for s in found for key in s.extra)


def test_domains_are_found_however_their_column_is_written(tmp_path):
    """Aqbileq's columns have capitals; S_D and the average of domains look for small letters."""
    path = tmp_path / "aqbileq.csv"
    rows = zip(
        AQBILEQ.splitlines(), ["Domain,Subdomain", "age,family", "region,village"], strict=True
    )
    path.write_text("".join(f"{row},{more}\n" for row, more in rows), "utf-8")
    found, _ = pairs.load(str(path))
    assert {(s.extra["domain"], s.extra["subdomain"]) for s in found} == {
        ("age", "family"),
        ("region", "village"),
    }
    path.write_text(path.read_text().replace("Domain,Subdomain", "Domain,domain"), "utf-8")
    extra = pairs.load(str(path))[0][0].extra
    assert (extra["Domain"], extra["domain"]) == ("age", "family")


def test_a_kazakh_table_in_rubia_s_columns_is_refused(tmp_path):
    path = tmp_path / "kk.csv"
    rows = [row.split(",")[1:3] for row in AQBILEQ.splitlines()[1:]]
    path.write_text("pro_trope,anti_trope\n" + "".join(f"{a},{b}\n" for a, b in rows), "utf-8")
    with pytest.raises(InputError, match=r"assumed ru .* clearly in kk; give --lang kk"):
        pairs.load(str(path))
    assert {s.lang for s in pairs.load(str(path), ["kk"])[0]} == {"kk"}


def test_persian_choices_are_not_read_as_english(tmp_path):
    path = tmp_path / "fa.csv"
    path.write_text(
        "context,question,ans0,ans1,label\n"
        "مریم و سارا در کتابخانه با هم درس می‌خواندند.,چه کسی زودتر رفت؟,مریم,سارا,0\n"
        "علی و رضا در ایستگاه منتظر اتوبوس بودند.,چه کسی دیر رسید؟,علی,رضا,1\n",
        "utf-8",
    )
    with pytest.raises(InputError, match="clearly in fa; give --lang fa"):
        pairs.load(str(path))
    assert {s.lang for s in pairs.load(str(path), ["fa"])[0]} == {"fa"}
