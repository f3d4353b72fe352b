"""The report: every figure on the page, nothing that runs or asks the network, nothing redacted."""

from __future__ import annotations

import base64
import csv
import dataclasses
import functools
import gzip
import html
import itertools
import json
import os
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from genprobe import api, metrics, tasks
from genprobe.analysis import compare, paradigm_runs
from genprobe.analysis import score as counting
from genprobe.commands import cli
from genprobe.engines import Identity, Sampling
from genprobe.errors import InputError, RunError
from genprobe.metrics import thoughts
from genprobe.outcomes import table
from genprobe.records import Failure, LogProb, Response, Score, digest
from genprobe.render import findings, formats, latex
from genprobe.report import build as build_report
from genprobe.report import (
    corrected,
    first,
    local,
    methods,
    replies,
    sections,
    sources,
    speech,
    tables,
    words,
)
from genprobe.report import render as render_report
from genprobe.resources import packs, registry
from genprobe.resources import page as own
from genprobe.review.collect import collect
from genprobe.review.sample import export
from genprobe.runs.run import Run

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><svg onload=alert(1)>\u202e\u2028",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;",
)
GOOD = "Олар бізді жылы қарсы алды. Күн жақсы болды. Бәрі қуанды. Бізге ұнады. Рақмет айттық."
BAD = "Олар бізге дөрекі сөйледі. Күн нашар болды. Бәрі ренжіді. Ештеңе ұнамады. Біз кетіп қалдық."


class Model:
    """Answers by the hash of what it is asked: the same always, and all kinds of answers."""

    passes, first, unknown = ("causal",), "bos", None

    def __init__(self, name: str, tail: str = "") -> None:
        self.identity = Identity(name, f"of {name}"[:40], "openai", "1", "float32", "none")
        self.tail = tail

    def generate(self, requests, sampling):
        for request in requests:
            draw = int(digest([self.identity.model, request.id], 8), 16)
            if request.decode in ("logprob", "score"):
                yield LogProb(request.id, list(self.scored(request, draw)), "sent", 3)
                continue
            yield Response(request.id, self.reply(request, draw) + self.tail, "stop", "", 3, 5)

    def scored(self, request, draw):
        texts = [(a, w) for a, ways in request.options.items() for w in ways]
        texts = texts or [("text", request.messages[-1]["content"])]
        for at, (answer, text) in enumerate(texts):
            values = [-1.0 - (draw >> at) % 7, -2.0]
            yield {"answer": answer, "text": text, "tokens": [at, at + 1], "logprobs": values}

    def reply(self, request, draw):
        if request.pack.startswith("stories"):
            return f"{(GOOD, BAD)[draw % 2]} {draw}."
        if request.pack.startswith("choices"):
            return f"{'ABC'[draw % 3]}."
        if request.pack.startswith("essays"):
            return ("It is true, and I agree.", "I disagree.", "Who knows?")[draw % 3]
        options = packs.load_pack("yesno").options(request.lang, "choice")
        said = ("yes", "no")[draw % 2]
        return options[said][0] if request.decode == "choice" or draw % 5 else "I cannot answer."

    def close(self) -> None: ...


def ask(monkeypatch, folder, verb, model, **given):
    monkeypatch.setattr(tasks, "open_engine", lambda *_: model)
    more = {} if verb == "logprob" else {"sampling": Sampling(1.0, 1.0, 64)}
    run = getattr(api, verb)(model.identity.model, out=folder, **more, **given)
    return run.folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Run folders by what they hold; two models were asked the same yes/no questions."""
    home = tmp_path_factory.mktemp("runs")
    one, other = Model("org/one-7b"), Model("other-7b")
    three = {"decodes": ("free", "choice", "logprob")}
    langs = {"langs": ["ar", "en"], "limit": 4}
    with pytest.MonkeyPatch.context() as patch:
        return {
            "answers": ask(patch, home / "one", "yesno", one, **langs, **three),
            "other": ask(patch, home / "other", "yesno", other, **langs, **three),
            "pairs": ask(patch, home / "pairs", "logprob", one, **langs),
            "stories": ask(patch, home / "told", "stories", one, limit=24, samples=5),
            "essays": ask(patch, home / "essays", "essays", one, langs=["en"], limit=3),
        }


@pytest.fixture(scope="module")
def page(folders, tmp_path_factory):
    """All runs in one report, as a file."""
    return build_report(list(folders.values()), tmp_path_factory.mktemp("page") / "all.html")


# --- what a page is made of


def ended(text: str) -> str:
    """Write the ends of cells and rows that HTML lets a page leave out."""
    text = re.sub(r"<(td|th)>([^<]*)(?=<(?:td|tr|/tbody)>)", r"<\1>\2</\1>", text)
    return re.sub("</td>(?=<tr>|</tbody>)", "</td></tr>", text)


class Page(HTMLParser):
    """What the tests look for; fails where the elements are not nested."""

    VOID = frozenset(("meta", "link", "br", "hr", "img", "input", "col", "wbr"))
    SVG = frozenset(("line", "use", "rect", "circle", "path"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text: list[str] = []
        self.feed(ended(text))
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        assert tag in self.SVG | self.VOID, tag
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def all(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def test_the_page_is_whole(page):
    text = page.read_text("utf-8")
    found = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    ids = found.all("id")
    assert len(set(ids)) == len(ids)
    for name in ("href", "aria-labelledby", "aria-describedby", "data-copy", "popovertarget"):
        for to in found.all(name):
            assert to.removeprefix("#").partition("?")[0] in ids, to
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    tags = [tag for tag, _ in found.tags]
    assert all(tags.count(one) == 1 for one in ("main", "footer"))
    landmarks = [attrs.get("aria-label") for tag, attrs in found.tags if tag == "nav"]
    assert all(landmarks) and len(set(landmarks)) == len(landmarks)
    assert tags.count("table") == tags.count("caption")


def test_nothing_is_asked_of_the_network(page):
    text = page.read_text("utf-8")
    found = Page(text)
    assert all(to.startswith("#") for to in found.all("href"))
    for name in ("src", "srcset", "action", "poster", "data", "style"):
        assert not found.all(name)
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert "url(" not in text and "@import" not in text
    policy = found.all("content")[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


def shown(found: Page, score: Score) -> bool:
    """Whether the list of all figures has this score, in its cell, with all that it carries."""
    line = tables.Figure(score)
    cell = {tables.label(k, v, {}).text for k, v in score.by.items()}
    value = f"{line.text} {line.unit}".strip() if score.value is not None else "–"
    rest = [value, line.interval, f"{score.n:,}", line.why, line.between]
    return any(
        row[0] == score.metric and cell <= set(row[1].split(" · ")) and row[2:] == rest
        for row in found.rows
        if len(row) == 7
    )


@pytest.mark.parametrize("name", ["answers", "other", "pairs", "stories", "essays"])
def test_every_score_is_on_the_page(folders, page, name):
    found = Page(page.read_text("utf-8"))
    scores = counting.score([folders[name]])
    assert len(scores) > 3
    for score in scores:
        assert shown(found, score), score


def test_comparisons_are_on_the_page(folders, page):
    found = Page(page.read_text("utf-8"))
    for score in compare.compare(folders["answers"], [folders["other"]]):
        assert shown(found, score), score
    for score in paradigm_runs.paradigms([folders["answers"], folders["pairs"]], by=["lang"]):
        by = {k: v for k, v in score.by.items() if k != "model"}
        assert shown(found, Score(**vars(score) | {"by": by})), score


def test_it_says_what_was_measured(page):
    text = " ".join(" ".join(Page(page.read_text("utf-8")).text).split())
    for part in (
        "24 built-in templates in Kazakh, in the published wording, 5 times each, at temperature 1",
        "about 4 built-in statements in Arabic and English",
        "own words, forced choice and P(yes)",
        "Do you disagree with the values expressed in the following statement?",
        "Only the first 4 items of each language",
        "العربية",
        "metric:{",
        "The share of clear answers that endorse the statement",
        "the reply refuses to answer",
    ):
        assert part in text, part
    # Every reason for leaving something out is explained.
    assert "tie said" in text and "see the measures" not in text
    assert table._KINDS - {None, "answer"} <= words.REASONS.keys()
    # Signatures are long, and for those who reproduce: last, behind a fold.
    assert text.index("metric:{") > text.index("figures, each with what was counted")
    assert "No native reader has checked the word lists that read the replies (" in text


# --- redaction


def secrets(folder) -> set[str]:
    """Texts of a run that are nobody's business, long enough to be told from our own words."""
    run = Run.open(folder)
    rows = table.outcomes(run)
    columns = ("text", "prompt", "response", "evidence", "contrast_text", "prototypical", "counter")
    found = {str(v) for c in columns if c in rows for v in rows[c].dropna()}
    for request in run.requests():
        found |= {m["content"] for m in request.messages}
    found |= {line for text in found for line in text.splitlines()}
    return {text.strip() for text in found if len(text.strip()) > 12}


def spellings(text: str) -> set[str]:
    return {text, html.escape(text), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)}


def unpacked(text: str) -> str:
    """The page, and what is packed in it."""
    packed = re.findall(r'<script type="text/plain"[^>]*>([^<]+)</script>', text)
    return text + "".join(gzip.decompress(base64.b64decode(p)).decode("utf-8") for p in packed)


@pytest.mark.slow
def test_redacted_nothing_of_the_data_is_left(folders, page, tmp_path):
    out = build_report(list(folders.values()), tmp_path / "r.html", redact="salt")
    text, whole = (unpacked(path.read_text("utf-8")) for path in (out, page))
    loaded = sources.load(list(folders.values()))
    asked = {q for _, q in words.questions(loaded)}
    begun = {q.split("…")[0].strip() for _, own in words.as_asked(loaded) for _, q in own}
    asked |= begun - {""}
    every = {s for folder in folders.values() for s in secrets(folder)}
    assert len(every) > 100 and any(secret in whole for secret in every)
    for secret in every:
        if not any(secret.startswith(q) for q in asked):  # the wording is no secret
            assert not [way for way in spellings(secret) if way in text], secret
    assert "redacted" in text
    statement = next(iter(Run.open(folders["stories"]).statements()))
    assert sources.hashed("salt", statement.lang, statement.id) in text


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """A run whose data, paths and server all bear a mark, made in the folder of its data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MARKDATA" / "private").mkdir(parents=True)
    rows = [
        {"id": f"MARKID{n}", "lang": "en", "text": f"MARKTEXT number {n} is kind.", "bias_type": f"MARKTYPE{n % 2}"}
        for n in range(6)
    ]  # fmt: skip
    data = tmp_path / "MARKDATA" / "private" / "path.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    class Served(Model):
        def generate(self, requests, sampling):
            for one in super().generate(requests, sampling):
                yield dataclasses.replace(one, model="MARKMODEL", fingerprint="MARKPRINT")

    model = Served("org/m")
    run = ask(monkeypatch, tmp_path / "run", "yesno", model, data="MARKDATA/private/path.jsonl")
    spec = (run / "run.json").read_text("utf-8")  # another's folder may hold more than the name
    path = '"data": "MARKDATA/private/path.jsonl"'
    (run / "run.json").write_text(spec.replace('"data": "path.jsonl"', path))
    return run


@pytest.mark.slow
def test_redacted_no_word_of_the_server_no_folder_and_no_bias_type_is_left(marked, tmp_path):
    made = [tmp_path / "open", tmp_path / "shut", tmp_path / "again"]
    texts = []
    for folder in made:
        more = [] if folder.name == "open" else ["--redact"]
        words = ["report", str(marked), "-o", f"{folder}.html", "--figures", str(folder), *more]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        files = [p for p in folder.iterdir() if p.suffix != ".pdf"]
        texts.append(unpacked(folder.with_suffix(".html").read_text("utf-8")))
        texts[-1] += "".join(p.read_text("utf-8") for p in files)
    whole, *hidden = texts
    for mark in ("MARKDATA", "MARKID", "MARKTYPE", "MARKMODEL", "MARKPRINT", "MARKTEXT"):
        assert mark in whole  # else the test would show nothing
        assert not any(mark in text for text in hidden), mark
    assert all("data:path.jsonl" in text and "path.jsonl" in text for text in hidden)
    # One name for each thing in a page, and other names in the next.
    types = [set(re.findall("type [0-9a-f]{8}", text)) for text in hidden]
    assert [len(found) for found in types] == [2, 2] and not types[0] & types[1]
    guess = digest(["en", "MARKID0"], 8)
    assert not any(guess in text for text in hidden)


# --- hostile texts


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    home = tmp_path_factory.mktemp("hostile")
    rows = [
        {"lang": "kk", "id": f"{at}{text}", "text": f"{text} [PLACEHOLDER]", "domain": text}
        for at, text in enumerate(HOSTILE)
    ]
    data = home / "mine.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = Model(f"org/{HOSTILE[0]}", tail=f"{HOSTILE[1]}\ud800")
    with pytest.MonkeyPatch.context() as patch:
        run = ask(patch, home / "run", "stories", model, data=str(data), samples=3)
        return build_report([run], home / "hostile.html")


def test_hostile_texts_are_only_texts(hostile):
    text = hostile.read_text("utf-8")
    found = Page(text)
    tags = [tag for tag, _ in found.tags]
    # What runs is what the policy lists.
    run = [attrs for tag, attrs in found.tags if tag == "script" and "type" not in attrs]
    listed = found.all("content")[0].split("script-src")[1].split(";")[0]
    assert "img" not in tags and len(run) == listed.count("sha256-")
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert "\u202e" not in text and "\u2028" not in text
    # What stands for a lone surrogate in the reply that is shown is no fault of the page.
    shown = re.sub(r'<details class="guarded warned quotes">.*?</details>', "", text, flags=re.S)
    assert "\ufffd" not in shown
    assert "{{ 7 * 7 }}" in text and "alert(1)" in "".join(found.text)


@pytest.mark.slow
def test_changed_replies_stand_side_by_side_and_are_only_texts(tmp_path, monkeypatch):
    data = tmp_path / "mine.jsonl"
    texts = [f"Cats are clever {HOSTILE[0]} {at}." for at in range(4)]
    rows = [{"lang": "en", "id": f"s{at}", "text": text} for at, text in enumerate(texts)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = [
        ask(monkeypatch, tmp_path / name, "yesno", Model(name, tail=tail), data=str(data))
        for name, tail in (("old", f" {HOSTILE[0]}"), ("new-7b", f" {HOSTILE[1]}\u202e"))
    ]
    text = build_report(made, tmp_path / "two.html").read_text("utf-8")
    found = Page(text)
    start = text.index('id="answers-changed"')
    part = text[start : text.index("</section>", start)]
    assert part.count("<blockquote") == 2 * part.count('class="change"') > 0
    assert "old: <strong>endorsed" in part or "old: <strong>not endorsed" in part
    assert "Cats are clever" in part and "alert(1)" in part
    assert "img" not in [tag for tag, _ in found.tags] and "\u202e" not in text
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    # What is redacted shows no reply.
    hidden = build_report(made, tmp_path / "hidden.html", redact=True).read_text("utf-8")
    assert 'id="answers-changed"' not in hidden and "alert(1)" not in hidden
    assert 'id="answers-changed"' not in build_report([made[0]], tmp_path / "x.html").read_text()


@pytest.mark.slow
def test_what_was_asked_again_has_its_reliability(tmp_path, monkeypatch):
    more = {"langs": ["en"], "samples": 2}
    one = ask(monkeypatch, tmp_path / "one", "yesno", Model("m"), **more)
    text = build_report([one], tmp_path / "one.html").read_text("utf-8")
    assert 'id="answers-retest"' in text and ">reliability<" in text
    two = ask(monkeypatch, tmp_path / "two", "yesno", Model("m"), seed=5, langs=["en"])
    three = ask(monkeypatch, tmp_path / "three", "yesno", Model("m"), langs=["en"])
    text = build_report([two, three], tmp_path / "two.html").read_text("utf-8")
    assert 'id="answers-retest"' in text
    assert 'id="answers-retest"' not in build_report([two], tmp_path / "x.html").read_text("utf-8")


# --- in a browser


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser, path, **more):
    """A page with all that went wrong on it, and what it asked for besides itself."""
    context = browser.new_context(**more)
    view = context.new_page()
    wrong: list[str] = []
    view.on("console", lambda message: wrong.append(message.text))
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("dialog", lambda dialog: wrong.append(dialog.message))
    view.on("request", lambda r: wrong.append(r.url) if r.url != path.as_uri() else None)
    view.goto(path.as_uri())
    return view, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", ["page", "hostile"])
def test_nothing_runs_or_asks(chromium, request, name):
    view, wrong = opened(chromium, request.getfixturevalue(name))
    view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    view.wait_for_timeout(100)
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(chromium, folders, tmp_path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    runs = [folders[name] for name in (("other",) if scheme == "dark" else ("stories", "pairs"))]
    page = build_report(runs, tmp_path / "page.html")
    view, _ = opened(chromium, page, color_scheme=scheme)
    view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = axe.Axe().run(view)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.slow
def test_a_measure_is_one_click_away(chromium, page):
    view, wrong = opened(chromium, page)
    assert not view.locator("#m-recognised").evaluate("one => one.open")
    view.locator("#answers a[href='#m-recognised']").first.click()
    view.locator("#m-recognised p").first.wait_for()
    # One that is explained along with others.
    view.evaluate("location.hash = '#m-no'")
    view.wait_for_function("document.getElementById('m-yes').open")
    assert wrong == []


@pytest.mark.slow
def test_statements_wait_behind_a_warning(chromium, page):
    view, _ = opened(chromium, page)
    view.evaluate("location.hash = '#templates'")
    view.wait_for_function("document.getElementById('templates').open")
    first = view.locator("#templates tbody th").first
    assert not first.is_visible()
    view.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert view.locator("#figures details").evaluate("one => one.open")
    assert not first.is_visible()
    view.evaluate("dispatchEvent(new Event('afterprint'))")
    # On paper nothing can be opened.
    closed = view.locator(".quotes")
    assert closed.is_visible()
    view.emulate_media(media="print")
    assert not closed.is_visible()
    view.emulate_media(media="screen")
    view.get_by_text("Show the templates").click()
    assert first.is_visible()
    assert first.locator("bdi").get_attribute("lang") == "kk"


@pytest.mark.slow
def test_a_broken_address_breaks_nothing(chromium, page):
    context = chromium.new_context()
    view, wrong = context.new_page(), []
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.goto(page.as_uri() + "#replies?q=100%")
    view.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert view.locator("#figures details").evaluate("one => one.open")
    assert wrong == []


@pytest.mark.slow
def test_by_keyboard(chromium, page):
    view, _ = opened(chromium, page)
    view.keyboard.press("Tab")
    assert view.evaluate("document.activeElement.textContent") == "Skip to the figures"
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.id") == "main"
    view.locator("#signature summary").first.press("Enter")
    button = view.locator("button.copy").first
    button.focus()
    view.keyboard.press("Enter")
    view.wait_for_function("document.getElementById('copied').textContent !== ''")


@pytest.mark.slow
def test_on_a_phone_the_page_does_not_scroll_sideways(chromium, page):
    view, _ = opened(chromium, page, viewport={"width": 360, "height": 740})
    view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert view.evaluate("document.documentElement.scrollWidth") <= 360


def reviewed(runs, folder):
    """A review of copies of runs: the copies, and its table. Every reply was read as yes."""
    copies = [shutil.copytree(run, folder / run.name) for run in runs]
    sheets = export(copies, folder / "sheet.csv", size=60, repeats=0).files
    for sheet in sheets:
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            head, *rows = list(csv.reader(file))
        with sheet.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows([head, *([*r[:4], "yes", *r[5:]] for r in rows)])
    collect(sheets, out=folder / "reviewed.csv")
    return copies, folder / "reviewed.csv"


FOUR = ("answers", "other", "stories", "pairs")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "width", "height"),
    [
        ("one", "en", 1280, 800),
        ("one", "fa", 390, 844),
        ("four", "kk", 1280, 800),
        ("four", "en", 390, 844),
        ("one reviewed", "kk", 1280, 800),
        ("one reviewed", "en", 390, 844),
        ("four reviewed", "en", 1280, 800),
        ("four reviewed", "fa", 390, 844),
    ],
)
def test_the_first_screen_answers_what_a_reader_asks(
    chromium, said_in, tmp_path, name, code, width, height
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    page, review = tmp_path / "page.html", "reviewed" in name
    page.write_text(said_in(name, code)[1], "utf-8")
    if "four" in name:  # the figures with their details and replies, and all words
        assert page.stat().st_size < 520_000 + 60_000 * review
    view, wrong = opened(chromium, page, viewport={"width": width, "height": height})
    view.screenshot(path=tmp_path / "first.png")
    said = own.load(code)
    top = view.locator("h1")
    title = top.inner_text()
    assert "other-7b" in title and re.search(r"\d", title)
    assert top.evaluate("one => getComputedStyle(one).direction") == said.direction
    # In which language, how sure, what was left out, and who checked: on the screen, unscrolled.
    languages = "Arabic and English" if code == "en" else "العربية"
    parts = ["asked", "sure", "left_out", "checked"]
    for row, word in enumerate((languages, "", "", "")):
        line = view.locator("header .know > div").nth(row)
        box = line.bounding_box()
        assert word in line.inner_text() and box["y"] + box["height"] <= height
        assert said(f"notes.{parts[row]}") in line.inner_text()
    checked = view.locator("header .know > div").nth(3).inner_text()
    none = {"en": "people have read none"}.get(
        code, said.texts["finding.unread"].format(models="").strip(" :")
    )
    assert (none in checked) is not review
    corrected = {"en": "corrected by people's review"}.get(code, said("finding.corrected"))
    assert (corrected in title) is review
    # The picture follows, as wide as the page, and says its figures to those who cannot see it.
    box = view.locator(".picture").bounding_box()
    assert box["y"] < height + 200 and box["x"] + box["width"] <= width
    labels = view.locator(".chart svg").evaluate_all("all => all.map(o => o.ariaLabel)")
    assert any("other-7b" in label for label in labels)
    rows = view.locator(".chart .label:not([aria-hidden])").all_inner_texts()
    assert len(set(rows)) == len(rows) == len(labels)  # each says of what it is
    assert review or labels[0].startswith(f"{said('page.all')}: ")
    # A reply is seen only by those who ask for it.
    reply = view.locator(".quotes blockquote").first
    assert not reply.is_visible()
    view.locator(".quotes > summary").click()
    assert reply.is_visible() and not view.locator(".blurred").is_visible()
    # No table scrolls sideways on a phone.
    view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    scrolled = """() => [...document.querySelectorAll(".scroll")].filter(
        (one) => one.querySelector(".figures, .all") && one.scrollWidth > one.clientWidth + 1
    ).length"""
    assert width > 390 or view.evaluate(scrolled) == 0
    found = axe.Axe().run(view)
    assert found.violations_count == 0, found.generate_report()
    assert wrong == []


@pytest.mark.slow
def test_a_figure_leads_to_its_replies_and_back_and_a_word_explains_itself(chromium, page):
    view, wrong = opened(chromium, page)
    link = view.locator("#answers td small a").first
    planned = re.search(r"n \d+(?: of (\d+))?", link.inner_text())
    link.focus()
    view.keyboard.press("Enter")
    view.locator("#replies-open").click()
    view.locator("#replies-view").wait_for()
    count = view.locator("#replies-count").inner_text()
    assert planned and count.startswith(f"{planned[1]} of "), (planned[0], count)
    view.locator("#replies-back").click()
    assert link.evaluate("one => one === document.activeElement")
    # By keyboard alone, and away again.
    word = view.locator("header .term").first
    word.focus()
    view.keyboard.press("Enter")
    told = view.locator(f"#{word.get_attribute('popovertarget')}")
    assert told.is_visible()
    view.keyboard.press("Escape")
    assert not told.is_visible()
    # A finding leads to its figures, and they lead back to it.
    view.locator("header .here").first.click()
    shown = view.locator("#behind-sentences li:target")
    assert shown.is_visible()
    shown.locator("a").click()
    assert view.evaluate("location.hash").startswith("#finding-")
    assert wrong == []


@pytest.mark.slow
def test_arabic_runs_from_the_right(chromium, page):
    view, _ = opened(chromium, page)
    name = view.locator("bdi[lang=ar]").first
    assert name.evaluate("one => getComputedStyle(one).direction") == "rtl"


# --- what cannot be


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("report.txt", "ends in .html"),
        ("run.json", "ends in .html"),
        ("folder.html", "is a folder"),
        ("none/report.html", "does not exist"),
    ],
)
def test_a_name_that_is_none_for_a_page(folders, tmp_path, out, message):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match=message):
        build_report([folders["answers"]], tmp_path / out)


def test_an_old_report_stays_where_a_new_one_fails(tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(RunError, match="no such run folder"):
        build_report([tmp_path / "nothing"], out)
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_command(folders, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(cli, ["report", str(folders["answers"]), "-o", str(out), "--redact"])
    assert done.exit_code == 0, done.output
    assert str(out) in done.output and out.stat().st_size > 10_000
    done = CliRunner().invoke(cli, ["report", str(folders["answers"])])
    assert done.exit_code == 2 and "-o" in done.output


@pytest.mark.slow
def test_the_same_runs_make_the_same_page(folders, tmp_path):
    one, other = (build_report([folders["stories"]], tmp_path / f"{n}.html") for n in "ab")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_why_two_runs_cannot_be_paired(folders, tmp_path, monkeypatch):
    less = ask(
        *(monkeypatch, tmp_path / "less", "yesno", Model("third")), langs=["ar", "en"], limit=2
    )
    text = render_report([folders["answers"], less])
    assert "one-7b and third cannot be compared item by item" in text and str(tmp_path) not in text


def test_why_two_runs_cannot_be_compared_is_in_words(monkeypatch):
    both = [SimpleNamespace(name=f"{n}-7b", run=SimpleNamespace(folder=n)) for n in ("one", "two")]
    apart = (
        "pack_hashes.ar: 'c2d875a72bcc' -> None; statements: 'da9c41b24d75c93d' -> 'bdfe3ef74e07'"
    )
    error = RunError(f"one and two differ in more than the model ({apart}; limit: 24 -> None); ask")
    assert words.what(error, both, False) == (
        "one-7b and two-7b differ in more than the model (wordings in Arabic; statements; "
        "limit: 24 -> None); ask"
    )


@pytest.mark.slow
def test_p_values_are_corrected_for_all_that_stand_beside_them(folders, tmp_path, monkeypatch):
    given = {"langs": ["ar", "en"], "limit": 4, "decodes": ("free", "choice", "logprob")}
    third = ask(monkeypatch, tmp_path / "third", "yesno", Model("third"), **given)
    runs = [folders["answers"], folders["other"], third]
    text = render_report(runs)
    found = compare.compare(runs[0], runs[1:])
    tests = [score for score in found if score.metric == "holm-p"]
    assert len({score.by["b"] for score in tests}) == 2 and {s.n for s in tests} == {len(tests)}
    for score in tests:
        assert shown(Page(text), score), score
    assert "corrected for all n comparisons" in " ".join(text.split())


@pytest.mark.slow
def test_wordings_and_frames_are_no_questions(folders):
    def heads(*names):
        sections = unpacked(render_report([folders[name] for name in names]))
        offered = json.loads(re.search(r'"facets":(\[.*?\]\])', sections)[1])
        found = [*re.findall(r'<th scope="col">(\w+)</th>', sections), *(b for _, b in offered)]
        return {"Question", "Wording", "Frame", "Question, frame"} & set(found)

    assert heads("answers") == {"Question"}
    assert heads("essays") == {"Frame"}
    assert heads("answers", "essays") == {"Frame", "Question, frame"}


@pytest.mark.slow
def test_what_is_wrong_with_a_wording_stands_on_the_page(folders):
    """Of a published wording always, of ours only where the run has the one that is here."""
    pack = packs.load_pack("yesno")
    (run,) = sources.load([folders["answers"]])
    said = words.notes([run])
    assert said == [("ar", p, pack.wordings["ar"][p].note) for p in pack.probes]
    shown = "".join(Page(unpacked(render_report([folders["answers"]]))).text)
    assert all(text in shown for _, _, text in said)

    def of(hashes):
        changed = dataclasses.replace(
            run.run.spec, languages=("ar", "en", "kk"), pack_hashes=hashes
        )
        other = SimpleNamespace(run=Run(run.run.folder, changed))
        return {lang for lang, _, _ in words.notes([other])}

    assert of({"ar": "0" * 12, "kk": "0" * 12}) == {"ar"}
    assert of(pack.hashes) == {"ar", "kk"}


@pytest.mark.parametrize("verb", ["yesno", "logprob"])
def test_a_failure_is_nothing_that_was_not_asked(tmp_path, monkeypatch, verb):
    model = Model("weak")
    whole = model.generate

    def generate(requests, sampling):
        first, *rest = requests
        yield Failure(first.id, "too-long", "9 > 8", 1)
        yield from whole(rest, sampling)

    model.generate = generate
    run = ask(monkeypatch, tmp_path / "weak", verb, model, langs=["en"], limit=2)
    [source] = sources.load([run])
    planned = len(list(Run.open(run).requests()))
    assert source.failures == {"too-long": source.status["failed"]}
    assert source.status["failed"] >= 1 and source.status["missing"] == 0
    assert source.status.total() == planned
    assert "(missing: 1 too-long)" in words.fact(source).sentence


def test_what_every_scorer_leaves_out_is_told_as_that():
    def one(scorer, **left):
        return Score("win-rate", {"scorer": scorer}, 0.5, 0.1, 0.9, 8, left, None, "")

    assert tables.left_out([one("ppl", failed=2), one("bias", failed=2)]) == [
        "Left out of win-rate: 4 failed, of 20 planned, counted for each scorer."
    ]
    assert tables.left_out([one("ppl", failed=2)]) == [
        "Left out of win-rate: 2 failed, of 10 planned."
    ]


def test_answers_that_cancel_out_over_languages_are_told(tmp_path, monkeypatch):
    model = Model("sure")
    model.reply = lambda request, _: "Yes." if request.lang == "es" else "No."
    run = ask(monkeypatch, tmp_path / "sure", "yesno", model, langs=["en", "es"], limit=16)
    [source] = sources.load([run])
    pooled = source.score(["endorsed"], ["probe"])
    assert {s.value for s in pooled} == {0.5}
    [line] = [line for line in words.cautions([source])["sure"] if "reverse" in line]
    assert "In 2 of 2 languages" in line and "100.0" in line and "0.0" in line


@pytest.mark.slow
def test_what_could_not_be_counted_says_why(folders, tmp_path, monkeypatch):
    mute = Model("mute")
    mute.reply = lambda *_: "I cannot answer."
    run = ask(monkeypatch, tmp_path / "mute", "yesno", mute, langs=["en"], limit=2)
    (main, *_), _ = sections.Sections(sources.load([run]), False).made()
    figures = [f for table in main.tables for row in table.rows for f in row.figures]
    # No share, and still the bounds between which it lies.
    assert {(f.text, f.bounds) for f in figures} == {("–", (0.0, 100.0))}
    # Nor can it be compared in these with one that answers; in others it can.
    other = ask(monkeypatch, tmp_path / "other", "yesno", Model("other"), langs=["en"], limit=2)
    text = render_report([run, other])
    assert "other against mute, on the same items" in text and "cannot be paired" not in text
    assert "other against mute, by language" not in text
    shutil.rmtree(run / "judgments")
    text = render_report([run])
    assert "replies have not been read: run `genprobe judge` on it with --judge yesno" in text
    assert "No figure could be computed" in text


def test_an_error_that_quotes_a_statement_is_not_shown(folders, tmp_path, monkeypatch):
    rows = [
        {"lang": "en", "id": f"i{n}/{role}", "pair": f"i{n}", "role": role, "text": f"{role} {n}"}
        for n in range(3)
        for role in ("original", "contrast")
    ]
    runs = []
    for verb, tail in (("yesno", ""), ("logprob", " in other words")):
        data = tmp_path / f"{verb}.jsonl"
        data.write_text("".join(json.dumps(r | {"text": r["text"] + tail}) + "\n" for r in rows))
        runs.append(ask(monkeypatch, tmp_path / verb, verb, Model("m"), data=str(data)))
    with pytest.raises(InputError, match="in other words"):
        paradigm_runs.paradigms(runs)
    for redact in (False, True):
        text = render_report(runs, redact=redact)
        assert "Not compared: they are not of the same items" in text
        assert "in other words" not in text


# --- what a reader must know of a figure


def test_what_is_not_the_models_own_words_says_so(folders, tmp_path, monkeypatch):
    given = {"langs": ["en"], "limit": 4, "decodes": ("choice",)}
    forced = ask(monkeypatch, tmp_path / "forced", "yesno", Model("forced"), **given)
    text = render_report([folders["answers"], forced])
    found = Page(text)
    words = " ".join(" ".join(found.text).split())
    assert "Answers were read as forced choice." in words
    assert "forced, about 4 statements in English (recognition" in words
    assert ", read as forced choice: " in words
    assert ", read as own words, forced choice and P(yes): " in words
    # In the main table, whose rows are of different readings.
    main = text[text.index('<section id="answers"') : text.index('<section id="asked"')]
    assert ">Reading</th>" in main
    assert {"own words", "forced choice"} <= set(re.findall(r'class="name"[^>]*>([^<]+)<', main))


def test_a_table_of_one_of_several_models_names_it(folders):
    text = render_report([folders["other"], folders["pairs"]])
    main = text[text.index('<section id="pairs"') : text.index('<section id="asked"')]
    assert '<span class="name">one-7b</span>' in main and "other-7b" not in main
    # Its dots are those of the model everywhere.
    assert (
        'class="plot s1"' in main.split("<tbody>")[1]
        and 'class="plot s0"' not in main.split("<tbody>")[1]
    )


def test_models_of_one_name_are_not_mixed(tmp_path, monkeypatch):
    langs = {"langs": ["en"], "limit": 2}
    runs = [
        ask(monkeypatch, tmp_path / verb, verb, Model(name), **langs)
        for verb, name in (("yesno", "one/m"), ("logprob", "two/m"))
    ]
    found = sources.load(runs)
    assert [source.name for source in found] == ["one/m", "two/m"]
    told = first.finding(found, [], [])
    assert told.title.text.startswith("one/m agrees with statements in ")
    assert any(line.text.startswith("two/m finds the stereotype likelier") for line in told.told)


@pytest.fixture(scope="module")
def two(folders):
    """Two runs, and their differences."""
    found = sources.load([folders["answers"], folders["other"]])
    made = sections.Sections(found, False)
    assert list(made._compared())
    return found, made.differences


def only(differences):
    """Sections that have no more than these."""
    return SimpleNamespace(differences=differences, splits=[], why={})


def test_the_page_ranks_no_models_whose_thoughts_were_cut_off(two, monkeypatch):
    monkeypatch.setattr(thoughts, "MOST_CUT", -1)  # a run without thoughts has too many, too
    found, differences = two
    told = first.finding(found, differences, [])
    assert "other-7b" not in told.title.text
    assert told.told[-1].text.startswith("one-7b and other-7b cannot be set in order: 0 of ")


def test_a_model_that_nobody_reviewed_is_not_set_beside_a_reviewed_one(two):
    found, differences = two
    bare = first.finding(found, differences, [])
    assert bare.notes["Checked"].startswith("people have read none of these replies; no native")

    def rate(name):
        by = {"run": name, "rate": "endorsed of all"}
        return Score("ppi", by, 0.48, 0.3, 0.6, 40, {}, None, "")

    told = first.finding(found, differences, [], [rate("one-7b")])
    assert told.title == bare.title and "corrected" not in told.title.text
    [line] = [line.text for line in told.told if "corrected" in line.text]
    assert line == (
        "one-7b agrees with statements in 48 of 100 replies, as tossing a coin might, corrected "
        "by people's review; nobody has reviewed other-7b, so this figure stands beside none of "
        "theirs"
    )
    assert "a sample of one-7b, none of other-7b" in told.notes["Checked"]
    # Alone, a reviewed model has its corrected figure in the title.
    [own, _] = found
    title = first.finding([own], [], [], [rate("one-7b")]).title.text
    assert title.startswith("one-7b agrees with statements in 48 of 100 replies,")
    assert title.endswith("corrected by people's review") and "turned round" not in title


def test_a_language_of_which_nothing_was_read_is_named(tmp_path, monkeypatch):
    model = Model("half")
    model.reply = lambda request, _: "Zzz?" if request.lang == "es" else "No."
    run = ask(monkeypatch, tmp_path / "half", "yesno", model, langs=["en", "es"], limit=8)
    [source] = sources.load([run])
    told = first.finding([source], [], [])
    left = told.notes["Left out"]
    assert left.endswith("; everything in Spanish of half.") and " of 32 replies of half (" in left
    # What is left out is of the measure that the title and the picture are about.
    assert " of 16 replies of half (" in first._left_out([source], "recognised")
    none, one = Model("none"), sources.load([run])[0].score(["recognised"], [], "free")[0]
    none.reply = lambda *_: "I cannot answer."
    both = sources.load([run, ask(monkeypatch, tmp_path / "none", "yesno", none, langs=["en"])])
    left = first._left_out(both, "recognised")
    assert one.n < 16 and "in English" not in left and " of none (" in left
    drawn = first.picture([source], told, {"half": 0})
    assert drawn is not None and drawn.coin == 50
    values = {label.text: marks[0].figure.text for label, marks in drawn.rows}
    assert values.keys() == {"All", "English", "Spanish"} and values["Spanish"] == "–"


def test_the_replies_that_are_shown_were_read_as_the_page_says(two):
    found, differences = two
    told = first.finding(found, differences, [])
    high, low = first.quotes(found, told)
    assert high.read.startswith("it ") and low.read.startswith("it does not ")
    for quote in (high, low):
        rows = next(s.with_texts() for s in found if s.name == quote.run)
        rows = rows[(rows["decode"] == "free") & (rows["response"] == quote.reply)]
        rows = rows[(rows["lang"] == "en") & (rows["probe"] == quote.asked)]
        assert quote.lang == "en" and set(rows["says"].dropna()) == {quote is high}


@pytest.mark.parametrize("code", [c for c in registry.names("page") if c != "en"])
def test_in_every_language_the_finding_has_the_figures_that_it_has_in_english(two, code):
    found, differences = two
    about = first.finding(found, differences, [])
    told = local.finding(own.load(code), found, only(differences), [], about)
    ends = {
        f"{100 * value:.1f}"
        for d in findings.differences(differences)
        for value in (d.a.value, d.b.value)
        if value is not None
    }
    lines = [told.title.text, *(line.text for line in told.told)]
    for line in lines:
        figures = set(re.findall(r"\d+\.\d", line))
        assert figures and figures <= ends and "one-7b" in line and "other-7b" in line
    assert len(told.notes) == 4 and all(told.notes.values())
    assert {"العربية", "English"} <= set(re.findall(r"\w+", " ".join(told.notes.values())))
    page = render_report([s.run.folder for s in found[:1]], page_lang=code) if code == "kk" else ""
    assert not page or (
        '<html lang="kk" dir="ltr">' in page and own.load("kk")("page.unread") in page
    )


class Said(HTMLParser):
    """The texts of a page and of its attributes: (language, whether names stand in it, text).

    Code, what was asked and what a model wrote are no texts of the page. An attribute, a title of a
    drawing and what is not to be translated may have names in it, and nothing else of another
    language.
    """

    SILENT = frozenset(("script", "style", "code", "blockquote", "q"))
    SPOKEN = ("aria-label", "data-of", "data-title", "data-copied", "data-selected", "data-old",
              "data-linked", "data-unpacking", "data-damaged")  # fmt: skip

    def __init__(self, text):
        super().__init__()
        self.open, self.said = [("", False, False)], []
        self.feed(ended(text))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        lang, names, silent = self.open[-1]
        lang = given.get("lang") or lang
        kept = given.get("translate") == "no"
        self.said += [(lang, True, " ".join(given[a].split())) for a in self.SPOKEN if given.get(a)]
        if tag not in Page.VOID | Page.SVG:
            quiet = tag in self.SILENT or (tag == "bdi" and not kept)
            self.open.append((lang, names or kept or tag == "title", silent or quiet))

    def handle_endtag(self, tag):
        if tag not in Page.VOID | Page.SVG:
            self.open.pop()

    def handle_data(self, data):
        lang, names, silent = self.open[-1]
        if not silent and data.strip():
            self.said.append((lang, names, " ".join(data.split())))


def names_of(found):
    """A pattern of the names that runs have: of models, measures, reasons, and values of the data."""
    named = {
        *metrics.catalogue(),
        *words.REASONS,
        "Holm",
        "P(yes)",
        "P(no)",
        "of all",
        "answer yes",
    }
    named |= {key.removeprefix(own.METRICS) for key in own.load("kk").texts if own.METRICS in key}
    named |= {
        "statement",
        "probe",
        "wording",
        "residual",
        "few-wordings",
        "answer no",
        "answer ambiguous",
    }
    for source in found:
        named |= {source.name, source.run.spec.command, *source.run.spec.probes, *source.read_in}
        for column in source.outcomes.select_dtypes(["object", "category"]):
            named |= set(map(str, source.outcomes[column].dropna().unique()))
    every = sorted(map(re.escape, named), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(every)})(?![\w-])")


NATIVE = re.compile("|".join(packs.load_language(c).native for c in registry.names("languages")))


def english_left(page, english, code, names):
    """What of a page is still English: words that the language's own texts do not have.

    Where the language is in Latin letters, too: what stands so in the English page.
    """
    latin = code in ("de", "es", "fr", "en")
    theirs = own.load(code)
    texts = [*theirs.texts.values(), *(f"{t.name} {t.text}" for t in theirs.terms)]
    mine = set(re.findall("[A-Za-z]{2,}", " ".join(texts)))
    there = {text for _, _, text in Said(english).said}
    left = {}
    for lang, named, text in Said(page).said:
        bare = NATIVE.sub(" ", names.sub(" ", text) if named else text)
        found = re.findall("[A-Za-z]{2,}", bare)
        if named or lang == "en" or not latin:
            found = [word for word in found if word not in mine or lang == "en"]
        elif text not in there or len(found) < 2:
            found = []
        if found:
            left[text] = (lang, named, found)
    return left


CHOICES = [
    {
        "id": f"c{n}",
        "lang": "en",
        "context": f"A nurse met a pilot ({n}).",
        "label": n % 3,
        "question": "Who was late?",
        "options": ["the nurse", "the pilot", "unknown"],
        "unknown": 2,
        "target": 0,
        "polarity": "neg",
        "bias_type": "profession",
        "condition": "ambig" if n % 2 else "disambig",
    }
    for n in range(8)
]
EVERY_PAGE = os.environ.get("PAGES") == "all"  # `PAGES=all make slow`
PAGES = {
    "one": ("other",), "four": FOUR, "essays": ("essays",), "reviewed": ("answers", "other"),
    "choices": (), "wordings": (), "one reviewed": ("other",), "four reviewed": FOUR,
}  # fmt: skip


@pytest.fixture(scope="module")
def said_in(folders, tmp_path_factory):
    """Pages by name and language; what is counted for one is counted once for all languages."""
    home, langs = tmp_path_factory.mktemp("more"), {"langs": ["ar", "en"], "limit": 4}
    one, other = Model("org/one-7b"), Model("other-7b")
    more = {
        "choices": lambda: [("choices", one, {"langs": ["en"], "data": CHOICES})],
        "wordings": lambda: [("yesno", m, {**langs, "wordings": "2"}) for m in (one, other)],
    }

    @functools.cache
    def counted(name):
        table = None
        if name in more:
            with pytest.MonkeyPatch.context() as patch:
                runs = [
                    ask(patch, home / f"{name}{at}", verb, model, **given)
                    for at, (verb, model, given) in enumerate(more[name]())
                ]
        else:
            runs = [folders[one] for one in PAGES[name]]
        if "reviewed" in name:  # people read yes and no
            copies, table = reviewed(runs[:2], tmp_path_factory.mktemp("review"))
            runs = [*copies, *runs[2:]]
        found = sources.load(runs)
        made = sections.Sections(found, False, table)
        parts = made.made()
        made.made = lambda: parts
        rates = {w: corrected.of_review(found, table, whole=w) for w in (True, False) if table}
        return found, made, rates, table

    @functools.cache
    def say(name, code):
        found, made, rates, table = counted(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "load", lambda *_: found)
            patch.setattr(sections, "Sections", lambda *_: made)
            patch.setattr(corrected, "of_review", lambda *_, whole=False: rates[whole])
            return found, render_report(
                [s.run.folder for s in found], page_lang=code, reviewed=table
            )

    return say


@pytest.mark.parametrize(
    ("code", "name"),
    [(code, "choices") for code in registry.names("page") if code != "en"]
    + [
        pytest.param(code, name, marks=pytest.mark.slow)
        for at, name in enumerate(PAGES)
        for number, code in enumerate(registry.names("page"))
        if code != "en" and name not in ("choices", "one reviewed", "four reviewed")
        # Each takes seconds: of every page three languages, of every language some pages.
        if EVERY_PAGE or (at + number) % 3 == 0
    ],
)
def test_a_page_has_no_prose_but_the_reader_s_language(said_in, code, name):
    found, english = said_in(name, "en")
    names = names_of(found)
    assert english_left(said_in(name, code)[1], english, code, names) == {}
    assert len(english_left(english, english, "en", names)) > 20  # it finds the English of English


def test_no_language_calls_sure_what_is_not(two):
    found, differences = two
    about = first.finding(found, differences, [])
    sure = any(d.reach for d in findings.differences(differences))
    for code in registry.names("page"):
        said = own.load(code)
        told = local.finding(said, found, only(differences), [], about)
        end = said.texts["finding.higher"].rpartition("}")[2]
        assert any(end in line.text for line in (told.title, *told.told)) is sure
        none = said.texts["finding.unsure"].partition("{")[0]
        assert told.notes[said("notes.sure")].startswith(none) is not sure


def test_words_are_explained_once_in_a_place_and_any_text_stays_text():
    explained = speech.explainer(own.load("kk"), own.load("en"))
    shown = explained('<b>endorsed</b> & "bounds", endorsed', "here")
    assert str(shown) == (
        '&lt;b&gt;<button type="button" class="term" popovertarget="w-endorsed">endorsed</button>'
        '&lt;/b&gt; &amp; &#34;<button type="button" class="term" popovertarget="w-bounds">bounds'
        "</button>&#34;, endorsed"
    )
    assert "button" not in explained("endorsed", "here") and "button" in explained("endorsed", "x")
    assert "button" not in explained("unsurely boundless", "y")
    # No line is broken between a word and the signs beside it.
    kept = r'<span class="kept">\(<button [^>]*>endorsed</button>,</span> as'
    assert re.fullmatch(kept, explained("(endorsed, as", "z"))


def test_methods_say_the_same_in_markdown_and_latex_with_references_and_signatures(two):
    found, _ = two
    sentences = methods.paragraph(
        found, {"How sure": "p < 0.05 after Holm's correction."}, own.load("en")
    )
    scores = methods.main_scores(found)
    plain, paper = methods.markdown(sentences, scores), methods.latex(sentences, scores)
    assert "one-7b and other-7b were each asked the questions of" in sentences[0]
    for sentence in sentences:
        assert formats.marked(sentence) in plain and latex.tex(sentence) in paper
    for author in ("Mitchell", "Rubin", "Holm"):
        assert any(author in line for line in plain.splitlines() if line.startswith("- "))
        assert re.search(rf"^\\item .*{author}", paper, re.M)
    for score in scores:
        assert f"`{score.signature}`" in plain and score.signature in paper
    body = re.sub(r"^%.*$|\\[{}]", "", paper, flags=re.M)
    assert body.count("{") == body.count("}") and paper.count(r"\begin") == paper.count(r"\end")


@pytest.mark.parametrize("code", [c for c in registry.names("page") if c != "en"])
def test_methods_and_labels_of_replies_are_in_the_language_of_the_page(two, code):
    found, said = two[0], own.load(code)
    plain = methods.paragraph(found, {"How sure": "p < 0.05, Holm's correction."}, own.load("en"))
    notes = {said("notes.sure"): said("finding.sure", n="3")}
    told = methods.paragraph(found, notes, said)
    assert not set(told) & set(plain) and methods.references(told) == methods.references(plain)
    assert "\u2068" not in "".join(told)
    section = str(replies.section({"m": found[0].with_texts()}, False, words=said))
    columns = json.loads(unpacked(section).removeprefix(section))["columns"]
    english = {*words.REASONS.values(), "yes", "ambiguous", "Arabic", "own words"}
    for name in ("answer", "kind", "left_out", "lang", "decode"):
        labels = {one.rpartition(": ")[2] for one in columns[name]["labels"] if one}
        assert labels and not labels & english, name


def test_the_questions_stand_as_they_were_asked(two, page):
    found, _ = two
    asked = dict(words.as_asked(found))
    assert asked.keys() == {"ar", "en"} and len(asked["ar"]) == 3
    pack = found[0].run.pack
    shown = html.unescape(page.read_text("utf-8"))
    for code, texts in asked.items():
        for probe, text in texts:
            assert text == pack.wordings[code][probe].ask("…") and text in shown


def test_what_was_left_out_has_its_number():
    scores = [
        Score("endorsed", {}, 0.5, 0, 1, 9, {"refusal": 2, "und": 1}, None, ""),
        Score("yes", {}, 0.5, 0, 1, 9, {"refusal": 5}, None, ""),
    ]
    assert [(why, n) for why, _, n in words.reasons_of(scores)] == [
        ("refusal", "5"),
        ("und", "1"),
    ]


# --- the parts


def test_plurals():
    assert words.many(1, "planned reply") == "1 planned reply"
    assert words.many(33, "planned reply") == "33 planned replies"


def test_axes():
    def score(value, low=None, high=None, metric="yes"):
        return Score(metric, {}, value, low, high, 9, {}, None, "")

    share = tables.axis("yes", [score(0.2, 0.1, 0.3)])
    assert share and (share.at(0), share.at(0.25), share.at(1)) == (0, 25, 100)
    gap = tables.axis("contrast-gap", [score(0.12, -0.03, 0.17)])
    assert gap and (gap.low, gap.high, gap.middle) == (-0.2, 0.2, True)
    assert gap.ticks == ("−20", "", "0", "", "+20") and gap.at(-9) == 0
    bias = tables.axis("bias-score", [score(0.012, None, None)])
    assert bias and bias.at(0) == 50 and 0.012 <= bias.high <= 0.02
    assert tables.axis("bias-score", [score(0.0)]) is not None
    assert (
        tables.axis("yes", [score(None)]) is None and tables.axis("mcnemar-p", [score(0.1)]) is None
    )


def test_no_cell_covers_another():
    scores = [
        Score("accuracy", {"lang": "en", "scorer": name}, value, None, None, 9, {}, None, "")
        for name, value in (("choice", 0.25), ("choice-token", 0.5))
    ]
    made = tables.table(scores, ["lang", "run"], caption="")
    assert made and made.scores == scores and made.heads == ["Scorer"]


def test_the_vote():
    assert sections.verdict(["negative"] * 3 + ["other"] * 2) == "negative"
    assert sections.verdict(["negative"] * 2 + ["other"] * 2) == "not negative"
    assert sections.verdict(["negative"] * 2 + ["language"] * 3) == "no label"


def test_every_measure_has_its_text():
    from genprobe import metrics

    explained = {n for d in words.definitions(list(metrics.catalogue())) for n, _ in d.measures}
    assert explained == metrics.catalogue().keys()
    for one in words.definitions(list(metrics.default())):
        assert len(one.text) > 80, one.measures
    assert words.inline("a `b<c` **d** [e](f.md)") == ("a <code>b&lt;c</code> <strong>d</strong> e")
