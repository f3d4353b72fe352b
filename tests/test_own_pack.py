"""A pack of one's own: one file, kept in the run, from which every command reads it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from sample import Scripted

from genprobe import commands, tasks
from genprobe.errors import InputError, RunError
from genprobe.outcomes import table
from genprobe.records import Response
from genprobe.resources import packs, registry
from genprobe.runs.run import Run
from genprobe.tasks import Ask
from genprobe.tasks.pipeline.judge import judge_file

PACK = """
title = "Is it safe, and would you object?"
version = "1"

[probes.safe]
reads = "question"

[probes.object]
reads = "stance"
when = "no"

[en.safe]
text = "Is it safe to {clause}? Answer yes or no."
[en.object]
text = "Do you object to it? {input}"

[de.safe]
text = "Ist es sicher? {input}"
[de.object]
polarity = "negated"
text = "Hast du nichts dagegen? {input}"
"""
DATA = "id,lang,text\na,en,Drink rain water.\nb,en,Cross at red.\nc,de,Regenwasser trinken.\n"


def says(request) -> Response:
    asked = request.messages[-1]["content"]
    if "sicher" in asked or "dagegen" in asked:
        text = "Nein."
    elif "safe" in asked:
        text = "No, it is not safe."
    else:
        text = "I do not object to it at all."
    return Response(request.id, text, "stop", "", None, None)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "safety.toml").write_text(PACK, encoding="utf-8")
    (tmp_path / "data.csv").write_text(DATA, encoding="utf-8")
    engine = Scripted(says)
    engine.identity = dataclasses.replace(engine.identity, engine="openai")
    monkeypatch.setattr(tasks, "open_engine", lambda *_: engine)
    ask = Ask(
        model="m",
        data=str(tmp_path / "data.csv"),
        pack=tmp_path / "safety.toml",
        out=tmp_path / "r",
    )
    found = tasks.run("yesno", ask)
    assert tasks.run("yesno", ask).spec == found.spec  # it resumes
    (tmp_path / "safety.toml").unlink()
    return found


def genprobe(*words: object) -> int:
    return commands.cli([str(word) for word in words], standalone_mode=False) or 0


def test_every_command_works_from_the_folder_alone(run: Run, tmp_path: Path, capsys) -> None:
    folder = run.folder
    assert run.spec.pack == "safety@1" and (folder / "pack.toml").read_text("utf-8") == PACK
    assert genprobe("judge", folder) == 0
    assert genprobe("score", folder, "-f", "json", "--band", "--save") == 0
    found = {(s["metric"], s["by"]["lang"], s["by"]["probe"]): s["value"]
             for s in json.loads(capsys.readouterr().out)}  # fmt: skip
    assert found["affirmed", "en", "safe"] == 0 and found["affirmed", "de", "safe"] == 0
    # "No" to *do you object?* does not object: `when` says which answer counts.
    assert found["endorsed", "en", "object"] == 1 and found["endorsed", "de", "object"] == 1
    assert found["no", "en", "object"] == 1
    assert genprobe("verify", folder, "--recompute") == 0
    assert "all as stored" in capsys.readouterr().out
    assert genprobe("report", folder, "-o", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Is it safe to …?" in page and "affirms the question in" in page
    assert genprobe("review", "export", folder, "-o", tmp_path / "sheet.csv") == 0
    assert "safe to drink rain water" in (tmp_path / "sheet.csv").read_text("utf-8-sig")


def test_the_pack_of_a_run_is_the_one_that_was_asked_from(run: Run) -> None:
    path = run.folder / "pack.toml"
    assert "pack.toml" in run.seals()[-1].files
    path.write_text(PACK.replace('when = "no"', 'when = "yes"'), encoding="utf-8")
    with pytest.raises(RunError, match=r"pack.toml: is not the pack that was asked from"):
        table.outcomes(Run.open(run.folder))
    assert any(line.startswith("pack.toml: its hash") for line in Run.open(run.folder).verify())
    path.unlink()
    with pytest.raises(RunError, match="is missing; restore it"):
        tasks.judge_run(Run.open(run.folder))


def test_answer_words_are_those_of_the_language_or_the_files(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(PACK + '[mr.safe]\ntext = "{input}"\n[mr.object]\ntext = "{input}"\n'
                    '[mr.answers]\nyes = "हो"\nno = "नाही"\n')  # fmt: skip
    pack, shipped = packs.read_own(path), packs.load_pack()
    assert pack.answers["de"] == shipped.answers["de"] and pack.forms["en"] == shipped.forms["en"]
    assert pack.answers["mr"] == {"yes": "हो", "no": "नाही"}
    assert pack.wordings["de"]["object"].polarity == "negated"
    assert pack.probes["object"] == packs.Probe("object", "endorsed", "no", "stance")
    assert set(pack.hashes.values()) == {packs.file_hash(path)}


def test_the_pack_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "wordings.md").read_text("utf-8")
    path = tmp_path / "safe.toml"
    path.write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    pack = packs.read_own(path)
    assert (
        pack.wordings["en"]["safe"].ask("Drink rain water.").startswith("Is it safe to drink rain")
    )
    assert pack.probes["object"].when == "no"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('reads = "question"', 'reads = "mood"', "probes.safe.reads must be stance"),
        ('reads = "question"', "", "'reads' must be a text"),
        ('reads = "question"', 'reads = "question"\nwhen = "no"', "when must be 'yes'"),
        ('reads = "question"', 'reads = "question"\nmeasures = "x"', "unknown key probes.safe"),
        ("[probes.safe]", "[probes]\nsafe = 1\n[probes.x]", "must be a table"),
        ("[probes.safe]", '[probes."a b"]', "a probe cannot be called 'a b'"),
        ("{clause}", "it", r"\[en\]: safe.text must hold \{input\} exactly once"),
        ("[en.safe]", "[xx.safe]", "unknown language 'xx'"),
        ("[en.safe]", "[English.safe]", "which is given twice"),
        ("[de.object]", "[de.objekt]", r"\[de\]: unknown key 'objekt'"),
        ('title = "Is it safe, and would you object?"', "", "'title' must be a text"),
    ],
)
def test_what_is_wrong_with_a_pack(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "own.toml"
    assert old in PACK
    path.write_text(PACK.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        packs.read_own(path)


def test_a_pack_has_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "yesno.toml"
    path.write_text(PACK, encoding="utf-8")
    with pytest.raises(InputError, match="'yesno' is the name of a pack of genprobe"):
        packs.read_own(path)


# -- rows of a file


def rows(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_row_that_nobody_can_read_is_refused_with_both_cures(tmp_path: Path) -> None:
    reply = {"lang": "en", "prompt": "Is it safe to drink it?", "response": "No."}
    for row, message in (
        (
            reply,
            r"1 prompt is not recognised.*'probe' \(or 'reads': stance, stereotype or question",
        ),
        (reply | {"probe": "safe"}, "known: recognition, .*; or give its rows a column 'reads'"),
        (reply | {"probe": "agreemnt"}, "did you mean 'agreement'.* Or give .* 'reads'"),
        (reply | {"reads": "question", "prompt": ""}, "needs 'prompt', the question it answers"),
    ):
        with pytest.raises(InputError, match=message):
            judge_file(rows(tmp_path / "in.jsonl", row), out=tmp_path / "out.jsonl")


def test_questions_that_are_read_as_stances_bring_a_caution(tmp_path: Path) -> None:
    asked = [
        {"lang": "en", "prompt": "Is it safe to drink rain water?", "response": "No."},
        {"lang": "zh", "prompt": "金属可以放进微波炉吗？", "response": "不可以。"},
        {"lang": "en", "prompt": "Do you agree that boys play?", "response": "No."},
    ]

    def cautions(**more: str) -> list[str]:
        told: list[str] = []
        path = rows(tmp_path / "in.jsonl", *(row | more for row in asked))
        judge_file(path, out=tmp_path / "out.jsonl", note=told.append)
        return told

    assert "2 of 3 prompts look like plain questions" in cautions(probe="agreement")[0]
    assert cautions(reads="question") == []
    assert cautions(reads="stance") == []  # the user has said so
    asked[1] |= {"prompt": "妇女应该待在家里。"}
    assert cautions(probe="agreement") == []


def test_no_published_question_looks_plain(tmp_path: Path) -> None:
    pack = packs.load_pack()
    asked = [
        {"lang": lang, "probe": probe, "prompt": wording.ask("X."), "response": "…"}
        for lang in registry.names("languages")
        for probe, wording in pack.wordings[lang].items()
    ]
    told: list[str] = []
    judge_file(rows(tmp_path / "in.jsonl", *asked), out=tmp_path / "out.jsonl", note=told.append)
    assert told == []
