"""`genprobe list`: list models, packs, languages and so on."""

from __future__ import annotations

import click

from genprobe.commands._options import VERBOSE
from genprobe.resources.registry import LISTS


@click.command(
    name="list",
    short_help="List languages, packs, engines, judges, metrics, …",
    help="List what is available, one per line: its name and what it is.\n\n"
    f"WHAT: {', '.join(LISTS)}.",
)
@click.argument("what", type=click.Choice(LISTS), metavar="WHAT")
@VERBOSE
def command(what: str) -> None:
    from genprobe.api.data import list_names

    rows = [(row["name"], row["about"]) for row in list_names(what)]
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}".rstrip())
