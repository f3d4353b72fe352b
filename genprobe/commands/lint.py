"""Packs, languages, templates and phrases checked."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import say
from genprobe.commands._options import VERBOSE


@click.command("lint", short_help="Check packs, languages, templates, phrases.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
@VERBOSE
def command(paths: tuple[Path, ...], quiet: bool) -> int:
    """Check all that lies in prompts/: files or folders, without any all that is shipped.

    Exit code 1 if there are errors. The published wordings are an instrument, used as they were:
    their faults are warnings.
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
    """Write a path as one would type it from here."""
    here = f"{Path.cwd()}/"
    return where.removeprefix(here)
