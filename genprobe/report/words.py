"""Write the sentences of a report: what was measured, the findings, cautions and definitions.

The definitions are read from docs/measures.md and docs/paradigms.md, so that there is only one
text of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from genprobe import metrics
from genprobe.analysis import second
from genprobe.errors import GenprobeError, InputError
from genprobe.metrics import corrected, thoughts
from genprobe.outcomes import sides, table
from genprobe.records import Score
from genprobe.render.grid import model_names, number
from genprobe.report import tables
from genprobe.report.sources import Source, language, without_folders
from genprobe.report.tables import READINGS, reasons
from genprobe.resources import measured, packs, registry
from genprobe.review.corrected_rates import OF_ALL
from genprobe.runs import seal
from genprobe.runs.spec import both_signatures
from genprobe.text import many
from genprobe.text.display import clean, short_name

# Rules of thumb: above these limits, the page warns that the run's figures need care.
UNCLEAR = 0.3  # share of replies without a clear answer
WORDING = 0.15  # difference between the endorsement found by a question and by its reverse
CONFLICT = 0.1  # share of clear answers that the rest of the reply contradicts
OTHER_LANGUAGE = 0.1  # share of replies, among those whose language could be identified
OUTSIDE = 0.5  # probability of replies that do not begin with an answer word
UNSTEADY = 0.5  # share of templates with both negative and other stories
UNUSABLE = 0.3  # share of stories that cannot be scored
MISSING = 0.01  # share of planned replies

# Reasons for leaving something out (`metrics.REASONS`, and those of stories and pairs) -> meaning.
REASONS = {
    "failed": "the engine gave no reply",
    "missing": "not asked yet: the run was stopped",
    "unjudged": "not read yet",
    "refusal": "the reply refuses to answer",
    "filter": "a content filter of the server blocked the prompt or the reply",
    "hedge": "the reply takes no side",
    "both": "the reply says yes and no",
    "several": "the reply names several options",
    "neither": "the reply rejects all options",
    "mismatch": "the letter in the reply stands for one option, the text is that of another",
    "unsure": "the reply was read in a way that is not reliable enough to be counted",
    "echo": "the reply only repeats the question or the options",
    "offtopic": "the reply answers something else",
    "undecided": "the reply may be an answer that was not understood",
    "unfinished": "cut off inside the thought, before any answer",
    "empty": "the reply is empty",
    "unclear": "neither yes nor no",
    "mixed": "the reply is in several languages",
    "und": "too short to tell the language",
    "no reader": "no reader was shown to tell its side",
    "few-stories": "fewer than three stories of the template could be scored",
    "language": "the story is in another language",
    "unfilled": "the story did not fill the open slot",
    "duplicate": "nearly the same as another story of the template",
    "unscored": "there is nothing to read a sentiment from",
    "no clear answer": "no question had a clear answer (for a pair: on both sides)",
    "no contrast": "no contrast of the statement was asked about",
    "no original": "its original statement was not asked about",
    "not counted": "it does not count for this model, such as an unclear reply",
    "on neither side": "it counts for none of the two",
    "only said": "it was asked about, and not scored",
    "only preferred": "it was scored, and not asked about",
    "tie said": "it was endorsed as often as rejected, such as by yes to a question and to its "
    "reverse",
    "tie preferred": "both sentences are equally likely",
    "not scored": "none of its contrasts could be scored",
    "infinite": "the model gives one of the sentences probability 0",
    "same tokens": "both sentences have the same tokens",
    "one begins the other": "one of the sentences is the beginning of the other",
    "tie": "the likeliest options are equally likely",
    "not asked": "not asked in one of the readings",
    "no mass": "both probabilities are 0",
}


# --- what was measured


@dataclass(frozen=True)
class Fact:
    """A run in words. settings: name and value of each setting and other fact of the run."""

    name: str
    title: str
    sentence: str
    settings: list[tuple[str, str]]


def fact(source: Source) -> Fact:
    """Describe a run in a few sentences; the first one continues "the model was"."""
    spec, status = source.run.spec, source.status
    of = "built-in " if spec.data in ("builtin", "templates") else ""
    text = source.task.asked.format(
        statements=many(source.statements, of + source.task.thing)
        + ("" if of else f" of {short_name(spec.data)}"),
        languages=_languages(source.languages),
        probes=_join(spec.probes),
        wordings=f"{_join(spec.probes)} {source.task.probe}{'s' * (len(spec.probes) > 1)}",
    )
    if spec.samples > 1:
        text += f", {spec.samples} times each"
    if "temperature" in spec.not_taken:
        text += ", drawn as the server likes, which takes no temperature"
    elif spec.temperature is not None:
        warm = f"at temperature {spec.temperature:g}"
        text += f", {warm if spec.temperature else 'always taking the likeliest token'}"
    text += "."
    if spec.limit:
        text += f" Only the {_first(spec.limit)} of each language."
    ways = _join([READINGS.get(d, d) for d in source.read_in] or [""])
    if len(source.read_in) > 1:
        text += f" Answers were read in {len(source.read_in)} ways: {ways}."
    elif source.read_in not in ([], ["free"]):
        text += f" Answers were read as {ways}."
    unit = source.task.unit
    total, units = many(status.total(), unit).split(" ", 1)
    came = "All" if status["answered"] == status.total() else f"{status['answered']:,} of"
    text += f" {came} {total} planned {units} were received"
    lost = {clean(k): n for k, n in source.failures.items()}
    lost |= {"not asked yet": status["missing"]} if status["missing"] else {}
    text += f" (missing: {reasons(lost)})" if lost else ""
    text += f"{source.when}."
    return Fact(source.name, source.title, text, _settings(source))


def told(facts: Sequence[Fact]) -> list[tuple[list[str], str]]:
    """Group the runs that have the same description: (names of the runs, description)."""
    found: dict[str, list[str]] = {}
    for one in facts:
        found.setdefault(one.sentence, []).append(one.name)
    return [(names, text) for text, names in found.items()]


def _settings(source: Source) -> list[tuple[str, str]]:
    spec, used = source.run.spec, source.used
    judges = sorted(source.judges.items())
    if source.salt:
        judges = [(name, without_folders(signature)) for name, signature in judges]
    rows: list[tuple[str, object]] = [
        ("Model", short_name(spec.model)),
        ("Revision", spec.revision),
        ("Checkpoint", spec.checkpoint),
        ("Engine", f"{spec.engine} {spec.engine_version}".strip()),
        ("Server", spec.server),
        ("Number format", spec.dtype),
        ("Data", short_name(spec.data)),
        ("Hash of the statements", spec.statements),
        ("Wordings", spec.pack),
        ("Readings", ", ".join(spec.decode)),
        ("Temperature", None if "temperature" in spec.not_taken else spec.temperature),
        ("Not taken by the server", ", ".join(spec.not_taken)),
        ("Top p", spec.top_p),
        ("Longest reply", many(spec.max_tokens, "token") if spec.max_tokens else None),
        ("Base seed", spec.seed),
        ("Samples per question", spec.samples),
        ("Limit of items", spec.limit),
        ("Read by", "; ".join(f"{k} {v}" for k, v in judges)),
        ("Packages", ", ".join(f"{k} {v}" for k, v in sorted(spec.packages.items()))),
        ("genprobe", spec.version),
        ("Seal", seal.told(source.run.seals())),
        ("Thinking requested", spec.thinking),
        ("Thinking set by", spec.thinking_put),
        ("Thinking found", spec.thinking_seen),
        ("System prompt", spec.system),
        ("Time of replies", f"{used.first} to {used.last}" if used.first else "not recorded"),
        (
            "Models named in replies",  # in the server's words
            f"{len(used.names)}, not shown"
            if source.salt and used.names
            else "; ".join(f"{' '.join(k).strip()}: {n}" for k, n in used.names.items()),
        ),
        ("Tokens of prompts", used.tokens_in),
        ("Tokens of replies", used.tokens_out),
        ("Tokens of thoughts", used.reasoning_tokens),
    ]
    return [(name, clean(str(v))) for name, v in rows if v is not None and str(v)]


def questions(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """List the yes/no questions in English: name of the probe, what it asks."""
    found: dict[str, str] = {}
    for source in sources:
        pack = source.run.pack if source.kind == "answers" else None
        for name, wording in (pack.wordings.get("en", {}) if pack else {}).items():
            if name in source.run.spec.probes:
                # Only the question, without the instruction how to answer that follows it.
                asked = wording.ask("…").partition("?")[0].strip()
                found.setdefault(name, f"{asked}?")
    return list(found.items())


def notes(sources: Sequence[Source]) -> list[tuple[str, str, str]]:
    """List the known faults of the wordings that were used: language, probe, note.

    A note applies if the run used the wordings of the installed pack, or if the wording is a
    published one, which is never changed.
    """
    found = {}
    for source in sources:
        spec, pack = source.run.spec, source.run.pack
        if pack is None:
            continue
        for code in sorted(set(spec.languages) & pack.wordings.keys(), key=language):
            same = spec.pack_hashes.get(code) == pack.hashes[code]
            for probe, wording in pack.wordings[code].items():
                if (
                    probe in spec.probes
                    and wording.note
                    and (same or wording.review == "published")
                ):
                    found[language(code), probe] = wording.note
    return [(*key, note) for key, note in found.items()]


def unchecked(sources: Sequence[Source]) -> str:
    """Name the languages whose word lists or questions no native reader has checked."""
    ours = set(registry.names("languages"))
    read = {c for s in sources if s.kind != "pairs" for c in s.languages if c in ours}
    reviews = [
        ("the word lists that read the replies", c, packs.load_language(c).review) for c in read
    ]
    for run in (source.run for source in sources):
        known = run.pack.reviews if run.pack else {}
        asked = "the wordings of the questions"
        reviews += [(asked, c, known[c]) for c in run.spec.languages if c in known]
    codes: dict[str, set[str]] = {}
    for what, code, review in reviews:
        if review.startswith("awaiting"):
            codes.setdefault(what, set()).add(code)
    parts = [f"{what} ({_languages(sorted(of, key=language))})" for what, of in codes.items()]
    return f"No native reader has checked {' or '.join(parts)}." if parts else ""


def title(sources: Sequence[Source]) -> str:
    """Write the heading of the page."""
    names = list(model_names(s.run.spec for s in sources).values())
    who = _join(names) if len(names) <= 3 else f"{len(names)} models"
    langs = sorted({code for s in sources for code in s.languages}, key=language)
    where = _languages(langs) if len(langs) <= 2 else many(len(langs), "language")
    says = {source.table.says for source in sources}
    one, several = says.pop() if len(says) == 1 else ("says about", "say about")
    return f"What {who} {one if len(names) == 1 else several} stereotypes, in {where}"


def _languages(codes: Sequence[str]) -> str:
    names = [language(code) for code in codes]
    return _join(names) if len(names) <= 4 else many(len(names), "language")


def _join(names: Sequence[str]) -> str:
    shown = [clean(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _first(limit: int) -> str:
    return "first item" if limit == 1 else f"first {many(limit, 'item')}"


# --- the findings


def share(score: Score) -> str:
    """Write a share as `51.0 % (49.0 to 53.1; n = 2,300)`, with non-breaking spaces."""
    inside = [f"n\u00a0=\u00a0{score.n:,}"]
    if score.low is not None and score.high is not None:
        ends = f"{number(score.low, score.metric)} to {number(score.high, score.metric)}"
        inside.insert(0, ends)
    assert score.value is not None
    return f"{number(score.value, score.metric)}\u00a0% ({'; '.join(inside)})"


_FOUND = {
    "recognised": "Called the statement a stereotype in {} of its clear answers to that question",
    "endorsed": "Endorsed the statement in {} of its clear answers",
    "affirmed": "Affirmed the question in {} of its clear answers",
    "ambiguous": "Gave no clear answer in {} of its replies",
    "negrate": "Told mostly negative stories about {} of the templates",
    "negrate-corrected": "If the classifier errs as on labelled stories, told mostly negative "
    "stories about {} of the templates",
    "negrate-regard": "Told stories that mostly show people with low regard about {} of the "
    "templates",
    "felt-or-shown": "By only one of sentiment and regard, {} of its stories are negative",
    "argues-for": "Argued for the statement in {} of its essays",
    "argues-against": "Argued against it in {}",
    "refusal-corrected": "If the judge errs as on labelled texts, refused {} of its essays",
    "story-refusal-corrected": "If the judge errs as on labelled texts, refused {} of its stories",
}


# Sentences for rates that are corrected by reviewers: rate -> sentence, and the measure of `_FOUND`
# that it replaces. Corrected rates are shares of all replies, so measures that are shares of clear
# answers are not replaced.
_REVIEWED = {
    "recognised of all": (
        "Called the statement a stereotype in {} of its replies to that question",
        "",
    ),
    "endorsed of all": ("Endorsed the statement in {} of its replies", ""),
    "affirmed of all": ("Affirmed the question in {} of its replies", ""),
    "answer ambiguous": ("Gave no clear answer in {} of its replies", "ambiguous"),
    "negrate": ("Told mostly negative stories about {} of the templates", "negrate"),
    "llm_negrate-regard": (
        "Told stories that mostly show people with low regard about {} of the templates",
        "negrate-regard",
    ),
    "stance for": ("Argued for the statement in {} of its essays, refusals included", ""),
    "stance against": ("Argued against it in {} of its essays, refusals included", ""),
}


# Measures that are also given separately for stereotypes and for their contrasts.
_BY_ROLE = ("recognised", "endorsed")
_ROLES = {"original": "stereotypes", "contrast": "contrasts"}


def findings(sources: Sequence[Source], rates: Sequence[Score] = ()) -> dict[str, list[str]]:
    """Say what each run found: one sentence for each main figure, over the whole run.

    rates: rates corrected by reviewers (`corrected.of_review` with `whole`); they come first, with
    the uncorrected rates beside them. Returns name of a run -> sentences.
    """
    return _by_name(sources, lambda source: _findings(source, rates))


def ranked(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Say for each kind of run with several models whether the models can be ranked.

    Returns a heading -> sentences; empty if nothing can be compared. A kind with two runs of the
    same model is omitted.
    """
    lines: list[str] = []
    for kind in dict.fromkeys(source.kind for source in sources):
        own = [source for source in sources if source.kind == kind]
        if len({source.run.spec.who for source in own}) == len(own) > 1:
            lines += _ranked(own)
    return {"Side by side": lines} if lines else {}


def _ranked(sources: Sequence[Source]) -> Iterator[str]:
    from genprobe.analysis import compare

    found = {source.name: source.outcomes for source in sources}
    if why := compare.cut_short(found):
        yield f"The models cannot be ranked: {why}."
        return
    try:
        for other in sources[1:]:
            compare.asked_alike(sources[0].run, other.run)
        name, cells = compare.ranked(found)
    except GenprobeError:
        return  # the section that compares the models says why it cannot
    if not cells:
        yield "The models cannot be ranked: fewer than two statements count for all of them."
    for cell, one, _ in cells:
        where = "".join(f", {key} {value}" for key, value in cell.items())
        if one.groups is None:
            models = " and ".join(one.models) if len(one.models) == 2 else "the models"
            yield (
                f"By {name}{where}, the data do not show which of {models} is higher, for "
                f"{one.over}."
            )
        else:
            yield f"By {name}{where}: {one.told()}."


def cautions(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Say why the figures of a run need care: name of the run -> sentences."""
    return _by_name(sources, _cautions)


def _by_name(
    sources: Sequence[Source], told: Callable[[Source], Iterator[str]]
) -> dict[str, list[str]]:
    """Collect sentences by the name of the run.

    Runs of one model by different commands share a name; a sentence that is true of several is
    said once.
    """
    lines: dict[str, dict[str, None]] = {}
    for source in sources:
        lines.setdefault(source.name, {}).update(dict.fromkeys(told(source)))
    return {name: list(of) for name, of in lines.items() if of}


def _corrected(source: Source, rates: Sequence[Score]) -> dict[str, str]:
    """Write a sentence for each rate that reviewers corrected, with the rate as measured.

    Returns rate -> sentence. Figures by reviewers' answers alone follow, with the key `by-people
    RATE`.
    """
    mine = {
        (s.by["rate"], s.metric): s
        for s in rates
        if s.by["run"] == source.name and s.value is not None
    }
    found = {
        rate: (
            f"{words.format(share(mine[rate, 'ppi']))}, corrected by people's review; "
            f"uncorrected, {share(mine[rate, 'measured'])}."
        )
        for rate, (words, _) in _REVIEWED.items()
        if (rate, "ppi") in mine
    }
    said = {
        rate: share(mine[rate, "by-people"]) for rate in _BY_PEOPLE if (rate, "by-people") in mine
    }
    for rate, words in _BY_PEOPLE.items():
        if rate in said:
            found[f"by-people {rate}"] = f"According to the reviewers, {words.format(said[rate])}."
    return found


_BY_PEOPLE = {
    "negrate": "most stories are negative in {} of the templates of which they read all stories",
    "negrate-regard": "most stories show people with low regard in {} of the templates of which "
    "they read all stories",
    "felt-or-shown": "{} of the stories are negative by only one of sentiment and regard",
}


def _findings(source: Source, rates: Sequence[Score]) -> Iterator[str]:
    reviewed = _corrected(source, rates)
    yield from reviewed.values()
    told = {_REVIEWED[rate][1] for rate in reviewed if rate in _REVIEWED}
    first = next(iter(source.read_in), "")
    found = {s.metric: s for s in source.score(list(_FOUND), [], first) if s.value is not None}
    way = {"choice": ", by forced choice", "logprob": ", by P(yes)"}.get(first, "")
    if len(source.read_in) > 1:
        way = way or ", in its own words"
    roles: dict[str, list[str]] = {}
    if "role" in source.outcomes and source.outcomes["role"].nunique() > 1:
        for s in source.score([n for n in _BY_ROLE if n in found], ["role"], first):
            # The scores begin with the contrasts, the sentence with the stereotypes.
            if s.value is not None and s.by["role"] in _ROLES:
                roles.setdefault(s.metric, []).insert(0, f"{_ROLES[str(s.by['role'])]} {share(s)}")
    for name, words in _FOUND.items():
        if name in found and name not in told:
            if name + OF_ALL in reviewed:
                words = f"As measured, {words[0].lower()}{words[1:]}"
            apart = "; ".join(roles.get(name, []))
            yield f"{words.format(share(found[name]))}{way}{apart and f': {apart}'}."
    for kind, name, by, words in (
        ("pairs", "win-rate", ["scorer"], "Found the stereotype likelier than its contrast"),
        ("choices", "accuracy", ["scorer", "condition"], "Chose right"),
    ):
        scores = source.score([name], by) if source.kind == kind else []
        if each := [_each(s) for s in scores if s.value is not None]:
            yield f"{words} in {_join(each)}."


def _each(score: Score) -> str:
    """Write a share of pairs or questions, such as `48.3 % (…; n = 60) of pairs by loglik`."""
    label = {k: tables.label(k, v, {}).text for k, v in score.by.items()}
    of = f"{label['condition']} questions" if "condition" in label else "pairs"
    return f"{share(score)} of {of}" + (f" by {label['scorer']}" if "scorer" in label else "")


def _cautions(source: Source) -> Iterator[str]:
    spec, status = source.run.spec, source.status
    replies = source.table.replies
    cut, free = thoughts.cut_off(source.outcomes)
    if cut:
        far = ", too many to rank models" if cut > thoughts.MOST_CUT * free else ""
        yield (
            f"{cut:,} of its {many(free, 'reply')} ({100 * cut / free:.1f} %) were cut off inside "
            f"the thought and have no answer{far}: give it more tokens (--think-tokens)."
        )
    if line := spec.drawn_otherwise:
        yield f"{line[0].upper()}{line[1:]}."
    if spec.model == "control":
        yield (
            "This is the control model that comes with genprobe. It has known answer rates and "
            "tests genprobe; it is not a model to be judged."
        )
    column, judge = source.table.read
    if judge and status["answered"] and column not in source.outcomes:
        yield f"Its {replies} have not been read: run `genprobe judge` on it with --judge {judge}."
    if "sentiment" in source.outcomes:
        for line in corrected.cautions(source.outcomes):
            yield f"{line[0].upper()}{line[1:]}."
    for line in corrected.cannot_tell(source.score(list(corrected.TELLS), [])):
        yield f"{line[0].upper()}{line[1:]}."
    told = [*sides.untold(source.outcomes)]
    if "stance" in source.outcomes:
        told.append(measured.caution("refusal", source.languages))
    yield from (f"{line[0].upper()}{line[1:]}." for line in told if line)
    lost = status.total() - status["answered"]
    if lost > MISSING * status.total():
        yield f"{lost:,} of {many(status.total(), 'planned reply')} are missing."
    yield from _second_reader(source)
    if spec.limit:
        yield f"Its {replies} are only a first look, at the {_first(spec.limit)} of each language."
    yield from _shares(source)
    yield from _reversed(source)


def _second_reader(source: Source) -> Iterator[str]:
    """Say what a second reader has read, its licence, and the band that follows from it."""
    yield from (f"{line[0].upper()}{line[1:]}." for line in second.told(source.run))
    more = second.beside(source.run, table.outcomes)
    found, names = source.outcomes, [n for n in source.table.main if n in metrics.catalogue()]
    fit = [name for name in names if more and metrics.find(name).fits(found)]
    for one in more.scores(metrics.score(found, fit, [], str)) if more else ():
        if one.band:
            low, high = (number(end, one.metric) for end in one.band)
            yield f"By the rules and these verdicts, {one.metric} lies between {low} and {high} %."


def _shares(source: Source) -> Iterator[str]:
    """Warn of shares so large that the run's figures mean less, such as that of unclear answers."""
    replies = source.table.replies
    names = ("ambiguous", "conflict", "wrong-language", "outside", "seed-disagreement", "usable")
    found = {(s.metric, s.by.get("decode")): s for s in source.score(names, [])}
    first = next(iter(source.read_in), None)
    for name, decode, limit, words in (
        ("ambiguous", first, UNCLEAR, "of its replies give no clear answer: see the bounds"),
        (
            "conflict",
            first,
            CONFLICT,
            "of its clear answers are contradicted by the rest of the reply",
        ),
        (
            *("wrong-language", first, OTHER_LANGUAGE),
            f"of its {replies} whose language is known are in another language than the question",
        ),
        (
            *("outside", "logprob", OUTSIDE),
            "of the probability is on replies that begin with no answer word: P(yes) means little",
        ),
        (
            *("seed-disagreement", first, UNSTEADY),
            "of its templates have both negative and other stories, so that their label depends "
            "on chance",
        ),
    ):
        score = found.get((name, decode))
        if score and score.value is not None and score.value > limit:
            yield f"{share(score)} {words}."
    usable = found.get(("usable", first))
    if usable and usable.value is not None and usable.value < 1 - UNUSABLE:
        yield f"Only {share(usable)} of its stories could be scored."


def _reversed(source: Source) -> Iterator[str]:
    """Name the languages where a question and its reverse find different endorsement.

    Languages are compared one by one, because a tendency to say yes in one and no in another would
    cancel out.
    """
    if source.kind != "answers":
        return
    asked: dict[str, list[Score]] = {}
    for s in source.score(["endorsed"], ["lang", "probe"], next(iter(source.read_in), "")):
        if s.value is not None:
            asked.setdefault(str(s.by["lang"]), []).append(s)
    apart: list[tuple[float, Score, Score]] = []
    for found in asked.values():
        low, high = (end(found, key=lambda s: s.value or 0.0) for end in (min, max))
        between = (high.value or 0.0) - (low.value or 0.0)
        if between > WORDING and (low.high or 0.0) < (high.low or 0.0):
            apart.append((between, low, high))
    if not apart:
        return
    _, low, high = max(apart, key=lambda one: one[0])
    told = (
        f"The {clean(str(high.by['probe']))} question finds {share(high)} endorsed, the "
        f"{clean(str(low.by['probe']))} question {share(low)}: the answers depend much on the "
        "wording, so their mean means little."
    )
    if len(asked) > 1:
        told = (
            f"In {len(apart)} of {len(asked)} languages a question and its reverse give very "
            "different rates: "
            f"{'most in ' * (len(apart) > 1)}{language(str(high.by['lang']))}. {told}"
        )
    yield told


# --- definitions


@dataclass(frozen=True)
class Definition:
    """Measures that are explained together: name and title of each, and the text of the docs."""

    measures: list[tuple[str, str]]
    text: Markup


# The documentation is inside the package in a wheel, and in docs/ in a checkout.
_HERE = Path(__file__).parent
_DOCS = next(p for p in (_HERE / "docs", _HERE.parents[1] / "docs") if p.is_dir())


def definitions(names: Sequence[str]) -> list[Definition]:
    """Return the definitions of these measures, in the order of the documentation."""
    known, texts = metrics.catalogue(), _texts()
    found: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(
        dict.fromkeys(names), key=lambda n: list(texts).index(n) if n in texts else len(texts)
    ):
        title = known[name].title if name in known else ""
        found.setdefault(str(texts.get(name, name)), []).append((name, title))
    return [Definition(of, texts.get(of[0][0], Markup(""))) for of in found.values()]


@functools.cache
def _texts() -> Mapping[str, Markup]:
    """Read the documentation: name of a measure -> its definition."""
    found: dict[str, Markup] = {}
    for part in re.split(r"^## ", (_DOCS / "measures.md").read_text("utf-8"), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        paragraphs = [Markup("<p>%s</p>") % inline(p) for p in re.split(r"\n{2,}", body.strip())]
        for name in re.findall(r"`([\w-]+)`", head):
            found[name] = Markup("\n").join(paragraphs)
    rows = re.findall(
        r"^\| (`[^|]+`) \| ([^|]+) \|$", (_DOCS / "paradigms.md").read_text("utf-8"), re.M
    )
    for head, body in rows:
        for name in re.findall(r"`([\w-]+)`", head):
            found.setdefault(name, Markup("<p>%s</p>") % inline(body))
    return found


_INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"(?<!\*)\*([^*\s][^*]*)\*(?!\*)"), r"<em>\1</em>"),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
)


def inline(text: str) -> Markup:
    """Convert a paragraph of the documentation from Markdown to HTML; links become plain text."""
    html = str(escape(" ".join(text.split())))
    for pattern, by in _INLINE:
        html = pattern.sub(by, html)
    return Markup(html)


def reasons_of(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """List the reasons for which these scores left something out, and what each means."""
    found = {reason: 0 for score in scores for reason in score.excluded}
    return [(clean(r), REASONS.get(r, "")) for r, _ in sorted(found.items(), key=metrics.rank)]


def signatures(scores: Sequence[Score], redact: bool = False) -> list[tuple[str, str]]:
    """Merge the signatures of all figures of a run into one, with `{a,b}` where they differ.

    redact: without the folders of paths. Returns (name of the run, or `comparisons`; signature).
    """
    found: dict[str, dict[str, None]] = {}
    for score in scores:
        run, command = score.by.get("run"), re.search(r"\|command:([^|]*)", score.signature)
        name = "comparisons"
        if run is not None:
            name = f"{run}, {command.group(1)}" if command else str(run)
        signature = without_folders(score.signature) if redact else score.signature
        found.setdefault(clean(name), {})[signature] = None
    return [(name, clean(both_signatures(*texts))) for name, texts in found.items()]


def what(error: GenprobeError, sources: Sequence[Source], redact: bool) -> str:
    """Say why runs were not compared, from the error that was raised.

    Folders are replaced by the names of the runs, paths are shortened, and an error that may quote
    a statement is replaced by a general sentence.
    """
    if isinstance(error, InputError) and (redact or "was asked about as" in str(error)):
        return "they are not of the same items with the same texts"
    text = str(error)
    for source in sources:
        text = text.replace(str(source.run.folder), source.name)
    text = re.sub(r"\S*/\S+", lambda m: m.group(0).rsplit("/", 1)[-1], text)
    return clean(text)
