"""Runs and files to numbers: `score`, `compare`, `paradigms`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genprobe import files, registry
from genprobe.errors import InputError, RunError
from genprobe.reading import Note, judged_rows, quiet
from genprobe.records import Score, digest
from genprobe.scores import Scores
from genprobe.signature import WHO, both_signatures, file_signature, signature
from genprobe.store import Run

if TYPE_CHECKING:
    import pandas as pd

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
    columns = list(by) or [c for c in ("lang", "probe") if all(c in there for there in every)]
    if not by and all("domain" in there and there & {"usable", "pro"} for there in every):
        columns.append("domain")
    differ = {name: _values_of(tables, name) for name in ("model", "revision", "scorer")}
    if not by:
        columns[:0] = [n for n in ("model", "revision") if len(differ[n]) > 1][:1]
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
            whole = [n for n in names if not by and measures.find(n).whole]
            rest = [n for n in names if n not in whole]
            scores[source] = measures.score(chosen, rest, columns, sign)
            scores[source] += measures.score(chosen, whole, [], sign)
            if reviewed is not None:
                scores[source] += _corrected(source, run, chosen, Path(reviewed), by, sign)
            if band:
                scores[source] = Readings(chosen, readers[source]).beside(scores[source])
        except InputError as error:
            raise _about(source, error) from None
    for source, run, outcomes in tables:
        if run:
            run.write_scores(scores[source], functools.partial(_plain_rows, outcomes))
    return Scores(_told_apart(scores))


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
    others: Source | Sequence[Source],
    *,
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
) -> Scores:
    """Each of the other runs against the first, item by item (`genprobe.compare.paired`).

    metrics: of those that pair, all that both runs have, where empty. by: columns that make the
    cells; one cell of all where empty. RunError where two runs differ in more than who was asked;
    InputError for what cannot be compared.
    """
    from genprobe import compare as pairing
    from genprobe import metrics as measures
    from genprobe import table

    metrics, by = _listed(metrics), _listed(by)
    runs = [Run.open(folder) for folder in (first, *_sources(others))]
    a = runs[0]
    for b in runs[1:]:
        _asked_alike(a, b)
    tables = [table.outcomes(run) for run in runs]
    named = [name or run.folder.name for name, run in zip(_models(runs), runs, strict=True)]
    scores = Scores()
    for at in range(1, len(runs)):
        two = (tables[0], tables[at])
        chosen = metrics or [
            name
            for name in measures.DEFAULT
            if pairing.fits(measures.find(name), by) and all(map(measures.find(name).fits, two))
        ]
        for name in chosen:
            found = pairing.paired(*two, name, by)
            signs = [_signer(run.folder, run, "", {})(name) for run in (a, runs[at])]
            scores += pairing.scores(
                [p for p in found if p.n], named[0], named[at], both_signatures(*signs)
            )
    return scores


def _asked_alike(a: Run, b: Run, but: Collection[str] = WHO) -> None:
    """RunError where two runs differ in more than the fields `but`, or in who read the answers."""
    if apart := a.spec.differences(b.spec, but):
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model ({'; '.join(apart)}); "
            "ask both in the same way"
        )
    mine, theirs = a.judges(), b.judges()
    for name in mine.keys() & theirs.keys():
        if mine[name] != theirs[name]:
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
        of = known.setdefault((run.spec.model, run.spec.revision), {k: [] for k in _ROW})
        of[kind].append(run)
    for (model, revision), of in known.items():
        for kind, other in itertools.permutations(_ROW):
            if of[kind]:
                continue
            there = [r for (m, _), o in known.items() if m == model for r in o[kind]]
            cure = f"run `genprobe {kind}` on it"
            if there:
                cure = f"{there[0].folder} is of revision {there[0].spec.revision}"
            raise RunError(
                f"{of[other][0].folder}: no `{kind}` run of {model}, revision {revision}; {cure}"
            )
    short = Counter(model.rstrip("/").rsplit("/", 1)[-1] for model, _ in known)
    named = {}
    for (model, revision), of in known.items():
        name = model.rstrip("/").rsplit("/", 1)[-1]
        named[name if short[name] == 1 else f"{model}@{revision[:12]}"] = of
    return named


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
    models = [run.spec.model.rstrip("/").rsplit("/", 1)[-1] for run in runs]
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
    spec = reviewed.spec_digest(run)  # folders move; an item names its run by what was asked
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
