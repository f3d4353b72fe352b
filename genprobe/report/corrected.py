"""Correct the rates in a report by reviewers' answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from genprobe.analysis import score
from genprobe.errors import InputError
from genprobe.records import Score
from genprobe.report.sources import Source

# The corrected rate, for these wordings and others, the measured one, and people's answers alone.
TITLES = {
    "ppi": "corrected",
    "ppi-over-wordings": "corrected, over wordings like these",
    "measured": "as measured",
    "by-people": "by what people say",
}


def of_review(sources: Sequence[Source], reviewed: Path, whole: bool = False) -> list[Score]:
    """Correct the rates of runs by a table of reviewers' answers.

    reviewed: the table, made by `review import`. whole: one figure per run and rate, instead of one
    per language and question (for stories: per language and domain); there is none of a run that
    has languages that nobody reviewed. Returns each rate corrected, as measured and, for stories,
    by reviewers' answers alone. Raises InputError if the table corrects no rate of these runs.
    """
    found: list[Score] = []
    errors: list[InputError] = []
    for source in sources:
        columns = ["lang", "domain" if source.kind == "stories" else "probe"]
        by = [column for column in columns if column in source.outcomes and not whole]
        rows = (source.run.folder, source.run, source.whole(), reviewed, by, source.sign)
        try:
            scores = score.of_review(*rows)
        except InputError as error:
            errors.append(error)
            continue
        for metric in TITLES:
            found += source.named(one for one in scores if one.metric == metric)
    if not found and not whole:
        what = f"{reviewed} corrects no rate of these runs; give the table of their review"
        raise (errors or [InputError(what)])[0]
    return found
