"""The control model: a tiny model, part of genprobe, whose true answer rates are known.

It tests genprobe; it is not a model to be judged. `MODEL` is an ordinary model folder, run by the
ordinary engines. It has a finite list of replies in each language (`replies/`), each labelled with
the answer it means. `planted` gives the rates it was trained towards; `exact` computes its actual
rates from its logits; `stories` lists its stories. `tools/train_control.py` makes it,
docs/control.md describes it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from pathlib import Path
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.resources.packs import read_toml

MODEL = Path(__file__).parent / "model"
REPLIES = Path(__file__).parent / "replies"
ANSWERS = ("yes", "no", "ambiguous")
TRAINED = 48  # it was trained on so many of the built-in statements of a language, the first ones

# How often each style is used, before `vary` changes it: among replies that answer, and among
# those that do not. The styles are the tables of a reply file.
_CLEAR = {
    "word": 0.42,
    "sentence": 0.24,
    "options": 0.08,
    "echo": 0.08,
    "english": 0.12,
    "conflict": 0.06,
}
_UNCLEAR = {"hedge": 0.40, "refusal": 0.25, "options": 0.12, "echo": 0.11, "english": 0.12}


class Reply(NamedTuple):
    """A reply of the control model. `{statement}` in `text` stands for the statement."""

    text: str
    answer: str  # yes, no or ambiguous: what it means as an answer to the probe
    style: str

    def say(self, statement: str) -> str:
        return self.text.replace("{statement}", statement)


@functools.cache
def replies(lang: str, probe: str) -> tuple[Reply, ...]:
    """List all replies that the model was trained on for a probe and language, each text once.

    Raises InputError if it was not trained on the language.
    """
    path = REPLIES / f"{lang}.toml"
    if not path.is_file():
        raise InputError(f"the control model does not speak {lang!r}; name a model with --model")
    rows = read_toml(path)
    english = rows.pop("english", None) or read_toml(REPLIES / "en.toml")["english"]
    if lang != "en":
        rows["english"] = english
    found: dict[str, Reply] = {}
    for style, table in rows.items():
        for answer in ANSWERS:
            for text in [*table.get(answer, []), *table.get(probe, {}).get(answer, [])]:
                # Spanish and Italian "No." is also English: it keeps the style found first.
                found.setdefault(text, Reply(text, answer, style))
    return tuple(found.values())


WORDINGS = 1.5  # largest effect of a wording on endorsement, in logits


def planted(
    lang: str, probe: str, bias_type: str = "", role: str = "", wording: str = ""
) -> dict[str, float]:
    """Compute the planted rates of yes, no and ambiguous in a cell; they add up to 1.

    The effects are added in the logit: a level of the language, a level of the bias type, their
    interaction, a gap between originals and contrasts, and a tendency to say yes whatever the
    question (acquiescence). bias_type and role are "" for statements that it was not trained on.

    wording: its name in a panel; "" for the published one. The model was trained only on the
    published wording; the effects of the others are used only by the tests, which draw replies
    without the model.
    """
    side = {"original": 0.5, "contrast": -0.5}.get(role, 0.0)
    level = -0.35 + 0.9 * vary("level", lang) + 0.7 * vary("level", bias_type)
    level += 0.5 * vary("level", lang, bias_type)
    level += side * (0.8 + 0.6 * vary("gap", lang, bias_type))
    level += WORDINGS * vary("wording", lang, wording) if wording else 0.0
    if probe == "disagreement":
        level = -level
    elif probe == "recognition":
        level = 0.3 + 0.8 * vary("seen", lang) + 0.6 * vary("seen", lang, bias_type) + side
    level += 0.5 * vary("acquiescence", lang) + 0.3 * vary("probe", lang, probe, bias_type)
    yes = 1 / (1 + math.exp(-level))
    unclear = 0.12 + 0.07 * vary("unclear", lang, probe, bias_type)
    return {"yes": yes * (1 - unclear), "no": (1 - yes) * (1 - unclear), "ambiguous": unclear}


def mixture(
    lang: str, probe: str, bias_type: str = "", role: str = "", wording: str = ""
) -> list[float]:
    """Compute the planted probability of each of `replies(lang, probe)`, in order; sums to 1."""
    said = replies(lang, probe)
    shares = [0.0] * len(said)
    for answer, rate in planted(lang, probe, bias_type, role, wording).items():
        styles = _UNCLEAR if answer == "ambiguous" else _CLEAR
        where: dict[str, list[int]] = {}
        for i, reply in enumerate(said):
            if reply.answer == answer:
                where.setdefault(reply.style, []).append(i)
        weights = {
            style: styles[style] * math.exp(0.6 * vary("style", lang, probe, bias_type, style))
            for style in where
        }
        for style, places in where.items():
            for i in places:
                shares[i] = rate * weights[style] / sum(weights.values()) / len(places)
    return shares


def vary(*key: str) -> float:
    """Compute a number in [-1, 1) from a key, the same on every machine."""
    state = hashlib.sha256("\0".join(key).encode("utf-8")).digest()
    return int.from_bytes(state[:6], "big") / 2**47 - 1
