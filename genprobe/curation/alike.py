"""Find similar texts: pairs with cosines at or above a threshold, among many vectors.

Each text brings its 64 nearest, so that memory grows with the texts and not with their pairs.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError

if TYPE_CHECKING:
    import numpy as np

NEAREST = 64  # pairs that a text brings to the graph: its own nearest
_AHEAD = 256  # pairs that a text keeps with those behind it, before its nearest are chosen
_CANDIDATES = 4_096  # pairs of a text with those behind it whose cosine may reach the threshold
_SHARE = 0.6  # of the threshold's square: the most that frequent n-grams may hold of a vector
_ROUNDING = 1e-5  # of sums in 32 bits, by which no pair may be missed
_BATCH = 16_384  # pairs computed at a time


def graph(vectors: Any, threshold: float) -> Any:
    """Compute the cosines of pairs at or above a threshold.

    vectors: one row a text, each of length one; dense, or sparse with no number below zero.
    threshold: above 0, at most 1. Returns a sparse symmetric matrix, without the diagonal, in
    which every row has its `NEAREST` greatest (and all that are equal to the least of them), and
    those pairs in which it is among the greatest of the other. Raises InputError without
    sparse_dot_topn.
    """
    from scipy import sparse

    found = (
        _sparse_pairs(vectors.tocsr(), threshold)
        if sparse.issparse(vectors)
        else _dense_pairs(vectors, threshold)
    )
    found.setdiag(0)
    found.eliminate_zeros()
    return found.maximum(found.T).tocsr()


def _sparse_pairs(vectors: Any, threshold: float) -> Any:
    """Multiply the texts with those behind them, block by block, since a cosine has two sides.

    The most frequent n-grams make most of the work and little of a cosine. A text's numbers for
    them are first replaced by one, their length: a sum of products is at most the product of both
    lengths (Cauchy and Schwarz), so the product of the shorter vectors is at least the cosine, and
    no pair is missed. Only for pairs at which it reaches the threshold is the cosine computed.
    """
    import numpy as np
    from scipy import sparse

    count = vectors.shape[0]
    frequent, short = _shorten(vectors, threshold)
    least, size = math.nextafter(threshold, 0), max(1_000, -(-count // 16))
    parts = []
    for start in range(0, count, size):
        found = _products(short, start, size, least - _ROUNDING, _CANDIDATES)
        if np.diff(found.indptr).max() < min(_CANDIDATES, count - start):
            _correct(found, start, frequent, least)
            _keep_greatest(found, _AHEAD)
        else:  # there may be more candidates: all cosines are computed
            found = _products(vectors, start, size, least, _AHEAD)
        before = sparse.csr_matrix((found.shape[0], start), dtype=found.dtype)
        parts.append(sparse.hstack([before, found], format="csr"))
    half = sparse.vstack(parts, format="csr")
    pairs = half.maximum(half.T).tocsr()
    _keep_greatest(pairs, NEAREST + 1)  # and itself
    return pairs


def _shorten(vectors: Any, threshold: float) -> tuple[np.ndarray[Any, Any], Any]:
    """Part vectors into their numbers for frequent n-grams, dense, and the shorter vectors.

    N-grams are frequent, most frequent first, while together they hold at most a share of the
    vectors' squares that leaves few candidates; 512 at most, since they are kept dense.
    """
    import numpy as np
    from scipy import sparse

    columns = vectors.shape[1]
    often = np.bincount(vectors.indices, minlength=columns)
    squares = np.bincount(vectors.indices, vectors.data.astype(np.float64) ** 2, columns)
    order = np.argsort(-often, kind="stable")
    held = np.cumsum(squares[order]) / vectors.shape[0]
    taken = order[: min(512, int(np.searchsorted(held, _SHARE * threshold**2)))]
    frequent = vectors[:, taken].toarray()
    rest = np.setdiff1d(np.arange(columns), taken)
    length = sparse.csr_matrix(np.linalg.norm(frequent, axis=1, keepdims=True))
    return frequent, sparse.hstack([length, vectors[:, rest]], format="csr")


def _products(vectors: Any, start: int, size: int, least: float, most: int) -> Any:
    """Multiply a block of vectors with those from its start on; each row keeps so many."""
    try:
        from sparse_dot_topn import sp_matmul_topn
    except ImportError:
        raise InputError("grouping needs sparse_dot_topn; install genprobe[group]") from None
    return sp_matmul_topn(
        vectors[start : start + size],
        vectors[start:].T.tocsr(),
        top_n=most,
        threshold=least,
        density=min(1.0, _AHEAD / most),  # memory to begin with
        n_threads=max(1, min(8, os.cpu_count() or 1)),
    )


def _correct(found: Any, start: int, frequent: np.ndarray[Any, Any], least: float) -> None:
    """Make cosines of the products of shortened vectors, and zero of those below the threshold."""
    import numpy as np

    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)) + start
    others = found.indices + start
    length = np.linalg.norm(frequent, axis=1)
    for at in range(0, len(rows), _BATCH):
        own = slice(at, at + _BATCH)
        a, b = rows[own], others[own]
        found.data[own] += np.einsum("ij,ij->i", frequent[a], frequent[b]) - length[a] * length[b]
    found.data[found.data < least] = 0
    found.eliminate_zeros()


def _keep_greatest(pairs: Any, most: int) -> None:
    """Keep so many of each row, and those that are equal to the least of them."""
    import numpy as np

    for row in np.flatnonzero(np.diff(pairs.indptr) > most):
        own = slice(pairs.indptr[row], pairs.indptr[row + 1])
        values = pairs.data[own]
        values[values < np.partition(values, -most)[-most]] = 0
    pairs.eliminate_zeros()


def _dense_pairs(vectors: np.ndarray[Any, Any], threshold: float) -> Any:
    import numpy as np
    from scipy import sparse

    parts = []
    for start in range(0, len(vectors), 1024):
        cosines = vectors[start : start + 1024] @ vectors.T
        if cosines.shape[1] > NEAREST + 1:
            least = np.partition(cosines, -(NEAREST + 1), axis=1)[:, -(NEAREST + 1), None]
            cosines = np.where(cosines >= least, cosines, 0)
        parts.append(sparse.csr_matrix(np.where(cosines >= threshold, cosines, 0)))
    return sparse.vstack(parts).tocsr()
