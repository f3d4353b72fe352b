"""Make the first screen of a report: the finding, one picture of it, and two replies.

The sentences are those of `render.findings`; what was asked, left out and checked is added here.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from genprobe import metrics
from genprobe.analysis import compare
from genprobe.records import Score
from genprobe.render import findings
from genprobe.render.findings import Finding, Line, joined
from genprobe.report import tables, words
from genprobe.report.replies import MOST
from genprobe.report.sources import Source, first_reading
from genprobe.resources.packs import language_name
from genprobe.text import many, strip_echo
from genprobe.text.display import clean

SHOWN = 3  # sentences above the picture; the others are below it
LINES = 24  # most rows of the picture
LONGEST = 400  # most letters of a reply that is shown


def finding(
    sources: Sequence[Source],
    compared: Sequence[Score],
    splits: Sequence[Score],
    rates: Sequence[Score] = (),
    why: Sequence[str] = (),
) -> Finding:
    """Say what the runs of a page show, in sentences.

    compared, splits: differences between runs, and within each, p-values corrected. rates: those
    that people's review corrects (`corrected.of_review` with `whole`). why: why two runs were not
    compared.
    """
    kinds = {kind: [s for s in sources if s.kind == kind] for kind in (s.kind for s in sources)}
    main = list(dict.fromkeys(name for own in kinds.values() for name in own[0].table.ranked))
    asked = [score for source in sources for score in words.by_question(source)]
    barred = [
        f"{joined(s.name for s in own)} cannot be set in order: {told}"
        for own in kinds.values()
        if len(own) > 1
        if (told := compare.cut_short({s.name: s.outcomes for s in own}))
    ]
    made = None if barred else findings.compared(compared, main, asked)
    pairs: dict[Any, set[Any]] = {}
    for s in compared:
        if "of" in s.by:
            pairs.setdefault(s.by["of"], set()).update((s.by["a"], s.by["b"]))
    lines: list[Line] = []
    for source in sources:
        beside = any(source.name in pairs.get(name, ()) for name in source.table.main)
        own = _alone(source, splits, asked, rates)
        if made is None:
            made = own
        elif not beside:
            lines += [own.title, *own.told[:1]]
        else:
            lines += _standing_out(source, splits)
            lines += _corrected(source, sources, rates)
    assert made is not None
    lines += [Line(text) for text in (*barred, *why)]
    every = tuple({line.text: line for line in (*made.told, *lines)}.values())
    notes = {"Asked": _asked(sources), **made.notes, "Left out": _left_out(sources, made.measure)}
    notes["Checked"] = _checked(sources, rates)
    return dataclasses.replace(made, told=every, notes=notes)


def _alone(
    source: Source, splits: Sequence[Score], asked: Sequence[Score], rates: Sequence[Score]
) -> Finding:
    scores = source.score(source.table.ranked, [], first_reading(source))
    mine = rates_of(source, rates)
    told = {findings.measure_of(str(s.by["rate"])) for s in mine}
    every = [*mine, *(s for s in scores if s.metric not in told)]
    own = [s for s in splits if s.by.get("run") == source.name and s.by["of"] not in told]
    kind = [s for s in own if s.by["of"] in source.table.main]
    made = findings.alone(source.name, every, kind, asked, source.table.replies)
    if mine or not (bare := [s for s in rates if _without(s) and s.by["run"] == source.name]):
        return made
    of = joined(dict.fromkeys(str(s.by["rate"]) for s in bare))
    line = (
        f"Not corrected by people's review: {of} of {clean(source.name)}; too few of the replies "
        "reviewed show how often the judge errs (`genprobe score RUN --reviewed TABLE` says "
        "what to review)"
    )
    return dataclasses.replace(made, told=(Line(line), *made.told))


def _without(score: Score) -> bool:
    """Tell whether this is a rate that a review is about and does not correct."""
    return score.metric == "ppi" and score.value is None


def rates_of(source: Source, rates: Sequence[Score]) -> list[Score]:
    """Return the rates of a run as people's review corrects them, those of its headline first."""
    mine = [s for s in rates if s.metric == "ppi" and s.value is not None]
    mine = [s for s in mine if s.by["run"] == source.name]
    names = source.table.ranked
    fit = [s for s in mine if findings.measure_of(str(s.by["rate"])) in names]
    return sorted(fit, key=lambda s: names.index(findings.measure_of(str(s.by["rate"]))))


def _corrected(source: Source, sources: Sequence[Source], rates: Sequence[Score]) -> Iterator[Line]:
    """Say a corrected figure of a run beside others that nobody has reviewed."""
    mine = rates_of(source, rates)
    bare = [s.name for s in sources if s.kind == source.kind and not rates_of(s, rates)]
    if mine and bare:
        line = findings.figure(source.name, mine[:1])
        yield dataclasses.replace(
            line,
            text=f"{line.text}; nobody has reviewed {joined(bare)}, so this figure stands beside "
            "none of theirs",
        )


def _standing_out(source: Source, splits: Sequence[Score]) -> Iterator[Line]:
    """Say where a model that is compared with others differs most from itself."""
    mine = [s for s in splits if s.by.get("run") == source.name]
    own = [s for s in mine if s.by["of"] == source.table.ranked[0] and s.by["between"] != "probe"]
    sure = [d for d in findings.differences(own) if d.reach]
    if sure:
        most = max(sure, key=lambda d: abs(d.difference.value or 0.0))
        yield findings.out(source.name, most)


def _asked(sources: Sequence[Source]) -> str:
    """Say what was asked of whom, in one sentence."""
    told: dict[str, list[str]] = {}
    for source in sources:
        told.setdefault(words.asked(source), []).append(source.name)
    return "; ".join(f"{joined(names)}, about {text}" for text, names in told.items()) + "."


def headline(source: Source, measure: str) -> list[str]:
    """Return the measure of the title, if it is one of a run's main ones, else the run's first."""
    return [measure] if measure in source.table.main else source.table.ranked[:1]


def _left_out(sources: Sequence[Source], measure: str) -> str:
    """Say what the headline figure of each run leaves out, and where nothing could be counted."""
    told: dict[tuple[str, str], list[str]] = {}
    silent: dict[str, list[str]] = {}
    for source in sources:
        names, reading = headline(source, measure), first_reading(source)
        cells = source.score(names, [], reading)
        left, n = left_of(cells)
        if out := left.total():
            why = ", ".join(f"{size:,} {clean(reason)}" for reason, size in left.most_common(3))
            if len(cells) > 1:
                worst = max(cells, key=_share_left)
                why += f"; most{findings.cell_of(worst)}: {100 * _share_left(worst):.0f} of 100"
            why += f"; for {names[0]}" * (names != source.table.ranked[:1])
            unit = findings.counted(names[0]).replace("clear answers", "replies")
            told.setdefault((f"{out:,} of {out + n:,} {unit}", why), []).append(source.name)
        each = source.score(names, ["lang"], reading) if n else []
        some = {s.by["lang"] for s in each if s.value is not None}
        none = dict.fromkeys(s.by["lang"] for s in each if s.by["lang"] not in some)
        for lang in none:
            silent.setdefault(source.name, []).append(findings.where("lang", lang))
    parts = [f"{what} of {joined(dict.fromkeys(of))} ({why})" for (what, why), of in told.items()]
    parts += [f"everything {joined(where)} of {clean(name)}" for name, where in silent.items()]
    return f"{'; '.join(parts) or 'nothing'}."


def left_of(cells: Sequence[Score]) -> tuple[Counter[str], int]:
    """Add up what the cells of a figure leave out, by reason, and what they count."""
    return sum((Counter(one.excluded) for one in cells), Counter()), sum(one.n for one in cells)


def _share_left(score: Score) -> float:
    left = sum(score.excluded.values())
    return left / max(1, left + score.n)


def read_by_people(sources: Sequence[Source]) -> dict[str, int]:
    """Count the replies of each run that people have read."""
    read: dict[str, int] = {}
    for source in sources:
        judges = source.run.judges().keys() - source.judges.keys()
        found = {one.request for judge in judges for one in source.run.judgments(judge)}
        read[source.name] = max(read.get(source.name, 0), len(found))
    return read


def _checked(sources: Sequence[Source], rates: Sequence[Score]) -> str:
    """Say whose replies people have read, and which languages no native reader has checked."""
    read = read_by_people(sources)
    corrected = {str(s.by["run"]) for s in rates if s.metric == "ppi" and s.value is not None}
    some = [
        f"{many(n, 'reply') if n else 'a sample'} of {clean(name)}"
        for name, n in read.items()
        if n or name in corrected
    ]
    none = [name for name, n in read.items() if not n and name not in corrected]
    text = f"people have read {joined(some) if some else 'none of these replies'}"
    codes = {code for found in words.awaiting(sources).values() for code in found}
    native = joined(sorted(map(language_name, codes)))
    if some and none:
        text += f", none of {joined(none)}"
    if some and not corrected:
        text += "; these figures are not corrected by it"
    return f"{text}{f'; no native reader has checked {native}' if native else ''}."


# --- the picture


@dataclass(frozen=True)
class Mark:
    """A figure in the picture: whose, and where."""

    run: str
    series: int
    figure: tables.Figure


@dataclass(frozen=True)
class Picture:
    """One measure of each model in each language, or whatever the runs have several of.

    measure, unit: of the figures. about: what they are shares of. rows: label and marks. axis: its
    scale. coin: where a model that tosses a coin would be, in % of the axis.
    """

    measure: str
    unit: str
    title: str
    about: str
    axis: tables.Axis
    rows: list[tuple[tables.Label, list[Mark]]]
    coin: float | None
    more: int  # rows that are not drawn


_NOTES = {
    "clear": "Clear answers: replies that say yes or no, and not both.",
    "templates": "Templates: beginnings of stories, each told several times.",
    "pairs": "Pairs: a stereotype and the same sentence about another group.",
}


def picture(
    sources: Sequence[Source],
    about: Finding,
    series: dict[str, int],
    rates: Sequence[Score] = (),
) -> Picture | None:
    """Draw the measure of the title; None if it has no figures.

    rates: those that people's review corrects, by language and question; they are drawn if the
    title is about them.
    """
    has = [s for s in sources if about.measure in s.table.main] or list(sources)
    kind = [s for s in has if s.kind == has[0].kind]
    name = headline(kind[0], about.measure)[0]
    corrected = "corrected by people's review" in about.title.text
    scores = [
        s
        for s in rates
        if s.metric == "ppi" and findings.measure_of(str(s.by["rate"])) == name and corrected
    ]
    title = metrics.shown(name).title
    if says := metrics.find(name).says:
        unit = "replies" if scores else findings.counted(name)
        who = "each model" if len(kind) > 1 else kind[0].name
        title = f"How often {findings.does(who, says)}, of 100 {unit}"
    if scores:
        title += ", corrected by people's review"
    for source in () if scores else kind:
        reading = first_reading(source)
        whole = source.score([name], [], reading)
        apart = [c for s in whole for c in s.by if c not in ("run", "decode")]
        column = next(iter(apart), None) or _several(source)
        scores += whole
        scores += source.score([name], [column], reading) if column and not apart else []
    scale = tables.axis(name, scores)
    if scale is None:
        return None
    rows: dict[str, tuple[tables.Label, list[Mark]]] = {}
    for score in scores:
        label = _label(score)
        run = str(score.by["run"])
        figure = tables.figure(dataclasses.replace(score, metric=name, bounds=None), scale)
        mark = Mark(clean(run), series.get(run, 0), figure)
        rows.setdefault(label.text, (label, []))[1].append(mark)
    chance = getattr(metrics.shown(name), "chance", None)
    drawn = list(rows.values())
    return Picture(
        name,
        tables.unit(name),
        title[:1].upper() + title[1:],
        _NOTES.get(metrics.find(name).unit, ""),
        scale,
        drawn[:LINES],
        scale.at(chance) if chance is not None else None,
        max(0, len(drawn) - LINES),
    )


def _several(source: Source) -> str | None:
    """Choose the column whose values make the rows of the picture."""
    for column in ("lang", "domain", "probe", "bias_type"):
        if column in source.outcomes and 1 < source.outcomes[column].nunique() <= LINES:
            return column
    return None


def _label(score: Score) -> tables.Label:
    cell = {k: v for k, v in score.by.items() if k not in ("run", "decode", "rate")}
    if not cell:
        return tables.Label(tables.ALL)
    labels = [tables.label(k, v, {}) for k, v in cell.items()]
    if len(labels) == 1:
        return labels[0]
    return tables.Label(", ".join(one.text for one in labels))


# --- two replies


@dataclass(frozen=True)
class Quote:
    """A reply, and what it was read as: whether it is a hit of a measure, and that in words."""

    run: str
    lang: str
    language: str
    asked: str
    statement: str
    reply: str
    read: str
    measure: str
    hit: bool


def quotes(sources: Sequence[Source], about: Finding) -> list[Quote]:
    """Choose one reply each way: of a hit of the measure, and of none; empty without replies.

    Of the replies of a model that were read so, in English if it was asked in English, the one of
    middle length is chosen. The first is of the model with the highest figure.
    """
    has = [s for s in sources if s.task.rows.rows is None]  # a row is a reply
    has = [s for s in has if about.measure in s.table.main] or has
    has.sort(key=lambda s: about.models.index(s.name) if s.name in about.models else len(has))
    if not has:
        return []
    found = []
    for source, hit in ((has[0], 1.0), (has[-1], 0.0)):
        names = dict.fromkeys([about.measure, *source.table.ranked])
        for name in names:
            one = _quote(source, name, hit)
            if one:
                found.append(one)
                break
    return found


def _quote(source: Source, name: str, hit: float) -> Quote | None:
    chosen = metrics.catalogue().get(name)
    if chosen is None or "request" in chosen.never_by or not chosen.fits(source.outcomes):
        return None
    every = math.ceil(len(source.outcomes) / MOST)
    rows = source.with_texts(every=every)
    units = chosen.units(rows, ["request"])
    counted = (units.left_out == "").to_numpy(bool)
    if units.stats.shape[1] != 2:
        return None
    requests = set(units.cells["request"][counted & (units.stats[:, 0] == hit)])
    mine = rows[rows["request"].isin(requests) & rows["response"].notna()]
    if "decode" in mine:
        mine = mine[mine["decode"].isin(["free", "recorded"])]
    language = "en" if (mine["lang"] == "en").any() else next(iter(sorted(mine["lang"])), "")
    mine = mine[mine["lang"] == language]
    if not len(mine):
        return None
    texts: list[tuple[int, str, str, Any]] = []
    for row in mine.itertuples():
        prompt = row.prompt if isinstance(row.prompt, str) else ""
        reply = row.response[strip_echo(prompt, row.response) :].strip()
        texts.append((len(reply), str(row.request), reply, row))
    texts.sort(key=lambda one: one[:2])
    _, _, reply, row = texts[len(texts) // 2]
    if chosen.says:
        read = findings.does("it", chosen.says) if hit else f"it does not {chosen.says}"
    else:
        read = f"{chosen.title}: {'yes' if hit else 'no'}"
    shown = "\n".join(map(clean, reply.splitlines()))
    return Quote(
        source.name,
        str(row.lang),
        findings.where("lang", row.lang).removeprefix("in "),
        clean(str(getattr(row, "probe", ""))),
        clean(str(row.text)),
        shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…",
        read,
        name,
        bool(hit),
    )
