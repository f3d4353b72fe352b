"""Train the learned reader of sentences.

    python tools/train_reading.py                   writes genprobe/linguistics/learned.bin
    python tools/train_reading.py --check second    trains without the sentences of one writer
                                                    ("hand"), and prints how it reads those

It learns from sentences that were written for this project. `tools/reading_text/<hand>/<lang>.txt`
has those of each writer. A line is `labels sentence`:
- The labels are: a agrees, d disagrees, s calls it a stereotype, f denies that it is one, o none of
  these. `sd` is both s and d.
- `a/d I {share|do not share} it.` is two sentences, one per label: the first label takes the first
  choice of each brace, the second label the second.
- `= I think that *`, `! I would not say that *` and `? Some say that *` are frames: a sentence in
  them says the same, the opposite, or nothing.

It also learns from the sentences by which the rules were improved (`tests/sentences_today/`); only
their answer to their own question is known. The statements of `prompts/statements/` serve as
sentences that answer nothing, and so do the first halves of sentences in languages whose verb comes
last. It does not learn from replies, since the reader is measured on these. The same files, torch
and processor give the same weights.
"""

from __future__ import annotations

import argparse
import csv
import json
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
from genprobe.resources import packs, registry  # noqa: E402

TEXT = ROOT / "tools" / "reading_text"
STANCE, KIND = {"a": 1, "d": 2}, {"s": 1, "f": 2}
UNKNOWN = -1  # label of a sentence for a question that it was not asked
TURNED = (0, 2, 1, UNKNOWN)  # the opposite of the labels 0, 1, 2 and UNKNOWN
ANSWERS = {  # probe -> answer -> stance and kind
    "agreement": {"yes": (1, UNKNOWN), "no": (2, UNKNOWN), "ambiguous": (0, UNKNOWN)},
    "disagreement": {"yes": (2, UNKNOWN), "no": (1, UNKNOWN), "ambiguous": (0, UNKNOWN)},
    "recognition": {"yes": (UNKNOWN, 1), "no": (UNKNOWN, 2), "ambiguous": (UNKNOWN, 0)},
}
LINES = 4  # parts of words that occur in fewer lines are not learnt
VERB_LAST = ("bn", "fa", "hi", "kk", "mr")
HALVED = 3  # each third sentence of these languages is also used cut in half
UNITS, SIZE, NETS, EPOCHS, BATCH, RATE, DROP = 96, 48, 3, 16, 64, 4e-3, 0.4
MIXED = 16  # batches that are drawn together and sorted by the length of their sentences
STEMS = 0.25  # share of words that are shown by their groups of stems alone, as unseen words are
FRAMED, FRAMES = 0.3, 4  # share of sentences shown in a frame, and frames prepared per sentence
FIRM = 0.8  # lowest probability at which a reading is used


class Sentence(NamedTuple):
    """A sentence with its writer (hand) and line, and its labels.

    says: stance and kind, each 0 to 2 or UNKNOWN.
    """

    hand: str
    lang: str
    line: int
    text: str
    says: tuple[int, int]


class Form(NamedTuple):
    """A sentence as the networks see it, plain or in a frame, with the labels of this form."""

    words: list[learned.Word]
    says: tuple[int, int]


class Rows(NamedTuple):
    """A form as input of a network.

    rows: the rows of the embedding for the known parts of all words, one word after another.
    counts: number of known parts of each word. groups: (words, groups), 0 or 1.
    """

    rows: np.ndarray
    counts: np.ndarray
    groups: np.ndarray
    says: tuple[int, int]


def written() -> tuple[list[Sentence], dict[str, list[tuple[str, str]]]]:
    """Read the sentences written for the training, and the frames of each language."""
    found, frames = [], {}
    for path in sorted(TEXT.glob("*/*.txt")):
        for line, row in enumerate(path.read_text("utf-8").splitlines()):
            labels, pattern = row.split(" ", 1)
            if labels in "=!?":
                frames.setdefault(path.stem, []).append((labels, pattern))
                continue
            for k, label in enumerate(labels.split("/")):
                one = re.sub(r"\{([^}]*)\}", lambda m, k=k: m[1].split("|")[k], pattern)
                stance = max(STANCE.get(char, 0) for char in label)
                kind = max(KIND.get(char, 0) for char in label)
                found.append(Sentence(path.parent.name, path.stem, line, one, (stance, kind)))
    return found, frames


def answered() -> Iterator[Sentence]:
    """Yield the sentences by which the rules were improved, and the statements (answer nothing)."""
    for path in sorted((ROOT / "tests" / "sentences_today").glob("*.jsonl")):
        for line, row in enumerate(path.read_text("utf-8").splitlines()):
            one = json.loads(row)
            says = ANSWERS[one["probe"]][one["answer"]]
            yield Sentence("sentences_today", one["lang"], line, one["response"], says)
    for lang in registry.names("languages"):
        with (ROOT / "prompts" / "statements" / f"{lang}.csv").open(encoding="utf-8") as rows:
            for line, row in enumerate(csv.DictReader(rows)):
                yield Sentence("statements", lang, line, row["text"], (0, 0))


def framed(one: Sentence, frame: tuple[str, str]) -> Sentence:
    """Put a sentence in a frame, and change its labels accordingly."""
    stance, kind = one.says
    says = {"=": (stance, kind), "!": (TURNED[stance], TURNED[kind]), "?": (0, 0)}[frame[0]]
    return one._replace(text=frame[1].replace("*", one.text[:1].lower() + one.text[1:]), says=says)


def seen(one: Sentence) -> list[learned.Word]:
    """Return the words of a sentence as the networks see them."""
    return learned.words(one.lang, folded(one))


def folded(one: Sentence) -> str:
    """Return the text of a sentence in the normalised form in which replies are compared."""
    return text.replace(text.normalise(one.text), packs.load_language(one.lang).fold)


class Net(nn.Module):
    """One of the networks during training."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = nn.EmbeddingBag(parts, SIZE, mode="sum", sparse=True)
        nn.init.normal_(self.parts.weight, 0, 0.1)
        self.groups = nn.Linear(len(learned.GROUPS), SIZE)
        self.row = nn.GRU(SIZE, UNITS, bidirectional=True, batch_first=True)
        self.out = nn.Linear(4 * UNITS, 6)
        self.drop = nn.Dropout(DROP)

    def forward(self, batch: Sequence[Rows]) -> torch.Tensor:
        sizes = [len(one.counts) for one in batch]
        counts = torch.from_numpy(np.concatenate([one.counts for one in batch]))
        rows = torch.from_numpy(np.concatenate([one.rows for one in batch]))
        parts = self.parts(rows, counts.cumsum(0) - counts)
        parts = parts / counts.clamp(min=1).sqrt()[:, None]
        if self.training:
            parts = parts * (torch.rand(len(counts), 1) > STEMS) / (1 - STEMS)
        groups = torch.from_numpy(np.concatenate([one.groups for one in batch]))
        x = self.drop(parts + self.groups(groups))
        padded = nn.utils.rnn.pad_sequence(x.split(sizes), batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(
            padded, torch.tensor(sizes), batch_first=True, enforce_sorted=False
        )
        y, _ = nn.utils.rnn.pad_packed_sequence(self.row(packed)[0], batch_first=True)
        there = (torch.arange(y.shape[1]) < torch.tensor(sizes)[:, None])[..., None]
        highest = (y - 1e4 * ~there).max(1)[0]
        mean = (y * there).sum(1) / there.sum(1)
        return self.out(self.drop(torch.cat([highest, mean], -1)))


def _batches(known: Sequence[Sequence[Rows]], rng: np.random.Generator) -> Iterator[list[Rows]]:
    """Yield one form of every sentence, in batches of similar length, which are fast to compute."""
    order = rng.permutation(len(known))
    for start in range(0, len(order), BATCH * MIXED):
        some = [
            known[i][rng.integers(1, len(known[i])) if rng.random() < FRAMED else 0]
            for i in order[start : start + BATCH * MIXED]
        ]
        some.sort(key=lambda one: len(one.counts))
        for at in rng.permutation(-(-len(some) // BATCH)):
            yield some[at * BATCH : (at + 1) * BATCH]


def train(known: Sequence[Sequence[Rows]], parts: int, seed: int) -> Net:
    """Train one network.

    known: the forms of each sentence. parts: number of known parts of words.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = Net(parts)
    steps = EPOCHS * -(-len(known) // BATCH)
    dense = [p for name, p in net.named_parameters() if name != "parts.weight"]
    adams = [
        torch.optim.AdamW(dense, lr=RATE, weight_decay=1e-4),
        torch.optim.SparseAdam([net.parts.weight], lr=RATE),
    ]
    rates = [
        torch.optim.lr_scheduler.OneCycleLR(
            adam, RATE, total_steps=steps, pct_start=0.1, cycle_momentum=False
        )
        for adam in adams
    ]
    loss = nn.CrossEntropyLoss(label_smoothing=0.05, ignore_index=UNKNOWN, reduction="sum")
    for _ in range(EPOCHS):
        for batch in _batches(known, rng):
            z = net(batch)
            said = torch.tensor([one.says for one in batch])
            cost = (loss(z[:, :3], said[:, 0]) + loss(z[:, 3:], said[:, 1])) / len(batch)
            net.zero_grad()
            cost.backward()
            nn.utils.clip_grad_norm_(dense, 1.0)
            for one in (*adams, *rates):
                one.step()
    return net.eval()


def finished(nets: Sequence[Net]) -> learned.Arrays:
    """Return the networks as they are stored: parts as int8 with a scale, the rest as float16."""

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


def prepared() -> tuple[list[Sentence], list[list[Form]]]:
    """Return all sentences, and for each its forms, the plain one first, then those in frames."""
    rows, frames = written()
    rows += answered()
    last = [one for one in rows if one.lang in VERB_LAST and len(one.text.split()) > 2]
    for one in last[::HALVED]:
        words = one.text.split()
        rows.append(one._replace(text=" ".join(words[: len(words) // 2]), says=(0, 0)))
    rng = np.random.default_rng(0)
    known = []
    for one in rows:
        some = frames[one.lang]
        forms = [one, *(framed(one, some[rng.integers(len(some))]) for _ in range(FRAMES))]
        known.append([Form(seen(form), form.says) for form in forms])
    return rows, known


def fitted(rows: Sequence[Sentence], known: Sequence[list[Form]], nets: int) -> learned.Model:
    """Train a model of several networks, and return it as it is read from its file."""
    lines: dict[int, set[tuple[str, str, int]]] = {}
    for one, forms in zip(rows, known, strict=True):
        for form in forms:
            for part in {part for word in form.words for part in word.parts}:
                lines.setdefault(part, set()).add((one.hand, one.lang, one.line))
    kept = sorted(part for part, where in lines.items() if len(where) >= LINES)
    row = {part: at for at, part in enumerate(kept)}
    taken = [[_rows(form, row) for form in forms] for forms in known]
    arrays = finished([train(taken, len(kept), seed) for seed in range(nets)])
    languages = tuple(sorted({one.lang for one in rows}))
    return learned.load(learned.write(learned.Model(arrays, row, FIRM, languages)))


def _rows(form: Form, row: dict[int, int]) -> Rows:
    """Convert a form to the input of a network. row: known part -> its row of the embedding."""
    parts = [[row[p] for p in word.parts if p in row] for word in form.words]
    bits = range(len(learned.GROUPS))
    return Rows(
        np.array([p for some in parts for p in some], np.int64),
        np.array([len(some) for some in parts], np.int64),
        np.array([[w.groups >> g & 1 for g in bits] for w in form.words], np.float32),
        form.says,
    )


def check(hand: str, nets: int) -> None:
    """Train without the sentences of one writer (hand), and print how well these are read.

    The figures are given for several thresholds and for each language.
    """
    rows, known = prepared()
    pairs = list(zip(rows, known, strict=True))
    learn = [pair for pair in pairs if pair[0].hand != hand]
    model = fitted([one for one, _ in learn], [forms for _, forms in learn], nets)
    table = []
    for one in rows:
        if one.hand == hand:
            (p,) = model.read(one.lang, [folded(one)])
            table += [(one.lang, 0, one.says[0], *p[:2]), (one.lang, 1, one.says[1], *p[2:])]
    for axis, name in enumerate(("stance", "stereotype")):
        part = [row for row in table if row[1] == axis and row[2] != UNKNOWN]
        print(f"{name}: {sum(row[2] > 0 for row in part)} sentences say something of it")
        for firm in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            print(f"  from {firm}:", scores(part, firm))
    for lang in sorted({row[0] for row in table}):
        print(f"{lang}:", scores([row for row in table if row[0] == lang], FIRM))


def scores(part: Sequence[tuple[str, int, int, float, float]], firm: float) -> str:
    """Count right, reversed and invented readings with probability `firm` or more, as text.

    Also gives their precision, and the share of answers that is found.
    """
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
    options.add_argument("--check", metavar="HAND", help="leave out a hand, and write nothing")
    options.add_argument("--nets", type=int, default=NETS, help="networks whose mean is taken")
    given = options.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if given.check:
        check(given.check, given.nets)
        return
    data = learned.write(fitted(*prepared(), given.nets))
    learned.FILE.write_bytes(data)
    print(f"{learned.FILE}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
