"""Run the commands of the tutorials, and put what they print into the pages.

What of a page in docs/tutorials is run, from top to bottom, all in one scratch folder:

- A fenced block behind `<!-- file: NAME -->` is a file, and is written there.
- In a block ```` ```console ```` each line that begins with `$ ` is a command; a backslash at its
  end continues it. What stands below is what it prints, errors too, and is made anew. A last line
  `(exit code N)` stands where the command fails.
- `<!-- run, not shown: COMMAND -->` is run and must not fail. `export NAME=VALUE` lasts.

The line `…` in an output stands for lines left out: as many lines are kept before and behind it as
the page has. A line of more than WIDTH characters is cut, and ends in `…`.

Commands see CLONE (the clone's folder) and bash. What may differ between two machines or versions
and is no difference: see `plain`.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tutorials"
WIDTH = 160
LEFT_OUT = "…"

_PART = re.compile(
    r"^<!-- file: (?P<file>\S+) -->\n```\w*\n(?P<content>.*?)^```$"
    r"|^<!-- run, not shown: (?P<hidden>.*?) -->$"
    r"|^```console\n(?P<block>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# Imported once; each command is a fork that starts from here. None of genprobe's own modules, which
# read the environment.
_HEAVY = (
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "torch",
    "transformers.models.llama.modeling_llama",
)


def paths() -> list[Path]:
    """The pages, by name."""
    return sorted(FOLDER.glob("*.md"))


def made(text: str) -> str:
    """The page with every output made anew; what differs in nothing that counts stays as it was."""
    with tempfile.TemporaryDirectory() as name:
        shell = _Shell(Path(name).resolve())
        return _PART.sub(lambda part: _again(part, shell), text)


def differences(page: Path) -> str:
    """What the commands of a page print now and the page does not show, as a diff; else empty."""
    text = page.read_text()
    old, new = (plain(one).splitlines() for one in (text, made(text)))
    lines = difflib.unified_diff(old, new, f"{page.name}, as shown", f"{page.name}, as it is now")
    return "\n".join(line.rstrip("\n") for line in lines)


def plain(text: str) -> str:
    """A text without signatures, hashes, versions, times and the engine, which may differ."""
    text = re.sub(r"^(Signature[^:]*:|genprobe: engine:).*", r"\1 …", text, flags=re.MULTILINE)
    text = re.sub(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b", "HASH", text)
    text = re.sub(r"\b\d+\.\d+\.\d+\b", "VERSION", text)
    return re.sub(r"\b\d+(\.\d+)? (ms|s|seconds|minutes)\b", "TIME", text)


def _again(part: re.Match[str], shell: _Shell) -> str:
    whole = part[0]
    if part["file"]:
        (shell.folder / part["file"]).parent.mkdir(parents=True, exist_ok=True)
        (shell.folder / part["file"]).write_text(part["content"], encoding="utf-8")
        return whole
    if part["hidden"]:
        out, code = shell.run(part["hidden"])
        if code:
            sys.exit(f"{part['hidden']}: exit code {code}\n{out}")
        return whole
    lines = []
    for command, before in _commands(part["block"]):
        out, code = shell.run(command.replace("\\\n", " "))
        after = _short(out.splitlines(), before)
        if code:
            after.append(f"(exit code {code})")
        same = plain("\n".join(after)) == plain("\n".join(before))
        lines += [f"$ {command}", *(before if same else after)]
    return "\n".join(["```console", *lines, "```"])


def _commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, and the lines shown below it."""
    for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = one.splitlines()
        while command.endswith("\\"):
            command += "\n" + lines.pop(0)
        yield command, lines


def _short(new: list[str], old: list[str]) -> list[str]:
    """The lines of an output as they are shown, with as many left out as were before."""
    new = [line if len(line) <= WIDTH else line[: WIDTH - 1] + LEFT_OUT for line in new]
    new = [line.rstrip() for line in new]
    if LEFT_OUT not in old:
        return new
    first = old.index(LEFT_OUT)
    last = len(old) - first - 1 - bool(old[-1].startswith("(exit code"))
    return new if len(new) <= first + last else [*new[:first], LEFT_OUT, *new[len(new) - last :]]


class _Shell:
    """Runs commands in a folder, those of genprobe alone without waiting for their imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        width = {"COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
        self.environment = {**os.environ, **width, "PATH": search, "CLONE": str(ROOT)}

    def run(self, command: str) -> tuple[str, int]:
        """What it prints, on both streams, and its exit code."""
        if made := re.fullmatch(r"export (\w+)=(.*)", command):
            self.environment[made[1]] = self._bash(f"printf %s {made[2]}")[0]
            return "", 0
        simple = command.startswith("genprobe ") and not re.search(r"[|<>&;$*`?{]", command)
        out, code = self._fork(shlex.split(command)) if simple else self._bash(command)
        return out.replace(str(self.folder), "."), code

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

    def _fork(self, words: list[str]) -> tuple[str, int]:
        for name in _HEAVY:
            __import__(name)
        with tempfile.TemporaryFile() as stream:
            child = os.fork()
            if child == 0:
                self._child(words, stream.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            stream.seek(0)
            return stream.read().decode(), code

    def _child(self, words: list[str], stream: int) -> None:
        """Be a genprobe of its own; never comes back."""
        code = 1
        try:
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            os.chdir(self.folder)
            os.environ.clear()
            os.environ.update(self.environment)
            sys.argv = words
            from genprobe.cli import main

            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
