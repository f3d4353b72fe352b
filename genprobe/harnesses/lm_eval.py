"""lm-eval: `lm_eval --include_path "$(genprobe peers lm-eval)" --tasks genprobe_yesno_kk`.

The tasks are YAML files that name functions of this module. lm-eval shows one value of a measure;
intervals, n and what was left out come with `genprobe score` of its samples (`--log_samples`).
https://github.com/EleutherAI/lm-evaluation-harness/blob/main/docs/task_guide.md
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from genprobe import harnesses
from genprobe._version import __version__
from genprobe.files import disk
from genprobe.files.cells import cell_text
from genprobe.files.rows import Row
from genprobe.records import canonical, digest
from genprobe.tasks.yesno import TASK

# A text in JSON is the same text in YAML; without its quotation marks, `no` would be false.
_TASK = """\
# Written by `genprobe peers lm-eval`; write it again after an update of genprobe.
task: {task}
tag: genprobe_yesno
custom_dataset: !function {here}.docs
dataset_kwargs: {{lang: {lang}, data: {data}}}
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: ""
process_results: !function {here}.process_results
generation_kwargs: {{until: [], max_gen_toks: {tokens}, do_sample: false, temperature: 0.0}}
metadata: {{version: {version}}}
metric_list:
"""
_METRIC = "  - {{metric: {name}, aggregation: !function {here}.{name}, higher_is_better: null}}\n"
# Read by every judge, so that each measure of the task has a value.
_REPLY = "Yes, I agree with this statement, and I think that it is quite right."


def write(folder: Path, rows: Sequence[Row], data: str) -> None:
    """Write a task for each language of some rows of `asked`. data: what they are about."""
    measures = "".join(_METRIC.format(name=name, here=__name__) for name in _measures())
    for lang in dict.fromkeys(row["lang"] for row in rows):
        task = _TASK.format(
            task=canonical(f"genprobe_yesno_{lang}"),
            lang=canonical(lang),
            data=canonical(data),
            here=__name__,
            tokens=TASK.sampling.max_tokens,
            version=canonical(__version__),
        )
        disk.replace(folder / f"genprobe_yesno_{lang}.yaml", [task + measures])


@functools.cache
def _measures() -> tuple[str, ...]:
    """Return the names of the cells of a table: those that a few replies fill."""
    rows = harnesses.asked("en")[:12]
    return tuple(harnesses.cells([harnesses.read(row, {"response": _REPLY}) for row in rows]))


class Label(str):
    """What was read in a reply, which the samples of lm-eval show; with its row, to be counted."""

    row: Row


def docs(lang: str, data: str = "builtin", **_: Any) -> dict[str, Any]:
    """Return the questions about statements in a language, as lm-eval takes data.

    data: `builtin` or a file of statements. lm-eval adds what it is told by `--metadata`.
    """
    from datasets import Dataset

    rows = harnesses.asked(lang, data)
    names = dict.fromkeys(name for row in rows for name in row)
    texts = {n: n != "valid_in" and any(isinstance(row.get(n), str) for row in rows) for n in names}
    return {
        "test": Dataset.from_dict(
            {n: [cell_text(row.get(n)) if texts[n] else row.get(n) for row in rows] for n in names}
        )
    }


def process_results(doc: Row, results: Sequence[str]) -> dict[str, Label]:
    """Read a reply; every measure gets it, and counts those that are its own."""
    found = harnesses.read(doc, {"response": results[0]})
    label = Label(found["answer"])
    label.row = found
    return dict.fromkeys(_measures(), label)


def __getattr__(name: str) -> Callable[[Iterable[Label]], float]:
    """Return the function that gives a value of the table, such as `endorsed_agreement`."""
    if name.startswith("__"):
        raise AttributeError(name)

    def value(labels: Iterable[Label]) -> float:
        return _values([one.row for one in labels]).get(name, math.nan)

    value.__name__ = name
    return value


_counted: dict[str, dict[str, float]] = {}  # the last table, since all measures ask for the same


def _values(rows: list[Row]) -> dict[str, float]:
    key = digest(rows)
    if key not in _counted:
        _counted.clear()
        _counted[key] = {
            name: math.nan if one.value is None else one.value
            for name, one in harnesses.cells(rows).items()
        }
    return _counted[key]
