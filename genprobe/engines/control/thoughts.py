"""The thoughts of the control model that thinks before it replies, and their planted rates.

It thinks about questions in English and Kazakh; like many models, it sometimes thinks in English
about questions in Kazakh. Most thoughts reach an answer, which the reply repeats or contradicts;
some have no end. Their exact probabilities are computed by
`genprobe.engines.control.exact.exact_thoughts`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from genprobe.engines import control
from genprobe.engines.control import vary
from genprobe.errors import InputError
from genprobe.resources.packs import read_toml

MODEL = Path(__file__).parent / "thinking"
THOUGHTS = Path(__file__).parent / "thoughts"
# Limits on the tokens of a thought and of a reply, for which its rates are known. A thought without
# an end uses up both; all others, and all replies, fit.
THINK_TOKENS, MAX_TOKENS = 50, 24
AGAIN = 9  # times that a thought without an end is repeated in training


class Thought(NamedTuple):
    """A thought of the model. answer: its conclusion, yes or no; "" if it has no end."""

    text: str
    answer: str
    lang: str

    @property
    def written(self) -> str:
        """Return the thought as the model writes it, with its tags."""
        return f"<think>\n{self.text}" + ("\n</think>\n\n" if self.answer else "")


class Said(NamedTuple):
    """A thought or None, the reply after it or None, and the planted share of both together."""

    thought: Thought | None
    reply: control.Reply | None
    share: float


def languages() -> list[str]:
    return sorted(path.stem for path in THOUGHTS.glob("*.toml"))


@functools.cache
def thoughts(lang: str) -> tuple[Thought, ...]:
    """List all thoughts about questions in a language, those in that language first.

    Raises InputError for a language in which the model does not think.
    """
    if lang not in languages():
        raise InputError(
            f"the control model does not think in {lang!r}, only in {', '.join(languages())}; "
            "leave --thinking out, or name a model with --model"
        )
    found = []
    for code in dict.fromkeys((lang, "en")):
        rows = read_toml(THOUGHTS / f"{code}.toml")
        found += [Thought(text, answer, code) for answer in ("yes", "no") for text in rows[answer]]
        if code == lang:
            found.append(Thought(" ".join([rows["endless"]] * AGAIN), "", code))
    return tuple(found)


def planted(lang: str, probe: str, bias_type: str = "") -> dict[str, float]:
    """Compute the planted rates of a cell.

    thinks: share of replies with a thought. endless: share of thoughts without an end. english:
    share of the other thoughts that are in English. against: share of the clear answers after a
    thought that contradict it.
    """
    key = lang, probe, bias_type
    return {
        "thinks": 0.86 + 0.08 * vary("thinks", *key),
        "endless": 0.15 + 0.08 * vary("endless", *key),
        "english": 0.0 if lang == "en" else 0.30 + 0.15 * vary("english", *key),
        "against": 0.14 + 0.08 * vary("against", *key),
    }


def mixture(lang: str, probe: str, bias_type: str = "", role: str = "") -> list[Said]:
    """List all thoughts and replies to a probe in a language; the planted shares add up to 1.

    Without a thought, replies have the shares of `control.mixture`; a thought concludes yes as
    often as a clear answer is yes there.
    """
    rates = planted(lang, probe, bias_type)
    answers = control.planted(lang, probe, bias_type, role)
    replies = control.replies(lang, probe)
    shares = control.mixture(lang, probe, bias_type, role)
    found = [
        Said(None, reply, (1 - rates["thinks"]) * share)
        for reply, share in zip(replies, shares, strict=True)
    ]
    clear = answers["yes"] + answers["no"]
    for thought in thoughts(lang):
        if not thought.answer:
            found.append(Said(thought, None, rates["thinks"] * rates["endless"]))
            continue
        same = [t for t in thoughts(lang) if (t.answer, t.lang) == (thought.answer, thought.lang)]
        spoken = rates["english"] if thought.lang != lang else 1 - rates["english"]
        often = rates["thinks"] * (1 - rates["endless"]) * spoken / len(same)
        often *= answers[thought.answer] / clear
        other = "no" if thought.answer == "yes" else "yes"
        given = {thought.answer: clear * (1 - rates["against"]), other: clear * rates["against"]}
        given["ambiguous"] = answers["ambiguous"]
        found += [
            Said(thought, reply, often * share * given[reply.answer] / answers[reply.answer])
            for reply, share in zip(replies, shares, strict=True)
        ]
    return found
