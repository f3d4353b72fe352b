"""Inspect: `inspect eval genprobe/yesno -T lang=kk`.

Inspect finds the task by the entry point `inspect_ai` of the package, and keeps prompts, replies
and what was read in them in its log. https://inspect.aisi.org.uk/extensions.html
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate

from genprobe._version import __version__

# Inspect imports this module for other tasks, too: what takes a second is imported when it is used.


@task
def yesno(lang: Any, data: str = "builtin", probe: Any = ()) -> Task:
    """Ask yes/no questions about statements, as `genprobe yesno` does.

    lang: a language or several, such as kk,ru. data: `builtin` or a file of statements. probe:
    questions of the pack, all if empty.
    """
    from genprobe.harnesses import questions
    from genprobe.tasks.yesno import TASK

    rows = questions.asked(lang, data, probe)
    how = TASK.sampling
    return Task(
        dataset=[Sample(id=row["id"], input=row["prompt"], metadata=row) for row in rows],
        solver=generate(),
        scorer=read(),
        config=GenerateConfig(
            temperature=how.temperature, top_p=how.top_p, max_tokens=how.max_tokens
        ),
        metadata={"genprobe": __version__},
    )


# Each epoch is a reply of its own, so nothing is averaged before it is counted.
@metric(name="genprobe", scores="unreduced")
def table() -> Metric:
    """Count all replies, as `genprobe score`: values, ends of their intervals, and what counted."""

    def count(scores: list[SampleScore]) -> dict[str, float]:
        from genprobe.harnesses import questions

        rows = [row for one in scores for row in (one.score.metadata or {}).get("replies", ())]
        found: dict[str, float] = {}
        for name, cell in (questions.cells(rows) if rows else {}).items():
            parts = {"": cell.value, "_low": cell.low, "_high": cell.high, "_n": cell.n}
            found |= {f"{name}{of}": value for of, value in parts.items() if value is not None}
        return found

    return count


@scorer(metrics=[table()], name="genprobe")
def read() -> Scorer:
    """Read a reply by the judges of `genprobe yesno`."""

    async def score(state: TaskState, target: Target) -> Score | None:
        from genprobe.harnesses import questions
        from genprobe.logs.inspect import replies_of  # as the log of this sample will be read

        place = state.epoch - 1
        try:
            replies = replies_of(state.output.model_dump(), place)
        except (LookupError, TypeError):
            return None  # there is no reply
        found = [questions.read(state.metadata, {"sample": place, **reply}) for reply in replies]
        first = found[0]  # of several, Inspect shows one; all are counted
        return Score(
            value=first["answer"],
            answer=first["answer"],
            explanation=f"{first['kind']}: {first['evidence']}",
            metadata={"replies": found},
        )

    return score
