"""Hold a reply while it is read: its mentions, sentences and clauses."""

from __future__ import annotations

import bisect
import itertools
import operator
import re
from collections.abc import Sequence

from genprobe.datasets import phrasing
from genprobe.judges.choosing import mentions
from genprobe.judges.choosing.mentions import Mention
from genprobe.judges.choosing.options import Options
from genprobe.judges.choosing.reply import CLAUSE, NOUNS, SENTENCE, Reply

_STOP = operator.attrgetter("stop")
_LONGEST = 300  # words after which a sentence is cut that has no end
_BEHIND_MARK = re.compile(r"[*_]{0,2}[.):\]）、：][*_]{0,2}\s*")


class Reading:
    """One reply read against its options.

    mentions: all mentions, in order. sentences: ranges of words that cover the reply.
    """

    def __init__(self, options: Options, text: str) -> None:
        self.options = options
        self.reply = Reply(text, options.lexicon)
        self.lexicon = options.lexicon
        self.mentions = mentions.find(options, self.reply)
        self._starts = [mention.first for mention in self.mentions]  # they do not overlap
        self._clauses: dict[range, list[range]] = {}
        self.sentences = self._split(SENTENCE, range(len(self.reply.words)))

    # --- sentences, clauses and their mentions

    def clauses(self, words: range) -> list[range]:
        """Split words into clauses."""
        if words not in self._clauses:
            self._clauses[words] = self._split(CLAUSE, words)
        return self._clauses[words]

    def _split(self, ends: re.Pattern[str], words: range) -> list[range]:
        """Split words after each end of a sentence or clause.

        No split within a mention, nor of clauses after a mark such as "2)" if its line goes on.
        """
        held = self.within(words)
        inside = {i for m in held for i in range(m.first + 1, m.last)}
        marks = {
            m.last for m in held if m.kind == "option" and m.last - m.first == 1 and self.is_mark(m)
        }
        found, start = [], words.start
        for at in range(words.start + 1, words.stop):
            gap = self.reply.gap(at)
            if at in inside or not (ends.search(gap) or at - start >= _LONGEST):
                continue
            if ends is CLAUSE and at in marks and "\n" not in gap and _BEHIND_MARK.match(gap):
                continue
            found.append(range(start, at))
            start = at
        if start < words.stop:
            found.append(range(start, words.stop))
        return found

    def within(self, words: range) -> list[Mention]:
        """Return the mentions in these words."""
        first = bisect.bisect_left(self._starts, words.start)
        stop = bisect.bisect_left(self._starts, words.stop)
        return [m for m in self.mentions[first:stop] if m.last <= words.stop]

    def answers(self, words: range) -> list[Mention]:
        """Return the mentions in these words that may answer: options, "unknown", "both", …"""
        return [m for m in self.within(words) if m.kind in ("option", *mentions.WHOLE)]

    def before(self, at: int) -> Mention | None:
        """Return the last mention that begins before this word."""
        found = bisect.bisect_left(self._starts, at) - 1
        return self.mentions[found] if found >= 0 else None

    def sentence(self, at: int) -> range:
        """Return the sentence in which a word stands."""
        return self.sentences[self.place(at)]

    def place(self, at: int) -> int:
        """Return the number of the sentence in which a word stands."""
        return bisect.bisect_right(self.sentences, at, key=_STOP)

    def clause(self, sentence: range, at: int) -> range:
        """Return the clause of a sentence in which a word stands."""
        clauses = self.clauses(sentence)
        return clauses[bisect.bisect_right(clauses, at, key=_STOP)]

    def is_only(self, words: range, more: Sequence[Mention] = ()) -> bool:
        """Tell whether words are only mentions (their own and `more`) and small words."""
        held = {i for m in (*self.within(words), *more) for i in range(m.first, m.last)}
        return all(i in held or self.reply.is_small(i) for i in words)

    def asks(self, sentence: range) -> bool:
        """Tell whether a sentence is a question with others around it: "The nurse? It says so." """
        end = self.reply.gap(sentence.stop).lstrip("\"'»”*_) ")
        return len(self.sentences) > 1 and end.startswith(("?", "？", "؟"))

    # --- how an option is named

    def is_mark(self, mention: Mention) -> bool:
        """Tell whether a mention begins with a letter or figure that may stand for an option."""
        return self.options.is_mark(self.reply.raw[mention.first])

    def is_text(self, option: Mention) -> bool:
        """Tell whether an option is named by a word of its text."""
        words = self.reply.words[option.first : option.last]
        return any(self.options.is_of(word, option.option) for word in words)

    def is_explicit(self, option: Mention) -> bool:
        """Tell whether an option is named by a mark, or by its whole text but for small words."""
        said = phrasing.simplified(self.reply.words[option.first : option.last])
        own = phrasing.simplified(self.options.words[option.option])
        small = self.lexicon.small
        whole = [w for w in said if w not in small] == [w for w in own if w not in small]
        return self.is_mark(option) or whole

    def is_bare_place(self, mention: Mention) -> bool:
        """Tell whether an option is named by its place alone, without "option" or the like."""
        if mention.kind != "option" or self.is_text(mention) or self.is_mark(mention):
            return False
        if any(self.reply.noun(i) for i in range(mention.first, mention.last)):
            return False
        return self.reply.noun_before(mention.first) not in NOUNS

    def quote(self, mention: Mention) -> str:
        """Return a mention as it stands in the reply."""
        return self.reply.quote(mention.first, mention.last)

    # --- options that are only repeated

    def repeats(self) -> bool:
        """Tell whether the reply lists all options in their order, one per line."""
        _, numbers = self._listed()
        lines = [line for line in self.reply.text.split("\n") if line.strip()]
        count = self.options.count
        return list(dict.fromkeys(numbers)) == list(range(count)) and len(lines) >= count

    def behind_list(self) -> str:
        """Return the text after an opening list of all options, one per line; "" without one."""
        order, numbers = self._listed()
        count = self.options.count
        if list(dict.fromkeys(numbers))[:count] != list(range(count)):
            return ""
        firsts = [order[numbers.index(number)] for number in range(count)]
        found, text = self.reply.found, self.reply.text
        starts = [found[m.first].start() for m in firsts]
        if any("\n" not in text[a:b] for a, b in itertools.pairwise(starts)):
            return ""
        line = text.find("\n", found[firsts[-1].last - 1].end())
        return text[line:].strip() if line >= 0 else ""

    def behind_correction(self) -> str:
        """Return the text after the last "wait, no" behind an option; "" without one."""
        named = False
        last = None
        for mention in self.mentions:
            named = named or mention.kind == "option"
            last = mention if named and mention.kind == "back" else last
        return self.reply.text[self.reply.found[last.last - 1].end() :] if last else ""

    def _listed(self) -> tuple[list[Mention], list[int | None]]:
        """Return the mentions of options, in order, and their option numbers."""
        named = [m for m in self.mentions if m.kind in ("option", "unknown")]
        return named, [self.options.unknown if m.kind == "unknown" else m.option for m in named]
