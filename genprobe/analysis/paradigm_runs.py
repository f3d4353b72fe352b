"""Match runs of what models say with runs of what they prefer, by model, for `paradigms`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from genprobe import tasks
from genprobe.analysis.sources import asked_alike, runs_of, signed_by, signer
from genprobe.errors import InputError, RunError
from genprobe.render.grid import model_names
from genprobe.render.scores import Scores
from genprobe.resources.registry import listed
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, quiet

if TYPE_CHECKING:
    import pandas as pd


def paradigms(folders: object, *, by: str | Sequence[str] = (), note: Note = quiet) -> Scores:
    """Compare what models say with what they prefer (`analysis.paradigms`).

    Each model has its own yes/no and log-probability runs, matched by model and revision. by:
    columns that split the cells in addition to model, reading and scorer; language if empty. note:
    called with the items that do not count. Raises RunError if a model lacks runs of one kind, or
    two models were not asked alike; InputError for anything else that cannot be compared.
    """
    from genprobe.analysis import paradigms as both
    from genprobe.outcomes import table

    columns = [c for c in listed(by, "by") or ["lang"] if c not in ("model", "decode", "scorer")]
    models = _by_model([Run.open(folder) for folder in dict.fromkeys(runs_of(folders))])
    first = next(iter(models.values()))
    scores = Scores()
    signers: list[Callable[[str], str]] = []
    for name, runs in models.items():
        for kind, of_kind in runs.items():
            for run in of_kind:
                like = (
                    r
                    for r in first[kind]
                    if not r.spec.differences(run.spec, tasks.find(kind).may_differ)
                )
                asked_alike(next(like, first[kind][0]), run, tasks.find(kind).may_differ)
        try:
            said, preferred = (
                _whole([table.outcomes(run) for run in of_kind], list(tasks.find(kind).row))
                for kind, of_kind in runs.items()
            )
            found = both.items(said, preferred, columns)
        except InputError as error:
            folder = " and ".join(str(r.folder) for of_kind in runs.values() for r in of_kind)
            raise InputError(f"{folder}: {error}") from None
        own = [signer(r.folder, r, "", {}) for of_kind in runs.values() for r in of_kind]
        signers += own
        one = name if len(models) > 1 else None
        scores += both.scores(found, columns, signed_by(own), one)
        for line in both.notes(found):
            note(f"{name}: {line}" if one else line)
    if len(models) > 1:
        scores += both.ranking(scores, signed_by(signers))
    if 1 < len(models) < both.LEAST:
        note(f"{len(models)} models: comparing their ranks needs {both.LEAST} at least")
    return scores


def _by_model(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """Group runs: name of a model -> its runs of each kind, at least one.

    Raises RunError for a run of another kind, and for a model that lacks a kind.
    """
    ways = {task.name: task.paradigm for task in tasks.every() if task.paradigm}
    asked = {run.spec.command for run in runs if ways.get(run.spec.command) == "says"}
    if len(asked) > 1:
        raise RunError(f"runs of {' and '.join(sorted(asked))} ask for different things; give one")
    says = asked or {"yesno"}
    kinds = [name for name, way in ways.items() if way == "prefers" or name in says]
    known: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        kind = run.spec.command
        if kind not in kinds:
            raise RunError(
                f"{run.folder} is a run of `{kind}`; give those of `yesno` (or `choices`) and "
                "`logprob`"
            )
        of = known.setdefault(run.spec.who, {k: [] for k in kinds})
        of[kind].append(run)
    for (model, _), of in known.items():
        for kind, other in itertools.permutations(kinds):
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
    """Join the tables of several runs of one model.

    Raises InputError if a row is in two of them.
    """
    import pandas as pd

    whole = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    if len(tables) > 1 and whole.duplicated([c for c in key if c in whole]).any():
        raise InputError("these runs ask the same question twice; give one of them")
    return whole
