"""The embedded classifier of short texts: one weight per hashed n-gram, then a sigmoid.

A text is folded: case, and by the card's `[fold]` substitute spellings such as Latin for Cyrillic
letters. Its character n-grams (also across words), words, pairs of words and pairs of stems
(without endings) are hashed into buckets. With the integer weights w of these n-grams g_1 … g_n

    logit = a · (w[g_1] + … + w[g_n]) / sqrt(n) + b
    P(negative) = c + (1 - c) / (1 + exp(-logit))

Training (`train`) is logistic regression, L2, on counts that are scaled by the absolute log-count
ratio of the classes (Wang & Manning 2012, "Baselines and Bigrams", ACL, the NB-SVM), divided by
sqrt(n); the scaling is then multiplied into the weights. There are two rounds: on all texts, and
without texts labelled negative that a model trained without them finds positive (`DOUBT`). The
weights of both rounds are added and rounded to 8 bits. a, b and c come from Platt's regression on
held-out folds, weighted to the class shares of the card. c is the share of texts that are labelled
negative whatever they say, so that P(negative) is never 0.

Each weight is stored in one byte as the signed square root of its size, so that small weights keep
their precision. The sum is over integers, so a text has the same probability alone and in any
batch, on any machine.
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genprobe.errors import InputError
from genprobe.files import door

Array = NDArray[Any]

MAGIC = b"genprobe-linear-2\n"
MOST = 1e9  # no number of a trained classifier is as large; NaN is not below it either
CHARACTERS = 6  # longest character n-gram
WORDS = 2  # longest word n-gram
STEM = 4  # letters of a word that stand for its stem
GAPS = (1, 2)  # pairs of stems: of a word and the next, and of a word and the one after that
WORD_COUNT = 3  # character n-grams that a word n-gram or a pair of stems counts for
BITS = 21  # log2 of the number of buckets
BATCH = 400_000  # code points that are hashed at a time
FOLDS = 5
STRENGTH = 3.0  # inverse of the L2 penalty; by cross-validation
RARE = 2  # n-grams in fewer training texts have no weight
# A text labelled negative is doubtful if its P(negative), for classes of equal size, is below this.
# Many customers praise but give one star: one in eight negative reviews of KazSAnDRA is left out.
# The reverse (complaint and five stars) is rare, and leaving it out gained nothing.
DOUBT = 0.4

_SPACE, _END, _START, _STOP, _DROP = 32, 10, 2, 3, 0
_CODES = 0x20000  # letters and emoji; code points from here on count as spaces
_KEPT = "!?()"
_MULTIPLIER = 0x9E3779B97F4A7C15
_MIX = np.uint64(0xD6E8FEB86659FD93)
PAIR = np.uint64(0xBF58476D1CE4E5B9)  # by which the hash of the first of two words is multiplied


class Folder:
    """Folds texts to code points. fold: letter or pair of letters -> letter (may be empty).

    Letters in lower case, digits, emoji and ! ? ( ) are kept; combining marks, joiners and letters
    that `fold` maps to nothing are dropped; everything else becomes a space. A repeated character
    counts once: "керемееет".
    """

    def __init__(self, fold: Mapping[str, str]) -> None:
        singles = {old: new for old, new in fold.items() if len(old) == 1}
        self._pairs = [(ord(o[0]), ord(o[1]), ord(n)) for o, n in fold.items() if len(o) == 2]
        self._table = np.array([_folded(code, singles) for code in range(_CODES)], np.uint32)
        # Pairs are looked for in the unfolded text, before single letters are folded.
        self._lower = np.array([_lower(code) for code in range(_CODES)], np.uint32)

    def __call__(self, texts: Sequence[str]) -> Array:
        """Return one array for all texts, each between markers: space, start … stop, space, end.

        The start and stop markers count as letters of the first and the last word, because the end
        of a Kazakh sentence is the most informative part.
        """
        sizes = np.array([len(text) + 5 for text in texts])
        ends = np.cumsum(sizes) - 1
        starts = ends + 1 - sizes
        joined = "".join(f"  {text}   " for text in texts)
        raw = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = self._lower[np.minimum(raw, _CODES - 1)]
        for first, second, new in self._pairs:
            at = np.flatnonzero((codes[:-1] == first) & (codes[1:] == second))
            codes[at], codes[at + 1] = new, _DROP
        codes = self._table[codes]
        codes[starts + 1], codes[ends - 2], codes[ends] = _START, _STOP, _END
        codes = codes[codes != _DROP]
        again = np.zeros(len(codes), bool)
        again[1:] = codes[1:] == codes[:-1]
        codes = codes[~again]
        padding = np.zeros(len(codes), bool)
        padding[1:] |= codes[:-1] == _START
        padding[:-1] |= codes[1:] == _STOP
        return codes[~(padding & (codes == _SPACE))]


def _lower(code: int) -> int:
    lower = unicodedata.normalize("NFKC", chr(code)).lower() if not 0xD800 <= code < 0xE000 else " "
    return ord(lower[0]) if lower and ord(lower[0]) < _CODES else _SPACE


def _folded(code: int, fold: Mapping[str, str]) -> int:
    char = chr(code)
    if code == _DROP:  # the second letter of a pair
        return _DROP
    if char in fold:
        return ord(fold[char]) if fold[char] else _DROP
    kind = unicodedata.category(char)
    if kind[0] == "L" or kind == "Nd" or kind == "So" or char in _KEPT:
        return code
    return _DROP if kind in ("Mn", "Me", "Cf", "Sk") else _SPACE


def powers(size: int) -> tuple[Array, Array]:
    """Return the powers of the multiplier and of its inverse modulo 2**64, at least `size` each."""
    return _powers(max(12, size.bit_length()))


@functools.cache
def _powers(bits: int) -> tuple[Array, Array]:
    """Return 2**bits of the powers: kept for few lengths, and not for each of a text."""
    found = []
    for base in (_MULTIPLIER, pow(_MULTIPLIER, -1, 1 << 64)):
        steps = np.full(1 << bits, base, np.uint64)
        steps[0] = 1
        found.append(np.multiply.accumulate(steps))
    return found[0], found[1]


def bucket(hashes: Array, kind: int, bits: int) -> Array:
    """Return the bucket, one of 2**bits, of each hash of an n-gram of a kind."""
    mixed = hashes + np.uint64(kind)
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    return np.asarray(mixed >> np.uint64(64 - bits), np.int64)


def ngrams(codes: Array) -> Iterator[tuple[Array | slice, Array, Array]]:
    """Hash the n-grams of folded texts into buckets.

    The hash is a polynomial over code points, so that any substring costs one subtraction and one
    multiplication.

    codes: as returned by `Folder`. Yields for each kind of n-gram: where they begin, their buckets,
    how often each counts. N-grams across the end of a text count 0 times.
    """
    size = len(codes)
    multiplied, inverse = powers(size)
    sums = np.zeros(size + 1, np.uint64)
    np.cumsum(codes.astype(np.uint64) * multiplied[:size], out=sums[1:])
    ends = np.flatnonzero(codes == _END)
    lengths = np.diff(ends, prepend=-1)
    left = np.repeat(ends, lengths) - np.arange(size)  # code points until the text ends
    for n in range(1, CHARACTERS + 1):
        begin = slice(0, max(0, size - n + 1))
        hashes = (sums[n:] - sums[: size - n + 1]) * inverse[begin]
        yield begin, bucket(hashes, n, BITS), (left[begin] >= n).astype(np.int64)
    letter = (codes != _SPACE) & (codes != _END)
    edge = np.diff(letter.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    for n in range(1, WORDS + 1):
        start, stop = first[: len(first) - n + 1], last[n - 1 :]
        hashes = (sums[stop] - sums[start]) * inverse[start]
        real = left[start] >= stop - start
        yield start, bucket(hashes, CHARACTERS + n, BITS), real * WORD_COUNT
    stems = (sums[np.minimum(first + STEM, last)] - sums[first]) * inverse[first]
    for gap in GAPS:
        start, hashes = first[:-gap], stems[:-gap] * PAIR + stems[gap:]
        real = left[start] >= last[gap:] - start
        yield start, bucket(hashes, CHARACTERS + WORDS + gap, BITS), real * WORD_COUNT


def batches(texts: Sequence[str]) -> Iterator[slice]:
    """Yield slices of the texts with at most `BATCH` characters together, or one longer text."""
    start = size = 0
    for at, text in enumerate(texts):
        if size and size + len(text) > BATCH:
            yield slice(start, at)
            start, size = at, 0
        size += len(text) + 3
    if start < len(texts):
        yield slice(start, len(texts))


@dataclass(slots=True)
class Linear:
    """A trained classifier. weights: (2**BITS,) int16; slope, offset, floor: a, b, c above."""

    weights: Array
    slope: float
    offset: float
    floor: float
    folder: Folder

    def negative(self, texts: Sequence[str]) -> list[float | None]:
        """Return P(negative) of each text; None for one without a letter, digit or emoji."""
        found: list[float | None] = []
        for part in batches(texts):
            found += self._batch(texts[part])
        return found

    def _batch(self, texts: Sequence[str]) -> list[float | None]:
        codes = self.folder(texts)
        total = np.zeros(len(codes), np.int64)
        count = np.zeros(len(codes), np.int64)
        for start, buckets, times in ngrams(codes):
            total[start] += self.weights[buckets] * times
            count[start] += times
        ends = np.flatnonzero(codes == _END)
        starts = np.concatenate(([0], ends[:-1] + 1))
        totals, counts = np.add.reduceat(total, starts), np.add.reduceat(count, starts)
        bare = np.diff(ends, prepend=-1) <= 5  # the markers that every text has
        return [
            None if empty else self._probability(self.slope * t / math.sqrt(n) + self.offset)
            for t, n, empty in zip(totals.tolist(), counts.tolist(), bare.tolist(), strict=True)
        ]

    def _probability(self, x: float) -> float:
        p = 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))
        # Six places: the last bits of exp() are not the same on every machine.
        return round(self.floor + (1 - self.floor) * p, 6)


# --- the file --------------------------------------------------------------------------------


def write(model: Linear) -> bytes:
    """Return the bytes of a weights file: magic, a, b and c (little-endian float64), weights."""
    roots = np.sqrt(np.abs(model.weights.astype(float))).round()
    stored = (np.sign(model.weights) * roots).astype(np.int8)
    return MAGIC + struct.pack("<3d", model.slope, model.offset, model.floor) + stored.tobytes()


def read(path: Path, folder: Folder, sha256: str = "") -> Linear:
    """Read the classifier of a weights file.

    Raises InputError if it is not such a file, or not the one for which the card was written.
    """
    try:
        data = door.content(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    start = len(MAGIC) + 24
    if not data.startswith(MAGIC) or len(data) != start + (1 << BITS):
        raise InputError(f"{path}: not the weights of a linear classifier; train it again")
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path}: not the weights that the card was written for; train it again")
    slope, offset, floor = struct.unpack("<3d", data[len(MAGIC) : start])
    if not (abs(slope) < MOST and abs(offset) < MOST and 0 <= floor <= 1):
        raise InputError(f"{path}: its numbers are none of a linear classifier; train it again")
    stored = np.frombuffer(data[start:], np.int8).astype(np.int16)
    return Linear(stored * np.abs(stored), slope, offset, floor, folder)


# --- training --------------------------------------------------------------------------------


def train(
    texts: Sequence[str], negative: Array, folder: Folder, share: float
) -> tuple[Linear, Array]:
    """Train a classifier, and compute P(negative) of each text by a model that did not see it.

    negative: (n,) of 0 and 1. share: expected share of negative texts in use, from 0 to 1; the
    calibration is weighted to it. Deterministic: fixed order, no BLAS, folds by hash. Returns the
    classifier and P(negative), (n,).
    """
    y = np.asarray(negative, float)
    matrix = _matrix(texts, folder)
    mix = np.where(y == 1, share / y.mean(), (1 - share) / (1 - y.mean()))
    fold = _folds(texts)
    found: dict[frozenset[int], Array] = {}

    def first(without: frozenset[int]) -> Array:
        """Return the weights without some folds; each set of folds is fitted once."""
        if without not in found:
            learn = ~np.isin(fold, list(without))
            found[without] = _weights(matrix[learn], y[learn], mix[learn])
        return found[without]

    def both(without: frozenset[int]) -> Array:
        """Sum the weights of both rounds; doubtful texts are also found without these folds."""
        learn = ~np.isin(fold, list(without))
        held = np.zeros(len(y))
        for k in set(range(FOLDS)) - without:
            held[fold == k] = matrix[fold == k] @ first(without | {k})
        slope, offset = _platt(held[learn], y[learn], mix[learn])
        # Log odds minus the prior log odds: as if the classes were equally common.
        odds = slope * held + offset - math.log(share / (1 - share))
        sure = learn & ~((y == 1) & (odds < math.log(DOUBT / (1 - DOUBT))))
        return first(without) + _weights(matrix[sure], y[sure], mix[sure])

    held = np.zeros(len(y))
    for k in range(FOLDS):
        held[fold == k] = matrix[fold == k] @ both(frozenset({k}))
    weights = both(frozenset())
    top = float(np.abs(weights).max()) or 1.0
    # 127 steps of the square root; the integers are their squares.
    stored = np.sign(weights) * np.round(127 * np.sqrt(np.abs(weights) / top))
    slope, offset, floor = _calibration(held, y, mix)
    held_out = floor + (1 - floor) / (1 + np.exp(-(slope * held + offset)))
    squares = (stored * np.abs(stored)).astype(np.int16)
    scale = _short(slope * top / 127**2)
    return Linear(squares, scale, _short(offset), _short(floor), folder), held_out


def _short(value: float) -> float:
    """Round to six significant digits, which rounding errors do not reach."""
    return float(f"{value:.6g}")


def _folds(texts: Sequence[str]) -> Array:
    """Return the fold of each text by its hash, so that equal texts are in one fold."""
    return np.array(
        [hashlib.sha256(t.encode("utf-8", "surrogatepass")).digest()[0] % FOLDS for t in texts]
    )


def _matrix(texts: Sequence[str], folder: Folder) -> Any:
    """Return a (texts, buckets) CSR matrix of counts divided by sqrt(number of n-grams)."""
    from scipy.sparse import csr_matrix, vstack

    parts = []
    for part in batches(texts):
        codes = folder(texts[part])
        row = np.cumsum(codes == _END) - (codes == _END)
        rows, buckets, counts = [], [], []
        for start, bucket, times in ngrams(codes):
            rows.append(row[start][times > 0])
            buckets.append(bucket[times > 0])
            counts.append(times[times > 0])
        at, to, times = (np.concatenate(part) for part in (rows, buckets, counts))
        size = np.bincount(at, times, minlength=row[-1] + 1)
        found = csr_matrix((times / np.sqrt(size)[at], (at, to)), shape=(len(size), 1 << BITS))
        found.sum_duplicates()
        parts.append(found)
    return vstack(parts, format="csr")


def _weights(matrix: Any, y: Array, mix: Array) -> Array:
    """Return the weights of the NB-SVM, (buckets,), multiplied by its scaling."""
    common = np.bincount(matrix.indices, minlength=matrix.shape[1]) >= RARE
    kept = np.flatnonzero(common)
    seen = matrix[:, kept]
    ones = seen.copy()
    # Number of texts of each class with the n-gram: whole numbers add up without rounding.
    ones.data = np.ones_like(ones.data)
    with_n, without = ones.T @ y + 1, ones.T @ (1 - y) + 1
    ratio = np.abs(np.log(with_n / with_n.sum()) - np.log(without / without.sum()))
    seen.data *= ratio[seen.indices]
    found = np.zeros(matrix.shape[1])
    found[kept] = ratio * _logistic(seen, y, mix)
    return found


def _logistic(x: Any, y: Array, weight: Array, tolerance: float = 1e-5) -> Array:
    """Minimise |w|^2 / 2 + STRENGTH · weighted log loss of (x w + constant) by truncated Newton.

    The function is convex, so there is one minimum; the search ends when the gradient is below
    `tolerance` times the first one. Dot products are numpy's pairwise sums, which are the same with
    any number of threads.
    """
    xt = x.T.tocsr()
    n = x.shape[1]
    w = np.zeros(n + 1)  # the last is the constant

    def forward(v: Array) -> Array:
        return np.asarray(x @ v[:n] + v[n])

    def backward(u: Array) -> Array:
        return np.append(xt @ u, u.sum())

    def loss(margin: Array, v: Array) -> float:
        each = weight * (np.logaddexp(0, margin) - y * margin)
        return float((v * v).sum() / 2 + STRENGTH * each.sum())

    margin = forward(w)
    value, first = loss(margin, w), 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-margin))
        gradient = w + STRENGTH * backward(weight * (p - y))
        size = math.sqrt((gradient * gradient).sum())
        first = first or size
        if size <= tolerance * first:
            break
        curvature = STRENGTH * weight * p * (1 - p)

        def hessian(v: Array, curvature: Array = curvature) -> Array:
            return v + backward(curvature * forward(v))

        step = _conjugate(hessian, -gradient, 0.05 * size)
        along, slope = forward(step), float((gradient * step).sum())
        rate = 1.0
        while loss(margin + rate * along, w + rate * step) > value + 1e-4 * rate * slope:
            rate /= 2
            if rate < 1e-6:
                return w[:n]
        w, margin = w + rate * step, margin + rate * along
        value = loss(margin, w)
    return w[:n]


def _conjugate(apply: Any, target: Array, tolerance: float, steps: int = 100) -> Array:
    """Solve apply(v) = target by conjugate gradients."""
    v, rest = np.zeros_like(target), target.copy()
    way, size = rest.copy(), float((rest * rest).sum())
    for _ in range(steps):
        image = apply(way)
        rate = size / float((way * image).sum())
        v += rate * way
        rest -= rate * image
        new = float((rest * rest).sum())
        if math.sqrt(new) <= tolerance:
            break
        way = rest + new / size * way
        size = new
    return v


def _calibration(score: Array, y: Array, weight: Array) -> tuple[float, float, float]:
    """Fit (a, b, c) of c + (1 - c) · sigmoid(a · score + b) by weighted maximum likelihood.

    By expectation maximisation: `blind` is the probability that a text belongs to the share c,
    which is negative whatever it says; a and b are Platt's regression on the other texts.
    """
    blind, floor = np.zeros_like(score), 0.0
    for _ in range(300):
        slope, offset = _platt(score, y, weight * (1 - blind))
        before, floor = floor, float((weight * blind).sum() / weight.sum()) or 0.01
        if abs(floor - before) < 1e-9:
            break
        blind = y * floor / (floor + (1 - floor) / (1 + np.exp(-(slope * score + offset))))
    return slope, offset, floor


def _platt(score: Array, y: Array, weight: Array) -> tuple[float, float]:
    """Fit (a, b) of sigmoid(a · score + b) by weighted maximum likelihood (Newton)."""
    x = np.stack([score, np.ones_like(score)], 1)
    ab = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x * ab).sum(1)))
        gradient = (x * (weight * (p - y))[:, None]).sum(0)
        h = weight * p * (1 - p)
        a, b, c = (h * score * score).sum(), (h * score).sum(), h.sum()
        step = np.array([c * gradient[0] - b * gradient[1], a * gradient[1] - b * gradient[0]])
        step /= a * c - b * b
        ab = ab - step
        if np.abs(step).max() < 1e-10:
            break
    return float(ab[0]), float(ab[1])
