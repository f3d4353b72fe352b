"""Do the sentences of a table contradict the language that they are said to be in?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from genprobe.errors import InputError
from genprobe.linguistics import identify
from genprobe.resources import registry

SAMPLE = 60  # sentences that are looked at, spread over the table
LEAST, ALL = 2, 5  # that must tell a language; below ALL every one must tell the same
MOST, FEW = 0.6, 0.2  # share of another language, and of the one said, by which it is refused


def other(texts: Sequence[str], lang: str) -> str:
    """Return the language that most of the texts are plainly in, where it is not `lang`.

    Empty where it is `lang` or not clear, or where genprobe has no words of `lang`.
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
    """InputError where the texts are plainly in another language. why: whence `lang` is known."""
    found = other(texts, lang)
    if found:
        raise InputError(
            f"{source}: taken for {lang} ({why}), and the sentences are plainly in {found}; "
            f"give --lang {found}, or a column 'lang'"
        )


def _base(code: str) -> str:
    return code.partition("-")[0].lower()
