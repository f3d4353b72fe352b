"""Write the sentences of a report: what was measured, the findings, cautions and definitions.

The definitions are read from docs/measures.md and docs/paradigms.md, so that there is only one
text of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup, escape

from genprobe import metrics
from genprobe.analysis import second
from genprobe.errors import GenprobeError, InputError
from genprobe.logs import recognised
from genprobe.metrics import corrected, thoughts
from genprobe.outcomes import counted, sides, table
from genprobe.records import Score
from genprobe.render.findings import READINGS, joined, turned
from genprobe.render.grid import number
from genprobe.report.sources import Source, first_reading, without_folders
from genprobe.report.tables import reasons
from genprobe.resources import measured, packs, panel, registry
from genprobe.resources.packs import Pack, language_name, native
from genprobe.runs import seal
from genprobe.runs.run import Run
from genprobe.runs.spec import LOG, both_signatures
from genprobe.text import many
from genprobe.text.display import clean, short_name

# Rules of thumb: above these limits, the page warns that the run's figures need care.
UNCLEAR = 0.3  # share of replies without a clear answer
CONFLICT = 0.1  # share of clear answers that the rest of the reply contradicts
OTHER_LANGUAGE = 0.1  # share of replies, among those whose language could be identified
OUTSIDE = 0.5  # probability of replies that do not begin with an answer word
UNSTEADY = 0.5  # share of templates with both negative and other stories
UNUSABLE = 0.3  # share of stories that cannot be scored
MISSING = 0.01  # share of planned replies

# Reasons for leaving something out (`metrics.REASONS`, and those of stories and pairs) -> meaning.
REASONS = {
    "failed": "the engine gave no reply",
    "missing": "there is no reply, or no value",
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
    "und": "its language could not be told: it is too short, or in a language that is not known",
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
    """A run in words. settings: name and value of each setting and other fact of the run.

    asked: the same as the sentence, as names and values, where a language has no such sentences.
    """

    name: str
    title: str
    sentence: str
    settings: list[tuple[str, str]]
    asked: list[tuple[str, str]]


def fact(source: Source) -> Fact:
    """Describe a run in a few sentences; the first one continues "the model was"."""
    spec, status = source.run.spec, source.status
    text = _put(source)
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
    ways = joined([READINGS.get(d, d) for d in source.read_in] or [""])
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
    return Fact(source.name, source.title, text, _settings(source), _asked(source))


def _asked(source: Source) -> list[tuple[str, str]]:
    spec, status = source.run.spec, source.status
    rows: list[tuple[str, object]] = [
        ("Items", f"{source.statements:,}"),
        ("Languages", ", ".join(map(native, source.languages))),
        ("Asked as", ", ".join(spec.probes)),
        ("Samples per question", spec.samples if spec.samples > 1 else None),
        ("Temperature", None if "temperature" in spec.not_taken else spec.temperature),
        ("Limit of items", spec.limit),
        ("Readings", ", ".join(spec.decode) if len(source.read_in) > 1 else None),
        ("Answered", f"{status['answered']:,} / {status.total():,}"),
        ("Time of replies", ", ".join(dict.fromkeys(
            day[:10] for day in (source.used.first, source.used.last) if day
        ))),
    ]  # fmt: skip
    return [(name, clean(str(v))) for name, v in rows if v is not None and str(v)]


def _put(source: Source) -> str:
    """Say what was asked, as the end of "the model was"."""
    spec = source.run.spec
    of = "built-in " if spec.data in ("builtin", "templates") else ""
    return source.task.asked.format(
        statements=many(source.statements, of + source.task.thing)
        + ("" if of else f" of {short_name(spec.data)}"),
        languages=_languages(source.languages),
        probes=joined(spec.probes),
        wordings=f"{joined(spec.probes)} {source.task.probe}{'s' * (len(spec.probes) > 1)}",
    )


def asked(source: Source) -> str:
    """Say what was asked about in one clause: of what, how, in which languages and wordings."""
    rows, spec = source.outcomes, source.run.spec
    text = f"{many(source.statements, source.task.thing)} in {_languages(source.languages)}"
    text += f" ({joined(spec.probes)})" if spec.probes else ""
    if "wording" in rows and rows["wording"].nunique() > 1:
        text += f", in {rows['wording'].nunique()} wordings"
    ways = [READINGS.get(way, way) for way in source.read_in if way != "recorded"]
    text += f", read as {joined(ways)}" if ways and source.read_in != ["free"] else ""
    return f"{text}: {many(source.status['answered'], source.task.unit)}"


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
        ("Version of the data", spec.data_version),
        ("Licence of the data", spec.data_licence),
        ("To be cited for the data", spec.data_citation),
        ("Hash of the statements", spec.statements),
        ("Wordings", spec.pack if cited(source) or not source.run.pack else None),
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


@functools.lru_cache(16)
def _in_other_words(run: Run) -> Mapping[tuple[str, str], Sequence[str]]:
    """Return what a log asked in words that its pack does not have.

    Returns language and probe -> the different prompts, with "…" for the statement.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    of: dict[tuple[str, str], str] = {}
    if run.spec.engine == LOG:
        of = {(one.id, one.lang): one.text for one in run.statements()}
    for one in run.requests() if of else ():
        key = one.lang, one.probe
        prompt = next((m["content"] for m in one.messages[::-1] if m["role"] == "user"), "")
        asked = recognised(prompt, one.lang) if key not in found else None
        if asked is None or asked.probe != one.probe:
            text = of.get((one.statement, one.lang)) or prompt
            put = prompt.replace(text, "…") if text != prompt else prompt
            found.setdefault(key, {}).setdefault(put)
    return {key: [text for text in prompts if text] for key, prompts in found.items()}


def cited(source: Source) -> Pack | None:
    """Return the pack of a run; None if it asked all in words that the pack does not have."""
    pack, spec = source.run.pack, source.run.spec
    if pack is None or not (others := _in_other_words(source.run)):
        return pack
    asked = {(lang, probe) for lang in source.languages for probe in spec.probes}
    return pack if asked - others.keys() else None


def questions(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """List the yes/no questions in English: name of the probe, what it asks."""
    found: dict[str, str] = {}
    for source in sources:
        pack = source.run.pack if source.kind == "answers" else None
        others = {name for _, name in _in_other_words(source.run)} if pack else set()
        for name, wording in (pack.wordings.get("en", {}) if pack else {}).items():
            if name in source.run.spec.probes and name not in others:
                # Only the question, without the instruction how to answer that follows it.
                asked = wording.ask("…").partition("?")[0].strip()
                found.setdefault(name, f"{asked}?")
    return list(found.items())


_PROMPTS = 3  # of a log, in each language and probe
_LONGEST = 600  # characters of a prompt


def as_asked(sources: Sequence[Source]) -> list[tuple[str, list[tuple[str, str]]]]:
    """List the yes/no questions in each language in which they were asked.

    Returns (code, (name of the probe, the whole question)), for the wordings that the installed
    pack has as the run had them; a further wording is named behind the probe, and has its answers
    in one of their orders. Of the prompts of a log in other words, some are shown, with their
    number and how many there are; none if the page is to show no texts.
    """
    found: dict[str, dict[str, str]] = {}
    for source in sources:
        spec, pack = source.run.spec, source.run.pack if source.kind == "answers" else None
        for code in source.languages if pack else ():
            if pack and code in pack.wordings and spec.pack_hashes.get(code) == pack.hashes[code]:
                for name, wording in pack.wordings[code].items():
                    if name in spec.probes and (code, name) not in _in_other_words(source.run):
                        found.setdefault(code, {}).setdefault(name, wording.ask("…"))
                found.setdefault(code, {}).update(_further(source, pack, code))
        for (code, name), prompts in _in_other_words(source.run).items():
            for n, text in enumerate(() if source.salt else prompts[:_PROMPTS], 1):
                label = f"{name}, {n}/{len(prompts)}" if len(prompts) > 1 else name
                shown = clean(text[: _LONGEST + 1])
                shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
                if shown not in (own := found.setdefault(code, {})).values():
                    own[f"{source.name}: {label}" if len(sources) > 1 else label] = shown
    return [(code, list(of.items())) for code, of in found.items() if of]


def _further(source: Source, pack: Pack, code: str) -> dict[str, str]:
    """Return the further wordings in which a run asked in a language: name -> the question."""
    rows = source.outcomes
    key = f"{code}/{panel.FOLDER}"
    if "wording" not in rows or key not in source.run.spec.pack_hashes:
        return {}
    known = panel.load(pack.name, code)
    if known.hash != source.run.spec.pack_hashes[key]:
        return {}
    asked = rows.loc[rows["lang"] == code, ["probe", "wording"]].drop_duplicates()
    return {
        f"{probe}, {name}": known.wordings[name]
        .wording(probe, panel.ORDERS[0], pack, known)
        .ask("…")
        for probe, name in asked.itertuples(index=False)
        if name in known.wordings
    }


def notes(sources: Sequence[Source]) -> list[tuple[str, str, str]]:
    """List the known faults of the wordings that were used: code of the language, probe, note.

    A note applies if the run used the wordings of the installed pack, or if the wording is a
    published one, which is never changed.
    """
    found = {}
    for source in sources:
        spec, pack = source.run.spec, source.run.pack
        if pack is None:
            continue
        for code in sorted(set(spec.languages) & pack.wordings.keys(), key=language_name):
            same = spec.pack_hashes.get(code) == pack.hashes[code]
            for probe, wording in pack.wordings[code].items():
                if (
                    probe in spec.probes
                    and (code, probe) not in _in_other_words(source.run)
                    and wording.note
                    and (same or wording.review == "published")
                ):
                    found[code, probe] = wording.note
    return [(*key, note) for key, note in found.items()]


def awaiting(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return what no native reader has checked: words or questions -> codes of languages.

    The word lists read no replies whose labels came with the data, and tell no languages apart.
    """
    ours = set(registry.names("languages"))
    read = {c for s in sources if _by_word_lists(s) for c in s.languages if c in ours}
    reviews = [
        ("the word lists that read the replies", c, packs.load_language(c).review) for c in read
    ]
    for source in sources:
        known = pack.reviews if (pack := cited(source)) else {}
        asked = "the wordings of the questions"
        reviews += [(asked, c, known[c]) for c in source.run.spec.languages if c in known]
    codes: dict[str, set[str]] = {}
    for what, code, review in reviews:
        if review.startswith("awaiting"):
            codes.setdefault(what, set()).add(code)
    return codes


def _by_word_lists(source: Source) -> bool:
    judges = source.judges.items()
    return any(name == sign.partition("@")[0] != "language" for name, sign in judges)


def unchecked(
    sources: Sequence[Source], name: Callable[[str], str] = language_name
) -> list[tuple[str, str]]:
    """Name the languages whose word lists or questions no native reader has checked.

    name: names a language. Returns (the word lists or the questions, the languages).
    """
    codes = awaiting(sources)
    return [(what, ", ".join(sorted(map(name, of)))) for what, of in codes.items()]


def _languages(codes: Sequence[str]) -> str:
    names = [language_name(code) for code in codes]
    return joined(names) if len(names) <= 4 else many(len(names), "language")


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


def cautions(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Say why the figures of a run need care: name of the run -> sentences.

    Runs of one model by different commands share a name; a sentence that is true of several is
    said once.
    """
    lines: dict[str, dict[str, None]] = {}
    for source in sources:
        lines.setdefault(source.name, {}).update(dict.fromkeys(_cautions(source)))
    return {name: list(of) for name, of in lines.items() if of}


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
    shares = source.score(list(corrected.TELLS), [], first_reading(source))
    for line in corrected.cannot_tell([replace(s, by={}) for s in shares]):
        yield f"{line[0].upper()}{line[1:]}."
    told = [*sides.untold(source.outcomes)]
    if sides.COLUMN in source.outcomes:
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
    more = second.beside(
        source.run, lambda view: counted.compact(table.outcomes(view), ["request"])
    )
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


def by_question(source: Source) -> list[Score]:
    """Return what each question of a yes/no run finds endorsed, by language and direction."""
    if source.kind != "answers":
        return []
    return source.score(["endorsed"], ["lang", "probe", "when"], next(iter(source.read_in), ""))


def _reversed(source: Source) -> Iterator[str]:
    """Name the languages where a question and its reverse find different endorsement.

    Languages are compared one by one, because a tendency to say yes in one and no in another would
    cancel out.
    """
    found = by_question(source)
    apart = [pair for pairs in turned(found).values() for pair in pairs]
    asked = {s.by["lang"] for s in found if s.value is not None}
    if not apart:
        return
    low, high = max(apart, key=lambda two: (two[1].value or 0.0) - (two[0].value or 0.0))
    told = (
        f"The {clean(str(high.by['probe']))} question finds {share(high)} endorsed, the "
        f"{clean(str(low.by['probe']))} question {share(low)}: the answers depend much on the "
        "wording, so their mean means little."
    )
    if len(asked) > 1:
        told = (
            f"In {len(apart)} of {len(asked)} languages a question and its reverse give very "
            "different rates: "
            f"{'most in ' * (len(apart) > 1)}{language_name(str(high.by['lang']))}. {told}"
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
DOCS = next(p for p in (_HERE / "docs", _HERE.parents[1] / "docs") if p.is_dir())


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
    for part in re.split(r"^## ", (DOCS / "measures.md").read_text("utf-8"), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        paragraphs = [Markup("<p>%s</p>") % inline(p) for p in re.split(r"\n{2,}", body.strip())]
        for name in re.findall(r"`([\w-]+)`", head):
            found[name] = Markup("\n").join(paragraphs)
    rows = re.findall(
        r"^\| (`[^|]+`) \| ([^|]+) \|$", (DOCS / "paradigms.md").read_text("utf-8"), re.M
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


def reasons_of(scores: Sequence[Score]) -> list[tuple[str, str, str]]:
    """List the reasons for which these scores left something out.

    Returns (reason, what it means, how many the figure leaves out that leaves out most).
    """
    counts: dict[str, int] = {}
    for score in scores:
        for reason, n in score.excluded.items():
            counts[reason] = max(n, counts.get(reason, 0))
    return [
        (clean(reason), REASONS.get(reason, ""), f"{n:,}")
        for reason, n in sorted(counts.items(), key=metrics.rank)
    ]


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

    Folders are replaced by the names of the runs, paths are shortened, hashes are left out, and an
    error that may quote a statement is replaced by a general sentence.
    """
    if isinstance(error, InputError) and (redact or "was asked about as" in str(error)):
        return "they are not of the same items with the same texts"
    names = {str(source.run.folder): source.name for source in sources}
    folders = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    # A folder may be called as a part of a word is, or as a model.
    text = re.sub(rf"(?<![\w./-])({folders})(?![\w./-])", lambda m: names[m[0]], str(error))
    text = re.sub(
        r"pack_hashes\.([\w-]+): ", lambda m: f"wordings in {language_name(m[1])}: ", text
    )
    text = re.sub(r": (?:None|'[\d-]*[\da-f]{12,}') -> (?:None|'[\d-]*[\da-f]{12,}')", "", text)
    text = re.sub(r"\S*/\S+", lambda m: m.group(0).rsplit("/", 1)[-1], text)
    return clean(text)
