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

from genprobe import harnesses
from genprobe._version import __version__
from genprobe.logs import every_answer
from genprobe.tasks.yesno import TASK


@task
def yesno(lang: Any, data: str = "builtin", probe: Any = ()) -> Task:
    """Ask yes/no questions about statements, as `genprobe yesno` does.

    lang: a language or several, such as kk,ru. data: `builtin` or a file of statements. probe:
    questions of the pack, all if empty.
    """
    rows = harnesses.asked(lang, data, probe)
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
        rows = [one.score.metadata for one in scores if one.score.metadata]
        found: dict[str, float] = {}
        for name, cell in (harnesses.cells(rows) if rows else {}).items():
            parts = {"": cell.value, "_low": cell.low, "_high": cell.high, "_n": cell.n}
            found |= {f"{name}{of}": value for of, value in parts.items() if value is not None}
        return found

    return count


@scorer(metrics=[table()], name="genprobe")
def read() -> Scorer:
    """Read a reply by the judges of `genprobe yesno`."""

    async def score(state: TaskState, target: Target) -> Score:
        # As the log of this sample will be read.
        [reply, *_] = every_answer(state.output.model_dump())
        found = harnesses.read(state.metadata, reply | {"sample": state.epoch - 1})
        return Score(
            value=found["answer"],
            answer=found["answer"],
            explanation=f"{found['kind']}: {found['evidence']}",
            metadata=found,
        )

    return score
