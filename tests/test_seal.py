"""A run says when it was changed: the seal, the plan counted again, the replies read again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample import REQUESTS, Scripted, reply, start

from genprobe import files
from genprobe.analysis.score import score
from genprobe.commands import main
from genprobe.engines import Sampling
from genprobe.errors import RunError
from genprobe.records import Judgment, Request, Response
from genprobe.report import render
from genprobe.report.figures import draw
from genprobe.runs import seal
from genprobe.runs.run import Run
from genprobe.tasks import Ask, judge_run, run
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.reread import reread

GOLDEN = Path(__file__).parent / "golden"
KINDS = ("yesno", "stories", "essays", "pairs", "choices")
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork")
keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")


def genprobe(*words: object) -> tuple[int, str]:
    """Exit code and output of a command, in this process."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    arguments = mock.patch.object(sys, "argv", ["genprobe", *map(str, words)])
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(out)
    with arguments, streams[0], streams[1], pytest.raises(SystemExit) as stop:
        main()
    out.seek(0)
    return int(stop.value.code or 0), out.read()


def verify(*words: object) -> tuple[int, list[str]]:
    """Exit code and lines of `genprobe verify`."""
    code, said = genprobe("verify", *words)
    return code, said.splitlines()


def found(folder: Path) -> str:
    """What `genprobe verify` finds, which must be something."""
    code, lines = verify(folder)
    assert code == 1
    return "\n".join(lines)


def edit(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of 40 statements in two languages, replayed, judged and scored."""
    folder = tmp_path_factory.mktemp("asked")
    there = [
        {"id": f"s{n}", "lang": lang, "text": f"{text} {n}."}
        for n in range(20)
        for lang, text in (("en", "Old people are slow"), ("ru", "Старые люди медлительны"))
    ]
    files.write_rows(folder / "statements.csv", there)
    said = {"en": ("Yes.", "No, I disagree."), "ru": ("Да.", "Нет, не согласен.")}
    replies = [
        {
            "statement": row["id"],
            "lang": row["lang"],
            "probe": probe,
            "response": said[row["lang"]][(n + len(probe)) % 2],
        }
        for n, row in enumerate(there)
        for probe in ("recognition", "agreement", "disagreement")
    ]
    files.write_rows(folder / "replies.csv", replies)
    ask = Ask(
        model=str(folder / "replies.csv"),
        data=str(folder / "statements.csv"),
        engine="replay",
        out=folder / "run",
    )
    run("yesno", ask)
    score(folder / "run", save=True)
    return folder / "run"


@pytest.fixture
def folder(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "run"))


# -- the two doctored folders ------------------------------------------------------------------


def turn_round(folder: Path) -> None:
    """Edit the text of twenty replies."""
    text = "".join((folder / "responses.jsonl").read_text())
    changed = re.sub(r'"text":"Yes\."', '"text":"No."', text, count=20)
    assert changed != text
    (folder / "responses.jsonl").write_text(changed)


def drop_statements(folder: Path) -> None:
    """Drop twenty of the statements with all their questions, and judge what is left."""
    rows = [json.loads(line) for line in (folder / "requests.jsonl").open()]
    lost = {f"s{n}" for n in range(10)}
    gone = {row["id"] for row in rows if row["statement"] in lost}
    for name, key in (("requests", "id"), ("responses", "request")):
        edit(
            folder / f"{name}.jsonl",
            lambda lines, key=key: [one for one in lines if json.loads(one)[key] not in gone],
        )
    shutil.rmtree(folder / "judgments")
    judge_run(Run.open(folder), ("yesno", "refusal", "language"))
    score(folder, save=True)


@pytest.mark.parametrize("sealed", [True, False])
def test_edited_replies_are_found(folder: Path, sealed: bool) -> None:
    turn_round(folder)
    if not sealed:
        (folder / "MANIFEST").unlink()
    said = found(folder)
    edited = re.findall(r"^responses\.jsonl:\d+: 1 row edited after the seal", said, re.M)
    assert len(edited) == (20 if sealed else 0)
    assert (
        len(re.findall(r"^judgments/yesno\.jsonl: request \w+ is stored as yes", said, re.M)) == 20
    )


@pytest.mark.parametrize("sealed", [True, False])
def test_dropped_statements_are_found(folder: Path, sealed: bool) -> None:
    if not sealed:
        (folder / "MANIFEST").unlink()
    drop_statements(folder)
    said = found(folder)
    assert "requests.jsonl: 60 requests about 20 statements of statements.jsonl" in said
    assert ("60 rows dropped before this one after the seal" in said) == sealed
    if not sealed:  # nothing else is wrong with it
        assert len(said.splitlines()) == 2 and "unsealed" in said


def test_evidence_of_an_older_reader_must_stand_in_the_reply(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    text = (folder / "responses.jsonl").read_text()
    (folder / "responses.jsonl").write_text(text.replace("Nein", "Ja").replace("nein", "ja"))
    assert "'Nein' does not stand in the reply" in found(folder)


def test_judgments_that_were_edited_with_their_hash_are_found(folder: Path) -> None:
    path = folder / "judgments" / "yesno.jsonl"
    one = Judgment.from_json(path.read_text().splitlines()[0])
    other = {"yes": "no", "no": "yes"}[one.label]
    edit(
        path,
        lambda rows: [rows[0].replace(f'"label":"{one.label}"', f'"label":"{other}"'), *rows[1:]],
    )
    note = path.with_suffix(".json")
    row = json.loads(note.read_text())
    row["hash"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    note.write_text(json.dumps(row) + "\n")
    said = found(folder)
    assert f"request {one.request} is stored as {other}" in said and len(said.splitlines()) == 2


def test_judgments_out_of_order_do_not_hide_an_edit(folder: Path) -> None:
    edit(folder / "judgments" / "yesno.jsonl", lambda rows: rows[::-1])
    lines = reread(Run.open(folder)).problems
    assert any("not in the order of the plan" in line for line in lines)


# -- the seal ----------------------------------------------------------------------------------


def finish(folder: Path, script: Callable[[Request], Response] = reply) -> None:
    with start(folder) as run:
        generate(run, Scripted(script), Sampling())


def begin(folder: Path, number: int) -> None:
    """Answer the first requests of the sample, and end the run."""
    with start(folder) as run:
        for request in REQUESTS[:number]:
            run.append(reply(request))


def test_a_whole_run_is_as_it_was_sealed(folder: Path) -> None:
    code, lines = verify(folder)
    (one,) = Run.open(folder).seals()
    assert (code, lines[-1]) == (0, f"{folder}: seal {one.short}")
    for name, file in one.files.items():
        data = (folder / name).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
        assert (file["bytes"], file["rows"]) == (len(data), data.count(b"\n"))
    assert one.files.keys() == {*seal.SEALED} - {seal.PACK}  # its pack is one of genprobe


def test_a_resumed_run_extends_its_seal(tmp_path: Path) -> None:
    begin(tmp_path / "run", 2)
    finish(tmp_path / "run")
    first, second = Run.open(tmp_path / "run").seals()
    assert (second.previous, second.changed) == (first.seal, ())
    assert first.files["responses.jsonl"]["rows"] == 2
    assert Run.open(tmp_path / "run").verify() == []
    start(tmp_path / "run").close()  # nothing new: no new seal
    assert len(Run.open(tmp_path / "run").seals()) == 2


def test_an_edit_is_not_covered_up_by_going_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begin(folder, 2)
    edit(folder / "responses.jsonl", lambda rows: [rows[0].replace("Yes", "No!"), *rows[1:]])
    finish(folder)
    assert Run.open(folder).seals()[-1].changed == ("responses.jsonl",)
    said = found(folder)
    assert "responses.jsonl: was changed before the seal of" in said
    code, lines = verify(folder, "--seal")
    assert code == 0
    assert re.search(
        r"seal \w{16}, sealed again by hand on [\d-]{10} after a change of resp", lines[-1]
    )
    assert len(Run.open(folder).seals()) == 3
    assert verify(folder)[1] == lines  # it stays noted


def test_an_edit_on_purpose_can_be_sealed_and_is_said_on_the_page(folder: Path) -> None:
    before = Run.open(folder).seals()[-1].short
    turn_round(folder)
    judge_run(Run.open(folder), ("yesno", "refusal", "language"))
    code, lines = verify(folder, "--seal")
    assert code == 0 and before not in lines[-1]
    score(folder, save=True)
    page = render([folder])
    assert "sealed again by hand on" in page and Run.open(folder).seals()[-1].short in page
    assert verify(folder)[0] == 0


def test_two_runs_that_were_put_together_are_found(folder: Path, tmp_path: Path) -> None:
    data = (folder / "responses.jsonl").read_bytes()
    (folder / "responses.jsonl").write_bytes(data * 2)
    said = found(folder)
    assert "responses.jsonl:121: 120 rows added after the seal" in said
    assert "second response to request" in said


def test_replies_that_were_put_in_for_open_questions_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begin(folder, 2)
    with (folder / "responses.jsonl").open("a") as file:
        file.writelines(reply(request).to_json() + "\n" for request in REQUESTS[2:])
    assert "responses.jsonl:3: 4 rows added after the seal" in found(folder)


def test_a_deleted_seal_is_told_and_the_scores_remember_it(folder: Path) -> None:
    (folder / "MANIFEST").unlink()
    said = found(folder)
    assert "scores.json: made of records with the seal" in said and "unsealed" in said
    (folder / "scores.json").unlink()
    assert "README.md: names the seal" in found(folder)
    (folder / "README.md").unlink()
    code, lines = verify(folder)
    assert code == 0 and "unsealed" in lines[-1]


@pytest.mark.parametrize("name", ["README.md", "outcomes.parquet"])
@pytest.mark.parametrize("later", [False, True])
def test_a_derived_file_that_is_edited_is_told_until_it_is_made_again(
    folder: Path, name: str, later: bool
) -> None:
    genprobe("score", folder, "--save")
    assert verify(folder)[0] == 0
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"agreement", b"agreemend").replace(b"1", b"2"))
    if later:
        genprobe("judge", folder, "--judge", "refusal")
    if not later:  # both are made anew, or removed, when a run is judged again
        assert f"{name}: was edited after it was" in found(folder)
    genprobe("score", folder, "--save")
    assert verify(folder)[0] == 0


def test_a_page_without_its_hash_is_told(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text("Send us your data.\n")
    assert "README.md: was edited: it has no hash" in found(folder)
    (folder / "MANIFEST").unlink()
    (folder / "scores.json").unlink(missing_ok=True)
    assert verify(folder)[0] == 0  # as older versions wrote it


RAW = ("run.json", "statements.jsonl", "requests.jsonl", "responses.jsonl")


@pytest.mark.parametrize("name", RAW)
def test_every_raw_file_is_sealed(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    # A space more changes no value, so only the seal can find it.
    (folder / name).write_bytes(data.replace(b",", b", ", 1))
    assert re.search(rf"^{name}:\d+: 1 row edited after the seal", found(folder), re.M)


@pytest.mark.parametrize("name", ["logprobs.jsonl", "failures.jsonl"])
def test_a_file_that_is_removed_or_came_later_is_found(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"{name}: was removed after the seal of" in found(folder)
    assert verify(folder, "--seal")[0] == 0
    (folder / name).touch()
    assert f"{name}: was added after the seal of" in found(folder)


CHANGES = {
    "edit": lambda rows, at: [*rows[:at], "edited\n", *rows[at + 1 :]],
    "drop": lambda rows, at: rows[:at] + rows[at + 1 :],
    "add": lambda rows, at: [*rows[:at], "added\n", *rows[at:]],
    "swap": lambda rows, at: [*rows[:at], *rows[at : at + 2][::-1], *rows[at + 2 :]],
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abc", max_size=3), min_size=2, max_size=40),
    st.sampled_from(sorted(CHANGES)),
    st.integers(0, 38),
)
def test_any_change_of_any_row_is_found(
    tmp_path_factory: Any, texts: list[str], change: str, at: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [f'"{text}"\n' for text in texts]
    path = folder / "statements.jsonl"
    path.write_text("".join(rows))
    seal.seal(folder)
    changed = CHANGES[change](rows, min(at, len(rows) - 2))
    path.write_text("".join(changed))
    chain = seal.read(folder)
    assert bool(list(seal.problems(folder, chain))) == (changed != rows)


@pytest.mark.parametrize("change", ["edit", "drop", "add"])
@pytest.mark.parametrize("at", [0, 4_711, 19_999])
def test_in_a_long_file_a_change_is_found_to_a_block(tmp_path: Path, change: str, at: int) -> None:
    rows = [f'{{"row":{n}}}\n' for n in range(20_000)]
    path = tmp_path / "statements.jsonl"
    path.write_text("".join(rows))
    seal.seal(tmp_path)
    assert (tmp_path / "MANIFEST").stat().st_size < 40_000
    path.write_text("".join(CHANGES[change](rows, at)))
    ((where, _),) = seal.problems(tmp_path, seal.read(tmp_path))
    first, _, last = where.partition(":")[2].partition("-")
    assert int(first) <= at + 1 <= int(last or first) + 1
    assert int(last or first) - int(first) < 500


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "statements.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"row":{n},"text":"{"x" * 500}"}}\n' for n in range(40_000))
    tracemalloc.start()
    try:
        seal.seal(tmp_path)
        assert list(seal.problems(tmp_path, seal.read(tmp_path))) == []
        assert tracemalloc.get_traced_memory()[1] < 3_000_000  # of 21 MB
    finally:
        tracemalloc.stop()


# -- kills -------------------------------------------------------------------------------------


def _end_and_die(folder: Path, steps: int) -> None:
    """Go on with a run, and kill this process before step number `steps` of its end."""
    run = start(folder)
    for request in REQUESTS[2:]:
        run.append(reply(request))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal steps
            if not steps:
                os.kill(os.getpid(), signal.SIGKILL)
            steps -= 1
            return real(*arguments, **more)

        return call

    os.fsync = counted(os.fsync)
    Path.replace = counted(Path.replace)  # type: ignore[method-assign]
    os.open = counted(os.open)
    Path.unlink = counted(Path.unlink)  # type: ignore[method-assign]
    run.close()


@pytest.mark.slow
@posix
def test_a_kill_while_sealing_leaves_the_old_seal_or_the_new_one(tmp_path: Path) -> None:
    counts = set()
    for steps in range(100):
        folder = tmp_path / str(steps)
        begin(folder, 2)
        pid = os.fork()
        if not pid:
            try:
                _end_and_die(folder, steps)
            finally:
                os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        chain = Run.open(folder).seals()
        counts.add(len(chain))
        left = [p for p in Run.open(folder).verify() if "left over" not in p]
        added = ["responses.jsonl:3: 4 rows added after the seal of " + chain[-1].at]
        assert left == ([] if len(chain) == 2 else added)
        finish(folder)  # the same command seals it
        assert Run.open(folder).verify() == []
        assert len(Run.open(folder).seals()) == 2
        if not killed:
            break
    assert counts == {1, 2} and steps > 8


# -- where the seal is named -------------------------------------------------------------------


@pytest.mark.slow
def test_tables_and_pages_name_the_seal(folder: Path, tmp_path: Path) -> None:
    name = f"seal:{Run.open(folder).seals()[-1].short}"
    for form in ("table", "csv", "json", "latex"):
        code, said = genprobe("score", folder, "--metric", "endorsed", "--save", "-f", form)
        assert code == 0 and name in said.replace("\\allowbreak{}", ""), form
    assert name in (folder / "scores.json").read_text()
    plain = name.removeprefix("seal:")
    for form in ("text", "json", "junit"):
        limit = ("--max-rise", "endorsed=100", "--allow-undecided", "-f", form)
        assert f"seal {plain}" in genprobe("gate", folder, "--against", folder, *limit)[1], form
    for suffix in ("csv", "jsonl"):
        table = tmp_path / f"rows.{suffix}"
        assert genprobe("score", folder, "--export", table)[0] == 0
        rows = list(files.read_rows(table))
        assert {row["seal"] for row in rows} == {plain}, suffix
    drawn = [path.read_bytes() for path in map(Path, draw([folder], tmp_path / "figures"))]
    assert len(drawn) > 3 and all(plain.encode() in content for content in drawn)
    assert f"`{plain}`" in (folder / "README.md").read_text()
    assert genprobe("review", "export", folder, "-o", tmp_path / "sheet.csv", "-q")[0] == 0
    for sheet in ("sheet-key.json", "sheet-instructions.txt"):
        assert f"seal {plain}" in (tmp_path / sheet).read_text(encoding="utf-8-sig")
    page = render([folder])
    assert name in page and f"seal {name.removeprefix('seal:')}" in page
    (folder / "MANIFEST").unlink()
    assert "<dt>Seal</dt><dd><code>unsealed</code></dd>" in render([folder])


def test_a_seal_is_not_claimed_for_a_folder_that_has_another_length(folder: Path) -> None:
    name = Run.open(folder).seals()[-1].short
    edit(folder / "responses.jsonl", lambda rows: rows[1:])
    assert Run.open(folder).signer()("endorsed/2").endswith(f"|seal:{name}-changed")


# -- what others wrote -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_older_versions_are_whole_and_unsealed(kind: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / kind, tmp_path / kind))
    code, lines = verify(folder)
    assert (code, lines[-1].startswith(f"{folder}: unsealed: ")) == (0, True)
    assert "seal" not in Run.open(folder).signer()("yes/2")
    assert verify(folder, "--seal")[0] == 0
    assert re.search(r": seal \w{16}, sealed by hand on [\d-]{10}$", verify(folder)[1][-1])


@pytest.mark.parametrize("version", ["0.3.0", "0.1.1", "1.0", "99999.0.0.dev1"])
def test_a_folder_of_a_newer_version_says_so_before_anything_else(
    folder: Path, version: str
) -> None:
    row = json.loads((folder / "run.json").read_text()) | {"version": version, "new": "x"}
    (folder / "run.json").write_text(json.dumps(row))
    for command in ("verify", "score", "report", "judge"):
        more = ["-o", folder / "p.html"] if command == "report" else []
        number = version.removesuffix(".dev1")
        line = f"genprobe: {folder}: written by genprobe {number}; this is 0.1.0: upgrade\n"
        assert genprobe(command, folder, *more) == (2, line)
    ask = Ask(model=str(folder), data=str(folder / "statements.jsonl"), engine="replay")
    with pytest.raises(RunError, match="upgrade"):
        run("yesno", ask)


@pytest.mark.parametrize("version", ["", "x", "0.1.0", "0.0.9", None, 3, []])
def test_other_versions_are_not_newer_ones(folder: Path, version: Any) -> None:
    row = json.loads((folder / "run.json").read_text()) | {"version": version}
    (folder / "run.json").write_text(json.dumps(row))
    try:
        Run.open(folder)
    except RunError as error:
        assert "upgrade" not in str(error)


MALFORMED = {
    "empty line": "\n",
    "no json": "{\n",
    "no object": "[1]\n",
    "nested": "[" * 100_000 + "\n",
    "no text": "\xff\n",
    "many blocks": lambda row: (
        row | {"files": {"run.json": row["files"]["run.json"] | {"blocks": ["1 x"] * 100_001}}}
    ),
    "another": '{"seal":"x"}\n',
    "files": lambda row: row | {"files": {"responses.jsonl": 1}},
    "blocks": lambda row: row | {"files": {"run.json": row["files"]["run.json"] | {"blocks": [1]}}},
    "every": lambda row: row | {"files": {"run.json": row["files"]["run.json"] | {"every": 0}}},
    "path": lambda row: row | {"files": {"../../x": row["files"]["run.json"]}},
    "newer": lambda row: row | {"version": "0.3.0", "new": 1},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_manifest_is_told_in_one_line(folder: Path, name: str) -> None:
    path, made = folder / "MANIFEST", MALFORMED[name]
    row = json.loads(path.read_text())
    path.write_text(made if isinstance(made, str) else json.dumps(made(row)) + "\n", "latin-1")
    said = found(folder)
    assert "scores.json" not in said
    assert len(re.findall("^MANIFEST:1: ", said, re.M)) == 1
    with pytest.raises(RunError, match=r"MANIFEST:1"):
        Run.open(folder).signer()


@pytest.mark.parametrize("field", ["by", "previous", "changed", "files", "seal"])
def test_an_edited_seal_does_not_fit_its_content(folder: Path, field: str) -> None:
    path = folder / "MANIFEST"
    row = json.loads(path.read_text())
    one = row["files"]["run.json"]
    row |= {
        "by": {"by": "hand"},
        "previous": {"previous": "0" * 64},
        "changed": {"changed": ["run.json"], "by": "hand"},
        "files": {"files": row["files"] | {"run.json": one | {"blocks": ["x y", *one["blocks"]]}}},
        "seal": {"seal": "0" * 64},
    }[field]
    path.write_text(json.dumps(row) + "\n")
    assert "MANIFEST:1: the seal does not fit its content" in found(folder)


# -- the plan ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_that_is_missing_in_any_kind_of_run_is_found(kind: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / kind, tmp_path / kind))
    shutil.rmtree(folder / "judgments", ignore_errors=True)
    (folder / "scores.json").unlink()
    rows = (folder / "requests.jsonl").read_text().splitlines(keepends=True)
    gone = json.loads(rows[1])["id"]
    for name, key in (("requests", "id"), ("responses", "request"), ("logprobs", "request")):
        edit(
            folder / f"{name}.jsonl",
            lambda lines, key=key: [one for one in lines if json.loads(one)[key] != gone],
        )
    assert "requests.jsonl: 1 request about 1 statement of statements.jsonl" in found(folder)


@pytest.mark.parametrize("wordings, personas", [("all", "none"), ("3", "2"), ("2", "none")])
def test_runs_of_drawn_wordings_have_their_plan(
    tmp_path: Path, wordings: str, personas: str
) -> None:
    data = tmp_path / "replies.csv"
    files.write_rows(data, [{"prompt": "x", "response": "Yes."}])
    ask = Ask(
        model=str(data), engine="replay", langs=("en",), limit=6, out=tmp_path / "run",
        wordings=wordings, personas=personas,
    )  # fmt: skip
    with pytest.raises(Exception, match="failed"):
        run("yesno", ask)
    assert not [line for line in Run.open(tmp_path / "run").verify() if "plans" in line]


# -- signatures --------------------------------------------------------------------------------


def key(folder: Path, name: str, passphrase: str = "") -> Path:
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", folder / name]
    subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    return folder / name


def allowed(folder: Path, *keys: Path) -> Path:
    lines = [f"{one.name}@example.org {one.with_suffix('.pub').read_text()}" for one in keys]
    (folder / "allowed").write_text("".join(lines))
    return folder / "allowed"


@keygen
def test_a_run_is_signed_and_checked(folder: Path, tmp_path: Path) -> None:
    mine, other = key(tmp_path, "mine"), key(tmp_path, "other")
    code, lines = verify(folder, "--sign", mine)
    assert (
        code == 0 and "signed with ED25519 key SHA256:" in lines[-1] and "not checked" in lines[-1]
    )
    code, lines = verify(folder, "--allowed-signers", allowed(tmp_path, other, mine))
    assert code == 0 and "signed by mine@example.org with ED25519 key SHA256:" in lines[-1]
    code, lines = verify(folder, "--allowed-signers", allowed(tmp_path, other))
    assert code == 1 and "which is of nobody in" in lines[-1]
    # Anybody can check it without genprobe.
    signed = ["-n", "genprobe", "-s", folder / "MANIFEST.sig", "-I", "mine@example.org"]
    command = ["ssh-keygen", "-Y", "verify", "-f", allowed(tmp_path, mine), *signed]
    subprocess.run(command, input=(folder / "MANIFEST").read_bytes(), check=True)


@keygen
def test_a_signature_is_of_one_state(folder: Path, tmp_path: Path) -> None:
    verify(folder, "--sign", key(tmp_path, "mine"))
    signature = (folder / "MANIFEST.sig").read_bytes()
    turn_round(folder)
    code, lines = verify(folder, "--sign", tmp_path / "mine")
    assert code == 1 and lines[-1] == "not signed, because of the problems above"
    verify(folder, "--seal")
    assert not (folder / "MANIFEST.sig").exists()
    (folder / "MANIFEST.sig").write_bytes(signature)
    assert "is no signature of this MANIFEST" in found(folder)


@keygen
def test_a_key_with_a_passphrase_does_not_wait_without_a_terminal(
    folder: Path, tmp_path: Path
) -> None:
    locked = key(tmp_path, "locked", "correct horse")
    code, lines = verify(folder, "--sign", locked)
    assert code == 2 and "cannot sign" in lines[-1]
    assert not (folder / "MANIFEST.sig").exists()


def test_what_cannot_sign_or_check_is_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no key")
    for option, name, said in (
        ("--sign", "none", "no such key"),
        ("--allowed-signers", "none", "no such file"),
        *([("--sign", "text", "cannot sign")] if shutil.which("ssh-keygen") else []),
    ):
        code, lines = verify(folder, option, tmp_path / name)
        assert code == 2 and said in lines[-1]
    (tmp_path / "allowed").touch()
    code, lines = verify(folder, "--allowed-signers", tmp_path / "allowed")
    assert code == 1 and lines[-1].endswith("not signed")
