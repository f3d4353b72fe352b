"""Data sets made, from people's words to pairs that one can measure with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import columns as columns_of
from genprobe.commands._console import noter, print_scores
from genprobe.commands._options import FORMAT, QUIET, VERBOSE, WRITER, together, writer
from genprobe.text import many

_SOURCE = click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
_OUT = click.option(
    "-o",
    "out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSONL, CSV, Parquet or XLSX by suffix; else JSONL on stdout.",
)
_LANG = click.option(
    "--lang", default="", metavar="CODE", help="Of all rows, where no column 'lang' says it."
)
_SEED = click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn.")


@click.group("dataset", short_help="Make a data set: collect, extract, group, fill, validate, …")
def command() -> None:
    """Make a data set, from people's words to pairs that one can measure with.

    \b
    genprobe dataset collect afristereo --html form.html      a form that is one file
    genprobe dataset collect afristereo answers-*.jsonl -o answers.csv
    genprobe dataset extract answers.csv -o extracted.csv     who, and what is said of them
    genprobe dataset group extracted.csv -o grouped.csv       near-duplicates
    genprobe dataset fill templates.csv -o pairs.csv          sentences from templates
    genprobe dataset validate export pairs.csv -o sheet.csv   to several people, and back
    genprobe dataset diversity pairs.csv
    genprobe dataset document kept.csv --about about.toml -o FOLDER

    Each step takes a table to a table, in which every row has an id and its history.
    """


@command.command(short_help="Ask people for stereotypes that they know.")
@click.argument("pack", metavar="PACK")
@click.argument(
    "answers", nargs=-1, type=click.Path(path_type=Path, exists=False), metavar="[ANSWERS...]"
)
@click.option("--lang", default="en", show_default=True, metavar="CODE", help="Of the pack.")
@click.option(
    "-o", "out", type=click.Path(path_type=Path), metavar="FILE", help="The table of answers."
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="Write a form instead: one file, which works without a network.",
)
@click.option(
    "--delete", metavar="CODE", help="Delete a respondent's answers from -o, by the code."
)
@click.option("--seed", type=int, help="Of the tasks that are drawn.")
@together(QUIET, VERBOSE)
def collect(
    pack: str,
    answers: tuple[Path, ...],
    lang: str,
    out: Path | None,
    html: Path | None,
    delete: str | None,
    seed: int | None,
    quiet: bool,
) -> None:
    """Ask one respondent in the terminal, or take in what forms saved.

    PACK is afristereo (a survey) or rubia (tasks, drawn), or a folder of prompts/elicitation.
    Without ANSWERS, a respondent is asked here, and the answers are added to -o. With them, the
    files that the form saved are put together into -o.
    """
    from genprobe.curation import collect as step
    from genprobe.curation import tables
    from genprobe.errors import InputError

    note = noter(quiet)
    if out is None and html is None:
        raise InputError("collect: give -o FILE, or --html FILE.html for a form")
    if delete and out is not None:
        note(f"{out}: {many(step.delete(out, delete), 'answer')} deleted")
        return
    asked = step.load(pack, lang)
    if html is not None:
        step.form(asked, html)
        said = "" if lang == "en" else f" --lang {lang}"
        back = f"genprobe dataset collect {pack} FILE…{said}"
        note(f"{html}: a form; what it saves comes back by `{back}`")
    elif answers and out is not None:
        rows, names = step.merge(answers, asked)
        tables.write(out, rows, names)
        people = len({row["respondent"] for row in rows})
        note(f"{out}: {many(len(rows), 'answer')} of {many(people, 'respondent')}")
    elif out is not None:
        count = step.interview(asked, out, _ask, click.echo, seed)
        note(f"{out}: {many(count, 'answer')} added")


def _ask(prompt: str) -> str:
    click.echo(f"{prompt} " if prompt else "", nl=False)
    click.echo("> ", nl=False)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@command.command(short_help="Find who is spoken of, and what is said of them.")
@_SOURCE
@click.option(
    "--rules",
    default="",
    metavar="R",
    help="A file of prompts/extraction; afristereo: the study's own, slips and all.  [default: "
    "those of each row's lang, else en]",
)
@_OUT
@together(QUIET, VERBOSE)
def extract(source: Path, rules: str, out: Path | None, quiet: bool) -> None:
    """Extract identity and attribute from sentences.

    FILE has `sentence`, and each row comes back with identity, attribute, rule, confidence and,
    where nothing was extracted, why; or `answer`, several sentences parted by commas, each of
    which becomes a row.
    """
    from collections import Counter

    from genprobe.curation import extract as step
    from genprobe.curation import tables

    rows, names = step.run(source, rules)
    tables.write(out, rows, names, dashes=names)
    found = Counter(row["excluded"] or "" for row in rows)
    note = noter(quiet)
    if not rules and tables.column(names, step.LANG) is None:
        note("no column for the language: extracted by the rules of en")
    note(f"{many(len(rows), 'row')}: {found.pop('', 0):,} extracted")
    for why, count in found.most_common():
        note(f"left out, {why}: {count:,}")


@command.command(short_help="Group near-duplicates and paraphrases.")
@_SOURCE
@click.option("--column", default="", metavar="COL", help="Of the texts, if not attribute or text.")
@click.option("--within", default="", metavar="COL", help="Only rows of one value share a group.")
@click.option(
    "--polarity", default="", metavar="COL|C", help="A column, or a sentiment classifier."
)
@click.option("--threshold", type=float, default=0.55, show_default=True, help="Least cosine.")
@click.option(
    "--linkage",
    default="average",
    show_default=True,
    metavar="L",
    help="average, complete, single.",
)
@click.option(
    "--model", default="", metavar="M", help="Embeddings: a folder; else character n-grams."
)
@click.option(
    "--sweep",
    metavar="T,…",
    help="Say what each of these thresholds makes, with silhouette and purity, and group nothing.",
)
@click.option("--truth", default="", metavar="COL", help="For --sweep: a known grouping.")
@_LANG
@_OUT
@together(QUIET, VERBOSE)
def group(
    source: Path,
    sweep: str | None,
    truth: str,
    out: Path | None,
    quiet: bool,
    **how: Any,
) -> None:
    """Group near-duplicates: each row comes back with its group, medoid and what contradicts it."""
    from genprobe.curation import group as step
    from genprobe.curation import tables
    from genprobe.errors import InputError

    note = noter(quiet)
    grouping = step.Grouping(**how)
    if sweep is not None:
        try:
            thresholds = [float(part) for part in columns_of(sweep)]
        except ValueError:
            raise InputError(f"--sweep takes numbers such as 0.4,0.5 and not {sweep!r}") from None
        found = step.sweep(source, grouping, thresholds, truth)
        tables.write(out, found, list(found[0]))
        return
    rows, names = step.run(source, grouping, note)
    tables.write(out, rows, names)
    groups = {row["group"] for row in rows if row["group_size"]}
    shared = len({row["group"] for row in rows if row["group_size"] > 1})
    against = sum(row["medoid"] and row["contradicts"] != "" for row in rows)
    note(f"{many(len(rows), 'row')} in {many(len(groups), 'group')}, {shared:,} of two or more")
    if against:
        note(f"groups that another of the other polarity contradicts: {against:,}")


@command.group(short_help="Have several people judge rows, and keep what they confirm.")
def validate() -> None:
    """Have several people judge pairs or sentences, and keep what enough of them confirm.

    \b
    genprobe dataset validate export pairs.csv -o sheet.csv --annotators 7
    genprobe dataset validate import sheet-?.csv --key sheet-key.json -o votes.csv
    genprobe dataset validate keep pairs.csv --votes votes.csv -o kept.csv
    """


_QUESTIONS = click.option(
    "--questions",
    "name",
    default="aqbileq",
    show_default=True,
    metavar="Q",
    help="aqbileq, rubia, pbbq, or a file of prompts/validation.",
)


@validate.command(name="export", short_help="Write one blind sheet an annotator.")
@_SOURCE
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="How the files are called.",
)
@_QUESTIONS
@click.option(
    "--annotators",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    metavar="N",
    help="People.",
)
@click.option(
    "--each",
    type=int,
    default=0,
    metavar="N",
    help="Of whom so many read each row.  [default: all]",
)
@click.option(
    "--repeats",
    type=float,
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of a sheet that comes once more.",
)
@_SEED
@_LANG
@together(QUIET, VERBOSE)
def validate_export(source: Path, out: Path, quiet: bool, **asked: Any) -> None:
    """Write one blind sheet an annotator, each in an order of its own, and the key."""
    from genprobe.curation import validate as step

    note = noter(quiet)
    *sheets, key = step.export(source, out, **asked)
    for path in sheets:
        note(f"for an annotator: {path}")
    note(f"not for annotators: {key}")


@validate.command(name="import", short_help="Take back what annotators answered.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SHEET..."
)
@click.option(
    "--key", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Of the export."
)
@_OUT
@together(QUIET, VERBOSE)
def validate_import(paths: tuple[Path, ...], key: Path, out: Path | None, quiet: bool) -> int:
    """Take back what annotators answered: a table of votes, item, rater, question, label.

    What is missing or malformed is printed to stderr (exit code 1); the rest counts.
    """
    from genprobe.commands._console import say
    from genprobe.curation import tables
    from genprobe.curation import validate as step

    votes, problems = step.collect(paths, key)
    tables.write(out, votes, step.VOTES)
    for line in problems:
        say(line)
    noter(quiet)(f"{many(len(votes), 'vote')}, {many(len(problems), 'problem')}")
    return 1 if problems else 0


@validate.command(name="keep", short_help="Count votes, and keep what enough people confirm.")
@_SOURCE
@click.option(
    "--votes",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="item, rater, label; may be repeated.",
)
@_QUESTIONS
@click.option("--rule", default="", metavar="R", help="5/7, >60%, >=50%; else the questions' own.")
@click.option("--model", default="", metavar="M", help="dawid-skene or glad, beside the majority.")
@click.option("--all", "every", is_flag=True, help="Write rows that are not kept, too.")
@click.option(
    "--kappas",
    type=click.Path(path_type=Path),
    metavar="FILE.svg",
    help="Draw kappa of every two annotators; .svg or .pdf.",
)
@_LANG
@_OUT
@together(FORMAT, QUIET, VERBOSE)
def validate_keep(
    source: Path,
    votes: tuple[Path, ...],
    every: bool,
    kappas: Path | None,
    out: Path | None,
    form: str,
    quiet: bool,
    **asked: Any,
) -> None:
    """Count votes, write what is kept with its votes, and print how far annotators agree."""
    from genprobe.curation import tables
    from genprobe.curation import validate as step
    from genprobe.report import agreement as figure
    from genprobe.review.agreement import agreement

    note = noter(quiet)
    done = step.keep(source, votes, **asked)
    scores = agreement(votes)
    if kappas is not None:
        figure.kappas(scores, kappas)
    rows = [row for row in done.rows if row["kept"] or every]
    tables.write(out, rows, done.columns)
    if out is not None:
        print_scores(scores, form)
    note(", ".join(f"{count:,} {what}" for what, count in done.counts.items()))
    for question in done.foreign:
        note(f"{question!r} is no question of {asked['name']!r}: kept where it is voted 'yes'")
    if done.unknown:
        note(f"votes on {many(len(done.unknown), 'item')} that {source} has not, left out")


@command.command(short_help="Measure how diverse texts are.")
@_SOURCE
@click.option("--by", metavar="COL,…", help="Columns that make the cells.")
@click.option("--column", default="", metavar="COL", help="Of the texts, if not text or sentence.")
@click.option("--model", default="", metavar="M", help="A BERT for homogenisation: a folder.")
@_SEED
@_LANG
@together(FORMAT, VERBOSE)
def diversity(source: Path, by: str | None, form: str, **asked: Any) -> None:
    """Print Self-BLEU, type-token ratio, n-gram diversity, compression ratio, homogenisation."""
    from genprobe.curation import diversity as step

    print_scores(step.run(source, columns_of(by), **asked), form)


@command.command(short_help="Fill templates with groups that agree.")
@_SOURCE
@click.option(
    "--lexicon",
    default="",
    metavar="FILE",
    help="A table of fillers of your own, instead of prompts/lexicon.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="At most N pairs of a template, balanced; 0: all.",
)
@click.option("--check", "only_check", is_flag=True, help="List faults, and fill nothing.")
@_SEED
@_LANG
@_OUT
@together(QUIET, VERBOSE)
def fill(source: Path, only_check: bool, out: Path | None, quiet: bool, **how: Any) -> int:
    """Fill templates: slots as in SHADES, [PLACEHOLDER] with lists, or contexts as in PBBQ.

    A filler that cannot agree is refused (exit code 2). What a reader should look at is listed.
    """
    from genprobe.curation import fill as step
    from genprobe.curation import tables

    if only_check:
        findings = step.check(source, step.Filling(**how))
        for one in findings:
            click.echo(f"{one.level}: {one.where}: {one.message}")
        return int(any(one.level == "error" for one in findings))
    rows, names, findings = step.run(source, step.Filling(**how))
    tables.write(out, rows, names)
    note = noter(quiet)
    for one in findings:
        note(f"to be read: {one.where}: {one.message}")
    note(many(len(rows), "row"))
    return 0


@command.command(short_help="Write a folder to publish: rows, card, Croissant.")
@_SOURCE
@click.option(
    "--about",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Who was asked, how, under which licence; docs/datasets.md has one to copy.",
)
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Its three files are written anew.",
)
@click.option(
    "--votes",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For the agreement of annotators; may be repeated.",
)
@click.option(
    "--rewordings",
    default="",
    metavar="FILE",
    help="id (of a pair: ID-o and ID-c1), rewording_1, rewording_2: held back.",
)
@click.option("--keep-about", is_flag=True, help="Publish what respondents said of themselves.")
@together(QUIET, VERBOSE)
def document(
    source: Path,
    about: Path,
    out: Path,
    votes: tuple[Path, ...],
    rewordings: str,
    keep_about: bool,
    quiet: bool,
) -> None:
    """Write a folder to publish: data.jsonl, README.md (the card) and croissant.json.

    `datasets.load_dataset` opens it, and `mlcroissant validate` accepts it. Rewordings go into
    FOLDER-held-back.jsonl, which is not to be published.
    """
    from genprobe.curation import document as step
    from genprobe.curation import validate as validating
    from genprobe.review.agreement import agreement

    if votes:
        validating.need_votes(source, votes)
    scores = agreement(votes) if votes else ()
    done = step.run(source, about, out, scores, rewordings, keep_about)
    note = noter(quiet)
    left = f", {done.left_out:,} left out" if done.left_out else ""
    note(f"{out}: {many(done.rows, 'row')}{left}; {done.canary}")
    if done.licence == step.UNKNOWN:
        note("no licence: until about.toml names one, nobody may use or pass on what is published")
    elif done.licence == "other":
        note("the hub has no identifier for this licence: the card gives its name, as 'other'")
    if done.held_back is not None:
        note(f"not to be published: {done.held_back}")
    if done.lacking:
        note(f"without two rewordings that differ: {many(done.lacking, 'row')}")


@command.command(short_help="To and from Label Studio, doccano, Potato, Google Forms, KoboToolbox.")
@click.argument(
    "sources", nargs=-1, type=click.Path(path_type=Path), metavar="FILE...", required=True
)
@click.option("--to", "to", metavar="TOOL", help="Write for a tool.")
@click.option("--from", "from_", metavar="TOOL", help="Read what a tool exports.")
@_QUESTIONS
@click.option("--pack", default="", metavar="P", help="For forms: the elicitation pack.")
@click.option("--lang", default="en", show_default=True, metavar="CODE", help="Of the pack.")
@click.option(
    "--votes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where votes of annotators go: item, rater, question, label.",
)
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is made.",
)
@together(QUIET, VERBOSE)
def convert(
    sources: tuple[Path, ...],
    to: str | None,
    from_: str | None,
    out: Path,
    quiet: bool,
    **how: Any,
) -> None:
    """Hand rows, or answers, to the tool that you use, and take them back without loss.

    \b
    genprobe dataset convert pairs.csv --to label-studio -o tasks.json
    genprobe dataset convert export.json --from label-studio --votes votes.csv -o pairs.csv
    genprobe dataset convert survey --to xlsform --pack afristereo -o form.xlsx
    genprobe dataset convert responses.csv --from google-forms --pack afristereo -o answers.csv

    TOOL is label-studio, doccano or potato, for rows that annotators judge, or google-forms or
    xlsform, for answers of an elicitation pack. With `--to xlsform` and FILE `survey` the form
    itself is written; with a table of answers, a CSV of submissions.
    """
    from genprobe.curation import exchange as step
    from genprobe.errors import InputError
    from genprobe.resources.registry import unknown

    tool = to or from_
    if tool is None or (to and from_):
        raise InputError("convert: give --to TOOL or --from TOOL")
    if tool not in step.TOOLS:
        raise unknown("tool", tool, step.TOOLS)
    if tool in step.FORMS and not how["pack"]:
        raise InputError(f"{tool} carries answers of an elicitation pack: name it with --pack")
    convert_rows = _convert_items if tool in step.ITEMS else _convert_answers
    convert_rows(sources, tool, bool(to), out, noter(quiet), **how)


def _convert_items(
    sources: tuple[Path, ...],
    tool: str,
    there: bool,
    out: Path,
    note: Callable[[str], None],
    name: str,
    votes: Path | None,
    **_: Any,
) -> None:
    """Write rows for annotators of a tool, or read rows and votes of what it exports."""
    from genprobe.curation import exchange as step
    from genprobe.curation import tables

    if there:
        for path in step.write(sources[0], tool, out, name):
            note(f"for {tool}: {path}")
        return
    rows, found = step.read(sources, tool)
    if rows:
        tables.write(out, rows, list(dict.fromkeys(n for row in rows for n in row)))
    if votes is not None:
        tables.write(votes, found, step.VOTES)
    note(f"{many(len(rows), 'row')}, {many(len(found), 'vote')}")


def _convert_answers(
    sources: tuple[Path, ...],
    tool: str,
    there: bool,
    out: Path,
    note: Callable[[str], None],
    pack: str,
    lang: str,
    **_: Any,
) -> None:
    """Write a form, or answers as a tool has them, or read the answers that it exports."""
    from genprobe.curation import collect as packs
    from genprobe.curation import exchange as step
    from genprobe.curation import tables

    asked = packs.load(pack, lang)
    if there and str(sources[0]) == "survey":
        step.form(asked, out)
        note(f"{out}: a form for KoboToolbox or ODK")
    elif there:
        people = step.write_answers(sources[0], tool, asked, out)
        note(f"{out}: {many(people, 'respondent')}")
    else:
        answers, notes = step.read_answers(sources, tool, asked)
        tables.write(out, answers, asked.columns)
        for line in notes:
            note(line)
        note(f"{out}: {many(len(answers), 'answer')}")


@command.command(short_help="Have a model continue ambiguous contexts, for people to read.")
@_SOURCE
@WRITER
@_SEED
@_OUT
@together(QUIET, VERBOSE)
def disambiguate(source: Path, seed: int, out: Path | None, quiet: bool, **asked: Any) -> None:
    """Write `disambiguated` where a table of contexts lacks it, with PBBQ's prompt.

    A reader looks at each, as `to_read` says, and writes yes into `read_by_person`; until then
    `fill` refuses the row.
    """
    from genprobe.curation import disambiguate as step
    from genprobe.curation import tables

    note = noter(quiet)
    with writer("disambiguate", asked, note) as opened:
        rows, names = step.run(source, opened, seed)
    tables.write(out, rows, names)
    note(f"to be read by a person: {many(sum(bool(row['to_read']) for row in rows), 'row')}")
