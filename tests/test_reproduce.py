"""Published tables derived again: real data where they are present, small folders of our own."""

import csv
import functools
import io
import json
import math
import tomllib
from collections import Counter
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as theirs

from genprobe.analysis import reproduce
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.files import write_rows
from genprobe.resources import registry

DATA = Path(__file__).parents[2] / "shared" / "data"
NAMES = registry.names("reproduce")


def command(*arguments):
    """Exit code, stdout, stderr or the line that an error becomes."""
    done = CliRunner().invoke(cli, ["reproduce", *map(str, arguments)], standalone_mode=False)
    if isinstance(done.exception, InputError):
        return 2, done.stdout, str(done.exception)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout, done.stderr


def verdicts(ours):
    return {cell.name: cell.verdict for cell in ours.cells}


# --- real data


@functools.cache
def found(name):
    if not (DATA / name).is_dir():
        pytest.skip(f"{name} is not here")
    return reproduce.run(name, DATA / name)


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("shades", "385 of 385 cells agree"),
        ("rubia", "125 of 125 cells agree"),
        ("bbq", "41 of 48 cells agree, 7 differ for a known reason"),
        ("crows-pairs", "30 of 30 cells agree"),
    ],
)
@pytest.mark.slow
def test_what_is_published_comes_out(name, summary):
    assert (found(name).ok, found(name).summary) == (True, summary)


@pytest.mark.slow
def test_all_shades_labels():
    cells = found("shades").cells
    assert (cells[0].published, cells[0].ours) == ("55,914", 55914)
    # 2 models, 3 probes, 16 languages: labels and three shares; our reader's beside them.
    assert len(cells) == 1 + 2 * 3 * 16 * 4
    shares = [cell.beside["genprobe"] for cell in cells if cell.beside]
    assert len(shares) == 2 * 3 * 16 * 3 and sum(shares) == pytest.approx(100 * 96)


def test_physical_appearance_is_the_known_difference():
    off = [cell for cell in found("bbq").cells if cell.verdict != "agrees"]
    assert {cell.table.partition(",")[0] for cell in off} == {"Physical appearance"}
    assert {cell.verdict for cell in off} == {"known"} and "corrected" in off[0].why


# --- the rule


@given(st.decimals(-1000, 1000, places=6), st.integers(0, 4), st.integers(-2, 2))
def test_agreeing_is_rounding_and_a_half_goes_either_way(ours, places, step):
    unit = Decimal(1).scaleb(-places)
    printed = ours.quantize(unit, ROUND_HALF_EVEN) + step * unit
    rounded = {ours.quantize(unit, way) for way in (ROUND_HALF_UP, ROUND_HALF_DOWN)}
    assert reproduce.agrees(f"{printed:f}", float(ours)) == (printed in rounded)


@pytest.mark.parametrize(
    ("published", "ours", "slack", "expected"),
    [
        ("0.0053", 0.00529, 0, True),
        ("0.0053", 0.0046, 0, False),
        ("1,163", 1163, 0, True),
        ("1,163", 123, 0, False),
        ("<0.0001", 9e-6, 0, True),
        ("<0.0001", 0.0001, 0, False),
        ("≤0.0007", 0.00074, 0, True),
        ("≤0.0007", 0.0053, 0, False),
        ("≤0.0007", 0.0, 0, True),
        ("−2.3", -2.26, 0, True),
        ("0.57", 0.5567, 0.005, False),
        ("0.57", 0.5600, 0.005, True),
        ("12", math.inf, 0, False),
    ],
)
def test_figures_as_they_are_printed(published, ours, slack, expected):
    assert reproduce.agrees(published, ours, slack) is expected


@pytest.mark.parametrize("text", ["", "n/a", "1.2.3", "0.5*", "--1"])
def test_what_is_no_figure(text):
    with pytest.raises(InputError, match="is no printed figure"):
        reproduce.figure(text)


# --- what comes with genprobe


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_its_figures_and_its_page(name):
    printed = reproduce.Printed(reproduce.PUBLISHED / f"{name}.toml")
    assert printed.title and printed.source
    for key, table in printed.data.get("tables", {}).items():
        assert set(table) == {"where", "rows"} and printed.rows(key)
    for file in registry.module("reproduce", name).FILES:
        assert file.where.startswith("https://") and file.columns
    page = (Path(__file__).parents[1] / "docs" / "reproduce.md").read_text()
    assert f"## {name}\n" in page


def test_figures_only_are_shipped():
    """No cell is long enough to be a statement."""
    for path in reproduce.PUBLISHED.glob("*.toml"):
        for table in tomllib.loads(path.read_text()).get("tables", {}).values():
            cells = [cell for line in table["rows"].splitlines() for cell in line.split("|")]
            assert max(len(cell.split()) for cell in cells) <= 9, path


def test_the_list_names_them():
    done = CliRunner().invoke(cli, ["list", "reproductions"])
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES
    assert {"shades", "rubia", "bbq", "afristereo", "crows-pairs", "aqbileq", "pbbq"} <= set(NAMES)


# --- RuBia in small, with published figures of our own

SMALL = """
title = "small"
source = "here"
[names]
lgbtq = "diverse"
[tables.win-rates]
where = "Table 1"
rows = '''
domain  | subdomain       | XGLM | mGPT | ruBERT-large | ruGPT-large | TwHIN-BERT
gender  | freeform_job    | 33.3 | 33.3 | 33.4         | 66.7        | 33.3
class   | template_wealth | 50.0 | 50.0 | 50.0         | 50.0        | 50.0
diverse | freeform_lgb    | 50.0 | 50.0 | 50.0         | 50.0        | 50.0
'''
[[known]]
why = "another version of the model"
cells = '''
table | cell | ours
ruGPT-large, win rate in % | gender, freeform_job | 33.3
'''
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    published = tmp_path / "published"
    published.mkdir()
    (published / "rubia.toml").write_text(SMALL)
    monkeypatch.setattr(
        registry.module("reproduce", "rubia"), "__file__", str(tmp_path / "rubia.py")
    )
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def pairs(published=False):
    """One win, one loss and a tie of gender; one of each of class."""
    models = ("XGLM", "mGPT", "ruBERT-large", "ruGPT-large", "TwHIN-BERT")
    names = {"ruBERT-large": "ruBert-large", "TwHIN-BERT": "twhin-bert"}
    rows = []
    for domain, task, pro, anti in (
        ("gender", "freeform_job", 1.5, 2.5),
        ("gender", "freeform_job", 2.5, 1.5),
        ("gender", "freeform_job", 2.5, 2.5),
        ("class", "template_poor", 1.0, 2.0),
        ("class", "template_rich", 3.0, 2.0),
    ):
        row = {"domain": domain, "task_type": task}
        for model in models:
            for side, value in (("pro", pro), ("anti", anti)):
                column = (
                    f"ppl-{side}-{names.get(model, model)}" if published else f"ppl_{side}:{model}"
                )
                row[column] = value
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    "name", ["pairs.csv", "pairs.jsonl", "scored_data.tsv", "scored_data.parquet"]
)
def test_cells_that_agree_differ_and_are_missing(small, name):
    write_rows(small / name, pairs("scored" in name))
    code, out, _ = command("rubia", "--from", small)
    assert code == 1
    assert out.splitlines()[-1] == (
        "8 of 15 cells agree, 1 differs for a known reason, 1 differs without a known reason, "
        "5 are missing"
    )
    ours = {(c.table.split(",")[0], c.name): c for c in reproduce.run("rubia", small).cells}
    job, lgb = "gender, freeform_job", "diverse, freeform_lgb"
    assert ours["XGLM", job].ours == pytest.approx(100 / 3)  # the tie is no win, and counts
    assert ours["ruBERT-large", job].verdict == "differs"
    assert (ours["ruGPT-large", job].verdict, ours["ruGPT-large", job].why) == (
        "known",
        "another version of the model",
    )
    assert (ours["mGPT", lgb].verdict, ours["mGPT", lgb].ours) == ("missing", None)
    assert "(a): another version of the model" in out and "DIFFERS" in out and "–  missing" in out


def test_a_known_difference_is_one_only_where_ours_is_as_expected(small):
    rows = [row for row in pairs() if row["ppl_pro:XGLM"] != row["ppl_anti:XGLM"]]
    write_rows(small / "pairs.csv", rows)
    ours = reproduce.run("rubia", small)
    [cell] = [c for c in ours.cells if c.table.startswith("ruGPT") and "gender" in c.name]
    assert (cell.ours, cell.verdict, cell.why) == (50, "differs", "")


def test_as_csv_and_json_every_digit_and_the_verdict(small):
    write_rows(small / "pairs.csv", pairs())
    code, out, err = command("rubia", "--from", small, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 1 and len(rows) == 15 and "8 of 15 cells agree" in err
    assert float(rows[0]["ours"]) == pytest.approx(100 / 3, abs=1e-12)
    assert rows[2] | {"why": ""} == {
        "table": "XGLM, win rate in %", "cell": "diverse, freeform_lgb", "published": "50.0",
        "ours": "", "slack": "0.0", "verdict": "missing", "why": "",
    }  # fmt: skip
    code, out, err = command("rubia", "--from", small, "-f", "json", "-q")
    assert (
        code == 1
        and err == ""
        and [r["verdict"] for r in json.loads(out)] == [row["verdict"] for row in rows]
    )


# --- what is wrong with a folder


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "rubia",
            "there is no scored_data.tsv (or pairs.csv); published at https://github.com/ver",
        ),
        ("bbq", "its columns are category, model, condition"),
        ("shades", "its columns are model, probe, lang, prompt, response, published"),
        ("crows-pairs", "there is no crows_pairs_anonymized.csv"),
    ],
)
def test_a_missing_file_is_named_with_its_place_and_columns(tmp_path, name, what):
    code, out, err = command(name, "--from", tmp_path)
    assert (code, out) == (2, "") and what in err and "\n" not in err
    code, _, err = command(name)
    assert code == 2 and "name its folder in --from" in err


@pytest.mark.parametrize(
    ("name", "file", "content", "what"),
    [
        ("rubia", "pairs.csv", "domain,task_type\nx,y\n", "lacks the columns ppl_pro:XGLM, ppl_a"),
        ("rubia", "pairs.csv", b"", "the file is empty"),
        ("rubia", "pairs.parquet", b"PAR1 no", "not a Parquet file"),
        ("crows-pairs", "crows_pairs.csv", "bias_type\nage\n", "lacks the column stereo_antistereo"),
        ("bbq", "unifiedqa-items.jsonl", '{"category": 1}\n', "lacks the columns model, condition"),
        ("bbq", "unifiedqa-items.jsonl", "[1, 2]\n", "line 1"),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_line(tmp_path, name, file, content, what):
    (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    code, out, err = command(name, "--from", tmp_path)
    assert (code, out) == (2, "") and what in err and file in err and "\n" not in err


def test_columns_that_are_there_twice_and_cells_that_are_lists(tmp_path):
    rows = [{**row, "ppl-pro-mGPT": 1.0, "pro": "of the user's"} for row in pairs()]
    write_rows(tmp_path / "pairs.jsonl", rows)
    code, _, err = command("rubia", "--from", tmp_path)
    assert code == 2 and "pairs.jsonl: two columns are ppl_pro:mGPT" in err
    rows = [{**row, "pro": "of the user's"} for row in pairs()]
    write_rows(tmp_path / "pairs.jsonl", rows)
    assert command("rubia", "--from", tmp_path)[0] == 1
    write_rows(tmp_path / "pairs.jsonl", [rows[0], {**rows[1], "domain": ["gender"]}])
    code, _, err = command("rubia", "--from", tmp_path)
    assert code == 2 and "pairs.jsonl: row 2: domain is no single value" in err


def test_a_value_that_is_no_number_is_named_with_its_row(tmp_path):
    rows = pairs()
    rows[1]["ppl_pro:mGPT"] = "much"
    write_rows(tmp_path / "pairs.csv", rows)
    code, _, err = command("rubia", "--from", tmp_path)
    assert code == 2 and "pairs.csv: mGPT: row 3: pro is 'much', which is no number" in err


@pytest.mark.parametrize(
    ("folder", "what"), [("nowhere", "No such file"), ("x" * 400, "too long"), ("a\0b", "null")]
)
def test_no_folder(tmp_path, folder, what):
    with pytest.raises(InputError, match=what) as error:
        reproduce.run("rubia", f"{tmp_path}/{folder}")
    assert "\n" not in str(error.value)


def test_an_unknown_name():
    assert command("rubai")[2] == "unknown reproduction 'rubai'; did you mean 'rubia'?"


# --- SHADES in small


def replies(**more):
    row = {"model": "m", "probe": "agreement", "lang": "en", "prompt": "Do you agree?"}
    texts = [("Yes.", "yes"), ("No.", "no"), ("Similarly so", "yes"), ("", "ambiguous")]
    return [{**row, "response": text, "published": label, **more} for text, label in texts]


def test_labels_and_shares_by_both_readers(tmp_path):
    write_rows(tmp_path / "responses-dev.parquet", replies())
    ours = reproduce.run("shades", tmp_path)
    assert ours.ok and ours.summary == "5 of 5 cells agree"
    shares = {c.name: (c.published, c.ours, c.beside.get("genprobe")) for c in ours.cells[1:]}
    # "sim", which the study's reader finds in it, is no answer.
    assert shares == {
        "en: labels": ("4", 4, None),
        "en: yes": ("50.0", 50, 25),
        "en: no": ("25.0", 25, 25),
        "en: ambiguous": ("25.0", 25, 50),
    }


def test_labels_that_are_not_the_studys_are_found(tmp_path):
    rows = replies()
    rows[0]["published"], rows[1]["published"] = "no", "yes"  # the shares stay what they are
    write_rows(tmp_path / "responses-dev.jsonl", rows)
    ours = reproduce.run("shades", tmp_path)
    assert not ours.ok and verdicts(ours) == {
        "labels": "differs",
        "en: labels": "differs",
        "en: yes": "agrees",
        "en: no": "agrees",
        "en: ambiguous": "agrees",
    }


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"published": "ja"}, "row 1: published is 'ja' and must be one of yes, no, ambiguous"),
        ({"response": None}, "row 1: response is 'None' and must be text"),
        ({"lang": "xx"}, "'xx'"),
        ({"probe": "mood"}, "unknown probe 'mood'"),
    ],
)
def test_a_wrong_reply_is_one_line(tmp_path, more, what):
    write_rows(tmp_path / "responses-dev.jsonl", replies(**more))
    code, _, err = command("shades", "--from", tmp_path)
    assert code == 2 and what in err and "responses-dev.jsonl" in err and "\n" not in err


def test_a_hostile_name_reaches_neither_terminal_nor_spreadsheet(tmp_path):
    name = "=1+1\x1b[31m\u202e" + "\ud800" + "m" * 5000
    write_rows(tmp_path / "responses-dev.jsonl", replies(model=name))
    for form in ("table", "csv", "json"):
        code, out, _ = command("shades", "--from", tmp_path, "-f", form)
        assert code == 0 and not set("\x1b\u202e\ud800") & set(out)
        assert max(map(len, out.splitlines())) < 1000
        if form == "csv":
            assert all(line[:1] not in "=+@" for line in out.splitlines())


# --- CrowS-Pairs in small: the published scores, from values that give them

TYPES = {"race-color": (516, 300), "gender": (262, 152), "socioeconomic": (172, 103)}
TYPES |= {"nationality": (159, 100), "religion": (105, 75), "age": (87, 48)}
TYPES |= {"sexual-orientation": (84, 57), "physical-appearance": (63, 40), "disability": (60, 37)}


def scored():
    """BERT's wins: n and wins of each type; 124 of the wins and 94 of the rest antistereotypical."""
    rows = [
        {"bias_type": name, "sent_more_score": -10.0 - (at >= wins), "sent_less_score": -10.5}
        for name, (n, wins) in TYPES.items()
        for at in range(n)
    ]
    left = {True: 124, False: 94}
    for row in rows:
        won = row["sent_more_score"] > row["sent_less_score"]
        row["stereo_antistereo"] = "antistereo" if left[won] else "stereo"
        left[won] -= bool(left[won])
    return rows


def test_crows_pairs_scores_from_values_of_pairs(tmp_path):
    rows = scored()
    write_rows(tmp_path / "crows_pairs.csv", rows)
    assert command("crows-pairs", "--from", tmp_path)[1].count("without bert.csv, roberta.csv") == 1
    write_rows(tmp_path / "bert.csv", rows)
    ours = reproduce.run("crows-pairs", tmp_path)
    assert ours.summary == "42 of 42 cells agree" and len(ours.absent) == 2
    rows[-1]["sent_more_score"] = -10.5004  # equal to three decimals: neutral, no win as before
    rows[-24]["sent_more_score"] = -11.0  # a win of the last type less
    write_rows(tmp_path / "bert.csv", rows)
    off = [c for c in reproduce.run("crows-pairs", tmp_path).cells if c.verdict != "agrees"]
    assert {(c.name, round(c.ours, 2)) for c in off} >= {("disability", 60.0)}
    assert {c.verdict for c in off} == {"differs"}


# --- AfriStereo


def test_afristereo_agrees_but_for_what_is_known():
    code, out, _ = command("afristereo")
    assert code == 0
    assert out.splitlines()[-1] == "238 of 242 cells agree, 4 differ for a known reason"
    ours = reproduce.run("afristereo")
    known = {c.name: c.ours for c in ours.cells if c.verdict == "known"}
    assert known.keys() == {
        "Flan-T5-Large: BPR", "Flan-T5-Large: p", "pairs evaluated", "most p of these",
    }  # fmt: skip
    # What the reason says of GPT-2 Medium.
    at = {df: round(2 * theirs.t.sf(2.840, df), 4) for df in (122, 1162)}
    assert known["pairs evaluated"] == 123 and at == {122: 0.0053, 1162: 0.0046}


def logged(seed):
    """A log as the study's code prints it, of drawn values, and t of all pairs."""
    rng = np.random.default_rng(seed)
    sizes = {"women": 31, "men": 29, "age": 22, "region": 2, "other": 1}
    draws = {name: rng.normal(rng.normal(1, 1), 3, n) for name, n in sizes.items()}
    rows = []
    for name, values in {"overall": np.concatenate([*draws.values()]), **draws}.items():
        row = {"n": str(len(values)), "type": name, "bpr": f"{(values > 0).mean():.2f}"}
        test = theirs.ttest_1samp(values, 0) if len(values) > 1 else None
        row |= {"diff": f"{values.mean():.3f}", "t": f"{test.statistic:.3f}" if test else ""}
        rows.append(row | {"p": f"{test.pvalue:.4f}" if test else ""})
    return rows


class Sheet:
    """What `_logged` asks of the printed figures."""

    cell = reproduce.Printed.cell

    def __init__(self):
        self._known = {}


@pytest.mark.parametrize("seed", range(20))
def test_a_true_log_agrees_with_itself_and_a_false_one_does_not(seed):
    from genprobe.analysis.reproduce import afristereo

    whole, *types = logged(seed)

    def off():
        cells = afristereo._logged(Sheet(), "m", whole, types)
        return {c.name for c in cells if c.verdict != "agrees"}

    assert off() == set()
    whole["t"] = f"{float(whole['t']) + 0.1:.3f}"
    assert "all, from types: t" in off()
    types[0]["p"] = f"{float(types[0]['p']) + 0.002:.4f}"
    types[1]["bpr"] = "0.50"  # 14.5 of 29
    assert {"women: p", "men: BPR of 29"} <= off()


# --- Aqbileq


def test_aqbileq_says_what_its_tables_do_not():
    code, out, _ = command("aqbileq")
    assert code == 1
    assert out.splitlines()[-1] == "59 of 60 cells agree, 1 differs without a known reason"
    [cell] = [c for c in reproduce.run("aqbileq").cells if c.verdict != "agrees"]
    assert (cell.published, cell.ours) == ("950", 939)


def test_cells_make_a_frame():
    frame = pd.DataFrame([cell.row() for cell in reproduce.run("aqbileq").cells])
    assert list(frame.columns) == ["table", "cell", "published", "ours", "slack", "verdict", "why"]
    assert (frame["verdict"] == "agrees").sum() == 59


# --- PBBQ


def test_pbbq_says_where_its_tables_contradict_each_other():
    found = reproduce.run("pbbq")
    assert Counter(cell.verdict for cell in found.cells) == {
        "agrees": 105,
        "known": 12,
        "differs": 38,  # "misprinted, or damaged" is no known reason
    }
    cells = {cell.name: cell for cell in found.cells}
    assert (cells["samples, sum"].published, cells["samples, sum"].ours) == ("37742", 39274)
    # Of Table 3, by hand: Qwen2.5's 16 ambiguous accuracies of Table 5.
    assert cells["Qwen2.5-7B-Instruct, amb-accuracy"].ours == pytest.approx(0.5976, abs=5e-5)
    # Diversity: a sum by the formula, of four n-gram orders and over |D| texts; a mean in print.
    assert cells["ngd"].verdict == "agrees" and cells["ngd"].beside["by App. C"] == pytest.approx(
        4 * cells["ngd"].ours
    )
    assert cells["bertscore"].beside["by App. C"] > 1000 and not cells["ttr"].beside
    # Two rows of Table 4 hold each other's means.
    one, other = cells["household, amb-accuracy"], cells["property, amb-accuracy"]
    assert one.ours == pytest.approx(float(other.published), abs=1e-4)
    assert other.ours == pytest.approx(float(one.published), abs=1e-4)


# --- SHADES, its statements

SHADES = Path(__file__).parents[2] / "shared" / "data" / "shades"


@pytest.mark.skipif(not SHADES.is_dir(), reason="../shared/data/shades is not here")
def test_shades_counts_of_its_public_table():
    found = reproduce.run("shades-data", SHADES)
    assert any("Table 13" in fault and "not public" in fault for fault in found.faults)
    assert Counter(cell.verdict for cell in found.cells)["differs"] == 0
    exact = {cell.name: cell.ours for cell in found.cells if cell.verdict == "agrees"}
    assert exact == {"obligation": 14, "aspiration": 8, "question": 10}
