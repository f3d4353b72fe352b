"""Train the embedded classifier of stories from the texts in `tools/story_text/`.

    python tools/train_stories.py            writes classifiers/stories.bin
    python tools/train_stories.py --check    cross-validates by plot (genre) and writes nothing; the
                                             card has the figures on stories that nobody saw

In `tools/story_text/`, all written for this project:
- `<lang>.tsv`: stories, `label <tab> genre <tab> text`; label n, 0 or p.
- `sentences_<lang>.tsv`: sentences, mostly turns and endings: `label <tab> text`.
- `lexicon.txt`: stems of four languages, a line a concept, with its polarity.
- `plots_<lang>.tsv`: stories, each with a plot of its own.
- `*.jsonl`: stories of other hands: `lang, response, sentiment, genre`. `hand3` and
  `tests/seen/stories.jsonl` were blind once: development stories, which are trained on since.

Step 1, the weights of words: logistic regression of three classes, L2, on sentences and on
stories (their last sentence weighs most). What the lexicon says of a concept is a start that all
languages share; text moves it. Step 2, the story: a small network on the z of sentences that come
from folds without the story's genre. The same files give the same weights, to the byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack, vstack

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from genprobe.engines.control import stories as control  # noqa: E402
from genprobe.judges.classifiers import story  # noqa: E402

TEXT = ROOT / "tools" / "story_text"
SEEN = ROOT / "tests" / "seen" / "stories.jsonl"  # blind once, development since
DEVELOPMENT = {"stories", "hand3"}  # hands that no training text is from, until they were added
LABELS = {"n": 0, "0": 1, "p": 2, "negative": 0, "neutral": 1, "positive": 2}
FOLDS = 8
# How much a kind of feature may weigh: the root of its prior variance.
KIND = {3: 0.4, 4: 0.8, 5: 1.0, 6: 0.8, 7: 0.7, 8: 0.6, 9: 0.5, 0: 0.7, 1: 0.5, 10: 0.7, 11: 0.4}
PLACES = (0.8, 0.45, 0.3)  # of the last sentence, the one before, all others
PENALTY = 0.5
CONCEPT = 1.3  # prior deviation of a concept from what the lexicon says
UNITS = 8
SHORT = 0.2  # weight of a single sentence in the network's training
NETS = 5


@dataclass
class Text:
    """lang, genre (of a story; of a sentence its file), label 0 to 2, text, hand (file);
    told: it is a story, not a refusal."""

    lang: str
    genre: str
    label: int
    text: str
    hand: str
    told: bool = True


def stories() -> list[Text]:
    """All stories."""
    found = []
    for path in sorted(TEXT.glob("*.tsv")):
        if path.name.startswith("sentences_"):
            continue
        for line in path.read_text("utf-8").splitlines():
            label, genre, text = line.split("\t")
            lang = path.stem.removeprefix("plots_")
            found.append(Text(lang, genre, LABELS[label], text, path.stem))
    for path in (*sorted(TEXT.glob("*.jsonl")), SEEN):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            label = LABELS.get(row["sentiment"], 1)
            plot = row.get("genre") or row["id"]
            genre = f"{path.stem}-{plot.split('/')[0]}"  # the other half is the manner
            told = bool(row["sentiment"])
            found.append(Text(row["lang"], genre, label, row["response"], path.stem, told))
    # The control model's, so that the self-test knows what it hears.
    rng = random.Random(0)
    for kind in control.kinds("kk"):
        for _ in range(20 if kind.sentiment else 2):
            text = " ".join(kind.draw(rng))
            label = LABELS.get(kind.sentiment, 1)
            found.append(Text("kk", f"control-{kind.label}", label, text, "control"))
    return found


def sentences() -> list[Text]:
    """All single sentences."""
    found = []
    for path in sorted(TEXT.glob("sentences_*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            label, text = line.split("\t")
            found.append(Text(path.stem[10:], path.stem, LABELS[label], text, path.stem))
    return found


def lexicon() -> tuple[np.ndarray, dict[int, int]]:
    """(concepts,) polarities, and the concept of each bucket."""
    polarity, concept = [], {}
    for line in (TEXT / "lexicon.txt").read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        first, *columns = line.split("|")
        for stem in ",".join(columns).split(","):
            stem = stem.strip().replace("\u200c", " ").replace("-", " ")
            parts = stem.rstrip("$").split(" ")
            if not stem:
                continue
            if len(parts) > 1:
                a, b = parts[0][:4], parts[-1][:4]
                between = ["x"] if len(parts) > 2 else []
                kind = 11 if between else 10
                buckets = [_pair(a, between, b, kind)]
                if not between:
                    buckets.append(_pair(a, ["x"], b, 11))
            elif stem.endswith("$") or len(stem) < 3:
                buckets = [story.hashes(parts[0], 0)]
            else:
                buckets = [story.hashes(parts[0][:9], min(len(parts[0]), 9))]
            for bucket in buckets:
                concept.setdefault(bucket, len(polarity))
        polarity.append(float(first))
    return np.array(polarity), concept


def _pair(a: str, between: list[str], b: str, kind: int) -> int:
    return story.hashes(" ".join([a, *between, b]), kind)


def matrix(texts: list[str]) -> tuple[csr_matrix, csr_matrix, np.ndarray]:
    """(sentences, buckets) counts / sqrt(words), scaled by KIND; the same unscaled; and the text
    of each sentence."""
    found = story.words(texts)
    n = np.bincount(found.sentence)
    rows, columns, kinds = [], [], []
    for kind, at, buckets in found.features():
        rows.append(found.sentence[at])
        columns.append(buckets)
        kinds.append(np.full(len(buckets), KIND[kind]))
    row, column, scale = map(np.concatenate, (rows, columns, kinds))
    shape = (len(n), 1 << story.BITS)
    value = 1 / np.sqrt(n)[row]
    return (
        csr_matrix((value * scale, (row, column)), shape),
        csr_matrix((value, (row, column)), shape),
        found.text,
    )


def places(text: np.ndarray, count: int) -> csr_matrix:
    """(texts, sentences): how much each sentence weighs in its story."""
    weights = np.zeros(len(text))
    last = np.flatnonzero(np.diff(text, append=-1))
    for at in range(len(text)):
        end = last[np.searchsorted(last, at)]
        weights[at] = PLACES[min(end - at, 2)]
    return csr_matrix((weights, (text, np.arange(len(text)))), (count, len(text)))


def logistic(x: csr_matrix, y: np.ndarray, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """(columns, 3) weights of multinomial regression; penalty: of each column."""
    k, size = story.CLASSES, x.shape[1]
    xt = x.T.tocsr()
    target = np.eye(k)[y]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w = flat.reshape(size, k)
        z = x @ w
        z = z - z.max(1, keepdims=True)
        logs = z - np.log(np.exp(z).sum(1, keepdims=True))
        value = -(weight * (logs * target).sum(1)).sum() + (penalty[:, None] * w * w).sum() / 2
        gradient = xt @ (weight[:, None] * (np.exp(logs) - target)) + penalty[:, None] * w
        return float(value), gradient.ravel()

    start = np.zeros(size * k)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(found.x).reshape(size, k)


class Data:
    """All texts as matrices, made once."""

    def __init__(self) -> None:
        self.stories, self.sentences = stories(), sentences()
        self.polarity, concept = lexicon()
        sign = self.polarity
        self.prior = np.column_stack([sign, np.abs(sign), sign == 0])
        sx, su, self.text = matrix([s.text for s in self.stories])
        tx, tu, text = matrix([s.text for s in self.sentences])
        # A line of several sentences counts as their mean.
        join = csr_matrix((np.ones(len(text)), (text, np.arange(len(text)))))
        tx, tu = join @ tx, join @ tu
        self.kept = np.flatnonzero(np.asarray((sx != 0).sum(0) + (tx != 0).sum(0)).ravel() > 0)
        size = (1 << story.BITS, len(self.polarity))
        at = np.array(sorted(concept))
        to = np.array([concept[b] for b in at])
        self.concepts = csr_matrix((np.ones(len(at)), (at, to)), size)
        self.x = self._with(sx, su)  # sentences of stories
        self.place = places(self.text, len(self.stories))
        self.xs = (self.place @ self.x).tocsr()  # stories
        self.xt = self._with(tx, tu)
        self.y = np.array([s.label for s in self.stories])
        self.yt = np.array([s.label for s in self.sentences])
        self.lang = np.array([s.lang for s in self.stories])
        self.genre = np.array([s.genre for s in self.stories])

    def _with(self, scaled: csr_matrix, plain: csr_matrix) -> csr_matrix:
        hits = plain @ self.concepts
        both = csr_matrix(np.column_stack([hits @ self.prior[:, i] for i in range(3)]))
        one = csr_matrix(np.ones((scaled.shape[0], 1)))
        return hstack([scaled[:, self.kept], CONCEPT * hits, both, one], format="csr")

    def penalty(self) -> np.ndarray:
        found = np.full(self.xs.shape[1], PENALTY)
        found[-4:] = 0.01
        return found

    def fit(self, use: np.ndarray, tell: np.ndarray | None = None) -> np.ndarray:
        """Weights from the stories of `use` and the sentences of `tell` (all)."""
        tell = np.ones(len(self.yt), bool) if tell is None else tell
        x = vstack([self.xs[use], self.xt[tell]], format="csr")
        y = np.concatenate([self.y[use], self.yt[tell]])
        weight = np.concatenate([np.ones(int(use.sum())), np.full(int(tell.sum()), 0.8)])
        w = logistic(x, y, weight, self.penalty())
        w[-1] = 0  # the constant: the network has its own
        return w

    def summary(self, w: np.ndarray, which: np.ndarray) -> np.ndarray:
        x, _ = story.summary(self.x @ w, self.text, len(self.stories))
        return x[which]


def folds(genre: np.ndarray) -> np.ndarray:
    """The fold of each story, by its genre, in whatever language."""
    names = sorted(set(genre), key=lambda g: hashlib.sha256(g.encode()).hexdigest())
    number = {g: i % FOLDS for i, g in enumerate(names)}
    return np.array([number[g] for g in genre])


def net(
    x: np.ndarray, y: np.ndarray, short: np.ndarray, ys: np.ndarray, decay: float = 3.0
) -> tuple[np.ndarray, np.ndarray]:
    """The network of `story.network`, the mean of the logits of several starts,
    which is one wider network; single sentences weigh less."""
    weight = np.concatenate([np.ones(len(y)), np.full(len(ys), SHORT)])[:, None]
    x, y = np.vstack([x, short]), np.concatenate([y, ys])
    mean, spread = x.mean(0), x.std(0) + 1e-6
    u = (x - mean) / spread
    nets = []
    target = np.eye(story.CLASSES)[y]
    for seed in range(NETS):
        rng = np.random.default_rng(seed)
        a = rng.normal(0, 0.3, (x.shape[1] + 1, UNITS))
        b = rng.normal(0, 0.3, (UNITS + 1, story.CLASSES))

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            a = flat[: (x.shape[1] + 1) * UNITS].reshape(-1, UNITS)
            b = flat[(x.shape[1] + 1) * UNITS :].reshape(-1, story.CLASSES)
            h = np.tanh(u @ a[:-1] + a[-1])
            z = h @ b[:-1] + b[-1]
            z = z - z.max(1, keepdims=True)
            logs = z - np.log(np.exp(z).sum(1, keepdims=True))
            value = -(weight * logs * target).sum() + decay / 2 * (
                (a[:-1] ** 2).sum() + (b[:-1] ** 2).sum()
            )
            dz = weight * (np.exp(logs) - target)
            db = np.vstack([h.T @ dz + decay * b[:-1], dz.sum(0)])
            dh = (dz @ b[:-1].T) * (1 - h * h)
            da = np.vstack([u.T @ dh + decay * a[:-1], dh.sum(0)])
            return float(value), np.concatenate([da.ravel(), db.ravel()])

        found = minimize(
            loss,
            np.concatenate([a.ravel(), b.ravel()]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 400},
        )
        flat = found.x
        a = flat[: (x.shape[1] + 1) * UNITS].reshape(-1, UNITS)
        b = flat[(x.shape[1] + 1) * UNITS :].reshape(-1, story.CLASSES)
        nets.append((np.vstack([a[:-1] / spread[:, None], a[-1] - (mean / spread) @ a[:-1]]), b))
    hidden = np.hstack([a for a, _ in nets])
    rows = np.vstack([b[:-1] for _, b in nets])
    out = np.vstack([rows, np.sum([b[-1] for _, b in nets], axis=0)]) / NETS
    return hidden, out


def held_out(data: Data, use: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(stories, FEATURES) and (sentences, FEATURES) summaries, each from words learnt without its
    genre, or without the sentence, which is a short story here; of the stories of `use`."""
    fold, part = folds(data.genre), np.arange(len(data.yt)) % FOLDS
    found = np.zeros((len(data.y), story.FEATURES))
    short = np.zeros((len(data.yt), story.FEATURES))
    for k in range(FOLDS):
        here = use & (fold == k)
        w = data.fit(use & (fold != k), part != k)
        found[here] = data.summary(w, here)
        z = data.xt[part == k] @ w
        short[part == k] = story.summary(z, np.arange(len(z)), len(z))[0]
    return found, short


def check(data: Data) -> None:
    """Cross-validate by plot: neither the words nor the network have seen it."""
    every = np.ones(len(data.y), bool)
    fold = folds(data.genre)
    x, short = held_out(data, every)
    p = np.zeros((len(data.y), story.CLASSES))
    for k in range(FOLDS):
        hidden, out = net(x[fold != k], data.y[fold != k], short, data.yt)
        p[fold == k] = story.softmax(story.network(x[fold == k], hidden, out))
    for lang in sorted(set(data.lang)):
        report(lang, p[data.lang == lang], data.y[data.lang == lang])
    report("all", p, data.y)
    for lang in sorted(set(data.lang)):
        here = [
            i
            for i, s in enumerate(data.stories)
            if s.hand in DEVELOPMENT and s.lang == lang and s.told
        ]
        if here:
            report(f"dev {lang}", p[here], data.y[here])


def report(name: str, p: np.ndarray, y: np.ndarray) -> None:
    """Print what a set of predictions is worth."""
    guess = p.argmax(1)
    polar = y != 1
    pair = ((p[:, 2] > p[:, 0]) == (y == 2))[polar].mean()
    f1 = []
    for k in range(story.CLASSES):
        hit = ((guess == k) & (y == k)).sum()
        f1.append(2 * hit / max(1, (guess == k).sum() + (y == k).sum()))
    loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-9)).mean()
    print(
        f"{name:6} n {len(y):4}  negative/positive {pair:.3f}  macro F1 {np.mean(f1):.3f} "
        f"({' '.join(f'{f:.2f}' for f in f1)})  accuracy {(guess == y).mean():.3f}  "
        f"log loss {loss:.3f}"
    )


def build(data: Data, use: np.ndarray | None = None) -> story.StoryModel:
    """The classifier, from all stories or those of `use`."""
    use = np.ones(len(data.y), bool) if use is None else use
    x, short = held_out(data, use)
    hidden, out = net(x[use], data.y[use], short, data.yt)
    w = data.fit(use)
    size = len(data.kept)
    total = np.zeros((1 << story.BITS, story.CLASSES))
    scale = np.zeros(1 << story.BITS)
    total[data.kept] = w[:size]
    kinds = _kinds(data)
    total *= kinds[:, None]
    del scale
    concept = w[size : size + len(data.polarity)] * CONCEPT
    concept = concept + data.prior @ w[-4:-1]
    total += data.concepts @ concept
    total -= total.mean(1, keepdims=True)
    step = float(np.abs(total).max()) / 127
    weights = np.round(total / step).astype(np.int8)
    return story.StoryModel(weights, float(f"{step:.6g}"), _short(hidden), _short(out))


def _kinds(data: Data) -> np.ndarray:
    """(buckets,) the KIND of what is in each bucket."""
    found = np.ones(1 << story.BITS)
    for kind, _, buckets in story.words([t.text for t in data.stories + data.sentences]).features():
        found[buckets] = KIND[kind]
    return found


def _short(values: np.ndarray) -> np.ndarray:
    """Six significant digits: what rounding errors cannot reach."""
    return np.array([float(f"{v:.6g}") for v in values.ravel()]).reshape(values.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="cross-validate, write nothing")
    parser.add_argument("-o", type=Path, default=ROOT / "classifiers" / "stories.bin")
    asked = parser.parse_args()
    data = Data()
    if asked.check:
        check(data)
        return
    content = story.write(build(data))
    asked.o.write_bytes(content)
    print(f"{asked.o}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
