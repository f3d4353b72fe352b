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

__version__ = "0.1.0"

if TYPE_CHECKING:  # for editors and type checkers; `_PUBLIC` says the same
    from genprobe.agreement import agreement as review_agreement
    from genprobe.asking import essays, stories, yesno
    from genprobe.asking import logprob as logprobs
    from genprobe.comparing import compare as compare_runs
    from genprobe.comparing import paradigms as compare_paradigms
    from genprobe.counting import score
    from genprobe.engines import Options, Sampling
    from genprobe.errors import GenprobeError
    from genprobe.lint import lint as lint_prompts
    from genprobe.reading import judge_file, judge_run
    from genprobe.records import Failure, Judgment, Request, Response, Score, Statement
    from genprobe.report import build as build_report
    from genprobe.reproduce import run as reproduce_study
    from genprobe.review import export as review_export
    from genprobe.reviewed import collect as review_import
    from genprobe.scores import Scores
    from genprobe.store import Run

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
    "yesno": "asking.yesno",
    "stories": "asking.stories",
    "essays": "asking.essays",
    "logprobs": "asking.logprob",
    "judge_run": "reading.judge_run",
    "judge_file": "reading.judge_file",
    "score": "counting.score",
    "compare_runs": "comparing.compare",
    "compare_paradigms": "comparing.paradigms",
    "review_export": "review.export",
    "review_import": "reviewed.collect",
    "review_agreement": "agreement.agreement",
    "build_report": "report.build",
    "reproduce_study": "reproduce.run",
    "lint_prompts": "lint.lint",
    "Run": "store.Run",
    "Scores": "scores.Scores",
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
    module, _, attribute = _PUBLIC[name].partition(".")
    found = globals()[name] = getattr(importlib.import_module(f"genprobe.{module}"), attribute)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
