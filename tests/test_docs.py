"""The pages say what the commands do: their help as it is, and no option that is not there."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from genprobe.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def lines() -> list[tuple[str, str]]:
    """Every command line of genprobe in a fenced block or in `code`, with its page."""
    found = []
    for page in PAGES:
        text = page.read_text()
        blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        code = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        code += re.findall(r"(?<!`)`(genprobe [^`]+)`(?!`)", text)
        for line in code:
            line = line.removeprefix("$ ")
            if line.startswith("genprobe ") and "--help" not in line and "…" not in line:
                found.append((page.name, line.split(" #")[0].strip()))
    return sorted(set(found))


def parsed(line: str) -> None:
    """Parse a command line without running it; click's own errors."""
    words = re.split(r"\s[|>&]", line)[0].strip()
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


def test_the_help_of_every_command_is_on_its_page() -> None:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "tools" / "docs.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "commands.md").read_text() == tool.commands(), (
        "make it again: python tools/docs.py commands"
    )
