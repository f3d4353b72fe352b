"""People read a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genprobe.commands._console import noter, print_scores
from genprobe.commands._options import FORMAT, QUIET, VERBOSE, together
from genprobe.errors import Caution
from genprobe.text import many


@click.group("review", short_help="Have people read a sample of replies, and use what they say.")
def command() -> None:
    """Have people read a sample of replies, in a spreadsheet, and use what they say.

    \b
    genprobe review export RUN -o sample.csv --reviewers 2     a file for each of two
    genprobe review import sample-reviewer*.csv -o review.csv
    genprobe review agreement review.csv                       do they agree?
    genprobe review export RUN -o last.csv --disagreements review.csv
    """


@command.command(name="export", short_help="Write a blind sample for each reviewer.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN..."
)
@click.option("-o", "out", required=True, metavar="FILE.csv", help="How the files are called.")
@click.option(
    "--size",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="Replies; stories to the nearest whole template.",
)
@click.option(
    "--lang", "langs", multiple=True, metavar="CODE", help="Language asked in; may be repeated."
)
@click.option(
    "--reviewers", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="People."
)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Share of the sample that all of them read; the rest is dealt out.",
)
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of a reviewer's rows that come once more.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of sample and order.")
@click.option(
    "--only",
    default="",
    metavar="KIND",
    help="Only replies of this kind, as the judge read them; such as undecided.",
)
@click.option(
    "--disagreements",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="What `import` wrote: what its reviewers disagree on goes to one more reader.",
)
@click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="Q",
    help="Of prompts/review.toml, asked besides: fluency, repetition, switches, warning; may be "
    "repeated.",
)
@together(QUIET, VERBOSE)
def review_export(sources: tuple[Path, ...], out: str, quiet: bool, **asked: Any) -> None:
    """Write a blind sample of the replies of runs, one file for each reviewer.

    Of stories whole templates are drawn, with all of their stories.

    That is FILE.csv for one reviewer, FILE-reviewer1.csv, … for several. Beside them come
    FILE-instructions.txt, to read first, and FILE-key.json, which is not for the reviewers:
    `import` needs it.
    """
    from genprobe.review import sample as review

    note = noter(quiet)
    done = review.export(sources, out, **asked)
    drawn = f"from {many(done.strata, 'stratum')}"
    why = "on which reviewers differ" if asked["disagreements"] else drawn
    whole = f" (whole templates: {done.templates:,})" if done.templates else ""
    kind = f"{asked['only']} " if asked["only"] else ""
    replies = many(done.replies, "reply").replace(" ", f" {kind}", 1)
    note(f"{done.items:,} of {replies}{whole}, {why}")
    for path in (*done.files, done.page):
        note(f"for reviewers: {path}")
    note(f"not for reviewers: {done.key}")


@command.command(name="import", short_help="Take back what reviewers answered, and check it.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.csv..."
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of the export.  [default: FILE-key.json]",
)
@click.option(
    "-o", "out", default="review.csv", show_default=True, metavar="FILE", help="The table."
)
@together(QUIET, VERBOSE)
def review_import(paths: tuple[Path, ...], key: Path | None, out: str, quiet: bool) -> int:
    """Take back what reviewers answered: into one table, and into the runs as a judge's labels.

    What is missing, malformed or changed is printed, row by row (exit code 1); the rest counts.
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
        what = "adjudicated or of another export, which these sheets do not settle, stay"
        note(Caution(f"{many(done.kept, 'label')} {what}; delete the file to be rid of them"))
    return 1 if done.problems else 0


@command.command(name="agreement", short_help="How far reviewers agree, by question and language.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@together(FORMAT, VERBOSE)
def review_agreement(paths: tuple[Path, ...], form: str) -> None:
    """Compute how far reviewers agree with one another and with themselves.

    Raw agreement, Cohen's, Fleiss' and Krippendorff's coefficients, and each reviewer's repeated
    answers. Rows need `item`, `reviewer`, `question`, `answer`; an empty answer is a missing one.
    In a table shares of answers that agree are in %, coefficients from -1 to 1.
    """
    from genprobe.review.agreement import agreement

    print_scores(agreement(paths), form)
