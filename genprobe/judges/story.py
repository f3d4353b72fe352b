"""Judge whether a reply is a story that can be scored: `usable`, or the first reason why not.

What fails is shown and counted apart, never scored. In this order:

- `empty`: no word in it; `echo`: nothing but the prompt, or sentences of it.
- `refusal`: a phrase of refusal (judges/refusal.py) in the first two sentences, outside speech:
  the people of a story may refuse.
- `unfilled`: a slot stands open: {MISSING PART}, [PLACEHOLDER], ____, also translated
  (prompts/slots.toml).
- `language`: the language asked for is not the one that most words are in (judges/language.py),
  or none is told. A mixed story is usable where most of it is in the language asked for; its
  shares are beside it. Where the language asked for is one that nothing describes (prompts/
  languages, `[text]`), a story in no language that is known is usable.

Shown, counted, and scored all the same, as the published study filtered nothing: a number of
sentences that is not five (`of_five`; a heading does not count, nor does a sentence of the
prompt), and a story `cut_off` before an end mark.

Stories to one prompt that stand one after another, as a run has them, are read together: a usable
one that nearly repeats an earlier one of them (`near_duplicates`) is a `duplicate`, which is not
scored either.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from genprobe.errors import InputError
from genprobe.judges import BOOLEAN, NUMBER, Column, Item, Verdict, field_of, language, refusal
from genprobe.judges.language import LanguageJudge
from genprobe.judges.refusal import SPEECH, RefusalJudge
from genprobe.linguistics.sentences import sentences
from genprobe.records import JSON, digest
from genprobe.resources import packs, registry
from genprobe.text import normalise, strip_echo, tokens

VERSION = "2"

PLACE, READS = 50, "stories"
COLUMNS = (
    Column("usable", "the story can be scored", lambda j: j.label == "usable", BOOLEAN),
    Column("unusable_why", "why not", lambda j: None if j.label == "usable" else j.label),
    Column("sentences", "how many it has", field_of("sentences"), NUMBER),
    Column("cut_off", "it ends before an end mark", field_of("cut_off"), BOOLEAN),
    Column("reply_language", "language of the story", field_of("language")),
)
LIMIT = 20_000  # characters of the reply that are looked at
ASKED = 5  # sentences of a story
SHINGLE, ALIKE = 5, 0.8  # characters of a shingle; Jaccard similarity of near-duplicates
LAST = 40  # characters at the end of a story among which its end mark is
HEADING = 120  # characters of a heading, at most
FEW = 3  # words of a sentence that can be told for one of the prompt

_LINES = re.compile(r"[\n\r\u2028\u2029]+")
_ENDED = re.compile(r"[.!?…؟۔。！？।॥][\W_]*\Z")
_BRACKETS = re.compile(r"\{[^{}\n]*\w[^{}\n]*\}|[\[(]([^\[\]()\n]{1,60})[\])]")


class StoryJudge:
    """Check stories by the rules of the module.

    fields: `sentences` (how many), `of_five`, `language` and `shares` as the judge of languages
    has them, `refused`, `echoed`, `unfilled`, `cut_off`, `duplicate_of` (of a duplicate: which
    story of its prompt, from 0, it repeats).
    evidence: what the label rests on.
    """

    name = "story"
    column = "story"
    reads = frozenset(("free",))
    needs = ("lang", "response")

    def __init__(
        self, slots: Sequence[str], language: LanguageJudge, refusal: RefusalJudge
    ) -> None:
        self._slots = frozenset(map(normalise, slots))
        longest = sorted((s for s in slots if len(s) > 8 and s.upper() != s), key=len)[::-1]
        self._bare = re.compile(rf"\b(?:{'|'.join(re.escape(s.upper()) for s in longest)})\b")
        self._language, self._refusal = language, refusal
        parts = (digest([slots, _stops()], 8), language.signature, refusal.signature)
        self.signature = f"story@{VERSION}+{'+'.join(parts)}"

    def __call__(self, item: Item) -> Verdict:
        behind = item.reply
        start = strip_echo(item.prompt, behind)
        reply = behind[start : start + LIMIT].strip()
        asked = {_key(s) for s in sentences(item.prompt[:LIMIT], item.lang)} - {""}
        found = sentences(_without_heading(reply), item.lang)
        own = [s for s in found if _key(s) not in asked]
        text = "\n".join(own)
        told = self._language(Item(item.lang, "", "", text))
        refused = self._refusal(
            Item(item.lang, "", "", " ".join(sentences(SPEECH.sub(" ", text), item.lang)[:2]))
        )
        slot = self._slot(text)
        echoed = start > 0 or len(own) < len(found)
        fields: dict[str, JSON] = {
            "sentences": len(own),
            "of_five": len(own) == ASKED,
            "language": told.label,
            "shares": told.fields["shares"],
            "refused": refused.label == "yes",
            "echoed": echoed,
            "unfilled": bool(slot),
            "cut_off": bool(own) and not _ENDED.search(own[-1][-LAST:]),
            "duplicate_of": None,
        }
        label, evidence = "usable", ""
        if item.blocked:
            label = item.blocked
        elif not own:
            label = "echo" if echoed else "empty"
        elif refused.label == "yes":
            label, evidence = "refusal", refused.evidence
        elif slot:
            label, evidence = "unfilled", slot
        elif told.rule != "undescribed" and _main(told) != _code(item.lang):
            label, evidence = "language", told.evidence
        return Verdict(label, label, evidence, fields=fields)

    def together(self, item: Item) -> Any:
        """Stories with the same key, one after another, are read by one call of `many`."""
        return (item.lang, item.probe, item.prompt) if item.prompt else item

    def many(self, items: Sequence[Item]) -> list[Verdict]:
        """Read the stories of one prompt, in the order of their samples."""
        found = [self(item) for item in items]
        usable = [at for at, verdict in enumerate(found) if verdict.label == "usable"]
        first = near_duplicates([items[at].response for at in usable])
        for at, repeated in zip(usable, first, strict=True):
            if repeated is not None:
                found[at].label = found[at].rule = "duplicate"
                found[at].fields["duplicate_of"] = usable[repeated]
        return found

    def _slot(self, text: str) -> str:
        """Find the first open slot of a story, as the story has it."""
        for match in _BRACKETS.finditer(text):
            if match[1] is None or " ".join(tokens(normalise(match[1]))) in self._slots:
                return match.group()
        if bare := self._bare.search(text):
            return bare.group()
        for line in text.splitlines():
            if "___" in line and any(map(str.isalpha, line)):
                return "___"
        return ""


def near_duplicates(texts: Sequence[str]) -> list[int | None]:
    """Find for each text the first earlier one that it nearly repeats, by index, else None.

    Nearly: a Jaccard similarity of at least 0.8 of their sets of 5 characters in a row, after
    `normalise`, punctuation and white space aside. A text without a word repeats nothing; a
    repetition is never named as what another repeats. Every text is compared with every one
    before it: call it for the stories of one template, in the order of their sample numbers.
    """
    kept: list[tuple[int, set[str]]] = []
    found: list[int | None] = []
    for at, text in enumerate(texts):
        joined = " ".join(tokens(normalise(text[:LIMIT])))
        own = {joined[i : i + SHINGLE] for i in range(max(1, len(joined) - SHINGLE + 1))} - {""}
        first = next((i for i, other in kept if own and _jaccard(own, other) >= ALIKE), None)
        found.append(first)
        if first is None:
            kept.append((at, own))
    return found


def _jaccard(one: set[str], other: set[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def _without_heading(reply: str) -> str:
    """Drop a short first line that has no end mark, where others follow."""
    first, *others = _LINES.split(reply, maxsplit=1)
    rest = "".join(others).strip()
    if not rest or rest[0].islower() or first[0] in '-–—«“"' or _ENDED.search(first[-LAST:]):
        return reply
    return rest if len(first) <= HEADING else reply


def _key(sentence: str) -> str:
    """Make the key by which a sentence of the prompt is known again; "" for a short one."""
    words = tokens(normalise(sentence))
    return " ".join(words) if len(words) >= FEW else ""


def _main(told: Verdict) -> str:
    """Name the language of most words."""
    shares = told.fields["shares"]
    return next(iter(shares)) if told.label == "mixed" and isinstance(shares, dict) else told.label


def _code(lang: str) -> str:
    try:
        return packs.language_code(lang)
    except InputError:
        return lang


def _stops() -> dict[str, list[tuple[str, ...]]]:
    """Collect the words that the splitter of sentences goes by, for the signature."""
    groups = ("abbreviations", "closing", "said")
    return {
        code: [packs.load_language(code).words[group] for group in groups]
        for code in registry.names("languages")
    }


@functools.cache
def make() -> StoryJudge:
    """Make the judge, which takes no options.

    Raises InputError where a file in `prompts/` is malformed.
    """
    return StoryJudge(packs.load_slots(), language.make(), refusal.make())
