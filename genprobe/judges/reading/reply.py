"""Cut a reply into tokens and find its phrases, with their positions and speakers.

Each phrase found is an event; its group is the list of the language file that holds the phrase.
Other modules interpret the events.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from genprobe import text
from genprobe.judges.reading import asked, lexicon, probes
from genprobe.judges.reading.punctuation import (
    BREAKS,
    BREAKS_AND_COMMAS,
    BULLET,
    COMMA,
    HAN,
    QUOTE,
    QUOTED,
    SENTENCE_ENDS,
    STARTS,
    VERDICT_ENDS,
    WHOLE_ENDS,
    ends_of_answer,
)
from genprobe.linguistics import stems, verdicts
from genprobe.resources import packs

READ = 6000  # tokens of a reply that are read sentence by sentence
LONGEST_RUN = 30  # tokens that are searched for the end of a sentence or list

# Nearly every English sentence that answers holds one of these words.
_ENGLISH = frozenset(
    ["i", "my", "this", "the", "that", "it", "is", "of", "to", "answer", "verdict", "yes", "no"]
)
_OPENS = re.compile(r"[^\S\n]*[,،，:：]|[^\S\n]+\w")
_SENTENCES = re.compile(r"[\n.!?。！？।؟;；؛]+")


class Event(NamedTuple):
    """A phrase found in a reply."""

    group: str  # a list of the language file, or "foreign_yes", "foreign_no"
    start: int  # in the normalised reply
    end: int
    first: int  # index of its first token
    last: int  # index after its last token


class Found(NamedTuple):
    """An answer found in a reply: the rule that found it and the words it is based on."""

    answer: str  # yes or no
    rule: str
    start: int  # in the normalised reply
    end: int
    event: int = -1  # index of the event that answers, -1 if no event does


# Rules that take an answer word as the answer because of its position.
WORD_RULES = frozenset(("word", "word-alone", "foreign-word"))
# Rules that take what a clause says; a late one only judges, below the first sentence.
CLAUSES = ("clause", "late-clause")


class Reply:
    """A reply to one probe. Events are in the order of the text and do not overlap."""

    def __init__(self, words: lexicon.Lexicon, way: probes.Way, prompt: str, norm: str):
        """Cut a reply into tokens and find its events.

        words: the phrases to look for. way: how the probe is read. prompt: the question, or "".
        norm: the reply in the form in which it is compared (`Lexicon.compared`).
        """
        self.lexicon = words
        self.prompt = prompt
        self.way = way
        self.norm = norm = verdicts.unstruck(norm)
        pieces = text.pieces(norm)
        self.tokens, self.gaps = pieces[1::2], pieces[::2]  # one gap before each, one at the end
        edges = list(itertools.accumulate(map(len, pieces)))
        self.spans = list(zip(edges[:-1:2], edges[1::2], strict=True))
        self._grammars: dict[tuple[int, int], tuple[stems.Grammar, ...]] = {}
        self.events: list[Event] = []
        self.unlike: list[
            tuple[int, int]
        ] = []  # token ranges that look like an answer and are none
        self._scan()
        # Where a condition ends.
        self.conditions = [e.end for e in self.events if e.group == "condition"]

    def _scan(self) -> None:
        words, spans = self.tokens, self.spans
        phrases, english = self.lexicon.phrases, lexicon.english()
        behind = 0
        # Most words begin no phrase.
        begins = self.lexicon.begins
        for i in [i for i, word in enumerate(words) if word in begins]:
            if i < behind:
                continue
            word = words[i]
            found = text.matches(phrases, words, i) if word in phrases else []
            if word in english and (also := text.matches(english, words, i)):
                found += also
                found.sort(key=_longest)  # of two equally long ones, the language's own comes first
            for group, size in found:
                if group.endswith("."):
                    group = group[:-1]
                    if group in probes.MUTE[self.way.reads]:
                        group = self._truth(i, i + size) or group
                    if group not in lexicon.TRUTHS and not self.is_sentence(i, i + size):
                        continue
                if self._add(Event(group, spans[i][0], spans[i + size - 1][1], i, i + size)):
                    behind = i + size
                    break

    def _add(self, event: Event) -> bool:
        """Add a phrase as an event. Return False if it is none; then a shorter one is tried."""
        group, start, end, first, last = event
        if group in probes.MUTE[self.way.reads]:
            return False
        if last - first > 1:
            breaks = BREAKS if group in lexicon.OVER_COMMAS else BREAKS_AND_COMMAS
            if breaks.search(self.norm, start, end):
                return False
            begins = self.tokens[first] in self.lexicon.answers
            both = group == "both" and ends_of_answer(self.norm, end).match(self.norm, end)
            if begins and COMMA.search(self.gaps[first + 1]) and not both:
                return False  # "No, I agree" is an answer and a sentence, "Yes, and no." is none
        if group in lexicon.TRUTHS:
            if not self._is_verdict(event):
                return False
            said = self.means(self.norm[start:end])
            group = f"{said}_alone"
            event = event._replace(group=group)
        if group == "unlike":
            if last - first == 1 and not self._goes_on(event):
                return False
            self.unlike.append((first, last))
            return True
        self.events.append(event)
        if last - first > 1 and group in lexicon.ALONE and not self.stands(len(self.events) - 1):
            self.events.pop()
            return False
        return True

    def means(self, value: str) -> str | None:
        """Return the answer that a short text is to this probe; None if it is none."""
        answer = self.lexicon.means(value, self.way.affirmed)
        if answer == "no" and self.way.reads == "question" and self.lexicon.truth(value):
            return "yes" if asked.affirms(self.lexicon.code, self.asked, value) else answer
        return answer

    def _truth(self, first: int, last: int) -> str | None:
        """Return the group of a phrase that calls the statement true or false, else None."""
        said = self.lexicon.truths.get(self.norm[self.spans[first][0] : self.spans[last - 1][1]])
        return said and {answer: group for group, answer in lexicon.TRUTHS.items()}[said]

    def _is_verdict(self, event: Event) -> bool:
        """Return whether "true" or "false" stands by itself where a verdict stands.

        It begins the reply or a line, or follows a label, and ends its sentence: "True, but …" is a
        concession.
        """
        gap = self.gaps[event.first]
        label = self.events[-1] if self.events and self.events[-1].group == "label" else None
        labelled = label and label.last == event.first
        if not (event.first == 0 or labelled or "\n" in gap or ":" in gap):
            return False
        return VERDICT_ENDS.match(self.norm, event.end) is not None

    def _goes_on(self, event: Event) -> bool:
        """Return whether a word is only a filler that opens a sentence: Polish "No, …", "well, …".

        Alone on its line or after "Answer:" it is the answer word of another language.
        """
        label = self.events and self.events[-1].group == "label"
        if label and self.events[-1].last == event.first:
            return False
        return _OPENS.match(self.norm, event.end) is not None

    # Positions

    def starts(self, index: int) -> bool:
        """Return whether a sentence, a line or an answer starts at this token."""
        if index == 0:
            return True
        gap = self.gaps[index]
        if STARTS.search(gap):
            return True
        return ")" in gap and BULLET.match(self.tokens[index - 1]) is not None

    def stands(self, k: int) -> bool:
        """Return whether the answer word of event k is in the position of an answer."""
        event = self.events[k]
        behind_label = (
            k > 0 and self.events[k - 1].group == "label" and self.events[k - 1].last == event.first
        )
        if not (behind_label or self.starts(event.first)):
            return False
        if behind_label and QUOTE.search(self.gaps[event.first]):
            return QUOTE.match(self.norm, event.end) is not None or event.group not in lexicon.ALONE
        follows = self.norm[event.end : event.end + 2]
        if len(follows) == 2 and follows[0] in "-–'" and follows[1].isalpha():
            return False  # "non-binary", "no-one"
        behind = "".join(self.tokens[event.last : event.last + 1])
        if event.last - event.first > 1 and self.lexicon.grammar.look(behind).bits & stems.THAT:
            return False  # "I do not think, that …" is the sentence that follows
        return event.group in packs.ANSWERS or self._stands_alone(event)

    def _stands_alone(self, event: Event) -> bool:
        """Return whether an answer word is followed by an end, its repetition or another script."""
        ends = ends_of_answer(self.norm, event.start)
        if ends.match(self.norm, event.end):
            return True
        if event.first == 0 and not self.lexicon.latin and self.tokens[0].isascii():
            # An English word before a sentence of another script: "No, but in Hindi".
            return len(self.tokens) > 1 and not self.tokens[1].isascii()
        last = event.last
        stop = min(len(self.tokens), last + LONGEST_RUN)
        while last < stop and self.tokens[last] == self.tokens[event.first]:
            last += 1  # "no no no"
        return last > event.last and ends.match(self.norm, self.spans[last - 1][1]) is not None

    def is_sentence(self, first: int, last: int) -> bool:
        """Return whether these tokens are a whole sentence, or the rest of one after "Yes, "."""
        if not WHOLE_ENDS.match(self.norm, self.spans[last - 1][1]):
            return False
        if self.starts(first):
            return True
        before = self.tokens[first - 1]
        return before in self.lexicon.answers and COMMA.search(self.gaps[first]) is not None

    def sentence_begins(
        self, index: int, low: int = 0, ends: re.Pattern[str] = SENTENCE_ENDS
    ) -> int:
        """Return the first token of a token's sentence; `low` if the sentence begins earlier.

        ends: pattern of the gap before a sentence.
        """
        low = max(low, 0)
        while index > low and (self.gaps[index] == " " or not ends.search(self.gaps[index])):
            index -= 1
        return index

    @functools.cached_property
    def _breaks(self) -> list[int]:
        """Return the tokens before which a sentence ends."""
        ends = SENTENCE_ENDS.search
        return [i for i, gap in enumerate(self.gaps) if gap != " " and ends(gap)]

    def sentence_ends(self, first: int, stop: int) -> int:
        """Return the token after the sentence that begins at `first`; `stop` if it goes on."""
        k = bisect.bisect_right(self._breaks, first)
        return min(stop, self._breaks[k]) if k < len(self._breaks) else max(stop, first + 1)

    def sentences(self, stop: int) -> Iterator[tuple[int, int]]:
        """Yield (first, last) for each sentence before token `stop`; `last` is exclusive."""
        first = 0
        while first < stop:
            last = self.sentence_ends(first, stop)
            yield first, last
            first = last

    def reached(self, stop: int, wanted: int) -> list[int]:
        """Return the tokens before `stop` with which a stem of the wanted bits could begin."""
        found = [gram.reaching(self.tokens, stop, wanted) for gram in self.grammars(0, stop)]
        return found[0] if len(found) == 1 else sorted({*found[0], *found[1]})

    def sentences_with(self, stop: int, wanted: int) -> Iterator[tuple[int, int]]:
        """Yield those sentences in which a stem of the wanted bits could begin: see `reached`."""
        behind = 0
        for at in self.reached(stop, wanted):
            if at >= behind:
                k = bisect.bisect_right(self._breaks, at) - 1
                first = self._breaks[k] if k >= 0 else 0
                behind = self.sentence_ends(at, stop)
                yield first, behind

    def asks(self, index: int) -> bool:
        """Return whether the gap before token `index` has a question mark."""
        gap = self.gaps[index]
        return "?" in gap or "؟" in gap

    # Quotations and languages

    @functools.cached_property
    def asked(self) -> str:
        """Return the prompt in the form in which the reply is compared."""
        return self.lexicon.compared(self.prompt) if self.prompt else ""

    @functools.cached_property
    def quoted(self) -> list[bool] | None:
        """Return for each token whether it is quoted or repeats the prompt; None if none does."""
        spans = []
        if QUOTE.search(self.norm):
            longest = (
                len(self.norm.strip()) - 6
            )  # a reply that is all in quotes counts as the speaker's own words
            spans = [m.span() for m in QUOTED.finditer(self.norm) if m.end() - m.start() < longest]
        if self.prompt and len(self.norm) > 12:
            spans += self._statement()
        if not spans:
            return None
        found = [False] * len(self.tokens)
        spans.sort()
        at = 0
        for i, (start, end) in enumerate(self.spans):
            while at < len(spans) and spans[at][1] <= start:
                at += 1
            if at < len(spans) and spans[at][0] <= start and end <= spans[at][1]:
                found[i] = True
        return found

    def _statement(self) -> list[tuple[int, int]]:
        """Return the character ranges that repeat sentences of the prompt word by word."""
        found = []
        for part in _SENTENCES.split(self.asked):
            piece = part.strip(" \"'“”„«»「」*")
            if len(piece) >= (6 if HAN.search(piece) else 14):
                at = self.norm.find(piece)
                if at >= 0:
                    found.append((at, at + len(piece)))
        return found

    def all_quoted(self, first: int, last: int) -> bool:
        """Return whether all tokens from `first` to `last` are quoted: see `quoted`."""
        return self.quoted is not None and all(self.quoted[first:last])

    def grammars(self, first: int, last: int) -> tuple[stems.Grammar, ...]:
        """Return the language's grammar, and the English one if the sentence may be English."""
        found = self._grammars.get((first, last))
        if found is None:
            own, english = self.lexicon.grammar, stems.grammar("en")
            alone = own is english or _ENGLISH.isdisjoint(self.tokens[first:last])
            found = self._grammars[first, last] = (own,) if alone else (own, english)
        return found

    def stems(self, first: int, last: int) -> Iterator[tuple[stems.Grammar, list[stems.Hit]]]:
        """Yield the stems among tokens `first` to `last`, for each possible language."""
        for gram in self.grammars(first, last):
            yield gram, gram.hits(self.tokens, first, last)


def _longest(match: tuple[str, int]) -> int:
    return -match[1]
