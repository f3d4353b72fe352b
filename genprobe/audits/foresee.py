"""Say what an audit takes and what it will show, before it runs."""

from __future__ import annotations

import functools
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from genprobe import metrics, tasks
from genprobe.analysis import dstudy, forecast, gaps, power
from genprobe.audits.plan import RUNS, Cell, Plan
from genprobe.errors import RunError
from genprobe.files import door
from genprobe.runs.run import Run
from genprobe.runs.usage import usage
from genprobe.statistics import share_interval
from genprobe.text import many

KEPT = 3_000  # bytes that a run keeps of a request and its reply, beside the text of the reply
LETTERS = 6  # bytes of a token of a reply, in JSON's escapes
POINTS = 10.0  # any difference: only what is detectable is read from the plan of its power


def lines(plan: Plan, against: Path | None = None) -> Iterator[str]:
    """Describe the requests, tokens, price, disk and time of an audit, and what it will show.

    against: the folder of an earlier audit, whose replies say how long a reply takes.
    """
    there = {cell.name: cell.there() for cell in plan.cells}
    wide = max(len(cell.name) for cell in plan.cells)
    priced = any(cell.price for cell in plan.cells)
    head = f"{'':{wide}}{'requests':>10}{'there':>8}{'tokens in':>12}{'out at most':>13}"
    yield head + (f"{'cost at most':>14}" if priced else "")
    total, money = np.zeros(4, int), 0.0
    for cell in plan.cells:
        n, into, out = cell.size.total[0], *cell.size.tokens
        total += (n, there[cell.name][0], into, out)
        line = f"{cell.name:{wide}}{n:>10}{there[cell.name][0]:>8}{into:>12}{out:>13}"
        if cell.price:
            money += cell.size.cost(cell.price)
            line += f"{cell.size.cost(cell.price):>14.4f}"
        yield line + (f"{'no price':>14}" if priced and not cell.price else "")
    n, done, into, out = map(int, total)
    yield f"{'all':{wide}}{n:>10}{done:>8}{into:>12}{out:>13}" + (
        f"{money:>14.4f}" if priced else ""
    )
    free = [c.model for c in plan.cells if c.price is None and c.ask.options.base_url]
    if free:
        yield f"price: not known of {', '.join(dict.fromkeys(free))}; add price = [IN, OUT]"
    names = dict.fromkeys(name for cell in plan.cells for name in cell.size.more)
    if names:
        yield f"tokens and costs hold, at most, what is {' and '.join(names)}, at the same price"
    if any(not cell.size.room and not tasks.find(cell.task).scores for cell in plan.cells):
        yield "a model that thinks by itself needs more tokens than these"
    finished = sum(whole for _, whole in there.values())
    if done:
        yield f"there already: {done} of {n} replies, {finished} of {len(there)} cells finished"
    yield from _by_replies(plan, there)
    yield _disk(plan, n - done, out)
    yield from _time(plan, there, against)
    yield ""
    yield from _buys(plan)


def _by_replies(plan: Plan, there: Mapping[str, tuple[int, bool]]) -> Iterator[str]:
    """Say what the cells with some replies will take as a whole, by these replies."""
    costs = []
    for cell in plan.cells:
        begun = 0 < there[cell.name][0] < cell.size.total[0]
        if not begun or (found := forecast.expected(Run.open(cell.folder))) is None:
            continue
        into, out, _ = found
        line = (
            f"{cell.name}, by its replies: tokens {into.text()} of prompts, {out.text()} of replies"
        )
        if cell.price:
            costs.append(cell.price.about(into, out))
            line += f"; cost {costs[-1].text(4)}"
        yield line
    if len(costs) > 1:
        value = sum(one.value for one in costs)
        half = math.hypot(*(one.high - one.value for one in costs))  # the cells are independent
        every = forecast.Sum(max(0.0, value - half), value, value + half)
        yield f"cost of these cells: {every.text(4)}"


def _disk(plan: Plan, left: int, tokens: int) -> str:
    """Say how much disk the audit takes. Raises RunError if there is less."""
    need, fetch = left * KEPT + tokens * LETTERS, sum(plan.fetch.values())
    room = shutil.disk_usage(_there(plan.out)).free
    line = f"disk: at most {_size(need)} of {_size(room)} that are free"
    if need > room:
        raise RunError(f"{plan.out}: {line}; choose a folder on another disk (--out)")
    if fetch:
        from huggingface_hub import constants

        cache = Path(constants.HF_HUB_CACHE)
        free = shutil.disk_usage(_there(cache)).free
        line += f"; {_size(fetch)} of models to be fetched, {_size(free)} are free in {cache}"
        if fetch > free:
            raise RunError(f"{cache}: {line}; set HF_HOME to a folder on another disk")
    return line


def _there(folder: Path) -> Path:
    """Return the nearest folder that exists."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.is_dir())


def _size(n: float) -> str:
    power = next(p for p in (3, 2, 1) if n >= 1000**p or p == 1)
    return f"{n / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def _time(plan: Plan, there: Mapping[str, tuple[int, bool]], against: Path | None) -> Iterator[str]:
    """Say how long the rest takes, as far as earlier replies of the same cells tell it."""
    seconds, unknown = 0.0, []
    for cell in plan.cells:
        left = cell.size.total[0] - there[cell.name][0]
        if not left or there[cell.name][1]:
            continue
        earlier = [cell.folder, *([against / RUNS / cell.name] if against else [])]
        rates = [rate for folder in earlier if (rate := _rate(folder))]
        seconds += left * rates[0] if rates else 0
        unknown += [] if rates else [left]
    if unknown:
        yield (
            f"time: not known of {many(sum(unknown), 'request')}, of which there are no earlier "
            f"replies; at one a second {sum(unknown) / 60:.1f} minutes"
        )
    if seconds:
        yield f"time: {seconds / 60:.1f} minutes for what was timed before"


def _rate(folder: Path) -> float:
    """Return the seconds between the replies of a run; 0.0 if that is not known."""
    if not (folder / "run.json").is_file():
        return 0.0
    used = usage(Run.open(folder))
    if used.replies < 2 or not used.first:
        return 0.0
    ends = [time.mktime(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")) for at in used[4:6]]
    return (ends[1] - ends[0]) / (used.replies - 1)


def _buys(plan: Plan) -> Iterator[str]:
    """Say how wide the intervals will be, and which differences can be shown."""
    yield (
        "what it will show, of a share near one half (the widest 95 % interval; a statement and "
        "its contrast count once):"
    )
    told: dict[str, Cell] = {cell.instrument: cell for cell in plan.cells}
    for cell in told.values():
        task, items = tasks.find(cell.task), cell.asked.items
        table = task.table(cast(Run, SimpleNamespace(statements=lambda items=items: items)))
        own = metrics.find(table.ranked[0])
        found: dict[tuple[str, ...], set[str]] = {}
        for item in cell.size.items:
            about = item.extra | task.rows.about(item)
            where = item.lang, *(str(about[c]) for c in own.adds if about.get(c))
            found.setdefault(where, set()).add(item.pair or item.id)
        for where, there in sorted(found.items()):
            name = f"{cell.instrument}, {' '.join(where)}"
            yield f"  {name}: {own.name} {_points(len(there))}"
        chat = () if task.scores else cell.size.requests
        if len({r.facets.get("wording", "") for r in chat}) > 1:
            for line in dstudy.of_plan(chat):
                yield f"  {cell.instrument}, {line}"
        yield from (f"  {line}" for line in never_shown(cell))


def never_shown(cell: Cell) -> Iterator[str]:
    """Yield the limits of a cell that its statements cannot show to hold, whatever comes."""
    n = len({item.pair or item.id for item in cell.size.items})
    for key in ("max_rise", "max_fall"):
        for metric, most in cell.gate.get(key, {}).items():
            if most < 100 * gaps.least(n):
                yield (
                    f"{cell.instrument}: {key} {metric} = {most:g} can never be shown to hold by "
                    f"{many(n, 'statement')} with their translations; "
                    f"{100 * gaps.least(n):.1f} at best"
                )


@functools.cache
def _points(n: int) -> str:
    """Describe the interval of a share over n statements, of which half have what is counted.

    Also the difference of two models that is found with 80 % power, their answers independent, and
    the rise that a gate can rule out if nothing changes.
    """
    hits, ones = np.arange(n) % 2.0, np.ones(n)
    ends = share_interval(hits, ones)
    if n < 2 or ends is None:
        return f"nothing, of {many(n, 'statement')}"
    found = power.power_single(hits, ones, POINTS, resamples=0).detectable
    two = f"finds {100 * found:.0f}" if found else "too few to find a difference"
    return (
        f"±{50 * (ends[1] - ends[0]):.0f} points ({many(n, 'statement')}); between two models: "
        f"{two}; a gate rules out a rise of {100 * gaps.least(n):.0f} at best"
    )


def need_folder(folder: str | Path) -> Path:
    """Return the path of a folder that was named. Raises RunError if there is none."""
    path = door.expanded(folder)
    if not path.is_dir():
        raise RunError(f"{folder}: there is no such folder")
    return path
