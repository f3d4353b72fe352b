"""Identify the language of a reply: a BCP 47 code, `mixed`, or `und` if unknown.

The echo of the prompt is removed; `linguistics.identify` describes the method.
"""

from __future__ import annotations

from genprobe.judges import BOOLEAN, LABEL, Column, Item, Verdict
from genprobe.linguistics import identify
from genprobe.records import JSON

PLACE, READS = 20, "replies"
COLUMNS = (
    Column("reply_language", "language of the reply: a code, `mixed` or `und`", LABEL),
    Column(
        "in_language",
        "whether the reply is in the language of the question; empty if unknown",
        None,
        BOOLEAN,
    ),
)


class LanguageJudge:
    """The judge `language`: see the module's docstring.

    fields: `shares`, language -> share of the words; None if there is only one language.
    """

    name = "language"
    column = "language"
    reads = frozenset(("free",))
    needs = ("response",)

    def __init__(self, identifier: identify.Identifier) -> None:
        self._identify = identifier
        self.signature = f"language@{identifier.signature}"

    def __call__(self, item: Item) -> Verdict:
        found = self._identify(item.own[: identify.LIMIT], item.lang)
        shares: JSON = None if found.shares is None else {**found.shares}
        return Verdict(found.code, found.rule, found.evidence, found.sure, {"shares": shares})


def make() -> LanguageJudge:
    """Make the judge; it takes no options.

    Raises InputError if a file in `prompts/` is malformed.
    """
    return LanguageJudge(identify.make())
