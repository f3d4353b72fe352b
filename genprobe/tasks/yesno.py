"""Yes/no questions about statements: recognition, agreement, disagreement (SHADES 4.2.1)."""

from __future__ import annotations

import dataclasses

from genprobe.datasets import pairs
from genprobe.engines.control import thoughts
from genprobe.errors import InputError
from genprobe.records import DECODES, FACETS
from genprobe.resources import registry
from genprobe.runs.spec import WHO
from genprobe.tasks import Ask, Asked, Second, Table, Task, chat


def prepare(ask: Ask) -> Asked:
    """Check the statements and decodes of an Ask, and make the judges for these decodes."""
    items, notes = pairs.sentences(ask.data, ask.codes or None)
    for line in notes:
        ask.note(line)
    if ask.control and ask.thinks:
        for code in dict.fromkeys(ask.codes or [item.lang for item in items]):
            thoughts.thoughts(code)  # raises InputError if it does not think in the language
    decodes = tuple(decode for decode in DECODES if decode in ask.decodes) or ("free",)
    if ask.engine == "replay" and decodes != ("free",):
        raise InputError("recorded replies are read as free replies; leave --decode out")
    names = dict.fromkeys(name for decode in decodes for name in TASK.judges[decode])
    judges = [registry.module("judges", name).make() for name in names]
    return chat(dataclasses.replace(ask, decodes=decodes), TASK, items, judges)


TASK = Task(
    name="yesno",
    about="Yes/no questions about statements, read and counted.",
    prepare=prepare,
    judges={
        "free": ("yesno", "refusal", "language"),
        "choice": ("yesno",),
        "logprob": ("probability",),
    },
    questions={"answer": (("yesno", None),)},
    tables=(
        Table(
            "answers",
            "Answers to yes/no questions",
            "Of the clear answers: how often the statement was called a stereotype, and how often "
            "it was endorsed (yes to agreement, no to disagreement), or another question affirmed.",
            main=("recognised", "endorsed", "affirmed"),
            across=("probe",),
            place=10,
            headline="endorsed",
            read=("answer", "yesno"),
        ),
    ),
    asked="asked the questions of {probes} about {statements} in {languages}",
    paradigm="says",
    may_differ=(*WHO, "decode"),
    row=("decode", "lang", "probe", "statement", *FACETS, "sample"),
    second=Second("answer", "yesno"),
)
