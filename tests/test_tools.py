"""Annotation tools: what their own code exports (tests/exports) is read, or refused with the cure."""

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_dataset import run

from genprobe.commands import cli
from genprobe.curation import exchange, validate
from genprobe.errors import InputError
from genprobe.files import read_rows

EXPORTS = Path(__file__).parent / "exports"
SOURCE = EXPORTS / "pairs.csv"
# What people said (tests/exports/make.py): two of three items are kept, and one was skipped by one.
SAID = {"tea": (("yes", "yes"), ("yes", "no")), "run": (("no", "yes"), ("no", "yes"))}
SAID["fit"] = (("yes", "yes"), None)


def expected(raters, questions=("trope", "minimal")):
    return sorted(
        (item, rater, question, answer)
        for item, both in SAID.items()
        for rater, answers in zip(raters, both, strict=True)
        for question, answer in zip(questions, answers or (), strict=False)
    )


def votes_of(votes, questions):
    return sorted(
        (v["item"], v["rater"], v["question"], validate.meant(v["question"], v["label"], questions))
        for v in votes
    )


@pytest.mark.parametrize("name", ["label-studio.json", "label-studio-min.json", "label-studio.csv"])
@pytest.mark.parametrize("source", [None, SOURCE])
def test_each_export_of_label_studio_gives_the_rows_and_the_votes(name, source):
    rows, votes, left = exchange.read([EXPORTS / name], "label-studio", source, "rubia")
    told = [(row["id"], row["pro"], row["anti"]) for row in rows]
    assert told == [(row["id"], row["pro"], row["anti"]) for row in read_rows(SOURCE)]
    assert votes_of(votes, "rubia") == expected(("aida@example.org", "berik@example.org"))
    assert left == 0


def test_items_of_older_exports_are_named_by_their_row(tmp_path):
    """Label Studio writes its number over `id`, where the item was named before."""
    old = json.loads((EXPORTS / "label-studio-min.json").read_text("utf-8"))
    for task in old:
        del task["item"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    _, votes, _ = exchange.read([path], "label-studio", SOURCE, "rubia")
    assert votes_of(votes, "rubia") == expected(("aida@example.org", "berik@example.org"))


@pytest.mark.parametrize("how", ["source", "items"])
def test_rows_of_potato_are_those_of_its_items(how, tmp_path):
    items = tmp_path / "p.jsonl"
    exchange.write(SOURCE, "potato", items, "rubia")
    given = [EXPORTS / "potato.jsonl", *([items] if how == "items" else [])]
    source = SOURCE if how == "source" else None
    rows, votes, _ = exchange.read(given, "potato", source, "rubia")
    assert [row["id"] for row in rows] == ["tea", "run", "fit"]
    assert votes_of(votes, "rubia") == expected(("aida", "berik"))


def test_from_the_export_of_a_tool_to_what_is_kept(tmp_path):
    for tool, name in (("potato", "potato.jsonl"), ("label-studio", "label-studio.csv")):
        rows, votes, kept = (tmp_path / f"{tool}-{part}.csv" for part in "rvk")
        run("convert", EXPORTS / name, "--from", tool, "--source", SOURCE, "--questions", "rubia",
            "--votes", votes, "-o", rows, "-q")  # fmt: skip
        run("validate", "keep", rows, "--votes", votes, "--questions", "rubia", "--rule", ">=50%",
            "-o", kept, "-q")  # fmt: skip
        assert [row["id"] for row in read_rows(kept)] == ["tea", "fit"]


def test_doccanos_zip_is_read_as_it_comes():
    rows, votes, _ = exchange.read([EXPORTS / "doccano.zip"], "doccano")
    assert [row["id"] for row in rows] == ["tea", "run", "fit"]
    assert votes_of(votes, "aqbileq") == expected(("aida", "berik"), ("label",))


def test_a_zip_does_no_harm(tmp_path, monkeypatch):
    line = b'{"id": 1, "text": "a", "item": "i", "label": ["yes"]}\n'
    path = tmp_path / "d.zip"

    def made(**members):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in members.items():
                file.writestr(name, data)
        return [path]

    before = sorted(tmp_path.rglob("*"))
    _, votes, _ = exchange.read(made(**{"../../etc/aida.jsonl": line}), "doccano")
    assert [(v["item"], v["rater"]) for v in votes] == [("i", "aida")]
    assert sorted(tmp_path.rglob("*")) == [*before, path]  # nothing was unpacked
    for members, why in (
        ({"a.csv": b"x"}, "holds a.csv; choose JSONL"),
        ({"a.jsonl": b"{"}, "line 1: not JSON"),
        ({"a.jsonl": b"[1]\n"}, "line 1: not an object"),
        ({"a.jsonl": b'{"x": 1}\n'}, "choose JSONL"),
        ({"a.jsonl": b'{"label": 5, "id": 1}\n'}, "not as doccano exports it"),
        ({"a.jsonl": b'{"label": ["\xff"]}\n'}, "line 1"),
    ):
        with pytest.raises(InputError, match=why):
            exchange.read(made(**members), "doccano")
    monkeypatch.setenv("GENPROBE_LIMIT_UNPACKED", "100000")
    bomb = {f"{n}.jsonl": line + b" " * 60_000 for n in range(2)}
    with pytest.raises(InputError, match="GENPROBE_LIMIT_UNPACKED"):
        exchange.read(made(**bomb), "doccano")
    monkeypatch.setenv("GENPROBE_LIMIT_MEMBERS", "1")
    with pytest.raises(InputError, match="GENPROBE_LIMIT_MEMBERS"):
        exchange.read(made(**bomb), "doccano")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a zip"):
        exchange.read([path], "doccano")


def test_another_export_is_refused_with_the_button_to_press(tmp_path):
    (tmp_path / "x.zip").write_bytes((EXPORTS / "doccano.zip").read_bytes())
    foreign = [{"id": 1, "text": "a", "bias": "yes", "annotation_id": 1, "annotator": 1}]
    (tmp_path / "min.json").write_text(json.dumps(foreign))
    (tmp_path / "lines.json").write_text('{"a": 1}\n{"a": 2}\n')
    (tmp_path / "d.json").write_text("[]")
    for path, tool, why in (
        (tmp_path / "x.zip", "label-studio", "choose JSON in its export window"),
        (tmp_path / "min.json", "label-studio", "choose JSON in its export window"),
        (tmp_path / "lines.json", "label-studio", "choose JSON in its export window"),
        (EXPORTS / "potato.csv", "potato", r"name annotations\.jsonl"),
        (tmp_path / "d.json", "doccano", "choose JSONL under Actions"),
    ):
        with pytest.raises(InputError, match=why):
            exchange.read([path], tool)
    out = tmp_path / "o.jsonl"
    told = run("convert", SOURCE, "--to", "doccano", "--questions", "rubia", "-o", out, code=2)
    assert "doccano asks one question about a text, and rubia has 2: trope, minimal" in told
    assert not list(tmp_path.glob("o*"))
    given = ["dataset", "convert", EXPORTS / "potato.jsonl", "--from", "potato", "-o", out]
    done = CliRunner().invoke(cli, list(map(str, given)))
    assert done.exit_code == 0 and not out.exists()
    assert "is not written: no rows; name the table with --source" in done.stderr


def test_tools_show_the_words_of_the_language_and_a_warning(tmp_path):
    _, config = exchange.write(SOURCE, "label-studio", tmp_path / "t.json", "rubia")
    shown = config.read_text("utf-8")
    assert '<Choice value="иә" alias="yes"/>' in shown and "ЕСКЕРТУ" in shown
    _, config = exchange.write(SOURCE, "potato", tmp_path / "p.jsonl", "rubia")
    assert json.loads(config.read_text("utf-8"))["annotation_schemes"][0]["labels"] == ["иә", "жоқ"]
    _, guideline = exchange.write(SOURCE, "doccano", tmp_path / "d.jsonl", "aqbileq")
    told = guideline.read_text("utf-8")
    assert "ЕСКЕРТУ" in told and "көрсете ме?" in told and "\n- иә\n- жоқ\n" in told
