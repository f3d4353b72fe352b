"""How commands print: notes on stderr, a progress bar, tables of scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from genprobe.errors import Caution
from genprobe.text.display import alike

if TYPE_CHECKING:
    from genprobe.records import Score


def say(message: str, code: int = 0) -> int:
    """Print a line to stderr and return the exit code."""
    from genprobe.text.display import clean

    click.echo(f"genprobe: {clean(message)}", err=True)
    return code


def noter(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints notes; if quiet, it prints only cautions."""

    def note(message: str) -> None:
        if not quiet or isinstance(message, Caution):
            say(message)

    return note


def columns(by: str | None) -> list[str]:
    """Split a list of columns such as `lang,probe`; names take the form of a file's header."""
    return [name for part in by.split(",") if (name := alike(part))] if by else []


def print_scores(scores: Sequence[Score], form: str) -> None:
    """Print scores to stdout. form: a key of `render.formats.FORMATS`."""
    import shutil

    from genprobe.render.scores import Scores

    width = shutil.get_terminal_size((100, 24)).columns
    shown = scores if isinstance(scores, Scores) else Scores(scores)
    click.echo(shown.render(form, width), nl=False)


class Bar:
    """Show progress on stderr, if it is a terminal: one bar for each step."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet or not sys.stderr.isatty()
        self.what = self.more = ""
        self.bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.quiet:
            return
        if what != self.what:
            from tqdm import tqdm  # installed with transformers

            self.close()
            self.what, self.more = what, self.more if what == "asking" else ""
            # What was there before is no part of the rate, nor of the time that is left.
            self.bar = tqdm(
                total=total or None, initial=done, desc=what, unit=" replies", leave=False
            )
        if self.more:
            self.bar.set_postfix_str(self.more, refresh=False)
        self.bar.update(done - self.bar.n)

    def tell(self, more: str) -> None:
        """Show `more` beside the bar when it is next drawn."""
        self.more = more

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
