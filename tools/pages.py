"""Run the examples of README.md and docs/, and put their output into the pages.

These parts of a page are run, from top to bottom, all in one temporary folder:

- A fenced block after `<!-- file: NAME -->` is written to this file.
- In a block ```` ```console ````, each line that begins with `$ ` is a command; a backslash at its
  end continues it on the next line. The lines below it are its output, with errors, and are
  replaced. If the command fails, the last line is `(exit code N)`.
- In a block ```` ```sh ````, each line is a command. It must not fail; its output is not shown.
- `<!-- run, not shown: COMMAND -->` is run and must not fail. `export NAME=VALUE` holds for the
  rest of the page.
- The blocks ```` ```pycon ```` of a page are one Python session, shown as in the interpreter.

A block after `<!-- not run: REASON -->` is not run.

The line `…` in an output stands for lines that are left out: as many lines are kept before and
after it as the page has. A line of more than WIDTH characters is cut, and ends in `…`.

Commands are run by bash, with the variable CLONE (the folder of the clone). Differences that two
machines or versions may have do not count: see `plain`.
"""

from __future__ import annotations

import code
import contextlib
import difflib
import io
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 160
LEFT_OUT = "…"

_PART = re.compile(
    r"^<!-- not run: [^\n]* -->\n```.*?^```$"
    r"|^<!-- file: (?P<file>\S+) -->\n```\w*\n(?P<content>.*?)^```$"
    r"|^<!-- run, not shown: (?P<hidden>.*?)\s-->$"
    r"|^```console\n(?P<shown>.*?)^```$"
    r"|^```sh\n(?P<silent>.*?)^```$"
    r"|^```pycon\n(?P<python>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# Imported once, before each command runs in a fork. genprobe's own modules are not among them,
# because they read the environment when they are imported.
_HEAVY = (
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "torch",
    "transformers.models.llama.modeling_llama",
)


def paths() -> list[Path]:
    """List the pages that have something to run."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [page for page in pages if any(map(_runs, _PART.finditer(page.read_text())))]


def made(text: str) -> str:
    """Run a page and return it with new outputs.

    An output stays as it was if the new one differs only in what does not count (`plain`).
    """
    with tempfile.TemporaryDirectory() as name:
        shell = _Shell(Path(name).resolve())
        return _PART.sub(lambda part: _again(part, shell), text)


def differences(page: Path) -> str:
    """Return a diff between the outputs that a page shows and the present ones; empty if equal."""
    text = page.read_text()
    old, new = (plain(one).splitlines() for one in (text, made(text)))
    lines = difflib.unified_diff(old, new, f"{page.name}, as shown", f"{page.name}, as it is now")
    return "\n".join(line.rstrip("\n") for line in lines)


def plain(text: str) -> str:
    """Return a text without the parts that may differ between machines and versions.

    These are hashes, versions, times, the engine, and the fields of a signature after the measure.
    """
    text = re.sub(r"^(Signature[^|]*|genprobe: engine:).*", r"\1 …", text, flags=re.MULTILINE)
    text = re.sub(r"\bruns/(\S+)-[0-9a-f]{8}\b", r"runs/\1-HASH", text)
    text = re.sub(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b", "HASH", text)
    text = re.sub(r"\b\d+\.\d+\.\d+\b", "VERSION", text)
    return re.sub(r"\b\d+(\.\d+)? (ms|s|seconds|minutes)\b", "TIME", text)


def _runs(part: re.Match[str]) -> bool:
    return any(part[kind] is not None for kind in ("shown", "silent", "python"))


def _again(part: re.Match[str], shell: _Shell) -> str:
    """Run a part of a page and return the part with its new output."""
    if part["file"]:
        (shell.folder / part["file"]).parent.mkdir(parents=True, exist_ok=True)
        (shell.folder / part["file"]).write_text(part["content"], encoding="utf-8")
    for command in [part["hidden"]] if part["hidden"] else _lines(part["silent"] or ""):
        out, status = shell.run(command)
        if status:
            sys.exit(f"{command}: exit code {status}\n{out}")
    lines = []
    for command, before in _examples(part["shown"] or "", "$ "):
        out, status = shell.run(command.replace("\\\n", " "))
        after = [*_short(out, before), *([f"(exit code {status})"] if status else [])]
        lines += [f"$ {command}", *_kept(before, after)]
    for source, before in _examples(part["python"] or "", ">>> "):
        out = shell.python(source.replace("\n... ", "\n"))
        lines += [f">>> {source}", *_kept(before, _short(out, before))]
    return "\n".join([part[0].partition("\n")[0], *lines, "```"]) if lines else part[0]


def _lines(block: str) -> list[str]:
    """List the commands of a block without outputs."""
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def _examples(block: str, prompt: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each example of a block with its continuation lines, and the output shown below it."""
    for one in re.split(rf"^{re.escape(prompt)}", block, flags=re.MULTILINE)[1:]:
        example, *lines = one.splitlines()
        while lines and (example.endswith("\\") or lines[0].startswith("... ")):
            example += "\n" + lines.pop(0)
        yield example, lines


def _kept(before: list[str], after: list[str]) -> list[str]:
    """Return the new output, or the old one if they differ only in what does not count."""
    return before if plain("\n".join(after)) == plain("\n".join(before)) else after


def _short(out: str, old: list[str]) -> list[str]:
    """Return the lines of an output as they are shown, cut and left out as in the old output."""
    lines = out.splitlines()
    new = [line if len(line) <= WIDTH else line[: WIDTH - 1] + LEFT_OUT for line in lines]
    new = [line.rstrip() for line in new]
    if LEFT_OUT not in old:
        return new
    first = old.index(LEFT_OUT)
    last = len(old) - first - 1 - bool(old[-1].startswith("(exit code"))
    return new if len(new) <= first + last else [*new[:first], LEFT_OUT, *new[len(new) - last :]]


class _Shell:
    """A shell that runs commands in a folder.

    A plain genprobe command runs in a fork of this process, which saves the time of its imports.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {
            **os.environ,
            "PATH": search,
            "CLONE": str(ROOT),
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
            "PYTHONUTF8": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(folder / ".cache"),
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        }
        self.session: Connection | None = None

    def run(self, command: str) -> tuple[str, int]:
        """Run a command; return what it prints, on both streams, and its exit code."""
        if made := re.fullmatch(r"export (\w+)=(.*)", command):
            self.environment[made[1]] = self._bash(f"printf %s {made[2]}")[0]
            return "", 0
        words = re.sub(r"\s# .*", "", command)
        simple = words.startswith("genprobe ") and not re.search(r"[|<>&;$*`?{]", words)
        out, status = self._fork(shlex.split(words)) if simple else self._bash(command)
        # A file for spreadsheets begins with a mark that no reader of the page sees.
        return out.replace(str(self.folder), ".").replace("\ufeff", ""), status

    def python(self, source: str) -> str:
        """Run a statement in the page's session; return its output, its value or its traceback."""
        if self.session is None:
            fork = multiprocessing.get_context("fork")
            self.session, theirs = fork.Pipe()
            fork.Process(target=self._serve, args=[theirs], daemon=True).start()
            theirs.close()
        self.session.send(source)
        return str(self.session.recv()).replace(str(self.folder), ".")

    def _serve(self, session: Connection) -> None:
        self._enter()
        interpreter = code.InteractiveInterpreter()
        while True:
            source = session.recv()
            with io.StringIO() as out:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                    interpreter.runsource(f"{source}\n")
                session.send(out.getvalue())

    def _bash(self, command: str) -> tuple[str, int]:
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            cwd=self.folder,
            encoding="utf-8",
        )
        return done.stdout, done.returncode

    def _warm(self) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # these packages read it when they are imported
        for name in _HEAVY:
            __import__(name)

    def _enter(self) -> None:
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)

    def _fork(self, words: list[str]) -> tuple[str, int]:
        self._warm()
        with tempfile.TemporaryFile() as stream:
            child = os.fork()
            if child == 0:
                self._child(words, stream.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            stream.seek(0)
            return stream.read().decode(), status

    def _child(self, words: list[str], stream: int) -> None:
        """Run a genprobe command in the child process, and exit with its exit code."""
        status = 1
        try:
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            self._enter()
            sys.argv = words
            from genprobe.commands import main

            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
