"""Which option a reply chooses: by letter, number, place or text, or that it cannot be told.

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
that it cannot be known, in any wording, where one of the options says so; "neither of them" is
that, too, and "both" is the option that says so. "Not A" and "A is wrong" turn A down; where all
others are turned down, the one that is left is chosen. What is said of a first impression ("one
would expect A, but …") is none. Where two are named as the answer, or none, nothing is chosen. A
refusal ("I would rather not compare people") before an answer that nothing marks, or instead of
what is only not known, is one. Words: `prompts/options`, a file a language;
English ones are known in every language.

label: the number of the option from 0, empty where none is chosen. `kind` says why: answer;
several (two or more are chosen); neither (all are turned down); hedge (it cannot be told, and no
option says so); refusal; echo (the options repeated); empty; unfinished (cut in its thought);
undecided (options are named, and it is not clear which is meant); offtopic (none is named).
"""

from __future__ import annotations

import bisect
import difflib
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.datasets import choices, phrasing
from genprobe.judges import LABEL, Column, Item, Verdict, field_of, refusal
from genprobe.records import digest
from genprobe.resources import packs, registry

VERSION = "3"  # raised whenever a verdict can change without a change of a file in prompts/
PLACE, READS = 15, "replies to questions with options"
COLUMNS = (
    Column("chosen", "the number of the option, from 0, as they were listed", LABEL),
    Column("kind", "why", field_of("kind"), heading="kind"),
)
HEAD, TAIL = 6_000, 14_000  # characters of a longer reply that are looked at
LATIN = "abcdef"

# What ends a sentence or a clause between two tokens. A full stop behind a letter or number that
# stands for an option ends nothing.
_SENTENCE = re.compile(r"[\n.!?。！？।؟…]")
_CLAUSE = re.compile(r"[\n.!?。！？।؟…,;:，；：،؛、()（）\[\]|>]|\s[-–—]+\s|[–—]|->|=")
_MARK = re.compile(r"[.):\]}）】。、：\-–—*_`\"'”»」,，،|/]|$")
_BOXED = re.compile(
    r"\\boxed\s*\{(?:\s*\\text\s*\{)?([^{}]{1,300})\}|<answer>([^<]{1,300})</answer>"
)
_JSON = re.compile(
    r"[\"'](?:[^\"'\n]{0,20})(?:answer|choice|option|response)[\"']\s*:\s*"
    r"(?:\"([^\"\n]{1,300})\"|(\d{1,2})\b)",
    re.IGNORECASE,
)
_TICK = re.compile(r"^[ \t]*(?:[-*] )?(?:\[[xXхХ✓✔]\]|[☑✅✓✔☒🗹])[ \t]*(.{1,300})$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]{1,300})\*\*|__([^_\n]{1,300})__")
_LIKE = 0.75  # share of letters that two spellings of a word have in common
_NEAR = 4  # tokens between "not" and the option that it turns down


class _Event(NamedTuple):
    """Something said: `kind` is `option`, or a group of `GROUPS`; tokens first <= i < last."""

    kind: str
    first: int
    last: int
    option: int = -1
    weak: bool = False  # may be a word of another meaning


class _Found(NamedTuple):
    """What a reply comes to: the options that it takes, and the event that it rests on."""

    taken: frozenset[int]
    rule: str
    at: _Event


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
        parted = item.parted
        if parted.state == "open":
            return Verdict("", "open-thought", "", None, {"kind": "unfinished"})
        reply = parted.reply[text.strip_echo(item.prompt, parted.reply) :]
        if not reply.strip() and _bare(parted.reply) in map(_bare, item.options):
            reply = parted.reply  # an option with which the prompt begins is no echo of it
        if not reply.strip():
            return Verdict("", "no-text", "", None, {"kind": "empty"})
        if len(reply) > HEAD + TAIL:
            reply = f"{reply[:HEAD]}\n\n{reply[-TAIL:]}"
        asked = (item.lang, tuple(item.options), tuple(item.marks))
        reading = _Reading(*asked, reply)
        rest = reading.behind_echo()
        if rest:
            reading = _Reading(*asked, rest)
        chosen, kind, rule, evidence = reading.verdict()
        refusal = self._refuses(item.lang, reply, reading, (chosen, kind, rule, evidence))
        if refusal is not None:
            chosen, kind, rule, evidence = None, "refusal", *refusal
        label = "" if chosen is None else str(chosen)
        return Verdict(label, rule, evidence, None, {"kind": kind})

    def _refuses(
        self, lang: str, reply: str, reading: _Reading, said: tuple[int | None, str, str, str]
    ) -> tuple[str, str] | None:
        """(rule, evidence) of a refusal that comes before what was read; None where none does.

        What is marked, said to be the answer or concluded stands. "I cannot answer that" declines;
        "sorry, the text does not say" tells why not.
        """
        chosen, kind, rule, evidence = said
        told = (
            chosen is not None
            and chosen == reading.unknown
            and rule.endswith(("unknown", "untold", "neither"))
        )
        soft = rule in ("first", "sole", "last", "misspelt", "all-others-rejected")
        if not (told or soft or kind in ("offtopic", "hedge", "undecided")):
            return None
        if chosen is not None and chosen == reading.unknown and reading.verbatim(evidence):
            return None  # an option that says "cannot answer"
        refused = self._refusal(Item(lang, "", "", reply))
        spans = []
        if refused.label == "yes":
            spans.append((reply.find(refused.evidence), refused.evidence, refused.rule, reply))
        spans += [(*span, "declines", reading.reply) for span in reading.declines()]
        for at, words, why, source in spans:
            place = source.find(evidence)
            if soft and chosen is not None and not at < place + len(evidence):
                continue
            if told and rule != "untold" and not 0 <= place - at < len(words):
                continue
            if told and place < at + len(words) and reading.cites(place):
                continue  # "nothing in the text says who, so I can't decide"
            return why, words
        return None


class _Reading:
    """One reply being read against its options."""

    def __init__(self, lang: str, options: Sequence[str], marks: Sequence[str], reply: str):
        self.lexicon = lexicon = phrasing.lexicon(lang)
        self.marks = {_seen(mark): at for at, mark in enumerate(marks)}
        self.count = len(options)
        self.reply = text.visible(reply)
        self.found = list(text.TOKEN.finditer(self.reply))
        self.raw = [match.group() for match in self.found]
        self.words = [self._fold(token) for token in self.raw]
        self.options = [phrasing.tokens(option, lexicon.fold) for option in options]
        self.unknown = phrasing.unknown(lang, options)
        self.meant = phrasing.meant(lang, tuple(options), self.unknown)
        self.small = lexicon.small
        self.keys = self._distinctive()
        self.claimed: dict[str, tuple[int, bool] | None] = {}
        self.events: list[_Event] = []
        self._scan()
        self.starts = [event.first for event in self.events]  # they do not overlap
        self.splits: dict[tuple[str, int, int], list[range]] = {}
        self.sentences = self._split(_SENTENCE, range(len(self.words)))

    def _fold(self, token: str) -> str:
        return text.replace(text.normalise(token), self.lexicon.fold)

    # --- what is named where

    def _distinctive(self) -> list[list[str]]:
        """List of each option the words that no other has.

        None of the unknown one: many reasons say that something is not known.
        """
        content = [
            [word for word in words if word not in self.small] or words for words in self.options
        ]
        found = []
        for at, words in enumerate(content):
            others = {w for other, ws in enumerate(content) if other != at for w in ws}
            own = [word for word in words if word not in others]
            found.append([] if at == self.unknown else own)
        return found

    def _scan(self) -> None:
        """Collect the events, from left to right: what stands before is known to each."""
        events = self.events
        at = 0
        while at < len(self.words):
            event = self._event(at)
            if event is None:
                at += 1
                continue
            before = events[-1] if events else None
            if (
                before is not None
                and before.kind == event.kind == "option"
                and before.last == event.first
                and _is_mark(self.raw[before.first])
                and not re.search("[\n,]", self.gap(event.first))
                and self.words[event.first : event.last] == self.options[event.option]
            ):
                events.pop()  # "B) the grandson": the text says which, however it is numbered
            elif before is not None and event.kind == "option" and self._joined(before, event):
                events.pop()  # "both bakers", or a word of an option that may also be a "because"
            events.append(event)
            at = event.last

    def _joined(self, before: _Event, option: _Event) -> bool:
        """Whether a word just before an option says nothing beside it."""
        if before.last != option.first or self.gap(option.first).strip():
            return False
        said = self.words[before.first : before.last]
        if before.kind == "both":
            named = any(e.kind == "option" for e in self.events[:-1])
            return self._ends_sentence(option.last) and not named
        own = set(self.options[option.option])
        return before.kind in ("because", "although", "not", "other") and set(said) <= own

    def _ends_sentence(self, at: int) -> bool:
        return at >= len(self.words) or bool(_SENTENCE.search(self.gap(at)))

    def _event(self, at: int) -> _Event | None:
        """Find the longest thing said from this token on."""
        whole = self._whole(at)
        phrase = self._phrase(at)
        if whole is not None and (phrase is None or whole.last >= phrase.last):
            return whole
        if phrase is not None:
            return phrase
        return self._letter(at) or self._ordinal(at) or self._part(at)

    def _whole(self, at: int) -> _Event | None:
        """Find the whole text of an option; the longest of several."""
        best = None
        for number, words in enumerate(self.options):
            # Articles at its beginning may be missing.
            starts = [0, *(s for s in (1, 2) if set(words[:s]) <= self.small and s < len(words))]
            for start in starts:
                size = len(words) - start
                if size and self.words[at : at + size] == words[start:]:
                    if best is None or at + size > best.last:
                        best = _Event("option", at, at + size, number)
                    break
        if best and best.last - at == 1 and len(self.words[at]) == 1:
            # An option that is a letter or a figure is named where one would be.
            return best if self._stands(at, best.last) else None
        return best

    def _phrase(self, at: int) -> _Event | None:
        for group, size in text.matches(self.lexicon.phrases, self.words, at):
            last = at + size
            if group not in ("unknown", "label") and any(
                _SENTENCE.search(self.gap(i)) for i in range(at + 1, last)
            ):
                continue
            if group in ("not", "instead", "both") and any(
                _CLAUSE.search(self.gap(i)) for i in range(at + 1, last)
            ):
                continue
            if group == "question" and not self._asks(at, last):
                continue
            if group in phrasing.PLACES:
                event = self._place(group, at, last)
                if event:
                    return event
                continue
            if group == "together":  # "they did it together"
                if "both" not in self.meant:
                    continue
                group = "both"
            if group in self.meant:  # an option that says "both", or "nobody"
                return _Event("option", at, last, self.meant[group], weak=True)
            return _Event(group, at, last)
        return None

    def _place(self, group: str, at: int, last: int) -> _Event | None:
        """Read "the first option", or "the second" at the end of a clause or behind a label."""
        number = self._mentioned(group, at) if group in ("former", "latter") else None
        number = self._numbered(group) if number is None else number
        if not 0 <= number < self.count:
            return None
        noun = self._noun(last)
        behind = last
        while behind < len(self.words) and self.words[behind] in self.small:
            behind += 1
        if (
            last - at > 1
            or noun
            or self._before(at) in _NOUNS
            or self._group(behind) in ("label", "after")
            or _quoted(self.gap(last))
            or self._closes(at, last, 1)
        ):
            return _Event("option", at, last + noun, number)
        return None

    def _mentioned(self, place: str, at: int) -> int | None:
        """Return the former or latter of the last two options that were named; None if fewer."""
        named = (e.option for e in reversed(self.events) if e.kind == "option" and e.last <= at)
        last = next(named, None)
        before = next((option for option in named if option != last), None)
        return None if before is None else last if place == "latter" else before

    def _numbered(self, place: str) -> int:
        """Return the option in a place; -1 where there is none such."""
        if place == "last":
            return self.count - 1
        if place == "middle":
            return self.count // 2 if self.count % 2 else -1
        if place in ("former", "latter"):
            people = [n for n in range(self.count) if n not in (self.unknown, *self.meant.values())]
            return people[place == "latter"] if len(people) == 2 or place == "former" else -1
        return phrasing.ORDINALS.index(place)

    def _closes(self, at: int, last: int, more: int = 0) -> bool:
        """Tell whether a clause ends here, and nothing but small words stands before in it.

        more: words that may follow before it ends. What is known already counts as small.
        """
        stop = last
        while stop < len(self.words) and not _CLAUSE.search(self.gap(stop)):
            stop += 1
            if stop - last > more:
                return False
        known = {i for e in self.events[-4:] for i in range(e.first, e.last)}
        start = at
        while start and not _CLAUSE.search(self.gap(start)):
            start -= 1
            if start not in known and self.words[start] not in self.small:
                return stop == last and more > 0
        return True

    def _ordinal(self, at: int) -> _Event | None:
        """Read a word for a place with an ending that no form foresees."""
        word = self.words[at]
        for place, forms in self.lexicon.places.items():
            for form in forms:
                if word.startswith(form) and len(word) - len(form) <= self.lexicon.ending:
                    return self._place(place, at, at + 1)
        return None

    def _noun(self, at: int) -> int:
        """Count the tokens from here on that are a name for options ("option", "of the two")."""
        if at >= len(self.words):
            return 0
        for group, size in text.matches(self.lexicon.phrases, self.words, at):
            if group in _NOUNS:
                return size
        word = self.words[at]
        return int(
            any(
                word.startswith(noun) and len(word) - len(noun) <= self.lexicon.ending
                for noun in self.lexicon.nouns
            )
        )

    def _asks(self, at: int, last: int) -> bool:
        """Whether a line begins with "Question:", as one that the model puts to itself does."""
        return "\n" in self.gap(at) and self.gap(last).lstrip("* ").startswith((":", "："))

    def _group(self, at: int) -> str:
        found = text.matches(self.lexicon.phrases, self.words, at) if at < len(self.words) else []
        return found[0][0] if found else ""

    def _group_size(self, at: int) -> int:
        found = text.matches(self.lexicon.phrases, self.words, at) if at < len(self.words) else []
        return found[0][1] if found else 0

    def _before(self, at: int) -> str:
        """Return the group of the phrase that ends just before this token, articles aside."""
        stops = [at]
        while stops[-1] > max(0, at - 2) and self.words[stops[-1] - 1] in self.small:
            stops.append(stops[-1] - 1)
        for start in range(max(0, stops[-1] - 5), at):
            for group, size in text.matches(self.lexicon.phrases, self.words, start):
                if start + size in stops and group in _NOUNS:
                    return group
        return ""

    def _letter(self, at: int) -> _Event | None:
        """Read a letter or a number that stands for an option."""
        token = self.raw[at]
        number = self._mark(token)
        if number is None:
            return None
        last = at + 1
        if self._stands(at, last) or self._before(at) == "noun" or self._closes(at, last):
            return _Event("option", at, last, number)
        if self._paired(at):
            return _Event("option", at, last, number)
        if self._before(at) == "label":
            return _Event("option", at, last, number, weak=self._is_word(at))
        behind = self._group(last)
        apart = not self._is_word(at) or _figure(token) is not None
        closing = behind == "label" and self._closes(at, at + 1 + self._group_size(last))
        if (apart and self._noun(last) and behind != "label") or (
            (behind == "after" or closing) and (apart or not self._is_word(at))
        ):
            return _Event("option", at, last, number)
        if token.isupper() and len(token) == 1 and not self._is_word(at):
            return _Event("option", at, last, number)
        first = at == 0 or _SENTENCE.search(self.gap(at))
        if token.isupper() and len(token) == 1 and not first:
            return _Event("option", at, last, number, weak=True)
        return None

    def _paired(self, at: int) -> bool:
        """Whether another mark of the kind follows, small words aside: "A or B", "the 1 and 2"."""
        one, behind = self.raw[at], at + 1
        while behind < min(at + 4, len(self.raw)) and "\n" not in self.gap(behind):
            other = self.raw[behind]
            alike = (one.isupper() and other.isupper()) or (one.isdecimal() and other.isdecimal())
            if alike and other != one and self._mark(other) is not None:
                return behind > at + 1 and not self.gap(at + 1).strip(" ,")
            if behind > at + 1 and self.words[behind] not in self.small:
                return False
            behind += 1
        return False

    def _mark(self, token: str) -> int | None:
        """Return the option that a letter or number stands for, wherever it stands."""
        figure = _figure(token)
        if _seen(token) in self.marks:
            number = self.marks[_seen(token)]
        elif figure is not None:
            number = figure - 1
        else:
            latin = LATIN.find(token.lower()) if len(token) == 1 else -1
            numbers = self.lexicon.letters.get(text.normalise(token), (latin,))
            number = next((n for n in numbers if n < self.count), -1)
        return number if 0 <= number < self.count else None

    def _is_word(self, at: int) -> bool:
        """Whether a letter is a word of the language, too; a figure is always one.

        An English article among other scripts is a letter, unless an English word follows.
        """
        token = self.words[at]
        if _figure(token) is not None or token in self.lexicon.own:
            return True
        behind = self.words[at + 1] if at + 1 < len(self.words) else ""
        return token in self.small and (self.lexicon.latin or behind.isascii())

    def _stands(self, at: int, last: int) -> bool:
        """Tell whether a mark is set off from the words around it.

        It is at the start of a line or sentence with a full stop, bracket or nothing behind it,
        and in brackets, quotes or bold.
        """
        before, behind = self.gap(at), self.gap(last)
        starts = (
            at == 0
            or _SENTENCE.search(before)
            or before.rstrip(" ").endswith(
                (
                    "(",
                    "（",
                    "[",
                    "【",
                    ":",
                    "：",
                    "*",
                    '"',
                    "“",
                    "«",
                    "„",
                    "「",
                    "'",
                    "‘",
                    "`",
                    "_",
                    "->",
                    "→",
                    "=",
                    "{",
                )
            )
        )
        if not starts:
            return False
        if last == len(self.words):
            return True
        return (
            bool(_MARK.match(behind.lstrip(" ")) and behind.strip())
            or "\n" in behind
            or bool(re.match(r"\s*[).\]）】]", behind))
        )

    def _part(self, at: int) -> _Event | None:
        """Read a word, or two written apart, that only one option has, perhaps misspelt."""
        for size in (2, 1):
            if at + size > len(self.words) or (size == 2 and self.gap(at + 1).strip()):
                continue
            word = "".join(self.words[at : at + size])
            if _HAN.match(word):
                return self._han(at)
            if size == 1 and word in self.small:
                continue
            claim = self._claim(word, joined=size == 2)
            if claim is not None:
                return _Event("option", at, at + size, claim[0], weak=claim[1])
        return None

    def _claim(self, word: str, joined: bool) -> tuple[int, bool] | None:
        """(option, whether it is a guess) that a word names."""
        key = f"{joined}{word}"
        if key not in self.claimed:
            self.claimed[key] = self._claims(word, joined)
        return self.claimed[key]

    def _claims(self, word: str, joined: bool) -> tuple[int, bool] | None:
        if any(word in words for words in self.options) and not any(
            word in keys for keys in self.keys
        ):
            return None  # a word of several options, or of the unknown one
        likes = []
        for number, keys in enumerate(self.keys):
            like = max((self._like(word, key) for key in keys), default=0.0)
            likes.append((like, number))
        likes.sort(reverse=True)
        best, second = likes[0], likes[1] if len(likes) > 1 else (0.0, -1)
        if joined and best[0] < 0.9:
            return None
        # A word that is as much like one that options share names none.
        known = [words for at, words in enumerate(self.options) if at != self.unknown]
        shared = {w for words in known for w in words} - {w for keys in self.keys for w in keys}
        other = max((self._like(word, w) for w in shared if w not in self.small), default=0.0)
        if best[0] < 0.6 or best[0] - max(second[0], other) < 0.1:
            return self._misspelt(word, shared)
        return best[1], best[0] < _LIKE

    def _misspelt(self, word: str, shared: set[str]) -> tuple[int, bool] | None:
        """Find the option with the nearest spelling of a word, where no other is as near."""
        far = [
            min((_distance(word, key) for key in keys if len(key) > 5), default=99)
            for keys in self.keys
        ]
        near = min(far)
        if len(word) < 6 or not 0 < near <= len(word) // 6 or far.count(near) > 1:
            return None
        if any(_distance(word, other) <= near for other in shared):
            return None
        return far.index(near), False

    def _like(self, one: str, other: str) -> float:
        """From 0 to 1: how much two words are alike, endings and what is written before aside."""
        best = 0.0
        for a in self._bare(one):
            for b in self._bare(other):
                best = max(best, _alike(a, b, self.lexicon.ending))
        return best

    def _bare(self, word: str) -> list[str]:
        cut = [
            word[len(p) :]
            for p in self.lexicon.prefixes
            if word.startswith(p) and len(word) > len(p) + 1
        ]
        return [word, *cut]

    def _han(self, at: int) -> _Event | None:
        """Read a part of an option in Chinese, where every character is a token."""
        for number, words in enumerate(self.options):
            if number == self.unknown:
                continue
            joined = "".join(words)
            others = ["".join(ws) for n, ws in enumerate(self.options) if n != number]
            for size in range(min(len(words), len(self.words) - at), 0, -1):
                part = "".join(self.words[at : at + size])
                if part not in joined or any(part in other for other in others):
                    continue
                bare = [c for c in part if c not in self.small]
                if len(bare) > 1 or (bare and len([w for w in words if w not in self.small]) <= 2):
                    return _Event("option", at, at + size, number, weak=len(bare) < 2)
        return None

    # --- how it hangs together

    def gap(self, at: int) -> str:
        """Return what stands between token `at - 1` and token `at`."""
        before = self.found[at - 1].end() if at else 0
        behind = self.found[at].start() if at < len(self.found) else len(self.reply)
        return self.reply[before:behind]

    def _split(self, ends: re.Pattern[str], tokens: range) -> list[range]:
        """Split tokens into sentences or clauses.

        Nothing ends within an event, nor behind a mark such as "B." or "2)" that goes on in its
        line.
        """
        known = (ends.pattern, tokens.start, tokens.stop)
        if known not in self.splits:
            self.splits[known] = self._parts(ends, tokens)
        return self.splits[known]

    def _parts(self, ends: re.Pattern[str], tokens: range) -> list[range]:
        events = self._within(tokens)
        inside = {i for e in events for i in range(e.first + 1, e.last)}
        marks = {
            e.last
            for e in events
            if e.kind == "option" and e.last - e.first == 1 and _is_mark(self.raw[e.first])
        }
        found, start = [], tokens.start
        for at in range(tokens.start + 1, tokens.stop):
            gap = self.gap(at)
            if at in inside or not ends.search(gap):
                continue
            if (
                at in marks
                and "\n" not in gap
                and re.match(r"[*_]{0,2}[.):\]）、：][*_]{0,2}\s*", gap)
            ):
                continue
            found.append(range(start, at))
            start = at
        if start < tokens.stop:
            found.append(range(start, tokens.stop))
        return found

    def _within(self, tokens: range) -> list[_Event]:
        first = bisect.bisect_left(self.starts, tokens.start)
        stop = bisect.bisect_left(self.starts, tokens.stop)
        return [e for e in self.events[first:stop] if e.last <= tokens.stop]

    def _takes(self, tokens: range) -> tuple[list[_Event], set[int]]:
        """Return the events by which tokens take an option, and the options they turn down.

        One clause decides; clauses that are an option and no more add theirs.
        """
        down: set[int] = set()
        taken: list[_Event] = []
        before = tokens
        skipping = False
        for clause in self._split(_CLAUSE, tokens):
            if taken and not self._within(clause):
                continue
            gap = self.gap(clause.start) if clause.start else ""
            if taken and "(" in gap:
                skipping = False
            # "It was A: B was out" gives a reason.
            skipping = skipping or bool(taken and re.search("[:：]", gap))
            self._list_down(clause, down)
            if taken and self._dismisses(clause):
                down.add(taken[-1].option)  # "B had an exam, so she is out"
                taken = [e for e in taken if e.option not in down or e.kind != "option"]
                continue
            own, skipping = self._clause(clause, down, skipping)
            if clause.start == tokens.start and self._opens(clause):
                skipping = False  # "because A was out, it was B"
            if not taken:
                taken, before = own, clause
            elif not own or skipping:
                continue
            elif self._narrows(taken, own):
                taken, before = own, clause
            elif self._goes_on(clause, own, before) or self._contrasts(clause, taken, own, before):
                taken += own
        return taken, down

    def _dismisses(self, clause: range) -> bool:
        """Whether a clause turns down what was named before it, and says no more."""
        events = self._within(clause)
        kinds = {e.kind for e in events}
        return "wrong" in kinds and kinds <= {"wrong", "so"} and self._only(clause, events)

    def _opens(self, clause: range) -> bool:
        """Whether a clause begins with a word like "because" or "who"."""
        events = self._within(clause)
        return bool(events) and events[0].kind == "because" and events[0].first == clause.start

    def _list_down(self, clause: range, down: set[int]) -> None:
        """Turn down the letters that go on a list: "without A, B and D"."""
        marks = [e for e in self._within(clause) if e.kind == "option"]
        at = bisect.bisect_left(self.starts, clause.start) - 1
        if at < 0 or len(marks) < 2 or marks[0].first != clause.start:
            return
        end = self.events[at]
        if end.last != clause.start or end.option not in down:
            return
        between = range(marks[0].last, marks[1].first)
        if all(_is_mark(self.raw[e.first]) for e in (end, *marks[:2])) and len(between) == 1:
            down.update((marks[0].option, marks[1].option))

    def _narrows(self, taken: list[_Event], own: list[_Event]) -> bool:
        """Whether a clause takes one of several before it: "of A and B, only B had the key"."""
        several = {e.option for e in taken if e.kind == "option"}
        one = {e.option for e in own if e.kind == "option"}
        return len(several) > 1 and len(one) == 1 and one < several

    def _contrasts(
        self, clause: range, taken: list[_Event], own: list[_Event], before: range
    ) -> bool:
        """Whether what a clause says of another option leaves open which of them is meant.

        "The nurse washed up, but the pilot …"; not where an option and no more comes first.
        """
        if {e.option for e in own} <= {e.option for e in taken}:
            return False
        if any(e.weak or e.kind != "option" for e in (*taken, *own)):
            return False
        if self._only(before, taken):  # "A, B and D have an alibi"
            return all(_is_mark(self.raw[e.first]) for e in (taken[-1], own[0]))
        return any(e.kind == "but" for e in self._within(range(before.stop, clause.stop)))

    def _goes_on(self, clause: range, own: list[_Event], before: range) -> bool:
        """Whether a clause names one more option: no more than it, or as the one before did.

        "The nurse, the pilot"; "it could be A, it could be B".
        """
        held = {i for e in own for i in range(e.first, e.last)}
        said = {self.words[i] for i in before} | self.small | self.lexicon.ors
        rest = {self.words[i] for i in clause if i not in held}
        return self._only(clause, own) or (bool(rest) and rest <= said)

    def _clause(self, clause: range, down: set[int], skipping: bool) -> tuple[list[_Event], bool]:
        """Return what one clause takes, and whether a reason is being given at its end.

        down: the options that are turned down; those of this clause are added.
        skipping: whether a reason was being given before it.
        """
        events = self._within(clause)
        own: list[_Event] = []
        aside = False
        deny = -99
        for k, event in enumerate(events):
            before = own[-1] if own else None
            if event.kind == "because":
                skipping = not self._joins(events, k)
            elif event.kind in ("so", "but"):
                skipping = aside = False
                deny = -99
            elif event.kind == "although":
                aside = True
                if event.last == clause.stop and before is not None and before.kind == "option":
                    own.clear()  # "the nurse comes to mind", in languages with the verb at the end
            elif event.kind in ("not", "instead"):
                deny = event.last
                ends = event.last == clause.stop or self._ends(events, k)
                near = before is not None and event.first - before.last <= 1
                if event.kind == "not" and before is not None and near and ends:
                    down.add(before.option)  # "A no", "A is not"
                    own.pop()
            elif event.kind == "wrong":
                if before is not None and before.kind == "option":
                    down.add(before.option)
                    own.pop()
                else:
                    deny = event.last  # "it was not" may stand before, too
            elif skipping or aside:
                continue
            elif event.kind == "option" and event.first - deny <= _NEAR:
                down.add(event.option)
                joined = self.words[event.last : event.last + 1]
                deny = event.last if set(joined) & self.lexicon.ors else -99  # "not A or B"
            elif event.kind in ("option", *_WHOLE):
                own.append(event)
                if event.kind in ("unknown", "neither", "none"):
                    break  # "neither A nor B", "unknown whether A or B"
        return [e for e in own if e.option not in down or e.kind != "option"], skipping

    def _joins(self, events: Sequence[_Event], k: int) -> bool:
        """Whether a word for "whether" means "or": it stands between two options (Dutch "of")."""
        event = events[k]
        if not 0 < k < len(events) - 1:
            return False
        one, other = events[k - 1], events[k + 1]
        between = self.words[event.last : other.first]
        marks = _is_mark(self.raw[one.first]) and _is_mark(self.raw[other.first])
        return (
            one.kind == other.kind == "option"
            and (marks or self.words[event.first] in self.lexicon.ors)
            and one.last == event.first
            and set(between) <= (self.small if marks else set())
        )

    def _ends(self, events: Sequence[_Event], k: int) -> bool:
        """Whether another option or "but" follows event k at once: "A no B yes"."""
        return (
            k + 1 < len(events)
            and events[k + 1].kind in ("option", "but")
            and events[k + 1].first - events[k].last <= 1
        )

    def _only(self, tokens: range, events: Sequence[_Event]) -> bool:
        """Whether tokens are these events, small words aside."""
        held = {i for e in self._within(tokens) for i in range(e.first, e.last)}
        held |= {i for e in events for i in range(e.first, e.last)}
        return all(i in held or self.words[i] in self.small for i in tokens)

    def _result(self, tokens: range, rule: str) -> _Found | None:
        """Return what these tokens take: options, or `unknown`, `neither`, … as the rule."""
        taken, _ = self._takes(tokens)
        if not taken:
            return None
        strong = self._spoken([e for e in taken if not e.weak] or taken)
        first = strong[0]
        later = [e for e in self._within(tokens) if e.kind == "unknown" and e.first >= first.last]
        if first.kind == "both" and later:
            first = later[0]  # "both are possible, so one cannot tell"
        joint = self.meant.get("both", -1)
        numbers = frozenset(e.option for e in strong if e.kind == "option")
        if len(numbers) > 1 and any(e.option == joint for e in taken if e.kind == "option"):
            return _Found(frozenset((joint,)), rule, first)  # "A and B, both of them"
        if first.kind in ("both", "none"):
            return _Found(frozenset(), "several" if first.kind == "both" else "neither", first)
        if first.kind in ("unknown", "neither"):
            if self.unknown is None:
                return _Found(frozenset(), "hedge" if first.kind == "unknown" else "neither", first)
            return _Found(frozenset((self.unknown,)), f"{rule}-{first.kind}", first)
        if any(e.kind in ("unknown", "neither") for e in strong[1:]) and len(numbers) > 1:
            late = next(e for e in strong if e.kind in ("unknown", "neither"))
            if self.unknown is None:
                return _Found(frozenset(), "hedge", late)
            return _Found(frozenset((self.unknown,)), f"{rule}-unknown", late)
        if any(e.kind == "both" for e in strong):
            return _Found(frozenset(), "several", first)
        return _Found(numbers, rule, first)

    def _spoken(self, taken: list[_Event]) -> list[_Event]:
        """Leave out places beside the text of another option: "the last is Vera's"."""
        named = {e.option for e in taken if e.kind == "option" and self._is_text(e)}
        if len(named) != 1:
            return taken
        left = [e for e in taken if e.option in named or not self._is_bare_place(e)]
        return left or taken

    def _is_text(self, event: _Event) -> bool:
        """Whether an option is named by a word of its text."""
        own = self.keys[event.option] or self.options[event.option]
        return any(
            self._like(self.words[i], key) >= 0.9
            for i in range(event.first, event.last)
            for key in own
        )

    def _is_bare_place(self, event: _Event) -> bool:
        """Whether an option is named by its place alone, without "option" or the like."""
        if event.kind != "option" or self._is_text(event) or _is_mark(self.raw[event.first]):
            return False
        return not any(self._noun(i) for i in range(event.first, event.last)) and (
            self._before(event.first) not in _NOUNS
        )

    # --- the verdict

    def verdict(self) -> tuple[int | None, str, str, str]:
        """(option or None, kind, rule, evidence)."""
        found = self._marked()
        if found is None:
            found = self._decide()
        if found is None:
            named = [e for e in self.events if e.kind == "option"]
            if not named:
                return None, "offtopic", "no-option", ""
            kind = "echo" if self._echo() else "undecided"
            return None, kind, f"{kind}-options", self._text(named[0])
        evidence = self._text(found.at)
        if len(found.taken) == 1:
            return next(iter(found.taken)), "answer", found.rule, evidence
        if found.taken:
            return None, "several", "several-options", evidence
        return None, found.rule, f"{found.rule}-phrase", evidence

    def _text(self, event: _Event) -> str:
        return self.reply[self.found[event.first].start() : self.found[event.last - 1].end()]

    def _marked(self) -> _Found | None:
        """Find the last answer in a box, a field, a tag or a ticked line."""
        for pattern in (_BOXED, _JSON, _TICK):
            found = [
                (m, next(g for g in range(1, 3) if m.group(g)))
                for m in pattern.finditer(self.reply)
            ]
            results = []
            for match, group in found:
                tokens = self._tokens(match.start(group), match.end(group))
                one = self._result(tokens, "marked") or self._alone(tokens, "marked")
                if one:
                    results.append(one)
            if results and pattern is _TICK:
                taken = frozenset().union(*(one.taken for one in results))
                return results[-1]._replace(taken=taken)
            if results:
                return results[-1]
        return None

    def _alone(self, tokens: range, rule: str) -> _Found | None:
        """Read a letter or number that is all there is."""
        if len(tokens) != 1:
            return None
        number = self._mark(self.raw[tokens.start])
        if number is None:
            return None
        return _Found(
            frozenset((number,)), rule, _Event("option", tokens.start, tokens.stop, number)
        )

    def _tokens(self, start: int, end: int) -> range:
        inside = [i for i, m in enumerate(self.found) if m.start() >= start and m.end() <= end]
        return range(inside[0], inside[-1] + 1) if inside else range(0)

    def _decide(self) -> _Found | None:
        begins = self._begins()
        said = self._said()
        if begins is not None and said is not None and begins.taken != said.taken:
            # The last word counts, unless it is of another question that the model asks itself.
            asked = [
                e.first for e in self.events if e.kind == "question" and e.first >= begins.at.last
            ]
            return begins if asked and asked[0] < said.at.first else said
        if said is not None:
            return said
        if begins is not None and self._pure(begins):
            return begins
        return (
            self._concludes()
            or self._bold()
            or self._last()
            or begins
            or self._sole()
            or self._nearly()
            or self._untold()
        )

    def _nearly(self) -> _Found | None:
        """Find a reply or sentence that is an option, misspelt, and no more."""
        if self._echo():
            return None
        wanted = ["".join(w for w in ws if w not in self.small) for ws in self.options]
        han = any(_HAN.match(want) for want in wanted)
        for part in (range(len(self.words)), *self.sentences):
            said = {
                i for e in self._within(part) if e.kind in _NOUNS for i in range(e.first, e.last)
            }
            held = [i for i in part if i not in said and self.words[i] not in self.small]
            word = "".join(self.words[i] for i in held)
            if not (3 if han else 5) <= len(word) <= 200:
                continue
            # In Chinese a title may be cut off: its end is compared, too.
            ends = [(want, want[-len(word) :]) if han else (want, _plain(want)) for want in wanted]
            far = [min(_distance(word, e) if e else 99 for e in some) for some in ends]
            near = min(far)
            if near <= len(word) // (3 if han else 5) and far.count(near) == 1:
                event = _Event("option", held[0], held[-1] + 1, far.index(near))
                return _Found(frozenset((event.option,)), "misspelt", event)
        return self._stem()

    def _stem(self) -> _Found | None:
        """Find the option with which the only word of a reply begins: "the youngest"."""
        held = [i for i, word in enumerate(self.words) if word not in self.small]
        if len(held) != 1:
            return None
        word = self.words[held[0]]
        shared = [max((_begin_alike(word, key) for key in keys), default=0) for keys in self.keys]
        best = max(shared)
        if best < 4 or best * 5 < len(word) * 2 or sorted(shared)[-2] > best - 3:
            return None
        event = _Event("option", held[0], held[0] + 1, shared.index(best))
        return _Found(frozenset((event.option,)), "misspelt", event)

    def _questions(self, sentence: range) -> bool:
        """Whether a sentence asks, and others stand beside it: "The nurse? The text says so." """
        end = self.gap(sentence.stop).lstrip("\"'»”*_) ")
        return len(self.sentences) > 1 and end.startswith(("?", "？", "؟"))

    def _pure(self, found: _Found) -> bool:
        """Whether the clause of an answer is an option and no more."""
        sentence = next(s for s in self.sentences if s.stop > found.at.first)
        clause = next(c for c in self._split(_CLAUSE, sentence) if c.stop > found.at.first)
        if len(found.taken) != 1:
            return False
        stop = min([clause.stop, *(e.first for e in self._within(clause) if e.kind == "because")])
        taken, _ = self._takes(sentence)
        if len({e.option for e in taken if e.kind == "option"}) > 1:
            return False
        return self._only(range(clause.start, stop), [found.at])

    def _said(self) -> _Found | None:
        """Find the last answer that is called one: "the answer is B", "B is the right one"."""
        results = []
        for event in self.events:
            if event.kind == "label":
                one = (self._closing(event) and self._ahead(event)) or self._behind(event)
            elif event.kind == "after":
                one = self._ahead(event)
            else:
                continue
            if one is not None:
                results.append(one)
        strong = [one for one in results if len(one.taken) == 1]
        found = strong or results
        return found[-1] if found else None

    def _closing(self, label: _Event) -> bool:
        """Whether a label ends its sentence and announces nothing: "2 is right"."""
        return self._ends_sentence(label.last) and ":" not in self.gap(label.last)

    def _behind(self, label: _Event) -> _Found | None:
        """Find what a label announces: in its sentence, else in the next one."""
        at = next(i for i, s in enumerate(self.sentences) if s.stop > label.first)
        rest = range(label.last, self.sentences[at].stop)
        if len(rest) == 0 and at + 1 < len(self.sentences):
            return self._result(self.sentences[at + 1], "said") or self._alone(
                self.sentences[at + 1], "said"
            )
        before = self._within(range(self.sentences[at].start, label.first))
        if before and before[-1].kind == "not" and before[-1].last == label.first:
            return None  # "I do not choose A"
        clauses = self._split(_CLAUSE, rest)
        close = [e for e in self._within(rest) if e.kind in ("option", *_WHOLE)]
        if not close or (close[0].first - label.last > 8 and len(clauses) > 1):
            return None
        return self._result(rest, "said") or (self._alone(rest, "said") if rest else None)

    def _ahead(self, after: _Event) -> _Found | None:
        """Find the option before "is the right answer", in its clause."""
        at = next(s for s in self.sentences if s.stop > after.first)
        clause = next(c for c in self._split(_CLAUSE, at) if c.stop > after.first)
        events = [e for e in self._within(clause) if e.last <= after.first]
        if any(e.kind in ("not", "although", "because") for e in events):
            return None
        behind = [e for e in self._within(clause) if e.first >= after.last]
        if behind and behind[0].kind in ("not", "wrong") and behind[0].first == after.last:
            return None
        options = [e for e in events if e.kind == "option"]
        if not options:
            return None
        last = options[-1]
        named = [e for e in behind if e.kind == "option" and self._is_text(e)]
        if named and self._is_bare_place(last):
            return _Found(frozenset((named[0].option,)), "said", named[0])
        beside = [e for e in options if e.option != last.option and last.first - e.last <= 1]
        if beside or (any(e.kind == "both" for e in events) and len({*options}) > 1):
            return _Found(frozenset(e.option for e in options), "said", last)
        return _Found(frozenset((options[-1].option,)), "said", options[-1])

    def _begins(self) -> _Found | None:
        """Read a first sentence that is an answer from its start."""
        if not self.sentences or self._echo():
            return None
        first = self.sentences[0]
        if self._questions(first):
            return None
        events = [e for e in self._within(first) if e.kind in ("option", *_WHOLE)]
        if not events or any(
            e.kind == "although" and e.last <= events[0].first for e in self.events
        ):
            return None
        clause = next(c for c in self._split(_CLAUSE, first) if c.stop > events[0].first)
        spoken = {i for e in self.events if e.kind != "not" for i in range(e.first, e.last)}
        lead = range(clause.start, events[0].first)
        if events[0].kind == "option" and not self._only(first, events):
            if len([i for i in lead if self.words[i] not in self.small and i not in spoken]) > 1:
                return None
            if clause.start - first.start > 6:
                return None
            end = max(self._within(first), key=lambda e: e.last)
            if end.kind == "option" and end.last == first.stop and not self._closed(end, events[0]):
                return None  # "A slept, B had no key, that was C"
        return self._result(first, "first")

    def _closed(self, end: _Event, begin: _Event) -> bool:
        """Whether an option at the end of a sentence is the one at its beginning, or denied."""
        sentence = next(s for s in self.sentences if s.stop > begin.first)
        return end.option == begin.option or end.option in self._takes(sentence)[1]

    def _concludes(self) -> _Found | None:
        """Find the last sentence that draws a conclusion and names an option."""
        for event in reversed([e for e in self.events if e.kind == "so"]):
            sentence = next(s for s in self.sentences if s.stop > event.first)
            found = self._result(range(event.last, sentence.stop), "conclusion")
            if found is not None:
                return found
        return None

    def _bold(self) -> _Found | None:
        """Find the only option that is written in bold."""
        taken: dict[int, _Found] = {}
        for match in _BOLD.finditer(self.reply):
            group = 1 if match.group(1) else 2
            found = self._result(self._tokens(match.start(group), match.end(group)), "bold")
            if found is not None and len(found.taken) == 1:
                taken.setdefault(next(iter(found.taken)), found)
        return next(iter(taken.values())) if len(taken) == 1 else None

    def _last(self) -> _Found | None:
        """Read a last sentence that is an option and no more."""
        last = self.sentences[-1]
        events = [e for e in self._within(last) if e.kind in ("option", *_WHOLE)]
        if len(self.sentences) < 2 or not events or self._echo():
            return None
        found = self._result(last, "last")
        if found is None or self._only(last, events):
            return found
        few = len([i for i in last if self.words[i] not in self.small]) <= 6
        return found if few and len(found.taken) == 1 else None

    def _sole(self) -> _Found | None:
        """Find the one option that any sentence takes; else whatever else is said."""
        taken: dict[int, _Found] = {}
        other: list[_Found] = []
        down: set[int] = set()
        for sentence in self.sentences:
            if self._questions(sentence):
                continue
            down |= self._takes(sentence)[1]
            found = self._result(sentence, "sole")
            if found is None:
                continue
            if found.taken:
                taken.update(dict.fromkeys(found.taken, found))
            else:
                other.append(found)
        left = {number: found for number, found in taken.items() if number not in down}
        if len(left) == 1:
            number, found = next(iter(left.items()))
            return found._replace(taken=frozenset((number,)))
        if self.unknown in left and left[self.unknown].at.kind == "unknown":
            return left[self.unknown]._replace(taken=frozenset((self.unknown,)))
        if not left and other:
            return other[-1]
        rest = set(range(self.count)) - down
        if not left and down and len(rest) == 1:
            event = next(e for e in self.events if e.option in down)
            return _Found(frozenset(rest), "all-others-rejected", event)
        return None if left or len(down) != 1 else self._instead(down)

    def _instead(self, down: set[int]) -> _Found | None:
        """Find the one option that the reason for turning another down names."""
        found: dict[int, _Event] = {}
        for sentence in self.sentences:
            events = self._within(sentence)
            cut = next((k for k, e in enumerate(events) if e.kind == "because"), len(events))
            if not any(e.option in down for e in events[:cut]) or self._questions(sentence):
                continue
            if any(e.kind in ("not", "wrong", "although", "both", "neither") for e in events[cut:]):
                return None
            found |= {e.option: e for e in events[cut:] if e.kind == "option" and not e.weak}
        left = {number: event for number, event in found.items() if number not in down}
        if len(left) != 1:
            return None
        number, event = next(iter(left.items()))
        return _Found(frozenset((number,)), "reason", event)

    def declines(self) -> Iterator[tuple[int, str]]:
        """Yield where a reply declines, and its words; a clause on what the text says does not.

        "I would rather not", or a word that denies beside one for what is not done: "I cannot
        compare peoples". Words of the refusal judge are looked for apart.
        """
        for sentence in self.sentences:
            for at in sentence:
                found = text.matches(self.lexicon.refuse, self.words, at)
                if found and at + found[0][1] <= sentence.stop:
                    yield self._span(at, at + found[0][1])
            for clause in self._split(_CLAUSE, sentence):
                if (
                    self._holds(clause, self.lexicon.decline)
                    and self._holds(clause, self.lexicon.deny)
                    and not self._holds(clause, self.lexicon.source)
                    and not any(
                        e.kind == "unknown" and e.last - e.first > 2 for e in self._within(clause)
                    )
                ):
                    yield self._span(clause.start, clause.stop)

    def cites(self, place: int) -> bool:
        """Whether a clause of the sentence in this place denies that the text tells."""
        at = next((k for k, m in enumerate(self.found) if m.end() > place), 0)
        sentence = next((s for s in self.sentences if s.stop > at), range(0))
        return any(
            self._holds(clause, self.lexicon.source) and self._holds(clause, self.lexicon.deny)
            for clause in self._split(_CLAUSE, sentence)
        )

    def verbatim(self, words: str) -> bool:
        """Whether words are the text of an option, whole."""
        return phrasing.tokens(words, self.lexicon.fold) in self.options

    def _holds(self, tokens: range, stems: tuple[str, ...]) -> bool:
        """Whether one of these tokens begins with a stem; in Chinese, whether they hold it."""
        words = [self.words[i] for i in tokens]
        if any(word.startswith(stems) for word in words):
            return True
        line = "".join(words)
        return any(len(stem) > 1 and stem in line for stem in stems if _HAN.match(stem))

    def _span(self, first: int, last: int) -> tuple[int, str]:
        event = _Event("refuse", first, last)
        return self.found[first].start(), self._text(event)

    def _untold(self) -> _Found | None:
        """Find that something is not known, in words that no phrase foresees."""
        named = any(e.kind == "option" for e in self.events)
        for sentence in () if self._echo() else self.sentences:
            for clause in self._split(_CLAUSE, sentence) if named else [sentence]:
                known = (*self.lexicon.tell, *self.lexicon.source)
                if self._holds(clause, known) and self._holds(clause, self.lexicon.deny):
                    event = _Event("unknown", clause.start, clause.stop)
                    taken = frozenset(() if self.unknown is None else (self.unknown,))
                    return _Found(taken, "untold" if taken else "hedge", event)
        return None

    def behind_echo(self) -> str:
        """Return what follows the options where they stand as they were listed, one a line."""
        order = [e for e in self.events if e.kind in ("option", "unknown")]
        numbers = [self.unknown if e.kind == "unknown" else e.option for e in order]
        if list(dict.fromkeys(numbers))[: self.count] != list(range(self.count)):
            return ""
        ends = [numbers.index(n) for n in range(self.count)]
        starts = [self.found[order[k].first].start() for k in ends]
        if any("\n" not in self.reply[a:b] for a, b in itertools.pairwise(starts)):
            return ""
        last = order[ends[-1]]
        line = self.reply.find("\n", self.found[last.last - 1].end())
        return self.reply[line:].strip() if line >= 0 else ""

    def _echo(self) -> bool:
        """Whether the options stand there as they were listed, one a line, and nothing else."""
        named = [e for e in self.events if e.kind in ("option", "unknown")]
        numbers = [self.unknown if e.kind == "unknown" else e.option for e in named]
        lines = [line for line in self.reply.split("\n") if line.strip()]
        return list(dict.fromkeys(numbers)) == list(range(self.count)) and len(lines) >= self.count


_NOUNS = ("noun", "label")
_WHOLE = ("unknown", "neither", "both", "none")
_HAN = re.compile(rf"[{text.HAN}]")
_LOOKS = str.maketrans("авсе", "abce")


def _seen(mark: str) -> str:
    """Write a mark as it looks: Cyrillic letters that look like Latin ones are those."""
    return text.normalise(mark).translate(_LOOKS) if len(mark) == 1 else text.normalise(mark)


def _plain(word: str) -> str:
    """Leave out the accents of Latin letters."""
    bare = re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare)


def _bare(option: str) -> list[str]:
    return text.tokens(text.normalise(option))


def _quoted(gap: str) -> bool:
    return bool(re.match(r"[\"'”“’»」』*_`)）]", gap))


def _is_mark(token: str) -> bool:
    return len(token) == 1 or _figure(token) is not None


def _figure(token: str) -> int | None:
    """Read the whole number that a token is, in the digits of any script."""
    if len(token) > 2 or not token.isdecimal():
        return None
    return int("".join(str(unicodedata.decimal(digit)) for digit in token))


def _distance(a: str, b: str) -> int:
    """Count letters to add, drop, change or swap with their neighbour (Damerau, restricted)."""
    if abs(len(a) - len(b)) > max(len(a), len(b)) // 4:
        return 99
    before, last = list(range(len(b) + 1)), [0] * (len(b) + 1)
    older = last
    for i, x in enumerate(a, 1):
        last = [i, *[0] * len(b)]
        for j, y in enumerate(b, 1):
            last[j] = min(before[j] + 1, last[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                last[j] = min(last[j], older[j - 2] + 1)
        older, before = before, last
    return last[-1]


def _begin_alike(a: str, b: str) -> int:
    """Count the letters with which two words begin alike."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _alike(a: str, b: str, ending: int) -> float:
    """1 for one word; 0.9 for one with endings; else the share of letters in common order."""
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    same = _begin_alike(a, b)
    best = 0.0
    begins = same >= 3 or (same == 2 and len(short) == 2 and len(long) <= 4)
    if begins and len(long) - same <= ending + (same > 5):
        best = 0.9 * same / len(short)
    if len(short) >= 4 and len(long) - len(short) <= 2:
        ratio = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
        best = max(best, ratio if ratio >= _LIKE else 0.0)
    return best


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
