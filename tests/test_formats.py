"""Tables that people read, and that nobody's model name can break."""

import csv
import dataclasses
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import SPEC

from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.render import formats, grid, latex
from genprobe.review import correction
from genprobe.text import display


def make(metric="yes", by=None, value=0.381, n=40, **more):
    values = {"low": 0.24, "high": 0.545, "excluded": {}, "bounds": None}
    if value is None:
        values |= {"low": None, "high": None}
    values |= {"signature": f"metric:{metric}/1-wilson95|model:m|version:0.1.0", **more}
    return Score(metric=metric, by=by or {}, value=value, n=n, **values)


def probes(lang="mr"):
    """Scores as a run of one language has them."""
    scores = []
    for metric in ("yes", "no"):
        for probe in ("recognition", "agreement"):
            scores.append(make(metric, {"lang": lang, "probe": probe}, excluded={"failed": 2}))
    for metric, probe in (("recognised", "recognition"), ("endorsed", "agreement")):
        by = {"lang": lang, "probe": probe}
        scores.append(make(metric, by, n=31, excluded={"hedge": 9}, bounds=[0.3, 0.55]))
    return scores


TABLE = """\
lang mr

probe        replies  yes                no                 clear  measure                       bounds
recognition       40  38.1 [24.0, 54.5]  38.1 [24.0, 54.5]     31  recognised 38.1 [24.0, 54.5]  30.0 to 55.0
agreement         40  38.1 [24.0, 54.5]  38.1 [24.0, 54.5]     31  endorsed   38.1 [24.0, 54.5]  30.0 to 55.0

Shares in %, with 95 % intervals; – where there was nothing to count.
Bounds: the share if no unclear reply had said so, and if every one had.
Left out of yes, no (each): 4 failed, of 84 planned.
Left out of recognised, endorsed (each): 9 hedge, of 40 planned.
Signature of all figures: metric:{yes,no,recognised,endorsed}/1-wilson95|model:m|version:0.1.0
"""


def test_the_table():
    assert formats.render(probes(), "table", width=109) == TABLE


def test_a_narrow_terminal_gets_several_blocks():
    text = formats.render(probes(), "table", width=70)
    body = text.split("\n\nShares")[0]
    assert max(map(len, body.splitlines())) <= 70
    assert body.count("recognition") == 2 and body.count("probe") == 2


def test_no_value_is_a_dash_and_a_gap_has_a_sign():
    by = [{"lang": "mr"}, {"lang": "en"}]
    text = formats.render([make("yes", by[0], None, 0), make("yes", by[1])], "table")
    assert re.search(r"mr +0 +–\n", text) and "nan" not in text.lower()
    gap = [make("contrast-gap", b, -0.08, low=-0.2, high=0.05) for b in by]
    assert "−8.0 [−20.0, +5.0]" in formats.render(gap, "table")
    assert "gaps in points" in formats.render(gap, "table")


def test_without_probe_the_measures_have_their_own_columns():
    scores = [make(m, {"lang": la}, bounds=[0, 1]) for la in ("mr", "en") for m in ("recognised", "endorsed")]  # fmt: skip
    head = formats.render(scores, "table").splitlines()[0]
    assert "recognised" in head and "endorsed" in head and "measure" not in head


def test_signatures_that_differ_in_more_are_told_apart():
    scores = [make("yes", signature="metric:yes|a:1"), make("no", signature="metric:no|a:2")]
    text = formats.render(scores, "table")
    assert "Signature of yes: metric:yes|a:1\n" in text
    assert "Signature of no: metric:no|a:2\n" in text


def test_two_models_have_two_signatures_whatever_the_metrics():
    scores = [
        make(metric, {"model": model}, signature=f"metric:{metric}/1|model:{model}|revision:{at}")
        for model, at in (("a", 1), ("b", 2))
        for metric in ("yes", "no")
    ]
    lines = formats.render(scores, "table").splitlines()
    assert [line for line in lines if line.startswith("Signature")] == [
        "Signature of all figures, model a: metric:{yes,no}/1|model:a|revision:1",
        "Signature of all figures, model b: metric:{yes,no}/1|model:b|revision:2",
    ]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("是否", 4),
        ("e\u0301", 1),
        ("हाँ", 2),
        ("한", 2),
        ("Ａ", 2),
        ("می\u200cخواهم", 7),
    ],
)
def test_columns_of_a_terminal(text, columns):
    assert display.wide(text) == columns


def test_wide_names_are_aligned():
    scores = [make(by={"entity": name}) for name in ("女人", "femmes", "e\u0301", "x" * 90)]
    lines = formats.render(scores, "table").splitlines()[:5]
    assert len({display.wide(line.split("  40")[0]) for line in lines[1:]}) == 1
    assert "…" in lines[4]


HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x9b31mc\u202ed\x00\r\ne\u200bf\ud800\u2066\x7f"


def test_nothing_reaches_the_terminal_but_text():
    assert display.clean(HOSTILE) == "abcd ef"
    assert display.clean("می\u200cخواهم") == "می\u200cخواهم"
    assert display.clean("\x1b") == display.clean("\x1b[") == ""
    for form in ("table", "csv", "latex"):
        scores = [make(by={HOSTILE: HOSTILE, "b": v}, signature=HOSTILE) for v in ("x", "y")]
        text = formats.render(scores, form)
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
        )


@given(st.text())
def test_clean_text_is_on_one_line_and_prints(text):
    found = display.clean(text)
    assert len(found.splitlines()) <= 1 and display.clean(found) == found
    found.encode("utf-8")
    assert display.wide(display.pad(display.shorten(found, 12), 12)) == 12


def test_json_is_the_records():
    scores = [*probes(), make(value=None, n=0), make(by={"a": HOSTILE})]
    found = json.loads(formats.render(scores, "json"))
    assert [Score.from_dict(row) for row in found] == scores
    assert json.loads(formats.render([], "json")) == []


def test_csv_is_long_exact_and_safe():
    scores = [
        make("yes", {"model": "=cmd()", "value": "theirs"}, 1 / 3, excluded={"failed": 1, "missing": 2}),
        make("contrast-gap", {"model": "-x", "value": None}, -0.25, low=-0.5, high=0.0),
        make("endorsed", {"model": "m,\"\n"}, None, 0, bounds=[0.1, 0.9]),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(formats.render(scores, "csv"))))
    assert [float(r["value"]) if r["value"] else None for r in rows] == [1 / 3, -0.25, None]
    assert [r["model"] for r in rows] == ["'=cmd()", "'-x", 'm," ']
    assert [r["value_data"] for r in rows] == ["theirs", "", ""]
    assert rows[0]["excluded"] == "failed=1;missing=2"
    assert (rows[2]["bound_low"], rows[2]["bound_high"], rows[2]["n"]) == ("0.1", "0.9", "0")


def untex(text):
    """What LaTeX prints of `tex`: the escapes, undone."""
    words = {
        "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|",
        "textless": "<", "textgreater": ">", "char34": '"', "textasciigrave": "`",
        "textquotesingle": "'", "dots": "…",
    }  # fmt: skip
    text = re.sub(r"\\ifdefined\\Umathchar (.*?)\\else .*?\\fi\{\}", r"\1", text)
    pattern = r"\\(text\w+|char34|dots)\{\}|\\([{}$&#%_])|\{([\[\]*-])\}|(\$-\$)|(--)"

    def sign(m):
        return words[m[1]] if m[1] else m[2] or m[3] or ("−" if m[4] else "–")

    return re.sub(pattern, sign, text)


@given(st.text("\\{}$&#%_~^|<>\"`'[]*-−–…aé是 ", max_size=20))
def test_latex_escapes_everything(text):
    found = latex.tex(text)
    assert untex(found) == text
    bare = re.sub(r"\\[{}$&#%_]|\$-\$|\\(text|if|Um|char)\w+|\\(dots|else|fi)", "", found)
    assert not set(bare) & set("\\$&#%_~^|<>\"`'") and bare.count("{") == bare.count("}")


def test_latex_table():
    text = formats.render(probes("a_b&c"), "latex")
    assert text.count(r"\begin") == text.count(r"\end") == 3
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)[1]
    for line in body.strip().splitlines():
        assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1 and line.endswith(r" \\")
    assert r"lang a\_b\&c" in text and "38.1 {[}24.0, 54.5{]}" in body
    notes = text.split(r"\begin{minipage}")[1]
    assert "n = 80" in notes and r"version:0.1.0" in notes


def test_latex_groups_have_a_head_over_their_columns():
    text = latex.latex(probes("mr"), "Shares & more", "shares", ["probe", "lang"])
    assert r"\caption{Shares \& more" in text and r"\label{tab:shares}" in text
    assert "more, lang mr." in text  # said once
    assert r"\caption{Shares: mr.}" in latex.latex(probes("mr"), "Shares: mr")
    both = [*probes("mr"), *probes("kk")]
    text = latex.latex(both, across=["probe"])
    spans = re.findall(r"\\multicolumn\{(\d)\}\{c\}\{(\w+)\}", text)
    assert [name for _, name in spans] == ["recognition", "agreement"]
    rows = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert [row.split(" & ")[0] for row in rows] == ["mr", "kk"]
    assert text.count("% metric:") == 4  # each signature whole, once


def test_latex_adds_up_no_n_of_two_measures():
    scores = [
        Score(metric, {"probe": probe, "lang": lang}, 0.5, 0.4, 0.6, n, {}, [0.4, 0.6], "s")
        for metric, probe, n in (("recognised", "recognition", 10), ("endorsed", "agreement", 30))
        for lang in ("kk", "mr")
    ]
    text = formats.render(scores, "latex")
    assert "In all, recognised: n = 20; endorsed: n = 60." in text
    assert "& measure" in text and "& endorsed 50.0" in text


def test_markdown_is_a_table_whatever_names_hold():
    name = "a|b](http://x) `c` *d*"
    scores = [
        Score("win-rate", {"lang": lang}, 0.5, 0.4, 0.6, 100, {"tie": 2}, None, f"s`{name}")
        for lang in (name, "kk")
    ]
    head, rule, first, second, _, *notes = formats.render(scores, "markdown").splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (head, rule, first, second)]
    assert {len(row) for row in cells} == {len(cells[0])} and len(cells[0]) >= 3
    assert r"a\|b\](http://x) \`c\` \*d\*" in first and "50.0 [40.0, 60.0]" in second
    assert set(cells[1]) == {" --- "} and all(note.startswith("- ") for note in notes)
    assert notes[-1].count("`") == 2


def test_latex_marks_what_is_nearest_to_one_half():
    """As Aqbileq, Table 2, prints them: .51 in bold; RuBia underlines the worst."""
    values = {"ru": 0.51, "kk": 0.30, "kk-x-ru": 0.74, "en": 0.49, "de": None}
    scores = [
        Score("win-rate", {"lang": lang}, value, value, value, 100 if value else 0, {}, None, "s")
        for lang, value in values.items()
    ]
    text = formats.render(scores, "latex-marked")
    rows = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    how = {
        row.split(" & ")[0]: "bold"
        if r"\textbf" in row
        else "under"
        if r"\underline" in row
        else ""
        for row in rows
    }
    assert list(how.values()) == ["bold", "", "under", "bold", ""]
    assert "Bold: nearest to one half" in text
    plain = formats.render(scores, "latex")
    assert r"\textbf" not in plain and r"\underline" not in plain and "Bold:" not in plain


def test_odd_input():
    with pytest.raises(InputError, match="unknown format 'tabel'; did you mean 'table'"):
        formats.render(probes(), "tabel")
    assert formats.render([], "table") == "no scores\n"
    assert formats.render([], "latex") == "% no scores\n"
    mixed = [make(by={"lang": "mr"}), make("no", {"probe": None})]
    assert "(none)" in formats.render(mixed, "table") and formats.render(mixed, "latex")


def test_what_is_left_out_is_told_by_measure_and_rate():
    def one(metric: str, n: int, excluded: dict[str, int], **by: str) -> Score:
        return Score(metric, {**by}, 0.5, 0.4, 0.6, n, excluded, None, "s")

    compared = [
        one("difference", 8, {}, of="negrate"),
        one("difference", 33, {"in one run only": 2}, of="negative-stories"),
    ]
    shown = formats.render(compared, "table")
    assert "Left out of difference (negative-stories): 2 in one run only, of 35 planned." in shown
    # A label of a judge may be called like a measure.
    mixed = [one("refusal", 29, {"failed": 1}), one("refusal", 15, {}, judge="stance")]
    assert "Left out of refusal: 1 failed, of 30 planned." in formats.render(mixed, "table")
    assert correction.VERSION  # imported, it says how its figures are shown
    corrected = [
        one(metric, 20, {"failed": 1}, rate=rate) for metric in ("ppi", "rg") for rate in "ab"
    ]
    shown = formats.render(corrected, "table")
    assert "Left out of ppi, rg (each): 1 failed, of 21 planned." in shown
    assert shown.count("Corrected by the review: report ppi") == 1


@pytest.mark.parametrize(
    ("who", "names"),
    [
        ([("org/m", "c1", "")], ["m"]),
        ([("org/m", "c1", "step1"), ("org/m", "c2", "step2")], ["m@step1", "m@step2"]),
        ([("org/m", "c1", "refs/pr/1"), ("org/n", "c2", "")], ["m@refs/pr/1", "n"]),
        ([("org/m", "c" * 40, ""), ("org/m", "d" * 40, "")], ["m@" + "c" * 12, "m@" + "d" * 12]),
        ([("a/m", "c1", "step1"), ("b/m", "c2", "step1")], ["a/m@step1", "b/m@step1"]),
        # The same commit with and without its name is one model.
        ([("org/m", "c1", ""), ("org/m", "c1", "step1")], ["m@step1"]),
    ],
)
def test_names_of_models(who, names):
    specs = [
        dataclasses.replace(SPEC, model=model, revision=revision, checkpoint=checkpoint)
        for model, revision, checkpoint in who
    ]
    assert list(grid.model_names(specs).values()) == names
