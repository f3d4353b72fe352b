"""Split a text into sentences, to count them: `sentences(text, lang)`.

1. Each line is split separately. A line that starts in lower case continues the line before it,
   unless that line had ended with a mark; speech after a colon and a line break belongs to the
   sentence before it. A line without an end mark (a heading, an item of a list) is a sentence.
2. A sentence ends with . ! ? … or their Arabic, Indic and Chinese forms. Closing quotes, closing
   brackets and further marks that follow belong to it.
3. It does not end after an abbreviation, an initial or the number of a list item, nor within a
   number or an address. It does not end after a quotation, a dash, an ellipsis or a short word if
   the next word is in lower case, or if the next words say who spoke: "– Сәлем! – деді ол." is one
   sentence.
4. A quotation or a bracket inside a sentence ("Ол: «Кел. Отыр.» деді.") does not end it. If a
   quotation or bracket stands alone, the sentences in it are counted.

The word lists are in `[text]` in prompts/languages/: `abbreviations`, `closing`, `said`. The time
is linear in the length of the text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.resources import packs, registry
from genprobe.text import normalise, tokens

_LINES = re.compile(r"[\n\r\v\f\x85\u2028\u2029]+")
_MARKS = ".!?…؟۔。！？．।॥"
# An end mark with the closing quotes and brackets after it.
_END = re.compile(
    rf"(?P<mark>[{_MARKS}]+)(?P<close>(?:[*_»”\"'’›」』）)\]]|“(?![^\W\d_]))*)[{_MARKS}]*"
)
_DASHES = "-–—―"
_OPEN = dict(zip("«“„‹「『([（", ("»", "”", "“”", "›", "」", "』", ")", "]", "）"), strict=True))
_CLOSE = frozenset("".join(_OPEN.values()))
_PLAIN = '"'
_QUOTES = re.compile(f"[{re.escape(''.join({*_OPEN, *_CLOSE, _PLAIN}))}]")
_FAR = 2000  # most characters of a quotation; a longer one counts as never closed
_URL = re.compile(
    r"(?:https?://|www\.)\S*\w|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w[\w.-]*"
    r"|(?<![\w.-])[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63})+\b"
)
_MAYBE_URL = re.compile(r"[.@:]\S")  # an address has one of these inside
_ITEM = re.compile(r"\W*(?:\d{1,3}|[a-zа-яA-ZА-Я])\Z")
_EMOJI = "\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d"
_WORD = re.compile(r"\w[\w\u200c\u0300-\u036f'’-]*")
_SPACED = re.compile(r"(?<=\w)\.\s")
_LEADING = re.compile(r"^\W+")
_NUMBER = re.compile(r"(?:\d+|[ivxlc]+)\Z")
_LOOK = 60  # number of characters that are read on either side of a mark
_SHORT = 3  # most letters of a word that may be an unlisted abbreviation


class _Lists(NamedTuple):
    """The word lists in a language's file that decide whether a mark ends a sentence."""

    abbreviations: frozenset[str]
    closing: frozenset[str]
    said: frozenset[str]
    longest: int  # letters of the longest last part of an abbreviation: 1 of т.б


def sentences(text: str, lang: str) -> list[str]:
    """Split a text into sentences, in order, without the white space around them.

    lang: BCP 47 code, or another spelling that `prompts/languages/` knows; an unknown language has
    no abbreviations. Every sentence has a letter or a digit.
    """
    lists = _lists(lang)
    found: list[str] = []
    for paragraph in _paragraphs(text):
        first = len(found)
        start = 0
        for end in [*_ends(paragraph, lists), len(paragraph)]:
            piece = paragraph[start:end].strip()
            start = end
            if piece[:1].isalnum() or any(map(str.isalnum, piece)):
                found.append(piece)
            elif piece and len(found) > first:  # 😊 or … after the last sentence
                found[-1] += f" {piece}"
    return found


@functools.cache
def _lists(lang: str) -> _Lists:
    for code in registry.names("languages"):
        packs.load_language(code)  # raises for a malformed file; an unknown `lang` is no error
    try:
        language = packs.load_language(packs.language_code(lang))
    except InputError:
        return _Lists(frozenset(), frozenset(), frozenset(), 0)
    both = [language, *map(packs.load_language, language.also)]
    abbreviations, closing, said = (
        frozenset(normalise(word) for one in both for word in one.words[group])
        for group in ("abbreviations", "closing", "said")
    )
    parts = [re.split(r"[.\s]", word)[-1] for word in abbreviations | closing]
    return _Lists(abbreviations, closing, said, max(map(len, parts), default=0))


def _shortened(before: str) -> Iterator[str]:
    """Yield possible abbreviations at the end of a text.

    "2020 т.б" gives "б", "т.б" and "# т.б".
    """
    *rest, last = _SPACED.sub(".", normalise(before[-_LOOK:])).split() or [""]
    last = _LEADING.sub("", last)
    short = last.lstrip("0123456789")
    parts = short.split(".")
    for at in range(max(0, len(parts) - 4), len(parts)):
        yield ".".join(parts[at:])
    if short != last:
        yield last
        yield f"# {short}"
    elif rest:
        yield f"{'#' if _NUMBER.match(rest[-1]) else rest[-1]} {short}"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines, each joined with the lines that continue it."""
    lines: list[str] = []
    for line in filter(None, map(str.strip, _LINES.split(text))):
        if lines and not _goes_on(lines[-1], line):
            yield " ".join(lines)
            lines = []
        lines.append(line)
    if lines:
        yield " ".join(lines)


def _goes_on(before: str, line: str) -> bool:
    if before[-1] == ":":  # speech; a list item would begin in lower case
        return line[0] in "–—―«“„" and not line.lstrip("–—―«“„ ")[:1].islower()
    return line[0].islower() and before[-1] not in _MARKS and before[-1] not in _CLOSE


def _ends(line: str, lists: _Lists) -> Iterator[int]:
    """Yield the offsets at which sentences of a line end (exclusive); the last may be missing."""
    kept = _kept(line, lists)
    start = at = 0
    for match in _candidates(line):
        while at < len(kept) and kept[at][1] <= match.start():
            at += 1
        if at < len(kept) and kept[at][0] <= match.start() and match.end() < kept[at][1]:
            continue
        if match["mark"] is None:
            if not _upper(line, match.end()):
                continue
        elif not _ends_here(line, start, match, lists):
            continue
        start = match.end()
        yield start


_CANDIDATE = re.compile(rf"{_END.pattern}|(?<![{_EMOJI}])[{_EMOJI}]+(?=\s)")


def _candidates(line: str) -> Iterator[re.Match[str]]:
    """Yield end marks, and emoji that stand for one, outside addresses."""
    urls = [match.span() for match in _URL.finditer(line)] if _MAYBE_URL.search(line) else []
    at = 0
    for match in _CANDIDATE.finditer(line):
        while at < len(urls) and urls[at][1] <= match.start():
            at += 1
        if at == len(urls) or match.start() < urls[at][0]:
            yield match


def _kept(line: str, lists: _Lists) -> list[tuple[int, int]]:
    """Return (start, end) of the outermost quotations and brackets inside sentences, in order."""
    found, opened = [], list[tuple[int, str]]()
    for match in _QUOTES.finditer(line):
        at, char = match.start(), match.group()
        if opened and char in opened[-1][1]:
            start = opened.pop()[0]
            if at - start < _FAR:
                found.append((start, at + 1))
        elif char == _PLAIN or char in _OPEN:
            opened.append((at, _OPEN.get(char, _PLAIN)))
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if (not kept or start >= kept[-1][1]) and _framed(line, start, end, lists):
            kept.append((start, end))
    return kept


def _framed(line: str, start: int, end: int, lists: _Lists) -> bool:
    before = line[max(0, start - _LOOK) : start].rstrip(f" \t*_{_DASHES}")
    if before and before[-1] not in _MARKS and before[-1] not in _CLOSE:
        return True
    after = line[end : end + _LOOK].lstrip()
    return after[:1] in tuple(",،，;:") or _attribution(line, end, lists)


def _attribution(line: str, at: int, lists: _Lists) -> bool:
    """Tell whether words at `at` say who spoke: in lower case, or with a verb of saying."""
    after = line[at : at + _LOOK].lstrip(f" \t\u200b*_,،，{_DASHES}")
    if not after[:1].isalpha():
        return False
    if after[0].islower():
        return True
    return not after[0].isupper() and _said(after, lists)


def _said(after: str, lists: _Lists, words: int = 4) -> bool:
    """Tell whether one of the next words is in the list `said` and introduces no further speech."""
    clause = re.split(rf"[{_MARKS}:：«“„\"]", after, maxsplit=1)
    opens = len(after) > len(clause[0]) and after[len(clause[0])] in ':：«“„"'
    spoken = tokens(normalise(clause[0]))[:words]
    pairs = map(" ".join, itertools.pairwise(spoken))
    return not opens and not lists.said.isdisjoint([*spoken, *pairs])


def _upper(line: str, at: int) -> bool:
    return line[at : at + _LOOK].lstrip()[:1].isupper()


def _ends_here(line: str, start: int, match: re.Match[str], lists: _Lists) -> bool:
    """Tell whether a sentence that began at `start` ends with this mark."""
    at, end = match.start(), match.end()
    mark, closed = match["mark"], match.end() > match.end("mark")
    after = line[end : end + _LOOK]
    spaced = after[:1].isspace()
    rest = after.lstrip()
    if not rest:
        return True
    if rest[0] in ",،，;:؛)":
        return False
    dash = rest[0] in _DASHES
    if dash or closed:
        if _attribution(line, end, lists):
            return False
        if dash and not spaced:
            return False
    begin = _WORD.search(rest)
    first = begin.group()[0] if begin else ""
    frame = bool(begin) and first.islower() and not set(mark) <= {"."}
    if frame and normalise(begin.group()) in lists.said:  # type: ignore[union-attr]
        return False
    if "…" in mark or ".." in mark:
        return not _broken_off(line, start, at, first)
    if mark != "." and mark != "．":
        return spaced or closed or first.isalpha() or not first
    return _stop(line, start, at, rest, first, spaced or closed, lists)


def _broken_off(line: str, start: int, at: int, first: str) -> bool:
    """Tell whether an ellipsis is a pause: before lower case, or after one or two words."""
    if first.islower() or not first:
        return True
    if first.isupper():
        return False
    return len(tokens(line[max(start, at - _LOOK) : at])) < 3


def _stop(
    line: str, start: int, at: int, rest: str, first: str, spaced: bool, lists: _Lists
) -> bool:
    """Tell whether a single full stop ends a sentence."""
    before = line[max(start, at - _LOOK) : at]
    end = (before.rsplit(".", 1)[-1].rsplit(None, 1) or [""])[-1]
    if spaced and not first.islower() and end.isalpha() and len(end) > max(_SHORT, lists.longest):
        return True  # after a word too long for an abbreviation
    if len(before) < _LOOK and _ITEM.match(before.strip()) and first:
        return False
    short = set(_shortened(before))
    if not lists.closing.isdisjoint(short):
        return spaced and not first.islower() and rest[0] not in _DASHES
    if not lists.abbreviations.isdisjoint(short):
        return False
    words = _WORD.findall(before)
    last = words[-1] if words and before.endswith(words[-1]) else ""
    letter = last[-1:] if len(last) < 2 or last[-2] in "-'’" else ""
    if letter.isalpha() and not letter.islower():
        return False  # an initial
    if not spaced:
        if not first.isalpha() or not last or rest[0] != first:
            return False
        if first.isupper():
            return last[-1].islower() or last[-1].isdigit()
        if last.isascii():
            return False
        return len(last) > 1 and len(_WORD.match(rest).group()) > (2 if first.islower() else 1)  # type: ignore[union-attr]
    if first.islower():
        return len(last) > _SHORT
    return True
