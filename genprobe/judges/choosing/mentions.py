"""Find what a reply mentions, in order: options, and words like "not", "because", "unknown".

An option is mentioned by its mark in the question, a letter, a number, its place, or words of its
text. The other words are the groups of `prompts/options` (`phrasing.GROUPS`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from genprobe import text
from genprobe.datasets import phrasing
from genprobe.judges.choosing import spelling
from genprobe.judges.choosing.options import Options
from genprobe.judges.choosing.reply import CLAUSE, NOUNS, SENTENCE, Reply

WHOLE = ("unknown", "neither", "both", "none")  # groups that answer about all options together


class Mention(NamedTuple):
    """A mention in the words first <= i < last of a reply.

    kind: `option`, or one of `phrasing.GROUPS`. option: its number, -1 for another kind. weak:
    whether the words may also mean something else.
    """

    kind: str
    first: int
    last: int
    option: int = -1
    weak: bool = False


def find(options: Options, reply: Reply) -> list[Mention]:
    """List the mentions of a reply in order, without overlaps."""
    scan = _Scan(options, reply)
    at = 0
    while at < len(reply.words):
        mention = scan.longest(at)
        if mention is None:
            at += 1
            continue
        scan.add(mention)
        at = mention.last
    return scan.mentions


class _Scan:
    """Reads a reply from left to right; a mention may depend on those before it."""

    def __init__(self, options: Options, reply: Reply) -> None:
        self.options = options
        self.reply = reply
        self.words = reply.words
        self.mentions: list[Mention] = []

    def add(self, mention: Mention) -> None:
        """Add a mention, and drop the one just before it if the new one includes its meaning."""
        before = self.mentions[-1:] if mention.kind == "option" else []
        if any(self._numbers(one, mention) or self._belongs(one, mention) for one in before):
            self.mentions.pop()
        self.mentions.append(mention)

    def _numbers(self, mark: Mention, option: Mention) -> bool:
        """Tell whether a mark numbers the text after it: "B) the grandson".

        Then the text decides which option is meant, whatever its number.
        """
        return (
            mark.kind == "option"
            and mark.last == option.first
            and spelling.is_mark(self.reply.raw[mark.first])
            and not re.search("[\n,]", self.reply.gap(option.first))
            and self.words[option.first : option.last] == self.options.words[option.option]
        )

    def _belongs(self, before: Mention, option: Mention) -> bool:
        """Tell whether a word just before an option belongs to it.

        The "both" of "both bakers", or a word of the option's text that may also mean "because".
        """
        if before.last != option.first or self.reply.gap(option.first).strip():
            return False
        said = self.words[before.first : before.last]
        if before.kind == "both":
            named = any(m.kind == "option" for m in self.mentions[:-1])
            return self.reply.ends_sentence(option.last) and not named
        own = set(self.options.words[option.option])
        return before.kind in ("because", "although", "not", "other") and set(said) <= own

    def longest(self, at: int) -> Mention | None:
        """Find the longest mention that begins at this word; None if there is none."""
        whole = self._whole(at)
        phrase = self._phrase(at)
        if whole is not None and (phrase is None or whole.last >= phrase.last):
            return whole
        if phrase is not None:
            return phrase
        return self._mark(at) or self._inflected_place(at) or self._part(at)

    # --- an option's text, and phrases

    def _whole(self, at: int) -> Mention | None:
        """Find the whole text of an option; the longest one if several match."""
        best = None
        small = self.reply.lexicon.small
        for number, words in enumerate(self.options.words):
            # Articles at its beginning may be missing.
            starts = [0, *(s for s in (1, 2) if set(words[:s]) <= small and s < len(words))]
            for start in starts:
                size = len(words) - start
                if size and self.words[at : at + size] == words[start:]:
                    if best is None or at + size > best.last:
                        best = Mention("option", at, at + size, number)
                    break
        if best and best.last - at == 1 and len(self.words[at]) == 1:
            # An option that is itself a letter or a figure counts only where a mark would.
            return best if self.reply.stands_apart(at, best.last) else None
        return best

    def _phrase(self, at: int) -> Mention | None:
        """Find a phrase of `prompts/options`; a place or "both" may name an option."""
        for group, size in text.matches(self.reply.lexicon.phrases, self.words, at):
            last = at + size
            if group not in ("unknown", "label") and self._parted(SENTENCE, at, last):
                continue
            if group in ("not", "instead", "both") and self._parted(CLAUSE, at, last):
                continue
            if group == "question" and not self.reply.begins_question(at, last):
                continue
            if group in phrasing.PLACES:
                mention = self._place(group, at, last)
                if mention:
                    return mention
                continue
            if group == "together":  # "they did it together"
                if "both" not in self.options.meant:
                    continue
                group = "both"
            if group in self.options.meant:  # an option that says "both", or "nobody"
                return Mention("option", at, last, self.options.meant[group], weak=True)
            return Mention(group, at, last)
        return None

    def _parted(self, ends: re.Pattern[str], at: int, last: int) -> bool:
        """Tell whether a sentence or clause ends among these words."""
        return any(ends.search(self.reply.gap(i)) for i in range(at + 1, last))

    # --- places: "the first one", "the latter"

    def _place(self, place: str, at: int, last: int) -> Mention | None:
        """Read "the first option", or "the second" at the end of a clause or after a label."""
        number = self._spoken_of(place, at) if place in ("former", "latter") else None
        number = self.options.placed(place) if number is None else number
        if number is None:
            return None
        reply = self.reply
        noun = reply.noun(last)
        behind = last
        while behind < len(self.words) and reply.is_small(behind):
            behind += 1
        if (
            last - at > 1
            or noun
            or reply.noun_before(at) in NOUNS
            or reply.group(behind)[0] in ("label", "after")
            or reply.is_quoted(last)
            or self._fills_clause(at, last, 1)
        ):
            return Mention("option", at, last + noun, number)
        return None

    def _spoken_of(self, place: str, at: int) -> int | None:
        """Return the former or the latter of the last two options named; None if fewer were."""
        named = (m.option for m in reversed(self.mentions) if m.kind == "option" and m.last <= at)
        last = next(named, None)
        before = next((option for option in named if option != last), None)
        return None if before is None else last if place == "latter" else before

    def _inflected_place(self, at: int) -> Mention | None:
        """Read a word for a place with an ending that `prompts/options` does not list."""
        word, lexicon = self.words[at], self.reply.lexicon
        for place, forms in lexicon.places.items():
            for form in forms:
                if word.startswith(form) and len(word) - len(form) <= lexicon.ending:
                    return self._place(place, at, at + 1)
        return None

    def _fills_clause(self, at: int, last: int, more: int = 0) -> bool:
        """Tell whether a clause ends here and has only small words (articles, …) before this.

        more: number of words that may follow before the clause ends; if some may and none follows,
        other words may come before. Earlier mentions count as small words.
        """
        stop = last
        while stop < len(self.words) and not CLAUSE.search(self.reply.gap(stop)):
            stop += 1
            if stop - last > more:
                return False
        known = {i for m in self.mentions[-4:] for i in range(m.first, m.last)}
        start = at
        while start and not CLAUSE.search(self.reply.gap(start)):
            start -= 1
            if start not in known and not self.reply.is_small(start):
                return stop == last and more > 0
        return True

    # --- marks: letters and numbers

    def _mark(self, at: int) -> Mention | None:
        """Read a letter or a number that stands for an option."""
        token, reply = self.reply.raw[at], self.reply
        number = self.options.marked(token)
        if number is None:
            return None
        last = at + 1
        sure = Mention("option", at, last, number)
        noun_before = reply.noun_before(at)
        if (
            reply.stands_apart(at, last)
            or noun_before == "noun"
            or self._fills_clause(at, last)
            or self._paired(at)
        ):
            return sure
        if noun_before == "label":
            return sure._replace(weak=reply.is_word(at))
        behind, size = reply.group(last)
        word = reply.is_word(at)
        apart = not word or spelling.figure(token) is not None
        closing = behind == "label" and self._fills_clause(at, last + size)
        if apart and ((reply.noun(last) and behind != "label") or behind == "after" or closing):
            return sure
        if not (token.isupper() and len(token) == 1):
            return None
        if not word:
            return sure
        begins = at == 0 or SENTENCE.search(reply.gap(at))
        return None if begins else sure._replace(weak=True)

    def _paired(self, at: int) -> bool:
        """Tell whether a mark of the same kind follows: "A or B", "the 1 and the 2"."""
        one, behind = self.reply.raw[at], at + 1
        while behind < min(at + 4, len(self.words)) and "\n" not in self.reply.gap(behind):
            other = self.reply.raw[behind]
            same = (one.isupper() and other.isupper()) or (one.isdecimal() and other.isdecimal())
            if same and other != one and self.options.marked(other) is not None:
                return behind > at + 1 and not self.reply.gap(at + 1).strip(" ,")
            if behind > at + 1 and not self.reply.is_small(behind):
                return False
            behind += 1
        return False

    # --- parts of an option's text

    def _part(self, at: int) -> Mention | None:
        """Read a word (or one split in two) that only one option has, perhaps misspelt."""
        for size in (2, 1):
            last = at + size
            if last > len(self.words) or (size == 2 and self.reply.gap(at + 1).strip()):
                continue
            word = "".join(self.words[at:last])
            if spelling.HAN.match(word):
                return self._characters(at)
            if size == 1 and self.reply.is_small(at):
                continue
            named = self.options.named(word, joined=size == 2)
            if named is not None:
                return Mention("option", at, last, named[0], weak=named[1])
        return None

    def _characters(self, at: int) -> Mention | None:
        """Read a part of an option in Chinese, where every character is a word."""
        most = max(map(len, self.options.words), default=0)
        part = self.options.part_named(self.words[at : at + most])
        return Mention("option", at, at + part[1], part[0], weak=part[2]) if part else None
