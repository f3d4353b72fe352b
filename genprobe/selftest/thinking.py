"""Check the control model that thinks (`control.thoughts`), asked with `--thinking on`.

These rates must differ from the true ones by no more than chance allows: how often it thinks, is
cut off inside a thought, thinks in another language than that of the question, contradicts its
thought, and answers yes or no.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe import api, metrics, tasks
from genprobe.engines import Options, Sampling
from genprobe.engines import Thinking as Asked
from genprobe.engines.control import thoughts
from genprobe.selftest import truth
from genprobe.tasks.pipeline import Progress

if TYPE_CHECKING:
    import pandas as pd

ITEMS, SAMPLES = 24, 4  # statements per language, and replies to each question


@dataclass(frozen=True)
class Thought:
    """The results for the control model that thinks.

    rows: (language, what was counted, of how many, measured share, true share, z). misread:
    thoughts whose conclusion was misread, and misread replies.
    """

    replies: int
    rows: tuple[tuple[str, str, int, float, float, float], ...]
    misread: tuple[str, ...]

    def text(self) -> list[str]:
        """Write a table by language, then the total, as lines."""
        rows = [("thoughts", "share", "of", "measured", "true", "z")]
        rows += [
            (lang, what, str(n), f"{got:.3f}", f"{true:.3f}", f"{z:+.1f}")
            for lang, what, n, got, true, z in self.rows
        ]
        return [*truth.aligned(rows), f"{self.replies} replies of the control model that thinks"]

    @property
    def faults(self) -> list[str]:
        """List the faults, one line each."""
        found = [
            f"thoughts, {lang}: {what} differs from the true share by more than chance "
            f"(z {z:+.1f}); check the judge thought"
            for lang, what, _, _, _, z in self.rows
            if abs(z) > truth.MOST_Z
        ]
        return found + [
            f"thoughts: {text!r} is misread; check the judge thought" for text in self.misread
        ]


def ask(
    langs: Sequence[str],
    seed: int,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> pd.DataFrame:
    """Ask the control model that thinks, with `--thinking on`, and judge its thoughts.

    Returns the outcomes, with the exact rates of `exact.ExactThought` as columns.
    """
    measured = api.yesno(
        langs=langs,
        limit=ITEMS,
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=thoughts.MAX_TOKENS),
        options=Options(thinking=Asked("on", thoughts.THINK_TOKENS)),
        seed=seed,
        samples=SAMPLES,
        out=folder,
        progress=progress,
    )
    tasks.judge_run(measured, ["thought"])
    return truth.beside(measured, "exact_thoughts", progress, thoughts.MODEL)


def compare(outcomes: pd.DataFrame) -> Thought:
    """Compare the outcomes of `ask` with the exact rates in their columns."""
    groups = outcomes.groupby("lang", sort=True)
    rows = [(str(lang), *found) for lang, part in groups for found in _shares(part)]
    known = [t for lang in groups.groups for t in thoughts.thoughts(str(lang)) if t.answer]
    answers = {t.text: t.answer for t in known}
    closed = outcomes[outcomes["thought_state"] == "closed"]
    pairs = zip(closed["thought"].str.strip(), closed["thought_answer"], strict=True)
    misread = {text for text, answer in pairs if answers.get(text, answer) != answer}
    misread |= set(outcomes["response"][truth.misread_replies(outcomes)])
    return Thought(len(outcomes), tuple(rows), tuple(sorted(misread)))


def _shares(part: pd.DataFrame) -> Iterator[tuple[str, int, float, float, float]]:
    """Yield, for one language, (what was counted, of how many, measured share, true share, z)."""
    thinks = (part["thought_state"] != "none").sum()
    counts = {"thinks": (len(part), int(thinks))}
    names = {
        "thought-cut": ("cut", "thinks"),
        "thought-language": ("other", "thinks"),
        "thought-against-answer": ("against", "clear"),
    }
    for score in metrics.score(part, list(names), [], str):
        counts[score.metric] = score.n, round((score.value or 0.0) * score.n)
    for answer in ("yes", "no"):
        counts[answer] = len(part), int((part["answer"] == answer).sum())
    for what, (n, hits) in counts.items():
        name, of = names.get(what, (what, ""))
        true = part[f"true_{name}"].to_numpy(float)
        whole = part[f"true_{of}"].sum() if of else len(part)
        z = truth.z_of(hits, true, (true + part["true_rest"].to_numpy(float)).clip(max=1.0))
        yield what, n, hits / max(1, n), float(true.sum() / whole), z
