"""Find an answer that is marked by a format: a box, a field, a tag, a ticked line or bold."""

from __future__ import annotations

import re

from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.reply import NOUNS
from genprobe.judges.choosing.taking import Found, answer

_BOXED = re.compile(
    r"\\boxed\s*\{(?:\s*\\text\s*\{)?([^{}]{1,300})\}|<answer>([^<]{1,300})</answer>"
)
_FIELD = re.compile(
    r"[\"']([^\"'\n]{1,40})[\"']\s*:\s*(?:\"([^\"\n]{1,300})\"|(\d{1,2})\b)", re.IGNORECASE
)
_KEY = re.compile("answer|choice|option|response")
_TICK = re.compile(r"^[ \t]*(?:[-*] )?(?:\[[xXхХ✓✔]\]|[☑✅✓✔☒🗹])[ \t]*(.{1,300})$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]{1,300})\*\*|__([^_\n]{1,300})__")


def marked(reading: Reading) -> Found | None:
    """Find the last answer in a box or a tag, else in a field, else all the ticked lines."""
    for pattern in (_BOXED, _FIELD, _TICK):
        results = []
        for words in _matched(reading, pattern):
            found = answer(reading, words, "marked")
            if found:
                results.append(found)
        if results and pattern is _TICK:
            return results[-1]._replace(taken=frozenset().union(*(one.taken for one in results)))
        if results:
            return results[-1]
    return None


def bold(reading: Reading) -> Found | None:
    """Find the only option that is written in bold."""
    taken: dict[int, Found] = {}
    for words in _matched(reading, _BOLD):
        found = answer(reading, words, "bold")
        if found is not None and len(found.taken) == 1:
            taken.setdefault(next(iter(found.taken)), found)
    return next(iter(taken.values())) if len(taken) == 1 else None


def _matched(reading: Reading, pattern: re.Pattern[str]) -> list[range]:
    """Return the words of each match, from its first group that is not empty.

    A field counts if its key is a word for "answer", in the language or in English.
    """
    found = []
    for match in pattern.finditer(reading.reply.text):
        groups = [g for g in range(1, pattern.groups + 1) if match.group(g)]
        if pattern is _FIELD:
            key = reading.reply.inside(*match.span(groups.pop(0)))
            named = any(reading.reply.group(at)[0] in NOUNS for at in key)
            if not (named or _KEY.search(match.group(1).lower())):
                continue
        found.append(reading.reply.inside(*match.span(groups[0])))
    return found
