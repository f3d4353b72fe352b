"""Answers of people: in the terminal, by the form in a real browser, and through other tools."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from test_dataset import run, write

from genprobe.commands import cli
from genprobe.curation import collect, exchange, tables
from genprobe.errors import InputError
from genprobe.files import read_rows, write_rows

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
PACKS = [
    (path.parent.name, path.stem)
    for path in sorted((collect.registry.PROMPTS / "elicitation").glob("*/*.toml"))
]


def given(code: str, n: int = 2, **more) -> list[dict]:
    """Answers of one respondent to RuBia's pack."""
    pack = collect.load("rubia", "en")
    domain = pack.domains[0]
    fixed = {"respondent": code, "pack": "rubia", "lang": "en", "domain": domain.id}
    return [
        {"id": f"{code}-{k}", **fixed, "task": domain.tasks[0].id}
        | {"pro": f"Bakers {code} hum {k}.", "anti": f"Poets {code} hum {k}."}
        | {"about_gender": "woman of Ab", **more, "history": [pack.step]}
        for k in range(1, n + 1)
    ]


def saved(path, rows):
    write_rows(path, rows) if path.suffix != ".xlsx" else tables.write(path, rows, list(rows[0]))
    return path


CODES = ("aaaa-bbbb-2222", "cccc-dddd-3333")


@pytest.fixture
def people(tmp_path):
    """Two files that the form saved, and the table combined from them."""
    paths = [saved(tmp_path / f"answers-{code}.jsonl", given(code)) for code in CODES]
    out = tmp_path / "all.jsonl"
    run("collect", "rubia", *paths, "-o", out, "-q")
    return paths, out


# --- what respondents said of themselves


@pytest.mark.parametrize(
    ("tool", "suffix"), [("label-studio", "json"), ("doccano", "jsonl"), ("potato", "jsonl")]
)
def test_what_respondents_said_of_themselves_stays_at_home(tool, suffix, people, tmp_path):
    _, source = people
    tasks = tmp_path / f"t.{suffix}"
    run("convert", source, "--to", tool, "-o", tasks, "-q")
    sent = tasks.read_text()
    assert "Bakers" in sent and "about_" not in sent and "woman of" not in sent
    assert '"respondent' not in sent and not any(f'{code}-1"' in sent for code in CODES)
    back = tmp_path / "back.jsonl"
    run("convert", tasks, "--from", tool, "--source", source, "-o", back, "-q")
    assert list(read_rows(back)) == list(read_rows(source))
    run("convert", source, "--to", tool, "--keep-about", "-o", tasks, "-q")
    assert "about_gender" in tasks.read_text()


def test_what_is_deleted_stays_away_and_what_still_has_it_is_named(people, tmp_path):
    paths, out = people
    (tmp_path / "copy.csv").write_text(f"note\nfrom {CODES[0]}\n")
    saved(tmp_path / "book.xlsx", [{"by": CODES[0]}])
    done = CliRunner().invoke(
        cli, ["dataset", "collect", "rubia", "-o", str(out), "--delete", CODES[0]]
    )
    said = done.output
    assert "2 answers deleted" in said
    for name in (paths[0].name, "copy.csv", "book.xlsx"):
        assert f"{name}: the code still stands here" in said
    kept = (tmp_path / collect.DELETED).read_text()
    assert CODES[0] not in kept and CODES[0].replace("-", "") not in kept
    run("collect", "rubia", *paths, "-o", out, "-q")
    assert {row["respondent"] for row in read_rows(out)} == {CODES[1]}
    # Remembered, too, where the answers come from another folder, or from a form's responses.
    (tmp_path / "elsewhere").mkdir()
    away = shutil.copy(paths[0], tmp_path / "elsewhere")
    run("collect", "rubia", away, paths[1], "-o", out, "-q")
    assert {row["respondent"] for row in read_rows(out)} == {CODES[1]}
    sheet = tmp_path / "elsewhere" / "f.csv"
    convert = ("--pack", "rubia", "--lang", "en", "-q")
    run("convert", away, "--to", "google-forms", "-o", sheet, *convert)
    run("convert", sheet, "--from", "google-forms", "-o", tmp_path / "o.jsonl", *convert)
    assert CODES[0] not in (tmp_path / "o.jsonl").read_text()
    (tmp_path / collect.DELETED).write_text("{")
    assert "deleted-codes.json: damaged" in run("collect", "rubia", *paths, "-o", out, "-q", code=2)


def test_the_code_of_a_respondent_is_no_name_of_a_group(people, tmp_path):
    _, out = people
    alike = [row | {"text": "Bakers hum in the morning."} for row in read_rows(out)]
    source = saved(tmp_path / "s.jsonl", alike)
    run("group", source, "-o", tmp_path / "g.jsonl", "-q")
    groups = {row["group"] for row in read_rows(tmp_path / "g.jsonl")}
    assert len(groups) == 1 and not any(code in name for name in groups for code in CODES)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "xlsx"])
def test_tables_with_codes_are_private(suffix, people, tmp_path):
    paths, _ = people
    (tmp_path / ".git").mkdir()
    out = tmp_path / f"a #1*.{suffix}"
    os.umask(os.umask(0o022))
    run("collect", "rubia", *paths, "-o", out, "-q")
    run("collect", "rubia", *paths, "-o", out, "-q")
    assert out.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".gitignore").read_text() == f"/a\\ \\#1\\*.{suffix}\n"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    ignored = subprocess.run(["git", "-C", tmp_path, "check-ignore", "-q", out.name], check=False)
    assert ignored.returncode == 0
    published = saved(tmp_path / "plain.jsonl", given("r1", about_gender=""))  # stands in
    assert published.stat().st_mode & 0o077


# --- packs and the terminal


@pytest.mark.parametrize(("name", "lang"), PACKS)
def test_every_pack_reads_and_makes_a_form_and_an_xlsform(name, lang, tmp_path):
    pack = collect.load(name, lang)
    collect.form(pack, tmp_path / "form.html")
    page = (tmp_path / "form.html").read_text(encoding="utf-8")
    assert f'lang="{lang}"' in page and ('dir="rtl"' in page) == (lang == "fa")
    exchange.form(pack, tmp_path / "form.xlsx")
    sheet = tables.read(tmp_path / "form.xlsx")
    names = [row["name"] for _, row in sheet if row["name"]]
    assert len(names) == len(set(names))
    opened = sum(row["type"] == "begin_group" for _, row in sheet)
    assert opened == sum(row["type"] == "end_group" for _, row in sheet)
    questions = sum(len(task.gives) for domain in pack.every for task in domain.tasks)
    assert sum("__" in name for name in names) == questions


def test_pyxform_accepts_the_xlsform(tmp_path):
    convert = pytest.importorskip("pyxform.xls2xform", reason="pyxform is not installed").convert
    for name, lang in PACKS:
        exchange.form(collect.load(name, lang), tmp_path / "form.xlsx")
        assert not convert(str(tmp_path / "form.xlsx")).warnings


def answers(lines, pack, out, seed=1):
    """An interview with these lines; what was said to the respondent."""
    said, given = [], iter(lines)

    def ask(prompt):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    return collect.interview(pack, out, ask, said.append, seed), said


def test_an_interview_in_the_terminal(tmp_path):
    pack, out = collect.load("afristereo", "en"), tmp_path / "a.jsonl"
    about = ["1", "woman", "3", "gardener", "2, 99", "2; 5; a bakery", "", "1", "", "3, Tiv"]
    count, said = answers(
        ["1", "1", *about, "Women sing, women hum", "/switch", "", "Monks hum", "/leave", "never"],
        pack,
        out,
    )
    assert count == 2
    rows = [row for _, row in tables.read(out)]
    assert [(r["domain"], r["task"], r["answer"]) for r in rows] == [
        ("women", "women", "Women sing, women hum"),
        ("religion", "religion", "Monks hum"),
    ]
    assert rows[0]["about_age_range"] == "26–35" and rows[0]["about_employment"] == "gardener"
    assert rows[0]["about_country"] == "Nigeria"
    # Of several choices any may be taken, and other words; 99 is none, and so it is asked again.
    assert rows[0]["about_sector"] == "Trade and crafts; Education; a bakery"
    assert rows[0]["about_ethnic_groups"] == "Igbo (Nigeria); Tiv"
    code = rows[0]["respondent"]
    assert said[-1].endswith(code) and pack.texts["warning"] in said
    answers(["1", "1", "2", "Women bake"], pack, out)
    rows = [row for _, row in tables.read(out)]
    assert len(rows) == 3 and rows[2]["about_age_range"] == ""
    assert collect.delete(out, code.upper()) == (2, [])
    assert [row["answer"] for _, row in tables.read(out)] == ["Women bake"]
    assert collect.delete(out, code) == (0, [])


def test_who_does_not_consent_is_asked_nothing(tmp_path):
    count, _said = answers(["2", "1"], collect.load("rubia", "kk"), tmp_path / "a.jsonl")
    assert count == 0 and not (tmp_path / "a.jsonl").exists()


def test_a_choice_says_its_numbers_and_who_breaks_off_is_told_the_code(tmp_path):
    pack, given, asked, said = (
        collect.load("rubia", "en"),
        ["maybe", "1", "2", "A b.", "C b."],
        [],
        [],
    )

    def ask(prompt):
        asked.append(prompt)
        if not given:
            raise KeyboardInterrupt
        return given.pop(0)

    assert collect.interview(pack, tmp_path / "a.jsonl", ask, said.append) == 1
    assert asked[:2] == ["Choose (1–2)"] * 2
    (row,) = [row for _, row in tables.read(tmp_path / "a.jsonl")]
    assert said[-1].endswith(row["respondent"])


def test_tasks_are_drawn_and_a_second_message_follows_the_first(tmp_path):
    pack, out = collect.load("rubia", "tr"), tmp_path / "a.csv"
    _count, said = answers(
        ["1", "2", "Bir.", "İki.", "Üç.", "", "/switch", "Dört.", "Beş."], pack, out
    )
    rows = list(read_rows(out))
    assert [(r["pro"], r["anti"]) for r in rows] == [("Bir.", "İki."), ("Dört.", "Beş.")]
    seconds = {task.second for domain in pack.domains for task in domain.tasks}
    assert sum(line in seconds for line in said) == 3


def test_whatever_else_a_respondent_knows_is_asked_at_the_end(tmp_path):
    """PBBQ, section 3.2, invites further stereotypes; so does every pack that draws tasks."""
    for path in (collect.registry.PROMPTS / "elicitation").glob("*/*.toml"):
        pack = collect.read_pack(path)
        assert (collect.MORE in pack.texts) == (pack.name != "afristereo"), path
    pack, out = collect.load("rubia", "en"), tmp_path / "a.csv"
    count, said = answers(
        ["1", "2", "A b.", "C b.", "/leave", "Teachers love tea, monks do not"], pack, out
    )
    assert count == 2 and pack.texts["more"] in said[-2]
    rows = list(read_rows(out))
    assert [(r["domain"], r["pro"], r["answer"]) for r in rows[1:]] == [
        ("more", "", "Teachers love tea, monks do not")
    ]
    run("extract", out, "-o", tmp_path / "x.csv", "-q")
    assert [r["identity"] for r in read_rows(tmp_path / "x.csv")][-2:] == ["teachers", "monks"]
    # It may be left, too, and then nothing is lost.
    count, said = answers(["1", "2", "A b.", "C b.", "/leave", "/leave"], pack, tmp_path / "b.csv")
    assert count == 1 and said[-1].startswith(pack.words["code"])


def test_further_messages_of_a_task_may_be_left_empty(tmp_path):
    good = (collect.registry.PROMPTS / "elicitation" / "rubia" / "en.toml").read_text("utf-8")
    path = tmp_path / "rubia" / "en.toml"
    path.parent.mkdir()
    more = 'gives = ["pro", "anti", "region"]\nthen = ["Where is it said?"]'
    order = good.replace('order = "drawn"', 'order = "all"')
    path.write_text(order.replace('gives = ["pro", "anti"]', more, 1), "utf-8")
    pack = collect.read_pack(path)
    task = pack.domains[0].tasks[0]
    assert task.messages[2] == "Where is it said?" and task.needed == ("pro", "anti")
    typed = ["1", "2", "A b.", "C b.", "", "D e.", "F e."]
    count, said = answers(typed, pack, tmp_path / "a.csv")
    assert count == 2 and said.count("Where is it said?") == 1
    rows = list(read_rows(tmp_path / "a.csv"))
    assert [(r["pro"], r["anti"], r["region"]) for r in rows] == [
        ("A b.", "C b.", ""),
        ("D e.", "F e.", ""),
    ]
    # Through a form and back: the answer without its optional part is whole.
    exchange.write_answers(tmp_path / "a.csv", "google-forms", pack, tmp_path / "g.csv")
    found, notes = exchange.read_answers([tmp_path / "g.csv"], "google-forms", pack)
    assert [(r["pro"], r.get("region", "")) for r in found] == [("A b.", ""), ("D e.", "")]
    assert notes == []
    path.write_text(
        good.replace('gives = ["pro", "anti"]', more.replace('"region"]', '"region", "x"]'), 1)
    )
    with pytest.raises(InputError, match="'gives'"):
        collect.read_pack(path)


def test_several_choices_come_back_from_forms_in_the_packs_words(tmp_path):
    pack = collect.load("afristereo", "en")
    exchange.form(pack, tmp_path / "form.xlsx")
    sheet = [row for _, row in tables.read(tmp_path / "form.xlsx")]
    kinds = {row["name"]: (row["type"], row["relevant"]) for row in sheet if row["name"]}
    assert kinds["about_sector"][0] == "select_multiple about_sector"
    assert kinds["about_sector_other"] == ("text", "selected(${about_sector}, 'other')")
    assert kinds["about_age_range"][0] == "select_one about_age_range"
    # A.2: the page on the format, and the same in other words for those who ask for more.
    order = [row["name"] for row in sheet]
    assert order.index("format") < order.index("format_understood") < order.index("about_gender")
    assert kinds["clarification"] == ("note", "${format_understood} = 'more'")
    base = {"consent": "yes", "consent_about": "yes", "women__women__answer": "Women sing"}
    for name, given, other, expected in [
        ("kobo", "c2 c5 other", "a bakery", "Trade and crafts; Education; a bakery"),
        ("words", "Trade and crafts, Health", "", "Trade and crafts; Health"),
        ("none", "", "", ""),
    ]:
        line = base | {"about_sector": given, "about_sector_other": other}
        line |= {"format_understood": "more", "clarification_understood": "yes"}
        write(tmp_path / f"{name}.csv", [line])
        (row,), notes = exchange.read_answers([tmp_path / f"{name}.csv"], "xlsform", pack)
        assert row["about_sector"] == expected and notes == []


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_the_survey_has_all_eight_questions_of_a_1(lang):
    pack = collect.load("afristereo", lang)
    assert [(one.id, one.kind) for one in pack.about] == [
        ("gender", "one"), ("age_range", "one"), ("employment", "one"), ("sector", "many"),
        ("religion", "one"), ("country", "one"), ("nationality", "one"), ("ethnic_groups", "many"),
    ]  # fmt: skip
    assert pack.texts["clarification"] != pack.texts["format"]


def test_a_pack_is_checked(tmp_path):
    good = (collect.registry.PROMPTS / "elicitation" / "rubia" / "en.toml").read_text("utf-8")
    path = tmp_path / "en.toml"
    for old, new, said in [
        ('order = "drawn"', 'order = "once"', "'order' must be one of"),
        ('gives = ["pro", "anti"]', 'gives = ["pro"]', "'gives'"),
        ("weight = 1", "weight = 0", "'weight'"),
        ('skip = "', 'skips = "', "[words] lacks 'skip'"),
        ('warning = "', 'warnin = "', "unknown key 'warnin'"),
    ]:
        path.write_text(good.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(InputError) as raised:
            collect.read_pack(path)
        assert said in str(raised.value)


# --- the form


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a form; `.asked` are its requests, `.faults` what went wrong in it."""
    contexts = []

    def open_(name, lang, context=None):
        path = tmp_path / f"{name}-{lang}.html"
        collect.form(collect.load(name, lang), path)
        context = context or browser.new_context(accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.faults = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on(
            "console",
            lambda message: page.faults.append(message.text) if message.type == "error" else None,
        )
        page.goto(path.as_uri())
        return page

    yield open_
    for context in set(contexts):
        context.close()


def heading(page):
    return page.locator("h2").inner_text()


@needs_chromium
def test_a_respondent_with_a_keyboard_alone(visit, tmp_path):
    pack = collect.load("rubia", "kk")
    page = visit("rubia", "kk")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # yes, go on
    assert heading(page) == pack.texts["consent_about"]
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first age group
    page.keyboard.press("ArrowDown")
    for _ in range(20):
        if page.evaluate("document.activeElement.type") == "submit":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Наубайшылар ән салады. <b>")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    seconds = {task.second for domain in pack.domains for task in domain.tasks}
    assert any(heading(page).endswith(second) for second in seconds)
    assert page.locator(".before").inner_text() == "Наубайшылар ән салады. <b>"
    page.keyboard.press("Tab")
    page.keyboard.type("Ақындар ән салады.")
    # The tab is closed, and opened again: nothing is lost.
    context = page.context
    page.close()
    page = visit("rubia", "kk", context)
    assert page.locator("textarea").input_value() == "Ақындар ән салады."
    page.get_by_role("button", name=pack.words["next"]).click()
    assert page.get_by_role("status").inner_text() == f"1 {pack.words['answered']}"
    page.get_by_role("button", name=pack.words["leave"]).click()
    assert heading(page).endswith(pack.texts["more"])  # whatever else is known, once
    page.get_by_role("button", name=pack.words["leave"]).click()
    code = page.locator("code").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name=pack.words["save"]).click()
    path = tmp_path / saved.value.suggested_filename
    saved.value.save_as(path)
    # It says that it saved, and where; deletion is offered, and nothing asked twice.
    assert heading(page) == pack.words["saved"].replace("{file}", path.name)
    assert page.get_by_text(pack.words["sure"]).is_visible()
    page.get_by_role("button", name=pack.words["again"]).click()
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("state.respondent") != code  # the next person has another code
    assert path.name == f"answers-{code}.jsonl"
    assert page.asked == [page.url] or all(
        url.startswith(("file:", "blob:", "data:")) for url in page.asked
    )
    assert page.faults == []
    out = tmp_path / "all.csv"
    run("collect", "rubia", path, path, "--lang", "kk", "-o", out, "-q")
    (row,) = read_rows(out)
    assert (row["pro"], row["anti"]) == ("Наубайшылар ән салады. <b>", "Ақындар ән салады.")
    assert row["respondent"] == code and row["about_age_group"] == "18–25"
    assert row["about_gender"] == "" and json.loads(row["history"]) == [pack.step]
    run("collect", "rubia", "--lang", "kk", "-o", out, "--delete", code, "-q")
    assert code not in out.read_text()
    # The answers that were saved still have it; combined again, they stay away.
    run("collect", "rubia", path, "--lang", "kk", "-o", out, "-q")
    assert code not in out.read_text()


@needs_chromium
def test_the_form_asks_for_nothing_and_can_be_left(visit):
    pack = collect.load("afristereo", "en")
    page = visit("afristereo", "en")
    page.get_by_role("button", name=pack.texts["consent_yes"]).click()
    page.get_by_role("button", name=pack.texts["format_more"]).click()
    page.get_by_role("button", name=pack.texts["format_yes"]).last.click()
    page.get_by_role("button", name=pack.words["skip"]).click()
    tasks = [task for domain in pack.domains for task in domain.tasks]
    page.get_by_role("button", name=pack.words["next"]).click()  # empty: said, not stored
    assert page.get_by_role("status").inner_text() == pack.words["required"]
    for n, task in enumerate(tasks):
        assert heading(page).endswith(task.first)
        page.locator("textarea").fill(f"Answer {n}")
        page.get_by_role("button", name=pack.words["next"]).click()
    assert heading(page) == pack.words["done"]
    kept = page.evaluate("Object.values(localStorage)[0]")
    rows = json.loads(kept)["rows"]
    assert [row["answer"] for row in rows] == [f"Answer {n}" for n in range(7)]
    assert all(not row[name] for row in rows for name in row if name.startswith("about_"))
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=pack.words["wipe"]).click()
    assert page.evaluate("localStorage.length") == 0
    assert heading(page) == pack.texts["consent"]
    assert all(url.startswith(("file:", "data:")) for url in page.asked)
    assert page.faults == []


@needs_chromium
def test_a_browser_that_keeps_nothing_asks_before_answers_are_lost(browser, visit):
    """Storage is blocked: the form works, promises nothing, and a closed tab is asked about."""
    pack = collect.load("rubia", "en")
    context = browser.new_context()
    blocked = (
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked') }})"
    )
    context.add_init_script(blocked)
    page = visit("rubia", "en", context)
    assert pack.words["stored"] not in page.locator("main").inner_text()
    page.get_by_role("button", name=pack.texts["consent_yes"]).click()
    page.get_by_role("button", name=pack.words["skip"]).click()
    box = page.get_by_role("textbox", name=heading(page))
    box.fill("Bakers hum.")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"] and heading(page) == pack.texts["consent"]
    page.get_by_role("button", name=pack.texts["consent_no"]).click()
    page.get_by_role("button", name=pack.words["wipe"]).click()  # nothing is left to be lost
    assert asked[1:] == [] and heading(page) == pack.texts["consent"]
    assert page.faults == []


@needs_chromium
def test_a_box_is_named_by_its_question_and_says_that_it_wants_an_answer(visit):
    pack = collect.load("rubia", "en")
    page = visit("rubia", "en")
    assert pack.words["stored"] in page.locator("main").inner_text()
    page.get_by_role("button", name=pack.texts["consent_yes"]).click()
    page.get_by_role("button", name=pack.words["skip"]).click()
    assert page.get_by_role("textbox", name=heading(page)).count() == 1
    told = page.locator("main").inner_text()
    assert pack.words["required"] in told and pack.words["optional"] not in told


@needs_chromium
@pytest.mark.parametrize("lang", ["fa", "en"])
def test_a_screen_reader_finds_its_way(visit, lang):
    from axe_playwright_python.sync_playwright import Axe

    pack = collect.load("rubia", lang)
    page = visit("rubia", lang)
    assert page.locator("html").get_attribute("dir") == ("rtl" if lang == "fa" else "ltr")
    for button in (pack.texts["consent_yes"], pack.words["next"], None):
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        if button:
            page.get_by_role("button", name=button).click()
    assert page.get_by_role("textbox").count() == 1
    if lang == "fa":
        box = page.get_by_role("button", name=pack.words["next"]).bounding_box()
        other = page.get_by_role("button", name=pack.words["switch"]).bounding_box()
        assert box["x"] > other["x"]


# --- other tools


def collected(pack, count):
    """Answers of two respondents, some tasks answered more than once."""
    rows = []
    for n in range(count):
        domain = pack.domains[n % len(pack.domains)]
        task = domain.tasks[n % len(domain.tasks)]
        code = ("aaaa-bbbb-cccc", "dddd-eeee-ffff")[n % 2]
        row = {
            "id": f"{code}-{n // 2 + 1}",
            "respondent": code,
            "pack": pack.name,
            "lang": pack.lang,
        }
        row |= {"domain": domain.id, "task": task.id}
        row |= {c: f'=Said {n}, "so";\n{c} (2)' for c in task.gives}
        row |= {f"about_{one.id}": "x" * (n % 2) for one in pack.about}
        rows.append(row | {"history": [pack.step]})
    return sorted(rows, key=lambda row: row["respondent"])


@pytest.mark.parametrize("tool", exchange.FORMS)
@pytest.mark.parametrize("name", ["afristereo", "rubia"])
def test_answers_go_through_a_form_and_back(tool, name, tmp_path):
    pack = collect.load(name, "en")
    rows = collected(pack, 24)
    source = tmp_path / "a.jsonl"
    tables.write(source, rows, pack.columns)
    run("convert", source, "--to", tool, "--pack", name, "-o", tmp_path / "w.csv", "-q")
    run(
        "convert",
        tmp_path / "w.csv",
        "--from",
        tool,
        "--pack",
        name,
        "-o",
        tmp_path / "b.jsonl",
        "-q",
    )
    back = [row for _, row in tables.read(tmp_path / "b.jsonl")]
    squeeze = lambda row: {k: v.strip() if isinstance(v, str) else v for k, v in row.items()}  # noqa: E731
    assert [squeeze(row) for row in rows] == back


@pytest.mark.parametrize("tool", exchange.FORMS)
def test_an_answer_to_a_task_that_the_pack_has_not_is_one_line(tool, tmp_path):
    pack = collect.load("rubia", "en")
    rows = collected(pack, 2)
    rows[0]["task"] = "of_an_earlier_pack"
    source = tmp_path / "a.jsonl"
    tables.write(source, rows, pack.columns)
    out = tmp_path / "w.csv"
    told = run("convert", source, "--to", tool, "--pack", "rubia", "-o", out, code=2)
    assert "answers the task 'of_an_earlier_pack'" in told and "has not (any more)" in told
    assert not out.exists()


def test_responses_of_a_form_that_people_made(tmp_path):
    pack = collect.load("afristereo", "en")
    tasks = [task for domain in pack.domains for task in domain.tasks]
    path = write(
        tmp_path / "r.csv",
        [
            {
                "Timestamp": "1",
                tasks[0].first: "Women hum",
                "What is your age range?": "18–25",
                "Shoe size": "40",
            },
            {"Timestamp": "2", tasks[0].first: "", "What is your age range?": "", "Shoe size": ""},
        ],
    )
    rows, notes = exchange.read_answers([path], "google-forms", pack)
    assert [(r["task"], r["answer"], r["about_age_range"]) for r in rows] == [
        ("women", "Women hum", "18–25")
    ]
    assert rows[0]["history"] == [f"{pack.step}|via:google-forms"]
    assert notes == [f"{path}: the column 'Shoe size' is not a question of the pack"]
    other = write(tmp_path / "o.csv", [{"a": "1"}])
    assert "no column is a question" in run(
        "convert",
        other,
        "--from",
        "google-forms",
        "--pack",
        "afristereo",
        "-o",
        tmp_path / "x.csv",
        code=2,
    )


@pytest.mark.parametrize("tool", ["google-forms", "xlsform"])
def test_nothing_is_taken_without_consent_and_half_a_pair_is_counted(tool, tmp_path):
    """Columns by their wording, as people make forms, and by the names of the XLSForm."""
    pack = collect.load("rubia", "en")
    domain, task = pack.domains[0], pack.domains[0].tasks[0]
    heads = [pack.texts["consent"], pack.texts["consent_about"], pack.about[0].text]
    heads += [task.first, task.second]
    yes, no = pack.texts["consent_yes"], pack.texts["consent_no"]
    if tool == "xlsform":
        heads = ["consent", "all/consent_about", f"all/about_{pack.about[0].id}"]
        heads += [f"all/domain_{domain.id}/{domain.id}__{task.id}__{c}" for c in ("pro", "anti")]
        yes, no = "yes", "no"
    given = [
        (yes, yes, "18–25", "Women hum.", "Men hum."),
        (yes, no, "26–35", "Women sew.", "Men sew."),
        (yes, "", "26–35", "Women mow.", ""),
        (no, yes, "36–50", "Women row.", "Men row."),
    ]
    path = write(tmp_path / "r.csv", [dict(zip(heads, one, strict=True)) for one in given])
    rows, notes = exchange.read_answers([path], tool, pack)
    assert [(r["pro"], r["about_age_group"]) for r in rows] == [
        ("Women hum.", "18–25"),
        ("Women sew.", ""),
    ]
    assert notes == [
        f"{path}: without consent, left out: 1 respondent",
        f"{path}: answers to only one of two messages, left out: 1 answer",
    ]


@pytest.mark.parametrize("tool", ["label-studio", "doccano", "potato"])
def test_what_no_tool_exported_is_refused(tool, tmp_path):
    source = tmp_path / "x.json"
    source.write_text('[{"x": 1}]' if tool == "label-studio" else '{"x": 1}\n')
    if tool != "label-studio":
        source = source.rename(tmp_path / "x.jsonl")
    out = tmp_path / "o.csv"
    assert f"not an export of {tool}" in run("convert", source, "--from", tool, "-o", out, code=2)
    assert not out.exists()


PAIRS = [
    {
        "id": f"i{n}",
        "lang": "ru",
        "text": f"{who} «поют»\t{n}.",
        "role": role,
        "pair": f"p{n}",
        "note": '{"a": 1}',
        "history": json.dumps(["made by hand"]),
    }
    for n in range(3)
    for who, role in (("=Пекари", "original"), ("Поэты", "contrast"))
]
for at, pair_row in enumerate(PAIRS):
    pair_row["id"] += f"-{at % 2}"


@pytest.mark.parametrize(
    ("tool", "suffix"), [("label-studio", "json"), ("doccano", "jsonl"), ("potato", "jsonl")]
)
def test_rows_go_through_a_tool_and_back(tool, suffix, tmp_path):
    source = tmp_path / "p.csv"
    tables.write(source, [row | {"history": ["made by hand"]} for row in PAIRS], list(PAIRS[0]))
    tasks = tmp_path / f"t.{suffix}"
    run("convert", source, "--to", tool, "-o", tasks, "-q")
    run("convert", tasks, "--from", tool, "-o", tmp_path / "back.csv", "-q")
    assert (tmp_path / "back.csv").read_bytes() == source.read_bytes()


def test_votes_of_label_studio(tmp_path):
    source = write(tmp_path / "p.csv", PAIRS)
    run("convert", source, "--to", "label-studio", "-o", tmp_path / "t.json", "-q")
    config = (tmp_path / "t-config.xml").read_text()
    assert '<Choices name="bias"' in config and '<Choice value="да" alias="yes"/>' in config
    tasks = json.loads((tmp_path / "t.json").read_text())
    for number, task in enumerate(tasks, 1):
        task["id"] = number  # as its export has it
        task["annotations"] = [
            {
                "completed_by": by,
                "was_cancelled": by == 3,
                "result": [
                    {
                        "from_name": "bias",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [label]},
                    }
                ],
            }
            for by, label in ((1, "yes"), ({"id": 2, "email": "b@example.org"}, "no"), (3, "yes"))
        ]
    (tmp_path / "e.json").write_text(json.dumps(tasks))
    run(
        "convert",
        tmp_path / "e.json",
        "--from",
        "label-studio",
        "--votes",
        tmp_path / "v.csv",
        "-o",
        tmp_path / "b.csv",
        "-q",
    )
    votes = list(read_rows(tmp_path / "v.csv"))
    assert [(v["item"], v["rater"], v["label"]) for v in votes[:2]] == [
        ("p0", "1", "yes"),
        ("p0", "b@example.org", "no"),
    ]
    assert len(votes) == 6
    run(
        "validate",
        "keep",
        tmp_path / "b.csv",
        "--votes",
        tmp_path / "v.csv",
        "--rule",
        ">=50%",
        "-o",
        tmp_path / "k.csv",
        "-q",
    )
    assert len(list(read_rows(tmp_path / "k.csv"))) == 6


@pytest.mark.parametrize("tool", ["doccano", "potato"])
def test_lines_of_json_go_into_a_file_that_can_be_read_back(tmp_path, tool):
    source = write(tmp_path / "p.csv", PAIRS)
    out = tmp_path / "o.json"
    told = run("convert", source, "--to", tool, "-o", out, code=2)
    assert "name a file that ends in .jsonl" in told and not out.exists()


def test_answers_in_another_language_are_refused_with_the_cure(tmp_path):
    form = tmp_path / "form.html"
    done = CliRunner().invoke(
        cli, ["dataset", "collect", "rubia", "--lang", "kk", "--html", str(form)]
    )
    assert "FILE… --lang kk`" in done.stderr
    row = dict.fromkeys(collect.FIXED, "x") | {"pack": "rubia", "lang": "kk"}
    answers = write(tmp_path / "a.csv", [row])
    told = run("collect", "rubia", answers, "-o", tmp_path / "o.csv", code=2)
    assert "'kk', and not of rubia in 'en'; name it, and its language with --lang" in told


def test_votes_of_doccano_and_potato(tmp_path):
    source = write(tmp_path / "p.csv", PAIRS)
    run("convert", source, "--to", "doccano", "-o", tmp_path / "d.jsonl", "-q")
    lines = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    for by, label in (("ann", "yes"), ("bob", "no")):
        made = [line | {"id": n, "label": [label]} for n, line in enumerate(lines, 10)]
        (tmp_path / f"{by}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    _, votes, _ = exchange.read([tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"], "doccano")
    assert [(v["item"], v["rater"], v["label"]) for v in votes] == [
        (f"p{n}", by, label) for by, label in (("ann", "yes"), ("bob", "no")) for n in range(3)
    ]
    potato = {"user_id": "cy", "instance_id": "p1", "label_annotations": {"bias": {"yes": "1"}}}
    (tmp_path / "annotated_instances.jsonl").write_text(json.dumps(potato) + "\n")
    rows, votes, _ = exchange.read([tmp_path / "annotated_instances.jsonl"], "potato")
    assert rows == [] and votes == [
        {"item": "p1", "rater": "cy", "question": "bias", "label": "yes", "shown": ""}
    ]


@pytest.mark.parametrize(
    ("tool", "suffix"), [("label-studio", "json"), ("doccano", "jsonl"), ("potato", "jsonl")]
)
def test_a_vote_counts_only_for_what_its_annotator_was_shown(tool, suffix, tmp_path):
    source, votes = write(tmp_path / "p.csv", PAIRS), tmp_path / "v.csv"
    tasks = tmp_path / f"t.{suffix}"
    run("convert", source, "--to", tool, "-o", tasks, "-q")
    exported = tasks.read_text()
    lines = json.loads(exported) if suffix == "json" else map(json.loads, exported.splitlines())
    answered = {"label_annotations": {"bias": {"yes": 1}}, "user_id": "ann", "label": ["yes"]}
    value = {"from_name": "bias", "value": {"choices": ["yes"]}}
    answered |= {"annotations": [{"completed_by": "ann", "result": [value]}]}
    made = [line | answered for line in lines]
    for line in made if tool == "potato" else ():  # it returns no rows
        del line["genprobe_row"]
    told = json.dumps(made) if suffix == "json" else "".join(json.dumps(one) + "\n" for one in made)
    done = (tmp_path / f"ann.{suffix}", tmp_path / "back.csv")
    done[0].write_text(told)
    back = ("convert", done[0], "--from", tool, "--votes", votes, "-o", done[1], "-q")
    run(*back)
    keep = ("validate", "keep", source, "--votes", votes, "--rule", "1/1", "-q")
    run(*keep, "-o", tmp_path / "k.csv")
    assert len(list(read_rows(tmp_path / "k.csv"))) == 6
    write(source, [row | {"text": f"{row['text']} Never."} for row in PAIRS])
    assert "is not as annotators were shown it" in run(*keep, "-o", tmp_path / "no.csv", code=2)
    assert re.search("not as (it was sent|annotators)", run(*back, "--source", source, code=2))


def test_exports_of_another_kind(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{}")
    assert "not a list of tasks" in run(
        "convert", path, "--from", "label-studio", "-o", path, code=2
    )
    assert "unknown tool 'brat'" in run("convert", path, "--from", "brat", "-o", path, code=2)
    assert "name it with --pack" in run("convert", path, "--from", "xlsform", "-o", path, code=2)


def test_afristereo_shows_the_format_until_it_is_understood(tmp_path):
    """A.2: the page with IDENTITY TERM and ATTRIBUTE TERM, between consent and the questions."""
    asked = collect.load("afristereo", "en")
    shown = []
    typed = iter(["1", "2", "2", "1", "2", "Women are kind"])

    def ask(prompt):
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    assert collect.interview(asked, tmp_path / "a.csv", ask, shown.append) == 1
    page = asked.texts["format"]
    assert "IDENTITY TERM" in page and page.count("the attribute") == 5
    # Once as printed; then, as it was not understood, in other words until it is.
    assert shown.count(page) == 1 and shown.count(asked.texts["clarification"]) == 2
    assert shown.index(page) < shown.index(asked.words["help"])
    for lang in ("en", "fr"):
        made = tmp_path / f"{lang}.html"
        collect.form(collect.load("afristereo", lang), made)
        text = made.read_text(encoding="utf-8")
        texts = collect.load("afristereo", lang).texts
        assert texts["format_more"] in text and texts["clarification"].split("\n")[0] in text
        assert "format" not in collect.load("rubia", "en").texts
