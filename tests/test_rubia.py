"""RuBia's tasks, in our words: what is made by following them is a minimal pair (section 3.2)."""

import difflib
import re
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
_LAST = re.compile(r"[«“]([^«“”»]+)[.]?[”»][.]?$")


def examples(lang, only_jobs=False):
    """The example of each task's two messages, as somebody who follows them would answer."""
    for domain in collect.load("rubia", lang).domains:
        for task in domain.tasks:
            if domain.id in TASKS and (not only_jobs or task.id == "freeform_job"):
                pro, anti = (_LAST.search(text) for text in (task.first, task.second))
                assert pro and anti, (lang, domain.id, task.id)
                yield domain.id, task.id, pro[1].rstrip("."), anti[1].rstrip(".")


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
def test_pairs_made_by_following_each_task_differ_only_in_the_group(lang):
    """The study's question: similar, and different only in the group, with the words that agree."""
    found = list(examples(lang, only_jobs=lang in ("tr", "fa")))
    assert len(found) == (1 if lang in ("tr", "fa") else 22)
    for domain, task, pro, anti in found:
        a, b, out, into = changed(pro, anti)
        where = (lang, domain, task, pro, anti)
        assert out and into, where  # the group is another one
        kept = len(a) - len(out)
        assert kept >= 2 and kept == len(b) - len(into), where  # the predicate stays
        # At most two words, or two partners of which one is named twice; more only if they agree
        # with it (the same beginning: "сдал", "сдала").
        new = [w for w in into if not any(w[:3] == was[:3] and len(w) > 3 for was in out)]
        assert len(new) <= (3 if task.startswith(("template_pos", "template_het")) else 2), where


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
        {"id": f"{domain}-{task}", "lang": lang, "domain": domain, "pro": pro, "anti": anti}
        for domain, task, pro, anti in examples(lang)
    ]
    rows.append({"id": "own", "lang": lang, "domain": "other", "pro": "A b c.", "anti": "A d c."})
    source = tmp_path / "pairs.csv"
    tables.write(source, rows, list(rows[0]))
    *found, key = validate.export(source, tmp_path / "s.csv", "rubia", annotators=3, repeats=0)
    questions = validate.load("rubia").questions
    shown = sheets.read(found[0], ["row"])
    asked, pro = shown.heads.index("asked here"), shown.heads.index("first")
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
        sheets.write(path, lines)
    votes, problems = validate.collect(found, key)
    assert not problems and len(votes) == 23 * 3 * 2
    tables.write(tmp_path / "v.csv", votes, validate.VOTES)
    run("validate", "keep", source, "--votes", tmp_path / "v.csv", "--questions", "rubia",
        "-o", tmp_path / "kept.csv", "-q")  # fmt: skip
    assert len(list(read_rows(tmp_path / "kept.csv"))) == 23


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
