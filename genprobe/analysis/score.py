"""Compute the scores of runs and files: `score`."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe import files, tasks
from genprobe.analysis.sources import about, answered, opened, signer
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.files.rows import Rows, Table, cells_of, rows_of
from genprobe.records import Score, digest
from genprobe.render.scores import Scores
from genprobe.resources import measured, packs, registry
from genprobe.resources.registry import listed
from genprobe.runs import seal
from genprobe.runs.run import OTHERS, Run
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.analysis.second import Beside


def score(
    sources: object,
    *,
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    declared: bool = False,
    reviewed: str | Path | None = None,
    rule: str = "",
    scorers: str | Sequence[str] = (),
    perplexity: bool = False,
    people: object = None,
    band: bool = False,
    regions: str | Sequence[str] = (),
    league: str = "",
    wide: bool = False,
    save: bool = False,
    export: str | Path | None = None,
    note: Note = quiet,
) -> Scores:
    """Score runs, or tables of judged replies or scored pairs, each source by itself.

    sources: runs, files (JSONL, CSV, Parquet), tables in memory (`files.rows.rows_of`) and logs of
    other harnesses, whose replies are read first; one or several. metrics: their names; the default
    ones if empty. by: columns by which figures are grouped. If empty: language and probe, domain if
    the rows have one, and model if there are several; `source` is added if two sources share a
    cell. Facts about models, `region` and `inside` can be given, too (outcomes/facts.py). declared:
    count only recognised declarations. reviewed: a table of `review import`; each rate is returned
    as measured and corrected. rule: `published` also returns NegRate of stories by the rule of its
    study. scorers: for log-probability runs; if empty, those of the run. perplexity: the values in
    files of pairs are perplexities, of which the lower is preferred. people: a table, or its file,
    of people's agreement with the stereotypes of choices (`outcomes.external.with_people`). band:
    also return each rate of yes/no answers by the other readings (band.py). regions: count only
    stereotypes known in one of these. league: a column, such as `lang`, whose values are also set
    in order by partly pooled shares (league.py). wide: display the values of the last column side
    by side, one table for each measure; without `by` and metrics the main measure, by model and
    language. save: write the scores of runs to their `scores.json`, beside those that are there (of
    the same question the newer), once all sources are counted. export: a file to which the rows
    that are counted are also written, with their texts, in the format of its suffix (CSV, JSONL,
    Parquet); of one source. note: called with every message and caution.

    Else nothing is written but `outcomes.parquet` of a run, its outcomes without texts, so that
    they are counted faster the next time.

    Raises InputError with a message of one line.
    """
    from genprobe.analysis import second
    from genprobe.metrics import thoughts

    names, by = listed(metrics, "metrics"), listed(by, "by")
    alone = wide and not names and not rule  # the main measure is shown
    by = by or (("model", "lang") if alone else ())
    if rule:
        if rule != RULE:
            raise registry.unknown("rule", rule, [RULE])
        names = (*names, "negrate", "negrate-corrected", f"negrate-{rule}")
    how = _How(
        *(names, by, declared, reviewed),
        *(listed(scorers, "scorers"), perplexity, None, band),
        *(listed(regions, "regions"), league, alone, note),
    )
    if people is not None:
        how = dataclasses.replace(how, people=rows_of(people, "people"))
    how.check()
    named = dict.fromkeys(opened(sources, note))
    if export is not None and len(named) > 1:
        raise InputError("--export writes the rows of one run or file; name one")
    tables = [_table(source, how) for source in named]
    tables.sort(key=lambda one: one.run.spec.order if one.run else ("", []))
    columns = _columns(tables, how.by)
    for line in (*_spellings(tables, how.by), *_several_readers(tables)):
        note(Caution(line))
    scores = {table.source: _counted(table, tables, columns, how) for table in tables}
    for table in tables:
        models = _values_of([table], "model") if "model" not in columns else set()
        if len(models) > 1:
            note(
                Caution(
                    f"{table.source}: {many(len(models), 'model')} are counted together; --by "
                    f"{','.join(['model', *columns])} tells them apart"
                )
            )
        drawn = table.run.spec.drawn_otherwise if table.run else ""
        unread = _unread(table, scores[table.source])
        lines = (drawn, thoughts.too_many_cut(table.outcomes), unread, *_changed(table.outcomes))
        for line in filter(None, lines):
            note(Caution(f"{table.source}: {line}"))
        for line in second.told(table.run) if table.run else ():
            note(type(line)(f"{table.source}: {line}"))
    if not any(scores.values()):
        raise InputError(f"{tables[0].source}: nothing could be counted; see docs/measures.md")
    for table in tables:
        if table.run and save:
            table.run.write_scores(scores[table.source], add=True)
    if export is not None:
        _export(tables, Path(export))
    found = Scores(_told_apart(scores))
    found.wide = wide
    return found


RULE = "published"  # of NegRate


@dataclass(frozen=True)
class _How:
    """The arguments of `score`."""

    metrics: Sequence[str]
    by: Sequence[str]
    declared: bool
    reviewed: str | Path | None
    scorers: Sequence[str]
    perplexity: bool
    people: Table | None
    band: bool
    regions: Sequence[str]
    league: str
    alone: bool
    note: Note

    def check(self) -> None:
        """Raise InputError for an unknown metric, or for one that perplexities do not allow."""
        from genprobe import metrics as measures

        for name in self.metrics:
            if self.perplexity and measures.find(name).of_logs:
                raise InputError(f"{name} needs log-probabilities, and the values are perplexities")

    @property
    def texts(self) -> bool:
        """Return whether whole texts are needed, or a table that is not kept in the folder."""
        from genprobe.outcomes import counted

        asked = bool(self.scorers) or self.band or self.reviewed is not None
        return asked or any(map(counted.is_text, self.by))

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

    source: Table
    run: Run | None
    outcomes: pd.DataFrame
    reader: str | None
    beside: Beside | None = None


def _table(source: Table, how: _How) -> _Table:
    """Read the outcomes of one source."""
    from genprobe.analysis import second
    from genprobe.metrics.rates import other_forms
    from genprobe.outcomes import counted, facts, table

    run = Run.open(source) if isinstance(source, Path) and source.is_dir() else None
    try:
        if run and how.perplexity:
            raise InputError("--perplexity is only for files of pairs; leave it out for a run")
        if how.scorers and not (run and run.spec.decode == ("score",)):
            raise InputError("--scorer can be used only with a run of logprob")
        if run:
            _cut_off(source, run, how.note)
            outcomes = table.outcomes(run, how.scorers) if how.texts else counted.counted(run, True)
            reader = run.judges().get("yesno")
        else:
            rows, reader = answered(source, how.band, how.texts)
            outcomes = table.from_rows(rows, how.perplexity)
            for line in table.oddities(rows, outcomes):
                how.note(Caution(f"{source}: {line}"))
            del rows
            outcomes = outcomes if how.texts else counted.compact(outcomes)
        if how.people is not None:
            outcomes = with_people(source, outcomes, how.people)
        for line in () if how.declared or "type" in how.by else other_forms(outcomes):
            how.note(f"{source}: {line}")

        def more(found: pd.DataFrame) -> pd.DataFrame:
            return facts.beside(found, how.by, how.regions)

        def view_of(view: Any) -> pd.DataFrame:
            return more(counted.compact(table.outcomes(view), ["request"]))

        beside = second.beside(run, view_of) if run else None
        return _Table(source, run, more(outcomes), reader, beside)
    except InputError as error:
        raise about(source, error) from None


def _columns(tables: Sequence[_Table], by: Sequence[str]) -> list[str]:
    """Choose the columns by which figures are grouped.

    These are the requested ones; else language, probe and domain if all tables have them, and model
    or revision if they differ.
    """
    from genprobe.outcomes import table

    every = [set(one.outcomes) for one in tables]
    columns = list(by) or [c for c in ("lang", "probe") if all(c in there for there in every)]
    if not by and all("domain" in there and there & {"usable", "pro"} for there in every):
        columns.append("domain")
    if not by:
        # A hash of files says less than the name of the run's folder, which is shown otherwise.
        specs = [one.run.spec for one in tables if one.run and one.run.spec.checkpoint]
        called = {(spec.model, spec.checkpoint) for spec in specs}
        several = len(called) > len({spec.model for spec in specs})
        rows = [one.outcomes for one in tables if not one.run and "revision" in one.outcomes]
        several |= any(table.several(one, "revision") for one in rows)
        told = ["model", *(["revision"] if several else [])]
        columns[:0] = [name for name in told if len(_values_of(tables, name)) > 1]
    if _values_of(tables, "scorer") and "scorer" not in columns:
        columns.insert(0, "scorer")  # part of the figure's meaning, even if there is only one
    return columns


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
        sign = sign_people(sign, how.people)
    # Measures that no judge has filled are left out, unless they were requested by name.
    names = how.metrics or [m for m in measures.default() if measures.find(m).fits(chosen)]
    whole = [n for n in names if not how.metrics and set(how.by) & set(measures.find(n).never_by)]
    if how.alone:
        heads = [one.ranked[0] for task in tasks.every() for one in task.tables if one.ranked]
        names = ([name for name in heads if name in names] or names)[:1]
    elif whole:
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
        raise about(source, error) from None


def _league(
    source: Table,
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
    if sides.COLUMN in outcomes:
        langs = set(outcomes["lang"].dropna().astype(str))
        yield from filter(None, (measured.caution("refusal", langs),))


def _skewed(outcomes: pd.DataFrame, scores: Sequence[Score]) -> Iterator[str]:
    """Yield a caution if undecided replies may move a figure, as the rules lose yes and no unalike.

    It comes where they may move a figure further than its interval reaches (docs/reading.md).
    """
    from genprobe import metrics as measures
    from genprobe.tasks.pipeline.second import OPEN

    figures = [s for s in scores if s.metric in packs.READ_AS]
    names = {s.metric for s in figures if s.value is not None}
    if not names or not {"lang", "probe", "when"} <= {*outcomes}:
        return
    read = measures.spoken(outcomes)
    if read.empty:
        return  # forced choices and probabilities are not read
    when = outcomes.drop_duplicates("probe").set_index("probe")["when"]
    cells = []
    if len(read) < len(outcomes) or any(s.by.keys() != {"lang", "probe"} for s in figures):
        figures = measures.score(read, sorted(names), ["lang", "probe"], str)
    for one in figures:
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


def _cut_off(source: Table, run: Run, note: Note) -> None:
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
            counts = outcomes[column].value_counts()
            if len(counts) > 1:
                parts = ", ".join(f"{name} {n}" for name, n in counts.items())
                yield f"the {what} changed within the run: {parts}; --by {column} tells them apart"


def _unread(table: _Table, scores: Sequence[Score]) -> str:
    """Say how many replies of a run no judge has read: of the measure that lacks most; else ""."""
    count: Counter[str] = Counter()
    for score in scores:
        count[score.metric] += score.excluded.get("unjudged", 0)
    unread = max(count.values(), default=0)
    if not table.run or not unread:
        return ""
    what = f"{many(unread, 'reply')} not read by a judge yet and left out"
    return f"{what}; `genprobe judge {table.source}` reads them"


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


def _values_of(tables: Sequence[_Table], column: str) -> set[Any]:
    """Return the values of a column; none if one of the tables lacks it."""
    if not all(column in table.outcomes for table in tables):
        return set()
    return {value for table in tables for value in table.outcomes[column].unique()}


def _spellings(tables: Sequence[_Table], by: Sequence[str]) -> Iterator[str]:
    """Yield lines for values that differ only in capital letters, or of which two are a number."""
    for column in dict.fromkeys([*by, *_NAMES]):
        alike: dict[str, list[str]] = {}
        for value in sorted(v for v in _values_of(tables, column) if isinstance(v, str)):
            number = _WHOLE.fullmatch(value)
            key = number[1] if number else value if column in _NAMES else value.casefold()
            alike.setdefault(key, []).append(value)
        found = [same for same in alike.values() if len(same) > 1]
        for numbers in (True, False):
            lines = [same for same in found if bool(_WHOLE.fullmatch(same[-1])) == numbers]
            for same in lines[:1] if numbers else lines:
                names = " and ".join(map(repr, same))
                what = "are one number" if numbers else "differ only in capital letters"
                more = f" (and {len(lines) - 1} more)" if numbers and len(lines) > 1 else ""
                yield f"{column}: {names} {what} and are counted apart{more}"


_WHOLE = re.compile(r"(\d+)\.0+")  # a whole number that went through a table of decimals
_NAMES = ("statement", "item", "pair")


def _several_readers(tables: Sequence[_Table]) -> Iterator[str]:
    """Yield a line for each judge that read several runs in different versions."""
    read: dict[str, dict[str, Table]] = {}
    for table in tables:
        for name, read_by in (table.run.judges() if table.run else {}).items():
            # People's labels of a sample belong to one run.
            if not name.startswith(OTHERS):
                read.setdefault(name, {}).setdefault(read_by, table.source)
    for name, sources in read.items():
        if len(sources) > 1:
            folders = " and ".join(map(str, sources.values()))
            yield (
                f"{folders} were read by different judges {name!r}, so their figures differ by the "
                "reader, too; have one read all (`genprobe judge`)"
            )


def with_people(source: Table, outcomes: pd.DataFrame, people: Table) -> pd.DataFrame:
    from genprobe.outcomes import external

    if "p_target" not in outcomes:
        raise InputError(
            f"{source} has no probabilities of choices to compare with people's answers"
        )
    try:
        return external.with_people(outcomes, files.read_frame(people))
    except InputError as error:
        raise about(people, error) from None


def of_review(
    source: Table,
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

    without = {tuple(s.by.items()) for s in scores if s.metric == "ppi" and s.value is None}
    read = [s for s in scores if s.metric == "judge-accuracy" and s.n]
    blind = [str(s.by["rate"]) for s in read if s.value is None]
    if blind:
        yield (
            f"not corrected: {', '.join(dict.fromkeys(blind))}: no reply with one of the judge's "
            "labels was reviewed, so its accuracy is unknown; review some of them"
        )
    seen = [s for s in read if s.value is not None and tuple(s.by.items()) in without]
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


def _told_apart(scores: dict[Table, list[Score]]) -> list[Score]:
    """Return all scores; if two sources share a cell, the name of the source begins each cell."""
    found = [score for part in scores.values() for score in part]
    if len({(s.metric, *s.by.items()) for s in found}) == len(found):
        return found
    return [
        dataclasses.replace(s, by={"source": str(source), **s.by})
        for source, part in scores.items()
        for s in part
    ]


def sign_people(sign: Callable[[str], str], people: Table) -> Callable[[str], str]:
    """Add the table of people's answers to the signatures of the metrics that use it."""
    from genprobe import metrics as measures

    if isinstance(people, Rows):
        content = people.digest()[:8]
    else:
        content = digest(door.content(people).hex(), 8)
    return lambda name: (
        sign(f"{measures.find(name).id}+people-{content}")
        if "/" not in name and "people" in measures.find(name).needs
        else sign(name)
    )


def _export(tables: Sequence[_Table], path: Path) -> None:
    """Write the rows of the only table; of a sealed run, each names the seal in its last column."""
    from genprobe.outcomes import counted, table

    [one] = tables
    if one.run is None:
        files.write_rows(path, plain_rows(_whole(one)))
        return
    name = seal.in_signature(one.run.folder)
    sealed = {"seal": name} if name else {}

    def rows(parts: Iterable[pd.DataFrame]) -> Iterator[dict[str, Any]]:
        return (row | sealed for part in parts for row in plain_rows(part))

    try:
        files.write_rows(path, rows(counted.with_texts(one.run)))
    except counted.OtherOrder:
        files.write_rows(path, rows([table.outcomes(one.run)]))


def _whole(one: _Table) -> pd.DataFrame:
    """Return the rows of a file, with the texts that are not held while they are counted."""
    from genprobe.outcomes import counted

    rows = files.read_frame(one.source).reset_index(drop=True)
    left = [c for c in rows if counted.is_text(c) and c not in one.outcomes]
    return one.outcomes.join(rows[left]) if len(rows) == len(one.outcomes) else one.outcomes


def plain_rows(outcomes: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows of Python values, None for an empty cell."""
    names = [str(name) for name in outcomes.columns]
    # Column by column: testing each cell by itself takes four times as long.
    for row in zip(*(cells_of(outcomes[name]) for name in outcomes.columns), strict=True):
        yield dict(zip(names, row, strict=True))
