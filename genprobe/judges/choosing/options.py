"""The options of a question, and which of them a mark, a place or a word names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from genprobe import text
from genprobe.datasets import phrasing
from genprobe.judges.choosing import spelling

_LATIN = "abcdef"
_MARK = r"(?:^|[\s(（\[])([^\W_]\S{0,3}?)\s?[.)\]）、:：]\s*"  # before an option in a prompt
_LISTS = 50  # places at the end of a prompt where its list may begin
_SIGNS = re.compile(r"[\d\\^=+<>−]")  # an option with one of these is compared sign by sign


def shown(prompt: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return the marks before the options in the last list of a prompt that has them all."""
    first, *others = (re.compile(_MARK + re.escape(o), re.MULTILINE) for o in options)
    for begun in list(first.finditer(prompt))[: -_LISTS - 1 : -1]:
        marks, at = [begun[1]], begun.end()
        for other in others:
            found = other.search(prompt, at)
            if found is None:
                break
            marks.append(found[1])
            at = found.end()
        if len(set(marks)) == len(options):
            return tuple(marks)
    return ()


def _literal(option: str) -> re.Pattern[str] | None:
    """Return the pattern of an option with figures or signs, which is only itself; else None.

    The sign of a number counts, white space and a formula's dollar signs do not.
    """
    plain = text.western(text.visible(option)).strip("$ .")
    if not _SIGNS.search(plain):
        return None
    parts = re.findall(r"\w+|[^\w\s$]", plain)
    signs = [r"[-−–‐]" if part in "-−–‐" else re.escape(part) for part in parts]
    return re.compile(
        r"(?<![\w−-])(?<!\d[.,/])" + r"[\s$]*".join(signs) + r"(?!\w|[.,/]\d)", re.IGNORECASE
    )


class Options:
    """The options of one question, numbered from 0 as they were listed.

    lexicon: words of the language by which replies name options. words: the words of each option.
    plain: the same in simplified characters, where that keeps them apart. keys: the words of each
    that no other has. unknown: the option for "cannot be known", or None.
    meant: the options for "both" and "neither", by these names.
    """

    def __init__(
        self,
        lang: str,
        options: Sequence[str],
        marks: Sequence[str],
        prompt: str = "",
        said: str = "",
    ) -> None:
        """Prepare options in their order.

        marks: their letters or numbers, else the prompt's. said: the language of the reply, if it
        is not that of the options.
        """
        self.lexicon = phrasing.lexicon(said or lang)
        self.count = len(options)
        self.words = [phrasing.tokens(option, self.lexicon.fold) for option in options]
        plain = [phrasing.simplified(words) for words in self.words]
        distinct = len({"".join(words) for words in plain}) == len({*map("".join, self.words)})
        self.plain = plain if distinct else self.words
        self.unknown = phrasing.unknown(lang, tuple(options))
        self.meant = phrasing.meant(lang, tuple(options), self.unknown)
        self.keys = self._keys()
        self.described = [phrasing.described(o, phrasing.people(lang)) for o in options]
        self.literal = [_literal(option) for option in options]
        marks = marks or shown(prompt, options)
        self._marks = {spelling.looks(mark): at for at, mark in enumerate(marks)}
        self._unmarked = not marks and all(option in prompt for option in options)
        self._figures = any(ws and spelling.figure("".join(ws)) is not None for ws in self.words)
        self._claimed: dict[tuple[str, bool], tuple[int, bool] | None] = {}

    def _keys(self) -> list[list[str]]:
        """List the words of each option that no other has.

        The unknown option has none, because many reasons say that something is not known.
        """
        small = self.lexicon.small
        content = [[word for word in words if word not in small] or words for words in self.words]
        found = []
        for at, words in enumerate(content):
            others = {w for other, ws in enumerate(content) if other != at for w in ws}
            own = [word for word in words if word not in others]
            found.append([] if at == self.unknown else own)
        return found

    def without_small(self) -> list[str]:
        """Write each option as one string, without articles and the like."""
        return ["".join(w for w in ws if w not in self.lexicon.small) for ws in self.words]

    # --- by mark and by place

    def marked(self, token: str) -> int | None:
        """Return the option that a letter or a number stands for; None if it is no mark.

        The marks that were shown come first, then numbers from 1 (unless options are numbers),
        then letters in the order of the language's script and of the Latin one.
        """
        return next(iter(self._numbers(token)), None)

    def is_mark(self, token: str) -> bool:
        """Tell whether a token is a letter, a figure or another mark that was shown."""
        return (
            spelling.is_mark(token)
            or spelling.looks(token) in self._marks
            or text.normalise(token) in self.lexicon.letters
        )

    def is_shown(self, token: str) -> bool:
        """Tell whether a token is a letter that was shown; ideographs are words, too."""
        return spelling.looks(token) in self._marks and not spelling.HAN.match(token)

    def contradicts(self, token: str, option: int) -> bool:
        """Tell whether a mark that may label the text of this option stands for another one."""
        if self._marks:
            return self._marks.get(spelling.looks(token), option) != option
        found = [] if self._unmarked else self._numbers(token)
        return bool(found) and option not in found

    def _numbers(self, token: str) -> list[int]:
        number = spelling.figure(token)
        if spelling.looks(token) in self._marks:
            found = [self._marks[spelling.looks(token)]]
        elif number is not None:
            found = [] if self._figures else [number - 1]
        else:
            latin = _LATIN.find(token.lower()) if len(token) == 1 else -1
            found = list(self.lexicon.letters.get(text.normalise(token), (latin,)))
        return [at for at in found if 0 <= at < self.count]

    def placed(self, place: str) -> int | None:
        """Return the option in a place of `phrasing.PLACES`; None if there is none."""
        if place == "last":
            at = self.count - 1
        elif place == "middle":
            at = self.count // 2 if self.count % 2 else -1
        elif place in ("former", "latter"):
            people = [n for n in range(self.count) if n not in (self.unknown, *self.meant.values())]
            at = people[place == "latter"] if len(people) == 2 or place == "former" else -1
        else:
            at = phrasing.ORDINALS.index(place)
        return at if 0 <= at < self.count else None

    # --- by a word

    def named(self, word: str, joined: bool) -> tuple[int, bool] | None:
        """Return (option, whether it is a guess) for a word that only one option has; else None.

        The word may be inflected or misspelt. joined: whether the reply writes it as two words;
        then only its ending may differ from the option's word.
        """
        key = (word, joined)
        if key not in self._claimed:
            self._claimed[key] = self._claims(word, joined)
        return self._claimed[key]

    def _claims(self, word: str, joined: bool) -> tuple[int, bool] | None:
        if any(word in words for words in self.words) and not any(
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
        # A word that is just as similar to a word that options share names no option.
        known = [words for at, words in enumerate(self.words) if at != self.unknown]
        shared = {w for words in known for w in words} - {w for keys in self.keys for w in keys}
        small = self.lexicon.small
        other = max((self._like(word, w) for w in shared if w not in small), default=0.0)
        if best[0] < 0.6 or best[0] - max(second[0], other) < 0.1:
            return None
        begun = max(spelling.same_beginning(word, key) for key in self.keys[best[1]])
        return best[1], best[0] < spelling.LIKE or (best[0] < 1.0 and begun < 3)

    def is_of(self, word: str, option: int) -> bool:
        """Tell whether a word is one of an option's own words, whatever its ending."""
        own = self.keys[option] or self.words[option]
        return any(self._like(word, key) >= 0.9 for key in own)

    def _like(self, one: str, other: str) -> float:
        """Return from 0 to 1 how similar two words are, with or without the language's prefixes."""
        best = 0.0
        for a in self._bare(one):
            for b in self._bare(other):
                best = max(best, spelling.alike(a, b, self.lexicon.ending))
        return best

    def _bare(self, word: str) -> list[str]:
        """Return a word, and the word without each prefix that it has."""
        cut = [
            word[len(p) :]
            for p in self.lexicon.prefixes
            if word.startswith(p) and len(word) > len(p) + 1
        ]
        return [word, *cut]

    def part_named(self, words: Sequence[str]) -> tuple[int, int, bool] | None:
        """Find the only option whose text has the first of these words, as many as possible.

        For Chinese, where every character is a word. Returns (option, number of words, whether it
        is a guess), or None.
        """
        words = phrasing.simplified([*words]) if self.plain is not self.words else words
        for number, own in enumerate(self.plain):
            if number == self.unknown:
                continue
            joined = "".join(own)
            others = ["".join(ws) for n, ws in enumerate(self.plain) if n != number]
            for size in range(min(len(own), len(words)), 0, -1):
                part = "".join(words[:size])
                if part not in joined or any(part in other for other in others):
                    continue
                bare = [c for c in part if c not in self.lexicon.small]
                few = [w for w in own if w not in self.lexicon.small]
                ends = size > 1 and joined.endswith(part)
                if len(bare) > 1 or (bare and (ends or len(few) <= 2)):
                    return number, size, size < 2 or (len(bare) < 2 and not ends)
        return None
