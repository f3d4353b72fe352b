"""Check that genprobe measures correctly, with a model whose true rates are known.

The control model is asked the built-in questions that it was trained on, with the same engine,
store, judges and metrics as any other model. Its true rates are computed from its logits
(`control.exact`) and compared with the measured ones:

    answers     yes/no questions: intervals, rates, sharpness, labels
    told        stories in Kazakh
    panel       a panel of wordings with planted effects
    thinking    the control model that thinks
    chain       the other parts, against known answers: forced choice, probabilities,
                log-probabilities, choices, essays, the LLM judge
    truth       shared code: exact rates, and z-values of differences

All figures are computed again from the records by a slow and simple method
(`analysis.recompute`) and must be equal. Those of stories are also compared after a correction by a
planted review.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from genprobe import api
from genprobe.engines import Sampling, control
from genprobe.engines.control import thoughts
from genprobe.resources import packs
from genprobe.selftest import answers, chain, panel, thinking, told, truth
from genprobe.tasks.pipeline import Progress

ROUNDS = 2  # samples of every question; each sample gives its own intervals
MAX_TOKENS = 128  # enough for every planted reply


@dataclass(frozen=True)
class Report:
    """The results of `run`; `faults` is empty if nothing is wrong.

    differences: one line for each figure that was different when it was computed again.
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
        """List the faults, one line each: what is wrong, and what to check."""
        parts = (self.answers, self.told, self.panel, self.thought)
        found = [fault for part in parts if part for fault in part.faults]
        found += [f"{link.link}: {link.fault}" for link in self.chain if link.fault]
        return [*found, *self.differences]

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.faults

    def text(self) -> str:
        """Write the report: for each part a table and totals, then the faults."""
        out = self.answers.text()
        for part in (self.told, self.panel, self.thought):
            if part:
                out += ["", *part.text()]
        out += ["", *truth.aligned(chain.text(self.chain)), f"finished in {self.seconds:.0f} s"]
        return "\n".join([*out, *(f"FAULT: {fault}" for fault in self.faults)])


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    langs: Iterable[str] = (),
    rounds: int = ROUNDS,
) -> Report:
    """Measure the control model and compare the results with its true rates.

    The same seed gives the same report, apart from the seconds. langs: empty for all built-in
    ones; stories are included only with Kazakh. rounds: samples of every question. progress: called
    with (what, number done, total).
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
    """Ask the yes/no questions. Returns the results, and differences when recomputed."""
    measured = api.yesno(
        langs=langs,
        limit=control.TRAINED,
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
    """Ask for the built-in stories. Returns the results, and differences when recomputed."""
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
