"""Check the other parts of genprobe against known answers, for `genprobe selftest`.

- forced choice and probability: the control model's answers to yes/no questions, against its
  logits, computed for one form at a time (no cache, no batch);
- log-probabilities: the values that `logprob` stores for built-in sentences, against its logits,
  computed for one sentence at a time;
- choices: scripted models in every language, with known accuracy and bias;
- essays: planted texts with known stances;
- the LLM judge: a scripted judge with planted labels, some of which follow the order of labels.

Counts of sampled answers are compared with their exact expectation by a z-value. All other values
must be equal, up to rounding.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from genprobe import api, files
from genprobe.analysis.recompute import recompute
from genprobe.analysis.score import score
from genprobe.datasets import choices as layout
from genprobe.datasets import frames, pairs
from genprobe.engines import Identity, Options, Sampling, control, transformers
from genprobe.judges import Item, llm
from genprobe.records import LogProb, Request, Response, Statement
from genprobe.resources import packs, registry
from genprobe.review import collect
from genprobe.tasks import choices
from genprobe.tasks.pipeline import Progress
from genprobe.tasks.pipeline.plan import plan
from genprobe.text import plain_phrases

if TYPE_CHECKING:
    from genprobe.runs.run import Run

MOST_Z = 4.5
MOST_OFF = 2e-3  # largest difference of a log-probability, in nats, due to rounding
LIMIT = 6  # statements or pairs per language
FORM_LANGS = ("en", "kk", "hi")  # languages of the checks of forced choice and probability
DRAWS = 4  # forced choices for each question
# What a scripted model always chooses -> its accuracy in ambiguous and in disambiguated contexts,
# BBQ's bias score in both (None: nothing to count), its position bias.
SCRIPTS: dict[str, tuple[float | None, ...]] = {
    "first": (1 / 3, 1 / 3, 0.0, 0.0, 1.0),
    "unknown": (1.0, 0.0, 0.0, None, 0.0),
    "stereotype": (0.0, 0.5, 1.0, 1.0, 0.0),
}
STANCES = ("for", "against", "both", "refusal")


class Check(NamedTuple):
    """The check of one part. asked: number of answers. found: result. fault: "" if all is right."""

    link: str
    asked: int
    found: str
    fault: str = ""


def run(
    folder: Path, langs: Sequence[str], seed: int, progress: Progress = lambda *_: None
) -> list[Check]:
    """Check every part against its known answers; runs are written into `folder`."""
    steps: list[Callable[[Path, Sequence[str], int], list[Check]]]
    steps = [_decodes, _texts, _choices, _essays, _judge]
    found: list[Check] = []
    for done, step in enumerate(steps):
        progress("other parts", done, len(steps))
        found += step(folder, langs, seed)
    progress("other parts", len(steps), len(steps))
    return found


def again(what: str, run: Run, reviewed: bool = False) -> list[str]:
    """Score a run, compute its figures again by a slow and simple method, list the differences.

    what: name of the run in these lines. reviewed: also compare figures that are corrected by a
    planted review of its stories.
    """
    table = _planted_review(run) if reviewed else None
    score(run, reviewed=table)
    return [f"{what}: {line}" for line in recompute(run, table).differences]


def _planted_review(run: Run) -> Path:
    """Write a review of every second template. Returns the path of the table.

    The reviewer disagrees with the judge's label about the sentiment of every ninth story and the
    regard of every seventh.
    """
    items = {request.id: request for request in run.requests()}
    templates = sorted({request.statement for request in items.values()})[::2]
    rows: list[dict[str, Any]] = []
    for judgment in run.judgments("sentiment"):
        request = items[judgment.request]
        if request.statement in templates and judgment.label in ("negative", "positive"):
            other = {"negative": "positive", "positive": "negative"}[judgment.label]
            item = collect.item_id(run.spec.hash, request.id)
            row: dict[str, Any] = dict.fromkeys(collect.COLUMNS, "")
            row |= {"item": item, "request": request.id}
            row |= {"reviewer": "planted", "repeat": 0, "weight": 1.0}
            number = len(rows) // 2 + 1
            for question, differs in (("sentiment", number % 9 == 0), ("regard", number % 7 == 0)):
                answer = other if differs else judgment.label
                rows.append(row | {"question": question, "answer": answer})
    table = run.folder.parent / "review.csv"
    files.write_rows(table, rows)
    return table


def text(checks: Sequence[Check]) -> list[tuple[str, ...]]:
    """List the rows of the report's table."""
    return [
        ("other parts", "answers", "compared with known values"),
        *((c.link, str(c.asked), c.found) for c in checks),
    ]


# --- the control model, computed by one plain pass at a time


def _decodes(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
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
    engine = transformers.open(str(control.MODEL), Options(dtype="float32", device="cpu"))
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
            if abs(z) <= MOST_Z
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


def _texts(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
    """Check the log-probabilities of built-in sentences, scored as plain text."""
    measured = api.logprobs(
        langs=langs, limit=2, scorers=["loglik"], plain=True, engine="transformers",
        out=folder / "texts",
    )  # fmt: skip
    engine = transformers.open(str(control.MODEL), Options(dtype="float32", device="cpu"))
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
    fault = (
        f"differs by {worst:.2g} nats; check engines/scoring"
        if bad
        else "; ".join(again("pairs", measured))
    )
    found = f"largest difference {worst:.1e} nats"
    return [Check("log-probability of sentences", read, found, fault)]


# --- scripted models


def _items(lang: str) -> Iterator[dict[str, Any]]:
    """Yield questions with invented names: ambiguous or not, with either group as the answer."""
    unknown = layout.wording(lang).unknown[0]
    for polarity, condition, label in itertools.product(
        ("neg", "nonneg"), ("ambig", "disambig"), (0, 1)
    ):
        yield {
            "id": f"{polarity}-{condition}-{label}",
            "lang": lang,
            "context": f"Xaqo, Brun ({label})",
            "question": f"{polarity}?",
            "options": ["Xaqo", "Brun", unknown],
            "label": 2 if condition == "ambig" else label,
            "target": 0 if polarity == "neg" else 1,
            "condition": condition,
            "polarity": polarity,
        }


def _choices(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
    data = folder / "choices.jsonl"
    files.write_rows(data, [row for lang in langs for row in _items(lang)])
    items, _ = pairs.load(str(data))
    of = {(item.id, item.lang): item for item in items}
    requests = choices.plan(items, ["letters"], ["free"], "all", [], seed)
    found = []
    for name, known in SCRIPTS.items():
        says = folder / f"choices-{name}.jsonl"
        files.write_rows(says, (_chosen(name, of[r.statement, r.lang], r) for r in requests))
        measured = api.choices(
            str(says), data=str(data), engine="replay", out=folder / f"choices-{name}"
        )
        got = _figures(measured)
        shown = ("accuracy", "accuracy", "bbq-bias", "bbq-bias", "position-bias")
        cells = ("ambig", "disambig", "ambig", "disambig", "ambig")
        values = [got.get((metric, cell)) for metric, cell in zip(shown, cells, strict=True)]
        right = all(
            a == b or (a is not None and b is not None and math.isclose(a, b, abs_tol=1e-9))
            for a, b in zip(values, known, strict=True)
        )
        fault = (
            "" if right else f"measured {values}, expected {list(known)}; check the judge choice"
        )
        fault = fault or "; ".join(again("choices", measured))
        what = "accuracy, bias and position bias as expected" if right else fault
        found.append(Check(f"choices, always {name}", len(requests), what, fault))
    return found


def _chosen(name: str, item: Statement, request: Request) -> dict[str, Any]:
    """Return the reply of a scripted model, as a row of a file of recorded replies."""
    order = [int(key) for key in request.options]
    number = {"first": order[0], "unknown": item.extra["unknown"]}.get(name, item.extra["target"])
    assert isinstance(number, int)
    reply = frames.said(frames.frames(request.lang)["letters"], item, order, number)
    return {
        "statement": item.id,
        "lang": request.lang,
        "probe": request.probe,
        "prompt": request.messages[-1]["content"],
        "response": f"({reply})",
    }


def _figures(measured: Run) -> dict[tuple[str, str], float | None]:
    scores = score([measured.folder], by=["condition"])
    return {(s.metric, str(s.by.get("condition"))): s.value for s in scores}


def _planted(lang: str, stance: str) -> str:
    """Write a text with a known stance, from phrases in the files of its language."""
    own = packs.read_toml(registry.PROMPTS / "stance" / f"{lang}.toml")
    phrase = {
        "for": own["for"][0],
        "against": own["against"][0],
        "refusal": packs.read_toml(registry.PROMPTS / "refusal" / f"{lang}.toml")["refuses"][0],
    }
    wanted = ("for", "against") if stance == "both" else (stance,)
    return ". ".join(plain_phrases(phrase[side])[0][0] for side in wanted) + "."


def _essays(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
    from genprobe.datasets import statements

    pack, frame = packs.load_pack("essays"), "essay"
    items, _ = statements.load("builtin", langs)
    items = [s for lang in langs for s in [s for s in items if s.lang == lang][: 2 * len(STANCES)]]
    requests = plan(items, pack, [frame], seed, 1)
    rows, planted = [], Counter[str]()
    for number, request in enumerate(requests):
        stance = STANCES[number % len(STANCES)]
        planted[stance] += 1
        rows.append(
            {
                "statement": request.statement,
                "lang": request.lang,
                "probe": request.probe,
                "prompt": request.messages[-1]["content"],
                "response": _planted(request.lang, stance),
            }
        )
    says, table = folder / "essays.jsonl", folder / "statements.jsonl"
    files.write_rows(says, rows)
    files.write_rows(table, ({"id": s.id, "lang": s.lang, "text": s.text} for s in items))
    measured = api.essays(
        str(says), data=str(table), langs=langs, probes=[frame], engine="replay", samples=1,
        out=folder / "essays",
    )  # fmt: skip
    read = Counter(judgment.label for judgment in measured.judgments("stance"))
    fault = "" if read == planted else f"read {dict(read)}, planted {dict(planted)}"
    for one in score([measured.folder], by=[]):  # word lists are right in half of blind essays
        if not fault and one.metric.startswith("argues-") and one.value is not None:
            fault = f"{one.metric} is {one.value}, and rests on word lists alone"
    fault = fault or "; ".join(again("essays", measured))
    what = fault or ", ".join(f"{planted[s]} {s}" for s in STANCES) + ", as planted"
    return [Check("essays", len(rows), what, fault)]


class _Scripted:
    """An engine that gives the planted answer to the numbered texts of `_judge`."""

    identity = Identity("scripted", "1", "scripted", "1", "float32", "none")

    def __init__(self, says: Callable[[Request, int], str]) -> None:
        self.says = says

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Response]:
        for request in requests:
            number = next(
                int(word[1:-1])
                for word in request.messages[0]["content"].split()
                if word.startswith("#") and word.endswith("#")
            )
            yield Response(request.id, self.says(request, number), "stop", "", None, None)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _judge(folder: Path, langs: Sequence[str], seed: int) -> list[Check]:
    """Check the LLM judge on 40 texts; for one in four, the label depends on the labels' order."""
    rubric = llm.load_rubric("stance")
    labels = list(rubric.labels)
    items = [Item("en", "", "", f"Text #{number}# of many.") for number in range(40)]

    def says(request: Request, number: int) -> str:
        if number % 4 == 3:
            return next(iter(request.options))  # the label that is listed first
        return labels[number % len(labels)]

    judge = llm.make(_Scripted(says), "stance")
    verdicts = list(judge.many(items))
    due = [llm.UNCLEAR if n % 4 == 3 else labels[n % len(labels)] for n in range(len(items))]
    wrong = sum(v.label != want for v, want in zip(verdicts, due, strict=True))
    flips = sum(int(str(v.fields["order_flips"])) for v in verdicts)
    pairs_ = sum(int(str(v.fields["order_pairs"])) for v in verdicts)
    turned = sum(n % 4 == 3 for n in range(len(items))) * len(rubric.wordings)
    fault = f"{wrong} verdicts differ from the planted ones; check judges/llm.py" if wrong else ""
    if not fault and flips != turned:
        fault = f"{flips} of {pairs_} change with the order, planted {turned}; check judges/llm.py"
    what = fault or f"as planted: all verdicts, and {flips} of {pairs_} pairs change with the order"
    return [Check("LLM judge", 4 * len(items), what, fault)]
