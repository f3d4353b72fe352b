"""Find which option a reply chooses: by letter, number, place or text.

`options` are the texts of the options in the order in which they were listed. The thought, the
repeated prompt, and a further item that the model goes on with are removed from the reply. These
steps are tried in order, and the first one that finds an answer decides:

1. a marked answer: `\\boxed{B}`, `{"answer": "B"}`, `<answer>`, a ticked line;
2. an announced answer: "the answer is B", "I choose the second one", "B is correct";
3. a reply that begins with an option: "B. The grandson", "The grandson, because …";
4. a conclusion ("so it was the grandson"), an option in bold, or a last line that is only an
   option;
5. the only option that is named, if it is not rejected.

An option is named by its mark in the list (`Item.marks`, else as in the prompt), its letter in
Latin or in the script of the language, its number in any digits, its place ("the last one"), or its
text: all of it, or a part that no other option has, even inflected or misspelt. Options with
figures are compared sign by sign. A short reply may also describe it ("the younger of the two").
What explains an answer given in full does not override it. If one option says that the
answer cannot be known, any wording of that names it, and so does "neither of them". "Both" names an
option that says "both".

"Not A" and "A is wrong" reject A; if all options but one are rejected, that one is chosen. A first
impression ("one would expect A, but …") chooses nothing. If two options are named as the answer,
or none, nothing is chosen. A refusal ("I would rather not compare people") overrides an unmarked
answer after it, and an answer that only says that it is not known. The words are in
`prompts/options`, one file per language; the English ones are used for every language.

label: the number of the chosen option, from 0; empty if none is chosen. `kind` gives the reason:
answer; mismatch (the mark stands for one option, `by_mark`, and the text beside it is that of
another, `by_text`); unsure (the reply hesitates, or was read by a step that errs too often, which
found `likely`); several (two or more are chosen); neither (all are rejected); hedge (it cannot be
known, and no option says so); refusal; echo (the options repeated); empty; unfinished (cut off
inside the thought); undecided (options are named, but it is not clear which one is meant); offtopic
(no option is named).

This module is the judge; the steps of reading are the modules of `choosing/`.
"""

from __future__ import annotations

import functools
import re

from genprobe import text
from genprobe.datasets import choices, phrasing
from genprobe.judges import LABEL, Column, Item, Verdict, field_of, refusal
from genprobe.judges.choosing import refusing
from genprobe.judges.choosing.deciding import Decision, decide, withheld
from genprobe.judges.choosing.options import Options
from genprobe.judges.choosing.reading import Reading
from genprobe.linguistics import identify
from genprobe.records import digest
from genprobe.resources import packs, registry

VERSION = "8"  # raised whenever a verdict can change without a change of a file in prompts/
PLACE, READS = 15, "replies to questions with options"
COLUMNS = (
    Column("chosen", "number of the chosen option in the list, from 0", LABEL),
    Column("kind", "kind of reply", field_of("kind"), heading="kind"),
    Column("likely", "option of a reply that is unsure, in the list, from 0", field_of("likely")),
    Column("by_mark", "option by its mark, if the text contradicts it", field_of("by_mark")),
    Column("by_text", "option by its text, if the mark contradicts it", field_of("by_text")),
)
_UNREAD = ("offtopic", "undecided", "several", "unsure")  # kinds of what may be another language
_LABEL = re.compile(r"[^\W\d_][\w ]{2,30}[:：]")  # of a part of a prompt: "Question:"
_ITEM = re.compile(r"[(（]?[^\W_]{1,3}[.)）、:：] ")  # before an option
_LONG = 20  # characters of a line by which it is known again
HEAD, TAIL = 6_000, 14_000  # characters of a longer reply that are read: its beginning, its end


class ChoiceJudge:
    """The judge `choice`: see the module's docstring. fields: `kind`."""

    name = "choice"
    column = "chosen"
    reads = frozenset(("free", "choice"))
    needs = ("lang", "options", "response")

    @functools.cached_property
    def signature(self) -> str:
        """Return the version with a hash of all words; it takes longer than to read a reply."""
        known = [
            [
                code,
                repr(phrasing.words(code)),
                packs.language_hash(code),
                choices.wording(code).hash,
            ]
            for code in registry.names("options")
        ]
        return f"choice@{VERSION}+{digest([known, refusal.make().signature], 8)}"

    def __call__(self, item: Item) -> Verdict:
        if item.parted.state == "open":
            return _verdict(Decision(None, "unfinished", "open-thought", ""))
        reply = _without_echo(item)
        if not reply.strip():
            return _verdict(Decision(None, "empty", "no-text", ""))
        if len(reply) > HEAD + TAIL:
            reply = f"{reply[:HEAD]}\n\n{reply[-TAIL:]}"
        decision = _decided(item, reply)
        if decision.kind in _UNREAD:
            spoken = identify.make()(reply, item.lang).code
            if spoken in registry.names("options") and spoken not in (item.lang, "en"):
                other = _decided(item, reply, spoken)
                decision = decision if other.kind == "offtopic" else other
        return _verdict(withheld(decision))


def _decided(item: Item, reply: str, spoken: str = "") -> Decision:
    """Decide on a reply. spoken: its language, if it is not that of the question."""
    options = Options(item.lang, item.options, item.marks, item.prompt, spoken)
    first = _before_next(item.prompt, reply)
    if first != reply and decide(Reading(options, first)).kind in ("answer", "mismatch"):
        reply = first
    reading = Reading(options, reply)
    for behind in (reading.behind_list(), reading.behind_correction()):
        if behind and decide(Reading(options, behind)).kind != "offtopic":
            reading = Reading(options, behind)
    decision = decide(reading)
    if refusing.may_come_first(reading, decision, reply):
        refused = refusal.reader(spoken or item.lang, "en")(Item(item.lang, "", "", reply))
        decision = refusing.weighed(reading, decision, reply, refused)
    return decision


def _without_echo(item: Item) -> str:
    """Return a reply without its thought and without the prompt, if it repeats the prompt."""
    said = item.parted.reply
    reply = said[item.echo :]
    if not reply.strip() and _bare(said) in map(_bare, item.options):
        return said  # an option repeats the beginning of the prompt by chance
    return reply


def _before_next(prompt: str, reply: str) -> str:
    """Return a reply up to where it goes on with another item in the layout of the prompt.

    That begins at a later line that repeats a line of the prompt, or one of its labels but the last
    ("Question:"), or at the paragraph before a list that has the marks of the prompt's options.
    """
    lines = [line.strip() for line in prompt.split("\n") if line.strip()]
    labels = [match[0] for line in lines if (match := _LABEL.match(line))]
    known = {line for line in lines if len(line) > _LONG}
    marks = [match[0] for line in lines if (match := _ITEM.match(line))]
    at, begun, paragraph = 0, False, 0
    for line in reply.split("\n"):
        said = line.strip()
        if begun and (said in known or said.startswith(tuple(labels[:-1]))):
            return reply[:at]
        if begun and paragraph and marks and said.startswith(marks[0]) and said not in lines:
            return reply[:paragraph]
        if begun and not said:
            paragraph = paragraph or at
        begun = begun or bool(said)
        at += len(line) + 1
    return reply


def _bare(option: str) -> list[str]:
    return text.tokens(text.normalise(option))


def _verdict(decision: Decision) -> Verdict:
    label = "" if decision.option is None else str(decision.option)
    numbers = {name: getattr(decision, name) for name in ("likely", "by_mark", "by_text")}
    shown = {name: "" if at is None else str(at) for name, at in numbers.items()}
    return Verdict(label, decision.rule, decision.evidence, None, {"kind": decision.kind, **shown})


@functools.cache
def make() -> ChoiceJudge:
    """Make the judge; it takes no options. It raises InputError if its words are malformed."""
    return ChoiceJudge()
