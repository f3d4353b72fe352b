"""genprobe: what multilingual instruct models say about stereotypes, read and counted.

    import genprobe
    run = genprobe.yesno("./my-model", langs=["mr"])
    genprobe.score(run)
    genprobe.read("Yes, I do.", lang="en", probe="agreement")["answer"]

The names in `__all__` are public: the commands of the command line as functions, and what they give
back; everything else may change. They are imported when first used, so that `import genprobe` is
light. docs/python.md shows them.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

from genprobe._version import __version__

if TYPE_CHECKING:  # for editors and type checkers; `_PUBLIC` says the same
    from genprobe.analysis.reproduce import run as reproduce
    from genprobe.analysis.score import score
    from genprobe.api import (
        Run,
        choices,
        compare,
        describe,
        essays,
        gate,
        judge,
        logprob,
        merge,
        read,
        report,
        stories,
        yesno,
    )
    from genprobe.api.checks import verify
    from genprobe.api.data import (
        augment,
        classifiers_compare,
        classifiers_measure,
        classifiers_train,
        dataset_disambiguate,
        dataset_document,
        dataset_validate_keep,
        licence,
        list_names,
        review_plan,
    )
    from genprobe.audits.audit import audit
    from genprobe.audits.series import series as audit_series
    from genprobe.curation.diversity import run as dataset_diversity
    from genprobe.curation.steps import collect as dataset_collect
    from genprobe.curation.steps import convert as dataset_convert
    from genprobe.curation.steps import extract as dataset_extract
    from genprobe.curation.steps import fill as dataset_fill
    from genprobe.curation.steps import group as dataset_group
    from genprobe.curation.steps import pair as dataset_pair
    from genprobe.curation.steps import validate_import as dataset_validate_import
    from genprobe.curation.validate import export as dataset_validate_export
    from genprobe.engines import Options, Sampling
    from genprobe.errors import GenprobeError
    from genprobe.files.rows import Rows
    from genprobe.harnesses.questions import write as peers
    from genprobe.lint import lint
    from genprobe.publishing import publish
    from genprobe.records import Failure, Judgment, Request, Response, Score, Statement
    from genprobe.render.scores import Scores
    from genprobe.review.agreement import agreement as review_agreement
    from genprobe.review.collect import collect as review_import
    from genprobe.review.sample import export as review_export
    from genprobe.selftest import run as selftest
    from genprobe.tasks.pipeline.reread import rejudge

__all__ = [
    "Failure",
    "GenprobeError",
    "Judgment",
    "Options",
    "Request",
    "Response",
    "Rows",
    "Run",
    "Sampling",
    "Score",
    "Scores",
    "Statement",
    "__version__",
    "audit",
    "audit_series",
    "augment",
    "choices",
    "classifiers_compare",
    "classifiers_measure",
    "classifiers_train",
    "compare",
    "dataset_collect",
    "dataset_convert",
    "dataset_disambiguate",
    "dataset_diversity",
    "dataset_document",
    "dataset_extract",
    "dataset_fill",
    "dataset_group",
    "dataset_pair",
    "dataset_validate_export",
    "dataset_validate_import",
    "dataset_validate_keep",
    "describe",
    "essays",
    "gate",
    "judge",
    "licence",
    "lint",
    "list_names",
    "logprob",
    "merge",
    "peers",
    "publish",
    "read",
    "rejudge",
    "report",
    "reproduce",
    "review_agreement",
    "review_export",
    "review_import",
    "review_plan",
    "score",
    "selftest",
    "stories",
    "verify",
    "yesno",
]

# Name -> where it is.
_PUBLIC = {
    "yesno": "api.yesno",
    "stories": "api.stories",
    "choices": "api.choices",
    "essays": "api.essays",
    "logprob": "api.logprob",
    "read": "api.read",
    "judge": "api.judge",
    "rejudge": "tasks.pipeline.reread.rejudge",
    "score": "analysis.score.score",
    "compare": "api.compare",
    "gate": "api.gate",
    "report": "api.report",
    "publish": "publishing.publish",
    "peers": "harnesses.questions.write",
    "audit": "audits.audit.audit",
    "audit_series": "audits.series.series",
    "review_export": "review.sample.export",
    "review_import": "review.collect.collect",
    "review_agreement": "review.agreement.agreement",
    "describe": "api.describe",
    "dataset_extract": "curation.steps.extract",
    "dataset_group": "curation.steps.group",
    "dataset_pair": "curation.steps.pair",
    "dataset_fill": "curation.steps.fill",
    "dataset_diversity": "curation.diversity.run",
    "augment": "api.data.augment",
    "dataset_collect": "curation.steps.collect",
    "dataset_convert": "curation.steps.convert",
    "dataset_disambiguate": "api.data.dataset_disambiguate",
    "dataset_document": "api.data.dataset_document",
    "dataset_validate_export": "curation.validate.export",
    "dataset_validate_import": "curation.steps.validate_import",
    "dataset_validate_keep": "api.data.dataset_validate_keep",
    "classifiers_train": "api.data.classifiers_train",
    "classifiers_measure": "api.data.classifiers_measure",
    "classifiers_compare": "api.data.classifiers_compare",
    "licence": "api.data.licence",
    "list_names": "api.data.list_names",
    "review_plan": "api.data.review_plan",
    "reproduce": "analysis.reproduce.run",
    "verify": "api.checks.verify",
    "merge": "api.merge",
    "lint": "lint.lint",
    "selftest": "selftest.run",
    "Run": "api.Run",
    "Rows": "files.rows.Rows",
    "Scores": "render.scores.Scores",
    "Options": "engines.Options",
    "Sampling": "engines.Sampling",
    "Statement": "records.Statement",
    "Request": "records.Request",
    "Response": "records.Response",
    "Failure": "records.Failure",
    "Judgment": "records.Judgment",
    "Score": "records.Score",
    "GenprobeError": "errors.GenprobeError",
}

# Names that go with the next minor version -> where they are, and what to use.
_GOING = {
    "judge_file": ("tasks.pipeline.judge.judge_file", "judge"),
    "judge_run": ("tasks.judge_run", "judge"),
    "compare_runs": ("analysis.compare.compare", "compare"),
    "compare_paradigms": ("analysis.paradigm_runs.paradigms", "compare(…, paradigms=True)"),
    "build_report": ("report.build", "report"),
    "reproduce_study": ("analysis.reproduce.run", "reproduce"),
    "lint_prompts": ("lint.lint", "lint"),
    "logprobs": ("api.logprob", "logprob"),
}


def __getattr__(name: str) -> Any:
    if name in _GOING:
        where, new = _GOING[name]
        line = f"genprobe.{name} goes with the next minor version; use genprobe.{new}"
        warnings.warn(line, DeprecationWarning, stacklevel=2)
        return _found(where)
    if name not in _PUBLIC:
        raise AttributeError(f"module 'genprobe' has no attribute {name!r}")
    found = _found(_PUBLIC[name])
    if name.islower():
        found = _found("api.served.checked")(found)
    globals()[name] = found
    return found


def _found(where: str) -> Any:
    module, _, attribute = where.rpartition(".")
    return getattr(importlib.import_module(f"genprobe.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Face(ModuleType):
    """The package, whose public names no module takes.

    Importing a module sets its name in its package; three have the name of a command (`report`,
    `lint`, `selftest`). So `genprobe.report` is the function whatever was imported before.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
