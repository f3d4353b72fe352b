"""The thoughts of the control model that thinks: what it writes before a reply, and how often.

It thinks about questions in English and Kazakh; some of its thoughts about the latter are in
English, as those of many models are. Most thoughts come to an answer, which the reply gives or
denies; some have no end. Probabilities are products over tokens, and exact
(`genprobe.engines.control.exact.exact_thoughts`).
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
# Where its rates are known: the tokens of a thought, and of a reply. A thought without an end
# fills both; all others, and all replies, have room.
THINK_TOKENS, MAX_TOKENS = 50, 24
AGAIN = 9  # times that a thought without an end is written in training


class Thought(NamedTuple):
    """Something that the model thinks. answer: what it comes to, yes or no; "" without an end."""

    text: str
    answer: str
    lang: str

    @property
    def written(self) -> str:
        """Return the thought as the model writes it, with its tags."""
        return f"<think>\n{self.text}" + ("\n</think>\n\n" if self.answer else "")


class Said(NamedTuple):
    """A thought, or none, the reply behind it, or none, and the planted share of both."""

    thought: Thought | None
    reply: control.Reply | None
    share: float


def languages() -> list[str]:
    return sorted(path.stem for path in THOUGHTS.glob("*.toml"))


@functools.cache
def thoughts(lang: str) -> tuple[Thought, ...]:
    """List all that it thinks when it is asked in a language, that language's thoughts first.

    InputError for a language in which it does not think.
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

    thinks: of all replies. endless: of the thoughts; english: of the others. against: of the
    clear answers behind a thought.
    """
    key = lang, probe, bias_type
    return {
        "thinks": 0.86 + 0.08 * vary("thinks", *key),
        "endless": 0.15 + 0.08 * vary("endless", *key),
        "english": 0.0 if lang == "en" else 0.30 + 0.15 * vary("english", *key),
        "against": 0.14 + 0.08 * vary("against", *key),
    }


def mixture(lang: str, probe: str, bias_type: str = "", role: str = "") -> list[Said]:
    """List all that it says to a probe in a language, with planted shares that add up to 1.

    Without a thought it answers as `control.mixture` has it; a thought comes to yes as often as a
    clear answer is yes there.
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
