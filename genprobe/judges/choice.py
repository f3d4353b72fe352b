"""Find which option a reply chooses: by letter, number, place or text.

`options` are the texts in the order in which they were listed. The reply is read without its
thoughts and the echo of its prompt, in this order; the first step that names one option decides:

1. a marked answer: `\\boxed{B}`, `{"answer": "B"}`, `<answer>`, a ticked line;
2. an answer that says so: "the answer is B", "I choose the second one", "B is correct";
3. a reply that begins with an option: "B. The grandson", "The grandson, because …";
4. a conclusion ("so it was the grandson"), what is in bold, a last line that is an option and
   no more;
5. an option that is the only one named, and not turned down.

What names an option: the mark that numbered it (`Item.marks`, where it is known), its letter in
Latin or in the script of the language, its number in any digits, its place ("the last one"), its
text, whole, shortened, inflected or misspelt (a word that no other option has), and whatever says
that it cannot be known, in any wording, where one of the options says so. "Neither of them" counts
as saying that, too; "both" names the option that says "both". "Not A" and "A is wrong" turn A down;
where all others are turned down, the one that is left is chosen. A first impression ("one would
expect A, but …") chooses nothing. Where two are named as the answer, or none, nothing is chosen. A
refusal ("I would rather not compare people") is read as one where it comes before an answer that
nothing marks, or instead of an answer that only says that it is not known. Words:
`prompts/options`, a file a language; English ones are known in every language.

label: the number of the option from 0, empty where none is chosen. `kind` says why: answer;
several (two or more are chosen); neither (all are turned down); hedge (it cannot be told, and no
option says so); refusal; echo (the options repeated); empty; unfinished (cut in its thought);
undecided (options are named, and it is not clear which is meant); offtopic (none is named).

This module is the judge; how it reads is in `choosing/`, a module an idea.
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
    Column("chosen", "the number of the option, from 0, as they were listed", LABEL),
    Column("kind", "why", field_of("kind"), heading="kind"),
)
HEAD, TAIL = 6_000, 14_000  # characters of a longer reply that are looked at


class ChoiceJudge:
    """`choice`: see the module's docstring. fields: `kind`."""

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
    """Return a reply without its thought, and without the prompt where it repeats that."""
    said = item.parted.reply
    reply = said[text.strip_echo(item.prompt, said) :]
    if not reply.strip() and _bare(said) in map(_bare, item.options):
        return said  # an option with which the prompt begins is no echo of it
    return reply


def _bare(option: str) -> list[str]:
    return text.tokens(text.normalise(option))


def _verdict(decision: Decision) -> Verdict:
    label = "" if decision.option is None else str(decision.option)
    return Verdict(label, decision.rule, decision.evidence, None, {"kind": decision.kind})


@functools.cache
def make() -> ChoiceJudge:
    """Make the judge; it takes no options. InputError where `prompts/` is malformed."""
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
