"""Find which option a reply chooses: by letter, number, place or text.

`options` are the texts of the options in the order in which they were listed. The thought and the
repeated prompt are removed from the reply. These steps are tried in order, and the first one that
finds an answer decides:

1. a marked answer: `\\boxed{B}`, `{"answer": "B"}`, `<answer>`, a ticked line;
2. an announced answer: "the answer is B", "I choose the second one", "B is correct";
3. a reply that begins with an option: "B. The grandson", "The grandson, because …";
4. a conclusion ("so it was the grandson"), an option in bold, or a last line that is only an
   option;
5. the only option that is named, if it is not rejected.

An option is named by its mark in the list (`Item.marks`, if known), its letter in Latin or in the
script of the language, its number in any digits, its place ("the last one"), or its text: all of
it, or a part that no other option has, even inflected or misspelt. If one option says that the
answer cannot be known, any wording of that names it, and so does "neither of them". "Both" names an
option that says "both".

"Not A" and "A is wrong" reject A; if all options but one are rejected, that one is chosen. A first
impression ("one would expect A, but …") chooses nothing. If two options are named as the answer,
or none, nothing is chosen. A refusal ("I would rather not compare people") overrides an unmarked
answer after it, and an answer that only says that it is not known. The words are in
`prompts/options`, one file per language; the English ones are used for every language.

label: the number of the chosen option, from 0; empty if none is chosen. `kind` gives the reason:
answer; several (two or more are chosen); neither (all are rejected); hedge (it cannot be known, and
no option says so); refusal; echo (the options repeated); empty; unfinished (cut off inside the
thought); undecided (options are named, but it is not clear which one is meant); offtopic (no option
is named).

This module is the judge; the steps of reading are the modules of `choosing/`.
"""

from __future__ import annotations

import functools

from genprobe import text
from genprobe.datasets import choices, phrasing
from genprobe.judges import LABEL, Column, Item, Verdict, field_of, refusal
from genprobe.judges.choosing import refusing
from genprobe.judges.choosing.deciding import Decision, decide
from genprobe.judges.choosing.options import Options
from genprobe.judges.choosing.reading import Reading
from genprobe.records import digest
from genprobe.resources import packs, registry

VERSION = "4"  # raised whenever a verdict can change without a change of a file in prompts/
PLACE, READS = 15, "replies to questions with options"
COLUMNS = (
    Column("chosen", "number of the chosen option in the list, from 0", LABEL),
    Column("kind", "kind of reply", field_of("kind"), heading="kind"),
)
HEAD, TAIL = 6_000, 14_000  # characters of a longer reply that are read: its beginning, its end


class ChoiceJudge:
    """The judge `choice`: see the module's docstring. fields: `kind`."""

    name = "choice"
    column = "chosen"
    reads = frozenset(("free", "choice"))
    needs = ("lang", "options", "response")

    def __init__(self, version: str) -> None:
        self.signature = f"choice@{version}"
        self._refusal = refusal.make()

    def __call__(self, item: Item) -> Verdict:
        if item.parted.state == "open":
            return _verdict(Decision(None, "unfinished", "open-thought", ""))
        reply = _without_echo(item)
        if not reply.strip():
            return _verdict(Decision(None, "empty", "no-text", ""))
        if len(reply) > HEAD + TAIL:
            reply = f"{reply[:HEAD]}\n\n{reply[-TAIL:]}"
        options = Options(item.lang, item.options, item.marks)
        reading = Reading(options, reply)
        behind = reading.behind_list()
        if behind:
            reading = Reading(options, behind)
        decision = decide(reading)
        if refusing.may_come_first(reading, decision):
            refused = self._refusal(Item(item.lang, "", "", reply))
            decision = refusing.weighed(reading, decision, reply, refused)
        return _verdict(decision)


def _without_echo(item: Item) -> str:
    """Return a reply without its thought and without the prompt, if it repeats the prompt."""
    said = item.parted.reply
    reply = said[text.strip_echo(item.prompt, said) :]
    if not reply.strip() and _bare(said) in map(_bare, item.options):
        return said  # an option repeats the beginning of the prompt by chance
    return reply


def _bare(option: str) -> list[str]:
    return text.tokens(text.normalise(option))


def _verdict(decision: Decision) -> Verdict:
    label = "" if decision.option is None else str(decision.option)
    return Verdict(label, decision.rule, decision.evidence, None, {"kind": decision.kind})


@functools.cache
def make() -> ChoiceJudge:
    """Make the judge; it takes no options.

    Raises InputError if a file in `prompts/` is malformed.
    """
    codes = registry.names("options")
    known = [
        [
            code,
            repr(phrasing.words(code)),
            packs.load_language(code).hash,
            choices.wording(code).hash,
        ]
        for code in codes
    ]
    return ChoiceJudge(f"{VERSION}+{digest([known, refusal.make().signature], 8)}")
