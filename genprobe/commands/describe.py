"""`genprobe describe`: count what is in a data set."""

from __future__ import annotations

from pathlib import Path

import click

from genprobe.commands._console import noter
from genprobe.commands._options import ASKED, QUIET, VERBOSE, together


@click.command("describe", short_help="Count what is in a data set, by its annotations.")
@click.argument("source", metavar="FILE")
@ASKED["langs"]
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Format of the counts.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also draw the counts: bars, and for a cross table a heat map.",
)
@together(QUIET, VERBOSE)
def command(
    source: str, langs: tuple[str, ...], form: str, figures: Path | None, quiet: bool
) -> None:
    """Count statements, pairs, templates or choices; say what is missing, duplicated or unusual.

    Counts are by language, form, bias type, region and domain; of a table of `dataset group`, by
    what is said most. FILE is a file, or builtin, shades or templates.
    """
    import csv
    import io
    import itertools
    import json
    from operator import itemgetter

    from genprobe import api
    from genprobe.text.display import clean

    notes: list[str] = []
    rows = list(api.describe(source, langs=langs, figures=figures, note=notes.append))
    if form == "json":
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif form == "csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, ["table", "value", "n", "of", "across"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        click.echo(out.getvalue(), nl=False)
    else:
        for table, counts in itertools.groupby(rows, itemgetter("table")):
            group = list(counts)
            click.echo(clean(f"{table} (of {group[0]['of']:,})"))
            if "across" in group[0]:
                across = list(dict.fromkeys(count["across"] for count in group))
                click.echo(clean("".join(f"{name:>10}" for name in across)))
                for value, of in itertools.groupby(group, itemgetter("value")):
                    click.echo(clean("".join(f"{one['n']:>10,}" for one in of) + f"  {value}"))
                continue
            for count in group:
                share = f"{100 * count['n'] / count['of']:5.1f} %" if count["of"] else ""
                click.echo(clean(f"  {count['n']:>7,}  {share}  {count['value']}"))
    say = noter(quiet)
    for note in notes:
        say(note)
