"""`genprobe gate`: pass a new version of a model only if it is shown to be not worse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from genprobe.commands._console import columns
from genprobe.commands._options import BY, FOLLOW, VERBOSE, together
from genprobe.errors import InputError

CODES = {"not worse": 0, "worse": 1, "undecided": 4}


@click.command("gate", short_help="Pass a new model version only if it is not worse; for CI.")
@click.argument("new", type=click.Path(path_type=Path), metavar="NEW")
@click.option(
    "--against",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="The run, table or log of the old version.",
)
@click.option(
    "--max-rise",
    multiple=True,
    metavar="METRIC=POINTS",
    help="By how many points a figure may rise, such as endorsed=12; may be repeated. These have "
    "a limit anyway, which can be changed: refusal and unclear (what does not count) 10 points, or "
    "that of the measure if so few statements cannot show 10; failed (planned requests without a "
    "reply) 5 %.",
)
@click.option(
    "--max-fall",
    multiple=True,
    metavar="METRIC=POINTS",
    help="By how many points a figure may fall whose fall is harm, such as accuracy=12; may be "
    "repeated.",
)
@click.option(
    "--max-flips",
    type=click.FloatRange(0, 100),
    metavar="POINTS",
    help="How many answers, in %, may change beyond those that change when a model is asked again.",
)
@click.option(
    "--again",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A second run of the old version, to measure how many answers change by chance.",
)
@click.option(
    "--allow-undecided",
    is_flag=True,
    help="Exit with 0 also if the verdict is undecided.",
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
@together(BY, FOLLOW, VERBOSE)
def command(
    new: Path,
    against: Path,
    max_rise: tuple[str, ...],
    max_fall: tuple[str, ...],
    max_flips: float | None,
    again: Path | None,
    allow_undecided: bool,
    by: str | None,
    form: str,
) -> int:
    """Pass a new version of a model only if it is shown to be not worse than the old one.

    NEW and OLD are runs that asked two versions of a model the same, or tables of their judged
    replies, or logs of other harnesses. Exit code 0: not worse, every
    limit is shown to hold (one-sided, 95 %); 1: worse, a figure is shown to be beyond its limit
    (5 %, after Holm's correction for all limits); 4: undecided; 2: nothing could be tested, or so
    few statements could never show the limit.

    All planned replies count. Unclear answers may hide either answer, so a limit must hold both if
    they are counted as no and if they are counted as yes. With --by, each cell is printed, too; the
    verdict is that of all together, and worse if a cell is shown to be worse. What drops out
    (refusal, unclear, failed) is tested in each language anyway; one that is beyond is named.
    """
    from genprobe import api
    from genprobe.text.display import clean

    found = api.gate(
        new,
        against=against,
        max_rise=_limits("--max-rise", max_rise),
        max_fall=_limits("--max-fall", max_fall),
        max_flips=max_flips,
        by=columns(by),
        again=again,
    )
    if form == "json":
        click.echo(json.dumps(found.json(), ensure_ascii=True, indent=1))
    elif form == "junit":
        click.echo(found.junit(allow_undecided), nl=False)
    else:
        for line in found.lines():
            click.echo(clean(line))
    code = CODES[found.verdict]
    return 0 if code == 4 and allow_undecided else code


def _limits(option: str, given: tuple[str, ...]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for one in given:
        metric, equals, points = one.partition("=")
        try:
            most = float(points)
        except ValueError:
            most = math.nan
        if not equals or not most >= 0:
            raise InputError(f"{option} {one}: give METRIC=POINTS, such as endorsed=12")
        if metric in limits:
            raise InputError(f"{option} {metric} is given twice")
        limits[metric] = most
    return limits
