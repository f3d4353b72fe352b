"""Say in sentences what scores show: the rules that the page, the terminal and every format share.

`compared` tells of differences between models, `alone` of the figures of one. A difference is
called sure only if its p-value, corrected for all that are compared with it (Holm), is below 5 %,
its interval leaves out 0, and no reading of the unclear replies could turn it round. Main measures
come first, then the largest difference. The thresholds below are rules of genprobe.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genprobe import metrics
from genprobe.metrics import wordings
from genprobe.records import JSON, Score, canonical
from genprobe.render.grid import number
from genprobe.resources.packs import language_name
from genprobe.statistics import ALPHA, hides
from genprobe.text import many
from genprobe.text.display import clean, label

EVEN = 0.05  # a difference that is surely smaller is called none
WORDING = 0.15  # between a question and its reverse: the answers depend on the wording
OPPOSITE = 0.5  # between the two: nearly the opposite
RATIO = 0.05  # how far from a whole number a ratio may be, to be called twice, three times, …
FEW = 30  # units below which a figure is given as it was counted
FEWEST = 0.05  # share from which a ratio is told
MOST = 4  # sentences about one thing

READINGS = {"free": "own words", "choice": "forced choice", "logprob": "P(yes)"}
OTHERS = "the others"  # all other values of a column, in `splits`
_BEFORE = {"probe": "in reply to", "bias_type": "about", "domain": "about", "subdomain": "about"}
_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
_KINDS = {
    "lang": "language",
    "probe": "question",
    "bias_type": "bias type",
    "role": "kind of statement",
}


@dataclass(frozen=True)
class Line:
    """A sentence, and the figures behind it: intervals, p-values, n."""

    text: str
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What scores show.

    title: in one sentence. told: further sentences, the most important first. notes: what to know
    of them, such as how sure they are, by a word. measure: that of the title, if it has one.
    models: whom the title is about, the highest figure first.
    """

    title: Line
    told: tuple[Line, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    measure: str = ""
    models: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Return all sentences as lines for a terminal."""
        notes = [f"{name}: {text}" for name, text in self.notes.items()]
        return [self.title.text, *(line.text for line in self.told), *notes]

    @property
    def json(self) -> dict[str, Any]:
        """Return the sentences as `compare -f json` prints them."""
        return {
            "title": dataclasses.asdict(self.title),
            "told": [dataclasses.asdict(line) for line in self.told],
            "notes": dict(self.notes),
            "measure": self.measure,
            "models": list(self.models),
        }


# --- words


def joined(names: Iterable[str]) -> str:
    """Join names as `a, b and c`; empty for none."""
    shown = [clean(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def counted(metric: str) -> str:
    """Name what n counts, in a word."""
    known = metrics.catalogue().get(metric)
    return (
        {"clear": "clear answers", "told": "replies"}.get(known.unit, known.unit)
        if known
        else ("items")
    )


def measure_of(of: str) -> str:
    """Return the metric that a rate of a review is of; a metric is returned as it is."""
    base = wordings.base(of) or re.sub(r"^answer | of all$", "", of)
    return re.sub(r"^llm_", "", re.sub(r"^stance ", "argues-", base))


def _says(of: str) -> str:
    known = metrics.catalogue().get(measure_of(of))
    return known.says if known else ""


def _title(of: str) -> str:
    return metrics.shown(measure_of(of)).title


def does(model: str, says: str) -> str:
    verb, _, rest = says.partition(" ")
    return f"{clean(model)} {verb}{'es' if verb.endswith(('s', 'sh', 'ch', 'x')) else 's'} {rest}"


def _if(of: str) -> str:
    """Return the condition of a measure, such as `, if the judge errs as on labelled texts`."""
    return (re.search(r", if .*", _title(of)) or [""])[0] if _says(of) else ""


def _unit(of: str) -> str:
    """Name what the shares of a measure are shares of."""
    whole = of.endswith(" of all") or of.startswith(("answer ", "stance "))
    return "replies" if whole else counted(measure_of(of))


def _figures(values: Sequence[float], of: str) -> list[str]:
    """Write values of a measure: shares of 100, with a decimal where they would look the same."""
    if metrics.shown(measure_of(of)).scale != "share":
        return [number(value, of) for value in values]
    texts = [f"{100 * value:.0f}" for value in values]
    same = len(set(texts)) < len({round(value, 3) for value in values})
    ends = any(text in ("0", "100") and 0 < v < 1 for v, text in zip(values, texts, strict=True))
    return [f"{100 * value:.1f}" for value in values] if same or ends else texts


def _per(of: str) -> str:
    scale = metrics.shown(measure_of(of)).scale
    return {"share": " of 100", "points": " points"}.get(scale, "")


def where(column: str, value: JSON) -> str:
    """Say which rows a value of a column stands for, as the end of a clause."""
    if value == OTHERS:
        kind = _KINDS.get(column, column.replace("_", " "))
        return {"lang": "in the other languages", "probe": "in reply to the other questions"}.get(
            column, f"in every other {kind}"
        )
    text = label(value)
    if column == "lang":
        return f"in {language_name(str(value))}"
    if column == "role":
        return f"for {'stereotypes' if value == 'original' else 'their contrasts'}"
    if column == "decode":
        return f"by {READINGS.get(text, text)}"
    if column == "condition":
        return f"in {'disambiguated' if value == 'disambig' else 'ambiguous'} contexts"
    return f"{_BEFORE.get(column, 'by')} {text.replace('+', ', ')}"


def _interval(score: Score, of: str) -> str:
    if score.low is None or score.high is None:
        return ""
    return f"{number(score.low, of)} to {number(score.high, of)}"


# --- differences


@dataclass(frozen=True)
class Difference:
    """A measure of two sides, as `compare` gives it: the figures, b less a, and its p-value.

    p: corrected, if there are several. tests: that it is corrected for. about: the other columns of
    the cell. over: the same over wordings like these, if it was computed.
    """

    of: str
    a: Score
    b: Score
    difference: Score
    p: float | None
    tests: int
    about: Mapping[str, JSON]
    over: Difference | None = None

    @property
    def corrected(self) -> bool:
        """Return whether it is of rates that people's review corrects."""
        return self.difference.metric.startswith("ppi")

    @property
    def names(self) -> tuple[str, str]:
        return str(self.difference.by["a"]), str(self.difference.by["b"])

    @property
    def order(self) -> tuple[Score, Score]:
        """Return the higher and the lower figure."""
        return (self.b, self.a) if (self.difference.value or 0.0) > 0 else (self.a, self.b)

    @property
    def models(self) -> tuple[str, str]:
        """Return the names of the two, the higher figure first."""
        a, b = self.names
        return (b, a) if (self.difference.value or 0.0) > 0 else (a, b)

    @property
    def ends(self) -> tuple[float, ...]:
        """Return the ends of the interval; empty if there is none."""
        low, high = self.difference.low, self.difference.high
        return () if low is None or high is None else (low, high)

    @property
    def shown(self) -> bool:
        """Return whether p-value and interval agree that there is a difference."""
        apart = bool(self.ends) and not self.ends[0] <= 0 <= self.ends[1]
        return apart and self.p is not None and self.p < ALPHA

    @property
    def hidden(self) -> bool:
        """Return whether the difference is shown, and unclear replies may account for it."""
        bounds = self.difference.bounds
        if bounds is None:  # without ends of the scale there are no bounds
            known = metrics.catalogue().get(measure_of(self.of))
            left = bool(self.a.excluded or self.b.excluded)
            endless = known is not None and math.isinf(max(map(abs, known.limits)))
            return self.shown and left and endless
        return self.shown and hides((bounds[0], bounds[1]))

    @property
    def reach(self) -> int:
        """Return 2 if the difference is sure, 1 if only in these wordings, else 0."""
        if not self.shown or self.hidden:
            return 0
        if self.over is None or self.over.p is None:
            return 2
        same = (self.over.difference.value or 0.0) * (self.difference.value or 0.0) > 0
        return 2 if same and self.over.reach else 1

    @property
    def most(self) -> float:
        """Return the largest difference that interval and bounds leave room for; 1 if unknown."""
        return max(map(abs, [*self.ends, *(self.difference.bounds or ())]), default=1.0)

    @property
    def even(self) -> bool:
        return self.most < EVEN and metrics.shown(measure_of(self.of)).scale == "share"

    @property
    def note(self) -> str:
        """Write the figures behind a sentence about the difference."""
        d, (a, b) = self.difference, self.names
        points = metrics.shown(measure_of(self.of)).scale in ("share", "points")
        name = "difference" if points else self.of
        text = f"{self.of}, {clean(b)} less {clean(a)}: {number(d.value or 0.0, name)}"
        text += " points" if points else ""
        text += f" ({_interval(d, name)})" if d.low is not None else ""
        if self.p is not None:
            text += f", p {'' if self.p < 0.001 else '= '}{number(self.p, 'holm-p')}"
            text += f" (Holm, {self.tests} comparisons)" if self.tests > 1 else ""
        return f"{text}, n = {d.n:,}"


def differences(scores: Iterable[Score]) -> list[Difference]:
    """Collect the differences in a list of scores, each with that over wordings like these."""
    cells: dict[tuple[str, tuple[tuple[str, JSON], ...]], dict[str, Score]] = {}
    prefix = ""
    for score in scores:
        if not {"of", "a", "b"} <= score.by.keys():
            continue
        if score.metric != "holm-p":  # it follows the p-value that it corrects
            prefix = (re.match(r"(ppi-over-wordings-|ppi-)?", score.metric) or [""])[0]
        name = score.metric.removeprefix(prefix)
        cells.setdefault((prefix, tuple(score.by.items())), {})[name] = score
    found: dict[tuple[object, ...], Difference] = {}
    for (prefix, _), cell in cells.items():
        if not {"a", "b", "difference"} <= cell.keys():
            continue
        one = cell["difference"]
        tested = [s for name, s in cell.items() if name.endswith("p") and name != "holm-p"]
        best = cell.get("holm-p", tested[0] if tested else None)
        about = {k: v for k, v in one.by.items() if k not in ("of", "a", "b", "run", "between")}
        over = prefix == "ppi-over-wordings-" or bool(wordings.base(str(one.by["of"])))
        of = wordings.base(str(one.by["of"])) or str(one.by["of"])
        key = (over, of, *(item for item in one.by.items() if item[0] != "of"))
        tests = best.n if best is not None and best.metric == "holm-p" else 1
        p = best.value if best is not None else None
        found[key] = Difference(of, cell["a"], cell["b"], one, p, tests, about)
    return [
        dataclasses.replace(one, over=found.get((True, *rest)))
        for (over, *rest), one in found.items()
        if not over
    ]


def _aside(found: Difference, every: Sequence[Difference]) -> str:
    """Name the condition of a measure, and the cell in the columns in which several are given."""
    several = [k for k in found.about if len({str(d.about.get(k)) for d in every}) > 1]
    return _if(found.of) + "".join(f", {where(k, found.about[k])}" for k in several)


def _higher(found: Difference, every: Sequence[Difference]) -> Line:
    """Say which side of a sure difference is higher."""
    high, low = found.order
    x, y = high.value or 0.0, low.value or 0.0
    who, whom = found.models
    says, (one, other) = _says(found.of), _figures((x, y), found.of)
    figures = f"{one} against {other}{_per(found.of)}{_aside(found, every)}"
    figures += "; sure" if found.reach == 2 else "; sure in these wordings"
    if found.corrected:
        figures += ", corrected by people's review"
    if says:
        text = f"{does(who, says)} {_often(x, y)} {clean(whom)} ({figures})"
    else:
        higher = f"The {_title(found.of)} is higher for {clean(who)} than for {clean(whom)}"
        text = f"{higher} ({figures})"
    return Line(text, found.note)


def _often(high: float, low: float) -> str:
    for times, word in _TIMES.items():
        if low >= FEWEST and abs(high / low - times) <= RATIO * times:
            return f"{word} as often as"
    return "more often than"


# --- a question and its reverse


def turned(scores: Iterable[Score]) -> dict[tuple[str, JSON], list[tuple[Score, Score]]]:
    """Find where a question and its reverse show different things: (measure, model) -> pairs.

    scores: by `run`, `lang`, `probe` and `when`, the answer by which the question measures what it
    does; of two questions with the same, none is the other's reverse. Returns for each language in
    which the two are more than `WORDING` and their intervals apart the lower and the higher figure.
    """
    asked: dict[tuple[JSON, ...], list[Score]] = {}
    for s in scores:
        if s.value is not None:
            cell = (s.metric, *(s.by.get(name) for name in ("run", "lang", "decode")))
            asked.setdefault(cell, []).append(s)
    found: dict[tuple[str, JSON], list[tuple[Score, Score]]] = {}
    for (metric, run, *_), of in asked.items():
        pairs = [
            pair
            for pair in itertools.permutations(of, 2)
            if {one.by.get("when") for one in pair} == {"yes", "no"}
            if _gap(pair) > WORDING and (pair[0].high or 0.0) < (pair[1].low or 0.0)
        ]
        found.setdefault((str(metric), run), []).extend(sorted(pairs, key=_gap)[-1:])
    return {key: pairs for key, pairs in found.items() if pairs}


def turned_everywhere(every: Iterable[Score]) -> Pairs:
    """Return what `turned` finds for models that it is true of in every language asked."""
    scores = list(every)
    asked: dict[tuple[str, JSON], set[str]] = {}
    for s in scores:
        if s.value is not None:
            cell = canonical([s.by.get("lang"), s.by.get("decode")])
            asked.setdefault((s.metric, s.by.get("run")), set()).add(cell)
    return {key: found for key, found in turned(scores).items() if len(found) == len(asked[key])}


def _gap(pair: tuple[Score, Score]) -> float:
    return (pair[1].value or 0.0) - (pair[0].value or 0.0)


Pairs = Mapping[tuple[str, JSON], Sequence[tuple[Score, Score]]]


def _reversed(of: str, models: Iterable[str], pairs: Pairs) -> str:
    """Say that models answer otherwise if a question is turned round, as a clause; else empty."""
    # A rate that people corrected is of other units than what the rules read of a question.
    each = {model: pairs.get((of, model), ()) for model in models}
    if not all(each.values()):
        return ""
    least = min(_gap(pair) for found in each.values() for pair in found)
    what = "nearly the opposite" if least >= OPPOSITE else "something else"
    return f"{'each' if len(each) > 1 else 'it'} says {what} when the question is turned round"


# --- several models


def compared(
    scores: Iterable[Score],
    main: Sequence[str] = (),
    asked: Iterable[Score] = (),
    barred: str = "",
) -> Finding | None:
    """Say how models differ; None if nothing was compared.

    scores: of `compare`, p-values corrected. main: the main measures, which come first. asked: main
    measures as `turned` needs them. barred: why nothing may be said of who is higher.
    """
    every = one_basis([d for d in differences(scores) if "between" not in d.difference.by])
    if not every:
        return None
    names = list(dict.fromkeys(name for d in every for name in d.names))
    if barred:
        return Finding(Line(f"{joined(names)} cannot be set in order: {barred}"), models=(*names,))
    first = {name: at for at, name in enumerate(main)}

    def place(d: Difference) -> tuple[bool, bool, int, float]:
        number = metrics.shown(measure_of(d.of)).scale == "number"
        return measure_of(d.of) not in first, number, -d.reach, -abs(d.difference.value or 0.0)

    pairs = turned_everywhere(asked)
    sure = sorted((d for d in every if d.reach), key=place)
    told = [_higher(d, every) for d in sure if measure_of(d.of) in first]
    open_ = sorted((d for d in every if not d.reach and measure_of(d.of) in first), key=place)
    groups: dict[tuple[str, str], list[Difference]] = {}
    for d in sorted(open_, key=lambda d: first[measure_of(d.of)]):
        groups.setdefault((d.of, _aside(d, every)), []).append(d)
    apart = [line for of in groups.values() for line in _open(of, every, pairs)]
    others = [d for d in sure if measure_of(d.of) not in first]
    if not told and others:
        told, others = [_higher(others[0], every)], others[1:]
    lines = [*told[:MOST], *apart, *_listed(others, every)]
    if not lines:
        return Finding(Line(f"{joined(names)} were compared, and nothing counts for both"))
    head = sure[0] if told else next(iter(groups.values()))[0] if groups else every[0]
    tests = max(d.tests for d in every)
    return Finding(
        lines[0],
        tuple(lines[1:]),
        {"How sure": _how_sure(sure, tests)},
        measure_of(head.of),
        head.models if told else tuple(names),
    )


def one_basis(found: Sequence[Difference]) -> list[Difference]:
    """Keep of each measure the corrected rates if people reviewed all models, else the others."""
    pairs: dict[tuple[str, bool], set[tuple[str, str]]] = {}
    for d in found:
        pairs.setdefault((measure_of(d.of), d.corrected), set()).add(d.names)
    return [
        d
        for d in found
        for of in [measure_of(d.of)]
        if d.corrected == (pairs.get((of, True), set()) >= pairs.get((of, False), set()))
    ]


def _how_sure(sure: Sequence[Difference], tests: int) -> str:
    holm = f" after Holm's correction for {tests} comparisons" if tests > 1 else ""
    if not sure:
        return f"no difference has p < {ALPHA:g}{holm} and holds whatever unclear replies mean."
    over = any(d.over is not None and d.reach == 2 for d in sure)
    reach = "statements and wordings" if over else "statements"
    return (
        f"a sure difference would hold for other {reach}: p < {ALPHA:g}{holm}, whatever unclear "
        "replies mean."
    )


def _listed(found: Sequence[Difference], every: Sequence[Difference]) -> Iterator[Line]:
    """Name further sure differences in one sentence."""
    if not found:
        return
    parts = []
    for d in found[:MOST]:
        (high, low), (who, whom) = d.order, d.models
        x, y = _figures((high.value or 0.0, low.value or 0.0), d.of)
        parts.append(f"{d.of} ({clean(who)} {x}, {clean(whom)} {y}{_per(d.of)}{_aside(d, every)})")
    more = [f"{len(found) - MOST} more"] if len(found) > MOST else []
    notes = "; ".join(d.note for d in found[:MOST])
    yield Line(f"Of other measures, also sure: {joined([*parts, *more])}", notes)


def _open(
    found: Sequence[Difference],
    every: Sequence[Difference],
    pairs: Pairs,
) -> Iterator[Line]:
    """Say of one measure which models cannot be told apart by it, and why."""
    of, aside = found[0].of, _aside(found[0], every)
    says, note = _says(of), "; ".join(d.note for d in found)
    silent = dict.fromkeys(
        name
        for d in found
        for name, score in zip(d.names, (d.a, d.b), strict=True)
        if score.value is None
    )
    if silent:
        how = f"How often they {says}" if says else f"The {_title(of)}"
        yield Line(f"{how}{aside} cannot be compared: nothing counts for {joined(silent)}", note)
        found = [d for d in found if not set(d.names) & silent.keys()]
    hidden = [d for d in found if d.hidden]
    for d in hidden:
        who, whom = d.models
        text = f"{does(who, says)} more often than" if says else ""
        text = text or f"the {_title(of)} is higher for {clean(who)} than for"
        yield Line(
            f"Of what is clear, {text} {clean(whom)}{aside}, but the unclear "
            "replies may account for it",
            d.note,
        )
    found = [d for d in found if d not in hidden]
    if not found:
        return
    figures = {name: s for d in found for name, s in zip(d.names, (d.a, d.b), strict=True)}
    shown = joined(_figures([s.value or 0.0 for s in figures.values()], of)) + _per(of)
    shown += ", corrected by people's review" if found[0].corrected else ""
    who = joined(figures)
    reverse = _reversed(of, figures, pairs)
    if all(d.even for d in found):
        most = math.ceil(100 * max(d.most for d in found))
        text = f"{who} {says} equally often" if says else f"The {_title(of)} is the same for {who}"
        but = f"; but {reverse}" if reverse else ""
        yield Line(f"{text}, to within {many(most, 'point')} ({shown}{aside}){but}", note)
        return
    how = f"How often {who} {says}" if says else f"The {_title(of)}, of {who},"
    yield Line(f"{how} cannot be told apart ({shown}{aside}): {reverse or _room(found)}", note)


def _room(found: Sequence[Difference]) -> str:
    """Say why a difference is not sure."""
    ends = [end for d in found for end in d.ends]
    n, of = max(d.difference.n for d in found), found[0].of
    if not ends:
        return "too few statements or wordings count for both"
    if metrics.shown(measure_of(of)).scale == "number":
        return f"{n:,} {_unit(of)} leave the order open"
    most = math.ceil(100 * max(map(abs, ends)))
    if any(d.ends and not d.ends[0] <= 0 <= d.ends[1] for d in found):
        tests = many(max(d.tests for d in found), "comparison")
        return f"among {tests}, chance alone may give that"
    return f"{n:,} {_unit(of)} leave room for a difference of {most} points"


# --- one model


def cell_of(score: Score) -> str:
    """Say which replies of a model a figure is of, such as those by one scorer; empty for all."""
    by = {k: v for k, v in score.by.items() if k not in ("run", "rate")}
    return "".join(f" {where(k, v)}" for k, v in by.items() if (k, v) != ("decode", "free"))


def figure(model: str, scores: Sequence[Score]) -> Line:
    """Say the figures of one measure, in each of its cells, such as those of several scorers."""
    of, says = scores[0].metric, _says(scores[0].metric)
    rate = scores[0].by.get("rate")
    if rate is not None:  # corrected by people's review
        of, says = str(rate), _says(str(rate))
    texts, aside = _figures([s.value or 0.0 for s in scores], of), _if(of)
    parts: list[str] = []
    hits = [(score.value or 0.0) * score.n for score in scores]
    whole = all(abs(hit - round(hit)) < 1e-6 for hit in hits)
    few = _per(of) == " of 100" and whole and min(score.n for score in scores) < FEW
    for score, text, hit in zip(scores, texts, hits, strict=True):
        unit = "" if parts else f" {_unit(of)}"
        per = f"{_per(of)}{unit}" if unit else ""
        if few:  # all cells alike, as counts and shares in one sentence would be confused
            text, per = f"{hit:.0f}", f" of {score.n:,}{unit}"
        elif len(scores) == 1 and 0 < score.n < FEW and per.startswith(" of 100"):
            text, per = f"{text} %", f" of {score.n:,}{unit}"
        parts.append(f"{text}{per}{cell_of(score)}")
    text = f"{does(model, says)} in {joined(parts)}"
    if not says:
        text = f"The {_title(of)}, of {clean(model)}: {joined(parts)}"
    chance = getattr(metrics.shown(measure_of(of)), "chance", None)
    ends = [(s.low, s.high) for s in scores if s.low is not None and s.high is not None]
    if chance and ends and all(low <= chance <= high for low, high in ends):
        text += ", as tossing a coin might"
    if len(scores) == 1 and 0 < scores[0].n < FEW and ends and _per(of) == " of 100":
        low, high = (f"{100 * end:.0f}" for end in ends[0])
        text += f": so few that {low} to {high} of 100 are possible"
    notes = [
        f"{of}: {number(s.value or 0.0, of)} ({_interval(s, of)}), n = {s.n:,}" for s in scores
    ]
    text += aside + (", corrected by people's review" if rate is not None else "")
    return Line(text, "; ".join(notes))


def nothing(model: str, scores: Sequence[Score], replies: str = "replies") -> Line:
    """Say that no figure of a model could be counted, and why."""
    of: dict[str, Counter[str]] = {}
    for score in scores:  # the cells of a measure are of different replies
        of.setdefault(score.metric, Counter()).update(score.excluded)
    left = max(of.values(), key=Counter.total, default=Counter())
    if not left.total():
        return Line(f"Nothing was counted of what {clean(model)} was asked")
    order = sorted(left.items(), key=metrics.rank)
    why = joined(f"{n:,} {reason}" for reason, n in order)
    total = f"{left.total():,} {replies} of {clean(model)}"
    return Line(f"None of {total} can be counted ({why})")


def alone(
    model: str,
    scores: Sequence[Score],
    splits: Iterable[Score] = (),
    asked: Iterable[Score] = (),
    replies: str = "replies",
) -> Finding:
    """Say what one model's figures show, and what stands out in them for sure.

    scores: of its main measures over the whole run, the headline first. splits: differences between
    each value of a column and all others (`analysis.splits`), p-values corrected. asked: as in
    `compared`.
    """
    groups: dict[str, list[Score]] = {}
    for score in scores:
        if score.value is not None:
            groups.setdefault(str(score.by.get("rate", score.metric)), []).append(score)
    if not groups:
        return Finding(nothing(model, scores, replies), models=(model,))
    of, *rest = groups
    head, found = figure(model, groups[of]), differences(splits)
    sure = sorted((d for d in found if d.reach), key=lambda d: -abs(d.difference.value or 0.0))
    own = [d for d in sure if d.of == measure_of(of)]
    if reverse := _reversed(of, [model], turned_everywhere(asked)):
        head = Line(f"{head.text}, but {reverse}", head.note)
        own = [d for d in own if d.difference.by["between"] != "probe"]
    elif own and len(groups[of]) == 1:
        head = Line(f"{head.text}: {_split(own[0])}", f"{head.note}; {own[0].note}")
        own = own[1:]
    told = [out(model, d) for d in own[:MOST]]
    told += [figure(model, groups[name]) for name in rest if _says(name)]
    told += [out(model, d) for d in sure if d.of != measure_of(of)][:MOST]
    sure_of = [f"{_interval(s, of)}{cell_of(s)}" for s in groups[of][:MOST] if s.low is not None]
    notes = [f"95 % interval {joined(sure_of)}{_per(of)}"] if sure_of else []
    if found:
        tests = max(d.tests for d in found)
        columns = dict.fromkeys(str(d.difference.by["between"]) for d in found)
        kinds = [_KINDS.get(column, column.replace("_", " ")) for column in columns]
        what = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
        notes.append(
            f"a {what} is named only if p < {ALPHA:g} after Holm's correction for {tests} "
            f"comparisons{'' if sure else ', and none is'}"
        )
    how = {"How sure": f"{'; '.join(notes)}."} if notes else {}
    return Finding(head, tuple(told), how, measure_of(of), (model,))


def _split(found: Difference) -> str:
    column = str(found.difference.by["between"])
    (high, low), (who, whom) = found.order, found.models
    x, y = _figures((high.value or 0.0, low.value or 0.0), found.of)
    return f"{x} {where(column, who)}, {y} {where(column, whom)}"


def out(model: str, found: Difference) -> Line:
    """Say that a value of a column stands out, such as a language."""
    says, column = _says(found.of), str(found.difference.by["between"])
    (high, low), (who, whom) = found.order, found.models
    x, y = _figures((high.value or 0.0, low.value or 0.0), found.of)
    sides = f"{where(column, who)} ({x}{_per(found.of)})", f"{where(column, whom)} ({y})"
    if says:
        often = _often(high.value or 0.0, low.value or 0.0)
        often, than = often.rsplit(" ", 1)
        return Line(f"{does(model, says)} {often} {sides[0]} {than} {sides[1]}", found.note)
    text = f"The {_title(found.of)}, of {clean(model)}, is higher {sides[0]} than {sides[1]}"
    return Line(text, found.note)
