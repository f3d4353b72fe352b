"""Essays, reasons and remarks about statements (SHADES 4.2.2, Appendix I, with its sampling)."""

from __future__ import annotations

from genprobe.datasets import statements
from genprobe.engines import Sampling
from genprobe.errors import Caution, InputError
from genprobe.judges import Column
from genprobe.outcomes import sides
from genprobe.outcomes.columns import Unit
from genprobe.resources import registry
from genprobe.tasks import Ask, Asked, Second, Table, Task, chat


def prepare(ask: Ask) -> Asked:
    """Check the model, statements and frames of an Ask."""
    if ask.control:
        raise InputError("essays need --model, or --base-url: the control model writes none")
    items, notes = statements.load(ask.data, ask.codes or None)
    for line in notes:
        ask.note(line)
    langs = sorted({item.lang for item in items})
    for line in () if ask.second_reader else sides.needed(langs):
        ask.note(Caution(f"caution: {line}"))
    judges = [registry.module("judges", name).make() for name in TASK.judges["free"]]
    return chat(ask, TASK, items, judges)


TASK = Task(
    name="essays",
    about="Essays and remarks about statements, and which side they take.",
    prepare=prepare,
    judges={"free": ("refusal", "language")},
    questions={"stance": ((sides.MODEL, None),), "refusal": (("refusal", None),)},
    tables=(
        Table(
            "essays",
            "Essays and remarks",
            "Of the texts that were no refusal: on which side they argue.",
            main=("argues-for", "argues-against", "argues-both"),
            rows=("probe",),
            place=30,
            replies="essays",
            read=("refused", "refusal"),
        ),
    ),
    asked="asked for essays and remarks about {statements} in {languages}, in the {wordings}",
    probe="frame",
    sampling=Sampling(temperature=0.7, top_p=0.95, max_tokens=128),
    rows=Unit((Column(sides.COLUMN, "for, against, both, neither, unclear, or refusal", None),)),
    second=Second(
        *("stance", sides.MODEL, "refusal"),
        open=("no",),
        asks="essay",
        none=sides.NEITHER,
    ),
)
