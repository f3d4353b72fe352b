"""The page's own words: every key in every language, with the same slots."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import genprobe
from genprobe import metrics
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.render import findings
from genprobe.report import speech
from genprobe.resources import page, registry

CODES = registry.names("page")
# Phrases that the page puts together of several pieces.
COMPOSED = {
    f"phrases.{key}"
    for key in (
        *("first_look", "harm", "harm_models", "missing_care", "not_endorsed", "no_script"),
        *("left_out_scorers", "cut_replies", "cut_thoughts", "cut_care", "cut_rank_care"),
        *("this_judge", "this_classifier", "few_templates", "few_replies", "sides_care"),
        *("sides_second_care", "judge_care", "judge_here_care", "turned_most_care", "show_read"),
    )
}
# Texts that may be as in English: without words, or the same word in some language.
SAME = {
    "finding.left_out", "page.details", "phrases.signature", "phrases.signatures", "phrases.points",
    "phrases.template", "phrases.by", "phrases.page", "browser.sentiment", "browser.question",
    "browser.persona", "phrases.no", "phrases.neutral", "phrases.rate", "phrases.quote", "phrases.holm",
}  # fmt: skip


def test_the_languages_are_those_that_were_asked_for():
    assert set(CODES) == {"en", "kk", "ru", "fa", "ar", "hi", "es", "fr", "de", "zh"}


@pytest.mark.parametrize("code", CODES)
def test_every_key_is_there_with_the_same_slots_and_nobody_is_said_to_have_read_it(code):
    words, english = page.load(code), page.load("en")  # which refuses other keys and slots
    texts = {k: v for k, v in words.texts.items() if not k.startswith(page.METRICS)}
    assert texts.keys() == english.texts.keys()
    assert [term.key for term in words.terms] == [term.key for term in english.terms]
    assert words.unread is (code != "en") and words.direction in ("ltr", "rtl")
    same = [key for key, text in texts.items() if text == english.texts[key]]
    assert code == "en" or set(same) <= SAME, same


@pytest.mark.parametrize("code", [code for code in CODES if code != "en"])
def test_every_metric_has_its_words_and_a_new_one_is_asked_for(tmp_path, code):
    assert not [
        f
        for f in genprobe.lint(registry.path("page") / f"{code}.toml")
        if f.level == "error" or "is missing" in f.message
    ]
    words = page.load(code)
    for name in metrics.catalogue():
        assert words.measure(name) and words.measure(name) != metrics.find(name).title
    over, own = words.measure("endorsed-over-wordings"), words.measure("endorsed")
    assert own in over and own != over and words.measure("no-such-metric") is None
    folder = tmp_path / "page"
    shutil.copytree(registry.path("page"), folder)
    file = folder / f"{code}.toml"
    file.write_text(
        re.sub("^negrate = .*\n(?=negrate-pub)", "", file.read_text("utf-8"), flags=re.M), "utf-8"
    )
    found = genprobe.lint(file)
    assert ["'metrics.negrate' is missing" in one.message for one in found].count(True) == 1


def test_every_phrase_is_one_that_the_page_says():
    """A text that was reworded in the code would silently stay English."""
    root = Path(genprobe.__file__).parent
    rooms = ("report", "tasks", "metrics", "analysis", "judges", "outcomes", "resources", "runs")
    parts = [p for d in rooms for p in sorted((root / d).rglob("*.*"))]
    code = " ".join(p.read_text("utf-8") for p in parts if p.suffix in {".py", ".html", ".js"})
    code += " ".join(findings.READINGS.values())
    for old, new in ((r'"\s+f?"', ""), (r"\\u00a0", " "), (r"\s+", " ")):
        code = re.sub(old, new, code)
    lost = {
        key
        for key, text in page.load("en").texts.items()
        if key.startswith(("phrases.", "browser."))
        for piece in re.split(r"\{\w+\}", text)
        if piece.strip("(): ,;.=%").casefold() not in code.casefold()
    }
    assert lost <= COMPOSED, lost - COMPOSED


def test_a_phrase_without_words_stays_english_and_says_so(tmp_path):
    shutil.copy(registry.path("page") / "en.toml", tmp_path)
    text = (registry.path("page") / "de.toml").read_text("utf-8")
    (tmp_path / "de.toml").write_text(re.sub("^copy = .*\n", "", text, flags=re.M), "utf-8")
    words = page.read(tmp_path / "de.toml")
    assert words.phrase("Copy") is None and words.phrase("Methods") == "Methoden"
    fill = speech.environment(words).from_string("{{ 'Copy'|said }}, {{ '<b> x'|said }}").render()
    assert fill == '<span lang="en">Copy</span>, <span lang="en">&lt;b&gt; x</span>'


def test_slots_hold_names_and_phrases_and_take_no_other_sentence():
    words = page.load("de")
    assert words.phrase("Stories, by domain") == "Geschichten (Bereich)"
    assert words.phrase("Templates of a") == "Vorlagen von \u2068a\u2069"
    assert words.phrase("Nobody knows. It was made, by chance") is None
    assert words.phrase("from here to there") is None
    told = words.phrase(
        "60.0\u00a0% (11.7 to 96.7; n\u00a0=\u00a05) of its replies give no clear answer: see the bounds."
    )
    assert told == "60.0 % (11.7 … 96.7; n = 5) seiner Antworten sind unklar: siehe die Grenzen."
    assert page.load("en").phrase("Stories") == "Stories"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('skip = "Direkt zu den Zahlen"', "", "'page.skip' is missing"),
        ("[notes]", '[notes]\nmore = "mehr"', "'notes.more' is unknown"),
        (
            "{n} von {planned}",
            "{n} von 100",
            r"'finding.left_out' must have {models} {n} {planned}",
        ),
        ("[terms.contrast]", "[terms.other]", "'terms.contrast' is missing"),
        ('review = "awaiting a native reader"', "", "'review' must be a text"),
    ],
)
def test_a_file_that_lacks_a_word_or_a_slot_is_refused(tmp_path, old, new, message):
    for code in ("en", "de"):
        text = (registry.path("page") / f"{code}.toml").read_text("utf-8")
        assert code == "en" or old in text
        (tmp_path / f"{code}.toml").write_text(text.replace(old, new) if code == "de" else text)
    with pytest.raises(InputError) as error:
        page.read(tmp_path / "de.toml")
    assert message in str(error.value) and "de.toml" in str(error.value)


def test_from_right_to_left_each_name_keeps_its_direction():
    told = page.load("fa")("finding.left_out", models="llama-3", n="5", planned="9")
    assert told.count("\u2068") == told.count("\u2069") == 3
    told = page.load("kk")("finding.left_out", models="m", n="5", planned="9")
    assert told.count("\u2068") == 1 and "\u2068m\u2069" in told  # the name alone
    fill = speech.environment(page.load("kk")).from_string("{{ t|marked }} {{ t|bare }}")
    shown = fill.render(t=told)
    assert '<bdi translate="no" class="kept">m</bdi>' in shown and "\u2068" not in shown


def test_the_glossary_is_one_in_terminal_and_page():
    done = CliRunner().invoke(cli, ["list", "words"])
    assert done.exit_code == 0
    for term in page.load("en").terms:
        assert f"{term.name} " in done.output and term.text in done.output


def test_an_unknown_language_of_the_page_names_those_there_are():
    with pytest.raises(InputError, match="language of the page 'xx'; known: ar, de, en"):
        page.load("xx")
