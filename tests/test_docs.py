"""The pages say what the commands do: their help as it is, and no option that is not there.

Every example is run (tests/test_tutorials.py), or says in the source why it is not.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pages
import pytest

import docs
from genprobe import limits
from genprobe.commands import cli

ROOT = Path(__file__).parents[1]
# Of runs/ its own page alone: the runs that somebody made there have pages, too.
PAGES = [ROOT / "README.md", ROOT / "runs" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
PAGES += sorted(
    page for name in ("classifiers", "prompts") for page in ROOT.glob(f"{name}/**/*.md")
)


def lines() -> list[tuple[str, str]]:
    """Every command line of genprobe in a fenced block or in `code`, with its page."""
    found = []
    for page in PAGES:
        text = page.read_text()
        blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        code = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        code += re.findall(r"(?<!`)`(genprobe [^`]+)`(?!`)", text)
        for line in code:
            line = line.strip().removeprefix("$ ")
            if line.startswith("genprobe ") and "--help" not in line and "…" not in line:
                found.append((page.name, line.split(" #")[0].strip()))
    return sorted(set(found))


def parsed(line: str) -> None:
    """Parse a command line without running it; click's own errors."""
    words = re.split(r"\s[|>&]|\s{3,}", line)[0].strip()
    arguments = shlex.split(re.sub(r"[\[\]]", "", words))[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="genprobe")
    while isinstance(command, click.Group):
        if not arguments or arguments[0].startswith("-"):
            break
        name, found, rest = command.resolve_command(context, arguments)
        assert found is not None
        command, arguments = found, list(rest)
        context = click.Context(command, parent=context, info_name=name)
    try:
        values, _, _ = command.make_parser(context).parse_args(list(arguments))
    except click.BadOptionUsage as error:
        if arguments[-1] != error.option_name:  # `genprobe stories --data` names an option
            raise
        return
    for option in command.params:
        given = values.get(option.name)
        if isinstance(option, click.Option) and isinstance(option.type, click.Choice):
            for value in given if isinstance(given, list) else [given]:
                if isinstance(value, str) and not value.isupper():
                    option.type.convert(value, option, context)


@pytest.mark.parametrize(("page", "line"), lines())
def test_every_example_is_a_command(page: str, line: str) -> None:
    parsed(line)


def test_there_are_examples_and_wrong_ones_are_found() -> None:
    assert len(lines()) > 60
    for wrong in ("genprobe yesnoo", "genprobe yesno --langs mr", "genprobe score x -f pdf"):
        with pytest.raises(click.UsageError):
            parsed(wrong)


# A fenced block, with the comment in the line before it.
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DATA = {"csv", "toml", "json", "{toctree}", "{include}", "{eval-rst}"}
MADE = {"commands.md"}  # whole, by tools/docs.py


def kinds(text: str) -> Iterator[tuple[str, str]]:
    """Each block of a page, and what it is: `run`, `not run`, `data`, or else `neither`."""
    for comment, language, body in BLOCK.findall(text):
        command = re.search(r"^(\$ |>>> )?(genprobe|import genprobe|from genprobe)\b", body, re.M)
        if comment.startswith("not run: "):
            yield "not run", body
        elif language in ("console", "sh", "pycon"):
            yield "run", body
        elif comment.startswith("file: ") or (language in DATA and not command):
            yield "data", body
        else:
            yield "neither", body


def test_every_example_is_run_or_says_why_not() -> None:
    count: Counter[str] = Counter()
    for page in PAGES:
        if page.name in MADE:
            continue
        found = Counter(kind for kind, _ in kinds(page.read_text()))
        assert [b for kind, b in kinds(page.read_text()) if kind == "neither"] == [], page
        assert (page in pages.paths()) == bool(found["run"]), page
        count += found
    assert count["run"] > 75 and 4 * count["not run"] < count["run"]


def test_an_example_that_is_neither_is_found() -> None:
    page = "```\ngenprobe yesno\n```\n```csv\ngenprobe list data\n```\n```python\nx = 1\n```\n"
    assert [kind for kind, _ in kinds(page)] == ["neither"] * 3
    page = "<!-- not run: a GPU -->\n```sh\ngenprobe yesno\n```\n```csv\na,b\n```\n```sh\nls\n```\n"
    assert [kind for kind, _ in kinds(page)] == ["not run", "data", "run"]


def test_the_help_of_every_command_is_on_its_page() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == docs.commands(), (
        "make it again: python tools/docs.py commands"
    )


def test_the_limits_that_are_told_are_those_that_hold() -> None:
    told = re.findall(
        r"^\| ([A-Z]+) \| ([\d,]+) \| (.*) \|$", (ROOT / "SECURITY.md").read_text(), re.M
    )
    assert [name.lower() for name, _, _ in told] == list(limits.LIMITS)
    for name, usual, what in told:
        limit = limits.LIMITS[name.lower()]
        assert (f"{limit.usual:,}", limit.what) == (usual, what)


def test_no_command_is_left_out() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    for path in (ROOT / "genprobe" / "commands").glob("[a-z]*.py"):
        assert f"\n## genprobe {path.stem}\n" in page


def test_every_row_of_the_studies_has_a_state_and_a_check():
    told = tomllib.loads((ROOT / "benchmarks" / "studies.toml").read_text("utf-8"))
    page = (ROOT / "docs" / "studies.md").read_text("utf-8")
    used = set()
    for text in told["studies"].values():
        for line in text.strip().splitlines():
            name, what, state, check, _ = (part.strip() for part in line.split("|"))
            assert state in ("works", "limits", "partly", "missing", "elsewhere"), line
            assert (check == "–") == (check not in told["checks"]), line
            assert f"| {name} | {what} | {state}" in page
            used.add(check)
    assert used - {"–"} == set(told["checks"])
    assert "FAILS" not in page


SHOWN = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
HIDDEN = re.compile(
    r"^<!-- run, not shown: ((?:(?!-->).)*?)\s-->\n(?:```console\n\$ ([^\n]*))?",
    re.MULTILINE | re.DOTALL,
)


def repaired(page: str) -> list[str]:
    """Hidden commands that change a file of the page, which the next command does not show."""
    found = []
    for command, following in HIDDEN.findall(page):
        for name in SHOWN.findall(page):
            changed = re.search(rf"(sed -i|>)[^|;&]*(?<![\w.-]){re.escape(name)}\b", command)
            if changed and name not in (following or ""):
                found.append(command)
    return found


def test_what_a_page_shows_is_what_is_run() -> None:
    for page in PAGES:
        assert repaired(page.read_text("utf-8")) == [], page
    shown = (
        "<!-- file: a.csv -->\n```csv\nid\n```\n<!-- run, not shown: sed -i 's/i/j/' a.csv -->\n"
    )
    assert repaired(shown) and repaired(shown.replace("sed -i 's/i/j/'", "echo 1 >"))
    assert not repaired(f"{shown}```console\n$ cat a.csv\njd\n```\n")
    assert not repaired(shown.replace("sed -i 's/i/j/' a.csv", "sed 's/i/j/' a.csv > b.csv"))
