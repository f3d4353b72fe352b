"""`genprobe review`: have people read a sample of replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter, print_scores
from genprobe.commands._options import FOLLOW, FORMAT, QUIET, VERBOSE, Named, together
from genprobe.errors import Caution
from genprobe.text import many


@click.group("review", short_help="Have people check how a sample of replies was read.")
def command() -> None:
    """Have people read a sample of replies in a spreadsheet, and correct rates by their answers.

    \b
    genprobe review plan RUN --points 5                        how many replies?
    genprobe review export RUN -o sample.csv --reviewers 2     a file for each of two
    genprobe review import sample-reviewer*.csv -o review.csv
    genprobe review agreement review.csv                       do they agree?
    genprobe review export RUN -o last.csv --disagreements review.csv
    """


@command.command(name="plan", short_help="Compute how many replies to review.")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--points",
    type=click.FloatRange(0, 50, min_open=True, max_open=True),
    default=5.0,
    show_default=True,
    metavar="POINTS",
    help="Wanted half width of the interval of a corrected rate.",
)
@together(FOLLOW, FORMAT, VERBOSE)
def review_plan(source: Path, points: float, form: str) -> None:
    """Compute how many replies people must read to correct the rates of a run to within POINTS.

    Reviews are simulated, drawn as `review export` draws them, for judges that are right about 98,
    95 and 90 % of the replies; intervals are those of `score --reviewed`.
    """
    from genprobe.api.data import review_plan as plan

    print_scores(plan(source, points=points), form)


@command.command(name="export", short_help="Write a blind sample for each reviewer.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN..."
)
@click.option("-o", "out", required=True, metavar="FILE", help="Name of the files, .csv or .xlsx.")
@click.option(
    "--size",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="Number of replies; stories are drawn as whole templates, so their number is rounded.",
)
@click.option(
    "--lang",
    "langs",
    type=Named("languages"),
    multiple=True,
    metavar="CODE",
    help="Only replies to questions in this language; may be repeated.",
)
@click.option(
    "--reviewers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of reviewers.",
)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Share of the sample that all reviewers read; the rest is divided among them.",
)
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of a reviewer's rows that are repeated, to see how consistent the reviewer is.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the sample and its order."
)
@click.option(
    "--only",
    multiple=True,
    metavar="KIND",
    help="Only replies that the judge gave this kind, such as undecided; may be repeated.",
)
@click.option(
    "--disagreements",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Table of `import`: export only the replies on which its reviewers disagree, for another "
    "reviewer.",
)
@click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="Q",
    help="Additional question of prompts/sheets: fluency, repetition, switches or warning; "
    "may be repeated.",
)
@click.option(
    "--reader-lang",
    default="",
    metavar="CODE",
    help="Language of the reviewers, in which instructions, heads and answers are.  [default: that "
    "of the replies, else en]",
)
@together(FOLLOW, QUIET, VERBOSE)
def review_export(sources: tuple[Path, ...], out: str, quiet: bool, **asked: Any) -> None:
    """Write a blind sample of the replies of runs, one file for each reviewer.

    For one reviewer that is FILE.csv, for several FILE-reviewer1.csv and so on.
    FILE-instructions.txt is for reviewers to read first; a workbook (.xlsx) holds it, offers the
    answers, and locks the rest. FILE-key.json is not for them: `import` needs it. Stories are drawn
    by template, with all stories of a template.
    """
    from genprobe.review import sample as review

    note = noter(quiet)
    done = review.export(sources, out, **asked)
    drawn = f"from {many(done.strata, 'stratum')}"
    why = "on which reviewers differ" if asked["disagreements"] else drawn
    whole = f" (whole templates: {done.templates:,})" if done.templates else ""
    kind = f"{' or '.join(asked['only'])} " if asked["only"] else ""
    replies = many(done.replies, "reply").replace(" ", f" {kind}", 1)
    note(f"{done.items:,} of {replies}{whole}, {why}")
    for path in filter(None, (*done.files, done.page)):
        note(f"for reviewers: {path}")
    note(f"not for reviewers: {done.key}")


@command.command(name="import", short_help="Read the reviewers' sheets and check them.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Key of the export.  [default: FILE-key.json]",
)
@click.option(
    "-o",
    "out",
    default="review.csv",
    show_default=True,
    metavar="FILE",
    help="The table of answers.",
)
@together(FOLLOW, QUIET, VERBOSE)
def review_import(paths: tuple[Path, ...], key: Path | None, out: str, quiet: bool) -> int:
    """Read the reviewers' answers into one table, and into the runs as labels of a judge.

    Answers that are missing, invalid or changed are printed row by row (exit code 1); the others
    are used.
    """
    from genprobe.review import collect as reviewed

    note = noter(quiet)
    done = reviewed.collect(paths, key, out)
    for line in reviewed.told(done.problems):
        click.echo(line)
    answers, problems = many(len(done.rows), "answer"), many(len(done.problems), "problem")
    note(f"{out}: {answers}, {problems}")
    for folder, counts in done.judged.items():
        for question, count in counts.items():
            note(f"{folder}/judgments/reviewed-{question}.jsonl: {many(count, 'label')}")
    if done.kept:
        what = "from an adjudicator or another export are kept, as these sheets do not cover them"
        note(Caution(f"{many(done.kept, 'label')} {what}; to drop them, delete the file"))
    return 1 if done.problems else 0


@command.command(
    name="agreement", short_help="Compute how far reviewers agree, by question and language."
)
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@together(FOLLOW, FORMAT, VERBOSE)
def review_agreement(paths: tuple[Path, ...], form: str) -> None:
    """Compute how far reviewers agree with one another and with themselves.

    Prints the share of answers that agree (in %), the coefficients of Cohen, Fleiss and
    Krippendorff (from -1 to 1), and how often each reviewer repeats an answer. Rows need `item`,
    `reviewer`, `question`, `answer`; an empty answer is missing.
    """
    from genprobe.review.agreement import agreement

    print_scores(agreement(paths), form)
