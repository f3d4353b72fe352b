"""Check whether the sentences of a table are in another language than the given one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from genprobe.errors import InputError
from genprobe.linguistics import identify
from genprobe.resources import registry

SAMPLE = 60  # most sentences that are checked, spread over the table
LEAST, ALL = 2, 5  # least number of clear sentences; if there are fewer than ALL, all must agree
# A table is refused if another language has at least the share MOST, and the given one at most FEW.
MOST, FEW = 0.6, 0.2


def other(texts: Sequence[str], lang: str) -> str:
    """Return the language of most of the texts if it is clear and not `lang`.

    Returns "" if it is `lang` or unclear, or if genprobe has no language file for `lang`.
    """
    if lang not in registry.names("languages"):
        return ""
    tell = identify.make()
    told = Counter(tell(text).code for text in texts[:: max(1, len(texts) // SAMPLE)])
    clear = {code: n for code, n in told.items() if code not in ("und", "mixed")}
    total = sum(clear.values())
    if total < LEAST:
        return ""
    best = max(clear, key=lambda code: clear[code])
    own = sum(n for code, n in clear.items() if _base(code) == _base(lang))
    if total < ALL:
        return best if clear[best] == total and own == 0 else ""
    return best if clear[best] >= MOST * total and own <= FEW * total else ""


def refuse(texts: Sequence[str], lang: str, source: str, why: str) -> None:
    """Raise InputError if the texts are clearly in another language.

    source: the name of the table, for the message. why: where `lang` comes from, for the message.
    """
    found = other(texts, lang)
    if found:
        raise InputError(
            f"{source}: assumed {lang} ({why}), but the sentences are clearly in {found}; "
            f"give --lang {found}, or a column 'lang'"
        )


def _base(code: str) -> str:
    return code.partition("-")[0].lower()
