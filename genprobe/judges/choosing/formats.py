"""Find an answer that is marked by a format: a box, a field, a tag, a ticked line or bold."""

from __future__ import annotations

import re

from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.reply import NOUNS
from genprobe.judges.choosing.taking import Found, answer
from genprobe.linguistics import verdicts

_KEY = re.compile("answer|choice|option|response", re.IGNORECASE)
_TICK = re.compile(r"^[ \t]*(?:[-*] )?(?:\[[xXхХ✓✔]\]|[☑✅✓✔☒🗹])[ \t]*(.{1,300})$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]{1,300})\*\*|__([^_\n]{1,300})__")


def marked(reading: Reading) -> Found | None:
    """Find the last answer in a box or a tag, else in a field, else all the ticked lines."""
    values = verdicts.marked(reading.reply.text)
    boxed = [(m.start, m.end) for m in values if m.how != "json"]
    fields = [(m.start, m.end) for m in values if m.how == "json" and _names(reading, m)]
    for spans in (boxed, fields):
        found = [answer(reading, reading.reply.inside(*span), "marked") for span in spans]
        if any(found):
            return [one for one in found if one][-1]
    ticked = _matched(reading, _TICK, "marked")
    if not ticked:
        return None
    return ticked[-1]._replace(taken=frozenset().union(*(one.taken for one in ticked)))


def bold(reading: Reading) -> Found | None:
    """Find the only option that is written in bold."""
    taken: dict[int, Found] = {}
    for found in _matched(reading, _BOLD, "bold"):
        if len(found.taken) == 1:
            taken.setdefault(next(iter(found.taken)), found)
    return next(iter(taken.values())) if len(taken) == 1 else None


def _names(reading: Reading, field: verdicts.Marked) -> bool:
    """Tell whether the key of a field is a word for "answer", in the language or in English."""
    start = reading.reply.text.rfind(field.key, 0, field.start)
    key = reading.reply.inside(start, start + len(field.key))
    return bool(_KEY.search(field.key)) or any(reading.reply.group(at)[0] in NOUNS for at in key)


def _matched(reading: Reading, pattern: re.Pattern[str], rule: str) -> list[Found]:
    """Return the answer in each match, from its group that is not empty."""
    found = []
    for match in pattern.finditer(reading.reply.text):
        words = reading.reply.inside(*match.span(match.lastindex or 0))
        found.append(answer(reading, words, rule))
    return [one for one in found if one]
