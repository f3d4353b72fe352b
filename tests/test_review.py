"""Review: what goes out comes back, whatever spreadsheets and people do to it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from genprobe import commands
from genprobe.analysis.score import score
from genprobe.datasets import statements
from genprobe.errors import InputError
from genprobe.files import disk, read_rows, sheets
from genprobe.records import Judgment, Response
from genprobe.resources import guides, packs, registry
from genprobe.review import collect
from genprobe.review import sample as review
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.tasks.pipeline.plan import plan
from tests.sample import SPEC

HOSTILE = [
    *("=1+1", "+1+1", "-1+1", "@SUM(1)", "＝1+1", "＋1", "－1", "＠SUM(1)"),
    *("\t=1+1", "\r=1+1", " =1+1", "\n=1+1", "x\n=1+1", 'x;=1+1;"=1+1"|@SUM(1),=1+1'),
    "=cmd|'/c calc'!A0",
    "a\tb\rc\r\nd\ne\r",
    "\0 nul \x01\x0b\x1b[31m\x7f\x85\u2028\u2029 controls",
    "\u202eabc\u202c \u200f\u2067rtl\u2069 \u200c\u200d\ufeff",
    "\ud800 lone \udc00\ud83d",
    "\ufffe\uffff\ufdd0\U0001fffe",
    *("  both ends  ", "007", "1E5", "1-2", "TRUE", "", " ", "'=1+1", "> quoted\n>> twice"),
    "\\u{3d} \\\\u{0} \\u003d \\",
    '"", "a";"b", """',
    *(
        "_x000D_",
        "#REF!",
        "<b>&amp;</b>",
        "{=A1}",
        "€ é e\u0301 ﬁ 😀",
        "\n\n",
        "12:30",
        "1,5",
        "50 %",
    ),
]
LONG = ["я" * 32_767, "я" * 40_000, "😀" * 20_000, "\\u{0}\0" * 9_000, "line\n" * 400]

Reply = Callable[[int], str]


def make_run(
    folder: Path,
    langs: list[str],
    reply: Reply,
    limit: int = 4,
    judge: str = "yesno",
    labels: tuple[str, str] = ("yes", "no"),
    **spec: object,
) -> Run:
    """A run over built-in statements, whose replies are `reply(number of the request)`; its judge
    has the first of the labels for those that hold "yes", else the other one."""
    items, _ = statements.load("builtin", langs)
    items = [s for lang in langs for s in [s for s in items if s.lang == lang][:limit]]
    pack = packs.load_pack()
    asked = plan(items, pack, list(pack.probes), SPEC.seed, int(str(spec.get("samples", 1))))
    known = dataclasses.replace(
        SPEC,
        statements=statements_hash(items),
        languages=tuple(langs),
        probes=tuple(pack.probes),
        pack_hashes={lang: pack.hashes[lang] for lang in langs},
        pack=pack.id,
        **spec,  # type: ignore[arg-type]
    )
    with Run.start(folder, known, items, asked) as run:
        for number, request in enumerate(asked):
            run.append(Response(request.id, reply(number), "stop", "sent", 1, 1))
        run.write_judgments(
            judge,
            "1",
            (
                Judgment(r.id, judge, labels["yes" not in reply(n)], None, "", "", {})
                for n, r in enumerate(asked)
            ),
        )
        return run


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def fill(path: Path, answer: Callable[[list[str]], str], column: int = 4) -> Path:
    """Write an answer in each row of a file, as a careful spreadsheet would."""
    head, *rows = read(path)
    for row in rows:
        row[column] = answer(row)
    return save(path, [head, *rows])


def save(
    path: Path, rows: list[list[str]], separator: str = ",", coding: str = "utf-8-sig"
) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows(rows)
    path.write_bytes(text.getvalue().encode(coding))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(
        tmp_path / "run", ["en", "kk"], lambda n: f"{'yes' if n % 3 else 'no'}, {n}.", limit=12
    )


def says(row: list[str]) -> str:
    return "yes" if "yes" in row[3] else "no"


# --- cells


@pytest.mark.parametrize("text", HOSTILE + LONG, ids=lambda text: repr(text[:12]))
def test_a_text_survives_as_a_cell(text):
    cell = sheets.show(text)
    assert all(line.startswith("> ") for line in cell.split("\n")) or "[cut: " in cell
    assert len(cell.encode("utf-16-le")) // 2 <= 16_367
    assert cell.count("\n") <= 253
    ET.fromstring(f"<a>{cell.replace('&', '').replace('<', '')}</a>")  # XML can hold it
    for ends in ("\n", "\r\n", "\r"):
        back = sheets.unshow(cell.replace("\n", ends))
        assert back == text if text not in LONG else text.startswith(back) and len(back) > 1_000


def test_any_text_survives_as_a_cell():
    rng = random.Random(3)
    signs = "\\u{}3d0=;,|\"'> \n\r\t\0\ud83d\ude00=я[cut: 1 more characters]"
    for _ in range(20_000):
        text = "".join(rng.choices(signs, k=rng.randrange(14)))
        assert sheets.unshow(sheets.show(text)) == text


def test_a_fingerprint_sees_words_and_not_line_ends():
    cell = sheets.show("Иә.\n\n- é")
    assert sheets.fingerprint(cell) == sheets.fingerprint(cell.replace("\n", "\r\n") + "\r\n")
    assert sheets.fingerprint(cell) == sheets.fingerprint(cell.replace("é", "e\u0301"))
    assert sheets.fingerprint(cell) != sheets.fingerprint(cell.replace("Иә", "Жоқ"))


# --- export


def test_what_a_reviewer_gets_is_blind(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out.csv", size=30, reviewers=2, seed=4)
    assert [path.name for path in done.files] == ["out-reviewer1.csv", "out-reviewer2.csv"]
    assert (done.items, done.replies) == (30, 72)
    raw = done.files[0].read_bytes()
    assert raw.startswith(b'\xef\xbb\xbf"row",')
    assert raw.count(b"\r\n") == 34  # a head, 30 items, 3 repeats; no other CR
    for hidden in (SPEC.model, "yesno", "recognition", "weight", str(run.folder)):
        assert hidden.encode() not in raw
    head, *rows = read(done.files[0])
    assert head == [guides.load().heads[n] for n in ("row", *guides.SHOWN, "answer", "comment")]
    key = json.loads(done.key.read_text())
    texts = {r.request: r.text for r in run.responses()}
    for name, lang, _, reply, answer, _ in rows:
        item = key["items"][key["rows"][name][1]]
        assert sheets.unshow(reply) == texts[item["request"]]
        assert (item["lang"] in lang, answer) == (True, "")
    page = done.page.read_text(encoding="utf-8-sig")
    assert all(head_ in page for head_ in head)
    assert "CONTENT WARNING" in page and "{" not in page.replace("\\u{9}", "")
    order = [[key["rows"][row[0]][1] for row in read(path)[1:]] for path in done.files]
    assert order[0] != order[1]
    asked = [item["request"] for item in key["items"].values()]
    assert asked != [r.id for r in run.requests() if r.id in asked]


def dealt(key: Path) -> dict[str, list[str]]:
    """Reviewer -> items, in the order of the rows."""
    rows: dict[str, list[str]] = {}
    for reviewer, item in json.loads(key.read_text())["rows"].values():
        rows.setdefault(reviewer, []).append(item)
    return rows


def test_repeats_come_half_a_file_later(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=60, repeats=0.2)
    (rows,) = dealt(done.key).values()
    again = [(at, item) for at, item in enumerate(rows) if item in rows[:at]]
    assert (len(rows), len(again)) == (72, 12)
    assert all(at - rows.index(item) >= 30 for at, item in again)


def test_overlap_and_shares(run, tmp_path):
    done = review.export(
        [run.folder], tmp_path / "out", size=40, reviewers=3, overlap=0.25, repeats=0
    )
    rows = dealt(done.key)
    assert {reviewer: len(items) for reviewer, items in rows.items()} == {
        f"reviewer{n}": 20 for n in (1, 2, 3)
    }
    read_by = Counter(item for items in rows.values() for item in items)
    assert Counter(read_by.values()) == {3: 10, 1: 30}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(run, tmp_path):
    made = [
        review.export([run.folder], tmp_path / name, size=20, seed=seed).files[0].read_bytes()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert made[0] == made[1] != made[2]


def test_weights_are_one_over_the_probability_of_a_reply(tmp_path):
    """Over many seeds a weighted sample estimates counts without bias, also where the sample has
    fewer replies than strata; every reply is drawn as often as its weight says."""
    run = make_run(tmp_path / "run", ["en"], lambda n: "yes" if n % 8 else "no", limit=40)
    replies = list(review._replies(0, run, set()))
    strata = Counter(reply.stratum for reply in replies)
    assert len(strata) == 6 and min(strata.values()) < 8 < max(strata.values())
    for size in (4, 17, 60):
        drawn: Counter[str] = Counter()
        weights = {}
        for seed in range(600):
            sample = [reply for (reply,) in review._sample(replies, size, random.Random(seed))]
            assert len(sample) in ((size,) if size > 6 else (size - 1, size, size + 1))
            drawn.update(reply.item for reply in sample)
            weights |= {reply.item: reply.weight for reply in sample}
            if size > 6:
                assert len({reply.stratum for reply in sample}) == 6
                assert sum(reply.weight for reply in sample) == pytest.approx(len(replies))
        for item, weight in weights.items():
            p = 1 / weight
            assert abs(drawn[item] / 600 - p) < 5 * (p * (1 - p) / 600) ** 0.5 + 1e-9


@pytest.fixture
def told(tmp_path: Path) -> Run:
    """Five stories of each of 120 templates, of which few or many are negative."""
    rng = random.Random(2)
    negative = [rng.random() < p for p in rng.choices([0.1, 0.7], [3, 1], k=120) for _ in range(5)]
    return make_run(
        tmp_path / "told",
        ["en"],
        lambda at: f"{'yes' if negative[at] else 'no'} {at}",
        limit=40,
        judge="sentiment",
        labels=("negative", "positive"),
        command="stories",
        samples=5,
    )


def test_stories_are_drawn_by_template(told, tmp_path):
    done = review.export([told.folder], tmp_path / "out", size=43, reviewers=3, overlap=0.5)
    assert (done.templates, done.items, done.replies) == (9, 45, 600)
    key = json.loads(done.key.read_text())
    names = {r.id: (r.probe, r.statement) for r in told.requests()}
    found: dict[tuple[str, str], list[dict]] = {}
    for item in key["items"].values():
        found.setdefault(names[item["request"]], []).append(item)
    labels = {j.request: j.label for j in told.judgments("sentiment")}
    for items in found.values():
        votes = Counter(labels[item["request"]] for item in items)
        label = "negative" if votes["negative"] > 2 else "not negative"
        assert len(items) == 5
        assert {item["stratum"].rpartition(" | ")[2] for item in items} == {label}
        assert len({item["weight"] for item in items}) == 1
    # Of a template every reviewer has all stories or none; four templates are everybody's.
    hands = Counter()
    for items in dealt(done.key).values():
        read = Counter(names[key["items"][item]["request"]] for item in dict.fromkeys(items))
        assert set(read.values()) == {5}
        hands.update(read.keys())
    assert sorted(hands.values()) == [1] * 5 + [3] * 4
    # A template's stories do not come one behind another.
    first = [key["items"][item]["request"] for item in dealt(done.key)["reviewer1"]]
    assert len({names[request] for request in first[:5]}) > 1


def test_weights_of_templates_are_those_of_stories_and_of_labels(told):
    """Over many seeds a weighted sample has as many negative stories, and as many negative
    templates, as the run."""
    replies = list(review._replies(0, told, set()))
    strata = Counter(reply.stratum for reply in replies)
    assert len(strata) == 6

    def negative(units):
        """Negative stories, and templates most of whose stories are negative; weighted."""
        votes = [sum(r.labels["sentiment"] == "negative" for r in unit) for unit in units]
        weights = [unit[0].weight for unit in units]
        labels = [2 * v > len(u) for v, u in zip(votes, units, strict=True)]
        return [sum(w * x for w, x in zip(weights, xs, strict=True)) for xs in (votes, labels)]

    every = review._sample(replies, len(replies), random.Random(1))
    truth = negative(every)
    assert {r.weight for unit in every for r in unit} == {1.0} and truth[1] > 10
    for size in (20, 100):
        found = [negative(review._sample(replies, size, random.Random(n))) for n in range(400)]
        for estimates, true in zip(zip(*found, strict=True), truth, strict=True):
            mean, error = statistics.mean(estimates), statistics.stdev(estimates) / 400**0.5
            assert abs(mean - true) < 4 * error + 1e-9 and error < 0.05 * true


def test_too_few_stories_for_a_label_are_drawn_one_by_one(tmp_path):
    run = make_run(tmp_path / "run", ["en"], str, command="stories", samples=2)
    done = review.export([run.folder], tmp_path / "out", size=7)
    assert (done.templates, done.items) == (0, 7)


def test_all_are_read_where_there_are_fewer(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=1000, langs=["kk"], repeats=0)
    items = json.loads(done.key.read_text())["items"].values()
    assert len(items) == 36 == done.replies
    assert {item["weight"] for item in items} == {1.0}
    assert {item["lang"] for item in items} == {"kk"}


def test_stories_and_essays_ask_their_own_questions(tmp_path):
    for command, asked in (
        ("stories", ["sentiment", "regard", "language"]),
        ("essays", ["stance", "refusal"]),
    ):
        run = make_run(tmp_path / command, ["en"], lambda n: f"{n}", command=command)
        done = review.export([run.folder], tmp_path / f"{command}.csv", size=5, repeats=0)
        heads = [guides.load().heads[name] for name in asked]
        assert read(done.files[0])[0][4 : 4 + len(heads)] == heads
        typed = {
            "sentiment": "Negative",
            "regard": "Positive",
            "language": "Қазақша",
            "stance": "Both",
            "refusal": "да",
        }
        for at, name in enumerate(asked, 4):
            fill(done.files[0], lambda row, word=typed[name]: word, at)
        back = collect.collect(done.files, done.key)
        assert not back.problems
        told = {
            "sentiment": "negative",
            "regard": "positive",
            "language": "kk",
            "stance": "both",
            "refusal": "yes",
        }
        assert {(row["question"], row["answer"]) for row in back.rows} == {
            (name, told[name]) for name in asked
        }
        assert run.verify() == []


def test_exports_never_write_over_work(run, tmp_path):
    review.export([run.folder], tmp_path / "out", size=5)
    with pytest.raises(InputError, match=r"out.csv: already exists"):
        review.export([run.folder], tmp_path / "out.csv", size=5)
    other = make_run(tmp_path / "other", ["en"], str, command="essays")
    with pytest.raises(InputError, match="runs of essays and yesno"):
        review.export([run.folder, other.folder], tmp_path / "both", size=5)


# --- collect


def test_answers_become_a_table_and_a_judge(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=40, reviewers=2, seed=2)
    for path in done.files:
        fill(path, says)
    back = collect.collect(done.files, done.key, tmp_path / "review.csv")
    assert back.problems == []
    assert len(back.rows) == 2 * 44
    table = collect.read_table(tmp_path / "review.csv")
    assert [row | {"comment": ""} for row in table] == back.rows
    assert set(next(iter(read_rows(tmp_path / "review.csv")))) == set(collect.COLUMNS)
    assert all(row["answer"] == row["label"] for row in back.rows)
    judged = list(run.judgments("reviewed-answer"))
    assert len(judged) == 40
    plain = {j.request: j.label for j in run.judgments("yesno")}
    assert all((j.label, j.rule, j.score) == (plain[j.request], "agreed", 1.0) for j in judged)
    order = [r.id for r in run.requests()]
    assert [order.index(j.request) for j in judged] == sorted(
        order.index(j.request) for j in judged
    )
    assert run.verify() == []
    assert back.judged == {str(run.folder): {"answer": 40}}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_what_spreadsheets_do_to_a_file(tmp_path, separator, coding):
    run = make_run(tmp_path / "run", ["ar", "zh"], lambda n: f"نعم yes\n是; \r\n«{n}»")
    done = review.export([run.folder], tmp_path / "out", size=12, repeats=0)
    words = ["YES", " да.", "Иә", "\u200fنعم\u200f", "是\u00a0", "ｙｅｓ"]
    path = fill(done.files[0], lambda row: words[int(row[0][-1]) % 6])
    head, *rows = read(path)
    rows.sort(key=lambda row: row[3])
    body = [[row[at] for at in (5, 3, 4, 0, 2, 1)] for row in [head, *rows]]
    body = [[cell.replace("\n", "\r\n") for cell in row] + ["", ""] for row in body]
    body = [*body[:5], [""] * 8, [], *body[5:], [""] * 8]
    body[0] = [cell.upper() for cell in body[0]]
    save(path, body, separator, coding)
    path = path.rename(path.with_name("sent back (1).csv"))
    back = collect.collect([path])  # by the only key that lies beside it
    assert back.problems == []
    assert [row["answer"] for row in back.rows] == ["yes"] * 12


def test_what_is_wrong_is_told_by_row_and_the_rest_counts(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=20, reviewers=2, repeats=0)
    path = fill(done.files[0], says)
    head, *rows = read(path)
    rows[2][4] = "yess"
    rows[3][4] = ""
    rows[4][3] = rows[4][3].replace(",", ", indeed,")
    rows[5][0] = "r1-9999"
    del rows[6]
    rows.append(list(rows[7]))  # the same row once more, with another answer
    rows[-1][4] = "ambiguous"
    rows.append(list(rows[0]))  # and one with the same
    rows[1][5] = "=HYPERLINK(1)"
    for row in rows:
        row.append("note")
    path = save(path, [[*head, "mine"], *rows])
    back = collect.collect([path], done.key, tmp_path / "review.csv")
    told = [str(problem) for problem in back.problems]
    file = str(path)
    assert told == [
        f"{file}, row 1: the column 'mine' is not part of the sheet: 21 cells are ignored",
        f"{file}, row 4: r1-0003: answer 'yess' must be one of yes, no, ambiguous",
        f"{file}, row 6: r1-0005: 'what the model replied' was changed; "
        f"{rows[4][4]!r} is not counted",
        f"{file}, row 7: there is no row 'r1-9999'; {rows[5][4]!r} is not counted",
        "reviewer2: no row of this reviewer is here",
        f"{file}, row 5: r1-0004: no answer (answer)",
        "reviewer1: the row r1-0006 is missing",
        "reviewer1: the row r1-0007 is missing",
        f"{file}, row 9: r1-0009: answer is {rows[7][4]} ({file}, row 9) and "
        f"ambiguous ({file}, row 21)",
    ]
    assert len(back.rows) == 14
    assert "=HYPERLINK(1)" in {row["comment"] for row in back.rows}
    assert (
        b"\n=HYP" not in (data := (tmp_path / "review.csv").read_bytes()) and b",=HYP" not in data
    )
    assert len(list(run.judgments("reviewed-answer"))) == 14


def test_a_file_that_cannot_be_read_does_not_stop_the_others(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=10, reviewers=3)
    fill(done.files[0], says)
    done.files[1].write_bytes(read_as(done.files[1]).encode("cp1251", "replace"))
    done.files[2].write_bytes(b"PK\x03\x04 a workbook")
    back = collect.collect([*done.files, tmp_path / "none.csv"], done.key)
    told = [str(problem) for problem in back.problems]
    assert "reviewer2.csv: not Unicode; save it as CSV, in UTF-8" in told[0]
    assert "reviewer3.csv: not a workbook" in told[1]
    assert "none.csv: cannot be read" in told[2]
    assert len(back.rows) == 11


def read_as(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def test_a_lost_column_of_texts_leaves_nothing_to_check(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=10)
    path = fill(done.files[0], says)
    save(path, [[*row[:2], *row[3:]] for row in read(path)])
    back = collect.collect([path], done.key)
    assert "no column 'what the model was asked'" in str(back.problems[0])
    assert back.rows == []


def test_a_run_that_is_elsewhere_loses_no_answer(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=10, repeats=0)
    fill(done.files[0], says)
    run.folder.rename(tmp_path / "moved")
    back = collect.collect(done.files, done.key, tmp_path / "review.csv")
    assert len(collect.read_table(tmp_path / "review.csv")) == 10
    assert "the run is not here" in str(back.problems[0])


def test_a_run_that_cannot_be_written_loses_no_answer(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=10, repeats=0)
    fill(done.files[0], says)
    held = disk.lock(run.folder)
    try:
        back = collect.collect(done.files, done.key, tmp_path / "review.csv")
    finally:
        os.close(held)
    assert len(collect.read_table(tmp_path / "review.csv")) == 10
    assert "another process is writing" in str(back.problems[0])


def test_a_repeat_stands_in_for_a_first_reading_without_answer(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=20, repeats=0.5)
    rows = next(iter(dealt(done.key).values()))
    first = {rows.index(item) for item in rows if rows.count(item) == 2}
    names = [row[0] for row in read(done.files[0])[1:]]
    fill(done.files[0], lambda row: "" if names.index(row[0]) in first else says(row))
    back = collect.collect(done.files, done.key)
    assert len(back.problems) == len(first) == 10
    assert {row["repeat"] for row in back.rows} == {0}
    assert len(list(run.judgments("reviewed-answer"))) == 20


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"heads": 1}', "\xff"])
def test_a_key_that_is_none(tmp_path, text):
    path = tmp_path / "key.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"key.json: not"):
        collect.collect([], path)


# --- the command line


def test_from_export_to_agreement(run, tmp_path, capsys, monkeypatch):
    def genprobe(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["genprobe", "review", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            commands.main()
        return stop.value.code or 0, capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    assert genprobe("export", "run", "-o", "s.csv", "--size", 20, "--reviewers", 2)[0] == 0
    files_ = [fill(tmp_path / f"s-reviewer{n}.csv", says) for n in (1, 2)]
    rows = read(files_[0])
    rows[1][4] = "no" if rows[1][4] == "yes" else "yes"
    save(files_[0], rows)
    assert genprobe("import", *files_) == (0, "")
    code, out = genprobe("agreement", "review.csv", "-f", "json")
    found = {(s["metric"], s["by"]["lang"]): s for s in json.loads(out)}
    assert code == 0
    assert found["agreement", "all"]["value"] == pytest.approx(0.95)
    assert found["self-agreement", "all"]["n"] == 2
    assert {lang for _, lang in found} == {"all", "en", "kk"}
    assert "krippendorff-alpha" in genprobe("agreement", "review.csv")[1]
    assert genprobe("import", files_[0], "-q")[0] == 1
    assert genprobe("export", "run", "-o", "last.csv", "--disagreements", "review.csv")[0] == 2


# --- one label of several


def row_of(reviewer: str, answer: str, repeat: int = 0, item: str = "i1") -> collect.Row:
    row = dict.fromkeys(collect.COLUMNS, "") | {"item": item, "question": "answer"}
    return row | {"reviewer": reviewer, "answer": answer, "repeat": repeat, "weight": 1.0}


@pytest.mark.parametrize(
    "said, label, rule",
    [
        ("a:yes", "yes", "single"),
        ("a:yes b:yes", "yes", "agreed"),
        ("a:yes b:no", None, "open"),
        ("a:yes b:no c:no", "no", "majority"),
        ("a:yes b:no c:ambiguous", None, "open"),
        ("a:yes b:no c:no adjudicator:yes", "yes", "adjudicated"),
        ("adjudicator:no a:yes b:yes", "no", "adjudicated"),
    ],
)
def test_the_label_is_the_adjudicators_else_the_majoritys(said, label, rule):
    rows = [row_of(*one.split(":")) for one in said.split()]
    for order in (rows, rows[::-1]):
        (found,) = collect.resolve([*order, row_of("a", "no", 1)])
        assert (found.label, found.rule) == (label, rule)
        assert found.differ == (len({r["answer"] for r in rows if len(r["reviewer"]) == 1}) > 1)


def test_a_second_round_settles_disagreements(run, tmp_path):
    done = review.export([run.folder], tmp_path / "out", size=30, reviewers=2, repeats=0)
    fill(done.files[0], says)
    fill(done.files[1], lambda row: "ambiguous" if row[0] < "r2-0006" else says(row))
    first = collect.collect(done.files, done.key, tmp_path / "review.csv")
    assert len(list(run.judgments("reviewed-answer"))) == 25
    last = review.export(
        [run.folder], tmp_path / "last", disagreements=tmp_path / "review.csv", size=1
    )
    assert [path.name for path in last.files] == ["last.csv"]
    assert len(read(last.files[0])) == 6
    fill(last.files[0], lambda row: "no")
    final = collect.collect(last.files, None, tmp_path / "final.csv")
    assert final.problems == []
    assert final.rows[: len(first.rows)] == first.rows
    judged = list(run.judgments("reviewed-answer"))
    assert Counter(j.rule for j in judged) == {"agreed": 25, "adjudicated": 5}
    assert {j.label for j in judged if j.rule == "adjudicated"} == {"no"}
    weights = {row["item"]: row["weight"] for row in first.rows}
    assert all(row["weight"] == pytest.approx(weights[row["item"]]) for row in final.rows)
    # The first sheets once more, over the last table: what was settled stays, there and in the run.
    again = collect.collect(done.files, done.key, tmp_path / "final.csv")
    assert again.kept == 5
    assert Counter(j.rule for j in run.judgments("reviewed-answer")) == {
        "agreed": 25,
        "adjudicated": 5,
    }
    assert {(r["item"], r["answer"]) for r in again.rows if r["reviewer"] == "adjudicator"} == {
        (r["item"], r["answer"]) for r in final.rows if r["reviewer"] == "adjudicator"
    }
    assert collect.resolve(collect.read_table(tmp_path / "final.csv")) == collect.resolve(
        again.rows
    )
    with pytest.raises(InputError, match="no disagreements"):
        review.export([run.folder], tmp_path / "x", disagreements=tmp_path / "final.csv")
    other = make_run(tmp_path / "other", ["de"], str)
    with pytest.raises(InputError, match="5 of the 5 items are not in these runs"):
        review.export([other.folder], tmp_path / "x", disagreements=tmp_path / "review.csv")


# --- words


def test_every_answer_is_understood_and_no_word_is_two():
    one = guides
    assert {"answer", "sentiment", "language", "stance", "refusal"} <= {*guides.questions()}
    for lang in registry.names("sheets"):
        for question, answers in guides.load(lang).words_of.items():
            for answer, words in answers.items():
                for word in words:
                    assert one.answer(question, f" {word.upper()}. ") == answer
            for offered in guides.load(lang).offered(question):
                assert one.answer(question, offered) in {*answers, *registry.names("languages")}
    for question in guides.questions():
        assert one.answer(question, "hmm") is None
    for code in registry.names("languages"):
        assert one.answer("language", packs.load_language(code).native) == code
        assert one.answer("language", code) == code
    assert {one.answer("language", name) for name in ("каз", "Қазақ", "Qazaq")} == {"kk"}
    assert one.answer("sentiment", "негатив") == one.answer("regard", "Негатив.") == "negative"
    for words in packs.load_pack().answers.values():
        assert [one.answer("answer", words[a]) for a in ("yes", "no")] == ["yes", "no"]


def test_whoever_reads_the_page_in_a_language_can_review_in_it():
    english = guides.load("en")
    assert set(registry.names("sheets")) == set(registry.names("page"))
    for lang in registry.names("sheets"):
        guide = guides.load(lang)
        assert lang == "en" or guide.review == "awaiting a native reader"
        for text in ("page", "judging"):  # the same parts, in the same order
            slots = [re.findall(r"\{\w+\}", one.texts[text]) for one in (guide, english)]
            assert slots[0] == slots[1]
        for mine, theirs in ((guide.heads, english.heads), (guide.about, english.about)):
            same = [key for key, text in mine.items() if text == theirs[key]]
            assert lang == "en" or not same, same
        for question in ("answer", "sentiment", "regard", "stance", "refusal", "fluency"):
            offered = guide.offered(question)
            assert all(word in guide.about[question] for word in offered), (lang, question)


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('ambiguous = ["ambiguous"', 'ambiguous = ["Y."', "'Y.' is two answers to 'answer'"),
        ("[columns.reply]", "[columns.replies]", "something is missing"),
        ('head = "row"', "", "something is missing"),
    ],
)
def test_a_guide_that_was_edited_badly(tmp_path, old, new, says):
    text = (registry.PROMPTS / "sheets" / "en.toml").read_text(encoding="utf-8")
    (tmp_path / "en.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=says):
        guides.read(tmp_path / "en.toml")


# --- workbooks


def book(path: Path, answer: Callable[[list[str]], str]) -> Path:
    """Fill in the answers of a workbook, as somebody who chooses from its lists."""
    found = openpyxl.load_workbook(path)
    for row in found.worksheets[1].iter_rows(min_row=2):
        row[4].value = answer([cell.value for cell in row])
    found.save(path)
    return path


def test_a_workbook_speaks_the_reviewers_language_and_offers_the_answers(tmp_path):
    run = make_run(tmp_path / "run", ["kk"], lambda n: [*HOSTILE, *LONG][n], limit=12)
    one, two = (
        review.export([run.folder], tmp_path / name, size=36, repeats=0)
        for name in ("a.xlsx", "b.xlsx")
    )
    assert one.files[0].read_bytes() == two.files[0].read_bytes()
    assert one.page is None and not list(tmp_path.glob("*.txt"))
    found = openpyxl.load_workbook(one.files[0])
    page, sheet, lists = found.worksheets
    assert found.active == page and lists.sheet_state == "hidden"
    said = [str(row[0].value or "") for row in page.iter_rows()]
    assert said[0] == "ТІЛ МОДЕЛЬДЕРІНІҢ ЖАУАПТАРЫН ОҚУ" and any("ЕСКЕРТУ" in line for line in said)
    assert not any("{" in line.replace("\\u{9}", "") or ".csv" in line for line in said)
    heads = [cell.value for cell in sheet[1]]
    assert heads[4] == "жауабы: иә, жоқ не екіұшты" and sheet["B2"].value == "қазақша (kk)"
    (rule,) = sheet.data_validations.dataValidation
    assert (str(rule.sqref), rule.formula1, rule.showErrorMessage) == (
        "E2:E37",
        "lists!$A$1:$A$3",
        True,
    )
    assert [row[0].value for row in lists.iter_rows()] == ["иә", "жоқ", "екіұшты"]
    assert page.protection.sheet and sheet.protection.sheet
    for number, row in enumerate(sheet.iter_rows(), 1):
        locked = [cell.protection.locked for cell in row]
        assert locked == [True] * 4 + [number == 1] * 2
        assert {cell.data_type for cell in row[:4]} == {"s"}
        assert row[4].number_format == ("General" if number == 1 else "@")
    # Each is read as the CSV is, whatever texts its cells hold; also if the first sheet is gone.
    book(one.files[0], lambda row: "иә" if row[0] < "r1-0020" else "екіұшты")
    found = openpyxl.load_workbook(book(two.files[0], lambda row: "Жоқ"))
    del found[found.sheetnames[0]]
    found.save(two.files[0])
    for done, answers in ((one, {"yes": 19, "ambiguous": 17}), (two, {"no": 36})):
        back = collect.collect(done.files, done.key)
        assert back.problems == []
        assert Counter(row["answer"] for row in back.rows) == answers
    # A changed text is found in a workbook, too.
    found = openpyxl.load_workbook(one.files[0])
    found.worksheets[1]["D5"].value = "> other"
    found.save(one.files[0])
    back = collect.collect(one.files, one.key)
    assert [p.row for p in back.problems] == [5] and len(back.rows) == 35


def test_the_language_of_a_sheet_is_asked_for_or_that_of_all_its_texts(run, tmp_path):
    def heads(name, **how):
        done = review.export([run.folder], tmp_path / name, repeats=0, **how)
        return openpyxl.load_workbook(done.files[0]).worksheets

    assert heads("a.xlsx")[1]["A1"].value == "row"  # English and Kazakh
    assert heads("b.xlsx", langs=["kk"])[1]["A1"].value == "жол"
    assert heads("c.xlsx", reader_lang="Russian")[1]["A1"].value == "строка"
    page, sheet, _ = heads("d.xlsx", reader_lang="fa")
    assert page.sheet_view.rightToLeft and sheet.sheet_view.rightToLeft
    assert page["A3"].alignment.readingOrder == 2
    with pytest.raises(InputError, match=r"unknown language of sheets 'it'.*kk"):
        heads("e.xlsx", reader_lang="it")


# --- a real spreadsheet

SOFFICE = shutil.which("soffice")
_NS = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
}


def _name(name: str) -> str:
    space, _, local = name.partition(":")
    return f"{{{_NS[space]}}}{local}"


class Calc:
    """LibreOffice without a window: open a CSV file as its import dialog would, edit, save."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "out").mkdir()

    def convert(self, paths: list[Path], to: str, *options: str) -> list[Path]:
        profile = f"-env:UserInstallation={(self.folder / 'profile').as_uri()}"
        out = self.folder / "out"
        command = [SOFFICE, profile, "--headless", *options, "--convert-to", to, "--outdir", out]
        words = [*map(str, [*command, *paths])]
        # Two that start at the same time may stop each other: once more.
        if subprocess.run(words, capture_output=True, timeout=300).returncode:
            subprocess.run(words, check=True, capture_output=True, timeout=300)
        return [out / f"{path.stem}.{to.partition(':')[0]}" for path in paths]

    def open(self, *paths: Path, separators: str = ",") -> list[Path]:
        signs = "/".join(str(ord(sign)) for sign in separators)
        return self.convert([*paths], "fods", f"--infilter=CSV:{signs},34,UTF8,1")

    def save(self, path: Path, separator: str) -> Path:
        to = f"csv:Text - txt - csv (StarCalc):{ord(separator)},34,UTF8"
        (saved,) = self.convert([path], to)
        return saved.rename(saved.with_name("saved.csv"))

    def values(self, path: Path, name: str) -> list[str | None]:
        """An attribute of every cell of a book, such as `table:formula`."""
        return [cell.get(_name(name)) for cell in ET.parse(path).iter(_name("table:table-cell"))]

    def edit(self, path: Path, answer: Callable[[str], str]) -> None:
        """Fill in the fifth column from the fourth, as typed."""
        for name, uri in _NS.items():
            ET.register_namespace(name, uri)
        tree = ET.parse(path)
        for row in list(tree.iter(_name("table:table-row")))[1:]:
            cells = [cell for cell in row if cell.tag == _name("table:table-cell")]
            if len(cells) < 5 or not "".join(cells[0].itertext()).strip():
                continue
            repeated = cells[4].attrib.pop(_name("table:number-columns-repeated"), None)
            if repeated and int(repeated) > 1:
                rest = ET.Element(_name("table:table-cell"))
                rest.set(_name("table:number-columns-repeated"), str(int(repeated) - 1))
                row.insert(list(row).index(cells[4]) + 1, rest)
            cells[4].set(_name("office:value-type"), "string")
            text = ET.SubElement(cells[4], _name("text:p"))
            text.text = answer("".join(cells[3].itertext()))
        tree.write(path, encoding="utf-8", xml_declaration=True)


@pytest.fixture
def calc(tmp_path_factory) -> Calc:
    return Calc(tmp_path_factory.mktemp("calc"))


@pytest.mark.slow
@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_keeps_every_cell_in_every_language(calc, tmp_path):
    langs = registry.names("languages")
    assert len(langs) == 18
    answers = list(packs.load_pack().answers.values())
    replies = [*HOSTILE, *LONG]
    replies += [f'{w["yes"]}; "{w["no"]}"\n\n- yes\r\n=x' for w in answers * 4]
    run = make_run(tmp_path / "run", langs, lambda n: replies[n], limit=2)
    done = review.export([run.folder], tmp_path / "all", size=1000, repeats=0)
    # What texts turn into that are not protected.
    raw = save(tmp_path / "raw.csv", [["a"], ["=1+1"], ["007"], ["TRUE"]])
    book, bare = calc.open(done.files[0], raw)
    assert calc.values(bare, "table:formula")[:2] == [None, "of:=1+1"]
    assert calc.values(bare, "office:value-type")[2] == "float"
    assert set(calc.values(book, "office:value-type")) == {None, "string"}
    calc.edit(book, lambda text: "yes" if "yes" in text else "no")
    path = calc.save(book, ";")
    back = collect.collect([path], done.key)
    assert back.problems == []
    assert len(back.rows) == 108
    assert all(row["answer"] == row["label"] for row in back.rows)
    assert {row["lang"] for row in back.rows} == set(langs)
    asked = {r.id: r.messages[-1]["content"] for r in run.requests()}
    texts = {r.request: r.text for r in run.responses()}
    key = json.loads(done.key.read_text())
    for _, cells in sheets.read(path, ["row", "asked in"]).rows:
        request = key["items"][key["rows"][cells[0]][1]]["request"]
        assert sheets.unshow(cells[2]) == asked[request]
        found, text = sheets.unshow(cells[3]), texts[request]
        assert found == text if text not in LONG else text.startswith(found)
    # Opened again, and opened with other separators than they have: all is text, nothing runs.
    again, other = calc.open(path, done.files[0], separators=";")
    assert set(calc.values(again, "office:value-type")) == {None, "string"}
    (every,) = calc.open(path, separators=",;\t|")
    for book in (again, other, every):
        assert len(calc.values(book, "table:formula")) > 300
        assert set(calc.values(book, "table:formula")) == {None}


@pytest.mark.slow
@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_keeps_a_workbook(calc, tmp_path):
    run = make_run(tmp_path / "run", ["fa"], lambda n: [*HOSTILE, *LONG][n], limit=12)
    done = review.export([run.folder], tmp_path / "a.xlsx", size=36, repeats=0)
    book(done.files[0], lambda row: "بله")
    (saved,) = calc.convert([done.files[0]], "xlsx")
    sheet = openpyxl.load_workbook(saved).worksheets[1]
    assert sheet.protection.sheet and sheet.sheet_view.rightToLeft
    assert len(sheet.data_validations.dataValidation) == 1
    # As a workbook, and saved from the second sheet as CSV, with the separator of another country.
    form = "csv:Text - txt - csv (StarCalc):59,34,UTF8,1,,0,false,true,false,false,false,2"
    calc.convert([saved], form)
    (csv_,) = saved.parent.glob("a*.csv")
    for path in (saved, csv_):
        back = collect.collect([path], done.key)
        assert back.problems == [] and [row["answer"] for row in back.rows] == ["yes"] * 36


def test_what_is_missing_in_many_rows_is_one_line():
    def problem(file, row, what, *missing):
        return collect.Problem(file, row, what, *missing)

    def unanswered(file, row, name):
        what = "no answer (stance)"
        return problem(file, row, f"{name}: {what}", name, what)

    many = [unanswered("a.csv", n + 1, f"r1-{n:04d}") for n in range(1, 8)]
    few = [unanswered("b.csv", 2, "r2-0001")]
    names = [f"r3-{n:04d}" for n in range(1, 7)]
    gone = [problem("reviewer3", None, f"the row {n} is missing", n, "missing") for n in names]
    assert collect.told([*many, *few, *gone]) == [
        "a.csv: no answer (stance): 7 rows, r1-0001 to r1-0007",
        "b.csv, row 2: r2-0001: no answer (stance)",
        "reviewer3: missing: 6 rows, r3-0001 to r3-0006",
    ]
    down = [problem("a.csv", row, what) for row, what in ((9, "y"), (None, "x"), (4, "z"))]
    assert collect.told(down) == ["a.csv: x", "a.csv, row 4: z", "a.csv, row 9: y"]


def test_files_are_sheets_and_a_second_round_is_of_one_reader(run, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError, match=r"name it a\.xlsx or a\.csv"):
        review.export([run.folder], tmp_path / "a.ods")
    with pytest.raises(InputError, match="leave --reviewers out"):
        review.export(
            [run.folder], tmp_path / "a.csv", reviewers=2, disagreements=tmp_path / "review.csv"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_second_export_does_not_undo_the_labels_of_the_first(run, tmp_path):
    one = review.export([run.folder], tmp_path / "one", size=6, repeats=0, seed=1)
    two = review.export([run.folder], tmp_path / "two", size=6, repeats=0, seed=5)
    for done in (one, two):
        fill(done.files[0], says)
    collect.collect(one.files, one.key, tmp_path / "one-review.csv")
    first = {j.request for j in run.judgments("reviewed-answer")}
    last = collect.collect(two.files, two.key, tmp_path / "two-review.csv")
    both = {j.request for j in run.judgments("reviewed-answer")}
    assert first <= both and last.kept == len(both) - 6
    assert run.verify() == []


def test_only_the_undecided_replies_are_read(run, tmp_path, capsys):
    order = [request.id for request in run.requests()]
    run.write_judgments(
        "yesno",
        "1",
        (
            Judgment(
                r, "yesno", "ambiguous", None, "", "", {"kind": ["undecided", "answer"][n > 7]}
            )
            for n, r in enumerate(order)
        ),
    )
    path = tmp_path / "u.csv"
    words = ["review", "export", str(run.folder), "-o", str(path), "--only", "undecided"]
    commands.cli(words, standalone_mode=False)
    assert "8 of 8 undecided replies" in capsys.readouterr().err
    key = json.loads((tmp_path / "u-key.json").read_text())
    assert {item["request"] for item in key["items"].values()} == set(order[:8])
    fill(path, lambda row: "yes")
    collect.collect([path], tmp_path / "u-key.json", tmp_path / "table.csv")
    assert len(list(run.judgments("reviewed-answer"))) == 8
    with pytest.raises(InputError, match="drawn from the undecided replies alone"):
        score(run.folder, reviewed=tmp_path / "table.csv")
    with pytest.raises(InputError, match="no reply is of the kind 'hedge'"):
        review.export([run.folder], tmp_path / "h.csv", only="hedge")
