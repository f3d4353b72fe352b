"""Arrange scores as rows and columns, write figures as text, and write the notes below a table.

Every format of a table uses this module. Names of models, columns and groups come from files of
others, so every cell is cleaned.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from genprobe import metrics
from genprobe.records import JSON, Score
from genprobe.text.display import clean, short_name

NOTHING = "–"  # printed where there was nothing to count


def parts_of(scores: Sequence[Score]) -> list[list[Score]]:
    """Split scores into tables: scores whose cells have other columns get a table of their own."""
    parts: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        parts.setdefault(tuple(score.by), []).append(score)
    return list(parts.values())


class Named(Protocol):
    """What has a model with its revision, and the name of a checkpoint, if it is one."""

    @property
    def who(self) -> tuple[str, str]: ...
    @property
    def checkpoint(self) -> str: ...


def model_names(specs: Iterable[Named]) -> dict[tuple[str, str], str]:
    """Return a unique name for display of each model and revision.

    A name is the last part of a path or hub id (the last two parts if several models share the
    last). It ends with the name of the checkpoint, if it has one, or else, if the model has several
    revisions, with the first characters of the revision.
    """
    called: dict[tuple[str, str], str] = {}
    for spec in specs:
        called[spec.who] = called.get(spec.who) or spec.checkpoint
    who = list(called)
    ends = {depth: {m: short_name(m, depth) for m, _ in who} for depth in (1, 2)}
    found: dict[tuple[str, str], str] = {}
    for model, revision in who:
        alone = list(ends[1].values()).count(ends[1][model]) == 1
        name = ends[1 if alone else 2][model]
        if called[model, revision]:
            name += f"@{short_name(called[model, revision], 9)}"
        elif sum(m == model for m, _ in who) > 1:
            name += f"@{clean(revision)[:12]}"
        # Names can still be equal if models differ only in a part that is not shown.
        names = itertools.chain([name], (f"{name} {at}" for at in itertools.count(2)))
        found[model, revision] = next(n for n in names if n not in found.values())
    return found


def _percent(value: float, sign: bool = False) -> str:
    text = f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "−")


def number(value: float, metric: str) -> str:
    """Write a value on the scale of its measure: a share in %, a coefficient, a count, …"""
    scale = metrics.shown(metric).scale
    if scale == "coefficient":
        return f"{value:z.2f}".replace("-", "−")
    if scale == "p":
        return f"{value:.3f}" if value >= 0.001 else "<0.001"
    if scale == "count":
        return f"{value:.0f}"
    if scale == "number":
        return f"{value:#.3g}".rstrip(".").replace("-", "−")
    return _percent(value, scale == "points")


def value_text(score: Score | None) -> str:
    if score is None:
        return ""
    return NOTHING if score.value is None else number(score.value, score.metric)


def interval_text(score: Score | None) -> str:
    if score is None or score.low is None or score.high is None:
        return ""
    return f"[{number(score.low, score.metric)}, {number(score.high, score.metric)}]"


def bounds_text(score: Score | None, to: str = " to ") -> str:
    if score is None:
        return ""
    return to.join(map(_percent, score.bounds)) if score.bounds else NOTHING


def readers_text(score: Score | None) -> str:
    """Write the band: the lowest and the highest figure over the readings."""
    if score is None or score.readings is None:
        return ""
    return NOTHING.join(map(_percent, score.band)) if score.band else NOTHING


# Columns of the cells -> how a caption names them.
_COLUMNS = {"lang": "language", "probe": "question", "decode": "reading"}


def titled(metric: str) -> str:
    """Name a measure and say what it is."""
    title = metrics.shown(metric).title
    return f"{metric}: {title}" if title != metric else metric


def by(columns: Sequence[str]) -> str:
    """Say by which columns figures are grouped, as the end of a caption; empty for none."""
    names = [_COLUMNS.get(name, clean(name).replace("_", " ")) for name in columns]
    *first, last = names or [""]
    return f", by {', '.join(first)}{' and ' if first else ''}{last}" if names else ""


Cell = tuple[tuple[str, JSON], ...]


@dataclass
class Column:
    """A column of figures of one metric, or of several metrics that never occur in the same cell.

    names: of the metrics. scores: cell -> score.
    """

    names: list[str]
    scores: dict[Cell, Score]

    @property
    def title(self) -> str:
        return " / ".join(self.names)

    @property
    def bounded(self) -> bool:
        return any(s.bounds for s in self.scores.values())

    @property
    def banded(self) -> bool:
        return any(s.readings for s in self.scores.values())

    def same_n(self, other: Column | None) -> bool:
        if other is None or other.scores.keys() != self.scores.keys():
            return False
        return all(other.scores[cell].n == s.n for cell, s in self.scores.items())


def grid(scores: Sequence[Score]) -> tuple[list[Cell], list[Column]]:
    """Return the cells (rows) and the columns of figures, both in the order in which they occur.

    Two metrics with bounds that never occur in the same cell share a column: `recognised` and
    `endorsed` do so in a table by probe, because they belong to different probes.
    """
    cells = list(dict.fromkeys(_cell(s) for s in scores))
    columns: dict[str, Column] = {}
    for score in scores:
        column = columns.setdefault(score.metric, Column([score.metric], {}))
        column.scores[_cell(score)] = score
    merged: list[Column] = []
    for column in columns.values():
        last = merged[-1] if merged else None
        if (
            last
            and column.bounded
            and last.bounded
            and not last.scores.keys() & column.scores.keys()
        ):
            last.names += column.names
            last.scores |= column.scores
        else:
            merged.append(column)
    return cells, merged


def cell_names(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells for name, _ in cell))


def _cell(score: Score) -> Cell:
    return tuple(score.by.items())


_ANOTHER = (
    "another: an assumed second model that varies as much as this one and is independent of it, "
    "as one run cannot show more: fewer are needed if the two are correlated, more if the other "
    "varies more."
)


def notes_below(scores: Sequence[Score], columns: Sequence[Column]) -> list[str]:
    """Write the lines below a table: how to read it, what was left out, and the signatures."""
    measures = [metrics.shown(name) for name in dict.fromkeys(s.metric for s in scores)]
    scales = {measure.scale for measure in measures}
    units = ["Shares in %"] if scales & {"share", "points"} else []
    units += ["gaps in points"] if "points" in scales else []
    notes = [
        f"{', '.join([*units, 'with 95 % intervals'])}; – where there was nothing to count."
        if units
        else "With 95 % intervals; – where there was nothing to count."
    ]
    notes += [
        f"{m.name}: {m.title}."
        for m in measures
        if m.scale == "number" and isinstance(m, metrics.Metric)
    ]
    if any(column.bounded for column in columns):
        failed = any(s.bounds and s.excluded.get("failed") for s in scores)
        what = "unclear reply" + " and no request that failed" * failed
        notes.append(f"Bounds: the share if no {what} had said so, and if every one had.")
    notes += _band_notes(scores)
    notes += dict.fromkeys(measure.note for measure in measures if measure.note)
    if any(score.by.get("b") == "another" for score in scores):
        notes.append(_ANOTHER)
    notes += [f"Left out of {what}: {why}." for what, why in _left_out(scores)]
    notes += [f"Signature of {what}: {text}" for what, text in signatures_of(scores)]
    return notes


# Readings that ask the question again in another way; the others read the same replies.
_OTHERWISE = ("choice", "logprob", "again")
_LEAST, _MOST = "second-least", "second-most"  # what the second reader's licence leaves possible


def _band_notes(scores: Sequence[Score]) -> list[str]:
    """Explain the bands of a table, and say which readings have no figure in how many cells."""
    banded = [score for score in scores if score.readings]
    names = list(dict.fromkeys(name for score in banded for name in score.readings or {}))
    if not names:
        return []
    same = ", ".join(name for name in names if name not in (*_OTHERWISE, _LEAST, _MOST))
    asked = ", ".join(name for name in names if name in _OTHERWISE)
    of = [f"of the same replies ({same})"] if same else []
    of += [f"of the same questions asked in another way ({asked})"] if asked else []
    notes = [
        f"Readers: the lowest and the highest of the readings {' and '.join(of)}. This is how far "
        "the choice of a reading alone changes the figure; it is not a confidence interval."
    ]
    if _LEAST in names:
        notes.append(
            "The second reader's verdicts on what the rules leave open: as its licence says, some "
            "may be wrong, and the band holds the figure if all these are wrong in one direction."
        )
    empty = Counter(n for s in banded for n, value in (s.readings or {}).items() if value is None)
    if empty:
        lacking = ", ".join(f"{name} {count}" for name, count in empty.items())
        notes.append(f"Readings without a clear answer, left out of the band: {lacking}.")
    return notes


# Columns whose values must not be added up. The measure that is compared or corrected, the judge,
# the question to reviewers and the reviewer distinguish different things; for each scorer, reading
# and effect, the same items are counted again.
_APART = ("of", "rate", "judge", "question", "reviewer", "scorer", "decode", "effect")


def alike(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Group the scores of a metric so that n can be added up within each group.

    Returns a label of the group -> its scores. The label lists the values of the columns in
    `_APART`, and is empty if the scores have none. Cells `all` repeat other cells: they are left
    out unless there are no others.
    """
    parts: dict[str, list[Score]] = {}
    for score in [score for score in scores if "all" not in score.by.values()] or scores:
        about = [clean(str(score.by[name])) for name in _APART if name in score.by]
        parts.setdefault(", ".join(about), []).append(score)
    return parts


def _left_out(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Say for each metric what was left out, over all its cells.

    Returns (names of metrics, what they left out). Metrics that left out the same are named
    together; the groups of `alike` are kept separate unless all left out the same.
    """
    told: dict[str, list[str]] = {}
    for metric in dict.fromkeys(s.metric for s in scores):
        parts = alike([score for score in scores if score.metric == metric])
        reasons = {about: why for about, part in parts.items() if (why := _why(part))}
        same = len(reasons) == len(parts) and len(set(reasons.values())) == 1
        for about, why in reasons.items():
            alone = same or len(parts) == 1 or not about
            name = metric if alone else f"{metric} ({about})"
            if name not in (names := told.setdefault(why, [])):
                names.append(name)
    return [(", ".join(n) + (" (each)" if len(n) > 1 else ""), why) for why, n in told.items()]


def _why(scores: Sequence[Score]) -> str:
    """Say what these cells left out, by reason, and of how many planned; empty if nothing."""
    total: Counter[str] = Counter()
    for score in scores:
        total.update(score.excluded)
    if not total:
        return ""
    order = sorted(total.items(), key=metrics.rank)
    why = ", ".join(f"{count} {clean(reason)}" for reason, count in order)
    return f"{why}, of {sum(s.n for s in scores) + total.total()} planned"


def signatures_of(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """List each signature once, as (what it covers, signature).

    Signatures that differ in only one field are written as one, with `{a,b}` in that field. If
    they differ in the metric and also in other fields, such as the model, there is one signature
    for each combination of the other fields.
    """
    covers: dict[str, list[str]] = {}
    for score in scores:
        names = covers.setdefault(clean(score.signature), [])
        if score.metric not in names:
            names.append(score.metric)
    if whole := _as_one(list(covers)):
        return [("all figures", whole)]
    alike: dict[tuple[str, ...], list[str]] = {}
    for text in covers:
        rest = tuple(field for field in text.split("|") if not field.startswith("metric:"))
        alike.setdefault(rest, []).append(text)
    found = [one for texts in alike.values() if (one := _as_one(texts))]
    covered = [[name for text in texts for name in covers[text]] for texts in alike.values()]
    if len(found) < len(alike) or any(names != covered[0] for names in covered):
        return [(", ".join(names), text) for text, names in covers.items()]
    # Name each by the field that distinguishes the most of them (the first such field).
    told = sorted(zip(*alike, strict=False), key=lambda row: -len(set(row)))
    named = next((row for row in told if len(set(row)) > 1), None)
    if named is None:
        return [("all figures", text) for text in found]
    return [
        (f"all figures, {field.replace(':', ' ', 1)}", text)
        for field, text in zip(named, found, strict=True)
    ]


def _as_one(texts: Sequence[str]) -> str | None:
    """Merge signatures that differ in only one field into one; None if they differ in more."""
    split = [text.split("|") for text in texts]
    if len({len(fields) for fields in split}) > 1:
        return None
    if len(split) == 1:
        return texts[0]
    differ = [at for at, values in enumerate(zip(*split, strict=True)) if len(set(values)) > 1]
    keys = {fields[differ[0]].partition(":")[0] for fields in split}
    if len(differ) > 1 or len(keys) > 1:
        return None
    values = [fields[differ[0]].partition(":")[2] for fields in split]
    # `{yes,no}/1-wilson95`: if the text after the name is the same too, it is written once.
    ends = {value.partition("/")[2] for value in values}
    end = f"/{ends.pop()}" if len(ends) == 1 and ends != {""} else ""
    choice = ",".join(value.removesuffix(end) for value in values)
    one = split[0]
    one[differ[0]] = f"{keys.pop()}:{{{choice}}}{end}"
    return "|".join(one)
