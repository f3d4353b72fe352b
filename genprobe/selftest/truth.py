"""Join the control model's exact rates to its replies, and compare counts with expectations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from genprobe.engines import Options, control
from genprobe.errors import need_models
from genprobe.outcomes import table
from genprobe.tasks.pipeline import Progress

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from genprobe.runs.run import Run
    from genprobe.statistics import Array

KEY = ["statement", "lang", "probe"]
MOST_Z = 4.5  # with 162 rates, one correct run in 1,000 exceeds it by chance


def beside(
    measured: Run, name: str, progress: Progress, model: Path = control.MODEL
) -> pd.DataFrame:
    """Return the outcomes of a run, with the exact rates of each question as columns.

    name: the function of `control.exact` that computes them. The fields of its result become the
    columns `true_yes`, … `true_other`.
    """
    exact = _exact(name, measured, progress, model)
    return table.outcomes(measured).join(exact, on=KEY, validate="many_to_one")


def _exact(name: str, run: Run, progress: Progress, model: Path = control.MODEL) -> pd.DataFrame:
    """Compute the exact rates of a run's questions: columns `true_yes`, …, index `KEY`."""
    import pandas as pd

    from genprobe.engines import transformers
    from genprobe.engines.control import exact

    requests = [r for r in run.requests() if r.sample == 0]
    engine = transformers.open(str(model), Options(dtype="float32", device="cpu"))
    done = 0

    def step(more: int) -> None:
        nonlocal done
        done += more
        progress("computing", done, len(requests))

    found = getattr(exact, name)(engine.net, engine.tokenizer, requests, step)
    engine.close()
    names = [f"true_{field}" for field in found[0]._fields]
    index = pd.MultiIndex.from_tuples([(r.statement, r.lang, r.probe) for r in requests])
    return pd.DataFrame(found, columns=names, index=index)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread.

    With so small a model, several threads mostly wait for each other: minutes on a busy machine.
    """
    with need_models("the selftest"):
        import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def misread_replies(outcomes: pd.DataFrame) -> list[bool]:
    """Return for each reply whether it is a planted one that was read as another answer."""
    columns = ["lang", "probe", "text", "response", "answer"]
    labels: dict[tuple[str, str, str], dict[str, str]] = {}
    out = []
    for lang, probe, text, response, answer in outcomes[columns].itertuples(index=False):
        key = (lang, probe, text)
        if key not in labels:
            labels[key] = {r.say(text): r.answer for r in control.replies(lang, probe)}
        out.append(labels[key].get(response, answer) != answer)
    return out


def z_of(k: int, least: Array, most: Array) -> float:
    """Return how far k hits are from the expected number, as a z-value.

    least, most: bounds on the probability of a hit in each trial, (n,) each. z comes from the exact
    tail of the Poisson-binomial distribution; the normal tail is too thin if hits are rare.
    """
    above = min(1.0, float(count(most)[k:].sum()))
    below = min(1.0, float(count(least)[: k + 1].sum()))
    z = -NormalDist().inv_cdf(min(max(min(above, below), 1e-300), 0.5))
    return z if above < below else -z


def count(chances: Array) -> np.ndarray:
    """Compute the probabilities of 0, 1, … n hits, (n + 1,), from those of n independent trials."""
    import numpy as np

    total = np.ones(1)
    for p in chances:
        total = np.convolve(total, [1 - p, p])
    return total


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Write rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
