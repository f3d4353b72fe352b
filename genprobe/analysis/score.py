"""Compute the scores of runs and files: `score`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe import files
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.records import Score, digest
from genprobe.render.scores import Scores
from genprobe.resources import measured, packs, registry
from genprobe.runs.run import Run
from genprobe.runs.spec import file_signer
from genprobe.tasks.pipeline import Note, quiet
from genprobe.tasks.pipeline.judge import judged_rows
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.analysis.second import Beside

Source = str | os.PathLike[str]  # a run, its folder, or a file


def score(
    sources: Source | Sequence[Source],
    *,
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    declared: bool = False,
    reviewed: str | Path | None = None,
    scorers: Sequence[str] = (),
    perplexity: bool = False,
    people: str | Path | None = None,
    band: bool = False,
    regions: Sequence[str] = (),
    league: str = "",
    note: Note = quiet,
) -> Scores:
    """Score run folders, or files of judged replies or scored pairs, each source by itself.

    sources: run folders and files (JSONL, CSV, Parquet), one or several. metrics: their names; the
    default ones if empty. by: columns by which figures are grouped. If empty: language and probe,
    domain if the rows have one, and model if there are several; `source` is added if two sources
    share a cell. Facts about models, `region` and `inside` can be given, too (outcomes/facts.py).
    declared: count only recognised declarations. reviewed: a table of `review import`; each rate is
    returned as measured and corrected. scorers: for log-probability runs; if empty, those of the
    run. perplexity: the values in files of pairs are perplexities, of which the lower is preferred.
    people: a table of people's agreement with the stereotypes of choices
    (`outcomes.external.with_people`). band: also return each rate of yes/no answers by the other
    readings (band.py). regions: count only stereotypes known in one of these. league: a
    column, such as `lang`, whose values are also set in order by partly pooled shares (league.py).
    note: called with every message and caution.

    Returns the scores. Those of a run are also written to its `scores.json`, its outcomes to
    `outcomes.csv`, once all sources are counted. Raises InputError with a message of one line.
    """
    from genprobe.analysis import second
    from genprobe.metrics import thoughts
    from genprobe.outcomes import columns as known_columns

    how = _How(
        *(listed(metrics), listed(by), declared, reviewed),
        *(scorers, perplexity, people, band),
        *(regions, league, note),
    )
    how.check()
    tables = [_table(source, how) for source in sources_of(sources)]
    tables.sort(key=lambda one: one.run.spec.order if one.run else ("", []))
    columns = _columns(tables, how.by)
    for line in (*_capitals(tables, how.by), *_several_readers(tables)):
        note(Caution(line))
    scores = {table.source: _counted(table, tables, columns, how) for table in tables}
    for table in tables:
        unread = _left_unread(table, scores[table.source])
        drawn = table.run.spec.drawn_otherwise if table.run else ""
        lines = (drawn, thoughts.too_many_cut(table.outcomes), *unread, *_changed(table.outcomes))
        for line in filter(None, lines):
            note(Caution(f"{table.source}: {line}"))
        for line in second.told(table.run) if table.run else ():
            note(type(line)(f"{table.source}: {line}"))
    if not any(scores.values()):
        raise InputError(f"{tables[0].source}: nothing could be counted; see docs/measures.md")
    for table in tables:
        if table.run:
            rows = functools.partial(_plain_rows, table.outcomes)
            table.run.write_scores(scores[table.source], rows, known_columns.kinds())
    return Scores(_told_apart(scores))


@dataclass(frozen=True)
class _How:
    """The arguments of `score`."""

    metrics: Sequence[str]
    by: Sequence[str]
    declared: bool
    reviewed: str | Path | None
    scorers: Sequence[str]
    perplexity: bool
    people: str | Path | None
    band: bool
    regions: Sequence[str]
    league: str
    note: Note

    def check(self) -> None:
        """Raise InputError for an unknown metric, or for one that perplexities do not allow."""
        from genprobe import metrics as measures

        for name in self.metrics:
            if self.perplexity and measures.find(name).of_logs:
                raise InputError(f"{name} needs log-probabilities, and the values are perplexities")

    @property
    def subset(self) -> str:
        """Return the part of a signature that says which rows are counted and how."""
        text = ("+declared" if self.declared else "") + ("+perplexity" if self.perplexity else "")
        return text + (f"+regions:{','.join(sorted(self.regions))}" if self.regions else "")


@dataclass(frozen=True)
class _Table:
    """One source with its outcomes.

    reader: the signature of the judge of its yes/no answers, None if unknown. beside: the tables by
    its second reader, and by its answers when asked again.
    """

    source: Path
    run: Run | None
    outcomes: pd.DataFrame
    reader: str | None
    beside: Beside | None = None


def _table(source: Path, how: _How) -> _Table:
    """Read the outcomes of one source."""
    from genprobe.analysis import second
    from genprobe.metrics.rates import other_forms
    from genprobe.outcomes import facts, table

    run = Run.open(source) if source.is_dir() else None
    try:
        if run and how.perplexity:
            raise InputError("--perplexity is only for files of pairs; leave it out for a run")
        if how.scorers and not (run and run.spec.decode == ("score",)):
            raise InputError("--scorer can be used only with a run of logprob")
        if run:
            _cut_off(source, run, how.note)
            outcomes = table.outcomes(run, how.scorers)
            reader = run.judges().get("yesno")
        else:
            rows, reader = _answered(source, how.band)
            outcomes = table.from_rows(rows, how.perplexity)
            for line in table.oddities(rows, outcomes):
                how.note(Caution(f"{source}: {line}"))
        if how.people is not None:
            outcomes = _with_people(source, outcomes, Path(how.people))
        for line in () if how.declared or "type" in how.by else other_forms(outcomes):
            how.note(f"{source}: {line}")

        def more(found: pd.DataFrame) -> pd.DataFrame:
            return facts.beside(found, how.by, how.regions)

        beside = second.beside(run, lambda view: more(table.outcomes(view))) if run else None
        return _Table(source, run, more(outcomes), reader, beside)
    except InputError as error:
        raise _about(source, error) from None


def _columns(tables: Sequence[_Table], by: Sequence[str]) -> list[str]:
    """Choose the columns by which figures are grouped.

    These are the requested ones; else language, probe and domain if all tables have them, and model
    or revision if they differ.
    """
    every = [set(table.outcomes) for table in tables]
    columns = list(by) or [c for c in ("lang", "probe") if all(c in there for there in every)]
    if not by and all("domain" in there and there & {"usable", "pro"} for there in every):
        columns.append("domain")
    if not by:
        # A hash of files says less than the name of the run's folder, which is shown otherwise.
        specs = [table.run.spec for table in tables if table.run and table.run.spec.checkpoint]
        called = {(spec.model, spec.checkpoint) for spec in specs}
        several = len(called) > len({spec.model for spec in specs})
        several |= any(_of_revisions(table) for table in tables if not table.run)
        told = ["model", *(["revision"] if several else [])]
        columns[:0] = [name for name in told if len(_values_of(tables, name)) > 1]
    if _values_of(tables, "scorer") and "scorer" not in columns:
        columns.insert(0, "scorer")  # part of the figure's meaning, even if there is only one
    return columns


def _of_revisions(table: _Table) -> bool:
    """Return whether a file holds replies of several revisions of one model."""
    if "revision" not in table.outcomes or "model" not in table.outcomes:
        return "revision" in table.outcomes and table.outcomes["revision"].nunique() > 1
    return bool((table.outcomes.groupby("model")["revision"].nunique() > 1).any())


def _counted(table: _Table, tables: Sequence[_Table], columns: list[str], how: _How) -> list[Score]:
    """Compute the scores of one table, and note what a reader must know about them."""
    from genprobe import metrics as measures
    from genprobe.analysis.band import Readings
    from genprobe.metrics.rates import recognised_declarations

    source, run, chosen, more = table.source, table.run, table.outcomes, table.beside
    if how.declared:
        more = more and more.changed(lambda found: recognised_declarations(found)[0])
        chosen, left = recognised_declarations(chosen)
        reasons = ", ".join(f"{count} {why}" for why, count in left.items() if count)
        how.note(f"{source}: recognised declarations only; left out: {reasons or 'nothing'}")
    given = {"yesno": table.reader or "given"} if "answer" in chosen else {}
    sign = signer(source, run, how.subset, given)
    if how.people is not None:
        sign = _beside(sign, Path(how.people))
    # Measures that no judge has filled are left out, unless they were requested by name.
    names = how.metrics or [m for m in measures.default() if measures.find(m).fits(chosen)]
    whole = [n for n in names if not how.metrics and set(how.by) & set(measures.find(n).never_by)]
    if whole:
        names = [name for name in names if name not in whole]
        how.note(f"{source}: not split by {', '.join(how.by)}, and left out: {', '.join(whole)}")
    scores: list[Score] = []
    try:
        for cells, part in _by_cells(names, columns, asked=bool(how.by)):
            scores += measures.score(chosen, part, cells, sign)
        for name in [n for n in how.metrics if all(s.metric != n for s in scores)]:
            there = ", ".join(sorted(map(str, _values_of(tables, "scorer"))))
            of = f" by the scorers {there}" if there else ""
            line = f"{source}: {name} has nothing to count{of}; see docs/measures.md"
            how.note(Caution(line))
        for line in _of_judges(chosen, scores):
            how.note(Caution(f"{source}: caution: {line}"))
        if how.reviewed is not None:
            found = of_review(source, run, chosen, Path(how.reviewed), how.by, sign)
            for line in not_corrected(found):
                how.note(Caution(f"{source}: {line}"))
            scores += found
        if how.band:
            scores = Readings(chosen, table.reader).beside(scores)
        if how.league:
            cells = [column for column in columns if column != how.league]
            scores += _league(source, chosen, names, cells, how, sign)
        return more.scores(scores) if more else scores
    except InputError as error:
        raise _about(source, error) from None


def _league(
    source: Path,
    outcomes: pd.DataFrame,
    names: Sequence[str],
    by: Sequence[str],
    how: _How,
    sign: Callable[[str], str],
) -> Iterator[Score]:
    """Yield the league tables of the metrics asked for, else of the first that is a share."""
    from genprobe import metrics as measures
    from genprobe.analysis.league import league

    shares = [n for n in names if measures.find(n).pairable and measures.find(n).scale == "share"]
    for name in how.metrics or shares[:1]:
        for scores, line in league(outcomes, name, how.league, by, sign):
            how.note(f"{source}: {line}")
            yield from scores


def _of_judges(outcomes: pd.DataFrame, scores: Sequence[Score]) -> Iterator[str]:
    """Yield cautions about the measured accuracy of the judges on which these figures rest."""
    from genprobe.metrics import corrected, judged
    from genprobe.outcomes import sides

    yield from judged.outdated(scores)
    if "sentiment" in outcomes:
        yield from corrected.cautions(outcomes)
    yield from corrected.cannot_tell(scores)
    yield from _skewed(outcomes, scores)
    yield from sides.untold(outcomes)
    if "stance" in outcomes:
        langs = set(outcomes["lang"].dropna().astype(str))
        yield from filter(None, (measured.caution("refusal", langs),))


def _skewed(outcomes: pd.DataFrame, scores: Sequence[Score]) -> Iterator[str]:
    """Yield a caution if undecided replies may move a figure, as the rules lose yes and no unalike.

    It comes where they may move a figure further than its interval reaches (docs/reading.md).
    """
    from genprobe import metrics as measures
    from genprobe.tasks.pipeline.second import OPEN

    names = {s.metric for s in scores if s.value is not None and s.metric in packs.READ_AS}
    if not names or not {"lang", "probe", "when"} <= {*outcomes}:
        return
    read = measures.spoken(outcomes)
    if read.empty:
        return  # forced choices and probabilities are not read
    when = outcomes.drop_duplicates("probe").set_index("probe")["when"]
    cells = []
    for one in measures.score(read, sorted(names), ["lang", "probe"], str):
        known = measured.real().get((str(one.by["lang"]), packs.READ_AS[one.metric]))
        if known is None or one.value is None or one.low is None or one.high is None:
            continue
        unread = sum(one.excluded.get(kind, 0) for kind in OPEN)
        share = one.value if when[one.by["probe"]] == "yes" else 1 - one.value
        shift = abs(known.shift(share, unread / (one.n + unread)))
        if shift > (one.high - one.low) / 2:
            where = f"{one.metric} ({one.by['lang']}, {one.by['probe']})"
            cells.append((shift, f"{where} by {100 * shift:.1f} points: {known.told()}"))
    if cells:
        more = f"; and {many(len(cells) - 1, 'figure')} more" if len(cells) > 1 else ""
        yield (
            "undecided replies may move figures further than their intervals reach, as the rules "
            f"lose yes and no unalike: {max(cells)[1]}{more}; have people or a second reader read "
            "them"
        )


def _cut_off(source: Path, run: Run, note: Note) -> None:
    """Note which replies an interrupted run lacks, and judge its replies if no judge has."""
    from genprobe import tasks

    planned, answered = run.counts()
    if answered < planned:
        there = set(run.answered())
        missing = planned - len(there | {failure.request for failure in run.failures()})
        if missing:
            note(
                Caution(
                    f"{source}: {missing:,} of {planned:,} requests were not asked yet; the "
                    "figures are of the others; the command of the run asks the rest"
                )
            )
    own = tasks.of(run.spec).judges
    decodes = ("free",) if run.spec.decode == ("recorded",) else run.spec.decode
    names = list(dict.fromkeys(name for one in decodes for name in own.get(one, ())))
    if answered and names and not run.judges().keys() & set(names):
        note(Caution(f"{source}: no judge has read these replies; now read by {', '.join(names)}"))
        tasks.judge_run(run, names)


def _changed(outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield a line if the model that the replies name, or its fingerprint, changed in the run."""
    for column, what in (("served", "model"), ("fingerprint", "fingerprint of the server")):
        if column in outcomes:
            counts = outcomes[column].dropna().value_counts()
            if len(counts) > 1:
                parts = ", ".join(f"{name} {n}" for name, n in counts.items())
                yield f"the {what} changed within the run: {parts}; --by {column} tells them apart"


def _left_unread(table: _Table, scores: Sequence[Score]) -> Iterator[str]:
    """Yield a line if no judge has read some replies of a run."""
    if table.run and (unread := _unread(scores)):
        what = f"{many(unread, 'reply')} not read by a judge yet and left out"
        yield f"{what}; `genprobe judge {table.source}` reads them"


def _unread(scores: Sequence[Score]) -> int:
    """Count the replies that some measure leaves out because no judge has read them."""
    count: Counter[str] = Counter()
    for score in scores:
        count[score.metric] += score.excluded.get("unjudged", 0)
    return max(count.values(), default=0)


def _by_cells(
    names: Sequence[str], columns: list[str], asked: bool
) -> Iterator[tuple[list[str], list[str]]]:
    """Group the metrics by the columns that split them.

    If columns were requested, they are used for all metrics. Otherwise each metric uses the default
    columns that may split it; metrics of the whole table use none and come last.
    """
    from genprobe import metrics as measures

    def cells(name: str) -> list[str]:
        metric = measures.find(name)
        if asked:
            return columns
        return [] if metric.whole else [c for c in columns if c not in metric.never_by]

    last = sorted(names, key=lambda name: not asked and measures.find(name).whole)
    for own, part in itertools.groupby(last, key=cells):
        yield own, list(part)


def sources_of(given: Source | Sequence[Source]) -> list[Path]:
    """Return one source or several as a list without duplicates."""
    several = [given] if isinstance(given, str | os.PathLike) else given
    return list(dict.fromkeys(map(Path, several)))


def listed(given: str | Sequence[str]) -> Sequence[str]:
    """Return one name or several as a sequence."""
    return [given] if isinstance(given, str) else given


def _answered(source: Path, read: bool) -> tuple[pd.DataFrame, str | None]:
    """Return the rows of a file with their answers, and the signature of their reader.

    If the file has replies without answers, the judge `yesno` reads them on request. The signature
    is None if the reader is unknown.
    """
    import pandas as pd

    rows = files.read_frame(source)
    if not read or "answer" in rows or "response" not in rows:
        return rows, None
    judge = registry.module("judges", "yesno").make()
    judged = list(judged_rows(source, [judge]))
    return pd.DataFrame(judged, rows.index, dtype=object), judge.signature


def _values_of(tables: Sequence[_Table], column: str) -> set[Any]:
    """Return the values of a column; none if one of the tables lacks it."""
    if not all(column in table.outcomes for table in tables):
        return set()
    return {value for table in tables for value in set(table.outcomes[column])}


def _capitals(tables: Sequence[_Table], by: Sequence[str]) -> Iterator[str]:
    """Yield a line for values of a column that differ only in capital letters."""
    for column in by:
        alike: dict[str, list[str]] = {}
        for value in sorted(v for v in _values_of(tables, column) if isinstance(v, str)):
            alike.setdefault(value.casefold(), []).append(value)
        for same in alike.values():
            if len(same) > 1:
                names = " and ".join(map(repr, same))
                yield f"{column}: {names} differ only in capital letters and are counted apart"


def _several_readers(tables: Sequence[_Table]) -> Iterator[str]:
    """Yield a line for each judge that read several runs in different versions."""
    read: dict[str, dict[str, Path]] = {}
    for table in tables:
        for name, read_by in (table.run.judges() if table.run else {}).items():
            # People's labels of a sample belong to one run.
            if not name.startswith("reviewed-"):
                read.setdefault(name, {}).setdefault(read_by, table.source)
    for name, sources in read.items():
        if len(sources) > 1:
            folders = " and ".join(map(str, sources.values()))
            yield (
                f"{folders} were read by different judges {name!r}, so their figures differ by the "
                "reader, too; have one read all (`genprobe judge`)"
            )


def _with_people(source: Path, outcomes: pd.DataFrame, people: Path) -> pd.DataFrame:
    from genprobe.outcomes import external

    if "p_target" not in outcomes:
        raise InputError(
            f"{source} has no probabilities of choices to compare with people's answers"
        )
    try:
        return external.with_people(outcomes, files.read_frame(people))
    except InputError as error:
        raise _about(people, error) from None


def of_review(
    source: Path,
    run: Run | None,
    outcomes: pd.DataFrame,
    table: Path,
    by: Sequence[str],
    sign: Callable[[str], str],
) -> list[Score]:
    """Return the rates that a review is about, as measured and as corrected.

    table: of `review import`. sign: metric, version and method -> signature. Raises InputError for
    another kind of table, or one without this run.
    """
    from genprobe.metrics import spoken
    from genprobe.review import corrected_rates

    if run is None:
        raise InputError("a review corrects the rates of a run; name its folder")
    said, sign_of = review_of(run, table)
    found = corrected_rates.scores(spoken(outcomes), said, by)  # people read free replies
    return [dataclasses.replace(s, signature=sign(sign_of(s.metric))) for s in found]


def review_of(run: Run, table: Path) -> tuple[pd.DataFrame, Callable[[str], str]]:
    """Return what a table of `review import` says of a run, and a function for signatures.

    The function returns a metric with its version and the table. Raises InputError for another kind
    of table, or one without this run.
    """
    import pandas as pd

    from genprobe.review import collect as reviewed
    from genprobe.review import corrected_rates

    spec = run.spec.hash  # folders can be moved, so an item names its run by the hash of its spec
    answers = reviewed.read_table(table)
    if kind := next((r["stratum"] for r in answers if r["stratum"].startswith(reviewed.ONLY)), ""):
        part = kind.removeprefix(reviewed.ONLY).partition(" |")[0]
        raise InputError(
            f"{table}: was drawn from the {part} replies alone (--only); to correct rates, draw a "
            "sample of all replies"
        )
    rows = [r for r in answers if r["item"] == reviewed.item_id(spec, r["request"])]
    if not rows:
        raise InputError(f"{table} has no review of {run.folder}")
    columns = ["request", "reviewer", "question", "answer", "weight"]
    said = pd.DataFrame([r for r in rows if not r["repeat"]], columns=columns)
    content = digest(door.content(table).hex(), 8)
    return said, lambda metric: f"{corrected_rates.metric_id(metric)}+review-{content}"


def not_corrected(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the reasons why a review does not correct a rate."""
    from genprobe.review.corrected_rates import IN_PART

    without = {_cell(s) for s in scores if s.metric == "ppi" and s.value is None}
    read = [s for s in scores if s.metric == "judge-accuracy" and s.n]
    blind = [str(s.by["rate"]) for s in read if s.value is None]
    if blind:
        yield (
            f"not corrected: {', '.join(dict.fromkeys(blind))}: no reply with one of the judge's "
            "labels was reviewed, so its accuracy is unknown; review some of them"
        )
    seen = [s for s in read if s.value is not None and _cell(s) in without]
    if few := [str(s.by["rate"]) for s in seen if s.by["rate"] != "negrate"]:
        yield (
            f"not corrected: {', '.join(dict.fromkeys(few))}: all reviewed replies are about one "
            "statement; review more statements"
        )
    negrate = [s for s in scores if s.metric == "judge-accuracy" and s.by["rate"] == "negrate"]
    whole, part = sum(s.n for s in negrate), sum(s.excluded.get(IN_PART, 0) for s in negrate)
    cure = "answer all rows, and settle what reviewers differ on by `review export --disagreements`"
    if not any(dict(cell).get("rate") == "negrate" for cell in without):
        if part:
            yield (
                f"negrate: {whole} templates are reviewed completely and count, {part} only in "
                f"part; {cure}"
            )
    elif negrate:
        more = (
            cure
            if part
            else "`review export` with a larger --size, so that more templates are complete"
        )
        yield (
            "negrate is not corrected: it needs templates of at least two statements with all "
            f"their stories reviewed; here {whole} are complete and {part} only in part; {more}"
        )


def _cell(score: Score) -> tuple[tuple[str, Any], ...]:
    return tuple(score.by.items())


def _about(source: Path, error: InputError) -> InputError:
    """Return the error with the name of the source in front, if it does not contain it."""
    return error if str(error).startswith(f"{source}") else type(error)(f"{source}: {error}")


def _told_apart(scores: dict[Path, list[Score]]) -> list[Score]:
    """Return all scores; if two sources share a cell, the name of the source begins each cell."""
    found = [score for part in scores.values() for score in part]
    if len({(s.metric, *s.by.items()) for s in found}) == len(found):
        return found
    return [
        dataclasses.replace(s, by={"source": str(source), **s.by})
        for source, part in scores.items()
        for s in part
    ]


def signer(
    source: Path, run: Run | None, subset: str, given: Mapping[str, str]
) -> Callable[[str], str]:
    """Return a function from a metric to its signature over this source.

    given: judges of a file's labels.
    """
    if run:
        sign = run.signer()
    else:  # the file is read once; its labels are known by its hash, not by a judge
        sign = file_signer([source], given)
    return lambda name: sign(_metric_id(name) + subset)


def _beside(sign: Callable[[str], str], people: Path) -> Callable[[str], str]:
    """Add the table of people's answers to the signatures of the metrics that use it."""
    from genprobe import metrics as measures

    content = digest(door.content(people).hex(), 8)
    return lambda name: (
        sign(f"{measures.find(name).id}+people-{content}")
        if "/" not in name and "people" in measures.find(name).needs
        else sign(name)
    )


def _metric_id(name: str) -> str:
    """Return name and version of a metric, or a name that already has a version."""
    from genprobe import metrics as measures

    return name if "/" in name else measures.find(name).id


def _plain_rows(outcomes: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows of Python values, None for an empty cell."""
    import numpy as np

    def plain(column: pd.Series) -> list[Any]:
        cells = zip(column.tolist(), column.isna().tolist(), strict=True)
        values = (None if empty else value for value, empty in cells)
        return [value.item() if isinstance(value, np.generic) else value for value in values]

    names = [str(name) for name in outcomes.columns]
    # Column by column: testing each cell by itself takes four times as long.
    for row in zip(*(plain(outcomes[name]) for name in outcomes.columns), strict=True):
        yield dict(zip(names, row, strict=True))
