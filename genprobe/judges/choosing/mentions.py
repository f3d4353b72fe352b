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

_BEFORE_PART = re.compile(r"[\n.!?:;,،，、。！？।؟…：；؛]")
_BEHIND_BULLET = re.compile(r"[*_]*[.):\]）、：,،，\-–—]")
_NEAR = 100  # mentions before "the former" that are searched for what it may mean
WHOLE = ("unknown", "neither", "both", "none")  # groups that answer about all options together


class Mention(NamedTuple):
    """A mention in the words first <= i < last of a reply.

    kind: `option`, or one of `phrasing.GROUPS`. option: its number, -1 for another kind. weak:
    whether the words may also mean something else. mark: the option for which the mark beside the
    text of this one stands, if it is another one ("B) The nurse"); else -1.
    """

    kind: str
    first: int
    last: int
    option: int = -1
    weak: bool = False
    mark: int = -1


def find(options: Options, reply: Reply) -> list[Mention]:
    """List the mentions of a reply in order, without overlaps."""
    scan = _Scan(options, reply)
    at = 0
    while at < len(reply.words):
        at += scan.form(at)
        mention = scan.longest(at)
        if mention is None:
            at += 1
            continue
        scan.add(mention)
        at = mention.last
    bullets = scan.bullets() or scan.steps()
    left = [m for m in scan.mentions if not (bullets and m.weak)]
    return [m._replace(kind="other", option=-1) if m in bullets else m for m in left]


class _Scan:
    """Reads a reply from left to right; a mention may depend on those before it."""

    def __init__(self, options: Options, reply: Reply) -> None:
        self.options = options
        self.reply = reply
        self.words = reply.words
        self.plain = phrasing.simplified(self.words)
        self.mentions: list[Mention] = []
        # Word at which the text of an option with figures or signs begins -> (its end, the option).
        self.literal: dict[int, tuple[int, int]] = {}
        plain = text.western(reply.text) if any(options.literal) else ""
        for number, pattern in enumerate(options.literal):
            for match in pattern.finditer(plain) if pattern else ():
                held = reply.inside(*match.span())
                if held and self.literal.get(held.start, (0, 0)) < (held.stop, 0):
                    self.literal[held.start] = (held.stop, number)

    def add(self, mention: Mention) -> None:
        """Add a mention, joined with a mark beside it; drop one before it that belongs to it."""
        said = self.mentions
        before = said[-1] if said and mention.kind == "option" else None
        if before is not None and self._numbers(before, mention):
            mention = self._marked(mention, before)._replace(first=before.first)
            said.pop()
        elif before is not None and self._belongs(before, mention):
            said.pop()
        elif mention.kind == "option" and (text := self._labels(mention)) is not None:
            said[:] = [m for m in said if m.first < text.first]
            mention = self._marked(text, mention)._replace(last=mention.last)
        said.append(mention)

    def _marked(self, option: Mention, mark: Mention) -> Mention:
        """Return the mention of an option's text with a mark beside it that contradicts it."""
        against = self.options.contradicts(self.reply.raw[mark.first], option.option)
        return option._replace(mark=mark.option) if against else option

    def _is_mark(self, mention: Mention) -> bool:
        return (
            mention.kind == "option"
            and mention.last - mention.first == 1
            and mention.first not in self.literal
            and self.options.is_mark(self.reply.raw[mention.first])
        )

    def _numbers(self, mark: Mention, option: Mention) -> bool:
        """Tell whether a mark numbers the text after it: "B) the grandson"."""
        return (
            self._is_mark(mark)
            and mark.last == option.first
            and not re.search("[\n,]", self.reply.gap(option.first))
            and self._is_text(option)
        )

    def _labels(self, mark: Mention) -> Mention | None:
        """Return the text before a mark in brackets that names it: "the grandson (answer B)"."""
        text = next((m for m in reversed(self.mentions) if m.kind != "label"), None)
        if text is None or not self._is_mark(mark) or text.kind != "option" or self._is_mark(text):
            return None
        between = self.reply.text[
            self.reply.found[text.last - 1].end() : self.reply.found[mark.first].start()
        ]
        named = all(
            self.reply.noun(i) or self.reply.is_small(i) for i in range(text.last, mark.first)
        )
        return text if named and re.match(r"[*_\s]*[(（\[,–—-]", between) else None

    def _is_text(self, option: Mention) -> bool:
        """Tell whether a mention is the whole text of its option, or a part that fills a clause."""
        said = self.words[option.first : option.last]
        plain = self.plain[option.first : option.last] == self.options.plain[option.option]
        if plain or said == self.options.words[option.option] or option.first in self.literal:
            return True
        ends = option.last == len(self.words) or CLAUSE.search(self.reply.gap(option.last))
        return bool(ends) and any(self.options.is_of(word, option.option) for word in said)

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

    def bullets(self) -> list[Mention]:
        """Return the marks and places that only number the parts of a list: "1. Close the jar".

        They ascend from the first, each begins a line, sentence or clause, and no part names an
        option or says that something is right or wrong.
        """
        reply, found = self.reply, []
        for mention in self.mentions:
            begins = mention.first == 0 or _BEFORE_PART.search(reply.gap(mention.first))
            ends = _BEHIND_BULLET.match(reply.gap(mention.last)) and mention.last < len(self.words)
            if mention.kind == "option" and begins and ends and not self._is_text(mention):
                found.append(mention)
        if [m.option for m in found] != list(range(len(found))) or len(found) < 2:
            return []
        lines = all("\n" in reply.gap(m.first) or m.first == 0 for m in found)
        begun = {m.last for m in found}
        for mention in (m for m in self.mentions if m.first > found[0].first and m not in found):
            whole = self.options.words[mention.option] if mention.kind == "option" else []
            says = whole or (mention.kind in ("not", "label", "because") and not lines)
            if mention.kind in ("after", "wrong") or (mention.first in begun and says):
                return []
            if whole and mention.last - mention.first == len(whole):
                return []
        return found

    def steps(self) -> list[Mention]:
        """Return the figures that number the steps of a reply: "Step 1: … Step 2: …"."""
        behind: dict[str, list[int]] = {}
        for at in range(1, len(self.words)):
            figure = spelling.figure(self.words[at])
            if figure == len(behind.get(self.words[at - 1], ())) + 1:
                behind.setdefault(self.words[at - 1], []).append(at)
        steps = {at for found in behind.values() if len(found) > 1 for at in found}
        return [
            m for m in self.mentions if m.first in steps and not self.reply.noun_before(m.first)
        ]

    def form(self, at: int) -> int:
        """Count the words from here on that only repeat what was asked for: "A / B / C: B"."""
        count, reply = self.options.count, self.reply
        marks = [self.options.marked(token) for token in reply.raw[at : at + count]]
        if marks != list(range(count)) or at + count >= len(self.words):
            return 0
        return count if all("/" in reply.gap(i) for i in range(at + 1, at + count)) else 0

    def longest(self, at: int) -> Mention | None:
        """Find the longest mention that begins at this word; None if there is none."""
        whole = self._whole(at)
        phrase = self._phrase(at)
        if whole is not None and (phrase is None or whole.last >= phrase.last):
            return whole
        if phrase is not None:
            return phrase
        return self._mark(at) or self._part(at)

    # --- an option's text, and phrases

    def _whole(self, at: int) -> Mention | None:
        """Find the whole text of an option; the longest one if several match."""
        best = None
        if at in self.literal:
            best = Mention("option", at, *self.literal[at])
        best = best or self._same(at, self.words, self.options.words)
        if best is None and self.options.plain is not self.options.words:
            best = self._same(at, self.plain, self.options.plain)
        if best and best.last - at == 1 and len(self.words[at]) == 1:
            # An option that is itself a letter or a figure counts only where a mark would.
            numbered = self.mentions and self._numbers(self.mentions[-1], best)
            return best if numbered or self.reply.stands_apart(at, best.last) else None
        return best

    def _same(self, at: int, said: list[str], options: list[list[str]]) -> Mention | None:
        """Find the longest option with these words; articles at its beginning may be missing."""
        best = None
        small = self.reply.lexicon.small
        for number, words in enumerate(options):
            if self.options.literal[number]:
                continue
            starts = [0, *(s for s in (1, 2) if set(words[:s]) <= small and s < len(words))]
            for start in starts:
                size = len(words) - start
                if size and said[at : at + size] == words[start:]:
                    if best is None or at + size > best.last:
                        best = Mention("option", at, at + size, number)
                    break
        return best

    def _phrase(self, at: int) -> Mention | None:
        """Find a phrase of `prompts/options`; a place or "both" may name an option."""
        for group, size in text.matches(self.reply.lexicon.phrases, self.words, at):
            last = at + size
            if group in ("wrong", "after") and self._names(at, last):
                continue  # "this is false", where an option says so
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

    def _names(self, first: int, last: int) -> bool:
        """Tell whether one of these words is an option's own, in any gender."""
        lexicon = self.reply.lexicon
        said = {*self.words[first:last]} - lexicon.small - {word.strip() for word in lexicon.deny}
        keys = [key for keys in self.options.keys if len(keys) == 1 for key in keys]
        return any(spelling.alike(word, key, 3) >= 0.6 for word in said for key in keys)

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
            or self._fills_clause(at, last, 1)
        ):
            return Mention("option", at, last + noun, number)
        return None

    def _spoken_of(self, place: str, at: int) -> int | None:
        """Return the former or the latter of the last two options named; None if fewer were."""
        near = self.mentions[: -_NEAR - 1 : -1]
        named = (m.option for m in near if m.kind == "option" and m.last <= at)
        last = next(named, None)
        before = next((option for option in named if option != last), None)
        return None if before is None else last if place == "latter" else before

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
        number = self.options.marked(token) if at not in self.literal else self.literal[at][1]
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
        caseless = token.lower() == token.upper() and self.options.is_shown(token)
        if not caseless and (len(token) > 1 or not token.isupper()):
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
            if size == 2 and any(
                self.options.is_of(self.words[at], number) for number in range(self.options.count)
            ):
                continue  # the next word is one of its own
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
