"""The pages show what their examples print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pages
import pytest

pytestmark = pytest.mark.slow

TUTORIALS = [page for page in pages.paths() if page.match("tutorials/*")]
OTHERS = [page for page in pages.paths() if page not in TUTORIALS]
# What a process imports, it imports once for all its pages.
PARTS = [*(OTHERS[n::3] for n in range(3)), *([page] for page in TUTORIALS)]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: "-".join(page.stem for page in part))
def test_a_page_shows_what_its_examples_print(part: list[Path]) -> None:
    done = tool("check", *part)
    assert done.returncode == 0, (
        f"mend it, or make it again by tools/docs.py pages\n{done.stdout}{done.stderr}"
    )


def tool(what: str, *chosen: Path) -> subprocess.CompletedProcess[str]:
    """tools/docs.py in a process of its own: it forks, and test runners have threads."""
    command = [sys.executable, str(pages.ROOT / "tools" / "docs.py"), what, *map(str, chosen)]
    return subprocess.run(command, capture_output=True, text=True)


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


def test_outputs_are_made_anew() -> None:
    made = pages.made(PAGE)
    assert "$ cat copy.txt\none\ntwo\n$ seq \\\n  9\n1\n…\n9\n$ ls" in made
    assert "2> /dev/null\n(exit code 2)\n```" in made
    assert "$PWD\none two in .\n```" in made
    assert pages.made(made) == made


SESSION = """<!-- not run: it would fail -->
```sh
exit 1
```
```sh
echo 1 > one.txt   # with a comment
cat one.txt \\
  one.txt > two.txt
```
```pycon
>>> def twice(x):
...     return 2 * x
...
>>> twice(21)
41
>>> for n in range(9):
...     n
0
…
8
```
```console
$ cat two.txt
```
```pycon
>>> twice(open("two.txt").read())
>>> twice()
…
TypeError
>>> x = "nothing is shown"
```
"""


def test_blocks_that_show_nothing_and_one_python_session(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SESSION)
    assert tool("pages", page).returncode == 0
    made = page.read_text()
    assert "not run: it would fail -->\n```sh\nexit 1\n```\n```sh\necho 1" in made
    assert ">>> twice(21)\n42\n>>> for n in range(9):\n...     n\n0\n…\n8\n```" in made
    assert "$ cat two.txt\n1\n1\n```" in made
    assert ">>> twice(open(\"two.txt\").read())\n'1\\n1\\n1\\n1\\n'\n" in made
    assert "…\nTypeError: twice() missing 1 required" in made
    assert tool("check", page).stdout == ""


@pytest.mark.parametrize("page", ["<!-- run, not shown: false -->\n", "```sh\ntrue\nfalse\n```\n"])
def test_what_is_hidden_must_not_fail(page: str) -> None:
    with pytest.raises(SystemExit, match="false: exit code 1"):
        pages.made(page)


def test_a_difference_is_found_and_a_hash_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo dbc81d82a73f of 5.23.0\n0a1b2c3d4e5f of 5.23.1\n```\n")
    assert pages.differences(page) == ""
    page.write_text("```console\n$ echo 48 replies\n49 replies\n```\n")
    assert "-49 replies\n+48 replies" in pages.differences(page)
