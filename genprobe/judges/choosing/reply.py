"""Hold a reply as words, with the text and punctuation around each.

Words are numbered from 0. Several words are a range, or first and last: first <= i < last.
"""

from __future__ import annotations

import bisect
import re

from genprobe import text
from genprobe.datasets.phrasing import Lexicon
from genprobe.judges.choosing import spelling

# Text between two words that ends a sentence or a clause.
SENTENCE = re.compile(r"[\n.!?。！？।؟…]")
CLAUSE = re.compile(r"[\n.!?。！？।؟…,;:，；：،؛、()（）\[\]|>]|\s[-–—]+\s|[–—]|->|=")
NOUNS = ("noun", "label")  # groups of words for an option, and for "the answer is"

_BEHIND_MARK = re.compile(r"[.):\]}）】。、：\-–—*_`\"'”»」,，،|/]|$")
_BEFORE_MARK = re.compile(r"([(（\[【:：*\"“«„「'‘`_→={]|->)\Z")


class Reply:
    """A reply as words. raw: as written. words: in the form in which they are compared."""

    def __init__(self, reply: str, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.text = text.visible(reply)
        self.found = list(text.TOKEN.finditer(self.text))
        self.raw = [match.group() for match in self.found]
        self.words = [text.replace(text.normalise(token), lexicon.fold) for token in self.raw]

    def gap(self, at: int) -> str:
        """Return the text between word `at - 1` and word `at`."""
        before = self.found[at - 1].end() if at else 0
        behind = self.found[at].start() if at < len(self.found) else len(self.text)
        return self.text[before:behind]

    def quote(self, first: int, last: int) -> str:
        """Return words as written in the reply, with the text between them."""
        return self.text[self.found[first].start() : self.found[last - 1].end()]

    def inside(self, start: int, end: int) -> range:
        """Return the words between two positions, counted in characters."""
        first = bisect.bisect_left(self.found, start, key=lambda word: word.start())
        last = bisect.bisect_right(self.found, end, key=lambda word: word.end())
        return range(first, last) if first < last else range(0)

    def is_small(self, at: int) -> bool:
        """Tell whether a word is an article or the like, which identifies no option."""
        return self.words[at] in self.lexicon.small

    def without_small(self, words: range) -> list[int]:
        """Return the words that are not articles or the like."""
        return [i for i in words if not self.is_small(i)]

    def holds(self, words: range, stems: tuple[str, ...]) -> bool:
        """Tell whether one of these words begins with a stem; in Chinese, whether they have it.

        A stem that ends in a space is a whole word.
        """
        said = [self.words[i] for i in words]
        parts = (f"{part} " for word in said for part in (word, word.split("'")[-1]))
        if any(part.startswith(stems) for part in parts):
            return True
        line = "".join(said)
        return any(len(stem) > 1 and stem in line for stem in stems if spelling.HAN.match(stem))

    # --- the context of a word

    def ends_sentence(self, at: int) -> bool:
        """Tell whether a sentence ends just before word `at`."""
        return at >= len(self.words) or bool(SENTENCE.search(self.gap(at)))

    def group(self, at: int) -> tuple[str, int]:
        """Return the group of the phrase that begins here and its number of words; else ("", 0)."""
        known = self.lexicon.phrases
        found = text.matches(known, self.words, at) if at < len(self.words) else []
        return found[0] if found else ("", 0)

    def noun(self, at: int) -> int:
        """Count the words from here on that are a noun for options ("option", "of the two")."""
        if at >= len(self.words):
            return 0
        for group, size in text.matches(self.lexicon.phrases, self.words, at):
            if group in NOUNS:
                return size
        word = self.words[at]
        return int(
            any(
                word.startswith(noun) and len(word) - len(noun) <= self.lexicon.ending
                for noun in self.lexicon.nouns
            )
        )

    def noun_before(self, at: int) -> str:
        """Return which of `NOUNS` ends just before this word, ignoring articles; "" for none."""
        stops = [at]
        while stops[-1] > max(0, at - 2) and self.is_small(stops[-1] - 1):
            stops.append(stops[-1] - 1)
        for start in range(max(0, stops[-1] - 5), at):
            for group, size in text.matches(self.lexicon.phrases, self.words, start):
                if start + size in stops and group in NOUNS:
                    return group
        return ""

    def begins_question(self, first: int, last: int) -> bool:
        """Tell whether these words begin a line like "Question:"."""
        return "\n" in self.gap(first) and self.gap(last).lstrip("* ").startswith((":", "："))

    # --- letters and figures

    def is_word(self, at: int) -> bool:
        """Tell whether a letter may be a word of the language ("a"); a figure always may.

        An English article among other scripts is a letter, unless an English word follows.
        """
        word = self.words[at]
        if spelling.figure(word) is not None or word in self.lexicon.own:
            return True
        behind = self.words[at + 1] if at + 1 < len(self.words) else ""
        return word in self.lexicon.small and (self.lexicon.latin or behind.isascii())

    def stands_apart(self, first: int, last: int) -> bool:
        """Tell whether a mark is set off from the words around it.

        It begins a line or a sentence, or follows a bracket, a quote, a colon or the like; and it
        is followed by a full stop, a bracket, the end of the line or the like.
        """
        before, behind = self.gap(first), self.gap(last)
        if not (first == 0 or SENTENCE.search(before) or _BEFORE_MARK.search(before.rstrip(" "))):
            return False
        if last == len(self.words):
            return True
        return (
            bool(_BEHIND_MARK.match(behind.lstrip(" ")) and behind.strip())
            or "\n" in behind
            or bool(re.match(r"\s*[).\]）】]", behind))
        )
