"""Runs and files to numbers: `score`, `compare`, `paradigms`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe import files, registry
from genprobe.errors import InputError, RunError
from genprobe.formats import model_names
from genprobe.reading import Note, judged_rows, quiet
from genprobe.records import Score, digest
from genprobe.scores import Scores
from genprobe.signature import WHO, both_signatures, file_signature, signature
from genprobe.store import Run
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

Source = str | os.PathLike[str]  # a run, its folder, or a file


_OF_LOGS = ("log-ratio", "bpr-t-test", "bias-score")  # measures of by how much


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
    note: Note = quiet,
) -> Scores:
    """Scores of run folders or of files of judged replies or scored pairs, each source by itself.

    metrics: `metrics.DEFAULT` where empty. by: the columns that make the cells; where empty
    language and probe, domain of what has one, and model if there are several; sources that share
    a cell all the same get `source` in front. declared: only the recognised declarations.
    reviewed: a table of `review import`; rates come as measured and as corrected by it, too.
    scorers: of log-prob runs; what they were asked for where empty.
    perplexity: the values of files of pairs are perplexities, lower is preferred. people: a table
    of what people say of the stereotypes of choices (`scored.with_people`). band: the rates of
    yes/no answers come with what other readers make of them (band.py). When all are counted,
    the scores of a run are also written to its `scores.json`, its outcomes to `outcomes.csv`.
    InputError in one line.
    """
    from genprobe import metrics as measures
    from genprobe import table
    from genprobe.band import Readings
    from genprobe.metrics.rates import recognised_declarations

    tables = []
    readers: dict[Path, str | None] = {}  # source -> the judge of its answers, where it is known
    metrics, by = _listed(metrics), _listed(by)
    for name in metrics:
        if perplexity and name in _OF_LOGS:
            raise InputError(f"{name} is of log-probabilities, and the values are perplexities")
    for source in _sources(sources):
        run = Run.open(source) if source.is_dir() else None
        try:
            if run and perplexity:
                raise InputError("--perplexity is for files of pairs; a run knows what it holds")
            if scorers and not (run and run.spec.decode == ("score",)):
                raise InputError("--scorer goes with a log-prob run")
            if run:
                outcomes = table.outcomes(run, scorers)
                readers[source] = run.judges().get("yesno")
            else:
                rows, readers[source] = (
                    _answered(source) if band else (files.read_rows(source), None)
                )
                outcomes = table.from_rows(rows, perplexity)
        except InputError as error:
            raise _about(source, error) from None
        if people is not None:
            outcomes = _with_people(source, outcomes, Path(people))
        tables.append((source, run, outcomes))
    every = [set(outcomes) for _, _, outcomes in tables]
    tables.sort(key=lambda one: one[1].spec.order if one[1] else ("", []))
    columns = list(by) or [c for c in ("lang", "probe") if all(c in there for there in every)]
    if not by and all("domain" in there and there & {"usable", "pro"} for there in every):
        columns.append("domain")
    differ = {name: _values_of(tables, name) for name in ("model", "revision", "scorer")}
    if not by:
        # A hash of files says less than the name of the run's folder, which is shown else.
        specs = [run.spec for _, run, _ in tables if run and run.spec.checkpoint]
        called = {(spec.model, spec.checkpoint) for spec in specs}
        several = len(called) > len({spec.model for spec in specs})
        told = ["model", *(["revision"] if several else [])]
        columns[:0] = [name for name in told if len(differ[name]) > 1]
    if differ["scorer"] and "scorer" not in columns:
        columns.insert(0, "scorer")  # belongs to the number, also where there is but one
    scores: dict[Path, list[Score]] = {}
    for source, run, outcomes in tables:
        chosen = outcomes
        if declared:
            chosen, left = recognised_declarations(outcomes)
            reasons = ", ".join(f"{count} {why}" for why, count in left.items() if count)
            note(f"{source}: recognised declarations only; left out: {reasons or 'nothing'}")
        subset = ("+declared" if declared else "") + ("+perplexity" if perplexity else "")
        given = {"yesno": readers[source] or "given"} if "answer" in chosen else {}
        sign = _signer(source, run, subset, given)
        if people is not None:
            sign = _beside(sign, Path(people))
        # What no judge has looked at is left out, unless it was asked for by name.
        names = metrics or [m for m in measures.DEFAULT if measures.find(m).fits(chosen)]
        try:
            scores[source] = []
            for cells, part in _by_cells(names, columns, asked=bool(by)):
                scores[source] += measures.score(chosen, part, cells, sign)
            for name in [n for n in metrics if all(s.metric != n for s in scores[source])]:
                there = ", ".join(sorted(map(str, differ["scorer"])))
                of = f" by the scorers {there}" if there else ""
                note(f"{source}: {name} has nothing to count{of}; see docs/measures.md")
            if reviewed is not None:
                found = _corrected(source, run, chosen, Path(reviewed), by, sign)
                for line in _uncorrected(found):
                    note(f"{source}: {line}")
                scores[source] += found
            if band:
                scores[source] = Readings(chosen, readers[source]).beside(scores[source])
        except InputError as error:
            raise _about(source, error) from None
    for source, run, outcomes in tables:
        if run:
            run.write_scores(scores[source], functools.partial(_plain_rows, outcomes))
    return Scores(_told_apart(scores))


def _by_cells(
    names: Sequence[str], columns: list[str], asked: bool
) -> Iterator[tuple[list[str], list[str]]]:
    """Columns of cells and the metrics that have them: those asked for, else of ours those by
    which a metric can be split; none of a metric of the whole, which come last."""
    from genprobe import metrics as measures

    def cells(name: str) -> list[str]:
        metric = measures.find(name)
        if asked:
            return columns
        return [] if metric.whole else [c for c in columns if c not in metric.never_by]

    last = sorted(names, key=lambda name: not asked and measures.find(name).whole)
    for own, part in itertools.groupby(last, key=cells):
        yield own, list(part)


def _sources(given: Source | Sequence[Source]) -> list[Path]:
    """What may be given as one or as several as several, each once."""
    several = [given] if isinstance(given, str | os.PathLike) else given
    return list(dict.fromkeys(map(Path, several)))


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _answered(source: Path) -> tuple[Iterator[files.Row], str | None]:
    """The rows of a file with the answers that they have; where they have replies only, with those
    of our reader, and its signature."""
    first = next(files.read_rows(source), {})
    if "answer" in first or "response" not in first:
        return files.read_rows(source), None
    judge = registry.module("judges", "yesno").make()
    return judged_rows(source, [judge]), judge.signature


def _values_of(tables: Sequence[tuple[Path, Run | None, pd.DataFrame]], column: str) -> set[Any]:
    """The values of a column that all tables have; none where one lacks it."""
    if not all(column in outcomes for _, _, outcomes in tables):
        return set()
    return {value for _, _, outcomes in tables for value in set(outcomes[column])}


def _with_people(source: Path, outcomes: pd.DataFrame, people: Path) -> pd.DataFrame:
    import pandas as pd

    from genprobe import scored

    if "p_target" not in outcomes:
        raise InputError(f"{source} holds no probabilities of choices to set beside people's")
    rows = pd.DataFrame(list(files.read_rows(people)), dtype=object)
    try:
        return scored.with_people(outcomes, rows)
    except InputError as error:
        raise _about(people, error) from None


def compare(
    first: Source,
    others: Source | Sequence[Source] = (),
    *,
    test: str = "paired",
    between: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    power: float | None = None,
    note: Note = quiet,
) -> Scores:
    """Runs compared by a test, and what it would take to show a difference (docs/inference.md).

    test: `paired` (`genprobe.compare.paired`: each of the other runs with the first, item by
    item), `anova` or `ks` (`genprobe.inference`). between: the column whose values are compared,
    of `anova` the factors; the model where empty, of `anova` all of `inference.FACTORS`. Two
    values of another column of one run are `paired`, too: all with all. metrics: where empty, of
    `paired` those that both sides have; of the rest the one that is most asked for. by: columns
    that make the cells; one cell of all where empty. power: points to plan for, in place of a
    test. Every p-value comes with itself corrected for all that are returned. What is left out is
    told to `note`. RunError where two runs differ in more than who was asked; InputError for what
    cannot be compared.
    """
    from genprobe import inference
    from genprobe import metrics as measures
    from genprobe.stats import resampled

    metrics, by, between = _listed(metrics), _listed(by), _listed(between)
    if test not in TESTS:
        raise registry.unknown("test", test, list(TESTS))
    if power is not None and test != "paired":
        raise InputError("--power plans a paired comparison; leave --test out")
    if test != "anova" and len(between) > 1:
        raise InputError(
            f"--test {test} compares the values of one column; --test anova of several"
        )
    asked = _Asked.open([first, *_sources(others)])
    if test == "paired":
        column = between[0] if between else "model"
        sides = asked.sides(column) if len(asked.runs) > 1 or column != "model" else []
        if power is None and not sides:
            raise InputError(
                f"{first} is compared with nothing; give another run, or --between COLUMN"
            )
        scores = (
            _power(asked, sides, metrics, by, power, note)
            if power is not None
            else _paired(sides, metrics, by, between)
        )
        return Scores(inference.corrected(scores))
    pooled = asked.pooled()
    columns = list(between) or (list(inference.FACTORS) if test == "anova" else ["model"])
    parts = []
    for name in metrics or [_main([pooled], by)]:
        cells = _apart(pooled, name, (*columns, *by))
        kept, left = inference.values(pooled, name, [*cells, *by, *columns])
        cells = [column for column in cells if kept[column].nunique() > 1]
        if not len(kept):
            raise InputError(f"{name}: no value is left to compare; {_reasons(left)}")
        parts.append((name, kept, [*cells, *by], left))
    tests = sum(_tests(test, kept, split, columns) for _, kept, split, _ in parts)
    how, draws = inference.ANOVA if test == "anova" else inference.KS, inference.enough(tests)
    scores = []
    for name, kept, split, left in parts:
        signed = asked.sign(f"{name}/{measures.find(name).version}+{resampled(how, draws)}")
        if test == "anova":
            scores += _anova(kept, name, split, columns, left, draws, signed, note)
        else:
            scores += _ks(kept, name, split, columns, left, draws, signed)
    more = ("bonferroni", "holm") if test == "ks" else ("holm",)
    return Scores(inference.corrected(scores, more))


TESTS = ("paired", "anova", "ks")
# What is tested of a run where nobody says: the first that it has.
_MAIN = ("bias-score", "endorsed", "negative-stories", "win-rate", "accuracy", "argues-for")


@dataclasses.dataclass(frozen=True)
class _Asked:
    """Runs that asked alike, under names that differ, and their outcomes."""

    runs: Sequence[Run]
    names: Sequence[str]
    tables: Sequence[pd.DataFrame]

    @staticmethod
    def open(folders: Sequence[Source]) -> _Asked:
        from genprobe import table

        runs = [Run.open(folder) for folder in folders]
        found = [run.folder.resolve() for run in runs]
        if twice := [
            run.folder for run, at in zip(runs, found, strict=True) if found.count(at) > 1
        ]:
            raise InputError(
                f"{twice[0]} is given twice, and a run is no evidence beside itself; give another"
            )
        for a, b in itertools.combinations(runs, 2):
            _asked_alike(a, b)
        for run in runs:
            if run.spec.command != "logprob" and not run.judges():
                raise RunError(f"{run.folder}: nothing is judged; run `genprobe judge` on it first")
        names = [name or run.folder.name for name, run in zip(_models(runs), runs, strict=True)]
        if len(set(names)) < len(names):
            names = [str(run.folder) for run in runs]
        return _Asked(runs, names, [table.outcomes(run) for run in runs])

    def sign(self, metric: str) -> str:
        return _signed_by([_signer(run.folder, run, "", {}) for run in self.runs])(metric)

    def pooled(self) -> pd.DataFrame:
        """All outcomes as one table, the runs by their names."""
        import pandas as pd

        named = zip(self.tables, self.names, strict=True)
        return pd.concat([t.assign(model=name) for t, name in named], ignore_index=True)

    def sides(self, column: str) -> list[_Sides]:
        """What is paired: every other run with the first, or values of a column of one run."""
        if column == "model":
            parts = list(zip(self.names, self.tables, self.runs, strict=True))
            pairs = [(parts[0], other) for other in parts[1:]]
        else:
            if len(self.runs) > 1:
                raise InputError(f"--between {column} pairs the rows of one run; give one")
            [outcomes], [run] = self.tables, self.runs
            if column not in outcomes:
                raise registry.unknown("column", column, [str(name) for name in outcomes.columns])
            groups = outcomes.groupby(column, sort=True)
            parts = [(str(value), table, run) for value, table in groups]
            if len(parts) < 2:
                raise InputError(f"{run.folder} has one {column}, and nothing to compare it with")
            pairs = list(itertools.combinations(parts, 2))
        found = []
        for (a, one, run), (b, other, second) in pairs:
            signers = [_signer(r.folder, r, "", {}) for r in dict.fromkeys((run, second))]
            found.append(_Sides(column, a, one, b, other, _signed_by(signers)))
        return found


@dataclasses.dataclass(frozen=True)
class _Sides:
    """Two tables whose units pair: which column tells them apart, and their values of it."""

    column: str
    a: str
    one: pd.DataFrame
    b: str
    other: pd.DataFrame
    sign: Callable[[str], str]

    def metrics(self, by: Sequence[str]) -> list[str]:
        from genprobe import compare as pairing
        from genprobe import metrics as measures

        return [
            name
            for name in measures.DEFAULT
            if pairing.fits(measures.find(name), (*by, self.column))
            and all(map(measures.find(name).fits, (self.one, self.other)))
        ]


def _paired(
    sides: Sequence[_Sides], metrics: Sequence[str], by: Sequence[str], between: Sequence[str]
) -> list[Score]:
    from genprobe import compare as pairing
    from genprobe import inference
    from genprobe import metrics as measures
    from genprobe.stats import BOOTSTRAP, resampled

    found = [
        (two, name, cell)
        for two in sides
        for name in metrics or two.metrics(by)
        for cell in pairing.matched(
            *(two.one, two.other, name),
            [*_apart(two.one, name, (*by, "model", two.column)), *by],
            two.column,
        )
    ]
    several = sum(bool(len(cell.pairs)) for _, _, cell in found)
    if not several:
        what = f"two values of {between[0]}" if between else "both"
        raise InputError(f"no unit counts for {what}; `--test ks` compares what is not paired")
    scores = []
    draws = inference.enough(several)
    how = f"{BOOTSTRAP}+{resampled(pairing.SWAP, draws)}"
    for two, name, cell in found:
        sign = two.sign(f"{name}/{measures.find(name).version}-{how}")
        scores += pairing.scores([pairing.tested(name, cell, draws)], two.a, two.b, sign)
    return scores


def _power(
    asked: _Asked,
    sides: Sequence[_Sides],
    metrics: Sequence[str],
    by: Sequence[str],
    points: float,
    note: Note,
) -> list[Score]:
    """Of two sides, by how they differ now; of a run alone, against a model as yet unasked."""
    from genprobe import compare as pairing
    from genprobe import inference
    from genprobe import metrics as measures
    from genprobe.stats import BOOTSTRAP

    names = metrics or [_main(asked.tables, by, share=True)]
    ids = {name: f"{name}/{measures.find(name).version}-{BOOTSTRAP}+power2" for name in names}
    scores = []
    for two, name in itertools.product(sides, names):
        columns = [*_apart(two.one, name, (*by, "model", two.column)), *by]
        for cell in pairing.matched(two.one, two.other, name, columns, two.column):
            about = {"of": name, "a": two.a, "b": two.b, **cell.by}
            if cell.alone:
                all_of = cell.alone + len(cell.pairs)
                note(f"{name}: {cell.alone} count on one side only, of {all_of}")
            if len(cell.sums) < 2:
                note(f"{name}: {_where(cell.by)}{_LONE}")
            else:
                a, b, units = cell.sums.T
                found = inference.power_paired(b - a, units, points)
                scores += inference.power_scores(found, about, two.sign(ids[name]))
    for name in names if not sides else ():
        columns = [*_apart(asked.tables[0], name, by), *by]
        kept, left = inference.values(asked.tables[0], name, columns)
        if left:
            note(f"{name}: {_reasons(left)}, of {len(kept) + sum(left.values())}")
        for label, part in _cells(kept, columns):
            statements = part.groupby("statement")["value"]
            if len(statements) < 2:
                note(f"{name}: {_where(label)}{_LONE}")
            else:
                hits, units = (
                    side.to_numpy(float) for side in (statements.sum(), statements.count())
                )
                limits = measures.find(name).limits
                found = inference.power_single(hits, units, points, limits)
                about = {"of": name, "a": asked.names[0], "b": "another", **label}
                scores += inference.power_scores(found, about, asked.sign(ids[name]))
    if not scores:
        raise InputError("no cell has two statements, and one cannot tell how statements vary")
    return scores


_LONE = "fewer than two statements, which cannot tell how statements vary"


def _where(cell: Mapping[str, Any]) -> str:
    return "".join(f"{column} {value}: " for column, value in cell.items())


def _main(tables: Sequence[pd.DataFrame], by: Sequence[str], share: bool = False) -> str:
    """The metric that is most asked for, of those that all tables have. share: of shares only."""
    from genprobe import metrics as measures

    for name in _MAIN:
        metric = measures.find(name)
        fits = all(map(metric.fits, tables)) and not set(by) & set(metric.never_by)
        if fits and not (share and metric.plain):
            return name
    raise InputError("say with --metric what is compared; `genprobe list metrics` has them all")


def _apart(outcomes: pd.DataFrame, name: str, but: Collection[str]) -> list[str]:
    """The columns over which a metric is never pooled, where there are several values."""
    from genprobe import metrics as measures

    metric = measures.find(name)
    columns = [c for c in metric.apart if c in outcomes and c not in (*but, *metric.never_by)]
    return [c for c in columns if outcomes[c].nunique() > 1]


def _reasons(left: Mapping[str, int]) -> str:
    return "left out: " + (", ".join(f"{n} {why}" for why, n in left.items()) or "nothing")


def _cells(rows: pd.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    from genprobe.metrics import cells

    at, labels = cells(rows, list(by))
    return [(label, rows[at == n]) for n, label in enumerate(labels)]


def _tests(test: str, kept: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> int:
    """How many p-values a test gives at most, in all cells."""
    cells = _cells(kept, by)
    if test == "anova":
        return len(cells) * math.comb(len(columns) + 1, 2)  # effects and interactions of two
    return sum(math.comb(part[columns[0]].nunique(), 2) for _, part in cells)


def _anova(
    kept: pd.DataFrame,
    name: str,
    by: Sequence[str],
    factors: Sequence[str],
    left: Mapping[str, int],
    draws: int,
    sign: str,
    note: Note,
) -> list[Score]:
    """left: what was left out of all cells together."""
    from genprobe import inference

    scores: list[Score] = []
    if by:
        scores.append(inference.mean_score(kept, name, {}, left, sign))
    for label, part in _cells(kept, by):
        where = _where(label)
        try:
            found = inference.anova(part, factors, resamples=draws)
        except InputError as error:
            if not by:
                raise
            note(f"{where}{error}")
            continue
        for one in found.dropped:
            note(f"{where}{one} has one level here and is no factor")
        for effect in found.effects:
            if effect.p is None:
                what = " × ".join(effect.factors)
                few = many(found.statements, "statement")
                note(f"{where}{what}: {few}, too few for clustered-p")
        for check in found.assumptions:
            holds = {True: "no sign against it", False: "does not hold", None: "cannot be told"}
            note(f"{where}{check.name}: {holds[check.holds]}: {check.found}")
        about = {"of": name, **label}
        out = found.left_out if by else Counter(left) + Counter(found.left_out)
        scores.append(inference.mean_score(found.values, name, label, out, sign))
        scores += inference.anova_scores(found, about, sign)
    if not scores:
        raise InputError("no cell has what an analysis of variance needs; split by less")
    return scores


def _ks(
    kept: pd.DataFrame,
    name: str,
    by: Sequence[str],
    columns: Sequence[str],
    left: Mapping[str, int],
    draws: int,
    sign: str,
) -> list[Score]:
    """left: what was left out of all cells together."""
    from genprobe import inference

    [column] = columns
    if not _tests("ks", kept, by, columns):
        raise InputError(f"there is one {column}, and nothing to compare it with")
    scores = [inference.mean_score(kept, name, {}, left, sign)]
    for label, part in _cells(kept, by):
        table = inference.pairwise_ks(part, column, resamples=draws)
        about = {"of": name, "between": column, **label}
        scores += inference.ks_scores(table, about, sign)
    return scores


def _asked_alike(a: Run, b: Run, but: Collection[str] = WHO) -> None:
    """RunError where two runs differ in more than the fields `but`, or in who read the answers."""
    if {a.spec.command, b.spec.command} == {"yesno", "logprob"}:
        raise RunError(
            f"{a.folder} and {b.folder} are of `{a.spec.command}` and `{b.spec.command}`; what "
            "a model says is set beside what it prefers by --paradigms"
        )
    if apart := a.spec.differences(b.spec, but):
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model ({'; '.join(apart)}); "
            "ask both in the same way"
        )
    mine, theirs = a.judges(), b.judges()
    for name in mine.keys() & theirs.keys():
        # What people said of a run's sample is that run's alone, and is compared with nothing.
        if mine[name] != theirs[name] and not name.startswith("reviewed-"):
            raise RunError(
                f"{a.folder} and {b.folder} were read by different judges {name!r}; "
                f"run `genprobe judge` with --judge {name} on both"
            )


# What the runs of a kind may differ in besides the model; what makes a row of their tables.
_MAY = {"yesno": (*WHO, "decode"), "logprob": (*WHO, "probes")}
_ROW = {
    "yesno": ["decode", "lang", "probe", "statement", "sample"],
    "logprob": ["scorer", "lang", "item", "contrast"],
}


def paradigms(
    folders: Sequence[Source], *, by: str | Sequence[str] = (), note: Note = quiet
) -> Scores:
    """What models say against what they prefer (`genprobe.paradigms`), each by its own yes/no and
    log-prob runs, which are told apart, and matched by model and revision.

    by: columns that make the cells besides model, reading and scorer; language where empty. Items
    that do not count are told to `note`. RunError where a model lacks runs of a kind, or two models
    were not asked alike; InputError for what else cannot be compared.
    """
    from genprobe import paradigms as both
    from genprobe import table

    columns = [c for c in _listed(by) or ["lang"] if c not in ("model", "decode", "scorer")]
    models = _by_model([Run.open(folder) for folder in _sources(folders)])
    first = next(iter(models.values()))
    scores = Scores()
    signers: list[Callable[[str], str]] = []
    for name, runs in models.items():
        for kind, of_kind in runs.items():
            for run in of_kind:
                like = (r for r in first[kind] if not r.spec.differences(run.spec, _MAY[kind]))
                _asked_alike(next(like, first[kind][0]), run, _MAY[kind])
        try:
            said, preferred = (
                _whole([table.outcomes(run) for run in of_kind], _ROW[kind])
                for kind, of_kind in runs.items()
            )
            found = both.items(said, preferred, columns)
        except InputError as error:
            folder = " and ".join(str(r.folder) for of_kind in runs.values() for r in of_kind)
            raise InputError(f"{folder}: {error}") from None
        own = [_signer(r.folder, r, "", {}) for of_kind in runs.values() for r in of_kind]
        signers += own
        one = name if len(models) > 1 else None
        scores += both.scores(found, columns, _signed_by(own), one)
        for line in both.notes(found):
            note(f"{name}: {line}" if one else line)
    if len(models) > 1:
        scores += both.ranking(scores, _signed_by(signers))
    if 1 < len(models) < both.LEAST:
        note(f"{len(models)} models: whether they are ranked alike takes {both.LEAST} at least")
    return scores


def _by_model(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """Name of a model -> its runs of each kind, at least one. RunError for a run of another kind,
    and for a model that lacks a kind."""
    known: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        kind = run.spec.command
        if kind not in _ROW:
            raise RunError(
                f"{run.folder} is a run of `{kind}`; give those of `yesno` and `logprob`"
            )
        of = known.setdefault(run.spec.who, {k: [] for k in _ROW})
        of[kind].append(run)
    for (model, _), of in known.items():
        for kind, other in itertools.permutations(_ROW):
            if of[kind]:
                continue
            there = [r for (m, _), o in known.items() if m == model for r in o[kind]]
            cure = f"run `genprobe {kind}` on it"
            if there:
                cure = f"{there[0].folder} is of revision {there[0].spec.shown}"
            folder, called = of[other][0].folder, of[other][0].spec.shown
            raise RunError(f"{folder}: no `{kind}` run of {model}, revision {called}; {cure}")
    names = model_names(run.spec for run in runs)
    return {names[who]: of for who, of in known.items()}


def _whole(tables: Sequence[pd.DataFrame], key: Sequence[str]) -> pd.DataFrame:
    """The tables of several runs of one model as one. InputError where a row is in two."""
    import pandas as pd

    whole = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    if len(tables) > 1 and whole.duplicated([c for c in key if c in whole]).any():
        raise InputError("these runs ask the same question twice; give one of them")
    return whole


def _signed_by(signers: Sequence[Callable[[str], str]]) -> Callable[[str], str]:
    """Metric -> the signature of a number that rests on all of these runs."""
    return lambda metric: both_signatures(*(sign(metric) for sign in signers))


def _models(runs: Sequence[Run]) -> list[str]:
    """The runs' models by name, empty where two runs are of one."""
    names = model_names(run.spec for run in runs)
    models = [names[run.spec.who] for run in runs]
    return [m if models.count(m) == 1 else "" for m in models]


def _corrected(
    source: Path,
    run: Run | None,
    outcomes: pd.DataFrame,
    table: Path,
    by: Sequence[str],
    sign: Callable[[str], str],
) -> list[Score]:
    """The rates that the questions of a review are about, as measured and as corrected by it."""
    import pandas as pd

    from genprobe import corrected, reviewed
    from genprobe.metrics import spoken

    if run is None:
        raise InputError("a review corrects the rates of a run; name its folder")
    spec = run.spec.hash  # folders move; an item names its run by what was asked
    every = reviewed.resolve(reviewed.read_table(table))
    rows = [r for r in every if r.item == reviewed.item_id(spec, r.request)]
    if not rows:
        raise InputError(f"{table} holds no review of this run")
    said = pd.DataFrame(
        {"request": r.request, "question": r.question, "answer": r.label, "weight": r.weight}
        for r in rows
    )
    said["reviewer"] = "resolved"
    content = digest(table.read_bytes().hex(), 8)
    return [
        dataclasses.replace(s, signature=sign(f"{s.metric}/{corrected.VERSION}+review-{content}"))
        for s in corrected.scores(spoken(outcomes), said, by)  # people read free replies
    ]


def _uncorrected(scores: Sequence[Score]) -> Iterator[str]:
    """What keeps a review from correcting a rate, and templates from counting in NegRate's."""
    from genprobe.corrected import IN_PART

    without = {s.by["rate"] for s in scores if s.metric == "ppi" and s.value is None}
    read = [s for s in scores if s.metric == "judge-accuracy" and s.n]
    if few := [str(s.by["rate"]) for s in read if s.by["rate"] in without - {"negrate"}]:
        yield (
            f"not corrected: {', '.join(dict.fromkeys(few))}: what was reviewed is of one "
            "statement; review more of them"
        )
    negrate = [s for s in scores if s.metric == "judge-accuracy" and s.by["rate"] == "negrate"]
    whole, part = sum(s.n for s in negrate), sum(s.excluded.get(IN_PART, 0) for s in negrate)
    cure = "answer all rows, and settle what reviewers differ on by `review export --disagreements`"
    if "negrate" not in without:
        if part:
            yield f"negrate: {whole} templates are reviewed whole and count, {part} in part; {cure}"
    elif negrate:
        more = cure if part else "`review export` a larger --size, which holds whole templates"
        yield (
            "negrate is not corrected: it takes templates of two statements or more with all "
            f"their stories reviewed, and the review holds {whole} whole and {part} in part; {more}"
        )


def _about(source: Path, error: InputError) -> InputError:
    """The error with the name of the source in front, if it does not say it already."""
    return error if str(error).startswith(f"{source}") else InputError(f"{source}: {error}")


def _told_apart(scores: dict[Path, list[Score]]) -> list[Score]:
    """All scores; where two sources share a cell, each cell begins with its source's name."""
    found = [score for part in scores.values() for score in part]
    if len({(s.metric, *s.by.items()) for s in found}) == len(found):
        return found
    return [
        dataclasses.replace(s, by={"source": str(source), **s.by})
        for source, part in scores.items()
        for s in part
    ]


def _signer(
    source: Path, run: Run | None, subset: str, given: Mapping[str, str]
) -> Callable[[str], str]:
    """Metric name -> signature of its scores over this source. given: judges of a file's labels."""
    if run:
        # What people said is counted where it is asked for, and says so itself.
        judges = {k: v for k, v in run.judges().items() if not k.startswith("reviewed-")}
        spec = run.spec
        return lambda name: signature(spec, judges, _metric_id(name) + subset)
    # The file is read once; its hash, not who judged it, is what is known of its labels.
    one = file_signature(source, given, "METRIC")
    return lambda name: one.replace("METRIC", _metric_id(name) + subset, 1)


def _beside(sign: Callable[[str], str], people: Path) -> Callable[[str], str]:
    """Signatures in which those measures that read people's answers name their table."""
    from genprobe import metrics as measures

    content = digest(people.read_bytes().hex(), 8)
    return lambda name: (
        sign(f"{measures.find(name).id}+people-{content}")
        if "/" not in name and "people" in measures.find(name).needs
        else sign(name)
    )


def _metric_id(name: str) -> str:
    """Of a metric by its name, or of what has said its own version."""
    from genprobe import metrics as measures

    return name if "/" in name else measures.find(name).id


def _plain_rows(outcomes: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows of Python values, None where a cell is empty."""
    import numpy as np

    def plain(column: pd.Series) -> list[Any]:
        cells = zip(column.tolist(), column.isna().tolist(), strict=True)
        values = (None if empty else value for value, empty in cells)
        return [value.item() if isinstance(value, np.generic) else value for value in values]

    names = [str(name) for name in outcomes.columns]
    # Column by column: asking each cell by itself whether it is empty takes four times as long.
    for row in zip(*(plain(outcomes[name]) for name in outcomes.columns), strict=True):
        yield dict(zip(names, row, strict=True))
