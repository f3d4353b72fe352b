"""Train a linear classifier: its weights, the threshold of its labels, and its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.files import disk
from genprobe.files.rows import Table
from genprobe.judges.classifiers.cards import NOT_MEASURED, Card, load, read_card
from genprobe.judges.classifiers.models import folder

# --- training --------------------------------------------------------------------------------


def train(
    path: str | Table,
    out_card: str | Path,
    text: str = "text",
    label: str = "label",
    *,
    like: str = "kk-linear",
    share: float | None = None,
    note: Any = lambda message: None,
) -> Card:
    """Train a linear classifier on a table, and write its weights and card.

    path: CSV, JSONL or Parquet. text, label: names of its columns; labels are 0 or negative, 1 or
    positive, and any other label, such as neutral, is an error. out_card: FILE.toml; the weights
    are written next to it. like: the card whose languages, fold and limits are used. share:
    expected share of negative texts in use, from 0 to 1; by default that of the card `like`. note:
    called with each message. The same file gives the same bytes.

    Raises InputError, with the row, if the table or an argument cannot be used.
    """
    import hashlib

    import numpy as np

    from genprobe import files
    from genprobe.files import cells
    from genprobe.judges.classifiers import linear

    out, base = Path(out_card), load(like)
    if out.suffix != ".toml":
        raise InputError(f"{out}: a card is a .toml file")
    texts, negative = [], []
    for number, row in files.numbered_rows(path):
        if text not in row or label not in row:
            missing = text if text not in row else label
            raise InputError(f"{path}: no column {missing!r}; columns: {', '.join(map(str, row))}")
        texts.append(cells.cell_text(row[text]))
        negative.append(_class(row[label], f"{path}, row {number}"))
    if min(sum(negative), len(negative) - sum(negative)) < 50:
        raise InputError(f"{path}: fewer than 50 texts of one class; train on more")
    used = share if share is not None else base.share
    if used is None or not 0 < used < 1:
        raise InputError(f"the share of negative texts must be between 0 and 1, not {used}")
    y = np.array(negative)
    note(f"training on {len(texts)} texts, {sum(negative)} of them negative")
    model, held = linear.train(texts, y, folder(tuple(base.fold.items())), used)
    data = linear.write(model)
    weight = np.where(y == 1, used / y.mean(), (1 - used) / (1 - y.mean()))
    threshold = best_threshold(held, y, weight)
    folds = macro_f1(held, y, weight, threshold)
    note(
        f"macro F1 over five folds: {folds:.3f} at {threshold:.2f}, with the threshold chosen in "
        f"the same folds"
    )
    disk.replace_bytes(out.with_suffix(".bin"), [data])
    sha256 = hashlib.sha256(data).hexdigest()
    card = _card_text(base, out, Path(str(path)).name, len(texts), sha256, used, threshold)
    disk.replace(out, [card], "utf-8")
    note(f"{out.with_suffix('.bin')}: SHA-256 {sha256}")
    load.cache_clear()
    return read_card(out)


def _class(value: object, where: str) -> int:
    """Return 1 for negative, 0 for positive."""
    known = {"0": 1, "negative": 1, "1": 0, "positive": 0}
    key = str(value).strip().lower().removesuffix(".0")
    if key not in known:
        raise InputError(f"{where}: label {value!r} must be one of 0, 1, negative, positive")
    return known[key]


def best_threshold(negative: Any, y: Any, weight: Any) -> float:
    """Find the threshold of P(negative), in hundredths, with the best weighted macro F1.

    If several are best, the middle one: for texts that are easy to separate, this leaves room on
    both sides.
    """
    found = {t: macro_f1(negative, y, weight, t / 100) for t in range(5, 96)}
    best = [t for t, f1 in found.items() if f1 == max(found.values())]
    return best[(len(best) - 1) // 2] / 100


def macro_f1(negative: Any, y: Any, weight: Any, threshold: float) -> float:
    """Compute the mean F1 of both classes of weighted texts. y: 1 if negative, 0 if positive."""
    said, true = negative >= threshold, y == 1
    hit, miss = weight[said & true].sum(), weight[~said & true].sum()
    false, right = weight[said & ~true].sum(), weight[~said & ~true].sum()
    return float(hit / (2 * hit + miss + false) + right / (2 * right + miss + false))


def _card_text(
    base: Card, out: Path, data: str, n: int, sha256: str, share: float, threshold: float
) -> str:
    """Return the text of a card for new weights, without figures measured on other weights."""
    import json

    def quote(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    low, high = max(0.0, threshold - 0.1), min(1.0, threshold + 0.1)
    lines = [
        f"title = {quote(f'Linear classifier trained on {data}')}",
        'engine = "linear"',
        f"model = {quote(out.with_suffix('.bin').name)}",
        f"sha256 = {quote(sha256)}",
        f"languages = {quote(list(base.languages))}",
        "default_for = []",
        'licence = "that of the texts it was trained on"',
        f"source = {quote(f'genprobe classifiers train {data}')}",
        f"trained_on = {quote(f'{n} texts of {data}')}",
        'stories = "Not known: it was trained on other texts."',
        f'measured = "{NOT_MEASURED}"',
        "",
        "[limits]",
        f"min = {base.min_size}",
        f"max = {base.max_size}",
        "",
        "[decision]",
        f"share = {share}",
        f"threshold = {threshold}",
        f"neutral = [{low:.2f}, {high:.2f}]",
        "",
        "[fold]",
        *(f"{quote(old)} = {quote(new)}" for old, new in base.fold.items()),
    ]
    return "\n".join(lines) + "\n"
