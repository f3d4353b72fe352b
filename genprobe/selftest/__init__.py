"""Does the whole instrument measure right? A model whose true rates are known is measured.

The control model is asked everything that is built in, through the engine, the store, the judges
and the metrics that any model goes through. Then its true rates are computed from its logits
(`control.exact`) and held against what was measured:

    answers     to yes/no questions: intervals, rates, sharpness, labels
    told        the stories that it tells in Kazakh
    panel       a panel of wordings whose effects are planted
    thinking    the control model that thinks
    chain       forced choice, probabilities, log-probabilities, choices, essays, the LLM judge,
                against known answers
    truth       what they share: exact rates, and what chance allows

All figures are computed a second time from the records, by a slow and obvious way
(`analysis.recompute`), and must be the same; those of stories also with a planted review.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from genprobe import api
from genprobe.engines import Sampling
from genprobe.engines.control import thoughts
from genprobe.resources import packs
from genprobe.selftest import answers, chain, panel, thinking, told, truth
from genprobe.tasks.pipeline import Progress

ROUNDS = 2  # samples of every question; each is a table of its own, with its own intervals
MAX_TOKENS = 128  # no planted reply is cut off


@dataclass(frozen=True)
class Report:
    """What `run` found; `faults` is empty where all is well.

    differences: figures that came out otherwise when they were computed a second time.
    """

    answers: answers.Answers
    told: told.Told | None
    panel: panel.Panel | None
    thought: thinking.Thought | None
    chain: tuple[chain.Check, ...]
    differences: tuple[str, ...]
    seconds: float

    @property
    def faults(self) -> list[str]:
        """Say what is wrong, a string each."""
        parts = (self.answers, self.told, self.panel, self.thought)
        found = [fault for part in parts if part for fault in part.faults]
        found += [f"{link.link}: {link.fault}" for link in self.chain if link.fault]
        return [*found, *self.differences]

    @property
    def ok(self) -> bool:
        """Tell whether nothing is wrong."""
        return not self.faults

    def text(self) -> str:
        """Write the report: a table of each part, its totals, and what is wrong."""
        out = self.answers.text()
        for part in (self.told, self.panel, self.thought):
            if part:
                out += ["", *part.text()]
        out += ["", *truth.aligned(chain.text(self.chain)), f"{self.seconds:.0f} s"]
        return "\n".join([*out, *(f"FAULT: {fault}" for fault in self.faults)])


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    langs: Iterable[str] = (),
    rounds: int = ROUNDS,
) -> Report:
    """Measure the control model and compare. The same seed gives the same report, seconds aside.

    langs: all built-in ones where empty; stories where Kazakh is among them. `progress` is called
    with (what, done, of how many).
    """
    started = time.monotonic()
    langs = sorted(langs)
    with tempfile.TemporaryDirectory(prefix="genprobe-selftest-") as name, truth.one_thread():
        folder = Path(name)
        said, differences = _yesno(folder, langs, seed, rounds, progress)
        stories = None
        if not langs or told.LANG in langs:
            stories, more = _stories(folder, seed, progress)
            differences += more
        worded = None
        if not langs or panel.LANG in langs:
            worded = panel.worded(seed, progress)
        thought = None
        if codes := [code for code in thoughts.languages() if not langs or code in langs]:
            thought = thinking.compare(thinking.ask(codes, seed, folder / "thoughts", progress))
        links = chain.run(folder, langs or list(packs.load_pack("yesno").reviews), seed, progress)
    return Report(
        answers=said,
        told=stories,
        panel=worded,
        thought=thought,
        chain=tuple(links),
        differences=tuple(differences),
        seconds=time.monotonic() - started,
    )


def _yesno(
    folder: Path, langs: Sequence[str], seed: int, rounds: int, progress: Progress
) -> tuple[answers.Answers, list[str]]:
    """Ask the built-in yes/no questions; what was found, and the differences of a second time."""
    measured = api.yesno(
        langs=langs,
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=MAX_TOKENS),
        seed=seed,
        samples=rounds,
        out=folder / "run",
        progress=progress,
    )
    differences = chain.again("yes/no", measured)
    return answers.compare(truth.beside(measured, "exact", progress)), differences


def _stories(folder: Path, seed: int, progress: Progress) -> tuple[told.Told, list[str]]:
    """Have the built-in stories told; what was found, and the differences of a second time."""
    measured = api.stories(
        probes=["published", "native"],
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=told.TOKENS),
        seed=seed,
        samples=told.STORIES,
        out=folder / "stories",
        progress=progress,
    )
    differences = chain.again("stories", measured, reviewed=True)
    return told.compare(truth.beside(measured, "exact_stories", progress)), differences
