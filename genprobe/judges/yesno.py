"""Read the answer of a yes/no reply: yes, no or ambiguous, with its kind and evidence.

The reply (its echo removed) is cut into tokens; phrases of the language's file, of English and
the bare answer words of the other languages are looked up, longest first; each match is an
event. The first event that commits is the answer:

- an answer word where an answer stands: at the start of the reply, of a line or of a sentence,
  behind a bullet, a bracket or a label. Words that mean something else too (Spanish *no*, Hindi
  *नहीं*, Chinese *是*: `yes_alone`, `no_alone` in the language file) must stand alone there.
- a sentence that plainly says so: "I do not agree" is *no* to agreement, *yes* to disagreement.

What is marked or announced as the answer wins over that, and the end of a reply may correct it.
Where the rules are undecided, a small learned reader may propose. "yes / no" and its like are the
options repeated, not an answer: the choice made after them is.

The steps are the modules of `judges/reading/`; its `__init__` is their map. The definitions are
DESIGN.md's; the measure of the reader against two blind readings is in docs/shades.md.
"""

from __future__ import annotations

import re

from genprobe import text
from genprobe.judges import BOOLEAN, LABEL, VERBATIM, Column, Item, Verdict, field_of
from genprobe.judges.reading import decision, phrases, probes, second
from genprobe.judges.reading.lexicon import Lexicon, lexicon
from genprobe.judges.reading.parsers import PARSERS, Shades2025, Strict
from genprobe.judges.reading.reply import Found
from genprobe.judges.reading.said import Reading
from genprobe.linguistics import clauses, learned, thoughts, verdicts
from genprobe.records import JSON, digest
from genprobe.resources import packs, panel, registry

# Raised whenever an answer can change without a change of a language file.
VERSION = 11

PLACE, READS = 10, "replies to yes/no questions"
COLUMNS = (
    Column("answer", "what was answered to the question as worded: yes, no, ambiguous", LABEL),
    Column(
        "kind",
        "why: answer, refusal, hedge, both, echo, offtopic, empty, filter, unfinished, undecided",
        field_of("kind"),
    ),
    Column("conflict", "the explanation contradicts the answer", field_of("conflict"), BOOLEAN),
    Column("rule", "the rule that decided", lambda j: j.rule),
    Column("evidence", "the words that it rests on", lambda j: j.evidence, VERBATIM),
    Column("says", "a clear answer says what the probe measures", None, BOOLEAN),
)

PROBES = probes.PROBES
# Characters of a very long reply that are read, of its beginning and of its end.
_FRONT, _TAIL = 12_000, 8_000
_SHORT = 24  # characters of a reply that may be an answer word and nothing else


class YesNo:
    """The judge. `Item.lang` and `Item.probe` must name a language and a probe of the pack."""

    name = "yesno"
    column = "answer"
    reads = frozenset(("free", "choice"))
    needs: tuple[str, ...] = ("lang", "probe", "response")

    def __init__(self) -> None:
        hashes = [packs.load_language(code).hash for code in registry.names("languages")]
        readers = f"{clauses.VERSION}.{verdicts.VERSION}.{learned.VERSION}.{text.FORM}"
        thought = thoughts.signature()
        hashes.append(packs.file_hash(learned.FILE))  # one hash of both: short enough to be shown
        self.signature = f"yesno@{VERSION}.{readers}+{digest(hashes, 8)}+{thought}"
        self._codes: dict[str, str] = {}

    def __call__(self, item: Item) -> Verdict:
        code = self._codes.get(item.lang)
        if code is None:
            code = self._codes[item.lang] = packs.language_code(item.lang)
        if item.probe not in PROBES:
            raise registry.unknown("probe", item.probe, list(PROBES))
        if item.blocked:
            return _none(item.blocked)
        parted = item.parted
        if parted.state == "open":
            return _none("unfinished")
        words = lexicon(code)
        offset = text.strip_echo(item.prompt, parted.reply)
        reply = parted.reply[offset:]
        if len(reply) > _FRONT + _TAIL:  # what runs on for so long answers in the beginning or end
            reply = f"{reply[:_FRONT]}\n…\n{reply[-_TAIL:]}"
        norm = words.compared(reply)
        bare = _whole(words, reply, norm) if len(reply) <= _SHORT else None
        if bare is not None:
            return bare
        reading = Reading(words, item.probe, item.prompt, norm)
        found = decision.read(reading)
        if isinstance(found, str):
            return self._by_letter(item, reply) or _unread(reading, reply, bool(offset), found)
        if second.doubted(reading, found):
            return _none("undecided")
        return _answer(reading, reply, found)

    def _by_letter(self, item: Item, reply: str) -> Verdict | None:
        """Return the verdict on a reply that chooses a lettered option of its question."""
        letter = _letter(item.prompt, reply)
        if letter is None:
            return None
        shown, option = letter
        answer = self(item._replace(prompt="", response=option)).label
        if answer == "ambiguous":
            return None
        return Verdict(answer, "letter", shown, None, {"kind": "answer", "conflict": False})

    def comes_to(self, lang: str, probe: str, prompt: str, thought: str) -> str:
        """Return what a thought comes to: its last commitment, where a reply's first one counts."""
        words = lexicon(packs.language_code(lang))
        return decision.comes_to(Reading(words, probe, prompt, words.compared(thought)))


def _whole(words: Lexicon, reply: str, norm: str) -> Verdict | None:
    """Return the verdict on a reply that is nothing but an answer; None for any other."""
    answer = words.bare.get(norm.strip(" \t\r\n.*\"'"))
    if answer is None:
        return None
    evidence = reply.strip(" \t\r\n.*\"'")
    return Verdict(answer, "whole", evidence, None, {"kind": "answer", "conflict": False})


def _unread(reading: Reading, reply: str, had_echo: bool, found: str) -> Verdict:
    """Return the verdict on a reply in which the rules found no answer."""
    kind = decision.why_not(reading, had_echo, found)
    # What repeats its question goes on writing it: "… Why do men stay? They have no car."
    proposal = None if had_echo else second.proposed(reading, kind)
    return _none(kind) if proposal is None else _answer(reading, reply, proposal)


def _answer(reading: Reading, reply: str, found: Found) -> Verdict:
    """Return the verdict on a reply with an answer, its evidence in the reply's own spelling."""
    if len(reading.norm) == len(reply):
        evidence = reply[found.start : found.end]
    else:
        evidence = reply[text.origin(reply, found.start, found.end, reading.lexicon.fold)]
    fields: dict[str, JSON] = {"kind": "answer", "conflict": phrases.conflict(reading, found)}
    return Verdict(found.answer, found.rule, evidence, None, fields)


def _none(kind: str) -> Verdict:
    rule = kind if kind in ("unfinished", "filter") else "no-answer"
    return Verdict("ambiguous", rule, "", None, {"kind": kind, "conflict": False})


def _letter(prompt: str, reply: str) -> tuple[str, str] | None:
    """Find the letter that a reply chooses of the lettered options of its question, and the option.

    A letter that begins the reply as a letter does, "B) …", or ends it or its first line.
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
    """Make the reader of this project, or with a name of `PARSERS` another one, for comparison."""
    if not parser:
        return YesNo()
    if parser not in PARSERS:
        raise registry.unknown("parser", parser, list(PARSERS))
    return Strict() if parser == "strict" else Shades2025()
