"""Say the finding in the reader's language.

The sentences are patterns of prompts/page/, filled with the same figures as the English ones of
`render.findings`, so that no grammar of a language stands in code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from genprobe import metrics
from genprobe.records import JSON, Score
from genprobe.render import findings
from genprobe.render.findings import OTHERS, Difference, Finding, Line, measure_of
from genprobe.render.grid import number
from genprobe.report import words as english
from genprobe.report.first import headline, left_of, rates_of, read_by_people
from genprobe.report.sources import Source, first_reading
from genprobe.resources.packs import native
from genprobe.resources.page import Words
from genprobe.text.display import clean, label

if TYPE_CHECKING:
    from genprobe.report.sections import Sections

_REACH = {2: "finding.higher", 1: "finding.wordings", 0: "finding.apart"}
MOST = 4  # sentences about differences


def finding(
    words: Words,
    sources: Sequence[Source],
    made: Sections,
    rates: Sequence[Score],
    about: Finding,
) -> Finding:
    """Say the main findings of a page in a language.

    made: has the differences between the runs, and within each. rates, about: an argument of
    `first.finding`, and what it returned.
    """
    told = [line.text for line in (about.title, *about.told)]
    barred = [line for line in told if "cannot be set in order" in line]
    main = {name for source in sources for name in source.table.main} | {about.measure}
    every = [d for d in findings.differences(made.differences) if "between" not in d.difference.by]
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
        lines += _standing_out(words, source, made.splits)
        lines += _turned(words, source)
    why = [f"{line}." for of in made.why.values() for line in of]
    lines += [Line((words.phrase(text) or text).rstrip(".")) for text in (*barred, *why)]
    lines = list({line.text: line for line in lines}.values()) or [Line(words("page.report"))]
    tests = max((d.tests for d in every), default=1)
    how = words(f"finding.{'sure' if any(d.reach for d in every) else 'unsure'}", n=tests)
    how = how if every else words("finding.sure_one")
    notes = {
        "asked": _asked(words, sources),
        "sure": how,
        "left_out": _left_out(words, sources, about),
    }
    notes["checked"] = _checked(words, sources)
    return Finding(
        lines[0],
        tuple(lines[1:]),
        {words(f"notes.{key}"): text for key, text in notes.items() if text},
    )


def measure(words: Words, of: str) -> str:
    """Name a measure in the reader's language; empty where the data have no words for it."""
    return words.texts.get(f"measures.{measure_of(of)}", "")


def _told(words: Words, of: str) -> bool:
    return bool(measure(words, of)) and metrics.shown(measure_of(of)).scale == "share"


def _between(words: Words, found: Difference) -> Line:
    name = measure(words, found.of)
    name += "".join(f" ({_said(words, v)})" for k, v in found.about.items() if k != "decode")
    silent = [n for n, s in zip(found.names, (found.a, found.b), strict=True) if s.value is None]
    if silent:
        return Line(words("finding.nothing", measure=name, who=", ".join(map(clean, silent))))
    return _higher(words, found, name, found.models)


def _higher(words: Words, found: Difference, name: str, models: Sequence[str]) -> Line:
    """Say the two figures of a difference, the higher one first. models: whose they are."""
    (high, low), (who, whom) = found.order, models
    x, y = (number(score.value or 0.0, found.of) for score in (high, low))
    told = {"measure": name, "who": clean(who), "x": x, "whom": clean(whom), "y": y}
    text = words(_REACH[found.reach], **told) + _corrected(words, found.corrected)
    return Line(text, _figures(found))


def _figures(found: Difference) -> str:
    """Write the figures behind a difference as a formula, which needs no words."""
    d, (a, b) = found.difference, map(clean, found.names)
    name = "difference" if metrics.shown(measure_of(found.of)).scale == "share" else found.of
    text = f"{found.of}: {b} − {a} = {number(d.value or 0.0, name)}{_range(d, name)}"
    if found.p is not None:
        text += f", p {'' if found.p < 0.001 else '= '}{number(found.p, 'holm-p')}"
        text += f" (Holm, {found.tests})" if found.tests > 1 else ""
    return f"{text}, n = {d.n:,}"


def _range(score: Score, of: str) -> str:
    if score.low is None or score.high is None:
        return ""
    return f" ({number(score.low, of)} … {number(score.high, of)})"


def _standing_out(words: Words, source: Source, splits: Sequence[Score]) -> Iterator[Line]:
    """Say which language, question or kind of statement differs most from the others."""
    mine = [s for s in splits if s.by.get("run") == source.name]
    sure = [d for d in findings.differences(mine) if d.reach and _told(words, d.of)]
    sure.sort(key=lambda d: -abs(d.difference.value or 0.0))
    for d in sure[:MOST]:
        column = str(d.difference.by["between"])
        places = [f"{source.name} ({_place(words, column, value)})" for value in d.models]
        yield _higher(words, d, measure(words, d.of), places)


def _place(words: Words, column: str, value: str) -> str:
    if column == "lang" and value != OTHERS:
        return native(value)
    text = {"original": "stereotype"}.get(value, label(value)) if column == "role" else label(value)
    return _said(words, text)


def _said(words: Words, value: JSON) -> str:
    text = label(value)
    return words.phrase(text) or words.isolated(text)


def _turned(words: Words, source: Source) -> Iterator[Line]:
    """Say if a model answers otherwise in every language once a question is turned round."""
    for (of, _), pairs in findings.turned_everywhere(english.by_question(source)).items():
        least = min((high.value or 0.0) - (low.value or 0.0) for low, high in pairs)
        how = "opposite" if least >= findings.OPPOSITE else "turned"
        shown = ((clean(str(s.by["probe"])), number(s.value or 0.0, of)) for s in pairs[0])
        (question, x), (reverse, y) = shown
        given = {"who": source.name, "question": question, "x": x, "reverse": reverse, "y": y}
        yield Line(words(f"finding.{how}", **given))


def _corrected(words: Words, there: bool) -> str:
    return f". {words('finding.corrected')}" if there else ""


def _alone(words: Words, source: Source, rates: Sequence[Score]) -> Iterator[Line]:
    name = source.table.ranked[0]
    if not _told(words, name):
        return
    mine = [s for s in rates_of(source, rates) if measure_of(str(s.by["rate"])) == name]
    for score in mine or source.score([name], [], first_reading(source)):
        about = {k: v for k, v in score.by.items() if k not in ("run", "rate", "decode")}
        of = measure(words, name) + "".join(f" ({_said(words, v)})" for v in about.values())
        if score.value is None:
            yield Line(words("finding.nothing", measure=of, who=source.name))
            continue
        x, low, high = (number(v or 0.0, name) for v in (score.value, score.low, score.high))
        line = words("finding.one", measure=of, who=source.name, x=x, low=low, high=high)
        note = f"{name}: {x}{_range(score, name)}, n = {score.n:,}"
        yield Line(line + _corrected(words, bool(mine)), note)


def _languages(codes: Iterable[str]) -> str:
    """Name languages in themselves, each apart, as they run in different directions."""
    return ", ".join(f"\u2068{native(code)}\u2069" for code in codes)


def _asked(words: Words, sources: Sequence[Source]) -> str:
    told: dict[tuple[str, int], list[str]] = {}
    for source in sources:
        languages = _languages(source.languages)
        told.setdefault((languages, source.status["answered"]), []).append(source.name)
    return " ".join(
        words("finding.asked", models=", ".join(names), languages=languages, n=f"{n:,}")
        for (languages, n), names in told.items()
    )


def _left_out(words: Words, sources: Sequence[Source], about: Finding) -> str:
    lines = []
    for source in sources:
        names = headline(source, about.measure)
        left, n = left_of(source.score(names, [], first_reading(source)))
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
        lines.append(words("finding.native", languages=_languages(sorted(codes))))
    return " ".join(lines)
