"""The tutorials show what their commands print."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "pages.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    # In a process of its own: it forks, and test runners have threads.
    tool = [sys.executable, str(ROOT / "tools" / "docs.py"), "check", str(page)]
    done = subprocess.run(tool, capture_output=True, text=True)
    assert done.returncode == 0, (
        f"mend it, or make it again by tools/docs.py pages\n{done.stdout}{done.stderr}"
    )


PAGE = """# A page
<!-- file: a/names.txt -->
```
one
two
```
<!-- run, not shown: cp a/names.txt copy.txt -->
```console
$ cat copy.txt
three
$ seq \\
  9
1
…
9
$ ls nowhere 2> /dev/null
```
<!-- run, not shown: export WORD="one two" -->
```console
$ echo $WORD in $PWD
```
"""


def test_outputs_are_made_anew(pages: ModuleType) -> None:
    made = pages.made(PAGE)
    assert "$ cat copy.txt\none\ntwo\n$ seq \\\n  9\n1\n…\n9\n$ ls" in made
    assert "2> /dev/null\n(exit code 2)\n```" in made
    assert "$PWD\none two in .\n```" in made
    assert pages.made(made) == made


def test_what_is_hidden_must_not_fail(pages: ModuleType) -> None:
    with pytest.raises(SystemExit, match="exit code 1"):
        pages.made("<!-- run, not shown: false -->\n")


def test_a_difference_is_found_and_a_hash_is_none(pages: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo dbc81d82a73f of 5.23.0\n0a1b2c3d4e5f of 5.23.1\n```\n")
    assert pages.differences(page) == ""
    page.write_text("```console\n$ echo 48 replies\n49 replies\n```\n")
    assert "-49 replies\n+48 replies" in pages.differences(page)
