"""Say the finding in the reader's language.

The sentences are patterns of prompts/page/, filled with the same figures as the English ones of
`render.findings`, so that no grammar of a language stands in code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.render import findings
from genprobe.render.findings import Difference, Finding, Line, measure_of
from genprobe.render.grid import number
from genprobe.report import words as english
from genprobe.report.first import left_of, read_by_people
from genprobe.report.sources import Source, first_reading
from genprobe.resources import packs
from genprobe.resources.page import Words
from genprobe.text.display import clean, label

_REACH = {2: "finding.higher", 1: "finding.wordings", 0: "finding.apart"}
MOST = 4  # sentences about differences


def finding(
    words: Words,
    sources: Sequence[Source],
    compared: Sequence[Score],
    rates: Sequence[Score],
    about: Finding,
) -> Finding:
    """Say the main findings of a page in a language.

    The other arguments are those of `first.finding`, and what it returned.
    """
    barred = any("cannot be set in order" in line.text for line in (about.title, *about.told))
    main = {name for source in sources for name in source.table.main} | {about.measure}
    every = [d for d in findings.differences(compared) if "between" not in d.difference.by]
    found = [
        d
        for d in ([] if barred else findings.one_basis(every))
        if _told(words, d.of) and measure_of(d.of) in main
        if d.about.get("decode") in (None, *(first_reading(source) for source in sources))
    ]
    found.sort(key=lambda d: (measure_of(d.of) != about.measure, -d.reach))
    lines = [_between(words, d) for d in found[:MOST]]
    named = {(name, measure_of(d.of)) for d in found for name in d.names}
    for source in sources:
        if (source.name, source.table.ranked[0]) not in named:
            lines += _alone(words, source, rates)
    if not lines:
        lines = [words("page.report")]
    tests = max((d.tests for d in found), default=1)
    how = words("finding.sure", n=tests) if found else words("finding.sure_one")
    notes = {"asked": _asked(words, sources), "sure": how, "left_out": _left_out(words, sources)}
    notes["checked"] = _checked(words, sources)
    return Finding(
        Line(lines[0]),
        tuple(map(Line, dict.fromkeys(lines[1:]))),
        {words(f"notes.{key}"): text for key, text in notes.items() if text},
    )


def measure(words: Words, of: str) -> str:
    """Name a measure in the reader's language; empty where the data have no words for it."""
    return words.texts.get(f"measures.{measure_of(of)}", "")


def _told(words: Words, of: str) -> bool:
    return bool(measure(words, of)) and metrics.shown(measure_of(of)).scale == "share"


def _between(words: Words, found: Difference) -> str:
    name = measure(words, found.of)
    name += "".join(f" ({label(value)})" for k, value in found.about.items() if k != "decode")
    silent = [n for n, s in zip(found.names, (found.a, found.b), strict=True) if s.value is None]
    if silent:
        return words("finding.nothing", measure=name, who=", ".join(map(clean, silent)))
    (high, low), (who, whom) = found.order, found.models
    x, y = (number(score.value or 0.0, found.of) for score in (high, low))
    told = {"measure": name, "who": clean(who), "x": x, "whom": clean(whom), "y": y}
    return words(_REACH[found.reach], **told) + _corrected(words, found.corrected)


def _corrected(words: Words, there: bool) -> str:
    return f". {words('finding.corrected')}" if there else ""


def _alone(words: Words, source: Source, rates: Sequence[Score]) -> Iterator[str]:
    name = source.table.ranked[0]
    if not _told(words, name):
        return
    mine = [
        score
        for score in rates
        if score.metric == "ppi"
        and score.value is not None
        and score.by["run"] == source.name
        and measure_of(str(score.by["rate"])) == name
    ]
    for score in mine or source.score([name], [], first_reading(source)):
        about = {k: v for k, v in score.by.items() if k not in ("run", "rate", "decode")}
        of = measure(words, name) + "".join(f" ({label(value)})" for value in about.values())
        if score.value is None:
            yield words("finding.nothing", measure=of, who=source.name)
            continue
        x, low, high = (number(v or 0.0, name) for v in (score.value, score.low, score.high))
        line = words("finding.one", measure=of, who=source.name, x=x, low=low, high=high)
        yield line + _corrected(words, bool(mine))


def native(code: str) -> str:
    """Name a language in itself, or in English if genprobe does not know it."""
    try:
        return packs.load_language(code).native
    except InputError:
        return packs.language_name(code)


def _asked(words: Words, sources: Sequence[Source]) -> str:
    told: dict[tuple[str, int], list[str]] = {}
    for source in sources:
        languages = ", ".join(map(native, source.languages))
        told.setdefault((languages, source.status["answered"]), []).append(source.name)
    return " ".join(
        words("finding.asked", models=", ".join(names), languages=languages, n=f"{n:,}")
        for (languages, n), names in told.items()
    )


def _left_out(words: Words, sources: Sequence[Source]) -> str:
    lines = []
    for source in sources:
        left, n = left_of(source.score(source.table.ranked[:1], [], first_reading(source)))
        if out := left.total():
            given = {"models": source.name, "n": f"{out:,}", "planned": f"{out + n:,}"}
            lines.append(words("finding.left_out", **given))
    return " ".join(lines)


def _checked(words: Words, sources: Sequence[Source]) -> str:
    read = read_by_people(sources)
    lines = [words("finding.read", models=name, n=f"{n:,}") for name, n in read.items() if n]
    if none := [name for name, n in read.items() if not n]:
        lines.append(words("finding.unread", models=", ".join(none)))
    codes = {code for found in english.awaiting(sources).values() for code in found}
    if codes:
        lines.append(words("finding.native", languages=", ".join(map(native, sorted(codes)))))
    return " ".join(lines)
