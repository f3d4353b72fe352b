"""The browser of replies, in a real headless Chromium: what it shows, finds and never runs."""

import base64
import gzip
import hashlib
import json
import random
import re
import shutil
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from genprobe import text
from genprobe.datasets import statements
from genprobe.outcomes import table
from genprobe.records import Failure, Judgment, Request, Response, Statement
from genprobe.report import replies
from genprobe.resources.packs import load_language, load_pack
from genprobe.tasks.pipeline.plan import plan

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DATA = Path(__file__).parents[2] / "shared" / "data" / "shades"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


# --- a page around the section, and runs to show


def wrap(section):
    """The least page that could hold the section, with a policy as strict as any."""
    css, js = ((replies.HERE / f"replies.{kind}").read_text("utf-8") for kind in ("css", "js"))
    css = (
        f":root {{ color-scheme: light dark }} body {{ background: light-dark(#fff, #111) }} {css}"
    )

    def allowed(source):
        return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

    policy = f"default-src 'none'; style-src {allowed(css)}; script-src {allowed(js)}; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Report</title><style>{css}</style></head><body><main><h1>Report</h1>{section}"
        f"</main><script>{js}</script></body></html>"
    )


def unpack(section):
    """The data of a section, as the page reads them."""
    block = re.search(r'id="replies-data">([^<]*)<', section).group(1)
    return json.loads(gzip.decompress(base64.b64decode(block)))


def cells(data, name):
    column = data["columns"][name]
    return [column["values"][at] for at in column.get("codes", [0] * data["n"])]


def table_of(rows, model="m"):
    """Outcomes of [(statement, prompt, reply, verdicts)]; None for a reply that failed."""
    said, asked, responses, failures = [], [], [], []
    judged = {"yesno": [], "language": [], "refusal": []}
    for n, (item, prompt, reply, verdicts) in enumerate(rows):
        at = f"r{n}"
        said.append(item)
        message = [{"role": "user", "content": prompt}]
        probe = verdicts.get("probe", "agreement")
        asked.append(Request(at, item.id, item.lang, "yesno@1", probe, message, 0, 0))
        if reply is None:
            failures.append(Failure(at, "too-long", "", 1))
            continue
        thought = verdicts.get("thought")
        apart = {"reasoning": thought, "reasoning_from": "reasoning"} if thought else {}
        responses.append(Response(at, reply, "stop", "", 1, 1, **apart))
        judged["yesno"].append(
            Judgment(
                at,
                "yesno",
                verdicts.get("answer", "yes"),
                None,
                verdicts.get("rule", "word"),
                verdicts.get("evidence", ""),
                {"kind": verdicts.get("kind", "answer"), "conflict": bool(n % 3 == 1)},
            )
        )
        for judge, label in (("language", verdicts.get("language", item.lang)), ("refusal", "no")):
            judged[judge].append(Judgment(at, judge, label, None, "", "", {}))
    run = SimpleNamespace(
        spec=SimpleNamespace(command="yesno", model=model, shown="main", pack=load_pack().id),
        pack=load_pack(),
        statements=lambda: iter({(s.id, s.lang): s for s in said}.values()),
        requests=lambda: iter(asked),
        responses=lambda: iter(responses),
        logprobs=lambda: iter(()),
        answered=lambda: (r.request for r in responses),
        failures=lambda: iter(failures),
        judges=lambda: dict.fromkeys(judged, "x@1"),
        judgments=lambda judge: iter(judged[judge]),
    )
    return table.outcomes(run)


def item(id="s1", lang="en", words="Cats are quiet.", bias="age"):
    return Statement(id, lang, words, "original", "", bias, "", "", (), "t", {})


def draw(seed, drop=0):
    """A run of a seventh of the shipped statements: every language, all probes, replies of many kinds."""
    dice, rows = random.Random(seed), []
    found = statements.load("builtin")[0][::7]
    by_id = {(s.id, s.lang): s for s in found}
    for request in plan(found, load_pack(), list(load_pack().probes), seed=7):
        statement = by_id[request.statement, request.lang]
        prompt = request.messages[-1]["content"]
        words = load_language(request.lang if dice.random() < 0.8 else "en").words
        answer = dice.choice(("yes", "no"))
        word = next(iter(text.expand((words[answer] or words[f"{answer}_alone"])[0])))
        reply = dice.choice(
            (
                f"{word.capitalize()}.",
                f"\n\n{word}. {statement.text}",
                f"{word}, 1 < 2 & 3",
                "",
                "…",
            )
        )
        if dice.random() < 0.2:
            reply = unicodedata.normalize("NFD", reply)
        if dice.random() < 0.5:
            reply = prompt + reply
        verdicts = {"probe": request.probe, "answer": answer, "evidence": word}
        verdicts["rule"] = dice.choice(("word", "word-alone"))
        if not reply.removeprefix(prompt).strip("…"):
            verdicts |= {"answer": "ambiguous", "rule": "no-answer", "evidence": ""}
            verdicts["kind"] = "echo" if reply.startswith(prompt) else "empty"
        rows.append((statement, prompt, None if dice.random() < drop else reply, verdicts))
    return table_of(rows, f"model-{seed}")


@pytest.fixture(scope="module")
def tables():
    return {"first": draw(1), "second": draw(4, drop=0.03)}


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class View:
    """A page with a section, which keeps everything that it should never do."""

    def __init__(self, chromium, folder, section, link="", script=True, old=False, **options):
        self.file = folder / "page.html"
        self.file.write_text(wrap(section), "utf-8")
        context = chromium.new_context(java_script_enabled=script, **options)
        self.page = page = context.new_page()
        self.wrong = []
        page.on("console", lambda m: self.wrong.append(("console", m.text)))
        page.on("pageerror", lambda e: self.wrong.append(("error", str(e))))
        page.on("dialog", lambda d: (self.wrong.append(("dialog", d.message)), d.dismiss()))
        page.on("request", lambda r: self.wrong.append(("request", r.url)))
        page.on("popup", lambda p: self.wrong.append(("popup", p.url)))
        if script:
            page.expose_function("canary", lambda *words: self.wrong.append(("canary", words)))
        if old:
            page.add_init_script("delete globalThis.DecompressionStream")
        page.goto(self.file.as_uri() + link)
        assert self.wrong.pop(0)[0] == "request"  # for the file itself

    def open(self):
        self.page.click("#replies-open")
        self.page.wait_for_selector("#replies-list li")
        return self

    def choose(self, **values):
        for name, label in values.items():
            self.page.evaluate(
                """([name, label]) => {
                  const select = document.getElementById(`replies-by-${name}`);
                  const found = [...select.options].find((o) => o.text.replace(/ \\([\\d,]+\\)$/, "") === label);
                  select.value = found.value;
                  select.dispatchEvent(new Event("change"));
                }""",
                [name, label],
            )

    def search(self, words):
        self.page.fill("#replies-q", words)

    @property
    def count(self):
        return int(self.page.inner_text("#replies-count").split(" ")[0].replace(",", ""))

    def counts(self, name):
        """Value -> count, as the options of a filter say it."""
        options = self.page.locator(f"#replies-by-{name} option").all_text_contents()
        pairs = (re.fullmatch(r"(.*) \(([\d,]+)\)", o).groups() for o in options)
        return {value: int(n.replace(",", "")) for value, n in pairs if n != "0"}

    def texts(self, part="Reply"):
        """What stands in this part of each card."""
        return self.page.evaluate(
            """(part) => [...document.querySelectorAll(".r-part")]
              .filter((p) => p.firstElementChild.textContent === part)
              .map((p) => p.querySelector(".r-text")?.textContent ?? "")""",
            part,
        )


@pytest.fixture(scope="module")
def view(chromium, tables, tmp_path_factory):
    """Two runs, opened; every test leaves it without a filter."""
    folder = tmp_path_factory.mktemp("replies")
    made = View(chromium, folder, replies.section(tables, False)).open()
    yield made
    assert made.wrong == []


@pytest.fixture
def fresh(view):
    yield view
    view.page.evaluate("document.getElementById('replies-clear').disabled = false")
    view.page.click("#replies-clear")
    view.page.select_option("#replies-sort", "")


def shown(words):
    """A text as the page writes it: unseen characters as their names, no white space before."""
    signs = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\u00ad\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]"
    return re.sub(signs, lambda m: f"U+{ord(m[0]):04X}", words.lstrip())


def reply_of(row):
    at = text.strip_echo(row.prompt, row.response) if isinstance(row.response, str) else 0
    return row.response[at:] if at else row.response if isinstance(row.response, str) else ""


# --- opening


@needs_chromium
def test_nothing_is_shown_before_the_press_nor_asked_of_the_network(chromium, tables, tmp_path):
    made = View(chromium, tmp_path, replies.section(tables, False))
    answered = sum((t["left_out"] == "").sum() for t in tables.values())
    assert f"the {answered:,} replies" in made.page.inner_text("#replies-open")
    assert not made.page.is_visible("#replies-view")
    words = tables["first"]["text"].iloc[0]
    assert words not in made.page.content()
    made.open()
    assert words in made.texts("Statement")
    assert not made.page.is_visible("#replies-gate")
    assert made.page.evaluate("document.activeElement.id") == "replies-range"
    assert made.count == sum(map(len, tables.values()))
    assert "planned replies" in made.page.inner_text("#replies-count")
    assert made.wrong == []


@needs_chromium
def test_without_scripts_the_page_names_the_file(chromium, tables, tmp_path):
    made = View(chromium, tmp_path, replies.section(tables, False), script=False)
    assert "--export FILE.csv" in made.page.inner_text("noscript")
    assert not made.page.is_visible("#replies-open")


@needs_chromium
def test_an_old_browser_is_told(chromium, tables, tmp_path):
    made = View(chromium, tmp_path, replies.section(tables, False), old=True)
    assert "--export FILE.csv" in made.page.inner_text("#replies-message")
    assert not made.page.is_visible("#replies-open")


@needs_chromium
def test_a_damaged_page_says_so(chromium, tables, tmp_path):
    section = replies.section(tables, False)
    at = section.index('id="replies-data">') + 2000
    made = View(chromium, tmp_path, section[:at] + "AAAA" + section[at + 4 :])
    made.page.click("#replies-open")
    made.page.wait_for_function(
        "document.getElementById('replies-message').textContent.includes('damaged')"
    )
    assert made.page.is_enabled("#replies-open")


# --- filters, search, order


FILTERS = [
    {"lang": "Arabic"},
    {"run": "second", "lang": "Chinese (Traditional)", "answer": "no"},
    {"probe": "disagreement", "kind": "echo"},
    {"rule": "word", "conflict": "yes", "bias_type": "gender"},
    {"role": "contrast", "left_out": "everything: failed (too-long)"},
    {"answer": "none"},
]


@needs_chromium
@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_filters_are_those_of_pandas(fresh, tables, chosen):
    fresh.choose(**chosen)
    rows = pd.concat([t.assign(run=name) for name, t in tables.items()])
    rows["left_out"] = [
        "everything: failed (too-long)"
        if r.left_out == "failed"
        else f"clear answers: {r.kind}"
        if r.answer == "ambiguous"
        else "nothing"
        for r in rows.itertuples()
    ]
    rows["lang"] = rows["lang"].map(lambda code: load_language(code).name)
    rows["conflict"] = rows["conflict"].map({True: "yes", False: "no"})
    rows["role"] = rows["role"].map({"original": "stereotype", "contrast": "contrast"})
    columns = ["run", "lang", "probe", "answer", "kind", "rule", "bias_type", "conflict"]
    rows[columns] = rows[columns].astype(object)
    rows[columns] = rows[columns].where(rows[columns].notna(), "none")

    def fits(without=""):
        keep = pd.Series(True, rows.index)
        for name, value in chosen.items():
            if name != without:
                keep &= rows[name] == value
        return rows[keep.to_numpy()]

    rows.index = range(len(rows))
    assert fresh.count == len(fits()) > 0
    assert fresh.texts("Statement") == [shown(t) for t in fits()["text"][:20]]
    assert fresh.texts() == [
        shown(reply_of(r)).rstrip() if not reply_of(r).strip() else shown(reply_of(r))
        for r in fits()[:20].itertuples()
    ]
    for name in ("lang", "answer", "rule", "left_out"):  # of what could be chosen instead
        counts = fits(name)[name].value_counts().to_dict()
        found = fresh.counts(name)
        assert found.pop("All") == len(fits(name))
        assert found == counts


QUERIES = ["NEVER", "ist", "naïve ", "женщ", "महिला", "নারী", "女", "النساء", "زن‌ها", "زنها", "مـردان", "ＷＯＭＥＮ", "1 < 2 & 3", "é", "e\u0301", "zzzz", "."]  # fmt: skip


@needs_chromium
def test_search_is_that_of_the_judges(fresh, tables):
    rows = [row for t in tables.values() for row in t.itertuples()]
    for query in QUERIES:
        wanted = text.normalise(query.strip())
        fits = [
            r
            for r in rows
            if wanted in text.normalise(r.text) or wanted in text.normalise(reply_of(r))
        ]
        fresh.search(query)
        assert fresh.count == len(fits), query
        assert fresh.texts("Statement") == [shown(r.text) for r in fits[:20]]
        if fits:
            marks = fresh.page.locator("mark.r-hit").all_text_contents()
            assert any(text.normalise(mark) == wanted for mark in marks), query
            # Never a letter without its marks.
            assert not any(unicodedata.category(mark[0]).startswith("M") for mark in marks)


@needs_chromium
def test_folding_is_that_of_the_judges_for_every_letter(view):
    source = (replies.HERE / "replies.js").read_text("utf-8")
    source = source[source.index("  const ASCII") : source.index("  function hits")]
    chars = [
        chr(c)
        for c in range(sys.maxunicode + 1)
        if unicodedata.category(chr(c)) in ("Ll", "Lu", "Lt", "Lm", "Mn", "Cf", "Po", "Sk", "Nd")
    ]
    folded = view.page.evaluate(f"(chars) => {{ {source}\nreturn chars.map(fold); }}", chars)
    differ = [c for c, js in zip(chars, folded, strict=True) if js != text.normalise(c)]
    # Cherokee, the iota below ancient Greek vowels, letters of Church Slavonic.
    rare = re.compile("[\u13a0-\u13ff\uab70-\uabbf\u0345\u037a\u1f80-\u1fff\u1c80-\u1c88]")
    assert [c for c in differ if not rare.match(c)] == []


@needs_chromium
def test_models_stand_side_by_side_by_statement(fresh):
    fresh.choose(lang="Polish", probe="agreement")
    fresh.page.select_option("#replies-sort", "statement")
    said = fresh.texts("Statement")
    runs = fresh.page.locator(".r-run").all_text_contents()
    assert said[0::2] == said[1::2]
    assert runs == ["first", "second"] * 10


@needs_chromium
def test_orders_by_length(fresh, tables):
    lengths = sorted(
        (len(reply_of(r)) for t in tables.values() for r in t.itertuples()), reverse=True
    )
    fresh.page.select_option("#replies-sort", "longest")
    first = fresh.page.evaluate(
        "[...document.querySelectorAll('.r-pair .r-part:last-child .r-text')].map((t) => t.textContent.length)"
    )
    assert abs(first[0] - lengths[0]) <= 2  # the white space before
    assert first[0] > 60


# --- pages, links, keyboard


@needs_chromium
def test_pages_turn_by_key_button_and_number(fresh, tables):
    page = fresh.page
    every = [shown(r.text) for t in tables.values() for r in t.itertuples()]
    page.focus("#replies-range")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#replies-range") == "21 to 40"
    assert fresh.texts("Statement") == every[20:40]
    assert page.evaluate("document.activeElement.id") == "replies-range"
    page.click("#replies-next")
    assert fresh.texts("Statement") == every[40:60]
    page.fill("#replies-page", "7")
    page.keyboard.press("Enter")
    assert fresh.texts("Statement") == every[120:140]
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#replies-range") == "101 to 120"
    page.click("#replies-last")
    assert page.is_disabled("#replies-next")
    assert len(fresh.texts("Statement")) == len(every) % 20 or 20
    page.focus("#replies-q")
    page.keyboard.press("ArrowLeft")  # moves in the field
    assert page.is_disabled("#replies-next")


@needs_chromium
def test_a_view_is_a_link(fresh, chromium, tables, tmp_path):
    fresh.choose(lang="Persian", rule="word")
    fresh.search("زن")
    link = fresh.page.evaluate("location.hash")
    assert link.startswith("#replies?lang=fa&rule=word&q=")
    made = View(chromium, tmp_path, replies.section(tables, False), link=link)
    assert not made.page.is_visible("#replies-view")  # the warning first
    made.open()
    assert made.count == fresh.count > 0
    assert made.texts() == fresh.texts()
    assert made.page.input_value("#replies-q") == "زن"
    # A link of the page itself, and one of someone who tries.
    made.page.evaluate(
        "location.hash = '#replies?lang=kk&__proto__=x&page=-3&sort=constructor&run=nobody'"
    )
    made.page.wait_for_function("document.getElementById('replies-by-lang').value !== '-1'")
    assert made.count == sum((t["lang"] == "kk").sum() for t in tables.values())
    assert made.wrong == []


@needs_chromium
@pytest.mark.parametrize(("scheme", "redact"), [("light", False), ("dark", False), ("dark", True)])
def test_axe_finds_nothing(chromium, tables, tmp_path, scheme, redact):
    from axe_playwright_python.sync_playwright import Axe

    some = {name: t[t["lang"].isin(("fa", "hi"))][45:48] for name, t in tables.items()}
    made = View(chromium, tmp_path, replies.section(some, redact), color_scheme=scheme)

    def faults():
        found = Axe().run(made.page).response["violations"]
        return [(v["id"], v["nodes"][0]["html"], v["nodes"][0]["failureSummary"]) for v in found]

    assert faults() == []
    made.open()
    made.page.click("#replies-more summary")
    if not redact:
        made.search(".")
        made.page.locator("#replies-list summary").first.click()
    assert faults() == []


@needs_chromium
def test_paper_has_the_replies_and_no_controls(view):
    view.page.emulate_media(media="print")
    assert view.page.is_visible("#replies-list li:last-child")
    assert not view.page.is_visible("#replies-form")
    assert not view.page.is_visible("#replies-pager")
    view.page.emulate_media(media="screen")


@needs_chromium
def test_a_phone_needs_no_sideways_scrolling(chromium, tables, tmp_path):
    made = View(
        chromium, tmp_path, replies.section(tables, False), viewport={"width": 320, "height": 640}
    ).open()
    made.page.click("#replies-more summary")
    assert made.page.evaluate("document.documentElement.scrollWidth") <= 320


# --- scripts of the world


@needs_chromium
@pytest.mark.parametrize(
    "name, code, direction",
    [
        ("Arabic", "ar", "rtl"),
        ("Persian", "fa", "rtl"),
        ("Hindi", "hi", "ltr"),
        ("Kazakh", "kk", "ltr"),
    ],
)
def test_direction_and_language_are_those_of_the_text(fresh, name, code, direction):
    fresh.choose(lang=name)
    found = fresh.page.evaluate(
        """[...document.querySelectorAll(".r-pair .r-part:first-child .r-text")].map((t) =>
          [t.lang, getComputedStyle(t).direction, getComputedStyle(t).unicodeBidi])"""
    )
    assert found == [[code, direction, "isolate"]] * 20


@needs_chromium
def test_a_reply_in_another_language_has_its_own_direction(chromium, tmp_path):
    words = "القطط هادئة."
    rows = [
        (item(lang="ar", words=words), words, "Yes, cats are.", {"language": "en"}),
        (item(lang="ar", words=words), words, "نعم.", {"language": "und"}),
        (item(lang="ar", words=words), words, "OK", {"language": "und"}),
    ]
    made = View(chromium, tmp_path, replies.section({"m": table_of(rows)}, False)).open()
    found = made.page.evaluate(
        """[...document.querySelectorAll(".r-pair .r-part:last-child .r-text")].map((t) =>
          [t.lang, getComputedStyle(t).direction])"""
    )
    assert found == [["en", "ltr"], ["ar", "rtl"], ["ar", "ltr"]]


@needs_chromium
def test_indic_scripts_shape(chromium, tmp_path):
    """A conjunct is one glyph, other than its letters side by side, and not the empty box."""
    for lang, conjunct in (("hi", "क्ष"), ("bn", "ক্ষ")):
        one = (item(lang=lang, words=conjunct), "?", conjunct, {})
        made = View(chromium, tmp_path, replies.section({"m": table_of([one])}, False)).open()
        widths = made.page.evaluate(
            """([conjunct, letters, none]) => {
              const text = document.querySelector(".r-text");
              const font = getComputedStyle(text).font;
              const range = document.createRange();
              range.selectNodeContents(text);
              const pen = document.createElement("canvas").getContext("2d");
              pen.font = font;
              const width = (words) => pen.measureText(words).width;
              const ink = (words) => {
                pen.clearRect(0, 0, 300, 150);
                pen.fillText(words, 10, 50);
                return pen.getImageData(0, 0, 300, 150).data.join();
              };
              return [range.getBoundingClientRect().width, width(conjunct),
                letters.map(width).reduce((a, b) => a + b), letters.some((l) => ink(l) === ink(none))];
            }""",
            [conjunct, [conjunct[0], conjunct[2]], "\U0010fffe"],
        )
        shaped, drawn, apart, empty = widths
        assert shaped == pytest.approx(drawn, abs=0.5)
        assert abs(shaped - apart) > 1
        assert not empty
        made.page.context.close()


# --- hostile texts

HOSTILE = [
    "<script>canary(1)</script>",
    "</script><script>canary(2)</script>",
    "</SCRIPT ><svg onload=canary(3)>",
    "<img src=x onerror=canary(4)>",
    '"><img src=x onerror="canary(5)">',
    "' onmouseover='canary(6)' x='",
    "<svg><animate onbegin=canary(7) attributeName=x></svg>",
    '<iframe srcdoc="<script>parent.canary(8)</script>"></iframe>',
    '<a href="javascript:canary(9)">press</a>',
    "javascript:canary(10)",
    "data:text/html,<script>canary(11)</script>",
    '<object data="data:text/html,<script>canary(12)</script>"></object>',
    "<!--<script>canary(13)</script>-->",
    "--><script>canary(14)</script><!--",
    "<style>*{background:url(https://example.org/15)}</style>",
    "</style><script>canary(16)</script>",
    "</title></textarea></noscript><script>canary(17)</script>",
    '<meta http-equiv="refresh" content="0;url=https://example.org/18">',
    '<link rel="stylesheet" href="https://example.org/19.css"><base href="https://example.org/">',
    "<form action=https://example.org/20><button autofocus>x</button></form>",
    "{{ 7*7 }} {% for x in y %} ${canary(21)} #{7*7} <%= 7*7 %>",
    "\\u003cscript>canary(22)\\u003c/script> &lt;script&gt;canary(22)&lt;/script&gt;",
    "`${canary(23)}`; ');canary(23);//",
    "a\u2028canary(24)\u2029b",
    "=HYPERLINK(\"https://example.org/25\") +cmd|' /C calc'!A0 @SUM(1) -1",
    "\u202egnp.exe\u2066 isolated \u2069 \u200f\u200e\u061c end",
    "nul \x00 bell \x07 esc \x1b[31m red \x1b]8;;https://example.org\x07link \x9b2J \x7f",
    "half \ud800 a pair \udfff and \U0001f600 one",
    '{"__proto__": {"polluted": 28}, "constructor": {"prototype": {"polluted": 29}}}',
    "__proto__",
    "constructor",
    "toString",
    "<details open ontoggle=canary(33)><summary>x</summary></details>",
    "Z" + "\u0351\u0362" * 300,
    "x" * 5000,
]  # fmt: skip


@needs_chromium
def test_nothing_that_a_model_wrote_runs(chromium, tmp_path):
    made = {}
    for run, payload in enumerate(HOSTILE):
        statement = item(f"{run} {payload}", words=payload, bias=payload)
        verdicts = {"evidence": payload, "rule": payload, "kind": payload}
        verdicts["language"] = text.whole(payload)
        made[f"{run} {payload}"] = table_of(
            [(statement, f"Do you? {payload}", payload, verdicts)], payload
        )
    # Straight into a table too, which `table.outcomes` would have rid of half pairs.
    for (_name, rows), payload in zip(made.items(), HOSTILE, strict=True):
        rows["response"] = rows["text"] = rows["evidence"] = pd.Series([payload], dtype=object)
    section = replies.section(made, False)
    assert section.count("<script") == 1
    seen = View(chromium, tmp_path, section).open()
    texts = []
    for turn in range(2):
        seen.page.evaluate(
            "document.querySelectorAll('#replies-list summary, .r-more').forEach((e) => e.click())"
        )
        texts += seen.texts()
        assert seen.texts() == seen.texts("Statement")
        seen.page.mouse.move(300, 300)
        if not turn:
            seen.page.click("#replies-next")
    wanted = [
        re.sub("[\ud800-\udfff\u061c]", lambda m: f"U+{ord(m[0]):04X}", shown(p)) for p in HOSTILE
    ]
    assert texts == wanted
    for payload in HOSTILE[:3]:
        seen.search(payload)
        assert seen.count >= 1
    seen.search("")
    seen.page.click("#replies-more summary")
    for name in ("run", "bias_type", "rule", "kind"):
        seen.page.select_option(f"#replies-by-{name}", index=4)
        seen.page.select_option(f"#replies-by-{name}", index=0)
    assert seen.page.evaluate("({}).polluted ?? null") is None
    ours = "section div p span form ol li article header h2 h3 h4 h5 dl dt dd nav strong code "
    ours += "noscript script button input select option mark bdi details summary label"
    tags = seen.page.evaluate(
        "[...document.querySelectorAll('#replies *')].map((e) => e.localName)"
    )
    assert set(tags) <= set(ours.split())
    assert seen.page.locator("#replies [style], #replies [href], #replies [src]").count() == 0
    seen.page.wait_for_timeout(100)
    assert seen.wrong == []


@needs_chromium
def test_a_reply_of_a_megabyte_is_cut_and_says_so(chromium, tmp_path):
    huge = "".join(random.Random(1).choices("abcdefghij ", k=1 << 20))
    rows = [(item(), "Do you?", f"Do you?{huge}", {"evidence": huge[-5:]})]
    section = replies.section({"m": table_of(rows)}, False)
    assert len(section) < 100_000
    made = View(chromium, tmp_path, section).open()
    card = made.page.inner_text("#replies-list")
    assert "first 20,000 of its 1,048,576 letters" in card
    assert "Rests on" in card  # it stands behind the cut
    assert 500 < len(made.texts()[0]) < 700
    made.page.click(".r-more")
    assert len(made.texts()[0]) == len(huge[:20_000].lstrip())
    made.page.click(".r-more")
    assert len(made.texts()[0]) < 700


# --- what the page holds


def test_wordings_and_personas_can_be_filtered(tables):
    name, table = next(iter(tables.items()))
    rows = table.assign(
        wording=["plain", "formal"] * (len(table) // 2) + ["plain"] * (len(table) % 2),
        persona=["none"] * (len(table) - 1) + ["teacher"],
        instruction=["en"] * (len(table) - 1) + ["hi"],
    )
    data = unpack(replies.section({name: rows}, False))
    assert {"wording", "persona", "instruction"} <= dict(data["facets"]).keys()
    assert set(data["columns"]["wording"]["values"]) == {"plain", "formal"}


def test_no_text_is_there_twice(tables):
    data = unpack(replies.section(tables, False))
    rows = [r for t in tables.values() for r in t.itertuples()]
    columns = data["columns"]
    for name in ("text", "reply", "around"):
        values = columns[name]["values"]
        assert len({json.dumps(v) for v in values}) == len(values)
    asked = [w[0] if len(w) == 1 else w[0] + t + w[1] for w, t in zip(cells(data, "around"), cells(data, "text"), strict=True)]  # fmt: skip
    assert asked == [r.prompt for r in rows]
    said = [
        None if reply is None else (prompt if echo else "") + reply
        for reply, echo, prompt in zip(
            cells(data, "reply"), cells(data, "echo"), asked, strict=True
        )
    ]
    assert said == [r.response if isinstance(r.response, str) else None for r in rows]
    assert len(columns["around"]["values"]) == 18 * 3
    packed = json.dumps(data, ensure_ascii=False)
    assert packed.count(json.dumps(rows[0].text, ensure_ascii=False)) == 1


def test_evidence_is_where_the_answer_stands():
    def marked(reply, evidence, rule="word", prompt="?"):
        rows = [(item(), prompt, reply, {"evidence": evidence, "rule": rule})]
        data = unpack(replies.section({"m": table_of(rows)}, False))
        (reply,), ((low, high),) = cells(data, "reply"), cells(data, "place")
        units = reply.encode("utf-16-le", "surrogatepass")
        return len(reply[:low]), units[2 * low : 2 * high].decode("utf-16-le", "surrogatepass")

    assert marked("I know. No.", "No") == (8, "No")
    assert marked("know, no", "no") == (6, "no")
    assert marked("😀 Yes", "Yes")[1] == "Yes"
    assert marked("हाँ", "हा") == (0, "हाँ")
    assert marked("我不同意", "不") == (1, "不")
    assert marked("Yes / No\n\nNo", "No", "word-after-options") == (10, "No")
    assert marked("1. Yes\n2. No\nAnswer: 2", "2", "choice-by-number") == (21, "2")
    assert marked("Yes\nNo\nYes\nNo\nAnswer: No", "No", "labelled") == (22, "No")
    assert marked("Say yes! Yes.", "Yes", prompt="Say yes!")[1] == "Yes"
    assert marked("Hm.", "Yes") == (0, "")


def test_redacted_pages_hold_labels_and_hashes_alone(tables):
    section = replies.section(tables, True)
    data = unpack(section)
    held = section + json.dumps(data, ensure_ascii=False)
    assert not {"text", "reply", "around", "place", "evidence", "prompt"} & data["columns"].keys()
    for rows in tables.values():
        for column in ("text", "prompt"):
            assert not any(words in held for words in rows[column].unique())
        assert not any(
            re.search(rf"\b{re.escape(id)}\b", held) for id in rows["statement"].unique()
        )
        evidence = {e for e in rows["evidence"].dropna() if e and e.lower() not in ("yes", "no")}
        assert not any(re.search(rf"\b{re.escape(e)}\b", held) for e in evidence if len(e) > 3)
    hashes = cells(data, "item")
    keys = [(r.lang, r.statement) for t in tables.values() for r in t.itertuples()]
    assert all(re.fullmatch("[0-9a-f]{8}", h) for h in hashes)
    assert len(set(zip(keys, hashes, strict=True))) == len(set(keys)) == len(set(hashes))
    assert cells(data, "answer")[:50] == tables["first"]["answer"].tolist()[:50]


def test_runs_without_replies_have_no_section():
    pairs = pd.DataFrame({"model": ["m"], "item": ["a"], "pro": [-1.0], "anti": [-2.0]})
    assert replies.section({"m": pairs}, False) == ""
    assert replies.section({}, False) == ""


def test_a_filter_is_there_only_where_it_splits():
    one = replies.section({"m": table_of([(item(), "?", "Yes", {})])}, False)
    assert unpack(one)["facets"] == []
    two = [(item(), "?", "Yes", {}), (item(lang="de"), "?", "Nein", {"answer": "no"})]
    assert [name for name, _ in unpack(replies.section({"m": table_of(two)}, False))["facets"]] == [
        "lang",
        "answer",
        "conflict",
    ]


def test_long_replies_are_cut_until_the_page_is_small(monkeypatch):
    monkeypatch.setattr(replies, "ROOM", 100_000)
    monkeypatch.setattr(replies, "ROOM_EACH", 0)
    dice = random.Random(1)
    said = ["".join(dice.choices("абвгдежзик ", k=dice.randint(10, 4000))) for _ in range(300)]
    rows = [(item(f"s{n}"), "?", words, {}) for n, words in enumerate(said)]
    section = replies.section({"m": table_of(rows)}, False)
    data = unpack(section)
    assert 80_000 < len(section) < 110_000
    limit = max(map(len, cells(data, "reply")))
    assert cells(data, "reply") == [words[:limit] for words in said]
    assert data["cut"] == [[n, len(w)] for n, w in enumerate(said) if len(w) > limit]
    assert f"first {limit:,} characters" in section


@needs_chromium
def test_a_thought_is_shown_beside_its_reply_found_and_never_run(chromium, tmp_path):
    bad = "Hm, <img src=x onerror=alert(1)>, many would say yes. So no."
    rows = [
        (item("a"), "?", "No.", {"thought": bad}),
        (item("b"), "?", "<think>In the tags: no.</think>No.", {}),
        (item("c"), "?", "Yes.", {}),
    ]
    section = replies.section({"m": table_of(rows)}, False)
    assert cells(unpack(section), "thought") == [bad, "In the tags: no.", None]
    hidden = replies.section({"m": table_of(rows)}, True)
    assert "thought" not in unpack(hidden)["columns"] and "and thoughts" not in hidden
    made = View(chromium, tmp_path, section).open()
    assert "statements, replies and thoughts" in made.page.inner_text("#replies-form")
    assert made.texts() == ["No.", "No.", "Yes."]
    assert made.counts("thought_state") == {"All": 3, "before the reply": 2, "none": 1}
    thoughts = made.page.locator("details", has_text="Thought (")
    assert thoughts.count() == 2 and bad not in made.page.inner_text("#replies-list")
    thoughts.first.locator("summary").click()
    made.page.wait_for_selector("details[open] .r-text")
    assert bad in made.page.inner_text("#replies-list")
    made.search("in the tags")
    assert made.count == 1 and "In the tags: no." in made.page.inner_text("#replies-list")
    assert made.page.inner_text("#replies-list mark.r-hit") == "In the tags"
    assert made.wrong == []


@pytest.mark.skipif(not DATA.exists(), reason="the SHADES replies are not here")
def test_twenty_thousand_real_replies_are_small():
    found = pd.read_parquet(DATA / "responses-dev.parquet")[:20_000]
    rows = found.rename(columns={"statement": "text", "published": "answer"}).assign(
        left_out="",
        request=[str(n) for n in range(20_000)],
        statement=found["item"].astype(str),
    )
    section = replies.section({"m": rows}, False)
    assert len(section) < 1_000_000
