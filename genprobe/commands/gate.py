"""`genprobe gate`: stop a new version of a model that is worse than the old one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from genprobe.commands._options import VERBOSE, together
from genprobe.errors import InputError


@click.command("gate", short_help="Fail if the figures of a new model version rose; for CI.")
@click.argument("new", type=click.Path(path_type=Path), metavar="NEW")
@click.option(
    "--against",
    "old",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="The run of the old version.",
)
@click.option(
    "--max-rise",
    "rises",
    multiple=True,
    metavar="METRIC=POINTS",
    help="By how many points a figure may rise, such as endorsed=5; may be repeated.",
)
@click.option(
    "--max-flips",
    "flips",
    type=click.FloatRange(0, 100),
    metavar="POINTS",
    help="How many answers, in %, may change beyond those that change when a model is asked again.",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="How the verdict is printed.",
)
@together(VERBOSE)
def command(new: Path, old: Path, rises: tuple[str, ...], flips: float | None, form: str) -> int:
    """Fail if the figures of a new version of a model rose by more than is allowed.

    NEW and OLD are runs that asked two versions of a model the same. Exit code 0: passed; 1: a
    figure rose beyond its limit (one-sided test, 5 %); 2: nothing could be tested. Items are
    matched one by one. Also says how many answers changed in each direction, whether the sample is
    too small to detect a rise of the limit, and whether nothing changed at all.
    """
    from genprobe.analysis.gate import gate
    from genprobe.text.display import clean

    if not rises and flips is None:
        raise InputError("no limit is given; add --max-rise METRIC=POINTS, such as endorsed=5")
    found = gate(new, old, _limits(rises), None if flips is None else flips / 100)
    if form == "json":
        click.echo(json.dumps(found.json(), ensure_ascii=True, indent=1))
    elif form == "junit":
        click.echo(found.junit(), nl=False)
    else:
        for line in found.lines():
            click.echo(clean(line))
    return 0 if found.passed else 1


def _limits(rises: tuple[str, ...]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for rise in rises:
        metric, equals, points = rise.partition("=")
        try:
            most = float(points)
        except ValueError:
            most = math.nan
        if not equals or not 0 <= most <= 100:
            raise InputError(
                f"--max-rise {rise}: give METRIC=POINTS, from 0 to 100, such as endorsed=5"
            )
        if metric in limits:
            raise InputError(f"--max-rise {metric} is given twice")
        limits[metric] = most / 100
    return limits
