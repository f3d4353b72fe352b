"""Check forced choices and probabilities of the control model, for `genprobe selftest`.

- forced choice and probability: its answers to yes/no questions, against its logits, computed for
  one form at a time (no cache, no batch);
- log-probabilities: the values that `logprob` stores for built-in sentences, against its logits,
  computed for one sentence at a time.

Counts of sampled answers are compared with their exact expectation by a z-value. All other values
must be equal, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import api
from genprobe.engines import Options, Sampling, control
from genprobe.records import LogProb, Request, Response
from genprobe.resources import registry
from genprobe.selftest import truth
from genprobe.tasks.pipeline import Progress

MOST_OFF = 2e-3  # largest difference of a log-probability, in nats, due to rounding
LIMIT = 6  # statements per language
FORM_LANGS = ("en", "kk", "hi")  # languages of the checks of forced choice and probability
DRAWS = 4  # forced choices for each question


class Check(NamedTuple):
    """The check of one part. asked: number of answers. found: result. fault: "" if all is right."""

    part: str
    asked: int
    found: str
    fault: str = ""


def run(
    folder: Path, langs: Sequence[str], seed: int, progress: Progress = lambda *_: None
) -> list[Check]:
    """Check every part against its known answers; runs are written into `folder`."""
    progress("probabilities", 0, 2)
    found = _forms(folder, langs, seed)
    progress("probabilities", 1, 2)
    found.append(_texts(folder, langs))
    progress("probabilities", 2, 2)
    return found


def text(checks: Sequence[Check]) -> list[str]:
    """Write the report's table, as lines."""
    rows = [("probabilities", "answers", "compared with plain passes")]
    return truth.aligned([*rows, *((c.part, str(c.asked), c.found) for c in checks)])


def _forms(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
    """Check forced choices and the probabilities of answer words."""
    measured = api.yesno(
        langs=[lang for lang in FORM_LANGS if lang in langs] or list(langs)[:1],
        decodes=["choice", "logprob"],
        limit=LIMIT,
        engine="transformers",
        sampling=Sampling(temperature=1.0, top_p=1.0),
        samples=DRAWS,
        seed=seed,
        out=folder / "decodes",
    )
    engine = registry.module("engines", "transformers").open(
        str(control.MODEL), Options(dtype="float32", device="cpu")
    )
    worst, read, chances, taken = 0.0, 0, list[float](), 0
    exact: dict[tuple[str, ...], dict[tuple[int, ...], float]] = {}
    drawn: list[tuple[tuple[str, ...], Request, str]] = []
    for request, answer in measured.exchanges():
        key: tuple[str, ...] = (request.lang, request.messages[-1]["content"])
        if isinstance(answer, LogProb):
            (row,) = engine.prompts.rows([request])
            for part in answer.continuations:
                own = _passed(engine, row.ids, part["tokens"])
                worst = max(
                    worst, *(abs(a - b) for a, b in zip(part["logprobs"], own, strict=True))
                )
                read += 1
        else:
            assert isinstance(answer, Response)
            drawn.append((key, request, answer.text))
    for key, request, said in drawn:
        if key not in exact:
            exact[key] = _chances(engine, request)
        forms = engine.prompts.forms(request.options)
        first = next(iter(request.options))
        of_first = {tuple(form.ids) for form in forms if form.text in request.options[first]}
        chances.append(math.fsum(p for ids, p in exact[key].items() if ids in of_first))
        taken += any(said == form.text for form in forms if tuple(form.ids) in of_first)
    engine.close()
    z = _z(taken, chances)
    return [
        Check(
            "probability of the answer words",
            read,
            f"largest difference {worst:.1e} nats",
            ""
            if worst <= MOST_OFF
            else f"differs by {worst:.2g} nats from one plain pass; check the engine transformers",
        ),
        Check(
            "forced choice",
            len(drawn),
            f"first answer given {taken} times, expected {math.fsum(chances):.1f} (z {z:+.1f})",
            ""
            if abs(z) <= truth.MOST_Z
            else f"differs from the exact rate by more than chance (z {z:+.1f}); check the engine "
            "transformers",
        ),
    ]


def _z(count: int, chances: Sequence[float]) -> float:
    spread = math.fsum(p * (1 - p) for p in chances) ** 0.5
    return (count - math.fsum(chances)) / spread if spread else 0.0


def _after(engine: Any, ids: Sequence[int]) -> Any:
    """Compute the log-probability of every next token after each of `ids`, (ids, vocabulary)."""
    import torch

    with torch.inference_mode():
        return engine.net(input_ids=torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)


def _passed(engine: Any, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """Compute the natural log-probability of each of `tokens` after a prompt."""
    found = _after(engine, [*prompt, *tokens])
    return [float(found[len(prompt) - 1 + n, token]) for n, token in enumerate(tokens)]


def _chances(engine: Any, request: Request) -> dict[tuple[int, ...], float]:
    """Compute the probability of each form (token ids) if only tokens of forms are allowed."""
    (row,) = engine.prompts.rows([request])
    forms = {tuple(form.ids) for form in engine.prompts.forms(request.options)}
    end = engine.stop_ids[0]
    found: dict[tuple[int, ...], float] = {}
    todo: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while todo:
        ids, chance = todo.pop()
        follow = {form[len(ids)] for form in forms if form[: len(ids)] == ids and form != ids}
        allowed = sorted(follow | ({end} if ids in forms else set()))
        behind = _after(engine, [*row.ids, *ids])[-1]
        masses = [math.exp(float(behind[token])) for token in allowed]
        for token, mass in zip(allowed, masses, strict=True):
            part = chance * mass / math.fsum(masses)
            if token == end and ids in forms:
                found[ids] = part
            else:
                todo.append(((*ids, token), part))
    return found


def _texts(folder: Path, langs: Sequence[str]) -> Check:
    """Check the log-probabilities of built-in sentences, scored as plain text."""
    measured = api.logprob(
        langs=langs, limit=2, scorers=["loglik"], plain=True, engine="transformers",
        out=folder / "texts",
    )  # fmt: skip
    engine = registry.module("engines", "transformers").open(
        str(control.MODEL), Options(dtype="float32", device="cpu")
    )
    tokenizer, worst, read = engine.tokenizer, 0.0, 0
    start = next(i for i in (tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None)
    for record in measured.logprobs():
        for part in record.continuations:
            ids = tokenizer(part["text"], add_special_tokens=False)["input_ids"]
            own = math.fsum(_passed(engine, [start], ids))
            worst = max(worst, abs(own - math.fsum(part["logprobs"])))
            read += 1
    engine.close()
    bad = worst > MOST_OFF or not read
    fault = f"differs by {worst:.2g} nats; check engines/scoring" if bad else ""
    found = f"largest difference {worst:.1e} nats"
    return Check("log-probability of sentences", read, found, fault)
