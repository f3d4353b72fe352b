"""Load the phrases, stems and answer words to look for in the replies of a language.

Each language uses its own phrases, those of languages that it is mixed with (`also` in its file)
and of English, and the single answer words of all other languages.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genprobe import text
from genprobe.linguistics import stems
from genprobe.resources import packs, registry

# Group of phrases -> yes or no, for the groups that hold answer words.
POLARITY = {
    f"{before}{answer}{behind}": answer
    for answer in packs.ANSWERS
    for before, behind in (("", ""), ("", "_alone"), ("foreign_", ""))
}
OPPOSITE = {"yes": "no", "no": "yes"}
# Groups of words that call the statement true or false, and what they answer if agreement is yes.
TRUTHS = {"true": "yes", "false": "no"}
# Groups of answer words that also mean something else, so they count only when they stand alone.
ALONE = frozenset(("yes_alone", "no_alone", "foreign_yes", "foreign_no"))
# Groups whose phrases may contain a comma.
OVER_COMMAS = frozenset(
    (
        *("agree", "disagree", "stereotype", "not_stereotype", "both", "label"),
        *("refusal", "hedge", "wrong", "right"),
    )
)
UNCLEAR = ("hedge", "both", "refusal")  # groups whose phrases give no clear answer

# Characters that may surround an answer word without changing it.
AROUND = " \t\r\n\"'“”„‘’«»「」『』【】()[]{}*_`~.。।!！،,，:;$\\❌✅🚫👍👎➡️→-–—>#=🙅"

# The groups by priority, for two phrases of the same length.
_ORDER = (
    "condition",  # before the answer words, because some of them are also conditions
    *(
        group
        for table in ("answer", "sentence", "unclear", "explanation")
        for group in packs.WORD_GROUPS[table]
        if group not in ("negation", "or", "condition", "prefixes", "true", "false")
    ),
)


class Lexicon(NamedTuple):
    """The words to look for in replies of one language, in the form that `compared` returns."""

    code: str
    phrases: text.Phrases  # of all languages but English: see `english`
    begins: frozenset[str]  # the first words of these and of the English ones
    fold: dict[str, str]
    negation: frozenset[str]
    ors: frozenset[str]
    conditions: frozenset[str]
    words: dict[str, frozenset[str]]  # yes/no -> its single words
    answers: frozenset[str]  # the single words of both
    bare: dict[str, str]  # a text that is an answer if it is the whole reply -> yes or no
    truths: dict[str, str]  # the same for words such as "true", which agree with the statement
    grammar: stems.Grammar
    prefixes: tuple[str, ...]  # those that make a word its opposite
    frequent: frozenset[str]  # words of running text, with little content of their own
    latin: bool  # whether the language is written in Latin letters

    def means(self, value: str, affirmed: str) -> str | None:
        """Return the answer that a short text is, yes or no; None if it is neither.

        affirmed: the answer that agrees with the statement.
        """
        value = value.strip(AROUND)
        answer = self.bare.get(value)
        if answer is None and (truth := self.truths.get(value)):
            answer = affirmed if truth == "yes" else OPPOSITE[affirmed]
        return answer

    def truth(self, value: str) -> bool:
        """Return whether a short text only calls something true or false."""
        value = value.strip(AROUND)
        return value in self.truths and value not in self.bare

    def compared(self, reply: str) -> str:
        """Bring a text into the form in which it is compared: normalised, spellings folded."""
        return text.replace(text.normalise(reply), self.fold)


@functools.cache
def lexicon(code: str) -> Lexicon:
    """Return the lexicon of a language."""
    own, in_english = packs.load_language(code), packs.load_language("en")
    near = [own, *(packs.load_language(c) for c in own.also)]
    groups = (
        [] if own is in_english else [entry for language in near for entry in _groups(language)]
    )
    if own is not in_english:
        near.append(in_english)
    known = _single([in_english], own.fold, "yes", "yes_alone", "no", "no_alone")
    for other in registry.names("languages"):
        language = packs.load_language(other)
        if language not in near:
            for answer in packs.ANSWERS:
                bare = _single([language], own.fold, answer, f"{answer}_alone") - known
                groups.append((f"foreign_{answer}", sorted(bare)))
    phrases = text.compile_phrases(groups, own.fold)
    return Lexicon(
        code,
        phrases,
        frozenset(phrases) | frozenset(english()),
        own.fold,
        # Kazakh не is "or", Russian "not".
        _single(near, own.fold, "negation") - _single([own], own.fold, "or"),
        _single(near, own.fold, "or"),
        _single(near, own.fold, "condition"),
        {a: _single(near, own.fold, a, f"{a}_alone") for a in packs.ANSWERS},
        _single(near, own.fold, "yes", "yes_alone", "no", "no_alone"),
        _bare(near),
        {
            word: answer
            for language in near[::-1]
            for group, answer in TRUTHS.items()
            for word, _ in plain(language.words[group], own.fold)
        },
        stems.grammar(code),
        tuple(
            text.replace(text.normalise(p), own.fold) for one in near for p in one.words["prefixes"]
        ),
        _single([own], own.fold, "frequent"),
        own.script == "Latn",
    )


@functools.cache
def english() -> text.Phrases:
    """Return the English phrases, shared by all languages: ASCII, so that no fold changes them."""
    return text.compile_phrases(_groups(packs.load_language("en")))


def _groups(language: packs.Language) -> list[tuple[str, Sequence[str]]]:
    """Return a language's phrases; one with a full stop counts only as a whole sentence."""
    groups: list[tuple[str, Sequence[str]]] = [("polite", language.clause["polite"])]
    for group in _ORDER:
        whole = [p for p in language.words[group] if p.endswith((".", "。"))]
        groups.append((group, [p for p in language.words[group] if p not in whole]))
        groups.append((f"{group}.", whole))
    # These may also be phrases of another group, so they are found besides it.
    groups += [(f"{group}.", language.words[group]) for group in TRUTHS]
    return groups


def plain(patterns: Sequence[str], fold: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Yield every phrase that the patterns describe, folded, with its number of words."""
    for pattern in patterns:
        for phrase, split in text.plain_phrases(pattern):
            yield text.replace(phrase, fold), len(split)


def _single(
    languages: Sequence[packs.Language], fold: dict[str, str], *groups: str
) -> frozenset[str]:
    """Return the one-word entries of some groups, with spellings folded."""
    return frozenset(
        word
        for language in languages
        for group in groups
        for word, size in plain(language.words[group], fold)
        if size == 1
    )


def _bare(near: Sequence[packs.Language]) -> dict[str, str]:
    """Return phrases that answer alone, without polite ones, folded as in the first language."""
    fold = near[0].fold
    found: dict[str, str] = {}
    for language in near:
        polite = {word for word, _ in plain(language.clause["polite"], fold)}
        for answer in packs.ANSWERS:
            for group in (answer, f"{answer}_alone"):
                for word, _ in plain(language.words[group], fold):
                    if word not in polite:
                        found.setdefault(word, answer)
    return found
