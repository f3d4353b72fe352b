"""Files are opened at one door: no link is written through, and only regular files are read."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from genprobe import files
from genprobe.commands import cli
from genprobe.errors import GenprobeError, InputError
from genprobe.files import disk, door
from genprobe.runs.run import Run

ROOT = Path(__file__).parents[1] / "genprobe"
SHARED = Path(__file__).parents[2] / "shared" / "data"
GOLDEN = Path(__file__).parent / "golden"
unix = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")

# Calls that open a file, and where one may stand besides the door: why.
OPENS = frozenset(
    ("read_text", "read_bytes", "write_text", "write_bytes", "ZipFile", "load_workbook", "mkstemp")
) | {
    "TemporaryDirectory",
    "TemporaryFile",
    "NamedTemporaryFile",
    "ParquetFile",
    "copyfile",
    "rename",
}
ELSEWHERE = {
    "files/door.py": "the door",
    "files/parquet.py": "Parquet, of a file that the door opened",
    "files/zips.py": "zips, of a file that the door opened",
    "logs/__init__.py": "standard input, in its own temporary folder",
    "files/workbooks.py": "workbooks, read and made in memory",
    "report/__init__.py": "its own styles and scripts",
    "report/words.py": "its own pages",
    "report/methods.py": "its own pages",
    "analysis/sources.py": "its own temporary folder",
    "curation/collect.py": "its own form",
    "engines/_server.py": "its own table of servers",
    "engines/ray.py": "os.devnull",
    "engines/vllm.py": "a temporary file without a name",
    "tasks/pipeline/logged.py": "a temporary file without a name",
    "selftest/__init__.py": "its own temporary folder",
    "analysis/again.py": "its own temporary folder",
    "report/figures/__init__.py": "its own temporary folder",
    "publishing/__init__.py": "its own temporary folder",
    "runs/sign.py": "its own temporary folder",
}


def opened(tree: ast.AST):
    """The calls that open files: by name, or `.open` with a mode."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        owner = getattr(getattr(called, "value", None), "id", "")
        modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if owner == "packs" or (name == "rename" and owner != "os"):
            continue  # reads at the door; pandas renames columns
        if name in OPENS and not (name == "read_text" and isinstance(called, ast.Name)):
            yield node.lineno, name
        named = any(isinstance(m, str) and m and set(m) <= set("rwxabt+") for m in modes)
        if name == "open" and (owner == "os" or named):
            yield node.lineno, name


def test_no_file_is_opened_but_at_the_door():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        calls = list(opened(ast.parse(path.read_text("utf-8"))))
        if calls:
            found[path.relative_to(ROOT).as_posix()] = calls
    # disk.sync_folder opens a folder, to sync it.
    found["files/disk.py"] = [c for c in found.get("files/disk.py", []) if c[1] != "open"]
    elsewhere = {name: calls for name, calls in found.items() if calls and name not in ELSEWHERE}
    assert elsewhere == {}, "open files by genprobe.files.door"
    assert ELSEWHERE.keys() <= found.keys(), "no longer needed"


@pytest.fixture
def run(tmp_path) -> Path:
    return Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))


def genprobe(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", "from genprobe.commands import main; main()", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
    )


@unix
@pytest.mark.parametrize("name", ["outcomes.parquet", "scores.json", "README.md"])
def test_scoring_writes_through_no_link(run, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim)
    said = CliRunner().invoke(cli, ["score", str(run), "--save"], standalone_mode=False)
    assert isinstance(said.exception, InputError)
    assert f"{run / name}: is a link" in str(said.exception) and "--follow-links" in str(
        said.exception
    )
    # Where links are followed, they are read, and replaced when they are written.
    CliRunner().invoke(cli, ["score", str(run), "--save", "--follow-links"], standalone_mode=False)
    assert victim.read_text() == "mine"
    door.follow_links(False)


@unix
def test_names_of_temporary_files_cannot_be_prepared(run, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("scores.json.tmp", "README.md.tmp", "outcomes.parquet.tmp"):
        (run / name).symlink_to(victim)
    CliRunner().invoke(cli, ["score", str(run), "--save", "--follow-links"], standalone_mode=False)
    disk.replace(run / "scores.json", ["[]\n"])
    assert victim.read_text() == "mine"
    door.follow_links(False)


@unix
def test_nothing_is_judged_or_locked_through_a_link(run, tmp_path):
    outside = tmp_path / "outside"
    shutil.move(run / "judgments", outside)
    (run / "judgments").symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    words = ["judge", str(run), "--follow-links"]
    said = CliRunner().invoke(cli, words, standalone_mode=False)
    assert "is a link, and nothing is written through one" in str(said.exception)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    (run / "judgments").unlink()
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").symlink_to(tmp_path / "new")
    said = CliRunner().invoke(cli, words, standalone_mode=False)
    assert ".lock: is a link" in str(said.exception) and not (tmp_path / "new").exists()
    door.follow_links(False)


@unix
def test_replies_are_appended_through_no_link(run, tmp_path):
    outside = Path(shutil.move(run / "responses.jsonl", tmp_path / "elsewhere.jsonl"))
    (run / "responses.jsonl").symlink_to(outside)
    with pytest.raises(InputError, match="is a link"):
        Run.open(run)
    door.follow_links()
    try:
        opened = Run.open(run)
        assert len(list(opened.responses())) > 0  # as git-annex has it
        with pytest.raises(GenprobeError, match="is a link, and nothing is written through one"):
            Run.start(run, opened.spec, list(opened.statements()), list(opened.requests()))
    finally:
        door.follow_links(False)


@unix
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("reproduce", "rubia", "--from"), "pairs.csv"),
        (("choices", "--lang", "en", "--decode", "choice", "--dry-run", "--data"), "Age.jsonl"),
        (("yesno", "--lang", "en", "--engine", "replay", "--model"), "run.json"),
    ],
)
def test_links_in_other_folders_are_read_only_when_asked(run, tmp_path, words, name):
    folder = run if name == "run.json" else tmp_path / "data"
    words = [*words[:1], *(["--out", str(tmp_path / "made")] if folder == run else []), *words[1:]]
    folder.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").write_text("secret words")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    said = CliRunner().invoke(cli, [*words, str(folder)], standalone_mode=False)
    assert isinstance(said.exception, GenprobeError)
    assert f"{folder / 'more'}: is a link" in str(said.exception)
    assert "--follow-links" in [o for p in cli.get_command(None, words[0]).params for o in p.opts]
    said = CliRunner().invoke(cli, [*words, str(folder), "--follow-links"], standalone_mode=False)
    assert "is a link" not in str(said.exception)
    door.follow_links(False)


@unix
@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("responses.jsonl", "scores.json")),
    ],
)
def test_a_pipe_or_a_device_is_refused_and_does_not_hang(run, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    for command in ("verify", "score", "report"):
        more = ("-o", run.parent / "r.html") if command == "report" else ()
        done = genprobe(command, run, *more)
        assert done.returncode in (1, 2) or name == "scores.json", done
        assert "is a pipe or a device" in done.stdout + done.stderr or name == "scores.json"
        assert "Traceback" not in done.stderr
    with pytest.raises(InputError, match="is a pipe or a device"):
        door.reading("/dev/zero")


@unix
def test_a_pipe_as_a_table_is_refused(tmp_path):
    os.mkfifo(tmp_path / "t.jsonl")
    done = genprobe("score", tmp_path / "t.jsonl")
    assert done.returncode == 2 and "is a pipe or a device" in done.stderr


@unix
def test_a_link_that_the_user_names_is_followed(tmp_path):
    target = tmp_path / "real.jsonl"
    link = tmp_path / "link.jsonl"
    target.write_text('{"a": 1}\n')
    link.symlink_to(target)
    assert list(files.read_rows(link)) == [{"a": 1}]
    files.write_rows(link, [{"a": 2}])
    assert link.is_symlink() and target.read_text() == '{"a": 2}\n'


@pytest.mark.parametrize(
    "text",
    [
        *(
            "=1+1",
            "Yes\n=cmd|'/c calc'!A1",
            "a;=b",
            'a;"=b',
            "x\n+1",
            "x\n@SUM(A1)",
            "'=x",
            "x\n'=y",
        ),
        *("- quiet\n- loud", "a\n- b\n- =c", "plain", "x\r-1+1", "a\t=b", "''", "'", "x\n'- y"),
    ],
)
def test_no_cell_begins_with_a_formula_however_the_file_is_read(tmp_path, text):
    """A reply may hold line ends, and a spreadsheet may separate by `;`."""
    import csv

    path = tmp_path / "t.csv"
    files.write_rows(path, [{"id": "1", "text": text, "more": "z"}])
    (row,) = files.read_rows(path)
    assert row["text"] == text
    for separator in ",;\t":
        with path.open(newline="", encoding="utf-8") as file:
            cells = [cell for line in csv.reader(file, delimiter=separator) for cell in line]
        for cell in cells:
            assert not cell.startswith(("=", "+", "@", "＝", "＋")), (separator, cell)
            assert not cell.startswith("-") or cell[1:2].isspace(), (separator, cell)


@pytest.mark.skipif(not SHARED.is_dir(), reason="skipped: the shared data are not there")
def test_real_files_are_still_read():
    found = [p for p in sorted(SHARED.rglob("*")) if p.suffix in (".csv", ".jsonl", ".parquet")]
    assert found
    for path in found:
        if path.stat().st_size < 2_000_000:
            assert sum(1 for _ in files.read_rows(path)) > 0, path


def test_seals_and_runs_are_read_from_a_folder_that_is_a_link(run, tmp_path):
    link = tmp_path / "named"
    link.symlink_to(run)
    assert Run.open(link).verify() == []
    assert json.loads((run / "run.json").read_text())["version"]


def outputs(run: Path, folder: Path):
    """Commands that write one file, each without its name."""
    rows, pairs = folder / "a.jsonl", folder / "pairs.csv"
    rows.write_text('{"id": "1", "lang": "en", "response": "Yes.", "text": "x", "label": 0}\n')
    files.write_rows(pairs, [{"id": "p", "lang": "en", "pro": "Men cook.", "anti": "Women cook."}])
    yield ".csv", ["judge", rows, "--judge", "yesno", "-o"]
    yield ".html", ["report", run, "-o"]
    yield ".json", ["dataset", "convert", pairs, "--to", "label-studio", "-o"]
    yield ".xlsx", ["dataset", "convert", pairs, "-o"]
    yield ".csv", ["review", "export", run, "-o"]


@unix
def test_what_is_written_replaces_no_pipe_or_device(run, tmp_path):
    for number, (suffix, words) in enumerate(outputs(run, tmp_path)):
        pipe, victim = tmp_path / f"p{number}{suffix}", tmp_path / f"v{number}{suffix}"
        os.mkfifo(pipe)
        said = CliRunner().invoke(cli, [*map(str, words), str(pipe)], standalone_mode=False)
        assert isinstance(said.exception, GenprobeError), (words, said.output)
        assert pipe.is_fifo(), words
        folder = tmp_path / f"d{number}{suffix}"
        folder.mkdir()
        said = CliRunner().invoke(cli, [*map(str, words), str(folder)], standalone_mode=False)
        assert isinstance(said.exception, GenprobeError) and list(folder.iterdir()) == [], words
        # A link that the user names is written to, replaced or refused; never half.
        victim.write_text("mine")
        link = tmp_path / f"l{number}{suffix}"
        link.symlink_to(victim)
        CliRunner().invoke(cli, [*map(str, words), str(link)], standalone_mode=False)
        assert victim.read_bytes() and not list(tmp_path.glob(".genprobe-*"))
    assert not list(tmp_path.glob(".genprobe-*"))
    with pytest.raises(InputError, match="is a pipe or a device; choose another name"):
        disk.replace(Path("/dev/null"), ["x"])
    assert not Path("/dev/null").is_file()
