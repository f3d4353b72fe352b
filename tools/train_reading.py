"""Train the learned reader of sentences from the texts in `tools/reading_text/`.

    python tools/train_reading.py            writes genprobe/linguistics/learned.bin
    python tools/train_reading.py --check    cross-validates; writes nothing

In `tools/reading_text/<lang>.txt`, all written for this project, a line is `labels sentence`:
- a agrees, d disagrees, s calls it a stereotype, f denies that, o none of these; `sd` is both.
- `a/d I {share|do not share} it.` is two sentences, one for each label; every brace chooses.
- `= I think that *`, `! I would not say that *`, `? Some say that *`: frames, in which any
  sentence says the same, the opposite, nothing.

The statements of `prompts/statements/` are sentences that answer nothing, and so is the first half
of a sentence in a language whose verb stands last. Sentences of one line
stay together in cross-validation. The same files, torch and processor give the same weights.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from genprobe import text  # noqa: E402
from genprobe.linguistics import learned  # noqa: E402
from genprobe.resources import packs  # noqa: E402

TEXT = ROOT / "tools" / "reading_text"
STANCE, KIND = {"a": 1, "d": 2}, {"s": 1, "f": 2}
TURNED = (0, 2, 1)
LINES = 3  # a part of words that stands in fewer is not learnt
VERB_LAST = ("bn", "fa", "hi", "kk", "mr")
HALVED = 3  # every so many of their sentences are cut in half, too
UNITS, SIZE, NETS, EPOCHS, BATCH, RATE, DROP = 96, 48, 3, 16, 64, 4e-3, 0.4
FRAMED = 0.3  # share of sentences that stand in a frame
FIRM = 0.8  # probability from which a reading is taken


# A sentence as it is seen, plain and then in frames, each with what it says.
Forms = list[tuple[list[learned.Word], tuple[int, int]]]


class Sentence(NamedTuple):
    """A sentence, the line that it is of, and what it says: stance and kind, 0 to 2 each."""

    lang: str
    line: int
    text: str
    says: tuple[int, int]


def sentences() -> tuple[list[Sentence], dict[str, list[tuple[str, str]]]]:
    """All sentences, and the frames of each language."""
    found, frames = [], {}
    for path in sorted(TEXT.glob("*.txt")):
        for line, row in enumerate(path.read_text("utf-8").splitlines()):
            labels, pattern = row.split(" ", 1)
            if labels in "=!?":
                frames.setdefault(path.stem, []).append((labels, pattern))
                continue
            for k, label in enumerate(labels.split("/")):
                one = re.sub(r"\{([^}]*)\}", lambda m, k=k: m[1].split("|")[k], pattern)
                stance = max(STANCE.get(char, 0) for char in label)
                kind = max(KIND.get(char, 0) for char in label)
                found.append(Sentence(path.stem, line, one, (stance, kind)))
        with (ROOT / "prompts" / "statements" / f"{path.stem}.csv").open(encoding="utf-8") as rows:
            for line, row in enumerate(csv.DictReader(rows)):
                found.append(Sentence(path.stem, -1 - line, row["text"], (0, 0)))
    return found, frames


def framed(one: Sentence, frame: tuple[str, str]) -> Sentence:
    """The sentence in a frame."""
    stance, kind = one.says
    says = {"=": (stance, kind), "!": (TURNED[stance], TURNED[kind]), "?": (0, 0)}[frame[0]]
    return one._replace(text=frame[1].replace("*", one.text[:1].lower() + one.text[1:]), says=says)


def seen(one: Sentence) -> list[learned.Word]:
    """Its words as the networks see them."""
    fold = packs.load_language(one.lang).fold
    return learned.words(one.lang, text.replace(text.normalise(one.text), fold))


class Net(nn.Module):
    """One of the networks while it learns."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = nn.EmbeddingBag(parts, SIZE, mode="sum")
        nn.init.normal_(self.parts.weight, 0, 0.1)
        self.groups = nn.Linear(len(learned.GROUPS), SIZE)
        self.row = nn.GRU(SIZE, UNITS, bidirectional=True, batch_first=True)
        self.out = nn.Linear(4 * UNITS, 6)
        self.drop = nn.Dropout(DROP)

    def forward(self, batch: Sequence[Sequence[learned.Word]]) -> torch.Tensor:
        sizes = [len(words) for words in batch]
        every = [word for words in batch for word in words]
        counts = torch.tensor([len(word.parts) for word in every])
        rows = torch.tensor([row for word in every for row in word.parts], dtype=torch.long)
        parts = self.parts(rows, counts.cumsum(0) - counts)
        parts = parts / counts.clamp(min=1).sqrt()[:, None]
        if self.training:  # words that were never seen are known by their stems alone
            parts = parts * (torch.rand(len(every), 1) > 0.15) / 0.85
        groups = [[w.groups >> g & 1 for g in range(len(learned.GROUPS))] for w in every]
        x = self.drop(parts + self.groups(torch.tensor(groups, dtype=torch.float32)))
        padded = nn.utils.rnn.pad_sequence(x.split(sizes), batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(
            padded, torch.tensor(sizes), batch_first=True, enforce_sorted=False
        )
        y, _ = nn.utils.rnn.pad_packed_sequence(self.row(packed)[0], batch_first=True)
        there = (torch.arange(y.shape[1]) < torch.tensor(sizes)[:, None])[..., None]
        highest = (y - 1e4 * ~there).max(1)[0]
        mean = (y * there).sum(1) / there.sum(1)
        return self.out(self.drop(torch.cat([highest, mean], -1)))


def train(known: Sequence[Forms], parts: int, seed: int) -> Net:
    """One network. parts: how many are known."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = Net(parts)
    steps = EPOCHS * -(-len(known) // BATCH)
    adam = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-4)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=steps, pct_start=0.1)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    for _ in range(EPOCHS):
        order = rng.permutation(len(known))
        for start in range(0, len(order), BATCH):
            some = [known[i] for i in order[start : start + BATCH]]
            some = [
                forms[rng.integers(1, len(forms)) if rng.random() < FRAMED else 0] for forms in some
            ]
            z = net([words for words, _ in some])
            said = torch.tensor([says for _, says in some])
            cost = loss(z[:, :3], said[:, 0]) + loss(z[:, 3:], said[:, 1])
            adam.zero_grad()
            cost.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            adam.step()
            rate.step()
    return net.eval()


def finished(nets: Sequence[Net]) -> learned.Arrays:
    """The networks as they are kept: parts in steps of an int8, the rest in half precision."""

    def stacked(*names: str) -> np.ndarray:
        found = [
            np.stack([dict(n.named_parameters())[x].detach().numpy() for x in names]) for n in nets
        ]
        return np.stack(found)

    def sides(name: str) -> np.ndarray:
        return stacked(f"row.{name}_l0", f"row.{name}_l0_reverse")

    parts = stacked("parts.weight")[:, 0]
    scale = np.abs(parts).max(1) / np.float32(127)
    return learned.Arrays(
        np.round(parts / scale[:, None]).astype(np.int8),
        scale,
        stacked("groups.weight")[:, 0].swapaxes(1, 2),
        stacked("groups.bias")[:, 0],
        sides("weight_ih"),
        sides("weight_hh"),
        sides("bias_ih"),
        sides("bias_hh"),
        stacked("out.weight")[:, 0],
        stacked("out.bias")[:, 0],
    )


def prepared() -> tuple[list[Sentence], list[Forms]]:
    """All sentences, and each with three frames around it as the networks see them."""
    rows, frames = sentences()
    last = [one for one in rows if one.lang in VERB_LAST and len(one.text.split()) > 2]
    for one in last[::HALVED]:
        words = one.text.split()
        rows.append(one._replace(text=" ".join(words[: len(words) // 2]), says=(0, 0)))
    rng = np.random.default_rng(0)
    known = []
    for one in rows:
        forms = [one] + [
            framed(one, frames[one.lang][rng.integers(len(frames[one.lang]))]) for _ in range(3)
        ]
        known.append([(seen(form), form.says) for form in forms])
    return rows, known


def fitted(rows: Sequence[Sentence], known: Sequence[Forms], nets: int) -> learned.Model:
    """A model of several networks, as it is read from its file."""
    lines: dict[int, set[tuple[str, int]]] = {}
    for one, forms in zip(rows, known, strict=True):
        for words, _ in forms:
            for part in {part for word in words for part in word.parts}:
                lines.setdefault(part, set()).add((one.lang, one.line))
    kept = sorted(part for part, where in lines.items() if len(where) >= LINES)
    row = {part: at for at, part in enumerate(kept)}
    known = [
        [
            ([w._replace(parts=tuple(row[p] for p in w.parts if p in row)) for w in words], says)
            for words, says in forms
        ]
        for forms in known
    ]
    arrays = finished([train(known, len(kept), seed) for seed in range(nets)])
    languages = tuple(sorted({one.lang for one in rows}))
    return learned.load(learned.write(learned.Model(arrays, row, FIRM, languages)))


def folds(rows: Sequence[Sentence], count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Indices to train on and to test, lines whole."""
    lines = sorted({(one.lang, one.line) for one in rows})
    fold = dict(zip(lines, np.random.default_rng(0).permutation(len(lines)) % count, strict=True))
    of = np.array([fold[one.lang, one.line] for one in rows])
    for k in range(count):
        yield np.flatnonzero(of != k), np.flatnonzero(of == k)


def check(count: int, nets: int) -> None:
    """Print what is read right of lines that were held out, by threshold and by language."""
    rows, known = prepared()
    table = []
    for learn, test in folds(rows, count):
        model = fitted([rows[i] for i in learn], [known[i] for i in learn], nets)
        for i in test:
            fold = packs.load_language(rows[i].lang).fold
            sentence = text.replace(text.normalise(rows[i].text), fold)
            (p,) = model.read(rows[i].lang, [sentence])
            table += [(rows[i].lang, 0, rows[i].says[0], *p[:2])]
            table += [(rows[i].lang, 1, rows[i].says[1], *p[2:])]
    for axis, name in enumerate(("stance", "stereotype")):
        part = [row for row in table if row[1] == axis]
        print(f"{name}: {sum(row[2] > 0 for row in part)} sentences say something of it")
        for firm in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            print(f"  from {firm}:", scores(part, firm))
    for lang in sorted({row[0] for row in table}):
        print(f"{lang}:", scores([row for row in table if row[0] == lang], FIRM))


def scores(part: Sequence[tuple[str, int, int, float, float]], firm: float) -> str:
    """Right, turned round and invented among what is firm; the share of answers that is found."""
    read = [(says, 1 + (q > p)) for _, _, says, p, q in part if max(p, q) >= firm]
    right = sum(says == said for says, said in read)
    turned = sum(says not in (0, said) for says, said in read)
    found = right / max(1, sum(row[2] > 0 for row in part))
    precision = right / max(1, len(read))
    return (
        f"{right} right, {turned} turned, {len(read) - right - turned} invented, "
        f"precision {precision:.3f}, found {found:.3f}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="cross-validate and write nothing")
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--nets", type=int, default=NETS, help="networks whose mean is taken")
    given = options.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if given.check:
        check(given.folds, given.nets)
        return
    data = learned.write(fitted(*prepared(), given.nets))
    learned.FILE.write_bytes(data)
    print(f"{learned.FILE}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
