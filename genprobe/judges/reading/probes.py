"""Say what agreement with the statement answers to a probe, and which stems answer it.

A probe is read by what it means (`reads` in its pack): a `stance` on a statement, whether a
statement is a `stereotype`, or any other yes/no `question`, whose yes may be bad news.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.judges.reading.lexicon import OPPOSITE
from genprobe.linguistics import clauses, stances, stems, stereotypes
from genprobe.resources import packs, registry


class Way(NamedTuple):
    """How the replies to a probe are read.

    reads: one of `packs.READS`. affirmed: the answer of a reply that agrees with the statement or
    calls it a stereotype; to a `question`, yes.
    """

    reads: str
    affirmed: str = "yes"


@functools.cache
def known() -> dict[str, Way]:
    """Return the way of each yes/no probe of the packs, by its name."""
    return {name: Way(p.reads, p.when) for name, p in packs.closed_probes().items()}


def way(reads: str, probe: str, when: str = "") -> Way:
    """Return how a probe is read: by `reads` and `when`, which may be empty, else by its name.

    Raises InputError if neither tells.
    """
    own = known().get(probe)
    if own is not None and reads in ("", own.reads) and when in ("", own.affirmed):
        return own
    if reads in packs.READS:
        return Way(reads, when or "yes")
    if reads:
        raise registry.unknown("value of 'reads'", reads, list(packs.READS))
    *some, last = packs.READS
    cure = f"give its rows a column 'reads': {', '.join(some)} or {last}"
    if not probe:
        raise InputError(cure)
    error = str(registry.unknown("probe", probe, list(known())))
    raise InputError(f"{error} Or {cure}" if error.endswith("?") else f"{error}; or {cure}")


# Groups of phrases that answer another question than the probe's. They are not looked for, because
# they could hide a shorter phrase inside them that answers the probe.
MUTE = {
    "stereotype": frozenset(("agree", "disagree", "wrong", "right")),
    "stance": frozenset(("stereotype", "not_stereotype")),
    "question": frozenset(("stereotype", "not_stereotype", "agree", "disagree", "wrong", "right")),
}
# A clause needs at least one of these stems to answer the probe. What answers a question depends on
# the question: see `restated`.
CORE = {"stereotype": stems.STEREOTYPE_CORE, "stance": stems.STANCE_CORE, "question": 0}
# Stems that judge a statement, whatever the probe.
JUDGES = stems.STANCES | stems.STEREOTYPE | stems.FINE | stems.FAULTY
_AGREES = stems.STANCES | stems.FINE | stems.FAULTY | stems.OWN
# Stems that suggest an answer to the probe in words that the rules do not know.
MAY_ANSWER = {"stereotype": stems.STEREOTYPE, "stance": _AGREES, "question": _AGREES}


def sign(reads: str, clause: clauses.Clause, mode: str, me: bool) -> int | None:
    """Return the sign of a clause for the probe.

    mode: where negations stand in the language (`Grammar.negation`). me: whether "I" was said
    before. Returns +1 (agrees, or calls it a stereotype), -1 (the reverse), 0 (unclear),
    `stances.BOTH`, or None (no answer to the probe).
    """
    if not stems.bits_of(clause.hits) & CORE[reads]:
        return None
    if reads == "stereotype":
        return stereotypes.sign_of_stereotype(clause, mode)
    return stances.sign_of_stance(clause, mode, me)


def answer_of(way: Way, sign: int) -> str | None:
    """Return the answer for a sign: yes, no or both; None if it is unclear."""
    if sign == stances.BOTH:
        return "both"
    return (way.affirmed if sign > 0 else OPPOSITE[way.affirmed]) if sign else None


def answer_to_point(way: Way, sign: int, word: str) -> str:
    """Return the answer of a "yes" or "no" to a question with this sign: "Do I agree? No."."""
    return way.affirmed if (sign > 0) == (word == "yes") else OPPOSITE[way.affirmed]
