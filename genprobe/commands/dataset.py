"""`genprobe dataset`: make a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import columns as columns_of
from genprobe.commands._console import noter, print_scores
from genprobe.commands._options import (
    FOLLOW,
    FORMAT,
    QUIET,
    VERBOSE,
    WRITER,
    Named,
    Option,
    together,
)
from genprobe.errors import Caution, InputError


def _text(*names: str, default: str = "", **said: Any) -> Option:
    """Make an option that takes a text; its default is shown unless it is empty."""
    return click.option(*names, default=default, show_default=bool(default) or None, **said)


def _path(*names: str, **said: Any) -> Option:
    """Make an option that takes a file or folder."""
    return click.option(*names, type=click.Path(path_type=Path), **said)


_SOURCE = click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
_OUT = _path(
    "-o",
    "out",
    metavar="FILE",
    help="Output file: JSONL, CSV, Parquet or XLSX by suffix; else JSONL on stdout.",
)
_LANG = _text(
    "--lang",
    type=Named("languages"),
    metavar="CODE",
    help="Language of the rows, if no column 'lang' gives it.",
)
_FROM = _path(
    "--from",
    "study",
    metavar="FOLDER",
    help="For rubia: the study's own texts, from your copy of its public repository.",
)
_SEED = click.option("--seed", type=int, default=0, show_default=True, help="Seed of random draws.")


@click.group("dataset", short_help="Make a data set: collect, extract, group, fill, validate, …")
def command() -> None:
    """Make a data set: from people's answers to pairs with which you can measure.

    \b
    genprobe dataset collect afristereo --html form.html      make a form for respondents
    genprobe dataset collect afristereo answers-*.jsonl -o answers.csv
    genprobe dataset extract answers.csv -o extracted.csv     find the group and the attribute
    genprobe dataset group extracted.csv -o grouped.csv       group near-duplicates
    genprobe dataset pair grouped.csv -o pairs.csv            write the opposite of each
    genprobe dataset fill templates.csv -o pairs.csv          make sentences from templates
    genprobe dataset validate export pairs.csv -o sheet.csv   let several people judge them
    genprobe dataset diversity pairs.csv
    genprobe dataset document kept.csv --about about.toml -o FOLDER

    Each step reads a table and writes a table, in which every row has an id and its history.
    """


@command.command(short_help="Ask people for stereotypes that they know.")
@click.argument("pack", metavar="PACK")
@click.argument(
    "answers", nargs=-1, type=click.Path(path_type=Path, exists=False), metavar="[ANSWERS...]"
)
@_text("--lang", default="en", metavar="CODE", help="Language of the pack.")
@_path("-o", "out", metavar="FILE", help="The table of answers.")
@_path(
    "--html",
    metavar="FILE.html",
    help="Write a form instead: one file that works without a network.",
)
@click.option(
    "--delete", metavar="CODE", help="Delete the answers of the respondent with this code from -o."
)
@_FROM
@click.option("--seed", type=int, help="Seed by which tasks are drawn.")
@together(FOLLOW, QUIET, VERBOSE)
def collect(
    pack: str,
    answers: tuple[Path, ...],
    lang: str,
    out: Path | None,
    html: Path | None,
    delete: str | None,
    study: Path | None,
    seed: int | None,
    quiet: bool,
) -> None:
    """Ask one respondent in the terminal, make a form, or collect what forms saved.

    PACK is afristereo (a survey), rubia (tasks, drawn at random), or a folder of
    prompts/elicitation. Without ANSWERS, a respondent is asked in the terminal, and the answers are
    added to -o. With ANSWERS, the files that the form saved are combined into -o.
    """
    from genprobe.curation import steps

    if out is None and html is None:
        raise InputError(
            "collect: no output is named; give -o FILE, or --html FILE.html for a form"
        )
    how: dict[str, Any] = {"lang": lang, "html": html, "delete": delete, "study": study}
    spoken: dict[str, Any] = {"ask": _ask, "say": click.echo, "seed": seed}
    steps.collect(pack, answers, out=out, note=noter(quiet), **how, **spoken)


def _ask(prompt: str) -> str:
    click.echo(f"{prompt} " if prompt else "", nl=False)
    click.echo("> ", nl=False)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@command.command(short_help="Find the group in a sentence, and what is said about it.")
@_SOURCE
@_text(
    "--rules",
    metavar="R",
    help="A file of prompts/extraction; afristereo has the study's rules with their errors.  "
    "[default: the rules of each row's language, else en]",
)
@_OUT
@together(QUIET, VERBOSE)
def extract(source: Path, rules: str, out: Path | None, quiet: bool) -> None:
    """Extract identity and attribute from sentences.

    FILE has a column `sentence`, or a column `answer` with several sentences separated by commas;
    each sentence becomes a row. The columns identity, attribute, rule and confidence are added and,
    if nothing was extracted, the reason.
    """
    from genprobe.curation import steps

    steps.extract(source, rules=rules, out=out or "-", note=noter(quiet))


@command.command(short_help="Group near-duplicates and paraphrases.")
@_SOURCE
@_text("--column", metavar="COL", help="Column of the texts, if not attribute or text.")
@_text("--within", metavar="COL", help="Only rows with the same value here can share a group.")
@_text(
    "--polarity",
    metavar="COL|C",
    help="Column or sentiment classifier that says which texts are negative.",
)
@click.option("--threshold", type=float, default=0.55, show_default=True, help="Lowest cosine.")
@_text("--linkage", default="average", metavar="L", help="average, complete or single.")
@_text("--model", metavar="M", help="Folder of an embedding model; else character n-grams.")
@click.option(
    "--sweep",
    metavar="T,…",
    help="Only print the groups, silhouette and purity that each of these thresholds gives.",
)
@_text("--truth", metavar="COL", help="For --sweep: column of a known grouping.")
@_LANG
@_OUT
@together(QUIET, VERBOSE)
def group(
    source: Path,
    sweep: str | None,
    out: Path | None,
    quiet: bool,
    **how: Any,
) -> None:
    """Group near-duplicates; add to each row its group, its medoid and what contradicts it."""
    from genprobe.curation import steps

    try:
        thresholds = [float(part) for part in columns_of(sweep)]
    except ValueError:
        raise InputError(f"--sweep takes numbers such as 0.4,0.5, not {sweep!r}") from None
    steps.group(source, sweep=thresholds, out=out or "-", note=noter(quiet), **how)


@command.command(short_help="Make pairs of a group, what is said of it, and its opposite.")
@_SOURCE
@_text(
    "--opposite",
    metavar="COL",
    help="Column of opposite attributes.  [default: opposite, if it is there]",
)
@_text(
    "--template",
    metavar="TEXT",
    help="Your own sentence, with {identity} and {attribute}.  [default: prompts/pairs]",
)
@_text(
    "--against", metavar="TEXT", help="Your own sentence of the opposite, instead of a negation."
)
@_LANG
@_OUT
@together(QUIET, VERBOSE)
def pair(source: Path, out: Path | None, quiet: bool, **how: Any) -> None:
    """Make pairs from the groups and attributes of `extract` and `group`, for `logprob`.

    The opposite is a column's, your template's, or a negation by the rules of the language. What is
    negated already, or what no rule negates, is left out and listed. Let people check the pairs:
    `genprobe dataset validate export pairs.csv --questions grammar`.
    """
    from genprobe.curation import steps

    steps.pair(source, out=out or "-", note=noter(quiet), **how)


@command.group(short_help="Have several people judge rows, and keep what they confirm.")
def validate() -> None:
    """Have several people judge pairs, sentences or groups, and keep what enough of them confirm.

    \b
    genprobe dataset validate export pairs.csv -o sheet.csv --annotators 7
    genprobe dataset validate import sheet-?.csv --key sheet-key.json -o votes.csv
    genprobe dataset validate keep pairs.csv --votes votes.csv -o kept.csv
    """


_QUESTIONS = _text(
    "--questions",
    "name",
    default="aqbileq",
    metavar="Q",
    help="A file of prompts/validation (aqbileq, rubia, pbbq, grammar, …), or your own FILE.toml.",
)


@validate.command(name="export", short_help="Write a blind sheet for each annotator.")
@_SOURCE
@_path("-o", "out", metavar="FILE", help="Name of the files, .csv or .xlsx.", required=True)
@_QUESTIONS
@click.option(
    "--annotators",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    metavar="N",
    help="Number of annotators.",
)
@click.option(
    "--each",
    type=int,
    default=0,
    metavar="N",
    help="How many of them read each row.  [default: all]",
)
@click.option(
    "--repeats",
    type=float,
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of a sheet that is repeated, to see how consistent an annotator is.",
)
@_text(
    "--reader-lang",
    metavar="CODE",
    help="Language of the annotators, in which questions and instructions are.  [default: that of "
    "the rows, else en]",
)
@_FROM
@_SEED
@_LANG
@together(QUIET, VERBOSE)
def validate_export(source: Path, out: Path, quiet: bool, **asked: Any) -> None:
    """Write a blind sheet for each annotator, each in its own order, and the key.

    A workbook (.xlsx) holds the instructions, offers the answers, and locks the rest; with CSV, the
    instructions are in FILE-instructions.txt.

    \b
    Questions that come with genprobe:
      aqbileq, rubia, pbbq   as the studies ask about pairs and statements
      grammar                are pairs made by rule correct, and opposites?
      aqbileq-translation    is a translation right, and if not, which kind of error is it?
      aqbileq-codeswitch     write each pair anew in Kazakh mixed with Russian
      afristereo-groups      do the texts of a group say the same?
    """
    from genprobe.curation import validate

    validate.export(source, out, note=noter(quiet), **asked)


@validate.command(name="import", short_help="Read the annotators' sheets and check them.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SHEET..."
)
@_path("--key", metavar="FILE", help="Key of export.", required=True)
@_OUT
@together(QUIET, VERBOSE)
def validate_import(paths: tuple[Path, ...], key: Path, out: Path | None, quiet: bool) -> int:
    """Read the annotators' answers into a table of votes: item, rater, question, label.

    Answers that are missing or invalid are printed to stderr (exit code 1); the others are used.
    """
    from genprobe.curation import steps

    told: list[str] = []
    steps.validate_import(paths, key=key, out=out or "-", note=told.append)
    for line in told:
        noter(quiet)(line)
    return int(any(isinstance(line, Caution) for line in told))


@validate.command(name="keep", short_help="Count votes, and keep what enough people confirm.")
@_SOURCE
@_path(
    "--votes",
    metavar="FILE",
    help="Table of votes: item, rater, label; may be repeated.",
    required=True,
    multiple=True,
)
@_QUESTIONS
@_text("--rule", metavar="R", help="Such as 5/7, >60% or >=50%; default that of the questions.")
@_text("--model", metavar="M", help="dawid-skene or glad, shown with the majority.")
@click.option("--all", "every", is_flag=True, help="Also write rows that are not kept.")
@_path("--kappas", metavar="FILE.svg", help="Draw the kappa of every two annotators; .svg or .pdf.")
@_LANG
@_OUT
@together(FORMAT, QUIET, VERBOSE)
def validate_keep(
    source: Path,
    votes: tuple[Path, ...],
    out: Path | None,
    form: str,
    quiet: bool,
    **asked: Any,
) -> None:
    """Count votes, write the rows that are kept, and print how far annotators agree."""
    from genprobe.api import data

    done = data.dataset_validate_keep(source, votes, out=out or "-", note=noter(quiet), **asked)
    if out is not None and done.scores:
        print_scores(done.scores, form)


@command.command(short_help="Measure how diverse texts are.")
@_SOURCE
@click.option("--by", metavar="COL,…", help="Columns by which figures are grouped.")
@_text("--column", metavar="COL", help="Column of the texts, if not text or sentence.")
@_text("--model", metavar="M", help="Folder of a BERT model, for homogenisation.")
@_SEED
@_LANG
@together(FORMAT, VERBOSE)
def diversity(source: Path, by: str | None, form: str, **asked: Any) -> None:
    """Print Self-BLEU, type-token ratio, n-gram diversity, compression ratio, homogenisation."""
    from genprobe.curation import diversity

    print_scores(diversity.run(source, by=columns_of(by), **asked), form)


@command.command(short_help="Fill templates with groups, in the right grammatical form.")
@_SOURCE
@_text("--lexicon", metavar="FILE", help="Your own table of fillers, instead of prompts/lexicon.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="At most N pairs for each template, balanced over groups; 0: all.",
)
@click.option("--check", "only_check", is_flag=True, help="Only list faults of the templates.")
@_SEED
@_LANG
@_OUT
@together(QUIET, VERBOSE)
def fill(source: Path, only_check: bool, out: Path | None, quiet: bool, **how: Any) -> int:
    """Fill templates: slots as in SHADES, [PLACEHOLDER] with lists, or contexts as in PBBQ.

    A filler without the grammatical form that a slot needs is an error (exit code 2). Sentences
    that a person should check are listed.
    """
    from genprobe.curation import steps

    if only_check:
        faults = steps.fill(source, only_check=True, **how)
        for one in faults:
            click.echo(f"{one['level']}: {one['where']}: {one['message']}")
        return int(any(one["level"] == "error" for one in faults))
    steps.fill(source, out=out or "-", note=noter(quiet), **how)
    return 0


@command.command(short_help="Write a folder to publish: rows, card, Croissant file.")
@_SOURCE
@_path(
    "--about",
    metavar="FILE.toml",
    help="Who was asked, how, and the licence; docs/datasets.md has one to copy.",
    required=True,
)
@_path("-o", "out", metavar="FOLDER", help="Folder; its three files are replaced.", required=True)
@_path(
    "--votes",
    metavar="FILE",
    help="Table of votes, for the agreement of annotators; may be repeated.",
    multiple=True,
)
@_text(
    "--rewordings",
    metavar="FILE",
    help="Table of rewordings that are held back: id (for a pair ID-o and ID-c1), rewording_1, "
    "rewording_2.",
)
@click.option("--keep-about", is_flag=True, help="Publish what respondents said about themselves.")
@together(QUIET, VERBOSE)
def document(source: Path, out: Path, quiet: bool, **asked: Any) -> None:
    """Write a folder to publish: data.jsonl, README.md (the card) and croissant.json.

    `datasets.load_dataset` opens it, and `mlcroissant validate` accepts it. Rewordings go into
    FOLDER-held-back.jsonl; do not publish that file.
    """
    from genprobe.api import data

    data.dataset_document(source, out, note=noter(quiet), **asked)


@command.command(short_help="Convert to and from Label Studio, doccano, Potato, forms.")
@click.argument(
    "sources", nargs=-1, type=click.Path(path_type=Path), metavar="FILE...", required=True
)
@click.option("--to", "to", metavar="TOOL", help="Write a file for this tool.")
@click.option("--from", "from_", metavar="TOOL", help="Read a file that this tool exported.")
@_QUESTIONS
@_text("--pack", metavar="P", help="For forms: the elicitation pack.")
@_text("--lang", default="en", metavar="CODE", help="Language of the pack.")
@_path(
    "--votes", metavar="FILE", help="File for the annotators' votes: item, rater, question, label."
)
@_path(
    "--source",
    metavar="FILE",
    help="With --from: the table that was converted, to join again what stayed here.",
)
@click.option(
    "--keep-about", is_flag=True, help="With --to: also send what respondents said of themselves."
)
@_path("-o", "out", metavar="FILE", help="Output file.", required=True)
@together(QUIET, VERBOSE)
def convert(sources: tuple[Path, ...], out: Path, quiet: bool, **asked: Any) -> None:
    """Convert rows or answers for the tool that you use, and back without loss.

    \b
    genprobe dataset convert pairs.csv --to label-studio -o tasks.json
    genprobe dataset convert export.json --from label-studio --votes votes.csv -o pairs.csv
    genprobe dataset convert survey --to xlsform --pack afristereo -o form.xlsx
    genprobe dataset convert responses.csv --from google-forms --pack afristereo -o answers.csv

    TOOL is label-studio, doccano or potato for rows that annotators judge, or google-forms or
    xlsform (KoboToolbox, ODK) for answers to an elicitation pack. With `--to xlsform`, FILE is
    `survey` to write the form itself, or a table of answers to write a CSV of submissions.
    """
    from genprobe.curation import steps

    steps.convert(sources, out, note=noter(quiet), **asked)


@command.command(short_help="Have a model continue ambiguous contexts, for people to read.")
@_SOURCE
@WRITER
@_SEED
@_OUT
@together(QUIET, VERBOSE)
def disambiguate(source: Path, out: Path | None, quiet: bool, **asked: Any) -> None:
    """Have a model write the missing continuations in a table of contexts, with PBBQ's prompt.

    In `disambiguated_reversed` the other group has the trait, in `disambiguated_aligned` the
    stereotyped one; `disambiguated-bias` needs both. A person must read the rows with `to_read`
    and write yes into `read_by_person`; until then `fill` refuses them.
    """
    from genprobe.api import data

    data.dataset_disambiguate(source, out=out or "-", note=noter(quiet), **asked)
