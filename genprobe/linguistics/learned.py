"""A small learned reader of sentences, used if the rules find no answer.

A sentence is a sequence of words. The features of a word are its beginnings of 3 to 7 letters, the
whole word, its ending, the word together with its neighbour (all of these only if they were in the
training data), and its groups of stems (`[clause]` in prompts/languages/). Through these groups,
words that negate, or that agree, look alike to the network in all languages.

Three recurrent networks read the sentence in both directions; the reading is the mean of their
probabilities. They were trained by `tools/train_reading.py` on sentences written for this project;
docs/reading.md reports the accuracy.

Probabilities are rounded, because the last bits of a sum can depend on the batch.
"""

from __future__ import annotations

import functools
import json
import operator
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genprobe import text
from genprobe.linguistics import stems
from genprobe.resources import packs

Array = NDArray[Any]

# Increase it whenever a reading can change with the same weights.
VERSION = 1

MAGIC = b"genprobe-reading-1\n"
FILE = Path(__file__).with_name("learned.bin")
LONGEST = 60  # number of words of a sentence that are read
GROUPS = (*packs.CLAUSE_GROUPS, "or")  # in the order of the bits of `stems.Hit`
_BEGINNINGS = range(3, 8)


class Word(NamedTuple):
    """The features of one word: hashes of its parts, and its groups of stems as bits."""

    parts: tuple[int, ...]
    groups: int


class Reading(NamedTuple):
    """Probabilities of two pairs of readings; what a pair lacks to 1 is "neither"."""

    agrees: float
    disagrees: float
    stereotype: float
    no_stereotype: float


def _hash(part: str) -> int:
    return zlib.crc32(part.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=50_000)
def _parts(word: str) -> tuple[int, ...]:
    """Return the hashes of the parts of a word, without its neighbour."""
    found = [_hash(f"={word}")]
    found += [_hash(f"{n}{word[:n]}") for n in _BEGINNINGS if len(word) > n]
    found += [_hash(f"-{n}{word[-n:]}") for n in (3, 4) if len(word) > n + 1]
    return tuple(found)


def words(code: str, sentence: str) -> list[Word]:
    """Return the features of the words of a sentence.

    code: language of `prompts/languages/`. sentence: normalised and folded.
    """
    tokens = text.tokens(sentence)[:LONGEST]
    groups = [0] * len(tokens)
    for hit in stems.grammar(code).hits(tokens, 0, len(tokens)):
        # Only the first and last word of a pattern with a gap belong to the stem.
        for i in (hit.first, hit.last - 1) if hit.gap else range(hit.first, hit.last):
            groups[i] |= hit.bits
    found = []
    for i, token in enumerate(tokens):
        parts = list(_parts(token))
        if i:
            parts.append(_hash(f"{tokens[i - 1]} {token}"))
        if i > 1 and len(token) == 1:  # ideographs
            parts.append(_hash(f"{tokens[i - 2]} {tokens[i - 1]} {token}"))
        found.append(Word(tuple(parts), groups[i]))
    return found


def groups(code: str, sentence: str) -> int:
    """Return all groups of stems in a sentence, as the bits of `stems.Hit`."""
    return functools.reduce(operator.or_, (word.groups for word in words(code, sentence)), 0)


class Arrays(NamedTuple):
    """The weights of n networks, with d numbers per word and u units per direction.

    parts: (n, known, d) int8 in steps of `scale` (n, d); groups: (n, groups, d); bias: (n, d).
    inside, hidden: (n, 2, 3 u, d) and (n, 2, 3 u, u), forward and backward, with their biases
    (n, 2, 3 u); in the order reset, update, new. out, out_bias: (n, 6, 4 u) and (n, 6).
    """

    parts: Array
    scale: Array
    groups: Array
    bias: Array
    inside: Array
    hidden: Array
    inside_bias: Array
    hidden_bias: Array
    out: Array
    out_bias: Array


class Model(NamedTuple):
    """The networks, with their vocabulary, threshold and languages.

    The vocabulary maps the hash of each known part to its row; the threshold is the least mean
    probability of a reading that counts as firm.
    """

    arrays: Arrays
    rows: dict[int, int]
    firm: float
    languages: tuple[str, ...]

    def read(self, code: str, sentences: Sequence[str]) -> list[Reading]:
        """Return the reading of each sentence; all 0 for one without a word."""
        seen = [self.known(words(code, sentence)) for sentence in sentences]
        found = [Reading(0, 0, 0, 0)] * len(seen)
        some = [at for at, one in enumerate(seen) if one]
        if some:
            p = probabilities(self.arrays, [seen[at] for at in some])
            for at, one in zip(some, p.tolist(), strict=True):
                found[at] = Reading(*(round(one[k], 4) for k in (1, 2, 4, 5)))
        return found

    def known(self, seen: Sequence[Word]) -> list[Word]:
        """Return the words with their hashes replaced by the rows of known parts."""
        rows = self.rows
        return [Word(tuple(rows[p] for p in one.parts if p in rows), one.groups) for one in seen]


def probabilities(arrays: Arrays, sentences: Sequence[Sequence[Word]]) -> Array:
    """Return the mean probabilities of the networks, with shape (sentences, 6).

    The columns are: neither, agrees, disagrees; neither, is a stereotype, is no stereotype.
    sentences: the words of each, each word with the rows of its known parts.
    """
    longest = max(map(len, sentences))
    nets, _, size = arrays.parts.shape
    seen = np.zeros((nets, len(sentences), longest, size), np.float32)
    there = np.zeros((len(sentences), longest, 1), np.float32)
    for s, sentence in enumerate(sentences):
        for t, word in enumerate(sentence):
            parts = arrays.parts[:, list(word.parts)].sum(1, dtype=np.int32)
            own = [g for g in range(len(GROUPS)) if word.groups >> g & 1]
            one = parts * (arrays.scale / np.sqrt(max(1, len(word.parts))))
            seen[:, s, t] = one + arrays.groups[:, own].sum(1) + arrays.bias
            there[s, t] = 1
    states = _recurrent(arrays, seen, there)
    highest = (states - 1e4 * (1 - there)).max(2)
    mean = (states * there).sum(2) / there.sum(1)
    z = np.concatenate([highest, mean], -1) @ arrays.out.swapaxes(1, 2) + arrays.out_bias[:, None]
    z = z.reshape(nets, -1, 2, 3)
    e = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray((e / e.sum(-1, keepdims=True)).mean(0).reshape(-1, 6))


def _recurrent(arrays: Arrays, seen: Array, there: Array) -> Array:
    """Return the states of gated recurrent units, with shape (n, sentences, words, 2 u).

    there: the positions with a word; at the others the state does not change.
    """
    u = arrays.hidden.shape[-1]
    both = np.stack([seen, seen[:, :, ::-1]], 1)  # (n, 2, sentences, words, d)
    on = np.stack([there, there[:, ::-1]])
    given = both @ arrays.inside.swapaxes(2, 3)[:, :, None] + arrays.inside_bias[:, :, None, None]
    hidden, bias = arrays.hidden.swapaxes(2, 3), arrays.hidden_bias[:, :, None]
    state = np.zeros((*both.shape[:3], u), np.float32)
    states = np.zeros((*both.shape[:4], u), np.float32)
    for t in range(both.shape[3]):
        own = state @ hidden + bias
        gates = 1 / (1 + np.exp(-(given[..., t, : 2 * u] + own[..., : 2 * u])))
        new = np.tanh(given[..., t, 2 * u :] + gates[..., :u] * own[..., 2 * u :])
        mixed = new + gates[..., u:] * (state - new)
        state = state + on[:, :, t] * (mixed - state)
        states[..., t, :] = state
    return np.concatenate([states[:, 0], states[:, 1, :, ::-1]], -1)


def write(model: Model) -> bytes:
    """Return the bytes of a weights file: magic, JSON (groups, threshold, shapes), arrays."""
    head = {
        "groups": GROUPS,
        "firm": model.firm,
        "languages": model.languages,
        "known": len(model.rows),
        "arrays": {name: a.shape for name, a in model.arrays._asdict().items()},
    }
    body = np.array(list(model.rows), "<u4").tobytes()
    for name, a in model.arrays._asdict().items():
        body += (a if name == "parts" else a.astype("<f2")).tobytes()
    return MAGIC + json.dumps(head).encode() + b"\n" + body


def load(data: bytes) -> Model:
    """Return the model in a weights file.

    Groups of stems are matched by name; groups that were added after the training are ignored.
    """
    if not data.startswith(MAGIC):
        raise ValueError("not the weights of a reader: run tools/train_reading.py")
    line, _, body = data[len(MAGIC) :].partition(b"\n")
    head = json.loads(line)
    hashes = np.frombuffer(body, "<u4", head["known"]).tolist()
    at, named = 4 * len(hashes), {}
    for name, shape in head["arrays"].items():
        a = np.frombuffer(body, "i1" if name == "parts" else "<f2", int(np.prod(shape)), at)
        at += a.nbytes
        named[name] = (a if name == "parts" else a.astype(np.float32)).reshape(shape)
    groups = np.zeros((named["bias"].shape[0], len(GROUPS), named["bias"].shape[1]), np.float32)
    for k, group in enumerate(head["groups"]):
        if group in GROUPS:
            groups[:, GROUPS.index(group)] = named["groups"][:, k]
    named["groups"] = groups
    rows = {part: row for row, part in enumerate(hashes)}
    return Model(Arrays(**named), rows, head["firm"], tuple(head["languages"]))


@functools.cache
def model() -> Model:
    """Return the reader that comes with genprobe."""
    return load(FILE.read_bytes())
