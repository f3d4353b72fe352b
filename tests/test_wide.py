"""Wide tables: the values of a column side by side, in every format, with nothing lost."""

import csv
import dataclasses
import io
import json
import re

import pytest

from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.render import formats, wide
from genprobe.render.scores import Scores

HOSTILE = "\\end{tabular}\x1b[2J|=1+1</td><script>"


def make(model, lang, value, metric="endorsed", n=40, **by):
    none = value is None
    return Score(
        *(metric, {"model": model, "lang": lang, **by}, value),
        *(None if none else max(0.0, value - 0.1), None if none else min(1.0, value + 0.1)),
        *(0 if none else n, {"refusal": 3}, None if none else (0.1, 0.9)),
        f"metric:{metric}/1|model:{model}",
    )


SCORES = [
    make("one", "ru", 0.512),
    make("one", "kk", 0.081, n=31),
    make("other", "ru", 1.0),
    make("other", "ar", None),
]


def parsed(text):
    """The tabulars of a LaTeX text: (columns, cells of each row). Strict: everything must nest."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    open_ = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    depth = 0
    for char in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0
    found = []
    for spec, body in re.findall(
        r"\\begin\{tabular\}\{(l+\*\{\d+\}\{S\[[^\]]*\]\})\}(.*?)\\end\{tabular\}", text, re.S
    ):
        stub, several = re.match(r"(l+)\*\{(\d+)\}", spec).groups()
        rows = [row for row in body.replace(r"\\", "\n").splitlines() if "&" in row]
        cells = [[c.strip() for c in re.split(r"(?<!\\)&", row)] for row in rows]
        found.append((len(stub) + int(several), cells))
    return found


@pytest.mark.parametrize("scores", [SCORES, [make(HOSTILE, HOSTILE, 0.4), make("a", "b", 0.2)]])
def test_latex_has_in_every_row_the_cells_of_its_columns_and_numbers_that_siunitx_reads(scores):
    ((columns, rows),) = parsed(wide.latex(scores))
    assert all(len(row) == columns for row in rows)
    shown = [cell for row in rows[1:] for cell in row[1:] if cell]
    assert all(re.fullmatch(r"[+-]?\d+\.\d|\{.*\}", cell) for cell in shown), shown
    assert {f"{100 * s.value:.1f}" for s in scores if s.value is not None} <= set(shown)


def test_latex_says_what_it_is():
    text = wide.latex(SCORES)
    caption = re.search(r"\\caption\{(.*)\}\\label\{tab:endorsed-model-lang\}", text).group(1)
    assert "share of clear answers" in caption and "by model and language" in caption
    assert "S[table-format=3.1]" in text and "{Kazakh}" in text and "metric:endorsed/1" in text
    down = [dataclasses.replace(s, metric="contrast-gap", value=-0.2) for s in SCORES[:2]]
    assert "table-format=-2.1" in wide.latex(down) and "& -20.0 &" in wide.latex(down)


def test_every_format_has_every_figure_its_interval_and_n():
    for form in ("table", "markdown", "latex", "csv", "json"):
        text = wide.render(SCORES, form)
        for score in (s for s in SCORES if s.value is not None):
            share = form in ("csv", "json")
            figure = repr(score.value) if share else f"{100 * score.value:.1f}"
            ends = repr(score.low) if share else f"{100 * score.low:.1f}"
            assert figure in text and ends in text and str(score.n) in text, (form, score)
        assert "refusal" in text and "other" in text and "\x1b" not in text
    html = wide.html(SCORES)
    assert "51.2 [41.2, 61.2] n 40" in html and "<script" not in wide.html([make(HOSTILE, "a", 0.5), make("b", "c", 0.5)])  # fmt: skip


def test_what_was_not_asked_is_empty_and_what_could_not_be_counted_a_dash():
    lines = wide.render(SCORES, "table").splitlines()
    assert lines[2].split() == ["model", "ar", "kk", "ru"]
    assert lines[3].split() == ["one", "8.1", "51.2"]
    assert lines[6].split() == ["other", "–", "100.0"]
    rows = list(csv.DictReader(io.StringIO(wide.render(SCORES, "csv"))))
    assert [(r["model"], r["ar n"], r["kk n"], r["ru"]) for r in rows] == [
        ("one", "", "31", "0.512"),
        ("other", "0", "", "1.0"),
    ]
    (found,) = json.loads(wide.render(SCORES, "json"))
    assert found["columns"] == ["ar", "kk", "ru"]
    assert found["rows"][0]["figures"]["kk"] == json.loads(SCORES[1].to_json())


def test_a_narrow_terminal_gets_several_blocks():
    many = [make("one", code, 0.5) for code in ("ar", "de", "en", "fr", "kk", "ru", "zh")]
    lines = wide.render(many, "table", 50).splitlines()
    heads = [line for line in lines if line.startswith("model")]
    assert len(heads) > 1 and " ".join(heads).split().count("kk") == 1
    assert max(map(len, [line for line in lines if line.startswith("one")])) <= 50
    assert "n = 40 clear in each." in lines


def test_each_measure_of_a_comparison_is_a_table_of_its_own():
    pair = {"a": "one", "b": "other", "of": "endorsed"}
    scores = [
        Score(name, {"lang": lang, **pair}, 0.2, 0.1, 0.3, 9, {}, None, "metric:endorsed/1")
        for lang in ("kk", "ru")
        for name in ("a", "b", "difference")
    ]
    found = [one.caption for one in wide.wide(scores)]
    assert found[:2] == [
        "endorsed of one, in %, by language",
        "endorsed of other, in %, by language",
    ]
    assert found[2].startswith("endorsed, other less one: ") and len(found) == 3


def test_one_value_alone_is_no_wide_table():
    with pytest.raises(InputError, match="--by model,lang"):
        wide.render([make("one", "kk", 0.5)], "table")
    with pytest.raises(InputError, match="latex-marked"):
        wide.render(SCORES, "latex-marked")


def test_a_list_of_scores_shows_itself_wide_where_it_was_asked_so():
    found = Scores(SCORES)
    assert repr(found) == formats.render(SCORES, "table").rstrip()
    found.wide = True
    assert repr(found) == wide.render(SCORES, "table").rstrip()
    assert found._repr_html_() == wide.html(SCORES) and len(found.frame()) == len(SCORES)
