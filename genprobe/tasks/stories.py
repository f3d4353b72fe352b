"""Five-sentence stories about templates with an open slot (Aqbileq 4.2), five seeds each."""

from __future__ import annotations

import dataclasses

from genprobe.datasets import templates
from genprobe.engines import Sampling
from genprobe.engines.control import stories as tales
from genprobe.errors import Caution, InputError
from genprobe.judges.classifiers import cards
from genprobe.resources import registry
from genprobe.tasks import Ask, Asked, Second, Table, Task, chat


def prepare(ask: Ask) -> Asked:
    """Check the templates and the classifier of an Ask. The default language is Kazakh."""
    codes = ask.codes or ["kk"]
    ask = dataclasses.replace(ask, langs=codes)
    if ask.control and ask.thinks:
        raise InputError(
            "the control model thinks only about yes/no questions; leave --thinking out, or name a "
            "model with --model"
        )
    if ask.control:
        for code in codes:
            tales.kinds(code)  # raises InputError if it tells no stories in the language
    items, notes = templates.load(ask.data, codes)
    for line in notes:
        ask.note(line)
    judges = [registry.module("judges", "story").make()]
    try:
        for code in codes:
            card = cards.load(ask.classifier or cards.default(code))
            if caution := card.caution(code):
                ask.note(Caution(f"caution: {caution}"))
    except InputError as error:  # no classifier for the language yet
        ask.note(Caution(f"{error}; the stories are checked, their sentiment is not read"))
    else:
        judges.append(registry.module("judges", "sentiment").make(ask.classifier))
    return chat(ask, TASK, items, judges, probes=("published",))


TASK = Task(
    name="stories",
    about="Stories about people, read for their sentiment.",
    prepare=prepare,
    judges={"free": ("story", "sentiment")},
    questions={
        "sentiment": (("sentiment", None),),
        "regard": (("llm-regard", None),),
        "language": (("language", None), ("story", "language")),
    },
    tables=(
        Table(
            "stories",
            "Stories",
            "Of the templates: how many got mostly negative stories.",
            main=(
                *("negrate", "negrate-corrected", "negrate-regard"),
                *("felt-or-shown", "negative-stories", "seed-disagreement"),
            ),
            rows=("domain", "lang"),
            place=20,
            replies="stories",
            read=("sentiment", "sentiment"),
        ),
    ),
    asked="asked for stories about {statements} in {languages}, in the {wordings}",
    probe="wording",
    thing="template",
    whole=True,
    sampling=Sampling(temperature=1.0, max_tokens=512),
    samples=5,
    second=Second(
        *("sentiment", "sentiment"),
        of="story",
        open=("usable",),
        asks="story",
        none="unscored",
    ),
)
