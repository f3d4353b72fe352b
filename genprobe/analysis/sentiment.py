"""Measure the accuracy of a classifier on labelled texts, and write it into its card.

Figures are per language and kind of text, because accuracy on reviews says little about stories:
macro F1 over the classes that the texts have, the share of right labels among negative and positive
texts (`negative or positive`), the calibration error, and how often each true class is called
negative, on which a corrected NegRate rests. Intervals: percentiles of 2,000 bootstrap resamples of
the texts; Wilson's for shares.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genprobe import files
from genprobe.analysis.forecast import Price
from genprobe.errors import InputError
from genprobe.files import cells, disk, door
from genprobe.files.rows import Table
from genprobe.judges import Item
from genprobe.judges.classifiers import cards, models
from genprobe.judges.classifiers.cards import (
    CALLED,
    KINDS,
    LABELS,
    MACRO_F1,
    NOT_MEASURED,
    Card,
    Measured,
)
from genprobe.judges.classifiers.models import Prediction
from genprobe.resources import packs, registry
from genprobe.statistics import RESAMPLES, SEED, Array, wilson

POLAR = "negative or positive"
CALIBRATION = "calibration error"
BINS = 15
FEWEST = 20  # texts of a language that a measurement needs
_WORDS = {"0": "negative", "1": "positive", "n": "negative", "p": "positive", "u": "neutral"}


@dataclass(frozen=True)
class Labelled:
    """A text, its language, and the label that people gave it: one of `LABELS`."""

    lang: str
    text: str
    label: str


def read(path: Table, lang: str | None = None) -> list[Labelled]:
    """Read the labelled texts of a table.

    Columns: `lang`, `response` or `text`, `sentiment` or `label`.

    Labels are negative, neutral, positive (0 and 1 are negative and positive, as in KazSAnDRA);
    rows without one are left out. lang: language of all texts, for a table without that column.
    Raises InputError for a missing column or an unknown label.
    """
    found = []
    for number, row in files.numbered_rows(path):
        text, label = (
            next((c for c in names if c in row), None)
            for names in (("response", "text"), ("sentiment", "label"))
        )
        if text is None or label is None or not (lang or "lang" in row):
            raise InputError(
                f"{path}: needs the columns response (or text), sentiment (or label) and lang (or "
                f"--lang); columns: {', '.join(map(str, row))}"
            )
        said = cells.cell_text(row[label]).strip().lower().removesuffix(".0")
        said = _WORDS.get(said, said)
        if said in ("", "none", "nan"):
            continue
        if said not in LABELS:
            raise InputError(
                f"{path}, row {number}: label {said!r} must be one of {', '.join(LABELS)}"
            )
        code = packs.language_code(cells.cell_text(row.get("lang")) or lang or "")
        found.append(Labelled(code, cells.cell_text(row[text]), said))
    if not found:
        raise InputError(f"{path}: no row has a label")
    return found


@dataclass(frozen=True)
class Result:
    """The predictions of a classifier for the labelled texts of one language.

    speed: texts per second of wall time. processor: seconds of one core for all texts. tokens: of a
    model's prompts and of its replies, None if not counted.
    """

    name: str
    lang: str
    predictions: list[Prediction]
    truth: list[str]
    speed: float
    processor: float = 0.0
    tokens: tuple[int, int] | None = None

    @property
    def table(self) -> Array:
        """Count true labels by predicted label, (3, 4): negative, neutral, positive, unscored."""
        said = [*LABELS, "unscored"]
        found = np.zeros((3, 4), int)
        for label, prediction in zip(self.truth, self.predictions, strict=True):
            found[LABELS.index(label), said.index(prediction.label)] += 1
        return found

    def f1(self) -> tuple[float, float, float]:
        """Compute macro F1 with its interval."""
        table = self.table
        rng = np.random.default_rng(SEED)
        n = int(table.sum())
        drawn = rng.multinomial(n, (table / n).ravel(), RESAMPLES).reshape(-1, 3, 4)
        low, high = np.quantile(macro_f1(drawn, table), [0.025, 0.975])
        return float(macro_f1(table[None], table)[0]), float(low), float(high)

    def polar(self) -> tuple[float, float, float, int] | None:
        """Compute the accuracy on negative and positive texts, by the likelier of these labels.

        A text for which both are equally likely, as of a rule that calls it neutral, is not right.
        """
        right = [
            (p.positive > p.negative if label == "positive" else p.positive < p.negative)
            for p, label in zip(self.predictions, self.truth, strict=True)
            if label != "neutral" and p.negative is not None and p.positive is not None
        ]
        interval = wilson(sum(right), len(right))
        return (sum(right) / len(right), *interval, len(right)) if interval else None

    def calibration(self) -> tuple[float, float, float, int] | None:
        """Compute the expected calibration error of the likeliest label, its interval, and its n.

        Returns None if no text got a label. A neutral text is left out where the classifier has no
        such class.

        Source: Guo et al. 2017, "On calibration of modern neural networks", 15 equal bins.
        """
        sure, right = [], []
        for p, label in zip(self.predictions, self.truth, strict=True):
            if p.negative is None or p.positive is None:
                continue
            if p.neutral is None and label == "neutral":
                continue
            shares = (p.negative, p.neutral or 0.0, p.positive)
            sure.append(max(shares))
            right.append(LABELS[int(np.argmax(shares))] == label)
        if not sure:
            return None
        a, b = np.array(sure), np.array(right, float)
        rng = np.random.default_rng(SEED)
        draws = []
        for _ in range(500):
            at = rng.integers(0, len(a), len(a))
            draws.append(calibration_error(a[at], b[at]))
        low, high = np.quantile(draws, [0.025, 0.975])
        return float(calibration_error(a, b)), float(low), float(high), len(a)

    def called(self) -> dict[str, tuple[int, int]]:
        """Count for each true class: texts labelled negative, texts with a label."""
        table = self.table[:, :3]
        return {label: (int(table[at, 0]), int(table[at].sum())) for at, label in enumerate(LABELS)}


def macro_f1(tables: Array, like: Array) -> Array:
    """Average F1 over the classes that occur in `like`: (tables, 3, 4) -> (tables,)."""
    hit = np.diagonal(tables[:, :, :3], axis1=1, axis2=2)
    both = tables.sum(2) + tables[:, :, :3].sum(1)
    f1 = np.divide(2 * hit, both, out=np.zeros(hit.shape), where=both > 0)
    return np.asarray(f1[:, like.sum(1) > 0].mean(1))


def calibration_error(sure: Array, right: Array) -> float:
    """Compute the mean distance between confidence and accuracy over bins, weighted by size."""
    at = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.abs(np.bincount(at, sure - right, BINS))
    return float(gaps.sum() / len(sure))


def fitting(texts: Sequence[Labelled]) -> list[str]:
    """Return the names of cards that need no download and read a language of the texts."""
    langs = {t.lang for t in texts}
    known = [cards.load(name) for name in cards.names()]
    found = [card.name for card in known if card.default_for and langs & {*card.languages}]
    if not found:
        raise InputError(
            f"no classifier that comes with genprobe reads {', '.join(sorted(langs))}; name a card "
            "(`genprobe list classifiers`)"
        )
    return found


def run(name: str, texts: Sequence[Labelled]) -> list[Result]:
    """Classify labelled texts; return a result for each language that the classifier knows."""
    classifier = models.open(name)
    found: list[Result] = []
    for lang in sorted({t.lang for t in texts}):
        if not {lang, "*"} & set(classifier.card.languages):
            continue
        part = [t for t in texts if t.lang == lang]
        if not found:
            classifier.predict([part[0].text], lang)  # the set-up is not part of the speed
        started, used = time.perf_counter(), time.process_time()
        predictions = classifier.predict([t.text for t in part], lang)
        speed = len(part) / max(1e-9, time.perf_counter() - started)
        used = time.process_time() - used
        if all(t.label != "neutral" for t in part):
            predictions = [_two(classifier.card, p) for p in predictions]
        truth = [t.label for t in part]
        found.append(Result(classifier.card.name, lang, predictions, truth, speed, used))
    if not found:
        raise InputError(f"the classifier {name!r} reads none of the languages of the texts")
    return found


def _two(card: Card, said: Prediction) -> Prediction:
    """Use no neutral label if neither the classifier nor the texts have that class."""
    if said.negative is None or said.neutral is not None or said.positive is None:
        return said
    label = "negative" if said.negative >= card.threshold else "positive"
    return said._replace(label=label)


def judged(judge: Any, texts: Sequence[Labelled]) -> list[Result]:
    """Let a judge of replies (the LLM judge) label texts; its `unclear` is `unscored`.

    The probability of a label is the share of the judge's answers with that label.
    """
    found = []
    for lang in sorted({t.lang for t in texts}):
        part = [t for t in texts if t.lang == lang]
        started, used = time.perf_counter(), time.process_time()
        before = judge.tokens
        verdicts = list(judge.many([Item(lang, "", "", t.text) for t in part]))
        speed = len(part) / max(1e-9, time.perf_counter() - started)
        used = time.process_time() - used
        tokens = None
        if before is not None and judge.tokens is not None:
            tokens = (judge.tokens[0] - before[0], judge.tokens[1] - before[1])
        said = [
            Prediction(v.label, *(v.score or 0.0 if v.label == label else 0.0 for label in LABELS))
            if v.label in LABELS
            else models.UNSCORED
            for v in verdicts
        ]
        truth = [t.label for t in part]
        found.append(Result(judge.name, lang, said, truth, speed, used, tokens))
    return found


def figures(result: Result, kind: str, on: str) -> list[Measured]:
    """Make the entries of a card for one language and kind of text."""
    n = len(result.truth)
    if n < FEWEST:
        raise InputError(
            f"{n} labelled texts in {result.lang} are too few; measure on at least {FEWEST}"
        )
    rows = [(MACRO_F1, n, *result.f1())]
    if polar := result.polar():
        rows.append((POLAR, polar[3], *polar[:3]))
    if calibration := result.calibration():
        rows.append((CALIBRATION, calibration[3], *calibration[:3]))
    for label, (hits, total) in result.called().items():
        if interval := wilson(hits, total):
            rows.append((f"{label} {CALLED}", total, hits / total, *interval))
    return [
        Measured(
            on, count, metric, round(value, 4), round(low, 4), round(high, 4), kind, result.lang
        )
        for metric, count, value, low, high in rows
    ]


def into_card(
    name: str, path: Table, kind: str, on: str = "", lang: str | None = None
) -> list[Measured]:
    """Measure a classifier and write the figures into its card.

    name: of a card, or its path. path: labelled texts (`read`). kind: of `KINDS`. on: what the card
    says about the texts; the file's name if empty. Figures of the same kind and language are
    replaced. Raises InputError and leaves the card unchanged if it fails.
    """
    if kind not in KINDS:
        raise registry.unknown("kind of text", kind, KINDS)
    card = cards.load(name)
    on = on or Path(str(path)).name
    found = [f for r in run(name, read(path, lang)) for f in figures(r, kind, on)]
    write(card, found)
    return found


def write(card: Card, found: Sequence[Measured]) -> None:
    """Put figures into a card in place of those of the same kinds and languages."""
    replaced = {(f.kind, f.lang) for f in found}
    lines, kept = door.content(card.path).decode("utf-8").splitlines(), []
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("["):
            blocks.append([])
        blocks[-1].append(line)
    for block in blocks:
        values = dict(line.split(" = ", 1) for line in block if " = " in line)
        about = tuple(values.get(key, "").strip('"') for key in ("kind", "lang"))
        if block and block[0].startswith("[[measured]]") and about in replaced:
            continue
        kept += [line for line in block if line != f'measured = "{NOT_MEASURED}"']
    while kept and not kept[-1].strip():
        kept.pop()
    for figure in found:
        kept += ["", "[[measured]]"]
        for key in ("on", "n", "metric", "value", "low", "high", "kind", "lang"):
            value = getattr(figure, key)
            quoted = '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
            kept.append(f"{key} = {quoted if isinstance(value, str) else value}")
    content = "\n".join(kept) + "\n"
    disk.replace_bytes(card.path, [content.encode()])
    cards.load.cache_clear()


def kappa(a: Sequence[str], b: Sequence[str]) -> float:
    """Compute Cohen's kappa of two readings of the same texts.

    It is 1 if both give every text the same label. Source: Cohen 1960.
    """
    n = len(a)
    same = sum(x == y for x, y in zip(a, b, strict=True)) / n
    chance = sum(a.count(x) * b.count(x) for x in set(a)) / n**2
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)


def agreement(one: Result, other: Result) -> float:
    """Compute the kappa of two classifiers on the same texts.

    A text that gets no label counts as having a label of its own.
    """
    return kappa([p.label for p in one.predictions], [p.label for p in other.predictions])


HEAD = (
    *("lang", "classifier", "n", "right", "macro F1", "neg/pos", "calibration", "people"),
    *("texts/s", "cpu s/1,000", "tokens/1,000", "price/1,000"),
)


def rows(results: Sequence[Result], price: Price | None = None) -> list[tuple[str, ...]]:
    """Make a row of `HEAD` for each result: accuracy, calibration, cost.

    people: Cohen's kappa with people's labels. Costs are for 1,000 texts: seconds of one core,
    tokens of a model, and what these cost at `price`.
    """
    found: list[tuple[str, ...]] = []
    for r in results:
        f1, polar, n = r.f1(), r.polar(), len(r.truth)
        calibration = r.calibration()
        said = [p.label for p in r.predictions]
        right = sum(a == b for a, b in zip(said, r.truth, strict=True))
        tokens, cost = "-", "-"
        if r.tokens is not None:
            tokens = f"{1000 * sum(r.tokens) / n:,.0f}"
            cost = "-" if price is None else f"{1000 * price.of(*r.tokens) / n:.2f}"
        found.append(
            (
                *(r.lang, r.name, str(n), f"{right / n:.2f}"),
                f"{f1[0]:.2f} ({f1[1]:.2f} to {f1[2]:.2f})",
                f"{polar[0]:.2f} ({polar[1]:.2f} to {polar[2]:.2f})" if polar else "-",
                f"{calibration[0]:.2f}" if calibration else "-",
                *(f"{kappa(said, r.truth):.2f}", f"{r.speed:,.0f}"),
                *(f"{1000 * r.processor / n:.3g}", tokens, cost),
            )
        )
    return found


def between(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Make a row with the kappa of every two classifiers of a language."""
    return [
        (a.lang, a.name, b.name, f"{agreement(a, b):.2f}")
        for at, a in enumerate(results)
        for b in results[at + 1 :]
        if a.lang == b.lang
    ]
