"""What commands have in common when they print: notes on stderr, a bar, tables of scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from genprobe.errors import Caution

if TYPE_CHECKING:
    from genprobe.records import Score


def say(message: str, code: int = 0) -> int:
    """Print a line for a person to stderr, and return the exit code."""
    from genprobe.text.display import clean

    click.echo(f"genprobe: {clean(message)}", err=True)
    return code


def noter(quiet: bool) -> Callable[[str], None]:
    """Return what prints notes; where they are not wanted, cautions alone."""

    def note(message: str) -> None:
        if not quiet or isinstance(message, Caution):
            say(message)

    return note


def columns(by: str | None) -> list[str]:
    """Split a list of columns as it is typed: `lang,probe`."""
    return [column.strip() for column in by.split(",") if column.strip()] if by else []


def print_scores(scores: Sequence[Score], form: str) -> None:
    """Print scores to stdout in a form of `render.formats.FORMATS`."""
    import shutil

    from genprobe.render import formats

    width = shutil.get_terminal_size((100, 24)).columns
    click.echo(formats.render(scores, form, width), nl=False)


class Bar:
    """Progress on stderr where a person looks at it: one bar for each thing that is done."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet or not sys.stderr.isatty()
        self.what = self.more = ""
        self.bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.quiet:
            return
        if what != self.what:
            from tqdm import tqdm  # transformers needs it anyway

            self.close()
            self.what, self.more = what, self.more if what == "asking" else ""
            self.bar = tqdm(total=total or None, desc=what, unit=" replies", leave=False)
        if self.more:
            self.bar.set_postfix_str(self.more, refresh=False)
        self.bar.update(done - self.bar.n)

    def tell(self, more: str) -> None:
        """Say more beside the bar, when it is drawn next."""
        self.more = more

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
