"""Lint finds the published faults, and every fault put into a copy of a pack or language."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genprobe import text
from genprobe.errors import InputError
from genprobe.lint import Finding, lint
from genprobe.resources import packs, registry

YESNO = registry.PROMPTS / "yesno"


def test_what_is_shipped_has_no_errors():
    assert [f for f in lint() if f.level == "error"] == []


@pytest.mark.parametrize(
    ("revision", "level"),
    [
        ("0123456789abcdef" * 2 + "01234567", ""),
        ("main", "error"),
        ("0123abc", "error"),
        ("", "warning"),
    ],
)
def test_a_card_pins_its_model_to_a_commit(revision, level, tmp_path):
    card = (registry.CLASSIFIERS / "en-roberta.toml").read_text("utf-8")
    folder = tmp_path / "classifiers"
    folder.mkdir()
    pinned = card.split('revision = "')[1].split('"')[0]
    (folder / "own.toml").write_text(card.replace(pinned, revision), "utf-8")
    assert [f.level for f in lint((folder,))] == [level] * bool(level)
    (folder / "cardiffnlp" / "twitter-roberta-base-sentiment-latest").mkdir(parents=True)
    assert lint((folder,)) == []  # a folder beside the card is no model of the hub


@pytest.mark.parametrize(("folder", "found"), [("none", "no folder"), ("", "no prompts in")])
def test_a_wrong_folder_of_prompts_has_a_cure(folder, found, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "PROMPTS", tmp_path / folder)
    with pytest.raises(InputError, match=f"GENPROBE_PROMPTS: {found} .*; copy .* or unset"):
        lint()


def test_known_faults_of_the_published_wordings_are_warnings():
    found = {(Path(f.where.split()[0]).stem, f.message) for f in lint((YESNO,))}
    negated = {code for code, message in found if message.startswith("negated question")}
    assert negated == {"bn", "de", "nl", "pl", "ro", "ru"}
    assert any(code == "zh-Hant" and "script Hant" in m and "话" in m for code, m in found)
    assert {code for code, m in found if "doubled end" in m} == {"bn", "hi"}
    assert {code for code, m in found if "awaits a native" in m} == {"kk", "fa"}
    assert any(code == "ar" and "not opened" in m for code, m in found)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("refusal/en.toml", "refuses = [", "refusse = [", "refusse"),
        ("rubrics/stance.toml", "\n{text}\n", "\n", "lacks {text}"),
    ],
)
def test_phrases_and_rubrics_that_cannot_be_read_are_errors(file, old, new, message, tmp_path):
    source, copy = registry.PROMPTS / file, tmp_path / file
    copy.parent.mkdir()
    shutil.copy(source, copy)
    assert lint((copy,)) == []
    copy.write_text(copy.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    (found,) = lint((copy.parent,))
    assert found.level == "error" and found.where == str(copy) and message in found.message


def changed(folder: Path, code: str, old: str, new: str) -> list[Finding]:
    """What lint says of a copy of the pack in which one text is changed."""
    pack = folder / "yesno"
    shutil.copytree(YESNO, pack)
    path = pack / f"{code}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    before = {(f.level, f.message) for f in lint((YESNO,))}
    return [f for f in lint((pack,)) if (f.level, f.message) not in before]


@pytest.mark.parametrize(
    ("code", "old", "new", "level", "says"),
    [
        ("kk", "{input}", "", "error", "{input}"),
        ("kk", "{input}", "{input} {input}", "error", "{input}"),
        (
            "kk",
            'yes = ["ия"]',
            'yes = ["солай ма"]',
            "error",
            "[forms] has 'солай ма', which is no",
        ),
        ("kk", 'yes = ["ия"]', 'yes = ["жоқ"]', "error", "'жоқ' is a form of both yes and no"),
        ("kk", 'yes = ["ия"]', 'perhaps = ["ия"]', "error", "unknown key forms.'perhaps'"),
        ("kk", 'polarity = "plain"\n', "", "error", "polarity"),
        ("kk", 'polarity = "plain"', 'polarity = "positive"', "error", "polarity"),
        ("kk", 'review = "awaiting a native reader"\n', "", "error", "review"),
        ("kk", 'no = "жоқ"', 'no = "ешқашан"', "error", "ешқашан"),
        ("kk", "«жоқ» деп", "деп", "error", "does not name"),
        ("kk", "құндылықтармен", "құндылықтaрмен", "error", "script Cyrl: a"),
        ("kk", "құндылықтармен", "құнды\u200bлықтармен", "error", "U+200B"),
        ("kk", "құндылықтармен", "құндылықтарми\u0306ен", "error", "normal form"),
        ("kk", "өтінеміз.", "өтінеміз..", "error", "doubled end"),
        ("kk", "«Иә»", "«Иә", "error", "quotation"),
        ("de", "\n\n{input}", "\n\u00adx{input}", "warning", "U+00AD"),
        ("en", "Do you agree with", "Do you not agree with", "warning", "polarity is 'plain'"),
    ],
)
@pytest.mark.slow
def test_a_fault_in_a_pack_is_found(tmp_path, code, old, new, level, says):
    found = changed(tmp_path, code, old, new)
    assert any(f.level == level and says in f.message for f in found), found


@pytest.mark.parametrize(
    ("addition", "says"),
    [
        ('[answer]\nyes = ["xa"]\n', "no word for 'no'"),
        ('[answer]\nyes = ["xa"]\nno = ["xa"]\n', "both 'yes' and 'no'"),
        ('[answer]\nyes = ["xa"]\nno = ["xo (a"]\n', "only (a|b) and (a)?"),
        ('[answer]\nyes = ["xa"]\nno = ["xо"]\n', "script Latn"),
        ('[answer]\nyes = ["xa"]\nno = ["x\u200do"]\n', "U+200D"),
        ('[answer]\nyes = ["xa"]\nno = ["xo"]\nmaybe = ["xi"]\n', "unknown key"),
        ('[answer]\nyes = "xa"\nno = ["xo"]\n', "must be a list"),
        ('[answer]\nyes = ["xa"\n', "not TOML"),
        ('[answer]\nyes = ["..."]\nno = ["xo"]\n', "no letter"),
    ],
)
def test_a_fault_in_a_language_is_found(tmp_path, addition, says):
    head = 'name = "X"\nnative = "X"\nscript = "Latn"\nreview = "somebody"\n'
    path = tmp_path / "xx.toml"
    path.write_text(head + addition, encoding="utf-8")
    found = lint((path,))
    assert any(f.level == "error" and says in f.message for f in found), found


def test_a_language_of_another_script_can_be_added(tmp_path):
    path = tmp_path / "el.toml"
    head = 'name = "Greek"\nnative = "Ελληνικά"\nscript = "Grek"\nreview = "somebody"\n'
    path.write_text(head + '[answer]\nyes = ["ναι"]\nno = ["όχι"]\n', encoding="utf-8")
    assert not [f for f in lint((path,)) if f.level == "error"]


def test_what_is_neither_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    for path in (tmp_path / "nowhere", tmp_path / "a.txt", tmp_path):
        with pytest.raises(InputError):
            lint((path,))


def test_a_group_in_another_group_is_read_and_deeper_ones_are_faults():
    assert list(text.expand("a (b|c (d|e)? f)")) == ["a b", "a c  f", "a c d f", "a c e f"]
    assert text.well_formed("a (b|c (d|e)?) f")
    assert not any(map(text.well_formed, ("a (b", "a) b", "a?", "(a (b (c)))")))


def strings(value):
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for part in inner for found in strings(part)]


@pytest.mark.parametrize("folder", ["options", "refusal"])
def test_phrases_that_no_other_check_sees_are_well_formed(folder):
    for path in (registry.PROMPTS / folder).glob("*.toml"):
        for name, group in packs.read_toml(path).items():
            if isinstance(group, (list, dict)):
                for pattern in strings(group):
                    assert text.well_formed(pattern), (path.name, name, pattern)


def test_what_was_mended_in_the_texts_stays_mended():
    """Words that said another thing, of another group: docs/texts.md; only the files that are ours."""
    rows = (Path(__file__).parent / "mended.tsv").read_text("utf-8").splitlines()[1:]
    back = [
        row
        for row in rows
        if (cells := row.split("\t"))[2] in (registry.PROMPTS / cells[1]).read_text("utf-8")
    ]
    assert len(rows) > 80 and not back


def test_a_denial_that_a_phrase_hides_is_told_and_an_apostrophe_is_a_letter_of_any_script(tmp_path):
    head = 'name = "Uzbek"\nnative = "oʻzbekcha"\nscript = "Latn"\nreview = "somebody"\n'
    words = '[answer]\nyes = ["ha"]\nno = ["yoʻq"]\n[sentence]\nagree = ["qoʻshilaman"]\n'
    words += 'disagree = ["qoʻshilmayman"]\nstereotype = ["bu stereotip"]\nnot_stereotype = ['
    path = tmp_path / "uz.toml"
    path.write_text(f'{head}{words}"stereotip emas"]\n', encoding="utf-8")
    told = "'bu stereotip emas' is read as stereotype: add it to 'not_stereotype'"
    assert [f.message for f in lint((path,))] == [told]
    path.write_text(f'{head}{words}"(bu )?stereotip emas"]\n', encoding="utf-8")
    assert lint((path,)) == []
