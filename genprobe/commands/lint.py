"""`genprobe lint`: check packs, languages, templates and phrases."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import say
from genprobe.commands._options import VERBOSE


@click.command("lint", short_help="Check the files in prompts/: packs, languages, phrases.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
@VERBOSE
def command(paths: tuple[Path, ...], quiet: bool) -> int:
    """Check files of packs, languages, templates and phrases.

    PATH is a file or a folder. Without PATH everything in prompts/ is checked, and the cards of
    classifiers: a model of the hub must be pinned to a commit. Exit code 1 if there
    are errors. Faults of published wordings are only warnings, because these are used as they were
    published.
    """
    from genprobe.lint import lint as check
    from genprobe.text.display import clean

    found = check(paths)
    errors = sum(f.level == "error" for f in found)
    for finding in found:
        if finding.level == "error" or not quiet:
            click.echo(clean(f"{_short(finding.where)}: {finding.level}: {finding.message}"))
    if not quiet or errors:
        counts = {"error": errors, "warning": len(found) - errors}
        say(", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items()))
    return 1 if errors else 0


def _short(where: str) -> str:
    """Write a path relative to the current folder, if it is inside."""
    here = f"{Path.cwd()}/"
    return where.removeprefix(here)
