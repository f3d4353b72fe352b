"""Let a new version of a model pass, or not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from genprobe.commands._options import VERBOSE, together
from genprobe.errors import InputError


@click.command("gate", short_help="Stop a new version of a model whose figures rose; for CI.")
@click.argument("new", type=click.Path(path_type=Path), metavar="NEW")
@click.option(
    "--against",
    "old",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="The run of the version before.",
)
@click.option(
    "--max-rise",
    "rises",
    multiple=True,
    metavar="METRIC=POINTS",
    help="Most that a figure may rise, such as endorsed=5; may be repeated.",
)
@click.option(
    "--max-flips",
    "flips",
    type=click.FloatRange(0, 100),
    metavar="POINTS",
    help="Most answers, in %, that may change beyond what changes when a model is asked again.",
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
    """Stop a new version of a model whose figures rose by more than is allowed.

    NEW and OLD are runs that asked the same of two versions: quantised, fine-tuned, last week's.
    Exit code 0: passed; 1: a rise beyond the limit is shown (one-sided, 5 %); 2: nothing could be
    tested. Items pair one by one. Says how many answers changed and which way, also where the
    averages are equal, when the sample is too small to see what it should stop, and when nothing
    at all has changed.
    """
    from genprobe.analysis.gate import gate
    from genprobe.text.display import clean

    if not rises and flips is None:
        raise InputError("nothing to test; give --max-rise METRIC=POINTS, such as endorsed=5")
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
            raise InputError(f"--max-rise {rise}: METRIC=POINTS, of 0 to 100, such as endorsed=5")
        if metric in limits:
            raise InputError(f"--max-rise {metric} is there twice")
        limits[metric] = most / 100
    return limits
