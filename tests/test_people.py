"""What respondents and reviewers give stays theirs: names, deletion, modes of files, secrets."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_dataset import about as about_file
from test_dataset import run

from genprobe import commands, files
from genprobe.commands import cli
from genprobe.curation import collect, document, exchange, group, tables
from genprobe.datasets import pairs, statements, templates
from genprobe.engines import Options
from genprobe.errors import GenprobeError, InputError
from genprobe.files import disk, people, sheets
from genprobe.resources import models, registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import judge
from genprobe.tasks.pipeline import open as opening

needs_modes = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
CODES = ("kk2p-w7dm-3hxa", "kk9r-t4bn-6yqc", "tr5s-e8vf-2jgu")


def answers(*codes: str) -> list[dict]:
    """Two answers of each respondent to RuBia's pack; the second answers are all the same."""
    pack = collect.load("rubia", "en")
    fixed = {"pack": "rubia", "lang": "en", "domain": "age", "task": "freeform"}
    return [
        {"id": f"{code}-{n}", "respondent": code, **fixed, "pro": pro, "anti": "Poets sing."}
        | {"about_gender": f"woman {code[-1]}", "history": [f"{pack.step}|from:{code}"]}
        for code in codes
        for n, pro in ((1, f"Bakers hum {code[-1]}."), (2, "Bakers hum."))
    ]


def saved(path: Path, rows: list[dict]) -> Path:
    tables.write(path, rows, list(rows[0]))
    return path


# --- votes that come back


def votes_of(tasks: Path) -> Path:
    """Write what Potato saves of all tasks: votes without the rows."""
    lines = [json.loads(line) for line in tasks.read_text().splitlines()]
    made = [
        {
            "id": one["id"],
            "user_id": "ann",
            "label_annotations": {"bias": {one["text"].split("\n")[0]: 1}},
        }
        for one in lines
    ]
    return saved(tasks.with_name("annotated.jsonl"), made)


@pytest.mark.parametrize("votes_only", [False, True])
def test_after_a_deletion_votes_are_joined_to_the_right_person(votes_only, tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(*CODES))
    tasks = tmp_path / "t.jsonl"
    exchange.write(source, "potato", tasks, "rubia")
    sent = tasks.read_text()
    assert not any(code in sent for code in CODES) and "woman" not in sent
    back = votes_of(tasks) if votes_only else tasks
    rows, votes, left = exchange.read([back], "potato", source, "rubia")
    assert rows == answers(*CODES) and left == 0  # also where Potato returns no rows
    run("collect", "rubia", "-o", source, "--delete", CODES[0], "-q")
    rows, votes, left = exchange.read([back], "potato", source, "rubia")
    assert rows == answers(*CODES[1:]) and left == 2
    if votes_only:
        assert [(v["item"], v["label"]) for v in votes] == [
            (f"{code}-{n}", text)
            for code in CODES[1:]
            for n, text in ((1, f"Bakers hum {code[-1]}."), (2, "Bakers hum."))
        ]


def test_what_does_not_fit_the_table_is_refused(tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(*CODES[:2]))
    tasks = tmp_path / "t.jsonl"
    exchange.write(source, "potato", tasks, "rubia")
    other = answers(*CODES[:2])
    other[0]["pro"] = "Bakers whistle."
    with pytest.raises(InputError, match=r"has no row .* as it was then"):
        exchange.read([tasks], "potato", saved(tmp_path / "o.jsonl", other), "rubia")
    tasks.write_text(tasks.read_text().replace("Poets sing", "Poets shout"))
    with pytest.raises(InputError, match="is not as it was sent"):
        exchange.read([tasks], "potato", source, "rubia")


def test_what_was_sent_with_codes_does_not_bring_the_deleted_back(tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(*CODES))
    tasks = tmp_path / "t.jsonl"
    exchange.write(source, "potato", tasks, "rubia", keep_about=True)
    collect.delete(source, CODES[0])
    rows, _, left = exchange.read([tasks], "potato")
    assert {row["respondent"] for row in rows} == {*CODES[1:]} and left == 2


@pytest.mark.parametrize(
    ("value", "code", "name"),
    [
        ("1-2", "1", "r1-2"),
        ("1-1", "1", "r1-1"),
        ("10 men and 1", "1", "10 men and 1"),
        ("the bakers", "the", "the bakers"),
        (f"group|from:{CODES[0]}-1", CODES[0], "group|from:r1-1"),
        (["p1", "p1-2", "xp1-2"], "p1", ["r1", "r1-2", "xp1-2"]),
    ],
)
def test_a_code_that_is_any_word_changes_no_text(value, code, name):
    assert people.renamed(value, {code: "r1"}) == name


def test_rewordings_of_another_text_are_refused(tmp_path):
    """The ids of a published table are numbers, which move when answers are deleted."""
    rows = [row | {"text": f"Bakers hum {row['id'][-3:]}."} for row in SAID]
    source, about = saved(tmp_path / "a.jsonl", rows), about_file(tmp_path)
    document.run(source, about, tmp_path / "set")
    published = list(files.read_rows(tmp_path / "set" / "data.jsonl"))
    more = [row | {"rewording_1": "Ab.", "rewording_2": "Ac."} for row in published]
    again = saved(tmp_path / "more.jsonl", more)
    assert document.run(source, about, tmp_path / "set", (), again).lacking == 0
    source = saved(source, rows[1:])
    again = saved(again, more[:2])
    with pytest.raises(InputError, match="'r1-1' has another text than the published row"):
        document.run(source, about, tmp_path / "set", (), again)


# --- deletion


@pytest.mark.parametrize(
    "typed", ["KK2P-W7DM-3HXA", " kk2p w7dm 3hxa ", "kk2pw7dm3hxa", "kk2p‑w7dm‑3hxa"]
)
def test_a_code_is_known_however_it_is_typed(typed, tmp_path):
    source = saved(tmp_path / "a.csv", answers(*CODES[:2]))
    assert collect.delete(source, typed)[0] == 2
    pack = collect.load("rubia", "en")
    away = saved(tmp_path / "b.jsonl", answers(CODES[0].upper(), CODES[1]))
    rows, _ = collect.merge([away], pack)
    assert {row["respondent"] for row in rows} == {CODES[1]}


def test_a_deletion_is_remembered_before_the_answers_are_there(tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(CODES[1]))
    later = saved(tmp_path / "later.jsonl", answers(CODES[0]))
    words = ["dataset", "collect", "rubia", "-o", str(source), "--delete", CODES[0]]
    told = CliRunner().invoke(cli, words).output
    assert "no answer with this code; the code is remembered" in told
    assert "later.jsonl: the code still stands here" in told
    run("collect", "rubia", later, source, "-o", source, "-q")
    assert list(files.read_rows(source)) == answers(CODES[1])
    assert "no code is given" in run("collect", "rubia", "-o", source, "--delete", " ", code=2)


def test_every_file_in_which_a_code_stands_is_named(tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(*CODES[:2]))
    text = f"id,code\n1,{CODES[0].upper()}\n"
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / "utf16.csv").write_bytes(text.encode("utf-16"))
    (tmp_path / "sub" / "deep" / "copy.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "bare.txt").write_text(CODES[0].replace("-", ""))
    (tmp_path / "long.txt").write_bytes(b"x" * ((1 << 20) - 5) + CODES[0].encode())
    (tmp_path / "broken.gz").write_bytes(b"no gzip")
    (tmp_path / "broken.xlsx").write_bytes(b"no workbook")
    (tmp_path / "other.txt").write_text(CODES[1])
    count, lines = collect.delete(source, CODES[0])
    stands = [line.split(":")[0] for line in lines if "still stands" in line]
    names = ["bare.txt", "long.txt", "sub/utf16.csv", "sub/deep/copy.csv.gz"]
    assert count == 2 and stands == [str(tmp_path / name) for name in names]
    assert [line.split(":")[0] for line in lines if "cannot be looked into" in line] == [
        str(tmp_path / name) for name in ("broken.gz", "broken.xlsx")
    ]


def test_a_packed_file_beyond_the_limit_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GENPROBE_LIMIT_UNPACKED", "3000000")
    source = saved(tmp_path / "a.jsonl", answers(CODES[0]))
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    assert "cannot be looked into (more than 3,000,000" in "".join(
        collect.delete(source, CODES[0])[1]
    )


def test_when_all_answers_are_deleted_the_next_respondent_can_begin(tmp_path):
    for suffix in ("jsonl", "csv"):
        source = saved(tmp_path / f"a.{suffix}", answers(CODES[0]))
        assert collect.delete(source, CODES[0])[0] == 2
        done = CliRunner().invoke(
            cli, ["dataset", "collect", "rubia", "-o", str(source)], input="no\n"
        )
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "content",
    [
        *({"salt": "x", "codes": codes} for codes in ("abc", [1], {"abc": 1}, None)),
        *({"salt": 1, "codes": []}, [], {"salt": "x"}),
    ],
)
def test_a_damaged_list_of_codes_is_no_empty_one(content, tmp_path):
    source = saved(tmp_path / "a.jsonl", answers(CODES[0]))
    (tmp_path / collect.DELETED).write_text(json.dumps(content))
    with pytest.raises(InputError, match="damaged; restore it"):
        collect.merge([source], collect.load("rubia", "en"))
    with pytest.raises(InputError, match="damaged; restore it"):
        collect.delete(source, CODES[0])
    assert len(list(files.read_rows(source))) == 2


# --- what is published


SAID = [
    {"id": f"{code}-1", "lang": "en", "text": f"Bakers hum {n}.", "respondent": code}
    | {"about_gender": "woman of Ab", "region": "north", "history": f"from:{code}"}
    for n, code in enumerate(CODES, 1)
]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    ("load", "column", "text"),
    [
        (statements.load, "text", "Bakers hum {}."),
        (templates.load, "template", "Bakers {} [PLACEHOLDER]."),
        (pairs.load, "pro", "Bakers hum {}."),
    ],
)
def test_no_run_holds_who_wrote_what_it_asks(load, column, text, suffix, tmp_path):
    source = tmp_path / f"a.{suffix}"
    files.write_rows(
        source, [row | {column: text.format(n), "anti": "Ab."} for n, row in enumerate(SAID)]
    )
    found = load(str(source))[0]
    held = "".join(one.to_json() for one in found)
    assert len(found) >= 3 and "woman of" not in held and "respondent" not in held
    assert not any(code in held for code in CODES) and "north" in held
    people.keep_about()
    try:
        held = "".join(one.to_json() for one in load(str(source))[0])
    finally:
        people.keep_about(False)
    assert "woman of Ab" in held and all(code in held for code in CODES)


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_and_its_tables_hold_nothing_of_respondents(keep, tmp_path):
    source = saved(tmp_path / "a.csv", [row | {"text": f"Bakers {row['id']}"} for row in SAID])
    said = [
        {"statement": row["id"] if keep else f"r{n}-1", "lang": "en", "probe": "agreement"}
        | {"response": "Yes."}
        for n, row in enumerate(SAID, 1)
    ]
    replies = saved(tmp_path / "r.jsonl", said)
    words = ["yesno", "--engine", "replay", "--model", replies, "--data", source, "-q"]
    words += ["--probe", "agreement", "--out", tmp_path / "run", *["--keep-about"] * keep]
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code == 0, done.output
    raw = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert any(b"woman of" in content for content in raw) == keep
    assert any(CODES[0].encode() in content for content in raw) == keep


@needs_modes
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_judged_tables_with_people_in_them_are_private(suffix, tmp_path):
    (tmp_path / ".git").mkdir()
    rows = [row | {"probe": "agreement", "response": "Yes."} for row in SAID]
    files.write_rows(tmp_path / "in.jsonl", rows)
    files.write_rows(tmp_path / "plain.jsonl", [{"respondent": "r1", "text": "Ab."}])
    judge.judge_file(tmp_path / "in.jsonl", ["yesno"], tmp_path / f"out.{suffix}")
    files.write_rows(tmp_path / f"votes.{suffix}", [{"item": "1", "rater": "ann@example.org"}])
    for name in ("in.jsonl", f"out.{suffix}", f"votes.{suffix}"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert f"/{name}" in (tmp_path / ".gitignore").read_text().splitlines()
    assert stat.S_IMODE((tmp_path / "plain.jsonl").stat().st_mode) == 0o644


@needs_modes
@pytest.mark.parametrize(("keep", "mode"), [(False, 0o644), (True, 0o600)])
def test_a_data_set_that_names_people_is_private(keep, mode, tmp_path):
    rows = [row | {"about_region": "Turkistan"} for row in SAID]
    source, about = saved(tmp_path / "a.jsonl", rows), about_file(tmp_path)
    document.run(source, about, tmp_path / "set", keep_about=keep)
    data = tmp_path / "set" / "data.jsonl"
    assert stat.S_IMODE(data.stat().st_mode) == mode
    assert ("about_region" in next(iter(files.read_rows(data)))) == keep


@needs_modes
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.xlsx"])
def test_a_file_that_is_rewritten_keeps_its_mode(name, tmp_path):
    path = tmp_path / name
    path.write_text("x")
    path.chmod(0o600)
    rows = [{"id": "1"}]
    if name == "a.json":
        disk.replace(path, ["{}"])
    else:
        tables.write(path, rows, ["id"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_bytes() != b"x"


@pytest.mark.parametrize("name", registry.names("judges"))
def test_every_judge_reads_any_run_or_says_in_a_line_why_not(name, tmp_path):
    """A run whose questions have no options ended the judge `choice` by a ValueError."""
    statement = saved(tmp_path / "a.csv", [{"id": "1", "lang": "en", "text": "Bakers hum."}])
    said = {"statement": "1", "lang": "en", "probe": "agreement", "response": "Yes."}
    replies = saved(tmp_path / "r.jsonl", [said])
    words = ["yesno", "--engine", "replay", "--model", replies, "--data", statement, "-q"]
    words += ["--probe", "agreement", "--out", tmp_path / "run"]
    assert CliRunner().invoke(cli, list(map(str, words))).exit_code == 0
    done = CliRunner().invoke(cli, ["judge", str(tmp_path / "run"), "--judge", name])
    if done.exception and not isinstance(done.exception, SystemExit):
        assert isinstance(done.exception, GenprobeError) and "\n" not in str(done.exception)
    assert not list((tmp_path / "run").rglob("*.tmp"))


# --- secrets, and ends of all kinds


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", True),
        ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v2", False),
        ("https://one.example/v1", "https://two.example/v1", True),
    ],
)
@pytest.mark.parametrize("way", ["header", "key", "usual"])
def test_a_secret_that_is_given_once_goes_to_one_server(
    first, second, refused, way, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOUSE", "s3cr3t")
    monkeypatch.setenv("GENPROBE_API_KEY", "s3cr3t") if way == "usual" else None
    given = {"header": {"headers": {"X": "$HOUSE"}}, "key": {"key_env": "HOUSE"}, "usual": {}}
    known = {
        name: models.Model(name, name, base_url=url)
        for name, url in (("one-m", first), ("two-m", second))
    }
    with models.also(known):
        asked = [(name, Options(**given[way])) for name in known]
        if not refused:
            opening.need_one_host(asked)
            return
        with pytest.raises(InputError, match=r"goes to one server.* in the file of models: "):
            opening.need_one_host(asked)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_is_sealed(number, tmp_path, monkeypatch):
    made = [{"id": str(n), "lang": "en", "text": f"Bakers hum {n}."} for n in range(4)]
    said = [{"statement": row["id"], "lang": "en", "probe": "agreement"} for row in made]
    source = saved(tmp_path / "a.csv", made)
    replies = saved(tmp_path / "r.jsonl", [row | {"response": "Yes."} for row in said])
    append, came = Run.append, []

    def stopped(run, record):
        append(run, record)
        came.append(record)
        if len(came) == 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Run, "append", stopped)
    words = ["genprobe", "yesno", "--engine", "replay", "--model", replies, "--data", source, "-q"]
    words += ["--probe", "agreement", "--out", tmp_path / "run"]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            commands.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 130
    run = Run.open(tmp_path / "run")
    assert 2 <= len(list(run.responses())) < 4 and len(run.seals()) == 1
    assert [p for p in run.verify() if "incomplete" not in p] == []


def test_a_review_export_that_fails_leaves_no_file(tmp_path, monkeypatch):
    made = [{"id": str(n), "lang": "en", "text": f"Bakers hum {n}."} for n in range(4)]
    said = [{"statement": row["id"], "lang": "en", "probe": "agreement"} for row in made]
    source = saved(tmp_path / "a.csv", made)
    replies = saved(tmp_path / "r.jsonl", [row | {"response": "Yes."} for row in said])
    words = ["yesno", "--engine", "replay", "--model", replies, "--data", source, "-q"]
    words += ["--probe", "agreement", "--out", tmp_path / "run"]
    assert CliRunner().invoke(cli, list(map(str, words))).exit_code == 0
    (tmp_path / "out").mkdir()
    export = ["review", "export", str(tmp_path / "run"), "-o", str(tmp_path / "out" / "s.csv")]

    def full(path, rows):
        raise InputError(f"{path}: cannot be written (No space left on device)")

    with monkeypatch.context() as patch:
        patch.setattr(sheets, "write", full)
        assert CliRunner().invoke(cli, export).exit_code
    assert list((tmp_path / "out").iterdir()) == []
    assert CliRunner().invoke(cli, export).exit_code == 0
    key = tmp_path / "out" / "s-key.json"
    assert os.name == "nt" or stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_model_of_the_hub_is_loaded_and_named_with_its_commit(tmp_path, monkeypatch):
    asked = []

    def download(name, *, revision, allow_patterns):
        asked.append((name, revision))
        return str(tmp_path / (revision or "ffff0000ffff0000"))

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert group.named("a/model@0123456789abcdef") == "model@0123456789ab"
    assert group.named("a/model") == "model@ffff0000ffff"
    (tmp_path / "mine@home").mkdir()
    assert group.named(str(tmp_path / "mine@home")) == "mine@home"
    assert asked == [("a/model", "0123456789abcdef"), ("a/model", None)]
