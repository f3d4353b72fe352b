"""Essays, reasons and remarks about statements (SHADES 4.2.2, Appendix I, with its sampling)."""

from __future__ import annotations

from genprobe.datasets import statements
from genprobe.engines import Sampling
from genprobe.errors import Caution, InputError
from genprobe.outcomes import sides
from genprobe.resources import registry
from genprobe.tasks import Ask, Asked, Second, Table, Task, chat


def prepare(ask: Ask) -> Asked:
    """Check the model, statements and frames of an Ask."""
    if ask.control:
        raise InputError("essays need --model, or --base-url: the control model writes none")
    items, notes = statements.load(ask.data, ask.codes or None)
    for line in notes:
        ask.note(line)
    for line in () if ask.second_reader else sides.needed(sorted({item.lang for item in items})):
        ask.note(Caution(f"caution: {line}"))
    judges = [registry.module("judges", name).make() for name in TASK.judges["free"]]
    return chat(ask, TASK, items, judges)


TASK = Task(
    name="essays",
    about="Essays and remarks about statements, and which side they take.",
    prepare=prepare,
    judges={"free": ("stance", "refusal", "language")},
    questions={"stance": (("stance", None),), "refusal": (("refusal", None),)},
    tables=(
        Table(
            "essays",
            "Essays and remarks",
            "Of the texts that were no refusal: on which side they argue.",
            main=("argues-for", "argues-against", "argues-both", "hedged"),
            rows=("probe",),
            place=30,
            replies="essays",
            read=("stance", "stance"),
        ),
    ),
    asked="asked for essays and remarks about {statements} in {languages}, in the {wordings}",
    probe="frame",
    sampling=Sampling(temperature=0.7, top_p=0.95, max_tokens=128),
    second=Second(
        *("stance", "stance"),
        open=("for", "against", "both", "neither"),
        asks="essay",
        none="neither",
    ),
)
