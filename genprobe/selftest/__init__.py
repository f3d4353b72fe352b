"""Check that genprobe measures correctly, with a model whose true rates are known.

The control model is asked the built-in questions that it was trained on, with the same engine,
store, judges and metrics as any other model. Its true rates are computed from its logits
(`control.exact`) and compared with the measured ones:

    answers     yes/no questions: rates, sharpness, labels
    told        stories in Kazakh
    thinking    the control model that thinks
    decodes     forced choice, probabilities of answer words, log-probabilities of sentences
    truth       shared code: exact rates, and z-values of differences

It checks what may differ between machines: the engine, sampling, probabilities, and what is read
and counted after them. That the counting itself is right is a matter of the package's own tests.
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
from genprobe.resources.registry import listed
from genprobe.selftest import answers, decodes, thinking, told, truth
from genprobe.tasks.pipeline import Progress

ROUNDS = 2  # samples of every question
MAX_TOKENS = 128  # enough for every planted reply


@dataclass(frozen=True)
class Report:
    """The results of `run`; `faults` is empty if nothing is wrong."""

    answers: answers.Answers
    told: told.Told | None
    thought: thinking.Thought | None
    decodes: tuple[decodes.Check, ...]
    seconds: float

    @property
    def faults(self) -> list[str]:
        """List the faults, one line each: what is wrong, and what to check."""
        parts = (self.answers, self.told, self.thought)
        found = [fault for part in parts if part for fault in part.faults]
        return [*found, *(f"{one.part}: {one.fault}" for one in self.decodes if one.fault)]

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.faults

    def text(self) -> str:
        """Write the report: for each part a table and totals, then the faults."""
        out = self.answers.text()
        for part in (self.told, self.thought):
            if part:
                out += ["", *part.text()]
        out += ["", *decodes.text(self.decodes), f"finished in {self.seconds:.0f} s"]
        return "\n".join([*out, *(f"FAULT: {fault}" for fault in self.faults)])


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    langs: str | Iterable[str] = (),
    rounds: int = ROUNDS,
) -> Report:
    """Measure the control model and compare the results with its true rates.

    The same seed gives the same report, apart from the seconds. langs: empty for all built-in
    ones; stories are included only with Kazakh. rounds: samples of every question. progress: called
    with (what, number done, total).
    """
    started = time.monotonic()
    langs = sorted(listed(langs, "langs"))
    with tempfile.TemporaryDirectory(prefix="genprobe-selftest-") as name, truth.one_thread():
        folder = Path(name)
        said = _yesno(folder, langs, seed, rounds, progress)
        stories = _stories(folder, seed, progress) if not langs or told.LANG in langs else None
        thought = None
        if codes := [code for code in thoughts.languages() if not langs or code in langs]:
            thought = thinking.compare(thinking.ask(codes, seed, folder / "thoughts", progress))
        forms = decodes.run(folder, langs or list(packs.load_pack("yesno").reviews), seed, progress)
    return Report(
        answers=said,
        told=stories,
        thought=thought,
        decodes=tuple(forms),
        seconds=time.monotonic() - started,
    )


def _yesno(
    folder: Path, langs: Sequence[str], seed: int, rounds: int, progress: Progress
) -> answers.Answers:
    """Ask the yes/no questions."""
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
    return answers.compare(truth.beside(measured, "exact", progress))


def _stories(folder: Path, seed: int, progress: Progress) -> told.Told:
    """Ask for the built-in stories."""
    measured = api.stories(
        probes=["published", "native"],
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=told.TOKENS),
        seed=seed,
        samples=told.STORIES,
        out=folder / "stories",
        progress=progress,
    )
    return told.compare(truth.beside(measured, "exact_stories", progress))
