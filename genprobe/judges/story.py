"""Judge whether a reply is a story that can be scored: `usable`, or the first reason why not.

Replies that are not usable are shown and counted, but not scored. The reasons, in the order in
which they are checked:

- `empty`: no word; `echo`: nothing but the prompt or sentences of it.
- `refusal`: a phrase of refusal (judges/refusal.py) in the first two sentences, outside direct
  speech, because the characters of a story may refuse.
- `unfilled`: a slot that was not filled: {MISSING PART}, [PLACEHOLDER], ____, also translated
  (prompts/slots.toml).
- `language`: most words are not in the language asked for (judges/language.py), or no language is
  identified. A mixed story is usable if most of it is in the language asked for; `shares` gives the
  shares. If the language asked for has no description (prompts/languages, `[text]`), a story whose
  language is not identified is usable.

Stories with one of these faults are shown and counted, but scored all the same, because the
published study filtered nothing: the number of sentences is not five (`of_five`; neither a heading
nor a sentence of the prompt counts), or the story is `cut_off` before an end mark.

Consecutive stories for one prompt, as a run has them, are read together: a usable story that nearly
repeats an earlier one of them (`near_duplicates`) is a `duplicate`, which is not scored either.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from genprobe.judges import BOOLEAN, NUMBER, Column, Item, Verdict, field_of, language, refusal
from genprobe.judges.language import LanguageJudge
from genprobe.judges.refusal import SPEECH, RefusalJudge
from genprobe.linguistics import identify
from genprobe.linguistics.sentences import sentences
from genprobe.records import JSON, digest
from genprobe.resources import packs, registry
from genprobe.text import normalise, tokens

VERSION = "2"

PLACE, READS = 50, "stories"
COLUMNS = (
    Column("usable", "whether the story can be scored", lambda j: j.label == "usable", BOOLEAN),
    Column(
        "unusable_why",
        "why the story cannot be scored",
        lambda j: None if j.label == "usable" else j.label,
    ),
    Column("sentences", "number of sentences", field_of("sentences"), NUMBER),
    Column("cut_off", "whether the story ends without an end mark", field_of("cut_off"), BOOLEAN),
    Column("reply_language", "language of the story", field_of("language")),
)
LIMIT = 20_000  # characters at the beginning of the reply that are read
ASKED = 5  # sentences that the prompt asks for
SHINGLE, ALIKE = 5, 0.8  # characters of a shingle; Jaccard similarity of near-duplicates
LAST = 40  # characters at the end of a story that are searched for an end mark
HEADING = 120  # most characters of a heading
FEW = 3  # shorter sentences (in words) are not recognised as sentences of the prompt

_LINES = re.compile(r"[\n\r\u2028\u2029]+")
_ENDED = re.compile(r"[.!?…؟۔。！？।॥][\W_]*\Z")
_BRACKETS = re.compile(r"\{[^{}\n]*\w[^{}\n]*\}|[\[(]([^\[\]()\n]{1,60})[\])]")


class StoryJudge:
    """The judge `story`: see the module's docstring.

    evidence: the words on which the label is based. fields: `sentences` (their number), `of_five`,
    `language` and `shares` as in the judge `language`, `refused`, `echoed`, `unfilled`, `cut_off`,
    `duplicate_of` (for a duplicate: the number, from 0, of the story for its prompt that it
    repeats).
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
        reply = item.own[:LIMIT].strip()
        asked = {_key(s) for s in sentences(item.prompt[:LIMIT], item.lang)} - {""}
        found = sentences(_without_heading(reply), item.lang)
        own = [s for s in found if _key(s) not in asked]
        text = "\n".join(own)
        told = self._language(Item(item.lang, "", "", text))
        refused = self._refusal(
            Item(item.lang, "", "", " ".join(sentences(SPEECH.sub(" ", text), item.lang)[:2]))
        )
        slot = self._slot(text)
        echoed = item.echo > 0 or len(own) < len(found)
        fields: dict[str, JSON] = {
            "sentences": len(own),
            "of_five": len(own) == ASKED,
            "language": told.label,
            "shares": told.fields["shares"],
            "refused": refused.label != "no",
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
        elif refused.label != "no":
            label, evidence = "refusal", refused.evidence
        elif slot:
            label, evidence = "unfilled", slot
        elif told.rule != "undescribed" and _main(told) != identify.code_of(item.lang):
            label, evidence = "language", told.evidence
        return Verdict(label, label, evidence, fields=fields)

    def together(self, item: Item) -> Any:
        """Return the group of a story; consecutive stories of one group are read by one `many`."""
        return (item.lang, item.probe, item.prompt) if item.prompt else item

    def many(self, items: Sequence[Item]) -> list[Verdict]:
        """Return the verdicts of the stories for one prompt, given in the order of samples."""
        found = [self(item) for item in items]
        usable = [at for at, verdict in enumerate(found) if verdict.label == "usable"]
        first = near_duplicates([items[at].response for at in usable])
        for at, repeated in zip(usable, first, strict=True):
            if repeated is not None:
                found[at].label = found[at].rule = "duplicate"
                found[at].fields["duplicate_of"] = usable[repeated]
        return found

    def _slot(self, text: str) -> str:
        """Return the first unfilled slot of a story, as written there; "" if there is none."""
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
    """Return for each text the index of the first earlier text that it nearly repeats, or None.

    Two texts are near-duplicates if the Jaccard similarity of their sets of character 5-grams is at
    least 0.8, after `normalise` and without punctuation; white space is made uniform. A text
    without a word repeats nothing. A text that repeats another one is not compared with later
    texts. Call it for the stories of one template, in the order of their sample numbers.
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
    """Return a reply without a heading: a short first line with no end mark, if others follow."""
    first, *others = _LINES.split(reply, maxsplit=1)
    rest = "".join(others).strip()
    if not rest or rest[0].islower() or first[0] in '-–—«“"' or _ENDED.search(first[-LAST:]):
        return reply
    return rest if len(first) <= HEADING else reply


def _key(sentence: str) -> str:
    """Return the form in which sentences are compared with the prompt's; "" for a short one."""
    words = tokens(normalise(sentence))
    return " ".join(words) if len(words) >= FEW else ""


def _main(told: Verdict) -> str:
    """Return the language of most words."""
    shares = told.fields["shares"]
    return next(iter(shares)) if told.label == "mixed" and isinstance(shares, dict) else told.label


def _stops() -> dict[str, list[tuple[str, ...]]]:
    """Collect the words by which sentences are split, for the signature."""
    groups = ("abbreviations", "closing", "said")
    return {
        code: [packs.load_language(code).words[group] for group in groups]
        for code in registry.names("languages")
    }


@functools.cache
def make() -> StoryJudge:
    """Make the judge, which takes no options.

    Raises InputError if a file in `prompts/` is malformed.
    """
    return StoryJudge(packs.load_slots(), language.make(), refusal.make())
