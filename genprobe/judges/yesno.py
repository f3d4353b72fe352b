"""Read the answer of a yes/no reply: yes, no or ambiguous, with its kind and evidence.

The repeated prompt is removed from the reply, and the rest is cut into tokens. The phrases of the
language's file and of English, and the single answer words of the other languages, are looked up,
longest first. Each match is an event. The first event that commits to an answer is the answer:

- an answer word in the position of an answer: at the start of the reply, of a line or of a
  sentence, or after a bullet, a bracket or a label. Words that also mean something else (Spanish
  *no*, Hindi *नहीं*, Chinese *是*: `yes_alone`, `no_alone` in the language file) must stand alone
  there.
- a sentence that clearly answers: "I do not agree" is *no* to agreement, *yes* to disagreement.

An answer that is marked or announced as such overrides that, and the end of a reply may correct it.
"yes / no" and the like only repeat the options; a choice made after them is the answer.

The steps are the modules of `judges/reading/`; its `__init__` lists them. The definitions are those
of DESIGN.md. How well the reader agrees with two blind readings is in docs/shades.md.
"""

from __future__ import annotations

import functools
import re

from genprobe import text
from genprobe.judges import BOOLEAN, LABEL, VERBATIM, Column, Item, Verdict, field_of
from genprobe.judges.reading import asked, closing, decision, phrases, probes
from genprobe.judges.reading.lexicon import Lexicon, lexicon
from genprobe.judges.reading.parsers import PARSERS, Shades2025, Strict
from genprobe.judges.reading.reply import Found
from genprobe.judges.reading.said import Reading
from genprobe.linguistics import clauses, identify, thoughts, verdicts
from genprobe.records import JSON, digest
from genprobe.resources import measured, packs, panel, registry

# Raised whenever an answer can change without a change of a language file.
VERSION = 15

PLACE, READS = 10, "replies to yes/no questions"
COLUMNS = (
    Column("answer", "answer to the question as worded: yes, no or ambiguous", LABEL),
    Column(
        "kind",
        "kind of reply: answer, refusal, hedge, both, echo, offtopic, empty, filter, "
        "unfinished, undecided, unsure",
        field_of("kind"),
    ),
    Column(
        "conflict", "whether the explanation contradicts the answer", field_of("conflict"), BOOLEAN
    ),
    Column(
        "likely",
        "the answer that is withheld because it is not reliable enough: kind unsure",
        field_of("likely"),
    ),
    Column("rule", "name of the rule that decided", lambda j: j.rule),
    Column("evidence", "the words of the reply that decided", lambda j: j.evidence, VERBATIM),
    Column(
        "says",
        "whether the answer affirms what the question measures; empty if unclear",
        None,
        BOOLEAN,
    ),
)

# Characters at the beginning and the end of a very long reply that are read.
_FRONT, _TAIL = 12_000, 8_000
_HEAD = 200  # characters by which a reply's language is told
_SHORT = 24  # most characters of a reply that may be only an answer word


class YesNo:
    """The judge `yesno`: see the module's docstring. `Item.probe` or `Item.reads` is known."""

    name = "yesno"
    column = "answer"
    reads = frozenset(("free", "choice"))
    needs: tuple[str, ...] = ("lang", "probe", "response")

    def __init__(self) -> None:
        hashes: list[object] = [packs.language_hash(code) for code in registry.names("languages")]
        readers = f"{clauses.VERSION}.{verdicts.VERSION}.{text.FORM}"
        thought = thoughts.signature()
        hashes.append([sorted(rules) for rules in measured.doubtful(self.name).values()])
        self._identify = identify.make()
        hashes.append(self._identify.signature)
        self.signature = f"yesno@{VERSION}.{readers}+{digest(hashes, 8)}+{thought}"
        self._codes: dict[str, str] = {}
        self._doubtful = measured.doubtful(self.name)
        self._known = frozenset(registry.names("languages"))

    def fits(self, probe: packs.Probe) -> bool:
        """Return whether the pack says how replies to the probe are read."""
        return bool(probe.reads)

    def __call__(self, item: Item) -> Verdict:
        code = self._codes.get(item.lang)
        if code is None:
            code = self._codes[item.lang] = packs.language_code(item.lang)
        way = probes.way(item.reads, item.probe, item.when)
        if item.blocked:
            return _none(item.blocked)
        if item.parted.state == "open":
            return _none("unfinished")
        words = lexicon(code)
        reply = item.own
        if len(reply) > _FRONT + _TAIL:  # a reply as long as this answers at its beginning or end
            reply = f"{reply[:_FRONT]}\n…\n{reply[-_TAIL:]}"
        norm = words.compared(reply)
        bare = _whole(words, way, item.prompt, reply, norm) if len(reply) <= _SHORT else None
        if bare is not None:
            return bare
        if again := self._in_its_language(item, reply):
            return again
        reading = Reading(words, way, item.prompt, norm)
        found = decision.read(reading)
        if isinstance(found, str):
            return self._by_letter(item, reply) or _unread(reading, bool(item.echo), found)
        answer = _answer(reading, reply, found)
        sure = found.rule not in self._doubtful[way.reads] and not closing.contradicted(
            reading, found
        )
        return answer if sure else _unsure(answer)

    def _in_its_language(self, item: Item, reply: str) -> Verdict | None:
        """Read a reply that is clearly in another language than the question in its own language.

        Returns None if it is not, or says nothing there.
        """
        head = text.tokens(text.normalise(reply[:_HEAD]))
        told = self._identify.other(head, _near(self._codes[item.lang]))
        if told not in self._known:
            return None
        again = self(item._replace(lang=told, response=reply, reasoning=None))
        return again if again.label != "ambiguous" else None

    def _by_letter(self, item: Item, reply: str) -> Verdict | None:
        """Return the verdict on a reply that chooses a lettered option of its question."""
        letter = _letter(item.prompt, reply)
        if letter is None:
            return None
        shown, option = letter
        answer = self(item._replace(prompt="", response=option)).label
        if answer == "ambiguous":
            return None
        return Verdict(answer, "letter", shown, None, _fields("answer"))

    def comes_to(self, lang: str, way: probes.Way, prompt: str, thought: str) -> str:
        """Return the answer of a thought: its last commitment. (In a reply, the first counts.)"""
        words = lexicon(packs.language_code(lang))
        return decision.comes_to(Reading(words, way, prompt, words.compared(thought)))


def _whole(words: Lexicon, way: probes.Way, prompt: str, reply: str, norm: str) -> Verdict | None:
    """Return the verdict on a reply that is nothing but an answer; None for any other."""
    said = norm.strip(" \t\r\n.*\"'")
    answer = words.means(said, way.affirmed)
    if answer is None:
        return None
    if answer == "no" and way.reads == "question" and words.truth(said):
        answer = "yes" if asked.affirms(words.code, words.compared(prompt), said) else answer
    evidence = reply.strip(" \t\r\n.*\"'")
    return Verdict(answer, "whole", evidence, None, _fields("answer"))


def _unread(reading: Reading, had_echo: bool, found: str) -> Verdict:
    """Return the verdict on a reply in which the rules found no answer."""
    return _none(decision.why_not(reading, had_echo, found))


def _answer(reading: Reading, reply: str, found: Found) -> Verdict:
    """Return the verdict on a reply with an answer, its evidence in the reply's own spelling."""
    if len(reading.norm) == len(reply):
        evidence = reply[found.start : found.end]
    else:
        evidence = reply[text.origin(reply, found.start, found.end, reading.lexicon.fold)]
    fields = _fields("answer", phrases.conflict(reading, found))
    return Verdict(found.answer, found.rule, evidence, None, fields)


def _unsure(answer: Verdict) -> Verdict:
    """Withhold an answer that is not reliable enough: it stands in `likely`."""
    fields = answer.fields | {"kind": "unsure", "likely": answer.label}
    return Verdict("ambiguous", answer.rule, answer.evidence, None, fields)


def _none(kind: str) -> Verdict:
    rule = kind if kind in ("unfinished", "filter") else "no-answer"
    return Verdict("ambiguous", rule, "", None, _fields(kind))


def _fields(kind: str, conflict: bool = False) -> dict[str, JSON]:
    return {"kind": kind, "conflict": conflict, "likely": ""}


@functools.cache
def _near(code: str) -> frozenset[str]:
    """Return the languages in which replies to a question of a language are read anyway."""
    return frozenset(("en", code, *packs.load_language(code).also))


def _letter(prompt: str, reply: str) -> tuple[str, str] | None:
    """Return (letter, option) if a reply chooses a lettered option of its question, else None.

    The letter must begin or end the first line of the reply, set off from its words: "B) …".
    """
    options = panel.lettered(prompt) if prompt else {}
    if not options:
        return None
    one = "|".join(re.escape(letter) for letter in options)
    first = reply.strip().partition("\n")[0][:200]
    mark, close = r"[\s(（\[*\"'“”«»„]", r"[)）\].:：、,，。।*\"'“”«»\s]"
    found = re.match(rf"{mark}*({one})(?:{close}|$)", first, re.IGNORECASE) or re.search(
        rf"{mark}({one}){close}*$", first, re.IGNORECASE
    )
    if not found:
        return None
    shown = found[1]
    return shown, next(o for letter, o in options.items() if letter.casefold() == shown.casefold())


def make(parser: str = "") -> YesNo | Strict | Shades2025:
    """Make the judge; with a name of `PARSERS`, another reader of replies, for comparison.

    Raises InputError for an unknown parser.
    """
    if not parser:
        return YesNo()
    if parser not in PARSERS:
        raise registry.unknown("parser", parser, list(PARSERS))
    return Strict() if parser == "strict" else Shades2025()
