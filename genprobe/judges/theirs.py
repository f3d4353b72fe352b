"""The answer that another harness read in a reply, or that its score amounts to.

A log that `genprobe judge LOG -o FOLDER` made a run of brings it; it has a column of its own, to be
seen beside ours, and no figure counts it.
"""

from __future__ import annotations

from genprobe.errors import InputError
from genprobe.judges import LABEL, Column, Judge, field_of

PLACE, READS = 92, "what another harness said of replies"
COLUMNS = (
    Column("theirs", "answer by the harness that asked: yes, no, not yes, not no", LABEL),
    Column("their_score", "its score of the reply", field_of("their_score")),
)


def make() -> Judge:
    """Raise InputError: only the log has these answers."""
    raise InputError(
        "the judge 'theirs' is the harness that asked; its answers come with its log: "
        "`genprobe judge LOG -o FOLDER`"
    )
