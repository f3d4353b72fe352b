"""genprobe: what multilingual instruct models say about stereotypes, read and counted.

    import genprobe
    run = genprobe.yesno("./my-model", langs=["mr"])
    genprobe.score(run)

The names below are public: the commands of the command line, and what they give back. They are
imported when first used, so that `import genprobe` is light. docs/python.md shows them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from genprobe._version import __version__

if TYPE_CHECKING:  # for editors and type checkers; `_PUBLIC` says the same
    from genprobe.analysis.compare import compare as compare_runs
    from genprobe.analysis.paradigm_runs import paradigms as compare_paradigms
    from genprobe.analysis.reproduce import run as reproduce_study
    from genprobe.analysis.score import score
    from genprobe.api import choices, essays, logprobs, stories, yesno
    from genprobe.engines import Options, Sampling
    from genprobe.errors import GenprobeError
    from genprobe.lint import lint as lint_prompts
    from genprobe.records import Failure, Judgment, Request, Response, Score, Statement
    from genprobe.render.notebook import Run
    from genprobe.render.scores import Scores
    from genprobe.report import build as build_report
    from genprobe.review.agreement import agreement as review_agreement
    from genprobe.review.collect import collect as review_import
    from genprobe.review.sample import export as review_export
    from genprobe.tasks import judge_run
    from genprobe.tasks.pipeline.judge import judge_file

__all__ = [
    "Failure",
    "GenprobeError",
    "Judgment",
    "Options",
    "Request",
    "Response",
    "Run",
    "Sampling",
    "Score",
    "Scores",
    "Statement",
    "__version__",
    "build_report",
    "choices",
    "compare_paradigms",
    "compare_runs",
    "essays",
    "judge_file",
    "judge_run",
    "lint_prompts",
    "logprobs",
    "reproduce_study",
    "review_agreement",
    "review_export",
    "review_import",
    "score",
    "stories",
    "yesno",
]

# Name -> where it is. A module may have the name of a command, such as `genprobe.report`; then
# the function has another, so that what `from genprobe import report` gives never depends on what
# was imported before.
_PUBLIC = {
    "yesno": "api.yesno",
    "stories": "api.stories",
    "choices": "api.choices",
    "essays": "api.essays",
    "logprobs": "api.logprobs",
    "judge_run": "tasks.judge_run",
    "judge_file": "tasks.pipeline.judge.judge_file",
    "score": "analysis.score.score",
    "compare_runs": "analysis.compare.compare",
    "compare_paradigms": "analysis.paradigm_runs.paradigms",
    "review_export": "review.sample.export",
    "review_import": "review.collect.collect",
    "review_agreement": "review.agreement.agreement",
    "build_report": "report.build",
    "reproduce_study": "analysis.reproduce.run",
    "lint_prompts": "lint.lint",
    "Run": "render.notebook.Run",
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


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'genprobe' has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].rpartition(".")
    found = globals()[name] = getattr(importlib.import_module(f"genprobe.{module}"), attribute)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
