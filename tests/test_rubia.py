"""RuBia's tasks, in our words: what is made by following them is a minimal pair (section 3.2)."""

import csv
import difflib
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_dataset import run

from genprobe.commands import cli
from genprobe.curation import collect, tables, validate
from genprobe.errors import InputError
from genprobe.files import read_rows, sheets

TASKS = {
    "gender": "template_assoc freeform_job freeform_prof freeform_family template_positives "
    "template_hetpos freeform_full freeform_generic",
    "nationality": "template_assoc freeform_full freeform_enemy freeform_antisem freeform_immigrant",
    "class": "template_poor template_rich freeform_prof_pos freeform_full",
    "lgbtq": "template_assoc freeform_lgb freeform_transnb freeform_repres freeform_gendergap",
}
LANGS = ("ru", "en", "kk", "tr", "fa")
_SAID = re.compile(r"[«“]([^«“”»]*[^«“”»….,]{3,}[^«“”»]*)[”»]")
_GAP = ("…", "B because", "Б, потому", "Б-ны")


def quoted(text):
    """The sentences in quotation marks of a message, without those with a gap to fill in."""
    return [said.rstrip(".") for said in _SAID.findall(text) if not any(g in said for g in _GAP)]


def examples(lang):
    """The examples of each task's two messages, as somebody who follows them would answer."""
    for domain in collect.load("rubia", lang).domains:
        for task in domain.tasks:
            if task.id.startswith("freeform"):
                first, second = (
                    [said for said in quoted(text) if len(said.split()) > 2]
                    for text in (task.first, task.second)
                )
                assert len(first) == len(second), (lang, domain.id, task.id, first, second)
                for pro, anti in zip(first, second, strict=True):
                    yield domain.id, task.id, pro, anti


def changed(pro, anti):
    """The words of the first sentence that the second one has not, and of the second."""
    a, b = (re.findall(r"[\w\u200c]+", text.casefold()) for text in (pro, anti))
    parts = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    apart = [(a[i:j], b[k:m]) for what, i, j, k, m in parts if what != "equal"]
    return (
        a,
        b,
        [word for one, _ in apart for word in one],
        [word for _, one in apart for word in one],
    )


@pytest.mark.parametrize("lang", ["ru", "en", "kk"])
def test_all_tasks_of_the_study_are_there_once(lang):
    found = {d.id: [task.id for task in d.tasks] for d in collect.load("rubia", lang).domains}
    assert {name: found[name] for name in TASKS} == {n: ids.split() for n, ids in TASKS.items()}
    assert sum(len(found[name]) for name in TASKS) == 22


@pytest.mark.parametrize("lang", LANGS)
def test_free_tasks_have_contrasting_examples_and_gaps_are_explained(lang):
    """Section 3.7: two or three different examples, and none where a gap is to be filled."""
    count = Counter((domain, task) for domain, task, _, _ in examples(lang))
    for domain in collect.load("rubia", lang).domains:
        for task in domain.tasks:
            where = lang, domain.id, task.id
            if task.id.startswith("freeform"):
                assert count[domain.id, task.id] in (2, 3), where
            else:
                said = [one for m in (task.first, task.second) for one in quoted(m)]
                assert not [one for one in said if len(one.split()) > 2], where
                digits = ("1)", "۱)")
                assert any(digit in task.first for digit in digits), where  # step by step
            assert task.weight == 1, where  # as in the study's Data-Collection/config.json


@pytest.mark.parametrize("lang", ["ru", "en", "kk"])
def test_what_the_study_asks_against_people_is_asked_so(lang):
    """A.3.3, A.4.2 to A.4.4, A.5.2 and A.5.3: a stereotype against them, not any stereotype."""
    words = {"ru": ("против", "дурно"), "en": ("against",), "kk": ("қарсы", "жаман")}[lang]
    tasks = {(d.id, t.id): t for d in collect.load("rubia", lang).domains for t in d.tasks}
    for domain, names in {
        "class": ("freeform_full",),
        "nationality": ("freeform_full", "freeform_enemy", "freeform_antisem"),
        "lgbtq": ("freeform_lgb", "freeform_transnb"),
    }.items():
        for name in names:
            assert any(word in tasks[domain, name].first for word in words), (domain, name)
    region = {"ru": "другого края", "en": "another part of your own", "kk": "басқа өңірінен"}[lang]
    assert region in tasks["nationality", "freeform_immigrant"].first


@pytest.mark.parametrize("lang", LANGS)
def test_pairs_made_by_following_each_task_differ_only_in_the_group(lang):
    """The study's question: similar, and different only in the group, with the words that agree."""
    found = list(examples(lang))
    assert len(found) >= {"tr": 6, "fa": 4}.get(lang, 30)
    for domain, task, pro, anti in found:
        a, b, out, into = changed(pro, anti)
        where = (lang, domain, task, pro, anti)
        assert out and into, where  # the group is another one
        kept = len(a) - len(out)
        assert kept >= 2 and kept == len(b) - len(into), where  # the predicate stays
        # At most two words, or more if they agree with them (the same beginning: сдал, сдала).
        new = [w for w in into if not any(w[:3] == was[:3] and len(w) > 3 for was in out)]
        assert len(new) <= 2, where


@pytest.mark.parametrize("lang", LANGS)
def test_no_second_message_asks_to_keep_the_group_and_change_the_sentence(lang):
    """As two did: the study keeps the sentence and changes the gender, status or nation."""
    for domain in collect.load("rubia", lang).domains:
        for task in domain.tasks:
            words = ("группа осталась", "the group stays", "топ қалып", "grup kalsın", "گروه بماند")
            assert not any(word in task.second for word in words), (lang, task.id)


@pytest.mark.parametrize("lang", ["ru", "en", "kk"])
def test_validators_are_asked_both_questions_of_the_domain(lang, tmp_path):
    rows = [
        {"id": f"{domain}-{task}-{n}", "lang": lang, "domain": domain, "pro": pro, "anti": anti}
        for n, (domain, task, pro, anti) in enumerate(examples(lang))
        if domain in TASKS
    ]
    rows.append({"id": "own", "lang": lang, "domain": "other", "pro": "A b c.", "anti": "A d c."})
    source = tmp_path / "pairs.csv"
    tables.write(source, rows, list(rows[0]))
    *found, _, key = validate.export(
        source, tmp_path / "s.csv", name="rubia", annotators=3, repeats=0
    )
    questions = validate.load("rubia").questions
    shown = sheets.read(found[0], ["row"])
    names = [head.split(":")[0] for head in shown.heads]
    asked, pro = names.index("asked here"), names.index("first")
    domain_of = {row["pro"]: row["domain"] for row in rows}
    for _, cells in shown.rows:
        domain = domain_of[cells[pro].removeprefix("> ")]
        texts = [questions[name].domains.get(domain, {}).get(lang) for name in questions]
        told = [f"{name}: {text}" for name, text in zip(questions, texts, strict=True) if text]
        assert cells[asked].split("\n") == (told or [""])
        assert bool(told) == (domain != "other") and len(told) in (0, 2)
    # Filled in and read back, every pair is kept.
    yes = {"ru": "да", "en": "yes", "kk": "иә"}[lang]
    for path in found:
        sheet = sheets.read(path, ["row"])
        at = [n for n, head in enumerate(sheet.heads) if head.startswith(("trope:", "minimal:"))]
        lines = [sheet.heads]
        lines += [[yes if n in at else c for n, c in enumerate(cells)] for _, cells in sheet.rows]
        path.unlink()
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(lines)
    votes, problems = validate.collect(found, key)
    assert not problems and len(votes) == len(rows) * 3 * 2
    tables.write(tmp_path / "v.csv", votes, list(votes[0]))
    run("validate", "keep", source, "--votes", tmp_path / "v.csv", "--questions", "rubia",
        "-o", tmp_path / "kept.csv", "-q")  # fmt: skip
    assert len(list(read_rows(tmp_path / "kept.csv"))) == len(rows)


@pytest.fixture
def copy(tmp_path) -> Path:
    """A folder laid out as the study's repository, with texts of ours."""
    home = tmp_path / "repo" / "Data-Collection"
    for name in ("gender/freeform_job", "class/freeform_prof", "national/freeform_enemy"):
        path = home / "tasks" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Первое, {name}.\n===\nВторое, {name}.\n", "utf-8")
    (home / "interface").mkdir()
    (home / "interface" / "greeting.txt").write_text("Здравствуйте!\n", "utf-8")
    return tmp_path / "repo"


def test_the_studys_texts_are_read_from_a_copy(copy, tmp_path):
    ours = collect.load("rubia", "ru")
    found, lacks = collect.published(ours, copy)
    tasks = {(d.id, t.id): t for d in found.domains for t in d.tasks}
    assert found.texts["warning"] == "Здравствуйте!" and len(lacks) == 19 and len(tasks) == 22
    for domain, task, name in (
        ("gender", "freeform_job", "gender/freeform_job"),
        ("class", "freeform_prof_pos", "class/freeform_prof"),
        ("nationality", "freeform_enemy", "national/freeform_enemy"),
    ):
        assert tasks[domain, task].first == f"Первое, {name}."
        assert tasks[domain, task].second == f"Второе, {name}."
    assert "lgbtq/freeform_lgb" in lacks and found.hash != ours.hash
    assert collect.published(ours, copy / "Data-Collection")[0] == found
    page = tmp_path / "form.html"
    given = ("collect", "rubia", "--lang", "ru", "--from", str(copy), "--html", str(page))
    told = CliRunner().invoke(cli, ["dataset", *given])
    assert "so in genprobe's words: gender/template_assoc" in told.stderr
    assert "Второе, class/freeform_prof." in page.read_text("utf-8")


def test_a_copy_that_cannot_be_read(copy, tmp_path):
    with pytest.raises(InputError, match="give --lang ru"):
        collect.published(collect.load("rubia", "en"), copy)
    with pytest.raises(InputError, match=r"no Data-Collection/interface/greeting\.txt"):
        collect.published(collect.load("rubia", "ru"), tmp_path)
    (copy / "Data-Collection" / "tasks" / "gender" / "freeform_job.txt").write_text("Одно.")
    with pytest.raises(InputError, match="needs two messages"):
        collect.published(collect.load("rubia", "ru"), copy)


def test_validators_are_asked_the_studys_questions(tmp_path):
    folder = tmp_path / "repo" / "Response Collection"
    folder.mkdir(parents=True)
    asked = {
        "class": ["Троп о достатке?", "Только группа?"],
        "gender": ["Троп о поле?", "Лишь пол?"],
    }
    (folder / "validator_text.json").write_text(json.dumps(asked), "utf-8")
    rows = [
        {"id": domain, "lang": "ru", "domain": domain, "pro": f"{domain} а б.", "anti": "в б."}
        for domain in ("class", "gender", "lgbtq")
    ]
    source = tmp_path / "p.csv"
    tables.write(source, rows, list(rows[0]))
    given = ["validate", "export", source, "--questions", "rubia", "--annotators", 2]
    command = ["dataset", *given, "--from", tmp_path / "repo", "-o", tmp_path / "s.csv"]
    told = CliRunner().invoke(cli, list(map(str, command)))
    assert "so in genprobe's words: nationality, lgbtq" in told.stderr
    shown = sheets.read(tmp_path / "s-1.csv", ["row"])
    at = shown.heads.index("asked here: вопрос этой строки")
    texts = {cells[1].split()[1]: cells[at] for _, cells in shown.rows}
    assert (
        texts["class"] == "trope: Троп о достатке? (да / нет)\nminimal: Только группа? (да / нет)"
    )
    assert "Троп о поле?" in texts["gender"] and "ЛГБТК" in texts["lgbtq"]
    # The key reads the sheets as before: the answers are the same words.
    _, problems = validate.collect(
        [tmp_path / "s-1.csv", tmp_path / "s-2.csv"], tmp_path / "s-key.json"
    )
    assert not problems
    assert "give --questions rubia" in run(*given[:3], "--questions", "pbbq", "--from", folder,
                                           "-o", tmp_path / "t.csv", code=2)  # fmt: skip
    found, _ = validate.published(validate.load("rubia"), folder)  # also the folder itself
    assert found.questions["trope"].domains["class"]["ru"].startswith("Троп о достатке?")
    for text, why in (("[1]", "not questions by domain"), ("{", "not questions by domain")):
        (folder / "validator_text.json").write_text(text)
        with pytest.raises(InputError, match=why):
            validate.published(validate.load("rubia"), folder)
    with pytest.raises(InputError, match=r"no Response Collection/validator_text\.json"):
        validate.published(validate.load("rubia"), tmp_path)
