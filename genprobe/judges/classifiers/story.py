"""The embedded classifier of stories: it scores each sentence, then the story as a whole.

A story is folded (case, marks) and cut into sentences at end marks. The features of a word are its
beginnings of 3 to 9 letters, the whole word and its ending; the features of two neighbours, or of
two words with one between, are their first four letters. So a new inflected form is known by its
stem. Each hashed feature has three weights, for negative, neutral and positive. A sentence of n
words has

    z = (sum of the weights) / sqrt(n)

and the probabilities of a story are the softmax of a small network (one layer of tanh, the mean of
five starts). Its inputs are z of the last sentence, of the one before it, of the first and of the
mean of all, and the lowest and highest value of positive - negative.
Both parts are trained by `tools/train_stories.py` on stories written for this project.

The time is linear in the length of a text. All sums are of whole numbers, so a story has the same
probabilities alone and in any batch.
"""

from __future__ import annotations

import hashlib
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.judges.classifiers import linear

Array = NDArray[Any]

MAGIC = b"genprobe-story-1\n"
MOST = 1e9  # no number of a trained classifier is as large; NaN is not below it either
BITS = 19  # log2 of the number of buckets
CLASSES = 3  # negative, neutral, positive
BEGINNINGS = range(3, 10)  # letters
ENDING = 4  # letters of a word's ending, for words of at least 6
PAIR = 4  # letters that stand for a word in a pair
FEATURES = 17

_SPACE, _STOP, _TEXT, _DROP = 0, 1, 2, 3  # letters are code points above
_CODES = 0x20000
_STOPS = ".!?…؟۔。！？।॥\n\r\u2028\u2029"
_JOINED = "'’ʼ`"  # dropped: didn't is one word
_SAME = {"ё": "е", "ي": "ی", "ك": "ک", "ى": "ی", "ة": "ه", "أ": "ا", "إ": "ا", "ؤ": "و"}


@cache
def _table() -> Array:
    """Return the table of code points after folding."""
    return np.array([_folded(code) for code in range(_CODES)], np.uint32)


def _folded(code: int) -> int:
    char = chr(code)
    if char == "\0":
        return _TEXT
    if char in _STOPS:
        return _STOP
    if 0xD800 <= code < 0xE000:
        return _SPACE
    char = unicodedata.normalize("NFKC", char).lower()[:1] or " "
    char = _SAME.get(char, char)
    kind = unicodedata.category(char)
    if kind in ("Mn", "Me", "Sk") or char in _JOINED or char in "\u00ad\u0640":
        return _DROP
    return ord(char) if kind[0] in "LN" and 3 < ord(char) < _CODES else _SPACE


def _bucket(hashes: Array, kind: int) -> Array:
    return linear.bucket(hashes, kind * 0x9E37, BITS)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some texts.

    begin, end: positions in the cumulative sums of the hash; sentence: (words,) number of the
    sentence, counted over all texts; text: (sentences,) number of the text.
    """

    sums: Array
    inverse: Array
    begin: Array
    end: Array
    sentence: Array
    text: Array

    def _hash(self, start: Array, stop: Array) -> Array:
        return (self.sums[stop] - self.sums[start]) * self.inverse[start]

    def features(self) -> Iterator[tuple[int, Array | slice, Array]]:
        """Yield for each kind of feature: its number, the words that have it, their buckets."""
        size = self.end - self.begin
        for n in BEGINNINGS:
            at = np.flatnonzero(size >= n)
            start = self.begin[at]
            yield n, at, _bucket(self._hash(start, start + n), n)
        yield 0, slice(None), _bucket(self._hash(self.begin, self.end), 0)
        at = np.flatnonzero(size >= ENDING + 2)
        yield 1, at, _bucket(self._hash(self.end[at] - ENDING, self.end[at]), 1)
        short = self._hash(self.begin, self.begin + np.minimum(size, PAIR))
        for gap in (1, 2):
            at = np.flatnonzero(self.sentence[gap:] == self.sentence[:-gap])
            yield 9 + gap, at + gap, _bucket(short[at] * linear.PAIR + short[at + gap], 9 + gap)


def words(texts: Sequence[str]) -> Words:
    """Fold texts and find their words and sentences; a sentence has at least one word."""
    joined = "\0".join(t.replace("\0", " ") for t in texts) + "\0"
    raw = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = _table()[np.minimum(raw, _CODES - 1)]
    codes = codes[codes != _DROP]
    powers, inverse = linear.powers(len(codes))
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes.astype(np.uint64) * powers[: len(codes)], out=sums[1:])
    letter = codes > _DROP
    edge = np.diff(letter.astype(np.int8), prepend=0, append=0)
    begin, end = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    stops = np.cumsum((codes == _STOP) | (codes == _TEXT))[begin]
    new = np.diff(stops, prepend=-1) != 0
    text = np.cumsum(codes == _TEXT)[begin[new]]
    return Words(sums, inverse, begin, end, np.cumsum(new) - 1, text)


def hashes(word: str, kind: int) -> int:
    """Return the bucket of one stem, for training. kind: as yielded by `features`."""
    for number, _, buckets in words([word]).features():
        if number == kind and len(buckets):
            return int(buckets[0])
    raise ValueError(f"{word!r} has no feature of kind {kind}")


def summary(z: Array, text: Array, count: int) -> tuple[Array, Array]:
    """Return the inputs of the network, (texts, FEATURES), and which texts have a sentence.

    z: (sentences, 3). text: (sentences,), the text of each sentence, in order. count: number of
    texts.
    """
    first = np.searchsorted(text, np.arange(count))
    stop = np.searchsorted(text, np.arange(count), "right")
    has = stop > first
    found = np.zeros((count, FEATURES))
    if not len(z):
        return found, has
    a, b = first[has], stop[has]
    z = z - z.mean(1, keepdims=True)
    mood = z[:, 2] - z[:, 0]
    last, before = z[b - 1], z[np.maximum(b - 2, a)]
    n = (b - a)[:, None]
    mean = np.add.reduceat(z, a) / n
    bent = np.tanh(mood)[:, None]
    found[has] = np.hstack(
        [
            *(last[:, [0, 2]], before[:, [0, 2]], mean[:, [0, 2]], z[a][:, [0, 2]]),
            *(np.minimum.reduceat(mood, a)[:, None], np.maximum.reduceat(mood, a)[:, None]),
            *(np.add.reduceat(bent, a) / n, bent[b - 1], bent[np.maximum(b - 2, a)]),
            np.add.reduceat(np.abs(mood)[:, None], a) / n,
            np.maximum.reduceat(z[:, 1:2], a),
            z[b - 1][:, 1:2],
            np.minimum(n, 8) / 8,
        ]
    )
    return found, has


@dataclass(frozen=True, slots=True)
class StoryModel:
    """A trained classifier.

    weights: (2**BITS, 3) int8, in steps of `scale`. hidden: (FEATURES + 1, units) and out:
    (units + 1, 3), the layers of the network, with the constants in the last row.
    """

    weights: Array
    scale: float
    hidden: Array
    out: Array

    def sentences(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Compute z (sentences, 3), and the text of each sentence."""
        found = words(texts)
        count = len(found.text)
        total = np.zeros((len(found.begin), CLASSES), np.int32)
        for _, at, buckets in found.features():
            total[at] += self.weights[buckets]
        if not count:
            return np.zeros((0, CLASSES)), found.text
        starts = np.flatnonzero(np.diff(found.sentence, prepend=-1))
        n = np.diff(starts, append=len(found.sentence))[:, None]
        return np.add.reduceat(total, starts) * self.scale / np.sqrt(n), found.text

    def probabilities(self, texts: Sequence[str]) -> list[tuple[float, float, float] | None]:
        """Return (negative, neutral, positive) of each text; None for one without a word."""
        found: list[tuple[float, float, float] | None] = []
        for part in linear.batches(texts):
            some = texts[part]
            z, text = self.sentences(some)
            x, has = summary(z, text, len(some))
            p = softmax(network(x, self.hidden, self.out))
            # Six places: the last bits of exp() are not the same on every machine.
            found += [
                (round(a, 6), round(b, 6), round(c, 6)) if ok else None
                for (a, b, c), ok in zip(p.tolist(), has.tolist(), strict=True)
            ]
        return found


def network(x: Array, hidden: Array, out: Array) -> Array:
    """Compute logits (texts, 3) by sums: products of matrices would depend on the batch."""
    units = np.tanh((x[:, :, None] * hidden[None, :-1]).sum(1) + hidden[-1])
    return np.asarray((units[:, :, None] * out[None, :-1]).sum(1) + out[-1])


def softmax(x: Array) -> Array:
    """Turn logits into probabilities along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def write(model: StoryModel) -> bytes:
    """Return the bytes of a weights file: magic, sizes, scale, network (float64), weights."""
    parts = (model.hidden, model.out)
    head = struct.pack("<4id", *model.hidden.shape, *model.out.shape, model.scale)
    return (
        MAGIC + head + b"".join(p.astype("<f8").tobytes() for p in parts) + model.weights.tobytes()
    )


def read(path: Path, sha256: str = "") -> StoryModel:
    """Read the classifier of a weights file.

    Raises InputError if it is not such a file, or not the one for which the card was written.
    """
    try:
        data = door.content(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    wrong = InputError(f"{path}: not the weights of a classifier of stories; train it again")
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 24:
        raise wrong
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path}: not the weights that the card was written for; train it again")
    at = len(MAGIC)
    a, b, c, d, scale = struct.unpack("<4id", data[at : at + 24])
    at += 24
    size = at + 8 * (a * b + c * d) + (CLASSES << BITS)
    if b < 1 or (a, c, d) != (FEATURES + 1, b + 1, CLASSES) or len(data) != size:
        raise wrong
    hidden = np.frombuffer(data, "<f8", a * b, at).reshape(a, b)
    out = np.frombuffer(data, "<f8", c * d, at + 8 * a * b).reshape(c, d)
    weights = np.frombuffer(data, np.int8, CLASSES << BITS, at + 8 * (a * b + c * d))
    if not (abs(scale) < MOST and (np.abs(hidden) < MOST).all() and (np.abs(out) < MOST).all()):
        raise wrong
    return StoryModel(weights.reshape(-1, CLASSES), scale, hidden, out)
