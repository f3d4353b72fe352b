"""Data sets, classifiers and lists: the functions that join several rooms, or open a model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from genprobe.api.served import Served, shown, writer
from genprobe.errors import Caution, InputError
from genprobe.files.rows import Rows, any_of, rows_of, sources_of
from genprobe.render.scores import Scores
from genprobe.resources import registry
from genprobe.resources.registry import listed
from genprobe.tasks.pipeline import Note, Progress, quiet
from genprobe.text import many

if TYPE_CHECKING:
    from genprobe.curation.document import Documented
    from genprobe.judges.classifiers.cards import Card

Out = str | Path | None
Names = str | Sequence[str]

# --- data sets


class Validated(NamedTuple):
    """What annotators kept. rows: of the table. scores: how far they agree."""

    rows: Rows
    scores: Scores


def dataset_validate_keep(
    data: Any,
    votes: Any,
    *,
    name: str = "aqbileq",
    rule: str = "",
    model: str = "",
    every: bool = False,
    kappas: Out = None,
    lang: str = "",
    out: Out = None,
    note: Note = quiet,
) -> Validated:
    """Count votes, and keep the rows that enough people confirm.

    data: the table that was judged. votes: tables of votes, one or several. name, rule, model: as
    in `curation.validate.keep`. every: also return rows that are not kept. kappas: a file (.svg,
    .pdf) for a drawing of the kappa of every two annotators.
    """
    from genprobe.curation import tables
    from genprobe.curation import validate as validating
    from genprobe.report import agreement as figure
    from genprobe.review.agreement import agreement

    table, ballots = rows_of(data, "data"), sources_of(votes)
    done = validating.keep(table, ballots, name, rule, model, lang)
    scores = agreement(ballots, functools.partial(validating.meant, name=name))
    texts = {q for q, one in validating.load(name).questions.items() if one.kind == "free"}
    scores[:] = [score for score in scores if score.by.get("question") not in texts]
    if kappas is not None:
        figure.kappas(scores, Path(kappas))
    rows = [row for row in done.rows if row["kept"] or every]
    if out is not None:
        tables.write(out, rows, done.columns)
    note(", ".join(f"{count:,} {what}" for what, count in done.counts.items()))
    for question, count in done.more.items():
        note(f"{question}: several texts for {many(count, 'item')}; the first is taken")
    for question in done.foreign:
        note(f"{question!r} is no question of {name!r}; 'yes' counts as a vote to keep")
    for label, count in done.odd.items():
        what = f"{many(count, 'vote')} {label!r}, which is no answer to the question"
        note(Caution(f"{what}: counted as a vote, and not for the row"))
    if done.changed:
        what = (
            f"{many(len(done.changed), 'item')} that {table} has with another text than was shown"
        )
        note(Caution(f"votes on {what}, such as {done.changed[0]!r}: not counted"))
    if done.unknown:
        note(f"votes on {many(len(done.unknown), 'item')} that {table} does not have, left out")
    return Validated(Rows(rows), scores)


def dataset_document(
    data: Any,
    out: str | Path,
    *,
    about: str | Path,
    votes: Any = (),
    rewordings: Any = "",
    keep_about: bool = False,
    note: Note = quiet,
) -> Documented:
    """Write a folder to publish: the rows, the card and the Croissant file.

    about: the file about.toml. votes: tables of votes, one or several, for the agreement of the
    annotators. The other arguments are those of `curation.document.run`.
    """
    from genprobe.curation import document as documenting
    from genprobe.curation import validate as validating
    from genprobe.review.agreement import agreement

    table = rows_of(data, "data")
    ballots = any_of(votes)
    if ballots:
        validating.need_votes(table, ballots)
    scores = agreement(ballots, validating.meant) if ballots else ()
    done = documenting.run(table, about, out, scores, rewordings, keep_about)
    left = f", {done.left_out:,} left out" if done.left_out else ""
    note(f"{out}: {many(done.rows, 'row')}{left}; {done.canary}")
    if done.licence == documenting.UNKNOWN:
        note("no licence: until about.toml names one, nobody may use or share the data")
    elif done.licence == "other":
        note("the hub has no identifier for this licence: the card has 'other' and its name")
    if done.held_back is not None:
        note(f"not to be published: {done.held_back}")
    if done.lacking:
        note(f"without two different rewordings: {many(done.lacking, 'row')}")
    return done


@shown(Served)
def dataset_disambiguate(
    data: Any,
    *,
    model: str | None = None,
    seed: int = 0,
    out: Out = None,
    note: Note = quiet,
    **served: Unpack[Served],
) -> Rows:
    """Have a model write the missing continuations in a table of contexts, with PBBQ's prompt.

    model: as in `yesno`, at the server of base_url if there is one; one must be named. A person
    must read the rows with `to_read`, and write yes into `read_by_person`, before `dataset_fill`
    takes them.
    """
    from genprobe.curation import disambiguate, tables

    table = rows_of(data, "data")
    with writer("disambiguate", model, served, note) as engine:
        rows, names = disambiguate.run(table, engine, seed)
    if out is not None:
        tables.write(out, rows, names)
    note(f"to be read by a person: {many(sum(bool(row['to_read']) for row in rows), 'row')}")
    return Rows(rows)


@shown(Served)
def augment(
    data: Any,
    *,
    model: str | None = None,
    count: int = 100,
    lang: str = "en",
    places: str = "",
    batch: int = 50,
    temperature: float = 1.0,
    seed: int = 0,
    out: Out = None,
    note: Note = quiet,
    **served: Unpack[Served],
) -> Rows:
    """Have a model write more stereotypes like the seeds, each with a positive counter-stereotype.

    data: rows with identity, attribute, sentence, country, category. model: as in `yesno`, at the
    server of base_url if there is one; one must be named. The other arguments are those of
    `curation.augment.Wanted`. Near-duplicates are left out. Have people check the rows.
    """
    from genprobe.curation import augment as augmenting
    from genprobe.curation import tables

    table = rows_of(data, "data")
    with writer("augment", model, served, note) as engine:
        wanted = augmenting.Wanted(count, lang, places, batch, temperature, seed)
        done = augmenting.run(table, engine, wanted, note)
    if out is not None:
        tables.write(out, done.rows, augmenting.COLUMNS)
    for line in done.bad:
        note(line)
    rows = many(len(done.rows), "row")
    note(f"{rows} of {count} wanted; near-duplicates dropped: {done.dropped}")
    for what, replies in done.replies.items():
        note(f"{what}: {done.refusals[what]} of {many(replies, 'reply')} refused")
    if done.halted:
        note(f"batches in which the model said that it stopped: {done.halted}")
    return Rows(done.rows)


# --- classifiers, second readers


def classifiers_train(
    data: Any,
    out: str | Path,
    *,
    text: str = "text",
    label: str = "label",
    share: float | None = None,
    note: Note = quiet,
) -> Card:
    """Train a linear sentiment classifier on a table of texts and labels; write card and weights.

    out: its card, NAME.toml. text, label: columns; a label is 0 (negative) or 1. share: of negative
    texts where it will be used. The same table always gives the same weights. Returns the card.
    """
    from genprobe.judges.classifiers import training

    return training.train(rows_of(data, "data"), out, text, label, share=share, note=note)


def classifiers_measure(
    card: str, *, data: Any, kind: str, on: str = "", lang: str | None = None
) -> Rows:
    """Measure a classifier on labelled texts, and write the figures into its card.

    card: its name or path. data: rows of lang, response or text, sentiment or label. kind: what the
    texts are: stories, reviews, … on: what the card says about them. lang: of the texts, if no
    column gives it. Returns the figures.
    """
    from genprobe.analysis import sentiment

    found = sentiment.into_card(card, rows_of(data, "data"), kind, on, lang)
    return Rows([vars(one) for one in found])


class Classifiers(NamedTuple):
    """Classifiers on the same texts.

    rows: accuracy and cost. pairs: the kappa of every two. bias: of the model that judged, "" if
    there was none.
    """

    rows: Rows
    pairs: Rows
    bias: str = ""


@shown(Served)
def classifiers_compare(
    cards: Names = (),
    *,
    data: Any,
    lang: str | None = None,
    model: str | None = None,
    price: str | None = None,
    note: Note = quiet,
    **served: Unpack[Served],
) -> Classifiers:
    """Compare classifiers on labelled texts: accuracy, calibration and cost.

    cards: their names; if empty, all that come with genprobe and read a language of the texts.
    data, lang: as in `classifiers_measure`. model: a chat model that judges, too, at the server of
    base_url if there is one. price: of a million tokens of prompts and of replies, `IN,OUT`.
    """
    from genprobe.analysis import forecast, sentiment
    from genprobe.judges import llm

    cost = forecast.price(price)
    texts = sentiment.read(rows_of(data, "data"), lang)
    names = listed(cards, "cards") or sentiment.fitting(texts)
    results = [one for name in names for one in sentiment.run(name, texts)]
    bias = ""
    if model or served.get("base_url"):
        with writer("compare", model, served, note) as engine:
            judge = llm.make(engine, "sentiment")
            results += sentiment.judged(judge, texts)
            bias = f"{judge.name}: {judge.bias}"
    results.sort(key=lambda one: one.lang)
    pairs = [dict(zip(_PAIR, row, strict=True)) for row in sentiment.between(results)]
    rows = [dict(zip(sentiment.HEAD, row, strict=True)) for row in sentiment.rows(results, cost)]
    return Classifiers(Rows(rows), Rows(pairs), bias)


_PAIR = ("lang", "classifier", "and", "kappa")


@shown(Served)
def licence(
    model: str,
    *,
    langs: Names = (),
    golds: Any = (),
    download: bool = False,
    out: Out = None,
    note: Note = quiet,
    progress: Progress = quiet,
    **served: Unpack[Served],
) -> Rows:
    """Ask a model about labelled replies, and measure how well it reads them.

    The licence is also stored in your folder of settings, for runs that the model reads as
    second_reader. golds: tables of replies that you have labelled (lang, prompt, response, reads,
    gold), one or several. download: also fetch real replies. Returns a row of each language and
    kind of question.
    """
    from genprobe import files
    from genprobe.analysis import licence as measuring
    from genprobe.resources import licences, packs

    codes = [packs.language_code(lang) for lang in listed(langs, "langs")]
    cases = measuring.imitations(codes)
    for table in any_of(golds):
        cases += measuring.of_file(table, codes)
    if download:
        cases += measuring.real(codes, note, progress)
    if not cases:
        raise InputError(f"no labelled replies in {', '.join(codes)}; give some with --gold")
    with writer("licence", model, served, note) as engine:
        found = measuring.measured(cases, engine, progress)
    note(f"licence: {licences.keep(found)}")
    rows = [vars(one) for one in found]
    if out:
        files.write_rows(out, rows)
        note(f"{out}: {many(len(rows), 'row')}")
    return Rows(rows)


def review_plan(source: Any, *, points: float = 5.0) -> Scores:
    """Compute how many replies people must read to correct the rates of a run to within `points`.

    points: half the width of the interval that is wanted, in points.
    """
    from genprobe.analysis.sources import runs_of
    from genprobe.review.plan import plan

    [run] = _single(runs_of(source), "source")
    if not 0 < points < 50:
        raise InputError(f"points: give a number between 0 and 50, not {points:g}")
    return plan(run, points / 100)


def _single(found: list[Path], name: str) -> list[Path]:
    if len(found) != 1:
        raise InputError(f"{name}: give one run, not {len(found)}")
    return found


# --- lists


def list_names(what: str) -> Rows:
    """List what is available under a heading of `genprobe list`: rows of name and about."""
    if what not in registry.LISTS:
        raise registry.unknown("list", what, registry.LISTS)
    return Rows([{"name": name, "about": about} for name, about in _listed(what)])


def _listed(what: str) -> list[tuple[str, str]]:
    from genprobe.datasets import statements
    from genprobe.resources import measured, models, registry
    from genprobe.resources import packs as inputs

    if what == "models":
        return [
            ("(none)", "the control model, which tests genprobe; it runs without --model"),
            ("FOLDER", "a model on disk, as transformers saves it"),
            ("ORG/NAME", "a model of the Hugging Face hub"),
            *models.listed(),
        ]
    if what == "packs":
        packs = [inputs.load_pack(name) for name in registry.names("packs")]
        return [(p.name, f"{p.title} ({', '.join(p.probes)}); {p.citation}") for p in packs]
    if what == "languages":
        pack = inputs.load_pack("yesno")
        languages = [inputs.load_language(code) for code in registry.names("languages")]
        read: dict[str, str] = {}
        for (code, kind), figures in measured.real().items():
            before = f"{read[code]}, " if code in read else ""
            read[code] = f"{before}{kind} {figures.brief()}"
        written = {one.code for one in languages}
        codes = [code for code in registry.names(inputs.CHOSEN) if code not in written]
        options = [inputs.load_language(code) for code in codes]
        return [
            (
                one.code,
                f"{one.name}, {one.native}; words: {one.review}; "
                f"questions: {pack.reviews.get(one.code, 'none')}; "
                f"real replies: {read.get(one.code, 'not measured')}",
            )
            for one in languages
        ] + [
            (
                one.code,
                f"{one.name}, {one.native}; choices and log-probabilities alone, read by marks and "
                f"texts of options; wordings: {one.review}; real replies: not measured",
            )
            for one in options
        ]
    if what == "classifiers":
        from genprobe.judges.classifiers import cards

        known = [cards.load(name) for name in cards.names()]
        return [(c.name, f"{c.title}; {', '.join(c.languages)}; {c.figures()}") for c in known]
    if what == "scorers":
        from genprobe.outcomes import scorers

        return [
            (s.name, f"{' or '.join(s.passes)}: {s.about.partition(chr(10))[0]}")
            for s in scorers.SCORERS.values()
        ]
    if what == "metrics":
        from genprobe import metrics

        return [(m.name, m.title) for m in metrics.catalogue().values()]
    if what == "columns":
        from genprobe import tasks
        from genprobe.outcomes import columns, facts

        found = {column.name: column.about for column in columns.known().values()}
        for task in tasks.every():
            found |= {c.name: c.about for c in task.rows.columns if c.name not in found}
        return [*found.items(), *facts.COLUMNS.items()]
    if what == "data":
        from genprobe.datasets import pairs, sets

        public = [(name, sets.load(name).about) for name in sets.names()]
        return [*statements.DATA.items(), *pairs.NAMED.items(), *public]
    if what == "words":
        from genprobe.resources import page

        return [(term.name, term.text) for term in page.load(page.ENGLISH).terms]
    what = "reproduce" if what == "reproductions" else what
    return [(name, registry.about(what, name)) for name in registry.names(what)]
