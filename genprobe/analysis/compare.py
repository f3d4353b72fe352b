"""Compare models, item by item or by another test: `compare`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe.analysis.score import review_of
from genprobe.analysis.sources import Side, names_of, need_alike, sides_of, signed_by
from genprobe.errors import Caution, InputError
from genprobe.files.rows import sources_of
from genprobe.outcomes import sides
from genprobe.records import Score
from genprobe.render import findings
from genprobe.render.scores import Scores
from genprobe.resources import registry
from genprobe.resources.registry import listed
from genprobe.runs.spec import WHO
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text import many

if TYPE_CHECKING:
    import pandas as pd

    from genprobe.analysis.ranking import Ranking


def compare(
    first: object,
    others: object = (),
    *,
    test: str = "paired",
    between: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    power: float | None = None,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> Scores:
    """Compare models by a test, or plan a study that would show a difference (docs/inference.md).

    first, others: runs and tables of judged replies, one by one or in a list; each model of a table
    stands for a run in what follows. test: `paired`, each of the other runs with the
    first, item by item (`analysis.paired`); `anova` (`analysis.variance`) or `ks`
    (`analysis.distributions`); `components` of the variance of an answer; `differences`, the
    components of the difference between each other run and the first; `retest`, how far runs, or
    the samples of one run, agree. between: the column whose values are compared, the model if
    empty; with `paired` and another column, the values within one run are compared, every two of
    them. For `anova`, `components` and `differences` it names the factors; if empty, all of
    `variance.FACTORS` or `components.CROSSED`. metrics: if empty, for `paired` those that both
    sides have, for the other tests the first default one that fits. by: columns by which figures
    are grouped; one cell if empty. power: points to plan for, instead of a test. reviewed: a table
    of `review import` with replies of all runs; the rates that it corrects are compared, instead of
    metrics. note: called with what is left out.

    Each p-value is also returned corrected for the number of p-values. Raises RunError if two
    differ in more than the model, InputError for runs or columns that cannot be compared.
    """
    from genprobe.outcomes import counted

    metrics, by = listed(metrics, "metrics"), listed(by, "by")
    between = listed(between, "between")
    if test not in TESTS:
        raise registry.unknown("test", test, list(TESTS))
    if power is not None and test != "paired":
        raise InputError("--power plans a paired comparison; leave --test out")
    if test not in ("anova", "components", "differences") and len(between) > 1:
        raise InputError(
            f"--test {test} compares the values of one column; --test anova of several"
        )
    but = (*WHO, "seed") if test == "retest" else WHO
    texts = reviewed is not None or any(map(counted.is_text, (*by, *between)))
    asked = _Asked.open(sources_of(first, others), but, texts, metrics, by, between, note)
    _tell_copies(asked.of, note)
    for side in asked.of:
        for line in filter(None, (side.drawn_otherwise, *sides.untold(side.outcomes))):
            note(Caution(f"{side.name}: {line}"))
    if reviewed is not None:
        if test != "paired" or between or power is not None or metrics:
            raise InputError("--reviewed compares the rates of models that a review corrects")
        return _corrected(asked, Path(reviewed))
    if test == "paired":
        return _side_by_side(asked, power)
    if test == "retest":
        return Scores(_retested(asked))
    if test == "differences":
        return Scores(_differences(asked))
    if test == "components":
        return Scores(_components(asked))
    return _tested(asked, test)


def _tell_copies(of: Sequence[Side], note: Note) -> None:
    """Note which are copies: the same replies with the same times."""
    known: dict[tuple[str, ...], Side] = {}
    for one in of:
        first = known.setdefault(one.content, one)
        if first is not one:
            note(
                Caution(
                    f"{one.name} has the same replies as {first.name}, from the same times: "
                    "comparing a copy with its original shows nothing"
                )
            )


def _side_by_side(asked: _Asked, power: float | None) -> Scores:
    """Compare the other runs with the first, or the values of a column; or compute the power."""
    from genprobe.analysis import significance

    column = asked.between[0] if asked.between else "model"
    sides = asked.sides(column) if len(asked.of) > 1 or column != "model" else []
    if power is not None:
        return Scores(significance.corrected(_power(asked, sides, power)))
    if not sides:
        raise InputError(
            f"{asked.of[0].name} is compared with nothing; give another run, or --between COLUMN"
        )
    found = Scores(significance.corrected(_paired(asked, sides)))
    if column == "model":
        found.rankings = _ranked(asked)
        main = asked.metrics or asked.of[0].ranked
        found.finding = findings.compared(found, main, asked.reversed(), cut_short(asked.named()))
        for one in found.rankings:
            one["told"] += _tied(one, found)
    return found


def _tied(ranked: Mapping[str, Any], scores: Sequence[Score]) -> str:
    """Say which models a ranking ties that differ for sure in the table, and why; else ""."""
    tied = {frozenset((pair["a"], pair["b"])) for pair in ranked["pairs"] if not pair["differ"]}
    sure = [
        " and ".join(d.models)
        for d in findings.differences(scores)
        if d.reach and ranked["metric"] in (d.of, d.over and d.over.difference.by["of"])
        if frozenset(d.names) in tied and all(d.about.get(k) == v for k, v in ranked["by"].items())
    ]
    if not sure:
        return ""
    return (
        f"; {', '.join(dict.fromkeys(sure))} differ in the table, but not here, where all pairs of "
        "models are tested at once"
    )


def _corrected(asked: _Asked, table: Path) -> Scores:
    """Compare every two runs by the rates that a review of all corrects, and rank the models.

    The ranking is of the first of the rates, over wordings like these if there is such a figure.
    Two models differ in it where `holm-p` is below 5 %, so that it cannot contradict the table.
    """
    from genprobe import metrics as measures
    from genprobe.analysis import ranking, significance
    from genprobe.metrics import spoken
    from genprobe.review import corrected_rates
    from genprobe.statistics import ALPHA

    sides, signs = [], []
    for name, side in zip(asked.names, asked.of, strict=True):
        if side.run is None:
            raise InputError(f"{side.name}: a review corrects the rates of a run; name its folder")
        said, sign = review_of(side.run, table)
        sides.append((name, spoken(side.outcomes), said))
        signs.append(sign)
    if len(sides) < 2:
        raise InputError(f"{asked.of[0].name} is compared with nothing; give another run")
    found = corrected_rates.differences(sides, asked.by)
    scores = Scores(
        significance.corrected(
            dataclasses.replace(s, signature=asked.sign(signs[0](s.metric)))
            for one in found
            for s in one.scores()
        )
    )
    least = min((one.p for one in found if one.p is not None), default=1.0)
    decisive = significance.holm([one.p for one in found])
    if least < ALPHA / 10 and all(p is None or p >= ALPHA for p in decisive):
        tests = sum(p is not None for p in decisive)
        asked.note(
            f"the smallest of {tests} p-values is {least:.2g}, and none is below 5 % after the "
            "correction for all of them; compare fewer runs or cells"
        )
    if why := cut_short(asked.named()):
        asked.note(Caution(f"no ranking: {why}"))
        return scores
    of, rates = str(found[0].by["of"]), {str(one.by["of"]): one.over for one in found}
    of = of + corrected_rates.LIKE if of + corrected_rates.LIKE in rates else of
    over = rates[of]
    cells: dict[tuple[Any, ...], list[tuple[corrected_rates.Difference, float | None]]] = {}
    for one, p in zip(found, decisive, strict=True):
        if one.by["of"] == of:
            cells.setdefault(tuple(one.by[name] for name in asked.by), []).append((one, p))
    estimand = measures.ESTIMANDS[measures.OVER if over else measures.OWN]
    rankings = []
    for label, parts in cells.items():
        ranked = ranking.of_corrected(parts, asked.names)
        about = {
            "metric": f"{of}, corrected",
            "by": dict(zip(asked.by, label, strict=True)),
            "told": ranked.told(),
        }
        about |= {"left_out": {}, "estimand": estimand}
        signed = asked.sign(signs[0](corrected_rates.OVER if over else corrected_rates.PPI))
        rankings.append({**ranked.json(), **about, "signature": signed})
    scores.rankings = rankings
    return scores


def _retested(asked: _Asked) -> list[Score]:
    from genprobe.analysis import reliability

    whose = [one.who[:1] if one.recorded else one.who for one in asked.of]
    models = dict.fromkeys(" ".join(filter(None, who)) for who in whose)
    if len(models) > 1:
        asked.note(Caution(f"--test retest: these are different models ({', '.join(models)})"))
    [name, *_] = asked.measures(*asked.tables, share=True)
    return reliability.retest(asked.named(), name, asked.by, asked.sign)


def _components(asked: _Asked) -> list[Score]:
    from genprobe.analysis import components

    pooled = asked.pooled()
    [name, *_] = asked.measures(pooled, share=True)
    cells = asked.cells(name, [pooled], asked.between)
    return components.of_outcomes(pooled, name, cells, asked.between, asked.sign)


def _tested(asked: _Asked, test: str) -> Scores:
    """Run an analysis of variance, or the Kolmogorov-Smirnov test, over all runs together."""
    from genprobe import metrics as measures
    from genprobe.analysis import distributions, significance, variance
    from genprobe.statistics import resampled

    pooled = asked.pooled()
    columns = list(asked.between) or (list(variance.FACTORS) if test == "anova" else ["model"])
    parts = []
    for name in asked.measures(pooled):
        cells = asked.cells(name, [pooled], columns)
        kept, left = significance.values(pooled, name, cells, columns)
        cells = [column for column in cells if column in asked.by or kept[column].nunique() > 1]
        if not len(kept):
            raise InputError(f"{name}: no value is left to compare; {significance.reasons(left)}")
        parts.append((name, kept, cells, left))
    tests = sum(_tests(test, kept, split, columns) for _, kept, split, _ in parts)
    how = variance.ANOVA if test == "anova" else distributions.KS
    draws = distributions.enough(tests)
    scores = []
    for name, kept, split, left in parts:
        signed = asked.sign(f"{name}/{measures.find(name).version}+{resampled(how, draws)}")
        if test == "anova":
            scores += _anova(kept, name, split, columns, left, draws, signed, asked.note)
        else:
            scores += _ks(kept, name, split, columns, left, draws, signed)
    more = ("bonferroni", "holm") if test == "ks" else ("holm",)
    return Scores(significance.corrected(scores, more))


TESTS = ("paired", "anova", "ks", "components", "differences", "retest")
# The default metrics to test, in order of preference.
_MAIN = ("bias-score", "endorsed", "negative-stories", "win-rate", "accuracy", "argues-for")


@dataclasses.dataclass(frozen=True)
class _Asked:
    """Models that were asked the same, with distinct names and their outcomes.

    metrics, by, between, note: the arguments of `compare`.
    """

    of: Sequence[Side]
    names: Sequence[str]
    tables: Sequence[pd.DataFrame]
    metrics: Sequence[str]
    by: Sequence[str]
    between: Sequence[str]
    note: Note

    @staticmethod
    def open(
        given: object,
        but: Collection[str],
        texts: bool,
        metrics: Sequence[str],
        by: Sequence[str],
        between: Sequence[str],
        note: Note,
    ) -> _Asked:
        of = sides_of(given, note, texts)
        found = [one.run.folder.resolve() for one in of if one.run]
        if twice := [at for at in found if found.count(at) > 1]:
            name = next(one.name for one in of if one.run and one.run.folder.resolve() == twice[0])
            raise InputError(f"{name} is given twice; give two different runs")
        for a, b in itertools.combinations(of, 2):
            for line in need_alike(a, b, but):
                note(Caution(line))
        for one in of:
            one.need_judges()
        tables = [one.outcomes for one in of]
        return _Asked(of, names_of(of), tables, metrics, by, between, note)

    def sign(self, metric: str) -> str:
        return signed_by([one.sign for one in self.of])(metric)

    def named(self) -> dict[str, pd.DataFrame]:
        return dict(zip(self.names, self.tables, strict=True))

    def measures(self, *tables: pd.DataFrame, share: bool = False) -> Sequence[str]:
        """Return the metrics asked for, else the main one of the tables. share: only shares."""
        return self.metrics or [main_measure(tables, self.by, share)]

    def cells(
        self, name: str, tables: Sequence[pd.DataFrame], but: Sequence[str] = ()
    ) -> list[str]:
        """Return the columns of the cells of a metric: those asked for, and its own (`apart`)."""
        from genprobe.analysis import paired

        return [*paired.apart(name, tables, (*but, *self.by)), *self.by]

    def reversed(self) -> list[Score]:
        """Return what each yes/no question finds endorsed, by model, language and question."""
        from genprobe import metrics as measures

        by = ["lang", "probe"]
        return [
            dataclasses.replace(score, by={"run": name, **score.by})
            for name, rows in self.named().items()
            if measures.find("endorsed").fits(rows) and {*by} <= {*rows}
            for score in measures.score(rows, ["endorsed"], by, str)
        ]

    def pooled(self) -> pd.DataFrame:
        """Return all outcomes as one table, in which runs are known by their names."""
        import pandas as pd

        named = zip(self.tables, self.names, strict=True)
        return pd.concat([t.assign(model=name) for t, name in named], ignore_index=True)

    def sides(self, column: str) -> list[_Sides]:
        """Return the pairs to compare: each other run with the first, or values of a column."""
        from genprobe.analysis.significance import empty

        if column == "model":
            parts = list(zip(self.names, self.tables, self.of, strict=True))
            pairs = [(parts[0], other) for other in parts[1:]]
        else:
            if len(self.of) > 1:
                raise InputError(f"--between {column} compares rows of one run; give one run")
            [outcomes], [whole] = self.tables, self.of
            if column not in outcomes:
                raise registry.unknown("column", column, [str(name) for name in outcomes.columns])
            if none := int(empty(outcomes[column]).sum()):
                rows = f"{many(none, 'row')} without {column!r}"
                self.note(Caution(f"{whole.name}: {rows}, compared with nothing and left out"))
            groups = outcomes[~empty(outcomes[column])].groupby(column, sort=True)
            parts = [(str(value), table, whole) for value, table in groups]
            if len(parts) < 2:
                raise InputError(
                    f"{whole.name} has one {column}, so there is nothing to compare it with"
                )
            pairs = list(itertools.combinations(parts, 2))
        found = []
        for (a, one, whose), (b, other, second) in pairs:
            signers = [whose.sign] if whose is second else [whose.sign, second.sign]
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


def _paired(asked: _Asked, sides: Sequence[_Sides]) -> list[Score]:
    from genprobe import metrics as measures
    from genprobe.analysis import distributions, paired
    from genprobe.statistics import resampled

    found = [
        (two, name, cell)
        for two in sides
        for name in asked.metrics or two.metrics(asked.by)
        for cell in paired.cells_of(two.one, two.other, name, asked.by, two.column)
    ]
    several = sum(cell.both > 0 for _, _, cell in found)
    if not several:
        what = f"two values of {asked.between[0]}" if asked.between else "both"
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
            asked.note(Caution(f"{name}: {_where(cell.by)}{two.a}, {two.b}: {line}"))
    return scores


def _differences(asked: _Asked) -> list[Score]:
    """Compute the components of the difference of every other run and the first."""
    from genprobe.analysis import components

    if len(asked.of) < 2:
        raise InputError("--test differences needs at least two runs; give another")
    scores, between = [], asked.between
    (first, table), *others = zip(asked.names, asked.tables, strict=True)
    for name in asked.measures(*asked.tables, share=True):
        cells = asked.cells(name, [table], between)
        for other, its in others:
            of = (table, its, (first, other), name, cells, between)
            scores += components.of_differences(*of, asked.sign)
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

    from genprobe.analysis import paired, ranking
    from genprobe.metrics import wordings

    name = metric or main_measure(list(tables.values()), by)
    if not metric and _panel(tables.values()):
        name = wordings.over(name) or name
    pooled = pd.concat([t.assign(model=model) for model, t in tables.items()], ignore_index=True)
    columns = [*paired.apart(name, [pooled], by), *by]
    return name, ranking.of_outcomes(pooled, name, columns)


def _panel(tables: Iterable[pd.DataFrame]) -> bool:
    """Tell whether all tables have enough wordings for figures over wordings."""
    from genprobe.statistics import COLUMNS

    return all("wording" in table and table["wording"].nunique() >= COLUMNS for table in tables)


def _ranked(asked: _Asked) -> list[dict[str, Any]]:
    """Rank the models by a metric in each cell, as rows of `ranking.Ranking.json`.

    Empty, with a note why, if they cannot be ranked.
    """
    from genprobe import metrics as measures
    from genprobe.analysis import ranking

    tables = asked.named()
    if why := cut_short(tables):
        asked.note(Caution(f"no ranking: {why}"))
        return []
    try:
        name, cells = ranked(tables, next(iter(asked.metrics), ""), asked.by)
    except InputError as error:
        asked.note(f"no ranking: {error}")
        return []
    if not cells:
        asked.note("no ranking: fewer than two statements count for all models")
    out = []
    for cell, one, left in cells:
        about = {"metric": name, "by": cell, "told": one.told(), "left_out": left}
        metric = measures.find(name)
        sign = asked.sign(f"{name}/{metric.version}-{metric.estimand}-{ranking.METHOD}")
        about["estimand"] = measures.ESTIMANDS[metric.estimand]
        out.append({**one.json(), **about, "signature": sign})
    return out


def _power(asked: _Asked, sides: Sequence[_Sides], points: float) -> list[Score]:
    """Compute the power of two sides from their difference, or of one run against a new model."""
    from genprobe import metrics as measures
    from genprobe.analysis import gaps, paired, power, significance
    from genprobe.statistics import BOOTSTRAP

    names, note = asked.measures(*asked.tables, share=True), asked.note
    ids = {
        name: f"{name}/{metric.version}-{metric.estimand}-{BOOTSTRAP}+power3"
        for name in names
        for metric in [measures.find(name)]
    }
    scores = []
    for two, name in itertools.product(sides, names):
        for cell in paired.cells_of(two.one, two.other, name, asked.by, two.column):
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
        columns = asked.cells(name, asked.tables)
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
    kept, _ = significance.values(outcomes, name, (), ["model", "wording"])
    _, hits, sizes = ranking.tables(kept)
    given = dstudy.parts(hits[0], sizes[0])
    run = asked.of[0].run
    used = [(r.tokens_in, r.tokens_out) for r in run.responses()] if run else []
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
