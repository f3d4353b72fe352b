"""Compare runs, item by item or by another test: `compare`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe import tasks
from genprobe.analysis.score import Source, listed, review_of, signer, sources_of
from genprobe.errors import Caution, InputError, RunError
from genprobe.outcomes import sides
from genprobe.records import Score
from genprobe.render.grid import model_names
from genprobe.render.scores import Scores
from genprobe.resources import packs, registry
from genprobe.runs.run import Run
from genprobe.runs.spec import WHO, both_signatures
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.analysis.ranking import Ranking


def compare(
    first: Source,
    others: Source | Sequence[Source] = (),
    *,
    test: str = "paired",
    between: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    power: float | None = None,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> Scores:
    """Compare runs by a test, or plan a study that would show a difference (docs/inference.md).

    test: `paired`, each of the other runs with the first, item by item (`analysis.paired`); `anova`
    (`analysis.variance`) or `ks` (`analysis.distributions`); `components` of the variance of an
    answer; `differences`, the components of the difference between each other run and the first;
    `retest`, how far runs, or the samples of one run, agree. between: the column whose values are
    compared, the model if empty; with `paired` and another column, the values within one run are
    compared, every two of them. For `anova`, `components` and `differences` it names the factors;
    if empty, all of `variance.FACTORS` or `components.CROSSED`. metrics: if empty, for `paired`
    those that both sides have, for the other tests the first default one that fits. by: columns by
    which figures are grouped; one cell if empty. power: points to plan for, instead of a test.
    reviewed: a table of `review import` with replies of all runs; the rates that it corrects are
    compared, instead of metrics. note: called with what is left out.

    Each p-value is also returned corrected for the number of p-values. Raises RunError if two runs
    differ in more than the model, InputError for runs or columns that cannot be compared.
    """
    metrics, by, between = listed(metrics), listed(by), listed(between)
    if test not in TESTS:
        raise registry.unknown("test", test, list(TESTS))
    if power is not None and test != "paired":
        raise InputError("--power plans a paired comparison; leave --test out")
    if test not in ("anova", "components", "differences") and len(between) > 1:
        raise InputError(
            f"--test {test} compares the values of one column; --test anova of several"
        )
    asked = _Asked.open([first, *sources_of(others)], (*WHO, "seed") if test == "retest" else WHO)
    _tell_copies(asked.runs, note)
    for run, outcomes in zip(asked.runs, asked.tables, strict=True):
        for line in filter(None, (run.spec.drawn_otherwise, *sides.untold(outcomes))):
            note(Caution(f"{run.folder}: {line}"))
    if reviewed is not None:
        if test != "paired" or between or power is not None or metrics:
            raise InputError("--reviewed compares the rates of models that a review corrects")
        return Scores(_corrected(asked, Path(reviewed), by))
    if test == "paired":
        return _side_by_side(asked, metrics, by, between, power, note)
    if test == "retest":
        return Scores(_retested(asked, metrics, by, note))
    if test == "differences":
        return Scores(_differences(asked, metrics, by, between))
    if test == "components":
        return Scores(_components(asked, metrics, by, between))
    return _tested(asked, test, metrics, by, between, note)


def _tell_copies(runs: Sequence[Run], note: Note) -> None:
    """Note which runs are copies: the same replies with the same times."""
    known: dict[tuple[str, str], Run] = {}
    for run in runs:
        files = [run.folder / name for name in ("responses.jsonl", "logprobs.jsonl")]
        parts = [packs.file_hash(path) for path in files if path.is_file()]
        first = known.setdefault((run.spec.hash, "+".join(parts)), run)
        if first is not run:
            note(
                Caution(
                    f"{run.folder} has the same replies as {first.folder}, from the same times: "
                    "comparing a copy with its original shows nothing"
                )
            )


def _side_by_side(
    asked: _Asked,
    metrics: Sequence[str],
    by: Sequence[str],
    between: Sequence[str],
    power: float | None,
    note: Note,
) -> Scores:
    """Compare the other runs with the first, or the values of a column; or compute the power."""
    from genprobe.analysis import significance

    column = between[0] if between else "model"
    sides = asked.sides(column) if len(asked.runs) > 1 or column != "model" else []
    if power is not None:
        return Scores(significance.corrected(_power(asked, sides, metrics, by, power, note)))
    if not sides:
        raise InputError(
            f"{asked.runs[0].folder} is compared with nothing; give another run, or "
            "--between COLUMN"
        )
    found = Scores(significance.corrected(_paired(sides, metrics, by, between, note)))
    if column == "model":
        found.rankings = _ranked(asked, metrics, by, note)
    return found


def _corrected(asked: _Asked, table: Path, by: Sequence[str]) -> list[Score]:
    """Compare each other run with the first by the rates that a review of both corrects."""
    from genprobe.analysis import significance
    from genprobe.metrics import spoken
    from genprobe.review import corrected_rates

    sides, signs = [], []
    for name, run, outcomes in zip(asked.names, asked.runs, asked.tables, strict=True):
        said, sign = review_of(run, table)
        sides.append((name, spoken(outcomes), said))
        signs.append(sign)
    first, *others = sides
    if not others:
        raise InputError(f"{asked.runs[0].folder} is compared with nothing; give another run")
    scores = [s for other in others for s in corrected_rates.differences(first, other, by)]
    return significance.corrected(
        dataclasses.replace(s, signature=asked.sign(signs[0](s.metric))) for s in scores
    )


def _retested(asked: _Asked, metrics: Sequence[str], by: Sequence[str], note: Note) -> list[Score]:
    from genprobe.analysis import validity

    # The revision of recorded replies is that of their file.
    whose = [
        (r.spec.model, "" if r.spec.engine == "replay" else r.spec.revision) for r in asked.runs
    ]
    models = dict.fromkeys(" ".join(filter(None, who)) for who in whose)
    if len(models) > 1:
        note(Caution(f"--test retest: these are different models ({', '.join(models)})"))
    tables = dict(zip(asked.names, asked.tables, strict=True))
    name = metrics[0] if metrics else main_measure(asked.tables, by, share=True)
    return validity.retest(tables, name, by, asked.sign)


def _components(
    asked: _Asked, metrics: Sequence[str], by: Sequence[str], between: Sequence[str]
) -> list[Score]:
    from genprobe.analysis import components

    pooled = asked.pooled()
    name = metrics[0] if metrics else main_measure([pooled], by, share=True)
    apart = never_pooled(pooled, name, (*between, *by, "model"))
    return components.of_outcomes(pooled, name, [*apart, *by], between, asked.sign)


def _tested(
    asked: _Asked,
    test: str,
    metrics: Sequence[str],
    by: Sequence[str],
    between: Sequence[str],
    note: Note,
) -> Scores:
    """Run an analysis of variance, or the Kolmogorov-Smirnov test, over all runs together."""
    from genprobe import metrics as measures
    from genprobe.analysis import distributions, significance, variance
    from genprobe.statistics import resampled

    pooled = asked.pooled()
    columns = list(between) or (list(variance.FACTORS) if test == "anova" else ["model"])
    parts = []
    for name in metrics or [main_measure([pooled], by)]:
        cells = never_pooled(pooled, name, (*columns, *by))
        kept, left = significance.values(pooled, name, [*cells, *by, *columns])
        cells = [column for column in cells if kept[column].nunique() > 1]
        if not len(kept):
            raise InputError(f"{name}: no value is left to compare; {significance.reasons(left)}")
        parts.append((name, kept, [*cells, *by], left))
    tests = sum(_tests(test, kept, split, columns) for _, kept, split, _ in parts)
    how = variance.ANOVA if test == "anova" else distributions.KS
    draws = distributions.enough(tests)
    scores = []
    for name, kept, split, left in parts:
        signed = asked.sign(f"{name}/{measures.find(name).version}+{resampled(how, draws)}")
        if test == "anova":
            scores += _anova(kept, name, split, columns, left, draws, signed, note)
        else:
            scores += _ks(kept, name, split, columns, left, draws, signed)
    more = ("bonferroni", "holm") if test == "ks" else ("holm",)
    return Scores(significance.corrected(scores, more))


TESTS = ("paired", "anova", "ks", "components", "differences", "retest")
# The default metrics to test, in order of preference.
_MAIN = ("bias-score", "endorsed", "negative-stories", "win-rate", "accuracy", "argues-for")


@dataclasses.dataclass(frozen=True)
class _Asked:
    """Runs that asked the same questions, with distinct names and their outcomes."""

    runs: Sequence[Run]
    names: Sequence[str]
    tables: Sequence[pd.DataFrame]

    @staticmethod
    def open(folders: Sequence[Source], but: Collection[str] = WHO) -> _Asked:
        from genprobe.outcomes import table

        runs = [Run.open(folder) for folder in folders]
        found = [run.folder.resolve() for run in runs]
        if twice := [
            run.folder for run, at in zip(runs, found, strict=True) if found.count(at) > 1
        ]:
            raise InputError(f"{twice[0]} is given twice; give two different runs")
        for a, b in itertools.combinations(runs, 2):
            asked_alike(a, b, but)
        for run in runs:
            if tasks.of(run.spec).judges and not run.judges():
                raise RunError(
                    f"{run.folder}: no reply has been judged; run `genprobe judge` on it first"
                )
        names = [name or run.folder.name for name, run in zip(_models(runs), runs, strict=True)]
        if len(set(names)) < len(names):
            names = [str(run.folder) for run in runs]
        return _Asked(runs, names, [table.outcomes(run) for run in runs])

    def sign(self, metric: str) -> str:
        return signed_by([signer(run.folder, run, "", {}) for run in self.runs])(metric)

    def pooled(self) -> pd.DataFrame:
        """Return all outcomes as one table, in which runs are known by their names."""
        import pandas as pd

        named = zip(self.tables, self.names, strict=True)
        return pd.concat([t.assign(model=name) for t, name in named], ignore_index=True)

    def sides(self, column: str) -> list[_Sides]:
        """Return the pairs to compare: each other run with the first, or values of a column."""
        if column == "model":
            parts = list(zip(self.names, self.tables, self.runs, strict=True))
            pairs = [(parts[0], other) for other in parts[1:]]
        else:
            if len(self.runs) > 1:
                raise InputError(f"--between {column} compares rows of one run; give one run")
            [outcomes], [run] = self.tables, self.runs
            if column not in outcomes:
                raise registry.unknown("column", column, [str(name) for name in outcomes.columns])
            groups = outcomes.groupby(column, sort=True)
            parts = [(str(value), table, run) for value, table in groups]
            if len(parts) < 2:
                raise InputError(
                    f"{run.folder} has one {column}, so there is nothing to compare it with"
                )
            pairs = list(itertools.combinations(parts, 2))
        found = []
        for (a, one, run), (b, other, second) in pairs:
            signers = [signer(r.folder, r, "", {}) for r in dict.fromkeys((run, second))]
            found.append(_Sides(column, a, one, b, other, signed_by(signers)))
        return found


@dataclasses.dataclass(frozen=True)
class _Sides:
    """Two tables whose units are paired, the column that distinguishes them, and its two values."""

    column: str
    a: str
    one: pd.DataFrame
    b: str
    other: pd.DataFrame
    sign: Callable[[str], str]

    def metrics(self, by: Sequence[str]) -> list[str]:
        from genprobe import metrics as measures
        from genprobe.analysis import paired
        from genprobe.metrics import wordings

        return [
            name
            for name in measures.default()
            if paired.fits(measures.find(name), (*by, self.column))
            and all(map(measures.find(name).fits, (self.one, self.other)))
            and (not wordings.base(name) or _panel((self.one, self.other)))
        ]


def _paired(
    sides: Sequence[_Sides],
    metrics: Sequence[str],
    by: Sequence[str],
    between: Sequence[str],
    note: Note,
) -> list[Score]:
    from genprobe import metrics as measures
    from genprobe.analysis import distributions, paired
    from genprobe.statistics import resampled

    found = [
        (two, name, cell)
        for two in sides
        for name in metrics or two.metrics(by)
        for cell in paired.cells_of(
            *(two.one, two.other, name),
            [*never_pooled(two.one, name, (*by, "model", two.column)), *by],
            two.column,
        )
    ]
    several = sum(cell.both > 0 for _, _, cell in found)
    if not several:
        what = f"two values of {between[0]}" if between else "both"
        raise InputError(f"no unit counts for {what}; `--test ks` compares without pairs")
    scores = []
    draws = distributions.enough(several)
    for two, name, cell in found:
        metric, one = measures.find(name), paired.tested(name, cell, draws)
        how = paired.method(metric)
        how += f"+{resampled(paired.SWAP, draws)}" if paired.fits(metric) else ""
        sign = two.sign(f"{name}/{metric.version}-{metric.estimand}-{how}")
        scores += paired.scores([one], two.a, two.b, sign)
        for line in one.told():
            note(Caution(f"{name}: {_where(cell.by)}{two.a}, {two.b}: {line}"))
    return scores


def _differences(
    asked: _Asked, metrics: Sequence[str], by: Sequence[str], between: Sequence[str]
) -> list[Score]:
    """Compute the components of the difference of every other run and the first."""
    from genprobe.analysis import components

    if len(asked.runs) < 2:
        raise InputError("--test differences needs at least two runs; give another")
    scores = []
    for name in metrics or [main_measure(asked.tables, by, share=True)]:
        first, *others = zip(asked.names, asked.tables, strict=True)
        cells = [*never_pooled(first[1], name, (*between, *by, "model")), *by]
        for other in others:
            names = first[0], other[0]
            tables = first[1], other[1]
            found = components.of_differences(*tables, names, name, cells, between, asked.sign)
            scores += found
    return scores


def cut_short(tables: Mapping[str, pd.DataFrame]) -> str:
    """Say why models cannot be ranked because thoughts were cut off too often; "" if they can.

    tables: outcomes of each model.
    """
    from genprobe.metrics import thoughts

    told = (thoughts.too_many_cut(table, model) for model, table in tables.items())
    return next(filter(None, told), "")


def ranked(
    tables: Mapping[str, pd.DataFrame], metric: str = "", by: Sequence[str] = ()
) -> tuple[str, list[tuple[dict[str, Any], Ranking, dict[str, int]]]]:
    """Rank models in each cell of `by` and of the columns over which a metric is never pooled.

    tables: outcomes of each model. metric: if empty, the first default one that all have. Returns
    the metric and the cells of `ranking.of_outcomes`; raises InputError for the same reasons.
    """
    import pandas as pd

    from genprobe.analysis import ranking
    from genprobe.metrics import wordings

    name = metric or main_measure(list(tables.values()), by)
    if not metric and _panel(tables.values()):
        name = wordings.over(name) or name
    pooled = pd.concat([t.assign(model=model) for model, t in tables.items()], ignore_index=True)
    columns = [*never_pooled(pooled, name, (*by, "model")), *by]
    return name, ranking.of_outcomes(pooled, name, columns)


def _panel(tables: Iterable[pd.DataFrame]) -> bool:
    """Tell whether all tables have enough wordings for figures over wordings."""
    from genprobe.statistics import COLUMNS

    return all("wording" in table and table["wording"].nunique() >= COLUMNS for table in tables)


def _ranked(
    asked: _Asked, metrics: Sequence[str], by: Sequence[str], note: Note
) -> list[dict[str, Any]]:
    """Rank the models by a metric in each cell, as rows of `ranking.Ranking.json`.

    Empty, with a note why, if they cannot be ranked.
    """
    from genprobe import metrics as measures
    from genprobe.analysis import ranking

    tables = dict(zip(asked.names, asked.tables, strict=True))
    if why := cut_short(tables):
        note(Caution(f"no ranking: {why}"))
        return []
    try:
        name, cells = ranked(tables, metrics[0] if metrics else "", by)
    except InputError as error:
        note(f"no ranking: {error}")
        return []
    if not cells:
        note("no ranking: fewer than two statements count for all models")
    out = []
    for cell, one, left in cells:
        about = {"metric": name, "by": cell, "told": one.told(), "left_out": left}
        metric = measures.find(name)
        sign = asked.sign(f"{name}/{metric.version}-{metric.estimand}-{ranking.METHOD}")
        about["estimand"] = measures.ESTIMANDS[metric.estimand]
        out.append({**one.json(), **about, "signature": sign})
    return out


def _power(
    asked: _Asked,
    sides: Sequence[_Sides],
    metrics: Sequence[str],
    by: Sequence[str],
    points: float,
    note: Note,
) -> list[Score]:
    """Compute the power of two sides from their difference, or of one run against a new model."""
    from genprobe import metrics as measures
    from genprobe.analysis import gaps, paired, power, significance
    from genprobe.statistics import BOOTSTRAP

    names = metrics or [main_measure(asked.tables, by, share=True)]
    ids = {
        name: f"{name}/{metric.version}-{metric.estimand}-{BOOTSTRAP}+power3"
        for name in names
        for metric in [measures.find(name)]
    }
    scores = []
    for two, name in itertools.product(sides, names):
        columns = [*never_pooled(two.one, name, (*by, "model", two.column)), *by]
        for cell in paired.cells_of(two.one, two.other, name, columns, two.column):
            about = {"of": name, "a": two.a, "b": two.b, **cell.by}
            if not isinstance(cell, paired.Matched) or len(cell.wordings) > 1:
                raise InputError(f"--power plans for a mean over units; {name} is none")
            own = cell.own[:, 0]
            both = own[own[:, [1, 3]].all(axis=1)]
            if len(both) < 2:
                note(f"{name}: {_where(cell.by)}{_LONE}")
            else:
                found = power.power_paired(*gaps.as_one(own[own[:, [1, 3]].any(axis=1)]), points)
                scores += significance.power_scores(found, about, two.sign(ids[name]))
    for name in names if not sides else ():
        columns = [*never_pooled(asked.tables[0], name, by), *by]
        kept, left = significance.values(asked.tables[0], name, columns)
        if left:
            note(f"{name}: {significance.reasons(left)}, of {len(kept) + sum(left.values())}")
        for label, part in _cells(kept, columns):
            statements = part.groupby("statement")["value"]
            if len(statements) < 2:
                note(f"{name}: {_where(label)}{_LONE}")
            else:
                hits, units = (
                    side.to_numpy(float) for side in (statements.sum(), statements.count())
                )
                limits = measures.find(name).limits
                found = power.power_single(hits, units, points, limits)
                about = {"of": name, "a": asked.names[0], "b": "another", **label}
                scores += significance.power_scores(found, about, asked.sign(ids[name]))
    for line in _over_wordings(asked, names[0], points / 100):
        note(line)
    if not scores:
        raise InputError("no cell has two statements, so it is unknown how statements vary")
    return scores


def _over_wordings(asked: _Asked, name: str, points: float) -> list[str]:
    """Find the wordings and the studies that an interval of `points` takes, from the first run.

    Empty if no panel of wordings was asked.
    """
    from genprobe.analysis import dstudy, ranking, significance

    outcomes = asked.tables[0]
    if not _panel([outcomes]):
        return []
    kept, _ = significance.values(outcomes, name, ["model", "wording"])
    _, hits, sizes = ranking.tables(kept)
    given = dstudy.parts(hits[0], sizes[0])
    used = [(r.tokens_in, r.tokens_out) for r in asked.runs[0].responses()]
    known = [one + other for one, other in used if one is not None and other is not None]
    tokens = sum(known) / len(known) if known else None
    return dstudy.told(given, points, sizes.shape[2], tokens) if given else []


_LONE = "fewer than two statements, so it is unknown how statements vary"


def _where(cell: Mapping[str, Any]) -> str:
    return "".join(f"{column} {value}: " for column, value in cell.items())


def main_measure(tables: Sequence[pd.DataFrame], by: Sequence[str], share: bool = False) -> str:
    """Choose the first default metric that all tables have. share: only shares."""
    from genprobe import metrics as measures

    for name in _MAIN:
        metric = measures.find(name)
        fits = all(map(metric.fits, tables)) and not set(by) & set(metric.never_by)
        if fits and not (share and metric.scale == "number"):
            return name
    raise InputError("name the metric to compare with --metric; see `genprobe list metrics`")


def never_pooled(outcomes: pd.DataFrame, name: str, but: Collection[str]) -> list[str]:
    """Return the columns over which a metric is never pooled and which have several values."""
    from genprobe import metrics as measures

    metric = measures.find(name)
    several = dict.fromkeys([*metric.apart, *metric.adds])
    columns = [c for c in several if c in outcomes and c not in (*but, *metric.never_by)]
    return [c for c in columns if outcomes[c].nunique() > 1]


def _cells(rows: pd.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    from genprobe.metrics import cells

    at, labels = cells(rows, list(by))
    return [(label, rows[at == n]) for n, label in enumerate(labels)]


def _tests(test: str, kept: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> int:
    """Return the largest number of p-values that a test gives, over all cells."""
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
    """Run the analysis of variance in every cell.

    factors: columns. left: what was left out of all cells together. draws: resamples for p. sign:
    the signature of the scores.
    """
    from genprobe.analysis import significance, variance

    scores: list[Score] = []
    if by:
        scores.append(significance.mean_score(kept, name, {}, left, sign))
    for label, part in _cells(kept, by):
        where = _where(label)
        try:
            found = variance.anova(part, factors, resamples=draws)
        except InputError as error:
            if not by:
                raise
            note(f"{where}{error}")
            continue
        for one in found.dropped:
            note(f"{where}{one} has only one level here, so it is not used as a factor")
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
        scores.append(significance.mean_score(found.values, name, label, out, sign))
        scores += significance.anova_scores(found, about, sign)
    if not scores:
        raise InputError("no cell has enough for an analysis of variance; split by fewer columns")
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
    """Run the Kolmogorov-Smirnov test between the values of a column, in every cell.

    columns: the one column. left, draws, sign: as in `_anova`.
    """
    from genprobe.analysis import distributions, significance

    [column] = columns
    if not _tests("ks", kept, by, columns):
        raise InputError(f"there is one {column}, so there is nothing to compare it with")
    scores = [significance.mean_score(kept, name, {}, left, sign)]
    for label, part in _cells(kept, by):
        table = distributions.pairwise_ks(part, column, resamples=draws)
        about = {"of": name, "between": column, **label}
        scores += significance.ks_scores(table, about, sign)
    return scores


def asked_alike(a: Run, b: Run, but: Collection[str] = WHO) -> None:
    """Refuse two runs that differ in fields other than `but`, or in the judge of the answers.

    Raises RunError.
    """
    if {tasks.of(a.spec).paradigm, tasks.of(b.spec).paradigm} == {"says", "prefers"}:
        raise RunError(
            f"{a.folder} and {b.folder} are of `{a.spec.command}` and `{b.spec.command}`; to "
            "compare what a model says with what it prefers, use --paradigms"
        )
    if apart := a.spec.differences(b.spec, but):
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model ({'; '.join(apart)}); "
            "ask both in the same way"
        )
    mine, theirs = a.judges(), b.judges()
    for name in mine.keys() & theirs.keys():
        # People's labels of a sample belong to one run and are not compared.
        if mine[name] != theirs[name] and not name.startswith("reviewed-"):
            raise RunError(
                f"{a.folder} and {b.folder} were read by different judges {name!r}; have one read "
                "both (`genprobe judge`)"
            )


def signed_by(signers: Sequence[Callable[[str], str]]) -> Callable[[str], str]:
    """Return a function from a metric to the signature of a number from all these runs."""
    return lambda metric: both_signatures(*(sign(metric) for sign in signers))


def _models(runs: Sequence[Run]) -> list[str]:
    """Return the runs' models by name; empty if two runs have the same model."""
    names = model_names(run.spec for run in runs)
    models = [names[run.spec.who] for run in runs]
    return [m if models.count(m) == 1 else "" for m in models]
