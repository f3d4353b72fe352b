"""Compare the spelling of words, and read letters and figures that may stand for an option."""

from __future__ import annotations

import difflib
import re
import unicodedata

from genprobe import text

LIKE = 0.75  # least share of letters that two spellings of a word have in common
HAN = re.compile(rf"[{text.HAN}]")
_LOOKS = str.maketrans("авсе", "abce")


def looks(mark: str) -> str:
    """Return a mark with Cyrillic letters replaced by Latin ones that look the same."""
    return text.normalise(mark).translate(_LOOKS) if len(mark) == 1 else text.normalise(mark)


def is_mark(token: str) -> bool:
    """Tell whether a token is one character or a figure, and so may be the mark of an option."""
    return len(token) == 1 or figure(token) is not None


def figure(token: str) -> int | None:
    """Read a token of one or two digits, of any script, as a number; None for another token."""
    if len(token) > 2 or not token.isdecimal():
        return None
    return int("".join(str(unicodedata.decimal(digit)) for digit in token))


def without_accents(word: str) -> str:
    """Remove the accents of Latin letters."""
    bare = re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare)


def distance(a: str, b: str) -> int:
    """Count the letters to add, drop, change or swap with their neighbour to turn a into b.

    Damerau's distance in its restricted form (optimal string alignment). 99 if the lengths
    differ by more than a quarter.
    """
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


def same_beginning(a: str, b: str) -> int:
    """Count the letters in the common beginning of two words."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def alike(a: str, b: str, ending: int) -> float:
    """Return how similar two words are, from 0 to 1.

    1 for the same word; up to 0.9 for words that differ in their endings, of at most `ending`
    letters; else the share of letters in common order (difflib), or 0 if it is below `LIKE`.
    """
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    same = same_beginning(a, b)
    best = 0.0
    begins = same >= 3 or (same == 2 and len(short) == 2 and len(long) <= 4)
    if begins and len(long) - same <= ending + (same > 5):
        best = 0.9 * same / len(short)
    if len(short) >= 4 and len(long) - len(short) <= 2:
        ratio = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
        best = max(best, ratio if ratio >= LIKE else 0.0)
    return best
