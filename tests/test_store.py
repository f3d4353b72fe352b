from __future__ import annotations

import dataclasses
import errno
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample import REQUESTS, SPEC, STATEMENTS, Echo, Scripted, reply, start

from genprobe.engines import Sampling
from genprobe.errors import RunError
from genprobe.files import disk
from genprobe.records import (
    Failure,
    Judgment,
    Record,
    Response,
    Score,
    Statement,
    canonical,
)
from genprobe.runs.run import Run, format_page
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge

ROOT = Path(__file__).parents[1]
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork")


def finish(folder: Path) -> list[str]:
    """Resume and ask all that is pending; what verify says."""
    with start(folder) as run:
        generate(run, Scripted(), Sampling())
    return Run.open(folder).verify()


@pytest.fixture
def unsealed(whole: Path) -> Path:
    """The same, as a process leaves it that is killed before its end."""
    (whole / "MANIFEST").unlink()
    (whole / "README.md").unlink()  # which names the seal
    return whole


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A finished and judged run."""
    folder = tmp_path / "run"
    assert finish(folder) == []
    with start(folder) as run:
        judge(run, [Echo()])
    return folder


def in_child(act: Callable[[], object]) -> str:
    """Run `act` in a forked process; the RunError or other trouble that it ended with."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        text = ""
        try:
            act()
        except RunError as error:
            text = str(error)
        except BaseException:
            text = traceback.format_exc()
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    status = os.waitpid(pid, 0)[1]
    return "killed" if os.WIFSIGNALED(status) else text


# -- records -----------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=5,
)
SCORE = st.none() | st.floats(0, 1)


def round_trip(record: Record) -> None:
    line = record.to_json()
    assert line.isascii() and len(line.splitlines()) == 1
    assert type(record).from_json(line) == record
    assert type(record).from_json(line.encode() + b"\n") == record


@given(TEXT, TEXT, st.none() | st.integers(0))
@example("\ud800 \udc00", "\u2028\u2029\x85\x1c\r\n", 0)
@example("\0\u202e\u2066\ufeff\uffff\U0010ffff", "\\ud800\"'", None)
@example("हो" * 500_000, "", 1)
def test_any_reply_comes_back_as_it_was(text: str, sent: str, tokens: int | None) -> None:
    round_trip(Response("id", text, "stop", sent, None, tokens))


@given(TEXT, SCORE, st.dictionaries(TEXT, VALUE))
def test_any_judgment_comes_back(text: str, score: float | None, fields: dict[str, Any]) -> None:
    one = Judgment("id", "echo", text, score, "rule", text, fields)
    round_trip(one)
    line = one.to_json("echo")
    assert '"judge"' not in line and Judgment.from_json(line, judge="echo") == one
    # As older versions wrote it, with every field.
    assert Judgment.from_json(canonical(vars(one))) == one
    assert Judgment.from_json(Judgment("id", "echo").to_json()) == Judgment("id", "echo")


@given(TEXT, st.lists(TEXT).map(tuple), st.dictionaries(TEXT, VALUE))
def test_any_statement_comes_back(text: str, valid: tuple[str, ...], extra: dict[str, Any]) -> None:
    round_trip(Statement("id", "mr", text, "original", "", text, "", "", valid, "", extra))


@pytest.mark.parametrize(
    "line, said",
    [
        ('{"request":"a","kind":"b","detail":"c"}', "lacks the field 'attempts'"),
        ('{"request":"a","kind":"b","detail":"c","attempts":1,"x":1}', "unknown field 'x'"),
        ('{"request":"a","kind":"b","detail":"c","attempts":"1"}', "'attempts'.*holds str"),
        ('{"request":"a","kind":"b","detail":"c","attempts":true}', "'attempts'.*holds bool"),
        ('{"request":null,"kind":"b","detail":"c","attempts":1}', "'request'.*holds NoneType"),
        ("[1]", "is an object, not list"),
        ("{", "not a line of JSON"),
        (b"\xff\xfe", "not a line of JSON"),
        ("[" * 100_000, "not a line of JSON"),
        ("", "not a line of JSON"),
    ],
)
def test_what_is_not_exactly_a_record_is_refused(line: str | bytes, said: str) -> None:
    with pytest.raises(RunError, match=said):
        Failure.from_json(line)


# -- crashes -----------------------------------------------------------------------------------


def test_a_whole_number_is_one_with_a_point_however_often_it_is_read() -> None:
    line = '{"request":"r","judge":"j","label":"x","score":1,"rule":"","evidence":"","fields":{}}'
    for _ in range(3):
        score = Judgment.from_json(line).score
        assert (score, type(score)) == (1.0, float)
    with pytest.raises(RunError, match="holds bool"):
        Judgment.from_json(line.replace(":1,", ":true,"))


@pytest.mark.slow
def test_cut_at_any_byte_nothing_is_lost_or_doubled(unsealed: Path) -> None:
    path = unsealed / "responses.jsonl"
    data = b"".join(path.read_bytes().splitlines(keepends=True)[:3])[:-20]
    ends = [n for n in range(len(data) + 1) if n == 0 or data[n - 1 : n] == b"\n"]
    assert len(ends) == 3
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        kept = max(n for n in ends if n <= length)
        with Run.open(unsealed) as run:  # a reader passes over the torn end
            assert len(list(run.responses())) == ends.index(kept)
        with start(unsealed) as run:
            assert path.read_bytes() == data[:kept]
            assert list(run.pending()) == REQUESTS[ends.index(kept) :]
    assert finish(unsealed) == []
    assert path.read_bytes().startswith(data[:kept])


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 70_000, b"\0\0\n", b"\xff\n", b'{"request":"a\n', b"{", b"\n", b"x" * 200_000],
    ids=["zeros", "zeros-line", "no-text", "half", "brace", "empty-line", "long"],
)
@pytest.mark.parametrize("lines", [0, 2])
def test_any_torn_end_is_cut_off(unsealed: Path, tail: bytes, lines: int) -> None:
    path = unsealed / "responses.jsonl"
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:lines])
    path.write_bytes(kept + tail)
    with Run.open(unsealed) as run:
        assert any("incomplete line" in problem for problem in run.verify())
    assert finish(unsealed) == []
    assert path.read_bytes().startswith(kept)


def test_damage_before_the_end_is_an_error_and_not_cut(whole: Path) -> None:
    path = whole / "responses.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{oops\n", *lines[2:]]))
    before = path.read_bytes()
    with start(whole) as run, pytest.raises(RunError, match=r"responses\.jsonl:2: not a line"):
        list(run.pending())
    # Nor is a last line that is JSON, but of another version or hand.
    path.write_bytes(lines[0] + b'{"request":"a"}\n')
    with start(whole) as run, pytest.raises(RunError, match=r"responses\.jsonl:2: .* lacks"):
        list(run.pending())
    path.write_bytes(before)


@pytest.mark.slow
@posix
def test_a_creation_that_dies_at_any_step_is_done_again(tmp_path: Path) -> None:
    steps = 0
    while True:
        folder = tmp_path / str(steps)
        said = in_child(functools.partial(_start_and_die, folder, steps))
        if said == "":
            break
        assert said == "killed"
        if not (folder / "run.json").exists():
            with pytest.raises(RunError, match=r"not a run folder|no such"):
                Run.open(folder)
        assert finish(folder) == []
        assert not list(folder.glob("*.tmp"))
        steps += 1
    assert steps >= 12  # three files, each written, synced, renamed and its folder synced


def _start_and_die(folder: Path, steps: int) -> None:
    """Start a run, and kill this process before its step number `steps` that a disk can see."""

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal steps
            if not steps:
                os.kill(os.getpid(), signal.SIGKILL)
            steps -= 1
            return real(*args, **more)

        return call

    os.fsync = counted(os.fsync)
    Path.replace = counted(Path.replace)  # type: ignore[method-assign]
    os.open = counted(os.open)
    Path.mkdir = counted(Path.mkdir)  # type: ignore[method-assign]
    start(folder).close()


@posix
def test_killed_at_random_moments() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "kills.py"), "--driver", "light"]
    done = subprocess.run([*command, "--kills", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[:2] == ["kills", "5"]


# -- two writers -------------------------------------------------------------------------------


def test_a_second_writer_is_refused_in_one_line(whole: Path) -> None:
    with start(whole) as first:
        with pytest.raises(RunError, match="another process is writing") as caught:
            start(whole)
        assert "\n" not in str(caught.value)
        other = Run.open(whole)
        assert other.verify() == []  # reading needs no lock
        with pytest.raises(RunError, match="another process is writing"):
            other.write_scores([])
        with pytest.raises(RunError, match="another process is writing"):
            judge(other, [Echo()])
        first.write_scores([])
    start(whole).close()  # the lock is free again
    other.write_scores([])
    with pytest.raises(RunError, match="reading only"):
        other.append(reply(REQUESTS[0]))


@posix
def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            run = start(tmp_path)
            run.append(reply(REQUESTS[0]))
            os.write(writer, b"!")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    assert os.read(reader, 1) == b"!"
    with pytest.raises(RunError, match="another process is writing"):
        start(tmp_path)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with start(tmp_path) as run:
        assert list(run.pending()) == REQUESTS[1:]  # what was appended outlived its process


# -- disks -------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_in_one_line_and_the_run_goes_on_later(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 20_000)

    def long(request: Any) -> Response:
        return dataclasses.replace(reply(request), text=request.id * 800)  # 12.8 kB

    folder = small_disk / "run"
    with pytest.raises(RunError, match=r"No space left.*start again") as caught, start(folder) as r:
        generate(r, Scripted(long), Sampling())
    assert "\n" not in str(caught.value)
    kept = (folder / "responses.jsonl").read_bytes()
    assert kept.count(b"\n") >= 1 and kept.endswith(b"\n")
    ballast.unlink()
    assert finish(folder) == []
    assert (folder / "responses.jsonl").read_bytes().startswith(kept)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_no_space_for_the_first_response(unsealed: Path, monkeypatch) -> None:
    path = unsealed / "responses.jsonl"
    path.unlink()

    def full(own: Path) -> FileIO:
        return FileIO("/dev/full" if own == path else own, "ab")

    with monkeypatch.context() as patch:
        patch.setattr("genprobe.files.door.appending", full)
        with start(unsealed) as run, pytest.raises(RunError, match="No space left"):
            generate(run, Scripted(), Sampling())
    assert finish(unsealed) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_no_space_for_judgments(whole: Path, monkeypatch) -> None:
    path = whole / "judgments" / "echo.jsonl"
    before = path.read_bytes()
    with start(whole) as run:
        with monkeypatch.context() as patch:
            full = path.with_name("full.tmp"), Path("/dev/full").open("wb")  # noqa: SIM115 (closed by it)
            patch.setattr("genprobe.files.door.temporary", lambda *_: full)
            with pytest.raises(RunError, match="No space left"):
                judge(run, [Echo()])
        assert path.read_bytes() == before
        judge(run, [Echo()])  # nothing is in the way any more
        assert run.verify() == []


@posix
def test_a_limit_on_file_size(tmp_path: Path) -> None:
    import resource

    def limited() -> None:
        with start(tmp_path) as run:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
            generate(run, Scripted(), Sampling())

    assert "File too large" in in_child(limited)
    data = (tmp_path / "responses.jsonl").read_bytes()
    assert 0 < len(data) <= 300 and data.endswith(b"\n")  # the half line was taken back
    assert finish(tmp_path) == []


@posix
def test_a_folder_that_may_not_be_written(whole: Path, request: pytest.FixtureRequest) -> None:
    # Not below tmp_path: other runs of pytest that start now take its rights from everybody else.
    home = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(home))
    whole = shutil.copytree(whole, home / "run")
    home.chmod(0o755)
    for path in [whole, *whole.rglob("*")]:
        path.chmod(0o555)

    def nobody() -> None:
        if os.getuid() == 0:
            os.setuid(65534)

    def write() -> None:
        nobody()
        start(whole)

    def create() -> None:
        nobody()
        start(whole / "new" / "run")

    def read() -> None:
        nobody()
        assert Run.open(whole).verify() == []

    assert "Permission denied" in in_child(write)
    assert "Permission denied" in in_child(create)
    assert in_child(read) == ""
    for path in [whole, *whole.rglob("*")]:
        path.chmod(0o755)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(RunError, match=r"cannot be written.*a file is in the way"):
            start(folder)
        with pytest.raises(RunError, match=r"is a file, and no run folder|no such run folder"):
            Run.open(folder)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name, locked",
    [
        ("statements.jsonl", False),  # beside our lock it would be a creation that was cut off
        ("responses.jsonl", False),
        ("responses.jsonl", True),
        ("thesis.doc", False),
        ("thesis.doc", True),
    ],
)
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, name: str, locked: bool) -> None:
    (tmp_path / name).write_text("mine")
    if locked:
        (tmp_path / ".lock").touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RunError, match="not empty and holds no run"):
        start(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / name).read_text() == "mine"


# -- another spec ------------------------------------------------------------------------------


def test_another_spec_shows_what_differs(whole: Path) -> None:
    spec = dataclasses.replace(SPEC, temperature=0.7, packages=SPEC.packages | {"torch": "3"})
    before = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    with pytest.raises(RunError) as caught:
        Run.start(whole, spec, STATEMENTS, REQUESTS)
    text = str(caught.value)
    assert "temperature: 0.0 -> 0.7; packages.torch: '2.9.0' -> '3'" in text
    assert "\n" not in text and "model" not in text.split("(")[1]
    assert before == {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    start(whole).close()  # and the lock was given back


def test_other_requests_under_the_same_spec(whole: Path) -> None:
    for requests in (REQUESTS[:-1], [*REQUESTS, REQUESTS[0]], REQUESTS[::-1]):
        with pytest.raises(RunError, match=r"requests\.jsonl:\d: differs"):
            Run.start(whole, SPEC, STATEMENTS, requests)
    with pytest.raises(RunError, match=r"statements\.jsonl:1: differs"):
        Run.start(whole, SPEC, STATEMENTS[1:], REQUESTS)


def test_a_spec_of_other_statements_makes_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="other statements"):
        Run.start(tmp_path, SPEC, STATEMENTS[1:], REQUESTS)


# -- derived files -----------------------------------------------------------------------------


def test_derived_files_are_replaced_whole_or_not_at_all(whole: Path) -> None:
    path = whole / "judgments" / "echo.jsonl"
    before = path.read_bytes()

    def broken() -> Iterator[Judgment]:
        yield Judgment(REQUESTS[0].id, "echo", "x", None, "", "", {})
        raise OSError(errno.EIO, "a judge's own trouble")

    with start(whole) as run:
        with pytest.raises(OSError, match="own trouble"):
            run.write_judgments("echo", "2", broken())
        assert path.read_bytes() == before
        assert run.judges() == {}  # nobody says any more which judge wrote them
        assert [p.name for p in path.parent.iterdir()] == ["echo.jsonl"]
        shutil.rmtree(path.parent)
        judge(run, [Echo()])
        assert path.read_bytes() == before
        assert run.verify() == []


def test_what_a_kill_left_over_is_swept_up(whole: Path) -> None:
    for name in ("scores.json.tmp", ".genprobe-0a.tmp", "judgments/other.jsonl.tmp"):
        (whole / name).write_text("half")
    assert len(Run.open(whole).verify()) == 3
    assert finish(whole) == []


def test_scores_come_back(whole: Path) -> None:
    score = Score("yes", {"lang": "mr"}, None, None, None, 0, {"refusal": 2}, [0.0, 1.0], "s")
    with Run.open(whole) as run:
        with pytest.raises(RunError, match="no scores"):
            run.scores()
        for scores in ([], [score], [score, score]):
            run.write_scores(scores)
            assert run.scores() == scores
            assert len(json.loads((whole / "scores.json").read_text())) == len(scores)
        assert run.verify() == []
        (whole / "scores.json").write_text("[1]")
        with pytest.raises(RunError, match=r"scores\.json: .*score again"):
            run.scores()


def test_judgments_that_nobody_made(whole: Path) -> None:
    with pytest.raises(RunError, match=r"no judgments of 'other'.*genprobe judge"):
        Run.open(whole).judgments("other")


# -- verify ------------------------------------------------------------------------------------


def line(name: str, number: int, edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Damage one record of a file."""

    def damage(folder: Path) -> None:
        rows = (folder / name).read_text().splitlines()
        row = json.loads(rows[number - 1])
        edit(row)
        rows[number - 1] = json.dumps(row)
        (folder / name).write_text("\n".join(rows) + "\n")

    return damage


def rows(name: str, edit: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    """Damage a file line by line."""

    def damage(folder: Path) -> None:
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(edit(lines)))

    return damage


def put(name: str, data: bytes) -> Callable[[Path], None]:
    """Append to a file."""

    def damage(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.write(data)

    return damage


ID = [request.id for request in REQUESTS]
STRANGER = reply(dataclasses.replace(REQUESTS[0], id="f" * 16)).to_json().encode() + b"\n"
DAMAGES: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "torn": (put("responses.jsonl", b'{"req'), [r"^responses\.jsonl: incomplete line at byte \d+"]),
    "torn failure": (put("failures.jsonl", b"{"), [r"^failures\.jsonl: incomplete line at byte 0"]),
    "torn plan": (
        rows("requests.jsonl", lambda r: [*r[:-1], r[-1][:-1]]),
        [r"^requests\.jsonl:6: incomplete line"],
    ),
    "no json": (
        rows("responses.jsonl", lambda r: [r[0], "oops\n", *r[1:]]),
        [r"^responses\.jsonl:2: not a line of JSON"],
    ),
    "unknown field": (
        line("responses.jsonl", 2, lambda r: r.update(extra=1)),
        [
            r"^responses\.jsonl:2: unknown field 'extra'",
            f"incomplete: 1 of 6.*first {ID[1]}",
            f"^judgments/echo.jsonl:2: no response to request {ID[1]}",
        ],
    ),
    "twice": (
        rows("responses.jsonl", lambda r: [*r, r[3]]),
        [rf"^responses\.jsonl:7: second response to request {ID[3]}"],
    ),
    "stranger": (put("responses.jsonl", STRANGER), [r"^responses\.jsonl:7: no request f{16}"]),
    "missing response": (
        rows("responses.jsonl", lambda r: r[:2] + r[4:]),
        [
            f"^responses.jsonl: incomplete: 2 of 6 .* first {ID[2]}; the command of the run asks them",
            f"^judgments/echo.jsonl:3: no response to request {ID[2]}",
            f"^judgments/echo.jsonl:4: no response to request {ID[3]}",
        ],
    ),
    "failure of a stranger": (
        put("failures.jsonl", Failure("f" * 16, "k", "d", 1).to_json().encode() + b"\n"),
        [r"^failures\.jsonl:1: no request f{16}"],
    ),
    "changed question": (
        line("requests.jsonl", 4, lambda r: r["messages"][0].update(content="?")),
        [rf"^requests\.jsonl:4: id {ID[3]} is not the hash of its content"],
    ),
    "changed seed": (
        line("requests.jsonl", 4, lambda r: r.update(seed=r["seed"] + 1)),
        [rf"^requests\.jsonl:4: seed of {ID[3]} does not derive"],
    ),
    "request twice": (
        rows("requests.jsonl", lambda r: [*r, r[0]]),
        [rf"^requests\.jsonl:7: request {ID[0]} is there twice"],
    ),
    "other pack": (
        line("run.json", 8, lambda r: None) if False else lambda f: _edit_spec(f, pack="other@1"),
        [r"^requests\.jsonl:\d: pack yesno@1 is not run\.json's other@1"] * 6,
    ),
    "other seed": (
        lambda f: _edit_spec(f, seed=8),
        [r"^requests\.jsonl:\d: seed of \w+ does not derive"] * 6,
    ),
    "changed statement": (
        line("statements.jsonl", 2, lambda r: r.update(text="Girls play.")),
        [r"^statements\.jsonl: hash \w{16} is not run\.json's"],
    ),
    "lost statement": (
        rows("statements.jsonl", lambda r: r[:2]),
        [
            r"^statements\.jsonl: hash",
            r"^requests\.jsonl:5: statement s2 \(en\) is not there",
            r"^requests\.jsonl:6: statement s2",
        ],
    ),
    "lost statements": (
        lambda f: (f / "statements.jsonl").unlink(),
        [r"^statements\.jsonl: missing", r"^statements\.jsonl: hash"]
        + [r"^requests\.jsonl:\d: statement"] * 6,
    ),
    "judgment of another judge": (
        line("judgments/echo.jsonl", 1, lambda r: r.update(judge="other")),
        [r"^judgments/echo\.jsonl:1: is of the judge 'other'", r"was changed after"],
    ),
    "judgment edited": (
        line("judgments/echo.jsonl", 1, lambda r: r.update(label="yes")),
        [r"^judgments/echo\.json:1: judgments/echo\.jsonl was changed after it was written"],
    ),
    "judgment missing": (
        rows("judgments/echo.jsonl", lambda r: r[1:]),
        ["was changed after", f"1 response without judgment, first {ID[0]}"],
    ),
    "judgment twice": (
        rows("judgments/echo.jsonl", lambda r: [*r, r[0]]),
        [f"^judgments/echo.jsonl:7: second judgment on request {ID[0]}", "was changed after"],
    ),
    "judge unnamed": (
        lambda f: (f / "judgments/echo.json").unlink(),
        [r"^judgments/echo\.json: missing or not readable"],
    ),
    "left over": (
        put("judgments/echo.jsonl.tmp", b"x"),
        [r"^judgments/echo\.jsonl\.tmp: left over"],
    ),
    "scores": (put("scores.json", b"[{}]"), [r"^scores\.json: line 1: a Score lacks"]),
}


def _edit_spec(folder: Path, **changes: Any) -> None:
    row = json.loads((folder / "run.json").read_text()) | changes
    (folder / "run.json").write_text(json.dumps(row))


@pytest.mark.parametrize("name", DAMAGES)
def test_verify_names_the_damage_and_nothing_else(unsealed: Path, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(unsealed)
    problems = Run.open(unsealed).verify()
    assert len(problems) == len(expected), problems
    for problem, pattern in zip(problems, expected, strict=True):
        assert re.search(pattern, problem) and "\n" not in problem


def test_verify_counts_what_it_does_not_name(unsealed: Path) -> None:
    rows("responses.jsonl", lambda r: r + r[:1] * 500)(unsealed)
    problems = Run.open(unsealed).verify()
    assert len(problems) == 21
    assert problems[-1] == "twice: 480 more like this"


@pytest.mark.parametrize(
    "text, said",
    [("", "not a line of JSON"), ("{}", "lacks the field"), ("[]", "is an object, not list")],
)
def test_a_broken_spec_is_named(whole: Path, text: str, said: str) -> None:
    (whole / "run.json").write_text(text)
    for act in (Run.open, start):
        with pytest.raises(RunError, match=rf"run\.json: .*{said}"):
            act(whole)


# -- the rest ----------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.binary(max_size=60), st.sampled_from([0, 65_530, 65_536, 131_072]))
def test_where_whole_lines_end(tmp_path_factory: Any, tail: bytes, pad: int) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    first = b'"' + b"x" * pad + b'"\n'
    path.write_bytes(first + tail)
    with path.open("rb") as file:
        end = disk.whole(file)
    kept = (first + tail)[:end]
    assert kept == b"" or kept.endswith(b"\n")
    lines = tail.split(b"\n")
    complete = first + b"".join(part + b"\n" for part in lines[:-1])
    if lines[-1]:
        assert kept == complete
    else:
        assert kept in (complete, (first + b"".join(p + b"\n" for p in lines[:-2])))


def test_the_format_page_is_current() -> None:
    page = (ROOT / "runs" / "README.md").read_text(encoding="utf-8")
    assert page == format_page(), "python -m genprobe.runs.run > runs/README.md"
