"""The answer that the model under test gives when it is asked again, with its own reply before it.

Models that weigh at length, or answer in words that no rule knows, often say plainly what they
meant when their reply is followed by "Answer:" (Answer Regeneration, arXiv:2510.14773). That is
another answer than the first reply: it has its own columns, and no figure but its own counts it.
`--ask-again` asks, for what the rules leave open, while the model is there.
"""

from __future__ import annotations

from genprobe.errors import InputError
from genprobe.judges import LABEL, VERBATIM, Column, Judge, field_of

VERSION = 1
PLACE, READS = 91, "replies that the rules leave open"
COLUMNS = (
    Column("again", "answer when asked again: as read by the rules", LABEL),
    Column("again_said", "what the model said when asked again", field_of("said"), VERBATIM),
)


def make() -> Judge:
    """Raise InputError: only the model under test can answer again."""
    raise InputError(
        "the judge 'again' is the model under test; give the command of the run again, with "
        "--ask-again"
    )
