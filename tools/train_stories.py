"""Train the embedded classifier of stories from the texts in `tools/story_text/`.

    python tools/train_stories.py            writes classifiers/stories.bin
    python tools/train_stories.py --check    cross-validates by plot (genre) and writes nothing; the
                                             card has the figures on unseen stories

`tools/story_text/` contains texts written for this project:
- `<lang>.tsv`: stories, `label <tab> genre <tab> text`. The label is n (negative), 0 (neutral) or p
  (positive).
- `sentences_<lang>.tsv`: sentences, mostly turning points and endings, `label <tab> text`.
- `lexicon.txt`: stems of words in four languages; each line is a concept with its polarity.
- `plots_<lang>.tsv`: stories that each have a different plot.
- `*.jsonl`: stories by other writers: `lang, response, sentiment, genre`. `hand3` and
  `tests/seen/stories.jsonl` were once test sets; they are now used for development and training.

Step 1 fits the weights of words: logistic regression of three classes with L2 penalty, on sentences
and on stories (in which the last sentence weighs most). The lexicon's polarity of a concept is a
starting point that all languages share; the texts change it. Step 2 fits a small network that reads
the story from the scores of its sentences, which come from folds without the story's genre. The
same files give the same weights, to the byte.
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
SEEN = ROOT / "tests" / "seen" / "stories.jsonl"  # once a test set, now for development
DEVELOPMENT = {"stories", "hand3"}  # files by writers of no other training text
LABELS = {"n": 0, "0": 1, "p": 2, "negative": 0, "neutral": 1, "positive": 2}
FOLDS = 8
# Kind of feature -> the standard deviation of the prior of its weights.
KIND = {3: 0.4, 4: 0.8, 5: 1.0, 6: 0.8, 7: 0.7, 8: 0.6, 9: 0.5, 0: 0.7, 1: 0.5, 10: 0.7, 11: 0.4}
PLACES = (0.8, 0.45, 0.3)  # weights of the last sentence, the one before it, and all others
PENALTY = 0.5
CONCEPT = 1.3  # prior standard deviation of a concept's weight from the lexicon's
UNITS = 8
SHORT = 0.2  # weight of a single sentence in the network's training
NETS = 5


@dataclass
class Text:
    """A story or a sentence to train on.

    genre: the genre of a story; the file of a sentence. label: 0 (negative), 1 (neutral) or 2
    (positive). hand: its file. told: whether it is a story, not a refusal.
    """

    lang: str
    genre: str
    label: int
    text: str
    hand: str
    told: bool = True


def stories() -> list[Text]:
    """Read all stories."""
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
            genre = f"{path.stem}-{plot.split('/')[0]}"  # the other half is the manner of telling
            told = bool(row["sentiment"])
            found.append(Text(row["lang"], genre, label, row["response"], path.stem, told))
    # Stories of the control model, so that the self-test reads them right.
    rng = random.Random(0)
    for kind in control.kinds("kk"):
        for _ in range(20 if kind.sentiment else 2):
            text = " ".join(kind.draw(rng))
            label = LABELS.get(kind.sentiment, 1)
            found.append(Text("kk", f"control-{kind.label}", label, text, "control"))
    return found


def sentences() -> list[Text]:
    """Read all single sentences."""
    found = []
    for path in sorted(TEXT.glob("sentences_*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            label, text = line.split("\t")
            found.append(Text(path.stem[10:], path.stem, LABELS[label], text, path.stem))
    return found


def lexicon() -> tuple[np.ndarray, dict[int, int]]:
    """Return the polarities of the concepts, (concepts,), and bucket of a stem -> concept."""
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
    """Count the features of each sentence of some texts.

    Returns an array (sentences, buckets) of counts / sqrt(words of the sentence), scaled by KIND;
    the same without scaling; and the index of the text of each sentence.
    """
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
    """Return the weight of each sentence in its story, (texts, sentences).

    text: the index of the text of each sentence. count: number of texts.
    """
    weights = np.zeros(len(text))
    last = np.flatnonzero(np.diff(text, append=-1))
    for at in range(len(text)):
        end = last[np.searchsorted(last, at)]
        weights[at] = PLACES[min(end - at, 2)]
    return csr_matrix((weights, (text, np.arange(len(text)))), (count, len(text)))


def logistic(x: csr_matrix, y: np.ndarray, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Fit a multinomial regression with L2 penalty; return its weights, (columns, 3).

    weight: of each row. penalty: of each column.
    """
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
    """All texts as matrices, which are computed once."""

    def __init__(self) -> None:
        self.stories, self.sentences = stories(), sentences()
        self.polarity, concept = lexicon()
        sign = self.polarity
        self.prior = np.column_stack([sign, np.abs(sign), sign == 0])
        sx, su, self.text = matrix([s.text for s in self.stories])
        tx, tu, text = matrix([s.text for s in self.sentences])
        # A line of several sentences is represented by their sum.
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
        """Fit the weights of words to the stories in `use` and the sentences in `tell` (or all)."""
        tell = np.ones(len(self.yt), bool) if tell is None else tell
        x = vstack([self.xs[use], self.xt[tell]], format="csr")
        y = np.concatenate([self.y[use], self.yt[tell]])
        weight = np.concatenate([np.ones(int(use.sum())), np.full(int(tell.sum()), 0.8)])
        w = logistic(x, y, weight, self.penalty())
        w[-1] = 0  # no constant: the network has its own
        return w

    def summary(self, w: np.ndarray, which: np.ndarray) -> np.ndarray:
        x, _ = story.summary(self.x @ w, self.text, len(self.stories))
        return x[which]


def folds(genre: np.ndarray) -> np.ndarray:
    """Return the fold of each story; stories of one genre share it, in all languages."""
    names = sorted(set(genre), key=lambda g: hashlib.sha256(g.encode()).hexdigest())
    number = {g: i % FOLDS for i, g in enumerate(names)}
    return np.array([number[g] for g in genre])


def net(
    x: np.ndarray, y: np.ndarray, short: np.ndarray, ys: np.ndarray, decay: float = 3.0
) -> tuple[np.ndarray, np.ndarray]:
    """Fit the network of `story.network`; return its two layers.

    Its logits are the means of those of several networks, trained from different starts, which are
    put side by side as one wider network. x, y: stories. short, ys: single sentences, which weigh
    less.
    """
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
    """Summarise each text by weights that were fitted without it.

    Returns (stories, FEATURES) for the stories in `use`, with weights fitted without their genre,
    and (sentences, FEATURES), with weights fitted without the sentence. Here a sentence is treated
    as a short story.
    """
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
    """Test by cross-validation over plots (genres) and print the results.

    Neither the weights of words nor the network are fitted to the plots that are tested.
    """
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
    """Print the accuracy of a set of predictions. p: (texts, 3) probabilities. y: true labels."""
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
    """Train the classifier on all stories, or on those in `use`."""
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
    """Return the value of KIND of the features in each bucket, (buckets,)."""
    found = np.ones(1 << story.BITS)
    for kind, _, buckets in story.words([t.text for t in data.stories + data.sentences]).features():
        found[buckets] = KIND[kind]
    return found


def _short(values: np.ndarray) -> np.ndarray:
    """Round to six significant digits, which rounding errors do not change."""
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
